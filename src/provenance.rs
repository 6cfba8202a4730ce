//! Describes how a file was made: from which inputs and games, and with which options. The description is stored in the
//! headers of books, in databases and in counts directories.

use std::{error::Error as StdError, fmt, ops::AddAssign, path::PathBuf};

use crate::{error::plural, text::is_unsafe};

/// The maximum number of bytes for the list of inputs in the comment of a book's header.
const ROOM_FOR_INPUTS: usize = 900;

/// The maximum number of bytes for the list of options in the comment of a book's header.
const ROOM_FOR_OPTIONS: usize = 600;

/// The separator between the names of inputs in the comment of a book's header.
pub(crate) const INPUT_SEPARATOR: &str = ", ";

/// A description of how the numbers of games in a file were made. It contains the names of the inputs, the total
/// numbers of games that were read, counted and skipped, and the options of the run. It does not depend on the time,
/// the directory or the computer of the run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Provenance {
    /// The names of the inputs, without their directories.
    pub inputs: Vec<String>,
    /// The total numbers of games in all inputs, or `None` if they are not known.
    pub games: Option<GameCounts>,
    /// The options of the run that have an effect on the result and differ from the defaults, written as on the command
    /// line. The headers of books and databases contain this text, so it is part of their formats.
    pub options: String,
}

impl Provenance {
    /// Returns the comment for the header of a book. It describes the program, the inputs, the games and the options.
    /// `further_options` are appended to the options of the run. The comment has at most 1,900 bytes, and does not end
    /// with a line break.
    ///
    /// ```
    /// use polybook::provenance::Provenance;
    ///
    /// let provenance = Provenance {
    ///     inputs: vec!["games.pgn".to_owned()],
    ///     options: "--max-ply 30".to_owned(),
    ///     ..Provenance::default()
    /// };
    /// let comment = provenance.comment(&["--uniform"]);
    /// assert!(comment.ends_with("\nInput: games.pgn\nOptions: --max-ply 30 --uniform"));
    /// ```
    pub fn comment(&self, further_options: &[&str]) -> String {
        let mut lines = vec![
            format!("Made by polybook {}", env!("CARGO_PKG_VERSION")),
            format!("Input: {}", self.input_names(ROOM_FOR_INPUTS, printable)),
        ];
        if let Some(games) = &self.games {
            lines.push(format!("Games: {games}"));
        }
        let options: Vec<&str> = std::iter::once(&*self.options)
            .chain(further_options.iter().copied())
            .filter(|options| !options.is_empty())
            .collect();
        let options = match &*options.join(" ") {
            "" => "defaults".to_owned(),
            text => shortened(text, ROOM_FOR_OPTIONS),
        };
        lines.push(format!("Options: {options}"));
        lines.join("\n")
    }

    /// Returns the names of the inputs as one string. `spelled` converts each name before it is added. If the string
    /// would be longer than `room` bytes, the last names are replaced with their number ("and 7 more"). Returns an
    /// empty string if not even the first name fits.
    pub(crate) fn input_names(&self, room: usize, spelled: impl Fn(&str) -> String) -> String {
        let mut line = String::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let name = shortened(&spelled(input), room / 2);
            if line.len() + name.len() > room {
                if i == 0 {
                    break;
                }
                let more = self.inputs[i..].iter().map(|input| 1 + named_more(input));
                let more = more.fold(0, u64::saturating_add);
                line.push_str(&format!(" and {more} more"));
                break;
            }
            if i > 0 {
                line.push_str(INPUT_SEPARATOR);
            }
            line.push_str(&name);
        }
        line
    }
}

/// Joins options, such as `--max-ply 30`, with spaces, as on a command line. Elements that are `None` are skipped.
pub(crate) fn option_text(options: impl IntoIterator<Item = Option<String>>) -> String {
    Vec::from_iter(options.into_iter().flatten()).join(" ")
}

/// Returns the text of an option without a value, such as `--uniform`, or `None` if `is_on` is `false`. `name` is the
/// option without the hyphens.
pub(crate) fn switch(name: &str, is_on: bool) -> Option<String> {
    is_on.then(|| format!("--{name}"))
}

/// Returns the text of an option and its value, such as `--max-ply 30`, or `None` if `value` is `None`. `name` is the
/// option without the hyphens.
pub(crate) fn valued(name: &str, value: Option<impl fmt::Display>) -> Option<String> {
    value.map(|value| format!("--{name} {value}"))
}

/// Returns the number of inputs that a shortened list of inputs leaves out. `name` is the last element of the list. If
/// it has the form "and N more", with which [`Provenance::input_names`] ends a shortened list, the result is N.
/// Otherwise it is 0.
fn named_more(name: &str) -> u64 {
    let rest = name.strip_suffix(" more");
    let number = rest.and_then(|rest| rest.rsplit_once(" and "));
    let more = number.and_then(|(_, number)| number.parse::<u32>().ok());
    more.map_or(0, u64::from)
}

/// The numbers of positions, rows and half-moves that pruning has removed. Pruning removes every position in which
/// fewer moves than a minimum were counted.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Pruned {
    /// The minimum number of moves that must have been counted in a position so that it is kept.
    pub min_game: u64,
    /// The number of removed positions.
    pub positions: u64,
    /// The number of rows of the removed positions.
    pub rows: u64,
    /// The number of half-moves of the removed positions.
    pub plies: u64,
}

/// Formats the numbers as one sentence for a warning.
impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pruned {
            min_game,
            positions,
            plies,
            ..
        } = self;
        write!(
            f,
            "the counts contain only positions in which at least {min_game} moves were counted: {} with {} are missing",
            plural(*positions, "position"),
            plural(*plies, "half-move")
        )
    }
}

impl Pruned {
    /// Adds the numbers of `other`, which describe pruning in other data. The minimum becomes the greater of the two
    /// minimums.
    pub(crate) fn add(&mut self, other: Pruned) {
        self.min_game = self.min_game.max(other.min_game);
        self.positions += other.positions;
        self.rows += other.rows;
        self.plies += other.plies;
    }
}

/// The numbers of games that were read, counted, excluded by a filter, or rejected.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct GameCounts {
    /// The number of games in the inputs.
    pub read: u64,
    /// The number of games whose moves were counted.
    pub counted: u64,
    /// The number of games that the filter excluded.
    pub filtered: u64,
    /// The number of games that could not be replayed to their end.
    pub rejected: u64,
}

impl GameCounts {
    /// Parses the string that [`Display`](fmt::Display) writes. Returns `None` if one of the four numbers is missing.
    ///
    /// ```
    /// use polybook::provenance::GameCounts;
    /// let games = GameCounts { read: 9, counted: 5, filtered: 3, rejected: 1 };
    /// assert_eq!(games.to_string(), "9 read, 5 counted, 3 filtered, 1 rejected");
    /// assert_eq!(GameCounts::from_text(&games.to_string()), Some(games));
    /// ```
    pub fn from_text(text: &str) -> Option<GameCounts> {
        let mut numbers = text
            .split(", ")
            .map(|part| part.split(' ').next()?.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(GameCounts {
            read: next()?,
            counted: next()?,
            filtered: next()?,
            rejected: next()?,
        })
    }
}

impl AddAssign for GameCounts {
    fn add_assign(&mut self, other: GameCounts) {
        let GameCounts {
            read,
            counted,
            filtered,
            rejected,
        } = other;
        self.read += read;
        self.counted += counted;
        self.filtered += filtered;
        self.rejected += rejected;
    }
}

impl fmt::Display for GameCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GameCounts {
            read,
            counted,
            filtered,
            rejected,
        } = self;
        write!(
            f,
            "{read} read, {counted} counted, {filtered} filtered, {rejected} rejected"
        )
    }
}

/// A game that could not be replayed to its end: the location of the game in the input, and a description of the
/// problem.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Rejection {
    /// The path of the input.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// The number of the game in the input, counted from 0. Messages count games from 1.
    pub game: u64,
    /// The byte offset of the move, or of another problem, in the decompressed input.
    pub offset: u64,
    /// The number of half-moves that were played before the problem.
    pub ply: usize,
    /// The text of the move. Empty if the problem is not a move.
    #[serde(rename = "move")]
    pub mv: String,
    /// A description of the problem.
    pub reason: String,
}

impl Rejection {
    /// Returns the message about the rejected game without the name of the file, for a report that already contains
    /// this name.
    pub(crate) fn without_file(&self) -> String {
        let (game, offset, ply, reason) = (self.game + 1, self.offset, self.ply, &self.reason);
        let plural = if ply == 1 { "" } else { "s" };
        let mv = match &*self.mv {
            "" => String::new(),
            mv => format!("\"{}\": ", mv.escape_debug()),
        };
        format!("game {game}, byte {offset}, after {ply} half-move{plural}: {mv}{reason}")
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.without_file())
    }
}

impl StdError for Rejection {}

/// Serializes a path as a string. Bytes that are not UTF-8 become U+FFFD, because a JSON string must be Unicode.
pub(crate) fn as_text<S: serde::Serializer>(
    path: &std::path::Path,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Returns `name` with line breaks and other control characters replaced by question marks.
pub(crate) fn printable(name: &str) -> String {
    name.replace(is_unsafe, "?")
}

/// Returns `text`, shortened to at most `bytes` bytes. A shortened text ends with three dots.
pub(crate) fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(3));
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_half_move_is_singular() {
        let text = |ply| {
            let rejection = Rejection {
                file: "a.pgn".into(),
                game: 0,
                offset: 3,
                ply,
                mv: "Ke3".to_owned(),
                reason: "illegal move".to_owned(),
            };
            rejection.to_string()
        };
        assert_eq!(
            text(1),
            "a.pgn: game 1, byte 3, after 1 half-move: \"Ke3\": illegal move"
        );
        assert!(text(0).contains("after 0 half-moves: "));
    }

    #[test]
    fn a_comment_of_many_inputs_is_cut() {
        let provenance = Provenance {
            inputs: (0..500)
                .map(|i| format!("\u{1F600}long name\n{i}.pgn"))
                .collect(),
            games: Some(GameCounts::default()),
            options: format!("--player {}", "x".repeat(5000)),
        };
        let comment = provenance.comment(&["--uniform"]);
        assert!(comment.len() <= 1900, "{}", comment.len());
        assert!(comment.contains(" more\nGames:"), "{comment}");
        assert!(comment.ends_with("xxx..."), "{comment}");
        assert_eq!(comment.lines().count(), 4);
    }
}

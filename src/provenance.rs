//! Where counts come from: for the headers and databases made of them, and for the counts themselves.

use std::{error::Error as StdError, fmt, ops::AddAssign, path::PathBuf};

/// The most bytes that a comment spends on the names of inputs.
const ROOM_FOR_INPUTS: usize = 900;

/// The most bytes that a comment spends on options.
const ROOM_FOR_OPTIONS: usize = 600;

/// Separates the names of inputs.
pub(crate) const INPUT_SEPARATOR: &str = ", ";

/// Where counts come from. Nothing in it depends on time, place or machine.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Provenance {
    /// The names of the inputs, without their directories.
    pub inputs: Vec<String>,
    /// How many games were counted and left out, if that is known.
    pub games: Option<Games>,
    /// The options that decided what was counted and that differ from the defaults, spelled as on
    /// the command line. Book headers and databases store this text, so it is part of their formats.
    pub options: String,
}

impl Provenance {
    /// The beginning of a header's comment: what made the file, of which inputs and games, and with
    /// which options. `further_options` follow those of the counts. At most 1,900 bytes, without a
    /// line break at the end.
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

    /// The names of the inputs as `spelled`, as many as `room` bytes hold, and how many more there are.
    pub(crate) fn input_names(&self, room: usize, spelled: impl Fn(&str) -> String) -> String {
        let mut line = String::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let name = shortened(&spelled(input), room / 2);
            if line.len() + name.len() > room {
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

/// Options as they are written on a command line, those that are given.
pub(crate) fn option_text(options: impl IntoIterator<Item = Option<String>>) -> String {
    Vec::from_iter(options.into_iter().flatten()).join(" ")
}

/// An option without a value.
pub(crate) fn switch(name: &str, is_on: bool) -> Option<String> {
    is_on.then(|| format!("--{name}"))
}

/// An option with a value.
pub(crate) fn valued(name: &str, value: Option<impl fmt::Display>) -> Option<String> {
    value.map(|value| format!("--{name} {value}"))
}

/// How many more inputs the last name of a shortened list stands for.
fn named_more(name: &str) -> u64 {
    let rest = name.strip_suffix(" more");
    let number = rest.and_then(|rest| rest.rsplit_once(" and "));
    let more = number.and_then(|(_, number)| number.parse::<u32>().ok());
    more.map_or(0, u64::from)
}

/// The positions that counts lack, because few moves were counted in them.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Pruned {
    /// The least number of moves that a position that is kept has.
    pub min_game: u64,
    /// How many positions were dropped.
    pub positions: u64,
    /// Their rows.
    pub rows: u64,
    /// Their half-moves.
    pub plies: u64,
}

/// In one sentence.
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
            "the counts lack {positions} positions in which fewer than {min_game} moves were counted, {plies} half-moves in all"
        )
    }
}

impl Pruned {
    /// Adds what other counts lack that were pruned alike.
    pub(crate) fn add(&mut self, other: Pruned) {
        self.min_game = self.min_game.max(other.min_game);
        self.positions += other.positions;
        self.rows += other.rows;
        self.plies += other.plies;
    }
}

/// How many games were counted and left out.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Games {
    /// All games of the inputs.
    pub read: u64,
    /// Games whose moves count.
    pub counted: u64,
    /// Games that the filter leaves out.
    pub filtered: u64,
    /// Games that could not be replayed to their end.
    pub rejected: u64,
}

impl Games {
    /// Reads the text that [`Display`](fmt::Display) writes.
    ///
    /// ```
    /// use polybook::provenance::Games;
    /// let games = Games { read: 9, counted: 5, filtered: 3, rejected: 1 };
    /// assert_eq!(games.to_string(), "9 read, 5 counted, 3 filtered, 1 rejected");
    /// assert_eq!(Games::from_text(&games.to_string()), Some(games));
    /// ```
    pub fn from_text(text: &str) -> Option<Games> {
        let mut numbers = text
            .split(", ")
            .map(|part| part.split(' ').next()?.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Games {
            read: next()?,
            counted: next()?,
            filtered: next()?,
            rejected: next()?,
        })
    }
}

impl AddAssign for Games {
    fn add_assign(&mut self, other: Games) {
        let Games {
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

impl fmt::Display for Games {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Games {
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

/// A game that could not be replayed to its end.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Rejection {
    /// The input.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// The number of the game in the input, from 0.
    pub game: u64,
    /// The offset of the move, or of the other fault, in the unpacked input, in bytes.
    pub offset: u64,
    /// How many half-moves were played before it.
    pub ply: usize,
    /// The move as it is written; empty if something else is wrong.
    #[serde(rename = "move")]
    pub mv: String,
    /// What is wrong.
    pub reason: String,
}

impl Rejection {
    /// Returns the game, the place and the fault, without the file.
    pub(crate) fn without_file(&self) -> String {
        let (game, offset, ply, reason) = (self.game, self.offset, self.ply, &self.reason);
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

/// A path as text. JSON has no other; what is not UTF-8 becomes U+FFFD.
pub(crate) fn as_text<S: serde::Serializer>(
    path: &std::path::Path,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Without line breaks and other control characters.
pub(crate) fn printable(name: &str) -> String {
    name.replace(char::is_control, "?")
}

/// At most `bytes` of a text, with dots in place of the rest.
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
            "a.pgn: game 0, byte 3, after 1 half-move: \"Ke3\": illegal move"
        );
        assert!(text(0).contains("after 0 half-moves: "));
    }

    #[test]
    fn a_comment_of_many_inputs_is_cut() {
        let provenance = Provenance {
            inputs: (0..500)
                .map(|i| format!("\u{1F600}long name\n{i}.pgn"))
                .collect(),
            games: Some(Games::default()),
            options: format!("--player {}", "x".repeat(5000)),
        };
        let comment = provenance.comment(&["--uniform"]);
        assert!(comment.len() <= 1900, "{}", comment.len());
        assert!(comment.contains(" more\nGames:"), "{comment}");
        assert!(comment.ends_with("xxx..."), "{comment}");
        assert_eq!(comment.lines().count(), 4);
    }
}

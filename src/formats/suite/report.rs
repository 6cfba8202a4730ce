//! Reads opening suites, and reports the results of matches that were played from them. The results of a match are
//! grouped by exit, the position in which an entry of the suite ends.

use std::{
    borrow::Cow, collections::VecDeque, hash::Hash, io::Write, num::NonZeroU64, ops::Range,
    path::Path,
};

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use shakmaty::{
    Color, EnPassantMode, Position, Square,
    variant::{Variant as VariantName, VariantPosition},
};

use super::{
    SuiteCheck, SuiteFault, SuiteFormat,
    format::{evaluation, range},
    is_over, read_start,
    strength::{Sprt, Strength},
};
use crate::{
    chess::position::{Keyed, Variant, epd_of, is_epd_comment, push_move},
    error::{Advice, At, Diagnosis, Error, Result, plural},
    games::{
        pgn::{GameReader, GameResult, Games, play, start_of, tag_text},
        results::{Results, Wdl},
    },
    storage::output::BufferedFile,
};

/// An opening suite that was parsed from a string: lines of moves in PGN, or positions as EPDs or FENs, one per line.
///
/// The position in which an entry ends is its *exit*. Entries that end in the same position share their exit.
///
/// ```
/// use polybook::{pgn::{Games, Input}, position::Variant, progress::Meter, suite::{ReportOptions, SuiteFile},
/// counts::Memory};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("match.pgn");
/// let game = |white, black, result| {
///     format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"{result}\"]\n\n1. e4 e5 {result}\n\n")
/// };
/// std::fs::write(&path, game("A", "B", "1-0") + &game("B", "A", "1/2-1/2"))?;
/// let suite = SuiteFile::read("suite.pgn".as_ref(), "1. e4 e5 *".into(), Variant::Standard)?;
/// let games = Games {
///     inputs: &[Input::file(path)],
///     memory: Memory::default(),
///     threads: 0,
///     meter: &Meter::default(),
/// };
/// let report = suite.report(&games, &ReportOptions::default())?;
/// assert_eq!(report.encounters[0].pairs.0, [0, 0, 0, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SuiteFile {
    text: String,
    format: SuiteFormat,
    entries: Vec<SuiteEntry>,
    /// The first [`SuiteCheck::MAX_FAULTS`] entries that cannot be parsed.
    unreadable: Vec<UnreadableEntry>,
    /// The number of all entries that cannot be parsed.
    unreadable_count: usize,
    exits: Vec<Exit>,
    /// The index of each exit, by the identity (a hash) of its position.
    by_position: FxHashMap<u64, usize>,
    /// The index of the exit of each line, by the [`LineKey`] of the line.
    by_line: FxHashMap<LineKey, usize>,
    /// The number of the first entry that consists of certain moves. The key contains the identity of the starting
    /// position and the text of the moves.
    by_moves: FxHashMap<(u64, String), usize>,
    longest: usize,
}

/// A key that identifies a line of a suite without its moves: the length of the line in half-moves, and the identities
/// (hashes) of its first and last position.
type LineKey = (usize, u64, u64);

#[derive(Debug)]
struct SuiteEntry {
    /// The number of the entry, from 1. Entries that cannot be parsed are also numbered.
    number: usize,
    /// The number of the line of text that contains a position, or of the game that contains a line of moves, from 1.
    place: usize,
    /// The byte range of the entry in the text of the suite.
    text: Range<usize>,
    exit: usize,
    plies: Option<usize>,
    /// The number of the first entry that is equal to this one: the same position, or a line with the same start and
    /// moves.
    first: usize,
    is_over: bool,
    /// A description of a defect that did not prevent the entry from being parsed, or `None`.
    defect: Option<Cow<'static, str>>,
    turn: Color,
}

/// An entry of a suite that cannot be parsed.
#[derive(Debug)]
struct UnreadableEntry {
    /// The number of the entry, from 1.
    number: usize,
    /// The place of the entry in the text, such as `line 2`.
    place: String,
    /// A description of the error in the entry.
    problem: String,
}

#[derive(Debug)]
struct Exit {
    /// The number of the first entry with this exit, from 1.
    entry: usize,
    epd: String,
    line: Option<String>,
    opening: Option<String>,
}

/// An entry of a suite that was parsed, but is not yet assigned to an exit. An exit is a position in which one or more
/// entries end.
struct ParsedEntry {
    /// The number of the line of text that contains a position, or of the game that contains a line of moves, from 1.
    place: usize,
    text: Range<usize>,
    pos: Keyed<VariantPosition>,
    line: Option<(LineKey, String)>,
    opening: Option<String>,
    /// Whether the game is over after the entry.
    is_over: bool,
    /// A description of a defect that did not prevent the entry from being parsed, such as impossible castling rights,
    /// or `None`.
    defect: Option<Cow<'static, str>>,
}

impl SuiteFile {
    /// Parses a suite from `text`. Positions and moves must be legal in `variant`. `path` is the path of the suite, for
    /// error messages.
    ///
    /// # Errors
    ///
    /// Returns an error if an entry is not a position or contains an illegal move, if there are no entries, or if the
    /// text is binary data. The error describes the problem of the first invalid entry, and names the places of up to
    /// ten others.
    pub fn read(path: &Path, text: String, variant: Variant) -> Result<SuiteFile> {
        let suite = SuiteFile::parse(path, text, variant)?;
        match suite.unreadable_text() {
            Some(problem) => Err(Error::file(path, problem)),
            None => Ok(suite),
        }
    }

    /// Parses a suite like [`read`](SuiteFile::read), but collects the entries that cannot be parsed instead of
    /// returning an error.
    fn parse(path: &Path, text: String, variant: Variant) -> Result<SuiteFile> {
        if text.contains('\0') {
            let problem = "this is a Polyglot book or other binary data, not a suite: polybook convert makes a suite \
                           from a book";
            return Err(Error::file(path, problem));
        }
        let format = SuiteFormat::of_text(&text);
        let mut suite = SuiteFile {
            text: String::new(),
            format,
            entries: Vec::new(),
            unreadable: Vec::new(),
            unreadable_count: 0,
            exits: Vec::new(),
            by_position: FxHashMap::default(),
            by_line: FxHashMap::default(),
            by_moves: FxHashMap::default(),
            longest: 0,
        };
        match format {
            SuiteFormat::Epd => suite.add_all(positions(&text, variant)),
            SuiteFormat::Pgn => suite.add_all(lines_of(&text)),
        }
        if suite.entries.is_empty() && suite.unreadable_count == 0 {
            return Err(Error::file(
                path,
                "this suite contains no lines and no positions: choose another file",
            ));
        }
        suite.text = text;
        Ok(suite)
    }

    /// Returns an error message about the entries that could not be parsed, or `None` if every entry was parsed. The
    /// message describes the problem of the first such entry, and lists the places of up to
    /// [`MAX_LISTED`](UnreadableEntry::MAX_LISTED) others.
    fn unreadable_text(&self) -> Option<String> {
        let (first, others) = self.unreadable.split_first()?;
        let mut text = format!("{}: {}", first.place, first.problem);
        let listed = others.len().min(UnreadableEntry::MAX_LISTED);
        if listed > 0 {
            let places = others[..listed].iter().map(|entry| &*entry.place);
            text += &format!("; also unreadable: {}", Vec::from_iter(places).join(", "));
        }
        let unlisted = self.unreadable_count - 1 - listed;
        if unlisted > 0 {
            text += &format!(", and {unlisted} more");
        }
        Some(text)
    }

    fn add_all(&mut self, found: impl Iterator<Item = ReadEntry>) {
        for (number, found) in (1..).zip(found) {
            match found {
                Ok(found) => self.add(number, found),
                Err((place, problem)) => {
                    self.unreadable_count += 1;
                    if self.unreadable.len() < SuiteCheck::MAX_FAULTS {
                        self.unreadable.push(UnreadableEntry {
                            number,
                            place,
                            problem,
                        });
                    }
                }
            }
        }
    }

    fn add(&mut self, number: usize, found: ParsedEntry) {
        let exit = *self
            .by_position
            .entry(found.pos.identity())
            .or_insert(self.exits.len());
        let turn = found.pos.position().turn();
        let same_moves = found.line.as_ref().map(|((_, start, _), line)| {
            *self
                .by_moves
                .entry((*start, line.clone()))
                .or_insert(number)
        });
        let (passage, line) = found.line.unzip();
        if let Some(passage) = passage {
            self.by_line.insert(passage, exit);
            self.longest = self.longest.max(passage.0);
        }
        if exit == self.exits.len() {
            self.exits.push(Exit {
                entry: number,
                epd: epd_of(found.pos.position()),
                line,
                opening: found.opening,
            });
        }
        let text = found.text;
        self.entries.push(SuiteEntry {
            number,
            place: found.place,
            text,
            exit,
            plies: passage.map(|(plies, ..)| plies),
            first: same_moves.unwrap_or(self.exits[exit].entry),
            is_over: found.is_over,
            defect: found.defect,
            turn,
        });
    }

    /// Checks the suite in `text`. Finds entries that cannot be parsed or are damaged, entries after which the game is
    /// over, and entries that are equal to an earlier entry. Two lines are equal if they have the same starting
    /// position and the same moves. `path` and `variant` have the same meaning as for [`read`](SuiteFile::read).
    ///
    /// # Errors
    ///
    /// Returns an error if there are no entries, or if the text is binary data.
    pub fn check(path: &Path, text: String, variant: Variant) -> Result<SuiteCheck> {
        let suite = SuiteFile::parse(path, text, variant)?;
        let unreadable = suite.unreadable.iter().map(|entry| {
            let (place, problem) = (entry.place.clone(), entry.problem.clone());
            (entry.number, SuiteFault::Invalid { place, problem })
        });
        let readable = || suite.entries.iter().flat_map(|entry| suite.faults(entry));
        let mut faults = Vec::from_iter(unreadable);
        faults.extend(readable().take(SuiteCheck::MAX_FAULTS));
        faults.sort_by_key(|(number, _)| *number);
        faults.truncate(SuiteCheck::MAX_FAULTS);
        let entries = || suite.entries.iter();
        let evaluations: Option<Vec<i32>> = entries()
            .map(|entry| evaluation(&suite.text[entry.text.clone()], entry.turn))
            .collect();
        let is_transposed = |entry: &&SuiteEntry| {
            entry.first == entry.number && suite.exits[entry.exit].entry != entry.number
        };
        Ok(SuiteCheck {
            format: suite.format,
            entries: suite.entries.len() as u64,
            white_to_move: entries().filter(|entry| entry.turn.is_white()).count() as u64,
            transpositions: entries().filter(is_transposed).count() as u64,
            plies: range(entries().filter_map(|entry| entry.plies)),
            evaluations: evaluations.and_then(|values| range(values.into_iter())),
            faults: faults.into_iter().map(|(_, fault)| fault).collect(),
            fault_count: suite.unreadable_count + readable().count(),
        })
    }

    /// Returns the faults of an entry that could be parsed, each with the number of the entry.
    fn faults(&self, entry: &SuiteEntry) -> impl Iterator<Item = (usize, SuiteFault)> {
        let noun = match self.format {
            SuiteFormat::Epd => "line",
            SuiteFormat::Pgn => "game",
        };
        let place = format!("{noun} {}", entry.place);
        let invalid = entry.defect.clone().map(|problem| SuiteFault::Invalid {
            place: place.clone(),
            problem: problem.into_owned(),
        });
        let over = entry.is_over.then(|| SuiteFault::Over {
            place: place.clone(),
        });
        let is_first = |other: &SuiteEntry| other.number.cmp(&entry.first);
        let first = self.entries.binary_search_by(is_first).ok();
        let repeated =
            first
                .filter(|_| entry.first != entry.number)
                .map(|first| SuiteFault::Repeated {
                    place,
                    first: format!("{noun} {}", self.entries[first].place),
                });
        let number = entry.number;
        [invalid, over, repeated]
            .into_iter()
            .flatten()
            .map(move |fault| (number, fault))
    }

    /// Reads the games of a match that was played from this suite, and returns the results by exit. An exit is the
    /// position in which an entry of the suite ends.
    ///
    /// The exit of a game is the first of these that exists:
    ///
    /// 1. The position after the last book move, if it is an exit. Book moves are the first moves of the game that have
    ///    the comment `book` or `book/...`, which match programs write.
    /// 2. The exit of the longest line of the suite with which the game begins.
    /// 3. The position in the `FEN` tag of the game, if it is an exit.
    ///
    /// Two games with the same exit form a pair if the same two players played them in the same round with swapped
    /// colors. The tag `Round` contains the number of the round (`7`), or the numbers of the round and the game
    /// (`7.1`). Games 1 and 2 of a round form a pair, games 3 and 4 form the next pair, and so on. If two players have
    /// no such pair, their rounds are ignored: from each exit, the first game with one distribution of colors is paired
    /// with the first game with the colors swapped, and so on. Pairs with an unfinished game are not counted.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read, if no game has an exit, or if the player named in
    /// [`ReportOptions::first`] has no game with an exit. Returns [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge)
    /// if the games and players need more memory than [`Games::memory`].
    pub fn report(&self, games: &Games<'_>, options: &ReportOptions) -> Result<MatchReport> {
        let mut results = MatchCounts::new(self.exits.len());
        if let Some(name) = &options.first {
            results.number(name.clone());
        }
        let read = |text: &[u8], reader: &mut GameReader<'_>| Ok(self.game(text, reader));
        let read = games.for_each(read, |_, game| {
            results.add(game);
            check_memory(&results, games)
        })?;
        if results.exits.iter().all(|exit| exit.results.games() == 0)
            && let Some(input) = games.inputs.first()
        {
            let (belongs, advice) = match self.format {
                SuiteFormat::Epd => ("begins in a position", ADVICE_ON_POSITIONS),
                SuiteFormat::Pgn => (
                    "begins with a line",
                    ": give the games that were played with this suite",
                ),
            };
            let problem = format!(
                "no game {belongs} of the suite ({} read){advice}{}",
                plural(read.games, "game"),
                read.unknown_variants.in_error()
            );
            return Err(Error::file(input.path(), problem));
        }
        if let Some(name) = &options.first
            && let Some(input) = games.inputs.first()
            && results.order.iter().all(|players| players[0] != 0)
        {
            let listed = results.names.iter().skip(1).take(MAX_LISTED_PLAYERS);
            let listed = listed.map(|player| format!("{player:?}"));
            let more = results.names.len() - 1 > MAX_LISTED_PLAYERS;
            let problem = Diagnosis::new(format!(
                "{name:?} played no game with an opening of the suite, but {}{} did",
                listed.collect::<Vec<_>>().join(", "),
                if more { " and others" } else { "" }
            ))
            .advise(Advice::option("give another name with {}", "first"));
            return Err(Error::file(input.path(), problem));
        }
        Ok(MatchReport {
            warnings: read.warnings(),
            ..results.report(&self.exits, options)
        })
    }

    fn game(&self, text: &[u8], reader: &mut GameReader<'_>) -> MatchGame {
        let tags = reader.tags();
        let name = |tag: &[u8]| tag_text(tags.get(tag).unwrap_or(b"?")).into_owned();
        let mut game = MatchGame {
            players: [name(b"White"), name(b"Black")],
            round: tags.get(b"Round").and_then(Round::of_tag),
            result: tags.result(),
            exit: None,
        };
        let Ok((_, start)) = start_of(tags) else {
            reader.skip_moves();
            return game;
        };
        let mut pos = Keyed::new(start);
        let start = pos.identity();
        game.exit = self.by_position.get(&start).copied();
        // The positions, the number of book moves at the start, and the offset in the text at which the last move ends.
        let (mut identities, mut book, mut last_end) = (Vec::new(), 0, 0);
        let mut is_whole = true;
        let ending = play(reader, &mut pos, |pos, _, end| {
            let moves = identities.len();
            identities.push(pos.identity());
            book += usize::from(book + 1 == moves && is_of_book(&text[last_end..end]));
            last_end = end;
            is_whole = moves < self.longest || book == moves;
            Ok(is_whole)
        });
        if is_whole {
            let moves = identities.len();
            identities.push(pos.identity());
            book += usize::from(book + 1 == moves && is_of_book(&text[last_end..reader.offset()]));
        }
        let line = |ply: usize| self.by_line.get(&(ply, start, identities[ply])).copied();
        let longest = (0..identities.len()).rev().find_map(line);
        let after_book = || {
            let exit = identities.get(book).filter(|_| book > 0)?;
            line(book).or(self.by_position.get(exit).copied())
        };
        game.exit = after_book().or(longest).or(game.exit);
        let marker = ending.ok().and_then(|ending| ending.marker);
        game.result = game.result.or(marker);
        game
    }

    /// Writes a copy of the suite without its one-sided entries to `file`, and commits the file: renames it to its
    /// target. Returns the number of entries that were written. An entry is one-sided if one color won all games from
    /// its last position, and `report` contains at least [`ReportOptions::min_pairs`] pairs of such games.
    ///
    /// Use [`begin_suite`](super::begin_suite) to create `file`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or if the copy would have no entries.
    pub fn write_without_one_sided(
        &self,
        report: &MatchReport,
        mut file: BufferedFile,
    ) -> Result<u64> {
        let path = file.target().to_owned();
        let kept: Vec<&SuiteEntry> = self
            .entries
            .iter()
            .filter(|entry| !report.exits[entry.exit].is_one_sided)
            .collect();
        if kept.is_empty() {
            return Err(Error::empty(
                &path,
                Diagnosis::new("the suite would be empty, because all its openings are one-sided")
                    .advise(Advice::larger("min-pairs")),
            ));
        }
        for entry in &kept {
            let text = self.text[entry.text.clone()].trim_end();
            let end = match self.format {
                SuiteFormat::Epd => "\n",
                SuiteFormat::Pgn => "\n\n",
            };
            let written = file.write_all(text.as_bytes());
            written
                .and_then(|()| file.write_all(end.as_bytes()))
                .at(&path, "write")?;
        }
        file.commit()?;
        Ok(kept.len() as u64)
    }
}

/// The advice that is added to the error message if no game has an exit and the suite consists of positions.
const ADVICE_ON_POSITIONS: &str = ": give games with the position in the tag FEN or with the comment {book} after the \
                                   moves of the opening, or give the suite as lines in PGN";

/// Options for the report of a match.
#[derive(Clone, PartialEq, Debug)]
pub struct ReportOptions {
    /// The player from whose point of view pairs are counted, or `None` for the player who is named first in the games.
    pub first: Option<String>,
    /// The minimum number of pairs of games that an exit, a final position of the suite, needs to be called one-sided.
    pub min_pairs: NonZeroU64,
    /// The sequential probability ratio test (SPRT) for which log-likelihood ratios are calculated, if any.
    pub sprt: Option<Sprt>,
}

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions {
            first: None,
            min_pairs: NonZeroU64::MIN,
            sprt: None,
        }
    }
}

/// Returns `true` if a move is a book move: a comment after it begins with the word `book`. `text` is the text between
/// the move and the end of the next move.
fn is_of_book(text: &[u8]) -> bool {
    let mut comments = text.split(|byte| *byte == b'{').skip(1);
    comments.any(|comment| {
        let word = comment
            .trim_ascii_start()
            .split(|byte| !byte.is_ascii_alphanumeric());
        word.take(1).any(|word| word.eq_ignore_ascii_case(b"book"))
    })
}

impl UnreadableEntry {
    /// The maximum number of places that an error message lists after the first problem.
    const MAX_LISTED: usize = 10;
}

/// A parsed entry of a suite. If the entry cannot be parsed, the error contains its place, such as `line 2`, and the
/// problem.
type ReadEntry = Result<ParsedEntry, (String, String)>;

/// Parses a suite of positions, which are EPDs or FENs, one in each line of `text`.
fn positions(text: &str, variant: Variant) -> impl Iterator<Item = ReadEntry> {
    let (mut at, mut number) = (0, 0);
    text.split_inclusive(['\n', '\r']).filter_map(move |line| {
        let begin = at;
        at += line.len();
        let end = at;
        // A line feed after a carriage return belongs to the same line break.
        number += usize::from(line != "\n" || !text[..begin].ends_with('\r'));
        let is_cut = !line.ends_with(['\n', '\r']);
        let line = line.trim_start_matches('\u{feff}').trim();
        if is_epd_comment(line.as_bytes()) {
            return None;
        }
        let id = line
            .split_once(" id \"")
            .and_then(|(_, id)| id.split_once('"'));
        let entry = |(pos, has_dropped_rights)| ParsedEntry {
            place: number,
            defect: defect_of_position(line, &pos, has_dropped_rights, is_cut),
            text: begin..end,
            is_over: is_over(&[], &pos),
            pos: Keyed::new(pos),
            line: None,
            opening: id.map(|(id, _)| id.to_owned()),
        };
        let pos = read_start(line, variant).map_err(|err| err.to_string());
        Some(
            pos.map(entry)
                .map_err(|problem| (format!("line {number}"), problem)),
        )
    })
}

/// Describes a defect in an EPD or a FEN that did not prevent it from being parsed. Returns `None` if there is no
/// defect. `line` is the text, and `pos` is its position. `has_dropped_rights` is `true` if castling rights were
/// dropped because the king or a rook is not on its initial square. `is_cut` is `true` if no line break follows.
fn defect_of_position(
    line: &str,
    pos: &VariantPosition,
    has_dropped_rights: bool,
    is_cut: bool,
) -> Option<Cow<'static, str>> {
    // The fields of a FEN in a URL are separated by underscores.
    let blank = |c: char| c.is_whitespace() || c == '_';
    let fields = Vec::from_iter(line.split(blank).filter(|field| !field.is_empty()));
    let en_passant = fields
        .get(3)
        .filter(|field| field.parse::<Square>().is_ok());
    let has_operations = || {
        let operations = fields.get(4);
        operations.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let problem = match fields.len() {
        1 if line.eq_ignore_ascii_case("startpos") => return None,
        count @ ..4 => format!("the line has {count} of the 4 fields of an EPD").into(),
        _ if line.matches('"').count() % 2 == 1 => "a quotation mark is not closed".into(),
        _ if has_dropped_rights => format!(
            "the castling rights {} are impossible, because the king or a rook is on another square",
            fields[2]
        )
        .into(),
        _ if let Some(square) = en_passant
            && pos.ep_square(EnPassantMode::Always).is_none() =>
        {
            format!("the en passant square {square} is impossible").into()
        }
        _ if has_too_many_pieces(pos) => {
            "a side has more than eight pawns and promoted pieces".into()
        }
        _ if is_cut && has_operations() && !line.ends_with(';') => {
            "the file ends within this line".into()
        }
        _ => return None,
    };
    Some(problem)
}

/// Returns `true` if a side has more than eight pawns and promoted pieces. Always returns `false` for variants in which
/// this is possible.
fn has_too_many_pieces(pos: &VariantPosition) -> bool {
    if matches!(pos.variant(), VariantName::Crazyhouse | VariantName::Horde) {
        return false;
    }
    Color::ALL.into_iter().any(|color| {
        let pieces = pos.board().material_side(color);
        // The numbers of pieces at the start of a game.
        let start = [
            (pieces.queen, 1),
            (pieces.rook, 2),
            (pieces.bishop, 2),
            (pieces.knight, 2),
        ];
        let promoted = start.map(|(pieces, start)| pieces.saturating_sub(start));
        pieces.pawn + promoted.iter().sum::<u8>() > 8
    })
}

/// Parses a suite of lines, which are games in PGN.
fn lines_of(text: &str) -> impl Iterator<Item = ReadEntry> {
    let mut reader = GameReader::new(text.as_bytes());
    (1..).map_while(move |number: usize| {
        reader.forget_skipped();
        let has_game = reader.next_game();
        let line = has_game.then(|| line_of(&mut reader, text, number));
        let problem = match (reader.bad_tag(), reader.stray_text()) {
            (Some(_), _) => Some(DAMAGED_TAG),
            (None, Some(_)) => Some("there is text outside of tags, moves and comments"),
            (None, None) => None,
        };
        let line = match (line, problem) {
            (Some(Ok(line)), Some(problem)) => Ok(ParsedEntry {
                defect: Some(problem.into()),
                ..line
            }),
            (Some(line), _) => line,
            // A text without any game is no suite.
            (None, problem) => Err(problem.filter(|_| number > 1)?.to_owned()),
        };
        Some(line.map_err(|problem| (format!("game {number}"), problem)))
    })
}

/// The description of a defect: a tag that cannot be read, or is not closed.
const DAMAGED_TAG: &str = "a tag is damaged";

/// Returns `true` if `line`, a line of text among the tags of a game, begins a tag but does not close it.
fn is_unclosed_tag(line: &str) -> bool {
    let mut parts = line.split('"');
    let end = parts.clone().next_back();
    line.trim_start().starts_with('[')
        && (parts.nth(2).is_none() || !end.is_some_and(|end| end.contains(']')))
}

/// Parses the game that `reader` has begun as a line of a suite, or returns an error message. `text` is the text of the
/// suite, and `place` is the number of the game.
fn line_of(reader: &mut GameReader<'_>, text: &str, place: usize) -> Result<ParsedEntry, String> {
    let begin = reader.game_offset();
    let has_unclosed_tag = text[begin..reader.tags_end()].lines().any(is_unclosed_tag);
    let tags = reader.tags();
    let (_, start) = match start_of(tags) {
        Ok(start) => start,
        Err(problem) => {
            reader.skip_moves();
            return Err(problem);
        }
    };
    let opening = [&b"ECO"[..], b"Opening"]
        .map(|tag| tags.get(tag).map(|value| tag_text(value).into_owned()));
    let opening: Vec<String> = opening.into_iter().flatten().collect();
    let has_fen = tags.fen().is_some();
    let mut pos = Keyed::new(start);
    let start = pos.identity();
    let (mut plies, mut line) = (0, String::new());
    let mut identities = Vec::new();
    let ending = play(reader, &mut pos, |pos, mv, _| {
        identities.push(pos.identity());
        push_move(&mut line, pos.position(), mv);
        plies += 1;
        Ok(true)
    });
    let ending = ending.map_err(|err| err.to_string())?;
    let has_marker = ending.marker.is_some();
    ending.problem().map_or(Ok(()), Err)?;
    identities.push(pos.identity());
    let defect = match has_marker {
        _ if has_unclosed_tag => Some(DAMAGED_TAG),
        _ if plies == 0 && !has_fen => Some("there are no moves"),
        false => Some("the result after the moves is missing: add *"),
        true => None,
    };
    Ok(ParsedEntry {
        place,
        defect: defect.map(Cow::Borrowed),
        text: begin..reader.offset(),
        line: Some(((plies, start, pos.identity()), line)),
        is_over: is_over(&identities, pos.position()),
        pos,
        opening: (!opening.is_empty()).then(|| opening.join(" ")),
    })
}

/// The round to which a game of a match belongs, and the number of its pair within the round. In a pair of games, two
/// players play the same opening twice, with swapped colors.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
struct Round {
    number: u32,
    /// The number of the pair within the round, from 0.
    pair: u32,
}

impl Round {
    /// Parses a `Round` tag such as `7`, or `7.2` for the second game of round 7. Games 1 and 2 of a round form a
    /// pair, games 3 and 4 form the next pair, and so on. Returns `None` if the tag has another form.
    fn of_tag(tag: &[u8]) -> Option<Round> {
        let text = std::str::from_utf8(tag).ok()?.trim();
        let (round, game) = text.split_once('.').unwrap_or((text, "1"));
        let game: u32 = game.parse().ok()?;
        Some(Round {
            number: round.parse().ok()?,
            pair: game.checked_sub(1)? / 2,
        })
    }
}

/// A game of a match, reduced to the properties that a report needs.
struct MatchGame {
    players: [String; 2],
    round: Option<Round>,
    result: Option<GameResult>,
    exit: Option<usize>,
}

/// The numbers of pairs of games in which a player scored 0, 0.5, 1, 1.5 and 2 points in total, in this order.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Pentanomial(pub [u64; 5]);

impl Pentanomial {
    pub(super) fn pairs(self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of games that do not belong to a pair. `games` is the total number of games.
    fn unpaired(self, games: u64) -> u64 {
        games - 2 * self.pairs()
    }
}

/// The results of a match that was played from a suite, for each pair of players and for each exit. An exit is the
/// position in which an entry of the suite ends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MatchReport {
    /// The number of games with a result that were played from an exit.
    pub games: u64,
    /// The number of games without a result that were played from an exit.
    pub unfinished: u64,
    /// The number of games that were not played from any exit.
    pub unmatched: u64,
    /// The share of draws among `games`, in percent, or `None` if there are no games.
    pub draw_rate: Option<f64>,
    /// The sequential probability ratio test that [`ReportOptions::sprt`] requests.
    pub sprt: Option<Sprt>,
    /// The results of each pair of players who met, in the order of their first games.
    pub encounters: Vec<Encounter>,
    /// The results of the exits, in the order of the suite.
    pub exits: Vec<ExitResults>,
    /// Warnings about games of unknown variants, one line each.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// The results of two players against each other in a match.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Encounter {
    /// The player named in [`ReportOptions::first`] or, without this option, the one who is named first in the games.
    pub first: String,
    /// The opponent of the first player.
    pub second: String,
    /// The wins, draws and losses of the first player.
    #[serde(flatten)]
    pub stats: Wdl,
    /// The pairs of games, from the view of the first player.
    #[serde(rename = "pentanomial")]
    pub pairs: Pentanomial,
    /// The number of games that do not belong to a pair.
    pub unpaired: u64,
    /// An estimate of how much stronger the first player is than the second. If there are pairs of games, only these
    /// pairs are used.
    #[serde(flatten)]
    pub strength: Strength,
}

/// The results of all games that were played from one exit. An exit is the position in which an entry of a suite
/// ends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExitResults {
    /// The number of the first entry with this exit in the suite, from 1.
    pub entry: usize,
    /// The EPD of the position.
    pub epd: String,
    /// The moves of the line that leads to the position, in SAN, or `None` if the suite consists of positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The opening, from the tags `ECO` and `Opening` or the operation `id`. `None` if the suite does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening: Option<String>,
    /// The results, which are serialized from the view of White.
    #[serde(flatten, serialize_with = "view_of_white")]
    pub results: Results,
    /// The share of draws, in percent, or `None` if there are no games.
    pub draw_rate: Option<f64>,
    /// The pairs of games, each from the view of the first player of its [`Encounter`].
    #[serde(rename = "pentanomial")]
    pub pairs: Pentanomial,
    /// The number of pairs in which one color won both games.
    pub one_sided_pairs: u64,
    /// The number of games that do not belong to a pair.
    pub unpaired: u64,
    /// Whether the exit has at least [`ReportOptions::min_pairs`] pairs and one color won all games.
    #[serde(rename = "one_sided")]
    pub is_one_sided: bool,
    /// An estimate of how much stronger the first players of the [`Encounter`]s are in games from this exit. If there
    /// are pairs of games, only these pairs are used.
    #[serde(flatten)]
    pub strength: Strength,
}

/// Serializes results as the fields `wins`, `draws` and `losses`, from White's point of view, and `unfinished`.
fn view_of_white<S: Serializer>(
    results: &Results,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WhiteView {
        #[serde(flatten)]
        stats: Wdl,
        unfinished: u64,
    }
    let (stats, unfinished) = (results.for_side(Color::White), results.unfinished);
    WhiteView { stats, unfinished }.serialize(serializer)
}

/// Returns the share of draws among games with a result, in percent, or `None` if there are no such games.
fn draw_rate(results: Results) -> Option<f64> {
    let games = results.finished();
    (games > 0).then(|| results.draws as f64 * 100.0 / games as f64)
}

/// A game between two given players. It may form a pair with another game between them.
struct EncounterGame {
    exit: usize,
    round: Option<Round>,
    /// The color of the player with the lower number.
    color: Color,
    result: GameResult,
}

/// Forms pairs of games between two players. Each game is paired with the earliest game that has the same key, swapped
/// colors and no partner yet. `key` returns the properties that the two games of a pair must have in common, such as
/// the exit and the round. A game for which `key` returns `None` gets no partner.
///
/// If `is_self_play` is `true`, the two players are the same, and colors are ignored.
fn paired<K: Hash + Eq>(
    games: &[EncounterGame],
    is_self_play: bool,
    key: impl Fn(&EncounterGame) -> Option<K>,
) -> Vec<[&EncounterGame; 2]> {
    let mut pairs = Vec::new();
    // The games of each key that have no partner yet. All games of a key have the same color.
    let mut waiting: FxHashMap<K, VecDeque<&EncounterGame>> = FxHashMap::default();
    for game in games {
        let Some(key) = key(game) else { continue };
        let others = waiting.entry(key).or_default();
        match others.pop_front_if(|other| is_self_play || other.color != game.color) {
            Some(other) => pairs.push([other, game]),
            None => others.push_back(game),
        }
    }
    pairs
}

/// Returns an error if the games and players in `results` need more memory than the memory budget of `games` allows.
fn check_memory(results: &MatchCounts, games: &Games<'_>) -> Result<()> {
    let budget = games.memory.bytes;
    match games.inputs.first() {
        Some(input) if results.bytes > budget => {
            let problem =
                Diagnosis::new(format!("the games need more than {budget} bytes of memory"))
                    .advise(Advice::larger("memory"));
            Err(Error::too_large(input.path(), problem))
        }
        _ => Ok(()),
    }
}

/// An upper bound on the memory in bytes for one game of a match. Each game takes an entry in a list, which grows by
/// doubling, and entries in the tables that are used to find pairs.
const BYTES_PER_GAME: usize = 160;

/// The maximum number of players that an error message lists.
const MAX_LISTED_PLAYERS: usize = 5;

/// An upper bound on the memory in bytes for the data of two players who played each other, not counting their games.
const BYTES_PER_PAIR: usize = 384;

/// An upper bound on the memory in bytes for one player, not counting the player's name, which is stored twice.
const BYTES_PER_PLAYER: usize = 128;

/// The results of the games of one exit, added up over the games that have been read so far. An exit is the position in
/// which an entry of a suite ends.
#[derive(Default)]
struct ExitCounts {
    results: Results,
    /// The wins, draws and losses of the first player of each encounter.
    stats: Wdl,
    pairs: Pentanomial,
    one_sided_pairs: u64,
}

/// The results of a match, added up over the games that have been read so far. Players are numbered in the order in
/// which they first occur.
struct MatchCounts {
    names: Vec<String>,
    numbers: FxHashMap<String, usize>,
    exits: Vec<ExitCounts>,
    /// The games between each pair of players. The key contains the numbers of the players, the lower number first.
    encounters: FxHashMap<[usize; 2], Vec<EncounterGame>>,
    /// The keys of `encounters`, in the order of the first games.
    order: Vec<[usize; 2]>,
    unmatched: u64,
    /// An upper bound on the memory that the games and players take, in bytes.
    bytes: usize,
}

impl MatchCounts {
    fn new(exits: usize) -> MatchCounts {
        MatchCounts {
            names: Vec::new(),
            numbers: FxHashMap::default(),
            exits: (0..exits).map(|_| ExitCounts::default()).collect(),
            encounters: FxHashMap::default(),
            order: Vec::new(),
            unmatched: 0,
            bytes: 0,
        }
    }

    /// Returns the number of the player `name`. A new player gets the next number.
    fn number(&mut self, name: String) -> usize {
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.bytes += BYTES_PER_PLAYER + 2 * name.len();
            self.names.len() - 1
        })
    }

    fn add(&mut self, game: MatchGame) {
        let Some(exit) = game.exit else {
            self.unmatched += 1;
            return;
        };
        let result = game.result.unwrap_or_default();
        let counted = &mut self.exits[exit];
        counted.results.add(result);
        let [white, black] = game.players.map(|name| self.number(name));
        let players = [white.min(black), white.max(black)];
        let color = if players[0] == white {
            Color::White
        } else {
            Color::Black
        };
        let games = self.encounters.entry(players).or_insert_with(|| {
            self.order.push(players);
            self.bytes += BYTES_PER_PAIR;
            Vec::new()
        });
        self.bytes += BYTES_PER_GAME;
        games.push(EncounterGame {
            exit,
            round: game.round,
            color,
            result,
        });
    }

    /// Forms pairs of games from `games`, the games between the two `players`, and returns the results of these players
    /// against each other. A pair consists of two games from the same exit with swapped colors. Also adds the result of
    /// each pair to the results of its exit. A pair with an unfinished game is not counted.
    fn encounter(
        &mut self,
        players: [usize; 2],
        games: &[EncounterGame],
        sprt: Option<&Sprt>,
    ) -> Encounter {
        let is_self_play = players[0] == players[1];
        let mut found = paired(games, is_self_play, |game| Some((game.exit, game.round?)));
        if found.is_empty() {
            found = paired(games, is_self_play, |game| Some(game.exit));
        }
        let is_finished = |game: &EncounterGame| game.result != GameResult::Unknown;
        let mut pairs = Pentanomial::default();
        for [one, other] in found {
            if !is_finished(one) || !is_finished(other) {
                continue;
            }
            let winners = [one, other].map(|game| game.result.winner());
            let mut both = Wdl::of_game(winners[0], one.color);
            both += Wdl::of_game(winners[1], !one.color);
            let half_points = both.half_points() as usize;
            pairs.0[half_points] += 1;
            let exit = &mut self.exits[one.exit];
            exit.pairs.0[half_points] += 1;
            exit.one_sided_pairs += u64::from(winners[0].is_some() && winners[0] == winners[1]);
        }
        let mut stats = Wdl::default();
        for game in games.iter().filter(|game| is_finished(game)) {
            let result = Wdl::of_game(game.result.winner(), game.color);
            stats += result;
            self.exits[game.exit].stats += result;
        }
        let [first, second] = players.map(|player| self.names[player].clone());
        Encounter {
            first,
            second,
            stats,
            pairs,
            unpaired: pairs.unpaired(stats.games()),
            strength: Strength::estimate(pairs, stats, sprt),
        }
    }

    fn report(mut self, exits: &[Exit], options: &ReportOptions) -> MatchReport {
        let sprt = options.sprt.as_ref();
        let games = std::mem::take(&mut self.encounters);
        let order = std::mem::take(&mut self.order).into_iter();
        let encounters = order.map(|players| self.encounter(players, &games[&players], sprt));
        // Players who met only in unfinished games have no results against each other.
        let encounters = encounters.filter(|encounter| encounter.stats.games() > 0);
        let encounters = encounters.collect();
        let results = |(exit, found): (&Exit, &ExitCounts)| {
            let (results, finished) = (found.results, found.results.finished());
            ExitResults {
                entry: exit.entry,
                epd: exit.epd.clone(),
                line: exit.line.clone(),
                opening: exit.opening.clone(),
                results,
                draw_rate: draw_rate(results),
                pairs: found.pairs,
                one_sided_pairs: found.one_sided_pairs,
                unpaired: found.pairs.unpaired(finished),
                is_one_sided: found.pairs.pairs() >= options.min_pairs.get()
                    && (results.white == finished || results.black == finished),
                strength: Strength::estimate(found.pairs, found.stats, sprt),
            }
        };
        let mut all = Results::default();
        for exit in &self.exits {
            all += exit.results;
        }
        MatchReport {
            games: all.finished(),
            unfinished: all.unfinished,
            unmatched: self.unmatched,
            draw_rate: draw_rate(all),
            sprt: options.sprt,
            exits: exits.iter().zip(&self.exits).map(results).collect(),
            encounters,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text can consist of very many tiny games.
    #[test]
    fn defects_of_tiny_games_are_not_copied() {
        let suite = SuiteFile::parse(
            "x".as_ref(),
            "[A \"\"]\n*\n[A \"\"]\n*\n".into(),
            Variant::Standard,
        )
        .unwrap();
        let is_borrowed = |entry: &SuiteEntry| matches!(entry.defect, Some(Cow::Borrowed(_)));
        assert!(suite.entries.len() == 2 && suite.entries.iter().all(is_borrowed));
    }
}

//! Writes opening suites as PGN or as EPDs, and describes the faults that a check of a suite can find.

use std::{io::Write, ops::RangeInclusive, path::Path};

use shakmaty::{Color, Role, variant::VariantPosition};

use super::{
    Suite,
    ranking::{Ranked, Ranking},
};
use crate::{
    chess::position::{epd_of, is_epd_comment},
    error::{At, Result},
    games::{
        pgn::{GameWriter, UNKNOWN_PLAYERS},
        results::Results,
    },
    storage::output::{BufferedFile, begin_text},
};

/// The `Event` tag of each line in a suite that polybook writes as PGN.
pub const SUITE_EVENT: &str = "Opening suite";

/// The format of an opening suite.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuiteFormat {
    /// Lines of moves, written as games without a result.
    Pgn,
    /// Positions, one EPD per line of text.
    Epd,
}

impl SuiteFormat {
    /// Detects the format of a suite from its text. A suite consists of positions if the first word of any line is the
    /// board of a FEN or `startpos`; otherwise it consists of lines of moves in PGN. The search for such a word ends at
    /// the first line that begins with a tag, a comment in braces or a move number. Comments of EPD files are skipped.
    pub fn of_text(text: &str) -> SuiteFormat {
        let lines = text.trim_start_matches('\u{feff}').split(['\n', '\r']);
        let lines = lines.filter(|line| !is_epd_comment(line.as_bytes()));
        for word in lines.filter_map(|line| first_word(line)) {
            let number = word.trim_start_matches(|c: char| c.is_ascii_digit());
            if is_board(word) || word.eq_ignore_ascii_case("startpos") {
                return SuiteFormat::Epd;
            }
            if word.starts_with(['[', '{'])
                || (number != word && matches!(number.get(..1), None | Some(".")))
            {
                break;
            }
        }
        SuiteFormat::Pgn
    }
}

/// Returns the first word of a line. A semicolon also ends a word, because it may directly follow a board.
fn first_word(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| c.is_whitespace() || c == ';');
    words.find(|word| !word.is_empty())
}

/// Returns `true` if `word` begins with the board of a FEN, which has eight ranks. The board may be followed by pieces
/// in hand, or by the other fields of a FEN in a URL.
fn is_board(word: &str) -> bool {
    let board = word.split(['_', '[']).next().unwrap_or_default();
    matches!(board.matches('/').count(), 7 | 8)
        && board
            .chars()
            .all(|c| c.is_ascii_digit() || "/~".contains(c) || Role::from_char(c).is_some())
}

/// Creates the output file of a suite. An existing file is replaced only if it is empty or if `force` is `true`.
///
/// # Errors
///
/// Returns an error if the file cannot be created, or if it exists and may not be replaced.
pub fn begin_suite(path: &Path, force: bool) -> Result<BufferedFile> {
    Ok(BufferedFile::new(begin_text(path, force)?))
}

/// Writes the entries of `ranking` to `file`, in the order of their ranks. Returns the file, which the caller must
/// commit, and the number of entries. `suite` contains the options of the suite. `start_of` converts the bytes
/// [`Ranked::start`] of an entry to the starting position that they identify.
pub(super) fn write_ranked(
    file: BufferedFile,
    format: SuiteFormat,
    suite: &Suite,
    ranking: &mut Ranking<'_>,
    start_of: impl Fn(&[u8]) -> VariantPosition,
) -> Result<(BufferedFile, u64)> {
    let path = file.target().to_owned();
    let mut games = GameWriter::new(file);
    let mut count = 0;
    for entry in ranking.ranked()? {
        let Ranked {
            text,
            start,
            opening,
            note,
        } = entry?;
        let opening = suite.tags.then(|| opening.split_once(' ')).flatten();
        count += 1;
        let written = match format {
            SuiteFormat::Pgn => games
                .begin(
                    SUITE_EVENT,
                    count,
                    UNKNOWN_PLAYERS,
                    &start_of(&start),
                    opening,
                )
                .and_then(|()| games.words(&text))
                .and_then(|()| match &*note {
                    "" => Ok(()),
                    note => games.words(&format!("{{{note}}}")),
                })
                .and_then(|()| games.end()),
            SuiteFormat::Epd => {
                let note = match &*note {
                    "" => note,
                    note => format!(" c0 \"{note}\";"),
                };
                let id = opening.map_or(String::new(), |(eco, name)| {
                    format!(" id \"{eco} {name}\";")
                });
                writeln!(games.get_mut(), "{text}{id}{note}")
            }
        };
        written.at(&path, "write")?;
    }
    Ok((games.into_inner(), count))
}

/// Returns the EPD of a position. If `opcodes` is `true`, the EPD contains the move counters as the operations
/// `hmvc` and `fmvn`.
pub(super) fn epd(pos: &VariantPosition, opcodes: bool) -> String {
    use shakmaty::Position;
    let mut epd = epd_of(pos);
    if opcodes {
        let (halfmoves, fullmoves) = (pos.halfmoves(), pos.fullmoves());
        epd.push_str(&format!(" hmvc {halfmoves}; fmvn {fullmoves};"));
    }
    epd
}

/// Returns the comment of a suite entry about the games that played its line or reached its position. The comment
/// contains the number of these games, how many of them have no result, and White's score in the others.
pub(super) fn note_of_games(results: Results) -> String {
    note("game", results)
}

/// Returns the comment of a suite entry with the number of times that games reached its last position, and White's
/// score in these games. A game that reached the position twice is counted twice.
pub(super) fn note_of_times(results: Results) -> String {
    note("time", results)
}

/// Returns a comment with a number of games and White's score, such as `3 games, White scored 50.0%`. `thing` is the
/// noun after the number in the singular, such as `game`.
fn note(thing: &str, results: Results) -> String {
    let count = results.games();
    let s = if count == 1 { "" } else { "s" };
    let mut note = format!("{count} {thing}{s}");
    if results.unfinished > 0 {
        note += &format!(", {} without result", results.unfinished);
    }
    if let Some(score) = results.score(Color::White) {
        note += &format!(", White scored {:.1}%", score * 100.0);
    }
    note
}

/// The result of checking a suite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuiteCheck {
    /// The format: lines of moves in PGN, or positions, one per line of text.
    pub format: SuiteFormat,
    /// The number of entries that can be read. All other fields, except the faults, describe only these entries.
    pub entries: u64,
    /// The number of entries whose last position has White to move.
    pub white_to_move: u64,
    /// The number of lines that lead to the same position as an earlier line, but by other moves.
    pub transpositions: u64,
    /// The shortest and the longest line in half-moves, or `None` for positions.
    pub plies: Option<RangeInclusive<usize>>,
    /// The lowest and the highest evaluation in the EPD operations `ce`, in centipawns from White's point of view, or
    /// `None` if any entry has no such operation.
    pub evaluations: Option<RangeInclusive<i32>>,
    /// The first [`MAX_FAULTS`](SuiteCheck::MAX_FAULTS) faults, in the order of the entries.
    pub faults: Vec<SuiteFault>,
    /// The number of all faults.
    pub fault_count: usize,
}

impl SuiteCheck {
    /// The maximum number of faults that a check describes. This maximum limits the memory for a file with faults in
    /// every line.
    pub const MAX_FAULTS: usize = 1000;
}

/// A fault in an opening suite. The place of an entry is, for example, `line 2` for a position on the second line of
/// the file, or `game 2` for the second game of a PGN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SuiteFault {
    /// The entry is not a position, contains an illegal move, or is damaged or incomplete.
    Invalid {
        /// The place of the entry.
        place: String,
        /// A description of the error in the entry.
        problem: String,
    },
    /// The game is over after the entry, by checkmate, stalemate, the rules of a variant, insufficient material, a
    /// threefold repetition, or the 75-move rule.
    Over {
        /// The place of the entry.
        place: String,
    },
    /// The entry repeats an earlier entry: both are the same position, or lines with the same start and the same moves.
    Repeated {
        /// The place of the entry.
        place: String,
        /// The place of the earliest equal entry.
        first: String,
    },
}

impl std::fmt::Display for SuiteFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SuiteFault::Invalid { place, problem } => write!(f, "{place}: {problem}"),
            SuiteFault::Over { place } => write!(f, "{place}: the game is already over"),
            SuiteFault::Repeated { place, first } => write!(f, "{place} repeats {first}"),
        }
    }
}

/// Returns the evaluation in the EPD operation `ce` of `line`, converted to centipawns from White's point of view. The
/// EPD states it from the point of view of the side to move, which is `turn`. Returns `None` if `line` contains no such
/// operation.
pub(super) fn evaluation(line: &str, turn: Color) -> Option<i32> {
    let operations = line.split_once(" ce ")?.1;
    let own: i32 = operations.split(';').next()?.trim().parse().ok()?;
    Some(turn.fold_wb(own, own.checked_neg()?))
}

/// Returns the range from the smallest to the largest of `values`, or `None` if there are no values.
pub(super) fn range<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<RangeInclusive<T>> {
    values
        .map(|value| (value, value))
        .reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
        .map(|(low, high)| low..=high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_have_the_view_of_white() {
        let line = "8/8/8/8/8/8/8/K1k5 b - - acd 12; ce -30; id \"x\";";
        assert_eq!(evaluation(line, Color::Black), Some(30));
        assert_eq!(evaluation(line, Color::White), Some(-30));
        assert_eq!(
            evaluation("8/8/8/8/8/8/8/K1k5 b - - acd 12;", Color::White),
            None
        );
    }

    #[test]
    fn a_range_contains_all_values() {
        assert_eq!(range([3, -1, 2].into_iter()), Some(-1..=3));
        assert_eq!(range(std::iter::empty::<i32>()), None);
    }
}

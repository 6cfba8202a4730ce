//! Writing suites as PGN or EPDs.

use std::{io::Write, path::Path};

use shakmaty::variant::VariantPosition;

use super::{
    Suite,
    game_stats::GameStats,
    ranking::{Ranked, Ranking},
};
use crate::{
    counts::Stats,
    error::{At, Result},
    output::{BufferedFile, begin_text},
    position::epd_of,
    tree::GameWriter,
};

/// The value of the `Event` tag of each line.
const EVENT: &str = "Opening suite";

/// The format of a suite.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuiteFormat {
    /// Lines of moves, written as games without a result.
    Pgn,
    /// Positions, one EPD per line of text.
    Epd,
}

impl SuiteFormat {
    /// Returns the format of the text of a suite: positions if the first word is a board, otherwise lines. Blank lines and lines that
    /// begin with `#` are skipped.
    pub fn of_text(text: &str) -> SuiteFormat {
        let mut lines = text.lines().map(|line| line.trim_start_matches('\u{feff}'));
        let first = lines.find(|line| !line.trim().is_empty() && !line.starts_with('#'));
        // A board has seven slashes; a tag or a move has none.
        match first.and_then(|line| line.split_whitespace().next()) {
            Some(word) if word.matches('/').count() == 7 => SuiteFormat::Epd,
            _ => SuiteFormat::Pgn,
        }
    }
}

/// Creates a file for a suite. An existing file is replaced if it is empty or an unchanged suite of lines, and with `force`
/// in any case.
///
/// A suite of positions has no checksum, because other programs sort and join its lines, which would move the checksum.
///
/// # Errors
///
/// Returns an error if the file cannot be created, or if it exists and may not be replaced.
pub fn begin_suite(path: &Path, force: bool) -> Result<BufferedFile> {
    Ok(BufferedFile::sealed(begin_text(path, force)?))
}

/// Writes the entries of a ranking in their order, and returns the file and the number of entries. `start_of` returns
/// the position that the bytes of [`Ranked::start`] identify.
pub(super) fn write_ranked(
    file: BufferedFile,
    format: SuiteFormat,
    suite: &Suite,
    ranking: &mut Ranking<'_>,
    start_of: impl Fn(&[u8]) -> VariantPosition,
) -> Result<(BufferedFile, u64)> {
    let path = file.target().to_owned();
    let is_sealed = file.is_sealed();
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
        let is_sealed = is_sealed && count == 1;
        let written = match format {
            SuiteFormat::Pgn => games
                .begin(EVENT, count, &start_of(&start), opening, is_sealed)
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

/// Returns the EPD of a position, with the operations `hmvc` and `fmvn` if `opcodes` is set.
pub(super) fn epd(pos: &VariantPosition, opcodes: bool) -> String {
    use shakmaty::Position;
    let mut epd = epd_of(pos);
    if opcodes {
        let (halfmoves, fullmoves) = (pos.halfmoves(), pos.fullmoves());
        epd.push_str(&format!(" hmvc {halfmoves}; fmvn {fullmoves};"));
    }
    epd
}

/// Returns a comment that states the number of games, how many of them have no result, and White's score in the others.
pub(super) fn note_of_games(results: GameStats) -> String {
    note("game", results)
}

/// Returns a comment that states how often games reached a position, and White's score. A game that reached the
/// position twice counts twice.
pub(super) fn note_of_times(stats: Stats) -> String {
    let without_result = 0;
    note(
        "time",
        GameStats {
            stats,
            without_result,
        },
    )
}

/// Returns the text of the comment about `results`. `thing` names what is counted, such as games.
fn note(thing: &str, results: GameStats) -> String {
    let count = results.games();
    let s = if count == 1 { "" } else { "s" };
    let mut note = format!("{count} {thing}{s}");
    if results.without_result > 0 {
        note += &format!(", {} without result", results.without_result);
    }
    if results.stats.games() > 0 {
        note += &format!(", White scored {:.1}%", results.stats.score() * 100.0);
    }
    note
}

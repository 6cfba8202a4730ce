//! Writing suites.

use std::{io::Write, path::Path};

use shakmaty::variant::VariantPosition;

use super::{
    Suite,
    game_stats::GameStats,
    ranking::{Ranked, Ranking},
};
use crate::{
    error::{At, Result},
    output::{AtomicFile, BufferedFile, check_first_line},
    position::epd_of,
    tally::Stats,
    tree::GameWriter,
};

/// What games of a suite are called.
const EVENT: &str = "Opening suite";

/// The first line of a suite of lines.
const FIRST_LINE: &[u8] = b"[Event \"Opening suite\"]";

/// How a suite is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuiteFormat {
    /// Lines, as games without result.
    Pgn,
    /// Positions, an EPD a line.
    Epd,
}

impl SuiteFormat {
    /// Whether a file may be one of this format, by its first line.
    fn begins_with(self, line: &[u8]) -> bool {
        match self {
            SuiteFormat::Pgn => line.trim_ascii_end() == FIRST_LINE,
            SuiteFormat::Epd => is_noted(line),
        }
    }
}

/// Whether the line of an EPD ends in a [`note`]: positions alone may be anybody's.
fn is_noted(line: &[u8]) -> bool {
    let note = std::str::from_utf8(line).ok().and_then(|epd| {
        let (_, note) = epd.trim_end().split_once(" c0 \"")?;
        note.strip_suffix("\";")?.split_once(", ")
    });
    note.is_some_and(|(games, more)| {
        let count = games.split_once(' ').map(|(count, _)| count.parse::<u64>());
        matches!(count, Some(Ok(_))) && more.split(", ").all(is_of_note)
    })
}

/// Whether a part of a [`note`] after the first may be one.
fn is_of_note(part: &str) -> bool {
    let score = part.strip_prefix("White scored ");
    let score = score.and_then(|score| score.strip_suffix('%'));
    let games = part.strip_suffix(" without result");
    score.is_some_and(|score| score.parse::<f64>().is_ok())
        || games.is_some_and(|games| games.parse::<u64>().is_ok())
}

/// Begins a file that replaces an empty one or a suite of the same format.
pub(crate) fn begin(path: &Path, format: SuiteFormat) -> Result<BufferedFile> {
    let may_replace = |old: &Path| check_first_line(old, |line| format.begins_with(line));
    Ok(BufferedFile::new(AtomicFile::create_over(
        path,
        may_replace,
    )?))
}

/// Writes the entries in their order; returns how many there are. `start_of` has the position that the text of a start
/// means.
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
                .begin(EVENT, count, &start_of(&start), opening)
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

/// The text of an EPD, with the counters of moves if they are wanted.
pub(super) fn epd(pos: &VariantPosition, opcodes: bool) -> String {
    use shakmaty::Position;
    let mut epd = epd_of(pos);
    if opcodes {
        let (halfmoves, fullmoves) = (pos.halfmoves(), pos.fullmoves());
        epd.push_str(&format!(" hmvc {halfmoves}; fmvn {fullmoves};"));
    }
    epd
}

/// How many games there were, how many of them without result, and White's score in the others.
pub(super) fn note_of_games(results: GameStats) -> String {
    note("game", results)
}

/// How many times games came to a position, and White's score in them: a game that came back to it counts again.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_suites_of_the_same_format_are_replaced() {
        let bare = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
        let foreign = &format!("{bare} c0 \"1 game\";");
        let [one, many, open] = [(1, 0), (1000, 2), (0, 2)].map(|(wins, without_result)| {
            let stats = Stats {
                wins,
                ..Stats::default()
            };
            let thing = if wins == 1 { "time" } else { "game" };
            let results = GameStats {
                stats,
                without_result,
            };
            format!("{bare} hmvc 0; fmvn 1; c0 \"{}\";", note(thing, results))
        });
        for (line, is_pgn, is_epd) in [
            ("[Event \"Opening suite\"]\r", true, false),
            ("[Event \"Casual\"]", false, false),
            (bare, false, false),
            (foreign, false, false),
            (&one, false, true),
            (&many, false, true),
            (&open, false, true),
            ("my notes", false, false),
        ] {
            assert_eq!(
                SuiteFormat::Pgn.begins_with(line.as_bytes()),
                is_pgn,
                "{line}"
            );
            assert_eq!(
                SuiteFormat::Epd.begins_with(line.as_bytes()),
                is_epd,
                "{line}"
            );
        }
    }
}

//! Makes suites of lines from a database or a book.
//!
//! Lines are searched depth first. If only the lines with the most games are wanted, the search is repeated with lower
//! and lower ranges of numbers of games ([`Band`]), so that rare lines are never examined.

use std::path::Path;

use shakmaty::variant::VariantPosition;

use super::{
    SourceSuite, Suite,
    format::note_of_times,
    ranking::{Candidate, Ranking},
};
use crate::{
    error::{Error, Result},
    position::Keyed,
    progress::Portions,
    storage::sort::SpillingSet,
    tree::push_move,
    walk::{Source, TreeMove},
};

/// The maximum number of lines that a search extends by further moves. Because of transpositions, the number of lines
/// may be too large for any search to finish.
const MOST_LOOKED_AT: u64 = 8_000_000;

/// A line of moves that a search for the lines of a suite has reached. It has at most as many half-moves as the lines
/// of the suite.
struct SuiteLine {
    pos: Keyed<VariantPosition>,
    /// The moves in SAN with move numbers.
    text: String,
    /// The identities of the positions, from the start to the last.
    identities: Vec<u64>,
    opening: String,
    /// The smallest number of games that any move of the line has. This is an upper bound on the number of games in
    /// which the whole line was played.
    games: u64,
    /// The estimated share of all lines that begin with this one, from 0 to 1.
    portion: f64,
}

impl SuiteLine {
    /// Returns this line extended by the move `mv`. `portion` is the estimated share of all lines that begin with the
    /// extended line, for the progress display.
    fn then(&self, mv: &TreeMove, portion: f64, suite: &Suite) -> SuiteLine {
        let pos = self.pos.position();
        let mut text = self.text.clone();
        push_move(&mut text, pos, mv.mv);
        let mut after = self.pos.clone();
        after.play(mv.mv);
        SuiteLine {
            text,
            identities: [&self.identities[..], &[after.identity()]].concat(),
            opening: suite.opening(after.position(), &self.opening),
            pos: after,
            games: mv.games().min(self.games),
            portion,
        }
    }
}

impl<S: Source> SourceSuite<'_, S> {
    /// Searches for the lines of the suite and ranks them. The returned `bool` is `true` if the search stopped before
    /// it had examined all lines. Error messages name `path`.
    pub(super) fn rank_lines(&self, path: &Path) -> Result<(Ranking<'_>, bool)> {
        let mut lines = LineSearch {
            of: self,
            ranking: Ranking::new(self.suite, &self.memory, path),
            ends: (self.suite.unique).then(|| SpillingSet::new(self.memory.share(4))),
            found: 0,
            looked_at: 0,
            band: Band::ALL,
            next: None,
            done: Portions::new(self.meter),
        };
        let is_cut = !lines.find()?;
        lines.done.finish();
        if is_cut && (!self.suite.takes_the_commonest() || lines.found == 0) {
            return Err(search_stopped(path, self.suite, lines.ranking.longest));
        }
        Ok((lines.ranking, is_cut))
    }
}

/// Returns the error for a suite whose search stopped after [`MOST_LOOKED_AT`] lines. `longest` is the length of the
/// longest examined line in half-moves.
fn search_stopped(path: &Path, suite: &Suite, longest: usize) -> Error {
    let plies = suite.plies;
    let other = match suite.takes_the_commonest() {
        true => "",
        false => ", or take the most played lines by a limit alone",
    };
    let problem = format!(
        "of {MOST_LOOKED_AT} lines, the longest has {longest} of {plies} half-moves without a repeated position, and there \
         are more lines: choose fewer half-moves, or keep only moves of more games{other}"
    );
    Error::too_large(path, problem)
}

/// A range of numbers of games. A pass of the search finds the lines whose number of games is in the range.
#[derive(Copy, Clone, Debug)]
struct Band {
    /// The minimum, inclusive.
    least: u64,
    /// The upper bound, exclusive, or `None` for no bound. Lines with more games were found in earlier passes.
    below: Option<u64>,
    /// Whether all lines in the range have the same number of games.
    is_one_number: bool,
}

impl Band {
    /// The range that contains every number of games.
    const ALL: Band = Band {
        least: 0,
        below: None,
        is_one_number: false,
    };

    /// The empty range of the first pass over the lines, which only determines the highest number of games of a line.
    /// It contains no line with a move, because only the empty line is regarded as having [`u64::MAX`] games.
    const NONE: Band = Band {
        least: u64::MAX,
        ..Band::ALL
    };

    /// Returns the range directly below this one, for the next pass. `next` is the largest number of games below this
    /// range that a line has. Ranges of large numbers are wider, to keep the number of passes small: each pass repeats
    /// the whole search.
    fn after(self, next: u64) -> Band {
        let least = match self.least {
            u64::MAX => next,
            least => next.min(least - least / 8),
        };
        Band {
            least,
            below: Some(self.least),
            is_one_number: least == next,
        }
    }

    fn contains(self, games: u64) -> bool {
        games >= self.least && self.below.is_none_or(|below| games < below)
    }
}

/// The state of a depth-first search for the lines of a suite.
struct LineSearch<'a, S> {
    of: &'a SourceSuite<'a, S>,
    ranking: Ranking<'a>,
    /// The last positions of the lines found so far, if each position may occur only once.
    ends: Option<SpillingSet>,
    /// The number of lines found so far or, if each last position may occur only once, the number of different last
    /// positions.
    found: u64,
    looked_at: u64,
    band: Band,
    /// The largest number of games of any line below the current range that this pass has seen, or `None` if it has
    /// seen none.
    next: Option<u64>,
    done: Portions<'a>,
}

impl<S: Source> LineSearch<'_, S> {
    /// Searches for the lines of the suite and adds each of them to the ranking. Returns `false` if the search stopped
    /// early because it had examined [`MOST_LOOKED_AT`] lines.
    fn find(&mut self) -> Result<bool> {
        let suite = self.of.suite;
        let limit = match suite.limit {
            Some(limit) if suite.takes_the_commonest() => limit as u64,
            _ => return self.find_in_band(u64::MAX),
        };
        self.band = Band::NONE;
        loop {
            if !self.find_in_band(limit - self.found)? {
                return Ok(false);
            }
            match self.next.take() {
                Some(next) if self.found < limit => self.band = self.band.after(next),
                _ => return Ok(true),
            }
        }
    }

    /// Searches, from all starting positions, for lines whose number of games is in the current range. May stop at each
    /// starting position after `wanted` lines have been found from it. Returns `false` if the search stopped early
    /// because it had examined [`MOST_LOOKED_AT`] lines.
    fn find_in_band(&mut self, wanted: u64) -> Result<bool> {
        let starts = self.of.starts;
        let portion = 1.0 / starts.len() as f64;
        for (number, start) in (0u64..).zip(starts) {
            if !self.find_from(&number.to_le_bytes(), start, portion, wanted)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Searches for lines from the starting position `start`. The bytes `number` identify this position in the ranking.
    /// `portion` is its share of the progress. May stop after `wanted` lines have been found. Returns `false` if the
    /// search stopped early because it had examined [`MOST_LOOKED_AT`] lines.
    fn find_from(
        &mut self,
        number: &[u8],
        start: &VariantPosition,
        portion: f64,
        wanted: u64,
    ) -> Result<bool> {
        let plies = self.of.suite.plies;
        let found_before = self.found;
        let start = Keyed::new(start.clone());
        let mut stack = vec![SuiteLine {
            identities: vec![start.identity()],
            opening: self.of.suite.opening(start.position(), ""),
            pos: start,
            text: String::new(),
            games: u64::MAX,
            portion,
        }];
        while let Some(line) = stack.pop() {
            let length = line.identities.len() - 1;
            self.ranking.longest = self.ranking.longest.max(length);
            if length < plies {
                if self.looked_at == MOST_LOOKED_AT {
                    return Ok(false);
                }
                self.looked_at += 1;
                self.push_continuations(&line, &mut stack)?;
                continue;
            }
            self.done.add(line.portion);
            if self.band.contains(line.games) {
                self.take(number, &line)?;
            }
            // Lines with equal numbers of games are ranked by their texts, and the search finds them in the order of
            // their texts.
            if self.band.is_one_number && self.found - found_before >= wanted {
                break;
            }
        }
        Ok(true)
    }

    /// Pushes the continuations of `line` to the stack, sorted so that the one with the smallest text is popped first.
    /// Skips moves that repeat a position, and lines whose number of games is below the current range.
    fn push_continuations(&mut self, line: &SuiteLine, stack: &mut Vec<SuiteLine>) -> Result<()> {
        let moves = self.of.source.moves(&line.pos)?;
        let portion = line.portion / moves.len() as f64;
        let first = stack.len();
        for mv in &moves {
            let least = mv.games().min(line.games);
            if least < self.band.least {
                self.next = self.next.max(Some(least));
                continue;
            }
            let next = line.then(mv, portion, self.of.suite);
            if !line.identities.contains(&next.pos.identity()) {
                stack.push(next);
            }
        }
        if stack.len() == first {
            self.done.add(line.portion);
        }
        stack[first..].sort_by(|a, b| b.text.cmp(&a.text));
        Ok(())
    }

    /// Adds a line of the suite's full length to the ranking if its last position passes the filters of the suite.
    /// `start` identifies its starting position.
    fn take(&mut self, start: &[u8], line: &SuiteLine) -> Result<()> {
        let results = (self.of.results)(&line.pos)?;
        let is_kept = self.of.suite.keeps(results);
        if !is_kept || self.ranking.judged(line.pos.position())?.is_none() {
            return Ok(());
        }
        let identity = line.pos.identity();
        let is_new = match &mut self.ends {
            Some(ends) => ends.insert_key(identity)?,
            None => true,
        };
        self.found += u64::from(is_new);
        self.ranking.add(&Candidate {
            text: &line.text,
            start,
            identities: &line.identities,
            games: line.games,
            opening: &line.opening,
            note: &results.map(note_of_times).unwrap_or_default(),
        })
    }
}

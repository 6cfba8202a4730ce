//! Suites of lines of a database or a book.

use std::path::Path;

use shakmaty::variant::VariantPosition;

use super::{
    Suite, SuiteOf,
    ranking::{Candidate, Ranking},
    write::note_of_times,
};
use crate::{
    error::{Error, Result},
    position::Keyed,
    progress::Portions,
    sort::SpillingSet,
    tree::push_move,
    walk::{Source, TreeMove},
};

/// The most lines that are gone on from. Moves that go in circles make more lines than anyone can wait for.
const MOST_LOOKED_AT: u64 = 8_000_000;

/// A line of moves.
struct SuiteLine {
    pos: Keyed<VariantPosition>,
    /// Its moves.
    text: String,
    /// The identities of its positions, that of the start first.
    way: Vec<u64>,
    opening: String,
    /// The fewest games that any of its moves has: no more can have been played all of it.
    games: u64,
    /// How much of all lines is likely to begin with it, from 0 to 1.
    portion: f64,
}

impl SuiteLine {
    fn then(&self, mv: &TreeMove, portion: f64, suite: &Suite) -> SuiteLine {
        let pos = self.pos.position();
        let mut text = self.text.clone();
        push_move(&mut text, pos, mv.mv);
        let mut after = self.pos.clone();
        after.play(mv.mv);
        SuiteLine {
            text,
            way: [&self.way[..], &[after.identity()]].concat(),
            opening: suite.opening(after.position(), &self.opening),
            pos: after,
            games: mv.games().min(self.games),
            portion,
        }
    }
}

impl<S: Source> SuiteOf<'_, S> {
    /// Ranks the lines. Returns too whether some were left that nobody looked at.
    pub(super) fn rank_lines(&self, path: &Path) -> Result<(Ranking<'_>, bool)> {
        let mut lines = SuiteLines {
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
            return Err(cut(path, self.suite, lines.ranking.longest));
        }
        Ok((lines.ranking, is_cut))
    }
}

/// The error of a suite for which more lines would have to be looked at than can be.
fn cut(path: &Path, suite: &Suite, longest: usize) -> Error {
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

/// How many games the lines have that are looked for.
#[derive(Copy, Clone, Debug)]
struct Band {
    /// The fewest.
    least: u64,
    /// Lines of this many, or more, were looked for before.
    below: Option<u64>,
    /// Whether all of them have the same number.
    is_one_number: bool,
}

impl Band {
    /// All lines.
    const ALL: Band = Band {
        least: 0,
        below: None,
        is_one_number: false,
    };

    /// No line that has a move.
    const NONE: Band = Band {
        least: u64::MAX,
        ..Band::ALL
    };

    /// The band after this one, if `next` games are the most that a line has below it. It has more numbers than that one
    /// if they are large, because each band is looked for from the start.
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

/// Goes through the lines.
struct SuiteLines<'a, S> {
    of: &'a SuiteOf<'a, S>,
    ranking: Ranking<'a>,
    /// The positions that lines lead to, if they are to be unique.
    ends: Option<SpillingSet>,
    /// How many lines were found, or how many ends if these are unique.
    found: u64,
    looked_at: u64,
    band: Band,
    /// The most games that a line below the band has.
    next: Option<u64>,
    done: Portions<'a>,
}

impl<S: Source> SuiteLines<'_, S> {
    /// Finds the lines that are wanted; returns whether it looked at all that there may be.
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

    /// Finds those of the present band, as many as are `wanted`.
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

    /// Finds the lines from a position, which are a portion of all.
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
            way: vec![start.identity()],
            opening: self.of.suite.opening(start.position(), ""),
            pos: start,
            text: String::new(),
            games: u64::MAX,
            portion,
        }];
        while let Some(line) = stack.pop() {
            let length = line.way.len() - 1;
            self.ranking.longest = self.ranking.longest.max(length);
            if length < plies {
                if self.looked_at == MOST_LOOKED_AT {
                    return Ok(false);
                }
                self.looked_at += 1;
                self.go_on(&line, &mut stack)?;
                continue;
            }
            self.done.add(line.portion);
            if self.band.contains(line.games) {
                self.take(number, &line)?;
            }
            // Of equal games, those of the smallest texts are wanted, and they come first.
            if self.band.is_one_number && self.found - found_before >= wanted {
                break;
            }
        }
        Ok(true)
    }

    /// Adds what a line goes on with, that of the smallest text last.
    fn go_on(&mut self, line: &SuiteLine, stack: &mut Vec<SuiteLine>) -> Result<()> {
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
            if !line.way.contains(&next.pos.identity()) {
                stack.push(next);
            }
        }
        if stack.len() == first {
            self.done.add(line.portion);
        }
        stack[first..].sort_by(|a, b| b.text.cmp(&a.text));
        Ok(())
    }

    /// Takes a line of the wanted length, if its results are as asked.
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
            way: &line.way,
            games: line.games,
            opening: &line.opening,
            note: &results.map(note_of_times).unwrap_or_default(),
        })
    }
}

//! Suites of lines, as games.

use std::{io::BufWriter, path::Path};

use shakmaty::{Position, san::SanPlus, variant::VariantPosition};

use super::{
    Suite, SuiteOf, begin, end, for_white, games, none,
    ranking::{Candidate, Ranking},
    too_many,
};
use crate::{
    convert::{Converted, replace::Kind},
    error::{At, Result},
    position::Keyed,
    progress::Portions,
    tally::Stats,
    tree::{GameWriter, Source, TreeMove, move_number},
};

/// What games of a suite are called.
const EVENT: &str = "Opening suite";

/// The first line of a suite of lines.
const FIRST_LINE: &str = "[Event \"Opening suite\"]";

/// A line of moves.
struct Line {
    pos: Keyed<VariantPosition>,
    /// The last move with its number, if it must be said.
    last: String,
    plies: usize,
    /// The fewest games that any of its moves has: no more can have been played all of it.
    games: u64,
    /// The games of its last move, for White.
    stats: Stats,
    /// How much of all lines is likely to begin with it, from 0 to 1.
    portion: f64,
}

impl Line {
    fn then(&self, mv: &TreeMove, portion: f64) -> Line {
        let pos = self.pos.position();
        let mut last = String::new();
        if self.plies == 0 || pos.turn().is_white() {
            last.push_str(&move_number(pos));
            last.push(' ');
        }
        last.push_str(&SanPlus::from_move(pos.clone(), mv.mv).to_string());
        let mut after = self.pos.clone();
        after.play(mv.mv);
        Line {
            pos: after,
            last,
            plies: self.plies + 1,
            games: games(mv).min(self.games),
            stats: for_white(mv, pos.turn()),
            portion,
        }
    }
}

impl<S: Source> SuiteOf<'_, S> {
    /// Writes the lines as games without result.
    pub(in crate::convert) fn write_lines(&self, path: &Path) -> Result<Converted> {
        let file = begin(path, Kind::FirstLine(FIRST_LINE))?;
        let (suite, starts) = (self.suite, self.starts);
        let mut lines = Lines {
            source: self.source,
            suite,
            path,
            ranking: Ranking::new(suite, &self.memory),
            longest: 0,
            done: Portions::new(self.meter),
        };
        let portion = 1.0 / starts.len() as f64;
        for (start, pos) in (0..).zip(starts) {
            lines.from(start, pos, portion)?;
        }
        let longest = lines.longest;
        let mut games = GameWriter::new(BufWriter::with_capacity(1 << 16, file));
        let mut count = 0;
        for line in lines.ranking.ranked()? {
            let (text, start) = line?;
            count += 1;
            if count > Ranking::MOST as u64 && suite.limit.is_none() {
                return Err(too_many(path, suite));
            }
            let begun = games.begin(EVENT, count, &starts[start]);
            begun
                .and_then(|()| games.words(&text))
                .and_then(|()| games.end())
                .at(path, "write")?;
        }
        if count == 0 {
            return Err(none(path, suite, longest));
        }
        end(games.into_inner(), path, count)
    }
}

/// Goes through all lines.
struct Lines<'a, S> {
    source: &'a S,
    suite: &'a Suite,
    path: &'a Path,
    ranking: Ranking,
    /// How many half-moves the longest line has.
    longest: usize,
    done: Portions<'a>,
}

impl<S: Source> Lines<'_, S> {
    /// Adds the lines from a position, which are a portion of all.
    fn from(&mut self, start: u32, pos: &VariantPosition, portion: f64) -> Result<()> {
        let mut stack = vec![Line {
            pos: Keyed::new(pos.clone()),
            last: String::new(),
            plies: 0,
            games: u64::MAX,
            stats: Stats::default(),
            portion,
        }];
        let (mut text, mut ends) = (String::new(), Vec::new());
        while let Some(line) = stack.pop() {
            // The line before shares all but the last moves with this one.
            ends.truncate(line.plies.saturating_sub(1));
            text.truncate(ends.last().copied().unwrap_or(0));
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&line.last);
            if line.plies > 0 {
                ends.push(text.len());
            }
            self.longest = self.longest.max(line.plies);
            if line.plies < self.suite.plies {
                let moves = self.source.moves(&line.pos)?;
                if moves.is_empty() {
                    self.done.add(line.portion);
                }
                let portion = line.portion / moves.len() as f64;
                stack.extend(moves.iter().map(|mv| line.then(mv, portion)));
                continue;
            }
            self.done.add(line.portion);
            let candidate = Candidate {
                start,
                identity: line.pos.identity(),
                games: line.games,
                text: &text,
            };
            if self.suite.is_balanced(line.stats) && !self.ranking.add(&candidate)? {
                return Err(too_many(self.path, self.suite));
            }
        }
        Ok(())
    }
}

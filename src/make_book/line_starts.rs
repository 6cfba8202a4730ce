//! Where the lines of a suite begin.

use std::collections::HashMap;

use super::{main_line::MainLine, options::SuiteOutput};
use crate::{
    pgn::GameResult,
    position::{Keyed, Rules, Variant, stored, write_epd},
    suite::{GameLine, is_chess960_start},
};

/// Where the lines of a suite begin.
pub(super) struct LineStarts {
    plies: usize,
    /// The positions that are wanted, by their identities, none for those where games start.
    wanted: HashMap<u64, String>,
    /// The identities of the usual starting positions, by variant.
    usual: [u64; Variant::ALL.len()],
    /// Where the present game starts, if it is where lines begin: nothing for the usual place.
    start: Option<String>,
}

impl LineStarts {
    pub(super) fn new(output: &SuiteOutput) -> LineStarts {
        let starts = output.suite.starts.iter();
        LineStarts {
            plies: output.suite.plies,
            // Of positions that differ in their counters of moves alone, the first stays.
            wanted: starts
                .rev()
                .map(|pos| (Keyed::new(pos.clone()).identity(), stored(pos)))
                .collect(),
            usual: Variant::ALL.map(|variant| Keyed::new(variant.start()).identity()),
            start: None,
        }
    }

    /// Notes where the next game starts.
    pub(super) fn begin<P: Rules>(&mut self, variant: Variant, pos: &Keyed<P>) {
        self.start = None;
        if !self.wanted.is_empty() {
            return;
        }
        if pos.identity() == self.usual[variant as usize] {
            self.start = Some(String::new());
        } else if variant == Variant::Chess960 {
            let mut epd = Vec::new();
            write_epd(pos.position(), &mut epd);
            let epd = String::from_utf8(epd).expect("an EPD is ASCII");
            self.start = is_chess960_start(&epd).then_some(epd);
        }
    }

    /// The lines of the game: from its start, or from where it first comes to each position that is wanted. `last` is
    /// the identity of its last position.
    pub(super) fn lines(
        &self,
        variant: Variant,
        result: GameResult,
        line: &MainLine,
        last: u64,
    ) -> Vec<GameLine> {
        let line_from = |start: &str, ply: usize| {
            let moves = line.plies.get(ply..ply + self.plies)?;
            let end = line.identities.get(ply + self.plies).copied();
            let moves = moves.iter().map(|ply| ply.mv);
            Some(GameLine::new(
                variant,
                start,
                moves,
                end.unwrap_or(last),
                result,
            ))
        };
        if self.wanted.is_empty() {
            let start = self.start.as_deref();
            return start
                .and_then(|start| line_from(start, 0))
                .into_iter()
                .collect();
        }
        let mut met = Vec::new();
        let mut found = Vec::new();
        for (ply, identity) in line.identities.iter().enumerate() {
            if let Some(start) = self.wanted.get(identity)
                && !met.contains(identity)
            {
                met.push(*identity);
                found.extend(line_from(start, ply));
            }
        }
        found
    }
}

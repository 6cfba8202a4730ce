//! Dropping positions in which few moves were counted.

use rustc_hash::FxHashMap;

use super::layout::ClassRow;
use crate::{error::Result, position::BookMove, provenance::Pruned};

/// Takes rows in order, and hands over those of positions in which enough moves were counted.
pub(super) struct Pruner {
    /// Rows of positions that share a key are among one another.
    has_identities: bool,
    key: Option<u64>,
    /// The rows of the present key that wait, and their half-moves.
    waiting: Vec<ClassRow>,
    plies: u64,
    is_kept: bool,
    pub pruned: Pruned,
    /// All positions, and pairs of position and move, those that are dropped too.
    pub positions: u64,
    pub pairs: u64,
    place: Option<(i64, BookMove, u64)>,
}

impl Pruner {
    /// Keeps positions in which at least `min_game` moves were counted, all for 0.
    pub(super) fn new(min_game: u64, has_identities: bool) -> Pruner {
        Pruner {
            has_identities,
            key: None,
            waiting: Vec::new(),
            plies: 0,
            is_kept: false,
            pruned: Pruned {
                min_game,
                ..Pruned::default()
            },
            positions: 0,
            pairs: 0,
            place: None,
        }
    }

    /// Takes the next row.
    pub(super) fn take(
        &mut self,
        row: &ClassRow,
        out: &mut impl FnMut(&ClassRow) -> Result<()>,
    ) -> Result<()> {
        let place = row.place();
        self.pairs += u64::from(self.place.replace(place) != Some(place));
        if self.key != Some(row.row.key) {
            self.end_key(out)?;
            self.key = Some(row.row.key);
            // Mostly.
            if !self.has_identities && row.row.stats.games() >= self.pruned.min_game {
                self.is_kept = true;
                self.positions += 1;
            }
        }
        if self.is_kept {
            return out(row);
        }
        self.waiting.push(*row);
        self.plies += row.row.stats.games();
        if !self.has_identities && self.plies >= self.pruned.min_game {
            self.is_kept = true;
            self.positions += 1;
            self.waiting.drain(..).try_for_each(|row| out(&row))?;
        }
        Ok(())
    }

    /// Ends the present key, if there is one.
    pub(super) fn end_key(&mut self, out: &mut impl FnMut(&ClassRow) -> Result<()>) -> Result<()> {
        (self.plies, self.is_kept) = (0, false);
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut plies: FxHashMap<u64, u64> = FxHashMap::default();
        for ClassRow { row, .. } in &self.waiting {
            *plies.entry(row.identity).or_default() += row.stats.games();
        }
        self.positions += plies.len() as u64;
        let least = self.pruned.min_game;
        self.pruned.positions += plies.values().filter(|plies| **plies < least).count() as u64;
        for row in self.waiting.drain(..) {
            if plies[&row.row.identity] >= least {
                out(&row)?;
            } else {
                self.pruned.rows += 1;
                self.pruned.plies += row.row.stats.games();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::Color;

    use super::*;
    use crate::{
        counts::{Class, Ratings, Row},
        tally::Stats,
    };

    proptest! {
        #[test]
        fn positions_of_few_moves_are_dropped_whole(
            mut rows in proptest::collection::vec((0..6u64, 1..4u16, 0..3u64, 0..4u64), 0..60),
            least in 0..9u64,
            has_identities: bool,
        ) {
            let row = |(key, mv, identity, wins): (u64, u16, u64, u64)| ClassRow {
                row: Row {
                    key,
                    identity: if has_identities { identity } else { key },
                    mv: BookMove(mv),
                    turn: Color::White,
                    stats: Stats { wins, ..Stats::default() },
                },
                class: Class::default(),
                ratings: Ratings::default(),
            };
            rows.sort();
            let rows: Vec<ClassRow> = rows.into_iter().map(row).collect();
            let plies_of = |of: &ClassRow| rows.iter()
                .filter(|row| (row.row.key, row.row.identity) == (of.row.key, of.row.identity))
                .map(|row| row.row.stats.games())
                .sum::<u64>();
            let (kept, dropped): (Vec<ClassRow>, Vec<ClassRow>) =
                rows.iter().partition(|row| plies_of(row) >= least);
            let (mut pruner, mut found) = (Pruner::new(least, has_identities), Vec::new());
            for row in &rows {
                pruner.take(row, &mut |row| { found.push(*row); Ok(()) }).unwrap();
            }
            pruner.end_key(&mut |row| { found.push(*row); Ok(()) }).unwrap();
            prop_assert_eq!(found, kept);
            let positions = |rows: &[ClassRow]| {
                let mut all: Vec<_> = rows.iter().map(|row| (row.row.key, row.row.identity)).collect();
                all.sort();
                all.dedup();
                all.len() as u64
            };
            prop_assert_eq!(pruner.positions, positions(&rows));
            prop_assert_eq!(pruner.pruned, Pruned {
                min_game: least,
                positions: positions(&dropped),
                rows: dropped.len() as u64,
                plies: dropped.iter().map(|row| row.row.stats.games()).sum(),
            });
        }
    }
}

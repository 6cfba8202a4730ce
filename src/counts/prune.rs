//! Pruning positions in which few moves were counted.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::layout::ClassRow;
use crate::{
    error::{Error, Result},
    position::BookMove,
    provenance::Pruned,
};

/// The greatest number of rows of a key that are buffered; bounds the memory.
const MOST_WAITING: usize = if cfg!(test) { 1 << 8 } else { 1 << 18 };

/// Filters sorted rows: passes on the rows of positions in which at least `min_game` moves were counted, and drops the
/// others.
///
/// Rows must arrive sorted by key. The rows of a key are buffered until it is known whether they are kept.
pub(super) struct Pruner {
    /// The path that errors name.
    target: PathBuf,
    /// Whether several positions may share a key. The rows of such positions are interleaved, so all rows of a key are
    /// buffered.
    has_identities: bool,
    /// The current key.
    key: Option<u64>,
    /// The buffered rows of the current key.
    waiting: Vec<ClassRow>,
    /// The number of half-moves in the buffered rows.
    plies: u64,
    /// Whether a row of the current key has a move.
    has_moves: bool,
    /// Whether the current key's position has enough moves, so that further rows are passed on at once.
    is_kept: bool,
    /// The numbers of positions, rows and half-moves that have been dropped so far.
    pub pruned: Pruned,
    /// The number of positions with moves, including dropped ones.
    pub positions: u64,
    /// The number of pairs of position and move, including dropped ones.
    pub pairs: u64,
    /// The sort key of the last row.
    place: Option<(i64, BookMove, u64)>,
}

impl Pruner {
    /// Creates a filter that keeps positions in which at least `min_game` moves were counted; 0 keeps all. Errors name
    /// `target`.
    pub(super) fn new(min_game: u64, has_identities: bool, target: &Path) -> Pruner {
        Pruner {
            target: target.to_owned(),
            has_identities,
            key: None,
            waiting: Vec::new(),
            plies: 0,
            has_moves: false,
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

    /// Takes the next row, and calls `out` with every row that is now known to be kept.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`, or an error if more than [`MOST_WAITING`] rows would have to be buffered.
    pub(super) fn take(
        &mut self,
        row: &ClassRow,
        out: &mut impl FnMut(&ClassRow) -> Result<()>,
    ) -> Result<()> {
        let (place, is_move) = (row.place(), row.row.mv != BookMove::NONE);
        let is_next = self.place.replace(place) != Some(place);
        self.pairs += u64::from(is_next && is_move);
        if self.key != Some(row.row.key) {
            self.end_key(out)?;
            self.key = Some(row.row.key);
        }
        let had_moves = self.has_moves;
        self.has_moves |= is_move;
        if !self.is_kept {
            self.plies += row.row.plies();
            if self.has_identities || self.plies < self.pruned.min_game {
                if self.waiting.len() == MOST_WAITING {
                    let problem = format!(
                        "the positions of one key have more than {MOST_WAITING} rows, which is too many for --min-game: count \
                         fewer classes"
                    );
                    return Err(Error::too_large(&self.target, problem));
                }
                self.waiting.push(*row);
                return Ok(());
            }
            self.is_kept = true;
            self.positions += u64::from(had_moves);
            self.waiting.drain(..).try_for_each(|row| out(&row))?;
        }
        self.positions += u64::from(is_move && !had_moves);
        out(row)
    }

    /// Decides about the buffered rows of the current key, and calls `out` with those that are kept. Must also be
    /// called after the last row.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`.
    pub(super) fn end_key(&mut self, out: &mut impl FnMut(&ClassRow) -> Result<()>) -> Result<()> {
        (self.plies, self.has_moves, self.is_kept) = (0, false, false);
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut positions: FxHashMap<u64, (u64, bool)> = FxHashMap::default();
        for ClassRow { row, .. } in &self.waiting {
            let (plies, has_moves) = positions.entry(row.identity).or_default();
            *plies += row.plies();
            *has_moves |= row.mv != BookMove::NONE;
        }
        let least = self.pruned.min_game;
        for (plies, _) in positions.values().filter(|(_, has_moves)| *has_moves) {
            self.positions += 1;
            self.pruned.positions += u64::from(*plies < least);
        }
        for row in self.waiting.drain(..) {
            if positions[&row.row.identity].0 >= least {
                out(&row)?;
            } else {
                self.pruned.rows += 1;
                self.pruned.plies += row.row.plies();
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
        counts::{CountClass, Ratings, Row},
        tally::Stats,
    };

    proptest! {
        #[test]
        fn positions_of_few_moves_are_dropped_whole(
            mut rows in proptest::collection::vec((0..6u64, 0..4u16, 0..3u64, 0..4u64), 0..60),
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
                class: CountClass::default(),
                ratings: Ratings::default(),
            };
            rows.sort();
            let rows: Vec<ClassRow> = rows.into_iter().map(row).collect();
            let plies_of = |of: &ClassRow| rows.iter()
                .filter(|row| (row.row.key, row.row.identity) == (of.row.key, of.row.identity))
                .map(|row| row.row.plies())
                .sum::<u64>();
            let (kept, dropped): (Vec<ClassRow>, Vec<ClassRow>) =
                rows.iter().partition(|row| plies_of(row) >= least);
            let (mut pruner, mut found) = (Pruner::new(least, has_identities, Path::new("x")), Vec::new());
            for row in &rows {
                pruner.take(row, &mut |row| { found.push(*row); Ok(()) }).unwrap();
            }
            pruner.end_key(&mut |row| { found.push(*row); Ok(()) }).unwrap();
            prop_assert_eq!(found, kept);
            let positions = |rows: &[ClassRow]| {
                let with_moves = rows.iter().filter(|row| row.row.mv != BookMove::NONE);
                let mut all: Vec<_> = with_moves.map(|row| (row.row.key, row.row.identity)).collect();
                all.sort();
                all.dedup();
                all.len() as u64
            };
            prop_assert_eq!(pruner.positions, positions(&rows));
            prop_assert_eq!(pruner.pruned, Pruned {
                min_game: least,
                positions: positions(&dropped),
                rows: dropped.len() as u64,
                plies: dropped.iter().map(|row| row.row.plies()).sum(),
            });
        }
    }

    #[test]
    fn the_number_of_buffered_rows_of_a_key_is_limited() {
        let mut pruner = Pruner::new(9, true, Path::new("x"));
        let row = ClassRow::from(Row {
            key: 1,
            identity: 1,
            mv: BookMove(1),
            turn: Color::White,
            stats: Stats::default(),
        });
        let mut take = || pruner.take(&row, &mut |_| Ok(()));
        (0..MOST_WAITING).for_each(|_| take().unwrap());
        let err = take().unwrap_err().to_string();
        assert!(err.contains("x: the positions of one key"), "{err}");
    }
}

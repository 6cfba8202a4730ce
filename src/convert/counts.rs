//! Recovering the counts of a database: the results of each move, by the Polyglot key of its position.

use std::collections::HashSet;

use rayon::{ThreadPool, prelude::*};
use shakmaty::{Position, variant::VariantPosition};

use super::{Convert, pinned};
use crate::{
    counts::{CountBatch, Counts, Memory, Tally},
    error::Result,
    obs::{ObsRow, PassedOver, legal_move},
    position::{BookMove, Keyed, Variant, has_inner_castling_rook},
    suite::is_chess960_start,
    task,
};

/// The maximum number of rows that are read before all threads count them.
const BATCH: usize = 1 << 16;
/// The size of a batch at which it is counted, in bytes.
const BATCH_BYTES: usize = 1 << 24;

/// The counts of a database.
pub(super) struct DatabaseCounts {
    pub counts: Counts,
    /// The start positions of Chess960 that the database contains, deduplicated.
    pub starts: Vec<VariantPosition>,
    pub passed_over: PassedOver,
}

/// The counts of some rows.
#[derive(Default)]
struct RowCounts {
    counts: CountBatch,
    /// The counts of positions whose EPD may lack an en passant square that the key has, and notes of double steps; see
    /// [`pinned`].
    hidden: CountBatch,
    /// Whether an EPD has the en passant square of a pinned pawn.
    names_pinned: bool,
    starts: Vec<Keyed<VariantPosition>>,
    passed_over: PassedOver,
}

impl Convert {
    /// Counts the active rows by the keys of their positions. This thread reads the rows, and the threads of `pool`
    /// count them.
    ///
    /// If `arrivals` is `true`, also counts the games that reached each position. The position's identity is the key of these
    /// counts, their move is [no move](BookMove::NONE), and the results are those of the side that made the last move.
    pub(super) fn count(
        &self,
        variant: Variant,
        arrivals: bool,
        pool: &ThreadPool,
        memory: Memory,
    ) -> Result<DatabaseCounts> {
        self.meter.add_total(self.obs.about_rows());
        let hidden = Tally::new(memory.share(8));
        let tally = Tally::new(memory);
        let mut is_exact = false;
        let mut starts = Vec::new();
        let mut known_starts = HashSet::new();
        let mut passed_over = PassedOver::default();
        let mut batch = Vec::with_capacity(BATCH);
        let mut take = |batch: &mut Vec<ObsRow>| -> Result<()> {
            self.meter.advance(batch.len() as u64);
            let size = batch.len().div_ceil(pool.current_num_threads()).max(1);
            let parts: Vec<RowCounts> = pool.install(|| {
                let parts = batch.par_chunks(size);
                parts
                    .map(|rows| count_rows(rows, variant, arrivals))
                    .collect()
            });
            for part in parts {
                tally.add_batch(&part.counts)?;
                hidden.add_batch(&part.hidden)?;
                is_exact |= part.names_pinned;
                for start in part.starts {
                    if known_starts.insert(start.identity()) {
                        starts.push(start.position().clone());
                    }
                }
                passed_over.add(part.passed_over);
            }
            batch.clear();
            tally.refuse_many_large(self.obs.path())
        };
        let mut bytes = 0;
        let mut rows = self.obs.rows()?;
        for row in &mut rows {
            let row = row?;
            if row.is_active() {
                bytes += row.bytes();
                batch.push(row);
            }
            if batch.len() == BATCH || bytes >= BATCH_BYTES {
                bytes = 0;
                take(&mut batch)?;
            }
        }
        take(&mut batch)?;
        passed_over.add(rows.passed_over().clone());
        let hidden = pool.install(|| hidden.seal())?;
        pinned::add_hidden(&hidden, is_exact, &tally)?;
        Ok(DatabaseCounts {
            counts: pool.install(|| tally.seal())?,
            starts,
            passed_over,
        })
    }
}

/// Adds up the moves in rows of a database. The EPD of adjacent rows is parsed only once if it is the same. Rows that
/// cannot be read are reported as passed over in the result. With `arrivals`, also counts how many games reached the
/// position after each move.
fn count_rows(rows: &[ObsRow], variant: Variant, arrivals: bool) -> RowCounts {
    task::fault("count rows");
    let mut found = RowCounts::default();
    for rows in rows.chunk_by(|a, b| a.epd == b.epd) {
        let pos = match variant.parse_position(&rows[0].epd) {
            Ok(pos) => pos,
            Err(err) => {
                for row in rows {
                    found.passed_over.row(row, &err.to_string());
                }
                continue;
            }
        };
        let pos = Keyed::new(pos);
        let turn = pos.position().turn();
        let in_book = !has_inner_castling_rook(pos.position());
        let hides = !pos.other_exact_identities().is_empty();
        found.names_pinned |= pinned::pinned_square(pos.position()).is_some();
        for row in rows {
            let Some(mv) = legal_move(pos.position(), &row.mv) else {
                found.passed_over.row(row, "not a legal move there");
                continue;
            };
            if arrivals {
                // Suites look positions up by their identities; keys are for books.
                found.counts.push(pos.identity(), mv, turn, row.stats);
            } else {
                pinned::note_step(pos.position(), mv, &mut found.hidden);
            }
            if in_book && !arrivals {
                let counts = match hides {
                    true => &mut found.hidden,
                    false => &mut found.counts,
                };
                counts.push(pos.key(), mv, turn, row.stats);
            }
            if let (true, Some(mv)) = (arrivals, mv.to_move(pos.position())) {
                let mut after = pos.clone();
                after.play(mv);
                let identity = after.identity();
                found.counts.push(identity, BookMove::NONE, turn, row.stats);
            }
        }
        if variant == Variant::Chess960 && is_chess960_start(&rows[0].epd) {
            found.starts.push(pos);
        }
    }
    found
}

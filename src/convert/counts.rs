//! The counts that a database was made of.

use rayon::{ThreadPool, prelude::*};
use shakmaty::{Position, variant::VariantPosition};

use super::{Convert, PassedOver};
use crate::{
    error::Result,
    obs::{Row, legal_move},
    position::{Variant, has_inner_castling_rook, key},
    tally::{CountRecord, Counts, Tally},
};

/// Rows that are read before they are looked at on all threads.
const BATCH: usize = 1 << 16;

/// What a database holds.
pub(super) struct Counted {
    pub counts: Counts,
    /// Starting positions of Chess960 that are in the database.
    pub starts: Vec<VariantPosition>,
    pub passed_over: PassedOver,
}

/// What some rows hold.
#[derive(Default)]
struct Found {
    records: Vec<CountRecord>,
    starts: Vec<VariantPosition>,
    passed_over: PassedOver,
}

impl Convert {
    /// Counts the active rows by the keys of their positions. They are read by this thread, and looked at
    /// by those of the pool.
    pub(super) fn count(&self, variant: Variant, pool: &ThreadPool) -> Result<Counted> {
        let tally = Tally::new(self.memory.clone());
        let mut starts = Vec::new();
        let mut passed_over = PassedOver::default();
        let mut batch = Vec::with_capacity(BATCH);
        let mut take = |batch: &mut Vec<Row>| -> Result<()> {
            let size = batch.len().div_ceil(pool.current_num_threads()).max(1);
            let parts: Vec<Found> = pool.install(|| {
                let parts = batch.par_chunks(size);
                parts.map(|rows| count_rows(rows, variant)).collect()
            });
            for part in parts {
                tally.add_records(&part.records)?;
                starts.extend(part.starts);
                passed_over.add(part.passed_over);
            }
            batch.clear();
            Ok(())
        };
        self.obs.for_each(|row| {
            if row.is_active() {
                batch.push(row);
            }
            if batch.len() == BATCH {
                take(&mut batch)?;
            }
            Ok(())
        })?;
        take(&mut batch)?;
        Ok(Counted {
            counts: pool.install(|| tally.seal())?,
            starts,
            passed_over,
        })
    }
}

impl PassedOver {
    pub(super) fn add(&mut self, other: PassedOver) {
        self.rows += other.rows;
        self.example = self.example.take().or(other.example);
    }

    pub(super) fn row(&mut self, row: &Row, reason: &str) {
        self.rows += 1;
        self.example
            .get_or_insert_with(|| format!("\"{}\" \"{}\": {reason}", row.epd, row.mv));
    }
}

fn count_rows(rows: &[Row], variant: Variant) -> Found {
    let mut found = Found::default();
    for rows in rows.chunk_by(|a, b| a.epd == b.epd) {
        let pos = match variant.parse_fen(&rows[0].epd) {
            Ok(pos) => pos,
            Err(err) => {
                for row in rows {
                    found.passed_over.row(row, &err.to_string());
                }
                continue;
            }
        };
        let key = key(&pos);
        let in_book = !has_inner_castling_rook(&pos);
        for row in rows {
            let Some(mv) = legal_move(&pos, &row.mv) else {
                found.passed_over.row(row, "not a legal move there");
                continue;
            };
            if in_book {
                CountRecord::extend(&mut found.records, key, mv, pos.turn(), row.stats);
            }
        }
        if variant == Variant::Chess960 && is_start(&rows[0].epd) {
            found.starts.push(pos);
        }
    }
    found
}

/// Whether games of Chess960 start like this: all pawns at home, the same pieces behind them, and all
/// castling rights.
fn is_start(epd: &str) -> bool {
    epd.contains("/pppppppp/8/8/8/8/PPPPPPPP/") && epd.ends_with(" w KQkq -")
}

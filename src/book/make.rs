//! Making a book from counts.

use std::io::Write;

use rayon::prelude::*;

use super::{
    entry::Entry,
    header,
    weight::{Scale, Scaling, Weighting},
};
use crate::{
    error::{At, Result},
    output::AtomicFile,
    position::BookMove,
    tally::{Counts, MoveCount},
};
use shakmaty::Color;

/// Chooses, weighs and writes the moves of counts.
#[derive(Clone, Debug)]
pub struct BookMaker<'a> {
    counts: &'a Counts,
    weighting: &'a Weighting,
    summary: BookSummary,
    /// How many records each shard will have.
    lengths: Vec<u64>,
}

/// What went into a book.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct BookSummary {
    /// Positions that were counted, in the book or not.
    pub positions: u64,
    /// Pairs of position and move that were counted, in the book or not.
    pub counted_entries: u64,
    /// Records of the book, without its header.
    pub entries: u64,
    /// The largest weight before scaling.
    pub largest_weight: u64,
    /// What every weight was multiplied with; 1 if each position has a scale of its own.
    pub scale: f64,
}

impl BookSummary {
    fn join(self, other: BookSummary) -> BookSummary {
        BookSummary {
            positions: self.positions + other.positions,
            counted_entries: self.counted_entries + other.counted_entries,
            entries: self.entries + other.entries,
            largest_weight: self.largest_weight.max(other.largest_weight),
            scale: 1.0,
        }
    }
}

impl<'a> BookMaker<'a> {
    /// Looks through the counts to see what the book will hold. Works on all threads of the rayon
    /// pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file of the counts that cannot be read.
    pub fn new(counts: &'a Counts, weighting: &'a Weighting) -> Result<BookMaker<'a>> {
        let summaries = (0..counts.shard_count())
            .into_par_iter()
            .map(|shard| {
                let mut summary = BookSummary::default();
                counts.for_each_position(shard, |key, turn, moves| {
                    summary.positions += 1;
                    summary.counted_entries += moves.len() as u64;
                    for (_, weight) in kept(weighting, key, turn, moves) {
                        summary.entries += 1;
                        summary.largest_weight = summary.largest_weight.max(weight);
                    }
                })?;
                Ok(summary)
            })
            .collect::<Result<Vec<BookSummary>>>()?;
        let lengths = summaries.iter().map(|summary| summary.entries).collect();
        let mut summary = summaries
            .into_iter()
            .fold(BookSummary::default(), BookSummary::join);
        summary.scale = match weighting.scale {
            Scale::Global => Scaling::new(summary.largest_weight).factor(),
            Scale::Position => 1.0,
        };
        Ok(BookMaker {
            counts,
            weighting,
            summary,
            lengths,
        })
    }

    /// What the book will hold.
    pub fn summary(&self) -> BookSummary {
        self.summary
    }

    /// Writes the book, but does not [commit](AtomicFile::commit) it: the header, if there is one, and the records in the order of their keys, then
    /// of their weights from high to low, then of their moves.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn write(&self, header: Option<&str>, out: &mut AtomicFile) -> Result<()> {
        let path = out.target().to_owned();
        let header = header.map_or_else(Vec::new, header::create_raw);
        out.write_all(&header).at(&path, "write")?;
        let scaling = Scaling::new(self.summary.largest_weight);
        let shards = self.counts.shard_count();
        if out.is_seekable() {
            // How long each shard gets is known, so all can be written at the same time.
            let mut next = header.len() as u64;
            let mut places = Vec::with_capacity(shards);
            for length in &self.lengths {
                places.push(next);
                next += length * Entry::SIZE as u64;
            }
            let buffer = Vec::new;
            (0..shards)
                .into_par_iter()
                .try_for_each_init(buffer, |records, shard| {
                    self.records(shard, scaling, records)?;
                    out.write_at(records, places[shard])
                })?;
        } else {
            let mut records = Vec::new();
            for shard in 0..shards {
                self.records(shard, scaling, &mut records)?;
                out.write_all(&records).at(&path, "write")?;
            }
        }
        Ok(())
    }

    /// Fills `bytes` with a shard's records.
    fn records(&self, shard: usize, global: Scaling, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        let mut entries: Vec<Entry> = Vec::new();
        self.counts.for_each_position(shard, |key, turn, moves| {
            // Most positions have one move, and nothing to put in order.
            if let ([count], Scale::Global) = (moves, self.weighting.scale) {
                let weight = self.weighting.weight(turn, count.stats);
                if let (Some(weight), true) = (weight, key != 0) {
                    let entry = Entry {
                        key,
                        mv: count.mv,
                        weight: global.apply(weight),
                        learn: 0,
                    };
                    bytes.extend_from_slice(&entry.to_bytes());
                }
                return;
            }
            let scaling = match self.weighting.scale {
                Scale::Global => global,
                Scale::Position => Scaling::new(
                    kept(self.weighting, key, turn, moves)
                        .map(|(_, weight)| weight)
                        .max()
                        .unwrap_or(0),
                ),
            };
            entries.clear();
            entries.extend(
                kept(self.weighting, key, turn, moves).map(|(mv, weight)| Entry {
                    key,
                    mv,
                    weight: scaling.apply(weight),
                    learn: 0,
                }),
            );
            if entries.len() > 1 {
                // Moves come in the order of their numbers, which a stable sort keeps.
                entries.sort_by_key(|entry| std::cmp::Reverse(entry.weight));
            }
            for entry in &entries {
                bytes.extend_from_slice(&entry.to_bytes());
            }
        })
    }
}

/// The moves of a position that are kept, with their weights before scaling. The null key is the
/// header's and never a position's.
#[inline]
fn kept<'a>(
    weighting: &'a Weighting,
    key: u64,
    turn: Color,
    moves: &'a [MoveCount],
) -> impl Iterator<Item = (BookMove, u64)> + 'a {
    moves
        .iter()
        .filter(move |_| key != 0)
        .filter_map(move |count| Some((count.mv, weighting.weight(turn, count.stats)?)))
}

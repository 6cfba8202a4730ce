//! Making a book from counts.

use std::{cmp::Reverse, io::Write, mem, path::Path, sync::Arc};

use rayon::prelude::*;
use shakmaty::{Color, variant::VariantPosition};

use super::{
    dropped::{Dropped, LossSummary},
    file::{BookWriter, checksum_of},
    header::{self, HeaderError, PORTABLE_LENGTH, with_checksum},
    minimax::{BackedUp, MinimaxSummary},
    open::Book,
    records::Entry,
    weight::{Scale, Scaling, Weights},
};
use crate::{
    error::{At, Result},
    evals::MaxLoss,
    output::AtomicFile,
    position::{BookMove, Variant},
    progress::Meter,
    provenance::Provenance,
    sort::Memory,
    tally::{Counts, MoveCount, MoveFilter},
    task,
};

/// Chooses, weighs and writes the moves of counts.
#[derive(Clone, Debug)]
pub struct BookMaker<'a> {
    counts: &'a Counts,
    filter: &'a MoveFilter,
    weights: &'a Weights,
    summary: BookSummary,
    adjustments: Adjustments,
    /// The moves that each shard gives to the book, where they are few.
    kept: Vec<Option<Vec<Kept>>>,
}

/// What changes the weights of moves after the first look.
#[derive(Clone, Default, Debug)]
struct Adjustments {
    /// The moves that are left out because they lose too much, and the option that says so.
    dropped: Option<Arc<(Dropped, String)>>,
    backed_up: Option<Arc<BackedUp>>,
}

/// A move that is kept.
#[derive(Copy, Clone, Debug)]
struct Kept {
    key: u64,
    mv: BookMove,
    /// Before scaling.
    weight: u64,
}

/// At most this many kept moves of a shard are remembered. Others are looked up again.
const FEW: usize = 1024;

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
    pub fn new(
        counts: &'a Counts,
        filter: &'a MoveFilter,
        weights: &'a Weights,
    ) -> Result<BookMaker<'a>> {
        BookMaker::adjusted(counts, filter, weights, Adjustments::default())
    }

    /// The book with weights that are lowered as [`Weights::minimax`] says, in the positions that its lines reach from some
    /// starts. Errors call the book `path`.
    ///
    /// # Errors
    ///
    /// A temporary file of the counts that cannot be read, or more moves than memory holds.
    pub fn backed_up(
        &self,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<BookMaker<'a>> {
        let (counts, filter, weights) = (self.counts, self.filter, self.weights);
        let mut adjustments = self.adjustments.clone();
        if let Some(percent) = weights.minimax {
            let lowered = BackedUp::of(counts, filter, weights, percent, starts, memory, path)?;
            adjustments.backed_up = Some(Arc::new(lowered));
        }
        BookMaker::adjusted(counts, filter, weights, adjustments)
    }

    /// The book without the moves that lose too much, in the positions that its lines reach from the start of a variant.
    ///
    /// # Errors
    ///
    /// A temporary file or a store of evaluations that cannot be read.
    pub fn leaving_out(
        &self,
        max_loss: &MaxLoss,
        variant: Variant,
        memory: &Memory,
    ) -> Result<BookMaker<'a>> {
        let temp_dir = &memory.temp_dir;
        let book = Book::temporary(temp_dir, |out| {
            let mut records = Vec::new();
            for shard in 0..self.counts.shard_count() {
                records.clear();
                self.records(shard, &mut records)?;
                out.write_all(&records)
                    .at(temp_dir, "write a temporary file in")?;
            }
            Ok(())
        })?;
        let dropped = Dropped::of(&book, variant, Some(max_loss), memory, &Meter::default())?;
        let adjustments = Adjustments {
            dropped: Some(Arc::new((dropped, max_loss.to_string()))),
            ..self.adjustments.clone()
        };
        BookMaker::adjusted(self.counts, self.filter, self.weights, adjustments)
    }

    fn adjusted(
        counts: &'a Counts,
        filter: &'a MoveFilter,
        weights: &'a Weights,
        adjustments: Adjustments,
    ) -> Result<BookMaker<'a>> {
        let mut maker = BookMaker {
            counts,
            filter,
            weights,
            adjustments,
            summary: BookSummary::default(),
            kept: Vec::new(),
        };
        let (summaries, kept): (Vec<BookSummary>, _) = (0..counts.shard_count())
            .into_par_iter()
            .map(|shard| maker.look_through(shard))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .unzip();
        maker.kept = kept;
        maker.summary = summaries
            .into_iter()
            .fold(BookSummary::default(), BookSummary::join);
        let rare = counts.rare();
        maker.summary.positions += rare.groups;
        maker.summary.counted_entries += rare.records;
        maker.summary.scale = match weights.scale {
            Scale::Global => Scaling::new(maker.summary.largest_weight).factor(),
            Scale::Position => 1.0,
        };
        Ok(maker)
    }

    /// What a shard gives to the book, and the moves if they are few.
    fn look_through(&self, shard: usize) -> Result<(BookSummary, Option<Vec<Kept>>)> {
        let mut summary = BookSummary::default();
        let mut kept = Some(Vec::new());
        task::fault("weigh");
        self.counts.for_each_position(shard, |key, turn, moves| {
            summary.positions += 1;
            summary.counted_entries += moves.len() as u64;
            for count in moves {
                let weight = self.weight(key, turn, count);
                summary.entries += u64::from(weight > 0);
                summary.largest_weight = summary.largest_weight.max(weight);
                if let Some(few) = &mut kept
                    && weight > 0
                {
                    let mv = count.mv;
                    few.push(Kept { key, mv, weight });
                    if few.len() > FEW {
                        kept = None;
                    }
                }
            }
        })?;
        Ok((summary, kept))
    }

    /// What the book will hold.
    pub fn summary(&self) -> BookSummary {
        self.summary
    }

    /// How many moves are left out because they lose too much, if some shall be.
    pub fn losses(&self) -> Option<LossSummary> {
        let dropped = self.adjustments.dropped.as_ref();
        dropped.map(|dropped| dropped.0.losses)
    }

    /// What became of moves by what the counts show after them, if that was asked for.
    pub fn minimax(&self) -> Option<MinimaxSummary> {
        let backed_up = self.adjustments.backed_up.as_ref();
        backed_up.map(|backed_up| backed_up.summary)
    }

    /// The text of the book's header, with `comment`, or else with a comment that says where the
    /// counts come from, how moves were chosen and weighed, and in a line that [`write`](BookMaker::write)
    /// fills in, the checksum of the book.
    ///
    /// # Errors
    ///
    /// [`HeaderError::BadParameter`] for a variant or comment that no header can hold, and
    /// [`HeaderError::TooLong`].
    pub fn header<S: AsRef<str>>(
        &self,
        variants: &[S],
        comment: Option<&str>,
        provenance: &Provenance,
    ) -> Result<String, HeaderError> {
        let header = match comment {
            Some(comment) => header::create(variants, comment)?,
            None => header::create(variants, &with_checksum(&self.comment(provenance)))?,
        };
        // The null byte counts.
        match header.len() + 1 {
            length if length > PORTABLE_LENGTH => Err(HeaderError::TooLong(length)),
            _ => Ok(header),
        }
    }

    fn comment(&self, provenance: &Provenance) -> String {
        let max_loss = self.adjustments.dropped.as_ref();
        let max_loss = max_loss.map(|dropped| dropped.1.clone());
        let options = [
            self.filter.option_text(),
            self.weights.option_text(),
            max_loss.unwrap_or_default(),
        ];
        let origin = provenance.comment(&options.each_ref().map(String::as_str));
        let formula = self.weights.formula();
        let BookSummary {
            scale,
            largest_weight,
            ..
        } = self.summary;
        let scale = match self.weights.scale {
            Scale::Global => format!("{scale} (largest weight {largest_weight})"),
            Scale::Position => "each position's own".to_owned(),
        };
        format!("{origin}\nWeight: {formula}\nScale: {scale}")
    }

    /// Writes the book, but does not [commit](AtomicFile::commit) it: the header, if there is one, and
    /// the records in the order of their keys, then of their weights from high to low, then of their
    /// moves. The records for a pipe go to a temporary file in `temp_dir` first, if the header gets their checksum.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn write(&self, header: Option<&str>, out: &mut AtomicFile, temp_dir: &Path) -> Result<()> {
        let target = out.target().to_owned();
        let mut file = BookWriter::begin(out, header, temp_dir)?;
        let mut shards = vec![Vec::new(); rayon::current_num_threads()];
        for first in (0..self.counts.shard_count()).step_by(shards.len()) {
            let numbers = first..self.counts.shard_count();
            let sums = shards
                .par_iter_mut()
                .zip(numbers)
                .map(|(records, shard)| {
                    task::fault("write book");
                    // Threads that grow neighbors would wait for each other's cache lines.
                    let mut own = mem::take(records);
                    own.clear();
                    self.records(shard, &mut own)?;
                    *records = own;
                    Ok(checksum_of(records))
                })
                .collect::<Result<Vec<_>>>()?;
            for (records, sum) in shards.iter().zip(sums) {
                file.append(records, sum).at(&target, "write")?;
            }
        }
        file.finish()
    }

    /// Appends a shard's records.
    fn records(&self, shard: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let global = Scaling::new(self.summary.largest_weight);
        let mut entries: Vec<Entry> = Vec::new();
        if let Some(kept) = &self.kept[shard] {
            for position in kept.chunk_by(|a, b| a.key == b.key) {
                self.position_records(position.iter().copied(), global, &mut entries, bytes);
            }
            return Ok(());
        }
        self.counts.for_each_position(shard, |key, turn, moves| {
            // Most positions have one move. Whether it has a weight cannot be guessed, so it is written first.
            if let ([count], Scale::Global) = (moves, self.weights.scale) {
                let weight = self.weight(key, turn, count);
                let entry = Entry {
                    key,
                    mv: count.mv,
                    weight: global.apply(weight),
                    learn: 0,
                };
                let length = bytes.len();
                bytes.extend_from_slice(&entry.to_bytes());
                bytes.truncate(length + Entry::SIZE * usize::from(weight > 0));
                return;
            }
            let weighed = moves.iter().map(|count| Kept {
                key,
                mv: count.mv,
                weight: self.weight(key, turn, count),
            });
            let kept = weighed.filter(|count| count.weight > 0);
            self.position_records(kept, global, &mut entries, bytes);
        })
    }

    /// Appends the records of a position, given its moves in the order of their numbers.
    fn position_records(
        &self,
        kept: impl Iterator<Item = Kept> + Clone,
        global: Scaling,
        entries: &mut Vec<Entry>,
        bytes: &mut Vec<u8>,
    ) {
        let scaling = match self.weights.scale {
            Scale::Global => global,
            Scale::Position => {
                let largest = kept.clone().map(|count| count.weight).max();
                Scaling::new(largest.unwrap_or(0))
            }
        };
        entries.clear();
        entries.extend(kept.map(|Kept { key, mv, weight }| Entry {
            key,
            mv,
            weight: scaling.apply(weight),
            learn: 0,
        }));
        // A stable sort keeps the order of the moves.
        entries.sort_by_key(|entry| Reverse(entry.weight));
        for entry in entries {
            bytes.extend_from_slice(&entry.to_bytes());
        }
    }

    /// The weight of a move before scaling, 0 if it is not kept. The null key is the header's and never a
    /// position's.
    #[inline]
    fn weight(&self, key: u64, turn: Color, count: &MoveCount) -> u64 {
        if key == 0 || !self.filter.selects(turn, count.stats) {
            return 0;
        }
        let weight = self.weights.weight(count.stats);
        match &self.adjustments {
            Adjustments {
                dropped: None,
                backed_up: None,
            } => weight,
            adjustments => adjustments.adjusted(key, count.mv, weight),
        }
    }
}

impl Adjustments {
    /// The weight of a move, 0 if it is left out.
    #[cold]
    fn adjusted(&self, key: u64, mv: BookMove, weight: u64) -> u64 {
        let dropped = self.dropped.as_ref();
        if dropped.is_some_and(|dropped| dropped.0.contains(key, mv)) {
            return 0;
        }
        let backed_up = self.backed_up.as_ref();
        backed_up.map_or(weight, |backed_up| backed_up.lowered(key, mv, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        provenance::Games,
        tally::{Memory, Tally},
    };

    fn header(comment: Option<&str>, provenance: &Provenance) -> Result<String, HeaderError> {
        let counts = Tally::new(Memory::default()).seal().unwrap();
        let (filter, weights) = (MoveFilter::default(), Weights::default());
        let maker = BookMaker::new(&counts, &filter, &weights).unwrap();
        maker.header(&["normal"], comment, provenance)
    }

    #[test]
    fn the_comment_always_fits() {
        let provenance = Provenance {
            inputs: (0..500)
                .map(|i| format!("\u{1F600}long name\n{i}.pgn"))
                .collect(),
            games: Some(Games::default()),
            options: format!("--player {}", "x".repeat(5000)),
        };
        let header = header(None, &provenance).unwrap();
        let comment = header::parse(&header).unwrap().comment;
        assert_eq!(comment.lines().count(), 7);
    }

    #[test]
    fn a_comment_of_ones_own_must_fit() {
        let made = |length| header(Some(&"x".repeat(length)), &Provenance::default());
        let rest = made(0).unwrap().len() + 1;
        assert!(made(PORTABLE_LENGTH - rest).is_ok());
        let err = made(PORTABLE_LENGTH - rest + 1).unwrap_err();
        assert_eq!(err, HeaderError::TooLong(PORTABLE_LENGTH + 1));
    }
}

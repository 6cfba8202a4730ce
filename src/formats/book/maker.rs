//! Makes a book from counted games. [`DroppedMoves`] finds the moves that are dropped from a book because they are
//! illegal or lose too much.

use std::{cmp::Reverse, collections::BTreeSet, io::Write, path::Path, sync::Arc};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Color, Move, variant::VariantPosition};

use super::{
    eval_weights::{CountedEvalWeights, EvalWeights, EvalWeightsSummary},
    header::{self, HeaderError, PORTABLE_LENGTH, with_checksum},
    lines::{LegalMoves, PlayableMoves, has_third_check},
    reader::Book,
    records::{Entry, key_and_move, with_format_castling},
    weights::{MinimaxFactors, MinimaxSummary, Scale, Scaling, Weights},
    writer::{BookWriter, temporary_book},
};
use crate::{
    chess::position::{BookMove, Variant, line_text},
    error::{At, Result},
    formats::{
        counts::{Counts, MoveCount, MoveFilter},
        evals::{Loss, MaxLoss},
        walk::{each_position, shortest_lines},
    },
    progress::Meter,
    provenance::Provenance,
    storage::checksum::Checksum,
    storage::output::AtomicFile,
    storage::sort::{Memory, SpillingSet},
    task,
};

/// A builder of a book from counted games. It selects moves by their wins, draws and losses, computes their weights,
/// and writes them as a book.
#[derive(Clone, Debug)]
pub struct BookMaker<'a> {
    counts: &'a Counts,
    filter: &'a MoveFilter,
    weights: &'a Weights,
    summary: BookSummary,
    adjustments: Adjustments,
    /// Whether neither `filter` nor `adjustments` changes the weight of any move.
    is_plain: bool,
    shards: Vec<ShardMoves>,
}

/// The moves of one shard that are kept in a book. A shard is one of 256 ranges of position keys.
#[derive(Clone, Debug)]
struct ShardMoves {
    /// The number of the book's records before those of the shard, without the header.
    first: u64,
    /// The moves that the book keeps, or `None` if there are too many to hold in memory.
    kept: Option<Vec<WeighedMove>>,
}

/// The changes that the options `--weights`, `--minimax` and `--max-loss` make to a book. `--weights` replaces weights
/// by those from evaluations, `--minimax` lowers weights, and `--max-loss` drops moves. Each change is applied to the
/// result of the previous one.
#[derive(Clone, Default, Debug)]
struct Adjustments {
    /// The moves that are left out because they lose too much, and the text of the option that requests this.
    dropped: Option<Arc<(DroppedMoves, String)>>,
    evals: Option<Arc<CountedEvalWeights>>,
    minimax: Option<Arc<MinimaxFactors>>,
}

/// A move that the book keeps, with its position key and its weight.
#[derive(Copy, Clone, Debug)]
struct WeighedMove {
    key: u64,
    mv: BookMove,
    /// The weight before scaling, above 0.
    weight: u64,
}

/// The maximum number of moves that a [`BookMaker`] keeps in memory for each shard of its results. A shard is one of
/// 256 ranges of position keys. If the book has more moves in a shard, their weights are recomputed when they are
/// needed.
const MAX_CACHED_MOVES: usize = 1024;

/// Statistics about a book that is made from counted games: the numbers of positions and moves, and the scaling of the
/// weights.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct BookSummary {
    /// The number of counted positions, whether or not they are in the book.
    pub positions: u64,
    /// The number of counted pairs of a position and a move, whether or not they are in the book.
    pub counted_entries: u64,
    /// The number of records of the book, without its header.
    pub entries: u64,
    /// The largest weight before scaling.
    pub largest_weight: u64,
    /// The factor by which all weights were multiplied, or 1 if each position has its own factor.
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
    /// Creates a builder for a book of the moves in `counts` that `filter` selects, with the weights that `weights`
    /// computes. Reads `counts` once to find these moves. Uses all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file with counted games cannot be read.
    pub fn new(
        counts: &'a Counts,
        filter: &'a MoveFilter,
        weights: &'a Weights,
    ) -> Result<BookMaker<'a>> {
        BookMaker::adjusted(counts, filter, weights, Adjustments::default())
    }

    /// Creates a builder for the same book with weights from evaluations, which [`EvalWeights`] describes. Only
    /// positions that can be reached from `starts` by moves with enough games get new weights. Error messages name
    /// `path`, the path of the book.
    ///
    /// # Errors
    ///
    /// Returns an error if the store of evaluations or a temporary file with counted games cannot be read, or if the
    /// positions and moves exceed the budget `memory`.
    pub fn with_evals(
        &self,
        rule: &EvalWeights,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<BookMaker<'a>> {
        let (counts, filter, weights) = (self.counts, self.filter, self.weights);
        let evals = rule.of_counts(counts, filter, weights, starts, memory, path)?;
        let adjustments = Adjustments {
            evals: Some(Arc::new(evals)),
            ..self.adjustments.clone()
        };
        BookMaker::adjusted(counts, filter, weights, adjustments)
    }

    /// Creates a builder for the same book with lower weights for moves whose continuations scored badly in the counted
    /// games. [`Weights::minimax`] describes this change. Only positions that can be reached from `starts` by moves
    /// with enough games are affected. Error messages name `path`, the path of the book.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file with counted games cannot be read, or if the positions and moves exceed the
    /// budget `memory`.
    pub fn with_minimax(
        &self,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<BookMaker<'a>> {
        let (counts, filter, weights) = (self.counts, self.filter, self.weights);
        let mut adjustments = self.adjustments.clone();
        if let Some(percent) = weights.minimax {
            let base = |key, mv, stats| {
                let weight = weights.weight(stats);
                let evals = self.adjustments.evals.as_ref();
                evals.map_or(weight, |evals| evals.weight(key, mv, weight))
            };
            let lowered = MinimaxFactors::of(counts, filter, &base, percent, starts, memory, path)?;
            adjustments.minimax = Some(Arc::new(lowered));
        }
        BookMaker::adjusted(counts, filter, weights, adjustments)
    }

    /// Creates a builder for the same book without the moves that, according to evaluations, worsen the position by
    /// more than `max_loss` allows. Examines only the positions that moves of the book reach from the starting position
    /// of `variant`. If the weights come from evaluations, the values of the moves replace the evaluations of the
    /// positions after them.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file or a store of evaluations cannot be read.
    pub fn without_losing_moves(
        &self,
        max_loss: &MaxLoss,
        variant: Variant,
        memory: &Memory,
    ) -> Result<BookMaker<'a>> {
        let temp_dir = &memory.temp_dir;
        let book = temporary_book(temp_dir, temp_dir, |out| {
            let mut records = Vec::new();
            for shard in 0..self.counts.shard_count() {
                records.clear();
                self.records(shard, &mut records)?;
                out.write_all(&records)
                    .at(temp_dir, "write a temporary file in")?;
            }
            Ok(())
        })?;
        let values = self.adjustments.evals.as_ref().map(|evals| &evals.values);
        let max_loss = match values {
            Some(values) => &max_loss.with_values(Arc::clone(values)),
            None => max_loss,
        };
        let dropped = DroppedMoves::of(&book, variant, Some(max_loss), memory, &Meter::default())?;
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
        let is_plain = *filter == MoveFilter::every_move()
            && adjustments.dropped.is_none()
            && adjustments.evals.is_none()
            && adjustments.minimax.is_none();
        let mut maker = BookMaker {
            counts,
            filter,
            weights,
            adjustments,
            is_plain,
            summary: BookSummary::default(),
            shards: Vec::new(),
        };
        let surveys = (0..counts.shard_count())
            .into_par_iter()
            .map(|shard| maker.survey(shard))
            .collect::<Result<Vec<_>>>()?;
        for (summary, kept) in surveys {
            let first = maker.summary.entries;
            maker.shards.push(ShardMoves { first, kept });
            maker.summary = maker.summary.join(summary);
        }
        let rare = counts.rare();
        maker.summary.positions += rare.groups;
        maker.summary.counted_entries += rare.records;
        maker.summary.scale = match weights.scale {
            Scale::Global => Scaling::new(maker.summary.largest_weight).factor(),
            Scale::Position => 1.0,
        };
        Ok(maker)
    }

    /// Selects the moves that the book keeps of one shard, which is one of 256 ranges of position keys. Returns
    /// statistics about the shard, and the selected moves, or `None` instead of the moves if there are too many to keep
    /// in memory.
    fn survey(&self, shard: usize) -> Result<(BookSummary, Option<Vec<WeighedMove>>)> {
        let mut summary = BookSummary::default();
        // If nearly every move is kept, keeping moves takes longer than computing their weights again.
        let mut kept = (self.filter.min_game > 1).then(Vec::new);
        task::fault("weigh");
        self.counts.for_each_position(shard, |key, turn, moves| {
            summary.positions += 1;
            summary.counted_entries += moves.len() as u64;
            for count in moves {
                let weight = self.weight(key, turn, count);
                summary.entries += u64::from(weight > 0);
                summary.largest_weight = summary.largest_weight.max(weight);
                if weight > 0 && kept.is_some() {
                    let mv = count.mv;
                    keep(&mut kept, WeighedMove { key, mv, weight });
                }
            }
        })?;
        Ok((summary, kept))
    }

    /// Returns statistics about the book. They are known before [`write`](BookMaker::write) is called.
    pub fn summary(&self) -> BookSummary {
        self.summary
    }

    /// Returns statistics about the moves that were left out because they lose too much according to evaluations.
    /// Returns `None` if [`without_losing_moves`](BookMaker::without_losing_moves) was not applied.
    pub fn losses(&self) -> Option<LossSummary> {
        let dropped = self.adjustments.dropped.as_ref();
        dropped.map(|dropped| dropped.0.losses.clone())
    }

    /// Returns the numbers of moves whose weights were or were not computed from evaluations. Returns `None` if
    /// [`with_evals`](BookMaker::with_evals) was not applied.
    pub fn eval_weights(&self) -> Option<EvalWeightsSummary> {
        let evals = self.adjustments.evals.as_ref();
        evals.map(|evals| evals.summary)
    }

    /// Returns statistics about the moves whose weights were lowered because their continuations scored badly. Returns
    /// `None` if [`with_minimax`](BookMaker::with_minimax) was not applied, or if [`Weights::minimax`] is not set.
    pub fn minimax(&self) -> Option<MinimaxSummary> {
        let minimax = self.adjustments.minimax.as_ref();
        minimax.map(|minimax| minimax.summary)
    }

    /// Creates the text of the book's header.
    ///
    /// If `comment` is `None`, a comment is generated. The comment states from which games the book was made
    /// (`provenance`), and how moves were selected and weighted. Its last line is for the checksum, which
    /// [`write`](BookMaker::write) fills in.
    ///
    /// # Errors
    ///
    /// Returns [`HeaderError::BadParameter`] if a header cannot contain a variant or the comment, and
    /// [`HeaderError::TooLong`] if the header is longer than [`PORTABLE_LENGTH`] bytes.
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
        // The text is followed by a null byte, which counts as part of the header.
        match header.len() + 1 {
            length if length > PORTABLE_LENGTH => Err(HeaderError::TooLong(length)),
            _ => Ok(header),
        }
    }

    fn comment(&self, provenance: &Provenance) -> String {
        let max_loss = self.adjustments.dropped.as_ref();
        let max_loss = max_loss.map(|dropped| dropped.1.clone());
        let evals = self.adjustments.evals.as_ref().map(|evals| &evals.rule);
        let options = [
            self.filter.option_text(),
            evals.map(ToString::to_string).unwrap_or_default(),
            self.weights.option_text(),
            max_loss.unwrap_or_default(),
        ];
        let origin = provenance.comment(&options.each_ref().map(String::as_str));
        let results = self.weights.formula();
        let formula = evals.map_or_else(|| results.clone(), |evals| evals.formula(&results));
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

    /// Writes the book to `out`: first the header, unless `header` is `None`, and then the records. Does not
    /// [commit](AtomicFile::commit) the file.
    ///
    /// Records are sorted by key, then by descending weight, then by move. If `out` is a pipe, the records are first
    /// written to a temporary file in `temp_dir`. Uses all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written, or if a temporary file with counted games cannot be read.
    pub fn write(&self, header: Option<&str>, out: &mut AtomicFile, temp_dir: &Path) -> Result<()> {
        let mut file = BookWriter::begin(out, header, temp_dir)?;
        let sums = self.shards.par_iter().enumerate();
        let sums = sums.map_init(Vec::new, |records, (shard, ShardMoves { first, .. })| {
            task::fault("write book");
            records.clear();
            self.records(shard, records)?;
            file.write_at(records, *first)
        });
        let sum = sums.try_reduce(Checksum::default, |a, b| Ok(a.plus(b)))?;
        file.add_checksum(sum);
        file.finish()
    }

    /// Appends the records of the shard with the number `shard` to `bytes`. A shard is one of 256 ranges of position
    /// keys.
    fn records(&self, shard: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let global = Scaling::new(self.summary.largest_weight);
        let mut entries: Vec<Entry> = Vec::new();
        if let Some(kept) = &self.shards[shard].kept {
            for position in kept.chunk_by(|a, b| a.key == b.key) {
                self.position_records(position.iter().copied(), global, &mut entries, bytes);
            }
            return Ok(());
        }
        self.counts.for_each_position(shard, |key, turn, moves| {
            // Most positions have one move. Writing the record before its weight is checked avoids an unpredictable
            // branch.
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
            let weighed = moves.iter().map(|count| WeighedMove {
                key,
                mv: count.mv,
                weight: self.weight(key, turn, count),
            });
            let kept = weighed.filter(|count| count.weight > 0);
            self.position_records(kept, global, &mut entries, bytes);
        })
    }

    /// Appends the records of one position, with scaled weights, to `bytes`. `kept` contains the moves in ascending
    /// order. `global` is the scaling of the whole book, which is used unless the weights of each position are scaled
    /// separately. `entries` is a buffer that is reused to avoid allocations.
    fn position_records(
        &self,
        kept: impl Iterator<Item = WeighedMove> + Clone,
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
        entries.extend(kept.map(|WeighedMove { key, mv, weight }| Entry {
            key,
            mv,
            weight: scaling.apply(weight),
            learn: 0,
        }));
        // The sort is stable, so moves of equal weight stay sorted by move.
        entries.sort_by_key(|entry| Reverse(entry.weight));
        for entry in entries {
            bytes.extend_from_slice(&entry.to_bytes());
        }
    }

    /// Returns the weight of a move before scaling, or 0 if the book does not keep the move. `key` is the key of the
    /// position, `turn` is the side to move, and `count` contains the move and its results. A book never keeps moves of
    /// a position with the key 0, because records with this key contain the header.
    #[inline(always)]
    fn weight(&self, key: u64, turn: Color, count: &MoveCount) -> u64 {
        if key == 0 {
            return 0;
        }
        let weight = self.weights.weight(count.stats);
        // Every move is weighed twice, so the usual case has a path of its own.
        if self.is_plain {
            return weight;
        }
        if !self.filter.selects(turn, count.stats) {
            return 0;
        }
        match &self.adjustments {
            Adjustments {
                dropped: None,
                evals: None,
                minimax: None,
            } => weight,
            adjustments => adjustments.adjusted(key, count.mv, weight),
        }
    }
}

/// Adds a move to `kept`, or replaces `kept` with `None` if it already contains [`MAX_CACHED_MOVES`] moves.
#[inline(never)]
fn keep(kept: &mut Option<Vec<WeighedMove>>, mv: WeighedMove) {
    match kept {
        Some(moves) if moves.len() < MAX_CACHED_MOVES => moves.push(mv),
        _ => *kept = None,
    }
}

impl Adjustments {
    /// Applies the options `--max-loss`, `--weights` and `--minimax` to the weight of the move `mv` in the position
    /// with the key `key`. `weight` is the weight without these options. Returns the new weight, or 0 if the move is
    /// dropped.
    #[cold]
    fn adjusted(&self, key: u64, mv: BookMove, weight: u64) -> u64 {
        let dropped = self.dropped.as_ref();
        if dropped.is_some_and(|dropped| dropped.0.loses(key, mv)) {
            return 0;
        }
        let evals = self.evals.as_ref();
        let weight = evals.map_or(weight, |evals| evals.weight(key, mv, weight));
        let minimax = self.minimax.as_ref();
        minimax.map_or(weight, |minimax| minimax.lowered(key, mv, weight))
    }
}

/// Statistics about the moves that were removed from a book because they lose too much according to evaluations.
#[derive(Clone, PartialEq, Default, Debug, serde::Serialize)]
pub struct LossSummary {
    /// The number of moves that are left out because they lose too much.
    pub left_out: u64,
    /// The total weight of the moves that are left out, in percent of the total weight of all moves.
    pub left_out_share: f64,
    /// The moves with the largest weights among those that are left out, sorted by weight in descending order. Contains
    /// at most [`MAX_HEAVIEST`](LossSummary::MAX_HEAVIEST) moves.
    pub heaviest: Vec<LosingMove>,
    /// The number of moves that are kept because they have no evaluation, or because their position was not examined.
    pub unevaluated: u64,
    /// The number of moves that are kept because no line of the book reaches their position. These moves are also
    /// counted in `unevaluated`.
    pub unreached: u64,
    /// The number of moves that lose too much, but are kept because their position has no better move. It is 0 unless
    /// [`MaxLoss::keep_one`] is set.
    pub kept: u64,
    /// The number of positions whose moves are all left out. Moves of weight 0 are ignored.
    pub emptied: u64,
    /// Lines that lead to the positions counted in `emptied`, such as `1. e4 e5`, sorted by position key. The line to
    /// the starting position is empty. Contains at most [`MAX_EMPTIED`](LossSummary::MAX_EMPTIED) lines.
    pub emptied_after: Vec<String>,
}

impl LossSummary {
    /// The maximum number of moves in the list [`heaviest`](LossSummary::heaviest).
    pub const MAX_HEAVIEST: usize = 5;

    /// The maximum number of lines in the list [`emptied_after`](LossSummary::emptied_after).
    pub const MAX_EMPTIED: usize = 1000;
}

/// A move that was removed from a book because it loses too much according to evaluations.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct LosingMove {
    /// One of the shortest lines of the book that end with the move, such as `1. e4 e5 2. Ke2`.
    pub line: String,
    /// The weight of the move.
    pub weight: u16,
    /// The weight of the move in percent of the total weight of the legal moves in its position.
    pub share: f64,
    /// The loss in centipawns, or `None` if the move misses a forced mate or allows one.
    pub loss: Option<u32>,
}

/// The moves that are left out of a book because they are illegal, or because they lose too much according to
/// evaluations.
#[derive(Clone, Debug)]
pub(super) struct DroppedMoves {
    /// The illegal moves: pairs of a key and a move, packed by [`key_and_move`].
    illegal: FxHashSet<u128>,
    /// The moves that lose too much, packed like `illegal`, in the spelling of the format.
    losing: FxHashSet<u128>,
    /// The castling moves that are spelled as a move of the king by two squares, packed like `illegal`. Each is mapped
    /// to the move in the spelling of the format.
    castling: FxHashMap<u128, BookMove>,
    /// Statistics about the moves that lose too much.
    pub losses: LossSummary,
}

impl DroppedMoves {
    /// Finds the illegal moves of `book` and, if `max_loss` is given, the moves that lose more than `max_loss` allows.
    ///
    /// `book` must contain each move of a position at most once. This function finds positions by following the moves
    /// of the book from the starting position of `variant`. It does not check other positions of the book, because a
    /// key alone does not determine the legal moves.
    ///
    /// # Errors
    ///
    /// Returns an error if the book, the evaluations or a temporary file cannot be read, or if the keys of the book do
    /// not ascend.
    pub(super) fn of(
        book: &Book,
        variant: Variant,
        max_loss: Option<&MaxLoss>,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<DroppedMoves> {
        let records = book.len_without_header()?;
        let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
        let legal = LegalMoves::new(moves, records);
        let mut losing_moves = FxHashSet::default();
        let mut castling = FxHashMap::default();
        let mut losses = LossSummary::default();
        let (mut evaluated, mut left_out_weight) = (0, 0);
        let mut heaviest: Vec<(Entry, Move, LosingMove)> = Vec::new();
        let mut emptied = BTreeSet::new();
        let mut reached = SpillingSet::new(memory.share(4));
        let start = [Ok(variant.start())];
        each_position(&legal, start, memory.share(4), meter, &mut |pos| {
            if has_third_check(pos.position()) || !reached.insert_key(pos.key())? {
                return Ok(legal.unseen.get() > 0);
            }
            let (entries, to_judge): (Vec<_>, Vec<_>) = legal.of(pos)?.into_iter().unzip();
            legal.unseen.set(legal.unseen.get() - entries.len() as u64);
            for entry in &entries {
                let spelled = with_format_castling(pos.position(), entry.mv);
                if spelled != entry.mv {
                    castling.insert(key_and_move(entry.key, entry.mv), spelled);
                }
            }
            if let Some(max_loss) = max_loss {
                let sum: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
                let judged = max_loss.judge(pos.position(), &to_judge)?;
                evaluated += judged.iter().flatten().count() as u64;
                let judged = entries.iter().zip(to_judge).zip(judged);
                let (mut losing, kept): (Vec<_>, Vec<_>) = judged
                    .map(|((entry, mv), loss)| (entry, mv, loss))
                    .partition(|(.., loss)| loss.is_some_and(|loss| max_loss.is_exceeded_by(loss)));
                // Moves of weight 0 are never played.
                let is_played = |(entry, ..): &(&Entry, Move, Option<Loss>)| entry.weight > 0;
                if losing.iter().any(is_played) && !kept.iter().any(is_played) {
                    if max_loss.keeps_one() {
                        losing.sort_by_key(|(entry, _, loss)| {
                            (entry.weight == 0, *loss, Reverse(entry.weight), entry.mv)
                        });
                        let (_, best, _) = losing.remove(0);
                        // The book may contain both spellings of castling.
                        losing.retain(|(_, mv, _)| *mv != best);
                        losses.kept += 1;
                    } else {
                        losses.emptied += 1;
                        emptied.insert(pos.key());
                        if emptied.len() > LossSummary::MAX_EMPTIED {
                            emptied.pop_last();
                        }
                    }
                }
                for (entry, mv, loss) in losing {
                    let spelled = with_format_castling(pos.position(), entry.mv);
                    losing_moves.insert(key_and_move(entry.key, spelled));
                    losses.left_out += 1;
                    left_out_weight += u64::from(entry.weight);
                    let losing = LosingMove {
                        line: String::new(),
                        weight: entry.weight,
                        share: percent_of(entry.weight.into(), sum),
                        loss: match loss {
                            Some(Loss::Centipawns(loss)) => Some(loss),
                            Some(Loss::Mate) | None => None,
                        },
                    };
                    heaviest.push((*entry, mv, losing));
                    heaviest
                        .sort_by_key(|(entry, ..)| (Reverse(entry.weight), entry.key, entry.mv));
                    heaviest.truncate(LossSummary::MAX_HEAVIEST);
                }
            }
            Ok(legal.unseen.get() > 0)
        })?;
        if max_loss.is_some() {
            let weights = book.iter().try_fold(0, |sum, entry| {
                entry.map(|entry| sum + u64::from(entry.weight) * u64::from(entry.key != 0))
            })?;
            losses.left_out_share = percent_of(left_out_weight, weights);
            let keys = heaviest.iter().map(|(entry, ..)| entry.key);
            let keys = keys.chain(emptied.iter().copied()).collect();
            let start = variant.start();
            let lines = shortest_lines(&legal, &start, &keys, &memory.share(4))?;
            losses.heaviest = Vec::from_iter(heaviest.into_iter().map(|(entry, mv, losing)| {
                let mut line = lines.get(&entry.key).cloned().unwrap_or_default();
                line.push(mv);
                let line = line_text(&start, &line).0;
                LosingMove { line, ..losing }
            }));
            losses.emptied_after = Vec::from_iter(emptied.iter().map(|key| {
                let line = lines.get(key).map_or(&[][..], Vec::as_slice);
                line_text(&start, line).0
            }));
        }
        losses.unreached = legal.unseen.get();
        let illegal = legal.illegal.into_inner();
        losses.unevaluated = records - evaluated - illegal.len() as u64;
        Ok(DroppedMoves {
            illegal,
            losing: losing_moves,
            castling,
            losses,
        })
    }

    /// Returns the move of `entry` in the spelling of the book format. The format spells castling as king takes rook,
    /// not as a move of the king by two squares.
    pub(super) fn spelled(&self, entry: &Entry) -> BookMove {
        let castling = self.castling.get(&key_and_move(entry.key, entry.mv));
        castling.copied().unwrap_or(entry.mv)
    }

    /// Returns `true` if the move `mv` is illegal in the position with the key `key`.
    pub(super) fn is_illegal(&self, key: u64, mv: BookMove) -> bool {
        self.illegal.contains(&key_and_move(key, mv))
    }

    /// Returns `true` if the move `mv`, in the [spelling](DroppedMoves::spelled) of the format, loses too much in the
    /// position with the key `key`.
    pub(super) fn loses(&self, key: u64, mv: BookMove) -> bool {
        self.losing.contains(&key_and_move(key, mv))
    }
}

/// Returns `part` in percent of `whole`, or 0 if `whole` is 0.
fn percent_of(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        formats::counts::{Memory, Tally},
        provenance::GameCounts,
    };

    fn header(comment: Option<&str>, provenance: &Provenance) -> Result<String, HeaderError> {
        let counts = Tally::new(Memory::default()).sort().unwrap();
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
            games: Some(GameCounts::default()),
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

//! Merges and filters books. [`BookPositions`] iterates over the positions of several books in ascending order of keys.

use std::{cmp::Reverse, io::Write, iter::Peekable, path::Path, sync::Arc};

use shakmaty::Color;

use super::{
    edit::ROOM_FOR_EDIT,
    eval_weights::{EvalWeights, EvalWeightsSummary, EvaluatedMoves},
    expand::Expand,
    header::{self, HeaderError, PORTABLE_LENGTH, split_checksum, with_checksum},
    lines::{PlayableMoves, contains, reached_keys},
    maker::{DroppedMoves, LossSummary},
    reader::{Book, CheckedRecords},
    records::{Entry, write_entries},
    verify::move_check,
    weights::Scaling,
    writer::{BookWriter, temporary_book},
};
use crate::{
    chess::position::{BookMove, Variant},
    error::{At, Diagnosis, Error, Result, plural},
    formats::{evals::MaxLoss, walk::LinesOf},
    progress::{FractionalProgress, Meter},
    provenance::{Provenance, option_text, printable, shortened, switch, valued},
    storage::output::AtomicFile,
    storage::sort::{Memory, Merge, SpillingSet},
    task,
};

/// A filter for the moves of a book, which can also change their weights. The default filter keeps all moves. Applying
/// the same filter to its own result changes nothing, unless it computes [weights from
/// evaluations](Filter::eval_weights).
///
/// A filter other than the default first drops illegal moves, and merges the two spellings of castling: a move of the
/// king by two squares, and a move of the king to the rook. Both steps need the position, so they work only in
/// positions that moves of the book reach from the starting position. In all other positions, a move is assumed to be
/// legal if a piece can make it in [some position](crate::chess::position::BookMove::is_possible).
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Filter {
    /// The minimum weight of a move.
    pub min_weight: u16,
    /// The minimum share that a move must have of its position's total weight, in percent from 0 to 100.
    pub min_share: f64,
    /// The maximum number of moves that are kept in each position. The moves with the largest weights are kept. If
    /// weights are equal, the moves with the smaller 16-bit numbers are kept.
    pub best: Option<usize>,
    /// If set, keeps only positions that are [reachable](Filter::reachable) in fewer plies than this.
    pub max_ply: Option<u16>,
    /// If set, keeps only positions that can be reached from the starting position if one side plays moves that the
    /// filter keeps, and its opponent plays any move after which the book has a move. See [`lines`](super::lines).
    pub reachable: bool,
    /// If set, scales the weights of each position so that the largest weight becomes 65535.
    pub normalize: bool,
    /// If set, drops moves that lose too much, but only in positions that can be reached from the starting position.
    /// This filter is applied before all others.
    pub max_loss: Option<MaxLoss>,
    /// If set, computes the weights of moves from evaluations, before all conditions on weights are applied. Moves of
    /// weight 0 are not changed, nor are positions that cannot be reached from the starting position.
    pub eval_weights: Option<EvalWeights>,
    /// If set, continues the lines of the book with moves from evaluations. All other conditions also apply to these
    /// moves.
    pub expand: Option<Expand>,
}

/// Statistics about the result of merging or filtering books.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct MergeSummary {
    /// The number of records that were read, without headers.
    pub read: u64,
    /// The number of records that were written, without the header.
    pub written: u64,
    /// The number of positions that have a record.
    pub positions: u64,
    /// The number of positions whose weights were scaled down because the sum of the weights of a move exceeded 65535.
    pub scaled: u64,
    /// Statistics about the moves that lose too much, if the filter sets [`max_loss`](Filter::max_loss).
    pub losses: Option<LossSummary>,
    /// The number of moves that were added to the ends of lines, before other conditions were applied. `None` if the
    /// filter does not [expand](Filter::expand) the book.
    pub expanded: Option<u64>,
    /// Statistics about the weights from evaluations, if the filter sets [`eval_weights`](Filter::eval_weights).
    pub eval_weights: Option<EvalWeightsSummary>,
}

impl Filter {
    /// Returns `true` if the filter keeps only positions that can be reached from the starting position. Such positions
    /// are found by following the moves of the book.
    fn walks(&self) -> bool {
        self.reachable || self.max_ply.is_some()
    }

    /// Drops the records in `entries`, the records of one position, that the filter does not keep. If
    /// [`normalize`](Filter::normalize) is set, scales the weights of the other records. The records must be sorted by
    /// descending weight.
    fn apply(&self, entries: &mut Vec<Entry>) {
        let sum: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
        // Weights that were scaled to the largest possible weight are rounded down, so a share may be too low by one
        // unit.
        let is_scaled = entries
            .first()
            .is_some_and(|first| first.weight == u16::MAX);
        entries.retain(|entry| {
            // If all weights are 0, all shares are 0.
            let rounded = f64::from(u8::from(is_scaled && entry.weight > 0));
            let weight = f64::from(entry.weight) + rounded;
            let has_share = weight * 100.0 >= self.min_share * sum.max(1) as f64;
            entry.weight >= self.min_weight && has_share
        });
        entries.truncate(self.best.unwrap_or(usize::MAX));
        if !self.normalize {
            return;
        }
        let largest = entries.first().map_or(0, |entry| entry.weight);
        for entry in entries.iter_mut().filter(|entry| entry.weight > 0) {
            let weight = u64::from(entry.weight) * u64::from(u16::MAX) / u64::from(largest);
            entry.weight = Scaling::new(u64::from(u16::MAX)).apply(weight);
        }
    }

    /// Returns the conditions of the filter as command-line options. The text is empty for the default filter.
    fn option_text(&self) -> String {
        let (weight, share) = (self.min_weight, self.min_share);
        option_text([
            valued("min-weight", (weight > 0).then_some(weight)),
            valued("min-share", (share > 0.0).then_some(share)),
            valued("best", self.best),
            valued("max-ply", self.max_ply),
            switch("reachable", self.reachable),
            switch("normalize", self.normalize),
            self.expand.as_ref().map(ToString::to_string),
            self.eval_weights.as_ref().map(ToString::to_string),
            self.max_loss.as_ref().map(ToString::to_string),
        ])
    }
}

/// Merges books into a new book, whose header lists the variants of all books.
///
/// If several books contain a position, `policy` determines how its moves are combined. If the sum of a move's weights
/// exceeds 65535, all weights of the position are scaled down together. The field `learn` (in which a chess program can
/// store what it has learned about the move) comes from the first book that contains the move. `meter` advances by one
/// for each record.
///
/// A book may spell castling as a move of the king by two squares, or as a move of the king to the rook. The two
/// spellings are merged only in positions that moves of the books reach from the starting position, because other
/// positions cannot be reconstructed from their keys.
///
/// # Errors
///
/// Returns an error if a book cannot be read, is not sorted or was cut short, or if the output cannot be written. In
/// case of an error, the target of `out` is unchanged.
pub fn merge_books(
    books: &[Book],
    out: AtomicFile,
    policy: MergePolicy,
    meter: &Meter,
) -> Result<MergeSummary> {
    let merge = BookMerge {
        operation: "Merged",
        policy,
        filter: &Filter::default(),
        variant: None,
        memory: &Memory::default(),
        may_be_empty: true,
    };
    merge.write(books, out, meter)
}

/// Writes a new book with the records of `books` that `filter` keeps. If there are several books, they are
/// [merged](super::merge_books) first.
///
/// A position is reachable if moves of the book lead to it from the starting position of `variant`. If `variant` is
/// `None`, the header of the first book determines the variant. If that header does not list exactly one variant,
/// standard chess is used.
///
/// Reads all books once, or twice if the filter is not the default. If the filter keeps only reachable positions, also
/// writes a temporary copy of the kept records. `memory` contains the memory budget and the directory for temporary
/// files.
///
/// # Errors
///
/// Returns an error if a book cannot be read, is not sorted or was cut short, if no record is kept, or if the output
/// cannot be written. In case of an error, the target of `out` is unchanged.
pub fn filter_books(
    books: &[Book],
    out: AtomicFile,
    filter: &Filter,
    variant: Option<Variant>,
    memory: &Memory,
    meter: &Meter,
) -> Result<MergeSummary> {
    let merge = BookMerge {
        operation: "Filtered",
        policy: MergePolicy::Sum,
        filter,
        variant,
        memory,
        may_be_empty: false,
    };
    merge.write(books, out, meter)
}

/// The settings for creating one book from one or more source books, by merging or filtering.
struct BookMerge<'a> {
    /// The name of the operation in the header: `Merged` or `Filtered`.
    operation: &'a str,
    policy: MergePolicy,
    filter: &'a Filter,
    variant: Option<Variant>,
    memory: &'a Memory,
    may_be_empty: bool,
}

impl BookMerge<'_> {
    fn write(&self, books: &[Book], mut file: AtomicFile, meter: &Meter) -> Result<MergeSummary> {
        let temp_dir = &self.memory.temp_dir;
        let out = &file.target().to_owned();
        // The path that an error names if it concerns the content of all books together.
        let input = books.first().map_or(&**out, Book::path);
        let header = joined_header(books, self.operation, &self.filter.option_text(), out)?;
        let mut writer = BookWriter::begin(&mut file, Some(&header), temp_dir)?;
        let of_first = match books.first() {
            Some(book) => book.variant()?,
            None => None,
        };
        let variant = self.variant.or(of_first).unwrap_or_default();
        let context = (&**temp_dir, "write a temporary file in");
        let is_move = move_check(header::parse(&header).ok());
        // The default filter drops no move, but the two spellings of castling must be merged.
        let is_default = *self.filter == Filter::default();
        let (mut weighing, mut added) = (None, None);
        let dropped = if is_default && !self.has_both_castlings(books, meter)? {
            None
        } else {
            let all = BookMerge {
                filter: &Filter::default(),
                ..*self
            };
            let mut positions = BookPositions::new(books, self.policy, meter);
            let whole = temporary_book(temp_dir, input, |out| {
                let is_legal = |entry: &Entry| is_move(entry.mv);
                let change = RecordRules {
                    spelled: &|entry| entry.mv,
                    is_legal: &is_legal,
                    weighing: None,
                    is_kept: &|_| true,
                };
                all.write_kept(&mut positions, &change, out, context)
                    .map(drop)
            })?;
            if let Some(expand) = &self.filter.expand {
                let records = expand.records(&whole, variant, self.memory, meter)?;
                added = Some(temporary_book(temp_dir, input, |out| {
                    write_entries(&records, out).at(context.0, context.1)
                })?);
            }
            let whole = match &added {
                None => whole,
                Some(added) => temporary_book(temp_dir, input, |out| {
                    let mut positions = BookPositions::new([&whole, added], self.policy, meter);
                    let change = RecordRules {
                        spelled: &|entry| entry.mv,
                        is_legal: &|_| true,
                        weighing: None,
                        is_kept: &|_| true,
                    };
                    all.write_kept(&mut positions, &change, out, context)
                        .map(drop)
                })?,
            };
            let max_loss = self.filter.max_loss.as_ref();
            if let Some(rule) = &self.filter.eval_weights {
                let moves = rule.of_book(&whole, variant, self.memory, meter)?;
                weighing = Some((rule, moves));
            }
            let backed_up = weighing.as_ref().map(|(_, moves)| &moves.values);
            let max_loss = max_loss.map(|max_loss| match backed_up {
                Some(values) => max_loss.with_values(Arc::clone(values)),
                None => max_loss.clone(),
            });
            let max_loss = max_loss.as_ref();
            Some(DroppedMoves::of(
                &whole,
                variant,
                max_loss,
                self.memory,
                meter,
            )?)
        };
        let dropped = dropped.as_ref();
        let is_legal = |entry: &Entry| {
            let is_illegal = |dropped: &DroppedMoves| dropped.is_illegal(entry.key, entry.mv);
            is_default || is_move(entry.mv) && !dropped.is_some_and(is_illegal)
        };
        let is_kept = |entry: &Entry| {
            let loses = |dropped: &DroppedMoves| dropped.loses(entry.key, entry.mv);
            !dropped.is_some_and(loses)
        };
        let spelled = |entry: &Entry| dropped.map_or(entry.mv, |dropped| dropped.spelled(entry));
        let change = RecordRules {
            spelled: &spelled,
            is_legal: &is_legal,
            weighing: weighing.as_ref().map(|(rule, moves)| (*rule, moves)),
            is_kept: &is_kept,
        };
        let all_books = books.iter().chain(&added);
        let mut positions = BookPositions::checked(all_books, self.policy, meter)?;
        let mut summary = if self.filter.walks() {
            let mut summary = MergeSummary::default();
            let copy = temporary_book(temp_dir, input, |kept| {
                summary = self.write_kept(&mut positions, &change, kept, context)?;
                Ok(())
            })?;
            let on_lines = self.on_lines(&copy, variant, meter)?;
            let mut weighed = EvalWeightsSummary::default();
            let copied = writer.copy(&copy, |key| {
                let is_kept = contains(&on_lines, key)?;
                if is_kept && let Some((_, moves)) = change.weighing {
                    moves.count(&copy.moves(key)?, &mut weighed);
                }
                Ok(is_kept)
            })?;
            summary.eval_weights = change.weighing.map(|_| weighed);
            (summary.positions, summary.written) = (copied.positions, copied.records);
            summary
        } else {
            self.write_kept(&mut positions, &change, &mut writer, (out, "write"))?
        };
        summary.expanded = added.as_ref().map(Book::len);
        summary.read -= summary.expanded.unwrap_or(0);
        let has_max_loss = self.filter.max_loss.is_some();
        summary.losses = dropped
            .filter(|_| has_max_loss)
            .map(|dropped| dropped.losses.clone());
        if self.filter.walks()
            && let Some(losses) = &mut summary.losses
        {
            // The filter has dropped the moves that no line reaches.
            losses.unevaluated -= losses.unreached;
            losses.unreached = 0;
        }
        if summary.written == 0 && !self.may_be_empty {
            let options = self.filter.option_text();
            let start = variant.start();
            let is_missing =
                |book: &Book| book.moves_of(&start).is_ok_and(|moves| moves.is_empty());
            let problem = if options.is_empty() {
                Diagnosis::new("no move is legal, so the new book would be empty")
            } else if self.filter.walks() && books.iter().all(is_missing) {
                let walking = option_text([
                    valued("max-ply", self.filter.max_ply),
                    switch("reachable", self.filter.reachable),
                ]);
                Diagnosis::new(format!(
                    "no move is kept with {walking}, because lines begin in the starting position, which is not in the \
                     book"
                ))
                .advise("leave out these options")
            } else {
                Diagnosis::new(format!(
                    "no move is kept with {options}, so the new book would be empty"
                ))
                .advise("use less strict options")
            };
            return Err(Error::empty(input, problem));
        }
        writer.finish()?;
        file.commit()?;
        Ok(summary)
    }

    /// Returns `true` if some position of the books seems to have castling in both spellings: as a move of the king by
    /// two squares, such as `e1g1`, and as a move of the king to the rook, such as `e1h1`. The result can be `true` by
    /// mistake, because another piece may make these moves. If it is `false`, the caller need not merge the spellings.
    ///
    /// # Errors
    ///
    /// Returns an error if a book cannot be read.
    fn has_both_castlings(&self, books: &[Book], meter: &Meter) -> Result<bool> {
        // The codes of e1h1 and e1g1, of e1a1 and e1c1, and of the same moves of Black.
        const SPELLINGS: [[u16; 2]; 4] = [
            [0o0407, 0o0406],
            [0o0400, 0o0402],
            [0o7477, 0o7476],
            [0o7470, 0o7472],
        ];
        for position in BookPositions::new(books, self.policy, meter) {
            let PositionEntries { sums, .. } = position?;
            let has = |mv: &u16| {
                let found = sums.binary_search_by_key(&BookMove(*mv), |(entry, _)| entry.mv);
                found.is_ok()
            };
            if SPELLINGS.iter().any(|spellings| spellings.iter().all(has)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Applies the changes `change` to the records of `positions`, and writes the records that the filter keeps to
    /// `out`. `context` contains the path and the operation (such as `write`) for the error message if writing fails.
    fn write_kept(
        &self,
        positions: &mut BookPositions<'_>,
        change: &RecordRules<'_>,
        out: &mut impl Write,
        context: (&Path, &'static str),
    ) -> Result<MergeSummary> {
        let mut summary = MergeSummary::default();
        let mut weighed = EvalWeightsSummary::default();
        for position in positions.by_ref() {
            task::fault("merge books");
            let mut position = position?;
            position.spell(change.spelled);
            position.sums.retain(|(entry, _)| (change.is_legal)(entry));
            if let Some((rule, moves)) = change.weighing {
                position.weigh(rule, moves);
            }
            let (mut entries, is_scaled) = position.into_entries();
            entries.retain(change.is_kept);
            self.filter.apply(&mut entries);
            if let Some((_, moves)) = change.weighing {
                moves.count(&entries, &mut weighed);
            }
            write_entries(&entries, out).at(context.0, context.1)?;
            summary.scaled += u64::from(is_scaled);
            summary.positions += u64::from(!entries.is_empty());
            summary.written += entries.len() as u64;
        }
        summary.read = positions.read;
        summary.eval_weights = change.weighing.map(|_| weighed);
        Ok(summary)
    }

    /// Returns two sets of position keys: the positions on White's lines in which White is to move, and the positions
    /// on Black's lines in which Black is to move. On the lines of a side, this side plays moves of `book`, and its
    /// opponent plays any move after which the book has a move. Lines begin in the starting position of `variant`. A
    /// position is included if it is reached in fewer than [`max_ply`](Filter::max_ply) half-moves.
    fn on_lines(&self, book: &Book, variant: Variant, meter: &Meter) -> Result<[SpillingSet; 2]> {
        let mut done = [
            FractionalProgress::new(meter),
            FractionalProgress::new(meter),
        ];
        let moves = PlayableMoves::within(book, meter, self.memory.bytes / 4)?;
        let (starts, memory) = ([variant.start()], self.memory.share(4));
        let plies = self.filter.max_ply.unwrap_or(u16::MAX);
        let [of_white, of_black] = &mut done;
        let of = |side, done| {
            let lines = LinesOf(&moves, side);
            reached_keys(&lines, &starts, Some(side), plies, &memory, done)
        };
        Ok([of(Color::White, of_white)?, of(Color::Black, of_black)?])
    }
}

/// The changes that are made to the records of books before the conditions of a [`Filter`] are applied.
struct RecordRules<'a> {
    /// Returns the spelling in which the move of a record is written.
    spelled: &'a dyn Fn(&Entry) -> BookMove,
    /// Returns `false` for the records that are left out before weights are computed.
    is_legal: &'a dyn Fn(&Entry) -> bool,
    /// A rule for weights from evaluations, and the values of the moves.
    weighing: Option<(&'a EvalWeights, &'a EvaluatedMoves)>,
    /// Returns `false` for the records that are left out after weights are computed.
    is_kept: &'a dyn Fn(&Entry) -> bool,
}

/// The maximum number of bytes that the names of the source books take in the header of a merged or filtered book.
const ROOM_FOR_NAMES: usize = 1400;

/// The number of bytes that the header of a merged book keeps free for the line about comments that are left out.
const ROOM_FOR_OMISSIONS: usize = 64;

/// The minimum length, in bytes, to which the header of a merged book shortens the comment of a source book.
const MIN_COMMENT_LENGTH: usize = 40;

/// Creates the header text of a book that was merged or filtered from `books`. The header lists the variants of all
/// source books. Its comment contains the name of the operation (`Merged` or `Filtered`), the names of the source
/// books, and `options`, the options of the filter. The comments of the source books follow, shortened if the header
/// would otherwise be too long for some programs. If there is no room for the comments of some books, the last line
/// states how many are left out. The header keeps room for the line of a later edit. Error messages name `out`, the
/// path of the new book.
fn joined_header(books: &[Book], operation: &str, options: &str, out: &Path) -> Result<String> {
    let mut united: Vec<String> = Vec::new();
    for book in books {
        for variant in variants(book)? {
            if !united.contains(&variant) {
                united.push(variant);
            }
        }
    }
    let name = |book: &Book| {
        let path = book.path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let origin = Provenance {
        inputs: books.iter().map(name).collect(),
        ..Provenance::default()
    };
    let create = |comment: &str| {
        let header = header::create(&united, &with_checksum(comment));
        header.map_err(|source| Error::format(out, source))
    };
    let longest = PORTABLE_LENGTH - ROOM_FOR_EDIT - ROOM_FOR_OMISSIONS;
    let options = match options {
        "" => String::new(),
        options => format!("\nOptions: {options}"),
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut comment = format!("{operation} by polybook {version} from ");
    let room = longest.saturating_sub(create(&comment)?.len() + options.len());
    match &*origin.input_names(ROOM_FOR_NAMES.min(room), printable) {
        "" => comment.truncate(comment.len() - " from ".len()),
        names => comment += names,
    }
    comment += &options;
    let mut room = longest.saturating_sub(create(&comment)?.len());
    let mut left_out = 0;
    for (number, book) in books.iter().enumerate() {
        let Some(header) = book.readable_header()? else {
            continue;
        };
        let (own, _) = split_checksum(&header.comment);
        if own.is_empty() {
            continue;
        }
        let title = match books.len() {
            1 => String::new(),
            _ => format!("\n{}:", printable(&name(book))),
        };
        let whole = format!("{title}\n{own}");
        let text = shortened(&whole, room / (books.len() - number));
        if text == whole || text.len() >= title.len() + MIN_COMMENT_LENGTH {
            room -= text.len();
            comment.push_str(&text);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let books = plural(left_out, "book");
        comment += &format!("\nComments left out: those of {books}");
    }
    create(&comment)
}

/// Returns the names of the variants in the header of a book, or `normal` for a book without a header.
fn variants(book: &Book) -> Result<Vec<String>> {
    match book.header() {
        Ok(header) => Ok(header.variants),
        Err(err) if err.carried() == Some(&HeaderError::NoHeader) => Ok(vec!["normal".to_owned()]),
        Err(err) => Err(err),
    }
}

/// A rule for combining the moves of a position that several books contain.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum MergePolicy {
    /// The position gets the moves of all books. A move that several books contain gets the sum of its weights.
    #[default]
    Sum,
    /// The position gets only the moves of the first book that contains the position.
    First,
}

/// The merged moves of one position. Each move occurs once, and the moves are sorted by their 16-bit codes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PositionEntries {
    pub key: u64,
    /// For each move, its first record and the sum of the weights of all its records.
    pub sums: Vec<(Entry, u64)>,
}

impl PositionEntries {
    /// Replaces the move of each record by the move that `spelled` returns for it. If the moves of several records
    /// become equal, merges these records and adds up their weights.
    pub(super) fn spell(&mut self, spelled: impl Fn(&Entry) -> BookMove) {
        for (entry, _) in &mut self.sums {
            entry.mv = spelled(entry);
        }
        add_up(&mut self.sums);
    }

    /// Replaces the weights of the moves by weights that `rule` computes from the values in `moves`. Moves of weight 0
    /// are not changed.
    fn weigh(&mut self, rule: &EvalWeights, moves: &EvaluatedMoves) {
        let played = || self.sums.iter().filter(|(_, sum)| *sum > 0);
        let scored = played().map(|(entry, sum)| (*sum, moves.score(self.key, entry.mv)));
        let mut weighed: Vec<(u64, Option<f64>)> = scored.collect();
        rule.weigh(&mut weighed);
        let sums = self.sums.iter_mut().filter(|(_, sum)| *sum > 0);
        for ((_, sum), (weight, _)) in sums.zip(weighed) {
            *sum = weight;
        }
    }

    /// Converts the moves to records, sorted by descending weight. If the weight of a move exceeds 65535, scales down
    /// all weights of the position. Returns the records, and `true` if the weights were scaled down.
    pub(super) fn into_entries(self) -> (Vec<Entry>, bool) {
        let largest = self.sums.iter().map(|(_, sum)| *sum).max().unwrap_or(0);
        let scaling = Scaling::new(largest);
        let scaled = self.sums.into_iter().map(|(entry, sum)| Entry {
            // A move of weight 0 is never played, so it must not get a weight by scaling.
            weight: if sum == 0 { 0 } else { scaling.apply(sum) },
            ..entry
        });
        let mut entries: Vec<Entry> = scaled.collect();
        entries.sort_by_key(|entry| Reverse(entry.weight));
        (entries, largest > u64::from(u16::MAX))
    }
}

/// An iterator over the merged positions of several books, sorted by key. The iterator reads each book once, from start
/// to end. If a move has several records, their weights are added up, and the field `learn` comes from the first
/// record.
pub(super) struct BookPositions<'a> {
    records: Peekable<Merge<'a, (u64, usize, Entry)>>,
    policy: MergePolicy,
    /// The number of records read so far, not counting those of headers.
    pub read: u64,
}

impl<'a> BookPositions<'a> {
    /// Creates an iterator over the merged positions of `books`. `policy` determines how the moves of several books
    /// are combined. `meter` advances by one for each record.
    pub(super) fn new(
        books: impl IntoIterator<Item = &'a Book>,
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> BookPositions<'a> {
        let records = books.into_iter().map(|book| book.sorted_records(meter));
        BookPositions::of_records(records.collect(), policy)
    }

    /// Creates an iterator like [`new`](BookPositions::new), for commands that write the records to a new book. It also
    /// verifies the checksum in the header of each book. If a checksum does not match, the iterator yields an error
    /// after the last record of that book.
    pub(super) fn checked(
        books: impl IntoIterator<Item = &'a Book>,
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> Result<BookPositions<'a>> {
        let records = books.into_iter().map(|book| book.checked_records(meter));
        let records = records.collect::<Result<_>>()?;
        Ok(BookPositions::of_records(records, policy))
    }

    fn of_records(books: Vec<CheckedRecords<'a>>, policy: MergePolicy) -> BookPositions<'a> {
        let numbered = books.into_iter().enumerate().map(|(number, records)| {
            let numbered = records.map(move |entry| entry.map(|entry| (entry.key, number, entry)));
            let is_null = |record: &Result<(u64, usize, Entry)>| {
                record.as_ref().is_ok_and(|(key, ..)| *key == 0)
            };
            numbered.skip_while(is_null)
        });
        BookPositions {
            records: Merge::new(numbered).peekable(),
            policy,
            read: 0,
        }
    }

    /// Takes the record with the smallest position key from the books. If `key` is given, takes a record only if its
    /// key is `key`. Returns the key of the record, the index of its book and the record itself, or `None` if no record
    /// was taken.
    ///
    /// # Errors
    ///
    /// Returns an error if a book cannot be read.
    fn next_record(&mut self, key: Option<u64>) -> Result<Option<(u64, usize, Entry)>> {
        let is_of_key = |record: &Result<(u64, usize, Entry)>| match (record, key) {
            (Ok((found, ..)), Some(key)) => *found == key,
            _ => true,
        };
        let record = self.records.next_if(is_of_key).transpose()?;
        self.read += u64::from(record.is_some());
        Ok(record)
    }

    fn next_position(&mut self) -> Result<Option<PositionEntries>> {
        let Some((key, first_book, first)) = self.next_record(None)? else {
            return Ok(None);
        };
        let mut sums = vec![(first, u64::from(first.weight))];
        while let Some((_, book, entry)) = self.next_record(Some(key))? {
            if self.policy == MergePolicy::Sum || book == first_book {
                // Adding up early bounds the memory if a damaged book repeats moves very often.
                if sums.len() == 2 * MAX_MOVES_PER_POSITION {
                    add_up(&mut sums);
                }
                sums.push((entry, entry.weight.into()));
            }
        }
        add_up(&mut sums);
        Ok(Some(PositionEntries { key, sums }))
    }
}

impl Iterator for BookPositions<'_> {
    type Item = Result<PositionEntries>;

    fn next(&mut self) -> Option<Result<PositionEntries>> {
        self.next_position().transpose()
    }
}

/// An upper bound on the number of different moves in a position: the number of 16-bit values that a move can have.
const MAX_MOVES_PER_POSITION: usize = 1 << 16;

/// Sorts `sums` by move, and merges the elements of equal moves. Each element contains a record of a move and a sum of
/// weights. A merged element contains the first record of the move and the sum of all its weights.
fn add_up(sums: &mut Vec<(Entry, u64)>) {
    // The sort is stable, so the record of the first book comes first among equal moves.
    sums.sort_by_key(|(entry, _)| entry.mv);
    sums.dedup_by(|(entry, weight), (first, sum)| {
        let is_same = entry.mv == first.mv;
        if is_same {
            *sum += *weight;
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formats::book::{begin_book, records::of_weights};

    fn entry(key: u64, mv: u16, weight: u16, learn: u32) -> Entry {
        Entry {
            key,
            mv: BookMove(mv),
            weight,
            learn,
        }
    }

    fn merged(books: &[Vec<Entry>], policy: MergePolicy) -> (Vec<Entry>, MergeSummary) {
        let dir = tempfile::tempdir().unwrap();
        let mut opened = Vec::new();
        for (i, entries) in books.iter().enumerate() {
            let path = dir.path().join(format!("{i}.bin"));
            let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
            std::fs::write(&path, bytes).unwrap();
            opened.push(Book::open(&path).unwrap());
        }
        let out = dir.path().join("out.bin");
        let summary = merge_books(
            &opened,
            begin_book(&out, false).unwrap(),
            policy,
            &Meter::default(),
        )
        .unwrap();
        let book = Book::open(&out).unwrap();
        assert_eq!(book.header().unwrap().variants, ["normal"]);
        (
            book.iter()
                .map(|entry| entry.unwrap())
                .filter(|entry| entry.key != 0)
                .collect(),
            summary,
        )
    }

    #[test]
    fn a_header_with_no_room_names_no_book() {
        let dir = tempfile::tempdir().unwrap();
        for (variants, names) in [(1, " from 0.bin, 1.bin"), (400, "")] {
            let variants = Vec::from_iter((0..variants).map(|number| format!("v{number}")));
            let header = header::create_raw(&header::create(&variants, "").unwrap());
            let books = ["0.bin", "1.bin"].map(|name| {
                let path = dir.path().join(name);
                std::fs::write(&path, &header).unwrap();
                Book::open(&path).unwrap()
            });
            let text = joined_header(&books, "Merged", "", &dir.path().join("out.bin")).unwrap();
            let comment = header::parse(&text).unwrap().comment;
            let origin = format!("Merged by polybook {}{names}", env!("CARGO_PKG_VERSION"));
            assert_eq!(split_checksum(&comment).0, origin);
        }
    }

    #[test]
    fn weights_add_up() {
        let a = vec![entry(1, 5, 10, 1), entry(3, 5, 1, 0)];
        let b = vec![entry(1, 4, 15, 0), entry(1, 5, 7, 2), entry(2, 1, 0, 0)];
        let (found, summary) = merged(&[a.clone(), b.clone()], MergePolicy::Sum);
        let expected = [
            entry(1, 5, 17, 1),
            entry(1, 4, 15, 0),
            entry(2, 1, 0, 0),
            entry(3, 5, 1, 0),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            summary,
            MergeSummary {
                read: 5,
                written: 4,
                positions: 3,
                scaled: 0,
                losses: None,
                expanded: None,
                eval_weights: None,
            }
        );
        let (found, _) = merged(&[a.clone(), b], MergePolicy::First);
        assert_eq!(
            found,
            [entry(1, 5, 10, 1), entry(2, 1, 0, 0), entry(3, 5, 1, 0)]
        );
    }

    #[test]
    fn sums_too_large_scale_their_position() {
        let a = vec![
            entry(1, 5, 60_000, 0),
            entry(1, 6, 1, 0),
            entry(2, 5, 60_000, 0),
        ];
        let b = vec![entry(1, 5, 60_000, 0)];
        let (found, summary) = merged(&[a, b], MergePolicy::Sum);
        assert_eq!(
            found,
            [
                entry(1, 5, 65_535, 0),
                entry(1, 6, 1, 0),
                entry(2, 5, 60_000, 0)
            ]
        );
        assert_eq!(summary.scaled, 1);
    }

    #[test]
    fn books_that_cannot_be_read_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.bin");
        let out = dir.path().join("out.bin");
        for (bytes, expected) in [
            (b"x".to_vec(), "multiple of 16"),
            (
                [entry(2, 1, 1, 0).to_bytes(), entry(1, 1, 1, 0).to_bytes()].concat(),
                "not sorted",
            ),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let err = Book::open(&path).and_then(|book| {
                merge_books(
                    &[book],
                    begin_book(&out, false).unwrap(),
                    MergePolicy::Sum,
                    &Meter::default(),
                )
            });
            let err = err.unwrap_err();
            assert!(err.to_string().contains(expected), "{err}");
            assert!(!out.exists());
        }
    }

    #[test]
    fn only_moves_of_some_position_are_kept_where_no_line_leads() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("in.bin"), dir.path().join("out.bin"));
        // No piece can move from a1 to c4, and no pawn can promote on the first rank with a1b1, but a1b1 and a1c1 are
        // possible.
        let moves = [(26, 100), (1 << 12 | 1, 50), (1, 9), (2, 1)];
        let bytes = moves.map(|(mv, weight)| entry(7, mv, weight, 0).to_bytes());
        let king_move = entry(8, 1, 1, 0).to_bytes();
        std::fs::write(&path, [&bytes.concat()[..], &king_move].concat()).unwrap();
        for (filter, expected) in [
            (
                Filter {
                    best: Some(1),
                    ..Filter::default()
                },
                vec![9, 1],
            ),
            (
                Filter {
                    min_share: 50.0,
                    ..Filter::default()
                },
                vec![9, 1],
            ),
            (
                Filter {
                    min_share: 5.0,
                    ..Filter::default()
                },
                vec![9, 1, 1],
            ),
            (
                Filter {
                    min_weight: 10,
                    ..Filter::default()
                },
                vec![],
            ),
            (Filter::default(), vec![100, 50, 9, 1, 1]),
        ] {
            let done = filter_books(
                &[Book::open(&path).unwrap()],
                begin_book(&out, false).unwrap(),
                &filter,
                None,
                &Memory::default(),
                &Meter::default(),
            );
            let kept = |_| {
                let entries = Book::open(&out).unwrap();
                let entries = entries
                    .iter()
                    .map(Result::unwrap)
                    .filter(|entry| entry.key != 0);
                entries.map(|entry| entry.weight).collect::<Vec<_>>()
            };
            assert_eq!(
                done.map_or_else(|_| Vec::new(), kept),
                expected,
                "{filter:?}"
            );
        }
    }

    fn books() -> impl Strategy<Value = Vec<Vec<Entry>>> {
        let entries = proptest::collection::vec((1..6u64, 1..5u16, 0..1000u16), 0..12);
        let book = entries.prop_map(|mut entries| {
            entries.sort_unstable();
            let make = |(key, mv, weight)| entry(key, mv, weight, 0);
            entries.into_iter().map(make).collect()
        });
        proptest::collection::vec(book, 1..4)
    }

    proptest! {
        #[test]
        fn the_order_of_books_does_not_matter(mut books in books()) {
            let (forth, _) = merged(&books, MergePolicy::Sum);
            books.reverse();
            let (back, _) = merged(&books, MergePolicy::Sum);
            prop_assert_eq!(forth, back);
        }
    }

    fn weights(filter: &Filter, before: &[u16]) -> Vec<u16> {
        let mut entries = of_weights(before);
        filter.apply(&mut entries);
        entries.iter().map(|entry| entry.weight).collect()
    }

    #[test]
    fn each_limit_keeps_the_heaviest_moves_of_a_position() {
        let kept = |change: fn(&mut Filter)| {
            let mut filter = Filter::default();
            change(&mut filter);
            weights(&filter, &[60, 30, 9, 1, 0])
        };
        assert_eq!(kept(|_| {}), [60, 30, 9, 1, 0]);
        assert_eq!(kept(|filter| filter.min_weight = 9), [60, 30, 9]);
        assert_eq!(kept(|filter| filter.min_share = 9.0), [60, 30, 9]);
        assert_eq!(kept(|filter| filter.min_share = 9.1), [60, 30]);
        assert_eq!(kept(|filter| filter.best = Some(1)), [60]);
        let normalized = kept(|filter| filter.normalize = true);
        assert_eq!(normalized, [65_535, 32_767, 9830, 1092, 0]);
        assert_eq!(
            weights(
                &Filter {
                    normalize: true,
                    ..Filter::default()
                },
                &[0]
            ),
            [0]
        );
    }

    #[test]
    fn a_share_that_scaling_has_rounded_down_is_kept() {
        let filter = Filter {
            min_share: 10.0,
            normalize: true,
            ..Filter::default()
        };
        let once = weights(&filter, &[8, 1, 1]);
        assert_eq!(once, [65_535, 8191, 8191]);
        assert_eq!(weights(&filter, &once), once);
    }

    proptest! {
        #[test]
        fn filtering_again_changes_nothing(
            mut before in proptest::collection::vec(any::<u16>(), 0..9),
            min_weight in 0..3000u16,
            min_share in 0..60u8,
            best in proptest::option::of(0..5usize),
            normalize in any::<bool>(),
        ) {
            before.sort_by(|a, b| b.cmp(a));
            let filter = Filter { min_weight, min_share: min_share.into(), best, normalize, ..Filter::default() };
            let once = weights(&filter, &before);
            prop_assert!(once.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(weights(&filter, &once), once);
        }
    }

    #[test]
    fn moves_repeated_without_end_are_added_up() {
        let entry = |mv, weight| Entry {
            key: 1,
            mv: BookMove(mv),
            weight,
            learn: 0,
        };
        let records = (0..200_000u32).map(|i| entry((i % 3) as u16, 1));
        let book = Book::from_bytes(records.flat_map(Entry::to_bytes).collect()).unwrap();
        let meter = Meter::default();
        let mut positions = BookPositions::new([&book], MergePolicy::Sum, &meter);
        let position = positions.next().unwrap().unwrap();
        let (entries, is_scaled) = position.into_entries();
        let expected = [entry(0, 65_535), entry(1, 65_535), entry(2, 65_534)];
        assert_eq!((&entries[..], is_scaled), (&expected[..], true));
        assert!(positions.next().is_none());
    }
}

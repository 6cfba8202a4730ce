//! Converts books to other formats: an [OOBS database](crate::formats::obs) to a Polyglot book, an opening suite or a
//! table, and a Polyglot book to a suite or a table.
//!
//! [`Convert`] converts a database, and [`ConvertBook`] converts a book. Both write to an output file that the caller
//! creates: with [`begin_book`](crate::formats::book::begin_book) for books, and with
//! [`begin_text`](crate::storage::output::begin_text) for suites and tables.
//!
//! ```
//! use polybook::{MakeBook, book::begin_book, convert::Convert, obs::Obs, pgn::Input};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (db, direct, converted) = (dir.path().join("a.obs.db3"), dir.path().join("a.bin"), dir.path().join("b.bin"));
//! MakeBook::new([Input::file("data/famous.pgn")]).min_game(1).obs(&db).run()?;
//! MakeBook::new([Input::file("data/famous.pgn")]).bin(&direct).run()?;
//! Convert::new(Obs::open(&db)?).to_bin(begin_book(&converted, false)?)?;
//! assert_eq!(std::fs::read(direct)?, std::fs::read(converted)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Counts of a database
//!
//! A conversion to a book recovers counts from the database: the results of each move, by the Polyglot key of its
//! position. An EPD does not always determine this key. The key includes the en passant file if a pawn has just made
//! a double step and an enemy pawn is next to it, even if that pawn is pinned. An EPD contains the en passant square
//! only if the capture is legal.
//!
//! Therefore, the key of a position with a pinned pawn cannot be computed from its EPD alone. However, another row of
//! the database may contain the double step as its move. Such a row shows which key the position had in the games.

mod table;

use std::{cell::RefCell, collections::HashSet, iter::once, sync::Arc};

use rayon::{ThreadPool, prelude::*};
use shakmaty::{EnPassantMode, Move, Position, Role, Square, variant::VariantPosition};

use self::table::write_table;
use crate::{
    chess::position::{
        BookMove, Keyed, Variant, en_passant_part, fen_of, has_inner_castling_rook, key,
    },
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        book::{
            Book, BookMaker, BookSummary, Entry, EvalWeights, EvalWeightsSummary, LossSummary,
            MinimaxSummary, Weights, each_move_once,
        },
        counts::{CountBatch, Counts, Finder, LookUpBuffers, MoveFilter, Tally},
        evals::MaxLoss,
        obs::{NOT_LEGAL, Obs, ObsRow, SkippedRows, legal_move, position_of},
        suite::{SourceAdvice, SourceSuite, SuiteSummary, is_chess960_start},
        walk::{MoveSource, SourceWrapper, TreeMove, each_position},
    },
    games::results::{Results, Wdl},
    progress::Meter,
    storage::{
        output::{AtomicFile, BufferedFile},
        sort::{Memory, SpillingSet},
        table::{Cell, Column, ColumnType, Table},
    },
    task,
};
pub use crate::{
    formats::suite::{EvalRange, Suite, SuiteFormat, read_starts},
    storage::table::TableFormat,
};

/// Converts an OOBS database to a Polyglot book, an opening suite or a table. The default options are those of
/// [`MakeBook`](crate::MakeBook). Rows that the database marks as inactive are skipped, because their moves must not be
/// played.
#[derive(Debug)]
pub struct Convert {
    /// The database to convert.
    pub obs: Obs,
    /// The variant of the positions. `None` means the variant that the database names.
    pub variant: Option<Variant>,
    /// The filter that selects moves of the database. `None` means Polyglot's default filter for books and suites, but
    /// every move for tables.
    pub move_filter: Option<MoveFilter>,
    /// Whether suites omit moves of weight 0, which a book made from the database would not contain. Default: `false`.
    pub only_weighted: bool,
    /// Whether a table of comma-separated values has an additional column with the moves in SAN. Default: `false`.
    pub with_san: bool,
    /// The rule by which the weights of moves are calculated.
    pub weights: Weights,
    /// The comment in the header of a book. `None` means a comment that describes how the book was made.
    pub comment: Option<String>,
    /// The limit for the evaluation that a book move may lose. Moves that lose more are omitted from a book. Default:
    /// no limit.
    pub max_loss: Option<MaxLoss>,
    /// The rule that computes the weights of a book's moves from evaluations. Default: weights depend only on results.
    pub eval_weights: Option<EvalWeights>,
    /// Whether a book is written with a header. Default: `true`.
    pub header: bool,
    /// The number of threads that process rows, or 0 for one per core. Default: 0.
    pub threads: usize,
    /// The memory budget for counts. Data that exceeds it is spilled to temporary files.
    pub memory: Memory,
    /// Receives the progress, and can cancel the conversion.
    pub meter: Arc<Meter>,
}

/// The result of a conversion: the number of entries in the output, and the numbers of rows and moves of the input that
/// were left out.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Converted {
    /// The number of entries written: records of a book, lines or positions of a suite, or rows of a table.
    pub entries: u64,
    /// The numbers of positions and moves of the book, or `None` for other outputs.
    pub book: Option<BookSummary>,
    /// The moves that were omitted from the book because of their evaluations. `None` if no limit for the loss of
    /// evaluation was set.
    pub losses: Option<LossSummary>,
    /// The moves whose weights were lowered because of the results of later moves (minimax). `None` if minimax is not
    /// used.
    pub minimax: Option<MinimaxSummary>,
    /// The moves of the book whose weights come from evaluations. `None` if weights depend only on results.
    pub eval_weights: Option<EvalWeightsSummary>,
    /// The number of rows that could not be read, and the error for the first of them.
    pub skipped_rows: SkippedRows,
    /// The number of active rows that the move filter excluded from a table.
    pub filtered_rows: u64,
    /// Whether the search for lines of a suite stopped early, so that some lines may be missing.
    pub is_cut: bool,
    /// The number of lines or positions that were omitted from the suite because they have no evaluation. `None` if the
    /// suite is not filtered by evaluation.
    pub unevaluated: Option<u64>,
    /// The number of lines that were omitted from the suite because another line leads to the same position. If the
    /// suite has a limit, the search for lines may end early, and lines that it did not reach are not counted. `None`
    /// if several lines of the suite may lead to the same position.
    pub repeated: Option<u64>,
}

impl From<SuiteSummary> for Converted {
    fn from(written: SuiteSummary) -> Converted {
        Converted {
            entries: written.entries,
            is_cut: written.is_cut,
            unevaluated: written.unevaluated,
            repeated: written.repeated,
            ..Converted::default()
        }
    }
}

impl Convert {
    /// Creates a conversion of the database `obs` with default options.
    pub fn new(obs: Obs) -> Convert {
        Convert {
            obs,
            variant: None,
            move_filter: None,
            only_weighted: false,
            with_san: false,
            weights: Weights::default(),
            comment: None,
            max_loss: None,
            eval_weights: None,
            header: true,
            threads: 0,
            memory: Memory::default(),
            meter: Arc::default(),
        }
    }

    /// Converts the database to a Polyglot book, and writes it to `out`. If the database contains every move
    /// ([`MoveFilter::every_move`]), the book is byte-identical to the one that [`MakeBook`](crate::MakeBook) makes
    /// from the same games.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, if the Polyglot format does not support its variant, or if the
    /// file cannot be written.
    pub fn to_bin(&self, mut out: AtomicFile) -> Result<Converted> {
        task::caught(|| {
            let path = &out.target().to_owned();
            let variant = self.obs.variant(self.variant)?;
            if variant.number().is_none() {
                return Err(Error::file(
                    path,
                    format!(
                        "the book cannot be made, because the Polyglot format has no number for {variant}"
                    ),
                ));
            }
            let pool = task::pool(self.threads)?;
            let DatabaseCounts {
                counts,
                starts,
                skipped_rows,
            } = self.count(variant, false, &pool, self.memory.clone())?;
            let filter = self.combined_filter(MoveFilter::default());
            let weights = &self.weights;
            let maker = pool.install(|| {
                let mut maker = BookMaker::new(&counts, &filter, weights)?;
                let starts: Vec<VariantPosition> = once(variant.start()).chain(starts).collect();
                let starts = || starts.iter().cloned().map(Ok);
                let memory = self.memory.share(2);
                if let Some(rule) = &self.eval_weights {
                    maker = maker.with_evals(rule, starts(), &memory, path)?;
                }
                if weights.minimax.is_some() {
                    maker = maker.with_minimax(starts(), &memory, path)?;
                }
                match &self.max_loss {
                    Some(max_loss) => {
                        maker.without_losing_moves(max_loss, variant, &self.memory.share(4))
                    }
                    None => Ok(maker),
                }
            })?;
            let summary = maker.summary();
            if summary.entries == 0 {
                let options = filter.pruning_text().into_iter();
                let options = options.chain(self.max_loss.as_ref().map(ToString::to_string));
                let options: Vec<String> = options.collect();
                let (passes, advice) = if options.is_empty() {
                    (
                        String::new(),
                        Advice::option("use {}, or other factors", "uniform"),
                    )
                } else {
                    (
                        format!(" passes {} and", options.join(" ")),
                        "use less strict options".into(),
                    )
                };
                let reason = Diagnosis::new(format!(
                    "no move of this database{passes} has a weight above 0, so the book would be empty"
                ))
                .advise(advice);
                return Err(Error::empty(self.obs.path(), reason));
            }
            let header = self
                .header
                .then(|| {
                    let provenance = &self.obs.info().provenance;
                    maker.header(&[variant.name()], self.comment.as_deref(), provenance)
                })
                .transpose()
                .map_err(|source| Error::format(path, source))?;
            pool.install(|| maker.write(header.as_deref(), &mut out, &self.memory.temp_dir))?;
            out.commit()?;
            Ok(Converted {
                entries: summary.entries,
                book: Some(summary),
                losses: maker.losses(),
                minimax: maker.minimax(),
                eval_weights: maker.eval_weights(),
                skipped_rows,
                ..Converted::default()
            })
        })
    }

    /// Converts the database to a table, and writes it to `out`. The table contains the moves that pass the filter,
    /// sorted by EPD. The moves of a position are sorted by number of games in descending order.
    ///
    /// Comma-separated values have columns for the EPD, the move, the wins, draws and losses of the side to move, and
    /// the weight that the move would have in a book made from the database. The weight is 0 if such a book would not
    /// contain the move. With [`with_san`](Self::with_san), the last column contains the move in SAN.
    ///
    /// JSON documents and Parquet files contain the FEN instead of the EPD, and the move in SAN and in UCI notation.
    /// Parquet files also contain the position key and the 16-bit number of the move. These two columns have the same
    /// types as in counts directories (see [`counts`](crate::formats::counts)), so the tables can be joined.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, or if the file cannot be written.
    pub fn to_table(&self, out: AtomicFile, format: TableFormat) -> Result<Converted> {
        task::caught(|| write_table(self, out, format))
    }

    /// Converts the database to an opening suite, which is a list of lines or positions from which engine games start.
    ///
    /// A suite of lines is written as games without a result, each line only once. The database does not tell how many
    /// games played a whole line, so the lines are sorted by the number of games of their rarest move, in descending
    /// order.
    ///
    /// A suite of positions is written as EPDs, one in each line of the file, sorted by the number of games that
    /// reached the position, in descending order.
    ///
    /// A comment in a game, or the operation `c0` in an EPD, states how many games reached the final position by any
    /// moves, and White's score in these games.
    ///
    /// A line contains only moves that a book made from the database would contain. No line repeats a position. In
    /// Chess960, lines begin at all starting positions of the database, unless `suite` specifies starting positions.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, if the file cannot be written, or if the suite would be empty
    /// or too large.
    pub fn to_suite(
        &self,
        out: AtomicFile,
        suite: &Suite,
        format: SuiteFormat,
    ) -> Result<Converted> {
        task::caught(|| {
            let variant = self.obs.variant(self.variant)?;
            let pool = task::pool(self.threads)?;
            let DatabaseCounts {
                counts,
                starts,
                skipped_rows,
            } = self.count(variant, true, &pool, self.memory.share(2))?;
            let starts = match (variant, &suite.starts[..]) {
                (_, [_, ..]) => suite.starts.clone(),
                (Variant::Chess960, _) if !starts.is_empty() => starts,
                _ => vec![variant.start()],
            };
            let filter = self.combined_filter(MoveFilter::default());
            // A lower minimum cannot bring back moves that the database does not contain.
            let can_keep_more = filter.min_game > self.obs.info().move_filter.min_game.max(1);
            let source = CountsSource {
                finder: pool.install(|| counts.finder())?,
                filter,
                weights: &self.weights,
                only_weighted: self.only_weighted,
                scratch: RefCell::default(),
            };
            let suite = SourceSuite {
                source: &source,
                path: self.obs.path(),
                results: &|pos| source.results(pos),
                starts: &starts,
                suite,
                advice: SourceAdvice {
                    more: can_keep_more.then(|| Advice::smaller("min-game")),
                    fewer: Advice::larger("min-game"),
                },
                memory: self.memory.share(2),
                meter: &self.meter,
            };
            let written = suite.write(BufferedFile::new(out), format)?;
            Ok(Converted {
                skipped_rows,
                ..written.into()
            })
        })
    }

    /// Returns a filter that keeps the moves that pass two filters: the filter of this conversion (or `default` if
    /// `self.move_filter` is `None`), and the filter with which the database was made.
    fn combined_filter(&self, default: MoveFilter) -> MoveFilter {
        let mut filter = self.move_filter.clone().unwrap_or(default);
        filter.narrow(&self.obs.info().move_filter);
        filter
    }
}

/// A source of moves that looks up positions in the counts of a database. It returns the moves that a [`MoveFilter`]
/// keeps, with their results.
struct CountsSource<'a> {
    finder: Finder<'a>,
    filter: MoveFilter,
    weights: &'a Weights,
    /// Whether moves of weight 0 are omitted.
    only_weighted: bool,
    scratch: RefCell<LookUpBuffers>,
}

impl CountsSource<'_> {
    /// Returns the results of all games that reached the position `pos`, or `None` if no game did.
    fn results(&self, pos: &Keyed<VariantPosition>) -> Result<Option<Results>> {
        let part = self.finder.range_of(pos.identity());
        let mut scratch = self.scratch.borrow_mut();
        let found = self.finder.find(part, &mut scratch)?;
        let arrivals = found.and_then(|found| {
            let mut moves = found.moves.iter();
            moves.find(|count| count.mv == BookMove::NONE)
        });
        let turn = pos.position().turn();
        Ok(arrivals.map(|count| Results::from_side(!turn, count.stats)))
    }
}

impl MoveSource for CountsSource<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.finder.moves(pos, &mut self.scratch.borrow_mut())?;
        let turn = pos.position().turn();
        let kept = moves.iter().filter_map(|count| {
            let weight = self.weights.weight(count.stats);
            let is_left_out = self.only_weighted && weight == 0;
            if !self.filter.selects(turn, count.stats) || is_left_out {
                return None;
            }
            let mv = count.mv.to_move(pos.position())?;
            let results = Results::from_side(turn, count.stats);
            Some(TreeMove::without_evaluation(mv, weight, Some(results)))
        });
        Ok(kept.collect())
    }
}

/// The maximum number of database rows in a batch, which limits the memory for a batch. One thread reads a batch, and
/// then all threads of the pool count its moves together.
const ROWS_PER_BATCH: usize = 1 << 16;
/// The total size of rows, in bytes, at which a batch is full, even if it contains fewer than [`ROWS_PER_BATCH`] rows.
/// This limits the memory for long rows.
const BYTES_PER_BATCH: usize = 1 << 24;

/// The result of reading an OOBS database: the counts of its moves, its starting positions, and a summary of the rows
/// that were skipped.
pub(super) struct DatabaseCounts {
    pub counts: Counts,
    /// The distinct Chess960 starting positions that the database contains.
    pub starts: Vec<VariantPosition>,
    pub skipped_rows: SkippedRows,
}

/// The counts that one thread has made from its part of a batch of database rows.
#[derive(Default)]
struct RowCounts {
    counts: CountBatch,
    /// The counts of positions whose EPD may lack an en passant square that affects their key. Also contains the notes
    /// of [`note_step`].
    uncertain: CountBatch,
    /// Whether an EPD contains an en passant square even though a pinned pawn makes the capture illegal.
    has_pinned_squares: bool,
    starts: Vec<Keyed<VariantPosition>>,
    skipped_rows: SkippedRows,
}

impl Convert {
    /// Reads all active rows of the database, and adds up the results of each move. One thread reads the rows, and the
    /// threads of `pool` count them. `memory` is the memory budget for the counts.
    ///
    /// If `arrivals` is `false`, the counts identify each position by its Polyglot key, as books do. If `arrivals` is
    /// `true`, they identify each position by its identity hash, as suites do, and also contain the results of all
    /// games that reached the position. These results are stored under the special move [`BookMove::NONE`], from the
    /// point of view of the side that moved last.
    pub(super) fn count(
        &self,
        variant: Variant,
        arrivals: bool,
        pool: &ThreadPool,
        memory: Memory,
    ) -> Result<DatabaseCounts> {
        self.meter.add_total(self.obs.about_rows());
        let uncertain = Tally::new(memory.share(8));
        let tally = Tally::new(memory);
        let mut is_exact = false;
        let mut starts = Vec::new();
        let mut known_starts = HashSet::new();
        let mut skipped_rows = SkippedRows::default();
        let mut batch = Vec::with_capacity(ROWS_PER_BATCH);
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
                uncertain.add_batch(&part.uncertain)?;
                is_exact |= part.has_pinned_squares;
                for start in part.starts {
                    if known_starts.insert(start.identity()) {
                        starts.push(start.position().clone());
                    }
                }
                skipped_rows.add(part.skipped_rows);
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
            if batch.len() == ROWS_PER_BATCH || bytes >= BYTES_PER_BATCH {
                bytes = 0;
                take(&mut batch)?;
            }
        }
        take(&mut batch)?;
        skipped_rows.add(rows.skipped_rows().clone());
        let uncertain = pool.install(|| uncertain.sort())?;
        add_uncertain(&uncertain, is_exact, &tally)?;
        Ok(DatabaseCounts {
            counts: pool.install(|| tally.sort())?,
            starts,
            skipped_rows,
        })
    }
}

/// Counts the results of the moves in `rows`. If `arrivals` is `true`, also counts the games that reached the position
/// after each move. Rows with an invalid EPD or an illegal move are skipped, and their number is counted. Rows with the
/// same EPD should be adjacent, because each EPD is then parsed only once.
fn count_rows(rows: &[ObsRow], variant: Variant, arrivals: bool) -> RowCounts {
    task::fault("count rows");
    let mut found = RowCounts::default();
    for rows in rows.chunk_by(|a, b| a.epd == b.epd) {
        let pos = match position_of(variant, &rows[0].epd) {
            Ok(pos) => pos,
            Err(err) => {
                for row in rows {
                    found.skipped_rows.row(row, &err.to_string());
                }
                continue;
            }
        };
        let pos = Keyed::new(pos);
        let turn = pos.position().turn();
        let in_book = !has_inner_castling_rook(pos.position());
        let hides = !pos.other_exact_identities().is_empty();
        found.has_pinned_squares |= pinned_square(pos.position()).is_some();
        for row in rows {
            let Some(mv) = legal_move(pos.position(), &row.mv) else {
                found.skipped_rows.row(row, NOT_LEGAL);
                continue;
            };
            if arrivals {
                // Suites look up positions by identity. Keys are only for books.
                found.counts.push(pos.identity(), mv, turn, row.stats);
            } else {
                note_step(pos.position(), mv, &mut found.uncertain);
            }
            if in_book && !arrivals {
                let counts = if hides {
                    &mut found.uncertain
                } else {
                    &mut found.counts
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

/// The number of positions that [`add_uncertain`] processes together before it adds their counts to the tally, which
/// limits the memory.
const POSITIONS_PER_BATCH: u64 = 1 << 14;

/// Returns the en passant square of a position if a pawn attacks this square but every en passant capture is illegal
/// because the capturing pawn is pinned. Otherwise, returns `None`.
fn pinned_square(pos: &VariantPosition) -> Option<Square> {
    let square = pos.ep_square(EnPassantMode::PseudoLegal)?;
    let is_legal = pos.ep_square(EnPassantMode::Legal).is_some();
    (!is_legal && pos.pockets().is_none()).then_some(square)
}

/// Adds a note to `notes` if `mv` is a double step of a pawn in `pos`, after which every en passant capture is illegal
/// because of a pin. Does nothing for any other move.
///
/// After such a move, the Polyglot key includes the en passant file. The EPD in the database may lack the en passant
/// square, however, and a key that is computed from this EPD then lacks the file. The note is stored under the key
/// without the file, as a move that encodes the en passant square (see [`step_note`]). [`add_uncertain`] looks for a
/// note under each key from an EPD, and adds the file to the key if there is one.
fn note_step(pos: &VariantPosition, mv: BookMove, notes: &mut CountBatch) {
    let Some(
        mv @ Move::Normal {
            role: Role::Pawn,
            from,
            to,
            ..
        },
    ) = mv.to_move(pos)
    else {
        return;
    };
    if from.rank().distance(to.rank()) != 2 {
        return;
    }
    let mut next = pos.clone();
    next.play_unchecked(mv);
    if let Some(square) = pinned_square(&next) {
        let without = key(&next) ^ en_passant_part(square);
        notes.push(without, step_note(square), next.turn(), Wdl::default());
    }
}

/// Encodes an en passant square for a note of [`note_step`] as a move from this square to itself. No real move has this
/// form, so the count of a move cannot be mistaken for a note.
fn step_note(square: Square) -> BookMove {
    BookMove(square as u16 | (square as u16) << 6)
}

/// Corrects the position keys in `uncertain`, and adds the counts to `tally`. The keys were computed from EPDs that may
/// lack an en passant square. If `uncertain` contains a note of [`note_step`] for a key, a pawn has just made a double
/// step, and the en passant file is added to the key. The notes themselves are not added to `tally`.
///
/// If `exact` is `true`, no key is changed, because the EPDs of this database contain all en passant squares.
fn add_uncertain(uncertain: &Counts, exact: bool, tally: &Tally) -> Result<()> {
    let (mut batch, mut positions) = (CountBatch::default(), 0);
    for position in uncertain.positions() {
        let position = position?;
        let step = |mv: BookMove| {
            let square = Square::new(u32::from(mv.0 & 63));
            (mv == step_note(square)).then_some(square)
        };
        let noted = position.moves.iter().find_map(|count| step(count.mv));
        let key = match noted {
            Some(square) if !exact => position.key ^ en_passant_part(square),
            _ => position.key,
        };
        for count in position
            .moves
            .iter()
            .filter(|count| step(count.mv).is_none())
        {
            batch.push(key, count.mv, position.turn, count.stats);
        }
        positions += 1;
        if positions % POSITIONS_PER_BATCH == 0 {
            tally.add_batch(&std::mem::take(&mut batch))?;
        }
    }
    tally.add_batch(&batch)
}

/// Converts a Polyglot book to an opening suite or a table.
#[derive(Debug)]
pub struct ConvertBook<'a> {
    /// The book to convert.
    pub book: &'a Book,
    /// The variant of the positions in the book.
    pub variant: Variant,
    /// The memory budget for lines and positions. Data that exceeds it is spilled to temporary files.
    pub memory: Memory,
    /// Receives the progress, and can cancel the conversion.
    pub meter: Arc<Meter>,
}

/// The columns of a table of a book, which has a row for each record. The FEN and the SAN are missing if no moves of
/// the book lead to the position. A legal castling move always has the same number and UCI notation, even if the record
/// encodes it in another form.
const BOOK_COLUMNS: [Column; 7] = [
    Column::new("key", ColumnType::Key),
    Column::new("move", ColumnType::Move),
    Column::new("fen", ColumnType::Text),
    Column::new("san", ColumnType::Text),
    Column::new("uci", ColumnType::Text),
    Column::new("weight", ColumnType::Integer),
    Column::new("learn", ColumnType::Integer),
];

/// The names of the columns in comma-separated values, which lack the column `move`.
const CSV_BOOK_COLUMNS: [Column; 6] = [
    Column::new("Key", ColumnType::Key),
    Column::new("FEN", ColumnType::Text),
    Column::new("SAN", ColumnType::Text),
    Column::new("UCI", ColumnType::Text),
    Column::new("Weight", ColumnType::Integer),
    Column::new("Learn", ColumnType::Integer),
];

/// The index of the column `move` in [`BOOK_COLUMNS`].
const MOVE_COLUMN: usize = 1;

impl<'a> ConvertBook<'a> {
    /// Creates a conversion of `book`, whose positions belong to `variant`.
    pub fn new(book: &'a Book, variant: Variant) -> ConvertBook<'a> {
        ConvertBook {
            book,
            variant,
            memory: Memory::default(),
            meter: Arc::default(),
        }
    }

    /// Converts the book to a table, and writes it to `out`. Each record becomes a row with the key (16 hex digits),
    /// the FEN, the move in SAN and in UCI notation, the weight, and the learn field. Parquet files also contain the
    /// 16-bit number of the move.
    ///
    /// The conversion plays the moves of the book from the positions `starts`, or from the starting position if
    /// `starts` is empty. Positions are written in the order in which they are reached, and the moves of a position are
    /// sorted by weight, in descending order. If the book contains a castling move both as the king's move and as the
    /// king capturing its own rook, the move is written once. Records of positions that are not reached follow at the
    /// end, without FEN and SAN.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, or if the file cannot be written.
    pub fn to_table(
        &self,
        out: AtomicFile,
        starts: &[VariantPosition],
        format: TableFormat,
    ) -> Result<Converted> {
        task::caught(|| self.write_table(out, starts, format))
    }

    fn write_table(
        &self,
        out: AtomicFile,
        starts: &[VariantPosition],
        format: TableFormat,
    ) -> Result<Converted> {
        let has_number = !matches!(format, TableFormat::Csv | TableFormat::Jsonl);
        let mut columns = if format == TableFormat::Csv {
            CSV_BOOK_COLUMNS.to_vec()
        } else {
            BOOK_COLUMNS.to_vec()
        };
        if format == TableFormat::Jsonl {
            columns.remove(MOVE_COLUMN);
        }
        let mut file = Table::begin(out, format, columns)?;
        let mut entries = 0;
        let mut write = |entry: Entry, pos: Option<&VariantPosition>| {
            entries += 1;
            let legal = pos.and_then(|pos| entry.mv.to_move(pos));
            let mut row = vec![Cell::Key(entry.key)];
            row.extend(has_number.then(|| legal.map_or(entry.mv, BookMove::from).0.into()));
            row.extend([
                pos.map(fen_of).into(),
                pos.and_then(|pos| entry.mv.san(pos)).into(),
                pos.map_or_else(|| entry.mv.to_string(), |pos| entry.mv.uci(pos))
                    .into(),
                entry.weight.into(),
                entry.learn.into(),
            ]);
            file.write(&row)
        };
        self.book.refuse_changed()?;
        let mut unseen = self.book.len_without_header()?;
        let mut reached = SpillingSet::new(self.memory.share(4));
        let (starts, memory) = (self.starts(starts), self.memory.share(4));
        let starts = starts.into_iter().map(Ok);
        each_position(self.book, starts, memory, &self.meter, &mut |pos| {
            let entries = self.book.moves(pos.key())?;
            if !entries.is_empty() && reached.insert_key(pos.key())? {
                unseen -= entries.len() as u64;
                let pos = pos.position();
                for entry in each_move_once(pos, entries) {
                    write(entry, Some(pos))?;
                }
            }
            Ok(unseen > 0)
        })?;
        if unseen > 0 {
            for entry in self.book {
                let entry = entry?;
                if entry.key != 0 && !reached.contains_key(entry.key)? {
                    write(entry, None)?;
                }
            }
        }
        file.commit()?;
        Ok(Converted {
            entries,
            ..Converted::default()
        })
    }

    /// Returns `given` or, if it is empty, only the starting position of the variant.
    fn starts(&self, given: &[VariantPosition]) -> Vec<VariantPosition> {
        match given {
            [] => vec![self.variant.start()],
            given => given.to_vec(),
        }
    }

    /// Converts the book to an opening suite, and writes it to `out`. This works like the conversion of a database
    /// ([`Convert::to_suite`](Convert::to_suite)), except that the weight of a move is used instead of its
    /// number of games.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, if the file cannot be written, if the suite would be empty or too
    /// large, or if `suite` filters by results, which a book does not contain.
    pub fn to_suite(
        &self,
        out: AtomicFile,
        suite: &Suite,
        format: SuiteFormat,
    ) -> Result<Converted> {
        task::caught(|| {
            if let Some(option) = suite.results_option() {
                let problem = Diagnosis::new("a Polyglot book contains no results of games")
                    .advise("make the suite from a database")
                    .advise(Advice::option("leave {} out", option));
                return Err(Error::file(self.book.path(), problem));
            }
            self.book.refuse_changed()?;
            let suite = SourceSuite {
                source: &WeightedMoves(self.book),
                path: self.book.path(),
                results: &|_| Ok(None),
                starts: &self.starts(&suite.starts),
                suite,
                advice: SourceAdvice {
                    more: None,
                    fewer: Advice::option("leave rare moves out of the book ({})", "min-weight")
                        .of_command("filter"),
                },
                memory: self.memory.clone(),
                meter: &self.meter,
            };
            let written = suite.write(BufferedFile::new(out), format)?;
            Ok(written.into())
        })
    }
}

/// A source of the moves of a book whose weight is greater than 0. Moves with weight 0 are never played.
struct WeightedMoves<'a>(&'a Book);

impl SourceWrapper for WeightedMoves<'_> {
    type Inner = Book;

    fn inner(&self) -> &Book {
        self.0
    }

    fn changed(
        &self,
        _: &Keyed<VariantPosition>,
        mut moves: Vec<TreeMove>,
    ) -> Result<Vec<TreeMove>> {
        moves.retain(|mv| mv.weight > 0);
        Ok(moves)
    }
}

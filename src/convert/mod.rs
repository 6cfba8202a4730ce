//! Conversions of books: an [OOBS database](crate::obs) to a Polyglot book, to opening suites and to tables, and a
//! Polyglot book to suites and tables.
//!
//! [`Convert`] converts a database, [`ConvertBook`] a book. Both write to a file that was begun before, by
//! [`begin_book`](crate::book::begin_book) for books and by [`begin_text`](crate::output::begin_text) for suites and tables.
//!
//! ```
//! use polybook::{MakeBook, book::begin_book, convert::Convert, obs::Obs, pgn::Input};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (db, direct, converted) = (dir.path().join("a.obs.db3"), dir.path().join("a.bin"), dir.path().join("b.bin"));
//! MakeBook::new([Input::file("data/famous.pgn")]).min_game(1).obs(&db).run()?;
//! MakeBook::new([Input::file("data/famous.pgn")]).bin(&direct).run()?;
//! Convert::new(Obs::open(&db)?).to_bin(begin_book(&converted)?)?;
//! assert_eq!(std::fs::read(direct)?, std::fs::read(converted)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod book;
mod counts;
mod pinned;
mod table;

use std::{cell::RefCell, sync::Arc};

use shakmaty::{Position, variant::VariantPosition};

use self::counts::DatabaseCounts;
pub use self::{book::ConvertBook, table::TableFormat};
use crate::{
    book::{BookMaker, BookSummary, LossSummary, MinimaxSummary, Weights},
    counts::{Finder, Memory, MoveFilter, Scratch, Stats},
    error::{Error, Result},
    evals::MaxLoss,
    obs::Obs,
    output::{AtomicFile, BufferedFile},
    position::{BookMove, Keyed, Variant},
    progress::Meter,
    suite::{SourceSuite, SuiteSummary},
    task,
    walk::{Source, TreeMove},
};
pub use crate::{
    obs::PassedOver,
    suite::{EvalRange, Suite, SuiteFormat, read_starts},
};

/// A conversion of an OOBS database. The defaults are those of [`MakeBook`](crate::MakeBook).
///
/// Rows that are not active are skipped.
#[derive(Debug)]
pub struct Convert {
    /// The database.
    pub obs: Obs,
    /// The variant of the positions, or `None` for the one that the database names.
    pub variant: Option<Variant>,
    /// The filter that selects moves of the database. `None` means Polyglot's filter for books and suites, and every move
    /// for tables.
    pub move_filter: Option<MoveFilter>,
    /// Whether suites leave out moves of weight 0, which no book has. Default: no.
    pub only_weighted: bool,
    /// How the weights of moves are calculated.
    pub weights: Weights,
    /// The comment of a book's header, or `None` for the one that says how the book was made.
    pub comment: Option<String>,
    /// The greatest loss of evaluation of a book's moves; moves that lose more are left out. Default: no limit.
    pub max_loss: Option<MaxLoss>,
    /// Whether a book gets a header. Default: yes.
    pub header: bool,
    /// The number of threads that read positions, or 0 for one per core. Default: 0.
    pub threads: usize,
    /// The memory for counts; more spills to temporary files.
    pub memory: Memory,
    /// Reports progress, and can cancel the conversion.
    pub meter: Arc<Meter>,
}

/// The summary of a conversion.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Converted {
    /// The number of records of the book, of lines or positions of the suite, or of rows of the table.
    pub entries: u64,
    /// The numbers of positions and moves of a book; `None` for other outputs.
    pub book: Option<BookSummary>,
    /// The moves that a book left out by their evaluations, or `None` if it does not filter by evaluation.
    pub losses: Option<LossSummary>,
    /// The moves whose weights a book lowered by the counts after them, or `None` without minimax.
    pub minimax: Option<MinimaxSummary>,
    /// The number of rows that could not be read, and the error of the first.
    pub passed_over: PassedOver,
    /// The number of active rows that the move filter left out of a table.
    pub left_out: u64,
    /// Whether the search for a suite's lines stopped before it had looked at all lines, so that some may be missing.
    pub is_cut: bool,
    /// The number of lines or positions that a suite left out because they have no evaluation, or `None` if it does not
    /// filter by evaluation.
    pub unevaluated: Option<u64>,
}

impl From<SuiteSummary> for Converted {
    fn from(written: SuiteSummary) -> Converted {
        Converted {
            entries: written.entries,
            is_cut: written.is_cut,
            unevaluated: written.unevaluated,
            ..Converted::default()
        }
    }
}

impl Convert {
    /// Creates a conversion of a database with the default options.
    pub fn new(obs: Obs) -> Convert {
        Convert {
            obs,
            variant: None,
            move_filter: None,
            only_weighted: false,
            weights: Weights::default(),
            comment: None,
            max_loss: None,
            header: true,
            threads: 0,
            memory: Memory::default(),
            meter: Arc::default(),
        }
    }

    /// Writes the Polyglot book that [`MakeBook`](crate::MakeBook) makes of the same games. The book is equal byte for
    /// byte if the database contains every move ([`MoveFilter::every_move`]).
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, if the Polyglot format has no number for its variant, or if the
    /// file cannot be written.
    pub fn to_bin(&self, mut out: AtomicFile) -> Result<Converted> {
        task::caught(|| {
            let path = &out.target().to_owned();
            let variant = self.played_variant()?;
            if variant.number().is_none() {
                return Err(Error::file(
                    path,
                    format!("cannot be made: the Polyglot format has no number for {variant}"),
                ));
            }
            let pool = task::pool(self.threads)?;
            let DatabaseCounts {
                counts,
                starts,
                passed_over,
            } = self.count(variant, false, &pool, self.memory.clone())?;
            let filter = self.narrowed(MoveFilter::default());
            let weights = &self.weights;
            let maker = pool.install(|| {
                let mut maker = BookMaker::new(&counts, &filter, weights)?;
                if weights.minimax.is_some() {
                    let starts = [variant.start()].into_iter().chain(starts).map(Ok);
                    maker = maker.backed_up(starts, &self.memory.share(2), path)?;
                }
                match &self.max_loss {
                    Some(max_loss) => maker.leaving_out(max_loss, variant, &self.memory.share(4)),
                    None => Ok(maker),
                }
            })?;
            let summary = maker.summary();
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
                passed_over,
                ..Converted::default()
            })
        })
    }

    /// Writes a suite of lines or positions.
    ///
    /// Lines are written as games without a result, each line once, sorted by the number of games that can have played
    /// it, in descending order. Positions are written as EPDs, one a line, each position once, sorted by the number of
    /// games that reached it. The comment of a game, or the operation `c0` of an EPD, has the number of times that
    /// games reached the position by any moves, and White's score in them.
    ///
    /// Every move of a line is one that a book of the database would have, and no line repeats a position. In Chess960,
    /// the lines start from all start positions of the database, unless the suite has its own.
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
            let variant = self.played_variant()?;
            let pool = task::pool(self.threads)?;
            let DatabaseCounts {
                counts,
                starts,
                passed_over,
            } = self.count(variant, true, &pool, self.memory.share(2))?;
            let starts = match (variant, &suite.starts[..]) {
                (_, [_, ..]) => suite.starts.clone(),
                (Variant::Chess960, _) if !starts.is_empty() => starts,
                _ => vec![variant.start()],
            };
            let source = CountedMoves {
                finder: pool.install(|| counts.finder())?,
                filter: self.narrowed(MoveFilter::default()),
                weights: &self.weights,
                only_weighted: self.only_weighted,
                scratch: RefCell::default(),
            };
            let suite = SourceSuite {
                source: &source,
                results: &|pos| source.results(pos),
                starts: &starts,
                suite,
                memory: self.memory.share(2),
                meter: &self.meter,
            };
            let written = suite.write(BufferedFile::sealed(out), format)?;
            Ok(Converted {
                passed_over,
                ..written.into()
            })
        })
    }

    /// Returns the variant by whose rules moves are played.
    ///
    /// # Errors
    ///
    /// Returns an error if the database names a variant that is not supported, and no other is chosen.
    fn played_variant(&self) -> Result<Variant> {
        if let Some(variant) = self.variant {
            return Ok(variant);
        }
        let name = &self.obs.info().variant;
        name.parse().map_err(|_| {
            Error::file(
                self.obs.path(),
                format!("is for an unknown variant, \"{name}\": name its variant with --variant"),
            )
        })
    }

    /// Returns the move filter of the conversion, or `default` if there is none, combined with the filter that the
    /// database was made with.
    fn narrowed(&self, default: MoveFilter) -> MoveFilter {
        let mut filter = self.move_filter.clone().unwrap_or(default);
        filter.narrowed_by(&self.obs.info().move_filter);
        filter
    }
}

/// The moves of a database that pass the filters, as a source.
struct CountedMoves<'a> {
    finder: Finder<'a>,
    filter: MoveFilter,
    weights: &'a Weights,
    /// Whether moves of weight 0 are skipped.
    only_weighted: bool,
    scratch: RefCell<Scratch>,
}

impl CountedMoves<'_> {
    /// Returns White's results in all games that reached a position, or `None` if none did.
    fn results(&self, pos: &Keyed<VariantPosition>) -> Result<Option<Stats>> {
        let part = self.finder.part(pos.identity());
        let mut scratch = self.scratch.borrow_mut();
        let found = self.finder.find(part, &mut scratch)?;
        let arrivals = found.and_then(|found| {
            let mut moves = found.moves.iter();
            moves.find(|count| count.mv == BookMove::NONE)
        });
        let stats = arrivals.map(|count| count.stats.turned(!pos.position().turn()));
        Ok(stats)
    }
}

impl Source for CountedMoves<'_> {
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
            Some(TreeMove::known(mv, weight, Some(count.stats)))
        });
        Ok(kept.collect())
    }
}

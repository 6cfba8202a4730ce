//! Making other things of books: a Polyglot book, opening suites and tables of an
//! [OOBS database](crate::obs), and suites and tables of a Polyglot book.
//!
//! ```
//! use polybook::{MakeBook, convert::Convert, obs::Obs, pgn::Input};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (db, direct, converted) = (dir.path().join("a.obs.db3"), dir.path().join("a.bin"), dir.path().join("b.bin"));
//! MakeBook::new([Input::file("data/famous.pgn")]).min_game(1).obs(&db).run()?;
//! MakeBook::new([Input::file("data/famous.pgn")]).bin(&direct).run()?;
//! Convert::new(Obs::open(&db)?).to_bin(&converted)?;
//! assert_eq!(std::fs::read(direct)?, std::fs::read(converted)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod book;
mod counts;
mod pinned;
mod table;

use std::{cell::RefCell, path::Path, sync::Arc};

use shakmaty::{Position, variant::VariantPosition};

use self::counts::DatabaseCounts;
pub use self::{book::ConvertBook, table::TableFormat};
use crate::{
    book::{BookMaker, BookSummary, LossSummary, MinimaxSummary, Weights, begin_book_over},
    error::{Error, Result},
    evals::MaxLoss,
    obs::Obs,
    position::{BookMove, Keyed, Variant},
    progress::Meter,
    suite::{self, SuiteOf, SuiteSummary},
    tally::{Finder, Memory, MoveFilter, Scratch, Stats},
    task,
    walk::{Source, TreeMove},
};
pub use crate::{
    obs::PassedOver,
    suite::{EvalRange, Suite, SuiteFormat, read_starts},
};

/// Makes other things of an OOBS database. The defaults are those of [`MakeBook`](crate::MakeBook).
///
/// Rows that are not active are passed over.
#[derive(Debug)]
pub struct Convert {
    /// The database.
    pub obs: Obs,
    /// Takes the positions for those of this variant, whatever the database says it is for.
    pub variant: Option<Variant>,
    /// Which moves of the database are kept. Default: for books and suites Polyglot's, for tables every move.
    pub move_filter: Option<MoveFilter>,
    /// Leaves moves of weight 0, which no book has, out of suites. Default: no.
    pub only_weighted: bool,
    /// How much moves weigh.
    pub weights: Weights,
    /// Text for a book's header in place of the one that says how the book was made.
    pub comment: Option<String>,
    /// Which moves a book leaves out by their evaluations. Default: none.
    pub max_loss: Option<MaxLoss>,
    /// Whether a book has a header. Default: true.
    pub header: bool,
    /// How many threads read positions; 0 for one per core. Default: 0.
    pub threads: usize,
    /// How much memory the counts may take before they go to temporary files.
    pub memory: Memory,
    /// Whether to replace a file that polybook did not write. Default: no.
    pub force: bool,
    /// Says how far the conversion has come.
    pub meter: Arc<Meter>,
}

/// What was made.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Converted {
    /// Records of the book, lines or positions of the suite, or rows of the table.
    pub entries: u64,
    /// What a book was made of.
    pub book: Option<BookSummary>,
    /// What became of its moves by their evaluations, if these were asked for.
    pub losses: Option<LossSummary>,
    /// What became of a book's moves by what the counts show after them.
    pub minimax: Option<MinimaxSummary>,
    /// Rows that could not be read, and what is wrong with the first.
    pub passed_over: PassedOver,
    /// Rows that are active but that the move filter left out of a table.
    pub left_out: u64,
    /// Whether a suite may have fewer lines than it should, because too many would have to be looked at.
    pub is_cut: bool,
    /// Lines or positions that a suite leaves out because they have no evaluation, if they are chosen by it.
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
    /// A conversion of a database.
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
            force: false,
            meter: Arc::default(),
        }
    }

    /// Writes the Polyglot book that [`MakeBook`](crate::MakeBook) makes of the same games, to the byte
    /// if the database holds every move ([`MoveFilter::every_move`]).
    ///
    /// # Errors
    ///
    /// A database that cannot be read or is for a variant without book, or a file that cannot be
    /// written.
    pub fn to_bin(&self, path: &Path) -> Result<Converted> {
        task::caught(|| {
            let variant = self.played_variant()?;
            if variant.number().is_none() {
                return Err(Error::file(
                    path,
                    format!("cannot be made: the Polyglot format has no number for {variant}"),
                ));
            }
            let mut bin = begin_book_over(path, self.force)?;
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
            pool.install(|| maker.write(header.as_deref(), &mut bin, &self.memory.temp_dir))?;
            bin.commit()?;
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

    /// Writes a suite: the lines, each once, as games without result, those that most games can have followed first; or
    /// the positions that they come to, each once, one EPD a line, those that most games came to first. A comment, or the
    /// operation `c0`, has the number of times that games came to the position, by any moves, and White's score in them.
    ///
    /// Every move of a line is one that a book of the database would have, and no line has a position twice. In
    /// Chess960 the lines start from all starting positions that the database knows, unless the suite has its own.
    ///
    /// # Errors
    ///
    /// A database that cannot be read, a file that cannot be written, or a suite that would be empty or beyond all
    /// measure.
    pub fn to_suite(&self, path: &Path, suite: &Suite, format: SuiteFormat) -> Result<Converted> {
        task::caught(|| {
            let file = suite::begin(path, self.force)?;
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
            let suite = SuiteOf {
                source: &source,
                results: &|pos| source.results(pos),
                starts: &starts,
                suite,
                memory: self.memory.share(2),
                meter: &self.meter,
            };
            let written = suite.write(file, format)?;
            Ok(Converted {
                passed_over,
                ..written.into()
            })
        })
    }

    /// The variant whose rules hold.
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

    /// What is kept of what the database has.
    fn narrowed(&self, default: MoveFilter) -> MoveFilter {
        let mut filter = self.move_filter.clone().unwrap_or(default);
        filter.narrowed_by(&self.obs.info().move_filter);
        filter
    }
}

/// The moves of a database that are kept.
struct CountedMoves<'a> {
    finder: Finder<'a>,
    filter: MoveFilter,
    weights: &'a Weights,
    /// Whether moves of weight 0 are left out.
    only_weighted: bool,
    scratch: RefCell<Scratch>,
}

impl CountedMoves<'_> {
    /// White's results in all games that came to a position, if some did.
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

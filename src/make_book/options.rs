//! The options of a `make-book` run.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{extract::Extract, report::Progress};
use crate::{
    chess::position::{PieceLetters, Variant, VariantChoice},
    error::{Advice, Error, Result},
    formats::{
        book::{EvalWeights, Weights},
        counts::{Grouping, MoveFilter},
        evals::MaxLoss,
        suite::{Suite, SuiteFormat},
    },
    games::{pgn::Input, selection::Selection},
    provenance::{option_text, switch, valued},
    storage::sort::Memory,
};

#[cfg(feature = "parquet")]
use crate::formats::counts::Names;

/// The advice that an error message gives for a run whose outputs would be empty.
pub(super) const EMPTY_OUTPUTS: Advice = Advice::option("{} writes empty outputs", "allow-empty");

/// How games with an unknown result, such as unfinished games, are counted.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Unfinished {
    /// Games with an unknown result are counted as draws.
    #[default]
    Draw,
    /// Games with an unknown result are not counted.
    Skip,
}

/// An opening suite that a run makes from the games: its path, format and options.
#[derive(Clone, Debug)]
pub(super) struct SuiteOutput {
    pub path: PathBuf,
    pub format: SuiteFormat,
    pub suite: Suite,
}

/// A builder for a run that makes a book, indexes, a database, counts or an opening suite from games. Set inputs,
/// outputs and options, then call [`run`](MakeBook::run).
///
/// A run writes files only if you name an output with [`bin`](MakeBook::bin), [`leveldb`](MakeBook::leveldb),
/// [`explorer`](MakeBook::explorer), [`obs`](MakeBook::obs), [`counts`](MakeBook::counts) or
/// [`suite`](MakeBook::suite). An input is a PGN file or, with the crate's feature `parquet`, a directory of
/// [counts](crate::formats::counts).
///
/// The defaults are those of `polyglot make-book`, except that the book has a header that names its inputs.
///
/// ```
/// use polybook::{MakeBook, pgn::Input};
///
/// let report = MakeBook::new([Input::file("data/famous.pgn")]).max_ply(10).run()?;
/// assert!(report.totals.games.counted > 30);
/// assert_eq!(report.totals.plies, 10 * report.totals.games.counted);
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MakeBook {
    pub(super) inputs: Vec<Input>,
    pub(super) bin: Option<PathBuf>,
    pub(super) leveldb: Option<PathBuf>,
    pub(super) index_stats: bool,
    pub(super) explorer: Option<PathBuf>,
    pub(super) obs: Option<PathBuf>,
    pub(super) counts: Option<PathBuf>,
    pub(super) by: Option<Grouping>,
    pub(super) prune_counts: u64,
    #[cfg(feature = "parquet")]
    pub(super) counted_names: Option<Names>,
    pub(super) suite: Option<SuiteOutput>,
    pub(super) extract: Option<Extract>,
    pub(super) force: bool,
    pub(super) allow_empty: bool,
    pub(super) max_ply: usize,
    pub(super) selection: Selection,
    pub(super) variant: VariantChoice,
    pub(super) unfinished: Unfinished,
    pub(super) keep_prefix: bool,
    pub(super) variations: bool,
    pub(super) piece_letters: PieceLetters,
    pub(super) strict: bool,
    pub(super) move_filter: MoveFilter,
    pub(super) weights: Weights,
    pub(super) max_loss: Option<MaxLoss>,
    pub(super) eval_weights: Option<EvalWeights>,
    pub(super) comment: Option<String>,
    pub(super) header: bool,
    pub(super) threads: usize,
    pub(super) memory: Memory,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) progress: Arc<Progress>,
}

impl MakeBook {
    /// The default maximum number of half-moves that are counted in each game.
    pub const DEFAULT_MAX_PLY: usize = 1024;

    /// Creates a run that reads `inputs` in the given order and has no outputs yet.
    pub fn new(inputs: impl IntoIterator<Item = Input>) -> MakeBook {
        MakeBook {
            inputs: inputs.into_iter().collect(),
            bin: None,
            leveldb: None,
            index_stats: false,
            explorer: None,
            obs: None,
            counts: None,
            by: None,
            prune_counts: 0,
            #[cfg(feature = "parquet")]
            counted_names: None,
            suite: None,
            extract: None,
            force: false,
            allow_empty: false,
            max_ply: MakeBook::DEFAULT_MAX_PLY,
            selection: Selection::default(),
            variant: VariantChoice::default(),
            unfinished: Unfinished::default(),
            keep_prefix: false,
            variations: false,
            piece_letters: PieceLetters::default(),
            strict: false,
            move_filter: MoveFilter::default(),
            weights: Weights::default(),
            max_loss: None,
            eval_weights: None,
            comment: None,
            header: true,
            threads: 0,
            memory: Memory::default(),
            stop: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// Sets the file to which a Polyglot book is written. An existing book is replaced when the new one is complete.
    /// Default: no book is written.
    pub fn bin(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.bin = Some(path.into());
        self
    }

    /// Sets the directory to which an [index](crate::formats::index) of games is written, in the format of polyglot's
    /// LevelDB fork, which other front-ends can read. Default: no such index is written.
    pub fn leveldb(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.leveldb = Some(path.into());
        self
    }

    /// Sets an output to which the counted games themselves are written, for example as PGN. Default: no games are
    /// written.
    pub fn extract(mut self, extract: Extract) -> MakeBook {
        self.extract = Some(extract);
        self
    }

    /// Sets whether the index of [`leveldb`](MakeBook::leveldb) contains statistics about the moves of each position.
    /// Default: no.
    pub fn index_stats(mut self, stats: bool) -> MakeBook {
        self.index_stats = stats;
        self
    }

    /// Sets the directory to which an [index](crate::formats::index) for the [explorer](crate::explore::explorer) is
    /// written. If all inputs are counts directories that are grouped by speed, rating and month, the index contains
    /// counts. Otherwise, it contains games. Default: no such index is written.
    pub fn explorer(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.explorer = Some(path.into());
        self
    }

    /// Sets the file to which an [OOBS database](crate::formats::obs) is written, an SQLite file with the results of
    /// moves by position. Default: no database is written.
    #[cfg(feature = "obs")]
    pub fn obs(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.obs = Some(path.into());
        self
    }

    /// Sets the directory to which the [counts](crate::formats::counts) of all moves are written, including moves that
    /// are too rare for the book and the OOBS database. Default: no counts are written.
    #[cfg(feature = "parquet")]
    pub fn counts(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.counts = Some(path.into());
        self
    }

    /// Sets the properties of games by which the [counts](MakeBook::counts) are grouped. By default, they are grouped
    /// like the counts among the inputs, whose groupings must then be equal, or not at all if there are none.
    #[cfg(feature = "parquet")]
    pub fn by(mut self, by: Grouping) -> MakeBook {
        self.by = Some(by);
        self
    }

    /// Sets the minimum number of half-moves that must have been counted in a position for the
    /// [counts](MakeBook::counts) to keep the position. Default: 0, which keeps all positions.
    #[cfg(feature = "parquet")]
    pub fn prune_counts(mut self, min_game: u64) -> MakeBook {
        self.prune_counts = min_game;
        self
    }

    /// Sets which names of positions and moves are written in addition to the [counts](MakeBook::counts). Default:
    /// none.
    #[cfg(feature = "parquet")]
    pub fn counted_names(mut self, names: Names) -> MakeBook {
        self.counted_names = Some(names);
        self
    }

    /// Sets the path, the format and the options of an opening [suite](crate::formats::suite), a file of openings from
    /// which engine matches start. Default: no suite is written.
    ///
    /// The lines of a suite have [`Suite::plies`] half-moves. A line is included if at least
    /// [`min_game`](MakeBook::min_game) games played it. A suite of positions includes the final position of a line if
    /// at least this many games reached it. Variations are ignored.
    ///
    /// If [`Suite::starts`] contains positions, a line begins where a game first reaches one of them. Otherwise a line
    /// begins at the start of a game, and only games from the starting position of their variant are used.
    pub fn suite(
        mut self,
        path: impl Into<PathBuf>,
        format: SuiteFormat,
        suite: Suite,
    ) -> MakeBook {
        self.suite = Some(SuiteOutput {
            path: path.into(),
            format,
            suite,
        });
        self
    }

    /// Sets whether existing outputs may be replaced: an index, an OOBS database, a counts directory, or a file of any
    /// kind at the path of the book or the suite. By default, the run fails if such an output exists. As an exception,
    /// a book always replaces a book that polybook wrote.
    pub fn force(mut self, force: bool) -> MakeBook {
        self.force = force;
        self
    }

    /// Sets whether to write outputs even if no game is counted or no move is kept. Default: no. The run then fails
    /// with [`Error::Empty`], which names the filters that rejected the games or moves.
    pub fn allow_empty(mut self, allow: bool) -> MakeBook {
        self.allow_empty = allow;
        self
    }

    /// Sets the maximum number of half-moves that are counted in each game. Default: 1024.
    pub fn max_ply(mut self, plies: usize) -> MakeBook {
        self.max_ply = plies;
        self
    }

    /// Sets which games are counted. Default: all games.
    ///
    /// The opening of a game is the name of the last named position that the game reaches, even after its last counted
    /// move. A game is a duplicate if it has the same starting position, moves, players and result as an earlier
    /// counted game. Moves after the last counted move are compared, too. Names are compared as
    /// [`NameMatch`](crate::games::pgn::NameMatch) describes. If both players are unknown, the games must also agree in
    /// the date and the event, which must both be known.
    pub fn selection(mut self, selection: Selection) -> MakeBook {
        self.selection = selection;
        self
    }

    /// Sets whether the games of one variant or of all variants are counted. The `Variant` tag of a game names its
    /// variant. [`Input::with_untagged_variant`] sets the variant that is assumed for games without the tag. Default:
    /// only standard chess.
    pub fn variant(mut self, variant: impl Into<VariantChoice>) -> MakeBook {
        self.variant = variant.into();
        self
    }

    /// Sets how games with an unknown result, such as unfinished games, are counted. Default: as draws.
    pub fn unfinished(mut self, unfinished: Unfinished) -> MakeBook {
        self.unfinished = unfinished;
        self
    }

    /// Sets whether the moves before an illegal move are counted. By default, a game with an illegal move is rejected
    /// as a whole.
    pub fn keep_prefix(mut self, keep: bool) -> MakeBook {
        self.keep_prefix = keep;
        self
    }

    /// Sets whether the moves of variations are counted in addition to the main lines. A variation counts as a game
    /// that ended in a draw. Its moves are counted from the first one; the moves of the main line before it are not
    /// counted again. Indexes always contain only main lines. Default: no.
    pub fn variations(mut self, wanted: bool) -> MakeBook {
        self.variations = wanted;
        self
    }

    /// Sets the language of the piece letters in moves. English letters are always accepted as well. Default: English
    /// only.
    pub fn piece_letters(mut self, letters: PieceLetters) -> MakeBook {
        self.piece_letters = letters;
        self
    }

    /// Sets whether the run fails at the first rejected game. Default: no.
    pub fn strict(mut self, strict: bool) -> MakeBook {
        self.strict = strict;
        self
    }

    /// Sets the filter that selects the moves of the book and of the OOBS database. Default: Polyglot's filter, which
    /// keeps moves that were played at least three times.
    pub fn move_filter(mut self, filter: MoveFilter) -> MakeBook {
        self.move_filter = filter;
        self
    }

    /// Sets how the weights of moves in the book are computed. Default: Polyglot's formula, which adds 2 for a win and
    /// 1 for a draw.
    pub fn weights(mut self, weights: Weights) -> MakeBook {
        self.weights = weights;
        self
    }

    /// Sets how much evaluation a book move may lose. Moves that lose more are dropped. Only positions that the moves
    /// of the book reach from the starting position are checked. Default: no move is dropped.
    pub fn max_loss(mut self, max_loss: MaxLoss) -> MakeBook {
        self.max_loss = Some(max_loss);
        self
    }

    /// Sets how the weights of moves in the book are computed from evaluations. Default: weights depend only on
    /// results.
    pub fn eval_weights(mut self, eval_weights: EvalWeights) -> MakeBook {
        self.eval_weights = Some(eval_weights);
        self
    }

    /// Sets the minimum number of times that a move must have been played to be kept in the book and the OOBS database.
    /// Default: 3.
    pub fn min_game(mut self, times: u64) -> MakeBook {
        self.move_filter.min_game = times;
        self
    }

    /// Sets the comment in the book's header. Default: a description of how the book was made.
    pub fn comment(mut self, comment: impl Into<String>) -> MakeBook {
        self.comment = Some(comment.into());
        self
    }

    /// Sets whether the book has a header. Default: yes.
    pub fn with_header(mut self, header: bool) -> MakeBook {
        self.header = header;
        self
    }

    /// Sets the number of threads that replay games; 0 means one per core. Default: 0.
    pub fn threads(mut self, threads: usize) -> MakeBook {
        self.threads = threads;
        self
    }

    /// Sets the memory budget in bytes. Data that exceeds it is spilled to temporary files. Default: 1 GiB.
    pub fn memory(mut self, bytes: usize) -> MakeBook {
        self.memory.bytes = bytes;
        self
    }

    /// Sets the directory for temporary files. Default: the temporary directory of the operating system.
    pub fn temp_dir(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.memory.temp_dir = path.into();
        self
    }

    /// Sets a flag with which another thread can cancel the run. When that thread sets the flag to `true`, the run
    /// fails with [`Error::Interrupted`].
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MakeBook {
        self.stop = stop;
        self
    }

    /// Returns the progress of the run, which another thread can display.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Returns [`Error::Interrupted`] if the stop flag of the run is set.
    pub(super) fn refuse_if_stopped(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Returns `true` if the run may count games of variants other than standard chess.
    pub(super) fn distinguishes_variants(&self) -> bool {
        !self.variant.is_standard()
    }

    /// Returns the options that select the games of an explorer's index, as command-line options. Options that do not
    /// affect the index are left out. The variant and the maximum number of half-moves are also left out, because the
    /// index stores them separately.
    pub(super) fn option_text_of_games(&self) -> String {
        let mut of_games = self.clone();
        of_games.inputs.clear();
        of_games.max_ply = MakeBook::DEFAULT_MAX_PLY;
        of_games.unfinished = Unfinished::default();
        of_games.variations = false;
        of_games.variant = VariantChoice::default();
        of_games.option_text()
    }

    /// Returns the options that select the counted half-moves, as text for the header of a book. Options with their
    /// default values are left out.
    pub(super) fn option_text(&self) -> String {
        let (max_ply, letters, variant) = (self.max_ply, self.piece_letters, &self.variant);
        let mut untagged = self.inputs.iter().map(Input::untagged_variant);
        option_text([
            valued(
                "max-ply",
                (max_ply != MakeBook::DEFAULT_MAX_PLY).then_some(max_ply),
            ),
            switch("unfinished skip", self.unfinished == Unfinished::Skip),
            switch("keep-prefix", self.keep_prefix),
            switch("variations", self.variations),
            valued(
                "piece-letters",
                (letters != PieceLetters::default()).then_some(letters),
            ),
            valued("variant", (!variant.is_standard()).then_some(variant)),
            valued(
                "untagged-variant",
                untagged.find(|untagged| *untagged != Variant::Standard),
            ),
            Some(self.selection.option_text()).filter(|text| !text.is_empty()),
        ])
    }
}

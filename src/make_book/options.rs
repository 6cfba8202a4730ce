//! The options of a run.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use super::progress::Progress;
use crate::{
    book::Weights,
    evals::MaxLoss,
    pgn::{GameFilter, Input},
    position::{PieceLetters, VariantChoice},
    provenance::{option_text, switch, valued},
    sort::Memory,
    suite::{Suite, SuiteFormat},
    tally::{By, MoveFilter},
};

/// How games whose result is not known count.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Unfinished {
    /// As draws.
    #[default]
    Draw,
    /// Not at all.
    Skip,
}

/// A suite of the lines that games begin with.
#[derive(Clone, Debug)]
pub(super) struct SuiteOutput {
    pub path: PathBuf,
    pub format: SuiteFormat,
    pub suite: Suite,
}

/// Makes books from games: inputs and options, then [`run`](MakeBook::run).
///
/// Nothing is written unless you name an output with [`bin`](MakeBook::bin), [`leveldb`](MakeBook::leveldb),
/// [`obs`](MakeBook::obs), [`counts`](MakeBook::counts) or [`suite`](MakeBook::suite). An input is a file of PGN or, with
/// the crate's feature `parquet`, a directory of [counts](crate::counts).
///
/// The defaults are those of `polyglot make-book`, but for a header that says where the book comes
/// from.
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
    pub(super) explorer: bool,
    pub(super) obs: Option<PathBuf>,
    pub(super) counts: Option<PathBuf>,
    pub(super) by: Option<By>,
    pub(super) prune_counts: u64,
    pub(super) suite: Option<SuiteOutput>,
    pub(super) force: bool,
    pub(super) allow_empty: bool,
    pub(super) max_ply: usize,
    pub(super) game_filter: GameFilter,
    pub(super) drop_duplicates: bool,
    pub(super) variant: VariantChoice,
    pub(super) unfinished: Unfinished,
    pub(super) keep_prefix: bool,
    pub(super) variations: bool,
    pub(super) piece_letters: PieceLetters,
    pub(super) strict: bool,
    pub(super) move_filter: MoveFilter,
    pub(super) weights: Weights,
    pub(super) max_loss: Option<MaxLoss>,
    pub(super) comment: Option<String>,
    pub(super) header: bool,
    pub(super) threads: usize,
    pub(super) memory: Memory,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) progress: Arc<Progress>,
}

impl MakeBook {
    /// How many half-moves of each game count by default.
    pub const DEFAULT_MAX_PLY: usize = 1024;

    /// A run over these inputs, in this order, that writes nothing yet.
    pub fn new(inputs: impl IntoIterator<Item = Input>) -> MakeBook {
        MakeBook {
            inputs: inputs.into_iter().collect(),
            bin: None,
            leveldb: None,
            index_stats: false,
            explorer: false,
            obs: None,
            counts: None,
            by: None,
            prune_counts: 0,
            suite: None,
            force: false,
            allow_empty: false,
            max_ply: MakeBook::DEFAULT_MAX_PLY,
            game_filter: GameFilter::default(),
            drop_duplicates: false,
            variant: VariantChoice::default(),
            unfinished: Unfinished::default(),
            keep_prefix: false,
            variations: false,
            piece_letters: PieceLetters::default(),
            strict: false,
            move_filter: MoveFilter::default(),
            weights: Weights::default(),
            max_loss: None,
            comment: None,
            header: true,
            threads: 0,
            memory: Memory::default(),
            stop: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// Writes a Polyglot book to this file, replacing the old file when the book is complete.
    pub fn bin(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.bin = Some(path.into());
        self
    }

    /// Writes a [LevelDB index](crate::index) to this directory.
    pub fn leveldb(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.leveldb = Some(path.into());
        self
    }

    /// Adds statistics per position to the index.
    pub fn index_stats(mut self, stats: bool) -> MakeBook {
        self.index_stats = stats;
        self
    }

    /// Adds the data of the [explorer](crate::explorer) to the index.
    pub fn explorer(mut self, explorer: bool) -> MakeBook {
        self.explorer = explorer;
        self
    }

    /// Writes a [suite](crate::suite) to this file: the lines of [`Suite::plies`] half-moves that at least
    /// [`min_game`](MakeBook::min_game) games played, or the positions that as many games reached after these lines.
    /// Variations do not count.
    ///
    /// If [`Suite::starts`] has positions, a line begins where a game first reaches one of them. Otherwise it begins at
    /// the start of the game, which must be the starting position of the variant; games from other positions are not
    /// used.
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

    /// Replaces an index, an OOBS database or counts that exist, and any file where the book goes. Default: an error.
    pub fn force(mut self, force: bool) -> MakeBook {
        self.force = force;
        self
    }

    /// Writes outputs even if no game counts or no move is kept. Default: an error,
    /// [`Error::Empty`](crate::Error::Empty), that says what took them.
    pub fn allow_empty(mut self, allow: bool) -> MakeBook {
        self.allow_empty = allow;
        self
    }

    /// How many half-moves of each game count; later ones are not read. Default: 1024.
    pub fn max_ply(mut self, plies: usize) -> MakeBook {
        self.max_ply = plies;
        self
    }

    /// Which games are used. Default: all.
    pub fn game_filter(mut self, game_filter: GameFilter) -> MakeBook {
        self.game_filter = game_filter;
        self
    }

    /// Leaves a game out that has the same moves, players and result as one before it that counts. All its moves are
    /// compared, those that do not count too, and the names as [`NameMatch`](crate::pgn::NameMatch) has it. Games that
    /// name neither player must have a date and an event, and these must be the same as well. Default: no.
    pub fn drop_duplicates(mut self, drop: bool) -> MakeBook {
        self.drop_duplicates = drop;
        self
    }

    /// Which variant is counted, by the `Variant` tags of the games: one, or each game as its own.
    /// Default: standard chess.
    pub fn variant(mut self, variant: impl Into<VariantChoice>) -> MakeBook {
        self.variant = variant.into();
        self
    }

    /// How games whose result is not known count. Default: as draws.
    pub fn unfinished(mut self, unfinished: Unfinished) -> MakeBook {
        self.unfinished = unfinished;
        self
    }

    /// Counts the moves before an illegal one instead of leaving the whole game out.
    pub fn keep_prefix(mut self, keep: bool) -> MakeBook {
        self.keep_prefix = keep;
        self
    }

    /// Counts the moves of variations too, each variation once from where it branches, with the weight of a
    /// draw. An index has the positions of main lines only. Default: no.
    pub fn variations(mut self, wanted: bool) -> MakeBook {
        self.variations = wanted;
        self
    }

    /// The language whose piece letters moves may have in addition to the English ones. Default: English.
    pub fn piece_letters(mut self, letters: PieceLetters) -> MakeBook {
        self.piece_letters = letters;
        self
    }

    /// Ends the run at the first rejected game.
    pub fn strict(mut self, strict: bool) -> MakeBook {
        self.strict = strict;
        self
    }

    /// Which moves the book and the database keep.
    pub fn move_filter(mut self, filter: MoveFilter) -> MakeBook {
        self.move_filter = filter;
        self
    }

    /// How much moves weigh in the book.
    pub fn weights(mut self, weights: Weights) -> MakeBook {
        self.weights = weights;
        self
    }

    /// Leaves moves out of the book that lose too much by evaluations, in the positions that its lines reach from the
    /// start. Default: none.
    pub fn max_loss(mut self, max_loss: MaxLoss) -> MakeBook {
        self.max_loss = Some(max_loss);
        self
    }

    /// How many times a move must have been played at least to be kept. Default: 3.
    pub fn min_game(mut self, times: u64) -> MakeBook {
        self.move_filter.min_game = times;
        self
    }

    /// Text for the book's header in place of the one that says how the book was made.
    pub fn comment(mut self, comment: impl Into<String>) -> MakeBook {
        self.comment = Some(comment.into());
        self
    }

    /// Whether the book has a header. Default: yes.
    pub fn with_header(mut self, header: bool) -> MakeBook {
        self.header = header;
        self
    }

    /// How many threads replay games; 0 is one per core. Default: 0.
    pub fn threads(mut self, threads: usize) -> MakeBook {
        self.threads = threads;
        self
    }

    /// How many bytes the counting tables may take before they go to temporary files. Default: 1 GiB.
    pub fn memory(mut self, bytes: usize) -> MakeBook {
        self.memory.bytes = bytes;
        self
    }

    /// The directory of temporary files. Default: the system's.
    pub fn temp_dir(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.memory.temp_dir = path.into();
        self
    }

    /// A flag that, once set, ends the run with [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MakeBook {
        self.stop = stop;
        self
    }

    /// How far the run has come, for another thread to show.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Whether games of other variants than standard chess may count.
    pub(super) fn distinguishes_variants(&self) -> bool {
        !self.variant.is_standard()
    }

    /// The options that decide which half-moves count and that are not the defaults, as the header of a book
    /// lists them.
    pub(super) fn option_text(&self) -> String {
        let (max_ply, letters, variant) = (self.max_ply, self.piece_letters, &self.variant);
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
            Some(self.game_filter.option_text()).filter(|text| !text.is_empty()),
            switch("drop-duplicates", self.drop_duplicates),
        ])
    }
}

//! What a run is to do.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use shakmaty::Color;

use super::Progress;
use crate::{
    book::{Factors, Scale, Weighting},
    pgn::{Input, Selection},
};

/// What to do with games whose result is not known.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Unfinished {
    /// Count them as draws.
    #[default]
    Draw,
    /// Leave them out.
    Skip,
}

/// Makes books from games: inputs and options, then [`run`](MakeBook::run).
///
/// The defaults are those of `polyglot make-book`, but for a header that tells where the book comes
/// from.
///
/// ```
/// use polybook::{MakeBook, pgn::Input};
///
/// let report = MakeBook::new([Input::file("data/famous.pgn")]).max_ply(10).run()?;
/// assert!(report.games.counted > 30);
/// assert_eq!(report.plies, 10 * report.games.counted);
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MakeBook {
    pub(super) inputs: Vec<Input>,
    pub(super) bin: Option<PathBuf>,
    pub(super) leveldb: Option<PathBuf>,
    pub(super) index_stats: bool,
    pub(super) force: bool,
    pub(super) max_ply: usize,
    pub(super) selection: Selection,
    pub(super) unfinished: Unfinished,
    pub(super) keep_prefix: bool,
    pub(super) strict: bool,
    pub(super) weighting: Weighting,
    pub(super) comment: Option<String>,
    pub(super) header: bool,
    pub(super) threads: usize,
    pub(super) memory: usize,
    pub(super) temp_dir: PathBuf,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) progress: Arc<Progress>,
}

impl MakeBook {
    /// A run over these inputs, in this order, that writes nothing yet.
    pub fn new(inputs: impl IntoIterator<Item = Input>) -> MakeBook {
        MakeBook {
            inputs: inputs.into_iter().collect(),
            bin: None,
            leveldb: None,
            index_stats: false,
            force: false,
            max_ply: 1024,
            selection: Selection::default(),
            unfinished: Unfinished::default(),
            keep_prefix: false,
            strict: false,
            weighting: Weighting::default(),
            comment: None,
            header: true,
            threads: 0,
            memory: 1 << 30,
            temp_dir: std::env::temp_dir(),
            stop: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// Writes a Polyglot book to this file, replacing what is there when the book is complete.
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

    /// Replaces an index that exists, which is refused unless said.
    pub fn force(mut self, force: bool) -> MakeBook {
        self.force = force;
        self
    }

    /// How many half-moves of each game count. Those behind are not even looked at. 1024 unless said.
    pub fn max_ply(mut self, plies: usize) -> MakeBook {
        self.max_ply = plies;
        self
    }

    /// Which games count. All unless said.
    pub fn selection(mut self, selection: Selection) -> MakeBook {
        self.selection = selection;
        self
    }

    /// What to do with games whose result is not known.
    pub fn unfinished(mut self, unfinished: Unfinished) -> MakeBook {
        self.unfinished = unfinished;
        self
    }

    /// Counts the moves before an illegal one instead of leaving the whole game out.
    pub fn keep_prefix(mut self, keep: bool) -> MakeBook {
        self.keep_prefix = keep;
        self
    }

    /// Ends the run at the first rejected game.
    pub fn strict(mut self, strict: bool) -> MakeBook {
        self.strict = strict;
        self
    }

    /// Which moves the book keeps and what they weigh.
    pub fn weighting(mut self, weighting: Weighting) -> MakeBook {
        self.weighting = weighting;
        self
    }

    /// In how many games a move must have been played to be kept. 3 unless said.
    pub fn min_game(mut self, games: u64) -> MakeBook {
        self.weighting.min_game = games;
        self
    }

    /// Text for the book's header in place of the one that tells how the book was made.
    pub fn comment(mut self, comment: impl Into<String>) -> MakeBook {
        self.comment = Some(comment.into());
        self
    }

    /// Whether the book has a header. It has unless said.
    pub fn with_header(mut self, header: bool) -> MakeBook {
        self.header = header;
        self
    }

    /// How many threads replay games; 0, as unless said, for one per core.
    pub fn threads(mut self, threads: usize) -> MakeBook {
        self.threads = threads;
        self
    }

    /// How many bytes the counting tables may take before they go to temporary files. 1 GiB unless
    /// said.
    pub fn memory(mut self, bytes: usize) -> MakeBook {
        self.memory = bytes;
        self
    }

    /// Where temporary files go. The system's directory for them unless said.
    pub fn temp_dir(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.temp_dir = path.into();
        self
    }

    /// A flag that ends the run with [`Error::Interrupted`](crate::Error::Interrupted) when somebody
    /// sets it.
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MakeBook {
        self.stop = stop;
        self
    }

    /// How far the run has come, to be looked at from another thread.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Whether moves are counted: always, unless there is to be an index and nothing else.
    pub(super) fn counts_moves(&self) -> bool {
        self.bin.is_some() || self.leveldb.is_none()
    }

    /// The options that decide what a book holds and that are not the defaults, as they are written on
    /// a command line.
    pub(super) fn option_text(&self) -> String {
        let mut options = Vec::new();
        let mut say = |text: String| options.push(text);
        let default = MakeBook::new([]);
        let Weighting {
            min_game,
            min_score,
            only,
            uniform,
            factors,
            scale,
        } = &self.weighting;
        if self.max_ply != default.max_ply {
            say(format!("--max-ply {}", self.max_ply));
        }
        if *min_game != default.weighting.min_game {
            say(format!("--min-game {min_game}"));
        }
        if *min_score > 0.0 {
            say(format!("--min-score {min_score}"));
        }
        match only {
            Some(Color::White) => say("--only-white".to_owned()),
            Some(Color::Black) => say("--only-black".to_owned()),
            None => {}
        }
        if *uniform {
            say("--uniform".to_owned());
        }
        let Factors { win, draw, loss } = *factors;
        if *factors != Factors::default() {
            say(format!(
                "--win-factor {win} --draw-factor {draw} --loss-factor {loss}"
            ));
        }
        if *scale == Scale::Position {
            say("--scale position".to_owned());
        }
        if self.unfinished == Unfinished::Skip {
            say("--unfinished skip".to_owned());
        }
        if self.keep_prefix {
            say("--keep-prefix".to_owned());
        }
        let selection = self.selection.option_text();
        if !selection.is_empty() {
            say(selection);
        }
        options.join(" ")
    }
}

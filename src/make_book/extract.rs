//! The options of an output that contains the games themselves.

use std::path::PathBuf;

use crate::games::pgn::ExportFormat;

/// An output with the games that count: as PGN, as a JSON document, or as their number.
///
/// ```
/// use polybook::{MakeBook, make_book::Extract, pgn::Input, position::VariantChoice, selection::Selection};
///
/// # let dir = tempfile::tempdir()?;
/// # let out = dir.path().join("castled.pgn");
/// let mut selection = Selection::default();
/// selection.set("position", "move[O-O-O]")?;
/// let run = MakeBook::new([Input::file("data/famous.pgn")]).variant(VariantChoice::Auto);
/// let run = run.selection(selection).allow_empty(true).extract(Extract::new(&out));
/// let report = run.run()?;
/// assert!(report.extracted.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Extract {
    pub(super) path: PathBuf,
    pub(super) form: ExtractForm,
    pub(super) limit: Option<u64>,
    pub(super) sample: Option<(u64, u64)>,
    pub(super) keep_broken: bool,
    pub(super) escapes: bool,
}

/// The form in which an [`Extract`] writes games.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum ExtractForm {
    /// Each game as it stands in the input, byte for byte, followed by a blank line.
    #[default]
    Text,
    /// Each game in the export format of the PGN standard.
    Export(ExportFormat),
    /// A JSON document that says where each game is, and in which positions the query about positions holds.
    Json,
    /// Only the number of games.
    Count,
}

impl Extract {
    /// Creates an output at `path` that contains each game as it stands in the input. The path `-` means standard
    /// output. The output is compressed if the path ends in `.zst` or `.gz`.
    pub fn new(path: impl Into<PathBuf>) -> Extract {
        Extract {
            path: path.into(),
            form: ExtractForm::default(),
            limit: None,
            sample: None,
            keep_broken: false,
            escapes: false,
        }
    }

    /// Sets how the games are written.
    pub fn form(mut self, form: ExtractForm) -> Extract {
        self.form = form;
        self
    }

    /// Limits the output to the first `games` games. Default: no limit.
    pub fn limit(mut self, games: u64) -> Extract {
        self.limit = Some(games);
        self
    }

    /// Limits the output to a random sample of `games` games, which are kept in memory. Equal values of `seed` choose
    /// the same games. Default: all games.
    pub fn sample(mut self, games: u64, seed: u64) -> Extract {
        self.sample = Some((games, seed));
        self
    }

    /// Sets whether control characters are escaped, which is useful for showing the output in a terminal. Default: no.
    pub fn escapes(mut self, escapes: bool) -> Extract {
        self.escapes = escapes;
        self
    }

    /// Sets whether the output also contains games that cannot be read to their end, as they stand in the input.
    /// Default: no.
    pub fn keep_broken(mut self, keep: bool) -> Extract {
        self.keep_broken = keep;
        self
    }
}

//! Reads opening files of all kinds as sources of moves.
//!
//! A repertoire is a PGN, a book or an OOBS database. A source of moves that were played in games is a PGN, an index, a
//! counts directory, a database or a book. The games of a PGN are indexed or counted when it is opened, so that every
//! source can return the moves of a position, with games and results or with weights.

use std::{
    any::Any,
    cmp::Reverse,
    collections::BTreeSet,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{ByColor, Color, Move, Position, variant::VariantPosition};

use super::Edits;
use crate::{
    chess::position::{Keyed, Variant, VariantChoice},
    error::{Advice, At, Diagnosis, Error, ErrorKind, Result},
    explore::{
        explorer::Explorer,
        tree::{Explored, Limits, LinesOf, MoveSource, Order, Replies, Tree, TreeEvent, TreeMove},
    },
    formats::{
        book::{Book, is_book_or_empty},
        counts::{FindableCounts, Tally},
        index::Index,
        obs::{NOT_LEGAL, SkippedRows, legal_move, position_of},
    },
    games::{
        pgn::{Games, Input, start_of},
        results::{Results, Wdl},
        selection::{Evaluator, Selection},
    },
    kind::FileKind,
    make_book::{MakeBook, Progress, Report},
    progress::Meter,
    storage::output::{FileState, is_directory},
    storage::sort::Memory,
    task,
};

/// The options for opening a file of any kind as a [`OpenedSource`].
pub struct OpenOptions<'a> {
    /// The variant of the positions that are read from the file, or `None` to take the variant from the file.
    pub variant: Option<Variant>,
    /// The variant that is assumed for PGN games without a `Variant` tag.
    pub untagged: Variant,
    /// The filter that selects games, or `None` to use all games. It can be applied to PGN files, explorer indexes and
    /// counts directories.
    pub filter: Option<&'a Selection>,
    /// The memory budget and the temporary directory that are used while games are counted.
    pub memory: Memory,
    /// The number of threads that count games, or 0 for one per core.
    pub threads: usize,
    /// An empty directory for the index of a PGN's games. It must exist as long as the [`OpenedSource`] does.
    pub directory: &'a Path,
    /// A flag with which another thread can cancel the reading of games: after the flag is set, opening fails with
    /// [`Error::Interrupted`].
    pub stop: Arc<AtomicBool>,
    /// Called when counting starts. The returned guard is dropped when counting ends, so it can hold a progress bar.
    pub counting: &'a dyn Fn(Arc<Progress>) -> Box<dyn Any>,
}

impl<'a> OpenOptions<'a> {
    /// Creates options with which all games are counted on one thread, without showing the progress. Games without a
    /// `Variant` tag are taken as standard chess.
    pub fn new(directory: &'a Path, memory: Memory) -> OpenOptions<'a> {
        OpenOptions {
            variant: None,
            untagged: Variant::Standard,
            filter: None,
            memory,
            threads: 1,
            directory,
            stop: Arc::default(),
            counting: &|_| Box::new(()),
        }
    }
}

/// An opened source of moves, which returns the moves that it contains in any given position. It is usually a file or
/// directory: a PGN, an index, a counts directory, an OOBS database or a book.
#[derive(Debug)]
pub struct OpenedSource {
    kind: SourceKind,
    variants: BTreeSet<Variant>,
    /// The variant that the file states, or `None` if it states none or several.
    stated: Option<Variant>,
    /// The PGN file, if the source is a repertoire in PGN.
    pgn: Option<RepertoirePgn>,
    /// The positions in which games with a `FEN` tag start.
    starts: Vec<VariantPosition>,
    warnings: Vec<String>,
}

/// A repertoire in PGN. The file is read several times, and reading fails if the file has changed since it was first
/// read.
#[derive(Debug)]
pub struct RepertoirePgn {
    input: Input,
    before: Option<FileState>,
}

impl RepertoirePgn {
    fn new(input: Input) -> Result<RepertoirePgn> {
        let before = state_of(input.path())?;
        Ok(RepertoirePgn { input, before })
    }

    /// Returns the path of the PGN file.
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Returns the variant that is assumed for games without a `Variant` tag.
    pub(crate) fn untagged_variant(&self) -> Variant {
        self.input.untagged_variant()
    }

    /// Returns the PGN file as an [`Input`], from which games can be read.
    pub(super) fn input(&self) -> &Input {
        &self.input
    }

    /// Returns `true` if the file has not been written or replaced since it was first read. Does not open the file,
    /// because opening could block if a pipe has replaced it.
    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        Ok(state_of(self.path())? == self.before)
    }

    /// Returns an error if another program has changed the file since it was first read.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        if self.is_unchanged()? {
            return Ok(());
        }
        let problem = "the file changed while it was read: run the command again when no other program is writing the \
                       file";
        Err(Error::changed(self.path(), problem))
    }
}

/// Returns the state of the file at `path`, which shows later whether its content has changed. Changes of its
/// permissions or of its number of hard links do not matter. Returns `None` if the file does not exist.
fn state_of(path: &Path) -> Result<Option<FileState>> {
    let file = path.canonicalize().at(path, "read")?;
    let state = FileState::of(&file).at(path, "read")?;
    Ok(state.map(FileState::renamed))
}

#[derive(Debug)]
enum SourceKind {
    Book {
        book: Book,
        /// Whether moves of weight 0, which programs never play, are returned.
        with_unplayed: bool,
    },
    Obs(Box<crate::formats::obs::Obs>),
    Counts(Box<FindableCounts>),
    /// The moves of a repertoire, with weights instead of results.
    Lines {
        moves: Box<FindableCounts>,
        /// The number of main lines that contain each move, or `None` if the repertoire is not a PGN file. Moves with
        /// equal weights are sorted by this number in descending order.
        main_lines: Option<Box<FindableCounts>>,
    },
    Explored(Box<Explored>),
    /// An index with statistics that was made by the fork of polyglot.
    ForkIndex(Box<Index>),
    /// Another source with additional moves, keyed by the identity (a hash) of their position.
    Extended(Arc<OpenedSource>, FxHashMap<u64, Vec<TreeMove>>),
}

impl OpenedSource {
    /// Opens a file as a repertoire: a PGN, a book, or an OOBS database. In a PGN, moves in variations count like moves
    /// in main lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, if it has a different format, or if it is a pipe or a device.
    pub fn repertoire(path: &Path, options: &OpenOptions<'_>) -> Result<OpenedSource> {
        if is_directory(path)? {
            let problem = "this is a directory, but a repertoire is a PGN file, a book (.bin) or an OOBS database: give a file";
            return Err(Error::file(path, problem));
        }
        if !path.metadata().at(path, "open")?.is_file() {
            let problem = "this is a pipe or a device, but a repertoire is read several times: save it as a file";
            return Err(Error::file(path, problem));
        }
        match OpenedSource::stored(path, options)? {
            Some(OpenedSource {
                kind: SourceKind::Obs(obs),
                variants,
                stated,
                ..
            }) => {
                let (moves, skipped) = options.moves_of(&obs, &variants)?;
                Ok(OpenedSource {
                    kind: SourceKind::Lines {
                        moves: Box::new(moves),
                        main_lines: None,
                    },
                    variants,
                    stated,
                    pgn: None,
                    starts: Vec::new(),
                    warnings: skipped.warning(path.display()).into_iter().collect(),
                })
            }
            Some(known) => Ok(known),
            None => {
                let pgn = RepertoirePgn::new(options.input(path))?;
                // Both counts are in memory at the same time.
                let half = OpenOptions {
                    memory: options.memory.share(2),
                    stop: Arc::clone(&options.stop),
                    ..*options
                };
                let lines = OpenedSource::count_moves(path, MakeBook::variations, &half)?;
                let quietly = OpenOptions {
                    counting: &|_| Box::new(()),
                    ..half
                };
                let main_lines = OpenedSource::count_moves(path, |run, _| run, &quietly)?;
                let kind = match (lines.kind, main_lines.kind) {
                    (SourceKind::Counts(moves), SourceKind::Counts(main)) => SourceKind::Lines {
                        moves,
                        main_lines: Some(main),
                    },
                    (kind, _) => kind,
                };
                let starts = options.starts_of(path)?;
                pgn.check_unchanged()?;
                Ok(OpenedSource {
                    kind,
                    pgn: Some(pgn),
                    starts,
                    ..lines
                })
            }
        }
    }

    /// Opens a file or directory as a source of moves that were played in games: a PGN, an index, a counts directory,
    /// an OOBS database or a book.
    ///
    /// For a PGN, builds an index of its games in `options.directory`. If `keep_prefix` is `true`, a game with an
    /// illegal move counts up to this move. Otherwise, such a game is rejected.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, has a different format, or is an index of polyglot's fork. If
    /// `options` contains a filter, also returns an error if the source cannot apply the filter, or if it is a PGN and
    /// contains no game that passes the filter.
    pub fn source(
        path: &Path,
        keep_prefix: bool,
        options: &OpenOptions<'_>,
    ) -> Result<OpenedSource> {
        match OpenedSource::not_games(path, options)? {
            // The games of this index that reached a position may have come by other moves. The explorer refuses it.
            Some(known) if matches!(known.kind, SourceKind::ForkIndex(_)) => {
                return OpenedSource::indexes(&[path], options);
            }
            Some(known) => return Ok(known),
            None => {}
        }
        OpenedSource::indexed(
            options.run([options.input(path)]).keep_prefix(keep_prefix),
            path,
            options,
        )
    }

    /// Opens a file or directory like [`source`](OpenedSource::source), but reads a PGN file as a
    /// [repertoire](OpenedSource::repertoire), and also returns a book's moves of weight 0.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or has a different format, or if a PGN file is a pipe or a device.
    pub fn lines(path: &Path, options: &OpenOptions<'_>) -> Result<OpenedSource> {
        let Some(mut known) = OpenedSource::not_games(path, options)? else {
            return OpenedSource::repertoire(path, options);
        };
        if let SourceKind::Book { with_unplayed, .. } = &mut known.kind {
            *with_unplayed = true;
        }
        Ok(known)
    }

    /// Opens a file or directory that is not a PGN file as a source of moves. Returns `None` for a PGN file.
    fn not_games(path: &Path, options: &OpenOptions<'_>) -> Result<Option<OpenedSource>> {
        let known = match FileKind::of(path)? {
            FileKind::Counts => Some(OpenedSource::count_moves(path, |run, _| run, options)?),
            FileKind::Directory => Some(OpenedSource::index(path, options)?),
            _ => OpenedSource::stored(path, options)?,
        };
        let is_of_moves = |source: &OpenedSource| {
            let kind = &source.kind;
            !matches!(kind, SourceKind::Explored(_) | SourceKind::Counts(_))
        };
        if known.as_ref().is_some_and(is_of_moves)
            && let Some(unanswerable) = options
                .filter
                .and_then(|filter| filter.unanswerable(Evaluator::Moves))
        {
            let problem = Diagnosis::new(unanswerable.to_string())
                .advise("give the PGN file of the games or an index of them");
            return Err(Error::file(path, problem));
        }
        // Otherwise, the first look-up would verify the whole database. An engine has less time for its first move.
        if let Some(OpenedSource {
            kind: SourceKind::Obs(obs),
            ..
        }) = &known
        {
            obs.verify_once()?;
        }
        Ok(known)
    }

    /// Indexes the games of several PGN inputs in `options.directory`, and opens the index as a source of moves that
    /// were played in games.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read, if it is not a PGN, or if no game passes the filter of `options`.
    pub fn games(inputs: Vec<Input>, options: &OpenOptions<'_>) -> Result<OpenedSource> {
        let name = inputs
            .iter()
            .map(Input::name)
            .collect::<Vec<_>>()
            .join(", ");
        OpenedSource::indexed(options.run(inputs), name.as_ref(), options)
    }

    /// Runs `run` to build an index of games, and opens the index as a source of moves. Error messages give `name` as
    /// the path of the games.
    ///
    /// # Errors
    ///
    /// Returns an error if games cannot be read, or if `options` has a filter that no game passes.
    fn indexed(run: MakeBook, name: &Path, options: &OpenOptions<'_>) -> Result<OpenedSource> {
        let index = options.directory.join("games.idx");
        let run = run.allow_empty(true).explorer(&index);
        let run = run.selection(options.filter.cloned().unwrap_or_default());
        let shown = (options.counting)(run.progress());
        let report = run.run()?;
        drop(shown);
        if options.filter.is_some() && report.counts_nothing() {
            let reason = report.why_none_counts();
            let problem = format!("{reason}; change the filters, or choose another source");
            return Err(Error::empty(name, problem));
        }
        // The index contains only games that pass the filter.
        let unfiltered = OpenOptions {
            filter: None,
            memory: options.memory.clone(),
            stop: Arc::clone(&options.stop),
            ..*options
        };
        let mut known = OpenedSource::index(&index, &unfiltered)?;
        known.variants = variants_of(&report);
        if options.variant.is_none() {
            known.read_as(known.variant());
        }
        known.warnings = warnings(&report);
        Ok(known)
    }

    /// Opens a book or an OOBS database. Returns `None` if the file has a different format.
    fn stored(path: &Path, options: &OpenOptions<'_>) -> Result<Option<OpenedSource>> {
        let with = |kind, own: Option<Variant>| {
            Some(OpenedSource {
                kind,
                variants: BTreeSet::from([options.variant.or(own).unwrap_or_default()]),
                stated: own,
                pgn: None,
                starts: Vec::new(),
                warnings: Vec::new(),
            })
        };
        if FileKind::of(path)? == FileKind::Sqlite {
            let obs = crate::formats::obs::Obs::open_until(path, Arc::clone(&options.stop))?;
            obs.variant(options.variant)?;
            let own = obs.info().variant.parse().ok();
            options.refuse_other(path, std::slice::from_ref(&obs.info().variant))?;
            return Ok(with(SourceKind::Obs(Box::new(obs)), own));
        }
        let is_named_book = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("bin"));
        let metadata = path.metadata().at(path, "open")?;
        if is_named_book || metadata.len() > 0 && is_book_or_empty(path)? {
            let book = Book::open_within(path, options.memory.bytes as u64 / 2)?;
            let own = book.variant()?;
            options.refuse_other(path, &book.variants()?)?;
            let with_unplayed = false;
            return Ok(with(
                SourceKind::Book {
                    book,
                    with_unplayed,
                },
                own,
            ));
        }
        Ok(None)
    }

    /// Creates a source of the moves that were played in games of the variant `variant` in `explorer`. Only games that
    /// pass `filters` count.
    pub fn filtered(
        explorer: &Arc<Explorer>,
        variant: Variant,
        filters: &Selection,
    ) -> OpenedSource {
        let explored = Explored {
            explorer: Arc::clone(explorer),
            variant,
            selection: filters.clone(),
        };
        OpenedSource::without_file(
            SourceKind::Explored(Box::new(explored)),
            BTreeSet::from([variant]),
        )
    }

    /// Replaces the set of variants of this source by that of `other`. `self` must be a copy of `other` from which
    /// moves were removed. The copy may have lost all games of a variant, but must still count as a source of this
    /// variant.
    pub(super) fn with_variants_of(self, other: &OpenedSource) -> OpenedSource {
        OpenedSource {
            variants: other.variants.clone(),
            ..self
        }
    }

    /// Returns a copy of the repertoire to which the lines added by `edits` contribute their moves of the side `color`.
    /// Moves that `edits` removes are not removed; see [`without_moves`](super::without_moves).
    pub fn extended(repertoire: &Arc<OpenedSource>, color: Color, edits: &Edits) -> OpenedSource {
        let mut added: FxHashMap<u64, Vec<TreeMove>> = FxHashMap::default();
        for line in edits.added() {
            let mut pos = Keyed::new(repertoire.variant().start());
            for mv in line {
                if pos.position().turn() == color {
                    let moves = added.entry(pos.identity()).or_default();
                    if moves.iter().all(|known| known.mv != *mv) {
                        moves.push(TreeMove::without_evaluation(*mv, 1, None));
                    }
                }
                pos.play(*mv);
            }
        }
        let extended = SourceKind::Extended(Arc::clone(repertoire), added);
        OpenedSource {
            starts: repertoire.starts.clone(),
            ..OpenedSource::without_file(extended, repertoire.variants.clone())
        }
    }

    /// Returns the moves in the position `pos` that this source contains only because
    /// [`extended`](OpenedSource::extended) added them.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn added_moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<Move>> {
        let SourceKind::Extended(repertoire, added) = &self.kind else {
            return Ok(Vec::new());
        };
        let of_file = repertoire.moves(pos)?;
        let is_added = |mv: &Move| of_file.iter().all(|known| known.mv != *mv);
        let added = added.get(&pos.identity()).into_iter().flatten();
        Ok(added.map(|added| added.mv).filter(is_added).collect())
    }

    /// Creates a source of moves that does not belong to a file.
    fn without_file(kind: SourceKind, variants: BTreeSet<Variant>) -> OpenedSource {
        OpenedSource {
            kind,
            variants,
            stated: None,
            pgn: None,
            starts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Opens an index as a source of moves. It is an explorer index of games or of counts, or an index with statistics
    /// that was made by the fork of polyglot.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read, or if it is an index of the fork without statistics or with
    /// several variants whose positions it does not distinguish.
    fn index(path: &Path, options: &OpenOptions<'_>) -> Result<OpenedSource> {
        let index = Index::open(path)?;
        if index.kind().is_of_explorer() {
            drop(index);
            return OpenedSource::indexes(&[path], options);
        }
        let stated = index.variant().only();
        let variant = options.variant.or(stated).unwrap_or_default();
        index.refuse_other_variant(variant)?;
        // An index without statistics is an error here, and not only when its moves are looked up.
        index.moves(&Keyed::new(variant.start()))?;
        Ok(OpenedSource {
            stated,
            ..OpenedSource::without_file(
                SourceKind::ForkIndex(Box::new(index)),
                stated.map_or_else(|| Variant::ALL.into(), |own| BTreeSet::from([own])),
            )
        })
    }

    /// Opens several explorer indexes together as one source of moves.
    ///
    /// # Errors
    ///
    /// Returns an error if an index cannot be read, if it was not made for the explorer, or if an index cannot apply
    /// the filter of `options`.
    pub fn indexes(paths: &[impl AsRef<Path>], options: &OpenOptions<'_>) -> Result<OpenedSource> {
        let selection = options.filter.cloned().unwrap_or_default();
        let unanswerable = selection.unanswerable(Evaluator::Index);
        let problem = match (selection.check_for_index(), unanswerable) {
            (Err(err), _) => Some(Diagnosis::new(err.to_string())),
            (_, Some(unanswerable)) => {
                let select = "select the games with {} when you make the index";
                let advice = Advice::option(select, unanswerable.condition).of_command("make-book");
                Some(Diagnosis::new(unanswerable.to_string()).advise(advice))
            }
            _ => None,
        };
        if let (Some(problem), [first, ..]) = (problem, paths) {
            return Err(Error::file(first.as_ref(), problem));
        }
        let explorer = Explorer::open(paths.iter().map(|path| {
            let path = path.as_ref();
            let name = path.file_stem().unwrap_or(path.as_os_str());
            (name.to_string_lossy().into_owned(), path.to_owned())
        }))?;
        let stated = explorer.variant();
        let variant = options.variant.or(stated).unwrap_or_default();
        let lacking = explorer.lacking_line(&selection);
        Ok(OpenedSource {
            stated,
            warnings: Vec::from_iter(lacking.map(|line| line.trim_end().to_owned())),
            ..OpenedSource::without_file(
                SourceKind::Explored(Box::new(Explored {
                    explorer: Arc::new(explorer),
                    variant,
                    selection,
                })),
                stated.map_or_else(|| Variant::ALL.into(), |own| BTreeSet::from([own])),
            )
        })
    }

    /// Counts the moves of `path`, a PGN file or a counts directory, and returns them as a source. `option` is a method
    /// of [`MakeBook`] that sets a flag, such as [`MakeBook::variations`]; this flag is set to `true` for the count.
    fn count_moves(
        path: &Path,
        option: fn(MakeBook, bool) -> MakeBook,
        options: &OpenOptions<'_>,
    ) -> Result<OpenedSource> {
        // A directory of counts stores the options with which it was made, so most options apply only to PGN.
        let run = if is_directory(path)? {
            options
                .run([Input::file(path)])
                .variant(VariantChoice::default())
                .selection(options.filter.cloned().unwrap_or_default())
        } else {
            options.run([options.input(path)]).keep_prefix(true)
        };
        let run = option(run, true);
        let shown = (options.counting)(run.progress());
        let (counts, report) = run.count()?;
        let counts = task::pool(options.threads)?.install(|| FindableCounts::new(counts))?;
        drop(shown);
        let mut variants = variants_of(&report);
        variants.extend(options.variant);
        Ok(OpenedSource {
            kind: SourceKind::Counts(Box::new(counts)),
            variants,
            stated: None,
            pgn: None,
            starts: Vec::new(),
            warnings: warnings(&report),
        })
    }

    /// Returns the moves that this repertoire contains in the position `pos`, sorted by weight in descending order. If
    /// the repertoire is a PGN file, a move of a main line precedes a move of a variation with the same weight.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn moves_by_weight(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<Move>> {
        let mut moves = self.moves(pos)?;
        // The sort is stable, so moves with equal weights stay in their order.
        moves.sort_by_key(|mv| Reverse(mv.weight));
        Ok(moves.into_iter().map(|mv| mv.mv).collect())
    }

    /// Returns `true` if this source contains positions of `variant`, or of a variant with the same rules for moves.
    pub fn is_for(&self, variant: Variant) -> bool {
        self.variants.iter().any(|own| own.is_played_like(variant))
    }

    /// Returns the variant that the file states, or `None` if it states none or several.
    pub fn stated_variant(&self) -> Option<Variant> {
        self.stated
    }

    /// Returns the variant of the positions in this source. If there are several variants, returns the first one in
    /// the order of [`Variant`].
    pub fn variant(&self) -> Variant {
        self.variants.first().copied().unwrap_or_default()
    }

    /// Selects the variant whose moves this source returns, and returns this variant: the first one, in the order of
    /// [`Variant`], that both this source and `repertoire` contain.
    ///
    /// # Errors
    ///
    /// Returns an error if `self` and `repertoire` have no variant in common.
    pub fn read_for(&mut self, repertoire: &OpenedSource) -> Result<Variant> {
        let mut own = repertoire.variants.iter().copied();
        let shared = own.find(|own| self.is_for(*own));
        let variant = shared.ok_or_else(|| {
            let variant = repertoire.variant();
            let problem =
                format!("the source contains no games of {variant}, the variant of the repertoire");
            Error::option(ErrorKind::Unsuitable, "against", problem)
        })?;
        self.read_as(variant);
        Ok(variant)
    }

    fn read_as(&mut self, variant: Variant) {
        if let SourceKind::Explored(explored) = &mut self.kind {
            explored.variant = variant;
        }
    }

    /// Returns the position in which a repertoire for the side `color` starts: the first of these positions in which
    /// the file contains moves for this side:
    ///
    /// 1. the initial position of `variant`
    /// 2. the positions in which the games of the file start, in the order of the file
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn start(&self, variant: Variant, color: Color) -> Result<VariantPosition> {
        let usual = variant.start();
        let own = self.starts.iter();
        let own = own.filter(|start| start.variant() == usual.variant());
        for start in std::iter::once(&usual).chain(own) {
            let pos = Keyed::new(start.clone());
            if !LinesOf(self, color).moves(&pos)?.is_empty() {
                return Ok(start.clone());
            }
        }
        Ok(usual)
    }

    /// Returns an iterator over the initial positions of all variants in this source, followed by the start positions
    /// of its games with a `FEN` tag.
    pub(super) fn starts(&self) -> impl Iterator<Item = VariantPosition> {
        let usual = self.variants.iter().map(|variant| variant.start());
        usual.chain(self.starts.iter().cloned())
    }

    /// Returns the PGN file from which this source was opened as a repertoire, or `None` if it was opened differently.
    pub fn pgn(&self) -> Option<&RepertoirePgn> {
        self.pgn.as_ref()
    }

    /// Returns the warnings about the file and its games. Each warning is a single line of text.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns a warning if the repertoire seems to be made for the opponent of the side `color`, otherwise `None`. One
    /// sign is that the header of a book names the opponent's color. Another sign is that `color` has several moves in
    /// many more positions than the opponent, because a repertoire usually contains only one move of its own side in
    /// each position.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn color_warning(&self, color: Color) -> Result<Option<String>> {
        let other = color.other();
        let is_for = format!("Repertoire for {other}");
        if let SourceKind::Book { book, .. } = &self.kind
            && let Some(header) = book.readable_header()?
            && header.comment.contains(&is_for)
        {
            return Ok(Some(format!(
                "the header of the repertoire says that the repertoire is for {other}"
            )));
        }
        let mut several = ByColor { white: 0, black: 0 };
        let meter = Meter::default();
        for start in self.starts() {
            let limits = Limits {
                moves: Some(MAX_EXAMINED_MOVES),
                ..Limits::default()
            };
            let mut moves = 0;
            Tree::new(Replies(self), start, limits, &meter).walk(
                Order::Positions,
                &mut |event| {
                    match event {
                        TreeEvent::Position { .. } => moves = 0,
                        TreeEvent::Move(branch) => {
                            moves += 1;
                            let turn = branch.pos.position().turn();
                            *several.get_mut(turn) += u64::from(moves == 2);
                        }
                        _ => (),
                    }
                    Ok(())
                },
            )?;
        }
        let [own, replies] = [color, other].map(|color| *several.get(color));
        Ok((own > 3 + 4 * replies).then(|| {
            format!(
                "the repertoire seems to be for {other}: it has several moves of {color} in {own} positions, but \
                 several moves of {other} in {replies}"
            )
        }))
    }

    /// Returns `true` if the source contains the results of games, and `false` if it contains only weights. A book
    /// contains only weights, and so does a source that was opened as a [repertoire](OpenedSource::repertoire).
    pub fn has_results(&self) -> bool {
        !matches!(
            self.kind,
            SourceKind::Book { .. } | SourceKind::Lines { .. } | SourceKind::Extended(..)
        )
    }

    /// Returns the explorer and the filters of this source, if it is an explorer index or the games of a PGN file.
    /// Returns `None` for any other source.
    pub fn explored(&self) -> Option<&Explored> {
        match &self.kind {
            SourceKind::Explored(explored) => Some(explored),
            _ => None,
        }
    }

    /// Returns the positions in which games with a `FEN` tag start. The slice is empty if the source is not a
    /// repertoire in PGN.
    pub fn game_starts(&self) -> &[VariantPosition] {
        &self.starts
    }

    /// Returns the book, or `None` if this source is not a book.
    pub(super) fn into_book(self) -> Option<Book> {
        match self.kind {
            SourceKind::Book { book, .. } => Some(book),
            _ => None,
        }
    }
}

impl OpenOptions<'_> {
    fn input(&self, path: &Path) -> Input {
        Input::file(path).with_untagged_variant(self.untagged)
    }

    /// Returns an error if the file at `path` states one or more variants, but not the variant of these options. `own`
    /// contains the names of the variants that the file states.
    fn refuse_other(&self, path: &Path, own: &[String]) -> Result<()> {
        self.variant
            .map_or(Ok(()), |asked| asked.check_file(path, own))
    }

    /// Creates a [`MakeBook`] run that reads the games of `inputs` with these options.
    fn run(&self, inputs: impl IntoIterator<Item = Input>) -> MakeBook {
        MakeBook::new(inputs)
            .variant(VariantChoice::Auto)
            .memory(self.memory.bytes)
            .threads(self.threads)
            .temp_dir(&self.memory.temp_dir)
            .stop_flag(Arc::clone(&self.stop))
    }

    /// Returns the positions in which the games of the PGN file `path` start, in the order of the games. Duplicates and
    /// the initial positions of the variants are left out.
    fn starts_of(&self, path: &Path) -> Result<Vec<VariantPosition>> {
        let games = Games {
            inputs: &[self.input(path)],
            memory: self.memory.clone(),
            threads: self.threads,
            meter: &Meter::stopped_by(&self.stop),
        };
        let (mut starts, mut seen) = (Vec::new(), FxHashSet::default());
        games.for_each(
            |_, reader| {
                let start = start_of(reader.tags());
                reader.skip_moves();
                Ok(start
                    .ok()
                    .filter(|(variant, start)| *start != variant.start()))
            },
            |_, start| {
                // In some variants, the identity of a position is the same as in standard chess.
                let new = start.filter(|(_, start)| {
                    seen.insert((start.variant(), Keyed::new(start.clone()).identity()))
                });
                starts.extend(new.map(|(_, start)| start));
                Ok(())
            },
        )?;
        Ok(starts)
    }

    /// Loads the moves of the OOBS database `obs` into memory, because looking up many positions in the database would
    /// be slow. Moves that the database marks as inactive are left out. Also returns which rows were skipped because
    /// they cannot be read. The positions belong to the first of `variants`, or to standard chess if the set is empty.
    fn moves_of(
        &self,
        obs: &crate::formats::obs::Obs,
        variants: &BTreeSet<Variant>,
    ) -> Result<(FindableCounts, SkippedRows)> {
        let variant = variants.first().copied().unwrap_or_default();
        let tally = Tally::new(self.memory.share(2));
        let mut skipped = SkippedRows::default();
        let mut rows = obs.rows()?;
        for row in &mut rows {
            let row = row?;
            if !row.is_active() {
                continue;
            }
            let pos = match position_of(variant, &row.epd) {
                Ok(pos) => pos,
                Err(err) => {
                    skipped.row(&row, &err.to_string());
                    continue;
                }
            };
            let Some(mv) = legal_move(&pos, &row.mv) else {
                skipped.row(&row, NOT_LEGAL);
                continue;
            };
            // The tally drops moves without games, so each move is counted at least once.
            let games = Wdl {
                wins: row.stats.games().max(1),
                ..Wdl::default()
            };
            let turn = pos.turn();
            tally.add(Keyed::new(pos).identity(), mv, turn, games)?;
        }
        skipped.add(rows.skipped_rows().clone());
        let moves = task::pool(self.threads)?.install(|| FindableCounts::new(tally.sort()?))?;
        Ok((moves, skipped))
    }
}

/// The maximum number of moves that [`OpenedSource::color_warning`] examines from each start position, so that the
/// check of a large repertoire does not take long.
const MAX_EXAMINED_MOVES: u64 = 10_000;

/// Returns the variants of the games that `report` counts, or standard chess if it counts no game.
fn variants_of(report: &Report) -> BTreeSet<Variant> {
    if report.totals.variants.is_empty() {
        BTreeSet::from([Variant::Standard])
    } else {
        report.totals.variants.keys().copied().collect()
    }
}

/// Returns the warnings in `report`, followed by a warning about rejected games if there are any.
fn warnings(report: &Report) -> Vec<String> {
    let rejected = report.totals.games.rejected;
    let first = report.rejected.first();
    let first =
        first.map(|first| format!("{rejected} rejected; the first rejected game is {first}"));
    report.warnings.iter().cloned().chain(first).collect()
}

/// Skips book moves with weight 0, because programs never play them, unless the book was opened with
/// [`OpenedSource::lines`].
impl MoveSource for OpenedSource {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        match &self.kind {
            SourceKind::Book {
                book,
                with_unplayed,
            } => {
                let mut moves = MoveSource::moves(book, pos)?;
                moves.retain(|mv| mv.weight > 0 || *with_unplayed);
                Ok(moves)
            }
            SourceKind::Obs(obs) => MoveSource::moves(obs.as_ref(), pos),
            SourceKind::Counts(counts) => moves_of(counts, pos, |mv, stats| {
                let results = Results::from_side(pos.position().turn(), stats);
                TreeMove::without_evaluation(mv, stats.games(), Some(results))
            }),
            SourceKind::Lines { moves, main_lines } => {
                let mut moves = moves_of(moves, pos, |mv, stats| {
                    TreeMove::without_evaluation(mv, stats.games(), None)
                })?;
                if let Some(main_lines) = main_lines
                    && moves.len() > 1
                {
                    let main = main_lines.moves(pos)?;
                    let lines = |mv: Move| {
                        let found = main.iter().find(|counted| counted.mv == mv.into());
                        found.map_or(0, |counted| counted.stats.games())
                    };
                    moves.sort_by_key(|known| Reverse((known.weight, lines(known.mv))));
                }
                Ok(moves)
            }
            SourceKind::Explored(explored) => explored.moves(pos),
            SourceKind::ForkIndex(index) => index.moves(pos),
            SourceKind::Extended(repertoire, added) => {
                let mut moves = repertoire.moves(pos)?;
                let added = added.get(&pos.identity()).into_iter().flatten();
                let is_new = |mv: &&TreeMove| moves.iter().all(|known| known.mv != mv.mv);
                let new: Vec<TreeMove> = added.filter(is_new).cloned().collect();
                moves.extend(new);
                Ok(moves)
            }
        }
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        match &self.kind {
            SourceKind::Book { book, .. } => book.position_id(pos),
            SourceKind::Extended(repertoire, _) => repertoire.position_id(pos),
            _ => pos.identity(),
        }
    }

    fn lacks(&self, key: u64) -> bool {
        matches!(&self.kind, SourceKind::Book { book, .. } if book.lacks(key))
    }

    fn refuse_changed(&self) -> Result<()> {
        match &self.kind {
            SourceKind::Obs(obs) => obs.refuse_changed(),
            SourceKind::Extended(repertoire, _) => MoveSource::refuse_changed(&**repertoire),
            _ => Ok(()),
        }
    }
}

/// Returns the legal moves that `counts` contains for the position `pos`, sorted by weight in descending order.
/// `to_tree_move` creates a [`TreeMove`] from a move and its results.
fn moves_of(
    counts: &FindableCounts,
    pos: &Keyed<VariantPosition>,
    to_tree_move: impl Fn(Move, Wdl) -> TreeMove,
) -> Result<Vec<TreeMove>> {
    let counted = counts.moves(pos)?.into_iter();
    let legal = counted.filter_map(|count| Some((count.mv.to_move(pos.position())?, count.stats)));
    let mut moves: Vec<TreeMove> = legal.map(|(mv, stats)| to_tree_move(mv, stats)).collect();
    // The sort is stable, so moves of equal weight stay in the order of `counts`.
    moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
    Ok(moves)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_repertoire_that_changes_between_two_readings_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, text) in [("a.pgn", "1. e4 *"), ("b.pgn", "1. d4 *")] {
            fs::write(at(name), text).unwrap();
        }
        let pgn = RepertoirePgn::new(Input::file(at("a.pgn"))).unwrap();
        pgn.check_unchanged().unwrap();
        // A second name changes the status of the file, but not its content.
        fs::hard_link(at("a.pgn"), at("c.pgn")).unwrap();
        pgn.check_unchanged().unwrap();
        fs::rename(at("b.pgn"), at("a.pgn")).unwrap();
        let error = pgn.check_unchanged().unwrap_err().to_string();
        let advice = "run the command again when no other program is writing";
        assert!(error.contains(advice), "{error}");
        let again = RepertoirePgn::new(Input::file(at("a.pgn"))).unwrap();
        again.check_unchanged().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_device_is_no_repertoire() {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(dir.path(), Memory::default());
        let open = |path: &Path| OpenedSource::repertoire(path, &options).map(drop);
        let error = open(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("pipe or a device"), "{error}");
        assert!(error.contains("save it as a file"), "{error}");
        fs::write(dir.path().join("saved.pgn"), "1. e4 *").unwrap();
        open(&dir.path().join("saved.pgn")).unwrap();
        assert!(matches!(
            open(&dir.path().join("a.pgn")),
            Err(Error::Io { .. })
        ));
    }

    #[test]
    fn a_repertoire_has_weights_and_no_results() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("a.pgn");
        fs::write(&pgn, "1. e4 *").unwrap();
        let options = OpenOptions::new(dir.path(), Memory::default());
        let repertoire = Arc::new(OpenedSource::repertoire(&pgn, &options).unwrap());
        let extended = OpenedSource::extended(&repertoire, Color::White, &Edits::default());
        let games = OpenedSource::source(&pgn, false, &options).unwrap();
        assert!(games.has_results());
        for source in [&*repertoire, &extended] {
            assert!(!source.has_results());
        }
    }
}

//! The explorer, which answers from indexes that were made with `make_book(explorer=...)`.

use std::{
    ffi::CString,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use polybook::{
    Error,
    counts::Memory,
    explorer::{self, HALF_LIVES, HalfLife, Line, Preparation, PrepareQuery, Query, View},
    make_book::Unfinished,
    openings,
    position::{Keyed, Variant},
    progress::Meter,
    repertoire::{OpenOptions, OpenedSource},
    selection::{Duplicates, Selection},
    storage::output::TemporaryDir,
};
use pyo3::{
    exceptions::PyUserWarning,
    prelude::*,
    types::{PyBytes, PyDict},
};
use shakmaty::{Color, variant::VariantPosition};

use crate::{
    errors::value_error,
    options::{Options, unexpected},
    position::{Given, from_argument, moves_of_board},
    results::dictionary,
    threads::{detached, pool, watched},
};

/// Indexes that are open together and answer queries about positions.
#[pyclass(frozen, module = "polybook")]
pub struct Explorer {
    explorer: explorer::Explorer,
}

#[pymethods]
impl Explorer {
    /// Opens indexes: one path, or a list of paths or of pairs of a name and a path. An index without a name is named
    /// after its directory. The option `source` accepts these names.
    #[new]
    fn new(py: Python<'_>, sources: &Bound<'_, PyAny>) -> PyResult<Explorer> {
        let sources = named_indexes(sources)?;
        // Load the openings while this thread holds the GIL, so that no other thread forks during that time.
        openings::load();
        let explorer = detached(py, || explorer::Explorer::open(sources))?;
        Ok(Explorer { explorer })
    }

    /// Returns the counts, the moves, and the top and recent games of a position, in the form in which `polybook serve`
    /// answers.
    #[pyo3(
        signature = (position=None, /, **options),
        text_signature = "($self, position=None, /, *, variant=None, view='lichess', moves=None, top_games=None, \
    recent_games=None, history=False, resulting=False, unfinished='draw', **conditions)"
    )]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        position: Given<'_, '_>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut options = Options::new(py, options)?;
        let query = self.query(position, &mut options)?;
        options.finish("answer")?;
        let answer = self.answered(py, &query.filters, || self.explorer.answer(&query))?;
        dictionary(py, &answer)
    }

    /// Returns the openings of the games that reached a position and pass the filters, in families with their
    /// variations.
    #[pyo3(
        signature = (position=None, /, **options),
        text_signature = "($self, position=None, /, *, variant=None, unfinished='draw', **conditions)"
    )]
    fn openings<'py>(
        &self,
        py: Python<'py>,
        position: Given<'_, '_>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut options = Options::new(py, options)?;
        let line = self.line(position, &mut options)?;
        let filters = filters(&mut options, false)?;
        options.finish("openings")?;
        let table = self.answered(py, &filters, || self.explorer.openings(&line, &filters))?;
        dictionary(py, &table)
    }

    /// Returns the preparation of a player for an opponent: the opponent's moves in a position, with the results and
    /// answers of the player.
    #[pyo3(
        signature = (position=None, /, *, player, opponent, color, repertoire=None, lines=7, min_game=polybook::explorer::MIN_REPLY_GAMES, half_life=None, **options),
        text_signature = "($self, position=None, /, *, player, opponent, color, repertoire=None, lines=7, min_game=2, \
    half_life=None, variant=None, unfinished='draw', **conditions)"
    )]
    #[allow(
        clippy::too_many_arguments,
        reason = "Python passes them as keyword arguments"
    )]
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        position: Given<'_, '_>,
        player: &Bound<'py, PyAny>,
        opponent: &Bound<'py, PyAny>,
        color: &Bound<'py, PyAny>,
        repertoire: Option<PathBuf>,
        lines: usize,
        min_game: u64,
        half_life: Option<f64>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut options = Options::new(py, options)?;
        let half_life = half_life.map(|years| {
            let half_life = HalfLife::new(years);
            half_life.ok_or_else(|| value_error(format!("half_life must be {HALF_LIVES}")))
        });
        let half_life = half_life.transpose()?;
        for (name, value) in [("player", player), ("opponent", opponent), ("color", color)] {
            options.set(name, value)?;
        }
        let line = self.line(position, &mut options)?;
        // Duplicates count once by default, because the files of the two players often contain the same games.
        let filters = filters(&mut options, true)?;
        options.finish("prepare")?;
        let Some(color) = filters.color else {
            return Err(value_error("color must be \"white\" or \"black\""));
        };
        for (name, names) in [("player", &filters.player), ("opponent", &filters.opponent)] {
            if names.is_empty() {
                return Err(value_error(format!(
                    "{name} is empty: give at least one name"
                )));
            }
        }
        if !filters.result.is_empty() {
            return Err(value_error(
                "result does not apply to a preparation: leave result out",
            ));
        }
        self.refuse_unknown_names(py, &filters)?;
        let (pool, stop) = (pool()?, Arc::default());
        let (prepared, warnings) = watched(
            py,
            &stop,
            |_| Ok(()),
            || {
                pool.install(|| {
                    let lines = (lines, min_game, half_life);
                    self.prepared(line, filters, color, repertoire.as_deref(), lines, &stop)
                })
            },
        )?;
        for warning in warnings {
            PyErr::warn(
                py,
                &py.get_type::<PyUserWarning>(),
                &CString::new(warning)?,
                1,
            )?;
        }
        dictionary(py, &prepared)
    }

    /// Returns the PGN of the game with this number, byte for byte as in the input.
    fn text(&self, py: Python<'_>, number: u64) -> PyResult<Py<PyBytes>> {
        let text = detached(py, || self.explorer.text(number))?;
        Ok(PyBytes::new(py, &text).unbind())
    }

    /// Returns the number of games in all indexes.
    fn __len__(&self) -> usize {
        usize::try_from(self.explorer.game_count()).unwrap_or(usize::MAX)
    }
}

impl Explorer {
    /// Calls `work`, which answers a query with `filters`, on the thread pool. If games must be searched first, Ctrl-C
    /// interrupts the search.
    fn answered<T: Send>(
        &self,
        py: Python<'_>,
        filters: &Selection,
        work: impl FnOnce() -> polybook::Result<T> + Send,
    ) -> PyResult<T> {
        self.refuse_unknown_names(py, filters)?;
        let (pool, stop) = (pool()?, AtomicBool::new(false));
        if filters.counts_once() || filters.position.is_some() {
            let search = || pool.install(|| self.search(filters, &stop));
            watched(py, &stop, |_| Ok(()), search)?;
        }
        detached(py, || pool.install(work))
    }

    /// Returns a `ValueError` if no game passes `filters` because a filter contains only names that occur in no game:
    /// names of the player, of the opponent, or of the event.
    fn refuse_unknown_names(&self, py: Python<'_>, filters: &Selection) -> PyResult<()> {
        match detached(py, || self.explorer.unknown_name(filters))? {
            Some(unknown) => Err(value_error(unknown)),
            None => Ok(()),
        }
    }

    /// Finds the duplicate games if `filters` count each game once, and the games in which their query about the board
    /// holds. Setting `stop` cancels the search.
    fn search(&self, filters: &Selection, stop: &AtomicBool) -> polybook::Result<()> {
        let should_continue = || !stop.load(Ordering::Relaxed);
        if filters.counts_once() {
            self.explorer.find_duplicates_while(&should_continue)?;
        }
        self.explorer
            .search_board_while(filters, &Meter::default(), &should_continue)
    }

    /// Returns a line that ends in the position of an argument. If the argument is a board of python-chess, the line
    /// contains the moves that were made on it. Takes the option `variant`.
    fn line(&self, position: Given<'_, '_>, options: &mut Options<'_>) -> PyResult<Line> {
        let variant: Option<Variant> = options.parse("variant")?;
        let variant = variant.or_else(|| self.explorer.variant());
        let pos = from_argument(position, variant)?;
        let variant = variant.unwrap_or_default();
        let played = position.and_then(moves_of_board);
        let line =
            played.and_then(|(start, moves)| Line::parse(variant, Some(&start), &moves).ok());
        let line = line.filter(|line| *line.position() == pos);
        Ok(line.unwrap_or_else(|| Line::at(variant, pos)))
    }

    /// Returns the preparation of the player in `filters`, who has the color `color`. `repertoire` is the path of the
    /// player's repertoire. The preparation contains at most `lines` lines to prepare, and `min_games` is the minimum
    /// number of the opponent's games of a gap and of such a line. `half_life` weights the games in the chances of lines.
    /// Also returns warnings about the repertoire. Setting `stop` cancels the work.
    fn prepared(
        &self,
        line: Line,
        filters: Selection,
        color: Color,
        repertoire: Option<&Path>,
        (lines, min_games, half_life): (usize, u64, Option<HalfLife>),
        stop: &Arc<AtomicBool>,
    ) -> polybook::Result<(Preparation, Vec<String>)> {
        let variant = line.variant();
        let open = |path: &Path| {
            let memory = Memory::default();
            let directory = TemporaryDir::new_in(&memory.temp_dir)?;
            let opened = OpenedSource::repertoire(
                path,
                &OpenOptions {
                    threads: 0,
                    stop: Arc::clone(stop),
                    ..OpenOptions::new(directory.path(), memory)
                },
            );
            let known = opened?;
            if !known.is_for(variant) {
                let problem = format!(
                    "this repertoire contains no games of {variant}: give a variant of the repertoire with the argument variant"
                );
                return Err(Error::file(path, problem));
            }
            Ok((known, directory))
        };
        let repertoire: Option<(OpenedSource, TemporaryDir)> = repertoire.map(open).transpose()?;
        let mut warnings = Vec::new();
        if let Some((known, _)) = &repertoire {
            warnings.extend_from_slice(known.warnings());
            warnings.extend(known.color_warning(color)?);
        }
        let moves = |pos: &VariantPosition| match &repertoire {
            Some((known, _)) => known.moves_by_weight(&Keyed::new(pos.clone())),
            None => Ok(Vec::new()),
        };
        self.search(&filters, stop)?;
        let prepared = self.explorer.prepare(&PrepareQuery {
            line,
            filters,
            color,
            repertoire: repertoire.as_ref().map(|_| &moves as _),
            lines,
            min_games,
            half_life,
            should_continue: &|| !stop.load(Ordering::Relaxed),
        })?;
        Ok((prepared, warnings))
    }

    fn query(&self, position: Given<'_, '_>, options: &mut Options<'_>) -> PyResult<Query> {
        let line = self.line(position, options)?;
        let view = match options.take::<String>("view")?.as_deref() {
            None | Some("lichess") => View::Lichess,
            Some("masters") => View::Masters,
            Some("player") => View::Player,
            Some(_) => {
                return Err(value_error(
                    "view must be \"lichess\", \"masters\" or \"player\"",
                ));
            }
        };
        let mut query = Query::new(line, view);
        query.filters = filters(options, false)?;
        if let Some(moves) = options.take("moves")? {
            query.moves = Some(moves);
        }
        if let Some(games) = options.take("top_games")? {
            query.top_games = games;
        }
        if let Some(games) = options.take("recent_games")? {
            query.recent_games = Some(games);
        }
        query.history = options.take("history")?.unwrap_or_default();
        query.resulting = options.take("resulting")?.unwrap_or_default();
        Ok(query)
    }
}

/// Returns the names and paths of indexes.
fn named_indexes(sources: &Bound<'_, PyAny>) -> PyResult<Vec<(String, PathBuf)>> {
    let with_name = |path: PathBuf| {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        (name.to_string_lossy().into_owned(), path)
    };
    if let Ok(path) = sources.extract() {
        return Ok(vec![with_name(path)]);
    }
    let expected = "a path, or a list of paths or of pairs of a name and a path";
    let unexpected = || unexpected("sources", expected, sources);
    let items = sources.try_iter().map_err(|_| unexpected())?;
    items
        .map(|item| {
            let item = item?;
            let path = item.extract().map(with_name);
            path.or_else(|_| item.extract()).map_err(|_| unexpected())
        })
        .collect()
}

/// Takes the options that filter games. `once` says whether duplicates of a game count as one game if the option
/// `duplicates` is not given.
fn filters(options: &mut Options<'_>, once: bool) -> PyResult<Selection> {
    let mut filters = options.selection(true)?;
    filters.check_for_index().map_err(value_error)?;
    filters.skip_unfinished = options.unfinished()? == Some(Unfinished::Skip);
    if once {
        filters.duplicates.get_or_insert(Duplicates::Once);
    }
    Ok(filters)
}

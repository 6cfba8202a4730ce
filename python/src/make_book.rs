//! The function `make_book`, which makes books, indexes and databases.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use polybook::{
    MakeBook, Report,
    book::{Factors, Scale, Weights},
    counts::{Grouping, MoveFilter, Names},
    make_book::{Phase, Progress},
    position::{PieceLetters, VariantChoice},
};
use pyo3::{
    exceptions::{PyOverflowError, PyValueError},
    prelude::*,
    types::PyDict,
};
use shakmaty::Color;

use crate::{
    errors::value_error,
    options::{Options, paths},
    results::dictionary,
    threads::watched,
};

/// Makes the outputs that `options` name from PGN files, and returns the report as a dict.
///
/// Calls `progress` about ten times a second with the phase, the completed fraction of the phase (`None` if it is
/// unknown), and the number of games read.
#[pyfunction]
#[pyo3(
    signature = (inputs, *, progress=None, **options),
    text_signature = "(inputs, *, progress=None, bin=None, leveldb=None, explorer=None, obs=None, counts=None, by=(), \
    with_=(), force=False, allow_empty=False, index_stats=False, max_ply=1024, min_game=3, min_score=0.0, only_white=False, \
    only_black=False, uniform=False, win_factor=2, draw_factor=1, loss_factor=0, scale='global', minimax=None, \
    variant='standard', untagged_variant='standard', unfinished='draw', keep_prefix=False, strict=False, \
    variations=False, piece_letters='en', comment=None, no_header=False, threads=None, memory=1073741824, temp_dir=None, \
    **conditions)"
)]
pub fn make_book<'py>(
    py: Python<'py>,
    inputs: &Bound<'py, PyAny>,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut options = Options::new(py, options)?;
    let run = run_of(paths(inputs, "inputs")?, &mut options)?;
    options.finish("make_book")?;
    let report = with_progress(py, run, progress.as_ref())?;
    dictionary(py, &report)
}

/// Creates a run from keyword arguments, which have the names and defaults of the command line's options.
fn run_of(inputs: Vec<PathBuf>, options: &mut Options<'_>) -> PyResult<MakeBook> {
    let min_game = options.take::<u64>("min_game")?;
    let mut run = MakeBook::new(options.inputs(inputs)?)
        .selection(options.selection(false)?)
        .move_filter(move_filter(options, min_game)?)
        .weights(weights(options)?);
    // If counts are the only output, `min_game` prunes positions instead of moves.
    let mut pruning = min_game.filter(|least| *least > 1).unwrap_or(0);
    if let Some(path) = options.take::<PathBuf>("bin")? {
        pruning = 0;
        run = run.bin(path);
    }
    if let Some(path) = options.take::<PathBuf>("leveldb")? {
        run = run.leveldb(path);
    }
    if let Some(path) = options.take::<PathBuf>("explorer")? {
        run = run.explorer(path);
    }
    if let Some(path) = options.take::<PathBuf>("obs")? {
        pruning = 0;
        run = run.obs(path);
    }
    let by = options.parse_list::<Grouping>("by")?;
    let names = options.parse_list::<Names>("with_")?;
    match options.take::<PathBuf>("counts")? {
        Some(path) => run = run.counts(path).prune_counts(pruning),
        None if by.is_some() => {
            return Err(PyValueError::new_err(
                "by divides the output counts: also give counts",
            ));
        }
        None if names.is_some() => {
            return Err(PyValueError::new_err(
                "with_ names the positions and moves of the output counts: also give counts",
            ));
        }
        None => (),
    }
    if let Some(names) = names {
        run = run.counted_names(names);
    }
    if let Some(by) = by {
        run = run.by(by);
    }
    if let Some(path) = options.take::<PathBuf>("temp_dir")? {
        run = run.temp_dir(path);
    }
    if let Some(plies) = options.take("max_ply")? {
        run = run.max_ply(plies);
    }
    if let Some(comment) = options.take::<String>("comment")? {
        run = run.comment(comment);
    }
    if let Some(threads) = threads(options)? {
        run = run.threads(threads);
    }
    if let Some(bytes) = options.take("memory")? {
        run = run.memory(bytes);
    }
    if let Some(unfinished) = options.unfinished()? {
        run = run.unfinished(unfinished);
    }
    if let Some(variant) = options.parse::<VariantChoice>("variant")? {
        run = run.variant(variant);
    }
    if let Some(letters) = options.parse::<PieceLetters>("piece_letters")? {
        run = run.piece_letters(letters);
    }
    let mut flag = |name| options.take::<bool>(name).map(Option::unwrap_or_default);
    Ok(run
        .force(flag("force")?)
        .allow_empty(flag("allow_empty")?)
        .index_stats(flag("index_stats")?)
        .keep_prefix(flag("keep_prefix")?)
        .variations(flag("variations")?)
        .strict(flag("strict")?)
        .with_header(!flag("no_header")?))
}

/// Takes the number of threads. It has the limits of the command line.
fn threads(options: &mut Options<'_>) -> PyResult<Option<usize>> {
    let problem = || value_error("threads must be a number from 1 to 512");
    match options.take::<u16>("threads") {
        Ok(Some(threads)) if !(1..=512).contains(&threads) => Err(problem()),
        Ok(threads) => Ok(threads.map(usize::from)),
        Err(err) if err.is_instance_of::<PyOverflowError>(options.py()) => Err(problem()),
        Err(err) => Err(err),
    }
}

fn move_filter(options: &mut Options<'_>, min_game: Option<u64>) -> PyResult<MoveFilter> {
    let defaults = MoveFilter::default();
    let only_white = options.take("only_white")?.unwrap_or(false);
    let only_black = options.take("only_black")?.unwrap_or(false);
    Ok(MoveFilter {
        min_game: min_game.unwrap_or(defaults.min_game),
        min_score: options.take("min_score")?.unwrap_or(defaults.min_score),
        only: match (only_white, only_black) {
            (false, false) => None,
            (true, false) => Some(Color::White),
            (false, true) => Some(Color::Black),
            (true, true) => {
                return Err(value_error(
                    "only_white and only_black together leave no move: give only one of \
                                                    them",
                ));
            }
        },
    })
}

fn weights(options: &mut Options<'_>) -> PyResult<Weights> {
    let factors = Factors::default();
    Ok(Weights {
        uniform: options.take("uniform")?.unwrap_or_default(),
        factors: Factors {
            win: options.take("win_factor")?.unwrap_or(factors.win),
            draw: options.take("draw_factor")?.unwrap_or(factors.draw),
            loss: options.take("loss_factor")?.unwrap_or(factors.loss),
        },
        scale: match options.take::<String>("scale")?.as_deref() {
            None | Some("global") => Scale::Global,
            Some("position") => Scale::Position,
            Some(_) => return Err(value_error("scale must be \"global\" or \"position\"")),
        },
        minimax: options.take("minimax")?,
    })
}

/// Runs on another thread while this thread calls `callback` with the progress. An exception of the callback or a
/// signal stops the run.
fn with_progress(py: Python<'_>, run: MakeBook, callback: Option<&Py<PyAny>>) -> PyResult<Report> {
    let stop = Arc::new(AtomicBool::new(false));
    let run = run.stop_flag(Arc::clone(&stop));
    let progress = run.progress();
    let watch = |py: Python<'_>| callback.map_or(Ok(()), |callback| tell(py, callback, &progress));
    watched(py, &stop, watch, || run.run())
}

fn tell(py: Python<'_>, callback: &Py<PyAny>, progress: &Progress) -> PyResult<()> {
    let phase = match progress.phase() {
        Phase::Reading => "reading",
        Phase::Sorting => "sorting",
        Phase::Database => "database",
        Phase::Counts => "counts",
        Phase::Index => "index",
        Phase::Explorer => "explorer",
        Phase::Book => "book",
    };
    callback.call1(py, (phase, progress.fraction(), progress.games()))?;
    Ok(())
}

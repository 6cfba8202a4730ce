//! Finds the indexes of PGN files in the user's cache, and builds them if they are missing or damaged.

use std::path::{Path, PathBuf};
#[cfg(feature = "serve")]
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

#[cfg(feature = "serve")]
use polybook::{
    Diagnosis,
    make_book::Progress,
    plural,
    serve::{Cache, CachedIndex},
};
use polybook::{Error, position::Variant};

use super::{Context, input::may_have_games};
#[cfg(feature = "serve")]
use super::{errors, progress::Bar, usage::Usage};

/// The interval at which this process checks whether another process has finished building an index.
#[cfg(feature = "serve")]
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The progress of the index that is currently being built, or `None` if there is none. The thread that builds an index
/// sets it, and another thread reads it, for example to show it on a web page.
#[cfg(feature = "serve")]
pub type RunningBuild = Mutex<Option<Arc<Progress>>>;

/// Returns the path of the index to open for `argument`, which is an index or a PGN file. The index of a PGN file is in
/// the user's cache, and is first built if it does not exist. Returns an error if the argument is a pipe, a device or
/// an empty file.
pub fn index_of(argument: &Path, context: Context) -> anyhow::Result<PathBuf> {
    if may_have_games(argument)? {
        cached_index(argument, Variant::Standard, context)
    } else {
        Ok(argument.to_owned())
    }
}

/// The advice that an error message gives if the user's indexes cannot be kept in a cache.
const ADVICE: &str = "make an index with make-book --explorer";

/// Returns the path of the index of the PGN file `pgn` in the user's cache. First builds the index if it is missing or
/// damaged. `untagged` is the variant that is assumed for games without a `Variant` tag.
#[cfg(feature = "serve")]
pub fn cached_index(pgn: &Path, untagged: Variant, context: Context) -> anyhow::Result<PathBuf> {
    let Some(directory) = dirs::cache_dir() else {
        let problem =
            "this system has no cache directory, so polybook cannot keep an index of the games";
        return Err(Usage(format!("{problem}: {ADVICE}")).into());
    };
    let index = Cache::new(directory.join("polybook"))?.of(pgn, untagged)?;
    let running = RunningBuild::default();
    let built = ensure_built(pgn, &index, 0, context, &running)
        .and_then(|()| rebuild_if_damaged(pgn, &index, 0, context, &running));
    built.map_err(|err| match err {
        Error::Empty { reason } => nothing_to_show(pgn, &reason),
        err => err,
    })?;
    Ok(index.path().to_owned())
}

/// Creates the error for a PGN file that cannot be shown because its index would be empty. `reason` says why none of
/// its games can be counted.
#[cfg(feature = "serve")]
pub fn nothing_to_show(pgn: &Path, reason: &Diagnosis) -> Error {
    let reason = reason.worded(errors::spelled);
    Error::empty(pgn, format!("there is nothing to show, because {reason}"))
}

/// Always returns an error. This version of the function is used if polybook was compiled without the cache of indexes.
#[cfg(not(feature = "serve"))]
pub fn cached_index(pgn: &Path, _untagged: Variant, _context: Context) -> anyhow::Result<PathBuf> {
    let problem = "this is a PGN file, but this build of polybook keeps no cache of indexes";
    Err(Error::file(pgn, format!("{problem}: {ADVICE}")).into())
}

/// Rebuilds `index`, the index of the PGN file `pgn` in the cache, if it is damaged. Stores the progress in `running`,
/// so that another thread can read it.
#[cfg(feature = "serve")]
pub fn rebuild_if_damaged(
    pgn: &Path,
    index: &CachedIndex,
    threads: usize,
    context: Context,
    running: &RunningBuild,
) -> polybook::Result<()> {
    if index.is_sound()? {
        return Ok(());
    }
    let name = pgn.display();
    context.say(&format!(
        "the index of {name} is damaged, so polybook makes it again\n"
    ));
    index.remove_unless(|| index.is_sound())?;
    ensure_built(pgn, index, threads, context, running)
}

/// Builds `index`, the index of the PGN file `pgn` in the cache, unless it exists and describes the current content of
/// the file. If another process is building the index, prints a message and waits for that process. Stores the progress
/// in `running`, so that another thread can read it.
#[cfg(feature = "serve")]
pub fn ensure_built(
    pgn: &Path,
    index: &CachedIndex,
    threads: usize,
    context: Context,
    running: &RunningBuild,
) -> polybook::Result<()> {
    let mut has_said = false;
    while !index.is_made()? {
        // Remove what remains of an index that is incomplete.
        let removed = index.remove_unless(|| index.is_made());
        match removed.and_then(|()| build(pgn, index, threads, context, running)) {
            Err(Error::Busy { .. }) => {
                if !has_said {
                    let pgn = pgn.display();
                    context.say(&format!(
                        "another process is making the index of {pgn}, so polybook waits for that process\n"
                    ));
                }
                has_said = true;
                thread::sleep(CHECK_INTERVAL);
            }
            // Another process has made the index in the meantime.
            Err(Error::Exists { .. }) if index.is_made()? => {}
            built => built?,
        }
    }
    index.remove_older();
    Ok(())
}

/// Builds `index`, the index of the PGN file `pgn` in the cache. Shows a progress bar, and prints a message at the
/// beginning and at the end. Stores the progress in `running`, so that another thread can read it.
#[cfg(feature = "serve")]
fn build(
    pgn: &Path,
    index: &CachedIndex,
    threads: usize,
    context: Context,
    running: &RunningBuild,
) -> polybook::Result<()> {
    let run = index.make().threads(threads);
    let mut shown = running.lock().unwrap_or_else(PoisonError::into_inner);
    *shown = Some(run.progress());
    drop(shown);
    context.say(&format!("indexing {}\n", pgn.display()));
    let bar = Bar::of_make_book(run.progress(), context);
    let report = run.run();
    drop(bar);
    let report = report?;
    for warning in &report.warnings {
        context.say(&format!("warning: {warning}\n"));
    }
    let games = report.totals.games;
    let rejected = games.rejected;
    let counted = plural(games.counted, "game");
    context.say(&format!("{counted} indexed, {rejected} rejected\n"));
    Ok(())
}

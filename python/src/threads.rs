//! Runs work while the GIL is released, so that other Python threads can run.

use std::{
    mem, process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use polybook::Result;
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::exception;

/// The interval at which a thread that waits for work checks signals and calls `watch`.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs short work on this thread while the GIL is released. Turns an error into an exception.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|err| exception(py, err))
}

/// Runs long work on another thread while the GIL is released. Turns an error into an exception.
///
/// Until the work ends, this thread calls `watch` every 100 milliseconds, and once more at the end, and lets Python
/// handle signals. The first exception of `watch` or of a signal handler sets `stop`, which must end the work, and is
/// then raised.
pub fn watched<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut watch: impl FnMut(Python<'_>) -> PyResult<()> + Send,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| {
        thread::scope(|scope| {
            let (running, end) = mpsc::channel::<()>();
            let worker = scope.spawn(move || {
                // Dropping this, at the end of the work or in a panic, wakes the waiting thread.
                let _running = running;
                work()
            });
            loop {
                let is_over = end.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout);
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals().and_then(|()| watch(py))).err();
                    if raised.is_some() {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                if is_over {
                    return worker.join();
                }
            }
        })
    });
    if let Some(err) = raised {
        return Err(err);
    }
    let result = result
        .map_err(|_| PyRuntimeError::new_err("polybook has a bug: please report this message"))?;
    result.map_err(|err| exception(py, err))
}

/// The thread pool, with the id of the process that started its threads.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Returns the thread pool of this process.
///
/// A forked child does not have the threads of its parent, and would wait forever for them, even in Rayon's global
/// pool. So each process has its own pool.
pub fn pool() -> PyResult<Arc<ThreadPool>> {
    // Do not wait for the lock: if a thread of the parent held it at the fork, it is never released in the child.
    let Ok(mut kept) = POOL.try_lock() else {
        return new_pool();
    };
    if let Some((process, pool)) = &*kept
        && *process == process::id()
    {
        return Ok(Arc::clone(pool));
    }
    let pool = new_pool()?;
    // Forget the parent's pool, because dropping it would wait for its threads.
    mem::forget(kept.replace((process::id(), Arc::clone(&pool))));
    Ok(pool)
}

fn new_pool() -> PyResult<Arc<ThreadPool>> {
    let pool = ThreadPoolBuilder::new().build();
    pool.map(Arc::new)
        .map_err(|err| PyRuntimeError::new_err(format!("cannot start threads: {err}")))
}

//! Work on other threads while Python's lock is free.

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

/// How often a thread that waits for work calls Python.
const PAUSE: Duration = Duration::from_millis(100);

/// Does something while Python's lock is free. Its error becomes an exception.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|err| exception(py, err))
}

/// As [`detached`], for work that does not end by itself within a moment. It is done on another thread. This one calls
/// `watch` now and then, and once more at the end, and lets Python see signals. The first exception of either sets
/// `stop`, which must end the work, and is raised.
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
                // Dropped at the end of the work, and by a panic too.
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
    let result =
        result.map_err(|_| PyRuntimeError::new_err("polybook panicked: please report it"))?;
    result.map_err(|err| exception(py, err))
}

/// The pool of a process, with the process's number.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The threads for what works on all of them. The child of a fork has none of its parent's threads and would wait for
/// them for ever, in Rayon's own pool too, so it gets others.
pub fn pool() -> PyResult<Arc<ThreadPool>> {
    // A thread that had the lock at the fork does not give it back in the child, so nothing waits for it.
    let Ok(mut kept) = POOL.try_lock() else {
        return new_pool();
    };
    if let Some((process, pool)) = &*kept
        && *process == process::id()
    {
        return Ok(Arc::clone(pool));
    }
    let pool = new_pool()?;
    // To drop the parent's pool would be to wait for its threads.
    mem::forget(kept.replace((process::id(), Arc::clone(&pool))));
    Ok(pool)
}

fn new_pool() -> PyResult<Arc<ThreadPool>> {
    let pool = ThreadPoolBuilder::new().build();
    pool.map(Arc::new)
        .map_err(|err| PyRuntimeError::new_err(format!("cannot start threads: {err}")))
}

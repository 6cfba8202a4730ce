//! Threads and jobs that hand results on.
//!
//! A panic is an error of the operation, wherever it happens: [`caught`] makes it one. A thread that hands on items
//! feeds a [`Feed`], which ends with the last word of that thread: complete, or failed. Jobs of a thread pool report to
//! one [`Failure`]. So nothing waits for a thread that is gone, and nothing takes its silence for the end.
//!
//! Panics that rayon carries to its caller, from `join` and parallel iterators, need nothing of this but [`caught`]
//! around the operation.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{At, Error, Result};

/// How often a receiver that waits looks at the flags.
const PATIENCE: Duration = Duration::from_millis(50);

/// What an operation answers; a panic in it as [`Error::Panicked`].
///
/// The operation must own what it changes, or not use it again: a panic leaves it half done.
pub(crate) fn caught<T>(operation: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
}

/// Locks a mutex, also after a holder of the lock panicked: that panic is the error of the operation already, and what
/// the others still do comes to nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex unless another thread holds it, for caches that a process without that thread may inherit: the child of
/// a fork has a copy of the lock, and nobody to release it. `None` means that the caller does without the cache.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What is in a mutex, as [`lock`].
pub(crate) fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The first error of the jobs of an operation.
#[derive(Default, Debug)]
pub(crate) struct Failure {
    first: Mutex<Option<Error>>,
    is_set: Arc<AtomicBool>,
}

impl Failure {
    /// Does a job. Its error or panic ends the operation.
    pub(crate) fn watch(&self, job: impl FnOnce() -> Result<()>) {
        if let Err(err) = caught(job) {
            self.set(err);
        }
    }

    /// Ends the operation with this error, if it is the first one.
    pub(crate) fn set(&self, err: Error) {
        lock(&self.first).get_or_insert(err);
        self.is_set.store(true, Ordering::Release);
    }

    /// Whether a job failed, so that the others need not go on.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// What says whether a job failed.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_set)
    }

    /// What became of the jobs, when all have ended: the first error, which this takes out.
    pub(crate) fn take(&self) -> Result<()> {
        lock(&self.first).take().map_or(Ok(()), Err)
    }
}

/// A pool of threads, 0 for one per core.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(io::Error::other)
        .at("threads", "start")
}

/// Starts a thread that sends items. At most `ahead` wait to be received.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    ahead: usize,
    work: impl FnOnce(&Feeder<T>) -> Result<()> + Send + 'static,
) -> Result<(Feed<T>, JoinHandle<()>)> {
    let (feeder, feed) = channel(ahead);
    let thread = Builder::new().name(name.to_owned());
    let started = thread.spawn(move || feeder.feed(work));
    Ok((feed, started.at(name, "start the thread")?))
}

/// Starts a thread that takes items, until there are no more or one cannot be taken. At most `ahead` wait for it.
pub(crate) fn start_taking<T: Send + 'static>(
    name: &str,
    ahead: usize,
    mut take: impl FnMut(T) -> io::Result<()> + Send + 'static,
) -> Result<Taker<T>> {
    let (sender, receiver) = sync_channel(ahead);
    let work = move || {
        let _ = receiver.iter().try_for_each(&mut take);
    };
    let started = Builder::new().name(name.to_owned()).spawn(work);
    started.at(name, "start the thread")?;
    Ok(Taker { sender })
}

/// A thread that takes items.
#[derive(Debug)]
pub(crate) struct Taker<T> {
    sender: SyncSender<T>,
}

impl<T> Taker<T> {
    /// Hands on an item without waiting; `false` if as many as may wait do, or the thread has ended.
    pub(crate) fn offer(&self, item: T) -> bool {
        self.sender.try_send(item).is_ok()
    }
}

/// As [`start`], in a scope. It waits for the thread, which ends when the feed is dropped.
pub(crate) fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    ahead: usize,
    work: impl FnOnce(&Feeder<T>) -> Result<()> + Send + 'scope,
) -> Result<Feed<T>> {
    let (feeder, feed) = channel(ahead);
    let thread = Builder::new().name(name.to_owned());
    let started = thread.spawn_scoped(scope, move || feeder.feed(work));
    started.at(name, "start the thread")?;
    Ok(feed)
}

/// Does something, and meanwhile `repeated` on another thread, each time after a pause. The first error or panic of
/// `repeated` is the result; `failure` has it meanwhile.
pub(crate) fn while_repeating<T>(
    name: &str,
    pause: Duration,
    mut repeated: impl FnMut() -> Result<()> + Send,
    failure: &Failure,
    act: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let (sender, acted) = sync_channel::<()>(0);
    let repeat = move || {
        while acted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            repeated()?;
        }
        repeated()
    };
    let result = std::thread::scope(|scope| {
        let thread = Builder::new().name(name.to_owned());
        let started = thread.spawn_scoped(scope, move || failure.watch(repeat));
        started.at(name, "start the thread")?;
        // The thread ends when this is dropped, also by a panic.
        let _acting = sender;
        act()
    });
    failure.take().and(result)
}

/// Creates a channel. At most `ahead` items wait to be received.
pub(crate) fn channel<T>(ahead: usize) -> (Feeder<T>, Feed<T>) {
    let (sender, receiver) = sync_channel(ahead);
    (Feeder { sender }, Feed::Open(receiver))
}

/// What a thread sends.
#[derive(Debug)]
pub(crate) enum Message<T> {
    Item(T),
    /// The last word.
    Complete,
    /// The last word.
    Failed(Error),
}

/// The end of a channel that sends.
#[derive(Debug)]
pub(crate) struct Feeder<T> {
    sender: SyncSender<Message<T>>,
}

impl<T> Feeder<T> {
    /// Sends an item, when there is room for it.
    ///
    /// # Errors
    ///
    /// The receiver is gone. The error only ends the work: nobody sees it.
    pub(crate) fn send(&self, item: T) -> Result<()> {
        let sent = self.sender.send(Message::Item(item));
        sent.map_err(|_| Error::Interrupted)
    }

    /// Starts one of several threads that send to the same receiver. It sends no end message unless `work` fails.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub(crate) fn start(
        &self,
        name: &str,
        work: impl FnOnce(&Feeder<T>) -> Result<()> + Send + 'static,
    ) -> Result<()>
    where
        T: Send + 'static,
    {
        let sender = self.sender.clone();
        let work = move || {
            let feeder = Feeder { sender };
            if let Err(err) = caught(|| work(&feeder)) {
                // A receiver that is gone needs no end message.
                let _ = feeder.sender.send(Message::Failed(err));
            }
        };
        let started = Builder::new().name(name.to_owned()).spawn(work);
        started.at(name, "start the thread").map(drop)
    }

    fn feed(self, work: impl FnOnce(&Feeder<T>) -> Result<()>) {
        let last = match caught(|| work(&self)) {
            Ok(()) => Message::Complete,
            Err(err) => Message::Failed(err),
        };
        // A receiver that is gone needs no last word.
        let _ = self.sender.send(last);
    }
}

/// The end of a channel that receives.
#[derive(Debug)]
pub(crate) enum Feed<T> {
    /// More may come.
    Open(Receiver<Message<T>>),
    /// All was received.
    Complete,
    /// The error was received.
    Failed,
}

impl<T> Feed<T> {
    /// The next item, when it is there; `None` after the last one.
    ///
    /// # Errors
    ///
    /// That of the thread that sends, which may be its panic, or [`Error::Interrupted`] when one of the flags is set.
    /// After an error there is nothing more.
    pub(crate) fn next(&mut self, stop: &[&AtomicBool]) -> Result<Option<T>> {
        self.next_while(stop, || true)
    }

    /// As [`next`](Feed::next), but `None` as well if nothing comes before the deadline.
    pub(crate) fn next_before(&mut self, deadline: Instant) -> Result<Option<T>> {
        self.next_while(&[], || Instant::now() < deadline)
    }

    /// An item that waits to be received, if one does.
    pub(crate) fn next_waiting(&mut self) -> Option<T> {
        let Feed::Open(receiver) = self else {
            return None;
        };
        match receiver.try_recv() {
            Ok(Message::Item(item)) => return Some(item),
            Ok(Message::Complete) => *self = Feed::Complete,
            Ok(Message::Failed(_)) => *self = Feed::Failed,
            Err(_) => {}
        }
        None
    }

    fn next_while(
        &mut self,
        stop: &[&AtomicBool],
        may_wait: impl Fn() -> bool,
    ) -> Result<Option<T>> {
        let receiver = match self {
            Feed::Open(receiver) => receiver,
            Feed::Complete => return Ok(None),
            Feed::Failed => return Err(Error::Interrupted),
        };
        let err = loop {
            if stop.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                break Error::Interrupted;
            }
            match receiver.recv_timeout(PATIENCE) {
                Ok(Message::Item(item)) => return Ok(Some(item)),
                Ok(Message::Complete) => {
                    *self = Feed::Complete;
                    return Ok(None);
                }
                Ok(Message::Failed(err)) => break err,
                Err(RecvTimeoutError::Timeout) if may_wait() => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    break Error::Panicked {
                        message: "a thread ended without its end message".to_owned(),
                    };
                }
            }
        };
        *self = Feed::Failed;
        Err(err)
    }
}

/// A place where tests let a thread panic. Programs have nothing there.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn fault(_stage: &str) {}

#[cfg(test)]
pub(crate) use self::tests::fault;

#[cfg(test)]
mod tests {
    use std::{
        env,
        sync::{
            LazyLock,
            atomic::AtomicU64,
            mpsc::{Sender, channel as unbounded},
        },
    };

    use super::*;

    /// Panics where the environment says so: `POLYBOOK_FAULT=replay:3` is the fourth time that a thread comes to
    /// `fault("replay")`, and `replay:3+` every time from then on.
    pub(crate) fn fault(stage: &str) {
        static WANTED: LazyLock<Option<(String, u64, bool)>> = LazyLock::new(|| {
            let wanted = env::var("POLYBOOK_FAULT").ok()?;
            let (stage, time) = wanted.split_once(':')?;
            let first = time.trim_end_matches('+').parse().ok()?;
            Some((stage.to_owned(), first, time.ends_with('+')))
        });
        static PASSED: AtomicU64 = AtomicU64::new(0);
        if let Some((wanted, first, again)) = &*WANTED
            && wanted == stage
        {
            let passed = PASSED.fetch_add(1, Ordering::Relaxed);
            assert!(
                passed < *first || (passed > *first && !again),
                "a fault in {stage}"
            );
        }
    }

    fn message<T>(result: Result<T>) -> String {
        match result {
            Err(Error::Panicked { message }) => message,
            Err(err) => panic!("{err}"),
            Ok(_) => panic!("no error"),
        }
    }

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(
            message(caught::<()>(|| panic!("two\n  lines"))),
            "two lines"
        );
        assert_eq!(message(caught::<()>(|| panic!("{} lines", 2))), "2 lines");
        let other = || std::panic::panic_any(7);
        assert_eq!(message(caught::<()>(other)), "no message");
        let err = caught::<()>(|| panic!("why")).unwrap_err();
        assert_eq!(err.to_string(), "internal error: why; please report it");
    }

    #[test]
    fn a_feed_ends_with_the_last_word_of_its_thread() {
        let (mut feed, _) = start("numbers", 1, |feeder| {
            (0..3).try_for_each(|number| feeder.send(number))
        })
        .unwrap();
        for number in 0..3 {
            assert_eq!(feed.next(&[]).unwrap(), Some(number));
        }
        assert_eq!(feed.next(&[]).unwrap(), None);
        assert_eq!(feed.next(&[]).unwrap(), None);

        let (mut feed, _) = start("numbers", 1, |feeder| {
            feeder.send(0)?;
            panic!("at one")
        })
        .unwrap();
        assert_eq!(feed.next(&[]).unwrap(), Some(0));
        assert_eq!(message(feed.next(&[])), "at one");
        assert!(matches!(feed.next(&[]), Err(Error::Interrupted)));
    }

    #[test]
    fn silence_is_not_the_end() {
        let (feeder, mut feed) = channel::<()>(1);
        drop(feeder);
        let message = message(feed.next(&[]));
        assert_eq!(message, "a thread ended without its end message");
    }

    #[test]
    fn a_feed_that_is_dropped_ends_its_thread() {
        let (ended, end): (Sender<()>, _) = unbounded();
        let (feed, _) = start("numbers", 1, move |feeder| {
            let _ended = ended;
            (0..).try_for_each(|number: u64| feeder.send(number))
        })
        .unwrap();
        drop(feed);
        assert!(end.recv_timeout(Duration::from_secs(10)).is_err());
    }

    #[test]
    fn what_is_repeated_ends_with_the_work_and_can_end_it() {
        let failure = Failure::default();
        let mut times = 0;
        let count = || {
            times += 1;
            Ok(())
        };
        let hour = Duration::from_secs(3600);
        while_repeating("count", hour, count, &failure, || Ok(())).unwrap();
        assert_eq!(times, 1);

        let failing = || panic!("lost");
        let wait = || {
            while !failure.is_set() {
                std::thread::yield_now();
            }
            Err::<(), _>(Error::Interrupted)
        };
        let failed = while_repeating("fail", Duration::ZERO, failing, &failure, wait);
        assert_eq!(message(failed), "lost");
    }

    #[test]
    fn a_thread_in_a_scope_ends_with_its_feed() {
        let result = std::thread::scope(|scope| {
            let mut feed = start_in(scope, "numbers", 1, |feeder| {
                (0..).try_for_each(|number: u64| feeder.send(number))
            })?;
            feed.next(&[&AtomicBool::new(true)])
        });
        assert!(matches!(result, Err(Error::Interrupted)));
    }

    #[test]
    fn the_first_failure_of_the_jobs_is_the_result() {
        let failure = Failure::default();
        failure.watch(|| Ok(()));
        assert!(!failure.is_set());
        let shared = Mutex::new(0);
        failure.watch(|| {
            let _held = lock(&shared);
            panic!("first")
        });
        assert!(failure.is_set());
        failure.watch(|| {
            *lock(&shared) += 1;
            Err(Error::Interrupted)
        });
        assert_eq!(message(failure.take()), "first");
        assert_eq!(unlocked(shared), 1);
    }
}

//! Runs work on threads and in thread pools, and reports results and errors.
//!
//! A panic on any thread is converted to an error of the operation by [`caught`]. A thread that produces items sends
//! them to a [`Feed`]. The last message on this channel says whether the thread completed its work or failed. A
//! receiver therefore never waits for a thread that has ended, and never mistakes a closed channel for the end of the
//! items. Jobs in a thread pool report their errors to a shared [`Failure`].
//!
//! rayon passes panics in `join` and in parallel iterators on to the caller, which only needs to call [`caught`].

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{At, Error, Result};

/// The interval at which a receiver that waits for an item checks its stop flags.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Calls `operation` and returns its result. If `operation` panics, returns [`Error::Panicked`] instead.
///
/// A panic may leave the data of the operation inconsistent, so the caller must not use this data afterwards.
pub(crate) fn caught<T>(operation: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
}

/// Locks a mutex, even if it is poisoned. This is safe because the panic that poisoned the mutex also makes the whole
/// operation fail, so inconsistent data is never used.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex without waiting. Returns `None` if another thread holds it. This function is used for caches, because
/// a caller can do without a cache, while waiting could last forever after a fork: the mutex may be held by a thread
/// that exists only in the parent process.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Consumes a mutex and returns its value, even if the mutex is poisoned. See [`lock`] for why this is safe.
pub(crate) fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The first error of several jobs that belong to one operation.
#[derive(Default, Debug)]
pub(crate) struct Failure {
    first: Mutex<Option<Error>>,
    is_set: Arc<AtomicBool>,
}

impl Failure {
    /// Runs a job. If the job fails or panics, records its error, unless another error has already been recorded.
    pub(crate) fn watch(&self, job: impl FnOnce() -> Result<()>) {
        if let Err(err) = caught(job) {
            self.set(err);
        }
    }

    /// Records an error, unless another one has already been recorded.
    pub(crate) fn set(&self, err: Error) {
        lock(&self.first).get_or_insert(err);
        self.is_set.store(true, Ordering::Release);
    }

    /// Returns `true` if an error has been recorded. The remaining jobs can then stop.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Returns the flag that is set when an error is recorded.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_set)
    }

    /// Removes the recorded error and returns it. Returns `Ok` if no job failed. Must be called after all jobs have
    /// ended.
    pub(crate) fn take(&self) -> Result<()> {
        lock(&self.first).take().map_or(Ok(()), Err)
    }
}

/// Creates a thread pool with `threads` threads, or with one thread per core if `threads` is 0.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(io::Error::other)
        .at("threads", "start")
}

/// Starts a thread named `name` that produces items. The thread calls `work`, which sends the items through a
/// [`Feeder`]. Returns the [`Feed`] that receives the items, and the handle of the thread. Sending blocks while `ahead`
/// items are waiting to be received.
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

/// Starts a thread named `name` that consumes items from a queue of at most `ahead` items. The thread calls `take` with
/// each item that is passed to [`offer`](Taker::offer). The thread ends when the returned [`Taker`] is dropped, or when
/// `take` fails. The error of `take` is discarded; `offer` then fails.
pub(crate) fn start_taking<T: Send + 'static>(
    name: &str,
    ahead: usize,
    mut take: impl FnMut(T) -> io::Result<()> + Send + 'static,
) -> Result<Taker<T>> {
    let (sender, receiver) = sync_channel(ahead);
    let (end, ended) = sync_channel(0);
    let work = move || {
        let _end: SyncSender<()> = end;
        // An error of `take` closes the queue, which makes `offer` fail.
        let _ = receiver.iter().try_for_each(&mut take);
    };
    let started = Builder::new().name(name.to_owned()).spawn(work);
    started.at(name, "start the thread")?;
    Ok(Taker { sender, ended })
}

/// The sending half of a bounded queue whose items another thread consumes. Created by [`start_taking`], which also
/// starts this thread.
#[derive(Debug)]
pub(crate) struct Taker<T> {
    sender: SyncSender<T>,
    /// A channel that is closed when the consuming thread ends.
    ended: Receiver<()>,
}

/// The reason why a [`Taker`] does not accept an item.
#[derive(Debug)]
pub(crate) enum Rejected<T> {
    /// The queue is full. Contains the rejected item.
    Full(T),
    /// The consuming thread has ended.
    Ended,
}

impl<T> Taker<T> {
    /// Adds an item to the queue without blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue is full or the consuming thread has ended.
    pub(crate) fn offer(&self, item: T) -> Result<(), Rejected<T>> {
        self.sender.try_send(item).map_err(|err| match err {
            TrySendError::Full(item) => Rejected::Full(item),
            TrySendError::Disconnected(_) => Rejected::Ended,
        })
    }

    /// Waits until the consuming thread has consumed all items and ended, but at most for `timeout`, if given.
    pub(crate) fn finish(self, timeout: Option<Duration>) {
        drop(self.sender);
        // Nothing is ever sent, so an error is the end of the thread or the end of the time.
        match timeout {
            Some(timeout) => drop(self.ended.recv_timeout(timeout)),
            None => drop(self.ended.recv()),
        }
    }
}

/// Starts a thread named `name` that produces items. The thread calls `work`, which sends the items through a
/// [`Feeder`]. Returns the [`Feed`] that receives the items. The thread belongs to `scope`, so `work` may borrow data.
/// Sending blocks while `ahead` items are waiting to be received. After the feed is dropped, sending fails, and `work`
/// should return.
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

/// Runs `act` on this thread. Meanwhile, another thread named `name` calls `repeated` again and again, with a pause of
/// the length `pause` before each call, and a last time directly after `act` has ended. If `repeated` fails or panics,
/// its error is immediately recorded in `failure`, so `act` should check `failure` and stop early. Returns the error of
/// `repeated` if there is one, otherwise the result of `act`.
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
        // Dropping the sender ends the thread, even if `act` panics.
        let _acting = sender;
        act()
    });
    failure.take().and(result)
}

/// Creates a bounded channel whose last message says whether the sender completed its work or failed. Sending blocks
/// while `ahead` items are waiting to be received. If the sender is dropped without its last message, the receiver
/// reports an error.
pub(crate) fn channel<T>(ahead: usize) -> (Feeder<T>, Feed<T>) {
    let (sender, receiver) = sync_channel(ahead);
    (Feeder { sender }, Feed::Open(receiver))
}

/// A message from a thread that produces items. The last message is always `Complete` or `Failed`.
#[derive(Debug)]
pub(crate) enum Message<T> {
    Item(T),
    Complete,
    Failed(Error),
}

/// The sending half of a channel whose last message says whether the sender completed its work or failed.
#[derive(Debug)]
pub(crate) struct Feeder<T> {
    sender: SyncSender<Message<T>>,
}

impl<T> Feeder<T> {
    /// Sends an item to the receiver. Blocks while too many items are waiting to be received.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`] if the receiver was dropped. The sending thread should then end with this error,
    /// which is not reported to anyone.
    pub(crate) fn send(&self, item: T) -> Result<()> {
        let sent = self.sender.send(Message::Item(item));
        sent.map_err(|_| Error::Interrupted)
    }

    /// Starts another thread that sends items to the same receiver. The thread is named `name` and calls `work`. If
    /// `work` fails or panics, the receiver gets the error. If `work` succeeds, the receiver gets no final message,
    /// because other threads may still send items.
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
                // If the receiver was dropped, no one needs the last message.
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
        // If the receiver was dropped, no one needs the last message.
        let _ = self.sender.send(last);
    }
}

/// The receiving half of a channel whose last message says whether the sender completed its work or failed.
#[derive(Debug)]
pub(crate) enum Feed<T> {
    /// The last message has not been received yet.
    Open(Receiver<Message<T>>),
    /// All items have been received.
    Complete,
    /// The sender has failed, and its error has already been returned.
    Failed,
}

impl<T> Feed<T> {
    /// Returns the next item, or `None` after the last item. Blocks until a message arrives or one of the flags in
    /// `stop` is set.
    ///
    /// # Errors
    ///
    /// Returns the error or the panic of the sending thread. Returns [`Error::Interrupted`] if one of the flags in
    /// `stop` is set. After an error, each further call returns [`Error::Interrupted`].
    pub(crate) fn next(&mut self, stop: &[&AtomicBool]) -> Result<Option<T>> {
        self.next_while(stop, || true)
    }

    /// Returns the next item, like [`next`](Feed::next). Also returns `None` if no item arrives before `deadline`.
    pub(crate) fn next_before(&mut self, deadline: Instant) -> Result<Option<T>> {
        self.next_while(&[], || Instant::now() < deadline)
    }

    /// Returns the next item if it has already been sent. Never blocks. Returns `None` if no item is waiting, if all
    /// items have been received, or if the sender has failed.
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
            match receiver.recv_timeout(STOP_CHECK_INTERVAL) {
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

/// Does nothing. In tests, a different function with this name panics if the test requests a panic at the stage
/// `_stage` of an operation.
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

    /// Panics if the environment variable `POLYBOOK_FAULT` requests it. The value `replay:3` requests a panic in the
    /// fourth call of `fault("replay")`, and `replay:3+` in every call from the fourth on.
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
        assert_eq!(
            err.to_string(),
            "internal error: why; please report this message"
        );
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
    fn a_feed_without_an_end_message_is_an_error() {
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

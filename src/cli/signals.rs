//! Ends the program on a signal: Ctrl-C, `kill`, or a terminal that closes.
//!
//! A separate thread receives the signals, so a signal ends a command immediately, even during a blocking call.

use std::{
    io::{self, Write},
    panic, process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use polybook::{
    evals::{end_engines, kept_journal},
    storage::output::discard_all,
};

/// Whether a signal is ending the program.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The function to call when a signal ends the program, if there is one. The server sets a function that waits for
/// requests that are still being processed, and a download sets one that saves the games.
static FAREWELL: Mutex<Option<Farewell>> = Mutex::new(None);

/// A function that is called when a signal ends the program, and returns the message to print then.
type Farewell = Box<dyn FnOnce() -> String + Send>;

/// Starts a thread that ends the program on the signals SIGINT, SIGTERM and, unless the process ignores it, SIGHUP. To
/// end the program, the thread ends running engines, removes unfinished files, and exits with the status 128 plus the
/// number of the signal.
#[cfg(unix)]
pub fn watch() -> io::Result<()> {
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
        flag,
        iterator::Signals,
    };
    // This handler makes a write past the limit of `ulimit -f` return an error instead of ending the program.
    flag::register(SIGXFSZ, std::sync::Arc::<AtomicBool>::default())?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !hangup_is_ignored() {
        signals.add_signal(SIGHUP)?;
    }
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                end(128 + signal);
            }
        })?;
    Ok(())
}

/// Sets a handler that ends the program on a signal such as Ctrl-C. The handler ends running engines, removes
/// unfinished files, and exits with the status 130.
#[cfg(windows)]
pub fn watch() -> io::Result<()> {
    ctrlc::set_handler(|| end(130)).map_err(io::Error::other)
}

/// Returns `true` if this process ignores the signal SIGHUP, for example because `nohup` started it. The program then
/// continues when its terminal closes. Always returns `false` on systems without `/proc`.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    let ignored = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
    ignored.is_some_and(|mask| mask >> (signal_hook::consts::SIGHUP - 1) & 1 == 1)
}

/// Ends running engines, removes unfinished files, and exits with the exit status `status`.
fn end(status: i32) -> ! {
    ENDING.store(true, Ordering::SeqCst);
    // A panic in one step must not prevent the end, because the command's thread waits for it.
    let how = panic::catch_unwind(say_farewell);
    let how = how.unwrap_or_else(|_| "stopped".to_owned());
    for step in [end_engines, discard_all] {
        let _ = panic::catch_unwind(step);
    }
    let advice = kept_journal().map_or_else(String::new, |journal| {
        let journal = journal.display();
        format!("; {journal} keeps the evaluations: repeat the command to continue")
    });
    // A terminal that does not accept text must not delay the end, so another thread prints the line.
    let (sender, receiver) = mpsc::channel();
    let say = move || {
        super::progress::clear();
        // Errors are ignored: the exit status reports the end too, and after the time-out nobody receives the message.
        let _ = writeln!(super::terminal::stderr(), "polybook: {how}{advice}");
        let _ = sender.send(());
    };
    // If the system cannot start a thread, or the terminal is too slow, the program ends without this line.
    let _ = thread::Builder::new().spawn(say);
    let _ = receiver.recv_timeout(Duration::from_millis(200));
    process::exit(status)
}

/// Calls the function that [`before_end`] set, and returns its message.
fn say_farewell() -> String {
    let said = farewell().take();
    said.map_or_else(|| "interrupted".to_owned(), |say| say())
}

/// Blocks forever if a signal is ending the program. Otherwise returns immediately.
///
/// A command calls this function before it reports an error. When a signal ends the program, unfinished files are
/// removed, and the command may fail because they are missing. Such an error must not be printed, and must not
/// determine the exit status.
pub fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Sets the function `farewell`, which is called when a signal ends the program, before unfinished files are removed.
/// It returns the message to print at the end, and must return within a few seconds.
#[cfg(any(feature = "download", feature = "serve", test))]
pub fn before_end(farewell: impl FnOnce() -> String + Send + 'static) {
    *self::farewell() = Some(Box::new(farewell));
}

fn farewell() -> std::sync::MutexGuard<'static, Option<Farewell>> {
    FAREWELL.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Signals that end the program: Ctrl-C, `kill`, a terminal that closes.
//!
//! A thread of its own receives them, so a signal ends every command at once, in whatever call the command is.

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

use polybook::{evals::end_engines, output::discard_all};

/// Set when a signal ends the program.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Runs before the end, such as finishing answers.
static FAREWELL: Mutex<Option<Farewell>> = Mutex::new(None);

type Farewell = Box<dyn FnOnce() + Send>;

/// Starts the thread that receives signals.
#[cfg(unix)]
pub fn watch() -> io::Result<()> {
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
        flag,
        iterator::Signals,
    };
    // A write past the limit of `ulimit -f` is an error like others as soon as its signal does not end the program.
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

/// Starts the thread that receives signals.
#[cfg(windows)]
pub fn watch() -> io::Result<()> {
    ctrlc::set_handler(|| end(130)).map_err(io::Error::other)
}

/// Whether the program was started by `nohup`, which means that it survives its terminal. Only Linux says so.
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

/// Ends engines, removes unfinished files and ends the program.
fn end(status: i32) -> ! {
    ENDING.store(true, Ordering::SeqCst);
    // A server runs until a signal stops it.
    let how = match farewell().is_some() {
        true => "stopped",
        false => "interrupted",
    };
    // Whatever panics here, the program ends: the command waits for that.
    for step in [say_farewell, end_engines, discard_all] {
        let _ = panic::catch_unwind(step);
    }
    // A terminal that takes no text must not hold up the end.
    let (sender, receiver) = mpsc::channel();
    let say = move || {
        super::progress::clear();
        // The exit status still says it, and nobody waits for a word that comes late.
        let _ = writeln!(io::stderr(), "polybook: {how}");
        let _ = sender.send(());
    };
    // Where the system has no thread for it, the program ends without a word.
    let _ = thread::Builder::new().spawn(say);
    let _ = receiver.recv_timeout(Duration::from_millis(200));
    process::exit(status)
}

fn say_farewell() {
    let said = farewell().take();
    if let Some(say) = said {
        say();
    }
}

/// Waits for the end if a signal is ending the program. What fails then fails because its files were removed, and
/// must neither be reported nor decide the exit status.
pub fn give_way() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Does something when a signal ends the program, before unfinished files are removed. It must take less than a second.
#[cfg(any(feature = "serve", test))]
pub fn before_end(farewell: impl FnOnce() + Send + 'static) {
    *self::farewell() = Some(Box::new(farewell));
}

fn farewell() -> std::sync::MutexGuard<'static, Option<Farewell>> {
    FAREWELL.lock().unwrap_or_else(PoisonError::into_inner)
}

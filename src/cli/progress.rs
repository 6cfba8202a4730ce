//! Prints messages of a command to the user, and shows a progress bar on the terminal. The bar contains the current
//! phase, the finished fraction of the work, and an estimate of the remaining time.

use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polybook::{
    make_book::{Phase, Progress},
    plural,
    progress::Meter,
};
use serde_json::Value;

use super::{
    errors, input,
    terminal::{self, print_json},
};

/// The settings that all commands share, such as `--quiet`.
#[derive(Copy, Clone, Debug)]
pub struct Context {
    pub quiet: bool,
}

impl Context {
    /// Prints a message for the user on standard error, unless `--quiet` is given.
    pub fn say(self, text: &str) {
        if !self.quiet {
            // An error is ignored: the work is done even if the message cannot be written.
            let text = errors::with_options(&input::with_given_names(text));
            let _ = terminal::stderr().write_all(text.as_bytes());
        }
    }

    /// Prints `warnings` on standard error, one per line, unless `--quiet` is given.
    pub fn warn(self, warnings: &[String]) {
        for warning in warnings {
            self.say(&format!("{warning}\n"));
        }
    }

    /// Prints `text`, the summary of a command, on standard error, unless `--quiet` is given. If `has_document` is
    /// `true`, also prints `document` on standard output.
    pub fn report(self, text: &str, has_document: bool, document: Value) -> anyhow::Result<()> {
        self.say(text);
        if has_document {
            print_json(&document)?;
        }
        Ok(())
    }

    /// Runs `work`, and shows a progress bar until it ends. `phase` describes the work. `work` reports its progress
    /// through the meter that it receives.
    pub fn show_progress<T>(self, phase: &'static str, work: impl FnOnce(&Arc<Meter>) -> T) -> T {
        let meter = Arc::default();
        let _bar = Bar::of_phase(phase, &meter, self);
        work(&meter)
    }
}

/// The progress bar that is currently on the terminal, or `None` if there is none. It is stored here so that a signal
/// handler can remove the bar.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A progress bar on standard error. A separate thread draws the bar until this value is dropped.
pub struct Bar {
    done: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Bar {
    /// Creates a progress bar, which is shown only if standard error is a terminal and the user did not give `--quiet`.
    /// Ten times per second, the bar calls `state`, which returns a description of the work and its finished fraction,
    /// from 0 to 1, or `None` if the fraction is unknown.
    fn new(context: Context, state: impl FnMut() -> (String, Option<f64>) + Send + 'static) -> Bar {
        let done = Arc::new(AtomicBool::new(false));
        let visible = !context.quiet && std::io::stderr().is_terminal();
        let is_done = Arc::clone(&done);
        let paint = move || paint(state, &is_done);
        // If the system cannot start a thread, the work continues without a bar.
        let start = || thread::Builder::new().spawn(paint).ok();
        let painter = visible.then(start).flatten();
        Bar { done, painter }
    }

    /// Creates a progress bar for work that consists of one phase. `phase` describes the work, and `meter` contains
    /// its progress.
    pub fn of_phase(phase: &'static str, meter: &Arc<Meter>, context: Context) -> Bar {
        let start = Instant::now();
        let meter = Arc::clone(meter);
        Bar::new(context, move || {
            let seconds = start.elapsed().as_secs();
            (format!("{phase}: {seconds} s"), meter.fraction())
        })
    }

    /// Creates a progress bar for work on games. It shows the number of games that `meter` contains.
    #[cfg(feature = "download")]
    pub fn of_games(phase: &'static str, meter: &Arc<Meter>, context: Context) -> Bar {
        let meter = Arc::clone(meter);
        Bar::new(context, move || {
            let games = plural(meter.done(), "game");
            let of_all = match meter.total() {
                0 => String::new(),
                total => format!(" of {total}"),
            };
            (format!("{phase}: {games}{of_all}"), meter.fraction())
        })
    }

    /// Creates the progress bar of `make-book`, which shows the current phase and the number of games that `progress`
    /// contains.
    pub fn of_make_book(progress: Arc<Progress>, context: Context) -> Bar {
        let start = Instant::now();
        let mut read_for = Duration::ZERO;
        Bar::new(context, move || {
            let (phase, games) = (progress.phase(), progress.games());
            if phase == Phase::Reading {
                read_for = start.elapsed();
            }
            let per_second = games as f64 / read_for.as_secs_f64().max(0.001);
            let phase = phase_name(phase);
            let games = plural(games, "game");
            let done = format!("{phase}: {games}, {per_second:.0} games/s");
            (done, progress.fraction())
        })
    }
}

/// Returns a copy of the context for a command that prints lines while it works. If standard output is a terminal, the
/// copy is quiet, because a progress bar would disturb the lines.
pub fn quiet_on_terminal(context: Context) -> Context {
    Context {
        quiet: context.quiet || std::io::stdout().is_terminal(),
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Reading => "reading",
        Phase::Sorting => "sorting",
        Phase::Database => "writing the database",
        Phase::Counts => "writing the counts",
        Phase::Index | Phase::Explorer => "writing the index",
        Phase::Book => "writing the book",
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(painter) = self.painter.take() {
            painter.thread().unpark();
            // If the drawing thread panicked, the work is unaffected, but the bar is still on the terminal.
            if painter.join().is_err() {
                clear();
            }
        }
    }
}

/// Removes the progress bar from the terminal. The program calls this function before it ends.
pub fn clear() {
    if let Some(bar) = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        bar.finish_and_clear();
    }
}

fn paint(mut state: impl FnMut() -> (String, Option<f64>), is_done: &AtomicBool) {
    let bar = ProgressBar::with_draw_target(Some(1000), draw_target());
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    let style =
        |template| ProgressStyle::with_template(template).expect("the template is constant");
    let (known, unknown) = (
        style("{msg} [{bar:25}] {percent}%"),
        style("{spinner} {msg}"),
    );
    let start = Instant::now();
    while !is_done.load(Ordering::Relaxed) {
        let (done, fraction) = state();
        let left = fraction.and_then(|fraction| time_left(start.elapsed(), fraction));
        let left = left.map_or(String::new(), |left| format!(", {left} left"));
        let style = fraction.map_or(&unknown, |_| &known);
        bar.set_style(style.clone());
        bar.set_position((fraction.unwrap_or(0.0) * 1000.0) as u64);
        bar.set_message(format!("{done}{left}"));
        bar.tick();
        thread::park_timeout(Duration::from_millis(100));
    }
    clear();
}

/// Returns an estimate of the remaining time as text, such as `2:05`. `elapsed` is the time since the start, and
/// `fraction` is the finished fraction of the work. Returns `None` in the first half second and below one percent, when
/// an estimate would be unreliable.
fn time_left(elapsed: Duration, fraction: f64) -> Option<String> {
    if fraction < 0.01 || elapsed < Duration::from_millis(500) {
        return None;
    }
    let left = elapsed.as_secs_f64() * (1.0 - fraction.min(1.0)) / fraction;
    let seconds = left.round() as u64;
    Some(match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    })
}

/// Returns the target on which the progress bar is drawn: standard error.
#[cfg(not(windows))]
fn draw_target() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr()
}

/// Returns the target on which the progress bar is drawn: standard error, without the last column of the window.
///
/// The bar must not fill the last column, because a character there moves the cursor of a Windows console to the next
/// line, and each update of the bar would then start a new line.
#[cfg(windows)]
fn draw_target() -> ProgressDrawTarget {
    let console = console::Term::buffered_stderr();
    ProgressDrawTarget::term_like_with_hz(
        Box::new(windows::AllButLastColumn(console)),
        DRAWS_A_SECOND,
    )
}

/// The maximum number of times per second that the progress bar is redrawn on Windows. It equals the default on other
/// systems.
#[cfg(windows)]
const DRAWS_A_SECOND: u8 = 20;

#[cfg(windows)]
mod windows {
    use std::io;

    use console::Term;
    use indicatif::TermLike;

    #[derive(Debug)]
    pub struct AllButLastColumn(pub Term);

    impl TermLike for AllButLastColumn {
        fn width(&self) -> u16 {
            self.0.size().1.saturating_sub(1)
        }

        fn height(&self) -> u16 {
            self.0.size().0
        }

        fn move_cursor_up(&self, n: usize) -> io::Result<()> {
            self.0.move_cursor_up(n)
        }

        fn move_cursor_down(&self, n: usize) -> io::Result<()> {
            self.0.move_cursor_down(n)
        }

        fn move_cursor_right(&self, n: usize) -> io::Result<()> {
            self.0.move_cursor_right(n)
        }

        fn move_cursor_left(&self, n: usize) -> io::Result<()> {
            self.0.move_cursor_left(n)
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.0.write_line(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.write_str(text)
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.clear_line()
        }

        fn flush(&self) -> io::Result<()> {
            self.0.flush()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_start() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(30), 0.5).as_deref(), Some("0:30"));
        assert_eq!(time_left(seconds(90), 0.25).as_deref(), Some("4:30"));
        assert_eq!(time_left(seconds(3600), 0.5).as_deref(), Some("1:00:00"));
        assert_eq!(time_left(seconds(9), 1.0).as_deref(), Some("0:00"));
        assert_eq!(time_left(seconds(9), 0.0), None);
    }
}

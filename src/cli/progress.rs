//! A progress bar on a terminal.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use polybook::make_book::{Phase, Progress};

/// Shows how far a run is until it is dropped.
pub struct Bar {
    done: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Bar {
    /// Shows nothing if standard error is no terminal or nothing is to be shown.
    pub fn new(progress: Arc<Progress>, quiet: bool) -> Bar {
        let done = Arc::new(AtomicBool::new(false));
        let visible = !quiet && std::io::stderr().is_terminal();
        let painter = visible.then(|| {
            let done = Arc::clone(&done);
            thread::spawn(move || paint(&progress, &done))
        });
        Bar { done, painter }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(painter) = self.painter.take() {
            painter.thread().unpark();
            // It only paints; that it failed matters to nobody.
            let _ = painter.join();
        }
    }
}

fn paint(progress: &Progress, done: &AtomicBool) {
    let bar = ProgressBar::new(0);
    let known = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left, {msg}";
    let unknown = "{spinner} {bytes} {bytes_per_sec}, {msg}";
    let total = || progress.bytes().1.unwrap_or(0);
    let mut styled = None;
    while !done.load(Ordering::Relaxed) {
        let template = if total() > 0 { known } else { unknown };
        if styled != Some(template) {
            styled = Some(template);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        }
        bar.set_length(total());
        bar.set_position(progress.bytes().0);
        let games = progress.games();
        bar.set_message(if progress.phase() > Phase::Reading {
            format!("{games} games, writing")
        } else {
            format!("{games} games")
        });
        thread::park_timeout(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

//! Where a progress bar is drawn.

use indicatif::ProgressDrawTarget;

/// Standard error.
#[cfg(not(windows))]
pub fn stderr() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr()
}

/// Standard error, but for the last column of the window.
///
/// A bar fills its line, and on a console of Windows a character in the last column moves the cursor to the next line: the
/// bar would be drawn on a new line each time.
#[cfg(windows)]
pub fn stderr() -> ProgressDrawTarget {
    let console = console::Term::buffered_stderr();
    ProgressDrawTarget::term_like_with_hz(
        Box::new(windows::AllButLastColumn(console)),
        DRAWS_A_SECOND,
    )
}

/// As often as other terminals are drawn to.
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

//! What `polybook` alone prints: three ways on.

use std::{
    env,
    io::{self, IsTerminal},
};

use super::terminal;

const WAYS: &str = "\
polybook make-book games.pgn       makes an opening book of games in PGN
polybook serve games.pgn --open    shows in the browser what was played in them
polybook --help                    lists all that polybook does
";

const IN_A_WINDOW: &str = "
Enter closes this window. To enter one of these lines, open the folder of your games in
the Explorer, click into its address, type cmd and press Enter.
";

pub fn run() -> anyhow::Result<()> {
    terminal::print(WAYS)?;
    if has_own_window() {
        terminal::print(IN_A_WINDOW)?;
        let _line = io::stdin().read_line(&mut String::new())?;
    }
    Ok(())
}

/// Whether the window may close with the program: it was double-clicked on Windows. The shell `cmd` sets PROMPT for what
/// it starts. PowerShell sets nothing, so there too polybook waits for Enter.
fn has_own_window() -> bool {
    cfg!(windows)
        && env::var_os("PROMPT").is_none()
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

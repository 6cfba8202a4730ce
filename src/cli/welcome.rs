//! The text that `polybook` prints if it is started without arguments. It shows three commands to begin with.

use std::{
    env,
    ffi::OsStr,
    io::{self, IsTerminal},
    path::Path,
};

use super::terminal;

const WAYS: [(&str, &str); 3] = [
    (
        "make-book games.pgn",
        "makes an opening book from games in PGN",
    ),
    (
        "serve games.pgn --open",
        "shows the games and their openings in the browser",
    ),
    ("--help", "lists all commands"),
];

const IN_A_WINDOW: &str = "
To use one of these commands, put polybook and your games into one folder. Open the folder in
the Explorer, click into its address, type cmd and press Enter. Then type the command.

If this window was opened for polybook, press Enter to close it.
";

/// Prints a short introduction. polybook shows it to users who start the program without arguments. `called` is the
/// name of the program in the examples.
pub fn run(called: &OsStr) -> anyhow::Result<()> {
    let has_own_window = has_own_window();
    // A double-clicked program is in the current folder, where `cmd` finds it by its name alone.
    let name = match Path::new(called).file_stem() {
        Some(stem) if has_own_window => stem,
        _ => called,
    };
    let mut name = name.to_string_lossy().into_owned();
    if name.contains(' ') {
        name = format!("\"{name}\"");
    }
    let ways = WAYS.map(|(way, what)| format!("{name} {way:<22}    {what}\n"));
    terminal::print(&ways.concat())?;
    if has_own_window {
        terminal::print(IN_A_WINDOW)?;
        let _line = io::stdin().read_line(&mut String::new())?;
    }
    Ok(())
}

/// Returns `true` if the console window may close when the program ends. On Windows, this happens if the user
/// double-clicked the program.
///
/// The shell `cmd` sets the variable PROMPT for the programs that it starts, and Windows Terminal sets WT_SESSION. If
/// neither variable is set, the function assumes a double-click. The assumption may be wrong, because PowerShell in its
/// own window sets neither variable.
fn has_own_window() -> bool {
    cfg!(windows)
        && env::var_os("PROMPT").is_none()
        && env::var_os("WT_SESSION").is_none()
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

//! Commands that are refused: the [transcript](crate::common::transcript) has their messages.

use std::{collections::BTreeMap, fs, path::Path};

use crate::common::{
    ok, sample, temp,
    transcript::{self, Said},
};

/// Creates the files that the commands of the table name.
fn files(dir: &Path) {
    const AFTER_E4: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    ok(
        dir,
        "make-book -q --min-game 1 --loss-factor 1 --max-ply 12 famous.pgn --bin book.bin --obs games.obs.db3 --explorer games.idx",
    );
    write("games.pgn", "1. e4 e5 2. Nf3 *\n");
    ok(dir, "make-book -q games.pgn --counts counts");
    write("long.txt", &"# long\n".repeat(400));
    write("notes", "1. my notes\n");
    write("bad.epd", "\nnot a position\n");
    write("none.epd", "# none\n");
    write("tagged.pgn", "[Event \"x\"]\n\n1. e4 *\n");
    write("exits.epd", &format!("{AFTER_E4}\n"));
    write("board.epd", &format!("{AFTER_E4}\n8/8/8/8/8/8/8/8 w - -\n"));
    write("bad.pgn", "1. e4 e5 *\n\n1. e4 e9 *\n");
    write("empty.pgn", "\n");
    let pair = |tags: &str, moves: &str| {
        let game = |white, black| {
            format!(
                "[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n{tags}\n{moves} 1-0\n\n"
            )
        };
        game("A", "B") + &game("B", "A")
    };
    write(
        "m.pgn",
        &pair(&format!("[FEN \"{AFTER_E4} 0 1\"]\n"), "1... e5"),
    );
    write("other.pgn", &pair("", "1. d4 d5"));
    ok(dir, "make-book -q other.pgn --min-game 1 --bin b.bin");
}

/// Returns the content of each file of a directory, and `None` for directories.
fn contents(dir: &Path) -> BTreeMap<std::ffi::OsString, Option<Vec<u8>>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name(), fs::read(entry.path()).ok()))
        .collect()
}

#[test]
fn a_refused_command_names_the_reason_and_changes_no_file() {
    let dir = temp();
    files(dir.path());
    let before = contents(dir.path());
    transcript::check("transcripts/refusals.console", |line| {
        Said::by_command(dir.path(), line)
    });
    assert!(contents(dir.path()) == before);
}

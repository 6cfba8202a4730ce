//! PGN as people write it: spellings, languages, variations and files. The tests run the binary.

use std::{ffi::OsStr, fs, path::Path, process::Output};

use polybook::{
    book::Book,
    position::{from_text, read_move},
};
use serde_json::Value;

/// Runs `polybook make-book` in a directory.
fn make_book<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> Output {
    crate::common::polybook_in(dir)
        .args(["make-book", "--min-game", "1"])
        .args(args)
        .output()
        .unwrap()
}

/// The result of a successful run over a text: the report, the messages, and the book.
struct Made {
    report: Value,
    said: String,
    book: Book,
}

#[track_caller]
fn made(text: impl AsRef<[u8]>, options: &[&str]) -> Made {
    let dir = crate::common::temp();
    fs::write(dir.path().join("games.pgn"), text).unwrap();
    let output = make_book(dir.path(), &[&["games.pgn", "--json"], options].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    Made {
        report: serde_json::from_slice(&output.stdout).unwrap(),
        said,
        book: Book::open(dir.path().join("book.bin")).unwrap(),
    }
}

/// Runs the command on a file that must be refused, and returns the error, which must be one line.
#[track_caller]
fn refused(name: &str, content: &[u8], options: &[&str], status: i32) -> String {
    let dir = crate::common::temp();
    fs::write(dir.path().join(name), content).unwrap();
    let output = make_book(dir.path(), &[&[name], options].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(said.starts_with("polybook: ") || status == 2, "{said}");
    assert!(status == 2 || said.lines().count() == 1, "{said}");
    assert!(!dir.path().join("book.bin").exists());
    said
}

impl Made {
    #[track_caller]
    fn games(&self, counted: u64, rejected: u64) -> &Made {
        let games = &self.report["games"];
        assert_eq!(
            (games["counted"].as_u64(), games["rejected"].as_u64()),
            (Some(counted), Some(rejected)),
            "{}",
            self.report
        );
        self
    }

    /// Returns the weight of the last move of a line.
    #[track_caller]
    fn weight(&self, line: &str) -> Option<u16> {
        let (before, last) = line.rsplit_once(' ').unwrap_or(("", line));
        let before = from_text(None, Some(before)).unwrap();
        let last = read_move(&before, last.as_bytes()).unwrap();
        self.book
            .moves_of(&before)
            .unwrap()
            .into_iter()
            .find(|entry| entry.mv == last.into())
            .map(|entry| entry.weight)
    }
}

#[test]
fn results_glued_to_the_last_move() {
    for last in [
        "Qh40-1",
        "Qh4#0-1",
        "Qh4+0-1",
        "Qh4!0-1",
        "Qh40–1",
        "Qh4 0—1",
    ] {
        let text = format!("1. f3 e5 2. g4 {last}\n1. d4 1-0\n");
        let made = made(&text, &[]);
        made.games(2, 0);
        assert_eq!(made.weight("f3 e5 g4 Qh4"), Some(2), "{last}");
        // Skipping a game must find the same end as reading it.
        let made = self::made(&text, &["--max-ply", "1"]);
        made.games(2, 0);
        assert_eq!(
            (made.weight("d4"), made.weight("f3")),
            (Some(2), None),
            "{last}"
        );
    }
    let drawn = made("1. e41/2-1/2 1. d41-0 1. c4½-½", &[]);
    drawn.games(3, 0);
    assert_eq!(drawn.weight("d4"), Some(2));
}

#[test]
fn moves_as_annotators_write_them() {
    let spellings: [(&str, &[&str]); 6] = [
        (
            "e4 d5 exd5",
            &["ed5", "e×d5", "exd5:", "e4:d5", "♙exd5", "exd5=", "e4–d5"],
        ),
        (
            "e4 e5 Qh5",
            &[
                "Qh5+-",
                "Qh5+/-",
                "Qh5-+",
                "Qh5=",
                "Qh5ch",
                "Qh5†",
                "qh5",
                "♕h5",
                "♛h5",
                "Qh5\u{a0}",
            ],
        ),
        (
            "e4 Nf6 e5 d5 exd6",
            &["exd6ep", "exd6e.p.", "exd6 e.p.", "exd6 ep"],
        ),
        (
            "e4 e5 Nf3 Nc6 Bc4 Bc5 O-O",
            &["OO", "O–O", "0–0", "0‑0", "o-o", "O−O+", "0—0!"],
        ),
        ("Nf3 d5 d3 d4 Nbd2", &["N(b)d2", "nbd2", "Nb1-d2", "♘bd2"]),
        (
            "g4 h5 gxh5 g6 hxg6 Nf6 g7 Ne4 gxh8=Q",
            &["gxh8/Q", "gxh8(Q)", "gxh8=(Q)", "gxh8Q", "gh8=Q", "gxh8=q"],
        ),
    ];
    for (line, others) in spellings {
        let (before, _) = line.rsplit_once(' ').unwrap();
        for other in others {
            let made = made(format!("{before} {other} 1-0"), &[]);
            made.games(1, 0);
            assert_eq!(made.weight(line), Some(2), "{other}");
        }
    }
    // A no-break space and a multiplication sign in Latin-1.
    let made = made(b"1.\xa0e4 d5\xa02. e\xd7d5 1-0", &[]);
    made.games(1, 0);
    assert_eq!(made.weight("e4 d5 exd5"), Some(2));
}

#[test]
fn piece_letters_of_other_languages() {
    let line = "e4 e5 Nf3 Nc6 Bb5 Nf6 Qe2 Rg8 Ke1d1 Qe7 Rf1";
    let english = "e4 e5 Nf3 Nc6 Bb5 Nf6 Qe2 Rg8 Kd1 Qe7 Rf1";
    for (letters, text) in [
        (
            "de",
            "1. e4 e5 2. Sf3 Sc6 3. Lb5 Sf6 4. De2 Tg8 5. Kd1 De7 6. Tf1 1-0",
        ),
        (
            "nl",
            "1. e4 e5 2. Pf3 Pc6 3. Lb5 Pf6 4. De2 Tg8 5. Kd1 De7 6. Tf1 1-0",
        ),
        (
            "fr",
            "1. e4 e5 2. Cf3 Cc6 3. Fb5 Cf6 4. De2 Tg8 5. Rd1 De7 6. Tf1 1-0",
        ),
        (
            "es",
            "1. e4 e5 2. Cf3 Cc6 3. Ab5 Cf6 4. De2 Tg8 5. Rd1 De7 6. Tf1 1-0",
        ),
        (
            "it",
            "1. e4 e5 2. Cf3 Cc6 3. Ab5 Cf6 4. De2 Tg8 5. Rd1 De7 6. Tf1 1-0",
        ),
    ] {
        made(format!("{text}\n\n1. d4 1-0"), &[]).games(1, 1);
        let made = made(text, &["--piece-letters", letters]);
        made.games(1, 0);
        assert_eq!(made.weight(line), Some(2), "{letters}");
    }
    // English letters are accepted, too.
    let both = made(format!("{english} 1-0"), &["--piece-letters", "de"]);
    assert_eq!(both.games(1, 0).weight(line), Some(2));
    let error = refused("games.pgn", b"e4 *", &["--piece-letters", "xx"], 2);
    assert!(error.contains("de, nl, fr, es or it"), "{error}");
}

#[test]
fn a_null_move_ends_what_counts_of_its_game() {
    for null in ["--", "Z0", "null", "@@@@", "0000", "--!?"] {
        let text = format!("1. e4 e5 2. {null} Nc6 3. Nf3 1-0\n\n1. d4 1-0\n");
        let made = made(&text, &[]);
        made.games(2, 0);
        assert_eq!(made.report["plies"], 3, "{null}");
        assert_eq!(made.weight("e4"), Some(2));
        assert!(
            made.said
                .contains("1 game or variation contains a null move"),
            "{}",
            made.said
        );
    }
}

#[test]
fn variations_of_repertoires_are_counted_on_demand() {
    let study = "[Result \"*\"]\n\n1. e4 c5 (1... e5 2. Nf3 (2. f4 {gambit} exf4 1-0) 2... Nc6) (1... Ke6 2. d4) 2. Nf3 \
                 (2. -- d6) (2. c3) *\n";
    let plain = made(study, &[]);
    plain.games(1, 0);
    assert_eq!(
        (plain.report["plies"].as_u64(), plain.weight("e4 e5")),
        (Some(3), None)
    );
    let made = self::made(study, &["--variations"]);
    made.games(1, 0);
    for line in [
        "e4",
        "e4 c5",
        "e4 e5",
        "e4 e5 Nf3",
        "e4 e5 Nf3 Nc6",
        "e4 e5 f4 exf4",
        "e4 c5 c3",
    ] {
        assert_eq!(made.weight(line), Some(1), "{line}");
    }
    assert_eq!(made.report["plies"], 3 + 3 + 2 + 1);
    assert!(
        made.said.contains("1 variation contains an illegal move"),
        "{}",
        made.said
    );
    assert!(
        made.said
            .contains("1 game or variation contains a null move"),
        "{}",
        made.said
    );

    // Each variation is counted once from the move where it branches, in addition to the main line. Variations on the
    // last half-move are included.
    let won = self::made(
        "1. e4 (1. d4) (1. d4 d5) (1. c4) 1-0",
        &["--variations", "--max-ply", "1"],
    );
    let weights = ["e4", "d4", "c4", "d4 d5"].map(|line| won.weight(line));
    assert_eq!(weights, [Some(2), Some(2), Some(1), None]);

    // The depth and the number of threads do not matter.
    let deep = format!("1. e4 {} {} 1-0", "(1. d4 ".repeat(5000), ")".repeat(5000));
    self::made(deep, &["--variations"]).games(1, 0);
}

#[test]
fn names_in_latin_1() {
    let text = b"[White \"M\xfcller, H\"]\n\n1. e4 1-0\n\n[White \"M\xc3\xbcller\"]\n\n1. d4 1-0\n\n[White \"Moller\"]\n\n1. c4 *";
    let made = made(text, &["--player", "Müller"]);
    made.games(2, 0);
    assert_eq!(made.report["games"]["filtered"], 1);
}

#[test]
fn files_that_are_no_pgn_are_named() {
    let tar = [&[0; 257][..], b"ustar", &[0; 300]].concat();
    let utf_16: Vec<u8> = "[Event \"x\"]\n\n1. e4 *"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let book: Vec<u8> = (1..40u64)
        .flat_map(|i| [(i << 50).to_be_bytes(), [9, 0, 0, 1, 0, 0, 0, 0]].concat())
        .collect();
    for (content, words) in [
        (&tar[..], "tar archive"),
        (&utf_16, "UTF-16"),
        (&book, "Polyglot book"),
        (b"\xfd7zXZ\0\0\x04", "xz"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "7z"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
        (b"SQLite format 3\0\x10\0", "SQLite"),
        (
            b"# Read me\n\n1. Unpack.\n2. Run `make`.\n",
            "contains no game",
        ),
    ] {
        let error = refused("file", content, &[], 1);
        assert!(
            error.contains("file: ") && error.contains(words),
            "{words}: {error}"
        );
    }
    let dir = crate::common::temp();
    let output = make_book(dir.path(), &[dir.path()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && error.contains("directory"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = crate::common::temp();
    let name = OsStr::from_bytes(b"gr\xfcn.pgn");
    fs::write(dir.path().join(name), "1. e4 1-0").unwrap();
    let output = make_book(dir.path(), &[name]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn games_with_millions_of_tags() {
    let tags: String = (0..300_000).map(|i| format!("[t{i} \"\"]\n")).collect();
    let text =
        format!("[FEN \"\"]\n{tags}[Result \"0-1\"]\n[Result \"1-0\"]\n\n1. e4 *\n\n1. d4 1-0\n");
    let made = made(text, &[]);
    made.games(2, 0);
    assert_eq!(made.weight("e4"), Some(2));
}

/// A run that waits for a silent pipe ends when it is interrupted, although the pipe stays open.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_waits_for_a_pipe_can_be_interrupted() {
    use std::process::Stdio;

    let dir = crate::common::temp();
    let pipe = dir.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for input in ["-", "pipe"] {
        let mut child = crate::common::polybook_in(dir.path())
            .args(["make-book", input])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let status = format!("/proc/{}/status", child.id());
        crate::common::until("the program handles interrupts", || {
            let status = std::fs::read_to_string(&status).unwrap();
            let mut lines = status.lines();
            let caught = lines.find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
            // Bit 1 is SIGINT.
            caught & 2 != 0
        });
        crate::common::send_signal(child.id(), rustix::process::Signal::INT);
        // Standard input stays open until here.
        let stdin = child.stdin.take();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{input}");
        drop(stdin);
        assert!(!dir.path().join("book.bin").exists());
    }
}

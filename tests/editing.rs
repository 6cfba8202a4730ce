//! `polybook edit` and `polybook diff` on the command line.

use std::{fs, path::Path};

use crate::common::{fails, fed, ok, ok_json, records, run, sample, temp};
use polybook::{
    book::Entry,
    position::{BookMove, from_text, key, read_move},
};
use proptest::prelude::*;
use shakmaty::Square;

/// Makes a book of the famous games in which every move has a weight.
fn made() -> tempfile::TempDir {
    let dir = temp();
    let line = format!(
        "make-book -q --min-game 1 --loss-factor 1 --max-ply 20 --bin book.bin {}",
        sample("famous.pgn").display()
    );
    ok(dir.path(), &line);
    dir
}

/// Returns the moves of a position with their weights.
fn weights(dir: &Path, book: &str, moves: &str) -> Vec<(String, u64)> {
    let shown = ok_json(dir, &["show", book, "--json", "--moves", moves]);
    let moves = shown["moves"].as_array().unwrap().iter();
    let weight = |mv: &serde_json::Value| mv["weight"].as_u64().unwrap();
    moves
        .map(|mv| (mv["san"].as_str().unwrap().to_owned(), weight(mv)))
        .collect()
}

#[test]
fn both_spellings_of_castling_are_one_move() {
    let dir = temp();
    let fen = "rnbqk2r/ppppbppp/5n2/4p3/4P3/5N2/PPPPBPPP/RNBQK2R w KQkq - 4 4";
    let pos = from_text(Some(fen), None).unwrap();
    let record = |mv: &str, weight| {
        let number = |square: &str| Square::from_ascii(square.as_bytes()).unwrap() as u16;
        let mv = BookMove(number(&mv[..2]) << 6 | number(&mv[2..]));
        let (key, learn) = (key(&pos), 0);
        let entry = Entry {
            key,
            mv,
            weight,
            learn,
        };
        entry.to_bytes()
    };
    let book = [record("d2d3", 60), record("e1g1", 30), record("e1h1", 10)];
    fs::write(dir.path().join("two.bin"), book.concat()).unwrap();
    let shown = |book: &str| -> Vec<String> {
        let shown = ok_json(dir.path(), args!["show", book, "--json", "--fen", fen]);
        let moves = shown["moves"].as_array().unwrap().iter();
        moves
            .map(|mv| format!("{} {}", mv["san"], mv["weight"]))
            .collect()
    };
    let new = dir.path().join("new.bin");
    let edit = |option: &str, change: &str| {
        let _ = fs::remove_file(&new);
        ok(
            dir.path(),
            args![
                "edit", "two.bin", "--out", "new.bin", "--fen", fen, option, change
            ],
        );
        shown("new.bin")
    };
    assert_eq!(shown("two.bin"), ["\"d3\" 60", "\"O-O\" 40"]);
    assert_eq!(edit("--set", "O-O=5"), ["\"d3\" 60", "\"O-O\" 5"]);
    assert_eq!(records(&new).len(), 2);
    assert_eq!(edit("--set", "O-O=50%"), ["\"O-O\" 60", "\"d3\" 60"]);
    assert_eq!(edit("--remove", "e1g1"), ["\"d3\" 60"]);
    let summary = |option: &str, change: &str| {
        let line = args![
            "edit", "two.bin", "--json", "--out", "new.bin", "--fen", fen, option, change
        ];
        fs::remove_file(&new).unwrap();
        let done = ok_json(dir.path(), line);
        ["added", "weighed", "removed"].map(|what| done[what].as_u64().unwrap())
    };
    assert_eq!(summary("--set", "d3=50%"), [0, 1, 0]);
    assert_eq!(summary("--set", "O-O=41"), [0, 1, 0]);
    assert_eq!(summary("--remove", "O-O"), [0, 0, 1]);
    // A table contains the move once, too.
    fs::write(dir.path().join("start.epd"), fen).unwrap();
    for name in ["t.csv", "t.jsonl"] {
        let converted = ok_json(
            dir.path(),
            &format!("convert two.bin {name} --from start.epd --json"),
        );
        assert_eq!(converted["entries"], 2);
        let table = fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(table.matches("e1g1").count(), 1, "{table}");
        assert_eq!(table.matches("d2d3").count(), 1, "{table}");
    }
    let jsonl = fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
    assert!(jsonl.contains("\"weight\":40"), "{jsonl}");
    // If a line leads to the position, only weights are compared.
    let line = |mv: &str, before: &str| {
        let pos = from_text(None, Some(before)).unwrap();
        let mv = BookMove::from(read_move(&pos, mv.as_bytes()).unwrap());
        let (key, weight, learn) = (key(&pos), 1, 0);
        Entry {
            key,
            mv,
            weight,
            learn,
        }
    };
    let way = "e4 e5 Nf3 Nf6 Be2 Be7".split(' ').collect::<Vec<_>>();
    let way: Vec<Entry> = (0..way.len())
        .map(|i| line(way[i], &way[..i].join(" ")))
        .collect();
    let with = |records: &[[u8; 16]], name: &str| {
        let mut entries: Vec<Entry> = records.iter().map(|r| Entry::from_bytes(*r)).collect();
        entries.extend(&way);
        entries.sort_by_key(|entry| entry.key);
        let bytes = entries.iter().flat_map(|entry| entry.to_bytes());
        fs::write(dir.path().join(name), bytes.collect::<Vec<u8>>()).unwrap();
    };
    with(&book, "a.bin");
    with(&[record("d2d3", 60), record("e1h1", 40)], "b.bin");
    with(&[record("d2d3", 60), record("e1g1", 41)], "c.bin");
    assert_eq!(ok(dir.path(), "diff a.bin b.bin"), "");
    let different = run(dir.path(), "diff a.bin c.bin");
    let different = String::from_utf8(different.stdout).unwrap();
    assert!(
        different.contains("\n  * O-O      40 -> 41 ("),
        "{different}"
    );
    assert_eq!(different.lines().count(), 2, "{different}");
}

#[test]
fn moves_are_set_added_and_removed() {
    let dir = made();
    let dir = dir.path();
    let before = weights(dir, "book.bin", "e4");
    let report = ok_json(
        dir,
        &[
            "edit", "book.bin", "1. e4", "--out", "new.bin", "--json", "-q", "--set", "c5=500",
            "--set", "a5=7", "--remove", "e6",
        ],
    );
    assert_eq!(
        (&report["added"], &report["weighed"], &report["removed"]),
        (&1.into(), &1.into(), &1.into())
    );
    let after = weights(dir, "new.bin", "e4");
    assert_eq!(after[0], ("c5".to_owned(), 500));
    assert!(after.contains(&("a5".to_owned(), 7)));
    assert!(!after.iter().any(|(san, _)| san == "e6"));
    assert_eq!(after.len(), before.len());
    ok(dir, "verify new.bin");
    assert_eq!(report["entries"], records(&dir.join("new.bin")).len());
    let header = ok(dir, "pgheader -s new.bin");
    assert!(header.contains("Input: famous.pgn"), "{header}");
    let edited = format!("\nEdited by polybook {}\n", env!("CARGO_PKG_VERSION"));
    assert!(header.contains(&edited), "{header}");
    // After reverting the change, the book is the same except for a line in its header.
    let e6 = before.iter().find(|(san, _)| san == "e6").unwrap().1;
    let c5 = before.iter().find(|(san, _)| san == "c5").unwrap().1;
    let line =
        format!("edit new.bin --in-place -q --moves e4 --set c5={c5} --set e6={e6} --remove a5");
    ok(dir, &line);
    assert_eq!(ok(dir, "diff book.bin new.bin"), "");
    assert_eq!(
        records(&dir.join("book.bin")),
        records(&dir.join("new.bin"))
    );
    let without_checksum = |header: &str| header.rsplit_once("Checksum").unwrap().0.to_owned();
    let back = ok(dir, "pgheader -s new.bin");
    assert_eq!(without_checksum(&back), without_checksum(&header));
    ok(dir, "verify new.bin");
}

#[test]
fn an_edit_says_if_the_header_cannot_mention_it() {
    let dir = made();
    let dir = dir.path();
    for (length, unmarked) in [(1900, false), (2000, true)] {
        let line = format!(
            "make-book -q {} --comment {} --bin full.bin --force",
            sample("famous.pgn").display(),
            "x".repeat(length)
        );
        ok(dir, &line);
        let edit = "edit full.bin --out new.bin --set e4=7";
        let report = ok_json(dir, &format!("{edit} --json -q"));
        assert_eq!(report["unmarked"], unmarked);
        fs::remove_file(dir.join("new.bin")).unwrap();
        let message = "new.bin: the header has no room for the line \"Edited by polybook\": shorten its comment with \
                       pgheader -c\n";
        let said = String::from_utf8(run(dir, edit).stderr).unwrap();
        assert_eq!(said.contains(message), unmarked, "{said}");
        let header = polybook::book::header::read(dir.join("new.bin")).unwrap();
        assert_eq!(header.contains("\nEdited by polybook"), !unmarked);
        assert!(header.contains(&"x".repeat(length)), "{header}");
        fs::remove_file(dir.join("new.bin")).unwrap();
    }
    ok(dir, "pgheader full.bin -c short");
    let report = ok_json(dir, "edit full.bin --out new.bin --set e4=7 --json -q");
    assert_eq!(report["unmarked"], false);
}

#[test]
fn an_edit_keeps_the_fields_of_later_headers() {
    let dir = made();
    let dir = dir.path();
    let book = fs::read(dir.join("book.bin")).unwrap();
    let start = book
        .chunks(16)
        .position(|record| record[..8] != [0; 8])
        .unwrap()
        * 16;
    for comment in ["", "mine"] {
        let text = format!("@PG@\n1.1\n3\n1\nnormal\n[field]\n{comment}");
        let header = polybook::book::header::create_raw(&text);
        fs::write(dir.join("later.bin"), [&header, &book[start..]].concat()).unwrap();
        ok(dir, "edit -q later.bin --in-place --set e4=7");
        let new = polybook::book::header::read(dir.join("later.bin")).unwrap();
        let text = format!("{}\nEdited by polybook ", text.trim_end());
        assert!(new.starts_with(&text), "{new}");
        ok(dir, "verify later.bin");
    }
}

#[test]
fn shares_are_in_percent_of_the_position() {
    let dir = made();
    let dir = dir.path();
    ok(
        dir,
        &[
            "edit", "book.bin", "-q", "--out", "new.bin", "--set", "e4=60%", "--set", "a3=10%",
        ],
    );
    let shown = ok_json(dir, "show new.bin --json");
    let percent = |san: &str| {
        let moves = shown["moves"].as_array().unwrap();
        moves.iter().find(|mv| mv["san"] == san).unwrap()["probability"]
            .as_f64()
            .unwrap()
    };
    assert!(
        (percent("e4") - 60.0).abs() < 0.6 && (percent("a3") - 10.0).abs() < 0.6,
        "{shown}"
    );
    for (sets, says) in [
        (["e4=60%", "d4=50%"], "leave nothing"),
        (["e4=100%", "d4=5"], "leave nothing"),
    ] {
        let line = [
            "edit", "book.bin", "--out", "x.bin", "--set", sets[0], "--set", sets[1],
        ];
        let error = fails(dir, &line, 1);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn the_script_of_the_help_works() {
    let dir = temp();
    let dir = dir.path();
    let games = ["c5 2. Nf3", "c5 2. Nc3", "c5 2. f4", "e5 2. Nf3 f6 3. Nxe5"];
    let games = games.map(|moves| format!("1. e4 {moves} *\n\n"));
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --uniform --bin book.bin",
    );
    let help = ok(dir, "edit --help");
    let script: Vec<&str> = help
        .lines()
        .filter(|line| {
            ["  1. ", "  ; "]
                .iter()
                .any(|start| line.starts_with(start))
        })
        .collect();
    assert_eq!(script.len(), 3, "{help}");
    let line = ["edit", "book.bin", "-q", "--in-place", "--script", "-"];
    let output = fed(dir, &line, script.join("\n").as_bytes());
    assert!(output.status.success(), "{output:?}");
    let shown = weights(dir, "book.bin", "e4 c5");
    assert_eq!(shown.len(), 3, "{shown:?}");
}

#[test]
fn a_script_from_a_pipe() {
    let dir = made();
    let dir = dir.path();
    let script = "# openings\n\n1. e4 e5; set Nf3=70%; set Nc3=30\n; set f4=2\r\n\
                  rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1; set f5=9\n";
    let line = ["edit", "book.bin", "-q", "--in-place", "--script", "-"];
    let output = fed(dir, &line, script.as_bytes());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = weights(dir, "book.bin", "e4 e5");
    assert!(
        found.contains(&("Nc3".to_owned(), 30)) && found.contains(&("f4".to_owned(), 2)),
        "{found:?}"
    );
    assert!(weights(dir, "book.bin", "d4").contains(&("f5".to_owned(), 9)));
    for (script, says) in [
        (
            "e4 e5; set Nf3",
            "line 1: cannot read \"Nf3\": give a move and its weight",
        ),
        ("\ne4 e4; remove e5", "line 2: move 2 of the line"),
        (
            "e4; set Ke3=1",
            "8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1, the move \"Ke3\" cannot be played (illegal move)",
        ),
        ("; remove a4\n", "the book does not contain the move \"a4\""),
        ("e4", "line 1: the line contains no change"),
        ("\u{feff}# a\n8/8/8 w - -; remove e4", "line 2: FEN"),
        (
            "e4 a6 d4 h5 a3; remove-position",
            "the book contains no move to remove: to remove the move that leads to this position, name the move with \
             --remove in the position before",
        ),
    ] {
        let line = ["edit", "book.bin", "--out", "x.bin", "--script", "-"];
        let output = fed(dir, &line, script.as_bytes());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{script}: {error}");
        assert!(
            error.contains(says) && error.lines().count() == 1,
            "{script}: {error}"
        );
        assert!(!dir.join("x.bin").exists());
    }
}

#[test]
fn a_removed_position_takes_along_what_only_it_led_to() {
    let dir = temp();
    let dir = dir.path();
    // Two lines lead to the same position, and other positions are reached by one line.
    let games = "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n1. Nf3 Nc6 2. e4 e5 3. Bb5 *\n\n1. e4 e5 2. Bc4 Bc5 3. c3 *\n\n1. e4 c5 2. c3 *\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin book.bin");
    let report = ok_json(
        dir,
        &[
            "edit",
            "book.bin",
            "--out",
            "new.bin",
            "-q",
            "--json",
            "e4 e5",
            "--remove-position",
        ],
    );
    // The positions after 2. Nf3, 2. Bc4 and 2... Bc5 are removed, but not the position after 2... Nc6.
    assert_eq!(report["removed_positions"], 4, "{report}");
    assert_eq!(weights(dir, "new.bin", "e4 e5"), []);
    assert_eq!(weights(dir, "new.bin", "e4 e5 Bc4"), []);
    assert_eq!(
        weights(dir, "new.bin", "e4 e5 Nf3 Nc6"),
        [("Bb5".to_owned(), 2)]
    );
    assert_eq!(weights(dir, "new.bin", "e4 c5"), [("c3".to_owned(), 1)]);
    // The book of one side continues after the replies of the other side.
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --only-white --bin white.bin",
    );
    let report = ok_json(
        dir,
        &[
            "edit",
            "white.bin",
            "--in-place",
            "-q",
            "--json",
            "e4 e5",
            "--remove-position",
        ],
    );
    assert_eq!(report["removed_positions"], 2, "{report}");
    assert_eq!(
        weights(dir, "white.bin", "e4 e5 Nf3 Nc6"),
        [("Bb5".to_owned(), 2)]
    );
    assert_eq!(weights(dir, "white.bin", "e4 e5 Bc4 Bc5"), []);
    // White's move 2. d3 has the weight 0, so only a reply that the book does not play leads to the answer 2... d5.
    let games = "1. e4 e5 2. Nf3 Nc6 1-0\n\n1. e4 e5 2. d3 d5 0-1\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin mixed.bin");
    assert_eq!(
        weights(dir, "mixed.bin", "e4 e5 d3"),
        [("d5".to_owned(), 2)]
    );
    let text = ok(dir, "edit mixed.bin --in-place e4 --remove-position --json");
    assert!(text.contains("\"removed_positions\":"), "{text}");
    assert_eq!(weights(dir, "mixed.bin", "e4 e5 d3"), []);
    // As polybook advises: moves that lead to removed positions stay in the book: remove them with --remove.
    assert_eq!(weights(dir, "mixed.bin", ""), [("e4".to_owned(), 2)]);
    let advice = "remove them with --remove";
    let line = "edit mixed.bin --out gone.bin --remove e4 --set d4=1";
    assert!(!ok(dir, line).contains(advice));
    assert_eq!(weights(dir, "gone.bin", ""), [("d4".to_owned(), 1)]);
}

#[test]
fn differences_as_text_and_as_json() {
    let dir = made();
    let dir = dir.path();
    ok(
        dir,
        &[
            "edit", "book.bin", "-q", "--out", "new.bin", "--set", "a3=3", "--remove", "d4",
            "--set", "e4=77",
        ],
    );
    let output = run(dir, "diff -q book.bin new.bin");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    );
    assert_eq!(lines.len(), 4);
    assert!(lines.contains(&"  + a3       3 (3.3%)"), "{text}");
    assert!(
        lines.iter().any(|line| line.starts_with("  - d4 ")),
        "{text}"
    );
    assert!(lines.iter().any(|line| line.contains(" -> 77 (")), "{text}");
    let output = run(dir, "diff -q --json book.bin new.bin");
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["positions"], &document["moves"]),
        (&1.into(), &3.into())
    );
    let moves = document["differences"][0]["moves"].as_array().unwrap();
    let a3 = moves.iter().find(|mv| mv["san"] == "a3").unwrap();
    assert_eq!(a3["uci"], "a2a3");
    assert!(a3["first"].is_null());
    assert_eq!(a3["second"]["weight"], 3);
    assert_eq!(a3["second"]["percent"], 3.26087);
    // For equal books, nothing is printed, whatever their headers and pipes are.
    let book = fs::read(dir.join("book.bin")).unwrap();
    let output = fed(dir, &["diff", "-", "book.bin"], &book);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let same = ok_json(dir, "diff --json book.bin book.bin");
    assert_eq!(
        same,
        serde_json::json!({"positions": 0, "moves": 0, "differences": []})
    );
    let error = fails(dir, "diff book.bin missing.bin", 1);
    assert!(error.contains("missing.bin"));
}

#[test]
fn a_move_of_weight_0_stays_in_the_book() {
    let dir = made();
    let dir = dir.path();
    ok(dir, "edit book.bin -q --out new.bin --set a3=0 --set e4=0");
    let moves = weights(dir, "new.bin", "");
    for mv in ["a3", "e4"] {
        assert!(moves.contains(&(mv.to_owned(), 0)), "{moves:?}");
    }
    ok(dir, "edit new.bin -q --in-place --remove a3 --remove e4");
    assert!(
        weights(dir, "new.bin", "")
            .iter()
            .all(|(_, weight)| *weight > 0)
    );
}

/// A move can be added to a position that no line of the book leads to, as is said.
#[test]
fn a_new_position_that_no_line_leads_to_is_noted() {
    let dir = made();
    let dir = dir.path();
    let edit = |line: &str, changes: &[&str]| {
        let args = ["edit", "book.bin", "--out", "new.bin", line];
        let output = run(dir, &[&args, changes].concat()[..]);
        assert!(output.status.success());
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let note = "new.bin: no line of the book leads to 1 new position\n";
    let text = edit("1. e4 f6 2. d4 g5", &["--set", "Qh5=10"]);
    assert!(text.contains("1 move added"), "{text}");
    assert!(text.contains(note), "{text}");
    // The lines lead to the position if the moves before are added, too.
    fs::write(
        dir.join("line.txt"),
        "1. e4; set f6=1\n1. e4 f6; set d4=1\n1. e4 f6 2. d4; set g5=1\n",
    )
    .unwrap();
    let text = edit(
        "1. e4 f6 2. d4 g5",
        &["--set", "Qh5=10", "--script", "line.txt"],
    );
    assert!(text.contains("4 moves added"), "{text}");
    assert!(!text.contains("no line"), "{text}");
    // A removed position beside the new one.
    fs::write(dir.join("removal.txt"), "1. d4; remove-position\n").unwrap();
    let text = edit(
        "1. e4 f6 2. d4 g5",
        &["--set", "Qh5=10", "--script", "removal.txt"],
    );
    assert!(text.contains(note), "{text}");
    ok(dir, "verify new.bin");
    assert_eq!(
        weights(dir, "new.bin", "e4 f6 d4 g5"),
        [("Qh5#".to_owned(), 10)]
    );
}

#[test]
fn the_largest_differences_come_first() {
    let dir = made();
    let dir = dir.path();
    let changes = "1. e4; set c5=40000\n1. d4; set a6=9; set h6=9\n1. e4 e5; set a3=17\n";
    fs::write(dir.join("changes.txt"), changes).unwrap();
    ok(dir, "edit book.bin -q --out new.bin --script changes.txt");
    let moves_of = |options: &str| {
        let line = format!("diff -q book.bin new.bin{options}");
        let text = String::from_utf8(run(dir, &*line).stdout);
        let text = text.unwrap();
        let moves = text.lines().filter(|line| line.starts_with("  "));
        let moves = moves.map(|line| line[4..].split(' ').next().unwrap().to_owned());
        moves.collect::<Vec<_>>()
    };
    assert_eq!(moves_of(""), ["c5", "a6", "h6", "a3"]);
    assert_eq!(moves_of(" --sort weight"), moves_of(""));
    assert_eq!(moves_of(" --limit 2"), ["c5", "a6", "h6"]);
    let said = run(dir, "diff book.bin new.bin --limit 1").stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("3 positions and 4 moves differ"), "{said}");
    let mut keys = ["e4", "d4", "e4 e5"].map(|line| {
        let key = key(&from_text(None, Some(line)).unwrap());
        (key, line)
    });
    keys.sort_unstable();
    let of_key = |line: &str| match line {
        "e4" => vec!["c5"],
        "d4" => vec!["a6", "h6"],
        _ => vec!["a3"],
    };
    let by_key: Vec<&str> = keys.iter().flat_map(|(_, line)| of_key(line)).collect();
    assert_eq!(moves_of(" --sort key"), by_key);
    assert_ne!(by_key, moves_of(""), "the two orders differ");
    let document = run(dir, "diff -q book.bin new.bin --json").stdout;
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["differences"][0]["moves"][0]["san"], "c5");
}

/// Like `show`, `diff` leaves out illegal moves when it computes shares.
#[test]
fn an_illegal_move_has_no_share_of_the_weights() {
    let dir = temp();
    let start = key(&from_text(None, None).unwrap());
    let write = |name: &str, e4: u16| {
        let moves: [((u16, u16), u16); 3] = [((4, 6), 80), ((11, 27), 5), ((12, 28), e4)];
        let record = |((from, to), weight)| Entry {
            key: start,
            mv: BookMove(from << 6 | to),
            weight,
            learn: 0,
        };
        let bytes = moves.into_iter().flat_map(|mv| record(mv).to_bytes());
        fs::write(dir.path().join(name), bytes.collect::<Vec<u8>>()).unwrap();
    };
    write("a.bin", 15);
    write("b.bin", 45);
    let text = String::from_utf8(run(dir.path(), "diff a.bin b.bin").stdout).unwrap();
    assert!(
        text.ends_with("  * e4       15 -> 45 (75.0% -> 90.0%)\n"),
        "{text}"
    );
    fs::write(dir.path().join("b.bin"), "").unwrap();
    let text = String::from_utf8(run(dir.path(), "diff a.bin b.bin").stdout).unwrap();
    assert!(text.contains("  - e1g1     80 (illegal)\n"), "{text}");
    assert!(text.contains("  - e4       15 (75.0%)\n"), "{text}");
    let output = run(dir.path(), "diff a.bin b.bin --json").stdout;
    let document: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let illegal = &document["differences"][0]["moves"][0];
    assert_eq!(illegal["uci"], "e1g1");
    assert!(illegal["first"]["percent"].is_null(), "{illegal}");
}

#[test]
fn diff_prints_the_key_of_a_position_that_no_line_reaches() {
    let dir = temp();
    let record = |weight| [&[1, 2, 3, 4, 5, 6, 7, 8, 3, 28, 0, weight, 0, 0, 0, 0][..]].concat();
    fs::write(dir.path().join("a.bin"), record(1)).unwrap();
    fs::write(dir.path().join("b.bin"), record(2)).unwrap();
    let output = run(dir.path(), "diff a.bin b.bin");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        "key 0102030405060708\n  * e2e4     1 -> 2 (100.0% -> 100.0%)\n"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Checks that moves which are set are shown, and that nothing else changes.
    #[test]
    fn edit_sets_exactly_the_given_weights(sets in proptest::collection::btree_map(0..20usize, 1..=u16::MAX, 1..5)) {
        const MOVES: [&str; 20] = [
            "a3", "a4", "b3", "b4", "c3", "c4", "d3", "d4", "e3", "e4", "f3", "f4", "g3", "g4", "h3", "h4", "Na3", "Nc3",
            "Nf3", "Nh3",
        ];
        let dir = made();
        let dir = dir.path();
        let mut line = vec!["edit".to_owned(), "book.bin".to_owned(), "--out=new.bin".to_owned(), "-q".to_owned()];
        line.extend(sets.iter().map(|(mv, weight)| format!("--set={}={weight}", MOVES[*mv])));
        ok(dir, &line);
        let mut expected = weights(dir, "book.bin", "");
        expected.retain(|(san, _)| !sets.keys().any(|mv| MOVES[*mv] == san));
        expected.extend(sets.iter().map(|(mv, weight)| (MOVES[*mv].to_owned(), u64::from(*weight))));
        let mut found = weights(dir, "new.bin", "");
        prop_assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
        let others = |book: &str| -> Vec<[u8; 16]> {
            let start = b"\x46\x3b\x96\x18\x16\x91\xfc\x9c";
            records(&dir.join(book)).into_iter().filter(|record| record[..8] != *start).collect()
        };
        prop_assert_eq!(others("book.bin"), others("new.bin"));
        ok(dir, "verify new.bin");
    }
}

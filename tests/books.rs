//! The commands for books on the command line, compared with Debian's polyglot if it is installed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{corpus, fails, ok, ok_json, polybook_in, program, records, run, sample, temp};

/// Returns books of the sample games made with several options, with and without headers, and the books in
/// `POLYBOOK_CORPUS`.
fn books(dir: &Path) -> Vec<PathBuf> {
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    let mut books = Vec::new();
    for (i, options) in [
        "--min-game 1",
        "--min-game 1 --max-ply 16 --no-header",
        "--min-game 2 --uniform",
        "--min-game 1 --max-ply 12 --only-white",
        "--min-game 1 --max-ply 12 --only-black --no-header",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("book{i}.bin");
        ok(
            dir,
            &format!(
                "make-book -q {options} --bin {name} {} {}",
                famous.display(),
                selfplay.display()
            ),
        );
        books.push(dir.join(name));
    }
    if let Some(corpus) = corpus() {
        books.push(corpus.join("performance.bin"));
        let masters = corpus.join("masters.pgn");
        ok(
            dir,
            &format!(
                "make-book -q --max-ply 40 --bin masters.bin {}",
                masters.display()
            ),
        );
        books.push(dir.join("masters.bin"));
    }
    books
}

/// Returns what polyglot prints to standard output, without its name.
fn polyglot(program: &Path, dir: &Path, line: &str) -> String {
    let output = Command::new(program)
        .current_dir(dir)
        .args(line.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter(|line| !line.starts_with("PolyGlot"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Returns the number of lines, and the moves of these lines: the preceding moves, the move, and its percentage.
fn moves_of_lines(path: &Path) -> (usize, BTreeSet<(u64, String)>) {
    use polybook::position::{Keyed, read_move};
    let text = fs::read_to_string(path).unwrap();
    let mut moves = BTreeSet::new();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    for line in &lines {
        let (_, line) = line.split_once(": ").unwrap();
        let mut pos = Keyed::new(shakmaty::Chess::default());
        for word in line.split_whitespace() {
            if word.ends_with('.') {
                continue;
            }
            if word.starts_with("{cycle") || word.starts_with("{trans") {
                break;
            }
            let san = word.split('{').next().unwrap();
            let mv = read_move(pos.position(), san.as_bytes()).unwrap();
            if word.contains('%') {
                moves.insert((pos.key(), word.to_owned()));
            }
            pos.play(mv);
        }
    }
    (lines.len(), moves)
}

#[test]
fn info_book_and_dump_book_print_what_polyglot_prints() {
    let Some(program) = program(&["polyglot"]) else {
        return;
    };
    let dir = temp();
    for book in books(dir.path()) {
        let book = book.display();
        let theirs = polyglot(&program, dir.path(), &format!("info-book -bin {book}"));
        assert_eq!(
            ok(dir.path(), &format!("info-book -bin {book}")),
            theirs,
            "{book}"
        );
        for color in ["white", "black"] {
            polyglot(
                &program,
                dir.path(),
                &format!("dump-book -bin {book} -color {color} -out theirs.txt"),
            );
            ok(
                dir.path(),
                &format!("dump-book -q -bin {book} -color {color} -out ours.txt --force"),
            );
            let theirs = moves_of_lines(&dir.path().join("theirs.txt"));
            assert_eq!(
                moves_of_lines(&dir.path().join("ours.txt")),
                theirs,
                "{book}"
            );
        }
    }
}

#[test]
fn exact_info_book_misses_no_position_that_polyglot_finds() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let Some(program) = program(&["polyglot"]) else {
        return;
    };
    let dir = temp();
    for book in books(dir.path()) {
        let line = format!("info-book -bin {} -exact", book.display());
        let theirs = polyglot(&program, dir.path(), &line);
        let ours = ok(dir.path(), &line);
        let theirs = theirs.lines().map(str::to_owned).collect::<Vec<_>>();
        let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap();
        for (ours, theirs) in ours.lines().zip(&theirs) {
            let is_right = match ours.split(' ').next().unwrap() {
                "Unreachable" => number(ours) >= number(theirs),
                "Isolated" => number(ours) <= number(theirs),
                _ => ours == theirs,
            };
            assert!(is_right, "{}: {ours} {theirs}", book.display());
        }
    }
}

#[test]
fn merged_books_are_those_of_polyglot() {
    let Some(program) = program(&["polyglot"]) else {
        return;
    };
    let dir = temp();
    let books = books(dir.path());
    // polyglot does not know headers.
    let bare: Vec<PathBuf> = (0..books.len())
        .map(|i| {
            let path = dir.path().join(format!("bare{i}.bin"));
            fs::write(&path, records(&books[i]).concat()).unwrap();
            path
        })
        .collect();
    for (i, j) in [(0, 1), (1, 2), (3, 4), (2, 0), (bare.len() - 1, 0)] {
        let (a, b) = (bare[i].display(), bare[j].display());
        polyglot(
            &program,
            dir.path(),
            &format!("merge-book -in1 {a} -in2 {b} -out theirs.bin"),
        );
        ok(
            dir.path(),
            &format!("merge-book -q -in1 {a} -in2 {b} -out ours.bin"),
        );
        let mut theirs = records(&dir.path().join("theirs.bin"));
        let mut ours = records(&dir.path().join("ours.bin"));
        theirs.sort_unstable();
        ours.sort_unstable();
        assert!(ours == theirs, "{a} {b}");
    }
}

#[test]
fn policy_first_takes_all_moves_of_a_position_from_the_first_book() {
    let dir = temp();
    books(dir.path());
    ok(
        dir.path(),
        "merge-book -q --policy first book3.bin book1.bin --out both.bin",
    );
    let by_key = |name: &str| {
        let mut found = std::collections::BTreeMap::<_, Vec<_>>::new();
        for record in records(&dir.path().join(name)) {
            found.entry(record[..8].to_vec()).or_default().push(record);
        }
        found
    };
    let mut expected = by_key("book1.bin");
    expected.extend(by_key("book3.bin"));
    assert_eq!(by_key("both.bin"), expected);
    ok(dir.path(), "merge-book -q book3.bin");
    assert_eq!(
        records(&dir.path().join("out.bin")),
        records(&dir.path().join("book3.bin"))
    );
    fails(dir.path(), "merge-book", 2);
    fails(dir.path(), "merge-book -q missing.bin", 1);
}

/// A book can contain a record with the empty move `a1a1`. `show` and `tree` still show the other moves of the
/// position, and `filter` drops the record.
#[test]
fn an_empty_move_does_not_hide_the_other_moves() {
    let dir = temp();
    let dir = dir.path();
    let start = polybook::position::key(&shakmaty::Chess::default());
    let record = |key: u64, mv: u16| {
        [
            &key.to_be_bytes()[..],
            &mv.to_be_bytes(),
            &[0, 9, 0, 0, 0, 0],
        ]
        .concat()
    };
    let written = [
        record(start, 0o1434),
        record(start, 0),
        record(u64::MAX, 0o1434),
    ];
    fs::write(dir.join("odd.bin"), written.concat()).unwrap();
    let shown = ok_json(dir, "show odd.bin --json");
    let moves = shown["moves"].as_array().unwrap();
    assert_eq!(
        (&moves[0]["san"], &moves[0]["probability"]),
        (&"e4".into(), &100.0.into())
    );
    assert_eq!(
        (&moves[1]["uci"], &moves[1]["san"]),
        (&"a1a1".into(), &serde_json::Value::Null)
    );
    assert_eq!(ok(dir, "tree odd.bin"), "1. e4  weight 9, 100.0%\n");
    ok(dir, "filter -q odd.bin --out even.bin --best 9");
    assert_eq!(records(&dir.join("even.bin")).len(), 2);
    // The keys are not in order.
    let written = [record(u64::MAX, 0o1434), record(start, 0o1434)];
    fs::write(dir.join("odd.bin"), written.concat()).unwrap();
    let error = fails(dir, "show odd.bin", 1);
    assert!(error.contains("the keys are not in order"), "{error}");
}

#[test]
fn merged_headers_unite_the_variants() {
    let dir = temp();
    books(dir.path());
    ok(dir.path(), "pgheader book0.bin -v atomic,normal");
    ok(
        dir.path(),
        "merge-book -q book1.bin book0.bin --out both.bin",
    );
    let shown = ok(dir.path(), "pgheader -s both.bin");
    assert!(
        shown.starts_with("Variants supported:\nnormal\natomic\nComment:\nMerged by polybook"),
        "{shown}"
    );
}

#[test]
fn merged_headers_contain_the_history_of_each_book() {
    let dir = temp();
    let dir = dir.path();
    let games = sample("famous.pgn");
    for color in ["white", "black"] {
        ok(
            dir,
            &format!(
                "make-book -q {} --only-{color} --min-game 1 --bin {color}.bin",
                games.display()
            ),
        );
    }
    ok(dir, "merge-book -q white.bin black.bin --out both.bin");
    let shown = ok(dir, "pgheader -s both.bin");
    for color in ["white", "black"] {
        let history = format!(
            "\n{color}.bin:\nMade by polybook {}\nInput: famous.pgn\nGames: 45 read, 45 counted, 0 filtered, 0 \
             rejected\nOptions: --min-game 1 --only-{color}\n",
            env!("CARGO_PKG_VERSION")
        );
        assert!(shown.contains(&history), "{shown}");
    }
    ok(dir, "verify both.bin");
    // Even after many merges, the header is short enough for every program.
    for _ in 0..12 {
        ok(
            dir,
            "merge-book -q both.bin white.bin black.bin --out next.bin",
        );
        fs::rename(dir.join("next.bin"), dir.join("both.bin")).unwrap();
    }
    let header = polybook::book::header::read(dir.join("both.bin")).unwrap();
    assert!(header.len() < 2048, "{}", header.len());
    assert!(header.contains("\nblack.bin:\nMade by"), "{header}");
    ok(dir, "verify both.bin");
    // The header keeps room for the line of an edit.
    ok(dir, "edit -q both.bin --in-place --set e4=1");
    let header = polybook::book::header::read(dir.join("both.bin")).unwrap();
    assert!(header.len() < 2048, "{}", header.len());
    assert!(header.contains("\nEdited by polybook"), "{header}");
    ok(dir, "verify both.bin");
}

#[test]
fn merged_headers_say_how_many_comments_they_leave_out() {
    let dir = temp();
    let dir = dir.path();
    let names: Vec<String> = (0..100).map(|number| format!("{number:03}.bin")).collect();
    let line = format!("make-book -q {} --bin", sample("famous.pgn").display());
    ok(dir, &format!("{line} 000.bin"));
    for name in &names[1..] {
        fs::copy(dir.join("000.bin"), dir.join(name)).unwrap();
    }
    let variants = polybook::book::header::KNOWN_VARIANTS.join(",");
    ok(dir, &format!("pgheader 001.bin -v {variants}"));
    ok(
        dir,
        &format!("merge-book -q {} --out all.bin", names.join(" ")),
    );
    let header = polybook::book::header::read(dir.join("all.bin")).unwrap();
    assert!(header.len() < 2048, "{}", header.len());
    let kept = header.matches(".bin:\nMade by polybook").count();
    let said = format!(
        "\nComments left out: those of {} books\nChecksum: ",
        names.len() - kept
    );
    assert!(header.contains(&said), "{header}");
    ok(dir, "edit -q all.bin --in-place --set e4=1");
    let header = polybook::book::header::read(dir.join("all.bin")).unwrap();
    assert!(header.contains("\nEdited by polybook"), "{header}");
}

#[test]
fn headers_are_printed_as_the_document_has_them() {
    let dir = temp();
    ok(
        dir.path(),
        &format!(
            "make-book -q --no-header {}",
            sample("famous.pgn").display()
        ),
    );
    let bare = fs::read(dir.path().join("book.bin")).unwrap();
    let run = |arguments: &[&str]| {
        let output = polybook_in(dir.path())
            .arg("pgheader")
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        run(&["book.bin", "-c", "performance.bin by Marc Lacrosse."]),
        ""
    );
    assert_eq!(
        run(&["-s", "book.bin"]),
        "Variants supported:\nnormal\nComment:\nperformance.bin by Marc Lacrosse.\n"
    );
    let data = "    @    P    G    @   \\n    1    .    0
   \\n    2   \\n    1   \\n    n    o    r
    m    a    l   \\n    p    e    r    f
    o    r    m    a    n    c    e    .
    b    i    n         b    y         M
    a    r    c         L    a    c    r
    o    s    s    e    .   \\0   \\0   \\0
";
    assert_eq!(run(&["-S", "book.bin"]), data);
    run(&["book.bin", "-c", "two\\nlines \u{e4}"]);
    assert!(run(&["-s", "book.bin"]).ends_with("Comment:\ntwo\nlines \u{e4}\n"));
    assert!(run(&["-S", "book.bin"]).contains(" \\303 \\244"));
    run(&["-v", "Normal, Suicide", "book.bin"]);
    assert!(
        run(&["-s", "book.bin"])
            .starts_with("Variants supported:\nnormal\nsuicide\nComment:\ntwo\n")
    );
    let error = fails(dir.path(), "pgheader book.bin -v checkers", 1);
    assert!(
        error.contains("the variant \"checkers\" is unknown"),
        "{error}"
    );
    run(&["book.bin", "-f", "-v", "checkers"]);
    // If the book has a header already, `--force` is no longer necessary.
    run(&["book.bin", "-c", "x"]);
    assert_eq!(
        run(&["-s", "book.bin"]),
        "Variants supported:\ncheckers\nComment:\nx\n"
    );
    run(&["-d", "book.bin"]);
    assert_eq!(fs::read(dir.path().join("book.bin")).unwrap(), bare);
    let error = fails(dir.path(), "pgheader -s book.bin", 1);
    assert!(error.contains("the book has no header"), "{error}");
    fails(dir.path(), "pgheader", 2);
    assert!(run(&["-l"]).starts_with("Known variants:\nnormal\nwildcastle\n"));
    assert!(run(&["-h"]).contains("force inclusion of unknown variants"));
    assert!(run(&["--help"]).contains("Examples:"));
}

/// Each of several files has its own report, and a fault in one file does not hide the others.
#[test]
fn several_files_are_verified() {
    let dir = temp();
    let dir = dir.path();
    books(dir);
    fs::write(dir.join("bad.bin"), [7; 17]).unwrap();
    let output = run(dir, "verify book0.bin bad.bin book1.bin");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("book0.bin: no faults"), "{said:?}");
    assert!(said[1].starts_with("polybook: bad.bin"), "{said:?}");
    assert!(said[2].starts_with("book1.bin: no faults"), "{said:?}");
    let documents = ok(dir, "verify book0.bin book1.bin --json -q");
    for (line, path) in documents.lines().zip(["book0.bin", "book1.bin"]) {
        let document: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(document["path"], path);
    }
    assert_eq!(documents.lines().count(), 2);
    let error = fails(dir, "verify book0.bin book1.bin --fix x.bin", 2);
    assert!(error.contains("give only one book"), "{error}");
    let error = fails(dir, "verify - -", 2);
    assert!(error.contains("- is given twice"), "{error}");
}

#[test]
fn books_are_verified_and_mended() {
    let dir = temp();
    books(dir.path());
    for i in 0..5 {
        ok(dir.path(), &format!("verify book{i}.bin"));
    }
    let mut bytes = records(&dir.path().join("book0.bin"));
    let good = bytes.clone();
    bytes.reverse();
    bytes.push(good[0]);
    fs::write(
        dir.path().join("bad.bin"),
        [bytes.concat(), vec![1, 2]].concat(),
    )
    .unwrap();
    let error = fails(dir.path(), "verify bad.bin", 1);
    for part in ["multiple of 16", "smaller keys", "repeats a move"] {
        assert!(error.contains(part), "{error}");
    }
    // These books have no checksum, so other damage may remain.
    let mended = run(dir.path(), "verify bad.bin --fix good.bin");
    assert!(mended.status.success());
    let said = String::from_utf8_lossy(&mended.stderr);
    assert!(said.contains("still contains any changed"), "{said}");
    assert_eq!(records(&dir.path().join("good.bin")), good);
    let said = run(dir.path(), "verify good.bin --fix other.bin").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("which has no faults"), "{said}");
    fails(dir.path(), "verify missing.bin", 1);
}

#[test]
fn damage_in_a_book_is_noticed_and_polybook_renews_the_checksum() {
    let dir = temp();
    let games = sample("famous.pgn");
    ok(
        dir.path(),
        args![
            "make-book",
            "-q",
            games,
            "--min-game",
            "1",
            "--bin",
            "book.bin"
        ],
    );
    let verified = ok_json(dir.path(), "verify book.bin --json");
    assert_eq!(verified["checksum"], "matches");
    let book = dir.path().join("book.bin");
    let good = fs::read(&book).unwrap();
    let headers = good.len() - records(&book).len() * 16;
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..40 {
        let mut bytes = good.clone();
        let at = rng.usize(headers..bytes.len());
        bytes[at] ^= rng.u8(1..);
        fs::write(dir.path().join("bad.bin"), &bytes).unwrap();
        fails(dir.path(), "verify bad.bin", 1);
    }
    // A new checksum does not repair damage.
    let mut bytes = good.clone();
    bytes[headers + 11] ^= 1;
    fs::write(dir.path().join("bad.bin"), &bytes).unwrap();
    for line in [
        "edit bad.bin --set e4=7 --out new.bin",
        "edit bad.bin --set e4=7 --in-place",
        "merge-book book.bin bad.bin --out new.bin",
        "filter bad.bin --best 1 --out new.bin",
        "convert bad.bin new.bin --format csv",
        "convert bad.bin new.bin --format jsonl",
        "convert bad.bin new.bin --format pgn --plies 2",
    ] {
        let error = fails(dir.path(), line, 1);
        assert!(error.contains("bad.bin: the checksum"), "{line}: {error}");
        assert!(!dir.path().join("new.bin").exists(), "{line}");
    }
    assert_eq!(fs::read(dir.path().join("bad.bin")).unwrap(), bytes);
    // Messages do not promise a repair that is impossible.
    let error = fails(dir.path(), "verify bad.bin", 1);
    assert!(error.contains("keeps changed moves and weights"), "{error}");
    let said = run(dir.path(), "verify bad.bin --fix new.bin").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("still contains any changed"), "{said}");
    // Each command that changes a book, writing to a file and to a pipe.
    for line in [
        "edit book.bin --set e4=7 --out new.bin --force",
        "merge-book book.bin book.bin --out new.bin",
        "filter book.bin --best 1 --out new.bin",
        "filter book.bin --reachable --out new.bin",
    ] {
        ok(dir.path(), line);
        let verified = ok_json(dir.path(), "verify new.bin --json");
        assert_eq!(verified["checksum"], "matches", "{line}");
        let piped = run(dir.path(), &line.replace("new.bin", "-")).stdout;
        assert_eq!(
            piped,
            fs::read(dir.path().join("new.bin")).unwrap(),
            "{line}"
        );
    }
    let piped = run(
        dir.path(),
        args!["make-book", "-q", games, "--min-game", "1", "--bin", "-"],
    );
    assert_eq!(piped.stdout, good);
    ok(dir.path(), "pgheader -v atomic book.bin");
    assert_eq!(
        ok_json(dir.path(), "verify book.bin --json")["checksum"],
        "matches"
    );
    // Another program changes a weight or the comment.
    fs::write(&book, &good).unwrap();
    ok(dir.path(), args!["pgheader", "-c", "mine", "book.bin"]);
    let verified = ok_json(dir.path(), "verify book.bin --json");
    assert_eq!(verified["checksum"], serde_json::Value::Null);
}

#[test]
fn info_book_prints_json_and_dump_book_writes_to_standard_output() {
    let dir = temp();
    books(dir.path());
    let numbers = ok_json(dir.path(), "info-book --bin book1.bin --exact --json");
    let lines = ok(
        dir.path(),
        "dump-book --bin book1.bin --color white --out -",
    );
    assert_eq!(numbers["white_lines"], lines.lines().count() - 1);
    assert!(lines.starts_with("Dump of \"book1.bin\" for white.\n1: 1. "));
    ok(dir.path(), "dump-book -q --bin book1.bin --colour black");
    assert!(dir.path().join("book_black.txt").exists());
    fails(dir.path(), "dump-book --bin book1.bin", 2);
    // The book may be named as in other commands.
    assert_eq!(
        ok_json(dir.path(), "info-book book1.bin --exact --json"),
        numbers
    );
    assert_eq!(
        ok(dir.path(), "dump-book book1.bin --color white --out -"),
        lines
    );
    fails(dir.path(), "info-book book1.bin --bin book1.bin", 2);
}

#[test]
fn the_program_file_recognizes_books_with_headers() {
    let Some(_) = program(&["file"]) else {
        return;
    };
    let dir = temp();
    books(dir.path());
    let magic = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/polyglot.magic");
    let output = Command::new("file")
        .current_dir(dir.path())
        .arg("-m")
        .args([&magic])
        .arg("book0.bin")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        "book0.bin: Polyglot chess opening book (version 1.0)\n"
    );
}

/// Returns the words to which bash completes the last word of a line.
fn completed(dir: &Path, line: &[&str]) -> Vec<String> {
    let script = ok(dir, "completions bash");
    let words = line.iter().map(|word| format!("'{word}'"));
    let words = words.collect::<Vec<_>>().join(" ");
    let (last, before) = (line[line.len() - 1], line[line.len() - 2]);
    let number = line.len() - 1;
    // The script is longer than an argument of a program may be.
    fs::write(dir.join("completions"), script).unwrap();
    let ask = format!(
        ". ./completions; COMP_WORDS=({words}); COMP_CWORD={number}; _polybook polybook '{last}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash")
        .args(["-c", &ask])
        .current_dir(dir)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.lines().filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[test]
fn bash_completes_files_and_variants() {
    if program(&["bash"]).is_none() {
        return;
    }
    let dir = temp();
    let dir = dir.path();
    // If the script returns nothing, bash lists files.
    for command in ["make-book", "show", "convert", "verify"] {
        assert_eq!(
            completed(dir, &["polybook", command, ""]),
            [""; 0],
            "{command}"
        );
    }
    fs::write(dir.join("games.pgn"), "").unwrap();
    assert!(completed(dir, &["polybook", "make-book", "--exp"]).contains(&"--explorer".to_owned()));
    assert!(completed(dir, &["polybook", "make-b"]).contains(&"make-book".to_owned()));
    for command in ["make-book", "show", "convert"] {
        let found = completed(dir, &["polybook", command, "a", "--variant", "cr"]);
        assert_eq!(found, ["crazyhouse"], "{command}");
    }
    let auto = completed(dir, &["polybook", "make-book", "a", "-variant", "a"]);
    assert_eq!(auto, ["atomic", "auto"]);
}

#[test]
fn completions_and_pages_are_made() {
    let dir = temp();
    for shell in ["bash", "zsh", "fish"] {
        let script = ok(dir.path(), &format!("completions {shell}"));
        for word in ["make-book", "pgheader", "info-book", "max-ply"] {
            assert!(script.contains(word), "{word} in {shell}");
        }
        let old = if shell == "fish" {
            "-o max-ply"
        } else {
            " -max-ply"
        };
        assert!(
            script.contains(old) || script.contains("'-max-ply"),
            "{old} in {shell}"
        );
        assert!(!script.contains("old-spelling"), "{shell}");
    }
    assert!(ok(dir.path(), "man").contains("polybook"));
    ok(dir.path(), "man --dir pages");
    assert!(dir.path().join("pages/polybook-make-book.1").exists());
}

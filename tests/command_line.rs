//! Properties of all commands: errors, exit statuses, repeated options, standard input and output, JSON.

use std::{fs, path::Path};

use crate::common::{
    Arguments, fails, fed, ok, ok_json, run, sample, temp,
    transcript::{self, Said},
};
use serde_json::{Value, json};

/// Creates a directory with a book, an index and a database.
fn made() -> tempfile::TempDir {
    let dir = temp();
    fs::copy(sample("famous.pgn"), dir.path().join("famous.pgn")).unwrap();
    ok(
        dir.path(),
        "make-book -q --min-game 1 famous.pgn --bin book.bin --explorer games.idx --leveldb fork.idx --index-stats --obs games.obs.db3",
    );
    dir
}

#[track_caller]
fn fed_ok(dir: &Path, args: impl Arguments, input: &str) -> Vec<u8> {
    let output = fed(dir, args, &fs::read(dir.join(input)).unwrap());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    output.stdout
}

#[test]
fn no_arguments_print_three_ways_on() {
    let dir = temp();
    let ways = ok(dir.path(), "");
    let commands: Vec<_> = ways
        .lines()
        .map(|line| line.split_once("  ").unwrap().0)
        .collect();
    // The examples begin with the name under which the program was called.
    let wanted = ["make-book games.pgn", "serve games.pgn --open", "--help"]
        .map(|way| format!("{} {way}", env!("CARGO_BIN_EXE_polybook")));
    assert_eq!(commands, wanted);
    assert!(ok(dir.path(), "--help").contains("Usage: polybook"));
    assert!(ok(dir.path(), "--version").starts_with("polybook "));
}

#[cfg(feature = "serve")]
#[test]
fn serve_alone_says_where_games_come_from() {
    let dir = temp();
    let output = run(dir.path(), "serve");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("polybook download lichess:NAME --out games.pgn"),
        "{said}"
    );
    assert!(
        said.ends_with("no games are given; see polybook serve --help\n"),
        "{said}"
    );
}

#[cfg(feature = "serve")]
#[test]
fn a_second_server_at_an_address_says_where_the_first_one_is() {
    let dir = made();
    let first = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = first.local_addr().unwrap();
    let line = format!("serve famous.pgn --no-cache --listen {address}");
    let said = fails(dir.path(), &*line, 1);
    assert!(said.contains(&format!("http://{address}/")), "{said}");
    assert!(said.contains("--listen 127.0.0.1:0"), "{said}");
}

#[test]
fn wrong_command_lines_are_one_line_with_a_tip() {
    let dir = temp();
    transcript::check("transcripts/command-lines.console", |line| {
        Said::by_command(dir.path(), line)
    });
}

#[test]
fn numbers_that_are_too_large_are_refused_with_their_range() {
    let dir = temp();
    for (command, option, first) in [
        ("prepare", "lines", 0),
        ("prepare", "min-game", 0),
        ("repertoire gaps", "limit", 0),
        ("repertoire gaps", "min-game", 0),
        ("repertoire check", "limit", 0),
        ("repertoire build", "min-game", 0),
        ("diff", "limit", 0),
        ("games", "limit", 0),
        ("games", "skip", 0),
        ("openings", "limit", 0),
        ("openings", "min-games", 0),
        ("tree", "min-game", 0),
        ("make-book", "max-ply", 0),
        ("make-book", "min-game", 0),
        ("make-book", "limit", 1),
        ("suite-report", "min-pairs", 1),
        ("engine", "min-games", 0),
    ] {
        let last: u64 = 1_000_000_000_000;
        for number in [u64::MAX, u64::MAX - 1, last + 1] {
            let error = fails(
                dir.path(),
                format!("{command} --{option} {number}").as_str(),
                2,
            );
            let advice = format!("use a number from {first} to {last}");
            assert!(
                error.contains(&format!("invalid value '{number}' for '--{option} <N>'")),
                "{error}"
            );
            assert!(error.contains(&advice), "{command}: {error}");
        }
    }
}

#[test]
fn a_file_where_none_belongs_says_what_takes_it() {
    let dir = made();
    fs::copy(sample("famous.pgn"), dir.path().join("my games.pgn")).unwrap();
    let error = fails(dir.path(), args!["my games.pgn"], 2);
    assert!(error.contains("make-book \"my games.pgn\""), "{error}");
}

/// On Windows, the path of the folder has two forms.
#[cfg(unix)]
#[test]
fn a_pattern_that_no_file_has_names_the_folder() {
    let dir = temp();
    let folder = dir.path().canonicalize().unwrap();
    for command in ["make-book", "serve --no-cache"] {
        for (pattern, folder) in [("*.pgn", folder.clone()), ("old/*.pgn", folder.join("old"))] {
            let error = fails(dir.path(), &format!("{command} {pattern}"), 1);
            let said = format!(": no file in {} matches this pattern\n", folder.display());
            assert!(error.ends_with(&said), "{error}");
        }
    }
}

#[test]
fn a_message_counts_the_manual_pages_that_were_written() {
    let dir = temp();
    let output = run(dir.path(), "man --dir pages");
    let pages = fs::read_dir(dir.path().join("pages")).unwrap().count();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, format!("{pages} pages written to pages\n"));
}

#[test]
fn the_last_of_a_repeated_option_wins() {
    let dir = made();
    ok(
        dir.path(),
        "make-book -q -q --max-ply 3 --max-ply 8 --uniform --uniform --temp-dir x --temp-dir . --bin b.bin --min-game 9 -min-game 1 famous.pgn -q",
    );
    ok(
        dir.path(),
        "make-book -q --max-ply 8 --uniform --bin c.bin --min-game 1 famous.pgn",
    );
    let book = |name: &str| crate::common::records(&dir.path().join(name));
    assert_eq!(book("b.bin"), book("c.bin"));

    let line =
        "show book.bin --json --json --moves e4 --moves d4 --variant crazyhouse --variant standard";
    let found = ok_json(dir.path(), line);
    let key = ok(dir.path(), "key --moves d4");
    assert_eq!(found["key"], key.trim_end());

    // Options that may be repeated are combined.
    let games = |line: &str| {
        ok_json(dir.path(), line)["games"]["counted"]
            .as_u64()
            .unwrap()
    };
    let make = "make-book -q --json --bin d.bin famous.pgn --min-game 1";
    let both = games(&format!("{make} --result 1-0 --result 0-1"));
    assert_eq!(
        both,
        games(&format!("{make} --result 1-0")) + games(&format!("{make} --result 0-1"))
    );
}

#[test]
fn books_from_standard_input() {
    let dir = made();
    for line in [
        "show BOOK",
        "show BOOK --json --moves e4",
        "verify BOOK --json",
        "info-book --bin BOOK",
        "dump-book --bin BOOK --color white --out -",
        "convert BOOK - --format csv",
    ] {
        let expected = run(dir.path(), &line.replace("BOOK", "book.bin"));
        let found = fed_ok(dir.path(), &line.replace("BOOK", "-"), "book.bin");
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .unwrap()
                .replace("standard input", "book.bin")
        };
        assert_eq!(text(found), text(expected.stdout), "{line}");
    }
    ok(dir.path(), "merge-book -q book.bin book.bin --out two.bin");
    let merged = fed_ok(dir.path(), "merge-book -q - book.bin --out -", "book.bin");
    fs::write(dir.path().join("merged.bin"), merged).unwrap();
    let records = |name: &str| crate::common::records(&dir.path().join(name));
    assert_eq!(records("merged.bin"), records("two.bin"));
    let header = polybook::book::header::read(dir.path().join("merged.bin")).unwrap();
    assert!(header.contains("standard input"), "{header}");

    let shown = fed_ok(dir.path(), "show - --json", "games.obs.db3");
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown, ok_json(dir.path(), "show games.obs.db3 --json"));

    let book = fs::read(dir.path().join("book.bin")).unwrap();
    let twice = fed(dir.path(), "merge-book - - --out x.bin", &book);
    assert_eq!(twice.status.code(), Some(2));
}

#[test]
fn errors_name_standard_input_and_not_its_copy() {
    let dir = made();
    let games = fs::read(dir.path().join("famous.pgn")).unwrap();
    for line in ["show -", "verify -", "info-book --bin -", "convert - a.csv"] {
        let output = fed(dir.path(), line, &games);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{line}: {error}");
        assert!(error.contains("standard input"), "{line}: {error}");
        assert!(!error.contains("polybook-"), "{line}: {error}");
        assert_eq!(error.lines().count(), 1, "{line}: {error}");
    }
}

#[test]
fn outputs_to_standard_output() {
    let dir = made();
    let bytes = |line: &str| {
        let output = run(dir.path(), line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        output.stdout
    };
    let file = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(
        bytes("make-book --min-game 1 famous.pgn --bin -"),
        file("book.bin")
    );
    ok(
        dir.path(),
        "convert -q games.obs.db3 lines.pgn --min-game 1",
    );
    ok(dir.path(), "convert -q games.obs.db3 two.bin --min-game 1");
    assert_eq!(
        bytes("convert games.obs.db3 - --format pgn --min-game 1"),
        file("lines.pgn")
    );
    assert_eq!(
        bytes("convert games.obs.db3 - --format bin --min-game 1"),
        file("two.bin")
    );
    let error = fails(dir.path(), "convert games.obs.db3 -", 2);
    assert!(error.contains("--format"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output() {
    let dir = made();
    for line in [
        "key",
        "show book.bin",
        "show book.bin --json",
        "games games.idx",
        "games games.idx --pgn",
        "games games.idx --pgn --id 0",
        "show games.idx",
        "info-book --bin book.bin",
        "dump-book --bin book.bin --color white --out -",
        "merge-book -q book.bin --out -",
        "filter -q book.bin --reachable --out -",
        "edit -q book.bin --set a3=1 --out -",
        "tree book.bin",
        "tree book.bin --format pgn",
        "convert -q games.obs.db3 - --format csv",
        "make-book -q famous.pgn --bin -",
        "pgheader -s book.bin",
        "man",
        "completions bash",
        "--help",
        "--version",
    ] {
        let output = crate::common::polybook_in(dir.path())
            .args(line.list())
            .stdout(fs::File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert_eq!(
            error, "polybook: cannot write standard output: No space left on device\n",
            "{line}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn standard_error_that_takes_nothing_is_no_failure() {
    let dir = made();
    for line in [
        "make-book famous.pgn --bin other.bin",
        "verify book.bin",
        "merge-book book.bin --out other.bin",
        "convert games.obs.db3 other.csv",
    ] {
        let status = crate::common::polybook_in(dir.path())
            .args(line.list())
            .stderr(fs::File::options().write(true).open("/dev/full").unwrap())
            .status()
            .unwrap();
        assert!(status.success(), "{line}");
    }
}

#[test]
fn one_mistake_gives_one_message_and_databases_need_force() {
    let dir = made();
    let dir = dir.path();
    ok(dir, "make-book -q famous.pgn --leveldb plain.idx");
    // Every command replaces a database only with --force.
    ok(dir, "merge-book -q games.obs.db3 --out sum.obs.db3");
    let error = fails(dir, "merge-book games.obs.db3 --out sum.obs.db3", 1);
    assert!(error.contains("replace it with --force"), "{error}");
    ok(dir, "merge-book -q games.obs.db3 --out sum.obs.db3 --force");
    // One mistake gives one message.
    for line in ["show", "games"] {
        let line = format!("{line} plain.idx --since 2000");
        let error = fails(dir, &line, 2);
        assert!(
            error.contains("plain.idx: this index was made with --leveldb, but this command needs an explorer's index"),
            "{error}"
        );
    }
    for line in [
        "show",
        "tree",
        "verify",
        "convert -",
        "merge-book",
        "info-book --bin",
        "diff book.bin",
    ] {
        let line = match line.strip_suffix(" -") {
            Some(command) => format!("{command} missing.bin a.csv"),
            None => format!("{line} missing.bin"),
        };
        let error = fails(dir, &line, 1);
        assert!(
            error.starts_with("polybook: cannot open missing.bin: "),
            "{line}: {error}"
        );
    }
}

#[test]
fn a_second_file_or_condition_of_an_option_is_an_error() {
    let dir = made();
    let dir = dir.path();
    for line in [
        "make-book famous.pgn --bin b.bin --bin c.bin",
        "make-book famous.pgn -bin b.bin -bin c.bin",
        "make-book famous.pgn --obs b.db3 --obs c.db3",
        "merge-book a.bin --out b.bin --out c.bin",
        "info-book --bin a.bin --bin book.bin",
        "show x.idx --event Paris --event London",
        "extract famous.pgn --position mate --position R7 --count",
        "make-book famous.pgn --since 2019 --since 2022",
        "games x.idx --color white --color black --player tal",
    ] {
        let error = fails(dir, line, 2);
        assert!(error.contains("cannot be used multiple times"), "{error}");
    }
}

#[test]
fn json_keys_have_the_documented_order() {
    let dir = made();
    let text = ok(dir.path(), "make-book -q --json --bin a.bin famous.pgn");
    let order = [
        "games",
        "read",
        "counted",
        "filtered",
        "rejected",
        "plies",
        "positions",
        "entries",
        "book",
        "path",
        "largest_weight",
        "scale",
        "seconds",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|name| text.find(&format!("\"{name}\":")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{text}");

    let key = ok_json(dir.path(), "key --json");
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    assert_eq!(
        key,
        json!({"key": "463b96181691fc9c", "signed_key": "5060803636482931868", "fen": start})
    );

    let verified = ok_json(dir.path(), "verify --json book.bin");
    assert_eq!(verified["faults"], json!([]));
    assert_eq!(verified["path"], "book.bin");

    let games = ok(dir.path(), "games games.idx --limit 1 --json");
    let order = [
        "key",
        "total",
        "games",
        "id",
        "white",
        "white_rating",
        "black",
        "black_rating",
        "result",
        "date",
        "event",
        "site",
        "eco",
        "file",
        "offset",
        "fen",
        "ply_count",
        "event_date",
        "event_type",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|name| games.find(&format!("\"{name}\":")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{games}");
    let rated = "[WhiteElo \"2400 (est.)\"]\n[BlackElo \"?\"]\n[PlyCount \"1\"]\n\n1. e4 *\n";
    std::fs::write(dir.path().join("rated.pgn"), rated).unwrap();
    ok(
        dir.path(),
        "make-book -q rated.pgn --explorer rated.idx --leveldb rated.db --bin rated.bin --min-game 1",
    );
    // Castling is written as in the answers of `moves`.
    let castled = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O *\n";
    std::fs::write(dir.path().join("castled.pgn"), castled).unwrap();
    ok(
        dir.path(),
        "make-book -q castled.pgn --explorer castled.idx",
    );
    for (command, list) in [("games", "games"), ("show", "moves")] {
        let line = "--moves=e4 e5 Nf3 Nc6 Bc4 Bc5";
        let answer = ok_json(dir.path(), &[command, "castled.idx", line, "--json"][..]);
        assert_eq!(answer[list][0]["uci"], "e1g1", "{answer}");
    }
    for index in ["rated.idx", "rated.db"] {
        let games = ok_json(dir.path(), &format!("games {index} --json"));
        let game = &games["games"][0];
        let file = std::path::Path::new(game["file"].as_str().unwrap());
        assert!(file.is_absolute() && file.ends_with("rated.pgn"), "{game}");
        assert_eq!(game["white_rating"], 2400);
        assert_eq!(game["black_rating"], json!(null));
        assert_eq!(game["ply_count"], 1);
        // Only an explorer's index stores the opening by the moves. `eco` is the tag.
        assert_eq!(game["eco"], json!(null));
        match index {
            "rated.idx" => assert_eq!(
                game["opening"],
                json!({ "eco": "B00", "name": "King's Pawn Game" })
            ),
            _ => assert_eq!(game.get("opening"), None),
        }
    }
}

#[test]
fn a_broken_book_in_json() {
    let dir = temp();
    fs::write(dir.path().join("odd.bin"), [1; 32]).unwrap();
    let output = run(dir.path(), "verify --json odd.bin");
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["faults"].as_array().unwrap().len(), 1, "{found}");
}

#[cfg(unix)]
#[test]
fn file_names_may_be_invalid_utf_8() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let dir = temp();
    let inner = dir.path().join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&inner).unwrap();
    let at = |name: &[u8]| inner.join(OsStr::from_bytes(name));
    fs::copy(sample("famous.pgn"), at(b"games\xff.pgn")).unwrap();
    let (pgn, bin) = (at(b"games\xff.pgn"), at(b"\xff.bin"));
    let (index, database) = (at(b"\xff.idx"), at(b"\xff.obs.db3"));
    let dir = dir.path();
    let report = ok_json(
        dir,
        args![
            "make-book",
            "-q",
            "--json",
            "--min-game",
            "1",
            pgn,
            "--bin",
            bin,
            "--leveldb",
            index,
            "--index-stats",
            "--obs",
            database
        ],
    );
    assert!(
        report["book"]["path"]
            .as_str()
            .unwrap()
            .contains('\u{fffd}')
    );
    ok(dir, args!["show", bin]);
    ok(dir, args!["show", database, "--json"]);
    ok(dir, args!["verify", "--json", bin]);
    ok(dir, args!["info-book", "--bin", bin]);
    ok(
        dir,
        args![
            "dump-book",
            "--bin",
            bin,
            "--color",
            "white",
            "--out",
            at(b"\xff.txt")
        ],
    );
    ok(
        dir,
        args!["merge-book", "-q", bin, "--out", at(b"\xff2.bin")],
    );
    // Books spill to a directory of any name, but SQLite sorts only in directories with a name in UTF-8.
    let spilled = at(b"\xff4.bin");
    let line = args![
        "make-book",
        "-q",
        pgn,
        "--bin",
        spilled,
        "--min-game",
        "1",
        "--memory",
        "64KiB",
        "--temp-dir",
        inner
    ];
    ok(dir, line);
    assert!(fs::read(&spilled).unwrap() == fs::read(&bin).unwrap());
    let merged = at(b"\xff.merged.db3");
    for (temp_dir, said) in [
        (
            inner.as_os_str(),
            "SQLite needs a directory for temporary files whose name is UTF-8: choose another directory",
        ),
        (
            "missing".as_ref(),
            "missing: this is not a directory, so temporary files cannot be written there: choose another directory",
        ),
    ] {
        let line = args![
            "merge-book",
            database,
            "--out",
            merged,
            "--temp-dir",
            temp_dir
        ];
        let error = fails(dir, line, 1);
        assert!(error.contains(said), "{error}");
        assert!(!merged.exists());
    }
    ok(dir, args!["convert", "-q", database, at(b"\xff3.bin")]);
    ok(dir, args!["convert", "-q", database, at(b"\xff.csv")]);
    ok(dir, args!["show", index]);
    ok(dir, args!["games", index, "--json"]);
    let text = ok(dir, args!["games", index, "--pgn", "--id", "0"]);
    assert!(fs::read_to_string(&pgn).unwrap().contains(text.trim_end()));
    let mut old_spelling = std::ffi::OsString::from("-bin=");
    old_spelling.push(&bin);
    ok(dir, args!["info-book", old_spelling]);
}

#[test]
fn commands_take_sources_without_an_option() {
    let dir = made();
    let dir = dir.path();
    ok(dir, "make-book -q famous.pgn --explorer two.idx");
    for line in [
        "verify games.idx",
        "verify fork.idx --json",
        "tree games.idx --max-ply 2",
        "tree fork.idx --max-ply 2",
        "repertoire build games.idx --color white --out mine.pgn",
        "repertoire gaps mine.pgn --color white --against games.idx --against two.idx",
        "repertoire new famous.pgn --reference games.idx",
        "games games.idx e4 e5",
        "show ./games.idx rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1",
        "show book.bin 1.e4",
        "openings games.idx --moves e4",
    ] {
        ok(dir, line);
    }
    for line in [
        "games --index games.idx",
        "openings --leveldb games.idx",
        "tree --index games.idx",
    ] {
        let error = fails(dir, line, 2);
        assert!(
            error.contains("name the source without an option"),
            "{error}"
        );
    }
    // Front-ends use these spellings.
    for (old, new) in [
        (
            "games --leveldb fork.idx e4 --json",
            "games fork.idx e4 --json",
        ),
        (
            "moves e4 --leveldb games.idx --json",
            "show games.idx e4 --json",
        ),
        (
            "game --leveldb fork.idx 3 1",
            "games fork.idx --id 3,1 --pgn",
        ),
    ] {
        assert_eq!(ok(dir, old), ok(dir, new), "{old}");
    }
    let listed = ok_json(dir, "games games.idx --id 1 --json");
    assert_eq!(listed["total"], 1);
    // Without a position, a game has no move in it.
    let mut game = ok_json(dir, "games games.idx --skip 1 --limit 1 --json")["games"][0].take();
    game.as_object_mut().unwrap().remove("uci").unwrap();
    assert_eq!(listed["games"][0], game);
}

/// The sources of a command are one source, and a book is shown alone.
#[test]
fn sources_are_added() {
    let dir = made();
    let dir = dir.path();
    ok(dir, "make-book -q famous.pgn --explorer two.idx");
    let games = |line: &str| ok_json(dir, &format!("{line} --json"))["games"].clone();
    let [one, two] = ["show games.idx", "show games.idx two.idx"].map(games);
    assert_eq!(two.as_u64(), one.as_u64().map(|games| 2 * games));
    for (line, status, said) in [
        (
            "show book.bin games.idx",
            2,
            "book.bin: a book cannot be combined",
        ),
        (
            "show games.idx book.bin",
            2,
            "book.bin: a book cannot be combined",
        ),
        ("show games.idx nothing.idx", 1, "nothing.idx"),
        (
            "show book.bin e4 --moves e4",
            2,
            "already gives the position",
        ),
        ("show book.bin e9", 1, "e9"),
        (
            "games games.idx --id 1 e4",
            2,
            "a position and conditions on games do not apply",
        ),
        (
            "games games.idx --id 1 --player tal",
            2,
            "conditions on games do not apply",
        ),
        ("games games.idx --id 1 --limit 3", 2, "--limit"),
    ] {
        let error = fails(dir, line, status);
        assert!(error.contains(said), "{line}: {error}");
    }
}

/// An index made by `make-book --leveldb` has no ratings, and its moves are listed in one order.
#[test]
fn moves_of_a_fork_index_are_not_sorted() {
    let dir = made();
    let dir = dir.path();
    for order in ["score", "rating", "uci"] {
        let error = fails(dir, &*format!("show fork.idx --sort {order}"), 2);
        assert!(error.contains("make-book --explorer"), "{error}");
    }
    ok(dir, "show fork.idx --sort games");
}

#[test]
fn an_error_names_the_format_of_a_file_that_is_no_book() {
    let dir = made();
    for (line, said) in [
        ("verify famous.pgn", "PGN"),
        ("convert famous.pgn a.csv", "make-book"),
        ("info-book --bin games.obs.db3", "database"),
        ("games book.bin", "polybook make-book"),
        ("games games.obs.db3", "polybook make-book"),
    ] {
        let output = run(dir.path(), line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line}");
        assert_eq!(error.lines().count(), 1, "{line}: {error}");
        assert!(error.contains(said), "{line}: {error}");
    }
}

#[test]
fn json_has_one_name_for_each_value_and_null_for_unknown_ones() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), "1. e4 e5 *\n").unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --bin book.bin --explorer games.idx",
    );
    let moves = ok_json(dir, "show games.idx --json");
    let rating = moves["moves"][0].get("average_rating");
    assert_eq!(rating, Some(&Value::Null), "{moves}");
    let tree: Value =
        serde_json::from_str(ok(dir, "tree book.bin --format jsonl --max-ply 1").trim()).unwrap();
    let shown = ok_json(dir, "show book.bin --json");
    for document in [tree, shown] {
        assert_eq!(
            document["moves"][0]["probability"],
            json!(100.0),
            "{document}"
        );
    }
}

#[test]
fn advice_names_only_options_that_the_command_has() {
    let dir = temp();
    fs::write(dir.path().join("empty.pgn"), "").unwrap();
    fs::write(dir.path().join("blank.pgn"), "\n").unwrap();
    for line in [
        "serve -q empty.pgn --no-cache --listen 127.0.0.1:0",
        "show -q blank.pgn",
        "games -q blank.pgn",
        "engine -q blank.pgn",
    ] {
        let error = fails(dir.path(), line, 1);
        let named =
            error.contains(".pgn: there is nothing to show, because the input contains no game");
        assert!(named, "{error}");
        assert!(!error.contains("allow-empty"), "{error}");
    }
    let error = fails(dir.path(), "make-book empty.pgn --bin a.bin", 1);
    assert!(
        error.contains("--allow-empty writes empty outputs"),
        "{error}"
    );
}

#[test]
fn positions_that_books_leave_out_have_no_key() {
    let dir = temp();
    // The rook on f1 may castle, and the rook on h1 is further out.
    let fen = "rk3r1r/pppppppp/8/8/8/8/PPPPPPPP/RK3R1R w Ff - 0 1";
    let error = fails(
        dir.path(),
        args!["key", "--variant", "chess960", "--fen", fen],
        1,
    );
    assert!(error.contains("no Polyglot key"), "{error}");
    let error = fails(dir.path(), args!["key", "--fen", fen], 1);
    assert!(error.contains("give the variant fischerandom"), "{error}");
}

#[test]
fn helps_have_one_heading_for_options() {
    let dir = temp();
    for command in ["make-book", "convert", "suite-report", "verify", "prepare"] {
        let help = ok(dir.path(), &[command, "--help"]);
        assert_eq!(help.matches("\nOptions:\n").count(), 1, "{command}");
    }
}

//! Inputs that are pipes or files of other formats.

use std::fs;
#[cfg(unix)]
use std::path::Path;

use polybook::{book::Entry, position::BookMove};

#[cfg(unix)]
use crate::common::Arguments;
use crate::common::{fails, ok, polybook_in, temp};

/// Creates games, and files that other commands make from them.
fn files() -> tempfile::TempDir {
    let dir = temp();
    let games = "[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 1-0\n\n\
                 [White \"B\"]\n[Black \"A\"]\n[Result \"0-1\"]\n\n1. e4 c5 {[%eval 0.3]} 2. Nf3 d6 0-1\n";
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    fs::write(dir.path().join("lines.pgn"), "1. e4 e5 *\n").unwrap();
    fs::write(dir.path().join("edits.txt"), "drop 1. e4 c5\n").unwrap();
    ok(
        dir.path(),
        "make-book games.pgn --min-game 1 --bin book.bin --obs games.obs.db3",
    );
    ok(dir.path(), "evals games.pgn --out games.evals");
    dir
}

/// Creates a named pipe through which a thread sends a file once. Opening it a second time would block forever.
#[cfg(unix)]
fn sent(dir: &Path, file: &str) -> String {
    let name = format!("pipe-{file}");
    let pipe = dir.join(&name);
    let _ = fs::remove_file(&pipe);
    crate::common::make_fifo(&pipe);
    let bytes = fs::read(dir.join(file)).unwrap();
    std::thread::spawn(move || fs::write(pipe, bytes));
    name
}

/// Packs games.pgn into games.zip.
#[cfg(unix)]
fn pack(dir: &Path) {
    let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    packer.start_file("games.pgn", options).unwrap();
    let games = fs::read(dir.join("games.pgn")).unwrap();
    std::io::Write::write_all(&mut packer, &games).unwrap();
    let packed = packer.finish().unwrap().into_inner();
    fs::write(dir.join("games.zip"), packed).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_answers_as_the_file_that_it_sends() {
    let dir = files();
    pack(dir.path());
    for (file, command) in [
        (
            "games.pgn",
            "repertoire gaps FILE --color white --against book.bin",
        ),
        ("games.pgn", "repertoire check FILE games.pgn --color white"),
        ("games.zip", "repertoire check games.pgn FILE --color white"),
        (
            "games.zip",
            "repertoire build FILE --color white --out z.pgn --min-game 1 --force",
        ),
        ("games.pgn", "repertoire check lines.pgn FILE --color white"),
        (
            "games.pgn",
            "repertoire gaps lines.pgn --color white --against FILE",
        ),
        ("games.pgn", "repertoire new lines.pgn --reference FILE"),
        (
            "book.bin",
            "repertoire gaps lines.pgn --color white --against FILE",
        ),
        ("book.bin", "show FILE"),
        ("games.obs.db3", "show FILE"),
        ("book.bin", "diff FILE book.bin"),
        ("book.bin", "tree FILE"),
        ("games.obs.db3", "tree FILE"),
        ("book.bin", "dump-book FILE --color white --out -"),
        ("games.obs.db3", "convert FILE - --format csv"),
        ("book.bin", "convert FILE - --format pgn --plies 2"),
        ("games.evals", "show book.bin --evals FILE"),
        ("lines.pgn", "suite-report FILE games.pgn"),
        ("games.pgn", "suite-report lines.pgn FILE"),
        ("games.obs.db3", "verify FILE --json"),
    ] {
        let expected = ok(dir.path(), &command.replace("FILE", file));
        let pipe = sent(dir.path(), file);
        let found = ok(dir.path(), &command.replace("FILE", &pipe));
        let found = found.replace(&pipe, file);
        assert_eq!(found, expected, "{command} of {file}");
    }
}

/// Reading standard input may take hours, so an output that may not be replaced is refused before anything is
/// read.
#[test]
fn an_output_is_refused_before_standard_input_is_read() {
    use std::io::Seek as _;

    let dir = files();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n";
    fs::write(dir.path().join("starts.epd"), start).unwrap();
    for end in ["bin", "pgn", "epd", "csv", "txt", "obs.db3", "evals"] {
        fs::write(dir.path().join(format!("mine.{end}")), "my notes\n").unwrap();
    }
    for (file, command) in [
        ("games.pgn", "make-book - --bin mine.bin"),
        (
            "games.evals",
            "make-book games.pgn --bin mine.bin --evals - --max-loss 50",
        ),
        (
            "games.evals",
            "make-book games.pgn --bin book.bin --obs mine.obs.db3 --evals - --max-loss 50",
        ),
        (
            "games.evals",
            "make-book games.pgn --suite mine.epd --evals - --eval-abs 0..100",
        ),
        (
            "starts.epd",
            "make-book games.pgn --suite mine.pgn --from -",
        ),
        (
            "games.evals",
            "filter book.bin --out mine.bin --evals - --max-loss 50",
        ),
        (
            "games.evals",
            "convert games.obs.db3 mine.bin --evals - --max-loss 50",
        ),
        (
            "starts.epd",
            "convert games.obs.db3 mine.epd --from - --plies 2",
        ),
        ("games.obs.db3", "convert - mine.bin"),
        ("games.obs.db3", "convert - mine.csv"),
        ("book.bin", "convert - mine.epd --plies 2"),
        ("book.bin", "filter - --out mine.bin --best 1"),
        ("book.bin", "merge-book - book.bin --out mine.bin"),
        (
            "games.obs.db3",
            "merge-book - games.obs.db3 --out mine.obs.db3",
        ),
        ("book.bin", "verify - --fix mine.bin"),
        ("book.bin", "dump-book - --color white --out mine.txt"),
        ("book.bin", "tree - --out mine.txt"),
        ("book.bin", "edit - --out mine.bin --set e4=1"),
        ("games.pgn", "evals - --out mine.evals"),
        (
            "games.pgn",
            "suite-report lines.pgn - --drop-one-sided --out mine.pgn",
        ),
        (
            "games.pgn",
            "repertoire build - --color white --out mine.pgn",
        ),
        (
            "games.pgn",
            "repertoire gaps - --color white --against book.bin --add 1 --out mine.pgn",
        ),
        (
            "games.pgn",
            "repertoire check - games.pgn --color white --out mine.pgn",
        ),
        (
            "games.pgn",
            "repertoire new lines.pgn --reference - --out mine.pgn",
        ),
    ] {
        // The program shares the offset of this file.
        let mut input = fs::File::open(dir.path().join(file)).unwrap();
        let mut program = polybook_in(dir.path());
        program
            .args(command.split(' '))
            .stdin(input.try_clone().unwrap());
        let output = program.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let is_refused = error.contains("exists") || error.contains("not an OOBS database");
        assert!(is_refused && !output.status.success(), "{command}: {error}");
        assert_eq!(input.stream_position().unwrap(), 0, "{command}");
    }
}

#[cfg(all(unix, feature = "compression"))]
#[test]
fn a_zip_archive_is_read_through_a_pipe() {
    let dir = files();
    pack(dir.path());
    let pipe = sent(dir.path(), "games.zip");
    ok(
        dir.path(),
        &format!("make-book {pipe} --min-game 1 --bin zip.bin"),
    );
    let moves = |book: &str| {
        ok(
            dir.path(),
            &format!("dump-book {book} --color white --out -"),
        )
    };
    let lines = |book: &str| moves(book).lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(lines("zip.bin"), lines("book.bin"));
}

/// The record of the number of files in an archive (ZIP64) may end with further fields.
#[cfg(feature = "compression")]
#[test]
fn a_zip_archive_with_large_numbers_is_read() {
    let dir = files();
    let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    packer.start_file("games.pgn", options).unwrap();
    let games = fs::read(dir.path().join("games.pgn")).unwrap();
    std::io::Write::write_all(&mut packer, &games).unwrap();
    let archive = packer.finish().unwrap().into_inner();
    let end = archive.len() - 22;
    let number = |at: usize| {
        let bytes = archive[end + at..].first_chunk().unwrap();
        u64::from(u32::from_le_bytes(*bytes))
    };
    for further in [0, 8, 100] {
        let mut large = archive[..end].to_vec();
        large.extend(b"PK\x06\x06");
        large.extend((44 + further as u64).to_le_bytes());
        large.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [1, 1, number(12), number(16)] {
            large.extend(number.to_le_bytes());
        }
        large.extend(vec![0; further]);
        large.extend(b"PK\x06\x07\0\0\0\0");
        large.extend((end as u64).to_le_bytes());
        large.extend([1, 0, 0, 0]);
        large.extend(b"PK\x05\x06\0\0\0\0");
        large.extend([0xff; 12]);
        large.extend([0; 2]);
        fs::write(dir.path().join("large.zip"), large).unwrap();
        ok(
            dir.path(),
            "make-book -q large.zip --min-game 1 --bin zip.bin --force",
        );
        let lines = |book: &str| {
            let moves = ok(
                dir.path(),
                &format!("dump-book {book} --color white --out -"),
            );
            moves.lines().skip(1).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(lines("zip.bin"), lines("book.bin"));
    }
}

/// If files in a zip archive are not read, a message says how many, names the first one, and advises what to do.
#[cfg(feature = "compression")]
#[test]
fn files_in_a_zip_archive_that_are_not_read_are_reported() {
    let dir = files();
    let pack = |name: &str, members: &[&str]| {
        let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        for member in members {
            packer.start_file(*member, options).unwrap();
            std::io::Write::write_all(&mut packer, b"1. e4 e5 1-0\n").unwrap();
        }
        fs::write(dir.path().join(name), packer.finish().unwrap().into_inner()).unwrap();
    };
    let run = |name: &str| {
        let command = format!("make-book {name} --min-game 1 --bin {name}.bin");
        let output = crate::common::run(dir.path(), &command.split(' ').collect::<Vec<_>>());
        String::from_utf8(output.stderr).unwrap()
    };
    pack(
        "some.zip",
        &["notes.txt", "a.pgn", "games.pgn.gz", "__MACOSX/._a.pgn"],
    );
    let said = run("some.zip");
    let advice = "some.zip: polybook did not read 2 other files such as \"notes.txt\": unpack the archive and give \
                  the files of games";
    assert!(
        said.contains(advice) && said.contains("1 counted"),
        "{said}"
    );
    // Every command that reads games prints this message.
    fs::write(dir.path().join("suite.pgn"), "1. e4 *\n").unwrap();
    fs::write(dir.path().join("e.pgn"), "1. e4 {[%eval 0.2]} e5 1-0\n").unwrap();
    for command in [
        "repertoire check e.pgn some.zip --color white",
        "repertoire new some.zip --reference e.pgn",
        "repertoire build some.zip --color white --min-game 1 --out r.pgn",
        "repertoire gaps e.pgn --color white --against some.zip",
        "suite-report suite.pgn some.zip",
        "evals --out e.evals e.pgn some.zip",
    ] {
        let output = crate::common::run(dir.path(), command);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && said.contains(advice),
            "{command}: {said}"
        );
    }
    pack("one.zip", &["a.PGN", "b.txt"]);
    let said = run("one.zip");
    assert!(
        said.contains("polybook did not read the file \"b.txt\""),
        "{said}"
    );
    pack("all.zip", &["a.pgn", "b/c.pgn", "b/"]);
    let said = run("all.zip");
    assert!(
        said.contains("2 counted") && !said.contains("did not read"),
        "{said}"
    );
    pack("none.zip", &["word/document.xml", "b.txt"]);
    let said = run("none.zip");
    let advice = "none.zip: this zip archive contains 2 other files such as \"word/document.xml\" and no .pgn file: unpack \
                  the archive";
    assert!(said.contains(advice), "{said}");
    pack("empty.zip", &[]);
    let said = run("empty.zip");
    assert!(
        said.contains("this zip archive contains no files"),
        "{said}"
    );
}

/// Files of other formats, with the names that messages use for them.
const FOREIGN: [(&str, &[u8], &str); 17] = [
    (
        "a.rar",
        b"Rar!\x1a\x07\x01\0",
        "RAR archive: unpack the archive",
    ),
    (
        "a.bin",
        b"7z\xbc\xaf\x27\x1c\0\x04",
        "7z archive: unpack the archive",
    ),
    (
        "b.bin",
        b"\xfd7zXZ\0\0\x04",
        "a file compressed with xz: unpack the file",
    ),
    (
        "c.bin",
        b"\x04\x22\x4d\x18\x64\x40\xa7\0",
        "a file compressed with lz4: unpack the file",
    ),
    (
        "d.abk",
        b"\x03ABK\0\0\0\0",
        "Arena book (ABK): export the games as PGN",
    ),
    (
        "e.cbh",
        b"\0\0\x2c\0\x2e\x01\0\0",
        "ChessBase database: export the games as PGN",
    ),
    (
        "f.ctg",
        b"\0\0\0\0\0\0\x10\x01",
        "ChessBase book (CTG): export the games as PGN",
    ),
    (
        "g.cbv",
        b"\x01\0\0\0\0\0\x10\x01",
        "ChessBase archive (CBV): unpack the archive",
    ),
    (
        "h.si4",
        b"Scid.si\0",
        "Scid database: export the games as PGN",
    ),
    (
        "i.parquet",
        b"PAR1\x15\x04\x15\x10",
        "Parquet file: export the games as PGN",
    ),
    ("j.pdf", b"%PDF-1.7", "PDF document"),
    ("l.lzh", b"\x1f\x5a-lh5-", "LHA archive: unpack the archive"),
    (
        "m.ace",
        b"\xb6\x26\x31\0\0\x90\0**ACE**",
        "ACE archive: unpack the archive",
    ),
    ("n.cpio", b"070701", "cpio archive: unpack the archive"),
    ("p.deb", b"!<arch>\n", "ar archive: unpack the archive"),
    (
        "q.lzo",
        b"\x89LZO\0\r\n",
        "unpack the file, for instance with lzop -dc",
    ),
    ("k.bin", b"<!DOCTYPE html>\n", "web page: download"),
];

#[test]
fn files_of_other_formats_are_named_and_nothing_is_written() {
    let dir = files();
    for (file, start, expected) in FOREIGN {
        let noise = (0..160u8).map(|i| i.wrapping_mul(97) ^ (i << 3));
        let bytes: Vec<u8> = start.iter().copied().chain(noise).take(160).collect();
        fs::write(dir.path().join(file), bytes).unwrap();
        for command in [
            "show FILE -q",
            "verify FILE",
            "verify FILE --fix out.bin",
            "convert FILE out.csv",
            "merge-book FILE book.bin --out out.bin",
            "diff FILE book.bin",
            "diff book.bin FILE",
            "tree FILE",
            "filter FILE --out out.bin --best 1",
            "info-book FILE",
            "dump-book FILE --color white --out out.txt",
            "make-book FILE --bin out.bin",
            "repertoire gaps FILE --color white --against games.pgn",
            "suite-report FILE games.pgn",
            "suite-report lines.pgn FILE",
            "pgheader -s FILE",
            "edit FILE --out out.bin --set e4=1",
            "evals FILE --out out.evals",
        ] {
            let command = command.replace("FILE", file);
            let text = fails(dir.path(), &command, 1);
            let mut expected = expected.split(": ");
            assert!(
                expected.all(|part| text.contains(part)),
                "{command}: {text}"
            );
            let written = fs::read_dir(dir.path()).unwrap().flatten();
            let mut written = written.map(|entry| entry.file_name().into_string().unwrap());
            assert!(!written.any(|name| name.starts_with("out")), "{command}");
        }
    }
}

/// Copies a file or a directory of files.
#[cfg(unix)]
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Merging books, databases and stores works although fewer files may be open than there are inputs.
/// Each merge keeps a file of every input open.
#[cfg(unix)]
#[test]
fn three_hundred_inputs_of_a_merge_need_few_open_files() {
    let dir = files();
    let dir = dir.path();
    ok(
        dir,
        "make-book games.pgn --bin b.bin --obs o.obs.db3 --min-game 1",
    );
    fs::write(dir.join("e.pgn"), "1. e4 { [%eval 0.3] } *\n").unwrap();
    ok(dir, "evals e.pgn --out s.evals");
    let inputs = [
        ("merge-book", "b.bin"),
        ("merge-book", "o.obs.db3"),
        ("evals", "s.evals"),
    ];
    for (command, input) in inputs {
        let names: Vec<String> = (0..300).map(|number| format!("{number}{input}")).collect();
        for name in &names {
            copy(&dir.join(input), &dir.join(name));
        }
        let out = format!("all-{input}");
        let output = std::process::Command::new("sh")
            .current_dir(dir)
            .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh"])
            .args([env!("CARGO_BIN_EXE_polybook"), command, "--out", &out])
            .args(&names)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        ok(dir, &format!("verify {out}"));
    }
}

/// Merging ordered counts keeps a file of each directory open, but there are more directories than allowed open files.
#[cfg(all(unix, feature = "parquet"))]
#[test]
fn three_hundred_directories_of_counts_need_few_open_files() {
    let dir = files();
    ok(dir.path(), "make-book games.pgn --counts counts");
    let mut names = Vec::new();
    for number in 0..300 {
        let name = format!("counts{number}");
        copy(&dir.path().join("counts"), &dir.path().join(&name));
        names.push(name);
    }
    let output = std::process::Command::new("sh")
        .current_dir(dir.path())
        .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh"])
        .args([
            env!("CARGO_BIN_EXE_polybook"),
            "make-book",
            "--bin",
            "sum.bin",
        ])
        .args(&names)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    ok(dir.path(), "make-book counts0 --bin one.bin --min-game 1");
    let moves = |book: &str| {
        ok(
            dir.path(),
            &format!("dump-book {book} --color white --out -"),
        )
    };
    assert_eq!(
        moves("sum.bin").lines().count(),
        moves("one.bin").lines().count()
    );
}

/// A command that needs an index, a book or a store names the format of another file, and says what to do with it.
#[test]
fn other_formats_are_named_at_every_door() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), "1. e4 e5 *\n").unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    for (file, bytes, name) in [
        ("a.7z", &b"7z\xbc\xaf\x27\x1c\0\x04"[..], "a 7z archive"),
        ("b.7z", b"7z\xbc\xaf\x27\x1c0123456789", "a 7z archive"),
        ("c.rar", b"Rar!\x1a\x07\x01\0and more", "a RAR archive"),
        ("d.zip", b"PK\x03\x04 and more bytes", "a zip archive"),
        ("e.gz", b"\x1f\x8b\x08\0\0\0", "a file compressed with gzip"),
        ("f.parquet", b"PAR1 and more bytes", "a Parquet file"),
        ("g.db3", b"SQLite format 3\0 and more", "SQLite database"),
        (
            "h.ctg",
            b"\0\0\0\x01\xff\xff\x2e\0",
            "a ChessBase book (CTG)",
        ),
    ] {
        fs::write(dir.join(file), bytes).unwrap();
        for command in [
            format!("show {file}"),
            format!("games {file}"),
            format!("games {file} --pgn --id 0"),
            format!("show games.idx --evals {file}"),
            format!("info-book {file}"),
            format!("filter {file} --best 1 --out filtered.bin"),
        ] {
            // `show` reads an SQLite database as an OOBS database.
            if command == "show g.db3" {
                let error = fails(dir, &command, 1);
                assert!(error.contains("g.db3: file is not a database"), "{error}");
                continue;
            }
            // These commands read a file that may contain PGN, to make its index.
            let is_pgn = matches!(file, "d.zip" | "e.gz" | "h.ctg");
            if is_pgn && !command.contains("--evals") && command.starts_with(['s', 'g']) {
                let error = fails(dir, &format!("{command} -q"), 1);
                let is_named = error.contains(name)
                    || error.contains(&format!("{file}: this zip archive is damaged"))
                    || error.contains(&format!("{file}: the file is damaged"));
                assert!(is_named, "{command}: {error}");
                continue;
            }
            let error = fails(dir, &command, 1);
            assert!(error.contains(name), "{command}: {error}");
            let needed = match () {
                () if command.contains("--evals") => "a store of evaluations: ",
                () if command.starts_with("games") => "not an index: ",
                () => "not a Polyglot book",
            };
            assert!(error.contains(needed), "{command}: {error}");
        }
    }
}

#[test]
fn small_books_are_named_where_games_are_needed() {
    let dir = temp();
    let record = |key: u64, mv: u16| Entry {
        key,
        mv: BookMove(mv),
        weight: 5,
        learn: 0,
    };
    for (records, is_book) in [
        (vec![record(7, 0o1434)], true),
        (
            vec![record(7, 0o1434), record(7, 0o1333), record(9, 0o1434)],
            true,
        ),
        (vec![record(7, 0o1434); 9], true),
        (vec![record(7, 0o1434), record(3, 0o1434)], false),
        (vec![record(7, 0o7777)], false),
    ] {
        let bytes: Vec<u8> = records
            .iter()
            .flat_map(|record| record.to_bytes())
            .collect();
        fs::write(dir.path().join("small.bin"), bytes).unwrap();
        let error = fails(dir.path(), "make-book small.bin --bin out.bin", 1);
        assert_eq!(
            error.contains("a Polyglot book, not PGN"),
            is_book,
            "{error}"
        );
    }
}

/// Each file of an archive is recognized on its own, and the files that macOS adds are not games.
#[cfg(feature = "compression")]
#[test]
fn each_file_in_a_zip_archive_is_recognized() {
    let dir = temp();
    let game = b"1. e4 e5 1-0\n";
    let wide = |from: fn(u16) -> [u8; 2]| {
        let text = "\u{feff}[Event \"x\"]\n\n1. d4 *\n";
        text.encode_utf16().flat_map(from).collect::<Vec<u8>>()
    };
    let packed = |bytes: &[u8]| {
        use std::io::Write;
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let pack = |members: &[(&str, &[u8])]| {
        let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in members {
            let options = zip::write::SimpleFileOptions::default();
            packer.start_file(*name, options).unwrap();
            std::io::Write::write_all(&mut packer, bytes).unwrap();
        }
        let bytes = packer.finish().unwrap().into_inner();
        fs::write(dir.path().join("games.zip"), bytes).unwrap();
    };
    let make = "make-book games.zip --min-game 1 --bin zip.bin";
    for (bytes, what) in [
        (wide(u16::to_le_bytes), "text in UTF-16"),
        (wide(u16::to_be_bytes), "text in UTF-16"),
        (packed(game), "a file that was compressed twice"),
        (b"%PDF-1.7\n".to_vec(), "a PDF document"),
        (b"SQLite format 3\0".to_vec(), "an SQLite database"),
    ] {
        pack(&[("a.pgn", game), ("b.pgn", &bytes), ("c.pgn", game)]);
        let error = fails(dir.path(), make, 1);
        let expected = format!("the file \"b.pgn\" in this archive is {what}");
        assert!(error.contains(&expected), "{error}");
        assert!(!dir.path().join("zip.bin").exists());
    }
    pack(&[
        ("a.pgn", game),
        ("._a.pgn", b"\0\x05\x16\x07\0\0"),
        ("old/__MACOSX/old/._a.pgn", b"\0\x05\x16\x07\0\0"),
        ("old/._b.pgn", b"\0\x05\x16\x07\0\0"),
    ]);
    let output = crate::common::run(dir.path(), make);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("1 counted") && !said.contains("did not read"),
        "{said}"
    );
}

/// An archive whose files cannot be unpacked is not called damaged.
#[cfg(feature = "compression")]
#[test]
fn methods_of_zip_archives_that_are_not_supported_are_named() {
    let dir = temp();
    let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    packer.start_file("a.pgn", options).unwrap();
    std::io::Write::write_all(&mut packer, b"1. e4 e5 1-0\n").unwrap();
    let bytes = packer.finish().unwrap().into_inner();
    let entry = bytes.windows(4).position(|at| at == b"PK\x01\x02").unwrap();
    for (method, name) in [
        (1, "Shrink"),
        (6, "Implode"),
        (9, "Deflate64"),
        (14, "LZMA"),
        (98, "PPMd"),
        (200, "an unknown method"),
    ] {
        // The method is in the header of the file and in the table of contents.
        let mut bytes = bytes.clone();
        bytes[8] = method;
        bytes[entry + 10] = method;
        fs::write(dir.path().join("games.zip"), bytes).unwrap();
        let error = fails(dir.path(), "make-book games.zip --bin zip.bin", 1);
        let expected =
            format!("the file \"a.pgn\" in this zip archive is compressed with {name}, which");
        assert!(
            error.contains(&expected) && !error.contains("damage"),
            "{error}"
        );
    }
}

/// Bytes after the end of compressed data are not read, and nothing before them is lost.
#[cfg(feature = "compression")]
#[test]
fn bytes_after_the_end_of_compressed_data_are_a_warning() {
    use std::io::Write;
    let dir = temp();
    let game = b"[Event \"x\"]\n\n1. e4 e5 1-0\n\n";
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gz.write_all(game).unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), Default::default());
    bz2.write_all(game).unwrap();
    let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    packer.start_file("a.pgn", options).unwrap();
    packer.write_all(game).unwrap();
    let gz = gz.finish().unwrap();
    let zst = zstd::encode_all(&game[..], 1).unwrap();
    let zip = packer.finish().unwrap().into_inner();
    for (name, bytes, games) in [
        ("a.gz", gz.clone(), 1),
        ("two.gz", gz.repeat(2), 2),
        ("a.bz2", bz2.finish().unwrap(), 1),
        ("a.zst", zst.clone(), 1),
        ("two.zst", zst.repeat(2), 2),
        ("a.zip", zip, 1),
    ] {
        for (after, number) in [
            (&b""[..], ""),
            (b"\0", "1 byte"),
            (&[0; 512], "512 bytes"),
            (b"signature of a mail\n", "20 bytes"),
            (b"B", "1 byte"),
        ] {
            fs::write(dir.path().join(name), [&bytes, after].concat()).unwrap();
            let command = format!("make-book {name} --min-game 1 --bin x.bin");
            let output = crate::common::run(dir.path(), &command);
            let said = String::from_utf8_lossy(&output.stderr);
            // A lone first byte of a signature may be a part that was cut short.
            if name == "a.bz2" && after == b"B" {
                assert!(!output.status.success(), "{said}");
                continue;
            }
            assert!(said.contains(&format!("{games} counted")), "{name}: {said}");
            let warning = format!("did not read {number} after the end of the compressed data");
            assert_eq!(
                said.contains(&warning),
                !number.is_empty(),
                "{name}: {said}"
            );
        }
    }
}

/// polybook reads only the last of several zip archives in one file, and warns about the others.
#[cfg(feature = "compression")]
#[test]
fn bytes_before_a_zip_archive_are_a_warning() {
    use std::io::Write;
    let dir = temp();
    let pack = |game: &str| {
        let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        packer.start_file("a.pgn", options).unwrap();
        packer.write_all(game.as_bytes()).unwrap();
        packer.finish().unwrap().into_inner()
    };
    let last = pack("1. e4 e5 1-0\n");
    let first = pack("1. d4 d5 2. c4 e6 1-0\n\n1. c4 *\n");
    for before in [&first, &last, &[&first[..], &last].concat()] {
        fs::write(dir.path().join("two.zip"), [before, &last[..]].concat()).unwrap();
        let output = crate::common::run(
            dir.path(),
            "make-book two.zip --min-game 1 --bin x.bin --force",
        );
        let said = String::from_utf8_lossy(&output.stderr);
        let warning = format!(
            "did not read {} bytes before the last zip archive in the file: give each archive as a file",
            before.len()
        );
        assert!(
            said.contains(&warning) && said.contains("1 counted"),
            "{said}"
        );
    }
    fs::write(dir.path().join("one.zip"), &last).unwrap();
    let output = crate::common::run(dir.path(), "make-book one.zip --min-game 1 --bin y.bin");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("warning"), "{said}");
}

/// Each command that reads a PGN file says which text it skips.
#[cfg(feature = "serve")]
#[test]
fn commands_that_index_games_say_what_they_skip() {
    let dir = temp();
    let text = "[White \"A\"]\n[Black Unquoted]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n";
    fs::write(dir.path().join("x.pgn"), text).unwrap();
    let output = crate::common::run(dir.path(), "games x.pgn");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("a line among the tags that is not a tag pair was skipped"),
        "{said}"
    );
}

/// Suites and scripts have the line ends of any system.
#[test]
fn lines_of_positions_may_end_as_on_any_system() {
    let dir = temp();
    fs::write(dir.path().join("x.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    let lines = [
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -",
        "# remark",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
    ];
    for end in ["\n", "\r\n", "\r"] {
        fs::write(dir.path().join("s.epd"), lines.join(end) + end).unwrap();
        ok(
            dir.path(),
            "make-book -q x.pgn --suite o.epd --plies 1 --min-game 1 --from s.epd --force",
        );
        fs::write(dir.path().join("s.epd"), lines.join(end) + end + "x" + end).unwrap();
        let error = fails(
            dir.path(),
            "make-book x.pgn --suite p.epd --plies 1 --from s.epd",
            1,
        );
        assert!(error.contains("s.epd: line 4: "), "{error}");
    }
}

#[test]
fn text_in_utf_32_is_not_called_utf_16() {
    let dir = temp();
    let text = "[Event \"Friendly\"]\n\n1. e4 e5 1-0\n";
    for mark in ["", "\u{feff}"] {
        for (from, name) in [
            (u32::to_le_bytes as fn(u32) -> [u8; 4], "little"),
            (u32::to_be_bytes, "big"),
        ] {
            let bytes = mark.chars().chain(text.chars());
            let bytes: Vec<u8> = bytes.flat_map(|c| from(c.into())).collect();
            fs::write(dir.path().join("games.pgn"), bytes).unwrap();
            for command in [
                "make-book games.pgn --bin x.bin",
                "show games.pgn -q",
                "repertoire check games.pgn games.pgn --color white",
                "evals games.pgn --out x.evals",
            ] {
                let error = fails(dir.path(), command, 1);
                let is_named = error.contains("UTF-32") && !error.contains("UTF-16");
                // Without a mark, only readers of games recognize the text.
                let is_binary = mark.is_empty() && command == "show games.pgn -q";
                assert!(is_named || is_binary, "{name} {mark:?} {command}: {error}");
            }
        }
    }
}

/// The system's names of standard input and output have the meaning of `-`.
#[cfg(unix)]
#[test]
fn the_systems_names_of_standard_streams_mean_the_same_as_a_dash() {
    let dir = files();
    let games = fs::read(dir.path().join("games.pgn")).unwrap();
    let book = fs::read(dir.path().join("book.bin")).unwrap();
    let run = |command: &str, name: &str, input: &[u8]| {
        let command = command.replace("NAME", name);
        let output = crate::common::fed(dir.path(), &command, input);
        assert!(output.status.success(), "{command}: {output:?}");
        output.stdout
    };
    for command in [
        "make-book -q games.pgn --min-game 1 --bin NAME",
        "make-book -q games.pgn --min-game 1 --bin=NAME",
        "make-book -q games.pgn --min-game 1 --obs NAME",
        "make-book -q games.pgn --min-game 1 --suite NAME --plies 2",
        "filter -q book.bin --out NAME",
        "tree book.bin --out NAME",
        "repertoire new games.pgn --reference book.bin --out NAME",
        "verify -q book.bin --fix NAME",
    ] {
        let expected = run(command, "-", b"");
        assert!(!expected.is_empty(), "{command}");
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert_eq!(run(command, name, b""), expected, "{command} {name}");
        }
    }
    for (command, input) in [
        ("make-book -q NAME --min-game 1 --bin -", &games),
        ("make-book -q --pgn NAME --min-game 1 --bin -", &games),
        ("repertoire new NAME --reference book.bin", &games),
        ("show NAME", &book),
        ("tree NAME", &book),
        ("filter -q NAME --out -", &book),
    ] {
        let expected = run(command, "-", input);
        for name in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
            assert_eq!(run(command, name, input), expected, "{command} {name}");
        }
    }
}

/// Copies of inputs are written to the directory that `--temp-dir` names.
#[cfg(all(unix, feature = "compression"))]
#[test]
fn copies_of_inputs_go_to_the_directory_for_temporary_files() {
    let dir = files();
    let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    packer.start_file("a.pgn", options).unwrap();
    std::io::Write::write_all(&mut packer, b"1. e4 e5 1-0\n").unwrap();
    let zip = packer.finish().unwrap().into_inner();
    fs::write(dir.path().join("games.zip"), zip).unwrap();
    fs::create_dir(dir.path().join("temporary")).unwrap();
    for (file, command) in [
        ("games.zip", "make-book FILE --min-game 1 --bin x.bin"),
        ("games.pgn", "repertoire check FILE games.pgn --color white"),
        ("book.bin", "filter FILE --out y.bin"),
    ] {
        let run = |temporary: &str| {
            let file = sent(dir.path(), file);
            let command = format!("{} --temp-dir {temporary}", command.replace("FILE", &file));
            let command = (&command).list();
            let mut command_line = polybook_in(dir.path());
            // The default directory does not exist, so it cannot be used.
            command_line.args(command).env("TMPDIR", "/does/not/exist");
            command_line.output().unwrap()
        };
        let output = run("temporary");
        assert!(output.status.success(), "{command}: {output:?}");
        let error = run("absent");
        let error = String::from_utf8_lossy(&error.stderr).into_owned();
        assert!(
            error.contains("absent") && !error.contains("/does/not"),
            "{command}: {error}"
        );
    }
    assert!(
        fs::read_dir(dir.path().join("temporary"))
            .unwrap()
            .next()
            .is_none()
    );
}

/// A file that `show` reads as a book is a book for every command.
#[test]
fn all_commands_agree_what_a_book_is() {
    let dir = files();
    let record = |key: u64, mv: u16| Entry {
        key,
        mv: BookMove(mv),
        weight: 1,
        learn: 0,
    };
    let start = 0x463b_9618_1691_fc9c;
    let bytes = |entries: &[Entry]| -> Vec<u8> {
        entries.iter().flat_map(|entry| entry.to_bytes()).collect()
    };
    for entries in [
        // The last record has no move.
        vec![record(start, 0o1434), record(u64::MAX, 0)],
        vec![
            record(7, 0o1434),
            record(start, 0o1434),
            record(u64::MAX, 0),
        ],
        // Few records, without one of the starting position.
        vec![record(7, 0o1434), record(8, 0o1333)],
        vec![record(start, 0o1434)],
    ] {
        // Half of the records may be without a move only if there are more records.
        if entries.len() == 2 && entries[1].key == u64::MAX {
            continue;
        }
        let file = bytes(&entries);
        fs::write(dir.path().join("other.book"), &file).unwrap();
        for command in [
            "show other.book",
            "tree other.book --fen startpos",
            "convert other.book x.csv --force",
            "merge-book other.book other.book --out x.bin",
            "filter other.book --out x.bin",
            "diff other.book other.book",
            "info-book other.book",
            "repertoire gaps lines.pgn --color white --against other.book",
            "repertoire new games.pgn --reference other.book",
            "engine other.book",
            "repertoire build other.book --color white --out rep.pgn --force --allow-empty",
        ] {
            let output = crate::common::run(dir.path(), command);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(
                !error.contains("not PGN") && !error.contains("indexing"),
                "{command}: {error}"
            );
        }
        let error = fails(dir.path(), "make-book other.book --bin x.bin", 1);
        assert!(
            error.contains("this is a Polyglot book, not PGN"),
            "{error}"
        );
        if entries.iter().any(|entry| entry.key == u64::MAX) {
            continue;
        }
        // A new book replaces it.
        fs::write(dir.path().join("replaced.bin"), &file).unwrap();
        ok(
            dir.path(),
            "make-book games.pgn --min-game 1 --bin replaced.bin --force",
        );
    }
}

/// Text from a file does not control the terminal, and is no formula in a spreadsheet.
#[test]
fn control_characters_of_a_file_are_escaped() {
    let dir = temp();
    let event = "\u{1b}]0;pwned\u{7}\u{9b}31m\u{7f}\u{202e}\u{2066}";
    let games = format!(
        "[Event \"{event}\"]\n[Site \"{event}\"]\n[White \"=cmd|' /C calc'!A0{event}\"]\n[Black \"{event}\"]\n\
         [WhiteElo \"2500\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. {event} Nf3 1-0\n\n\
         [Event \"{event}\"]\n[White \"+1\"]\n[Black \"@x\"]\n[Variant \"{event}\"]\n\n1. e4 *\n\n\
         [Event \"x\"]\n[White \"-2+3\"]\n[Black \"-5\"]\n[FEN \"{event}\"]\n\n1. d4 Qh4 *\n"
    );
    fs::write(dir.path().join("games.pgn"), &games).unwrap();
    fs::write(dir.path().join("lines.pgn"), "1. d4 d5 *\n").unwrap();
    fs::write(
        dir.path().join("suite.epd"),
        format!("{event} w KQkq - 0 1\n"),
    )
    .unwrap();
    let run = |command: &str| {
        let output = crate::common::run(dir.path(), command);
        [output.stdout, output.stderr].concat()
    };
    run("make-book games.pgn --min-game 1 --explorer games.idx");
    for command in [
        "make-book games.pgn --min-game 1 --explorer again.idx",
        "make-book games.pgn --min-game 1 --strict --bin x.bin",
        "games games.idx",
        "games games.idx --json",
        "show games.idx",
        "openings games.idx",
        "games games.idx --player cmdd",
        "repertoire new games.pgn --reference lines.pgn",
        "repertoire new games.pgn --reference lines.pgn --json",
        "repertoire check games.pgn lines.pgn --color white",
        "verify suite.epd",
        "suite-report suite.epd games.pgn",
        "show \u{1b}[31m.bin",
        "show \u{9b}31m.bin",
        "games games.idx --fen \u{1b}[31m",
    ] {
        let said = run(command);
        let said = String::from_utf8(said).unwrap();
        let found = said.chars().find(|c| {
            c.is_control() && *c != '\n' && *c != '\t' || "\u{202e}\u{2066}".contains(*c)
        });
        assert_eq!(found, None, "{command}: {said}");
    }
    run("repertoire new games.pgn --reference lines.pgn --out new.csv");
    let table = fs::read_to_string(dir.path().join("new.csv")).unwrap();
    assert!(table.contains("'=cmd|"), "{table}");
    assert!(
        !table.contains(['\u{1b}', '\u{9b}', '\u{7f}', '\u{202e}']),
        "{table}"
    );
}

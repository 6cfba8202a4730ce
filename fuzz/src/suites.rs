//! Suites and tables of a book from arbitrary positions, and scripts that edit a book. The input is a text, a null byte, and
//! the moves of a book.

use std::path::Path;

use polybook::{
    book::{Book, Script, begin_book, edit_book, verify},
    convert::{ConvertBook, Suite, SuiteFormat, TableFormat, read_starts},
    counts::Memory,
    position::Variant,
    progress::Meter,
    storage::output::AtomicFile,
};

use super::{Room, books::sensible, choice};

/// The maximum number of bytes of the book's moves, four for each move.
const MOST_OF_BOOK: usize = 400;

pub fn run(data: &[u8]) {
    let (options, rest) = choice(data);
    let (plies, rest) = choice(rest);
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let moves = parts.next().unwrap_or_default();
    let moves = &moves[..moves.len().min(MOST_OF_BOOK)];
    let room = Room::new();
    let path = room.file("book.bin", &sensible(moves));
    let Ok(book) = Book::open(&path) else { return };
    let bit = |number: u8| options >> number & 1 == 1;
    let suite = Suite {
        plies: usize::from(plies % 5)..=usize::from(plies % 5) + usize::from(plies >> 4 & 1),
        limit: bit(0).then_some(3),
        seed: bit(1).then_some(options.into()),
        balance: bit(2).then_some((40.0, 60.0)),
        draw_rate: None,
        evals: None,
        quiet: plies & 32 > 0,
        position: None,
        per_eco: (plies & 64 > 0).then_some(1),
        tags: plies & 128 > 0,
        unique: bit(3),
        opcodes: bit(4),
        starts: read_starts(&text, Variant::Standard).unwrap_or_default(),
    };
    // Use the whole text or, three times as often, a part of it.
    let part = options >> 6;
    let does = |this: u8| part == 0 || part == this;
    if does(1) {
        made(&room, &book, &suite);
    }
    if does(2) {
        tables(&room, &book, &suite);
    }
    if does(3) {
        scripted(&room, &path, &text);
    }
}

/// Returns an output after checking that a small memory budget gives the same output.
fn same(
    room: &Room,
    book: &Book,
    name: &str,
    make: &dyn Fn(&ConvertBook<'_>, AtomicFile) -> polybook::Result<u64>,
) -> Option<(u64, String)> {
    let little = Memory {
        bytes: 0,
        ..Memory::default()
    };
    let convert = ConvertBook::new(book, Variant::Standard);
    let again = ConvertBook {
        memory: little,
        ..ConvertBook::new(book, Variant::Standard)
    };
    let [first, second] = ["a", "b"].map(|prefix| room.path(&format!("{prefix}.{name}")));
    let out = |path| AtomicFile::create(path).unwrap();
    let made = make(&convert, out(&first));
    let made_again = make(&again, out(&second));
    assert_eq!(made.is_ok(), made_again.is_ok());
    if let Ok(entries) = made {
        let text = std::fs::read_to_string(&first).unwrap();
        assert!(text == std::fs::read_to_string(second).unwrap());
        return Some((entries, text));
    }
    assert!(!first.exists() && !second.exists());
    None
}

/// Checks that a suite can be read as starting positions of lines.
fn made(room: &Room, book: &Book, suite: &Suite) {
    let most = suite.limit.unwrap_or(usize::MAX) as u64;
    let epd = same(room, book, "epd", &|convert, out| {
        Ok(convert.to_suite(out, suite, SuiteFormat::Epd)?.entries)
    });
    if let Some((entries, text)) = epd {
        let positions = read_starts(&text, Variant::Standard).expect("a suite has positions");
        assert!(entries <= most && positions.len() as u64 == entries);
        assert!(!suite.opcodes || text.lines().all(|line| line.ends_with(';')));
    }
    let pgn = same(room, book, "pgn", &|convert, out| {
        Ok(convert.to_suite(out, suite, SuiteFormat::Pgn)?.entries)
    });
    if let Some((entries, text)) = pgn {
        assert!(entries <= most && text.matches("[Event ").count() as u64 == entries);
    }
    assert!(suite.balance.is_none() || !room.path("a.pgn").exists());
}

/// Checks that a table contains each move of the records once.
fn tables(room: &Room, book: &Book, suite: &Suite) {
    let records = book.len();
    for name in ["csv", "jsonl"] {
        let table = same(room, book, name, &|convert, out| {
            let format = match name {
                "csv" => TableFormat::Csv,
                _ => TableFormat::Jsonl,
            };
            Ok(convert.to_table(out, &suite.starts, format)?.entries)
        });
        let (entries, text) = table.expect("a book that is sorted has a table");
        let heads = u64::from(name == "csv");
        assert!(entries <= records && text.lines().count() as u64 == entries + heads);
    }
}

/// Checks that a valid script gives a sorted book, and that an invalid one leaves no book.
fn scripted(room: &Room, path: &Path, text: &str) {
    let variant = Variant::Standard;
    let mut script = Script::new(variant, variant.start());
    let lines: Result<Vec<_>, _> = text.lines().map(|line| script.line(line)).collect();
    let Ok(edits) = lines else { return };
    let edits: Vec<_> = edits.into_iter().flatten().collect();
    let out = room.path("edited.bin");
    let (memory, meter) = (Memory::default(), Meter::default());
    let file = begin_book(&out, false).unwrap();
    match edit_book(
        Book::open(path).unwrap(),
        &edits,
        variant,
        file,
        &memory,
        &meter,
    ) {
        Ok(summary) => {
            assert_eq!(Book::open(&out).unwrap().len(), summary.entries);
            // If most records are not moves, the data cannot be verified.
            let is_sound = verify(path, &memory).is_ok_and(|found| found.faults.is_empty());
            assert!(!is_sound || verify(&out, &memory).unwrap().faults.is_empty());
        }
        Err(_) => assert!(!out.exists()),
    }
}

//! Books and headers: arbitrary bytes as a book, as a header, and as two books to merge.

use std::path::Path;

use polybook::{
    book::{
        Book, BookFault, Entry, Filter, MergePolicy, PositionEdit, begin_book, differences,
        edit_book, filter_books, fix, header, lines, merge_books, verify,
    },
    counts::Memory,
    position::{Variant, key},
    progress::Meter,
    storage::output::AtomicFile,
    tree::{Limits, Tree},
};
use shakmaty::{Chess, Color};

use super::{Room, choice};

/// The maximum number of records of a book whose lines are written, because the number of lines grows exponentially.
const MOST_RECORDS_OF_LINES: u64 = 64;

/// The maximum number of bytes of lines that are checked.
const MOST_OF_LINES: usize = 1 << 16;

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    match kind % 4 {
        0 => header_text(rest),
        1 => merged(rest),
        2 => book(rest),
        _ => book(&sensible(rest)),
    }
}

fn header_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(parsed) = header::parse(&text) else {
        return;
    };
    if let Ok(made) = header::create(&parsed.variants, &parsed.comment) {
        let again = header::parse(&made).unwrap();
        assert_eq!(
            (again.variants, again.comment),
            (parsed.variants, parsed.comment)
        );
    }
}

/// Returns a book whose keys belong to positions, so that its lines can be walked.
pub(super) fn sensible(data: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    let mut pos = Chess::default();
    for bytes in data.chunks_exact(4) {
        let legal = shakmaty::Position::legal_moves(&pos);
        if legal.is_empty() || bytes[0] == 0 {
            pos = Chess::default();
            continue;
        }
        let mv = legal[usize::from(bytes[1]) % legal.len()];
        records.push(Entry {
            key: key(&pos),
            mv: mv.into(),
            weight: u16::from_be_bytes([bytes[2], bytes[3]]),
            learn: 0,
        });
        shakmaty::Position::play_unchecked(&mut pos, mv);
    }
    records.sort_by_key(|entry| entry.key);
    records.iter().flat_map(|entry| entry.to_bytes()).collect()
}

fn book(bytes: &[u8]) {
    let room = Room::new();
    let path = room.file("book.bin", bytes);
    let book = match Book::open(&path) {
        Ok(book) => book,
        Err(err) => {
            let is_foreign = err.to_string().contains("not a Polyglot book");
            assert!(is_foreign || !bytes.len().is_multiple_of(16), "{err}");
            return;
        }
    };
    let in_memory = Book::from_bytes(bytes.to_vec()).unwrap();
    assert_eq!(book.len(), bytes.len() as u64 / 16);
    assert_eq!(header::read(&path).ok(), header::read(&path).ok());
    // The results of probing are unspecified if the book is not sorted.
    let is_sorted = in_memory.iter().map(|entry| entry.unwrap().key).is_sorted();
    let probed = if is_sorted { 64 } else { 0 };
    for entry in in_memory.iter().take(probed).map(Result::unwrap) {
        let moves = |book: &Book| book.moves(entry.key).unwrap();
        assert_eq!(moves(&book), moves(&in_memory));
    }
    let _ = book.moves_of(&Variant::Crazyhouse.start()).unwrap().len();
    mended(&room, &path, bytes);
    headers(&room, bytes);
    if is_sorted && book.len() <= MOST_RECORDS_OF_LINES {
        walked(&book);
        grown(&book);
        edited(&room, &path);
        filtered(&room, &path, bytes.last().copied().unwrap_or_default());
    }
}

/// Checks that a repaired copy has no faults, and that repairing it again changes nothing.
fn mended(room: &Room, path: &Path, bytes: &[u8]) {
    let memory = Memory::default();
    let Ok(found) = verify(path, &memory) else {
        return;
    };
    let (once, twice) = (room.path("once.bin"), room.path("twice.bin"));
    fix(path, begin_book(&once, false).unwrap(), &memory).unwrap();
    assert_eq!(verify(&once, &memory).unwrap().faults, [], "{found:?}");
    fix(&once, begin_book(&twice, false).unwrap(), &memory).unwrap();
    let once = std::fs::read(once).unwrap();
    assert!(once == std::fs::read(twice).unwrap());
    assert!(
        once.len() <= bytes.len()
            || found
                .faults
                .iter()
                .any(|fault| matches!(fault, BookFault::Header(_)))
    );
}

/// Checks that changing the header does not change the records.
fn headers(room: &Room, bytes: &[u8]) {
    let copy = room.file("headed.bin", bytes);
    if header::update(&copy, None, Some("a\nb")).is_ok() {
        let text = header::read(&copy).unwrap();
        assert_eq!(header::parse(&text).unwrap().comment, "a\nb");
        header::remove(&copy).unwrap();
        let bare = std::fs::read(copy).unwrap();
        assert!(bytes.ends_with(&bare));
        assert!(
            bare.chunks_exact(16)
                .next()
                .is_none_or(|first| first[..8] != [0; 8])
        );
    }
}

/// Counts and writes the lines of a book.
fn walked(book: &Book) {
    let _ = lines::count(book, &Memory::default(), &Meter::default()).unwrap();
    let _ = lines::reachable(book, &Memory::default(), &Meter::default()).unwrap();
    for side in [Color::White, Color::Black] {
        let mut out = Bounded(MOST_OF_LINES);
        let _ = lines::write(
            book,
            side,
            Variant::Standard.start(),
            &mut out,
            "lines".as_ref(),
            &Meter::default(),
        );
    }
}

/// A writer that fails after a number of bytes.
struct Bounded(usize);

impl std::io::Write for Bounded {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(buf.len())
            .ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a tree of the book in every format.
fn grown(book: &Book) {
    let limits = Limits {
        max_ply: Some(12),
        moves: Some(500),
        ..Limits::default()
    };
    let meter = Meter::default();
    let tree = Tree::new(book, Variant::Standard.start(), limits, &meter);
    let path = Path::new("tree");
    let mut out = Vec::new();
    let moves = [
        tree.write_text(&mut out, path).unwrap(),
        tree.write_pgn(&mut out, path).unwrap(),
        tree.write_jsonl(&mut out, path).unwrap(),
    ];
    assert!(moves.iter().all(|moves| *moves <= 500));
}

/// Edits a book, and checks that nothing else changes and that the difference is the edit.
fn edited(room: &Room, path: &Path) {
    let out = room.path("edited.bin");
    let pos = Variant::Standard.start();
    let change = |text: &str| PositionEdit {
        pos: pos.clone(),
        changes: vec![text.parse().unwrap()],
    };
    let edit = |edits: &[PositionEdit]| {
        // If the records are not moves, the output may not be recognized as a book, and is not replaced.
        if out.exists() {
            std::fs::remove_file(&out).unwrap();
        }
        edit_book(
            Book::open(path).unwrap(),
            edits,
            Variant::Standard,
            begin_book(&out, false).unwrap(),
            &Memory::default(),
            &Meter::default(),
        )
    };
    let before = Book::open(path).unwrap();
    let summary = edit(&[change("set a3=7")]).unwrap();
    let after = Book::open(&out).unwrap();
    let meter = Meter::default();
    let found: Vec<_> = differences(&before, &after, &meter)
        .map(Result::unwrap)
        .collect();
    let other = found.iter().any(|difference| difference.key != key(&pos));
    assert!(!other && found.len() <= 1, "{found:?}");
    assert_eq!(
        summary.added,
        u64::from(
            before
                .moves(key(&pos))
                .unwrap()
                .iter()
                .all(|entry| entry.mv.0 != 0o1020)
        )
    );
    if edit(&[change("remove-position")]).is_ok() {
        // If only impossible moves are left, the file does not count as a book.
        match Book::open(&out) {
            Ok(book) => assert_eq!(book.moves(key(&pos)).unwrap().len(), 0),
            Err(err) => assert!(err.to_string().contains("not a Polyglot book"), "{err}"),
        }
    }
}

/// Checks that a filtered book is sorted, and that filtering it again changes nothing.
fn filtered(room: &Room, path: &Path, options: u8) {
    let bit = |number: u8| options >> number & 1 == 1;
    let filter = Filter {
        min_weight: u16::from(options >> 5) * 100,
        min_share: if bit(0) { 10.0 } else { 0.0 },
        best: bit(1).then_some(2),
        max_ply: bit(2).then_some(6),
        reachable: bit(3),
        normalize: bit(4),
        max_loss: None,
        eval_weights: None,
        expand: None,
    };
    let (once, twice) = (room.path("filtered.bin"), room.path("again.bin"));
    let keep = |from: &Path, to: &Path| {
        filter_books(
            &[Book::open(from)?],
            begin_book(to, false)?,
            &filter,
            None,
            &Memory::default(),
            &Meter::default(),
        )
    };
    let Ok(summary) = keep(path, &once) else {
        assert!(!once.exists());
        return;
    };
    assert_eq!(keep(&once, &twice).unwrap().written, summary.written);
    let records = |path: &Path| -> Vec<Entry> {
        let book = Book::open(path).unwrap();
        book.iter()
            .map(Result::unwrap)
            .filter(|entry| entry.key != 0)
            .collect()
    };
    assert_eq!(records(&once), records(&twice));
}

/// Checks that merging two books gives a sorted book with the positions of both.
fn merged(data: &[u8]) {
    let (cut, rest) = choice(data);
    let middle = (rest.len() / 16 * usize::from(cut) / 256) * 16;
    let (first, second) = rest.split_at(middle);
    let room = Room::new();
    let inputs = [room.file("a.bin", first), room.file("b.bin", second)];
    for policy in [MergePolicy::Sum, MergePolicy::First] {
        let out = room.path("out.bin");
        let books: polybook::Result<Vec<Book>> = inputs.iter().map(Book::open).collect();
        let merged = books.and_then(|books| {
            let file = AtomicFile::create(&out)?;
            merge_books(&books, file, policy, &Meter::default())
        });
        if merged.is_err() {
            assert!(!out.exists());
            continue;
        }
        let keys: Vec<u64> = Book::open(&out)
            .unwrap()
            .iter()
            .map(|entry| entry.unwrap().key)
            .collect();
        assert!(keys.is_sorted());
        std::fs::remove_file(out).unwrap();
    }
}

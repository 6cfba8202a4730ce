//! OOBS databases: damaged SQLite files, and rows with arbitrary values.

use std::{
    path::Path,
    sync::{OnceLock, atomic::AtomicBool},
};

use polybook::{
    MakeBook,
    convert::{Convert, Suite, SuiteFormat, TableFormat},
    counts::Memory,
    obs::{Obs, ObsWriter, merge_databases},
    pgn::Input,
    position::Variant,
    storage::output::AtomicFile,
};
use rusqlite::{Connection, types::Value};

use super::{Room, choice};

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let room = Room::new();
    let path = room.path("book.obs.db3");
    match kind % 3 {
        0 => drop(room.file("book.obs.db3", rest)),
        1 => drop(room.file("book.obs.db3", &edited(rest))),
        _ => write_rows(&path, rest),
    }
    used(&room, &path, kind / 3 % 4);
}

/// Returns a valid database with modified bytes. Each group of five bytes gives an offset and a new value.
fn edited(edits: &[u8]) -> Vec<u8> {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    let mut bytes = SOUND.get_or_init(sound).clone();
    for edit in edits.chunks_exact(4).take(64) {
        let place =
            usize::from(edit[0] % 8) << 16 | usize::from(edit[1]) << 8 | usize::from(edit[2]);
        let place = place % bytes.len();
        bytes[place] = edit[3];
    }
    bytes
}

fn sound() -> Vec<u8> {
    let room = Room::new();
    let pgn = room.file("a.pgn", b"[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 1-0\n");
    let path = room.path("a.obs.db3");
    MakeBook::new([Input::file(&pgn)])
        .min_game(1)
        .obs(&path)
        .run()
        .unwrap();
    std::fs::read(path).unwrap()
}

/// Writes rows with valid and invalid values, each from three bytes or more.
fn write_rows(path: &Path, data: &[u8]) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
         CREATE TABLE Book(ID INTEGER PRIMARY KEY AUTOINCREMENT, EPD TEXT NOT NULL, Move TEXT, Active INTEGER DEFAULT 1, \
         Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT); CREATE TABLE Info(Name TEXT UNIQUE NOT NULL, Value TEXT); \
         BEGIN;",
    )
    .unwrap();
    let mut bytes = data.iter().copied();
    let (name, variant) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
    if name & 1 == 1 {
        let variant = Variant::ALL[usize::from(variant) % Variant::ALL.len()];
        db.execute("INSERT INTO Info VALUES ('Variant', ?1)", [variant.name()])
            .unwrap();
    }
    while let Some(next) = bytes.next() {
        let mut value = || value(&mut bytes);
        let epd = match next % 4 {
            0 => Value::Text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -".into()),
            1 => Value::Text("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1".into()),
            2 => Value::Text("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -".into()),
            _ => not_null(value()),
        };
        let mv = match next / 4 % 4 {
            0 => Value::Text("e2e4".into()),
            1 => Value::Text("e7e5".into()),
            2 => Value::Text("Nf3".into()),
            _ => value(),
        };
        let row = [epd, mv, value(), value(), value(), value(), value()];
        db.execute(
            "INSERT INTO Book(EPD, Move, Active, Win, Draw, Loss, Comment) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            rusqlite::params_from_iter(row),
        )
        .unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
}

fn not_null(value: Value) -> Value {
    match value {
        Value::Null => Value::Text(String::new()),
        value => value,
    }
}

fn value(bytes: &mut impl Iterator<Item = u8>) -> Value {
    let kind = bytes.next().unwrap_or(0);
    match kind % 8 {
        0 => Value::Null,
        1 | 2 => Value::Integer(i64::from(bytes.next().unwrap_or(0))),
        3 => Value::Integer(1 << (bytes.next().unwrap_or(0) % 64)),
        4 => Value::Real(f64::from(bytes.next().unwrap_or(0)) * 1e17),
        5 => Value::Blob(bytes.by_ref().take(usize::from(kind / 8)).collect()),
        6 => Value::Integer(-1),
        _ => {
            let text: Vec<u8> = bytes.by_ref().take(usize::from(kind / 8)).collect();
            Value::Text(String::from_utf8_lossy(&text).into_owned())
        }
    }
}

/// Uses a database: in all ways or, three times as often, in one way.
fn used(room: &Room, path: &Path, part: u8) {
    let does = |this: u8| part == 0 || part == this;
    let Ok(obs) = Obs::open(path) else { return };
    let _ = obs.moves(&Variant::Standard.start());
    if let Ok(rows) = obs.rows() {
        let _ = rows.count();
    }
    let convert = Convert {
        threads: 1,
        ..Convert::new(obs)
    };
    let out = |name: &str| AtomicFile::create(room.path(name)).unwrap();
    if does(1) {
        let _ = convert.to_bin(out("out.bin"));
        let _ = convert.to_table(out("out.csv"), TableFormat::Csv);
        let _ = convert.to_table(out("out.jsonl"), TableFormat::Jsonl);
    }
    if does(2) {
        let suite = Suite {
            plies: 2..=2,
            unique: true,
            opcodes: true,
            ..Suite::default()
        };
        let _ = convert.to_suite(out("out.pgn"), &suite, SuiteFormat::Pgn);
        let _ = convert.to_suite(out("out.epd"), &suite, SuiteFormat::Epd);
    }
    if does(3) {
        merged(room, path);
    }
}

fn merged(room: &Room, path: &Path) {
    let merged = room.path("merged.obs.db3");
    let writer = ObsWriter::create(&merged, true).unwrap();
    let memory = Memory {
        temp_dir: room.dir().to_owned(),
        ..Memory::default()
    };
    let made = merge_databases(&[path], writer, &memory, &AtomicBool::new(false));
    if let Ok((summary, finished)) = made {
        finished.commit().unwrap();
        let rows = Obs::open(&merged).unwrap().rows().unwrap();
        let found: Vec<_> = rows.collect();
        assert!(found.iter().any(Result::is_err) || found.len() as u64 == summary.rows);
    }
}

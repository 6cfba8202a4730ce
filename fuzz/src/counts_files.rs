//! A directory of counts with damaged files: an error, or all half-moves that were counted.

use std::{fs, sync::OnceLock};

use polybook::{MakeBook, counts::CountsDirectory, pgn::Input};

use super::{Room, choice};

const GAMES: &str = "\
[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n\n\
[Result \"0-1\"]\n\n1. e4 c5 2. Nf3 d6 0-1\n\n\
[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n[Result \"1/2-1/2\"]\n\n1. e4 Kd7 1/2-1/2\n";

/// Half-moves of the games.
const PLIES: u64 = 11;

/// The files of sound counts, by name.
fn sound() -> &'static [(String, Vec<u8>)] {
    static SOUND: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let room = Room::new();
        let pgn = room.file("games.pgn", GAMES.as_bytes());
        let dir = room.path("counts");
        MakeBook::new([Input::file(&pgn)])
            .counts(&dir)
            .run()
            .unwrap();
        let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    })
}

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let mut files = sound().to_vec();
    match kind % 2 {
        0 => edit(&mut files, rest),
        // A part that is anything, and nothing that says what it should be.
        _ => files = vec![("part-000.parquet".to_owned(), rest.to_vec())],
    }
    let room = Room::new();
    let dir = room.path("counts");
    fs::create_dir(&dir).unwrap();
    for (name, bytes) in &files {
        fs::write(dir.join(name), bytes).unwrap();
    }
    let made = MakeBook::new([Input::file(&dir)])
        .threads(1)
        .memory(1 << 20)
        .obs(room.path("book.obs.db3"))
        .allow_empty(true)
        .run();
    if let (0, Ok(report)) = (kind % 2, made) {
        assert_eq!(report.totals.plies, PLIES);
    }
    let Ok(counts) = CountsDirectory::open(&dir) else {
        return;
    };
    for part in counts.parts() {
        let _ = part.read(&mut |rows| {
            assert!(rows.iter().all(|row| row.mv.is_well_formed()));
            Ok(())
        });
    }
    if let Some(starts) = counts.starts() {
        let _ = starts.read_starts(&mut |_| Ok(()));
    }
}

/// Bytes changed here and there: each four bytes say in which file, where, and to what.
fn edit(files: &mut [(String, Vec<u8>)], edits: &[u8]) {
    let count = files.len();
    for edit in edits.chunks_exact(4).take(32) {
        let (_, bytes) = &mut files[usize::from(edit[0] & 0x7f) % count];
        let place = usize::from(u16::from_be_bytes([edit[1], edit[2]])) % (bytes.len() + 1);
        if edit[0] & 0x80 != 0 {
            bytes.truncate(place);
        } else if let Some(byte) = bytes.get_mut(place) {
            *byte ^= edit[3];
        }
    }
}

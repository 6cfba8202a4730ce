//! A directory of counts with damaged files: reading it fails, or returns all counted half-moves.

use std::sync::OnceLock;

use polybook::{
    MakeBook,
    counts::{CountsDirectory, Grouping},
    pgn::Input,
};

use super::{
    Room, choice,
    damage::{Files, edit, files_of, write_files},
};

const GAMES: &str = "\
[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n\n\
[Result \"0-1\"]\n\n1. e4 c5 2. Nf3 d6 0-1\n\n\
[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n[Result \"1/2-1/2\"]\n\n1. e4 Kd7 1/2-1/2\n";

/// The number of half-moves in the games.
const PLIES: u64 = 11;

/// Returns the files of undamaged counts.
fn sound(by: Grouping) -> &'static Files {
    static SOUND: [OnceLock<Files>; 2] = [OnceLock::new(), OnceLock::new()];
    SOUND[usize::from(by.is_none())].get_or_init(|| {
        let room = Room::new();
        let pgn = room.file("games.pgn", GAMES.as_bytes());
        let dir = room.path("counts");
        MakeBook::new([Input::file(&pgn)])
            .counts(&dir)
            .by(by)
            .run()
            .unwrap();
        files_of(&dir)
    })
}

/// Returns the same files without checksums of the parts, so that modified parts are read.
fn without_checksums(by: Grouping) -> Files {
    let mut files = sound(by).clone();
    for (_, bytes) in files.iter_mut().filter(|(name, _)| name == "_counts.json") {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        *bytes = text.replace("crc32", "other").into_bytes().into();
    }
    files
}

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let is_told = kind % 3 < 2;
    let by = match kind % 6 / 3 {
        0 => Grouping::default(),
        _ => Grouping {
            speed: true,
            rating: true,
            month: true,
        },
    };
    let files = match kind % 3 {
        0 => edited(sound(by).clone(), rest),
        1 => edited(without_checksums(by), rest),
        // A part with arbitrary bytes, and no sidecar.
        _ => vec![("part-000.parquet".to_owned(), rest.to_vec().into())],
    };
    let room = Room::new();
    let dir = room.path("counts");
    write_files(&dir, &files);
    let run = MakeBook::new([Input::file(&dir)])
        .threads(1)
        .memory(4 << 20)
        .allow_empty(true);
    let outputs = [
        run.clone().obs(room.path("book.obs.db3")),
        run.counts(room.path("added")).by(by).prune_counts(2),
    ];
    for made in outputs.map(|run| run.run()) {
        if let (true, Ok(report)) = (is_told, made) {
            assert_eq!(report.totals.plies, PLIES);
        }
    }
    let Ok(counts) = CountsDirectory::open(&dir) else {
        return;
    };
    for part in counts.parts() {
        let _ = part.read(&mut |rows| {
            assert!(rows.iter().all(|row| row.mv.is_well_formed()));
            Ok(())
        });
        let _ = part.read_classed(by, &mut |rows| {
            assert!(
                rows.iter()
                    .all(|row| row.means.rating().games <= row.row.stats.games())
            );
            Ok(())
        });
    }
    if let Some(starts) = counts.starts() {
        let _ = starts.read_starts(&mut |_| Ok(()));
    }
}

fn edited(mut files: Files, edits: &[u8]) -> Files {
    edit(&mut files, edits);
    files
}

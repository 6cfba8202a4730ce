//! Makes outputs of the same games with other numbers of threads, another memory budget. The bytes must be equal.

use std::{collections::BTreeMap, fs, path::Path};

use polybook::{
    ErrorKind, FileKind,
    position::{Variant, VariantChoice},
};

use super::{Room, choice, outputs::Outputs};

pub fn run(data: &[u8]) {
    let (options, pgn) = choice(data);
    let room = Room::new();
    let path = room.file("games.pgn", pgn);
    let variant = VariantChoice::Only(Variant::Standard);
    let is_zstd = FileKind::of_start(pgn) == FileKind::Zstd;
    let one = Outputs::named(&room, "one", variant, options);
    let many = Outputs::named(&room, "many", variant, options);
    let first = one.make(&path, |run| run);
    let second = many.make(&path, |run| run.threads(3).memory(1));
    match (first, second) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first.totals.games, second.totals.games);
            assert_eq!(first.rejected, second.rejected);
            for (one, many) in one.paths().zip(many.paths()) {
                assert!(files(one) == files(many), "{}", one.display());
            }
        }
        // The message contains the memory budget, so only the kinds are compared.
        (Err(first), Err(second)) if is_zstd && first.kind() == ErrorKind::TooLarge => {
            assert_eq!(first.kind(), second.kind());
        }
        // A zstd frame may need more memory than the smaller budget allows, whatever it contains.
        (_, Err(err)) if is_zstd && err.kind() == ErrorKind::TooLarge => {}
        (Err(first), Err(second)) => {
            let text = |err: polybook::Error| err.to_string().replace("many.", "one.");
            assert_eq!(text(first), text(second));
        }
        (first, second) => panic!("{:?} and {:?}", first.err(), second.err()),
    }
}

/// Returns the contents of a file, or of all files of a directory.
fn files(path: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    if path.is_file() {
        return [("".into(), fs::read(path).unwrap())].into();
    }
    fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name(), fs::read(entry.path()).unwrap())
        })
        .collect()
}

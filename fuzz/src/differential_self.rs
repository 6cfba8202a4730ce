//! Makes outputs of the same games with other numbers of threads, another memory budget and other batches. The bytes must be equal.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::Path,
};

use polybook::{
    ErrorKind, FileKind,
    pgn::{Cutter, GameEnd, GameReader, Token},
    position::{Variant, VariantChoice},
};

use super::{Room, choice, outputs::Outputs};

pub fn run(data: &[u8]) {
    let (options, pgn) = choice(data);
    cuts(pgn);
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

/// Checks that the games do not depend on where the stream is cut and how its bytes arrive.
fn cuts(pgn: &[u8]) {
    let whole = games(Cutter::new(pgn, pgn.len() + 1));
    for (batch, piece) in [(1, 1), (1, 64), (100, 7), (1000, 4096)] {
        let stream = BufReader::with_capacity(piece, pgn);
        assert_eq!(games(Cutter::new(stream, batch)), whole, "{batch} {piece}");
    }
}

/// Returns for each game its offset, its tags, and the words of its movetext.
fn games(mut cutter: Cutter<impl BufRead>) -> Vec<(u64, Vec<String>)> {
    let mut found = Vec::new();
    while let Some(batch) = cutter.next_batch().unwrap() {
        let mut reader = GameReader::new(&batch.text);
        while reader.next_game() {
            let mut words: Vec<String> = reader
                .tags()
                .iter()
                .map(|tag| format!("{:?}={:?}", tag.name, tag.value))
                .collect();
            let start = batch.offset + reader.game_offset() as u64;
            loop {
                let token = reader.next_token();
                words.push(word(token, batch.offset));
                if matches!(token, Token::End(_)) {
                    break;
                }
            }
            found.push((start, words));
        }
    }
    found
}

/// Returns a token with its offset in the stream.
fn word(token: Token<'_>, batch: u64) -> String {
    let place = |offset: usize| batch + offset as u64;
    match token {
        Token::Move { text, offset } => format!("{} {text:?}", place(offset)),
        Token::Unreadable { text, offset } => format!("{} unreadable {text:?}", place(offset)),
        Token::NullMove { offset } => format!("{} null", place(offset)),
        Token::End(GameEnd::Broken(flaw)) => format!("{} {}", place(flaw.offset), flaw.reason),
        other => format!("{other:?}"),
    }
}

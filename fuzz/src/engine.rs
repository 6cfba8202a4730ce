//! Arbitrary text as UCI commands: each line of the output must belong to the protocol, and each `go` gets at most one
//! answer.

use std::{
    fs::{self, File},
    io::Cursor,
};

use polybook::{
    MakeBook,
    book::Book,
    engine::{EngineSource, Settings, SourceEngine},
    pgn::Input,
};

use super::Room;

const GAMES: &[u8] = b"1. e4 e5 2. Nf3 Nc6 1-0\n\n1. e4 c5 2. Nf3 1/2-1/2\n\n1. d4 d5 0-1\n";

pub fn run(data: &[u8]) {
    let room = Room::new();
    let (pgn, bin) = (room.file("games.pgn", GAMES), room.path("book.bin"));
    let make = MakeBook::new([Input::file(pgn)]).min_game(1).threads(1);
    make.bin(&bin).run().expect("the games are sound");
    let book = Book::open(&bin).expect("it was just written");
    let engine = SourceEngine {
        sources: vec![(EngineSource::Moves(Box::new(book)), None)],
        settings: Settings {
            seed: 1,
            ..Settings::default()
        },
        second_engine: None,
    };
    let path = room.path("said");
    let output = File::create(&path).expect("the directory is writable");
    engine
        .run(Cursor::new(data.to_vec()), output)
        .expect("a file can be written");
    let said = fs::read_to_string(&path).expect("the protocol is text");
    let known = ["id ", "option ", "uciok", "readyok", "info ", "bestmove "];
    let is_known = |line: &str| known.iter().any(|word| line.starts_with(word));
    assert!(said.lines().all(is_known), "{said}");
    let asked = String::from_utf8_lossy(data).matches("go").count();
    assert!(said.matches("\nbestmove").count() <= asked, "{said}");
}

//! Evaluations from arbitrary text must survive storing and writing as EPDs. Arbitrary bytes must be a valid store or be
//! rejected.

use std::path::Path;

use polybook::{
    evals::{Evals, EvalsFormat, MakeEvals},
    pgn::Input,
};

use super::{Room, choice};

const SOUND: &[u8] =
    b"1. e4 {[%eval 0.1]} e5 {[%eval 0.2,9]} 2. Nf3 {[%eval #4]} Nc6 {[%eval -3.0]} *";

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let room = Room::new();
    match kind % 2 {
        0 => of_text(&room, rest),
        _ => damaged(&room, rest),
    }
}

/// Returns a run on one thread.
fn make(input: &Path) -> MakeEvals {
    MakeEvals {
        threads: 1,
        force: true,
        ..MakeEvals::new([Input::file(input)])
    }
}

/// Reads a text as PGN, EPDs or lines of Lichess.
fn of_text(room: &Room, text: &[u8]) {
    let input = room.file("input", text);
    let [first, second, epd, again] = ["1", "2", "1.epd", "2.epd"].map(|name| room.path(name));
    let Ok(report) = make(&input).run(&first, EvalsFormat::Store) else {
        return;
    };
    let evals = Evals::open(&first).expect("it was just written");
    evals.check().expect("it was just written");
    assert!(evals.len() == report.positions && report.positions <= report.evaluations);
    make(&first)
        .run(&epd, EvalsFormat::Epd)
        .expect("all positions are sound");
    make(&epd)
        .run(&second, EvalsFormat::Store)
        .expect("an EPD is read");
    make(&second)
        .run(&again, EvalsFormat::Epd)
        .expect("all positions are sound");
    assert_eq!(std::fs::read(epd).unwrap(), std::fs::read(again).unwrap());
}

/// Opens a store with modified bytes. Each group of three bytes gives an offset and a new value.
fn damaged(room: &Room, edits: &[u8]) {
    let (pgn, path) = (room.file("games.pgn", SOUND), room.path("evals"));
    make(&pgn).run(&path, EvalsFormat::Store).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    for edit in edits.chunks_exact(3).take(32) {
        let place = usize::from(u16::from_be_bytes([edit[0], edit[1]])) % bytes.len();
        bytes[place] ^= edit[2];
    }
    let path = room.file("changed", &bytes);
    if let Ok(evals) = Evals::open(&path) {
        let keys = bytes
            .chunks_exact(8)
            .map(|key| u64::from_be_bytes(key.try_into().unwrap()));
        keys.for_each(|key| drop(evals.find(key)));
        let _ = make(&path).run(&room.path("epd"), EvalsFormat::Epd);
    }
}

//! PGN through the whole pipeline with all outputs. The first byte chooses options; the rest is the PGN file.

use polybook::position::{Variant, VariantChoice};

use super::{Room, choice, outputs::Outputs};

pub fn run(data: &[u8]) {
    let (options, pgn) = choice(data);
    let room = Room::new();
    check(&room, pgn, VariantChoice::Only(Variant::Standard), options);
}

/// Makes all outputs and checks them. If the run fails, checks that it left no outputs.
pub fn check(room: &Room, pgn: &[u8], variant: VariantChoice, options: u8) {
    let pgn = room.file("games.pgn", pgn);
    let outputs = Outputs::named(room, "made", variant, options);
    match outputs.make(&pgn, |run| run) {
        Ok(report) => outputs.check(&report),
        Err(err) => {
            assert_eq!(err.to_string().lines().count(), 1, "{err}");
            let left = room.dir().read_dir().unwrap().count();
            assert_eq!(left, 1, "{err}: something is left");
        }
    }
}

//! Positions and moves as text: FENs, EPDs, lines of moves, single moves, and scripts that edit books.

use polybook::{
    book::Script,
    position::{
        BookMove, Keyed, Rules, Variant, from_text, identity, key, parse_fen, read_move, uci,
        write_epd,
    },
};
use shakmaty::san::SanPlus;

use super::choice;

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let text = String::from_utf8_lossy(rest);
    // The text contains a position and moves, or only one of both.
    let (fen, line) = match text.split_once('|') {
        Some((fen, line)) => (Some(fen), Some(line)),
        None if kind & 1 == 0 => (Some(&*text), None),
        None => (None, Some(&*text)),
    };
    if let Ok(pos) = from_text(fen, line) {
        check(Variant::Standard, &pos);
    }
    let mut script = Script::new(Variant::Standard, Variant::Standard.start());
    for line in text.lines() {
        if let Ok(Some(edit)) = script.line(line) {
            assert!(!edit.changes.is_empty());
        }
    }
    for variant in Variant::ALL {
        if let Ok(pos) = variant.from_text(fen, line) {
            check(variant, &pos);
        }
    }
}

fn check<P: Rules>(variant: Variant, pos: &P) {
    let mut epd = Vec::new();
    write_epd(pos, &mut epd);
    let epd = String::from_utf8(epd).expect("an EPD is ASCII");
    let again = variant.parse_fen(&epd).expect("an EPD is a position");
    // An EPD omits an en passant square that no legal move uses, but the key may include it.
    assert_eq!(identity(&again), identity(pos), "{epd}");
    if variant == Variant::Standard {
        assert_eq!(identity(&parse_fen(&epd).unwrap()), identity(pos));
    }
    for mv in pos.legal_moves() {
        let number = BookMove::from(mv);
        assert_eq!(number.to_move(pos), Some(mv), "{epd} {mv:?}");
        let spellings = [
            uci(pos, mv),
            SanPlus::from_move(pos.clone(), mv).to_string(),
        ];
        for text in spellings {
            assert_eq!(read_move(pos, text.as_bytes()), Ok(mv), "{epd} {text}");
        }
        let mut carried = Keyed::new(pos.clone());
        carried.play(mv);
        let mut played = pos.clone();
        played.play_unchecked(mv);
        assert_eq!(carried.key(), key(&played), "{epd} {mv:?}");
    }
}

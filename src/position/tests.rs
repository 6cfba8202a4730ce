//! Property tests: no spelling of a move is read as another move. They test all legal moves of the positions of
//! random games.

use proptest::prelude::*;
use shakmaty::{
    Chess, Move, Position, Role,
    san::{SanPlus, Suffix},
};

use super::{BookMove, MoveError, PieceLetters, Variant, line::parse_fen, read_move, san};

/// Starting positions of the random games: the usual one, and some with promotions, en passant, castling, and several
/// pieces of the same kind.
const STARTS: [&str; 7] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/pPp2ppp/8/3pP3/8/8/PPPP1PpP/R3K2R w KQkq d6 0 1",
    "r3k2r/pPp2ppp/8/8/3Pp3/8/PPP2PpP/R3K2R b KQkq d3 0 1",
    "4k3/2P1P1P1/1b3b2/N1N1N3/8/N3N3/BB4BB/R1Q1K2R w K - 0 1",
    "4k3/1pp5/8/1P1P4/2b1b3/1P3P2/B5B1/4K3 w - - 0 1",
    "4k3/8/1b6/8/1pPp1pPp/8/1B1B4/R3K2R b KQ c3 0 1",
    "1b2k3/2P5/1P6/B1B5/3b4/1P6/2P5/4K3 w - - 0 1",
];

/// Returns the spellings of a move, given its SAN.
fn spellings(pos: &Chess, mv: Move, san: &str) -> Vec<String> {
    let bare = san.trim_end_matches(['+', '#']);
    let mut all = vec![san.to_owned(), bare.to_owned()];
    if mv.is_castle() {
        let long = bare == "O-O-O";
        for dash in ["-", "‐", "‑", "‒", "–", "—", "−", ""] {
            for letter in ["O", "0", "o"] {
                if !(letter == "0" && dash.is_empty()) {
                    all.push(bare.replace('-', dash).replace('O', letter));
                }
            }
        }
        let rank = pos.turn().fold_wb('1', '8');
        let (king, rook) = if long { ('c', 'a') } else { ('g', 'h') };
        all.extend([
            format!("e{rank}{king}{rank}"),
            format!("e{rank}{rook}{rank}"),
        ]);
        all.push(format!("Ke{rank}-{king}{rank}"));
    } else {
        all.extend(of_steps(mv, bare));
    }
    let marks = [
        "", "+", "#", "++", "=", "+-", "+/-", "-+", "=/+", "ch", "†", ":", "!?",
    ];
    all.iter()
        .flat_map(|text| marks.map(|mark| format!("{text}{mark}")))
        .collect()
}

/// Returns the spellings, without annotations, of a move that is not castling.
fn of_steps(mv: Move, bare: &str) -> Vec<String> {
    let (from, to) = (mv.from().expect("no drop"), mv.to());
    let letter = match mv.role() {
        Role::Pawn => String::new(),
        role => role.upper_char().to_string(),
    };
    let cross = if mv.is_capture() { "x" } else { "-" };
    let promoted = mv.promotion().map(Role::upper_char);
    let suffixes = match promoted {
        None => vec![String::new()],
        Some(role) => vec![
            format!("={role}"),
            format!("{role}"),
            format!("({role})"),
            format!("=({role})"),
            format!("/{role}"),
            format!("={}", role.to_ascii_lowercase()),
            format!("{}", role.to_ascii_lowercase()),
        ],
    };
    let square = bare.split('=').next().expect("never empty");
    let mut heads = vec![
        square.to_owned(),
        square.replace('x', ""),
        square.replace('x', ":"),
        square.replace('x', "×"),
        square.replace('x', "-"),
        format!("{from}{to}"),
        format!("{from}-{to}"),
        format!("{letter}{from}{cross}{to}"),
        format!("{letter}{from}{to}"),
        format!("{}{from}{to}", letter.to_ascii_lowercase()),
        format!("{from}–{to}"),
    ];
    if letter.is_empty() {
        heads.extend([
            format!("P{square}"),
            format!("p{square}"),
            format!("♙{square}"),
            format!("♟{square}"),
        ]);
    } else {
        let figure = "KQRBN".find(&letter).expect("a piece");
        for first in ['♔', '♚'] {
            let figure = char::from_u32(first as u32 + figure as u32).expect("in the block");
            heads.push(square.replacen(&letter, &figure.to_string(), 1));
        }
        heads.push(square.replacen(&letter, &letter.to_ascii_lowercase(), 1));
        let hint = &square[1..square.len() - 2].replace('x', "");
        if hint.len() == 1 {
            heads.push(format!("{letter}({hint}){to}"));
            heads.push(format!("{letter}({hint}){cross}{to}").replace('-', ""));
        }
    }
    let mut all: Vec<String> = heads
        .iter()
        .flat_map(|head| suffixes.iter().map(move |suffix| format!("{head}{suffix}")))
        .collect();
    if mv.is_en_passant() {
        for mark in ["ep", "e.p.", "e.p"] {
            all.push(format!("{square}{mark}"));
        }
    }
    all
}

/// Returns `true` if a bishop's move in lower case is also the spelling of the move that was read from the b-file:
/// `bxc4` of a pawn, or `b3b4` of the piece on b3.
fn is_of_the_b_file(text: &str, read: Move) -> bool {
    let names_square = read
        .from()
        .is_some_and(|from| text.starts_with(&from.to_string()));
    let is_pawns = read.role() == Role::Pawn && read.is_capture();
    text.starts_with('b') && (names_square || is_pawns)
}

#[test]
fn moves_of_all_variants_are_written_as_shakmaty_writes_them() {
    let mut dice = fastrand::Rng::with_seed(3);
    let (mut checks, mut mates) = (0, 0);
    for variant in Variant::ALL {
        for _ in 0..60 {
            let mut pos = variant.start();
            for _ in 0..150 {
                let moves = pos.legal_moves();
                for mv in &moves {
                    let ours = san(&pos, *mv);
                    assert_eq!(ours, SanPlus::from_move(pos.clone(), *mv), "{pos:?}");
                    checks += u64::from(ours.suffix == Some(Suffix::Check));
                    mates += u64::from(ours.suffix == Some(Suffix::Checkmate));
                }
                let Some(mv) = dice.choice(&moves) else { break };
                pos.play_unchecked(*mv);
            }
        }
    }
    assert!(checks > 1000 && mates > 100, "{checks} {mates}");
}

fn check_all_moves(pos: &Chess) {
    for mv in pos.legal_moves() {
        let san = SanPlus::from_move(pos.clone(), mv).to_string();
        for text in spellings(pos, mv, &san) {
            match read_move(pos, text.as_bytes()) {
                Ok(read) if read == mv => {}
                Ok(read) if mv.role() == Role::Bishop && is_of_the_b_file(&text, read) => {}
                Ok(read) => panic!("{text} for {san} was read as {read} in {pos:?}"),
                Err(err) => {
                    // Only an ambiguous spelling may be rejected.
                    let is_open = err == MoveError::Ambiguous
                        || (mv.role() == Role::Bishop && text.starts_with('b'))
                        || (mv.is_castle() && text.ends_with("-+"));
                    assert!(is_open, "{text} for {san}: {err} in {pos:?}");
                }
            }
        }
        check_languages(pos, mv, &san);
    }
}

/// Checks that a move in the letters of a language is read as that move, and that a move in English letters is too
/// unless the language gives one of the letters another meaning.
fn check_languages(pos: &Chess, mv: Move, san: &str) {
    for (letters, text) in [
        (PieceLetters::German, "SLTDK"),
        (PieceLetters::Dutch, "PLTDK"),
        (PieceLetters::French, "CFTDR"),
        (PieceLetters::Spanish, "CATDR"),
        (PieceLetters::Italian, "CATDR"),
    ] {
        let translated: String = san
            .chars()
            .map(|c| match "NBRQK".find(c) {
                Some(role) => char::from(text.as_bytes()[role]),
                None => c,
            })
            .collect();
        assert_eq!(
            letters.read_move(pos, translated.as_bytes()),
            Ok(mv),
            "{translated}"
        );
        // A letter that the language uses has its meaning in this language: `Rd1` may be a king move in French.
        if !san
            .bytes()
            .any(|byte| byte != b'K' && text.as_bytes().contains(&byte))
        {
            assert_eq!(letters.read_move(pos, san.as_bytes()), Ok(mv), "{san}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_spelling_is_read_as_another_move(
        start in 0..STARTS.len(),
        choices in proptest::collection::vec(any::<u16>(), 1..60),
    ) {
        let mut pos = parse_fen(STARTS[start]).unwrap();
        for choice in choices {
            check_all_moves(&pos);
            let moves = pos.legal_moves();
            if moves.is_empty() {
                break;
            }
            pos.play_unchecked(moves[usize::from(choice) % moves.len()]);
        }
    }

    /// Every text that is read as a move of a variant must be a legal move, which the bits of a book move can store.
    #[test]
    fn what_is_read_is_legal_in_variants(
        text in "[KQRBNPa-h1-8xO0@=+()/:eb.-]{1,8}",
        choices in proptest::collection::vec(any::<u16>(), 0..30),
    ) {
        for variant in [Variant::Chess960, Variant::Crazyhouse, Variant::Giveaway] {
            let mut pos = variant.start();
            for choice in &choices {
                let moves = pos.legal_moves();
                if moves.is_empty() {
                    break;
                }
                pos.play_unchecked(moves[usize::from(*choice) % moves.len()]);
            }
            if let Ok(mv) = read_move(&pos, text.as_bytes()) {
                prop_assert!(pos.legal_moves().contains(&mv));
                prop_assert_eq!(BookMove::from(mv).to_move(&pos), Some(mv));
            }
        }
    }
}

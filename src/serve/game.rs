//! Games as the page plays through them, and text that people paste.

use serde::Serialize;
use shakmaty::{Position, variant::VariantPosition};

use super::board::WrittenMove;
use crate::{
    pgn::{GameReader, Token},
    position::{Variant, read_move},
};

/// The moves of a game, as far as they can be played.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Moves {
    /// The variant, by its name in the protocol of engines.
    variant: Variant,
    /// Where the game begins, `None` for the start of its variant.
    start: Option<String>,
    /// The main line.
    moves: Vec<WrittenMove>,
    /// Why the line ends before the text does.
    problem: Option<String>,
    /// The tags in the order of the text.
    tags: Vec<(String, String)>,
}

/// Reads the first game of a text.
pub(super) fn moves_of_game(text: &[u8]) -> Moves {
    let mut game = GameReader::new(text);
    if !game.next_game() {
        return Moves::ended(Variant::default(), "there is no game in this text");
    }
    let tag = |name: &str| {
        game.tags()
            .get(name.as_bytes())
            .map(String::from_utf8_lossy)
    };
    let tags = game.tags().iter().map(|tag| {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (text(tag.name), text(tag.value))
    });
    let tags: Vec<_> = tags.collect();
    let Ok(variant) = Variant::from_tag(game.tags().get(b"Variant")) else {
        let problem = "polybook does not support the variant of this game";
        return Moves {
            tags,
            ..Moves::ended(Variant::default(), problem)
        };
    };
    let start = match tag("FEN").filter(|fen| !fen.trim().is_empty()) {
        None => None,
        Some(fen) => match variant.game_start(&fen) {
            Ok((start, _)) => Some(start),
            Err(err) => {
                return Moves {
                    tags,
                    ..Moves::ended(variant, err.to_string())
                };
            }
        },
    };
    let (moves, problem) = main_line(&mut game, start.clone().unwrap_or_else(|| variant.start()));
    Moves {
        variant,
        start: start.map(|start| crate::position::fen_of(&start)),
        moves,
        problem,
        tags,
    }
}

/// Reads what was pasted: a FEN or EPD, or moves with or without tags, numbers and comments.
pub(super) fn moves_of_text(variant: Variant, text: &str) -> Moves {
    let text = text.trim();
    if let Ok(pos) = variant.parse_position(text) {
        return Moves {
            start: Some(crate::position::fen_of(&pos)),
            problem: None,
            ..Moves::ended(variant, "")
        };
    }
    let mut game = GameReader::new(text.as_bytes());
    if text.starts_with('[') || !game.next_game() {
        return moves_of_game(text.as_bytes());
    }
    let (moves, problem) = main_line(&mut game, variant.start());
    Moves {
        moves,
        problem,
        ..Moves::ended(variant, "")
    }
}

/// The moves of a game from `pos`, and what stopped them.
fn main_line(
    game: &mut GameReader<'_>,
    mut pos: VariantPosition,
) -> (Vec<WrittenMove>, Option<String>) {
    let mut moves = Vec::new();
    loop {
        let (text, read) = match game.next_token() {
            Token::Move { text, .. } => {
                (text, read_move(&pos, text).map_err(|err| err.to_string()))
            }
            Token::Unreadable { text, .. } => (text, Err("not a move".to_owned())),
            Token::NullMove { .. } => (&b"--"[..], Err("a null move".to_owned())),
            _ => return (moves, None),
        };
        match read {
            Ok(mv) => {
                moves.push(WrittenMove::new(&pos, mv));
                pos.play_unchecked(mv);
            }
            Err(problem) => {
                let text = String::from_utf8_lossy(text);
                let problem = format!("move {}, \"{text}\": {problem}", moves.len() + 1);
                return (moves, Some(problem));
            }
        }
    }
}

impl Moves {
    fn ended(variant: Variant, problem: impl Into<String>) -> Moves {
        Moves {
            variant,
            start: None,
            moves: Vec::new(),
            problem: Some(problem.into()),
            tags: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sans(moves: &Moves) -> String {
        let sans: Vec<_> = moves.moves.iter().map(WrittenMove::san).collect();
        sans.join(" ")
    }

    #[test]
    fn a_game_is_played_as_far_as_it_goes() {
        let game = moves_of_game(
            b"[White \"A\"]\n\n1. e4 {best} e5 (1... c5) 2. Nf3 Nc6 3. Bb5 a6 4. O-O Kd5 1-0",
        );
        assert_eq!(sans(&game), "e4 e5 Nf3 Nc6 Bb5 a6 O-O");
        assert_eq!(
            game.problem.as_deref(),
            Some("move 8, \"Kd5\": illegal move")
        );
        assert_eq!(game.tags, [("White".to_owned(), "A".to_owned())]);
        let empty = moves_of_game(b"");
        assert!(empty.problem.is_some() && empty.moves.is_empty());
        let from = moves_of_game(b"[FEN \"4k3/8/8/8/8/8/8/R3K3 w Q - 0 1\"]\n\n1. O-O-O *");
        assert_eq!(sans(&from), "O-O-O");
        assert!(from.start.is_some());
    }

    #[test]
    fn what_is_pasted_is_told_by_its_form() {
        let fen = moves_of_text(Variant::Standard, "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1\n");
        assert!(fen.start.is_some() && fen.problem.is_none());
        let epd = moves_of_text(
            Variant::Standard,
            "4k3/8/8/8/8/8/8/R3K3 w Q - hmvc 3; id \"a\";",
        );
        assert!(epd.start.unwrap().ends_with(" 3 1"));
        let line = moves_of_text(Variant::Standard, "1. e4 c5 2. Nf3");
        assert_eq!(sans(&line), "e4 c5 Nf3");
        assert_eq!(
            sans(&moves_of_text(Variant::Standard, "e2e4 c7c5")),
            "e4 c5"
        );
        assert_eq!(
            sans(&moves_of_text(
                Variant::Standard,
                "[White \"A\"]\n\n1. d4 *"
            )),
            "d4"
        );
        assert!(
            moves_of_text(Variant::Standard, "good morning")
                .problem
                .is_some()
        );
        let drops = moves_of_text(Variant::Crazyhouse, "e4 d5 exd5 Qxd5 Nc3 P@d4");
        assert_eq!(drops.moves.len(), 6);
    }
}

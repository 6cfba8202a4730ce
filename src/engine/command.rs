//! Parses UCI commands.

use std::borrow::Cow;

use shakmaty::{Move, Position, uci::UciMove, variant::VariantPosition};

use crate::position::{Variant, fen_of};

/// Finds the first known UCI command in a line. Returns the command and the text after it, or `None` if the line
/// contains no known command. Unknown words before the command are skipped, as UCI requires.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    const KNOWN: [&str; 11] = [
        "uci",
        "debug",
        "isready",
        "setoption",
        "register",
        "ucinewgame",
        "position",
        "go",
        "stop",
        "ponderhit",
        "quit",
    ];
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = rest
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((rest, ""));
        if KNOWN.contains(&word) {
            return Some((word, after.trim()));
        }
        rest = after.trim();
    }
    None
}

/// Parses the arguments of the UCI command `setoption`, which have the form `name NAME value VALUE`. Returns the name
/// and the value. If the value is missing, it is returned as an empty string. Returns `None` if the arguments do not
/// begin with `name`.
pub(super) fn option(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("name ")?;
    let (name, value) = match text.split_once(" value ") {
        Some((name, value)) => (name, value),
        None => (text.strip_suffix(" value").unwrap_or(text), ""),
    };
    Some((name.trim(), value.trim()))
}

/// The UCI command that must arrive before the result of a search may be sent. For example, UCI requires that the
/// result of `go infinite` is held back until `stop`, even if the search has already ended.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum Wait {
    /// No command; the result may be sent at once.
    #[default]
    None,
    /// `ponderhit` or `stop`.
    Ponderhit,
    /// `stop`.
    Stop,
}

/// The parsed arguments of the UCI command `go`, which starts a search.
#[derive(Default)]
pub(super) struct Go<'a> {
    pub wait: Wait,
    /// The moves after `searchmoves`, which are the only moves that may be chosen. Empty if all moves are allowed.
    pub moves: Vec<UciMove>,
    /// All arguments except `searchmoves` and its moves.
    pub limits: Vec<&'a str>,
}

impl<'a> Go<'a> {
    /// Parses the arguments of the UCI command `go`. Adds unknown words to the field `limits`, because another engine
    /// to which the arguments are passed on may understand them.
    pub(super) fn read(text: &'a str) -> Go<'a> {
        let mut go = Go::default();
        let mut is_move = false;
        for word in text.split_ascii_whitespace() {
            if word == "searchmoves" {
                is_move = true;
                continue;
            }
            if is_move && let Ok(mv) = word.parse() {
                go.moves.push(mv);
                continue;
            }
            is_move = false;
            go.limits.push(word);
            match word {
                "infinite" => go.wait = Wait::Stop,
                "ponder" if go.wait == Wait::None => go.wait = Wait::Ponderhit,
                _ => {}
            }
        }
        go
    }

    /// Returns the command `go` that is sent to the second engine. It contains all arguments except `searchmoves` and
    /// its moves, because the caller appends its own `searchmoves`.
    pub(super) fn command(&self) -> String {
        format!("go {}", self.limits.join(" "))
            .trim_end()
            .to_owned()
    }

    /// Returns `true` if the command permits the move `mv` in `pos`. This is the case if `searchmoves` lists the move,
    /// or if the command does not contain `searchmoves`.
    pub(super) fn allows(&self, pos: &VariantPosition, mv: Move) -> bool {
        let is_same = |allowed: &UciMove| allowed.to_move(pos).is_ok_and(|allowed| allowed == mv);
        self.moves.is_empty() || self.moves.iter().any(is_same)
    }
}

/// Parses the arguments of the UCI command `position`, and returns the position after all moves.
///
/// # Errors
///
/// Returns a message for the user if the position is invalid or a move is illegal.
pub(super) fn position(text: &str, variant: Variant) -> Result<VariantPosition, String> {
    let (start, moves) = match text.split_once("moves") {
        Some((start, moves)) => (start.trim(), moves),
        None => (text.trim(), ""),
    };
    let mut pos = match start.strip_prefix("fen") {
        Some(fen) => variant
            .parse_position(fen.trim())
            .map_err(|err| err.to_string())?,
        None if start == "startpos" => variant.start(),
        None => {
            return Err(
                "the command position is malformed: use position startpos or position fen FEN"
                    .to_owned(),
            );
        }
    };
    for text in moves.split_ascii_whitespace() {
        let mv = text.parse::<UciMove>().ok();
        let mv = mv.and_then(|mv| mv.to_move(&pos).ok());
        let text: String = text.chars().take(10).collect();
        let mv = mv.ok_or_else(|| format!("{text} is not a legal move"))?;
        pos.play_unchecked(mv);
    }
    Ok(pos)
}

/// Converts the arguments of the UCI command `position` to a form that other engines can read. Replaces a FEN in a
/// nonstandard spelling, which only [`Variant::parse_position`] accepts, with a standard FEN.
pub(super) fn standard_position(text: &str, variant: Variant) -> Cow<'_, str> {
    let Some(fen) = text.trim().strip_prefix("fen") else {
        return text.into();
    };
    let end = fen.find("moves").unwrap_or(fen.len());
    let (fen, moves) = fen.split_at(end);
    match variant.parse_position(fen) {
        Ok(pos) if variant.parse_fen(fen).is_err() => {
            format!("fen {} {moves}", fen_of(&pos)).into()
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unknown_words_are_skipped() {
        assert_eq!(split(" joho debug  on "), Some(("debug", "on")));
        assert_eq!(split("position startpos"), Some(("position", "startpos")));
        assert_eq!(split("joho"), None);
        assert_eq!(option("name a b value c d"), Some(("a b", "c d")));
        assert_eq!(option("name Clear Hash"), Some(("Clear Hash", "")));
        assert_eq!(option("name Player value"), Some(("Player", "")));
    }

    #[test]
    fn positions_are_read() {
        for wrong in [
            "",
            "fen",
            "fen x moves e2e4",
            "startpos moves e2e5",
            "startpos moves 0000",
            "startpos moves e2e4 0000",
        ] {
            assert!(position(wrong, Variant::Standard).is_err(), "{wrong}");
        }
        let lenient = "fen 4k3/8/8/8/8/8/4P3/4K3 White \u{2013} \u{2013} -1 -1 moves e2e4";
        for (text, sent) in [
            (lenient, "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 0 1 moves e2e4"),
            (
                "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 3 9 moves e2e4",
                "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 3 9 moves e2e4",
            ),
            ("startpos moves e2e4", "startpos moves e2e4"),
            ("fen x moves e2e4", "fen x moves e2e4"),
        ] {
            assert_eq!(standard_position(text, Variant::Standard), sent);
        }
        let pos = position(lenient, Variant::Standard).unwrap();
        assert_eq!(fen_of(&pos), "4k3/8/8/8/4P3/8/8/4K3 b - - 0 1");
        let pos = position("startpos moves e2e4 e7e5 e1e2", Variant::Standard).unwrap();
        assert_eq!(pos.fullmoves().get(), 2);
        let start = position("startpos", Variant::Standard).unwrap();
        let go = Go::read("wtime 1 searchmoves e2e4 g1f3 infinite ponder");
        assert_eq!((go.wait, go.moves.len()), (Wait::Stop, 2));
        assert_eq!(go.limits, ["wtime", "1", "infinite", "ponder"]);
        let allowed = start.legal_moves().into_iter();
        assert_eq!(allowed.filter(|mv| go.allows(&start, *mv)).count(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(fen|startpos|moves|[a-h][1-8][a-h][1-8]|0000| |\\PC){0,20}") {
            let _ = split(&text);
            let _ = option(&text);
            let _ = Go::read(&text);
            let _ = position(&text, Variant::Crazyhouse);
        }
    }
}

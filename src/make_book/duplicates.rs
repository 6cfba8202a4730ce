//! Recognizes duplicate games.
//!
//! The threads that replay games do not know which of two equal games comes first in the inputs. Each thread
//! therefore passes on all of its games as candidates, each with a fingerprint. The records of a batch are added
//! to the counts only after all earlier batches are complete.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::{
    pgn::{Date, GameResult, Tags, folded, tag_text},
    position::{BookMove, Keyed, PieceLetters, Rules},
};

/// The moves of a game that the run does not count: the moves after the maximum number of half-moves, or a null move or
/// unplayable move and the moves after it. They are collected because two games are duplicates only if these moves are
/// equal, too.
pub(super) struct UncountedMoves<P> {
    /// The current position, or `None` after a move that cannot be played.
    pos: Option<Keyed<P>>,
    letters: PieceLetters,
    /// The encoding of the moves so far, which is part of the fingerprint.
    bytes: Vec<u8>,
    /// The number of half-moves before the first null move.
    pub plies: usize,
    /// Whether a null move has ended the moves.
    is_over: bool,
    /// The identities of the positions after the moves, up to the first move that cannot be played.
    pub identities: Vec<u64>,
}

impl<P: Rules> UncountedMoves<P> {
    /// Creates an empty list of uncounted moves. `pos` is the position after the counted moves. It is `None` if the
    /// next move cannot be played. The moves are then compared with those of other games as the PGN spells them,
    /// because they cannot be parsed. `letters` is the language of the piece letters in the moves.
    pub(super) fn new(pos: Option<Keyed<P>>, letters: PieceLetters) -> UncountedMoves<P> {
        UncountedMoves {
            pos,
            letters,
            bytes: Vec::new(),
            plies: 0,
            is_over: false,
            identities: Vec::new(),
        }
    }

    /// Adds the next uncounted move of the game to the list. `text` is the move as the PGN spells it. An empty text
    /// means a null move.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.is_over |= text.is_empty();
        self.plies += usize::from(!self.is_over);
        let pos = self.pos.take();
        let played = pos.and_then(|pos| {
            let mv = self.letters.read_move(pos.position(), text).ok()?;
            Some((pos, mv))
        });
        match played {
            Some((mut pos, mv)) => {
                self.bytes.push(b'=');
                self.bytes.extend(BookMove::from(mv).0.to_le_bytes());
                pos.play(mv);
                self.identities.push(pos.identity());
                self.pos = Some(pos);
            }
            // Moves that cannot be played are compared by their text.
            None => {
                self.bytes.push(b'"');
                self.bytes.extend((text.len() as u64).to_le_bytes());
                self.bytes.extend(text);
            }
        }
    }

    /// Returns an encoding of the collected moves, for the argument `rest` of [`fingerprint`].
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns the fingerprint of a game: a hash of the players' names, the result, the starting position and the moves. If
/// both players are unknown, the hash also includes the event and the date. Returns `None` if the players are unknown
/// and the event or the date is unknown, too. Such a game is never a duplicate.
///
/// `start` is the identity (a hash) of the starting position. `moves` are the counted moves. `rest` is the encoding of
/// the uncounted moves after them, as returned by [`UncountedMoves::into_bytes`]. The probability that any two of a
/// billion different games have the same fingerprint is less than 1 in 10^20.
pub(super) fn fingerprint(
    tags: &Tags<'_>,
    result: GameResult,
    start: u64,
    moves: impl ExactSizeIterator<Item = BookMove>,
    rest: &[u8],
) -> Option<u128> {
    // A question mark as a name means that the name is unknown.
    let name = |tag: &[u8]| {
        let name = folded(&tags.get(tag).map(tag_text).unwrap_or_default());
        if name == "?" { String::new() } else { name }
    };
    let mut texts = vec![name(b"White"), name(b"Black")];
    if texts.iter().all(String::is_empty) {
        let event = name(b"Event");
        if event.is_empty() {
            return None;
        }
        texts.extend([event, date_text(tags)?]);
    }
    let mut hasher = SipHasher13::new();
    for text in texts {
        hasher.write(&(text.len() as u64).to_le_bytes());
        hasher.write(text.as_bytes());
    }
    hasher.write(result.token().as_bytes());
    hasher.write(&start.to_le_bytes());
    hasher.write(&(moves.len() as u64).to_le_bytes());
    for mv in moves {
        hasher.write(&mv.0.to_le_bytes());
    }
    hasher.write(rest);
    Some(hasher.finish128().as_u128())
}

/// Returns a string that is equal for games of the same date. If the year, the month and the day are known, the string
/// is the date. Otherwise, it is the text of all date tags. Returns `None` if the date tags contain no digit.
fn date_text(tags: &Tags<'_>) -> Option<String> {
    let date = Date::of_tags(tags);
    if date.year().and(date.month()).and(date.day()).is_some() {
        return Some(date.to_string());
    }
    let text = |name| folded(&tags.get(name).map(tag_text).unwrap_or_default());
    let texts = Date::TAGS.map(text).join("\n");
    texts
        .contains(|c: char| c.is_ascii_digit())
        .then_some(texts)
}

#[cfg(test)]
mod tests {
    use shakmaty::Chess;

    use super::*;
    use crate::pgn::GameReader;

    fn of_tags_and_result(tags: &str, result: GameResult) -> Option<u128> {
        let text = format!("{tags} *");
        let mut games = GameReader::new(text.as_bytes());
        assert!(games.next_game());
        fingerprint(games.tags(), result, 1, [BookMove(7)].into_iter(), b"")
    }

    fn of_tags(tags: &str) -> Option<u128> {
        of_tags_and_result(tags, GameResult::Draw)
    }

    #[test]
    fn names_are_compared_without_case_and_unknown_names_are_equal() {
        let tal = of_tags("[White \"Tal\"][Black \"?\"]");
        assert_eq!(tal, of_tags("[White \" TAL \"]"));
        assert_eq!(tal, of_tags("[Black \"\"][White \"tal\"][Date \"1960\"]"));
        assert_ne!(tal, of_tags("[Black \"Tal\"][White \"?\"]"));
        assert_ne!(tal, of_tags("[White \"Ta\"][Black \"l\"]"));
        let players = "[White \"M\u{fc}ller, H\"][Black \"Tal\"]";
        let other = "[White \"Mu\u{308}ller,  H\"][Black \"Tal\"]";
        assert_eq!(of_tags(players), of_tags(other));
    }

    #[test]
    fn fingerprints_depend_on_results_and_for_nameless_games_on_dates() {
        let tal = "[White \"Tal\"][Black \"Botvinnik\"]";
        assert_ne!(
            of_tags_and_result(tal, GameResult::Draw),
            of_tags_and_result(tal, GameResult::WhiteWins)
        );
        let nameless = of_tags("[White \"?\"][Event \"Moscow\"][Date \"1960.03.15\"]");
        for (tags, is_same) in [
            (
                "[Event \" moscow\"][Date \"1960-03-15\"][Round \"1\"]",
                true,
            ),
            ("[Event \"Moscow\"][Date \"1960.03.16\"]", false),
            ("[Event \"Riga\"][Date \"1960.03.15\"]", false),
            ("", false),
        ] {
            assert_eq!(of_tags(tags) == nameless, is_same, "{tags}");
        }
    }

    #[test]
    fn nameless_games_have_equal_dates_if_these_are_known() {
        let of_date = |date: &str| of_tags(&format!("[Event \"Moscow\"][Date \"{date}\"]"));
        for (date, other) in [
            ("10.03.2024", "12.03.2024"),
            ("2024.03.??", "2024.??.03"),
            ("2024.02.30", "2024.02.31"),
            ("10.03.2024", "2024.03.10"),
        ] {
            assert!(of_date(date).is_some(), "{date}");
            assert_eq!(of_date(date), of_date(&format!(" {date} ")), "{date}");
            assert_ne!(of_date(date), of_date(other), "{date}");
        }
        for unknown in [
            "[Event \"Moscow\"]",
            "[Event \"Moscow\"][Date \"????.??.??\"]",
            "[Event \"?\"][Date \"1960.03.15\"]",
            "[Date \"1960.03.15\"]",
        ] {
            assert_eq!(of_tags(unknown), None, "{unknown}");
        }
        assert!(of_tags("[White \"Tal\"]").is_some());
    }

    #[test]
    fn uncounted_moves_are_compared_as_moves_if_they_can_be_played() {
        let rest = |words: &[&str]| {
            let start = Some(Keyed::new(Chess::default()));
            let mut rest = UncountedMoves::new(start, PieceLetters::English);
            words.iter().for_each(|word| rest.push(word.as_bytes()));
            (rest.plies, rest.into_bytes())
        };
        assert_eq!(rest(&["Nf3", "d5"]), rest(&["Ng1f3", "d5"]));
        assert_ne!(rest(&["Nf3", "d5"]).1, rest(&["Nf3", "d6"]).1);
        assert_ne!(rest(&["Ke4", "d5"]).1, rest(&["Ke5", "d5"]).1);
        assert_eq!(rest(&["Nf3", "", "d5"]).0, 1);
    }
}

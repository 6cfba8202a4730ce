//! Reads evaluations from the comments of games, such as `[%eval 0.33]`, `[%eval 0.33,20]` and `[%eval #-3]`.

use memchr::memmem;
use shakmaty::Chess;

use super::{
    layout::{Eval, EvalRecord, Score},
    lines::{BatchRead, quoted},
};
use crate::{
    chess::position::{Keyed, LineError, Variant, game_start, read_move, read_word},
    games::pgn::{GameEnd, GameReader, Tags, Token, UnknownVariants, tag_text},
};

/// The beginning of an evaluation in the comment of a game.
const EVAL: &[u8] = b"[%eval";

/// Reads the evaluations in the comments of `text`, a batch of games in PGN. Stores `origin`, the number that
/// identifies their source, in each evaluation. Does not play the moves of games without evaluations.
pub(super) fn read_games(text: &[u8], origin: u8) -> BatchRead {
    let mut read = BatchRead::default();
    let finder = memmem::Finder::new(EVAL);
    let mut next_eval = finder.find(text);
    let mut games = GameReader::new(text);
    while games.next_game() {
        let start = games.game_offset();
        games.skip_moves();
        let end = games.offset();
        if next_eval.is_some_and(|at| at < start) {
            next_eval = finder.find(&text[start..]).map(|at| start + at);
        }
        if next_eval.is_some_and(|at| at < end)
            && let Err((offset, reason)) = read_game(&text[start..end], origin, &mut read)
        {
            read.reject(start + offset, reason);
        }
        read.entries += 1;
    }
    read
}

/// Reads the evaluations in the comments of one game, `text`, and adds them to `read`. Stores `origin`, the number that
/// identifies their source, in each evaluation.
///
/// # Errors
///
/// If the game cannot be played to its end, returns the offset in `text` of the fault, and the reason. The evaluations
/// before this offset are still added to `read`.
fn read_game(text: &[u8], origin: u8, read: &mut BatchRead) -> Result<(), (usize, String)> {
    let mut games = GameReader::new(text);
    if !games.next_game() {
        return Ok(());
    }
    if games.tags().variant() != Ok(Variant::Standard) {
        read.filtered += 1;
        if let Some(name) = UnknownVariants::name(games.tags()) {
            read.unknown_variants.add(name, 1);
        }
        return Ok(());
    }
    let start = start_of(games.tags()).map_err(|err| (0, err.to_string()))?;
    let mut pos = Keyed::new(start);
    games.return_to_comments();
    loop {
        if let Some(word) = games.peek_word()
            && let Some(mv) = read_word(pos.position(), word)
        {
            games.take_word(word);
            pos.play(mv);
            continue;
        }
        let token = games.next_token_after(|comment| match evaluation(comment) {
            None => {}
            Some(found) => {
                let record = found.and_then(|(score, depth)| {
                    let eval = Eval {
                        score,
                        depth,
                        nodes: 0,
                        origin,
                    };
                    EvalRecord::new(pos.position(), pos.key_without_unusable_en_passant(), eval)
                });
                match record {
                    Some(record) => read.records.push(record.to_ranked()),
                    None => read.ignored += 1,
                }
            }
        });
        match token {
            Token::Move { text, offset } | Token::Unreadable { text, offset } => {
                match read_move(pos.position(), text) {
                    Ok(mv) => pos.play(mv),
                    Err(_) if games.is_double_loss(text) => return Ok(()),
                    Err(err) => {
                        let mv = quoted(&String::from_utf8_lossy(text));
                        return Err((offset, format!("\"{mv}\": {err}")));
                    }
                }
            }
            Token::End(GameEnd::Broken(flaw)) => {
                return Err((flaw.offset, flaw.reason.to_string()));
            }
            // The moves after a null move do not lead to positions of a legal game.
            Token::NullMove { .. } | Token::End(GameEnd::Complete(_)) => return Ok(()),
            Token::BeginVariation | Token::EndVariation => {
                unreachable!("variations are passed over")
            }
        }
    }
}

/// Returns the starting position of a game: the position in its `FEN` tag, or the initial position of chess if the game
/// has no such tag.
fn start_of(tags: &Tags<'_>) -> Result<Chess, LineError> {
    match tags.fen() {
        Some(fen) => Ok(game_start(&tag_text(fen))?.0),
        None => Ok(Chess::default()),
    }
}

/// Finds the evaluation in a comment, such as `[%eval 0.33,20]`, and returns its score and its depth. A missing depth
/// is returned as 0. The outer `Option` is `None` if the comment contains no evaluation, and the inner `Option` is
/// `None` if the evaluation cannot be read.
///
/// A score without a decimal point cannot be read, because it may be in pawns or in centipawns.
pub(crate) fn evaluation(comment: &[u8]) -> Option<Option<(Score, u8)>> {
    // Comments are short, so building a substring searcher would take longer than the search itself.
    let mut brackets = memchr::memchr_iter(EVAL[0], comment);
    let rest = brackets.find_map(|at| comment[at..].strip_prefix(EVAL))?;
    let end = memchr::memchr(b']', rest).unwrap_or(rest.len());
    let text = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    let (value, depth) = match text.split_once(',') {
        Some((value, depth)) => (value, depth.trim()),
        None => (text, "0"),
    };
    let is_begun = value.starts_with(|c: char| c.is_ascii_whitespace());
    let score = score(value.trim()).filter(|_| is_begun && end < rest.len());
    let depth: Option<u32> = depth.parse().ok();
    Some(score.zip(depth.map(|depth| depth.min(255) as u8)))
}

/// Parses a score: a number of pawns with a decimal point, such as `-0.25`, or a mate, such as `#-3`. Returns `None`
/// for any other string.
fn score(text: &str) -> Option<Score> {
    if let Some(moves) = text.strip_prefix('#') {
        return Score::mate(moves.parse().ok()?);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, part) = digits.split_once('.')?;
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) {
        return None;
    }
    let pawns: f64 = text.parse().ok()?;
    Some(Score::centipawns((pawns * 100.0).round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::position::{from_text, key};

    fn said(comment: &str) -> Option<Option<(String, u8)>> {
        let found = evaluation(comment.as_bytes())?;
        Some(found.map(|(score, depth)| (score.to_string(), depth)))
    }

    #[test]
    fn evaluations_are_read_or_ignored() {
        for (comment, score, depth) in [
            (" [%eval 0.33] [%clk 0:10:00] ", "+0.33", 0),
            ("[%eval 0.3,20]", "+0.30", 20),
            ("[%clk 1:00:00] good [%eval -1.256, 300]", "-1.26", 255),
            ("[%eval +12.0]", "+12.00", 0),
            ("[%eval #3,30]", "#3", 30),
            ("[%eval #-3]", "#-3", 0),
            ("[%eval #+3]", "#3", 0),
            ("[%eval -0.0]", "0.00", 0),
            ("[%eval 99999999999999999999.0]", "+320.00", 0),
        ] {
            assert_eq!(
                said(comment),
                Some(Some((score.to_owned(), depth))),
                "{comment}"
            );
        }
        for comment in [
            "[%eval 35,20]",
            "[%eval 3]",
            "[%eval #0]",
            "[%eval 1.5",
            "[%eval1.5]",
            "[%eval 1.5x]",
            "[%eval 1e5.0]",
            "[%eval 0.3,20,1]",
            "[%eval 0.3,-1]",
            "[%eval .5]",
            "[%eval inf]",
            "[%evaluation 0.5]",
            "[%eval \u{e9}]",
        ] {
            assert_eq!(said(comment), Some(None), "{comment}");
        }
        assert_eq!(said("[%clk 0:00:01]"), None);
    }

    /// Returns the keys and scores of the evaluations that are read from games, and the result of reading.
    fn of_games(text: &str) -> (Vec<(u64, String)>, BatchRead) {
        let read = read_games(text.as_bytes(), 0);
        let records = read.records.iter().map(|bytes| {
            let record = EvalRecord::from_ranked(bytes).unwrap();
            (record.key, record.eval.score.to_string())
        });
        (records.collect(), read)
    }

    #[test]
    fn an_evaluation_is_that_of_the_position_before_it() {
        let text = "[White \"a\"]\n\n1. d4 d5 *\n\n[White \"b\"]\n\n{ [%eval 0.1] }\n1. e4 $1 { [%eval 0.2] } (1. d4 { [%eval 9.0] })\
            1... e5 {x} { [%eval 0.3] } 2. Nf3?! { [%eval #4] } Nc6 $6 ; note\n{ [%eval 7] } *\n\n1. c4 {[%eval 0.4]} Ke4 {[%eval 0.5]} *";
        let (found, read) = of_games(text);
        let lines = ["", "e4", "e4 e5", "e4 e5 Nf3", "c4"];
        let keys = lines.map(|line| key(&from_text(None, Some(line)).unwrap()));
        let scores = ["+0.10", "+0.20", "+0.30", "#4", "+0.40"].map(str::to_owned);
        let expected: Vec<_> = keys.into_iter().zip(scores).collect();
        assert_eq!(found, expected);
        assert_eq!((read.entries, read.ignored, read.rejected), (3, 1, 1));
        let (number, offset, reason) = &read.described[0];
        assert_eq!((*number, &text[*offset..][..3]), (2, "Ke4"));
        assert!(reason.contains("Ke4"), "{reason}");
    }

    #[test]
    fn games_start_from_their_fen_and_variants_are_left_out() {
        let fen = "8/8/8/8/8/4k3/4p3/4K3 w - - 0 1";
        let text = format!(
            "[FEN \"{fen}\"]\n\n{{ [%eval 0.0] }} *\n\n[Variant \"Atomic\"]\n\n1. e4 {{ [%eval 0.5] }} *\n\n\
             [FEN \"nonsense\"]\n\n{{ [%eval 0.0] }} *\n"
        );
        let (found, read) = of_games(&text);
        let pos = from_text(Some(fen), None).unwrap();
        assert_eq!(found, [(key(&pos), "0.00".to_owned())]);
        assert_eq!((read.filtered, read.rejected), (1, 1));
    }
}

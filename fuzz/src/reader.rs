//! Reads the games of a text in several ways, which must agree. The first byte chooses whether the other bytes are the
//! text, or numbers of tokens of which the text consists.

use std::io::{BufRead, BufReader};

use polybook::pgn::{Cutter, GameEnd, GameReader, Token};

use super::choice;

/// Tokens of PGN, and of what people and programs write instead.
const TOKENS: &[&str] = &include!("../../src/games/pgn/tokens.rs");

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let tokens = |number: &u8| TOKENS[usize::from(*number) % TOKENS.len()].as_bytes();
    let text = match kind % 2 {
        0 => rest.to_vec(),
        _ => rest.iter().flat_map(tokens).copied().collect(),
    };
    cuts(&text);
    ends(&text);
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

/// Checks that games begin and end alike whether their variations are read or skipped.
fn ends(text: &[u8]) {
    let read = |reader: &mut GameReader<'_>| {
        loop {
            if let Token::End(end) = reader.next_token() {
                return end;
            }
        }
    };
    let variations_read = ends_by(GameReader::new(text).with_variations(true), read);
    let skipped = ends_by(GameReader::new(text), GameReader::skip_moves);
    assert_eq!(variations_read, skipped);
}

/// Returns the offset of each game, and how it ended according to `read`.
fn ends_by<'a>(
    mut reader: GameReader<'a>,
    read: fn(&mut GameReader<'a>) -> GameEnd,
) -> Vec<(usize, GameEnd)> {
    let mut ends = Vec::new();
    while reader.next_game() {
        let last = ends.last().map(|(offset, _)| *offset);
        assert!(last < Some(reader.game_offset()), "no progress");
        ends.push((reader.game_offset(), read(&mut reader)));
    }
    ends
}

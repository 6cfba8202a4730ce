//! The positions of a file, for an engine.

use shakmaty::Chess;

use super::{
    lines::position_of,
    source::{Batches, Entries, Source},
};
use crate::{
    error::{Error, Result},
    pgn::{GameEnd, GameReader, Input, StreamOptions, Token},
    position::{game_start, read_move},
    progress::Meter,
};

/// The positions of an EPD file or of a store of evaluations, or those in which the main lines of a PGN end, such as the
/// exits of an opening suite.
///
/// # Errors
///
/// An input that cannot be read, or a position or a game in it that cannot be.
pub fn read_positions(input: &Input) -> Result<Vec<Chess>> {
    let source = Source::new(input)?;
    if let Some(evals) = source.store() {
        return evals.positions();
    }
    let mut batches = Batches::of_text(input, &StreamOptions::default())?;
    let entries = batches.entries();
    let mut positions = Vec::new();
    let mut number = 0;
    while let Some(batch) = batches.next_batch(&Meter::default())? {
        let refused = |thing: &str, number: u64, reason: String| {
            Error::file(input.path(), format!("{thing} {number}: {reason}"))
        };
        let Entries::Lines(format) = entries else {
            let mut games = GameReader::new(&batch.text);
            while games.next_game() {
                let end = end_of(&mut games).map_err(|reason| refused("game", number, reason))?;
                positions.push(end);
                number += 1;
            }
            continue;
        };
        for line in batch.text.split_inclusive(|byte| *byte == b'\n') {
            number += 1;
            let line = line
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(line)
                .trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let read = position_of(format, line);
            positions.push(read.map_err(|reason| refused("line", number, reason))?);
        }
    }
    Ok(positions)
}

/// The position in which a game ends.
fn end_of(games: &mut GameReader<'_>) -> Result<Chess, String> {
    let fen = games.tags().get(b"FEN").map(String::from_utf8_lossy);
    let mut pos = match fen.filter(|fen| !fen.trim().is_empty()) {
        Some(fen) => game_start(&fen).map_err(|err| err.to_string())?.0,
        None => Chess::default(),
    };
    loop {
        match games.next_token() {
            Token::Move { text, .. } | Token::Unreadable { text, .. } => {
                use shakmaty::Position;
                let mv = read_move(&pos, text).map_err(|err| {
                    format!(
                        "\"{}\": {err}",
                        String::from_utf8_lossy(text).escape_debug()
                    )
                })?;
                pos.play_unchecked(mv);
            }
            Token::NullMove { .. } => return Err("a null move".to_owned()),
            Token::End(GameEnd::Broken(flaw)) => return Err(flaw.reason.to_owned()),
            Token::End(GameEnd::Complete(_)) => return Ok(pos),
            Token::BeginVariation | Token::EndVariation => {
                unreachable!("variations are passed over")
            }
        }
    }
}

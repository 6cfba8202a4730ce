//! Reading the positions of a file that an engine evaluates.

use std::path::Path;

use shakmaty::Chess;

use super::{
    batch::LONGEST_REASON,
    lines::{position_of, quoted},
    source::{EvalsSource, InputEntries, SourceBatches},
};
use crate::{
    error::{Error, Result},
    pgn::{GameEnd, GameReader, Input, StreamOptions, Token},
    position::{game_start, read_move},
    progress::Meter,
    provenance::shortened,
    sort::Memory,
};

/// The memory in bytes that a position takes until it is evaluated.
const BYTES: usize = size_of::<Chess>() + 64;

/// The positions of an input.
#[derive(Clone, Default, Debug)]
pub struct Positions {
    /// The positions, in the order of the input.
    pub positions: Vec<Chess>,
    /// The number of variations of games that were skipped.
    pub variations: u64,
}

/// Reads the positions of an EPD file or of a store of evaluations, or the final positions of the main lines of a PGN, such
/// as the exits of an opening suite.
///
/// # Errors
///
/// Returns an error if the input, a position or a game cannot be read, or if the positions do not fit in `memory`.
pub fn read_positions(input: &Input, memory: &Memory) -> Result<Positions> {
    let source = EvalsSource::new(input)?;
    let mut variations = 0;
    if let Some(evals) = source.store() {
        check_room(evals.len() as usize, memory, input.path())?;
        let positions = evals.positions()?;
        return Ok(Positions {
            positions,
            variations,
        });
    }
    let mut batches = SourceBatches::of_text(input, &StreamOptions::default())?;
    let entries = batches.entries();
    let mut positions = Vec::new();
    let mut number = 0;
    while let Some(batch) = batches.next_batch(&Meter::default())? {
        let refused = |thing: &str, number: u64, reason: String| {
            let reason = shortened(&reason, LONGEST_REASON);
            Error::file(input.path(), format!("{thing} {number}: {reason}"))
        };
        let InputEntries::Lines(format) = entries else {
            let mut games = GameReader::new(&batch.text).with_variations(true);
            while games.next_game() {
                let end = end_of(&mut games, &mut variations);
                positions.push(end.map_err(|reason| refused("game", number, reason))?);
                check_room(positions.len(), memory, input.path())?;
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
            check_room(positions.len(), memory, input.path())?;
        }
    }
    Ok(Positions {
        positions,
        variations,
    })
}

/// Checks that a number of positions fits in `memory`.
///
/// # Errors
///
/// Returns an error about `path` if they do not fit.
pub(crate) fn check_room(positions: usize, memory: &Memory, path: &Path) -> Result<()> {
    let most = memory.bytes / BYTES;
    if positions <= most {
        return Ok(());
    }
    let problem = format!("has more than {most} positions to evaluate: give more --memory");
    Err(Error::too_large(path, problem))
}

/// Plays the main line of a game and returns its final position. Adds the number of skipped variations to `variations`.
fn end_of(games: &mut GameReader<'_>, variations: &mut u64) -> Result<Chess, String> {
    let fen = games.tags().fen().map(String::from_utf8_lossy);
    let mut pos = match fen {
        Some(fen) => game_start(&fen).map_err(|err| err.to_string())?.0,
        None => Chess::default(),
    };
    let mut depth = 0_u64;
    loop {
        match games.next_token() {
            Token::BeginVariation => {
                depth += 1;
                *variations += 1;
            }
            Token::EndVariation => depth -= 1,
            Token::End(GameEnd::Broken(flaw)) => return Err(flaw.reason.to_owned()),
            Token::End(GameEnd::Complete(_)) => return Ok(pos),
            _ if depth > 0 => {}
            Token::Move { text, .. } | Token::Unreadable { text, .. } => {
                use shakmaty::Position;
                match read_move(&pos, text) {
                    Ok(mv) => pos.play_unchecked(mv),
                    Err(_) if games.is_double_loss(text) => return Ok(pos),
                    Err(err) => {
                        let mv = quoted(&String::from_utf8_lossy(text));
                        return Err(format!("\"{mv}\": {err}"));
                    }
                }
            }
            Token::NullMove { .. } => return Err("a null move".to_owned()),
        }
    }
}

//! The line that games play most: from the starting position always the move that most of them chose.
//!
//! This reads, replays and counts with the parts that `MakeBook` joins, to show them one by one.
//!
//! ```sh
//! cargo run --release --example most_played -- data/selfplay.pgn data/famous.pgn
//! ```

use std::{collections::HashMap, env, error::Error};

use polybook::{
    pgn::{Cutter, GameReader, Input, Token},
    position::{BookMove, Keyed, key, read_move},
    tally::{Memory, MoveCount, Stats, Tally},
};
use shakmaty::{Chess, Position};

/// Moves after which a line is long enough, and moves in how few games are not worth following.
const LONGEST: usize = 30;
const FEWEST_GAMES: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let tally = Tally::new(Memory::default());
    for path in env::args().skip(1) {
        let mut cutter = Cutter::new(Input::file(path).open()?, 1 << 20);
        while let Some(batch) = cutter.next_batch()? {
            count(&batch.text, &tally)?;
        }
    }

    let counts = tally.seal()?;
    let mut moves_of: HashMap<u64, Vec<MoveCount>> = HashMap::new();
    for shard in 0..counts.shard_count() {
        counts.for_each_position(shard, |key, _, moves| {
            moves_of.insert(key, moves.to_vec());
        })?;
    }

    let mut position = Chess::default();
    for _ in 0..LONGEST {
        let moves = moves_of.get(&key(&position)).map_or(&[][..], Vec::as_slice);
        let Some(most) = moves.iter().max_by_key(|count| count.stats.games()) else {
            break;
        };
        let games = most.stats.games();
        let Some(mv) = most.mv.to_move(&position) else {
            break;
        };
        if games < FEWEST_GAMES {
            break;
        }
        let number = position.fullmoves();
        let dots = position.turn().fold_wb(".", "...");
        let san = most.mv.san(&position).expect("a legal move can be written");
        println!("{number}{dots} {san:<6} {games:>6} games");
        position.play_unchecked(mv);
    }
    Ok(())
}

/// Adds the moves of all games of a stretch of PGN. A game counts up to its first illegal move.
fn count(text: &[u8], tally: &Tally) -> Result<(), Box<dyn Error>> {
    let mut games = GameReader::new(text);
    while games.next_game() {
        let mut played = Vec::new();
        let mut line = Keyed::new(Chess::default());
        let result = loop {
            match games.next_token() {
                Token::Move { text, .. } => match read_move(line.position(), text) {
                    Ok(mv) => {
                        played.push((line.key(), BookMove::from(mv), line.position().turn()));
                        line.play(mv);
                    }
                    Err(_) => {
                        games.skip_moves();
                        break None;
                    }
                },
                Token::End(result) => break result,
                Token::Unreadable { .. } => {}
                Token::Broken(_) => break None,
            }
        };
        let Some(result) = result else { continue };
        for (key, mv, turn) in played {
            tally.add(key, mv, turn, Stats::of_game(result, turn))?;
        }
    }
    Ok(())
}

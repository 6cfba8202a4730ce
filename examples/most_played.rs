//! Prints the line that most games follow: from the starting position on, the most played move in each position.
//!
//! The example reads, replays and counts games with the parts of which `MakeBook` consists.
//!
//! ```sh
//! cargo run --release --example most_played -- data/selfplay.pgn data/famous.pgn
//! ```

use std::{collections::HashMap, env, error::Error};

use polybook::{
    counts::{CountBatch, Memory, Tally},
    pgn::{Cutter, GameEnd, GameReader, Input, StreamOptions, Token},
    position::{BookMove, Keyed, key, read_move},
    results::Wdl,
};
use shakmaty::{Chess, Position, san::San};

/// The maximum number of half-moves of the line.
/// The number of games below which the line ends.
const LONGEST: usize = 30;
const FEWEST_GAMES: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let tally = Tally::new(Memory::default());
    for path in env::args().skip(1) {
        let mut cutter = Cutter::new(Input::file(path).open(&StreamOptions::default())?, 1 << 20);
        while let Some(batch) = cutter.next_batch()? {
            tally.add_batch(&counts_of(&batch.text))?;
        }
    }

    // The most played move of each position, with its number of games.
    let counts = tally.sort()?;
    let mut most_played: HashMap<u64, (BookMove, u64)> = HashMap::new();
    for position in counts.positions() {
        let position = position?;
        let moves = position.moves.iter();
        let games = moves.map(|count| (count.mv, count.stats.games()));
        if let Some(most) = games.max_by_key(|(_, games)| *games)
            && most.1 >= FEWEST_GAMES
        {
            most_played.insert(position.key, most);
        }
    }

    let mut position = Chess::default();
    for _ in 0..LONGEST {
        let Some((book_move, games)) = most_played.get(&key(&position)) else {
            break;
        };
        let mv = book_move.to_move(&position).expect("games played it here");
        let san = San::from_move(&position, mv);
        let number = position.fullmoves();
        let dots = position.turn().fold_wb(".", "...");
        println!("{:<12} {games:>6} games", format!("{number}{dots} {san}"));
        position.play_unchecked(mv);
    }
    Ok(())
}

/// Returns the counts of all moves in a PGN text. Games with an illegal move or without a termination marker are skipped.
fn counts_of(text: &[u8]) -> CountBatch {
    let mut counts = CountBatch::default();
    let mut games = GameReader::new(text);
    while games.next_game() {
        let mut played = Vec::new();
        let mut line = Keyed::new(Chess::default());
        let result = loop {
            let token = games.next_token();
            let mv = match token {
                Token::Move { text, .. } => read_move(line.position(), text).ok(),
                Token::End(GameEnd::Complete(result)) => break result,
                Token::End(GameEnd::Broken(_)) => break None,
                _ => None,
            };
            let Some(mv) = mv else {
                games.skip_moves();
                break None;
            };
            played.push((line.key(), BookMove::from(mv), line.position().turn()));
            line.play(mv);
        };
        let Some(result) = result else { continue };
        for (key, mv, turn) in played {
            let stats = Wdl::of_game(result.winner(), turn);
            counts.push(key, mv, turn, stats);
        }
    }
    counts
}

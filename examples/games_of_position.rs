//! Reads the LevelDB index of a PGN file: prints the games that reached a position by any move order, and the results
//! after each move.
//!
//! ```sh
//! cargo run --release --example games_of_position -- data/famous.pgn "1. e4 e5 2. Nf3 d6"
//! ```

use std::{env, error::Error};

use polybook::{
    MakeBook,
    index::Index,
    pgn::Input,
    position::{from_text, key},
};
use shakmaty::Position;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let pgn = args
        .next()
        .ok_or("usage: games_of_position FILE.pgn [MOVES]")?;
    let position = from_text(None, args.next().as_deref())?;

    // A real program would keep the index for further queries.
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("games.idx");
    let run = MakeBook::new([Input::file(pgn)]).leveldb(&path);
    run.index_stats(true).run()?;

    let index = Index::open(&path)?;
    let ids = index.games(key(&position))?;
    println!("{} of {} games", ids.len(), index.game_count());
    for id in ids {
        let game = index.header(id)?;
        let [white, black] = ["White", "Black"].map(|color| game.tag(color));
        println!("{white} - {black} {}", game.result());
    }

    let stats = index.stats(key(&position))?.unwrap_or_default();
    for book_move in stats.moves {
        let Some(mv) = book_move.to_move(&position) else {
            continue;
        };
        let after = position.clone().play(mv)?;
        if let Some(stats) = index.stats(key(&after))? {
            let results = stats.results();
            println!(
                "{book_move} White won {}, Black won {}",
                results.white, results.black
            );
        }
    }
    Ok(())
}

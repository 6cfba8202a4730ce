//! An explorer in a terminal: prints the moves that were played in a position, and the results of a player.
//!
//! ```sh
//! cargo run --release --example explorer -- data/famous.pgn "1. e4 e5" "Morphy, Paul"
//! ```

use std::{env, error::Error, fmt::Write};

use polybook::{
    MakeBook,
    explorer::{Explorer, Line, Query, View},
    pgn::Input,
    position::Variant,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let (pgn, others) = args
        .split_first()
        .ok_or("usage: explorer FILE.pgn [MOVES [PLAYER]]")?;
    let moves = others.first().map_or("", String::as_str);
    print!(
        "{}",
        explored(pgn, moves, others.get(1).map(String::as_str))?
    );
    Ok(())
}

/// Returns a table of the moves that were played after a line, in all games of a PGN file or in those of a player.
fn explored(pgn: &str, moves: &str, player: Option<&str>) -> Result<String, Box<dyn Error>> {
    // A real program would make the index once, and keep it.
    let directory = tempfile::tempdir()?;
    let index = directory.path().join("games.idx");
    MakeBook::new([Input::file(pgn)]).explorer(&index).run()?;
    let explorer = Explorer::open([("games".to_owned(), index)])?;

    let mut query = Query::new(Line::parse(Variant::Standard, None, moves)?, View::Lichess);
    query.filters.player = player.map(str::to_owned).into_iter().collect();
    let answer = explorer.answer(&query)?;
    let mut table = String::new();
    if let Some(unknown) = explorer.unknown_name(&query.filters)? {
        writeln!(table, "{unknown}")?;
    }
    for played in &answer.moves {
        let results = &played.results;
        writeln!(
            table,
            "{:<7} {:>6} games: White won {}, Black won {}",
            played.san,
            results.games(),
            results.white,
            results.black
        )?;
    }
    Ok(table)
}

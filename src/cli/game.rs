//! `polybook game`: prints the PGN text of games.

use std::path::PathBuf;

use polybook::{
    Error, ErrorKind,
    index::{Index, store::game_rows::PAGES},
};

use super::{
    Context,
    filters::{explorer_of, needs_explorer},
    index_cache::index_of,
    input::refuse_counts_for_games,
    terminal::print_bytes,
};

/// Print the texts of games, as they are in their PGN file
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook game --index games.idx 0
  polybook game --index games.pgn https://lichess.org/abcdefgh
  polybook game --index games.idx 17 4711 > two.pgn
  polybook game --index mine.pgn --index theirs.pgn 632")]
pub struct Args {
    /// Read this index, made with make-book --explorer or --leveldb, or this PGN file. polybook indexes a PGN file once
    /// and keeps the index in a cache. If the option is given several times, the games are numbered in this order, as
    /// in polybook games; indexes made with --leveldb cannot be combined
    #[arg(long, alias = "leveldb", value_name = "INDEX", required = true)]
    index: Vec<PathBuf>,

    /// The numbers of the games, as polybook games lists them, or the addresses or ids of games at Lichess. A game at
    /// Lichess is found only if its Site tag contains its address
    #[arg(value_name = "GAME", value_parser = game_id, required = true)]
    ids: Vec<GameId>,
}

/// A game that the user names: by its number in an index, or by its id at Lichess.
#[derive(Clone, PartialEq, Eq, Debug)]
enum GameId {
    Number(u32),
    Lichess(String),
}

/// Parses the number of a game, the id of a game at Lichess, or the address of a game at lichess.org. Returns an
/// error message for any other text.
fn game_id(text: &str) -> Result<GameId, String> {
    if let Ok(number) = text.parse() {
        return Ok(GameId::Number(number));
    }
    let path = text.split_once("lichess.org/").map(|(_, path)| path);
    let id = path.unwrap_or(text);
    // An address may continue with the side, the half-move or the four letters that name a player.
    let end = id.find(|c: char| !c.is_ascii_alphanumeric());
    let is_whole = path.is_some() || end.is_none();
    let id = &id[..end.unwrap_or(id.len())];
    let is_page = path.is_some() && PAGES.contains(&id);
    match id.len() {
        8 | 12 if is_whole && !is_page && id[..8].contains(char::is_alphabetic) => {
            Ok(GameId::Lichess(id[..8].to_owned()))
        }
        8 | 12 if path.is_some() && !is_page => Err(
            "a Lichess id that consists only of digits cannot be looked up: use the number of the game from the list \
             that polybook games prints"
                .to_owned(),
        ),
        _ => Err(
            "use the number of a game, 0 or larger, or the address of a game at lichess.org".to_owned(),
        ),
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    refuse_counts_for_games(&args.index)?;
    let mut indexes = Vec::new();
    for path in &args.index {
        let index = Index::open(index_of(path, context)?)?;
        if args.index.len() > 1 && !index.kind().is_of_explorer() {
            return Err(needs_explorer(path).into());
        }
        indexes.push(index);
    }
    let mut has_said = context.quiet;
    for number in numbers(args, &indexes, context)? {
        let (at, id) = locate(&indexes, number)?;
        let index = &indexes[at];
        // The index of a PGN file is in the user's cache, so errors name the argument. The advice for a damaged index
        // needs the path in the cache.
        let with_argument = |mut err: Error| {
            if let Error::File { path, kind, .. } = &mut err
                && *kind != ErrorKind::Damaged
                && path == index.path()
            {
                path.clone_from(&args.index[at]);
            }
            err
        };
        if !has_said && index.is_slow_to_read(id).map_err(with_argument)? {
            context.say(
                "the PGN file is compressed, so finding a game takes as long as unpacking the file up to this game\n",
            );
            has_said = true;
        }
        print_bytes(&index.text(id).map_err(with_argument)?)?;
    }
    Ok(())
}

/// Finds game `number` in `indexes`, whose games are numbered in this order. Returns the position of its index, and its
/// id in this index. If there is only one index, the index may contain no game with this id. Otherwise, returns an
/// error if no game has the number.
fn locate(indexes: &[Index], number: u64) -> anyhow::Result<(usize, u32)> {
    let mut first = 0;
    for (at, index) in indexes.iter().enumerate() {
        let next = first + index.game_count();
        if (first..next).contains(&number) || indexes.len() == 1 {
            return Ok((at, (number - first) as u32));
        }
        first = next;
    }
    anyhow::bail!(
        "no game has the number {number}: the indexes contain {first} games, numbered from 0"
    )
}

/// Returns the numbers that the requested games have in `indexes`, in the order of the arguments. Returns an error if a
/// Lichess id belongs to no game or to several, or if an index cannot be searched for ids.
fn numbers(args: &Args, indexes: &[Index], context: Context) -> anyhow::Result<Vec<u64>> {
    let is_number = |id: &GameId| matches!(id, GameId::Number(_));
    let explorer = match args.ids.iter().all(is_number) {
        true => None,
        false if indexes.iter().all(|index| index.kind().is_of_explorer()) => {
            let paths = Vec::from_iter(indexes.iter().map(Index::path));
            Some(explorer_of(&paths, context)?)
        }
        false => return Err(needs_explorer(&args.index[0]).into()),
    };
    let number = |id: &GameId| {
        match (id, &explorer) {
        (GameId::Lichess(id), Some(explorer)) => explorer.find(id)?.ok_or_else(|| {
            let paths = Vec::from_iter(args.index.iter().map(|path| path.display().to_string()));
            anyhow::anyhow!(
                "{}: no game, or several games, have the Lichess id {id} in the Site tag: find the number of the game \
                 with polybook games --index {}",
                paths.join(", "),
                paths.join(" --index ")
            )
        }),
        (GameId::Number(number), _) => Ok(u64::from(*number)),
        (GameId::Lichess(_), None) => unreachable!("an explorer is open if an id is not a number"),
    }
    };
    args.ids.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_have_numbers_ids_and_addresses() {
        let id = |id: &str| Ok(GameId::Lichess(id.to_owned()));
        assert_eq!(game_id("17"), Ok(GameId::Number(17)));
        assert_eq!(game_id("00000017"), Ok(GameId::Number(17)));
        assert_eq!(game_id("abcdEF12"), id("abcdEF12"));
        for path in ["", "/black", "#12", "/white?x=1"] {
            assert_eq!(
                game_id(&format!("https://lichess.org/abcdEF12{path}")),
                id("abcdEF12")
            );
        }
        assert_eq!(game_id("lichess.org/abcdEF12wxyz"), id("abcdEF12"));
        // Ids at Lichess are random, so one may be a word.
        assert_eq!(game_id("analysis"), id("analysis"));
        let of_digits = game_id("https://lichess.org/12345678/white").unwrap_err();
        assert!(of_digits.contains("consists only of digits"), "{of_digits}");
        for wrong in [
            "-1",
            "",
            "abc",
            "99999999999",
            "abcdefgh/black",
            "https://lichess.org/study/abcdefgh",
            "https://lichess.org/analysis",
            "https://lichess.org/analysis/standard/8/8/8/8/8/8/8/8",
            "lichess.org/training/12345",
            "https://www.chess.com/game/live/12345678",
        ] {
            game_id(wrong).unwrap_err();
        }
    }
}

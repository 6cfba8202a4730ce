//! Finds games that the user names by their numbers or by their Lichess ids.

use std::path::PathBuf;

use polybook::{
    Error, ErrorKind, explorer::Explorer, explorer_index::game_rows::PAGES, index::Index,
};
use serde_json::json;

use super::{Args, FoundGame, GamesForm, explored, write_list};
use crate::cli::{
    Context,
    filters::{explorer_of, needs_explorer},
    index_cache::index_of,
    usage::Usage,
};

/// The number of a game in an index, or its Lichess id, by which the user names the game.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GameId {
    Number(u32),
    Lichess(String),
}

/// Parses the number of a game, a Lichess id, or the address of a game at lichess.org. Returns an error message for any
/// other text.
pub fn game_id(text: &str) -> Result<GameId, String> {
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

/// Lists the games that `--id` names, or prints their texts.
pub fn run(args: &Args, form: GamesForm, context: Context) -> anyhow::Result<()> {
    if !args.filters.are_none() || args.source.position.is_given() {
        let usage = "--id names games, so a position and conditions on games do not apply: leave them out, or leave \
                     --id out";
        return Err(Usage(usage.to_owned()).into());
    }
    let paths = &args.source.paths;
    let mut indexes = Vec::new();
    for path in paths {
        let index = Index::open(index_of(path, context)?)?;
        if paths.len() > 1 && !index.kind().is_of_explorer() {
            return Err(needs_explorer(path).into());
        }
        indexes.push(index);
    }
    let by_number = args.id.iter().all(|id| matches!(id, GameId::Number(_)));
    let have_details = indexes.iter().all(|index| index.kind().is_of_explorer());
    let explorer = match (by_number && form == GamesForm::Pgn, have_details) {
        (false, true) => {
            let paths = Vec::from_iter(indexes.iter().map(Index::path));
            Some(explorer_of(&paths, context)?)
        }
        (false, false) if !by_number => return Err(needs_explorer(&paths[0]).into()),
        _ => None,
    };
    let mut games = Vec::new();
    for id in &args.id {
        let number = number(paths, id, explorer.as_ref())?;
        games.push((number, locate(&indexes, number)?));
    }
    // The index of a PGN file is in the user's cache, so errors name the argument. The advice for a damaged index needs
    // the path in the cache.
    let with_argument = |at: usize| {
        let index: &Index = &indexes[at];
        move |mut err: Error| {
            if let Error::File { path, kind, .. } = &mut err
                && *kind != ErrorKind::Damaged
                && path == index.path()
            {
                path.clone_from(&paths[at]);
            }
            err
        }
    };
    if let GamesForm::List(form) = form {
        let games = games.iter().map(|(number, (at, id))| {
            found(&indexes[*at], *id, *number, explorer.as_ref()).map_err(with_argument(*at))
        });
        // If a game is missing, nothing is printed.
        let games: Vec<FoundGame<'_>> = games.collect::<polybook::Result<_>>()?;
        let games = games.into_iter().map(Ok);
        let total = args.id.len() as u64;
        write_list(args, form, &json!({ "total": total }), total, games)?;
        args.say_written(total, context);
        return Ok(());
    }
    let mut has_said = context.quiet;
    args.answer.write_pgn(games.into_iter().map(|(_, (at, id))| {
        let index = &indexes[at];
        if !has_said && index.is_slow_to_read(id).map_err(with_argument(at))? {
            context.say(
                "the PGN file is compressed, so finding a game takes as long as unpacking the file up to this game\n",
            );
            has_said = true;
        }
        Ok(index.text(id).map_err(with_argument(at))?)
    }))?;
    args.say_written(args.id.len() as u64, context);
    Ok(())
}

/// Reads game `id` of `index` for the list. `number` is the number of the game in all sources. `explorer` contains
/// these sources if they are explorer indexes.
fn found<'a>(
    index: &'a Index,
    id: u32,
    number: u64,
    explorer: Option<&Explorer>,
) -> polybook::Result<FoundGame<'a>> {
    let explored = explorer.map(|explorer| explored(explorer, number));
    Ok(FoundGame {
        id: number,
        header: index.header(id)?,
        file: index.path_of_game(id)?,
        explored: explored.transpose()?,
    })
}

/// Finds game `number` in `indexes`, whose games are numbered consecutively in this order. Returns the position of the
/// game's index in the list, and the game's id in this index.
///
/// Returns an error if there are several indexes and no game has this number. If there is only one index, the number is
/// not checked, so the index may contain no game with the returned id.
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

/// Returns the number of the game `id` in the sources `paths`. Returns an error if a Lichess id belongs to no game or
/// to several games. `explorer` contains the sources, and must be `Some` if `id` is a Lichess id.
fn number(paths: &[PathBuf], id: &GameId, explorer: Option<&Explorer>) -> anyhow::Result<u64> {
    let id = match id {
        GameId::Number(number) => return Ok(u64::from(*number)),
        GameId::Lichess(id) => id,
    };
    let explorer = explorer.expect("an explorer is open if an id is not a number");
    explorer.find(id)?.ok_or_else(|| {
        let paths = Vec::from_iter(paths.iter().map(|path| path.display().to_string()));
        anyhow::anyhow!(
            "{}: no game, or several games, have the Lichess id {id} in the Site tag: find the number of the game with \
             polybook games {}",
            paths.join(", "),
            paths.join(" ")
        )
    })
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

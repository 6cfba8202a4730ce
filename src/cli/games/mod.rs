//! `polybook games`: lists games, and prints their texts.

mod by_id;

use std::{
    borrow::Cow,
    iter::once,
    path::{Path, PathBuf},
};

use polybook::{
    explorer::{Explorer, Page, Query, Sort, View},
    index::{GameHeader, Index, IndexKind},
    position::{self, BookMove},
    storage::table::{Column, ColumnType},
};
use serde_json::{Value, json};
use shakmaty::Color;

use self::by_id::GameId;
use super::{
    Context,
    filters::{
        SelectionArgs, add_matched, add_max_ply, add_other_starts, check_names, explorer_of,
        needs_explorer, passed_unknown, say_lacking, say_other_starts, search_board,
    },
    input::{ending, may_have_games, refuse_counts_for_games},
    key, plural,
    position::{Searched, SourceArgs},
    resources::count,
    terminal::{AnswerArgs, AnswerForm},
    usage::Usage,
};

/// List the games that reached a position, or print their texts
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each game is listed with its number in the sources, which --id accepts. An index made with --leveldb is also a source, but only
alone, sorted by number and without filters.

Examples:
  polybook games games.idx --moves \"1. e4 c5 2. Nf3 d6\" --limit 20
  polybook games games.idx --moves \"1. b4\" --pgn > sokolsky.pgn
  polybook games games.idx --json
  polybook games games.pgn --out games.parquet
  polybook games 2024.idx 2025.idx --player \"Carlsen, Magnus\" --sort recent --limit 10
  polybook games games.pgn --id 17 --id 4711 --pgn > two.pgn
  polybook games games.pgn --id https://lichess.org/abcdefgh --pgn")]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// List the game with this number, or the game at Lichess with this address or id, which its Site tag must contain.
    /// Games have the numbers that games lists. Separate several with commas, or give the option several times
    #[arg(
        long,
        value_name = "ID",
        value_parser = by_id::game_id,
        value_delimiter = ',',
        conflicts_with_all = ["fen", "moves", "skip", "limit", "sort"]
    )]
    id: Vec<GameId>,

    /// Skip the first N games
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<usize>(0))]
    skip: usize,

    /// List at most N games [default: all]
    #[arg(long, value_name = "N", value_parser = count::<usize>(0))]
    limit: Option<usize>,

    /// Print the games as they are in their PGN files, as for an --out that ends in .pgn
    #[arg(long, conflicts_with = "json")]
    pgn: bool,

    /// List the games by their numbers (id), newest first (recent), or with the highest mean of the known ratings first
    /// (rating). An index made with --leveldb lists games only by their numbers
    #[arg(long, value_name = "id|recent|rating", default_value_t = Sort::Id)]
    sort: Sort,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    filters: SelectionArgs,
}

/// The form in which games are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum GamesForm {
    Pgn,
    List(AnswerForm),
}

impl Args {
    fn form(&self) -> anyhow::Result<GamesForm> {
        let own = ending(&self.answer.out);
        let texts: &[&str] = if self.pgn { &["pgn", &own] } else { &["pgn"] };
        let form = self.answer.form(&self.source.paths, texts)?;
        if self.pgn && form != AnswerForm::Text {
            let usage = format!(
                "--pgn writes games, but {} is a name for other data: leave out --pgn, or use a name that ends in .pgn",
                self.answer.out.display()
            );
            return Err(Usage(usage).into());
        }
        let is_pgn = form == AnswerForm::Text && (self.pgn || ending(&self.answer.out) == "pgn");
        Ok(if is_pgn {
            GamesForm::Pgn
        } else {
            GamesForm::List(form)
        })
    }

    /// Prints how many games were written to the file `--out`. `total` is the number of games that the options select
    /// before `--skip` and `--limit` are applied.
    fn say_written(&self, total: u64, context: Context) {
        let left = total.saturating_sub(self.skip as u64);
        let limit = self.limit.map_or(u64::MAX, |limit| limit as u64);
        self.answer.say_written(left.min(limit), "game", context);
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    refuse_counts_for_games(&args.source.paths)?;
    let form = args.form()?;
    if !args.id.is_empty() {
        return by_id::run(args, form, context);
    }
    if let [path] = &args.source.paths[..]
        && args.filters.are_none()
        && args.sort == Sort::Id
        && !may_have_games(path)?
    {
        let index = Index::open(path)?;
        if index.kind() == IndexKind::Leveldb {
            return run_plain(args, form, &index, context);
        }
    }
    run_explored(args, form, context)
}

/// Prints the games that reached a position, in the order of `index`, which was made with `make-book --leveldb`.
fn run_plain(args: &Args, form: GamesForm, index: &Index, context: Context) -> anyhow::Result<()> {
    let own = index.variant().only();
    let variant = args.source.position.variant_of(own);
    let searched = Searched {
        file: index.path(),
        only: own,
    };
    let pos = position::Keyed::new(args.source.position.position_in(variant, &searched)?);
    let key = pos.key();
    let ids = match own {
        Some(own) if !own.is_played_like(variant) => Vec::new(),
        _ => {
            index.refuse_other_variant(variant)?;
            index.games_of(&pos)?
        }
    };
    let total = ids.len() as u64;
    let limit = args.limit.unwrap_or(usize::MAX);
    let wanted = ids.iter().copied().skip(args.skip).take(limit);
    let GamesForm::List(form) = form else {
        let texts = wanted.map(|id| Ok(index.text(id)?));
        args.answer.write_pgn(texts)?;
        args.say_written(total, context);
        return Ok(());
    };
    let games = wanted.map(|id| {
        Ok(FoundGame {
            id: id.into(),
            header: index.header(id)?,
            file: index.path_of_game(id)?,
            explored: None,
        })
    });
    let head = json!({ "key": key::text(key), "total": total });
    write_list(args, form, &head, total, games)?;
    args.say_written(total, context);
    Ok(())
}

/// Prints the games that reached a position and pass the filters, from indexes that were made with `make-book
/// --explorer`.
fn run_explored(args: &Args, form: GamesForm, context: Context) -> anyhow::Result<()> {
    let explorer =
        explorer_of(&args.source.paths, context).map_err(|err| better_reason(args, err))?;
    let line = args
        .source
        .position
        .line_in_explorer(&explorer, &args.source.paths)?;
    let pos = line.position().clone();
    let key = position::key(&pos);
    let mut query = Query::new(line, View::Lichess);
    query.filters = args.filters.for_index()?;
    let page = Page {
        skip: args.skip,
        limit: args.limit.unwrap_or(usize::MAX),
        sort: args.sort,
        fold_matches: false,
    };
    search_board(&explorer, &query.filters, context)?;
    let (total, numbers) = explorer.game_numbers(&query, &page)?;
    let matched = check_names(&explorer, &query.filters, total > 0, context)?;
    context.warn(&passed_unknown(&explorer, &query)?);
    say_lacking(&explorer, (&query.filters, total > 0), &pos, context);
    let other_starts = say_other_starts(&explorer, &query.line, &query.filters, context)?;
    let GamesForm::List(form) = form else {
        let texts = numbers.map(|game| Ok(explorer.text(game?.0)?));
        args.answer.write_pgn(texts)?;
        args.say_written(total, context);
        return Ok(());
    };
    let games = numbers.map(|game| {
        let (number, mv) = game?;
        let mut explored = explored(&explorer, number)?;
        explored["uci"] = json!((mv != BookMove::NONE).then(|| mv.uci(&pos)));
        if mv == BookMove::NONE && explorer.is_cut(number)? {
            explored["unindexed"] = json!(true);
        }
        Ok(FoundGame {
            id: number,
            header: explorer.header(number)?,
            file: explorer.path_of_game(number)?,
            explored: Some(explored),
        })
    });
    let mut head = json!({ "key": key::text(key), "total": total });
    add_other_starts(&mut head, other_starts);
    add_max_ply(&mut head, &explorer, &query.filters);
    add_matched(&mut head, &matched);
    write_list(args, form, &head, total, games)?;
    args.say_written(total, context);
    Ok(())
}

/// Returns the data about a game that an explorer index contains in addition to its tags: the opening by the moves, the
/// number of half-moves, the speed, whether the game was rated, and the variant.
fn explored(explorer: &Explorer, number: u64) -> polybook::Result<Value> {
    let (speed, mode) = explorer.speed_and_mode_of_game(number)?;
    Ok(json!({
        "opening": explorer.opening_of_game(number)?,
        "plies": explorer.plies_of_game(number)?,
        "speed": speed,
        "mode": mode,
        "variant": explorer.variant_name_of_game(number)?,
    }))
}

/// A game that the command lists, with its number in the index.
struct FoundGame<'a> {
    id: u64,
    header: GameHeader,
    /// The PGN file from which the game was indexed.
    file: &'a Path,
    /// Further fields of the JSON document: those of [`explored`], and the move in the position, null if the game ended
    /// there or, with `unindexed`, if the next move is not indexed. `None` if the index was made with `make-book
    /// --leveldb`, which does not store them.
    explored: Option<Value>,
}

/// Replaces `err`, the error of a failed query, with a clearer error if an index in `args` was made with `make-book
/// --leveldb`, although the command needs an explorer index. Otherwise, returns `err`.
fn better_reason(args: &Args, err: anyhow::Error) -> anyhow::Error {
    let is_plain = |path: &PathBuf| {
        let index = Index::open(path);
        index.is_ok_and(|index| index.kind() == IndexKind::Leveldb)
    };
    match args.source.paths.iter().find(|path| is_plain(path)) {
        Some(path) => needs_explorer(path).into(),
        None => err,
    }
}

/// The columns of a table of games. [`document`] describes a row.
const COLUMNS: [Column; 25] = [
    Column::new("id", ColumnType::Integer),
    Column::new("event", ColumnType::Text),
    Column::new("site", ColumnType::Text),
    Column::new("date", ColumnType::Text),
    Column::new("round", ColumnType::Text),
    Column::new("white", ColumnType::Text),
    Column::new("black", ColumnType::Text),
    Column::new("result", ColumnType::Text),
    Column::new("white_rating", ColumnType::Integer),
    Column::new("black_rating", ColumnType::Integer),
    Column::new("year", ColumnType::Integer),
    Column::new("month", ColumnType::Integer),
    Column::new("eco", ColumnType::Text),
    Column::at("opening_eco", ColumnType::Text, "/opening/eco"),
    Column::at("opening", ColumnType::Text, "/opening/name"),
    Column::new("plies", ColumnType::Integer),
    Column::new("speed", ColumnType::Text),
    Column::new("mode", ColumnType::Text),
    Column::new("variant", ColumnType::Text),
    Column::new("fen", ColumnType::Text),
    Column::new("event_date", ColumnType::Text),
    Column::new("event_type", ColumnType::Text),
    Column::new("url", ColumnType::Text),
    Column::new("file", ColumnType::Text),
    Column::new("offset", ColumnType::Integer),
];

/// The column with the move that was played in the position, for a table of games that reached a position named by the
/// user.
const MOVE_COLUMN: Column = Column::new("uci", ColumnType::Text);

/// Writes a list of games that reached a position. `head` contains the fields of the JSON document before the games.
/// `total` is the number of all such games, before `--skip` and `--limit` are applied. Each game is read just before it
/// is written, so the list need not fit into memory.
fn write_list<'a>(
    args: &Args,
    form: AnswerForm,
    head: &Value,
    total: u64,
    games: impl Iterator<Item = polybook::Result<FoundGame<'a>>>,
) -> anyhow::Result<()> {
    let answer = &args.answer;
    match form {
        AnswerForm::Json => {
            let games = games.map(|game| Ok(document(&game?).to_string()));
            answer.write_json_list(head, "games", games)
        }
        AnswerForm::Table(format) => {
            let columns = COLUMNS.into_iter();
            let columns = columns.chain(args.source.position.is_given().then_some(MOVE_COLUMN));
            answer.write_table(format, columns, games.map(|game| Ok(document(&game?))))
        }
        AnswerForm::Text => {
            let head = format!("{}\n", plural(total, "game"));
            let lines = games.map(|game| game.map(|game| line(&game)));
            answer.write_all(once(Ok(head)).chain(lines))
        }
    }
}

/// Formats a game as one line of the list that the command prints.
fn line(found: &FoundGame<'_>) -> String {
    let FoundGame { id, header, .. } = found;
    let rated = |name: &str, elo: &str| match elo {
        "" | "*" | "?" => name.to_owned(),
        _ => format!("{name} ({elo})"),
    };
    let explored = found.explored.as_ref();
    let next_move = if explored.is_some_and(|explored| explored["unindexed"] == true) {
        " (next move not indexed)"
    } else {
        ""
    };
    format!(
        "{id:>8}  {:<10} {:<7} {} - {}, {}{next_move}\n",
        header.tag("Date"),
        header.result(),
        rated(&header.tag("White"), &header.tag("WhiteElo")),
        rated(&header.tag("Black"), &header.tag("BlackElo")),
        header.tag("Event")
    )
}

/// Converts a game that the command lists to a JSON object, which contains the number and the tags of the game, and the
/// path of its file. The last fields are those of [`FoundGame::explored`].
fn document(game: &FoundGame<'_>) -> Value {
    let FoundGame {
        id,
        header,
        file,
        explored,
    } = game;
    let mut document = json!({ "id": id });
    for (name, value) in header.fields() {
        document[name] = match name {
            // The result of an unfinished game is `*`.
            "result" => json!(value),
            "white_rating" => json!(header.rating(Color::White)),
            "black_rating" => json!(header.rating(Color::Black)),
            "ply_count" => json!(header.ply_count()),
            "offset" => {
                document["file"] = json!(file.to_string_lossy());
                json!(header.offset())
            }
            _ => json!(known_value(value)),
        };
    }
    let date = header.date();
    document["year"] = json!(date.year());
    document["month"] = json!(date.year().and(date.month()));
    let site = header.tag("Site");
    document["url"] = json!(site.starts_with("http").then_some(site));
    for (name, value) in explored.iter().filter_map(Value::as_object).flatten() {
        document[name] = value.clone();
    }
    document
}

/// Returns the value of a tag, or `None` if it means "unknown", like an empty value, `*`, `?`, `-` and `????.??.??`.
fn known_value(value: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let is_said = value.trim().contains(|c| !"*?-.".contains(c));
    is_said.then_some(value)
}

//! Shows the moves that were played in a position, with their results.

use std::path::Path;

use polybook::{
    FileKind,
    counts::Memory,
    evals::{Eval, Evals},
    explorer::{Answer, Line, MoveAnswer, MoveTime, Query, Times, View, not_indexed},
    position::{self, Keyed, Variant, read_move, uci},
    results::{Results, Wdl},
    selection::Evaluator,
    storage::{
        output::is_directory,
        table::{Column, ColumnType},
    },
    tree::{MoveSource as _, TreeMove},
};
use serde_json::{Value, json};
use shakmaty::{Color, Position, san::SanPlus, variant::VariantPosition};

use super::{Args, EVAL_COLUMNS, MoveOrder, RESULTING_COLUMNS, UnfinishedGames, write};
use crate::cli::{
    Context, evals,
    filters::{
        add_matched, add_max_ply, add_other_starts, check_names, explorer_of, passed_unknown,
        plain_index, say_duplicates, say_other_starts, search_board,
    },
    key, plural,
    position::{Searched, UntaggedArg},
    repertoire::Opener,
    terminal::{AnswerForm, is_shown_by_terminal, range_text},
    usage::Usage,
};

pub fn run(args: &Args, form: AnswerForm, context: Context) -> anyhow::Result<()> {
    let [path] = &args.source.paths[..] else {
        return run_explored(args, form, context);
    };
    if is_directory(path)? && FileKind::of(path)? == FileKind::Counts {
        args.refuse_games(path, "a directory of counts", Evaluator::Counts)?;
        return run_counted(args, form, (path, None), context);
    }
    if plain_index(&args.source.paths, &args.filters)?.is_none() {
        return run_explored(args, form, context);
    }
    args.refuse_games(path, "an index made with --leveldb", Evaluator::Moves)?;
    Usage::refuse(
        args.resulting.then_some("--resulting"),
        "is not needed for an index made with --leveldb, whose numbers already are those of the position after each move",
    )?;
    run_counted(args, form, (path, None), context)?;
    if form == AnswerForm::Text {
        context.say(
            "each move is listed with the games that reached the position after it, by any order of moves; an \
             explorer's index (make-book --explorer) counts only the games in which the move was played in this \
             position, shows ratings and opening names, and can filter the games\n",
        );
    }
    Ok(())
}

fn run_explored(args: &Args, form: AnswerForm, context: Context) -> anyhow::Result<()> {
    let explorer = explorer_of(&args.source.paths, context)?;
    let line = args
        .source
        .position
        .line_in_explorer(&explorer, &args.source.paths)?;
    let pos = line.position().clone();
    let mut query = Query::new(Line::at(line.variant(), pos.clone()), View::Lichess);
    query.filters = args.filters.for_index()?;
    query.filters.skip_unfinished = args.unfinished == UnfinishedGames::Skip;
    query.moves = None;
    query.top_games = 0;
    query.recent_games = Some(0);
    query.player_scores = !query.filters.player.is_empty();
    query.resulting = args.resulting;
    // The score of games that were selected by their result describes only the selection.
    let has_scores = !args.filters.select_by_result();
    Usage::refuse(
        (!has_scores && args.sort == MoveOrder::Score).then_some("--sort score"),
        "needs games with all results: leave out --result, or use --sort games",
    )?;
    search_board(&explorer, &query.filters, context)?;
    let mut answer = explorer.answer(&query)?;
    let has_games = !answer.moves.is_empty();
    let matched = check_names(&explorer, &query.filters, has_games, context)?;
    if !query.filters.player.is_empty() && query.filters.color.is_none() && has_games {
        context.say(
            "the table shows the moves of the player and of the opponents together: --color white or --color black \
             shows the games with one color\n",
        );
    }
    say_duplicates(&explorer, &query, context)?;
    if let Some(line) = explorer.lacking_line(&query.filters) {
        context.say(&line);
    }
    context.warn(&passed_unknown(&explorer, &query)?);
    let source = query.filters.source.as_deref();
    let has_counts = explorer.needs_all_games(source, "results").is_some();
    if has_counts && explorer.lacks_games(source, "results").is_none() {
        context.say(
            "games without a result are draws in counts, so here they are draws in all sources\n",
        );
    }
    let other_starts = say_other_starts(&explorer, &line, &query.filters, context)?;
    sort(&mut answer.moves, args.sort, &pos);
    let evals = evals_of(args.evals.open()?.as_ref(), &pos, &answer)?;
    let times = args
        .clocks
        .map(|most| explorer.times(&query, most as usize, &|| true));
    let times = times.transpose()?;
    if let Some(times) = &times
        && times.read > 0
        && times.moves.is_empty()
    {
        context.say(&format!(
            "no times: no clock times ([%clk] with a readable TimeControl, or [%emt]) of these moves in {}\n",
            plural(times.read, "game")
        ));
    }
    let shown = ShownMoves {
        pos: &pos,
        evals: &evals,
        times: times.as_ref(),
        has_scores,
        has_resulting: args.resulting,
        max_ply: explorer.max_ply_before(&query.filters, &pos),
    };
    if form == AnswerForm::Text
        && let Some(times) = &times
        && times.read < times.games
    {
        context.say(&format!(
            "the times are those of the {} newest of {} games: --clocks={} reads all games\n",
            times.read, times.games, times.games
        ));
    }
    // Counts have games without a result as draws.
    let mut document = document(&answer, &shown, !has_counts);
    add_other_starts(&mut document, other_starts);
    add_matched(&mut document, &matched);
    if let Some(fewest) = explorer.min_game(&query.filters) {
        document["min_game"] = json!(fewest);
    }
    add_max_ply(&mut document, &explorer, &query.filters);
    let mut columns = COLUMNS.to_vec();
    if answer.player.is_some() {
        columns.extend(PLAYER_COLUMNS);
    }
    if evals.after.is_some() {
        columns.extend(EVAL_COLUMNS);
    }
    if times.is_some() {
        columns.extend(TIME_COLUMNS);
    }
    if args.resulting {
        columns.extend(RESULTING_COLUMNS);
    }
    let with_bars = is_shown_by_terminal(&args.answer.out);
    let text = || table(&answer, &shown, !args.filters.are_none(), with_bars);
    write(args, form, &document, columns, text, context)
}

/// The columns of a table of the moves that were played in a position.
const COLUMNS: [Column; 11] = [
    Column::new("san", ColumnType::Text),
    Column::new("uci", ColumnType::Text),
    Column::new("games", ColumnType::Integer),
    Column::new("white", ColumnType::Integer),
    Column::new("draws", ColumnType::Integer),
    Column::new("black", ColumnType::Integer),
    Column::new("unfinished", ColumnType::Integer),
    Column::new("average_rating", ColumnType::Integer),
    Column::new("rating_games", ColumnType::Integer),
    Column::at("opening_eco", ColumnType::Text, "/opening/eco"),
    Column::at("opening", ColumnType::Text, "/opening/name"),
];

/// The additional columns if the user named a player.
const PLAYER_COLUMNS: [Column; 9] = [
    Column::new("wins", ColumnType::Integer),
    Column::new("losses", ColumnType::Integer),
    Column::new("score", ColumnType::Number),
    Column::at("score_low", ColumnType::Number, "/score_range/0"),
    Column::at("score_high", ColumnType::Number, "/score_range/1"),
    Column::new("opponent_rating", ColumnType::Integer),
    Column::new("performance", ColumnType::Integer),
    Column::new("performance_games", ColumnType::Integer),
    Column::new("last_played", ColumnType::Text),
];

/// The additional columns with `--clocks`.
const TIME_COLUMNS: [Column; 3] = [
    Column::at("seconds", ColumnType::Number, "/clock/mean"),
    Column::at("median_seconds", ColumnType::Number, "/clock/median"),
    Column::at("timed_games", ColumnType::Integer, "/clock/games"),
];

/// The evaluation of a position, and the evaluation of the position after each of its moves.
struct MoveEvals {
    here: Option<Eval>,
    /// The evaluation of the position after each move, or `None` if these evaluations are not requested.
    after: Option<Vec<Option<Eval>>>,
}

fn evals_of(
    evals: Option<&Evals>,
    pos: &VariantPosition,
    answer: &Answer,
) -> polybook::Result<MoveEvals> {
    let Some(evals) = evals else {
        let (here, after) = (None, None);
        return Ok(MoveEvals { here, after });
    };
    let after = answer.moves.iter().map(|played| {
        let mv = read_move(pos, played.san.as_bytes()).ok();
        mv.map_or(Ok(None), |mv| evals.after(pos, mv))
    });
    Ok(MoveEvals {
        here: evals.of_position(pos)?,
        after: Some(after.collect::<polybook::Result<_>>()?),
    })
}

/// Adds the field `eval` to a JSON document if `eval` is `Some`.
fn add_eval(document: &mut Value, eval: Option<Eval>) {
    if let Some(eval) = eval {
        document["eval"] = json!(eval);
    }
}

/// Sorts the moves that were played in the position `pos` by the value that `order` names. Moves with equal values keep
/// their order.
fn sort(moves: &mut [MoveAnswer], order: MoveOrder, pos: &VariantPosition) {
    // A move without a finished game has no score and comes last.
    let score = |played: &MoveAnswer| match results_of(played, pos.turn()) {
        results if results.games() == 0 => -1.0,
        results => results.lower_bound(),
    };
    match order {
        MoveOrder::Games => {}
        MoveOrder::Score => moves.sort_by(|a, b| score(b).total_cmp(&score(a))),
        MoveOrder::Rating => {
            moves.sort_by_key(|played| u64::MAX - played.average_rating.unwrap_or(0))
        }
        MoveOrder::Uci => moves.sort_by(|a, b| a.uci.cmp(&b.uci)),
    }
}

/// Returns the numbers of wins, draws and losses in the finished games with the move `played`. They are the results of
/// the player whom the query names or, if it names none, of the side to move, `turn`.
fn results_of(played: &MoveAnswer, turn: Color) -> Wdl {
    match &played.player {
        Some(player) => player.stats,
        None => played.results.for_side(turn),
    }
}

/// Returns a player's score in percent, rounded to one decimal. `results` contains the player's wins, draws and losses.
/// Returns `None` if it contains no games.
fn player_score(results: Wdl) -> Option<f64> {
    (results.games() > 0).then(|| (1000.0 * results.score()).round() / 10.0)
}

/// Returns the score in percent of the player whom the query names, over all games that reached the position. Returns
/// `None` if the query names no player, or if no game is finished.
fn total_score(answer: &Answer) -> Option<f64> {
    let player = answer.player.as_ref()?;
    player_score(player.stats)
}

/// Returns a move in standard UCI notation, in which the king castles by moving two squares, as in `e1g1`. `played`
/// contains the move in the notation of Lichess's API, in which the king moves to the square of its rook, as in `e1h1`.
fn uci_of(pos: &VariantPosition, played: &MoveAnswer) -> String {
    let mv = read_move(pos, played.san.as_bytes());
    mv.map_or_else(|_| played.uci.clone(), |mv| uci(pos, mv))
}

/// Returns the number of games in which the move was played by a player whose rating is known.
fn rating_games(played: &MoveAnswer) -> u64 {
    match (played.average_rating, played.rating_games) {
        (None | Some(0), _) => 0,
        (_, games) => games.unwrap_or(played.results.games()),
    }
}

/// Returns a JSON document about the moves of a position. `answer` contains the results of the moves, and `shown`
/// contains other values, such as evaluations. `has_results` is `false` if the source does not distinguish games
/// without a result from draws; the number of unfinished games is then `null`.
fn document(answer: &Answer, shown: &ShownMoves<'_>, has_results: bool) -> Value {
    let ShownMoves {
        pos,
        evals,
        times,
        has_scores,
        has_resulting,
        ..
    } = *shown;
    let of_move = |(number, played): (usize, &MoveAnswer)| {
        let uci = uci_of(pos, played);
        let time = times.and_then(|times| times.moves.get(&uci));
        let mut document = json!({
            "uci": uci,
            "san": played.san,
            "games": played.results.games(),
            "white": played.results.white,
            "draws": played.results.draws,
            "black": played.results.black,
            "unfinished": has_results.then_some(played.results.unfinished),
            // `null` if no rating is known.
            "average_rating": played.average_rating.filter(|rating| *rating > 0),
            "rating_games": rating_games(played),
            "opening": played.opening,
        });
        if let Some(player) = &played.player {
            document["wins"] = json!(player.stats.wins);
            document["losses"] = json!(player.stats.losses);
            let score = player_score(results_of(played, pos.turn()));
            document["score"] = json!(score.filter(|_| has_scores));
            document["score_range"] = json!(player.score_range);
            document["opponent_rating"] = json!(player.average_opponent_rating);
            document["performance"] = json!(player.performance);
            document["performance_games"] = json!(player.performance_games);
            document["last_played"] = json!(player.last_played);
        }
        let eval = evals.after.as_ref().and_then(|after| after[number]);
        add_eval(&mut document, eval);
        if let Some(time) = time {
            document["clock"] = json!(time);
        }
        if has_resulting {
            document["resulting"] = json!(played.resulting.map(|after| {
                let unfinished = has_results.then_some(after.results.unfinished);
                json!({
                    "games": after.games,
                    "white": after.results.white,
                    "draws": after.results.draws,
                    "black": after.results.black,
                    "unfinished": unfinished,
                    "ended": after.ended,
                })
            }));
        }
        document
    };
    let mut document = json!({
        "key": key::text(position::key(pos)),
        "games": answer.results.games(),
        "white": answer.results.white,
        "draws": answer.results.draws,
        "black": answer.results.black,
        "unfinished": has_results.then_some(answer.results.unfinished),
        "opening": answer.opening,
        "moves": answer.moves.iter().enumerate().map(of_move).collect::<Value>(),
    });
    if let Some(player) = &answer.player {
        document["wins"] = json!(player.stats.wins);
        document["losses"] = json!(player.stats.losses);
        document["score"] = json!(total_score(answer).filter(|_| has_scores));
        document["score_range"] = json!(player.score_range);
        document["opponent_rating"] = json!(player.opponent_rating);
        document["performance"] = json!(player.performance);
        document["performance_games"] = json!(player.performance_games);
        document["last_played"] = json!(player.last_played);
    }
    add_eval(&mut document, evals.here);
    if let Some(times) = times {
        document["clocks"] = json!({ "games": times.games, "read": times.read });
    }
    document
}

/// The position whose moves are shown, and the values that are shown in addition to the results: the evaluations and,
/// if the user requested them, the times that players took for the moves.
struct ShownMoves<'a> {
    pos: &'a VariantPosition,
    evals: &'a MoveEvals,
    times: Option<&'a Times>,
    /// Whether a player's scores are shown.
    has_scores: bool,
    /// Whether the results of the positions after the moves are shown.
    has_resulting: bool,
    /// The last half-move of games that is indexed, or `None` if the position occurs before it.
    max_ply: Option<usize>,
}

/// The text that `polybook show` prints if no game has a move in the requested position.
const NO_MOVES: &str = "no games continue from this position\n";

/// The text that `polybook show` prints if no game that passes the user's filters has a move in the requested
/// position.
const NO_FILTERED_MOVES: &str = "no game with these filters continues from this position\n";

/// Formats the moves in `answer` as a table. `shown` contains the evaluations and times of the moves. `is_filtered` is
/// `true` if the user filtered games. If `with_bars` is `true`, each row contains a bar that shows the shares of wins
/// and draws.
fn table(answer: &Answer, shown: &ShownMoves<'_>, is_filtered: bool, with_bars: bool) -> String {
    let ShownMoves {
        pos,
        evals,
        times,
        has_scores,
        has_resulting,
        max_ply,
    } = *shown;
    // Writing to a `String` does not fail.
    let mut text = evals::line(evals.here);
    if let Some(opening) = answer.opening {
        text += &format!("{} {}\n", opening.eco, opening.name);
    }
    if answer.moves.is_empty() {
        match max_ply {
            Some(max_ply) => {
                text += &format!("{}\n", not_indexed(max_ply));
            }
            None if is_filtered => text.push_str(NO_FILTERED_MOVES),
            None => text.push_str(NO_MOVES),
        }
        return text;
    }
    let moves = &answer.moves;
    let time_of =
        |played: &MoveAnswer| times.and_then(|times| times.moves.get(&uci_of(pos, played)));
    let timed_games = |played: &MoveAnswer| time_of(played).map_or(0, |time| time.games);
    let is_partly_timed = moves
        .iter()
        .any(|played| timed_games(played) < played.results.games());
    let total = answer.results;
    let share = |games: u64| format!("{:.2}%", 100.0 * games as f64 / total.games().max(1) as f64);
    let score = |score: Option<f64>| {
        let score = score.filter(|_| has_scores);
        or_dash(score.map(|score| format!("{score:.1}%")))
    };
    let score_of = |played: &MoveAnswer| player_score(results_of(played, pos.turn()));
    let performance_of = |played: &MoveAnswer| played.player.as_ref()?.performance;
    let performance = answer.player.as_ref().and_then(|player| player.performance);
    let mut columns = Columns {
        moves,
        columns: Vec::new(),
    };
    columns.add(
        "games",
        [1, 6],
        &|played| played.results.games(),
        total.games(),
    );
    columns.add(
        "share",
        [2, 7],
        &|played| share(played.results.games()),
        share(total.games()),
    );
    columns.add("white", [1, 8], &|played| played.results.white, total.white);
    columns.add("draws", [1, 8], &|played| played.results.draws, total.draws);
    columns.add("black", [1, 8], &|played| played.results.black, total.black);
    let rating = |played: &MoveAnswer| or_dash(played.average_rating.filter(|rating| *rating > 0));
    columns.add("rating", [2, 6], &rating, "-");
    if moves.iter().any(|played| played.rating_games.is_some()) {
        columns.add("rated", [2, 6], &rating_games, "");
    }
    if answer.player.is_some() {
        let total = score(total_score(answer));
        columns.add("score", [2, 6], &|played| score(score_of(played)), total);
        let range = |range: Option<[f64; 2]>| or_dash(range.map(range_text));
        let range_of = |played: &MoveAnswer| played.player.as_ref()?.score_range;
        let total = answer.player.as_ref().and_then(|player| player.score_range);
        columns.add(
            "range",
            [2, 7],
            &|played| range(range_of(played)),
            range(total),
        );
        let performance = or_dash(performance);
        columns.add(
            "perf",
            [2, 5],
            &|played| or_dash(performance_of(played)),
            performance,
        );
    }
    if total.unfinished > 0 {
        let unfinished = |played: &MoveAnswer| played.results.unfinished;
        columns.add("unfinished", [2, 10], &unfinished, total.unfinished);
    }
    if times.is_some() {
        let seconds = |played: &MoveAnswer, seconds: fn(&MoveTime) -> f64| {
            or_dash(time_of(played).map(|time| format!("{:.1}", seconds(time))))
        };
        columns.add(
            "seconds",
            [2, 7],
            &|played| seconds(played, |time| time.mean),
            "",
        );
        columns.add(
            "median",
            [2, 6],
            &|played| seconds(played, |time| time.median),
            "",
        );
        if is_partly_timed {
            columns.add("timed", [2, 5], &timed_games, "");
        }
    }
    if has_resulting {
        for (heading, number) in RESULTING {
            let after =
                |played: &MoveAnswer| or_dash(played.resulting.map(|after| number(after.results)));
            columns.add(heading, [1, 8], &after, "");
        }
    }
    let mut columns = columns.columns;
    if let Some(after) = &evals.after {
        columns.push(TextColumn {
            heading: "eval",
            widths: [2, 7],
            cells: after.iter().map(|eval| evals::cell(*eval)).collect(),
            total: String::new(),
        });
    }
    let mut row = |name: &str, cell: &dyn Fn(&TextColumn) -> &str, bar: &str, opening: &str| {
        let mut line = format!("{name:<8}");
        for column in &columns {
            let [gap, width] = column.widths;
            line += &format!("{:gap$}{:>width$}", "", cell(column));
        }
        if with_bars {
            line += &format!("  {bar:<20}");
        }
        line += &format!("  {opening}");
        text += line.trim_end();
        text.push('\n');
    };
    row("move", &|column| column.heading, "", "opening");
    for (number, played) in moves.iter().enumerate() {
        let opening = played.opening.map_or("", |opening| opening.name);
        let bar = bar(played.results);
        row(&played.san, &|column| &column.cells[number], &bar, opening);
    }
    if moves.len() > 1 {
        row("all", &|column| &column.total, &bar(total), "");
    }
    text
}

/// A function that returns one of the numbers in some results, such as the number of wins.
type NumberOf = fn(Results) -> u64;

/// The columns with the results of the games that reached the position after each move: their headings and values.
pub(super) const RESULTING: [(&str, NumberOf); 4] = [
    ("after", Results::games),
    ("white", |results| results.white),
    ("draws", |results| results.draws),
    ("black", |results| results.black),
];

/// Formats the headings of the columns [`RESULTING`].
pub(super) fn resulting_headings() -> String {
    let headings = RESULTING.iter();
    headings
        .map(|(heading, _)| format!(" {heading:>8}"))
        .collect()
}

/// Formats the cells of the columns [`RESULTING`] for one move. `results` are the results of the position after the
/// move, or `None` if the move is illegal.
pub(super) fn resulting_cells(results: Option<Results>) -> String {
    let columns = RESULTING.iter();
    let cells = columns.map(|(_, number)| format!(" {:>8}", or_dash(results.map(number))));
    cells.collect()
}

/// A column of a table of moves.
struct TextColumn {
    heading: &'static str,
    /// The number of spaces before the column, and its least width.
    widths: [usize; 2],
    /// The cells of the moves.
    cells: Vec<String>,
    /// The cell of the last row, which adds up all moves.
    total: String,
}

/// The columns of a table of the moves `moves`.
struct Columns<'a> {
    moves: &'a [MoveAnswer],
    columns: Vec<TextColumn>,
}

impl Columns<'_> {
    /// Adds a column whose cells are the values that `cell` returns for the moves.
    fn add<T: ToString>(
        &mut self,
        heading: &'static str,
        widths: [usize; 2],
        cell: &dyn Fn(&MoveAnswer) -> T,
        total: impl ToString,
    ) {
        let cells = self.moves.iter().map(|played| cell(played).to_string());
        self.columns.push(TextColumn {
            heading,
            widths,
            cells: cells.collect(),
            total: total.to_string(),
        });
    }
}

/// Formats a value of a table, or a dash if it is unknown.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Draws a bar of 20 characters. Its three parts are proportional to the numbers of White's wins, draws and Black's
/// wins.
fn bar(results: Results) -> String {
    const WIDTH: u64 = 20;
    let games = results.finished().max(1);
    let until = |sum: u64| ((WIDTH * sum + games / 2) / games) as usize;
    let (of_white, of_both) = (until(results.white), until(results.white + results.draws));
    let of_black = WIDTH as usize - of_both;
    [
        "█".repeat(of_white),
        "▒".repeat(of_both - of_white),
        "░".repeat(of_black),
    ]
    .concat()
}

/// Prints the moves of a position in the source at `path`: with results for a counts directory, or for an index that
/// was made with `make-book --leveldb --index-stats`; with weights for a repertoire. `side` is the side of the
/// repertoire.
pub fn run_counted(
    args: &Args,
    form: AnswerForm,
    (path, side): (&Path, Option<Color>),
    context: Context,
) -> anyhow::Result<()> {
    let position = &args.source.position;
    let untagged = UntaggedArg {
        untagged_variant: Variant::Standard,
    };
    let variant = position.options.variant;
    let opener = Opener::with_resources((variant, &untagged), Memory::default(), 0, context)?;
    let selection = args.filters.selection()?;
    let filter = Some(&selection).filter(|selection| !selection.is_empty());
    let source = match side {
        Some(color) => opener.repertoire(path, color)?,
        None => opener.lines(path, filter)?.0,
    };
    let variant = variant.unwrap_or(source.variant());
    let searched = Searched {
        file: path,
        only: source.stated_variant(),
    };
    let pos = Keyed::new(position.position_in(variant, &searched)?);
    let mut moves = source.moves(&pos)?;
    let evals = args.evals.open()?;
    let mut here = None;
    if let Some(evals) = &evals {
        here = evals.of_position(pos.position())?;
        for mv in &mut moves {
            mv.eval = evals.after(pos.position(), mv.mv)?;
        }
    }
    let after = |mv: &TreeMove| -> polybook::Result<Option<Results>> {
        if !args.resulting {
            return Ok(None);
        }
        let mut after = pos.clone();
        after.play(mv.mv);
        let mut sum = Results::default();
        for mv in source.moves(&after)? {
            sum += mv.results.unwrap_or_default();
        }
        Ok(Some(sum))
    };
    let resulting: Vec<Option<Results>> =
        moves.iter().map(after).collect::<polybook::Result<_>>()?;
    let (key, pos) = (key::text(pos.key()), pos.position());
    let documents = moves.iter().zip(&resulting).map(|(mv, resulting)| {
        let mut document = json!({
            "uci": uci(pos, mv.mv),
            "san": SanPlus::from_move(pos.clone(), mv.mv).to_string(),
        });
        match mv.results {
            Some(results) => {
                document["games"] = json!(mv.weight);
                document["white"] = json!(results.white);
                document["draws"] = json!(results.draws);
                document["black"] = json!(results.black);
            }
            None => document["weight"] = json!(mv.weight),
        }
        add_eval(&mut document, mv.eval);
        if let Some(resulting) = resulting {
            document["resulting"] = json!(resulting);
        }
        document
    });
    let mut document = json!({ "key": key, "moves": documents.collect::<Value>() });
    add_eval(&mut document, here);
    let mut columns = COLUMNS[..COUNTED].to_vec();
    if side.is_some() {
        columns.truncate(2);
        columns.push(Column::new("weight", ColumnType::Integer));
    }
    columns.extend(evals.iter().flat_map(|_| EVAL_COLUMNS));
    if args.resulting {
        columns.extend(RESULTING_COLUMNS);
    }
    let text = || {
        counted_table(
            pos,
            (&moves[..], &resulting[..]),
            evals::line(here),
            evals.is_some(),
        )
    };
    write(args, form, &document, columns, text, context)
}

/// The number of [`COLUMNS`] in a table of moves from a counts directory.
const COUNTED: usize = 6;

/// Formats moves as a table. `resulting` contains the results of the position after each move, if the user asked for
/// them. `line` is the line of text before the table.
fn counted_table(
    pos: &VariantPosition,
    (moves, resulting): (&[TreeMove], &[Option<Results>]),
    line: String,
    with_evals: bool,
) -> String {
    if moves.is_empty() {
        return NO_MOVES.to_owned();
    }
    let has_results = moves.iter().any(|mv| mv.results.is_some());
    let mut text = line;
    text.push_str(if has_results {
        "move      games    white    draws    black"
    } else {
        "move     weight"
    });
    text.push_str(if with_evals { "     eval" } else { "" });
    if resulting.iter().any(Option::is_some) {
        text += &resulting_headings();
    }
    text.push('\n');
    for (mv, resulting) in moves.iter().zip(resulting) {
        let san = SanPlus::from_move(pos.clone(), mv.mv).to_string();
        text += &format!("{san:<8} {:>6}", mv.weight);
        if let Some(results) = mv.results {
            let Results {
                white,
                draws,
                black,
                ..
            } = results;
            text += &format!(" {white:>8} {draws:>8} {black:>8}");
        }
        if with_evals {
            text += &format!("  {:>7}", evals::cell(mv.eval));
        }
        if resulting.is_some() {
            text += &resulting_cells(*resulting);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_of_one_width() {
        let bar = |[white, draws, black]: [u64; 3]| {
            bar(Results {
                white,
                draws,
                black,
                unfinished: 5,
            })
        };
        assert_eq!(bar([1, 0, 0]), "█".repeat(20));
        assert_eq!(
            bar([1, 1, 2]),
            ["█".repeat(5), "▒".repeat(5), "░".repeat(10)].concat()
        );
        for results in [[0, 0, 0], [1, 2, 4], [33, 33, 34], [u64::MAX / 64, 1, 7]] {
            assert_eq!(bar(results).chars().count(), 20, "{results:?}");
        }
    }
}

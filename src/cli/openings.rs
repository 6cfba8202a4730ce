//! `polybook openings`: shows the openings of games, and a player's results with them.

use std::collections::BTreeSet;

use polybook::{
    explorer::{Explorer, Line, OpeningRow, OpeningTable, Query, Selection, SuggestField, View},
    openings::Opening,
    position::{Variant, uci},
    storage::table::{Column, ColumnType},
};
use serde_json::{Value, json};

use super::{
    Context,
    filters::{
        SelectionArgs, add_matched, add_max_ply, add_other_starts, check_names, explorer_of,
        say_duplicates, say_lacking, say_other_starts, search_board,
    },
    input::refuse_counts_for_games,
    plural,
    position::SourceArgs,
    resources::count,
    terminal::{AnswerArgs, AnswerForm, one_decimal, range_text},
    usage::Usage,
};

/// List the openings of games, with a player's results: where do I lose?
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The opening of a game is the last named position that its moves reach, by any order of moves; its tags do not matter. With a
position, only games that reached the position are listed.

With --player, results and scores are the player's; otherwise they are White's. \"points\" are the player's points minus those
that the ratings of the opponents predict: -7.8 means 7.8 points less than expected. The prediction follows from the player's
performance with the same color in all other openings, even if --opening, --eco or --position leaves them out of the table;
opponents without a rating count by the player's average in these games. \"avg\" compares the points with the player's average
score instead, however strong the opponents are: for openings against strong opponents, it is too low. The range contains the
true score with a probability of about 80 %. From ten games, \"weaker\" or \"stronger\" marks a range that does not contain the
predicted score; chance alone marks about one such opening in five, so the last line compares the number of marks with that.
Games without a result do not change scores. With --result, the table has no scores, because they would describe only the
selection.

Examples:
  polybook openings games.pgn --player \"Carlsen, Magnus\" --color black
  polybook openings games.idx --player DrNykterstein --color white --families --min-games 10
  polybook openings games.idx --sort games \"1. d4 Nf6\"
  polybook openings games.idx --player Me --opening B20-B99 --json
  polybook openings games.pgn --out openings.csv")]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// Combine all variations of an opening such as Sicilian Defense into one row
    #[arg(long)]
    families: bool,

    /// Choose what the openings are sorted by. With "points", the openings in which the player scored most below the
    /// expectation come first; with "score" and "performance", those with the highest value (see --min-games);
    /// with "games" and "last", those with the most games and the latest game [default: points with --player and without
    /// --result, else games]
    #[arg(long, value_enum)]
    sort: Option<OpeningOrder>,

    /// List only openings and families with at least N games
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<u64>(0))]
    min_games: u64,

    /// List at most N rows. A row is an opening or a family of openings
    #[arg(long, value_name = "N", value_parser = count::<usize>(0))]
    limit: Option<usize>,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    filters: SelectionArgs,
}

/// The value by which openings are sorted for printing, such as the number of games.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
enum OpeningOrder {
    Points,
    Games,
    Score,
    Performance,
    Name,
    Last,
}

/// The minimum number of finished games with which an opening may be marked as `weaker` or `stronger`. With fewer
/// games, a difference between the score and the expected score means little.
const LIKELY_GAMES: u64 = 10;

/// The maximum number of names that may replace a mistyped name.
const MOST_CORRECTED: usize = 3;

/// The mean share of openings that are marked as `weaker` or `stronger` by chance, although their true score is the
/// average. It is about the probability that an 80 % confidence interval does not contain the true value.
const MARKED_BY_CHANCE: f64 = 0.2;

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let form = args.answer.form(&args.source.paths, &[])?;
    let mut filters = args.filters.for_index()?;
    let of_player = !filters.player.is_empty();
    let by_result = args.filters.select_by_result();
    let order = args.sort.unwrap_or(if of_player && !by_result {
        OpeningOrder::Points
    } else {
        OpeningOrder::Games
    });
    let (option, needs_player) = match order {
        OpeningOrder::Points => (Some("--sort points"), true),
        OpeningOrder::Performance => (Some("--sort performance"), true),
        OpeningOrder::Score => (Some("--sort score"), false),
        _ => (None, false),
    };
    Usage::refuse(
        option.filter(|_| needs_player && !of_player),
        "needs --player",
    )?;
    Usage::refuse(
        option.filter(|_| by_result),
        "needs games with all results: leave out --result, or use --sort games",
    )?;
    refuse_counts_for_games(&args.source.paths)?;
    let explorer = explorer_of(&args.source.paths, context)?;
    if !filters.exact {
        filters.player = corrected(&explorer, &filters.player, context)?;
    }
    let line = args
        .source
        .position
        .line_in_explorer(&explorer, &args.source.paths)?;
    let at = Line::at(line.variant(), line.position().clone());
    search_board(&explorer, &filters, context)?;
    let table = explorer.openings(&at, &filters)?;
    let has_games = table.results.games() > 0;
    let matched = check_names(&explorer, &filters, has_games, context)?;
    let query = Query {
        filters: filters.clone(),
        ..Query::new(at, View::Lichess)
    };
    say_duplicates(&explorer, &query, context)?;
    say_lacking(&explorer, (&filters, has_games), line.position(), context);
    let other_starts = say_other_starts(&explorer, &line, &filters, context)?;
    let mut families = table.families.clone();
    sort(&mut families, order);
    let mut rows: Vec<(&OpeningRow, bool)> = Vec::new();
    for family in families
        .iter()
        .filter(|row| row.results.games() >= args.min_games)
    {
        // The rows of a table do not overlap, so that they can be added up.
        let is_table = matches!(form, AnswerForm::Table(_));
        if args.families || !is_table {
            rows.push((family, false));
        }
        // If the only opening of a family has the name of the family, a second row would repeat the first one.
        let is_alone = matches!(&family.variations[..], [only] if only.name == family.name);
        if !args.families && (form != AnswerForm::Text || !is_alone) {
            let variations = family.variations.iter();
            let variations = variations.filter(|row| row.results.games() >= args.min_games);
            rows.extend(variations.map(|row| (row, true)));
        }
    }
    if rows.is_empty() && !table.families.is_empty() {
        context.say(&format!(
            "no opening was played in at least {}: use a lower --min-games\n",
            plural(args.min_games, "game")
        ));
    }
    let chance = chance_line(&rows, args.min_games).filter(|_| of_player && !by_result);
    let all = rows.len();
    rows.truncate(args.limit.unwrap_or(usize::MAX));
    match form {
        AnswerForm::Json => {
            let mut document = document(&table, &rows, of_player)?;
            add_other_starts(&mut document, other_starts);
            add_max_ply(&mut document, &explorer, &filters);
            add_matched(&mut document, &matched);
            args.answer.write_json(&document)?;
        }
        AnswerForm::Table(format) => {
            let columns = COLUMNS.into_iter();
            let columns = columns.chain(PLAYER_COLUMNS.into_iter().filter(|_| of_player));
            let described = rows
                .iter()
                .map(|(row, _)| table_row(row, of_player, line.variant()));
            args.answer.write_table(format, columns, described)?;
        }
        AnswerForm::Text => args
            .answer
            .write(&(text(&table, &rows, of_player) + &chance.unwrap_or_default()))?,
    }
    let number = rows.len() as u64;
    args.answer.say_written(number, "opening", context);
    if rows.len() < all {
        let more = all - rows.len();
        context.say(&format!("{more} more: --limit {all} lists all of them\n"));
    }
    Ok(())
}

/// The columns of a table of openings. [`table_row`] creates a row.
const COLUMNS: [Column; 16] = [
    Column::new("family", ColumnType::Text),
    Column::at("opening", ColumnType::Text, "/name"),
    Column::at("first_eco", ColumnType::Text, "/eco/0"),
    Column::at("last_eco", ColumnType::Text, "/eco/1"),
    Column::new("games", ColumnType::Integer),
    Column::new("white", ColumnType::Integer),
    Column::new("draws", ColumnType::Integer),
    Column::new("black", ColumnType::Integer),
    Column::new("unfinished", ColumnType::Integer),
    Column::new("score", ColumnType::Number),
    Column::at("score_low", ColumnType::Number, "/score_range/0"),
    Column::at("score_high", ColumnType::Number, "/score_range/1"),
    Column::new("rating", ColumnType::Integer),
    Column::new("last_played", ColumnType::Text),
    Column::new("line", ColumnType::Text),
    Column::new("line_games", ColumnType::Integer),
];

/// The additional columns if the user named a player.
const PLAYER_COLUMNS: [Column; 7] = [
    Column::new("wins", ColumnType::Integer),
    Column::new("losses", ColumnType::Integer),
    Column::new("points", ColumnType::Number),
    Column::new("points_above_average", ColumnType::Number),
    Column::new("opponent_rating", ColumnType::Integer),
    Column::new("performance", ColumnType::Integer),
    Column::new("likely", ColumnType::Text),
];

/// Converts an opening to a row of a table. The line of moves is written in UCI notation, with castling as in all
/// tables.
fn table_row(row: &OpeningRow, of_player: bool, variant: Variant) -> polybook::Result<Value> {
    let mut document = json!(OpeningRow {
        variations: Vec::new(),
        ..row.clone()
    });
    let [eco, _] = row.eco;
    let name = row.name;
    document["family"] = json!(Opening { eco, name }.family());
    if of_player {
        document["likely"] = json!(likely(row));
    }
    let line = Line::parse(variant, None, &row.line.join(","));
    let moves = line.ok().map(|line| {
        let moves = line.positions().iter().zip(line.moves());
        let moves = moves.map(|(pos, mv)| uci(pos, *mv));
        moves.collect::<Vec<_>>().join(" ")
    });
    document["line"] = json!(moves);
    Ok(document)
}

/// Corrects the names of a player, and tells the user about it. Each name that occurs in no game is replaced by the
/// names that differ from it by the fewest typing errors. The search is that of the web page, which allows up to two
/// typing errors. A name stays unchanged if no similar name is found, or if the similar names have different surnames.
fn corrected(
    explorer: &Explorer,
    names: &[String],
    context: Context,
) -> anyhow::Result<Vec<String>> {
    let of_player = Selection {
        player: names.to_vec(),
        ..Selection::default()
    };
    let unknown = match names {
        [] => Vec::new(),
        _ => explorer.unknown_names(&of_player)?,
    };
    let mut corrected = Vec::new();
    for name in names {
        let is_unknown = unknown.iter().any(|unknown| unknown.name == *name);
        let mut found = if is_unknown {
            explorer.suggest(SuggestField::Player, name, MOST_CORRECTED, None)?
        } else {
            Vec::new()
        };
        let fewest = found.first().map_or(0, |first| first.distance);
        found.retain(|similar| similar.distance == fewest);
        let surname = |name: &str| name.split(',').next().unwrap_or_default().to_lowercase();
        let surnames: BTreeSet<String> = found.iter().map(|one| surname(&one.name)).collect();
        if surnames.len() != 1 {
            corrected.push(name.clone());
            continue;
        }
        let quoted = found.iter().map(|similar| format!("\"{}\"", similar.name));
        let quoted = quoted.collect::<Vec<_>>().join(" and ");
        context.say(&format!(
            "no player's name contains \"{name}\": the games are those of {quoted}\n"
        ));
        corrected.extend(found.into_iter().map(|similar| similar.name));
    }
    Ok(corrected)
}

/// Sorts the rows of a table of openings by the value that `order` names. Within each row, also sorts the variations of
/// the opening.
fn sort(rows: &mut [OpeningRow], order: OpeningOrder) {
    rows.sort_by(|a, b| compare(a, b, order));
    for row in rows {
        sort(&mut row.variations, order);
    }
}

/// Compares two rows of a table of openings by the value that `order` names. Rows in which this value is unknown come
/// last. Rows with equal values are ordered by their number of games, largest first, and then by name.
fn compare(a: &OpeningRow, b: &OpeningRow, order: OpeningOrder) -> std::cmp::Ordering {
    let ascending = |a: Option<f64>, b: Option<f64>| {
        let value = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
        value(a).total_cmp(&value(b))
    };
    let descending = |a: Option<f64>, b: Option<f64>| ascending(a.map(|a| -a), b.map(|b| -b));
    let performance = |row: &OpeningRow| row.performance.map(|rating| rating as f64);
    let first = match order {
        OpeningOrder::Points => ascending(a.points, b.points),
        OpeningOrder::Games => b.results.games().cmp(&a.results.games()),
        OpeningOrder::Score => descending(a.score, b.score),
        OpeningOrder::Performance => descending(performance(a), performance(b)),
        OpeningOrder::Name => a.name.cmp(b.name),
        OpeningOrder::Last => b.last_played.cmp(&a.last_played),
    };
    first
        .then_with(|| b.results.games().cmp(&a.results.games()))
        .then_with(|| a.name.cmp(b.name))
}

/// Returns the ECO code of an opening, such as `B20`, or its range of codes, such as `B20-B99`.
fn codes(row: &OpeningRow) -> String {
    match row.eco {
        [first, last] if first == last => first.to_owned(),
        [first, last] => format!("{first}-{last}"),
    }
}

/// Returns `weaker` or `stronger` if the score of an opening differs from the expected score by more than chance
/// explains, which means that the expected score lies outside the confidence interval of the score. Otherwise, or if
/// fewer than [`LIKELY_GAMES`] games are finished, returns `None`.
fn likely(row: &OpeningRow) -> Option<&'static str> {
    let [low, high] = row.score_range?;
    let expected = row.expected_score?;
    match row.results.finished() >= LIKELY_GAMES {
        true if high < expected => Some("weaker"),
        true if low > expected => Some("stronger"),
        _ => None,
    }
}

/// Returns a line of text that says how many openings in `rows` are marked as `weaker` or `stronger`, and how many of
/// them chance alone would mark on average. Ignores rows of variations, because the row of an opening includes the
/// games of its variations. Each row has at least `min_games` games. Returns `None` if no row has enough games to be
/// marked.
fn chance_line(rows: &[(&OpeningRow, bool)], min_games: u64) -> Option<String> {
    let openings = rows.iter().filter(|(_, is_variation)| !is_variation);
    let openings: Vec<&OpeningRow> = openings.map(|(row, _)| *row).collect();
    let marked = openings.iter().filter(|row| likely(row).is_some()).count();
    let judged = openings
        .iter()
        .filter(|row| row.results.finished() >= LIKELY_GAMES && row.expected_score.is_some());
    let judged = judged.count();
    (judged > 0).then(|| {
        format!(
            "marked: {marked} of {} with at least {} games; chance alone would mark about {:.1}\n",
            plural(judged as u64, "opening"),
            LIKELY_GAMES.max(min_games),
            MARKED_BY_CHANCE * judged as f64
        )
    })
}

/// Converts a table of openings to a JSON document. Each element of `rows` is a row, with a flag that is `true` if the
/// row is a variation. Variations follow the row of their opening. If `of_player` is `true`, all games are those of one
/// player, and the results in the table are the results of this player.
fn document(
    table: &OpeningTable,
    rows: &[(&OpeningRow, bool)],
    of_player: bool,
) -> anyhow::Result<Value> {
    let mut families: Vec<Value> = Vec::new();
    for (row, is_variation) in rows {
        let mut shown = serde_json::to_value(OpeningRow {
            variations: Vec::new(),
            ..(*row).clone()
        })?;
        if of_player {
            shown["likely"] = json!(likely(row));
        }
        match families.last_mut().filter(|_| *is_variation) {
            None => families.push(shown),
            Some(family) => match &mut family["variations"] {
                Value::Array(variations) => variations.push(shown),
                missing => *missing = json!([shown]),
            },
        }
    }
    let mut document = serde_json::to_value(OpeningTable {
        families: Vec::new(),
        ..table.clone()
    })?;
    document["families"] = families.into();
    Ok(document)
}

/// Formats a number of points with a sign and one decimal place. A number that is rounded to 0 has no sign.
fn signed(points: f64) -> String {
    let sign = if points > 0.0 { "+" } else { "" };
    let text = format!("{sign}{}", one_decimal(points));
    match text.as_str() {
        "+0.0" | "-0.0" => "0.0".to_owned(),
        _ => text,
    }
}

/// Formats a table of openings as text. Each element of `rows` is a row, with a flag that is `true` if the row is a
/// variation of an opening. Variations are indented. If `of_player` is `true`, all games are those of one player, and
/// the results in the table are the results of this player.
fn text(table: &OpeningTable, rows: &[(&OpeningRow, bool)], of_player: bool) -> String {
    let all_games = plural(table.all_games, "game");
    let is_part = table.results.games() < table.all_games;
    let mut text = if is_part {
        format!("{} of {all_games}", table.results.games())
    } else {
        all_games.clone()
    };
    if table.results.unfinished > 0 {
        text += &format!(", {} without a result", table.results.unfinished);
    }
    if let Some(average) = table.average_score {
        let whose = if of_player {
            "average"
        } else {
            "White's average"
        };
        let of_all = if is_part {
            format!(" in all {all_games}")
        } else {
            String::new()
        };
        text += &format!(", {whose} score{of_all} ");
        text += &match table.average_by_color {
            Some([white, black]) => format!(
                "{} % with White, {} % with Black (avg compares each game with that of its color)",
                one_decimal(white),
                one_decimal(black)
            ),
            None => format!("{} %", one_decimal(average)),
        };
    }
    if let Some([white, black]) = table.performance_by_color {
        text += &format!(", performance {white} with White, {black} with Black");
    } else if let Some(performance) = table.performance {
        text += &format!(", performance {performance}");
    }
    if let Some(rating) = table.opponent_rating {
        text += &format!(", opponents {rating} on average");
    }
    if table.unnamed > 0 {
        text += &format!(", {} without a named opening", table.unnamed);
    }
    text.push('\n');
    if rows.is_empty() {
        return text;
    }
    let name_of = |(row, is_variation): &(&OpeningRow, bool)| {
        if *is_variation {
            format!("  {}", row.name)
        } else {
            row.name.to_owned()
        }
    };
    let names: Vec<String> = rows.iter().map(name_of).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let heads = if of_player {
        format!(
            "{:>7}  {:>6}  {:>5}  {:>5}  {:<8}  {:<10}",
            "points", "avg", "opp", "perf", "likely", "last"
        )
    } else {
        format!("{:>6}  {:<10}", "rating", "last")
    };
    let results = if of_player {
        ["won", "drawn", "lost"]
    } else {
        ["white", "drawn", "black"]
    };
    let [won, drawn, lost] = results;
    let head = format!(
        "{:width$}  {:<7}  {:>7}  {won:>6}  {drawn:>6}  {lost:>6}  {:>6}  {:>9}  {heads}",
        "opening", "codes", "games", "score", "range"
    );
    text += &format!("{}\n", head.trim_end());
    for ((row, _), name) in rows.iter().zip(&names) {
        let score = row
            .score
            .map_or(String::new(), |score| format!("{}%", one_decimal(score)));
        let range = row.score_range.map_or(String::new(), range_text);
        let [points, average] = [row.points, row.points_above_average]
            .map(|points| points.map_or(String::new(), signed));
        let last = row.last_played.as_deref().unwrap_or_default();
        let number = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
        let tail = if of_player {
            format!(
                "{points:>7}  {average:>6}  {:>5}  {:>5}  {:<8}  {last}",
                number(row.opponent_rating),
                number(row.performance),
                likely(row).unwrap_or_default(),
            )
        } else {
            format!("{:>6}  {last}", number(row.rating))
        };
        let line = format!(
            "{name:width$}  {:<7}  {:>7}  {:>6}  {:>6}  {:>6}  {score:>6}  {range:>9}  {tail}",
            codes(row),
            row.results.games(),
            row.stats.wins,
            row.stats.draws,
            row.stats.losses,
        );
        text += &format!("{}\n", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn points_have_a_sign_unless_they_are_zero() {
        let texts = [-0.3503, 0.04, -0.04, 0.0, 0.06].map(signed);
        assert_eq!(texts, ["-0.4", "0.0", "0.0", "0.0", "+0.1"]);
    }
}

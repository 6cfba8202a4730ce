//! `polybook prepare`: shows an opponent's moves, with the user's results against them and the user's answers.

use std::path::PathBuf;

use polybook::{
    Error,
    counts::Memory,
    explorer::{
        AnswerSource, HalfLife, MIN_REPLY_GAMES, PlayerGames, Preparation, PrepareQuery,
        PreparedLine, PreparedMove, not_indexed,
    },
    position::Keyed,
    repertoire::{write_prepared, write_prepared_tree},
    results::Results,
    selection::Duplicates,
    storage::output::is_standard_output,
};
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    Context,
    filters::{
        SelectionArgs, add_matched, add_max_ply, add_other_starts, check_names, explorer_of,
        say_others, search_board,
    },
    input::{check_output, refuse_counts_for_games},
    plural,
    position::{SourceArgs, UntaggedArg},
    repertoire::{Opener, pgn_output},
    resources::count,
    terminal::{one_decimal, print, print_json, range_text},
    usage::Usage,
};

/// Prepare for an opponent: the opponent's moves, your results after them, and your answers
#[derive(clap::Args, Debug)]
#[command(after_help = "\
--player is you, and --color is your color; the opponent's games are those with the other color. The filters apply to the games
of both. A game that several files contain counts once. A name matches if it contains the given text; with --exact, the whole
name must match.

If the opponent is to move in the position, the list contains the opponent's moves; your games and your score are those of the
position after each move, by any order of moves. Your answer is the move of the repertoire or, if it contains none, the move that
you played most often, in at least five games, marked as \"(usual)\". \"no usual answer\" lists moves that you played in fewer games.
A \"gap\" is a move of the opponent that was played in at least two games and that you do not answer, although you answer another
move in the same position; your answers are the moves of the repertoire or, without one, all moves that you played. \"end of a
line\" means that the repertoire answers no move in the position. If you are to move, the list contains your moves.

\"Look at these first\" lists gaps that at least one game in ten reaches, then the lines that are likely to cost you most points,
then the likeliest other gaps. The two likeliest ends of lines of the repertoire are listed below. \"their games\" are the
opponent's games that reached the end of the line. \"1 in N\" means that one game of N follows the line: the shares of the
opponent's moves and of yours are multiplied, and moves of the repertoire share the probability equally. With --half-life, older
games count less in these shares; a game without a year counts as much as the first game of the same player with one.

A line costs points if you score less after it than the ratings of your opponents and your other games with this color predict
(\"expected\", as in polybook openings), in at least ten games with a result, and \"range\", which contains your true score with
a probability of about 80 %, does not contain the predicted score. Part of such a difference is chance, so the difference is
reduced by this part, and multiplied by the probability of the line. Lines that cost less than 0.005 points per game are left
out. A last line compares the number of listed lines that cost points with the number that chance alone would list.

--out writes the lines to look at first as games that end with your answers.

Examples:
  polybook prepare games.pgn --opponent caruana --player aronian --color black
  polybook prepare games.idx --opponent caruana --player aronian --color black --half-life 2 \"1. e4 e5\"
  polybook prepare games.idx --opponent them --player me --player \"my name\" --color white --repertoire white.pgn --out tonight.pgn",
    mut_arg("result", |arg| arg.hide(true)))]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// Show your repertoire's answer to each move of the opponent. A repertoire is a PGN file, a book or an OOBS
    /// database
    #[arg(long, value_name = "REPERTOIRE")]
    repertoire: Option<PathBuf>,

    #[command(flatten)]
    untagged: UntaggedArg,

    /// List at most N lines for study, the most important lines first. At most two of them end at a gap in the
    /// repertoire
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = count::<usize>(0))]
    lines: usize,

    /// Call a move a gap, and list a line, only if the opponent played the move or the last move of the line in at
    /// least N games
    #[arg(long, value_name = "N", default_value_t = MIN_REPLY_GAMES, value_parser = count::<u64>(0))]
    min_game: u64,

    /// Let a game that is YEARS years older count half as much in the probability of a line, because players change
    /// their openings. YEARS is a number such as 2 or 0.5. By default, all games count equally
    #[arg(long, value_name = "YEARS")]
    half_life: Option<HalfLife>,

    /// Write the most important lines to this file, as PGN with one game per line, and then a tree of the moves of both
    /// players
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing file of any kind. Without this option, only an empty file is replaced
    #[arg(long, requires = "out")]
    force: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    filters: SelectionArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    // A missing name is reported before anything that depends on it.
    for (is_given, usage) in [
        (
            args.filters.name_player(),
            "who are you? give your name with --player",
        ),
        (
            args.filters.name_opponent(),
            "who is the opponent? give the opponent's name with --opponent",
        ),
    ] {
        if !is_given {
            return Err(Usage(usage.to_owned()).into());
        }
    }
    let mut filters = args.filters.for_index()?;
    // The files of the two players often contain the same games.
    filters.duplicates.get_or_insert(Duplicates::Once);
    let Some(color) = filters.color else {
        let usage = "your color is missing: give --color white or --color black";
        return Err(Usage(usage.to_owned()).into());
    };
    if args.filters.select_by_result() {
        let usage = "--result does not apply to a preparation, which contains the results of both players: leave \
                     --result out";
        return Err(Usage(usage.to_owned()).into());
    }
    let out = match &args.out {
        Some(out) if is_standard_output(out) => {
            let usage = "the list and the output of --out would both go to standard output: give a file with --out";
            return Err(Usage(usage.to_owned()).into());
        }
        Some(_) if args.lines == 0 => {
            let usage =
                "--lines 0 leaves no lines to write with --out: remove one of the two options";
            return Err(Usage(usage.to_owned()).into());
        }
        Some(out) => {
            let inputs: Vec<&PathBuf> = args.source.paths.iter().chain(&args.repertoire).collect();
            check_output(out, &inputs, false)?;
            Some((out, pgn_output(out, args.force)?))
        }
        None => None,
    };
    refuse_counts_for_games(&args.source.paths)?;
    let explorer = explorer_of(&args.source.paths, context)?;
    let line = args
        .source
        .position
        .line_in_explorer(&explorer, &args.source.paths)?;
    let (variant, pos) = (line.variant(), line.position().clone());
    let opener = Opener::with_defaults(&args.untagged, context)?;
    let repertoire = match &args.repertoire {
        Some(path) => {
            let known = opener.repertoire(path, color)?;
            if !known.is_for(variant) {
                anyhow::bail!(
                    "{}: this repertoire contains no games of {variant}: give --variant with a variant of the \
                     repertoire",
                    path.display()
                );
            }
            Some(known)
        }
        None => None,
    };
    let moves = |pos: &VariantPosition| match &repertoire {
        Some(known) => known.moves_by_weight(&Keyed::new(pos.clone())),
        None => Ok(Vec::new()),
    };
    let query = PrepareQuery {
        line,
        filters: filters.clone(),
        color,
        repertoire: repertoire.as_ref().map(|_| &moves as _),
        lines: args.lines,
        min_games: args.min_game,
        half_life: args.half_life,
        should_continue: &|| true,
    };
    search_board(&explorer, &filters, context)?;
    let prepared = explorer.prepare(&query)?;
    let has_games = prepared.theirs.results.games() > 0 && prepared.yours.results.games() > 0;
    let matched = check_names(&explorer, &filters, has_games, context)?;
    if let Some(name) = &matched.both {
        context.say(&format!(
            "warning: --player and --opponent both match \"{name}\": give more of the names, or the whole names with \
             --exact\n"
        ));
    }
    for (games, whose) in [(&prepared.theirs, "the opponent"), (&prepared.yours, "you")] {
        if games.results.games() == 0 {
            context.say(&format!(
                "no game of {whose} with this color reaches the position and passes the filters\n"
            ));
        }
    }
    let others = explorer.other_starts_of_players(&query)?;
    let other_starts = say_others(&explorer, others, "--fen", context);
    if let Some(line) = explorer.lacking_line(&filters) {
        context.say(&line);
    }
    let lines = prepared.lines.as_deref().unwrap_or_default();
    let names = ShownPlayers {
        theirs: filters.opponent.join(" or "),
        color,
    };
    let written = match out {
        None => Ok(()),
        Some((path, _)) if lines.is_empty() => {
            let problem = "the output would be empty, because there are no lines to look at first";
            Err(Error::empty(path, problem))
        }
        Some((path, mut out)) => {
            write_prepared(&query, lines, &mut out, path)?;
            context.show_progress("writing", |meter| {
                let memory = Memory::default();
                write_prepared_tree(&explorer, &query, lines, &mut out, path, &memory, meter)
            })?;
            Ok(out.commit()?)
        }
    };
    if args.json {
        let mut document = serde_json::to_value(&prepared)?;
        add_other_starts(&mut document, other_starts);
        add_max_ply(&mut document, &explorer, &filters);
        add_matched(&mut document, &matched);
        print_json(&document)?;
    } else {
        let max_ply = explorer.max_ply_before(&filters, &pos);
        print(&text(&prepared, &pos, &names, max_ply))?;
    }
    written?;
    if let Some(out) = args.out.as_ref().filter(|_| !args.json) {
        let lines = plural(lines.len() as u64, "line");
        context.say(&format!("{}: {lines}\n", out.display()));
    }
    Ok(())
}

/// The people in the printed text: the names of the opponent, and the color of the user, who prepares for this
/// opponent.
struct ShownPlayers {
    theirs: String,
    color: Color,
}

/// The text for a move or a line to which the user has no usual answer, although the user has played moves after it.
const NO_USUAL_ANSWER: &str = "no usual answer";

/// The text for a move that the user does not answer, although the user answers another move in the same position.
const GAP: &str = "gap";

/// The text for a move after which the user's repertoire contains no move, because a line ends before it.
const END: &str = "end of a line";

/// Formats a score from 0 to 1 as a percentage. Returns a hyphen if `score` is `None`.
fn percent(score: Option<f64>) -> String {
    score.map_or("-".to_owned(), |score| {
        format!("{}%", one_decimal(100.0 * score))
    })
}

/// Formats `prepared`, the preparation for an opponent, as text. The text contains the results of both people, the
/// moves in the position `pos`, and the lines to study first. `max_ply` is the last half-move that is indexed, or
/// `None` if `pos` occurs before it.
fn text(
    prepared: &Preparation,
    pos: &VariantPosition,
    names: &ShownPlayers,
    max_ply: Option<usize>,
) -> String {
    let mut text = String::new();
    let color = names.color;
    let of = |games: &PlayerGames, color| {
        if games.results.games() == 0 {
            return "no games".to_owned();
        }
        let last = games.last_played.as_ref();
        let last = last.map_or(String::new(), |last| format!(", the last {last}"));
        let unfinished = plural(games.results.unfinished, "game");
        let finished = plural(games.results.finished(), "game");
        let score = percent(games.results.score(color));
        match (games.results.finished(), games.results.unfinished) {
            (0, _) => format!("{unfinished} without a result{last}"),
            (_, 0) => format!("{score} in {finished}{last}"),
            (_, more) => format!("{score} in {finished}, {more} more without a result{last}"),
        }
    };
    let met = match (prepared.met.results.games(), prepared.met_reversed) {
        (0, 1..) => format!(
            "no games with you as {color} ({} with you as {})",
            prepared.met_reversed, !color
        ),
        _ => of(&prepared.met, color),
    };
    let rows = [
        (
            format!("{} as {}", names.theirs, !color),
            of(&prepared.theirs, !color),
        ),
        (format!("you as {color}"), of(&prepared.yours, color)),
        ("you against them".to_owned(), met),
    ];
    let width = rows.iter().map(|(whose, _)| whose.chars().count()).max();
    for (whose, results) in &rows {
        let width = width.unwrap_or(0);
        text += &format!("{whose:width$}  {results}\n");
    }
    text.push('\n');
    if prepared.moves.is_empty() {
        let none = || "no moves in this position".to_owned();
        text += &format!("{}\n", max_ply.map_or_else(none, not_indexed));
    } else if pos.turn() == color {
        own_moves(&mut text, prepared, color);
    } else {
        their_moves(&mut text, prepared, color);
    }
    for (lines, title) in [
        (&prepared.lines, "look at these first"),
        (
            &prepared.line_ends,
            "after the ends of lines of the repertoire",
        ),
    ] {
        let Some(lines) = lines.as_ref().filter(|lines| !lines.is_empty()) else {
            continue;
        };
        let unfinished = UnfinishedColumn::of(lines.iter().map(|line| line.yours));
        let weighted = prepared.half_life.map_or(String::new(), |half_life| {
            format!(" (\"1 in\" counts games with a half-life of {half_life})")
        });
        text += &format!(
            "\n{title}{weighted}\n{:>7}  {:>11}  {:>10}  {:>6}  {:>7}  {:>8}  {}line\n",
            "1 in",
            "their games",
            "your games",
            "score",
            "range",
            "expected",
            unfinished.heading()
        );
        for line in lines {
            text += &format!("{}\n", line_row(line, pos, unfinished));
        }
    }
    if let Some(weak) = prepared.weak_lines.filter(|weak| weak.judged > 0) {
        text += &format!(
            "lines that cost points: {} of {} with at least 10 games; chance alone would list about {:.1}\n",
            weak.listed, weak.judged, weak.by_chance
        );
    }
    text
}

/// Appends a table of the opponent's moves in `prepared` to `text`. `color` is the color of the user, who prepares for
/// this opponent.
fn their_moves(text: &mut String, prepared: &Preparation, color: Color) {
    let since = prepared.recent_since;
    let since = since.map_or("recent".to_owned(), |year| format!("since {year}"));
    let answer = |mv: &PreparedMove| {
        let answer = match &mv.answer {
            Some(answer) if answer.source == AnswerSource::Games => {
                format!("{} ({})", answer.san, answer.source.word())
            }
            Some(answer) => answer.san.clone(),
            None if mv.unindexed => "not indexed".to_owned(),
            None if mv.tried.is_empty() => String::new(),
            None => {
                let tried = mv.tried.iter();
                let tried = tried.map(|answer| format!("{} {}", answer.san, answer.games));
                format!("({NO_USUAL_ANSWER}: {})", Vec::from_iter(tried).join(", "))
            }
        };
        let state = match (mv.gap, mv.line_end) {
            (true, _) => GAP,
            (_, true) => END,
            _ if answer.is_empty() => "-",
            _ => "",
        };
        let parts = [&*answer, state]
            .into_iter()
            .filter(|part| !part.is_empty());
        Vec::from_iter(parts).join(", ")
    };
    let answers = Vec::from_iter(prepared.moves.iter().map(answer));
    let width = answers.iter().map(String::len).max().unwrap_or(0).max(7);
    let unfinished = UnfinishedColumn::of(prepared.moves.iter().map(|mv| mv.yours));
    *text += &format!(
        "{:<9} {:>7}  {:>6}  {since:>10}  {:>10}  {:>6}  {}{:<width$}  opening\n",
        "they play",
        "games",
        "share",
        "your games",
        "score",
        unfinished.heading(),
        "answer"
    );
    let all: u64 = prepared
        .moves
        .iter()
        .map(|mv| mv.theirs.results.games())
        .sum();
    for (mv, answer) in prepared.moves.iter().zip(&answers) {
        let games = mv.theirs.results.games();
        let row = format!(
            "{:<9} {games:>7}  {:>6}  {:>10}  {:>10}  {:>6}  {}{answer:<width$}  {}",
            mv.san,
            percent((all > 0).then(|| games as f64 / all as f64)),
            mv.theirs.recent,
            mv.yours.games(),
            percent(mv.yours.score(color)),
            unfinished.cell(mv.yours),
            opening(mv),
        );
        *text += &format!("{}\n", row.trim_end());
    }
}

/// Appends a table of the user's own moves in `prepared` to `text`. `color` is the color of the user.
fn own_moves(text: &mut String, prepared: &Preparation, color: Color) {
    let (yours, theirs) = (
        UnfinishedColumn::of(prepared.moves.iter().map(|mv| mv.yours)),
        UnfinishedColumn::of(prepared.moves.iter().map(|mv| mv.theirs.results)),
    );
    *text += &format!(
        "{:<9} {:>10}  {:>10}  {}{:>11}  {:>11}  {}{:<10}  opening\n",
        "you play",
        "your games",
        "your score",
        yours.heading(),
        "their games",
        "their score",
        theirs.heading(),
        "answer"
    );
    for mv in &prepared.moves {
        let answer = match &mv.answer {
            Some(answer) => answer.source.word(),
            None => "",
        };
        let row = format!(
            "{:<9} {:>10}  {:>10}  {}{:>11}  {:>11}  {}{answer:<10}  {}",
            mv.san,
            mv.yours.games(),
            percent(mv.yours.score(color)),
            yours.cell(mv.yours),
            mv.theirs.results.games(),
            percent(mv.theirs.results.score(!color)),
            theirs.cell(mv.theirs.results),
            opening(mv),
        );
        *text += &format!("{}\n", row.trim_end());
    }
}

fn opening(mv: &PreparedMove) -> &'static str {
    mv.opening.map_or("", |opening| opening.name)
}

/// A column with the numbers of games without a result, which count in the numbers of games but not in the scores. A
/// table contains the column only if a score leaves such games out.
#[derive(Copy, Clone)]
struct UnfinishedColumn {
    is_shown: bool,
}

impl UnfinishedColumn {
    fn of(mut results: impl Iterator<Item = Results>) -> UnfinishedColumn {
        UnfinishedColumn {
            is_shown: results.any(|of| of.unfinished > 0 && of.finished() > 0),
        }
    }

    fn heading(self) -> String {
        self.text("unfinished")
    }

    fn cell(self, results: Results) -> String {
        self.text(&results.unfinished.to_string())
    }

    fn text(self, text: &str) -> String {
        if self.is_shown {
            format!("{text:>10}  ")
        } else {
            String::new()
        }
    }
}

/// Formats a line that the user should prepare as a row of a table. `start` is the first position of the line.
fn line_row(line: &PreparedLine, start: &VariantPosition, unfinished: UnfinishedColumn) -> String {
    let opening = line.opening.map(|opening| opening.name);
    let state = match (line.gap, line.line_end, &line.answer) {
        (true, ..) => Some(GAP),
        (_, true, _) => Some(END),
        (.., None) => Some(NO_USUAL_ANSWER),
        _ => None,
    };
    let details = opening.into_iter().chain(state);
    let details = match &*Vec::from_iter(details).join(", ") {
        "" => String::new(),
        details => format!("  ({details})"),
    };
    format!(
        "{:>7.1}  {:>11}  {:>10}  {:>6}  {:>7}  {:>8}  {}{}{details}",
        1.0 / line.chance,
        line.theirs.results.games(),
        line.yours.games(),
        percent(line.score.map(|score| score / 100.0)),
        line.score_range.map_or("-".to_owned(), range_text),
        percent(line.expected_score.map(|score| score / 100.0)),
        unfinished.cell(line.yours),
        line.text(start),
    )
}

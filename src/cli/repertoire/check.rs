//! `polybook repertoire check`: reports where each game left the repertoire, and which side left it.

use std::path::{Path, PathBuf};

use polybook::{
    FileKind,
    book::is_book_or_empty,
    counts::Memory,
    json,
    pgn::{Cutter, GameEnd, GameReader, GameResult, Games, Input, StreamOptions},
    repertoire::{
        Check, CheckSummary, CheckedGame, CheckedResults, Departure, SeveralMoves, Side, check,
        several_moves,
    },
    selection::Spelling,
    storage::output::is_regular_file,
};
use shakmaty::{ByColor, Color};

use super::{
    BYTES_PER_READ, Opener, build::PLAYER, gaps::OPPONENT, json_game, pgn_output, pgn_text,
    refuse_printed, say_contradictions,
};
use crate::cli::{
    Context,
    errors::explain_closed_output,
    filters::{SelectionArgs, WithoutSides},
    input::{check_output, pgn_inputs, refuse_twice},
    plural,
    position::{self, UntaggedArg},
    progress::quiet_on_terminal,
    resources::{ResourceArgs, count},
    terminal::Output,
    usage::Usage,
};

/// Show who left the repertoire in each game, at which move, and which moves the repertoire has there
#[derive(clap::Args, Debug)]
#[command(
    after_help = "\
A game that left the repertoire is in it again when it reaches a position in which the repertoire has a move for the player;
check then reports only the last departure. A game that followed a line to its end was left by neither side. If the repertoire
has several moves in a position, all of them are in the repertoire. Scores are those of the player. Games have the numbers that
polybook games shows for the same files; polybook games GAMES --id NUMBER --pgn prints a
game.

Examples:
  polybook repertoire check white.pgn mine.pgn --color white --player \"my name\"
  polybook repertoire check --white white.pgn --black black.bin mine.pgn --player \"my name\"
  polybook repertoire check white.pgn mine.pgn --color white --player \"my name\" --since 2026.06
  polybook repertoire check white.pgn mine.pgn --color white --out checked.pgn
  polybook repertoire check white.pgn --color white --contradictions",
    mut_arg("player", |arg| arg.help(PLAYER).long_help(PLAYER)),
    mut_arg("opponent", |arg| arg.help(OPPONENT).long_help(OPPONENT))
)]
pub struct Args {
    /// The repertoire, unless --white or --black is given, and the games in PGN; - is standard input
    #[arg(
        value_name = "REPERTOIRE GAMES",
        required_unless_present = "contradictions"
    )]
    files: Vec<PathBuf>,

    /// The side of the repertoire
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color(), conflicts_with_all = ["white", "black"])]
    color: Option<Color>,

    /// The repertoire for White
    #[arg(long, value_name = "REPERTOIRE")]
    white: Option<PathBuf>,

    /// The repertoire for Black
    #[arg(long, value_name = "REPERTOIRE")]
    black: Option<PathBuf>,

    #[command(flatten)]
    filter: SelectionArgs<WithoutSides>,

    /// Write the games to this file, with a comment at the move that left the repertoire
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing file of any kind. Without this option, only an empty file is replaced
    #[arg(long, requires = "out")]
    force: bool,

    /// Print the N moves that most often left the repertoire. Text output also lists only the first N games [default:
    /// 20 in text, all in JSON]
    #[arg(long, value_name = "N", value_parser = count::<usize>(0))]
    limit: Option<usize>,

    /// List the positions in which the repertoire contains several moves for its own side, and check no games
    #[arg(long, conflicts_with_all = ["out", "limit"])]
    contradictions: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// The default maximum length of each of the two printed lists, which contain the checked games and the moves with
/// which games left the repertoire.
const DEFAULT_LIMIT: usize = 20;

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let ended = print(args, context);
    ended.map_err(|err| match args.out {
        Some(_) => explain_closed_output(err),
        None => err,
    })
}

fn print(args: &Args, context: Context) -> anyhow::Result<()> {
    if args.contradictions {
        if !args.filter.are_none() {
            let usage = "--contradictions checks no games, so conditions on games do not apply: leave them out";
            return Err(Usage(usage.to_owned()).into());
        }
        return print_contradictions(args, context);
    }
    let (repertoires, games) = check_files(args)?;
    if let (Some(color), Some(repertoire)) = (args.color, args.files.first()) {
        refuse_swapped(repertoire, games, color, &args.resources.memory())?;
    }
    let all = args.files.iter().chain(&args.white).chain(&args.black);
    let all: Vec<&PathBuf> = all.collect();
    refuse_twice(&all)?;
    if let Some(out) = &args.out {
        refuse_printed(out)?;
        check_output(out, &all, false)?;
    }
    let out = args.out.as_deref();
    let out = out.map(|out| pgn_output(out, args.force));
    let mut out = out.transpose()?;
    let opener = Opener::new(None, &args.untagged, &args.resources, context)?;
    let open =
        |path: Option<&PathBuf>, color| path.map(|path| opener.repertoire(path, color)).transpose();
    let known = ByColor {
        white: open(repertoires.white, Color::White)?,
        black: open(repertoires.black, Color::Black)?,
    };
    let mut printed = Output::create(Path::new("-"), false)?;
    if args.json {
        printed.put("{\"games\":[")?;
    }
    let (mut comma, mut checked, mut lines) = ("", 0, String::new());
    let limit = args
        .limit
        .unwrap_or(if args.json { usize::MAX } else { DEFAULT_LIMIT });
    let filter = args.filter.for_each_game()?;
    let checking = Check {
        repertoires: known.as_ref().map(Option::as_ref),
        filter: &filter,
        with_text: args.out.is_some(),
    };
    let inputs = pgn_inputs(games, args.untagged.untagged_variant)?;
    let mut summary = quiet_on_terminal(context).show_progress("checking", |meter| {
        let games = Games {
            inputs: &inputs,
            memory: args.resources.memory(),
            threads: args.resources.threads(),
            meter,
        };
        check(&games, &checking, |game| {
            checked += 1;
            if let Some(out) = &mut out {
                out.put(pgn_text(&game.text))?;
            }
            if args.json {
                printed.put(json_game(game, &mut comma))
            } else {
                if checked <= limit {
                    lines += &checked_line(game);
                }
                Ok(())
            }
        })
    })?;
    context.warn(&summary.warnings);
    let (games, departures) = (checked, summary.deviations.len());
    summary.deviations.truncate(limit);
    printed.put(if args.json {
        format!("],\"summary\":{}}}\n", json::to_string(&summary)?)
    } else {
        let more = if games > limit || departures > limit {
            format!(
                "\nThere are {} and {}: --limit {} lists all\n",
                plural(games as u64, "game"),
                plural(departures as u64, "departure"),
                games.max(departures)
            )
        } else {
            String::new()
        };
        format!("{}\n{lines}{more}", summary_text(&summary))
    })?;
    printed.commit()?;
    if checked == 0 && summary.read > 0 {
        let given = filter.given();
        let is_name = |name: &str| ["player", "exact"].contains(&name);
        let others = given.iter().filter(|condition| !is_name(condition.name));
        let others = Vec::from_iter(others.map(|condition| Spelling::Option.of(condition.name)));
        let conditions = match &others[..] {
            [] => String::new(),
            [only] => format!("{only} leaves all games out, or "),
            [first @ .., last] => {
                format!("{} and {last} leave all games out, or ", first.join(", "))
            }
        };
        if !given.is_empty() {
            let players = match &filter.player[..] {
                [] => String::new(),
                names => format!(" of \"{}\"", names.join("\" and \"")),
            };
            context.say(&format!(
                "no game{players} was checked, because {conditions}the repertoire is for another variant\n"
            ));
        }
    }
    if let Some(out) = out {
        out.commit()?;
    }
    say_contradictions(summary.contradictions, context);
    Ok(())
}

/// Returns an error if the user seems to have swapped the repertoire and the games. Usually, the games of a repertoire
/// have no results. Therefore, returns an error if `repertoire` contains finished games and one of the files `games`
/// contains none. `color` is the side of the repertoire, which the error message mentions.
fn refuse_swapped(
    repertoire: &Path,
    games: &[PathBuf],
    color: Color,
    memory: &Memory,
) -> anyhow::Result<()> {
    if has_finished_games(repertoire, memory)? != Some(true) {
        return Ok(());
    }
    for file in games {
        if has_finished_games(file, memory)? == Some(false) {
            let (file, repertoire) = (file.display(), repertoire.display());
            let problem = format!(
                "{repertoire} contains finished games, but {file} contains none: give the repertoire before the \
                 games, or use --{color} {repertoire} if {repertoire} is the repertoire"
            );
            return Err(Usage(problem).into());
        }
    }
    Ok(())
}

/// Checks whether a file contains a finished game, which is a game whose tags or last words contain a result other than
/// `*`. Returns `Some(true)` for a PGN file with such a game, and `Some(false)` for a PGN file without one, a book or
/// an OOBS database.
///
/// Returns `None` if this is unknown: for a file without games, for other kinds of files, and for a pipe, because this
/// function must not read data that can be read only once.
fn has_finished_games(path: &Path, memory: &Memory) -> anyhow::Result<Option<bool>> {
    if !is_regular_file(path)? || path.metadata()?.len() == 0 {
        return Ok(None);
    }
    match FileKind::of(path)? {
        FileKind::Sqlite => return Ok(Some(false)),
        FileKind::Other if is_book_or_empty(path)? => return Ok(Some(false)),
        FileKind::Other => {}
        _ => return Ok(None),
    }
    let input = Input::file(path);
    let mut cutter = Cutter::new(input.open(&StreamOptions::within(memory))?, BYTES_PER_READ);
    let is_finished = |result: GameResult| result != GameResult::Unknown;
    let mut has_games = false;
    while let Some(batch) = cutter.next_batch().map_err(|err| input.error(err))? {
        let mut reader = GameReader::new(&batch.text);
        while reader.next_game() {
            has_games = true;
            let tag = reader.tags().get(b"Result");
            let tag = tag.and_then(GameResult::from_text);
            let end = reader.skip_moves();
            if tag.is_some_and(is_finished)
                || matches!(end, GameEnd::Complete(Some(result)) if is_finished(result))
            {
                return Ok(Some(true));
            }
        }
    }
    Ok(has_games.then_some(false))
}

/// Prints the positions in which the repertoire contains several moves for its own side.
fn print_contradictions(args: &Args, context: Context) -> anyhow::Result<()> {
    let both = [(Color::White, &args.white), (Color::Black, &args.black)];
    let named = both
        .into_iter()
        .filter_map(|(color, path)| Some((color, path.as_ref()?)));
    let named: Vec<(Color, &PathBuf)> = match (&args.files[..], args.color) {
        ([], _) => named.collect(),
        ([repertoire], Some(color)) => vec![(color, repertoire)],
        _ => {
            let problem = "--contradictions checks repertoires, not games: give one repertoire with --color, or two \
                           with --white and --black";
            return Err(Usage(problem.to_owned()).into());
        }
    };
    let opener = Opener::new(None, &args.untagged, &args.resources, context)?;
    let mut found = Vec::new();
    for (color, path) in named {
        let known = opener.repertoire(path, color)?;
        found.extend(
            several_moves(&known, color)?
                .into_iter()
                .map(|position| (color, position)),
        );
    }
    let mut out = Output::create(Path::new("-"), false)?;
    if args.json {
        let positions = found.iter().map(|(color, position)| {
            let mut document = serde_json::to_value(position)?;
            document["color"] = color.to_string().into();
            Ok(document)
        });
        let positions: Vec<_> = positions.collect::<serde_json::Result<_>>()?;
        out.put(format!(
            "{}\n",
            serde_json::json!({ "contradictions": positions })
        ))?;
    } else {
        for (_, SeveralMoves { line, moves, .. }) in &found {
            let line = if line.is_empty() {
                "the first position"
            } else {
                line
            };
            out.put(format!("{line}: {}\n", moves.join(", ")))?;
        }
        let positions = plural(found.len() as u64, "position");
        out.put(format!("{positions} with several moves\n"))?;
    }
    Ok(out.commit()?)
}

/// Returns the path of each side's repertoire, which is `None` for a side without one, and the paths of the files with
/// the games to check. Returns an error if the user named no repertoire, did not say for which side it is, or named no
/// games.
fn check_files(args: &Args) -> Result<(ByColor<Option<&PathBuf>>, &[PathBuf]), Usage> {
    let usage = |text: &str| Usage(text.to_owned());
    let mut repertoires = ByColor {
        white: args.white.as_ref(),
        black: args.black.as_ref(),
    };
    if args.white.is_some() || args.black.is_some() {
        return Ok((repertoires, &args.files));
    }
    let color = args.color.ok_or_else(|| {
        usage("the side of the repertoire is missing: give --color white or --color black")
    })?;
    match args.files.split_first() {
        Some((repertoire, games)) if !games.is_empty() => {
            *repertoires.get_mut(color) = Some(repertoire);
            Ok((repertoires, games))
        }
        _ => Err(usage(
            "the repertoire or the games are missing: give the file of the repertoire, then the files of games",
        )),
    }
}

/// Formats the result of checking a game as one line. The line says which side left the repertoire, and with which
/// move.
fn checked_line(game: &CheckedGame) -> String {
    let mut line = format!(
        "{:>7} {:<7} {} - {}: ",
        game.game, game.result, game.white, game.black
    );
    line += &match (game.left_by, &game.departure.mv) {
        _ if game.is_elsewhere => "never in the repertoire".to_owned(),
        (None, _) if !game.is_checked => "not checked".to_owned(),
        (None, _) => "in the repertoire".to_owned(),
        (Some(_), _) if game.departure.is_line_end => {
            format!(
                "followed until {} (the line ends)",
                numbered(&game.departure)
            )
        }
        (Some(side), _) => {
            let at = numbered(&game.departure);
            let known = known_moves(side, &game.departure.repertoire);
            format!("left by the {} at {at}, {known}", name_of(side))
        }
    };
    if let Some(problem) = &game.problem {
        line += &format!(" ({problem})");
    }
    line + "\n"
}

fn name_of(side: Side) -> &'static str {
    match side {
        Side::Player => "player",
        Side::Opponent => "opponent",
    }
}

/// Formats the move with which a game left the repertoire, with its move number, as in `12. Nf3`. Returns `the start`
/// if the repertoire has no move in the game's first position.
fn numbered(departure: &Departure) -> String {
    match (&departure.number, &departure.mv) {
        (Some(number), Some(mv)) => format!("{number} {mv}"),
        _ => "the start".to_owned(),
    }
}

/// Formats `moves`, the moves that the repertoire contains in the position in which `side` left it. For example, the
/// result is `not Nf3` if the player left the repertoire, and `known: Nf3` if the opponent did.
fn known_moves(side: Side, moves: &[String]) -> String {
    match (side, moves) {
        (_, []) => "no move is known".to_owned(),
        (Side::Player, moves) => format!("not {}", moves.join(", ")),
        (Side::Opponent, moves) => format!("known: {}", moves.join(", ")),
    }
}

fn summary_text(summary: &CheckSummary) -> String {
    let results = |results: &CheckedResults| {
        let score = results
            .score
            .map_or(String::new(), |score| format!(", score {score:.1}%"));
        let unfinished = match (results.unfinished, results.score) {
            (0, _) | (_, None) => String::new(),
            (unfinished, _) => format!(", {unfinished} without a result"),
        };
        format!("{}{unfinished}{score}", plural(results.games, "game"))
    };
    let mut text = format!(
        "in the repertoire: {}\nfollowed to the end of a line: {}\nleft by the player: {}\nleft by the opponent: {}\n{}own moves in the repertoire: {:.1} on average\n",
        results(&summary.stayed),
        results(&summary.line_ended),
        results(&summary.left_by_player),
        results(&summary.left_by_opponent),
        match summary.elsewhere.games {
            0 => String::new(),
            _ => format!("never in the repertoire: {}\n", results(&summary.elsewhere)),
        },
        summary.own_moves,
    );
    for (number, games) in summary.depth.iter().enumerate() {
        if summary.depth.get(number + 1) != Some(games) {
            let moves = plural(number as u64 + 1, "own move");
            text += &format!("{} with at least {moves}\n", plural(*games, "game"));
        }
    }
    let of_deviations = summary.deviations.iter();
    let mut results = of_deviations.map(|deviation| deviation.results);
    let has_unfinished = results.any(|of| of.unfinished > 0 && of.score.is_some());
    let column = |text: &str| {
        if has_unfinished {
            format!("  {text:>10}")
        } else {
            String::new()
        }
    };
    if !summary.deviations.is_empty() {
        text += &format!(
            "\n  games   score{}  left by   move         the repertoire has  after\n",
            column("unfinished")
        );
    }
    for deviation in &summary.deviations {
        let moves = match &deviation.departure.repertoire[..] {
            [] if deviation.departure.is_line_end => "(the line ends)".to_owned(),
            [] => "-".to_owned(),
            moves => moves.join(", "),
        };
        let left_by = if deviation.departure.is_line_end {
            "-"
        } else {
            name_of(deviation.left_by)
        };
        let score = deviation
            .results
            .score
            .map_or("-".to_owned(), |score| format!("{score:.1}%"));
        text += &format!(
            "{:>7} {score:>7}{}  {left_by:<8}  {:<11}  {moves:<18}  {}\n",
            deviation.results.games,
            column(&deviation.results.unfinished.to_string()),
            numbered(&deviation.departure),
            match &*deviation.line {
                "" => "the start",
                line => line,
            },
        );
    }
    text
}

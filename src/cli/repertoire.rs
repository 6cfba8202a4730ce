//! `polybook repertoire`: build one, check games against it, find its gaps and new moves.

use std::{
    any::Any,
    fmt::Write as _,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::Subcommand;
use polybook::{
    make_book::Progress,
    output::{AtomicFile, check_first_line},
    pgn::{Games, Input},
    position::{LineError, Variant},
    repertoire::{
        Build, By, Check, CheckSummary, CheckedGame, FindGaps, Known, NewMove, Opening, Reference,
        RepertoireFormat, Results, Side, Writing, add_to_book, add_to_pgn, build, check, gaps,
        last_text, new_moves,
    },
    tally::Memory,
    tree::{Limits, LinesOf, Source, Union},
};
use shakmaty::{ByColor, Color, variant::VariantPosition};

use super::{
    Context, counted,
    errors::of_several_outputs,
    input::{check_output, file_or_index, output_name, refuse_document_beside},
    position,
    progress::Bar,
    resources::ResourceArgs,
    signals,
    terminal::{not_printed, stdout},
    usage::Usage,
    weighting::one_of,
};

/// Build a repertoire, check games against it, find its gaps and new moves
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = false,
    after_help = "\
A REPERTOIRE is a PGN, whose variations count and whose lines are joined by position, a book (.bin) or an OOBS database.
A SOURCE is a PGN, an index, a directory of counts, an OOBS database or a book. To ask about the same games often, index
them once with make-book --leveldb DIR --explorer.

Examples:
  polybook repertoire build games.pgn --color white --out white.pgn
  polybook repertoire check white.pgn mine.pgn --color white --player \"my name\"
  polybook repertoire gaps white.pgn --color white --against games.pgn
  polybook repertoire new week.pgn --reference games.pgn"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Build(BuildArgs),
    Check(CheckArgs),
    Gaps(GapsArgs),
    New(NewArgs),
}

/// The ways of choosing own moves.
const BY: [(&str, By); 3] = [
    ("score", By::Score),
    ("games", By::Games),
    ("weight", By::Weight),
];

/// Where lines start and end.
#[derive(clap::Args, Debug)]
struct LineArgs {
    /// Lines of at most N half-moves; the last is an own move [default: as far as games go]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=Limits::LONGEST as i64))]
    max_ply: Option<u16>,

    /// Start from this position, a FEN or moves: "1. e4 c5"
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,

    /// Use the rules of this variant [default: the variant of the file]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    /// Choose own moves by score (the lower end of its 99 % Wilson interval), by games or by weight [default: score; of a
    /// book weight]
    #[arg(long, value_parser = one_of(BY))]
    by: Option<By>,
}

impl LineArgs {
    fn start(&self, variant: Variant) -> Result<VariantPosition, LineError> {
        match self.from.as_deref() {
            // No move holds a slash, every FEN seven.
            Some(fen) if fen.contains('/') => variant.from_text(Some(fen), None),
            moves => variant.from_text(None, moves),
        }
    }

    fn max_ply(&self) -> Option<usize> {
        self.max_ply.map(usize::from)
    }
}

/// Build a repertoire: one own move in each position, and the replies that matter
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A reply matters if one game in N (--reach) comes to the position after it: the shares of the opponent's moves on the way
are multiplied, own moves count as certain, and different ways to a position are added. Comments have the games of a move,
the score of the side that plays it, and how often games come there. Where the games of the source end, the answer is a move
without games; with --min-game lines end earlier.

Examples:
  polybook repertoire build games.pgn --color white --out white.pgn
  polybook repertoire build games.idx --color black --from \"1. e4\" --reach 50 --max-ply 20 --out black.bin
  polybook repertoire build games.idx --color white --keep mine.pgn --by games --out more.pgn")]
struct BuildArgs {
    /// What was played: PGN, an index, counts, an OOBS database or a book
    #[arg(value_name = "SOURCE")]
    source: PathBuf,

    /// The side of the repertoire
    #[arg(long, alias = "colour", value_parser = position::color())]
    color: Color,

    /// Write games with variations to this file, or a book if its name ends in .bin; - is standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Answer each reply that one game in N comes to
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = one_in)]
    reach: f64,

    /// End lines where fewer than N games go on; 1 leaves out moves without games
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_game: u64,

    /// Keep the moves of this repertoire
    #[arg(long, value_name = "REPERTOIRE")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    lines: LineArgs,

    /// Print a JSON document about the file
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// Find who left the repertoire in each game, where, and what the repertoire says there
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A game is back in the repertoire when it comes to a position in which the repertoire has a move for the player: the last
departure counts. Where the repertoire has several moves, each is in it. Scores are the player's. Games are numbered from 1 in the
order of the files; polybook game, which opens the games of an index, numbers them from 0.

Examples:
  polybook repertoire check white.pgn mine.pgn --color white --player \"my name\"
  polybook repertoire check --white white.pgn --black black.bin mine.pgn --player \"my name\"
  polybook repertoire check white.pgn mine.pgn --color white --out checked.pgn")]
struct CheckArgs {
    /// The repertoire, unless --white or --black names it, and the games in PGN; - is standard input
    #[arg(value_name = "REPERTOIRE GAMES", required = true)]
    files: Vec<PathBuf>,

    /// The side of the repertoire
    #[arg(long, alias = "colour", value_parser = position::color(), conflicts_with_all = ["white", "black"])]
    color: Option<Color>,

    /// The repertoire for White
    #[arg(long, value_name = "REPERTOIRE")]
    white: Option<PathBuf>,

    /// The repertoire for Black
    #[arg(long, value_name = "REPERTOIRE")]
    black: Option<PathBuf>,

    /// Check the games that a player with NAME in the name played with the side [default: all games]
    #[arg(long, value_name = "NAME")]
    player: Option<String>,

    /// The name must match in full
    #[arg(long, requires = "player")]
    exact: bool,

    /// Write the games with a comment where they left the repertoire
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print the N most frequent departures
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// List the opponent's moves that the repertoire does not answer, the likeliest first
#[derive(clap::Args, Debug)]
#[command(after_help = "\
\"1 in N\" says how many games it takes to meet a gap: the shares of the opponent's moves on the way are multiplied, own
moves count as certain, and different ways to a position are added. Coverage takes several own moves as equally likely.
--add writes a game for each answer, and after them a PGN as it is, comments and all.

Examples:
  polybook repertoire gaps white.pgn --color white --against games.idx
  polybook repertoire gaps white.pgn --color white --against theirs.pgn --add 10 --out more.pgn")]
struct GapsArgs {
    /// The repertoire
    #[arg(value_name = "REPERTOIRE")]
    repertoire: PathBuf,

    /// What opponents play: PGN, an index, counts, an OOBS database or a book
    #[arg(long, value_name = "SOURCE")]
    against: PathBuf,

    /// The side of the repertoire
    #[arg(long, alias = "colour", value_parser = position::color())]
    color: Color,

    /// List the N likeliest gaps
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Answer the N likeliest gaps, and write the repertoire with the answers
    #[arg(long, value_name = "N", requires = "out", default_value_t = 0)]
    add: usize,

    /// Where --add writes the repertoire: PGN, or of a book a book (.bin)
    #[arg(long, value_name = "FILE", requires = "add")]
    out: Option<PathBuf>,

    #[command(flatten)]
    lines: LineArgs,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// How new moves are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum NewFormat {
    Text,
    Csv,
    Pgn,
}

/// Find the first move of each game that leads to a position which the reference does not know
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A reference without games knows a position if it has a move there, or the game's move to it: a last position of its lines that
is reached by other moves is new to it. Games are numbered from 1 in the order of the files; polybook game, which opens the games
of an index, numbers them from 0.

Examples:
  polybook repertoire new week.pgn --reference games.idx
  polybook repertoire new games.pgn --reference games.pgn --earlier --format csv --out new.csv
      what was new when it was played
  polybook repertoire new mine.pgn --reference book.bin --format pgn --out marked.pgn")]
struct NewArgs {
    /// The games in PGN; - is standard input
    #[arg(value_name = "GAMES", required = true)]
    games: Vec<PathBuf>,

    /// What is known: PGN, an index, counts, an OOBS database or a book
    #[arg(long, value_name = "SOURCE")]
    reference: PathBuf,

    /// Compare each game with the games of the reference that were certainly played before it
    #[arg(long)]
    earlier: bool,

    /// Format: a table (text), CSV, or the games with a comment (pgn)
    #[arg(
        long,
        default_value = "text",
        value_parser = one_of([("text", NewFormat::Text), ("csv", NewFormat::Csv), ("pgn", NewFormat::Pgn)]),
    )]
    format: NewFormat,

    /// Write to this file [default: standard output]
    #[arg(
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true
    )]
    out: PathBuf,

    /// Print a JSON document
    #[arg(long, conflicts_with_all = ["format", "out"])]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

fn one_in(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(number) if number >= 1.0 && number.is_finite() => Ok(number),
        _ => Err("write a number of games from 1"),
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    match &args.command {
        Command::Build(args) => run_build(args, context),
        Command::Check(args) => {
            let ended = run_check(args, context);
            ended.map_err(|err| of_outputs(err, args.out.as_deref()))
        }
        Command::Gaps(args) => run_gaps(args, context),
        Command::New(args) => {
            let ended = run_new(args, context);
            ended.map_err(|err| of_outputs(err, Some(&args.out)))
        }
    }
}

/// An error of a command that may write a file besides what it prints.
fn of_outputs(err: anyhow::Error, out: Option<&Path>) -> anyhow::Error {
    match out {
        Some(out) if out != Path::new("-") => of_several_outputs(err),
        _ => err,
    }
}

fn resources(args: &ResourceArgs) -> (Memory, usize) {
    (args.memory(), args.threads())
}

/// A file to open.
pub enum Role {
    Repertoire,
    Source,
    /// The moves before an illegal one count.
    Reference,
}

/// Opens a repertoire or a source, and says what was odd about it.
pub fn opened(
    argument: &Path,
    role: Role,
    variant: Option<Variant>,
    (memory, threads): (Memory, usize),
    context: Context,
) -> anyhow::Result<Known> {
    let path = match argument.is_dir() {
        // Counts are a source too.
        true => argument.to_owned(),
        false => file_or_index(argument)?,
    };
    let directory = tempfile::Builder::new()
        .prefix("polybook-")
        .tempdir_in(&memory.temp_dir);
    let directory = directory
        .context("cannot make a temporary directory")?
        .keep();
    signals::remove_at_end(&directory);
    let counting = |progress: Arc<Progress>| -> Box<dyn Any> {
        Box::new(Bar::of_make_book(progress, context))
    };
    let opening = Opening {
        variant,
        memory,
        threads,
        directory: &directory,
        counting: &counting,
    };
    let known = match role {
        Role::Repertoire => Known::repertoire(&path, &opening)?,
        Role::Source => Known::source(&path, false, &opening)?,
        Role::Reference => Known::source(&path, true, &opening)?,
    };
    for warning in known.warnings() {
        context.say(&format!("{warning}\n"));
    }
    Ok(known)
}

fn run_build(args: &BuildArgs, context: Context) -> anyhow::Result<()> {
    let inputs = [Some(&args.source), args.keep.as_ref()];
    check_output(
        &args.out,
        &inputs.into_iter().flatten().collect::<Vec<_>>(),
        args.json,
    )?;
    RepertoireFormat::check(&args.out)?;
    let open = |path: &Path, role| {
        opened(
            path,
            role,
            args.lines.variant,
            resources(&args.resources),
            context,
        )
    };
    let source = open(&args.source, Role::Source)?;
    let keep = args
        .keep
        .as_ref()
        .map(|keep| open(keep, Role::Repertoire))
        .transpose()?;
    let variant = args.lines.variant.unwrap_or(source.variant());
    let start = args.lines.start(variant)?;
    let memory = args.resources.memory();
    let built = context.show_progress("building", |meter| {
        build(&Build {
            start: &start,
            color: args.color,
            source: &source,
            keep: keep.as_ref(),
            by: args.lines.by.unwrap_or(By::default_of(&source)),
            one_in: args.reach,
            min_game: args.min_game,
            max_ply: args.lines.max_ply(),
            memory: memory.bytes,
            meter,
        })
    })?;
    let both = keep
        .as_ref()
        .map(|keep| LinesOf(Union(&built, keep), args.color));
    let moves: &dyn Source = match &both {
        Some(both) => both,
        None => &built,
    };
    let written = context.show_progress("writing", |meter| {
        let writing = Writing {
            moves,
            starts: std::slice::from_ref(&start),
            variant,
            color: args.color,
            title: &format!("Repertoire for {}", args.color),
            memory: &memory,
            meter,
        };
        writing.write(&args.out, &|branch| built.comment(branch))
    })?;
    let path = output_name(&args.out);
    let summary = built.summary;
    let mut text = format!("{path}: {}", counted(summary.positions, "answer"));
    if summary.without_games > 0 {
        let _ = write!(
            text,
            ", {} without games because the games of the source end there",
            summary.without_games
        );
    }
    let mut document = serde_json::to_value(summary)?;
    document["path"] = path.into();
    document["moves"] = written.into();
    context.report(&format!("{text}\n"), args.json, document)
}

fn run_check(args: &CheckArgs, context: Context) -> anyhow::Result<()> {
    let (repertoires, games) = check_files(args)?;
    let all: Vec<&PathBuf> = args
        .files
        .iter()
        .chain(&args.white)
        .chain(&args.black)
        .collect();
    if let Some(out) = &args.out {
        check_output(out, &all, args.json)?;
    }
    let open = |path: &PathBuf| {
        opened(
            path,
            Role::Repertoire,
            None,
            resources(&args.resources),
            context,
        )
    };
    let known = ByColor {
        white: repertoires.white.map(open).transpose()?,
        black: repertoires.black.map(open).transpose()?,
    };
    let out = args
        .out
        .as_deref()
        .map(|out| new_output(out, NewFormat::Pgn));
    let mut out = out.transpose()?;
    let mut printed = stdout();
    if args.json {
        printed.write_all(b"{\"games\":[").map_err(not_printed)?;
    }
    let (mut first, mut checked) = (true, 0);
    let checking = Check {
        repertoires: known.as_ref().map(Option::as_ref),
        player: args.player.as_deref(),
        exact: args.exact,
        with_text: args.out.is_some(),
    };
    let inputs: Vec<Input> = games.iter().map(Input::from_argument).collect();
    let mut summary = beside_lines(context).show_progress("checking", |meter| {
        let games = Games {
            inputs: &inputs,
            memory: args.resources.memory(),
            threads: args.resources.threads(),
            meter,
        };
        check(&games, &checking, |game| {
            checked += 1;
            if let Some(out) = &mut out {
                out.write(&pgn_text(&game.text))?;
            }
            let text = match args.json {
                true => json_item(game, &mut first)?,
                false => checked_line(game),
            };
            printed.write_all(text.as_bytes()).map_err(printing)
        })
    })?;
    summary
        .deviations
        .truncate(args.limit.unwrap_or(usize::MAX));
    let end = match args.json {
        true => format!("],\"summary\":{}}}\n", serde_json::to_string(&summary)?),
        false => summary_text(&summary),
    };
    printed
        .write_all(end.as_bytes())
        .and_then(|()| printed.flush())
        .map_err(not_printed)?;
    if let Some(player) = args
        .player
        .as_ref()
        .filter(|_| checked == 0 && summary.read > 0)
    {
        context.say(&format!(
            "no game has {player:?} in the name of a player who is checked\n"
        ));
    }
    if let Some(out) = out {
        out.commit()?;
    }
    say_contradictions(summary.contradictions, context);
    Ok(())
}

fn say_contradictions(number: u64, context: Context) {
    if number > 0 {
        let positions = counted(number, "position");
        context.say(&format!(
            "the repertoire has several moves in {positions} that games came to: each is in it\n"
        ));
    }
}

/// The repertoires and the games that the arguments of check name.
fn check_files(args: &CheckArgs) -> Result<(ByColor<Option<&PathBuf>>, &[PathBuf]), Usage> {
    let usage = |text: &str| Usage(text.to_owned());
    let mut repertoires = ByColor {
        white: args.white.as_ref(),
        black: args.black.as_ref(),
    };
    if args.white.is_some() || args.black.is_some() {
        return Ok((repertoires, &args.files));
    }
    let color = args
        .color
        .ok_or_else(|| usage("say the side of the repertoire: --color white or --color black"))?;
    match args.files.split_first() {
        Some((repertoire, games)) if !games.is_empty() => {
            *repertoires.get_mut(color) = Some(repertoire);
            Ok((repertoires, games))
        }
        _ => Err(usage("name the repertoire and the games")),
    }
}

/// A bar would disturb lines that are printed to the terminal.
fn beside_lines(context: Context) -> Context {
    Context {
        quiet: context.quiet || io::stdout().is_terminal(),
    }
}

/// An item of a JSON list, with a comma unless it is the first.
fn json_item(item: &impl serde::Serialize, first: &mut bool) -> polybook::Result<String> {
    let comma = if std::mem::take(first) { "" } else { "," };
    let item = serde_json::to_string(item).expect("texts and numbers are JSON");
    Ok(format!("{comma}{item}"))
}

fn printing(source: io::Error) -> polybook::Error {
    polybook::Error::Io {
        path: "standard output".into(),
        doing: "write",
        source,
    }
}

/// A line of the list of games.
fn checked_line(game: &CheckedGame) -> String {
    let mut line = format!(
        "{:>7} {:<7} {} - {}: ",
        game.game, game.result, game.white, game.black
    );
    line += &match (game.left_by, &game.mv) {
        (None, _) if !game.is_checked => "not checked".to_owned(),
        (None, _) => "in the repertoire".to_owned(),
        (Some(side), _) => {
            let at = numbered(&game.number, &game.mv);
            let known = known_moves(side, &game.repertoire);
            format!("left by the {} at {at}, {known}", name_of(side))
        }
    };
    if let Some(problem) = &game.problem {
        let _ = write!(line, " ({problem})");
    }
    line + "\n"
}

fn name_of(side: Side) -> &'static str {
    match side {
        Side::Player => "player",
        Side::Opponent => "opponent",
    }
}

/// A half-move, or where there is none.
fn numbered(number: &Option<String>, mv: &Option<String>) -> String {
    match (number, mv) {
        (Some(number), Some(mv)) => format!("{number} {mv}"),
        _ => "the start".to_owned(),
    }
}

/// What a repertoire has in place of a half-move.
fn known_moves(side: Side, moves: &[String]) -> String {
    match (side, moves) {
        (_, []) => "no move is known".to_owned(),
        (Side::Player, moves) => format!("not {}", moves.join(", ")),
        (Side::Opponent, moves) => format!("known: {}", moves.join(", ")),
    }
}

fn summary_text(summary: &CheckSummary) -> String {
    let results = |results: &Results| {
        let score = results
            .score
            .map_or(String::new(), |score| format!(", score {score:.1}%"));
        format!("{}{score}", counted(results.games, "game"))
    };
    let mut text = format!(
        "\nin the repertoire: {}\nleft by the player: {}\nleft by the opponent: {}\nown moves in the repertoire: {:.1} on average\n",
        results(&summary.stayed),
        results(&summary.left_by_player),
        results(&summary.left_by_opponent),
        summary.own_moves,
    );
    for (number, games) in summary.depth.iter().enumerate() {
        if summary.depth.get(number + 1) != Some(games) {
            let moves = counted(number as u64 + 1, "own move");
            let _ = writeln!(text, "{} with at least {moves}", counted(*games, "game"));
        }
    }
    if !summary.deviations.is_empty() {
        text += "\n  games   score  left by   move         the repertoire has\n";
    }
    for deviation in &summary.deviations {
        let moves = match &deviation.repertoire[..] {
            [] => "-".to_owned(),
            moves => moves.join(", "),
        };
        let score = deviation
            .results
            .score
            .map_or("-".to_owned(), |score| format!("{score:.1}%"));
        let _ = writeln!(
            text,
            "{:>7} {score:>7}  {:<8}  {:<11}  {moves}",
            deviation.results.games,
            name_of(deviation.left_by),
            numbered(&deviation.number, &deviation.mv),
        );
    }
    text
}

fn run_gaps(args: &GapsArgs, context: Context) -> anyhow::Result<()> {
    if let Some(out) = &args.out {
        check_output(out, &[&args.repertoire, &args.against], args.json)?;
        RepertoireFormat::check(out)?;
    }
    let open = |path: &Path, role| {
        opened(
            path,
            role,
            args.lines.variant,
            resources(&args.resources),
            context,
        )
    };
    let repertoire = open(&args.repertoire, Role::Repertoire)?;
    let source = open(&args.against, Role::Source)?;
    let variant = args.lines.variant.unwrap_or(repertoire.variant());
    let start = args.lines.start(variant)?;
    let memory = args.resources.memory();
    let found = context.show_progress("looking for gaps", |meter| {
        gaps(&FindGaps {
            repertoire: &repertoire,
            color: args.color,
            source: &source,
            start: &start,
            max_ply: args.lines.max_ply(),
            add: (args.add, args.lines.by.unwrap_or(By::default_of(&source))),
            memory: memory.bytes,
            meter,
        })
    })?;
    if let Some(out) = &args.out {
        context.show_progress("writing", |meter| {
            if RepertoireFormat::of(out) == RepertoireFormat::Book {
                return add_to_book(repertoire, &found.added, out, &memory, meter).map(drop);
            }
            if let Some(pgn) = repertoire.pgn() {
                return add_to_pgn(pgn, &found.added, &start, out, &memory);
            }
            let writing = Writing {
                moves: &LinesOf(Union(&repertoire, &found.added), args.color),
                starts: std::slice::from_ref(&start),
                variant,
                color: args.color,
                title: "",
                memory: &memory,
                meter,
            };
            writing.write(out, &|_| None).map(drop)
        })?;
    }
    let shown = &found.gaps[..found.gaps.len().min(args.limit.unwrap_or(usize::MAX))];
    say_contradictions(found.contradictions, context);
    if args.json {
        let mut document = serde_json::to_value(&found)?;
        document["gaps"] = serde_json::to_value(shown)?;
        return super::terminal::print_json(&document);
    }
    let mut out = stdout();
    let mut put = |text: String| out.write_all(text.as_bytes()).map_err(not_printed);
    let mut share = f64::NAN;
    for covered in &found.coverage {
        if std::mem::replace(&mut share, covered.share) == covered.share {
            continue;
        }
        put(format!(
            "after half-move {:>3}: {:>5.1}% in the repertoire\n",
            covered.ply,
            covered.share * 100.0
        ))?;
    }
    if !shown.is_empty() {
        put("\n  1 in     games  line\n".to_owned())?;
    }
    for gap in shown {
        let line = gap.mv.as_deref().map_or("the start".to_owned(), |mv| {
            with_move(&gap.line, &gap.fen, mv)
        });
        let answer = gap
            .answer
            .as_ref()
            .map_or(String::new(), |answer| format!(", answered by {answer}"));
        put(format!(
            "{:>6.1}  {:>8}  {}\n",
            gap.one_in,
            gap.games,
            line + &answer
        ))?;
    }
    out.flush().map_err(not_printed)?;
    let all = counted(found.gaps.len() as u64, "gap");
    context.say(&format!(
        "{all}, {} answered\n",
        counted(found.positions, "position")
    ));
    Ok(())
}

/// A line and the move after it.
fn with_move(line: &str, fen: &str, mv: &str) -> String {
    let mut fields = fen.split(' ').skip(1);
    let is_white = fields.next() == Some("w");
    let number = fen.rsplit(' ').next().unwrap_or_default();
    match (line, is_white) {
        ("", false) => format!("{number}... {mv}"),
        (line, true) => format!("{line} {number}. {mv}").trim_start().to_owned(),
        (line, false) => format!("{line} {mv}"),
    }
}

fn run_new(args: &NewArgs, context: Context) -> anyhow::Result<()> {
    let all: Vec<&PathBuf> = args
        .games
        .iter()
        .chain([&args.reference])
        .filter(|path| *path != Path::new("-"))
        .collect();
    check_output(&args.out, &all, false)?;
    refuse_document_beside(args.json && args.out != Path::new("-"), &args.out)?;
    let known = opened(
        &args.reference,
        Role::Reference,
        None,
        resources(&args.resources),
        context,
    )?;
    let inputs: Vec<Input> = args.games.iter().map(Input::from_argument).collect();
    let reference = Reference {
        known: &known,
        earlier: args.earlier,
        with_text: !args.json && args.format == NewFormat::Pgn,
    };
    let mut file = match args.out == Path::new("-") {
        true => None,
        false => Some(new_output(&args.out, args.format)?),
    };
    let mut printed = stdout();
    let mut put = |text: &[u8]| match &mut file {
        Some(file) => file.write(text),
        None => printed.write_all(text).map_err(printing),
    };
    if args.json {
        put(b"{\"games\":[")?;
    } else if args.format == NewFormat::Csv && args.out == Path::new("-") {
        put(CSV_HEADER.as_bytes())?;
    }
    let (mut first, mut new) = (true, 0);
    let progress = match args.out == Path::new("-") {
        true => beside_lines(context),
        false => context,
    };
    let games = progress.show_progress("looking for new moves", |meter| {
        let games = Games {
            inputs: &inputs,
            memory: args.resources.memory(),
            threads: args.resources.threads(),
            meter,
        };
        new_moves(&games, &reference, |found| {
            new += u64::from(found.ply.is_some());
            match args.format {
                _ if args.json => put(json_item(found, &mut first)?.as_bytes()),
                NewFormat::Text => put(new_line(found).as_bytes()),
                NewFormat::Csv => put(&csv_row(found)),
                NewFormat::Pgn => put(&pgn_text(&found.text)),
            }
        })
    })?;
    if args.json {
        put(b"]}\n")?;
    }
    printed.flush().map_err(not_printed)?;
    if let Some(file) = file {
        file.commit()?;
    }
    context.say(&format!("{}\n", counted(games, "game")));
    if games > 0 && new == 0 && !args.earlier {
        context.say(
            "no game has a new move: if the reference has these games, --earlier compares each with those before it\n",
        );
    }
    Ok(())
}

/// A line of the table of new moves.
fn new_line(found: &NewMove) -> String {
    let NewMove {
        game, white, black, ..
    } = found;
    let what = match (&found.number, &found.mv) {
        (Some(number), Some(mv)) => format!("{number} {mv}"),
        _ => "nothing new".to_owned(),
    };
    let before = found
        .games_before
        .map_or(String::new(), |games| counted(games, "game") + " before");
    let last = found.last_game.as_ref().map_or(String::new(), |last| {
        format!(", the last {}", last_text(last))
    });
    let problem = found
        .problem
        .as_ref()
        .map_or(String::new(), |problem| format!(" ({problem})"));
    format!("{game:>7} {what:<14} {white} - {black}: {before}{last}{problem}\n")
}

const CSV_HEADER: &str = "game,white,black,ply,move,games_before,last_game,fen\n";

fn csv_row(found: &NewMove) -> Vec<u8> {
    let number = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut row = csv::Writer::from_writer(Vec::new());
    let fields = [
        found.game.to_string(),
        found.white.clone(),
        found.black.clone(),
        number(found.ply.map(|ply| ply as u64)),
        text(&found.mv),
        number(found.games_before),
        found.last_game.as_ref().map_or(String::new(), last_text),
        text(&found.fen),
    ];
    row.write_record(fields).expect("memory takes all");
    row.into_inner().expect("memory takes all")
}

/// The text of a game and the blank line after it.
fn pgn_text(text: &[u8]) -> Vec<u8> {
    let text = text.trim_ascii_end();
    match text {
        [] => Vec::new(),
        text => [text, b"\n\n"].concat(),
    }
}

/// A file that is written while games are read.
struct Output(BufWriter<AtomicFile>);

/// The first line of games with comments, so that they can be replaced.
const PGN_FIRST_LINE: &str = "% polybook repertoire\n";

fn new_output(path: &Path, format: NewFormat) -> polybook::Result<Output> {
    let first = match format {
        NewFormat::Text => "",
        NewFormat::Csv => CSV_HEADER,
        NewFormat::Pgn => PGN_FIRST_LINE,
    };
    let is_own = |line: &[u8]| !first.is_empty() && line == first.trim_end().as_bytes();
    let file = AtomicFile::create_over(path, |old| check_first_line(old, is_own))?;
    let mut out = Output(BufWriter::with_capacity(1 << 16, file));
    out.write(first.as_bytes())?;
    Ok(out)
}

impl Output {
    fn write(&mut self, text: &[u8]) -> polybook::Result<()> {
        let written = self.0.write_all(text);
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> polybook::Error {
        polybook::Error::Io {
            path: self.0.get_ref().target().to_owned(),
            doing: "write",
            source,
        }
    }

    fn commit(mut self) -> polybook::Result<()> {
        let flushed = self.0.flush();
        flushed.map_err(|source| self.failed(source))?;
        let (file, _) = self.0.into_parts();
        file.commit()
    }
}

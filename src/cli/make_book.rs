//! `polybook make-book`: a book from games.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use anyhow::Context as _;
use polybook::{
    MakeBook, Report,
    make_book::Unfinished,
    pgn::{Date, EcoRange, GameResult, Input, Selection, TimeControlRange},
    position::PieceLetters,
    position::VariantChoice,
};
use serde_json::json;

use super::{
    Context, errors::Usage, header::HeaderArgs, json, progress::Bar, resources::ResourceArgs,
    weighting::WeightingArgs,
};

/// Make a Polyglot opening book from games in PGN
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook make-book games.pgn
      count all games and write book.bin
  polybook make-book --max-ply 30 --min-game 5 --bin my.bin 2023.pgn.zst 2024.pgn.gz
      several files, packed or not, in one pass
  zstdcat month.pgn.zst | polybook make-book --min-elo 2200 --bin strong.bin -
      games of strong players, from standard input
  polybook make-book games.pgn --bin book.bin --leveldb games.idx --index-stats
      the book and the index of games by position in one pass
  polybook make-book games.pgn --min-game 1 --obs games.obs.db3
      every move with its wins, draws and losses, for polybook convert and for SQL
  polybook make-book --variant crazyhouse lichess.pgn.zst --bin zh.bin
      the games of a variant; auto takes every game as what its Variant tag says
  polybook make-book -pgn games.pgn -bin book.bin -only-white -uniform
      the spelling of old scripts")]
pub struct Args {
    /// PGN files, plain or packed with gzip, bzip2, zstd or zip; - is standard input
    #[arg(value_name = "PGN")]
    inputs: Vec<PathBuf>,

    /// A PGN file, read before those without an option
    #[arg(long, value_name = "FILE")]
    pgn: Vec<PathBuf>,

    /// Write the book here [default: book.bin if there is no other output]
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,

    /// Write the LevelDB index of games by position to this directory
    #[arg(long, value_name = "DIR")]
    leveldb: Option<PathBuf>,

    /// Add statistics per position to the index
    #[arg(long, requires = "leveldb")]
    index_stats: bool,

    /// Write the moves that are kept with their wins, draws and losses to this OOBS database
    #[arg(long, value_name = "FILE.obs.db3")]
    obs: Option<PathBuf>,

    /// Replace an index or an OOBS database that exists
    #[arg(long)]
    force: bool,

    /// Half-moves of each game that count
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_ply: usize,

    #[command(flatten)]
    weighting: WeightingArgs,

    /// Count the games of this variant, or each game as the variant that it is
    #[arg(long, value_name = "NAME|auto", default_value = "standard")]
    variant: VariantChoice,

    /// Games without a result count as a draw, or are left out
    #[arg(long, value_enum, default_value_t = UnfinishedArg::Draw)]
    unfinished: UnfinishedArg,

    /// Count the moves before an illegal one instead of leaving the game out
    #[arg(long)]
    keep_prefix: bool,

    /// Count the moves of variations too, each variation once from where it branches
    #[arg(long)]
    variations: bool,

    /// Also read the piece letters of a language: de, nl, fr, es or it
    #[arg(long, value_name = "LANG", default_value_t = PieceLetters::English)]
    piece_letters: PieceLetters,

    /// End the run at the first rejected game, without output
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    header: HeaderArgs,

    #[command(flatten)]
    resources: ResourceArgs,

    /// Print what was done as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    selection: SelectionArgs,
}

/// Which games count.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Which games")]
struct SelectionArgs {
    /// Both players rated at least N; unrated games pass
    #[arg(long, value_name = "N")]
    min_elo: Option<u32>,

    /// Both players rated at most N; unrated games pass
    #[arg(long, value_name = "N")]
    max_elo: Option<u32>,

    /// Both players must have a rating
    #[arg(long)]
    require_elo: bool,

    /// Games of at least N half-moves
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_plies: usize,

    /// Games played on DATE (YYYY, YYYY.MM or YYYY.MM.DD) or later; unknown parts pass
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,

    /// Games played on DATE or earlier
    #[arg(long, value_name = "DATE")]
    until: Option<Date>,

    /// Games with this result: 1-0, 0-1, 1/2-1/2 or *; may be given several times
    #[arg(long, value_name = "R", value_parser = result)]
    result: Vec<GameResult>,

    /// Games in which NAME is part of a player's name
    #[arg(long, value_name = "NAME")]
    player: Option<String>,

    /// Games in which NAME is part of White's name
    #[arg(long, value_name = "NAME")]
    white: Option<String>,

    /// Games in which NAME is part of Black's name
    #[arg(long, value_name = "NAME")]
    black: Option<String>,

    /// Games of these openings: B20-B99, B2 or B
    #[arg(long, value_name = "RANGE")]
    eco: Option<EcoRange>,

    /// Games in which a player has so many seconds for 40 moves: 180-480, 600- or -60
    #[arg(long, value_name = "MIN-MAX", allow_hyphen_values = true)]
    time_control: Option<TimeControlRange>,
}

#[derive(Copy, Clone, clap::ValueEnum, Debug)]
enum UnfinishedArg {
    Draw,
    Skip,
}

fn result(text: &str) -> Result<GameResult, String> {
    GameResult::from_token(text.as_bytes()).ok_or_else(|| "write 1-0, 0-1, 1/2-1/2 or *".to_owned())
}

impl From<SelectionArgs> for Selection {
    fn from(args: SelectionArgs) -> Selection {
        Selection {
            min_elo: args.min_elo,
            max_elo: args.max_elo,
            require_elo: args.require_elo,
            min_plies: args.min_plies,
            since: args.since,
            until: args.until,
            results: args.result,
            player: args.player,
            white: args.white,
            black: args.black,
            eco: args.eco,
            time_control: args.time_control,
        }
    }
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let (as_json, quiet) = (args.json, context.quiet);
    let start = Instant::now();
    let run = configured(args)?;
    let bar = Bar::new(run.progress(), quiet);
    let report = run.run();
    drop(bar);
    let report = report?;
    let seconds = start.elapsed().as_secs_f64();
    if !quiet {
        eprint!("{}", summary(&report, seconds));
    }
    if as_json {
        json::print(&document(&report, seconds))?;
    }
    Ok(())
}

/// The run that the arguments ask for.
fn configured(args: Args) -> anyhow::Result<MakeBook> {
    let inputs = inputs(args.pgn, args.inputs)?;
    let selection = Selection::from(args.selection);
    selection.check().map_err(|err| Usage(err.to_string()))?;
    let mut run = MakeBook::new(inputs)
        .index_stats(args.index_stats)
        .force(args.force)
        .max_ply(args.max_ply)
        .selection(selection)
        .unfinished(match args.unfinished {
            UnfinishedArg::Draw => Unfinished::Draw,
            UnfinishedArg::Skip => Unfinished::Skip,
        })
        .keep_prefix(args.keep_prefix)
        .variations(args.variations)
        .piece_letters(args.piece_letters)
        .strict(args.strict)
        .move_filter((&args.weighting).into())
        .weights((&args.weighting).into())
        .variant(args.variant)
        .with_header(!args.header.no_header)
        .memory(args.resources.memory)
        .threads(args.resources.threads())
        .temp_dir(args.resources.temp_dir())
        .stop_flag(stop_on_interrupt()?);
    // A book is what is made if nothing else is asked for.
    let nothing = args.leveldb.is_none() && args.obs.is_none();
    let bin = args.bin.or_else(|| nothing.then(|| "book.bin".into()));
    if let Some(bin) = bin {
        run = run.bin(bin);
    }
    if let Some(leveldb) = args.leveldb {
        run = run.leveldb(leveldb);
    }
    if let Some(obs) = args.obs {
        run = run.obs(obs);
    }
    if let Some(comment) = args.header.comment {
        run = run.comment(comment);
    }
    Ok(run)
}

/// The files to read. Polyglot reads `book.pgn` when it is told none, and so do we if it is there.
fn inputs(options: Vec<PathBuf>, arguments: Vec<PathBuf>) -> anyhow::Result<Vec<Input>> {
    let inputs: Vec<Input> = options
        .into_iter()
        .chain(arguments)
        .map(Input::from_argument)
        .collect();
    if !inputs.is_empty() {
        return Ok(inputs);
    }
    if Path::new("book.pgn").exists() {
        return Ok(vec![Input::file("book.pgn")]);
    }
    let usage = "no PGN file given, and there is no book.pgn here: name the files to read, or - for standard input";
    Err(Usage(usage.to_owned()).into())
}

/// A flag that Ctrl-C sets, so that the run ends cleanly.
fn stop_on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        // Who asks twice does not want to wait.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")?;
    Ok(stop)
}

/// What was done, for people.
fn summary(report: &Report, seconds: f64) -> String {
    let games = &report.totals.games;
    let mut text = String::new();
    let mut say = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for warning in &report.warnings {
        say(format!("warning: {warning}"));
    }
    for rejection in report.rejected.iter().take(10) {
        say(format!("rejected: {rejection}"));
    }
    let more = games.rejected.saturating_sub(10);
    if more > 0 {
        say(format!("rejected: and {more} more"));
    }
    say(format!(
        "{} games read, {} counted, {} filtered, {} rejected",
        games.read, games.counted, games.filtered, games.rejected
    ));
    for (variant, games) in &report.totals.variants {
        say(format!("{variant}: {games} games counted"));
    }
    // An index alone counts no moves.
    if report.book.is_some() || report.obs.is_some() || report.index.is_none() {
        say(format!(
            "{} half-moves, {} positions, {} position-move pairs",
            report.totals.plies, report.positions, report.entries
        ));
    }
    if let Some(book) = &report.book {
        let scaled = if book.scale < 1.0 {
            format!(", weights scaled by {:.6}", book.scale)
        } else {
            String::new()
        };
        say(format!(
            "{}: {} entries{scaled}",
            book.path.display(),
            book.entries
        ));
    }
    if report.totals.left_out > 0 {
        say(format!(
            "{} half-moves are not in the book: a rook may castle there that is not the outermost",
            report.totals.left_out
        ));
    }
    if let Some(index) = &report.index {
        say(format!(
            "{}: {} games, {} positions, {} postings",
            index.path.display(),
            index.games,
            index.positions,
            index.postings
        ));
    }
    if let Some(obs) = &report.obs {
        say(format!("{}: {} rows", obs.path.display(), obs.rows));
    }
    say(format!("{seconds:.2} seconds"));
    text
}

/// What was done, for programs.
fn document(report: &Report, seconds: f64) -> serde_json::Value {
    let games = &report.totals.games;
    let rejected: Vec<_> = report
        .rejected
        .iter()
        .map(|rejection| {
            json!({
                "file": rejection.file.to_string_lossy(),
                "game": rejection.game,
                "offset": rejection.offset,
                "ply": rejection.ply,
                "move": rejection.mv,
                "reason": rejection.reason,
            })
        })
        .collect();
    let mut document = json!({
        "games": {
            "read": games.read,
            "counted": games.counted,
            "filtered": games.filtered,
            "rejected": games.rejected,
        },
        "plies": report.totals.plies,
        "positions": report.positions,
        "entries": report.entries,
    });
    if let Some(book) = &report.book {
        document["book"] = json!({
            "path": book.path.to_string_lossy(),
            "entries": book.entries,
            "largest_weight": book.largest_weight,
            "scale": book.scale,
        });
    }
    if let Some(index) = &report.index {
        document["index"] = json!({
            "path": index.path.to_string_lossy(),
            "games": index.games,
            "positions": index.positions,
            "postings": index.postings,
        });
    }
    if let Some(obs) = &report.obs {
        document["obs"] = json!({
            "path": obs.path.to_string_lossy(),
            "rows": obs.rows,
        });
    }
    if !report.totals.variants.is_empty() {
        let variants = report.totals.variants.iter();
        document["variants"] = variants
            .map(|(variant, games)| (variant.name().to_owned(), json!(games)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        document["left_out"] = report.totals.left_out.into();
    }
    document["rejected"] = rejected.into();
    document["seconds"] = seconds.into();
    document
}

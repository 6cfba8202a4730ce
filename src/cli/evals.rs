//! `polybook evals`: collects evaluations of positions in a store, from files or from a UCI engine.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use polybook::{
    book::{Book, LossSummary, is_book_or_empty},
    evals::{
        EngineOptions, Eval, Evals, EvalsFormat, EvalsReport, MakeEvals, MaxLoss, Positions,
        read_positions,
    },
    output::refuse_clashes,
    pgn::Input,
    tally::Memory,
    tree::book_positions,
};

use super::{
    Context, counted,
    input::{check_output, file_of, in_memory, output_name},
    progress::Bar,
    resources::ResourceArgs,
    usage::Usage,
};

/// Collect evaluations of positions in a store
#[derive(clap::Args, Debug)]
#[command(after_help = "\
An input is a PGN with evaluations in its comments ([%eval 0.33], [%eval 0.33,20], [%eval #-3]), an EPD file with ce or dm
(and acd, acn), Lichess's lichess_db_eval.jsonl, or a store. Inputs may be packed, and - is standard input. Of several
evaluations of a position the store keeps the deepest, then that of the most nodes, then the one that was said most often.
2^N nodes count as at least N half-moves.

The ending of OUT chooses what is written:
  .epd      an EPD for each position, with ce seen from the side to move, and dm, acd, acn
  .parquet  a row for each position, whose column key joins with that of counts
  other     a store

A store that exists is added to: it keeps its evaluations. --force replaces it, and other files that exist.

With --engine, the positions of a file are evaluated, each anew, and added to those in OUT, a store; those that it has with
as many nodes, or from elsewhere and as deep, are not evaluated again. A run that was killed goes on where it was, from
OUT.journal. An engine that crashes, hangs, searches on past --nodes or says nothing of use is restarted, and costs one
position. An engine that fails at more than 20 positions in a row, or at more in a row at the end than it evaluated, is
given up: the store gets what it evaluated, and the exit status is 1.

Only games of standard chess are read. A game or line that cannot be read is reported and left out, a game from its first
illegal move on.

Examples:
  polybook evals --out my.evals games.pgn lichess_db_eval.jsonl.zst
  polybook evals --out all.evals my.evals engine.epd
  polybook evals --out my.epd my.evals
  polybook evals --out my.parquet my.evals
  polybook evals --out my.evals --engine stockfish --nodes 200000 --jobs 2 --positions suite.epd")]
pub struct Args {
    /// PGN, EPD or JSON lines of Lichess, packed or not, or stores
    #[arg(value_name = "INPUT", required_unless_present = "engine")]
    inputs: Vec<PathBuf>,

    /// The file to write
    #[arg(long, value_name = "OUT")]
    out: PathBuf,

    /// Replace OUT, whatever it is; without it, a store is added to
    #[arg(long)]
    force: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// The options for evaluating positions with an engine.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Engine")]
struct EngineArgs {
    /// Ask this UCI engine for evaluations
    #[arg(long, value_name = "PROGRAM", requires = "positions")]
    engine: Option<PathBuf>,

    /// Evaluate the positions of this EPD file or store, those before and after the moves of this book, or the last ones of
    /// the main lines of a PGN
    #[arg(long, value_name = "FILE", requires = "engine")]
    positions: Option<PathBuf>,

    /// Search N nodes in each position
    #[arg(long, value_name = "N", default_value_t = 200_000, requires = "engine", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,

    /// Run N engines at a time [default: one per core]
    #[arg(long, value_name = "N", requires = "engine", value_parser = clap::value_parser!(u16).range(1..=512))]
    jobs: Option<u16>,

    /// Set an option of the engine; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "engine", value_parser = uci_option)]
    option: Vec<(String, String)>,

    /// Restart an engine that takes more than N seconds for a position
    #[arg(long, value_name = "N", default_value_t = 60, requires = "engine", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time_limit: u64,
}

/// Parses `NAME=VALUE`.
fn uci_option(text: &str) -> Result<(String, String), &'static str> {
    let is_line = !text.contains(['\n', '\r']);
    match text.split_once('=') {
        Some((name, value)) if is_line && !name.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write a name and a value: Hash=64"),
    }
}

impl EngineArgs {
    /// Opens the positions and returns them with the settings of the engine, or `None` without `--engine`.
    fn opened(
        &self,
        memory: &Memory,
        context: Context,
    ) -> anyhow::Result<Option<(EngineOptions, Positions)>> {
        let Some((program, path)) = self.engine.as_ref().zip(self.positions.as_ref()) else {
            return Ok(None);
        };
        let file = file_of(path)?;
        let positions = match is_book_or_empty(&file)? {
            true => Positions {
                positions: context.show_progress("reading the book", |meter| {
                    let book = Book::open_within(&file, in_memory(memory))?;
                    book_positions(&book, memory, meter)
                })?,
                ..Positions::default()
            },
            false => read_positions(&Input::file(&file), memory)?,
        };
        let options = EngineOptions {
            program: program.clone(),
            options: self.option.clone(),
            nodes: self.nodes,
            jobs: self.jobs.map_or(0, usize::from),
            time_limit: Duration::from_secs(self.time_limit),
        };
        Ok(Some((options, positions)))
    }
}

/// The option for showing the evaluations of a store.
#[derive(clap::Args, Debug)]
pub struct EvalsArg {
    /// Also show the evaluations of this store, seen from White
    #[arg(long, value_name = "FILE")]
    evals: Option<PathBuf>,
}

impl EvalsArg {
    /// Opens the store, or returns `None` without `--evals`.
    pub fn open(&self) -> anyhow::Result<Option<Evals>> {
        let opened = |path: &PathBuf| Ok(Evals::open(file_of(path)?)?);
        self.evals.as_ref().map(opened).transpose()
    }
}

/// The options that leave out moves with bad evaluations.
#[derive(clap::Args, Debug)]
pub struct MaxLossArgs {
    /// The store of evaluations for --max-loss, and for --eval and --eval-abs of a suite
    #[arg(long, value_name = "FILE")]
    evals: Option<PathBuf>,

    /// Leave out moves that are more than N centipawns worse than the best evaluated move of their position, or than its own
    /// evaluation; those without an evaluation are kept
    #[arg(long, value_name = "N", requires = "evals")]
    max_loss: Option<u16>,
}

impl MaxLossArgs {
    /// Returns the name of the option if it is given.
    pub fn given(&self) -> Option<&'static str> {
        self.max_loss.map(|_| "--max-loss")
    }

    /// Returns the path of the store. Returns an error if a store is given but no option uses it; `is_needed` says whether an
    /// option other than `--max-loss` uses it.
    pub fn store(&self, is_needed: bool) -> Result<Option<&Path>, Usage> {
        if self.evals.is_some() && self.max_loss.is_none() && !is_needed {
            let usage = "--evals is for --max-loss, and for --eval and --eval-abs of a suite: give one of them too";
            return Err(Usage(usage.to_owned()));
        }
        Ok(self.evals.as_deref())
    }

    /// Opens the store for `--max-loss`, or returns `None` without this option. A store that needs at most half of the memory
    /// budget is read into memory.
    pub fn open(&self, memory: &Memory) -> anyhow::Result<Option<MaxLoss>> {
        let Some((path, most)) = self.evals.as_ref().zip(self.max_loss) else {
            return Ok(None);
        };
        let evals = Evals::open_within(file_of(path)?, in_memory(memory))?;
        Ok(Some(MaxLoss::new(evals, most)))
    }
}

/// Returns the part of a summary that says how many moves `--max-loss` left out.
pub fn losses(losses: Option<LossSummary>) -> String {
    losses.map_or_else(String::new, |losses| {
        let emptied = match losses.emptied {
            0 => String::new(),
            positions => format!("; {} left without a move", counted(positions, "position")),
        };
        format!(
            "{} left out for losing too much, {} kept without an evaluation{emptied}\n",
            counted(losses.left_out, "move"),
            losses.unevaluated
        )
    })
}

/// Returns the part of a summary that says how many positions a suite left out because they have no evaluation.
pub fn left_out(unevaluated: Option<u64>) -> String {
    let count = unevaluated.filter(|count| *count > 0);
    count.map_or_else(String::new, |count| {
        format!("; {count} left out without an evaluation")
    })
}

/// Returns a table cell with the score of an evaluation, or a dash.
pub fn cell(eval: Option<Eval>) -> String {
    eval.map_or_else(|| "-".to_owned(), |eval| eval.score.to_string())
}

/// Returns a line with the score and depth of the evaluation of a position.
pub fn line(eval: Option<Eval>) -> String {
    let said = |eval: Eval| format!("evaluation {}, depth {}\n", eval.score, eval.depth);
    eval.map_or_else(String::new, said)
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let format = format_of(&args.out);
    let is_store = format == EvalsFormat::Store && args.out != Path::new("-");
    if args.engine.engine.is_some() && !is_store {
        let usage = "--engine adds to a store: name a file for it with --out, and write it as EPD or Parquet afterwards";
        return Err(Usage(usage.to_owned()).into());
    }
    check_output(&args.out, &args.inputs, args.json)?;
    if let Some(positions) = args.engine.positions.as_ref().filter(|_| args.force) {
        refuse_clashes(&[&*args.out], &[positions])?;
    }
    let memory = args.resources.memory();
    let engine = args.engine.opened(&memory, context)?;
    let phase = match engine {
        Some(_) => "evaluating positions",
        None => "reading evaluations",
    };
    let mut make = MakeEvals {
        force: args.force,
        threads: args.resources.threads(),
        memory,
        ..MakeEvals::new(args.inputs.into_iter().map(Input::from_argument))
    };
    let mut variations = 0;
    if let Some((options, found)) = engine {
        variations = found.variations;
        make.engine = Some((options, found.positions));
    }
    let bar = Bar::of_phase(phase, &make.meter, context);
    let report = make.run(&args.out, format)?;
    drop(bar);
    let mut document = serde_json::to_value(&report)?;
    document["path"] = output_name(&args.out).into();
    let mut text = summary(&args.out, &report);
    if variations > 0 {
        document["engine"]["variations"] = variations.into();
        let passed_over = counted(variations, "variation");
        let hint = "name a book to evaluate all of its positions";
        text = format!("{passed_over} passed over: {hint}\n{text}");
    }
    context.report(&text, args.json, document)
}

/// Returns the format that the file name ending of the output stands for.
fn format_of(out: &Path) -> EvalsFormat {
    let ending = out.extension().unwrap_or_default().to_ascii_lowercase();
    match ending.to_str() {
        Some("epd") => EvalsFormat::Epd,
        Some("parquet") => EvalsFormat::Parquet,
        _ => EvalsFormat::Store,
    }
}

fn summary(out: &Path, report: &EvalsReport) -> String {
    // Writing to a `String` cannot fail, so the results are ignored.
    let mut text = String::new();
    for bad in &report.described {
        let _ = writeln!(text, "rejected: {bad}");
    }
    let more = report.rejected - report.described.len() as u64;
    if more > 0 {
        let _ = writeln!(text, "rejected: and {more} more");
    }
    if let Some(engine) = &report.engine {
        for failed in &engine.described {
            let _ = writeln!(text, "failed: {}: {}", failed.fen, failed.reason);
        }
        let _ = writeln!(
            text,
            "{}: {} evaluated, {} known before, {} failed",
            engine.name,
            counted(engine.evaluated, "position"),
            engine.known,
            engine.failed
        );
    }
    // With an engine there may be no input files; then their numbers are not printed.
    if report.engine.is_none() || report.games + report.lines > 0 {
        let _ = writeln!(
            text,
            "{}, {}: {}, {} ignored, {} filtered, {} rejected",
            counted(report.games, "game"),
            counted(report.lines, "line"),
            counted(report.evaluations, "evaluation"),
            report.ignored,
            report.filtered,
            report.rejected
        );
    }
    let positions = counted(report.positions, "position");
    let _ = writeln!(text, "{}: {positions}", output_name(out));
    text
}

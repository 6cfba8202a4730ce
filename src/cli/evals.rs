//! `polybook evals`: collects evaluations of positions in a store, from files or from a UCI engine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use polybook::{
    book::{Book, EvalWeights, EvalWeightsSummary, LosingMove, LossSummary, is_book_or_empty},
    counts::Memory,
    evals::{
        EngineOptions, Eval, Evals, EvalsFormat, EvalsReport, MakeEvals, MaxLoss, Positions,
        read_positions,
    },
    pgn::Input,
    position::Variant,
    storage::output::refuse_clashes,
    tree::book_positions,
};

use super::{
    Context,
    input::{check_output, file_of, in_memory, output_name, pgn_inputs},
    plural,
    progress::Bar,
    resources::{ResourceArgs, count},
    usage::Usage,
    weighting::one_of,
};

/// Collect evaluations of positions in a file, a store of evaluations
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A store of evaluations contains one evaluation for each position. These inputs can be added to a store, compressed or not;
- is standard input:
  PGN with evaluations in comments: [%eval 0.33], [%eval 0.33,20] (with the depth), [%eval #-3] (mate)
  EPD with the operations ce or dm, and optionally acd and acn
  lichess_db_eval.jsonl of Lichess
  another store
If there are several evaluations of a position, the store keeps the deepest one, then the one with the most nodes, then the
most frequent one. A search of 2^N nodes counts as at least N half-moves deep.

The ending of OUT determines what is written:
  .epd      one EPD for each position, with ce from the point of view of the side to move, and dm, acd, acn
  .parquet  one row for each position; its column key can be joined with the column key of counts
  other     a store

If the store OUT exists, the evaluations are added to it. --force replaces OUT instead, even if it is another file.

With --engine, polybook evaluates the positions of the file --positions and adds the evaluations to the store OUT. It skips
positions that OUT already contains with as many nodes or, from other sources, with the same depth. If the run is killed,
repeat the command: it continues from the file OUT.journal. An engine that crashes, hangs, ignores --nodes or gives no
evaluation is restarted, and its position is skipped. polybook stops using the engine after 20 failed positions in a row, or
if more positions failed at the end than it evaluated. The store then contains all evaluations up to this point, and the
exit status is 1.

Only games of standard chess are read. If a line cannot be read, it is reported and skipped. If a game contains an illegal
move, it is reported and read up to this move.

Examples:
  polybook evals --out my.evals games.pgn lichess_db_eval.jsonl.zst
  polybook evals --out all.evals my.evals engine.epd
  polybook evals --out my.epd my.evals
  polybook evals --out my.parquet my.evals
  polybook evals --out my.evals --engine stockfish --nodes 200000 --jobs 2 --positions suite.epd
  polybook evals --out my.evals --engine stockfish --positions book.bin --expand 6")]
pub struct Args {
    /// Read evaluations from these files: PGN with comments such as [%eval 0.31], EPD, lichess_db_eval.jsonl, or other
    /// stores of evaluations. The files can be compressed
    #[arg(value_name = "INPUT", required_unless_present = "engine")]
    inputs: Vec<PathBuf>,

    /// Write the evaluations to this file, as EPD (.epd), as Parquet (.parquet) or, with any other ending, as a store
    /// of evaluations. If the store exists, the evaluations are added to it
    #[arg(long, value_name = "OUT")]
    out: PathBuf,

    /// Replace the file OUT, whatever it contains. Without this option, polybook adds to OUT if it is a store of
    /// evaluations, and refuses to replace other files
    #[arg(long)]
    force: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// The options for evaluating positions with a UCI engine.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Engine")]
struct EngineArgs {
    /// Evaluate positions with this UCI engine
    #[arg(long, value_name = "PROGRAM", requires = "positions")]
    engine: Option<PathBuf>,

    /// Let the engine evaluate the positions in this file: all positions of an EPD file or a store of evaluations, the
    /// positions before and after each move of a book, or the last position of each game in a PGN file
    #[arg(long, value_name = "FILE", requires = "engine")]
    positions: Option<PathBuf>,

    /// Search N nodes in each position. Stockfish 15 reaches a depth of about 10 half-moves with 20,000 nodes, 13 with
    /// 50,000, 16 with 200,000 and 20 with 1,000,000
    #[arg(long, value_name = "N", default_value_t = 200_000, requires = "engine", value_parser = count::<u64>(1))]
    nodes: u64,

    /// Run N engines at once [default: one for each core]
    #[arg(long, value_name = "N", requires = "engine", value_parser = clap::value_parser!(u16).range(1..=512))]
    jobs: Option<u16>,

    /// Set this UCI option of the engine, such as Hash=64. Can be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "engine", value_parser = uci_option)]
    option: Vec<(String, String)>,

    /// Continue each line that ends in a position of --positions with up to N moves of the engine, and evaluate the
    /// position after each of them. A book ends where it contains neither a move nor an answer to a move. polybook filter
    /// --expand adds these moves to the book
    #[arg(long, value_name = "N", requires = "engine", value_parser = clap::value_parser!(u16).range(1..=100))]
    expand: Option<u16>,

    /// Restart the engine if it needs more than N seconds for a position
    #[arg(long, value_name = "N", default_value_t = 60, requires = "engine", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time_limit: u64,
}

/// Parses an option of a UCI engine in the form `NAME=VALUE`. Returns the name and the value. Returns an error message
/// if the text has another form.
fn uci_option(text: &str) -> Result<(String, String), &'static str> {
    let is_line = !text.contains(['\n', '\r']);
    match text.split_once('=') {
        Some((name, value)) if is_line && !name.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("give the name of an option and its value, such as Hash=64"),
    }
}

impl EngineArgs {
    /// Returns the settings of the engine, or `None` if the user gave no `--engine`.
    fn options(&self) -> Option<EngineOptions> {
        self.engine.as_ref().map(|program| EngineOptions {
            program: program.clone(),
            options: self.option.clone(),
            nodes: self.nodes,
            jobs: self.jobs.map_or(0, usize::from),
            time_limit: Duration::from_secs(self.time_limit),
            expand: self.expand.unwrap_or(0),
        })
    }

    /// Reads the positions to evaluate from the file that `--positions` names. Returns no positions if the option is
    /// not given.
    fn read_positions(&self, memory: &Memory, context: Context) -> anyhow::Result<Positions> {
        let Some(path) = &self.positions else {
            return Ok(Positions::default());
        };
        let file = file_of(path)?;
        Ok(if is_book_or_empty(&file)? {
            Positions {
                positions: context.show_progress("reading the book", |meter| {
                    let book = Book::open_within(&file, in_memory(memory))?;
                    book_positions(&book, memory, meter)
                })?,
                ..Positions::default()
            }
        } else {
            read_positions(&Input::file(&file), memory)?
        })
    }
}

/// The option `--evals` of commands that show evaluations. It names a store, a file with one evaluation for each
/// position.
#[derive(clap::Args, Debug)]
pub struct EvalsArg {
    /// Also show evaluations, from the point of view of White. They are read from this file, a store of evaluations
    /// made with polybook evals
    #[arg(long, value_name = "FILE")]
    evals: Option<PathBuf>,
}

impl EvalsArg {
    /// Opens the store of evaluations that `--evals` names. Returns `None` if the option is not given.
    pub fn open(&self) -> anyhow::Result<Option<Evals>> {
        let opened = |path: &PathBuf| Ok(Evals::open(file_of(path)?)?);
        self.evals.as_ref().map(opened).transpose()
    }
}

/// The options of commands that make a book, or a suite, from evaluations: `--evals`, which names a store, and the
/// options that change weights or remove moves.
#[derive(clap::Args, Debug)]
pub struct BookEvalsArgs {
    /// Read evaluations from this file, a store of evaluations made with polybook evals. They are needed for
    /// --weights, --max-loss, --eval and --eval-abs
    #[arg(long, value_name = "FILE")]
    evals: Option<PathBuf>,

    /// Compute the weights of moves from results (results), from evaluations (evals), or from both: the weight from
    /// results is then multiplied by the factor from evaluations. A move's factor is halved for each percentage point of
    /// expected score that it loses. Moves without an evaluation keep their weights [default: results]
    #[arg(
        long,
        value_name = "results|evals|both",
        value_parser = one_of([
            ("results", WeightSource::Results),
            ("evals", WeightSource::Evals),
            ("both", WeightSource::Both),
        ]),
    )]
    weights: Option<WeightSource>,

    /// Leave out a move if its evaluation is more than N centipawns (hundredths of a pawn) worse than the evaluation of
    /// the best move, or of the position before it. Keep moves without an evaluation
    #[arg(long, value_name = "N", requires = "evals")]
    max_loss: Option<u16>,

    /// If --max-loss would leave a position without a move, keep the move that loses the least
    #[arg(long, requires = "max_loss")]
    keep_one: bool,
}

/// The possible values of the option `--weights`, which say from what weights are computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum WeightSource {
    Results,
    Evals,
    Both,
}

/// The rules of `--weights` and `--max-loss` for the moves of a book, with the store of evaluations that they use.
#[derive(Default)]
pub struct BookEvals {
    /// The store of evaluations, if a rule needs it.
    pub evals: Option<Arc<Evals>>,
    pub max_loss: Option<MaxLoss>,
    pub eval_weights: Option<EvalWeights>,
}

impl BookEvalsArgs {
    /// Returns the name of the first given option that changes a book, or `None` if the user gave no such option. The
    /// name is used in error messages.
    pub fn given(&self) -> Option<&'static str> {
        let weights = self.weights.map(|_| "--weights");
        weights.or(self.max_loss.map(|_| "--max-loss"))
    }

    /// Returns the source of weights other than results that `--weights` names, or `None` if the weights depend only on
    /// results.
    fn weight_source(&self) -> Option<WeightSource> {
        self.weights
            .filter(|source| *source != WeightSource::Results)
    }

    /// Returns the path in `--evals`, a store of evaluations, or `None` if the option is not given. `is_needed` is
    /// `true` if an option outside this type needs the store.
    ///
    /// # Errors
    ///
    /// Returns an error if `--evals` is given but no option needs the store, or if `--weights` needs the store but
    /// `--evals` is not given.
    pub fn store(&self, is_needed: bool) -> Result<Option<&Path>, Usage> {
        let weights = self.weight_source();
        if self.evals.is_some() && self.max_loss.is_none() && weights.is_none() && !is_needed {
            let usage = "--evals is given, but no option uses evaluations: also give --weights, --max-loss or, for a \
                         suite, --eval or --eval-abs";
            return Err(Usage(usage.to_owned()));
        }
        if self.evals.is_none() && weights.is_some() {
            let usage = "--weights needs evaluations: also give a store with --evals";
            return Err(Usage(usage.to_owned()));
        }
        Ok(self.evals.as_deref())
    }

    /// Opens the store of evaluations, and returns it with the rules that `--weights` and `--max-loss` describe. The
    /// store is read into memory if its size is at most half of the memory budget. `is_needed` is `true` if an option
    /// outside this type needs the store.
    pub fn open(&self, memory: &Memory, is_needed: bool) -> anyhow::Result<BookEvals> {
        let source = self.weight_source();
        let is_used = self.max_loss.is_some() || source.is_some() || is_needed;
        let Some(path) = self.evals.as_ref().filter(|_| is_used) else {
            return Ok(BookEvals::default());
        };
        let evals = Arc::new(Evals::open_within(file_of(path)?, in_memory(memory))?);
        Ok(BookEvals {
            max_loss: self
                .max_loss
                .map(|most| MaxLoss::new(Arc::clone(&evals), most).keep_one(self.keep_one)),
            eval_weights: source.map(|source| {
                EvalWeights::new(Arc::clone(&evals)).times_results(source == WeightSource::Both)
            }),
            evals: Some(evals),
        })
    }
}

/// Returns the line of a summary that says how many moves got their weight from evaluations, as `--weights` requests,
/// and how many kept their weight. Returns an empty string if `weights` is `None`, because the weights depend only on
/// results.
pub fn eval_weights(weights: Option<EvalWeightsSummary>) -> String {
    let Some(weights) = weights else {
        return String::new();
    };
    let mut text = format!(
        "{} weighed by evaluations",
        plural(weights.evaluated, "move")
    );
    if weights.unevaluated > 0 {
        text += &format!("; {} without one kept the weight", weights.unevaluated);
    }
    if weights.unreached > 0 {
        text += &format!(
            "; {} in positions that no line of the book reaches kept the weight",
            weights.unreached
        );
    }
    text + "\n"
}

/// The maximum number of lines to positions without a move that a summary lists.
const MAX_LISTED_LINES: usize = 5;

/// Returns the part of a summary that says which moves `--max-loss` removed, and which it kept because they have no
/// evaluation. Returns an empty string if `losses` is `None`, because the option was not given.
pub fn losses(losses: Option<&LossSummary>) -> String {
    let Some(losses) = losses else {
        return String::new();
    };
    let mut text = format!("{} left out by --max-loss", plural(losses.left_out, "move"));
    if losses.left_out > 0 {
        text += &format!(
            ", with {:.1}% of the weight of all moves",
            losses.left_out_share
        );
    }
    text += if losses.left_out > losses.heaviest.len() as u64 {
        "; the moves with the largest weights:\n"
    } else {
        "\n"
    };
    for losing in &losses.heaviest {
        let loss = match losing.loss {
            Some(loss) => format!("loses {}", plural(loss.into(), "centipawn")),
            None => "misses or allows a forced mate".to_owned(),
        };
        let LosingMove {
            line,
            weight,
            share,
            ..
        } = losing;
        text += &format!("  {line}  weight {weight}, {share:.1}%, {loss}\n");
    }
    if losses.emptied > 0 {
        let positions = plural(losses.emptied, "position");
        text += &format!(
            "no move is left in {positions}; --keep-one keeps the best move of each position; the lines to the \
             positions:\n"
        );
        let shown = losses.emptied_after.iter().take(MAX_LISTED_LINES);
        for line in shown.clone() {
            text += &if line.is_empty() {
                "  the starting position\n".to_owned()
            } else {
                format!("  {line}\n")
            };
        }
        let more = losses.emptied - shown.len() as u64;
        if more > 0 {
            text += &format!("  and {more} more\n");
        }
    }
    if losses.kept > 0 {
        let moves = plural(losses.kept, "move");
        text += &format!("{moves} kept by --keep-one in positions without a better move\n");
    }
    let unevaluated = losses.unevaluated - losses.unreached;
    if unevaluated > 0 {
        let moves = plural(unevaluated, "move");
        text += &format!(
            "{moves} not judged by --max-loss without an evaluation: polybook evals --engine PROGRAM --positions BOOK --out \
             STORE evaluates the positions of a book\n"
        );
    }
    if losses.unreached > 0 {
        let moves = plural(losses.unreached, "move");
        let positions = match losses.unreached {
            1 => "its position",
            _ => "their positions",
        };
        text += &format!(
            "{moves} kept, because no line of the book reaches {positions}: polybook filter --reachable leaves such moves \
             out\n"
        );
    }
    text
}

/// Returns the end of the line that describes a suite in the summary of a command. It says how many positions were left
/// out because they have no evaluation. Returns an empty string if `unevaluated` is `None` or 0.
pub fn unevaluated_suffix(unevaluated: Option<u64>) -> String {
    let count = unevaluated.filter(|count| *count > 0);
    count.map_or_else(String::new, |count| {
        format!("; {count} left out, because no evaluation is known")
    })
}

/// Formats the score of an evaluation for a cell of a table. Returns a dash if `eval` is `None`.
pub fn cell(eval: Option<Eval>) -> String {
    eval.map_or_else(|| "-".to_owned(), |eval| eval.score.to_string())
}

/// Formats the score and the depth of an evaluation as a line. Returns an empty string if `eval` is `None`.
pub fn line(eval: Option<Eval>) -> String {
    let said = |eval: Eval| format!("evaluation {}, depth {}\n", eval.score, eval.depth);
    eval.map_or_else(String::new, said)
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let format = format_of(&args.out);
    let is_store = format == EvalsFormat::Store && args.out != Path::new("-");
    if args.engine.engine.is_some() && !is_store {
        let usage = "--engine adds evaluations to a store, but the ending of the output's name selects another \
                     format: give the name of a store with --out, and convert the store afterwards";
        return Err(Usage(usage.to_owned()).into());
    }
    check_output(&args.out, &args.inputs, args.json)?;
    if let Some(positions) = args.engine.positions.as_ref().filter(|_| args.force) {
        refuse_clashes(&[&*args.out], &[positions])?;
    }
    let make = MakeEvals {
        engine: args.engine.options(),
        force: args.force,
        threads: args.resources.threads(),
        memory: args.resources.memory(),
        ..MakeEvals::new(pgn_inputs(&args.inputs, Variant::Standard)?)
    };
    let claimed = make.claim(&args.out, format)?;
    let positions = args.engine.read_positions(&make.memory, context)?;
    let variations = positions.variations;
    let phase = match make.engine {
        Some(_) => "evaluating positions",
        None => "reading evaluations",
    };
    let bar = Bar::of_phase(phase, &make.meter, context);
    let report = claimed.finish(&positions)?;
    drop(bar);
    let mut document = serde_json::to_value(&report)?;
    document["path"] = output_name(&args.out).into();
    let mut text = summary(&args.out, &report);
    if variations > 0 {
        document["engine"]["variations"] = variations.into();
        let skipped = plural(variations, "variation");
        let hint = "to evaluate the positions of variations too, make a book with make-book --variations --uniform \
                    --min-game 1, and give the book with --positions";
        text = format!("{skipped} skipped: {hint}\n{text}");
    }
    context.report(&text, args.json, document)
}

/// Returns the format of an output by the extension of its file name. The format is EPD, Parquet or, for any other
/// extension, a store of evaluations.
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
    for warning in &report.warnings {
        text += &format!("{warning}\n");
    }
    for bad in &report.described {
        text += &format!("rejected: {bad}\n");
    }
    let more = report.rejected - report.described.len() as u64;
    if more > 0 {
        text += &format!("rejected: and {more} more\n");
    }
    if let Some(engine) = &report.engine {
        for failed in &engine.described {
            text += &format!("failed: {}: {}\n", failed.fen, failed.reason);
        }
        if engine.continued > 0 {
            text += &format!(
                "{} taken from the journal of an interrupted run\n",
                plural(engine.continued, "evaluation")
            );
        }
        text += &format!(
            "{}: {} evaluated, {} known before, {} failed\n",
            engine.name,
            plural(engine.evaluated, "position"),
            engine.known,
            engine.failed
        );
    }
    // If an engine evaluates positions, there may be no input files. The numbers about input files are then left out.
    if report.engine.is_none() || report.games + report.lines > 0 {
        text += &format!(
            "{}, {}: {}, {} ignored, {} filtered, {} rejected\n",
            plural(report.games, "game"),
            plural(report.lines, "line"),
            plural(report.evaluations, "evaluation"),
            report.ignored,
            report.filtered,
            report.rejected
        );
    }
    let positions = plural(report.positions, "position");
    text += &format!("{}: {positions}\n", output_name(out));
    text
}

//! `polybook convert`: makes books, opening suites and tables from a book or an OOBS database.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use polybook::{
    Error, FileKind,
    board_query::BoardQuery,
    book::{Book, begin_book},
    convert::{Convert, ConvertBook, Converted, Suite, SuiteFormat, TableFormat},
    counts::{Memory, MoveFilter},
    obs::{Info, Obs},
    position::Variant,
    storage::output::{AtomicFile, begin_text},
};
use serde_json::json;

use super::{
    Context,
    evals::{self, BookEvals, BookEvalsArgs},
    input::{self, check_output, file_of, in_memory, output_name},
    make_book::minimax,
    plural,
    position::{self, of_book, of_database},
    progress::Bar,
    resources::ResourceArgs,
    suite::{SuiteArgs, length_suffix, repeated_suffix},
    usage::Usage,
    weighting::{HeaderArgs, Requirement, WeightingArgs},
};

/// Make a Polyglot book, an opening suite or a table from a book or a database
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The ending of OUT determines what is made from an OOBS database (.obs.db3) or a Polyglot book (.bin):
  .bin    the Polyglot book that make-book would make from the same games; only from a database
  .pgn    an opening suite of lines with --plies half-moves, the most played line first
  .epd    an opening suite of the positions after such lines, the most played position first
  .csv    a table of the moves of a database with their results and weights, or of the records of a book
  .jsonl  the same table, as one JSON document for each move, with FEN, SAN and UCI
  .parquet  the columns of .jsonl, and key and move as counts have them, to join FEN and SAN to counts
Tables contain every move by default, as with --min-game 1. Rows of a database that are marked inactive are skipped.

The lines of a suite are combined from single moves of the input. No line repeats a position. It is possible that no game
played the whole line; make-book --suite writes only lines that games played. A suite made from a database shows how often
games reached each position, and White's score in these games. If a game reached the position twice, it counts twice.

Examples:
  polybook convert games.obs.db3 book.bin
  polybook convert games.obs.db3 white.bin --only-white --win-factor 3
  polybook convert games.obs.db3 openings.pgn --plies 8 --min-game 20
  polybook convert games.obs.db3 suite.epd --limit 500 --seed 1 --balance 45-55 --opcodes
  polybook convert book.bin lines.pgn --from positions.epd --plies 4 --unique
  polybook convert book.bin book.csv")]
pub struct Args {
    /// The database or book; - is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file to write; - writes to standard output
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// Write the output in this format [default: determined by the ending of OUT]
    #[arg(long, value_enum)]
    format: Option<TargetFormat>,

    /// Replace an existing file of any kind. Without this option, convert replaces only a book that polybook wrote, by
    /// another book
    #[arg(long)]
    force: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    suite: SuiteArgs,

    /// Keep only openings of the suite whose final position meets QUERY, such as "P[d] = 1 and P[c,e] = 0" for an isolated
    /// pawn. docs/search.md describes the language
    #[arg(long, value_name = "QUERY", help_heading = "Opening suites")]
    position: Option<BoardQuery>,

    /// Leave lines out of the suite if they contain a move of weight 0. Only databases contain such moves
    #[arg(long, help_heading = "Opening suites")]
    weighted: bool,

    /// Add a column with the moves in SAN to a table in CSV. The other tables always contain this column
    #[arg(long)]
    with_san: bool,

    #[command(flatten)]
    weighting: WeightingArgs,

    #[command(flatten)]
    evals: BookEvalsArgs,

    /// Read the input as a book or database of this variant [default: the variant of the input]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    #[command(flatten)]
    header: HeaderArgs,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// The phrase for opening suites, with their file extensions, in error messages. An opening suite is a list of openings
/// from which engines play games.
const SUITES: &str = "outputs that are suites (.pgn or .epd)";

/// An output format of `polybook convert`.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
enum TargetFormat {
    Bin,
    Pgn,
    Epd,
    Csv,
    Jsonl,
    Parquet,
}

impl TargetFormat {
    fn is_suite(self) -> bool {
        matches!(self, TargetFormat::Pgn | TargetFormat::Epd)
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let format = format(args)?;
    let mut inputs = args.suite.inputs();
    inputs.push(&args.input);
    check_output(&args.out, &inputs, args.json)?;
    let out = match format {
        TargetFormat::Bin => begin_book(&args.out, args.force)?,
        _ => begin_text(&args.out, args.force)?,
    };
    if matches!(FileKind::of(&args.input), Ok(FileKind::Counts)) {
        let counts = args.input.display();
        let problem = format!(
            "this is a directory of counts: make a database of all moves with polybook make-book {counts} --min-game 1 \
             --obs FILE.obs.db3, and convert the database"
        );
        return Err(Error::file(&args.input, problem).into());
    }
    let file = file_of(&args.input)?;
    let converted = match FileKind::of(&file)? {
        FileKind::Sqlite => database(args, format, &file, out, context)?,
        _ => book(args, format, &file, out, context)?,
    };
    let mut document = json!({
        "path": output_name(&args.out),
        "entries": converted.entries,
        "passed_over": converted.skipped_rows.rows,
        "left_out": converted.filtered_rows,
    });
    if let Some(minimax) = converted.minimax {
        document["minimax"] = json!(minimax);
    }
    if let Some(weights) = converted.eval_weights {
        document["eval_weights"] = json!(weights);
    }
    if let Some(unevaluated) = converted.unevaluated {
        document["unevaluated"] = json!(unevaluated);
    }
    if let Some(repeated) = converted.repeated {
        document["repeated"] = json!(repeated);
    }
    if let Some(losses) = &converted.losses {
        document["losses"] = json!(losses);
    }
    context.report(&summary(args, format, &converted), args.json, document)
}

fn database(
    args: &Args,
    format: TargetFormat,
    file: &Path,
    out: AtomicFile,
    context: Context,
) -> anyhow::Result<Converted> {
    let obs = Obs::open(file)?;
    let variant = of_database(&args.input, &obs, args.variant)?;
    refuse_unused(args, format)?;
    if !format.is_suite() {
        args.suite.refuse(SUITES)?;
    }
    let memory = args.resources.memory();
    let evals = args.evals.store(args.suite.needs_evals())?;
    let suite = suite(args, variant, &memory, evals)?;
    let filter = args.weighting.move_filter(&default_filter(format));
    if let Some(missing) = missing(obs.info(), format, &filter) {
        let name = input::name(&args.input);
        context.say(&format!("warning: {name}: {missing}\n"));
    }
    let BookEvals {
        max_loss,
        eval_weights,
        ..
    } = args.evals.open(&memory, false)?;
    let convert = Convert {
        variant: args.variant,
        move_filter: Some(filter),
        only_weighted: args.weighted,
        with_san: args.with_san,
        weights: (&args.weighting).into(),
        max_loss,
        eval_weights,
        comment: args.header.comment.clone(),
        header: !args.header.no_header,
        threads: args.resources.threads(),
        memory,
        ..Convert::new(obs)
    };
    let _bar = Bar::of_phase("converting", &convert.meter, context);
    Ok(match format {
        TargetFormat::Bin => convert.to_bin(out)?,
        TargetFormat::Pgn => convert.to_suite(out, &suite, SuiteFormat::Pgn)?,
        TargetFormat::Epd => convert.to_suite(out, &suite, SuiteFormat::Epd)?,
        TargetFormat::Csv => convert.to_table(out, TableFormat::Csv)?,
        TargetFormat::Jsonl => convert.to_table(out, TableFormat::Jsonl)?,
        TargetFormat::Parquet => convert.to_table(out, TableFormat::Parquet)?,
    })
}

fn book(
    args: &Args,
    format: TargetFormat,
    file: &Path,
    out: AtomicFile,
    context: Context,
) -> anyhow::Result<Converted> {
    let name = input::name(&args.input);
    let reason = format!(
        "needs the results of games, but {name} is a Polyglot book, which contains only weights: use polybook filter --min-weight instead"
    );
    Usage::refuse(args.weighting.given(Requirement::Games), &reason)?;
    let memory = args.resources.memory();
    let evals = args.evals.store(args.suite.needs_evals())?;
    let book = Book::open_within(file, in_memory(&memory))?;
    let variant = of_book(&args.input, &book, args.variant)?;
    refuse_unused(args, format)?;
    let weighted = args.weighted.then_some("--weighted");
    let reason = "applies only to databases: a Polyglot book contains no moves of weight 0";
    Usage::refuse(weighted, reason)?;
    let with_san = args.with_san.then_some("--with-san");
    let reason = "applies only to databases: the table of a Polyglot book always contains SAN";
    Usage::refuse(with_san, reason)?;
    if !format.is_suite() {
        args.suite.refuse_except_from(SUITES)?;
    }
    let suite = suite(args, variant, &memory, evals)?;
    let convert = ConvertBook {
        memory: memory.share(2),
        ..ConvertBook::new(&book, variant)
    };
    let _bar = Bar::of_phase("converting", &convert.meter, context);
    Ok(match format {
        TargetFormat::Pgn => convert.to_suite(out, &suite, SuiteFormat::Pgn)?,
        TargetFormat::Epd => convert.to_suite(out, &suite, SuiteFormat::Epd)?,
        TargetFormat::Csv => convert.to_table(out, &suite.starts, TableFormat::Csv)?,
        TargetFormat::Jsonl => convert.to_table(out, &suite.starts, TableFormat::Jsonl)?,
        TargetFormat::Parquet => convert.to_table(out, &suite.starts, TableFormat::Parquet)?,
        TargetFormat::Bin => {
            let usage = format!(
                "{name} is already a Polyglot book: make another book from {name} with polybook filter or polybook \
                 merge-book"
            );
            return Err(Usage(usage).into());
        }
    })
}

/// Returns the settings of the suite that the options request.
fn suite(
    args: &Args,
    variant: Variant,
    memory: &Memory,
    evals: Option<&Path>,
) -> anyhow::Result<Suite> {
    Ok(Suite {
        position: args.position.clone(),
        ..args.suite.suite(variant, memory, evals)?
    })
}

/// Returns an error if the user gave an option that has no effect on an output in the format `format`.
fn refuse_unused(args: &Args, format: TargetFormat) -> Result<(), Usage> {
    if format != TargetFormat::Bin {
        let given = args.header.given().or(args.evals.given());
        let given = given.or(args.weighting.minimax());
        Usage::refuse(
            given,
            "applies only if the output is a Polyglot book (.bin)",
        )?;
    }
    if format.is_suite() && !args.weighted {
        let reason =
            "changes weights, but a suite uses weights only with --weighted: also give --weighted";
        Usage::refuse(args.weighting.given(Requirement::Weights), reason)?;
    }
    if args.with_san && format != TargetFormat::Csv {
        Usage::refuse(
            Some("--with-san"),
            "applies only if the output is a table in CSV (.csv)",
        )?;
    }
    if !format.is_suite() {
        let position = args.position.as_ref().map(|_| "--position");
        let weighted = args.weighted.then_some("--weighted");
        Usage::refuse(
            weighted.or(position),
            "applies only if the output is a suite (.pgn or .epd)",
        )?;
    }
    args.suite.refuse_unused(format == TargetFormat::Pgn)
}

/// Returns the format in which `polybook convert` writes its output: the value of `--format` or, without this option,
/// the format that the extension of the output's file name implies. Returns an error if the extension implies no
/// format.
fn format(args: &Args) -> Result<TargetFormat, Usage> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let extension = args.out.extension().unwrap_or_default();
    let extension = extension.to_string_lossy().to_ascii_lowercase();
    let out = args.out.display();
    TargetFormat::from_str(&extension, true).map_err(|_| match &*extension {
        "db3" => Usage(format!(
            "{out}: convert cannot make an OOBS database: use make-book --obs to make one from games, or merge-book to \
             merge several"
        )),
        _ => Usage(format!(
            "{out}: cannot determine the format from the ending of this name: give --format, or use a name that ends \
             in .bin, .pgn, .epd, .csv, .jsonl or .parquet"
        )),
    })
}

/// Returns the filter for the moves in an output of the given format that applies if the user gave no options to filter
/// moves. Tables then contain every move, and books and suites contain the moves that `make-book` keeps by default.
fn default_filter(format: TargetFormat) -> MoveFilter {
    match format {
        TargetFormat::Bin | TargetFormat::Pgn | TargetFormat::Epd => MoveFilter::default(),
        _ => MoveFilter::every_move(),
    }
}

/// Returns a warning if the converted database lacks moves that the output should contain, otherwise `None`. A database
/// lacks moves if it was made with an option such as `--min-game`. A book made from it then lacks these moves, too, and
/// the numbers of games in a suite are too low.
///
/// `info` says with which options the database was made. `kept` is the filter for the moves of the output.
fn missing(info: &Info, format: TargetFormat, kept: &MoveFilter) -> Option<String> {
    let dropped = info.dropped()?;
    let made_with = &info.move_filter;
    let has_one_filter = made_with.pruning_text().as_ref() == Some(&dropped);
    let keeps_no_more = has_one_filter
        && made_with.min_game <= kept.min_game
        && made_with.min_score <= kept.min_score
        && (made_with.only.is_none() || made_with.only == kept.only);
    let consequence = match format {
        TargetFormat::Pgn | TargetFormat::Epd => {
            "so the numbers of games are too low, and the scores are inexact"
        }
        TargetFormat::Bin if !keeps_no_more => "so the book does not contain these moves either",
        _ => return None,
    };
    let min_game = made_with.min_game;
    let (which, remedy) = if dropped == format!("--min-game {min_game}") {
        (format!("played fewer than {min_game} times"), "")
    } else {
        (format!("that were left out by \"{dropped}\""), " alone")
    };
    Some(format!(
        "this database does not contain moves {which}, {consequence}; make the database again with --min-game \
         1{remedy}"
    ))
}

fn summary(args: &Args, format: TargetFormat, converted: &Converted) -> String {
    let mut text = String::new();
    let warning = converted.skipped_rows.warning(input::name(&args.input));
    text.extend(warning.map(|warning| warning + "\n"));
    let thing = match format {
        TargetFormat::Bin => "entry",
        TargetFormat::Pgn => "line",
        TargetFormat::Epd => "position",
        _ => "row",
    };
    if converted.filtered_rows > 0 {
        text.push_str(&format!(
            "{} dropped by the options\n",
            plural(converted.filtered_rows, "row")
        ));
    }
    text.push_str(&evals::losses(converted.losses.as_ref()));
    text.push_str(&evals::eval_weights(converted.eval_weights));
    text.push_str(&minimax(converted.minimax));
    if converted.is_cut {
        text.push_str(
            "warning: polybook did not examine all lines of this length, so some lines may be missing from the suite\n",
        );
    }
    let plies = &args.suite.settings().plies;
    let length = match format {
        TargetFormat::Pgn => length_suffix(SuiteFormat::Pgn, plies),
        TargetFormat::Epd => length_suffix(SuiteFormat::Epd, plies),
        _ => String::new(),
    };
    text.push_str(&format!(
        "{}: {}{length}{}{}\n",
        output_name(&args.out),
        plural(converted.entries, thing),
        evals::unevaluated_suffix(converted.unevaluated),
        repeated_suffix(converted.repeated)
    ));
    text
}

//! `polybook convert`: other things made of a book.

use std::{path::PathBuf, sync::Arc};

use polybook::{
    book::Book,
    convert::{Convert, Converted, book_to_csv},
    obs::{self, Obs},
    output::refuse_clashes,
    position::Variant,
    tally::{Memory, MoveFilter},
};
use serde::Serialize;

use super::{
    Context,
    header::HeaderArgs,
    input::{self, InputFile},
    json,
    progress::Bar,
    resources::ResourceArgs,
    usage::Usage,
    weighting::WeightingArgs,
};

/// Make a Polyglot book, an opening suite or a table of a book
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is made is told by the name of the file. Of an OOBS database (.obs.db3) can be made
  .bin  the Polyglot book that make-book would have made of the same games
  .pgn  an opening suite: each line of --plies half-moves, the commonest first
  .epd  an opening suite: each position after --plies half-moves, the commonest first
  .csv  a table of the moves with their games and weights
and of a Polyglot book (.bin) a .csv. Rows that are not active are passed over.

Examples:
  polybook convert games.obs.db3 book.bin
  polybook convert games.obs.db3 white.bin --only-white --win-factor 3
  polybook convert games.obs.db3 openings.pgn --plies 8 --min-game 20
  polybook convert book.bin book.csv")]
pub struct Args {
    /// The database or book; - is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file to write; - is standard output
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// What to make [default: what the name of OUT ends in]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Half-moves of each line of a suite
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    plies: u16,

    /// Leave moves of weight 0, which no book has, out of a suite
    #[arg(long)]
    weighted: bool,

    #[command(flatten)]
    weighting: WeightingArgs,

    /// Take the positions for those of this variant, whatever the database says
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,

    #[command(flatten)]
    header: HeaderArgs,

    #[command(flatten)]
    resources: ResourceArgs,

    /// Print a JSON document
    #[arg(long, help_heading = "Options")]
    json: bool,
}

/// What can be made.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
enum Format {
    /// A Polyglot book
    Bin,
    /// A suite of lines
    Pgn,
    /// A suite of positions
    Epd,
    /// A table
    Csv,
}

/// What was made, for programs.
#[derive(Serialize)]
struct Document {
    path: String,
    /// Records of the book, lines or positions of the suite, or rows of the table.
    entries: u64,
    /// Rows of the database that could not be read.
    passed_over: u64,
    /// Rows that the options left out of a table.
    left_out: u64,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let format = format(args)?;
    let out = &args.out;
    let file = InputFile::of(&args.input)?;
    refuse_clashes(&[out], &[file.path()])?;
    input::refuse_document_beside(args.json, out)?;
    let bar = Bar::of_phase("converting", &Arc::default(), context);
    let converted = if obs::is_database(file.path())? {
        let convert = configured(args, format, &file)?;
        match format {
            Format::Bin => convert.to_bin(out)?,
            Format::Pgn => convert.to_pgn(out, args.plies.into())?,
            Format::Epd => convert.to_epd(out, args.plies.into())?,
            Format::Csv => convert.to_csv(out)?,
        }
    } else {
        let book = Book::open(file.path())?;
        if format != Format::Csv {
            let usage = format!(
                "{} is a Polyglot book, which has lost what this needs: only a .csv can be made of it",
                input::name(&args.input)
            );
            return Err(Usage(usage).into());
        }
        book_to_csv(&book, out)?
    };
    drop(bar);
    context.tell(&summary(args, format, &converted));
    if args.json {
        json::print(&Document {
            path: input::output_name(out),
            entries: converted.entries,
            passed_over: converted.passed_over.rows,
            left_out: converted.left_out,
        })?;
    }
    Ok(())
}

/// The format that is asked for, or that the name of the output tells.
fn format(args: &Args) -> Result<Format, Usage> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let extension = args.out.extension().unwrap_or_default();
    match extension.to_string_lossy().to_ascii_lowercase().as_str() {
        "bin" => Ok(Format::Bin),
        "pgn" => Ok(Format::Pgn),
        "epd" => Ok(Format::Epd),
        "csv" => Ok(Format::Csv),
        "db3" => Err(Usage(format!(
            "{}: an OOBS database is made of games, by make-book --obs, or of others, by merge-book",
            args.out.display()
        ))),
        _ => Err(Usage(format!(
            "{}: say what to make with --format, or end the name in .bin, .pgn, .epd or .csv",
            args.out.display()
        ))),
    }
}

fn configured(args: &Args, format: Format, file: &InputFile) -> anyhow::Result<Convert> {
    let default = match format {
        Format::Csv => MoveFilter::every_move(),
        Format::Bin | Format::Pgn | Format::Epd => MoveFilter::default(),
    };
    let memory = Memory {
        bytes: args.resources.memory(),
        temp_dir: args.resources.temp_dir(),
    };
    let mut convert = Convert::new(Obs::open(file.path())?)
        .move_filter(args.weighting.move_filter(&default))
        .only_weighted(args.weighted)
        .weights((&args.weighting).into())
        .with_header(!args.header.no_header)
        .threads(args.resources.threads())
        .memory(memory);
    if let Some(variant) = args.variant {
        convert = convert.variant(variant);
    }
    if let Some(comment) = &args.header.comment {
        convert = convert.comment(comment);
    }
    Ok(convert)
}

fn summary(args: &Args, format: Format, converted: &Converted) -> String {
    let mut text = String::new();
    let passed_over = &converted.passed_over;
    if let Some(example) = &passed_over.example {
        text.push_str(&format!(
            "warning: {}: {} rows passed over: {example}\n",
            input::name(&args.input),
            passed_over.rows
        ));
    }
    let things = match format {
        Format::Bin => "entries",
        Format::Pgn => "lines",
        Format::Epd => "positions",
        Format::Csv => "rows",
    };
    if converted.left_out > 0 {
        text.push_str(&format!(
            "{} rows left out by the options\n",
            converted.left_out
        ));
    }
    text.push_str(&format!(
        "{}: {} {things}\n",
        input::output_name(&args.out),
        converted.entries
    ));
    text
}

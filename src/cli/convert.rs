//! `polybook convert`: other things made of a book.

use std::path::PathBuf;

use polybook::{
    book::Book,
    convert::{Convert, Converted, book_to_csv},
    obs::{self, Obs},
    position::Variant,
    tally::Memory,
};

use super::{
    Context, errors::Usage, header::HeaderArgs, resources::ResourceArgs, weighting::WeightingArgs,
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
    /// The database or book
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// What to make of it
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// Half-moves of each line of a suite
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    plies: u16,

    #[command(flatten)]
    weighting: WeightingArgs,

    /// Take the positions for those of this variant, whatever the database says
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,

    #[command(flatten)]
    header: HeaderArgs,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// What can be made.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Bin,
    Pgn,
    Epd,
    Csv,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let kind = kind(args)?;
    let out = &args.out;
    let converted = if obs::is_database(&args.input)? {
        let convert = configured(args)?;
        match kind {
            Kind::Bin => convert.to_bin(out)?,
            Kind::Pgn => convert.to_pgn(out, args.plies.into())?,
            Kind::Epd => convert.to_epd(out, args.plies.into())?,
            Kind::Csv => convert.to_csv(out)?,
        }
    } else if kind == Kind::Csv {
        book_to_csv(&Book::open(&args.input)?, out)?
    } else {
        let usage = format!(
            "{}: is no OOBS database, and a Polyglot book has lost what this needs: only a .csv can be made of it",
            args.input.display()
        );
        return Err(Usage(usage).into());
    };
    if !context.quiet {
        eprint!("{}", summary(args, kind, &converted));
    }
    Ok(())
}

fn kind(args: &Args) -> Result<Kind, Usage> {
    let extension = args.out.extension().unwrap_or_default();
    match extension.to_string_lossy().to_ascii_lowercase().as_str() {
        "bin" => Ok(Kind::Bin),
        "pgn" => Ok(Kind::Pgn),
        "epd" => Ok(Kind::Epd),
        "csv" => Ok(Kind::Csv),
        "db3" => Err(Usage(format!(
            "{}: an OOBS database is made of games, by make-book --obs, or of others, by merge-book",
            args.out.display()
        ))),
        _ => Err(Usage(format!(
            "{}: the name of the file says what to make: end it in .bin, .pgn, .epd or .csv",
            args.out.display()
        ))),
    }
}

fn configured(args: &Args) -> anyhow::Result<Convert> {
    let memory = Memory {
        bytes: args.resources.memory,
        temp_dir: args.resources.temp_dir(),
    };
    let mut convert = Convert::new(Obs::open(&args.input)?)
        .move_filter((&args.weighting).into())
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

fn summary(args: &Args, kind: Kind, converted: &Converted) -> String {
    let mut text = String::new();
    let passed_over = &converted.passed_over;
    if let Some(example) = &passed_over.example {
        text.push_str(&format!(
            "warning: {}: {} rows passed over: {example}\n",
            args.input.display(),
            passed_over.rows
        ));
    }
    let things = match kind {
        Kind::Bin => "entries",
        Kind::Pgn => "lines",
        Kind::Epd => "positions",
        Kind::Csv => "rows",
    };
    text.push_str(&format!(
        "{}: {} {things}\n",
        args.out.display(),
        converted.entries
    ));
    text
}

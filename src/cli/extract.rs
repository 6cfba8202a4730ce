//! `polybook extract`: writes the games that meet conditions.

use std::path::PathBuf;

use polybook::{
    MakeBook,
    make_book::{Extract, ExtractForm},
    pgn::ExportFormat,
    position::VariantChoice,
};

use super::{
    Context,
    filters::SelectionArgs,
    input::{output_name, pgn_inputs, refuse_twice},
    make_book::warnings,
    plural,
    position::UntaggedArg,
    progress::Bar,
    resources::{ResourceArgs, count},
    terminal::OutputArgs,
    usage::Usage,
    weighting::one_of,
};

/// A part of a game that `--strip` leaves out.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stripped {
    Comments,
    Variations,
    Nags,
    Clocks,
    Evals,
}

/// A tag that `--add` sets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AddedTag {
    Eco,
    Opening,
    PlyCount,
}

/// The tags that `--tags` keeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum KeptTags {
    Roster,
    All,
}

/// The help text of `--out`. Only this command compresses its output.
const OUT: &str =
    "Write to this file, compressed if its name ends in .zst or .gz [default: standard output]";

/// Write the games that meet conditions as PGN
#[derive(clap::Args, Debug)]
#[command(
    mut_arg("out", |arg| arg.help(OUT)),
    after_help = "\
Without --clean, --strip, --add and --tags, each game is written as it stands in its file.

Examples:
  polybook extract games.pgn --player Tal --result win --out tal.pgn
  polybook extract *.pgn.zst --position \"move[Bxh7+]\" --out sacrifices.pgn.zst
  polybook extract games.pgn --position \"material[KRPPvKRP]\" --count
  polybook extract games.pgn --clean --strip comments,variations --add eco,opening --out clean.pgn"
)]
pub struct Args {
    /// The games in PGN; - is standard input
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    /// Write the export format of the PGN standard: the seven tags of the roster first, moves in SAN, and short lines
    #[arg(long)]
    clean: bool,

    /// Leave these parts out, and write as with --clean: comments, variations, nags, clocks, evals
    #[arg(
        long,
        value_name = "PART",
        value_delimiter = ',',
        value_parser = one_of([
            ("comments", Stripped::Comments),
            ("variations", Stripped::Variations),
            ("nags", Stripped::Nags),
            ("clocks", Stripped::Clocks),
            ("evals", Stripped::Evals),
        ])
    )]
    strip: Vec<Stripped>,

    /// Set these tags by the moves, and write as with --clean: eco (ECO), opening (Opening and Variation), plycount
    /// (PlyCount)
    #[arg(
        long,
        value_name = "TAG",
        value_delimiter = ',',
        value_parser = one_of([
            ("eco", AddedTag::Eco),
            ("opening", AddedTag::Opening),
            ("plycount", AddedTag::PlyCount),
        ])
    )]
    add: Vec<AddedTag>,

    /// Write all tags, or only the seven tags of the roster and those that say how a game starts, as with --clean
    #[arg(long, value_parser = one_of([("roster", KeptTags::Roster), ("all", KeptTags::All)]))]
    tags: Option<KeptTags>,

    /// Write only the first N games
    #[arg(long, value_name = "N", value_parser = count::<u64>(1))]
    limit: Option<u64>,

    /// Write N games that are chosen at random, in the order of the sources. They are kept in memory
    #[arg(long, value_name = "N", value_parser = count::<u64>(1), conflicts_with = "limit")]
    sample: Option<u64>,

    /// Choose other games for --sample. The same number chooses the same games
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,

    /// Write only the number of games
    #[arg(long, conflicts_with_all = ["json", "clean", "strip", "add", "tags"])]
    count: bool,

    /// Write a JSON document instead of PGN: for each game the file, the offset, the half-moves after which --position
    /// holds, and the FEN of the first of these positions
    #[arg(long, conflicts_with_all = ["clean", "strip", "add", "tags"])]
    json: bool,

    /// Also write games that cannot be read to their end, as they stand in the file
    #[arg(long)]
    keep_broken: bool,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    resources: ResourceArgs,

    #[command(flatten)]
    filters: SelectionArgs,
}

impl Args {
    fn form(&self) -> ExtractForm {
        if self.json {
            return ExtractForm::Json;
        }
        if self.count {
            return ExtractForm::Count;
        }
        if !self.clean && self.strip.is_empty() && self.add.is_empty() && self.tags.is_none() {
            return ExtractForm::Text;
        }
        let strips = |part| self.strip.contains(&part);
        let adds = |tag| self.add.contains(&tag);
        ExtractForm::Export(ExportFormat {
            no_comments: strips(Stripped::Comments),
            no_variations: strips(Stripped::Variations),
            no_nags: strips(Stripped::Nags),
            no_clocks: strips(Stripped::Clocks),
            no_evals: strips(Stripped::Evals),
            roster_only: self.tags == Some(KeptTags::Roster),
            add_eco: adds(AddedTag::Eco),
            add_opening: adds(AddedTag::Opening),
            add_ply_count: adds(AddedTag::PlyCount),
        })
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let sources: Vec<&PathBuf> = args.sources.iter().collect();
    refuse_twice(&sources)?;
    let ending = super::input::ending(&args.output.out);
    if let "bz2" | "zip" | "xz" = &*ending {
        let usage = format!(
            "--out {}: the output can be compressed as .zst or .gz only",
            args.output.out.display()
        );
        return Err(Usage(usage).into());
    }
    let mut extract = Extract::new(&args.output.out)
        .form(args.form())
        .keep_broken(args.keep_broken);
    if let Some(limit) = args.limit {
        extract = extract.limit(limit);
    }
    if let Some(sample) = args.sample {
        extract = extract.sample(sample, args.seed);
    }
    let memory = args.resources.memory();
    let inputs = pgn_inputs(&args.sources, args.untagged.untagged_variant)?;
    let run = MakeBook::new(inputs)
        .selection(args.filters.selection()?)
        .variant(VariantChoice::Auto)
        .max_ply(usize::MAX)
        .allow_empty(true)
        .force(args.output.force)
        .memory(memory.bytes)
        .threads(args.resources.threads())
        .temp_dir(memory.temp_dir)
        .extract(extract);
    let bar = Bar::of_make_book(run.progress(), context);
    let report = run.run();
    drop(bar);
    let report = report?;
    let mut text = String::new();
    warnings(&mut text, &report);
    let games = &report.totals.games;
    text += &format!(
        "{}: {} of {}, {} rejected\n",
        output_name(&args.output.out),
        report.extracted.unwrap_or_default(),
        plural(games.read, "game"),
        games.rejected
    );
    context.say(&text);
    Ok(())
}

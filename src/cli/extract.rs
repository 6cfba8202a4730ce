//! `polybook extract`: writes the games that meet conditions.

use std::path::{Path, PathBuf};

use polybook::{
    Error, MakeBook,
    explorer::{Explorer, Selection, SourceFile},
    index::is_index,
    make_book::{Extract, ExtractForm},
    pgn::{ExportFormat, Input},
    position::{Variant, VariantChoice},
    storage::output::is_directory,
};

use super::{
    Context,
    filters::SelectionArgs,
    input::{name, output_name, pgn_inputs, refuse_twice},
    make_book::warnings,
    plural,
    position::{PieceLettersArg, UntaggedArg},
    progress::Bar,
    resources::{ResourceArgs, count},
    terminal::{OutputArgs, is_shown_by_terminal},
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

/// The help text of `--out` in this command, which is the only one that compresses its output.
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
    /// The games in PGN, or explorer's indexes, whose PGN files are read; - is standard input
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
    letters: PieceLettersArg,

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

/// Returns the inputs that contain the games of `sources`. For an index, these are the PGN files from which it was
/// made.
fn inputs(sources: &[PathBuf], untagged: Variant) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for source in sources {
        if is_directory(source)? && is_index(source)? {
            inputs.extend(inputs_of_index(source)?);
        } else {
            inputs.extend(pgn_inputs(std::slice::from_ref(source), untagged)?);
        }
    }
    let first = inputs.first().map(Input::untagged_variant);
    if let Some(other) = inputs
        .iter()
        .find(|input| Some(input.untagged_variant()) != first)
    {
        anyhow::bail!(
            "{}: games without a Variant tag are {} in this source, but not in the first one: extract from each source \
             alone",
            other.path().display(),
            other.untagged_variant()
        );
    }
    Ok(inputs)
}

fn inputs_of_index(index: &Path) -> anyhow::Result<Vec<Input>> {
    let explorer = Explorer::open([(name(index), index.to_owned())])?;
    let files = explorer.files(&Selection::default())?;
    if let Some(file) = files.iter().find(|file| !file.options.is_empty()) {
        let instead = if file.options.contains("--keep-prefix") {
            ", but with --keep-broken instead of --keep-prefix"
        } else {
            ""
        };
        let problem = format!(
            "this index was made with {}: extract the games from its PGN files, such as {}, with these options{instead}",
            file.options,
            file.path.display()
        );
        return Err(Error::file(index, problem).into());
    }
    if let Some((file, _)) = explorer.newer_file(None) {
        let problem = format!(
            "the file {} was modified after this index was made: make the index again",
            file.display()
        );
        return Err(Error::file(index, problem).into());
    }
    let files = files.into_iter();
    let input =
        |file: SourceFile| Input::file(file.path).with_untagged_variant(file.untagged_variant);
    Ok(files.map(input).collect())
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
        .keep_broken(args.keep_broken)
        .escapes(is_shown_by_terminal(&args.output.out));
    if let Some(limit) = args.limit {
        extract = extract.limit(limit);
    }
    if let Some(sample) = args.sample {
        extract = extract.sample(sample, args.seed);
    }
    let memory = args.resources.memory();
    let inputs = inputs(&args.sources, args.untagged.untagged_variant)?;
    let run = MakeBook::new(inputs)
        .selection(args.filters.selection()?)
        .variant(VariantChoice::Auto)
        .piece_letters(args.letters.piece_letters)
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
    let written = report.extracted.unwrap_or_default();
    let part = if Some(written) == args.limit {
        "the first "
    } else {
        ""
    };
    text += &format!(
        "{}: {written} of {part}{}, {} rejected\n",
        output_name(&args.output.out),
        plural(games.read, "game"),
        games.rejected
    );
    if games.counted == 0 {
        text += &format!("{}\n", report.why_none_counts());
    }
    context.say(&text);
    Ok(())
}

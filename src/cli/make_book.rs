//! `polybook make-book`: makes books, suites, databases, indexes and counts from games.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context as _;

use super::{
    Context, errors,
    evals::{self, BookEvalsArgs},
    filters::{GAMES, SelectionArgs},
    input::{
        self, DEFAULT_BOOK, output_name, pgn_inputs, refuse_document_beside, refuse_foreign_name,
        refuse_standard_output,
    },
    plural,
    position::{self, PieceLettersArg, UntaggedArg},
    progress::Bar,
    resources::{ResourceArgs, count},
    suite::{ONLY_SUITE, SuiteArgs, length_suffix, repeated_suffix},
    usage::{EXPLORER_DIR, Usage},
    weighting::{HeaderArgs, MOVES, Requirement, WeightingArgs, one_of},
};
use polybook::{
    Error, MakeBook, Report,
    book::{Book, MinimaxSummary},
    counts::{Grouping, MoveFilter, Names},
    make_book::{SuiteReport, Unfinished},
    pgn::Input,
    position::{Variant, VariantChoice},
    selection::{Condition, Duplicates},
    storage::output::is_regular_file,
    suite::{Suite, SuiteFormat},
    text::shell_path,
};
use shakmaty::Color;

/// The heading of the options that name outputs, in the help of `make-book`.
const OUTPUTS: &str = "Outputs";

/// Make a Polyglot opening book, an opening suite, a database, an index or counts from games in PGN
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook make-book games.pgn
      count all games and write book.bin
  polybook make-book --max-ply 30 --min-game 5 --bin my.bin 2023.pgn.zst 2024.pgn.gz
      several files, compressed or not, in one pass
  zstdcat month.pgn.zst | polybook make-book --min-elo 2200 --bin strong.bin -
      games of strong players, from standard input
  polybook make-book games.pgn --bin book.bin --leveldb games.idx --index-stats
      a book, and an index that finds games by position for front-ends, in one pass
  polybook make-book games.pgn --explorer games.idx
      an index for polybook show, games and serve
  polybook make-book games.pgn --min-game 1 --obs games.obs.db3
      every move with its wins, draws and losses, for polybook convert and for SQL
  polybook make-book 2024.pgn --counts 2024.counts
  polybook make-book 2023.counts 2024.counts --bin book.bin
      count each year once, and make books from the counts
  polybook make-book 2024.pgn --counts 2024.counts --by speed,rating,month
  polybook make-book 2023.counts 2024.counts --counts all.counts --min-game 5
      count by speed, rating group and month; add up, and keep the positions in which at least five moves were counted
  polybook make-book all.counts --explorer all.idx
      an index made from these counts, for polybook serve
  polybook make-book games.pgn --suite openings.epd --plies 12 --limit 500 --balance 45-55
      the most played openings, for matches between engines
  polybook make-book --variant crazyhouse lichess.pgn.zst --bin zh.bin
      the games of one variant
  polybook make-book -pgn games.pgn -bin book.bin -only-white -uniform
      the spelling of old scripts")]
pub struct Args {
    /// Files of games in PGN, or directories that --counts wrote. PGN files can be compressed with gzip, bzip2, zstd or
    /// zip; - reads standard input
    #[arg(value_name = "PGN")]
    inputs: Vec<PathBuf>,

    /// Also read games from this PGN file, before the PGN files that are given without an option
    #[arg(long, value_name = "FILE")]
    pgn: Vec<PathBuf>,

    /// Write a Polyglot book to this file; - writes to standard output [default: book.bin, if no other output is given]
    #[arg(long, value_name = "FILE", help_heading = OUTPUTS)]
    bin: Option<PathBuf>,

    /// Write an index of the games to this directory, in the LevelDB format of a fork of polyglot. Programs such as
    /// kivy-chess use it to find the games that reached a position
    #[arg(long, value_name = "DIR", help_heading = OUTPUTS)]
    leveldb: Option<PathBuf>,

    /// Also store the moves of each position, with their wins, draws and losses, in the index that --leveldb writes
    #[arg(long, requires = "leveldb", help_heading = OUTPUTS)]
    index_stats: bool,

    /// Write an explorer's index to this directory, which the commands show, games and serve read. It contains the
    /// games or, if the inputs are counts made with --by speed,rating,month, only the results of each move
    #[arg(long, value_name = "DIR", help_heading = OUTPUTS)]
    explorer: Option<PathBuf>,

    /// Write the kept moves with their wins, draws and losses to this SQLite database, in the Open Opening Book
    /// Standard (OOBS)
    #[arg(long, value_name = "FILE.obs.db3", help_heading = OUTPUTS)]
    obs: Option<PathBuf>,

    /// Write the wins, draws and losses of every move to this directory, as Parquet files that DuckDB and Spark can
    /// read. If make-book writes no book, database or suite, --min-game N leaves out positions in which fewer than N
    /// moves were played
    #[arg(long, value_name = "DIR", help_heading = OUTPUTS)]
    counts: Option<PathBuf>,

    /// Count each speed, rating group or month separately in the output of --counts. Give one or more of them,
    /// separated by commas, or none, which counts all games together. An index made from the counts can then be
    /// filtered by them [default: as in the input, if the input is counts, else none]
    #[arg(long, value_name = "speed,rating,month|none", requires = "counts", help_heading = OUTPUTS)]
    by: Option<Grouping>,

    /// Also write the names of the positions and moves of --counts, as tables in its directory: the FENs, the moves in
    /// SAN, or the openings of positions. Give one or more of them, separated by commas
    #[arg(long, value_name = "fen,san,opening", requires = "counts", help_heading = OUTPUTS)]
    with: Option<Names>,

    /// Write an opening suite, a list of openings for engine matches, to this file; - writes PGN to standard output. A
    /// .pgn file lists openings as lines of moves, and an .epd file lists the positions after these lines. An opening
    /// is --plies half-moves long and is listed if it occurs in at least --min-game games
    #[arg(long, value_name = "FILE", help_heading = OUTPUTS)]
    suite: Option<PathBuf>,

    /// Replace existing files and directories. Without this option, make-book replaces only a book that polybook wrote
    #[arg(long, help_heading = OUTPUTS)]
    force: bool,

    /// Write empty outputs if no game passes the filters or no move is kept
    #[arg(long)]
    allow_empty: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    /// Count only the first N half-moves of each game (a half-move is one move of one side)
    #[arg(long, value_name = "N", default_value_t = MakeBook::DEFAULT_MAX_PLY, help_heading = MOVES, value_parser = count::<usize>(0))]
    max_ply: usize,

    #[command(flatten)]
    weighting: WeightingArgs,

    #[command(flatten)]
    evals: BookEvalsArgs,

    #[command(flatten)]
    in_suite: SuiteArgs,

    /// Earlier name of --duplicates once
    #[arg(long, hide = true, conflicts_with = "duplicates")]
    drop_duplicates: bool,

    /// Count the games of this variant; auto counts the games of all variants, each with the rules of its variant
    #[arg(long, value_name = "NAME|auto", default_value = "standard", value_parser = position::variant_or_auto(), help_heading = GAMES)]
    variant: VariantChoice,

    #[command(flatten)]
    untagged: UntaggedArg,

    /// Count a game without a result as a draw (draw), or leave it out (skip)
    #[arg(
        long,
        default_value = "draw",
        value_parser = one_of([("draw", Unfinished::Draw), ("skip", Unfinished::Skip)]),
        help_heading = GAMES
    )]
    unfinished: Unfinished,

    /// If a game contains an illegal move, count the moves before the illegal move instead of dropping the game
    #[arg(long, help_heading = GAMES)]
    keep_prefix: bool,

    /// Also count the moves of variations (alternative moves in parentheses), each from the position in which the
    /// variation begins
    #[arg(long, help_heading = GAMES)]
    variations: bool,

    #[command(flatten)]
    letters: PieceLettersArg,

    /// Stop at the first game with an error, such as an illegal move, and write no output. Without this option,
    /// make-book drops such games and continues
    #[arg(long, help_heading = GAMES)]
    strict: bool,

    #[command(flatten)]
    header: HeaderArgs,

    #[command(flatten)]
    resources: ResourceArgs,

    #[command(flatten)]
    filters: SelectionArgs,
}

impl Args {
    /// Returns the paths of all outputs that the user requested with options.
    fn outputs(&self) -> Vec<&Path> {
        let outputs = [
            &self.bin,
            &self.leveldb,
            &self.explorer,
            &self.obs,
            &self.counts,
            &self.suite,
        ];
        outputs
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
    }
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let as_json = args.json;
    let start = Instant::now();
    let has_several_outputs = args.outputs().len() > 1;
    let mut inputs = args.pgn.iter().chain(&args.inputs);
    let only_input = inputs.next().filter(|_| inputs.next().is_none()).cloned();
    let given: Vec<PathBuf> = args.pgn.iter().chain(&args.inputs).cloned().collect();
    let mixes_players = mixes_players(&args)?;
    let run = configured(args)?;
    let bar = Bar::of_make_book(run.progress(), context);
    let report = run.run();
    drop(bar);
    let report = report.map_err(|err| match (err, only_input) {
        (err @ Error::Empty { .. }, Some(input)) => {
            anyhow::Error::from(err).context(input::name(&input))
        }
        (err, _) if has_several_outputs => errors::explain_closed_output(err.into()),
        (err, _) => err.into(),
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut document = serde_json::to_value(&report)?;
    document["seconds"] = seconds.into();
    // The summary reads the outputs again.
    let summary = if context.quiet {
        String::new()
    } else {
        summary(&report, &given, seconds, mixes_players)
    };
    context.report(&summary, as_json, document)
}

/// Returns `true` if the arguments select games by the name of a player, but moves of the player's opponents count, too.
fn mixes_players(args: &Args) -> anyhow::Result<bool> {
    let selection = args.filters.selection()?;
    let [player, white, black] =
        [&selection.player, &selection.white, &selection.black].map(|names| !names.is_empty());
    let only = args.weighting.move_filter(&MoveFilter::default()).only;
    let is_of_player_alone =
        |color: Color| color.fold_wb(white, black) || player && selection.color == Some(color);
    Ok((player || white || black) && !only.is_some_and(is_of_player_alone))
}

/// Converts the arguments to a configured [`MakeBook`] run. Returns an error if the arguments contradict each other.
fn configured(mut args: Args) -> anyhow::Result<MakeBook> {
    // If no output is requested, make a book.
    if args.outputs().is_empty() {
        args.bin = Some(DEFAULT_BOOK.into());
    }
    check_standard_output(&args)?;
    args.bin
        .iter()
        .try_for_each(|bin| refuse_foreign_name("--bin", bin))?;
    refuse_unused(&args)?;
    let pruning = args.weighting.min_game();
    let pruning = pruning.filter(|least| *least > 1 && prunes_counts(&args));
    let mut selection = args.filters.selection()?;
    if args.drop_duplicates {
        selection.duplicates = Some(Duplicates::Once);
    }
    let position = selection.board_query();
    let inputs = inputs(args.pgn, args.inputs, args.untagged.untagged_variant)?;
    let is_stdin = |input: &Input| input.path() == Path::new("-");
    if args.in_suite.reads_standard_input() && inputs.iter().any(is_stdin) {
        let usage = "--from and an input cannot both be -, because there is only one standard input: give a file for one of them";
        return Err(Usage(usage.to_owned()).into());
    }
    let memory = args.resources.memory();
    let mut run = MakeBook::new(inputs)
        .index_stats(args.index_stats)
        .force(args.force)
        .allow_empty(args.allow_empty)
        .max_ply(args.max_ply)
        .selection(selection)
        .unfinished(args.unfinished)
        .keep_prefix(args.keep_prefix)
        .variations(args.variations)
        .piece_letters(args.letters.piece_letters)
        .strict(args.strict)
        .move_filter(args.weighting.move_filter(&MoveFilter::default()))
        .weights((&args.weighting).into())
        .variant(args.variant)
        .with_header(!args.header.no_header)
        .memory(memory.bytes)
        .threads(args.resources.threads())
        .temp_dir(memory.temp_dir);
    let evals = args.evals.store(args.in_suite.needs_evals())?;
    if let Some(bin) = args.bin {
        run = run.bin(bin);
    }
    if let Some(leveldb) = args.leveldb {
        run = run.leveldb(leveldb);
    }
    if let Some(explorer) = args.explorer {
        run = run.explorer(explorer);
    }
    if let Some(obs) = args.obs {
        run = run.obs(obs);
    }
    if let Some(counts) = args.counts {
        run = run.counts(counts).prune_counts(pruning.unwrap_or(0));
    }
    if let Some(by) = args.by {
        run = run.by(by);
    }
    if let Some(names) = args.with {
        run = run.counted_names(names);
    }
    let mut suite = None;
    if let Some(path) = args.suite {
        let format = suite_format(&path)?;
        args.in_suite.refuse_unused(format == SuiteFormat::Pgn)?;
        run = run.suite(&path, format, args.in_suite.settings());
        suite = Some((path, format));
    } else {
        args.in_suite.refuse(ONLY_SUITE)?;
    }
    if let Some(comment) = args.header.comment {
        run = run.comment(comment);
    }
    // The files of these options may be pipes, whose data is lost if the run fails.
    if evals.is_some() || !args.in_suite.inputs().is_empty() {
        run.check_outputs()?;
    }
    let memory = args.resources.memory();
    let rules = args.evals.open(&memory, false)?;
    if let Some(max_loss) = rules.max_loss {
        run = run.max_loss(max_loss);
    }
    if let Some(eval_weights) = rules.eval_weights {
        run = run.eval_weights(eval_weights);
    }
    if let Some((path, format)) = suite {
        let variant = args.variant.only().unwrap_or_default();
        let suite = args.in_suite.suite(variant, &memory, evals)?;
        run = run.suite(path, format, Suite { position, ..suite });
    }
    Ok(run)
}

/// Returns an error if an output that must be a directory would go to standard output. Also returns an error if an
/// output and the JSON report would both go to standard output.
fn check_standard_output(args: &Args) -> Result<(), Usage> {
    for (option, out) in [
        ("--leveldb", &args.leveldb),
        ("--explorer", &args.explorer),
        ("--counts", &args.counts),
    ] {
        if let Some(out) = out {
            refuse_standard_output(option, out)?;
        }
    }
    for out in args.bin.iter().chain(&args.obs).chain(&args.suite) {
        refuse_document_beside(args.json, out)?;
    }
    Ok(())
}

/// Returns an error if the user gave an option that has no effect on the requested outputs. If no book is requested,
/// some options for books are accepted nevertheless, because polyglot also accepts and then ignores them.
fn refuse_unused(args: &Args) -> Result<(), Usage> {
    if args.explorer.as_ref().is_some_and(|path| path.is_file()) {
        return Err(Usage(EXPLORER_DIR.to_owned()));
    }
    let (weighting, header) = (&args.weighting, args.header.given());
    let has_moves = args.bin.is_some() || args.obs.is_some();
    if args.suite.is_some() && !has_moves {
        let given = weighting.given(Requirement::Book).or(header);
        Usage::refuse(given, "applies only to books, not to suites")?;
    }
    let has_index = args.leveldb.is_some() || args.explorer.is_some() || args.counts.is_some();
    if args.suite.is_some() && !has_moves && !has_index && !args.in_suite.has_plies() {
        let given = (args.max_ply != MakeBook::DEFAULT_MAX_PLY).then_some("--max-ply");
        Usage::refuse(
            given,
            "does not apply to suites: --plies sets the length of the openings of a suite",
        )?;
    }
    if args.bin.is_none() {
        let given = weighting.given(Requirement::OwnWeights).or(header);
        let given = given.or(args.evals.given());
        Usage::refuse(given, "applies only to books: also write a book with --bin")?;
    }
    let is_missing = |input: &&PathBuf| matches!(input.try_exists(), Ok(false));
    let mut missing = args.inputs.iter().filter(is_missing);
    let number = missing.find_map(|input| input.to_str()?.parse::<u8>().ok());
    if let (Some(option), Some(number)) = (weighting.minimax(), number) {
        return Err(Usage(format!(
            "there is no file {number}: did you mean {option}={number}?"
        )));
    }
    let prunes = weighting.min_game().is_some_and(|least| least > 1);
    if args.explorer.is_some() && prunes && !has_moves && args.suite.is_none() {
        let usage = "--min-game does not apply to an index, which contains every position: write counts with \
                     --counts, --by speed,rating,month and --min-game, then make the index from these counts";
        return Err(Usage(usage.to_owned()));
    }
    if prunes_counts(args) {
        Usage::refuse(
            weighting.given(Requirement::Book),
            "applies only to books, and counts contain every move: give this option when you make a book from the counts",
        )?;
    }
    Ok(())
}

/// Returns `true` if `--min-game` removes rare moves from the counts directory. It does so only if the user requested
/// counts, but no book, database or suite. If one of these is requested too, `--min-game` removes rare moves from it,
/// and the counts contain every move.
fn prunes_counts(args: &Args) -> bool {
    args.counts.is_some() && args.bin.is_none() && args.obs.is_none() && args.suite.is_none()
}

/// Returns the format of an opening suite by the extension of its file name. A suite on standard output is PGN. Returns
/// an error if the extension is neither `.pgn` nor `.epd`.
fn suite_format(path: &Path) -> Result<SuiteFormat, Usage> {
    let extension = path.extension().unwrap_or_default();
    match extension.to_string_lossy().to_ascii_lowercase().as_str() {
        "pgn" => Ok(SuiteFormat::Pgn),
        "epd" => Ok(SuiteFormat::Epd),
        _ if path == Path::new("-") => Ok(SuiteFormat::Pgn),
        _ => Err(Usage(format!(
            "--suite {}: the name must end in .pgn for lines, or in .epd for positions",
            path.display()
        ))),
    }
}

/// Returns the inputs that the user named with the option `--pgn` (`options`) and with positional arguments
/// (`arguments`). If the user named none, returns `book.pgn`, which is also polyglot's default, or an error if this
/// file does not exist. `untagged` is the variant that is assumed for games without a `Variant` tag.
fn inputs(
    options: Vec<PathBuf>,
    arguments: Vec<PathBuf>,
    untagged: Variant,
) -> anyhow::Result<Vec<Input>> {
    let mut paths: Vec<PathBuf> = options.into_iter().chain(arguments).collect();
    let default = Path::new("book.pgn");
    let exists = || default.try_exists().context("cannot open book.pgn");
    if paths.is_empty() && exists()? {
        paths.push(default.into());
    }
    if !paths.is_empty() {
        return Ok(pgn_inputs(&paths, untagged)?);
    }
    let usage = "no PGN file is given, and the current directory contains no book.pgn: give the files to read, or - \
                 for standard input";
    Err(Usage(usage.to_owned()).into())
}

/// The maximum number of rejected games that the summary of `make-book` lists one by one.
const MAX_LISTED_GAMES: usize = 10;

/// Returns the summary of a run of `make-book` as text, with one fact per line. `inputs` contains the paths that the user
/// gave, and `seconds` is the duration of the run. `mixes_players` is
/// `true` if a book of a player's games also contains the moves of the opponents.
fn summary(report: &Report, inputs: &[PathBuf], seconds: f64, mixes_players: bool) -> String {
    let mut text = String::new();
    warnings(&mut text, report);
    games(&mut text, report);
    outputs(&mut text, report);
    if mixes_players && report.book.as_ref().is_some_and(|book| book.entries > 0) {
        text += "the book also contains the moves of the player's opponents: for one color without them, use --white NAME \
                 --only-white or --black NAME --only-black\n";
    }
    text += &format!("{seconds:.2} seconds\n");
    next_commands(&mut text, report, inputs);
    text
}

/// Appends a line with commands that show the outputs. There is no such command for empty outputs, counts and suites.
fn next_commands(text: &mut String, report: &Report, inputs: &[PathBuf]) {
    // A pipe must not be read.
    let is_file = |path: &Path| is_regular_file(path).unwrap_or(false);
    let book = report
        .book
        .as_ref()
        .filter(|book| book.entries > 0 && is_file(&book.path));
    let obs = report
        .obs
        .as_ref()
        .filter(|obs| obs.rows > 0 && is_file(&obs.path));
    let commands: Vec<String> = [
        book.map(|book| (book_command(&book.path), &book.path)),
        obs.map(|obs| ("show", &obs.path)),
        report.index.as_ref().map(|index| ("games", &index.path)),
        report
            .explorer
            .as_ref()
            .map(|index| ("serve --open", &index.path)),
    ]
    .into_iter()
    .flatten()
    .filter(|(_, path)| *path != Path::new("-"))
    .map(|(command, path)| {
        let mut line = format!("polybook {command} {}", shell_path(&path.to_string_lossy()));
        if let Some(obs) = obs.filter(|obs| obs.path == *path)
            && let Some(epd) = &obs.first
        {
            line += &format!(" --fen {}", shell_path(epd));
        }
        if command.starts_with("serve") {
            for directory in directories_elsewhere(path, inputs) {
                line += &format!(" --allow-pgn {}", shell_path(&directory.to_string_lossy()));
            }
        }
        line
    })
    .collect();
    if !commands.is_empty() {
        let pronoun = if commands.len() == 1 { "it" } else { "them" };
        *text += &format!("look at {pronoun}: {}\n", commands.join("; "));
    }
}

/// Returns the name of the command that suits the book at `path`. The command `show` displays the moves in the starting
/// position, which may be missing from a book of games with FENs.
fn book_command(path: &Path) -> &'static str {
    let lacks_start = || {
        let book = Book::open(path).ok()?;
        let start = book.variant().ok()?.unwrap_or_default().start();
        Some(book.moves_of(&start).ok()?.is_empty())
    };
    match path != Path::new("-") && lacks_start() == Some(true) {
        true => "info-book",
        false => "show",
    }
}

/// Returns the directories of the files `inputs` that are not below the directory of `index`. The server shows the
/// texts of games from these directories only if the user allows it.
fn directories_elsewhere(index: &Path, inputs: &[PathBuf]) -> BTreeSet<PathBuf> {
    let Ok(index) = index.canonicalize() else {
        return BTreeSet::new();
    };
    let inputs = inputs.iter().filter_map(|input| input.canonicalize().ok());
    let parents = inputs.filter_map(|input| Some(input.parent()?.to_owned()));
    let home = index.parent().unwrap_or(&index);
    parents.filter(|parent| !parent.starts_with(home)).collect()
}

pub fn warnings(text: &mut String, report: &Report) {
    for warning in &report.warnings {
        *text += &format!("warning: {warning}\n");
    }
    for rejection in report.rejected.iter().take(MAX_LISTED_GAMES) {
        *text += &format!("rejected: {rejection}\n");
    }
    let more = report
        .totals
        .games
        .rejected
        .saturating_sub(MAX_LISTED_GAMES as u64);
    if more > 0 {
        *text += &format!("rejected: {}\n", plural(more, "more game"));
    }
}

fn games(text: &mut String, report: &Report) {
    let totals = &report.totals;
    let games = &totals.games;
    if report.has_unknown_games {
        text.push_str(
            "the number of games is unknown, because some counts do not state their number of games\n",
        );
    }
    if games.read > 0 || !report.has_unknown_games {
        *text += &format!(
            "{} read, {} counted, {} filtered, {} rejected\n",
            plural(games.read, "game"),
            games.counted,
            games.filtered,
            games.rejected
        );
    }
    if let Some(games) = totals.filtered_by.get(&Condition::Duplicate) {
        *text += &format!(
            "{games} of the filtered games have the same moves, players and result as an earlier game\n"
        );
    }
    // An index and a suite do not count results as draws.
    if totals.unfinished > 0
        && (report.book.is_some() || report.obs.is_some() || report.counts.is_some())
    {
        *text += &format!(
            "{} without a result counted as {}: --unfinished skip leaves these games out\n",
            plural(totals.unfinished, "game"),
            if totals.unfinished == 1 {
                "a draw"
            } else {
                "draws"
            }
        );
    }
    for (variant, games) in &totals.variants {
        *text += &format!("{variant}: {} counted\n", plural(*games, "game"));
    }
    // If indexes are the only outputs, moves are not counted.
    if report.book.is_some()
        || report.obs.is_some()
        || report.counts.is_some()
        || (report.index.is_none() && report.explorer.is_none() && report.suite.is_none())
    {
        *text += &format!(
            "{}, {}, {}\n",
            plural(totals.plies, "half-move"),
            plural(report.positions, "position"),
            plural(report.pairs, "position-move pair")
        );
    }
}

fn outputs(text: &mut String, report: &Report) {
    if let Some(book) = &report.book {
        let name = output_name(&book.path);
        *text += &format!("{name}: {}", plural(book.entries, "entry"));
        if book.scale < 1.0 {
            *text += &format!("; the weights were multiplied by {:.6}", book.scale);
        }
        text.push('\n');
        text.push_str(&evals::losses(book.losses.as_ref()));
        text.push_str(&evals::eval_weights(book.eval_weights));
        text.push_str(&minimax(book.minimax));
    }
    if report.totals.ambiguous_castling > 0 {
        *text += &format!(
            "the book leaves out {}, because a rook that is not the outermost one may castle, which the format of \
             books cannot store\n",
            plural(report.totals.ambiguous_castling, "half-move")
        );
    }
    let mut say = |path: &Path, what: String| {
        *text += &format!("{}: {what}\n", output_name(path));
    };
    for index in report.index.iter().chain(&report.explorer) {
        let positions = plural(index.positions, "position");
        let what = match index.rows {
            Some(rows) => format!("{positions}, {}", plural(rows, "row")),
            None => {
                let (games, postings) = (index.games, index.postings);
                let all = plural(games, "game");
                let games = match report.totals.games.counted {
                    found if found == games => all,
                    found => format!("{found} of {all} counted"),
                };
                [games, positions, plural(postings, "posting")].join(", ")
            }
        };
        say(&index.path, what);
    }
    if let Some(obs) = &report.obs {
        let mut what = plural(obs.rows, "row");
        if obs.rare > 0 {
            let (moves, were) = (
                plural(obs.rare, "move"),
                if obs.rare == 1 { "was" } else { "were" },
            );
            what += &format!(
                "; {moves} {were} played fewer than {} times: --min-game 1 keeps them",
                obs.min_game
            );
        }
        say(&obs.path, what);
    }
    if let Some(counts) = &report.counts {
        let (rows, parts) = (counts.rows, counts.parts as u64);
        if let Some(pruned) = counts.pruned {
            say(&counts.path, pruned.to_string());
        }
        let what = [plural(rows, "row"), plural(parts, "part")];
        say(&counts.path, what.join(" in "));
    }
    if let Some(suite) = &report.suite {
        let end = suite.path.extension();
        let is_epd = end.is_some_and(|end| end.eq_ignore_ascii_case("epd"));
        let thing = if is_epd { "position" } else { "line" };
        let left_out =
            evals::unevaluated_suffix(suite.unevaluated) + &repeated_suffix(suite.repeated);
        let format = if is_epd {
            SuiteFormat::Epd
        } else {
            SuiteFormat::Pgn
        };
        let text = entries(suite, thing, &length_suffix(format, &suite.plies));
        say(&suite.path, text + &left_out);
    }
}

/// Formats the number of entries of a suite, such as `100 lines of 8 half-moves`. `thing` is the noun for an entry,
/// such as `line`, and `suffix` is the text after this noun, such as ` of 8 half-moves`. If the suite has fewer entries
/// than `--limit` allows, the result also says how many entries other options removed.
fn entries(suite: &SuiteReport, thing: &str, suffix: &str) -> String {
    let Some(limit) = suite.limit.filter(|limit| suite.lines < *limit as u64) else {
        return plural(suite.lines, thing) + suffix;
    };
    let limit = plural(limit as u64, thing);
    let mut text = format!("{} of at most {limit}{suffix}", suite.lines);
    if suite.rare > 0 {
        text += &format!(
            "; {} {} fewer games than --min-game",
            suite.rare,
            if suite.rare == 1 { "has" } else { "have" }
        );
    }
    if suite.outside > 0 {
        text += &format!(
            "; {} {} not meet --{}",
            suite.outside,
            if suite.outside == 1 { "does" } else { "do" },
            suite.conditions.join(" and --")
        );
    }
    text
}
/// Returns the part of a summary that describes the effect of `--minimax` on a book: how many moves got a lower weight,
/// and how many were left out. If the option was not given, `minimax` is `None` and the result is an empty string.
pub fn minimax(minimax: Option<MinimaxSummary>) -> String {
    minimax.map_or_else(String::new, |minimax| {
        let unreached = match minimax.unreached {
            0 => String::new(),
            moves => format!(
                "; {} in positions that no line of the book reaches kept the weight",
                plural(moves, "move")
            ),
        };
        let warning = match minimax.first_percent {
            percent @ ..10 => {
                format!("warning: --minimax leaves only {percent}% of the weight of the moves in the starting \
                         position\n")
            }
            _ => String::new(),
        };
        format!(
            "{warning}--minimax lowered the weight of {} and left {} out{unreached}\n",
            plural(minimax.lowered, "move"),
            minimax.left_out
        )
    })
}

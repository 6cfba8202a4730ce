//! `polybook repertoire`: builds and practises repertoires, checks games against them, and finds gaps and new moves.

mod build;
mod cards;
mod check;
mod gaps;
mod new_moves;
mod practise;

use std::{
    any::Any,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Subcommand;
use polybook::{
    Error, ErrorKind,
    counts::Memory,
    explorer::Line,
    json,
    make_book::Progress,
    position::{Keyed, LineError, Variant, fen_of},
    repertoire::{FileOrder, OpenOptions, OpenedSource, OwnMoveRule, RepertoireFormat},
    selection::Selection,
    storage::output::{TemporaryDir, is_directory, is_standard_output},
    tree::{Limits, MoveSource},
};
use shakmaty::{Color, variant::VariantPosition};

use super::{
    Context,
    filters::{check_names, say_lacking, say_others, search_board},
    input::{file_or_index, name, pgn_inputs},
    plural,
    position::{self, UntaggedArg},
    progress::Bar,
    resources::ResourceArgs,
    terminal::Output,
    usage::Usage,
    weighting::one_of,
};

/// Build and practise a repertoire, check games against it, find its gaps, and find new moves
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = false,
    after_help = "\
A REPERTOIRE is a PGN file with variations, a book (.bin) or an OOBS database. Lines of a PGN that reach the same position are
treated as one. A SOURCE is a PGN file, an index, a directory of counts, an OOBS database or a book. If you use the same PGN
often, make an index of it once with make-book --explorer DIR.

Examples:
  polybook repertoire build games.pgn --color white --out white.pgn
  polybook repertoire check white.pgn mine.pgn --color white --player \"my name\"
  polybook repertoire gaps white.pgn --color white --against games.pgn
  polybook repertoire new week.pgn --reference games.pgn
  polybook repertoire practise white.pgn --color white"
)]
pub struct Args {
    #[command(subcommand)]
    command: RepertoireCommand,
}

#[derive(Subcommand, Debug)]
enum RepertoireCommand {
    Build(build::Args),
    Check(check::Args),
    Gaps(gaps::Args),
    New(new_moves::Args),
    Practise(practise::Args),
    Cards(cards::Args),
}

/// The number of bytes per read when the first games of a PGN file are examined before the file is processed.
const BYTES_PER_READ: usize = 1 << 16;

/// The rules for choosing the moves of the repertoire's own side, each with its name on the command line.
const OWN_MOVE_RULES: [(&str, OwnMoveRule); 3] = [
    ("score", OwnMoveRule::Score),
    ("games", OwnMoveRule::Games),
    ("weight", OwnMoveRule::Weight),
];

/// The options that determine where the lines of a repertoire begin and end, and which moves they contain.
#[derive(clap::Args, Debug)]
struct LineArgs {
    /// End lines after at most N half-moves. The last move of a line is one of the side of the repertoire [default:
    /// where the games end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=Limits::MAX_PLIES as i64))]
    max_ply: Option<u16>,

    /// Start from this position, which is a FEN or moves such as "1. e4 c5"
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,

    /// Use the rules of this variant [default: the variant of the file]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    #[command(flatten)]
    untagged: UntaggedArg,

    /// Choose the moves of the repertoire by their score (score), number of games (games) or weight (weight). The score
    /// is the lower end of its 99 % Wilson interval, so that a move with few games is not chosen by luck [default:
    /// score; for a book, weight]
    #[arg(long, value_parser = one_of(OWN_MOVE_RULES))]
    by: Option<OwnMoveRule>,
}

impl LineArgs {
    fn start(&self, variant: Variant) -> Result<VariantPosition, LineError> {
        let from = self.from.as_deref().unwrap_or_default();
        variant.position_or_line(from)
    }

    fn max_ply(&self) -> Option<usize> {
        self.max_ply.map(usize::from)
    }

    /// Tells the user which games of `source` have no moves in lines from the position `start`. `start` is the position
    /// of [`start`](LineArgs::start) or, without `--from`, any position.
    fn say_absent(
        &self,
        source: &OpenedSource,
        variant: Variant,
        start: &VariantPosition,
        context: Context,
    ) -> anyhow::Result<()> {
        let line = match &self.from {
            // Moves begin in the starting position. Unlike a FEN, they contain no slash.
            Some(from) if !from.contains('/') => Line::start(variant),
            _ => Line::at(variant, start.clone()),
        };
        say_absent(source, (&line, start), "--from", context)
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    match &args.command {
        RepertoireCommand::Build(args) => build::run(args, context),
        RepertoireCommand::Check(args) => check::run(args, context),
        RepertoireCommand::Gaps(args) => gaps::run(args, context),
        RepertoireCommand::New(args) => new_moves::run(args, context),
        RepertoireCommand::Practise(args) => practise::run(args, context),
        RepertoireCommand::Cards(args) => cards::run(args, context),
    }
}

/// The settings with which a command opens repertoires and sources of moves, such as the variant and the memory budget.
pub struct Opener {
    variant: Option<Variant>,
    /// The variant of games without a `Variant` tag.
    pub untagged: Variant,
    memory: Memory,
    threads: usize,
    /// A temporary directory for the index of a source that is a PGN file.
    directory: TemporaryDir,
    context: Context,
}

impl Opener {
    fn new(
        variant: Option<Variant>,
        untagged: &UntaggedArg,
        resources: &ResourceArgs,
        context: Context,
    ) -> polybook::Result<Opener> {
        let (memory, threads) = (resources.memory(), resources.threads());
        Opener::with_resources((variant, untagged), memory, threads, context)
    }

    /// Creates an opener that reads positions of `variant`, or of the variant of each file if it is `None`. `untagged`
    /// is the variant that is assumed for games without a `Variant` tag, and `threads` is 0 for all cores.
    pub fn with_resources(
        (variant, untagged): (Option<Variant>, &UntaggedArg),
        memory: Memory,
        threads: usize,
        context: Context,
    ) -> polybook::Result<Opener> {
        Ok(Opener {
            variant,
            untagged: untagged.untagged_variant,
            directory: TemporaryDir::new_in(&memory.temp_dir)?,
            memory,
            threads,
            context,
        })
    }

    /// Creates an opener that uses the default memory budget and all cores, and accepts files of every variant.
    /// `untagged` is the variant that is assumed for games without a `Variant` tag.
    pub fn with_defaults(untagged: &UntaggedArg, context: Context) -> polybook::Result<Opener> {
        Opener::with_resources((None, untagged), Memory::default(), 0, context)
    }

    /// Opens the repertoire for the side `color` at the path `argument`. Prints a warning if the repertoire seems to be
    /// for the other side.
    pub fn repertoire(&self, argument: &Path, color: Color) -> anyhow::Result<OpenedSource> {
        let known = self.open(argument, None, OpenedSource::repertoire)?;
        if let Some(warning) = known.color_warning(color)? {
            self.context.say(&format!("warning: {warning}\n"));
        }
        Ok(known)
    }

    /// Reads the moves of all games and variations of the repertoire `path`, a PGN file. Returns descriptions of the
    /// parts that could not be read, and also prints them, unless the user gave `--quiet` or the [`Context`] of this
    /// opener is quiet.
    pub fn faults(&self, path: &Path) -> anyhow::Result<Vec<String>> {
        let repertoire = self.open(path, None, OpenedSource::repertoire)?;
        Ok(repertoire.warnings().to_vec())
    }

    /// Opens the files `arguments` together as one source of moves. A single file can be of any kind, but several files
    /// must all be explorer indexes or all be PGN. `filter` selects the games whose moves are used.
    pub fn sources(
        &self,
        arguments: &[PathBuf],
        filter: Option<&Selection>,
    ) -> anyhow::Result<OpenedSource> {
        match arguments {
            [argument] => self.source(argument, filter),
            [first, ..] if is_directory(first)? => {
                self.open_as(filter, |options| OpenedSource::indexes(arguments, options))
            }
            _ => {
                let inputs = pgn_inputs(arguments, self.untagged)?;
                self.open_as(filter, |options| OpenedSource::games(inputs, options))
            }
        }
    }

    /// Opens the file or directory `argument` as a source of moves. `filter` selects the games whose moves are used.
    pub fn source(
        &self,
        argument: &Path,
        filter: Option<&Selection>,
    ) -> anyhow::Result<OpenedSource> {
        self.open(argument, filter, |path, opening| {
            OpenedSource::source(path, false, opening)
        })
    }

    /// Opens the file or directory `argument` as a source of lines, where a PGN file is read like a repertoire. For a
    /// PGN file, also returns the order of its moves. `filter` selects the games of a counts directory or an index.
    pub fn lines(
        &self,
        argument: &Path,
        filter: Option<&Selection>,
    ) -> anyhow::Result<(OpenedSource, Option<FileOrder>)> {
        let source = self.open(argument, filter, OpenedSource::lines)?;
        let order = source
            .pgn()
            .map(|pgn| self.with_options(None, |options| FileOrder::of(pgn, options)));
        let order = match order {
            Some(Err(err)) if err.kind() == ErrorKind::TooLarge => {
                self.context.say(&format!(
                    "{}: this file is too large for --memory, so the moves are sorted by weight; for the order of \
                     the file, use a larger --memory\n",
                    name(argument)
                ));
                Some(FileOrder::default())
            }
            order => order.transpose()?,
        };
        Ok((source, order))
    }

    /// Opens the file or directory `argument`, by calling `open_source` with its path and the settings of this opener.
    /// `filter` selects the games whose moves are used. Prints warnings about games that could not be read.
    fn open(
        &self,
        argument: &Path,
        filter: Option<&Selection>,
        open_source: impl FnOnce(&Path, &OpenOptions<'_>) -> polybook::Result<OpenedSource>,
    ) -> anyhow::Result<OpenedSource> {
        let path = match is_directory(argument)? {
            // Directories must not be passed to `file_or_index`, because it rejects directories of counts.
            true => argument.to_owned(),
            false => file_or_index(argument)?,
        };
        self.open_as(filter, |options| open_source(&path, options))
    }

    /// Opens a source of moves, by calling `open_source` with the settings of this opener. `filter` selects the games
    /// whose moves are used. Prints warnings about games that could not be read.
    fn open_as(
        &self,
        filter: Option<&Selection>,
        open_source: impl FnOnce(&OpenOptions<'_>) -> polybook::Result<OpenedSource>,
    ) -> anyhow::Result<OpenedSource> {
        let source = self.with_options(filter, open_source)?;
        if let Some(explored) = source.explored()
            && !explored.selection.is_empty()
        {
            search_board(&explored.explorer, &explored.selection, self.context)?;
            let start = Keyed::new(explored.variant.start());
            let has_games = !explored.moves(&start)?.is_empty();
            let selection = &explored.selection;
            check_names(&explored.explorer, selection, has_games, self.context)?;
        }
        for warning in source.warnings() {
            self.context.say(&format!("{warning}\n"));
        }
        Ok(source)
    }

    /// Calls `f` with the settings of this opener. `filter` selects the games whose moves are used.
    fn with_options<T>(
        &self,
        filter: Option<&Selection>,
        f: impl FnOnce(&OpenOptions<'_>) -> T,
    ) -> T {
        let counting = |progress: Arc<Progress>| -> Box<dyn Any> {
            Box::new(Bar::of_make_book(progress, self.context))
        };
        f(&OpenOptions {
            variant: self.variant,
            untagged: self.untagged,
            filter,
            memory: self.memory.clone(),
            threads: self.threads,
            directory: self.directory.path(),
            stop: Arc::default(),
            counting: &counting,
        })
    }
}

/// Parses the value N of the option `--reach`, which means "one game in N". Returns an error message if the text is not
/// a number of at least 1.
fn one_in(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(number) if number >= 1.0 && number.is_finite() => Ok(number),
        _ => Err("use a number of games, 1 or larger"),
    }
}

/// Returns the title of a repertoire for the side `color`. In PGN, the title is written to the `Event` tags of the
/// games, and in a book to the comment of the header.
fn title_of(color: Color) -> String {
    format!("Repertoire for {color}")
}

/// Returns an error if `out`, the value of `--out`, is standard output, where the command already prints a list.
fn refuse_printed(out: &Path) -> Result<(), Usage> {
    if is_standard_output(out) {
        let usage = "the list and the output of --out would both go to standard output: give a file with --out";
        return Err(Usage(usage.to_owned()));
    }
    Ok(())
}

/// Formats a game as an element of a JSON list. The result begins with the string in `comma`, which is empty for the
/// first element. Then sets `comma` to `,` for the next element.
fn json_game(game: &impl serde::Serialize, comma: &mut &str) -> String {
    let game = json::to_string(game).expect("texts and numbers are JSON");
    std::mem::replace(comma, ",").to_owned() + &game
}

/// Creates an output for PGN games with comments. Returns an error if `path` ends in `.bin`, the extension of books.
pub fn pgn_output(path: &Path, force: bool) -> polybook::Result<Output> {
    if RepertoireFormat::of(path) == RepertoireFormat::Book {
        let problem = "the output is PGN, not a book: choose a name that ends in .pgn";
        return Err(Error::file(path, problem));
    }
    Output::create_pgn(path, force)
}

/// Returns the text of a game followed by a blank line. White space at the end of `text` is removed. The result is
/// empty if `text` is blank.
fn pgn_text(text: &[u8]) -> Vec<u8> {
    match text.trim_ascii_end() {
        [] => Vec::new(),
        text => [text, b"\n\n"].concat(),
    }
}

/// Tells the user which games of `source` have no moves in the lines that follow the position `pos`: games that do not
/// begin where `line` begins, and all games if their index ends before the moves of `pos`. `option` is the option of
/// the command that gives the position.
pub fn say_absent(
    source: &OpenedSource,
    (line, pos): (&Line, &VariantPosition),
    option: &str,
    context: Context,
) -> anyhow::Result<()> {
    if let Some(explored) = source.explored() {
        let (explorer, selection) = (&*explored.explorer, &explored.selection);
        let others = explorer.other_starts(line, selection)?;
        say_others(explorer, others, option, context);
        say_lacking(explorer, (selection, true), pos, context);
    }
    let begins = &line.positions()[0];
    let mut others = source.game_starts().iter();
    let other = others.find(|start| start.variant() == begins.variant());
    if let Some(other) = other.filter(|_| *begins == line.variant().start()) {
        context.say(&format!(
            "some games begin in another position: give such a position, for example with {option} \"{}\"\n",
            fen_of(other)
        ));
    }
    Ok(())
}

fn say_contradictions(number: u64, context: Context) {
    if number > 0 {
        let positions = plural(number, "position");
        context.say(&format!(
            "games reached {positions} in which the repertoire has several moves: all of these moves count as moves of \
             the repertoire\n"
        ));
    }
}

//! `polybook repertoire gaps`: lists the gaps of a repertoire, and the opponent's moves after the ends of its lines.

use std::path::PathBuf;

use polybook::{
    Error,
    pgn::StreamOptions,
    position::{Keyed, Variant},
    repertoire::{
        FindGaps, Gap, Gaps, OpenedSource, OwnMoveRule, RemovedMoves, RepertoireFile,
        RepertoireFormat, Writing, add_to_book, add_to_pgn, gaps,
    },
    results::Results,
    selection::Selection,
    tree::{LinesOf, MoveSource, TreeMove, Union},
};
use shakmaty::{Color, variant::VariantPosition};

use super::{LineArgs, Opener, one_in, refuse_printed, say_contradictions, title_of};
use crate::cli::{
    Context,
    edit::unmarked,
    filters::{SelectionArgs, WithoutColor},
    input::check_output,
    plural, position,
    resources::{ResourceArgs, count},
    terminal::{print, print_json},
};

/// List the opponent's moves that the repertoire does not answer, the likeliest first
#[derive(clap::Args, Debug)]
#[command(
    after_help = "\
A gap is a move of the opponent that was played in at least two games and that the repertoire does not answer, although it
answers another move in the same position. \"1 in N\" means that one game of N reaches the gap: the shares of the opponent's
moves on the way are multiplied, and the moves of the repertoire count as certain. If several lines lead to a gap, they are
added up. If the repertoire has several moves in a position, each counts as certain, so a gap after more than one of them looks
likelier than it is; the share of games in the repertoire takes these moves as equally likely.

Where a line of the repertoire ends, the repertoire answers no move. These moves are listed after the gaps or, with --max-ply,
left out. --add writes one game for each answer, to gaps first; if the repertoire is PGN, its unchanged text follows.

--opponent has the other color than the repertoire, and --player has the color of the repertoire. Games that they played with
the other color are left out.

Examples:
  polybook repertoire gaps white.pgn --color white --against games.idx
  polybook repertoire gaps white.pgn --color white --against theirs.pgn --add 10 --out more.pgn
  polybook repertoire gaps white.pgn --color white --against theirs.pgn --opponent \"their name\" --min-game 3
      what one opponent plays as Black
  polybook repertoire gaps black.pgn --color black --against mine.pgn --black \"my name\"
      what your own opponents played",
    mut_arg("opponent", |arg| arg.help(OPPONENT).long_help(OPPONENT))
)]
pub struct Args {
    /// The repertoire: a PGN file, a book or an OOBS database
    #[arg(value_name = "REPERTOIRE")]
    repertoire: PathBuf,

    /// Read the opponents' moves from this source: a PGN file, an index, counts, an OOBS database or a book. If the
    /// option is given several times, with PGN files or with indexes, their games are added
    #[arg(long, value_name = "SOURCE", required = true)]
    against: Vec<PathBuf>,

    /// The side of the repertoire
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color())]
    color: Color,

    /// List only the N gaps, and the N ends of lines, that games reach most often
    #[arg(long, value_name = "N", value_parser = count::<usize>(0))]
    limit: Option<usize>,

    /// List only gaps that at least 1 in N games reaches
    #[arg(long, value_name = "N", default_value_t = 1000.0, value_parser = one_in)]
    reach: f64,

    /// List only gaps with at least N games [default: 2; if SOURCE is a book, all]
    #[arg(long, value_name = "N", value_parser = count::<u64>(0))]
    min_game: Option<u64>,

    /// Add an answer to each of the N gaps that games reach most often, and write the extended repertoire to --out. A
    /// gap after which the source has no games gets no answer
    #[arg(long, value_name = "N", requires = "out", default_value_t = 0, value_parser = count::<usize>(0))]
    add: usize,

    /// Write the repertoire with the answers of --add to this file. The file is PGN or, if the repertoire is a book,
    /// also a book (.bin)
    #[arg(long, value_name = "FILE", requires = "add")]
    out: Option<PathBuf>,

    /// Replace an existing file of any kind. Without this option, gaps replaces only a book that polybook wrote, by
    /// another book
    #[arg(long, requires = "out")]
    force: bool,

    #[command(flatten)]
    lines: LineArgs,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,

    #[command(flatten)]
    filter: SelectionArgs<WithoutColor>,
}

/// The help text of `--opponent` in this command, where the option keeps only games in which the opponent does not have
/// the color of the repertoire. In other commands, it keeps all games of the opponent.
pub const OPPONENT: &str = "Keep games of an opponent whose name contains NAME and who has the other color than the repertoire. \
                        If the option is given several times, games that match any of the names are kept";

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let inputs = Vec::from_iter([&args.repertoire].into_iter().chain(&args.against));
    let out = match &args.out {
        Some(out) => {
            refuse_printed(out)?;
            check_output(out, &inputs, false)?;
            Some(RepertoireFile::create(out, args.force)?)
        }
        None => None,
    };
    let opener = Opener::new(
        args.lines.variant,
        &args.lines.untagged,
        &args.resources,
        context,
    )?;
    let repertoire = opener.repertoire(&args.repertoire, args.color)?;
    let filter = args.filter.for_side(args.color)?;
    let mut source = opener.sources(&args.against, filter.as_ref())?;
    let variant = match args.lines.variant {
        Some(variant) => variant,
        None => source.read_for(&repertoire)?,
    };
    let start = match args.lines.from {
        Some(_) => args.lines.start(variant)?,
        None => repertoire.start(variant, args.color)?,
    };
    args.lines.say_absent(&source, variant, &start, context)?;
    let first_moves = source.moves(&Keyed::new(start.clone()))?;
    if first_moves.is_empty() {
        let filtered = filter.as_ref().map_or("", |_| " that passes the filters");
        let problem = format!(
            "no game of this source{filtered} has a move in the first position of the repertoire: give games that \
             reach this position"
        );
        return Err(Error::file(&args.against[0], problem).into());
    }
    if let Some(filter) = &filter {
        say_opponent(filter, &first_moves, !args.color, context);
    }
    let mut found = context.show_progress("looking for gaps", |meter| {
        gaps(&FindGaps {
            repertoire: &repertoire,
            color: args.color,
            source: &source,
            start: &start,
            max_ply: args.lines.max_ply(),
            min_game: args.min_game,
            add: (
                args.add,
                args.lines.by.unwrap_or(OwnMoveRule::default_of(&source)),
            ),
            memory: opener.memory.bytes,
            meter,
        })
    })?;
    if let Some(out) = out {
        write(args, out, repertoire, &found, &start, variant, &opener)?;
    }
    say_contradictions(found.contradictions, context);
    say_ends(&found, args.add, context);
    if let Some(out) = &args.out {
        let (out, added) = (out.display(), added_text(&found, source.has_results()));
        context.say(&format!("{out}: {added}\n"));
    }
    let all = found.gaps.len() + found.line_ends.len();
    for list in [&mut found.gaps, &mut found.line_ends] {
        list.retain(|gap| gap.one_in <= args.reach);
    }
    let rare = match all - found.gaps.len() - found.line_ends.len() {
        0 => String::new(),
        rare => format!(
            "; {rare} more with a probability below 1 in {}: --reach 1e9 lists all gaps",
            args.reach
        ),
    };
    let mut all = plural(found.gaps.len() as u64, "gap");
    if !found.line_ends.is_empty() {
        all += &format!(
            ", {} after the end of a line",
            plural(found.line_ends.len() as u64, "move")
        );
    }
    for list in [&mut found.gaps, &mut found.line_ends] {
        list.truncate(args.limit.unwrap_or(usize::MAX));
    }
    if args.json {
        return print_json(&serde_json::to_value(&found)?);
    }
    print(&text(&found))?;
    let answered = plural(found.positions, "position");
    context.say(&format!("{all}, {answered} answered{rare}\n"));
    Ok(())
}

/// Prints the names of the opponent for whom the user prepares, and the number of the opponent's games. `filter`
/// contains the names, and `color` is the color of the opponent. `first_moves` contains the numbers of the opponent's
/// games with each move in the first position, whose sum is printed. Prints nothing if `filter` contains no names for
/// this color.
fn say_opponent(filter: &Selection, first_moves: &[TreeMove], color: Color, context: Context) {
    let names = match (color, filter.opponent.is_empty()) {
        (_, false) => &filter.opponent,
        (Color::White, true) => &filter.white,
        (Color::Black, true) => &filter.black,
    };
    if !names.is_empty() {
        let results = first_moves.iter().filter_map(|mv| mv.results);
        let games = plural(results.map(Results::games).sum(), "game");
        context.say(&format!(
            "the opponent is {}, in {games} as {color}\n",
            names.join(" or ")
        ));
    }
}

/// Writes the repertoire to `out`, together with the new moves in `found`, which answer gaps (moves of the opponent
/// that the repertoire does not answer). `start` is the position in which the search for gaps began. `opener` contains
/// settings of the command, such as the memory budget.
fn write(
    args: &Args,
    out: RepertoireFile,
    repertoire: OpenedSource,
    found: &Gaps,
    start: &VariantPosition,
    variant: Variant,
    opener: &Opener,
) -> polybook::Result<()> {
    let (added, memory) = (&found.added, &opener.memory);
    opener.context.show_progress("writing", |meter| {
        if out.format() == RepertoireFormat::Book {
            let summary = add_to_book(repertoire, added, out, memory, meter)?;
            if let Some(path) = args.out.as_ref().filter(|_| summary.unmarked) {
                opener.context.say(&unmarked(path.display()));
            }
            return Ok(());
        }
        if let Some(pgn) = repertoire.pgn() {
            let reading = StreamOptions::within(memory);
            return add_to_pgn(pgn, added, &RemovedMoves::default(), start, out, &reading);
        }
        let writing = Writing {
            moves: &LinesOf(Union(&repertoire, added), args.color),
            starts: std::slice::from_ref(start),
            variant,
            color: args.color,
            title: &title_of(args.color),
            memory,
            meter,
        };
        writing.write(out, None).map(drop)
    })
}

/// Prints up to two messages about the search for gaps.
///
/// The first message names the likeliest line of moves after which the source of the opponent's moves has no games. It
/// is printed only if this line is likelier than every gap. The second message says how many of the first `add` gaps
/// and ends of lines got no answer. `add` is the number of gaps that the user wanted to answer.
fn say_ends(found: &Gaps, add: usize, context: Context) {
    let likeliest = found.gaps.first().map_or(f64::MAX, |gap| gap.one_in);
    if let Some(end) = found
        .source_end
        .as_ref()
        .filter(|end| end.one_in < likeliest)
    {
        let (line, one_in) = (&end.line, end.one_in);
        let games = end.games.map_or_else(String::new, |games| {
            format!(" ({} with the opponent's last move)", plural(games, "game"))
        });
        context.say(&format!(
            "the source has no games after {line}, although 1 game in {one_in:.1} reaches this position{games}\n"
        ));
    }
    let asked = found.gaps.iter().chain(&found.line_ends).take(add);
    let unanswered = asked.filter(|gap| gap.answer.is_none()).count() as u64;
    if unanswered > 0 {
        let gaps = plural(unanswered, "gap");
        context.say(&format!(
            "{gaps} without an answer, because no game of the source continues after the move\n"
        ));
    }
}

/// Returns a message that says how many answers in `found` were added to the repertoire, and how many of them were
/// played in a single game only. `has_results` is `false` if the source of the answers contains weights instead of
/// numbers of games.
fn added_text(found: &Gaps, has_results: bool) -> String {
    let answered = found.gaps.iter().chain(&found.line_ends);
    let games = answered.filter_map(|gap| gap.answer_games);
    let added = games.clone().count() as u64;
    let single = games.filter(|games| *games == 1).count() as u64;
    let mut text = format!("{} added", plural(added, "answer"));
    if has_results && single > 0 {
        text += &format!("; {} played in a single game", plural(single, "answer"));
    }
    text
}

/// Formats `found`, the gaps of a repertoire, as a report. The first part states the share of games that are still in
/// the repertoire after each half-move. It leaves out half-moves that do not change this share. The second part lists
/// the gaps, and the third part the opponent's moves after the ends of lines.
fn text(found: &Gaps) -> String {
    let mut text = String::new();
    let mut last = None;
    for covered in &found.coverage {
        let shares = (covered.share, covered.ended);
        if last.replace(shares) != Some(shares) {
            let (percent, ended) = (covered.share * 100.0, covered.ended * 100.0);
            let ended = if ended > 0.0 {
                format!(", {ended:.1}% without games")
            } else {
                String::new()
            };
            text += &format!(
                "after half-move {:>3}: {percent:>5.1}% in the repertoire{ended}\n",
                covered.ply
            );
        }
    }
    for (gaps, title) in [
        (&found.gaps, ""),
        (&found.line_ends, "after the ends of lines\n"),
    ] {
        if !gaps.is_empty() {
            text += &format!("\n{title}  1 in     games  line\n");
        }
        gaps.iter().for_each(|gap| text += &row(gap));
    }
    text
}

fn row(gap: &Gap) -> String {
    let line = match &*gap.moves {
        "" => "the start",
        moves => moves,
    };
    let answer = match (&gap.answer, gap.answer_games) {
        (None, _) => String::new(),
        (Some(answer), Some(0)) => format!(", answered by {answer} without games"),
        (Some(answer), _) => format!(", answered by {answer}"),
    };
    format!("{:>6.1}  {:>8}  {line}{answer}\n", gap.one_in, gap.games)
}

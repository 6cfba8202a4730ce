//! `polybook repertoire gaps`: the opponent's moves without an answer.

use std::path::PathBuf;

use polybook::{
    repertoire::{
        By, FindGaps, Gaps, Known, RepertoireFormat, Writing, add_to_book, add_to_pgn, gaps,
    },
    tree::{LinesOf, Union},
};
use shakmaty::{Color, variant::VariantPosition};

use super::{LineArgs, Opener, refuse_printed, say_contradictions};
use crate::cli::{
    Context, counted,
    input::check_output,
    position,
    resources::ResourceArgs,
    terminal::{print, print_json},
};

/// List the opponent's moves that the repertoire does not answer, the likeliest first
#[derive(clap::Args, Debug)]
#[command(after_help = "\
\"1 in N\" says how many games it takes to meet a gap: the shares of the opponent's moves on the way are multiplied, own
moves count as certain, and different ways to a position are added. Coverage takes several own moves as equally likely.
--add writes a game for each answer, and after them a PGN as it is, comments and all.

Examples:
  polybook repertoire gaps white.pgn --color white --against games.idx
  polybook repertoire gaps white.pgn --color white --against theirs.pgn --add 10 --out more.pgn")]
pub struct Args {
    /// The repertoire
    #[arg(value_name = "REPERTOIRE")]
    repertoire: PathBuf,

    /// What opponents play: PGN, an index, counts, an OOBS database or a book
    #[arg(long, value_name = "SOURCE")]
    against: PathBuf,

    /// The side of the repertoire
    #[arg(long, alias = "colour", value_parser = position::color())]
    color: Color,

    /// List the N likeliest gaps
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Answer the N likeliest gaps, and write the repertoire with the answers
    #[arg(long, value_name = "N", requires = "out", default_value_t = 0)]
    add: usize,

    /// Where --add writes the repertoire: PGN, or of a book a book (.bin)
    #[arg(long, value_name = "FILE", requires = "add")]
    out: Option<PathBuf>,

    #[command(flatten)]
    lines: LineArgs,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let inputs = [&args.repertoire, &args.against];
    if let Some(out) = &args.out {
        refuse_printed(out)?;
        check_output(out, &inputs, false)?;
        RepertoireFormat::check(out)?;
    }
    let opener = Opener::new(args.lines.variant, &args.resources, context);
    let repertoire = opener.repertoire(&args.repertoire)?;
    let source = opener.source(&args.against)?;
    let variant = args.lines.variant.unwrap_or(repertoire.variant());
    let start = args.lines.start(variant)?;
    let mut found = context.show_progress("looking for gaps", |meter| {
        gaps(&FindGaps {
            repertoire: &repertoire,
            color: args.color,
            source: &source,
            start: &start,
            max_ply: args.lines.max_ply(),
            add: (args.add, args.lines.by.unwrap_or(By::default_of(&source))),
            memory: opener.memory.bytes,
            meter,
        })
    })?;
    if args.out.is_some() {
        write(args, repertoire, &found, &start, &opener)?;
    }
    say_contradictions(found.contradictions, context);
    let all = counted(found.gaps.len() as u64, "gap");
    found.gaps.truncate(args.limit.unwrap_or(usize::MAX));
    if args.json {
        return print_json(&serde_json::to_value(&found)?);
    }
    print(&text(&found))?;
    let answered = counted(found.positions, "position");
    context.say(&format!("{all}, {answered} answered\n"));
    Ok(())
}

/// Writes the repertoire with the answers that were added.
fn write(
    args: &Args,
    repertoire: Known,
    found: &Gaps,
    start: &VariantPosition,
    opener: &Opener,
) -> polybook::Result<()> {
    let Some(out) = &args.out else {
        return Ok(());
    };
    let (added, memory) = (&found.added, &opener.memory);
    opener.context.show_progress("writing", |meter| {
        if RepertoireFormat::of(out) == RepertoireFormat::Book {
            return add_to_book(repertoire, added, out, memory, meter).map(drop);
        }
        if let Some(pgn) = repertoire.pgn() {
            return add_to_pgn(pgn, added, start, out, memory);
        }
        let writing = Writing {
            moves: &LinesOf(Union(&repertoire, added), args.color),
            starts: std::slice::from_ref(start),
            variant: args.lines.variant.unwrap_or(repertoire.variant()),
            color: args.color,
            title: "",
            memory,
            meter,
        };
        writing.write(out, &|_| None).map(drop)
    })
}

/// The coverage where it changes, and the gaps.
fn text(found: &Gaps) -> String {
    let mut text = String::new();
    let mut share = f64::NAN;
    for covered in &found.coverage {
        if std::mem::replace(&mut share, covered.share) != covered.share {
            let percent = covered.share * 100.0;
            text += &format!(
                "after half-move {:>3}: {percent:>5.1}% in the repertoire\n",
                covered.ply
            );
        }
    }
    if !found.gaps.is_empty() {
        text += "\n  1 in     games  line\n";
    }
    for gap in &found.gaps {
        let line = match &*gap.moves {
            "" => "the start",
            moves => moves,
        };
        let answer = match (&gap.answer, gap.answer_games) {
            (None, _) => String::new(),
            (Some(answer), Some(0)) => format!(", answered by {answer} without games"),
            (Some(answer), _) => format!(", answered by {answer}"),
        };
        text += &format!("{:>6.1}  {:>8}  {line}{answer}\n", gap.one_in, gap.games);
    }
    text
}

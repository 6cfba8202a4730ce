//! `polybook repertoire practise`: asks the user for the moves of a repertoire in the terminal.

use std::{
    io::{self, BufRead, IsTerminal, Read},
    path::{Path, PathBuf},
};

use polybook::{
    Error,
    position::{Variant, fen_of, read_move},
    practice::{
        Askable, Deck, Graded, Practice, PracticeLine, Question, Random, Schedule, board_text,
        grade, today,
    },
    tree::MoveSource,
};
use shakmaty::{Color, Move, san::SanPlus, variant::VariantPosition};

use super::Opener;
use crate::cli::{
    Context,
    input::is_copied,
    plural,
    position::{self, UntaggedArg},
    resources::{ResourceArgs, count},
    terminal::print,
    usage::Usage,
};

/// Practise a repertoire: find its moves, which are asked again when you are about to forget them
#[derive(clap::Args, Debug)]
#[command(
    visible_alias = "practice",
    after_help = "\
practise plays the moves of the opponent and asks for yours. Answer with a move such as Nf3 or g1f3. ? shows the move and counts
as a wrong answer, and quit ends the session. First come the positions that are due, then new ones, and then those that you
answered wrongly. A position that you know returns after ever more days, which the scheduler FSRS computes; one that you
answered wrongly returns today and again soon.

The results are stored beside the repertoire: those of white.pgn in white.pgn.practice.json, after each answer. They belong to
the positions and moves, so they stay when you change other parts of the repertoire.

Examples:
  polybook repertoire practise white.pgn --color white
  polybook repertoire practise white.pgn --color white --against games.idx --new 20
      the replies of the opponent are as frequent as in these games"
)]
pub struct Args {
    /// The repertoire: a PGN file, a book or an OOBS database
    #[arg(value_name = "REPERTOIRE")]
    repertoire: PathBuf,

    /// The side of the repertoire
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color())]
    color: Color,

    /// Ask at most N positions that were never asked before
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<u64>(0))]
    new: u64,

    /// End the session after N answers
    #[arg(long, value_name = "N", value_parser = count::<u64>(1))]
    limit: Option<u64>,

    /// Choose the opponent's moves by their frequency in this source: a PGN file, an index, counts, an OOBS database or a
    /// book. Can be given several times with PGN files or with indexes [default: their frequency in the repertoire]
    #[arg(long, value_name = "SOURCE")]
    against: Vec<PathBuf>,

    /// Print the FEN of each position instead of a board
    #[arg(long)]
    plain: bool,

    /// Use the rules of this variant [default: the variant of the file]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// The maximum length of an answer in bytes. A longer line is read as several answers.
const MAX_ANSWER: u64 = 1 << 10;

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    if is_copied(&args.repertoire) {
        let usage = "the results are stored beside the repertoire, so it must be a file: save the repertoire as a file";
        return Err(Usage(usage.to_owned()).into());
    }
    if args.against.iter().any(|source| source == Path::new("-")) {
        let usage = "standard input contains the answers: give a file with --against";
        return Err(Usage(usage.to_owned()).into());
    }
    let path = Schedule::path_of(&args.repertoire);
    Schedule::read(&path)?;
    let opener = Opener::new(args.variant, &args.untagged, &args.resources, context)?;
    let (deck, _) = opener.deck(&args.repertoire, args.variant, args.color)?;
    let replies = if args.against.is_empty() {
        None
    } else {
        Some(opener.sources(&args.against, None)?)
    };
    let session = Session {
        deck: &deck,
        replies: replies.as_ref().map(|source| source as &dyn MoveSource),
        path: &path,
        plain: args.plain,
    };
    session.run(args.new, args.limit.unwrap_or(u64::MAX))
}

/// A session in which the user practises a repertoire in the terminal.
struct Session<'a> {
    deck: &'a Deck,
    replies: Option<&'a dyn MoveSource>,
    /// The path of the schedule.
    path: &'a Path,
    plain: bool,
}

/// A line that the user typed.
enum Typed {
    Answer(Option<Move>),
    Quit,
}

impl Session<'_> {
    fn practice<'s>(&'s self, schedule: &'s Schedule) -> Practice<'s> {
        Practice {
            deck: self.deck,
            schedule,
            replies: self.replies,
            skipped: &[],
            today: today(),
        }
    }

    /// Asks the user about positions until none is left, `limit` answers have been given, or the user ends the session.
    /// Asks about at most `new_left` positions that the user has never been asked about.
    fn run(&self, mut new_left: u64, limit: u64) -> anyhow::Result<()> {
        let mut random = Random::new(0);
        let mut schedule = Schedule::read(self.path)?;
        let Askable { due, again, new } = self.practice(&schedule).askable();
        print(&format!(
            "{}: {} due, {new} new\n",
            plural(self.deck.cards(), "position"),
            due + again
        ))?;
        let (mut answers, mut right) = (0, 0);
        let mut line: Option<PracticeLine> = None;
        while answers < limit {
            let practice = self.practice(&schedule);
            let Some(question) = practice.question(line.as_ref(), new_left, &mut random)? else {
                break;
            };
            print(&self.text(&question))?;
            let Typed::Answer(answer) = typed(&question.position)? else {
                break;
            };
            let graded;
            (schedule, graded) = self.record(&question.position, answer)?;
            print(&verdict(&question.position, &graded))?;
            answers += 1;
            right += u64::from(graded.is_right);
            new_left -= u64::from(question.is_new);
            let mut continued = question.line;
            continued.moves.push(graded.played);
            line = Some(continued);
        }
        let Askable { due, again, new } = self.practice(&schedule).askable();
        let left = match (due + again, new) {
            (0, 0) => "nothing is left for today".to_owned(),
            (due, new) => format!("{due} due and {new} new positions are left"),
        };
        print(&format!(
            "{}, {right} right; {left}\n",
            plural(answers, "answer")
        ))
    }

    /// Grades an answer in the position `pos`, which must belong to the deck, and stores the result. Returns the stored
    /// schedule, which also contains the answers that other programs, such as the server, have meanwhile recorded.
    fn record(
        &self,
        pos: &VariantPosition,
        answer: Option<Move>,
    ) -> polybook::Result<(Schedule, Graded)> {
        Schedule::update(self.path, |schedule| {
            let graded = grade(self.deck, schedule, pos, answer, today());
            Ok(graded.expect("the question belongs to the deck"))
        })
    }

    /// Returns the text of a question, which consists of the line and the position, as a board or a FEN.
    fn text(&self, question: &Question) -> String {
        let pos = &question.position;
        let shown = if self.plain {
            format!("{}\n", fen_of(pos))
        } else {
            board_text(pos, self.deck.color())
        };
        let line = match &*question.line.text() {
            "" => "the start".to_owned(),
            line => line.to_owned(),
        };
        let mark = if question.is_new { " (new)" } else { "" };
        format!("\n{line}{mark}\n{shown}")
    }
}

/// Reads the user's answer in the position `pos` from standard input. Repeats the question until the answer is a legal
/// move or a command. The end of the input ends the session.
fn typed(pos: &VariantPosition) -> anyhow::Result<Typed> {
    loop {
        print("your move: ")?;
        let mut line = Vec::new();
        let mut input = io::stdin().lock().take(MAX_ANSWER);
        let length = input.read_until(b'\n', &mut line)?;
        let line = line.trim_ascii();
        // A terminal shows what the user types, and the end of the input ends no line.
        if length == 0 || !io::stdin().is_terminal() {
            print(&format!("{}\n", String::from_utf8_lossy(line)))?;
        }
        match line {
            _ if length == 0 => return Ok(Typed::Quit),
            b"quit" | b"exit" | b"q" => return Ok(Typed::Quit),
            b"?" => return Ok(Typed::Answer(None)),
            text => match read_move(pos, text) {
                Ok(mv) => return Ok(Typed::Answer(Some(mv))),
                Err(err) => print(&format!(
                    "{}: {err}; answer with a move such as Nf3 or g1f3, ? to see the move, or quit\n",
                    String::from_utf8_lossy(text)
                ))?,
            },
        }
    }
}

/// Returns the text that follows an answer. It says whether the answer was right, what the moves of the repertoire are,
/// and when the user will be asked about the position again.
fn verdict(pos: &VariantPosition, graded: &Graded) -> String {
    let san = |mv: &Move| SanPlus::from_move(pos.clone(), *mv).to_string();
    let moves = graded
        .moves
        .iter()
        .map(san)
        .collect::<Vec<_>>()
        .join(" or ");
    if !graded.is_right {
        return format!("wrong: the repertoire has {moves}; asked again today\n");
    }
    let others = if graded.moves.len() > 1 {
        format!(" (the repertoire has {moves})")
    } else {
        String::new()
    };
    let days = (graded.due - today()).num_days().max(0);
    let unit = if days == 1 { "day" } else { "days" };
    format!("right{others}; asked again in {days} {unit}\n")
}

impl Opener {
    /// Opens the repertoire for the side `color` at the path `argument`, and creates the deck of its positions. Without
    /// `variant`, the variant is that of the file. Returns an error if the repertoire has no move for this side.
    pub fn deck(
        &self,
        argument: &Path,
        variant: Option<Variant>,
        color: Color,
    ) -> anyhow::Result<(Deck, polybook::repertoire::OpenedSource)> {
        let repertoire = self.repertoire(argument, color)?;
        let variant = variant.unwrap_or(repertoire.variant());
        let deck = self.context.show_progress("reading", |meter| {
            Deck::new(&repertoire, variant, color, &self.memory, meter)
        })?;
        if deck.cards() == 0 {
            let problem = format!(
                "the repertoire has no move for {color} in its lines: give the other side with --color"
            );
            return Err(Error::file(argument, problem).into());
        }
        Ok((deck, repertoire))
    }
}

//! `polybook repertoire build`: builds a repertoire from games, an index, counts, a database or a book.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use polybook::{
    FileKind,
    book::is_book_or_empty,
    counts::Memory,
    pgn::{Cutter, GameReader, Input, StreamOptions},
    repertoire::{Build, CommentDetail, OwnMoveRule, RepertoireFile, Writing, build},
    selection::Selection,
    storage::output::is_regular_file,
    tree::{LinesOf, MoveSource, Union},
};
use shakmaty::{ByColor, Color};

use super::{BYTES_PER_READ, LineArgs, Opener, one_in, title_of};
use crate::cli::{
    Context,
    filters::{SelectionArgs, WithoutColor},
    input::{check_output, name, output_name, refuse_twice},
    plural, position,
    resources::{ResourceArgs, count},
    weighting::one_of,
};

/// Build a repertoire from games: one move in each position, and answers to the frequent replies
#[derive(clap::Args, Debug)]
#[command(
    after_help = "\
In each position, build chooses the best move for the side of the repertoire. It answers each reply of the opponent after
which the position occurs in one game of N (--reach). To estimate this, the shares of the opponent's moves on the way are
multiplied, and the moves of the repertoire count as certain. If several lines lead to the position, they are added up.

The comments contain the number of games of a move and the score of the side that plays it. The comment on a reply also says
how often games reach the position after it. Games without a result do not change the scores, but databases and counts contain
such games as draws. If no game of the source reached a position, build answers with a move that leads back to the games; if
there is no such move, the line ends before the reply.

--player is the player who has the color of the repertoire. Games that this player played with the other color are left out.

Examples:
  polybook repertoire build games.pgn --color white --out white.pgn
  polybook repertoire build 2024.pgn 2025.pgn --color white --comments none --out white.pgn
  polybook repertoire build games.idx --color black --from \"1. e4\" --reach 50 --max-ply 20 --out black.bin
  polybook repertoire build games.idx --color white --keep mine.pgn --by games --out more.pgn
  polybook repertoire build mine.pgn --color white --player \"my name\" --by games --reach 50 --max-ply 20 --comments short --out white.pgn
      what you play yourself, from some hundred games",
    mut_arg("player", |arg| arg.help(PLAYER).long_help(PLAYER))
)]
pub struct Args {
    /// Choose moves from these games: one or more PGN files, an index, counts, an OOBS database or a book
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// The side of the repertoire
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color())]
    color: Color,

    /// Write the repertoire to this file, as PGN with variations, or as a book if the name ends in .bin; - is standard
    /// output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Replace an existing file of any kind. Without this option, build replaces only a book that polybook wrote, by
    /// another book
    #[arg(long)]
    force: bool,

    /// Answer a move of the opponent if at least 1 in N games reaches the position after it
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = one_in)]
    reach: f64,

    /// Choose only moves that were played in at least N games. A line ends if no move was played that often. The value
    /// 0 also allows moves that were never played, if they lead to a position that games reached [default: grows with
    /// the number of games: 0 for up to 624, 10 for 67,000, 40 for a million]
    #[arg(long, value_name = "N", value_parser = count::<u64>(0))]
    min_game: Option<u64>,

    /// Choose the comments: none writes no comments, short writes the score of your own moves and the frequency of the
    /// opponent's moves, and full also writes numbers of games
    #[arg(
        long,
        default_value = "full",
        value_parser = one_of([("none", CommentDetail::None), ("short", CommentDetail::Short), ("full", CommentDetail::Full)])
    )]
    comments: CommentDetail,

    /// Keep all moves of this repertoire, and add moves only in positions in which it contains no move
    #[arg(long, value_name = "REPERTOIRE")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    lines: LineArgs,

    /// Print a report about the file --out as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,

    #[command(flatten)]
    filter: SelectionArgs<WithoutColor>,
}

/// The help text of `--player` in this command, where the option keeps only games in which the player has the color of
/// the repertoire. In other commands, it keeps all games of the player.
pub const PLAYER: &str = "Keep games in which a player whose name contains NAME has the color of the repertoire. If the \
                      option is given several times, games that match any of the names are kept";

/// The approximate number of games at the start of a file that [`owner_of`] examines. Whole batches of games are read
/// until at least this number has been examined.
const EXAMINED_GAMES: usize = 1000;

/// The minimum number of games in a file for which [`owner_of`] returns a name.
const MIN_EXAMINED_GAMES: usize = 10;

/// The maximum length of a player's name that [`owner_of`] returns, in bytes.
const MAX_OWNER_BYTES: usize = 100;

/// Returns the name of the player whose own games the PGN file `path` contains. This is a player who played at least
/// nine in ten of the first [`EXAMINED_GAMES`] games, with each color at least once.
///
/// Returns `None` if there is no such player, or if there are two, as in a match. Also returns `None` if the file
/// contains fewer than [`MIN_EXAMINED_GAMES`] games, or if `path` is not a PGN file that can be read twice.
fn owner_of(path: &Path, memory: &Memory) -> anyhow::Result<Option<String>> {
    if !is_regular_file(path)? || FileKind::of(path)? != FileKind::Other || is_book_or_empty(path)?
    {
        return Ok(None);
    }
    let input = Input::file(path);
    let mut cutter = Cutter::new(input.open(&StreamOptions::within(memory))?, BYTES_PER_READ);
    let mut games: HashMap<String, ByColor<usize>> = HashMap::new();
    let mut examined = 0;
    while examined < EXAMINED_GAMES
        && let Some(batch) = cutter.next_batch().map_err(|err| input.error(err))?
    {
        let mut reader = GameReader::new(&batch.text);
        while reader.next_game() {
            examined += 1;
            let tags: [&[u8]; 2] = [b"White", b"Black"];
            let [white, black] = tags.map(|tag| reader.tags().get(tag));
            for (color, name) in [(Color::White, white), (Color::Black, black)] {
                let is_known = |name: &&[u8]| {
                    !matches!(*name, [] | [b'?']) && name.len() <= MAX_OWNER_BYTES && white != black
                };
                if let Some(name) = name.filter(is_known) {
                    let name = String::from_utf8_lossy(name).into_owned();
                    *games.entry(name).or_default().get_mut(color) += 1;
                }
            }
            reader.skip_moves();
        }
    }
    let mut owners = games.into_iter().filter(|(_, games)| {
        let ByColor { white, black } = *games;
        white > 0 && black > 0 && (white + black) * 10 >= examined * 9
    });
    Ok(match (owners.next(), owners.next()) {
        (Some((name, _)), None) if examined >= MIN_EXAMINED_GAMES => Some(name),
        _ => None,
    })
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let inputs: Vec<&PathBuf> = args.keep.iter().chain(&args.sources).collect();
    refuse_twice(&inputs)?;
    check_output(&args.out, &inputs, args.json)?;
    let out = RepertoireFile::create(&args.out, args.force)?;
    let opener = Opener::new(
        args.lines.variant,
        &args.lines.untagged,
        &args.resources,
        context,
    )?;
    let filter = args.filter.for_side(args.color)?;
    if !filter.as_ref().is_some_and(Selection::has_names) {
        for source in &args.sources {
            if let Some(name) = owner_of(source, &opener.memory)? {
                context.say(&format!(
                    "{name} played nearly all games of {}, and the moves of {name}'s opponents count like those of {name}: \
                     with --player \"{name}\", only games count in which {name} has the color of the repertoire\n",
                    source.display()
                ));
            }
        }
    }
    let source = opener.sources(&args.sources, filter.as_ref())?;
    let keep = args.keep.as_ref();
    let keep = keep
        .map(|keep| opener.repertoire(keep, args.color))
        .transpose()?;
    let variant = args.lines.variant.unwrap_or(source.variant());
    let start = args.lines.start(variant)?;
    args.lines.say_absent(&source, variant, &start, context)?;
    let memory = &opener.memory;
    let built = context.show_progress("building", |meter| {
        build(&Build {
            start: &start,
            color: args.color,
            source: &source,
            keep: keep.as_ref(),
            by: args.lines.by.unwrap_or(OwnMoveRule::default_of(&source)),
            one_in: args.reach,
            min_game: args.min_game,
            max_ply: args.lines.max_ply(),
            memory: memory.bytes,
            meter,
        })
    })?;
    let moves: Box<dyn MoveSource> = match &keep {
        Some(keep) => Box::new(LinesOf(Union(&built, keep), args.color)),
        None => Box::new(&built),
    };
    let written = context.show_progress("writing", |meter| {
        let writing = Writing {
            moves: &moves,
            starts: std::slice::from_ref(&start),
            variant,
            color: args.color,
            title: &title_of(args.color),
            memory,
            meter,
        };
        writing.write(out, Some(&|branch| built.comment(branch, args.comments)))
    })?;
    let path = output_name(&args.out);
    let summary = built.summary;
    let mut text = format!("{path}: {}", plural(summary.answers, "answer"));
    if let Some(path) = &args.keep {
        let kept = name(path);
        text += &format!(" in positions that the games reach, and all lines of {kept}");
    }
    if args.min_game.is_none() && summary.min_game > 0 {
        let least = plural(summary.min_game, "game");
        text += &format!(", each played in at least {least} (--min-game)");
    }
    if summary.without_games > 0 {
        let answers = plural(summary.without_games, "answer");
        text += &format!("; {answers} played in no game, but leading back to the games");
    }
    if summary.single_game > 0 {
        let answers = plural(summary.single_game, "answer");
        text +=
            &format!("; {answers} played in a single game (--min-game 2 leaves such answers out)");
    }
    if summary.unanswered > 0 {
        let positions = plural(summary.unanswered, "position");
        text +=
            &format!("; {positions} without an answer, because the games of the source end there");
    }
    let mut document = serde_json::to_value(summary)?;
    document["openings"] = serde_json::to_value(&built.openings)?;
    document["path"] = path.into();
    document["moves"] = written.into();
    context.report(&format!("{text}\n"), args.json, document)
}

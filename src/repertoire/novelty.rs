//! New moves: where each game leaves what a reference knows.

use std::sync::Mutex;

use rustc_hash::FxHashMap;
use serde::Serialize;
use shakmaty::{Color, Move, variant::VariantPosition};

use super::{Known, position_after, san};
use crate::{
    error::{Error, Result},
    explorer::{Arrivals, Explorer, GameInfo, first_day},
    pgn::{Date, GameReader, Games, commented, play, start_of, tag_text},
    position::{Keyed, Variant, fen_of},
    task,
    tree::{Source, move_number},
};

/// The first half-move of a game whose position the reference does not know.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NewMove {
    /// The number of the game, from 1.
    pub game: u64,
    /// The name of White.
    pub white: String,
    /// The name of Black.
    pub black: String,
    /// The number of the half-move from 1, `None` if all positions are known.
    pub ply: Option<usize>,
    /// The half-move in SAN.
    #[serde(rename = "move")]
    pub mv: Option<String>,
    /// Its number in the game: `12.` or `12...`.
    pub number: Option<String>,
    /// The position before it.
    pub fen: Option<String>,
    /// How many games of the reference came to that position. `None` if the reference does not count games.
    pub games_before: Option<u64>,
    /// The newest of them, where the reference has games.
    pub last_game: Option<GameInfo>,
    /// Why the game cannot be played to its end: what comes before counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The text of the game with a comment after the half-move, if that was asked for.
    #[serde(skip)]
    pub text: Vec<u8>,
}

/// What new moves are new against.
pub struct Reference<'a> {
    /// The games, counts or moves.
    pub known: &'a Known,
    /// Whether a game is compared with those alone that were played certainly before it. Needs games. A game without a
    /// year is compared with all games that have one.
    pub earlier: bool,
    /// Whether games come with their text.
    pub with_text: bool,
}

/// Hands the new move of each game to `take`, in the order of the games. Returns how many games there are.
///
/// # Errors
///
/// A file that cannot be read, a reference without games that must have them, and what `take` answers.
pub fn new_moves(
    games: &Games<'_>,
    reference: &Reference<'_>,
    mut take: impl FnMut(&NewMove) -> Result<()>,
) -> Result<u64> {
    let explorer = reference.known.explorer();
    if reference.earlier && explorer.is_none() {
        let problem = "has no games with dates: name PGN or an index made with --explorer";
        return Err(Error::file("--earlier", problem));
    }
    let explored = explorer.map(|explorer| Explored::new(explorer, games.memory.bytes / 2));
    let lookup = Lookup {
        reference,
        explored: explored.transpose()?,
    };
    games.for_each(
        |text, reader| lookup.game(text, reader),
        |number, mut found| {
            found.game = number;
            take(&found)
        },
    )
}

struct Lookup<'a> {
    reference: &'a Reference<'a>,
    explored: Option<Explored<'a>>,
}

impl Lookup<'_> {
    fn game(&self, text: &[u8], reader: &mut GameReader<'_>) -> Result<NewMove> {
        let tags = reader.tags().clone();
        let name = |tag: &[u8]| tag_text(tags.get(tag).unwrap_or(b"?")).into_owned();
        let mut found = NewMove {
            game: 0,
            white: name(b"White"),
            black: name(b"Black"),
            ply: None,
            mv: None,
            number: None,
            fen: None,
            games_before: None,
            last_game: None,
            problem: None,
            text: Vec::new(),
        };
        let begin = reader.game_offset();
        let (variant, start) = match start_of(&tags) {
            Ok(start) => start,
            Err(problem) => {
                reader.skip_moves();
                found.problem = Some(problem);
                return Ok(found);
            }
        };
        let before = self
            .reference
            .earlier
            .then(|| first_day(Date::of_tags(&tags)));
        let mut pos = Keyed::new(start.clone());
        let mut moves: Vec<Move> = Vec::new();
        let mut new = None;
        let ending = play(reader, &mut pos, |here, mv, end| {
            moves.push(mv);
            let is_known = self.knows(variant, here, mv, before)?;
            if !is_known {
                new = Some(end);
            }
            Ok(is_known)
        })?;
        found.problem = ending.problem;
        let Some(end) = new else {
            return Ok(self.with_text(found, text, begin, reader.offset(), None));
        };
        found.ply = Some(moves.len());
        let mv = moves.pop().expect("it is the new move");
        let last = position_after(&start, moves);
        let pos = last.position();
        found.mv = Some(san(pos, mv));
        found.number = Some(move_number(pos));
        found.fen = Some(fen_of(pos));
        self.add_games(&mut found, variant, &last, before)?;
        Ok(self.with_text(found, text, begin, reader.offset(), Some(end)))
    }

    /// Whether the reference knows the position after a move.
    fn knows(
        &self,
        variant: Variant,
        here: &Keyed<VariantPosition>,
        mv: Move,
        before: Option<u32>,
    ) -> Result<bool> {
        let mut after = here.clone();
        after.play(mv);
        if let Some(explored) = &self.explored {
            let first = explored.first(variant, after.identity())?;
            return Ok(first.is_some_and(|first| before.is_none_or(|before| first < before)));
        }
        let known = self.reference.known;
        if !known.is_for(variant) {
            return Ok(false);
        }
        // A move that leads there, or one that goes on from there.
        let is_known = known.moves(here)?.iter().any(|known| known.mv == mv);
        Ok(is_known || !known.moves(&after)?.is_empty())
    }

    /// Adds the games of the position before the new move.
    fn add_games(
        &self,
        found: &mut NewMove,
        variant: Variant,
        pos: &Keyed<VariantPosition>,
        before: Option<u32>,
    ) -> Result<()> {
        if let Some(explored) = &self.explored {
            let reached = explored.arrivals.reached(variant, pos.identity(), before)?;
            found.games_before = Some(reached.games);
            let last = reached.last().map(|number| explored.explorer.game(number));
            found.last_game = last.transpose()?;
        } else if self.reference.known.has_results() && self.reference.known.is_for(variant) {
            let moves = self.reference.known.moves(pos)?;
            found.games_before = Some(moves.iter().map(|mv| mv.games()).sum());
        }
        Ok(())
    }

    fn with_text(
        &self,
        mut found: NewMove,
        text: &[u8],
        begin: usize,
        end: usize,
        at: Option<usize>,
    ) -> NewMove {
        if self.reference.with_text {
            let comment = at.map(|at| (at - begin, found.comment()));
            found.text = commented(&text[begin..end], comment);
        }
        found
    }
}

impl NewMove {
    fn comment(&self) -> String {
        match (self.games_before, &self.last_game) {
            (Some(games), Some(last)) => format!(
                "New. Games before: {games}, the last {}",
                last_text(last).replace('}', ")")
            ),
            (Some(games), None) => format!("New. Games before: {games}"),
            (None, _) => "New".to_owned(),
        }
    }
}

/// The players of a game and its year: `Tal - Fischer, 1959`.
pub fn last_text(game: &GameInfo) -> String {
    let name = |color: Color| &color.fold_wb(&game.white, &game.black).name;
    let players = format!("{} - {}", name(Color::White), name(Color::Black));
    match game.year {
        0 => players,
        year => format!("{players}, {year}"),
    }
}

/// How many parts the remembered positions are in, so that threads seldom wait for each other.
const PARTS: usize = 64;

/// About how many bytes a remembered position takes.
const BYTES: usize = 48;

/// The first day of each position, by its variant and identity; `None` if no game reached it.
type FirstDays = FxHashMap<(Variant, u64), Option<u32>>;

/// When the positions of an explorer were first reached.
struct Explored<'a> {
    explorer: &'a Explorer,
    arrivals: Arrivals<'a>,
    remembered: Vec<Mutex<FirstDays>>,
    /// How many positions each part remembers.
    room: usize,
}

impl<'a> Explored<'a> {
    fn new(explorer: &'a Explorer, memory: usize) -> Result<Explored<'a>> {
        Ok(Explored {
            explorer,
            arrivals: explorer.arrivals()?,
            remembered: (0..PARTS).map(|_| Mutex::default()).collect(),
            room: memory / BYTES / PARTS,
        })
    }

    /// The first day on which a position was reached, `None` if it never was.
    fn first(&self, variant: Variant, identity: u64) -> Result<Option<u32>> {
        let part = &self.remembered[(identity >> 58) as usize % PARTS];
        if let Some(first) = task::lock(part).get(&(variant, identity)) {
            return Ok(*first);
        }
        let first = self.arrivals.reached(variant, identity, None)?.first;
        let mut part = task::lock(part);
        if part.len() < self.room {
            part.insert((variant, identity), first);
        }
        Ok(first)
    }
}

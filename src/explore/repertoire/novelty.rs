//! Finds new moves: the moves with which games leave the positions that a reference contains.
//!
//! Games are read in batches. If the reference is an index of games, the positions of a whole batch are sorted and
//! looked up together, so that each page of the index is read only once. Otherwise, each position is looked up when it
//! is read.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::{ThreadPool, prelude::*};
use serde::Serialize;
use shakmaty::{Color, Move, variant::VariantPosition};

use super::{OpenedSource, position_after, san};
use crate::{
    chess::position::{Keyed, Variant, fen_of, move_number},
    error::{Advice, Diagnosis, Error, ErrorKind, Result},
    explore::{
        explorer::{
            Explorer, FirstSeen, GameInfo, Probe, Selection, Visits, first_day, last_departure,
        },
        tree::{MoveSource, TreeMove},
    },
    formats::explorer_index::ListKey,
    games::{
        pgn::{Date, GameReader, Games, PlayerNames, commented, play_from_start, tag_text},
        selection::Condition,
    },
    task,
};

/// The novelty (new move) of a game: the half-move that leads to a position that the reference, such as a database of
/// earlier games, does not contain.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NewMove {
    /// The number of the game among all games, counted from 0. An index of the same games uses the same number.
    pub game: u64,
    /// The name of the player with White.
    pub white: String,
    /// The name of the player with Black.
    pub black: String,
    /// The number of the half-move, counted from 1, or `None` if the reference contains all positions of the game. In
    /// that case, `mv`, `number` and `fen` are also `None`.
    pub ply: Option<usize>,
    /// Whether a new move may have been missed, because the reference was made with `--max-ply`: the game contains no
    /// new move among the half-moves that the reference indexes, but continues after them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unindexed: bool,
    /// The novelty itself, in SAN.
    #[serde(rename = "move")]
    pub mv: Option<String>,
    /// The number of the move as in PGN: `12.` or `12...`.
    pub number: Option<String>,
    /// The FEN of the position before the half-move.
    pub fen: Option<String>,
    /// The number of reference games that reached the position before the half-move. `None` if the reference contains
    /// no individual games, or if `ply` is `None`.
    pub games_before: Option<u64>,
    /// The newest of these reference games, or `None` if there is none.
    pub last_game: Option<GameInfo>,
    /// The reason why the rest of the game cannot be played, or `None` if the whole game was played. The moves before
    /// the fault are compared with the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The text of the game with a comment after the half-move, if [`Reference::with_text`] is set; otherwise empty.
    #[serde(skip)]
    pub text: Vec<u8>,
}

/// A reference with which games are compared, such as a database of earlier games, and the options of the comparison.
pub struct Reference<'a> {
    /// The source that contains the known moves: games, counts or plain moves.
    pub known: &'a OpenedSource,
    /// Whether a game is compared only with reference games that were certainly played earlier. This requires a
    /// reference with individual games. A game without a year is compared with all games that have a year.
    pub earlier: bool,
    /// Whether the first half-move of a game that leads to an unknown position is reported. If `false`, the last half-move
    /// that leads from a known to an unknown position is reported, so all later positions of the game are unknown.
    pub first: bool,
    /// The filter that selects the games to compare. Duplicates are not recognized.
    pub filter: &'a Selection,
    /// Whether each [`NewMove`] contains the text of the game.
    pub with_text: bool,
}

/// The result of [`new_moves`]: the number of games that were compared, and warnings.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ComparedGames {
    /// The number of games that were compared.
    pub games: u64,
    /// Warnings about games of unknown variants, one line each.
    pub warnings: Vec<String>,
}

/// Finds the novelty of each of `games`, which is the move that leads to a position that the reference does not contain
/// (see [`Reference::first`]). Calls `take` with each result, in the order of the games.
///
/// # Errors
///
/// Returns an error if a file cannot be read. Also returns an error if `reference.earlier` is set but the reference
/// contains no individual games, because the comparison needs their dates. Stops at the first error of `take` and
/// returns it.
pub fn new_moves(
    games: &Games<'_>,
    reference: &Reference<'_>,
    mut take: impl FnMut(&NewMove) -> Result<()>,
) -> Result<ComparedGames> {
    let explored = reference.known.explored();
    let explorer = explored.map(|explored| &*explored.explorer);
    let explorer = explorer.filter(|explorer| explorer.lacks_games(None, "dates").is_none());
    if reference.earlier && explorer.is_none() {
        let problem = Diagnosis::new("this reference contains no games with dates")
            .advise("give a PGN file")
            .advise(
                Advice::option("give an index made with {}", "explorer").of_command("make-book"),
            );
        return Err(Error::option(ErrorKind::Unsuitable, "earlier", problem));
    }
    let lookup = Lookup {
        reference,
        explored: match explorer {
            Some(explorer) => Some((explorer, explorer.first_seen()?)),
            None => None,
        },
        pool: task::pool(games.threads)?,
    };
    let most = games.memory.bytes / 2;
    let (mut waiting, mut bytes) = (Vec::new(), 0);
    let mut found = 0;
    let mut names = PlayerNames::new(reference.filter.names(), reference.filter.name_match());
    let read = games.for_each(
        |text, reader| lookup.read(text, reader),
        |number, game| {
            let mut game = match game {
                ReadGame::Compared(game) => *game,
                ReadGame::Excluded(others) => {
                    if found == 0 {
                        for (name, is_match) in others {
                            match is_match {
                                true => names.add_known(&name),
                                false => names.add_other(&name),
                            }
                        }
                    }
                    return Ok(());
                }
            };
            found += 1;
            game.found.game = number - 1;
            bytes += game.bytes();
            waiting.push(game);
            if bytes > most {
                bytes = 0;
                lookup.finish(std::mem::take(&mut waiting), &mut take)?;
            }
            Ok(())
        },
    )?;
    lookup.finish(waiting, &mut take)?;
    let mut warnings = read.warnings();
    if found == 0 {
        let meant = names.did_you_mean();
        let meant = meant.strip_prefix(": ");
        warnings.extend(meant.map(|meant| format!("no game passes the filters: {meant}")));
    }
    Ok(ComparedGames {
        games: found,
        warnings,
    })
}

/// A game that is compared with the reference, or a game that the filter excludes.
enum ReadGame {
    Compared(Box<WaitingGame>),
    /// The game is excluded. Contains the names of its players, each with `true` if it matches the filter. Names that do
    /// not match are contained only if the game is excluded because of them.
    Excluded(Vec<(String, bool)>),
}

/// A game that waits to be compared with the reference, such as a database of earlier games. If the reference is an
/// index, the positions of many waiting games are looked up together.
struct WaitingGame {
    found: NewMove,
    start: VariantPosition,
    /// The day before which reference games must have been played to count, or `None` if all reference games count.
    before: Option<u32>,
    moves: Vec<Move>,
    /// The keys under which an index stores the game's positions, including the last one. Empty if the reference
    /// contains no individual games.
    subjects: Vec<ListKey>,
    /// The offset in the text at which each move ends. Empty if the text is not kept.
    ends: Vec<usize>,
    /// Whether the reference contains the position after each move.
    known: Vec<AtomicBool>,
}

impl WaitingGame {
    /// Estimates the memory, in bytes, that the game uses until it has been compared with the reference.
    fn bytes(&self) -> usize {
        let of_moves =
            size_of::<Move>() + size_of::<ListKey>() + size_of::<Probe>() + size_of::<bool>();
        size_of::<WaitingGame>() + self.moves.len() * of_moves + self.found.text.len() * 2
    }

    /// Returns the index of the game's novelty (new move), or `None` if the reference contains all positions of the
    /// game. A position that the reference does not contain is called unknown.
    ///
    /// If `first` is `true`, the novelty is the first move that leads to an unknown position. Otherwise, it is the last
    /// move that leads from a known to an unknown position. Only the first `indexed` moves are compared, because the
    /// reference may not contain later ones.
    fn new_move(&self, first: bool, indexed: usize) -> Option<usize> {
        let known = self.known.iter().take(indexed);
        let known: Vec<bool> = known.map(|known| known.load(Ordering::Relaxed)).collect();
        if first {
            known.iter().position(|is_known| !is_known)
        } else {
            last_departure(&known)
        }
    }

    /// Returns the position before the move with the index `number`. If `number` is the number of moves, returns the
    /// final position.
    ///
    /// # Panics
    ///
    /// Panics if `number` is greater than the number of moves.
    fn before(&self, number: usize) -> Keyed<VariantPosition> {
        position_after(&self.start, self.moves[..number].iter().copied())
    }
}

struct Lookup<'a> {
    reference: &'a Reference<'a>,
    explored: Option<(&'a Explorer, FirstSeen<'a>)>,
    pool: ThreadPool,
}

impl Lookup<'_> {
    /// Reads the current game of `reader`, and looks up its positions in the reference. If the reference is an index of
    /// games, the positions are instead looked up later by [`finish`](Lookup::finish), for many games together. `text`
    /// is the whole text that the reader reads.
    fn read(&self, text: &[u8], reader: &mut GameReader<'_>) -> Result<ReadGame> {
        let tags = reader.tags().clone();
        let filter = self.reference.filter;
        if let Some(unmet) = filter.unmet(&tags) {
            reader.skip_moves();
            let others = filter.player_tags(&tags);
            let others = others.filter(|(_, is_match)| *is_match || unmet == Condition::Player);
            let others = others.map(|(name, is_match)| (tag_text(name).into_owned(), is_match));
            return Ok(ReadGame::Excluded(others.collect()));
        }
        let name = |tag: &[u8]| tag_text(tags.get(tag).unwrap_or(b"?")).into_owned();
        let mut found = NewMove {
            game: 0,
            white: name(b"White"),
            black: name(b"Black"),
            ply: None,
            unindexed: false,
            mv: None,
            number: None,
            fen: None,
            games_before: None,
            last_game: None,
            problem: None,
            text: Vec::new(),
        };
        let begin = reader.game_offset();
        let (mut moves, mut subjects, mut ends, mut all_known) = (vec![], vec![], vec![], vec![]);
        let (mut moves_here, mut identities) = (None, Vec::new());
        let mut matcher = filter.matcher(tags.variant().unwrap_or_default());
        let played = play_from_start(reader, |variant, here, mv, end| {
            if let Some(matcher) = &mut matcher {
                matcher.visit(here.position(), Some(mv));
            }
            identities.push(here.identity());
            let is_known = match self.explored {
                Some(_) => {
                    subjects.push(ListKey::position(variant, here.identity()));
                    true
                }
                None => self.knows(variant, here, mv, &mut moves_here)?,
            };
            all_known.push(AtomicBool::new(is_known));
            moves.push(mv);
            if self.reference.with_text {
                ends.push(end - begin);
            }
            Ok(true)
        })?;
        if self.explored.is_some() {
            subjects.push(ListKey::position(played.variant, played.last.identity()));
        }
        identities.push(played.last.identity());
        if let Some(matcher) = &mut matcher {
            matcher.visit(played.last.position(), None);
        }
        let result = tags.result().or(played.ending.marker).unwrap_or_default();
        if !filter.admits_played(&tags, result, played.variant, &identities, matcher.as_ref()) {
            return Ok(ReadGame::Excluded(Vec::new()));
        }
        found.problem = played.ending.problem();
        if self.reference.with_text {
            found.text = text[begin..reader.offset()].to_vec();
        }
        let earlier = self.reference.earlier;
        Ok(ReadGame::Compared(Box::new(WaitingGame {
            found,
            start: played.start,
            before: earlier.then(|| first_day(Date::of_tags(&tags))),
            moves,
            subjects,
            ends,
            known: all_known,
        })))
    }

    /// Returns `true` if the reference contains the position after the move `mv`, which was played in the position
    /// `here`. Used for a reference without individual games: a book, a database or counts.
    ///
    /// `moves_here` contains the moves of the reference in `here`, or is `None` if they have not been read yet. It is
    /// replaced by the moves in the position after `mv`, so that each position of a game is read only once.
    fn knows(
        &self,
        variant: Variant,
        here: &Keyed<VariantPosition>,
        mv: Move,
        moves_here: &mut Option<Vec<TreeMove>>,
    ) -> Result<bool> {
        let known = self.reference.known;
        if !known.is_for(variant) {
            return Ok(false);
        }
        let before = match moves_here.take() {
            Some(moves) => moves,
            None => known.moves(here)?,
        };
        let mut after = here.clone();
        after.play(mv);
        let after = known.moves(&after)?;
        // The reference contains the position after `mv` if it contains the move `mv`, or any move in the position
        // after it.
        let is_known = !after.is_empty() || before.iter().any(|known| known.mv == mv);
        *moves_here = Some(after);
        Ok(is_known)
    }

    /// Returns the number of half-moves of each game that the reference covers.
    fn indexed(&self) -> usize {
        let explorer = self.explored.as_ref().map(|(explorer, _)| explorer);
        let max_ply = explorer.and_then(|explorer| explorer.max_ply(&Selection::default()));
        max_ply.unwrap_or(usize::MAX)
    }

    /// Finds the novelties (new moves) of `games`, and calls `take` with the result for each game, in the order of the
    /// games.
    fn finish(
        &self,
        games: Vec<WaitingGame>,
        take: &mut impl FnMut(&NewMove) -> Result<()>,
    ) -> Result<()> {
        let finished = task::caught(|| {
            self.pool.install(|| {
                let mut reached = vec![None; games.len()];
                if let Some((_, first_seen)) = &self.explored {
                    mark_unknown(first_seen, &games, self.reference.earlier)?;
                    let is_new =
                        |game: &WaitingGame| game.new_move(self.reference.first, self.indexed());
                    count_games(first_seen, &games, is_new, &mut reached)?;
                }
                let games = games.into_par_iter().zip(reached);
                let found = games.map(|(game, reached)| self.finished(game, reached));
                found.collect::<Result<Vec<NewMove>>>()
            })
        })?;
        finished.iter().try_for_each(take)
    }

    /// Returns the result for a game whose positions have been looked up in the reference. `reached` describes the
    /// reference games that reached the position before the game's novelty (new move). It is `None` if there is no
    /// novelty, or if the reference contains no individual games.
    fn finished(&self, game: WaitingGame, reached: Option<Visits>) -> Result<NewMove> {
        let new = game
            .new_move(self.reference.first, self.indexed())
            .map(|number| (number, game.before(number)));
        let is_longer = game.known.len() > self.indexed();
        let mut found = game.found;
        found.unindexed = new.is_none() && is_longer;
        if let Some((number, pos)) = &new {
            found.ply = Some(number + 1);
            found.mv = Some(san(pos.position(), game.moves[*number]));
            found.number = Some(move_number(pos.position()));
            found.fen = Some(fen_of(pos.position()));
            if let (Some((explorer, _)), Some(reached)) = (&self.explored, reached) {
                found.games_before = Some(reached.games);
                let last = reached.last().map(|number| explorer.game(number));
                found.last_game = last.transpose()?;
            }
        }
        if self.reference.with_text {
            let comment = new.map(|(number, _)| (game.ends[number], found.comment()));
            found.text = commented(&found.text, comment);
        }
        Ok(found)
    }
}

/// Marks the positions of `games` that no reference game reached as unknown. `first_seen` looks up when reference games
/// first reached a position. If `earlier` is `true`, each game is compared only with older reference games.
fn mark_unknown(first_seen: &FirstSeen<'_>, games: &[WaitingGame], earlier: bool) -> Result<()> {
    let all = games.par_iter().enumerate();
    let mut asked: Vec<Probe> = all
        .flat_map_iter(|(number, game)| {
            let after = game.subjects.iter().skip(1).enumerate();
            after.map(move |(ply, subject)| Probe {
                subject: *subject,
                game: number as u32,
                ply: ply as u32,
            })
        })
        .collect();
    asked.par_sort_unstable_by_key(|probe| probe.subject);
    let day = |probe: &Probe| games[probe.game as usize].before.unwrap_or(u32::MAX);
    first_seen.for_each_new(&asked, earlier.then_some(day), |probe| {
        let known = &games[probe.game as usize].known;
        known[probe.ply as usize].store(false, Ordering::Relaxed);
    })
}

/// Counts, for each of `games`, the reference games that reached the position before its novelty (new move).
/// `first_seen` looks up positions, and `new_move` returns the index of a game's novelty.
///
/// Writes the result for each game to the element of `reached` with the same index. The element of a game without a
/// novelty stays unchanged.
fn count_games(
    first_seen: &FirstSeen<'_>,
    games: &[WaitingGame],
    new_move: impl Fn(&WaitingGame) -> Option<usize> + Sync,
    reached: &mut [Option<Visits>],
) -> Result<()> {
    let with_new = games.par_iter().enumerate();
    let mut asked: Vec<(ListKey, usize)> = with_new
        .filter_map(|(number, game)| Some((game.subjects[new_move(game)?], number)))
        .collect();
    asked.par_sort_unstable();
    let counted = asked.par_iter().map(|(subject, number)| {
        let counted = first_seen.visits(*subject, games[*number].before)?;
        Ok((*number, counted))
    });
    for (number, counted) in counted.collect::<Result<Vec<_>>>()? {
        reached[number] = Some(counted);
    }
    Ok(())
}

impl NewMove {
    fn comment(&self) -> String {
        match (
            self.games_before,
            self.last_game.as_ref().and_then(game_label),
        ) {
            (Some(games), Some(last)) => format!(
                "New. Games before: {games}, the last {}",
                last.replace('}', ")")
            ),
            (Some(games), None) => format!("New. Games before: {games}"),
            (None, _) => "New".to_owned(),
        }
    }
}

/// Returns a short label for a game with the players' names and the year, such as `Tal - Fischer, 1959`. An unknown
/// year is left out. Returns `None` if neither player has a name.
pub fn game_label(game: &GameInfo) -> Option<String> {
    if [&game.white, &game.black]
        .iter()
        .all(|player| player.name == "?")
    {
        return None;
    }
    let name = |color: Color| &color.fold_wb(&game.white, &game.black).name;
    let players = format!("{} - {}", name(Color::White), name(Color::Black));
    Some(match game.year {
        0 => players,
        year => format!("{players}, {year}"),
    })
}

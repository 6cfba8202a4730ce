//! Checking games against repertoires.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{ByColor, Color, Move, Position, variant::VariantPosition};

use super::{Known, Side, line_text, position_after, san};
use crate::{
    error::{Error, Result},
    explorer::{NearestNames, did_you_mean},
    pgn::{
        GameReader, GameResult, Games, NameMatch, Tags, commented, folded, play_from_start,
        start_of, tag_text,
    },
    position::{BookMove, Keyed, Variant, fen_of},
    tally::Stats,
    tree::{LinesOf, Source, move_number},
};

/// What is checked.
pub struct Check<'a> {
    /// The repertoires of the sides; at least one.
    pub repertoires: ByColor<Option<&'a Known>>,
    /// Part of the name of the player whose games are checked, in any case. None checks all games.
    pub player: Option<&'a str>,
    /// Whether the name is whole.
    pub exact: bool,
    /// Whether games come with their text.
    pub with_text: bool,
}

/// A half-move that left a repertoire.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Departure {
    /// The position before it.
    pub fen: Option<String>,
    /// The number of the move: `12.` or `12...`.
    pub number: Option<String>,
    /// It in SAN; `None` if nobody left, or where the repertoire has no move at the start.
    #[serde(rename = "move")]
    pub mv: Option<String>,
    /// The moves of the repertoire in that position: own moves, or the replies that it answers.
    pub repertoire: Vec<String>,
}

/// A game and the repertoire of a side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CheckedGame {
    /// Its number among all games, from 1.
    pub game: u64,
    /// The side that is checked.
    #[serde(serialize_with = "as_text")]
    pub color: Color,
    /// The name of White.
    pub white: String,
    /// The name of Black.
    pub black: String,
    /// The result.
    pub result: &'static str,
    /// Who left the repertoire for good, `None` if nobody did.
    pub left_by: Option<Side>,
    /// Which half-move left, from 1: the player's own, or the opponent's after which the repertoire has no move, 0 if it
    /// has none at the start.
    pub ply: Option<usize>,
    /// That half-move.
    #[serde(flatten)]
    pub departure: Departure,
    /// How many own moves were moves of the repertoire until the game left for good.
    pub stayed: usize,
    /// Whether the game began outside of the repertoire and never came to it.
    pub is_elsewhere: bool,
    /// Why the game cannot be played to its end: what comes before counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The text of the game with a comment where it left, if that was asked for.
    #[serde(skip)]
    pub text: Vec<u8>,
    /// Whether it counts: not without moves that can be played.
    #[serde(skip)]
    pub is_checked: bool,
    #[serde(skip)]
    key: DeviationKey,
    /// The start and the moves before the departure.
    #[serde(skip)]
    before: (VariantPosition, Vec<Move>),
    #[serde(skip)]
    contradictions: Vec<u64>,
    #[serde(skip)]
    stats: Stats,
}

/// What makes deviations equal: the side, who left, the position and the move.
type DeviationKey = (bool, Option<Side>, u64, BookMove);

/// Games and their results for the player. Games without a known result have none.
#[derive(Copy, Clone, PartialEq, Debug, Default, Serialize)]
pub struct Results {
    /// How many.
    pub games: u64,
    /// The results.
    #[serde(flatten)]
    pub stats: Stats,
    /// The share of the points in percent, `None` without results.
    pub score: Option<f64>,
}

impl Results {
    fn add(&mut self, stats: Stats) {
        self.games += 1;
        self.stats += stats;
        self.score = (self.stats.games() > 0).then(|| self.stats.score() * 100.0);
    }
}

/// A half-move that left a repertoire, and the games that did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Deviation {
    /// The side of the repertoire.
    #[serde(serialize_with = "as_text")]
    pub color: Color,
    /// Who left it.
    pub left_by: Side,
    /// The moves before it, in the first of the games.
    pub line: String,
    /// The half-move.
    #[serde(flatten)]
    pub departure: Departure,
    /// The games.
    #[serde(flatten)]
    pub results: Results,
}

/// What came of checking games.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CheckSummary {
    /// The games that were read.
    pub read: u64,
    /// Those of the checked that stayed in the repertoire. A game that is checked for both sides is two.
    pub stayed: Results,
    /// Those that the player left it in.
    pub left_by_player: Results,
    /// Those that the opponent left it in.
    pub left_by_opponent: Results,
    /// Those that began outside of it and never came to it: games of other openings.
    pub elsewhere: Results,
    /// How many own moves of the others were moves of the repertoire until they left for good, on average.
    pub own_moves: f64,
    /// How many games had at least 1, 2, 3 ... such moves.
    pub depth: Vec<u64>,
    /// In how many of the positions that the games came to the repertoire has several moves. Each is in it.
    pub contradictions: u64,
    /// The deviations, those of most games first.
    pub deviations: Vec<Deviation>,
}

/// Checks games against the repertoires of one or both sides, and hands each result to `take`, in the order of the games.
/// A game is back in the repertoire when it comes to a position in which the repertoire has a move for the player: own moves
/// are all that a book knows, and a PGN gives the same reports. Games of variants that the repertoire does
/// not have are not checked.
///
/// # Errors
///
/// A file that cannot be read, a player whom no game has, and what `take` answers.
pub fn check(
    games: &Games<'_>,
    check: &Check<'_>,
    mut take: impl FnMut(&CheckedGame) -> Result<()>,
) -> Result<CheckSummary> {
    let player = check.player.map(folded);
    let mut found = Found::default();
    // As long as no game has the name, those that are like it.
    let unknown = check.player.map(NearestNames::new);
    let mut unknown = unknown.zip(Some(FxHashSet::default()));
    let read = games.for_each(
        |text, reader| check.game(text, reader, player.as_deref()),
        |number, checked| {
            let checked = match checked {
                Checked::Lines(checked) => checked,
                Checked::OtherPlayers(names) => {
                    for name in names {
                        if let Some((nearest, seen)) = &mut unknown
                            && seen.insert(FxBuildHasher.hash_one(&name))
                        {
                            nearest.offer(&name);
                        }
                    }
                    return Ok(());
                }
            };
            unknown = None;
            for mut game in checked {
                game.game = number;
                found.add(&mut game);
                take(&game)?;
            }
            Ok(())
        },
    )?;
    if let (Some((nearest, _)), Some(name)) = (unknown, check.player)
        && read > 0
    {
        let meant = did_you_mean(&nearest.names());
        let problem =
            format!("no game has \"{name}\" in the name of a player who is checked{meant}");
        return Err(Error::file("--player", problem));
    }
    Ok(found.summary(read))
}

/// What came of a game.
enum Checked {
    /// The repertoires that it was checked against.
    Lines(Vec<CheckedGame>),
    /// The players of these names were asked for not to be checked.
    OtherPlayers(Vec<String>),
}

/// A departure from a repertoire while a game is played.
#[derive(Copy, Clone)]
struct Left {
    by: Side,
    ply: usize,
}

/// A game as far as it was played.
struct Line<'a> {
    known: &'a Known,
    color: Color,
    plies: usize,
    left: Option<Left>,
    /// Own moves that the repertoire has, up to the departure and in all.
    stayed: usize,
    own: usize,
    /// Whether it came to a position with a move of the repertoire.
    is_met: bool,
    contradictions: Vec<u64>,
}

impl Line<'_> {
    /// A position before the next half-move, if there is one.
    fn meet(&mut self, pos: &Keyed<VariantPosition>, mv: Option<Move>) -> Result<()> {
        if pos.position().turn() == self.color {
            let known = self.known.moves(pos)?;
            let left = |by, ply| Some(Left { by, ply });
            match mv {
                _ if known.is_empty() => {
                    self.left = self.left.or(left(Side::Opponent, self.plies));
                }
                Some(mv) if known.iter().all(|known| known.mv != mv) => {
                    self.left = left(Side::Player, self.plies + 1);
                }
                _ => {
                    self.left = None;
                    self.own += usize::from(mv.is_some());
                }
            }
            self.is_met |= !known.is_empty();
            if known.len() > 1 {
                self.contradictions.push(pos.identity());
            }
            if self.left.is_none() {
                self.stayed = self.own;
            }
        }
        self.plies += usize::from(mv.is_some());
        Ok(())
    }
}

impl Check<'_> {
    /// What the repertoires say of the next game.
    fn game(
        &self,
        text: &[u8],
        reader: &mut GameReader<'_>,
        player: Option<&str>,
    ) -> Result<Checked> {
        let tags = reader.tags().clone();
        let how = match self.exact {
            true => NameMatch::Whole,
            false => NameMatch::Part,
        };
        let is_wanted = |color: Color| {
            player.is_none_or(|player| how.matches(&folded(&name_of(&tags, color)), player))
        };
        let sides = Color::ALL.into_iter();
        let sides = sides.filter(|color| self.repertoires.get(*color).is_some());
        if !sides.clone().any(is_wanted) {
            reader.skip_moves();
            let names = sides.map(|color| name_of(&tags, color)).collect();
            return Ok(Checked::OtherPlayers(names));
        }
        let variant = start_of(&tags).map_or(Variant::Standard, |start| start.0);
        let mut lines: Vec<Line<'_>> = Color::ALL
            .into_iter()
            .filter_map(|color| {
                let known = self
                    .repertoires
                    .get(color)
                    .filter(|known| known.is_for(variant))?;
                is_wanted(color).then_some(Line {
                    known,
                    color,
                    plies: 0,
                    left: None,
                    stayed: 0,
                    own: 0,
                    is_met: false,
                    contradictions: Vec::new(),
                })
            })
            .collect();
        if lines.is_empty() {
            reader.skip_moves();
            return Ok(Checked::Lines(Vec::new()));
        }
        let (begin, first_move) = (reader.game_offset(), reader.offset());
        let mut moves: Vec<(Move, usize)> = Vec::new();
        let played = play_from_start(reader, |_, before, mv, end| {
            moves.push((mv, end));
            lines
                .iter_mut()
                .try_for_each(|line| line.meet(before, Some(mv)))?;
            Ok(true)
        })?;
        let marker = played.ending.marker;
        let problem = played.ending.problem();
        let last = &played.last;
        let has_moves = !moves.is_empty();
        if (problem.is_none() || has_moves) && !last.position().legal_moves().is_empty() {
            lines
                .iter_mut()
                .try_for_each(|line| line.meet(last, None))?;
        }
        let result = GameResult::of_tags(&tags).or(marker).unwrap_or_default();
        let mut checked = Vec::new();
        for line in lines {
            let color = line.color;
            let mut game = line.checked(&played.start, &moves)?;
            game.white = name_of(&tags, Color::White);
            game.black = name_of(&tags, Color::Black);
            game.result = result.token();
            if result != GameResult::Unknown {
                game.stats = Stats::of_game(result.winner(), color);
            }
            game.problem.clone_from(&problem);
            game.is_checked = has_moves;
            checked.push(game);
        }
        if self.with_text {
            let text = &text[begin..reader.offset()];
            let comments = checked.iter().filter_map(|game| {
                let ply = game.ply?;
                let end = match ply.checked_sub(1) {
                    Some(last) => moves[last].1 - begin,
                    None => first_move - begin,
                };
                Some((end, game.comment()))
            });
            let text = commented(text, comments);
            if let Some(first) = checked.first_mut() {
                first.text = text;
            }
        }
        Ok(Checked::Lines(checked))
    }
}

fn name_of(tags: &Tags<'_>, color: Color) -> String {
    let tag: &[u8] = color.fold_wb(b"White", b"Black");
    tag_text(tags.get(tag).unwrap_or(b"?")).into_owned()
}

impl Line<'_> {
    /// What is said of the game, its tags aside.
    fn checked(self, start: &VariantPosition, moves: &[(Move, usize)]) -> Result<CheckedGame> {
        let mut game = CheckedGame {
            game: 0,
            color: self.color,
            white: String::new(),
            black: String::new(),
            result: "*",
            left_by: self.left.map(|left| left.by),
            ply: self.left.map(|left| left.ply),
            departure: Departure::default(),
            stayed: self.stayed,
            is_elsewhere: false,
            problem: None,
            text: Vec::new(),
            is_checked: true,
            key: (
                self.color.is_white(),
                self.left.map(|left| left.by),
                0,
                BookMove::NONE,
            ),
            before: (start.clone(), Vec::new()),
            contradictions: self.contradictions,
            stats: Stats::default(),
        };
        if !self.is_met && self.left.is_some() {
            let lines = LinesOf(self.known, self.color);
            let mut pos = Keyed::new(start.clone());
            let mut left = moves.iter();
            game.is_elsewhere = loop {
                if !lines.moves(&pos)?.is_empty() {
                    break false;
                }
                match left.next() {
                    Some((mv, _)) => pos.play(*mv),
                    None => break true,
                }
            };
        }
        if let Some(ply) = game.ply.and_then(|ply| ply.checked_sub(1)) {
            game.before.1 = moves[..ply].iter().map(|(mv, _)| *mv).collect();
            let pos = position_after(start, game.before.1.iter().copied());
            let mv = moves[ply].0;
            game.key.2 = pos.identity();
            game.key.3 = mv.into();
            let lines = LinesOf(self.known, self.color).moves(&pos)?;
            let pos = pos.position();
            let mut repertoire = Vec::from_iter(lines.iter().map(|known| san(pos, known.mv)));
            repertoire.sort_unstable();
            game.departure = Departure {
                fen: Some(fen_of(pos)),
                number: Some(move_number(pos)),
                mv: Some(san(pos, mv)),
                repertoire,
            };
        }
        Ok(game)
    }
}

impl CheckedGame {
    /// What a comment at the deviation says.
    fn comment(&self) -> String {
        let moves = self.departure.repertoire.join(", ");
        match (self.left_by, &*moves) {
            (_, "") => "The repertoire has no move here".to_owned(),
            (Some(Side::Opponent), moves) => format!("The repertoire answers {moves}"),
            (_, moves) => format!("The repertoire has {moves}"),
        }
    }
}

/// What was found so far. It grows with the repertoire, not with the games.
#[derive(Default)]
struct Found {
    summary: CheckSummary,
    own_moves: u64,
    deviations: FxHashMap<DeviationKey, Deviation>,
    contradictions: FxHashSet<u64>,
}

impl Found {
    fn add(&mut self, game: &mut CheckedGame) {
        if !game.is_checked {
            return;
        }
        let summary = &mut self.summary;
        if game.is_elsewhere {
            summary.elsewhere.add(game.stats);
            return;
        }
        let results = match game.left_by {
            None => &mut summary.stayed,
            Some(Side::Player) => &mut summary.left_by_player,
            Some(Side::Opponent) => &mut summary.left_by_opponent,
        };
        results.add(game.stats);
        self.own_moves += game.stayed as u64;
        if summary.depth.len() < game.stayed {
            summary.depth.resize(game.stayed, 0);
        }
        summary.depth[..game.stayed]
            .iter_mut()
            .for_each(|games| *games += 1);
        self.contradictions.extend(game.contradictions.drain(..));
        if let Some(left_by) = game.left_by {
            let deviation = self
                .deviations
                .entry(game.key)
                .or_insert_with(|| Deviation {
                    color: game.color,
                    left_by,
                    line: line_text(&game.before.0, &game.before.1).0,
                    departure: game.departure.clone(),
                    results: Results::default(),
                });
            deviation.results.add(game.stats);
        }
    }

    fn summary(self, read: u64) -> CheckSummary {
        let mut summary = self.summary;
        let checked = [
            summary.stayed,
            summary.left_by_player,
            summary.left_by_opponent,
        ];
        let checked: u64 = checked.iter().map(|results| results.games).sum();
        summary.read = read;
        summary.own_moves = self.own_moves as f64 / checked.max(1) as f64;
        summary.contradictions = self.contradictions.len() as u64;
        let mut deviations: Vec<_> = self.deviations.into_iter().collect();
        deviations.sort_by_cached_key(|((_, side, ..), deviation)| {
            let games = std::cmp::Reverse(deviation.results.games);
            let is_opponent = *side == Some(Side::Opponent);
            (
                games,
                is_opponent,
                deviation.departure.fen.clone(),
                deviation.departure.mv.clone(),
            )
        });
        summary.deviations = deviations
            .into_iter()
            .map(|(_, deviation)| deviation)
            .collect();
        summary
    }
}

fn as_text<S: serde::Serializer>(color: &Color, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(color.fold_wb("white", "black"))
}

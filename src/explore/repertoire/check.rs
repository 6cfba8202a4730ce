//! Checks games against repertoires: finds the move at which each game leaves the repertoire, and the side that leaves
//! it.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{ByColor, Color, Move, Position, variant::VariantPosition};

use super::{OpenedSource, Side, position_after, san};
use crate::{
    chess::position::{BookMove, Keyed, Variant, fen_of, line_text, move_number},
    error::{Error, ErrorKind, Result},
    explore::tree::{LinesOf, MoveSource},
    games::{
        pgn::{
            GameReader, GameResult, Games, NameMatch, PlayerNames, Tags, commented,
            play_from_start, start_of, tag_text,
        },
        results::Wdl,
        selection::Selection,
    },
    json::{self, is_zero},
};

/// The options for checking games against repertoires with [`check`].
pub struct Check<'a> {
    /// The repertoire of each side. At least one side must have a repertoire.
    pub repertoires: ByColor<Option<&'a OpenedSource>>,
    /// The filter that selects the games to check. In a checked game, [`Selection::player`] has the color of a
    /// repertoire. If the names of both players match, the game is checked only once, from White's side if there is a
    /// repertoire for White. Duplicates are not recognized.
    pub filter: &'a Selection,
    /// Whether each [`CheckedGame`] contains the text of the game.
    pub with_text: bool,
}

/// The half-move with which a game left a repertoire, and the moves that the repertoire contains in its place.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Departure {
    /// The FEN of the position before the half-move, or `None` if `mv` is `None`.
    pub fen: Option<String>,
    /// The number of the move as in PGN, `12.` or `12...`, or `None` if `mv` is `None`.
    pub number: Option<String>,
    /// The half-move in SAN. `None` if the game did not leave the repertoire, or if the repertoire contains no move at
    /// the start.
    #[serde(rename = "move")]
    pub mv: Option<String>,
    /// The moves of the repertoire in the position before the half-move, in SAN and sorted. If the player is to move,
    /// they are the player's moves; otherwise, they are the replies that the repertoire answers.
    pub repertoire: Vec<String>,
    /// Whether a line of the repertoire ends before the half-move: the half-move is the opponent's, and the repertoire
    /// answers no move in the position before it.
    pub is_line_end: bool,
}

/// The result of checking a game against the repertoire of one side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CheckedGame {
    /// The number of the game among all games, counted from 0. An index of the same games uses the same number.
    pub game: u64,
    /// The side for which the repertoire contains moves.
    #[serde(serialize_with = "json::color")]
    pub color: Color,
    /// The name of the player with White.
    pub white: String,
    /// The name of the player with Black.
    pub black: String,
    /// The result as in PGN: `1-0`, `0-1`, `1/2-1/2` or `*`.
    pub result: &'static str,
    /// The side that left the repertoire and after which the game did not return to it, or `None` if the game did not
    /// leave the repertoire.
    pub left_by: Option<Side>,
    /// The number, counted from 1, of the half-move with which the game left the repertoire. It is a move of the player
    /// that is not in the repertoire, or a move of the opponent after which the repertoire contains no move. 0 if the
    /// repertoire contains no move at the start; `None` if the game did not leave the repertoire.
    pub ply: Option<usize>,
    /// The half-move with which the game left the repertoire.
    #[serde(flatten)]
    pub departure: Departure,
    /// The number of the player's moves that are in the repertoire, up to the half-move with which the game left it for
    /// good.
    pub stayed: usize,
    /// Whether the game never reached a position of the repertoire, for example because it begins with another opening.
    pub is_elsewhere: bool,
    /// The reason why the rest of the game cannot be played, or `None` if the whole game was played. The moves before
    /// the fault are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The text of the game with a comment where it left the repertoire. Empty unless [`Check::with_text`] is set. If a
    /// game is checked for both sides, only the first of its two results contains the text, with both comments.
    #[serde(skip)]
    pub text: Vec<u8>,
    /// Whether the game counts in the summary, because at least one of its moves can be played.
    #[serde(skip)]
    pub is_checked: bool,
    #[serde(skip)]
    key: DeviationKey,
    /// The start position of the game, and the moves before the half-move with which it left the repertoire.
    #[serde(skip)]
    before: (VariantPosition, Vec<Move>),
    #[serde(skip)]
    contradictions: Vec<u64>,
    #[serde(skip)]
    stats: Wdl,
}

/// The key by which [`CheckTotals`] groups equal deviations from a repertoire. Its elements are whether the repertoire
/// is for White, the side that left the repertoire, the identity (a hash) of the position before the move, and the
/// move.
type DeviationKey = (bool, Option<Side>, u64, BookMove);

/// The number of games in a group of checked games, and the player's results in them. A game without a result counts in
/// `games`, but not in `stats`.
#[derive(Copy, Clone, PartialEq, Debug, Default, Serialize)]
pub struct CheckedResults {
    /// The number of games.
    pub games: u64,
    /// The player's wins, draws and losses in games with a result.
    #[serde(flatten)]
    pub stats: Wdl,
    /// The number of games without a result. The score is calculated from the other games.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// The player's score in percent, or `None` if no game has a result.
    pub score: Option<f64>,
}

impl CheckedResults {
    fn add(&mut self, stats: Wdl) {
        self.games += 1;
        self.unfinished += u64::from(stats.games() == 0);
        self.stats += stats;
        self.score = (self.stats.games() > 0).then(|| self.stats.score() * 100.0);
    }
}

/// A half-move with which one or more games left a repertoire, and the results of these games.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Deviation {
    /// The side for which the repertoire contains moves.
    #[serde(serialize_with = "json::color")]
    pub color: Color,
    /// The side that left the repertoire with the half-move.
    pub left_by: Side,
    /// The moves before the half-move, in SAN with move numbers. If games reached the half-move by different moves,
    /// these are the moves of the first game.
    pub line: String,
    /// The half-move, with the moves that the repertoire contains in its place.
    #[serde(flatten)]
    pub departure: Departure,
    /// The number of games that left the repertoire with the half-move, and the player's results in them.
    #[serde(flatten)]
    pub results: CheckedResults,
}

/// The summary of checking games against repertoires: the total numbers of games, and the half-moves with which games
/// left the repertoires.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CheckSummary {
    /// The number of games that were read.
    pub read: u64,
    /// The checked games that never left the repertoire. A game that is checked for both sides counts twice.
    pub stayed: CheckedResults,
    /// The checked games in which the player left the repertoire.
    pub left_by_player: CheckedResults,
    /// The checked games in which the opponent left the repertoire before the end of a line.
    pub left_by_opponent: CheckedResults,
    /// The checked games that followed the repertoire to the end of a line, so that [`Departure::is_line_end`] is
    /// `true`.
    pub line_ended: CheckedResults,
    /// The checked games that never reached a position of the repertoire, such as games of other openings.
    pub elsewhere: CheckedResults,
    /// The mean number of moves of the repertoire that the player made before a game left it for good. Games of other
    /// openings are not included.
    pub own_moves: f64,
    /// The number of games in which the player made at least 1, 2, 3, ... moves of the repertoire before the game left
    /// it for good.
    pub depth: Vec<u64>,
    /// The number of positions reached in the games for which the repertoire contains several moves. Each of these
    /// moves is accepted.
    pub contradictions: u64,
    /// The deviations, sorted by the number of games in descending order.
    pub deviations: Vec<Deviation>,
    /// The names of players in the checked games that match [`Selection::player`], sorted by number of games in
    /// descending order. Contains at most 100 names, which are chosen from the first 10,000 names that match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched_players: Vec<String>,
    /// Warnings about games of unknown variants, and about names that match several players. Each warning is a single
    /// line of text.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Checks games against the repertoires of one or both sides. Calls `take` with each result, in the order of the games.
///
/// A game that has left a repertoire returns to it when it reaches a position in which the repertoire contains a move
/// for the player. Moves of the opponent in a repertoire do not matter. Games of a variant that the repertoire does not
/// contain are skipped.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or if [`Selection::player`] matches no player. Stops if `take` returns an
/// error, and returns this error.
pub fn check(
    games: &Games<'_>,
    check: &Check<'_>,
    mut take: impl FnMut(&CheckedGame) -> Result<()>,
) -> Result<CheckSummary> {
    let mut found = CheckTotals::default();
    let sides = ByColor::new_with(|color| check.filter.for_side(color));
    let mut names = PlayerNames::new(check.filter.player.clone(), check.filter.name_match());
    let mut is_known = check.filter.player.is_empty();
    let read = games.for_each(
        |text, reader| check.game(&sides, text, reader),
        |number, checked| {
            let checked = match checked {
                Checked::Lines(checked) => checked,
                Checked::OtherPlayers(others) => {
                    others.iter().for_each(|name| names.add_other(name));
                    return Ok(());
                }
            };
            is_known = true;
            for mut game in checked {
                if !check.filter.player.is_empty() {
                    names.add_matched(game.color.fold_wb(&game.white, &game.black), 1);
                }
                game.game = number - 1;
                found.add(&mut game);
                take(&game)?;
            }
            Ok(())
        },
    )?;
    if !is_known && read.games > 0 {
        let (names, meant) = (check.filter.player.join("\" or \""), names.did_you_mean());
        let unknown = read.unknown_variants.in_error();
        let problem =
            format!("no game has a player whose name contains \"{names}\"{meant}{unknown}");
        return Err(Error::option(ErrorKind::Unsuitable, "player", problem));
    }
    let summary = found.summary(read.games);
    let warnings = read.warnings().into_iter().chain(names.note());
    Ok(CheckSummary {
        matched_players: names.matched(),
        warnings: warnings.collect(),
        ..summary
    })
}

/// The outcome of checking one game: the results, or the reason why it was not checked.
enum Checked {
    /// The results, one for each repertoire against which the game was checked. Empty if [`Check::filter`] excludes the
    /// game, or if no repertoire is for its variant.
    Lines(Vec<CheckedGame>),
    /// The game was not checked, because [`Selection::player`] matches no player of a side with a repertoire. Contains
    /// the names of the players of these sides.
    OtherPlayers(Vec<String>),
}

/// The last half-move with which a game left a repertoire for good, and the side that played it.
#[derive(Copy, Clone)]
struct LastDeparture {
    by: Side,
    ply: usize,
}

/// The state of checking a game against one repertoire, which describes the moves that have been checked so far.
struct GameState<'a> {
    known: &'a OpenedSource,
    color: Color,
    plies: usize,
    left: Option<LastDeparture>,
    /// The number of the player's moves that are in the repertoire. `stayed` counts them up to the half-move with which
    /// the game left the repertoire, and `own` counts them in the whole game.
    stayed: usize,
    own: usize,
    /// Whether the game has reached a position in which the repertoire contains a move for the player.
    is_met: bool,
    contradictions: Vec<u64>,
}

impl GameState<'_> {
    /// Updates the state for the next half-move of the game. `pos` is the position before the half-move, and `mv` is
    /// the move. At the end of the game, `pos` is the last position, and `mv` is `None`.
    fn advance(&mut self, pos: &Keyed<VariantPosition>, mv: Option<Move>) -> Result<()> {
        if pos.position().turn() == self.color {
            let known = self.known.moves(pos)?;
            let left = |by, ply| Some(LastDeparture { by, ply });
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
    /// Checks the current game of `reader` against the repertoires. Returns [`Checked::OtherPlayers`] if no side that
    /// has a repertoire was played by one of the wanted players ([`Selection::player`]).
    ///
    /// `text` is the whole text that the reader reads. `filters` contains the filter for the games of each side.
    ///
    /// # Errors
    ///
    /// Returns an error only if a repertoire cannot be read.
    fn game(
        &self,
        filters: &ByColor<Selection>,
        text: &[u8],
        reader: &mut GameReader<'_>,
    ) -> Result<Checked> {
        let tags = reader.tags().clone();
        let (players, how) = (&self.filter.player, self.filter.name_match());
        let sides = Color::ALL.into_iter();
        let sides = sides.filter(|color| self.repertoires.get(*color).is_some());
        let named = sides
            .clone()
            .filter(|color| has_name(&tags, *color, players, how));
        // If both players match, the game is checked for one side only.
        let most = if players.is_empty() { 2 } else { 1 };
        let mut wanted: Vec<Color> = named.take(most).collect();
        if wanted.is_empty() {
            reader.skip_moves();
            let names = sides.map(|color| name_of(&tags, color)).collect();
            return Ok(Checked::OtherPlayers(names));
        }
        wanted.retain(|color| filters.get(*color).admits(&tags));
        let variant = start_of(&tags).map_or(Variant::Standard, |start| start.0);
        let mut lines: Vec<GameState<'_>> = wanted
            .into_iter()
            .filter_map(|color| {
                let known = self
                    .repertoires
                    .get(color)
                    .filter(|known| known.is_for(variant))?;
                Some(GameState {
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
        let (mut moves, mut identities) = (Vec::new(), Vec::new());
        // The filters of both sides have the same condition on positions.
        let mut matcher = self.filter.matcher(variant);
        let played = play_from_start(reader, |_, before, mv, end| {
            if let Some(matcher) = &mut matcher {
                matcher.visit(before.position(), Some(mv));
            }
            moves.push((mv, end));
            identities.push(before.identity());
            lines
                .iter_mut()
                .try_for_each(|line| line.advance(before, Some(mv)))?;
            Ok(true)
        })?;
        let marker = played.ending.marker;
        let problem = played.ending.problem();
        let last = &played.last;
        let has_moves = !moves.is_empty();
        if (problem.is_none() || has_moves) && !last.position().legal_moves().is_empty() {
            lines
                .iter_mut()
                .try_for_each(|line| line.advance(last, None))?;
        }
        let result = tags.result().or(marker).unwrap_or_default();
        identities.push(last.identity());
        if let Some(matcher) = &mut matcher {
            matcher.visit(last.position(), None);
        }
        lines.retain(|line| {
            let filter = filters.get(line.color);
            filter.admits_played(&tags, result, variant, &identities, matcher.as_ref())
        });
        let mut checked = Vec::new();
        for line in lines {
            let color = line.color;
            let mut game = line.checked(&played.start, &moves)?;
            game.white = name_of(&tags, Color::White);
            game.black = name_of(&tags, Color::Black);
            game.result = result.token();
            if result != GameResult::Unknown {
                game.stats = Wdl::of_game(result.winner(), color);
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

/// Returns the name of the player with the color `color` from the tags of a game, or `?` if the tags do not contain it.
fn name_of(tags: &Tags<'_>, color: Color) -> String {
    let tag: &[u8] = color.fold_wb(b"White", b"Black");
    tag_text(tags.get(tag).unwrap_or(b"?")).into_owned()
}

/// Returns `true` if one of `names` matches the player with the color `color` in the tags of a game. `how` says how
/// names are compared. Also returns `true` if `names` is empty.
fn has_name(tags: &Tags<'_>, color: Color, names: &[String], how: NameMatch) -> bool {
    names.is_empty() || how.matches_any(name_of(tags, color).as_bytes(), names)
}

impl GameState<'_> {
    /// Completes the check of a game after its last move, and returns the result. `start` is the position before the
    /// first move. `moves` contains the moves, each with the offset at which its text ends. The caller must still set
    /// the players' names, the result and the number of the game.
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
            stats: Wdl::default(),
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
                is_line_end: self.is_met
                    && game.left_by == Some(Side::Opponent)
                    && repertoire.is_empty(),
                repertoire,
            };
        }
        Ok(game)
    }
}

impl CheckedGame {
    /// Returns a comment on the move with which the game left the repertoire. It lists the moves that the repertoire
    /// contains in this position.
    fn comment(&self) -> String {
        let moves = self.departure.repertoire.join(", ");
        match (self.left_by, &*moves) {
            (_, "") => "The repertoire has no move here".to_owned(),
            (Some(Side::Opponent), moves) => format!("The repertoire answers {moves}"),
            (_, moves) => format!("The repertoire has {moves}"),
        }
    }
}

/// The totals of all games that have been checked so far. The memory for them depends on the number of different
/// deviations, not on the number of games.
#[derive(Default)]
struct CheckTotals {
    summary: CheckSummary,
    own_moves: u64,
    deviations: FxHashMap<DeviationKey, Deviation>,
    contradictions: FxHashSet<u64>,
}

impl CheckTotals {
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
            Some(_) if game.departure.is_line_end => &mut summary.line_ended,
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
                    results: CheckedResults::default(),
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
            summary.line_ended,
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

//! Prepares a player for an opponent: shows the opponent's moves, with the player's own results and answers.

use std::{cmp::Reverse, ops::AddAssign};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{
    expectation::{Expectation, FEW_GAMES, PlayerScores, score_range},
    filter::{SourceFilter, SourceFilters},
    open_index::{GameSummary, OpenIndex, date_of_number, text_of_number},
    query::Line,
    recency::{HalfLife, Recency},
    reply::Reply,
    scan::{Collector, PassingGames, scan, scan_games},
    sources::Sources,
    tally::PlayerTally,
    weak_lines::{JudgedLine, are_related, expected_loss, listed_by_chance},
};
use crate::{
    chess::position::{BookMove, identity},
    error::{Error, Result},
    games::{
        openings::{self, Opening},
        results::Results,
        selection::Selection,
    },
    json::rounded,
};

/// The number of years for which games count as recent. A game is recent if it was played at most `RECENT_YEARS`
/// calendar years before the year of the opponent's last game.
const RECENT_YEARS: u16 = 2;

/// The minimum number of games in which the player must have played a move for it to count as the player's answer to a
/// move of the opponent. Moves of the player's repertoire count as answers even if the player has never played them.
const MIN_ANSWER_GAMES: u64 = 5;

/// The maximum number of the player's moves that are listed in a position where the player has no usual answer.
const MAX_TRIED: usize = 3;

/// The minimum probability of a line to be considered likely. Likely lines to which the player has no usual answer come
/// first in the list of lines to prepare.
const LIKELY_GAP_CHANCE: f64 = 0.1;

/// The maximum number of lines without a usual answer in the list of lines to prepare. The number of listed lines at
/// whose end the player's repertoire stops has the same limit.
const MAX_LISTED_GAPS: usize = 2;

/// Limits the search for lines to prepare: positions that are reached with a probability of less than `1 / MAX_RARITY`
/// are not examined.
const MAX_RARITY: f64 = 500.0;

/// The maximum number of half-moves of a line in the list of lines to prepare.
const MAX_LINE_PLIES: usize = 40;

/// A function that returns the moves that the player's repertoire recommends in a position, the preferred move first.
pub type RepertoireMoves<'a> = &'a (dyn Fn(&VariantPosition) -> Result<Vec<Move>> + Sync);

/// A query for a [`Preparation`], which consists of a position, filters that name the player and the opponent, and the
/// player's repertoire.
pub struct PrepareQuery<'a> {
    /// The position, and the moves that led to it.
    pub line: Line,
    /// The filters. `players` contains the names of the player who prepares, and `opponents` the names of the opponent;
    /// neither may be empty. The other filters apply to the games of both people. `color`, `won` and `lost` are
    /// ignored.
    pub filters: Selection,
    /// The color of the player. The opponent has the other color.
    pub color: Color,
    /// The player's repertoire, or `None` if the player has none.
    pub repertoire: Option<RepertoireMoves<'a>>,
    /// The maximum number of lines to prepare that are listed, or 0 for no list.
    pub lines: usize,
    /// The minimum number of games in which the opponent must have played a line for it to be listed, or a move for it
    /// to count as a gap in the player's preparation. Usually [`MIN_REPLY_GAMES`](super::MIN_REPLY_GAMES).
    pub min_games: u64,
    /// The number of years after which a game counts half as much in the probability of a line, or `None` if all games
    /// count equally. A game without a known year counts as much as the first game of the same player with one.
    pub half_life: Option<HalfLife>,
    /// A function that is called for each examined position, and returns `false` to cancel the preparation.
    pub should_continue: &'a (dyn Fn() -> bool + Sync),
}

/// The preparation of a player for an opponent. It lists the moves that were played in a position, with the results of
/// both players.
///
/// The player has one given color in a preparation, and the opponent has the other color. Games in which they had the
/// opposite colors do not count.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preparation {
    /// All games of the opponent that pass the filters, whatever positions they reached.
    pub theirs: PlayerGames,
    /// All games of the player that pass the filters.
    pub yours: PlayerGames,
    /// The games of the player and the opponent against each other.
    pub met: PlayerGames,
    /// The number of games of the two against each other in which the colors were reversed: the player had the other
    /// color. The rest of the preparation does not contain these games.
    #[serde(skip)]
    pub met_reversed: u64,
    /// The numbers of games that reached the position.
    pub here: GamesHere,
    /// The first year whose games count as recent, which is two years before the opponent's last game. `None` if no
    /// year is known.
    pub recent_since: Option<u16>,
    /// The moves of the side to move, sorted by its number of games in descending order. If the player is to move,
    /// they include the moves of the repertoire.
    pub moves: Vec<PreparedMove>,
    /// The lines to prepare first, or `None` if the query requests none. Lines to which the player has no answer come
    /// first if one game in ten reaches them. The lines with the largest expected loss of points follow, and then the
    /// other most likely lines to which the player has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<PreparedLine>>,
    /// How many of these lines are listed because of an expected loss, and how many chance alone would list. `None` if
    /// the query requests no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weak_lines: Option<WeakLines>,
    /// The half-life of the query, with which the probabilities of the lines are calculated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_life: Option<HalfLife>,
    /// The likeliest lines at whose end the repertoire answers no move of the opponent, because its own line ends
    /// there. `None` without a repertoire, or if the query requests no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_ends: Option<Vec<PreparedLine>>,
}

/// The numbers of lines in which the player scores less than expected.
#[derive(Copy, Clone, PartialEq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WeakLines {
    /// The number of lines whose score was compared with the expected score, because the player has at least ten games
    /// with a result after them. Likely gaps, which are listed whatever their score is, do not count.
    pub judged: u64,
    /// The number of these lines that are listed because of an expected loss.
    pub listed: u64,
    /// The mean number of these lines that would be listed because of an expected loss if the player's true score were
    /// the expected score in each line.
    pub by_chance: f64,
}

/// A summary of one player's games: the results, the player's mean rating, and the date of the last game.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlayerGames {
    /// The numbers of won, drawn, lost and unfinished games.
    #[serde(flatten)]
    pub results: Results,
    /// The mean rating of the player, or `None` if no rating is known.
    pub rating: Option<u64>,
    /// The date of the newest game: `2006-01-02`, or only its known parts. `None` if no date is known.
    pub last_played: Option<String>,
}

/// The numbers of games that reached a position: one number for the opponent, and one for the player who prepares.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GamesHere {
    /// The opponent's games.
    pub theirs: u64,
    /// The player's games.
    pub yours: u64,
}

/// A move in a [`Preparation`], with the results of both players and the player's answer.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PreparedMove {
    /// The move in UCI notation, with castling as king takes rook.
    pub uci: String,
    /// The move in SAN.
    pub san: String,
    /// The opening of the position after the move, or `None` if the position has no name.
    pub opening: Option<Opening>,
    /// If the opponent is to move, the opponent's games in which the move was played in the position. Otherwise, the
    /// opponent's games that reached the position after the move.
    pub theirs: TheirGames,
    /// The player's games that reached the position after the move, by any order of moves.
    pub yours: Results,
    /// The 80 % confidence interval of the player's score in these games, as in [`PreparedLine::score_range`].
    pub score_range: Option<[f64; 2]>,
    /// The score that the player's other games predict for these games, as in [`PreparedLine::expected_score`].
    pub expected_score: Option<f64>,
    /// If the opponent is to move, the player's answer to the move. Otherwise, the move itself if it is one of the
    /// player's answers in the position. `None` if the player has no answer.
    pub answer: Option<PreparedAnswer>,
    /// Whether the move is a gap of the player (see [`Reply`]). `false` if the player is to move.
    pub gap: bool,
    /// Whether a line of the repertoire ends before the move. `false` if the player is to move.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub line_end: bool,
    /// Whether the player's answer is unknown, because the index was made with `--max-ply` and does not contain the
    /// half-move after this move.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unindexed: bool,
    /// The player's moves in the position after the opponent's move, if none of them was played in enough games to be
    /// the answer. At most three moves, the most frequent first. Empty if a repertoire is given, or if the player is to
    /// move.
    #[serde(skip)]
    pub tried: Vec<PreparedAnswer>,
}

/// The results of the opponent's games in which a move was played, and how many of these games are recent. A game is
/// recent if it was played at most two years before the opponent's last game.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TheirGames {
    /// The numbers of won, drawn, lost and unfinished games.
    #[serde(flatten)]
    pub results: Results,
    /// The number of recent games among these games.
    pub recent: u64,
}

/// The player's answer to a move of the opponent. If the player's repertoire contains a move in the position after the
/// opponent's move, this is the answer. Otherwise, the answer is the move that the player played most often in this
/// position, in at least five games.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PreparedAnswer {
    /// The move in UCI notation, with castling as king takes rook.
    pub uci: String,
    /// The move in SAN.
    pub san: String,
    /// The number of the player's games in which the answer was played in the position.
    pub games: u64,
    /// Whether the answer comes from the repertoire or from games.
    pub source: AnswerSource,
}

/// The source of a player's answer to a move of the opponent: the player's repertoire or the player's games.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AnswerSource {
    /// The repertoire.
    Repertoire,
    /// The player's games.
    Games,
}

impl AnswerSource {
    /// Returns the word that marks an answer from this source in an output: `repertoire` or `usual`.
    pub fn word(self) -> &'static str {
        match self {
            AnswerSource::Repertoire => "repertoire",
            AnswerSource::Games => "usual",
        }
    }
}

/// A line that the player should prepare, because the player scores badly in it or has no answer to it. The line
/// ends with a move of the opponent.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PreparedLine {
    /// The moves after the position of the query, in UCI notation with castling as king takes rook.
    pub play: Vec<String>,
    /// The moves of the line in SAN.
    pub san: Vec<String>,
    /// The opening of the last position of the line that has a name, or `None` if no position has one.
    pub opening: Option<Opening>,
    /// The probability that a game reaches the end of the line after it has reached the position of the query, by any
    /// order of moves. It is the product of the shares of the moves in the games of the side that plays them, where
    /// games count by the half-life of the query. The moves of a repertoire have equal shares.
    pub chance: f64,
    /// The opponent's games that reached the end of the line, by any order of moves.
    pub theirs: TheirGames,
    /// The player's games that reached the end of the line.
    #[serde(flatten)]
    pub yours: Results,
    /// The player's score in percent in these games, or `None` if no game has a result.
    pub score: Option<f64>,
    /// The 80 % confidence interval of the score, in percent, or `None` if no game has a result.
    pub score_range: Option<[f64; 2]>,
    /// The score in percent that the player's other games with this color predict for these games (see
    /// [`OpeningRow::points`](super::OpeningRow::points)). `None` if no game has a result, or if there are no other
    /// games.
    pub expected_score: Option<f64>,
    /// The expected loss of points per game: `chance` times the difference between the expected score and `score`,
    /// reduced by the part that chance explains on average. `None` if the expected score is not above the interval, for
    /// fewer than ten games with a result, if the loss is less than 0.005 points, and for a line that is listed because
    /// the player has no answer.
    pub loss: Option<f64>,
    /// The player's answer to the last move of the line, or `None` if the player has no answer.
    pub answer: Option<PreparedAnswer>,
    /// Whether the last move of the line is a gap (see [`Reply`]). Without a repertoire, a move is not a gap if the
    /// player has played a move after it, even if too rarely for a usual answer.
    pub gap: bool,
    /// Whether a line of the repertoire ends before the last move of this line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub line_end: bool,
}

impl PreparedLine {
    /// Returns `true` if the line is listed because the player has no usual answer to its last move.
    fn is_unanswered(&self) -> bool {
        self.gap || self.answer.is_none() && !self.line_end
    }

    /// Returns the moves of the line in SAN with move numbers, such as `1. e4 c5 2. Nf3`. `start` is the position in
    /// which the line begins.
    pub fn text(&self, start: &VariantPosition) -> String {
        let mut text = String::new();
        let mut number = start.fullmoves().get();
        let mut turn = start.turn();
        for san in &self.san {
            if turn.is_white() {
                text += &format!("{number}. ");
            } else if text.is_empty() {
                text += &format!("{number}... ");
            }
            text += san;
            text.push(' ');
            number += u32::from(turn.is_black());
            turn = !turn;
        }
        text.pop();
        text
    }

    /// Returns the player's answer in SAN with its move number, such as `2... d6`, or `None` if the player has no
    /// answer. `start` is the position in which the line begins.
    pub fn answer_text(&self, start: &VariantPosition) -> Option<String> {
        let answer = self.answer.as_ref()?;
        let plies = self.san.len() + usize::from(start.turn().is_black());
        let number = start.fullmoves().get() as usize + plies / 2;
        let dots = if plies.is_multiple_of(2) { "." } else { "..." };
        Some(format!("{number}{dots} {}", answer.san))
    }
}

/// Prepares a player for an opponent. Implements [`Explorer::prepare`](super::Explorer::prepare).
pub(super) fn prepare(sources: &Sources, query: &PrepareQuery<'_>) -> Result<Preparation> {
    let filters = &query.filters;
    if filters.counts_once() {
        sources.duplicates_while(query.should_continue)?;
    }
    let (player, opponent) = (&filters.player, &filters.opponent);
    // The games from which the player's score is predicted, if they differ from the player's games that pass.
    let compared = match filters.of_any_opening() {
        Some(any) => Some(filters_of(sources, &any, player, &[], query.color)?),
        None => None,
    };
    let compared = compared.map(|compared| player_tally(&compared, &query.line, query.color));
    let of = |players: &[String], opponents: &[String], color| {
        filters_of(sources, filters, players, opponents, color)
    };
    let (theirs, yours) = (
        of(opponent, &[], !query.color)?,
        of(player, &[], query.color)?,
    );
    let met = |color| -> Result<PlayerGames> {
        let met = of(player, opponent, color)?;
        Ok(player_tally(&met, &query.line, color).games())
    };
    // Every list below is filtered, so filtering all games once in advance saves time.
    for (_, filter) in theirs.of_sources.iter().chain(&yours.of_sources) {
        filter.precompute();
    }
    let (all_theirs, all_yours) = (
        player_tally(&theirs, &query.line, !query.color),
        player_tally(&yours, &query.line, query.color),
    );
    let last_year = date_of_number(all_theirs.player.last).year();
    let recent_since = last_year.map(|year| year.saturating_sub(RECENT_YEARS));
    let side = |filters, games: &AllGames| Side {
        filters,
        recency: Recency::new(query.half_life, games.first, games.player.last),
    };
    let preparing = Preparing {
        query,
        theirs: side(&theirs, &all_theirs),
        yours: side(&yours, &all_yours),
        compared: compared.as_ref().unwrap_or(&all_yours),
        recent_since: recent_since.unwrap_or(u16::MAX),
    };
    let pos = query.line.position();
    let theirs_here = preparing.position(&preparing.theirs, pos)?;
    let yours_here = preparing.position(&preparing.yours, pos)?;
    let here = GamesHere {
        theirs: theirs_here.all.results.games(),
        yours: yours_here.all.results.games(),
    };
    let listed = match query.lines {
        0 => None,
        _ => Some(preparing.lines()?),
    };
    let (lines, line_ends, weak_lines) = match listed {
        Some(listed) => (
            Some(listed.lines),
            Some(listed.line_ends),
            Some(listed.weak_lines),
        ),
        None => (None, None, None),
    };
    Ok(Preparation {
        theirs: all_theirs.games(),
        yours: all_yours.games(),
        met: met(query.color)?,
        met_reversed: met(!query.color)?.results.games(),
        here,
        recent_since,
        moves: if pos.turn() == query.color {
            preparing.own_moves(&yours_here)?
        } else {
            preparing.their_moves(&theirs_here)?
        },
        lines,
        weak_lines,
        half_life: query.half_life,
        line_ends: line_ends.filter(|_| query.repertoire.is_some()),
    })
}

/// Creates the filters for the games in which `players` had the color `color` against `opponents`, or against anyone if
/// `opponents` is empty. All other conditions are taken from `filters`. If each game counts once, the groups of
/// duplicates must already have been found.
fn filters_of<'a>(
    sources: &'a Sources,
    filters: &Selection,
    players: &[String],
    opponents: &[String],
    color: Color,
) -> Result<SourceFilters<'a>> {
    let selection = Selection {
        player: players.to_vec(),
        opponent: opponents.to_vec(),
        color: Some(color),
        result: Vec::new(),
        duplicates: None,
        ..filters.clone()
    };
    let prepared = sources.filters_of_all_games(&selection, "a preparation")?;
    if !filters.counts_once() {
        return Ok(prepared);
    }
    // Both players may have several names in the games of either.
    Ok(prepared.with_duplicates(sources.duplicates(filters)?))
}

/// The opponent's games in a preparation, each with a weight that depends on its date.
pub(crate) struct WeightedGames<'a> {
    query: &'a PrepareQuery<'a>,
    filters: SourceFilters<'a>,
    recency: Recency,
}

impl<'a> WeightedGames<'a> {
    /// Finds the games of the opponent of `query`. If each game counts once, the groups of duplicates must already have
    /// been found, as they are after a call of [`prepare`].
    pub(super) fn new(
        sources: &'a Sources,
        query: &'a PrepareQuery<'a>,
    ) -> Result<WeightedGames<'a>> {
        let color = !query.color;
        let filters = filters_of(sources, &query.filters, &query.filters.opponent, &[], color)?;
        for (_, filter) in &filters.of_sources {
            filter.precompute();
        }
        let all = player_tally(&filters, &query.line, color);
        Ok(WeightedGames {
            recency: Recency::new(query.half_life, all.first, all.player.last),
            query,
            filters,
        })
    }

    /// Returns, for each move that was played in the position `pos`, the sum of the weights of its games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged. Returns [`Error::Interrupted`] if the preparation is cancelled.
    pub(crate) fn weights(&self, pos: &VariantPosition) -> Result<FxHashMap<BookMove, f64>> {
        let side = Side {
            filters: &self.filters,
            recency: self.recency,
        };
        let games = side.scan(self.query, pos, u16::MAX, || None)?;
        let weights = games
            .moves
            .iter()
            .map(|(mv, tally)| (*mv, tally.weight as f64));
        Ok(weights.collect())
    }
}

/// The results of all of a player's games that pass the filters, regardless of the positions that they reached.
#[derive(Clone, Default)]
struct AllGames {
    results: Results,
    player: PlayerTally,
    /// The date number of the first game with a known year, or 0 if there is none.
    first: u32,
    scores: PlayerScores,
    /// The numbers of the finished games in ascending order. Each comes with the rating of the opponent, which is 0 if
    /// unknown.
    finished: Vec<(u64, u16)>,
}

impl AllGames {
    fn games(&self) -> PlayerGames {
        PlayerGames {
            results: self.results,
            rating: self.player.own.rounded(),
            last_played: text_of_number(self.player.last),
        }
    }

    fn add(&mut self, number: u64, game: &GameSummary, color: Color) {
        self.results.add(game.result());
        self.player.add(game, color);
        self.scores.add_game(game, color);
        if game.has_result() {
            self.finished.push((number, game.elo_of(!color)));
        }
        if game.year() > 0 && (self.first == 0 || game.date < self.first) {
            self.first = game.date;
        }
    }

    fn joined(mut self, other: AllGames) -> AllGames {
        self.results += other.results;
        self.player += other.player;
        self.scores += &other.scores;
        self.finished.extend(other.finished);
        self.first = match (self.first, other.first) {
            (0, first) | (first, 0) => first,
            (one, other) => one.min(other),
        };
        self
    }
}

/// Sums up the results of a player's games that pass the filters, regardless of the positions that they reached. Only
/// games of the variant of `line` count. `color` is the color of the player in these games.
fn player_tally(filters: &SourceFilters<'_>, line: &Line, color: Color) -> AllGames {
    let add = |sum: &mut AllGames, source: &OpenIndex, _: &SourceFilter<'_>, id, variant| {
        if line.variant().is_played_like(variant) {
            sum.add(source.first + u64::from(id), &source.game(id), color);
        }
    };
    let mut games = scan_games(filters, add, AllGames::joined);
    games.finished.sort_unstable();
    games
}

/// The results of a set of games, with the number of recent games among them. A game is recent if it was played at most
/// two years before the opponent's last game.
#[derive(Copy, Clone, Default)]
struct RecentTally {
    results: Results,
    recent: u64,
    /// The sum of the weights of the games.
    weight: u128,
}

impl RecentTally {
    fn add(&mut self, game: &GameSummary, recent_since: u16, recency: Recency) {
        self.results.add(game.result());
        self.recent += u64::from(game.year() >= recent_since);
        self.weight += recency.weight(game);
    }

    fn games(&self) -> TheirGames {
        TheirGames {
            results: self.results,
            recent: self.recent,
        }
    }
}

impl AddAssign for RecentTally {
    fn add_assign(&mut self, other: RecentTally) {
        self.results += other.results;
        self.recent += other.recent;
        self.weight += other.weight;
    }
}

/// The games of one player that reached a position, grouped by the move that was played in it.
struct PositionGames {
    /// The results of all games, including games that end in the position.
    all: RecentTally,
    /// The results of the games with each move.
    moves: FxHashMap<BookMove, RecentTally>,
    /// Whether some games continue after the position with a move that the index does not contain.
    is_cut: bool,
    recent_since: u16,
    recency: Recency,
    /// The finished games, or `None` if the player's score is not judged.
    judged: Option<FinishedGames>,
}

/// The finished games of the player who prepares, from which the player's score is judged.
#[derive(Default)]
struct FinishedGames {
    scores: PlayerScores,
    numbers: Vec<u64>,
}

impl Collector for PositionGames {
    fn add_games(
        &mut self,
        source: &OpenIndex,
        filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        for (id, mv) in passing.iter() {
            let game = source.game(id);
            self.all.add(&game, self.recent_since, self.recency);
            if mv != BookMove::NONE {
                let tally = self.moves.entry(mv).or_default();
                tally.add(&game, self.recent_since, self.recency);
            } else {
                self.is_cut |= source.is_cut(id);
            }
            if let Some(judged) = self.judged.as_mut().filter(|_| game.has_result()) {
                let color = filter.player_of(id as usize);
                judged.scores.add_game(&game, color);
                judged.numbers.push(source.first + u64::from(id));
            }
        }
    }

    fn join(&mut self, other: PositionGames) {
        self.all += other.all;
        self.is_cut |= other.is_cut;
        for (mv, more) in other.moves {
            *self.moves.entry(mv).or_default() += more;
        }
        if let Some((judged, more)) = self.judged.as_mut().zip(other.judged) {
            judged.scores += &more.scores;
            judged.numbers.extend(more.numbers);
        }
    }
}

impl PositionGames {
    /// Returns the moves with their results, sorted by number of games in descending order. Moves with equal numbers of
    /// games are sorted alphabetically by their UCI notation.
    fn by_games(&self) -> Vec<(BookMove, RecentTally)> {
        let mut moves = Vec::from_iter(self.moves.iter().map(|(mv, tally)| (*mv, *tally)));
        moves.sort_by_cached_key(|(mv, tally)| (Reverse(tally.results.games()), mv.to_string()));
        moves
    }

    fn games_with(&self, mv: Move) -> u64 {
        let tally = self.moves.get(&mv.into());
        tally.map_or(0, |tally| tally.results.games())
    }
}

/// The moves with which the player answers in a position, the preferred move first. All of them come from the same
/// source: the repertoire or the player's games.
struct Answers {
    moves: Vec<Move>,
    source: AnswerSource,
}

impl Answers {
    /// Returns the preferred answer. `games` contains the player's games that reached the position `pos`, in which the
    /// player is to move.
    fn first(&self, pos: &VariantPosition, games: &PositionGames) -> PreparedAnswer {
        let first = self.moves[0];
        prepared_answer(pos, first, games.games_with(first), self.source)
    }
}

/// A node in the search for lines that a player should prepare. It consists of a position and the likeliest path to it.
struct SearchNode {
    pos: VariantPosition,
    /// The moves of the likeliest path to the position.
    moves: Vec<Move>,
    /// The probability of the likeliest path. It is included in `chance`.
    path_chance: f64,
    /// The probability of the position: the sum over all paths of this length that lead to it.
    chance: f64,
    /// The number of games with the last move of the path: the largest number of all paths.
    games: u64,
    opening: Option<Opening>,
}

/// The data from which a [`Preparation`] is built: the query, the games of both people, and the first year whose games
/// count as recent.
struct Preparing<'a> {
    query: &'a PrepareQuery<'a>,
    theirs: Side<'a>,
    yours: Side<'a>,
    /// The player's games from which scores are predicted (see [`OpeningTable`](super::OpeningTable)).
    compared: &'a AllGames,
    recent_since: u16,
}

/// One of the two people in a preparation: the filters for this person's games, and the weights of the games.
struct Side<'a> {
    filters: &'a SourceFilters<'a>,
    recency: Recency,
}

/// The lines that the search for lines to prepare selected for an answer.
struct ListedLines {
    lines: Vec<PreparedLine>,
    /// The lines at whose end the player's repertoire stops.
    line_ends: Vec<PreparedLine>,
    weak_lines: WeakLines,
}

/// The lines that the search for lines to prepare found: candidates for the list, and lines whose score was compared
/// with the expected score.
#[derive(Default)]
struct Candidates {
    lines: Vec<PreparedLine>,
    judged: Vec<JudgedLine>,
}

/// The result of examining one node of the search for lines to prepare.
struct ExpandedNode {
    /// The line that leads to the node, if it is a candidate for the list.
    line: Option<PreparedLine>,
    judged: Option<JudgedLine>,
    children: Vec<SearchNode>,
}

impl Side<'_> {
    /// Returns the games of this person that reached the position `pos`. Games played in the year `recent_since` or
    /// later count as recent.
    ///
    /// If the score is judged, `judged` creates an empty collection to which the finished games are also added;
    /// otherwise it returns `None`.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged. Returns [`Error::Interrupted`] if the preparation is cancelled.
    fn scan(
        &self,
        query: &PrepareQuery<'_>,
        pos: &VariantPosition,
        recent_since: u16,
        judged: impl Fn() -> Option<FinishedGames> + Sync,
    ) -> Result<PositionGames> {
        if !(query.should_continue)() {
            return Err(Error::Interrupted);
        }
        let line = Line::at(query.line.variant(), pos.clone());
        let new = || PositionGames {
            all: RecentTally::default(),
            moves: FxHashMap::default(),
            is_cut: false,
            recent_since,
            recency: self.recency,
            judged: judged(),
        };
        let mut games = scan(self.filters, &[line.subject()], new)?;
        // An illegal move belongs to another position with the same hash.
        games.moves.retain(|mv, _| mv.to_move(pos).is_some());
        Ok(games)
    }
}

impl Preparing<'_> {
    /// Returns the games of `side` (the player or the opponent) that reached the position `pos`, without judging the
    /// score.
    fn position(&self, side: &Side<'_>, pos: &VariantPosition) -> Result<PositionGames> {
        side.scan(self.query, pos, self.recent_since, || None)
    }

    /// Returns the player's games that reached the position `pos`, which is `plies` half-moves after the position of
    /// the query. If the indexes contain no moves after this half-move, the games count as cut off there.
    fn yours(&self, pos: &VariantPosition, plies: usize) -> Result<PositionGames> {
        let judged = || Some(FinishedGames::default());
        let mut games = self
            .yours
            .scan(self.query, pos, self.recent_since, judged)?;
        let plies = self.query.line.moves().len() + plies + 1;
        let mut sources = self.yours.filters.of_sources.iter();
        games.is_cut |= sources.any(|(source, _)| !source.has_ply(plies));
        Ok(games)
    }

    /// Compares the player's score in `games` with the expected score.
    fn judge(&self, games: &PositionGames) -> Judgement {
        let stats = games.all.results.for_side(self.query.color);
        let finished = games.judged.as_ref();
        let expected = finished.map(|finished| finished.scores.expectation(&self.compared.scores));
        let expected = expected.unwrap_or_default();
        Judgement {
            points: stats.half_points() as f64 / 2.0,
            expected,
            range: score_range(stats, expected).map(|range| range.map(rounded)),
        }
    }

    /// Returns the moves with which the player answers in the position `pos`. `games` contains the player's games that
    /// reached the position.
    ///
    /// If the repertoire has moves in the position, these moves are the answers. Otherwise, the only answer is the move
    /// that the player played most often; of equally frequent moves, it is the one whose UCI notation comes first in
    /// alphabetical order. Returns `None` if the player played every move in fewer than [`MIN_ANSWER_GAMES`] games.
    fn answers(&self, pos: &VariantPosition, games: &PositionGames) -> Result<Option<Answers>> {
        if let Some(repertoire) = self.query.repertoire {
            let moves = repertoire(pos)?;
            if !moves.is_empty() {
                return Ok(Some(Answers {
                    moves,
                    source: AnswerSource::Repertoire,
                }));
            }
        }
        let most = games.by_games().into_iter().next();
        let most = most.filter(|(_, tally)| tally.results.games() >= MIN_ANSWER_GAMES);
        let usual = most.and_then(|(mv, _)| mv.to_move(pos));
        Ok(usual.map(|mv| Answers {
            moves: vec![mv],
            source: AnswerSource::Games,
        }))
    }

    /// Determines whether the player is prepared for a move that the opponent played in `games` games, and that leads
    /// from the position `before` to `after`. `answers` are the player's answers in `after`, and `yours` are the
    /// player's games that reached it. If the query has a repertoire, only moves of the repertoire count as answers.
    /// Otherwise, every move that the player has played counts.
    fn reply(
        &self,
        [before, after]: [&VariantPosition; 2],
        games: u64,
        answers: Option<&Answers>,
        yours: &PositionGames,
    ) -> Result<Reply> {
        let Some(repertoire) = self.query.repertoire else {
            // If the next moves are not indexed, it is unknown whether one of them is an answer.
            let is_answered = !yours.moves.is_empty() || yours.is_cut;
            return Reply::of(after, games, self.query.min_games, is_answered, || Ok(true));
        };
        let is_answered = answers.is_some_and(|answers| answers.source == AnswerSource::Repertoire);
        let answers_another = || {
            for mv in before.legal_moves() {
                if !repertoire(&self::after(before, mv))?.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Reply::of(
            after,
            games,
            self.query.min_games,
            is_answered,
            answers_another,
        )
    }

    /// Returns the opponent's moves in the position of the query, each with the player's results after the move and the
    /// player's answer. `here` contains the opponent's games that reached the position.
    fn their_moves(&self, here: &PositionGames) -> Result<Vec<PreparedMove>> {
        let pos = self.query.line.position();
        let prepared = |(mv, tally): (BookMove, RecentTally)| {
            let legal = mv.to_move(pos).expect("illegal moves were left out");
            let next = after(pos, legal);
            let yours = self.yours(&next, 1)?;
            let answers = self.answers(&next, &yours)?;
            let games = tally.results.games();
            let reply = self.reply([pos, &next], games, answers.as_ref(), &yours)?;
            let answer = answers.map(|answers| answers.first(&next, &yours));
            let judgement = self.judge(&yours);
            let may_try = answer.is_none() && self.query.repertoire.is_none();
            let mut tried = yours.by_games();
            tried.truncate(if may_try { MAX_TRIED } else { 0 });
            let tried = tried.into_iter().filter_map(|(mv, tally)| {
                let (mv, games) = (mv.to_move(&next)?, tally.results.games());
                Some(prepared_answer(&next, mv, games, AnswerSource::Games))
            });
            Ok(PreparedMove {
                theirs: tally.games(),
                yours: yours.all.results,
                score_range: judgement.range,
                expected_score: judgement.expected_score(),
                unindexed: answer.is_none() && yours.is_cut && self.query.repertoire.is_none(),
                answer,
                gap: reply == Reply::Gap,
                line_end: reply == Reply::LineEnd,
                tried: tried.collect(),
                ..named_move(pos, legal, &next)
            })
        };
        here.by_games().into_iter().map(prepared).collect()
    }

    /// Returns the player's moves in the position of the query, with the results of both players after each move.
    /// `here` contains the player's games that reached the position.
    fn own_moves(&self, here: &PositionGames) -> Result<Vec<PreparedMove>> {
        let pos = self.query.line.position();
        let answers = self.answers(pos, here)?;
        let played = here.by_games().into_iter();
        let mut moves: Vec<Move> = played.filter_map(|(mv, _)| mv.to_move(pos)).collect();
        for answer in answers.iter().flat_map(|answers| &answers.moves) {
            if !moves.contains(answer) {
                moves.push(*answer);
            }
        }
        let prepared = |mv: Move| {
            let next = after(pos, mv);
            let theirs = self.position(&self.theirs, &next)?;
            let yours = self.yours(&next, 1)?;
            let judgement = self.judge(&yours);
            let answers = answers
                .as_ref()
                .filter(|answers| answers.moves.contains(&mv));
            Ok(PreparedMove {
                theirs: theirs.all.games(),
                yours: yours.all.results,
                score_range: judgement.range,
                expected_score: judgement.expected_score(),
                answer: answers
                    .map(|answers| prepared_answer(pos, mv, here.games_with(mv), answers.source)),
                ..named_move(pos, mv, &next)
            })
        };
        moves.into_iter().map(prepared).collect()
    }

    /// Returns the lines that the player should prepare first, and the lines at whose end the player's repertoire
    /// stops.
    ///
    /// The first list begins with lines that have no usual answer, but a probability of at least [`LIKELY_GAP_CHANCE`].
    /// The lines with the largest expected loss of points follow, and then the likeliest of the other lines without a
    /// usual answer. At most [`MAX_LISTED_GAPS`] lines are listed because they have no answer.
    fn lines(&self) -> Result<ListedLines> {
        let by_play = |a: &PreparedLine, b: &PreparedLine| a.play.cmp(&b.play);
        let by_chance = |a: &PreparedLine, b: &PreparedLine| {
            b.chance.total_cmp(&a.chance).then_with(|| by_play(a, b))
        };
        let Candidates { lines, mut judged } = self.candidate_lines()?;
        let loss = |line: &PreparedLine| line.loss.unwrap_or(0.0);
        let is_end = |line: &PreparedLine| line.line_end && line.loss.is_none();
        let (mut ends, mut met) = lines.into_iter().partition::<Vec<_>, _>(is_end);
        ends.sort_by(by_chance);
        ends.truncate(MAX_LISTED_GAPS);
        let is_likely_gap =
            |line: &PreparedLine| line.is_unanswered() && line.chance >= LIKELY_GAP_CHANCE;
        let most = self.query.lines;
        let mut likely = Vec::from_iter(met.iter().filter(|line| is_likely_gap(line)).cloned());
        likely.sort_by(by_chance);
        likely.truncate(MAX_LISTED_GAPS.min((most / 2).max(1)));
        met.retain(|line| likely.iter().all(|gap| gap.play != line.play));
        judged.retain(|line| likely.iter().all(|gap| gap.play != line.play));
        let max_gaps = MAX_LISTED_GAPS - likely.len();
        let reserved = MAX_LISTED_GAPS.min(most / 2).saturating_sub(likely.len());
        let most = most - likely.len();
        let before_gaps = most - reserved;
        met.sort_by(|a, b| loss(b).total_cmp(&loss(a)).then_with(|| by_play(a, b)));
        // The first `before_gaps` lines with a loss are always listed. Further lines fill the space that no gap
        // needs.
        let mut losses: Vec<PreparedLine> = Vec::new();
        let mut gaps: Vec<PreparedLine> = Vec::new();
        for line in met {
            let is_related = |other: &PreparedLine| are_related(&line.play, &other.play);
            let is_loss = losses.len() < most + MAX_LISTED_GAPS
                && line.loss.is_some()
                && !losses.iter().any(is_related);
            if line.is_unanswered() && !(is_loss && losses.len() < before_gaps) {
                gaps.push(line.clone());
            }
            if is_loss {
                losses.push(line);
            }
        }
        gaps.sort_by(by_chance);
        gaps.truncate(max_gaps.min(most - losses.len().min(before_gaps)));
        let others = losses.split_off(before_gaps.min(losses.len()));
        let is_gap = |line: &PreparedLine| gaps.iter().any(|gap| gap.play == line.play);
        let others = others.into_iter().filter(|line| !is_gap(line));
        let room = most - losses.len() - gaps.len();
        let others = Vec::from_iter(others.take(room));
        losses.extend(others);
        let weak_lines = WeakLines {
            judged: judged.len() as u64,
            listed: losses.len() as u64,
            by_chance: self.listed_by_chance(&judged, most - gaps.len()),
        };
        let without_loss = |gap| PreparedLine { loss: None, ..gap };
        let mut listed = Vec::from_iter(likely.into_iter().map(without_loss));
        listed.extend(losses);
        listed.extend(gaps.into_iter().map(without_loss));
        Ok(ListedLines {
            lines: listed,
            line_ends: Vec::from_iter(ends.into_iter().map(without_loss)),
            weak_lines,
        })
    }

    /// Estimates how many of the `judged` lines would be listed because of an expected loss if this loss were due to
    /// chance alone. The estimate is a mean number, and at most `most` lines are listed.
    fn listed_by_chance(&self, judged: &[JudgedLine], most: usize) -> f64 {
        let form = self.compared.scores.form(self.query.color);
        let finished = self.compared.finished.iter();
        let ratings = Vec::from_iter(finished.map(|(_, rating)| *rating));
        form.map_or(0.0, |form| listed_by_chance(&form, &ratings, judged, most))
    }

    /// Searches for candidates for the list of lines to prepare. A candidate ends with a move of the opponent, and at
    /// least `min_games` of the opponent's games reach its end. After this move, the player either has no answer, or is
    /// expected to lose points.
    fn candidate_lines(&self) -> Result<Candidates> {
        let mut found = Candidates::default();
        let mut level = vec![SearchNode {
            pos: self.query.line.position().clone(),
            moves: Vec::new(),
            path_chance: 1.0,
            chance: 1.0,
            games: 0,
            opening: self.query.line.opening(),
        }];
        for _ in 0..=MAX_LINE_PLIES {
            level.retain(|node| node.chance * MAX_RARITY >= 1.0);
            let expanded = level.par_iter().map(|node| self.expanded(node));
            let expanded = expanded.collect::<Result<Vec<_>>>()?;
            let mut next: Vec<SearchNode> = Vec::new();
            let mut numbers: FxHashMap<u64, usize> = FxHashMap::default();
            for node in expanded {
                found.lines.extend(node.line);
                found.judged.extend(node.judged);
                for child in node.children {
                    let number = *numbers.entry(identity(&child.pos)).or_insert(next.len());
                    match next.get_mut(number) {
                        None => next.push(child),
                        Some(node) => node.join(child),
                    }
                }
            }
            level = next;
        }
        Ok(found)
    }

    /// Examines one node of the search for lines to prepare, and finds the nodes that are one move away from it.
    ///
    /// The line that leads to the node is a candidate for the list if it ends with a move that the opponent played in
    /// at least `min_games` games, and if the player either has no answer to this move or is expected to lose points.
    fn expanded(&self, node: &SearchNode) -> Result<ExpandedNode> {
        let pos = &node.pos;
        if pos.turn() != self.query.color {
            let theirs = self.position(&self.theirs, pos)?;
            return Ok(ExpandedNode {
                line: None,
                judged: None,
                children: node.children(&shares(&theirs, pos)),
            });
        }
        let yours = self.yours(pos, node.moves.len())?;
        let answers = self.answers(pos, &yours)?;
        let answer = answers.as_ref().map(|answers| answers.first(pos, &yours));
        let found = self.line_to(node, &yours, answer);
        let (mut line, mut judged) = (None, None);
        if let Some(found) = found.filter(|_| node.games >= self.query.min_games) {
            let reply = self.reply([&found.before, pos], node.games, answers.as_ref(), &yours)?;
            let mut found_line = found.line;
            (found_line.gap, found_line.line_end) = (reply == Reply::Gap, reply == Reply::LineEnd);
            let is_over = pos.legal_moves().is_empty();
            let is_unindexed = yours.is_cut && self.query.repertoire.is_none();
            let is_unanswered = found_line.is_unanswered() || found_line.line_end;
            if !is_over && !is_unindexed && is_unanswered || found_line.loss.is_some() {
                found_line.theirs = self.position(&self.theirs, pos)?.all.games();
                line = Some(found_line);
            }
            judged = found.judged;
        }
        let children = match answers {
            None => Vec::new(),
            Some(Answers {
                moves,
                source: AnswerSource::Repertoire,
            }) => {
                let share = 1.0 / moves.len() as f64;
                let moves = moves
                    .into_iter()
                    .map(|mv| (mv, yours.games_with(mv), share));
                node.children(&Vec::from_iter(moves))
            }
            Some(_) => node.children(&shares(&yours, pos)),
        };
        Ok(ExpandedNode {
            line,
            judged,
            children,
        })
    }

    /// Returns the line that leads from the position of the query to `node`, or `None` if `node` is the position of the
    /// query itself. `yours` contains the player's games that reached the position of `node`, and `answer` is the
    /// player's answer in this position.
    ///
    /// The fields for the opponent's games, the gap and the end of a repertoire line are left empty; the caller must
    /// set them.
    fn line_to(
        &self,
        node: &SearchNode,
        yours: &PositionGames,
        answer: Option<PreparedAnswer>,
    ) -> Option<FoundLine> {
        if node.moves.is_empty() {
            return None;
        }
        let mut pos = self.query.line.position().clone();
        let mut before = pos.clone();
        let (mut play, mut san) = (Vec::new(), Vec::new());
        for mv in &node.moves {
            before.clone_from(&pos);
            let named = BookMove::from(*mv);
            play.push(named.to_string());
            san.push(named.san(&pos).unwrap_or_default());
            pos.play_unchecked(*mv);
        }
        let judgement = self.judge(yours);
        let numbers = yours.judged.as_ref().map(|finished| &finished.numbers);
        let numbers = numbers.filter(|_| judgement.expected.games >= FEW_GAMES);
        let judged = numbers.map(|numbers| {
            let all = &self.compared.finished;
            let index = |number: &u64| all.binary_search_by_key(number, |(number, _)| *number).ok();
            let games = numbers.iter().filter_map(index);
            let mut games = Vec::from_iter(games.map(|index| index as u32));
            games.sort_unstable();
            JudgedLine {
                play: play.clone(),
                chance: node.chance,
                expected: judgement.expected,
                games,
            }
        });
        let loss = judged.as_ref().and_then(|_| {
            let lost = judgement.expected.points - judgement.points;
            expected_loss(node.chance, lost, judgement.expected)
        });
        let yours = yours.all.results;
        let score = yours.score(self.query.color);
        let line = PreparedLine {
            play,
            san,
            opening: node.opening,
            chance: rounded(node.chance),
            theirs: TheirGames::default(),
            yours,
            score: score.map(|score| 100.0 * score),
            score_range: judgement.range,
            expected_score: judgement.expected_score(),
            loss,
            answer,
            gap: false,
            line_end: false,
        };
        Some(FoundLine {
            line,
            before,
            judged,
        })
    }
}

/// The player's score in a set of games, compared with the expected score.
struct Judgement {
    points: f64,
    expected: Expectation,
    /// The confidence interval of the score, in percent.
    range: Option<[f64; 2]>,
}

impl Judgement {
    /// Returns the expected score in percent.
    fn expected_score(&self) -> Option<f64> {
        let Expectation { points, games, .. } = self.expected;
        (games > 0).then(|| rounded(100.0 * points / games as f64))
    }
}

/// A line that the search for lines to prepare has reached.
struct FoundLine {
    line: PreparedLine,
    /// The position before the last move.
    before: VariantPosition,
    /// The score of the line with the expected score, or `None` if they cannot be compared.
    judged: Option<JudgedLine>,
}

impl SearchNode {
    /// Returns the child nodes that are reached from this node with `moves`. An element of `moves` is a move, the
    /// number of games in which it was played in this position, and its probability.
    fn children(&self, moves: &[(Move, u64, f64)]) -> Vec<SearchNode> {
        let child = |(mv, games, share): &(Move, u64, f64)| {
            let pos = after(&self.pos, *mv);
            let mut moves = self.moves.clone();
            moves.push(*mv);
            SearchNode {
                opening: openings::name_of(&pos).or(self.opening),
                pos,
                moves,
                path_chance: self.path_chance * share,
                chance: self.chance * share,
                games: *games,
            }
        };
        moves.iter().map(child).collect()
    }

    /// Merges `other`, a node with the same position, into this node. The probability becomes the sum of both
    /// probabilities, and the likelier of the two paths is kept.
    fn join(&mut self, other: SearchNode) {
        let (chance, games) = (self.chance + other.chance, self.games.max(other.games));
        if other.path_chance > self.path_chance {
            *self = other;
        }
        (self.chance, self.games) = (chance, games);
    }
}

/// Returns the moves that were played in the position `pos`. Each move comes with its number of games, and with its
/// share of the total weight of `games`. Games that end in the position are ignored.
fn shares(games: &PositionGames, pos: &VariantPosition) -> Vec<(Move, u64, f64)> {
    let moves = games.by_games();
    let all: u128 = moves.iter().map(|(_, tally)| tally.weight).sum();
    let share = |(mv, tally): (BookMove, RecentTally)| {
        let share = tally.weight as f64 / all as f64;
        Some((mv.to_move(pos)?, tally.results.games(), share))
    };
    moves.into_iter().filter_map(share).collect()
}

/// Plays the move `mv`, which must be legal, in the position `pos`. Returns the new position.
fn after(pos: &VariantPosition, mv: Move) -> VariantPosition {
    let mut next = pos.clone();
    next.play_unchecked(mv);
    next
}

/// Creates a [`PreparedMove`] for the move `mv` in the position `pos` that contains only the notation of the move and
/// the opening of `next`, the position after the move. The caller adds the games and the answer.
fn named_move(pos: &VariantPosition, mv: Move, next: &VariantPosition) -> PreparedMove {
    let mv = BookMove::from(mv);
    PreparedMove {
        uci: mv.to_string(),
        san: mv.san(pos).unwrap_or_default(),
        opening: openings::name_of(next),
        theirs: TheirGames::default(),
        yours: Results::default(),
        score_range: None,
        expected_score: None,
        answer: None,
        gap: false,
        line_end: false,
        unindexed: false,
        tried: Vec::new(),
    }
}

fn prepared_answer(
    pos: &VariantPosition,
    mv: Move,
    games: u64,
    source: AnswerSource,
) -> PreparedAnswer {
    let mv = BookMove::from(mv);
    PreparedAnswer {
        uci: mv.to_string(),
        san: mv.san(pos).unwrap_or_default(),
        games,
        source,
    }
}

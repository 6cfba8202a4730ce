//! Answers to queries about a position. Their types serialize to the JSON that clients of Lichess's opening
//! explorer expect.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use shakmaty::{Position, variant::VariantPosition};

use super::{
    expectation::{PlayerScores, score_range},
    list::{GameInfo, PlayedGame, game_info, played_games},
    open_index::text_of_number,
    query::{Line, Query, View},
    sources::Sources,
    tally::{
        MoveTally, PlayerTally, PositionTally, Rank, Resulting, resulting, scores_of_all_games,
    },
};
use crate::{
    chess::position::BookMove,
    error::Result,
    formats::explorer_index::results::Month,
    games::{
        openings::{self, Opening},
        results::{Results, Wdl},
        selection::Selection,
    },
    task,
};

/// The answer to a query about a position. It contains the results of the games that reached the position, and the
/// moves that were played in it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The results, which are serialized in the form of Lichess: an unfinished game is a draw.
    #[serde(flatten, serialize_with = "Results::lichess_form")]
    #[cfg_attr(test, schemars(with = "crate::games::results::EachResult"))]
    pub results: Results,
    /// The player's results in all games of the answer, or `None` if the query does not ask for them.
    #[serde(flatten)]
    pub player: Option<PlayerTotals>,
    /// The moves, sorted by number of games in descending order, then by UCI notation.
    pub moves: Vec<MoveAnswer>,
    /// The newest games that are not among the top games, the newest first; `None` if the view has no recent games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_games: Option<Vec<PlayedGame>>,
    /// The games with the highest ratings; `None` if the view has no top games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_games: Option<Vec<PlayedGame>>,
    /// The opening of the last position of the line that has a name, or `None` if no position has one.
    pub opening: Option<Opening>,
    /// Always 0: an answer is complete when it is returned. Clients expect the field.
    pub queue_position: u32,
    /// The results by month, from the first to the last month that has games; `None` if the query does not ask for a
    /// history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<MonthCount>>,
    /// The number of games that `history` leaves out because their month is unknown; `None` if the query does not ask
    /// for a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_months: Option<u64>,
    /// The results by year instead of those by month, for each year that has games. Games without a known year come
    /// last. `None` if the query does not ask for years.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "history_schema"))]
    pub years: Option<Vec<YearCount>>,
}

/// Returns the schema of the field `history`, which has one of two forms.
#[cfg(test)]
fn history_schema(types: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let months = types.subschema_for::<Vec<MonthCount>>();
    let years = types.subschema_for::<Vec<YearCount>>();
    schemars::json_schema!({"anyOf": [months, years]})
}

/// A move that was played in the position of a query, and the results of the games in which it was played.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MoveAnswer {
    /// The move in UCI notation. Castling is written as king takes rook: `e1h1`.
    pub uci: String,
    /// The move in SAN.
    pub san: String,
    /// The mean of the known ratings of the players who made the move, rounded down; 0 if no rating is known. `None` in
    /// [`View::Player`](super::View::Player).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_rating: Option<u64>,
    /// The player's results in the games with this move, or `None` if the query does not ask for them.
    #[serde(flatten)]
    pub player: Option<PlayerScore>,
    /// The results, which are serialized in the form of Lichess: an unfinished game is a draw.
    #[serde(flatten, serialize_with = "Results::lichess_form")]
    #[cfg_attr(test, schemars(with = "crate::games::results::EachResult"))]
    pub results: Results,
    /// The game in which the move was played, if there is exactly one.
    pub game: Option<GameInfo>,
    /// The opening of the position after the move, or `None` if that position itself has no name.
    pub opening: Option<Opening>,
    /// The results of the position after the move, or `None` if they are unknown or the query does not ask for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resulting: Option<Resulting>,
    /// The number of games in which the rating of the player who moved is known. `None` if it is known in all games or
    /// in none, and in [`View::Player`](super::View::Player).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating_games: Option<u64>,
}

/// The results and ratings of the player whom a query names, in all games that the answer counts.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlayerTotals {
    /// The player's results in the finished games. Only `wins` and `losses` are serialized.
    #[serde(flatten, serialize_with = "Wdl::without_draws")]
    #[cfg_attr(test, schemars(with = "crate::games::results::Decisive"))]
    pub stats: Wdl,
    /// The 80 % confidence interval of the player's score, as for moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_range: Option<[f64; 2]>,
    /// The mean rating of the opponents in the games with a result, rounded half up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opponent_rating: Option<u64>,
    /// The player's own mean rating, rounded half up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_rating: Option<u64>,
    /// The number of games in which the player's own rating is known.
    pub player_rating_games: u64,
    /// The performance by FIDE's table, or `None` if `performance_games` is less than 10, or if the
    /// filters select games by their result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance: Option<u64>,
    /// The number of games with a result and a rated opponent, from which `opponent_rating` and `performance` are
    /// calculated.
    pub performance_games: u64,
    /// The date of the player's newest game: `2006-01-02`, or `2006-01` or `2006` if the rest is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_played: Option<String>,
}

/// The results and ratings of the player whom a query names, in the games in which one move was played.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlayerScore {
    /// The player's results in the finished games. Only `wins` and `losses` are serialized.
    #[serde(flatten, serialize_with = "Wdl::without_draws")]
    #[cfg_attr(test, schemars(with = "crate::games::results::Decisive"))]
    pub stats: Wdl,
    /// The 80 % confidence interval of the player's score in percent, as for
    /// [openings](super::OpeningRow::score_range): the other games are all games of the player that pass the filters
    /// apart from `eco`, `opening` and `position`, whatever positions they reached. `None` if no game has a result, if
    /// the filters select games by their result, or if the query does not ask for
    /// [`player_scores`](Query::player_scores).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_range: Option<[f64; 2]>,
    /// The mean rating of the opponents in the games with a result, rounded half up.
    pub average_opponent_rating: Option<u64>,
    /// The performance by FIDE's table, or `None` if `performance_games` is less than 10, or if the
    /// filters select games by their result.
    pub performance: Option<u64>,
    /// The number of games with a result and a rated opponent, from which `average_opponent_rating` and `performance`
    /// are calculated.
    pub performance_games: u64,
    /// The date of the newest game: `2006-01-02`, or `2006-01` or `2006` if the rest is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_played: Option<String>,
}

/// The results of the games of one month.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MonthCount {
    /// Year and month: `2006-01`.
    pub month: String,
    /// The results, which are serialized in the form of Lichess: an unfinished game is a draw.
    #[serde(flatten, serialize_with = "Results::lichess_form")]
    #[cfg_attr(test, schemars(with = "crate::games::results::EachResult"))]
    pub results: Results,
}

/// The results of the games of one year, and the number of games in which each move was played.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct YearCount {
    /// The year, or `None` for the games whose year is unknown.
    pub year: Option<u16>,
    /// The results, which are serialized in the form of Lichess: an unfinished game is a draw.
    #[serde(flatten, serialize_with = "Results::lichess_form")]
    #[cfg_attr(test, schemars(with = "crate::games::results::EachResult"))]
    pub results: Results,
    /// The number of games of this year with each move of the answer. The keys are moves in UCI notation.
    pub moves: BTreeMap<String, u64>,
}

/// Answers a query about a position. Implements [`Explorer::answer`](super::Explorer::answer).
pub(super) fn answer(sources: &Sources, query: &Query) -> Result<Answer> {
    task::fault("answer");
    let filters = sources.filters(&query.filters)?;
    let is_long = query.resulting && filters.precompute_long(query.line.subject())?;
    let mut counted = PositionTally::new(&filters, query)?;
    let mut total = MoveTally::default();
    let ranges = match counted.scores.take() {
        Some(by_move) => Some(ScoreRanges {
            by_move,
            all: match query.filters.of_any_opening() {
                None => scores_of_all_games(&filters, &query.line),
                Some(any) => scores_of_all_games(&sources.filters(&any)?, &query.line),
            },
            is_known: !query.filters.selects_by_result(),
        }),
        None => None,
    };
    let mut moves = Vec::from_iter(std::mem::take(&mut counted.moves));
    for (_, tally) in &moves {
        total += *tally;
    }
    moves.sort_by_cached_key(|(mv, tally)| (u64::MAX - tally.results.games(), mv.to_string()));
    moves.truncate(query.moves.unwrap_or(usize::MAX));
    let years = counted.years.map(|years| by_year(&years, &moves));
    let after = |(mv, _): &(BookMove, MoveTally)| line_after(&query.line, *mv);
    let results_after = |played| resulting(&filters, &after(played));
    let results_after: Vec<Option<Resulting>> = match (query.resulting, is_long) {
        (false, _) => vec![None; moves.len()],
        (true, false) => moves.iter().map(results_after).collect::<Result<_>>()?,
        (true, true) => moves.par_iter().map(results_after).collect::<Result<_>>()?,
    };
    let moves = moves
        .iter()
        .zip(results_after)
        .map(|((mv, tally), resulting)| {
            let range = ranges
                .as_ref()
                .and_then(|ranges| ranges.of_move(*mv, tally));
            played_move(sources, query, (*mv, tally), range, resulting)
        })
        .collect::<Result<_>>()?;
    let game = |(_, number, mv): Rank| (number, mv);
    let top = counted.top.into_sorted().into_iter().map(game);
    let top = played_games(sources, query.view, top)?;
    let months: Option<BTreeMap<Month, Results>> =
        counted.months.map(|months| months.into_iter().collect());
    let is_top = |number: u64| top.iter().any(|played| played.game.number == number);
    let recent = counted.recent.into_sorted().into_iter().map(game);
    let recent = recent.filter(|(number, _)| !is_top(*number));
    let recent = played_games(
        sources,
        query.view,
        recent.take(query.recent_limit(top.len())),
    )?;
    Ok(Answer {
        results: total.results,
        player: query.has_player_scores().then(|| PlayerTotals {
            score_range: ranges.as_ref().and_then(|ranges| ranges.of_all(&total)),
            ..player_totals(&total.player, &query.filters)
        }),
        moves,
        recent_games: (query.view != View::Masters).then_some(recent),
        top_games: (query.view != View::Player).then_some(top),
        opening: query.line.opening(),
        queue_position: 0,
        history: months.as_ref().map(zero_filled),
        unknown_months: months.as_ref().map(games_of_unknown_months),
        years,
    })
}

/// A player's results with each move of a position and in all games, from which confidence intervals of scores are
/// calculated.
struct ScoreRanges {
    by_move: FxHashMap<BookMove, PlayerScores>,
    /// The player's results in all games that pass the filters apart from `eco`, `opening` and `position`, regardless of
    /// the positions that they reached.
    all: PlayerScores,
    /// Whether scores are meaningful. They are not if the filters select games by their result.
    is_known: bool,
}

impl ScoreRanges {
    fn of_move(&self, mv: BookMove, tally: &MoveTally) -> Option<[f64; 2]> {
        let scores = self.by_move.get(&mv).filter(|_| self.is_known)?;
        score_range(tally.player.stats, scores.expectation(&self.all))
    }

    /// Returns the confidence interval of the player's score in the games of all moves, whose results are `total`.
    fn of_all(&self, total: &MoveTally) -> Option<[f64; 2]> {
        let mut scores = PlayerScores::default();
        self.by_move.values().for_each(|more| scores += more);
        let range = score_range(total.player.stats, scores.expectation(&self.all));
        range.filter(|_| self.is_known)
    }
}

fn played_move(
    sources: &Sources,
    query: &Query,
    (mv, tally): (BookMove, &MoveTally),
    score_range: Option<[f64; 2]>,
    resulting: Option<Resulting>,
) -> Result<MoveAnswer> {
    let pos = query.line.position();
    let next = position_after(&query.line, mv);
    let results = tally.results;
    let game = tally.game.filter(|_| results.games() == 1);
    let game = game
        .map(|game| game_info(sources, game, query.view))
        .transpose()?;
    let of_player = query.view == View::Player;
    Ok(MoveAnswer {
        uci: mv.to_string(),
        san: mv.san(pos).unwrap_or_default(),
        average_rating: (!of_player).then(|| tally.means.rating().rounded_down()),
        player: query.has_player_scores().then(|| PlayerScore {
            score_range,
            ..player_score(&tally.player, &query.filters)
        }),
        results,
        game,
        opening: openings::name_of(&next),
        resulting,
        rating_games: Some(tally.means.rating().games)
            .filter(|games| !of_player && (1..results.games()).contains(games)),
    })
}

/// Creates a [`PlayerScore`] without a confidence interval from `tally`, the results of a player in the games with one
/// move that pass `filters`.
fn player_score(tally: &PlayerTally, filters: &Selection) -> PlayerScore {
    PlayerScore {
        stats: tally.stats,
        score_range: None,
        average_opponent_rating: tally.opponents.rounded(),
        performance: tally.performance(filters),
        performance_games: tally.opponents.games,
        last_played: text_of_number(tally.last),
    }
}

/// Creates [`PlayerTotals`] without a confidence interval from `tally`, the results of a player in all games that pass
/// `filters`.
fn player_totals(tally: &PlayerTally, filters: &Selection) -> PlayerTotals {
    PlayerTotals {
        stats: tally.stats,
        score_range: None,
        opponent_rating: tally.opponents.rounded(),
        player_rating: tally.own.rounded(),
        player_rating_games: tally.own.games,
        performance: tally.performance(filters),
        performance_games: tally.opponents.games,
        last_played: text_of_number(tally.last),
    }
}

/// Plays the move `mv`, which must be legal, in the last position of `line`. Returns the new position.
fn position_after(line: &Line, mv: BookMove) -> VariantPosition {
    let legal = mv
        .to_move(line.position())
        .expect("illegal moves were left out");
    let mut next = line.position().clone();
    next.play_unchecked(legal);
    next
}

/// Returns a line without moves that starts in the position after `line` and the move `mv`, which must be legal.
fn line_after(line: &Line, mv: BookMove) -> Line {
    Line::at(line.variant(), position_after(line, mv))
}

/// Adds up the results of each year, sorted by year. Games whose year is unknown come last.
///
/// `years` contains the results for each pair of a year and a move; an unknown year is 0. Each element of the result
/// also contains the number of games with each of `moves`, the moves of the answer.
fn by_year(
    years: &FxHashMap<(u16, BookMove), Results>,
    moves: &[(BookMove, MoveTally)],
) -> Vec<YearCount> {
    let mut results: BTreeMap<(bool, u16), (Results, BTreeMap<String, u64>)> = BTreeMap::new();
    for ((year, mv), more) in years {
        let (sum, by_move) = results.entry((*year == 0, *year)).or_default();
        *sum += *more;
        if moves.iter().any(|(listed, _)| listed == mv) {
            by_move.insert(mv.to_string(), more.games());
        }
    }
    let count = |((_, year), (sum, moves)): ((bool, u16), (Results, _))| YearCount {
        year: Some(year).filter(|year| *year > 0),
        results: sum,
        moves,
    };
    results.into_iter().map(count).collect()
}

/// The maximum length, in months, of a period without games that a history (the results by month) fills with zeros. A
/// longer period is left out, because a gap of more than 20 years is probably due to a wrong date.
const MAX_EMPTY_MONTHS: usize = 20 * 12;

/// Returns the results of each month in ascending order. Months without games get an entry with zeros, unless they
/// belong to a period without games that is longer than [`MAX_EMPTY_MONTHS`]. Games whose month is unknown are left
/// out.
fn zero_filled(months: &BTreeMap<Month, Results>) -> Vec<MonthCount> {
    let mut all = Vec::new();
    // The next month, counted from the year 0.
    let mut next = None;
    for (month, results) in months {
        if !is_known(*month) {
            continue;
        }
        let month = 12 * u32::from(month.year()) + u32::from(month.month()) - 1;
        let empty = next.unwrap_or(month)..month;
        if empty.len() <= MAX_EMPTY_MONTHS {
            all.extend(empty.map(|month| month_count(month, Results::default())));
        }
        all.push(month_count(month, *results));
        next = Some(month + 1);
    }
    all
}

/// Returns the number of games for which `months` states no year or no month.
fn games_of_unknown_months(months: &BTreeMap<Month, Results>) -> u64 {
    let unknown = months.iter().filter(|(month, _)| !is_known(**month));
    unknown.map(|(_, results)| results.games()).sum()
}

/// Returns `true` if both the year and the month of `month` are known.
fn is_known(month: Month) -> bool {
    month.year() != 0 && month.month() != 0
}

fn month_count(month: u32, results: Results) -> MonthCount {
    MonthCount {
        month: format!("{:04}-{:02}", month / 12, month % 12 + 1),
        results,
    }
}

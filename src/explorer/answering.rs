//! Answers queries about positions.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use shakmaty::{Position, variant::VariantPosition};

use super::{
    answer::{
        Answer, GameList, MonthCount, PlayedGame, PlayedMove, PlayerScore, PlayerTotals, YearCount,
    },
    count::{PositionTally, Rank, count_games, subject_of},
    dates::text_of_number,
    line::Line,
    performance::performance,
    query::{Page, Query, View},
    ranked::ranked,
    sources::Explorer,
    tally::{MoveTally, PlayerTally, ResultSum},
};
use crate::{error::Result, openings, position::BookMove, task};

impl Explorer {
    /// Answers a query.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged, if the source does not exist, or if a filter needs games and a source has counts.
    pub fn answer(&self, query: &Query) -> Result<Answer> {
        task::caught(|| self.answer_to(query))
    }

    fn answer_to(&self, query: &Query) -> Result<Answer> {
        task::fault("answer");
        let filters = self.filters(&query.filters)?;
        let is_long = query.transpositions && filters.ask_long(subject_of(&query.line))?;
        let mut counted = PositionTally::new(&filters, query)?;
        let mut total = MoveTally::default();
        let mut moves = Vec::from_iter(std::mem::take(&mut counted.moves));
        for (_, tally) in &moves {
            total += *tally;
        }
        let totals = total.results;
        moves.sort_by_cached_key(|(mv, tally)| (u64::MAX - tally.results.games(), mv.to_string()));
        moves.truncate(query.moves.unwrap_or(usize::MAX));
        let years = counted.years.map(|years| by_year(&years, &moves));
        let after = |(mv, _): &(BookMove, MoveTally)| line_after(&query.line, *mv);
        let reached = |played| count_games(&filters, &after(played));
        let reached: Vec<Option<u64>> = match (query.transpositions, is_long) {
            (false, _) => vec![None; moves.len()],
            (true, false) => moves.iter().map(reached).collect::<Result<_>>()?,
            (true, true) => moves.par_iter().map(reached).collect::<Result<_>>()?,
        };
        let moves = moves
            .iter()
            .zip(reached)
            .map(|((mv, tally), reached)| self.played_move(query, *mv, tally, reached))
            .collect::<Result<_>>()?;
        let game = |(_, number, mv): Rank| (number, mv);
        let top = counted.top.into_sorted().into_iter().map(game);
        let top = self.games_of(query, top)?;
        let is_top = |number: u64| top.iter().any(|played| played.game.number == number);
        let recent = counted.recent.into_sorted().into_iter().map(game);
        let recent = recent.filter(|(number, _)| !is_top(*number));
        let recent = self.games_of(query, recent.take(query.recent_limit(top.len())))?;
        Ok(Answer {
            white: totals.white(),
            draws: totals.not_won(),
            black: totals.black(),
            player: (query.view == View::Player).then(|| player_totals(&total.player)),
            moves,
            recent_games: (query.view != View::Masters).then_some(recent),
            top_games: (query.view != View::Player).then_some(top),
            opening: query.line.opening(),
            queue_position: 0,
            history: counted
                .months
                .map(|months| zero_filled(&months.into_iter().collect())),
            years,
            unfinished: totals.unfinished(),
        })
    }

    /// Returns a page of the games of a position that pass the filters, including games that ended there.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged, if the source does not exist, or if no source has games.
    pub fn games(&self, query: &Query, page: &Page) -> Result<GameList> {
        task::caught(|| self.listed(query, page))
    }

    /// Returns the number of games that [`games`](Explorer::games) finds, and an iterator over the numbers of the games on the page.
    /// Memory stays bounded for pages of any length.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`games`](Explorer::games).
    pub fn game_numbers<'a>(
        &'a self,
        query: &'a Query,
        page: &Page,
    ) -> Result<(u64, impl Iterator<Item = Result<u64>> + use<'a>)> {
        let (total, games) = ranked(self.filters_of_games(&query.filters)?, query, page)?;
        Ok((total, games.map(|game| Ok(game?.0))))
    }

    fn played_move(
        &self,
        query: &Query,
        mv: BookMove,
        tally: &MoveTally,
        reached: Option<u64>,
    ) -> Result<PlayedMove> {
        let pos = query.line.position();
        let next = position_after(&query.line, mv);
        let results = tally.results;
        let game = tally.game.filter(|_| results.games() == 1);
        let game = game.map(|game| self.info(game, query.view)).transpose()?;
        let of_player = query.view == View::Player;
        Ok(PlayedMove {
            uci: mv.to_string(),
            san: mv.san(pos).unwrap_or_default(),
            average_rating: (!of_player).then(|| tally.ratings.mean()),
            player: of_player.then(|| player_score(&tally.player)),
            white: results.white(),
            draws: results.not_won(),
            black: results.black(),
            game,
            opening: openings::name_of(&next),
            reached,
            unfinished: results.unfinished(),
            rating_games: Some(tally.ratings.games)
                .filter(|games| !of_player && (1..results.games()).contains(games)),
        })
    }

    pub(super) fn games_of(
        &self,
        query: &Query,
        games: impl IntoIterator<Item = (u64, BookMove)>,
    ) -> Result<Vec<PlayedGame>> {
        games
            .into_iter()
            .map(|(number, mv)| {
                Ok(PlayedGame {
                    uci: (mv != BookMove::NONE).then(|| mv.to_string()),
                    game: self.info(number, query.view)?,
                })
            })
            .collect()
    }
}

/// The fewest games with a result and a rated opponent from which a performance is calculated.
const PERFORMANCE_GAMES: u64 = 10;

/// Returns the player's results in the games in which a move was played.
fn player_score(tally: &PlayerTally) -> PlayerScore {
    PlayerScore {
        wins: tally.wins,
        losses: tally.losses,
        average_opponent_rating: tally.opponents.rounded_mean(),
        performance: performance_of(tally),
        performance_games: tally.opponents.games,
        last_played: text_of_number(tally.last),
    }
}

/// Returns the results of the player in all games.
fn player_totals(tally: &PlayerTally) -> PlayerTotals {
    PlayerTotals {
        wins: tally.wins,
        losses: tally.losses,
        opponent_rating: tally.opponents.rounded_mean(),
        player_rating: tally.own.rounded_mean(),
        player_rating_games: tally.own.games,
        performance: performance_of(tally),
        performance_games: tally.opponents.games,
        last_played: text_of_number(tally.last),
    }
}

/// Returns the performance of the player, or `None` for fewer than [`PERFORMANCE_GAMES`] games.
pub(super) fn performance_of(tally: &PlayerTally) -> Option<u64> {
    let games = tally.opponents.games;
    let opponents = tally.opponents.rounded_mean()?;
    (games >= PERFORMANCE_GAMES).then(|| performance(opponents, tally.half_points, games))
}

/// Returns the position after a legal move from the end of a line.
fn position_after(line: &Line, mv: BookMove) -> VariantPosition {
    let legal = mv
        .to_move(line.position())
        .expect("moves that are not legal were left out");
    let mut next = line.position().clone();
    next.play_unchecked(legal);
    next
}

/// Returns the line that consists of `line` followed by a legal move.
fn line_after(line: &Line, mv: BookMove) -> Line {
    Line::at(line.variant(), position_after(line, mv))
}

/// Returns the results by year, ascending, with the numbers of games of the listed moves. Games without a year come last.
fn by_year(
    years: &FxHashMap<(u16, BookMove), ResultSum>,
    moves: &[(BookMove, MoveTally)],
) -> Vec<YearCount> {
    let mut results: BTreeMap<(bool, u16), (ResultSum, BTreeMap<String, u64>)> = BTreeMap::new();
    for ((year, mv), more) in years {
        let (sum, by_move) = results.entry((*year == 0, *year)).or_default();
        *sum += *more;
        if moves.iter().any(|(listed, _)| listed == mv) {
            by_move.insert(mv.to_string(), more.games());
        }
    }
    let count = |((_, year), (sum, moves)): ((bool, u16), (ResultSum, _))| YearCount {
        year: Some(year).filter(|year| *year > 0),
        white: sum.white(),
        draws: sum.not_won(),
        black: sum.black(),
        unfinished: sum.unfinished(),
        moves,
    };
    results.into_iter().map(count).collect()
}

/// The largest number of consecutive months without games that are listed. A date that is farther from the others is probably
/// wrong, and must not fill the history.
const MOST_EMPTY_MONTHS: usize = 20 * 12;

/// Returns the results by month, ascending, with zeros for months without games unless the gap is longer than
/// [`MOST_EMPTY_MONTHS`]. The keys are in the form of `Hot::month`.
fn zero_filled(months: &BTreeMap<u32, ResultSum>) -> Vec<MonthCount> {
    let mut all = Vec::new();
    // The next month, counted from the year 0.
    let mut next = None;
    for (month, results) in months {
        let (year, month) = (month >> 4, month & 15);
        if year == 0 || !(1..=12).contains(&month) {
            continue;
        }
        let month = 12 * year + month - 1;
        let empty = next.unwrap_or(month)..month;
        if empty.len() <= MOST_EMPTY_MONTHS {
            all.extend(empty.map(|month| month_count(month, ResultSum::default())));
        }
        all.push(month_count(month, *results));
        next = Some(month + 1);
    }
    all
}

fn month_count(month: u32, results: ResultSum) -> MonthCount {
    MonthCount {
        month: format!("{:04}-{:02}", month / 12, month % 12 + 1),
        white: results.white(),
        draws: results.not_won(),
        black: results.black(),
        unfinished: results.unfinished(),
    }
}

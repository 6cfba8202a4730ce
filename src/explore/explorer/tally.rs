//! Sums up the results of the games that reached a position.

use std::{collections::BTreeSet, ops::AddAssign};

use rustc_hash::FxHashMap;
use shakmaty::{Color, Position};

use super::{
    expectation::PlayerScores,
    filter::{SourceFilter, SourceFilters, Split},
    open_index::{GameSummary, OpenIndex},
    query::{Line, Query},
    scan::{AcceptedRows, Collector, PassingGames, scan, scan_games},
};
use crate::{
    chess::position::BookMove,
    error::Result,
    formats::explorer_index::{
        Best,
        results::{Month, Period, ResultRow},
    },
    games::{
        results::{Mean, Means, Measured, Results, Wdl},
        selection::Selection,
    },
};

/// The results of the games that reached the position after a move, by any order of moves.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resulting {
    /// The number of games that continue from the position.
    pub games: u64,
    /// The results of these games, which an [`Answer`](super::Answer) about the position would also contain. They are
    /// serialized as on Lichess, where an unfinished game is a draw.
    #[serde(flatten, serialize_with = "Results::lichess_form")]
    #[cfg_attr(test, schemars(with = "crate::games::results::EachResult"))]
    pub results: Results,
    /// The number of games that end in the position, or at whose position the index ends. `None` if a source does not
    /// store it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
}

impl Resulting {
    /// Returns the number of games that reached the position, or `None` if a source does not store this number.
    pub fn reached(self) -> Option<u64> {
        Some(self.games.saturating_add(self.ended?))
    }
}

/// Sums over the games in which one move was played in the position of a query: the results, the ratings and other
/// measures.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct MoveTally {
    pub results: Results,
    pub means: Means,
    /// The results and ratings of the player whom the query names. Empty if it names none.
    pub player: PlayerTally,
    /// The number of the only game with this move, or `None` if there are several games or their source stores only
    /// sums.
    pub game: Option<u64>,
}

/// Sums of the results and ratings of the player whom a query names.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct PlayerTally {
    /// The player's results in the finished games.
    pub stats: Wdl,
    /// The mean of the opponents' ratings in games with a result.
    pub opponents: Mean,
    /// Twice the number of points that the player scored in games with a result against rated opponents.
    pub half_points: u64,
    /// The mean of the player's own ratings.
    pub own: Mean,
    /// The date number of the player's last game (see [`GameSummary::date`]).
    pub last: u32,
}

impl PlayerTally {
    /// Adds a game to the sums. `player` is the color of the player in this game.
    pub(super) fn add(&mut self, summary: &GameSummary, player: Color) {
        self.own.add(summary.elo_of(player));
        if summary.has_result() {
            let stats = Wdl::of_game(summary.winner(), player);
            self.stats += stats;
            if summary.elo_of(!player) > 0 {
                self.opponents.add(summary.elo_of(!player));
                self.half_points += stats.half_points();
            }
        }
        self.last = self.last.max(summary.date);
    }

    /// Returns the player's performance rating in the games that pass `filters`. Returns `None` if fewer than
    /// [`MIN_PERFORMANCE_GAMES`] games have a result and a rated opponent, or if the filters select games by their
    /// result.
    pub(super) fn performance(&self, filters: &Selection) -> Option<u64> {
        let games = self.opponents.games;
        let opponents = self.opponents.rounded()?;
        let is_known = games >= MIN_PERFORMANCE_GAMES && !filters.selects_by_result();
        is_known.then(|| performance(opponents, self.half_points, games))
    }
}

impl AddAssign for PlayerTally {
    fn add_assign(&mut self, other: PlayerTally) {
        self.stats += other.stats;
        self.opponents += other.opponents;
        self.half_points += other.half_points;
        self.own += other.own;
        self.last = self.last.max(other.last);
    }
}

impl MoveTally {
    /// Adds game `number`, in which the move was played, to the results and means of the move.
    #[inline]
    pub(super) fn add(&mut self, summary: &GameSummary, measured: Measured, number: u64) {
        self.results.add(summary.result());
        self.means.add(measured);
        self.game = Some(number);
    }

    /// Adds `row`, a stored sum over games in which the move was played. `first` is the number of the first game in the
    /// index that contains the row. It is added to the game id in the row to get a game number.
    fn add_row(&mut self, row: &ResultRow, first: u64) {
        self.results += row.results;
        self.means += row.means;
        self.game = row.game.map(|id| first + u64::from(id));
    }
}

impl AddAssign for MoveTally {
    fn add_assign(&mut self, other: MoveTally) {
        self.results += other.results;
        self.means += other.means;
        self.player += other.player;
        if other.results.games() > 0 {
            self.game = other.game;
        }
    }
}

/// The sort key of a game in a list. It consists of the value by which the list is sorted (such as the date or the
/// rating), the number of the game, and the move that was played in the position. Lists are sorted by rank in
/// descending order.
pub(super) type Rank = (u64, u64, BookMove);

/// Returns the rank (sort key) of a game in a list that is sorted by rating, then by date. The rating of a game is the
/// mean of the known ratings of its players. Games without a known rating come last. `number` is the number of the
/// game, and `mv` is the move that was played in the position of the query.
#[inline]
pub(super) fn by_rating(summary: &GameSummary, number: u64, mv: BookMove) -> Rank {
    let rank = u64::from(summary.doubled_rating()) << u32::BITS | u64::from(summary.date);
    (rank, number, mv)
}

/// Returns the rank (sort key) of a game in a list that is sorted by date. `number` is the number of the game, and `mv`
/// is the move that was played in the position of the query.
#[inline]
pub(super) fn by_date(summary: &GameSummary, number: u64, mv: BookMove) -> Rank {
    (summary.date.into(), number, mv)
}

/// Collects the parts of an answer to a query: the results of each move that was played in the position, the top games
/// and the recent games.
pub(super) struct PositionTally {
    pub moves: FxHashMap<BookMove, MoveTally>,
    pub top: Best<Rank>,
    pub recent: Best<Rank>,
    /// The results of each month, or `None` if the query does not ask for a history.
    pub months: Option<FxHashMap<Month, Results>>,
    /// The results of each move in each year, or `None` if the query does not ask for them.
    pub years: Option<FxHashMap<(u16, BookMove), Results>>,
    /// The player's results with each move against opponents of each rating, or `None` if the query does not ask for
    /// confidence intervals.
    pub scores: Option<FxHashMap<BookMove, PlayerScores>>,
    /// The side to move in the position of the query.
    color: Color,
    of_player: bool,
}

impl PositionTally {
    /// Collects the results of the position of `query` from all games and stored sums that pass the filters.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged.
    pub(super) fn new(filters: &SourceFilters<'_>, query: &Query) -> Result<PositionTally> {
        let subjects = query.line.subjects();
        let mut tally = scan(filters, &subjects, || PositionTally::empty(query))?;
        let pos = query.line.position();
        // An illegal move belongs to another position with the same hash.
        tally
            .moves
            .retain(|mv, tally| tally.results.games() > 0 && mv.to_move(pos).is_some());
        if filters.mix_counts_and_games() {
            tally.count_unfinished_as_draws();
        }
        Ok(tally)
    }

    /// Changes all sums to treat unfinished games as draws, like counts, which do not distinguish the two.
    fn count_unfinished_as_draws(&mut self) {
        let moves = self.moves.values_mut().map(|tally| &mut tally.results);
        let months = self
            .months
            .iter_mut()
            .flat_map(|months| months.values_mut());
        let years = self.years.iter_mut().flat_map(|years| years.values_mut());
        for results in moves.chain(months).chain(years) {
            *results = results.with_unfinished_as_draws();
        }
    }

    /// Creates a collector for the results that answer `query`. It contains no games yet.
    fn empty(query: &Query) -> PositionTally {
        PositionTally {
            moves: FxHashMap::default(),
            top: Best::new(query.top_limit()),
            recent: Best::new(query.recent_candidates()),
            months: query.history.then(FxHashMap::default),
            years: query.years.then(FxHashMap::default),
            scores: query.player_scores.then(FxHashMap::default),
            color: query.line.position().turn(),
            of_player: query.has_player_scores(),
        }
    }
}

impl Collector for PositionTally {
    fn accepted_rows(&self) -> AcceptedRows {
        let split = match (&self.months, &self.years) {
            (Some(_), _) => Split::ByMonth,
            (None, Some(_)) => Split::ByYear,
            (None, None) => Split::AllTime,
        };
        if self.of_player {
            AcceptedRows::OfCounts(split)
        } else {
            AcceptedRows::All(split)
        }
    }

    fn add_row(&mut self, source: &OpenIndex, period: Period, row: &ResultRow) {
        if row.mv == BookMove::NONE {
            return;
        }
        let tally = self.moves.entry(row.mv).or_default();
        tally.add_row(row, source.first);
        if let Some(months) = &mut self.months
            && let Period::Month(month) = period
        {
            *months.entry(month).or_default() += row.results;
        }
        if let Some(years) = &mut self.years {
            let year = match period {
                Period::Month(month) => month.year(),
                Period::Year(year) => year,
                Period::All => return,
            };
            *years.entry((year, row.mv)).or_default() += row.results;
        }
    }

    fn add_candidate(&mut self, source: &OpenIndex, id: u32, mv: BookMove) {
        let (summary, game) = (source.game(id), source.first + u64::from(id));
        self.top.offer(by_rating(&summary, game, mv));
        self.recent.offer(by_date(&summary, game, mv));
    }

    fn add_games(
        &mut self,
        source: &OpenIndex,
        filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        let mut tallies = vec![MoveTally::default(); passing.moves.len()];
        // Starts with the last game, because it is the newest in many collections, so that few others replace it.
        for (id, number) in passing.games.iter().rev() {
            let mv = passing.moves[*number as usize];
            if mv == BookMove::NONE {
                continue;
            }
            let summary = source.game(*id);
            let game = source.first + u64::from(*id);
            let tally = &mut tallies[*number as usize];
            tally.add(&summary, source.measured(*id, self.color), game);
            if self.of_player {
                let player = filter.player_of(*id as usize);
                tally.player.add(&summary, player);
                if let Some(scores) = &mut self.scores {
                    scores.entry(mv).or_default().add_game(&summary, player);
                }
            }
            self.top.offer(by_rating(&summary, game, mv));
            self.recent.offer(by_date(&summary, game, mv));
            if let Some(months) = &mut self.months {
                months
                    .entry(summary.month())
                    .or_default()
                    .add(summary.result());
            }
            if let Some(years) = &mut self.years {
                let year = summary.year();
                years.entry((year, mv)).or_default().add(summary.result());
            }
        }
        for (mv, tally) in passing.moves.iter().zip(tallies) {
            *self.moves.entry(*mv).or_default() += tally;
        }
    }

    fn join(&mut self, other: PositionTally) {
        for (mv, tally) in other.moves {
            *self.moves.entry(mv).or_default() += tally;
        }
        self.top.join(&other.top);
        self.recent.join(&other.recent);
        for (month, results) in other.months.into_iter().flatten() {
            let months = self.months.get_or_insert_default();
            *months.entry(month).or_default() += results;
        }
        for (year, results) in other.years.into_iter().flatten() {
            let years = self.years.get_or_insert_default();
            *years.entry(year).or_default() += results;
        }
        for (mv, more) in other.scores.into_iter().flatten() {
            let scores = self.scores.get_or_insert_default();
            *scores.entry(mv).or_default() += &more;
        }
    }
}

/// Adds up a player's results in all games that pass the filters, regardless of the positions that they reached. Only
/// games of the variant of `line` count.
pub(super) fn scores_of_all_games(filters: &SourceFilters<'_>, line: &Line) -> PlayerScores {
    let add =
        |sum: &mut PlayerScores, source: &OpenIndex, filter: &SourceFilter<'_>, id, variant| {
            if line.variant().is_played_like(variant) {
                sum.add_game(&source.game(id), filter.player_of(id as usize));
            }
        };
    let join = |mut sum: PlayerScores, more: PlayerScores| {
        sum += &more;
        sum
    };
    scan_games(filters, add, join)
}

/// Counts the games that reached a position, including games that end in it.
#[derive(Default)]
struct GameCount {
    games: u64,
    /// Whether the number may be too low, because rare positions were removed from a source.
    is_incomplete: bool,
}

impl Collector for GameCount {
    fn accepted_rows(&self) -> AcceptedRows {
        AcceptedRows::All(Split::AllTime)
    }

    fn add_row(&mut self, _source: &OpenIndex, _period: Period, row: &ResultRow) {
        self.games += row.results.games();
    }

    fn add_games(&mut self, _: &OpenIndex, _: &SourceFilter<'_>, passing: &PassingGames<'_>) {
        self.games += passing.len();
    }

    fn note_missing(&mut self, source: &OpenIndex) {
        self.is_incomplete |= source.min_game().is_some();
    }

    fn join(&mut self, other: GameCount) {
        self.games += other.games;
        self.is_incomplete |= other.is_incomplete;
    }
}

/// Adds up the results of the games that reached a position, separately for each move that was played there.
#[derive(Default)]
struct ResultsByMove {
    /// The results of the games with each move. The move [`BookMove::NONE`] stands for games that end in the position.
    moves: FxHashMap<BookMove, Results>,
    /// Whether results may be missing, because rare positions were removed from a source.
    is_incomplete: bool,
}

impl Collector for ResultsByMove {
    fn accepted_rows(&self) -> AcceptedRows {
        AcceptedRows::All(Split::AllTime)
    }

    fn add_row(&mut self, _source: &OpenIndex, _period: Period, row: &ResultRow) {
        *self.moves.entry(row.mv).or_default() += row.results;
    }

    fn add_games(&mut self, source: &OpenIndex, _: &SourceFilter<'_>, passing: &PassingGames<'_>) {
        let mut sums = vec![Results::default(); passing.moves.len()];
        for (id, number) in passing.games {
            sums[*number as usize].add(source.rows.traits[*id as usize].result());
        }
        for (mv, results) in passing.moves.iter().zip(sums) {
            *self.moves.entry(*mv).or_default() += results;
        }
    }

    fn note_missing(&mut self, source: &OpenIndex) {
        self.is_incomplete |= source.min_game().is_some();
    }

    fn join(&mut self, other: ResultsByMove) {
        for (mv, results) in other.moves {
            *self.moves.entry(mv).or_default() += results;
        }
        self.is_incomplete |= other.is_incomplete;
    }
}

/// Returns the results of the games that reached the last position of `line` and pass the filters. Returns `None` if
/// the results are unknown because rare positions were removed from a source (an index of the explorer).
pub(super) fn resulting(filters: &SourceFilters<'_>, line: &Line) -> Result<Option<Resulting>> {
    let sums = scan(filters, &line.subjects(), ResultsByMove::default)?;
    let (mut results, mut ended) = (Results::default(), 0);
    for (mv, more) in &sums.moves {
        if *mv == BookMove::NONE {
            ended = more.games();
        } else if mv.to_move(line.position()).is_some() {
            // An illegal move belongs to another position with the same hash.
            results += *more;
        }
    }
    if filters.mix_counts_and_games() {
        results = results.with_unfinished_as_draws();
    }
    let resulting = Resulting {
        games: results.games(),
        results,
        ended: store_ends(filters).then_some(ended),
    };
    Ok((!sums.is_incomplete).then_some(resulting))
}

/// Returns `true` if all sources store the games that end in a position. Counts made by other programs may lack them.
fn store_ends(filters: &SourceFilters<'_>) -> bool {
    let sources = filters.of_sources.iter();
    let mut counted = sources.filter_map(|(source, _)| source.counted.as_ref());
    counted.all(|counted| counted.has_ends)
}

/// Returns the number of games that reached the last position of `line` and pass the filters. Games that end in this
/// position are included.
///
/// Returns `None` if the number is unknown because a source (an index of the explorer) contains incomplete counts.
/// Counts are incomplete if rare positions were removed from them, or if another program made them without the games
/// that end in a position.
pub(super) fn count_games(filters: &SourceFilters<'_>, line: &Line) -> Result<Option<u64>> {
    if !store_ends(filters) {
        return Ok(None);
    }
    let count = scan(filters, &line.subjects(), GameCount::default)?;
    Ok((!count.is_incomplete).then_some(count.games))
}

/// Returns, for each player in `wanted.player`, the number of games that pass the filters. `filters` is the prepared
/// form of `wanted`.
///
/// One query for each player would return the same numbers, but would read the games several times. The numbers are also
/// the same if duplicate games count once, because duplicates have the same players.
pub(super) fn count_games_of_players(
    filters: &SourceFilters<'_>,
    wanted: &Selection,
) -> Result<Vec<u64>> {
    // The players, by the first game of a source and the number of a name in this source.
    let mut players: FxHashMap<(u64, u32), Vec<usize>> = FxHashMap::default();
    for (source, _) in &filters.of_sources {
        for (player, name) in wanted.player.iter().enumerate() {
            for number in source.numbers_of(name, wanted.name_match())? {
                let named = players.entry((source.first, number)).or_default();
                named.push(player);
            }
        }
    }
    let zeros = || vec![0u64; wanted.player.len()];
    let add = |games: &mut Vec<u64>, source: &OpenIndex, filter: &SourceFilter<'_>, id, _| {
        let names = source.rows.players[id as usize];
        let sides = Color::ALL.into_iter().zip(names);
        let sides = sides.zip(filter.colors(id as usize));
        let sides = sides.filter(|((color, _), is_player)| {
            *is_player && wanted.color.is_none_or(|wanted| wanted == *color)
        });
        let found = sides.filter_map(|((_, name), _)| players.get(&(source.first, name)));
        // A player may have both sides.
        let found: BTreeSet<usize> = found.flatten().copied().collect();
        if games.is_empty() {
            *games = zeros();
        }
        found.into_iter().for_each(|player| games[player] += 1);
    };
    let join = |a: Vec<u64>, b: Vec<u64>| match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.iter().zip(b).map(|(a, b)| a + b).collect(),
    };
    let games = scan_games(filters, add, join);
    Ok(if games.is_empty() { zeros() } else { games })
}

/// The minimum number of games for a performance rating, because a rating from fewer games would mean little. Only
/// games with a result and a rated opponent count.
const MIN_PERFORMANCE_GAMES: u64 = 10;

/// The rating differences in FIDE's rating regulations (B.02, section 8.1.1) for scores from 50 to 100 percent, indexed
/// by the score minus 50. For a score `s` below 50 percent, the difference is the negative of the difference for `100 -
/// s`.
const RATING_DIFFERENCES: [i32; 51] = [
    0, 7, 14, 21, 29, 36, 43, 50, 57, 65, 72, 80, 87, 95, 102, 110, 117, 125, 133, 141, 149, 158,
    166, 175, 184, 193, 202, 211, 220, 230, 240, 251, 262, 273, 284, 296, 309, 322, 336, 351, 366,
    383, 401, 422, 444, 470, 501, 538, 589, 677, 800,
];

/// Returns the performance rating of a player who scored `half_points / 2` points in `games` games. `opponents` is the
/// mean rating of the opponents.
///
/// # Panics
///
/// Panics if `games` is 0.
fn performance(opponents: u64, half_points: u64, games: u64) -> u64 {
    // The score in percent, rounded half up.
    let percent = (100 * half_points + games) / (2 * games);
    let above = match percent.checked_sub(50) {
        Some(above) => RATING_DIFFERENCES[above.min(50) as usize],
        None => -RATING_DIFFERENCES[50 - percent as usize],
    };
    opponents.saturating_add_signed(i64::from(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_ratings() {
        assert_eq!(performance(2400, 10, 10), 2400);
        assert_eq!(performance(2400, 20, 10), 3200);
        assert_eq!(performance(2400, 0, 10), 1600);
        assert_eq!(performance(2400, 13, 10), 2510);
        assert_eq!(performance(2400, 7, 10), 2290);
        assert_eq!(performance(100, 0, 1), 0);
    }
}

//! Groups the games that reached a position by opening, to show which openings gain and which cost a player points.

use std::{cmp::Reverse, collections::BTreeMap, ops::AddAssign};

use rayon::prelude::*;
use shakmaty::Color;

use super::{
    expectation::{PlayerScores, score_range},
    filter::{SourceFilter, SourceFilters},
    open_index::{GameSummary, OpenIndex, text_of_number},
    query::Line,
    scan::{Collector, PassingGames, scan, scan_games},
    sources::Sources,
    tally::{PlayerTally, count_games},
};
use crate::{
    error::Result,
    games::{
        openings::{Opening, OpeningNumber},
        results::{Mean, Results, Wdl},
        selection::Selection,
    },
};

/// The openings of the games that reached a position, grouped by family.
///
/// The opening of a game is the name of its last position that has a name. Scores are those of the player whom the
/// filters name or, if they name no player, of White. Unfinished games do not affect scores. If the filters select
/// games by their result, the table contains no scores, because they would describe only the selection.
///
/// Scores are compared with those in the *compared games*: all games that pass the filters apart from `eco`, `opening`
/// and `position`, whatever positions they reached.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpeningTable {
    /// The games that reached the position and pass the filters, including games that end there.
    #[serde(flatten)]
    pub results: Results,
    /// The number of games that reached no position with a name.
    pub unnamed: u64,
    /// The number of compared games.
    #[serde(skip)]
    pub all_games: u64,
    /// The average score in percent in the compared games: all games that pass the filters apart from `eco`, `opening`
    /// and `position`, whatever positions they reached. `None` if none of them has a result, or if the filters select
    /// games by their result.
    pub average_score: Option<f64>,
    /// The player's average scores in percent in these games, with White and with Black. `None` if the filters name no
    /// player, if they select games by their result, or if no game with one of the colors has a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_by_color: Option<[f64; 2]>,
    /// The mean rating of the player's opponents in the compared games. `None` if the filters name no player or no rating
    /// is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opponent_rating: Option<u64>,
    /// The player's performance by FIDE's table in the compared games. `None` if the filters name no player, for fewer
    /// than ten games with a result and a rated opponent, or if the filters select games by their result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance: Option<u64>,
    /// The player's performances in these games with White and with Black, or `None` if one of them is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance_by_color: Option<[u64; 2]>,
    /// The families of openings, sorted by the points that the player lost or, without points, by the number of games,
    /// in descending order.
    pub families: Vec<OpeningRow>,
}

/// A row of an [`OpeningTable`]. It contains the results of one opening, or of a family of openings.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpeningRow {
    /// The name.
    pub name: &'static str,
    /// The lowest and the highest ECO code of the games' openings.
    pub eco: [&'static str; 2],
    /// The numbers of won, drawn, lost and unfinished games.
    #[serde(flatten)]
    pub results: Results,
    /// The results of the player or, if the filters name no player, of White.
    #[serde(flatten, serialize_with = "Wdl::without_draws")]
    #[cfg_attr(test, schemars(with = "crate::games::results::Decisive"))]
    pub stats: Wdl,
    /// The score in percent. `None` if no game has a result, or if the filters select games by their result.
    pub score: Option<f64>,
    /// The 80 % confidence interval of the score, in percent. `None` if the score is `None`.
    pub score_range: Option<[f64; 2]>,
    /// The points that the player won above the expected points; negative if the player lost points. Against rated
    /// opponents, the points are expected by Elo's curve, from the player's performance with the same color in the
    /// other games that pass the filters apart from `eco`, `opening` and `position`. Against opponents without a rating,
    /// they are expected by the player's average in these games. `None` if the filters name no player, if they select
    /// games by their result, or if there are no other games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<f64>,
    /// The points that the player won above the average with the same color in the compared games of the table,
    /// whatever the ratings of the opponents. `None` if the filters name no player, or if they select games by their
    /// result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points_above_average: Option<f64>,
    /// The expected score in percent, from which `points` are counted. `None` if the score is `None`, or if there are
    /// no other games.
    #[serde(skip)]
    pub expected_score: Option<f64>,
    /// The mean rating of the player's opponents, or `None` if the filters name no player or no rating is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opponent_rating: Option<u64>,
    /// The player's performance by FIDE's table, or `None` if the filters name no player, for fewer than ten games
    /// with a result and a rated opponent, or if the filters select games by their result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance: Option<u64>,
    /// The mean of all known ratings of both players, or `None` if the filters name a player or no rating is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<u64>,
    /// The date of the newest game: `2006-01-02`, or only its known parts. `None` if no date is known.
    pub last_played: Option<String>,
    /// The moves that usually lead to the opening, in UCI notation with castling as king takes rook. For a family,
    /// they lead to the position that has the name of the family, if one has it.
    pub line: Vec<String>,
    /// The number of games that pass the filters and reached the position after `line`, by any order of moves. Some
    /// of these games belong to other openings, because they reached a later position with a name. `None` if the
    /// position is not indexed, because the index was made with `--max-ply`.
    pub line_games: Option<u64>,
    /// The openings of a family, sorted like the families. Empty for a single opening.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variations: Vec<OpeningRow>,
}

/// Sums of the results and ratings in the games of one opening.
#[derive(Clone, Default)]
struct OpeningTally {
    results: Results,
    player: PlayerTally,
    /// The number of finished games for each color of the player (`Color as usize`).
    finished: [u64; 2],
    /// The results of the finished games, grouped by the opponent's rating.
    scores: PlayerScores,
    /// The mean of the known ratings of both players.
    ratings: Mean,
}

impl OpeningTally {
    fn add(&mut self, summary: &GameSummary, player: Color, of_player: bool) {
        self.results.add(summary.result());
        self.player.add(summary, player);
        self.finished[player as usize] += u64::from(summary.has_result());
        add_score(&mut self.scores, summary, player, of_player);
        for rating in summary.elo {
            self.ratings.add(rating);
        }
    }
}

/// Adds the result of a finished game to `scores`. `player` is the color of the player. The opponent's rating is used
/// only if `of_player` is `true`, because the query names a player.
fn add_score(scores: &mut PlayerScores, summary: &GameSummary, player: Color, of_player: bool) {
    if of_player {
        scores.add_game(summary, player);
    } else if summary.has_result() {
        scores.add(player, 0, Wdl::of_game(summary.winner(), player));
    }
}

impl AddAssign<&OpeningTally> for OpeningTally {
    fn add_assign(&mut self, other: &OpeningTally) {
        self.results += other.results;
        self.player += other.player;
        self.ratings += other.ratings;
        self.scores += &other.scores;
        for (sum, more) in self.finished.iter_mut().zip(other.finished) {
            *sum += more;
        }
    }
}

/// A player's average score with each color, stored as totals: the half points scored and the number of finished games.
/// Each array is indexed by the color of the player (`Color as usize`).
#[derive(Clone, Default)]
struct Average {
    /// The number of games with both colors, including unfinished games.
    games: u64,
    half_points: [u64; 2],
    finished: [u64; 2],
    /// The player's results and the opponents' ratings, for each color of the player.
    players: [PlayerTally; 2],
    scores: PlayerScores,
}

impl Average {
    /// Adds a game to the totals. `player` is the color of the player in this game. An unfinished game does not affect
    /// the scores.
    fn add(&mut self, summary: &GameSummary, player: Color, of_player: bool) {
        self.games += 1;
        self.players[player as usize].add(summary, player);
        add_score(&mut self.scores, summary, player, of_player);
        if summary.has_result() {
            self.finished[player as usize] += 1;
            let stats = Wdl::of_game(summary.winner(), player);
            self.half_points[player as usize] += stats.half_points();
        }
    }

    /// Returns the player's average score with a color, in percent, or `None` if no game with this color has a result.
    fn with_color(&self, color: Color) -> Option<f64> {
        let points = self.half_points[color as usize] as f64 / 2.0;
        percent(points, self.finished[color as usize])
    }

    fn joined(mut self, other: Average) -> Average {
        for color in 0..2 {
            self.players[color] += other.players[color];
        }
        self.scores += &other.scores;
        let sums = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        Average {
            games: self.games + other.games,
            half_points: sums(self.half_points, other.half_points),
            finished: sums(self.finished, other.finished),
            ..self
        }
    }

    /// Returns the number of points that the player is expected to score in a set of games: for each color, the
    /// player's average score times the number of games. `finished` contains the numbers of finished games in the set,
    /// indexed by the player's color.
    fn expected(&self, finished: [u64; 2]) -> f64 {
        let of_color = |color: usize| match self.finished[color] {
            0 => 0.0,
            games => finished[color] as f64 * self.half_points[color] as f64 / (2 * games) as f64,
        };
        of_color(0) + of_color(1)
    }
}

/// Sums up the results and ratings of the games of each opening. `tallies` is indexed by the number of the opening.
struct OpeningTallies {
    tallies: Vec<OpeningTally>,
    of_player: bool,
}

impl OpeningTallies {
    fn new(of_player: bool) -> OpeningTallies {
        OpeningTallies {
            tallies: vec![OpeningTally::default(); OpeningNumber::COUNT],
            of_player,
        }
    }
}

impl Collector for OpeningTallies {
    fn add_games(
        &mut self,
        source: &OpenIndex,
        filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        for (id, _) in passing.games {
            let opening = source.rows.openings[*id as usize];
            let player = color_of(filter, *id, self.of_player);
            self.tallies[opening.number()].add(&source.game(*id), player, self.of_player);
        }
    }

    fn join(&mut self, other: OpeningTallies) {
        for (sum, more) in self.tallies.iter_mut().zip(&other.tallies) {
            *sum += more;
        }
    }
}

/// Returns the color of the player whose score counts in game `id`: the player whom the query names or, if `of_player`
/// is `false` because it names none, White.
fn color_of(filter: &SourceFilter<'_>, id: u32, of_player: bool) -> Color {
    if of_player {
        filter.player_of(id as usize)
    } else {
        Color::White
    }
}

/// Returns the openings of the games that reached the last position of `line` and pass the filters `asked`. Openings
/// for which `row_name` returns the same name share a row. Implements [`Explorer::openings`](super::Explorer::openings)
/// and [`Explorer::openings_by_variation`](super::Explorer::openings_by_variation).
pub(super) fn opening_table(
    sources: &Sources,
    line: &Line,
    asked: &Selection,
    row_name: fn(&Opening) -> &'static str,
) -> Result<OpeningTable> {
    let filters = sources.filters_of_all_games(asked, "a table of openings")?;
    // Every list below is filtered, so filtering all games once in advance saves time.
    for (_, filter) in &filters.of_sources {
        filter.precompute();
    }
    let of_player = !asked.player.is_empty();
    let average = match asked.of_any_opening() {
        None => average_of(&filters, line, of_player),
        Some(any) => average_of(&sources.filters(&any)?, line, of_player),
    };
    let new = || OpeningTallies::new(of_player);
    let tallies = scan(&filters, &[line.subject()], new)?.tallies;
    let mut total = OpeningTally::default();
    tallies.iter().for_each(|tally| total += tally);
    let rows = OpeningRows {
        asked,
        filters: &filters,
        line,
        tallies: &tallies,
        average: &average,
        of_player,
    };
    let families = rows.families(row_name)?;
    let named: u64 = families.iter().map(|family| family.results.games()).sum();
    let finished: u64 = average.finished.iter().sum();
    let points = average.expected(average.finished);
    let has_scores = !asked.selects_by_result();
    let mut player = average.players[0];
    player += average.players[1];
    let player = of_player.then_some(player);
    let performance = |color| average.players[color as usize].performance(asked);
    Ok(OpeningTable {
        results: total.results,
        unnamed: total.results.games() - named,
        all_games: average.games,
        average_score: percent(points, finished).filter(|_| has_scores),
        average_by_color: average
            .with_color(Color::White)
            .zip(average.with_color(Color::Black))
            .filter(|_| of_player && has_scores)
            .map(<[f64; 2]>::from),
        opponent_rating: player.and_then(|player| player.opponents.rounded()),
        performance: player.and_then(|player| player.performance(asked)),
        performance_by_color: performance(Color::White)
            .zip(performance(Color::Black))
            .filter(|_| of_player)
            .map(<[u64; 2]>::from),
        families,
    })
}

/// Returns the player's average score in all games that pass `filters`, regardless of the positions that they reached.
/// Only games of the variant of `line` count. If `of_player` is `false`, because the query names no player, returns the
/// average score of White.
fn average_of(filters: &SourceFilters<'_>, line: &Line, of_player: bool) -> Average {
    let add = |sum: &mut Average, source: &OpenIndex, filter: &SourceFilter<'_>, id, variant| {
        if line.variant().is_played_like(variant) {
            sum.add(&source.game(id), color_of(filter, id, of_player), of_player);
        }
    };
    scan_games(filters, add, Average::joined)
}

/// Builds the rows of an [`OpeningTable`].
struct OpeningRows<'a> {
    /// The filters that select the games of the table.
    asked: &'a Selection,
    filters: &'a SourceFilters<'a>,
    line: &'a Line,
    /// The sums for each opening, indexed by the number of the opening.
    tallies: &'a [OpeningTally],
    average: &'a Average,
    of_player: bool,
}

impl OpeningRows<'_> {
    /// Returns a row for each family of openings that has games. The row of a family contains further rows, one for
    /// each name that `row_name` returns for the openings of the family.
    fn families(&self, row_name: fn(&Opening) -> &'static str) -> Result<Vec<OpeningRow>> {
        let mut families: BTreeMap<&str, BTreeMap<&str, Vec<OpeningNumber>>> = BTreeMap::new();
        for (number, opening) in OpeningNumber::all() {
            if self.tally(number).results.games() > 0 {
                let family = families.entry(opening.family()).or_default();
                family.entry(row_name(&opening)).or_default().push(number);
            }
        }
        let families: Vec<_> = families.into_iter().collect();
        let row = |(name, variations): &(&'static str, BTreeMap<&'static str, Vec<_>>)| {
            self.family(name, variations)
        };
        let mut rows = families.par_iter().map(row).collect::<Result<Vec<_>>>()?;
        self.sort(&mut rows);
        Ok(rows)
    }

    fn family(
        &self,
        name: &'static str,
        variations: &BTreeMap<&'static str, Vec<OpeningNumber>>,
    ) -> Result<OpeningRow> {
        let rows = variations.par_iter();
        let rows = rows.map(|(name, numbers)| {
            let is_bare =
                |number: &&OpeningNumber| number.opening().is_some_and(|one| one.name == *name);
            let bare: Vec<OpeningNumber> = numbers.iter().filter(is_bare).copied().collect();
            let examples = if bare.is_empty() { numbers } else { &bare };
            self.row(name, numbers, self.most_played(examples))
        });
        let mut rows = rows.collect::<Result<Vec<_>>>()?;
        self.sort(&mut rows);
        let numbers: Vec<OpeningNumber> = variations.values().flatten().copied().collect();
        let bare = OpeningNumber::all().filter(|(_, opening)| opening.name == name);
        let bare = bare.map(|(number, _)| number);
        let main = bare
            .min_by_key(|number| number.moves().len())
            .unwrap_or_else(|| self.most_played(&numbers));
        let mut family = self.row(name, &numbers, main)?;
        family.variations = rows;
        Ok(family)
    }

    fn tally(&self, number: OpeningNumber) -> &OpeningTally {
        &self.tallies[number.number()]
    }

    /// Returns the opening in `numbers` that has the most games. In case of a tie, returns the first of these openings.
    fn most_played(&self, numbers: &[OpeningNumber]) -> OpeningNumber {
        let games = |number: &&OpeningNumber| self.tally(**number).results.games();
        let most = numbers.iter().rev().max_by_key(games);
        *most.expect("a row has at least one number")
    }

    /// Sorts the rows so that the openings in which the player lost the most points, compared with the average, come
    /// first. Rows without this number are sorted by their number of games in descending order.
    fn sort(&self, rows: &mut [OpeningRow]) {
        rows.sort_by(|a, b| {
            let by_points = a.points.unwrap_or(0.0).total_cmp(&b.points.unwrap_or(0.0));
            by_points.then_with(|| {
                (Reverse(a.results.games()), a.name).cmp(&(Reverse(b.results.games()), b.name))
            })
        });
    }

    /// Returns the row of an opening or of a family of openings, which sums up the games of the openings `numbers`. The
    /// row shows the moves of the opening `main` as an example.
    fn row(
        &self,
        name: &'static str,
        numbers: &[OpeningNumber],
        main: OpeningNumber,
    ) -> Result<OpeningRow> {
        let mut sum = OpeningTally::default();
        numbers.iter().for_each(|number| sum += self.tally(*number));
        let codes = numbers.iter().filter_map(|number| number.opening());
        let codes = codes.map(|opening| opening.eco);
        let player = &sum.player;
        let finished = player.stats.games();
        let points = player.stats.half_points() as f64 / 2.0;
        let average = self.average.expected(sum.finished);
        let expected = sum.scores.expectation(&self.average.scores);
        let is_compared = expected.games > 0;
        let has_scores = !self.asked.selects_by_result();
        let line: Vec<String> = main.moves().iter().map(ToString::to_string).collect();
        // In three-check, a third check can end the game before the end of a line.
        let to_opening = Line::parse(self.line.variant(), None, &line.join(",")).ok();
        let reached = to_opening.map(|to_opening| count_games(self.filters, &to_opening));
        let mut sources = self.filters.of_sources.iter();
        let is_indexed = sources.all(|(source, _)| source.has_ply(line.len()));
        Ok(OpeningRow {
            name,
            eco: [
                codes.clone().min().unwrap_or_default(),
                codes.max().unwrap_or_default(),
            ],
            results: sum.results,
            stats: player.stats,
            score: percent(points, finished).filter(|_| has_scores),
            score_range: score_range(player.stats, expected).filter(|_| has_scores),
            points: (self.of_player && has_scores && is_compared)
                .then(|| without_noise(points - expected.points)),
            points_above_average: (self.of_player && has_scores)
                .then(|| without_noise(points - average)),
            expected_score: percent(expected.points, finished)
                .filter(|_| has_scores && is_compared),
            opponent_rating: player.opponents.rounded().filter(|_| self.of_player),
            performance: player.performance(self.asked).filter(|_| self.of_player),
            rating: sum.ratings.rounded().filter(|_| !self.of_player),
            last_played: text_of_number(player.last),
            line_games: if is_indexed {
                Some(reached.transpose()?.flatten().unwrap_or_default())
            } else {
                None
            },
            line,
            variations: Vec::new(),
        })
    }
}

/// Returns `points` as a percentage of `games`, or `None` if `games` is 0.
fn percent(points: f64, games: u64) -> Option<f64> {
    (games > 0).then(|| 100.0 * points / games as f64)
}

/// Rounds a difference to nine decimal places, so that rounding errors do not make equal differences unequal. Returns 0
/// instead of -0.
fn without_noise(difference: f64) -> f64 {
    (1e9 * difference).round() / 1e9 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_points_are_rounded_only_when_displayed() {
        // Rounding to two decimal places first would display 7/13 as 53.9 percent, and -0.3503 points as -0.3.
        assert_eq!(format!("{:.1}", percent(7.0, 13).unwrap()), "53.8");
        assert_eq!(without_noise(-0.350_3), -0.350_3);
        assert_eq!(without_noise(0.3 - (0.1 + 0.2)).to_string(), "0");
    }

    #[test]
    fn averages_are_those_of_the_same_color() {
        let average = Average {
            games: 0,
            half_points: [30, 10],
            finished: [20, 20],
            ..Average::default()
        };
        assert_eq!(average.expected([10, 0]), 7.5);
        assert_eq!(average.expected([0, 10]), 2.5);
        assert_eq!(average.expected([2, 2]), 2.0);
        assert_eq!(Average::default().expected([0, 0]), 0.0);
    }
}

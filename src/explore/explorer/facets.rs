//! Counts games for each value of a filter, for example for each speed or each year.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use shakmaty::Color;

use super::{
    duplicate_groups::CountedOnce,
    filter::{SourceFilter, SourceFilters, Split, date_of},
    open_index::{DateRange, GameSummary, OpenIndex, UNRATED},
    query::Line,
    scan::{AcceptedRows, Collector, PassingGames, scan, scan_games},
    sources::Sources,
};
use crate::{
    chess::position::{BookMove, Variant},
    error::Result,
    formats::explorer_index::results::{Period, ResultRow},
    games::{
        pgn::{RatingGroup, Speed},
        results::Results,
        selection::Selection,
    },
};

/// The number of games for each value of the filters by speed, rating group, color, year and variant. For example, the
/// number for blitz is the number of games that would pass if the filter by speed admitted only blitz and all other
/// filters were unchanged.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Facets {
    /// The number of games that pass all filters and continue from the position.
    pub games: u64,
    /// The number of games of each speed, by the name of the speed.
    pub speeds: BTreeMap<&'static str, u64>,
    /// The number of games of each rating group, by the lowest rating of the group.
    pub ratings: BTreeMap<u32, u64>,
    /// The number of games without a known rating.
    pub unknown_ratings: u64,
    /// The numbers of the player's games with White and with Black, or `None` if the filters name no player.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<ColorCount>,
    /// The number of games of each year that has games.
    pub years: BTreeMap<u16, u64>,
    /// The number of games of each variant, whatever positions they reached. `None` if a source contains counts from
    /// which the number cannot be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<BTreeMap<&'static str, u64>>,
    /// The minimum number of counted moves in a position if rarer positions were removed from the counts, otherwise
    /// `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_game: Option<u64>,
}

/// The number of games in which a player has White, and the number of games in which this player has Black.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ColorCount {
    /// The number of games in which the player has White.
    pub white: u64,
    /// The number of games in which the player has Black.
    pub black: u64,
}

/// The results of the games of one rating group.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RatingScore {
    /// The lowest rating of the group, or `unknown` for games without a known rating.
    pub rating: String,
    /// The numbers of won, drawn, lost and unfinished games. Leave out the unfinished games when you calculate a score.
    #[serde(flatten, serialize_with = "Results::without_total")]
    #[cfg_attr(test, schemars(with = "crate::games::results::EachResult"))]
    pub results: Results,
}

/// The index of the element of [`GroupTally::counts`] that contains the number of games that pass all filters.
const GAMES: usize = 0;
/// The index in [`GroupTally::counts`] of the first element for a speed. There is one element for each speed, which
/// contains the number of games played at this speed.
const SPEEDS: usize = GAMES + 1;
/// The index in [`GroupTally::counts`] of the first element for a rating group. There is one element for each rating
/// group, which contains the number of its games.
const RATINGS: usize = SPEEDS + Speed::ALL.len();
/// The index of the element of [`GroupTally::counts`] that contains the number of games without a known rating.
const UNKNOWN_RATINGS: usize = RATINGS + RatingGroup::COUNT;
/// The index in [`GroupTally::counts`] of the number of games in which the player whom the query names has White. The
/// next element is the number of games in which this player has Black.
const COLORS: usize = UNKNOWN_RATINGS + 1;
/// The index in [`GroupTally::counts`] of the number of games with a known year. Games outside the filter by date are
/// included, because the number of games of each year ignores this filter.
const YEARS: usize = COLORS + 2;

/// The numbers of games, grouped by speed, rating group, color and year. The field `years` maps each year to its number
/// of games; the array `counts` contains all other numbers.
#[derive(Default)]
struct GroupTally {
    counts: [u64; YEARS + 1],
    years: FxHashMap<u16, u64>,
}

/// The filters by speed, rating group, color and date, prepared for [`facets`], which applies each of them separately.
/// To count the games for each value of one filter, `facets` ignores this filter and applies the other three.
struct FacetFilters {
    speeds: [bool; Speed::ALL.len()],
    ratings: [bool; UNRATED + 1],
    /// The color that the player must have, or `None` if either color passes.
    color: Option<Color>,
    dates: DateRange,
}

/// Counts the games that reached a position, for each value of a filter. Implements
/// [`Explorer::facets`](super::Explorer::facets).
pub(super) fn facets(sources: &Sources, line: &Line, filters: &Selection) -> Result<Facets> {
    let GroupTally { counts, years } = grouped(sources, line, filters)?;
    let speeds = Speed::ALL.map(Speed::name).into_iter();
    let floors = RatingGroup::all().map(RatingGroup::floor);
    Ok(Facets {
        games: counts[GAMES],
        speeds: speeds.zip(counts[SPEEDS..].iter().copied()).collect(),
        ratings: floors.zip(counts[RATINGS..].iter().copied()).collect(),
        unknown_ratings: counts[UNKNOWN_RATINGS],
        colors: (!filters.player.is_empty()).then(|| ColorCount {
            white: counts[COLORS],
            black: counts[COLORS + 1],
        }),
        years: years.into_iter().collect(),
        variants: variants(sources, filters)?,
        min_game: sources.min_game(filters),
    })
}

/// The results of the games that reached a position, summed for each rating group. The last element is the sum for
/// games without a known rating.
#[derive(Default)]
struct GroupResults([Results; UNRATED + 1]);

impl Collector for GroupResults {
    fn accepted_rows(&self) -> AcceptedRows {
        AcceptedRows::All(Split::AllTime)
    }

    fn add_row(&mut self, _source: &OpenIndex, _period: Period, row: &ResultRow) {
        if row.mv != BookMove::NONE {
            self.0[row.class.group()] += row.results;
        }
    }

    fn add_games(
        &mut self,
        source: &OpenIndex,
        _filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        for (_, game) in passing.continuing(source) {
            self.0[game.traits.group()].add(game.result());
        }
    }

    fn join(&mut self, other: GroupResults) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

/// Returns the results of the games that reached a position, grouped by rating group. Groups without games are left
/// out. Implements [`Explorer::scores`](super::Explorer::scores).
pub(super) fn scores(
    sources: &Sources,
    line: &Line,
    filters: &Selection,
) -> Result<Vec<RatingScore>> {
    let filters = sources.filters(filters)?;
    let GroupResults(mut sums) = scan(&filters, &line.subjects(), GroupResults::default)?;
    if filters.mix_counts_and_games() {
        sums = sums.map(Results::with_unfinished_as_draws);
    }
    let names = RatingGroup::all().map(|group| group.floor().to_string());
    let names = names.chain(["unknown".to_owned()]);
    let scores = names.zip(sums).filter(|(_, sum)| sum.games() > 0);
    let score = |(rating, results)| RatingScore { rating, results };
    Ok(scores.map(score).collect())
}

/// Returns the number of games of each variant that pass `filters`, keyed by the name of the variant. Implements
/// [`Explorer::variants`](super::Explorer::variants).
///
/// Returns `None` if a selected source contains only counts (sums of results without individual games) that do not tell
/// these numbers.
pub(super) fn variants(
    sources: &Sources,
    filters: &Selection,
) -> Result<Option<BTreeMap<&'static str, u64>>> {
    let is_all = Selection {
        source: None,
        ..filters.clone()
    };
    let is_all = is_all.is_empty();
    let filters = sources.filters(filters)?;
    let counts = filters.of_sources.iter().map(|(source, _)| *source);
    let counts = counts.filter(|source| source.counted.is_some());
    if !is_all && counts.clone().next().is_some() {
        return Ok(None);
    }
    type GamesByVariant = [u64; Variant::ALL.len()];
    let games: GamesByVariant = scan_games(
        &filters,
        |games: &mut GamesByVariant, _, _, _, variant| games[variant as usize] += 1,
        |a, b| std::array::from_fn(|variant| a[variant] + b[variant]),
    );
    let games = Variant::ALL.into_iter().zip(games);
    let mut by_name: BTreeMap<&str, u64> = games
        .filter(|(_, games)| *games > 0)
        .map(|(variant, games)| (name_of(variant), games))
        .collect();
    for source in counts {
        let Some(games) = source.counted_games() else {
            return Ok(None);
        };
        if let Some(variant) = source.index.variant().only() {
            *by_name.entry(name_of(variant)).or_default() += games;
        }
    }
    Ok(Some(by_name))
}

fn grouped(sources: &Sources, line: &Line, filters: &Selection) -> Result<GroupTally> {
    let groups = FacetFilters::of(filters);
    // The value of a filter decides which game of a duplicate group passes first, so duplicates are handled per
    // value.
    let duplicates = filters
        .counts_once()
        .then(|| sources.duplicates(filters).map(CountedOnce::new))
        .transpose()?;
    let filters = sources.filters(&Selection {
        speed: None,
        rating: None,
        since: None,
        until: None,
        color: None,
        duplicates: None,
        ..filters.clone()
    })?;
    let filters = &filters.of_either_color();
    let new = || GroupCounter {
        groups: &groups,
        duplicates: duplicates.as_ref(),
        filters,
        tally: GroupTally::default(),
    };
    Ok(scan(filters, &line.subjects(), new)?.tally)
}

/// A collector that counts the games that reached a position, for each value of the filters by speed, rating group,
/// color and year.
struct GroupCounter<'a> {
    groups: &'a FacetFilters,
    /// The groups of duplicate games, if each group counts as one game. The first game of a group that passes the
    /// filters is then the one that counts.
    duplicates: Option<&'a CountedOnce>,
    filters: &'a SourceFilters<'a>,
    tally: GroupTally,
}

impl Collector for GroupCounter<'_> {
    fn accepted_rows(&self) -> AcceptedRows {
        // Each period must lie entirely inside or outside the range of dates.
        AcceptedRows::OfCounts(if self.groups.dates.is_all() {
            Split::ByYear
        } else {
            Split::ByMonth
        })
    }

    fn add_row(&mut self, _source: &OpenIndex, period: Period, row: &ResultRow) {
        if row.mv == BookMove::NONE {
            return;
        }
        let (class, date) = (row.class, date_of(period));
        let groups = self.groups;
        let counters = groups.counters(class.speed(), class.group(), date, [false, false, true]);
        self.tally.add(counters, date, row.results.games());
    }

    fn add_games(
        &mut self,
        source: &OpenIndex,
        filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        let groups = self.groups;
        for (id, game) in passing.continuing(source) {
            let mut counters = groups.counters_of(&game, filter, id);
            if let Some(duplicates) = self.duplicates {
                let number = source.first + u64::from(id);
                counters = duplicates.counted(number, counters, |other| {
                    let passing = self.filters.passing(other);
                    passing.map_or(0, |(source, filter, id)| {
                        groups.counters_of(&source.game(id), filter, id)
                    })
                });
            }
            self.tally.add(counters, game.date, 1);
        }
    }

    fn join(&mut self, other: Self) {
        self.tally.join(other.tally);
    }
}

impl FacetFilters {
    fn of(filters: &Selection) -> FacetFilters {
        let mut ratings = [filters.admits_rating(None); UNRATED + 1];
        for (passes, group) in ratings.iter_mut().zip(RatingGroup::all()) {
            *passes = filters.admits_rating(Some(group));
        }
        FacetFilters {
            speeds: Speed::ALL.map(|speed| filters.admits_speed(speed)),
            ratings,
            color: filters.color.filter(|_| !filters.player.is_empty()),
            dates: DateRange::new(filters),
        }
    }

    /// Returns the elements of [`GroupTally::counts`] to which `game` must be added, as a bit set of their indexes.
    /// `id` is the id of the game in the index to which `filter` belongs.
    fn counters_of(&self, game: &GameSummary, filter: &SourceFilter<'_>, id: u32) -> u32 {
        let id = id as usize;
        let [as_white, as_black] = filter.colors(id);
        let colors = [as_white, as_black, filter.admits_without_color(id)];
        let (speed, group) = (game.traits.speed(), game.traits.group());
        self.counters(speed, group, game.date, colors)
    }

    /// Returns the elements of [`GroupTally::counts`] to which a game with the given speed, rating group and date must
    /// be added, as a bit set of their indexes. The last argument says whether the game passes the filters by player in
    /// three cases: if the player must have White, if the player must have Black, and if the player may have either
    /// color.
    fn counters(
        &self,
        speed: usize,
        group: usize,
        date: u32,
        [as_white, as_black, without_color]: [bool; 3],
    ) -> u32 {
        let (of_speed, of_group) = (self.speeds[speed], self.ratings[group]);
        let in_time = self.dates.contains(date);
        let of_color = match self.color {
            Some(color) => color.fold_wb(as_white, as_black),
            None => without_color,
        };
        let passes = of_speed && of_group && in_time;
        let of_ratings = of_color && of_speed && in_time;
        // The bit of games without a known rating follows the bits of the rating groups.
        let bit = |counts: bool, at: usize| u32::from(counts) << at;
        bit(passes && of_color, GAMES)
            | bit(of_color && of_group && in_time, SPEEDS + speed)
            | bit(of_ratings, RATINGS + group)
            | bit(passes && as_white, COLORS)
            | bit(passes && as_black, COLORS + 1)
            | bit(of_color && of_speed && of_group && date >> 9 > 0, YEARS)
    }
}

impl GroupTally {
    /// Adds `games` to each element of `counts` whose index is in the bit set `counters`. If `counters` contains the
    /// bit [`YEARS`], also adds `games` to the number for the year of `date`. `date` is the date number that all of
    /// these games have.
    fn add(&mut self, mut counters: u32, date: u32, games: u64) {
        if counters >> YEARS & 1 == 1 {
            *self.years.entry((date >> 9) as u16).or_default() += games;
        }
        while counters > 0 {
            self.counts[counters.trailing_zeros() as usize] += games;
            counters &= counters - 1;
        }
    }

    fn join(&mut self, other: GroupTally) {
        for (sum, more) in self.counts.iter_mut().zip(other.counts) {
            *sum += more;
        }
        for (year, games) in other.years {
            *self.years.entry(year).or_default() += games;
        }
    }
}

/// Returns the name of a variant in Lichess's API, such as `threeCheck`.
pub(super) fn name_of(variant: Variant) -> &'static str {
    match variant {
        Variant::Standard => "standard",
        Variant::Chess960 => "chess960",
        Variant::Crazyhouse => "crazyhouse",
        Variant::Suicide => "suicide",
        Variant::Giveaway => "antichess",
        Variant::Atomic => "atomic",
        Variant::ThreeCheck => "threeCheck",
        Variant::Horde => "horde",
        Variant::KingOfTheHill => "kingOfTheHill",
        Variant::RacingKings => "racingKings",
    }
}

//! Applies the filters of a query to the games of each source.
//!
//! [`ClassFilter`] contains filters that depend only on speed, rating group and month. The explorer can apply them to
//! stored sums of results, without reading individual games.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use rayon::prelude::*;
use shakmaty::Color;

use super::{
    duplicate_groups::{CountedOnce, DuplicateGroups},
    found_games::GameSet,
    open_index::{DateRange, GameColumns, OpenIndex, TraitValues, Traits},
};
use crate::{
    error::Result,
    formats::{
        explorer_index::{
            EcoNumber, ListKey,
            results::{Class, Period, YearMonths},
        },
        index::ListLocation,
    },
    games::{
        openings::OpeningFilter,
        pgn::{GameResult, Mode, RatingGroup, RatingRange, Speed, normalized},
        selection::{Evaluator, RatedStatus, Selection},
    },
    progress::Meter,
};

/// The divisor that decides how the games in a range of ids are filtered by player. If at most one in
/// `SPARSE_PLAYER_DIVISOR` games of the range was played by the player whom the filters name, only these games are
/// tested, one by one. Otherwise, every filter scans the whole range.
const SPARSE_PLAYER_DIVISOR: usize = 32;

/// The number of games that a thread filters as one task. The number is large, so that starting a task takes little
/// time compared with the filtering.
const GAMES_PER_RANGE: usize = 1 << 16;

/// The divisor that decides whether a list of games is long. A list is long if it contains more than one in
/// `LONG_LIST_DIVISOR` of all games in its index. To filter several such lists, it is faster to filter all games of the
/// index once than to filter each list (see [`SourceFilters::precompute_long`]).
const LONG_LIST_DIVISOR: u64 = 4;

/// The filters of a query, converted to one filter for each index of an explorer. Indexes in which no game can pass the
/// filters are left out.
pub(super) struct SourceFilters<'a> {
    pub of_sources: Vec<(&'a OpenIndex, SourceFilter<'a>)>,
    /// The groups of duplicate games, if each group counts as one game. The first game of a group that passes the
    /// filters is then the one that counts.
    duplicates: Option<CountedOnce>,
    /// The filter by speed, rating group and month, if the query has no other conditions. Such a query can be answered
    /// from stored sums of results.
    pub class_filter: Option<ClassFilter>,
}

impl<'a> SourceFilters<'a> {
    pub(super) fn new(sources: &'a [OpenIndex], query: &Selection) -> Result<SourceFilters<'a>> {
        let filters = sources.iter().filter_map(|source| {
            let filter = SourceFilter::new(source, query).transpose()?;
            Some(filter.map(|filter| (source, filter)))
        });
        Ok(SourceFilters {
            of_sources: filters.collect::<Result<_>>()?,
            duplicates: None,
            class_filter: ClassFilter::new(query),
        })
    }

    /// Makes the filters admit only one game of each group of duplicates: the first one that passes all other filters.
    pub(super) fn with_duplicates(mut self, duplicates: Arc<DuplicateGroups>) -> SourceFilters<'a> {
        self.duplicates = Some(CountedOnce::new(duplicates));
        self
    }

    /// Prepares the filters for counting a player's games with each color separately. This matters only for games in
    /// which the names of both players match the filter by player. Normally, White is taken as the player in such a
    /// game. After this call, the game passes if it passes with either side as the player. Has no effect if the filters
    /// contain a color.
    pub(super) fn of_either_color(mut self) -> SourceFilters<'a> {
        let filters = self.of_sources.iter_mut();
        for players in filters.filter_map(|(_, filter)| filter.players.as_mut()) {
            players.either_color = true;
        }
        self
    }

    /// Returns `true` if some of the sources contain counts (sums of results) and others contain individual games.
    /// Counts treat unfinished games as draws, so sums over such a mixture must treat all unfinished games as draws.
    pub(super) fn mix_counts_and_games(&self) -> bool {
        let mut are_counts = self
            .of_sources
            .iter()
            .map(|(source, _)| source.counted.is_some());
        let first = are_counts.next();
        are_counts.any(|are_counts| Some(are_counts) != first)
    }

    /// Removes duplicates: keeps only the first game of each group of duplicate games that passes the filters. Moves
    /// the remaining games to the front of `games`, and returns this part of the slice. Returns all of `games` if the
    /// query counts every duplicate.
    ///
    /// `games` contains games of `source` that pass the filters. Each element is the id of a game and an index that
    /// this function does not use: the index of the game's move in
    /// [`PassingGames::moves`](super::scan::PassingGames::moves).
    pub(super) fn keep_first<'b>(
        &self,
        source: &OpenIndex,
        games: &'b mut [(u32, u32)],
    ) -> &'b [(u32, u32)] {
        let Some(duplicates) = &self.duplicates else {
            return games;
        };
        let mut kept = 0;
        for at in 0..games.len() {
            let number = source.first + u64::from(games[at].0);
            if duplicates.counted(number, 1, |other| self.admits(other).into()) == 1 {
                games[kept] = games[at];
                kept += 1;
            }
        }
        &games[..kept]
    }

    /// Returns the number of other games that pass the filters and are duplicates of game `number`. Returns 0 if the
    /// query counts every duplicate.
    pub(super) fn copies_of(&self, number: u64) -> usize {
        let duplicates = self.duplicates.iter();
        duplicates
            .map(|it| it.copies(number, |other| self.admits(other).into()))
            .sum()
    }

    /// Returns `true` if game `number` passes the filters.
    fn admits(&self, number: u64) -> bool {
        self.passing(number).is_some()
    }

    /// Returns the index that contains game `number`, the filter for this index, and the game's id in the index.
    /// Returns `None` if the game does not pass the filters.
    pub(super) fn passing(&self, number: u64) -> Option<(&OpenIndex, &SourceFilter<'a>, u32)> {
        self.of_sources.iter().find_map(|(source, filter)| {
            let id = number.checked_sub(source.first)?;
            let is_there = id < source.games() && filter.admits(id as usize);
            is_there.then_some((*source, filter, id as u32))
        })
    }

    /// Prepares for filtering the list of games with the key `subject`, and other lists that contain mostly the same
    /// games. If this list contains a large part of the games of an index (see [`LONG_LIST_DIVISOR`]), filters all
    /// games of this index in advance, so that no game is tested again for another list.
    ///
    /// Returns `true` if the list is long in at least one index. Does nothing and returns `false` if stored sums of
    /// results can answer the query, because individual games then need not be filtered.
    pub(super) fn precompute_long(&self, subject: ListKey) -> Result<bool> {
        let mut are_any = false;
        if self.class_filter.as_ref().is_some() {
            return Ok(are_any);
        }
        for (source, filter) in &self.of_sources {
            if let ListLocation::Chunks(chunked) = source.find_list(subject)?
                && chunked.items > source.games() / LONG_LIST_DIVISOR
            {
                filter.precompute();
                are_any = true;
            }
        }
        Ok(are_any)
    }
}

/// The filters of a query, prepared for the games of one index. For example, a name is replaced by the number that the
/// index uses for it.
pub(super) struct SourceFilter<'a> {
    games: &'a GameColumns,
    /// The games of the player whom the filters name or, if they name no player, of the opponent, as a bit set of their
    /// ids. `None` if such a bit set would not help.
    player_games: Option<Vec<u64>>,
    players: Option<Players>,
    event: Option<Vec<u32>>,
    rated: Option<RatedFilter<'a>>,
    dates: Option<DateRange>,
    elo: Option<EloRange>,
    min_plies: u16,
    /// Whether games with certain traits (such as result and speed) pass, indexed by [`Traits::filter_index`]. `None`
    /// if games with any traits pass.
    traits: Option<Box<[bool; Traits::COUNT]>>,
    /// Whether games with a certain ECO code pass, indexed by the number of the code. `None` if games with any code
    /// pass.
    eco: Option<Box<[bool; EcoNumber::COUNT]>>,
    opening: Option<OpeningFilter>,
    /// The games in which the query about the board matches a position. `None` if there is no such query.
    holding: Option<GameSet>,
    /// Whether each game passes, indexed by its id. Set by [`precompute`](SourceFilter::precompute).
    precomputed: OnceLock<Vec<bool>>,
}

/// The filters by player, opponent, color and result. A player or an opponent is given by the numbers of all names that
/// match, in ascending order.
struct Players {
    player: Option<Vec<u32>>,
    opponent: Option<Vec<u32>>,
    white: Option<Vec<u32>>,
    black: Option<Vec<u32>>,
    color: Option<Color>,
    opponent_rating: Option<RatingRange>,
    /// Whether games with a certain result pass. The table is indexed by the player's color (`Color as usize`), then by
    /// the position of the result in [`GameResult::ALL`]. `None` if the filters do not require that the player won or
    /// lost.
    results: Option<[[bool; 4]; 2]>,
    /// How to treat a game in which both names match the filter by player. If `true`, the game passes if it passes with
    /// either side as the player. If `false`, White is the player.
    either_color: bool,
}

impl<'a> SourceFilter<'a> {
    /// Converts `filters` to a filter for the games of `source`, an index of the explorer. Returns `None` if no game of
    /// `source` can pass, for example because `source` does not contain the player's name.
    pub(super) fn new(
        source: &'a OpenIndex,
        filters: &Selection,
    ) -> Result<Option<SourceFilter<'a>>> {
        let wanted = filters.source.as_ref();
        if wanted.is_some_and(|name| *name != source.name) {
            return Ok(None);
        }
        let how = filters.name_match();
        let numbers = |names: &[String]| -> Result<Option<Vec<u32>>> {
            let mut all = Vec::new();
            for name in names {
                all.extend(source.numbers_of(name, how)?);
            }
            all.sort_unstable();
            all.dedup();
            Ok((!names.is_empty()).then_some(all))
        };
        let [player, opponent, white, black, event] = [
            numbers(&filters.player)?,
            numbers(&filters.opponent)?,
            numbers(&filters.white)?,
            numbers(&filters.black)?,
            numbers(filters.event.as_slice())?,
        ];
        let names = [&player, &opponent, &white, &black, &event];
        if names.into_iter().flatten().any(Vec::is_empty) {
            return Ok(None);
        }
        let players = filters.has_names().then_some(Players {
            player,
            opponent,
            white,
            black,
            color: filters.color,
            opponent_rating: filters.opponent_rating,
            results: player_results(filters),
            either_color: false,
        });
        let holding = filters.board_query();
        let holding = holding.map(|query| source.games_with(&query, &Meter::default(), &|| true));
        let dates = DateRange::new(filters);
        Ok(Some(SourceFilter {
            games: &source.rows,
            player_games: games_of_named_player(source, filters)?,
            players,
            event,
            rated: RatedFilter::new(source, filters)?,
            dates: (!dates.is_all()).then_some(dates),
            elo: EloRange::new(filters),
            min_plies: u16::try_from(filters.min_plies).unwrap_or(u16::MAX),
            traits: traits_that_pass(filters),
            eco: eco_that_pass(filters),
            opening: filters.opening.clone(),
            holding: holding.transpose()?,
            precomputed: OnceLock::new(),
        }))
    }

    /// Applies the filter to all games of its index on all threads, and stores the results for later calls.
    pub(super) fn precompute(&self) {
        self.precomputed.get_or_init(|| {
            let marked = id_ranges(self.games()).map(|range| {
                let mut passes = Vec::new();
                self.filter_range(range, &mut passes);
                passes
            });
            marked.collect::<Vec<_>>().concat()
        });
    }

    /// Returns whether each game with an id in `ids` passes the filter, as [`precompute`](SourceFilter::precompute)
    /// determined. Returns `None` if `precompute` was not called.
    pub(super) fn precomputed(&self, ids: Range<usize>) -> Option<&[bool]> {
        Some(&self.precomputed.get()?[ids])
    }

    /// Returns whether game `id` passes the filter with the named player as White, and whether it passes with this
    /// player as Black. Both values can be `true` if the names of both players match. Both are `false` if the query
    /// names no player.
    pub(super) fn colors(&self, id: usize) -> [bool; 2] {
        let players = self
            .players
            .as_ref()
            .filter(|players| players.player.is_some());
        players.map_or([false; 2], |players| {
            [Color::White, Color::Black].map(|color| players.admit_as(color, self.games, id))
        })
    }

    /// Returns `true` if game `id` passes in a query that does not restrict the player's color. If the names of both
    /// players match the filter by player, White is taken as the player.
    pub(super) fn admits_without_color(&self, id: usize) -> bool {
        self.players.as_ref().is_none_or(|players| {
            players.player.is_none()
                || players.admit_as(players.color_in(self.games, id), self.games, id)
        })
    }

    /// Returns the color of the named player in game `id`, which must pass the filter. If the names of both players
    /// match, returns White.
    pub(super) fn player_of(&self, id: usize) -> Color {
        let players = self.players.as_ref();
        players.map_or(Color::White, |players| players.color_in(self.games, id))
    }

    /// Returns the number of games in the index to which the filter belongs.
    pub(super) fn games(&self) -> usize {
        self.games.len()
    }

    /// Returns `true` if the game with the id `id` passes the filter.
    #[inline]
    pub(super) fn admits(&self, id: usize) -> bool {
        if let Some(passes) = self.precomputed.get() {
            return passes[id];
        }
        self.player_games
            .as_ref()
            .is_none_or(|bits| is_set(bits, id))
            && self.admits_others(id)
    }

    /// Returns `true` if game `id` passes all filters apart from `player_games`, the set of the player's games, which
    /// the caller has already checked.
    #[inline]
    fn admits_others(&self, id: usize) -> bool {
        let games = self.games;
        let traits = self.traits.as_ref();
        let eco = self.eco.as_ref();
        let opening = self.opening.as_ref();
        let event = self.event.as_ref();
        let players = self.players.as_ref();
        // The cheap conditions are combined without branches, which would often be mispredicted.
        let passes = traits.is_none_or(|passes| passes[games.traits[id].filter_index()])
            & (games.plies[id] >= self.min_plies)
            & eco.is_none_or(|passes| passes[games.eco[id].number()])
            & opening.is_none_or(|openings| openings.contains(games.openings[id]))
            & self
                .dates
                .is_none_or(|dates| dates.contains(games.dates[id]))
            & self.elo.is_none_or(|elo| elo.contains(games.elo[id]));
        passes
            && self.holding.as_ref().is_none_or(|games| is_set(games, id))
            && event.is_none_or(|events| has(events, games.events[id]))
            && self
                .rated
                .as_ref()
                .is_none_or(|rated| rated.admits(games.events[id]))
            && players.is_none_or(|players| players.admit(games, id))
    }

    /// Finds the games with ids in `range` that pass the filter, and stores in `passes` whether each game passes.
    /// Returns `true` if at least one game passes.
    ///
    /// Applies one filter after the other to the whole range, so that the compiler can vectorize the loops.
    pub(super) fn filter_range(&self, range: Range<usize>, passes: &mut Vec<bool>) -> bool {
        passes.clear();
        match &self.player_games {
            Some(bits) => {
                passes.extend(range.clone().map(|id| is_set(bits, id)));
                if count(passes) <= passes.len() / SPARSE_PLAYER_DIVISOR {
                    return self.filter_few(range.start, passes);
                }
            }
            None => passes.resize(range.len(), true),
        }
        self.filter_columns(range.clone(), passes);
        if let Some(players) = &self.players {
            for (passes, id) in passes.iter_mut().zip(range).filter(|(passes, _)| **passes) {
                *passes = players.admit(self.games, id);
            }
        }
        passes.contains(&true)
    }

    /// Tests each game whose element in `passes` is `true`, and sets the element to `false` if the game does not pass.
    /// Suits ranges with few such games. `passes[i]` belongs to the game with the id `first + i`. Returns `true` if at
    /// least one game passes.
    fn filter_few(&self, first: usize, passes: &mut [bool]) -> bool {
        let mut are_any = false;
        for (at, passes) in passes.iter_mut().enumerate().filter(|(_, passes)| **passes) {
            *passes = self.admits_others(first + at);
            are_any |= *passes;
        }
        are_any
    }

    fn filter_columns(&self, range: Range<usize>, passes: &mut [bool]) {
        let games = self.games;
        match self.event.as_deref() {
            Some([event]) => keep(passes, &games.events[range.clone()], |other| other == event),
            Some(events) => keep(passes, &games.events[range.clone()], |event| {
                has(events, *event)
            }),
            None => {}
        }
        if let Some(rated) = &self.rated {
            keep(passes, &games.events[range.clone()], |event| {
                rated.admits(*event)
            });
        }
        if let Some(dates) = self.dates {
            keep(passes, &games.dates[range.clone()], |date| {
                dates.contains(*date)
            });
        }
        if let Some(ratings) = self.elo {
            keep(passes, &games.elo[range.clone()], |elo| {
                ratings.contains(*elo)
            });
        }
        if self.min_plies > 0 {
            let least = self.min_plies;
            keep(passes, &games.plies[range.clone()], |plies| *plies >= least);
        }
        if let Some(passing) = &self.traits {
            keep(passes, &games.traits[range.clone()], |traits| {
                passing[traits.filter_index()]
            });
        }
        if let Some(passing) = &self.eco {
            keep(passes, &games.eco[range.clone()], |eco| {
                passing[eco.number()]
            });
        }
        if let Some(openings) = &self.opening {
            keep(passes, &games.openings[range.clone()], |opening| {
                openings.contains(*opening)
            });
        }
        if let Some(found) = &self.holding {
            for (passes, id) in passes.iter_mut().zip(range) {
                *passes &= is_set(found, id);
            }
        }
    }
}

/// Divides the ids from 0 to `games` (exclusive) into ranges for parallel processing.
pub(super) fn id_ranges(games: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let id_ranges = (0..games.div_ceil(GAMES_PER_RANGE)).into_par_iter();
    id_ranges.map(move |number| number * GAMES_PER_RANGE..games.min((number + 1) * GAMES_PER_RANGE))
}

/// Sets each element of `passes` to `false` if the value at the same index of `column` does not satisfy
/// `is_true`.
#[inline(always)]
fn keep<T>(passes: &mut [bool], column: &[T], is_true: impl Fn(&T) -> bool) {
    for (passes, value) in passes.iter_mut().zip(column) {
        *passes &= is_true(value);
    }
}

fn count(passes: &[bool]) -> usize {
    passes.iter().map(|passes| usize::from(*passes)).sum()
}

#[inline]
fn is_set(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

/// Returns `true` if `numbers`, which must be in ascending order, contains `number`.
#[inline]
fn has(numbers: &[u32], number: u32) -> bool {
    numbers.binary_search(&number).is_ok()
}

/// An inclusive range of ratings. The ratings of both players of a game must lie in it.
#[derive(Copy, Clone)]
struct EloRange {
    lowest: u16,
    highest: u16,
    /// Whether a game passes despite an unknown rating.
    unknown_passes: bool,
}

impl EloRange {
    /// Returns the range of ratings that `filters` admit, or `None` if they admit every rating.
    fn new(filters: &Selection) -> Option<EloRange> {
        let lowest = filters.min_elo.unwrap_or(0);
        let highest = filters.max_elo.unwrap_or(u32::MAX);
        let unknown_passes = !filters.require_elo;
        if (lowest, highest, unknown_passes) == (0, u32::MAX, true) {
            return None;
        }
        let highest = u16::try_from(highest).unwrap_or(u16::MAX);
        // No known rating passes if the lower bound exceeds every rating.
        Some(match u16::try_from(lowest) {
            Ok(lowest) => EloRange {
                lowest,
                highest,
                unknown_passes,
            },
            Err(_) => EloRange {
                lowest: 1,
                highest: 0,
                unknown_passes,
            },
        })
    }

    /// Returns `true` if the ratings of both players lie in the range. An unknown rating, stored as 0, lies in the
    /// range if `unknown_passes` is `true`.
    #[inline]
    fn contains(self, elo: [u16; 2]) -> bool {
        let passes = |elo| {
            let is_known = elo != 0;
            let is_inside = (self.lowest <= elo) & (elo <= self.highest);
            (is_known & is_inside) | (!is_known & self.unknown_passes)
        };
        passes(elo[0]) & passes(elo[1])
    }
}

impl Players {
    /// Returns `true` if game `id` meets the filters by player, by the player's color and by result.
    fn admit(&self, games: &GameColumns, id: usize) -> bool {
        let [white, black] = games.players[id];
        is_one_of(&self.white, white)
            && is_one_of(&self.black, black)
            && self.admit_player(games, id)
    }

    fn admit_player(&self, games: &GameColumns, id: usize) -> bool {
        if self.player.is_none() {
            return games.players[id]
                .iter()
                .any(|name| is_one_of(&self.opponent, *name));
        }
        if self.either_color && self.color.is_none() {
            return Color::ALL
                .iter()
                .any(|color| self.admit_as(*color, games, id));
        }
        self.admit_as(self.color_in(games, id), games, id)
    }

    /// Returns the color of the named player in game `id`, which must be a game of this player. If both names in the
    /// game match the filter by player, returns the color that the filters require or, if they require none, White.
    fn color_in(&self, games: &GameColumns, id: usize) -> Color {
        let is_white = || self.has_names(Color::White, games, id);
        self.color.unwrap_or_else(|| Color::from_white(is_white()))
    }

    /// Returns `true` if game `id` passes the filters by player, opponent, opponent's rating and player's result when
    /// the side `color` is taken as the player.
    fn admit_as(&self, color: Color, games: &GameColumns, id: usize) -> bool {
        let rating = games.elo[id][usize::from(color.is_white())];
        let result = games.traits[id].result();
        self.has_names(color, games, id)
            && self
                .opponent_rating
                .is_none_or(|range| range.contains(rating))
            && self
                .results
                .is_none_or(|results| results[color as usize][result as usize])
    }

    /// Returns `true` if, in game `id`, the player with the color `color` matches the filter by player, and the other
    /// player matches the filter by opponent.
    fn has_names(&self, color: Color, games: &GameColumns, id: usize) -> bool {
        let [white, black] = games.players[id];
        let (own, other) = color.fold_wb((white, black), (black, white));
        is_one_of(&self.player, own) && is_one_of(&self.opponent, other)
    }
}

/// Returns a table that says which results the filters admit for each color of the player. It is indexed by the
/// player's color (`Color as usize`), then by the position of the result in [`GameResult::ALL`]. Returns `None` if the
/// filters do not require that the player won or lost, because the player's color then does not matter.
fn player_results(filters: &Selection) -> Option<[[bool; 4]; 2]> {
    filters.has_player_results().then(|| {
        // The order in which `Color as usize` numbers the colors.
        [Color::Black, Color::White].map(|player| {
            GameResult::ALL.map(|result| filters.admits_result_of(result, Some(player)))
        })
    })
}

/// A filter that distinguishes games of rated events from games that do not say whether they are rated. The mode of a
/// game (rated or casual), which the index stores, cannot tell them apart.
struct RatedFilter<'a> {
    /// The numbers that the index uses for certain event names, in ascending order.
    events: &'a [u32],
    /// Whether the games of `events` pass. If `false`, the games of all other events pass instead.
    are_admitted: bool,
}

impl<'a> RatedFilter<'a> {
    /// Creates the filter for the games of `source`. Returns `None` if this filter is not needed, because the stored
    /// mode of a game already decides whether the game passes.
    fn new(source: &'a OpenIndex, filters: &Selection) -> Result<Option<RatedFilter<'a>>> {
        let [rated, unknown, casual] = [
            RatedStatus::Rated,
            RatedStatus::Unknown,
            RatedStatus::Casual,
        ]
        .map(|status| filters.admits_rated(status));
        if rated == unknown {
            return Ok(None);
        }
        let names = source.rated_names()?;
        let events = if rated == casual {
            &names.known
        } else {
            &names.rated
        };
        Ok(Some(RatedFilter {
            events,
            are_admitted: rated,
        }))
    }

    #[inline]
    fn admits(&self, event: u32) -> bool {
        has(self.events, event) == self.are_admitted
    }
}

/// Returns `true` if `numbers`, which must be in ascending order, contains `number`. `None` admits every number.
fn is_one_of(numbers: &Option<Vec<u32>>, number: u32) -> bool {
    numbers.as_ref().is_none_or(|numbers| has(numbers, number))
}

/// Returns the ids of all games in `source` in which the player of the filters has the required color, as a bit set. If
/// the filters name only an opponent, returns the opponent's games instead. The ids come from the lists of games that
/// the index stores for each player.
///
/// Returns `None` if the filters name neither a player nor an opponent, or if they compare only a part of a name: the
/// index has lists only for whole names.
fn games_of_named_player(source: &OpenIndex, filters: &Selection) -> Result<Option<Vec<u64>>> {
    if !filters.exact {
        return Ok(None);
    }
    let (names, color) = match (&filters.player[..], &filters.opponent[..]) {
        ([], []) => return Ok(None),
        ([], opponents) => (opponents, None),
        (players, _) => (players, filters.color),
    };
    let mut bits = vec![0u64; source.rows.len().div_ceil(64)];
    let sides = Color::ALL.into_iter();
    let sides = sides.filter(|side| color.is_none_or(|wanted| wanted == *side));
    let of_side = |side| {
        names
            .iter()
            .map(move |name| ListKey::player(&normalized(name), side))
    };
    for list in sides.flat_map(of_side) {
        for id in source.listed(list)? {
            let word = bits.get_mut(id as usize / 64);
            let word = word.ok_or_else(|| source.damaged("a list contains an unknown game"))?;
            *word |= 1 << (id % 64);
        }
    }
    Ok(Some(bits))
}

/// Returns a table that says, for each combination of result, speed, mode (rated or casual) and rating group, whether
/// the filters admit it. The table is indexed by [`Traits::filter_index`]. Returns `None` if the filters admit all
/// combinations.
fn traits_that_pass(filters: &Selection) -> Option<Box<[bool; Traits::COUNT]>> {
    if filters.result.is_empty()
        && !filters.skip_unfinished
        && filters.speed.is_none()
        && filters.rated.is_none()
        && filters.rating.is_none()
    {
        return None;
    }
    let admits_result = |result| {
        if filters.has_player_results() {
            // `Players` tests the result.
            !(filters.skip_unfinished && result == GameResult::Unknown)
        } else {
            filters.admits_result_of(result, None)
        }
    };
    // Games of this mode whose status does not suffice are left out by their events.
    let admits_mode = |mode| match mode {
        Mode::Rated => [RatedStatus::Rated, RatedStatus::Unknown]
            .into_iter()
            .any(|status| filters.admits_rated(status)),
        Mode::Casual => filters.admits_rated(RatedStatus::Casual),
    };
    let mut pass = Box::new([false; Traits::COUNT]);
    for (passes, traits) in pass.iter_mut().zip(Traits::all()) {
        let Some(TraitValues {
            result,
            speed,
            mode,
            group,
        }) = traits
        else {
            continue;
        };
        *passes = admits_result(result)
            && filters.admits_speed(speed)
            && admits_mode(mode)
            && filters.admits_rating(group);
    }
    Some(pass)
}

/// Returns a table that says, for each ECO code, whether the filters admit games with this code. The table is indexed
/// by the number of the code. Returns `None` if there is no filter by ECO code.
fn eco_that_pass(filters: &Selection) -> Option<Box<[bool; EcoNumber::COUNT]>> {
    if filters.eco.is_empty() {
        return None;
    }
    let is_admitted = |code: [u8; 3]| filters.eco.iter().any(|range| range.contains(&code));
    let mut pass = Box::new([false; EcoNumber::COUNT]);
    for eco in EcoNumber::all() {
        pass[eco.number()] = eco.code().is_some_and(is_admitted);
    }
    Some(pass)
}

/// How an answer of the explorer splits results by time: not at all, by year, or by month. This determines which stored
/// sums can be used. For example, an answer by month cannot use the sum of a whole year.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Split {
    AllTime,
    ByYear,
    ByMonth,
}

/// Converts a period to a date number in which unknown parts are 0. The number of a month contains no day, that of a
/// year neither a day nor a month, and all time becomes 0. See
/// [`date_number`](crate::formats::explorer_index::game_rows::date_number).
pub(super) fn date_of(period: Period) -> u32 {
    match period {
        Period::All => 0,
        Period::Year(year) => u32::from(year) << 9,
        Period::Month(month) => u32::from(month.year()) << 9 | u32::from(month.month()) << 5,
    }
}

/// A filter that depends only on the speed, rating group and month of a game. All games in one stored sum of results
/// agree in these three properties, so the filter can be applied to the sum itself.
pub(super) struct ClassFilter {
    /// Whether the games of each class pass. A class is a pair of a speed and a rating group; the array is indexed by
    /// the number of the class.
    classes: [bool; Class::COUNT],
    pub dates: DateRange,
}

impl ClassFilter {
    /// Converts `filters` to a class filter. Returns `None` if `filters` contains a condition that needs individual
    /// games, such as the name of a player.
    pub(super) fn new(filters: &Selection) -> Option<ClassFilter> {
        if filters.unanswerable(Evaluator::Counts).is_some() {
            return None;
        }
        let mut classes = [false; Class::COUNT];
        for speed in Speed::ALL {
            for group in RatingGroup::all().map(Some).chain([None]) {
                classes[Class::new(speed, group).number()] =
                    filters.admits_speed(speed) && filters.admits_rating(group);
            }
        }
        Some(ClassFilter {
            classes,
            dates: DateRange::new(filters),
        })
    }

    /// Returns `true` if the filter admits games of `class`, a pair of a speed and a rating group.
    pub(super) fn admits(&self, class: Class) -> bool {
        self.classes[class.number()]
    }

    /// Returns `true` if `period` (a month, a year or all time) overlaps the filter's range of dates.
    pub(super) fn contains(&self, period: Period) -> bool {
        self.dates.contains(date_of(period))
    }

    /// Returns the years and months whose stored sums together cover the filter's range of dates. `years` lists each
    /// year that has games, with the months in which these games were played.
    ///
    /// If the range contains all months of a year that have games, the whole year is returned. Otherwise, the months of
    /// this year that lie in the range are returned. If `split` is [`Split::ByMonth`], only months are returned.
    pub(super) fn periods(&self, years: &[YearMonths], split: Split) -> Vec<Period> {
        let mut periods = Vec::new();
        for year in years {
            let months = year.months().map(Period::Month);
            let passing: Vec<Period> = months.filter(|month| self.contains(*month)).collect();
            if passing.len() == year.months().count() && split != Split::ByMonth {
                periods.push(Period::Year(year.year));
            } else {
                periods.extend(passing);
            }
        }
        periods
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{formats::explorer_index::results::Month, games::selection::WantedRating};

    fn filter(since: &str, until: &str) -> Option<ClassFilter> {
        ClassFilter::new(&Selection {
            since: since.parse().ok(),
            until: until.parse().ok(),
            ..Selection::default()
        })
    }

    #[test]
    fn periods_are_as_long_as_can_be() {
        let year = |year, months| YearMonths { year, months };
        let years = [
            year(0, 1),
            year(2015, 0b1_1111),
            year(2016, 0b1000),
            year(2017, 0b110),
        ];
        let periods = |since, until, split| filter(since, until).unwrap().periods(&years, split);
        use Period::Year;
        let month = |year, month| Period::Month(Month::new(year, month).unwrap());
        assert_eq!(
            periods("2015.03", "2017.01", Split::AllTime),
            [
                Year(0),
                month(2015, 0),
                month(2015, 3),
                month(2015, 4),
                Year(2016),
                month(2017, 1)
            ]
        );
        assert_eq!(
            periods("2016", "2017", Split::ByYear),
            [Year(0), Year(2016), Year(2017)]
        );
        assert_eq!(
            periods("2016", "", Split::ByMonth),
            [month(0, 0), month(2016, 3), month(2017, 1), month(2017, 2)]
        );
        assert!(filter("2016.01.02", "").is_none());
    }

    #[test]
    fn classes_pass_by_speed_and_group() {
        let groups = |groups: &[Option<u32>]| {
            let groups = groups
                .iter()
                .map(|floor| WantedRating(floor.map(RatingGroup::of)));
            Some(Vec::from_iter(groups))
        };
        let mut filters = Selection {
            speed: Some(vec![Speed::Blitz]),
            rating: groups(&[Some(1600)]),
            ..Selection::default()
        };
        let passing = ClassFilter::new(&filters).unwrap().classes;
        assert_eq!(passing.iter().filter(|passes| **passes).count(), 1);
        assert!(passing[Class::new(Speed::Blitz, Some(RatingGroup::of(1600))).number()]);
        let unknown = Class::new(Speed::Blitz, None).number();
        let lowest = Class::new(Speed::Blitz, Some(RatingGroup::of(0))).number();
        let all = Vec::from_iter(RatingGroup::all().map(|group| Some(group.floor())));
        for (rating, [lowest_passes, unknown_passes]) in [
            (groups(&[Some(0)]), [true, false]),
            (groups(&[Some(0), None]), [true, true]),
            (groups(&[None]), [false, true]),
            (groups(&[]), [false, false]),
            (groups(&all), [true, true]),
            (groups(&all[1..]), [false, false]),
            (None, [true, true]),
        ] {
            filters.rating = rating;
            let passing = ClassFilter::new(&filters).unwrap().classes;
            assert_eq!(
                [passing[lowest], passing[unknown]],
                [lowest_passes, unknown_passes]
            );
        }
        filters.require_date = true;
        assert!(
            !ClassFilter::new(&filters)
                .unwrap()
                .contains(Period::Year(0))
        );
        filters.min_plies = 1;
        assert!(ClassFilter::new(&filters).is_none());
    }
}

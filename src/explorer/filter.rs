//! Evaluates filters for the games of one source.

use std::{ops::Range, sync::OnceLock};

use rayon::prelude::*;
use shakmaty::Color;

use super::{
    class_filter::ClassFilter,
    dates::DateRange,
    duplicate_groups::DuplicateGroups,
    games::{AskedTraits, GameColumns, Traits},
    query::Filters,
    source::OpenIndex,
};
use crate::{
    error::Result,
    index::{
        store::ListPlace,
        store::{EcoNumber, ListKey},
    },
    openings::OpeningFilter,
    pgn::{GameResult, NameMatch, folded},
};

/// If at most one game in this many is left, the remaining filters are evaluated game by game instead of column by column.
const FEW: usize = 32;

/// The number of games whose columns are filtered in one pass.
const STRETCH: usize = 1 << 16;

/// A list is long if it contains more than one in this many games of its source.
const LONG: u64 = 4;

/// The filters of a query, prepared for each source. Sources in which no game can pass are left out.
pub(super) struct SourceFilters<'a> {
    pub of_sources: Vec<(&'a OpenIndex, SourceFilter<'a>)>,
    /// The groups of duplicate games, if only the first passing game of each group counts.
    duplicates: Option<&'a DuplicateGroups>,
    /// The classes and months that pass, if the filters depend on nothing else. Then sums and counts can answer.
    pub class_filter: Option<ClassFilter>,
}

impl<'a> SourceFilters<'a> {
    pub(super) fn new(sources: &'a [OpenIndex], query: &Filters) -> Result<SourceFilters<'a>> {
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

    /// Counts only the first passing game of each group of duplicates.
    pub(super) fn once(mut self, duplicates: &'a DuplicateGroups) -> SourceFilters<'a> {
        self.duplicates = Some(duplicates);
        self
    }

    /// Moves the first passing game of each duplicate group to the front of `games`, and returns that part of the slice.
    pub(super) fn keep_first<'b>(
        &self,
        source: &OpenIndex,
        games: &'b mut [(u32, u32)],
    ) -> &'b [(u32, u32)] {
        let Some(duplicates) = self.duplicates else {
            return games;
        };
        let mut kept = 0;
        for at in 0..games.len() {
            let number = source.first + u64::from(games[at].0);
            if !duplicates
                .earlier_duplicates_of(number)
                .any(|other| self.admits(other))
            {
                games[kept] = games[at];
                kept += 1;
            }
        }
        &games[..kept]
    }

    /// Returns the number of other passing games in the duplicate group of a game.
    pub(super) fn copies_of(&self, number: u64) -> usize {
        let others = self
            .duplicates
            .into_iter()
            .flat_map(|duplicates| duplicates.duplicates_of(number));
        others.filter(|other| self.admits(*other)).count()
    }

    /// Returns `true` if the game `number` passes.
    fn admits(&self, number: u64) -> bool {
        self.passing(number).is_some()
    }

    /// Returns the source of a passing game, the filter of that source and the game's id there, or `None` if it does not pass.
    pub(super) fn passing(&self, number: u64) -> Option<(&OpenIndex, &SourceFilter<'a>, u32)> {
        self.of_sources.iter().find_map(|(source, filter)| {
            let id = number.checked_sub(source.first)?;
            let is_there = id < source.games() && filter.admits(id as usize);
            is_there.then_some((*source, filter, id as u32))
        })
    }

    /// Evaluates the filters for all games of each source in which the list of `subject` is long. Does nothing if sums
    /// can answer. Returns `true` if there is such a source.
    ///
    /// This saves time if several lists that share most of their games are filtered afterwards.
    pub(super) fn precompute_long(&self, subject: ListKey) -> Result<bool> {
        let mut are_any = false;
        if self.class_filter.as_ref().is_some() {
            return Ok(are_any);
        }
        for (source, filter) in &self.of_sources {
            if let ListPlace::Chunks(apart) = source.place(subject)?
                && apart.items > source.games() / LONG
            {
                filter.precompute();
                are_any = true;
            }
        }
        Ok(are_any)
    }
}

/// The filters of a query, prepared for the games of one source.
pub(super) struct SourceFilter<'a> {
    games: &'a GameColumns,
    /// A bit for each game of the source. It is set for the games of the player whom the filters name or, if they name
    /// no player, of the opponent. `None` if the bits are not needed.
    of_somebody: Option<Vec<u64>>,
    players: Option<Players>,
    event: Option<Vec<u32>>,
    dates: Option<DateRange>,
    elo: Option<EloRange>,
    min_ply: u16,
    /// For each number that encodes traits, whether games with these traits pass. `None` if all pass.
    traits: Option<Box<[bool; Traits::COUNT]>>,
    /// For each number that encodes an ECO code, whether games with this code pass. `None` if all pass.
    eco: Option<Box<[bool; EcoNumber::COUNT]>>,
    opening: Option<OpeningFilter>,
    /// For each game, whether it passes. Set by [`precompute`](SourceFilter::precompute).
    precomputed: OnceLock<Vec<bool>>,
}

/// The players of a filter, as the numbers of their names.
struct Players {
    player: Option<Vec<u32>>,
    opponent: Option<Vec<u32>>,
    color: Option<Color>,
    won: Option<bool>,
}

impl<'a> SourceFilter<'a> {
    /// Prepares filters for a source, or returns `None` if no game of the source can pass.
    pub(super) fn new(
        source: &'a OpenIndex,
        filters: &Filters,
    ) -> Result<Option<SourceFilter<'a>>> {
        let wanted = filters.source.as_ref();
        if wanted.is_some_and(|name| *name != source.name) {
            return Ok(None);
        }
        let numbers = |name: &Option<String>| -> Result<Option<Vec<u32>>> {
            name.as_deref()
                .map(|name| source.numbers_of(name, filters.names))
                .transpose()
        };
        let player = numbers(&filters.player)?;
        let opponent = numbers(&filters.opponent)?;
        let event = numbers(&filters.event)?;
        let is_nobody = |numbers: &Option<Vec<u32>>| numbers.as_ref().is_some_and(Vec::is_empty);
        if is_nobody(&player) || is_nobody(&opponent) || is_nobody(&event) {
            return Ok(None);
        }
        let players = (player.is_some() || opponent.is_some()).then_some(Players {
            player,
            opponent,
            color: filters.color,
            won: filters.won,
        });
        let dates = DateRange::new(filters);
        Ok(Some(SourceFilter {
            games: &source.rows,
            of_somebody: games_of_somebody(source, filters)?,
            players,
            event,
            dates: (!dates.is_all()).then_some(dates),
            elo: EloRange::new(filters),
            min_ply: u16::try_from(filters.min_ply).unwrap_or(u16::MAX),
            traits: traits_that_pass(filters),
            eco: eco_that_pass(filters),
            opening: filters.opening.clone(),
            precomputed: OnceLock::new(),
        }))
    }

    /// Evaluates the filter for all games, on all cores, and keeps the results.
    pub(super) fn precompute(&self) {
        self.precomputed.get_or_init(|| {
            let games = self.games();
            let marked: Vec<Vec<bool>> = (0..games.div_ceil(STRETCH))
                .into_par_iter()
                .map(|number| {
                    let first = number * STRETCH;
                    let mut passes = Vec::new();
                    self.filter_range(first..games.min(first + STRETCH), &mut passes);
                    passes
                })
                .collect();
            marked.concat()
        });
    }

    /// Returns, for each game in a range of ids, whether it passes. Returns `None` if
    /// [`precompute`](SourceFilter::precompute) has not been called.
    pub(super) fn precomputed(&self, ids: Range<usize>) -> Option<&[bool]> {
        Some(&self.precomputed.get()?[ids])
    }

    /// Returns whether the player whom the filters name has White in a game, and whether Black. Both are `false` if the
    /// filters name no player.
    pub(super) fn colors(&self, id: usize) -> [bool; 2] {
        let players = self
            .players
            .as_ref()
            .filter(|players| players.player.is_some());
        players.map_or([false; 2], |players| players.colors(self.games, id))
    }

    /// Returns the color of the player in a passing game, or White if both colors match.
    pub(super) fn player_of(&self, id: usize) -> Color {
        let players = self.players.as_ref();
        let color = players.and_then(|players| players.color);
        let is_white = || players.is_none_or(|players| players.colors(self.games, id)[0]);
        color.unwrap_or_else(|| Color::from_white(is_white()))
    }

    /// Returns the number of games of the source.
    pub(super) fn games(&self) -> usize {
        self.games.len()
    }

    /// Returns `true` if the game passes.
    #[inline]
    pub(super) fn admits(&self, id: usize) -> bool {
        if let Some(passes) = self.precomputed.get() {
            return passes[id];
        }
        self.of_somebody
            .as_ref()
            .is_none_or(|bits| is_set(bits, id))
            && self.admits_others(id)
    }

    /// Returns `true` if the game passes all filters except the bits of `of_somebody`.
    #[inline]
    fn admits_others(&self, id: usize) -> bool {
        let games = self.games;
        let traits = self.traits.as_ref();
        let eco = self.eco.as_ref();
        let opening = self.opening.as_ref();
        let event = self.event.as_ref();
        let players = self.players.as_ref();
        // The cheap conditions are combined without branches, which would be mispredicted often.
        let passes = traits.is_none_or(|passes| passes[games.traits[id].number()])
            & (games.plies[id] >= self.min_ply)
            & eco.is_none_or(|passes| passes[games.eco[id].number()])
            & opening.is_none_or(|openings| openings.contains(games.openings[id]))
            & self
                .dates
                .is_none_or(|dates| dates.contains(games.dates[id]))
            & self.elo.is_none_or(|elo| elo.contains(games.elo[id]));
        passes
            && event.is_none_or(|events| has(events, games.events[id]))
            && players.is_none_or(|players| players.admit(games, id))
    }

    /// Writes for each game of a range whether it passes, and returns `true` if any game passes.
    ///
    /// Filters are applied one after the other to all games of the range, so that the compiler can vectorize each loop.
    pub(super) fn filter_range(&self, stretch: Range<usize>, passes: &mut Vec<bool>) -> bool {
        passes.clear();
        match &self.of_somebody {
            Some(bits) => {
                passes.extend(stretch.clone().map(|id| is_set(bits, id)));
                if count(passes) <= passes.len() / FEW {
                    return self.filter_few(stretch.start, passes);
                }
            }
            None => passes.resize(stretch.len(), true),
        }
        self.filter_columns(stretch.clone(), passes);
        if let Some(players) = &self.players {
            for (passes, id) in passes
                .iter_mut()
                .zip(stretch)
                .filter(|(passes, _)| **passes)
            {
                *passes = players.admit(self.games, id);
            }
        }
        passes.contains(&true)
    }

    /// Evaluates the remaining filters for the games that are still marked, one by one.
    fn filter_few(&self, first: usize, passes: &mut [bool]) -> bool {
        let mut are_any = false;
        for (at, passes) in passes.iter_mut().enumerate().filter(|(_, passes)| **passes) {
            *passes = self.admits_others(first + at);
            are_any |= *passes;
        }
        are_any
    }

    fn filter_columns(&self, stretch: Range<usize>, passes: &mut [bool]) {
        let games = self.games;
        match self.event.as_deref() {
            Some([event]) => keep(passes, &games.events[stretch.clone()], |other| {
                other == event
            }),
            Some(events) => keep(passes, &games.events[stretch.clone()], |event| {
                has(events, *event)
            }),
            None => {}
        }
        if let Some(dates) = self.dates {
            keep(passes, &games.dates[stretch.clone()], |date| {
                dates.contains(*date)
            });
        }
        if let Some(range) = self.elo {
            keep(passes, &games.elo[stretch.clone()], |elo| {
                range.contains(*elo)
            });
        }
        if self.min_ply > 0 {
            let least = self.min_ply;
            keep(passes, &games.plies[stretch.clone()], |plies| {
                *plies >= least
            });
        }
        if let Some(passing) = &self.traits {
            keep(passes, &games.traits[stretch.clone()], |traits| {
                passing[traits.number()]
            });
        }
        if let Some(passing) = &self.eco {
            keep(passes, &games.eco[stretch.clone()], |eco| {
                passing[eco.number()]
            });
        }
        if let Some(openings) = &self.opening {
            keep(passes, &games.openings[stretch], |opening| {
                openings.contains(*opening)
            });
        }
    }
}

/// Clears the marks of the games whose value does not satisfy the condition.
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

/// Returns `true` if `numbers`, which ascend, contain a number.
#[inline]
fn has(numbers: &[u32], number: u32) -> bool {
    numbers.binary_search(&number).is_ok()
}

/// An inclusive range of ratings.
#[derive(Copy, Clone)]
struct EloRange {
    lowest: u16,
    highest: u16,
    /// Whether an unknown rating passes.
    unknown_passes: bool,
}

impl EloRange {
    /// Creates the range of some filters, or returns `None` if all ratings pass.
    fn new(filters: &Filters) -> Option<EloRange> {
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

    /// Returns `true` if each rating is in the range, or unknown and unknown ratings pass.
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
    /// Returns `true` if the players of a game match, with the wanted color and result.
    fn admit(&self, games: &GameColumns, id: usize) -> bool {
        let [white, black] = games.players[id];
        if self.player.is_none() {
            let is_opponent = |name| is_one_of(&self.opponent, name);
            return is_opponent(white) || is_opponent(black);
        }
        let colors = self.colors(games, id);
        Color::ALL
            .into_iter()
            .zip(colors)
            .any(|(color, is_player)| is_player && self.color.is_none_or(|wanted| wanted == color))
    }

    /// Returns whether the player has White, and whether Black, in a game with the wanted opponent and result.
    fn colors(&self, games: &GameColumns, id: usize) -> [bool; 2] {
        let [white, black] = games.players[id];
        let winner = games.traits[id].winner();
        let has = |color: Color, player, opponent| {
            let won = |won: bool| winner == Some(if won { color } else { !color });
            is_one_of(&self.player, player)
                && is_one_of(&self.opponent, opponent)
                && self.won.is_none_or(won)
        };
        [
            has(Color::White, white, black),
            has(Color::Black, black, white),
        ]
    }
}

/// Returns `true` if `numbers` is `None` or contains a number.
fn is_one_of(numbers: &Option<Vec<u32>>, number: u32) -> bool {
    numbers.as_ref().is_none_or(|numbers| has(numbers, number))
}

/// Returns a bit for each game of the source. It is set for the games that the player played with the wanted color or,
/// if the filters name no player, for the games of the opponent. Returns `None` if the filters name neither, or if
/// names match in part: the index lists games by whole names only.
fn games_of_somebody(source: &OpenIndex, filters: &Filters) -> Result<Option<Vec<u64>>> {
    if filters.names == NameMatch::Part {
        return Ok(None);
    }
    let (name, color) = match (&filters.player, &filters.opponent) {
        (Some(player), _) => (player, filters.color),
        (None, Some(opponent)) => (opponent, None),
        (None, None) => return Ok(None),
    };
    let folded = folded(name);
    let mut bits = vec![0u64; source.rows.len().div_ceil(64)];
    for side in Color::ALL {
        if color.is_some_and(|wanted| wanted != side) {
            continue;
        }
        for id in source.listed(ListKey::player(&folded, side))? {
            let word = bits.get_mut(id as usize / 64);
            let word = word.ok_or_else(|| source.damaged("a list has an unknown game"))?;
            *word |= 1 << (id % 64);
        }
    }
    Ok(Some(bits))
}

/// Returns, for each number that encodes traits, whether games with these traits pass. Returns `None` if all games
/// pass.
fn traits_that_pass(filters: &Filters) -> Option<Box<[bool; Traits::COUNT]>> {
    let (results, speeds) = (&filters.results, &filters.speeds);
    let (modes, groups) = (&filters.modes, &filters.groups);
    let skip_unfinished = filters.skip_unfinished;
    if results.is_empty()
        && !skip_unfinished
        && speeds.is_none()
        && modes.is_none()
        && groups.is_none()
    {
        return None;
    }
    let mut pass = Box::new([false; Traits::COUNT]);
    for (passes, traits) in pass.iter_mut().zip(Traits::all()) {
        let Some(AskedTraits {
            result,
            speed,
            mode,
            group,
        }) = traits
        else {
            continue;
        };
        *passes = (results.is_empty() || results.contains(&result))
            && !(skip_unfinished && result == GameResult::Unknown)
            && speeds.as_ref().is_none_or(|set| set.contains(&speed))
            && modes.as_ref().is_none_or(|set| set.contains(&mode))
            && groups.as_ref().is_none_or(|set| match group {
                Some(group) => set.contains(&group),
                None => filters.admit_unrated(),
            });
    }
    Some(pass)
}

/// Returns, for each number that encodes an ECO code, whether games with this code pass. Returns `None` if all games
/// pass.
fn eco_that_pass(filters: &Filters) -> Option<Box<[bool; EcoNumber::COUNT]>> {
    let range = filters.eco.as_ref()?;
    let mut pass = Box::new([false; EcoNumber::COUNT]);
    for eco in EcoNumber::all() {
        pass[eco.number()] = eco.code().is_some_and(|code| range.contains(&code));
    }
    Some(pass)
}

//! Finds names in filters that occur in no game, and suggests similar names that do occur.

use std::{cell::OnceCell, cmp::Reverse, fmt};

use rustc_hash::FxHashMap;

use super::{open_index::OpenIndex, sources::Sources};
use crate::{
    error::{Error, Result},
    games::{
        pgn::{NameMatch, NearestNames, PlayerNames, WantedSpellings, did_you_mean, normalized},
        selection::Selection,
    },
};

/// The number of names after which a search checks whether it has been cancelled.
const NAMES_PER_CANCEL_CHECK: u32 = 1024;

/// A name in [`Selection`] that occurs in no game, with similar names that do occur.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnknownName {
    /// The name in the filters.
    pub name: String,
    /// Similar names of players or events, the most similar first.
    pub nearest: Vec<String>,
    #[serde(skip)]
    role: NameRole,
    #[serde(skip)]
    how: NameMatch,
}

/// The role of a name in a game: a player or an event.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum NameRole {
    Player,
    Event,
}

/// The names of players that match the filters by player and by opponent in [`Selection`]. Only names that occur in
/// games are included. The names with the most games come first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MatchedNames {
    /// The names that match the filter by player, at most 100. Empty if there is no such filter.
    pub players: Vec<String>,
    /// The names that match the filter by opponent, at most 100. Empty if there is no such filter.
    pub opponents: Vec<String>,
    /// The name with the most games among those that match both filters, or `None` if no name matches both.
    pub both: Option<String>,
    /// Messages about filters that match more different names than the user wrote, or fewer games than another spelling
    /// of a name, one line each.
    pub notes: Vec<String>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.role {
            NameRole::Player => "player",
            NameRole::Event => "event",
        };
        match self.how {
            NameMatch::Part => write!(f, "no {whose}'s name contains \"{}\"", self.name)?,
            NameMatch::Whole => write!(f, "no {whose} has exactly the name \"{}\"", self.name)?,
        }
        f.write_str(&did_you_mean(&self.nearest))
    }
}

/// Looks for a filter by player, opponent or event that no game can pass, because none of its names occurs in a game.
/// Returns a description of the first name in the first such filter, or `None` if there is no such filter. Implements
/// [`Explorer::unknown_name_while`](super::Explorer::unknown_name_while).
///
/// `should_continue` is called repeatedly, and returns `false` to cancel the search, which then fails.
pub(super) fn unknown_name(
    sources: &Sources,
    filters: &Selection,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<UnknownName>> {
    let search = NameSearch::new(sources, filters, should_continue);
    for (names, role) in groups(filters) {
        let Some(first) = names.first() else { continue };
        if !search.any_is_known(names, role)? {
            return search.unknown(first, role).map(Some);
        }
    }
    Ok(None)
}

/// Returns a description of each name in the filters that occurs in no game. Implements
/// [`Explorer::unknown_names`](super::Explorer::unknown_names).
pub(super) fn unknown_names(sources: &Sources, filters: &Selection) -> Result<Vec<UnknownName>> {
    let search = NameSearch::new(sources, filters, &|| true);
    let mut unknown = Vec::new();
    for (names, role) in groups(filters) {
        for name in names {
            if !search.any_is_known(std::slice::from_ref(name), role)? {
                unknown.push(search.unknown(name, role)?);
            }
        }
    }
    Ok(unknown)
}

/// Returns the names of players that match the filters by player and by opponent. Implements
/// [`Explorer::matched_names`](super::Explorer::matched_names).
pub(super) fn matched_names(sources: &Sources, filters: &Selection) -> Result<MatchedNames> {
    let mut players = PlayerNames::new(filters.player.clone(), filters.name_match());
    let mut opponents = PlayerNames::new(filters.opponent.clone(), filters.name_match());
    let mut both = PlayerNames::new(Vec::new(), filters.name_match());
    for source in sources.selected(filters.source.as_deref()) {
        let of_players = matched_numbers(source, &filters.player, filters.name_match())?;
        let of_opponents = matched_numbers(source, &filters.opponent, filters.name_match())?;
        add_names(source, &of_players, &mut players)?;
        add_names(source, &of_opponents, &mut opponents)?;
        let in_both = of_players.into_iter();
        let in_both = in_both.filter(|(number, _)| of_opponents.contains_key(number));
        add_names(source, &in_both.collect(), &mut both)?;
    }
    let notes = players.note().into_iter().chain(opponents.note());
    let notes = notes.chain(note_of_spellings(
        sources,
        filters,
        &filters.player,
        &players,
    )?);
    let notes = notes.chain(note_of_spellings(
        sources,
        filters,
        &filters.opponent,
        &opponents,
    )?);
    Ok(MatchedNames {
        notes: notes.collect(),
        players: players.matched(),
        opponents: opponents.matched(),
        both: both.matched().into_iter().next(),
    })
}

/// Finds the names of players in `source` that match a filter. Returns a map from the number of each such name to its
/// number of games. `wanted` contains the names in the filter, and `how` says how the filter compares names.
fn matched_numbers(
    source: &OpenIndex,
    wanted: &[String],
    how: NameMatch,
) -> Result<FxHashMap<u32, u64>> {
    let mut numbers = Vec::new();
    for name in wanted {
        numbers.extend(source.numbers_of(name, how)?);
    }
    Ok(with_games(source, &numbers))
}

/// Returns a message about names that may be other spellings of the names `wanted` in the filter by player or by opponent,
/// and that occur in more games than the names that match the filter, `matched`. Returns `None` if there are no such
/// names, or if the filters require whole names.
fn note_of_spellings(
    sources: &Sources,
    filters: &Selection,
    wanted: &[String],
    matched: &PlayerNames,
) -> Result<Option<String>> {
    let how = filters.name_match();
    if how == NameMatch::Whole || wanted.is_empty() {
        return Ok(None);
    }
    let mut others = PlayerNames::new(Vec::new(), how);
    let wanted = WantedSpellings::new(wanted, how);
    for source in sources.selected(filters.source.as_deref()) {
        let mut numbers = Vec::new();
        source.for_each_name(|number, name| {
            if wanted.may_include(name) {
                numbers.push(number);
            }
        })?;
        add_names(source, &with_games(source, &numbers), &mut others)?;
    }
    Ok(matched.note_of_spellings(&others))
}

/// Returns a map from the `numbers` of the names of players that occur in games of `source` to their numbers of games.
fn with_games(source: &OpenIndex, numbers: &[u32]) -> FxHashMap<u32, u64> {
    let mut games: FxHashMap<u32, u64> = numbers.iter().map(|number| (*number, 0)).collect();
    if !games.is_empty() {
        for number in numbers_in(source, NameRole::Player) {
            if let Some(games) = games.get_mut(&number) {
                *games += 1;
            }
        }
        games.retain(|_, games| *games > 0);
    }
    games
}

/// Adds names of `source` to `names`. `games` maps the number of each name to its number of games. The names with the
/// most games are added first, because `names` ignores further names once it is full.
fn add_names(
    source: &OpenIndex,
    games: &FxHashMap<u32, u64>,
    names: &mut PlayerNames,
) -> Result<()> {
    let mut games = Vec::from_iter(games);
    games.sort_unstable_by_key(|(number, games)| (Reverse(**games), **number));
    for (number, games) in games {
        names.add_matched(&source.name(*number)?, *games);
    }
    Ok(())
}

/// Returns the names in each filter by name, with the role that the filter looks at: player or event.
fn groups(filters: &Selection) -> [(&[String], NameRole); 5] {
    [
        (&filters.player, NameRole::Player),
        (&filters.opponent, NameRole::Player),
        (&filters.white, NameRole::Player),
        (&filters.black, NameRole::Player),
        (filters.event.as_slice(), NameRole::Event),
    ]
}

/// A search for names in the games of the selected sources. The names of all players are collected when they are first
/// needed, and so are the names of all events.
struct NameSearch<'a> {
    sources: Vec<&'a OpenIndex>,
    how: NameMatch,
    /// A function that returns `false` to cancel the search.
    should_continue: &'a dyn Fn() -> bool,
    /// For each source, the number of games of each player, keyed by the number of the name. Collected when it is first
    /// needed.
    players: OnceCell<Vec<FxHashMap<u32, u64>>>,
    /// For each source, the number of games of each event, keyed by the number of the name. Collected when it is first
    /// needed.
    events: OnceCell<Vec<FxHashMap<u32, u64>>>,
}

impl<'a> NameSearch<'a> {
    fn new(
        sources: &'a Sources,
        filters: &Selection,
        should_continue: &'a dyn Fn() -> bool,
    ) -> NameSearch<'a> {
        NameSearch {
            sources: sources.selected(filters.source.as_deref()).collect(),
            how: filters.name_match(),
            should_continue,
            players: OnceCell::new(),
            events: OnceCell::new(),
        }
    }

    /// Returns an iterator over the selected sources, each with the names of players or events (depending on `role`)
    /// that occur in its games. The map contains the number of games of each name, keyed by the number of the name in
    /// the source.
    fn used(&self, role: NameRole) -> impl Iterator<Item = (&'a OpenIndex, &FxHashMap<u32, u64>)> {
        let used = match role {
            NameRole::Player => &self.players,
            NameRole::Event => &self.events,
        };
        let sources = self.sources.iter();
        let all = used.get_or_init(|| {
            let counted = |source: &&OpenIndex| {
                let mut games: FxHashMap<u32, u64> = FxHashMap::default();
                numbers_in(source, role).for_each(|name| *games.entry(name).or_default() += 1);
                games
            };
            sources.map(counted).collect()
        });
        self.sources.iter().copied().zip(all)
    }

    /// Returns `true` if at least one of `names` occurs in a game, as the name of a player or of an event depending on
    /// `role`.
    fn any_is_known(&self, names: &[String], role: NameRole) -> Result<bool> {
        if self.how == NameMatch::Part {
            let wanted: Vec<String> = names.iter().map(|name| normalized(name)).collect();
            let mut is_known = false;
            self.for_each(role, |name, _| {
                let name = normalized(name);
                is_known = wanted.iter().any(|wanted| self.how.matches(&name, wanted));
                !is_known
            })?;
            return Ok(is_known);
        }
        for source in &self.sources {
            for name in names {
                let numbers = source.numbers_of(name, self.how)?;
                // Most names that occur at all occur in one of the first games.
                if !numbers.is_empty()
                    && numbers_in(source, role).any(|number| numbers.contains(&number))
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns a description of `name`, which occurs in no game. The description contains the most similar names of
    /// players or of events, depending on `role`.
    fn unknown(&self, name: &str, role: NameRole) -> Result<UnknownName> {
        let mut nearest = NearestNames::new(name);
        self.for_each(role, |name, games| {
            nearest.offer(name, games);
            true
        })?;
        Ok(UnknownName {
            name: name.to_owned(),
            nearest: nearest.names(),
            role,
            how: self.how,
        })
    }

    /// Calls `f` with the name of each player or event (depending on `role`) that occurs in games, and its number of
    /// games. Stops when `f` returns `false`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`] if the search is cancelled because its function `should_continue` returns
    /// `false`. Returns an error if an index is damaged.
    fn for_each(&self, role: NameRole, mut f: impl FnMut(&str, u64) -> bool) -> Result<()> {
        for (source, used) in self.used(role) {
            let (mut wants_more, mut should_continue, mut names) =
                (true, (self.should_continue)(), 0u32);
            source.for_each_name(|number, name| {
                if wants_more
                    && should_continue
                    && let Some(games) = used.get(&number)
                {
                    wants_more = f(name, *games);
                    names += 1;
                    should_continue =
                        !names.is_multiple_of(NAMES_PER_CANCEL_CHECK) || (self.should_continue)();
                }
            })?;
            if !should_continue {
                return Err(Error::Interrupted);
            }
            if !wants_more {
                break;
            }
        }
        Ok(())
    }
}

/// Returns an iterator over the number of the player's or event's name (depending on `role`) in each game of `source`.
/// A number is repeated for each game that contains the name.
fn numbers_in(source: &OpenIndex, role: NameRole) -> impl Iterator<Item = u32> {
    let (players, events) = match role {
        NameRole::Player => (&source.rows.players[..], &[][..]),
        NameRole::Event => (&[][..], &source.rows.events[..]),
    };
    players.iter().flatten().chain(events).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_found_is_said_with_what_may_be_meant() {
        let unknown = |nearest: &[&str], how| UnknownName {
            name: "Tall".to_owned(),
            nearest: nearest.iter().map(|name| (*name).to_owned()).collect(),
            role: NameRole::Player,
            how,
        };
        assert_eq!(
            unknown(&["Tal, Mikhail", "Hall"], NameMatch::Part).to_string(),
            "no player's name contains \"Tall\": did you mean \"Tal, Mikhail\" or \"Hall\"?"
        );
        assert_eq!(
            unknown(&[], NameMatch::Whole).to_string(),
            "no player has exactly the name \"Tall\""
        );
    }
}

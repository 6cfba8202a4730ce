//! Detects names in filters that occur in no game, and finds similar names.

use std::{cmp::Reverse, fmt};

use rustc_hash::FxHashSet;

use super::{query::Filters, source::OpenIndex, sources::Explorer};
use crate::{
    error::Result,
    pgn::{NameMatch, folded},
};

/// The greatest number of similar names that a message offers.
const OFFERED: usize = 3;
/// The least similarity to an unknown name, in thousandths, that a name must have to be offered in a message. See
/// [`likeness`].
const LIKE: u32 = 600;

/// A name in [`Filters`] that occurs in no game, with similar names that do occur.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName {
    /// The name in the filters.
    pub name: String,
    /// Similar names of players or events, the most similar first.
    pub nearest: Vec<String>,
    role: NameRole,
    how: NameMatch,
}

/// The role of a name in games: a player or an event.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum NameRole {
    Player,
    Event,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.role {
            NameRole::Player => "player",
            NameRole::Event => "event",
        };
        match self.how {
            NameMatch::Part => write!(f, "no {whose}'s name contains \"{}\"", self.name)?,
            NameMatch::Whole => write!(f, "no {whose} has the whole name \"{}\"", self.name)?,
        }
        f.write_str(&did_you_mean(&self.nearest))
    }
}

/// Returns the end of a message about an unknown name, such as `: did you mean "Tal"?`. Returns an empty text if
/// `names` is empty.
pub(crate) fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(": did you mean \"{}\"?", names.join("\" or \"")),
    }
}

/// Looks for a filter (player, opponent or event) of which no name occurs in a game. Returns the first name of the
/// first such filter, or `None` if there is none. Implements [`Explorer::unknown_name`].
pub(super) fn unknown_name(explorer: &Explorer, filters: &Filters) -> Result<Option<UnknownName>> {
    for (names, role) in groups(filters) {
        let mut unknown = unknown_of(explorer, filters, names, role)?;
        if !names.is_empty() && unknown.len() == names.len() {
            return Ok(Some(unknown.swap_remove(0)));
        }
    }
    Ok(None)
}

/// Returns all names in the filters that occur in no game. Implements [`Explorer::unknown_names`].
pub(super) fn unknown_names(explorer: &Explorer, filters: &Filters) -> Result<Vec<UnknownName>> {
    let mut unknown = Vec::new();
    for (names, role) in groups(filters) {
        unknown.extend(unknown_of(explorer, filters, names, role)?);
    }
    Ok(unknown)
}

/// Returns three groups of names in the filters: players, opponents and events. Each group has the role of its names.
fn groups(filters: &Filters) -> [(&[String], NameRole); 3] {
    [
        (&filters.players, NameRole::Player),
        (&filters.opponents, NameRole::Player),
        (filters.event.as_slice(), NameRole::Event),
    ]
}

/// Returns those of `names` that occur in no game, in the order of `names`. `role` says whether they are names of
/// players or events.
fn unknown_of(
    explorer: &Explorer,
    filters: &Filters,
    names: &[String],
    role: NameRole,
) -> Result<Vec<UnknownName>> {
    let mut unknown = Vec::new();
    for name in names {
        if !is_known(explorer, filters, role, name)? {
            unknown.push(UnknownName {
                name: name.clone(),
                nearest: nearest(explorer, filters, role, name)?,
                role,
                how: filters.names,
            });
        }
    }
    Ok(unknown)
}

fn is_known(explorer: &Explorer, filters: &Filters, role: NameRole, name: &str) -> Result<bool> {
    for source in explorer.selected(filters.source.as_deref()) {
        let used = used(source, role);
        let numbers = source.numbers_of(name, filters.names)?;
        if numbers.iter().any(|number| used.contains(number)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the names in the sources selected by `filters` that are most similar to `wanted`, the most similar first.
fn nearest(
    explorer: &Explorer,
    filters: &Filters,
    role: NameRole,
    wanted: &str,
) -> Result<Vec<String>> {
    let mut nearest = NearestNames::new(wanted);
    for source in explorer.selected(filters.source.as_deref()) {
        let used = used(source, role);
        source.for_each_name(|number, name| {
            if used.contains(&number) {
                nearest.offer(name);
            }
        })?;
    }
    Ok(nearest.names())
}

/// Returns the numbers of the names in `source` that have the given role: names of players, or names of events.
fn used(source: &OpenIndex, role: NameRole) -> FxHashSet<u32> {
    match role {
        NameRole::Player => source.rows.players.iter().flatten().copied().collect(),
        NameRole::Event => source.rows.events.iter().copied().collect(),
    }
}

/// Collects the names that are most similar to a name that occurs in no game.
#[derive(Debug)]
pub(crate) struct NearestNames {
    wanted: String,
    best: Vec<(Reverse<u32>, String)>,
}

impl NearestNames {
    pub(crate) fn new(wanted: &str) -> NearestNames {
        NearestNames {
            wanted: folded(wanted),
            best: Vec::new(),
        }
    }

    pub(crate) fn offer(&mut self, name: &str) {
        let likeness = Reverse(likeness(&self.wanted, &folded(name)));
        let found = (likeness, name.to_owned());
        if likeness.0 >= LIKE && !self.best.contains(&found) {
            self.best.push(found);
            self.best.sort();
            self.best.truncate(OFFERED);
        }
    }

    pub(crate) fn names(self) -> Vec<String> {
        self.best.into_iter().map(|(_, name)| name).collect()
    }
}

/// Returns the similarity of two names in thousandths: the mean, over the words of `wanted`, of the similarity to the
/// most similar word of `name`.
fn likeness(wanted: &str, name: &str) -> u32 {
    let words =
        |text| str::split(text, |c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let best = |word: &str| {
        let alike = words(name).map(|other| strsim::normalized_damerau_levenshtein(word, other));
        alike.fold(0.0, f64::max)
    };
    let of_words: Vec<f64> = words(wanted).map(best).collect();
    let mean = of_words.iter().sum::<f64>() / of_words.len().max(1) as f64;
    (1000.0 * mean) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alike_by_their_words() {
        let fischer = "fischer, robert james";
        assert_eq!(likeness("fischer", fischer), 1000);
        assert!(likeness("fischr", fischer) > likeness("fischr", "fine, reuben"));
        assert!(likeness("bobby fischer", fischer) >= LIKE);
        assert!(likeness("karpov", fischer) < LIKE);
        assert_eq!(likeness("", fischer), 0);
    }

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
            "no player has the whole name \"Tall\""
        );
    }
}

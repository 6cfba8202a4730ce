//! Counting the games of unknown variants.

use std::collections::BTreeMap;

use super::Tags;

/// The maximum number of unknown variants that are named. An input may have a different name for every game.
pub(crate) const NAMED_VARIANTS: usize = 20;

/// The numbers of games whose `Variant` tag names an unknown variant.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct UnknownVariants {
    games: BTreeMap<String, u64>,
    /// The number of games of further variants.
    more: u64,
}

impl UnknownVariants {
    /// Returns the name of a game's variant if it is unknown, shortened to 40 characters.
    pub fn name(tags: &Tags<'_>) -> Option<String> {
        let is_unknown = tags.named_variant().is_err();
        is_unknown.then(|| {
            let name = String::from_utf8_lossy(tags.get(b"Variant").unwrap_or_default());
            name.trim().chars().take(40).collect()
        })
    }

    /// Adds games of an unknown variant.
    pub fn add(&mut self, name: String, games: u64) {
        let is_full = self.games.len() >= NAMED_VARIANTS;
        match is_full && !self.games.contains_key(&name) {
            true => self.more += games,
            false => *self.games.entry(name).or_default() += games,
        }
    }

    /// Adds the games that another reader counted.
    pub fn join(&mut self, other: UnknownVariants) {
        for (name, games) in other.games {
            self.add(name, games);
        }
        self.more += other.more;
    }

    /// Returns a warning for each variant.
    pub fn warnings(&self) -> Vec<String> {
        let named = self.games.iter();
        let named = named.map(|(name, games)| unknown_variant(Some(name), *games));
        let more = (self.more > 0).then(|| unknown_variant(None, self.more));
        named.chain(more).collect()
    }

    /// Returns the warnings as the end of an error message: each one after a semicolon.
    pub fn in_error(&self) -> String {
        let warnings = self.warnings().into_iter();
        warnings.map(|warning| format!("; {warning}")).collect()
    }
}

/// Returns the warning that games of the unknown variant `name` were filtered. If `name` is `None`, the warning is about
/// games of several variants that are not named.
pub(crate) fn unknown_variant(name: Option<&str>, games: u64) -> String {
    let filtered = match games {
        1 => "1 game filtered".to_owned(),
        _ => format!("{games} games filtered"),
    };
    match name {
        Some(name) => format!(
            "unknown variant \"{}\": {filtered}; if it is standard chess, remove the tag Variant",
            name.escape_debug()
        ),
        None => format!("more unknown variants: {filtered}"),
    }
}

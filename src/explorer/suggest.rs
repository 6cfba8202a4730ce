//! Suggests names for a text that somebody types.

use std::cmp::Reverse;

use super::{
    dates::text_of_number,
    names::{Facts, SuggestField, WantedWords},
    sources::Explorer,
    words::words,
};
use crate::error::Result;

/// The largest number of suggestions.
const MOST_SUGGESTED: usize = 50;

/// The largest number of words of a text that are looked up. Names have fewer.
const MOST_WORDS: usize = 24;

/// A suggested name of a player, an event or an opening.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Suggestion {
    /// The spelling that most games have.
    pub name: String,
    /// The number of games with the name.
    pub games: u64,
    /// The year and, if known, the month of the first game: `2006-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The year and, if known, the month of the last game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The ECO code of an opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eco: Option<&'static str>,
    /// The moves of an opening in UCI notation, joined by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uci: Option<String>,
    /// The number of typing errors in the text, compared with this name.
    pub distance: u8,
}

impl Explorer {
    /// Returns the names that a text may mean, at most `limit` and at most 50.
    ///
    /// A name matches if each word of the text begins one of its words. A name without other words comes first, then the names
    /// with the most games. If fewer than `limit` names match, names that match with one or two typing errors follow. An empty
    /// text matches every name.
    ///
    /// The first call for a field reads all names and takes longer; [`warm_up`](Explorer::warm_up) does that beforehand.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged or there is no source with the given name.
    pub fn suggest(
        &self,
        field: SuggestField,
        text: &str,
        limit: usize,
        source: Option<&str>,
    ) -> Result<Vec<Suggestion>> {
        self.check_source(source)?;
        let table = self.suggestions.table(&self.sources, field)?;
        let mut wanted = words(text);
        wanted.truncate(MOST_WORDS);
        if wanted.is_empty() && !text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let limit = limit.min(MOST_SUGGESTED);
        let of_source = |facts: &&Facts| {
            source.is_none_or(|source| self.sources[facts.source as usize].name == source)
        };
        let wanted = WantedWords::new(wanted);
        let mut best = Vec::new();
        for mistyped in [false, true] {
            if best.len() < limit {
                best = table.best(&wanted, mistyped, limit, of_source);
            }
        }
        best.into_iter()
            .map(|(Reverse(errors), _, games, Reverse(name))| {
                let facts = table.facts_of(name).iter().filter(of_source);
                let month = |number: u32| text_of_number(number & !31);
                let first = facts.clone().map(|facts| facts.first);
                let first = first.filter(|date| *date > 0).min();
                let last = facts.clone().map(|facts| facts.last).max();
                let line = table.lines.get(name as usize);
                let most = facts.max_by_key(|facts| facts.games);
                Ok(Suggestion {
                    name: match (line, most) {
                        (Some(line), _) => line.name.to_owned(),
                        (None, Some(facts)) => {
                            self.sources[facts.source as usize].name(facts.number)?
                        }
                        (None, None) => String::new(),
                    },
                    games,
                    since: first.and_then(month),
                    until: last.and_then(month),
                    eco: line.map(|line| line.eco),
                    uci: line.map(|line| line.uci.clone()),
                    distance: errors,
                })
            })
            .collect()
    }

    /// Reads all names, so that no call of [`suggest`](Explorer::suggest) has to wait for them.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn warm_up(&self) -> Result<()> {
        let fields = [
            SuggestField::Player,
            SuggestField::Event,
            SuggestField::Opening,
        ];
        fields
            .into_iter()
            .try_for_each(|field| self.suggestions.table(&self.sources, field).map(|_| ()))
    }
}

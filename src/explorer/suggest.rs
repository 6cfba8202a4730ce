//! The names that a text may mean.

use std::cmp::Reverse;

use super::{
    dates::text_of_number,
    names::{Facts, SuggestField, WantedWords},
    sources::Explorer,
    words::words,
};
use crate::error::Result;

/// How many names are suggested at most.
const MOST_SUGGESTED: usize = 50;

/// A name that a text may mean.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Suggestion {
    /// The name, as most games write it.
    pub name: String,
    /// How many games have it.
    pub games: u64,
    /// The year and, if known, the month of the first of them: `2006-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The same of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The code of an opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eco: Option<&'static str>,
    /// The moves of an opening in UCI notation, joined by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uci: Option<String>,
    /// How many typing errors the text has if it means this name.
    pub distance: u8,
}

impl Explorer {
    /// The names that a text may mean, at most `limit` and at most 50: those with words that begin as the text's do, one
    /// with no other words first, then those of most games; then, while there are fewer, those that it means with one or
    /// two typing errors. An empty text means any.
    ///
    /// The first question about a field takes longer, because it reads all names; [`warm_up`](Explorer::warm_up) does that
    /// beforehand.
    ///
    /// # Errors
    ///
    /// A damaged index, or a source that does not exist.
    pub fn suggest(
        &self,
        field: SuggestField,
        text: &str,
        limit: usize,
        source: Option<&str>,
    ) -> Result<Vec<Suggestion>> {
        self.check_source(source)?;
        let table = self.suggestions.table(&self.sources, field)?;
        let wanted = words(text);
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

    /// Reads all names, so that no [question](Explorer::suggest) has to wait for that.
    ///
    /// # Errors
    ///
    /// A damaged index.
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

//! Tables of the names of players, events and openings, searchable by their words.

use std::{
    cmp::Reverse,
    collections::HashSet,
    sync::{Mutex, OnceLock},
};

use super::{
    count::PositionTally,
    duplicate_groups::hash_names,
    line::Line,
    query::{Query, View},
    source::OpenIndex,
    source_filter::SourceFilters,
    words::{MOST_ERRORS, WordIndex, Words, hash_of},
};
use crate::{
    error::Result,
    index::explored::Best,
    openings,
    position::{BookMove, Variant},
    task,
};

/// The kind of names to suggest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuggestField {
    /// Players.
    Player,
    /// Events.
    Event,
    /// Openings of standard chess.
    Opening,
}

/// The tables of names. Each is built when it is first needed.
#[derive(Default)]
pub(super) struct Suggestions {
    tables: [OnceLock<NameTable>; 3],
    /// Held while a table is built.
    making: Mutex<()>,
}

impl Suggestions {
    /// Returns the table of a field. Builds it first if necessary, or waits while another thread builds a table.
    pub(super) fn table(&self, sources: &[OpenIndex], field: SuggestField) -> Result<&NameTable> {
        let table = &self.tables[field as usize];
        if table.get().is_none() {
            let _making = task::lock(&self.making);
            if table.get().is_none() {
                let made = match field {
                    SuggestField::Opening => opening_table(sources)?,
                    SuggestField::Player | SuggestField::Event => name_table(sources, field)?,
                };
                return Ok(table.get_or_init(|| made));
            }
        }
        Ok(table.get().expect("it was made"))
    }
}

/// A table of names, with the games of each name in each source.
pub(super) struct NameTable {
    index: WordIndex,
    /// One entry for each name and source that has it, grouped by name.
    facts: Vec<Facts>,
    /// The index in `facts` at which the group of each name starts, followed by the length of `facts`.
    starts: Vec<u32>,
    /// The hash of all words of each name.
    whole: Vec<u64>,
    /// The lines of the openings; empty for players and events.
    pub(super) lines: Vec<NamedLine>,
}

/// The number and dates of the games of a source that have a name.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Facts {
    pub(super) source: u32,
    /// The name's number in the source.
    pub(super) number: u32,
    pub(super) games: u32,
    /// The first and the last known date, as numbers of [`super::dates`]; 0 if no date is known.
    pub(super) first: u32,
    pub(super) last: u32,
}

/// A named opening, with the moves that lead to it.
#[derive(Clone, Debug)]
pub(super) struct NamedLine {
    pub(super) eco: &'static str,
    pub(super) name: &'static str,
    pub(super) uci: String,
    /// Whether this line has at least as many games as every other line with the same name, whatever its ECO code.
    is_main: bool,
}

/// The words of a search text.
pub(super) struct WantedWords {
    words: Vec<String>,
    /// The hash of the words, if there are any.
    whole: Option<u64>,
    /// Whether a word is an ECO code or the beginning of one.
    has_code: bool,
}

impl WantedWords {
    pub(super) fn new(words: Vec<String>) -> WantedWords {
        WantedWords {
            whole: (!words.is_empty()).then(|| hash_of(words.clone())),
            has_code: words.iter().any(|word| begins_code(word)),
            words,
        }
    }
}

/// Returns `true` if a word is an ECO code or the beginning of one: `b9`.
fn begins_code(word: &str) -> bool {
    matches!(word.as_bytes(), [b'a'..=b'e', digits @ ..]
        if matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit))
}

impl NameTable {
    pub(super) fn facts_of(&self, name: u32) -> &[Facts] {
        let name = name as usize;
        &self.facts[self.starts[name] as usize..self.starts[name + 1] as usize]
    }

    /// Returns the best names: those with the fewest typing errors first, then those whose words are exactly the wanted words,
    /// then those with the most games.
    pub(super) fn best<'a>(
        &'a self,
        wanted: &WantedWords,
        mistyped: bool,
        limit: usize,
        of_source: impl Fn(&&'a Facts) -> bool,
    ) -> Vec<(Reverse<u8>, bool, u64, Reverse<u32>)> {
        let mut best = Best::new(limit);
        let errors = self.index.errors(&wanted.words, mistyped);
        for (name, errors) in (0..)
            .zip(errors)
            .filter(|(_, errors)| *errors <= MOST_ERRORS)
        {
            let line = self.lines.get(name as usize);
            if line.is_some_and(|line| !line.is_main && !wanted.has_code) {
                continue;
            }
            let is_whole = wanted.whole == Some(self.whole[name as usize]);
            let facts = self.facts_of(name).iter().filter(&of_source);
            let games = facts.map(|facts| u64::from(facts.games)).sum();
            if games > 0 || !self.lines.is_empty() {
                best.offer((Reverse(errors), is_whole, games, Reverse(name)));
            }
        }
        best.into_sorted()
    }
}

/// Builds the table of the players or events of the sources. Spellings that filters treat as equal share an entry.
fn name_table(sources: &[OpenIndex], field: SuggestField) -> Result<NameTable> {
    let (mut words, mut all) = (Words::default(), Vec::new());
    for (source, number) in sources.iter().zip(0..) {
        let folded = hash_names(source)?;
        let mut counted = facts_by_number(source, number, field, &folded);
        source.for_each_name(|number, name| {
            let Some(facts) = counted.get_mut(number as usize) else {
                return;
            };
            let folded = folded[number as usize];
            if facts.games > 0 && folded > 0 {
                facts.number = number;
                let whole = words.add(all.len() as u32, name);
                all.push((folded, *facts, whole));
            }
        })?;
    }
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_unstable_by_key(|at| all[*at as usize].0);
    let mut name_of = vec![0; all.len()];
    let (mut starts, mut whole) = (Vec::new(), Vec::new());
    let mut facts = Vec::with_capacity(all.len());
    for same in order.chunk_by(|a, b| all[*a as usize].0 == all[*b as usize].0) {
        for at in same {
            name_of[*at as usize] = starts.len() as u32;
        }
        starts.push(facts.len() as u32);
        whole.push(all[same[0] as usize].2);
        facts.extend(same.iter().map(|at| all[*at as usize].1));
    }
    words.renumber(|at| name_of[at as usize]);
    let index = WordIndex::new(words, starts.len());
    starts.push(facts.len() as u32);
    Ok(NameTable {
        index,
        facts,
        starts,
        whole,
        lines: Vec::new(),
    })
}

/// Returns the facts of each name of a source, indexed by name number. `folded` has the hashes of the names.
fn facts_by_number(
    source: &OpenIndex,
    number: u32,
    field: SuggestField,
    folded: &[u64],
) -> Vec<Facts> {
    let games = &source.rows;
    let empty = Facts {
        source: number,
        ..Facts::default()
    };
    let mut counted = vec![empty; folded.len()];
    let mut add = |name: u32, date: u32| {
        if let Some(facts) = counted.get_mut(name as usize) {
            facts.add(1, date, date);
        }
    };
    for (id, date) in games.dates.iter().enumerate() {
        if !games.traits[id].counts() {
            continue;
        }
        match field {
            SuggestField::Event => add(games.events[id], *date),
            _ => {
                let [white, black] = games.players[id];
                add(white, *date);
                // One player may have two spellings.
                let name = |number: u32| folded.get(number as usize);
                if name(black) != name(white) {
                    add(black, *date);
                }
            }
        }
    }
    counted
}

impl Facts {
    /// Adds games and the range of their dates. A date without a year is ignored.
    fn add(&mut self, games: u32, first: u32, last: u32) {
        self.games = self.games.saturating_add(games);
        let is_known = |date: u32| date >> 9 > 0;
        if is_known(first) && (self.first == 0 || first < self.first) {
            self.first = first;
        }
        if is_known(last) {
            self.last = self.last.max(last);
        }
    }
}

/// Builds the table of openings. It has one line for each pair of a name and an ECO code: the line that most games reached.
fn opening_table(sources: &[OpenIndex]) -> Result<NameTable> {
    let mut lines = Vec::new();
    openings::for_each(|opening, moves, _| {
        let uci: Vec<String> = moves
            .iter()
            .map(|mv| BookMove::from(*mv).to_string())
            .collect();
        lines.push(NamedLine {
            eco: opening.eco,
            name: opening.name,
            uci: uci.join(","),
            is_main: false,
        });
    });
    let mut counted = Vec::new();
    for line in lines {
        let facts = facts_of_line(sources, &line.uci)?;
        let games: u64 = facts.iter().map(|facts| u64::from(facts.games)).sum();
        counted.push((line, games, facts));
    }
    // Sorts the lines of a name by games, descending, then by length.
    counted.sort_by_cached_key(|(line, games, _)| (line.name, Reverse(*games), line.uci.len()));
    let mut known = HashSet::new();
    counted.retain(|(line, ..)| known.insert((line.name, line.eco)));
    let mut table = NameTable {
        index: WordIndex::new(Words::default(), 0),
        facts: Vec::new(),
        starts: vec![0],
        whole: Vec::new(),
        lines: Vec::<NamedLine>::new(),
    };
    let mut words = Words::default();
    for (mut line, _, facts) in counted {
        let number = table.lines.len() as u32;
        table.whole.push(words.add(number, line.name));
        words.add(number, line.eco);
        line.is_main = table.lines.last().is_none_or(|last| last.name != line.name);
        table.lines.push(line);
        table.facts.extend(facts);
        table.starts.push(table.facts.len() as u32);
    }
    table.index = WordIndex::new(words, table.lines.len());
    Ok(table)
}

/// Returns, for each source, the facts about the games that reached the position after the moves `uci` and continued
/// from there.
fn facts_of_line(sources: &[OpenIndex], uci: &str) -> Result<Vec<Facts>> {
    let line = Line::parse(Variant::Standard, None, uci).expect("the table has legal moves");
    let mut query = Query::new(line, View::Lichess);
    (query.top_games, query.recent_games, query.history) = (0, Some(0), true);
    let mut all = Vec::new();
    for (source, number) in sources.iter().zip(0..) {
        let filters = SourceFilters::new(std::slice::from_ref(source), &query.filters)?;
        let mut facts = Facts {
            source: number,
            ..Facts::default()
        };
        for (month, results) in PositionTally::new(&filters, &query)?
            .months
            .into_iter()
            .flatten()
        {
            let games = u32::try_from(results.games()).unwrap_or(u32::MAX);
            facts.add(games, month << 5, month << 5);
        }
        if facts.games > 0 {
            all.push(facts);
        }
    }
    Ok(all)
}

//! Names of players, events and openings that a text may mean.

use std::{
    cmp::Reverse,
    collections::HashSet,
    str::FromStr,
    sync::{Mutex, OnceLock},
};

use thiserror::Error;

use super::{
    copies::folded_names,
    count::PositionTally,
    dates::text_of_number,
    line::Line,
    query::{Filters, Query, View},
    source::Source,
    source_filter::SourceFilters,
    sources::Explorer,
    words::{MOST_ERRORS, WordIndex, Words, hash_of, words},
};
use crate::{
    error::Result,
    index::explored::Best,
    openings,
    position::{BookMove, Variant},
    task,
};

/// How many names are suggested at most.
const MOST_SUGGESTED: usize = 50;

/// What names are of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuggestField {
    /// Players.
    Player,
    /// Events.
    Event,
    /// Openings of standard chess.
    Opening,
}

/// A name of no field.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("write player, event or opening")]
pub struct UnknownField;

impl FromStr for SuggestField {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<SuggestField, UnknownField> {
        match text {
            "player" => Ok(SuggestField::Player),
            "event" => Ok(SuggestField::Event),
            "opening" => Ok(SuggestField::Opening),
            _ => Err(UnknownField),
        }
    }
}

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

/// The tables of names, each made when it is first needed.
#[derive(Default)]
pub(super) struct Suggestions {
    tables: [OnceLock<NameTable>; 3],
    /// Held by who makes one.
    making: Mutex<()>,
}

/// Names, and what is known of each.
struct NameTable {
    index: WordIndex,
    /// What each source knows of the names, those of one name together.
    facts: Vec<Facts>,
    /// Where the facts of each name begin, and after those of the last their end.
    starts: Vec<u32>,
    /// The hash of the words of each name.
    whole: Vec<u64>,
    /// Of openings only.
    lines: Vec<NamedLine>,
}

/// What a source knows of a name.
#[derive(Copy, Clone, Debug)]
struct Facts {
    source: u32,
    /// The name's number in the source.
    number: u32,
    games: u32,
    /// The numbers of the first and the last known date, as [`Hot`](super::games::Hot) has them; 0 without one.
    first: u32,
    last: u32,
}

/// An opening and the moves to it.
#[derive(Clone, Debug)]
struct NamedLine {
    eco: &'static str,
    name: &'static str,
    uci: String,
    /// Whether no line of the name, with another code, has more games.
    is_main: bool,
}

impl Explorer {
    /// The names that a text may mean, at most `limit` and at most 50: those with words that begin as the text's do, one
    /// with no other words first, then those of most games; then, while there are fewer, those that it means with one or two typing errors. An
    /// empty text means any.
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
        self.check(&Filters {
            source: source.map(str::to_owned),
            ..Filters::default()
        })?;
        let table = self.names_of(field)?;
        let wanted = words(text);
        if wanted.is_empty() && !text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let limit = limit.min(MOST_SUGGESTED);
        let of_source = |facts: &&Facts| {
            source.is_none_or(|source| self.sources[facts.source as usize].name == source)
        };
        let wanted = Wanted {
            whole: (!wanted.is_empty()).then(|| hash_of(wanted.clone())),
            has_code: wanted.iter().any(|word| begins_code(word)),
            words: wanted,
        };
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
            .try_for_each(|field| self.names_of(field).map(|_| ()))
    }

    fn names_of(&self, field: SuggestField) -> Result<&NameTable> {
        let table = &self.suggestions.tables[field as usize];
        if table.get().is_none() {
            let _making = task::lock(&self.suggestions.making);
            if table.get().is_none() {
                let made = match field {
                    SuggestField::Opening => opening_table(&self.sources)?,
                    SuggestField::Player | SuggestField::Event => name_table(&self.sources, field)?,
                };
                return Ok(table.get_or_init(|| made));
            }
        }
        Ok(table.get().expect("it was made"))
    }
}

/// What a text asks for.
struct Wanted {
    words: Vec<String>,
    /// The hash of the words, if there are any.
    whole: Option<u64>,
    /// Whether a word is, or begins, the code of an opening.
    has_code: bool,
}

/// Whether a word is the code of an opening, or begins one: `b9`.
fn begins_code(word: &str) -> bool {
    matches!(word.as_bytes(), [b'a'..=b'e', digits @ ..]
        if matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit))
}

impl NameTable {
    fn facts_of(&self, name: u32) -> &[Facts] {
        let name = name as usize;
        &self.facts[self.starts[name] as usize..self.starts[name + 1] as usize]
    }

    /// The names with the fewest errors, of these those that are meant whole, then those with most games.
    fn best<'a>(
        &'a self,
        wanted: &Wanted,
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

/// The names of the players or the events of some sources. Names that filters do not tell apart are one.
fn name_table(sources: &[Source], field: SuggestField) -> Result<NameTable> {
    let (mut words, mut all) = (Words::default(), Vec::new());
    for (source, number) in sources.iter().zip(0..) {
        let folded = folded_names(source)?;
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

/// What a source knows of each of its names, whose hashes are `folded`.
fn facts_by_number(
    source: &Source,
    number: u32,
    field: SuggestField,
    folded: &[u64],
) -> Vec<Facts> {
    let games = &source.rows;
    let empty = Facts {
        source: number,
        number: 0,
        games: 0,
        first: 0,
        last: 0,
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
    /// Adds games between two dates. Those of unknown years are no dates.
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

/// The openings, each name once with each of its codes: with the moves to the position that most games reached.
fn opening_table(sources: &[Source]) -> Result<NameTable> {
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
    // Of one name those with most games first, then the shortest.
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

/// What the sources know of the position after some moves: the games that went on from there.
fn facts_of_line(sources: &[Source], uci: &str) -> Result<Vec<Facts>> {
    let line = Line::parse(Variant::Standard, None, uci).expect("the table has legal moves");
    let mut query = Query::new(line, View::Lichess);
    (query.top_games, query.recent_games, query.history) = (0, Some(0), true);
    let mut all = Vec::new();
    for (source, number) in sources.iter().zip(0..) {
        let filters = SourceFilters::new(std::slice::from_ref(source), &query.filters)?;
        let mut facts = Facts {
            source: number,
            number: 0,
            games: 0,
            first: 0,
            last: 0,
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

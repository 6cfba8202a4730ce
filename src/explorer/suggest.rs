//! Suggestions of names of players, events and openings for a text that the user is typing.

use std::{
    cmp::Reverse,
    collections::HashSet,
    sync::{Mutex, OnceLock},
};

use super::{
    dates::text_of_number,
    duplicate_groups::hash_names,
    filter::SourceFilters,
    line::Line,
    open_index::OpenIndex,
    query::{Query, View},
    sources::Sources,
    tally::PositionTally,
    words::{MAX_ERRORS, WordIndex, Words, hash_of, words},
};
use crate::{
    error::Result,
    index::{store::Best, store::game_rows::date_number},
    openings,
    pgn::Date,
    position::{BookMove, Variant},
    task,
};

/// The maximum number of suggestions that a search returns, even if the caller requests more.
const MAX_SUGGESTED: usize = 50;

/// The maximum number of words of a search text that are looked up, which limits how long a search takes. Further words
/// are ignored.
const MAX_WORDS: usize = 24;

/// A suggested name of a player, an event or an opening. It comes with the number of its games, and the dates of its
/// first and its last game.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Suggestion {
    /// The name, in the spelling that most games have.
    pub name: String,
    /// The number of games with the name.
    pub games: u64,
    /// The year and, if known, the month of the first game: `2006-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The year and, if known, the month of the last game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The ECO code of the opening; `None` for players and events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eco: Option<&'static str>,
    /// The moves of the opening in UCI notation, separated by commas; `None` for players and events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uci: Option<String>,
    /// The number of typing errors in the search text, compared with this name.
    pub distance: u8,
}

/// The kind of name to suggest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuggestField {
    /// Players.
    Player,
    /// Events.
    Event,
    /// Openings of standard chess.
    Opening,
}

/// The searchable tables of names: one for players, one for events and one for openings. Each table is built when
/// it is first needed.
#[derive(Default)]
pub(super) struct Suggestions {
    tables: [OnceLock<NameTable>; 3],
    /// Held while a table is built.
    making: Mutex<()>,
}

impl Suggestions {
    /// Returns at most `limit` names that the user may mean by `text`, the best matches first. If `source` is given,
    /// counts only the games of the source with this name. Implements [`Explorer::suggest`](super::Explorer::suggest).
    pub(super) fn find(
        &self,
        sources: &Sources,
        field: SuggestField,
        text: &str,
        limit: usize,
        source: Option<&str>,
    ) -> Result<Vec<Suggestion>> {
        sources.check_source(source)?;
        let table = self.table(&sources.indexes, field)?;
        let mut wanted = words(text);
        wanted.truncate(MAX_WORDS);
        if wanted.is_empty() && !text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let limit = limit.min(MAX_SUGGESTED);
        let of_source = |facts: &&NameGames| {
            source.is_none_or(|source| sources.indexes[facts.source as usize].name == source)
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
                            sources.indexes[facts.source as usize].name(facts.number)?
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

    /// Builds all tables, so that later searches need not wait for them.
    pub(super) fn warm_up(&self, sources: &[OpenIndex]) -> Result<()> {
        let fields = [
            SuggestField::Player,
            SuggestField::Event,
            SuggestField::Opening,
        ];
        fields
            .into_iter()
            .try_for_each(|field| self.table(sources, field).map(|_| ()))
    }

    /// Returns the table of the names that `field` selects: players, events or openings. The first call builds the
    /// table, and other threads wait until it is built.
    fn table(&self, sources: &[OpenIndex], field: SuggestField) -> Result<&NameTable> {
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

/// A table of searchable names, with the number of games of each name in each source. A source is an index of the
/// explorer.
struct NameTable {
    index: WordIndex,
    /// The facts about each name, one element for each source that contains the name. The elements of a name are
    /// adjacent.
    facts: Vec<NameGames>,
    /// The index in `facts` of the first element of each name, followed by the length of `facts`.
    starts: Vec<u32>,
    /// The hash of the words of each name.
    whole: Vec<u64>,
    /// The moves of each opening; empty in a table of players or events.
    lines: Vec<NamedLine>,
}

/// The number of games that contain one name in one source (an index of the explorer), and the dates of the first and
/// the last of these games.
#[derive(Copy, Clone, Default, Debug)]
struct NameGames {
    source: u32,
    /// The name's number in the source.
    number: u32,
    games: u32,
    /// The first and the last known date, as date numbers (see [`super::dates`]). 0 if no date is known.
    first: u32,
    last: u32,
}

/// An opening with its ECO code and the moves that lead to it.
#[derive(Clone, Debug)]
struct NamedLine {
    eco: &'static str,
    name: &'static str,
    uci: String,
    /// Whether this line has the most games of all lines with the same name, which may have different ECO codes.
    is_main: bool,
}

/// The words of a search text, with their hash and with a flag that says whether one of them may be an ECO code.
struct WantedWords {
    words: Vec<String>,
    /// The hash of the words, if there are any.
    whole: Option<u64>,
    /// Whether one of the words is an ECO code or the beginning of one.
    has_code: bool,
}

impl WantedWords {
    fn new(words: Vec<String>) -> WantedWords {
        WantedWords {
            whole: (!words.is_empty()).then(|| hash_of(words.clone())),
            has_code: words.iter().any(|word| begins_code(word)),
            words,
        }
    }
}

/// Returns `true` if `word` is an ECO code in lower case, or the beginning of one, such as `b9`.
fn begins_code(word: &str) -> bool {
    matches!(word.as_bytes(), [b'a'..=b'e', digits @ ..]
        if matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit))
}

impl NameTable {
    fn facts_of(&self, name: u32) -> &[NameGames] {
        let name = name as usize;
        &self.facts[self.starts[name] as usize..self.starts[name + 1] as usize]
    }

    /// Returns the best matches for the words `wanted`, at most `limit` of them, the best first. They are sorted by
    /// number of typing errors, then by whether the name consists of exactly these words, then by number of games.
    /// `mistyped` says whether names with typing errors match, too. Only games of sources for which `of_source` returns
    /// `true` are counted.
    ///
    /// Each match is a tuple: the number of typing errors, whether the name consists of exactly these words, the number
    /// of games, and the index of the name in the table.
    fn best<'a>(
        &'a self,
        wanted: &WantedWords,
        mistyped: bool,
        limit: usize,
        of_source: impl Fn(&&'a NameGames) -> bool,
    ) -> Vec<(Reverse<u8>, bool, u64, Reverse<u32>)> {
        let mut best = Best::new(limit);
        let errors = self.index.errors(&wanted.words, mistyped);
        for (name, errors) in (0..)
            .zip(errors)
            .filter(|(_, errors)| *errors <= MAX_ERRORS)
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

/// Builds the table of all names of players or events in `sources`. Names that differ only in case share an
/// entry.
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

/// Counts the games that contain each name of the index `source`, and finds the dates of the first and the last of
/// these games. The result is indexed by name number.
///
/// `field` selects names of players or of events. `number` is the index of `source` in the explorer's list of sources.
/// `folded` contains the hash of each name from [`hash_names`], indexed by name number. If the two players of a game
/// have names with equal hashes, the game is counted for only one of them.
fn facts_by_number(
    source: &OpenIndex,
    number: u32,
    field: SuggestField,
    folded: &[u64],
) -> Vec<NameGames> {
    let games = &source.rows;
    let empty = NameGames {
        source: number,
        ..NameGames::default()
    };
    let mut counted = vec![empty; folded.len()];
    let mut add = |name: u32, date: u32| {
        if let Some(facts) = counted.get_mut(name as usize) {
            facts.add(1, date, date);
        }
    };
    for (id, date) in games.dates.iter().enumerate() {
        if !games.traits[id].is_indexed() {
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

impl NameGames {
    /// Extends this entry by `games` further games. `first` and `last` are the date numbers of the first and the last
    /// of these games. A date without a year is ignored.
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

/// Builds the table of opening names. It has one entry for each pair of a name and an ECO code. If several lines lead
/// to openings with the same name and code, the entry contains the line that most games reached.
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
    // Sorts the lines with the same name by number of games in descending order, then by length.
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

/// Counts the games that reached the position after the moves `uci` and continued from there, and finds the dates of
/// the first and the last of these games. `uci` contains moves in UCI notation, separated by commas. Returns an element
/// for each of `sources` that contains such games.
fn facts_of_line(sources: &[OpenIndex], uci: &str) -> Result<Vec<NameGames>> {
    let line = Line::parse(Variant::Standard, None, uci).expect("the table has legal moves");
    let mut query = Query::new(line, View::Lichess);
    (query.top_games, query.recent_games, query.history) = (0, Some(0), true);
    let mut all = Vec::new();
    for (source, number) in sources.iter().zip(0..) {
        let filters = SourceFilters::new(std::slice::from_ref(source), &query.filters)?;
        let mut facts = NameGames {
            source: number,
            ..NameGames::default()
        };
        for (month, results) in PositionTally::new(&filters, &query)?
            .months
            .into_iter()
            .flatten()
        {
            let games = u32::try_from(results.games()).unwrap_or(u32::MAX);
            let date = date_number(Date::new(month.year(), month.month(), 0));
            facts.add(games, date, date);
        }
        if facts.games > 0 {
            all.push(facts);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::Explorer, *};
    use crate::{MakeBook, pgn::Input};

    #[test]
    fn only_the_first_words_of_a_text_are_looked_up() {
        let dir = tempfile::tempdir().unwrap();
        let [pgn, index] = ["games.pgn", "games.idx"].map(|name| dir.path().join(name));
        fs::write(&pgn, "[White \"Tal, Mikhail\"]\n\n1. e4 *\n").unwrap();
        let make = MakeBook::new([Input::file(&pgn)]);
        make.explorer(&index).run().unwrap();
        let explorer = Explorer::open([("games".to_owned(), index)]).unwrap();
        let found = |known: usize| {
            let text = format!("{}zzzz", "tal ".repeat(known));
            let found = explorer.suggest(SuggestField::Player, &text, 5, None);
            found.unwrap().len()
        };
        assert_eq!((found(MAX_WORDS - 1), found(MAX_WORDS)), (0, 1));
    }
}

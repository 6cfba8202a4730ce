//! Suggests names of players, events and openings for a text that the user is typing.
//!
//! [`WordIndex`] finds texts by their words. A search word matches every word that begins with it, and optionally words
//! with typing errors.

use std::{
    cmp::Reverse,
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, OnceLock},
};

use fst::{IntoStreamer, Map, MapBuilder, Streamer};
use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder};
use rayon::prelude::*;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{
    duplicate_groups::hash_names,
    filter::SourceFilters,
    open_index::{OpenIndex, text_of_number},
    query::{Line, Query, View},
    sources::Sources,
    tally::PositionTally,
};
use crate::{
    chess::position::{BookMove, Variant},
    error::Result,
    formats::explorer_index::{Best, game_rows::date_number},
    games::{openings, pgn::Date},
    task,
};

/// The maximum number of suggestions that a search returns, even if the caller requests more.
const MAX_SUGGESTED: usize = 50;

/// The maximum number of words of a search text that are looked up, which limits how long a search takes. Further words
/// are ignored.
const MAX_WORDS: usize = 24;

/// A suggested name of a player, an event or an opening, with the number of its games and the dates of the first and
/// the last of them.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// A kind of name that can be suggested.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuggestField {
    /// Names of players.
    Player,
    /// Names of events.
    Event,
    /// Names of openings of standard chess.
    Opening,
}

/// The tables in which names are searched: one each for players, events and openings. A table is built when it is first
/// needed.
#[derive(Default)]
pub(super) struct Suggestions {
    tables: [OnceLock<NameTable>; 3],
    /// Locked while a table is built, so that only one thread builds it.
    making: Mutex<()>,
}

impl Suggestions {
    /// Returns at most `limit` names that match `text`, the best matches first. If `source` is given, counts only
    /// the games of the source with this name. Implements [`Explorer::suggest`](super::Explorer::suggest).
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

    /// Builds all tables, so that later searches do not have to.
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

/// A table of names that can be searched, with the number of games of each name in each source (an index of the
/// explorer).
struct NameTable {
    index: WordIndex,
    /// The facts about each name, with one element for each source that contains the name. The elements for the same
    /// name are adjacent.
    facts: Vec<NameGames>,
    /// The index in `facts` of the first element for each name, followed by the length of `facts`.
    starts: Vec<u32>,
    /// The hash of all words of each name.
    whole: Vec<u64>,
    /// The moves of each opening. Empty in a table of players or events.
    lines: Vec<NamedLine>,
}

/// The number of games that contain one name in one source (an index of the explorer), and the dates of the first and
/// the last of these games.
#[derive(Copy, Clone, Default, Debug)]
struct NameGames {
    source: u32,
    /// The number by which the source stores the name.
    number: u32,
    games: u32,
    /// The date number of the first game with a known date (see [`super::open_index`]), or 0 if no date is known.
    first: u32,
    last: u32,
}

/// An opening with its ECO code and the moves that lead to it.
#[derive(Clone, Debug)]
struct NamedLine {
    eco: &'static str,
    name: &'static str,
    uci: String,
    /// Whether more games reached this line than any other line with the same name. Lines with the same name may have
    /// different ECO codes.
    is_main: bool,
}

/// The words of a search text, prepared for a search.
struct WantedWords {
    words: Vec<String>,
    /// The hash of all words, or `None` if there are no words.
    whole: Option<u64>,
    /// Whether at least one of the words is an ECO code or the beginning of one.
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

    /// Returns the best matches for the words `wanted`, at most `limit` of them, the best first. Matches are sorted by
    /// number of typing errors, then by whether the name consists of exactly these words, then by number of games. A
    /// match is a tuple of these three values and the index of the name in the table.
    ///
    /// `mistyped` says whether names with typing errors match, too. Only games of sources for which `of_source` returns
    /// `true` are counted.
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

/// Builds the table of all names of players or events in `sources`, depending on `field`. Names that differ only in
/// case share an entry.
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
/// to the same name and code, the entry contains the line that most games reached.
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
/// the first and the last of these games. `uci` contains moves in UCI notation, separated by commas. Returns one
/// element for each of the `sources` that contain such games.
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

/// The maximum number of letters of a string that are indexed, which limits the memory for long strings. Further
/// letters are ignored.
const MAX_LETTERS: usize = 256;
/// The maximum number of letters of a string after Unicode's compatibility decomposition. The decomposition can turn
/// one letter into up to 18 letters, so [`MAX_LETTERS`] alone does not limit the length enough.
const MAX_DECOMPOSED_LETTERS: usize = 2 * MAX_LETTERS;
/// The maximum number of letters of a word that are indexed, which limits the time for comparing words. Further letters
/// are ignored.
const MAX_WORD_LETTERS: usize = 32;

/// The number of words of a search that are looked up in parallel. It limits the memory, because each of these words
/// takes one byte for every indexed string.
const PARALLEL_WORDS: usize = 8;

/// The maximum number of typing errors with which an indexed string still matches a search.
const MAX_ERRORS: u8 = 2;

/// The value that stands for the number of typing errors in a string that does not match.
const NO_MATCH: u8 = u8::MAX;

/// Splits `text` into words, and converts them to lower case without accents. Apostrophes are removed, so that `D'Arc`
/// is one word.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let letters = text.chars().take(MAX_LETTERS);
    let letters =
        letters.filter(|letter| !matches!(letter, '\'' | '’' | '‘' | 'ʼ' | 'ʻ' | '´' | '`'));
    for letter in letters
        .nfkd()
        .take(MAX_DECOMPOSED_LETTERS)
        .flat_map(char::to_lowercase)
    {
        match letter {
            letter if is_combining_mark(letter) => {}
            // Unicode does not decompose these letters.
            'ø' => plain.push('o'),
            'ł' => plain.push('l'),
            'đ' => plain.push('d'),
            'ı' => plain.push('i'),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'ß' => plain.push_str("ss"),
            'ς' => plain.push('σ'),
            letter if letter.is_alphanumeric() => plain.push(letter),
            _ => plain.push(' '),
        }
    }
    let words = plain.split_whitespace();
    words
        .map(|word| word.chars().take(MAX_WORD_LETTERS).collect())
        .collect()
}

/// Returns a hash of `words` that does not depend on their order.
pub(super) fn hash_of(mut words: Vec<String>) -> u64 {
    words.sort_unstable();
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// The words from which a [`WordIndex`] is built, each with the number of the string that contains it.
#[derive(Default)]
pub(super) struct Words {
    letters: String,
    /// The offset and the length of each word in `letters`, and the number of the string that contains it.
    places: Vec<(usize, u8, u32)>,
}

impl Words {
    /// Adds the words of the string `text`, and returns the [hash](hash_of) of these words. A search that finds the
    /// string will return `number`. Several strings may have the same number.
    pub(super) fn add(&mut self, number: u32, text: &str) -> u64 {
        let words = words(text);
        for word in &words {
            let place = (self.letters.len(), word.len() as u8, number);
            self.places.push(place);
            self.letters.push_str(word);
        }
        hash_of(words)
    }

    /// Replaces the number of each added string. `number` receives the old number and returns the new one.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for place in &mut self.places {
            place.2 = number(place.2);
        }
    }

    fn word(&self, (start, len, _): (usize, u8, u32)) -> &str {
        &self.letters[start..start + usize::from(len)]
    }
}

/// A search index that maps words to the strings that contain them.
pub(super) struct WordIndex {
    /// Maps each word to its number. Words are numbered in alphabetical order.
    words: Map<Vec<u8>>,
    /// The index in `texts` of the first string that contains each word, followed by the length of `texts`.
    starts: Vec<u32>,
    /// The numbers of the strings that contain each word, concatenated for all words.
    texts: Vec<u32>,
    count: usize,
}

impl WordIndex {
    /// Builds an index from `words`. `count` must be greater than the number of every string in `words`.
    pub(super) fn new(mut words: Words, count: usize) -> WordIndex {
        let mut places = std::mem::take(&mut words.places);
        places.par_sort_unstable_by(|a, b| (words.word(*a), a.2).cmp(&(words.word(*b), b.2)));
        let mut map = MapBuilder::memory();
        let (mut starts, mut texts) = (Vec::new(), Vec::<u32>::with_capacity(places.len()));
        for same in places.chunk_by(|a, b| words.word(*a) == words.word(*b)) {
            map.insert(words.word(same[0]), starts.len() as u64)
                .expect("the words are in order, and memory takes them");
            starts.push(texts.len() as u32);
            let mut last = None;
            let numbers = same.iter().map(|place| place.2);
            texts.extend(numbers.filter(|text| last.replace(*text) != Some(*text)));
        }
        starts.push(texts.len() as u32);
        texts.shrink_to_fit();
        WordIndex {
            words: map.into_map(),
            starts,
            texts,
            count,
        }
    }

    /// Searches for the words `wanted`. Returns the number of typing errors for each indexed string, in the order of
    /// the numbers of the strings. If the number of errors is greater than [`MAX_ERRORS`], the string does not match.
    ///
    /// A string matches if each word in `wanted` is the beginning of one of the words in the string. If `mistyped` is
    /// `true`, words also match with typing errors. In this case, a word such as `magnus` also matches its initial in
    /// `Carlsen,M`.
    pub(super) fn errors(&self, wanted: &[String], mistyped: bool) -> Vec<u8> {
        if !mistyped {
            return self.sum_errors(wanted, |word| self.begun_with(word));
        }
        let mut right = vec![0u16; self.count];
        for words in wanted.chunks(PARALLEL_WORDS) {
            let begun: Vec<Vec<u8>> = words.par_iter().map(|word| self.begun_with(word)).collect();
            for of_word in begun {
                let texts = right.iter_mut().zip(of_word);
                texts.for_each(|(right, errors)| *right += u16::from(errors == 0));
            }
        }
        self.sum_errors(wanted, |word| {
            let mut of_word = self.begun_with(word);
            // Two errors in this word are possible only for a text that matches all other words without errors.
            let mut texts = right.iter().zip(&of_word);
            let may_have_all = texts.any(|(right, errors)| {
                usize::from(*right) + usize::from(*errors > 0) == wanted.len()
            });
            let most = if may_have_all { MAX_ERRORS } else { 1 };
            self.mark_mistyped(word, most, &mut of_word);
            if wanted.len() > 1 {
                self.mark_initials(word, &mut of_word);
            }
            of_word
        })
    }

    /// Adds up the numbers of typing errors of all `words` for each indexed string. `of_word` searches for one word,
    /// and returns the number of typing errors for each string. Both results are indexed by the number of the string.
    fn sum_errors(&self, words: &[String], of_word: impl Fn(&str) -> Vec<u8> + Sync) -> Vec<u8> {
        let mut sums = vec![0u8; self.count];
        for words in words.chunks(PARALLEL_WORDS) {
            let errors: Vec<Vec<u8>> = words.par_iter().map(|word| of_word(word)).collect();
            for of_word in errors {
                let texts = sums.iter_mut().zip(of_word);
                texts.for_each(|(sum, errors)| *sum = sum.saturating_add(errors));
            }
        }
        sums
    }

    /// Searches for a word that begins with `letters`. Returns, for each indexed string, 0 if the string contains such
    /// a word and [`NO_MATCH`] otherwise.
    fn begun_with(&self, letters: &str) -> Vec<u8> {
        let end = [letters.as_bytes(), &[0xff]].concat();
        let mut of_word = vec![NO_MATCH; self.count];
        for text in &self.texts[self.first_offset(letters.as_bytes())..self.first_offset(&end)] {
            of_word[*text as usize] = 0;
        }
        of_word
    }

    /// Finds the first word of the index that is equal to `letters` or follows it in alphabetical order. Returns the
    /// index in the field `texts` at which the strings that contain this word begin.
    fn first_offset(&self, letters: &[u8]) -> usize {
        let mut from = self.words.range().ge(letters).into_stream();
        match from.next() {
            Some((_, number)) => self.starts[number as usize] as usize,
            None => self.texts.len(),
        }
    }

    /// Finds the strings that contain the initial of `word` as a separate word, such as `M` in `Carlsen,M`. Sets their
    /// numbers of typing errors in `of_word` to 1, unless the number is already smaller. `of_word` is indexed by the
    /// number of the string.
    fn mark_initials(&self, word: &str, of_word: &mut [u8]) {
        let Some(first) = word.chars().next().filter(|first| first.is_alphabetic()) else {
            return;
        };
        let initial = first.to_string();
        if let Some(number) = self.words.get(&initial) {
            let number = number as usize;
            let texts = self.starts[number] as usize..self.starts[number + 1] as usize;
            for text in &self.texts[texts] {
                let text = &mut of_word[*text as usize];
                *text = 1.min(*text);
            }
        }
    }

    /// Finds the strings that contain a word similar to `word`. Two words are similar if at most `max_errors` letters
    /// were omitted, added, replaced or swapped. Sets the number of typing errors of each such string in `of_word`,
    /// unless the number is already smaller. `of_word` is indexed by the number of the string.
    fn mark_mistyped(&self, word: &str, max_errors: u8, of_word: &mut [u8]) {
        static BUILDERS: [OnceLock<LevenshteinAutomatonBuilder>; 2] =
            [const { OnceLock::new() }; 2];
        // A number or an ECO code with a different digit is a different number or code.
        if word.chars().skip(1).all(|letter| letter.is_ascii_digit()) {
            return;
        }
        // If two errors were allowed, nearly every word of four letters would match.
        let max_errors = match word.chars().count() {
            0..3 => return,
            3..5 => 1,
            _ => max_errors,
        };
        let builder = BUILDERS[usize::from(max_errors) - 1]
            .get_or_init(|| LevenshteinAutomatonBuilder::new(max_errors, true));
        let dfa = builder.build_dfa(word);
        let mut found = self.words.search_with_state(&dfa).into_stream();
        while let Some((_, number, state)) = found.next() {
            let Distance::Exact(errors) = dfa.distance(state) else {
                continue;
            };
            let number = number as usize;
            let texts = self.starts[number] as usize..self.starts[number + 1] as usize;
            for text in &self.texts[texts] {
                let text = &mut of_word[*text as usize];
                *text = errors.min(*text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::Explorer, *};
    use crate::{MakeBook, games::pgn::Input};

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

    #[test]
    fn words_have_no_case_and_no_accents() {
        let of = |text| words(text).join(" ");
        assert_eq!(of("Müller-Łódź, J.Ø."), "muller lodz j o");
        assert_eq!(of("Mu\u{308}ller"), "muller");
        assert_eq!(of("Σίσυφος"), of("ΣΊΣΥΦΟΣ"));
        assert_eq!(of("King's  Indian\tİstanbul"), "kings indian istanbul");
        assert_eq!(of("Алехин"), "алехин");
        assert_eq!(of("?!"), "");
        assert_eq!(of("D'A D’A DʼA D´A D`A"), "da da da da da");
        assert_eq!(words(&"a ".repeat(999)).len(), MAX_LETTERS / 2);
        // A letter that decomposes into 18, with blanks among them.
        assert!(words(&"\u{fdfa}".repeat(999)).len() <= MAX_DECOMPOSED_LETTERS / 2);
        assert_eq!(words(&"ü".repeat(99))[0].len(), MAX_WORD_LETTERS);
    }

    #[test]
    fn initials_are_read_as_names() {
        let mut words = Words::default();
        for (number, name) in (0..).zip(["Carlsen,M", "Carlsen,H", "Tal,M", "Carlsen,Magnus"]) {
            words.add(number, name);
        }
        let index = WordIndex::new(words, 4);
        let errors = |text, mistyped| index.errors(&super::words(text), mistyped);
        let no = NO_MATCH;
        assert_eq!(errors("Magnus Carlsen", false), [no, no, no, 0]);
        let found = errors("Magnus Carlsen", true);
        assert_eq!((found[0], found[3]), (1, 0));
        assert!(found[1] > MAX_ERRORS && found[2] > MAX_ERRORS, "{found:?}");
        assert!(errors("Magnus", true)[0] > MAX_ERRORS);
    }

    #[test]
    fn texts_are_found_by_each_word() {
        let texts = [
            "Carlsen, Magnus",
            "Carlsen, Henrik",
            "Karlsson, Magnus",
            "Carlsen Magnus Magnus",
            "Tal, Mikhail",
            "8th London Chess Classic Super Rapidplay Open 2016",
        ];
        let mut words = Words::default();
        for (number, text) in (0..).zip(texts) {
            words.add(number, text);
        }
        let index = WordIndex::new(words, texts.len());
        let errors = |text, mistyped| {
            let wanted = super::words(text);
            let errors = index.errors(&wanted, mistyped).into_iter().enumerate();
            errors
                .filter(|(_, errors)| *errors <= MAX_ERRORS)
                .collect::<Vec<_>>()
        };
        for text in ["magnus carlsen", "Carlsen, M", "carls magn"] {
            assert_eq!(errors(text, false), [(0, 0), (3, 0)], "{text}");
        }
        assert_eq!(errors("carlsne", false), []);
        assert_eq!(errors("carlsne", true), [(0, 1), (1, 1), (3, 1)]);
        assert_eq!(errors("karlsen mangus", true), [(0, 2), (3, 2)]);
        assert_eq!(errors("karlsne magnus", true), [(0, 2), (3, 2)]);
        assert_eq!(errors("karlsne mangus", true), []);
        assert_eq!(errors("tla", true), [(4, 1)]);
        assert_eq!(errors("", false).len(), texts.len());
        assert_eq!(errors("zz", true), []);
        // All search words are required, and a number must match without errors.
        let event = |text| errors(text, true);
        for text in [
            "london 2016",
            "8th lnodon rapidplay open 2016",
            "classic super rapidplay opne 2016 chess london",
        ] {
            assert_eq!(event(text).len(), 1, "{text}");
        }
        assert_eq!(event("london 2015"), []);
        assert_eq!(
            event("8th London Chess Classic Super Rapidplay Open Wijk"),
            []
        );
    }
}

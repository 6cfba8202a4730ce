//! Compares the names of players in filters with the names in games: collects the names that match and, if there are
//! none, similar names to suggest.

use std::{cmp::Reverse, hash::BuildHasher};

use memchr::memchr2_iter;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::{NameMatch, normalized, tag_text};
use crate::{error::plural, provenance::shortened};

/// The maximum number of similar names that a message about an unknown name suggests.
const MAX_SUGGESTIONS: usize = 3;
/// The minimum similarity of an unknown name and a name that is suggested for it, in thousandths. The function
/// [`likeness`] computes it.
const MIN_LIKENESS: u32 = 600;
/// The minimum similarity, in thousandths, of two names that may be spellings of the same name.
const SPELLING_LIKENESS: u32 = 900;
/// The similarity of a word and its first letter, such as that of a first name and its initial.
const INITIAL_LIKENESS: f64 = 0.9;
/// The maximum number of letters of a name that are compared. It limits how long a comparison takes, because this time
/// grows with the square of the length.
const MAX_COMPARED_LETTERS: usize = 64;
/// The maximum number of different names for which [`PlayerNames`] and [`SpellingCounts`] count games. Together with [`MAX_NAME_BYTES`], it
/// limits the memory for the names to about 3 MB.
const MAX_COUNTED: usize = 10_000;
/// The maximum number of names that [`PlayerNames::matched`] returns.
const MAX_MATCHED: usize = 100;
/// The maximum length in bytes of a name that is kept for a message. A PGN file may contain names of several megabytes.
const MAX_NAME_BYTES: usize = 200;
/// The maximum number of comparisons in a search for names that are similar to a name in a filter. Each comparison
/// compares a name in a game with a name in the filter. The limit keeps the time of the search below about two seconds,
/// and the memory for the hashes of the names below about 16 MiB.
const MAX_COMPARISONS: usize = 1_000_000;
/// The maximum number of names that the message from [`PlayerNames::note`] lists.
const MAX_LISTED: usize = 4;

/// Returns the end of a message about an unknown name, such as `: did you mean "Tal"?`. Returns an empty string
/// if `names` is empty.
pub(crate) fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(": did you mean \"{}\"?", names.join("\" or \"")),
    }
}

/// A collection of the names that are most similar to an unknown name, for a message that suggests them.
#[derive(Debug)]
pub(crate) struct NearestNames {
    wanted: String,
    best: Vec<SimilarName>,
}

/// A name that is similar to an unknown name.
#[derive(Debug)]
struct SimilarName {
    likeness: u32,
    games: u64,
    /// The edit distance between the two whole names.
    distance: usize,
    name: String,
}

impl SimilarName {
    /// Returns a sort key by which the most similar names come first. Possible spellings of the unknown name are taken as
    /// equally similar. Among them, the name with the most games comes first.
    fn rank(&self) -> (Reverse<u32>, Reverse<u64>, Reverse<u32>, usize, String) {
        (
            Reverse(self.likeness.min(SPELLING_LIKENESS)),
            Reverse(self.games),
            Reverse(self.likeness),
            self.distance,
            self.name.clone(),
        )
    }
}

impl NearestNames {
    pub(crate) fn new(wanted: &str) -> NearestNames {
        NearestNames {
            wanted: beginning(&normalized(wanted)).to_owned(),
            best: Vec::new(),
        }
    }

    /// Adds `name`, which occurs in `games` games, if it is one of the most similar names so far.
    pub(crate) fn offer(&mut self, name: &str, games: u64) {
        let compared = normalized(beginning(name));
        let likeness = likeness(&self.wanted, &compared);
        if likeness < MIN_LIKENESS {
            return;
        }
        let distance = strsim::damerau_levenshtein(&self.wanted, &compared);
        let name = shown(name);
        match self.best.iter_mut().find(|known| known.name == name) {
            Some(known) => known.games += games,
            None => self.best.push(SimilarName {
                likeness,
                games,
                distance,
                name,
            }),
        }
        self.best.sort_by_cached_key(SimilarName::rank);
        self.best.truncate(MAX_SUGGESTIONS);
    }

    pub(crate) fn names(self) -> Vec<String> {
        self.best.into_iter().map(|similar| similar.name).collect()
    }
}

/// Returns `name`, shortened to [`MAX_NAME_BYTES`] bytes for a message.
fn shown(name: &str) -> String {
    shortened(name, MAX_NAME_BYTES)
}

/// Returns the prefix of `name` that is compared: its first [`MAX_COMPARED_LETTERS`] letters.
fn beginning(name: &str) -> &str {
    let end = name.char_indices().nth(MAX_COMPARED_LETTERS);
    end.map_or(name, |(end, _)| &name[..end])
}

/// Returns the similarity of two names in thousandths: the mean similarity of each word in `wanted` and the most
/// similar word in `name`. Only the first [`MAX_COMPARED_LETTERS`] letters are compared.
fn likeness(wanted: &str, name: &str) -> u32 {
    let (wanted, name) = (beginning(wanted), beginning(name));
    // An apostrophe belongs to its word: the end of "King's" is not an initial.
    let words = |text| {
        str::split(text, |c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
    };
    // If the names have no word in common, such as the surname, an equal initial does not make them similar.
    let has_equal_word =
        words(wanted).any(|word| word.len() > 1 && words(name).any(|other| other == word));
    let best = |word: &str| {
        words(name).fold(0.0, |best: f64, other| {
            // The edit distance is at least the difference between the lengths. This upper bound on the similarity
            // often makes the comparison unnecessary.
            let (letters, others) = (word.chars().count(), other.chars().count());
            let bound = letters.min(others) as f64 / letters.max(others) as f64;
            let is_initial = has_equal_word
                && letters.min(others) == 1
                && (word.starts_with(other) || other.starts_with(word));
            match bound > best {
                _ if is_initial => best.max(INITIAL_LIKENESS).max(bound),
                true => best.max(strsim::normalized_damerau_levenshtein(word, other)),
                false => best,
            }
        })
    };
    let of_words: Vec<f64> = words(wanted).map(best).collect();
    let mean = of_words.iter().sum::<f64>() / of_words.len().max(1) as f64;
    (1000.0 * mean) as u32
}

/// Returns the last name in `name`, a normalized name, or `None` if `name` is a single word.
fn last_name(name: &str) -> Option<&str> {
    match name.split_once(',') {
        Some((last_name, _)) => Some(last_name),
        None => name.rsplit_once(' ').map(|(_, last_name)| last_name),
    }
}

/// The names in a filter, for a search for other spellings of these names.
pub(crate) struct WantedSpellings {
    /// The normalized names.
    names: Vec<String>,
    how: NameMatch,
}

impl WantedSpellings {
    pub(crate) fn new(names: &[String], how: NameMatch) -> WantedSpellings {
        WantedSpellings {
            names: names.iter().map(|name| normalized(name)).collect(),
            how,
        }
    }

    /// Returns `true` if `name` does not match the filter, but may be another spelling of a name in it: it contains the
    /// same last name, and for each further word a similar word or its initial, as in `Carlsen,M` for
    /// `Carlsen, Magnus`. A name that consists of a single word has no other spellings.
    pub(crate) fn may_include(&self, name: &str) -> bool {
        let name = normalized(beginning(name));
        let is_similar = |wanted: &String| {
            last_name(wanted).is_some_and(|last_name| name.contains(last_name))
                && likeness(wanted, &name) >= SPELLING_LIKENESS
        };
        self.names.iter().any(is_similar) && !self.matches(&name)
    }

    /// Returns `true` if `name`, which must be normalized, matches the filter.
    fn matches(&self, name: &str) -> bool {
        self.names
            .iter()
            .any(|wanted| self.how.matches(name, wanted))
    }

    /// Returns `true` if `name` matches the filter or may be another spelling of a name in it.
    fn includes(&self, name: &str) -> bool {
        self.matches(&normalized(name)) || self.may_include(name)
    }
}

/// A collection of the names of players, or of events, in games that match a name in a filter. Until the first match,
/// it also collects names that are similar to a name in the filter, unless this name occurs in a game. The search for
/// similar names takes at most [`MAX_COMPARISONS`] comparisons.
#[derive(Debug)]
pub(crate) struct PlayerNames {
    /// The names in the filter.
    wanted: Vec<String>,
    how: NameMatch,
    /// The matched names. The key is the hash of the folded name. The value is one spelling of the name, as messages
    /// show it, and the number of games with the name.
    matched: FxHashMap<u64, (String, u64)>,
    /// The similar names of each name in the filter, or `None` if the name occurs in a game.
    nearest: Vec<Option<NearestNames>>,
    /// The hashes of the names that were compared with the names in the filter.
    seen: FxHashSet<u64>,
}

impl PlayerNames {
    /// Creates a collection without matches for the names `wanted` of a filter. `how` says how the filter compares
    /// names.
    pub(crate) fn new(wanted: Vec<String>, how: NameMatch) -> PlayerNames {
        PlayerNames {
            how,
            nearest: wanted
                .iter()
                .map(|name| Some(NearestNames::new(name)))
                .collect(),
            wanted,
            matched: FxHashMap::default(),
            seen: FxHashSet::default(),
        }
    }

    /// Adds `games` games of the player `name`, whose name matches the filter. Ignores further names if the collection
    /// already contains [`MAX_COUNTED`] names.
    pub(crate) fn add_matched(&mut self, name: &str, games: u64) {
        let key = FxBuildHasher.hash_one(normalized(name));
        if self.matched.len() < MAX_COUNTED || self.matched.contains_key(&key) {
            let name = shown(name);
            let (spelling, sum) = self.matched.entry(key).or_insert_with(|| (name.clone(), 0));
            if name < *spelling {
                *spelling = name;
            }
            *sum += games;
        }
    }

    /// Adds the name of a player that matches the filter, in a game that does not pass all filters. Another name is
    /// then not suggested for it.
    pub(crate) fn add_known(&mut self, name: &str) {
        let name = normalized(name);
        for (wanted, nearest) in self.wanted.iter().zip(&mut self.nearest) {
            if self.how.matches(&name, &normalized(wanted)) {
                *nearest = None;
            }
        }
    }

    /// Adds the name of a player that does not match the filter, if it is similar to a name in the filter. Has no
    /// effect after the first match, or after [`MAX_COMPARISONS`] comparisons.
    pub(crate) fn add_other(&mut self, name: &str) {
        let is_full = (self.seen.len() + 1) * self.wanted.len() > MAX_COMPARISONS;
        if self.matched.is_empty() && !is_full && self.seen.insert(FxBuildHasher.hash_one(name)) {
            let nearest = self.nearest.iter_mut().flatten();
            nearest.for_each(|nearest| nearest.offer(name, 0));
        }
    }

    /// Returns the matched names in descending order of their numbers of games, at most [`MAX_MATCHED`] of them.
    pub(crate) fn matched(&self) -> Vec<String> {
        let names = self.most_frequent(MAX_MATCHED).into_iter();
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the matched names with the most games, at most `most` of them. Each name comes with its number of games.
    fn most_frequent(&self, most: usize) -> Vec<&(String, u64)> {
        let mut names = Vec::from_iter(self.matched.values());
        names.sort_by_cached_key(|(name, games)| (Reverse(*games), normalized(name)));
        names.truncate(most);
        names
    }

    /// Returns a message that lists the matched names if they are more than the names in the filter. In this case, the
    /// filter may match players that the user did not mean. Otherwise returns `None`.
    pub(crate) fn note(&self) -> Option<String> {
        let count = self.matched.len();
        if count <= self.wanted.len() {
            return None;
        }
        let several = if count < MAX_COUNTED { "" } else { " or more" };
        let listed = self.most_frequent(MAX_LISTED);
        let more = match count - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let listed = listed
            .into_iter()
            .map(|(name, games)| format!("\"{name}\" ({})", plural(*games, "game")));
        Some(format!(
            "\"{}\" matches {count}{several} names: {}{more}; with the condition exact, only whole names match",
            self.wanted.join("\" or \""),
            listed.collect::<Vec<_>>().join(", "),
        ))
    }

    /// Returns a message that lists the names in `others` that have more games than all matched names together. `others`
    /// contains names that may be other spellings of the names in the filter. Returns `None` if no name matched, or if no
    /// name in `others` has more games.
    pub(crate) fn note_of_spellings(&self, others: &PlayerNames) -> Option<String> {
        let games: u64 = self.matched.values().map(|(_, games)| games).sum();
        let listed = others.most_frequent(MAX_LISTED).into_iter();
        let listed = listed.filter(|(_, of_other)| *of_other > games);
        let listed = listed.map(|(name, games)| format!("\"{name}\" ({})", plural(*games, "game")));
        let listed = listed.collect::<Vec<_>>().join(", ");
        (games > 0 && !listed.is_empty()).then(|| {
            format!(
                "\"{}\" matches {}, but names that may be other spellings have more: {listed}",
                self.wanted.join("\" or \""),
                plural(games, "game"),
            )
        })
    }

    /// Returns the end of a message that no game passes the filter, such as `: did you mean "Tal"?`. Returns an empty
    /// string if a name matched, or if no name is similar.
    pub(crate) fn did_you_mean(self) -> String {
        if !self.matched.is_empty() {
            return String::new();
        }
        let unknown = self.nearest.into_iter().flatten();
        did_you_mean(&unknown.flat_map(NearestNames::names).collect::<Vec<_>>())
    }
}

/// A quick test that excludes most names that [`SpellingCounts`] ignore.
pub(crate) struct SpellingTest {
    /// A lowercase ASCII word from each name in the filters, from the last name if there is one. Empty if no name can
    /// have other spellings.
    words: Vec<String>,
}

impl SpellingTest {
    /// Creates a test for the names `wanted` in all filters by player. `how` says how the filters compare names.
    pub(crate) fn new(wanted: &[String], how: NameMatch) -> SpellingTest {
        let names = Vec::from_iter(wanted.iter().map(|name| normalized(name)));
        let is_needed =
            how == NameMatch::Part && names.iter().any(|name| last_name(name).is_some());
        let word = |name: &String| {
            let name = last_name(name).unwrap_or(name);
            let words = name.split(|c: char| !c.is_ascii_alphanumeric());
            words
                .max_by_key(|word| word.len())
                .unwrap_or_default()
                .to_owned()
        };
        SpellingTest {
            words: match is_needed {
                true => names.iter().map(word).collect(),
                false => Vec::new(),
            },
        }
    }

    /// Returns `false` if [`SpellingCounts`] ignore the name in `tag`, the text of a tag.
    pub(crate) fn may_count(&self, tag: &[u8]) -> bool {
        let contains = |word: &String| match word.as_bytes() {
            [] => true,
            [first, rest @ ..] => {
                let mut starts = memchr2_iter(*first, first.to_ascii_uppercase(), tag);
                starts.any(|at| {
                    let part = tag[at + 1..].get(..rest.len());
                    part.is_some_and(|part| part.eq_ignore_ascii_case(rest))
                })
            }
        };
        // Other letters may be normalized to ASCII.
        !self.words.is_empty() && (!tag.is_ascii() || self.words.iter().any(contains))
    }
}

/// The numbers of games of the names that match the filters by player, or that may be other spellings of a name in these
/// filters. Counts the games that the filters exclude, too, as a search of an index does.
pub(crate) struct SpellingCounts<'a> {
    /// The names in the filters by player, opponent, White and Black.
    filters: [&'a [String]; 4],
    how: NameMatch,
    /// The spellings of the names in each filter.
    wanted: [WantedSpellings; 4],
    /// The counted names, at most [`MAX_COUNTED`]. The key is the hash of the text of the tag. The value is the name and
    /// its numbers of games as White and as Black.
    counted: FxHashMap<u64, (String, [u64; 2])>,
    /// The hashes of the texts of the tags whose names are not counted.
    ignored: FxHashSet<u64>,
}

impl<'a> SpellingCounts<'a> {
    /// Creates counts for the names in the filters by player, opponent, White and Black. `how` says how the filters
    /// compare names.
    pub(crate) fn new(filters: [&'a [String]; 4], how: NameMatch) -> SpellingCounts<'a> {
        SpellingCounts {
            filters,
            how,
            wanted: filters.map(|names| WantedSpellings::new(names, how)),
            counted: FxHashMap::default(),
            ignored: FxHashSet::default(),
        }
    }

    /// Adds the games of the name in `tag`, the text of a tag. `games` contains the numbers of games as White and as Black.
    /// Ignores further names after [`MAX_COUNTED`] counted names, or after [`MAX_COMPARISONS`] comparisons.
    pub(crate) fn add(&mut self, tag: &[u8], games: [u64; 2]) {
        let key = FxBuildHasher.hash_one(tag);
        if self.ignored.contains(&key) {
            return;
        }
        if !self.counted.contains_key(&key) {
            let wanted: usize = self.filters.iter().map(|names| names.len()).sum();
            let comparisons = (self.ignored.len() + 1) * wanted;
            if comparisons > MAX_COMPARISONS || self.counted.len() >= MAX_COUNTED {
                return;
            }
            let name = tag_text(tag);
            if !self.wanted.iter().any(|wanted| wanted.includes(&name)) {
                self.ignored.insert(key);
                return;
            }
            self.counted.insert(key, (shown(&name), [0; 2]));
        }
        if let Some((_, sums)) = self.counted.get_mut(&key) {
            *sums = [sums[0] + games[0], sums[1] + games[1]];
        }
    }

    /// Returns a message for each filter if names that may be other spellings have more games than the names that match
    /// the filter. See [`PlayerNames::note_of_spellings`].
    pub(crate) fn notes(&self) -> Vec<String> {
        let filters = self.filters.into_iter();
        let both = [true, true];
        let colors = [both, both, [true, false], [false, true]];
        let note = |((names, wanted), colors): ((&[String], &WantedSpellings), [bool; 2])| {
            let mut matched = PlayerNames::new(names.to_vec(), self.how);
            let mut others = PlayerNames::new(Vec::new(), self.how);
            for (name, games) in self.counted.values() {
                let games = games.iter().zip(colors).filter(|(_, counts)| *counts);
                let games = games.map(|(games, _)| games).sum();
                if wanted.matches(&normalized(name)) {
                    matched.add_matched(name, games);
                } else if wanted.may_include(name) {
                    others.add_matched(name, games);
                }
            }
            matched.note_of_spellings(&others)
        };
        filters
            .zip(&self.wanted)
            .zip(colors)
            .filter_map(note)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alike_by_their_words() {
        let fischer = "fischer, robert james";
        assert_eq!(likeness("fischer", fischer), 1000);
        assert!(likeness("fischr", fischer) > likeness("fischr", "fine, reuben"));
        assert!(likeness("bobby fischer", fischer) >= MIN_LIKENESS);
        assert!(likeness("karpov", fischer) < MIN_LIKENESS);
        assert_eq!(likeness("", fischer), 0);
    }

    #[test]
    fn other_spellings_have_the_same_last_name_and_initial() {
        let may_include = |wanted: &str, name| {
            WantedSpellings::new(&[wanted.to_owned()], NameMatch::Part).may_include(name)
        };
        for (wanted, name) in [
            ("Carlsen, Magnus", "Carlsen,M"),
            ("magnus carlsen", "Carlsen,M."),
            ("Kasparov, Gary", "Kasparov,Garry"),
        ] {
            assert!(may_include(wanted, name), "{wanted}: {name}");
        }
        for (wanted, name) in [
            ("Carlsen, Magnus", "Carlsen,H"),
            ("Carlsen, Magnus", "Carlson,M"),
            ("Carlsen", "Carlsen,M"),
            ("Tal, Mikhail", "Talpos,M"),
        ] {
            assert!(!may_include(wanted, name), "{wanted}: {name}");
        }
    }

    #[test]
    fn the_quick_test_excludes_no_name_that_is_counted() {
        let test = |wanted: &str| SpellingTest::new(&[wanted.to_owned()], NameMatch::Part);
        for (wanted, name) in [
            ("Carlsen, Magnus", "CARLSEN,M"),
            ("Müller, Karl", "MU\u{308}LLER, K"),
            ("Weiss, Karl", "Weiß,K"),
            ("Иванов, Иван", "ИВАНОВ,И"),
        ] {
            let spellings = WantedSpellings::new(&[wanted.to_owned()], NameMatch::Part);
            assert!(spellings.includes(name), "{wanted}: {name}");
            assert!(test(wanted).may_count(name.as_bytes()), "{wanted}: {name}");
        }
        assert!(!test("Carlsen, Magnus").may_count(b"Anand,V"));
        assert!(!test("Carlsen").may_count(b"Carlsen,M"));
    }

    #[test]
    fn other_spellings_with_more_games_are_listed() {
        let mut names = PlayerNames::new(vec!["Tal, Mikhail".to_owned()], NameMatch::Part);
        let mut others = PlayerNames::new(Vec::new(), NameMatch::Part);
        others.add_matched("Tal,M", 4);
        others.add_matched("Tal,Mihail", 3);
        assert_eq!(names.note_of_spellings(&others), None);
        names.add_matched("Tal, Mikhail", 3);
        assert_eq!(
            names.note_of_spellings(&others).as_deref(),
            Some(
                "\"Tal, Mikhail\" matches 3 games, but names that may be other spellings have more: \"Tal,M\" (4 games)"
            )
        );
    }

    #[test]
    fn only_the_beginnings_of_long_names_are_compared() {
        let long = |end: &str| "é".repeat(MAX_COMPARED_LETTERS) + &end.repeat(100_000);
        assert_eq!(likeness(&long("a"), &long("b")), 1000);
        assert_eq!(beginning(&long("a")), "é".repeat(MAX_COMPARED_LETTERS));
        assert_eq!(beginning("Tal"), "Tal");
    }

    #[test]
    fn several_matched_names_are_listed() {
        let mut names = PlayerNames::new(vec!["tal".to_owned()], NameMatch::Part);
        names.add_matched("Tal,M", 1);
        names.add_matched("TAL,M", 1);
        assert_eq!(names.note(), None);
        names.add_matched("Tal, Mikhail", 3);
        assert_eq!(names.matched(), ["Tal, Mikhail", "TAL,M"]);
        assert_eq!(
            names.note().unwrap(),
            "\"tal\" matches 2 names: \"Tal, Mikhail\" (3 games), \"TAL,M\" (2 games); with the \
             condition exact, only whole names match"
        );
        let mut add = |range: std::ops::Range<usize>, games| {
            range.for_each(|i| names.add_matched(&format!("Tal {i}"), games));
            (names.matched(), names.note().unwrap())
        };
        let (_, note) = add(0..2 * MAX_MATCHED, 1);
        assert!(note.contains("matches 202 names"), "{note}");
        assert!(note.contains(" and 198 more;"), "{note}");
        // A name with many games is listed even if many names with few games came before it.
        let (listed, _) = add(500..501, 9);
        assert_eq!(listed.len(), MAX_MATCHED);
        assert_eq!(listed[..2], ["Tal 500", "Tal, Mikhail"]);
        let (_, note) = add(0..2 * MAX_COUNTED, 1);
        assert!(note.contains("matches 10000 or more names"), "{note}");
        assert_eq!(names.did_you_mean(), "");
    }

    #[test]
    fn long_names_are_shortened_and_still_distinguished() {
        let long = |end: &str| "Tal\u{1b} ".repeat(100_000) + end;
        let mut names = PlayerNames::new(vec!["tal".to_owned()], NameMatch::Part);
        for end in ["a", "b", "A"] {
            names.add_matched(&long(end), 1);
        }
        let matched = names.matched();
        assert_eq!(matched.len(), 2);
        assert!(
            matched[0].starts_with("Tal\u{1b} Tal\u{1b} "),
            "{}",
            matched[0]
        );
        assert!(matched.iter().all(|name| name.len() <= MAX_NAME_BYTES));
        let mut nearest = NearestNames::new("tal tal");
        nearest.offer(&long(""), 1);
        assert_eq!(nearest.names(), matched[..1]);
    }

    #[test]
    fn similar_names_are_suggested_for_unknown_names_only() {
        let mut names = PlayerNames::new(
            vec!["Kasparow".to_owned(), "Tal".to_owned()],
            NameMatch::Part,
        );
        for name in ["Kasparov, Garry", "Talov, Mikhail", "Tal, Juan"] {
            names.add_other(name);
        }
        names.add_known("Tal, Mikhail");
        assert_eq!(names.did_you_mean(), ": did you mean \"Kasparov, Garry\"?");
    }

    #[test]
    fn a_first_name_may_be_an_initial() {
        let nearest = |wanted: &str| {
            let mut nearest = NearestNames::new(wanted);
            for (name, games) in [
                ("Carlsen,Magnus", 5),
                ("Solmundarson, Magnus", 90),
                ("Carlsen,M", 2530),
                ("Carlsen,B", 9),
            ] {
                nearest.offer(name, games);
            }
            nearest.names()
        };
        // The spellings with the most games come first.
        let expected = ["Carlsen,M", "Carlsen,Magnus", "Solmundarson, Magnus"];
        assert_eq!(nearest("Carlsen, Magnus"), expected);
        assert_eq!(nearest("Carlsen, M.")[..2], expected[..2]);
    }

    #[test]
    fn a_limited_number_of_comparisons_is_made() {
        for wanted in [vec!["Kasparow"], vec!["Kasparow", "x", "y", "z"]] {
            let most = MAX_COMPARISONS / wanted.len();
            let suggested = |compared: usize| {
                let wanted = wanted.iter().map(|name| (*name).to_owned());
                let mut names = PlayerNames::new(wanted.collect(), NameMatch::Part);
                names.seen.extend(0..compared as u64);
                names.add_other("Kasparov, Garry");
                names.add_other("Kasparov, Gary");
                assert_eq!(names.seen.len(), most);
                names.did_you_mean()
            };
            assert_eq!(suggested(most), "");
            assert_eq!(suggested(most - 1), ": did you mean \"Kasparov, Garry\"?");
        }
    }
}

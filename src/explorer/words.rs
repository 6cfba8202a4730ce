//! A search index that finds texts by their words. A search word matches every word that begins with it, and
//! optionally words with typing errors.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::OnceLock,
};

use fst::{IntoStreamer, Map, MapBuilder, Streamer};
use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder};
use rayon::prelude::*;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// The maximum number of letters of a string that are indexed, which limits the memory for long strings. Further
/// letters are ignored.
const MAX_LETTERS: usize = 256;
/// The maximum number of letters of a string after Unicode's compatibility decomposition. The decomposition can turn
/// one letter into up to 18, so [`MAX_LETTERS`] alone does not limit the length enough.
const MAX_DECOMPOSED_LETTERS: usize = 2 * MAX_LETTERS;
/// The maximum number of letters of a word that are indexed, which limits the time to compare words. Further letters
/// are ignored.
const MAX_WORD_LETTERS: usize = 32;

/// The number of words of a search that are looked up in parallel. It limits the memory, because each of these words
/// takes one byte for every indexed string.
const PARALLEL_WORDS: usize = 8;

/// The maximum number of typing errors with which an indexed string still matches a search.
pub(super) const MAX_ERRORS: u8 = 2;

/// The value that is stored instead of the number of typing errors for an indexed string that does not match.
const NO_MATCH: u8 = u8::MAX;

/// Splits `text` into words, and converts them to lower case without accents. Apostrophes are removed, so `D'Arc`
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

/// The words from which a [`WordIndex`] is built. Each word has the number of the string that contains it.
#[derive(Default)]
pub(super) struct Words {
    letters: String,
    /// For each word: its offset and length in `letters`, and the number of its text.
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
    /// The number of each word. Words are numbered in ascending order.
    words: Map<Vec<u8>>,
    /// The index in `texts` of the first text of each word, followed by the length of `texts`.
    starts: Vec<u32>,
    /// The numbers of the texts that contain each word, concatenated for all words.
    texts: Vec<u32>,
    count: usize,
}

impl WordIndex {
    /// Builds an index from `words`. `count` must be greater than the number of every added string.
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

    /// Adds up the typing errors of all `words` for each indexed string. `of_word` searches for one word, and returns
    /// the number of typing errors for each string. The returned sums and the numbers from `of_word` are indexed by the
    /// number of the string.
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

    /// Finds the first word of the index that is greater than or equal to `letters`. Returns the index in the field
    /// `texts` at which the strings that contain this word begin.
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

    /// Finds the strings that contain a word similar to `word`, in which at most `max_errors` letters are omitted,
    /// added, replaced or transposed. Sets their numbers of typing errors in `of_word`, unless the number is already
    /// smaller. `of_word` is indexed by the number of the string.
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
    use super::*;

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

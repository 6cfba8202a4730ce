//! Ranks the candidates for a suite: sorts, samples and limits them in bounded memory.

use std::{
    collections::HashMap,
    hash::Hasher,
    path::{Path, PathBuf},
};

use shakmaty::{Position, variant::VariantPosition};
use siphasher::sip::SipHasher13;

use super::{RangeCheck, Suite, half_moves};
use crate::{
    error::{Advice, Diagnosis, Error, Result},
    storage::sort::{Memory, TextSorter},
};

/// A line or a position that may become an entry of a suite, depending on its rank.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    /// The text of the entry: movetext or an EPD. The text must not contain null bytes.
    pub text: &'a str,
    /// Bytes, chosen by the caller, that identify the starting position of the entry.
    pub start: &'a [u8],
    /// The identities (hashes) of the positions of a line, from the first to the last, or the identity of a single
    /// position. The random order of a suite depends on the identities rather than on the text, which contains move
    /// counters and varies with the order of the starting positions.
    pub identities: &'a [u64],
    pub games: u64,
    /// The ECO code and the name of the opening, separated by a space, or an empty string if the opening is unknown or
    /// not needed.
    pub opening: &'a str,
    /// The comment of the entry.
    pub note: &'a str,
}

/// An entry of a suite: a candidate that the limits of the suite admit.
pub(super) struct Ranked {
    pub text: String,
    pub start: Vec<u8>,
    pub opening: String,
    pub note: String,
}

/// The maximum number of entries of a suite. A larger suite is an error, because no match needs that many entries.
pub(super) const MAX_ENTRIES: usize = 4_000_000;

/// A ranking of the candidates for a suite. The ranking sorts the candidates and selects the first of them, as many as
/// the limits of the suite allow. Candidates that exceed the memory budget are spilled to temporary files.
pub(super) struct Ranking<'a> {
    suite: &'a Suite,
    /// The path of the suite, for error messages.
    path: PathBuf,
    /// The length of the longest line that has been examined, in half-moves.
    pub longest: usize,
    /// The number of candidates that were left out because they do not meet the suite's conditions on results,
    /// evaluations and positions.
    pub outside: u64,
    /// The number of candidates that were left out because they have no evaluation.
    pub unevaluated: u64,
    /// The number of candidates that were left out because the game is over after them.
    pub over: u64,
    /// The number of candidates that were left out because another candidate leads to the same position, or `None` if
    /// several entries may lead to the same position. The number is correct only after [`ranked`](Ranking::ranked) was
    /// called.
    pub repeated: Option<u64>,
    /// The number of candidates added so far, or `None` if not every candidate becomes an entry.
    all: Option<usize>,
    ranked: TextSorter,
    /// A sorter that finds the first-ranked candidate for each position, if a position may occur only once.
    by_position: Option<TextSorter>,
}

/// The length in bytes of the identity hash of a candidate's last position. This identity precedes each encoded
/// candidate in the field `by_position` of a [`Ranking`].
const IDENTITY_SIZE: usize = size_of::<u64>();

/// The length in bytes of the sort key that precedes an encoded candidate.
const RANK_SIZE: usize = size_of::<u64>();

/// The size in bytes of the field that stores the length of [`Candidate::start`] in an encoded candidate.
const LENGTH_SIZE: usize = size_of::<u16>();

impl<'a> Ranking<'a> {
    pub(super) fn new(suite: &'a Suite, memory: &Memory, path: &Path) -> Ranking<'a> {
        let share = memory.share(2);
        // A limit per ECO code can be applied only after sorting, so all candidates must be kept until then.
        let kept = match suite.per_eco {
            Some(_) => None,
            None => Some(suite.limit.unwrap_or(MAX_ENTRIES + 1)),
        };
        let takes_all = suite.limit.is_none() && suite.per_eco.is_none() && !suite.unique;
        Ranking {
            suite,
            path: path.to_owned(),
            longest: 0,
            outside: 0,
            unevaluated: 0,
            over: 0,
            repeated: suite.unique.then_some(0),
            all: takes_all.then_some(0),
            ranked: TextSorter::new(share.clone(), kept),
            by_position: suite
                .unique
                .then(|| TextSorter::unique(share, IDENTITY_SIZE)),
        }
    }

    /// Checks whether a position can be an entry of the suite, and returns its evaluation as EPD operations. The
    /// returned string is empty if the suite does not filter by evaluation. `has_quiet_move` tells whether the last
    /// move before the position is neither a capture nor a promotion.
    ///
    /// Returns `None` if the position cannot be an entry, and increments the counter for the reason: `over` if the game
    /// is over, `unevaluated` if the position has no evaluation, or `outside` if the evaluation is out of range or
    /// another condition is not met.
    pub(super) fn evaluation_operations(
        &mut self,
        pos: &VariantPosition,
        has_quiet_move: bool,
    ) -> Result<Option<String>> {
        if pos.is_game_over() {
            self.over += 1;
            return Ok(None);
        }
        if !self.suite.accepts(pos, has_quiet_move) {
            self.outside += 1;
            return Ok(None);
        }
        let evaluated = self.suite.evaluated(pos)?;
        match evaluated {
            RangeCheck::Kept(operations) => return Ok(Some(operations)),
            RangeCheck::LeftOut => self.outside += 1,
            RangeCheck::Unknown => self.unevaluated += 1,
        }
        Ok(None)
    }

    /// Adds a candidate, from which an entry of the suite may be made, to the ranking.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written. If every candidate becomes an entry of the suite, also
    /// returns an error if there are more than [`MAX_ENTRIES`] candidates, because the suite would then have too many
    /// entries.
    pub(super) fn add(&mut self, candidate: &Candidate<'_>) -> Result<()> {
        let rank = self.rank(candidate).to_be_bytes();
        let text = candidate.text.as_bytes();
        let start = candidate.start;
        let length = u16::try_from(start.len()).expect("starts are short");
        let length = length.to_be_bytes();
        let (opening, note) = (candidate.opening.as_bytes(), candidate.note.as_bytes());
        let ranked = [&rank, text, &[0], &length, start, opening, &[0], note].concat();
        match &mut self.by_position {
            Some(positions) => {
                let identity = candidate.identities.last().expect("a line has positions");
                positions.push(&[&identity.to_be_bytes(), &*ranked].concat())?;
                self.repeated = self.repeated.map(|repeated| repeated + 1);
            }
            None => self.ranked.push(&ranked)?,
        }
        if let Some(all) = &mut self.all {
            *all += 1;
        }
        match self.all {
            Some(all) if all > MAX_ENTRIES => Err(too_many(&self.path, self.suite)),
            _ => Ok(()),
        }
    }

    /// Returns an iterator over the entries of the suite, in the order of their ranks.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read. The iterator yields an error if the suite has
    /// more than [`MAX_ENTRIES`] entries.
    pub(super) fn ranked(&mut self) -> Result<impl Iterator<Item = Result<Ranked>>> {
        if let Some(mut positions) = self.by_position.take() {
            for candidate in positions.sorted() {
                self.ranked.push(&candidate?[IDENTITY_SIZE..])?;
                // This candidate was counted when it was added, but it is not left out.
                self.repeated = self.repeated.map(|repeated| repeated - 1);
            }
        }
        let (path, suite) = (&self.path, self.suite);
        let mut by_code: HashMap<String, u64> = HashMap::new();
        let ranked = self.ranked.sorted();
        let ranked = ranked.map(|ranked| Ok(read(&ranked?[RANK_SIZE..])));
        let ranked = ranked.filter(move |ranked| match (suite.per_eco, ranked) {
            (Some(most), Ok(Ranked { opening, .. })) => {
                let Some((code, _)) = opening.split_once(' ') else {
                    return true;
                };
                let count = by_code.entry(code.to_owned()).or_default();
                *count += 1;
                *count <= most
            }
            _ => true,
        });
        let ranked = ranked.take(suite.limit.unwrap_or(MAX_ENTRIES + 1)).zip(1..);
        Ok(ranked.map(move |(ranked, count)| match suite.limit {
            None if count > MAX_ENTRIES => Err(too_many(path, suite)),
            _ => ranked,
        }))
    }

    /// Returns the sort key of a candidate. Candidates with smaller keys come first. If the suite has a seed, the key
    /// is a hash of the candidate's positions and the seed, which results in a random order. Otherwise, candidates with
    /// more games get smaller keys.
    fn rank(&self, candidate: &Candidate<'_>) -> u64 {
        match self.suite.seed {
            None => u64::MAX - candidate.games,
            Some(seed) => {
                let mut hasher = SipHasher13::new_with_keys(seed, 0);
                for identity in candidate.identities {
                    hasher.write(&identity.to_le_bytes());
                }
                hasher.finish()
            }
        }
    }
}

/// Returns the error for a suite that would have more than [`MAX_ENTRIES`] entries. `path` is the path of the suite.
fn too_many(path: &Path, suite: &Suite) -> Error {
    let length = half_moves(&suite.plies);
    let problem = Diagnosis::new(format!(
        "the suite would contain more than {MAX_ENTRIES} lines of {length}"
    ))
    .advise(Advice::smaller("plies"))
    .advise(Advice::option(
        "keep only the most played lines with {}",
        "limit",
    ));
    Error::too_large(path, problem)
}

/// Decodes a candidate that becomes an entry of the suite. `ranked` must not include the sort key that precedes the
/// encoded candidate in the ranking.
fn read(ranked: &[u8]) -> Ranked {
    let mut parts = ranked.splitn(2, |byte| *byte == 0);
    let (text, rest) = (parts.next(), parts.next());
    let (length, rest) = rest
        .and_then(|rest| rest.split_first_chunk::<LENGTH_SIZE>())
        .expect("a length follows the text");
    let (start, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)));
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let (opening, note) = (parts.next(), parts.next());
    let string = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ranked {
        text: string(text.unwrap_or_default()),
        start: start.to_vec(),
        opening: string(opening.unwrap_or_default()),
        note: string(note.expect("a note follows the opening")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(suite: &Suite, candidates: &[(u64, u64)]) -> Vec<String> {
        let memory = Memory {
            bytes: 0,
            ..Memory::default()
        };
        let mut ranking = Ranking::new(suite, &memory, Path::new("suite"));
        for (number, (identity, games)) in candidates.iter().enumerate() {
            let candidate = Candidate {
                text: &format!("{number:03}"),
                start: &[0; 8],
                identities: &[*identity],
                games: *games,
                opening: "",
                note: "a note",
            };
            ranking.add(&candidate).unwrap();
        }
        let ranked = ranking.ranked().unwrap();
        ranked.map(|candidate| candidate.unwrap().text).collect()
    }

    #[test]
    fn the_shuffle_is_the_same_on_every_machine() {
        let candidates: Vec<(u64, u64)> = (0..8).map(|number| (number, 1)).collect();
        let shuffled = |seed| {
            let suite = Suite {
                seed: Some(seed),
                ..Suite::default()
            };
            texts(&suite, &candidates).join(" ")
        };
        assert_eq!(shuffled(1), SHUFFLED);
        assert_ne!(shuffled(2), SHUFFLED);
    }

    const SHUFFLED: &str = "007 006 004 005 003 002 000 001";

    #[test]
    fn the_shuffle_goes_by_positions_alone() {
        let suite = Suite {
            seed: Some(1),
            ..Suite::default()
        };
        let ranking = Ranking::new(&suite, &Memory::default(), Path::new("suite"));
        let rank = |text, start, note, identities| {
            let games = 1;
            ranking.rank(&Candidate {
                text,
                start,
                identities,
                games,
                opening: note,
                note,
            })
        };
        let line = rank("1. e4 e5", &[0; 8], "", &[7, 8, 9]);
        assert_eq!(line, rank("5. e4 e5", &[3; 8], "1 game", &[7, 8, 9]));
        assert_ne!(line, rank("1. e4 e5", &[0; 8], "", &[6, 8, 9]));
    }

    #[test]
    fn the_commonest_come_first_and_then_the_smallest_texts() {
        let found = texts(&Suite::default(), &[(1, 2), (2, 9), (1, 9), (3, 0)]);
        assert_eq!(found, ["001", "002", "000", "003"]);
        let unique = Suite {
            unique: true,
            ..Suite::default()
        };
        assert_eq!(
            texts(&unique, &[(1, 2), (2, 9), (1, 9), (3, 0)]),
            ["001", "002", "003"]
        );
    }

    proptest! {
        #[test]
        fn a_limit_takes_the_first_of_all(
            candidates in proptest::collection::vec((0..9u64, 0..5u64), 0..40),
            limit in 0..20usize,
            seed in proptest::option::of(0..3u64),
            unique in any::<bool>(),
        ) {
            let all = Suite { seed, unique, ..Suite::default() };
            let some = Suite { limit: Some(limit), ..all.clone() };
            let mut expected = texts(&all, &candidates);
            expected.truncate(limit);
            prop_assert_eq!(texts(&some, &candidates), expected);
        }
    }
}

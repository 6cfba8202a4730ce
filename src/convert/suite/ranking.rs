//! The order of a suite.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::Suite;
use crate::{
    error::Result,
    sort::{Memory, TextSorter},
};

/// A line or a position that may be in a suite.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    /// Its text, by which it is known. No byte of it is null.
    pub text: &'a str,
    /// Which starting position it starts from.
    pub start: u32,
    /// The identity of the position that it leads to.
    pub identity: u64,
    pub games: u64,
}

/// Puts candidates into their order: as many as are wanted, past its memory in temporary files.
pub(super) struct Ranking {
    seed: Option<u64>,
    /// How many candidates were added, if all of them may be in the suite.
    all: Option<usize>,
    ranked: TextSorter,
    /// The first candidate of each position, if they are to be unique.
    by_position: Option<TextSorter>,
}

/// Bytes of the identity before a candidate that is sorted by position.
const IDENTITY: usize = size_of::<u64>();

/// Bytes of the rank before a candidate.
const RANK: usize = size_of::<u64>();

impl Ranking {
    /// The most lines of a suite. No match plays more of them, so more are taken for a mistake.
    pub(super) const MOST: usize = 4_000_000;

    pub(super) fn new(suite: &Suite, memory: &Memory) -> Ranking {
        let share = memory.share(2);
        Ranking {
            seed: suite.seed,
            all: (suite.limit.is_none() && !suite.unique).then_some(0),
            ranked: TextSorter::new(
                share.clone(),
                Some(suite.limit.unwrap_or(Ranking::MOST + 1)),
            ),
            by_position: suite.unique.then(|| TextSorter::unique(share, IDENTITY)),
        }
    }

    /// Adds a candidate; answers whether there is room for more.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(super) fn add(&mut self, candidate: &Candidate<'_>) -> Result<bool> {
        let rank = self.rank(candidate).to_be_bytes();
        let text = candidate.text.as_bytes();
        let ranked = [&rank, text, &[0], &candidate.start.to_be_bytes()].concat();
        match &mut self.by_position {
            Some(positions) => {
                positions.push(&[&candidate.identity.to_be_bytes(), &*ranked].concat())?;
            }
            None => self.ranked.push(&ranked)?,
        }
        if let Some(all) = &mut self.all {
            *all += 1;
        }
        Ok(self.all.is_none_or(|all| all <= Ranking::MOST))
    }

    /// The texts of the candidates in their order, and where they start.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(super) fn ranked(&mut self) -> Result<impl Iterator<Item = Result<(String, usize)>>> {
        if let Some(mut positions) = self.by_position.take() {
            for candidate in positions.sorted() {
                self.ranked.push(&candidate?[IDENTITY..])?;
            }
        }
        Ok(self.ranked.sorted().map(|ranked| {
            let ranked = ranked?;
            let (text, start) = ranked[RANK..]
                .split_last_chunk()
                .expect("the start is last");
            let text = text.strip_suffix(&[0]).expect("a null byte is before it");
            let text = String::from_utf8_lossy(text).into_owned();
            Ok((text, u32::from_be_bytes(*start) as usize))
        }))
    }

    /// What the order goes by first: the most games, or a number that is spread as evenly as chance would.
    fn rank(&self, candidate: &Candidate<'_>) -> u64 {
        match self.seed {
            None => u64::MAX - candidate.games,
            Some(seed) => {
                let mut hasher = SipHasher13::new_with_keys(seed, 0);
                hasher.write(&u64::from(candidate.start).to_le_bytes());
                hasher.write(candidate.text.as_bytes());
                hasher.finish()
            }
        }
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
        let mut ranking = Ranking::new(suite, &memory);
        for (number, (identity, games)) in candidates.iter().enumerate() {
            let candidate = Candidate {
                text: &format!("{number:03}"),
                start: 0,
                identity: *identity,
                games: *games,
            };
            assert!(ranking.add(&candidate).unwrap());
        }
        let ranked = ranking.ranked().unwrap();
        ranked.map(|candidate| candidate.unwrap().0).collect()
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

    const SHUFFLED: &str = "005 006 004 001 003 002 007 000";

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

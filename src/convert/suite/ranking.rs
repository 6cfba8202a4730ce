//! The order of a suite.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hasher,
};

use siphasher::sip::SipHasher13;

use super::Suite;

/// A line or a position that may be in a suite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Candidate {
    /// Its text, by which it is known.
    pub text: String,
    /// Which starting position it starts from.
    pub start: usize,
    /// The identity of the position that it leads to.
    pub identity: u64,
    pub games: u64,
}

/// More candidates than a suite may have.
#[derive(Copy, Clone, Debug)]
pub(super) struct TooMany;

/// Keeps the first candidates in their order: as many as are wanted, so that others take no memory.
pub(super) struct Ranking {
    limit: Option<usize>,
    seed: Option<u64>,
    unique: bool,
    kept: BTreeSet<(u64, Candidate)>,
    /// The rank of the one that is kept for a position, if they are to be unique.
    by_position: HashMap<u64, (u64, Candidate)>,
}

impl Ranking {
    /// The most lines of a suite. No match plays more of them, so more are taken for a mistake.
    pub(super) const MOST: usize = 4_000_000;

    pub(super) fn new(suite: &Suite) -> Ranking {
        Ranking {
            limit: suite.limit,
            seed: suite.seed,
            unique: suite.unique,
            kept: BTreeSet::new(),
            by_position: HashMap::new(),
        }
    }

    /// Adds a candidate.
    pub(super) fn add(&mut self, candidate: Candidate) -> Result<(), TooMany> {
        let ranked = (self.rank(&candidate), candidate);
        if self.unique {
            let identity = ranked.1.identity;
            match self.by_position.get(&identity) {
                Some(before) if *before <= ranked => return Ok(()),
                Some(before) => drop(self.kept.remove(before)),
                None => {}
            }
            self.by_position.insert(identity, ranked.clone());
        }
        self.kept.insert(ranked);
        if self.kept.len() > self.limit.unwrap_or(usize::MAX) {
            let last = self.kept.pop_last();
            if let Some((_, last)) = last.filter(|_| self.unique) {
                self.by_position.remove(&last.identity);
            }
        }
        if self.kept.len() > Ranking::MOST {
            return Err(TooMany);
        }
        Ok(())
    }

    /// The candidates in their order.
    pub(super) fn ranked(self) -> Vec<Candidate> {
        let kept = self.kept.into_iter();
        kept.map(|(_, candidate)| candidate).collect()
    }

    /// What the order goes by first: the most games, or a number that is spread as evenly as chance would.
    fn rank(&self, candidate: &Candidate) -> u64 {
        match self.seed {
            None => u64::MAX - candidate.games,
            Some(seed) => {
                let mut hasher = SipHasher13::new_with_keys(seed, 0);
                hasher.write(&(candidate.start as u64).to_le_bytes());
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
        let mut ranking = Ranking::new(suite);
        for (number, (identity, games)) in candidates.iter().enumerate() {
            let candidate = Candidate {
                text: format!("{number:03}"),
                start: 0,
                identity: *identity,
                games: *games,
            };
            ranking.add(candidate).unwrap();
        }
        let ranked = ranking.ranked().into_iter();
        ranked.map(|candidate| candidate.text).collect()
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

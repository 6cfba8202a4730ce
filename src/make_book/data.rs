//! The data that a run has collected and from which its outputs are written.

use std::collections::HashMap;

use siphasher::sip128::SipHasher13;

use super::{
    needs::Needs,
    options::{EMPTY_OUTPUTS, MakeBook},
    report::Report,
};
use crate::{
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        book::BookMaker,
        counts::{Counts, KeyedIdentity, MoveFilter},
    },
    provenance::{Provenance, Pruned},
    storage::sort::{ByteRun, Memory, Sorted},
};

/// The complete counts of a `make-book` run: counts by position key, counts by identity (a hash that distinguishes
/// positions with equal keys), or both, depending on what the outputs need.
pub(super) struct SortedCounts {
    /// The counts by position key, if an output needs them.
    pub by_key: Option<Counts>,
    /// The counts by identity, if an output needs them.
    pub by_identity: Option<Counts>,
    /// Pairs of a position key and an identity, which show the identities that share a key, if an output needs them.
    pub shared_keys: Option<Sorted<KeyedIdentity>>,
}

impl SortedCounts {
    /// Returns the results of all moves by identity (a hash that distinguishes positions with equal keys). If the run
    /// has no counts by identity, which happens only in standard chess, returns the counts by key, because identities
    /// then equal keys.
    ///
    /// # Panics
    ///
    /// Panics if the run has no counts of moves, because no output needs them.
    pub(super) fn by_position(&self) -> &Counts {
        let counts = self.by_identity.as_ref().or(self.by_key.as_ref());
        counts.expect("the output needs counts")
    }

    /// Returns the counts from which the weights of moves are computed: the counts by position key or, if there are
    /// none, the counts by identity. Returns `None` if the run has neither.
    pub(super) fn counts_for_weights(&self) -> Option<&Counts> {
        self.by_key.as_ref().or(self.by_identity.as_ref())
    }

    /// Selects the moves that a book keeps according to `options`, and computes their weights. Returns `None` if no
    /// output [needs weights](Needs::weights).
    pub(super) fn weighed<'a>(
        &'a self,
        options: &'a MakeBook,
        needs: &Needs,
    ) -> Result<Option<BookMaker<'a>>> {
        let counts = self.counts_for_weights().filter(|_| needs.weights);
        let weigh = |counts| BookMaker::new(counts, &options.move_filter, &options.weights);
        counts.map(weigh).transpose()
    }

    /// Returns the approximate number of bytes of memory that all counts of moves occupy.
    pub(super) fn bytes_in_memory(&self) -> u64 {
        let tables = self.by_key.iter().chain(&self.by_identity);
        let keys = self.shared_keys.as_ref();
        tables.map(Counts::bytes_in_memory).sum::<u64>() + keys.map_or(0, Sorted::bytes_in_memory)
    }
}

/// The data of a run of `make-book` that depends on the order of its games: the report of the run, the number of the
/// first game of each input, and the positions in which games started.
pub(super) struct OrderedResults {
    pub report: Report,
    /// The game number of the first game of each input.
    pub first_games: Vec<u64>,
    /// The positions in which games started.
    pub starts: Starts,
}

/// The data from which the outputs of a `make-book` run are written: the counts of moves, the weights, the report of
/// the run, and the inputs and options with which the counts were made.
pub(super) struct CollectedData<'a> {
    pub counts: &'a SortedCounts,
    /// The moves that a book keeps, if an output [needs weights](Needs::weights).
    pub weighed: Option<BookMaker<'a>>,
    /// The inputs, games and options from which the counts were made.
    pub provenance: Provenance,
    /// The options that affected counting, as text.
    pub options: &'a str,
    /// The numbers of positions, rows and half-moves that were pruned from the inputs, or `None` if nothing was pruned.
    pub pruned: Option<Pruned>,
    /// The report of the run, and all data that depends on the order of the games.
    pub games: OrderedResults,
    /// The approximate memory, in bytes, that is occupied by outputs that have not been written yet.
    pub held_bytes: usize,
}

impl<'a> CollectedData<'a> {
    /// Returns the moves that a book keeps, with their weights.
    ///
    /// # Panics
    ///
    /// Panics if no output [needs weights](Needs::weights), because no moves were then selected.
    pub(super) fn weighed(&self) -> &BookMaker<'a> {
        self.weighed.as_ref().expect("the output needs weights")
    }

    /// Returns [`Error::Empty`] if the output would contain no move, unless the options allow empty outputs. The error
    /// lists the filters that rejected the moves. `keeps_weightless` is `true` if the output may contain moves of
    /// weight 0.
    pub(super) fn refuse_without_moves(
        &self,
        options: &MakeBook,
        keeps_weightless: bool,
    ) -> Result<()> {
        if options.allow_empty || self.weighed().summary().entries > 0 {
            return Ok(());
        }
        let counts = self.counts.counts_for_weights().expect("some were weighed");
        let filter = &options.move_filter;
        let of_side = MoveFilter {
            min_game: 0,
            min_score: 0.0,
            ..filter.clone()
        };
        // Count the moves by the first filter that rejected them.
        let (mut rare, mut other, mut bad, mut weightless) = (counts.rare().records, 0, 0, 0);
        for position in counts.positions() {
            let position = position?;
            for count in position.moves {
                let number = if count.stats.games() < filter.min_game {
                    &mut rare
                } else if !of_side.selects(position.turn, count.stats) {
                    &mut other
                } else if !filter.selects(position.turn, count.stats) {
                    &mut bad
                } else {
                    &mut weightless
                };
                *number += 1;
            }
        }
        if keeps_weightless && weightless > 0 {
            return Ok(());
        }
        let reasons = [
            (rare, format!("played fewer than {} times", filter.min_game)),
            (other, "of the other side".to_owned()),
            (bad, "of too low a score".to_owned()),
            (weightless, "of weight 0".to_owned()),
        ];
        let named = reasons.iter().filter(|(moves, _)| *moves > 0);
        let named: Vec<String> = named.map(|(moves, why)| format!("{moves} {why}")).collect();
        let reason = match reasons.iter().map(|(moves, _)| moves).sum::<u64>() {
            0 => "the games contain no move".to_owned(),
            1 => format!("the only move is not kept ({})", named.join(", ")),
            all => format!("none of {all} moves is kept ({})", named.join(", ")),
        };
        let mut reason = Diagnosis::new(reason);
        if rare > 0 {
            let keep = Advice::option("{} keeps the moves that were played less often", "min-game");
            reason = reason.advise(keep.with_value(1));
        }
        Err(Error::Empty {
            reason: reason.advise(EMPTY_OUTPUTS),
        })
    }
}

/// The maximum number of different starting positions that [`Starts`] remembers, so that each of them is stored only
/// once. Any other position is stored again each time it is added, and its numbers of games are added up later.
const MAX_REMEMBERED_STARTS: usize = 1 << 18;

/// The positions in which games started, stored as EPDs, each with the number of games that started in it. Games of
/// standard chess without a `FEN` tag are not included.
#[derive(Debug)]
pub(super) struct Starts {
    /// For each starting position: the length of its EPD, the EPD, and the number of games.
    epds: ByteRun,
    /// The number of stored positions.
    kept: u64,
    /// The index in `more` of each of the first [`MAX_REMEMBERED_STARTS`] stored positions, keyed by fingerprint.
    seen: HashMap<u128, usize>,
    /// For each remembered position, the number of games that were added after the position was stored.
    more: Vec<u64>,
}

impl Starts {
    /// Creates an empty collection of starting positions. If it exceeds the budget `memory`, it spills to a temporary
    /// file.
    pub(super) fn new(memory: &Memory) -> Starts {
        Starts {
            epds: ByteRun::new(memory.bytes, memory.temp_dir.clone()),
            kept: 0,
            seen: HashMap::new(),
            more: Vec::new(),
        }
    }

    /// Adds the starting position `epd`, in which `games` games started.
    pub(super) fn add(&mut self, epd: &[u8], games: u64) -> Result<()> {
        let fingerprint = SipHasher13::new().hash(epd).as_u128();
        if let Some(number) = self.seen.get(&fingerprint) {
            self.more[*number] += games;
            return Ok(());
        }
        // The first positions are remembered, so their numbers are also their indices in `more`.
        if self.seen.len() < MAX_REMEMBERED_STARTS {
            self.seen.insert(fingerprint, self.more.len());
            self.more.push(0);
        }
        self.kept += 1;
        self.epds.append(&(epd.len() as u16).to_le_bytes())?;
        self.epds.append(epd)?;
        self.epds.append(&games.to_le_bytes())
    }

    /// Returns an iterator over the stored positions, in the order in which they were first added. An item is an EPD
    /// and a number of games. A position may be returned several times; the caller must then add up its numbers of
    /// games.
    pub(super) fn all(&self) -> impl Iterator<Item = Result<(String, u64)>> + '_ {
        let mut reader = self.epds.reader(0);
        let more = self.more.iter().copied().chain(std::iter::repeat(0));
        (0..self.kept).zip(more).map(move |(_, more)| {
            let mut length = [0; 2];
            reader.read_exact(&mut length)?;
            let mut epd = vec![0; usize::from(u16::from_le_bytes(length))];
            reader.read_exact(&mut epd)?;
            let mut games = [0; 8];
            reader.read_exact(&mut games)?;
            let games = u64::from_le_bytes(games) + more;
            Ok((String::from_utf8_lossy(&epd).into_owned(), games))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_of_one_start_add_up() {
        let mut starts = Starts::new(&Memory {
            bytes: 16,
            ..Memory::default()
        });
        for epd in ["a", "b", "a", "c", "a"] {
            starts.add(epd.as_bytes(), 2).unwrap();
        }
        let all: Vec<(String, u64)> = starts.all().map(Result::unwrap).collect();
        let expected = [("a", 6), ("b", 2), ("c", 2)];
        assert_eq!(all, expected.map(|(epd, games)| (epd.to_owned(), games)));
    }
}

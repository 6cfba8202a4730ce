//! The data that a run must collect for its outputs ([`Needs`]), the memory budget of each store that collects them
//! ([`Budget`]), and the data that the run has collected ([`CollectedData`]).
//!
//! `Budget::divide` first reserves memory for the metadata of counts and for decompression, and an eighth of the budget
//! for `--duplicates once`. It divides the rest into equal shares for the tallies and for the outputs that collect
//! data. After the last game, the outputs are written one after the other. The output that is being written may then
//! sort in the whole budget, except the memory that the counts and the other unwritten outputs still need
//! (`Budget::memory_left`).

use std::collections::HashMap;

use siphasher::sip128::SipHasher13;

use super::{options::MakeBook, report::Report, sink::EMPTY_OUTPUTS};
use crate::{
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        book::BookMaker,
        counts::{Counts, KeyedIdentity, MoveFilter},
    },
    provenance::{Provenance, Pruned},
    storage::sort::{ByteRun, Memory, SHARDS, Sorted},
};

/// The approximate memory, in bytes, that a thread needs to read one counts directory in the order of keys. This number
/// includes buffered pages of the Parquet columns and decoded rows, but not the metadata of the files.
pub(super) const BYTES_PER_DIRECTORY: usize = 2 << 20;

/// The maximum number of Parquet files that may be open at the same time while counts are merged. Each thread merges
/// one range of keys. For this, it keeps one file of every input counts directory open. The limit is low because some
/// systems allow a process to open only 256 files.
const MAX_OPEN_FILES: usize = 128;

/// The preferred number of rows in a range of keys. Threads merge sorted counts in parallel, and each thread merges the
/// rows of one range at a time. Smaller ranges are slower, because a Parquet row group that two ranges share is read
/// twice.
const ROWS_PER_RANGE: u64 = 1 << 22;

/// The memory limits of the stores in which a run of `make-book` collects data. A store that reaches its limit writes
/// data to temporary files.
#[derive(Default)]
pub(super) struct Budget {
    /// The budget of each tally.
    pub tally: Memory,
    /// The budget of one memory share. Outputs take one or more of these equal shares while games are read.
    pub share: Memory,
    /// The budget for the game records of the index.
    pub games: Memory,
    /// The budget for the positions in which games started.
    pub starts: Memory,
    /// The budget for the keys of games, which is 0 unless duplicates are dropped.
    pub duplicates: Memory,
    /// The plan for merging counts that are already sorted, or `None` if the tallies sort them again.
    pub merging: Option<Merging>,
}

/// A plan for merging input counts that are already sorted by key. These counts need not be sorted again.
pub(super) struct Merging {
    /// The number of ranges into which the keys are divided. Each range is merged by one thread.
    pub ranges: usize,
    /// The budget for the merged counts.
    pub memory: Memory,
}

/// The size of the input counts that are already sorted by key. This size decides whether the memory suffices to merge
/// these counts without sorting them again.
pub(super) struct OrderedSize {
    /// The approximate memory, in bytes, that one thread needs to read all sorted counts.
    pub memory: usize,
    pub rows: u64,
    /// The number of directories that contain sorted counts.
    pub directories: usize,
    /// Whether all inputs are sorted counts.
    pub is_all: bool,
}

impl Budget {
    /// Divides the memory budget of `run` among its stores. First reserves memory for decompression, for the detection
    /// of duplicates, and for the metadata of input counts (`metadata` bytes). Then divides the rest into `shares`
    /// equal parts for the outputs and for the tallies (the stores that add up the results of moves).
    ///
    /// `ordered` is the size of the input counts that are already sorted, or `None` if no counts can be merged without
    /// sorting. `threads` is the number of threads of the run.
    pub(super) fn divide(
        run: &MakeBook,
        metadata: usize,
        shares: usize,
        ordered: Option<OrderedSize>,
        threads: usize,
    ) -> Budget {
        let memory = &run.memory;
        let files = run.inputs.iter();
        let unpacking = files
            .map(|input| input.unpacking_memory(memory.bytes))
            .max();
        let duplicates = if run.selection.counts_once() {
            memory.share(8)
        } else {
            memory.with_bytes(0)
        };
        let other = unpacking.unwrap_or(0) + duplicates.bytes + metadata;
        let share = memory.bytes.saturating_sub(other) / shares.max(1);
        let merging = ordered.and_then(|ordered| merging(share, &ordered, threads));
        let merged = merging.as_ref().map_or(0, |(bytes, ..)| *bytes);
        Budget {
            tally: memory.with_bytes(share - merged),
            share: memory.with_bytes(share),
            games: memory.share(8),
            starts: memory.share(16),
            duplicates,
            merging: merging.map(|(_, ranges, for_sum)| Merging {
                ranges,
                memory: memory.with_bytes(for_sum),
            }),
        }
    }

    /// Returns the part of the run's memory budget that an output may use to sort or check its contents while it is
    /// written. `counts` is the memory that the counts of moves take, and `outputs` is the memory that other outputs
    /// take until they are written, both in bytes.
    pub(super) fn memory_left(run: &MakeBook, counts: usize, outputs: usize) -> Memory {
        // Finding positions needs one more byte for each record.
        let held = counts + counts / 8 + outputs;
        let memory = &run.memory;
        let left = memory.bytes.saturating_sub(held).max(memory.bytes / 8);
        // Sorting needs memory in addition to the rows.
        memory.with_bytes(left / 4 * 3)
    }

    /// Returns how many Parquet files of the output counts may be written at the same time, at least 1. Each file is
    /// written by its own thread, which needs `memory_per_file` bytes of memory to read the input counts.
    pub(super) fn parts_at_once(run: &MakeBook, memory_per_file: usize) -> usize {
        (run.memory.bytes / 2 / memory_per_file.max(BYTES_PER_DIRECTORY)).max(1)
    }
}

/// Plans how `threads` threads merge counts that are already sorted, in at most `share` bytes of memory. `ordered` is
/// the size of these counts. Returns three numbers: the memory for the whole merge, the number of key ranges, and the
/// memory for the merged counts. Both amounts of memory are in bytes.
///
/// Returns `None` if the counts must be sorted after all, because the memory is too small or too many files would be
/// open.
fn merging(share: usize, ordered: &OrderedSize, threads: usize) -> Option<(usize, usize, usize)> {
    // Counts that are not sorted yet are sorted first. They stay in memory while they are merged with the sorted
    // counts.
    let bytes = if ordered.is_all { share } else { share / 2 };
    let at_once = (bytes / 2 / ordered.memory).min(MAX_OPEN_FILES / ordered.directories);
    let (ranges, at_once) = ranges(ordered.rows, threads, at_once)?;
    Some((bytes, ranges, bytes - at_once * ordered.memory))
}

/// Divides the keys of `rows` rows of sorted counts into ranges, which `threads` threads merge in parallel. Returns the
/// number of ranges, and how many of them are merged at the same time (at most `max_at_once`). Returns `None` if fewer
/// than two ranges are possible.
///
/// At least two ranges are necessary: rows are sorted by key as a signed number, but shards are sorted by key as an
/// unsigned number, and the two orders agree only within each half of the keys.
fn ranges(rows: u64, threads: usize, max_at_once: usize) -> Option<(usize, usize)> {
    if threads <= max_at_once {
        let wanted = usize::try_from(rows / ROWS_PER_RANGE).unwrap_or(SHARDS);
        let ranges = wanted.max(threads).min(SHARDS / 2).next_power_of_two();
        return Some((ranges.max(2), threads));
    }
    let ranges = 1 << max_at_once.checked_ilog2()?;
    (ranges >= 2).then_some((ranges, ranges))
}

/// The kinds of data that the outputs of a run of `make-book` need. A run collects only this data and the total numbers
/// of games and half-moves.
#[derive(Default, Debug)]
pub(super) struct Needs {
    /// Counts by position key.
    pub keys: bool,
    /// Counts by identity. In standard chess, identities equal keys.
    pub identities: bool,
    /// Pairs of a key and an identity, to find identities that share a key.
    pub shared_keys: bool,
    /// Counts by class. Their sums include half-moves whose positions have no valid book key.
    pub classes: bool,
    /// The positions in which games started, with numbers of games.
    pub starts: bool,
    /// Positions in which no move was played often enough to be kept.
    pub rare_positions: bool,
    /// The weights of moves in a book.
    pub weights: bool,
    /// A restriction of the tallies to variants that have a number in the Polyglot format. If no output needs
    /// [all variants](Needs::all_variants), games of other variants are filtered.
    pub numbered_variants: bool,
    /// Games of all variants, for an output that does not depend on the format of books.
    pub all_variants: bool,
    /// The identities of the positions of each game.
    pub game_identities: bool,
    /// The opening of each game.
    pub openings: bool,
    /// The length of each game, including half-moves that are not counted.
    pub game_lengths: bool,
    /// A hash of the starting position and all moves of each game, including half-moves that are not counted.
    pub game_hashes: bool,
    /// The EPD of the starting position of each game that does not begin in the usual one.
    pub game_starts: bool,
}

impl Needs {
    /// Adds the data that is needed to find all counted positions again, by playing the counted moves: the results of
    /// the moves, and the starting positions of the games. Counts directories and OOBS databases need this data. If the
    /// options allow variants, results are counted by identity (a hash that distinguishes positions with equal keys),
    /// otherwise by position key.
    pub(super) fn add_all_positions(&mut self, options: &MakeBook) {
        let by_identity = options.distinguishes_variants();
        self.keys |= !by_identity;
        self.identities |= by_identity;
        self.starts = true;
        self.rare_positions = true;
    }

    /// Returns `true` if an output needs the identity of each position on the main line of a game. An identity is a
    /// hash that distinguishes positions with equal keys.
    pub(super) fn line_identities(&self) -> bool {
        self.identities || self.game_identities || self.openings
    }

    /// Returns `true` if the run must count how many half-moves a book cannot contain, because the position before them
    /// has no valid book key.
    pub(super) fn counts_unbookable(&self) -> bool {
        self.keys || self.shared_keys || self.classes
    }

    /// Returns the number of tallies that the run needs. A tally is a store that adds up the results of moves, for
    /// example by position key.
    pub(super) fn tallies(&self) -> usize {
        let tallies = [self.keys, self.identities, self.shared_keys];
        tallies.into_iter().filter(|wanted| *wanted).count()
    }
}

/// The complete counts of a run of `make-book`: counts by position key, counts by identity (a hash that distinguishes
/// positions with equal keys), or both, as the outputs need them.
pub(super) struct SortedCounts {
    /// The counts by position key, if an output needs them.
    pub by_key: Option<Counts>,
    /// The counts by identity, if an output needs them.
    pub by_identity: Option<Counts>,
    /// Pairs of a key and an identity, which show the identities that share a key, if an output needs them.
    pub shared_keys: Option<Sorted<KeyedIdentity>>,
}

impl SortedCounts {
    /// Returns the results of all moves by identity (a hash that distinguishes positions with equal keys). If the run
    /// has no counts by identity, returns the counts by key. This happens only in standard chess, where identities
    /// equal keys.
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
    /// The number of each input's first game.
    pub first_games: Vec<u64>,
    /// The positions in which games started.
    pub starts: Starts,
}

/// The data from which the outputs of a run of `make-book` are written: the counts of moves, the weights, the
/// provenance (from which inputs and with which options the counts were made) and the report of the run.
pub(super) struct CollectedData<'a> {
    pub counts: &'a SortedCounts,
    /// The moves that a book keeps, if an output [needs weights](Needs::weights).
    pub weighed: Option<BookMaker<'a>>,
    /// The inputs, games and options from which the counts were made.
    pub provenance: Provenance,
    /// The options of the provenance that affect counting.
    pub options: &'a str,
    /// The numbers of positions, rows and half-moves that were pruned from the inputs, or `None` if nothing was pruned.
    pub pruned: Option<Pruned>,
    /// The report of the run, and all data that depends on the order of the games.
    pub games: OrderedResults,
    /// The approximate memory, in bytes, that the outputs still to be written occupy.
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
    /// lists the filters that rejected the moves. `keeps_weightless` is `true` if the output may also contain moves of
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

/// The maximum number of different starting positions that [`Starts`] remembers. A remembered position is stored only
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
    /// The indices in `more` of the first [`MAX_REMEMBERED_STARTS`] stored positions, by fingerprint.
    seen: HashMap<u128, usize>,
    /// For each remembered position, the number of games that were added after the position was stored.
    more: Vec<u64>,
}

impl Starts {
    /// Creates an empty store of starting positions. If the store exceeds the budget `memory`, it spills to a temporary
    /// file.
    pub(super) fn new(memory: &Memory) -> Starts {
        Starts {
            epds: ByteRun::new(memory.bytes, memory.temp_dir.clone()),
            kept: 0,
            seen: HashMap::new(),
            more: Vec::new(),
        }
    }

    /// Adds a starting position to the store. `epd` is the position, and `games` is the number of games that started in
    /// it.
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

    /// Returns an iterator over the stored positions, in the order in which they were first added. Each item is an EPD
    /// and a number of games. If the iterator returns a position several times, the caller must add up its numbers of
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
    fn rows_and_memory_limit_the_number_of_ranges() {
        assert_eq!(ranges(10, 1, 8), Some((2, 1)));
        assert_eq!(ranges(10, 6, 8), Some((8, 6)));
        assert_eq!(ranges(9 * ROWS_PER_RANGE, 2, 8), Some((16, 2)));
        assert_eq!(ranges(u64::MAX, 2, 8), Some((128, 2)));
        assert_eq!(ranges(10, 64, 7), Some((4, 4)));
        assert_eq!(ranges(10, 64, 1), None);
        assert_eq!(ranges(10, 64, 0), None);
    }

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

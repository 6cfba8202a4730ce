//! Writing the index: all entries in the order of their keys, made and written on all threads.
//!
//! The entries go in waves of a few megabytes. While the pool writes the tables of one wave, it makes
//! the entries of the next; between the two, one thread cuts the entries into tables. So the tables
//! depend neither on the threads nor on the size of a wave.

use std::{
    ffi::OsString,
    io,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rayon::prelude::*;

use super::{
    GameRecords,
    entries::{Entries, ReadIds},
    explored::{ExploredGames, GameEntries, Played, list_entries},
    games::GameWalk,
    layout::played::Paging,
    leveldb::{TableFile, manifest},
    pieces::{Piece, pieces},
    positions::position_entries,
    posting::Posting,
    replace::is_own_file,
    tables::{Table, TableCutter},
    waves::{ExploredWaves, IndexedFile, LastWaves, Wave, Waves, file_entries},
};
use crate::{
    error::{At, Error, Result},
    output::{AtomicDir, Finished},
    position::VariantChoice,
    progress::Meter,
    sort::{Record, SHARDS, Sealed},
    task,
};

/// How many postings make a wave. With statistics, each may be a position with 200 bytes of entries.
const WAVE: usize = 1 << 16;

/// How many bytes of game records make a wave.
const RECORDS_WAVE: usize = 8 << 20;

/// Writes an index beside its target.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    directory: AtomicDir,
    with_stats: bool,
}

/// What an index is made of.
#[derive(Copy, Clone)]
pub(crate) struct IndexSource<'a> {
    pub postings: &'a Sealed<Posting>,
    pub games: &'a GameRecords,
    pub files: &'a [IndexedFile],
    pub variant: VariantChoice,
    /// What the explorer needs, if the index is for it.
    pub explored: Option<ExploredData<'a>>,
}

/// What the explorer needs of an index.
#[derive(Copy, Clone)]
pub(crate) struct ExploredData<'a> {
    pub records: &'a Sealed<Played>,
    pub games: &'a ExploredGames,
}

/// What an index holds.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct IndexSummary {
    pub games: u64,
    pub positions: u64,
    pub postings: u64,
}

impl IndexWriter {
    /// Starts an index for `target`.
    /// If there is something, `may_replace` judges it and answers its files.
    pub(crate) fn create(
        target: &Path,
        with_stats: bool,
        may_replace: impl FnOnce(&Path) -> Result<Vec<OsString>>,
    ) -> Result<IndexWriter> {
        Ok(IndexWriter {
            directory: AtomicDir::create_over(target, is_own_file, may_replace)?,
            with_stats,
        })
    }

    /// Writes everything. The index is complete then, but not in place. Uses the rayon pool it is called
    /// in.
    ///
    /// # Errors
    ///
    /// A disk that cannot take it, a temporary file that cannot be read, [`Error::Interrupted`] when
    /// `stop` is set.
    pub(crate) fn write(
        self,
        from: IndexSource<'_>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(IndexSummary, Finished)> {
        meter.add_total(record_count(from.postings));
        meter.add_total(from.games.len());
        let source = Source::new(&from, self.with_stats, meter);
        self.write_waves(source, from.postings, from.games.len(), stop, meter)
    }

    /// The same of entries, of an index of so many games. Values that are not held are read from `ids`.
    // One loop over waves: its arms change the same five values.
    pub(super) fn write_waves(
        self,
        mut source: impl Waves,
        ids: &dyn ReadIds,
        games: u64,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(IndexSummary, Finished)> {
        let mut summary = IndexSummary {
            games,
            ..IndexSummary::default()
        };
        let mut cutter = TableCutter::new();
        let mut written = Vec::new();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let tables = cutter.take_tables();
            let (files, wave) =
                rayon::join(|| self.write_tables(tables, ids), || source.next_wave());
            written.extend(files?);
            match wave? {
                Wave::Positions(made) => {
                    for positions in made {
                        summary.positions += positions.positions;
                        summary.postings += positions.games;
                        meter.advance(positions.games);
                        cutter.push_positions(positions);
                    }
                }
                Wave::Entries(entries) => {
                    meter.advance(entries.len() as u64);
                    cutter.push(entries);
                }
                Wave::Lists(made) => {
                    for lists in made {
                        meter.advance(lists.records);
                        cutter.push(lists.entries);
                    }
                }
                Wave::Joined {
                    parts,
                    positions,
                    postings,
                    steps,
                } => {
                    summary.positions += positions;
                    summary.postings += postings;
                    meter.advance(steps);
                    for (entries, part) in parts {
                        cutter.push_part(&entries, part);
                    }
                }
                Wave::End => break,
            }
        }
        if let Some(last) = source.last(summary.positions) {
            cutter.push(last);
        }
        cutter.finish();
        written.extend(self.write_tables(cutter.take_tables(), ids)?);
        manifest::write(self.directory.path(), &written).at(self.directory.target(), "write")?;
        Ok((summary, self.directory.finish()?))
    }

    fn write_tables(&self, tables: Vec<Table>, ids: &dyn ReadIds) -> Result<Vec<TableFile>> {
        tables
            .into_par_iter()
            .map(|table| {
                task::fault("write tables");
                table.write(self.directory.path(), ids)
            })
            .collect::<io::Result<_>>()
            .at(self.directory.target(), "write")
    }
}

/// How many records there are.
fn record_count<R: Record>(records: &Sealed<R>) -> u64 {
    (0..SHARDS).map(|shard| records.shard_len(shard)).sum()
}

/// Makes all entries of an index, in order.
struct Source<'a> {
    postings: &'a Sealed<Posting>,
    with_stats: bool,
    pieces: Box<dyn Iterator<Item = Piece> + Send + 'a>,
    games: GameWalk<'a>,
    last: LastWaves<ExploredSource<'a>>,
}

/// Makes the entries for the explorer, in order.
struct ExploredSource<'a> {
    data: ExploredData<'a>,
    items: u64,
    games: GameEntries<'a>,
    pieces: Box<dyn Iterator<Item = Piece> + Send + 'a>,
}

/// The next pieces, of as many records as make a wave.
fn wave_of(pieces: &mut dyn Iterator<Item = Piece>) -> Vec<Piece> {
    let mut records = 0;
    let mut wave = Vec::new();
    while records < WAVE
        && let Some(piece) = pieces.next()
    {
        records += piece.len();
        wave.push(piece);
    }
    wave
}

impl<'a> Source<'a> {
    fn new(from: &IndexSource<'a>, with_stats: bool, meter: &Meter) -> Source<'a> {
        let size = WAVE / (4 * rayon::current_num_threads()).clamp(8, 128);
        let explored = |data: ExploredData<'a>| {
            let items = record_count(data.records);
            meter.add_total(items);
            ExploredSource {
                data,
                items,
                games: data.games.entries(),
                pieces: Box::new(pieces(data.records, size)),
            }
        };
        Source {
            postings: from.postings,
            with_stats,
            pieces: Box::new(pieces(from.postings, size)),
            games: from.games.walk(),
            last: LastWaves {
                files: Some(file_entries(from.files, from.games.len(), from.variant)),
                explored: from.explored.map(explored),
            },
        }
    }
}

impl Waves for Source<'_> {
    fn next_wave(&mut self) -> Result<Wave> {
        let wave = wave_of(&mut *self.pieces);
        if !wave.is_empty() {
            let made = wave
                .par_iter()
                .map(|piece| position_entries(piece, self.postings, self.with_stats))
                .collect::<Result<_>>()?;
            return Ok(Wave::Positions(made));
        }
        let mut records = Entries::default();
        self.games.fill(&mut records, RECORDS_WAVE)?;
        if records.len() > 0 {
            return Ok(Wave::Entries(records));
        }
        self.last.next_wave()
    }

    fn last(&self, positions: u64) -> Option<Entries> {
        self.last.last(positions)
    }
}

impl ExploredWaves for ExploredSource<'_> {
    fn next_wave(&mut self) -> Result<Wave> {
        let mut games = Entries::default();
        self.games.fill(&mut games, RECORDS_WAVE)?;
        if games.len() > 0 {
            return Ok(Wave::Entries(games));
        }
        let wave = wave_of(&mut *self.pieces);
        if wave.is_empty() {
            return Ok(Wave::End);
        }
        let (records, games, paging) = (
            self.data.records,
            self.data.games,
            Paging::for_items(self.items),
        );
        let made = wave
            .par_iter()
            .map(|piece| list_entries(piece, records, games, paging))
            .collect::<Result<_>>()?;
        Ok(Wave::Lists(made))
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn names(&self) -> u32 {
        self.data.games.name_count()
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::*;
    use crate::{
        index::Index,
        position::BookMove,
        sort::{Memory, Partition, Shards},
    };

    /// An index of postings given as key and id, and of as many games as there are ids.
    fn index_of(
        postings: impl Iterator<Item = (u64, u32)>,
        with_stats: bool,
    ) -> (tempfile::TempDir, Index) {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("idx");
        let shards = Shards::new(Memory::default());
        let mut records = Vec::new();
        let mut games = 0;
        for (key, id) in postings {
            games = games.max(u64::from(id) + 1);
            records.push(Posting::new(key, id, BookMove(7), Some(Color::White)));
            if records.len() == 100_000 {
                shards.append(&Partition::new(&records)).unwrap();
                records.clear();
            }
        }
        shards.append(&Partition::new(&records)).unwrap();
        let mut games_ = GameRecords::new(1 << 20, std::env::temp_dir());
        let record = b"A|B";
        for _ in 0..games.min(10) {
            games_.push_all(&[record.len() as u32], record).unwrap();
        }
        let writer = IndexWriter::create(&target, with_stats, |_| Ok(Vec::new())).unwrap();
        let sealed = shards.seal().unwrap();
        let (_, index) = writer
            .write(
                IndexSource {
                    postings: &sealed,
                    games: &games_,
                    files: &[],
                    variant: VariantChoice::default(),
                    explored: None,
                },
                &AtomicBool::new(false),
                &Meter::default(),
            )
            .unwrap();
        index.commit().unwrap();
        let index = Index::open(&target).unwrap();
        (dir, index)
    }

    #[test]
    fn numbers_that_begin_alike_keep_their_statistics_in_order() {
        // LevelDB finds nothing behind an entry that stands in the wrong place.
        let mut keys = vec![0, 9, u64::MAX];
        for length in 1..=19 {
            keys.extend([10_u64.pow(length), 10_u64.pow(length) + 1]);
            keys.push(1_844_674_407_370_955_161 / 10_u64.pow(length - 1));
        }
        keys.sort_unstable();
        keys.dedup();
        let postings = keys.iter().flat_map(|key| [(*key, 0), (*key, 3)]);
        let (_dir, index) = index_of(postings, true);
        for key in keys {
            assert_eq!(
                index.games(key).unwrap().iter().collect::<Vec<_>>(),
                [0, 3],
                "{key}"
            );
            let stats = index.stats(key).unwrap().unwrap();
            assert_eq!(
                (stats.games, stats.white_score, stats.draws),
                (2, 2, 0),
                "{key}"
            );
            assert_eq!(stats.moves, [BookMove(7)]);
        }
        assert!(index.games(8).unwrap().is_empty());
        assert_eq!(index.stats(8).unwrap(), None);
    }

    #[test]
    fn a_posting_list_of_100_megabytes() {
        const GAMES: u32 = 12_000_000;
        let ids = (0..GAMES).map(|id| (4711, id)).chain([(1, 5), (9, 5)]);
        let (_dir, index) = index_of(ids, false);
        let games = index.games(4711).unwrap();
        assert_eq!(games.len(), GAMES as usize);
        assert!(games.iter().eq(0..GAMES));
        assert_eq!(index.games(9).unwrap().iter().collect::<Vec<_>>(), [5]);
    }
}

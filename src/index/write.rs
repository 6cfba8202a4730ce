//! Writing the index: everything is put in the order of the keys, once.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, mpsc},
};

use rayon::Scope;
use shakmaty::Color;

use super::{
    GameRecords,
    layout::{self, PositionStats},
    manifest::{self, TableFile},
    posting::Posting,
    table::{self, Entries},
};
use crate::{
    error::{At, Error, Result},
    output::{AtomicDir, Finished},
    position::VariantChoice,
    sort::{SHARDS, Sealed},
};

/// About how many bytes of entries go into a table.
const TABLE_SIZE: usize = 1 << 20;

/// Writes an index beside its target.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    directory: AtomicDir,
    with_stats: bool,
}

/// An input as the index names it.
#[derive(Clone, Debug)]
pub(crate) struct IndexedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The id of its first game.
    pub first_id: u64,
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
    /// If there is something, `may_replace` judges it.
    pub(crate) fn create(
        target: &Path,
        with_stats: bool,
        may_replace: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<IndexWriter> {
        Ok(IndexWriter {
            directory: AtomicDir::create_over(target, may_replace)?,
            with_stats,
        })
    }

    /// Writes everything. The index is complete then, but not in place. Must be called in a rayon pool, on whose threads
    /// the tables are made while this one goes through the entries.
    pub(crate) fn write(
        self,
        postings: &Sealed<Posting>,
        games: &GameRecords,
        files: &[IndexedFile],
        variant: VariantChoice,
    ) -> Result<(IndexSummary, Finished)> {
        let tables = Mutex::new(Vec::new());
        let failure = Mutex::new(None);
        let summary = rayon::in_place_scope(|scope| {
            let mut sink = TableSink::new(scope, self.directory.path(), &tables, &failure);
            let mut summary = PostingWriter::new(self.with_stats).write(postings, &mut sink)?;
            games.for_each(|key, value| sink.put(key, value))?;
            for (key, value) in file_entries(files, games.len(), variant) {
                sink.put(&key, &value)?;
            }
            sink.finish();
            summary.games = games.len();
            Ok(summary)
        })?;
        if let Some(err) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(err);
        }
        let mut tables: Vec<TableFile> =
            tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        tables.sort_by_key(|table| table.number);
        manifest::write(self.directory.path(), &tables)?;
        Ok((summary, self.directory.finish()?))
    }
}

/// The entries that tell of the inputs, in order.
fn file_entries(
    files: &[IndexedFile],
    games: u64,
    variant: VariantChoice,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let mut entries = vec![(layout::TOTAL_GAMES.to_vec(), games.to_string().into_bytes())];
    if let Some(first) = files.first() {
        entries.push((layout::FILE_NAME.to_vec(), bytes(&first.path)));
    }
    if files.len() > 1 {
        let count = files.len().to_string().into_bytes();
        entries.push((layout::FILE_COUNT.to_vec(), count));
        for (i, file) in files.iter().enumerate() {
            let value = layout::file_value(file.first_id, &bytes(&file.path));
            entries.push((layout::file_key(i), value));
        }
    }
    if !variant.is_standard() {
        let name = variant.to_string().into_bytes();
        entries.push((layout::VARIANT.to_vec(), name));
    }
    entries.sort();
    entries
}

/// Turns sorted postings into the entries of positions.
struct PostingWriter {
    with_stats: bool,
    summary: IndexSummary,
    number: Vec<u8>,
    value: Vec<u8>,
    stats: PositionStats,
    last_id: Option<u32>,
    /// Statistics that wait until all numbers that begin with theirs have passed, the longest last.
    waiting: Vec<(Vec<u8>, PositionStats)>,
}

impl PostingWriter {
    fn new(with_stats: bool) -> PostingWriter {
        PostingWriter {
            with_stats,
            summary: IndexSummary::default(),
            number: Vec::new(),
            value: Vec::new(),
            stats: PositionStats::default(),
            last_id: None,
            waiting: Vec::new(),
        }
    }

    fn write(
        mut self,
        postings: &Sealed<Posting>,
        sink: &mut TableSink<'_, '_>,
    ) -> Result<IndexSummary> {
        let mut open = None;
        for shard in 0..SHARDS {
            let mut failed = Ok(());
            postings.for_each(shard, |record| {
                let position = record.position();
                if open != Some(position) {
                    if open.is_some() && failed.is_ok() {
                        failed = self.close(sink);
                    }
                    open = Some(position);
                    self.begin(record.key());
                }
                self.add(record);
            })?;
            failed?;
        }
        if open.is_some() {
            self.close(sink)?;
        }
        self.release(None, sink)?;
        Ok(self.summary)
    }

    fn begin(&mut self, key: u64) {
        let mut buffer = itoa::Buffer::new();
        self.number.clear();
        self.number.extend_from_slice(buffer.format(key).as_bytes());
        self.value.clear();
        self.stats = PositionStats::default();
        self.last_id = None;
    }

    fn add(&mut self, record: Posting) {
        let id = record.id();
        if self.last_id != Some(id) {
            self.last_id = Some(id);
            layout::write_id(&mut self.value, id);
            self.stats.games += 1;
            match record.winner() {
                Some(Color::White) => self.stats.white_score += 1,
                Some(Color::Black) => self.stats.white_score -= 1,
                None => self.stats.draws += 1,
            }
        }
        if self.with_stats {
            let mv = record.book_move();
            if mv != crate::position::BookMove::NONE {
                self.stats.moves.push(mv);
            }
        }
    }

    fn close(&mut self, sink: &mut TableSink<'_, '_>) -> Result<()> {
        self.summary.positions += 1;
        self.summary.postings += self.stats.games;
        if self.with_stats {
            let number = self.number.clone();
            self.release(Some(&number), sink)?;
            let mut stats = std::mem::take(&mut self.stats);
            stats.moves.sort_unstable();
            stats.moves.dedup();
            self.waiting.push((number, stats));
        }
        sink.put(&self.number, &self.value)
    }

    /// Puts the statistics whose turn it is before `next`.
    fn release(&mut self, next: Option<&[u8]>, sink: &mut TableSink<'_, '_>) -> Result<()> {
        while let Some((number, stats)) = self
            .waiting
            .pop_if(|(number, _)| next.is_none_or(|next| layout::ends_before(number, next)))
        {
            for (key, value) in stats.entries(&number) {
                sink.put(&key, &value)?;
            }
        }
        Ok(())
    }
}

/// Takes entries in order and has tables made of them.
struct TableSink<'a, 'scope> {
    scope: &'a Scope<'scope>,
    directory: &'scope Path,
    tables: &'scope Mutex<Vec<TableFile>>,
    failure: &'scope Mutex<Option<Error>>,
    entries: Entries,
    next_number: u64,
    /// A place for each table that may be in the making.
    places: mpsc::SyncSender<()>,
    freed: std::sync::Arc<Mutex<mpsc::Receiver<()>>>,
}

impl<'a, 'scope> TableSink<'a, 'scope> {
    fn new(
        scope: &'a Scope<'scope>,
        directory: &'scope Path,
        tables: &'scope Mutex<Vec<TableFile>>,
        failure: &'scope Mutex<Option<Error>>,
    ) -> TableSink<'a, 'scope> {
        let (places, freed) = mpsc::sync_channel(rayon::current_num_threads() + 1);
        TableSink {
            scope,
            directory,
            tables,
            failure,
            entries: Entries::default(),
            next_number: manifest::FIRST_TABLE,
            places,
            freed: std::sync::Arc::new(Mutex::new(freed)),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.entries.push(key, value);
        if self.entries.size() >= TABLE_SIZE {
            self.make_table();
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(err) = failure.take() {
                return Err(err);
            }
        }
        Ok(())
    }

    fn finish(mut self) {
        self.make_table();
    }

    fn make_table(&mut self) {
        if self.entries.len() == 0 {
            return;
        }
        let entries = std::mem::take(&mut self.entries);
        let number = self.next_number;
        self.next_number += 1;
        self.wait_for_place();
        let (directory, tables, failure) = (self.directory, self.tables, self.failure);
        let freed = std::sync::Arc::clone(&self.freed);
        self.scope.spawn(move |_| {
            match write_table(directory, number, &entries) {
                Ok(table) => tables
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(table),
                Err(err) => {
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert(err);
                }
            }
            drop(entries);
            let freed = freed.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = freed.recv();
        });
    }

    /// Waits until a table may be made, and makes one meanwhile if this is a thread of the pool: with
    /// one thread there is nobody else to.
    fn wait_for_place(&self) {
        while self.places.try_send(()).is_err() {
            match rayon::yield_now() {
                Some(rayon::Yield::Executed) => {}
                _ => std::thread::yield_now(),
            }
        }
    }
}

fn write_table(directory: &Path, number: u64, entries: &Entries) -> Result<TableFile> {
    let path = directory.join(TableFile::name(number));
    let table = table::build(entries)
        .map_err(|err| Error::file(&path, format!("cannot make the table: {err}")))?;
    fs::write(&path, &table).at(&path, "write")?;
    Ok(TableFile {
        number,
        size: table.len() as u64,
        entries: entries.len() as u64,
        first_key: entries.first_key().to_vec(),
        last_key: entries.last_key().to_vec(),
    })
}

#[cfg(test)]
mod tests {
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
        let writer = IndexWriter::create(&target, with_stats, |_| Ok(())).unwrap();
        let sealed = shards.seal().unwrap();
        let (_, index) = writer
            .write(&sealed, &games_, &[], VariantChoice::default())
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

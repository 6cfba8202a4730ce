//! The index among the outputs of a run: what it needs of the games, and writing it.
//!
//! `without/indexing.rs` stands in for this file where the feature `leveldb` is left out.

use std::path::Path;

use shakmaty::Color;

use super::{MakeBook, Phase, report::IndexReport};
use crate::{
    error::{At, Error, Result},
    index::{self, GameRecords, IndexWriter, IndexedFile, layout, posting::Posting},
    output::Finished,
    pgn::Tags,
    position::BookMove,
    sort::{Memory, Partition, Shards},
};

pub(super) type Writer = IndexWriter;

/// What an index needs of the games of a batch.
#[derive(Default)]
pub(super) struct BatchIndex {
    /// Postings of games numbered from the first of the batch.
    postings: Vec<Posting>,
    /// The records of all games, joined, and the length of each.
    records: Vec<u8>,
    record_lengths: Vec<u32>,
}

impl BatchIndex {
    /// Makes room for the postings of so many half-moves.
    pub(super) fn reserve(&mut self, plies: usize) {
        self.postings.reserve(plies);
    }

    /// Adds the record of the next game, whose first tag name stands at `offset` of the input.
    pub(super) fn add_game(&mut self, tags: &Tags<'_>, offset: Option<u64>) {
        let offset = offset.map_or(layout::NO_OFFSET, |offset| offset as i64);
        let start = self.records.len();
        layout::write_game(&mut self.records, tags, offset);
        let length = self.records.len() - start;
        self.record_lengths.push(length as u32);
    }

    /// Notes which positions game `id` of the batch reached: those before its moves, and the last.
    pub(super) fn add_postings(
        &mut self,
        id: u32,
        winner: Option<Color>,
        moves: impl Iterator<Item = (u64, BookMove)>,
        last_key: u64,
    ) {
        let postings = moves.map(|(key, mv)| Posting::new(key, id, mv, winner));
        self.postings.extend(postings);
        let last = Posting::new(last_key, id, BookMove::NONE, winner);
        self.postings.push(last);
    }

    /// Forgets which positions some games reached, of ascending ids.
    pub(super) fn leave_out(&mut self, ids: &[u32]) {
        if !ids.is_empty() {
            self.postings
                .retain(|posting| ids.binary_search(&posting.id()).is_err());
        }
    }
}

/// The records of all games, in the order of the inputs.
pub(super) struct IndexedGames {
    records: GameRecords,
}

impl IndexedGames {
    /// Collects the games of a run, `None` if it makes no index.
    pub(super) fn new(run: &MakeBook) -> Option<IndexedGames> {
        run.leveldb.as_ref().map(|_| IndexedGames {
            records: GameRecords::new(run.memory / 8, run.temp_dir.clone()),
        })
    }

    /// Keeps the records of the next batch, which is of `input`, and numbers its postings.
    pub(super) fn place(&mut self, batch: BatchIndex, input: &Path) -> Result<Placed> {
        let first_id = self.records.len();
        self.records
            .push_all(&batch.record_lengths, &batch.records)?;
        if self.records.len() > u64::from(u32::MAX) {
            return Err(Error::file(
                input,
                "an index holds at most 4294967295 games: make several",
            ));
        }
        Ok(Placed {
            postings: batch.postings,
            first_id: first_id as u32,
        })
    }
}

/// Postings of games whose ids are known.
pub(super) struct Placed {
    postings: Vec<Posting>,
    /// What has to be added to the ids of their games.
    pub(super) first_id: u32,
}

/// The postings of all games.
pub(super) struct Postings(Shards<Posting>);

impl Postings {
    /// Keeps up to `memory` in memory, the rest in temporary files.
    pub(super) fn new(memory: Memory) -> Postings {
        Postings(Shards::new(memory))
    }

    /// Takes the postings of a batch, from any thread.
    pub(super) fn add(&self, mut batch: Placed) -> Result<()> {
        for posting in &mut batch.postings {
            *posting = posting.shifted_by(batch.first_id);
        }
        self.0.append(&Partition::new(&batch.postings))
    }

    /// How many bytes are in temporary files.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes()
    }
}

/// What goes into an index.
pub(super) struct CollectedIndex {
    postings: Postings,
    games: IndexedGames,
    /// The id of the first game of each input.
    first_ids: Vec<u64>,
}

impl CollectedIndex {
    pub(super) fn new(
        postings: Postings,
        games: IndexedGames,
        first_ids: Vec<u64>,
    ) -> CollectedIndex {
        CollectedIndex {
            postings,
            games,
            first_ids,
        }
    }
}

impl MakeBook {
    /// Begins the index, if there is to be one.
    pub(super) fn begin_index(&self) -> Result<Option<Writer>> {
        let begin = |path| {
            IndexWriter::create(path, self.index_stats, |old| {
                index::check_replaceable(old, self.force)
            })
        };
        self.leveldb.as_deref().map(begin).transpose()
    }

    /// Writes the index.
    pub(super) fn write_index(
        &self,
        writer: Writer,
        collected: CollectedIndex,
    ) -> Result<(IndexReport, Finished)> {
        let meter = self.progress.enter(Phase::Index);
        let postings = collected.postings.0.seal()?;
        let files = self.indexed_files(&collected.first_ids)?;
        let (written, index) = writer.write(
            &postings,
            &collected.games.records,
            &files,
            self.variant,
            &self.stop,
            meter,
        )?;
        let report = IndexReport {
            path: self.leveldb.clone().expect("the run writes an index"),
            games: written.games,
            positions: written.positions,
            postings: written.postings,
        };
        Ok((report, index))
    }

    /// The inputs as the index names them.
    fn indexed_files(&self, first_ids: &[u64]) -> Result<Vec<IndexedFile>> {
        self.inputs
            .iter()
            .zip(first_ids)
            .map(|(input, first_id)| {
                let path = if input.is_stdin() {
                    input.path().to_owned()
                } else {
                    std::path::absolute(input.path()).at(input.path(), "find")?
                };
                Ok(IndexedFile {
                    path,
                    first_id: *first_id,
                })
            })
            .collect()
    }
}

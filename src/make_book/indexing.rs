//! The index among the outputs of a run: what it needs of the games, and writing it.

use std::{collections::HashSet, path::Path};

use shakmaty::Color;

use super::{MakeBook, Phase, explored_game::ExploredGame, report::IndexReport};
use crate::{
    error::{At, Error, Result},
    index::{
        self, ExploredData, GameRecords, IndexSource, IndexWriter, IndexedFile,
        explored::{ExploredGames, GameFacts, Played},
        layout::{self, GamePlace, Subject},
        posting::Posting,
    },
    output::Finished,
    pgn::Tags,
    position::{self, BookMove},
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
    /// The first positions of games that count: ids and keys.
    starts: Vec<(u32, u64)>,
    /// What the explorer needs of all games, if it is wanted, and what they played where.
    facts: GameFacts,
    played: Vec<Played>,
}

impl BatchIndex {
    /// Makes room for the postings of so many half-moves.
    pub(super) fn reserve(&mut self, plies: usize) {
        self.postings.reserve(plies);
    }

    /// Adds the record of the next game, which begins at `start` of the input, with tags or without. The start of one
    /// without tags is kept for the explorer.
    pub(super) fn add_game(&mut self, tags: &Tags<'_>, start: u64, has_tags: bool, explores: bool) {
        let place = match has_tags {
            true => GamePlace::Tags(start),
            false => GamePlace::Moves(start),
        };
        let before = self.records.len();
        layout::write_game(&mut self.records, tags, place);
        if explores && !has_tags {
            layout::append_start(&mut self.records, start.to_string().as_bytes());
        }
        let length = self.records.len() - before;
        self.record_lengths.push(length as u32);
    }

    /// Makes room for what so many half-moves played where.
    pub(super) fn reserve_played(&mut self, plies: usize) {
        self.played.reserve(plies);
    }

    /// Adds what the explorer keeps of the next game.
    pub(super) fn add_facts(&mut self, tags: &Tags<'_>) {
        self.facts.add(tags);
    }

    /// Notes what the last game, which counts, played where.
    pub(super) fn add_played(&mut self, game: &ExploredGame<'_>) {
        self.facts.count_last(game.result, game.plies);
        let white_to_move = |ply| game.is_white_to_move(ply);
        let subject = |identity| Subject::position(game.variant, identity);
        let last = subject(game.last);
        let turn = white_to_move(game.moves.len());
        self.played.push(Played::end(last, game.id, turn));
        if game.moves.len() > Played::LAST_PLY {
            self.add_played_once(game);
            return;
        }
        let moves = game.moves.iter().enumerate();
        self.played.extend(moves.map(|(ply, (identity, mv))| {
            let subject = subject(*identity);
            Played::new(subject, game.id, ply as u16 + 1, white_to_move(ply), *mv)
        }));
    }

    /// The same of a game of so many half-moves that records cannot count them: of each position only the last move.
    #[cold]
    fn add_played_once(&mut self, game: &ExploredGame<'_>) {
        let mut known = HashSet::new();
        for (ply, (identity, mv)) in game.moves.iter().enumerate().rev() {
            if known.insert(*identity) {
                let turn = game.is_white_to_move(ply);
                let subject = Subject::position(game.variant, *identity);
                self.played
                    .push(Played::new(subject, game.id, 1, turn, *mv));
            }
        }
    }

    /// Notes which positions game `id` of the batch reached: those before its moves, and the last.
    pub(super) fn add_postings(
        &mut self,
        id: u32,
        winner: Option<Color>,
        moves: impl Iterator<Item = (u64, BookMove)>,
        last_key: u64,
    ) {
        let first = self.postings.len();
        let postings = moves.map(|(key, mv)| Posting::new(key, id, mv, winner));
        self.postings.extend(postings);
        let start = self.postings.get(first);
        self.starts
            .push((id, start.map_or(last_key, |posting| posting.key())));
        let last = Posting::new(last_key, id, BookMove::NONE, winner);
        self.postings.push(last);
    }

    /// Forgets which positions some games reached, of ascending ids.
    pub(super) fn leave_out(&mut self, ids: &[u32]) {
        if !ids.is_empty() {
            let stays = |id: u32| ids.binary_search(&id).is_err();
            self.postings.retain(|posting| stays(posting.id()));
            self.played.retain(|played| stays(played.id()));
            self.starts.retain(|(id, _)| stays(*id));
            self.facts.leave_out(ids);
        }
    }
}

impl ExploredGame<'_> {
    /// Whether White is to move behind so many half-moves.
    fn is_white_to_move(&self, plies: usize) -> bool {
        self.first_turn.is_white() == plies.is_multiple_of(2)
    }
}

/// The records of all games, in the order of the inputs.
pub(super) struct IndexedGames {
    records: GameRecords,
    /// What the explorer needs of them, if it is wanted.
    explored: Option<ExploredGames>,
    /// The key of the position that most games start from, and how many bytes the list of these takes.
    start: u64,
    start_len: u64,
}

impl IndexedGames {
    /// Collects the games of a run, `None` if it makes no index.
    pub(super) fn new(run: &MakeBook) -> Option<IndexedGames> {
        let memory = run.memory / 8;
        let explored = || ExploredGames::new(memory / 2, run.temp_dir.clone());
        run.leveldb.as_ref().map(|_| IndexedGames {
            records: GameRecords::new(
                if run.explores() { memory / 2 } else { memory },
                run.temp_dir.clone(),
            ),
            explored: run.explores().then(explored),
            start: position::key(&run.variant.only().unwrap_or_default().start()),
            start_len: 0,
        })
    }

    /// Keeps the records of the next batch, which is of `input`, and numbers its postings.
    pub(super) fn place(&mut self, batch: BatchIndex, input: &Path) -> Result<Placed> {
        let first_id = self.records.len();
        self.records
            .push_all(&batch.record_lengths, &batch.records)?;
        if self.records.len() > u64::from(u32::MAX) {
            return Err(Error::too_large(
                input,
                "an index holds at most 4294967295 games: make several",
            ));
        }
        let from_start = batch.starts.iter().filter(|(_, key)| *key == self.start);
        let len: u64 = from_start
            .map(|(id, _)| layout::id_len(first_id as u32 + id))
            .sum();
        self.start_len += len;
        if self.start_len > layout::LONGEST {
            return Err(Error::too_large(input, layout::TOO_LONG));
        }
        let lists = match &mut self.explored {
            Some(explored) => explored.push_all(batch.facts)?,
            None => Vec::new(),
        };
        Ok(Placed {
            postings: batch.postings,
            played: batch.played,
            lists,
            first_id: first_id as u32,
        })
    }
}

/// Postings of games whose ids are known.
pub(super) struct Placed {
    postings: Vec<Posting>,
    played: Vec<Played>,
    /// What else the explorer lists, under the ids of all games.
    lists: Vec<Played>,
    /// What has to be added to the ids of their games.
    pub(super) first_id: u32,
}

/// The postings of all games, and what the games played where.
pub(super) struct Postings {
    postings: Shards<Posting>,
    played: Option<Shards<Played>>,
}

impl Postings {
    /// Keeps up to `memory` in memory, the rest in temporary files.
    pub(super) fn new(run: &MakeBook, memory: Memory) -> Postings {
        if !run.explores() {
            return Postings {
                postings: Shards::new(memory),
                played: None,
            };
        }
        let half = Memory {
            bytes: memory.bytes / 2,
            ..memory
        };
        Postings {
            postings: Shards::new(half.clone()),
            played: Some(Shards::new(half)),
        }
    }

    /// Takes the postings of a batch, from any thread.
    pub(super) fn add(&self, mut batch: Placed) -> Result<()> {
        for posting in &mut batch.postings {
            *posting = posting.shifted_by(batch.first_id);
        }
        self.postings.append(&Partition::new(&batch.postings))?;
        let Some(played) = &self.played else {
            return Ok(());
        };
        drop(batch.postings);
        for record in &mut batch.played {
            *record = record.shifted_by(batch.first_id);
        }
        batch.played.append(&mut batch.lists);
        played.append(&Partition::new(&batch.played))
    }

    /// How many bytes are in temporary files.
    pub(super) fn spilled_bytes(&self) -> u64 {
        let played = self.played.as_ref().map_or(0, Shards::spilled_bytes);
        self.postings.spilled_bytes() + played
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
        let postings = collected.postings.postings.seal()?;
        let played = collected.postings.played.map(Shards::seal).transpose()?;
        let files = self.indexed_files(&collected.first_ids)?;
        let games = collected.games;
        let explored = played.as_ref().zip(games.explored.as_ref());
        let source = IndexSource {
            postings: &postings,
            games: &games.records,
            files: &files,
            variant: self.variant,
            explored: explored.map(|(records, games)| ExploredData { records, games }),
        };
        let (written, index) = writer.write(source, &self.stop, meter)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgn::Input;

    #[test]
    fn games_that_no_list_can_hold_are_refused_when_they_come() {
        let run = MakeBook::new([Input::file("games.pgn")]).leveldb("idx");
        let mut games = IndexedGames::new(&run).unwrap();
        let batch = |start: u64| {
            let mut batch = BatchIndex::default();
            batch.add_postings(0, None, [(start, BookMove(7))].into_iter(), 5);
            batch.record_lengths.push(0);
            batch
        };
        let start = games.start;
        assert_eq!(start, 0x463b_9618_1691_fc9c);
        let mut place = |start| games.place(batch(start), "games.pgn".as_ref());
        place(start).unwrap();
        games.start_len = layout::LONGEST - 2;
        let mut place = |start| games.place(batch(start), "games.pgn".as_ref());
        // Other positions have lists of their own.
        place(1).unwrap();
        place(start).unwrap();
        let err = place(start).err().unwrap().to_string();
        assert!(
            err.contains("games.pgn") && err.contains("440 million"),
            "{err}"
        );
    }
}

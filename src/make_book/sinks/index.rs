//! Writes an index in the format of polyglot's LevelDB fork as an output of a run.

use std::{path::Path, sync::Mutex};

use crate::{
    chess::position::{self, BookMove, Variant},
    error::{At, Error, Result},
    formats::{
        fork_index::{
            IndexedFile,
            layout::{self, GameOffset},
            posting::Posting,
        },
        index::{GameRecords, IndexSource, IndexWriter},
    },
    games::pgn::GameReader,
    make_book::{
        budget::Budget,
        data::CollectedData,
        inputs::Inputs,
        needs::Needs,
        options::MakeBook,
        report::{IndexReport, Phase},
        sink::{BatchSink, CountedGame, Plan, Sink},
    },
    storage::{
        output::Finished,
        sort::{Memory, Shards},
    },
    task,
};

struct IndexSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: IndexWriter,
    games: Mutex<IndexedGames>,
    /// The postings, which are pairs of a position and a game that reached it.
    postings: Shards<Posting>,
}

/// Returns a plan for writing an index in the format of polyglot's LevelDB fork, or `None` if the options request none.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    _inputs: &'a Inputs<'_>,
    _needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.leveldb.as_deref()?;
    Some(Plan {
        path,
        needs_games_reason: Some(
            "an index for front-ends is made from games, and only an explorer's index can be made from counts",
        ),
        memory_shares: 1,
        begin: Box::new(move |budget| Ok(Box::new(IndexSink::begin(options, path, budget)?))),
    })
}

/// Returns the descriptions of the input files that an index stores. `first_games` contains, for each input, the
/// number of its first game.
///
/// # Errors
///
/// Returns an error if the absolute path of an input cannot be determined.
pub(super) fn indexed_files(options: &MakeBook, first_games: &[u64]) -> Result<Vec<IndexedFile>> {
    let inputs = options.inputs.iter().zip(first_games);
    inputs
        .map(|(input, first_id)| {
            let path = if input.is_stdin() {
                input.path().to_owned()
            } else {
                std::path::absolute(input.path()).at(input.path(), "find")?
            };
            Ok(IndexedFile {
                path,
                first_id: *first_id,
                untagged: Variant::Standard,
                options: String::new(),
            })
        })
        .collect()
}

/// Returns the maximum memory, in bytes, that one index may occupy until it is written. All indexes of the run together
/// may occupy half of the memory budget.
pub(super) fn held_bytes(options: &MakeBook) -> usize {
    let indexes = usize::from(options.leveldb.is_some()) + usize::from(options.explorer.is_some());
    options.memory.bytes / 2 / indexes.max(1)
}

/// Returns the offset in the input at which a game begins. A game begins at its tags or, if it has no tags, at its
/// moves. `batch_offset` is the offset of the game's batch in the input.
pub(super) fn offset_of(game: &GameReader<'_>, batch_offset: u64) -> GameOffset {
    let start = batch_offset + game.game_offset() as u64;
    if game.first_tag_offset().is_some() {
        GameOffset::Tags(start)
    } else {
        GameOffset::Moves(start)
    }
}

/// Returns an error if an index cannot contain `games` games. The error names `input`, the path of the input that
/// exceeds the limit.
pub(super) fn refuse_too_many(games: u64, input: &Path) -> Result<()> {
    if games > u64::from(u32::MAX) {
        let problem = "an index can contain at most 4294967295 games: make several indexes";
        return Err(Error::too_large(input, problem));
    }
    Ok(())
}

impl<'a> IndexSink<'a> {
    fn begin(options: &'a MakeBook, path: &'a Path, budget: &Budget) -> Result<IndexSink<'a>> {
        Ok(IndexSink {
            options,
            path,
            writer: IndexWriter::create(path, options.force)?,
            games: Mutex::new(IndexedGames::new(options, &budget.games)),
            postings: Shards::new(budget.share.clone()),
        })
    }
}

impl Sink for IndexSink<'_> {
    fn batch(&self, plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        let mut games = BatchGames::default();
        games.postings.reserve(plies);
        Some(Box::new(IndexBatch {
            sink: self,
            games,
            first_id: 0,
        }))
    }

    fn spilled_bytes(&self) -> u64 {
        self.postings.spilled_bytes()
    }

    fn held_bytes(&self) -> usize {
        held_bytes(self.options)
    }

    fn cost(&self) -> Option<(Phase, u64)> {
        let cost = if self.options.index_stats { 5000 } else { 2500 };
        Some((Phase::Index, cost))
    }

    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Index);
        let files = indexed_files(self.options, &counted.games.first_games)?;
        let postings = self.postings.sort()?;
        let games = task::unlocked(self.games);
        let source = IndexSource {
            postings: &postings,
            with_stats: self.options.index_stats,
            games: &games.records,
            files: &files,
            variant: self.options.variant,
        };
        let (written, index) = self.writer.write(source, &self.options.stop, meter)?;
        counted.games.report.index = Some(IndexReport {
            path: self.path.to_owned(),
            games: written.games,
            positions: written.positions,
            postings: written.postings,
            rows: None,
        });
        Ok(index)
    }
}

/// The records of all games of an index, in the order of the inputs. A record contains the tags of a game and the
/// offset of the game in its input.
struct IndexedGames {
    records: GameRecords,
    /// The key of the position in which most games start.
    start: u64,
    start_len: u64,
}

impl IndexedGames {
    fn new(options: &MakeBook, memory: &Memory) -> IndexedGames {
        IndexedGames {
            records: GameRecords::new(memory.bytes, memory.temp_dir.clone()),
            start: position::key(&options.variant.only().unwrap_or_default().start()),
            start_len: 0,
        }
    }

    /// Adds the records of the next batch of games, and returns the id of its first game. `input` is the path of the
    /// batch's input.
    ///
    /// # Errors
    ///
    /// Returns an error that names `input` if the index would contain too many games. The ids of all games that reached
    /// a position form a single entry of the index, whose size is limited. Therefore, also returns this error if too
    /// many games begin in the usual starting position.
    fn add(&mut self, batch: &mut BatchGames, input: &Path) -> Result<u32> {
        let first_id = self.records.len();
        self.records
            .push_all(&batch.record_lengths, &batch.records)?;
        batch.records = Vec::new();
        refuse_too_many(self.records.len(), input)?;
        let first_id = first_id as u32;
        let from_start = batch.starts.iter().filter(|(_, key)| *key == self.start);
        let lengths = from_start.map(|(id, _)| layout::id_len(first_id + id));
        self.start_len += lengths.sum::<u64>();
        if self.start_len > layout::MAX_LIST_BYTES {
            return Err(Error::too_large(input, layout::TOO_LONG));
        }
        Ok(first_id)
    }
}

/// Collects the data that an index needs from one batch of games.
struct IndexBatch<'a> {
    sink: &'a IndexSink<'a>,
    games: BatchGames,
    /// The number to add to the ids of the games of this batch. It is known once all earlier batches have been
    /// processed.
    first_id: u32,
}

/// The data that an index needs from one batch of games. Games are numbered from 0 within the batch.
#[derive(Default)]
struct BatchGames {
    postings: Vec<Posting>,
    /// The records of all games, concatenated. Their lengths are in `record_lengths`.
    records: Vec<u8>,
    record_lengths: Vec<u32>,
    /// The id of each counted game, with the key of its first position.
    starts: Vec<(u32, u64)>,
}

impl BatchGames {
    /// Adds a posting for each position of a game, including the last one. A posting is an entry that says that a game
    /// reached a position. If `with_moves` is `true`, it also contains the move that was played there.
    fn add_postings(&mut self, game: &CountedGame<'_>, with_moves: bool) {
        let (id, winner) = (game.number, game.result.winner());
        let first = game.plies.first();
        self.starts
            .push((id, first.map_or(game.last_key, |ply| ply.key)));
        self.postings.extend(game.plies.iter().map(|ply| {
            let mv = if with_moves { ply.mv } else { BookMove::NONE };
            Posting::new(ply.key, id, mv, winner)
        }));
        let last = Posting::new(game.last_key, id, BookMove::NONE, winner);
        self.postings.push(last);
    }
}

impl BatchSink for IndexBatch<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, batch_offset: u64) {
        let BatchGames {
            records,
            record_lengths,
            ..
        } = &mut self.games;
        let before = records.len();
        layout::write_game(
            records,
            game.tags(),
            offset_of(game, batch_offset),
            layout::FORK_FIELDS,
        );
        record_lengths.push((records.len() - before) as u32);
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        let with_moves = self.sink.options.index_stats;
        self.games.add_postings(game, with_moves);
    }

    fn leave_out(&mut self, games: &[u32]) {
        let stays = |id: u32| games.binary_search(&id).is_err();
        self.games.postings.retain(|posting| stays(posting.id()));
        self.games.starts.retain(|(id, _)| stays(*id));
    }

    fn process_in_order(&mut self, input: &Path) -> Result<()> {
        let mut all = task::lock(&self.sink.games);
        self.first_id = all.add(&mut self.games, input)?;
        Ok(())
    }

    fn add(self: Box<Self>) -> Result<()> {
        let mut postings = self.games.postings;
        for posting in &mut postings {
            *posting = posting.shifted_by(self.first_id);
        }
        self.sink.postings.append(&postings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::pgn::{GameResult, Input};

    #[test]
    fn games_that_no_list_can_hold_are_refused_when_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["idx", "second"].map(|name| dir.path().join(name));
        let options = MakeBook::new([Input::file("games.pgn")]);
        let [sink, second] = paths
            .each_ref()
            .map(|path| IndexSink::begin(&options, path, &Budget::default()).unwrap());
        let put_in_order = |sink: &IndexSink<'_>, last_key: u64| {
            let mut batch = sink.batch(0).unwrap();
            let mut games = GameReader::new(b"1. e4 *");
            assert!(games.next_game());
            batch.next_game(&games, 0);
            batch.count(&CountedGame {
                number: 0,
                end: 0,
                matches: &[],
                variant: Variant::Standard,
                is_tallied: true,
                result: GameResult::Unknown,
                first_turn: shakmaty::Color::White,
                start: None,
                length: 0,
                hash: 0,
                plies: &[],
                identities: &[],
                exact_identities: &[],
                branches: &[],
                last_key,
                last_identity: last_key,
                opening: Default::default(),
                last_exact_identity: last_key,
                last_in_book: true,
            });
            batch.process_in_order("games.pgn".as_ref())
        };
        let in_order = |last_key| put_in_order(&sink, last_key);
        let start = task::lock(&sink.games).start;
        assert_eq!(start, 0x463b_9618_1691_fc9c);
        in_order(start).unwrap();
        task::lock(&sink.games).start_len = layout::MAX_LIST_BYTES - 2;
        // Other positions have lists of their own.
        in_order(1).unwrap();
        in_order(start).unwrap();
        let err = in_order(start).unwrap_err().to_string();
        assert!(
            err.contains("games.pgn") && err.contains("440 million"),
            "{err}"
        );
        let most = u64::from(u32::MAX);
        refuse_too_many(most, "games.pgn".as_ref()).unwrap();
        let too_many = refuse_too_many(most + 1, "games.pgn".as_ref()).unwrap_err();
        for err in [err, too_many.to_string()] {
            assert!(err.contains("make several indexes"), "{err}");
        }
        // A second index takes the games that the first one refuses.
        put_in_order(&second, start).unwrap();
    }
}

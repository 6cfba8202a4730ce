//! An index of games as an output.

use std::{collections::HashSet, path::Path, sync::Mutex};

use crate::{
    error::{At, Error, Result},
    index::{
        ExploredData, GameRecords, IndexSource, IndexWriter, IndexedFile,
        explored::{ExploredGames, GameFacts, ListRecord},
        layout::{self, GamePlace, Subject},
        posting::Posting,
    },
    make_book::{
        budget::Budget,
        counted::Counted,
        inputs::{Inputs, ended_at},
        needs::Needs,
        options::MakeBook,
        progress::Phase,
        report::IndexReport,
        sink::{BatchSink, CountedGame, Plan, Sink},
    },
    output::Finished,
    pgn::GameReader,
    position::{self, BookMove},
    sort::{Memory, Shards},
    task,
};

struct IndexSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: IndexWriter,
    games: Mutex<IndexedGames>,
    /// Pairs of a position and a game that reached it.
    postings: Shards<Posting>,
    /// The moves of the games by position, for the explorer.
    played: Option<Shards<ListRecord>>,
}

/// Returns the plan for the index, if the options ask for one.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    inputs: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.leveldb.as_deref()?;
    #[cfg(feature = "parquet")]
    if let Some(plan) = super::counts::index::plan(options, inputs, needs) {
        return Some(plan);
    }
    needs.game_identities |= options.explorer;
    needs.game_lengths |= options.explorer;
    needs.openings |= options.explorer;
    Some(Plan {
        path,
        of_games: Some(match (options.explorer, options.index_stats) {
            (false, _) => "an index without --explorer is made of games",
            (true, true) => "an index with --index-stats is made of games",
            (true, false) => "an index is made of games or of counts alone",
        }),
        memory_shares: 1 + usize::from(options.explorer),
        begin: Box::new(move |budget| Ok(Box::new(IndexSink::begin(options, path, budget)?))),
    })
}

impl<'a> IndexSink<'a> {
    fn begin(options: &'a MakeBook, path: &'a Path, budget: &Budget) -> Result<IndexSink<'a>> {
        Ok(IndexSink {
            options,
            path,
            writer: IndexWriter::create(path, options.force)?,
            games: Mutex::new(IndexedGames::new(options, &budget.games)),
            postings: Shards::new(budget.share.clone()),
            played: options.explorer.then(|| Shards::new(budget.share.clone())),
        })
    }

    /// Returns the descriptions of the inputs that the index stores. `first_games` contains the number of the first
    /// game of each input.
    fn indexed_files(&self, first_games: &[u64]) -> Result<Vec<IndexedFile>> {
        let inputs = self.options.inputs.iter().zip(first_games);
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
                })
            })
            .collect()
    }
}

impl Sink for IndexSink<'_> {
    fn batch(&self, plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        let mut games = BatchGames::default();
        games.postings.reserve(plies);
        if self.played.is_some() {
            games.played.reserve(plies);
        }
        Some(Box::new(IndexBatch {
            sink: self,
            games,
            first_id: 0,
        }))
    }

    fn spilled_bytes(&self) -> u64 {
        let played = self.played.as_ref().map_or(0, Shards::spilled_bytes);
        self.postings.spilled_bytes() + played
    }

    fn held_bytes(&self) -> usize {
        self.options.memory.bytes / 2
    }

    fn cost(&self) -> Option<(Phase, u64)> {
        let cost = if self.options.index_stats { 5000 } else { 2500 };
        Some((Phase::Index, cost))
    }

    fn write(self: Box<Self>, counted: &mut Counted<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Index);
        let files = self.indexed_files(&counted.first_games)?;
        let postings = self.postings.seal()?;
        let played = self.played.map(Shards::seal).transpose()?;
        let games = task::unlocked(self.games);
        let explored = played.as_ref().zip(games.explored.as_ref());
        let source = IndexSource {
            postings: &postings,
            with_stats: self.options.index_stats,
            games: &games.records,
            files: &files,
            variant: self.options.variant,
            explored: explored.map(|(records, games)| ExploredData {
                records,
                games,
                max_ply: ended_at([self.options.max_ply]),
            }),
        };
        let (written, index) = self.writer.write(source, &self.options.stop, meter)?;
        counted.report.index = Some(IndexReport {
            path: self.path.to_owned(),
            games: written.games,
            positions: written.positions,
            postings: written.postings,
            rows: None,
        });
        Ok(index)
    }
}

/// The records of all games, in the order of the inputs.
struct IndexedGames {
    records: GameRecords,
    /// The explorer's data about the games, or `None` if the index does not contain them.
    explored: Option<ExploredGames>,
    /// The key of the position from which most games start. `start_len` is the length, in bytes, of the list of the ids
    /// of these games.
    start: u64,
    start_len: u64,
}

impl IndexedGames {
    fn new(options: &MakeBook, memory: &Memory) -> IndexedGames {
        let temp_dir = || memory.temp_dir.clone();
        let memory = memory.bytes / (1 + usize::from(options.explorer));
        let explored = || ExploredGames::new(memory, temp_dir());
        IndexedGames {
            records: GameRecords::new(memory, temp_dir()),
            explored: options.explorer.then(explored),
            start: position::key(&options.variant.only().unwrap_or_default().start()),
            start_len: 0,
        }
    }

    /// Adds the records of the next batch of games, and returns the number of its first game. `input` is the input of
    /// the batch, for error messages.
    fn add(&mut self, batch: &mut BatchGames, input: &Path) -> Result<u32> {
        let first_id = self.records.len();
        self.records
            .push_all(&batch.record_lengths, &batch.records)?;
        batch.records = Vec::new();
        if self.records.len() > u64::from(u32::MAX) {
            return Err(Error::too_large(
                input,
                "an index has at most 4294967295 games: make several",
            ));
        }
        let first_id = first_id as u32;
        let from_start = batch.starts.iter().filter(|(_, key)| *key == self.start);
        let lengths = from_start.map(|(id, _)| layout::id_len(first_id + id));
        self.start_len += lengths.sum::<u64>();
        if self.start_len > layout::LONGEST {
            return Err(Error::too_large(input, layout::TOO_LONG));
        }
        if let Some(explored) = &mut self.explored {
            batch.lists = explored.push_all(std::mem::take(&mut batch.facts))?;
        }
        Ok(first_id)
    }
}

/// The data that the index collects from a batch of games.
struct IndexBatch<'a> {
    sink: &'a IndexSink<'a>,
    games: BatchGames,
    /// The number that must be added to the ids of the games. It is known once all earlier batches have been processed.
    first_id: u32,
}

/// The games of a batch. They are numbered from 0, beginning with the first game of the batch.
#[derive(Default)]
struct BatchGames {
    postings: Vec<Posting>,
    /// The concatenated records of all games. `record_lengths` contains the length of each.
    records: Vec<u8>,
    record_lengths: Vec<u32>,
    /// For each counted game, its id and the key of its first position.
    starts: Vec<(u32, u64)>,
    /// The explorer's data about all games. `played` contains their moves by position. Both are empty if the index does
    /// not contain the explorer's data.
    facts: GameFacts,
    played: Vec<ListRecord>,
    /// The records of the explorer's other lists: of players, names and Lichess ids.
    lists: Vec<ListRecord>,
}

impl BatchGames {
    /// Adds a posting for each position of a game, including its last position. With `with_moves`, the postings contain
    /// the moves.
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

    /// Adds a record of the move that was played in each position of a game.
    fn add_played(&mut self, game: &CountedGame<'_>) {
        self.facts.count_last(
            game.result,
            game.length,
            game.variant,
            game.opening,
            game.last_identity,
        );
        let subject = |identity| Subject::position(game.variant, identity);
        // Whether White is to move after this many half-moves.
        let turn = |plies: usize| game.first_turn.is_white() == plies.is_multiple_of(2);
        let last = subject(game.last_identity);
        self.played
            .push(ListRecord::end(last, game.number, turn(game.plies.len())));
        let moves = game.identities.iter().zip(game.plies).enumerate();
        if game.plies.len() <= ListRecord::LAST_PLY {
            self.played.extend(moves.map(|(at, (identity, ply))| {
                let subject = subject(*identity);
                ListRecord::new(subject, game.number, at as u16 + 1, turn(at), ply.mv)
            }));
            return;
        }
        // The half-moves of such a long game do not fit into records, by which the last move in a position would be
        // found. So only the last move in each position is added.
        let mut known = HashSet::new();
        for (at, (identity, ply)) in moves.rev() {
            if known.insert(*identity) {
                let subject = subject(*identity);
                self.played
                    .push(ListRecord::new(subject, game.number, 1, turn(at), ply.mv));
            }
        }
    }
}

impl BatchSink for IndexBatch<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, batch_offset: u64) {
        let start = batch_offset + game.game_offset() as u64;
        let has_tags = game.first_tag_offset().is_some();
        let place = match has_tags {
            true => GamePlace::Tags(start),
            false => GamePlace::Moves(start),
        };
        let explores = self.sink.options.explorer;
        let BatchGames {
            records,
            record_lengths,
            facts,
            ..
        } = &mut self.games;
        let before = records.len();
        layout::write_game(records, game.tags(), place);
        if explores && !has_tags {
            layout::append_start(records, start.to_string().as_bytes());
        }
        record_lengths.push((records.len() - before) as u32);
        if explores {
            facts.add(game.tags());
        }
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        let options = self.sink.options;
        self.games.add_postings(game, options.index_stats);
        if options.explorer {
            self.games.add_played(game);
        }
    }

    fn leave_out(&mut self, games: &[u32]) {
        let stays = |id: u32| games.binary_search(&id).is_err();
        self.games.postings.retain(|posting| stays(posting.id()));
        self.games.played.retain(|played| stays(played.id()));
        self.games.starts.retain(|(id, _)| stays(*id));
        self.games.facts.leave_out(games);
    }

    fn in_order(&mut self, input: &Path) -> Result<()> {
        let mut all = task::lock(&self.sink.games);
        self.first_id = all.add(&mut self.games, input)?;
        Ok(())
    }

    fn add(self: Box<Self>) -> Result<()> {
        let BatchGames {
            mut postings,
            mut played,
            mut lists,
            ..
        } = self.games;
        for posting in &mut postings {
            *posting = posting.shifted_by(self.first_id);
        }
        self.sink.postings.append(&postings)?;
        let Some(shards) = &self.sink.played else {
            return Ok(());
        };
        drop(postings);
        for record in &mut played {
            *record = record.shifted_by(self.first_id);
        }
        played.append(&mut lists);
        shards.append(&played)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pgn::{GameResult, Input},
        position::Variant,
    };

    #[test]
    fn games_that_no_list_can_hold_are_refused_when_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let options = MakeBook::new([Input::file("games.pgn")]).leveldb(&path);
        let sink = IndexSink::begin(&options, &path, &Budget::default()).unwrap();
        let in_order = |last_key: u64| {
            let mut batch = sink.batch(0).unwrap();
            let mut games = GameReader::new(b"1. e4 *");
            assert!(games.next_game());
            batch.next_game(&games, 0);
            batch.count(&CountedGame {
                number: 0,
                variant: Variant::Standard,
                result: GameResult::Unknown,
                first_turn: shakmaty::Color::White,
                start: None,
                length: 0,
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
            batch.in_order("games.pgn".as_ref())
        };
        let start = task::lock(&sink.games).start;
        assert_eq!(start, 0x463b_9618_1691_fc9c);
        in_order(start).unwrap();
        task::lock(&sink.games).start_len = layout::LONGEST - 2;
        // Other positions have lists of their own.
        in_order(1).unwrap();
        in_order(start).unwrap();
        let err = in_order(start).unwrap_err().to_string();
        assert!(
            err.contains("games.pgn") && err.contains("440 million"),
            "{err}"
        );
    }
}

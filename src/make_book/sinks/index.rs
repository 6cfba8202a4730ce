//! The index among the outputs of a run.

use std::{collections::HashSet, path::Path, sync::Mutex};

use super::{BatchSink, CountedGame, Needs, Plan, Sink};
use crate::{
    error::{At, Error, Result},
    index::{
        self, ExploredData, GameRecords, IndexSource, IndexWriter, IndexedFile,
        explored::{ExploredGames, GameFacts, Played},
        layout::{self, GamePlace, Subject},
        posting::Posting,
    },
    make_book::{MakeBook, Phase, costs::Amounts, report::IndexReport, write::Counted},
    output::Finished,
    pgn::GameReader,
    position::{self, BookMove},
    sort::{Memory, Partition, Shards},
    task,
};

struct IndexSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: IndexWriter,
    games: Mutex<IndexedGames>,
    /// Which games reached a position.
    postings: Shards<Posting>,
    /// What games played where, for the explorer.
    played: Option<Shards<Played>>,
}

/// The index, if there is to be one.
pub(super) fn plan(options: &MakeBook) -> Option<Plan<'_>> {
    let path = options.leveldb.as_deref()?;
    let explores = options.explorer;
    Some(Plan {
        path,
        needs: Needs {
            game_identities: explores,
            game_lengths: explores,
            memory_shares: 1 + usize::from(explores),
            ..Needs::default()
        },
        of_games: Some("an index is made of games"),
        begin: Box::new(move |memory| Ok(Box::new(IndexSink::begin(options, path, &memory)?))),
    })
}

impl<'a> IndexSink<'a> {
    fn begin(options: &'a MakeBook, path: &'a Path, memory: &Memory) -> Result<IndexSink<'a>> {
        let may_replace = |old: &Path| index::check_replaceable(old, options.force);
        let stats = options.index_stats;
        let share = memory.share(1 + usize::from(options.explorer));
        Ok(IndexSink {
            options,
            path,
            writer: IndexWriter::create(path, stats, may_replace)?,
            games: Mutex::new(IndexedGames::new(options)),
            postings: Shards::new(share.clone()),
            played: options.explorer.then(|| Shards::new(share)),
        })
    }

    /// The inputs as the index names them.
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
        let mut batch = IndexBatch::new(self);
        batch.postings.reserve(plies);
        if self.played.is_some() {
            batch.played.reserve(plies);
        }
        Some(Box::new(batch))
    }

    fn spilled_bytes(&self) -> u64 {
        let played = self.played.as_ref().map_or(0, Shards::spilled_bytes);
        self.postings.spilled_bytes() + played
    }

    fn held_bytes(&self) -> usize {
        self.options.memory / 2
    }

    fn cost(&self, amounts: &Amounts) -> Option<(Phase, f64)> {
        let per_posting = if self.options.index_stats { 5.0 } else { 2.5 };
        Some((Phase::Index, per_posting * amounts.plies))
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
            games: &games.records,
            files: &files,
            variant: self.options.variant,
            explored: explored.map(|(records, games)| ExploredData { records, games }),
        };
        let (written, index) = self.writer.write(source, &self.options.stop, meter)?;
        counted.report.index = Some(IndexReport {
            path: self.path.to_owned(),
            games: written.games,
            positions: written.positions,
            postings: written.postings,
        });
        Ok(index)
    }
}

/// The records of all games, in the order of the inputs.
struct IndexedGames {
    records: GameRecords,
    /// What the explorer needs of them, if it is wanted.
    explored: Option<ExploredGames>,
    /// The key of the position that most games start from, and how many bytes the list of these takes.
    start: u64,
    start_len: u64,
}

impl IndexedGames {
    fn new(options: &MakeBook) -> IndexedGames {
        let memory = options.memory / 8 / (1 + usize::from(options.explorer));
        let temp_dir = || options.temp_dir.clone();
        let explored = || ExploredGames::new(memory, temp_dir());
        IndexedGames {
            records: GameRecords::new(memory, temp_dir()),
            explored: options.explorer.then(explored),
            start: position::key(&options.variant.only().unwrap_or_default().start()),
            start_len: 0,
        }
    }

    /// Keeps the records of the next batch, which is of `input`, and numbers its games.
    fn add(&mut self, batch: &mut IndexBatch<'_>, input: &Path) -> Result<()> {
        let first_id = self.records.len();
        self.records
            .push_all(&batch.record_lengths, &batch.records)?;
        if self.records.len() > u64::from(u32::MAX) {
            return Err(Error::too_large(
                input,
                "an index has at most 4294967295 games: make several",
            ));
        }
        batch.first_id = first_id as u32;
        let from_start = batch.starts.iter().filter(|(_, key)| *key == self.start);
        let len: u64 = from_start
            .map(|(id, _)| layout::id_len(batch.first_id + id))
            .sum();
        self.start_len += len;
        if self.start_len > layout::LONGEST {
            return Err(Error::too_large(input, layout::TOO_LONG));
        }
        if let Some(explored) = &mut self.explored {
            batch.lists = explored.push_all(std::mem::take(&mut batch.facts))?;
        }
        batch.records = Vec::new();
        Ok(())
    }
}

/// What the index takes of a batch.
struct IndexBatch<'a> {
    sink: &'a IndexSink<'a>,
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
    /// What has to be added to the ids of games, and what else the explorer lists, under the ids of all games: known
    /// when all batches before are in order.
    first_id: u32,
    lists: Vec<Played>,
}

impl<'a> IndexBatch<'a> {
    fn new(sink: &'a IndexSink<'a>) -> IndexBatch<'a> {
        IndexBatch {
            sink,
            postings: Vec::new(),
            records: Vec::new(),
            record_lengths: Vec::new(),
            starts: Vec::new(),
            facts: GameFacts::default(),
            played: Vec::new(),
            first_id: 0,
            lists: Vec::new(),
        }
    }

    /// Notes which positions a game reached: those before its moves, and the last.
    fn add_postings(&mut self, game: &CountedGame<'_>) {
        let (id, winner) = (game.number, game.result.winner());
        let with_moves = self.sink.options.index_stats;
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

    /// Notes what a game played where.
    fn add_played(&mut self, game: &CountedGame<'_>) {
        self.facts.count_last(game.result, game.length);
        let subject = |identity| Subject::position(game.variant, identity);
        let last = subject(game.last_identity);
        let turn = game.is_white_to_move(game.plies.len());
        self.played.push(Played::end(last, game.number, turn));
        if game.plies.len() > Played::LAST_PLY {
            self.add_played_once(game);
            return;
        }
        let moves = game.identities.iter().zip(game.plies).enumerate();
        self.played.extend(moves.map(|(at, (identity, ply))| {
            let turn = game.is_white_to_move(at);
            let subject = subject(*identity);
            Played::new(subject, game.number, at as u16 + 1, turn, ply.mv)
        }));
    }

    /// The same of a game of so many half-moves that records cannot count them: of each position only the last move.
    #[cold]
    fn add_played_once(&mut self, game: &CountedGame<'_>) {
        let mut known = HashSet::new();
        let moves = game.identities.iter().zip(game.plies).enumerate();
        for (at, (identity, ply)) in moves.rev() {
            if known.insert(*identity) {
                let turn = game.is_white_to_move(at);
                let subject = Subject::position(game.variant, *identity);
                self.played
                    .push(Played::new(subject, game.number, 1, turn, ply.mv));
            }
        }
    }
}

impl CountedGame<'_> {
    /// Whether White is to move after so many half-moves.
    fn is_white_to_move(&self, plies: usize) -> bool {
        self.first_turn.is_white() == plies.is_multiple_of(2)
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
        let before = self.records.len();
        layout::write_game(&mut self.records, game.tags(), place);
        if explores && !has_tags {
            layout::append_start(&mut self.records, start.to_string().as_bytes());
        }
        let length = self.records.len() - before;
        self.record_lengths.push(length as u32);
        if explores {
            self.facts.add(game.tags());
        }
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        self.add_postings(game);
        if self.sink.options.explorer {
            self.add_played(game);
        }
    }

    fn leave_out(&mut self, games: &[u32]) {
        let stays = |id: u32| games.binary_search(&id).is_err();
        self.postings.retain(|posting| stays(posting.id()));
        self.played.retain(|played| stays(played.id()));
        self.starts.retain(|(id, _)| stays(*id));
        self.facts.leave_out(games);
    }

    fn in_order(&mut self, input: &Path) -> Result<()> {
        let sink = self.sink;
        task::lock(&sink.games).add(self, input)
    }

    fn add(mut self: Box<Self>) -> Result<()> {
        let first_id = self.first_id;
        for posting in &mut self.postings {
            *posting = posting.shifted_by(first_id);
        }
        let postings = std::mem::take(&mut self.postings);
        self.sink.postings.append(&Partition::new(&postings))?;
        drop(postings);
        let Some(played) = &self.sink.played else {
            return Ok(());
        };
        for record in &mut self.played {
            *record = record.shifted_by(first_id);
        }
        self.played.append(&mut self.lists);
        played.append(&Partition::new(&self.played))
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
        let sink = IndexSink::begin(&options, &path, &Memory::default()).unwrap();
        let in_order = |last_key: u64| {
            let mut batch = IndexBatch::new(&sink);
            batch.count(&CountedGame {
                number: 0,
                variant: Variant::Standard,
                result: GameResult::Unknown,
                first_turn: shakmaty::Color::White,
                start: None,
                length: 0,
                plies: &[],
                identities: &[],
                last_key,
                last_identity: last_key,
            });
            batch.record_lengths.push(0);
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

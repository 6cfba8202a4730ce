//! Writes an explorer's index of games as an output of a run.

use std::{collections::HashSet, mem, path::Path, sync::Mutex};

use super::index::{held_bytes, indexed_files, offset_of, refuse_too_many};
use crate::{
    error::Result,
    formats::{
        explorer_index::{GameFacts, ListKey, ListRecord, StoredGames},
        index::{IndexWriter, StoreSource},
    },
    games::pgn::GameReader,
    make_book::{
        budget::Budget,
        data::CollectedData,
        inputs::{Inputs, smallest_max_ply},
        needs::Needs,
        options::MakeBook,
        report::{IndexReport, Phase},
        sink::{BatchSink, CountedGame, Plan, Sink},
    },
    storage::{output::Finished, sort::Shards},
    task,
};

struct ExplorerSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: IndexWriter,
    /// The rows, details and names of all games, in the order of the inputs.
    games: Mutex<StoredGames>,
    /// Records of the moves in all positions of the games, and of the games by player and by Lichess id.
    played: Shards<ListRecord>,
}

/// Returns a plan for writing an explorer's index, or `None` if the options request none. Adds the data that the index
/// needs to `needs`.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    inputs: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.explorer.as_deref()?;
    #[cfg(feature = "parquet")]
    if let Some(plan) = super::counted_index::plan(options, inputs, needs) {
        return Some(plan);
    }
    #[cfg(not(feature = "parquet"))]
    let _ = inputs;
    needs.game_identities = true;
    needs.game_lengths = true;
    needs.game_hashes = true;
    needs.openings = true;
    Some(Plan {
        path,
        needs_games_reason: Some("an index is made either from games alone or from counts alone"),
        memory_shares: 1,
        begin: Box::new(move |budget| Ok(Box::new(ExplorerSink::begin(options, path, budget)?))),
    })
}

impl<'a> ExplorerSink<'a> {
    fn begin(options: &'a MakeBook, path: &'a Path, budget: &Budget) -> Result<ExplorerSink<'a>> {
        let games = &budget.games;
        Ok(ExplorerSink {
            options,
            path,
            writer: IndexWriter::create(path, options.force)?,
            games: Mutex::new(StoredGames::new(games.bytes, games.temp_dir.clone())),
            played: Shards::new(budget.share.clone()),
        })
    }
}

impl Sink for ExplorerSink<'_> {
    fn batch(&self, plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        Some(Box::new(ExplorerBatch {
            sink: self,
            facts: GameFacts::default(),
            played: Vec::with_capacity(plies),
            lists: Vec::new(),
            first_id: 0,
        }))
    }

    fn spilled_bytes(&self) -> u64 {
        self.played.spilled_bytes()
    }

    fn held_bytes(&self) -> usize {
        held_bytes(self.options)
    }

    fn cost(&self) -> Option<(Phase, u64)> {
        Some((Phase::Explorer, 2500))
    }

    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Explorer);
        let mut files = indexed_files(self.options, &counted.games.first_games)?;
        let options = self.options.option_text_of_games();
        for (file, input) in files.iter_mut().zip(&self.options.inputs) {
            file.untagged = input.untagged_variant();
            file.options.clone_from(&options);
        }
        let source = StoreSource {
            records: &self.played.sort()?,
            games: &task::unlocked(self.games),
            files: &files,
            variant: self.options.variant,
            max_ply: smallest_max_ply([self.options.max_ply]),
        };
        let stop = &self.options.stop;
        let (written, index) = self.writer.write_store(source, stop, meter)?;
        counted.games.report.explorer = Some(IndexReport {
            path: self.path.to_owned(),
            games: written.games,
            positions: written.positions,
            postings: written.postings,
            rows: None,
        });
        Ok(index)
    }
}

/// Collects the data that an explorer's index needs from one batch of games. Games are numbered from 0 within the
/// batch.
struct ExplorerBatch<'a> {
    sink: &'a ExplorerSink<'a>,
    /// The tags of the games.
    facts: GameFacts,
    /// Records of the moves in all positions of the games.
    played: Vec<ListRecord>,
    /// The records of all lists that do not belong to positions: lists by player, by name and by Lichess id. They
    /// contain the ids of the games.
    lists: Vec<ListRecord>,
    /// The number to add to the ids of the games of this batch. It is known once all earlier batches have been
    /// processed.
    first_id: u32,
}

impl BatchSink for ExplorerBatch<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, batch_offset: u64) {
        self.facts.add(game.tags(), offset_of(game, batch_offset));
    }

    fn end_batch(&mut self, text: &[u8], batch_offset: u64) {
        self.facts.end(text, batch_offset);
    }

    /// Adds a record for each position of a game. The record contains the move that was played in the position. In the
    /// last position, it contains the end of the game instead.
    fn count(&mut self, game: &CountedGame<'_>) {
        self.facts.count_last(
            game.result,
            game.length,
            game.variant,
            game.opening,
            game.hash,
        );
        let subject = |identity| ListKey::position(game.variant, identity);
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
        // Records store the number of the half-move in few bits, which are too few for such a long game. So add only
        // the last move in each position here, instead of finding it by these numbers later.
        let mut known = HashSet::new();
        for (at, (identity, ply)) in moves.rev() {
            if known.insert(*identity) {
                let subject = subject(*identity);
                self.played
                    .push(ListRecord::new(subject, game.number, 1, turn(at), ply.mv));
            }
        }
    }

    fn leave_out(&mut self, games: &[u32]) {
        let stays = |played: &ListRecord| games.binary_search(&played.id()).is_err();
        self.played.retain(stays);
        self.facts.leave_out(games);
    }

    fn process_in_order(&mut self, input: &Path) -> Result<()> {
        let mut all = task::lock(&self.sink.games);
        let facts = mem::take(&mut self.facts);
        let first_id = all.len();
        refuse_too_many(first_id + facts.len() as u64, input)?;
        self.first_id = first_id as u32;
        self.lists = all.push_all(facts)?;
        Ok(())
    }

    fn add(self: Box<Self>) -> Result<()> {
        let ExplorerBatch {
            mut played, lists, ..
        } = *self;
        for record in &mut played {
            *record = record.shifted_by(self.first_id);
        }
        played.extend(lists);
        self.sink.played.append(&played)
    }
}

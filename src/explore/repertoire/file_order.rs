//! The order in which a repertoire in PGN contains its moves.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use shakmaty::variant::VariantPosition;

use super::{OpenOptions, RepertoirePgn};
use crate::{
    chess::position::{BookMove, Keyed},
    error::{Advice, Diagnosis, Error, Result},
    explore::tree::{MoveSource, SourceWrapper, TreeMove},
    games::pgn::{Cutter, OpenLines, Step, StreamOptions, start_of},
};

/// The approximate size in bytes of a batch of games.
const BATCH_SIZE: usize = 1 << 18;

/// An upper bound on the memory, in bytes, that one move takes in the map of a [`FileOrder`].
const BYTES_PER_MOVE: usize = 64;

/// The order in which a repertoire in PGN contains its moves. The moves of each position are in the order of their
/// first occurrences in main lines and variations.
#[derive(Default, Debug)]
pub struct FileOrder {
    /// The number of the first occurrence of each move, keyed by the identity of its position.
    numbers: FxHashMap<(u64, BookMove), usize>,
}

impl FileOrder {
    /// Reads the order of the moves in `pgn`. `options` must be the options with which the file was opened.
    ///
    /// # Errors
    ///
    /// Returns an error if `pgn` cannot be read or was changed. Returns
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if the moves do not fit in memory.
    pub fn of(pgn: &RepertoirePgn, options: &OpenOptions<'_>) -> Result<FileOrder> {
        pgn.check_unchanged()?;
        let input = pgn.input();
        let most = options.memory.bytes / BYTES_PER_MOVE;
        let stream = input.open(&StreamOptions {
            stop: Arc::clone(&options.stop),
            memory: input.unpacking_memory(options.memory.bytes),
            temp_dir: options.memory.temp_dir.clone(),
        })?;
        let mut batches = Cutter::new(stream, BATCH_SIZE);
        let mut numbers = FxHashMap::default();
        while let Some(batch) = batches.next_batch().map_err(|err| input.error(err))? {
            let mut games = input.reader(&batch.text).with_variations(true);
            while games.next_game() {
                let start = start_of(games.tags()).ok();
                let mut lines = OpenLines::of_game(start.map(|(_, start)| Keyed::new(start)));
                loop {
                    match lines.step(games.next_token()) {
                        Step::Played { before, mv } => {
                            let number = numbers.len();
                            let mv = (before.identity(), mv.into());
                            numbers.entry(mv).or_insert(number);
                            if numbers.len() > most {
                                let problem = Diagnosis::new(format!(
                                    "this file contains more than {most} moves"
                                ))
                                .advise(Advice::larger("memory"));
                                return Err(Error::too_large(pgn.path(), problem));
                            }
                        }
                        Step::EndOfGame => break,
                        _ => {}
                    }
                }
            }
        }
        pgn.check_unchanged()?;
        Ok(FileOrder { numbers })
    }

    /// Returns a source of the moves of `source`, sorted in this order. Moves that the file does not contain in a
    /// position come last, in the order of `source`.
    pub fn applied_to<S: MoveSource>(self, source: S) -> impl MoveSource {
        InFileOrder {
            source,
            order: self,
        }
    }
}

/// A source whose moves are sorted by a [`FileOrder`].
struct InFileOrder<S> {
    source: S,
    order: FileOrder,
}

impl<S: MoveSource> SourceWrapper for InFileOrder<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.source
    }

    fn changed(
        &self,
        pos: &Keyed<VariantPosition>,
        mut moves: Vec<TreeMove>,
    ) -> Result<Vec<TreeMove>> {
        let number = |mv: &TreeMove| self.order.numbers.get(&(pos.identity(), mv.mv.into()));
        moves.sort_by_key(|mv| number(mv).copied().unwrap_or(usize::MAX));
        Ok(moves)
    }
}

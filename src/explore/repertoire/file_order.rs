//! Reads the order of the moves in a PGN file, and the comments on the moves.

use std::{collections::hash_map::Entry, sync::Arc};

use rustc_hash::FxHashMap;
use shakmaty::{Move, variant::VariantPosition};

use super::{OpenOptions, RepertoirePgn};
use crate::{
    chess::position::{BookMove, Keyed},
    error::{Advice, Diagnosis, Error, Result},
    explore::tree::{MoveSource, SourceWrapper, TreeMove},
    games::pgn::{Cutter, OpenLines, Step, StreamOptions, comment_text, start_of},
};

/// The approximate size in bytes of a batch of games.
const BATCH_SIZE: usize = 1 << 18;

/// An upper bound on the memory, in bytes, that one move takes in the map of a [`FileOrder`].
const BYTES_PER_MOVE: usize = 64;

/// The order in which a repertoire in PGN lists its moves: the moves of each position are ordered by where they first
/// occur in the file, in a main line or a variation.
#[derive(Default, Debug)]
pub struct FileOrder {
    /// Numbers each move by its first occurrence in the file. A key is the move, with the identity (a hash) of its
    /// position.
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
        let most = options.memory.bytes / BYTES_PER_MOVE;
        let mut numbers = FxHashMap::default();
        for_each_move(pgn, options, &mut |mv, _| {
            let number = numbers.len();
            numbers.entry(mv).or_insert(number);
            check_memory(numbers.len(), most, pgn)
        })?;
        Ok(FileOrder { numbers })
    }

    /// Returns a source of the moves of `source`, sorted in this order. Moves that the file does not contain in a
    /// position come last, in their original order.
    pub fn applied_to<S: MoveSource>(self, source: S) -> impl MoveSource {
        InFileOrder {
            source,
            order: self,
        }
    }
}

/// The comments on the moves of a repertoire in PGN.
#[derive(Default, Debug)]
pub struct MoveComments {
    /// The first comment on each move. A key is the move, with the identity (a hash) of its position.
    comments: FxHashMap<(u64, BookMove), String>,
}

impl MoveComments {
    /// Reads the comments in `pgn`. `options` must be the options with which the file was opened.
    ///
    /// # Errors
    ///
    /// Returns an error if `pgn` cannot be read or was changed. Returns
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if the comments do not fit in memory.
    pub fn of(pgn: &RepertoirePgn, options: &OpenOptions<'_>) -> Result<MoveComments> {
        let mut comments: FxHashMap<_, String> = FxHashMap::default();
        let mut bytes = 0;
        for_each_move(pgn, options, &mut |mv, comment| {
            let Some(text) = comment.map(comment_text).filter(|text| !text.is_empty()) else {
                return Ok(());
            };
            if let Entry::Vacant(entry) = comments.entry(mv) {
                bytes += BYTES_PER_MOVE + text.len();
                entry.insert(text);
            }
            check_memory(bytes, options.memory.bytes, pgn)
        })?;
        Ok(MoveComments { comments })
    }

    /// Returns the comment on the move `mv` in the position `pos`, or `None` if there is none. Commands such as `[%cal
    /// Ge2e4]` are left out.
    pub fn of_move(&self, pos: &VariantPosition, mv: Move) -> Option<&str> {
        let pos = Keyed::new(pos.clone()).identity();
        self.comments.get(&(pos, mv.into())).map(String::as_str)
    }
}

/// A move of a repertoire, with the identity (a hash) of the position before it.
type MoveOfPosition = (u64, BookMove);

/// A function that is called with a move and one of its comments, or with `None` when the move itself is read.
type VisitMove<'a> = &'a mut dyn FnMut(MoveOfPosition, Option<&[u8]>) -> Result<()>;

/// Reads all games and variations of `pgn`, and calls `visit` with each move and `None`. If comments follow the move,
/// also calls `visit` with the move and each of the comments.
fn for_each_move(
    pgn: &RepertoirePgn,
    options: &OpenOptions<'_>,
    visit: VisitMove<'_>,
) -> Result<()> {
    pgn.check_unchanged()?;
    let input = pgn.input();
    let stream = input.open(&StreamOptions {
        stop: Arc::clone(&options.stop),
        memory: input.unpacking_memory(options.memory.bytes),
        temp_dir: options.memory.temp_dir.clone(),
    })?;
    let mut batches = Cutter::new(stream, BATCH_SIZE);
    while let Some(batch) = batches.next_batch().map_err(|err| input.error(err))? {
        let mut games = input.reader(&batch.text).with_variations(true);
        while games.next_game() {
            let start = start_of(games.tags()).ok();
            let mut lines = OpenLines::of_game(start.map(|(_, start)| Keyed::new(start)));
            let mut last: Option<MoveOfPosition> = None;
            loop {
                let mut comments = Vec::new();
                let token = games.next_token_after(|comment| comments.push(comment));
                for comment in comments {
                    if let Some(last) = last {
                        visit(last, Some(comment))?;
                    }
                }
                last = match lines.step(token) {
                    Step::Played { before, mv } => {
                        let mv = (before.identity(), mv.into());
                        visit(mv, None)?;
                        Some(mv)
                    }
                    Step::EndOfGame => break,
                    _ => None,
                };
            }
        }
    }
    pgn.check_unchanged()
}

/// Returns an error if reading `pgn` needs more than `most` units of memory.
fn check_memory(used: usize, most: usize, pgn: &RepertoirePgn) -> Result<()> {
    if used <= most {
        return Ok(());
    }
    let problem = Diagnosis::new("this file contains more moves and comments than fit in memory");
    Err(Error::too_large(
        pgn.path(),
        problem.advise(Advice::larger("memory")),
    ))
}

/// A source of moves that sorts the moves of another source by a [`FileOrder`].
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

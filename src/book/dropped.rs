//! Finds the moves that are dropped from a book because they are illegal or because they lose too much.

use std::cell::{Cell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Move, variant::VariantPosition};

use super::{
    lines::PlayableMoves,
    open::Book,
    records::{Entry, with_format_castling},
};
use crate::{
    error::Result,
    evals::MaxLoss,
    position::{BookMove, Keyed, Variant},
    progress::Meter,
    sort::{Memory, SpillingSet},
    walk::{Source, TreeMove, each_position},
};

/// The numbers of moves and positions that the evaluations drop from a book or leave in it.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct LossSummary {
    /// The number of moves that are left out because they lose too much.
    pub left_out: u64,
    /// The number of moves that are kept because they have no evaluation, or because no line of the book reaches their
    /// position.
    pub unevaluated: u64,
    /// The number of positions whose moves are all left out.
    pub emptied: u64,
}

/// The moves that are dropped from a book.
#[derive(Clone, Debug)]
pub(super) struct DroppedMoves {
    /// Pairs of a key and a move, packed by [`key_and_move`].
    moves: FxHashSet<u128>,
    /// The moves that spell castling as the king's two steps, packed like `moves`, with the spelling of the format.
    castling: FxHashMap<u128, BookMove>,
    /// The numbers of the moves that lose too much.
    pub losses: LossSummary,
}

/// Packs a position key and a move into one number, which sorts by key and then by move.
pub(super) fn key_and_move(key: u64, mv: BookMove) -> u128 {
    u128::from(key) << 64 | u128::from(mv.0)
}

impl DroppedMoves {
    /// Finds the illegal moves of `book`, and with `max_loss` the moves that lose more than it allows.
    ///
    /// `book` must contain each move of a position at most once. Only positions that lines of the book reach from the
    /// start of `variant` are checked, because a key alone does not determine which moves are legal and which positions
    /// they lead to.
    ///
    /// # Errors
    ///
    /// Returns an error if the book, the evaluations or a temporary file cannot be read, or if keys do not ascend.
    pub(super) fn of(
        book: &Book,
        variant: Variant,
        max_loss: Option<&MaxLoss>,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<DroppedMoves> {
        let records = book.len_without_header()?;
        let legal = LegalMoves {
            moves: PlayableMoves::within(book, meter, memory.bytes / 4)?,
            illegal: RefCell::default(),
            unseen: Cell::new(records),
        };
        let mut moves = FxHashSet::default();
        let mut castling = FxHashMap::default();
        let mut losses = LossSummary::default();
        let mut evaluated = 0;
        let mut reached = SpillingSet::new(memory.share(4));
        let start = [Ok(variant.start())];
        each_position(&legal, start, memory.share(4), meter, &mut |pos| {
            if !reached.insert_key(pos.key())? {
                return Ok(legal.unseen.get() > 0);
            }
            let (entries, to_judge): (Vec<_>, Vec<_>) = legal.of(pos)?.into_iter().unzip();
            legal.unseen.set(legal.unseen.get() - entries.len() as u64);
            for entry in &entries {
                let spelled = with_format_castling(pos.position(), entry.mv);
                if spelled != entry.mv {
                    castling.insert(key_and_move(entry.key, entry.mv), spelled);
                }
            }
            if let Some(max_loss) = max_loss {
                let left_out_before = losses.left_out;
                for (entry, loses) in entries
                    .iter()
                    .zip(max_loss.judge(pos.position(), &to_judge)?)
                {
                    evaluated += u64::from(loses.is_some());
                    if loses == Some(true) {
                        moves.insert(key_and_move(entry.key, entry.mv));
                        losses.left_out += 1;
                    }
                }
                let left_out = losses.left_out - left_out_before;
                losses.emptied += u64::from(left_out > 0 && left_out == entries.len() as u64);
            }
            Ok(legal.unseen.get() > 0)
        })?;
        let illegal = legal.illegal.into_inner();
        losses.unevaluated = records - evaluated - illegal.len() as u64;
        moves.extend(illegal);
        Ok(DroppedMoves {
            moves,
            castling,
            losses,
        })
    }

    /// Returns the move of a record in the spelling of the format, so that both spellings of castling are one move.
    pub(super) fn spelled(&self, entry: &Entry) -> BookMove {
        let castling = self.castling.get(&key_and_move(entry.key, entry.mv));
        castling.copied().unwrap_or(entry.mv)
    }

    /// Returns `true` if a move is dropped.
    pub(super) fn contains(&self, key: u64, mv: BookMove) -> bool {
        self.moves.contains(&key_and_move(key, mv))
    }
}

/// A source for a walk that contains only the legal moves of a book. It records the illegal moves of each position that
/// the walk looks up.
struct LegalMoves<'a> {
    moves: PlayableMoves<'a>,
    illegal: RefCell<FxHashSet<u128>>,
    /// The number of records whose position has not been looked up yet.
    unseen: Cell<u64>,
}

impl LegalMoves<'_> {
    /// Returns the records of a position whose moves are legal.
    fn of(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<(Entry, Move)>> {
        let mut legal = Vec::new();
        for entry in self.moves.records(pos.key())? {
            match entry.mv.to_move(pos.position()) {
                Some(mv) => legal.push((entry, mv)),
                None => {
                    let is_new = self
                        .illegal
                        .borrow_mut()
                        .insert(key_and_move(entry.key, entry.mv));
                    self.unseen.set(self.unseen.get() - u64::from(is_new));
                }
            }
        }
        Ok(legal)
    }
}

impl Source for LegalMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.of(pos)?.into_iter();
        Ok(moves
            .map(|(entry, mv)| TreeMove::known(mv, entry.weight.into(), None))
            .collect())
    }
}

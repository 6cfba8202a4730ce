//! Computes the numbers of `polyglot info-book -exact`, which depend on the order of polyglot's search.
//!
//! polyglot searches the book four times. The first two searches follow the lines of White and of Black. For each
//! side, another search follows every legal move of that side, and the replies after which the book has a move. A
//! search does not continue from a position that is already on its current path. But the last two searches record
//! only every other position of the path, and the other slots of the path keep the keys of an earlier search. So
//! these searches also stop at positions that equal such a stale key, and never reach a few positions.
//!
//! To compute equal numbers, this module searches in the order of polyglot's move generator. The generator goes
//! through a list of the pieces of a side. A piece keeps its slot in the list when it moves, and the last piece
//! of the list takes the slot of a captured piece.

use shakmaty::{ByColor, Color, Move, Position, Role, Square, variant::VariantPosition};

use super::PlayableMoves;
use crate::{
    book::reader::Book,
    error::Result,
    position::{Keyed, Variant},
    progress::{FractionalProgress, Meter},
    storage::sort::{Memory, SpillingSet},
    walk::{LinesOf, Source},
};

/// The number of positions of a book that White can reach, and the number that Black can reach. To reach a position, a
/// side may play any legal moves, but its opponent plays only moves after which the book has a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Reachable {
    /// The number of positions that can be reached if White plays any legal moves. Includes the positions on White's
    /// lines.
    pub white: u64,
    /// The number of positions that can be reached if Black plays any legal moves. Includes the positions on Black's
    /// lines.
    pub black: u64,
}

/// Counts the positions of a book that White can reach, and those that Black can reach. To reach a position, a side may
/// play any legal moves, but its opponent plays only moves after which the book has a move. The numbers equal the
/// output of `polyglot info-book -exact`. Keys of positions that exceed `memory` are written to temporary files.
/// `meter` shows the progress.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if its keys do not ascend, or if a temporary file cannot be written.
pub fn reachable(book: &Book, memory: &Memory, meter: &Meter) -> Result<Reachable> {
    let walks = [
        (Color::White, FollowedMoves::OfTheBook),
        (Color::Black, FollowedMoves::OfTheBook),
        (Color::White, FollowedMoves::Any),
        (Color::Black, FollowedMoves::Any),
    ];
    let done = walks.map(|_| FractionalProgress::new(meter));
    let mut walk = LineWalk {
        moves: PlayableMoves::within(book, meter, memory.bytes / 4)?,
        noted: Vec::new(),
        reached: SpillingSet::new(memory.share(8)),
        found: ByColor::default(),
        memory: memory.share(8),
    };
    for ((side, moves), mut done) in walks.into_iter().zip(done) {
        walk.go(side, moves, &mut done)?;
        done.finish();
    }
    Ok(Reachable {
        white: walk.found.white,
        black: walk.found.black,
    })
}

/// The moves that a search for the lines of one side follows when this side is to move: only moves of the book, or all
/// legal moves. When the opponent is to move, every search follows the legal moves after which the book has a move.
#[derive(Copy, Clone, PartialEq, Eq)]
enum FollowedMoves {
    OfTheBook,
    Any,
}

/// A position with the squares of its pieces, in one list for each side. The lists keep the order in which the program
/// polyglot lists pieces, because polyglot generates moves in this order.
#[derive(Clone)]
struct ListedPosition {
    pos: Keyed<VariantPosition>,
    pieces: ByColor<Vec<Square>>,
}

impl ListedPosition {
    fn start() -> ListedPosition {
        let pos = Variant::Standard.start();
        let pieces = ByColor::new_with(|color| {
            let board = pos.board();
            let king = board.king_of(color);
            let others = board.by_color(color).into_iter();
            king.into_iter()
                .chain(others.filter(|square| Some(*square) != king))
                .collect()
        });
        ListedPosition {
            pos: Keyed::new(pos),
            pieces,
        }
    }

    fn play(&mut self, mv: Move) {
        let us = self.pos.position().turn();
        let captured = match mv {
            Move::Normal {
                capture: Some(_),
                to,
                ..
            } => Some(to),
            Move::EnPassant { from, to } => Some(Square::from_coords(to.file(), from.rank())),
            _ => None,
        };
        let theirs = self.pieces.get_mut(!us);
        if let Some(place) = captured.and_then(|square| theirs.iter().position(|s| *s == square)) {
            theirs.swap_remove(place);
        }
        let ours = self.pieces.get_mut(us);
        let mut put = |from: Square, to: Square| {
            if let Some(place) = ours.iter_mut().find(|square| **square == from) {
                *place = to;
            }
        };
        match (mv, mv.castling_side()) {
            (Move::Castle { king, rook }, Some(side)) => {
                // In Chess960 the king may go to the square of the rook. Moving the rook first keeps the two apart.
                put(rook, Square::from_coords(side.rook_to_file(), rook.rank()));
                put(king, Square::from_coords(side.king_to_file(), king.rank()));
            }
            _ => {
                if let Some(from) = mv.from() {
                    put(from, mv.to());
                }
            }
        }
        self.pos.play(mv);
    }

    /// Returns all legal moves, in the order in which the program polyglot generates them.
    fn moves(&self) -> Vec<Move> {
        let pieces = self.pieces.get(self.pos.position().turn());
        let mut moves: Vec<Move> = self.pos.position().legal_moves().into_iter().collect();
        moves.sort_by_cached_key(|mv| generation_order(pieces, *mv));
        moves
    }
}

/// Returns a key that sorts moves into the order in which the program polyglot generates them. `pieces` lists the
/// squares of the pieces of the side to move. The order is by the index of the moving piece in `pieces`, then by
/// direction, distance and promotion. A pawn's captures come before its steps, and castling comes last.
fn generation_order(pieces: &[Square], mv: Move) -> (usize, i32, i32, usize) {
    if let Some(side) = mv.castling_side() {
        return (pieces.len(), i32::from(side.is_queen_side()), 0, 0);
    }
    let (Some(from), to) = (mv.from(), mv.to()) else {
        return (usize::MAX, 0, 0, 0);
    };
    let place = pieces
        .iter()
        .position(|square| *square == from)
        .unwrap_or(usize::MAX);
    let files = to.file() as i32 - from.file() as i32;
    let ranks = to.rank() as i32 - from.rank() as i32;
    let (direction, distance) = match mv.role() {
        Role::Pawn if files == 0 => (1, ranks.abs()),
        Role::Pawn => (0, files),
        Role::Knight => (16 * ranks + files, 0),
        _ => (
            16 * ranks.signum() + files.signum(),
            ranks.abs().max(files.abs()),
        ),
    };
    (
        place,
        direction,
        distance,
        mv.promotion().map_or(0, |role| role as usize),
    )
}

/// A position on the current path of a depth-first search, with its moves that the search still has to follow. The
/// search follows the last element of `moves` next.
struct WalkNode {
    at: ListedPosition,
    moves: Vec<Move>,
    /// The estimated share of the search that any one of the moves takes, for the progress display.
    portion: f64,
}

struct LineWalk<'a> {
    moves: PlayableMoves<'a>,
    /// The key that was last recorded for each ply of the path, by this search or an earlier one.
    noted: Vec<Option<u64>>,
    /// The positions, over all searches, in which the searched side is to move and the book has records.
    reached: SpillingSet,
    /// The number of positions that the searches of each side added to `reached`.
    found: ByColor<u64>,
    /// The memory budget for the positions of one search.
    memory: Memory,
}

impl LineWalk<'_> {
    fn go(
        &mut self,
        side: Color,
        own: FollowedMoves,
        done: &mut FractionalProgress<'_>,
    ) -> Result<()> {
        let mut seen = SpillingSet::new(self.memory.clone());
        let mut path: Vec<WalkNode> = Vec::new();
        let mut next = Some((ListedPosition::start(), 1.0));
        while let Some((at, portion)) = next {
            let moves = self.enter(&at, path.len(), side, own, &mut seen)?;
            if moves.is_empty() {
                done.add(portion);
            }
            let portion = portion / moves.len() as f64;
            path.push(WalkNode { at, moves, portion });
            while path.pop_if(|node| node.moves.is_empty()).is_some() {}
            next = path.last_mut().and_then(|node| {
                let mut after = node.at.clone();
                after.play(node.moves.pop()?);
                Some((after, node.portion))
            });
        }
        Ok(())
    }

    /// Enters the position `at`, `ply` half-moves from the start, in a depth-first search for the lines of `side`.
    /// Returns the moves that the search must follow from this position, in reverse order, so that the caller can take
    /// the next move from the end.
    ///
    /// When `side` is to move, `own` says whether to follow all legal moves or only moves of the book. When the
    /// opponent is to move, returns the moves after which the book has a move. Returns no moves if the position is
    /// already on the current line, or if `seen` contains its key. `seen` contains the keys of the positions that this
    /// search has entered. If `own` is [`FollowedMoves::Any`], it contains only positions in which `side` is to move.
    fn enter(
        &mut self,
        at: &ListedPosition,
        ply: usize,
        side: Color,
        own: FollowedMoves,
        seen: &mut SpillingSet,
    ) -> Result<Vec<Move>> {
        let key = at.pos.key();
        if self.noted[..ply.min(self.noted.len())].contains(&Some(key)) {
            return Ok(Vec::new());
        }
        if self.noted.len() <= ply {
            self.noted.resize(ply + 1, None);
        }
        let ours = at.pos.position().turn() == side;
        if ours || own == FollowedMoves::OfTheBook {
            self.noted[ply] = Some(key);
            if !seen.insert_key(key)? {
                return Ok(Vec::new());
            }
        }
        if ours && self.moves.has_records(key)? && self.reached.insert_key(key)? {
            *self.found.get_mut(side) += 1;
        }
        let mut moves = match (ours, own) {
            (false, _) => self.replies(at)?,
            (true, FollowedMoves::OfTheBook) => {
                let moves = self.moves.moves(&at.pos)?;
                moves.into_iter().map(|mv| mv.mv).collect()
            }
            (true, FollowedMoves::Any) => at.moves(),
        };
        moves.reverse();
        Ok(moves)
    }

    /// Returns the legal moves in the position `at` after which the book has a move. The opponent of the searched side
    /// is to move. The moves are in the order in which the program polyglot generates them.
    fn replies(&self, at: &ListedPosition) -> Result<Vec<Move>> {
        let ours = !at.pos.position().turn();
        let replies = LinesOf(&self.moves, ours).moves(&at.pos)?;
        let known: Vec<Move> = replies.into_iter().map(|reply| reply.mv).collect();
        if known.len() < 2 {
            return Ok(known);
        }
        let in_order = at.moves().into_iter();
        Ok(in_order.filter(|mv| known.contains(mv)).collect())
    }
}

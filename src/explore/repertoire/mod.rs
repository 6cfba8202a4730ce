//! Repertoires: [building](build) one, [checking](check) games against it, finding its [gaps], and finding the
//! [new moves](new_moves) of games.
//!
//! A repertoire maps positions to moves of one side, the player. Move orders that lead to the same position share
//! its moves. Only the player's moves count, so a book of these moves is the same repertoire as a PGN that also
//! contains the opponent's replies.
//!
//! The *reach* of a position is the probability that a game reaches it. Each path to the position contributes the
//! product of the shares of the opponent's moves on the path; the player's moves count as certain. The reach is
//! the sum over all paths. A path is not followed further if it would return to one of its own positions.
//!
//! All of these functions read moves from a [`OpenedSource`], which gives files of all kinds the same interface:
//! PGN, an index, counts, a database or a book.
//!
//! ```
//! use polybook::{
//!     position::Variant, progress::Meter, repertoire::{Build, OwnMoveRule, OpenedSource, OpenOptions, build}, counts::Memory,
//! };
//! use shakmaty::Color;
//!
//! # let directory = tempfile::tempdir()?;
//! let options = OpenOptions::new(directory.path(), Memory::default());
//! let games = OpenedSource::source("data/famous.pgn".as_ref(), false, &options)?;
//! let built = build(&Build {
//!     start: &Variant::Standard.start(),
//!     color: Color::White,
//!     source: &games,
//!     keep: None,
//!     by: OwnMoveRule::Score,
//!     one_in: 20.0,
//!     min_game: None,
//!     max_ply: Some(9),
//!     memory: 1 << 28,
//!     meter: &Meter::default(),
//! })?;
//! assert!(built.summary.answers > 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod check;
mod edits;
mod file;
mod file_order;
mod gaps;
mod line_report;
mod move_source;
mod novelty;
mod prepared_tree;
mod reach;
mod removal;

use shakmaty::{Move, Position, san::SanPlus, variant::VariantPosition};

pub use self::{
    build::{Build, BuildSummary, Built, CommentDetail, CoveredOpening, OwnMoveRule, build},
    check::{Check, CheckSummary, CheckedGame, CheckedResults, Departure, Deviation, check},
    edits::Edits,
    file::{
        RepertoireFile, RepertoireFormat, Writing, add_to_book, add_to_pgn, without_moves,
        write_prepared,
    },
    file_order::{FileOrder, MoveComments},
    gaps::{Additions, FindGaps, Gap, Gaps, SeveralMoves, SourceEnd, gaps, several_moves},
    line_report::{KnownMove, LineGap, LineMove, LineReport, Predecessors, line_report},
    move_source::{OpenOptions, OpenedSource, RepertoirePgn},
    novelty::{ComparedGames, NewMove, Reference, game_label, new_moves},
    prepared_tree::write_prepared_tree,
    reach::Coverage,
    removal::RemovedMoves,
};
use crate::chess::position::Keyed;

/// The side whose move took a game out of a repertoire: the player for whom the repertoire is made, or the opponent.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The player, whose moves the repertoire contains.
    Player,
    /// The player's opponent.
    Opponent,
}

/// Returns a move in standard algebraic notation (SAN). The move must be legal in `pos`.
fn san(pos: &VariantPosition, mv: Move) -> String {
    SanPlus::from_move(pos.clone(), mv).to_string()
}

/// Plays `moves` from the position `start` and returns the resulting position.
///
/// # Panics
///
/// May panic, or return an impossible position, if a move is not legal.
fn position_after(
    start: &VariantPosition,
    moves: impl IntoIterator<Item = Move>,
) -> Keyed<VariantPosition> {
    let mut pos = start.clone();
    moves.into_iter().for_each(|mv| pos.play_unchecked(mv));
    Keyed::new(pos)
}

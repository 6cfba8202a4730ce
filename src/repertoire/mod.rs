//! Repertoires: [building](build) one, [checking](check) games against it, finding its [gaps], and [new moves](new_moves)
//! of games.
//!
//! A repertoire is the moves of one side, by position: what leads to the same position is joined. Only the side's own
//! moves count, so a book of these moves is the same repertoire as a PGN with the replies.
//!
//! The *reach* of a position is the chance to meet it: the product of the shares of the opponent's moves on the way there,
//! own moves taken as certain, summed over the ways. A way that comes back to a position ends there.
//!
//! ```
//! use polybook::{
//!     position::Variant, progress::Meter, repertoire::{Build, By, Known, Opening, build}, tally::Memory,
//! };
//! use shakmaty::Color;
//!
//! # let directory = tempfile::tempdir()?;
//! let opening = Opening {
//!     variant: None,
//!     filter: None,
//!     memory: Memory::default(),
//!     threads: 0,
//!     directory: directory.path(),
//!     counting: &|_progress| Box::new(()),
//! };
//! let games = Known::source("data/famous.pgn".as_ref(), false, &opening)?;
//! let built = build(&Build {
//!     start: &Variant::Standard.start(),
//!     color: Color::White,
//!     source: &games,
//!     keep: None,
//!     by: By::Score,
//!     one_in: 20.0,
//!     min_game: 0,
//!     max_ply: Some(9),
//!     memory: 1 << 28,
//!     meter: &Meter::default(),
//! })?;
//! assert!(built.summary.positions > 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod along;
mod build;
mod check;
mod gaps;
mod known;
mod novelty;
mod reach;
mod write;

use shakmaty::{Move, Position, san::SanPlus, variant::VariantPosition};

pub use self::{
    along::{LineGap, LineMove, LineReport, Ways, along},
    build::{Build, BuildSummary, Built, By, build},
    check::{Check, CheckSummary, CheckedGame, Departure, Deviation, Results, check},
    gaps::{Added, FindGaps, Gap, Gaps, SourceEnd, gaps},
    known::{Known, Opening},
    novelty::{NewMove, Reference, last_text, new_moves},
    reach::Coverage,
    write::{RepertoireFormat, Writing, add_to_book, add_to_pgn},
};
use crate::{position::Keyed, tree::move_number};

/// Who leaves a repertoire.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The side of the repertoire.
    Player,
    /// The other side.
    Opponent,
}

/// A move in SAN.
fn san(pos: &VariantPosition, mv: Move) -> String {
    SanPlus::from_move(pos.clone(), mv).to_string()
}

/// Moves with their numbers: `1. e4 c5 2. Nf3`. Returns the position after them too.
fn line_text(start: &VariantPosition, moves: &[Move]) -> (String, VariantPosition) {
    let mut pos = start.clone();
    let mut words: Vec<String> = Vec::new();
    for mv in moves {
        if words.is_empty() || pos.turn().is_white() {
            words.push(move_number(&pos));
        }
        words.push(san(&pos, *mv));
        pos.play_unchecked(*mv);
    }
    (words.join(" "), pos)
}

/// The position after moves.
fn position_after(
    start: &VariantPosition,
    moves: impl IntoIterator<Item = Move>,
) -> Keyed<VariantPosition> {
    let mut pos = start.clone();
    moves.into_iter().for_each(|mv| pos.play_unchecked(mv));
    Keyed::new(pos)
}

//! Counting the lines of a book.

use shakmaty::{Chess, Color, Position};

use super::{knowledge::Knowledge, seen::Seen};
use crate::{book::open::Book, error::Result, position::Keyed, progress::Meter};

/// The numbers of a book's lines and positions.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lines {
    /// Lines with White's moves from the book.
    pub white: u64,
    /// Lines with Black's.
    pub black: u64,
    /// Positions on White's lines in which the book has White's move.
    pub white_positions: u64,
    /// The same for Black.
    pub black_positions: u64,
    /// All positions of the book.
    pub positions: u64,
}

/// Counts the lines and positions of a book. `meter` shows the progress.
///
/// # Errors
///
/// A book that cannot be read, or whose keys do not ascend.
pub fn count(book: &Book, meter: &Meter) -> Result<Lines> {
    let knowledge = Knowledge::new(book, meter, 2)?;
    let (white, white_positions) = count_lines(&knowledge, Color::White)?;
    let (black, black_positions) = count_lines(&knowledge, Color::Black)?;
    Ok(Lines {
        white,
        black,
        white_positions,
        black_positions,
        positions: knowledge.positions(),
    })
}

/// The lines of a side, and the positions on them in which it is to move and the book has moves.
///
/// Each position is expanded once. So the number of lines is that of arrivals at seen positions plus that of
/// ends, in any order. An end that is not in the book need not be remembered: each arrival at it is a line.
fn count_lines(knowledge: &Knowledge<'_>, side: Color) -> Result<(u64, u64)> {
    let mut seen = Seen::new(knowledge.book());
    let mut waiting = vec![knowledge.look_up(Keyed::new(Chess::default()))?];
    let (mut lines, mut positions) = (0, 0);
    // No move of the book leads to the starting position, so it is not a line if nothing follows.
    let mut is_start = true;
    while let Some(known) = waiting.pop() {
        if seen.contains(&known) {
            lines += 1;
            continue;
        }
        let others = waiting.len();
        let ours = known.pos.position().turn() == side;
        if ours {
            positions += u64::from(known.place.is_some());
            for choice in knowledge.choices(&known)? {
                let mut after = known.pos.clone();
                after.play(choice.mv);
                waiting.push(knowledge.look_up(after)?);
            }
        } else {
            let replies = knowledge.replies(&known.pos)?;
            waiting.extend(replies.into_iter().map(|reply| reply.after));
        }
        let is_end = waiting.len() == others;
        lines += u64::from(is_end && !ours && !is_start);
        if !is_end || known.place.is_some() {
            seen.insert(&known);
        }
        is_start = false;
    }
    Ok((lines, positions))
}

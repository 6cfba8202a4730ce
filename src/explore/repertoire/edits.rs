//! Changes that a user makes to a repertoire: lines to add, and moves to remove.

use rustc_hash::FxHashMap;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::RemovedMoves;
use crate::{
    chess::position::{Keyed, Variant},
    explore::explorer::Line,
};

/// The changes that a user makes to a repertoire: lines to add, and moves to remove.
#[derive(Default, Debug)]
pub struct Edits {
    /// The lines that are added, of which only the moves of the repertoire's side matter. Each line begins in the
    /// starting position of the variant.
    added: Vec<Vec<Move>>,
    /// The moves to remove from the file, together with the moves after them.
    removed: RemovedMoves,
}

impl Edits {
    /// Parses edits of a repertoire for the side `color`, separated by semicolons. Each edit is a line of moves in
    /// UCI notation from the starting position of `variant`, such as `e2e4,c7c5,g1f3`.
    ///
    /// - A line without a sign adds the moves that the side `color` plays in this line.
    /// - A line after a minus sign removes its last move, which must be a move of this side. The move is removed from
    ///   the file and from lines that earlier edits added.
    ///
    /// # Errors
    ///
    /// Returns a message if a line is empty or not legal, or if a move to remove belongs to the opponent.
    pub fn parse(text: &str, variant: Variant, color: Color) -> Result<Edits, String> {
        let mut added = Vec::new();
        let mut removed_moves = RemovedMoves::default();
        // Maps each removed move, with the identity of its position, to the number of the last edit that removes the
        // move.
        let mut removals = FxHashMap::default();
        for (number, edit) in text.split(';').enumerate() {
            let removed = edit.strip_prefix('-');
            let line = Line::parse(variant, None, removed.unwrap_or(edit));
            let line = line.map_err(|err| {
                format!("{edit}: {err}; a line contains the moves of both sides, with the replies")
            })?;
            let Some((last, before)) = line.moves().split_last() else {
                return Err("a line is empty".to_owned());
            };
            if removed.is_none() {
                added.push((number, line.moves().to_vec()));
                continue;
            }
            let pos = &line.positions()[before.len()];
            if pos.turn() != color {
                let problem = "the last move does not belong to the side of the repertoire";
                return Err(format!("{edit}: {problem}"));
            }
            let pos = Keyed::new(pos.clone());
            removed_moves.insert(&pos, *last);
            removals.insert((pos.identity(), *last), number);
        }
        // Cutting the lines in one pass takes much less time than in one pass for each removal.
        for (number, line) in &mut added {
            cut_line(line, variant, color, |pos, mv| {
                let removal = removals.get(&(pos.identity(), mv));
                removal.is_some_and(|removal| removal > number)
            });
        }
        let added = added.into_iter().map(|(_, line)| line);
        Ok(Edits {
            added: added.filter(|line| !line.is_empty()).collect(),
            removed: removed_moves,
        })
    }

    /// Returns the lines of moves to add to the repertoire. Each line begins in the starting position of the variant.
    pub fn added(&self) -> impl Iterator<Item = &[Move]> {
        self.added.iter().map(Vec::as_slice)
    }

    /// Returns the moves to remove from the repertoire's file.
    pub fn removed(&self) -> &RemovedMoves {
        &self.removed
    }
}

/// Shortens `line`, which begins in the starting position of `variant`, if it contains a removed move. Leaves any other
/// line unchanged. `is_removed` returns `true` for a position and a move that is removed there. The shortened line
/// contains only moves before the first removed move, and ends with a move of the side `color`.
fn cut_line(
    line: &mut Vec<Move>,
    variant: Variant,
    color: Color,
    is_removed: impl Fn(&Keyed<VariantPosition>, Move) -> bool,
) {
    let mut pos = Keyed::new(variant.start());
    let mut own = 0;
    for (index, mv) in line.iter().enumerate() {
        if is_removed(&pos, *mv) {
            return line.truncate(own);
        }
        if pos.position().turn() == color {
            own = index + 1;
        }
        pos.play(*mv);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `text` as edits of a repertoire for White, and returns the lines to add in UCI notation.
    fn added(text: &str) -> Vec<String> {
        let edits = Edits::parse(text, Variant::Standard, Color::White).unwrap();
        let uci = |line: &[Move]| {
            let words = line
                .iter()
                .map(|mv| crate::chess::position::BookMove::from(*mv));
            words.map(|mv| mv.to_string()).collect::<Vec<_>>().join(",")
        };
        edits.added().map(uci).collect()
    }

    #[test]
    fn a_removal_also_cuts_lines_that_were_added_before() {
        assert_eq!(
            added("e2e4,c7c5,g1f3,d7d6,d2d4;d2d4"),
            ["e2e4,c7c5,g1f3,d7d6,d2d4", "d2d4"]
        );
        // The move is removed wherever its position occurs, even if the line reached the position by another order of
        // moves.
        assert_eq!(
            added("g1f3,c7c5,e2e4,d7d6,d2d4;-e2e4,c7c5,g1f3,d7d6,d2d4"),
            ["g1f3,c7c5,e2e4"]
        );
        assert_eq!(added("e2e4,c7c5,g1f3;-e2e4"), <[&str; 0]>::default());
        assert_eq!(added("-e2e4;e2e4,c7c5,g1f3"), ["e2e4,c7c5,g1f3"]);
        assert_eq!(
            added("e2e4,e7e5,g1f3;-e2e4;e2e4,e7e5,f1c4;e2e4,c7c5,g1f3;-e2e4,e7e5,f1c4"),
            ["e2e4", "e2e4,c7c5,g1f3"]
        );
    }

    #[test]
    fn edits_that_cannot_be_made_are_refused() {
        for (text, problem) in [
            ("e2e4;", "a line is empty"),
            ("-", "a line is empty"),
            (
                "e2e4,g1f3",
                "e2e4,g1f3: move 2 of the line, \"g1f3\", is not possible: illegal move in \
                 rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1; a line contains the moves of both sides, with the replies",
            ),
            (
                "-e2e4,c7c5",
                "-e2e4,c7c5: the last move does not belong to the side of the repertoire",
            ),
        ] {
            let refused = Edits::parse(text, Variant::Standard, Color::White).unwrap_err();
            assert_eq!(refused, problem);
        }
        assert!(Edits::parse("-e2e5", Variant::Standard, Color::White).is_err());
    }
}

//! Positions as people hand them on: a FEN, or a line of an EPD file.

use shakmaty::variant::VariantPosition;

use super::{LineError, Variant};

/// Fields of a FEN, with and without the checks of Three-check, and the fewest that a position needs.
const FIELDS: [usize; 4] = [7, 6, 5, 4];

impl Variant {
    /// Reads a position: a FEN, or an EPD with or without operations. Its `hmvc` and `fmvn` count the moves.
    ///
    /// # Errors
    ///
    /// As [`parse_fen`](Variant::parse_fen), or what follows the position is neither counters nor operations.
    ///
    /// ```
    /// use polybook::position::Variant;
    /// use shakmaty::Position;
    /// let epd = "4k3/8/8/8/8/8/8/4K2R w K - hmvc 7; fmvn 40; c0 \"12 games, White scored 54.2%\";";
    /// let pos = Variant::Standard.parse_position(epd)?;
    /// assert_eq!((pos.halfmoves(), pos.fullmoves().get()), (7, 40));
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn parse_position(self, text: &str) -> Result<VariantPosition, LineError> {
        // Nearly every one is no more than this.
        if let Ok(pos) = self.parse_fen(text) {
            return Ok(pos);
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut problem = None;
        for count in FIELDS {
            let (position, operations) = fields.split_at(fields.len().min(count));
            let position = position.join(" ");
            match self.parse_fen(&position) {
                Ok(pos) => {
                    let operations = operations.join(" ");
                    if !are_operations(&operations) {
                        return Err(LineError::Fen {
                            fen: text.to_owned(),
                            reason: format!(
                                "remove \"{operations}\" after the position, or end it with a semicolon if it is an \
                                 EPD operation"
                            ),
                        });
                    }
                    let counted = counters(&operations).and_then(|counters| {
                        self.parse_fen(&format!("{position} {counters}")).ok()
                    });
                    return Ok(counted.unwrap_or(pos));
                }
                // That of the most fields says the most.
                Err(err) => problem = problem.or(Some(err)),
            }
        }
        Err(problem.expect("something was read"))
    }
}

/// Whether a text may be the operations of an EPD, and not moves or what a FEN has.
fn are_operations(text: &str) -> bool {
    text.is_empty() || (text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.ends_with(';'))
}

/// The counters of moves among the operations of an EPD, as a FEN has them; `None` if there is neither.
fn counters(operations: &str) -> Option<String> {
    // What is in quotes is for people.
    let unquoted: String = operations.split('"').step_by(2).collect();
    let operand = |opcode: &str| {
        let named = unquoted.split(';').map(str::split_ascii_whitespace);
        let mut values = named.filter_map(|mut words| match words.next() {
            Some(name) if name == opcode => words.next()?.parse::<u32>().ok(),
            _ => None,
        });
        values.next()
    };
    let (halfmoves, fullmoves) = (operand("hmvc"), operand("fmvn"));
    halfmoves.or(fullmoves)?;
    Some(format!(
        "{} {}",
        halfmoves.unwrap_or(0),
        fullmoves.unwrap_or(1)
    ))
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;

    #[track_caller]
    fn check(variant: Variant, line: &str, halfmoves: u32, fullmoves: u32) {
        let pos = variant.parse_position(line).unwrap();
        let found = (pos.halfmoves(), pos.fullmoves().get());
        assert_eq!(found, (halfmoves, fullmoves), "{line}");
    }

    #[test]
    fn counters_of_moves_are_read() {
        let with = |operations: &str| format!("4k3/8/8/8/8/8/8/4K2R w K - {operations}");
        for (operations, halfmoves, fullmoves) in [
            ("", 0, 1),
            ("7 40", 7, 40),
            ("hmvc 7; fmvn 40;", 7, 40),
            ("fmvn 40; id \"hmvc 3; fmvn 4;\"; hmvc 7;", 7, 40),
            ("bm O-O; hmvc 7;", 7, 1),
            ("c0 \"12 games\"; fmvn x;", 0, 1),
        ] {
            check(Variant::Standard, &with(operations), halfmoves, fullmoves);
        }
        for operations in ["3+2 7 40", "3+2 hmvc 7; fmvn 40;"] {
            check(Variant::ThreeCheck, &with(operations), 7, 40);
        }
    }

    #[test]
    fn nothing_else_may_follow_a_position() {
        let fen = "4k3/8/8/8/8/8/8/4K2R w K -";
        for rest in [
            "e4",
            "0 1 e4 e5",
            "0 1 moves e2e4",
            "hmvc 7",
            "0 1;",
            "7 40 x 3",
        ] {
            let read = Variant::Standard.parse_position(&format!("{fen} {rest}"));
            assert!(read.is_err(), "{rest}");
        }
    }
}

//! Starting positions of a suite, from a file of FENs or EPDs.

use shakmaty::variant::VariantPosition;

use crate::position::{LineError, Variant};

/// Fields of a FEN, with and without the checks of Three-check, and the fewest that a position needs.
const FIELDS: [usize; 4] = [7, 6, 5, 4];

/// Reads positions, one a line: a FEN, or an EPD with or without operations, of which `hmvc` and `fmvn` count the moves.
/// Blank lines and lines that begin with `#` are passed over.
///
/// # Errors
///
/// The number of the first line that is no position, from 1, and what is wrong with it.
///
/// ```
/// use polybook::{position::Variant, suite::read_starts};
/// use shakmaty::Position;
///
/// let text = "# after 1. e4 e5 2. Ke2\nrnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPPKPPP/RNBQ1BNR b kq - hmvc 1; fmvn 2;\n";
/// let starts = read_starts(text, Variant::Standard).unwrap();
/// assert_eq!(starts[0].fullmoves().get(), 2);
/// assert_eq!(read_starts("8/8/8 w - -", Variant::Standard).unwrap_err().0, 1);
/// ```
pub fn read_starts(
    text: &str,
    variant: Variant,
) -> Result<Vec<VariantPosition>, (usize, LineError)> {
    let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    let lines = lines.map(|(number, line)| (number, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| read_start(line, variant).map_err(|err| (number, err)))
        .collect()
}

/// The position of a line. Which fields are of the position and which are operations is seen by what can be read.
pub(super) fn read_start(line: &str, variant: Variant) -> Result<VariantPosition, LineError> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let mut problem = None;
    for count in FIELDS {
        let (position, operations) = fields.split_at(fields.len().min(count));
        let position = position.join(" ");
        match variant.parse_fen(&position) {
            Ok(pos) => {
                let counted = counters(operations)
                    .and_then(|counters| variant.parse_fen(&format!("{position} {counters}")).ok());
                return Ok(counted.unwrap_or(pos));
            }
            // That of the most fields says the most.
            Err(err) => problem = problem.or(Some(err)),
        }
    }
    Err(problem.expect("something was read"))
}

/// Whether games of Chess960 start from an EPD: all pawns at home, the pieces behind them, and all castling rights.
pub(crate) fn is_chess960_start(epd: &str) -> bool {
    epd.contains("/pppppppp/8/8/8/8/PPPPPPPP/") && epd.ends_with(" w KQkq -")
}

/// The counters of moves among the operations of an EPD, as a FEN has them; `None` if there is neither.
fn counters(operations: &[&str]) -> Option<String> {
    let operations = operations.join(" ");
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
        let pos = read_start(line, variant).unwrap();
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
}

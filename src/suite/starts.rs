//! Starting positions of a suite, from a file of FENs or EPDs.

use shakmaty::variant::VariantPosition;

use crate::position::{LineError, Variant};

/// Fields of a FEN, and the fewest that a position needs.
const FIELDS: [usize; 3] = [6, 5, 4];

/// Reads positions, one a line: a FEN, or an EPD with or without operations. Blank lines and lines that begin with `#`
/// are passed over.
///
/// # Errors
///
/// The number of the first line that is no position, from 1, and what is wrong with it.
///
/// ```
/// use polybook::{suite::read_starts, position::Variant};
///
/// let text = "# after 1. e4\nrnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - hmvc 0; fmvn 1;\n";
/// assert_eq!(read_starts(text, Variant::Standard).unwrap().len(), 1);
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
    let texts = FIELDS
        .iter()
        .map(|count| fields[..fields.len().min(*count)].join(" "));
    let read = texts.map(|text| variant.parse_fen(&text));
    let mut problem = None;
    for read in read {
        match read {
            Ok(pos) => return Ok(pos),
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

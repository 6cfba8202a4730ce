//! Starting positions of a suite, from a file of FENs or EPDs.

use shakmaty::variant::VariantPosition;

use crate::position::{LineError, Variant};

/// Reads positions, one a line: a FEN, or an EPD with or without operations. `hmvc` and `fmvn` are its counters of moves.
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

fn read_start(line: &str, variant: Variant) -> Result<VariantPosition, LineError> {
    // Some programs leave out the last semicolon.
    variant
        .parse_position(line)
        .or_else(|err| variant.parse_position(&format!("{line};")).map_err(|_| err))
}

/// Whether games of Chess960 start from an EPD: all pawns at home, the pieces behind them, and all castling rights.
pub(crate) fn is_chess960_start(epd: &str) -> bool {
    epd.contains("/pppppppp/8/8/8/8/PPPPPPPP/") && epd.ends_with(" w KQkq -")
}

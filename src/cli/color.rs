//! The side that an option names.

use shakmaty::Color;

/// A side.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
pub enum ColorArg {
    White,
    Black,
}

impl ColorArg {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ColorArg::White => "white",
            ColorArg::Black => "black",
        }
    }
}

impl From<ColorArg> for Color {
    fn from(color: ColorArg) -> Color {
        match color {
            ColorArg::White => Color::White,
            ColorArg::Black => Color::Black,
        }
    }
}

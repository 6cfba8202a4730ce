//! What a table or a suite may replace: an empty file, or one of its own kind.

use std::path::Path;

use super::starts::read_start;
use crate::{error::Result, output::check_first_line, position::Variant};

/// What tells that a file was written by the same conversion.
#[derive(Copy, Clone, Debug)]
pub(super) enum Kind {
    /// It begins with this line.
    FirstLine(&'static str),
    /// Its first line is an EPD.
    Epd,
    /// Its first line is a JSON document.
    #[cfg(feature = "serde")]
    Json,
}

/// Refuses to replace a file of another kind.
pub(super) fn check_replaceable(path: &Path, kind: Kind) -> Result<()> {
    check_first_line(path, |line| kind.is_of(line))
}

impl Kind {
    fn is_of(self, line: &[u8]) -> bool {
        match self {
            Kind::FirstLine(first) => line.trim_ascii_end() == first.as_bytes(),
            Kind::Epd => std::str::from_utf8(line).is_ok_and(|epd| {
                Variant::ALL
                    .into_iter()
                    .any(|variant| read_start(epd, variant).is_ok())
            }),
            // A line may be longer than what is looked at.
            #[cfg(feature = "serde")]
            Kind::Json => [&b"{\"key\":\""[..], b"{\"fen\":\""]
                .iter()
                .any(|start| line.starts_with(start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_same_kind_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let epd = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -\n";
        let table = "EPD,Move\nx,e2e4\n";
        let first = Kind::FirstLine("EPD,Move");
        for (text, is_epd, is_table) in [
            ("", true, true),
            (epd, true, false),
            (table, false, true),
            ("my notes\n", false, false),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(
                check_replaceable(&path, Kind::Epd).is_ok(),
                is_epd,
                "{text}"
            );
            assert_eq!(check_replaceable(&path, first).is_ok(), is_table, "{text}");
        }
    }
}

//! What a table may replace: an empty file, or one of its own kind.

use std::path::Path;

use crate::{error::Result, output::check_first_line};

/// The sign of a file that the same conversion wrote.
#[derive(Copy, Clone, Debug)]
pub(super) enum Kind {
    /// It begins with this line.
    FirstLine(&'static str),
    /// Its first line is a JSON document.
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
            // A line may be longer than what is looked at.
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
        let table = "EPD,Move\nx,e2e4\n";
        let first = Kind::FirstLine("EPD,Move");
        for (text, is_table) in [("", true), (table, true), ("my notes\n", false)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(check_replaceable(&path, first).is_ok(), is_table, "{text}");
        }
    }
}

//! The comment that a book's header carries if the user gives none: where the book comes from.

use super::{MakeBook, report::Report};
use crate::{
    book::{
        BookSummary, Scale,
        header::{self, PORTABLE_LENGTH},
    },
    error::{Error, Result},
};

impl MakeBook {
    /// The header of the book, `None` if it is to have none.
    pub(super) fn header(&self, report: &Report, summary: &BookSummary) -> Result<Option<String>> {
        if !self.header {
            return Ok(None);
        }
        let comment = match &self.comment {
            Some(comment) => comment.clone(),
            None => self.provenance(report, summary),
        };
        let header = header::create(&["normal"], &comment)
            .map_err(|source| Error::file("--comment", source.to_string()))?;
        // The null byte counts.
        if header.len() >= PORTABLE_LENGTH {
            return Err(Error::file(
                "--comment",
                format!(
                    "the header would take {} bytes, and {PORTABLE_LENGTH} is what every program reads: shorten the comment",
                    header.len() + 1
                ),
            ));
        }
        Ok(Some(header))
    }

    /// What made the book, of what and how. Nothing in it depends on time, place or machine.
    fn provenance(&self, report: &Report, summary: &BookSummary) -> String {
        let games = &report.games;
        let mut lines = vec![
            format!("Made by polybook {}", env!("CARGO_PKG_VERSION")),
            self.input_names(),
            format!(
                "Games: {} read, {} counted, {} filtered, {} rejected",
                games.read, games.counted, games.filtered, games.rejected
            ),
        ];
        let options = match self.option_text() {
            text if text.is_empty() => "defaults".to_owned(),
            text => shortened(&text, 600),
        };
        lines.push(format!("Options: {options}"));
        lines.push(format!("Weight: {}", self.weighting.formula()));
        lines.push(match self.weighting.scale {
            Scale::Global => format!(
                "Scale: {} (largest weight {})",
                summary.scale, summary.largest_weight
            ),
            Scale::Position => "Scale: each position's own".to_owned(),
        });
        lines.join("\n")
    }

    /// The names of the inputs, as many as there is room for.
    fn input_names(&self) -> String {
        const ROOM: usize = 900;
        let mut line = String::from("Input: ");
        for (i, input) in self.inputs.iter().enumerate() {
            let name = shortened(&printable(&input.name()), ROOM / 2);
            if line.len() + name.len() > ROOM {
                line.push_str(&format!(" and {} more", self.inputs.len() - i));
                break;
            }
            if i > 0 {
                line.push_str(", ");
            }
            line.push_str(&name);
        }
        line
    }
}

/// Without line breaks and other control characters.
fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// At most `bytes` of a text, with dots where the rest was.
fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(3));
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgn::{Input, Selection};

    #[test]
    fn the_comment_always_fits() {
        let inputs = (0..500).map(|i| Input::file(format!("dir/\u{1F600}long name\n{i}.pgn")));
        let selection = Selection {
            player: Some("x".repeat(5000)),
            ..Selection::default()
        };
        let run = MakeBook::new(inputs).selection(selection);
        let report = Report::default();
        let header = run
            .header(&report, &BookSummary::default())
            .unwrap()
            .unwrap();
        assert!(header.len() < PORTABLE_LENGTH, "{}", header.len());
        assert!(header.contains(" more\nGames:"), "{header}");
        assert!(!header.contains("dir"));
        let comment = header::parse(&header).unwrap().comment;
        assert_eq!(comment.lines().count(), 6);
    }

    #[test]
    fn a_comment_of_ones_own_must_fit() {
        let run = MakeBook::new([]).comment("x".repeat(PORTABLE_LENGTH));
        assert!(
            run.header(&Report::default(), &BookSummary::default())
                .is_err()
        );
        let run = MakeBook::new([]).with_header(false);
        let header = run.header(&Report::default(), &BookSummary::default());
        assert_eq!(header.unwrap(), None);
    }
}

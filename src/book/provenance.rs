//! Where counts come from, and the comment that a book's header carries if the user gives none.

use super::{
    header::{self, HeaderError, PORTABLE_LENGTH},
    make::BookSummary,
    weight::{Scale, Weighting},
};
use crate::tally::Games;

/// Where counts come from. Nothing in it depends on time, place or machine.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Provenance {
    /// The names of the inputs, without their directories.
    pub inputs: Vec<String>,
    /// What became of the games, if that is known.
    pub games: Option<Games>,
    /// The options that decided what was counted and are not the defaults, as on a command line.
    pub options: String,
}

impl Provenance {
    /// The header of a book for these variants, with `comment` or else with what made the book, of what
    /// and how.
    ///
    /// # Errors
    ///
    /// A header that would be too long for some programs.
    pub fn header<S: AsRef<str>>(
        &self,
        variants: &[S],
        comment: Option<&str>,
        weighting: &Weighting,
        summary: &BookSummary,
    ) -> Result<String, ProvenanceError> {
        let header = match comment {
            Some(comment) => header::create(variants, comment)?,
            None => header::create(variants, &self.comment(weighting, summary))?,
        };
        // The null byte counts.
        if header.len() >= PORTABLE_LENGTH {
            return Err(ProvenanceError::TooLong(header.len() + 1));
        }
        Ok(header)
    }

    fn comment(&self, weighting: &Weighting, summary: &BookSummary) -> String {
        let mut lines = vec![
            format!("Made by polybook {}", env!("CARGO_PKG_VERSION")),
            format!("Input: {}", self.input_names()),
        ];
        if let Some(games) = &self.games {
            lines.push(format!("Games: {games}"));
        }
        let options = [self.options.clone(), weighting.option_text()];
        let options = match options.join(" ").trim() {
            "" => "defaults".to_owned(),
            text => shortened(text, 600),
        };
        lines.push(format!("Options: {options}"));
        lines.push(format!("Weight: {}", weighting.formula()));
        lines.push(match weighting.scale {
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
        let mut line = String::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let name = shortened(&printable(input), ROOM / 2);
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

/// Why there can be no such header.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// Some programs read no more than [`PORTABLE_LENGTH`] bytes.
    #[error(
        "the header would take {0} bytes, and {PORTABLE_LENGTH} is what every program reads: shorten the comment"
    )]
    TooLong(usize),
    /// The header cannot be made at all.
    #[error(transparent)]
    Header(#[from] HeaderError),
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

    #[test]
    fn the_comment_always_fits() {
        let provenance = Provenance {
            inputs: (0..500)
                .map(|i| format!("\u{1F600}long name\n{i}.pgn"))
                .collect(),
            games: Some(Games::default()),
            options: format!("--player {}", "x".repeat(5000)),
        };
        let header = provenance
            .header(
                &["normal"],
                None,
                &Weighting::default(),
                &BookSummary::default(),
            )
            .unwrap();
        assert!(header.len() < PORTABLE_LENGTH, "{}", header.len());
        assert!(header.contains(" more\nGames:"), "{header}");
        let comment = header::parse(&header).unwrap().comment;
        assert_eq!(comment.lines().count(), 6);
    }

    #[test]
    fn a_comment_of_ones_own_must_fit() {
        let made = |length: usize| {
            let comment = "x".repeat(length);
            Provenance::default().header(
                &["normal"],
                Some(&comment),
                &Weighting::default(),
                &BookSummary::default(),
            )
        };
        assert!(made(PORTABLE_LENGTH).is_err());
        assert!(made(100).is_ok());
    }
}

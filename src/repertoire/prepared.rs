//! Writes the lines of a preparation as PGN.

use std::{io::Write, path::Path};

use shakmaty::variant::VariantPosition;

use crate::{
    error::{At, Result},
    explorer::PreparedLine,
    tree::GameWriter,
};

/// Writes the lines of a preparation as PGN, one game without a result for each line. A comment after the last move
/// says how likely the line is, and how the player scores after it.
///
/// `event` becomes the `Event` tag of each game, and `start` is the position in which the lines begin. Error messages
/// name the output `path`.
///
/// # Errors
///
/// Returns an error if the output cannot be written.
pub fn write_prepared(
    event: &str,
    start: &VariantPosition,
    lines: &[PreparedLine],
    out: impl Write,
    path: &Path,
) -> Result<()> {
    // Quotes and backslashes would end the value of the tag early.
    let event: String = event
        .chars()
        .filter(|letter| !matches!(letter, '"' | '\\' | '\r' | '\n'))
        .collect();
    let mut games = GameWriter::new(out);
    for (line, round) in lines.iter().zip(1..) {
        let written = games
            .begin(
                &event,
                round,
                start,
                line.opening.map(|opening| (opening.eco, opening.name)),
                false,
            )
            .and_then(|()| games.words(&format!("{} {{{}}}", line.text(start), comment(line))))
            .and_then(|()| games.end());
        written.at(path, "write")?;
    }
    Ok(())
}

/// Returns the comment on a line: the probability of the line, the player's number of games and score after it, and
/// whether the player has no answer.
fn comment(line: &PreparedLine) -> String {
    let games = match line.yours.games {
        0 => "no game of yours".to_owned(),
        1 => "1 game of yours".to_owned(),
        games => format!("{games} games of yours"),
    };
    let score = line.score.map(|score| format!(", {score:.1}%"));
    let gap = if line.gap { ", no answer" } else { "" };
    format!(
        "1 in {:.1}, {games}{}{gap}",
        1.0 / line.chance,
        score.unwrap_or_default()
    )
}

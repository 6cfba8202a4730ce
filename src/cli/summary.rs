//! The summary that `make-book` prints for people.

use std::path::Path;

use polybook::{Report, book::MinimaxSummary, pgn::Condition};

use super::{counted, evals, input::output_name};

/// The number of rejected games that the summary describes.
const DESCRIBED: usize = 10;

/// Returns the summary of a run, with one line for each fact.
pub fn of(report: &Report, seconds: f64) -> String {
    let mut text = String::new();
    warnings(&mut text, report);
    games(&mut text, report);
    outputs(&mut text, report);
    text += &format!("{seconds:.2} seconds\n");
    text
}

fn warnings(text: &mut String, report: &Report) {
    for warning in &report.warnings {
        *text += &format!("warning: {warning}\n");
    }
    for rejection in report.rejected.iter().take(DESCRIBED) {
        *text += &format!("rejected: {rejection}\n");
    }
    let more = report
        .totals
        .games
        .rejected
        .saturating_sub(DESCRIBED as u64);
    if more > 0 {
        *text += &format!("rejected: and {more} more\n");
    }
}

fn games(text: &mut String, report: &Report) {
    let totals = &report.totals;
    let games = &totals.games;
    if report.has_unknown_games {
        text.push_str(
            "games: unknown, because counts among the inputs do not say how many they have\n",
        );
    }
    if games.read > 0 || !report.has_unknown_games {
        *text += &format!(
            "{} read, {} counted, {} filtered, {} rejected\n",
            counted(games.read, "game"),
            games.counted,
            games.filtered,
            games.rejected
        );
    }
    if let Some(games) = totals.filtered_by.get(&Condition::Duplicate) {
        *text += &format!(
            "{games} of the filtered games have the same moves, players and result as an earlier one\n"
        );
    }
    // An index and a suite do not count results as draws.
    if totals.unfinished > 0
        && (report.book.is_some() || report.obs.is_some() || report.counts.is_some())
    {
        *text += &format!(
            "{} without a result counted as {}: --unfinished skip leaves such games out\n",
            counted(totals.unfinished, "game"),
            if totals.unfinished == 1 {
                "a draw"
            } else {
                "draws"
            }
        );
    }
    for (variant, games) in &totals.variants {
        *text += &format!("{variant}: {} counted\n", counted(*games, "game"));
    }
    // If indexes are the only outputs, moves are not counted.
    if report.book.is_some()
        || report.obs.is_some()
        || report.counts.is_some()
        || (report.index.is_none() && report.explorer.is_none() && report.suite.is_none())
    {
        *text += &format!(
            "{}, {}, {}\n",
            counted(totals.plies, "half-move"),
            counted(report.positions, "position"),
            counted(report.pairs, "position-move pair")
        );
    }
}

fn outputs(text: &mut String, report: &Report) {
    if let Some(book) = &report.book {
        let name = output_name(&book.path);
        *text += &format!("{name}: {}", counted(book.entries, "entry"));
        if book.scale < 1.0 {
            *text += &format!(", weights scaled by {:.6}", book.scale);
        }
        text.push('\n');
        text.push_str(&evals::losses(book.losses));
        text.push_str(&minimax(book.minimax));
    }
    if report.totals.ambiguous_castling > 0 {
        *text += &format!(
            "{} half-moves are not in the book, because in their positions a rook may castle that is not the outermost one\n",
            report.totals.ambiguous_castling
        );
    }
    let mut say = |path: &Path, what: String| {
        *text += &format!("{}: {what}\n", output_name(path));
    };
    for index in report.index.iter().chain(&report.explorer) {
        let positions = counted(index.positions, "position");
        let what = match index.rows {
            Some(rows) => format!("{positions}, {}", counted(rows, "row")),
            None => {
                let (games, postings) = (index.games, index.postings);
                let all = counted(games, "game");
                let games = match report.totals.games.counted {
                    found if found == games => all,
                    found => format!("{found} of {all} counted"),
                };
                [games, positions, counted(postings, "posting")].join(", ")
            }
        };
        say(&index.path, what);
    }
    if let Some(obs) = &report.obs {
        let mut what = counted(obs.rows, "row");
        if obs.rare > 0 {
            let (moves, were) = (
                counted(obs.rare, "move"),
                if obs.rare == 1 { "was" } else { "were" },
            );
            what += &format!(
                "; {moves} {were} played fewer than {} times: --min-game 1 keeps them",
                obs.min_game
            );
        }
        say(&obs.path, what);
    }
    if let Some(counts) = &report.counts {
        let (rows, parts) = (counts.rows, counts.parts as u64);
        if let Some(pruned) = counts.pruned {
            say(&counts.path, pruned.to_string());
        }
        let what = [counted(rows, "row"), counted(parts, "part")];
        say(&counts.path, what.join(" in "));
    }
    if let Some(suite) = &report.suite {
        let end = suite.path.extension();
        let is_epd = end.is_some_and(|end| end.eq_ignore_ascii_case("epd"));
        let thing = if is_epd { "position" } else { "line" };
        let left_out = evals::left_out(suite.unevaluated);
        say(&suite.path, counted(suite.lines, thing) + &left_out);
    }
}
/// Returns the line that says how many moves `--minimax` lowered or left out.
pub fn minimax(minimax: Option<MinimaxSummary>) -> String {
    minimax.map_or_else(String::new, |minimax| {
        let unreached = match minimax.unreached {
            0 => String::new(),
            moves => format!(", {moves} not reached"),
        };
        let warning = match minimax.first_percent {
            percent @ ..10 => {
                format!("warning: --minimax leaves {percent}% of the weight of the first position's moves\n")
            }
            _ => String::new(),
        };
        format!(
            "{warning}{} lowered by --minimax, {} left out{unreached}\n",
            counted(minimax.lowered, "move"),
            minimax.left_out
        )
    })
}

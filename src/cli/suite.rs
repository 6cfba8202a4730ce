//! The options that determine the content of an opening suite, which is a list of openings from which engines play
//! games.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use polybook::{
    Error,
    counts::Memory,
    evals::Evals,
    position::Variant,
    suite::{EvalRange, Suite, SuiteFormat, half_moves, read_starts},
};

use super::{
    input::{self, in_memory},
    resources::count,
    usage::Usage,
};

/// An upper bound on the memory for positions that are read from a file, in bytes per byte of the file.
const MEMORY_PER_BYTE: usize = 16;

/// The option of `make-book` that writes an opening suite. An error message names it if the user gives other options
/// for suites but not this option.
pub const ONLY_SUITE: &str = "--suite";

/// The options that determine the content of an opening suite, which is a list of openings for games between engines.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Opening suites")]
pub struct SuiteArgs {
    /// End each opening of the suite after N half-moves (a half-move is one move of one side) [default: 8]. With a range
    /// such as 8..16, the suite contains openings of each of these lengths
    #[arg(long, value_name = "N|A..B", value_parser = plies)]
    plies: Option<PlyRange>,

    /// Write only the N most frequent openings of the suite. With --seed, write N random openings
    #[arg(long, value_name = "N", value_parser = count::<u64>(1))]
    limit: Option<u64>,

    /// Put the openings of the suite into a random order. The same number S gives the same order on every machine
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// Keep only openings after which White scored from LOW to HIGH percent, such as 45-55. make-book counts the games
    /// that reach the position after exactly --plies half-moves
    #[arg(long, value_name = "LOW-HIGH", value_parser = balance)]
    balance: Option<(f64, f64)>,

    /// Keep only openings after which LOW to HIGH percent of the games were drawn, such as 40-70. The games are counted
    /// as for --balance
    #[arg(long, value_name = "LOW-HIGH", value_parser = draw_rate)]
    draw_rate: Option<(f64, f64)>,

    /// Keep only openings whose final position is evaluated at A to B centipawns from the point of view of White, such
    /// as -50..50. The evaluations are those of --evals
    #[arg(long, value_name = "A..B", value_parser = centipawns, allow_hyphen_values = true, requires = "evals", conflicts_with = "eval_abs")]
    eval: Option<(i16, i16)>,

    /// Keep only openings after which one side, no matter which, is better by A to B centipawns, such as 80..120. The
    /// evaluations are those of --evals
    #[arg(long, value_name = "A..B", value_parser = centipawns, requires = "evals")]
    eval_abs: Option<(i16, i16)>,

    /// Keep only openings with a quiet end: the last move is no capture, promotion or check, and no capture in the final
    /// position wins material (static exchange evaluation)
    #[arg(long)]
    quiet_positions: bool,

    /// Write at most N openings for each opening code (ECO), such as B20. Openings without a code are not limited
    #[arg(long, value_name = "N", value_parser = count::<u64>(1))]
    per_eco: Option<u64>,

    /// Write the ECO code and the name of each opening. A suite in PGN contains them as the tags ECO and Opening, and a
    /// suite in EPD as the operation id
    #[arg(long)]
    tags: bool,

    /// If several openings lead to the same position, keep only the first one
    #[arg(long)]
    unique: bool,

    /// Start the openings from the positions in this file, instead of the starting position of the game. The file
    /// contains one FEN or EPD per line; - reads standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Write the half-move clock (hmvc) and the move number (fmvn) into each EPD of the suite
    #[arg(long)]
    opcodes: bool,
}

/// Returns the end of a phrase that describes a suite, such as "100 lines of 8 half-moves" or "100 positions after 8
/// half-moves". `plies` contains the lengths in half-moves. The result begins with " of" for a suite of lines (PGN),
/// and with " after" for a suite of positions (EPD).
pub fn length_suffix(format: SuiteFormat, plies: &RangeInclusive<usize>) -> String {
    let plies = half_moves(plies);
    match format {
        SuiteFormat::Pgn => format!(" of {plies}"),
        SuiteFormat::Epd => format!(" after {plies}"),
    }
}

/// Returns the end of the line that describes a suite in the summary of a command. It says how many lines of moves were
/// left out by `--unique` because another line leads to the same position. Returns an empty string if this number,
/// `repeated`, is `None` or 0.
pub fn repeated_suffix(repeated: Option<u64>) -> String {
    let count = repeated.filter(|count| *count > 0);
    count.map_or_else(String::new, |count| {
        format!("; {count} left out by --unique, because another line leads to the same position")
    })
}

/// The lengths of the openings of a suite, in half-moves.
#[derive(Copy, Clone, Debug)]
struct PlyRange {
    least: u16,
    most: u16,
}

/// Parses a number of half-moves such as `8`, or a range such as `8..16`. Returns an error message if the text is
/// anything else, or contains 0.
fn plies(text: &str) -> Result<PlyRange, &'static str> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|number| *number > 0);
    number(least)
        .zip(number(most))
        .filter(|(least, most)| least <= most)
        .map(|(least, most)| PlyRange { least, most })
        .ok_or("use a number of half-moves from 1 to 65535, or a range with the lower number first, such as 8..16")
}

/// Parses a range of scores in percent, such as `45-55`. Returns its bounds, or an error message if the text is not
/// such a range.
fn balance(text: &str) -> Result<(f64, f64), String> {
    range(text, "scores", "45-55")
}

/// Parses a range of draw rates in percent, such as `40-70`, and returns its bounds. Returns an error message if the
/// text is not such a range.
fn draw_rate(text: &str) -> Result<(f64, f64), String> {
    range(text, "draws", "40-70")
}

/// Parses a range of evaluations in centipawns (hundredths of a pawn), such as `80..120`, and returns its bounds. Returns
/// an error message if the text is not such a range.
fn centipawns(text: &str) -> Result<(i16, i16), &'static str> {
    let number = |text: &str| {
        let number = text.trim().parse::<i16>().ok()?;
        (number.unsigned_abs() <= MAX_CENTIPAWNS).then_some(number)
    };
    text.split_once("..")
        .and_then(|(low, high)| Some((number(low)?, number(high)?)))
        .filter(|(low, high)| low <= high)
        .ok_or("use two numbers of centipawns with .. between them, the lower one first, such as 80..120")
}

/// The largest number of centipawns that an option for evaluations accepts. In a store of evaluations, larger values
/// stand for mates.
const MAX_CENTIPAWNS: u16 = 32_000;

/// Parses a range of percentages and returns its bounds. For error messages, `things` is the plural noun for the
/// values, and `example` is an example of a range.
///
/// # Errors
///
/// Returns an error message if the text is not a range, or if the range is not above 1 and contains no percent sign,
/// such as `0.4-0.6`, because the user probably means shares instead of percentages.
fn range(text: &str, things: &str, example: &str) -> Result<(f64, f64), String> {
    let percent = |text: &str| text.trim().trim_end_matches('%').parse::<f64>().ok();
    text.split_once('-')
        .and_then(|(low, high)| Some((percent(low)?, percent(high)?)))
        .filter(|(low, high)| (0.0..=100.0).contains(low) && (0.0..=100.0).contains(high))
        .ok_or_else(|| format!("use a range of {things} in percent, such as {example}"))
        .and_then(|(low, high)| match low <= high {
            true if high > 0.0 && high <= 1.0 && !text.contains('%') => {
                Err(format!("use percentages, such as {example}"))
            }
            true => Ok((low, high)),
            false => Err(format!("put the lower number first, as in {example}")),
        })
}

impl SuiteArgs {
    /// Returns the settings of the suite that require no files: all settings except the evaluations, the starting
    /// positions, and the condition on positions, which is an option of the command.
    pub fn settings(&self) -> Suite {
        let limit = self
            .limit
            .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let default = Suite::default();
        Suite {
            plies: self
                .plies
                .map_or(default.plies, |PlyRange { least, most }| {
                    least.into()..=most.into()
                }),
            limit,
            seed: self.seed,
            balance: self.balance,
            draw_rate: self.draw_rate,
            quiet: self.quiet_positions,
            per_eco: self.per_eco,
            tags: self.tags,
            unique: self.unique,
            opcodes: self.opcodes,
            ..default
        }
    }

    /// Returns all settings of the suite except the condition on positions. Reads the starting positions from the file
    /// that the user named. If an option filters positions by evaluation, also opens the store of evaluations at the
    /// path `evals`.
    pub fn suite(
        &self,
        variant: Variant,
        memory: &Memory,
        evals: Option<&Path>,
    ) -> anyhow::Result<Suite> {
        Ok(Suite {
            evals: self.eval_range(memory, evals)?,
            starts: self.starts(variant, memory)?,
            ..self.settings()
        })
    }

    fn eval_range(
        &self,
        memory: &Memory,
        evals: Option<&Path>,
    ) -> anyhow::Result<Option<EvalRange>> {
        let (Some(centipawns), Some(evals)) = (self.eval.or(self.eval_abs), evals) else {
            return Ok(None);
        };
        let evals = Evals::open_within(input::file_of(evals)?, in_memory(memory) / 2)?;
        Ok(Some(EvalRange {
            evals: Arc::new(evals),
            centipawns,
            of_either: self.eval_abs.is_some(),
        }))
    }

    /// Returns `true` if the user gave `--plies`, the length of the suite's lines.
    pub fn has_plies(&self) -> bool {
        self.plies.is_some()
    }

    /// Returns `true` if an option filters the positions of the suite by their evaluations.
    pub fn needs_evals(&self) -> bool {
        self.eval.or(self.eval_abs).is_some()
    }

    /// Returns the paths of the input files that the options name. Only `--from` names such a file.
    pub fn inputs(&self) -> Vec<&Path> {
        self.from.iter().map(PathBuf::as_path).collect()
    }

    pub fn reads_standard_input(&self) -> bool {
        self.from.as_deref() == Some(Path::new("-"))
    }

    fn starts(
        &self,
        variant: Variant,
        memory: &Memory,
    ) -> anyhow::Result<Vec<shakmaty::variant::VariantPosition>> {
        let Some(path) = &self.from else {
            return Ok(Vec::new());
        };
        let name = input::name(path);
        let text = input::read_text(path, memory, MEMORY_PER_BYTE)?;
        let problem = |problem: String| Error::file(&name, problem);
        if text.starts_with('[') {
            let problem =
                "this file is PGN, but --from needs a file with a FEN or an EPD on each line";
            return Err(Error::foreign(&name, problem).into());
        }
        let starts = read_starts(&text, variant)
            .map_err(|(number, err)| problem(format!("line {number}: {err}")))?;
        if starts.is_empty() {
            return Err(problem(
                "this file contains no position: write a FEN or an EPD on each line".to_owned(),
            )
            .into());
        }
        Ok(starts)
    }

    /// Returns an error if the user gave an option that has no effect on the suite. `is_of_lines` says whether the
    /// suite consists of lines or of positions.
    pub fn refuse_unused(&self, is_of_lines: bool) -> Result<(), Usage> {
        let opcodes = (is_of_lines && self.opcodes).then_some("--opcodes");
        Usage::refuse(
            opcodes,
            "applies only to suites of positions: use a file name that ends in .epd",
        )
    }

    /// Returns an error if the user gave an option that applies only to suites. Commands that write no suite call this
    /// function. `suites` completes the error message "applies only to ...": it is the option or the kind of output to
    /// which such options apply, for example `--suite`.
    pub fn refuse(&self, suites: &str) -> Result<(), Usage> {
        let from = self.from.as_ref().map(|_| "--from");
        Usage::refuse(from, &format!("applies only to {suites}"))?;
        self.refuse_except_from(suites)
    }

    /// Returns an error if the user gave an option that applies only to suites. The option `--from` is accepted,
    /// because it also applies to other outputs. `suites` completes the error message "applies only to ...", for
    /// example `outputs that are suites (.pgn or .epd)`.
    pub fn refuse_except_from(&self, suites: &str) -> Result<(), Usage> {
        let options = [
            (self.plies.is_some(), "--plies"),
            (self.limit.is_some(), "--limit"),
            (self.seed.is_some(), "--seed"),
            (self.balance.is_some(), "--balance"),
            (self.draw_rate.is_some(), "--draw-rate"),
            (self.eval.is_some(), "--eval"),
            (self.eval_abs.is_some(), "--eval-abs"),
            (self.quiet_positions, "--quiet-positions"),
            (self.per_eco.is_some(), "--per-eco"),
            (self.tags, "--tags"),
            (self.unique, "--unique"),
            (self.opcodes, "--opcodes"),
        ];
        let given = options.iter().find(|option| option.0);
        let given = given.map(|option| option.1);
        let instead = match (given, suites) {
            (Some("--plies"), ONLY_SUITE) => "; the lines of a book end at --max-ply",
            (Some("--limit"), ONLY_SUITE) => "; --min-game drops rare moves from a book",
            _ => "",
        };
        Usage::refuse(given, &format!("applies only to {suites}{instead}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_no_percentages() {
        for text in ["0.4-0.6", "0-1", "1-1"] {
            assert!(balance(text).is_err(), "{text}");
        }
        assert_eq!(balance("0-0"), Ok((0.0, 0.0)));
        assert_eq!(balance("0.5-2"), Ok((0.5, 2.0)));
        assert_eq!(draw_rate("0%-0.5%"), Ok((0.0, 0.5)));
    }
}

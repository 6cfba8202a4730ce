//! `polybook suite-report`: prints the results of an engine match for each opening of its suite. The final position
//! of an opening is called its exit.

use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
};

use polybook::{
    pgn::Games,
    position::Variant,
    suite::{
        ExitResults, MatchReport, Pentanomial, ReportOptions, Sample, Sprt, SprtModel, Strength,
        SuiteFile, SuiteFormat, begin_suite,
    },
};

use super::{
    Context,
    input::{self, check_output, ending, output_name, pgn_inputs},
    plural,
    position::{self, UntaggedArg},
    resources::{ResourceArgs, count},
    terminal::{print, print_json},
    usage::Usage,
};

/// An estimate of the memory for a suite, in bytes per byte of the suite's file. A suite whose entries have only a few
/// characters needs up to three times as much.
pub const MEMORY_PER_BYTE: usize = 16;

/// Show the results of an engine match for each opening of its suite
#[derive(clap::Args, Debug)]
#[command(after_help = "\
An exit is a position in which an opening of the suite ends: the end of a line (PGN), or a position (EPD or FEN). A game belongs
to the first of these three positions that is an exit: the position after the game's first moves with the comment {book}, the end
of the longest line with which the game begins, and the position in the FEN tag of the game.

Two games are a pair if the same two players played the same exit in the same round with both colors (tag Round: 7 for both, or
7.1 and 7.2). If no two games share a round, they are paired in the order of the file. A pentanomial counts the pairs by the
points of one player: 0, 0.5, 1, 1.5 and 2 (LL, LD, DD or WL, WD, WW). This is the player given with --first, or
else the first player in the file.

Elo, normalized Elo (nElo), their 95 % intervals, the likelihood of superiority (LOS) and the LLR of --sprt are calculated from
the pairs, as fastchess does. Only if no two games form a pair, they are calculated from single games.

An exit is one-sided if it has at least --min-pairs pairs and the same color won all of its games.

Examples:
  polybook suite-report openings.pgn match.pgn --sprt 0,2
  polybook suite-report openings.epd match.pgn --drop-one-sided --out better.epd")]
pub struct Args {
    /// The suite: lines in PGN, or an EPD or a FEN on each line; - is standard input
    #[arg(value_name = "SUITE")]
    suite: PathBuf,

    /// The games of the match, compressed or not; - is standard input
    #[arg(value_name = "MATCH", required = true)]
    games: Vec<PathBuf>,

    /// Show the results of pairs of games from the point of view of the player with this name
    #[arg(long, value_name = "NAME")]
    first: Option<String>,

    /// Show the log-likelihood ratio (LLR) of a sequential probability ratio test. Its hypotheses H0 and H1 are that the
    /// first player is stronger by ELO0 or by ELO1. ALPHA and BETA are the probabilities of wrong decisions for H1 and H0 [default: 0.05,0.05]
    #[arg(long, value_name = "ELO0,ELO1[,ALPHA,BETA]", value_parser = sprt, allow_hyphen_values = true)]
    sprt: Option<Sprt>,

    /// Use this unit for the differences in strength of --sprt
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "normalized",
        requires = "sprt"
    )]
    sprt_model: SprtModelArg,

    /// Call an opening of the suite one-sided only if it was played in at least N pairs of games
    #[arg(long, value_name = "N", default_value = "1", value_parser = count::<NonZeroU64>(1))]
    min_pairs: NonZeroU64,

    /// Leave out one-sided openings when --out writes the suite. An opening is one-sided if the same color won all of
    /// its games
    #[arg(long, requires = "out")]
    drop_one_sided: bool,

    /// Write the suite without its one-sided openings to this file; - writes to standard output
    #[arg(long, value_name = "FILE", requires = "drop_one_sided")]
    out: Option<PathBuf>,

    /// Replace an existing file of any kind. Without this option, suite-report replaces only an empty file
    #[arg(long, requires = "out")]
    force: bool,

    /// Use the rules of this variant for the positions of a suite in EPD or FEN. A suite in PGN names its variant in
    /// the tag Variant
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = position::variant())]
    variant: Variant,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    resources: ResourceArgs,
}

/// The unit in which `--sprt` gives differences in strength.
#[derive(clap::ValueEnum, Copy, Clone, Debug)]
enum SprtModelArg {
    /// Normalized Elo
    Normalized,
    /// Elo
    Logistic,
}

impl From<SprtModelArg> for SprtModel {
    fn from(arg: SprtModelArg) -> SprtModel {
        match arg {
            SprtModelArg::Normalized => SprtModel::Normalized,
            SprtModelArg::Logistic => SprtModel::Logistic,
        }
    }
}

/// Parses the value of `--sprt`: two differences in normalized Elo, and optionally two error probabilities.
fn sprt(text: &str) -> Result<Sprt, &'static str> {
    let numbers: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok())
        .collect();
    let (elos, errors) = match numbers.as_deref() {
        Some([elo0, elo1]) => ([*elo0, *elo1], [0.05, 0.05]),
        Some([elo0, elo1, alpha, beta]) => ([*elo0, *elo1], [*alpha, *beta]),
        _ => {
            return Err(
                "use two differences in strength, such as 0,2, or add two error probabilities, such as 0,2,0.05,0.05",
            );
        }
    };
    Sprt::new(elos, errors, SprtModel::default())
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let is_stdin = |path: &PathBuf| *path == Path::new("-");
    if is_stdin(&args.suite) && args.games.iter().any(is_stdin) {
        let usage = "the suite and the games cannot both be -, because there is only one standard input: give a file for one of them";
        return Err(Usage(usage.to_owned()).into());
    }
    let file = match &args.out {
        Some(out) => {
            let inputs: Vec<&PathBuf> = args.games.iter().chain([&args.suite]).collect();
            check_output(out, &inputs, args.json)?;
            Some(begin_suite(out, args.force)?)
        }
        None => None,
    };
    let memory = args.resources.memory();
    let text = input::read_text(&args.suite, &memory, MEMORY_PER_BYTE)?;
    let format = SuiteFormat::of_text(&text);
    let suite = SuiteFile::read(input::name(&args.suite).as_ref(), text, args.variant)?;
    if let Some(out) = &args.out {
        refuse_other_format(out, format)?;
    }
    let inputs = pgn_inputs(&args.games, args.untagged.untagged_variant)?;
    let options = ReportOptions {
        first: args.first.clone(),
        min_pairs: args.min_pairs,
        sprt: args
            .sprt
            .map(|sprt| sprt.with_model(args.sprt_model.into())),
    };
    let report = context.show_progress("reading games", |meter| {
        let games = Games {
            inputs: &inputs,
            memory,
            threads: args.resources.threads(),
            meter,
        };
        suite.report(&games, &options)
    })?;
    context.warn(&report.warnings);
    if let (Some(out), Some(file)) = (&args.out, file) {
        let entries = suite.write_without_one_sided(&report, file)?;
        context.say(&format!(
            "{}: {}\n",
            output_name(out),
            plural(entries, "entry")
        ));
        let dropped = report.exits.iter().filter(|exit| exit.is_one_sided);
        let once = dropped
            .filter(|exit| exit.pairs.0.iter().sum::<u64>() == 1)
            .count();
        if once > 0 {
            context.say(&format!(
                "{} left out after a single pair of games, which proves little: give --min-pairs 5\n",
                plural(once as u64, "opening")
            ));
        }
    }
    if args.json {
        return print_json(&serde_json::to_value(&report)?);
    }
    if args.out.as_ref().is_some_and(is_stdin) {
        Ok(())
    } else {
        print(&table(&report))
    }
}

/// Returns an error if the file name `out` has the extension of a suite format other than `format`, in which the suite
/// is written.
fn refuse_other_format(out: &Path, format: SuiteFormat) -> Result<(), Usage> {
    let out_ending = ending(out);
    let (entries, right, is_other) = match format {
        SuiteFormat::Epd => ("positions (EPD)", ".epd", out_ending == "pgn"),
        SuiteFormat::Pgn => (
            "lines (PGN)",
            ".pgn",
            ["epd", "fen"].contains(&&*out_ending),
        ),
    };
    if is_other {
        Err(Usage(format!(
            "--out {}: the output contains {entries}, as the suite does: choose a name that ends in {right}",
            out.display()
        )))
    } else {
        Ok(())
    }
}

fn table(report: &MatchReport) -> String {
    let mut text = String::new();
    for encounter in &report.encounters {
        let stats = encounter.stats;
        text += &format!(
            "{} - {}: {}, +{} ={} -{}, pairs {}\n",
            encounter.first,
            encounter.second,
            plural(stats.games(), "game"),
            stats.wins,
            stats.draws,
            stats.losses,
            pairs(encounter.pairs),
        );
        text += &strength_lines(&encounter.strength, report.sprt.as_ref());
    }
    text += "The numbers of pairs are [LL LD DD/WL WD WW], by the first player's wins (W), draws (D) and losses (L)\n";
    let played: Vec<&ExitResults> = report
        .exits
        .iter()
        .filter(|exit| exit.results.finished() > 0)
        .collect();
    let mut firsts = report.encounters.iter().map(|encounter| &encounter.first);
    let view = match firsts.next() {
        Some(first) if firsts.all(|other| other == first) => format!("pairs of {first}"),
        _ => "pairs".to_owned(),
    };
    let width = view.chars().count().max(15);
    text += &format!(
        "\n{:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  {view:<width$} {:>7} {:>6}  exit\n",
        "entry", "games", "white", "draws", "black", "draw %", "Elo", "+/-"
    );
    for exit in &played {
        let results = exit.results;
        text += &format!(
            "{:>6} {:>6} {:>6} {:>6} {:>6} {:>6.1}  {:<width$} {:>7} {:>6}  {}{}{}\n",
            exit.entry,
            results.finished(),
            results.white,
            results.draws,
            results.black,
            exit.draw_rate.unwrap_or_default(),
            pairs(exit.pairs),
            number(exit.strength.elo, 1, "-"),
            number(exit.strength.elo_error, 1, "-"),
            exit.line.as_ref().unwrap_or(&exit.epd),
            exit.opening
                .as_ref()
                .map_or_else(String::new, |name| format!(", {name}")),
            if exit.is_one_sided {
                " (one-sided)"
            } else {
                ""
            },
        );
    }
    let one_sided = played.iter().filter(|exit| exit.is_one_sided).count();
    text += &format!(
        "\n{}, {:.1} % drawn; {}, {one_sided} one-sided, {} without games\n",
        plural(report.games, "game"),
        report.draw_rate.unwrap_or_default(),
        plural(report.exits.len() as u64, "exit"),
        report.exits.len() - played.len(),
    );
    let unpaired = report.encounters.iter();
    for (games, reason) in [
        (
            unpaired.map(|encounter| encounter.unpaired).sum(),
            "without a partner",
        ),
        (report.unmatched, "of no exit"),
        (report.unfinished, "without result"),
    ] {
        if games > 0 {
            text += &format!("{} {reason}\n", plural(games, "game"));
        }
    }
    text
}

/// Returns the reason why numbers of `strength` are unknown, or `None` if all are known.
fn why_unknown(strength: &Strength) -> Option<&'static str> {
    let sample = strength.estimated_from?;
    match strength {
        Strength { elo: None, .. } => Some("one player won all games"),
        Strength { los: None, .. } if sample == Sample::Games => {
            Some("all games have the same result")
        }
        Strength { los: None, .. } => Some("all pairs have the same score"),
        Strength {
            elo_error: None, ..
        } => Some("there are too few games for an interval"),
        _ => None,
    }
}

/// Formats the estimate of a player's strength, and the log-likelihood ratio (LLR) of `sprt`, as lines in the style of
/// fastchess.
fn strength_lines(strength: &Strength, sprt: Option<&Sprt>) -> String {
    let known = |value| number(value, 2, "unknown");
    let source = match strength.estimated_from {
        Some(Sample::Games) => " (from single games, because no two games form a pair)",
        _ => "",
    };
    let mut text = format!(
        "  Elo: {} +/- {}, nElo: {} +/- {}, LOS: {} %, DrawRatio: {} %{source}\n",
        known(strength.elo),
        known(strength.elo_error),
        known(strength.nelo),
        known(strength.nelo_error),
        known(strength.los),
        known(strength.draw_ratio),
    );
    if let Some(reason) = why_unknown(strength) {
        text += &format!("  unknown, because {reason}\n");
    }
    if let Some(sprt) = sprt {
        let ([elo0, elo1], [lower, upper]) = (sprt.elos(), sprt.bounds());
        let unit = match sprt.model() {
            SprtModel::Normalized => "nElo",
            SprtModel::Logistic => "Elo",
        };
        let decision = match strength.llr {
            Some(llr) if llr >= upper => ", H1 is accepted",
            Some(llr) if llr <= lower => ", H0 is accepted",
            _ => "",
        };
        text += &format!(
            "  LLR: {} ({lower:.2}, {upper:.2}) [{elo0:.2}, {elo1:.2}] {unit}{decision}\n",
            known(strength.llr),
        );
    }
    text
}

/// Formats a number with `decimals` decimal places, or returns `unknown` if there is none.
fn number(value: Option<f64>, decimals: usize, unknown: &str) -> String {
    value.map_or_else(|| unknown.to_owned(), |value| format!("{value:.decimals$}"))
}

/// Formats a pentanomial, such as `[0 1 5 2 0]`. A pentanomial counts pairs of games: its five numbers are the numbers
/// of pairs in which a player scored 0, 0.5, 1, 1.5 and 2 points.
fn pairs(Pentanomial(counts): Pentanomial) -> String {
    let counts = counts.map(|count| count.to_string());
    format!("[{}]", counts.join(" "))
}

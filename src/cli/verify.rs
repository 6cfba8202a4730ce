//! `polybook verify`: checks books, databases, indexes, stores of evaluations, opening suites and repertoires for
//! faults.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use polybook::{
    ErrorKind, FileKind, ForeignFormat,
    book::{self, begin_book, fix},
    counts::Memory,
    evals::Evals,
    index, obs,
    pgn::{GameReader, Token},
    position::Variant,
    storage::output::is_directory,
    suite::{SuiteFile, SuiteFormat},
};
use serde_json::json;

use super::{
    Context,
    errors::{ExitOne, report_and_continue},
    input::{self, check_output, file_or_index, output_name, refuse_twice},
    plural,
    position::{self, UntaggedArg},
    repertoire::Opener,
    suite_report,
    terminal::print_json,
    usage::Usage,
};

/// Check a book, an OOBS database, an index, a store of evaluations, a suite or a repertoire for faults
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The exit status is 1 if a file has faults, unless --fix writes a copy without them. If several files are given, each has its own
report, and --json prints one document on each line.

Books and databases that polybook wrote contain a checksum, so verify detects damage and changes by other programs. Without a
checksum, verify cannot detect a changed move or weight. In a database, verify also finds rows without a position or a legal
move. In a book, it does not check whether moves are legal in their positions; show marks illegal moves.

In an index, verify reads every block and every value, and compares them with what the crate rusty-leveldb reads. It does not
detect a changed name of the variant, or a PGN file that is missing or was changed.

In a repertoire (PGN with variations and without results), verify reads the moves of all games and variations. In a suite (EPD,
FEN, or PGN without variations), verify finds illegal positions and moves, impossible castling rights and en passant squares,
unclosed quotation marks, damaged tags, missing results, positions in which the game is over, and entries that occur twice.
verify prints the lengths of the lines, the number of lines that transpose to an earlier one, and the evaluations, if every
position has one.

Examples:
  polybook verify book.bin
  polybook verify games.obs.db3
  polybook verify games.idx
  polybook verify suite.epd
  polybook verify white.bin black.bin
  polybook verify old.bin --fix new.bin")]
pub struct Args {
    /// The books, databases, indexes, stores of evaluations, suites or repertoires; - is standard input
    #[arg(value_name = "BOOK", required = true)]
    books: Vec<PathBuf>,

    /// Write a repaired copy of the book to this file; - writes to standard output. The entries of the copy are sorted,
    /// and repeated moves and other faults are removed
    #[arg(long, value_name = "OUT")]
    fix: Option<PathBuf>,

    /// Replace an existing file of any kind by --fix. Without this option, --fix replaces only a book that polybook
    /// wrote
    #[arg(long, requires = "fix")]
    force: bool,

    /// Use the rules of this variant for the positions of a suite in EPD or FEN. A suite in PGN names its variant in
    /// the tag Variant
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = position::variant())]
    variant: Variant,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,
}

/// The maximum number of faults of a suite that an error message lists.
const MAX_LISTED_FAULTS: usize = 10;

/// The result of checking a book, a database, an index or a store of evaluations: the number of records, and the
/// faults.
struct Findings {
    /// The number of records: 16-byte records of a book including its header, rows of a database, or entries of an
    /// index.
    records: u64,
    /// The number of records that belong to the header of a book.
    header_records: u64,
    faults: Vec<String>,
    /// `true` if the stored checksum differs from the checksum of the records; `None` if no checksum is stored.
    checksum_differs: Option<bool>,
    /// `true` if the library `rusty-leveldb` also read the index, `false` if it could not, and `None` if the file is
    /// not an index.
    second_opinion: Option<bool>,
    /// The advice that the error message gives after the list of faults.
    advice: &'static str,
}

fn find(file: &Path, context: Context) -> polybook::Result<Findings> {
    match FileKind::of(file)? {
        FileKind::Directory => {
            let found = context.show_progress("reading", |meter| index::verify(file, meter))?;
            Ok(Findings {
                records: found.entries,
                header_records: 0,
                faults: texts(&found.faults),
                checksum_differs: Some(found.faults.iter().any(|fault| fault.key.is_empty())),
                second_opinion: Some(found.has_second_opinion),
                advice: "make the index again",
            })
        }
        FileKind::Sqlite => {
            let found = obs::verify(file)?;
            let differs = found.faults.contains(&obs::DatabaseFault::Checksum);
            Ok(Findings {
                records: found.rows,
                header_records: 0,
                faults: texts(&found.faults),
                checksum_differs: found.has_checksum.then_some(differs),
                second_opinion: None,
                advice: match &found.faults[..] {
                    // SQLite and the checksum report no fault, so the rows are as the program that wrote the database
                    // left them.
                    [obs::DatabaseFault::UnusableRows(_)] => "correct or delete these rows",
                    _ => "make the database again, or use an intact copy of the database",
                },
            })
        }
        FileKind::Evals => {
            let evals = Evals::open(file)?;
            let fault = evals.fault()?;
            Ok(Findings {
                records: evals.len(),
                header_records: 0,
                checksum_differs: Some(fault.is_some()),
                // The message of the error already advises to make the store again.
                faults: Vec::from_iter(fault.map(|fault| {
                    let problem = fault.strip_suffix("; make the store again");
                    problem.unwrap_or(&fault).to_owned()
                })),
                second_opinion: None,
                advice: "make the store again, or use an intact copy of the store",
            })
        }
        _ => {
            let found = book::verify(file, &Memory::default())?;
            let differs = found.faults.contains(&book::BookFault::Checksum);
            Ok(Findings {
                records: found.records,
                header_records: found.header_records,
                faults: texts(&found.faults),
                checksum_differs: found.has_checksum.then_some(differs),
                second_opinion: None,
                advice: if differs {
                    "use an intact copy; verify --fix OUT sorts this book, but keeps changed moves and weights"
                } else {
                    "polybook verify --fix OUT writes a copy without these faults"
                },
            })
        }
    }
}

/// Returns the JSON value for the result of comparing a checksum.
fn in_json(checksum_matches: Option<bool>) -> Option<&'static str> {
    checksum_matches.map(|matches| if matches { "matches" } else { "differs" })
}

fn texts(faults: &[impl ToString]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

/// Returns `true` if an error comes from the operating system, for example because a file cannot be read.
fn is_system_error(err: &anyhow::Error) -> bool {
    let own = err.downcast_ref().map(polybook::Error::kind);
    err.is::<io::Error>() || own == Some(ErrorKind::Io)
}

/// Returns `true` if a PGN text contains a game with a result. Such a text is not an opening suite, whose games have no
/// results.
fn has_results(pgn: &str) -> bool {
    let results = ["1-0", "0-1", "1/2-1/2"];
    results
        .iter()
        .any(|result| pgn.contains(&format!("[Result \"{result}\"]")))
}

/// Returns the number of games in the PGN text `pgn` and the number of games with variations, if the text is a
/// repertoire, otherwise `None`. A text is regarded as a repertoire if at least one game has variations, because the
/// games of an opening suite have none.
fn games_of_repertoire(pgn: &str) -> Option<[u64; 2]> {
    let mut reader = GameReader::new(pgn.as_bytes()).with_variations(true);
    let (mut games, mut with_variations) = (0, 0);
    while reader.next_game() {
        games += 1;
        let mut has_variations = false;
        loop {
            match reader.next_token() {
                Token::BeginVariation => has_variations = true,
                Token::End(_) => break,
                _ => (),
            }
        }
        with_variations += u64::from(has_variations);
    }
    (with_variations > 0).then_some([games, with_variations])
}

/// Checks the moves of all games and variations of a repertoire in PGN, and prints a report. `file` is the path to
/// open. `shown` contains the name for messages, the number of games, and how many of them have variations.
/// `checksum_matches` is the result of comparing the checksum of the file; a different checksum is not a fault, because
/// users edit their repertoires.
fn verify_repertoire(
    args: &Args,
    file: &Path,
    shown: (&str, [u64; 2]),
    context: Context,
) -> anyhow::Result<()> {
    let (name, [games, with_variations]) = shown;
    let untagged = UntaggedArg {
        untagged_variant: args.variant,
    };
    // The error message contains the faults, so the opener need not print them.
    let faults = Opener::with_defaults(&untagged, Context { quiet: true })?.faults(file)?;
    if args.json {
        print_json(&json!({ "path": name, "games": games, "faults": faults }))?;
    }
    refuse_faults(
        name,
        "repertoire contains faults",
        (&faults, faults.len()),
        "correct these games",
    )?;
    context.say(&format!(
        "{name}: a repertoire of {} without faults, {with_variations} with variations; all moves were checked, but not \
         whether lines are repeated\n",
        plural(games, "game")
    ));
    Ok(())
}

/// Returns an error that lists the first faults of an input, or `Ok` if `faults` is empty. `count` is the number of all
/// faults of the input. `faults` contains all of them or, if there are too many, the first ones. The message consists
/// of `name` (the name of the file), the word `this`, `problem` (such as `suite contains faults`), the faults, and
/// `advice`, which tells the user what to do.
fn refuse_faults(
    name: &str,
    problem: &str,
    (faults, count): (&[String], usize),
    advice: &str,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        faults.is_empty(),
        "{name}: this {problem}: {}{}; {advice}",
        faults[..faults.len().min(MAX_LISTED_FAULTS)].join("; "),
        match count.saturating_sub(MAX_LISTED_FAULTS) {
            0 => String::new(),
            more => format!("; and {}", plural(more as u64, "more fault")),
        }
    );
    Ok(())
}

/// Checks a file that is not a book as an opening suite, and prints a report. If the file is not a suite either,
/// returns `refusal`, the error that says why it is not a book. `book` is the path that the user gave, and `file` is
/// the path to open, which is different for a pipe.
fn verify_suite(
    args: &Args,
    book: &Path,
    file: &Path,
    refusal: polybook::Error,
    context: Context,
) -> anyhow::Result<()> {
    let name = input::name(book);
    let is_pgn = refusal.kind() == ErrorKind::Foreign(ForeignFormat::Pgn);
    let text = match input::read_text(file, &Memory::default(), suite_report::MEMORY_PER_BYTE) {
        Ok(text) if is_pgn && !has_results(&text) => text,
        Ok(text) if !is_pgn && SuiteFormat::of_text(&text) == SuiteFormat::Epd => text,
        // If the operating system cannot read the file, its format is unknown.
        Err(err) if is_system_error(&err) => return Err(err),
        _ => return Err(refusal.into()),
    };
    if is_pgn && let Some(games) = games_of_repertoire(&text) {
        return verify_repertoire(args, file, (&name, games), context);
    }
    let found = SuiteFile::check(name.as_ref(), text, args.variant)?;
    let faults = texts(&found.faults);
    if args.json {
        print_json(&json!({
            "path": name,
            "entries": found.entries,
            "faults": faults,
            "fault_count": found.fault_count,
            "white_to_move": found.white_to_move,
            "transpositions": found.transpositions,
            "plies": found.plies.as_ref().map(|plies| [*plies.start(), *plies.end()]),
            "evaluations": found.evaluations.as_ref().map(|range| [*range.start(), *range.end()]),
        }))?;
    }
    refuse_faults(
        &name,
        "suite contains faults",
        (&faults, found.fault_count),
        "correct or remove these entries",
    )?;
    let lengths = match &found.plies {
        Some(plies) if plies.start() == plies.end() => {
            format!(" of {}", plural(*plies.start() as u64, "half-move"))
        }
        Some(plies) => format!(" of {} to {} half-moves", plies.start(), plies.end()),
        None => String::new(),
    };
    let transpositions = match found.transpositions {
        0 => String::new(),
        lines => format!(
            "; {} to the final position of an earlier line",
            plural(lines, "transposition")
        ),
    };
    let evaluations = match &found.evaluations {
        Some(range) => format!(
            "; evaluations from {:+} to {:+} centipawns for White",
            range.start(),
            range.end()
        ),
        None => String::new(),
    };
    let thing = match found.format {
        SuiteFormat::Pgn => "line",
        SuiteFormat::Epd => "position",
    };
    context.say(&format!(
        "{name}: a suite of {}{lengths} without faults; White is to move in {}{transpositions}{evaluations}\n",
        plural(found.entries, thing),
        found.white_to_move,
    ));
    Ok(())
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    if let [book] = &args.books[..] {
        return verify(args, book, context);
    }
    let fix = args.fix.as_ref().map(|_| "--fix");
    Usage::refuse(fix, "writes a copy of one book: give only one book")?;
    refuse_twice(&args.books.iter().collect::<Vec<_>>())?;
    let mut has_failed = false;
    for book in &args.books {
        if let Err(err) = verify(args, book, context) {
            report_and_continue(err)?;
            has_failed = true;
        }
    }
    if has_failed {
        Err(ExitOne.into())
    } else {
        Ok(())
    }
}

/// Checks the file or directory `book` and prints a report. With `--fix`, writes a repaired copy. Without `--fix`,
/// returns an error that lists the faults if there are any.
fn verify(args: &Args, book: &Path, context: Context) -> anyhow::Result<()> {
    let name = input::name(book);
    let begin = |out: &PathBuf| {
        anyhow::ensure!(
            !is_directory(book)?,
            "{name}: this is a directory, but --fix applies only to Polyglot books"
        );
        check_output(out, &[book], args.json)?;
        Ok(begin_book(out, args.force)?)
    };
    let fixed = args.fix.as_ref().map(begin).transpose()?;
    let file = file_or_index(book)?;
    if fixed.is_some() {
        let kind = FileKind::of(&file)?;
        if matches!(kind, FileKind::Sqlite | FileKind::Evals) {
            let usage = "--fix applies only to Polyglot books: make a damaged file of another format again, or use an \
                         intact copy";
            return Err(Usage(usage.to_owned()).into());
        }
    }
    let found = match find(&file, context) {
        Err(refusal) if args.fix.is_none() && matches!(refusal.kind(), ErrorKind::Foreign(_)) => {
            return verify_suite(args, book, &file, refusal, context);
        }
        found => found?,
    };
    if args.json {
        let checksum = found.checksum_differs.map(|differs| !differs);
        let mut document = json!({
            "path": name,
            "records": found.records,
            "faults": found.faults,
            "checksum": in_json(checksum),
        });
        if let Some(asked) = found.second_opinion {
            document["second_opinion"] = asked.into();
        }
        print_json(&document)?;
    }
    if let Some(out) = fixed {
        let copied = output_name(out.target());
        fix(&file, out, &Memory::default())?;
        for fault in &found.faults {
            context.say(&format!("{name}: {fault}\n"));
        }
        let copy = match (&*found.faults, found.checksum_differs) {
            ([], _) => format!("a sorted copy of {name}, which has no faults"),
            (_, Some(false)) => format!("a copy of {name} without these faults"),
            _ => format!(
                "a sorted copy of {name}, which still contains any changed moves or weights"
            ),
        };
        context.say(&format!("{copied}: {copy}\n"));
        return Ok(());
    }
    let (faults, advice) = (found.faults.join("; "), found.advice);
    anyhow::ensure!(found.faults.is_empty(), "{name}: {faults}; {advice}");
    let metadata = file.metadata();
    let metadata = metadata.with_context(|| format!("cannot open {name}"))?;
    if metadata.is_file() && metadata.len() == 0 {
        let extension = file.extension().and_then(OsStr::to_str);
        let is_text = matches!(extension, Some("epd" | "pgn"));
        anyhow::ensure!(!is_text, "{name}: the file is empty, so it is not a suite");
        context.say(&format!(
            "{name}: the file is empty, so it is a book without moves\n"
        ));
        return Ok(());
    }
    let checked = match (found.second_opinion, found.checksum_differs) {
        (Some(true), _) => {
            "the checksums match, and the library rusty-leveldb reads the same entries"
        }
        (Some(false), _) => {
            "the checksums match; the library rusty-leveldb did not read the index, because a list in the index is too \
             long"
        }
        (None, Some(_)) => "the checksum matches",
        (None, None) => "there is no checksum, so verify cannot detect a changed move or weight",
    };
    let records = match found.header_records {
        0 => plural(found.records, "record"),
        header => format!(
            "{} and {} of the header",
            plural(found.records.saturating_sub(header), "move"),
            plural(header, "record")
        ),
    };
    context.say(&format!("{name}: no faults in {records}; {checked}\n"));
    Ok(())
}

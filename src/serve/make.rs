//! Makes books and repertoires from filtered games for download, and returns the equivalent polybook commands.
//!
//! Makes books like `polybook make-book`, builds repertoires like `polybook repertoire build`, finds the gaps of the
//! server's repertoires, and writes these repertoires with a user's edits.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Extension,
    extract::{self, State},
    http::Method,
    response::Response,
    routing::{MethodRouter, get},
};
use serde::Serialize;
use shakmaty::{Color, Move, Position};

use super::{
    Parameters, Refusal, Request, Route, ServedRepertoire,
    client::{Client, StopAtEnd, while_wanted},
    content::{CacheKey, ResponseBody},
    queue::Visitor,
    refusal::parameter,
    request,
    state::{AnsweredGames, AppState, FileStates, check_unchanged},
};
use crate::{
    chess::position::{Keyed, Variant},
    error::{At, Error, Result, plural},
    explore::{
        explorer::{Line, MIN_REPLY_GAMES, SourceFile},
        repertoire::{
            Additions, Build, CommentDetail, FindGaps, Gaps, LineReport, OpenOptions, OpenedSource,
            OwnMoveRule, RepertoireFile, Writing, add_to_pgn, build, gaps, line_report,
        },
        tree::{Limits, LinesOf, MoveSource, Tree, played},
    },
    formats::{
        book::{Book, Factors, Weights},
        counts::MoveFilter,
    },
    games::{
        pgn::{Input, StreamOptions},
        selection::Selection,
    },
    make_book::{MakeBook, Report, Unfinished},
    progress::Meter,
    storage::{output::TemporaryDir, sort::Memory},
    text::{shell_path, shell_word},
};

/// The maximum size, in bytes, of a book or repertoire that the server makes. The server keeps the file in memory until
/// it has been sent.
const MAX_PRODUCT_BYTES: u64 = 64 << 20;

/// The advice that an error message gives if a book is too large.
const SIZE_ADVICE: &str = "request a larger minGame or a smaller depth";

/// The error message for a request for a book or a repertoire if the server was started with `--book-games 0`.
const NO_BOOKS: &str = "this server makes no books and no repertoires: use polybook make-book, or start the server without \
                        --book-games 0";

/// The memory budget for counting games, in bytes. Counts that exceed it are spilled to temporary files.
pub(super) const MEMORY_BUDGET: usize = 128 << 20;

/// The maximum value of the parameter `minGame`. A book contains only moves that were played in at least `minGame`
/// games.
pub(super) const MAX_MIN_GAME: u32 = 1_000_000;

/// The maximum value of the parameter `depth`, the number of half-moves that are counted in each game.
pub(super) const MAX_DEPTH: u32 = 600;

/// The maximum time for making a book. A request also waits at most this long while books for other requests are made.
const MAKING: Duration = Duration::from_secs(60);

/// The error message if the PGN files contain more or fewer games than the index states.
const OTHER_GAMES: &str =
    "the files contain more or fewer games than the index: make the index again";

/// A kind of file that the server makes from games, such as a book. Products are made one at a time.
#[derive(Copy, Clone)]
pub(super) struct Product {
    /// The name that messages use for the product, such as `book`.
    what: &'static str,
    /// The advice that an error message gives if making the product takes too long.
    advice: &'static str,
    make: fn(&AppState, &CacheKey, Visitor, &Arc<AtomicBool>) -> Result<ResponseBody, Refusal>,
}

pub(super) const BOOK: Product = Product {
    what: "book",
    advice: "request a larger minGame or a smaller depth, or use polybook make-book",
    make: make_book,
};

pub(super) const REPERTOIRE: Product = Product {
    what: "repertoire",
    advice: "request a smaller depth, or use polybook repertoire",
    make: build_repertoire,
};

pub(super) const GAPS: Product = Product {
    what: "gap list",
    make: list_gaps,
    ..REPERTOIRE
};

/// Creates the route that makes a product, such as a book, for each request.
pub(super) fn route(product: Product) -> MethodRouter<Arc<AppState>> {
    get(async move |state, client, request| answer_product(state, client, request, product).await)
}

/// Makes a product, such as a book, and returns it as the response. Waits until no other product is being made and it
/// is the visitor's turn, and then makes the product on a worker thread. Cancels the work if the client disconnects or
/// the time limit is exceeded.
async fn answer_product(
    State(app): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: extract::Request,
    Product { what, advice, make }: Product,
) -> Result<Response, Refusal> {
    if *request.method() == Method::HEAD {
        return Err(Refusal::bad(format!(
            "the server makes a {what} only for a GET request"
        )));
    }
    let key = CacheKey::of(&request);
    app.search_first(&client, &key).await?;
    let visitor = client.visitor();
    let too_many = || {
        Refusal::unavailable(
            "the server is already making as many books as it can: try again later",
        )
    };
    let permit = app.makers.queue.acquire(visitor, 1, too_many);
    let another =
        || Refusal::unavailable("the server is making books for other requests: try again later");
    let permit = while_wanted(&client, MAKING, permit, another).await??;
    let stop = StopAtEnd::default();
    let (state, flag) = (Arc::clone(&app), Arc::clone(&stop.0));
    let work = move || make(&state, &key, visitor, &flag);
    let content = app.makers.content_with(permit, &client, work);
    let too_long = || {
        Refusal::unavailable(format!(
            "making the {what} takes more than a minute: {advice}"
        ))
    };
    let content = while_wanted(&client, MAKING, content, too_long).await?;
    Ok(content?.answer_from_files(request.headers()))
}

/// A planned run of `make-book` that counts the moves of the games that a request selects. The run reads these games
/// from their PGN files, so the plan also contains data with which to check that the files still contain the games from
/// which the index was built.
pub(super) struct Counting {
    pub(super) run: MakeBook,
    pub(super) variant: Variant,
    /// The number of games in the files when they were indexed.
    games: u64,
    /// The states of the files (such as their sizes and times) before the run.
    files: FileStates,
}

impl Counting {
    /// Runs `make-book` and returns its report. `what` is the name of the product in error messages, such as `book`.
    /// Setting `stop` cancels the run.
    ///
    /// # Errors
    ///
    /// Returns an error response if the run fails, or if a PGN file has changed during the run. Also returns an error
    /// response if the number of games in the files differs from the number in the index.
    pub(super) fn report(self, what: &str, stop: &Arc<AtomicBool>) -> Result<Report, Refusal> {
        let report = self
            .run
            .memory(MEMORY_BUDGET)
            .stop_flag(Arc::clone(stop))
            .run();
        let report = report.map_err(|err| match err {
            Error::Empty { reason } => {
                let reason = reason.worded(parameter);
                Refusal::bad(format!("the {what} would be empty: {reason}"))
            }
            err => err.into(),
        })?;
        check_unchanged(self.files.keys().map(PathBuf::as_path), &self.files)?;
        if report.totals.games.read == self.games {
            Ok(report)
        } else {
            Err(Refusal::bad(OTHER_GAMES))
        }
    }
}

/// The plan for making a requested book: the run of `make-book`, the side and the format of the book, and the
/// equivalent command.
struct BookPlan {
    counting: Counting,
    side: Option<Color>,
    as_pgn: bool,
    command: String,
}

/// Answers `/book.bin` and `/book.pgn`: makes a book from the games that pass the filters, and returns it as a file.
/// Setting `stop` cancels the work.
///
/// If the request has the parameter `count`, returns the size of the book and an equivalent polybook command instead,
/// and stores the file for a later request of `visitor`.
fn make_book(
    app: &AppState,
    key: &CacheKey,
    visitor: Visitor,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let Request {
        query, parameters, ..
    } = app.request(key, Route::Make)?;
    let only_counts = parameters.flag("count")?.unwrap_or(false);
    let plan = plan_book(
        app,
        &query.filters,
        &parameters,
        key.path.ends_with(".pgn"),
        stop,
    )?;
    let of = app.content_identity(key, &query.filters, &parameters)?;
    if !only_counts && let Some(content) = app.take_content(&of) {
        return Ok(content);
    }
    let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
    let path = directory.path().join("book.bin");
    let mut counting = plan.counting;
    let variant = counting.variant;
    let run = counting.run.bin(&path).allow_empty(only_counts);
    counting.run = run.temp_dir(directory.path());
    let report = counting.report("book", stop)?;
    let bytes = read_limited(&path, "book", SIZE_ADVICE)?;
    let (entries, positions) = counts_of(&bytes);
    let written = if plan.as_pgn && report.book.is_some() {
        read_limited(
            &lines(bytes, &path, variant, plan.side, stop)?,
            "book",
            SIZE_ADVICE,
        )?
    } else {
        bytes
    };
    let size = written.len();
    let content = if plan.as_pgn {
        ResponseBody::pgn(written)
    } else {
        ResponseBody::book(written)
    };
    if !only_counts {
        return Ok(content);
    }
    if entries > 0 {
        app.keep_content(visitor, of, content);
    }
    ResponseBody::json(&MadeBook {
        games: report.totals.games.counted,
        positions,
        entries,
        bytes: size,
        command: (entries > 0).then_some(plan.command),
    })
}

/// Plans the book that a request asks for, as PGN if `as_pgn` is `true` and otherwise in the Polyglot format. First
/// checks whether all names in the filters occur in games; setting `stop` cancels this check.
fn plan_book(
    app: &AppState,
    filters: &Selection,
    parameters: &Parameters,
    as_pgn: bool,
    stop: &AtomicBool,
) -> Result<BookPlan, Refusal> {
    let mut words = OptionWords::default();
    let min_game = parameters.number("minGame", 1..=MAX_MIN_GAME)?.unwrap_or(3);
    words.add("--min-game", min_game);
    let depth = depth(parameters)?;
    words.add("--max-ply", depth);
    let side = parameters
        .choice("side", request::SIDES, request::side)?
        .flatten();
    if let Some(side) = side {
        words.switch(side.fold_wb("--only-white", "--only-black"));
    }
    let weights = parameters.choice("weights", "results, games or uniform", |name| match name {
        "results" => Some(Weights::default()),
        "uniform" => Some(Weights {
            uniform: true,
            ..Weights::default()
        }),
        "games" => Some(Weights {
            factors: Factors {
                win: 1,
                draw: 1,
                loss: 1,
            },
            ..Weights::default()
        }),
        _ => None,
    })?;
    let weights = weights.unwrap_or_default();
    if weights != Weights::default() {
        words.switch(&weights.option_text());
    }
    let mut counting = plan_counting(app, filters, parameters, depth, &mut words, stop)?;
    counting.run = counting
        .run
        .move_filter(MoveFilter {
            min_game: min_game.into(),
            only: side,
            ..MoveFilter::default()
        })
        .weights(weights);
    let variant = counting.variant;
    let mut command = format!("polybook make-book {} --bin book.bin", words.joined());
    if as_pgn {
        command += " && polybook tree book.bin --format pgn --out book.pgn";
        if let Some(side) = side {
            command += side.fold_wb(" --color white", " --color black");
        }
        if variant != Variant::default() {
            command += &format!(" --variant {variant}");
        }
    }
    Ok(BookPlan {
        counting,
        side,
        as_pgn,
        command,
    })
}

/// Creates a run of `make-book` that counts the games that pass the filters, up to `depth` half-moves of each game.
/// `parameters` contains the requested variant. Appends the equivalent options of `make-book` to `words`, the command
/// that the web page shows.
///
/// First checks whether all names in the filters occur in games; setting `stop` cancels this check.
///
/// # Errors
///
/// Returns an error response if a name in the filters occurs in no game, if there are too many games, or if their files
/// cannot be read again. Also returns an error response if `make-book` cannot apply the filters exactly.
fn plan_counting(
    app: &AppState,
    filters: &Selection,
    parameters: &Parameters,
    depth: u32,
    words: &mut OptionWords,
    stop: &AtomicBool,
) -> Result<Counting, Refusal> {
    let goes_on = || !stop.load(Ordering::Relaxed);
    if let Some(unknown) = app.explorer.unknown_name_while(filters, &goes_on)? {
        return Err(Refusal::bad(unknown.to_string()));
    }
    let files = app.explorer.files(filters)?;
    let games: u64 = files.iter().map(|file| file.games).sum();
    if games > app.book_games {
        let (games, most) = (plural(games, "game"), app.book_games);
        return Err(Refusal::bad(match most {
            0 => NO_BOOKS.to_owned(),
            most => format!(
                "the files contain {games}, but this server makes books from at most {most}: use polybook \
                 make-book, or start the server with a larger --book-games"
            ),
        }));
    }
    let states = app.checked_files(filters)?;
    let variant = request::variant(parameters)?;
    if variant.number().is_none() {
        let problem = format!("a book cannot contain games of {variant}: request another variant");
        return Err(Refusal::bad(problem));
    }
    if variant != Variant::default() {
        words.add("--variant", variant);
    }
    let untagged = untagged_variant(&files)?;
    if untagged != Variant::default() {
        words.add("--untagged-variant", untagged);
    }
    let selection = Selection {
        source: None,
        ..filters.clone()
    };
    words.select(&selection);
    let skip_unfinished = app.explorer.skips_unfinished();
    let unfinished = if skip_unfinished {
        Unfinished::Skip
    } else {
        Unfinished::Draw
    };
    if skip_unfinished {
        words.add("--unfinished", "skip");
    }
    for file in &files {
        let name = file.path.file_name().unwrap_or_default().to_str();
        let name = name.ok_or_else(|| {
            Refusal::bad("the name of a PGN file is not valid UTF-8: rename the file")
        })?;
        words.file(name);
    }
    let input = |file: SourceFile| Input::file(file.path).with_untagged_variant(untagged);
    let run = MakeBook::new(files.into_iter().map(input))
        .max_ply(depth as usize)
        .variant(variant)
        .selection(selection)
        .unfinished(unfinished)
        .threads(1);
    Ok(Counting {
        run,
        variant,
        games,
        files: states,
    })
}

/// Returns the variant that was assumed for games without a `Variant` tag when the files were indexed.
///
/// # Errors
///
/// Returns an error response if a file was indexed with options that selected only some of its games. Also returns an
/// error response if different variants were assumed for several files, because `make-book` accepts only one.
fn untagged_variant(files: &[SourceFile]) -> Result<Variant, Refusal> {
    if let Some(file) = files.iter().find(|file| !file.options.is_empty()) {
        let name = file.path.file_name().unwrap_or_default().display();
        let options = &file.options;
        let problem = format!(
            "the games of {name} in the index were chosen with {options}: make the book with polybook make-book and \
             these options"
        );
        return Err(Refusal::bad(problem));
    }
    let first = files.first().map(|file| file.untagged_variant);
    let untagged = first.unwrap_or_default();
    if files.iter().any(|file| file.untagged_variant != untagged) {
        return Err(Refusal::bad(
            "the files were indexed with different values of --untagged-variant, but a book can be made with only one: \
             choose one source",
        ));
    }
    Ok(untagged)
}

/// Returns the value of the parameter `depth`, the number of half-moves that are counted in each game. The default is
/// 24.
pub(super) fn depth(parameters: &Parameters) -> Result<u32, Refusal> {
    Ok(parameters.number("depth", 1..=MAX_DEPTH)?.unwrap_or(24))
}

/// Returns the number of moves and the number of positions in a Polyglot book. `book` contains the bytes of the book.
fn counts_of(book: &[u8]) -> (usize, usize) {
    let keys = book.chunks_exact(16).map(|record| &record[..8]);
    let keys: Vec<&[u8]> = keys.filter(|key| *key != [0; 8]).collect();
    (keys.len(), keys.chunk_by(|a, b| a == b).count())
}

/// The words of a polybook command that has the same effect as a request. The web page shows this command, so that the
/// user can run it in a terminal.
#[derive(Default)]
pub(super) struct OptionWords(Vec<String>);

impl OptionWords {
    pub(super) fn joined(&self) -> String {
        self.0.join(" ")
    }

    fn switch(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    pub(super) fn add(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        if value.starts_with('-') {
            // An equals sign is needed, because clap reads a value that begins with a dash as an option.
            self.0.push(shell_word(&format!("{name}={value}")));
        } else {
            self.switch(name);
            self.0.push(shell_word(&value));
        }
    }

    /// Adds the options that correspond to the conditions of `selection`.
    fn select(&mut self, selection: &Selection) {
        for condition in selection.given() {
            for (name, value) in condition.words() {
                match value {
                    Some(value) => self.add(&name, value),
                    None => self.switch(&name),
                }
            }
        }
    }

    fn file(&mut self, name: &str) {
        self.0.push(shell_path(name));
    }
}

/// Writes the lines of a book as PGN games with variations, in the format of `polybook tree`. Returns the path of the
/// new file, which is `path` with the extension `.pgn`. If `side` is given, writes only lines in which this side plays
/// moves of the book. Setting `stop` cancels the work.
fn lines(
    book: Vec<u8>,
    path: &Path,
    variant: Variant,
    side: Option<Color>,
    stop: &Arc<AtomicBool>,
) -> Result<PathBuf> {
    let book = Book::from_bytes(book).expect("make-book has written whole records");
    let book: Box<dyn MoveSource> = Box::new(book);
    let book = match side {
        Some(side) => Box::new(LinesOf(book, side)),
        None => book,
    };
    let meter = Meter::stopped_by(stop);
    let tree = Tree::new(book, variant.start(), Limits::default(), &meter);
    let path = path.with_extension("pgn");
    let mut out = BufWriter::new(File::create(&path).at(&path, "create")?);
    tree.write_pgn(&mut out, &path)?;
    out.flush().at(&path, "write")?;
    Ok(path)
}

/// Reads the file of a book or repertoire that the server has made. In error messages, `what` is the name of the
/// product, and `advice` says how to make it smaller.
///
/// # Errors
///
/// Returns an error response if the file is larger than [`MAX_PRODUCT_BYTES`], or if it cannot be read.
fn read_limited(path: &Path, what: &str, advice: &str) -> Result<Vec<u8>, Refusal> {
    let size = fs::metadata(path).at(path, "read")?.len();
    if size > MAX_PRODUCT_BYTES {
        let most = MAX_PRODUCT_BYTES >> 20;
        let problem = format!("the {what} would be larger than {most} MiB: {advice}");
        return Err(Refusal::bad(problem));
    }
    Ok(fs::read(path).at(path, "read")?)
}

/// The maximum value N of the parameter `reach`. A repertoire then answers every position that at least one in N games
/// reaches.
pub(super) const MOST_REACH: u32 = 10_000;

/// The maximum number of gaps in a response.
pub(super) const MOST_GAPS: u32 = 10_000;

/// Answers `/repertoire.pgn` and `/repertoire.bin`: builds a repertoire from the games that pass the filters, and
/// returns it as a file. Setting `stop` cancels the work.
///
/// If the request has the parameter `count`, the answer is the size of the repertoire and an equivalent polybook
/// command, and the file is stored for a later request. If it has the parameter `repertoire`, nothing is built, and the
/// answer is one of the server's repertoires with the user's edits.
fn build_repertoire(
    app: &AppState,
    key: &CacheKey,
    visitor: Visitor,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let Request {
        query, parameters, ..
    } = app.request(key, Route::Build)?;
    if parameters.text("repertoire").is_some() {
        return edited_pgn(app, &parameters, stop);
    }
    let only_counts = parameters.flag("count")?.unwrap_or(false);
    let color = side(&parameters)?;
    let by = parameters.choice("by", "score or games", |by| match by {
        "score" => Some(OwnMoveRule::Score),
        "games" => Some(OwnMoveRule::Games),
        _ => None,
    })?;
    let by = by.unwrap_or(OwnMoveRule::Score);
    let one_in = parameters.number("reach", 1..=MOST_REACH)?.unwrap_or(200);
    let min_game = min_games(&parameters)?;
    let depth = depth(&parameters)?;
    let of = app.content_identity(key, &query.filters, &parameters)?;
    if !only_counts && let Some(content) = app.take_content(&of) {
        return Ok(content);
    }
    let mut words = OptionWords::default();
    words.add("--max-ply", depth);
    let counting = plan_counting(app, &query.filters, &parameters, depth, &mut words, stop)?;
    let variant = counting.variant;

    let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
    let (source, games) = count_games(counting, "repertoire", directory.path(), stop)?;
    let (start, meter) = (variant.start(), Meter::stopped_by(stop));
    let built = build(&Build {
        start: &start,
        color,
        source: &source,
        keep: None,
        by,
        one_in: one_in.into(),
        min_game,
        max_ply: Some(depth as usize),
        memory: MEMORY_BUDGET,
        meter: &meter,
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted.into());
    }
    let name = key.path.trim_start_matches('/');
    let path = directory.path().join(name);
    let writing = Writing {
        moves: &built,
        starts: std::slice::from_ref(&start),
        variant,
        color,
        title: &format!("Repertoire for {color}"),
        memory: &memory(directory.path()),
        meter: &meter,
    };
    let out = RepertoireFile::create(&path, true)?;
    writing.write(
        out,
        Some(&|branch| built.comment(branch, CommentDetail::Full)),
    )?;
    let bytes = read_limited(&path, "repertoire", "lower depth")?;
    let size = bytes.len();
    let content = if name.ends_with(".pgn") {
        ResponseBody::pgn(bytes)
    } else {
        ResponseBody::book(bytes)
    };
    if only_counts {
        app.keep_content(visitor, of, content);
        let by = if by == OwnMoveRule::Games {
            " --by games"
        } else {
            ""
        };
        let least = min_game.map_or_else(String::new, |least| format!(" --min-game {least}"));
        let command = format!(
            "polybook make-book {} --counts counts && polybook repertoire build counts --color {color} \
             --reach {one_in} --max-ply {depth}{least}{by} --out {name}",
            words.joined(),
        );
        return ResponseBody::json(&BuiltRepertoire {
            games,
            answers: built.summary.answers,
            min_game: built.summary.min_game,
            single_game: built.summary.single_game,
            without_games: built.summary.without_games,
            unanswered: built.summary.unanswered,
            openings: built.openings,
            bytes: size,
            command,
        });
    }
    Ok(content)
}

/// Answers `/gaps`: returns the gaps of one of the server's repertoires, which are moves of the opponent that it does
/// not answer, and the opponent's moves after the ends of its lines. The games that pass the filters determine how
/// frequent these moves are. Setting `stop` cancels the work.
fn list_gaps(
    app: &AppState,
    key: &CacheKey,
    _visitor: Visitor,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let Request {
        query, parameters, ..
    } = app.request(key, Route::Gaps)?;
    let color = side(&parameters)?;
    let depth = parameters.number("depth", 1..=MAX_DEPTH)?;
    let limit = parameters.number("limit", 0..=MOST_GAPS)?.unwrap_or(20);
    let served = app.served_repertoire(&parameters, color)?;
    let edited = served.edited(&parameters, stop)?;
    let (name, variant) = (&served.name, query.line.variant());
    if !served.known.is_for(variant) {
        let problem = format!(
            "the repertoire {name} contains no games of {variant}: request another variant"
        );
        return Err(Refusal::bad(problem));
    }
    let start = edited.known.start(variant, color)?;
    if start.turn() == color && edited.known.moves(&Keyed::new(start.clone()))?.is_empty() {
        let problem = format!("the repertoire {name} contains no move in the first position");
        return Err(Refusal::bad(problem));
    }
    let mut found = gaps(&FindGaps {
        repertoire: &edited.known,
        color,
        source: &OpenedSource::filtered(&app.explorer, variant, &query.filters),
        start: &start,
        max_ply: depth.map(|depth| depth as usize),
        min_game: min_games(&parameters)?,
        add: (0, OwnMoveRule::Games),
        memory: MEMORY_BUDGET,
        meter: &Meter::stopped_by(stop),
    })?;
    let (total, total_line_ends) = (found.gaps.len(), found.line_ends.len());
    found.gaps.truncate(limit as usize);
    found.line_ends.truncate(limit as usize);
    found.several_moves.truncate(limit as usize);
    let line = Line::at(variant, start);
    let games = AnsweredGames {
        filters: &query.filters,
        // Each gap and each move after the end of a line was played in games.
        has_games: total + total_line_ends > 0,
        other_starts: app.other_starts(&line, &query.filters, &|| !stop.load(Ordering::Relaxed))?,
    };
    let found = FoundGaps {
        total,
        total_line_ends,
        found,
    };
    app.with_reasons(games, &found, stop)
}

/// Answers `/repertoire`: returns what each of the server's repertoires contains in a position, with the opponent's
/// moves from the games that pass the filters. With the parameter `repertoire`, returns only the report on the named
/// repertoire, to which the user's edits are applied. Setting `stop` cancels the work.
pub(super) fn report_repertoires(
    app: &AppState,
    key: &CacheKey,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let Request {
        query, parameters, ..
    } = app.request(key, Route::Repertoire)?;
    let wanted = match parameters.text("repertoire") {
        None => None,
        Some(_) => Some(app.served_repertoire(&parameters, side(&parameters)?)?),
    };
    let min_games = min_games(&parameters)?.unwrap_or(MIN_REPLY_GAMES);
    let mut reports = Vec::new();
    let all = match &wanted {
        Some(served) => vec![Arc::clone(served)],
        None => app.all_repertoires(),
    };
    for served in &all {
        if !served.known.is_for(query.line.variant()) {
            continue;
        }
        let edited = match &wanted {
            None => Arc::clone(&served.unedited),
            Some(served) => served.edited(&parameters, stop)?,
        };
        reports.push(RepertoireReport {
            served,
            report: line_report(
                &query.line,
                &edited.known,
                &edited.predecessors,
                &app.explorer,
                &query.filters,
                min_games,
            )?,
        });
    }
    let games = played(
        &app.explorer,
        query.line.variant(),
        query.line.position(),
        &query.filters,
    )?;
    let games = app.answered_games(&query, !games.is_empty(), stop)?;
    let reports = Reports {
        repertoires: reports,
    };
    if wanted.is_none() && app.uploads.directory.is_some() {
        // The next repertoire that a visitor sends changes the response.
        return app.with_reasons(games, &reports, stop);
    }
    app.answered(key, games, &reports, stop)
}

/// Returns one of the server's repertoires as PGN with the user's edits: moves that the user removed are missing, and
/// lines that the user added come first. Setting `stop` cancels the work.
fn edited_pgn(
    app: &AppState,
    parameters: &Parameters,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let color = side(parameters)?;
    let served = app.served_repertoire(parameters, color)?;
    let edited = served.edited(parameters, stop)?;
    let pgn = served.pgn_file()?;
    let (start, edits) = (served.known.variant().start(), &edited.edits);
    let mut lines: Vec<&[Move]> = edits.added().collect();
    if lines.is_empty() && edited.predecessors.is_empty() {
        // A game without moves, because a file without games cannot be opened.
        lines.push(&[]);
    }
    let added = Additions::from_lines(&start, lines);
    let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
    let path = directory.path().join("repertoire.pgn");
    let out = RepertoireFile::create(&path, true)?;
    let reading = StreamOptions {
        stop: Arc::clone(stop),
        memory: MEMORY_BUDGET,
        ..StreamOptions::default()
    };
    add_to_pgn(pgn, &added, edits.removed(), &start, out, &reading)?;
    let bytes = read_limited(&path, "repertoire", "edit the file in another program")?;
    Ok(ResponseBody::pgn(bytes))
}

/// Returns the value of the parameter `minGame`, the minimum number of games with which a gap or a move of a repertoire
/// counts.
pub(super) fn min_games(parameters: &Parameters) -> Result<Option<u64>, Refusal> {
    Ok(parameters
        .number("minGame", 1..=MAX_MIN_GAME)?
        .map(u64::from))
}

/// A description of a book that the server has made, without the book.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct MadeBook {
    /// The number of games from which the book is made.
    games: u64,
    /// The number of positions in the book.
    positions: usize,
    /// The number of moves in the book.
    entries: usize,
    /// The size of the file.
    bytes: usize,
    /// The command line that makes the same file, or `None` if the book would be empty.
    command: Option<String>,
}

/// A description of a repertoire that the server has built, without the repertoire.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct BuiltRepertoire {
    /// The number of games from which the repertoire is built.
    games: u64,
    /// The number of positions in which the repertoire has a move.
    answers: u64,
    /// The minimum number of games of a move.
    min_game: u64,
    /// The number of answers that were played in a single game.
    single_game: u64,
    /// The number of answers that were played in no game.
    without_games: u64,
    /// The number of positions in which the games end.
    unanswered: u64,
    /// The opening families that the repertoire covers.
    openings: Vec<crate::explore::repertoire::CoveredOpening>,
    /// The size of the file.
    bytes: usize,
    /// The command line that makes the same file.
    command: String,
}

/// The response to a request for the gaps of a repertoire.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct FoundGaps {
    /// The number of all gaps. The response lists only the likeliest gaps.
    total: usize,
    /// The number of all moves of the opponent after the ends of lines. The response lists only the likeliest ones.
    total_line_ends: usize,
    #[serde(flatten)]
    found: Gaps,
}

/// One of the server's repertoires, and its report about a position.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RepertoireReport<'a> {
    #[serde(flatten)]
    served: &'a ServedRepertoire,
    #[serde(flatten)]
    report: LineReport,
}

/// Reports on a position.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Reports<'a> {
    /// The repertoires, each with its report.
    repertoires: Vec<RepertoireReport<'a>>,
}

/// Returns the side that the parameter `side` names. Returns an error response if the parameter is missing.
pub(super) fn side(parameters: &Parameters) -> Result<Color, Refusal> {
    let color = parameters.choice("side", "white or black", |side| side.parse().ok())?;
    color.ok_or_else(|| Refusal::bad("the parameter side is missing: use white or black"))
}

/// Returns the memory budget for one request. Data that exceeds it is written to temporary files in `directory`.
fn memory(directory: &Path) -> Memory {
    Memory {
        bytes: MEMORY_BUDGET,
        temp_dir: directory.to_owned(),
    }
}

/// Counts the games that `counting` selects. Returns the counts, opened as a source of moves, and the number of counted
/// games. The counts are written to a subdirectory of `directory`. `what` is the name of the product in error messages,
/// such as `repertoire`. Setting `stop` cancels the work.
fn count_games(
    mut counting: Counting,
    what: &str,
    directory: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<(OpenedSource, u64), Refusal> {
    let counts = directory.join("counts");
    counting.run = counting.run.counts(&counts).temp_dir(directory);
    let variant = counting.variant;
    let report = counting.report(what, stop)?;
    let options = OpenOptions {
        variant: Some(variant),
        stop: Arc::clone(stop),
        ..OpenOptions::new(directory, memory(directory))
    };
    let source = OpenedSource::source(&counts, false, &options)?;
    Ok((source, report.totals.games.counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Result<String, Refusal> {
        let request = super::super::Request::parse(Route::Make, query)?;
        let mut words = OptionWords::default();
        words.select(&request.query.filters);
        Ok(words.0.join(" "))
    }

    #[test]
    fn a_file_name_with_a_dash_is_not_an_option() {
        let mut words = OptionWords::default();
        words.file("-dash.pgn");
        words.file("a b.pgn");
        assert_eq!(words.0, ["./-dash.pgn", "'a b.pgn'"]);
    }

    #[test]
    fn filters_become_options_or_are_refused() {
        for (query, expected) in [
            ("", ""),
            (
                "player=O'Kelly&color=black&opponent=Tal&result=win",
                r"--result win --player 'O'\''Kelly' --color black --opponent Tal --exact",
            ),
            (
                "player=a&player=b&color=white&opponent=c&opponent=d",
                "--player a --player b --color white --opponent c --opponent d --exact",
            ),
            (
                "player=a&color=black&result=draw,win,loss",
                "--result 1/2-1/2 --result win --result loss --player a --color black --exact",
            ),
            ("requireDate=1", "--require-date"),
            (
                "opponent=Tal&since=2015-05&until=2016",
                "--since 2015.05 --until 2016 --opponent Tal --exact",
            ),
            (
                "eco=B20-B99&minPly=7&speeds=blitz,bullet",
                "--min-plies 7 --eco B20-B99 --speed blitz,bullet",
            ),
            ("opening=King's Gambit", r"--opening 'King'\''s Gambit'"),
            (
                "player=-dash, x&result=1-0,draw",
                "--result 1-0 --result 1/2-1/2 '--player=-dash, x' --exact",
            ),
            (
                "ratings=2500,unknown&duplicates=once",
                "--rating 2500,unknown --duplicates once",
            ),
            ("modes=rated", "--rated=rated,unknown"),
            ("rated=1", "--rated"),
            ("event=a b&exact=false", "--event 'a b'"),
            (
                "player=a&opponent=b&opponentRating=-2000&result=loss",
                "--result loss --player a --opponent b --opponent-rating=-2000 --exact",
            ),
            (
                "speeds=classical,bullet&tag=Site=x",
                "--tag Site=x --speed classical,bullet",
            ),
        ] {
            assert_eq!(options(query).as_deref(), Ok(expected), "{query}");
        }
        for query in ["tag=x", "result=win", "play=e2e4"] {
            assert_eq!(options(query).unwrap_err().status(), 400, "{query}");
        }
    }
}

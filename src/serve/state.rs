//! The state of the server, from which requests are answered: the explorer, the books, the worker threads and the
//! caches. Also contains the answers about single games.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use axum::{Extension, extract::State, http::HeaderValue};
use serde::Serialize;
use shakmaty::Color;
use tokio::sync::{oneshot, watch};

use super::{
    BookFile, JSON, PGN, Parameters, Refusal, Request, Route, ServedRepertoire,
    board::{Board, Moves},
    books::BookMoves,
    client::{Client, while_connected},
    content::{CacheKey, ResponseBody, ResponseCache, etag_of, response_cache},
    hash,
    queue::{FairQueue, Permit, QueueLimits, Visitor},
    request,
    uploads::Uploads,
};
use crate::{
    error::{At, Error, Result},
    explore::explorer::{
        Answer, Explorer, GameInfo, Line, Opening, Overview, Query, Selection, SuggestField,
        UnknownName, last_departure,
    },
    formats::evals::Evals,
    progress::Meter,
    storage::output::{FileState, canonical},
    task,
};

/// The limits on the threads that read the PGN text of games. These threads do nothing else, because reading a
/// compressed file takes a long time and must not delay requests for results of moves. Waiting requests also hold
/// permits to be answered, so the limit is low enough to leave such permits for other requests.
const READERS: QueueLimits = QueueLimits {
    permits: 4,
    held_by_one: 2,
    waiting: 60,
    ..QueueLimits::NONE
};

/// The limits of the thread that makes books.
const MAKERS: QueueLimits = QueueLimits {
    permits: 1,
    waiting: 15,
    waiting_of_one: 1,
    ..QueueLimits::NONE
};

/// The limits of the thread that searches among all games, for duplicates or for a query about the board. Several
/// requests may wait for the same search, and waiting requests hold permits of the server.
const SEARCHERS: QueueLimits = QueueLimits {
    permits: 1,
    waiting: 63,
    waiting_of_one: 16,
    ..QueueLimits::NONE
};

/// The limits of requests with many positions. Each of them keeps its response in memory until it is complete.
const BATCHES: QueueLimits = QueueLimits {
    permits: 8,
    held_by_one: 2,
    waiting: 64,
    waiting_of_one: 8,
};

/// The size, in bytes, at which a page of games in PGN is full. No further game is added to a page that has reached
/// this size, so that a response does not take too much memory.
const MAX_PGN_PAGE_BYTES: usize = 7 << 20;

/// The maximum time for replaying the games of the index for a query about the board. Clients on this machine may take
/// longer.
const REPLAYING: Duration = Duration::from_secs(120);

/// The maximum number of games that are read to determine thinking times. Reading all games would take too long, so
/// only the newest ones are read.
const MAX_TIMED_GAMES: usize = 200;

/// The maximum number of years whose results are added up on the thread of a connection. The results of more years are
/// added up on a worker thread.
const MAX_INLINE_YEARS: u16 = 100;

/// The maximum number of books and repertoires that are stored for a later download, and their maximum total size in
/// bytes. Only the last one of each visitor is stored. If there is only one, it is stored even if it is larger.
const MAX_STORED: (usize, usize) = (4, 64 << 20);

/// The names of the parameters that a request for reading a text accepts.
pub(super) const READ_PARAMETERS: [&str; 2] = ["variant", "text"];

/// The names of the parameters that a request for suggested names accepts.
pub(super) const SUGGEST_PARAMETERS: [&str; 6] =
    ["field", "text", "limit", "source", "duplicates", "with"];

/// The maximum number of names in a response of `/suggest`.
pub(super) const MOST_SUGGESTED: u32 = 50;

/// The default number of names in a response of `/suggest`.
pub(super) const SUGGESTED: u32 = 8;

/// A function that returns `false` if reading the PGN text of games should be cancelled. It is called repeatedly while
/// games are read, because this can take a long time.
pub(super) type ShouldContinue<'a> = &'a dyn Fn() -> bool;

/// The identity of a book or repertoire that the server has made. Requests with equal identities receive the same file.
/// The identity contains the path of the request, its parameters except `count`, and the states of the PGN files.
#[derive(PartialEq)]
pub(super) struct ContentIdentity {
    path: String,
    parameters: Parameters,
    files: FileStates,
}

/// The state of each PGN file, keyed by path: its identity in the file system, its size and its modification time. The
/// state of a pipe or a device is `None`.
pub(super) type FileStates = BTreeMap<PathBuf, Option<FileState>>;

/// Returns the current state of each PGN file of all sources. Files that cannot be examined are omitted.
fn states_of_all(explorer: &Explorer) -> FileStates {
    let states = explorer.pgn_paths(None).filter_map(|path| {
        let state = state_of(path).ok()?;
        Some((path.to_owned(), state))
    });
    states.collect()
}

/// Returns the state of a file: its identity in the file system, its size and its modification time. Returns `None` if
/// the file is a pipe or a device. Follows symbolic links.
fn state_of(path: &Path) -> Result<Option<FileState>> {
    let path = canonical(path).at(path, "open")?;
    if !path.metadata().at(&path, "open")?.is_file() {
        return Ok(None);
    }
    let state = FileState::of(&path).at(&path, "open")?;
    Ok(state.map(FileState::renamed))
}

/// Checks that no file in `files` has changed since the states in `at_start` were recorded. Returns the current states
/// of `files`.
///
/// # Errors
///
/// Returns an error response if a file has changed or cannot be examined.
pub(super) fn check_unchanged<'a>(
    files: impl IntoIterator<Item = &'a Path>,
    at_start: &FileStates,
) -> Result<FileStates, Refusal> {
    let mut states = FileStates::new();
    for path in files {
        let state = state_of(path)?;
        let before = at_start.get(path).copied().flatten();
        if before.is_some_and(|before| state != Some(before)) {
            let name = path.file_name().unwrap_or_default().display();
            let problem = format!(
                "the file {name} has changed since the server started: restart the server when no other program is \
                 writing the file"
            );
            return Err(Refusal::bad(problem));
        }
        states.insert(path.to_owned(), state);
    }
    Ok(states)
}

/// The state of the server, in the form in which a request handler receives it.
pub(super) type ServerState = State<Arc<AppState>>;

/// The client of a request, in the form in which a request handler receives it.
pub(super) type Asker = Extension<Client>;

/// The state of a server, which all requests share.
pub(super) struct AppState {
    pub(super) explorer: Arc<Explorer>,
    about: Overview,
    books: Vec<BookFile>,
    /// The repertoires with which the server was started. [`all_repertoires`](AppState::all_repertoires) also returns
    /// those that visitors sent.
    pub(super) repertoires: Vec<Arc<ServedRepertoire>>,
    /// The repertoires that visitors sent.
    pub(super) uploads: Uploads,
    /// Locked while an answer of a visitor who practises is recorded in a file. Several repertoires can have the same
    /// file of results, for example if a file contains the moves of both sides.
    pub(super) recording: Mutex<()>,
    evals: Option<Evals>,
    /// The names under which the user appears in the games.
    me: Vec<String>,
    /// A cache of responses that depend only on the indexes. They stay valid as long as the server runs.
    pub(super) cache: ResponseCache,
    /// A hash of everything that affects responses, for their validators (`ETag`).
    identity: u64,
    /// The worker threads for requests that neither read PGN text nor make books.
    pub(super) counters: Workers,
    /// The worker threads for requests that read the PGN text of games.
    pub(super) readers: Workers,
    /// The worker thread that makes books, one at a time.
    pub(super) makers: Workers,
    /// The worker thread that searches through all games.
    searchers: Workers,
    /// The permits for requests with many positions.
    pub(super) batches: FairQueue,
    /// The number of requests that wait until the duplicate games are found.
    duplicate_waiters: AtomicUsize,
    /// The books and repertoires whose sizes visitors requested last, the newest at the end. They are stored because a
    /// visitor who requests the size usually requests the file next.
    stored: Mutex<Vec<(Visitor, ContentIdentity, ResponseBody)>>,
    /// The states of the PGN files of all sources when the server was started.
    files: FileStates,
    /// The maximum number of games in the PGN files from which a book or repertoire is made.
    pub(super) book_games: u64,
    /// A channel that is closed as soon as the names for suggestions have been read.
    pub(super) names: watch::Receiver<()>,
}

/// A checked request for `/suggest`.
pub(super) struct SuggestRequest {
    pub(super) field: SuggestField,
    pub(super) text: String,
    /// The maximum number of names in the response.
    pub(super) limit: usize,
    pub(super) source: Option<String>,
    /// Whether a game counts only once even if there are duplicates of it.
    pub(super) counts_once: bool,
    /// The names of opponents. If it is not empty, the response contains the number of games against them.
    pub(super) with: Vec<String>,
}

/// The explorer's answer about the moves of a position. The additional field `polybook` contains data for polybook's
/// web page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Answer"))]
pub(super) struct WithBoard {
    #[serde(flatten)]
    answer: Answer,
    polybook: Board,
}

/// A description of the server's games, books and repertoires.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct About<'a> {
    #[serde(flatten)]
    overview: &'a Overview,
    /// The number of games of each variant, or `None` if a source contains counts from which the number cannot be
    /// determined.
    variants: Option<BTreeMap<&'static str, u64>>,
    /// The names of the parameters that say which games count.
    conditions: &'a [&'static str],
    /// The names of the books.
    books: Vec<&'a str>,
    /// The repertoires with which the server was started.
    repertoires: Vec<&'a ServedRepertoire>,
    /// The names of the player for whom the server was started.
    me: &'a [String],
}

/// The moves of the server's books in a position.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BookAnswer {
    /// The books, with their moves in the position.
    books: Vec<BookMoves>,
}

/// The games on which a response is based, for saying which games it may leave out.
pub(super) struct AnsweredGames<'a> {
    /// The filters of the request.
    pub(super) filters: &'a Selection,
    /// Whether the response contains at least one game.
    pub(super) has_games: bool,
    /// The number of games that [`AppState::other_starts`] returns for the request.
    pub(super) other_starts: Option<u64>,
}

/// The response `answer`, with fields that explain why games may be missing from it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "{T}"))]
pub(super) struct WithReasons<'a, T> {
    #[serde(flatten)]
    answer: &'a T,
    /// A name in the filters that occurs in no game. `None` if games pass the filters, or if there is no such name.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_name: Option<UnknownName>,
    /// The number of games that pass the filters but begin in another position.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_starts: Option<u64>,
    /// The number of half-moves of each game that are indexed. `None` if games are indexed to their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ply: Option<usize>,
}

type Job = Box<dyn FnOnce() + Send>;

/// A pool of worker threads that may block while they read files. All threads are started in advance. The pool has a
/// permit for each thread, so that work begins only when a thread is idle.
pub(super) struct Workers {
    /// The senders to the idle threads. The thread that became idle last is at the end. Each thread waits on a
    /// channel of its own, so that idle threads do not contend for this lock.
    idle: Arc<Mutex<Vec<Sender<Job>>>>,
    /// The queue for the threads, with one permit for each thread.
    pub(super) queue: FairQueue,
}

/// The thread on which a response is computed.
#[derive(Copy, Clone)]
pub(super) enum Thread {
    /// The thread of the connection. The work need not be passed to another thread, but other requests on the same
    /// thread have to wait.
    OfConnection,
    /// A worker thread, which may block while it reads an index.
    Worker,
    /// A thread that reads the PGN text of games. It has at most ten seconds for the response.
    Reader,
}

/// Returns `true` if an index of counts can answer the request from few stored sums of results, so that no worker
/// thread is needed. `years` contains the first and the last year of the games.
///
/// A request needs too many sums if it asks for a history (a sum for each month), or for resulting positions or
/// transpositions (sums for the positions after all moves). It also needs too many sums if it filters by date (a sum
/// for each year) and the first and the last year are more than [`MAX_INLINE_YEARS`] years apart.
fn reads_few_sums(parameters: &Parameters, years: Option<[u16; 2]>) -> bool {
    let has = |name| parameters.text(name).is_some();
    let many_years = years.is_some_and(|[first, last]| last - first > MAX_INLINE_YEARS);
    let many_sums = ["history", "resulting", "transpositions"];
    !many_sums.into_iter().any(has) && !(many_years && (has("since") || has("until")))
}

/// Calls `work` and returns its result. If `work` panics, returns an error response, so that only one request fails.
pub(super) fn catch_panics<T>(work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    task::caught(|| Ok(work())).unwrap_or_else(|err| Err(err.into()))
}

impl Workers {
    /// Starts a pool with one worker thread for each permit of `limits`.
    fn start(limits: QueueLimits) -> Result<Workers> {
        let mut idle = Vec::new();
        for _ in 0..limits.permits {
            let (jobs, waiting) = mpsc::channel::<Job>();
            let work = move || waiting.into_iter().for_each(|job| job());
            let thread = thread::Builder::new().name("answers".to_owned());
            thread.spawn(work).at("threads that answer", "start")?;
            idle.push(jobs);
        }
        Ok(Workers {
            idle: Arc::new(Mutex::new(idle)),
            queue: FairQueue::new(limits),
        })
    }

    /// Calls `work` on an idle worker thread, for which it may have to wait, and returns the response that `work`
    /// creates. Does not call `work` if the client has disconnected in the meantime.
    ///
    /// # Errors
    ///
    /// Returns an error response if no thread becomes idle for the visitor within ten seconds, if too many requests
    /// wait for a thread, or if the client has disconnected. Also returns an error response if `work` returns one or
    /// panics.
    pub(super) async fn content(
        &self,
        client: &Client,
        work: impl FnOnce() -> Result<ResponseBody, Refusal> + Send + 'static,
    ) -> Result<ResponseBody, Refusal> {
        let permit = self.queue.acquire_soon(client.visitor(), 1).await?;
        self.content_with(permit, client, work).await
    }

    /// Calls `work` on a worker thread, and returns the response that `work` creates. `permit` is a permit of this
    /// pool. It is held until `work` has ended, even if the client disconnects during this time.
    ///
    /// # Errors
    ///
    /// Returns an error response if the client has already disconnected, or if `work` returns an error response or
    /// panics.
    pub(super) async fn content_with(
        &self,
        permit: Permit,
        client: &Client,
        work: impl FnOnce() -> Result<ResponseBody, Refusal> + Send + 'static,
    ) -> Result<ResponseBody, Refusal> {
        let content = self.run(permit, client, work).await?;
        client.to_be_sent(content).await
    }

    /// Calls `work` on a worker thread, and returns its result. `permit` is a permit of this pool, which is held until
    /// `work` has ended.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`content_with`](Workers::content_with).
    pub(super) async fn run<T: Send + 'static>(
        &self,
        permit: Permit,
        client: &Client,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        if client.is_gone() {
            return Err(Refusal::unavailable("the client is gone"));
        }
        let worker = task::lock(&self.idle).pop();
        let worker = worker.expect("a thread is idle for each permit");
        let (sender, receiver) = oneshot::channel();
        let (idle, again) = (Arc::clone(&self.idle), worker.clone());
        let job = move || {
            let made = catch_panics(work);
            task::lock(&idle).push(again);
            // Sending fails if the client has disconnected. Nobody needs the response then.
            let _ = sender.send((made, permit));
        };
        let ended = || Refusal::unavailable("the server is shutting down");
        worker.send(Box::new(job)).map_err(|_| ended())?;
        let (made, permit) = receiver.await.map_err(|_| ended())?;
        // Free the thread for other requests while a large response waits to be sent.
        drop(permit);
        made
    }
}

impl AppState {
    /// Creates the state of a server, and starts its worker threads.
    ///
    /// `me` contains the names under which the user plays. `uploads` contains the repertoires that visitors send.
    /// `threads` is the number of threads that answer from the index. A book is made from at most `book_games` games.
    /// The channel `names` is closed as soon as the names for suggestions have been read from the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot start the threads.
    pub(super) fn new(
        explorer: Explorer,
        (books, repertoires, evals, me): (
            Vec<BookFile>,
            Vec<ServedRepertoire>,
            Option<Evals>,
            Vec<String>,
        ),
        uploads: Uploads,
        threads: usize,
        book_games: u64,
        names: watch::Receiver<()>,
    ) -> Result<AppState> {
        // The explorer computes on rayon's threads, and rayon panics if it cannot start them. Start them now, so that
        // this is reported as an error.
        let of_rayon = task::caught(|| Ok(rayon::current_num_threads()));
        let too_few = |_: Error| io::Error::other("the system gives too few");
        of_rayon
            .map_err(too_few)
            .at("threads that count", "start")?;
        Ok(AppState {
            identity: hash(&(
                explorer.identity(),
                books.iter().map(BookFile::name).collect::<Vec<_>>(),
                &repertoires,
                evals.as_ref().map(Evals::identity),
                &me,
                env!("CARGO_PKG_VERSION"),
            )),
            about: explorer.about(),
            files: states_of_all(&explorer),
            explorer: Arc::new(explorer),
            books,
            repertoires: repertoires.into_iter().map(Arc::new).collect(),
            uploads,
            recording: Mutex::default(),
            evals,
            me,
            cache: response_cache(),
            counters: Workers::start(QueueLimits {
                permits: threads,
                // A visitor whose requests take long leaves a thread to others, if there are several.
                held_by_one: (threads - 1).max(1),
                ..QueueLimits::NONE
            })?,
            readers: Workers::start(READERS)?,
            makers: Workers::start(MAKERS)?,
            searchers: Workers::start(SEARCHERS)?,
            batches: FairQueue::new(BATCHES),
            duplicate_waiters: AtomicUsize::new(0),
            stored: Mutex::default(),
            book_games,
            names,
        })
    }

    /// Returns the validator (`ETag`) of a response from the index. It is a hash of the request and of everything else
    /// that determines the response.
    pub(super) fn etag(&self, key: &CacheKey) -> HeaderValue {
        etag_of(&(self.identity, self.uploads.stored(), key))
    }

    /// Returns the kind of thread on which a request for a position is answered. This is the thread of the connection
    /// if few stored sums of an index of counts suffice, which takes very little time. Otherwise, it is a worker
    /// thread.
    pub(super) fn thread_for(&self, parameters: &Parameters) -> Thread {
        let source = parameters.text("source");
        match self.explorer.lacks_games(source, "games") {
            Some(_) if reads_few_sums(parameters, self.about.years) => Thread::OfConnection,
            _ => Thread::Worker,
        }
    }

    /// Answers a request for a position with the JSON form of [`answer`](AppState::answer).
    pub(super) fn position(
        &self,
        key: &CacheKey,
        route: Route,
        should_continue: ShouldContinue<'_>,
    ) -> Result<ResponseBody, Refusal> {
        let request = self.request(key, route)?;
        let document = self.answer(&request, &OnceCell::new(), should_continue)?;
        let content = match route {
            Route::Player => ResponseBody::line(&document),
            _ => ResponseBody::json(&document),
        }?;
        match request.clocks {
            // A response with thinking times is not cached, because it depends on PGN files, which may change.
            true => Ok(content),
            false => self.cached(key, content),
        }
    }

    /// Returns the results of each move in a position, with the data for the web page.
    ///
    /// If no game passes the filters because a name in them occurs in no game, the answer also contains this name and
    /// similar names. `unknown_name` stores them for further requests with the same filters. When `should_continue`
    /// returns `false`, the search for these names and the reading of PGN files are cancelled.
    pub(super) fn answer(
        &self,
        request: &Request,
        unknown_name: &OnceCell<Option<UnknownName>>,
        should_continue: ShouldContinue<'_>,
    ) -> Result<WithBoard, Refusal> {
        let mut answer = self.explorer.answer(&request.query)?;
        let mut polybook = Board::new(request, &answer, &self.explorer);
        if answer.results.games() == 0 {
            let filters = &request.query.filters;
            let unknown = match unknown_name.get() {
                Some(known) => known.clone(),
                None => self.explorer.unknown_name_while(filters, should_continue)?,
            };
            let unknown = unknown_name.get_or_init(|| unknown).clone();
            polybook.set_unknown_name(unknown);
        }
        let (line, filters) = (&request.query.line, &request.query.filters);
        polybook.set_other_starts(self.other_starts(line, filters, should_continue)?);
        if let Some(evals) = &self.evals {
            polybook.evaluate(request.query.line.position(), evals)?;
        }
        if request.clocks {
            let times = self
                .explorer
                .times(&request.query, MAX_TIMED_GAMES, should_continue)?;
            polybook.add_times(request.query.line.position(), &times);
        }
        // The field `polybook` contains these numbers. Strict clients of Lichess's API do not expect them elsewhere.
        answer.unknown_months = None;
        for mv in &mut answer.moves {
            mv.resulting = mv.resulting.filter(|_| request.resulting);
        }
        Ok(WithBoard { answer, polybook })
    }

    /// Answers `/games` with a page of the list of games that reach a position, as JSON. If no game passes the filters
    /// because a name in them occurs in no game, the response also contains this name. Setting `stop` cancels the
    /// search for such a name.
    pub(super) fn games(
        &self,
        key: &CacheKey,
        stop: &Arc<AtomicBool>,
    ) -> Result<ResponseBody, Refusal> {
        let request = self.request(key, Route::Games)?;
        let mut list = self.explorer.games(&request.query, &request.page)?;
        // A request for a later page would be refused.
        list.next = list.next.filter(|next| *next <= request::MAX_SKIP as usize);
        let games = self.answered_games(&request.query, list.total > 0, stop)?;
        self.answered(key, games, &list, stop)
    }

    /// Describes the games on which the response to `query` is based. `has_games` says whether the response contains at
    /// least one game. Also counts the games that do not begin in the starting position; setting `stop` cancels this
    /// count.
    pub(super) fn answered_games<'a>(
        &self,
        query: &'a Query,
        has_games: bool,
        stop: &AtomicBool,
    ) -> Result<AnsweredGames<'a>, Refusal> {
        let filters = &query.filters;
        let should_continue = || !stop.load(Ordering::Relaxed);
        Ok(AnsweredGames {
            filters,
            has_games,
            other_starts: self.other_starts(&query.line, filters, &should_continue)?,
        })
    }

    /// Returns the number of games that pass `filters` but do not begin in the starting position. Returns `None` if
    /// there are none, or if `line` does not begin there either. The count is cancelled when `should_continue` returns
    /// `false`.
    pub(super) fn other_starts(
        &self,
        line: &Line,
        filters: &Selection,
        should_continue: ShouldContinue<'_>,
    ) -> Result<Option<u64>, Refusal> {
        let others = self
            .explorer
            .other_starts_while(line, filters, should_continue)?;
        Ok(others.map(|others| others.games))
    }

    /// Answers `/games` with a page of the games that reach a position, as PGN. If the games are long, the page
    /// contains fewer games than requested. Reading stops when `should_continue` returns `false`.
    ///
    /// # Errors
    ///
    /// Returns an error response if no game passes the filters because a name in them occurs in no game.
    pub(super) fn texts(
        &self,
        key: &CacheKey,
        should_continue: ShouldContinue<'_>,
    ) -> Result<ResponseBody, Refusal> {
        let request = self.request(key, Route::Games)?;
        let (_, numbers) = self.explorer.game_numbers(&request.query, &request.page)?;
        let mut text = Vec::new();
        for game in numbers {
            if text.len() >= MAX_PGN_PAGE_BYTES {
                break;
            }
            text.extend(self.explorer.text_while(game?.0, should_continue)?);
            // Separate the texts by blank lines. The text of a game ends where the next game of its file begins, or
            // at the end of the file.
            while !text.is_empty() && !text.ends_with(b"\n\n") {
                text.push(b'\n');
            }
        }
        // An empty text cannot contain the name that no game has.
        if text.is_empty() {
            let filters = &request.query.filters;
            let unknown = self.explorer.unknown_name_while(filters, should_continue)?;
            if let Some(unknown) = unknown {
                return Err(Refusal::bad(unknown.to_string()));
            }
        }
        Ok(ResponseBody::pgn(text))
    }

    /// Answers a request for the game with the id `id`: with its moves as JSON if the client prefers JSON, otherwise
    /// with its text as PGN. `key` contains the path, the query string and the `Accept` header of the request. Reading
    /// stops when `should_continue` returns `false`.
    pub(super) fn game(
        &self,
        key: &CacheKey,
        id: &str,
        should_continue: ShouldContinue<'_>,
    ) -> Result<ResponseBody, Refusal> {
        // Lichess's routes for a game have no parameters.
        let request = if key.path.starts_with("/game/") {
            Some(self.request(key, Route::Game)?)
        } else {
            None
        };
        let number = self.explorer.find(id)?;
        let number = number.ok_or_else(Refusal::no_such_game)?;
        let text = self.explorer.text_while(number, should_continue)?;
        match request {
            Some(request) if key.prefers(JSON, PGN) => {
                self.open_game(number, &text, &request.query, should_continue)
            }
            _ => Ok(ResponseBody::pgn(text)),
        }
    }

    /// Answers `/book`: looks up a position in each of the server's books, and returns the moves as JSON.
    pub(super) fn book(&self, key: &CacheKey) -> Result<ResponseBody, Refusal> {
        let request = Request::parse(Route::Book, &key.query)?;
        let books = self.books.iter();
        let books = books.map(|book| book.moves(&request.query.line));
        let books: Vec<_> = books.collect::<Result<_>>()?;
        ResponseBody::json(&BookAnswer { books })
    }

    /// Finds the games that the request `key` needs and no earlier request has found: the duplicate games, and the
    /// games that match a query about the board. A single thread searches for them, and no other thread is blocked
    /// while requests wait.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the request is invalid, if too many requests are waiting, if the client has disconnected,
    /// if the search takes too long, or if an index or a PGN file cannot be read.
    pub(super) async fn search_first(
        self: &Arc<AppState>,
        client: &Client,
        key: &CacheKey,
    ) -> Result<(), Refusal> {
        let Some((filters, needs_duplicates)) = self.searched(key)? else {
            return Ok(());
        };
        if needs_duplicates {
            self.find_duplicates(client).await?;
        }
        self.search_board(client, filters).await
    }

    /// Finds the duplicate games, unless an earlier request has found them. The search continues as long as the client
    /// of any waiting request is connected.
    async fn find_duplicates(self: &Arc<AppState>, client: &Client) -> Result<(), Refusal> {
        if self.explorer.knows_duplicates() {
            return Ok(());
        }
        let _waits = WaitsForDuplicates::new(self);
        let queue = &self.searchers.queue;
        let permit = queue.acquire(client.visitor(), 1, Refusal::too_many);
        let permit = while_connected(client, permit).await??;
        if self.explorer.knows_duplicates() {
            return Ok(());
        }
        let state = Arc::clone(self);
        let search = move || {
            let are_wanted = || state.duplicates_are_wanted();
            Ok(state.explorer.find_duplicates_while(&are_wanted)?)
        };
        while_connected(client, self.searchers.run(permit, client, search)).await?
    }

    /// Finds the games that match the query about the board in `filters`, unless an earlier request has found them. The
    /// search continues as long as the client is connected.
    async fn search_board(
        self: &Arc<AppState>,
        client: &Client,
        filters: Selection,
    ) -> Result<(), Refusal> {
        if self.explorer.knows_games_with(&filters) {
            return Ok(());
        }
        let queue = &self.searchers.queue;
        let permit = queue.acquire(client.visitor(), 1, Refusal::too_many);
        let permit = while_connected(client, permit).await??;
        let (state, asker) = (Arc::clone(self), client.clone());
        let search = move || {
            let begun = Instant::now();
            let is_late = || asker.visitor() != Visitor::Local && begun.elapsed() >= REPLAYING;
            let should_continue = || !asker.is_gone() && !is_late();
            let meter = Meter::default();
            let searched = state
                .explorer
                .search_board_while(&filters, &meter, &should_continue);
            match searched {
                Err(Error::Interrupted) if is_late() => Err(Refusal::unavailable(
                    "replaying all games for the parameter position takes longer than this server allows",
                )),
                searched => Ok(searched?),
            }
        };
        while_connected(client, self.searchers.run(permit, client, search)).await?
    }

    /// Returns the filters of the request `key` if its answer depends on a search through all games, otherwise `None`.
    /// Also returns whether it depends on the duplicate games.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the answer may depend on such a search, but the request is invalid.
    fn searched(&self, key: &CacheKey) -> Result<Option<(Selection, bool)>, Refusal> {
        if !request::mentions_search(&key.path, &key.query) {
            return Ok(None);
        }
        let route = match &*key.path {
            "/suggest" => {
                let counts_once = self.suggest_request(key)?.counts_once;
                return Ok(Some((Selection::default(), counts_once)));
            }
            "/prepare" => {
                let filters = self.preparation(key)?.0.query.filters;
                let counts_once = filters.counts_once();
                return Ok(Some((filters, counts_once)));
            }
            "/lichess" => Route::Lichess,
            "/player" | "/personal" => Route::Player,
            "/positions" => Route::Positions,
            "/games" => Route::Games,
            "/facets" => Route::Facets,
            "/scores" => Route::Scores,
            "/openings" => Route::Openings,
            "/repertoire" => Route::Repertoire,
            "/gaps" => Route::Gaps,
            "/practise" => Route::Practise,
            // Books and repertoires are made like those of `make-book`, which searches by itself.
            _ => return Ok(None),
        };
        let request = self.request(key, route)?;
        let filters = request.query.filters;
        let needs_duplicates = filters.counts_once() || request.page.fold_matches;
        Ok(Some((filters, needs_duplicates)))
    }

    /// Returns `true` if at least one request waits until the duplicate games are found.
    fn duplicates_are_wanted(&self) -> bool {
        self.duplicate_waiters.load(Ordering::Relaxed) > 0
    }

    /// Answers `/about`: returns a description of the server's games, books and repertoires, as JSON. The request `key`
    /// must not have parameters.
    pub(super) fn about(&self, key: &CacheKey) -> Result<ResponseBody, Refusal> {
        Parameters::parse_only(&key.query, &[])?;
        let repertoires = self.all_repertoires();
        let about = About {
            overview: &self.about,
            variants: self.explorer.variants(&Selection::default())?,
            conditions: request::condition_parameters(),
            books: self.books.iter().map(BookFile::name).collect(),
            repertoires: repertoires.iter().map(|served| &**served).collect(),
            me: &self.me,
        };
        let about = ResponseBody::json(&about)?;
        if self.uploads.directory.is_some() {
            // The next repertoire that a visitor sends changes the response.
            return Ok(about);
        }
        self.cached(key, about)
    }

    /// Returns the repertoires that all visitors can request by name: those with which the server was started, and
    /// those that visitors sent and that were stored in its directory.
    pub(super) fn all_repertoires(&self) -> Vec<Arc<ServedRepertoire>> {
        let started = self.repertoires.iter().cloned();
        started.chain(self.uploads.shared()).collect()
    }

    /// Answers `/read`: parses text that a user has pasted, and returns its moves or its position as JSON.
    pub(super) fn read(&self, key: &CacheKey) -> Result<ResponseBody, Refusal> {
        let parameters = Parameters::parse_only(&key.query, &READ_PARAMETERS)?;
        let text = parameters.text("text").unwrap_or_default();
        ResponseBody::json(&Moves::of_text(request::variant(&parameters)?, text))
    }

    /// Parses a request to `route`. Returns an error response if the request is invalid, if it selects a source (an
    /// index of the explorer) that does not exist, or if the selected sources lack the data that the response requires.
    pub(super) fn request(&self, key: &CacheKey, route: Route) -> Result<Request, Refusal> {
        let request = Request::parse(route, &key.query)?;
        let filters = &request.query.filters;
        let source = filters.source.as_deref();
        self.check_source(source)?;
        let needs = match route {
            Route::Games => self.explorer.lacks_games(source, "games"),
            Route::Make => self.explorer.needs_all_games(source, "books"),
            // A request for one of the server's own repertoires does not need games.
            Route::Build if request.parameters.text("repertoire").is_some() => None,
            Route::Build => self.explorer.needs_all_games(source, "repertoires"),
            Route::Openings => self.explorer.needs_all_games(source, "openings"),
            Route::Prepare => self.explorer.needs_all_games(source, "a preparation"),
            _ => {
                let clocks = || self.explorer.lacks_games(source, "clocks");
                let needs = self.explorer.needs_games(filters);
                needs.or_else(|| request.clocks.then(clocks).flatten())
            }
        };
        match needs {
            Some(needs) => Err(Refusal::bad(needs.to_string())),
            None => Ok(request),
        }
    }

    /// Parses a request for `/suggest`.
    ///
    /// # Errors
    ///
    /// Returns an error response if the request is invalid, or if the selected sources have no names.
    pub(super) fn suggest_request(&self, key: &CacheKey) -> Result<SuggestRequest, Refusal> {
        let parameters = Parameters::parse_only(&key.query, &SUGGEST_PARAMETERS)?;
        let field = parameters.choice("field", "player, event or opening", |name| match name {
            "player" => Some(SuggestField::Player),
            "event" => Some(SuggestField::Event),
            "opening" => Some(SuggestField::Opening),
            _ => None,
        })?;
        let missing =
            || Refusal::bad("the parameter field is missing: use player, event or opening");
        let limit = parameters.number("limit", 0..=MOST_SUGGESTED)?;
        let source = parameters.filled("source")?;
        self.check_source(source)?;
        if let Some(needs) = self.explorer.lacks_games(source, "names")
            && field != Some(SuggestField::Opening)
        {
            return Err(Refusal::bad(needs.to_string()));
        }
        let request = SuggestRequest {
            field: field.ok_or_else(missing)?,
            text: parameters.text("text").unwrap_or_default().to_owned(),
            limit: limit.unwrap_or(SUGGESTED) as usize,
            source: source.map(str::to_owned),
            counts_once: request::counts_duplicates_once(&parameters)?.unwrap_or(false),
            with: request::names(&parameters, "with")?,
        };
        if (request.counts_once || !request.with.is_empty())
            && request.field != SuggestField::Player
        {
            let problem =
                "the parameters duplicates and with apply only to players: use field=player";
            return Err(Refusal::bad(problem));
        }
        Ok(request)
    }

    /// Parses a request for preparing for an opponent. Also returns the color and the names of the player who prepares.
    ///
    /// # Errors
    ///
    /// Returns an error response if the request is invalid.
    pub(super) fn preparation(
        &self,
        key: &CacheKey,
    ) -> Result<(Request, Color, Vec<String>), Refusal> {
        let request = self.request(key, Route::Prepare)?;
        let both = || {
            Refusal::bad("the parameter color must be white or black, the color of the opponent")
        };
        let color = !request.query.filters.color.ok_or_else(both)?;
        let me = request::names(&request.parameters, "me")?;
        if me.is_empty() {
            return Err(Refusal::bad(
                "the parameter me is missing: give the name of the player who prepares",
            ));
        }
        Ok((request, color, me))
    }

    /// Checks that the name `source` belongs to a source, which is an index of the explorer. `None` means all sources
    /// and is always valid.
    ///
    /// # Errors
    ///
    /// Returns an error response if no source has this name.
    pub(super) fn check_source(&self, source: Option<&str>) -> Result<(), Refusal> {
        let known = &self.about.sources;
        match source {
            Some(source) if known.iter().all(|known| known.name != source) => {
                let problem = format!(
                    "this server has no source called \"{source}\": see the address /about"
                );
                Err(Refusal::bad(problem))
            }
            _ => Ok(()),
        }
    }

    /// Returns the repertoire for the side `color` whose name is in the parameter `repertoire`.
    ///
    /// # Errors
    ///
    /// Returns an error response if no repertoire for this color has this name. The response lists the names of all
    /// repertoires for this color.
    pub(super) fn served_repertoire(
        &self,
        parameters: &Parameters,
        color: Color,
    ) -> Result<Arc<ServedRepertoire>, Refusal> {
        if let Some(sent) = parameters
            .text("repertoire")
            .and_then(|id| self.uploads.find(id))
            && sent.color == color
        {
            return Ok(sent);
        }
        let all = self.all_repertoires();
        let mut of_side = all.iter().filter(|served| served.color == color);
        let known: Vec<&str> = of_side.clone().map(|served| &*served.name).collect();
        let wanted = parameters.text("repertoire");
        let served = of_side.find(|served| wanted == Some(&served.name));
        served.cloned().ok_or_else(|| {
            let problem = match (wanted, known.is_empty()) {
                (_, true) => format!(
                    "this server has no repertoire for {color}: start the server with a repertoire"
                ),
                (None, _) => format!(
                    "the parameter repertoire is missing: for {color}, use one of {}",
                    known.join(", ")
                ),
                (Some(name), _) => format!(
                    "no repertoire for {color} is called \"{name}\": use one of {}",
                    known.join(", ")
                ),
            };
            Refusal::bad(problem)
        })
    }

    /// Returns the identity of the book or repertoire that a request asks for. Requests with equal identities receive
    /// the same file.
    ///
    /// # Errors
    ///
    /// Returns an error response if a PGN file of the selected sources has changed since it was indexed, or cannot be
    /// examined.
    pub(super) fn content_identity(
        &self,
        key: &CacheKey,
        filters: &Selection,
        parameters: &Parameters,
    ) -> Result<ContentIdentity, Refusal> {
        Ok(ContentIdentity {
            path: key.path.clone(),
            parameters: parameters.without("count"),
            files: self.checked_files(filters)?,
        })
    }

    /// Checks that the PGN files of the sources that `filters` selects are unchanged, and returns their current states.
    /// A state consists of the identity, the size and the modification time of a file.
    ///
    /// # Errors
    ///
    /// Returns an error response if a file has changed since it was indexed, or cannot be examined.
    pub(super) fn checked_files(&self, filters: &Selection) -> Result<FileStates, Refusal> {
        let files = self.explorer.files(filters)?;
        let states = check_unchanged(files.iter().map(|file| &*file.path), &self.files)?;
        if let Some((path, source)) = self.explorer.newer_file(filters.source.as_deref()) {
            let name = path.file_name().unwrap_or_default().display();
            let problem = format!(
                "the file {name} was modified after the index of {source} was made: make the index again"
            );
            return Err(Refusal::bad(problem));
        }
        Ok(states)
    }

    /// Removes the book or repertoire that was stored under `identity`, and returns it. Returns `None` if there is
    /// none.
    pub(super) fn take_content(&self, identity: &ContentIdentity) -> Option<ResponseBody> {
        let mut stored = task::lock(&self.stored);
        let at = stored.iter().position(|(_, other, _)| other == identity)?;
        Some(stored.remove(at).2)
    }

    /// Stores the book or repertoire `content` under `identity` for a later download. Replaces the one that was stored
    /// for `visitor` before. If the limits are exceeded, removes the oldest ones.
    pub(super) fn keep_content(
        &self,
        visitor: Visitor,
        identity: ContentIdentity,
        content: ResponseBody,
    ) {
        let mut stored = task::lock(&self.stored);
        stored.retain(|(other, ..)| *other != visitor);
        stored.push((visitor, identity, content));
        let (most, most_bytes) = MAX_STORED;
        let bytes = |stored: &[(_, _, ResponseBody)]| {
            stored
                .iter()
                .map(|(.., content)| content.size())
                .sum::<usize>()
        };
        while stored.len() > most || stored.len() > 1 && bytes(&stored) > most_bytes {
            stored.remove(0);
        }
    }

    /// Converts `answer` to a JSON response with [`with_reasons`](AppState::with_reasons), stores the response in the
    /// cache, and returns it.
    pub(super) fn answered(
        &self,
        key: &CacheKey,
        games: AnsweredGames<'_>,
        answer: &impl Serialize,
        stop: &AtomicBool,
    ) -> Result<ResponseBody, Refusal> {
        let content = self.with_reasons(games, answer, stop)?;
        self.cached(key, content)
    }

    /// Converts `answer` to a JSON response with keys in camel case, without storing it in the cache. The response also
    /// contains the reasons why games may be missing from it: a name in the filters that occurs in no game, with
    /// similar names; games that do not begin in the starting position; and the end of an index. Setting `stop` cancels
    /// the search for names.
    pub(super) fn with_reasons(
        &self,
        games: AnsweredGames<'_>,
        answer: &impl Serialize,
        stop: &AtomicBool,
    ) -> Result<ResponseBody, Refusal> {
        let AnsweredGames {
            filters,
            has_games,
            other_starts,
        } = games;
        // The search reads all names of an index.
        let unknown_name = if has_games {
            None
        } else {
            self.explorer
                .unknown_name_while(filters, &|| !stop.load(Ordering::Relaxed))?
        };
        ResponseBody::camel_json(&WithReasons {
            answer,
            unknown_name,
            other_starts,
            max_ply: self.explorer.max_ply(filters),
        })
    }

    /// Stores `content`, the response to the request `key`, in the cache, and returns it. The response must not contain
    /// the PGN text of games, because the PGN files may change.
    pub(super) fn cached(
        &self,
        key: &CacheKey,
        content: ResponseBody,
    ) -> Result<ResponseBody, Refusal> {
        self.cache.insert(key.clone(), content.clone());
        Ok(content)
    }
}

/// A request that waits until the duplicate games are found. The search for them ends when no request waits any more.
struct WaitsForDuplicates<'a>(&'a AtomicUsize);

impl WaitsForDuplicates<'_> {
    fn new(state: &AppState) -> WaitsForDuplicates<'_> {
        state.duplicate_waiters.fetch_add(1, Ordering::Relaxed);
        WaitsForDuplicates(&state.duplicate_waiters)
    }
}

impl Drop for WaitsForDuplicates<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A game as the web page shows it, with its moves, their annotations, and the number of games that reach each
/// position.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Game"))]
pub(super) struct OpenGame {
    #[serde(flatten)]
    info: GameInfo,
    result: String,
    event: Option<String>,
    site: Option<String>,
    date: Option<String>,
    round: Option<String>,
    eco: Option<String>,
    /// The opening of the last position in the game that has an opening name.
    opening: Option<Opening>,
    #[serde(flatten)]
    moves: Moves,
    /// The number of games that reach the position after each move. `None` if the number is unknown.
    reached: Vec<Option<u64>>,
    /// The index of the move after which no position of the game occurs in another game. `None` if there is no such
    /// move, or if it is unknown.
    novelty: Option<usize>,
    /// The number of half-moves after which the game reaches the position of the request, or `None` if it does not
    /// reach it.
    ply: Option<usize>,
}

impl AppState {
    /// Returns a game as JSON, with its moves, their annotations, and the number of games that reach each position.
    /// `number` is the number of the game in the explorer, and `text` is its PGN. Only games that pass the filters of
    /// `query` are counted. The work is cancelled when `should_continue` returns `false`.
    pub(super) fn open_game(
        &self,
        number: u64,
        text: &[u8],
        query: &Query,
        should_continue: ShouldContinue<'_>,
    ) -> Result<ResponseBody, Refusal> {
        let moves = Moves::of_game(self.explorer.variant_of_game(number)?, text);
        let line = moves.line();
        let listed = self.explorer.listed_game(number)?;
        let reached = self
            .explorer
            .reached(&line, &query.filters, should_continue)?;
        let mut info = listed.played.game;
        info.white.title = moves.tag("WhiteTitle");
        info.black.title = moves.tag("BlackTitle");
        ResponseBody::json(&OpenGame {
            result: self.explorer.header(number)?.result().into_owned(),
            event: listed.event,
            site: moves.tag("Site"),
            date: listed.date,
            round: moves.tag("Round"),
            eco: listed.eco,
            opening: line.opening(),
            novelty: novelty(&reached),
            reached,
            ply: line.ply_of(&query.line).filter(|_| moves.has_known_start()),
            info,
            moves,
        })
    }
}

/// Returns the index of the game's novelty: the first move after which no position of the game occurs in another game.
/// Returns `None` if there is no such move.
///
/// `reached` contains, for each move, the number of games that reach the position after it, including the game itself.
/// If a number is unknown (`None`), all moves from there on are ignored.
fn novelty(reached: &[Option<u64>]) -> Option<usize> {
    let known = reached
        .iter()
        .map_while(|games| games.map(|games| games > 1));
    last_departure(&known.collect::<Vec<bool>>())
}

#[cfg(test)]
mod tests {
    use super::{super::client::Clients, *};
    use crate::{MakeBook, games::pgn::Input};

    /// Creates the state of a server with one worker thread, whose explorer has the index of the famous games.
    fn app(dir: &Path) -> AppState {
        let path = dir.join("games.idx");
        let run = MakeBook::new([Input::file("data/famous.pgn")]);
        run.explorer(&path).run().unwrap();
        let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
        let (_sender, names) = watch::channel(());
        let of_server = (Vec::new(), Vec::new(), None, Vec::new());
        AppState::new(explorer, of_server, Uploads::new(None, false), 1, 0, names).unwrap()
    }

    #[test]
    fn one_thread_searches_for_duplicates_as_long_as_a_request_waits() {
        let dir = tempfile::tempdir().unwrap();
        let app = Arc::new(app(dir.path()));
        let key = |path: &str, query: &str| CacheKey {
            path: path.to_owned(),
            query: query.to_owned(),
            accept: String::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
            let clients = Clients::new([127, 0, 0, 1].into(), &[]);
            let (stream, permit) = (stream.await.unwrap(), clients.connection_permit().await);
            let client = clients.enter(permit, stream, [127, 0, 0, 1].into());
            let (client, _stream) = client.unwrap();
            let (_accepted, _) = listener.accept().await.unwrap();
            for (path, query, is_valid) in [
                ("/lichess", "", true),
                ("/book.bin", "duplicates=once", true),
                ("/about", "duplicates=once", true),
                ("/masters", "duplicates=once", true),
                ("/lichess", "duplicates=once&play=e2", false),
                ("/facets", "duplicates=once&source=other", false),
                ("/games", "fold=match&unknown=1", false),
                ("/prepare", "player=a&color=white", false),
                ("/suggest", "field=event&duplicates=once", false),
            ] {
                let found = app.search_first(&client, &key(path, query)).await;
                assert_eq!(found.is_ok(), is_valid, "{path}?{query}");
                assert!(!app.explorer.knows_duplicates(), "{path}?{query}");
            }
            let searching = app.searchers.queue.try_acquire(Visitor::Local, 1);
            assert!(searching.is_some());
            let prepare = key("/prepare", "player=a&color=white&me=b");
            let facets = key("/facets", "duplicates=once");
            let mut first = Box::pin(app.search_first(&client, &prepare));
            let mut second = Box::pin(app.search_first(&client, &facets));
            assert!(!app.duplicates_are_wanted());
            for waiting in [&mut first, &mut second] {
                let soon = std::time::Duration::from_millis(1);
                assert!(tokio::time::timeout(soon, waiting).await.is_err());
            }
            assert!(app.duplicates_are_wanted());
            let mut others = Vec::new();
            for _ in 2..SEARCHERS.waiting {
                let mut waiting = Box::pin(app.search_first(&client, &facets));
                let soon = std::time::Duration::from_millis(1);
                assert!(tokio::time::timeout(soon, &mut waiting).await.is_err());
                others.push(waiting);
            }
            let refusal = app.search_first(&client, &facets).await.unwrap_err();
            assert_eq!(refusal.status(), 503);
            drop(others);
            // The search needs none of the threads of other requests.
            let workers = app.counters.queue.try_acquire(Visitor::Local, 1);
            drop(first);
            assert!(app.duplicates_are_wanted());
            drop(searching);
            second.await.unwrap();
            assert!(workers.is_some() && app.explorer.knows_duplicates());
            assert!(!app.duplicates_are_wanted());
        });
    }

    #[test]
    fn the_last_book_of_each_visitor_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path());
        let visitor = |number: u8| Visitor::at([10, 0, 0, number].into());
        let identity = |number: u8| ContentIdentity {
            path: number.to_string(),
            parameters: Parameters::parse("").unwrap(),
            files: FileStates::new(),
        };
        let content = |size: usize| ResponseBody::pgn(vec![b'x'; size]);
        app.keep_content(visitor(1), identity(1), content(9));
        for number in 2..50 {
            app.keep_content(visitor(2), identity(number), content(9));
        }
        assert!(app.take_content(&identity(2)).is_none());
        assert!(app.take_content(&identity(49)).is_some());
        assert!(app.take_content(&identity(1)).is_some());
        assert!(app.take_content(&identity(1)).is_none());
        for number in 1..6 {
            app.keep_content(visitor(number), identity(number), content(9));
        }
        assert!(app.take_content(&identity(1)).is_none());
        app.keep_content(visitor(9), identity(9), content(MAX_STORED.1));
        assert!(app.take_content(&identity(5)).is_none());
        assert!(app.take_content(&identity(9)).is_some());
    }

    #[test]
    fn names_are_searched_only_if_there_are_no_games_and_only_until_the_client_goes() {
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path());
        let filters = Selection {
            player: vec!["Morfy, Paul".to_owned()],
            exact: true,
            ..Selection::default()
        };
        let answer = BTreeMap::from([("total", 0)]);
        let stop = AtomicBool::new(true);
        let content = |has_games| {
            let games = AnsweredGames {
                filters: &filters,
                has_games,
                other_starts: None,
            };
            app.with_reasons(games, &answer, &stop)
        };
        assert!(content(true).is_ok());
        assert!(content(false).is_err_and(|refusal| refusal.status() == 503));
        stop.store(false, Ordering::Relaxed);
        assert!(content(false).unwrap().size() > content(true).unwrap().size());
    }

    #[test]
    fn simple_queries_read_few_sums() {
        for (query, years, few) in [
            ("since=2020", [1950, 2026], true),
            ("since=2020", [1, 9999], false),
            ("until=2020-02", [1, 9999], false),
            ("speeds=blitz", [1, 9999], true),
            ("history=true", [2025, 2026], false),
            ("transpositions=true", [2025, 2026], false),
            ("resulting=true", [2025, 2026], false),
        ] {
            let parameters = Parameters::parse(query).unwrap();
            assert_eq!(reads_few_sums(&parameters, Some(years)), few, "{query}");
        }
    }
}

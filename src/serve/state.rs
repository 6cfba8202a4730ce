//! The state from which requests are answered: the explorer, the books, the worker threads and the caches.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{self, Sender},
    },
    thread,
};

use axum::http::HeaderValue;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::{
    BookFile, Parameters, Refusal, Request, Route, ServedRepertoire,
    board::{Board, Moves},
    client::{Client, in_time},
    content::{CacheKey, Content, JSON, PGN, ResponseCache, etag_of, response_cache},
    hash, request,
};
use crate::{
    error::{At, Error, Result},
    evals::Evals,
    explorer::{Answer, Explorer, Filters, Overview, UnknownName},
    storage::output::FileState,
    task,
};

/// The number of threads that read the texts of games. Reading a compressed file takes long, so it must not block the
/// threads that answer requests for counts of moves.
const READERS: usize = 4;

/// The size in bytes that limits a page of games in PGN. When a page has reached this size, no further game is added to
/// it.
const LONG_PAGE: usize = 7 << 20;

/// The maximum number of games whose texts are read to learn how long moves took. The newest games are read first.
const TIMED: usize = 200;

/// The maximum number of years whose results are added up on the thread of the connection. Results of more years are
/// added up on a worker thread.
const FEW_YEARS: u16 = 100;

/// A function that returns `false` to cancel the reading of games' PGN texts. The reader calls it again and
/// again, because reading many texts takes long.
pub(super) type GoesOn<'a> = &'a dyn Fn() -> bool;

/// The identity of a book or repertoire that was made. It consists of the path and the parameters of the request,
/// except `count`, and of the states of the files that contain the games.
#[derive(PartialEq)]
pub(super) struct ContentIdentity {
    path: String,
    parameters: Parameters,
    files: FileStates,
}

/// The states of the files that contain the games, by path. A state is the identity, the size and the modification time
/// of a file. It is `None` for a pipe or a device.
pub(super) type FileStates = BTreeMap<PathBuf, Option<FileState>>;

/// Returns the current states of all files that contain games of the explorer's sources. Missing files are left out.
pub(super) fn states_of_all(explorer: &Explorer) -> FileStates {
    let states = explorer.all_files().filter_map(|path| {
        let state = state_of(path).ok()?;
        Some((path.to_owned(), state))
    });
    states.collect()
}

/// Returns the identity, the size and the modification time of the file at `path`, or `None` if it is a pipe or a
/// device. Follows symbolic links.
fn state_of(path: &Path) -> Result<Option<FileState>> {
    let path = fs::canonicalize(path).at(path, "open")?;
    if !path.metadata().at(&path, "open")?.is_file() {
        return Ok(None);
    }
    let state = FileState::of(&path).at(&path, "open")?;
    Ok(state.map(FileState::renamed))
}

/// Checks that the states of `files` still equal their states in `at_start`, and returns the states.
///
/// # Errors
///
/// Returns a refusal if a file cannot be examined or has changed.
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
                "the file {name} has changed since the server started: start the server again when no program writes \
                 the file"
            );
            return Err(Refusal::bad(problem));
        }
        states.insert(path.to_owned(), state);
    }
    Ok(states)
}

/// The state of the server, which all requests share.
pub(super) struct AppState {
    pub(super) explorer: Arc<Explorer>,
    about: Overview,
    books: Vec<BookFile>,
    pub(super) repertoires: Vec<ServedRepertoire>,
    evals: Option<Evals>,
    /// The names of the user in the games.
    me: Vec<String>,
    /// Answers that depend only on the index. They stay valid as long as the server runs.
    pub(super) cache: ResponseCache,
    /// A hash of everything that answers depend on, for validators.
    identity: u64,
    /// The threads for all work except reading the texts of games.
    pub(super) counters: Workers,
    /// The threads that read the texts of games.
    pub(super) readers: Workers,
    /// The thread that makes books, one at a time.
    pub(super) makers: Workers,
    /// The last book or repertoire whose size was requested, kept for its download.
    last_content: Mutex<Option<(ContentIdentity, Content)>>,
    /// The states of the files of the sources when the server started.
    files: FileStates,
    /// The maximum number of games in the files for which books are made.
    pub(super) book_games: u64,
    /// Closed as soon as the names for suggestions are read.
    pub(super) names: watch::Receiver<()>,
}

/// The answer of the explorer to a request for the moves of a position, extended by the field `polybook`. This field
/// contains the data that only polybook's web page needs.
#[derive(Serialize)]
struct WithBoard {
    #[serde(flatten)]
    answer: Answer,
    polybook: Board,
}

/// An answer of a route that only polybook has, extended by the name in the filters that no game has.
#[derive(Serialize)]
struct WithUnknownName<'a, T> {
    #[serde(flatten)]
    answer: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_name: Option<UnknownName>,
}

type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads that may block on files. Each thread has a semaphore permit, so work starts only when a thread is
/// free. All threads are started in advance, so a request never needs a new one.
pub(super) struct Workers {
    /// The senders to idle threads; the last one used is at the end. Idle threads wait on their own channels, so they
    /// do not contend for this lock.
    idle: Arc<Mutex<Vec<Sender<Job>>>>,
    /// Permits for the threads, one for each thread.
    pub(super) permits: Arc<Semaphore>,
}

/// The thread on which a response is computed.
#[derive(Copy, Clone)]
pub(super) enum Thread {
    /// The thread of the connection. This is faster than passing the work on, but other requests wait meanwhile.
    OfConnection,
    /// A worker thread.
    Worker,
}

/// Returns `true` if a request to an index of counts can be answered from few stored sums, so that it need not wait for
/// a worker thread. `years` are the first and the last year of the games.
///
/// Many sums are needed for a history (one for each month), for transpositions (those of the positions after all
/// moves), and for a filter by date if the games span more than [`FEW_YEARS`] years (one for each year).
fn reads_few_sums(parameters: &Parameters, years: Option<[u16; 2]>) -> bool {
    let has = |name| parameters.text(name).is_some();
    let many_years = years.is_some_and(|[first, last]| last - first > FEW_YEARS);
    !has("history") && !has("transpositions") && !(many_years && (has("since") || has("until")))
}

/// Computes a response by calling `work`. If `work` panics, returns a refusal, so that only this request fails.
pub(super) fn catch_panics(
    work: impl FnOnce() -> Result<Content, Refusal>,
) -> Result<Content, Refusal> {
    task::caught(|| Ok(work())).unwrap_or_else(|err| Err(err.into()))
}

impl Workers {
    /// Starts a pool of `count` threads.
    fn start(count: usize) -> Result<Workers> {
        let mut idle = Vec::new();
        for _ in 0..count {
            let (jobs, waiting) = mpsc::channel::<Job>();
            let work = move || waiting.into_iter().for_each(|job| job());
            let thread = thread::Builder::new().name("answers".to_owned());
            thread.spawn(work).at("threads that answer", "start")?;
            idle.push(jobs);
        }
        Ok(Workers {
            idle: Arc::new(Mutex::new(idle)),
            permits: Arc::new(Semaphore::new(count)),
        })
    }

    /// Computes a response by calling `work` on a worker thread, as soon as a thread is free. Does not call `work` if
    /// the client has disconnected by then.
    ///
    /// # Errors
    ///
    /// Returns the refusal of `work`, or a refusal if no thread becomes free within ten seconds.
    pub(super) async fn content(
        &self,
        client: &Client,
        work: impl FnOnce() -> Result<Content, Refusal> + Send + 'static,
    ) -> Result<Content, Refusal> {
        let permit = in_time(Arc::clone(&self.permits).acquire_owned()).await?;
        self.content_with(permit, client, work).await
    }

    /// Computes a response by calling `work` on a worker thread, unless the client has disconnected. `permit` is a
    /// semaphore permit of the thread pool. It is held until the response is ready, even if the client disconnects
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Returns the refusal of `work`, or a refusal if `work` panics.
    pub(super) async fn content_with(
        &self,
        permit: OwnedSemaphorePermit,
        client: &Client,
        work: impl FnOnce() -> Result<Content, Refusal> + Send + 'static,
    ) -> Result<Content, Refusal> {
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
            // Sending fails if the client has gone, which does no harm.
            let _ = sender.send((made, permit));
        };
        let ended = || Refusal::unavailable("the server has ended");
        worker.send(Box::new(job)).map_err(|_| ended())?;
        let (made, permit) = receiver.await.map_err(|_| ended())?;
        // Release the thread for others while a large content waits to be sent.
        drop(permit);
        client.to_be_sent(made?).await
    }
}

impl AppState {
    /// Creates the state of a server and starts its worker threads. `books`, `repertoires` and `evals` are what the
    /// server shows in addition to the games, and `me` contains the names of the user. `threads` is the number of
    /// threads that answer from the index. `book_games` is the maximum number of games from which a book is made.
    /// `names` is closed when the names for suggestions have been read.
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
        threads: usize,
        book_games: u64,
        names: watch::Receiver<()>,
    ) -> Result<AppState> {
        // The explorer uses rayon's threads, and rayon panics if it cannot start them. Start them now.
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
            repertoires,
            evals,
            me,
            cache: response_cache(),
            counters: Workers::start(threads)?,
            readers: Workers::start(READERS)?,
            makers: Workers::start(1)?,
            last_content: Mutex::default(),
            book_games,
            names,
        })
    }

    /// Returns the validator (`ETag`) of an answer from the index: a hash of the request and of everything that answers
    /// depend on.
    pub(super) fn etag(&self, key: &CacheKey) -> HeaderValue {
        etag_of(&(self.identity, key))
    }

    /// Returns the thread on which the answer about a position is to be computed. An answer from an index of counts
    /// that needs few stored results takes so little time that the thread of the connection computes it. A worker
    /// thread computes every other answer.
    pub(super) fn thread_for(&self, parameters: &Parameters) -> Thread {
        let source = parameters.text("source");
        match self.explorer.lacks_games(source, "games") {
            Some(_) if reads_few_sums(parameters, self.about.years) => Thread::OfConnection,
            _ => Thread::Worker,
        }
    }

    /// Returns the counts of a position, with the data that the page needs. The server searches for similar names, and
    /// reads clock times from the texts of games, as long as `goes_on` returns `true`.
    pub(super) fn position(
        &self,
        key: &CacheKey,
        route: Route,
        goes_on: GoesOn<'_>,
    ) -> Result<Content, Refusal> {
        let request = self.request(key, route)?;
        let mut answer = self.explorer.answer(&request.query)?;
        let mut polybook = Board::new(&request, &answer, &self.explorer);
        if answer.white + answer.draws + answer.black == 0
            && let Some(unknown) = self
                .explorer
                .unknown_name_while(&request.query.filters, goes_on)?
        {
            polybook.set_unknown_name(unknown);
        }
        if let Some(evals) = &self.evals {
            polybook.evaluate(request.query.line.position(), evals)?;
        }
        if request.clocks {
            let times = self.explorer.times(&request.query, TIMED, goes_on)?;
            polybook.add_times(request.query.line.position(), &times);
        }
        // The board contains these numbers, and strict clients of Lichess's API do not expect them.
        answer.unknown_months = None;
        for mv in &mut answer.moves {
            mv.reached = None;
        }
        let document = WithBoard { answer, polybook };
        let content = match route {
            Route::Player => Content::line(&document),
            _ => Content::json(&document),
        }?;
        match request.clocks {
            // An answer with clocks is not cached, because the files of the games may change.
            true => Ok(content),
            false => self.cached(key, content),
        }
    }

    /// Returns a page of the list of games that reach a position, as JSON.
    pub(super) fn games(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let request = self.request(key, Route::Games)?;
        let list = self.explorer.games(&request.query, &request.page)?;
        self.answered(key, &request.query.filters, &list)
    }

    /// Returns a page of the games that reach a position, as PGN. If the texts of the games are long, the page contains
    /// fewer games. Texts are read as long as `goes_on` returns `true`.
    pub(super) fn texts(&self, key: &CacheKey, goes_on: GoesOn<'_>) -> Result<Content, Refusal> {
        let request = self.request(key, Route::Games)?;
        let (_, numbers) = self.explorer.game_numbers(&request.query, &request.page)?;
        let mut text = Vec::new();
        for number in numbers {
            if text.len() >= LONG_PAGE {
                break;
            }
            text.extend(self.explorer.text_while(number?, goes_on)?);
            // Separate the texts by blank lines. Each ends where the next game began, or at the end of its file.
            while !text.is_empty() && !text.ends_with(b"\n\n") {
                text.push(b'\n');
            }
        }
        Ok(Content::pgn(text))
    }

    /// Returns the PGN of the game with the id `id`. If the client prefers JSON, returns the moves of the game as
    /// JSON instead. `key` contains the path and the parameters of the request, and the preference for JSON.
    /// Reading is cancelled when `goes_on` returns `false`.
    pub(super) fn game(
        &self,
        key: &CacheKey,
        id: &str,
        goes_on: GoesOn<'_>,
    ) -> Result<Content, Refusal> {
        // The routes that Lichess has for a game accept no parameters.
        let request = match key.path.starts_with("/game/") {
            true => Some(self.request(key, Route::Game)?),
            false => None,
        };
        let number = self.explorer.find(id)?;
        let number = number.ok_or_else(Refusal::no_such_game)?;
        let text = self.explorer.text_while(number, goes_on)?;
        match request {
            Some(request) if key.prefers(JSON, PGN) => {
                self.open_game(number, &text, &request.query, goes_on)
            }
            _ => Ok(Content::pgn(text)),
        }
    }

    /// Answers `/book`: looks up one position in each book that the server shows, and returns the moves as JSON.
    pub(super) fn book(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let request = Request::parse(Route::Book, &key.query)?;
        let books = self.books.iter();
        let books = books.map(|book| book.moves(&request.query.line));
        let books: Vec<_> = books.collect::<Result<_>>()?;
        Content::json(&BTreeMap::from([("books", books)]))
    }

    /// Answers `/about`: returns a description of the games, books and repertoires that the server shows, as JSON.
    /// `key` contains the path and the query of the request, which must not have parameters.
    pub(super) fn about(&self, key: &CacheKey) -> Result<Content, Refusal> {
        Parameters::parse_only(&key.query, &[])?;
        let mut about = json!(self.about);
        about["variants"] = json!(self.explorer.variants(&Filters::default())?);
        about["books"] = self.books.iter().map(BookFile::name).collect();
        about["repertoires"] = json!(self.repertoires);
        about["me"] = json!(self.me);
        self.cached(key, Content::json(&about)?)
    }

    /// Reads a text that a user has pasted, and returns its moves or its position as JSON.
    pub(super) fn read(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let parameters = Parameters::parse_only(&key.query, &["variant", "text"])?;
        let text = parameters.text("text").unwrap_or_default();
        Content::json(&Moves::of_text(request::variant(&parameters)?, text))
    }

    /// Parses a request to `route`, and checks that the index that it names (its source) exists and can answer it.
    pub(super) fn request(&self, key: &CacheKey, route: Route) -> Result<Request, Refusal> {
        let request = Request::parse(route, &key.query)?;
        let filters = &request.query.filters;
        let source = filters.source.as_deref();
        self.check_source(source)?;
        let needs = match route {
            Route::Games => self.explorer.lacks_games(source, "games"),
            Route::Make => self.explorer.needs_all_games(source, "books"),
            // A served repertoire does not need the games.
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

    /// Checks that a source (an index of the explorer) with the name `source` exists. `None` means all sources and is
    /// always accepted.
    ///
    /// # Errors
    ///
    /// Returns a refusal if no source has this name.
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

    /// Returns the identity of the book or repertoire that a request asks for.
    ///
    /// # Errors
    ///
    /// Returns a refusal if a file of the selected sources cannot be examined, or has changed since it was indexed.
    pub(super) fn content_identity(
        &self,
        key: &CacheKey,
        filters: &Filters,
        parameters: &Parameters,
    ) -> Result<ContentIdentity, Refusal> {
        Ok(ContentIdentity {
            path: key.path.clone(),
            parameters: parameters.without("count"),
            files: self.checked_files(filters)?,
        })
    }

    /// Returns the states (identity, size and modification time) of the PGN files of the sources that `filters` select.
    ///
    /// # Errors
    ///
    /// Returns a refusal if a file cannot be examined, or has changed since it was indexed.
    pub(super) fn checked_files(&self, filters: &Filters) -> Result<FileStates, Refusal> {
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

    /// Takes the stored content of an earlier request. If the content was not made for the request `of`, discards it
    /// and returns `None`.
    pub(super) fn take_content(&self, of: &ContentIdentity) -> Option<Content> {
        let last = task::lock(&self.last_content).take();
        last.filter(|(content_identity, _)| content_identity == of)
            .map(|(_, content)| content)
    }

    /// Stores a content with the identity `of`, so that a later request can download it. Replaces the content that was
    /// stored before.
    pub(super) fn keep_content(&self, of: ContentIdentity, content: Content) {
        *task::lock(&self.last_content) = Some((of, content));
    }

    /// Returns the response `answer` as JSON with keys in camel case, and stores it in the cache. If the names in
    /// `filters` explain why no game passes, the response also contains the unknown name and similar names.
    pub(super) fn answered(
        &self,
        key: &CacheKey,
        filters: &Filters,
        answer: &impl Serialize,
    ) -> Result<Content, Refusal> {
        self.cached(key, self.with_unknown_name(filters, answer)?)
    }

    /// Returns the response `answer` like [`answered`](AppState::answered), but does not store it.
    pub(super) fn with_unknown_name(
        &self,
        filters: &Filters,
        answer: &impl Serialize,
    ) -> Result<Content, Refusal> {
        let unknown_name = self.explorer.unknown_name(filters)?;
        Content::camel_json(&WithUnknownName {
            answer,
            unknown_name,
        })
    }

    /// Stores a response that was computed from the index in the cache, and returns the response.
    pub(super) fn cached(&self, key: &CacheKey, content: Content) -> Result<Content, Refusal> {
        self.cache.insert(key.clone(), content.clone());
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_queries_read_few_sums() {
        for (query, years, few) in [
            ("since=2020", [1950, 2026], true),
            ("since=2020", [1, 9999], false),
            ("until=2020-02", [1, 9999], false),
            ("speeds=blitz", [1, 9999], true),
            ("history=true", [2025, 2026], false),
            ("transpositions=true", [2025, 2026], false),
        ] {
            let parameters = Parameters::parse(query).unwrap();
            assert_eq!(reads_few_sums(&parameters, Some(years)), few, "{query}");
        }
    }
}

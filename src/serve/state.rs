//! What answers requests: the explorer, the books, the texts of games.

use std::{
    collections::BTreeMap,
    io,
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
    content::{Content, JSON, PGN, etag_of},
    hash,
    make::MadeOf,
    request,
    response_cache::{CacheKey, ResponseCache, response_cache},
};
use crate::{
    error::{At, Error, Result},
    evals::Evals,
    explorer::{About, Answer, Explorer, Filters},
    task,
};

/// How many requests read games' texts at once. In a packed file that takes long, and must not hold up counts.
const READERS: usize = 4;

/// A page of texts takes no further game once it has this size.
const LONG_PAGE: usize = 7 << 20;

/// How many games are read for the times of moves, the newest.
const TIMED: usize = 200;

/// The most years that are added up at once, with the months of the first and the last.
const FEW_YEARS: u16 = 100;

/// Whether texts are read on, which is asked again and again while much is read.
pub(super) type GoesOn<'a> = &'a dyn Fn() -> bool;

/// What answers requests.
pub(super) struct AppState {
    pub(super) explorer: Explorer,
    about: About,
    books: Vec<BookFile>,
    pub(super) repertoires: Vec<ServedRepertoire>,
    evals: Option<Evals>,
    /// Answers of the index alone, which stay true as long as the server runs.
    pub(super) cache: ResponseCache,
    /// Changes when an answer may change.
    identity: u64,
    /// They do anything but read games' texts.
    pub(super) counters: Workers,
    /// They read games' texts.
    pub(super) readers: Workers,
    /// It makes books, one at a time.
    pub(super) makers: Workers,
    /// The book or repertoire whose size was asked for last, for its download.
    pub(super) last_made: Mutex<Option<(MadeOf, Content)>>,
    /// The most games of files that books are made of.
    pub(super) book_games: u64,
    /// Closed when the names that are suggested are read.
    pub(super) names: watch::Receiver<()>,
}

/// The explorer's answer with what the page needs.
#[derive(Serialize)]
struct WithBoard {
    #[serde(flatten)]
    answer: Answer,
    polybook: Board,
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that may wait for files, each with a permit to use it. All are there from the start: none has to be found for
/// a request.
pub(super) struct Workers {
    /// Those that wait for a job, the one last used at the end. They do not share a lock with the others while they wait.
    idle: Arc<Mutex<Vec<Sender<Job>>>>,
    pub(super) permits: Arc<Semaphore>,
}

/// On which thread a content is made.
#[derive(Copy, Clone)]
pub(super) enum How {
    /// On that of the connection, which is sooner than to hand it on. Other requests wait meanwhile.
    AtOnce,
    ByWorkers,
}

/// Whether few sums answer a question about counts of some years. A history has one for each month, transpositions those
/// of the positions after all moves, and a date needs one for each year.
fn reads_few_sums(parameters: &Parameters, years: Option<[u16; 2]>) -> bool {
    let has = |name| parameters.text(name).is_some();
    let many_years = years.is_some_and(|[first, last]| last - first > FEW_YEARS);
    !has("history") && !has("transpositions") && !(many_years && (has("since") || has("until")))
}

/// What work makes. A panic ends this request alone.
pub(super) fn made(work: impl FnOnce() -> Result<Content, Refusal>) -> Result<Content, Refusal> {
    task::caught(|| Ok(work())).unwrap_or_else(|err| Err(err.into()))
}

impl Workers {
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

    /// Makes a content on a thread once one is free, unless the client has gone by then.
    ///
    /// # Errors
    ///
    /// Returns a refusal if no thread is free for ten seconds, and the refusal of `work`.
    pub(super) async fn content(
        &self,
        client: &Client,
        work: impl FnOnce() -> Result<Content, Refusal> + Send + 'static,
    ) -> Result<Content, Refusal> {
        let permit = in_time(Arc::clone(&self.permits).acquire_owned()).await?;
        self.content_with(permit, client, work).await
    }

    /// Makes a content on a thread, unless the client has gone. The permit is held until the content is made, also if
    /// the client goes meanwhile.
    ///
    /// # Errors
    ///
    /// Returns the refusal of `work`, and one if it panics.
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
            let made = made(work);
            task::lock(&idle).push(again);
            // An error: the client has gone.
            let _ = sender.send((made, permit));
        };
        let ended = || Refusal::unavailable("the server has ended");
        worker.send(Box::new(job)).map_err(|_| ended())?;
        let (made, permit) = receiver.await.map_err(|_| ended())?;
        // Others are answered while a large content waits for its turn.
        drop(permit);
        client.to_be_sent(made?).await
    }
}

impl AppState {
    /// A state for these games, books, repertoires and evaluations, with this many threads.
    ///
    /// # Errors
    ///
    /// A system that gives no threads.
    pub(super) fn new(
        explorer: Explorer,
        (books, repertoires, evals): (Vec<BookFile>, Vec<ServedRepertoire>, Option<Evals>),
        threads: usize,
        book_games: u64,
        names: watch::Receiver<()>,
    ) -> Result<AppState> {
        // The explorer goes through many games on the threads of rayon, which panics where it does not get them.
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
                env!("CARGO_PKG_VERSION"),
            )),
            about: explorer.about(),
            explorer,
            books,
            repertoires,
            evals,
            cache: response_cache(),
            counters: Workers::start(threads)?,
            readers: Workers::start(READERS)?,
            makers: Workers::start(1)?,
            last_made: Mutex::default(),
            book_games,
            names,
        })
    }

    /// The validator of an answer of the index: what was asked, of what, and in which form.
    pub(super) fn etag(&self, key: &CacheKey) -> HeaderValue {
        etag_of(&(self.identity, key))
    }

    /// How counts of a position are answered: at once if few sums are read, however many games these are of.
    pub(super) fn how(&self, parameters: &Parameters) -> How {
        let source = parameters.text("source");
        match self.explorer.lacks_games(source, "games") {
            Some(_) if reads_few_sums(parameters, self.about.years) => How::AtOnce,
            _ => How::ByWorkers,
        }
    }

    /// Counts of a position.
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
            && let Some(unknown) = self.explorer.unknown_name(&request.query.filters)?
        {
            polybook.name_unknown(unknown);
        }
        if let Some(evals) = &self.evals {
            polybook.evaluate(request.query.line.position(), evals)?;
        }
        if request.clocks {
            let times = self.explorer.times(&request.query, TIMED, goes_on)?;
            polybook.time(request.query.line.position(), &times);
        }
        // The board has it, and strict clients need not see it.
        for mv in &mut answer.moves {
            mv.reached = None;
        }
        let document = WithBoard { answer, polybook };
        let content = match route {
            Route::Player => Content::line(&document),
            _ => Content::json(&document),
        }?;
        match request.clocks {
            // The files of the games may change.
            true => Ok(content),
            false => self.kept(key, content),
        }
    }

    /// A page of the games of a position, as JSON.
    pub(super) fn games(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let request = self.request(key, Route::Games)?;
        let mut list = self.explorer.games(&request.query, &request.page)?;
        list.next = list
            .next
            .filter(|next| *next <= super::request::MOST_SKIPPED as usize);
        self.kept(key, Content::json(&list)?)
    }

    /// A page of the games of a position, as PGN. It ends early where the texts are long.
    pub(super) fn texts(&self, key: &CacheKey, goes_on: GoesOn<'_>) -> Result<Content, Refusal> {
        let request = self.request(key, Route::Games)?;
        let (_, numbers) = self.explorer.game_numbers(&request.query, &request.page)?;
        let mut text = Vec::new();
        for number in numbers {
            if text.len() >= LONG_PAGE {
                break;
            }
            text.extend(self.explorer.text_while(number?, goes_on)?);
            // Texts end where the next game began, or at the end of a file.
            while !text.is_empty() && !text.ends_with(b"\n\n") {
                text.push(b'\n');
            }
        }
        Ok(Content::pgn(text))
    }

    /// The text of a game, or its moves where JSON is asked for.
    pub(super) fn game(
        &self,
        key: &CacheKey,
        id: &str,
        goes_on: GoesOn<'_>,
    ) -> Result<Content, Refusal> {
        // The other routes of a game are Lichess's.
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

    /// What each book plays in a position.
    pub(super) fn book(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let request = Request::parse(Route::Book, &key.query)?;
        let books = self.books.iter();
        let books = books.map(|book| book.moves(&request.query.line));
        let books: Vec<_> = books.collect::<Result<_>>()?;
        Content::json(&BTreeMap::from([("books", books)]))
    }

    /// The games and books that are served.
    pub(super) fn about(&self, key: &CacheKey) -> Result<Content, Refusal> {
        Parameters::parse_only(&key.query, &[])?;
        let mut about = json!(self.about);
        about["variants"] = json!(self.explorer.variants(&Filters::default())?);
        about["books"] = self.books.iter().map(BookFile::name).collect();
        about["repertoires"] = json!(self.repertoires);
        self.kept(key, Content::json(&about)?)
    }

    /// Reads pasted moves or a pasted position.
    pub(super) fn read(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let parameters = Parameters::parse_only(&key.query, &["variant", "text"])?;
        let text = parameters.text("text").unwrap_or_default();
        Content::json(&Moves::of_text(request::variant(&parameters)?, text))
    }

    /// A request about a source that there is.
    pub(super) fn request(&self, key: &CacheKey, route: Route) -> Result<Request, Refusal> {
        let request = Request::parse(route, &key.query)?;
        let filters = &request.query.filters;
        let source = filters.source.as_deref();
        self.check_source(source)?;
        let needs = match route {
            Route::Games => self.explorer.lacks_games(source, "games"),
            Route::Make => self.explorer.needs_all_games(source, "books"),
            Route::Build => self.explorer.needs_all_games(source, "repertoires"),
            Route::Gaps => self.explorer.needs_all_games(source, "gaps"),
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

    /// Refuses a source that there is not.
    pub(super) fn check_source(&self, source: Option<&str>) -> Result<(), Refusal> {
        let known = &self.about.sources;
        match source {
            Some(source) if known.iter().all(|known| known.name != source) => {
                let problem = format!("source: no source is called \"{source}\"");
                Err(Refusal::bad(problem))
            }
            _ => Ok(()),
        }
    }

    /// Keeps an answer of the index for who asks next.
    pub(super) fn kept(&self, key: &CacheKey, content: Content) -> Result<Content, Refusal> {
        self.cache.insert(key.clone(), content.clone());
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sums_are_read_without_months_other_positions_and_centuries() {
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

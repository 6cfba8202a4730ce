//! Who answers the routes: the explorer, the books, the texts of games.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::http::HeaderValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    BookFile, Parameters, Refusal, Request, Route,
    answer::{AboutAll, Books, Content, OpenGame, WithBoard},
    asked::Asked,
    board::Board,
    client::Client,
    game::{moves_of_game, moves_of_text},
    given::Given,
    guard::Hosts,
    request,
    validator::etag_of,
};
use crate::{
    error::Error,
    explorer::{About, Explorer},
};

/// The media type of games.
pub(super) const PGN: &str = "application/x-chess-pgn";

/// How many requests read games' texts at once. In a packed file that takes long, and must not hold up counts.
pub(super) const READERS: usize = 4;

/// How many requests may read games' texts or wait to. Those beyond are refused, so that counts are still answered.
const MOST_WAITING: usize = 64;

/// How long the texts for a request may take to read.
const READING: Duration = Duration::from_secs(10);

/// Why a request for texts is not answered after that.
const TOO_SLOW: &str =
    "reading these games takes too long: ask for fewer of them, or serve an unpacked PGN";

const TOO_MANY: &str = "too many games are being read: ask again";

/// What answers requests.
pub(super) struct Answering {
    explorer: Explorer,
    sources: OnceLock<About>,
    books: Vec<BookFile>,
    pub(super) hosts: Hosts,
    /// Permits to work on anything else, one for each thread.
    counters: Arc<Semaphore>,
    /// Permits to read games' texts, and places to wait for one.
    readers: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Answers of the index alone, which stay true as long as the server runs.
    given: Given,
    /// Changes when an answer may change.
    identity: u64,
}

/// How long texts are read for an asker: as long as there is one, and ten seconds at most.
pub(super) struct Patience {
    end: Instant,
    asker: Option<Client>,
}

impl Patience {
    pub(super) fn new(asker: Option<Client>) -> Patience {
        Patience {
            end: Instant::now() + READING,
            asker,
        }
    }

    fn lasts(&self) -> bool {
        !self.asker.as_ref().is_some_and(Client::is_gone) && Instant::now() < self.end
    }
}

impl Answering {
    pub(super) fn new(
        explorer: Explorer,
        books: Vec<BookFile>,
        hosts: Hosts,
        threads: usize,
    ) -> Answering {
        let mut hasher = DefaultHasher::new();
        explorer.identity().hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Answering {
            explorer,
            sources: OnceLock::new(),
            books,
            hosts,
            counters: Arc::new(Semaphore::new(threads)),
            readers: Arc::new(Semaphore::new(READERS)),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            given: Given::default(),
            identity: hasher.finish(),
        }
    }

    /// The validator of an answer of the index: what was asked, of what, and in which form.
    pub(super) fn etag(&self, asked: &Asked) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        (self.identity, &asked.path, &asked.query, &asked.accept).hash(&mut hasher);
        etag_of(hasher.finish())
    }

    /// A permit to work on anything but games' texts, once those that asked before are served.
    pub(super) async fn permit_to_count(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.counters).acquire_owned().await;
        permit.expect("nobody closes the semaphore")
    }

    /// Permits to read games' texts, once those that asked before are served.
    ///
    /// # Errors
    ///
    /// Too many that wait.
    pub(super) async fn permit_to_read(&self) -> Result<impl Send + use<>, Refusal> {
        let place = Arc::clone(&self.waiting).try_acquire_owned();
        let place = place.map_err(|_| Refusal::unavailable(TOO_MANY))?;
        let permit = Arc::clone(&self.readers).acquire_owned().await;
        Ok((place, permit.map_err(|_| Refusal::unavailable(TOO_MANY))?))
    }

    /// An answer that was given lately to the same question.
    pub(super) fn given(&self, asked: &Asked) -> Option<Content> {
        self.given.get(asked)
    }

    /// Counts of a position.
    pub(super) fn position(&self, asked: &Asked, route: Route) -> Result<Content, Refusal> {
        let request = self.request(asked, route)?;
        let mut answer = self.explorer.answer(&request.query).map_err(failed)?;
        let polybook = Board::new(&request, &answer);
        // The board tells it, and strict clients need not see it.
        for mv in &mut answer.moves {
            mv.reached = None;
        }
        let document = WithBoard { answer, polybook };
        let content = match route {
            Route::Player => Content::line(&document),
            _ => Content::json(&document),
        }?;
        self.given.keep(asked, &content);
        Ok(content)
    }

    /// A page of the games of a position, as JSON.
    pub(super) fn games(&self, asked: &Asked) -> Result<Content, Refusal> {
        let request = self.request(asked, Route::Games)?;
        let list = self
            .explorer
            .games(&request.query, &request.page)
            .map_err(failed)?;
        let content = Content::json(&list)?;
        self.given.keep(asked, &content);
        Ok(content)
    }

    /// A page of the games of a position, as PGN.
    pub(super) fn texts(&self, asked: &Asked, patience: &Patience) -> Result<Content, Refusal> {
        let request = self.request(asked, Route::Games)?;
        let (_, numbers) = self
            .explorer
            .game_numbers(&request.query, &request.page)
            .map_err(failed)?;
        let mut text = Vec::new();
        for number in numbers {
            text.extend(self.text(number.map_err(failed)?, patience)?);
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
        asked: &Asked,
        id: &str,
        patience: &Patience,
    ) -> Result<Content, Refusal> {
        if asked.path.starts_with("/game/") {
            // The other routes of a game are Lichess's.
            Parameters::parse_only(&asked.query, &[])?;
        }
        let unknown = || Refusal::unknown("there is no game with this id");
        let number = self
            .explorer
            .find(id)
            .map_err(failed)?
            .ok_or_else(unknown)?;
        let text = self.text(number, patience)?;
        if !asked.accepts("application/json") {
            return Ok(Content::pgn(text));
        }
        Content::json(&OpenGame {
            info: self.explorer.game(number).map_err(failed)?,
            moves: moves_of_game(&text),
        })
    }

    fn text(&self, number: u64, patience: &Patience) -> Result<Vec<u8>, Refusal> {
        let lasts = || patience.lasts();
        self.explorer.text_while(number, &lasts).map_err(failed)
    }

    /// What each book plays in a position.
    pub(super) fn book(&self, asked: &Asked) -> Result<Content, Refusal> {
        let request = Request::parse(Route::Book, &asked.query)?;
        let line = &request.query.line;
        let books = self
            .books
            .iter()
            .map(|book| book.moves(line).map_err(failed));
        Content::json(&Books {
            books: books.collect::<Result<_, _>>()?,
        })
    }

    /// What is served.
    pub(super) fn about(&self, asked: &Asked) -> Result<Content, Refusal> {
        Parameters::parse_only(&asked.query, &[])?;
        Content::json(&AboutAll {
            about: self.sources(),
            books: self.books.iter().map(BookFile::name).collect(),
        })
    }

    /// Reads pasted moves or a pasted position.
    pub(super) fn read(&self, asked: &Asked) -> Result<Content, Refusal> {
        let parameters = Parameters::parse_only(&asked.query, &["variant", "text"])?;
        let text = parameters.text("text").unwrap_or_default();
        Content::json(&moves_of_text(request::variant(&parameters)?, text))
    }

    /// What is served. It is found out once: all games are looked at for their years.
    fn sources(&self) -> &About {
        self.sources.get_or_init(|| self.explorer.about())
    }

    /// A request about a source that there is.
    fn request(&self, asked: &Asked, route: Route) -> Result<Request, Refusal> {
        let request = Request::parse(route, &asked.query)?;
        if let Some(source) = &request.query.filters.source {
            let known = &self.sources().sources;
            if !known.iter().any(|known| known.name == *source) {
                return Err(Refusal::bad(format!(
                    "source: there is none called \"{source}\""
                )));
            }
        }
        Ok(request)
    }
}

/// An error of the data, which names files without the directories that they are in.
fn failed(err: Error) -> Refusal {
    let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
    let text = match err {
        Error::Io {
            path,
            doing,
            source,
        } => {
            // The system's own text has no path; that of a library may have one.
            let text = match source.raw_os_error() {
                Some(_) => source.to_string(),
                None => source.kind().to_string(),
            };
            let reason = text.split(" (os error ").next().unwrap_or(&text);
            format!("cannot {doing} {}: {reason}", name(&path))
        }
        Error::File { path, problem, .. } => format!("{}: {problem}", name(&path)),
        Error::Format { path, source } => format!("{}: {source}", name(&path)),
        Error::Interrupted => TOO_SLOW.to_owned(),
        _ => "the data cannot be read".to_owned(),
    };
    Refusal::unavailable(text)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_of_the_system_is_told_in_its_words_and_without_directories() {
        let told = |source: io::Error| {
            let path = "games/secret/idx".into();
            let doing = "open";
            let err = Error::Io {
                path,
                doing,
                source,
            };
            failed(err).text().to_owned()
        };
        let system = told(io::Error::from_raw_os_error(24));
        assert!(system.starts_with("cannot open idx: ") && !system.contains("os error"));
        #[cfg(unix)]
        assert_eq!(system, "cannot open idx: Too many open files");
        let other = told(io::Error::other("games/secret/idx is bad"));
        assert_eq!(other, "cannot open idx: other error");
    }
}

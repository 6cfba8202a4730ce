//! The routes of the API, and who answers them.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::SocketAddr,
    sync::Arc,
};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request as HttpRequest, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
    middleware::{self, Next},
    response::IntoResponse,
    routing::get,
};
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowHeaders, Any, CorsLayer},
};

use super::{
    BookFile, Parameters, Refusal, Request, Route, Server,
    answer::{AboutAll, Books, Content, OpenGame, WithBoard},
    board::Board,
    game::{moves_of_game, moves_of_text},
    guard::Hosts,
    page, request,
};
use crate::{error::Error, explorer::Explorer};

/// The media type of games.
const PGN: &str = "application/x-chess-pgn";

/// What answers requests.
pub(super) struct Answering {
    explorer: Explorer,
    books: Vec<BookFile>,
    hosts: Hosts,
    /// Changes when an answer may change.
    identity: u64,
}

type Shared = State<Arc<Answering>>;

impl Answering {
    pub(super) fn new(server: Server, listening: SocketAddr) -> Answering {
        let mut hasher = DefaultHasher::new();
        server.explorer.identity().hash(&mut hasher);
        for book in &server.books {
            book.identity().hash(&mut hasher);
        }
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Answering {
            explorer: server.explorer,
            books: server.books,
            hosts: Hosts::new(listening, server.hosts),
            identity: hasher.finish(),
        }
    }

    /// The validator of an answer: what was asked, of what, and in which form.
    fn etag(&self, asked: &Asked) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        (self.identity, &asked.path, &asked.query, &asked.accept).hash(&mut hasher);
        HeaderValue::try_from(format!("W/\"{:016x}\"", hasher.finish()))
            .expect("a number is a header's value")
    }

    /// Counts of a position.
    fn position(&self, asked: &Asked, route: Route) -> Result<Content, Refusal> {
        let request = self.request(asked, route)?;
        let mut answer = self.explorer.answer(&request.query).map_err(failed)?;
        let polybook = Board::new(&request, &answer);
        // The board tells it, and strict clients need not see it.
        for mv in &mut answer.moves {
            mv.reached = None;
        }
        let document = WithBoard { answer, polybook };
        match route {
            Route::Player => Content::line(&document),
            _ => Content::json(&document),
        }
    }

    /// A page of the games of a position.
    fn games(&self, asked: &Asked) -> Result<Content, Refusal> {
        let request = self.request(asked, Route::Games)?;
        let list = self
            .explorer
            .games(&request.query, &request.page)
            .map_err(failed)?;
        if !asked.accepts(PGN) {
            return Content::json(&list);
        }
        let mut text = Vec::new();
        for played in &list.games {
            text.extend(self.explorer.text(played.game.number).map_err(failed)?);
            // Texts end where the next game began, or at the end of a file.
            while !text.is_empty() && !text.ends_with(b"\n\n") {
                text.push(b'\n');
            }
        }
        Ok(Content::pgn(text))
    }

    /// The text of a game, or its moves where JSON is asked for.
    fn game(&self, asked: &Asked, id: &str) -> Result<Content, Refusal> {
        let unknown = || Refusal::unknown("there is no game with this id");
        let number = self
            .explorer
            .find(id)
            .map_err(failed)?
            .ok_or_else(unknown)?;
        let text = self.explorer.text(number).map_err(failed)?;
        if !asked.accepts("application/json") {
            return Ok(Content::pgn(text));
        }
        Content::json(&OpenGame {
            info: self.explorer.game(number).map_err(failed)?,
            moves: moves_of_game(&text),
        })
    }

    /// What each book plays in a position.
    fn book(&self, asked: &Asked) -> Result<Content, Refusal> {
        let request = Request::parse(Route::Book, &asked.query)?;
        let pos = request.query.line.position();
        let books = self
            .books
            .iter()
            .map(|book| book.moves(pos).map_err(failed));
        Content::json(&Books {
            books: books.collect::<Result<_, _>>()?,
        })
    }

    /// What is served.
    fn about(&self) -> Result<Content, Refusal> {
        Content::json(&AboutAll {
            about: self.explorer.about(),
            books: self.books.iter().map(BookFile::name).collect(),
        })
    }

    /// Moves or a position that somebody pasted.
    fn read(&self, asked: &Asked) -> Result<Content, Refusal> {
        let parameters = Parameters::parse(&asked.query)?;
        let text = parameters.text("text").unwrap_or_default();
        Content::json(&moves_of_text(request::variant(&parameters)?, text))
    }

    /// A request about a source that there is.
    fn request(&self, asked: &Asked, route: Route) -> Result<Request, Refusal> {
        let request = Request::parse(route, &asked.query)?;
        if let Some(source) = &request.query.filters.source {
            let about = self.explorer.about();
            if !about.sources.iter().any(|known| known.name == *source) {
                return Err(Refusal::bad(format!(
                    "source: there is none called \"{source}\""
                )));
            }
        }
        Ok(request)
    }
}

/// An error of the data.
fn failed(err: Error) -> Refusal {
    let mut text = err.to_string();
    let mut cause = std::error::Error::source(&err);
    while let Some(err) = cause {
        text = format!("{text}: {err}");
        cause = err.source();
    }
    Refusal::unavailable(text)
}

/// A request as the answers need it.
struct Asked {
    path: String,
    query: String,
    accept: String,
}

impl Asked {
    fn accepts(&self, media_type: &str) -> bool {
        self.accept.contains(media_type)
    }
}

/// All routes: the page and the API.
pub(super) fn routes(answering: Arc<Answering>) -> Router {
    let api = Router::new()
        .route("/lichess", get(lichess))
        .route("/masters", get(masters))
        .route("/master", get(masters))
        .route("/player", get(player))
        .route("/personal", get(player))
        .route("/masters/pgn/{id}", get(game))
        .route("/master/pgn/{id}", get(game))
        .route("/game/{id}", get(game))
        .route("/games", get(games))
        .route("/book", get(book))
        .route("/about", get(about))
        .route("/read", get(read))
        .method_not_allowed_fallback(async || Refusal::method())
        .with_state(Arc::clone(&answering))
        .layer(
            CorsLayer::new()
                .allow_origin(Any)
                .allow_methods([Method::GET, Method::HEAD])
                .allow_headers(AllowHeaders::mirror_request())
                .expose_headers([header::ETAG])
                .allow_private_network(true),
        );
    let guard = move |request: HttpRequest, next: Next| {
        let checked = answering.hosts.check(request.uri(), request.headers());
        async move {
            match checked {
                Ok(()) => next.run(request).await,
                Err(refusal) => refusal.into_response(),
            }
        }
    };
    Router::new()
        .merge(page::routes())
        .merge(api)
        .fallback(async || Refusal::unknown("there is nothing here; the page is at /"))
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn(guard))
}

async fn lichess(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, |answering, asked| {
        answering.position(asked, Route::Lichess)
    })
    .await
}

async fn masters(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, |answering, asked| {
        answering.position(asked, Route::Masters)
    })
    .await
}

async fn player(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, |answering, asked| {
        answering.position(asked, Route::Player)
    })
    .await
}

async fn games(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, Answering::games).await
}

async fn game(state: Shared, Path(id): Path<String>, request: HttpRequest) -> Response<Body> {
    answered(state, request, move |answering, asked| {
        answering.game(asked, &id)
    })
    .await
}

async fn book(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, Answering::book).await
}

async fn about(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, |answering, _| answering.about()).await
}

async fn read(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, Answering::read).await
}

/// Answers on a thread that may wait for files, unless the asker has the answer already.
async fn answered(
    State(answering): Shared,
    request: HttpRequest,
    answer: impl FnOnce(&Answering, &Asked) -> Result<Content, Refusal> + Send + 'static,
) -> Response<Body> {
    let headers = request.headers();
    let accept = headers
        .get(header::ACCEPT)
        .map(|value| value.to_str().unwrap_or_default());
    let asked = Asked {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: accept.unwrap_or_default().to_owned(),
    };
    let etag = answering.etag(&asked);
    if is_known(headers, &etag) {
        return not_modified(etag);
    }
    let answered = tokio::task::spawn_blocking(move || answer(&answering, &asked)).await;
    match answered {
        Ok(Ok(content)) => content.into_response(etag),
        Ok(Err(refusal)) => refusal.into_response(),
        // A panic, which would be our own mistake, costs its own request only.
        Err(_) => Refusal::unavailable("internal error; please report it with this address")
            .into_response(),
    }
}

/// Whether the asker has the answer with this validator.
pub(super) fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let etag = etag.to_str().unwrap_or_default().trim_start_matches("W/");
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == etag)
}

/// That the asker has the answer.
pub(super) fn not_modified(etag: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(header::ETAG, etag);
    response
}

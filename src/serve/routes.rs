//! Defines the routes of the server: those of Lichess's opening explorer API, further routes that the web page needs,
//! and the files of the page.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    extract::{Path, Request, State, rejection::PathRejection},
    handler::Handler,
    http::{HeaderValue, Method, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde::Serialize;
use tokio::time::timeout;
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowHeaders, AllowOrigin, AllowPrivateNetwork, CorsLayer},
};

use super::{
    JSON, PGN, Parameters, Request as ParsedRequest, Route,
    body::form_as_query,
    client::{READING, StopAtEnd, while_connected, while_wanted},
    content::{CacheKey, ResponseBody, not_modified},
    guard::Origin,
    make, openapi, page,
    positions::positions,
    practise, prepare, receive,
    refusal::Refusal,
    request::query_of,
    state::{AppState, Asker, ServerState, ShouldContinue, SuggestRequest, Thread, catch_panics},
    uploads,
};
use crate::{
    explore::explorer::{RatingScore, Suggestion},
    games::selection::{Duplicates, Selection},
};

/// The time for which a browser may cache the response to a preflight request, before it must send another one.
/// Chromium limits this time to two hours.
const PREFLIGHT_AGE: Duration = Duration::from_secs(2 * 60 * 60);

/// The error message if applying the edits in a request takes more time than [`READING`] allows.
const TOO_LONG: &str = "reading the repertoire again for these edits takes too long: save the edited repertoire, and \
                        start the server with it";

/// Returns all routes of the server: those of the web page and those of the API. `origins` are the origins whose pages
/// may read the responses of the API.
pub(super) fn routes(state: Arc<AppState>, origins: &[Origin]) -> Router {
    let api = with_routes(api());
    // Unknown addresses need CORS headers too, so that a page can read the error.
    let api = api
        .fallback(async |request: Request| unknown_address(&CacheKey::of(&request)))
        .with_state(Arc::clone(&state));
    with_page(api, origins)
        .merge(with_routes(of_own_page()).with_state(state))
        .layer(CompressionLayer::new())
}

/// A path of the API, with the functions that answer requests to it.
type PathAnswers = (&'static str, MethodRouter<Arc<AppState>>);

fn with_routes(routes: Vec<PathAnswers>) -> Router<Arc<AppState>> {
    let routes = routes.into_iter();
    routes
        .fold(Router::new(), |api, (path, answers)| {
            api.route(path, answers)
        })
        .method_not_allowed_fallback(async || Refusal::method())
}

/// Returns the routes of the API.
pub(super) fn api() -> Vec<PathAnswers> {
    let position = |route| {
        get(
            async move |state: ServerState, client: Asker, request: Request| {
                position(state, client, request, route).await
            },
        )
    };
    vec![
        ("/lichess", position(Route::Lichess)),
        ("/masters", position(Route::Masters)),
        ("/master", position(Route::Masters)),
        ("/player", position(Route::Player)),
        ("/personal", position(Route::Player)),
        ("/masters/pgn/{id}", get(game)),
        ("/master/pgn/{id}", get(game)),
        ("/game/{id}", get(game)),
        ("/games", get(games)),
        ("/positions", post(positions)),
        ("/book", get(book)),
        ("/about", index(|app, key, _| app.about(key))),
        ("/read", index(|app, key, _| app.read(key))),
        ("/suggest", get(suggest)),
        ("/book.bin", make::route(make::BOOK)),
        ("/book.pgn", make::route(make::BOOK)),
        ("/repertoire.bin", make::route(make::REPERTOIRE)),
        ("/repertoire.pgn", or_posted(make::route(make::REPERTOIRE))),
        ("/gaps", or_posted(make::route(make::GAPS))),
        ("/facets", index(facets)),
        ("/scores", index(scores)),
        ("/openings", index(openings)),
        ("/prepare", or_posted(index(prepare::prepare))),
        ("/repertoire", or_posted(index(make::report_repertoires))),
    ]
}

/// Returns the routes that only the server's own page may use, because requests to them store something. Their
/// responses contain no CORS headers for pages of other origins.
pub(super) fn of_own_page() -> Vec<PathAnswers> {
    let list = async |State(app): ServerState,
                      Extension(client): Asker,
                      request: Request|
           -> Result<Response, Refusal> {
        let key = CacheKey::of(&request);
        let state = Arc::clone(&app);
        let content = app
            .counters
            .content(&client, move || receive::list(&state, &key))
            .await?;
        Ok(content.answer_from_files(request.headers()))
    };
    vec![
        ("/practise", post(practise::answer)),
        (uploads::PATH, get(list).post(receive::receive)),
    ]
}

/// Returns the response with status 404 for a request to an unknown address. A browser gets a page with a link, and
/// other clients get a line of text.
fn unknown_address(request: &CacheKey) -> Response {
    if request.prefers("text/html", "text/plain") && !request.accepts_json() {
        let page = "<!doctype html><html lang=en><meta name=color-scheme content=\"light dark\"><title>polybook</title>\
                    <p>This address does not exist. <a href=/>Open the explorer</a>\n";
        return (StatusCode::NOT_FOUND, Html(page)).into_response();
    }
    Refusal::unknown("this address does not exist: the page of the explorer is at /")
        .into_response()
}

/// Combines the routes `api` with the description of the API and the files of the web page. Pages of `origins` may read
/// the responses of all these routes.
pub(super) fn with_page(api: Router, origins: &[Origin]) -> Router {
    let described = Router::new()
        .route(openapi::PATH, get(openapi::answer))
        .method_not_allowed_fallback(async || Refusal::method());
    let all = Router::new()
        .merge(page::routes())
        .merge(described)
        .merge(api);
    if origins.is_empty() {
        all
    } else {
        all.layer(cors(origins))
    }
}

/// Returns a layer that adds CORS headers to responses. With these headers, browsers allow not only the server's own
/// page but also pages of `origins` to read the responses.
fn cors(origins: &[Origin]) -> CorsLayer {
    let allowed = origins.to_vec();
    let is_allowed =
        move |origin: &HeaderValue, _: &_| allowed.iter().any(|allowed| allowed.allows(origin));
    let origins = if origins.iter().any(|origin| origin.0 == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().map(|origin| origin.0.clone()))
    };
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(PREFLIGHT_AGE)
        .expose_headers([header::ETAG, header::RETRY_AFTER])
        .vary([
            header::ORIGIN,
            header::ACCESS_CONTROL_REQUEST_METHOD,
            header::ACCESS_CONTROL_REQUEST_HEADERS,
        ])
        .allow_private_network(AllowPrivateNetwork::predicate(is_allowed))
}

/// A function that creates a response from the data of [`AppState`]. Its last argument is a flag that is set to cancel
/// the work, because the client has disconnected or the time limit for reading games is exceeded.
trait IndexAnswer:
    FnOnce(&AppState, &CacheKey, &Arc<AtomicBool>) -> Result<ResponseBody, Refusal> + Send + 'static
{
}

impl<T> IndexAnswer for T where
    T: FnOnce(&AppState, &CacheKey, &Arc<AtomicBool>) -> Result<ResponseBody, Refusal>
        + Send
        + 'static
{
}

/// Creates a route for `GET` requests whose responses `answer` creates.
fn index(answer: impl IndexAnswer + Copy + Sync) -> MethodRouter<Arc<AppState>> {
    get(
        async move |state: ServerState, client: Asker, request: Request| {
            of_index(state, client, request, answer).await
        },
    )
}

/// Extends the route `getting` to accept the method `POST`. Such a request may contain some of its parameters as a form
/// in its body. It is answered like a `GET` request with all parameters in its query string.
fn or_posted(getting: MethodRouter<Arc<AppState>>) -> MethodRouter<Arc<AppState>> {
    let answered = getting.clone();
    getting.post(async move |State(app): ServerState, request: Request| {
        match form_as_query(request) {
            Ok(request) => answered.call(request, app).await,
            Err(refusal) => refusal.into_response(),
        }
    })
}

/// Answers `/suggest` with names of players, events or openings. If the names have not been read from the index yet,
/// waits for them without blocking a thread.
async fn suggest(state: ServerState, client: Asker, request: Request) -> Result<Response, Refusal> {
    let mut names = state.names.clone();
    // An error means that reading the names has ended, with or without success. The response says which.
    let read = timeout(READING, names.changed()).await;
    let _ = read.map_err(|_| Refusal::too_many())?;
    of_index(state, client, request, |app, key, _| suggestions(app, key)).await
}

/// Answers a request for a position with the results of each move. If the request asks for mean thinking times,
/// calculates them from the PGN text of the newest games.
async fn position(
    state: ServerState,
    client: Asker,
    request: Request,
    route: Route,
) -> Result<Response, Refusal> {
    let parameters = Parameters::parse(query_of(&request))?;
    if parameters.flag("clocks")? == Some(true) {
        let answer = move |app: &AppState, key: &CacheKey, should_continue: ShouldContinue<'_>| {
            app.position(key, route, should_continue)
        };
        of_texts(state, client, request, answer).await
    } else {
        let thread = state.thread_for(&parameters);
        let answer = move |app: &AppState, key: &CacheKey, stop: &Arc<AtomicBool>| {
            app.position(key, route, &|| !stop.load(Ordering::Relaxed))
        };
        answered(state, client, request, thread, answer).await
    }
}

/// Answers `/games` with a page of a list of games, as PGN if the client prefers this format, otherwise as JSON.
async fn games(state: ServerState, client: Asker, request: Request) -> Result<Response, Refusal> {
    if CacheKey::of(&request).prefers(PGN, JSON) {
        of_texts(state, client, request, AppState::texts).await
    } else {
        of_index(state, client, request, AppState::games).await
    }
}

/// Answers a request for a game: with its moves as JSON if the client prefers JSON, otherwise with its text as PGN.
async fn game(
    state: ServerState,
    client: Asker,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    // An error means that the id is not valid UTF-8.
    let Path(id) = id.map_err(|_| Refusal::no_such_game())?;
    let answer = move |app: &AppState, key: &CacheKey, should_continue: ShouldContinue<'_>| {
        app.game(key, &id, should_continue)
    };
    of_texts(state, client, request, answer).await
}

/// Answers `/book` with the moves of the server's books in a position.
async fn book(
    State(app): ServerState,
    Extension(client): Asker,
    request: Request,
) -> Result<Response, Refusal> {
    let key = CacheKey::of(&request);
    let state = Arc::clone(&app);
    let content = app
        .counters
        .content(&client, move || state.book(&key))
        .await?;
    Ok(content.answer_from_files(request.headers()))
}

/// Answers a request with the response that `answer` creates. `answer` is called on a worker thread. If the request
/// contains edits of a repertoire, it is called on one of the threads for reading PGN files instead, because the file
/// of the repertoire may have to be read again.
async fn of_index(
    state: ServerState,
    client: Asker,
    request: Request,
    answer: impl IndexAnswer,
) -> Result<Response, Refusal> {
    let mut parameters = form_urlencoded::parse(query_of(&request).as_bytes());
    let thread = if parameters.any(|(name, edits)| name == "edits" && !edits.is_empty()) {
        Thread::Reader
    } else {
        Thread::Worker
    };
    answered(state, client, request, thread, answer).await
}

/// Answers a request with the response that `answer` creates on the kind of thread that `thread` names. `answer` is not
/// called if the client's cached response is still valid, or if the server's cache contains the response.
async fn answered(
    State(app): ServerState,
    Extension(client): Asker,
    request: Request,
    thread: Thread,
    answer: impl IndexAnswer,
) -> Result<Response, Refusal> {
    let key = CacheKey::of(&request);
    let etag = app.etag(&key);
    if let Some(response) = not_modified(request.headers(), &etag) {
        return Ok(response);
    }
    let content = match app.cache.get(&key) {
        Some(content) => client.to_be_sent(content).await?,
        None => {
            app.search_first(&client, &key).await?;
            let stop = StopAtEnd::default();
            let (state, flag) = (Arc::clone(&app), Arc::clone(&stop.0));
            let work = move || answer(&state, &key, &flag);
            match thread {
                Thread::OfConnection => client.to_be_sent(catch_panics(work)?).await?,
                Thread::Worker => {
                    while_connected(&client, app.counters.content(&client, work)).await??
                }
                Thread::Reader => {
                    let content = app.readers.content(&client, work);
                    let too_long = || Refusal::unavailable(TOO_LONG);
                    while_wanted(&client, READING, content, too_long).await??
                }
            }
        }
    };
    Ok(content.into_response(etag))
}

/// Answers a request that requires reading the PGN text of games, by calling `answer` on one of the few threads that
/// read such text.
///
/// The last argument of `answer` is a function that says whether to continue. When it returns `false`, because the
/// client has disconnected or the time limit is exceeded, `answer` must stop.
async fn of_texts(
    State(app): ServerState,
    Extension(client): Asker,
    request: Request,
    answer: impl FnOnce(&AppState, &CacheKey, ShouldContinue<'_>) -> Result<ResponseBody, Refusal>
    + Send
    + 'static,
) -> Result<Response, Refusal> {
    let (key, state) = (CacheKey::of(&request), Arc::clone(&app));
    app.search_first(&client, &key).await?;
    let reader = client.clone();
    let work = move || {
        let begun = Instant::now();
        let should_continue = || !reader.is_gone() && begun.elapsed() < READING;
        answer(&state, &key, &should_continue)
    };
    let content = app.readers.content(&client, work).await?;
    Ok(content.answer_from_files(request.headers()))
}

/// A suggested player. The field `met` is the number of the player's games against the players whom the parameter
/// `with` names.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Suggestion"))]
pub(super) struct CountedSuggestion {
    #[serde(flatten)]
    suggestion: Suggestion,
    /// `None` if the request has no parameter `with`.
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<u64>,
}

/// The results of a position by rating group.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Scores {
    /// The rating groups that have games.
    scores: Vec<RatingScore>,
}

/// Answers `/suggest`: returns the names of players, events or openings that best match what the user has typed. `key`
/// contains the query string with the parameters `field`, `text`, `limit`, `source`, `duplicates` and `with`.
fn suggestions(app: &AppState, key: &CacheKey) -> Result<ResponseBody, Refusal> {
    let SuggestRequest {
        field,
        text,
        limit,
        source,
        counts_once,
        with,
    } = app.suggest_request(key)?;
    let source = source.as_deref();
    let found = app.explorer.suggest(field, &text, limit, source)?;
    if !counts_once && with.is_empty() {
        return app.cached(key, ResponseBody::json(&found)?);
    }
    let filters = Selection {
        player: found.iter().map(|found| found.name.clone()).collect(),
        exact: true,
        source: source.map(str::to_owned),
        duplicates: counts_once.then_some(Duplicates::Once),
        ..Selection::default()
    };
    let games = if counts_once {
        app.explorer.count_games_of_players(&filters)?
    } else {
        found.iter().map(|found| found.games).collect()
    };
    let met = if with.is_empty() {
        vec![None; found.len()]
    } else {
        let filters = Selection {
            opponent: with,
            ..filters
        };
        let met = app.explorer.count_games_of_players(&filters)?;
        met.into_iter().map(Some).collect()
    };
    let numbers = games.into_iter().zip(met);
    let counted = found.into_iter().zip(numbers);
    let counted = counted.map(|(suggestion, (games, met))| CountedSuggestion {
        suggestion: Suggestion {
            games,
            ..suggestion
        },
        met,
    });
    app.cached(key, ResponseBody::json(&counted.collect::<Vec<_>>())?)
}

/// Answers `/facets`: returns, for each value of each filter, the number of games that would pass if the filter had
/// only this value and all other filters were unchanged. `key` contains the path and the query string of the request.
///
/// If no game passes the filters because a name in them occurs in no game, the response also contains this name.
/// Setting `stop` cancels the search for such a name.
fn facets(app: &AppState, key: &CacheKey, stop: &Arc<AtomicBool>) -> Result<ResponseBody, Refusal> {
    let query = app.request(key, Route::Facets)?.query;
    let facets = app.explorer.facets(&query.line, &query.filters)?;
    let games = app.answered_games(&query, facets.games > 0, stop)?;
    app.answered(key, games, &facets, stop)
}

/// Answers `/scores`: returns the results of the games that reach a position, separately for each rating group. `key`
/// contains the path and the query string of the request.
///
/// If no game passes the filters because a name in them occurs in no game, the response also contains this name.
/// Setting `stop` cancels the search for such a name.
fn scores(app: &AppState, key: &CacheKey, stop: &Arc<AtomicBool>) -> Result<ResponseBody, Refusal> {
    let query = app.request(key, Route::Scores)?.query;
    let scores = app.explorer.scores(&query.line, &query.filters)?;
    let games = app.answered_games(&query, !scores.is_empty(), stop)?;
    app.answered(key, games, &Scores { scores }, stop)
}

/// Answers `/openings`: returns the openings of the games that reach a position, as JSON. `key` contains the path and
/// the query string of the request.
///
/// If no game passes the filters because a name in them occurs in no game, the response also contains this name.
/// Setting `stop` cancels the search for such a name.
fn openings(
    app: &AppState,
    key: &CacheKey,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let ParsedRequest {
        query, parameters, ..
    } = app.request(key, Route::Openings)?;
    let fold = parameters.choice("fold", "variation", |name| {
        (name == "variation").then_some(())
    })?;
    let openings = match fold {
        None => app.explorer.openings(&query.line, &query.filters)?,
        Some(()) => app
            .explorer
            .openings_by_variation(&query.line, &query.filters)?,
    };
    let games = app.answered_games(&query, openings.results.games() > 0, stop)?;
    app.answered(key, games, &openings, stop)
}

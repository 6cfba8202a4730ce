//! The routes of the API and of the page.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderValue, Method, header},
    response::Response,
    routing::{MethodRouter, get},
};
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowHeaders, AllowOrigin, AllowPrivateNetwork, CorsLayer},
};

use super::{
    Parameters, Refusal, Route,
    client::{Client, in_time},
    content::{Content, JSON, PGN, not_modified},
    guard::Origin,
    make, page,
    response_cache::CacheKey,
    state::{AppState, GoesOn, How, made},
};

/// How long the texts for a request may take to read.
const READING: Duration = Duration::from_secs(10);

type Server = State<Arc<AppState>>;
type Asker = Extension<Client>;

/// Returns all routes: those of the page, and those of the API, whose answers pages of `origins` may read.
pub(super) fn routes(state: Arc<AppState>, origins: &[Origin]) -> Router {
    let cors = (!origins.is_empty()).then(|| cors(origins));
    let of_position = [
        ("/lichess", Route::Lichess),
        ("/masters", Route::Masters),
        ("/master", Route::Masters),
        ("/player", Route::Player),
        ("/personal", Route::Player),
    ];
    let api = of_position
        .into_iter()
        .fold(Router::new(), |api, (path, route)| {
            let handler = async move |state: Server, client: Asker, request: Request| {
                position(state, client, request, route).await
            };
            api.route(path, get(handler))
        });
    let api = api
        .route("/masters/pgn/{id}", get(game))
        .route("/master/pgn/{id}", get(game))
        .route("/game/{id}", get(game))
        .route("/games", get(games))
        .route("/book", get(book))
        .route("/about", index(AppState::about))
        .route("/read", index(AppState::read))
        .route("/suggest", get(suggest))
        .route("/book.bin", make::route(make::BOOK))
        .route("/book.pgn", make::route(make::BOOK))
        .route("/repertoire.bin", make::route(make::REPERTOIRE))
        .route("/repertoire.pgn", make::route(make::REPERTOIRE))
        .route("/gaps", make::route(make::GAPS))
        .route("/facets", index(AppState::facets))
        .route("/scores", index(AppState::scores))
        .route("/repertoire", index(AppState::repertoires))
        .method_not_allowed_fallback(async || Refusal::method())
        .with_state(state);
    let api = match cors {
        None => api,
        Some(cors) => api.layer(cors),
    };
    Router::new()
        .merge(page::routes())
        .merge(api)
        .fallback(async || Refusal::unknown("there is nothing here; the page is at /"))
        .layer(CompressionLayer::new())
}

/// Allows pages of some origins to read the answers. Without it browsers allow only the server's own page.
fn cors(origins: &[Origin]) -> CorsLayer {
    let allowed = origins.to_vec();
    let is_allowed =
        move |origin: &HeaderValue, _: &_| allowed.iter().any(|allowed| allowed.allows(origin));
    let origins = match origins.iter().any(|origin| origin.0 == "*") {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(origins.iter().map(|origin| origin.0.clone())),
    };
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::HEAD])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([header::ETAG])
        .vary([
            header::ORIGIN,
            header::ACCESS_CONTROL_REQUEST_METHOD,
            header::ACCESS_CONTROL_REQUEST_HEADERS,
        ])
        .allow_private_network(AllowPrivateNetwork::predicate(is_allowed))
}

/// A route that is answered from the index.
fn index(
    answer: impl Fn(&AppState, &CacheKey) -> Result<Content, Refusal> + Copy + Send + Sync + 'static,
) -> MethodRouter<Arc<AppState>> {
    get(
        async move |state: Server, client: Asker, request: Request| {
            of_index(state, client, request, answer).await
        },
    )
}

/// Names, once they are read. No thread waits for that.
async fn suggest(state: Server, client: Asker, request: Request) -> Result<Response, Refusal> {
    let mut names = state.names.clone();
    // An error inside: they are read, or could not be, which the answer says.
    let _ = in_time(async { Ok(names.changed().await) }).await?;
    of_index(state, client, request, AppState::suggest).await
}

/// Counts, from the texts of games too if clocks are asked for.
async fn position(
    state: Server,
    client: Asker,
    request: Request,
    route: Route,
) -> Result<Response, Refusal> {
    let parameters = Parameters::parse(request.uri().query().unwrap_or_default())?;
    if parameters.flag("clocks")? == Some(true) {
        let answer = move |app: &AppState, key: &CacheKey, goes_on: GoesOn<'_>| {
            app.position(key, route, goes_on)
        };
        of_texts(state, client, request, answer).await
    } else {
        let how = state.how(&parameters);
        let answer = move |app: &AppState, key: &CacheKey| app.position(key, route, &|| true);
        answered(state, client, request, how, answer).await
    }
}

async fn games(state: Server, client: Asker, request: Request) -> Result<Response, Refusal> {
    if CacheKey::of(&request).prefers(PGN, JSON) {
        of_texts(state, client, request, AppState::texts).await
    } else {
        of_index(state, client, request, AppState::games).await
    }
}

async fn game(
    state: Server,
    client: Asker,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    // An id that is not UTF-8.
    let Path(id) = id.map_err(|_| Refusal::no_such_game())?;
    let answer =
        move |app: &AppState, key: &CacheKey, goes_on: GoesOn<'_>| app.game(key, &id, goes_on);
    of_texts(state, client, request, answer).await
}

async fn book(
    State(app): Server,
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

async fn of_index(
    state: Server,
    client: Asker,
    request: Request,
    answer: impl FnOnce(&AppState, &CacheKey) -> Result<Content, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    answered(state, client, request, How::ByWorkers, answer).await
}

/// Answers from the index, unless the asker has the answer already or it was given lately.
async fn answered(
    State(app): Server,
    Extension(client): Asker,
    request: Request,
    how: How,
    answer: impl FnOnce(&AppState, &CacheKey) -> Result<Content, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    let key = CacheKey::of(&request);
    let etag = app.etag(&key);
    if let Some(response) = not_modified(request.headers(), &etag) {
        return Ok(response);
    }
    let content = match app.cache.get(&key) {
        Some(content) => client.to_be_sent(content).await?,
        None => {
            let state = Arc::clone(&app);
            let work = move || answer(&state, &key);
            match how {
                How::AtOnce => client.to_be_sent(made(work)?).await?,
                How::ByWorkers => app.counters.content(&client, work).await?,
            }
        }
    };
    Ok(content.into_response(etag))
}

/// Answers from the texts of games. Few are read at a time.
async fn of_texts(
    State(app): Server,
    Extension(client): Asker,
    request: Request,
    answer: impl FnOnce(&AppState, &CacheKey, GoesOn<'_>) -> Result<Content, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    let _place = client.place_for_texts().await?;
    let (key, state) = (CacheKey::of(&request), Arc::clone(&app));
    let reader = client.clone();
    let work = move || {
        let begun = Instant::now();
        let goes_on = || !reader.is_gone() && begun.elapsed() < READING;
        answer(&state, &key, &goes_on)
    };
    let content = app.readers.content(&client, work).await?;
    Ok(content.answer_from_files(request.headers()))
}

//! The routes of the API and of the page.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, Request as HttpRequest, State},
    http::{HeaderMap, HeaderValue, Method, Response, header},
    middleware::{self, Next},
    response::IntoResponse,
    routing::get,
};
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowHeaders, AllowOrigin, AllowPrivateNetwork, CorsLayer},
};

use super::{
    Refusal, Route,
    answer::Content,
    answering::{Answering, PGN, Patience},
    asked::Asked,
    client::Client,
    origin::Origin,
    page,
    validator::{is_known, not_modified},
};

type Shared = State<Arc<Answering>>;

/// All routes: the page, and the API, which pages of these origins may read too.
pub(super) fn routes(answering: Arc<Answering>, origins: &[Origin]) -> Router {
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
        .route("/read", get(pasted))
        .method_not_allowed_fallback(async || Refusal::method())
        .with_state(Arc::clone(&answering));
    let api = match origins {
        [] => api,
        origins => api.layer(cors(origins)),
    };
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

/// Tells browsers that pages of some origins may read the answers. Without it they let no page read them but our own.
fn cors(origins: &[Origin]) -> CorsLayer {
    let allowed = origins.to_vec();
    let is_allowed = move |origin: &HeaderValue, _: &_| {
        let mut allowed = allowed.iter();
        allowed.any(|allowed| allowed.is_any() || allowed.value() == origin)
    };
    let origins = match origins.iter().any(Origin::is_any) {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(origins.iter().map(|origin| origin.value().clone())),
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
    if !accept(request.headers()).contains(PGN) {
        return answered(state, request, Answering::games).await;
    }
    texts(state, request, Answering::texts).await
}

async fn game(state: Shared, Path(id): Path<String>, request: HttpRequest) -> Response<Body> {
    texts(state, request, move |answering, asked, patience| {
        answering.game(asked, &id, patience)
    })
    .await
}

async fn book(state: Shared, request: HttpRequest) -> Response<Body> {
    let permit = state.permit_to_count().await;
    of_files(state, request, permit, Answering::book).await
}

async fn about(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, Answering::about).await
}

async fn pasted(state: Shared, request: HttpRequest) -> Response<Body> {
    answered(state, request, Answering::read).await
}

/// Answers from the index, unless the asker has the answer already or it was given lately.
async fn answered(
    State(answering): Shared,
    request: HttpRequest,
    answer: impl FnOnce(&Answering, &Asked) -> Result<Content, Refusal> + Send + 'static,
) -> Response<Body> {
    let asked = asked(&request);
    let etag = answering.etag(&asked);
    if is_known(request.headers(), &etag) {
        return not_modified(etag);
    }
    if let Some(content) = answering.given(&asked) {
        return content.into_response(etag);
    }
    let permit = answering.permit_to_count().await;
    let client = client(&request);
    match begun(permit, client, move || answer(&answering, &asked)).await {
        Ok(content) => content.into_response(etag),
        Err(refusal) => refusal.into_response(),
    }
}

/// Answers from the texts of games, of which few are read at a time, and as long as there is patience.
async fn texts(
    state: Shared,
    request: HttpRequest,
    answer: impl FnOnce(&Answering, &Asked, &Patience) -> Result<Content, Refusal> + Send + 'static,
) -> Response<Body> {
    let permit = match state.permit_to_read().await {
        Ok(permit) => permit,
        Err(refusal) => return refusal.into_response(),
    };
    let patience = Patience::new(client(&request));
    of_files(state, request, permit, move |answering, asked| {
        answer(answering, asked, &patience)
    })
    .await
}

/// Answers from files that may change at any time, so that only the answer itself shows whether the asker has it.
async fn of_files(
    State(answering): Shared,
    request: HttpRequest,
    permit: impl Send + 'static,
    answer: impl FnOnce(&Answering, &Asked) -> Result<Content, Refusal> + Send + 'static,
) -> Response<Body> {
    let asked = asked(&request);
    let client = client(&request);
    match begun(permit, client, move || answer(&answering, &asked)).await {
        Ok(content) => {
            let etag = content.etag();
            match is_known(request.headers(), &etag) {
                true => not_modified(etag),
                false => content.into_response(etag),
            }
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Does work on a thread that may wait for files, unless its client has gone while it waited for a permit. There is a
/// thread for each permit, so work begins at once. It keeps its permit until it is done, whoever goes.
async fn begun(
    permit: impl Send + 'static,
    client: Option<Client>,
    work: impl FnOnce() -> Result<Content, Refusal> + Send + 'static,
) -> Result<Content, Refusal> {
    if client.is_some_and(|client| client.is_gone()) {
        return Err(Refusal::unavailable("the client is gone"));
    }
    let work = move || {
        let _permit = permit;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    // A panic ends this request alone.
    let panicked = "internal error; please report it with this address";
    done.unwrap_or_else(|_| Err(Refusal::unavailable(panicked)))
}

/// The client of a request.
fn client(request: &HttpRequest) -> Option<Client> {
    request.extensions().get().cloned()
}

fn asked(request: &HttpRequest) -> Asked {
    Asked {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: accept(request.headers()).to_owned(),
    }
}

/// The media types that the asker would like.
fn accept(headers: &HeaderMap) -> &str {
    let value = headers.get(header::ACCEPT);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

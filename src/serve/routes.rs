//! The routes of the API and of the page.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, Request as HttpRequest, State},
    http::{HeaderMap, Method, Response, header},
    middleware::{self, Next},
    response::IntoResponse,
    routing::get,
};
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowHeaders, Any, CorsLayer},
};

use super::{
    Refusal, Route,
    answer::Content,
    answering::{Answering, PGN},
    asked::Asked,
    page,
    validator::{is_known, not_modified},
};

type Shared = State<Arc<Answering>>;

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
    if !accept(request.headers()).contains(PGN) {
        return answered(state, request, Answering::games).await;
    }
    reading(state, request, Answering::games).await
}

async fn game(state: Shared, Path(id): Path<String>, request: HttpRequest) -> Response<Body> {
    reading(state, request, move |answering, asked| {
        answering.game(asked, &id)
    })
    .await
}

/// Answers what reads games' texts, of which few are read at a time.
async fn reading(
    state: Shared,
    request: HttpRequest,
    answer: impl FnOnce(&Answering, &Asked) -> Result<Content, Refusal> + Send + 'static,
) -> Response<Body> {
    let answering = Arc::clone(&state);
    let permit = match answering.permit_to_read().await {
        Ok(permit) => permit,
        Err(refusal) => return refusal.into_response(),
    };
    answered(state, request, move |answering, asked| {
        // Given back when the texts are read, also where the asker has gone meanwhile.
        let _permit = permit;
        answer(answering, asked)
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

/// Answers on a thread that may wait for files, unless the asker has the answer already or it was given lately.
async fn answered(
    State(answering): Shared,
    request: HttpRequest,
    answer: impl FnOnce(&Answering, &Asked) -> Result<Content, Refusal> + Send + 'static,
) -> Response<Body> {
    let headers = request.headers();
    let asked = Asked {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: accept(headers).to_owned(),
    };
    let etag = answering.etag(&asked);
    if is_known(headers, &etag) {
        return not_modified(etag);
    }
    if let Some(content) = answering.given(&asked) {
        return content.into_response(etag);
    }
    let answered = tokio::task::spawn_blocking(move || answer(&answering, &asked)).await;
    match answered {
        Ok(Ok(content)) => content.into_response(etag),
        Ok(Err(refusal)) => refusal.into_response(),
        // A panic ends this request alone.
        Err(_) => Refusal::unavailable("internal error; please report it with this address")
            .into_response(),
    }
}

/// The media types that the asker would like.
fn accept(headers: &HeaderMap) -> &str {
    let value = headers.get(header::ACCEPT);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

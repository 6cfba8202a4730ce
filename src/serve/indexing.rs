//! What is answered while the index of the games is made: the page, how far the index is, and to all else to ask again.

use std::{net::TcpListener, sync::Arc};

use axum::{
    Router,
    http::{HeaderName, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

use super::{
    Refusal, page,
    server::{Listening, listening},
};
use crate::error::Result;

/// After how many seconds to ask again.
const RETRY: [(HeaderName, &str); 1] = [(header::RETRY_AFTER, "1")];

/// How far an index is: the bytes of games that were read, and how many there are.
pub type HowFar = Arc<dyn Fn() -> (u64, Option<u64>) + Send + Sync>;

/// A server of games that are being indexed. When the index is made, end it and serve the games at the same listener.
pub struct Indexing {
    /// The names of the sources.
    pub sources: Vec<String>,
    /// How far the index is.
    pub how_far: HowFar,
    /// As of [`Server::hosts`](super::Server::hosts).
    pub hosts: Vec<String>,
}

impl std::fmt::Debug for Indexing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexing").finish_non_exhaustive()
    }
}

impl Indexing {
    /// Takes a listener that is bound already.
    ///
    /// # Errors
    ///
    /// A listener that the system does not know, and a system that gives no threads.
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let (sources, how_far) = (self.sources, self.how_far);
        let about = move || {
            let about = about(&sources, how_far());
            let json = [(header::CONTENT_TYPE, "application/json")];
            std::future::ready((json, about.to_string()))
        };
        let routes = Router::new()
            .merge(page::routes())
            .route("/about", get(about))
            .fallback(async || not_yet());
        listening(listener, (self.hosts, Vec::new()), routes, None, 1)
    }
}

fn about(sources: &[String], (read, of): (u64, Option<u64>)) -> Value {
    let sources = sources
        .iter()
        .map(|name| json!({"name": name, "games": 0, "files": []}));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "games": 0,
        "positions": 0,
        "years": null,
        "sources": sources.collect::<Vec<_>>(),
        "books": [],
        "indexing": {"read": read, "of": of},
    })
}

fn not_yet() -> Response {
    let refusal = Refusal::unavailable("the index of the games is being made: ask again");
    (RETRY, refusal).into_response()
}

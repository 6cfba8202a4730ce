//! The server while an index is being made. It serves the page and the progress, and asks clients to retry all other
//! requests.

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

/// The header that tells clients after how many seconds to retry.
const RETRY: [(HeaderName, &str); 1] = [(header::RETRY_AFTER, "1")];

/// The progress of an index.
#[derive(Copy, Clone, Debug, Default)]
pub struct IndexProgress {
    /// The number of bytes of games read so far.
    pub read: u64,
    /// The total number of bytes of games, if it is known.
    pub of: Option<u64>,
    /// The completed part of the whole work, from 0 to 1, if it is known. After all games are read, the index is written.
    pub done: Option<f64>,
}

/// Returns the progress of an index.
pub type HowFar = Arc<dyn Fn() -> IndexProgress + Send + Sync>;

/// A server for games that are still being indexed. When the index is complete, stop this server and serve the games at the
/// same listener.
pub struct Indexing {
    /// The names of the sources.
    pub sources: Vec<String>,
    /// The progress of the index.
    pub how_far: HowFar,
    /// Host names that requests may use, like [`Server::hosts`](super::Server::hosts).
    pub hosts: Vec<String>,
}

impl std::fmt::Debug for Indexing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexing").finish_non_exhaustive()
    }
}

impl Indexing {
    /// Starts the threads of the server on a listener that is already bound.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system rejects the listener or cannot start the threads.
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

/// Returns the description of the server, with the progress of the index.
fn about(sources: &[String], progress: IndexProgress) -> Value {
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
        "indexing": {"read": progress.read, "of": progress.of, "done": progress.done},
    })
}

/// Returns the answer to a request that needs the index.
fn not_yet() -> Response {
    let refusal = Refusal::unavailable("the server is still indexing the games: try again later");
    (RETRY, refusal).into_response()
}

//! A web server for the [`Explorer`](crate::explorer::Explorer): it answers the requests of Lichess's opening
//! explorer API, and serves a web page with a board.
//!
//! A [`Server`] contains an explorer and books. [`listen`](Server::listen) starts its threads on a listener, and
//! [`run`](Listening::run) answers requests until its [`Stop`] is triggered. [`Parameters`] is a parsed query string,
//! and [`Request`] is a checked request. A [`Refusal`] is the response to a request that cannot be fulfilled, with an
//! HTTP status and a message. The files of the web page are part of the program.
//!
//! While an index is still being built, an [`Indexing`] server shows the progress at the same address.

mod board;
mod books;
mod build;
mod cache;
mod client;
mod content;
mod form;
mod game;
mod guard;
mod http;
mod log;
mod make;
mod page;
mod prepare;
mod refusal;
mod repertoire;
mod request;
mod routes;
mod server;
mod state;

use std::hash::{DefaultHasher, Hash, Hasher};

pub use self::{
    books::{BookFile, source_name},
    cache::{Cache, CachedIndex},
    guard::{HostError, Origin, OriginError, host_name},
    http::Stop,
    log::{Log, Served},
    refusal::Refusal,
    repertoire::ServedRepertoire,
    request::{Parameters, Request, Route},
    server::{IndexProgress, Indexing, Listening, ProgressFn, Server},
};

/// Returns a 64-bit hash of a value. Equal values have equal hashes in one build of the program. A different build may
/// return different hashes.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

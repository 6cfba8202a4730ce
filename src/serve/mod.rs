//! The explorer over HTTP: the API that Lichess's opening explorer speaks, and a page with a board.
//!
//! [`Server`] holds an [`Explorer`](crate::explorer::Explorer) and books, [`listen`](Server::listen) takes a listener, and
//! [`run`](Listening::run) answers until its [`Stop`] says so. [`Parameters`] and [`Request`] are what a request asks; a
//! [`Refusal`] is what it gets when it cannot be answered. The page's files are part of the program.

mod annotations;
mod board;
mod books;
mod build;
mod cache;
mod client;
mod content;
mod game;
mod guard;
mod http;
mod indexing;
mod log;
mod make;
mod own;
mod page;
mod parameters;
mod refusal;
mod repertoire;
mod request;
mod response_cache;
mod routes;
mod server;
mod state;

use std::hash::{DefaultHasher, Hash, Hasher};

pub use self::{
    books::{BookFile, source_name},
    cache::{Cache, CachedIndex},
    guard::{Origin, OriginError},
    indexing::{HowFar, Indexing},
    log::{Log, Served},
    parameters::Parameters,
    refusal::Refusal,
    repertoire::ServedRepertoire,
    request::{Request, Route},
    server::{Listening, Server, Stop},
};

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

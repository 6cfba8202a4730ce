//! A web server for the [`Explorer`](crate::explore::explorer::Explorer): it answers the requests of Lichess's opening
//! explorer API, and serves a web page with a board.
//!
//! A [`Server`] contains an explorer and books. [`listen`](Server::listen) starts its threads on a listener, and
//! [`run`](Listening::run) answers requests until its [`Stop`] is triggered. [`Parameters`] is a parsed query string,
//! and [`Request`] is a checked request. A [`Refusal`] is the response to a request that cannot be fulfilled, with an
//! HTTP status and a message. The files of the web page are part of the program.
//!
//! While an index is still being built, an [`Indexing`] server shows the progress at the same address.
//!
//! # Threads
//!
//! An answer may have to wait for a disk, so worker threads compute it. Only a query that reads nothing but a few
//! stored sums of counts is answered by the thread of the connection, because passing it on would take longer than
//! the answer. One thread makes the books and repertoires that users request on the page, each in at most 128 MiB of
//! memory and a minute. Four threads read the texts of games from PGN files.
//!
//! # Limits
//!
//! Fair queues (`queue`) limit what each visitor and all visitors together may use: connections, requests, threads,
//! books, and the bytes of request bodies and of responses that wait to be sent. A free permit goes to the visitor that
//! holds the fewest. A visitor is an address or, behind a trusted proxy, the address that the proxy names. There are no
//! limits for a visitor if the server listens only on its own machine and trusts no proxy. A request with many
//! positions (`positions`) returns its thread after 50 milliseconds, and waits for its next turn.
//!
//! The server closes a connection whose client takes more than ten seconds to send the headers or the body of a
//! request, or stops reading for five seconds. A request waits at most ten seconds for its turn (a minute for a book),
//! and then gets status 503. If a client disconnects, the work for its request is cancelled. If a request panics, it
//! gets status 503 (`state`).
//!
//! # Caches
//!
//! `cache` keeps an index on the disk for each PGN file that was opened. `content` keeps answers in memory that depend
//! only on the indexes, until the server restarts, but never the texts of games.

mod board;
mod body;
mod books;
mod cache;
mod client;
mod content;
mod guard;
mod make;
mod openapi;
mod page;
mod positions;
mod practise;
mod prepare;
mod queue;
mod receive;
mod refusal;
mod request;
mod routes;
mod server;
mod state;
mod uploads;

use std::hash::{DefaultHasher, Hash, Hasher};

pub use self::{
    books::{BookFile, ServedRepertoire, source_name},
    cache::{Cache, CachedIndex},
    guard::{HostError, Origin, OriginError, host_name},
    refusal::Refusal,
    request::{Parameters, Request, Route},
    server::{IndexProgress, Indexing, Listening, Log, ProgressFn, Served, Server, Stop},
    uploads::stored_color,
};

/// The media type of JSON documents.
const JSON: &str = "application/json";

/// The media type of games in PGN.
const PGN: &str = "application/x-chess-pgn";

/// Returns a 64-bit hash of a value. Equal values have equal hashes in one build of the program. A different build may
/// return different hashes.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

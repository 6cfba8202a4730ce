//! The explorer over HTTP: the API that Lichess's opening explorer speaks, and a page with a board.
//!
//! [`Server`] holds an [`Explorer`](crate::explorer::Explorer) and books, [`bind`](Server::bind) takes an address, and
//! [`run`](Listening::run) answers until its [`Stop`] says so. [`Parameters`] and [`Request`] are what a request asks; a
//! [`Refusal`] is what it gets when it cannot be answered. The page's files are part of the program.

mod addresses;
mod answer;
mod answering;
mod asked;
mod board;
mod books;
mod cache;
mod client;
mod game;
mod given;
mod guard;
mod http;
mod log;
mod origin;
mod page;
mod parameters;
mod patient;
mod refusal;
mod request;
mod routes;
mod server;
mod stop;
mod validator;

pub use self::{
    books::{BookFile, source_name},
    cache::{Cache, CachedIndex, TemporaryCache},
    log::Served,
    origin::{Origin, OriginError},
    parameters::Parameters,
    refusal::Refusal,
    request::{Request, Route},
    server::{Listening, Server},
    stop::Stop,
};

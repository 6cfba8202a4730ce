//! The bodies of answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use serde::Serialize;

use super::{Refusal, board::Board, books::BookMoves, game::Moves, validator::etag_of};
use crate::explorer::{About, Answer, GameInfo};

/// A body and its type.
#[derive(Clone)]
pub(super) struct Content {
    media_type: &'static str,
    body: Bytes,
}

/// The explorer's answer with what the page needs.
#[derive(Serialize)]
pub(super) struct WithBoard {
    #[serde(flatten)]
    pub(super) answer: Answer,
    pub(super) polybook: Board,
}

/// What the books play.
#[derive(Serialize)]
pub(super) struct Books {
    pub(super) books: Vec<BookMoves>,
}

/// What is served.
#[derive(Serialize)]
pub(super) struct AboutAll<'a> {
    #[serde(flatten)]
    pub(super) about: &'a About,
    pub(super) books: Vec<&'a str>,
}

/// A game for the page.
#[derive(Serialize)]
pub(super) struct OpenGame {
    #[serde(flatten)]
    pub(super) info: GameInfo,
    #[serde(flatten)]
    pub(super) moves: Moves,
}

impl Content {
    /// A JSON document.
    pub(super) fn json(document: &impl Serialize) -> Result<Content, Refusal> {
        let body = written(document)?;
        Ok(Content {
            media_type: "application/json",
            body: body.into(),
        })
    }

    /// The same as the only line of a stream of documents.
    pub(super) fn line(document: &impl Serialize) -> Result<Content, Refusal> {
        let mut body = written(document)?;
        body.push(b'\n');
        Ok(Content {
            media_type: "application/x-ndjson",
            body: body.into(),
        })
    }

    /// The text of games. Its bytes are those of the file, in whatever encoding.
    pub(super) fn pgn(body: Vec<u8>) -> Content {
        Content {
            media_type: "application/x-chess-pgn",
            body: body.into(),
        }
    }

    /// The size of the body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// The validator of an answer by what it says.
    pub(super) fn etag(&self) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        (self.media_type, &self.body).hash(&mut hasher);
        etag_of(hasher.finish())
    }

    pub(super) fn into_response(self, etag: HeaderValue) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(self.media_type),
        );
        headers.insert(header::ETAG, etag);
        // A browser asks again, and is told that nothing has changed.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::VARY, HeaderValue::from_static("accept"));
        response
    }
}

fn written(document: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(document).map_err(|err| Refusal::unavailable(err.to_string()))
}

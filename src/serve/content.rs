//! The bodies of answers, and their validators (`ETag`), which say whether the asker has an answer already.

use std::hash::Hash;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{Refusal, hash};

/// The media type of JSON documents.
pub(super) const JSON: &str = "application/json";

/// The media type of games.
pub(super) const PGN: &str = "application/x-chess-pgn";

/// A body and its type.
#[derive(Clone)]
pub(super) struct Content {
    media_type: &'static str,
    body: Bytes,
}

/// A body, and a value that is held until it is sent.
struct Holding<T> {
    body: Bytes,
    _held: T,
}

impl<T> AsRef<[u8]> for Holding<T> {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Content {
    fn new(media_type: &'static str, body: Vec<u8>) -> Content {
        let body = body.into();
        Content { media_type, body }
    }

    /// A JSON document.
    pub(super) fn json(document: &impl Serialize) -> Result<Content, Refusal> {
        Ok(Content::new(JSON, written(document)?))
    }

    /// The same as the only line of a stream of documents.
    pub(super) fn line(document: &impl Serialize) -> Result<Content, Refusal> {
        let mut body = written(document)?;
        body.push(b'\n');
        Ok(Content::new("application/x-ndjson", body))
    }

    /// The text of games. Its bytes are those of the file, in whatever encoding.
    pub(super) fn pgn(body: Vec<u8>) -> Content {
        Content::new(PGN, body)
    }

    /// A Polyglot book.
    pub(super) fn book(body: Vec<u8>) -> Content {
        Content::new("application/octet-stream", body)
    }

    /// The same, which holds something until it is sent.
    pub(super) fn holding(self, held: impl Send + 'static) -> Content {
        let holding = Holding {
            body: self.body,
            _held: held,
        };
        Content {
            media_type: self.media_type,
            body: Bytes::from_owner(holding),
        }
    }

    /// The size of the body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// The validator of an answer by what it says.
    pub(super) fn etag(&self) -> HeaderValue {
        etag_of(&(self.media_type, &self.body))
    }

    pub(super) fn into_response(self, etag: HeaderValue) -> Response {
        let headers = [
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static(self.media_type),
            ),
            (header::ETAG, etag),
            // A browser asks again, and gets the answer only if it is another one by then.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::VARY, HeaderValue::from_static("accept")),
        ];
        (headers, Body::from(self.body)).into_response()
    }

    /// An answer from files that may change at any time, so that only the answer itself shows whether the asker has it.
    pub(super) fn answer_from_files(self, asker: &HeaderMap) -> Response {
        let etag = self.etag();
        not_modified(asker, &etag).unwrap_or_else(|| self.into_response(etag))
    }
}

fn written(document: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(document).map_err(|err| Refusal::unavailable(err.to_string()))
}

/// A validator. It is weak because an answer may be sent packed.
pub(super) fn etag_of(value: &impl Hash) -> HeaderValue {
    let text = format!("W/\"{:016x}\"", hash(value));
    text.try_into().expect("a number is a header's value")
}

/// The answer to an asker who has the one with this validator.
pub(super) fn not_modified(headers: &HeaderMap, etag: &HeaderValue) -> Option<Response> {
    let hash = etag.to_str().unwrap_or_default().trim_start_matches("W/");
    let is_known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == hash);
    let response = (StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]);
    is_known.then(|| response.into_response())
}

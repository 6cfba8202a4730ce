//! The bodies of answers and their validators (`ETag`), by which a client knows whether its cached answer is still valid.

use std::hash::Hash;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::Value;

use super::{Refusal, hash};

/// The media type of JSON documents.
pub(super) const JSON: &str = "application/json";

/// The media type of PGN games.
pub(super) const PGN: &str = "application/x-chess-pgn";

/// The body of an answer, with its media type.
#[derive(Clone)]
pub(super) struct Content {
    media_type: &'static str,
    body: Bytes,
}

/// A body with a value that must be held until the body is sent.
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

    /// Creates a JSON document.
    pub(super) fn json(document: &impl Serialize) -> Result<Content, Refusal> {
        Ok(Content::new(JSON, written(document)?))
    }

    /// Creates a JSON document whose keys are changed from snake case, which the library and the command line use, to camel case.
    pub(super) fn camel_json(document: &impl Serialize) -> Result<Content, Refusal> {
        let document = serde_json::to_value(document);
        let document = document.map_err(|err| Refusal::unavailable(err.to_string()))?;
        Content::json(&with_camel_keys(document))
    }

    /// Creates a stream of JSON documents (`application/x-ndjson`) that consists of one document.
    pub(super) fn line(document: &impl Serialize) -> Result<Content, Refusal> {
        let mut body = written(document)?;
        body.push(b'\n');
        Ok(Content::new("application/x-ndjson", body))
    }

    /// Creates the text of games. Its bytes are those of the PGN file, in any encoding.
    pub(super) fn pgn(body: Vec<u8>) -> Content {
        Content::new(PGN, body)
    }

    /// Creates a Polyglot book.
    pub(super) fn book(body: Vec<u8>) -> Content {
        Content::new("application/octet-stream", body)
    }

    /// Returns the content together with a value that is held until the content is sent.
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

    /// Returns the size of the body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// Returns a validator that is a hash of the content.
    pub(super) fn etag(&self) -> HeaderValue {
        etag_of(&(self.media_type, &self.body))
    }

    /// Returns the response with this content and validator.
    pub(super) fn into_response(self, etag: HeaderValue) -> Response {
        let headers = [
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static(self.media_type),
            ),
            (header::ETAG, etag),
            // A browser must ask again each time, and gets the body only if it has changed.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::VARY, HeaderValue::from_static("accept")),
        ];
        (headers, Body::from(self.body)).into_response()
    }

    /// Returns the response for a content from files that may change at any time. The validator is therefore a hash of the
    /// content itself.
    pub(super) fn answer_from_files(self, asker: &HeaderMap) -> Response {
        let etag = self.etag();
        not_modified(asker, &etag).unwrap_or_else(|| self.into_response(etag))
    }
}

/// Returns a document whose keys are changed from snake case to camel case.
fn with_camel_keys(document: Value) -> Value {
    match document {
        Value::Object(object) => {
            let pairs = object.into_iter().map(|(key, value)| {
                let mut words = key.split('_');
                let mut camel = words.next().unwrap_or_default().to_owned();
                for word in words {
                    let (first, rest) = word.split_at(word.len().min(1));
                    camel += &first.to_ascii_uppercase();
                    camel += rest;
                }
                (camel, with_camel_keys(value))
            });
            Value::Object(pairs.collect())
        }
        Value::Array(values) => values.into_iter().map(with_camel_keys).collect(),
        other => other,
    }
}

/// Serializes a document as JSON.
fn written(document: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(document).map_err(|err| Refusal::unavailable(err.to_string()))
}

/// Returns a validator for a value. It is weak because an answer may be sent compressed.
pub(super) fn etag_of(value: &impl Hash) -> HeaderValue {
    let text = format!("W/\"{:016x}\"", hash(value));
    text.try_into().expect("a number is a header's value")
}

/// Returns a response with status 304 if the client's cached answer has this validator, otherwise `None`.
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

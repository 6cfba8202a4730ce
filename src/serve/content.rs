//! The bodies of answers and their validators (`ETag`), by which a client knows whether its cached answer is still
//! valid.
//!
//! A [cache](ResponseCache) keeps recent answers, because most requests concern the same few positions.

use std::hash::Hash;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use quick_cache::{OptionsBuilder, Weighter, sync::Cache};
use serde::Serialize;
use serde_json::Value;

use super::{Refusal, hash};
use crate::json;

/// The media type of JSON documents.
pub(super) const JSON: &str = "application/json";

/// The media type of PGN games.
pub(super) const PGN: &str = "application/x-chess-pgn";

/// The body of an HTTP response, with its media type.
#[derive(Clone)]
pub(super) struct Content {
    media_type: &'static str,
    body: Bytes,
}

/// A response body, together with a value that is dropped when the body has been sent. The value is, for example, a
/// permit of a semaphore.
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

    /// Serializes `document` as a JSON response body.
    pub(super) fn json(document: &impl Serialize) -> Result<Content, Refusal> {
        Ok(Content::new(JSON, written(document)?))
    }

    /// Serializes `document` as a JSON response body, like [`json`](Content::json), and converts its keys from snake
    /// case to camel case.
    pub(super) fn camel_json(document: &impl Serialize) -> Result<Content, Refusal> {
        let document = serde_json::to_value(document);
        let document = document.map_err(|err| Refusal::unavailable(err.to_string()))?;
        Content::json(&with_camel_keys(document))
    }

    /// Serializes `document` as a response body of type `application/x-ndjson` that consists of one line.
    pub(super) fn line(document: &impl Serialize) -> Result<Content, Refusal> {
        let mut body = written(document)?;
        body.push(b'\n');
        Ok(Content::new("application/x-ndjson", body))
    }

    /// Creates a body that consists of games in PGN. `body` contains the bytes of the PGN file, in any encoding.
    pub(super) fn pgn(body: Vec<u8>) -> Content {
        Content::new(PGN, body)
    }

    /// Creates a response body that consists of a Polyglot book. `body` contains the bytes of the book.
    pub(super) fn book(body: Vec<u8>) -> Content {
        Content::new("application/octet-stream", body)
    }

    /// Attaches a value to the content. The value is dropped when the content has been sent.
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

    /// Returns a validator (`ETag`) that is a hash of the content.
    pub(super) fn etag(&self) -> HeaderValue {
        etag_of(&(self.media_type, &self.body))
    }

    /// Creates the response with this content and the validator `etag`.
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

    /// Creates the response for a content that was read from files which may change at any time. `asker` contains the
    /// headers of the request. If they show that the client already has the content, the response has status 304 and no
    /// content. The validator (`ETag`) is a hash of the content.
    pub(super) fn answer_from_files(self, asker: &HeaderMap) -> Response {
        let etag = self.etag();
        not_modified(asker, &etag).unwrap_or_else(|| self.into_response(etag))
    }
}

/// Converts all keys of a JSON document from snake case to camel case.
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

/// Serializes a document as JSON text.
fn written(document: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    json::to_vec(document).map_err(|err| Refusal::unavailable(err.to_string()))
}

/// Returns a validator (`ETag`) for a value. The validator is weak, because the response may be sent with or without
/// compression.
pub(super) fn etag_of(value: &impl Hash) -> HeaderValue {
    let text = format!("W/\"{:016x}\"", hash(value));
    text.try_into().expect("a number is a header's value")
}

/// Returns a response with status 304 if the client already has the response whose validator is `etag`, according to
/// the `headers` of its request. Otherwise returns `None`.
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

/// The maximum total size of the responses in the cache, in bytes.
const KEPT: u64 = 16 << 20;

/// The typical size of a response in bytes. The cache divides its maximum size by this number to estimate how many
/// entries to reserve.
const USUAL: usize = 4 << 10;

/// The number of shards of the cache of responses. Each shard has its own lock. The number is small, so that the
/// largest responses fit into one shard.
const PARTS: usize = 8;

/// The key of a response in the cache: the path and the query string of the request, and the accepted media types.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    pub(super) path: String,
    pub(super) query: String,
    pub(super) accept: String,
}

/// A cache of recent responses. New responses evict old ones when the cache is full.
pub(super) type ResponseCache = Cache<CacheKey, Content, Size>;

/// The measure by which the cache limits its memory: the size in bytes of a response and of its key.
#[derive(Clone)]
pub(super) struct Size;

impl CacheKey {
    pub(super) fn of(request: &Request) -> CacheKey {
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let accept = accept.filter_map(|value| value.to_str().ok());
        CacheKey {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            accept: accept.collect::<Vec<_>>().join(","),
        }
    }

    /// Returns `true` if the client accepts `media_type` by name, and prefers it at least as much as `other`.
    pub(super) fn prefers(&self, media_type: &str, other: &str) -> bool {
        let quality = self.quality(media_type);
        quality > 0.0 && quality >= self.quality(other)
    }

    /// Returns the quality value of a media type in the client's `Accept` header, from 0 (not acceptable) to 1. Returns
    /// 0 if the header does not name the type.
    fn quality(&self, media_type: &str) -> f32 {
        let mut ranges = self.accept.split(',').map(|range| range.split(';'));
        let range = ranges.find_map(|mut range| {
            let name = range.next()?.trim();
            name.eq_ignore_ascii_case(media_type).then_some(range)
        });
        let quality = range.map(|mut range| {
            range.find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                name.trim().eq_ignore_ascii_case("q").then_some(value)
            })
        });
        match quality {
            None => 0.0,
            Some(None) => 1.0,
            Some(Some(quality)) => quality.trim().parse().unwrap_or(1.0),
        }
    }
}

impl Weighter<CacheKey, Content> for Size {
    fn weight(&self, key: &CacheKey, content: &Content) -> u64 {
        // The entries in the tables of the cache, and the overhead of allocations.
        const BESIDES: usize = 256;
        let asked = key.path.len() + key.query.len() + key.accept.len();
        (asked + content.size() + BESIDES) as u64
    }
}

/// Creates an empty cache of responses.
pub(super) fn response_cache() -> ResponseCache {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(KEPT as usize / USUAL)
        .weight_capacity(KEPT)
        .shards(PARTS)
        .build()
        .expect("all that it needs is given");
    Cache::with_options(options, Size, Default::default(), Default::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: usize) -> CacheKey {
        CacheKey {
            path: "/lichess".to_owned(),
            query: format!("moves={number}"),
            accept: String::new(),
        }
    }

    #[test]
    fn the_size_of_the_cache_is_bounded() {
        let cache = response_cache();
        let content = Content::pgn(vec![b'x'; 10_000]);
        for number in 0..5_000 {
            cache.insert(asked(number), content.clone());
        }
        assert!(cache.get(&asked(4_999)).is_some());
        let kept = (0..5_000).filter(|number| cache.get(&asked(*number)).is_some());
        let kept = kept.count() as u64;
        assert!((500..=KEPT / 10_000).contains(&kept), "{kept}");
    }
}

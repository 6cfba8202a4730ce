//! The bodies of responses, and their validators (`ETag`), from which a client learns whether its cached response is
//! still valid.
//!
//! The server keeps recent responses in a [cache](ResponseCache), because most requests are about the same few
//! positions.

use std::hash::Hash;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use quick_cache::{OptionsBuilder, Weighter, sync::Cache};
use serde::Serialize;
use serde_json::Value;

use super::{JSON, PGN, Refusal, hash, request::query_of};
use crate::json;

/// The body of an HTTP response, with its media type.
#[derive(Clone)]
pub(super) struct ResponseBody {
    media_type: &'static str,
    body: Bytes,
}

/// A response body with a value, such as a semaphore permit, that is dropped as soon as the body has been sent.
struct GuardedBody<T> {
    body: Bytes,
    _held: T,
}

impl<T> AsRef<[u8]> for GuardedBody<T> {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl ResponseBody {
    fn new(media_type: &'static str, body: Vec<u8>) -> ResponseBody {
        let body = body.into();
        ResponseBody { media_type, body }
    }

    /// Creates a response body from `document`, which is serialized as JSON with unchanged keys.
    pub(super) fn json(document: &impl Serialize) -> Result<ResponseBody, Refusal> {
        Ok(ResponseBody::new(JSON, written(document)?))
    }

    /// Creates a response body from `document`, which is serialized as JSON. All keys are converted from snake case to
    /// camel case.
    pub(super) fn camel_json(document: &impl Serialize) -> Result<ResponseBody, Refusal> {
        let document = serde_json::to_value(document);
        let document = document.map_err(|err| Refusal::unavailable(err.to_string()))?;
        ResponseBody::json(&with_camel_keys(document))
    }

    /// Creates a response body from `text`, which is a JSON document.
    pub(super) fn json_text(text: Vec<u8>) -> ResponseBody {
        ResponseBody::new(JSON, text)
    }

    /// Creates a response body of the media type `application/x-ndjson`. The body is one line that contains `document`
    /// as JSON.
    pub(super) fn line(document: &impl Serialize) -> Result<ResponseBody, Refusal> {
        let mut body = written(document)?;
        body.push(b'\n');
        Ok(ResponseBody::new("application/x-ndjson", body))
    }

    /// Creates a response body from games in PGN. `body` contains their text, in any encoding.
    pub(super) fn pgn(body: Vec<u8>) -> ResponseBody {
        ResponseBody::new(PGN, body)
    }

    /// Creates a response body from a Polyglot book. `body` contains the bytes of the book.
    pub(super) fn book(body: Vec<u8>) -> ResponseBody {
        ResponseBody::new("application/octet-stream", body)
    }

    /// Attaches the value `held` to the content. It is dropped together with the content, for example after the content
    /// has been sent.
    pub(super) fn holding(self, held: impl Send + 'static) -> ResponseBody {
        let holding = GuardedBody {
            body: self.body,
            _held: held,
        };
        ResponseBody {
            media_type: self.media_type,
            body: Bytes::from_owner(holding),
        }
    }

    /// Returns the size of the body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// Returns a validator (`ETag`) of the content, which is a hash of its bytes. A client sends it with later requests
    /// to find out whether the content has changed.
    pub(super) fn etag(&self) -> HeaderValue {
        etag_of(&(self.media_type, &self.body))
    }

    /// Creates the response with this content. `etag` is the validator of the content.
    pub(super) fn into_response(self, etag: HeaderValue) -> Response {
        let media_type = HeaderValue::from_static(self.media_type);
        let headers = [(header::CONTENT_TYPE, media_type)];
        (cache_headers(etag), headers, Body::from(self.body)).into_response()
    }

    /// Creates the response for content that was read from files, which may change at any time. If `headers`, the
    /// headers of the request, show that the client already has this content, the response has the status 304 and no
    /// body.
    pub(super) fn answer_from_files(self, headers: &HeaderMap) -> Response {
        let etag = self.etag();
        not_modified(headers, &etag).unwrap_or_else(|| self.into_response(etag))
    }
}

/// Converts the keys of all objects in a JSON document from snake case to camel case.
fn with_camel_keys(document: Value) -> Value {
    match document {
        Value::Object(object) => {
            let pairs = object.into_iter();
            let pairs = pairs.map(|(key, value)| (camel_case(&key), with_camel_keys(value)));
            Value::Object(pairs.collect())
        }
        Value::Array(values) => values.into_iter().map(with_camel_keys).collect(),
        other => other,
    }
}

/// Converts a name from snake case to camel case.
pub(super) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        camel += &first.to_ascii_uppercase();
        camel += rest;
    }
    camel
}

/// Serializes a document as JSON text.
fn written(document: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    json::to_vec(document).map_err(|err| Refusal::unavailable(err.to_string()))
}

/// Returns a validator (`ETag`) that is a hash of `value`. It is a weak validator, because the same response may be
/// sent with or without compression.
pub(super) fn etag_of(value: &impl Hash) -> HeaderValue {
    let text = format!("W/\"{:016x}\"", hash(value));
    text.try_into().expect("a number is a header's value")
}

/// Returns the headers that say how a response may be cached. `etag` is the validator of the response. A response with
/// status 304 has the same headers, as RFC 9110 (section 15.4.5) requires.
pub(super) fn cache_headers(etag: HeaderValue) -> [(HeaderName, HeaderValue); 3] {
    [
        (header::ETAG, etag),
        // A browser must ask the server before each use of its cached response. It receives a body only if the
        // response has changed.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (
            header::VARY,
            HeaderValue::from_static("accept, accept-encoding"),
        ),
    ]
}

/// Returns a response with status 304 if the client already has the current response, otherwise `None`. `etag` is the
/// validator of the current response, and `headers` are the headers of the request.
pub(super) fn not_modified(headers: &HeaderMap, etag: &HeaderValue) -> Option<Response> {
    let hash = etag.to_str().unwrap_or_default().trim_start_matches("W/");
    let is_known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == hash);
    is_known.then(|| (StatusCode::NOT_MODIFIED, cache_headers(etag.clone())).into_response())
}

/// The maximum total size, in bytes, of the responses in the cache.
const MAX_CACHED_BYTES: u64 = 16 << 20;

/// The typical size of a response, in bytes, from which the number of entries in the cache is estimated.
const TYPICAL_BYTES: usize = 4 << 10;

/// The number of shards of the response cache, each with its own lock. The number is small, because a large response
/// must fit into one shard.
const SHARDS: usize = 8;

/// The key of a response in the cache: the path, the query string and the `Accept` header of the request.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    pub(super) path: String,
    pub(super) query: String,
    pub(super) accept: String,
}

/// A cache of recent responses. When it is full, new responses replace old ones.
pub(super) type ResponseCache = Cache<CacheKey, ResponseBody, EntryWeight>;

/// Tells the response cache the size of each response in bytes. The cache limits the sum of these sizes.
#[derive(Clone)]
pub(super) struct EntryWeight;

impl CacheKey {
    pub(super) fn of(request: &Request) -> CacheKey {
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let accept = accept.filter_map(|value| value.to_str().ok());
        CacheKey {
            path: request.uri().path().to_owned(),
            query: query_of(request).to_owned(),
            accept: accept.collect::<Vec<_>>().join(","),
        }
    }

    /// Returns `true` if the client's `Accept` header names `media_type` and does not prefer `other` to it.
    pub(super) fn prefers(&self, media_type: &str, other: &str) -> bool {
        let quality = self.quality(media_type);
        quality > 0.0 && quality >= self.quality(other)
    }

    /// Returns `true` if the client's `Accept` header names a media type of JSON and does not prefer plain text to it.
    /// The media types of JSON are `application/json`, `application/x-ndjson` and Lichess's
    /// `application/vnd.lichess.v3+json`.
    pub(super) fn accepts_json(&self) -> bool {
        let names = self
            .accept
            .split(',')
            .filter_map(|range| range.split(';').next());
        names.map(str::trim).any(|name| {
            let is_json = name.rsplit(['/', '+', '-']).next().is_some_and(|end| {
                end.eq_ignore_ascii_case("json") || end.eq_ignore_ascii_case("ndjson")
            });
            is_json && self.prefers(name, "text/plain")
        })
    }

    /// Returns the quality value, from 0 to 1, of a media type in the client's `Accept` header. The value 0 means "not
    /// acceptable"; it is also returned if the header does not name the media type.
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

impl Weighter<CacheKey, ResponseBody> for EntryWeight {
    fn weight(&self, key: &CacheKey, content: &ResponseBody) -> u64 {
        // The memory of an entry besides the key and the content: entries in the tables of the cache, and overhead of
        // allocations.
        const OVERHEAD: usize = 256;
        let asked = key.path.len() + key.query.len() + key.accept.len();
        (asked + content.size() + OVERHEAD) as u64
    }
}

/// Creates an empty cache of responses.
pub(super) fn response_cache() -> ResponseCache {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(MAX_CACHED_BYTES as usize / TYPICAL_BYTES)
        .weight_capacity(MAX_CACHED_BYTES)
        .shards(SHARDS)
        .build()
        .expect("all that it needs is given");
    Cache::with_options(options, EntryWeight, Default::default(), Default::default())
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
        let content = ResponseBody::pgn(vec![b'x'; 10_000]);
        for number in 0..5_000 {
            cache.insert(asked(number), content.clone());
        }
        assert!(cache.get(&asked(4_999)).is_some());
        let kept = (0..5_000).filter(|number| cache.get(&asked(*number)).is_some());
        let kept = kept.count() as u64;
        assert!((500..=MAX_CACHED_BYTES / 10_000).contains(&kept), "{kept}");
    }
}

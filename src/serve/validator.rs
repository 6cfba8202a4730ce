//! Validators (`ETag`): whether the asker has an answer already.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};

/// A validator. It is weak because an answer may be sent packed.
pub(super) fn etag_of(hash: u64) -> HeaderValue {
    let text = format!("W/\"{hash:016x}\"");
    text.try_into().expect("a number is a header's value")
}

/// Whether the asker has the answer with this validator.
pub(super) fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let etag = etag.to_str().unwrap_or_default().trim_start_matches("W/");
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == etag)
}

/// That the asker has the answer.
pub(super) fn not_modified(etag: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(header::ETAG, etag);
    response
}

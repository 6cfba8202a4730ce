//! The description of the API in OpenAPI 3.1, from which other programs can generate their types.
//!
//! The tests generate the file `openapi.json` from the types of the responses (`document`), from the parameters of each
//! [`Route`](super::Route), and from the conditions on games. The program contains only the finished file.

#[cfg(test)]
mod document;
#[cfg(test)]
mod parameters;

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};

use super::{
    JSON,
    content::{cache_headers, etag_of, not_modified},
};

/// The path of the description on the server.
pub(super) const PATH: &str = "/openapi.json";

const DOCUMENT: &str = include_str!("openapi.json");

/// Returns the description of the API as the response.
pub(super) async fn answer(request: Request) -> Response {
    let etag = etag_of(&DOCUMENT);
    if let Some(response) = not_modified(request.headers(), &etag) {
        return response;
    }
    let headers = [(axum::http::header::CONTENT_TYPE, JSON)];
    (cache_headers(etag), headers, DOCUMENT).into_response()
}

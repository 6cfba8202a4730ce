//! Forms in the bodies of requests, for parameters that are too long for the address of a request.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
};
use tokio::time::timeout;

use super::refusal::Refusal;

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// The maximum size of a form in bytes. A query string with the parameters of a form of this size is still shorter than
/// 64 KiB, the maximum of the type [`Uri`](axum::http::Uri), unless the form contains many characters that a query string must escape.
const MAX_FORM: usize = 48 << 10;

/// The maximum time that a client may take to send a form.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// Converts a `POST` request to the equivalent `GET` request: reads the form in its body, and appends the parameters of
/// the form to those of the query string.
///
/// # Errors
///
/// Returns a refusal if the body is not a form, if it is too long, or if the client does not send it in time.
pub(super) async fn form_as_query(request: Request) -> Result<Request, Refusal> {
    let (mut parts, body) = request.into_parts();
    if !is_form(&parts.headers) {
        let text = format!("the body of the request is not a form: send it as {FORM}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let too_long = || {
        let text = format!("the form is too long: send at most {} KiB", MAX_FORM >> 10);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    };
    let form = timeout(FORM_TIMEOUT, to_bytes(body, MAX_FORM)).await;
    let form = form.map_err(|_| {
        let text = "the form is incomplete: send it within ten seconds";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, text)
    })?;
    let form = form.map_err(|_| too_long())?;
    let query = parts.uri.query().unwrap_or_default();
    let mut parameters = form_urlencoded::Serializer::new(query.to_owned());
    parameters.extend_pairs(form_urlencoded::parse(&form));
    let address = format!("{}?{}", parts.uri.path(), parameters.finish());
    parts.uri = address.parse().map_err(|_| too_long())?;
    parts.method = Method::GET;
    Ok(Request::from_parts(parts, Body::empty()))
}

/// Returns `true` if the body of a request is a form, according to its `headers`.
fn is_form(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE);
    let named = named.and_then(|media_type| media_type.to_str().ok());
    let named = named.and_then(|media_type| media_type.split(';').next());
    named.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case(FORM))
}

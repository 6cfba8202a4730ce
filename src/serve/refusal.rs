//! Requests that are not answered: a status and one line of text.

use axum::{
    body::Body,
    http::{Response, StatusCode, header},
    response::IntoResponse,
};

/// Why a request is not answered.
///
/// ```
/// use polybook::serve::Refusal;
///
/// let refusal = Refusal::bad("play: not a move: \"e9\"");
/// assert_eq!(refusal.status(), 400);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        // One line, whatever a name or a path has in it.
        let text = text.into().replace(char::is_control, " ");
        Refusal { status, text }
    }

    /// The request itself is wrong: 400.
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, text)
    }

    /// There is nothing like that: 404.
    pub fn unknown(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, text)
    }

    /// Neither `GET` nor `HEAD`: 405.
    pub(super) fn method() -> Refusal {
        Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are answered",
        )
    }

    /// A host that this server does not go by: 421.
    pub(super) fn misdirected(host: &str) -> Refusal {
        Refusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            format!(
                "this server does not accept the host name \"{host}\": start it with --allow-host NAME"
            ),
        )
    }

    /// The server cannot answer now, or a file of its data cannot be read: 503.
    pub fn unavailable(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// The status as a number.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The line of text, without its end.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(format!("{}\n", self.text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let plain = "text/plain; charset=utf-8";
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static(plain),
        );
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            let allowed = header::HeaderValue::from_static("GET, HEAD");
            headers.insert(header::ALLOW, allowed);
        }
        response
    }
}

//! Forms in the bodies of requests, for parameters that are too long for the address of a request.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, FromRequest, Request},
    http::{HeaderMap, Method, StatusCode, header},
};
use tokio::time::timeout;

use super::refusal::Refusal;

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// The maximum size of a form in bytes.
const MAX_FORM: usize = 48 << 10;

/// The maximum time that a client may take to send a form.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// The form in the body of a request, or the reason why it could not be received.
#[derive(Clone)]
struct ReceivedForm(Result<Bytes, Refusal>);

/// The parameters in the address and in the form of a request, as one query string. It is attached to the request as an
/// extension, because it may be too long for the type [`Uri`](axum::http::Uri).
#[derive(Clone)]
struct WholeQuery(String);

/// Receives the form in the body of a `POST` request, and adds it as an extension, which [`form_as_query`] reads.
/// Returns a request without a form unchanged.
pub(super) async fn receive_form(request: Request) -> Request {
    if request.method() != Method::POST || !is_form(request.headers()) {
        return request;
    }
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(ReceivedForm(receive(body).await));
    Request::from_parts(parts, Body::empty())
}

/// Receives the whole body of a request.
///
/// # Errors
///
/// Returns an error response if the body exceeds [`MAX_FORM`], if it is not complete after [`FORM_TIMEOUT`], or if the
/// connection breaks.
async fn receive(body: Body) -> Result<Bytes, Refusal> {
    let mut request = Request::new(body);
    DefaultBodyLimit::max(MAX_FORM).apply(&mut request);
    let received = timeout(FORM_TIMEOUT, Bytes::from_request(request, &())).await;
    let received = received.map_err(|_| {
        let text = "the form is incomplete: send it within ten seconds";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, text)
    })?;
    received.map_err(|err| match err.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let text = format!("the form is too long: send at most {} KiB", MAX_FORM >> 10);
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
        }
        _ => Refusal::bad(format!("the form cannot be received: {}", err.body_text())),
    })
}

/// Converts a `POST` request to the equivalent `GET` request, whose [query string](query_of) consists of the parameters
/// in the address and those in the form.
///
/// # Errors
///
/// Returns an error response if the body of the request is not a form that [`receive_form`] received.
pub(super) fn form_as_query(mut request: Request) -> Result<Request, Refusal> {
    let Some(ReceivedForm(form)) = request.extensions_mut().remove() else {
        let text = format!("the body of the request is not a form: send it as {FORM}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    };
    let query = request.uri().query().unwrap_or_default();
    let mut parameters = form_urlencoded::Serializer::new(query.to_owned());
    parameters.extend_pairs(form_urlencoded::parse(&form?));
    let query = WholeQuery(parameters.finish());
    request.extensions_mut().insert(query);
    *request.method_mut() = Method::GET;
    Ok(request)
}

/// Returns the parameters of a request as a query string, including those in a form that [`form_as_query`] converted.
pub(super) fn query_of(request: &Request) -> &str {
    match request.extensions().get() {
        Some(WholeQuery(query)) => query,
        None => request.uri().query().unwrap_or_default(),
    }
}

/// Returns `true` if the body of a request is a form, according to its `headers`.
fn is_form(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE);
    let named = named.and_then(|media_type| media_type.to_str().ok());
    let named = named.and_then(|media_type| media_type.split(';').next());
    named.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case(FORM))
}

#[cfg(test)]
pub(super) mod tests {
    use std::{
        io,
        pin::Pin,
        task::{Context, Poll},
    };

    use axum::body::HttpBody;
    use hyper::body::Frame;

    use super::*;

    /// A request body that fails with a connection error if `is_broken` is `true`, and otherwise never arrives.
    struct IncompleteBody {
        is_broken: bool,
    }

    impl HttpBody for IncompleteBody {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            match self.is_broken {
                true => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
                false => Poll::Pending,
            }
        }
    }

    /// Returns a request whose form does not arrive completely, because its body is [incomplete](IncompleteBody).
    pub(in super::super) fn unfinished(is_broken: bool) -> Request {
        Request::post("/")
            .header(header::CONTENT_TYPE, FORM)
            .body(Body::new(IncompleteBody { is_broken }))
            .unwrap()
    }

    #[test]
    fn a_broken_connection_is_not_called_a_long_form() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let refusal = runtime.block_on(async {
            let received = receive_form(unfinished(true)).await;
            form_as_query(received).unwrap_err()
        });
        let text = format!("{refusal:?}");
        assert!(text.contains("\"the form cannot be received: "), "{text}");
        assert_eq!(refusal.status(), 400);
    }
}

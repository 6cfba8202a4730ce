//! Forms in the bodies of requests, for parameters that are too long for the address of a request.

use std::{future::poll_fn, pin::Pin, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{client::Client, refusal::Refusal, request::WholeQuery};

/// The paths of the routes that accept a form. Other routes refuse the method `POST`, so their forms are not received.
const FORM_ROUTES: [&str; 4] = ["/gaps", "/prepare", "/repertoire", "/repertoire.pgn"];

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// The maximum size of a form in bytes.
const MAX_FORM: usize = 48 << 10;

/// The maximum time that a client may take to send a form.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// The form in the body of a request, or the reason why it could not be received.
#[derive(Clone)]
struct ReceivedForm(Result<Vec<u8>, Refusal>);

/// Receives the form in the body of a `POST` request, and adds it as an extension, which [`form_as_query`] reads. Also
/// returns the semaphore permits for the bytes of the form, which the caller must hold as long as the request. Returns a
/// request without a form unchanged.
pub(super) async fn receive_form(
    request: Request,
    client: &Client,
) -> (Request, Option<OwnedSemaphorePermit>) {
    let has_form = request.method() == Method::POST
        && FORM_ROUTES.contains(&request.uri().path())
        && is_form(request.headers());
    if !has_form {
        return (request, None);
    }
    let (mut parts, body) = request.into_parts();
    let received = timeout(FORM_TIMEOUT, receive(body, client)).await;
    let received = received.unwrap_or_else(|_| {
        let text = "the form was not complete after ten seconds";
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text))
    });
    let (form, permits) = match received {
        Ok((form, permits)) => (Ok(form), permits),
        Err(refusal) => (Err(refusal), None),
    };
    parts.extensions.insert(ReceivedForm(form));
    (Request::from_parts(parts, Body::empty()), permits)
}

/// Receives the whole body of a request, and returns the form in it with its parameters encoded again. Acquires a
/// semaphore permit of the server for each byte when it arrives, so that forms which arrive slowly hold few permits. If
/// the encoded form is longer, also acquires a permit for each further byte.
///
/// # Errors
///
/// Returns an error response if the body exceeds [`MAX_FORM`], if the forms of all clients together are too large, or if the
/// connection breaks.
async fn receive(
    mut body: Body,
    client: &Client,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refusal> {
    let check_length = |length: u64| match length > MAX_FORM as u64 {
        true => {
            let text = format!("the form is too long: send at most {} KiB", MAX_FORM >> 10);
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text))
        }
        false => Ok(()),
    };
    check_length(body.size_hint().lower())?;
    let mut form = Vec::new();
    let mut permits: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame =
            frame.map_err(|err| Refusal::bad(format!("the form cannot be received: {err}")))?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        check_length((form.len() + bytes.len()) as u64)?;
        let more = client.form_permits(bytes.len())?;
        match &mut permits {
            Some(permits) => permits.merge(more),
            None => permits = Some(more),
        }
        form.extend_from_slice(&bytes);
    }
    // Encoding the parameters again makes bytes that are not ASCII longer.
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    encoded.extend_pairs(form_urlencoded::parse(&form));
    let encoded = encoded.finish().into_bytes();
    if let Some(permits) = &mut permits {
        permits.merge(client.form_permits(encoded.len().saturating_sub(form.len()))?);
    }
    Ok((encoded, permits))
}

/// Returns `true` if [`receive_form`] has refused the form of a request.
pub(super) fn is_form_refused(request: &Request) -> bool {
    let form = request.extensions().get();
    form.is_some_and(|ReceivedForm(form)| form.is_err())
}

/// Converts a `POST` request to the equivalent `GET` request, whose query string consists of the parameters in the
/// address and those in the form. [`query_of`](super::request::query_of) returns this query string.
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
        task::{Context, Poll},
    };

    use axum::body::Bytes;
    use hyper::body::Frame;

    use super::*;

    /// A request body whose last bytes never arrive.
    struct IncompleteBody {
        /// The number of bytes that arrive at once.
        bytes: usize,
        /// Whether the connection breaks after these bytes.
        is_broken: bool,
    }

    impl HttpBody for IncompleteBody {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            match std::mem::take(&mut self.bytes) {
                0 if self.is_broken => {
                    Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
                }
                0 => Poll::Pending,
                bytes => Poll::Ready(Some(Ok(Frame::data(vec![b'x'; bytes].into())))),
            }
        }
    }

    /// Returns a request to a route that accepts forms. Only the first `bytes` bytes of its form arrive. Then the
    /// connection breaks if `is_broken` is `true`.
    pub(in super::super) fn unfinished(bytes: usize, is_broken: bool) -> Request {
        let body = IncompleteBody { bytes, is_broken };
        Request::post(FORM_ROUTES[0])
            .header(header::CONTENT_TYPE, FORM)
            .body(Body::new(body))
            .unwrap()
    }
}

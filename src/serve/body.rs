//! Receives the bodies of `POST` requests: forms with parameters that are too long for the address of a request, lists
//! of positions, and repertoires.

use std::{future::poll_fn, pin::Pin, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
};
use tokio::time::timeout;

use super::{JSON, Refusal, client::Client, queue::Permit, request::WholeQuery, uploads};

/// The maximum time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The kind of body that a route accepts.
#[derive(Copy, Clone, PartialEq, Eq)]
enum BodyKind {
    /// Parameters in a form, which are added to those in the address.
    Form,
    /// A list of positions in JSON.
    Positions,
    /// A repertoire: a PGN file or a book.
    Repertoire,
}

impl BodyKind {
    /// Returns the kind of body that the route at `path` accepts, or `None` for a route that refuses the method `POST`.
    /// Bodies of requests to such a route are not received.
    fn at(path: &str) -> Option<BodyKind> {
        match path {
            "/gaps" | "/practise" | "/prepare" | "/repertoire" | "/repertoire.pgn" => {
                Some(BodyKind::Form)
            }
            "/positions" => Some(BodyKind::Positions),
            uploads::PATH => Some(BodyKind::Repertoire),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            BodyKind::Form => "application/x-www-form-urlencoded",
            BodyKind::Positions => JSON,
            BodyKind::Repertoire => "application/octet-stream",
        }
    }

    /// Returns the maximum size of a body in bytes.
    fn max_bytes(self) -> usize {
        match self {
            BodyKind::Form => 48 << 10,
            BodyKind::Positions => 256 << 10,
            // Enough for a repertoire of 50,000 moves.
            BodyKind::Repertoire => 2 << 20,
        }
    }

    /// Returns the name that error messages use for a body of this kind.
    fn name(self) -> &'static str {
        match self {
            BodyKind::Form => "form",
            BodyKind::Positions => "list of positions",
            BodyKind::Repertoire => "file",
        }
    }

    /// Returns `true` if a request with these headers has a body of this kind.
    fn is_in(self, headers: &HeaderMap) -> bool {
        let named = headers.get(header::CONTENT_TYPE);
        let named = named.and_then(|media_type| media_type.to_str().ok());
        let named = named.and_then(|media_type| media_type.split(';').next());
        named.is_some_and(|named| named.trim().eq_ignore_ascii_case(self.media_type()))
    }
}

/// The body of a request, or the reason why it could not be received.
#[derive(Clone)]
struct ReceivedBody(Result<Vec<u8>, Refusal>);

/// Receives the body of a `POST` request, and attaches it to the request, from which [`take_body`] removes it later.
/// Also returns the permits for the bytes of the body, which the caller must hold as long as the request. Returns a
/// request with any other method unchanged.
pub(super) async fn receive_body(request: Request, client: &Client) -> (Request, Option<Permit>) {
    let kind = BodyKind::at(request.uri().path());
    let kind = kind.filter(|kind| kind.is_in(request.headers()));
    let (Some(kind), &Method::POST) = (kind, request.method()) else {
        return (request, None);
    };
    let (mut parts, body) = request.into_parts();
    let received = timeout(BODY_TIMEOUT, receive(body, kind, client)).await;
    let received = received.unwrap_or_else(|_| {
        let text = format!("the {} was not complete after ten seconds", kind.name());
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text))
    });
    let (body, permits) = match received {
        Ok((body, permits)) => (Ok(body), permits),
        Err(refusal) => (Err(refusal), None),
    };
    parts.extensions.insert(ReceivedBody(body));
    (Request::from_parts(parts, Body::empty()), permits)
}

/// Receives the whole body of a request. The parameters of a form are then encoded in a uniform way. Each byte needs a
/// permit, which is acquired when the byte arrives, so that bodies that arrive slowly hold few permits. If encoding
/// makes a form longer, permits for the additional bytes are acquired too.
///
/// # Errors
///
/// Returns an error response if the body is too long, if the bodies of all clients together are too large, or if the
/// connection breaks.
async fn receive(
    mut body: Body,
    kind: BodyKind,
    client: &Client,
) -> Result<(Vec<u8>, Option<Permit>), Refusal> {
    let name = kind.name();
    let check_length = |length: u64| {
        let max = kind.max_bytes();
        if length > max as u64 {
            let text = format!("the {name} is too long: send at most {} KiB", max >> 10);
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text))
        } else {
            Ok(())
        }
    };
    check_length(body.size_hint().lower())?;
    let mut received = Vec::new();
    let mut permits: Option<Permit> = None;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame =
            frame.map_err(|err| Refusal::bad(format!("the {name} cannot be received: {err}")))?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        check_length((received.len() + bytes.len()) as u64)?;
        let more = client.body_permits(bytes.len())?;
        match &mut permits {
            Some(permits) => permits.merge(more),
            None => permits = Some(more),
        }
        received.extend_from_slice(&bytes);
    }
    if kind == BodyKind::Form {
        // Encoding the parameters again makes bytes that are not ASCII longer.
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(form_urlencoded::parse(&received));
        let encoded = encoded.finish().into_bytes();
        if let Some(permits) = &mut permits {
            permits.merge(client.body_permits(encoded.len().saturating_sub(received.len()))?);
        }
        received = encoded;
    }
    Ok((received, permits))
}

/// Returns `true` if [`receive_body`] has refused the body of a request.
pub(super) fn is_body_refused(request: &Request) -> bool {
    let body = request.extensions().get();
    body.is_some_and(|ReceivedBody(body)| body.is_err())
}

/// Removes from a request the body that [`receive_body`] received, and returns this body.
///
/// # Errors
///
/// Returns an error response if the request has no body of the media type that its route accepts, or if the body could
/// not be received.
pub(super) fn take_body(request: &mut Request) -> Result<Vec<u8>, Refusal> {
    if let Some(ReceivedBody(body)) = request.extensions_mut().remove() {
        return body;
    }
    let kind = BodyKind::at(request.uri().path()).unwrap_or(BodyKind::Form);
    let text = format!(
        "the body of the request is not a {}: send it as {}",
        kind.name(),
        kind.media_type()
    );
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
}

/// Converts a `POST` request with a form to the equivalent `GET` request, whose query string consists of the parameters
/// in the address and those in the form. [`query_of`](super::request::query_of) returns this query string.
///
/// # Errors
///
/// Returns an error response if [`take_body`] does.
pub(super) fn form_as_query(mut request: Request) -> Result<Request, Refusal> {
    let form = take_body(&mut request)?;
    let query = request.uri().query().unwrap_or_default();
    let mut parameters = form_urlencoded::Serializer::new(query.to_owned());
    parameters.extend_pairs(form_urlencoded::parse(&form));
    let query = WholeQuery(parameters.finish());
    request.extensions_mut().insert(query);
    *request.method_mut() = Method::GET;
    Ok(request)
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
        unfinished_at("/gaps", bytes, is_broken)
    }

    /// Returns a request to `path`, which accepts a body. Only the first `bytes` bytes of the body arrive. Then the
    /// connection breaks if `is_broken` is `true`.
    pub(in super::super) fn unfinished_at(path: &str, bytes: usize, is_broken: bool) -> Request {
        let body = IncompleteBody { bytes, is_broken };
        let kind = BodyKind::at(path).unwrap();
        Request::post(path)
            .header(header::CONTENT_TYPE, kind.media_type())
            .body(Body::new(body))
            .unwrap()
    }
}

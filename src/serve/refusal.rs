//! Refusals: answers with an error status and a message of one line.

use std::path::Path;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::error::{self, Error};

/// The error message for a request if reading the texts of its games takes more than ten seconds.
const TOO_SLOW: &str =
    "reading these games takes too long: ask for fewer games, or serve an unpacked PGN file";

const PANICKED: &str = "the server has a bug: please report this address";

/// An answer to a request that the server refuses or cannot fulfil: an HTTP status and a message of one line.
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
        // Keep the text on one line, even if a name or a path contains control characters.
        let text = text.into().replace(char::is_control, " ");
        Refusal { status, text }
    }

    /// Creates a refusal for a malformed request, with status 400.
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, text)
    }

    /// Adds an advice to the end of the message.
    pub(super) fn with_advice(mut self, advice: &str) -> Refusal {
        self.text += &format!("; {advice}");
        self
    }

    /// Creates a refusal for a request that comes from a page of another site, with status 403.
    pub(super) fn forbidden(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, text)
    }

    /// Creates a refusal for a request for something that does not exist, with status 404.
    pub fn unknown(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, text)
    }

    /// Creates a refusal for a game id that does not exist, with status 404.
    pub(super) fn no_such_game() -> Refusal {
        Refusal::unknown("no game has this id: see the list of games")
    }

    /// Creates a refusal for a client that accepts none of the server's content codings, with status 406.
    pub(super) fn no_coding() -> Refusal {
        let text = "the header Accept-Encoding excludes all encodings of this server: allow identity or gzip";
        Refusal::new(StatusCode::NOT_ACCEPTABLE, text)
    }

    /// Creates a refusal for a request whose method is neither `GET` nor `HEAD`, with status 405.
    pub(super) fn method() -> Refusal {
        let text = "this server answers only the methods GET and HEAD";
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text)
    }

    /// Creates a refusal for a request that names the host `host`, which is not this server's, with status 421.
    pub(super) fn misdirected(host: &str) -> Refusal {
        let text = format!(
            "this server does not accept the host name \"{host}\": start the server with --allow-host NAME"
        );
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, text)
    }

    /// Creates a refusal that says that the server is too busy or cannot read its data, with status 503.
    pub fn unavailable(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// Returns the HTTP status of the response.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns the message, without a line break at its end.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Converts an error to a refusal with status 503. The message names files without their directories.
impl From<Error> for Refusal {
    fn from(err: Error) -> Refusal {
        let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
        Refusal::unavailable(match err {
            Error::Io {
                path,
                doing,
                source,
            } => {
                // A message of the operating system contains no path, but one of a library may.
                let reason = match source.raw_os_error() {
                    Some(_) => error::reason(&source),
                    None => source.kind().to_string(),
                };
                format!("cannot {doing} {}: {reason}", name(&path))
            }
            Error::File { path, problem, .. } => format!("{}: {problem}", name(&path)),
            Error::Format { path, source } => format!("{}: {source}", name(&path)),
            Error::Interrupted => TOO_SLOW.to_owned(),
            Error::Panicked { .. } => PANICKED.to_owned(),
            _ => "the server cannot read the data: see the log of the server".to_owned(),
        })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, format!("{}\n", self.text)).into_response();
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allowed);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn errors_of_the_system_are_quoted_without_directories() {
        let text_of = |source: io::Error| {
            let path = "games/secret/idx".into();
            let doing = "open";
            let err = Error::Io {
                path,
                doing,
                source,
            };
            Refusal::from(err).text().to_owned()
        };
        let system = text_of(io::Error::from_raw_os_error(24));
        assert!(system.starts_with("cannot open idx: ") && !system.contains("os error"));
        #[cfg(unix)]
        assert_eq!(system, "cannot open idx: Too many open files");
        let other = text_of(io::Error::other("games/secret/idx is bad"));
        assert_eq!(other, "cannot open idx: other error");
    }
}

//! Refusals, which are responses with an error status and an error message.

use std::path::Path;

use axum::{
    Extension,
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::JSON;
use crate::{
    error::{self, Error, NamedOption},
    text::is_unsafe,
};

/// The error message if reading the PGN text of games takes more than ten seconds.
const TOO_SLOW: &str =
    "reading these games takes too long: request fewer games, or serve an uncompressed PGN file";

const PANICKED: &str = "the server has a bug: please report this address";

/// The response to a request that the server refuses or cannot fulfill. It consists of an HTTP status and an error
/// message of one line. The message is plain text or, for a client that accepts JSON, the document `{"error": "..."}`.
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
    /// Creates an error response with an HTTP status and an error message.
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        // The text must be one line, even if a name or a path in it contains control characters.
        let text = text.into().replace(is_unsafe, " ");
        Refusal { status, text }
    }

    /// Creates an error response with status 400, for a request that is malformed or asks for something impossible.
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, text)
    }

    /// Appends advice to the error message, and returns the changed response.
    pub(super) fn with_advice(mut self, advice: &str) -> Refusal {
        self.text += &format!("; {advice}");
        self
    }

    /// Creates an error response with status 403, for a request from a page of another site.
    pub(super) fn forbidden(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, text)
    }

    /// Creates an error response with status 404, for a request for something that does not exist.
    pub fn unknown(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, text)
    }

    /// Creates an error response with status 404, for the id of a game that does not exist.
    pub(super) fn no_such_game() -> Refusal {
        Refusal::unknown("no game has this id: the address /games lists the games with their ids")
    }

    /// Creates an error response with status 406, for a client whose `Accept-Encoding` header excludes all encodings
    /// that the server can produce.
    pub(super) fn no_coding() -> Refusal {
        let text = "the header Accept-Encoding excludes all encodings of this server: allow identity or gzip";
        Refusal::new(StatusCode::NOT_ACCEPTABLE, text)
    }

    /// Creates an error response with status 405, for a request whose method the address does not accept. The router
    /// adds the header `Allow`, which lists the methods that the address accepts.
    pub(super) fn method() -> Refusal {
        let text = "this address does not accept this method: see the header Allow of this answer";
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text)
    }

    /// Creates an error response with status 421, for a request whose host `host` does not belong to this server. The
    /// message suggests allowing `name`, the host name in `host`, if there is one.
    pub(super) fn misdirected(host: &str, name: Option<&str>) -> Refusal {
        let name = name.unwrap_or("NAME");
        let text = format!(
            "this server does not accept the host name \"{host}\": start the server with --allow-host {name}"
        );
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, text)
    }

    /// Creates an error response with status 503, for a server that is too busy or cannot read its data.
    pub fn unavailable(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// Creates an error response with status 503, for a server that has too many requests to answer.
    pub(super) fn too_many() -> Refusal {
        let text = "the server is answering too many requests at once: try again later";
        Refusal::unavailable(text)
    }

    /// Returns the HTTP status of the response.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns the error message, without a line break at the end.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// An error.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Error"))]
pub(super) struct ErrorAnswer {
    /// The problem, and often what to do, in one line.
    pub(super) error: String,
}

/// Returns the name of the request parameter that corresponds to an option, for advice in an error message. Returns
/// `None` if there is no such parameter. The option of a command keeps its command-line name, because such advice is
/// for the person who runs the server.
pub(super) fn parameter(option: &NamedOption) -> Option<String> {
    if option.command.is_some() {
        return Some(option.on_command_line());
    }
    let name = match option.name {
        "max-ply" => "depth",
        "min-game" => "minGame",
        "variant" => "variant",
        "source" => "source",
        _ => return None,
    };
    let value = option.value.iter().map(|value| format!("={value}"));
    Some(name.to_owned() + &value.collect::<String>())
}

/// Converts an error to an error response with status 503. In the message, files are named without their directories,
/// and options of the command line are not mentioned.
impl From<Error> for Refusal {
    fn from(err: Error) -> Refusal {
        let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
        Refusal::unavailable(match err {
            Error::Io {
                path,
                doing,
                source,
            } => {
                // A message of the operating system contains no path, but a message of a library may.
                let reason = match source.raw_os_error() {
                    Some(_) => error::reason(&source),
                    None => source.kind().to_string(),
                };
                format!("cannot {doing} {}: {reason}", name(&path))
            }
            Error::Option { problem, .. } => problem.worded(parameter),
            Error::File { path, problem, .. } => {
                format!("{}: {}", name(&path), problem.worded(parameter))
            }
            Error::Format { path, source } => format!("{}: {source}", name(&path)),
            Error::Busy { path } => {
                format!("another program is writing {}: try again", name(&path))
            }
            Error::Interrupted => TOO_SLOW.to_owned(),
            Error::Panicked { .. } => PANICKED.to_owned(),
            _ => "the server cannot read the data".to_owned(),
        })
    }
}

/// Creates a response in plain text, to which the refusal is attached, so that `as_json` can create the same response
/// in JSON.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let vary = [(header::VARY, "accept")];
        let text = format!("{}\n", self.text);
        (self.status, vary, Extension(self), text).into_response()
    }
}

/// Replaces the plain text of an error response with the JSON document `{"error": "..."}`. Returns all other responses
/// unchanged.
pub(super) fn as_json(mut response: Response) -> Response {
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        // The text may be compressed.
        headers.remove(header::CONTENT_ENCODING);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        let document = serde_json::to_vec(&ErrorAnswer {
            error: refusal.text,
        });
        *response.body_mut() = Body::from(document.expect("a text is JSON"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::{Advice, Diagnosis, ErrorKind};

    #[test]
    fn advice_names_parameters_or_nothing_that_requests_lack() {
        let few = Diagnosis::new("none of 3 moves is kept")
            .advise(Advice::option("{} keeps them", "min-game").with_value(1));
        let large = || {
            Diagnosis::new("more than 9 positions")
                .advise(Advice::larger("memory"))
                .advise(Advice::smaller("max-ply"))
        };
        let old = Diagnosis::new("this index is old")
            .advise(Advice::option("make an index with {}", "explorer").of_command("make-book"));
        for (problem, expected) in [
            (few, "none of 3 moves is kept: minGame=1 keeps them"),
            (large(), "more than 9 positions: use a smaller depth"),
            (
                Diagnosis::new("no move").advise(Advice::option("give {}", "from")),
                "no move",
            ),
            (
                old,
                "this index is old: make an index with polybook make-book --explorer",
            ),
        ] {
            assert_eq!(problem.worded(parameter), expected);
        }
        let option = Error::option(ErrorKind::TooLarge, "memory", large());
        assert_eq!(
            Refusal::from(option).text(),
            "more than 9 positions: use a smaller depth"
        );
    }

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
        let path = "games/secret/idx".into();
        let busy = Refusal::from(Error::Busy { path });
        assert_eq!(busy.text(), "another program is writing idx: try again");
    }
}

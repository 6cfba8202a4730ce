//! The files of the web page, which are compiled into the program.
//!
//! The page has no build step: before its files are sent, only comments, type annotations and indentation are removed.
//! After an action of the user, its modules update the page in these steps:
//!
//! 1. The module that handles the action, such as `controls.js`, calls `navigation.js`, which changes the requested
//!    view in `session.js`.
//! 2. `show.js` requests the data of the view with `requests.js`, and changes the page's URL with `history.js` and
//!    `state.js`.
//! 3. `show.js` draws the view: `boardview.js` draws the board, and `panelview.js` everything next to it.
//! 4. `details.js` draws the games, openings and trends, which load after the results of the moves.
//!
//! `recovery.js` reports failed requests, and returns to the previous view. `explorer.js` starts the page.
//!
//! Other pages embed a board with its moves: `embed.js` defines an element for it, and with the parameter `embed=1`,
//! the page contains only this element.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    Refusal,
    content::{cache_headers, etag_of, not_modified},
    request::{boolean, query_of},
};

/// A file of the web page, with its path on the server, its media type and its text, comments included.
#[derive(Copy, Clone, Debug)]
struct File {
    path: &'static str,
    media_type: &'static str,
    source: &'static str,
}

macro_rules! files {
    ($($path:literal $($name:literal)+ $media_type:ident;)*) => {
        [$(File {
            path: $path,
            media_type: $media_type,
            source: concat!($(include_str!(concat!("page/", $name))),+),
        }),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const ICON: &str = "image/svg+xml";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

// One style sheet is smaller when it is compressed than four.
const FILES: [File; 49] = files! {
    "/" "index.html" HTML;
    "/icon.svg" "icon.svg" ICON;
    "/style.css" "style.css" "layout.css" "panels.css" "dialogs.css" STYLE;
    "/api.js" "api.js" SCRIPT;
    "/arrows.js" "arrows.js" SCRIPT;
    "/bars.js" "bars.js" SCRIPT;
    "/board.js" "board.js" SCRIPT;
    "/boardview.js" "boardview.js" SCRIPT;
    "/chips.js" "chips.js" SCRIPT;
    "/controls.js" "controls.js" SCRIPT;
    "/details.js" "details.js" SCRIPT;
    "/dialogs.js" "dialogs.js" SCRIPT;
    "/dom.js" "dom.js" SCRIPT;
    "/edits.js" "edits.js" SCRIPT;
    "/elements.js" "elements.js" SCRIPT;
    "/embed.js" "embed.js" SCRIPT;
    "/explain.js" "explain.js" SCRIPT;
    "/explorer.js" "explorer.js" SCRIPT;
    "/filters.js" "filters.js" SCRIPT;
    "/format.js" "format.js" SCRIPT;
    "/game.js" "game.js" SCRIPT;
    "/games.js" "games.js" SCRIPT;
    "/heading.js" "heading.js" SCRIPT;
    "/history.js" "history.js" SCRIPT;
    "/line.js" "line.js" SCRIPT;
    "/makebook.js" "makebook.js" SCRIPT;
    "/me.js" "me.js" SCRIPT;
    "/medialog.js" "medialog.js" SCRIPT;
    "/moves.js" "moves.js" SCRIPT;
    "/navigation.js" "navigation.js" SCRIPT;
    "/openings.js" "openings.js" SCRIPT;
    "/panelview.js" "panelview.js" SCRIPT;
    "/pieces.js" "pieces.js" SCRIPT;
    "/practise.js" "practise.js" SCRIPT;
    "/prepare.js" "prepare.js" SCRIPT;
    "/readtext.js" "readtext.js" SCRIPT;
    "/recovery.js" "recovery.js" SCRIPT;
    "/repertoire.js" "repertoire.js" SCRIPT;
    "/repertoireview.js" "repertoireview.js" SCRIPT;
    "/requests.js" "requests.js" SCRIPT;
    "/returning.js" "returning.js" SCRIPT;
    "/search.js" "search.js" SCRIPT;
    "/sent.js" "sent.js" SCRIPT;
    "/session.js" "session.js" SCRIPT;
    "/show.js" "show.js" SCRIPT;
    "/state.js" "state.js" SCRIPT;
    "/states.js" "states.js" SCRIPT;
    "/suggest.js" "suggest.js" SCRIPT;
    "/trends.js" "trends.js" SCRIPT;
};

/// The page that contains only a board and its moves, which other pages show in a frame.
const EMBEDDED: File = File {
    path: "/",
    media_type: HTML,
    source: include_str!("page/embed.html"),
};

/// Returns the routes for the files of the web page.
pub(super) fn routes() -> Router {
    let embedded = Bytes::from(EMBEDDED.text());
    let routes = FILES.into_iter().fold(Router::new(), |router, file| {
        let (body, embedded) = (Bytes::from(file.text()), embedded.clone());
        let answer = async move |request: Request| match file.path {
            "/" if is_embedded(&request) => EMBEDDED.answer(&request, embedded.clone()),
            _ => file.answer(&request, body.clone()),
        };
        router.route(file.path, get(answer))
    });
    routes.method_not_allowed_fallback(async || Refusal::method())
}

/// Returns `true` if a request for the page asks for the page that other pages embed.
fn is_embedded(request: &Request) -> bool {
    let mut parameters = form_urlencoded::parse(query_of(request).as_bytes());
    parameters.any(|(name, value)| name == "embed" && boolean(&value) == Some(true))
}

impl File {
    /// Creates the response to a request for this file. `body` is the text of the file without comments. The response
    /// has status 304 and no body if the client already has the file.
    fn answer(self, request: &Request, body: Bytes) -> Response {
        let etag = etag_of(&self.source);
        if let Some(response) = not_modified(request.headers(), &etag) {
            return response;
        }
        let headers = [(header::CONTENT_TYPE, self.media_type)];
        (cache_headers(etag), headers, Body::from(body)).into_response()
    }

    /// Returns the text of the file without comments, JSDoc types and indentation, with which the response would be 40
    /// % larger. Style sheets also lose the spaces around punctuation.
    fn text(self) -> String {
        let mut stripped = String::with_capacity(self.source.len());
        let mut is_comment = false;
        for line in self.source.lines().map(str::trim) {
            // Only types are removed from lines of code.
            let begins = line.starts_with("/*") && (line.ends_with("*/") || !line.contains("*/"));
            is_comment |= begins;
            if !is_comment && !line.is_empty() && !line.starts_with("//") {
                let line = match self.media_type {
                    STYLE => compact(line),
                    _ => line.to_owned() + "\n",
                };
                let mut parts = line.split("/** @type ");
                stripped += parts.next().unwrap_or_default();
                for part in parts {
                    stripped += part.split_once("*/ ").map_or(part, |(_, code)| code);
                }
            }
            is_comment &= !line.ends_with("*/");
        }
        stripped
    }
}

/// Returns a line of a style sheet without the spaces and the line break next to punctuation.
fn compact(line: &str) -> String {
    let mut line = line.to_owned() + "\n";
    for (long, short) in [
        ("; }", "}"),
        (" {", "{"),
        ("{ ", "{"),
        (": ", ":"),
        ("; ", ";"),
        (", ", ","),
        ("{\n", "{"),
        ("}\n", "}"),
        (";\n", ";"),
        (",\n", ","),
    ] {
        line = line.replace(long, short);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for file in FILES {
            // A name space is no address, and a link is followed only by a press.
            let elsewhere = file
                .source
                .replace("http://www.w3.org/2000/svg", "")
                .replace("https://lichess.org/analysis/", "");
            assert!(!elsewhere.contains("://"), "{}", file.path);
        }
    }

    #[test]
    fn comments_and_indentation_are_removed() {
        let source = "/** A\n * b. */\n\n// c\nconst a = /** @type {B} */ (b);\n  /** @type {B} */ (b).c();\n  /* d */\n  e();\n";
        let file = File { source, ..FILES[0] };
        let text = "const a = (b);\n(b).c();\ne();\n";
        assert_eq!(file.text(), text);
        let source =
            "/* a */\na, .b :hover {\n  c: d, e; f: g;\n}\n@media (h: i) { j { k: l; } }\n";
        let media_type = STYLE;
        let file = File {
            source,
            media_type,
            ..file
        };
        let text = "a,.b :hover{c:d,e;f:g;}@media (h:i){j{k:l} }";
        assert_eq!(file.text(), text);
    }

    #[test]
    fn imports_of_the_modules_exist_and_form_no_circle() {
        let scripts = FILES.iter().filter(|file| file.media_type == SCRIPT);
        let mut imports: Vec<(&str, Vec<String>)> = scripts
            .map(|file| {
                let lines = file.source.lines();
                let paths = lines.filter_map(|line| {
                    let (statement, path) = line.split_once("\"./")?;
                    let is_import = ["import ", "} from "]
                        .iter()
                        .any(|begin| statement.starts_with(begin));
                    is_import.then(|| format!("/{}", path.trim_end_matches("\";")))
                });
                (file.path, paths.collect())
            })
            .collect();
        for (path, imported) in &imports {
            for import in imported {
                assert!(
                    FILES.iter().any(|file| file.path == import),
                    "{path}: {import}"
                );
            }
        }
        // Remove the modules whose imports are removed, until none is left.
        while !imports.is_empty() {
            let left: Vec<&str> = imports.iter().map(|(path, _)| *path).collect();
            imports.retain(|(_, imported)| imported.iter().any(|one| left.contains(&&**one)));
            assert!(imports.len() < left.len(), "a circle of imports: {left:?}");
        }
    }
}

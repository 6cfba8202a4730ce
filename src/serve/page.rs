//! The page's files, which are part of the program.

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    Refusal,
    content::{etag_of, not_modified},
};

/// What the page may load and do: its own files, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Copy, Clone, Debug)]
struct File {
    path: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal $name:literal $media_type:expr;)*) => {
        [$(File {
            path: $path,
            media_type: $media_type,
            bytes: include_bytes!(concat!("page/", $name)),
        }),*]
    };
}

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [File; 33] = files! {
    "/" "index.html" "text/html; charset=utf-8";
    "/icon.svg" "icon.svg" "image/svg+xml";
    "/dialogs.css" "dialogs.css" STYLE;
    "/layout.css" "layout.css" STYLE;
    "/panels.css" "panels.css" STYLE;
    "/style.css" "style.css" STYLE;
    "/api.js" "api.js" SCRIPT;
    "/arrows.js" "arrows.js" SCRIPT;
    "/bars.js" "bars.js" SCRIPT;
    "/board.js" "board.js" SCRIPT;
    "/chips.js" "chips.js" SCRIPT;
    "/dom.js" "dom.js" SCRIPT;
    "/explorer.js" "explorer.js" SCRIPT;
    "/filters.js" "filters.js" SCRIPT;
    "/format.js" "format.js" SCRIPT;
    "/game.js" "game.js" SCRIPT;
    "/games.js" "games.js" SCRIPT;
    "/ground.js" "ground.js" SCRIPT;
    "/heading.js" "heading.js" SCRIPT;
    "/keys.js" "keys.js" SCRIPT;
    "/line.js" "line.js" SCRIPT;
    "/makebook.js" "makebook.js" SCRIPT;
    "/moves.js" "moves.js" SCRIPT;
    "/pieces.js" "pieces.js" SCRIPT;
    "/search.js" "search.js" SCRIPT;
    "/squares.js" "squares.js" SCRIPT;
    "/state.js" "state.js" SCRIPT;
    "/states.js" "states.js" SCRIPT;
    "/strips.js" "strips.js" SCRIPT;
    "/suggest.js" "suggest.js" SCRIPT;
    "/trends.js" "trends.js" SCRIPT;
    "/words.js" "words.js" SCRIPT;
    "/years.js" "years.js" SCRIPT;
};

/// The routes of the page.
pub(super) fn routes() -> Router {
    let routes = FILES.into_iter().fold(Router::new(), |router, file| {
        router.route(
            file.path,
            get(async move |request: Request| file.answer(&request)),
        )
    });
    routes.method_not_allowed_fallback(async || Refusal::method())
}

impl File {
    fn answer(self, request: &Request) -> Response {
        let etag = etag_of(&self.bytes);
        if let Some(response) = not_modified(request.headers(), &etag) {
            return response;
        }
        let headers = [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, "no-cache"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
        ];
        ([(header::ETAG, etag)], headers, Body::from(self.bytes)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let size: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(size < 150_000, "{size}");
        for file in FILES {
            let text = std::str::from_utf8(file.bytes).unwrap();
            let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!elsewhere.contains("://"), "{}", file.path);
        }
    }

    #[test]
    fn what_the_modules_import_is_there() {
        for file in FILES.iter().filter(|file| file.media_type == SCRIPT) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for import in text.split("from \"./").skip(1) {
                let (name, _) = import.split_once('"').unwrap();
                let path = format!("/{name}");
                assert!(
                    FILES.iter().any(|file| file.path == path),
                    "{}: {name}",
                    file.path
                );
            }
        }
    }
}

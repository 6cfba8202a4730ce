//! The files of the web page, which are compiled into the program. They are minified before they are sent.

use std::{str::Chars, sync::LazyLock};

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
    content::{etag_of, not_modified},
};

/// A file of the web page, with its path on the server and its media type.
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

/// Replacements that shorten punctuation in minified scripts. Each pair contains a string and its shorter equivalent.
const PACKED: [(&str, &str); 4] = [(";}", "}"), (",}", "}"), (",)", ")"), (",]", "]")];

/// Replacements that shorten keywords in scripts. Each pair contains a keyword and its shorter equivalent. Replacing
/// `const` with `let` is safe, because the type checker has already verified that no constant is assigned.
const WORDS: [(&str, &str); 4] = [
    ("const", "let"),
    ("false", "!1"),
    ("true", "!0"),
    ("undefined", "void 0"),
];

const FILES: [File; 57] = files! {
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
    "/boardview.js" "boardview.js" SCRIPT;
    "/chips.js" "chips.js" SCRIPT;
    "/controls.js" "controls.js" SCRIPT;
    "/details.js" "details.js" SCRIPT;
    "/dialogs.js" "dialogs.js" SCRIPT;
    "/dom.js" "dom.js" SCRIPT;
    "/edits.js" "edits.js" SCRIPT;
    "/elements.js" "elements.js" SCRIPT;
    "/explain.js" "explain.js" SCRIPT;
    "/explorer.js" "explorer.js" SCRIPT;
    "/filters.js" "filters.js" SCRIPT;
    "/format.js" "format.js" SCRIPT;
    "/game.js" "game.js" SCRIPT;
    "/games.js" "games.js" SCRIPT;
    "/ground.js" "ground.js" SCRIPT;
    "/heading.js" "heading.js" SCRIPT;
    "/history.js" "history.js" SCRIPT;
    "/keys.js" "keys.js" SCRIPT;
    "/line.js" "line.js" SCRIPT;
    "/makebook.js" "makebook.js" SCRIPT;
    "/me.js" "me.js" SCRIPT;
    "/medialog.js" "medialog.js" SCRIPT;
    "/moves.js" "moves.js" SCRIPT;
    "/navigation.js" "navigation.js" SCRIPT;
    "/openings.js" "openings.js" SCRIPT;
    "/panelview.js" "panelview.js" SCRIPT;
    "/pieces.js" "pieces.js" SCRIPT;
    "/prepare.js" "prepare.js" SCRIPT;
    "/readtext.js" "readtext.js" SCRIPT;
    "/recovery.js" "recovery.js" SCRIPT;
    "/repertoire.js" "repertoire.js" SCRIPT;
    "/repertoireview.js" "repertoireview.js" SCRIPT;
    "/requests.js" "requests.js" SCRIPT;
    "/returning.js" "returning.js" SCRIPT;
    "/search.js" "search.js" SCRIPT;
    "/session.js" "session.js" SCRIPT;
    "/show.js" "show.js" SCRIPT;
    "/sources.js" "sources.js" SCRIPT;
    "/squares.js" "squares.js" SCRIPT;
    "/state.js" "state.js" SCRIPT;
    "/states.js" "states.js" SCRIPT;
    "/strips.js" "strips.js" SCRIPT;
    "/suggest.js" "suggest.js" SCRIPT;
    "/trends.js" "trends.js" SCRIPT;
    "/views.js" "views.js" SCRIPT;
    "/words.js" "words.js" SCRIPT;
    "/years.js" "years.js" SCRIPT;
};

/// The names of the custom properties in the style sheets, sorted. Minification shortens these names in style sheets
/// and scripts.
static PROPERTIES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let styles = FILES.iter().filter(|file| file.media_type == STYLE);
    let styles = styles.map(|file| String::from_utf8_lossy(file.bytes));
    names(&styles.collect::<String>(), "var(--")
});

/// Returns the routes for the files of the web page.
pub(super) fn routes() -> Router {
    let routes = FILES.into_iter().fold(Router::new(), |router, file| {
        let body = Bytes::from(file.packed());
        router.route(
            file.path,
            get(async move |request: Request| file.answer(&request, body.clone())),
        )
    });
    routes.method_not_allowed_fallback(async || Refusal::method())
}

impl File {
    /// Creates the response to a request for this file. `body` is the minified file. If the client already has the
    /// file, the response has status 304 and no body.
    fn answer(self, request: &Request, body: Bytes) -> Response {
        let etag = etag_of(&self.bytes);
        if let Some(response) = not_modified(request.headers(), &etag) {
            return response;
        }
        let headers = [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        ([(header::ETAG, etag)], headers, Body::from(body)).into_response()
    }

    /// Returns the minified text of the file, without comments, indentation and unnecessary spaces.
    fn packed(self) -> String {
        let text = String::from_utf8_lossy(self.bytes);
        match self.media_type {
            SCRIPT => packed_script(&text),
            STYLE => {
                let text = without_comments(&renamed(&text, "--", &PROPERTIES), "/*");
                let mut packed = String::new();
                for line in lines(&text) {
                    packed += &tight_style(line);
                    if !packed.ends_with(['{', '}', ',', ';']) {
                        packed.push('\n');
                    }
                }
                packed.replace("\n}", "}").replace(";}", "}")
            }
            _ => {
                let lines: Vec<&str> = lines(&text).collect();
                lines.join("\n").replace(">\n<", "><")
            }
        }
    }
}

/// Returns an iterator over the lines of a text, without blank lines. Each line is trimmed.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Minifies a script: removes comments and unnecessary spaces, and shortens the names of private members. Every
/// statement of the script must end with a semicolon, because the function joins lines.
fn packed_script(text: &str) -> String {
    let text = renamed(text, "#", &names(text, ".#"));
    let text = without_comments(&renamed(&text, "--", &PROPERTIES), "/**");
    let mut joined = String::new();
    let mut declares = false;
    for line in lines(&text).filter(|line| !line.starts_with("//")) {
        // Consecutive constants are joined into one declaration.
        let constant = line.strip_prefix("const ");
        match constant {
            Some(more) if declares => {
                joined.truncate(joined.trim_end_matches(";\n").len());
                joined += &format!(", {more}");
            }
            _ => joined += line,
        }
        joined.push('\n');
        declares = constant.is_some() && line.ends_with(';');
    }
    let pieces = pieces(&joined).into_iter();
    let packed = pieces.map(|(is_code, piece)| match is_code {
        true => tight_code(&piece),
        false => piece,
    });
    packed.collect()
}

/// Removes the comments from a style sheet or script. A comment begins with `begin`, which is `/*` or `/**`, and ends
/// with `*/`. String literals must not contain `begin`, because the function does not recognize string literals.
fn without_comments(text: &str, begin: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| {
        let (_, after) = part.split_once("*/").unwrap_or_default();
        after.strip_prefix(' ').unwrap_or(after)
    });
    [first].into_iter().chain(rest).collect()
}

/// Splits a script into pieces. A piece is either code (`true`), or a string or regular expression (`false`). Only code
/// may be minified.
fn pieces(script: &str) -> Vec<(bool, String)> {
    let mut pieces = Vec::new();
    let mut code = String::new();
    // For each template literal that is open, the number of open braces in its current `${...}`.
    let mut open: Vec<usize> = Vec::new();
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        let text = match letter {
            '"' => read_text(&mut letters, &mut open, "\""),
            '`' => read_text(&mut letters, &mut open, "`"),
            '}' if open.last() == Some(&0) => {
                open.pop();
                read_text(&mut letters, &mut open, "`")
            }
            '/' if begins_expression(&code) => read_expression(&mut letters),
            _ => {
                match (letter, open.last_mut()) {
                    ('{', Some(braces)) => *braces += 1,
                    ('}', Some(braces)) => *braces -= 1,
                    _ => {}
                }
                code.push(letter);
                continue;
            }
        };
        pieces.push((true, std::mem::take(&mut code)));
        pieces.push((false, format!("{letter}{text}")));
    }
    pieces.push((true, code));
    pieces
}

/// Reads the rest of a string or template literal, up to and including its end mark `end`, and returns it. In a
/// template literal, also stops after `${`, where code begins, and pushes 0 onto `open`. Each element of `open` is the
/// number of open braces in one `${...}`.
fn read_text(letters: &mut Chars<'_>, open: &mut Vec<usize>, end: &str) -> String {
    let mut text = String::new();
    for letter in letters {
        text.push(letter);
        if text.ends_with(end) {
            break;
        }
        if end == "`" && text.ends_with("${") {
            open.push(0);
            break;
        }
    }
    text
}

/// Returns `true` if a slash that follows `code` begins a regular expression. Otherwise, the slash is a division.
fn begins_expression(code: &str) -> bool {
    let code = code.trim_end();
    code.ends_with(['(', ',', '=', ':', '[', '!', '&', '|', '?', '{', ';'])
        || code.ends_with("=>")
        || code.ends_with("return")
}

/// Reads the rest of a regular expression, including its final slash, and returns it.
fn read_expression(letters: &mut Chars<'_>) -> String {
    let (mut text, mut is_escaped, mut is_class) = (String::new(), false, false);
    for letter in letters {
        text.push(letter);
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => break,
            _ => {}
        }
    }
    text
}

/// Finds all names in a text that directly follow the string `mark`. Returns them sorted and deduplicated.
fn names(text: &str, mark: &str) -> Vec<String> {
    let names = text.split(mark).skip(1).map(|part| split_name(part).0);
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Shortens names in a text that directly follow the string `mark`, and returns the new text. Only names in `names` are
/// shortened. The new name depends on the index in `names`: `a` to `z`, then `a1`, `b1` and so on.
fn renamed(text: &str, mark: &str, names: &[String]) -> String {
    let mut parts = text.split(mark);
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = split_name(part);
        renamed += mark;
        match names.iter().position(|known| known == name) {
            Some(index) => {
                renamed.push(char::from(b'a' + (index % 26) as u8));
                if index >= 26 {
                    renamed += &(index / 26).to_string();
                }
            }
            None => renamed += name,
        }
        renamed += rest;
    }
    renamed
}

/// Splits `text` into the name with which it begins, and the rest. A name consists of letters, digits and hyphens, and
/// may be empty.
fn split_name(text: &str) -> (&str, &str) {
    let is_end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// Minifies JavaScript code: removes unnecessary spaces, shortens keywords, and removes the parentheses around single
/// parameters. The code must not contain string literals.
fn tight_code(code: &str) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
    let code = without_blanks(code);
    let parts = code.split_inclusive(|letter| !is_word(letter));
    let words = parts.map(|part| {
        let word = part.trim_end_matches(|letter| !is_word(letter));
        let short = WORDS.iter().find(|(long, _)| *long == word);
        format!(
            "{}{}",
            short.map_or(word, |(_, short)| short),
            &part[word.len()..]
        )
    });
    let code = words.collect::<String>();
    let mut parts = code.split(")=>").peekable();
    let mut shorter = String::new();
    while let Some(part) = parts.next() {
        let (before, name) = part.rsplit_once('(').unwrap_or((part, ""));
        let is_single = !name.is_empty() && name.chars().all(is_word) && !before.ends_with(is_word);
        shorter += &match parts.peek() {
            None => part.to_owned(),
            Some(_) if is_single => format!("{before}{name}=>"),
            Some(_) => format!("{part})=>"),
        };
    }
    let packed = PACKED.into_iter();
    packed.fold(shorter, |code, (whole, short)| code.replace(whole, short))
}

/// Removes the spaces next to punctuation from JavaScript code. The code must not contain string literals. Line breaks
/// count as spaces. In `a - -b`, the second space is kept, because `a--b` means something else.
fn without_blanks(code: &str) -> String {
    let code = code.replace('\n', " ");
    let is_punctuation = |letter: &char| "=+-*/?:<>&|,;{}()[]!.".contains(*letter);
    let mut tight = String::new();
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = tight.chars().last();
        // Strings are separate pieces, so the beginning and the end of the code are next to punctuation, too.
        let is_beside =
            last.as_ref().is_none_or(is_punctuation) || letters.peek().is_none_or(is_punctuation);
        let is_doubled = last == letters.peek().copied() && matches!(last, Some('+' | '-'));
        if letter != ' ' || !is_beside || is_doubled {
            tight.push(letter);
        }
    }
    tight
}

/// Removes the spaces after punctuation and before opening braces from a line of a style sheet.
fn tight_style(line: &str) -> String {
    let mut line = line.replace(" {", "{");
    for sign in [':', ';', ',', '{'] {
        line = line.replace(&format!("{sign} "), &sign.to_string());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for file in FILES {
            let text = std::str::from_utf8(file.bytes).unwrap();
            // A name space is no address, and a link is followed only by a press.
            let elsewhere = text
                .replace("http://www.w3.org/2000/svg", "")
                .replace("https://lichess.org/analysis/", "");
            assert!(!elsewhere.contains("://"), "{}", file.path);
        }
    }

    #[test]
    fn packed_scripts_keep_their_strings() {
        for (script, packed) in [
            (r#"say("a = b", x = { y: 1 });"#, r#"say("a = b",x={y:1});"#),
            (
                "const text = `a = ${b + c} = d`;",
                "let text=`a = ${b+c} = d`;",
            ),
            (r#"f("const a; }", true);"#, r#"f("const a; }",!0);"#),
            ("a = b - -c + +d;", "a=b- -c+ +d;"),
            ("f((a) => async (b) => c);", "f(a=>async(b)=>c);"),
            (
                "f(() => g(a, (b) => a.b), isTrue);",
                "f(()=>g(a,b=>a.b),isTrue);",
            ),
            (
                "a = `b ${c ? `d = ${{ e: 1 }}` : f} = g`;",
                "a=`b ${c?`d = ${{e:1}}`:f} = g`;",
            ),
            ("a = (b + c) / d / e;", "a=(b+c)/d/e;"),
            (
                "if (/a = [/] \\/ b/.test(c)) return / d/;",
                "if(/a = [/] \\/ b/.test(c))return/ d/;",
            ),
            (
                "} else if (a && !b) return (c);",
                "}else if(a&&!b)return(c);",
            ),
            (
                "const a = 1;\n// Why.\nconst b = f(() => {\n  c();\n});\nconst d = 2;\nconst e = [\n  3,\n];",
                "let a=1,b=f(()=>{c()});let d=2,e=[3];",
            ),
            (
                "if (a) {\n  b = c\n    .d;\n}\nlet e;",
                "if(a){b=c.d}let e;",
            ),
        ] {
            assert_eq!(packed_script(script), packed);
        }
        assert_eq!(without_comments("a /** b */ (c) /** d */", "/**"), "a (c) ");
        assert_eq!(
            tight_style("a:is(b, c) { d: e f; g: h; }"),
            "a:is(b,c){d:e f;g:h;}"
        );
        let names_of = |text| names(text, ".#");
        let text = "#one; this.#two(this.#one, \"#fff\")";
        assert_eq!(
            renamed(text, "#", &names_of(text)),
            "#a; this.#b(this.#a, \"#fff\")"
        );
        for file in FILES.iter().filter(|file| file.media_type == SCRIPT) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for name in names_of(text) {
                for begin in ["\"", "`", "("] {
                    let selector = format!("{begin}#{name}");
                    assert!(!text.contains(&selector), "{}: {selector}", file.path);
                }
            }
            assert!(!text.contains("\\\""), "{}: an escaped quote", file.path);
        }
    }

    #[test]
    fn imports_of_the_modules_exist_and_form_no_circle() {
        let scripts = FILES.iter().filter(|file| file.media_type == SCRIPT);
        let mut imports: Vec<(&str, Vec<String>)> = scripts
            .map(|file| {
                let text = std::str::from_utf8(file.bytes).unwrap();
                let lines = text.lines();
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

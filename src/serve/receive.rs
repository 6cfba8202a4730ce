//! Receives repertoires from visitors, who drop a file on the web page or build a repertoire there.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{Extension, extract, extract::State, response::Response};
use serde::Serialize;
use shakmaty::Color;
use unicode_normalization::UnicodeNormalization;

use super::{
    Parameters, Refusal, ServedRepertoire,
    body::take_body,
    client::{Client, READING, StopAtEnd, while_wanted},
    content::{CacheKey, ResponseBody},
    guard::check_own_page,
    make::side,
    queue::Visitor,
    state::AppState,
    uploads::{MAX_KEPT, Uploads},
};
use crate::{
    error::Error,
    explore::repertoire::{OpenOptions, OpenedSource},
    formats::book::is_book_or_empty,
    games::pgn::NO_GAME,
    kind::FileKind,
    storage::{output::TemporaryDir, sort::Memory},
};

/// The memory budget for reading a repertoire, in bytes.
const MEMORY_BUDGET: usize = 32 << 20;

/// The names of the parameters that a request with a repertoire accepts.
pub(super) const RECEIVE_PARAMETERS: [&str; 2] = ["name", "side"];

/// The names of the parameters that a request for a visitor's own repertoires accepts.
pub(super) const SENT_PARAMETERS: [&str; 1] = ["id"];

/// The maximum length of a repertoire's name in bytes. Many file systems allow 255 bytes for the name of a file, which
/// also contains the side and the ending of the results of practice.
const MAX_NAME: usize = 120;

/// Returns the name for a repertoire whose file is called `file`: its letters, digits, spaces, hyphens and underscores
/// up to the first dot. A letter with accents is one character. Returns `repertoire` if there are none.
fn name_of(file: &str) -> String {
    let stem = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default();
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name: String = stem.nfc().filter(kept).collect();
    let name = &name[..name.floor_char_boundary(MAX_NAME)];
    match name.trim() {
        "" => "repertoire".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns a secret that other visitors cannot guess.
fn new_id() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    let failed = |_| Refusal::unavailable("the system gives no random numbers: try again later");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// A repertoire that a visitor sent.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ReceivedRepertoire<'a> {
    #[serde(flatten)]
    served: &'a ServedRepertoire,
    /// The problems that were found when the file was read.
    warnings: Vec<String>,
    /// Whether the server keeps the file after it is stopped.
    stored: bool,
}

/// Answers `POST /repertoires`: reads the body of the request, a PGN file or a book, as a repertoire. The parameters
/// are the name of the file (`name`) and the side of the repertoire (`side`). The response contains the secret `id`,
/// which identifies the repertoire in later requests, where other repertoires are identified by name.
pub(super) async fn receive(
    State(app): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    mut request: extract::Request,
) -> Result<Response, Refusal> {
    check_own_page(request.headers())?;
    let bytes = take_body(&mut request)?;
    let (key, visitor) = (CacheKey::of(&request), client.visitor());
    let stop = StopAtEnd::default();
    let (state, flag) = (Arc::clone(&app), Arc::clone(&stop.0));
    let work = move || open(&state, &key, &bytes, visitor, &flag);
    let content = app.readers.content(&client, work);
    let too_long = || {
        Refusal::unavailable(
            "reading the repertoire takes too long: start the server with the file",
        )
    };
    let content = while_wanted(&client, READING, content, too_long).await??;
    Ok(content.answer_from_files(request.headers()))
}

/// Stores and opens a repertoire that `visitor` sent. `bytes` is the content of its file. Setting `stop` cancels the
/// reading.
fn open(
    app: &AppState,
    key: &CacheKey,
    bytes: &[u8],
    visitor: Visitor,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let parameters = Parameters::parse_only(&key.query, &RECEIVE_PARAMETERS)?;
    let color = side(&parameters)?;
    let name = name_of(parameters.text("name").unwrap_or_default());
    let id = new_id()?;
    // The file is opened in a directory of its own, so that a file that is no repertoire is never stored.
    let trial = Uploads::new(None, false);
    let is_taken = |name: &str| {
        let mut of_start = app.repertoires.iter();
        of_start.any(|one| one.color == color && one.name == name)
    };
    let (path, directory) = trial.store(&name, color, bytes, &is_taken)?;
    let known = opened(&path, directory.as_ref(), stop)?;
    let warnings: Vec<String> = known
        .warnings()
        .iter()
        .cloned()
        .chain(known.color_warning(color)?)
        .collect();
    let served = ServedRepertoire::new(&path, color, known)?;
    if served.unedited.predecessors.is_empty() {
        return Err(not_for(color));
    }
    let served = match &app.uploads.directory {
        None => served.sent_by_visitor(id, directory),
        Some(_) => {
            let (path, _) = app.uploads.store(&name, color, bytes, &is_taken)?;
            open_stored(&path, color, stop)?.sent_by_visitor(id, None)
        }
    };
    let served = Arc::new(served);
    let received = ResponseBody::json(&ReceivedRepertoire {
        served: &served,
        warnings,
        stored: app.uploads.directory.is_some(),
    });
    app.uploads.keep(visitor, served);
    received
}

/// Opens the repertoire that was stored at `path`. If this fails or if `stop` is set, removes the file, because the
/// visitor gets an error and does not expect the server to keep the repertoire.
fn open_stored(
    path: &Path,
    color: Color,
    stop: &Arc<AtomicBool>,
) -> Result<ServedRepertoire, Refusal> {
    let open = || {
        let served = ServedRepertoire::new(path, color, opened(path, None, stop)?)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        Ok(served)
    };
    open().inspect_err(|_| {
        // The visitor gets the first error.
        let _ = fs::remove_file(path);
    })
}

fn not_for(color: Color) -> Refusal {
    Refusal::bad(format!(
        "the file contains no move for {color}: choose the other side, or another file"
    ))
}

/// Opens the repertoire at `path`. `directory` is the directory for temporary files, or `None` for the usual one; a
/// book or a PGN needs no index of its own there. Setting `stop` cancels the reading.
fn opened(
    path: &Path,
    directory: Option<&TemporaryDir>,
    stop: &Arc<AtomicBool>,
) -> Result<OpenedSource, Refusal> {
    let neither = || {
        let problem = "this file is neither a PGN file nor a book: send an uncompressed PGN file, or a book (.bin)";
        Refusal::bad(problem)
    };
    if FileKind::of(path)? != FileKind::Other && !is_book_or_empty(path)? {
        return Err(neither());
    }
    let usual = std::env::temp_dir();
    let directory = directory.map_or(&*usual, TemporaryDir::path);
    let memory = Memory {
        bytes: MEMORY_BUDGET,
        temp_dir: directory.to_owned(),
    };
    let options = OpenOptions {
        stop: Arc::clone(stop),
        ..OpenOptions::new(directory, memory)
    };
    let opened = OpenedSource::repertoire(path, &options);
    opened.map_err(|err| {
        let refusal = Refusal::from(err);
        // The visitor does not know the name of the stored file.
        match refusal.text().split_once(".repertoire: ") {
            Some((_, NO_GAME)) => neither(),
            Some((_, problem)) => Refusal::bad(problem),
            None => Refusal::bad(refusal.text()),
        }
    })
}

/// Answers `/repertoires` with the repertoires whose secrets the parameter `id` contains, separated by commas.
/// Repertoires that the server no longer keeps are left out.
pub(super) fn list(app: &AppState, key: &CacheKey) -> Result<ResponseBody, Refusal> {
    let parameters = Parameters::parse_only(&key.query, &SENT_PARAMETERS)?;
    let ids = parameters.text("id").unwrap_or_default().split(',');
    let found = ids.take(MAX_KEPT[0]).filter_map(|id| app.uploads.find(id));
    let found: Vec<Arc<ServedRepertoire>> = found.collect();
    ResponseBody::json(&found.iter().map(|sent| &**sent).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        for (file, name) in [
            ("white.pgn", "white"),
            ("My Repertoire-2_b.pgn.txt", "My Repertoire-2_b"),
            ("../../etc/passwd", "passwd"),
            ("C:\\games\\Ж.bin", "Ж"),
            ("..", "repertoire"),
            ("", "repertoire"),
            ("<script>\u{202e}\0.pgn", "script"),
            ("a\u{300} la carte.pgn", "\u{e0} la carte"),
        ] {
            assert_eq!(name_of(file), name);
        }
        for letter in ["a", "Ж", "棋", "𐐷"] {
            assert_eq!(name_of(&letter.repeat(1000)).len(), MAX_NAME, "{letter}");
        }
        assert_eq!(name_of(&format!("a{}", "棋".repeat(1000))).len(), 118);
    }

    #[test]
    fn a_stored_file_is_removed_if_the_visitor_does_not_wait_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let opened = |name: &str, text: &[u8], is_stopped| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let stop = Arc::new(AtomicBool::new(is_stopped));
            let served = open_stored(&path, Color::White, &stop);
            assert_eq!(path.exists(), served.is_ok());
            served.is_ok()
        };
        // A record of a book: 1. e4 in the start position.
        let book = [
            0x46, 0x3b, 0x96, 0x18, 0x16, 0x91, 0xfc, 0x9c, 0x03, 0x1c, 0, 1, 0, 0, 0, 0,
        ];
        for (name, text) in [
            ("a.white.repertoire", &b"1. e4 *"[..]),
            ("b.white.repertoire", &book),
        ] {
            assert!(opened(name, text, false), "{name}");
            assert!(!opened(name, text, true), "{name}");
        }
        assert!(!opened("c.white.repertoire", b"x", false));
    }
}

//! Repertoires that visitors send to the server, by dropping a file on the page or by building a repertoire there. Each
//! is known only to the visitor who sent it, until the server ends or, with a directory, until it is started again.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use axum::{Extension, extract, extract::State, response::Response};
use serde_json::json;
use shakmaty::Color;

use super::{
    Parameters, Refusal, ServedRepertoire,
    body::take_body,
    client::{Client, StopAtEnd, while_wanted},
    content::{CacheKey, ResponseBody},
    guard::check_own_page,
    make::side,
    queue::Visitor,
    routes::READING,
    state::AppState,
};
use crate::{
    chess::position::Variant,
    error::{At, Result},
    explore::repertoire::{OpenOptions, OpenedSource},
    formats::book::is_book_or_empty,
    kind::FileKind,
    storage::{
        output::{AtomicFile, BufferedFile, TemporaryDir},
        sort::Memory,
    },
    task,
};

/// The path of the route to which visitors send repertoires.
pub(super) const PATH: &str = "/repertoires";

/// The maximum number of repertoires that the server keeps for all visitors together, and for one visitor. If there are
/// more, it forgets the oldest. A repertoire and its positions take at most about 40 MiB.
const MAX_KEPT: [usize; 2] = [8, 4];

/// The maximum number of files in the directory for repertoires.
const MAX_FILES: usize = 200;

/// The memory budget for reading a repertoire, in bytes.
const MEMORY_BUDGET: usize = 32 << 20;

/// The maximum number of characters in the name of a repertoire.
const MAX_NAME: usize = 60;

/// The repertoires that visitors sent.
pub(super) struct Uploads {
    /// The repertoires with the visitors who sent them, the newest at the end.
    kept: Mutex<Vec<(Visitor, Arc<ServedRepertoire>)>>,
    /// The directory in which the files are stored, or `None` to remove them when the server ends.
    directory: Option<PathBuf>,
}

impl Uploads {
    /// Creates an empty collection. Files are stored in `directory`, or in temporary directories if it is `None`.
    pub(super) fn new(directory: Option<PathBuf>) -> Uploads {
        Uploads {
            kept: Mutex::default(),
            directory,
        }
    }

    /// Returns the repertoire with the secret `id`.
    pub(super) fn find(&self, id: &str) -> Option<Arc<ServedRepertoire>> {
        let kept = task::lock(&self.kept);
        let found = kept.iter().find(|(_, sent)| sent.id.as_deref() == Some(id));
        found.map(|(_, sent)| Arc::clone(sent))
    }

    /// Keeps a repertoire that `visitor` sent. Forgets the oldest ones if there are too many. A visitor whose programs all
    /// run on this machine may use the places of all visitors.
    fn keep(&self, visitor: Visitor, sent: Arc<ServedRepertoire>) {
        let mut kept = task::lock(&self.kept);
        kept.push((visitor, sent));
        let [most, most_of_one] = MAX_KEPT;
        let own = kept.iter().filter(|(other, _)| *other == visitor).count();
        if visitor != Visitor::Local && own > most_of_one {
            let oldest = kept.iter().position(|(other, _)| *other == visitor);
            oldest.map(|at| kept.remove(at));
        }
        if kept.len() > most {
            kept.remove(0);
        }
    }

    /// Writes the file of a repertoire that is called `name`. Returns the path of the file, and its temporary directory
    /// unless files are stored.
    fn store(
        &self,
        name: &str,
        color: Color,
        bytes: &[u8],
    ) -> Result<(PathBuf, Option<TemporaryDir>), Refusal> {
        let temporary = match self.directory {
            Some(_) => None,
            None => Some(TemporaryDir::new_in(&std::env::temp_dir())?),
        };
        // Two requests must not choose the same name.
        let _kept = task::lock(&self.kept);
        let path = match (&self.directory, &temporary) {
            (Some(directory), _) => free_path(directory, name, color)?,
            (None, Some(temporary)) => temporary.path().join(file_name(name, color)),
            (None, None) => unreachable!("without a directory, there is a temporary one"),
        };
        let mut out = BufferedFile::new(AtomicFile::create(&path)?);
        out.put(bytes)?;
        out.commit()?;
        Ok((path, temporary))
    }
}

/// Returns the name of the file in which a repertoire is stored. The server reads its side from this name when it is
/// started again.
fn file_name(name: &str, color: Color) -> String {
    format!("{name}.{color}.repertoire")
}

/// Returns the side of a repertoire that a server has stored at `path`, or `None` if the name of the file is not one of
/// those that a server gives to repertoires.
pub fn stored_color(path: &Path) -> Option<Color> {
    let name = path.file_name()?.to_str()?;
    let (_, color) = name.strip_suffix(".repertoire")?.rsplit_once('.')?;
    color.parse().ok()
}

/// Returns the path of a file in `directory` that does not exist yet. Its name begins with `name`.
fn free_path(directory: &Path, name: &str, color: Color) -> Result<PathBuf, Refusal> {
    let files = fs::read_dir(directory).at(directory, "read")?.count();
    if files >= MAX_FILES {
        return Err(Refusal::bad(
            "the directory for repertoires is full: remove files that you do not need",
        ));
    }
    let names = (2..).map(|number| format!("{name} {number}"));
    let paths = std::iter::once(name.to_owned()).chain(names);
    let mut paths = paths.map(|name| directory.join(file_name(&name, color)));
    let free = paths.find(|path| !path.exists());
    Ok(free.expect("a directory with few files lacks one of many names"))
}

/// Returns the name of a repertoire whose file is called `file`: letters, digits, spaces, hyphens and underscores up to
/// the first dot. Returns `repertoire` if none is left.
fn name_of(file: &str) -> String {
    let stem = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default();
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name: String = stem.chars().filter(kept).take(MAX_NAME).collect();
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

/// Answers `POST /repertoires`: reads the body of the request, a PGN file or a book, as a repertoire. The parameters are
/// the name of the file (`name`) and the side of the repertoire (`side`). The response contains the secret `id`, which
/// other requests give in place of the name of a repertoire.
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

/// Stores and opens a repertoire that `visitor` sent. `bytes` is the content of its file. Setting `stop` cancels the reading.
fn open(
    app: &AppState,
    key: &CacheKey,
    bytes: &[u8],
    visitor: Visitor,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let parameters = Parameters::parse_only(&key.query, &["name", "side"])?;
    let color = side(&parameters)?;
    let name = name_of(parameters.text("name").unwrap_or_default());
    let id = new_id()?;
    // The file is opened in a directory of its own, so that a file that is no repertoire is never stored.
    let trial = Uploads::new(None);
    let (path, directory) = trial.store(&name, color, bytes)?;
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
            let (path, _) = app.uploads.store(&name, color, bytes)?;
            let known = opened(&path, None, stop)?;
            ServedRepertoire::new(&path, color, known)?.sent_by_visitor(id, None)
        }
    };
    let served = Arc::new(served);
    let mut document = json!(*served);
    document["warnings"] = json!(warnings);
    app.uploads.keep(visitor, served);
    ResponseBody::json(&document)
}

fn not_for(color: Color) -> Refusal {
    Refusal::bad(format!(
        "the file contains no move for {color}: choose the other side, or another file"
    ))
}

/// Opens the repertoire at `path`. A book or a PGN has no index, so `directory`, the directory of temporary files, may be
/// the usual one. Setting `stop` cancels the reading.
fn opened(
    path: &Path,
    directory: Option<&TemporaryDir>,
    stop: &Arc<AtomicBool>,
) -> Result<OpenedSource, Refusal> {
    if FileKind::of(path)? != FileKind::Other && !is_book_or_empty(path)? {
        return Err(Refusal::bad(
            "this file is neither a PGN file nor a book: send an uncompressed PGN file, or a book (.bin)",
        ));
    }
    let usual = std::env::temp_dir();
    let directory = directory.map_or(&*usual, TemporaryDir::path);
    let options = OpenOptions {
        variant: None,
        untagged: Variant::Standard,
        filter: None,
        memory: Memory {
            bytes: MEMORY_BUDGET,
            temp_dir: directory.to_owned(),
        },
        threads: 1,
        directory,
        stop: Arc::clone(stop),
        counting: &|_| Box::new(()),
    };
    let opened = OpenedSource::repertoire(path, &options);
    opened.map_err(|err| Refusal::bad(Refusal::from(err).text()))
}

/// Answers `/repertoires`: returns those of the repertoires with the secrets in the parameter `id`, separated by commas,
/// that the server still keeps.
pub(super) fn list(app: &AppState, key: &CacheKey) -> Result<ResponseBody, Refusal> {
    let parameters = Parameters::parse_only(&key.query, &["id"])?;
    let ids = parameters.text("id").unwrap_or_default().split(',');
    let found = ids.take(MAX_KEPT[0]).filter_map(|id| app.uploads.find(id));
    ResponseBody::json(&found.map(|sent| json!(*sent)).collect::<Vec<_>>())
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
        ] {
            assert_eq!(name_of(file), name);
        }
        assert_eq!(name_of(&"a".repeat(1000)).len(), MAX_NAME);
    }

    #[test]
    fn stored_files_have_new_names_with_their_side() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(Some(dir.path().to_owned()));
        for expected in [
            "a.white.repertoire",
            "a 2.white.repertoire",
            "a 3.white.repertoire",
        ] {
            let (path, directory) = uploads.store("a", Color::White, b"1. e4 *").unwrap();
            assert!(directory.is_none());
            assert_eq!(path.file_name().unwrap(), expected);
            assert_eq!(stored_color(&path), Some(Color::White));
        }
        for other in [
            "a.pgn",
            "a.repertoire",
            "a.red.repertoire",
            "a.white.repertoire.practice.json",
        ] {
            assert_eq!(stored_color(other.as_ref()), None);
        }
        for number in 0..MAX_FILES {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let refusal = uploads.store("a", Color::White, b"1. e4 *").unwrap_err();
        assert!(
            refusal.text().contains("remove files that you do not need"),
            "{refusal:?}"
        );
    }
}

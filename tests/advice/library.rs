//! Follows the advice of messages that only callers of the library, or users without a home directory, can get.

use std::{fs, path::PathBuf, sync::atomic::AtomicBool};

use polybook::{
    book::header,
    counts::{CountsDirectory, Memory},
    index::Index,
    obs::{ObsWriter, merge_databases},
    pgn::Mode,
    position::{Variant, key},
};

#[cfg(all(feature = "serve", target_os = "linux"))]
use crate::common::transcript::Said;
use crate::common::{ok, temp};

/// Creates a directory with a game and the outputs of `make-book` that `options` name.
fn made(options: &str) -> tempfile::TempDir {
    let dir = temp();
    fs::write(dir.path().join("en.pgn"), "[White \"A\"]\n\n1. e4 e5 1-0\n").unwrap();
    if !options.is_empty() {
        ok(dir.path(), &format!("make-book -q en.pgn {options}"));
    }
    dir
}

#[test]
fn advice_about_indexes_works() {
    let dir = made("--leveldb plain.idx --explorer full.idx");
    let at = |name: &str| dir.path().join(name);
    let position = key(&Variant::Standard.start());
    let games = |name: &str| Index::open(at(name)).unwrap().games(position);
    let err = games("full.idx").unwrap_err().to_string();
    assert!(
        err.contains("use an index made with polybook make-book --leveldb"),
        "{err}"
    );
    assert_eq!(games("plain.idx").unwrap(), [0]);
}

#[test]
fn advice_about_databases_works() {
    let dir = made("--min-game 1 --obs s.obs.db3");
    let merge = |inputs: &[PathBuf]| {
        let out = ObsWriter::create(dir.path().join("new.obs.db3"), true).unwrap();
        merge_databases(inputs, out, &Memory::default(), &AtomicBool::new(false))
    };
    let err = merge(&[]).map(|_| ()).unwrap_err();
    let reason = std::error::Error::source(&err).map(ToString::to_string);
    let message = format!("{err}: {}", reason.unwrap_or_default());
    let advice = "no database is given: give the databases to merge";
    assert!(message.contains(advice), "{message}");
    merge(&[dir.path().join("s.obs.db3")]).unwrap();
}

#[test]
fn advice_about_headers_works() {
    let create = |comment: &str| header::create(&["normal"], comment);
    let err = create("my\0 book").unwrap_err().to_string();
    let advice = "contains a null character: remove this character";
    assert!(err.contains(advice), "{err}");
    create("my book").unwrap();
}

#[test]
fn advice_about_modes_works() {
    let err = "x".parse::<Mode>().unwrap_err().to_string();
    assert_eq!(err, "use rated or casual");
    assert!(
        ["rated", "casual"]
            .iter()
            .all(|mode| mode.parse::<Mode>().is_ok())
    );
}

#[test]
fn advice_about_directories_of_counts_works() {
    let dir = made("--counts none.counts");
    fs::create_dir(dir.path().join("papers")).unwrap();
    let open = |name: &str| CountsDirectory::open(dir.path().join(name));
    let err = open("papers").unwrap_err().to_string();
    let advice = "give a directory of counts, which contains Parquet files";
    assert!(err.contains(advice), "{err}");
    open("none.counts").unwrap();
}

#[cfg(all(feature = "serve", target_os = "linux"))]
#[test]
fn advice_about_a_file_name_works() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    use crate::common::served::Served;

    let dir = made("");
    let dir = dir.path();
    let name = OsStr::from_bytes(b"caf\xe9.pgn");
    fs::rename(dir.join("en.pgn"), dir.join(name)).unwrap();
    let book = |name: &OsStr| {
        let served = Served::start(dir, args!["-q", "--no-cache", name]);
        served.ask("GET", "/book.bin?minGame=1", "X-Polybook: 1\r\n")
    };
    let refused = book(name).text();
    let advice = "the name of a PGN file is not valid UTF-8: rename the file";
    assert!(refused.contains(advice), "{refused}");
    fs::rename(dir.join(name), dir.join("coffee.pgn")).unwrap();
    assert_eq!(book("coffee.pgn".as_ref()).status, 200);
}

/// A file has the name of an index in the cache.
#[cfg(all(feature = "serve", target_os = "linux"))]
#[test]
fn advice_about_a_file_in_the_cache_works() {
    let dir = made("");
    let dir = dir.path();
    let moves = || Said::by_command(dir, "show en.pgn");
    assert_eq!(moves().status, 0);
    let cache = fs::read_dir(dir.join("cache/polybook")).unwrap();
    let mut paths = cache.map(|entry| entry.unwrap().path());
    let index = paths.find(|path| path.is_dir()).unwrap();
    fs::remove_dir_all(&index).unwrap();
    fs::write(&index, "my notes").unwrap();
    let Said { status, messages } = moves();
    let advice = "this path is not an index: move it away";
    assert!(status > 0 && messages.contains(advice), "{messages}");
    fs::rename(&index, dir.join("away")).unwrap();
    assert_eq!(moves().status, 0);
}

/// Only root can start a program as a user whose home directory is unknown.
#[cfg(all(feature = "serve", target_os = "linux"))]
#[test]
fn advice_about_a_missing_cache_works() {
    use std::{os::unix::fs::PermissionsExt as _, process::Command};

    use crate::common::{leave_out, served::Served};

    let dir = made("--explorer full.idx");
    let dir = dir.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_polybook"), dir.join("polybook")).unwrap();
    let without_home = |line: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]);
        command.arg("./polybook").args(line.split(' '));
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
        command.current_dir(dir).output()
    };
    let version = without_home("--version");
    if !version.is_ok_and(|output| output.status.success()) {
        leave_out("this user cannot start a program as another");
        return;
    }
    for (line, advice) in [
        (
            "show en.pgn",
            "so polybook cannot keep an index of the games: make an index with make-book --explorer",
        ),
        (
            "serve en.pgn",
            "add --no-cache, or make an index with make-book --explorer and serve the index",
        ),
    ] {
        let refused = String::from_utf8(without_home(line).unwrap().stderr).unwrap();
        assert!(refused.contains(advice), "{refused}");
    }
    let moves = without_home("show full.idx").unwrap();
    assert!(moves.status.success(), "{moves:?}");
    for sources in ["en.pgn --no-cache", "full.idx"] {
        let served = Served::start_with(dir, &*format!("-q {sources}"), |serve| {
            serve.env_remove("HOME");
        });
        assert_eq!(served.get("/about").status, 200);
    }
}

//! The page in a real browser, and programs of others against the server: Playwright with Chromium, berserk, python-chess.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{python, run_python, sample, served::Served, skip, temp};

/// Where the scripts and their packages are.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page")
}

/// Runs a script with Node. Answers whether it could.
#[track_caller]
fn run_node(script: &str, args: &[&Path], url: &str) -> bool {
    if !scripts().join("node_modules").is_dir() {
        skip("the packages of tests/page are not installed: run npm ci there");
        return false;
    }
    let output = Command::new("node")
        .arg(scripts().join(script))
        .arg(url)
        .args(args)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{error}");
    true
}

#[test]
fn the_page_works_in_a_browser() {
    let dir = temp();
    let served = Served::start(
        dir.path(),
        args!["-q", sample("famous.pgn"), sample("selfplay.pgn")],
    );
    // CI keeps the pictures.
    let pictures =
        std::env::var_os("POLYBOOK_PICTURES").map_or(dir.path().to_owned(), PathBuf::from);
    fs::create_dir_all(&pictures).unwrap();
    if run_node("browse.mjs", &[&pictures], &served.url()) {
        for name in ["light", "dark", "phone"] {
            assert!(
                pictures
                    .join(format!("{name}.png"))
                    .metadata()
                    .unwrap()
                    .len()
                    > 10_000
            );
        }
    }
}

#[test]
fn the_modules_have_their_types() {
    let compiler = scripts().join("node_modules/.bin/tsc");
    if !compiler.exists() {
        skip("the packages of tests/page are not installed: run npm ci there");
        return;
    }
    let output = Command::new(compiler)
        .arg("-p")
        .arg(scripts())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn berserk_reads_every_answer() {
    let Some(python) = python(&["berserk", "chess"]) else {
        return;
    };
    let dir = temp();
    let served = Served::start(dir.path(), args!["-q", sample("famous.pgn")]);
    let (url, player) = (served.url(), "Morphy, Paul");
    run_python(
        &python,
        "explorer_berserk.py",
        &[Path::new(&url), Path::new(player)],
    );
}

#[test]
fn python_chess_counts_the_same() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let pgn = dir.path().join("all.pgn");
    let text = ["famous.pgn", "selfplay.pgn"].map(|name| fs::read(sample(name)).unwrap());
    fs::write(&pgn, text.join(&b'\n')).unwrap();
    let served = Served::start(dir.path(), args!["-q", &pgn]);
    let url = served.url();
    run_python(
        &python,
        "explorer_counts.py",
        &[Path::new(&url), &pgn, Path::new("10")],
    );
}

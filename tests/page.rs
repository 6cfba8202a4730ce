//! The page in a real browser, and other clients of the server: Playwright with Chromium, berserk, python-chess.

use std::{
    ffi::{OsStr, OsString},
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{ok, python, run_python, sample, served::Served, skip, temp};

/// Returns the directory of the scripts and their packages.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page")
}

/// Runs a script with Node.js. Returns `false` if the test is skipped.
#[track_caller]
fn run_node(script: &str, args: &[&OsStr]) -> bool {
    if !scripts().join("node_modules").is_dir() {
        skip("the packages of tests/page are not installed: run npm ci there");
        return false;
    }
    let output = Command::new("node")
        .arg(scripts().join(script))
        .args(args)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{error}");
    true
}

/// Starts a server with the games that the scripts expect.
fn samples(dir: &Path) -> Served {
    let annotated = scripts().join("annotated.pgn");
    Served::start(
        dir,
        args![
            "-q",
            sample("famous.pgn"),
            sample("selfplay.pgn"),
            annotated
        ],
    )
}

#[test]
fn the_page_works_in_a_browser() {
    let dir = temp();
    let served = samples(dir.path());
    let variants = Served::start(dir.path(), args!["-q", sample("variants.pgn")]);
    let annotated = scripts().join("annotated.pgn");
    fs::write(dir.path().join("mate.pgn"), "1. e4 { [%eval #-3,30] } *").unwrap();
    ok(
        dir.path(),
        args!["evals", "-q", "--out", "my.evals", &annotated, "mate.pgn"],
    );
    let args = args!["-q", &annotated, "--evals", "my.evals"];
    let evaluated = Served::start(dir.path(), args);
    let urls = [served.url(), variants.url(), evaluated.url()];
    run_node("browse.mjs", &urls.each_ref().map(|url| url.as_ref()));
}

#[test]
fn a_repertoire_is_shown_edited_and_downloaded() {
    let dir = temp();
    let white = "1. e4 {Best by test.} e5 (1... c5 2. Nf3 (2. c3)) 2. Nf3 *\n";
    for (name, moves) in [
        ("white.pgn", white),
        ("black.pgn", "1. e4 e5 2. Nf3 Nc6 *\n"),
    ] {
        fs::write(dir.path().join(name), moves).unwrap();
    }
    // Gaps are replies of at least two games.
    let games = dir.path().join("games.pgn");
    fs::write(&games, fs::read(sample("famous.pgn")).unwrap().repeat(2)).unwrap();
    let both = args![
        "-q",
        &games,
        "--repertoire",
        "white.pgn:white",
        "--repertoire",
        "black.pgn:black"
    ];
    let both = Served::start(dir.path(), both);
    let black = args!["-q", &games, "--repertoire", "black.pgn:black"];
    let black = Served::start(dir.path(), black);
    let path = dir.path().join("white.pgn");
    run_node(
        "repertoire.mjs",
        &[both.url().as_ref(), black.url().as_ref(), path.as_ref()],
    );
    assert_eq!(fs::read_to_string(path).unwrap(), white);
}

#[test]
fn the_moves_and_games_are_sorted_and_listed_by_result() {
    let dir = temp();
    let served = samples(dir.path());
    let variants = Served::start(dir.path(), args!["-q", sample("variants.pgn")]);
    run_node(
        "lists.mjs",
        &[served.url().as_ref(), variants.url().as_ref()],
    );
}

#[test]
fn the_openings_say_where_points_are_lost() {
    let dir = temp();
    let served = samples(dir.path());
    run_node("openings.mjs", &[served.url().as_ref()]);
}

#[test]
fn an_opponent_is_prepared_for() {
    let dir = temp();
    crate::prepare::games_of_five(dir.path());
    fs::write(dir.path().join("mine.pgn"), "1. e4 e5 2. Nf3 Nc6 *\n").unwrap();
    let args = args!["-q", "idx", "--me", "Ann", "--repertoire", "mine.pgn:black"];
    let served = Served::start(dir.path(), args);
    run_node("prepare.mjs", &[served.url().as_ref()]);
}

#[test]
fn the_board_is_used_with_a_mouse() {
    let dir = temp();
    let served = samples(dir.path());
    run_node("board.mjs", &[served.url().as_ref()]);
}

#[test]
fn the_page_fits_windows_of_each_size() {
    let dir = temp();
    let served = samples(dir.path());
    // CI keeps the screenshots.
    let pictures =
        std::env::var_os("POLYBOOK_PICTURES").map_or(dir.path().to_owned(), PathBuf::from);
    fs::create_dir_all(&pictures).unwrap();
    if run_node("layout.mjs", &[served.url().as_ref(), pictures.as_ref()]) {
        for name in ["320x640", "390x844 dark", "1440x900", "game 1440x900"] {
            let picture = pictures.join(format!("{name}.png"));
            assert!(picture.metadata().unwrap().len() > 10_000);
        }
    }
}

/// Starts two servers, and finds a free port for a site of another origin. The pages of this site may read the answers
/// of only the second server.
fn with_other_origin(dir: &Path) -> (Served, Served, String) {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let origin = format!("http://127.0.0.1:{port}");
    let pgn = sample("famous.pgn");
    let start = |args: &[OsString]| Served::start(dir, args);
    let closed = start(args!["-q", "--no-cache", &pgn]);
    let allowed = start(args!["-q", "--no-cache", &pgn, "--allow-origin", &origin]);
    (closed, allowed, port.to_string())
}

#[test]
fn a_page_of_another_origin_reads_the_answers_only_if_it_may() {
    let dir = temp();
    let (closed, allowed, port) = with_other_origin(dir.path());
    let (closed, allowed) = (closed.url(), allowed.url());
    run_node(
        "cors.mjs",
        &[closed.as_ref(), allowed.as_ref(), port.as_ref()],
    );
}

#[test]
fn a_page_of_another_origin_embeds_a_board_only_if_it_may() {
    let dir = temp();
    let (closed, allowed, port) = with_other_origin(dir.path());
    let pictures =
        std::env::var_os("POLYBOOK_PICTURES").map_or(dir.path().to_owned(), PathBuf::from);
    fs::create_dir_all(&pictures).unwrap();
    let (closed, allowed) = (closed.url(), allowed.url());
    run_node(
        "embed.mjs",
        &[
            closed.as_ref(),
            allowed.as_ref(),
            port.as_ref(),
            pictures.as_ref(),
        ],
    );
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

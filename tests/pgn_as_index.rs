//! Commands that query an index read PGN files too, through the index in the cache of `serve`.

use std::{fs, path::Path, process::Output};

use crate::common::{Arguments, fails, ok, ok_json, polybook_in, run, sample, temp};

/// Runs a command line that must succeed.
#[track_caller]
fn succeeds(dir: &Path, args: impl Arguments) -> Output {
    let output = run(dir, &args.list());
    assert!(output.status.success(), "{output:?}");
    output
}

#[test]
fn queries_of_a_pgn_file_are_those_of_its_index() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    fs::copy(sample("online.pgn"), dir.join("online.pgn")).unwrap();
    ok(dir, "make-book -q famous.pgn --explorer famous.idx");
    let mut has_indexed = Vec::new();
    for (command, options) in [
        ("show", "--player morphy"),
        ("games", "1. e4 e5"),
        ("games", "1. e4 e5 --json"),
        ("openings", "--player morphy --sort name"),
        (
            "prepare",
            "--opponent anderssen --player morphy --color black --lines 3",
        ),
        ("games", "--id 3,5 --pgn"),
    ] {
        let expected = ok(dir, &format!("{command} famous.idx {options}"));
        let line = format!("{command} famous.pgn {options}");
        let output = succeeds(dir, &line);
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            expected,
            "{line}"
        );
        has_indexed.push(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("indexing famous.pgn"),
        );
    }
    // The JSON of a game contains the move in the position and the length of the game.
    let mut args = vec!["games", "famous.idx", "--json", "--moves"];
    args.extend(["1. e4 e5", "--player", "morphy", "--sort", "recent"]);
    let games = ok_json(dir, &args[..]);
    let game = &games["games"][0];
    assert_eq!(
        (&game["uci"], game["plies"].as_u64()),
        (&"g1f3".into(), Some(33))
    );
    // The first command makes the index, and the others find it.
    assert_eq!(has_indexed, [true, false, false, false, false, false]);
    // The error for an unknown game names the PGN file, not the index in the cache.
    let mut unknown = polybook_in(dir);
    unknown.args(["games", "famous.pgn", "--pgn", "--id", "99999"]);
    let error = String::from_utf8(unknown.output().unwrap().stderr).unwrap();
    let said = "polybook: famous.pgn: the index contains no game with the id 99999";
    assert!(error.starts_with(said), "{error}");
    let both = succeeds(dir, "show famous.pgn online.pgn --json");
    let both: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!(both["games"], 51);
    let table = ok(dir, "openings famous.idx");
    assert_eq!(
        succeeds(dir, "openings famous.pgn").stdout,
        table.as_bytes()
    );
}

#[test]
fn a_game_is_found_by_its_lichess_address() {
    let dir = temp();
    let dir = dir.path();
    let game = |id: &str, mv: &str| {
        format!("[Site \"https://lichess.org/{id}\"]\n[Result \"*\"]\n\n1. {mv} *\n\n")
    };
    let games = game("abcdEF12", "e4") + &game("twiceAA1", "d4") + &game("twiceAA1", "c4");
    fs::write(dir.join("games.pgn"), &games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --explorer games.idx --leveldb games.db",
    );
    let first = games.split_inclusive("*\n").next().unwrap();
    for id in [
        "0",
        "00000000",
        "abcdEF12",
        "https://lichess.org/abcdEF12",
        "https://lichess.org/abcdEF12/black#7",
        "lichess.org/abcdEF12wxyz",
    ] {
        let found = ok(dir, args!["games", "games.idx", "--pgn", "--id", id]);
        assert_eq!(found.trim_end(), first.trim_end(), "{id}");
    }
    for (id, said) in [
        (
            "twiceAA1",
            "games.idx: no game, or several games, have the Lichess id twiceAA1",
        ),
        ("unknown1", "with polybook games games.idx"),
    ] {
        let error = fails(dir, args!["games", "games.idx", "--pgn", "--id", id], 1);
        assert!(error.contains(said), "{error}");
    }
    let error = fails(dir, "games games.db --pgn --id abcdEF12", 2);
    assert!(
        error.contains("this command needs an explorer's index"),
        "{error}"
    );
    let output = run(
        dir,
        "games games.idx --pgn --id https://www.chess.com/game/live/1",
    );
    let error = String::from_utf8(output.stderr).unwrap();
    let said = "use the number of a game, 0 or larger, or the address of a game at lichess.org";
    assert!(error.contains(said), "{error}");
}

#[test]
fn what_cannot_be_indexed_is_named() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("empty.pgn"), "").unwrap();
    for command in ["games", "openings", "games --id 0"] {
        let (command, last) = command.split_once(' ').unwrap_or((command, ""));
        let error = fails(dir, &*format!("{command} empty.pgn {last}"), 1);
        assert!(
            error.contains("empty.pgn: an empty file, without games"),
            "{error}"
        );
        let error = fails(dir, &*format!("{command} - {last}"), 2);
        let said = "an index of games from standard input cannot be kept in the cache: save the games as a file";
        assert!(error.contains(said), "{error}");
        #[cfg(unix)]
        {
            // Nobody writes to the pipe, so a program that opens it waits forever.
            let _ = fs::remove_file(dir.join("pipe"));
            crate::common::make_fifo(&dir.join("pipe"));
            let error = fails(dir, &*format!("{command} pipe {last}"), 2);
            let said = "an index of games from pipe, a pipe or a device, cannot be kept";
            assert!(error.contains(said), "{error}");
        }
    }
    #[cfg(unix)]
    {
        // A source of an engine may be a book in a pipe, so the pipe is read first.
        let games = fs::read(sample("famous.pgn")).unwrap();
        let pipe = dir.join("pipe");
        std::thread::spawn(move || fs::write(pipe, games));
        let error = fails(dir, "engine pipe", 2);
        assert!(
            error.contains("games from pipe, a pipe or a device"),
            "{error}"
        );
    }
}

#[test]
fn advice_about_a_damaged_index_in_the_cache_works() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("selfplay.pgn"), dir.join("selfplay.pgn")).unwrap();
    let command = "openings selfplay.pgn -q";
    let sound = succeeds(dir, command).stdout;
    let cache = dir.join("cache/polybook");
    let mut entries = fs::read_dir(&cache).unwrap().map(Result::unwrap);
    let index = entries.find(|entry| entry.path().is_dir()).unwrap();
    let files = fs::read_dir(index.path()).unwrap();
    let mut tables = files.map(|file| file.unwrap().path());
    let table = tables.find(|path| path.extension().is_some_and(|ending| ending == "ldb"));
    let table = table.unwrap();
    let bytes = fs::read(&table).unwrap();
    // Damage that is found when the index is opened is mended without a message. Other damage is found later.
    let damaged = (0..bytes.len()).step_by(bytes.len() / 40).find_map(|at| {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&table, changed).unwrap();
        let mut polybook = polybook_in(dir);
        polybook.args(command.list());
        let output = polybook.output().unwrap();
        (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
    });
    let error = damaged.expect("some damage is found after the index is opened");
    let named = error.split("remove the directory ").nth(1).unwrap();
    let named = named.split(", and repeat the command").next().unwrap();
    assert_eq!(Path::new(named), index.path());
    fs::remove_dir_all(named).unwrap();
    assert_eq!(succeeds(dir, command).stdout, sound);
}

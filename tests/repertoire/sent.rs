//! Repertoires that visitors send to `polybook serve`, and practising on its page.

use std::{fs, io::Write};

use polybook::storage::output::AtomicFile;
use serde_json::{Value, json};

use super::{practise::OTHER_RESULTS, *};
use crate::common::{fed, served::Reply};

const GAMES: &str = "1. e4 e5 2. Nf3 1-0\n\n1. e4 c5 2. Nf3 0-1\n\n1. d4 d5 1-0\n\n";
const OWN: &str = "x-polybook: 1\r\n";
const OWN_FILE: &str = "x-polybook: 1\r\nContent-Type: application/octet-stream\r\n";

fn post(served: &Served, path: &str, headers: &str, body: &[u8]) -> Reply {
    let (host, length) = (served.address, body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    served.send(&[head.as_bytes(), body].concat()).unwrap()
}

/// Sends a repertoire for White, and returns what the server says about it.
fn sent(served: &Served, name: &str, body: &[u8]) -> Value {
    let reply = post(
        served,
        &format!("/repertoires?name={name}&side=white"),
        OWN_FILE,
        body,
    );
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

/// Sends a form to `/practise`.
fn practise(served: &Served, form: &str) -> Reply {
    let headers = format!("{OWN}Content-Type: application/x-www-form-urlencoded\r\n");
    post(served, "/practise", &headers, form.as_bytes())
}

fn practised(served: &Served, form: &str) -> Value {
    let reply = practise(served, form);
    assert_eq!(reply.status, 200, "{form}: {}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

#[test]
fn a_repertoire_that_was_sent_opens_without_a_restart() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *\n");
    ok(
        dir,
        "make-book -q mine.pgn --only-white --min-game 1 --bin mine.bin",
    );
    let served = Served::start(dir, "games.pgn -q");
    for (name, is_pgn) in [("mine.pgn", true), ("mine.bin", false)] {
        let about = sent(&served, name, &fs::read(dir.join(name)).unwrap());
        let expected = json!({"name": "mine", "color": "white", "pgn": is_pgn, "practise": true, "warnings": []});
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(about[field], *value, "{about}");
        }
        let id = about["id"].as_str().unwrap();
        assert_eq!(id.len(), 32);
        let report = served.json(&format!("/repertoire?repertoire={id}&side=white&play=e2e4"));
        assert_eq!(
            report["repertoires"][0]["moves"][0]["answers"][0]["san"], "Nf3",
            "{report}"
        );
        let gaps = served.json(&format!("/gaps?repertoire={id}&side=white&minGame=1"));
        assert_eq!(gaps["gaps"][0]["move"], "c5", "{gaps}");
        // Only the visitor who knows the secret sees the repertoire.
        assert_eq!(served.json("/about")["repertoires"], json!([]));
        assert_eq!(
            served.json("/repertoire?play=e2e4")["repertoires"],
            json!([])
        );
        let listed = served.json(&format!("/repertoires?id=x,{id}"));
        assert_eq!(listed[0]["id"], *id, "{listed}");
        let other = served.get(&format!("/repertoire?repertoire={id}&side=black"));
        assert_eq!(other.status, 400);
    }
    let mine = sent(&served, "mine.pgn", b"1. d4 d5 2. c4 *");
    let id = mine["id"].as_str().unwrap();
    let edited = served.get(&format!(
        "/repertoire.pgn?repertoire={id}&side=white&edits=e2e4"
    ));
    assert!(edited.text().contains("1. e4 *") && edited.text().contains("1. d4 d5 2. c4 *"));
}

#[test]
fn the_server_forgets_the_oldest_repertoires() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    let served = Served::start(dir, "games.pgn -q");
    let ids: Vec<Value> = (0..10)
        .map(|_| sent(&served, "a.pgn", b"1. e4 *")["id"].clone())
        .collect();
    let of = |id: &Value| served.json(&format!("/repertoires?id={}", id.as_str().unwrap()));
    let kept = ids.iter().filter(|id| of(id) != json!([])).count();
    assert_eq!((kept, of(&ids[0]), of(&ids[1])), (8, json!([]), json!([])));
}

#[test]
fn files_that_are_no_repertoires_are_refused() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "all.pgn", "1. e4 *\n");
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    let served = Served::start(dir, "games.pgn -q");
    let path = "/repertoires?name=a.pgn&side=white";
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let database = fs::read(dir.join("games.obs.db3")).unwrap();
    let too_long = vec![b' '; (2 << 20) + 1];
    let cases: [(&str, &str, &[u8], u16, &str); 11] = [
        (path, "", b"1. e4 *", 403, "x-polybook"),
        ("/repertoires?name=a.pgn", OWN_FILE, b"1. e4 *", 400, "side"),
        (
            "/repertoires?side=white&x=1",
            OWN_FILE,
            b"1. e4 *",
            400,
            "x",
        ),
        (
            "/repertoires?side=black",
            OWN_FILE,
            b"1. e4 *",
            400,
            "no move for black: choose the other side, or another file",
        ),
        (path, OWN_FILE, b"", 400, ""),
        (
            path,
            OWN_FILE,
            b"no games",
            400,
            "this file is neither a PGN file nor a book: send an uncompressed PGN file, or a book (.bin)\n",
        ),
        (
            path,
            OWN_FILE,
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
            400,
            "send an uncompressed PGN file, or a book (.bin)",
        ),
        (
            path,
            OWN_FILE,
            &database,
            400,
            "send an uncompressed PGN file, or a book (.bin)",
        ),
        (path, OWN_FILE, &[0xff; 64], 400, ""),
        (path, OWN_FILE, &too_long, 413, "at most 2048 KiB"),
        (
            path,
            &format!("{OWN}{form}"),
            b"a=b",
            415,
            "send it as application/octet-stream",
        ),
    ];
    for (path, headers, body, status, text) in cases {
        let reply = post(&served, path, headers, body);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(reply.text().contains(text), "{path}: {}", reply.text());
    }
    assert_eq!(served.ask("PUT", "/repertoires", "").status, 405);
    assert_eq!(served.get("/practise").status, 405);
}

#[test]
fn pages_of_other_origins_cannot_send_or_practise() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "white.pgn", "1. e4 *\n");
    let served = Served::start(
        dir,
        "games.pgn -q --repertoire white.pgn:white --allow-origin *",
    );
    let origin = "Origin: http://other.example\r\n";
    let allowed = served.ask("GET", "/about", origin);
    assert!(
        allowed.head.contains("access-control-allow-origin"),
        "{}",
        allowed.head
    );
    for path in ["/practise", "/repertoires"] {
        let preflight = format!(
            "{origin}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-polybook\r\n"
        );
        let reply = served.ask("OPTIONS", path, &preflight);
        assert!(
            !reply.head.contains("access-control-allow"),
            "{path}: {}",
            reply.head
        );
        let reply = post(
            &served,
            path,
            &format!("{origin}Content-Type: text/plain\r\n"),
            b"repertoire=white",
        );
        assert_eq!(reply.status, 403, "{path}");
    }
}

#[test]
fn the_page_and_the_command_practise_the_same_repertoire() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "white.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n");
    let served = Served::start(dir, "games.pgn -q --repertoire white.pgn:white");
    let of = "repertoire=white&side=white";
    let first = practised(&served, of);
    assert_eq!(
        (&first["due"], &first["again"], &first["new"]),
        (&json!(0), &json!(0), &json!(3))
    );
    assert_eq!(first["question"]["line"], json!([]));
    assert_eq!(first["question"]["isNew"], true);
    assert_eq!(first["question"]["legal"].as_array().unwrap().len(), 20);
    assert!(first.get("graded").is_none());
    let wrong = practised(&served, &format!("{of}&answer=d2d4"));
    assert_eq!(wrong["graded"]["right"], false);
    assert_eq!(
        wrong["graded"]["moves"],
        json!([{"uci": "e2e4", "san": "e4"}])
    );
    // The line goes on with the move of the repertoire.
    assert_eq!(wrong["question"]["line"][0]["san"], "e4", "{wrong}");
    assert_eq!(
        (&wrong["again"], &wrong["question"]["kept"]),
        (&json!(1), &json!(1))
    );
    let right = practised(&served, &format!("{of}&play=e2e4,e7e5&answer=Nf3"));
    assert_eq!(
        (&right["graded"]["right"], &right["graded"]["days"]),
        (&json!(true), &json!(3))
    );
    // The same answer again changes nothing.
    let again = practised(&served, &format!("{of}&play=e2e4,e7e5&answer=Nf3"));
    assert_eq!(again["graded"], right["graded"]);
    let text = fed(
        dir,
        "repertoire practise white.pgn --color white --plain",
        b"e4\nBb5\n",
    );
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("3 positions: 1 due, 1 new\n"), "{text}");
    let last = practised(&served, of);
    assert_eq!(
        (&last["question"], &last["due"], &last["new"]),
        (&json!(null), &json!(0), &json!(0)),
        "{last}"
    );
    for (form, status, part) in [
        ("repertoire=white", 400, "side"),
        ("repertoire=none&side=white", 400, "none"),
        ("repertoire=white&side=white&answer=xx", 400, "xx"),
        ("repertoire=white&side=white&answer=Ke2", 400, "Ke2"),
        (
            "repertoire=white&side=white&play=d2d4,d7d5&answer=c4",
            400,
            "no move in this position",
        ),
        ("repertoire=white&side=white&new=x", 400, "new"),
        (
            "repertoire=white&side=white&variant=atomic",
            400,
            "request this variant",
        ),
        ("repertoire=white&side=white&edits=-", 400, "edits"),
    ] {
        let reply = practise(&served, form);
        assert_eq!(reply.status, status, "{form}: {}", reply.text());
        assert!(reply.text().contains(part), "{form}: {}", reply.text());
    }
    // Edits of the visitor are practised, too.
    let edited = practised(&served, &format!("{of}&edits=e2e4,c7c5,g1f3"));
    assert_eq!(edited["new"], 1);
    fs::write(dir.join("white.pgn.practice.json"), "{}").unwrap();
    let reply = practise(&served, of);
    assert!(
        reply.status >= 400
            && reply
                .text()
                .contains("does not contain results of practice"),
        "{}",
        reply.text()
    );
}

#[test]
fn a_server_for_others_practises_only_repertoires_that_were_sent() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "white.pgn", "1. e4 *\n");
    let served = Served::start(
        dir,
        "games.pgn -q --repertoire white.pgn:white --trust-proxy 127.0.0.1",
    );
    assert_eq!(served.json("/about")["repertoires"][0]["practise"], false);
    let reply = practise(&served, "repertoire=white&side=white");
    assert_eq!(reply.status, 400);
    assert!(
        reply.text().contains("drop your repertoire on the page"),
        "{}",
        reply.text()
    );
    let about = sent(&served, "white.pgn", b"1. e4 *");
    assert_eq!(about["name"], "white 2");
    let id = about["id"].clone();
    let id = id.as_str().unwrap();
    let right = practised(&served, &format!("repertoire={id}&side=white&answer=e4"));
    assert_eq!(
        (&right["graded"]["right"], &right["new"]),
        (&json!(true), &json!(0))
    );
    assert!(!dir.join("white.pgn.practice.json").exists());
}

#[test]
fn positions_that_are_skipped_are_not_asked() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "white.pgn", "1. e4 e5 2. Nf3 *\n");
    let served = Served::start(dir, "games.pgn -q --repertoire white.pgn:white");
    let of = "repertoire=white&side=white";
    let first = practised(&served, of);
    assert_eq!(first["next"], json!(null));
    let number = first["question"]["number"].as_u64().unwrap();
    let second = practised(&served, &format!("{of}&skip={number}"));
    assert_eq!(second["question"]["line"][1]["san"], "e5", "{second}");
    assert_eq!(second["new"], 1);
    let other = second["question"]["number"].as_u64().unwrap();
    let none = practised(&served, &format!("{of}&skip={number},{other}"));
    assert_eq!((&none["question"], &none["new"]), (&json!(null), &json!(0)));
    let reply = practise(&served, &format!("{of}&skip=x"));
    assert!(
        reply.status == 400 && reply.text().contains("skip"),
        "{}",
        reply.text()
    );
}

#[test]
fn a_directory_shares_repertoires_with_all_visitors_at_once() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "mine.pgn", "1. d4 *\n");
    for (more, is_practised) in [("", true), (" --trust-proxy 127.0.0.1", false)] {
        fs::create_dir(dir.join("kept")).unwrap();
        let served = Served::start(
            dir,
            &*format!("games.pgn -q --repertoire mine.pgn:white --repertoire-dir kept{more}"),
        );
        let names = |document: Value| {
            let repertoires = document["repertoires"].as_array().unwrap();
            Vec::from_iter(repertoires.iter().map(|one| one["name"].clone()))
        };
        let etag = |path| served.get(path).header("etag").map(str::to_owned);
        let before = etag("/repertoire?play=e2e4");
        assert_eq!(names(served.json("/about")), ["mine"]);
        assert_eq!(names(served.json("/repertoire?play=e2e4")), ["mine"]);
        let about = sent(&served, "mine.pgn", b"1. e4 e5 2. Nf3 *");
        assert_eq!(
            (&about["stored"], &about["practise"]),
            (&json!(true), &json!(true))
        );
        // The name differs from the one that the server was started with, and nobody gets the secret.
        assert_eq!(about["name"], "mine 2");
        let shared = served.json("/about")["repertoires"][1].clone();
        assert_eq!(shared["name"], "mine 2");
        assert_eq!(shared["version"], about["version"]);
        assert_eq!(
            (shared.get("id"), &shared["practise"]),
            (None, &json!(is_practised))
        );
        assert_eq!(
            names(served.json("/repertoire?play=e2e4")),
            ["mine", "mine 2"]
        );
        assert_ne!(before, etag("/repertoire?play=e2e4"));
        let report = served.json("/repertoire?repertoire=mine%202&side=white&play=e2e4");
        assert_eq!(
            report["repertoires"][0]["moves"][0]["san"], "e5",
            "{report}"
        );
        // The visitor who sent it practises it, and others too if the server is only for this machine.
        let id = about["id"].as_str().unwrap();
        practised(&served, &format!("repertoire={id}&side=white&answer=e4"));
        let reply = practise(&served, "repertoire=mine%202&side=white");
        assert_eq!(reply.status == 200, is_practised, "{}", reply.text());
        if is_practised {
            let left: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(left["new"], 1, "{left}");
        }
        drop(served);
        fs::remove_dir_all(dir.join("kept")).unwrap();
    }
}

#[test]
fn a_directory_keeps_repertoires_and_results_for_the_next_start() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    fs::create_dir(dir.join("kept")).unwrap();
    write(dir, "kept/notes.txt", "other files are left alone");
    let served = Served::start(dir, "games.pgn -q --repertoire-dir kept");
    let id = sent(&served, "My%20lines.pgn", b"1. e4 e5 2. Nf3 *")["id"].clone();
    practised(
        &served,
        &format!("repertoire={}&side=white&answer=e4", id.as_str().unwrap()),
    );
    drop(served);
    let served = Served::start(dir, "games.pgn -q --repertoire-dir kept");
    let about = served.json("/about");
    assert_eq!(
        (
            &about["repertoires"][0]["name"],
            &about["repertoires"][0]["color"]
        ),
        (&json!("My lines"), &json!("white"))
    );
    let left = practised(&served, "repertoire=My%20lines&side=white");
    assert_eq!(left["next"]["positions"], 1);
    assert!(left["next"]["days"].as_i64().unwrap() > 0, "{left}");
    assert_eq!((&left["due"], &left["new"]), (&json!(0), &json!(1)));
    let error = fails(
        dir,
        "serve games.pgn --repertoire-dir none --listen 127.0.0.1:0",
        1,
    );
    assert!(error.contains("none"), "{error}");
}

/// Returns the names of the repertoires for White that the server lists.
fn listed(served: &Served) -> Vec<String> {
    let about = served.json("/about");
    let names = about["repertoires"].as_array().unwrap().iter();
    Vec::from_iter(names.map(|one| one["name"].as_str().unwrap().to_owned()))
}

#[test]
fn no_two_repertoires_for_a_side_have_the_same_name() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    fs::create_dir(dir.join("kept")).unwrap();
    write(dir, "mine.pgn", "1. d4 *\n");
    write(dir, "mine.v2.pgn", "1. e4 *\n");
    write(dir, "kept/mine.white.repertoire", "1. e4 *\n");
    let clash = "two repertoires for white have the name \"mine\": rename mine.pgn or ";
    let stored = Path::new("kept").join("mine.white.repertoire");
    for (others, problem) in [
        (
            "--repertoire mine.v2.pgn:white",
            format!("{clash}mine.v2.pgn"),
        ),
        (
            "--repertoire mine.pgn:white",
            "the repertoire mine.pgn for white is given twice: leave one out".to_owned(),
        ),
        (
            "--repertoire-dir kept",
            format!("{clash}{}", stored.display()),
        ),
    ] {
        let line = format!("serve games.pgn --repertoire mine.pgn:white {others}");
        let error = fails(dir, &*line, 2);
        assert!(error.contains(&problem), "{error}");
    }
    let served = Served::start(
        dir,
        "games.pgn -q --repertoire mine.pgn:black --repertoire-dir kept",
    );
    // A name that was in use stays taken until the next start, because browsers may have stored answers.
    for (name, files) in [
        ("mine 2", ["mine", "mine 2"]),
        ("mine 3", ["mine", "mine 3"]),
    ] {
        let about = sent(&served, "mine.pgn", b"1. c4 *");
        assert_eq!(about["name"], name);
        assert_eq!(listed(&served)[1..], files, "{about}");
        let of = format!("repertoire={}&side=white", name.replace(' ', "%20"));
        let report = served.json(&format!("/repertoire?{of}"));
        assert_eq!(report["repertoires"][0]["moves"][0]["san"], "c4");
        let pgn = served.get(&format!("/repertoire.pgn?{of}"));
        assert!(pgn.text().contains("1. c4"), "{}", pgn.text());
        let right = practised(&served, &format!("{of}&answer=c4"));
        assert_eq!(right["graded"]["right"], true, "{right}");
        let file = dir.join(format!("kept/{name}.white.repertoire"));
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn long_names_of_files_are_shortened() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    fs::create_dir(dir.join("kept")).unwrap();
    let served = Served::start(dir, "games.pgn -q --repertoire-dir kept");
    // A letter of four bytes.
    let name = "%F0%90%90%B7".repeat(60);
    for expected in [30, 32] {
        let about = sent(&served, &name, b"1. e4 e5 2. Nf3 *");
        let stored = about["name"].as_str().unwrap();
        assert_eq!(stored.chars().count(), expected, "{about}");
        let id = about["id"].as_str().unwrap();
        practised(&served, &format!("repertoire={id}&side=white&answer=e4"));
    }
}

/// The file of both sides has one file of results.
#[test]
fn simultaneous_answers_are_all_recorded() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "both.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *\n");
    let served = Served::start(
        dir,
        "games.pgn -q --repertoire both.pgn:white --repertoire both.pgn:black",
    );
    let moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6"];
    std::thread::scope(|scope| {
        for (ply, answer) in moves.iter().enumerate() {
            let side = ["white", "black"][ply % 2];
            let play = moves[..ply].join(",");
            let form = format!("repertoire=both&side={side}&play={play}&answer={answer}");
            let served = &served;
            scope.spawn(move || {
                for _ in 0..10 {
                    let graded = practised(served, &form)["graded"].clone();
                    assert_eq!(graded["right"], true, "{form}: {graded}");
                }
            });
        }
    });
    let results = fs::read_to_string(dir.join("both.pgn.practice.json")).unwrap();
    let results: Value = serde_json::from_str(&results).unwrap();
    assert_eq!(results["cards"].as_array().unwrap().len(), 6, "{results}");
}

#[test]
fn the_server_waits_until_another_program_has_recorded_its_answer() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    write(dir, "white.pgn", "1. e4 *\n");
    let served = Served::start(dir, "games.pgn -q --repertoire white.pgn:white");
    let path = dir.join("white.pgn.practice.json");
    let mut other = AtomicFile::create(&path).unwrap();
    let of = "repertoire=white&side=white";
    assert_eq!(practised(&served, of)["new"], 1);
    let answer = format!("{of}&answer=e4");
    let reply = practise(&served, &answer);
    let text = reply.text();
    assert_eq!(reply.status, 503, "{text}");
    assert!(
        text.contains("another program is writing this file: try again when it has ended"),
        "{text}"
    );
    thread::scope(|scope| {
        let reply = scope.spawn(|| {
            loop {
                let reply = practise(&served, &answer);
                if reply.status != 503 {
                    return reply;
                }
            }
        });
        other.write_all(OTHER_RESULTS).unwrap();
        other.commit().unwrap();
        let reply = reply.join().unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
    });
    let results = fs::read_to_string(path).unwrap();
    for mv in ["d2d4", "e2e4"] {
        assert!(results.contains(mv), "{results}");
    }
}

/// Opening a pipe that no program writes to blocks the thread.
#[cfg(unix)]
#[test]
fn only_files_in_the_directory_are_repertoires() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", GAMES);
    fs::create_dir_all(dir.join("kept/a.white.repertoire")).unwrap();
    crate::common::make_fifo(&dir.join("kept/b.white.repertoire"));
    std::os::unix::fs::symlink("none", dir.join("kept/c.white.repertoire")).unwrap();
    write(dir, "kept/d.white.repertoire", "1. e4 *\n");
    let served = Served::start(dir, "games.pgn -q --repertoire-dir kept");
    assert_eq!(listed(&served), ["d"]);
    let about = sent(&served, "b.pgn", b"1. e4 *");
    assert_eq!(about["name"], "b 2");
}

//! The LevelDB index on the command line: making, reading, merging and verifying it.

use std::{collections::BTreeMap, fs, io::Write, path::Path};

use crate::common::{
    corpus, fails, ok, ok_json, polybook_in, python, run, run_python, sample, temp, temp_in_memory,
};
use polybook::{
    explorer::{Explorer, Line, Page, Query, Sort, View},
    index::{Index, IndexKind},
    position::Variant,
};

/// Returns the contents of all files of an index.
fn contents(index: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(index)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) {
    fs::write(dir.join(name), text).unwrap();
}

#[test]
fn the_report_of_an_index_says_how_many_of_all_games_count() {
    let dir = temp();
    let games = sample("famous.pgn");
    for option in ["--leveldb", "--explorer"] {
        let name = format!("{}.idx", &option[2..]);
        let line = format!("make-book {} {option} {name} --since 1950", games.display());
        let report = String::from_utf8(run(dir.path(), &line).stderr).unwrap();
        let expected = format!("{name}: 19 of 45 games counted, ");
        assert!(report.contains(&expected), "{report}");
    }
}

#[test]
fn a_front_end_finds_what_python_chess_finds() {
    let Some(python) = python(&["chess", "plyvel"]) else {
        return;
    };
    let dir = temp();
    for name in ["famous.pgn", "selfplay.pgn"] {
        let pgn = sample(name);
        let plain = dir.path().join(format!("{name}.plain"));
        ok(
            dir.path(),
            &format!(
                "make-book -q {} --leveldb {}",
                pgn.display(),
                plain.display()
            ),
        );
        run_python(&python, "front_end.py", &[&plain, &pgn]);
        let full = dir.path().join(format!("{name}.full"));
        ok(
            dir.path(),
            &format!(
                "make-book -q {} --leveldb {} --index-stats",
                pgn.display(),
                full.display()
            ),
        );
        run_python(
            &python,
            "front_end.py",
            &[&full, &pgn, Path::new("--stats")],
        );
    }
    assert!(
        !dir.path().join("book.bin").exists(),
        "no book was asked for"
    );
}

#[test]
fn leveldb_itself_checks_and_compacts_an_index() {
    let Some(python) = python(&["plyvel"]) else {
        return;
    };
    let dir = temp();
    let path = dir.path().join("idx");
    let pgn = sample("selfplay.pgn").display().to_string();
    ok(
        dir.path(),
        &format!("make-book -q --leveldb idx --index-stats {pgn}"),
    );
    let mut keys = keys_of_two_games();
    let from_text = |moves| polybook::position::from_text(None, Some(moves)).unwrap();
    keys.extend(
        ["e4 c5", "d4 d5", "d4 Nf6", "c4"].map(|moves| polybook::position::key(&from_text(moves))),
    );
    let expected = answers(&path, &keys).unwrap();
    run_python(&python, "compact.py", &[&path]);
    ok(dir.path(), "verify -q idx");
    assert!(contents(&path).keys().any(|name| name.ends_with(".log")));
    assert_eq!(answers(&path, &keys).unwrap(), expected);
}

#[test]
fn tables_of_leveldb_that_share_a_key_are_read() {
    let Some(python) = python(&["plyvel"]) else {
        return;
    };
    let dir = temp();
    let path = dir.path().join("idx");
    let pgn = sample("famous.pgn").display().to_string();
    ok(dir.path(), &format!("make-book -q --leveldb idx {pgn}"));
    let keys = keys_of_two_games();
    let expected = answers(&path, &keys).unwrap();
    let game = "games idx --pgn --id 0";
    let text = ok(dir.path(), game);
    run_python(&python, "snapshots.py", &[&path]);
    ok(dir.path(), "verify -q idx");
    assert_eq!(answers(&path, &keys).unwrap(), expected);
    assert_eq!(ok(dir.path(), game), text);
}

#[test]
fn an_index_of_another_version_is_named() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    ok(dir.path(), &format!("make-book -q --explorer idx {pgn}"));
    let mut db = rusty_leveldb::DB::open(dir.path().join("idx"), Default::default()).unwrap();
    let value = db.get(b"xz").unwrap();
    // The value begins with the version of the layout in decimal and a bar.
    let bar = value.iter().position(|&byte| byte == b'|').unwrap();
    db.put(b"xz", &[b"6", &value[bar..]].concat()).unwrap();
    db.close().unwrap();
    for line in ["show idx --player Tal", "games idx", "verify idx"] {
        let error = fails(dir.path(), line, 1);
        let advice =
            "another version of polybook: make the index again with polybook make-book --explorer";
        assert!(error.contains(advice), "{error}");
    }
    // An index of an older version is replaced like one of this version.
    ok(
        dir.path(),
        &format!("make-book -q --force --explorer idx {pgn}"),
    );
    ok(dir.path(), "games idx");
}

#[test]
fn the_master_games_are_indexed_to_the_last() {
    let Some(corpus) = corpus() else {
        return;
    };
    let dir = temp();
    let pgn = corpus.join("masters.pgn");
    let report = ok_json(
        dir.path(),
        &format!("make-book -q --json --leveldb idx {}", pgn.display()),
    );
    assert_eq!(report["index"]["games"], 67_281);
    let size: usize = contents(&dir.path().join("idx"))
        .values()
        .map(Vec::len)
        .sum();
    let pgn_size = fs::metadata(&pgn).unwrap().len();
    assert!(size as u64 <= 3 * pgn_size, "{size} bytes");
    let index = Index::open(dir.path().join("idx")).unwrap();
    assert_eq!(index.game_count(), 67_281);
}

#[test]
fn nothing_but_input_and_options_decides_the_contents() {
    let dir = temp();
    let pgn = sample("selfplay.pgn");
    let made = |options: &str| {
        ok(
            dir.path(),
            &format!(
                "make-book -q --leveldb idx --force --index-stats {options} {}",
                pgn.display()
            ),
        );
        contents(&dir.path().join("idx"))
    };
    let expected = made("");
    for options in [
        "--threads 1",
        "--threads 7",
        "--memory 64KiB",
        "--memory 64KiB --threads 3 --bin b.bin --min-game 9",
    ] {
        assert!(made(options) == expected, "{options}");
    }
}

#[test]
fn several_inputs_are_numbered_through() {
    let dir = temp();
    write(
        dir.path(),
        "a.pgn",
        "[White \"A0\"]\n\n1. e4 *\n\n[White \"A1\"]\n\n1. d4 *\n",
    );
    write(dir.path(), "b.pgn", "[White \"B0\"]\n\n1. e4 e5 *\n");
    write(dir.path(), "empty.pgn", "");
    let report = ok_json(
        dir.path(),
        "make-book -q --json --leveldb idx a.pgn empty.pgn b.pgn",
    );
    assert_eq!(report["index"]["games"], 3);
    assert_eq!(report["index"]["positions"], 4);
    assert_eq!(report["index"]["postings"], 7);

    let index = Index::open(dir.path().join("idx")).unwrap();
    // The empty file has no games, so the next file begins with the same game number.
    let files: Vec<_> = index
        .files()
        .map(|(id, path)| (id, path.file_name().unwrap().to_owned()))
        .collect();
    assert_eq!(files, [(0, "a.pgn".into()), (2, "b.pgn".into())]);
    assert!(index.files().all(|(_, path)| path.is_absolute()));
    let found = ok_json(dir.path(), "games idx --moves e4 --json");
    assert_eq!(found["total"], 2);
    let white: Vec<_> = found["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| &game["white"])
        .collect();
    assert_eq!(white, ["A0", "B0"]);
    assert_eq!(found["games"][1]["id"], 2);
    assert_eq!(
        ok(dir.path(), "games idx --pgn --id 2 --id 0"),
        "[White \"B0\"]\n\n1. e4 e5 *\n[White \"A0\"]\n\n1. e4 *\n\n"
    );
}

#[test]
fn places_are_exact_and_texts_byte_for_byte() {
    let dir = temp();
    let games = [
        "[Event \"0\"]\n[White \"A\"]\n\n1. e4 { [x] } e5 1-0\n\n",
        "1. d4 d5 *\n",
        "1. c4 *\n\n{ before the next }\n; and this\n",
        "[Event \"3\"]\n\n1. Nf3 *\n",
        "[Event \"4\"]\n\n1. b3 Ke4 *\n\n",
        "[Event \"5\"]\n\n1. g3 *",
    ];
    for (name, line_end, mark) in [
        ("lf", "\n", ""),
        ("crlf", "\r\n", ""),
        ("cr", "\r", ""),
        ("bom", "\n", "\u{feff}"),
    ] {
        let text = mark.to_owned() + &games.concat().replace('\n', line_end);
        let pgn = format!("{name}.pgn");
        write(dir.path(), &pgn, &text);
        write(
            dir.path(),
            &format!("{pgn}.zst"),
            zstd::encode_all(text.as_bytes(), 1).unwrap(),
        );
        for file in [pgn.clone(), format!("{pgn}.zst")] {
            ok(
                dir.path(),
                &format!("make-book -q --force --leveldb idx {file}"),
            );
            let index = Index::open(dir.path().join("idx")).unwrap();
            assert_eq!(index.game_count(), 6);
            for (id, game) in games.iter().enumerate() {
                let game = game.replace('\n', line_end);
                // Text before a game without tags does not belong to the game.
                let found = index.text(id as u32).unwrap();
                assert_eq!(String::from_utf8_lossy(&found), game, "{file} game {id}");
                let offset = index.header(id as u32).unwrap().offset();
                if game.starts_with('[') {
                    assert!(text[offset.unwrap() as usize..].starts_with(&game))
                } else {
                    assert_eq!(offset, None)
                }
            }
            assert!(index.text(6).is_err());
        }
    }
    let output = run(dir.path(), "games idx --pgn --id 0");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("compressed"), "{told}");
}

/// The index of polyglot's fork has no checksums of texts, so a text must begin like the indexed game.
#[test]
fn texts_without_tags_of_an_index_of_all_variants_are_returned() {
    let dir = temp();
    let games = "1. e4 e5 *\n\n1. d4 d5 *\n\n";
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    for variant in ["standard", "crazyhouse", "atomic"] {
        let line = format!(
            "make-book -q --force --leveldb idx --variant auto --untagged-variant {variant} games.pgn"
        );
        ok(dir.path(), &line);
        let index = Index::open(dir.path().join("idx")).unwrap();
        assert_eq!(index.text(1).unwrap(), b"1. d4 d5 *\n\n", "{variant}");
    }
}

#[test]
fn only_texts_that_begin_like_the_indexed_games_are_returned() {
    let dir = temp();
    let file = dir.path().join("games.pgn");
    let tagged = "[White \"A\"]\n\n1. e4 *\n\n";
    let untagged = "1. d4 d5 *\n\n";
    let only_other_tags = "[Annotator \"B\"]\n\n1. c4 *\n\n";
    for (games, replaced, is_found) in [
        (untagged.to_owned(), untagged.replace("d5", "e6"), true),
        (untagged.to_owned(), "1. f4 f5 *\n".to_owned(), false),
        (
            untagged.to_owned(),
            "root:x:0:0:root:/root:/bin/sh\n".to_owned(),
            false,
        ),
        (untagged.to_owned(), "{ a secret } *\n".to_owned(), false),
        (
            untagged.to_owned(),
            "[White \"A\"]\n\n1. d4 *\n".to_owned(),
            false,
        ),
        (tagged.to_owned(), tagged.replace("e4", "d4"), true),
        (tagged.to_owned(), tagged.replace('A', "B"), false),
        (
            only_other_tags.to_owned(),
            only_other_tags.replace('B', "C"),
            true,
        ),
        (
            only_other_tags.to_owned(),
            "root:x:0:0:root:/root:/bin/sh\n".to_owned(),
            false,
        ),
        (
            only_other_tags.to_owned(),
            "[client]\npassword = secret\n".to_owned(),
            false,
        ),
        (
            only_other_tags.to_owned(),
            "1. c4 secret *\n".to_owned(),
            false,
        ),
    ] {
        fs::write(&file, &games).unwrap();
        ok(dir.path(), "make-book -q --force --leveldb idx games.pgn");
        let index = Index::open(dir.path().join("idx")).unwrap();
        assert_eq!(index.text(0).unwrap(), games.as_bytes());
        fs::write(&file, &replaced).unwrap();
        match index.text(0) {
            Ok(text) => assert!(is_found && text == replaced.as_bytes(), "{replaced}"),
            Err(err) => assert!(!is_found, "{replaced}: {err}"),
        }
    }
}

#[test]
fn filtered_and_rejected_games_keep_their_records() {
    let dir = temp();
    write(
        dir.path(),
        "games.pgn",
        "[White \"A\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n[White \"B\"]\n[Result \"0-1\"]\n\n1. e4 0-1\n\n[White \"C\"]\n[Result \"1-0\"]\n\n1. e4 Ke4 1-0\n",
    );
    ok(
        dir.path(),
        "make-book -q --leveldb idx --result 1-0 games.pgn",
    );
    let found = ok_json(dir.path(), "games idx --json");
    assert_eq!(found["total"], 1);
    let index = Index::open(dir.path().join("idx")).unwrap();
    let names: Vec<_> = (0..3)
        .map(|id| index.header(id).unwrap().tag("White").into_owned())
        .collect();
    assert_eq!(names, ["A", "B", "C"]);
}

#[test]
fn positions_up_to_the_last_and_up_to_max_ply() {
    let dir = temp();
    write(
        dir.path(),
        "games.pgn",
        "[White \"A\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Ng1 Nb8 *\n",
    );
    let total = |options: &str, moves: &str| {
        ok(
            dir.path(),
            &format!("make-book -q --force --leveldb idx {options} games.pgn"),
        );
        let output = polybook_in(dir.path())
            .args(["games", "idx", "--json", "--moves", moves])
            .output()
            .unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["games"].as_array().unwrap().len(), found["total"]);
        found["total"].as_u64().unwrap()
    };
    assert_eq!(total("", "e4 e5 Nf3 Nc6 Ng1"), 1);
    // A game that reaches a position twice is listed once.
    assert_eq!(total("", "e4 e5"), 1);
    assert_eq!(total("--max-ply 4", "e4 e5 Nf3 Nc6"), 1);
    assert_eq!(total("--max-ply 4", "e4 e5 Nf3 Nc6 Ng1"), 0);
    assert_eq!(total("--max-ply 0", ""), 1);
}

#[test]
fn pages_and_texts_of_games() {
    let dir = temp();
    ok(
        dir.path(),
        &format!(
            "make-book -q --leveldb idx {}",
            sample("selfplay.pgn").display()
        ),
    );
    let page = ok_json(dir.path(), "games idx --json --skip 498 --limit 10");
    assert_eq!(page["total"], 500);
    let ids: Vec<_> = page["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| &game["id"])
        .collect();
    assert_eq!(ids, [498, 499]);
    let texts = ok(dir.path(), "games idx --pgn --skip 0 --limit 500");
    assert_eq!(texts, fs::read_to_string(sample("selfplay.pgn")).unwrap());
    let listed = ok(dir.path(), "games idx --limit 2");
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[test]
fn unknown_details_of_a_game_are_null() {
    let dir = temp();
    let tags = "[White \"?\"]\n[Black \"-\"]\n[Date \"????.??.??\"]\n[EventDate \"2019.??.??\"]\n[Event \"\"]\n[WhiteElo \"2500\"]\n";
    write(
        dir.path(),
        "a.pgn",
        format!("{tags}\n1. e4 *\n\n1. d4 1-0\n"),
    );
    ok(dir.path(), "make-book -q a.pgn --explorer a.idx");
    let listed = ok_json(dir.path(), "games a.idx --json");
    let [first, second] = [0, 1].map(|game| listed["games"][game].as_object().unwrap().clone());
    let known = |game: serde_json::Map<String, serde_json::Value>| -> Vec<String> {
        let known = game
            .into_iter()
            .filter(|(name, value)| name != "file" && !value.is_null());
        known
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    };
    let mut found = known(first);
    found.sort();
    let expected = [
        "event_date=\"2019.??.??\"",
        "id=0",
        "offset=0",
        "opening={\"eco\":\"B00\",\"name\":\"King's Pawn Game\"}",
        "plies=1",
        "result=\"*\"",
        "speed=\"classical\"",
        "uci=\"e2e4\"",
        "variant=\"standard\"",
        "white_rating=2500",
        "year=2019",
    ];
    assert_eq!(found, expected);
    let opening = "opening={\"eco\":\"A40\",\"name\":\"Queen's Pawn Game\"}";
    let offset = format!("offset={}", tags.len() + "\n1. e4 *\n\n".len());
    let expected = [
        "id=1",
        "result=\"1-0\"",
        &offset,
        opening,
        "plies=1",
        "speed=\"classical\"",
        "variant=\"standard\"",
        "uci=\"d2d4\"",
    ];
    assert_eq!(known(second), expected);
}

#[test]
fn moves_need_statistics() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    ok(
        dir.path(),
        &format!("make-book -q --leveldb idx {}", pgn.display()),
    );
    let error = fails(dir.path(), "show idx", 1);
    assert!(error.contains("--index-stats"), "{error}");
    ok(
        dir.path(),
        &format!(
            "make-book -q --force --index-stats --leveldb idx {}",
            pgn.display()
        ),
    );
    let found = ok_json(dir.path(), "show idx --json");
    let e4 = &found["moves"][0];
    assert_eq!(
        (e4["san"].as_str(), e4["games"].as_u64()),
        (Some("e4"), Some(21))
    );
    let sum = ["white", "draws", "black"]
        .map(|side| e4[side].as_u64().unwrap())
        .iter()
        .sum::<u64>();
    assert_eq!(sum, 21);
    let none = ok_json(dir.path(), "show idx --json --moves a3");
    assert_eq!(none["moves"], serde_json::json!([]));
}

#[test]
fn an_existing_index_is_replaced_only_by_force() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let make = format!("make-book -q --leveldb idx {pgn}");
    // An empty directory may be replaced.
    fs::create_dir(dir.path().join("idx")).unwrap();
    ok(dir.path(), &make);
    let error = fails(dir.path(), &make, 1);
    assert!(
        error.contains("idx exists") && error.contains("--force"),
        "{error}"
    );
    ok(dir.path(), &format!("{make} --force --max-ply 3"));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn directories_with_other_files_are_never_replaced() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let make = format!("make-book -q --leveldb idx --force {pgn}");
    fs::create_dir(dir.path().join("idx")).unwrap();
    write(dir.path(), "idx/precious", "mine");
    let error = fails(dir.path(), &make, 1);
    assert!(
        error.contains("idx: this path exists and is not an index"),
        "{error}"
    );
    // An index that contains other files is not replaced either.
    fs::remove_file(dir.path().join("idx/precious")).unwrap();
    ok(dir.path(), &make);
    fs::copy(&pgn, dir.path().join("idx/games.pgn")).unwrap();
    let error = fails(
        dir.path(),
        "make-book -q --leveldb idx --force idx/games.pgn",
        1,
    );
    assert!(error.contains("both an input and an output"), "{error}");
    let error = fails(dir.path(), &make, 1);
    assert!(error.contains("games.pgn"), "{error}");
    assert!(dir.path().join("idx/games.pgn").exists());
}

#[test]
fn reading_an_index_does_not_change_its_files() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    ok(dir.path(), &format!("make-book -q --leveldb idx {pgn}"));
    let before = contents(&dir.path().join("idx"));
    ok(dir.path(), "games idx");
    assert!(contents(&dir.path().join("idx")) == before);
}

#[test]
fn an_error_describes_a_path_that_is_not_an_index() {
    let dir = temp();
    let path = dir.path();
    fs::create_dir(path.join("directory")).unwrap();
    write(path, "file", "x");
    for (name, expected) in [
        ("directory", "empty directory"),
        (".", "is not an index"),
        ("file", "contains no game"),
        ("missing", "does not exist"),
    ] {
        let error = fails(path, &format!("games {name} -q"), 1);
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }

    // Databases that polybook did not make.
    let database = |name: &str, entries: &[(&[u8], &[u8])]| {
        let options = rusty_leveldb::Options::default();
        let mut db = rusty_leveldb::DB::open(path.join(name), options).unwrap();
        for (key, value) in entries {
            db.put(key, value).unwrap();
        }
        db.close().unwrap();
    };
    database("other", &[(b"a", b"b")]);
    let error = fails(path, "games other", 1);
    assert!(error.contains("is not an index of games"), "{error}");
    database(
        "passes",
        &[(b"numPasses", b"3"), (b"total_game_count", b"1")],
    );
    let error = fails(path, "games passes", 1);
    assert!(error.contains("an old layout"), "{error}");
}

#[test]
fn damaged_indexes_are_errors() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    ok(dir.path(), &format!("make-book -q --leveldb idx {pgn}"));
    let whole = contents(&dir.path().join("idx"));
    type Change = fn(&mut Vec<u8>);
    let damage: [(&str, Change); 6] = [
        ("CURRENT", |bytes| bytes.clear()),
        ("MANIFEST-000001", |bytes| bytes.truncate(20)),
        ("MANIFEST-000001", |bytes| bytes[12] ^= 0xff),
        ("000003.ldb", |bytes| bytes.clear()),
        ("000003.ldb", |bytes| bytes.truncate(500)),
        ("000003.ldb", |bytes| bytes.fill(0xa5)),
    ];
    for (name, change) in damage {
        for (file, bytes) in &whole {
            let mut bytes = bytes.clone();
            if file == name {
                change(&mut bytes);
            }
            write(dir.path(), &format!("idx/{file}"), bytes);
        }
        let error = fails(dir.path(), "games idx", 1);
        assert!(error.contains("idx"), "{name}: {error}");
    }
    fs::remove_file(dir.path().join("idx/000003.ldb")).unwrap();
    fails(dir.path(), "games idx", 1);
}

#[test]
fn standard_input_is_indexed_without_texts() {
    let dir = temp();
    let mut child = polybook_in(dir.path())
        .args(["make-book", "-q", "--leveldb", "idx", "-"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"[White \"A\"]\n\n1. e4 *\n")
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        ok_json(dir.path(), "games idx --json")["games"][0]["white"],
        "A"
    );
    let error = fails(dir.path(), "games idx --pgn --id 0", 1);
    assert!(error.contains("standard input"), "{error}");
}

#[test]
fn a_changed_pgn_is_noticed() {
    let dir = temp();
    write(
        dir.path(),
        "games.pgn",
        "[White \"A\"]\n\n1. e4 *\n\n[White \"B\"]\n\n1. e4 *\n",
    );
    ok(dir.path(), "make-book -q --leveldb idx games.pgn");
    write(
        dir.path(),
        "games.pgn",
        "; a line more\n[White \"A\"]\n\n1. e4 *\n\n[White \"B\"]\n\n1. e4 *\n",
    );
    let error = fails(dir.path(), "games idx -q --pgn --id 1", 1);
    assert!(error.contains("has changed"), "{error}");
    // A different game at the same offset is also noticed.
    write(
        dir.path(),
        "games.pgn",
        "[White \"A\"]\n\n1. e4 *\n\n[White \"C\"]\n\n1. e4 *\n",
    );
    ok(dir.path(), "games idx -q --pgn --id 0");
    let error = fails(dir.path(), "games idx -q --pgn --id 1", 1);
    assert!(error.contains("has changed"), "{error}");
    write(dir.path(), "games.pgn", "[White \"A\"]\n\n");
    let error = fails(dir.path(), "games idx -q --pgn --id 1", 1);
    assert!(error.contains("has changed"), "{error}");
    fs::remove_file(dir.path().join("games.pgn")).unwrap();
    let error = fails(dir.path(), "games idx -q --pgn --id 1", 1);
    assert!(error.contains("games.pgn"), "{error}");
}

/// Returns the answers of an index to some queries, or the first error.
fn answers(index: &Path, keys: &[u64]) -> polybook::Result<Vec<String>> {
    let index = Index::open(index)?;
    let files: Vec<_> = index.files().collect();
    let mut answers = vec![format!(
        "{} {files:?} {:?}",
        index.game_count(),
        index.variant()
    )];
    for id in 0..index.game_count() as u32 {
        answers.push(format!("{:?}", index.header(id)?));
    }
    match index.kind() {
        IndexKind::Leveldb => {
            for key in keys {
                answers.push(format!("{:?} {:?}", index.games(*key)?, index.stats(*key)?));
            }
        }
        _ => answers.extend(explored_answers(index.path())?),
    }
    Ok(answers)
}

/// Returns the answers of the explorer.
fn explored_answers(index: &Path) -> polybook::Result<Vec<String>> {
    let explorer = Explorer::open([("games".to_owned(), index.to_owned())])?;
    let mut answers = vec![format!(
        "{:?} {:?}",
        explorer.about(),
        explorer.find("abcdefgh")?
    )];
    for line in ["", "e2e4", "e2e4,e7e5", "d2d4"] {
        let line = Line::parse(Variant::Standard, None, line).unwrap();
        let mut query = Query::new(line, View::Lichess);
        answers.push(format!("{:?}", explorer.answer(&query)?));
        query.filters.player = vec!["a".to_owned()];
        let page = Page {
            skip: 0,
            limit: 9,
            sort: Sort::Recent,
            fold_matches: false,
        };
        answers.push(format!("{:?}", explorer.games(&query, &page)?));
    }
    Ok(answers)
}

/// Flips every bit of an index, and truncates each of its files at every offset. All answers must be correct, or
/// an error must name the index.
fn damage_everywhere(index: &Path, keys: &[u64], is_ours: bool) {
    let expected = answers(index, keys).unwrap();
    let check = |what: &str| match answers(index, keys) {
        Ok(found) => assert_eq!(found, expected, "{what}"),
        Err(err) => {
            let err = err.to_string();
            assert!(err.contains(index.to_str().unwrap()), "{what}: {err}");
            assert!(!err.contains('\n'), "{what}: {err}");
        }
    };
    for (name, mut bytes) in contents(index) {
        if matches!(name.as_str(), "LOG" | "LOG.old" | "LOCK") {
            continue;
        }
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(index.join(&name), &bytes).unwrap();
            check(&format!("{name}, bit {bit}"));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // A process that was killed may leave a log that ends after a complete record. polybook's log contains only one
        // record.
        let may_end = !is_ours && (name.ends_with(".log") || name.starts_with("MANIFEST"));
        for len in 0..bytes.len() {
            fs::write(index.join(&name), &bytes[..len]).unwrap();
            let answers = answers(index, keys);
            assert!(answers.is_err() || may_end, "{name} cut at {len}");
        }
        fs::remove_file(index.join(&name)).unwrap();
        assert!(answers(index, keys).is_err(), "{name} removed");
        fs::write(index.join(&name), &bytes).unwrap();
        assert_eq!(answers(index, keys).unwrap(), expected);
    }
}

const TWO_GAMES: &str = "[White \"A\"]\n[Site \"lichess.org/abcdefgh\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n[White \"B\"]\n\n1. e4 *\n";

/// Returns the keys of the positions in these games, and a key that no game reached.
fn keys_of_two_games() -> Vec<u64> {
    ["", "e4", "e4 e5", "d4"]
        .map(|moves| {
            let position = polybook::position::from_text(None, Some(moves)).unwrap();
            polybook::position::key(&position)
        })
        .to_vec()
}

#[test]
fn flipping_any_bit_of_an_index_is_reported_or_harmless() {
    let dir = temp_in_memory();
    write(dir.path(), "games.pgn", TWO_GAMES);
    ok(
        dir.path(),
        "make-book -q --leveldb idx --index-stats --explorer explored games.pgn",
    );
    for index in ["idx", "explored"] {
        damage_everywhere(&dir.path().join(index), &keys_of_two_games(), true);
    }
}

#[test]
#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
fn flipping_any_bit_of_a_database_written_by_leveldb_is_reported_or_harmless() {
    let dir = temp_in_memory();
    write(dir.path(), "games.pgn", TWO_GAMES);
    ok(dir.path(), "make-book -q --explorer idx games.pgn");
    let keys = keys_of_two_games();
    let expected = answers(&dir.path().join("idx"), &keys).unwrap();

    // Write the entries again, most of them into tables and some into the log.
    let options = || rusty_leveldb::Options {
        reuse_logs: false,
        ..rusty_leveldb::Options::default()
    };
    let mut ours = rusty_leveldb::DB::open(dir.path().join("idx"), options()).unwrap();
    let foreign_path = dir.path().join("foreign");
    let mut foreign = rusty_leveldb::DB::open(&foreign_path, options()).unwrap();
    let mut entries = ours.new_iter().unwrap();
    let mut number = 0;
    while let Some((key, value)) = rusty_leveldb::LdbIterator::next(&mut entries) {
        foreign.put(&key, b"an older value").unwrap();
        foreign.put(&key, &value).unwrap();
        number += 1;
        if number == 5 {
            foreign.close().unwrap();
            drop(foreign);
            foreign = rusty_leveldb::DB::open(&foreign_path, options()).unwrap();
        }
    }
    foreign.close().unwrap();
    drop(foreign);
    let files = contents(&foreign_path);
    assert!(files.keys().any(|name| name.ends_with(".ldb")), "{files:?}");
    assert!(files.keys().any(|name| name.ends_with(".log")), "{files:?}");
    assert_eq!(answers(&foreign_path, &keys).unwrap(), expected);
    damage_everywhere(&foreign_path, &keys, false);
}

#[test]
#[cfg_attr(windows, ignore = "Windows removes no directory with open files")]
fn an_open_index_outlives_its_directory() {
    let dir = temp();
    let pgn = sample("selfplay.pgn").display().to_string();
    ok(dir.path(), &format!("make-book -q --leveldb idx {pgn}"));
    let path = dir.path().join("idx");
    let index = Index::open(&path).unwrap();
    let start = polybook::position::key(&polybook::position::from_text(None, None).unwrap());
    let check = || {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    assert_eq!(index.games(start).unwrap().len(), 500);
                    for id in 0..500 {
                        index.header(id).unwrap();
                    }
                });
            }
        });
    };
    fs::remove_dir_all(&path).unwrap();
    check();
    write(dir.path(), "games.pgn", TWO_GAMES);
    ok(dir.path(), "make-book -q --leveldb idx games.pgn");
    check();
    assert_eq!(Index::open(&path).unwrap().game_count(), 2);
}

#[test]
#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
fn malformed_values_are_named() {
    let dir = temp();
    let damaged = |key: &str, value: &str| {
        let path = dir.path().join(format!("{key} {value}"));
        let options = rusty_leveldb::Options::default();
        let mut db = rusty_leveldb::DB::open(&path, options).unwrap();
        for (key, value) in [
            ("total_game_count", "3"),
            ("game_0_data", "A|*|B|*|*|*|*|*|*|1||*|*|*"),
            ("5", "0,2,"),
            ("5_freq", "2"),
            ("5_draws", "0"),
            ("5_moves", "7,"),
            ("5_white_score", "-1"),
            (key, value),
        ] {
            db.put(key.as_bytes(), value.as_bytes()).unwrap();
        }
        db.close().unwrap();
        let answer = || -> polybook::Result<()> {
            let index = Index::open(&path)?;
            index.header(0)?;
            index.games(5)?;
            index.stats(5)?;
            Ok(())
        };
        answer()
    };
    damaged("5", "0,2,").unwrap();
    for (key, value) in [
        ("5", "2,0,"),
        ("5", "0,2"),
        ("5", "0,x,"),
        ("5_freq", ""),
        ("5_draws", "many"),
        ("5_moves", "7"),
        ("5_white_score", "1,"),
        ("game_0_data", "A|*|B"),
        ("total_game_count", "-3"),
        ("pgn_file_count", "2"),
        ("variant", "tiddlywinks"),
    ] {
        let err = damaged(key, value).unwrap_err().to_string();
        let named = match key {
            "pgn_file_count" => "pgn_file_0",
            "variant" => "tiddlywinks",
            _ => key,
        };
        assert!(err.contains(&format!("'{named}'")), "{key}: {err}");
    }
}

/// Returns the faults that `verify` finds in an index, or its error.
fn faults(index: &Path) -> Vec<String> {
    match polybook::index::verify(index, &Default::default()) {
        Ok(found) => found.faults.iter().map(ToString::to_string).collect(),
        Err(err) => {
            assert!(!matches!(err, polybook::Error::Panicked { .. }), "{err}");
            vec![err.to_string()]
        }
    }
}

#[test]
fn verify_finds_whole_indexes_in_order() {
    let dir = temp();
    for (number, options) in ["--leveldb", "--index-stats --leveldb", "--explorer"]
        .into_iter()
        .enumerate()
    {
        let pgns = [sample("famous.pgn"), sample("selfplay.pgn")];
        let [famous, selfplay] = pgns.map(|pgn| pgn.display().to_string());
        let index = format!("idx{number}");
        ok(
            dir.path(),
            &format!("make-book -q {options} {index} {famous} {selfplay}"),
        );
        let before = contents(&dir.path().join(&index));
        let found = ok_json(dir.path(), &format!("verify --json {index}"));
        assert_eq!(found["faults"], serde_json::json!([]));
        assert_eq!(found["checksum"], "matches");
        assert_eq!(found["second_opinion"], true);
        assert_eq!(contents(&dir.path().join(&index)), before);
    }
    // An index without games, and an index of games without tags.
    for (index, pgn) in [("none", ""), ("bare", "1. e4 e5 *\n1. d4 {\n1. c4 1-0\n")] {
        write(dir.path(), "games.pgn", pgn);
        ok(
            dir.path(),
            &format!("make-book -q --allow-empty --explorer {index} games.pgn"),
        );
        assert_eq!(faults(&dir.path().join(index)), [""; 0]);
    }
}

/// Checks that `verify` finds a fault wherever a byte of an index is changed or missing.
fn notices_each_changed_byte(index: &Path) {
    for (name, bytes) in contents(index) {
        let path = index.join(&name);
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            fs::write(&path, &damaged).unwrap();
            let found = faults(index);
            // The footer contains unused bytes between the block handles and the magic number.
            let is_footer = name.ends_with(".ldb") && place + 48 > bytes.len();
            assert!(found.len() == 1 || is_footer, "{name}, {place}: {found:?}");
            assert!(found.iter().all(|found| found.contains("idx")), "{found:?}");
        }
        for len in (0..bytes.len()).step_by(7) {
            fs::write(&path, &bytes[..len]).unwrap();
            assert!(!faults(index).is_empty(), "{name} cut at {len}");
        }
        fs::remove_file(&path).unwrap();
        assert!(!faults(index).is_empty(), "{name} removed");
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(faults(index), [""; 0]);
}

#[test]
fn verify_notices_each_changed_byte() {
    let dir = temp();
    write(dir.path(), "games.pgn", TWO_GAMES);
    ok(
        dir.path(),
        "make-book -q --leveldb idx --index-stats --explorer idx2 games.pgn",
    );
    for index in ["idx", "idx2"] {
        notices_each_changed_byte(&dir.path().join(index));
    }

    // This table is not read when the index is opened.
    let index = dir.path().join("idx");
    let pgn = sample("selfplay.pgn").display().to_string();
    ok(
        dir.path(),
        &format!("make-book -q --leveldb idx --force {pgn}"),
    );
    let table = index.join("000003.ldb");
    let mut bytes = fs::read(&table).unwrap();
    bytes[40] ^= 1;
    fs::write(table, bytes).unwrap();
    let error = fails(dir.path(), "verify idx", 1);
    for said in [
        "000003.ldb",
        "at byte 0",
        "checksum",
        "make the index again",
    ] {
        assert!(error.contains(said), "{error}");
    }
    let output = run(dir.path(), "verify --json idx");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(found["checksum"], "differs");
    assert_eq!(found["second_opinion"], false);
    fails(dir.path(), "verify idx --fix other", 1);
}

/// Writes values into an index as another program would, with correct checksums. `None` deletes an entry.
fn put(index: &Path, entries: &[(&[u8], Option<&[u8]>)]) {
    let mut db = rusty_leveldb::DB::open(index, rusty_leveldb::Options::default()).unwrap();
    for (key, value) in entries {
        match value {
            Some(value) => db.put(key, value).unwrap(),
            None => db.delete(key).unwrap(),
        }
    }
    db.close().unwrap();
}

/// Returns the entries of an index.
fn entries_of(index: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut db = rusty_leveldb::DB::open(index, rusty_leveldb::Options::default()).unwrap();
    let mut entries = db.new_iter().unwrap();
    std::iter::from_fn(|| rusty_leveldb::LdbIterator::next(&mut entries))
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

#[test]
#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
fn verify_reports_entries_that_contradict_each_other() {
    let dir = temp();
    write(dir.path(), "games.pgn", format!("{TWO_GAMES}\n1. e4 *\n"));
    ok(
        dir.path(),
        "make-book -q --leveldb idx --index-stats --explorer explored games.pgn",
    );
    let start = keys_of_two_games()[0].to_string();
    let stat = |name: &str| format!("{start}_{name}").into_bytes();
    let (freq, draws, score, moves) = (
        stat("freq"),
        stat("draws"),
        stat("white_score"),
        stat("moves"),
    );
    let fork = dir.path().join("idx");
    let record = &entries_of(&fork)
        .into_iter()
        .find(|(key, _)| key == b"game_1_data")
        .unwrap()
        .1;
    holds_entries(
        &fork,
        &[
            (start.as_bytes(), Some(&b"0,2,"[..]), "contradict"),
            (start.as_bytes(), Some(b"0,1,2"), "ascending order"),
            (start.as_bytes(), Some(b"0,2,1,"), "ascending order"),
            (start.as_bytes(), Some(b"0,1,3,"), "ascending order"),
            (start.as_bytes(), Some(b""), "ascending order"),
            (start.as_bytes(), None, "without games"),
            (&freq, Some(b"2"), "contradict"),
            (&draws, Some(b"4"), "contradict"),
            (&score, Some(b"2"), "contradict"),
            (&moves, Some(b"9,9,"), "contradict"),
            (&moves, Some(b"x"), "is malformed"),
            (&draws, None, "all statistics"),
            (b"007", Some(b"0,"), "is not the key of a position"),
            (b"game_1_data", None, "is not the number of games"),
            (b"game_1_data", Some(b"A|B"), "is malformed"),
            (b"game_01_data", Some(record), "is malformed"),
            (
                b"total_game_count",
                Some(b"2"),
                "is not the number of games",
            ),
            (b"zebra", Some(b""), "is malformed"),
            (b"xg\0\0\0\0", Some(b""), "another kind of index"),
            (b"pgn_filename", None, "'pgn_filename' is missing"),
            (b"pgn_file_0", Some(b"0|a.pgn"), "the number of inputs"),
        ],
    );
    let explored = dir.path().join("explored");
    let whole = entries_of(&explored);
    let first = |start: &[u8]| {
        whole
            .iter()
            .find(|entry| entry.0.starts_with(start))
            .unwrap()
    };
    let [rows, details, names, page] =
        [b"xg", b"xh", b"xn", b"xp"].map(|start| &first(start).0[..]);
    let shorter = |start: &[u8]| first(start).1.split_last().unwrap().1;
    let version = first(b"xz").1.split(|byte| *byte == b'|').next().unwrap();
    let fewer_names = [version, b"|8|1|1|1"].concat();
    holds_entries(
        &explored,
        &[
            (b"1", Some(b"0,"), "another kind of index"),
            (b"game_1_data", Some(record), "another kind of index"),
            (b"total_game_count", Some(b"2"), "damaged"),
            (rows, None, "does not describe the content of the index"),
            (rows, Some(shorter(rows)), "damaged"),
            (details, None, "does not describe the content of the index"),
            (details, Some(shorter(details)), "damaged"),
            (names, Some(shorter(names)), "damaged"),
            (names, None, "does not describe the content of the index"),
            (page, Some(shorter(page)), "is malformed"),
            (page, None, "does not describe the content of the index"),
            (b"xz", Some(&fewer_names), "a name that does not exist"),
            (b"xz", None, "another kind of index"),
            (b"pgn_filename", None, "'pgn_filename' is missing"),
        ],
    );
}

/// The key of an entry, its value (`None` to delete it), and a part of the fault that `verify` must find.
type EntryCase<'a> = (&'a [u8], Option<&'a [u8]>, &'a str);

/// Changes each entry of an index as a case says: its key, its value (`None` to delete it), and a part of the
/// fault that `verify` must find. Then changes all entries at random, which must not fail.
fn holds_entries(index: &Path, cases: &[EntryCase<'_>]) {
    let whole = entries_of(index);
    let mut missed = Vec::new();
    for (key, value, said) in cases {
        let name = key.escape_ascii();
        put(index, &[(key, *value)]);
        let found = faults(index).join("; ");
        if !found.contains(said) {
            missed.push(format!("{name} {value:?}: {found}"));
        }
        let before = whole.iter().find(|entry| entry.0 == *key);
        put(index, &[(key, before.map(|entry| &entry.1[..]))]);
    }
    assert_eq!(missed, [""; 0]);
    assert_eq!(faults(index), [""; 0]);

    // The values are arbitrary.
    let mut random = fastrand::Rng::with_seed(3);
    for (key, value) in &whole {
        let mut other = value.clone();
        let place = random.usize(..=other.len());
        match random.u8(..3) {
            0 => other.truncate(place),
            1 => other.insert(place, random.u8(..)),
            _ => other[place.min(value.len() - 1)] = random.u8(..),
        }
        put(index, &[(key, Some(&other))]);
        faults(index);
        put(index, &[(key, Some(value))]);
    }
    assert_eq!(faults(index), [""; 0]);
}

#[test]
fn only_directories_without_other_files_are_recognized_as_indexes() {
    use polybook::index::is_index;
    let dir = temp();
    let path = dir.path().join("idx");
    assert!(!is_index(&path).unwrap());
    fs::create_dir(&path).unwrap();
    assert!(!is_index(&path).unwrap());
    fs::remove_dir(&path).unwrap();
    write(dir.path(), "games.pgn", TWO_GAMES);
    ok(dir.path(), "make-book -q --leveldb idx games.pgn");
    assert!(is_index(&path).unwrap());
    // The directory is not removed if it contains other files.
    write(&path, "games.pgn", TWO_GAMES);
    assert!(!is_index(&path).unwrap());
    fs::remove_file(path.join("games.pgn")).unwrap();
    fs::write(path.join("000003.ldb"), "damaged").unwrap();
    assert!(is_index(&path).is_err());

    let other = dir.path().join("other");
    let mut db = rusty_leveldb::DB::open(&other, rusty_leveldb::Options::default()).unwrap();
    db.put(b"key", b"value").unwrap();
    db.close().unwrap();
    assert!(!is_index(&other).unwrap());
}

#[cfg(unix)]
#[test]
fn paths_of_indexes_may_be_invalid_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = temp();
    let pgn = dir
        .path()
        .join(std::ffi::OsStr::from_bytes(b"M\xfcller|games.pgn"));
    fs::write(&pgn, TWO_GAMES).unwrap();
    for extra in [None, Some(sample("famous.pgn"))] {
        let path = dir.path().join(std::ffi::OsStr::from_bytes(b"idx \xff"));
        let made = polybook_in(dir.path())
            .args(["make-book", "-q", "--force", "--leveldb"])
            .arg(&path)
            .arg(&pgn)
            .args(extra)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let index = Index::open(&path).unwrap();
        assert_eq!(index.files().next(), Some((0, &*pgn)));
        assert!(
            TWO_GAMES.ends_with(
                str::from_utf8(&index.text(1).unwrap())
                    .unwrap()
                    .trim_start()
            )
        );
    }
}

/// The text of a game is compared with its checksum, even if the game has no tags.
#[test]
fn a_text_that_was_not_indexed_is_never_returned() {
    let dir = temp();
    let dir = dir.path();
    let games = [
        "1. e4 e5 *\n\n",
        "1. d4 d5 {a comment} *\n\n",
        "[White \"A\"]\n\n1. c4 *\n",
    ];
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(dir, "make-book -q games.pgn --explorer idx");
    for (number, game) in games.iter().enumerate() {
        assert_eq!(ok(dir, &*format!("games idx --pgn --id {number}")), *game);
    }
    let changed = [
        ["1. e4 c5 *\n\n", games[1], games[2]].concat(),
        games
            .concat()
            .replace("A", "B")
            .replace("comment", "c0mment")
            .replace("e5", "c5"),
        "root:x:0:0:root:/root:/bin/sh\n".repeat(9),
        String::new(),
    ];
    for text in changed {
        fs::write(dir.join("games.pgn"), &text).unwrap();
        let error = fails(dir, "games idx --pgn --id 0", 1);
        assert!(error.contains("make the index again"), "{text}: {error}");
    }
    fs::write(
        dir.join("games.pgn"),
        games.concat().replace("c4 *", "g4 *"),
    )
    .unwrap();
    assert_eq!(ok(dir, "games idx --pgn --id 1"), games[1]);
    fails(dir, "games idx --pgn --id 2", 1);
}

#[cfg(feature = "serve")]
#[test]
fn a_server_refuses_pgn_files_elsewhere() {
    use crate::common::served::Served;
    let dir = temp();
    let dir = dir.path();
    for name in ["mine", "theirs"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    fs::write(dir.join("mine/games.pgn"), "1. e4 e5 *\n").unwrap();
    ok(dir, "make-book -q mine/games.pgn --explorer theirs/idx");
    ok(dir, "make-book -q mine/games.pgn --explorer mine/idx");
    let error = fails(dir, "serve --listen 127.0.0.1:0 theirs/idx", 1);
    assert!(
        error.contains("games.pgn") && error.contains("allow this with --allow-pgn"),
        "{error}"
    );
    for args in ["mine/idx", "theirs/idx --allow-pgn mine", "mine/games.pgn"] {
        assert_eq!(
            Served::start(dir, args).get("/game/00000000").status,
            200,
            "{args}"
        );
    }
    // Games from standard input have no file, but those of the other inputs do.
    let mut command = polybook_in(dir);
    command.args(["make-book", "-q", "mine/games.pgn", "-", "--explorer"]);
    let input = fs::File::open(dir.join("mine/games.pgn")).unwrap();
    let made = command.arg("theirs/two").stdin(input).status().unwrap();
    assert!(made.success());
    let error = fails(dir, "serve --listen 127.0.0.1:0 theirs/two", 1);
    assert!(error.contains("--allow-pgn"), "{error}");
}

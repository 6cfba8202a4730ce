//! `merge-index`: the merged index is byte-identical to the index of all games.

use std::{
    fs,
    path::{Path, PathBuf},
    slice::from_ref,
};

use crate::common::{corpus, cut_games, fails, ok, ok_json, sample, short_games, temp};

/// Returns the files of an index with their bytes.
fn files(index: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(index)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[track_caller]
fn assert_same(dir: &Path, one: &str, other: &str) {
    let (one, other) = (files(&dir.join(one)), files(&dir.join(other)));
    let names = |files: &[(String, Vec<u8>)]| {
        files
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&one), names(&other));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other, "{name} differs");
    }
}

/// Makes an index of each part and an index of all games, merges those of the parts, and compares. `options` are
/// those of `make-book`, with `--leveldb` or `--explorer` as the last one.
fn merges(parts: &[&[PathBuf]], options: &str) {
    let dir = temp();
    let list = |part: &[PathBuf]| {
        let paths: Vec<String> = part.iter().map(|path| path.display().to_string()).collect();
        paths.join(" ")
    };
    let all: Vec<String> = parts.iter().map(|part| list(part)).collect();
    let make = |name: &str, inputs: &str| {
        let line = format!("make-book -q --allow-empty {inputs} {options} {name}");
        ok(dir.path(), &line);
    };
    make("all", &all.join(" "));
    let mut names = Vec::new();
    for (number, part) in all.iter().enumerate() {
        let name = format!("part{number}");
        make(&name, part);
        names.push(name);
    }
    let names = names.join(" ");
    for resources in [
        "",
        "--threads 1 --memory 64KiB",
        "--threads 3 --memory 9MiB",
    ] {
        let line = format!("merge-index -q {names} --out merged --force {resources}");
        ok(dir.path(), &line);
        assert_same(dir.path(), "all", "merged");
    }
    ok(dir.path(), "verify -q merged");
}

#[test]
fn merged_indexes_are_those_of_all_games() {
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    let dir = temp();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let empty = write("empty.pgn", "");
    let odd = write(
        "odd.pgn",
        "1. e4 1-0\n\n[White \"Tal, Mikhail\"]\n[Result \"1-0\"]\n\n1. e4 zz *\n\n[White \"TAL, Mikhail\"]\n\n1. Nf3 Nf6 2. Ng1 Ng8 1/2-1/2\n",
    );
    for options in [
        "--leveldb",
        "--index-stats --leveldb",
        "--explorer",
        "--max-ply 12 --explorer",
    ] {
        let two = [&famous, &selfplay].map(std::slice::from_ref);
        merges(&two, options);
        let many: [&[PathBuf]; 4] = [
            &[selfplay.clone(), odd.clone()],
            std::slice::from_ref(&empty),
            &[odd.clone(), empty.clone(), famous.clone()],
            std::slice::from_ref(&odd),
        ];
        merges(&many, options);
    }
}

#[test]
fn merged_indexes_of_variants() {
    let variants = sample("variants.pgn");
    let parts: [&[PathBuf]; 2] = [
        std::slice::from_ref(&variants),
        &[sample("famous.pgn"), variants.clone()],
    ];
    merges(&parts, "--variant auto --explorer");
    merges(&parts, "--variant auto --index-stats --leveldb");
}

#[test]
fn merged_indexes_have_the_sums_of_all_games() {
    let dir = temp();
    let [one, other] = [(0, 31_000), (31_000, 4_000)].map(|(first, games)| {
        let path = dir.path().join(format!("{first}.pgn"));
        fs::write(&path, short_games(first, games)).unwrap();
        path
    });
    // Only the merged index has more games in the starting position than fit into a list without sums.
    merges(&[&[one], &[other]], "--explorer");
}

#[test]
fn merged_indexes_of_masters() {
    let Some(corpus) = corpus() else {
        return;
    };
    let masters = corpus.join("masters.pgn");
    let dir = temp();
    let cut = |sevenths: &[usize]| -> Vec<[PathBuf; 1]> {
        let names = cut_games(&masters, dir.path(), sevenths.iter().copied());
        names.iter().map(|name| [dir.path().join(name)]).collect()
    };
    for (sevenths, options) in [
        (&[6, 7][..], "--explorer"),
        (&[1, 2, 3, 4, 5, 6, 7], "--explorer"),
        (&[6, 7], "--index-stats --leveldb"),
    ] {
        let parts = cut(sevenths);
        let parts: Vec<&[PathBuf]> = parts.iter().map(|part| &part[..]).collect();
        merges(&parts, options);
    }
}

#[test]
fn a_merged_index_answers() {
    let dir = temp();
    for name in ["famous", "selfplay"] {
        let pgn = sample(&format!("{name}.pgn"));
        let line = format!("make-book -q {} --explorer {name}.idx", pgn.display());
        ok(dir.path(), &line);
    }
    let merged = ok_json(
        dir.path(),
        "merge-index -q famous.idx selfplay.idx --out all.idx --json",
    );
    assert_eq!(
        (&merged["games"], &merged["path"]),
        (&545.into(), &"all.idx".into())
    );
    let both = "--leveldb famous.idx --leveldb selfplay.idx --json";
    for question in [
        "moves",
        "games",
        "moves --moves e4,c5 --result 1-0",
        "games --sort recent --limit 20",
    ] {
        let (command, options) = question.split_once(' ').unwrap_or((question, ""));
        assert_eq!(
            ok(dir.path(), &format!("{command} {both} {options}")),
            ok(
                dir.path(),
                &format!("{command} --leveldb all.idx --json {options}")
            ),
            "{question}"
        );
    }
    let text = ok(dir.path(), "game --leveldb all.idx 45");
    assert_eq!(text, ok(dir.path(), "game --leveldb selfplay.idx 0"));
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let pgn = pgn.display();
    ok(dir.path(), &format!("make-book -q {pgn} --leveldb plain"));
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --leveldb stats --index-stats"),
    );
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --explorer explored"),
    );
    let variants = sample("variants.pgn");
    let line = format!(
        "make-book -q {} --variant atomic --leveldb atomic",
        variants.display()
    );
    ok(dir.path(), &line);
    fs::create_dir(dir.path().join("nothing")).unwrap();
    for (inputs, problem) in [
        ("plain stats", "--index-stats"),
        ("plain explored", "another kind"),
        ("explored plain", "another kind"),
        ("plain atomic", "variant"),
        ("plain nothing", "nothing"),
        ("plain absent", "absent"),
    ] {
        let error = fails(dir.path(), &format!("merge-index {inputs} --out new"), 1);
        assert!(error.contains(problem), "{inputs}: {error}");
        assert!(!dir.path().join("new").exists());
    }
    let error = fails(dir.path(), "merge-index plain plain --out plain --force", 1);
    assert!(error.contains("plain"), "{error}");
    ok(dir.path(), "merge-index -q plain plain --out twice");
    let error = fails(dir.path(), "merge-index plain --out twice", 1);
    assert!(error.contains("--force"), "{error}");
    fails(dir.path(), "merge-index --out new", 2);
}

#[test]
fn lists_that_are_not_held_are_merged_to_the_byte() {
    const GAMES: usize = 60_000;
    let dir = temp();
    let write = |name: &str, games: &str| {
        let path = dir.path().join(name);
        fs::write(&path, games).unwrap();
        path
    };
    // Two positions have nearly half a megabyte of ids each, and another position has few.
    let many = write("many.pgn", &"[White \"A\"]\n\n1. e4 1-0\n\n".repeat(GAMES));
    let few = write("few.pgn", &"[White \"B\"]\n\n1. e4 e5 0-1\n\n".repeat(10));
    for options in ["--leveldb", "--index-stats --leveldb", "--explorer"] {
        merges(
            &[
                from_ref(&few),
                &[many.clone(), few.clone()],
                from_ref(&many),
            ],
            options,
        );
        merges(&[from_ref(&many), from_ref(&few)], options);
    }
}

/// The chunks of a position are longer than the buffer for a page, both when they are read and when they are written.
#[test]
fn lists_longer_than_memory() {
    let dir = temp();
    let games = "1. e4 *\n\n".repeat(250_000);
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    for line in [
        "make-book -q games.pgn --explorer one",
        "merge-index -q one one one --out merged --memory 64KiB",
        "make-book -q games.pgn games.pgn games.pgn --explorer all --memory 1MiB",
    ] {
        ok(dir.path(), line);
    }
    assert_same(dir.path(), "merged", "all");
}

/// The index contains values by another program that are longer than any valid value.
#[test]
#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
fn statistics_and_pages_of_enormous_length_are_refused() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let open = |name: &str| {
        let options = rusty_leveldb::Options {
            write_buffer_size: 64 << 20,
            reuse_logs: false,
            ..rusty_leveldb::Options::default()
        };
        rusty_leveldb::DB::open(dir.path().join(name), options).unwrap()
    };
    let mut state = 1u64;
    let noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    let long: Vec<u8> = std::iter::repeat_with(noise).take(400_000).collect();
    let is_statistics = |key: &[u8]| key[0].is_ascii_digit() && key.contains(&b'_');
    let is_page = |key: &[u8]| key.starts_with(b"xp");
    for (name, option, is_damaged) in [
        (
            "statistics",
            "--index-stats --leveldb",
            &is_statistics as &dyn Fn(&[u8]) -> bool,
        ),
        ("page", "--explorer", &is_page),
    ] {
        let sound = format!("sound-{name}");
        let line = format!("make-book -q {} {option} {sound}", pgn.display());
        ok(dir.path(), &line);
        let mut entries = Vec::new();
        let mut database = open(&sound);
        let mut all = database.new_iter().unwrap();
        while let Some(entry) = rusty_leveldb::LdbIterator::next(&mut all) {
            entries.push(entry);
        }
        drop(all);
        database.close().unwrap();
        fs::remove_dir_all(dir.path().join(&sound)).unwrap();
        ok(dir.path(), &line);
        let damaged = entries.iter().position(|(key, _)| is_damaged(key)).unwrap();
        let mut database = open(name);
        for (number, (key, value)) in entries.iter().enumerate() {
            let value = if number == damaged { &long } else { value };
            database.put(key, value).unwrap();
        }
        database.close().unwrap();
        // Turn the log into a table.
        open(name).close().unwrap();
        for inputs in [format!("{sound} {name}"), format!("{name} {sound}")] {
            let error = fails(dir.path(), &format!("merge-index -q {inputs} --out new"), 1);
            assert!(
                error.contains(name) && error.contains(" is damaged"),
                "{inputs}: {error}"
            );
        }
    }
}

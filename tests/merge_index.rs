//! `merge-index`: the merged index is, to the byte, the index of all the games.

use std::{
    fs,
    path::{Path, PathBuf},
    slice::from_ref,
};

use crate::common::{corpus, cut_games, fails, ok, ok_json, sample, short_games, temp};

/// The files of an index with their bytes.
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

/// Makes an index of each part and of all, merges those of the parts, and compares.
fn merges(parts: &[&[PathBuf]], options: &str) {
    let dir = temp();
    let list = |part: &[PathBuf]| {
        let paths: Vec<String> = part.iter().map(|path| path.display().to_string()).collect();
        paths.join(" ")
    };
    let all: Vec<String> = parts.iter().map(|part| list(part)).collect();
    let make = |name: &str, inputs: &str| {
        let line = format!("make-book -q --allow-empty {inputs} --leveldb {name} {options}");
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
        "",
        "--index-stats",
        "--explorer",
        "--explorer --index-stats --max-ply 12",
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
    merges(&parts, "--variant auto --explorer --index-stats");
}

#[test]
fn merged_indexes_have_the_sums_of_all_games() {
    let dir = temp();
    let [one, other] = [(0, 31_000), (31_000, 4_000)].map(|(first, games)| {
        let path = dir.path().join(format!("{first}.pgn"));
        fs::write(&path, short_games(first, games)).unwrap();
        path
    });
    // Only together they have more games in the starting position than a list without sums.
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
        (&[1, 2, 3, 4, 5, 6, 7], "--explorer --index-stats"),
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
        let line = format!(
            "make-book -q {} --leveldb {name}.idx --explorer",
            pgn.display()
        );
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
        &format!("make-book -q {pgn} --leveldb explored --explorer"),
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
        ("plain explored", "--explorer"),
        ("explored plain", "--explorer"),
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
    // Nearly half a megabyte of ids for each of two positions, and few for another.
    let many = write("many.pgn", &"[White \"A\"]\n\n1. e4 1-0\n\n".repeat(GAMES));
    let few = write("few.pgn", &"[White \"B\"]\n\n1. e4 e5 0-1\n\n".repeat(10));
    for options in ["", "--index-stats", "--explorer"] {
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

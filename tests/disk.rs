//! Tests of faulty disks, for each kind of output: all calls fail from some call on, reads and writes are short,
//! or the power is cut.
//!
//! In all cases, each target must be the complete old output or the complete new one. `faults.rs` tests single
//! failures.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    common::ok,
    faults::{
        KINDS, Outcome, Scene, assert_same, files, injector, is_temporary, part, tops, write_games,
    },
};

pub const BOOKS: &[&str] = &[
    "make-book games.pgn --threads 1 --min-game 1 --bin book.bin -q",
    "merge-book one.bin two.bin --out book.bin -q",
    "filter one.bin two.bin --out book.bin --reachable -q",
    "edit one.bin --in-place --set a3=50% -q",
    "convert one.obs.db3 book.bin --min-game 1 --threads 1 -q",
    "pgheader -c changed one.bin",
    "verify one.bin --fix book.bin -q",
];

pub const DATABASES: &[&str] = &[
    "make-book games.pgn --threads 1 --min-game 1 --obs games.obs.db3 --force -q",
    "make-book games.pgn --threads 1 --min-game 1 --memory 64KiB --obs games.obs.db3 --bin book.bin --force -q",
    "merge-book one.obs.db3 two.obs.db3 --out games.obs.db3 --force -q",
];

pub const DIRECTORIES: &[&str] = &[
    "make-book games.pgn --threads 1 --leveldb index --force -q",
    "make-book games.pgn --threads 1 --leveldb index --index-stats --force -q",
    "make-book games.pgn --threads 1 --explorer index --force -q",
    "make-book games.pgn --threads 1 --counts counts --force -q",
    "make-book games.pgn --threads 1 --min-game 1 --bin book.bin --leveldb index --obs games.obs.db3 --counts counts --force -q",
];

pub const TEXTS: &[&str] = &[
    "convert one.obs.db3 suite.pgn --plies 2 --min-game 1 --threads 1 --force -q",
    "convert one.obs.db3 suite.epd --plies 2 --min-game 1 --threads 1 --force -q",
    "convert one.obs.db3 table.csv --threads 1 --force -q",
    "convert one.obs.db3 table.jsonl --threads 1 --force -q",
    "convert one.obs.db3 table.parquet --threads 1 --force -q",
    "make-book games.pgn --threads 1 --min-game 1 --suite suite.epd --plies 2 --force -q",
    "tree one.bin --out tree.pgn --format pgn --force -q",
    "tree one.bin --out tree.txt --format text --force -q",
    "tree one.bin --out tree.jsonl --format jsonl --force -q",
    "repertoire build games.pgn --color white --max-ply 8 --threads 1 --out mine.pgn --force -q",
    "dump-book --bin one.bin --color white --out lines.txt --force -q",
    "man --dir . --force -q",
    "extract games.pgn more.pgn --out found.pgn --threads 1 --force -q",
    "extract games.pgn --clean --out found.pgn.zst --threads 1 --force -q",
    "extract games.pgn --position check --json --out found.json.gz --threads 1 --force -q",
];

pub const EVALUATIONS: &[&str] = &[
    "evals games.pgn --out my.evals --threads 1 -q",
    "evals games.pgn --out my.epd --threads 1 --force -q",
    "evals games.pgn --out my.parquet --threads 1 --force -q",
];

/// Writes the inputs of all commands: games of the sample, starting at the game `first`, and files that polybook
/// makes from them.
fn write_inputs(dir: &Path, first: usize) {
    write_games(dir, "games.pgn", "famous.pgn", first, 4);
    write_games(dir, "more.pgn", "famous.pgn", first + 2, 4);
    let games = fs::read_to_string(dir.join("games.pgn")).unwrap();
    let evaluation = format!("\n1. e4 {{ [%eval 0.{first}] }} e5 {{ [%eval #3,9] }} *\n");
    fs::write(dir.join("games.pgn"), games + &evaluation).unwrap();
    for (games, name) in [("games.pgn", "one"), ("more.pgn", "two")] {
        ok(
            dir,
            &format!(
                "make-book {games} --min-game 1 --bin {name}.bin --obs {name}.obs.db3 --leveldb {name} --force -q"
            ),
        );
    }
}

/// Creates a scene with the inputs of a command, and with old outputs that the command made from other inputs.
pub fn scene(line: &str) -> Scene {
    Scene::new(line, |dir| {
        write_inputs(dir, 7);
        ok(dir, line);
        // Manual pages do not depend on the inputs, so another text is written as the old page.
        let pages = tops(&files(dir)).map(Path::to_owned).collect::<Vec<_>>();
        for page in pages
            .iter()
            .filter(|name| name.extension() == Some("1".as_ref()))
        {
            fs::write(dir.join(page), "old").unwrap();
        }
        write_inputs(dir, 0);
    })
}

/// Returns numbers of calls for several runs of a command that makes `calls` calls. In each run, all calls fail
/// from this number on. The numbers are powers of three, and the last calls, which put the outputs in place.
fn firsts(calls: u64) -> BTreeSet<u64> {
    let doubling =
        std::iter::successors(Some(1), |nth| Some(nth * 3)).take_while(|nth| *nth <= calls);
    doubling
        .chain(calls.saturating_sub(4).max(1)..=calls)
        .collect()
}

/// Makes all calls of a kind fail from some call on. The next run, without failures, must succeed.
fn outlives_lasting_faults(line: &str) {
    let Some(injector) = injector() else { return };
    let scene = scene(line);
    for kind in KINDS {
        scene.restore();
        let sound = scene.run(injector, kind, "0");
        let error = String::from_utf8_lossy(&sound.output.stderr);
        assert!(sound.output.status.success(), "{line}: {error}");
        for nth in firsts(sound.calls) {
            scene.restore();
            let outcome = scene.run(injector, kind, format!("{nth}+"));
            let case = format!("{line}, {kind} from {nth} of {} on", sound.calls);
            judge_lasting(&scene, &case, kind, &outcome, &sound);
        }
    }
}

/// Returns `true` if a path is that of a temporary directory of a run, or inside one.
fn is_temporary_dir(path: &Path) -> bool {
    path.to_string_lossy().starts_with("polybook-temporary-")
}

fn judge_lasting(scene: &Scene, case: &str, kind: &str, outcome: &Outcome, sound: &Outcome) {
    let error = String::from_utf8_lossy(&outcome.output.stderr);
    let mut found = outcome.files.clone();
    found.retain(|path, _| !is_temporary(path) && !is_temporary_dir(path));
    if outcome.output.status.success() {
        assert!(kind != "sync", "{case}: an error of a sync is lost");
        assert_eq!(outcome.output.stdout, sound.output.stdout, "{case}");
        assert_same(case, &found, &sound.files);
    } else {
        assert_eq!(outcome.output.status.code(), Some(1), "{case}: {error}");
        assert!(error.starts_with("polybook: "), "{case}: {error}");
        assert_eq!(error.lines().count(), 1, "{case}: {error}");
        for top in tops(&sound.files) {
            let is_new = part(&found, top) == part(&sound.files, top);
            let is_old = part(&found, top) == part(&scene.before, top);
            assert!(
                is_new || is_old,
                "{case}: {} is torn: {error}",
                top.display()
            );
        }
    }
    // The error names each file that is kept under another name. The next run removes all temporary files.
    let told: Vec<PathBuf> = tops(&found)
        .filter(|top| !sound.files.contains_key(*top))
        .map(Path::to_owned)
        .collect();
    for top in &told {
        assert!(
            error.contains(&*top.to_string_lossy()),
            "{case}: {top:?} is not told: {error}"
        );
    }
    if outcome.files != sound.files {
        let mut after = scene.run_soundly(case);
        // An empty temporary directory may belong to a run that has not claimed it yet, so it is kept for a minute.
        let stays = |path: &Path| is_temporary_dir(path) && path.components().count() == 1;
        after.retain(|path, _| !told.iter().any(|top| path.starts_with(top)) && !stays(path));
        assert_same(case, &after, &sound.files);
    }
}

#[test]
fn books_survive_a_disk_that_stops_working() {
    BOOKS.iter().copied().for_each(outlives_lasting_faults);
}

#[test]
fn databases_survive_a_disk_that_stops_working() {
    DATABASES.iter().copied().for_each(outlives_lasting_faults);
}

#[test]
fn directories_survive_a_disk_that_stops_working() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    DIRECTORIES
        .iter()
        .copied()
        .for_each(outlives_lasting_faults);
}

#[test]
fn texts_survive_a_disk_that_stops_working() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    TEXTS.iter().copied().for_each(outlives_lasting_faults);
}

#[test]
fn evaluations_survive_a_disk_that_stops_working() {
    EVALUATIONS
        .iter()
        .copied()
        .for_each(outlives_lasting_faults);
}

#[test]
fn short_reads_and_writes_do_not_change_outputs() {
    let Some(injector) = injector() else { return };
    for line in [BOOKS, DATABASES, DIRECTORIES, TEXTS, EVALUATIONS].concat() {
        let scene = scene(line);
        let sound = scene.run(injector, "short", "0");
        let error = String::from_utf8_lossy(&sound.output.stderr);
        assert!(sound.output.status.success(), "{line}: {error}");
        scene.restore();
        let outcome = scene.run(injector, "short", "1+");
        let error = String::from_utf8_lossy(&outcome.output.stderr);
        assert!(outcome.calls > sound.calls, "{line}: no call was short");
        assert!(outcome.output.status.success(), "{line}: {error}");
        assert_eq!(outcome.output.stdout, sound.output.stdout, "{line}");
        assert_same(line, &outcome.files, &sound.files);
    }
}

#[test]
fn short_reads_and_writes_do_not_change_answers() {
    let Some(injector) = injector() else { return };
    for line in [
        "show one.bin --json",
        "show one.obs.db3 --json",
        "verify one.bin",
        "verify one",
        "dump-book --bin one.bin --color white --out -",
        "games one --pgn --moves e4",
        "make-book games.pgn --min-game 1 --bin - -q",
    ] {
        let scene = Scene::new(line, |dir| write_inputs(dir, 0));
        let sound = scene.run(injector, "short", "0");
        let outcome = scene.run(injector, "short", "1+");
        assert!(sound.output.status.success(), "{line}");
        assert!(outcome.calls > sound.calls, "{line}: no call was short");
        assert_eq!(outcome.output, sound.output, "{line}");
    }
}

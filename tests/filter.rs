//! `polybook filter` on the command line.

use std::{collections::BTreeSet, fs, path::Path};

use crate::common::{book_of, lines, ok, ok_json, records, run, sample, temp};
use polybook::position::Variant;
use proptest::prelude::*;

/// Makes a book of all sample games in which every move has a weight.
fn made() -> tempfile::TempDir {
    let dir = temp();
    let games = ["famous.pgn", "selfplay.pgn"].map(|name| sample(name).display().to_string());
    let line = format!("make-book -q --loss-factor 1 {}", games.join(" "));
    ok(dir.path(), &format!("{line} --min-game 1 --bin book.bin"));
    ok(
        dir.path(),
        &format!("{line} --min-game 1 --max-ply 8 --bin short.bin"),
    );
    dir
}

fn keys(book: &Path) -> BTreeSet<[u8; 8]> {
    let key = |record: &[u8; 16]| record[..8].try_into().unwrap();
    records(book).iter().map(key).collect()
}

#[test]
fn moves_are_kept_by_weight_share_and_number() {
    let dir = made();
    let before = ok_json(dir.path(), "show book.bin --json");
    let before = before["moves"].as_array().unwrap();
    assert!(before.len() > 5);
    let kept = |options: &str| {
        ok(
            dir.path(),
            &format!("filter -q book.bin --out kept.bin {options}"),
        );
        ok_json(dir.path(), "show kept.bin --json")["moves"]
            .as_array()
            .unwrap()
            .len()
    };
    let with = |is_kept: &dyn Fn(&serde_json::Value) -> bool| {
        before.iter().filter(|mv| is_kept(mv)).count()
    };
    assert_eq!(kept(""), before.len());
    let light = before[3]["weight"].as_u64().unwrap();
    assert_eq!(
        kept(&format!("--min-weight {light}")),
        with(&|mv| mv["weight"].as_u64().unwrap() >= light)
    );
    assert_eq!(
        kept("--min-share 20"),
        with(&|mv| mv["probability"].as_f64().unwrap() >= 20.0)
    );
    assert_eq!(kept("--best 2"), 2);
    assert_eq!(kept("--best 1 --normalize"), 1);
    let shown = ok_json(dir.path(), "show kept.bin --json");
    assert_eq!(shown["moves"][0]["weight"], 65535);
    let header = ok(dir.path(), "pgheader -s kept.bin");
    // The comment of the old book's header follows.
    let old = ok(dir.path(), "pgheader -s book.bin");
    let old = old.split_once("Comment:\n").unwrap().1;
    let old = old.rsplit_once("Checksum:").unwrap().0;
    assert!(
        old.contains("\nGames: ") && header.contains(old),
        "{header}"
    );
    assert!(
        header.contains("from book.bin\nOptions: --best 1 --normalize"),
        "{header}"
    );
}

#[test]
fn filter_keeps_the_reachable_positions_that_info_book_counts() {
    let dir = made();
    // If only one move of the starting position is left, most of the book is unreachable.
    ok(dir.path(), "filter -q book.bin --best 1 --out one.bin");
    let info = ok_json(dir.path(), "info-book --bin one.bin --json");
    assert!(info["isolated"].as_u64().unwrap() > 0, "{info}");
    let report = ok_json(
        dir.path(),
        "filter --json -q one.bin --reachable --out kept.bin",
    );
    let lines = ["white_positions", "black_positions"].map(|of| info[of].as_u64().unwrap());
    assert_eq!(report["positions"], lines[0] + lines[1]);
    assert_eq!(
        report["entries"],
        records(&dir.path().join("kept.bin")).len()
    );
    // Filtering once has the same effect as filtering twice.
    ok(
        dir.path(),
        "filter -q book.bin --best 1 --reachable --out direct.bin",
    );
    let records = |name: &str| records(&dir.path().join(name));
    assert_eq!(records("direct.bin"), records("kept.bin"));
    assert_eq!(
        ok_json(dir.path(), "info-book --bin kept.bin --json")["isolated"],
        0
    );
}

#[test]
fn positions_are_kept_by_their_distance_from_the_start() {
    let dir = made();
    ok(dir.path(), "filter -q book.bin --max-ply 8 --out kept.bin");
    let (kept, short) = (
        keys(&dir.path().join("kept.bin")),
        keys(&dir.path().join("short.bin")),
    );
    assert!(kept.is_superset(&short));
    assert!(kept.len() < keys(&dir.path().join("book.bin")).len() / 4);
    ok(dir.path(), "filter -q book.bin --max-ply 1 --out start.bin");
    assert_eq!(keys(&dir.path().join("start.bin")).len(), 1);
}

#[test]
fn several_books_are_merged_first() {
    let dir = made();
    ok(
        dir.path(),
        "merge-book -q book.bin short.bin --out both.bin",
    );
    let options = "--min-share 5 --best 4 --max-ply 20";
    ok(
        dir.path(),
        &format!("filter -q both.bin {options} --out a.bin"),
    );
    ok(
        dir.path(),
        &format!("filter -q book.bin short.bin {options} --out b.bin"),
    );
    let records = |name: &str| records(&dir.path().join(name));
    assert_eq!(records("a.bin"), records("b.bin"));
    // Filtering again changes nothing.
    ok(
        dir.path(),
        &format!("filter -q b.bin {options} --out c.bin"),
    );
    assert_eq!(records("b.bin"), records("c.bin"));
    ok(dir.path(), "verify c.bin");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Checks that filtering a book again changes nothing, for any memory budget, and that a line leads to every
    /// remaining position.
    #[test]
    fn filtering_a_filtered_book_changes_nothing(
        lines in lines(),
        best in 1..4u8,
        max_ply in 1..20u8,
        reachable in any::<bool>(),
    ) {
        let dir = temp();
        let dir = dir.path();
        fs::write(dir.join("book.bin"), book_of(&lines, Variant::Standard)).unwrap();
        prop_assume!(!records(&dir.join("book.bin")).is_empty());
        let options = format!(
            "--best {best} --min-share 10 --normalize -q {}",
            if reachable { "--reachable".to_owned() } else { format!("--max-ply {max_ply}") }
        );
        ok(dir, &format!("filter book.bin {options} --out once.bin"));
        ok(dir, &format!("filter once.bin {options} --out twice.bin --memory 64KiB"));
        let once = records(&dir.join("once.bin"));
        prop_assert_eq!(&once, &records(&dir.join("twice.bin")));
        prop_assert_eq!(ok(dir, "diff once.bin twice.bin"), "");
        let info = ok_json(dir, "info-book --bin once.bin --json");
        prop_assert_eq!(&info["isolated"], 0, "{}", info);
    }
}

#[test]
fn standard_output_gets_what_a_file_gets() {
    let dir = made();
    let book = fs::read(dir.path().join("book.bin")).unwrap();
    ok(dir.path(), "filter -q book.bin --best 2 --out a.bin");
    let output = run(dir.path(), "filter -q book.bin --best 2 --out -");
    assert!(output.stdout == fs::read(dir.path().join("a.bin")).unwrap());
    assert!(book == fs::read(dir.path().join("book.bin")).unwrap());
}

/// Writes a book whose starting position has e4, d4, and two illegal moves with the same total weight. The position
/// after e4 has only an illegal move. A position that no line reaches has d4 and an illegal move.
fn with_illegal_moves(dir: &Path) {
    use polybook::{
        book::Entry,
        position::{BookMove, from_text, key, read_move},
    };
    let record = |key, mv, weight| Entry {
        key,
        mv,
        weight,
        learn: 0,
    };
    let start = from_text(None, None).unwrap();
    let legal = |uci: &str| BookMove::from(read_move(&start, uci.as_bytes()).unwrap());
    let illegal = [BookMove(8), BookMove(16)];
    let after_e4 = key(&from_text(None, Some("e4")).unwrap());
    let mut entries = [
        record(key(&start), illegal[0], 40),
        record(key(&start), legal("e2e4"), 30),
        record(key(&start), legal("d2d4"), 20),
        record(key(&start), illegal[1], 10),
        record(after_e4, illegal[0], 5),
        record(77, illegal[0], 60),
        record(77, legal("d2d4"), 40),
    ];
    entries.sort_by_key(|entry| entry.key);
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
    fs::write(dir.join("odd.bin"), bytes).unwrap();
}

#[test]
fn shares_are_of_the_legal_moves() {
    let dir = temp();
    let dir = dir.path();
    with_illegal_moves(dir);
    let shares = |book: &str| {
        let found = ok_json(dir, &format!("show {book} --json"));
        let moves = found["moves"].as_array().unwrap().iter();
        let shares = moves.map(|mv| (mv["san"].clone(), mv["probability"].clone()));
        shares.filter(|(san, _)| !san.is_null()).collect::<Vec<_>>()
    };
    assert_eq!(
        shares("odd.bin"),
        [("e4".into(), 60.0.into()), ("d4".into(), 40.0.into())]
    );
    let kept = |options: &str| {
        ok(dir, &format!("filter -q odd.bin --out kept.bin {options}"));
        let found = ok_json(dir, "show kept.bin --json");
        let moves = found["moves"].as_array().unwrap().iter();
        let names: Vec<String> = moves.map(|mv| mv["san"].to_string()).collect();
        let others = keys(&dir.join("kept.bin")).len();
        (names.join(" "), others)
    };
    for (options, expected) in [
        // No filter.
        ("", ("null \"e4\" \"d4\" null".to_owned(), 3)),
        ("--best 1", ("\"e4\"".to_owned(), 2)),
        ("--best 2", ("\"e4\" \"d4\"".to_owned(), 2)),
        ("--min-share 35", ("\"e4\" \"d4\"".to_owned(), 2)),
        ("--min-share 45", ("\"e4\"".to_owned(), 2)),
        ("--min-weight 25", ("\"e4\"".to_owned(), 2)),
        ("--normalize", ("\"e4\" \"d4\"".to_owned(), 2)),
        ("--reachable", ("\"e4\" \"d4\"".to_owned(), 1)),
    ] {
        assert_eq!(kept(options), expected, "{options}");
    }
    ok(dir, "filter -q odd.bin --out kept.bin --normalize");
    assert_eq!(
        ok_json(dir, "show kept.bin --json")["moves"][0]["weight"],
        65_535
    );
    ok(dir, "edit -q odd.bin --out new.bin --set d4=50%");
    assert_eq!(
        shares("new.bin"),
        [("d4".into(), 50.0.into()), ("e4".into(), 50.0.into())]
    );
    // Illegal records keep their weights, and do not affect shares.
    let new = ok_json(dir, "show new.bin --json");
    let illegal = new["moves"].as_array().unwrap().iter();
    let illegal: Vec<_> = illegal.filter(|mv| mv["san"].is_null()).collect();
    assert_eq!(
        (&illegal[0]["weight"], &illegal[1]["weight"]),
        (&40.into(), &10.into())
    );
    ok(
        dir,
        "edit -q odd.bin --out all.bin --set e4=70% --set d4=30%",
    );
    assert_eq!(shares("all.bin")[0].1, 70.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shares_of_legal_moves_add_up(weights in proptest::collection::vec((any::<bool>(), any::<u16>()), 0..40)) {
        let legal = |(is_legal, weight): &(bool, u16)| is_legal.then_some(u64::from(*weight));
        let weights: Vec<_> = weights.iter().map(legal).collect();
        let shares = polybook::book::shares(&weights);
        let sum: f64 = shares.iter().flatten().sum();
        let expected = if weights.iter().flatten().any(|weight| *weight > 0) { 100.0 } else { 0.0 };
        prop_assert!((sum - expected).abs() < 1e-9, "{sum}");
        let total: u64 = weights.iter().flatten().sum();
        for (weight, share) in weights.iter().zip(&shares) {
            let expected = weight.map(|weight| weight as f64 / total.max(1) as f64);
            prop_assert_eq!(expected.is_some(), share.is_some());
            let difference = share.unwrap_or_default() - 100.0 * expected.unwrap_or_default();
            prop_assert!(difference.abs() < 1e-9, "{shares:?}");
        }
    }
}

/// The key of a position does not contain the number of checks. The third check ends a game, but the moves of the
/// position with fewer checks stay in the book.
#[test]
fn moves_of_positions_that_a_third_check_may_end_stay_in_the_book() {
    let dir = temp();
    let dir = dir.path();
    let lines = ["Nd7 3. Bf1 Nb8 4. a3", "Nc6", "c6"];
    let games = lines.map(|line| {
        format!(
            "[Variant \"Three-check\"]\n[Result \"1/2-1/2\"]\n\n1. e4 d5 2. Bb5+ {line} 1/2-1/2\n\n"
        )
    });
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --variant 3check --min-game 1 --bin all.bin",
    );
    // The search for positions goes on to repeated positions until it has found those of all records. It never finds
    // this one.
    let unreachable = [
        "edit",
        "-q",
        "all.bin",
        "--in-place",
        "1. a4 a5 2. h4",
        "--set",
        "h5=10",
    ];
    ok(dir, &unreachable[..]);
    let report = ok_json(dir, "filter all.bin --min-weight 1 --out same.bin --json");
    assert_eq!(report["entries"], 10);
    let args = ["show", "same.bin", "--json", "--moves", "e4 d5 Bb5+"];
    let replies = ok_json(dir, &args[..]);
    assert_eq!(replies["moves"].as_array().unwrap().len(), 3);
}

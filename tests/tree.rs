//! `polybook tree` on the command line, and other programs that read its output.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::common::{
    book_of, fails, lines, ok, ok_json, program, python, records, run, run_python, sample, temp,
};
use polybook::position::Variant;
use proptest::prelude::*;

/// Makes a book of the sample games in which every move has a weight, and further outputs.
fn made(options: &str) -> tempfile::TempDir {
    let dir = temp();
    let games = ["famous.pgn", "selfplay.pgn"].map(|name| sample(name).display().to_string());
    let line = format!(
        "make-book -q --min-game 1 --loss-factor 1 --bin book.bin --obs games.obs.db3 --leveldb games.idx --index-stats \
         {options} {}",
        games.join(" ")
    );
    ok(dir.path(), &line);
    dir
}

/// Returns the positions and moves of a book.
fn moves(book: &Path) -> BTreeSet<[u8; 10]> {
    let key_and_move = |record: &[u8; 16]| record[..10].try_into().unwrap();
    records(book).iter().map(key_and_move).collect()
}

/// Parses JSON lines.
fn documents(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn books_of_one_color_are_recognized() {
    let dir = made("");
    let dir = dir.path();
    let said = |line: &str| String::from_utf8(run(dir, line).stderr).unwrap();
    for (side, name, position) in [("white", "White", "e4"), ("black", "Black", "")] {
        let games = sample("selfplay.pgn").display().to_string();
        ok(
            dir,
            &format!("make-book -q --min-game 1 --only-{side} --bin {side}.bin {games}"),
        );
        assert_eq!(
            ok(dir, &format!("show {side}.bin {position}")),
            format!("The book has no move here. It seems to contain only moves of {name}.\n")
        );
        assert_eq!(
            said(&format!("tree {side}.bin")),
            format!(
                "the source seems to contain only moves of {name}: see its lines with --color {side}\n"
            )
        );
        assert!(said(&format!("tree {side}.bin --color {side}")).is_empty());
    }
    for source in ["book.bin", "games.obs.db3", "games.idx"] {
        assert!(said(&format!("tree {source}")).is_empty(), "{source}");
    }
    for source in ["book.bin", "games.obs.db3"] {
        let shown = ok(dir, &["show", source, "--fen", "8/8/8/8/8/4k3/8/4K3 w - -"]);
        assert_eq!(shown, "The book has no move here.\n", "{source}");
    }
}

#[test]
fn the_ending_of_the_file_chooses_the_format() {
    let dir = made("--max-ply 4");
    let dir = dir.path();
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    for (name, format) in [
        ("t.PGN", "pgn"),
        ("t.jsonl", "jsonl"),
        ("t.txt", "text"),
        ("t", "text"),
    ] {
        ok(dir, &format!("tree -q book.bin --out {name}"));
        ok(
            dir,
            &format!("tree -q book.bin --format {format} --out named --force"),
        );
        assert_eq!(read(name), read("named"), "{name}");
    }
    assert!(read("t.PGN").contains("[Event "));
    // The option decides if both are given.
    ok(dir, "tree -q book.bin --format text --out t.pgn --force");
    assert_eq!(read("t.pgn"), read("t.txt"));
}

#[test]
fn a_book_of_a_tree_has_the_moves_of_the_book() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    for options in ["", "--max-ply 12", "--uniform --max-ply 25"] {
        let dir = made(options);
        ok(dir.path(), "tree book.bin --format pgn --out tree.pgn -q");
        ok(
            dir.path(),
            "make-book -q tree.pgn --variations --uniform --min-game 1 --strict --bin again.bin",
        );
        let moves = |name| moves(&dir.path().join(name));
        assert!(moves("book.bin").len() > 300);
        assert!(moves("again.bin") == moves("book.bin"), "{options}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A tree restores its book, for any book and variant, even if lines transpose or are too deep for variations.
    #[test]
    fn any_book_comes_back_from_its_tree(lines in lines(), variant in 0..Variant::ALL.len(), max_ply in 1..25u8) {
        let variant = Variant::ALL[variant];
        // Other variants have no books.
        prop_assume!(variant.number().is_some());
        let dir = temp();
        let dir = dir.path();
        fs::write(dir.join("book.bin"), book_of(&lines, variant)).unwrap();
        prop_assume!(!records(&dir.join("book.bin")).is_empty());
        ok(dir, &format!("tree book.bin --variant {variant} --format pgn --out tree.pgn -q"));
        let options = "--variations --uniform --min-game 1 --strict --no-header -q";
        ok(dir, &format!("make-book tree.pgn --variant {variant} {options} --bin again.bin"));
        prop_assert_eq!(moves(&dir.join("again.bin")), moves(&dir.join("book.bin")));
        // If `--max-ply` is smaller, the tree contains the positions that are reachable in that number of half-moves.
        let tree = format!("tree book.bin --variant {variant} --max-ply {max_ply} --format jsonl");
        let near = documents(&ok(dir, &tree));
        ok(dir, &format!("tree book.bin --variant {variant} --max-ply {max_ply} --format pgn --out near.pgn -q"));
        ok(dir, &format!("make-book near.pgn --variant {variant} {options} --bin near.bin"));
        let count: usize = near.iter().map(|line| line["moves"].as_array().unwrap().len()).sum();
        prop_assert_eq!(moves(&dir.join("near.bin")).len(), count);
        prop_assert!(near.iter().all(|line| line["ply"].as_u64() < Some(max_ply.into())));
    }
}

#[test]
fn a_position_stands_where_it_is_reached_soonest() {
    let dir = temp();
    let dir = dir.path();
    // The position after 1. c4 e5 occurs later in the first line.
    let games = "1. c3 e6 2. c4 e5 3. Nc3 Nf6 4. Nf3 *\n\n1. c4 e5 2. Nc3 Nf6 3. Nf3 *\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --uniform --bin book.bin",
    );
    let text = ok(dir, "tree book.bin --max-ply 5");
    let expected = [
        "1. c3  weight 1, 50.0%",
        "  1... e6  weight 1, 100.0%",
        "    2. c4  weight 1, 100.0%",
        "      2... e5  weight 1, 100.0%  transposition",
        "1. c4  weight 1, 50.0%",
        "  1... e5  weight 1, 100.0%",
        "    2. Nc3  weight 1, 100.0%",
        "      2... Nf6  weight 1, 100.0%",
        "        3. Nf3  weight 1, 100.0%",
    ];
    let found: BTreeSet<&str> = text.lines().collect();
    assert_eq!(found, expected.into_iter().collect(), "{text}");
}

#[test]
fn json_lines_have_every_position_once() {
    let dir = made("--max-ply 20");
    let lines = documents(&ok(dir.path(), "tree book.bin --format jsonl"));
    let keys: BTreeSet<&str> = lines
        .iter()
        .map(|line| line["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys.len(), lines.len());
    let known: usize = lines
        .iter()
        .map(|line| line["moves"].as_array().unwrap().len())
        .sum();
    assert_eq!(known, records(&dir.path().join("book.bin")).len());
    for line in lines.iter().step_by(50) {
        let fen = line["fen"].as_str().unwrap();
        let shown = ok_json(dir.path(), &["show", "book.bin", "--json", "--fen", fen]);
        assert_eq!(shown["key"], line["key"]);
        for (mv, shown) in line["moves"]
            .as_array()
            .unwrap()
            .iter()
            .zip(shown["moves"].as_array().unwrap())
        {
            assert_eq!((&mv["uci"], &mv["san"]), (&shown["uci"], &shown["san"]));
            assert_eq!(mv["weight"], shown["weight"]);
        }
    }
}

#[test]
fn books_databases_and_indexes_have_the_same_moves() {
    let dir = made("--max-ply 6");
    let tree = |source: &str| -> BTreeSet<(String, String)> {
        let text = ok(
            dir.path(),
            &format!("tree {source} --format jsonl --max-ply 6"),
        );
        let moves = |line: &serde_json::Value| -> Vec<(String, String)> {
            let key = line["key"].to_string();
            let moves = line["moves"].as_array().unwrap().iter();
            moves
                .map(|mv| (key.clone(), mv["san"].to_string()))
                .collect()
        };
        documents(&text).iter().flat_map(moves).collect()
    };
    let of_book = tree("book.bin");
    assert!(of_book.len() > 200);
    assert_eq!(tree("games.obs.db3"), of_book);
    assert_eq!(tree("games.idx"), of_book);
    let first = &documents(&ok(
        dir.path(),
        "tree games.obs.db3 --format jsonl --max-ply 1",
    ))[0]["moves"][0];
    assert_eq!(first["san"], "e4");
    assert!(first["wins"].as_u64().unwrap() > 10);
}

#[test]
fn text_is_indented_and_limits_hold() {
    let dir = made("--max-ply 10");
    let text = ok(dir.path(), "tree book.bin --max-ply 2 --min-share 20");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("1. e4  weight "), "{text}");
    assert!(lines[1].starts_with("  1... "), "{text}");
    assert!(lines.iter().all(|line| line.ends_with('%')), "{text}");
    let limited = ok(dir.path(), "tree book.bin --limit 7");
    assert_eq!(limited.lines().count(), 7);
    let all = ok(dir.path(), "tree book.bin");
    assert_eq!(
        all.lines().count(),
        records(&dir.path().join("book.bin")).len()
    );
    assert!(all.contains("  transposition\n"));
    let sicilian = ok(
        dir.path(),
        &["tree", "book.bin", "1. e4 c5", "--max-ply", "1"],
    );
    assert!(sicilian.starts_with("2. "), "{sicilian}");
    let games = ok(dir.path(), "tree games.obs.db3 --min-game 100");
    assert!((1..9).contains(&games.lines().count()), "{games}");
    let nothing = run(dir.path(), "tree book.bin --moves a4,h5");
    assert!(nothing.status.success() && nothing.stdout.is_empty());
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no moves in this position"));
}

#[test]
fn the_lines_of_a_side_go_on_behind_every_reply_it_answers() {
    let dir = made("--only-white --max-ply 6");
    let plain = ok(dir.path(), "tree book.bin");
    let white = ok(dir.path(), "tree book.bin --color white");
    assert!(plain.lines().all(|line| line.starts_with("1. ")));
    assert!(
        white.contains("\n  1... e5  any reply\n    2. Nf3"),
        "{white}"
    );
    assert!(
        white
            .lines()
            .all(|line| line.contains("...") == line.contains("any reply"))
    );
}

#[test]
fn chess960_and_variants_keep_their_tags() {
    let dir = temp();
    let fen = "bqnrkbrn/pppppppp/8/8/8/8/PPPPPPPP/BQNRKBRN w GDgd - 0 1";
    let pgn = format!(
        "[Variant \"Chess960\"]\n[FEN \"{fen}\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Ng3 (2. f4) *\n"
    );
    fs::write(dir.path().join("games.pgn"), pgn).unwrap();
    let line = "make-book -q games.pgn --variant chess960 --variations --min-game 1 --bin";
    ok(dir.path(), &format!("{line} book.bin"));
    ok(
        dir.path(),
        &[
            "tree",
            "book.bin",
            "--fen",
            fen,
            "--format",
            "pgn",
            "--out",
            "games.pgn.tree",
        ],
    );
    fs::rename(
        dir.path().join("games.pgn.tree"),
        dir.path().join("games.pgn"),
    )
    .unwrap();
    ok(dir.path(), &format!("{line} again.bin --loss-factor 1"));
    let moves = |name| moves(&dir.path().join(name));
    // Black lost, so its move has no weight in the first book, and is not in the tree.
    assert!(!moves("again.bin").is_empty());
    assert!(moves("again.bin").is_subset(&moves("book.bin")));
}

#[test]
fn a_tree_is_replaced_by_force() {
    let dir = made("--max-ply 4");
    for format in ["pgn", "text", "jsonl"] {
        let line = format!("tree book.bin --format {format} --out tree -q");
        ok(dir.path(), &line);
        fails(dir.path(), &line, 1);
        let report = ok_json(dir.path(), &format!("{line} --json --force"));
        assert_eq!(report["path"], "tree");
        assert!(report["moves"].as_u64() > Some(100));
        fs::remove_file(dir.path().join("tree")).unwrap();
    }
}

#[test]
fn replies_come_in_the_order_of_how_often_they_are_played() {
    let dir = temp();
    let dir = dir.path();
    // The most played reply loses. Ordered by their squares or by their weights, other replies would come first.
    let games =
        "1. e4 e5 2. Nf3 1-0\n\n".repeat(3) + "1. e4 b6 2. d4 1/2-1/2\n\n1. e4 a6 2. d4 0-1\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --loss-factor 1 --only-white --bin white.bin",
    );
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    for tree in [
        "white.bin --color white",
        "games.obs.db3 --color white",
        "games.obs.db3 --color BLACK",
        "games.obs.db3",
        "games.idx --color white",
        "games.idx",
    ] {
        let text = ok(dir, &format!("tree {tree} --format pgn")).replace('\n', " ");
        let reply = text.find("1... e5");
        let others = ["1... a6", "1... b6"].map(|other| text.find(other));
        let is_first = |other: &Option<usize>| *other > reply;
        assert!(
            reply.is_some() && others.iter().all(is_first),
            "{tree}: {text}"
        );
    }
}

#[test]
fn a_reply_that_was_played_comes_before_one_that_only_transposes() {
    let dir = temp();
    let games = "1. Nf3 d5 2. d4 Nf6 3. c4 1-0\n\n".repeat(3) + "1. d4 Nf6 2. Nf3 e6 3. c4 1-0\n";
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    ok(
        dir.path(),
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    let tree = "tree games.obs.db3 --color white --max-ply 1 d4 Nf6 Nf3";
    let text = ok(dir.path(), tree);
    let replies: Vec<&str> = text.lines().map(|line| &line[..8]).collect();
    assert_eq!(replies, ["2... e6 ", "2... d5 "], "{text}");
}

#[test]
fn an_index_for_the_explorer_has_the_games_of_each_move() {
    let dir = made("--max-ply 6 --explorer explored.idx");
    let moves = |source: &str| -> BTreeSet<String> {
        let text = ok(dir.path(), &format!("tree {source} --format jsonl"));
        let moves = documents(&text).into_iter().flat_map(|line| {
            let key = line["key"].clone();
            let moves = line["moves"].as_array().unwrap().clone();
            moves.into_iter().map(move |mv| {
                let numbers = [&mv["wins"], &mv["draws"], &mv["losses"]];
                format!("{key} {} {numbers:?}", mv["uci"])
            })
        });
        moves.collect()
    };
    let explored = moves("explored.idx");
    assert!(explored.len() > 300);
    assert_eq!(explored, moves("games.obs.db3"));
}

#[test]
fn python_chess_reads_the_moves_of_the_book() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = made("--max-ply 16");
    ok(dir.path(), "tree book.bin --format pgn --out tree.pgn -q");
    let [book, tree] = ["book.bin", "tree.pgn"].map(|name| dir.path().join(name));
    run_python(&python, "tree_games.py", &[&book, &tree]);
}

#[test]
fn scid_reads_all_games_with_their_variations() {
    let Some(scid) = program(&["tkscid"]) else {
        return;
    };
    let dir = made("");
    ok(dir.path(), "tree book.bin --format pgn --out tree.pgn -q");
    let pgn = fs::read_to_string(dir.path().join("tree.pgn")).unwrap();
    let games = pgn.matches("[Event ").count();
    assert!(games > 10);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcl/read_games.tcl");
    let output = Command::new(scid)
        .arg(script)
        .args([dir.path().join("base"), dir.path().join("tree.pgn")])
        .arg(games.to_string())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let variations = pgn.matches('(').count();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        variations.to_string()
    );
}

/// The tree of a repertoire lists moves in the order of the file, and the opponent's moves without weights.
#[test]
fn a_repertoire_is_written_in_the_order_of_its_file() {
    let dir = temp();
    let dir = dir.path();
    let lines = "1. e4 c5 (1... e5 2. Nf3) (1... a6 2. d4) 2. Nf3 *\n\n1. e4 e5 2. Nf3 *\n\n1. e4 d5 2. exd5 *\n";
    fs::write(dir.join("white.pgn"), lines).unwrap();
    let text = ok(dir, "tree white.pgn --color white");
    let expected = [
        "1. e4  weight 3, 100.0%",
        "  1... c5",
        "    2. Nf3  weight 1, 100.0%",
        "  1... e5",
        "    2. Nf3  weight 2, 100.0%",
        "  1... a6",
        "    2. d4  weight 1, 100.0%",
        "  1... d5",
        "    2. exd5  weight 1, 100.0%",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    let pgn = ok(dir, "tree white.pgn --color white --format pgn");
    let pgn = pgn.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "1... c5 (1... e5 2. Nf3 {weight 2, 100.0%}) (1... a6 2. d4 {weight 1, 100.0%})";
    assert!(pgn.contains(line), "{pgn}");
    // A variation begins before the move that precedes it. A variation without that move is left out.
    let nested = "1. e4 e5 ((1... c5) 1... a6 (1... b6) ((1... d5))) (()) 2. Nf3 *\n";
    fs::write(dir.join("nested.pgn"), nested).unwrap();
    let text = ok(dir, "tree nested.pgn --max-ply 2");
    let moves: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(moves, ["e4", "e5", "a6", "b6"], "{text}");
    // A file with too many moves for the order of the file is written by weight.
    let famous = sample("famous.pgn");
    let output = run(
        dir,
        args!["tree", famous, "--max-ply", "1", "--memory", "64KiB"],
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("so the moves are sorted by weight"), "{said}");
    // If --color is missing, all moves have weights.
    let text = ok(dir, "tree white.pgn --max-ply 2");
    assert!(text.contains("  1... a6  weight 1, "), "{text}");
}

/// A game without a result is no draw: the numbers and the scores leave it out and say so.
#[test]
fn games_without_a_result_are_listed_apart() {
    let dir = temp();
    let dir = dir.path();
    let mut games = String::new();
    for (result, number) in [("1-0", 2), ("*", 3), ("1/2-1/2", 1)] {
        games += &format!("[Result \"{result}\"]\n\n1. e4 e5 {result}\n\n").repeat(number);
    }
    games += "[Result \"*\"]\n\n1. d4 d5 *\n";
    fs::write(dir.join("a.pgn"), games).unwrap();
    ok(dir, "make-book -q a.pgn --explorer a.idx");
    let text = ok(dir, "tree a.idx --max-ply 1");
    assert!(text.contains("1. e4  +2 =1 -0 *3, 85.7%"), "{text}");
    assert!(text.contains("1. d4  +0 =0 -0 *1, 14.3%"), "{text}");
    let json = ok(dir, "tree a.idx --max-ply 1 --format jsonl");
    assert!(
        json.contains(r#""draws":1,"losses":0,"unfinished":3"#),
        "{json}"
    );
    ok(
        dir,
        "repertoire build a.pgn --color white --out r.pgn --max-ply 1 --by games",
    );
    let built = fs::read_to_string(dir.join("r.pgn")).unwrap();
    assert!(
        built.contains("6 games, 3 without result, 83.3%"),
        "{built}"
    );
    // If no game has a result, no move has a score.
    ok(dir, "make-book -q a.pgn --explorer b.idx --result *");
    let text = ok(dir, "tree b.idx --max-ply 1");
    assert!(text.contains("1. e4  +0 =0 -0 *3, 75.0%"), "{text}");
}

/// A writer that acts once when something is written.
struct ActingWriter<F>(Option<F>);

impl<F: FnOnce()> std::io::Write for ActingWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(act) = self.0.take() {
            act();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A tree would otherwise have the old weights in its first lines and the new ones in the others.
#[test]
fn a_source_that_is_changed_while_its_tree_is_written_is_an_error() {
    use polybook::{
        book::Book,
        obs::Obs,
        position::Variant,
        progress::Meter,
        tree::{Limits, MoveSource, Tree},
    };

    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    let pgn = sample("famous.pgn").display().to_string();
    let change_book = || {
        let mut bytes = fs::read(at("a.bin")).unwrap();
        let last = bytes.len() - 5;
        bytes[last] ^= 1;
        let time = at("a.bin").metadata().unwrap().modified().unwrap();
        fs::write(at("a.bin"), bytes).unwrap();
        let file = fs::File::options().write(true).open(at("a.bin")).unwrap();
        file.set_modified(time + std::time::Duration::from_secs(1))
            .unwrap();
    };
    let change_database = || {
        let db = rusqlite::Connection::open(at("a.obs.db3")).unwrap();
        db.execute_batch("UPDATE Book SET Win = Win + 1").unwrap();
    };
    let replace_both = || {
        for name in ["a.bin", "a.obs.db3"] {
            fs::copy(at(name), at("copy")).unwrap();
            fs::rename(at("copy"), at(name)).unwrap();
        }
    };
    let nothing = || {};
    let changes: [(&dyn Fn(), [bool; 2]); 4] = [
        (&nothing, [true, true]),
        (&replace_both, [true, true]),
        (&change_book, [false, true]),
        (&change_database, [true, false]),
    ];
    for (change, expected) in changes {
        ok(
            dir.path(),
            &format!("make-book -q {pgn} --min-game 1 --bin a.bin --obs a.obs.db3 --force"),
        );
        let written = [0, 1].map(|number| {
            let source: Box<dyn MoveSource> = match number {
                0 => Box::new(Book::open(at("a.bin")).unwrap()),
                _ => Box::new(Obs::open(at("a.obs.db3")).unwrap()),
            };
            let meter = Meter::default();
            let start = Variant::Standard.start();
            let tree = Tree::new(source, start, Limits::default(), &meter);
            tree.write_text(&mut ActingWriter(Some(change)), &at("out"))
        });
        assert_eq!(written.each_ref().map(Result::is_ok), expected);
        for err in written.into_iter().filter_map(Result::err) {
            let cause = std::error::Error::source(&err).map(ToString::to_string);
            let error = format!("{err}: {}", cause.unwrap_or_default());
            // A database that was changed before the first look-up has a wrong checksum.
            let causes = ["changed while it was read", "another program changed it"];
            assert!(causes.iter().any(|cause| error.contains(cause)), "{error}");
        }
    }
}

#[test]
fn a_repertoire_is_named_with_its_side() {
    let dir = temp();
    let dir = dir.path();
    fs::write(
        dir.join("rep.pgn"),
        "1. e4 (1. d4 d5) 1... e5 (1... c5) 2. Nf3 *\n",
    )
    .unwrap();
    fs::write(dir.join("games.pgn"), "1. e4 e5 2. Nf3 Nc6 1-0\n").unwrap();
    for (named, given) in [
        ("tree rep.pgn:white", "tree rep.pgn --color white"),
        ("tree rep.pgn:Black e4", "tree rep.pgn e4 --color black"),
        (
            "repertoire check rep.pgn:white games.pgn --json",
            "repertoire check rep.pgn games.pgn --color white --json",
        ),
        (
            "repertoire gaps rep.pgn:white --against games.pgn",
            "repertoire gaps rep.pgn --color white --against games.pgn",
        ),
    ] {
        assert_eq!(ok(dir, named), ok(dir, given), "{named}");
    }
    ok(dir, "repertoire cards rep.pgn:white --out cards.csv");
    let shown = ok_json(dir, "show rep.pgn:white --json");
    let moves = shown["moves"].as_array().unwrap();
    let moves: Vec<&str> = moves.iter().filter_map(|mv| mv["san"].as_str()).collect();
    assert_eq!(moves, ["e4", "d4"]);
    assert!(ok(dir, "show rep.pgn:white e4").starts_with("move     weight\n"));
    let error = fails(dir, "show rep.pgn:white --min-elo 2000", 2);
    assert!(error.contains("does not apply to a repertoire"), "{error}");
    // A file with such a name is a file.
    if cfg!(unix) {
        fs::rename(dir.join("rep.pgn"), dir.join("rep.pgn:white")).unwrap();
        assert!(ok(dir, "tree rep.pgn:white").contains("d5"));
    }
}

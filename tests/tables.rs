//! Tables that commands write as CSV, JSON lines and Parquet: their values, and the spelling of moves in all of them.

use std::{
    fs::{self, File},
    path::Path,
};

use crate::common::{fails, is_without, ok, ok_json, python, run, run_python, sample, temp};
use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::Field,
};
use serde_json::{Value, json};

/// Both sides castle, on different sides of the board. A rook moves from `e1` to `h1`, and one from `e8` to `c8`.
const CASTLING: &str = "[Event \"Open\"]\n[Site \"https://lichess.org/abcdefgh\"]\n[Date \"????.??.??\"]\n\
    [EventDate \"2021.03.??\"]\n[Round \"3.1\"]\n[White \"Tal, Mihail\"]\n[Black \"=Keres\"]\n[Result \"1-0\"]\n\
    [WhiteElo \"2705\"]\n[BlackElo \"?\"]\n[ECO \"C60\"]\n[TimeControl \"180+2\"]\n\n\
    1. e4 e5 2. Nf3 Nc6 3. Bb5 d6 4. O-O {[%clk 0:02:58] [%eval 0.31]} Bd7 5. Re1 Qe7 6. g3 O-O-O {[%eval #-3]} \
    7. Kg2 Re8 8. Rh1 Kb8 9. Re1 Rc8 10. h3 Qd8 11. Rh1 1-0\n";

/// The moves of the game in UCI notation.
const CASTLING_UCI: &str = "e2e4 e7e5 g1f3 b8c6 f1b5 d7d6 e1g1 c8d7 f1e1 d8e7 g2g3 e8c8 \
    g1g2 d8e8 e1h1 c8b8 h1e1 e8c8 h2h3 e7d8 e1h1";

fn write_castling(dir: &Path) {
    fs::write(dir.join("castling.pgn"), CASTLING).unwrap();
}

/// Returns the rows of a Parquet file as JSON documents.
fn parquet_rows(path: &Path) -> Vec<Value> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let value = |field: &Field| match field {
        Field::Bool(flag) => json!(flag),
        Field::Int(number) => json!(number),
        Field::Long(number) => json!(number),
        Field::Double(number) => json!(number),
        Field::Str(text) => json!(text),
        _ => Value::Null,
    };
    let rows = rows.map(|row| {
        let row = row.unwrap();
        let fields = row.get_column_iter();
        Value::Object(
            fields
                .map(|(name, field)| (name.clone(), value(field)))
                .collect(),
        )
    });
    rows.collect()
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the rows of a CSV file as JSON documents whose values are texts. The first column of a name wins.
fn csv_rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| {
        let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        cells.push(cell);
        cells
    });
    let names = lines.next().unwrap();
    lines
        .map(|cells| {
            let fields = names
                .iter()
                .cloned()
                .zip(cells.into_iter().map(Value::from));
            Value::Object(fields.collect())
        })
        .collect()
}

fn column(rows: &[Value], name: &str) -> Vec<String> {
    let values = rows.iter().map(|row| {
        let value = row[name].as_str();
        value
            .unwrap_or_else(|| panic!("{name} in {row}"))
            .to_owned()
    });
    values.collect()
}

fn sorted(mut moves: Vec<String>) -> Vec<String> {
    moves.sort();
    moves.dedup();
    moves
}

#[test]
fn all_tables_spell_castling_alike() {
    let dir = temp();
    let dir = dir.path();
    write_castling(dir);
    ok(
        dir,
        "make-book -q castling.pgn --min-game 1 --loss-factor 1 --bin a.bin --obs a.obs.db3 --counts a.counts --with san \
         --leveldb a.idx --index-stats --explorer a.xidx",
    );
    let expected = CASTLING_UCI.split(' ').map(str::to_owned).collect();
    let expected = sorted(expected);
    ok(dir, "plies -q castling.pgn --out plies.csv");
    ok(dir, "plies -q castling.pgn --out plies.parquet");
    for (from, to, name) in [
        ("a.obs.db3", "db.csv", "Move"),
        ("a.obs.db3", "db.jsonl", "uci"),
        ("a.obs.db3", "db.parquet", "uci"),
        ("a.bin", "book.csv", "UCI"),
        ("a.bin", "book.jsonl", "uci"),
        ("a.bin", "book.parquet", "uci"),
        ("", "a.counts/_moves.pq", "uci"),
        ("", "plies.csv", "uci"),
        ("", "plies.parquet", "uci"),
    ] {
        if !from.is_empty() {
            ok(dir, &format!("convert -q {from} {to}"));
        }
        let path = dir.join(to);
        let rows = match to.rsplit_once('.').unwrap().1 {
            "csv" => csv_rows(&path),
            "jsonl" => json_lines(&path),
            _ => parquet_rows(&path),
        };
        assert_eq!(sorted(column(&rows, name)), expected, "{to}");
    }
    for (source, line, mv) in [
        ("a.bin", "e4 e5 Nf3 Nc6 Bb5 d6", "e1g1"),
        (
            "a.obs.db3",
            "e4 e5 Nf3 Nc6 Bb5 d6 O-O Bd7 Re1 Qe7 g3",
            "e8c8",
        ),
        ("a.counts", "e4 e5 Nf3 Nc6 Bb5 d6", "e1g1"),
        ("a.idx", "e4 e5 Nf3 Nc6 Bb5 d6 O-O Bd7 Re1 Qe7 g3", "e8c8"),
        ("a.xidx", "e4 e5 Nf3 Nc6 Bb5 d6", "e1g1"),
        ("castling.pgn", "e4 e5 Nf3 Nc6 Bb5 d6", "e1g1"),
    ] {
        let shown = ok_json(dir, &["show", source, "--moves", line, "--json"][..]);
        assert_eq!(shown["moves"][0]["uci"], mv, "{source}");
        let table = [
            "show", source, "--moves", line, "--out", "show.csv", "--force",
        ];
        ok(dir, &table[..]);
        let rows = csv_rows(&dir.join("show.csv"));
        assert_eq!(column(&rows, "uci"), [mv], "{source}");
    }
    let line = ["--moves", "e4 e5 Nf3 Nc6 Bb5 d6", "--out", "games.csv"];
    ok(dir, &[&["games", "castling.pgn"][..], &line].concat()[..]);
    let rows = csv_rows(&dir.join("games.csv"));
    assert_eq!(column(&rows, "uci"), ["e1g1"]);
    // In Chess960, the king captures its own rook.
    let game = "[Variant \"Chess960\"]\n[SetUp \"1\"]\n[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n[Result \"1-0\"]\n\n1. O-O 1-0\n";
    fs::write(dir.join("960.pgn"), game).unwrap();
    ok(
        dir,
        "make-book -q 960.pgn --variant chess960 --min-game 1 --obs b.obs.db3 --counts b.counts --with san",
    );
    ok(dir, "convert -q b.obs.db3 b.csv");
    assert_eq!(column(&csv_rows(&dir.join("b.csv")), "Move"), ["e1h1"]);
    let moves = parquet_rows(&dir.join("b.counts/_moves.pq"));
    assert_eq!(column(&moves, "uci"), ["e1h1"]);
}

#[test]
fn a_table_of_games_has_all_tags_of_the_index_with_types() {
    let dir = temp();
    let dir = dir.path();
    write_castling(dir);
    let more = "[Event \"?\"]\n[Date \"1999.12.31\"]\n[White \"A\"]\n[WhiteElo \"1500\"]\n[BlackElo \"1600\"]\n\
        [Result \"*\"]\n\n1. d4 *\n\n";
    let pgn = fs::read_to_string(dir.join("castling.pgn")).unwrap();
    fs::write(dir.join("castling.pgn"), format!("{more}{pgn}")).unwrap();
    for ending in ["csv", "jsonl", "parquet"] {
        ok(dir, &format!("games -q castling.pgn --out games.{ending}"));
    }
    let typed = parquet_rows(&dir.join("games.parquet"));
    assert_eq!(typed, json_lines(&dir.join("games.jsonl")));
    let file = dir.join("castling.pgn").canonicalize().unwrap();
    let expected = json!([
        {
            "id": 0, "event": null, "site": null, "date": "1999.12.31", "round": null, "white": "A", "black": null,
            "result": "*", "white_rating": 1500, "black_rating": 1600, "year": 1999, "month": 12, "eco": null,
            "opening_eco": "A40", "opening": "Queen's Pawn Game", "plies": 1, "speed": "classical", "mode": null,
            "variant": "standard", "fen": null, "event_date": null, "event_type": null, "url": null, "file": file,
            "offset": 0,
        },
        {
            "id": 1, "event": "Open", "site": "https://lichess.org/abcdefgh", "date": null, "round": "3.1",
            "white": "Tal, Mihail", "black": "=Keres", "result": "1-0", "white_rating": 2705, "black_rating": null,
            "year": 2021, "month": 3, "eco": "C60", "opening_eco": "C62",
            "opening": "Ruy Lopez: Steinitz Defense", "plies": 21, "speed": "blitz", "mode": null,
            "variant": "standard", "fen": null, "event_date": "2021.03.??", "event_type": null,
            "url": "https://lichess.org/abcdefgh", "file": file, "offset": more.len(),
        },
    ]);
    assert_eq!(json!(typed), expected);
    let text = fs::read_to_string(dir.join("games.csv")).unwrap();
    let row = text.lines().nth(2).unwrap();
    let begin = "1,Open,https://lichess.org/abcdefgh,,3.1,\"Tal, Mihail\",'=Keres,1-0,2705,,2021,3,C60,C62,";
    assert!(row.starts_with(begin), "{row}");
    // The index of polyglot's fork has fewer fields.
    ok(dir, "make-book -q castling.pgn --leveldb fork.idx");
    ok(dir, "games fork.idx --out fork.jsonl");
    let rows = json_lines(&dir.join("fork.jsonl"));
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[1]["year"], &rows[1]["round"], &rows[1]["plies"]),
        (&json!(2021), &Value::Null, &Value::Null)
    );
    assert_eq!(rows[1]["offset"], json!(more.len()));
    // Only games that reached the position and pass the conditions are listed.
    ok(
        dir,
        "games -q castling.pgn --moves e4 --player tal --out one.csv",
    );
    assert_eq!(csv_rows(&dir.join("one.csv")).len(), 1);
}

#[test]
fn offsets_are_those_at_which_games_begin() {
    let dir = temp();
    let dir = dir.path();
    let text =
        "\n\n1. e4 e5 1-0\n\n% escaped\n[White \"B\"]\n[Result \"0-1\"]\n\n1. d4 0-1\n\n1. c4 *\n";
    fs::write(dir.join("a.pgn"), text).unwrap();
    let extracted = ok_json(dir, "extract -q a.pgn --json");
    let listed = ok_json(dir, "games -q a.pgn --json");
    let offsets = |document: &Value| -> Vec<u64> {
        let games = document["games"].as_array().unwrap().iter();
        games.map(|game| game["offset"].as_u64().unwrap()).collect()
    };
    assert_eq!(offsets(&extracted), offsets(&listed));
    for (offset, begin) in offsets(&listed)
        .into_iter()
        .zip(["1. e4", "[White", "1. c4"])
    {
        let game = &text[usize::try_from(offset).unwrap()..];
        assert!(game.starts_with(begin), "{game}");
    }
}

#[test]
fn a_table_of_half_moves_continues_through_files() {
    let dir = temp();
    let dir = dir.path();
    write_castling(dir);
    fs::write(
        dir.join("b.pgn"),
        "1. e4 *\n\n1. d4 Ke4 0-1\n\n1. d4 d5 1/2-1/2\n",
    )
    .unwrap();
    let said = ok(dir, "plies b.pgn castling.pgn --max-ply 12 --out a.jsonl");
    assert_eq!(said, "");
    let rows = json_lines(&dir.join("a.jsonl"));
    let first = json!({
        "game": 2, "ply": 1, "key": "463b96181691fc9c", "move": 731, "uci": "d2d4", "result": 0, "clock": null,
        "eval_cp": null, "eval_mate": null,
    });
    assert_eq!((&rows[0], rows.len()), (&first, 14));
    assert_eq!(
        (&rows[1]["ply"], &rows[2]["game"], &rows[2]["ply"]),
        (&json!(2), &json!(3), &json!(1))
    );
    let castled = &rows[8];
    assert_eq!(castled["uci"], "e1g1");
    assert_eq!(
        (&castled["clock"], &castled["eval_cp"]),
        (&json!(178.0), &json!(31))
    );
    assert_eq!(
        (&rows[13]["eval_cp"], &rows[13]["eval_mate"]),
        (&Value::Null, &json!(-3))
    );
    let error = fails(dir, "plies castling.pgn --out plies.txt", 2);
    assert!(
        error.contains("use a name that ends in .csv, .jsonl or .parquet"),
        "{error}"
    );
}

#[test]
fn answers_have_the_form_of_the_ending() {
    let dir = temp();
    let dir = dir.path();
    write_castling(dir);
    ok(
        dir,
        "make-book -q castling.pgn --min-game 1 --loss-factor 1 --bin a.bin --explorer a.xidx",
    );
    for command in [
        "show a.xidx",
        "show a.bin",
        "games a.xidx",
        "openings a.xidx",
        "games a.xidx --id 0",
    ] {
        ok(dir, &format!("{command} --out a.json --force"));
        let json = ok(dir, &format!("{command} --json"));
        assert_eq!(
            fs::read_to_string(dir.join("a.json")).unwrap(),
            json,
            "{command}"
        );
        ok(dir, &format!("{command} --json --out a.txt --force"));
        assert_eq!(
            fs::read_to_string(dir.join("a.txt")).unwrap(),
            json,
            "{command}"
        );
        ok(dir, &format!("{command} --out a.txt --force"));
        let text = ok(dir, command);
        assert_eq!(
            fs::read_to_string(dir.join("a.txt")).unwrap(),
            text,
            "{command}"
        );
        let error = fails(dir, &*format!("{command} --json --out a.csv"), 2);
        assert!(error.contains("is that of a table"), "{error}");
        let error = fails(dir, &*format!("{command} --out a.txt"), 1);
        assert!(error.contains("--force"), "{error}");
        let error = fails(dir, &*format!("{command} --out a.csv.gz"), 1);
        assert!(error.contains("without compression"), "{error}");
    }
    let listed = ok(dir, "games a.xidx");
    let total = listed.lines().next().unwrap();
    let line = "games a.xidx --pgn --skip 1 --limit 1 --out c.pgn";
    let said = String::from_utf8(run(dir, line).stderr).unwrap();
    assert_eq!(said, "c.pgn: 0 games\n");
    for (line, said) in [
        ("show a.xidx --out moves.csv", "moves.csv: "),
        ("openings a.xidx --out openings.csv", "openings.csv: "),
    ] {
        let summary = String::from_utf8(run(dir, line).stderr).unwrap();
        assert!(summary.contains(said), "{line}: {summary}");
    }
    for form in ["--out a.pgn", "--out b.txt --pgn"] {
        for command in ["games a.xidx", "games a.xidx --id 0"] {
            let out = form.split(' ').nth(1).unwrap();
            let line = format!("{command} {form} --force");
            let said = String::from_utf8(run(dir, &line).stderr).unwrap();
            let games = if command.contains("--id") {
                "1 game"
            } else {
                total
            };
            assert_eq!(said, format!("{out}: {games}\n"), "{line}");
            let quiet = run(dir, &format!("{line} -q"));
            assert!(quiet.stderr.is_empty(), "{line}");
            assert_eq!(
                fs::read_to_string(dir.join(out)).unwrap(),
                ok(dir, &format!("{command} --pgn"))
            );
        }
    }
    let error = fails(dir, "games a.xidx --pgn --out a.csv", 2);
    assert!(error.contains("leave out --pgn"), "{error}");
    let error = fails(dir, "games castling.pgn --out castling.pgn --force", 1);
    assert!(error.contains("castling.pgn"), "{error}");
    assert!(!dir.join("a.csv").exists());
}

#[test]
fn tables_of_moves_and_openings_have_the_numbers_of_the_json_documents() {
    let dir = temp();
    let dir = dir.path();
    let games = sample("selfplay.pgn");
    ok(
        dir,
        args!["make-book", "-q", &games, "--explorer", "a.xidx"],
    );
    ok(dir, "show a.xidx --out moves.jsonl");
    let shown = ok_json(dir, "show a.xidx --json");
    let rows = json_lines(&dir.join("moves.jsonl"));
    let moves = shown["moves"].as_array().unwrap();
    assert!(rows.len() == moves.len() && rows.len() > 3);
    for (row, mv) in rows.iter().zip(moves) {
        for name in [
            "san",
            "uci",
            "games",
            "white",
            "draws",
            "black",
            "unfinished",
            "rating_games",
        ] {
            assert_eq!(row[name], mv[name], "{name}");
        }
        assert_eq!(row["opening"], mv["opening"]["name"]);
    }
    // The openings in a table do not overlap.
    for options in ["", "--families"] {
        ok(
            dir,
            &format!("openings a.xidx {options} --out openings.jsonl --force"),
        );
        let rows = json_lines(&dir.join("openings.jsonl"));
        let listed = ok_json(dir, &format!("openings a.xidx {options} --json"));
        let sum: u64 = rows.iter().map(|row| row["games"].as_u64().unwrap()).sum();
        assert_eq!(
            json!(sum + listed["unnamed"].as_u64().unwrap()),
            listed["games"],
            "{options}"
        );
        assert!(rows.iter().all(|row| {
            row["opening"]
                .as_str()
                .unwrap()
                .starts_with(row["family"].as_str().unwrap())
        }));
        assert!(options.is_empty() || rows.iter().all(|row| row["opening"] == row["family"]));
    }
    let rows = json_lines(&dir.join("openings.jsonl"));
    let line = rows[0]["line"].as_str().unwrap();
    let reached = ok_json(dir, &["games", "a.xidx", "--moves", line, "--json"][..]);
    assert_eq!(reached["total"], rows[0]["line_games"]);
    let games = sample("famous.pgn");
    ok(
        dir,
        args![
            "openings",
            "-q",
            &games,
            "--player",
            "morphy",
            "--out",
            "player.parquet"
        ],
    );
    let rows = parquet_rows(&dir.join("player.parquet"));
    assert!(
        rows.iter()
            .all(|row| row["points"].is_f64() || row["points"].is_null())
    );
    assert!(rows.iter().all(|row| row["wins"].is_i64()));
}

#[test]
fn data_frame_libraries_read_a_directory_of_counts_as_a_whole() {
    if is_without("duckdb") {
        return;
    }
    let dir = temp();
    let games = sample("selfplay.pgn");
    ok(
        dir.path(),
        args![
            "make-book",
            "-q",
            &games,
            "--counts",
            "a.counts",
            "--with",
            "fen,san,opening"
        ],
    );
    ok(
        dir.path(),
        args!["games", "-q", &games, "--out", "games.parquet"],
    );
    for modules in [&["duckdb"][..], &["pandas", "pyarrow"], &["polars"]] {
        if let Some(python) = python(modules) {
            run_python(
                &python,
                "read_tables.py",
                &[Path::new(modules[0]), dir.path()],
            );
        }
    }
}

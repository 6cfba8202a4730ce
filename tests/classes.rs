//! Counts by speed, rating group and month: their sums, the answers of the explorer, and pruned positions.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    process::Command,
};

use crate::common::{fails, ok, ok_json, python, refused, sample, temp};
use polybook::{
    MakeBook,
    counts::{ClassRow, CountClass, CountsDirectory, Grouping},
    explorer::{Explorer, Line, Query, RatingGroup, Selection, Speed, Variant, View, WantedRating},
    pgn::{Date, Input},
    position::{BookMove, key},
    results::Results,
};
use shakmaty::{
    CastlingMode, Color, EnPassantMode, Move, Position, fen::Fen, variant::VariantPosition,
};

const ALL: &str = "speed,rating,month";

/// A generator of pseudo-random numbers with a fixed sequence.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    fn one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }
}

/// Returns games of many classes. Some repeat a position, or end in a position that they reached before.
fn games(first: usize, number: usize) -> String {
    let lines = fs::read_to_string(sample("selfplay.pgn")).unwrap();
    let lines: Vec<&str> = lines.split("\n\n").skip(1).step_by(2).collect();
    let odd = [
        "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 e5",
        "1. Nf3 Nf6 2. Ng1 Ng8",
        "1. e4 e5 2. Nf3 Nc6 3. Ng1 Nb8 4. Nf3 Nc6 5. Bb5 (5. Bc4 Bc5) 5... a6",
        "1. e4 (1. d4 d5) 1... e5",
        "1. e4 e5 2. Ke3",
    ];
    let mut numbers = Numbers(first as u64 + 7);
    let mut text = String::new();
    for game in first..first + number {
        let line = match numbers.below(4) {
            0 => odd[numbers.below(odd.len())],
            _ => lines[game % 60 % lines.len()],
        };
        let result = numbers.one_of(&["1-0", "0-1", "1/2-1/2", "*"]);
        let ratings = [
            "", "?", "900", "1399", "1400", "2199", "2201", "2800", "4000", "4001",
        ];
        for (name, values) in [
            ("Event", &["a"][..]),
            (
                "Date",
                &[
                    "",
                    "????.??.??",
                    "2023.??.??",
                    "2023.12.31",
                    "2024.01.02",
                    "2024.02.30",
                    "0099.03",
                    "9999.12.01",
                ],
            ),
            ("WhiteElo", &ratings),
            ("BlackElo", &ratings),
            (
                "TimeControl",
                &["", "-", "?", "15", "60+0", "180+2", "600+5", "5400+30"],
            ),
        ] {
            text.push_str(&format!("[{name} \"{}\"]\n", numbers.one_of(values)));
        }
        if numbers.below(5) == 0 {
            let fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
            text.push_str(&format!("[FEN \"{fen}\"]\n[Result \"{result}\"]\n\n2. Nf3 Nc6 3. Ng1 Nb8 4. Nf3 {result}\n\n"));
        } else {
            let line =
                line.rsplit_once(|c: char| c.is_whitespace())
                    .map_or(line, |(moves, last)| {
                        if last.contains('-') || last == "*" {
                            moves
                        } else {
                            line
                        }
                    });
            text.push_str(&format!("[Result \"{result}\"]\n\n{line} {result}\n\n"));
        }
    }
    text
}

/// Writes three files of such games.
fn write_games(dir: &Path) {
    for (number, name) in ["a.pgn", "b.pgn", "c.pgn"].into_iter().enumerate() {
        fs::write(dir.join(name), games(1000 * number, 60)).unwrap();
    }
}

/// Returns the rows of all parts of counts by class.
pub fn class_rows(counts: &Path) -> Vec<ClassRow> {
    let directory = CountsDirectory::open(counts).unwrap();
    let mut all = Vec::new();
    for part in directory.parts() {
        part.read_classed(directory.by().unwrap(), &mut |rows| {
            all.extend_from_slice(rows);
            Ok(())
        })
        .unwrap();
    }
    all
}

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// The moves of a position in UCI notation: White wins, draws, Black wins, and the mean rating of the side that moved.
type Answer = BTreeMap<String, (u64, u64, u64, u64)>;

/// Returns `true` if a class's month may be in the range of the filters.
fn is_in(month: u32, since: Option<Date>, until: Option<Date>) -> bool {
    // Months are compared only if both are known.
    let before = |a: [u32; 2], b: [u32; 2]| {
        a[0] > 0 && b[0] > 0 && (a[0] < b[0] || a[0] == b[0] && a[1] > 0 && b[1] > 0 && a[1] < b[1])
    };
    let of = |date: Date| {
        [
            date.year().unwrap_or(0).into(),
            date.month().unwrap_or(0).into(),
        ]
    };
    let date = [month / 100, month % 100];
    since.is_none_or(|since| !before(date, of(since)))
        && until.is_none_or(|until| !before(of(until), date))
}

/// Returns the move of a row, with castling as the king capturing its rook.
fn uci(row: &ClassRow, pos: &VariantPosition) -> String {
    let mv = row.row.mv.to_move(pos).expect("it was played");
    mv.to_uci(CastlingMode::Chess960).to_string()
}

fn answer_of_rows(rows: &[ClassRow], pos: &VariantPosition, filters: &Selection) -> Answer {
    let mut moves: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    let groups: Vec<RatingGroup> = RatingGroup::all().collect();
    let counted = rows.iter().filter(|row| !row.class.book_only);
    for row in counted.filter(|row| row.row.mv != BookMove::NONE) {
        let CountClass {
            speed,
            group,
            month,
            ..
        } = row.class;
        let has_speed = |speeds: &Vec<Speed>| speeds.contains(&Speed::ALL[usize::from(speed)]);
        let has_group = |wanted: &Vec<WantedRating>| {
            let has = |group| wanted.contains(&WantedRating(group));
            match group {
                // All groups together admit all games.
                0 => has(None) || groups.iter().all(|group| has(Some(*group))),
                group => has(Some(groups[usize::from(group) - 1])),
            }
        };
        if !filters.speed.as_ref().is_none_or(has_speed)
            || !filters.rating.as_ref().is_none_or(has_group)
            || !is_in(month, filters.since, filters.until)
        {
            continue;
        }
        let stats = row.row.stats.turned(pos.turn());
        let sum = moves.entry(uci(row, pos)).or_default();
        for (sum, more) in sum.iter_mut().zip([
            stats.wins,
            stats.draws,
            stats.losses,
            row.means.rating().sum,
            row.means.rating().games,
        ]) {
            *sum += more;
        }
    }
    let answered = moves
        .into_iter()
        .map(|(uci, [white, draws, black, sum, rated])| {
            (
                uci,
                (white, draws, black, sum.checked_div(rated).unwrap_or(0)),
            )
        });
    answered.collect()
}

fn filters(numbers: &mut Numbers) -> Selection {
    let date = |text: &str| text.parse::<Date>().unwrap();
    let mut some = Selection::default();
    if numbers.below(2) == 0 {
        let speeds = Speed::ALL.into_iter().filter(|_| numbers.below(2) == 0);
        some.speed = Some(speeds.collect());
    }
    if numbers.below(2) == 0 {
        let groups = RatingGroup::all().filter(|_| numbers.below(2) == 0);
        some.rating = Some(groups.map(|group| WantedRating(Some(group))).collect());
    }
    if numbers.below(2) == 0 {
        some.since = Some(date(
            numbers.one_of(&["2023", "2023-12", "2024-01", "9999", "0099-04"]),
        ));
    }
    if numbers.below(2) == 0 {
        some.until =
            Some(date(numbers.one_of(&[
                "2023", "2023-11", "2024-02", "0099-03", "9999-12",
            ])));
    }
    some
}

/// Returns each position that is reached by counted moves, with these moves.
fn positions(rows: &HashMap<u64, Vec<ClassRow>>) -> Vec<(u64, VariantPosition)> {
    let start = VariantPosition::new(shakmaty::variant::Variant::Chess);
    let (mut all, mut known) = (vec![(key_of(&start), start)], HashMap::new());
    let mut next = 0;
    while let Some((key, pos)) = all.get(next).cloned() {
        next += 1;
        let moves = rows.get(&key).into_iter().flatten();
        for row in moves.filter(|row| row.row.mv != BookMove::NONE) {
            let mv: Move = row.row.mv.to_move(&pos).expect("it was played");
            let mut after = pos.clone();
            after.play_unchecked(mv);
            if known.insert(key_of(&after), ()).is_none() {
                all.push((key_of(&after), after));
            }
        }
    }
    all
}

fn key_of(pos: &VariantPosition) -> u64 {
    key(pos)
}

#[test]
fn classes_add_up_to_what_the_explorer_answers() {
    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    let pgns = ["a.pgn", "b.pgn", "c.pgn"].map(|name| Input::file(dir.join(name)));
    let run = MakeBook::new(pgns.clone())
        .max_ply(24)
        .variations(true)
        .keep_prefix(true);
    let by: Grouping = ALL.parse().unwrap();
    run.clone().counts(dir.join("counts")).by(by).run().unwrap();
    let index = dir.join("games.idx");
    run.explorer(&index).run().unwrap();
    let explorer = Explorer::open([("games".to_owned(), index)]).unwrap();
    let mut rows: HashMap<u64, Vec<ClassRow>> = HashMap::new();
    for row in class_rows(&dir.join("counts")) {
        rows.entry(row.row.key).or_default().push(row);
    }
    let positions = positions(&rows);
    assert!(positions.len() > 700, "{}", positions.len());
    let (mut numbers, mut compared) = (Numbers(5), 0);
    for (key, pos) in &positions {
        let own = rows.get(key).map_or(&[][..], Vec::as_slice);
        for _ in 0..if own.len() > 9 { 50 } else { 3 } {
            let filters = filters(&mut numbers);
            let line = Line::at(Variant::Standard, pos.clone());
            let answer = explorer
                .answer(&Query {
                    filters: filters.clone(),
                    moves: None,
                    ..Query::new(line, View::Lichess)
                })
                .unwrap();
            let theirs = answer.moves.into_iter().map(|mv| {
                let rating = mv.average_rating.unwrap();
                let Results {
                    white,
                    draws,
                    black,
                    unfinished,
                } = mv.results;
                (mv.uci, (white, draws + unfinished, black, rating))
            });
            let theirs: Answer = theirs.collect();
            let ours = answer_of_rows(own, pos, &filters);
            let fen = Fen::from_position(pos, EnPassantMode::Legal);
            assert_eq!(ours, theirs, "{fen} {filters:?}");
            compared += ours.len();
        }
    }
    assert!(compared > 2000, "{compared}");
    // Some games repeat a position, and there are months of all kinds.
    let all = || rows.values().flatten();
    assert!(all().any(|row| row.class.book_only && row.row.turn == Color::Black));
    for month in [0, 202_300, 202_312, 9903, 999_912] {
        assert!(all().any(|row| row.class.month == month), "{month}");
    }
}

#[test]
fn rows_are_in_order_and_the_same_for_every_number_of_threads_and_memory() {
    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    let count = |options: &str, name: &str| {
        ok(
            dir,
            &format!("make-book -q a.pgn b.pgn c.pgn --variations {options} --counts {name}"),
        );
        files(&dir.join(name))
    };
    let counts = count("--by speed,rating,month --threads 1", "one");
    for (number, options) in [
        "--by month,rating,speed --threads 5 --memory 64KiB",
        "--by rating,month,speed,speed --threads 2",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(count(options, &number.to_string()) == counts, "{options}");
    }
    let rows = class_rows(&dir.join("one"));
    let place = |row: &ClassRow| (row.row.key.cast_signed(), row.row.mv, row.class);
    assert!(rows.is_sorted_by(|a, b| place(a) < place(b)));
    let sidecar: serde_json::Value = serde_json::from_slice(&counts["_counts.json"]).unwrap();
    assert_eq!(
        sidecar["by"],
        serde_json::json!(["speed", "rating", "month"])
    );
    // Classes that are not requested are added up.
    count("--by month", "month");
    let of_month = class_rows(&dir.join("month"));
    assert!(of_month.len() < rows.len() && of_month.iter().all(|row| row.class.speed == 0));
}

#[test]
fn counts_by_class_make_what_the_games_make() {
    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    let pgns = ["a", "b", "c"];
    for name in pgns {
        ok(
            dir,
            &format!("make-book -q {name}.pgn --counts {name}.counts --by {ALL}"),
        );
    }
    let counts = pgns.map(|name| format!("{name}.counts")).join(" ");
    let games = pgns.map(|name| format!("{name}.pgn")).join(" ");
    let added = |inputs: &str, options: &str, name: &str| {
        ok(
            dir,
            &format!("make-book -q {inputs} {options} --counts {name} --force"),
        );
        files(&dir.join(name))
    };
    // All classes of the inputs, some of them, and none.
    for (options, by) in [
        ("", ALL),
        ("--by month", "month"),
        ("--by rating,speed", "speed,rating"),
        ("--by none", "none"),
    ] {
        let direct = added(&games, &format!("--by {by}"), "direct");
        for how in ["--threads 1", "--threads 3 --memory 7MiB"] {
            assert!(
                added(&counts, &format!("{options} {how}"), "added") == direct,
                "{options} {how}"
            );
        }
        // Counts and games can be combined.
        let mixed = added("a.counts b.pgn c.counts", options, "mixed");
        assert!(mixed == direct, "{options} mixed");
    }
    for options in ["", "--min-game 1 --uniform"] {
        for (inputs, name) in [(&games, "games"), (&counts, "counts")] {
            ok(
                dir,
                &format!(
                    "make-book -q {inputs} {options} --bin {name}.bin --obs {name}.obs.db3 --force"
                ),
            );
        }
        for ending in ["bin", "obs.db3"] {
            let [a, b] = ["games", "counts"]
                .map(|name| fs::read(dir.join(format!("{name}.{ending}"))).unwrap());
            assert!(a == b, "{options} {ending}");
        }
    }
    // A book and counts in one run.
    ok(
        dir,
        &format!("make-book -q {counts} --bin both.bin --counts both"),
    );
    ok(
        dir,
        &format!("make-book -q {games} --bin direct.bin --counts direct --by {ALL} --force"),
    );
    assert!(files(&dir.join("both")) == files(&dir.join("direct")));
    assert!(fs::read(dir.join("both.bin")).unwrap() == fs::read(dir.join("direct.bin")).unwrap());
    let [a, b] = [&counts, &games].map(|inputs| {
        let by = if inputs == &games {
            ALL
        } else {
            "speed,rating,month"
        };
        let mut report = ok_json(
            dir,
            &format!("make-book {inputs} --by {by} --counts report --force --json"),
        );
        report["seconds"].take();
        // Counts do not know how many games have no result.
        report.as_object_mut().unwrap().remove("unfinished");
        report
    });
    assert_eq!(a, b);
    let report = ok_json(
        dir,
        &format!("make-book {games} --counts report --force --json"),
    );
    for field in ["positions", "entries", "plies"] {
        assert_eq!(a[field], report[field], "{field}");
    }
}

#[test]
fn classes_of_variants_are_counted_by_identities() {
    let dir = temp();
    let dir = dir.path();
    let pgn = fs::read_to_string(sample("variants.pgn")).unwrap();
    for variant in ["crazyhouse", "fischerandom", "auto"] {
        for (name, text) in [
            ("a.pgn", pgn.clone()),
            (
                "b.pgn",
                pgn.replace("[Event ", "[Date \"2024.01.01\"]\n[Event "),
            ),
        ] {
            fs::write(dir.join(name), text).unwrap();
            ok(
                dir,
                &format!(
                    "make-book -q {name} --variant {variant} --by {ALL} --counts {name}.counts --force"
                ),
            );
        }
        let made = |inputs: &str, name: &str, by: &str| {
            ok(
                dir,
                &format!(
                    "make-book -q {inputs} --variant {variant} --by {by} --counts {name} --force"
                ),
            );
            files(&dir.join(name))
        };
        for by in [ALL, "month", "none"] {
            let of_games = made("a.pgn b.pgn", "games", by);
            assert!(
                made("a.pgn.counts b.pgn.counts", "counts", by) == of_games,
                "{variant} {by}"
            );
            assert!(
                made("a.pgn b.pgn --memory 64KiB --threads 3", "again", by) == of_games,
                "{variant} {by}"
            );
        }
        let rows = class_rows(&dir.join("a.pgn.counts"));
        let place = |row: &ClassRow| {
            (
                row.row.key.cast_signed(),
                row.row.mv,
                row.row.identity,
                row.class,
            )
        };
        assert!(
            !rows.is_empty() && rows.is_sorted_by(|a, b| place(a) < place(b)),
            "{variant}"
        );
    }
}

/// Returns the number of half-moves of each position that has some.
fn plies(rows: &[ClassRow]) -> HashMap<u64, u64> {
    let mut plies = HashMap::new();
    for row in rows.iter().filter(|row| row.row.mv != BookMove::NONE) {
        *plies.entry(row.row.key).or_default() += row.row.stats.games();
    }
    plies
}

#[test]
fn positions_of_few_moves_are_dropped_and_the_counts_say_so() {
    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    for name in ["a", "b", "c"] {
        ok(
            dir,
            &format!("make-book -q {name}.pgn --counts {name}.counts --by month"),
        );
    }
    let counts = "a.counts b.counts c.counts";
    for by in ["month", "none"] {
        let all = format!("make-book -q {counts} --by {by} --counts all --force");
        ok(dir, &all);
        let report = ok_json(
            dir,
            &format!("make-book {counts} --by {by} --counts pruned --force --min-game 5 --json"),
        );
        let (whole, kept) = (
            class_rows(&dir.join("all")),
            class_rows(&dir.join("pruned")),
        );
        let plies = plies(&whole);
        let is_kept = |row: &&ClassRow| plies.get(&row.row.key).is_some_and(|plies| *plies >= 5);
        let (expected, dropped): (Vec<&ClassRow>, Vec<&ClassRow>) = whole.iter().partition(is_kept);
        assert!(
            kept.iter().eq(expected) && !kept.is_empty() && !dropped.is_empty(),
            "{by}"
        );
        let about = CountsDirectory::open(dir.join("pruned"))
            .unwrap()
            .about()
            .unwrap()
            .clone();
        let pruned = about.pruned.unwrap();
        assert_eq!(pruned.min_game, 5);
        assert_eq!(pruned.rows, dropped.len() as u64);
        assert_eq!(
            pruned.positions,
            plies.values().filter(|plies| **plies < 5).count() as u64
        );
        assert_eq!(about.plies + pruned.plies, plies.values().sum::<u64>());
        assert_eq!(
            report["counts"]["pruned"]["positions"], pruned.positions,
            "{report}"
        );
        // The games, the complete counts, and counts that are pruned again give the same result.
        for (inputs, more) in [
            ("a.pgn b.pgn c.pgn", ""),
            ("all", ""),
            ("pruned", "--threads 1"),
        ] {
            let name = if inputs == "pruned" { "again" } else { "other" };
            ok(
                dir,
                &format!(
                    "make-book -q {inputs} {more} --by {by} --counts {name} --force --min-game 5"
                ),
            );
            assert!(
                files(&dir.join(name)) == files(&dir.join("pruned")),
                "{inputs}"
            );
        }
    }
    // Outputs made from pruned counts mention the pruning.
    let said = crate::common::run(dir, "make-book pruned --bin pruned.bin");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("only positions in which at least 5 moves were counted"),
        "{said}"
    );
    let header = ok(dir, "pgheader -s pruned.bin");
    assert!(
        header.contains("Options: (of counts with --min-game 5)"),
        "{header}"
    );
    ok(dir, "make-book -q pruned --obs pruned.obs.db3");
    ok(dir, "convert -q pruned.obs.db3 converted.bin");
    let header = ok(dir, "pgheader -s converted.bin");
    assert!(header.contains("(of counts with --min-game 5)"), "{header}");
    // For a book next to the counts, the option concerns only the book.
    ok(
        dir,
        "make-book -q all --by none --bin beside.bin --counts beside --min-game 5",
    );
    assert!(files(&dir.join("beside")) == files(&dir.join("all")));
    let other = "these counts do not contain positions in which fewer than 5 moves were counted, so they cannot be \
                 added to other inputs";
    for (inputs, output) in [
        ("pruned a.counts --by none", "--counts x"),
        ("a.pgn pruned", "--bin x"),
        ("a.counts pruned", "--bin x"),
        // A position that is rare in each input may be frequent in the sum.
        ("pruned pruned", "--counts x"),
    ] {
        let err = fails(dir, &format!("make-book {inputs} {output}"), 1);
        assert!(err.contains(&format!("pruned: {other}")), "{err}");
        assert!(!dir.join("x").exists());
    }
    ok(dir, "make-book -q all --counts pruned9 --min-game 9");
    let err = fails(dir, "make-book pruned pruned9 --bin x", 1);
    assert!(
        err.contains("pruned: these counts do not contain positions in which fewer than 5"),
        "{err}"
    );
}

/// The sidecar of pruned counts says what they lack.
#[cfg(unix)]
#[test]
fn a_sidecar_or_part_that_is_not_a_file_is_an_error() {
    use crate::common::make_fifo;

    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    ok(dir, &format!("make-book -q a.pgn --by {ALL} --counts all"));
    ok(dir, "make-book -q all --counts pruned --min-game 5");
    let refused = |path: &str| {
        let err = fails(dir, "make-book pruned all --counts x", 1);
        assert!(err.contains(path) && !dir.join("x").exists(), "{err}");
    };
    let sidecar = dir.join("pruned/_counts.json");
    fs::remove_file(&sidecar).unwrap();
    std::os::unix::fs::symlink("nowhere", &sidecar).unwrap();
    refused("pruned/_counts.json");
    fs::remove_file(&sidecar).unwrap();
    fs::create_dir(&sidecar).unwrap();
    refused("pruned/_counts.json: not a file");
    fs::remove_dir(&sidecar).unwrap();
    make_fifo(&sidecar);
    refused("pruned/_counts.json: not a file");
    fs::remove_file(&sidecar).unwrap();
    make_fifo(&dir.join("pruned/a.parquet"));
    refused("pruned/a.parquet: not a file");
    // This holds even if a sidecar lists the directory.
    fs::create_dir(dir.join("listed")).unwrap();
    make_fifo(&dir.join("listed/pipe"));
    let pipe = r#"{"file": "pipe", "rows": 0, "bytes": 0, "plies": 0}"#;
    for files in [
        format!(r#""parts": [{pipe}]"#),
        format!(r#""parts": [], "starts": {pipe}"#),
    ] {
        let about = r#""format": "polybook counts", "version": 2, "inputs": [], "games": null, "options": "", "variant": "normal""#;
        let sidecar = format!(r#"{{{about}, "plies": 0, {files}}}"#);
        fs::write(dir.join("listed/_counts.json"), sidecar).unwrap();
        let err = fails(dir, "make-book listed --counts x", 1);
        assert!(err.contains("listed/pipe: not a file"), "{err}");
    }
}

#[test]
fn parts_of_other_compressions_name_them() {
    let Some(python) = python(&["pyarrow"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    ok(dir, "make-book -q a.pgn --counts all");
    for (codec, problem) in [
        ("brotli", "compressed with Brotli"),
        ("lz4", "compressed with LZ4"),
    ] {
        fs::create_dir(dir.join(codec)).unwrap();
        let script = format!(
            "import pyarrow.parquet as p; p.write_table(p.read_table('all/part-000.parquet'), '{codec}/a.parquet', \
             compression='{codec}')"
        );
        let mut python = Command::new(&python);
        assert!(
            python
                .args(["-c", &script])
                .current_dir(dir)
                .status()
                .unwrap()
                .success()
        );
        let err = fails(dir, &format!("make-book {codec} --counts x"), 1);
        assert!(err.contains(problem), "{err}");
    }
}

#[test]
fn counts_without_the_classes_that_are_asked_for_are_refused() {
    let dir = temp();
    let dir = dir.path();
    write_games(dir);
    for (name, by) in [("none", "none"), ("month", "month"), ("all", ALL)] {
        ok(
            dir,
            &format!("make-book -q a.pgn --by {by} --counts {name}"),
        );
    }
    refused(
        dir,
        &[
            (
                "make-book none --counts x --by month",
                1,
                "none: these counts are not divided, but counts by month are requested",
            ),
            (
                "make-book all month --counts x --by speed,month",
                1,
                "month: these counts are divided by month, but counts by speed,month are requested",
            ),
            (
                "make-book all month --counts x",
                1,
                "month: these counts are divided by month, but other inputs are divided by speed,rating,month",
            ),
            (
                "make-book none b.pgn month --counts x",
                1,
                "month: these counts are divided by month, but other inputs are not divided",
            ),
            (
                "make-book a.pgn --counts x --by elo",
                2,
                "of speed, rating and month",
            ),
            ("make-book a.pgn --bin x --by month", 2, "--counts"),
        ],
    );
    assert!(!dir.join("x").exists());
    let numbers = (64..=66).map(|number| format!("all{number}"));
    let names: Vec<String> = numbers.collect();
    for name in &names {
        fs::create_dir(dir.join(name)).unwrap();
        for (file, bytes) in files(&dir.join("all")) {
            fs::write(dir.join(name).join(file), bytes).unwrap();
        }
    }
    let line = format!("make-book {} --memory 5MiB --counts x", names.join(" "));
    let err = fails(dir, line.as_str(), 1);
    assert!(
        err.contains("adding up 3 directories of counts by class takes 6 MiB"),
        "{err}"
    );
    assert!(!dir.join("x").exists());
}

/// Counts that are divided by speed, rating group and month select the same games as the games themselves. Whatever is
/// made from them is equal.
#[test]
fn counts_apply_the_conditions_that_they_are_divided_by() {
    let dir = temp();
    let dir = dir.path();
    let text = games(0, 300);
    let (with_fen, usual): (Vec<&str>, Vec<&str>) = text
        .split_inclusive("\n\n[")
        .partition(|game| game.contains("FEN "));
    assert!(!with_fen.is_empty());
    let usual = usual.concat();
    fs::write(dir.join("games.pgn"), usual.trim_end_matches('[')).unwrap();
    ok(
        dir,
        &format!("make-book -q games.pgn --counts all.counts --by {ALL}"),
    );
    let mut sizes = BTreeMap::new();
    for conditions in [
        "--speed blitz",
        "--speed blitz,rapid --rating 1400,1600",
        "--rating unknown",
        "--since 2024",
        "--since 2023.12 --until 2024.01",
        "--until 2023 --require-date",
        "--rating 2200,2500 --since 2023 --speed bullet,blitz,rapid",
    ] {
        let made_from = |source: &str, name: &str| {
            ok(
                dir,
                &format!(
                    "make-book -q {source} {conditions} --force --allow-empty --min-game 1 --no-header --bin {name}.bin \
                     --obs {name}.obs.db3 --explorer {name}.idx --counts {name}.counts --by {ALL}"
                ),
            );
            let trees = ["obs.db3", "counts"].map(|ending| {
                ok(
                    dir,
                    &format!("tree {name}.{ending} --format jsonl --max-ply 12"),
                )
            });
            let moves = ok_json(dir, &format!("show {name}.idx --json"))["moves"].take();
            let results = |mv: &serde_json::Value| {
                let draws = mv["draws"].as_u64().unwrap() + mv["unfinished"].as_u64().unwrap_or(0);
                (
                    mv["uci"].clone(),
                    mv["white"].clone(),
                    draws,
                    mv["black"].clone(),
                )
            };
            let moves: Vec<_> = moves.as_array().unwrap().iter().map(results).collect();
            (
                fs::read(dir.join(format!("{name}.bin"))).unwrap(),
                trees,
                moves,
            )
        };
        let of_games = made_from("games.pgn", "games");
        assert!(
            of_games == made_from("all.counts", "counts"),
            "{conditions}"
        );
        let shown = ok_json(dir, &format!("show all.counts --json {conditions}"));
        assert_eq!(
            shown,
            ok_json(dir, "show games.counts --json"),
            "{conditions}"
        );
        sizes.insert(of_games.0.len(), conditions);
    }
    assert!(sizes.len() > 4 && !sizes.contains_key(&0), "{sizes:?}");
    ok(
        dir,
        "make-book -q all.counts --since 2024 --min-game 1 --bin b.bin",
    );
    let header = ok(dir, "pgheader -s b.bin");
    assert!(header.contains("--since 2024"), "{header}");
    for (line, told) in [
        (
            "make-book all.counts --player Tal",
            "counts contain no player names, which the condition player needs: give the PGN files",
        ),
        (
            "make-book all.counts --since 2024.02.03",
            "counts contain no days, which the condition since needs",
        ),
        (
            "make-book all.counts --since 2024 --max-ply 9",
            "so --max-ply 9 cannot be applied",
        ),
        (
            "repertoire build all.counts --color white --out x.pgn --player Tal",
            "counts contain no player names",
        ),
    ] {
        let error = fails(dir, line, 1);
        assert!(error.contains(told), "{error}");
    }
    let error = fails(dir, "show all.counts --opponent Tal", 2);
    assert!(error.contains("--opponent does not apply"), "{error}");
    fs::write(dir.join("starts.pgn"), games(0, 40)).unwrap();
    ok(
        dir,
        &format!("make-book -q starts.pgn --counts starts.counts --by {ALL}"),
    );
    let line = "make-book -q starts.counts --since 2024 --min-game 1";
    ok(dir, &format!("{line} --obs starts.obs.db3 --force"));
    let error = fails(dir, &format!("{line} --counts part.counts"), 1);
    assert!(error.contains("began in another position"), "{error}");
}

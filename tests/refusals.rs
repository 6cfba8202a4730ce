//! Commands that are refused: one table with the exit status and a part of the message of each command.

use std::{collections::BTreeMap, fs, path::Path};

use crate::common::{ok, refused, sample, temp};

/// A command line without the name of the program, its exit status, and a part of its message.
type Refusal = (&'static str, i32, &'static str);

const REFUSALS: &[Refusal] = &[
    // Options that would change nothing.
    (
        "convert games.obs.db3 a.jsonl --with-san",
        2,
        "only if the output is a table in CSV",
    ),
    ("convert book.bin a.csv --with-san", 2, "only to databases"),
    (
        "prepare games.idx --player A --opponent B --color white --result loss",
        2,
        "--result does not apply to a preparation",
    ),
    (
        "prepare games.idx --player A --opponent B --color white --result 1-0",
        2,
        "--result does not apply to a preparation",
    ),
    (
        "convert games.obs.db3 a.csv --weighted",
        2,
        "only if the output is a suite",
    ),
    (
        "convert games.obs.db3 a.csv --no-header",
        2,
        "a Polyglot book",
    ),
    (
        "convert games.obs.db3 a.epd --comment x",
        2,
        "a Polyglot book",
    ),
    ("convert games.obs.db3 a.pgn --uniform", 2, "--weighted"),
    (
        "convert games.obs.db3 a.pgn --win-factor 3",
        2,
        "--weighted",
    ),
    (
        "convert games.obs.db3 a.pgn --opcodes",
        2,
        "only to suites of positions",
    ),
    ("convert book.bin a.pgn --weighted", 2, "only to databases"),
    (
        "make-book famous.pgn --suite a.pgn --opcodes",
        2,
        "only to suites of positions",
    ),
    (
        "make-book famous.pgn --leveldb a.idx --comment x",
        2,
        "--bin",
    ),
    (
        "make-book famous.pgn --counts a.counts --draw-factor 0",
        2,
        "--bin",
    ),
    ("make-book famous.pgn --exact", 2, "--player"),
    (
        "make-book famous.pgn --bin bot.pgn",
        2,
        "--bin bot.pgn: the output is a Polyglot book, not PGN: choose a name that ends in .bin",
    ),
    ("merge-book book.bin --out a.epd", 2, "not EPD"),
    ("filter book.bin --out a.PGN", 2, "not PGN"),
    (
        "make-book famous.pgn --uniform --scale position",
        2,
        "--scale",
    ),
    ("show games.idx --exact", 2, "--player"),
    (
        "show games.idx --since 2024 --until 2023",
        2,
        "exchange the two dates",
    ),
    (
        "games games.idx --min-elo 9 --max-elo 8",
        2,
        "exchange the two ratings",
    ),
    ("tree book.bin --min-game 3", 2, "--min-weight"),
    (
        "filter book.bin --out a.bin --variant atomic",
        2,
        "--reachable",
    ),
    ("verify games.obs.db3 --fix a.db3", 2, "Polyglot books"),
    // Files where a command or an index belongs.
    (
        "famous.pgn",
        2,
        "polybook: famous.pgn is a file: to show its games, run polybook serve famous.pgn --open; to make a book, run \
         polybook make-book famous.pgn",
    ),
    ("book.bin", 2, "polybook show book.bin"),
    ("gone.pgn", 2, "gone.pgn is neither a command nor a file"),
    (
        "games --index famous.pgn --json",
        2,
        "polybook: unexpected argument '--index': name the source without an option",
    ),
    ("show gone.pgn", 1, "gone.pgn"),
    ("show", 2, "missing: <SOURCE>..."),
    // Standard output as a directory.
    (
        "make-book games.pgn --counts -",
        2,
        "--counts writes a directory, so the output cannot be standard output (-)",
    ),
    (
        "make-book games.pgn --leveldb -",
        2,
        "--leveldb writes a directory, so the output cannot be standard output (-)",
    ),
    // Editing.
    ("edit book.bin --out x.bin", 2, "nothing to change"),
    (
        "edit book.bin --set e4=1",
        2,
        "--out, or change this book itself with --in-place",
    ),
    (
        "edit book.bin --in-place --out x.bin --set e4=1",
        2,
        "cannot be used with",
    ),
    ("edit - --in-place --set e4=1", 2, "standard input"),
    (
        "edit book.bin --out book.bin --set e4=1",
        1,
        "choose another output, or change the book with --in-place",
    ),
    ("edit book.bin --out x.bin --set e4", 2, "Nf3=100"),
    (
        "edit book.bin --out x.bin --set e4=0%",
        2,
        "greater than 0% and at most 100%",
    ),
    (
        "edit book.bin --out x.bin --set e4=90000",
        2,
        "use a weight from 0 to 65535",
    ),
    ("edit book.bin --out x.bin --set e4=much", 2, "Nf3=100"),
    (
        "edit book.bin --out x.bin --set e5=1",
        1,
        "in the position rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1, the move \"e5\" cannot be played (illegal move)",
    ),
    (
        "edit book.bin --out x.bin --remove-position --set e4=1",
        2,
        "cannot be used with",
    ),
    ("edit book.bin --out - --json --set e4=1", 2, "give a file"),
    ("edit missing.bin --out x.bin --set e4=1", 1, "missing.bin"),
    (
        "edit book.bin --out x.bin --script missing.txt",
        1,
        "missing.txt",
    ),
    (
        "edit book.bin --out x.bin --memory 64KiB --script long.txt",
        1,
        "long.txt: this file is longer than the 2048 bytes that --memory allows",
    ),
    // Suites and tables.
    ("convert book.bin s.epd --balance 45-55", 1, "no results"),
    ("convert book.bin s.epd --balance 55-45", 2, "45-55"),
    (
        "convert book.bin s.epd --min-game 3",
        2,
        "--min-game needs the results of games",
    ),
    ("convert book.bin s.epd --limit 0", 2, "--limit"),
    ("convert book.bin other.bin", 2, "polybook filter"),
    (
        "convert book.bin s.epd --from bad.epd",
        1,
        "bad.epd: line 2: FEN",
    ),
    (
        "key --fen start",
        1,
        "FEN \"start\": this is not a FEN, which looks like rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1",
    ),
    ("key --fen=8/8/8", 1, "the board has 3 ranks instead of 8"),
    (
        "key --fen=k7/8/8/8/8/7/8/K7",
        1,
        "rank 3 of the board has 7 squares instead of 8",
    ),
    (
        "key --fen=k7/9/8/8/8/8/8/K7",
        1,
        "the board contains \"9\", which is neither a piece nor a number from 1 to 8",
    ),
    (
        "convert book.bin s.epd --from none.epd",
        1,
        "none.epd: this file contains no position",
    ),
    (
        "convert book.bin s.epd --plies 40",
        1,
        "book.bin: the longest line has only 12 half-moves, but lines of 40 are requested: use a smaller --plies",
    ),
    (
        "convert games.obs.db3 new.bin --min-game 1000",
        1,
        "the book would be empty",
    ),
    (
        "merge-book book.bin b.bin --out x.obs.db3",
        2,
        "books store no results of games: choose a name that ends in .bin",
    ),
    (
        "filter book.bin --out x.obs.db3",
        2,
        "books store no results of games: choose a name that ends in .bin",
    ),
    (
        "edit book.bin --set e4=1 --out x.pgn",
        2,
        "the output is a Polyglot book, not PGN: choose a name that ends in .bin",
    ),
    (
        "merge-book games.obs.db3 --out x.bin",
        2,
        "choose a name that ends in .obs.db3, and make a book from the database with polybook convert",
    ),
    (
        "convert games.obs.db3 t.csv --limit 4",
        2,
        "--limit applies only to outputs that are suites",
    ),
    (
        "make-book none.epd --plies 4",
        2,
        "--plies applies only to --suite; the lines of a book end at --max-ply",
    ),
    (
        "convert book.bin s.epd --from tagged.pgn",
        1,
        "tagged.pgn: this file is PGN, but --from needs a file with a FEN",
    ),
    (
        "make-book none.epd --suite s.txt",
        2,
        "the name must end in .pgn",
    ),
    (
        "make-book games.pgn --suite s.pgn --plies 20 --max-ply 10",
        1,
        "the suite needs lines of 20 half-moves, but only 10 of each game are counted: use a larger --max-ply",
    ),
    (
        "make-book games.pgn --suite s.epd --max-ply 16",
        2,
        "--plies sets the length of the openings of a suite",
    ),
    (
        "make-book counts --suite s.pgn",
        1,
        "contains counts instead of games",
    ),
    ("make-book games.pgn --suite games.pgn", 1, "games.pgn"),
    (
        "make-book games.pgn --suite s.pgn --json --plies 9",
        1,
        "no game contains 9",
    ),
    (
        "make-book games.pgn --suite s.pgn --plies 2",
        1,
        "no line of 2 half-moves was played in at least 3 games, and the most frequent one in only 1",
    ),
    (
        "make-book games.pgn --suite s.epd --plies 2",
        1,
        "no position after 2 half-moves was reached in at least 3 games, and the most frequent one in only 1",
    ),
    (
        "make-book games.pgn --suite s.epd --plies 2 --min-game 1 --balance 1-2",
        1,
        "no line of 2 half-moves is in the range: widen the range of --balance",
    ),
    (
        "convert games.obs.db3 t.csv --from bad.epd",
        2,
        "--from applies only to",
    ),
    ("convert book.bin t.txt", 2, ".jsonl"),
    ("convert - s.epd --from -", 2, "one standard input"),
    (
        "make-book - --suite s.epd --from -",
        2,
        "one standard input",
    ),
    // Filtering books.
    (
        "filter book.bin --out book.bin",
        1,
        "both an input and an output",
    ),
    ("filter book.bin --out - --json", 2, "give a file"),
    ("filter book.bin --out a.bin --min-share 101", 2, "0 to 100"),
    ("filter book.bin --out a.bin --min-share NaN", 2, "0 to 100"),
    (
        "filter book.bin --out a.bin --min-weight 65535",
        1,
        "book.bin: no move is kept with --min-weight 65535",
    ),
    ("filter missing.bin --out a.bin", 1, "missing.bin"),
    ("filter --out a.bin", 2, "BOOK"),
    // Trees.
    ("tree book.bin --out notes", 1, "replace it with --force"),
    (
        "tree book.bin --out book.bin",
        1,
        "both an input and an output",
    ),
    ("tree book.bin --json --out -", 2, "give a file"),
    ("tree book.bin --max-ply 5000", 2, "4096"),
    ("tree missing.bin", 1, "missing.bin"),
    (
        "tree notes",
        1,
        "this file contains no game: give a PGN file",
    ),
    // Filters that no game can pass.
    (
        "make-book games.pgn --since 2024 --until 2023",
        2,
        "the first date, 2024, is later than the last date, 2023: exchange the two dates",
    ),
    (
        "make-book games.pgn --min-elo 2500 --max-elo 2400",
        2,
        "the lowest rating, 2500, is higher than the highest rating, 2400",
    ),
    (
        "make-book games.pgn --since 2024.02.31",
        2,
        "': use a day from 1 to 29 for this month; see",
    ),
    ("make-book games.pgn --since 24", 2, "four digits"),
    // Reports of matches.
    ("suite-report board.epd m.pgn", 1, "board.epd: line 2: "),
    ("suite-report bad.pgn m.pgn", 1, "bad.pgn: game 2: e9"),
    (
        "suite-report empty.pgn m.pgn",
        1,
        "this suite contains no lines and no positions: choose another file",
    ),
    (
        "suite-report exits.epd other.pgn",
        1,
        "no game begins in a position of the suite (2 games read): give games with the position in the tag FEN",
    ),
    ("suite-report exits.epd m.pgn --drop-one-sided", 2, "--out"),
    (
        "suite-report exits.epd m.pgn --drop-one-sided --out m.pgn",
        1,
        "m.pgn",
    ),
    (
        "suite-report exits.epd m.pgn --drop-one-sided --out left.epd",
        1,
        "all its openings are one-sided: use a larger --min-pairs",
    ),
    ("suite-report - -", 2, "one standard input"),
    (
        "suite-report exits.epd m.pgn --first C",
        1,
        "\"C\" played no game with an opening of the suite",
    ),
    (
        "suite-report exits.epd m.pgn --min-pairs 0",
        2,
        "use 1 or more",
    ),
    (
        "suite-report b.bin m.pgn",
        1,
        "b.bin: this is a Polyglot book",
    ),
];

/// Creates the files that the commands of the table name.
fn files(dir: &Path) {
    const AFTER_E4: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    ok(
        dir,
        "make-book -q --min-game 1 --loss-factor 1 --max-ply 12 famous.pgn --bin book.bin --obs games.obs.db3 --explorer games.idx",
    );
    write("games.pgn", "1. e4 e5 2. Nf3 *\n");
    ok(dir, "make-book -q games.pgn --counts counts");
    write("long.txt", &"# long\n".repeat(400));
    write("notes", "1. my notes\n");
    write("bad.epd", "\nnot a position\n");
    write("none.epd", "# none\n");
    write("tagged.pgn", "[Event \"x\"]\n\n1. e4 *\n");
    write("exits.epd", &format!("{AFTER_E4}\n"));
    write("board.epd", &format!("{AFTER_E4}\n8/8/8/8/8/8/8/8 w - -\n"));
    write("bad.pgn", "1. e4 e5 *\n\n1. e4 e9 *\n");
    write("empty.pgn", "\n");
    let pair = |tags: &str, moves: &str| {
        let game = |white, black| {
            format!(
                "[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n{tags}\n{moves} 1-0\n\n"
            )
        };
        game("A", "B") + &game("B", "A")
    };
    write(
        "m.pgn",
        &pair(&format!("[FEN \"{AFTER_E4} 0 1\"]\n"), "1... e5"),
    );
    write("other.pgn", &pair("", "1. d4 d5"));
    ok(dir, "make-book -q other.pgn --min-game 1 --bin b.bin");
}

/// Returns the content of each file of a directory, and `None` for directories.
fn contents(dir: &Path) -> BTreeMap<std::ffi::OsString, Option<Vec<u8>>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name(), fs::read(entry.path()).ok()))
        .collect()
}

#[test]
fn a_refused_command_names_the_reason_and_changes_no_file() {
    let dir = temp();
    files(dir.path());
    let before = contents(dir.path());
    refused(dir.path(), REFUSALS);
    assert!(contents(dir.path()) == before);
}

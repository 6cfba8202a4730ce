//! The advice of messages is followed, one message after the other: a command fails or warns, and what the message says to
//! do works.

use std::{fs, path::Path};

use crate::common::{ok, run, temp};

const CHESS960: &str = "nbrkqrbn/pppppppp/8/8/8/8/PPPPPPPP/NBRKQRBN w FCfc - 0 1";

/// Creates a directory with the files that the commands read.
fn files() -> tempfile::TempDir {
    let dir = temp();
    let at = dir.path();
    for (name, text) in [
        (
            "frc.pgn",
            format!("[FEN \"{CHESS960}\"]\n[Result \"1-0\"]\n\n1. Nb3 Nb6 1-0\n"),
        ),
        ("frc.epd", format!("{CHESS960}\n")),
        ("de.pgn", "[White \"A\"]\n\n1. Sf3 d5 1-0\n".to_owned()),
        ("en.pgn", "[White \"A\"]\n\n1. e4 e5 1-0\n".to_owned()),
        (
            "mixed.pgn",
            "1. e4 e5 1-0\n\n[White \"B\"]\n\n1. d4 Ke4 1-0\n".to_owned(),
        ),
        (
            "wild.pgn",
            "[Variant \"wild/0\"]\n\n1. e4 e5 1-0\n".to_owned(),
        ),
        (
            "drops.pgn",
            "1. e4 d5 2. exd5 Qxd5 3. Nc3 P@g4 1-0\n".to_owned(),
        ),
        ("old.pgn", "[White \"A\"]\n\n1. P-K4 P-K4 1-0\n".to_owned()),
        ("ru.pgn", "[White \"A\"]\n\n1. Кf3 d5 1-0\n".to_owned()),
        ("nf3.pgn", "[White \"A\"]\n\n1. Nf3 d5 1-0\n".to_owned()),
        ("open.pgn", "1. e4 e5 *\n".to_owned()),
        ("plain.pgn", "[Event \"x\"]\n\n1. e4 e5 1-0\n".to_owned()),
        ("mine.pgn", "1. e4 c5 2. Nf3 *\n".to_owned()),
        ("notes.txt", "my notes\n".to_owned()),
        ("old.epd", "my notes\n".to_owned()),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    ok(
        at,
        "make-book -q en.pgn --min-game 1 --bin s.bin --obs s.obs.db3 --leveldb plain.idx",
    );
    ok(at, "make-book -q en.pgn --explorer full.idx");
    ok(at, "make-book -q en.pgn --counts month.counts --by month");
    dir
}

/// Runs a command whose message must contain `advice`.
#[track_caller]
fn advised(dir: &Path, command: &[&str], advice: &str) {
    let output = run(dir, command);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(advice), "{command:?}: {said}");
}

/// Splits a command line at blanks, but for `FEN`, which stands for a FEN or another argument with blanks.
fn words<'a>(line: &'a str, fen: &'a str) -> Vec<&'a str> {
    let words = line.split(' ');
    words
        .map(|word| if word == "FEN" { fen } else { word })
        .collect()
}

#[test]
fn advice_works() {
    let dir = files();
    let dir = dir.path();
    for (command, advice, followed) in [
        // Variants.
        (
            "make-book frc.pgn --min-game 1 --bin a.bin",
            "read it with --variant fischerandom",
            "make-book frc.pgn --min-game 1 --bin a.bin --variant fischerandom",
        ),
        (
            "key --fen FEN",
            "read it with --variant fischerandom",
            "key --fen FEN --variant fischerandom",
        ),
        (
            "suite-report frc.epd frc.pgn",
            "read it with --variant fischerandom",
            "suite-report frc.epd frc.pgn --variant fischerandom",
        ),
        (
            "make-book frc.pgn --suite a.epd --plies 1 --min-game 1 --from frc.epd",
            "read it with --variant fischerandom",
            "make-book frc.pgn --suite a.epd --plies 1 --min-game 1 --from frc.epd --variant fischerandom",
        ),
        (
            "make-book en.pgn --min-game 1 --untagged-variant atomic --bin b.bin",
            "--variant atomic counts it",
            "make-book en.pgn --min-game 1 --untagged-variant atomic --bin b.bin --variant atomic",
        ),
        (
            "show s.bin --variant atomic",
            "use --variant with a variant of the file",
            "show s.bin --variant normal",
        ),
        // The tag is removed in plain.pgn.
        (
            "make-book wild.pgn --min-game 1 --bin c.bin",
            "\"wild/0\": 1 game filtered; if it is standard chess, remove the tag Variant",
            "make-book plain.pgn --min-game 1 --bin c.bin",
        ),
        (
            "make-book drops.pgn --min-game 1 --bin b2.bin",
            "read it with --variant crazyhouse --untagged-variant crazyhouse",
            "make-book drops.pgn --min-game 1 --bin b2.bin --variant crazyhouse --untagged-variant crazyhouse",
        ),
        (
            "repertoire build drops.pgn --color white --out b3.pgn --min-game 1",
            "read it with --variant crazyhouse --untagged-variant crazyhouse",
            "repertoire build drops.pgn --color white --out b3.pgn --min-game 1 --variant crazyhouse --untagged-variant crazyhouse",
        ),
        // Games. The moves of old.pgn and ru.pgn are converted in en.pgn and nf3.pgn.
        (
            "make-book old.pgn --min-game 1 --bin b4.bin",
            "descriptive notation: convert the game to moves such as e4 and Nf3",
            "make-book en.pgn --min-game 1 --bin b4.bin",
        ),
        (
            "make-book ru.pgn --min-game 1 --bin b5.bin",
            "replace those of the pieces by K, Q, R, B and N",
            "make-book nf3.pgn --min-game 1 --bin b5.bin",
        ),
        (
            "make-book open.pgn --min-game 1 --bin b6.bin",
            "1 game without a result counted as a draw: --unfinished skip leaves such games out",
            "make-book open.pgn en.pgn --min-game 1 --bin b6.bin --unfinished skip",
        ),
        (
            "make-book de.pgn --min-game 1 --bin d.bin",
            "legal with make-book --piece-letters de",
            "make-book --piece-letters de de.pgn --min-game 1 --bin d.bin",
        ),
        (
            "repertoire build de.pgn --color white --out a.pgn",
            "legal with make-book --piece-letters de",
            "make-book --piece-letters de de.pgn --explorer de.idx",
        ),
        (
            "repertoire build de.pgn --color white --out a.pgn",
            "legal with make-book",
            "repertoire build de.idx --color white --out a.pgn",
        ),
        (
            "make-book mixed.pgn --strict --min-game 1 --bin e.bin",
            "without --strict the game is dropped",
            "make-book mixed.pgn --min-game 1 --bin e.bin",
        ),
        (
            "make-book en.pgn --bin f.bin",
            "--min-game 1 keeps them",
            "make-book en.pgn --bin f.bin --min-game 1",
        ),
        (
            "make-book en.pgn --bin g.bin",
            "--allow-empty writes empty outputs",
            "make-book en.pgn --bin g.bin --allow-empty",
        ),
        (
            "make-book en.pgn --since 2020 --min-game 1 --bin h.bin",
            "--require-date drops it",
            "make-book en.pgn --since 2020 --min-game 1 --bin h.bin --require-date --allow-empty",
        ),
        (
            "make-book en.pgn --min-elo 2000 --min-game 1 --bin i.bin",
            "--require-elo drops it",
            "make-book en.pgn --min-elo 2000 --min-game 1 --bin i.bin --require-elo --allow-empty",
        ),
        (
            "make-book en.pgn 3 --minimax --bin j.bin --min-game 1",
            "did you mean --minimax=3?",
            "make-book en.pgn --minimax=3 --bin j.bin --min-game 1",
        ),
        // Files that exist.
        (
            "make-book en.pgn --min-game 1 --obs s.obs.db3",
            "replace it with --force",
            "make-book en.pgn --min-game 1 --obs s.obs.db3 --force",
        ),
        (
            "make-book en.pgn --min-game 1 --bin notes.txt",
            "name another file, or replace it with --force",
            "make-book en.pgn --min-game 1 --bin notes.txt --force",
        ),
        (
            "make-book en.pgn --counts month.counts --by month",
            "replace it with --force",
            "make-book en.pgn --counts month.counts --by month --force",
        ),
        (
            "convert s.obs.db3 old.epd --min-game 1 --plies 1",
            "replace it with --force",
            "convert s.obs.db3 old.epd --min-game 1 --plies 1 --force",
        ),
        (
            "tree s.bin --out old.epd",
            "replace it with --force",
            "tree s.bin --out old.epd --force",
        ),
        (
            "dump-book s.bin --color white --out old.epd",
            "replace it with --force",
            "dump-book s.bin --color white --out old.epd --force",
        ),
        (
            "repertoire build en.pgn --color white --out mine.pgn",
            "replace it with --force",
            "repertoire build en.pgn --color white --out mine.pgn --force",
        ),
        (
            "merge-index plain.idx plain.idx --out full.idx",
            "replace it with --force",
            "merge-index plain.idx plain.idx --out full.idx --force",
        ),
        (
            "moves --leveldb plain.idx --min-elo 20",
            "make one from the games with make-book --explorer DIR",
            "make-book en.pgn --explorer added.idx",
        ),
        (
            "edit s.bin --set e4=7",
            "name the book to write with --out, or change this one by --in-place",
            "edit s.bin --set e4=7 --in-place",
        ),
        // Files of another kind.
        (
            "show en.pgn",
            "polybook make-book makes a book of games",
            "make-book en.pgn --bin k.bin --min-game 1",
        ),
        (
            "dump-book s.obs.db3 --color white",
            "polybook convert makes a book of an OOBS database",
            "convert s.obs.db3 l.bin --min-game 1",
        ),
        (
            "convert s.bin m.bin",
            "polybook filter and polybook merge-book make others of it",
            "filter s.bin --best 1 --out m.bin",
        ),
        (
            "convert s.obs.db3 n",
            "say what to make with --format",
            "convert s.obs.db3 n --format csv",
        ),
        (
            "make-book en.pgn --suite o --plies 1 --min-game 1",
            "end the name in .pgn for lines or in .epd for positions",
            "make-book en.pgn --suite o.pgn --plies 1 --min-game 1",
        ),
        (
            "repertoire build s.bin --color white --by score --out p.pgn",
            "choose its moves with --by weight",
            "repertoire build s.bin --color white --by weight --out p.pgn",
        ),
        (
            "make-book month.counts --explorer q.idx",
            "count the games with --by speed,rating,month",
            "make-book en.pgn --counts q.counts --by speed,rating,month",
        ),
        (
            "make-book month.counts --leveldb r.idx",
            "name the PGN files",
            "make-book en.pgn --leveldb r.idx",
        ),
    ] {
        advised(dir, &words(command, CHESS960), advice);
        ok(dir, &words(followed, CHESS960));
    }
}

/// A FEN with one mistake after the other, as the messages lead to a position.
#[test]
fn advice_about_a_fen_leads_to_a_position() {
    let dir = temp();
    for (fen, advice, followed) in [
        (
            "4k3/8/8/8/8/8/8/4K2R w K - id \"a\"",
            "end it with a semicolon",
            "4k3/8/8/8/8/8/8/4K2R w K - id \"a\";",
        ),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1g1",
            "remove \"moves e1g1\"",
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
        ),
    ] {
        advised(dir.path(), &["key", "--fen", fen], advice);
        ok(dir.path(), &["key", "--fen", followed]);
    }
    // A semicolon does not help these.
    for rest in ["1.e4", "1.e4;", "\"x"] {
        let fen = format!("4k3/8/8/8/8/8/8/4K2R w K - {rest}");
        let output = run(dir.path(), &["key", "--fen", &fen]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("remove \""), "{said}");
        assert!(!said.contains("semicolon"), "{said}");
    }
}

/// Another variant does not help if the file is of standard chess alone, and evaluations are.
#[test]
fn no_variant_is_named_that_the_file_does_not_have() {
    let dir = files();
    for command in [
        "show s.bin --fen FEN",
        "show s.obs.db3 --fen FEN",
        "tree s.bin --fen FEN",
        "tree full.idx --fen FEN",
        "moves --leveldb full.idx --fen FEN",
        "moves --leveldb plain.idx --fen FEN",
        "games --leveldb full.idx --fen FEN",
        "games --leveldb plain.idx --fen FEN",
        "edit s.bin --in-place --set e4=3 --fen FEN",
        "evals frc.epd --out a.evals",
    ] {
        let output = run(dir.path(), &words(command, CHESS960));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{command}");
        assert!(said.contains("are those of Chess960"), "{command}: {said}");
        assert!(said.contains("standard chess"), "{command}: {said}");
        assert!(!said.contains("fischerandom"), "{command}: {said}");
    }
}

/// Compressed books are unpacked as the message says, whatever their names end in.
#[cfg(unix)]
#[test]
fn compressed_books_are_unpacked_as_advised() {
    use std::process::Command;

    let dir = files();
    let dir = dir.path();
    let book = fs::read(dir.join("s.bin")).unwrap();
    let mut tried = 0;
    for name in ["gzip", "bzip2", "zstd", "xz", "lz4", "lzip"] {
        let packed = Command::new(name).arg("-c").arg(dir.join("s.bin")).output();
        let Ok(packed) = packed else {
            continue;
        };
        fs::write(dir.join("packed.bin"), packed.stdout).unwrap();
        advised(
            dir,
            &["show", "packed.bin"],
            &format!("unpack it, for instance with {name} -dc"),
        );
        let mut unpacking = Command::new(name);
        let unpacked = unpacking.arg("-dc").arg(dir.join("packed.bin")).output();
        let unpacked = unpacked.unwrap();
        assert_eq!(unpacked.stdout, book, "{name}");
        tried += 1;
    }
    assert!(tried > 0, "no program that compresses");
}

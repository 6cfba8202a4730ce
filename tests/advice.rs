//! Follows the advice of messages: a command fails or warns, and the commands that its message suggests must
//! work.

use std::{fs, io::Write, path::Path};

use crate::common::{ok, run, temp};

const ENDGAME: &str = "4k3/8/8/8/8/8/8/4K2R w K -";

/// Two games between two players, each with one color in each.
const DUEL: &str = "\
[Event \"Cup\"]
[White \"Ann\"]
[Black \"Bob\"]
[Date \"2020.01.01\"]
[TimeControl \"300\"]

1. e4 e5 2. Nf3 1-0

[White \"Bob\"]
[Black \"Ann\"]
[Date \"2020.01.02\"]
[TimeControl \"300\"]

1. e4 c5 2. Nf3 0-1
";

const CLOCKED: &str =
    "[White \"A\"]\n[Black \"B\"]\n\n1. e4 {[%clk 0:01:00]} e5 {[%clk 0:01:00]} 1-0\n\n";

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
        (
            "tagged.pgn",
            "[Event \"x\"]\n[White \"A\"]\n[Date \"2020.01.01\"]\n[ECO \"C20\"]\n[TimeControl \"300\"]\n\n1. e4 e5 1-0\n".to_owned(),
        ),
        ("old.epd", "my notes\n".to_owned()),
        ("start.epd", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR\n".to_owned()),
        ("none.epd", "# none\n".to_owned()),
        ("once.epd", format!("{ENDGAME}\n")),
        ("twice.epd", format!("{ENDGAME}\n{ENDGAME}\n")),
        ("no_change.txt", "1. e4\n".to_owned()),
        ("change.txt", "; set e4=100\n".to_owned()),
        ("mate.pgn", "1. f3 e5 2. g4 Qh4# 0-1\n".to_owned()),
        ("atomic.pgn", "[Variant \"Atomic\"]\n\n1. e4 e5 1-0\n".to_owned()),
        ("duel.pgn", DUEL.to_owned()),
        ("big.pgn", CLOCKED.repeat(20_000)),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    ok(
        at,
        "make-book -q en.pgn --min-game 1 --bin s.bin --obs s.obs.db3 --leveldb plain.idx",
    );
    ok(at, "make-book -q en.pgn --explorer full.idx");
    ok(at, "make-book -q duel.pgn --explorer duel.idx");
    ok(
        at,
        "make-book -q en.pgn --counts li.counts --by speed,rating,month",
    );
    ok(at, "make-book -q li.counts --explorer li.idx");
    ok(
        at,
        "make-book -q atomic.pgn --variant atomic --min-game 1 --obs atomic.obs.db3 --counts atomic.counts",
    );
    damaged_and_packed_files(at);
    ok(at, "make-book -q big.pgn.gz --explorer big.idx");
    ok(at, "make-book -q en.pgn --counts month.counts --by month");
    ok(at, "make-book -q en.pgn --counts none.counts");
    for directory in ["papers", "pgns"] {
        fs::create_dir(at.join(directory)).unwrap();
    }
    fs::copy(at.join("notes.txt"), at.join("papers/notes.txt")).unwrap();
    fs::copy(at.join("en.pgn"), at.join("pgns/en.pgn")).unwrap();
    dir
}

/// Writes a book with a changed weight, a file that is not a book, a 7z archive, and PGN files compressed with
/// gzip, one of them truncated.
fn damaged_and_packed_files(dir: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(dir.join(name), bytes).unwrap();
    let mut book = fs::read(dir.join("s.bin")).unwrap();
    let weight = book.len() - 5;
    book[weight] ^= 1;
    write("bad.bin", &book);
    write("junk.bin", &(1..=160).collect::<Vec<u8>>().repeat(4));
    write("a.7z", &[&b"7z\xbc\xaf\x27\x1c"[..], &[0; 40]].concat());
    let packed = |name: &str| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&fs::read(dir.join(name)).unwrap()).unwrap();
        gz.finish().unwrap()
    };
    let en = packed("en.pgn");
    write("cut.pgn.gz", &en[..en.len() - 10]);
    write("en.pgn.gz", &en);
    write("big.pgn.gz", &packed("big.pgn"));
}

/// Runs a command, and checks that its message contains `advice`.
#[track_caller]
fn advised(dir: &Path, command: &[&str], advice: &str) {
    let output = run(dir, command);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(advice), "{command:?}: {said}");
}

/// Splits a command line at spaces. Replaces the word `FEN` by `fen`, which may contain spaces.
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
            "give --variant fischerandom",
            "make-book frc.pgn --min-game 1 --bin a.bin --variant fischerandom",
        ),
        (
            "key --fen FEN",
            "give --variant fischerandom",
            "key --fen FEN --variant fischerandom",
        ),
        (
            "suite-report frc.epd frc.pgn",
            "give --variant fischerandom",
            "suite-report frc.epd frc.pgn --variant fischerandom",
        ),
        (
            "make-book frc.pgn --suite a.epd --plies 1 --min-game 1 --from frc.epd",
            "give --variant fischerandom",
            "make-book frc.pgn --suite a.epd --plies 1 --min-game 1 --from frc.epd --variant fischerandom",
        ),
        (
            "make-book en.pgn --min-game 1 --untagged-variant atomic --bin b.bin",
            "--variant atomic counts these games",
            "make-book en.pgn --min-game 1 --untagged-variant atomic --bin b.bin --variant atomic",
        ),
        (
            "show s.bin --variant atomic",
            "give --variant with a variant of the file",
            "show s.bin --variant normal",
        ),
        // The tag is removed in plain.pgn.
        (
            "make-book wild.pgn --min-game 1 --bin c.bin",
            "\"wild/0\" is unknown: 1 game filtered; if these games are standard chess, remove the tag Variant",
            "make-book plain.pgn --min-game 1 --bin c.bin",
        ),
        (
            "make-book drops.pgn --min-game 1 --bin b2.bin",
            "give --variant crazyhouse --untagged-variant crazyhouse",
            "make-book drops.pgn --min-game 1 --bin b2.bin --variant crazyhouse --untagged-variant crazyhouse",
        ),
        (
            "repertoire build drops.pgn --color white --out b3.pgn --min-game 1",
            "give --variant crazyhouse --untagged-variant crazyhouse",
            "repertoire build drops.pgn --color white --out b3.pgn --min-game 1 --variant crazyhouse --untagged-variant crazyhouse",
        ),
        // Games. The moves of old.pgn and ru.pgn are converted in en.pgn and nf3.pgn.
        (
            "make-book old.pgn --min-game 1 --bin b4.bin",
            "the move is in descriptive notation: convert the game to moves such as e4 and Nf3",
            "make-book en.pgn --min-game 1 --bin b4.bin",
        ),
        (
            "make-book ru.pgn --min-game 1 --bin b5.bin",
            "use K, Q, R, B and N for the pieces",
            "make-book nf3.pgn --min-game 1 --bin b5.bin",
        ),
        (
            "make-book open.pgn --min-game 1 --bin b6.bin",
            "1 game without a result counted as a draw: --unfinished skip leaves these games out",
            "make-book open.pgn en.pgn --min-game 1 --bin b6.bin --unfinished skip",
        ),
        (
            "make-book de.pgn --min-game 1 --bin d.bin",
            "the move is legal with make-book --piece-letters de",
            "make-book --piece-letters de de.pgn --min-game 1 --bin d.bin",
        ),
        (
            "repertoire build de.pgn --color white --out a.pgn",
            "the move is legal with make-book --piece-letters de",
            "make-book --piece-letters de de.pgn --explorer de.idx",
        ),
        (
            "repertoire build de.pgn --color white --out a.pgn",
            "legal with make-book",
            "repertoire build de.idx --color white --out a.pgn",
        ),
        (
            "make-book mixed.pgn --strict --min-game 1 --bin e.bin",
            "without --strict, polybook drops the game",
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
            "--require-date drops this game",
            "make-book en.pgn --since 2020 --min-game 1 --bin h.bin --require-date --allow-empty",
        ),
        (
            "make-book en.pgn --min-elo 2000 --min-game 1 --bin i.bin",
            "--require-elo drops this game",
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
            "choose another file, or replace this file with --force",
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
            "make an explorer's index from the games with make-book --explorer DIR",
            "make-book en.pgn --explorer added.idx",
        ),
        (
            "edit s.bin --set e4=7",
            "no output is given: give a file for the changed book with --out, or change this book with --in-place",
            "edit s.bin --set e4=7 --in-place",
        ),
        // Files of another kind.
        (
            "show en.pgn",
            "polybook make-book makes a book from games",
            "make-book en.pgn --bin k.bin --min-game 1",
        ),
        (
            "dump-book s.obs.db3 --color white",
            "polybook convert makes a book from an OOBS database",
            "convert s.obs.db3 l.bin --min-game 1",
        ),
        (
            "convert s.bin m.bin",
            "with polybook filter or polybook merge-book",
            "filter s.bin --best 1 --out m.bin",
        ),
        (
            "convert s.obs.db3 n",
            "give --format, or use a name that ends in .bin",
            "convert s.obs.db3 n --format csv",
        ),
        // Suites that would be empty.
        (
            "convert s.bin e1.epd --plies 9",
            "no line has 9 half-moves, and the longest line has 1: use fewer half-moves\n",
            "convert s.bin e1.epd --plies 1",
        ),
        (
            "convert s.bin e2.epd --plies 1 --from once.epd",
            "start from positions in which the source contains moves (--from)\n",
            "convert s.bin e2.epd --plies 1 --from start.epd",
        ),
        (
            "convert s.obs.db3 e3.epd --plies 1",
            "start from positions in which the source contains moves (--from), or keep moves with fewer games \
             (--min-game)",
            "convert s.obs.db3 e3.epd --plies 1 --min-game 1",
        ),
        (
            "convert s.obs.db3 e4.epd --plies 9 --min-game 1",
            "use fewer half-moves\n",
            "convert s.obs.db3 e4.epd --plies 2 --min-game 1",
        ),
        (
            "make-book en.pgn --suite e5.epd --plies 1",
            "use a smaller --min-game",
            "make-book en.pgn --suite e5.epd --plies 1 --min-game 1",
        ),
        (
            "make-book en.pgn --suite o --plies 1 --min-game 1",
            "the name must end in .pgn for lines, or in .epd for positions",
            "make-book en.pgn --suite o.pgn --plies 1 --min-game 1",
        ),
        (
            "repertoire build s.bin --color white --by score --out p.pgn",
            "choose the moves with --by weight",
            "repertoire build s.bin --color white --by weight --out p.pgn",
        ),
        (
            "make-book month.counts --explorer q.idx",
            "count the games with --by speed,rating,month",
            "make-book en.pgn --counts q.counts --by speed,rating,month",
        ),
        (
            "make-book month.counts --leveldb r.idx",
            "give the PGN files",
            "make-book en.pgn --leveldb r.idx",
        ),
    ] {
        advised(dir, &words(command, CHESS960), advice);
        ok(dir, &words(followed, CHESS960));
    }
}

/// The server refuses sources that contain results without games. The commands in its messages make sources that
/// it accepts.
#[cfg(feature = "serve")]
#[test]
fn advice_about_sources_of_the_server_works() {
    use crate::common::served::Served;

    let dir = files();
    let dir = dir.path();
    advised(
        dir,
        &["serve", "li.counts"],
        "make an index with polybook make-book li.counts --explorer li.idx, and serve the index",
    );
    ok(dir, "make-book li.counts --explorer li.idx --force");
    advised(
        dir,
        &["serve", "s.obs.db3"],
        "polybook serve games.pgn --book s.obs.db3",
    );
    for (source, path) in [("li.idx", "/lichess"), ("en.pgn --book s.obs.db3", "/book")] {
        let served = Served::start(dir, format!("-q {source}").as_str());
        let reply = served.ask("GET", path, "");
        assert!(reply.text().contains("e2e4"), "{source}: {}", reply.text());
    }
}

/// Requests that the server refuses, with its advice, and requests that follow the advice.
#[cfg(feature = "serve")]
#[test]
fn advice_of_the_server_works() {
    use crate::common::served::Served;

    let dir = files();
    let served = Served::start(dir.path(), "-q duel.pgn li.idx --repertoire mine.pgn:white");
    let own = "X-Polybook: 1\r\n";
    for (request, advice, followed) in [
        (
            "/book.bin?minGame=1&player=Ann&opponent=Bob&source=duel",
            "add the parameter color",
            "/book.bin?minGame=1&player=Ann&opponent=Bob&color=white&source=duel",
        ),
        (
            "/book.bin?minGame=1&player=Ann&result=win&source=duel",
            "add the parameter color",
            "/book.bin?minGame=1&player=Ann&result=win&color=white&source=duel",
        ),
        (
            "/book.bin?minGame=1&event=Cup&source=duel",
            "a book cannot be made with this filter: remove the parameter",
            "/book.bin?minGame=1&source=duel",
        ),
        (
            "/book.bin?minGame=1&speeds=bullet,rapid&source=duel",
            "use adjacent speeds",
            "/book.bin?minGame=1&speeds=bullet,blitz,rapid&source=duel",
        ),
        (
            "/book.bin?minGame=1&speeds=classical&source=duel",
            "only by the speeds from ultraBullet to rapid",
            "/book.bin?minGame=1&speeds=blitz&source=duel",
        ),
        (
            "/book.bin?source=duel",
            "minGame=1 keeps them",
            "/book.bin?minGame=1&source=duel",
        ),
        (
            "/prepare?player=Ann&me=Bob&color=white&edits=e2e4&source=duel",
            "give the repertoire with the parameter repertoire",
            "/prepare?player=Bob&me=Ann&color=black&edits=e2e4&repertoire=mine&source=duel",
        ),
        ("/scores", "use by=rating", "/scores?by=rating"),
        (
            "/player?player=Ann",
            "the parameter color is missing: use white, black or both",
            "/player?player=Ann&color=both&source=duel",
        ),
        (
            "/lichess?opponentRating=2000-&source=duel",
            "add the parameter player",
            "/lichess?opponentRating=2000-&player=Ann&source=duel",
        ),
        (
            "/lichess?result=win&source=duel",
            "add the parameter player",
            "/lichess?result=win&player=Ann&source=duel",
        ),
        (
            "/lichess?color=white&opponent=Bob&source=duel",
            "add the parameter player, or remove color",
            "/lichess?color=white&opponent=Bob&player=Ann&source=duel",
        ),
        (
            "/lichess?player=",
            "is empty: give the name of a player",
            "/lichess?player=Ann&source=duel",
        ),
        (
            "/lichess?since=x",
            "use a date of the form YYYY-MM or YYYY",
            "/lichess?since=2020-01",
        ),
        (
            "/lichess?player=Ann",
            "use an index that make-book --explorer made from games",
            "/lichess?player=Ann&source=duel",
        ),
        (
            "/games?source=li",
            "use an index that make-book --explorer made from games",
            "/games?source=duel",
        ),
        (
            "/suggest",
            "the parameter field is missing: use player, event or opening",
            "/suggest?field=player",
        ),
    ] {
        let refused = served.ask("GET", request, own);
        assert!(refused.status >= 400, "{request}");
        assert!(
            refused.text().contains(advice),
            "{request}: {}",
            refused.text()
        );
        let reply = served.ask("GET", followed, own);
        assert_eq!(reply.status, 200, "{followed}: {}", reply.text());
    }
}

/// Refused options and files: what the message says to write works.
#[test]
fn advice_about_options_and_files_works() {
    let dir = files();
    let dir = dir.path();
    for (command, advice, followed) in [
        (
            "edit s.bin --out e1.bin",
            "use --set, --remove, --remove-position or --script",
            "edit s.bin --out e1.bin --set e4=5",
        ),
        (
            "edit s.bin --out e2.bin --set e4",
            "such as Nf3=100 or Nf3=25%",
            "edit s.bin --out e2.bin --set e4=100",
        ),
        (
            "convert s.obs.db3 w.epd --plies 1 --min-game 1 --win-factor 3",
            "only with --weighted: also give --weighted",
            "convert s.obs.db3 w.epd --plies 1 --min-game 1 --win-factor 3 --weighted",
        ),
        (
            "convert s.bin w2.epd --plies 1 --min-game 1",
            "polybook filter",
            "filter s.bin --best 1 --out w2.bin",
        ),
        (
            "convert s.bin w3.epd --plies 1 --balance 40-60",
            "make the suite from a database",
            "convert s.obs.db3 w3.epd --plies 1 --min-game 1 --balance 0-100",
        ),
        (
            "make-book en.pgn --counts x1.counts --uniform",
            "give this option when you make a book from the counts",
            "make-book none.counts --uniform --bin x1.bin --min-game 1",
        ),
        (
            "make-book none.counts --explorer x2.idx --min-game 2",
            "then make the index from these counts",
            "make-book none.counts --counts x2.counts --min-game 1",
        ),
        (
            "make-book",
            "give the files to read, or - for standard input",
            "make-book en.pgn --min-game 1 --bin x3.bin",
        ),
        (
            "merge-book",
            "give the books to merge",
            "merge-book s.bin s.bin --out x4.bin",
        ),
        ("pgheader", "give the file", "pgheader -s s.bin"),
        (
            "repertoire check mine.pgn --contradictions",
            "give one repertoire with --color, or two with --white and --black",
            "repertoire check mine.pgn --contradictions --color white",
        ),
        (
            "make-book en.pgn --memory 5 --min-game 1 --bin x5.bin",
            "use a number with its unit, such as 512MiB",
            "make-book en.pgn --memory 512MiB --min-game 1 --bin x5.bin",
        ),
        (
            "make-book en.pgn --memory x --min-game 1 --bin x5.bin",
            "use a size such as 64MiB or 4GiB",
            "make-book en.pgn --memory 64MiB --min-game 1 --bin x5.bin",
        ),
        (
            "tree s.bin --min-game 2",
            "for a Polyglot book, use --min-weight",
            "tree s.bin --min-weight 1",
        ),
        (
            "make-book tagged.pgn --since x --min-game 1 --bin x6.bin",
            "use a date of the form YYYY, YYYY.MM or YYYY.MM.DD",
            "make-book tagged.pgn --since 2019.01 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --since 2021 --until 2019 --min-game 1 --bin x6.bin",
            "exchange the two dates",
            "make-book tagged.pgn --since 2019 --until 2021 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --min-elo 2100 --max-elo 1900 --min-game 1 --bin x6.bin",
            "exchange the two ratings",
            "make-book tagged.pgn --min-elo 1900 --max-elo 2100 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --time-control 5 --min-game 1 --bin x6.bin",
            "such as 180-480, 600- or -60",
            "make-book tagged.pgn --time-control 180-480 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --eco X1 --min-game 1 --bin x6.bin",
            "such as B20-B99, B2 for B20-B29, or B",
            "make-book tagged.pgn --eco C2 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --tag x --min-game 1 --bin x6.bin",
            "give a tag and a text, such as Event=blitz",
            "make-book tagged.pgn --tag Event=x --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --piece-letters xx --min-game 1 --bin x6.bin",
            "use en, de, nl, fr, es or it",
            "make-book tagged.pgn --piece-letters es --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --variant xx --min-game 1 --bin x6.bin",
            "this variant is unknown: use standard, ",
            "make-book tagged.pgn --variant standard --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --result xx --min-game 1 --bin x6.bin",
            "use 1-0, 0-1, 1/2-1/2 or *",
            "make-book tagged.pgn --result 1-0 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --white= --min-game 1 --bin x6.bin",
            "give at least one letter",
            "make-book tagged.pgn --white=a --min-game 1 --bin x6.bin",
        ),
        (
            "make-book tagged.pgn --opening xx --min-game 1 --bin x6.bin",
            "such as Najdorf, or ECO codes, such as B20-B99",
            "make-book tagged.pgn --opening C20-C99 --min-game 1 --bin x6.bin",
        ),
        (
            "make-book pgns --min-game 1 --bin x7.bin",
            "give the PGN files in the directory",
            "make-book pgns/en.pgn --min-game 1 --bin x7.bin",
        ),
        (
            "make-book en.pgn --counts x9 --by x",
            "use one or more of speed, rating and month, separated by commas, or none",
            "make-book en.pgn --counts x9 --by speed,month",
        ),
        (
            "verify s.obs.db3 --fix x.bin",
            "--fix applies only to Polyglot books",
            "verify s.bin --fix x10.bin",
        ),
        (
            "merge-book s.bin s.obs.db3 --out m.bin",
            "(polybook convert makes a book from a database)",
            "convert s.obs.db3 s2.bin --min-game 1",
        ),
        (
            "merge-book s.bin s.obs.db3 --out m.bin",
            "merge only books or only databases",
            "merge-book s.bin s2.bin --out m.bin",
        ),
        (
            "make-book en.pgn --min-game 1 --bin x11.bin --obs x11.bin",
            "this name is given for two outputs: choose another file",
            "make-book en.pgn --min-game 1 --bin x11.bin --obs x11.obs.db3",
        ),
        (
            "make-book en.pgn --min-game 1 --bin en.pgn",
            "this file is both an input and an output: choose another output",
            "make-book en.pgn --min-game 1 --bin x12.bin",
        ),
        (
            "make-book en.pgn --min-game 1 --bin full.idx",
            "this is a directory: give the name of a file",
            "make-book en.pgn --min-game 1 --bin x13.bin",
        ),
        (
            "make-book en.pgn --explorer papers --force",
            "choose another directory",
            "make-book en.pgn --explorer x14.idx --force",
        ),
        (
            "make-book en.pgn --counts papers",
            "choose another",
            "make-book en.pgn --counts x15.counts",
        ),
        (
            "make-book month.counts --min-game 1 --bin x16.bin --since 2020",
            "give the PGN files",
            "make-book tagged.pgn --min-game 1 --bin x16.bin --since 2020",
        ),
        (
            "make-book month.counts none.counts --counts x17.counts",
            "or none",
            "make-book month.counts none.counts --counts x17.counts --by none",
        ),
        (
            "make-book month.counts none.counts --counts x17b.counts --by month",
            "give fewer classes",
            "make-book month.counts none.counts --counts x17b.counts --by none",
        ),
        (
            "make-book none.counts --counts x18.counts --by speed",
            "count the games again with --by speed",
            "make-book en.pgn --counts x18.counts --by speed",
        ),
        (
            "make-book month.counts --counts x19.counts --by speed",
            "count the games again with --by speed",
            "make-book en.pgn --counts x19.counts --by speed",
        ),
        (
            "tree plain.idx",
            "make it again with --index-stats",
            "make-book en.pgn --leveldb plain2.idx --index-stats",
        ),
        (
            "tree plain.idx",
            "or make an index with make-book --explorer",
            "tree full.idx",
        ),
        (
            "moves --index plain.idx --speed blitz",
            "make an explorer's index from the games with make-book --explorer",
            "moves --index full.idx --speed blitz",
        ),
        (
            "suite-report s.bin en.pgn",
            "polybook convert makes a suite from a book",
            "convert s.bin x20.epd --plies 1",
        ),
        (
            "moves --index full.idx --clocks 5",
            "write the number after =, as in --clocks=5000",
            "moves --index full.idx --clocks=5",
        ),
        (
            "make-book en.pgn --max-ply -1 --min-game 1 --bin x22.bin",
            "use a whole number, 0 or larger",
            "make-book en.pgn --max-ply 1 --min-game 1 --bin x22.bin",
        ),
        (
            "filter s.bin --out x23.bin --min-share 200",
            "use a number from 0 to 100",
            "filter s.bin --out x23.bin --min-share 100",
        ),
        (
            "convert s.obs.db3 x24.epd --plies 1 --balance x --min-game 1",
            "use a range of",
            "convert s.obs.db3 x24.epd --plies 1 --balance 0-100 --min-game 1",
        ),
        (
            "convert s.obs.db3 x25.epd --plies 1 --balance 60-40 --min-game 1",
            "put the lower number first",
            "convert s.obs.db3 x25.epd --plies 1 --balance 40-100 --min-game 1",
        ),
        (
            "make-book en.pgn --leveldb - --min-game 1",
            "give a directory",
            "make-book en.pgn --leveldb x29.idx",
        ),
        (
            "show full.idx",
            "list its moves with polybook moves --index",
            "moves --index full.idx",
        ),
        (
            "make-book full.idx --bin x30.bin",
            "this is an index: give the PGN files from which the index was made",
            "make-book en.pgn --bin x30.bin --min-game 1",
        ),
        (
            "info-book full.idx",
            "give a book or a database",
            "info-book s.bin",
        ),
        (
            "edit s.bin --out a1.bin --script no_change.txt",
            "write a position, a semicolon and a change, such as 1. e4 c5; set Nf3=100",
            "edit s.bin --out a1.bin --script change.txt",
        ),
        (
            "verify junk.bin --fix a2.bin",
            "use an intact copy, or make the book again",
            "verify s.bin --fix a2.bin && make-book en.pgn --min-game 1 --bin a2b.bin",
        ),
        (
            "merge-book bad.bin s.bin --out a3.bin",
            "polybook verify --fix",
            "verify bad.bin --fix a3b.bin && merge-book a3b.bin s.bin --out a3.bin",
        ),
        (
            "edit - --in-place --set e4=1",
            "give a file for the changed book with --out",
            "edit s.bin --out a4.bin --set e4=1",
        ),
        (
            "tree s.bin --out a5.pgn.gz",
            "choose a name without .gz",
            "tree s.bin --out a5.pgn",
        ),
        (
            "tree s.bin --json --out -",
            "give a file for the output",
            "tree s.bin --json --out a6.pgn",
        ),
        (
            "prepare --index duel.idx --player Ann --opponent Bob",
            "give --color white or --color black",
            "prepare --index duel.idx --player Ann --opponent Bob --color white",
        ),
        (
            "prepare --index duel.idx --player Ann --color white",
            "give the opponent's name with --opponent and your name with --player",
            "prepare --index duel.idx --player Ann --opponent Bob --color white",
        ),
        (
            "prepare --index duel.idx --player Ann --opponent Bob --color white --lines 0 --out a7.pgn",
            "remove one of the two options",
            "prepare --index duel.idx --player Ann --opponent Bob --color white --lines 0 && prepare --index duel.idx --player Ann --opponent Bob --color white --out a7.pgn",
        ),
        (
            "prepare --index duel.idx --player Ann --opponent Bob --color white --out -",
            "give a file with --out",
            "prepare --index duel.idx --player Ann --opponent Bob --color white --out a8.pgn",
        ),
        (
            "repertoire build duel.pgn --color white --player Ann --white Bob --out a9.pgn --min-game 1",
            "give all names with the same option",
            "repertoire build duel.pgn --color white --player Ann --player Bob --out a9.pgn --min-game 1",
        ),
        (
            "repertoire new duel.pgn --reference duel.pgn",
            "--earlier compares each game only with earlier games",
            "repertoire new duel.pgn --reference duel.pgn --earlier",
        ),
        (
            "convert s.bin a10.epd --from none.epd --plies 1",
            "write a FEN or an EPD on each line",
            "convert s.bin a10.epd --from start.epd --plies 1",
        ),
        (
            "make-book en.pgn --limit 3 --bin a11.bin",
            "--min-game drops rare moves from a book",
            "make-book en.pgn --min-game 1 --bin a11.bin",
        ),
        (
            "make-book en.pgn --plies 3 --bin a11.bin",
            "the lines of a book end at --max-ply",
            "make-book en.pgn --min-game 1 --max-ply 3 --bin a11.bin",
        ),
        (
            "verify twice.epd",
            "remove these entries",
            "verify once.epd",
        ),
        (
            "serve li.idx --unfinished skip",
            "make the counts again with make-book --unfinished skip",
            "make-book en.pgn --counts a12.counts --by speed,rating,month --unfinished skip && make-book a12.counts --explorer a12.idx && moves --index a12.idx",
        ),
        (
            "moves --index full.idx --player A --opponent-rating x",
            "such as 2000-2199, 2000- or -2199",
            "moves --index full.idx --player A --opponent-rating -2199",
        ),
        (
            "moves --index li.idx --player A",
            "contains only counts, but games are needed for player: use an index",
            "moves --index full.idx --player A",
        ),
        (
            "moves --index big.idx --clocks",
            "unpack the file and make the index again",
            "make-book big.pgn --explorer big2.idx && moves --index big2.idx --clocks",
        ),
        (
            "merge-index full.idx plain.idx --out a13.idx",
            "make a new index that is like the other one",
            "merge-index full.idx duel.idx --out a13.idx",
        ),
        (
            "merge-index li.idx full.idx --out a14.idx",
            "add up the counts with make-book, and make an index from the sum",
            "make-book li.counts li.counts --explorer a14.idx",
        ),
        (
            "make-book a.7z --bin a15.bin",
            "unpack the archive and give the files in it",
            "make-book en.pgn --min-game 1 --bin a15.bin",
        ),
        (
            "make-book none.counts atomic.counts --counts a16.counts",
            "add up only counts of one variant",
            "make-book none.counts none.counts --counts a16.counts",
        ),
        (
            "make-book en.pgn atomic.pgn --variant auto --min-game 1 --obs a17.obs.db3",
            "choose one",
            "make-book en.pgn atomic.pgn --variant standard --min-game 1 --obs a17.obs.db3",
        ),
        (
            "merge-book s.obs.db3 atomic.obs.db3 --out a18.obs.db3",
            "merge only databases of one variant",
            "merge-book s.obs.db3 s.obs.db3 --out a18.obs.db3",
        ),
        (
            "make-book cut.pgn.gz --min-game 1 --bin a19.bin",
            "unpack or download the file again",
            "make-book en.pgn.gz --min-game 1 --bin a19.bin",
        ),
        (
            "repertoire check mine.pgn notes.txt --color white",
            "give a PGN file",
            "repertoire check mine.pgn en.pgn --color white",
        ),
        (
            "repertoire gaps mine.pgn --color white --against en.pgn --white Zed",
            "change the filters, or choose another source",
            "repertoire gaps mine.pgn --color white --against en.pgn --white A && repertoire gaps mine.pgn --color white --against duel.pgn --white Ann",
        ),
        (
            "make-book mate.pgn --suite a20.epd --plies 4 --min-game 1",
            "use fewer half-moves",
            "make-book mate.pgn --suite a20.epd --plies 3 --min-game 1",
        ),
        (
            "prepare --index li.idx --player A --opponent B --color white",
            "use an index that make-book --explorer made from games",
            "prepare --index duel.idx --player Ann --opponent Bob --color white",
        ),
        (
            "openings --index li.idx --player A",
            "use an index that make-book --explorer made from games",
            "openings --index full.idx --player A",
        ),
        (
            "games --index li.idx",
            "use an index that make-book --explorer made from games",
            "games --index full.idx",
        ),
        (
            "moves --index li.idx --unfinished skip",
            "use an index that make-book --explorer made from games",
            "moves --index full.idx --unfinished skip",
        ),
    ] {
        advised(dir, &words(command, ""), advice);
        for followed in followed.split(" && ") {
            ok(dir, &words(followed, ""));
        }
    }
}

/// Corrects the mistakes in a FEN as the messages advise, which leads to a position.
#[test]
fn advice_about_a_fen_leads_to_a_position() {
    let dir = temp();
    for (fen, advice, followed) in [
        (
            "4k3/8/8/8/8/8/8/4K2R w K - id \"a\"",
            "add a semicolon after the position",
            "4k3/8/8/8/8/8/8/4K2R w K - id \"a\";",
        ),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1g1",
            "the text \"moves e1g1\" follows the position: remove this text",
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
        ),
    ] {
        advised(dir.path(), &["key", "--fen", fen], advice);
        ok(dir.path(), &["key", "--fen", followed]);
    }
    // A semicolon would not correct these texts.
    for rest in ["1.e4", "1.e4;", "\"x"] {
        let fen = format!("4k3/8/8/8/8/8/8/4K2R w K - {rest}");
        let output = run(dir.path(), &["key", "--fen", &fen]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("remove this text"), "{said}");
        assert!(!said.contains("semicolon"), "{said}");
    }
}

/// Messages do not suggest the option for another variant if a file contains only standard chess, as all files of
/// evaluations do.
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

/// Compressed books can be unpacked as the messages advise, whatever their names end in.
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
            &format!("unpack the file, for instance with {name} -dc"),
        );
        let mut unpacking = Command::new(name);
        let unpacked = unpacking.arg("-dc").arg(dir.join("packed.bin")).output();
        let unpacked = unpacked.unwrap();
        assert_eq!(unpacked.stdout, book, "{name}");
        tried += 1;
    }
    assert!(tried > 0, "no program that compresses");
}

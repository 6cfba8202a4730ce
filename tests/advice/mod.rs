//! Follows the advice of messages: a command fails or warns, and the commands that its message suggests must
//! work.

#[cfg(feature = "parquet")]
mod library;
mod rows;

use std::{fs, io::Write, path::Path};

use crate::common::{
    fed, ok, run, sample, temp,
    transcript::{self, Said, words},
};

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

const RACING_KINGS: &str = "8/8/8/8/8/8/krbnNBRK/qrbnNBRQ w - - 0 1";

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
        ("rest.pgn", "[White \"A\"]\n\n12. Nf3 d5 1-0\n".to_owned()),
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
        ("last.epd", "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq -\n".to_owned()),
        ("once.epd", format!("{ENDGAME}\n")),
        ("twice.epd", format!("{ENDGAME}\n{ENDGAME}\n")),
        ("no_change.txt", "1. e4\n".to_owned()),
        ("change.txt", "; set e4=100\n".to_owned()),
        ("mate.pgn", "1. f3 e5 2. g4 Qh4# 0-1\n".to_owned()),
        ("atomic.pgn", "[Variant \"Atomic\"]\n\n1. e4 e5 1-0\n".to_owned()),
        ("duel.pgn", DUEL.to_owned()),
        ("ones.pgn", DUEL.replace("0-1", "1-0")),
        ("copies.pgn", format!("{DUEL}\n{DUEL}")),
        ("big.pgn", CLOCKED.repeat(20_000)),
        ("two.pgn", "[White \"A\"]\n\n1. e4 e5 1-0\n\n[White \"B\"]\n\n1. d4 d5 1-0\n".to_owned()),
        ("dup.pgn", "1. e4 e5 1-0\n\n1. e4 e5 1-0\n\n1. d4 d5 1-0\n".to_owned()),
        ("frc2.pgn", format!("[FEN \"{ENDGAME} 0 1\"]\n\n1. O-O Kd7 1-0\n")),
        (
            "site.pgn",
            "[White \"A\"]\n[Site \"https://lichess.org/abcdefgh\"]\n\n1. e4 e5 1-0\n".to_owned(),
        ),
        ("eval.pgn", "1. e4 {[%eval 0.3]} e5 {[%eval 0.2]} 1-0\n".to_owned()),
        (
            "losses.pgn",
            "1. f3 {[%eval -1.0]} *\n\n1. e4 {[%eval 0.3]} e5 {[%eval 0.3]} *\n".to_owned(),
        ),
        ("loss.pgn", "1. f3 *\n".to_owned()),
        ("varied.pgn", "1. e4 e5 (1... c5) 2. Nf3 *\n".to_owned()),
        ("faulty.pgn", "1. e4 e5 (1... c5) 2. Ke3 *\n".to_owned()),
        ("lines.pgn", "1. e4 c5 2. f4 *\n\n1. e4 c5 2. Nf3 *\n\n1. e4 c5 2. Nc3 *\n\n1. e4 c5 2. c3 *\n".to_owned()),
        ("lines.txt", "1. e4 c5; remove f4; set Nf3=70%; set Nc3=20%\n".to_owned()),
        ("badtag.pgn", "[Result \"won\"]\n\n1. e4 e5 1-0\n".to_owned()),
        ("rk.pgn", format!("[Variant \"Racing Kings\"]\n[FEN \"{RACING_KINGS}\"]\n\n1. Kh3 Ka3 1-0\n")),
        ("zh.pgn", "[Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 1-0\n".to_owned()),
        ("document.rtf", "{\\rtf1\\ansi 1. e4 e5 1-0}\n".to_owned()),
        ("page.html", "<!DOCTYPE html>\n<html></html>\n".to_owned()),
        ("bad.txt", "e4; put Nf3=3\n".to_owned()),
        (
            "both.pgn",
            "[White \"Ann X\"]\n[Black \"Bob Ann\"]\n\n1. e4 e5 1-0\n".to_owned(),
        ),
        ("long.txt", "; set e4=1\n".repeat(20_000)),
        ("text.epd", format!("{ENDGAME} 0 1 {}\n", "x".repeat(1 << 16))),
        ("long.epd", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR\n".repeat(20_000)),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    fs::copy(sample("famous.pgn"), at.join("sample.pgn")).unwrap();
    for made in [
        "make-book en.pgn --min-game 1 --bin s.bin --obs s.obs.db3 --leveldb plain.idx",
        "make-book en.pgn --explorer full.idx",
        "make-book duel.pgn --explorer duel.idx",
        "make-book en.pgn --counts li.counts --by speed,rating,month",
        "make-book li.counts --explorer li.idx",
        "make-book atomic.pgn --variant atomic --min-game 1 --obs atomic.obs.db3 --counts atomic.counts",
        "make-book zh.pgn --variant crazyhouse --counts zh.counts",
        "make-book en.pgn --counts month.counts --by month",
        "make-book en.pgn --counts none.counts",
        "make-book two.pgn --min-game 1 --bin two.bin",
        "make-book duel.pgn --min-game 1 --uniform --no-header --bin duel.bin",
        "make-book dup.pgn --min-game 2 --counts few.counts",
        "make-book dup.pgn --min-game 2 --obs few.obs.db3",
        "make-book sample.pgn --min-game 1 --bin sample.bin --counts classes.counts --by speed,rating,month",
        "make-book site.pgn --explorer site.idx",
        "make-book en.pgn atomic.pgn --variant auto --leveldb mix.idx",
        "make-book en.pgn atomic.pgn --variant auto --explorer mixfull.idx",
        "make-book en.pgn --leveldb stats.idx --index-stats",
        "make-book en.pgn --explorer short.idx --max-ply 1",
        "evals eval.pgn --out e.evals",
        "evals eval.pgn --out e.parquet",
        "evals losses.pgn --out loss.evals",
    ] {
        ok(at, made);
    }
    damaged_and_packed_files(at);
    ok(at, "make-book big.pgn.gz --explorer big.idx");
    for directory in ["papers", "pgns", "empty"] {
        fs::create_dir(at.join(directory)).unwrap();
    }
    fs::copy(at.join("notes.txt"), at.join("papers/notes.txt")).unwrap();
    fs::copy(at.join("en.pgn"), at.join("pgns/en.pgn")).unwrap();
    dir
}

/// Writes damaged books, files of other formats and versions, archives, and PGN files compressed with gzip and zstd.
fn damaged_and_packed_files(dir: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(dir.join(name), bytes).unwrap();
    let mut book = fs::read(dir.join("s.bin")).unwrap();
    let weight = book.len() - 5;
    book[weight] ^= 1;
    write("bad.bin", &book);
    write("junk.bin", &(1..=160).collect::<Vec<u8>>().repeat(4));
    write("cut.bin", &book[..book.len() - 5]);
    let start = 0x463b_9618_1691_fc9c_u64.to_be_bytes();
    let moves =
        (1..=300_u16).map(|mv| [&start[..], &mv.to_be_bytes(), &[0, 1, 0, 0, 0, 0]].concat());
    write("many.bin", &moves.collect::<Vec<_>>().concat());
    let records = fs::read(dir.join("duel.bin")).unwrap();
    let records: Vec<&[u8]> = records.chunks(16).rev().collect();
    write("unsorted.bin", &records.concat());
    write("old.bin", records[0]);
    write(
        "blobs.pgn",
        &[&(1..255).collect::<Vec<u8>>()[..], &[0; 600]].concat(),
    );
    let utf_16 = "\u{feff}1. e4 e5 1-0\n".encode_utf16();
    write(
        "utf16.pgn",
        &utf_16.flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    );
    write("cut.zip", &[&b"PK\x03\x04"[..], &[0; 60]].concat());
    write("none.zip", &[&b"PK\x05\x06"[..], &[0; 18]].concat());
    write(
        "games.rar",
        &[&b"Rar!\x1a\x07\x01\0"[..], &[0; 40]].concat(),
    );
    write("base.si4", &[&b"Scid.si\0"[..], &[0; 60]].concat());
    let mut evals = fs::read(dir.join("e.evals")).unwrap();
    evals[50] ^= 1;
    write("bad.evals", &evals);
    evals[50] ^= 1;
    write("cut.evals", &evals[..evals.len() - 9]);
    write(
        "old.evals",
        &[&b"\0\0\0\0\0\0\0\0polybook evals 1"[..], &evals[24..]].concat(),
    );
    let zip = |name: &str, flags: u8| {
        let mut packer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for member in ["a.pgn", name] {
            let options = zip::write::SimpleFileOptions::default();
            packer.start_file(member, options).unwrap();
            packer.write_all(b"1. e4 e5 1-0\n").unwrap();
        }
        let mut bytes = packer.finish().unwrap().into_inner();
        for at in 0..bytes.len() - 10 {
            // The name of the second member becomes that of the first, and the members get the flags.
            match &bytes[at..at + 4] {
                b"PK\x03\x04" => bytes[at + 6] |= flags,
                b"PK\x01\x02" => bytes[at + 8] |= flags,
                b"same" => bytes[at..at + 5].copy_from_slice(b"a.pgn"),
                _ => {}
            }
        }
        bytes
    };
    write("locked.zip", &zip("b.pgn", 1));
    write("names.zip", &zip("same!", 0));
    write("good.zip", &zip("b.pgn", 0));
    write("wide.pgn.zst", &zstd_frame(27));
    write("late.pgn.zst", &[zstd_frame(20), zstd_frame(27)].concat());
    write("a.7z", &[&b"7z\xbc\xaf\x27\x1c"[..], &[0; 40]].concat());
    let packed = |name: &str| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&fs::read(dir.join(name)).unwrap()).unwrap();
        gz.finish().unwrap()
    };
    let en = packed("en.pgn");
    write("cut.pgn.gz", &en[..en.len() - 10]);
    write("en.pgn.gz", &en);
    write("twice.pgn.gz", &packed("en.pgn.gz"));
    write("big.pgn.gz", &packed("big.pgn"));
}

/// Returns a zstd frame that contains a game as it is, and states a window of `1 << log` bytes.
fn zstd_frame(log: u8) -> Vec<u8> {
    let game = b"1. e4 e5 1-0\n\n";
    let block = (game.len() as u32) << 3 | 1;
    [
        &b"\x28\xb5\x2f\xfd\0"[..],
        &[(log - 10) << 3],
        &block.to_le_bytes()[..3],
        game,
    ]
    .concat()
}

/// Runs a command of polybook or another step in `dir`: `cp`, `mv`, `rm`, `cut FILE LENGTH`, or `sql FILE STATEMENTS`.
/// Double quotes in statements stand for single ones.
fn take(dir: &Path, step: &str) -> Said {
    let words = words(step);
    let path = |at: usize| dir.join(words[at]);
    match words[0] {
        "cp" if path(1).is_dir() => {
            fs::create_dir(path(2)).unwrap();
            for entry in fs::read_dir(path(1)).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), path(2).join(entry.file_name())).unwrap();
            }
        }
        "cp" => drop(fs::copy(path(1), path(2)).unwrap()),
        "mv" => fs::rename(path(1), path(2)).unwrap(),
        "rm" => fs::remove_file(path(1)).unwrap(),
        "cut" => {
            let bytes = fs::read(path(1)).unwrap();
            fs::write(path(1), &bytes[..words[2].parse().unwrap()]).unwrap();
        }
        "sql" => {
            let statements = words[2].replace('"', "'");
            let db = rusqlite::Connection::open(path(1)).unwrap();
            db.execute_batch(&statements).unwrap();
        }
        _ => return Said::by_command(dir, step),
    }
    Said::nothing()
}

/// Takes a step that must succeed.
#[track_caller]
fn take_well(dir: &Path, step: &str) {
    let Said { status, messages } = take(dir, step);
    assert_eq!(status, 0, "{step}: {messages}");
}

/// Runs a command, and checks that its message contains `advice`.
#[track_caller]
fn advised(dir: &Path, command: &str, advice: &str) {
    let Said { messages, .. } = Said::by_command(dir, command);
    assert!(messages.contains(advice), "{command}: {messages}");
}

/// Causes each message of a [transcript](crate::common::transcript), and follows its advice.
#[track_caller]
fn follow(name: &str) {
    let dir = files();
    transcript::check(name, |line| {
        let mut steps: Vec<&str> = line.split(" && ").collect();
        let last = steps.pop().unwrap();
        steps.iter().for_each(|step| take_well(dir.path(), step));
        take(dir.path(), last)
    });
}

#[test]
fn advice_about_variants_and_games_works() {
    follow("transcripts/advice-games.console");
}

#[test]
fn advice_about_files_and_suites_works() {
    follow("transcripts/advice-files.console");
}

#[test]
fn advice_about_options_works() {
    follow("transcripts/advice-options.console");
}

#[test]
fn advice_about_books_works() {
    follow("transcripts/advice-books.console");
}

#[cfg(feature = "serve")]
#[test]
fn advice_about_names_works() {
    follow("transcripts/advice-names.console");
}

#[test]
fn advice_about_repertoires_works() {
    follow("transcripts/advice-repertoires.console");
}

#[test]
fn advice_about_indexes_and_counts_works() {
    follow("transcripts/advice-counts.console");
}

#[test]
fn advice_about_inputs_works() {
    follow("transcripts/advice-inputs.console");
}

#[test]
fn advice_about_databases_and_memory_works() {
    follow("transcripts/advice-databases.console");
}

/// Damages each file of each kind of index in several ways. If reading the index fails, the message says to make the
/// index again, which works, or that the directory is no index.
#[test]
fn damaged_indexes_can_be_made_again_as_advised() {
    let dir = files();
    let dir = dir.path();
    let mut advised = 0;
    for (index, make) in [
        ("full.idx", "make-book en.pgn --explorer"),
        ("li.idx", "make-book li.counts --explorer"),
        ("stats.idx", "make-book en.pgn --index-stats --leveldb"),
    ] {
        for file in fs::read_dir(dir.join(index)).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            for damage in ["missing", "half", "zeros", "changed"] {
                let case = format!("{index}/{name} {damage}");
                let copy = format!("{index}-{name}-{damage}");
                take_well(dir, &format!("cp {index} {copy}"));
                let file = dir.join(&copy).join(&name);
                let mut bytes = fs::read(&file).unwrap();
                match damage {
                    "half" => bytes.truncate(bytes.len() / 2),
                    "zeros" => bytes.fill(0),
                    _ => {
                        let middle = bytes.len() / 2;
                        if let Some(byte) = bytes.get_mut(middle) {
                            *byte ^= 1;
                        }
                    }
                }
                fs::write(&file, bytes).unwrap();
                if damage == "missing" {
                    fs::remove_file(&file).unwrap();
                }
                for command in ["show", "verify"] {
                    let said = Said::by_command(dir, &format!("{command} {copy}"));
                    let (succeeded, text) = (said.status == 0, said.messages);
                    let is_no_index = text.contains("give an index that make-book made");
                    let is_damaged = text.contains("make the index again");
                    assert!(succeeded || is_no_index || is_damaged, "{case}: {text}");
                    advised += u32::from(is_damaged);
                }
                let said = Said::by_command(dir, &format!("{make} {copy} --force"));
                let (made, text) = (said.status == 0, said.messages);
                if text.contains("remove the directory, or choose another one") {
                    fs::remove_dir_all(dir.join(&copy)).unwrap();
                    ok(dir, &*format!("{make} {copy}"));
                } else {
                    let choose_another = text.contains("choose another directory");
                    assert!(made || choose_another, "{case}: {text}");
                    ok(dir, &*format!("{make} {copy}-new"));
                }
            }
        }
    }
    assert!(advised > 50, "{advised}");
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
        "serve li.counts",
        "make an index with polybook make-book --explorer li.idx li.counts, and serve the index",
    );
    ok(dir, "make-book li.counts --explorer li.idx --force");
    advised(
        dir,
        "serve s.obs.db3",
        "polybook serve games.pgn --book s.obs.db3",
    );
    advised(dir, "serve s.bin", "polybook serve games.pgn --book s.bin");
    for (source, path) in [
        ("li.idx", "/lichess"),
        ("en.pgn --book s.obs.db3", "/book"),
        ("en.pgn --book s.bin", "/book"),
    ] {
        let served = Served::start(dir, format!("-q {source}").as_str());
        let reply = served.ask("GET", path, "");
        assert!(reply.text().contains("e2e4"), "{source}: {}", reply.text());
    }
}

/// Requests that the server refuses, and requests that follow its advice.
#[cfg(feature = "serve")]
#[test]
fn advice_of_the_server_works() {
    use crate::common::served::Served;

    let dir = files();
    let served = Served::start(dir.path(), "-q duel.pgn li.idx --repertoire mine.pgn:white");
    let own = "X-Polybook: 1\r\n";
    transcript::check("transcripts/advice-server.console", |request| {
        let reply = served.ask("GET", request, own);
        match reply.status {
            200 => Said::nothing(),
            status => Said {
                status: status.into(),
                messages: reply.text(),
            },
        }
    });
    // The server gives this advice after a minute. No test causes these messages.
    for (advice, path) in [
        (
            "request a larger minGame or a smaller depth, or use polybook make-book",
            "/book.bin?minGame=2&depth=3",
        ),
        (
            "request a smaller depth, or use polybook repertoire",
            "/repertoire.pgn?side=white&depth=3",
        ),
    ] {
        let reply = served.ask("GET", &format!("{path}&source=duel"), own);
        assert_eq!(reply.status, 200, "{advice}: {}", reply.text());
    }
    let many = ["e2e4"; 601].join(",");
    let refused = served.ask("GET", &format!("/lichess?play={many}"), own);
    assert!(
        refused.text().contains("send fewer moves"),
        "{}",
        refused.text()
    );
    assert_eq!(served.ask("GET", "/lichess?play=e2e4", own).status, 200);
    // The advice is about the method or the headers. An answer to HEAD has no text.
    for (method, path, headers, advice, followed) in [
        (
            "HEAD",
            "/book.bin?minGame=1&source=duel",
            own,
            "",
            ("GET", own),
        ),
        (
            "POST",
            "/lichess",
            own,
            "see the header Allow of this answer",
            ("HEAD", own),
        ),
        (
            "GET",
            "/about",
            "Accept-Encoding: br, identity;q=0\r\n",
            "allow identity or gzip",
            ("GET", "Accept-Encoding: gzip\r\n"),
        ),
    ] {
        let refused = served.ask(method, path, headers);
        assert!(refused.status >= 400, "{method} {path}: {}", refused.status);
        assert!(refused.text().contains(advice), "{}", refused.text());
        let reply = served.ask(followed.0, path, followed.1);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
}

/// The server refuses to start, and starts as its message says.
#[cfg(feature = "serve")]
#[test]
fn advice_about_the_start_of_the_server_works() {
    use crate::common::served::Served;

    let dir = files();
    let dir = dir.path();
    fs::create_dir(dir.join("copy")).unwrap();
    fs::copy(dir.join("en.pgn"), dir.join("copy/duel.pgn")).unwrap();
    fs::copy(dir.join("mine.pgn"), dir.join("copy/mine.v2.pgn")).unwrap();
    for (refused, advice, steps, served) in [
        (
            "en.pgn --listen 8040",
            "use ADDRESS:PORT, such as 127.0.0.1:8040",
            "",
            "en.pgn",
        ),
        (
            "en.pgn --repertoire mine.pgn",
            "give the side after the file, as in my.pgn:white",
            "",
            "en.pgn --repertoire mine.pgn:white",
        ),
        (
            "en.pgn --allow-host https://chess.example/",
            "use a host name without scheme, port and path: --allow-host chess.example",
            "",
            "en.pgn --allow-host chess.example",
        ),
        (
            "en.pgn --allow-origin chess.example",
            "use a scheme, a host and perhaps a port, such as https://chess.example",
            "",
            "en.pgn --allow-origin https://chess.example",
        ),
        (
            "plain.idx",
            "make an explorer's index with polybook make-book --explorer",
            "make-book -q en.pgn --explorer added.idx",
            "added.idx",
        ),
        (
            "duel.pgn copy/duel.pgn",
            "two sources have the name \"duel\": rename one of the files",
            "mv copy/duel.pgn copy/other.pgn",
            "duel.pgn copy/other.pgn",
        ),
        (
            "en.pgn --repertoire mine.pgn:white --repertoire copy/mine.v2.pgn:white",
            "two repertoires for white have the name \"mine\": rename mine.pgn or copy/mine.v2.pgn",
            "mv copy/mine.v2.pgn copy/mine2.pgn",
            "en.pgn --repertoire mine.pgn:white --repertoire copy/mine2.pgn:white --repertoire copy/mine2.pgn:black",
        ),
        (
            "en.pgn --repertoire mine.pgn:white --repertoire ./mine.pgn:white",
            "the repertoire ./mine.pgn for white is given twice: leave one out",
            "",
            "en.pgn --repertoire mine.pgn:white",
        ),
        (
            "pgns",
            "give the PGN files in the directory, such as pgns/*.pgn",
            "",
            "pgns/en.pgn",
        ),
    ] {
        advised(dir, &format!("serve {refused}"), advice);
        for step in steps.split(" && ").filter(|step| !step.is_empty()) {
            take_well(dir, step);
        }
        Served::start(dir, format!("-q {served}").as_str());
    }
    let serve_with = |option: &str| Served::start(dir, format!("-q en.pgn{option}").as_str());
    let request = b"GET /about HTTP/1.1\r\nHost: chess.example:81\r\nConnection: close\r\n\r\n";
    let refused = serve_with("").send(request).unwrap();
    let advice = "start the server with --allow-host chess.example";
    assert!(refused.text().contains(advice), "{}", refused.text());
    let served = serve_with(" --allow-host chess.example");
    assert_eq!(served.send(request).unwrap().status, 200);
    let page = |origin: &str| format!("Sec-Fetch-Site: cross-site\r\nOrigin: {origin}\r\n");
    let old_page = "Origin: http://a.example\r\n".to_owned();
    let program = "Host: chess.example\r\n".to_owned();
    let file = page("null");
    for (option, headers, advice, new_option, new_headers) in [
        (
            "",
            page("http://a.example"),
            "this server does not answer pages of other sites: start the server with --allow-origin http://a.example",
            " --allow-origin http://a.example",
            page("http://a.example"),
        ),
        (
            "",
            old_page.clone(),
            "start the server with --allow-origin http://a.example",
            " --allow-origin http://a.example",
            old_page,
        ),
        (
            "",
            file.clone(),
            "serve the page over HTTP, or start the server with --allow-origin '*'",
            " --allow-origin *",
            file,
        ),
        (
            " --allow-origin http://a.example",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n".to_owned(),
            "cannot link to this address or embed it: load it with fetch and not with mode no-cors, and start the server with --allow-origin",
            " --allow-origin http://a.example",
            page("http://a.example"),
        ),
        (
            " --allow-host chess.example",
            program.clone(),
            "send the header \"X-Polybook: 1\"",
            " --allow-host chess.example",
            program + "X-Polybook: 1\r\n",
        ),
    ] {
        let ask = |option: &str, headers: &str| {
            let host = if headers.contains("Host: ") { "" } else { "Host: localhost\r\n" };
            let request = format!("GET /book.bin?minGame=1 HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n");
            serve_with(option).send(request.as_bytes()).unwrap()
        };
        let refused = ask(option, &headers);
        assert_eq!(refused.status, 403, "{headers}");
        assert!(refused.text().contains(advice), "{}", refused.text());
        assert_eq!(ask(new_option, &new_headers).status, 200, "{new_headers}");
    }
    let served = serve_with(" --book-games 0");
    let refused = served.ask("GET", "/book.bin?minGame=1", "X-Polybook: 1\r\n");
    let advice = "start the server without --book-games 0";
    assert!(refused.text().contains(advice), "{}", refused.text());
    let first = Served::start(dir, "-q duel.pgn");
    let address = first.url();
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    advised(
        dir,
        &format!("serve duel.pgn --listen {address}"),
        &format!(
            "open http://{address}/ if that program is polybook, or use a free port with --listen 127.0.0.1:0"
        ),
    );
    assert_eq!(first.get("/").status, 200);
    Served::start(dir, "-q duel.pgn --listen 127.0.0.1:0");
    ok(
        dir,
        "make-book -q tagged.pgn --min-elo 100 --explorer chosen.idx",
    );
    let served = Served::start(dir, "-q chosen.idx");
    let refused = served.ask("GET", "/book.bin?minGame=1", "X-Polybook: 1\r\n");
    let advice =
        "chosen with --min-elo 100: make the book with polybook make-book and these options";
    assert!(refused.text().contains(advice), "{}", refused.text());
    ok(
        dir,
        "make-book -q tagged.pgn --min-elo 100 --min-game 1 --bin chosen.bin",
    );
}

/// A browser that cannot be started is replaced by the user's, with the address in the message.
#[cfg(all(feature = "serve", target_os = "linux"))]
#[test]
fn advice_about_a_browser_works() {
    use crate::common::{served::Served, until};

    let dir = files();
    let log = dir.path().join("log");
    let file = fs::File::create(&log).unwrap();
    let served = Served::start_with(dir.path(), "en.pgn --open", |command| {
        command.env("PATH", "").stderr(file);
    });
    let advice = format!("open {} yourself", served.url());
    until("the advice is printed", || {
        fs::read_to_string(&log).unwrap().contains(&advice)
    });
    assert_eq!(served.get("/").status, 200);
    let file = fs::File::create(&log).unwrap();
    let served = Served::start_with(dir.path(), "en.pgn", |command| {
        command.stderr(file);
    });
    let advice = "open this address in the browser";
    until("the address is printed", || {
        fs::read_to_string(&log).unwrap().contains(advice)
    });
    assert_eq!(served.get("/").status, 200);
}

/// The memory for unpacking standard input depends on `--memory`.
#[test]
fn advice_about_memory_for_a_pipe_works() {
    let dir = files();
    for (name, advice) in [
        (
            "wide.pgn.zst",
            "use at least --memory 1024MiB, or unpack the file first",
        ),
        (
            "late.pgn.zst",
            "use a larger --memory, or unpack the file first",
        ),
    ] {
        let games = fs::read(dir.path().join(name)).unwrap();
        let made = |memory| {
            let command = format!("make-book - --min-game 1 --bin {name}.bin --memory {memory}");
            fed(dir.path(), &*command, &games)
        };
        let refused = String::from_utf8(made("64MiB").stderr).unwrap();
        assert!(refused.contains(advice), "{refused}");
        assert!(made("1024MiB").status.success());
    }
}

/// Games from standard input cannot be printed; those of a file can.
#[test]
fn advice_about_games_from_standard_input_works() {
    let dir = files();
    let dir = dir.path();
    let games = fs::read(dir.join("en.pgn")).unwrap();
    let made = fed(dir, "make-book - --explorer stream.idx", &games);
    assert!(made.status.success(), "{made:?}");
    let game = "games stream.idx --pgn --id 0";
    advised(dir, game, "make the index from a file");
    ok(dir, "make-book en.pgn --explorer file.idx");
    ok(dir, "games file.idx --pgn --id 0");
    #[cfg(feature = "serve")]
    {
        let streamed = fed(dir, "show -", &games);
        let text = String::from_utf8(streamed.stderr).unwrap();
        let advice = "save the games as a file, or make an index with make-book";
        assert!(text.contains(advice), "{text}");
    }
}

#[test]
fn advice_about_the_number_of_names_works() {
    let dir = files();
    let options = |names| " --player A".repeat(names);
    let command = |names| format!("show full.idx{}", options(names));
    advised(
        dir.path(),
        &command(21),
        "21 names are too many: give at most 20",
    );
    ok(dir.path(), &command(20));
}

#[test]
fn advice_about_commands_of_uci_works() {
    let dir = files();
    let commands = "position e4\nposition startpos moves e2e4\nsetoption MultiPV\nsetoption name MultiPV value 2\n";
    let output = fed(dir.path(), "engine s.bin", commands.as_bytes());
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "info string position: the command position is malformed: use position startpos or position fen FEN",
            "info string the command setoption is malformed: use setoption name NAME value VALUE",
        ]
    );
}

/// Returns the path of a file in the repository.
fn root(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Returns the source code of polybook and of its Python package without comments and unit tests. A string literal that
/// spans several lines is joined into one line.
fn code() -> String {
    let mut directories = ["src", "python/src"].map(root).to_vec();
    let mut code = String::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = fs::read_to_string(path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                code += &joined(&without_comments(text));
            }
        }
    }
    code
}

/// Removes comment lines, and the spaces with which other lines begin.
fn without_comments(text: &str) -> String {
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with("# "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Joins each line that ends in a backslash with the next line, without the spaces with which that line begins.
fn joined(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.trim_start())
}

/// Returns the text of the function `name` in the source code `text`, in Rust or Python. A line that ends in a
/// backslash is joined with the next one.
fn function<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if let Some(start) = text.find(&format!("\ndef {name}(")) {
        return text[start..].split("\n\n\n").next();
    }
    let start = text.find(&format!("fn {name}("))?;
    let indent = start - text[..start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[start..].find(&format!("\n{}}}\n", " ".repeat(indent)))?;
    Some(&text[start..start + end])
}

/// Checks that each test that is said to follow a piece of advice exists and contains it, and that the advice is still
/// part of a message.
#[test]
fn advice_that_other_files_follow_is_in_their_tests() {
    let code = code();
    // This function follows a declaration of a file with tests.
    assert!(code.contains("fn variant_of_game("));
    for (advice, file, test) in rows::FOLLOWED_ELSEWHERE {
        assert!(code.contains(advice), "{advice}");
        let text = fs::read_to_string(root(file)).unwrap();
        let text = joined(&text);
        let found = function(&text, test);
        assert!(
            found.is_some_and(|text| without_comments(text).contains(advice)),
            "{file}: {test}: {advice}"
        );
    }
}

/// The verbs with which a piece of advice can begin. In a message, advice follows a colon or a semicolon. A string with
/// nothing but advice becomes a part of a message.
const VERBS: &str = "add allow cast choose close convert copy correct count create download end exchange export free give \
                     increase install keep leave make merge mount move name open paste put read remove rename repeat \
                     request restart run save see send shorten sort start try unpack use wait write";

/// Checks that the transcripts and tables of the tests contain each piece of advice in the code. Compares the first four words of the
/// advice, or fewer if the program inserts a value before the fifth word.
#[test]
fn all_advice_is_in_the_tables() {
    let code = code();
    let tables = [
        include_str!("rows.rs"),
        include_str!("mod.rs"),
        include_str!("library.rs"),
    ];
    let transcripts = fs::read_dir(root("tests/transcripts")).unwrap();
    let transcripts = transcripts.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let tables = tables.map(without_comments).concat() + &transcripts.collect::<String>();
    let marks = [": ", "; ", "\""].into_iter();
    let starts = marks.flat_map(|mark| VERBS.split(' ').map(move |verb| (mark, verb)));
    let mut missing = Vec::new();
    for (mark, verb) in starts {
        for (at, _) in code.match_indices(&format!("{mark}{verb} ")) {
            let text = &code[at + mark.len()..];
            let advice = text
                .split(['"', '{', '\\', '\n'])
                .next()
                .unwrap()
                .trim_end();
            let words: Vec<&str> = advice.split(' ').take(4).collect();
            // Each string literal ends in the line in which it begins, because `code` joins its lines.
            let is_message = text.lines().next().unwrap().contains('"');
            let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
            let is_other = mark == "\"" && is_no_advice(&code[line..], advice);
            if is_message && !is_other && !tables.contains(&words.join(" ")) {
                missing.push(advice);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no test follows this advice: add the command that causes the message and the command that follows the \
         advice to a file in tests/transcripts (or add the words \
         to FOLLOWED_ELSEWHERE, with the test that follows them):\n{}",
        missing.join("\n")
    );
}

/// Returns `true` if a string that begins with a verb names an operation that failed, is a command of the shell, or is a
/// part of another text. `line` is the code from the line of the string on.
fn is_no_advice(line: &str, text: &str) -> bool {
    let line = line.lines().next().unwrap();
    let takes_operations = [".at(", ".sql(", "fault(", "task::start(", ".text("];
    let endings = [" in", " of", " to", " for"];
    let other = ["end of a line", "read -r line"];
    takes_operations.iter().any(|call| line.contains(call))
        || endings.iter().any(|ending| text.ends_with(ending))
        || other.iter().any(|other| text.starts_with(other))
        || text.contains("  ")
}

/// Checks that no message of the library names an option as on the command line. Such options stand only in the modules
/// `cli` and `serve`, which talk to people at a command line, and in the options that books and counts record.
#[test]
fn no_message_of_the_library_names_an_option_of_the_command_line() {
    let recorded = [
        "format!(\"--min-game {}\", self.min_game)",
        "format!(\"--only-{side}\")",
        "format!(\"--minimax={percent}\")",
        "\"--max-loss {}{keep_one}\"",
        "\"--weights {source}\"",
        "\"--expand {}\"",
        "\" --keep-one\"",
        "(of counts with --min-game {})",
        "strip_prefix(\"--max-ply \")",
        // A program of a test.
        ".args([\"--exact\", name])",
    ];
    let mut directories = vec![root("src")];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_door = path.ends_with("src/cli") || path.ends_with("src/serve");
            if path.is_dir() && !is_door {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let text = without_comments(text);
                let names_option = |line: &&str| {
                    let mut ends = line.split("--").skip(1);
                    ends.any(|end| end.starts_with(|c: char| c.is_ascii_lowercase()))
                        && !recorded.iter().any(|recorded| line.contains(recorded))
                };
                let lines = text.lines().filter(names_option);
                found.extend(lines.map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Corrects the mistakes in a FEN as the messages advise, which leads to a position.
#[test]
fn advice_about_a_fen_leads_to_a_position() {
    let dir = temp();
    for (fen, advice, followed) in [
        (
            "4k3/8/8/8/8/8/8/4K2R w K - id \"a\"",
            "remove this text, or add a semicolon after the position",
            "4k3/8/8/8/8/8/8/4K2R w K - id \"a\";",
        ),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1g1",
            "the text \"moves e1g1\" follows the position: remove this text",
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
        ),
    ] {
        advised(dir.path(), &format!("key --fen '{fen}'"), advice);
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
        "show full.idx --fen FEN",
        "show stats.idx --fen FEN",
        "games full.idx --fen FEN",
        "games plain.idx --fen FEN",
        "edit s.bin --in-place --set e4=3 --fen FEN",
        "evals frc.epd --out a.evals",
    ] {
        let command = command.replace("FEN", &format!("'{CHESS960}'"));
        let output = run(dir.path(), &words(&command));
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
        for command in ["show", "tree", "engine", "info-book"] {
            advised(
                dir,
                &format!("{command} packed.bin"),
                &format!("unpack the file, for instance with {name} -dc"),
            );
        }
        let mut unpacking = Command::new(name);
        let unpacked = unpacking.arg("-dc").arg(dir.join("packed.bin")).output();
        let unpacked = unpacked.unwrap();
        assert_eq!(unpacked.stdout, book, "{name}");
        tried += 1;
    }
    if tried == 0 {
        crate::common::skip("no program that compresses is installed");
    }
}

//! `polybook make-book` on the command line.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::common::{Mounted, fails, ok, ok_json, polybook_in, run, sample, temp};

fn selfplay() -> String {
    sample("selfplay.pgn").display().to_string()
}

/// A book with one record: e2e4 in the starting position.
const OLD_BOOK: &[u8] = b"\x46\x3b\x96\x18\x16\x91\xfc\x9c\x03\x1c\0\x01\0\0\0\0";

#[test]
fn the_report_for_programs() {
    let dir = temp();
    let pgn = selfplay();
    let report = ok_json(
        dir.path(),
        &format!("make-book --json -q --min-game 1 {pgn}"),
    );
    assert_eq!(report["games"]["read"], 500);
    assert_eq!(report["games"]["counted"], 500);
    assert_eq!(report["games"]["rejected"], 0);
    assert_eq!(report["rejected"], serde_json::json!([]));
    assert_eq!(report["book"]["path"], "book.bin");
    assert_eq!(report["book"]["scale"], 1.0);
    let records = crate::common::records(&dir.path().join("book.bin"));
    assert_eq!(report["book"]["entries"], records.len());
    assert!(report["entries"].as_u64() > report["positions"].as_u64());
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert!(report.get("index").is_none() && report.get("obs").is_none());
}

#[test]
fn the_summary_for_people_goes_to_standard_error() {
    let dir = temp();
    let output = run(dir.path(), &format!("make-book {}", selfplay()));
    assert!(output.status.success() && output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("500 games read, 500 counted"), "{text}");
    assert!(text.contains("book.bin: "), "{text}");
    let output = run(dir.path(), &format!("make-book -q {}", selfplay()));
    assert!(output.stderr.is_empty());
}

/// Returns the commands of the summary's last line, which show the outputs.
fn next_commands(dir: &Path, args: &[OsString]) -> Vec<String> {
    let output = run(dir, args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let last = text.lines().last().unwrap();
    let commands = last
        .strip_prefix("look at it: ")
        .or_else(|| last.strip_prefix("look at them: "));
    commands
        .map(|commands| commands.split("; ").map(str::to_owned).collect())
        .unwrap_or_default()
}

#[test]
fn the_summary_ends_with_commands_that_show_the_outputs() {
    let dir = temp();
    let games = sample("famous.pgn");
    let made = args![
        "make-book",
        "--min-game",
        "1",
        &games,
        "--bin=-my book.bin",
        "--obs",
        "it's.obs.db3",
        "--leveldb",
        "all.idx",
        "--explorer",
        "games.idx",
        "--counts",
        "all.counts"
    ];
    let commands = next_commands(dir.path(), made);
    assert_eq!(commands.len(), 4, "{commands:?}");
    // The server would refuse to publish games of another directory.
    #[cfg(unix)]
    {
        let elsewhere = games.parent().unwrap().canonicalize().unwrap();
        let allowed = format!("--allow-pgn {}", elsewhere.display());
        assert_eq!(
            commands[3],
            format!("polybook serve --open games.idx {allowed}")
        );
    }
    let near = temp();
    std::fs::copy(&games, near.path().join("near.pgn")).unwrap();
    let made = args!["make-book", "near.pgn", "--explorer", "games.idx"];
    assert_eq!(
        next_commands(near.path(), made),
        ["polybook serve --open games.idx"]
    );
    // On Windows, the Command Prompt may not be the shell that runs the test.
    #[cfg(unix)]
    for command in &commands[..3] {
        let command = command.replacen("polybook", env!("CARGO_BIN_EXE_polybook"), 1);
        let mut shell = std::process::Command::new("sh");
        let shown = shell.arg("-c").arg(&command).current_dir(dir.path());
        let shown = shown.output().unwrap();
        assert!(shown.status.success(), "{command}: {shown:?}");
        assert!(shown.stdout.len() > 100, "{command}: {shown:?}");
    }
    // Games that begin in another position.
    let fen = "[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1\"]\n\n1... Kd7 0-1\n";
    std::fs::write(dir.path().join("fen.pgn"), fen).unwrap();
    let made = args![
        "make-book",
        "--min-game=1",
        "fen.pgn",
        "--bin=fen.bin",
        "--obs=fen.obs.db3"
    ];
    let commands = next_commands(dir.path(), made);
    assert_eq!(commands[0], "polybook info-book fen.bin");
    #[cfg(unix)]
    for (command, printed) in commands.iter().zip(["Lines for white", "Kd7"]) {
        let command = command.replacen("polybook", env!("CARGO_BIN_EXE_polybook"), 1);
        let mut shell = std::process::Command::new("sh");
        let shown = shell.arg("-c").arg(&command).current_dir(dir.path());
        let shown = shown.output().unwrap();
        let text = String::from_utf8_lossy(&shown.stdout);
        assert!(
            shown.status.success() && text.contains(printed),
            "{command}: {shown:?}"
        );
    }
    let error = fails(dir.path(), "filter fen.bin --max-ply 30 --out out.bin", 1);
    assert!(
        error
            .contains("the starting position, which is not in the book: leave out these options\n"),
        "{error}"
    );
    let error = fails(
        dir.path(),
        "filter fen.bin --reachable --max-ply 3 --out out.bin",
        1,
    );
    assert!(
        error.contains("no move is kept with --max-ply 3 --reachable, because"),
        "{error}"
    );
    ok(dir.path(), "filter fen.bin --best 3 --out out.bin");
    let empty = ["--bin=empty.bin", "--min-game=99", "--allow-empty"];
    let silent: [&[&str]; 4] = [
        &["--counts=other.counts"],
        &["--suite=lines.pgn", "--min-game=1"],
        &["--bin=-"],
        &empty,
    ];
    for silent in silent {
        let mut made = args!["make-book", &games].to_vec();
        made.extend(silent.iter().map(OsString::from));
        assert_eq!(next_commands(dir.path(), &made), [""; 0], "{silent:?}");
    }
}

#[test]
fn options_with_a_single_dash_do_the_same() {
    let dir = temp();
    let pgn = selfplay();
    ok(
        dir.path(),
        &format!("make-book -pgn {pgn} -bin old.bin -max-ply 30 -min-game 2 -only-white -uniform"),
    );
    ok(
        dir.path(),
        &format!("make-book {pgn} --bin new.bin --max-ply 30 --min-game 2 --only-white --uniform"),
    );
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("old.bin"), read("new.bin"));
    fs::copy(&pgn, dir.path().join("book.pgn")).unwrap();
    ok(dir.path(), "make-book");
    assert!(dir.path().join("book.bin").exists());
}

#[test]
fn nothing_but_input_and_options_decides_the_bytes() {
    let dir = temp();
    let text = fs::read(selfplay()).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    put("games.pgn", &text);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gz.write_all(&text).unwrap();
    put("games.pgn.gz", &gz.finish().unwrap());
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), Default::default());
    bz2.write_all(&text).unwrap();
    // The compression is not recognized by the name.
    fs::create_dir(dir.path().join("other")).unwrap();
    put("other/games.pgn", &bz2.finish().unwrap());
    put("games.pgn.zst", &zstd::encode_all(&text[..], 3).unwrap());
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("inner.pgn", zip::write::SimpleFileOptions::default())
        .unwrap();
    zip.write_all(&text).unwrap();
    put("games.zip", &zip.finish().unwrap().into_inner());

    let book = |arguments: &str| {
        ok(dir.path(), &format!("make-book --bin out.bin {arguments}"));
        fs::read(dir.path().join("out.bin")).unwrap()
    };
    let expected = book("games.pgn");
    for arguments in [
        "--threads 1 games.pgn",
        "--threads 2 games.pgn",
        "--threads 7 games.pgn",
        "--memory 64KiB games.pgn",
        "games.pgn.gz",
        "other/games.pgn",
        "games.pgn.zst",
        "games.zip",
    ] {
        assert!(book(arguments) == expected, "{arguments}");
    }

    // Standard input has no name for the header; everything else is equal.
    let plain = book("--comment x games.pgn");
    let mut child = polybook_in(dir.path())
        .args([
            "make-book",
            "--comment",
            "x",
            "--bin",
            "out.bin",
            "--force",
            "-",
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(fs::read(dir.path().join("out.bin")).unwrap() == plain);
}

#[test]
fn several_files_are_one_input() {
    let dir = temp();
    let text = fs::read_to_string(selfplay()).unwrap();
    let middle = text[text.len() / 2..].find("[Event").unwrap() + text.len() / 2;
    fs::write(dir.path().join("a.pgn"), &text[..middle]).unwrap();
    fs::write(dir.path().join("b.pgn"), &text[middle..]).unwrap();
    ok(
        dir.path(),
        "make-book -q --no-header --bin two.bin --pgn a.pgn b.pgn",
    );
    ok(
        dir.path(),
        &format!("make-book -q --no-header --bin one.bin {}", selfplay()),
    );
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("two.bin"), read("one.bin"));
}

#[test]
fn weights_scales_and_order() {
    let dir = temp();
    let pgn = selfplay();
    ok(
        dir.path(),
        &format!(
            "make-book -q {pgn} --bin a.bin --min-game 1 --win-factor 1000 --draw-factor 300 --loss-factor 1"
        ),
    );
    let global = crate::common::records(&dir.path().join("a.bin"));
    ok(
        dir.path(),
        &format!(
            "make-book -q {pgn} --bin b.bin --min-game 1 --win-factor 1000 --draw-factor 300 --loss-factor 1 --scale position"
        ),
    );
    let local = crate::common::records(&dir.path().join("b.bin"));
    let weight = |record: &[u8; 16]| u16::from_be_bytes([record[10], record[11]]);
    assert_eq!(global.len(), local.len());
    assert_eq!(global.iter().map(weight).max(), Some(65_535));
    assert_ne!(global, local);
    for records in [&global, &local] {
        let order: Vec<_> = records
            .iter()
            .map(|r| (r[..8].to_vec(), u16::MAX - weight(r), r[8..10].to_vec()))
            .collect();
        assert!(order.is_sorted());
        assert!(
            records
                .iter()
                .all(|record| weight(record) > 0 && record[12..] == [0; 4])
        );
    }
    // Only positions whose own weights are too large are scaled.
    let games: Vec<_> = local
        .iter()
        .filter(|record| weight(record) == 1000)
        .collect();
    assert!(!games.is_empty());
}

#[test]
fn selections_add_up() {
    let dir = temp();
    let pgn = selfplay();
    let counted = |options: &str| {
        let report = ok_json(
            dir.path(),
            &format!("make-book --json -q --allow-empty {options} {pgn}"),
        );
        let games = &report["games"];
        assert_eq!(games["read"], 500);
        assert_eq!(
            games["counted"].as_u64().unwrap() + games["filtered"].as_u64().unwrap(),
            500
        );
        games["counted"].as_u64().unwrap()
    };
    let parts = ["1-0", "0-1", "1/2-1/2"].map(|result| counted(&format!("--result {result}")));
    assert_eq!(parts.iter().sum::<u64>(), 500);
    assert_eq!(counted("--result 1-0 --result 0-1"), parts[0] + parts[1]);
    assert_eq!(counted("--min-elo 2000"), 500);
    assert_eq!(counted("--min-elo 2000 --require-elo"), 0);
    assert_eq!(counted("--player stockfish"), 500);
    assert_eq!(counted("--white Carlsen"), 0);
    assert_eq!(counted("--since 2026.11.20 --until 2026"), 500);
    assert_eq!(counted("--since 2026.11.21"), 0);
    assert_eq!(counted("--eco A"), 0);
    let long = counted("--min-plies 100");
    assert!(long > 0 && long < 500);
    assert_eq!(counted("--min-plies 100 --max-ply 5"), long);
}

#[test]
fn damaged_inputs_are_errors_and_leave_the_old_book() {
    let dir = temp();
    let text = fs::read(selfplay()).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    put("book.bin", OLD_BOOK);
    let zst = zstd::encode_all(&text[..], 3).unwrap();
    put("cut.pgn.zst", &zst[..zst.len() / 2]);
    let frames = [&zst[..], &zst[..zst.len() / 2]].concat();
    put("frames.pgn.zst", &frames);
    let second_frame = format!("in the zstd frame that begins at byte {}; ", zst.len());
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gz.write_all(&text).unwrap();
    let mut gz = gz.finish().unwrap();
    let middle = gz.len() / 2;
    gz[middle] ^= 0xff;
    put("bad.pgn.gz", &gz);
    let noise: Vec<u8> = (0..50_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    put("noise", &noise);
    fs::create_dir(dir.path().join("games")).unwrap();

    for (input, expected) in [
        ("cut.pgn.zst", "cut.pgn.zst: the file is damaged"),
        ("frames.pgn.zst", &second_frame),
        ("bad.pgn.gz", "bad.pgn.gz: the file is damaged"),
        ("bad.pgn.gz", "in the gzip member that begins at byte 0; "),
        ("noise", "not PGN"),
        ("games", "a directory"),
        ("missing.pgn", "cannot open missing.pgn: "),
    ] {
        let error = fails(dir.path(), &format!("make-book -q {input} --force"), 1);
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read(dir.path().join("book.bin")).unwrap(), OLD_BOOK);
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        6,
        "nothing is left behind"
    );
}

#[test]
fn damage_inside_the_pgn_costs_the_games_it_hits() {
    let dir = temp();
    let mut text = fs::read(selfplay()).unwrap();
    let middle = text.len() / 2;
    text[middle..middle + 300].fill(0x9b);
    fs::write(dir.path().join("games.pgn"), &text).unwrap();
    let report = ok_json(dir.path(), "make-book --json -q games.pgn");
    let (read, rejected) = (&report["games"]["read"], &report["games"]["rejected"]);
    assert!(read.as_u64().unwrap() >= 499, "{report}");
    assert!((1..=2).contains(&rejected.as_u64().unwrap()), "{report}");
    let first = &report["rejected"][0];
    assert!(
        first["offset"].as_u64().unwrap().abs_diff(middle as u64) < 500,
        "{report}"
    );
}

#[test]
fn outputs_that_cannot_be_written_are_errors() {
    let dir = temp();
    let pgn = selfplay();
    let error = fails(
        dir.path(),
        &format!("make-book -q {pgn} --bin no/such/dir/book.bin"),
        1,
    );
    assert!(error.contains("no/such/dir/book.bin"), "{error}");
    let error = fails(dir.path(), &format!("make-book -q {pgn} --bin ."), 1);
    assert!(error.contains("a directory"), "{error}");
    if Path::new("/proc/self").exists() {
        let error = fails(
            dir.path(),
            &format!("make-book -q {pgn} --bin /proc/book.bin"),
            1,
        );
        assert!(error.contains("/proc/book.bin"), "{error}");
    }
    let error = fails(
        dir.path(),
        &format!("make-book -q {pgn} --memory 64KiB --temp-dir /no/such"),
        1,
    );
    assert!(error.contains("/no/such"), "{error}");
}

#[test]
fn wrong_command_lines_have_status_2() {
    let dir = temp();
    for line in [
        "make-book",
        "make-book --no-such-option x.pgn",
        "make-book --min-score 101 x.pgn",
        "make-book --threads 0 x.pgn",
        "make-book --since yesterday x.pgn",
        "make-book --result win x.pgn",
        "make-book --eco Z x.pgn",
        "make-book --time-control 5 x.pgn",
        "make-book --memory lots x.pgn",
        "no-such-command",
    ] {
        fails(dir.path(), line, 2);
    }
    let error = fails(dir.path(), "make-book", 2);
    assert!(error.contains("no PGN file is given"), "{error}");
}

/// Mounts a disk of 64 KiB. Returns its path, and a guard that unmounts it when it is dropped.
fn small_disk(dir: &Path) -> Option<(PathBuf, Mounted)> {
    let path = dir.join("small");
    fs::create_dir(&path).unwrap();
    let mounted = Mounted::at(&path, "-t tmpfs -o size=64k none")?;
    Some((path, mounted))
}

#[test]
fn a_full_temporary_disk_is_an_error() {
    let dir = temp();
    let Some((disk, _mounted)) = small_disk(dir.path()) else {
        return;
    };
    for output in ["--bin book.bin", "--leveldb idx"] {
        let line = format!(
            "make-book -q --memory 64KiB --temp-dir {} {output} {}",
            disk.display(),
            selfplay()
        );
        let error = fails(dir.path(), &line, 1);
        assert!(
            error.contains("small") && error.contains("No space left"),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "only the disk is there"
    );
}

#[test]
fn a_full_disk_is_an_error_and_leaves_the_old_book() {
    let dir = temp();
    let Some((disk, _mounted)) = small_disk(dir.path()) else {
        return;
    };
    let old = disk.join("book.bin");
    fs::write(&old, OLD_BOOK).unwrap();
    let line = format!(
        "make-book -q --min-game 1 {} --force --bin {}",
        selfplay(),
        old.display()
    );
    let output = run(dir.path(), &line);
    let kept = fs::read(&old).unwrap();
    let entries = fs::read_dir(&disk).unwrap().count();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!((kept, entries), (OLD_BOOK.to_vec(), 1));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_cleanly() {
    let dir = temp();
    let child = polybook_in(dir.path())
        .args(["make-book", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    // Games keep coming, so the run is certainly reading when the signal arrives.
    let mut stdin = child.stdin.take().unwrap();
    let games = fs::read(selfplay()).unwrap();
    let (sender, received) = std::sync::mpsc::channel();
    let feeder = std::thread::spawn(move || {
        while stdin.write_all(&games).is_ok() {
            let _ = sender.send(());
        }
    });
    // The run has read all of the first games but those that fit into the pipe.
    received.recv().unwrap();
    crate::common::send_signal(child.id(), rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let dir = temp();
    let mut child = polybook_in(dir.path())
        .args(["make-book", "-q", "--json", &selfplay()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn the_header_tells_where_the_book_comes_from() {
    let dir = temp();
    let pgn = selfplay();
    ok(
        dir.path(),
        &format!("make-book -q --max-ply 12 --white stock {pgn}"),
    );
    let header = polybook::book::header::read(dir.path().join("book.bin")).unwrap();
    for part in [
        "polybook",
        "selfplay.pgn",
        "500 read",
        "--max-ply 12",
        "--white \"stock\"",
        "2 x wins",
        "Scale: 1",
    ] {
        assert!(header.contains(part), "{part} in {header}");
    }
    assert!(!header.contains('/'), "{header}");
    ok(dir.path(), &format!("make-book -q --comment mine {pgn}"));
    let header = polybook::book::header::read(dir.path().join("book.bin")).unwrap();
    assert_eq!(header, "@PG@\n1.0\n2\n1\nnormal\nmine");
    ok(
        dir.path(),
        &format!("make-book -q --no-header --force {pgn}"),
    );
    assert!(polybook::book::header::read(dir.path().join("book.bin")).is_err());
}

#[test]
fn the_report_names_files_as_they_were_named() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    // In the second round, the outputs exist.
    for _ in 0..2 {
        let report = ok_json(
            dir.path(),
            &format!(
                "make-book -q --json {} --bin a.bin --leveldb a.idx --obs a.obs.db3 --force",
                pgn.display()
            ),
        );
        assert_eq!(report["book"]["path"], "a.bin");
        assert_eq!(report["index"]["path"], "a.idx");
        assert_eq!(report["obs"]["path"], "a.obs.db3");
    }
}

#[test]
fn a_comment_that_is_too_long_leaves_no_output_at_all() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let error = fails(
        dir.path(),
        &format!(
            "make-book -q {} --bin a.bin --leveldb a.idx --obs a.obs.db3 --comment {}",
            pgn.display(),
            "x".repeat(3000)
        ),
        1,
    );
    assert!(error.contains("shorten the comment"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let short = format!("make-book -q {} --bin a.bin --comment x", pgn.display());
    ok(dir.path(), &short);
}

/// Returns the files of an output with their bytes, whether it is a file or a directory.
fn bytes_of(path: &Path) -> Vec<(String, Vec<u8>)> {
    if path.is_file() {
        return vec![(String::new(), fs::read(path).unwrap())];
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).into_iter().flatten() {
        let entry = entry.unwrap();
        files.push((
            entry.file_name().into_string().unwrap(),
            fs::read(entry.path()).unwrap(),
        ));
    }
    files.sort();
    files
}

/// The outputs of a run are those of separate runs.
#[test]
fn outputs_do_not_depend_on_each_other() {
    let dir = temp();
    let dir = dir.path();
    let tags = [
        "",
        "Crazyhouse",
        "King of the Hill",
        "Horde",
        "Chess960",
        "Standard",
    ];
    let lines = [
        "1. e4 e5 2. Nf3",
        "1. e4 -- 2. d4",
        "1. d4 d5 (1... f5)",
        "1. e4 e5 2. Qh4",
    ];
    let games = tags.iter().flat_map(|tag| {
        lines.iter().enumerate().map(move |(number, line)| {
            let line = if *tag == "Horde" { "1. e4" } else { line };
            format!(
                "[White \"{}\"]\n[Variant \"{tag}\"]\n[Result \"1-0\"]\n\n{line} 1-0\n\n",
                number % 2
            )
        })
    });
    fs::write(dir.join("games.pgn"), games.collect::<String>()).unwrap();
    let outputs = [
        "--bin o",
        "--leveldb o",
        "--explorer o",
        "--obs o",
        "--counts o",
        "--suite o --plies 1",
    ];
    let made = |pair: &[usize], options: &str| {
        let mut line = format!("make-book -q games.pgn --min-game 1 {options}");
        for number in pair {
            line += &format!(
                " {}",
                outputs[*number].replace(" o", &format!(" {number}.out"))
            );
        }
        let status = run(dir, &*line).status.success();
        let found = pair
            .iter()
            .map(|number| bytes_of(&dir.join(format!("{number}.out"))));
        let found = Vec::from_iter(found);
        for number in pair {
            let path = dir.join(format!("{number}.out"));
            let _ = fs::remove_dir_all(&path);
            let _ = fs::remove_file(&path);
        }
        (status, found)
    };
    for options in [
        "--variant auto",
        "--variant horde",
        "--max-ply 1",
        "--variant auto --drop-duplicates --max-ply 2",
        "--variant auto --white 1 --keep-prefix",
    ] {
        let alone = Vec::from_iter((0..outputs.len()).map(|number| made(&[number], options)));
        for first in 0..outputs.len() {
            for second in first + 1..outputs.len() {
                let (status, together) = made(&[first, second], options);
                let all_succeed = alone[first].0 && alone[second].0;
                assert_eq!(status, all_succeed, "{options} {first} {second}");
                if all_succeed {
                    for (number, found) in [first, second].into_iter().zip(&together) {
                        assert!(
                            *found == alone[number].1[0],
                            "{options}: {number} of {first} and {second}"
                        );
                    }
                }
            }
        }
    }
}

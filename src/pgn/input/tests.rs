//! Tests of inputs.

use std::io::{Cursor, Write};

use super::*;

const PGN: &[u8] = b"[Event \"x\"]\n\n1. e4 *\n";

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("games");
    std::fs::write(&path, bytes).unwrap();
    let mut text = Vec::new();
    let input = Input::file(&path);
    let mut stream = input.open(&StreamOptions::default())?;
    stream
        .read_to_end(&mut text)
        .map_err(|err| input.error(err))?;
    Ok(text)
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), Default::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut packer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        packer.start_file(*name, options).unwrap();
        packer.write_all(bytes).unwrap();
    }
    packer.finish().unwrap().into_inner()
}

#[test]
fn every_packing_is_recognized_by_content() {
    assert_eq!(unpacked(PGN).unwrap(), PGN);
    assert_eq!(unpacked(&gz(PGN)).unwrap(), PGN);
    assert_eq!(unpacked(&bz2(PGN)).unwrap(), PGN);
    assert_eq!(unpacked(&zstd::encode_all(PGN, 3).unwrap()).unwrap(), PGN);
    assert_eq!(unpacked(&zip(&[("a.pgn", PGN)])).unwrap(), PGN);
    assert_eq!(unpacked(b"").unwrap(), b"");
    assert_eq!(unpacked(b"BZ").unwrap(), b"BZ");
}

#[test]
fn members_streams_and_frames_follow_one_another() {
    let twice = [PGN, PGN].concat();
    assert_eq!(unpacked(&gz(PGN).repeat(2)).unwrap(), twice);
    assert_eq!(unpacked(&bz2(PGN).repeat(2)).unwrap(), twice);
    let frame = zstd::encode_all(PGN, 3).unwrap();
    assert_eq!(unpacked(&frame.repeat(2)).unwrap(), twice);
    let members = zip(&[("a.PGN", PGN), ("notes.txt", b"no"), ("b/c.pgn", PGN)]);
    assert_eq!(unpacked(&members).unwrap(), [PGN, b"\n", PGN].concat());
}

#[test]
fn damage_is_an_error() {
    let many: Vec<u8> = (0..20_000u32)
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    for packed in [
        gz(&many),
        bz2(&many),
        zstd::encode_all(&many[..], 3).unwrap(),
        zip(&[("a.pgn", &many)]),
    ] {
        assert!(unpacked(&packed[..packed.len() / 2]).is_err());
    }
    let mut packed = gz(&many);
    let middle = packed.len() / 2;
    packed[middle] ^= 0xff;
    assert!(unpacked(&packed).is_err());
    assert!(unpacked(&zip(&[("a.txt", PGN)])).is_err());
}

#[test]
fn names_do_not_tell_the_packing() {
    for path in [
        "/x/a.pgn",
        "a.pgn.gz",
        "a.pgn.zst",
        "a.zip",
        "b/a.pgn.bz2",
        "a.pgn.GZ",
        "a.Zip",
    ] {
        assert_eq!(Input::file(path).name(), "a.pgn", "{path}");
    }
    assert_eq!(Input::from_argument("-"), Input::stdin());
}

#[test]
fn a_directory_is_no_input() {
    let dir = tempfile::tempdir().unwrap();
    let err = Input::file(dir.path()).check().unwrap_err().to_string();
    assert!(err.contains("is a directory"), "{err}");
}

#[test]
fn what_is_no_pgn_is_named() {
    let tar = [&[0; 257][..], b"ustar", &[0; 300]].concat();
    for (bytes, what) in [
        (tar.clone(), "tar"),
        (gz(&tar), "tar"),
        (b"\xfd7zXZ\0\0\0".to_vec(), "xz"),
        (gz(&gz(PGN)), "compressed twice"),
        (zip(&[("a.txt", PGN)]), "no .pgn file"),
    ] {
        let err = unpacked(&bytes).unwrap_err().to_string();
        assert!(err.contains(what), "{what}: {err}");
    }
}

#[test]
fn an_encrypted_zip_is_named() {
    let mut packer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    packer
        .start_file("a.pgn", zip::write::SimpleFileOptions::default())
        .unwrap();
    packer.write_all(PGN).unwrap();
    let mut bytes = packer.finish().unwrap().into_inner();
    // Set the encryption flag, in the header of the member and in the table of contents.
    bytes[6] |= 1;
    let entry = bytes.windows(4).position(|at| at == b"PK\x01\x02");
    bytes[entry.unwrap() + 8] |= 1;
    let err = unpacked(&bytes).unwrap_err().to_string();
    assert!(err.contains("encrypted"), "{err}");
}

#[test]
fn windows_are_bounded_by_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.zst");
    let frame = |log| {
        let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
        packer.window_log(log).unwrap();
        packer.write_all(PGN).unwrap();
        packer.flush().unwrap();
        packer.finish().unwrap()
    };
    std::fs::write(&path, [frame(23), frame(27)].concat()).unwrap();
    let input = Input::file(&path);
    assert_eq!(input.unpacking_memory(1 << 30), 0);
    let read = |memory| {
        let mut text = Vec::new();
        let options = StreamOptions {
            memory,
            ..StreamOptions::default()
        };
        let mut stream = input.open(&options)?;
        let read = stream.read_to_end(&mut text);
        read.map(|_| text).map_err(|err| input.error(err))
    };
    assert_eq!(read(1 << 27).unwrap(), [PGN, PGN].concat());
    for memory in [0, 1 << 26] {
        let err = read(memory).unwrap_err().to_string();
        assert!(
            err.contains("MiB of memory: unpack the file first"),
            "{err}"
        );
    }
    std::fs::write(&path, frame(27)).unwrap();
    let err = read(1 << 26).unwrap_err().to_string();
    assert!(err.contains("takes 128 MiB of memory"), "{err}");
    assert_eq!(input.unpacking_memory(1 << 30), 1 << 27);
    assert_eq!(input.unpacking_memory(1 << 27), 1 << 26);
}

/// Opening a named pipe blocks until a program writes to it.
#[cfg(unix)]
#[test]
fn waiting_for_a_pipe_ends_when_asked() {
    use std::{sync::atomic::Ordering, time::Duration};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let options = StreamOptions::default();
    let input = Input::file(&path);
    input.check().unwrap();
    let stop = Arc::clone(&options.stop);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
    });
    let err = input.open(&options).unwrap_err();
    assert!(matches!(err, Error::Interrupted), "{err}");
    stopper.join().unwrap();
    // Now a program opens the pipe, but writes nothing to it.
    let writer = File::options().read(true).write(true).open(&path).unwrap();
    options.stop.store(false, Ordering::Relaxed);
    let stop = Arc::clone(&options.stop);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(matches!(input.open(&options), Err(Error::Interrupted)));
    stopper.join().unwrap();
    drop(writer);
}

#[test]
fn a_zip_with_members_of_one_name_is_refused() {
    // The library that packs the archive rejects duplicate names, so the name is changed afterwards.
    let mut bytes = zip(&[("a.pgn", PGN), ("b.pgn", PGN), ("c.pgn", PGN)]);
    while let Some(at) = bytes.windows(5).position(|name| name == b"b.pgn") {
        bytes[at] = b'a';
    }
    let err = unpacked(&bytes).unwrap_err().to_string();
    assert!(err.contains("several files with the same name"), "{err}");
}

#[test]
fn a_zip_with_too_many_members_is_refused_before_its_table_is_read() {
    let mut bytes = zip(&[("a.pgn", PGN)]);
    let end = bytes.windows(4).position(|at| at == b"PK\x05\x06").unwrap();
    // The last records of a zip archive with more than 65,535 files: its ZIP64 end record and locator.
    let mut end_64 = [0; 76];
    end_64[..4].copy_from_slice(b"PK\x06\x06");
    end_64[32..40].copy_from_slice(&2_000_000u64.to_le_bytes());
    end_64[56..60].copy_from_slice(b"PK\x06\x07");
    bytes.splice(end..end, end_64);
    let err = unpacked(&bytes).unwrap_err();
    assert_eq!(err.kind(), crate::ErrorKind::TooLarge);
    assert!(err.to_string().contains("more than 65536 files"), "{err}");
}

/// Reads the first bytes of a file, changes the file, and returns the error of reading the rest.
fn read_while_it_changes(bytes: &[u8], change: impl FnOnce(&std::path::Path)) -> Error {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("games.pgn");
    std::fs::write(&path, bytes).unwrap();
    let input = Input::file(&path);
    let mut stream = input.open(&StreamOptions::default()).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    change(&path);
    let read = stream.read_to_end(&mut Vec::new());
    let error = input.error(read.unwrap_err());
    let advice = "run the command again when no other program is writing";
    assert!(error.to_string().contains(advice), "{error}");
    // The file can be read again, except a compressed file that was cut.
    let mut again = input.open(&StreamOptions::default()).unwrap();
    let is_read = again.read_to_end(&mut Vec::new()).is_ok();
    assert_eq!(is_read, !bytes.starts_with(b"\x1f\x8b"));
    error
}

#[test]
fn a_file_that_changes_while_it_is_read_is_refused() {
    // The text is longer than the chunks that the thread reads ahead.
    let long = PGN.repeat(200_000);
    let truncate = |path: &std::path::Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(3_000_000).unwrap();
    };
    let append = |path: &std::path::Path| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(PGN).unwrap();
    };
    let touch = |path: &std::path::Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    let changes: [&dyn Fn(&std::path::Path); 3] = [&truncate, &append, &touch];
    for change in changes {
        let err = read_while_it_changes(&long, change);
        assert_eq!(err.kind(), crate::ErrorKind::Changed);
        assert!(
            err.to_string().contains("changed while it was read"),
            "{err}"
        );
    }
    // A truncated compressed file is reported as changed, not as damaged.
    let numbers = (0..2_000_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string());
    let err = read_while_it_changes(&gz(numbers.collect::<String>().as_bytes()), truncate);
    assert_eq!(err.kind(), crate::ErrorKind::Changed, "{err}");
}

#[test]
fn files_that_may_be_pgn_are_accepted() {
    for text in [
        &b""[..],
        b"[Event \"x\"]",
        b"1. e4",
        b"Read me",
        b"[Event \"x\"]\n\0\n",
        b"% escaped",
    ] {
        assert_eq!(foreign(Path::new("x"), text), None, "{text:?}");
    }
}

#[test]
fn other_formats_are_recognized() {
    let utf_16: Vec<u8> = "[Event \"x\"]"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut tar = vec![0; 1024];
    tar[..5].copy_from_slice(b"a.pgn");
    tar[257..262].copy_from_slice(b"ustar");
    // In POSIX archives, a zero follows the magic `ustar`; in GNU archives, a blank.
    let mut gnu_tar = tar.clone();
    gnu_tar[257..265].copy_from_slice(b"ustar  \0");
    let ace = [&[0x12, 0x34, 0x31, 0, 0, 0x90, 0][..], b"**ACE**", &[0; 30]].concat();
    let book: Vec<u8> = (1..40u64)
        .flat_map(|i| [(i << 58 | i).to_be_bytes(), [9, 0, 0, 1, 0, 0, 0, 0]].concat())
        .collect();
    let headed = [&[0; 8][..], b"@PG@\n1.0", &book].concat();
    for (text, what) in [
        (&utf_16[..], "UTF-16"),
        (&tar, "tar"),
        (&gnu_tar, "tar"),
        (&ace, "ACE"),
        (b"\x1f\x5a-lh5-\x99\0", "LHA"),
        (&book, "Polyglot"),
        (&headed, "Polyglot"),
        (b"SQLite format 3\0", "SQLite"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"\xfd7zXZ\0\0", "xz"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
        (b"\x7fELF\0\0\0\x99", "binary"),
    ] {
        let kind = foreign(Path::new("x"), text).expect(what);
        assert!(kind.contains(what), "{what}: {kind}");
    }
}

/// Tests that a zstd frame with the largest possible window is rejected, and that its size is calculated without
/// an overflow.
#[test]
fn the_largest_windows_are_refused() {
    let all_of_content = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8]].concat();
    let largest = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xff];
    for (start, window) in [
        (&all_of_content[..], u64::MAX),
        (&largest, (1 << 41) / 8 * 15),
    ] {
        assert_eq!(zstd_window(start), Some(window));
        let err = refuse_large_window(Path::new("a.zst"), start, 1 << 30, 2).unwrap_err();
        assert!(err.to_string().contains("unpack the file first"), "{err}");
    }
}

#[test]
fn the_first_bytes_give_the_window() {
    for log in [10, 17, 24, 27] {
        let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
        packer.window_log(log).unwrap();
        // The encoder does not know the length of the content, so it writes a window size.
        packer.write_all(&[0; 1000]).unwrap();
        packer.flush().unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(zstd_window(&packed), Some(1 << log), "{log}");
    }
    for size in [10, 300, 70_000] {
        let packed = zstd::bulk::compress(&vec![7; size], 3).unwrap();
        assert_eq!(zstd_window(&packed), Some(size as u64));
    }
    assert_eq!(zstd_window(b"[Event \"x\"]"), None);
}

#[test]
fn large_windows_are_refused() {
    let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packer.window_log(27).unwrap();
    packer.write_all(&[0; 1000]).unwrap();
    packer.flush().unwrap();
    let packed = packer.finish().unwrap();
    let path = Path::new("x.zst");
    assert!(refuse_large_window(path, &packed, 1 << 27, 2).is_ok());
    let err = refuse_large_window(path, &packed, (1 << 27) - 1, 2).unwrap_err();
    assert!(err.to_string().contains("128 MiB"), "{err}");
}

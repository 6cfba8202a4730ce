//! Decompresses the frames of a zstd file on several threads.
//!
//! The frames of a zstd file can be decompressed independently of each other. Programs such as `pzstd` therefore divide
//! a file into many frames, and so do the dumps of Lichess. [`Frames`] reads whole frames ahead, and starts a thread
//! for each of them. Most other files consist of one large frame. At the first frame that is too large, has a damaged
//! structure or needs a large window, reading ahead ends: an [`Unpacker`] reads this frame and the rest of the file.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Chain, Cursor, Read},
    mem,
    path::Path,
    thread,
};

use super::{
    CHUNK_SIZE, Input, SMALL_WINDOW, Sender,
    unpack::{Decoder, Unpacker, in_part},
    zstd_window,
};
use crate::{
    error::Result,
    kind::FileKind,
    task::{self, Feed, Feeder},
};

/// The maximum length in bytes of a frame that is read ahead. The frames of Lichess's dumps have about 5 MiB.
const MAX_FRAME: usize = 8 << 20;

/// The maximum number of decompressed chunks of a frame that wait until the frames before it have been read: 32 MiB, as
/// much as a frame of `pzstd -19` contains.
const MAX_WAITING_CHUNKS: usize = (32 << 20) / CHUNK_SIZE;

/// The memory in bytes for decompressing one frame ahead of time: the frame, its decompressed text and the zstd window.
const FRAME_MEMORY: usize = MAX_FRAME + MAX_WAITING_CHUNKS * CHUNK_SIZE + SMALL_WINDOW;

/// The maximum number of frames that are decompressed at the same time. Reading games takes much longer than
/// decompressing them, so more threads would only wait.
const MAX_FRAMES: usize = 4;

/// Returns the number of frames to decompress at the same time within `memory` bytes of memory. Returns 1 on computers
/// with fewer than four cores, because other threads need these cores.
pub(super) fn frames_ahead(memory: usize) -> usize {
    // Unit tests read frames ahead on every computer.
    let cores = if cfg!(test) {
        MAX_FRAMES
    } else {
        thread::available_parallelism().map_or(1, usize::from)
    };
    (cores / 2).min(memory / FRAME_MEMORY).clamp(1, MAX_FRAMES)
}

/// Returns the number of bytes of memory, at most `memory`, to reserve for decompressing several frames of the file at
/// `path` at the same time. Returns 0 unless the file begins with a frame that [`Frames`] can read ahead, and another
/// frame follows.
pub(super) fn memory_ahead(path: &Path, memory: usize) -> usize {
    let frames = frames_ahead(memory);
    let is_split = || -> io::Result<bool> {
        let mut source = BufReader::new(File::open(path)?);
        let mut frame = Vec::new();
        while read_frame(&mut source, &mut frame)? {
            if !is_skippable(&frame) {
                return Ok(has_small_window(&frame) && !source.fill_buf()?.is_empty());
            }
            frame.clear();
        }
        Ok(false)
    };
    // If the file cannot be read, reading its games fails as well.
    if frames > 1 && is_split().unwrap_or(false) {
        frames * FRAME_MEMORY
    } else {
        0
    }
}

/// A reader of the decompressed bytes of a zstd file. It decompresses several frames at the same time.
pub(super) struct Frames<'a, R: BufRead> {
    sender: &'a Sender,
    /// The maximum number of frames that are decompressed at the same time. Must not be 0.
    most: usize,
    /// The frames that are being decompressed, in the order of the file.
    open: VecDeque<Feed<Vec<u8>>>,
    /// The last chunk of the decompressed text of the first frame in `open`.
    chunk: Cursor<Vec<u8>>,
    next: Next<'a, R>,
}

/// The part of a zstd file after the frames that were read ahead.
enum Next<'a, R: BufRead> {
    /// Further frames may be read ahead. Contains the source, and the offset in the file of the next frame.
    Frames(R, u64),
    /// The rest of the file is decompressed without reading ahead.
    Rest(Box<Unpacker<'a, Chain<Cursor<Vec<u8>>, R>>>),
    /// The source could not be read. Contains the error, or `None` after it was returned.
    Failed(Option<io::Error>),
}

impl<'a, R: BufRead> Frames<'a, R> {
    /// Creates a reader of a zstd file. `source` returns the compressed bytes, and `sender` is the sender to which the
    /// file belongs. At most `most` frames are decompressed at the same time.
    pub(super) fn new(sender: &'a Sender, source: R, most: usize) -> Frames<'a, R> {
        Frames {
            sender,
            most,
            open: VecDeque::new(),
            chunk: Cursor::default(),
            next: Next::Frames(source, 0),
        }
    }

    /// Reads further frames ahead and starts to decompress them, until the maximum number of frames is open.
    fn open_frames(&mut self) -> Result<()> {
        while self.open.len() < self.most
            && let Next::Frames(source, offset) = &mut self.next
        {
            let (mut frame, start) = (Vec::new(), *offset);
            match read_frame(source, &mut frame) {
                Ok(true) if is_skippable(&frame) => *offset += frame.len() as u64,
                Ok(true) if has_small_window(&frame) => {
                    *offset += frame.len() as u64;
                    let input = self.sender.input.clone();
                    let (feed, _) =
                        task::start("unpack frame", MAX_WAITING_CHUNKS, move |chunks| {
                            send_frame(&input, &frame, start, chunks)
                        })?;
                    self.open.push_back(feed);
                }
                Ok(_) => {
                    let next = mem::replace(&mut self.next, Next::Failed(None));
                    if let Next::Frames(source, _) = next {
                        let source = Cursor::new(frame).chain(source);
                        let rest = Unpacker::new(self.sender, FileKind::Zstd, source, start);
                        self.next = Next::Rest(Box::new(rest));
                    }
                }
                Err(err) => self.next = Next::Failed(Some(err)),
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            self.open_frames().map_err(io::Error::other)?;
            let Some(first) = self.open.front_mut() else {
                return match &mut self.next {
                    Next::Frames(..) => unreachable!("a frame is open, or no frame is left"),
                    Next::Rest(rest) => rest.read(buf),
                    Next::Failed(err) => err.take().map_or(Ok(0), Err),
                };
            };
            match first.next(&[]).map_err(io::Error::other)? {
                Some(chunk) => self.chunk = Cursor::new(chunk),
                None => drop(self.open.pop_front()),
            }
        }
    }
}

/// Decompresses `frame`, which begins at the offset `start` of `input`, and sends its decompressed text to `chunks`.
fn send_frame(input: &Input, frame: &[u8], start: u64, chunks: &Feeder<Vec<u8>>) -> Result<()> {
    let damaged = |err| input.error(in_part(err, FileKind::Zstd, start));
    let mut part = Decoder::new(FileKind::Zstd, frame, SMALL_WINDOW).map_err(damaged)?;
    loop {
        task::fault("unpack frame");
        let mut chunk = Vec::with_capacity(CHUNK_SIZE);
        let read = (&mut part).take(CHUNK_SIZE as u64).read_to_end(&mut chunk);
        if read.map_err(damaged)? == 0 {
            return Ok(());
        }
        chunks.send(chunk)?;
    }
}

/// The length in bytes of the shortest frame. A skippable frame begins with a signature and a length, which together
/// have this length.
const SHORTEST_FRAME: usize = 8;

/// Returns `true` if `frame` is a skippable frame, which contains no text (RFC 8878, 3.1.2).
fn is_skippable(frame: &[u8]) -> bool {
    matches!(frame, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Returns `true` if the window that `frame` needs for decompression is no larger than [`SMALL_WINDOW`], as in most
/// files.
fn has_small_window(frame: &[u8]) -> bool {
    zstd_window(frame).is_some_and(|window| window <= SMALL_WINDOW as u64)
}

/// Reads the next frame from `source` into `frame`, which must be empty. Finds the end of the frame from the lengths of
/// its blocks (RFC 8878, 3.1.1). If no complete frame of at most [`MAX_FRAME`] bytes begins in `source`, returns
/// `false`; `frame` then contains the bytes that were read.
fn read_frame(source: &mut impl BufRead, frame: &mut Vec<u8>) -> io::Result<bool> {
    const BLOCK_HEADER: usize = 3;
    let mut append = |frame: &mut Vec<u8>, bytes: usize| {
        let is_short = bytes <= MAX_FRAME - frame.len();
        let read = source
            .take(bytes as u64 * u64::from(is_short))
            .read_to_end(frame)?;
        Ok::<_, io::Error>(is_short && read == bytes)
    };
    if !append(frame, SHORTEST_FRAME)? {
        return Ok(false);
    }
    if is_skippable(frame) {
        let length = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]);
        return append(frame, length as usize);
    }
    let [0x28, 0xb5, 0x2f, 0xfd, descriptor, ..] = frame[..] else {
        return Ok(false);
    };
    let is_single_segment = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        size => 1 << size,
    };
    let header = 5 + usize::from(!is_single_segment) + dictionary + content_size;
    let checksum = usize::from(descriptor & 4);
    let mut missing = header + BLOCK_HEADER - SHORTEST_FRAME;
    loop {
        if !append(frame, missing)? {
            return Ok(false);
        }
        let block = frame
            .last_chunk::<BLOCK_HEADER>()
            .expect("a block header was read");
        let block = u32::from_le_bytes([block[0], block[1], block[2], 0]);
        let length = match block >> 1 & 3 {
            // The block repeats one byte.
            1 => 1,
            3 => return Ok(false),
            _ => (block >> 3) as usize,
        };
        if block & 1 == 1 {
            return append(frame, length + checksum);
        }
        missing = length + BLOCK_HEADER;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, OnceLock},
    };

    use proptest::prelude::*;

    use super::*;

    const SKIPPABLE: &[u8] = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";

    fn sender() -> Sender {
        Sender {
            input: Input::file("games.pgn.zst"),
            taken: Arc::default(),
            left_out: Arc::<OnceLock<String>>::default(),
            memory: 2 * FRAME_MEMORY,
            temp_dir: "".into(),
        }
    }

    fn frame(text: &[u8], has_checksum: bool, has_size: bool) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(has_checksum).unwrap();
        let size = has_size.then_some(text.len() as u64);
        encoder.set_pledged_src_size(size).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Reads `file` with up to four frames at the same time, and with one reader after the other. Checks that both give
    /// the same text, the same description of what is left out, and the same error.
    fn read(file: &[u8]) -> Result<Vec<u8>> {
        let sequential = sender();
        let expected = text(
            &sequential,
            Unpacker::new(&sequential, FileKind::Zstd, file, 0),
        );
        for most in 1..=4 {
            let ahead = sender();
            let found = text(&ahead, Frames::new(&ahead, file, most));
            let message =
                |text: &Result<Vec<u8>>| text.as_ref().map_err(ToString::to_string).cloned();
            assert_eq!(message(&found), message(&expected));
            assert_eq!(ahead.left_out.get(), sequential.left_out.get());
        }
        expected
    }

    fn text(sender: &Sender, mut reader: impl Read) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let read = reader.read_to_end(&mut text);
        read.map(|_| text).map_err(|err| sender.input.error(err))
    }

    #[test]
    fn the_end_of_a_frame_is_found_without_decompressing_it() {
        let noise: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
            .take(300_000)
            .collect();
        for text in [&b""[..], b"e4", &[b'a'; 1 << 20], &noise] {
            for (has_checksum, has_size) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                let one = frame(text, has_checksum, has_size);
                let mut found = Vec::new();
                assert!(read_frame(&mut &[&one[..], b"rest"].concat()[..], &mut found).unwrap());
                assert_eq!(found, one);
                // Without its last byte, it is no whole frame.
                let mut cut = Vec::new();
                assert!(!read_frame(&mut &one[..one.len() - 1], &mut cut).unwrap());
                assert_eq!(cut, one[..one.len() - 1]);
            }
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_read_with_the_rest() {
        let mut noise: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
            .take(MAX_FRAME)
            .collect();
        let long = frame(&noise, false, false);
        assert!(long.len() > MAX_FRAME);
        let mut found = Vec::new();
        assert!(!read_frame(&mut &long[..], &mut found).unwrap());
        assert!(found.len() <= MAX_FRAME);
        noise.extend(b"end");
        assert_eq!(
            read(&[long, frame(b"end", false, false)].concat()).unwrap(),
            noise
        );
        // The length that a skippable frame states.
        let endless = b"\x50\x2a\x4d\x18\xff\xff\xff\xff".chain(io::repeat(0));
        assert!(!read_frame(&mut BufReader::new(endless), &mut Vec::new()).unwrap());
    }

    #[test]
    fn an_error_names_the_damaged_frame() {
        let frames: Vec<Vec<u8>> = (0..4)
            .map(|number| {
                frame(
                    format!("[Event \"{number}\"]\n\n1. e4 *\n").as_bytes(),
                    true,
                    true,
                )
            })
            .collect();
        let start = frames[0].len() + SKIPPABLE.len() + frames[1].len();
        let mut file = [
            &frames[0][..],
            SKIPPABLE,
            &frames[1],
            &frames[2],
            &frames[3],
        ]
        .concat();
        // A byte of the checksum.
        file[start + frames[2].len() - 1] ^= 1;
        let err = read(&file).unwrap_err().to_string();
        let place = format!(
            "in the zstd frame that begins at byte {start}; unpack or download the file again"
        );
        assert!(err.ends_with(&place), "{err}");
        // A block of the kind that the format reserves.
        file[start + frames[2].len() - 1] ^= 1;
        let header = 6;
        file[start + header] |= 6;
        let err = read(&file).unwrap_err().to_string();
        assert!(err.ends_with(&place), "{err}");
        // The file is cut within the last frame.
        let cut = [&frames[0][..], &frames[1], &frames[2][..9]].concat();
        let start = frames[0].len() + frames[1].len();
        let err = read(&cut).unwrap_err().to_string();
        assert!(err.contains(&format!("begins at byte {start}; ")), "{err}");
    }

    #[test]
    fn frames_end_when_no_one_reads_on() {
        let text = vec![b'a'; 2 * MAX_WAITING_CHUNKS * CHUNK_SIZE];
        let file = [frame(&text, false, false), frame(&text, false, false)].concat();
        let sender = sender();
        let mut frames = Frames::new(&sender, &file[..], 2);
        frames.read_exact(&mut [0; 10]).unwrap();
        // The thread of the first frame waits until its text is read. It fails when the receiving half is dropped.
        let (feeder, feed) = task::channel(0);
        drop(feed);
        assert!(matches!(
            send_frame(&sender.input, &file, 0, &feeder),
            Err(crate::Error::Interrupted)
        ));
    }

    #[test]
    fn memory_is_reserved_only_for_several_frames() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.zst");
        let one = frame(b"1. e4 *", false, true);
        let several = frames_ahead(1 << 30) * FRAME_MEMORY;
        for (bytes, expected) in [
            (one.clone(), 0),
            ([SKIPPABLE, &one].concat(), 0),
            ([SKIPPABLE, &one, &one].concat(), several),
            (b"1. e4 *".to_vec(), 0),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(memory_ahead(&path, 1 << 30), expected);
            assert_eq!(memory_ahead(&path, FRAME_MEMORY), 0);
        }
    }

    proptest! {
        #[test]
        fn frames_are_read_in_order(
            parts in proptest::collection::vec((".{0,200}", 1..400usize, any::<[bool; 3]>()), 0..9),
            trailing in "x{0,5}", damage: Option<(prop::sample::Index, u8)>,
        ) {
            let mut file = Vec::new();
            let mut expected: Vec<u8> = Vec::new();
            for (text, times, [has_checksum, has_size, is_skippable]) in parts {
                let text = text.repeat(times);
                file.extend(frame(text.as_bytes(), has_checksum, has_size));
                if is_skippable {
                    file.extend(SKIPPABLE);
                }
                expected.extend(text.as_bytes());
            }
            let has_frames = !file.is_empty();
            file.extend(trailing.as_bytes());
            if let Some((at, byte)) = damage.filter(|_| !file.is_empty()) {
                let at = at.index(file.len());
                file[at] = byte;
                let _ = read(&file);
            } else if has_frames {
                prop_assert_eq!(read(&file).unwrap(), expected);
            }
        }
    }
}

//! Inputs: files and standard input, packed or not.

use std::{
    fs::File,
    io::{self, Cursor, Read, Seek},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use crate::error::{At, Error, Result};

/// A source of PGN: a file, or standard input.
///
/// Whether it is packed is told by its first bytes, not by its name: gzip (many members), bzip2
/// (many streams), zstd (many frames) and zip (every `.pgn` member) are unpacked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// `None` for standard input.
    path: Option<PathBuf>,
}

/// The unpacked bytes of an [`Input`].
pub struct Stream {
    reader: Box<dyn Read + Send>,
    /// How many bytes have been taken from the input, packed as they are.
    pub taken: Arc<AtomicU64>,
    /// Whether the input is packed.
    pub is_packed: bool,
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buf)
    }
}

/// How an input is packed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Packing {
    None,
    Gzip,
    Bzip2,
    Zstd,
    Zip,
}

impl Packing {
    /// How many bytes tell the packing.
    const MAGIC: usize = 4;

    fn detect(start: &[u8]) -> Packing {
        match *start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9'] => Packing::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
            [b'P', b'K', 3, 4] | [b'P', b'K', 5, 6] => Packing::Zip,
            _ => Packing::None,
        }
    }
}

impl Input {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Input {
        Input {
            path: Some(path.into()),
        }
    }

    /// Standard input.
    pub fn stdin() -> Input {
        Input { path: None }
    }

    /// What the command line means by a name: `-` is standard input.
    pub fn from_argument(path: impl Into<PathBuf>) -> Input {
        let path = path.into();
        if path == Path::new("-") {
            Input::stdin()
        } else {
            Input::file(path)
        }
    }

    /// The file, or `-`.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new("-"))
    }

    /// Whether this is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// The name of the PGN for people, without directories and without the ending that its packing
    /// gave it, so that a file has the same name packed and unpacked.
    pub fn name(&self) -> String {
        let Some(path) = &self.path else {
            return "standard input".to_owned();
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        for packing in [".gz", ".bz2", ".zst", ".zip"] {
            if let Some(stem) = name.strip_suffix(packing) {
                let pgn = stem.to_ascii_lowercase().ends_with(".pgn");
                return if pgn {
                    stem.to_owned()
                } else {
                    format!("{stem}.pgn")
                };
            }
        }
        name.into_owned()
    }

    /// The size of the file as it is, packed or not; `None` where that is not known.
    pub fn size(&self) -> Option<u64> {
        let metadata = self.path.as_ref()?.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Makes sure that the input is there and can be read.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, or a directory.
    pub fn check(&self) -> Result<()> {
        match &self.path {
            Some(path) => open(path).map(drop),
            None => Ok(()),
        }
    }

    /// Opens the input for reading its unpacked bytes.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, a directory, or a zip archive that is damaged or holds no
    /// `.pgn` member.
    pub fn open(&self) -> Result<Stream> {
        let taken = Arc::new(AtomicU64::new(0));
        let path = self.path();
        let mut source: Box<dyn ReadSend> = match &self.path {
            Some(path) => Box::new(Counting::new(open(path)?, &taken)),
            None => Box::new(Counting::new(io::stdin(), &taken)),
        };
        let start = read_start(&mut source).at(path, "read")?;
        let packing = Packing::detect(&start);
        if packing == Packing::Zip {
            let reader = match &self.path {
                Some(path) => unzip(path, Counting::new(open(path)?, &taken))?,
                None => {
                    // The table of contents of a zip archive stands at its end.
                    let mut spool = tempfile::tempfile().at(path, "make a temporary file for")?;
                    io::copy(&mut Cursor::new(start).chain(source), &mut spool)
                        .at(path, "copy to a temporary file")?;
                    unzip(path, spool)?
                }
            };
            return Ok(Stream {
                reader,
                taken,
                is_packed: true,
            });
        }
        let source = Cursor::new(start).chain(source);
        let reader: Box<dyn Read + Send> = match packing {
            Packing::None => Box::new(source),
            Packing::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(
                1 << 17,
                source,
            ))),
            Packing::Bzip2 => Box::new(MultiBzDecoder::new(source)),
            Packing::Zstd => {
                let mut decoder = zstd::Decoder::new(source).at(path, "unpack")?;
                // Archives made with --long need more than the default window.
                decoder.window_log_max(31).at(path, "unpack")?;
                Box::new(decoder)
            }
            Packing::Zip => unreachable!("handled above"),
        };
        Ok(Stream {
            reader,
            taken,
            is_packed: packing != Packing::None,
        })
    }
}

trait ReadSend: Read + Send {}
impl<R: Read + Send> ReadSend for R {}

fn open(path: &Path) -> Result<File> {
    let file = File::open(path).at(path, "open")?;
    let metadata = file.metadata().at(path, "open")?;
    if metadata.is_dir() {
        return Err(Error::file(
            path,
            "is a directory: name the PGN files in it",
        ));
    }
    Ok(file)
}

/// The first bytes, fewer if there are no more.
fn read_start(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(Packing::MAGIC);
    source.take(Packing::MAGIC as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Counts the bytes that pass.
struct Counting<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R> Counting<R> {
    fn new(inner: R, taken: &Arc<AtomicU64>) -> Counting<R> {
        Counting {
            inner,
            taken: Arc::clone(taken),
        }
    }
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl<R: Seek> Seek for Counting<R> {
    fn seek(&mut self, pos: io::SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

/// The `.pgn` members of a zip archive one after the other, a line break between two.
fn unzip(path: &Path, archive: impl Read + Seek + Send + 'static) -> Result<Box<dyn Read + Send>> {
    let damaged = |err: zip::result::ZipError| Error::file(path, format!("damaged zip: {err}"));
    let mut archive = ZipArchive::new(archive).map_err(damaged)?;
    let members: Vec<usize> = (0..archive.len())
        .filter(|i| {
            archive.name_for_index(*i).is_some_and(|name| {
                name.is_ok_and(|name| name.to_ascii_lowercase().ends_with(".pgn"))
            })
        })
        .collect();
    if members.is_empty() {
        return Err(Error::file(path, "holds no .pgn file"));
    }

    // A member borrows the archive, so a thread holds both and sends what it unpacks.
    let (sender, receiver) = mpsc::sync_channel(4);
    thread::spawn(move || {
        let unpack = || -> io::Result<()> {
            for (i, member) in members.into_iter().enumerate() {
                if i > 0 && sender.send(Ok(b"\n".to_vec())).is_err() {
                    return Ok(());
                }
                let mut member = archive.by_index(member).map_err(io::Error::other)?;
                loop {
                    let mut chunk = Vec::with_capacity(1 << 17);
                    (&mut member).take(1 << 17).read_to_end(&mut chunk)?;
                    if chunk.is_empty() {
                        break;
                    }
                    if sender.send(Ok(chunk)).is_err() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        if let Err(err) = unpack() {
            // Nobody listens any more if this fails.
            let _ = sender.send(Err(err));
        }
    });
    Ok(Box::new(Received {
        receiver,
        chunk: Cursor::default(),
    }))
}

/// Reads what another thread sends.
struct Received {
    receiver: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
}

impl Read for Received {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            match self.receiver.recv() {
                Ok(chunk) => self.chunk = Cursor::new(chunk?),
                Err(_) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PGN: &[u8] = b"[Event \"x\"]\n\n1. e4 *\n";

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games");
        std::fs::write(&path, bytes).unwrap();
        let mut text = Vec::new();
        let mut stream = Input::file(&path).open()?;
        stream.read_to_end(&mut text).at(&path, "unpack")?;
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
    fn every_packing_is_told_by_content() {
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
        for path in ["/x/a.pgn", "a.pgn.gz", "a.pgn.zst", "a.zip", "b/a.pgn.bz2"] {
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
}

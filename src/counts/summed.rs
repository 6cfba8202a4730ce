//! Files and the checksums of their bytes.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use crc32fast::Hasher;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

/// A file that is written, and the CRC-32 of its bytes so far.
pub(super) struct SummedFile {
    file: File,
    hasher: Hasher,
}

impl SummedFile {
    pub(super) fn new(file: File) -> SummedFile {
        SummedFile {
            file,
            hasher: Hasher::new(),
        }
    }

    pub(super) fn crc32(&self) -> u32 {
        self.hasher.clone().finalize()
    }
}

impl Write for SummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The CRC-32 of a file.
pub(super) fn crc32_of(file: &mut File) -> io::Result<u32> {
    let mut sum = Hasher::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(sum.finalize()),
            Ok(read) => sum.update(&buffer[..read]),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_has_the_checksum_of_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = SummedFile::new(File::create_new(&path).unwrap());
        for _ in 0..BUFFER {
            file.write_all(b"123456789").unwrap();
        }
        assert_eq!(
            crc32_of(&mut File::open(&path).unwrap()).unwrap(),
            file.crc32()
        );
        let mut check = SummedFile::new(File::create(&path).unwrap());
        check.write_all(b"123456789").unwrap();
        // The check value of the catalogue of CRCs.
        assert_eq!(check.crc32(), 0xcbf4_3926);
    }
}

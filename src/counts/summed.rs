//! Files and the checksums of their bytes.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    sync::Mutex,
};

use crc32fast::Hasher;

use crate::{positioned::read_exact_at, task};

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

/// The checksums of those ranges of a file that were read.
#[derive(Debug, Default)]
pub(super) struct RangeSums(Mutex<BTreeMap<u64, Hasher>>);

impl RangeSums {
    /// Sums up bytes that begin at `start`. A range that is there already stays as it was.
    pub(super) fn add(&self, start: u64, bytes: &[u8]) {
        if bytes.is_empty() || task::lock(&self.0).contains_key(&start) {
            return;
        }
        let mut sum = Hasher::new();
        sum.update(bytes);
        task::lock(&self.0).entry(start).or_insert(sum);
    }

    /// The CRC-32 of all bytes of the file. Only those are read that were not.
    pub(super) fn crc32_of(&self, file: &File) -> io::Result<u32> {
        let mut all = Hasher::new();
        for (&start, sum) in &*task::lock(&self.0) {
            // A range that begins in the one before is read again.
            if start >= all.total_len() {
                update(&mut all, file, start)?;
                all.combine(sum);
            }
        }
        update(&mut all, file, file.metadata()?.len())?;
        Ok(all.finalize())
    }
}

/// Sums up the bytes of a file that follow those summed up, to an end.
fn update(sum: &mut Hasher, file: &File, end: u64) -> io::Result<()> {
    let mut buffer = Vec::new();
    while sum.total_len() < end {
        let left = end - sum.total_len();
        buffer.resize(left.min(BUFFER as u64) as usize, 0);
        read_exact_at(file, &mut buffer, sum.total_len())?;
        sum.update(&buffer);
    }
    Ok(())
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
        let written = File::open(&path).unwrap();
        let sum = |sums: &RangeSums| sums.crc32_of(&written).unwrap();
        assert_eq!(sum(&RangeSums::default()), file.crc32());

        // Two ranges, the second in two halves; one in the other; and one that was read with other bytes.
        let bytes = std::fs::read(&path).unwrap();
        let sums = RangeSums::default();
        for range in [4..1000, 5000..5001, 5001..7000, 500..2000, 4..9, 0..0] {
            sums.add(range.start as u64, &bytes[range]);
        }
        assert_eq!(sum(&sums), file.crc32());
        sums.add(9000, b"other");
        assert_ne!(sum(&sums), file.crc32());
        let mut check = SummedFile::new(File::create(&path).unwrap());
        check.write_all(b"123456789").unwrap();
        // The check value of the catalogue of CRCs.
        assert_eq!(check.crc32(), 0xcbf4_3926);
    }
}

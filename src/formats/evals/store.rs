//! Opens a store of evaluations, and finds the evaluations of positions.

use std::{
    borrow::Cow,
    fs::File,
    path::{Path, PathBuf},
};

use shakmaty::{Chess, Move, Position};

use super::layout::{
    CHECKSUM_SIZE, Eval, EvalRecord, FIRST_BYTES, Footer, MAX_FOOTER, RECORD_SIZE,
    RECORDS_PER_BLOCK, eval_key, with_origins,
};
use crate::{
    chess::position::Rules,
    error::{Advice, At, Diagnosis, Error, ErrorKind, Result},
    kind::{EVALS, FileKind},
    storage::checksum::Checksum,
    storage::keyed::{Storage, key_of},
    storage::positioned::{StoredFile, read_exact_at},
};

/// An open store of evaluations, a file that contains one evaluation for each of many positions. Several threads may
/// use a store at the same time.
#[derive(Debug)]
pub struct Evals {
    path: PathBuf,
    storage: Storage<RECORD_SIZE>,
    checksum: Checksum,
    origins: Vec<String>,
}

/// Two stores are equal if they have the same number of evaluations and the same checksum.
impl PartialEq for Evals {
    fn eq(&self, other: &Evals) -> bool {
        (self.len(), self.checksum) == (other.len(), other.checksum)
    }
}

impl Evals {
    /// Opens a store of evaluations. Each lookup reads a few blocks of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not a store, or has an unsupported version of the format. Also
    /// returns an error if the start or the end of the file is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Evals> {
        let path = path.as_ref();
        let file = File::open(path).at(path, "open")?;
        let size = file.metadata().at(path, "open")?.len();
        let mut start = [0; RECORD_SIZE];
        let has_start = size >= RECORD_SIZE as u64;
        if has_start {
            read_exact_at(&file, &mut start, 0).at(path, "read")?;
        }
        if !has_start || !start.starts_with(EVALS) {
            let start = FileKind::start_of_file(path).at(path, "read")?;
            let how = "make a store with polybook evals";
            let problem = FileKind::problem(path, &start, "a store of evaluations", how);
            return Err(Error::foreign(path, problem));
        }
        if start != FIRST_BYTES {
            let problem =
                Diagnosis::new("this store of evaluations was made by another version of polybook")
                    .advise("use that version")
                    .advise(Advice::option("make the store again with {}", "force"));
            return Err(Error::foreign(path, problem));
        }
        let (footer, records) = read_footer(&file, size, path)?;
        let checksum = footer.checksum.parse().map_err(|_| cut_short(path))?;
        Ok(Evals {
            path: path.to_owned(),
            storage: Storage::File(StoredFile::new(file, path).at(path, "open")?, 1 + records),
            checksum,
            origins: footer.origins,
        })
    }

    /// Opens a store of evaluations. If its records take at most `memory` bytes, they are loaded into memory and their
    /// checksums are verified. Otherwise, each lookup verifies the checksums of the records that it reads.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`open`](Evals::open), and if a checksum of loaded records does not match.
    pub fn open_within(path: impl AsRef<Path>, memory: u64) -> Result<Evals> {
        let mut evals = Evals::open(path)?;
        if let Storage::File(file, len) = &evals.storage
            && *len <= memory / RECORD_SIZE as u64
        {
            let records = evals.storage.bytes(0, *len).at(&evals.path, "read")?;
            let records = records.into_owned();
            let mut sums = vec![0; (*len - 1).div_ceil(RECORDS_PER_BLOCK) as usize * CHECKSUM_SIZE];
            file.read_exact_at(&mut sums, *len * RECORD_SIZE as u64)
                .at(&evals.path, "read")?;
            let blocks = records[RECORD_SIZE..].chunks(RECORDS_PER_BLOCK as usize * RECORD_SIZE);
            for (number, (block, sum)) in blocks.zip(sums.as_chunks().0).enumerate() {
                evals.compare(number as u64, block, *sum)?;
            }
            evals.storage = Storage::Memory(records);
        }
        Ok(evals)
    }

    /// Returns the path from which the store was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the checksum of all evaluations as a hexadecimal string. Two stores with the same checksum have the same
    /// content.
    pub(crate) fn identity(&self) -> String {
        self.checksum.to_string()
    }

    /// Returns the number of positions that have an evaluation.
    pub fn len(&self) -> u64 {
        self.storage.len() - 1
    }

    /// Returns `true` if the store contains no evaluation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names of all origins of evaluations, sorted in ascending order. An origin is the source of an
    /// evaluation, such as `PGN` or the name of an engine. [`Eval::origin`] is an index into this slice.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// Returns the name of the origin of `eval`, an evaluation from this store. An origin is the source of an
    /// evaluation, such as `PGN` or the name of an engine.
    pub fn origin_of(&self, eval: Eval) -> &str {
        let name = self.origins.get(usize::from(eval.origin));
        name.map_or("", |name| name)
    }

    /// Returns the evaluation of the position with the key `key`, which [`eval_key`](super::eval_key) computes. Returns
    /// `None` if the store does not contain the position.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if a record that the lookup reads is damaged.
    pub fn find(&self, key: u64) -> Result<Option<Eval>> {
        let (bound, is_found) = self.storage.lower_bound(key).at(&self.path, "read")?;
        let Some(number) = bound.checked_sub(1) else {
            return Ok(None);
        };
        // Damaged keys can mislead the search. The store certainly has no record with the key if the record before the
        // bound has a smaller key, the record at the bound has a greater key, and the checksums of both match.
        let before = number.checked_sub(1).filter(|_| !is_found);
        let at = (number < self.len()).then_some(number);
        let mut block = (u64::MAX, Cow::Borrowed(&[][..]));
        let mut found = None;
        for (number, must_be_below) in [(before, true), (at, false)] {
            let Some(number) = number else { continue };
            if block.0 != number / RECORDS_PER_BLOCK {
                block = (
                    number / RECORDS_PER_BLOCK,
                    self.verified_block(number / RECORDS_PER_BLOCK)?,
                );
            }
            let place = (number % RECORDS_PER_BLOCK) as usize;
            let record = block.1.as_chunks::<RECORD_SIZE>().0.get(place);
            let record = record.ok_or_else(|| cut_short(&self.path))?;
            if (key_of(record) < key) != must_be_below {
                return Err(self.is_damaged("the keys are not in order"));
            }
            if !must_be_below && is_found {
                found = Some(self.read(record)?.eval);
            }
        }
        Ok(found)
    }

    /// Returns the bytes of the records in the block with the number `block`. Verifies the checksum of the block,
    /// unless the records were loaded into memory and verified when the store was opened.
    fn verified_block(&self, block: u64) -> Result<Cow<'_, [u8]>> {
        let first = block * RECORDS_PER_BLOCK;
        let count = RECORDS_PER_BLOCK.min(self.len().saturating_sub(first));
        let bytes = self
            .storage
            .bytes(1 + first, count)
            .at(&self.path, "read")?;
        if let Storage::File(file, len) = &self.storage {
            let mut sum = [0; CHECKSUM_SIZE];
            let offset = len * RECORD_SIZE as u64 + block * CHECKSUM_SIZE as u64;
            file.read_exact_at(&mut sum, offset)
                .at(&self.path, "read")?;
            self.compare(block, &bytes, sum)?;
        }
        Ok(bytes)
    }

    /// Compares the checksum of `bytes`, the records of a block, with the stored checksum `sum`. Returns an error if
    /// they differ. `block` is the number of the block, from which the error message gets the offset.
    fn compare(&self, block: u64, bytes: &[u8], sum: [u8; CHECKSUM_SIZE]) -> Result<()> {
        if crc32c::crc32c(bytes) == u32::from_be_bytes(sum) {
            return Ok(());
        }
        let offset = (1 + block * RECORDS_PER_BLOCK) * RECORD_SIZE as u64;
        Err(self.is_damaged(&format!(
            "the checksum of the {} bytes at byte {offset} differs",
            bytes.len()
        )))
    }

    /// Returns the evaluation of the position `pos`, or `None` if the store does not contain it. Always returns
    /// `None` for variants other than standard chess and Chess960, because a store contains no evaluations of them.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`find`](Evals::find).
    pub fn of_position<P: Rules>(&self, pos: &P) -> Result<Option<Eval>> {
        match pos.rules().number() {
            Some(0) => self.find(eval_key(pos)),
            _ => Ok(None),
        }
    }

    /// Returns the evaluation of the position after the move `mv`, or `None` if the store does not contain this
    /// position. `mv` must be legal in `pos`.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`find`](Evals::find).
    pub fn after<P: Rules>(&self, pos: &P, mv: Move) -> Result<Option<Eval>> {
        let mut after = pos.clone();
        after.play_unchecked(mv);
        self.of_position(&after)
    }

    /// Returns `true` if the store contains the position after any legal move in `pos`.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`find`](Evals::find).
    pub(super) fn continues(&self, pos: &Chess) -> Result<bool> {
        for mv in pos.legal_moves() {
            if self.after(pos, mv)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the bytes of the records in up to `blocks` consecutive blocks, beginning with the block number
    /// `first`. Returns fewer blocks at the end of the store.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if a checksum does not match.
    pub(super) fn blocks(&self, first: u64, blocks: u64) -> Result<Vec<u8>> {
        let end = self.len().div_ceil(RECORDS_PER_BLOCK).min(first + blocks);
        let mut bytes = Vec::new();
        for block in first..end {
            bytes.extend_from_slice(&self.verified_block(block)?);
        }
        Ok(bytes)
    }

    /// Returns all positions in the store of evaluations, in ascending order of their keys.
    pub(super) fn positions(&self) -> Result<Vec<Chess>> {
        let mut positions = Vec::new();
        while (positions.len() as u64) < self.len() {
            let bytes = self.blocks(positions.len() as u64 / RECORDS_PER_BLOCK, 1)?;
            for record in bytes.as_chunks().0 {
                let pos = self.read(record)?.position();
                positions.push(pos.ok_or_else(|| self.is_damaged("a record has no position"))?);
            }
        }
        Ok(positions)
    }

    /// Decodes a record of this store from its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the score or the origin of the record is invalid.
    pub(super) fn read(&self, bytes: &[u8; RECORD_SIZE]) -> Result<EvalRecord> {
        let record = EvalRecord::from_bytes(bytes);
        let known = record.filter(|record| usize::from(record.eval.origin) < self.origins.len());
        known.ok_or_else(|| self.is_damaged("a record has no score or no origin"))
    }

    /// Reads the whole store and verifies it: keys must ascend, records must be valid, and all checksums must match.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is damaged.
    pub fn check(&self) -> Result<()> {
        let (mut sum, mut last) = (Checksum::default(), 0);
        for block in 0..self.len().div_ceil(RECORDS_PER_BLOCK) {
            let bytes = self.verified_block(block)?;
            for record in bytes.as_chunks::<RECORD_SIZE>().0 {
                if key_of(record) <= last {
                    return Err(self.is_damaged("the keys are not in order"));
                }
                last = key_of(record);
                self.read(record)?;
                sum.add(record);
            }
        }
        if with_origins(sum, &self.origins) == self.checksum {
            Ok(())
        } else {
            Err(self.is_damaged("the checksum does not match the records"))
        }
    }

    /// Verifies the whole store like [`check`](Evals::check), but returns a description of any damage instead of an
    /// error. Returns `None` if the store is not damaged.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn fault(&self) -> Result<Option<String>> {
        match self.check() {
            Err(Error::File {
                kind: ErrorKind::Damaged,
                problem,
                ..
            }) => Ok(Some(problem.text().to_owned())),
            checked => checked.map(|()| None),
        }
    }

    fn is_damaged(&self, problem: &str) -> Error {
        let problem =
            format!("this store of evaluations is damaged: {problem}; make the store again");
        Error::damaged(&self.path, problem)
    }
}

fn cut_short(path: &Path) -> Error {
    let problem = "this store of evaluations is damaged: the end is missing or was changed; make the store again";
    Error::damaged(path, problem)
}

/// Reads the footer of a store of evaluations, the JSON document at its end. Checks that the footer is consistent
/// with `size`, the size of the file in bytes. Returns the footer and the number of records.
fn read_footer(file: &File, size: u64, path: &Path) -> Result<(Footer, u64)> {
    /// The size in bytes of the last two fields of a store. These fields contain the checksum and the length of the
    /// JSON document, which they follow.
    const TRAILER_SIZE: u64 = 8;
    let damaged = || cut_short(path);
    let rest = size
        .checked_sub(RECORD_SIZE as u64 + TRAILER_SIZE)
        .ok_or_else(damaged)?;
    let mut end = [0; TRAILER_SIZE as usize];
    read_exact_at(file, &mut end, size - TRAILER_SIZE).at(path, "read")?;
    let [sum, length] = *end.as_chunks::<CHECKSUM_SIZE>().0 else {
        unreachable!("eight bytes are two numbers");
    };
    let length = u64::from(u32::from_be_bytes(length));
    let before = rest
        .checked_sub(length)
        .filter(|_| length <= MAX_FOOTER)
        .ok_or_else(damaged)?;
    let mut text = vec![0; length as usize];
    read_exact_at(file, &mut text, size - TRAILER_SIZE - length).at(path, "read")?;
    if crc32c::crc32c(&text) != u32::from_be_bytes(sum) {
        return Err(damaged());
    }
    let footer: Footer = serde_json::from_slice(&text).map_err(|_| damaged())?;
    let records = footer.evaluations;
    let bytes = records.checked_mul(RECORD_SIZE as u64);
    let bytes = bytes.and_then(|bytes| {
        bytes.checked_add(records.div_ceil(RECORDS_PER_BLOCK) * CHECKSUM_SIZE as u64)
    });
    if bytes == Some(before) && footer.origins.is_sorted() {
        Ok((footer, records))
    } else {
        Err(damaged())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        formats::evals::{EvalsFormat, MakeEvals},
        games::pgn::Input,
    };

    /// Returns a store of some positions.
    fn store() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let (pgn, out) = (dir.path().join("a.pgn"), dir.path().join("a.evals"));
        let text =
            "1. e4 {[%eval 0.1]} e5 {[%eval 0.2,9]} 2. Nf3 {[%eval #4]} Nc6 {[%eval -3.0]} *";
        std::fs::write(&pgn, text).unwrap();
        let make = MakeEvals::new([Input::file(&pgn)]);
        make.run(&out, EvalsFormat::Store).unwrap();
        std::fs::read(out).unwrap()
    }

    /// Returns a store of more than two blocks and its keys. The score of each position is its key.
    fn large_store() -> (Vec<u8>, Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a.evals");
        let mut writer =
            crate::formats::evals::maker::begin_output(&out, EvalsFormat::Store, false)
                .unwrap()
                .0;
        let keys: Vec<u64> = (1..=2 * RECORDS_PER_BLOCK + 9)
            .map(|key| key << 50)
            .collect();
        let origins = ["a".to_owned()];
        for key in &keys {
            let eval = Eval {
                score: crate::formats::evals::Score::centipawns((*key >> 50) as i64),
                depth: 9,
                nodes: 7,
                origin: 0,
            };
            let record = EvalRecord::new(&Chess::default(), *key, eval).unwrap();
            writer.push(&record, &origins).unwrap();
        }
        writer.finish(&origins).unwrap().commit().unwrap();
        (std::fs::read(out).unwrap(), keys)
    }

    /// Opens and reads bytes as a store.
    fn read(bytes: &[u8]) -> Result<Vec<Option<Eval>>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let evals = Evals::open(file.path())?;
        evals.check()?;
        (0..9).map(|key| evals.find(key << 60)).collect()
    }

    proptest! {
        #[test]
        fn damage_is_an_error(place: prop::sample::Index, bit in 0..8u8, cut: bool) {
            let mut bytes = store();
            let place = place.index(bytes.len());
            if cut { bytes.truncate(place) } else { bytes[place] ^= 1 << bit }
            prop_assert!(read(&bytes).is_err(), "{}", place);
        }

        /// Flips one bit of a store. Each look-up must then fail or return what it returns in the undamaged store.
        /// Tests stores in a file and in memory, with keys that the store contains and keys that it does not contain.
        #[test]
        fn a_flipped_bit_never_changes_an_answer(place: prop::sample::Index, bit in 0..8u8, near in 0..999u64) {
            let (mut bytes, keys) = large_store();
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            for most in [0, 1 << 20] {
                let Ok(evals) = Evals::open_within(file.path(), most) else { continue };
                for (number, key) in keys.iter().enumerate() {
                    let found = |key| evals.find(key).map(|eval| eval.map(|eval| (eval.score.to_code(), eval.depth, eval.nodes)));
                    if let Ok(found) = found(*key) {
                        prop_assert_eq!(found, Some((number as i16 + 1, 9, 7)), "{}", place);
                    }
                    if let Ok(found) = found(*key + 1 + near) {
                        prop_assert_eq!(found, None, "{}", place);
                    }
                }
            }
        }

        #[test]
        fn a_damaged_store_that_is_not_checked_answers_or_refuses(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), key: u64,
        ) {
            let mut bytes = store();
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            if let Ok(evals) = Evals::open(file.path()) {
                let _ = evals.find(key);
                let _ = evals.find(0);
                let _ = evals.check();
            }
        }
    }

    #[test]
    fn a_store_that_is_cut_or_replaced_while_it_is_open() {
        let bytes = store();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.evals");
        std::fs::write(&path, &bytes).unwrap();
        let [evals, in_memory] = [0, 1 << 20].map(|most| Evals::open_within(&path, most).unwrap());
        let last = key_of(
            bytes[RECORD_SIZE..].as_chunks::<RECORD_SIZE>().0[3..]
                .first()
                .unwrap(),
        );
        let before = evals.find(last).unwrap();
        assert!(before.is_some());
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(2 * RECORD_SIZE as u64)
            .unwrap();
        let error = evals.find(last).unwrap_err().to_string();
        assert!(error.contains("a.evals"), "{error}");
        assert!(evals.check().is_err());
        assert_eq!(in_memory.find(last).unwrap(), before);
        drop(evals);
        // If another file replaces the store, the open store is unchanged.
        std::fs::write(&path, &bytes).unwrap();
        let evals = Evals::open(&path).unwrap();
        let other = dir.path().join("b.evals");
        std::fs::write(&other, b"another").unwrap();
        if std::fs::rename(&other, &path).is_ok() {
            assert_eq!(evals.find(last).unwrap(), before);
        }
    }

    #[test]
    fn damage_is_reported_with_its_place() {
        let (mut bytes, keys) = large_store();
        let damaged = RECORD_SIZE * (1 + RECORDS_PER_BLOCK as usize + 3) + 33;
        bytes[damaged] ^= 1;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let evals = Evals::open(file.path()).unwrap();
        let error = evals
            .find(keys[RECORDS_PER_BLOCK as usize + 3])
            .unwrap_err();
        let [text, in_memory] = [
            error.to_string(),
            Evals::open_within(file.path(), 1 << 20)
                .unwrap_err()
                .to_string(),
        ];
        let block = RECORD_SIZE * (1 + RECORDS_PER_BLOCK as usize);
        let says = format!("the checksum of the 2816 bytes at byte {block} differs");
        let name = file.path().display().to_string();
        assert!(text.contains(&says) && text.contains(&name), "{text}");
        assert_eq!(in_memory, text);
        // The neighboring blocks are intact.
        assert!(evals.find(keys[0]).unwrap().is_some());
        assert!(
            evals
                .find(keys[2 * RECORDS_PER_BLOCK as usize])
                .unwrap()
                .is_some()
        );
        assert!(evals.find(*keys.last().unwrap() + 1).unwrap().is_none());
    }

    #[test]
    fn a_sound_store_is_read() {
        assert!(read(&store()).is_ok());
    }
}

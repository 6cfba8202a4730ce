//! Opening a store and looking positions up.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use shakmaty::{Chess, Move};

use super::layout::{
    Eval, EvalRecord, Footer, MOST_OF_FOOTER, RECORD, START, eval_key, with_origins,
};
use crate::{
    checksum::Checksum,
    error::{At, Error, Result},
    keyed::{Storage, key_of},
    kind::EVALS,
    position::Rules,
    positioned::read_exact_at,
};

/// A store of evaluations that is open. Any number of threads may use it at the same time.
#[derive(Debug)]
pub struct Evals {
    path: PathBuf,
    storage: Storage<RECORD>,
    checksum: Checksum,
    origins: Vec<String>,
}

/// Stores are alike if their evaluations are.
impl PartialEq for Evals {
    fn eq(&self, other: &Evals) -> bool {
        (self.len(), self.checksum) == (other.len(), other.checksum)
    }
}

impl Evals {
    /// Opens a store. Looking a position up takes a few reads.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that is not a store, or that is cut short.
    pub fn open(path: impl AsRef<Path>) -> Result<Evals> {
        let path = path.as_ref();
        let file = File::open(path).at(path, "open")?;
        let size = file.metadata().at(path, "open")?.len();
        let mut start = [0; RECORD];
        let has_start = size >= RECORD as u64;
        if has_start {
            read_exact_at(&file, &mut start, 0).at(path, "read")?;
        }
        if !has_start || !start.starts_with(EVALS) {
            let problem = "not a store of evaluations: make one with polybook evals";
            return Err(Error::foreign(path, problem));
        }
        if start != START {
            let problem = "a store of evaluations of a newer version of polybook: use that version, or make it again";
            return Err(Error::foreign(path, problem));
        }
        let (footer, records) = read_footer(&file, size, path)?;
        let checksum = footer.checksum.parse().map_err(|_| cut_short(path))?;
        Ok(Evals {
            path: path.to_owned(),
            storage: Storage::File(file, 1 + records),
            checksum,
            origins: footer.origins,
        })
    }

    /// Opens a store, and reads it into memory if it takes at most `memory` bytes there.
    ///
    /// # Errors
    ///
    /// As [`open`](Evals::open).
    pub fn open_within(path: impl AsRef<Path>, memory: u64) -> Result<Evals> {
        let mut evals = Evals::open(path)?;
        evals.storage = evals.storage.within(memory).at(&evals.path, "read")?;
        Ok(evals)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checksum, which changes with any evaluation.
    pub(crate) fn identity(&self) -> String {
        self.checksum.to_string()
    }

    /// How many positions there are.
    pub fn len(&self) -> u64 {
        self.storage.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where evaluations are from, by their numbers.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// The name of where an evaluation is from.
    pub fn origin_of(&self, eval: Eval) -> &str {
        let name = self.origins.get(usize::from(eval.origin));
        name.map_or("", |name| name)
    }

    /// The evaluation of the position with this [key](super::eval_key).
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is damaged.
    pub fn find(&self, key: u64) -> Result<Option<Eval>> {
        let found = self.storage.find(key).at(&self.path, "read")?;
        let Some(place) = found.filter(|place| *place > 0) else {
            return Ok(None);
        };
        let bytes = self.storage.bytes(place, 1).at(&self.path, "read")?;
        let [record] = bytes.as_chunks().0 else {
            return Err(cut_short(&self.path));
        };
        Ok(Some(self.read(record)?.eval))
    }

    /// The evaluation of a position. Positions of variants whose keys can be those of standard chess have none, except of
    /// Chess960.
    ///
    /// # Errors
    ///
    /// As [`find`](Evals::find).
    pub fn of_position<P: Rules>(&self, pos: &P) -> Result<Option<Eval>> {
        match pos.rules().number() {
            Some(0) => self.find(eval_key(pos)),
            _ => Ok(None),
        }
    }

    /// The evaluation of the position after a legal move.
    ///
    /// # Errors
    ///
    /// As [`find`](Evals::find).
    pub fn after<P: Rules>(&self, pos: &P, mv: Move) -> Result<Option<Eval>> {
        let mut after = pos.clone();
        after.play_unchecked(mv);
        self.of_position(&after)
    }

    /// The bytes of at most `count` records from a place on.
    pub(super) fn records(&self, first: u64, count: u64) -> Result<Vec<u8>> {
        let count = count.min(self.len() - first);
        let bytes = self
            .storage
            .bytes(1 + first, count)
            .at(&self.path, "read")?;
        Ok(bytes.into_owned())
    }

    /// All positions, in the order of their keys.
    pub(super) fn positions(&self) -> Result<Vec<Chess>> {
        let mut positions = Vec::new();
        while (positions.len() as u64) < self.len() {
            let bytes = self.records(positions.len() as u64, 1 << 12)?;
            for record in bytes.as_chunks().0 {
                let pos = self.read(record)?.position();
                positions.push(pos.ok_or_else(|| self.is_damaged("a record has no position"))?);
            }
        }
        Ok(positions)
    }

    /// Reads a record.
    pub(super) fn read(&self, bytes: &[u8; RECORD]) -> Result<EvalRecord> {
        let record = EvalRecord::from_bytes(bytes);
        let known = record.filter(|record| usize::from(record.eval.origin) < self.origins.len());
        known.ok_or_else(|| self.is_damaged("a record has no score or no origin"))
    }

    /// Reads the whole store: keys must ascend, and the checksum must be that of the records.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that was changed.
    pub fn check(&self) -> Result<()> {
        self.fault()?
            .map_or(Ok(()), |fault| Err(self.is_damaged(fault)))
    }

    /// Reads the whole store, and returns what is wrong with it, if something is.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn fault(&self) -> Result<Option<&'static str>> {
        let (mut sum, mut last) = (Checksum::default(), 0);
        let mut first = 0;
        while first < self.len() {
            let bytes = self.records(first, 1 << 12)?;
            for record in bytes.as_chunks::<RECORD>().0 {
                if key_of(record) <= last {
                    return Ok(Some("its keys are not in order"));
                }
                last = key_of(record);
                if self.read(record).is_err() {
                    return Ok(Some("a record has no score or no origin"));
                }
                sum.add(record);
            }
            first += (bytes.len() / RECORD) as u64;
        }
        let differs = with_origins(sum, &self.origins) != self.checksum;
        Ok(differs.then_some("its checksum is not that of its records"))
    }

    fn is_damaged(&self, problem: &str) -> Error {
        let problem = format!("a damaged store of evaluations: {problem}; make it again");
        Error::damaged(&self.path, problem)
    }
}

fn cut_short(path: &Path) -> Error {
    let problem = "a damaged store of evaluations: its end is missing or changed; make it again";
    Error::damaged(path, problem)
}

/// The footer of a file of this size, and how many records are before it.
fn read_footer(file: &File, size: u64, path: &Path) -> Result<(Footer, u64)> {
    const LENGTH: u64 = 4;
    let damaged = || cut_short(path);
    let rest = size
        .checked_sub(RECORD as u64 + LENGTH)
        .ok_or_else(damaged)?;
    let mut length = [0; LENGTH as usize];
    read_exact_at(file, &mut length, size - LENGTH).at(path, "read")?;
    let length = u64::from(u32::from_be_bytes(length));
    let records = rest
        .checked_sub(length)
        .filter(|bytes| length <= MOST_OF_FOOTER && bytes.is_multiple_of(RECORD as u64));
    let records = records.ok_or_else(damaged)? / RECORD as u64;
    let mut text = vec![0; length as usize];
    read_exact_at(file, &mut text, size - LENGTH - length).at(path, "read")?;
    let footer: Footer = serde_json::from_slice(&text).map_err(|_| damaged())?;
    let has_all = footer.evaluations == records && footer.origins.is_sorted();
    match has_all {
        true => Ok((footer, records)),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        evals::{EvalsFormat, MakeEvals},
        pgn::Input,
    };

    /// A store of some positions.
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
            match cut {
                true => bytes.truncate(place),
                false => bytes[place] ^= 1 << bit,
            }
            prop_assert!(read(&bytes).is_err(), "{}", place);
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
            bytes[RECORD..].as_chunks::<RECORD>().0[3..]
                .first()
                .unwrap(),
        );
        let before = evals.find(last).unwrap();
        assert!(before.is_some());
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(2 * RECORD as u64)
            .unwrap();
        let error = evals.find(last).unwrap_err().to_string();
        assert!(error.contains("a.evals"), "{error}");
        assert!(evals.check().is_err());
        assert_eq!(in_memory.find(last).unwrap(), before);
        drop(evals);
        // One that is put in its place leaves the open one as it is.
        std::fs::write(&path, &bytes).unwrap();
        let evals = Evals::open(&path).unwrap();
        let other = dir.path().join("b.evals");
        std::fs::write(&other, b"another").unwrap();
        if std::fs::rename(&other, &path).is_ok() {
            assert_eq!(evals.find(last).unwrap(), before);
        }
    }

    #[test]
    fn a_sound_store_is_read() {
        assert!(read(&store()).is_ok());
    }
}

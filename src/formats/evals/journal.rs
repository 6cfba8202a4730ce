//! Saves the evaluations of an engine in a journal, a file next to the output. If a run is killed, the next run
//! continues from the journal.
//!
//! The file is a sequence of entries. An entry consists of the number of its bytes, their CRC-32C, and the bytes. The
//! first entry is a JSON document with the [settings](EngineSettings) of the engine, and the others are records of a
//! store. If the last entry is incomplete, because it was being written when the run was killed, it is cut off. If the
//! checksum of any other entry does not match, the file is damaged, which is an error.

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde::Serialize;

use super::layout::{EvalRecord, RECORD_SIZE};
use crate::{
    error::{At, Error, Result, reason},
    storage::output::{FileId, RemovedAtEnd, shortened},
    task,
};

/// The size in bytes of the head of a journal entry. The head contains the length and the checksum of the entry's
/// content.
const HEAD_SIZE: usize = 8;

/// The maximum size in bytes of the engine's settings, which are the first entry of a journal.
const MAX_SETTINGS_SIZE: usize = 1 << 20;

/// The path and the identity of the journal file that this process has open. `None` if no journal is open, or if the
/// open journal contains no evaluations.
static CURRENT_JOURNAL: Mutex<Option<(PathBuf, FileId)>> = Mutex::new(None);

/// Returns the path of the journal of this process, a file that saves the evaluations of an engine, so that another run
/// can continue if this process ends early. Returns `None` if the process has no journal with evaluations, or if
/// another program has moved or replaced the file.
pub fn kept_journal() -> Option<PathBuf> {
    let (path, id) = task::lock(&CURRENT_JOURNAL).clone()?;
    (FileId::of(&path).ok()? == Some(id)).then_some(path)
}

/// The name and the settings of an engine. A journal stores them, because a run can continue the journal only with
/// equal settings.
#[derive(Serialize)]
pub(super) struct EngineSettings<'a> {
    pub engine: &'a str,
    pub nodes: u64,
    pub options: &'a [(String, String)],
}

/// An open, locked journal: a file next to an output, which saves the evaluations of an engine. If the process is
/// killed, the next process can continue from the journal.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Whether the journal contains no evaluation. An empty journal is removed when this value is dropped.
    is_empty: bool,
    /// A guard that removes the file when a signal ends the process. It exists only while the journal contains no
    /// evaluation.
    removed_at_end: Option<RemovedAtEnd>,
    /// The offset at which the last whole entry ends.
    end: u64,
}

impl Journal {
    /// Opens or creates the journal for the output `out`, a file that saves the evaluations of an engine. Returns the
    /// journal and the evaluations in it. `wanted` contains the name and the settings of the engine that will add
    /// evaluations.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or written, or if another process has locked it. Also returns an
    /// error if the file is not a journal, is damaged, or contains evaluations that were made with other settings.
    pub(super) fn open(
        out: &Path,
        wanted: &EngineSettings<'_>,
    ) -> Result<(Journal, Vec<EvalRecord>)> {
        let path = path_of(out);
        let file = locked(&path)?;
        let first = serde_json::to_vec(wanted).expect("texts and numbers are JSON");
        let mut reader = BufReader::new(&file);
        let settings = next_entry(&mut reader, MAX_SETTINGS_SIZE).at(&path, "read")?;
        let JournalEntry::Whole(settings) = settings else {
            let mut begun = Vec::new();
            let expected = entry_of(&first);
            let length = expected.len() as u64;
            let read = reader.rewind().and_then(|()| {
                let mut start = reader.by_ref().take(length + 1);
                start.read_to_end(&mut begun)
            });
            read.at(&path, "read")?;
            let mut journal = Journal::new(path, file);
            if !expected.starts_with(&begun) {
                return Err(journal.is_foreign());
            }
            journal.begin(&first)?;
            return Ok((journal, Vec::new()));
        };
        let mut records = Vec::new();
        let mut whole = HEAD_SIZE + settings.len();
        let problem = loop {
            let bytes = match next_entry(&mut reader, RECORD_SIZE).at(&path, "read")? {
                JournalEntry::Whole(bytes) => bytes,
                JournalEntry::Torn => break None,
                JournalEntry::Damaged => break Some(damaged_at(&path, whole)),
            };
            whole += HEAD_SIZE + bytes.len();
            match bytes
                .try_into()
                .ok()
                .and_then(|bytes| EvalRecord::from_bytes(&bytes))
            {
                Some(record) => records.push(record),
                None => break Some(damaged_at(&path, whole)),
            }
        };
        let mut journal = Journal::new(path, file);
        if let Some(problem) = problem {
            return Err(problem);
        }
        if settings != first {
            // A journal without evaluations can be replaced, because nothing is lost.
            if !records.is_empty() || !settings.starts_with(b"{\"engine\":") {
                return Err(journal.is_foreign());
            }
            journal.begin(&first)?;
            return Ok((journal, records));
        }
        journal.end = whole as u64;
        if records.is_empty() {
            journal.mark_as_empty()?
        } else {
            journal.mark_as_used()
        }
        Ok((journal, records))
    }

    fn new(path: PathBuf, file: File) -> Journal {
        Journal {
            path,
            file,
            is_empty: false,
            removed_at_end: None,
            end: 0,
        }
    }

    /// Marks the journal as empty, so that it is removed when the run ends.
    fn mark_as_empty(&mut self) -> Result<()> {
        self.is_empty = true;
        *task::lock(&CURRENT_JOURNAL) = None;
        self.removed_at_end = Some(RemovedAtEnd::new(&self.path, &self.file)?);
        Ok(())
    }

    /// Marks the journal as used, so that it is kept when the run ends, and [`kept_journal`] returns it.
    fn mark_as_used(&mut self) {
        self.is_empty = false;
        self.removed_at_end = None;
        // If the file's identity is unknown, the journal is not named at the end of the run.
        let id = FileId::of_open(&self.file).ok();
        *task::lock(&CURRENT_JOURNAL) = id.map(|id| (self.path.clone(), id));
    }

    /// Clears the journal and writes `first`, the settings of the engine, as its first entry.
    fn begin(&mut self, first: &[u8]) -> Result<()> {
        self.end = 0;
        self.mark_as_empty()?;
        self.append(first)
    }

    fn is_foreign(&self) -> Error {
        let problem = "this is the journal of a run with another engine, other nodes or other options: repeat that \
                       run, or remove the file";
        Error::file(&self.path, problem)
    }

    /// Appends an evaluation to the journal.
    pub(super) fn push(&mut self, record: &EvalRecord) -> Result<()> {
        if !self.is_empty {
            return self.append(&record.to_bytes());
        }
        // A signal directly after the first evaluation must not remove the journal.
        self.mark_as_used();
        let written = self.append(&record.to_bytes());
        if written.is_err() {
            // The run ends because of the error, and then removes the journal without evaluations.
            self.mark_as_empty()?;
        }
        written
    }

    /// Appends an entry with the content `bytes` to the journal. If the file ends with an incomplete entry, which a
    /// killed process or a full disk can leave, removes this entry first.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let entry = entry_of(bytes);
        let cut = self.file.set_len(self.end);
        let written = cut.and_then(|()| self.file.write_all(&entry));
        written.at(&self.path, "write")?;
        self.end += entry.len() as u64;
        Ok(())
    }

    /// Returns `true` if the journal's path still leads to the open file. Returns `false` if another program has moved
    /// or replaced the file.
    fn is_in_place(&self) -> io::Result<bool> {
        let named = FileId::of(&self.path)?;
        Ok(named == Some(FileId::of_open(&self.file)?))
    }

    /// Removes the journal after its evaluations have been written to the output `out`.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be removed. Also returns an error if the path of the journal leads to
    /// another file, which is not removed. Both error messages say that `out` is complete.
    pub(super) fn remove(mut self, out: &Path) -> Result<()> {
        self.mark_as_used();
        let out = out.display();
        let removed = self
            .is_in_place()
            .and_then(|is_in_place| is_in_place.then(|| fs::remove_file(&self.path)).transpose());
        let problem = match removed {
            Ok(Some(())) => return Ok(()),
            Ok(None) => {
                format!(
                    "this file is no longer the journal of this run, so it was not removed; {out} is complete"
                )
            }
            Err(err) => {
                let why = reason(&err);
                format!(
                    "this journal cannot be removed ({why}): {out} is complete, so remove the journal yourself"
                )
            }
        };
        Err(Error::failed(&self.path, problem))
    }
}

impl Drop for Journal {
    /// Removes the journal if it contains no evaluation, and releases its lock. The lock is released explicitly,
    /// because a child process that has inherited the file would otherwise keep it locked.
    fn drop(&mut self) {
        if self.is_empty && self.is_in_place().unwrap_or(false) {
            // If this fails, the next run reads the journal, which contains no evaluations.
            let _ = fs::remove_file(&self.path);
        }
        *task::lock(&CURRENT_JOURNAL) = None;
        // If unlocking fails, closing the file releases the lock.
        let _ = self.file.unlock();
    }
}

/// Returns the path of the journal for the output `out`. If the output is a symbolic link, the link is resolved
/// first, so that all links to an output share one journal.
fn path_of(out: &Path) -> PathBuf {
    /// The maximum length of a file name in bytes.
    const MAX_NAME_LENGTH: usize = 255;
    const ENDING: &str = ".journal";
    let target = fs::read_link(out).and_then(|_| fs::canonicalize(out));
    let out = target.as_deref().unwrap_or(out);
    let name = out.file_name().unwrap_or_default();
    let mut name = shortened(name, MAX_NAME_LENGTH - ENDING.len()).into_owned();
    name.push(ENDING);
    out.with_file_name(name)
}

/// Opens the journal at `path`, or creates it, and locks it.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, if it is not a regular file, or if another process has locked it.
fn locked(path: &Path) -> Result<File> {
    /// The maximum number of attempts to open and lock a journal. An attempt fails if another process removes the
    /// journal after it was opened and before it is locked.
    const MAX_LOCK_ATTEMPTS: usize = 100;
    for _ in 0..MAX_LOCK_ATTEMPTS {
        // A link could lead to a file of another program, and reading a pipe could wait forever.
        match fs::symlink_metadata(path) {
            Ok(found) if !found.is_file() => {
                let problem =
                    "the journal is not a regular file: remove it, or choose another output";
                return Err(Error::foreign(path, problem));
            }
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err).at(path, "open"),
            _ => {}
        }
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let file = options.open(path).at(path, "open")?;
        // Some file systems have no locks, so other errors are ignored.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            break;
        }
        // A run that ends removes its journal. If it did so before the lock, the locked file has no name.
        let named = FileId::of(path).at(path, "open")?;
        if named == Some(FileId::of_open(&file).at(path, "open")?) {
            return Ok(file);
        }
    }
    let problem = "another run of polybook is writing this journal: wait until that run ends";
    Err(Error::file(path, problem))
}

/// Encodes an entry of a journal with the content `bytes`. The result contains the length of `bytes`, their checksum,
/// and `bytes`.
fn entry_of(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u32;
    let sum = crc32c::crc32c(bytes);
    [&length.to_be_bytes(), &sum.to_be_bytes(), bytes].concat()
}

/// The result of reading one entry of a journal, the file in which a run saves the evaluations of its engine so that a
/// killed run can be continued.
enum JournalEntry {
    /// The bytes of a complete entry.
    Whole(Vec<u8>),
    /// The end of the journal, or an entry that was being written when the run was killed.
    Torn,
    /// Bytes that are not an entry of a journal, or an entry that was changed after it was written.
    Damaged,
}

/// Reads the next entry of a journal. An entry whose content is longer than `max_length` bytes counts as damaged. An
/// entry with a wrong checksum counts as incomplete if only zeros follow it, because a power failure can leave a file
/// with such an end.
fn next_entry(reader: &mut impl BufRead, max_length: usize) -> io::Result<JournalEntry> {
    let read = |reader: &mut dyn BufRead, length: usize| {
        let mut bytes = Vec::new();
        reader.take(length as u64).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let Ok(head) = <[u8; HEAD_SIZE]>::try_from(read(reader, HEAD_SIZE)?) else {
        return Ok(JournalEntry::Torn);
    };
    let [length, sum] = [&head[..4], &head[4..]].map(|number| {
        let number = number.try_into().expect("a number has four bytes");
        u32::from_be_bytes(number)
    });
    if length as usize > max_length {
        return Ok(JournalEntry::Damaged);
    }
    let entry = read(reader, length as usize)?;
    if entry.len() < length as usize {
        return Ok(JournalEntry::Torn);
    }
    if crc32c::crc32c(&entry) == sum && !entry.is_empty() {
        return Ok(JournalEntry::Whole(entry));
    }
    let is_end = is_zero(reader)? && (length > 0 || head == [0; HEAD_SIZE]);
    Ok(if is_end {
        JournalEntry::Torn
    } else {
        JournalEntry::Damaged
    })
}

/// Reads the rest of the file, and returns `true` if it contains only zero bytes.
fn is_zero(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        let length = bytes.len();
        if length == 0 {
            return Ok(true);
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        reader.consume(length);
    }
}

fn damaged_at(path: &Path, offset: usize) -> Error {
    let problem = format!(
        "the journal is damaged at byte {offset}: move the journal away, or remove it to evaluate the positions again"
    );
    Error::damaged(path, problem)
}

#[cfg(test)]
mod tests {
    use shakmaty::Chess;

    use super::*;
    use crate::formats::evals::{Eval, Score};

    #[test]
    fn a_journal_whose_first_evaluation_cannot_be_written_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a.evals");
        let asked = EngineSettings {
            engine: "an engine",
            nodes: 7,
            options: &[],
        };
        let (mut journal, _) = Journal::open(&out, &asked).unwrap();
        journal.file = File::open(&journal.path).unwrap();
        let eval = Eval {
            score: Score::centipawns(1),
            depth: 9,
            nodes: 1,
            origin: 0,
        };
        let record = EvalRecord::new(&Chess::default(), 1, eval).unwrap();
        journal.push(&record).unwrap_err();
        let path = journal.path.clone();
        drop(journal);
        assert!(!path.exists());
    }

    #[test]
    fn whatever_was_written_last_is_whole_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a.evals");
        let path = dir.path().join("a.evals.journal");
        let options = [("Hash".to_owned(), "16".to_owned())];
        let asked = |nodes| EngineSettings {
            engine: "an engine",
            nodes,
            options: &options,
        };
        let record = |number: i64| {
            let eval = Eval {
                score: Score::centipawns(number),
                depth: 9,
                nodes: 1,
                origin: 0,
            };
            EvalRecord::new(&Chess::default(), number as u64, eval).unwrap()
        };
        let (mut journal, records) = Journal::open(&out, &asked(7)).unwrap();
        assert!(records.is_empty());
        let all: Vec<EvalRecord> = (1..4).map(record).collect();
        all.iter().for_each(|record| journal.push(record).unwrap());
        drop(journal);
        let bytes = fs::read(&path).unwrap();
        let size = HEAD_SIZE + record(1).to_bytes().len();
        for cut in 0..=bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            let (mut journal, records) = Journal::open(&out, &asked(7)).unwrap();
            let whole = cut.saturating_sub(bytes.len() - 3 * size) / size;
            assert_eq!(records, all[..whole], "{cut}");
            // New evaluations follow the last whole entry.
            journal.push(&all[2]).unwrap();
            drop(journal);
            let (_, records) = Journal::open(&out, &asked(7)).unwrap();
            assert_eq!(records, [&all[..whole], &all[2..]].concat(), "{cut}");
        }
        // A power cut can leave zeros instead of the last entries.
        for zeros in 0..2 * size {
            let mut cut = bytes.clone();
            let written = bytes.len() - zeros;
            cut[written..].fill(0);
            fs::write(&path, cut).unwrap();
            let (_, records) = Journal::open(&out, &asked(7)).unwrap();
            let whole = all.len() - zeros.div_ceil(size);
            assert!(
                records.len() >= whole && all.starts_with(&records),
                "{zeros}"
            );
        }
        // A write that failed leaves a part of an entry, which the next entry must not follow.
        fs::write(&path, &bytes).unwrap();
        let (mut journal, _) = Journal::open(&out, &asked(7)).unwrap();
        journal.file.write_all(&entry_of(b"cut off")[..9]).unwrap();
        journal.push(&all[0]).unwrap();
        drop(journal);
        let (_, records) = Journal::open(&out, &asked(7)).unwrap();
        assert_eq!(records, [&all[..], &all[..1]].concat());
        // A changed bit in any other place than the last entry loses no evaluation.
        for at in 0..bytes.len() - size {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            for nodes in [7, 8] {
                assert!(Journal::open(&out, &asked(nodes)).is_err(), "{at}");
                assert_eq!(fs::read(&path).unwrap(), damaged);
            }
        }
        let error = Journal::open(&out, &asked(7)).err().unwrap().to_string();
        let advice = "move the journal away, or remove it to evaluate the positions again";
        assert!(error.contains(advice), "{error}");
        fs::rename(&path, dir.path().join("away")).unwrap();
        drop(Journal::open(&out, &asked(7)).unwrap());
        fs::write(&path, &bytes).unwrap();
        assert!(Journal::open(&out, &asked(8)).is_err());
        let at_work = Journal::open(&out, &asked(7)).unwrap();
        let Err(error) = Journal::open(&out, &asked(7)) else {
            panic!("two runs write one journal");
        };
        assert!(error.to_string().contains("another run"), "{error}");
        drop(at_work);
        fs::write(&path, &bytes[..bytes.len() - 3 * size]).unwrap();
        assert!(Journal::open(&out, &asked(8)).unwrap().1.is_empty());
        assert!(Journal::open(&out, &asked(8)).is_ok());
        let journal = Journal::open(&out, &asked(8)).unwrap();
        drop(journal);
        assert!(!path.exists());
        for foreign in [
            "diary\n",
            "{\"eng",
            "my diary, which is not a journal",
            "\0\0\0\0\0\0\0\0",
        ] {
            fs::write(&path, foreign).unwrap();
            assert!(Journal::open(&out, &asked(7)).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
        }
        #[cfg(unix)]
        {
            let other = dir.path().join("other");
            fs::write(&other, "").unwrap();
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(&other, &path).unwrap();
            assert!(Journal::open(&out, &asked(7)).is_err());
            assert_eq!(fs::read(&other).unwrap(), b"");
            // A link to an output has the journal of this output.
            let link = dir.path().join("link");
            std::os::unix::fs::symlink(&other, &link).unwrap();
            assert_eq!(path_of(&link).file_name().unwrap(), "other.journal");
        }
    }
}

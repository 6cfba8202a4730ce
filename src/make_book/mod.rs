//! The pipeline from PGN to a book: one thread reads, unpacks and [cuts](crate::pgn::Cutter) the
//! stream, all threads replay the batches and count, and the results are put in order behind them.

mod comment;
mod options;
mod replay;
mod report;
mod sequence;

use std::{
    io::ErrorKind,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
};

use rayon::{Scope, ThreadPoolBuilder};

pub use self::{
    options::{MakeBook, Unfinished},
    report::{BookReport, Games, Rejection, Report},
};
use self::{replay::Replayer, sequence::Sequencer};
use crate::{
    book::BookMaker,
    error::{At, Error, Result},
    output::AtomicFile,
    pgn::{Batch, Cutter, Input, Stream},
    tally::{Counts, Memory, Tally},
};

/// About how many bytes of PGN are replayed at once.
const BATCH_SIZE: usize = 1 << 19;

/// How far a run has come, for whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes taken from the inputs.
    pub taken: AtomicU64,
    /// Bytes of all inputs, 0 if that is not known.
    pub total: AtomicU64,
    /// Games read.
    pub games: AtomicU64,
    /// Set when all games are read and the outputs are being written.
    pub writing: AtomicBool,
}

impl MakeBook {
    /// Reads the games and makes the outputs.
    ///
    /// # Errors
    ///
    /// An input that cannot be read or is not PGN, an output that cannot be written, the first
    /// rejected game if the run is [strict](MakeBook::strict), or [`Error::Interrupted`]. No output is
    /// changed then.
    pub fn run(&self) -> Result<Report> {
        for input in &self.inputs {
            input.check()?;
        }
        // These fail now rather than after an hour of counting.
        if !self.temp_dir.is_dir() {
            return Err(Error::file(
                &self.temp_dir,
                "is no directory for temporary files: name another with --temp-dir",
            ));
        }
        let bin = self.bin.as_ref().map(AtomicFile::create).transpose()?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|i| format!("replay-{i}"))
            .build()
            .map_err(|err| Error::file("threads", err.to_string()))?;

        let (counts, mut report) = self.count(&pool)?;
        self.progress.writing.store(true, Ordering::Relaxed);
        pool.install(|| {
            let maker = BookMaker::new(&counts, &self.weighting)?;
            let summary = maker.summary();
            report.positions = summary.positions;
            report.entries = summary.counted_entries;
            self.refuse_if_stopped()?;
            if let Some(bin) = bin {
                let path = bin.target().to_owned();
                let header = self.header(&report, &summary)?;
                maker.write(header.as_deref(), bin)?;
                report.book = Some(BookReport {
                    path,
                    entries: summary.entries,
                    largest_weight: summary.largest_weight,
                    scale: summary.scale,
                });
            }
            Ok(report)
        })
    }

    /// Reads all inputs and counts their games.
    fn count(&self, pool: &rayon::ThreadPool) -> Result<(Counts, Report)> {
        let run = Run {
            options: self,
            tally: Tally::new(Memory {
                bytes: self.memory,
                temp_dir: self.temp_dir.clone(),
            }),
            sequencer: Mutex::new(Sequencer::new(self)),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
        };
        let total = self.inputs.iter().map(Input::size).sum::<Option<u64>>();
        self.progress
            .total
            .store(total.unwrap_or(0), Ordering::Relaxed);
        pool.in_place_scope(|scope| run.read_inputs(scope))?;
        if let Some(failure) = run
            .failure
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            return Err(failure);
        }
        self.refuse_if_stopped()?;
        let sequencer = run
            .sequencer
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let report = sequencer.finish()?;
        let counts = pool.install(|| run.tally.seal())?;
        Ok((counts, report))
    }

    fn refuse_if_stopped(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// What the threads of a run share.
struct Run<'a> {
    options: &'a MakeBook,
    tally: Tally,
    sequencer: Mutex<Sequencer<'a>>,
    /// The first thing that went wrong in a thread.
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
}

/// A batch and its place in the run.
struct Job {
    batch: Batch,
    /// Counts all batches of the run.
    number: u64,
    /// Which input it comes from.
    input: usize,
}

impl<'a> Run<'a> {
    /// Cuts the inputs and hands the batches to the threads, not too many at a time.
    fn read_inputs<'scope>(&'scope self, scope: &Scope<'scope>) -> Result<()> {
        let in_flight = 2 * rayon_threads(self.options);
        let (acquire, release) = mpsc::sync_channel::<()>(in_flight);
        let release = Arc::new(Mutex::new(release));
        let mut number = 0;
        for (index, input) in self.options.inputs.iter().enumerate() {
            let stream = input.open()?;
            let taken = Arc::clone(&stream.taken);
            let before = self.options.progress.taken.load(Ordering::Relaxed);
            let mut cutter = Cutter::new(stream, BATCH_SIZE);
            let mut first = true;
            while let Some(batch) = next_batch(&mut cutter, input)? {
                if std::mem::take(&mut first) {
                    refuse_binary(input, &batch.text)?;
                }
                if self.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.options.refuse_if_stopped()?;
                let so_far = before + taken.load(Ordering::Relaxed);
                self.options.progress.taken.store(so_far, Ordering::Relaxed);
                // Waits while enough batches are on their way. The other end lives as long as this.
                let _ = acquire.send(());
                let job = Job {
                    batch,
                    number,
                    input: index,
                };
                number += 1;
                let release = Arc::clone(&release);
                scope.spawn(move |_| {
                    if let Err(err) = self.replay(&job) {
                        self.fail(err);
                    }
                    let release = release.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = release.recv();
                });
            }
        }
        Ok(())
    }

    fn fail(&self, err: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(err);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn replay(&self, job: &Job) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let outcome = Replayer::new(self.options).replay(job);
        self.tally.add_records(&outcome.records)?;
        self.options
            .progress
            .games
            .fetch_add(outcome.games.read, Ordering::Relaxed);
        let mut sequencer = self
            .sequencer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sequencer.submit(job, outcome)
    }
}

fn rayon_threads(options: &MakeBook) -> usize {
    if options.threads > 0 {
        options.threads
    } else {
        rayon::current_num_threads()
    }
}

fn next_batch(cutter: &mut Cutter<Stream>, input: &Input) -> Result<Option<Batch>> {
    match cutter.next_batch() {
        // What the operating system did not say, an unpacker or the cutter did.
        Err(err) if err.raw_os_error().is_none() && err.kind() != ErrorKind::OutOfMemory => {
            Err(Error::file(
                input.path(),
                format!("damaged: {err}; unpack or download it again"),
            ))
        }
        result => result.at(input.path(), "read it"),
    }
}

/// Refuses what is certainly no PGN before it is read as a long row of odd games.
fn refuse_binary(input: &Input, text: &[u8]) -> Result<()> {
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(Error::file(
            input.path(),
            "is in UTF-16: convert it to UTF-8, for instance with iconv",
        ));
    }
    let start = &text[..text.len().min(1 << 16)];
    let has_tags = start.split(|byte| *byte == b'\n').any(|line| {
        matches!(line, [b'[', letter, ..] if letter.is_ascii_alphabetic()) && line.contains(&b'"')
    });
    if start.contains(&0) && !has_tags {
        return Err(Error::file(
            input.path(),
            "is not PGN but binary data: name a PGN file, plain or packed with gzip, bzip2, zstd or zip",
        ));
    }
    Ok(())
}

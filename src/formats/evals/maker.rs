//! Makes a store of evaluations from games, from text files with an evaluation on each line, and from other stores. An
//! [`EvalSorter`] sorts the evaluations by position and chooses one for each position.

use std::{
    collections::BTreeSet,
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

use rayon::prelude::*;

#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;
use super::{
    BadEntry, EvalsReport,
    analysis::{Analysis, Analyst, EngineOptions, Positions},
    inputs::{EvalsSource, InputEntries, read_batch},
    layout::{BYTES_BEFORE_SCORE, EvalRecord, RankedBytes, origin_of},
    lines::BatchRead,
    writer::{EpdWriter, EvalsWriter, StoreWriter},
};
use crate::{
    error::{Error, Result, plural},
    games::pgn::{Input, SkippedParts, StreamOptions, UnknownVariants},
    kind::FileKind,
    progress::Meter,
    storage::output::{AtomicFile, BufferedFile, Finished, check_replaceable},
    storage::sort::{Memory, TextSorter},
    task,
};

/// The maximum number of origins in a store of evaluations. An origin is a source of evaluations, such as an engine. A
/// record stores the number of its origin in one byte.
const MAX_ORIGINS: usize = 256;

/// A format in which evaluations are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EvalsFormat {
    /// A store, which [`Evals`](super::Evals) opens.
    Store,
    /// One EPD per line, with the operations `acd`, `acn`, `ce` and `dm`. Scores are from the point of view of the side
    /// to move.
    Epd,
    /// A Parquet file. Its column `key` contains the same position keys as the Parquet files of a [counts
    /// directory](crate::formats::counts).
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Creates the output at `path` in the format `format`. Returns the writer of the output, and `true` if `path` already
/// contains a store whose evaluations the caller must add to the new store. If `force` is `true`, an old store is
/// replaced without adding its evaluations.
///
/// # Errors
///
/// Returns an error if the output cannot be created, or if an existing file must not be replaced. An empty file may
/// always be replaced. A new store may replace another store. Other files may be replaced only if `force` is `true`.
pub(super) fn begin_output(
    path: &Path,
    format: EvalsFormat,
    force: bool,
) -> Result<(Box<dyn EvalsWriter>, bool)> {
    let mut has_store = false;
    let file = AtomicFile::create_over(path, |old| {
        has_store = !force && format == EvalsFormat::Store && FileKind::of(old)? == FileKind::Evals;
        check_replaceable(old, force || has_store)
    })?;
    let out = BufferedFile::new(file);
    let writer: Box<dyn EvalsWriter> = match format {
        EvalsFormat::Store => Box::new(StoreWriter::new(out)?),
        EvalsFormat::Epd => Box::new(EpdWriter::new(out)),
        #[cfg(feature = "parquet")]
        EvalsFormat::Parquet => Box::new(ParquetWriter::new(out)?),
    };
    Ok((writer, has_store))
}

/// An operation that collects evaluations of positions from its inputs and writes them to a store of evaluations. An
/// input is a PGN file with `[%eval]` comments, a file of EPDs with `ce` or `dm`, Lichess's file
/// `lichess_db_eval.jsonl`, or another store. Text files may be compressed. The format of an input is detected from its
/// first bytes.
///
/// For each position, the store contains only the deepest evaluation. A search of 2^N nodes counts as at least N
/// half-moves deep. Among equally deep evaluations, the one with the most nodes is chosen, then the one whose origin
/// (source) has the alphabetically first name. If several still remain, the score that was read most often is chosen,
/// then the median of the scores. The result therefore does not depend on the order of the inputs. An evaluation from
/// an input store counts as read once, no matter how often it was read when that store was made.
#[derive(Clone, Debug)]
pub struct MakeEvals {
    /// The inputs.
    pub inputs: Vec<Input>,
    /// An engine that evaluates the positions that are passed to [`ClaimedEvals::finish`]. Until the output is
    /// complete, the engine's evaluations are saved in a journal next to the output. If the process is killed, the next
    /// one continues from the journal.
    pub engine: Option<EngineOptions>,
    /// Whether the output may replace any existing file. If `false`, the evaluations of an existing store are kept and
    /// new ones are added, and any other existing file is an error unless it is empty.
    pub force: bool,
    /// The number of threads that read the inputs, or 0 for one per core.
    pub threads: usize,
    /// The memory that evaluations may take before they are spilled to temporary files.
    pub memory: Memory,
    /// The progress of the operation, which another thread can display.
    pub meter: Arc<Meter>,
}

impl MakeEvals {
    /// Creates an operation that reads `inputs`. By default, the operation has a memory budget of 1 GiB and uses all
    /// cores.
    pub fn new(inputs: impl IntoIterator<Item = Input>) -> MakeEvals {
        MakeEvals {
            inputs: inputs.into_iter().collect(),
            engine: None,
            force: false,
            threads: 0,
            memory: Memory::default(),
            meter: Arc::default(),
        }
    }

    /// Reads the inputs, and writes the evaluations to `out` in the format `format`. Replaces an old file at `out` only
    /// when the output is complete. Does not evaluate positions with the engine. To use the engine, call
    /// [`claim`](MakeEvals::claim) and [`finish`](ClaimedEvals::finish) instead.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`claim`](MakeEvals::claim) and [`finish`](ClaimedEvals::finish).
    pub fn run(&self, out: &Path, format: EvalsFormat) -> Result<EvalsReport> {
        self.claim(out, format)?.finish(&Positions::default())
    }

    /// Starts the engine, if one is set, and locks the output `out`, so that no other process can write it. Does not
    /// read the inputs yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot be started, or if the output cannot be written or would replace another
    /// file.
    pub fn claim<'a>(&'a self, out: &'a Path, format: EvalsFormat) -> Result<ClaimedEvals<'a>> {
        task::caught(|| {
            // The journal is locked before the target is claimed. So another run with an engine has either replaced
            // the target already, or cannot begin. The target is claimed before its store is read. So if another run
            // replaces the store meanwhile, this run does not replace it again.
            let engine = self.engine.as_ref();
            let analyst = engine.map(|options| Analyst::start(options, out));
            let analyst = analyst.transpose()?;
            let (output, has_store) = begin_output(out, format, self.force)?;
            Ok(ClaimedEvals {
                make: self,
                out,
                analyst,
                output,
                has_store,
            })
        })
    }

    fn make(
        &self,
        sources: &[(EvalsSource, &Input)],
        analysis: Option<Analysis>,
        out: &Path,
        mut output: Box<dyn EvalsWriter>,
    ) -> Result<(EvalsReport, Finished)> {
        let sizes: Option<u64> = self.inputs.iter().map(Input::size).sum();
        self.meter.add_total(sizes.unwrap_or(0));
        let mut memory = self.memory.clone();
        let unpacking = self.inputs.iter();
        let unpacking = unpacking.map(|input| input.unpacking_memory(memory.bytes));
        let unpacking = unpacking.max().unwrap_or(0);
        memory.bytes -= unpacking;
        let stream = StreamOptions {
            memory: unpacking,
            temp_dir: memory.temp_dir.clone(),
            ..StreamOptions::default()
        };
        let mut reading = EvalCollector {
            meter: &self.meter,
            sorted: EvalSorter::new(&memory),
            origins: origins(sources, analysis.as_ref()),
            used: Mutex::new([false; MAX_ORIGINS]),
            report: EvalsReport::default(),
            unknown_variants: UnknownVariants::default(),
        };
        if reading.origins.len() > MAX_ORIGINS {
            let problem = "the evaluations of all inputs have more than 256 different origins: add fewer inputs at a time";
            return Err(Error::too_large(out, problem));
        }
        for (source, input) in sources {
            reading.read(source, input, &stream)?;
        }
        if let Some(analysis) = analysis {
            reading.take(analysis)?;
        }
        let EvalCollector {
            sorted,
            origins,
            used,
            mut report,
            unknown_variants,
            ..
        } = reading;
        report.warnings.extend(unknown_variants.warnings());
        if report.evaluations == 0 {
            let games = plural(report.games, "game");
            let lines = plural(report.lines, "line");
            let mut problem = format!(
                "the output was not written, because {games} and {lines} contain no evaluation"
            );
            problem.push_str(&unknown_variants.in_error());
            if let Some(bad) = report.described.first() {
                problem.push_str(&format!("; rejected: {bad}"));
            }
            let failed = report.engine.iter().flat_map(|engine| &engine.described);
            if let Some(failed) = failed.into_iter().next() {
                problem.push_str(&format!("; failed: {}: {}", failed.fen, failed.reason));
            }
            return Err(Error::empty(out, problem));
        }
        // Origins without an evaluation are dropped, and the others are renumbered.
        let used = task::unlocked(used);
        let mut numbers = [0; MAX_ORIGINS];
        let mut kept = Vec::new();
        for (old, name) in origins.into_iter().enumerate() {
            if used[old] {
                numbers[old] = kept.len() as u8;
                kept.push(name);
            }
        }
        sorted.for_each(|mut record| {
            record.eval.origin = numbers[usize::from(record.eval.origin)];
            report.positions += 1;
            output.push(&record, &kept)
        })?;
        Ok((report, output.finish(&kept)?))
    }
}

/// An operation of [`MakeEvals`] that has locked its output, so that no other process can write it. If this value is
/// dropped, the engine ends, and an old file at the output's path is left unchanged.
pub struct ClaimedEvals<'a> {
    make: &'a MakeEvals,
    out: &'a Path,
    analyst: Option<Analyst<'a>>,
    output: Box<dyn EvalsWriter>,
    /// Whether the output replaces a store whose evaluations are kept.
    has_store: bool,
}

impl ClaimedEvals<'_> {
    /// Reads the inputs, lets the engine evaluate `positions`, and writes the output. The output replaces the old file
    /// only when it is complete. The engine skips positions for which the old store already contains a sufficiently
    /// thorough evaluation.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read, if no input contains an evaluation, or if the output cannot be
    /// written. If the engine fails at too many consecutive positions, the output is written without the missing
    /// evaluations, and an error is returned as well.
    pub fn finish(self, positions: &Positions) -> Result<EvalsReport> {
        let ClaimedEvals {
            make,
            out,
            analyst,
            output,
            has_store,
        } = self;
        task::caught(|| {
            let mut inputs = make.inputs.clone();
            inputs.extend(has_store.then(|| Input::file(out)));
            let sources: Result<Vec<_>> = inputs.iter().map(EvalsSource::new).collect();
            let sources: Vec<(EvalsSource, &Input)> = sources?.into_iter().zip(&inputs).collect();
            let analysis = analyst.map(|analyst| {
                let last = sources.last().filter(|_| has_store);
                let before = last.and_then(|(source, _)| source.store());
                analyst.evaluate(&positions.positions, before, &make.meter)
            });
            let (mut analysis, journal) = analysis.transpose()?.unzip();
            let given_up = analysis
                .as_mut()
                .and_then(|analysis| analysis.given_up.take());
            let pool = task::pool(make.threads)?;
            let made = pool.install(|| make.make(&sources, analysis, out, output));
            let (report, finished) = made?;
            // Windows does not replace a file that is open.
            drop(sources);
            finished.commit()?;
            journal.map_or(Ok(()), |journal| journal.remove(out))?;
            match given_up.zip(make.engine.as_ref()) {
                Some((failures, options)) => {
                    let problem = format!(
                        "{failures}; {} contains all other evaluations",
                        out.display()
                    );
                    Err(Error::failed(&options.program, problem))
                }
                None => Ok(report),
            }
        })
    }
}

impl fmt::Debug for ClaimedEvals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedEvals")
            .field("out", &self.out)
            .finish_non_exhaustive()
    }
}

/// Returns the names of the origins that the evaluations in `sources` and `analysis` may have, in ascending order. An
/// origin is the source of an evaluation, such as an engine.
fn origins(sources: &[(EvalsSource, &Input)], analysis: Option<&Analysis>) -> Vec<String> {
    let names = sources.iter().flat_map(|(source, _)| source.origins());
    let engine = analysis.map(|analysis| &*analysis.report.name);
    let names: BTreeSet<&str> = names.chain(engine).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// A collector of evaluations from several inputs, which also creates the report on the inputs.
struct EvalCollector<'a> {
    meter: &'a Meter,
    sorted: EvalSorter,
    origins: Vec<String>,
    /// For each origin, whether an evaluation comes from it.
    used: Mutex<[bool; MAX_ORIGINS]>,
    report: EvalsReport,
    unknown_variants: UnknownVariants,
}

impl EvalCollector<'_> {
    /// Adds all evaluations of the file `input` to the collector. `source` is the opened file, and `stream` contains
    /// the options for decompression. Uses all threads of the current rayon pool.
    fn read(&mut self, source: &EvalsSource, input: &Input, stream: &StreamOptions) -> Result<()> {
        let batches = source.open(stream)?;
        let entries = batches.entries();
        let batches = Mutex::new((batches, 0));
        let (reads, described) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let failure = task::Failure::default();
        let read = || {
            while !failure.is_set() {
                let (batch, number) = {
                    let mut batches = task::lock(&batches);
                    let Some(batch) = batches.0.next_batch(self.meter)? else {
                        break;
                    };
                    batches.1 += 1;
                    (batch, batches.1)
                };
                task::fault("evals");
                let mut read = read_batch(source, entries, &batch, |name| self.number_of(name))?;
                self.sorted.append(&read.records)?;
                self.note_origins(&read.records);
                let evaluations = read.records.len() as u64;
                read.records = Vec::new();
                // Only the first few reasons are kept, because all batches together may have many.
                let mut described = task::lock(&described);
                described.extend(
                    read.described
                        .drain(..)
                        .map(|bad| (number, batch.offset, bad)),
                );
                described.sort_by_key(|(number, ..)| *number);
                described.truncate(EvalsReport::MAX_DESCRIBED);
                task::lock(&reads).push((number, evaluations, read));
            }
            Ok(())
        };
        rayon::broadcast(|_| failure.watch(read));
        failure.take()?;
        let skipped = SkippedParts {
            files: task::unlocked(batches).0.unread_files(),
            ..SkippedParts::default()
        };
        self.report.warnings.extend(skipped.warnings(input.path()));
        let mut reads: Vec<(u64, u64, BatchRead)> = task::unlocked(reads);
        reads.sort_unstable_by_key(|(number, ..)| *number);
        let mut described = task::unlocked(described).into_iter().peekable();
        let mut before = 0;
        for (batch, evaluations, read) in reads {
            self.report.evaluations += evaluations;
            self.report.filtered += read.filtered;
            self.unknown_variants.join(read.unknown_variants);
            self.report.ignored += read.ignored;
            self.report.rejected += read.rejected;
            while let Some((_, offset, bad)) = described.next_if(|(number, ..)| *number == batch) {
                self.describe(input, entries, before, offset, bad);
            }
            before += read.entries;
        }
        match entries {
            InputEntries::Games => self.report.games += before,
            InputEntries::Lines(_) => self.report.lines += before,
            InputEntries::Records => {}
        }
        Ok(())
    }

    fn number_of(&self, name: &str) -> u8 {
        self.origins.partition_point(|origin| **origin < *name) as u8
    }

    /// Adds the evaluations that an engine has computed to the collector. Also adds the engine's report to the report
    /// of the run.
    fn take(&mut self, analysis: Analysis) -> Result<()> {
        let origin = self.number_of(&analysis.report.name);
        let records = analysis.records.into_iter().map(|mut record| {
            record.eval.origin = origin;
            record.to_ranked()
        });
        let records: Vec<RankedBytes> = records.collect();
        self.sorted.append(&records)?;
        self.note_origins(&records);
        self.report.evaluations += records.len() as u64;
        self.report.engine = Some(analysis.report);
        Ok(())
    }

    /// Adds a rejected game or line of the file `input` to the report, unless the report already describes the maximum
    /// number of them. `entries` is the kind of entries in the file, and `before` is the number of entries before the
    /// current batch. `offset` is the offset of the batch in the file. The last argument contains the number of the
    /// rejected entry in the batch, the offset of the fault in the batch, and the reason.
    fn describe(
        &mut self,
        input: &Input,
        entries: InputEntries,
        before: u64,
        offset: u64,
        (number, place, reason): (u64, usize, String),
    ) {
        let is_game = entries == InputEntries::Games;
        if self.report.described.len() < EvalsReport::MAX_DESCRIBED {
            self.report.described.push(BadEntry {
                file: input.path().to_owned(),
                is_game,
                number: before + u64::from(!is_game) + number,
                offset: offset + place as u64,
                reason,
            });
        }
    }

    /// Marks the origins of the evaluations in `records` as used. Origins that are not used are not written to the
    /// store.
    fn note_origins(&self, records: &[RankedBytes]) {
        let mut used = task::lock(&self.used);
        for record in records {
            used[usize::from(origin_of(record))] = true;
        }
    }
}

/// The number of shards into which an [`EvalSorter`] divides its records. The first bits of the position key select the
/// shard of a record. Each shard has its own lock, so that threads rarely wait for each other.
const SHARDS: usize = 16;

/// The size of a position key in bytes.
const KEY_SIZE: usize = 8;

/// A sorter of evaluations by position, which keeps only the deepest evaluation of each position. Evaluations that
/// exceed the memory budget are written to temporary files.
pub(super) struct EvalSorter {
    shards: Vec<Mutex<TextSorter>>,
}

impl EvalSorter {
    pub(super) fn new(memory: &Memory) -> EvalSorter {
        let shard = || TextSorter::best(memory.share(SHARDS), KEY_SIZE, BYTES_BEFORE_SCORE);
        EvalSorter {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
        }
    }

    /// Adds encoded evaluations to the sorter, in any order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub(super) fn append(&self, records: &[RankedBytes]) -> Result<()> {
        let mut sharded = vec![Vec::new(); SHARDS];
        for record in records {
            sharded[usize::from(record[0]) * SHARDS / 256].push(record);
        }
        for (records, shard) in sharded.iter().zip(&self.shards) {
            let mut shard = task::lock(shard);
            for record in records {
                shard.push(&record[..])?;
            }
        }
        Ok(())
    }

    /// Calls `take` with the deepest evaluation of each position, in ascending order of position keys. Sorts the
    /// evaluations on all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read. Stops at the first error of `take` and returns it.
    pub(super) fn for_each(self, mut take: impl FnMut(EvalRecord) -> Result<()>) -> Result<()> {
        let shards = self.shards.into_iter().map(task::unlocked);
        let mut shards: Vec<TextSorter> = shards.collect();
        shards.par_iter_mut().for_each(TextSorter::sort);
        for mut shard in shards {
            let mut equal: Vec<(RankedBytes, u64)> = Vec::new();
            for text in shard.sorted() {
                let record: RankedBytes = (&*text?).try_into().expect("it was a record");
                match equal.last_mut() {
                    Some((last, times)) if *last == record => *times += 1,
                    Some((last, _)) if last[..KEY_SIZE] != record[..KEY_SIZE] => {
                        take(chosen(&equal))?;
                        equal.clear();
                        equal.push((record, 1));
                    }
                    _ => equal.push((record, 1)),
                }
            }
            if !equal.is_empty() {
                take(chosen(&equal))?;
            }
        }
        Ok(())
    }
}

/// Chooses one of several evaluations of a position that are equally thorough and differ only in their scores. `equal`
/// contains the different evaluations, encoded and in ascending order, each with the number of times that it was read.
///
/// Returns the most frequent evaluation. If several evaluations are equally frequent, returns the one with the median
/// score. If their number is even, a bit of the position key selects one of the two middle scores, so that neither side
/// is favored.
fn chosen(equal: &[(RankedBytes, u64)]) -> EvalRecord {
    let most = equal.iter().map(|(_, times)| *times).max().unwrap_or(0);
    let commonest: Vec<&RankedBytes> = equal
        .iter()
        .filter(|(_, times)| *times == most)
        .map(|(record, _)| record)
        .collect();
    let key_bit = usize::from(equal[0].0[KEY_SIZE - 1] & 1);
    let middle = commonest[(commonest.len() - 1 + key_bit) / 2];
    EvalRecord::from_ranked(middle).expect("it was a record")
}

#[cfg(test)]
mod tests {
    use shakmaty::Chess;

    use super::*;
    use crate::formats::evals::{Eval, Score};

    /// Adds all scores under the keys 2 and 3, and returns the score that is kept for each key.
    fn kept(scores: &[i64]) -> [i16; 2] {
        let sorted = EvalSorter::new(&Memory {
            bytes: 0,
            ..Memory::default()
        });
        for key in [2, 3] {
            for score in scores {
                let eval = Eval {
                    score: Score::centipawns(*score),
                    depth: 0,
                    nodes: 0,
                    origin: 0,
                };
                let record = EvalRecord::new(&Chess::default(), key, eval).unwrap();
                sorted.append(&[record.to_ranked()]).unwrap();
            }
        }
        let mut kept = Vec::new();
        let take = |record: EvalRecord| {
            kept.push(record.eval.score.to_code());
            Ok(())
        };
        sorted.for_each(take).unwrap();
        kept.try_into().unwrap()
    }

    #[test]
    fn stores_of_too_many_origins_are_not_added_up() {
        let dir = tempfile::tempdir().unwrap();
        let stores = [0, 200].map(|first| {
            let path = dir.path().join(format!("{first}.evals"));
            let (mut writer, _) = begin_output(&path, EvalsFormat::Store, false).unwrap();
            let origins: Vec<String> = (first..first + 200).map(|n| format!("{n:03}")).collect();
            let eval = Eval {
                score: Score::centipawns(9),
                depth: 1,
                nodes: 1,
                origin: 0,
            };
            let record = EvalRecord::new(&Chess::default(), first + 1, eval).unwrap();
            writer.push(&record, &origins).unwrap();
            writer.finish(&origins).unwrap().commit().unwrap();
            Input::file(path)
        });
        let out = dir.path().join("sum.evals");
        let add = |stores: &[Input]| {
            let make = MakeEvals::new(stores.iter().cloned());
            make.run(&out, EvalsFormat::Store)
        };
        let err = add(&stores).unwrap_err();
        let advice = "add fewer inputs at a time";
        assert!(err.to_string().contains(advice), "{err}");
        // Each store alone has fewer origins than the limit.
        for store in stores {
            add(&[store]).unwrap();
        }
    }

    #[test]
    fn what_most_say_counts_and_no_side_is_favored() {
        for (scores, expected) in [
            (&[30, 30, -90, 30, 30][..], [30, 30]),
            (&[-90, 400, 20], [20, 20]),
            (&[-90, 400], [-90, 400]),
            (&[5, 400, -90, 400, 5, 7], [5, 400]),
        ] {
            assert_eq!(kept(scores), expected, "{scores:?}");
            let reversed: Vec<i64> = scores.iter().rev().copied().collect();
            assert_eq!(kept(&reversed), expected, "{scores:?}");
        }
    }
}

//! The inputs of a run, which are games or counts from earlier runs.
//!
//! [`RunInput`] is the interface between an input and the pipeline. For an input of games, one thread cuts the stream
//! into batches, and all threads replay the batches.

#[cfg(feature = "parquet")]
mod counts;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use super::{
    budget::{BYTES_PER_DIRECTORY, OrderedSize},
    options::MakeBook,
    replay::Outcome,
    run::{BatchDispatcher, Run},
};
use crate::{
    chess::position::VariantChoice,
    error::{Advice, Diagnosis, Error, Result, plural},
    formats::counts::{Grouping, OrderedCounts},
    games::{
        pgn::{Batch, Cutter, Input, SkippedParts, Stream, StreamOptions},
        selection::Selection,
    },
    make_book::replay::BATCH_SIZE,
    provenance::{GameCounts, Provenance, Pruned, printable, shortened},
    task,
};

/// The separator between sets of options in the text that lists the options with which counts were made. Counts that
/// were merged from several counts directories may have several sets.
const BETWEEN_OPTIONS: &str = " | ";

/// Returns the values of `--max-ply`, which limits how many half-moves are counted in each game, from `options`, the
/// options with which counts were made. The options of merged counts may consist of several sets. The iterator yields
/// one value for each set, which is the default value if the set lacks the option.
pub(super) fn max_ply_values(options: &str) -> impl Iterator<Item = usize> + Clone {
    let max_ply = |options: &str| {
        let number = options.strip_prefix("--max-ply ")?;
        number.split(' ').next()?.parse().ok()
    };
    let all = options.split(BETWEEN_OPTIONS);
    all.map(move |options| max_ply(options).unwrap_or(MakeBook::DEFAULT_MAX_PLY))
}

/// Returns the smallest of `values`, the values of `--max-ply` with which games were counted. Half-moves beyond the
/// smallest value were counted only in some games, or in none. Returns `None` if all values are the default value.
pub(super) fn smallest_max_ply(values: impl IntoIterator<Item = usize>) -> Option<usize> {
    let first = values.into_iter().min();
    first.filter(|ply| *ply < MakeBook::DEFAULT_MAX_PLY)
}

/// The maximum length in bytes of a file name in a warning. A longer name is shortened.
const MAX_NAME_BYTES: usize = 200;

/// The open inputs of a `make-book` run, in the order in which the user gave them, with properties of all inputs
/// together, such as their variant.
pub(super) struct Inputs<'a> {
    pub all: Vec<Box<dyn RunInput + 'a>>,
    /// The options with which all inputs were counted, in the form in which the header of a book lists them.
    pub options: String,
    /// The variant of all inputs.
    pub variant: VariantChoice,
    /// The properties (speed, rating, month) by which the counts that the run writes are grouped.
    pub by: Grouping,
    /// The numbers of positions, rows and half-moves that were pruned from the counts, or `None` if nothing was pruned.
    pub pruned: Option<Pruned>,
    /// The approximate memory, in bytes, that the metadata of counts takes on all threads together.
    pub metadata: usize,
}

impl<'a> Inputs<'a> {
    /// Opens the inputs of a `make-book` run. Counts directories are opened immediately, but PGN files only when they
    /// are read. `threads` is the number of threads, each of which needs memory for the metadata of counts.
    ///
    /// # Errors
    ///
    /// Returns an error if counts cannot be read, or if they were made with options that contradict those of the run.
    pub(super) fn open(run: &'a MakeBook, threads: usize) -> Result<Inputs<'a>> {
        let max_metadata = run.memory.bytes / 2 / threads;
        let open = |input| open_input(input, max_metadata, run);
        let all = run.inputs.iter().map(open).collect::<Result<_>>()?;
        let mut inputs = Inputs {
            all,
            options: String::new(),
            variant: run.variant,
            by: Grouping::default(),
            pruned: None,
            metadata: 0,
        };
        inputs.options = inputs.options_of_all(run)?;
        let origins = inputs.counts().filter_map(|counted| counted.origin);
        let variant = origins.map(|(_, variant)| *variant).next();
        inputs.variant = variant.unwrap_or(run.variant);
        inputs.pruned = inputs.pruned()?;
        inputs.by = inputs.classes_of_all(run)?;
        let metadata = inputs.counts().map(|counted| counted.metadata);
        inputs.metadata = threads * metadata.max().unwrap_or(0);
        Ok(inputs)
    }

    /// Returns the properties of games (speed, rating, month) by which the counts that `run` writes are grouped.
    ///
    /// # Errors
    ///
    /// Returns an error if the options request a property by which the input counts are not grouped, because sums
    /// cannot be divided later. If the options request no grouping, returns an error if the inputs are grouped by
    /// different properties.
    fn classes_of_all(&self, run: &MakeBook) -> Result<Grouping> {
        if run.counts.is_none() && run.explorer.is_none() {
            return Ok(Grouping::default());
        }
        let mut all = self.counts();
        let Some(by) = run.by else {
            let first = all.next().map_or(Grouping::default(), |counted| counted.by);
            return match all.find(|other| other.by != first) {
                Some(CountsDescription { path, by, .. }) => Err(Error::file(
                    path,
                    Diagnosis::new(format!(
                        "these counts are {}, but other inputs are {}",
                        by.division(),
                        first.division()
                    ))
                    .advise(Advice::option(
                        "give {} with those that all inputs have in common",
                        "by",
                    ))
                    .advise(Advice::option("give {}", "by").with_value("none")),
                )),
                None => Ok(first),
            };
        };
        match all.find(|counted| !counted.by.includes(by)) {
            Some(CountsDescription { path, by: has, .. }) => Err(Error::file(
                path,
                Diagnosis::new(format!(
                    "these counts are {}, but counts by {by} are requested",
                    has.division()
                ))
                .advise(Advice::option("count the games again with {}", "by").with_value(by))
                .advise(Advice::option(
                    "give fewer of speed, rating and month with {}",
                    "by",
                )),
            )),
            None => Ok(by),
        }
    }

    /// Returns the numbers of positions, rows and half-moves that are missing from the input counts because they were
    /// pruned, or `None` if nothing was pruned.
    ///
    /// # Errors
    ///
    /// Returns an error if pruned counts are combined with another input. The sums of such counts would be wrong,
    /// because a position that is rare in each input, and therefore pruned, may be frequent in all inputs together.
    fn pruned(&self) -> Result<Option<Pruned>> {
        let mut pruned = self
            .counts()
            .filter_map(|counted| Some((counted.path, counted.pruned?)));
        match pruned.next() {
            Some((path, pruned)) if self.all.len() > 1 => {
                let problem = Diagnosis::new(format!(
                    "these counts do not contain positions in which fewer than {} moves were counted, so they cannot \
                     be added to other inputs",
                    pruned.min_game
                ))
                .advise(
                    Advice::option("use complete counts, which are made without {}", "min-game")
                        .with_value(pruned.min_game),
                );
                Err(Error::file(path, problem))
            }
            first => Ok(first.map(|(_, pruned)| pruned)),
        }
    }

    /// Returns up to three warnings about the input counts: that rare positions were pruned from them, that the inputs
    /// were made with different values of `--max-ply`, and that two inputs contain games of the same PGN file.
    pub(super) fn warnings(&self, run: &MakeBook) -> impl Iterator<Item = String> {
        let pruned = self.pruned.map(|pruned| pruned.to_string());
        let others = self.max_ply_warning().into_iter();
        let others = others.chain(self.common_games_warning(run));
        pruned.into_iter().chain(others)
    }

    /// Returns a warning if two inputs contain games of PGN files with the same name, and at least one of the inputs is
    /// a counts directory. The warning names one such file, and says how many others there are. Ignores inputs that are
    /// given twice, because [`run`](MakeBook::run) already warns about them. Also ignores games from standard input,
    /// which have no file name.
    fn common_games_warning(&self, run: &MakeBook) -> Option<String> {
        let mut paths = HashSet::new();
        // For each name, the index of the first input that contains games of a file with this name.
        let mut first_inputs: HashMap<Cow<'_, str>, usize> = HashMap::new();
        let mut common = HashSet::new();
        let mut example = None;
        for (number, input) in self.all.iter().enumerate() {
            let named = &run.inputs[number];
            if named.is_stdin() || !paths.insert(named.path()) {
                continue;
            }
            let names: Vec<Cow<'_, str>> = match input.counts() {
                None => vec![named.name().into()],
                Some(counted) => {
                    let names = counted.origin.map(|(origin, _)| &origin.inputs[..]);
                    names.unwrap_or_default().iter().map(Cow::from).collect()
                }
            };
            for name in names {
                let first = *first_inputs.entry(name.clone()).or_insert(number);
                let is_of_counts = |number: usize| self.all[number].counts().is_some();
                if first != number
                    && (is_of_counts(first) || is_of_counts(number))
                    && name != Input::STDIN_NAME
                {
                    example.get_or_insert_with(|| (name.clone(), [first, number]));
                    common.insert(name);
                }
            }
        }
        let (name, inputs) = example?;
        let [first, second] = inputs.map(|number| run.inputs[number].path().display());
        let more = match common.len() - 1 {
            0 => String::new(),
            more => format!(", and of {}", plural(more as u64, "other name")),
        };
        let name = shortened(&printable(&name), MAX_NAME_BYTES);
        Some(format!(
            "{first} and {second} both contain games of a file with the name {name}{more}; if it is the same file, its \
             games count twice"
        ))
    }

    /// Returns a warning if the inputs were made with different values of `--max-ply`, because later positions then
    /// lack some of the games. Otherwise, returns `None`.
    fn max_ply_warning(&self) -> Option<String> {
        if !self.has_counts() {
            return None;
        }
        let all = max_ply_values(&self.options);
        let (least, most) = (all.clone().min()?, all.max()?);
        (least < most).then(|| {
            format!(
                "some inputs are counted up to half-move {least}, others up to half-move {most}, so some games are \
                 missing from the positions after half-move {least}"
            )
        })
    }

    /// Returns an iterator over the descriptions of the inputs that are counts directories.
    pub(super) fn counts(&self) -> impl Iterator<Item = CountsDescription<'_>> {
        self.all.iter().filter_map(|input| input.counts())
    }

    /// Returns `true` if at least one input is a counts directory.
    pub(super) fn has_counts(&self) -> bool {
        self.counts().next().is_some()
    }

    /// Returns `true` if every input is a directory of counts instead of games.
    pub(super) fn are_counts(&self) -> bool {
        self.has_counts() && self.counts().count() == self.all.len()
    }

    /// Returns an iterator over the inputs that are counts directories with rows sorted by key.
    pub(super) fn ordered(&self) -> impl Iterator<Item = &dyn OrderedInput> {
        self.all.iter().filter_map(|input| input.ordered())
    }

    /// Returns the total size of the input counts that are already sorted by key. Returns `None` if no input counts
    /// are sorted.
    pub(super) fn ordered_size(&self) -> Option<OrderedSize> {
        let directories = self.ordered().count();
        let ordered = self.all.iter().filter(|input| input.ordered().is_some());
        let counted = ordered.filter_map(|input| input.counts());
        (directories > 0).then(|| OrderedSize {
            memory: counted.map(|counted| counted.memory()).sum(),
            directories,
            rows: self.ordered().map(|counts| counts.rows()).sum(),
            is_all: directories == self.all.len(),
        })
    }

    /// Reads all inputs, and passes their games and rows through `batches` to the threads of the run. Stops early if
    /// the run fails.
    pub(super) fn read<'scope>(
        &'scope self,
        batches: &mut BatchDispatcher<'_, 'scope, '_>,
    ) -> Result<()> {
        for (number, input) in self.all.iter().enumerate() {
            if batches.run.failure.is_set() {
                break;
            }
            batches.next.input = number;
            input.read(batches)?;
        }
        Ok(())
    }

    /// Returns the total size of the inputs in bytes, or `None` if the size of an input is unknown.
    pub(super) fn size(&self) -> Option<u64> {
        self.all.iter().map(|input| input.size()).sum()
    }

    /// Returns the provenance of the outputs: the names of the inputs, the options, and `games`, the numbers of games
    /// that the run read. If an input is a counts directory that does not state its number of games, `games` is left
    /// out.
    pub(super) fn provenance(&self, run: &MakeBook, games: GameCounts) -> Provenance {
        let names = |(counted, named): (Option<CountsDescription<'_>>, &Input)| {
            let Some(counted) = counted else {
                return vec![named.name()];
            };
            match counted.origin {
                Some((origin, _)) => origin.inputs.clone(),
                None => vec![format!(
                    "{} (counts that do not name their games)",
                    named.name()
                )],
            }
        };
        let has_games = |counted: CountsDescription<'_>| {
            let origin = counted.origin;
            origin.is_some_and(|(origin, _)| origin.games.is_some())
        };
        let counted = self.all.iter().map(|input| input.counts());
        let pruned = self
            .pruned
            .map(|pruned| format!("(of counts with --min-game {})", pruned.min_game));
        let options = [self.options.clone(), pruned.unwrap_or_default()];
        Provenance {
            inputs: counted.zip(&run.inputs).flat_map(names).collect(),
            games: self.counts().all(has_games).then_some(games),
            options: options.join(" ").trim().to_owned(),
        }
    }

    /// Returns the options with which the games of all inputs were counted, as text for the header of a book. For a
    /// counts directory, these are the options with which it was made.
    ///
    /// # Errors
    ///
    /// Returns an error if input counts were made with options that contradict those of the run, or if input counts are
    /// of different variants.
    fn options_of_all(&self, run: &MakeBook) -> Result<String> {
        let own = run.option_text();
        let others = without_conditions(run).option_text();
        let has_games = self.counts().count() < self.all.len();
        let mut texts: Vec<String> = Vec::new();
        let mut variant = None;
        for CountsDescription { path, origin, .. } in self.counts() {
            let Some((origin, of)) = origin else {
                refuse_counting_options(run, path, has_games)?;
                continue;
            };
            if origin.options != own && (has_games || !others.is_empty()) {
                let own = if has_games { &own } else { &others };
                let problem = other_options(&origin.options, own, has_games);
                return Err(Error::file(path, problem));
            }
            let first = *variant.get_or_insert(*of);
            if first != *of {
                let problem = format!(
                    "these counts are for {of}, but other inputs are for {first}: add up only counts of one variant"
                );
                return Err(Error::file(path, problem));
            }
            if !texts.contains(&origin.options) {
                texts.push(origin.options.clone());
            }
        }
        Ok(match &mut texts[..] {
            [] => own,
            [one] => std::mem::take(one),
            several => {
                for text in several.iter_mut().filter(|text| text.is_empty()) {
                    text.push_str("defaults");
                }
                several.join(BETWEEN_OPTIONS)
            }
        })
    }
}

/// Opens an input, which is either a counts directory or games. `max_metadata` is the maximum memory for the metadata
/// of one Parquet file, in bytes. `run` contains the conditions on games.
#[cfg_attr(not(feature = "parquet"), expect(unused_variables))]
fn open_input<'a>(
    input: &'a Input,
    max_metadata: usize,
    run: &MakeBook,
) -> Result<Box<dyn RunInput + 'a>> {
    #[cfg(feature = "parquet")]
    if let Some(counts) = counts::CountsInput::open(input, max_metadata, run)? {
        return Ok(Box::new(counts));
    }
    Ok(Box::new(GamesInput(input)))
}

/// Returns a copy of `run` without the conditions on games.
fn without_conditions(run: &MakeBook) -> MakeBook {
    run.clone().selection(Selection::default())
}

/// Returns an error if the run has options for counting games, but no input contains games (`has_games` is `false`),
/// because such options cannot be applied to counts. The option for the variant and the conditions on games are
/// allowed. `path` is the path of input counts that do not state the options with which they were made.
fn refuse_counting_options(run: &MakeBook, path: &Path, has_games: bool) -> Result<()> {
    let mut other = without_conditions(run);
    other.variant = VariantChoice::default();
    let options = other.option_text();
    if options.is_empty() || has_games {
        return Ok(());
    }
    let problem = format!(
        "this input contains counts instead of games, so {options} cannot be applied: give the PGN files"
    );
    Err(Error::file(path, problem))
}

/// Returns the error message for input counts that were made with options that differ from those of the run. `theirs`
/// contains the options of the counts, and `own` contains the options of the run. `has_games` is `true` if some inputs
/// are games, which are counted with `own`.
fn other_options(theirs: &str, own: &str, has_games: bool) -> String {
    let named = |options: &str| match options {
        "" => "the defaults".to_owned(),
        options => options.to_owned(),
    };
    let (theirs, own) = (named(theirs), named(own));
    if has_games {
        return format!(
            "these counts were made with {theirs}, but the games are counted with {own}: use the options of the \
             counts, or first make counts of the games, and then add up both"
        );
    }
    format!(
        "this input contains counts made with {theirs} instead of games, so {own} cannot be applied: give the PGN \
         files"
    )
}

/// An input of a `make-book` run: a PGN file or a counts directory.
pub(super) trait RunInput: Send + Sync {
    /// Checks that the input can be opened, so that a mistake is reported before the run reads games.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, cannot be read or is a directory.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the size of the input in bytes, or `None` if it is unknown.
    fn size(&self) -> Option<u64>;

    /// Returns a description of the input if it is a counts directory, or `None` if it is a PGN file.
    fn counts(&self) -> Option<CountsDescription<'_>> {
        None
    }

    /// Returns this input as an [`OrderedInput`] if it is a counts directory with rows sorted by key, otherwise `None`.
    fn ordered(&self) -> Option<&dyn OrderedInput> {
        None
    }

    /// Reads the input, and passes its games or rows through `batches` to the threads of the run.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read, and [`Error::Interrupted`](crate::Error::Interrupted) if the run
    /// is cancelled.
    fn read<'scope>(&'scope self, batches: &mut BatchDispatcher<'_, 'scope, '_>) -> Result<()>;
}

/// A counts directory whose rows are already sorted by key, so that they can be merged with those of other inputs
/// without being sorted again.
pub(super) trait OrderedInput: Sync {
    /// Returns the number of rows in the counts directory.
    fn rows(&self) -> u64;

    /// Opens a reader of the rows whose keys are in `shards`. A shard is one of 256 ranges of equal size into which the
    /// keys are divided. The reader reports its progress to `run`.
    fn open<'r>(&'r self, run: &'r Run<'_>, shards: Range<usize>) -> OrderedCounts<'r>;

    /// Verifies the checksums of the files in the counts directory.
    ///
    /// # Errors
    ///
    /// Returns an error if a file was modified.
    fn check_bytes(&self) -> Result<()>;

    /// Checks that all rows of the counts directory have been read, and returns the total number of half-moves in them.
    ///
    /// # Errors
    ///
    /// Returns an error if more or fewer rows were read than the metadata of the Parquet files states, because a file
    /// is then damaged.
    fn check_read(&self) -> Result<u64>;
}

/// A description of an input of `make-book` that is a counts directory.
pub(super) struct CountsDescription<'a> {
    pub path: &'a Path,
    /// The inputs and options with which the counts were made, and their variant, if the directory contains the file
    /// `_counts.json`.
    pub origin: Option<&'a (Provenance, VariantChoice)>,
    /// The properties (speed, rating, month) by which the counts are grouped.
    pub by: Grouping,
    /// The numbers of positions, rows and half-moves that were pruned from the counts, or `None` if nothing was pruned.
    pub pruned: Option<Pruned>,
    /// The approximate memory, in bytes, that the metadata of a Parquet file takes beyond the usual amount.
    pub metadata: usize,
    #[cfg(feature = "parquet")]
    pub directory: &'a crate::formats::counts::CountsDirectory,
}

impl CountsDescription<'_> {
    /// Returns the approximate memory, in bytes, that a thread needs to read one Parquet file of the counts directory.
    pub(super) fn memory(&self) -> usize {
        BYTES_PER_DIRECTORY + self.metadata
    }
}

/// A PGN file that is an input of a `make-book` run.
pub(super) struct GamesInput<'a>(pub &'a Input);

impl RunInput for GamesInput<'_> {
    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn size(&self) -> Option<u64> {
        self.0.size()
    }

    fn read<'scope>(&'scope self, batches: &mut BatchDispatcher<'_, 'scope, '_>) -> Result<()> {
        let (input, run) = (self.0, batches.run);
        if run.is_satisfied() {
            return Ok(());
        }
        let options = StreamOptions {
            stop: Arc::clone(&run.options.stop),
            memory: input.unpacking_memory(run.options.memory.bytes),
            temp_dir: run.options.memory.temp_dir.clone(),
        };
        // A pipe that delivers nothing must not delay the end of a failed run.
        let stream = input.open_until(&options, run.failure.flag())?;
        let taken = Arc::clone(&stream.taken);
        let left_out = Arc::clone(&stream.left_out);
        let mut reported = 0;
        let mut cutter = Cutter::new(stream, BATCH_SIZE);
        while let Some(batch) = next_batch(&mut cutter, input)? {
            let so_far = taken.load(Ordering::Relaxed);
            run.options.progress.add_bytes(so_far - reported);
            reported = so_far;
            let id = batches.next_id();
            if run.failure.is_set() || run.is_satisfied() {
                return Ok(());
            }
            run.options.refuse_if_stopped()?;
            run.check_space(0)?;
            batches
                .scope
                .spawn(move |_| run.watch(|| run.replay(&batch, id)));
        }
        match left_out.get() {
            Some(left_out) => batches.submit(Outcome {
                skipped: SkippedParts {
                    files: Some(left_out.clone()),
                    ..SkippedParts::default()
                },
                ..Outcome::default()
            }),
            None => Ok(()),
        }
    }
}

/// Returns the next batch of whole games that `cutter` cuts from `input`, or `None` at the end of the input.
fn next_batch(cutter: &mut Cutter<Stream>, input: &Input) -> Result<Option<Batch>> {
    task::fault("cut");
    cutter.next_batch().map_err(|err| input.error(err))
}

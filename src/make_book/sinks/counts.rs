//! Writes a counts directory, which contains the results of each move in each position, as an output of a run. A
//! [`ClassBatch`] collects half-moves by class.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rustc_hash::FxHashSet;
use shakmaty::Color;

use crate::{
    chess::position::{BookMove, Variant},
    error::{self, Advice, Diagnosis, Error, Result},
    formats::counts::{
        ClassRecord, ClassTally, ClassedCounts, CountClass, CountedNames, CountsContent,
        CountsDirectory, CountsOrigin, CountsWriter, Grouping, KeyedIdentity, RowSource, Start,
    },
    games::{
        pgn::{Date, GameReader, RatingGroup, Speed, rating},
        results::Measured,
    },
    make_book::{
        budget::Budget,
        data::CollectedData,
        inputs::Inputs,
        needs::Needs,
        options::MakeBook,
        report::{CountsReport, Phase},
        sequence::retain_stretches,
        sink::{BatchSink, CountedGame, Plan, Sink, refuse_several_variants},
    },
    provenance::Rejection,
    storage::{output::Finished, sort::SHARDS},
};

struct CountsSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: CountsWriter,
    /// The tally of the games' half-moves by class, and the input counts that are grouped by class. `None` if the
    /// output is not grouped by class.
    classes: Option<(ClassTally, ClassedCounts)>,
    /// The approximate memory, in bytes, that a thread needs to read all input counts in order.
    reading: usize,
}

/// Returns a plan for writing a counts directory, or `None` if the options request none. Adds the data that the
/// directory needs to `needs`.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    inputs: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.counts.as_deref()?;
    needs.numbered_variants = true;
    let has_identities = options.distinguishes_variants();
    let has_classes = options.by.is_some_and(|by| !by.is_none());
    if has_classes {
        needs.classes = true;
        needs.game_identities = true;
        needs.starts = true;
    } else {
        needs.add_all_positions(options);
        // The counts must also contain keys, because books are made from counts.
        needs.shared_keys |= has_identities;
    }
    if options.counted_names.is_some() {
        needs.add_all_positions(options);
    }
    Some(Plan {
        path,
        needs_games_reason: None,
        memory_shares: usize::from(has_classes) * (1 + usize::from(has_identities)),
        begin: Box::new(move |budget| {
            let begin = || {
                let tally = ClassTally::new(&budget.share, has_identities);
                Ok((tally, opened_classed(options, inputs)?))
            };
            for counted in inputs.counts() {
                counted.directory.check_identities(has_identities)?;
            }
            let classes = has_classes.then(begin).transpose()?;
            Ok(Box::new(CountsSink {
                options,
                path,
                writer: CountsWriter::create(path, options.force)?,
                classes,
                reading: inputs.counts().map(|counted| counted.memory()).sum(),
            }))
        }),
    })
}

/// Opens all input counts for reading, so that their rows can be added up by class (speed, rating group and month).
///
/// # Errors
///
/// Returns an error if a file cannot be read, or if reading all counts directories at the same time would exceed the
/// memory budget of the run.
pub(super) fn opened_classed(options: &MakeBook, inputs: &Inputs<'_>) -> Result<ClassedCounts> {
    let directories: Vec<CountsDirectory> = inputs
        .counts()
        .map(|counted| counted.directory.clone())
        .collect();
    let bytes: usize = inputs.counts().map(|counted| counted.memory()).sum();
    if let Some(first) = directories.first()
        && bytes > options.memory.bytes
    {
        let number = directories.len();
        let what = match number {
            1 => "reading".to_owned(),
            _ => format!("adding up {number} directories of"),
        };
        let mut problem = Diagnosis::new(format!(
            "{what} counts by class takes {} MiB of memory",
            bytes >> 20,
        ))
        .advise(Advice::larger("memory"));
        if number > 1 {
            problem = problem.advise("add up some of the directories first");
        }
        return Err(Error::too_large(first.path(), problem));
    }
    ClassedCounts::open(&directories, inputs.by)
}

impl Sink for CountsSink<'_> {
    fn batch(&self, plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        let (by, has_identities) = (self.by(), self.options.distinguishes_variants());
        let (tally, _) = self.classes.as_ref()?;
        Some(Box::new(ClassBatch::new(tally, by, has_identities, plies)))
    }

    fn check_variants(&self, met: &BTreeMap<Variant, u64>) -> Result<()> {
        match self.options.counted_names {
            Some(_) => refuse_several_variants(self.path, "counts with names", met),
            None => Ok(()),
        }
    }

    fn spilled_bytes(&self) -> u64 {
        let classes = self.classes.as_ref();
        classes.map_or(0, |(tally, _)| tally.spilled_bytes())
    }

    fn cost(&self) -> Option<(Phase, u64)> {
        Some((Phase::Counts, 700))
    }

    fn write(mut self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Counts);
        meter.add_total(SHARDS as u64);
        let stop = &self.options.stop;
        let about = self.about(counted);
        let starts = counted.games.starts.all().map(|start| {
            let (epd, games) = start?;
            Ok(Start { epd, games })
        });
        let names = self.options.counted_names.map(|names| {
            let counts = counted.counts.by_position();
            let bytes = counted.counts.bytes_in_memory() as usize;
            let epds = counted.games.starts.all();
            let met = counted.games.report.totals.variants.keys().next().copied();
            CountedNames {
                names,
                counts,
                variant: self.options.variant.only().or(met).unwrap_or_default(),
                has_identities: self.options.distinguishes_variants(),
                starts: Box::new(epds.map(|start| Ok(start?.0))),
                memory: Budget::memory_left(self.options, bytes, counted.held_bytes),
            }
        });
        let mut content = CountsContent {
            size: about.plies,
            min_game: self.options.prune_counts,
            starts,
            names,
            about,
        };
        let (written, finished) = if let Some((tally, classed)) = self.classes.take() {
            let own = tally.sort()?;
            classed.check_bytes()?;
            let at_once = Budget::parts_at_once(self.options, self.reading);
            let has_identities = self.options.distinguishes_variants();
            let sources = (&classed, &own);
            self.writer
                .write_classed(sources, has_identities, at_once, content, stop, meter)?
        } else {
            let counts = counted.counts.by_position();
            let (source, rows) = match &counted.counts.shared_keys {
                Some(keys) => {
                    let finder = counts.finder()?;
                    (RowSource::Identities { finder, keys }, counts.size()?.1)
                }
                None => (RowSource::Keys(counts), counted.games.report.pairs),
            };
            content.size = rows;
            self.writer.write(&source, content, stop, meter)?
        };
        let least = self.options.prune_counts;
        if written.rows == 0 && least > 0 && !self.options.allow_empty {
            let positions = error::plural(written.positions, "position");
            let reason = Diagnosis::new(format!(
                "none of {positions} contains at least {least} counted moves"
            ))
            .advise(Advice::smaller("min-game"));
            return Err(Error::Empty { reason });
        }
        let report = &mut counted.games.report;
        if report.pairs == 0 {
            // All counts are by class, so the run has not counted pairs yet.
            (report.positions, report.pairs) = (written.positions, written.pairs);
            report.totals.plies = written.plies;
        }
        report.counts = Some(CountsReport {
            path: self.path.to_owned(),
            rows: written.rows,
            parts: written.parts,
            pruned: written.pruned,
        });
        Ok(finished)
    }
}

impl CountsSink<'_> {
    fn by(&self) -> Grouping {
        self.options.by.unwrap_or_default()
    }

    /// Creates the description of the counts directory, which is written to the file `_counts.json`.
    fn about(&self, counted: &CollectedData<'_>) -> CountsOrigin {
        let report = &counted.games.report;
        let totals = report.totals.tallied();
        // The sidecar names the inputs without their directories.
        let without_directory = |rejection: &Rejection| Rejection {
            file: PathBuf::from(rejection.file.file_name().unwrap_or_default()),
            ..rejection.clone()
        };
        let rejected = (report.rejected.iter().enumerate())
            .filter(|(index, _)| !report.untallied_rejected.contains(index))
            .map(|(_, rejection)| rejection);
        CountsOrigin {
            inputs: counted.provenance.inputs.clone(),
            games: counted.provenance.games,
            options: counted.options.to_owned(),
            variant: self.options.variant.to_string(),
            plies: totals.plies,
            by: self.by(),
            pruned: counted.pruned,
            left_out: totals.ambiguous_castling,
            null_moves: totals.null_moves,
            unplayable_variations: totals.unplayable_variations,
            castling_dropped: totals.castling_dropped,
            contradicted_results: totals.contradicted_results,
            unreadable_results: totals.unreadable_results,
            unfinished: totals.unfinished,
            undated: totals.undated,
            unrated: totals.unrated,
            filtered_by: totals
                .filtered_by
                .iter()
                .map(|(condition, games)| (condition.to_string(), *games))
                .collect(),
            variants: totals
                .variants
                .iter()
                .map(|(variant, games)| (variant.name().to_owned(), *games))
                .collect(),
            rejected: rejected.map(without_directory).collect(),
        }
    }
}

/// A collector of the half-moves of one batch of games. It records each half-move together with its class: the speed,
/// rating group and month of the game.
pub(super) struct ClassBatch<'a> {
    tally: &'a ClassTally,
    by: Grouping,
    has_identities: bool,
    records: Vec<ClassRecord>,
    /// The keys of the positions, if records are stored under identities.
    keys: Vec<KeyedIdentity>,
    /// The numbers of the counted games in the batch, each with its number of records.
    games: Vec<(u32, usize)>,
    /// The class of the current game.
    class: CountClass,
    /// The ratings of White and Black in the current game, 0 if unknown.
    ratings: [u16; 2],
}

impl<'a> ClassBatch<'a> {
    pub(super) fn new(
        tally: &'a ClassTally,
        by: Grouping,
        has_identities: bool,
        plies: usize,
    ) -> ClassBatch<'a> {
        ClassBatch {
            tally,
            by,
            has_identities,
            records: Vec::with_capacity(plies),
            keys: Vec::with_capacity(if has_identities { plies } else { 0 }),
            games: Vec::new(),
            class: CountClass::default(),
            ratings: [0; 2],
        }
    }

    /// Adds a record of the move `mv` in `position`. `mv` is [`BookMove::NONE`] if the game ends in the position.
    /// `turn` is the side to move, and `facts` contains further data of the half-move. Does nothing if the position has
    /// no valid key (its key is 0).
    fn push(&mut self, position: KeyedIdentity, mv: BookMove, turn: Color, facts: PlyFacts) {
        let key = if self.has_identities {
            position.identity()
        } else {
            position.key()
        };
        if key == 0 {
            return;
        }
        let class = CountClass {
            book_only: facts.book_only,
            ..self.class
        };
        let record = ClassRecord::new(key, mv, turn, class, facts.winner, facts.measured);
        self.records.push(record);
        if self.has_identities {
            self.keys.push(position);
        }
    }
}

/// Data of a half-move that is counted in addition to its position, move and class. It consists of the winner, the
/// measures of the game, and `book_only`, which marks half-moves that count for books but not for the explorer:
/// half-moves of variations, and half-moves whose position occurs again later in the game.
#[derive(Default)]
struct PlyFacts {
    book_only: bool,
    winner: Option<Color>,
    measured: Measured,
}

/// The maximum number of half-moves of a game in which repeated positions are found by linear search. In a longer game,
/// which is rare, they are found with a hash set.
const LONG_GAME: usize = 512;

/// The set of positions that occur after the current position of a game. The game is processed backwards, so the set
/// shows whether the current position occurs again later.
struct LaterPositions {
    /// A Bloom filter of 1024 bits. In a short game, it avoids most searches for a repeated position.
    bloom: [u64; 16],
    /// All positions of a long game, in which linear searches would take quadratic time. `None` for a short game.
    all: Option<FxHashSet<u64>>,
}

impl LaterPositions {
    /// Creates an empty set of positions for a game of `plies` half-moves.
    fn new(plies: usize) -> LaterPositions {
        LaterPositions {
            bloom: [0; 16],
            all: (plies > LONG_GAME).then(FxHashSet::default),
        }
    }

    /// Returns the location of the bit in the Bloom filter that stands for the position with the identity (a hash)
    /// `identity`. The location consists of the index of a word and a bit mask.
    fn bit(identity: u64) -> (usize, u64) {
        ((identity >> 6) as usize % 16, 1 << (identity % 64))
    }

    fn add(&mut self, identity: u64) {
        let (word, bit) = LaterPositions::bit(identity);
        self.bloom[word] |= bit;
        if let Some(all) = &mut self.all {
            all.insert(identity);
        }
    }

    /// Returns `true` if the position with the identity (a hash) `identity` has been added to the set. `added` must
    /// contain the identities of all added positions. They are searched in a short game, because its Bloom filter alone
    /// may wrongly report that a position was added.
    fn has(&self, identity: u64, added: &[u64]) -> bool {
        let (word, bit) = LaterPositions::bit(identity);
        self.bloom[word] & bit != 0
            && match &self.all {
                Some(all) => all.contains(&identity),
                None => added.contains(&identity),
            }
    }
}

impl BatchSink for ClassBatch<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, _batch_offset: u64) {
        let tags = game.tags();
        self.ratings = [&b"WhiteElo"[..], b"BlackElo"]
            .map(|name| tags.get(name).and_then(rating).unwrap_or(0));
        let date = Date::of_tags(tags);
        let month =
            u32::from(date.year().unwrap_or(0)) * 100 + u32::from(date.month().unwrap_or(0));
        self.class = self.by.project(CountClass {
            speed: Speed::of_tag(tags.get(b"TimeControl")) as u8,
            group: RatingGroup::of_game(self.ratings).map_or(0, |group| group.number() as u8 + 1),
            month,
            book_only: false,
        });
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        if !game.is_tallied {
            return;
        }
        let before = self.records.len();
        let winner = game.result.winner();
        let turn_at = |ply: usize| match ply % 2 {
            0 => game.first_turn,
            _ => !game.first_turn,
        };
        // Go backwards from the last half-move, so that it is known which positions are repeated later.
        let mut later = LaterPositions::new(game.plies.len());
        let identities = game.identities.iter().zip(game.exact_identities);
        let moves = game.plies.iter().zip(identities).enumerate().rev();
        for (at, (ply, (identity, exact))) in moves {
            let turn = turn_at(at);
            let of = PlyFacts {
                book_only: later.has(*identity, &game.identities[at + 1..]),
                winner,
                measured: [self.ratings[usize::from(turn.is_black())]],
            };
            later.add(*identity);
            let key = if ply.in_book { ply.key } else { 0 };
            self.push(KeyedIdentity::new(key, *exact), ply.mv, turn, of);
        }
        if !later.has(game.last_identity, game.identities) {
            let of = PlyFacts {
                winner,
                ..PlyFacts::default()
            };
            let key = if game.last_in_book { game.last_key } else { 0 };
            let last = KeyedIdentity::new(key, game.last_exact_identity);
            self.push(last, BookMove::NONE, turn_at(game.plies.len()), of);
        }
        for branch in game.branches {
            // A variation has neither a result nor players.
            let of = PlyFacts {
                book_only: true,
                ..PlyFacts::default()
            };
            let key = if branch.in_book { branch.key } else { 0 };
            let position = KeyedIdentity::new(key, branch.identity);
            self.push(position, branch.mv, branch.turn, of);
        }
        self.games.push((game.number, self.records.len() - before));
    }

    fn leave_out(&mut self, games: &[u32]) {
        let is_kept = |number| games.binary_search(number).is_err();
        let stretches = self.games.iter();
        let stretches = stretches.map(|(number, records)| (*records, is_kept(number)));
        retain_stretches(&mut self.records, stretches.clone());
        retain_stretches(&mut self.keys, stretches);
    }

    fn add(self: Box<Self>) -> Result<()> {
        self.tally.append(&self.records, &self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_positions_of_a_long_game_are_not_searched_for() {
        for plies in [LONG_GAME, LONG_GAME + 1] {
            let mut later = LaterPositions::new(plies);
            later.add(1);
            assert!(later.has(1, &[1]));
            // The numbers share a bit of the filter.
            assert!(!later.has(1 + (1 << 10), &[1]));
            // Only a short game is searched.
            assert_eq!(later.has(1, &[]), plies > LONG_GAME);
        }
    }
}

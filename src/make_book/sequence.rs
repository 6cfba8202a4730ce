//! Restores the order of batches, which threads complete in any order.
//!
//! Data that depends on the order of games, such as game numbers and the first rejected games, is kept here until all
//! earlier batches are complete.

use std::{collections::BTreeMap, iter::repeat_n};

use super::{
    budget::Budget,
    data::{OrderedResults, Starts},
    options::MakeBook,
    replay::Outcome,
    report::{Rejection, Report, Totals, VariantRejection},
    sink::{Sink, are_satisfied},
};
use crate::{
    chess::position::MoveError,
    error::{Error, Result},
    games::{
        pgn::{
            DateAndId, DuplicateKeys, Group, Input, NAMED_VARIANTS, NO_GAME, PlayerNames,
            SkippedParts, SpellingCounts, tag_text,
        },
        selection::Condition,
    },
    storage::sort::SpillingSet,
    task,
};

/// The number of a batch of games, and the input from which the batch comes.
#[derive(Copy, Clone, Debug)]
pub(super) struct BatchId {
    /// The number of the batch among all batches of the run.
    pub number: u64,
    /// The index of the input from which the batch comes.
    pub input: usize,
}

/// A queue that restores the order of batches. Threads replay batches in any order, and submit the collected data to
/// the sequencer, which processes it in the order of the inputs.
pub(super) struct Sequencer<'a> {
    options: &'a MakeBook,
    sinks: &'a [Box<dyn Sink + 'a>],
    /// The number of batches that have been processed, which is also the number of the next batch.
    processed_batches: u64,
    /// The outcomes that wait for earlier batches, keyed by the number of their batch. Each comes with the index of its
    /// input.
    early: BTreeMap<u64, (usize, Outcome<'a>)>,
    inputs: Vec<InputState>,
    /// The index of the input from which the last processed batch comes.
    last_input: usize,
    report: Report,
    starts: Starts,
    filtered_variants: BTreeMap<VariantRejection, u64>,
    names: PlayerNames,
    spellings: SpellingCounts<'a>,
    events: PlayerNames,
    has_event: bool,
    /// The keys of the games counted so far, by which duplicates are recognized. `None` if duplicates are not dropped.
    seen: Option<SpillingSet>,
}

/// The maximum number of rejected games that an error message lists if an input contains no playable game.
const MAX_LISTED_GAMES: usize = 3;

/// The state of one input: data from the batches of this input that have been processed so far.
#[derive(Clone, Default)]
struct InputState {
    games: u64,
    recognised: bool,
    has_text: bool,
    skipped: SkippedParts,
}

impl<'a> Sequencer<'a> {
    pub(super) fn new(
        options: &'a MakeBook,
        sinks: &'a [Box<dyn Sink + 'a>],
        budget: &Budget,
    ) -> Sequencer<'a> {
        Sequencer {
            options,
            sinks,
            processed_batches: 0,
            early: BTreeMap::new(),
            inputs: vec![InputState::default(); options.inputs.len()],
            last_input: 0,
            report: Report::default(),
            starts: Starts::new(&budget.starts),
            filtered_variants: BTreeMap::new(),
            names: PlayerNames::new(options.selection.names(), options.selection.name_match()),
            spellings: SpellingCounts::new(
                options.selection.player_conditions(),
                options.selection.name_match(),
            ),
            events: PlayerNames::new(
                options.selection.event.iter().cloned().collect(),
                options.selection.name_match(),
            ),
            has_event: false,
            seen: options
                .selection
                .counts_once()
                .then(|| SpillingSet::new(budget.duplicates.clone())),
        }
    }

    /// Returns the number of batches that have been processed, which is also the number of the batch to process next.
    pub(super) fn processed_batches(&self) -> u64 {
        self.processed_batches
    }

    /// Adds `outcome`, the data collected from the batch `id`, to the queue. Then processes every batch in the queue
    /// whose predecessors have all been processed, and returns the data of these batches in the order of the inputs.
    ///
    /// The caller must add the records in the returned data to the counts of the run. It should first unlock the mutex
    /// that protects the sequencer, so that other threads need not wait.
    pub(super) fn submit(&mut self, id: BatchId, outcome: Outcome<'a>) -> Result<Vec<Outcome<'a>>> {
        self.early.insert(id.number, (id.input, outcome));
        let mut in_order = Vec::new();
        while let Some((input, outcome)) = self.early.remove(&self.processed_batches) {
            self.processed_batches += 1;
            task::fault("sequence");
            in_order.push(self.process(input, outcome)?);
        }
        Ok(in_order)
    }

    /// Processes `outcome`, the data of the next batch in the order of the inputs: removes duplicate games from it, and
    /// adds the numbers of games and other totals to the report. Returns the rest of the data, whose records the caller
    /// must count. `input` is the index of the batch's input.
    fn process(&mut self, input: usize, mut outcome: Outcome<'a>) -> Result<Outcome<'a>> {
        if are_satisfied(self.sinks) {
            // How many batches are read after the last one that matters depends on the threads.
            return Ok(Outcome::default());
        }
        self.last_input = input;
        if let Some(seen) = &mut self.seen {
            leave_out_duplicates(&mut outcome, seen)?;
        }
        let path = self.options.inputs[input].path();
        let mut collectors = outcome.collectors.iter_mut();
        collectors.try_for_each(|collector| collector.process_in_order(path))?;
        let untallied = std::mem::take(&mut outcome.untallied_rejected);
        self.reject(input, std::mem::take(&mut outcome.rejected), &untallied)?;
        let state = &mut self.inputs[input];
        state.games += outcome.totals.games.read;
        state.recognised |= outcome.recognised;
        state.has_text |= outcome.has_text;
        state.skipped.join(std::mem::take(&mut outcome.skipped));
        self.report.totals += &outcome.totals;
        let met = &self.report.totals.variants;
        let mut sinks = self.sinks.iter();
        sinks.try_for_each(|sink| sink.check_variants(met))?;
        for (epd, games) in &outcome.starts {
            self.starts.add(epd, *games)?;
        }
        self.filter_variants(std::mem::take(&mut outcome.filtered_variants));
        for (name, games) in std::mem::take(&mut outcome.matched_names) {
            self.names.add_matched(&tag_text(&name), games);
        }
        for name in std::mem::take(&mut outcome.known_names) {
            self.names.add_known(&tag_text(&name));
        }
        for name in std::mem::take(&mut outcome.other_names) {
            self.names.add_other(&tag_text(&name));
        }
        for (name, games) in std::mem::take(&mut outcome.games_of_names) {
            self.spellings.add(&name, games);
        }
        self.has_event |= outcome.has_event;
        if !self.has_event {
            for event in std::mem::take(&mut outcome.other_events) {
                self.events.add_other(&tag_text(&event));
            }
        }
        Ok(outcome)
    }

    /// Adds the rejected games of a batch to the report of the run, up to the maximum number that the report contains.
    /// `input` is the index of the batch's input. The number of each game in the batch is converted to its number in
    /// the input. `untallied` contains the numbers of games that tallies cannot contain. If the run is strict, returns
    /// the first rejected game as an error.
    fn reject(&mut self, input: usize, rejected: Vec<Rejection>, untallied: &[u64]) -> Result<()> {
        let room = Report::MAX_DESCRIBED_GAMES.saturating_sub(self.report.rejected.len());
        for mut rejection in rejected.into_iter().take(room) {
            if untallied.contains(&rejection.game) {
                let index = self.report.rejected.len();
                self.report.untallied_rejected.push(index);
            }
            rejection.game += self.inputs[input].games;
            if self.options.strict {
                return Err(Error::Rejected(Box::new(rejection)));
            }
            self.report.rejected.push(rejection);
        }
        Ok(())
    }

    /// Adds the numbers of games that were filtered because of their variant to the totals of the run. The totals list
    /// only a limited number of variants, because every game may name a different one. Games of all further variants
    /// are counted together.
    fn filter_variants(&mut self, filtered: BTreeMap<VariantRejection, u64>) {
        for (variant, games) in filtered {
            let is_new = !self.filtered_variants.contains_key(&variant);
            let variant = if is_new && self.filtered_variants.len() >= NAMED_VARIANTS {
                VariantRejection::More
            } else {
                variant
            };
            *self.filtered_variants.entry(variant).or_default() += games;
        }
    }

    /// Returns the error message for `input`, which contains text, but no game that can be played. `state` contains the
    /// data that was collected from this input.
    fn why_no_game(&self, state: &InputState, input: &Input) -> String {
        let mut rejected = self.report.rejected.iter();
        let first = rejected.clone().find(|it| it.file == input.path());
        // Prose may look like the text of a game, but its first word does not look like a move.
        let prose = MoveError::Unreadable.to_string();
        let mut played = rejected
            .by_ref()
            .filter(|it| it.file == input.path() && it.reason != prose)
            .map(Rejection::without_file)
            .take(MAX_LISTED_GAMES)
            .peekable();
        if played.peek().is_some() {
            let games: Vec<String> = played.collect();
            return format!(
                "none of the games in this file can be read: {}",
                games.join("; ")
            );
        }
        match first {
            Some(first) => format!(
                "{NO_GAME}; some text looks like a game, but contains no move: {}",
                first.without_file()
            ),
            None if state.games > 0 => {
                format!(
                    "{NO_GAME}; some text looks like a game, but contains no moves such as e4 and Nf3"
                )
            }
            None => NO_GAME.to_owned(),
        }
    }

    /// Returns the report of the run, and all data that depends on the order of games. Must be called after the last
    /// batch.
    ///
    /// # Errors
    ///
    /// Returns an error if an input contains text, but no game that can be played.
    pub(super) fn finish(mut self) -> Result<OrderedResults> {
        let read = if are_satisfied(self.sinks) {
            self.last_input + 1
        } else {
            self.inputs.len()
        };
        for (state, input) in self.inputs.iter().zip(&self.options.inputs).take(read) {
            if state.has_text && !state.recognised {
                return Err(Error::file(input.path(), self.why_no_game(state, input)));
            }
            if !state.has_text {
                let warning = format!("{}: this file is empty", input.path().display());
                self.report.warnings.push(warning);
            }
            let skipped = state.skipped.warnings(input.path());
            self.report.warnings.extend(skipped);
        }
        self.report.warnings.extend(self.report.totals.warnings());
        let of_variants = VariantRejection::warnings(&self.filtered_variants);
        self.report.warnings.extend(of_variants);
        self.report.warnings.extend(self.names.note());
        self.report.warnings.extend(self.spellings.notes());
        self.report.matched_players = self.names.matched();
        self.report.meant = self.names.did_you_mean();
        if self.report.meant.is_empty() && !self.has_event {
            self.report.meant = self.events.did_you_mean();
        }
        let first_games = self
            .inputs
            .iter()
            .scan(0, |next, state| {
                let first = *next;
                *next += state.games;
                Some(first)
            })
            .collect();
        Ok(OrderedResults {
            report: self.report,
            first_games,
            starts: self.starts,
        })
    }
}

/// Removes the games that duplicate earlier games from `outcome`, the data of the next batch in the order of the
/// inputs. `seen` contains the keys of all earlier games that are kept; the keys of the games of this batch that are
/// kept are added to it.
fn leave_out_duplicates(outcome: &mut Outcome<'_>, seen: &mut SpillingSet) -> Result<()> {
    let candidates = std::mem::take(&mut outcome.candidates);
    let mut is_new = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        is_new.push(match candidate.keys {
            Some(keys) => add_first(seen, keys)?,
            None => true,
        });
    }
    let judged = || candidates.iter().zip(is_new.iter().copied());
    let records = judged().map(|(candidate, keep)| (candidate.records, keep));
    retain_stretches(&mut outcome.records, records);
    let records = judged().map(|(candidate, keep)| (candidate.identity_records, keep));
    retain_stretches(&mut outcome.identity_records, records);
    let mut left_out = Vec::new();
    for (candidate, is_new) in judged() {
        if is_new {
            outcome.totals += &candidate.totals;
            continue;
        }
        left_out.push(candidate.number);
        // If `keep_prefix` is set, a rejected game may be a candidate. It is already counted as rejected.
        let games = candidate.totals.games.counted;
        if games > 0 {
            let mut duplicates = Totals::default();
            duplicates.games.filtered = games;
            duplicates.filtered_by.insert(Condition::Duplicate, games);
            outcome.totals += &match candidate.totals.untallied {
                Some(_) => duplicates.into_untallied(),
                None => duplicates,
            };
        }
    }
    if !left_out.is_empty() {
        let collectors = outcome.collectors.iter_mut();
        collectors.for_each(|collector| collector.leave_out(&left_out));
    }
    Ok(())
}

/// Adds a game with the keys `keys` to `seen`, the groups of all earlier games. Returns `true` if the game is the first
/// one of its group, and `false` if it is a duplicate.
fn add_first(seen: &mut SpillingSet, keys: DuplicateKeys) -> Result<bool> {
    let entry = |key: u64, facts: DateAndId| u128::from(key) << 64 | u128::from(facts.to_bits());
    let current = |number| Ok(DateAndId::current(seen.low_halves(keys.group_key(number))?));
    match keys.facts.find_group(current)? {
        Group::First(number) => seen.insert(entry(keys.group_key(number), keys.facts)),
        Group::Joined(number, facts) => {
            seen.insert(entry(keys.group_key(number), facts))?;
            Ok(false)
        }
        Group::Exact => seen.insert(entry(keys.exact_key(), keys.facts)),
    }
}

/// Removes some groups of consecutive elements from `list`. `stretches` divides the whole list into such groups from
/// start to end. An item contains the length of a group, and whether its elements are kept.
pub(super) fn retain_stretches<T>(
    list: &mut Vec<T>,
    stretches: impl Iterator<Item = (usize, bool)>,
) {
    let mut keep = stretches.flat_map(|(length, keep)| repeat_n(keep, length));
    list.retain(|_| keep.next().expect("the stretches are the whole list"));
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Mutex};

    use proptest::prelude::*;

    use super::*;
    use crate::{
        make_book::sink::{BatchSink, CountedGame},
        provenance::GameCounts,
    };

    /// A batch collector that records the order in which `process_in_order` is called.
    struct Noted<'a> {
        number: u64,
        order: &'a Mutex<Vec<u64>>,
    }

    impl BatchSink for Noted<'_> {
        fn count(&mut self, _game: &CountedGame<'_>) {}

        fn leave_out(&mut self, _games: &[u32]) {}

        fn process_in_order(&mut self, _input: &Path) -> Result<()> {
            task::lock(self.order).push(self.number);
            Ok(())
        }

        fn add(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    /// Returns the outcome of a batch of `games` games, some of which are rejected.
    fn outcome<'a>(games: u64, rejected: &[u64]) -> Outcome<'a> {
        let mut outcome = Outcome {
            recognised: true,
            has_text: true,
            rejected: rejected
                .iter()
                .map(|game| Rejection {
                    file: "games.pgn".into(),
                    game: *game,
                    offset: 0,
                    ply: 0,
                    mv: String::new(),
                    reason: String::new(),
                })
                .collect(),
            ..Outcome::default()
        };
        outcome.totals.games = GameCounts {
            read: games,
            counted: games - rejected.len() as u64,
            filtered: 0,
            rejected: rejected.len() as u64,
        };
        outcome
    }

    fn id(number: u64, input: usize) -> BatchId {
        BatchId { number, input }
    }

    fn options() -> MakeBook {
        MakeBook::new(["a.pgn", "b.pgn"].map(Input::file))
    }

    /// Returns the result of twelve batches that are completed in this order, and the order in which they were
    /// processed. The first seven batches belong to the first input. The last game of each batch is rejected.
    fn sequenced(games: &[u64], order: &[u64]) -> (OrderedResults, Vec<u64>) {
        let options = options();
        let turns = Mutex::default();
        let mut sequencer = Sequencer::new(&options, &[], &Budget::default());
        let mut handed_back = 0;
        for number in order {
            let games = games[*number as usize];
            let mut outcome = outcome(games, &[games - 1]);
            outcome.collectors.push(Box::new(Noted {
                number: *number,
                order: &turns,
            }));
            let id = id(*number, usize::from(*number >= 7));
            let in_order = sequencer.submit(id, outcome).unwrap();
            handed_back += in_order
                .iter()
                .map(|batch| batch.collectors.len())
                .sum::<usize>();
        }
        assert_eq!((sequencer.processed_batches(), handed_back), (12, 12));
        (sequencer.finish().unwrap(), task::unlocked(turns))
    }

    proptest! {
        #[test]
        fn the_order_of_completion_changes_nothing(
            order in Just((0..12u64).collect::<Vec<_>>()).prop_shuffle(),
            games in proptest::collection::vec(1..5u64, 12),
        ) {
            let in_order: Vec<u64> = (0..12).collect();
            let (shuffled, turns) = sequenced(&games, &order);
            let (straight, _) = sequenced(&games, &in_order);
            prop_assert_eq!(turns, in_order);
            prop_assert_eq!(&shuffled.report, &straight.report);
            prop_assert_eq!(&shuffled.first_games, &straight.first_games);
            let before: Vec<u64> = (0..12).map(|i| games[..i].iter().sum()).collect();
            prop_assert_eq!(shuffled.first_games, vec![0, before[7]]);
            let last_game = before[8] - before[7] + games[8] - 1;
            prop_assert_eq!(shuffled.report.rejected[8].game, last_game);
        }
    }

    #[test]
    fn a_strict_run_ends_with_the_first_rejected_game() {
        let options = options().strict(true);
        let mut sequencer = Sequencer::new(&options, &[], &Budget::default());
        // The later batch is complete first, but its rejected game is not reported.
        assert!(sequencer.submit(id(1, 0), outcome(3, &[0])).is_ok());
        let err = sequencer.submit(id(0, 0), outcome(3, &[2])).err().unwrap();
        assert_eq!(err.carried::<Rejection>().unwrap().game, 2);
    }

    #[test]
    fn an_input_without_games_is_an_error() {
        let options = options();
        let mut sequencer = Sequencer::new(&options, &[], &Budget::default());
        let text = Outcome {
            has_text: true,
            ..Outcome::default()
        };
        sequencer.submit(id(0, 1), text).unwrap();
        assert!(
            sequencer
                .finish()
                .err()
                .unwrap()
                .to_string()
                .contains("b.pgn")
        );
    }

    #[test]
    fn sections_are_kept_or_removed() {
        let mut list = vec![1, 2, 3, 4, 5, 6];
        retain_stretches(&mut list, [(2, true), (3, false), (1, true)].into_iter());
        assert_eq!(list, [1, 2, 6]);
    }
}

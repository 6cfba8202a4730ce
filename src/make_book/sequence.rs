//! Putting the results of batches in the order of the inputs.
//!
//! Batches are done when they are done. What depends on their order (the numbers of games, which
//! games are the first rejected) waits here until all batches before are done too.

use std::{collections::BTreeMap, path::Path};

use super::{
    MakeBook,
    read::Job,
    replay::Outcome,
    report::{FilteredVariant, Report, stray_text},
    starts::Starts,
};
use crate::{
    error::{Error, Result},
    index::GameRecords,
    position::Variant,
};

/// How many variants that are filtered have their games counted each.
const NAMED_VARIANTS: usize = 20;

/// Collects the outcomes of batches.
pub(super) struct Sequencer<'a> {
    options: &'a MakeBook,
    /// The batch whose turn it is.
    next: u64,
    /// Outcomes of later batches, with the number of their input.
    waiting: BTreeMap<u64, (usize, Outcome)>,
    inputs: Vec<InputState>,
    report: Report,
    /// The records of all games, if there is to be an index.
    records: Option<GameRecords>,
    starts: Starts,
    filtered_variants: BTreeMap<FilteredVariant, u64>,
}

/// Postings whose games have their ids.
pub(super) struct Placed {
    pub postings: Vec<u128>,
    /// What has to be added to their ids.
    pub first_id: u32,
}

/// What is known of an input so far.
#[derive(Clone, Default)]
struct InputState {
    games: u64,
    recognised: bool,
    has_text: bool,
    stray_text: Option<u64>,
}

impl<'a> Sequencer<'a> {
    pub(super) fn new(options: &'a MakeBook) -> Sequencer<'a> {
        Sequencer {
            options,
            next: 0,
            waiting: BTreeMap::new(),
            inputs: vec![InputState::default(); options.inputs.len()],
            report: Report::default(),
            records: options
                .leveldb
                .as_ref()
                .map(|_| GameRecords::new(options.memory / 8, options.temp_dir.clone())),
            starts: Starts::new(options.memory / 16, options.temp_dir.clone()),
            filtered_variants: BTreeMap::new(),
        }
    }

    /// Takes the outcome of a batch, and puts in order what can be. The postings that come out of it
    /// are for the caller to count, so that nobody waits for that.
    pub(super) fn submit(&mut self, job: &Job, outcome: Outcome) -> Result<Vec<Placed>> {
        self.waiting.insert(job.number, (job.input, outcome));
        let mut placed = Vec::new();
        while let Some((input, outcome)) = self.waiting.remove(&self.next) {
            self.next += 1;
            placed.extend(self.place(input, outcome)?);
        }
        Ok(placed)
    }

    fn place(&mut self, input: usize, outcome: Outcome) -> Result<Option<Placed>> {
        let placed = match &mut self.records {
            Some(records) => {
                let first_id = records.len();
                records.push_all(&outcome.record_lengths, &outcome.game_records)?;
                if records.len() > u64::from(u32::MAX) {
                    return Err(Error::file(
                        self.options.inputs[input].path(),
                        "an index holds at most 4294967295 games: make several",
                    ));
                }
                Some(Placed {
                    postings: outcome.postings,
                    first_id: first_id as u32,
                })
            }
            None => None,
        };
        let state = &mut self.inputs[input];
        let room = Report::DESCRIBED.saturating_sub(self.report.rejected.len());
        for mut rejection in outcome.rejected.into_iter().take(room) {
            rejection.game += state.games;
            if self.options.strict {
                return Err(Error::Rejected(Box::new(rejection)));
            }
            self.report.rejected.push(rejection);
        }
        state.games += outcome.games.read;
        state.recognised |= outcome.recognised;
        state.has_text |= outcome.has_text;
        if state.stray_text.is_none() {
            state.stray_text = outcome.stray_text;
        }
        self.report.games.add(outcome.games);
        self.report.plies += outcome.plies;
        self.report.left_out += outcome.left_out;
        for (variant, games) in outcome.variants {
            *self.report.variants.entry(variant).or_default() += games;
        }
        if let Some(path) = &self.options.obs {
            refuse_several_variants(path, &self.report.variants)?;
        }
        for (identity, epd) in outcome.starts {
            self.starts.add(identity, &epd)?;
        }
        for (variant, games) in outcome.filtered_variants {
            // Whoever invents a name for every game need not have all of them repeated.
            let is_new = !self.filtered_variants.contains_key(&variant);
            let variant = if is_new && self.filtered_variants.len() >= NAMED_VARIANTS {
                FilteredVariant::More
            } else {
                variant
            };
            *self.filtered_variants.entry(variant).or_default() += games;
        }
        Ok(placed)
    }

    /// What was collected, after the last batch.
    pub(super) fn finish(mut self) -> Result<Sequenced> {
        for (state, input) in self.inputs.iter().zip(&self.options.inputs) {
            if state.has_text && !state.recognised {
                return Err(Error::file(
                    input.path(),
                    "holds no game: name a PGN file, plain or packed with gzip, bzip2, zstd or zip",
                ));
            }
            if !state.has_text {
                let warning = format!("{}: is empty", input.path().display());
                self.report.warnings.push(warning);
            }
            if let Some(offset) = state.stray_text {
                self.report.warnings.push(stray_text(input.path(), offset));
            }
        }
        for (variant, games) in &self.filtered_variants {
            self.report.warnings.push(variant.warning(*games));
        }
        let mut first_ids = Vec::with_capacity(self.inputs.len());
        let mut next = 0;
        for state in &self.inputs {
            first_ids.push(next);
            next += state.games;
        }
        Ok(Sequenced {
            report: self.report,
            records: self.records,
            first_ids,
            starts: self.starts,
        })
    }
}

/// What is known when all batches are done.
pub(super) struct Sequenced {
    pub report: Report,
    pub records: Option<GameRecords>,
    /// The id of each input's first game.
    pub first_ids: Vec<u64>,
    /// Where games started.
    pub starts: Starts,
}

/// A position of an OOBS database does not say by which rules it is played.
fn refuse_several_variants(path: &Path, met: &BTreeMap<Variant, u64>) -> Result<()> {
    let mut variants = met.keys();
    let first = variants.next();
    match variants.find(|other| first.is_some_and(|first| !first.is_played_like(**other))) {
        Some(other) => Err(Error::file(
            path,
            format!(
                "would mix {} and {other}, and an OOBS database is for one variant: name it with --variant",
                first.unwrap_or(other)
            ),
        )),
        None => Ok(()),
    }
}

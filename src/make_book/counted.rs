//! Counts among the inputs of a run: what they were made with, and adding them up.
//!
//! `without/counted.rs` stands in for this file where the feature `parquet` is left out.

use std::{path::Path, sync::atomic::Ordering};

use rayon::Scope;

use super::{
    MakeBook,
    job::Job,
    read::Run,
    replay::Outcome,
    report::{Report, Totals},
};
use crate::{
    counts::{About, CountsDirectory, CountsError, Part, Row, Start, is_counts},
    error::{Error, Result},
    pgn::{Batch, Condition, Input},
    position::{Variant, VariantChoice},
    provenance::{Games, Provenance},
    tally::{CountBatch, KeyedIdentity},
};

/// The counts among the inputs.
pub(super) struct CountedInputs {
    /// For each input its counts, `None` for games.
    directories: Vec<Option<CountsDirectory>>,
    /// The options that all was counted with, as a header lists them.
    options: String,
}

impl CountedInputs {
    /// Opens the counts among the inputs.
    ///
    /// # Errors
    ///
    /// Counts that cannot be read, and options of the run that do not fit them.
    pub(super) fn open(run: &MakeBook) -> Result<CountedInputs> {
        let open = |input: &Input| {
            let path = input.path();
            let is_counts = !input.is_stdin() && is_counts(path);
            is_counts.then(|| CountsDirectory::open(path)).transpose()
        };
        let directories = run.inputs.iter().map(open).collect::<Result<Vec<_>>>()?;
        let options = run.options_of_all(&directories)?;
        Ok(CountedInputs {
            directories,
            options,
        })
    }

    fn present(&self) -> impl Iterator<Item = &CountsDirectory> {
        self.directories.iter().flatten()
    }

    /// The run with the variant of its counts.
    pub(super) fn adapted(&self, run: &MakeBook) -> Result<MakeBook> {
        let mut run = run.clone();
        for directory in self.present() {
            let Some(about) = directory.about() else {
                continue;
            };
            let unknown = |_| {
                let problem = format!("unknown variant \"{}\"", about.variant);
                Error::format(directory.path(), CountsError::Sidecar(problem))
            };
            run.variant = about.variant.parse::<VariantChoice>().map_err(unknown)?;
        }
        if let (Some(path), true) = (&run.leveldb, self.present().next().is_some()) {
            let problem = "an index is made of games, and counts have none: name the PGN files";
            return Err(Error::file(path, problem));
        }
        Ok(run)
    }

    /// Whether an input is counts.
    pub(super) fn has(&self, input: usize) -> bool {
        self.directories[input].is_some()
    }

    /// The size of an input, `None` where that is not known.
    pub(super) fn size(&self, number: usize, input: &Input) -> Option<u64> {
        match &self.directories[number] {
            Some(directory) => Some(directory.size()),
            None => input.size(),
        }
    }

    /// What all counts of the run are made of.
    pub(super) fn provenance(&self, run: &MakeBook, games: Games) -> Provenance {
        let names = run.inputs.iter().zip(&self.directories);
        let inputs = names.flat_map(|(input, directory)| match directory {
            None => vec![input.name()],
            Some(directory) => match directory.about() {
                Some(about) => about.inputs.clone(),
                None => vec![format!(
                    "{} (counts that do not tell their games)",
                    input.name()
                )],
            },
        });
        let tells_games = |directory: &CountsDirectory| {
            directory.about().is_some_and(|about| about.games.is_some())
        };
        Provenance {
            inputs: inputs.collect(),
            games: self.present().all(tells_games).then_some(games),
            options: self.options.clone(),
        }
    }
}

impl MakeBook {
    /// The options that all inputs are counted with, as a header lists them.
    ///
    /// # Errors
    ///
    /// Options for games beside counts that were made with others.
    fn options_of_all(&self, directories: &[Option<CountsDirectory>]) -> Result<String> {
        let own = self.option_text();
        let has_games = directories.iter().any(Option::is_none);
        let mut texts: Vec<String> = Vec::new();
        let mut variant = None;
        for directory in directories.iter().flatten() {
            let Some(about) = directory.about() else {
                self.refuse_options_for_unknown(directory.path(), has_games)?;
                continue;
            };
            if about.options != own && (has_games || !own.is_empty()) {
                return Err(Error::file(
                    directory.path(),
                    other_options(about, &own, has_games),
                ));
            }
            if **variant.get_or_insert(&about.variant) != about.variant {
                let problem = format!(
                    "counts of variant {}, and others are of {}: add up those of one variant",
                    about.variant,
                    variant.unwrap_or(&about.variant)
                );
                return Err(Error::file(directory.path(), problem));
            }
            if !texts.contains(&about.options) {
                texts.push(about.options.clone());
            }
        }
        Ok(match &mut texts[..] {
            [] => own,
            [one] => std::mem::take(one),
            several => {
                for text in several.iter_mut().filter(|text| text.is_empty()) {
                    text.push_str("defaults");
                }
                several.join(" | ")
            }
        })
    }

    /// Refuses to choose among the games of counts that do not say how they were made. Their variant may be told.
    fn refuse_options_for_unknown(&self, path: &Path, has_games: bool) -> Result<()> {
        let mut other = self.clone();
        other.variant = VariantChoice::default();
        let options = other.option_text();
        if options.is_empty() || has_games {
            return Ok(());
        }
        let problem = format!(
            "holds counts, in which no games can be chosen by {options}: count the games again"
        );
        Err(Error::file(path, problem))
    }
}

/// Why counts cannot be read with the options of a run.
fn other_options(about: &About, own: &str, has_games: bool) -> String {
    let named = |options: &str| match options {
        "" => "the defaults".to_owned(),
        options => options.to_owned(),
    };
    let (theirs, own) = (named(&about.options), named(own));
    if has_games {
        return format!(
            "counted with {theirs}, and the games beside it with {own}: give the options of the counts, or count the \
             games with --counts first and add both"
        );
    }
    format!(
        "holds counts made with {theirs}, in which no games can be chosen any more by {own}: count the games again"
    )
}

/// What a run would have found in the games of counts.
fn outcome(about: &About, run: &MakeBook) -> Result<Outcome, CountsError> {
    let mut totals = Totals {
        games: about.games.unwrap_or_default(),
        plies: about.plies,
        null_moves: about.null_moves,
        unplayable_variations: about.unplayable_variations,
        castling_dropped: about.castling_dropped,
        ..Totals::default()
    };
    if run.tells_left_out() {
        totals.left_out = about.left_out;
    }
    for (name, games) in &about.filtered_by {
        let unknown = || CountsError::Sidecar(format!("unknown condition \"{name}\""));
        let condition = Condition::from_name(name).ok_or_else(unknown)?;
        totals.filtered_by.insert(condition, *games);
    }
    for (name, games) in &about.variants {
        let unknown = |_| CountsError::Sidecar(format!("unknown variant \"{name}\""));
        let variant: Variant = name.parse().map_err(unknown)?;
        totals.variants.insert(variant, *games);
    }
    Ok(Outcome {
        totals,
        rejected: about
            .rejected
            .iter()
            .take(Report::DESCRIBED)
            .cloned()
            .collect(),
        recognised: true,
        has_text: true,
        ..Outcome::default()
    })
}

impl Run<'_> {
    /// Adds the counts of an input up, a task for each part. `number` counts the batches of the run.
    pub(super) fn read_counts<'scope>(
        &'scope self,
        scope: &Scope<'scope>,
        input: usize,
        number: &mut u64,
        in_flight: u64,
    ) -> Result<()> {
        let directory = self.counted.directories[input].as_ref();
        let directory = directory.expect("the caller asked whether it is counts");
        let about = directory.about();
        let mut place = |outcome: Outcome| {
            self.wait_for_place(*number, in_flight);
            let job = Job {
                batch: Batch {
                    text: Vec::new(),
                    offset: 0,
                },
                number: *number,
                input,
            };
            *number += 1;
            self.submit(&job, outcome)
        };
        place(match about {
            Some(about) => {
                outcome(about, self.options).map_err(|err| Error::format(directory.path(), err))?
            }
            None => Outcome {
                recognised: true,
                has_text: true,
                ..Outcome::default()
            },
        })?;
        if let (Some(part), true) = (directory.starts(), self.options.notes_starts()) {
            let variant = self.variant_of_starts(about);
            let mut row = 0;
            part.read_starts(&mut |starts| {
                check_starts(&starts, variant, row)
                    .map_err(|err| Error::format(part.path(), err))?;
                row += starts.len() as u64;
                let starts = starts.into_iter();
                place(Outcome {
                    starts: starts
                        .map(|start| (start.epd.into_bytes(), start.games))
                        .collect(),
                    recognised: true,
                    has_text: true,
                    ..Outcome::default()
                })
            })?;
        }
        for part in directory.parts() {
            scope.spawn(move |_| {
                if let Err(err) = self.add_part(part, about.is_some()) {
                    self.fail(err);
                }
            });
        }
        Ok(())
    }

    /// The variant of the positions in which games started, `None` if they are of several.
    fn variant_of_starts(&self, about: Option<&About>) -> Option<Variant> {
        let met = about.map(|about| about.variants.keys().collect::<Vec<_>>());
        match (self.options.variant.only(), met.as_deref()) {
            (Some(variant), _) => Some(variant),
            (None, Some([only])) => only.parse().ok(),
            _ => None,
        }
    }

    /// Adds up the rows of a part.
    fn add_part(&self, part: &Part, is_told: bool) -> Result<()> {
        if self.options.counts_identities() && !part.has_identities()? {
            return Err(Error::format(part.path(), CountsError::NoIdentity));
        }
        let plies = part.read(&mut |rows| {
            if self.failed.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.options.refuse_if_stopped()?;
            self.check_space()?;
            self.add_rows(rows, part.path())
        })?;
        if !is_told {
            self.untold_plies.fetch_add(plies, Ordering::Relaxed);
        }
        self.options.progress.add_bytes(part.size());
        Ok(())
    }

    fn add_rows(&self, rows: &[Row], path: &Path) -> Result<()> {
        let games = rows.iter().map(|row| row.stats.games()).sum::<u64>();
        let before = self.counted_plies.fetch_add(games, Ordering::Relaxed);
        // So that no sum of them can overflow.
        if before + games > i64::MAX as u64 {
            return Err(Error::format(path, CountsError::Overflow));
        }
        if let Some(tally) = &self.tally {
            let mut batch = CountBatch::default();
            // Without a key no book can have it.
            for row in rows.iter().filter(|row| row.key != 0) {
                batch.push(row.key, row.mv, row.turn, row.stats);
            }
            tally.add_batch(&batch)?;
            tally.refuse_many_large(path)?;
        }
        if let Some(tally) = &self.identities {
            let mut batch = CountBatch::default();
            for row in rows {
                batch.push(row.identity, row.mv, row.turn, row.stats);
            }
            tally.add_batch(&batch)?;
            tally.refuse_many_large(path)?;
        }
        if let Some(pairs) = &self.pairs {
            let rows = rows.iter();
            let found: Vec<KeyedIdentity> = rows
                .map(|row| KeyedIdentity::new(row.key, row.identity))
                .collect();
            pairs.add(&found)?;
        }
        Ok(())
    }
}

/// Makes sure that the starts are positions, the first of which stands in `row`.
fn check_starts(starts: &[Start], variant: Option<Variant>, row: u64) -> Result<(), CountsError> {
    let Some(variant) = variant else {
        return Ok(());
    };
    for (at, start) in starts.iter().enumerate() {
        if let Err(err) = variant.parse_fen(&start.epd) {
            return Err(CountsError::Start {
                row: row + at as u64,
                epd: start.epd.clone(),
                reason: err.to_string(),
            });
        }
    }
    Ok(())
}

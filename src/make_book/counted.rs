//! Counts among the inputs of a run, and what they were made with.
//!
//! `without/counted.rs` stands in for this file where the feature `parquet` is left out.

use std::path::Path;

use super::{options::MakeBook, sinks::Plan};
use crate::{
    counts::{About, CountsDirectory, CountsError, OrderedParts, is_counts},
    error::{Error, Result},
    pgn::Input,
    position::VariantChoice,
    provenance::{Games, Provenance},
};

/// The counts among the inputs.
pub(super) struct CountedInputs {
    /// For each input its counts, `None` for games.
    directories: Vec<Option<CountsDirectory>>,
    /// For each input its parts, if they are in order.
    ordered: Vec<Option<OrderedParts>>,
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
        let ordered = directories.iter().map(|directory| match directory {
            Some(directory) => directory.ordered(),
            None => Ok(None),
        });
        Ok(CountedInputs {
            ordered: ordered.collect::<Result<_>>()?,
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
        Ok(run)
    }

    /// Refuses outputs that are made of games, if some of the inputs are counts.
    pub(super) fn refuse_for_games(&self, plans: &[Plan<'_>]) -> Result<()> {
        let mut of_games = plans.iter().filter_map(|plan| Some((plan, plan.of_games?)));
        match of_games.next() {
            Some((plan, reason)) if self.present().next().is_some() => Err(Error::file(
                plan.path,
                format!("{reason}, and counts have none: name the PGN files"),
            )),
            _ => Ok(()),
        }
    }

    /// The counts that an input is, `None` for games.
    pub(super) fn directory(&self, input: usize) -> Option<&CountsDirectory> {
        self.directories[input].as_ref()
    }

    /// The parts of an input that are in order.
    pub(super) fn ordered_parts(&self, input: usize) -> Option<&OrderedParts> {
        self.ordered[input].as_ref()
    }

    /// All parts that are in order, by directory.
    pub(super) fn ordered(&self) -> impl Iterator<Item = &OrderedParts> {
        self.ordered.iter().flatten()
    }

    /// Whether an input is counts.
    pub(super) fn has(&self, input: usize) -> bool {
        self.directory(input).is_some()
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
        let problem = format!("has counts, to which {options} cannot apply: count the games again");
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
    format!("has counts made with {theirs}, to which {own} cannot apply: count the games again")
}

//! The inputs of a merge, and whether they fit together.

use std::path::Path;

use crate::{
    error::{Error, Result},
    index::{Index, layout::Contents},
    position::VariantChoice,
};

/// The inputs of a merge.
pub(super) struct Plan<'a> {
    pub inputs: Vec<MergeInput<'a>>,
    pub games: u64,
    pub variant: VariantChoice,
    pub with_stats: bool,
    /// The number of the input that has the first games, which keep their ids.
    pub base: usize,
    /// How many bytes of entries are read ahead; it may be more, because a table of each input is.
    pub read_ahead: usize,
    /// What each input has for the explorer, if all have.
    pub contents: Option<Vec<Contents>>,
}

/// An input and the new id of its first game.
pub(super) struct MergeInput<'a> {
    pub index: &'a Index,
    pub first_id: u32,
}

impl<'a> Plan<'a> {
    pub(super) fn new(indexes: &'a [Index], out: &Path, read_ahead: usize) -> Result<Plan<'a>> {
        let Some(first) = indexes.first() else {
            return Err(Error::file(out, "there is nothing to merge: name indexes"));
        };
        let mut plan = Plan {
            inputs: Vec::new(),
            games: 0,
            variant: first.variant(),
            with_stats: false,
            base: 0,
            read_ahead,
            contents: None,
        };
        let mut contents = Vec::new();
        let mut stats = None;
        for index in indexes {
            let other = |what: &str| {
                let problem = format!(
                    "{what} than {}: make one of them again",
                    first.path().display()
                );
                Error::file(index.path(), problem)
            };
            if index.variant() != plan.variant {
                return Err(other("has games of another variant"));
            }
            // Of whole tables, which are taken over as they are.
            index.database().tables_within(b"", b"")?;
            let has_stats = index.has_stats()?;
            if has_stats.is_some_and(|has| stats.is_some_and(|others| has != others)) {
                return Err(other("was made with another choice of --index-stats"));
            }
            stats = stats.or(has_stats);
            contents.extend(index.contents()?);
            if plan.games == 0 {
                plan.base = plan.inputs.len();
            }
            plan.inputs.push(MergeInput {
                index,
                first_id: plan.games as u32,
            });
            if !contents.is_empty() && contents.len() < plan.inputs.len() {
                return Err(other("was made with another choice of --explorer"));
            }
            plan.games += index.game_count();
            if plan.games > u64::from(u32::MAX) {
                return Err(Error::too_large(
                    out,
                    "an index has at most 4294967295 games",
                ));
            }
        }
        plan.with_stats = stats.unwrap_or(false);
        plan.contents = (!contents.is_empty()).then_some(contents);
        Ok(plan)
    }
}

//! Games that begin in another position than the starting position of their variant. They count only in the positions
//! that they reach, so answers about a line from the starting position say how many they are.

use std::sync::OnceLock;

use super::{query::Line, sources::Sources};
use crate::{error::Result, position::Variant, selection::Selection};

/// The number of games that begin in another position than the starting position of their variant, and one of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OtherStarts {
    /// The number of games, which is at least 1.
    pub games: u64,
    /// The number of the first of these games in the explorer.
    pub first: u64,
}

/// For each variant, the games in each source that do not reach the starting position of the variant. They are
/// collected when they are first needed.
#[derive(Default)]
pub(super) struct OtherStartGames([OnceLock<Vec<Vec<u32>>>; Variant::ALL.len()]);

impl OtherStartGames {
    /// Returns the number of games that pass the filters, are played by the rules of `line`, and do not reach the
    /// starting position. Returns `None` if there are none, or if `line` begins in another position too. Implements
    /// [`Explorer::other_starts`](super::Explorer::other_starts).
    pub(super) fn passing(
        &self,
        sources: &Sources,
        line: &Line,
        filters: &Selection,
    ) -> Result<Option<OtherStarts>> {
        let variant = line.variant();
        if line.positions()[0] != variant.start() {
            return Ok(None);
        }
        let all = self.of_variant(sources, variant)?;
        if all.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let filters = sources.filters(filters)?;
        let mut passing: Option<OtherStarts> = None;
        for (source, filter) in &filters.of_sources {
            let number = sources
                .indexes
                .iter()
                .position(|index| index.first == source.first);
            let ids = number.map_or(&[][..], |number| &all[number]).iter();
            let ids = ids.filter(|id| filter.admits(**id as usize));
            let mut ids: Vec<(u32, u32)> = ids.map(|id| (*id, 0)).collect();
            let kept = filters.keep_first(source, &mut ids);
            if let Some((first, _)) = kept.first() {
                let found = passing.get_or_insert(OtherStarts {
                    games: 0,
                    first: source.first + u64::from(*first),
                });
                found.games += kept.len() as u64;
            }
        }
        Ok(passing)
    }

    fn of_variant(&self, sources: &Sources, variant: Variant) -> Result<&[Vec<u32>]> {
        let stored = &self.0[variant as usize];
        if let Some(known) = stored.get() {
            return Ok(known);
        }
        let subject = Line::start(variant).subject();
        let of_source = sources.indexes.iter().map(|source| {
            if source.counted.is_some() {
                return Ok(Vec::new());
            }
            let mut is_listed = vec![false; source.rows.len()];
            for id in source.listed(subject)? {
                if let Some(listed) = is_listed.get_mut(id as usize) {
                    *listed = true;
                }
            }
            let only = source.index.variant().only();
            let begins_elsewhere = |id: &u32| {
                let traits = source.rows.traits[*id as usize];
                !is_listed[*id as usize]
                    && traits.is_indexed()
                    && only
                        .or(traits.variant())
                        .is_some_and(|own| variant.is_played_like(own))
            };
            Ok((0..source.rows.len() as u32)
                .filter(begins_elsewhere)
                .collect())
        });
        let found = of_source.collect::<Result<Vec<Vec<u32>>>>()?;
        // Several threads may collect the games at the same time, with the same result.
        Ok(stored.get_or_init(|| found))
    }
}

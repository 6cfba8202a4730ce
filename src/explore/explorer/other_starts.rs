//! Counts games that do not begin in the starting position of their variant. Such games count only for positions that
//! they reach. An answer about a line from the starting position may therefore miss them, and says how many there are.

use std::sync::{Mutex, OnceLock};

use super::{query::Line, sources::Sources};
use crate::{
    chess::position::Variant,
    error::{Error, Result},
    games::selection::Selection,
    task,
};

/// The maximum number of counts that are stored. A visitor usually opens many positions with the same filters, so most
/// counts can be reused.
const MAX_COUNTS: usize = 64;

/// The number of games that are filtered before the next check whether the count was cancelled.
const GAMES_PER_CHECK: usize = 1 << 12;

/// The number of games that do not begin in the starting position of their variant, with one of them as an example.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OtherStarts {
    /// The number of games, which is at least 1.
    pub games: u64,
    /// The game number of the first of these games in the explorer.
    pub first: u64,
}

/// The games that do not reach the starting position of their variant, with the most recent counts of them.
#[derive(Default)]
pub(super) struct OtherStartGames {
    /// The ids of these games, for each variant and source. They are collected when they are first needed.
    ids: [OnceLock<Vec<Vec<u32>>>; Variant::ALL.len()],
    /// The number of these games that pass certain filters, for each variant and filters that were counted recently.
    /// The oldest count comes first.
    counts: Mutex<Vec<(Variant, Selection, Option<OtherStarts>)>>,
}

impl OtherStartGames {
    /// Counts the games of the variant of `line` that pass the filters but do not reach its starting position. Returns
    /// `None` if there are none, or if `line` does not begin in the starting position either. Implements
    /// [`Explorer::other_starts`](super::Explorer::other_starts).
    pub(super) fn passing(
        &self,
        sources: &Sources,
        line: &Line,
        filters: &Selection,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Option<OtherStarts>> {
        let variant = line.variant();
        if line.positions()[0] != variant.start() {
            return Ok(None);
        }
        let all = self.of_variant(sources, variant)?;
        if all.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let is_same =
            |(of, selection, _): &&(Variant, Selection, _)| *of == variant && selection == filters;
        if let Some((.., known)) = task::lock(&self.counts).iter().find(is_same) {
            return Ok(*known);
        }
        let passing = count(sources, all, filters, should_continue)?;
        let mut counts = task::lock(&self.counts);
        if counts.len() == MAX_COUNTS {
            counts.remove(0);
        }
        counts.push((variant, filters.clone(), passing));
        Ok(passing)
    }

    fn of_variant(&self, sources: &Sources, variant: Variant) -> Result<&[Vec<u32>]> {
        let stored = &self.ids[variant as usize];
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

/// Counts the games in `all` that pass the filters. `all` contains the ids of games in each source.
fn count(
    sources: &Sources,
    all: &[Vec<u32>],
    filters: &Selection,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<OtherStarts>> {
    let filters = sources.filters(filters)?;
    let mut passing: Option<OtherStarts> = None;
    for (source, filter) in &filters.of_sources {
        let number = sources
            .indexes
            .iter()
            .position(|index| index.first == source.first);
        for ids in number
            .map_or(&[][..], |number| &all[number])
            .chunks(GAMES_PER_CHECK)
        {
            if !should_continue() {
                return Err(Error::Interrupted);
            }
            for id in ids.iter().filter(|id| filter.admits(**id as usize)) {
                if filters.keep_first(source, &mut [(*id, 0)]).is_empty() {
                    continue;
                }
                let found = passing.get_or_insert(OtherStarts {
                    games: 0,
                    first: source.first + u64::from(*id),
                });
                found.games += 1;
            }
        }
    }
    Ok(passing)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        MakeBook,
        explore::explorer::Explorer,
        games::{pgn::Input, selection::RatedStatus},
    };

    #[test]
    fn counts_can_be_cancelled_and_are_stored() {
        let dir = tempfile::tempdir().unwrap();
        let fen = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";
        let game = |event: &str, moves: &str| {
            let start = format!("[SetUp \"1\"]\n[FEN \"{fen}\"]");
            // Games without names are duplicates only if their year is known.
            format!("[Event \"{event}\"]\n[Date \"2024.01.02\"]\n{start}\n\n{moves} *\n\n")
        };
        let text = [
            "[Event \"Rated\"]\n\n1. e4 *\n\n".to_owned(),
            game("Rated blitz", "3. Bb5"),
            game("Rated blitz", "3. Bb5"),
            game("Casual blitz", "3. Bc4"),
            game("Club", "3. d4"),
        ]
        .concat();
        let (pgn, index) = (dir.path().join("games.pgn"), dir.path().join("idx"));
        fs::write(&pgn, text).unwrap();
        let made = MakeBook::new([Input::file(&pgn)]).explorer(&index).run();
        made.unwrap();
        let explorer = Explorer::open([("games".to_owned(), index)]).unwrap();
        let line = Line::start(Variant::Standard);
        let mut counts = Vec::new();
        for (conditions, expected) in [
            (&[][..], Some(4)),
            (&[("duplicates", "once")], Some(3)),
            (&[("rated", "rated")], Some(2)),
            (&[("rated", "rated"), ("duplicates", "once")], Some(1)),
            (&[("rated", "casual")], Some(1)),
            (&[("rated", "unknown")], Some(1)),
            (&[("rated", "rated,casual")], Some(3)),
            (&[("rated", "unknown,casual")], Some(2)),
            (&[("rated", "rated,unknown")], Some(3)),
            (&[("event", "none")], None),
        ] {
            let mut filters = Selection::default();
            for (name, text) in conditions {
                filters.set(name, text).unwrap();
            }
            let cancelled = explorer.other_starts_while(&line, &filters, &|| false);
            match expected {
                None => assert_eq!(cancelled.unwrap(), None),
                Some(_) => assert!(matches!(cancelled, Err(Error::Interrupted))),
            }
            let found = explorer.other_starts(&line, &filters).unwrap();
            assert_eq!(found.map(|found| found.games), expected, "{conditions:?}");
            counts.push((filters, found));
        }
        // The games are not filtered again.
        for (filters, expected) in counts {
            let stored = explorer.other_starts_while(&line, &filters, &|| false);
            assert_eq!(stored.unwrap(), expected);
        }
        let status = Some(vec![RatedStatus::Rated]);
        let skipped = explorer.skip_unfinished().unwrap();
        let filters = Selection {
            rated: status,
            ..Selection::default()
        };
        assert_eq!(skipped.other_starts(&line, &filters).unwrap(), None);
    }
}

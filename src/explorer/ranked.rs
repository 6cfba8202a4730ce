//! The sorted list of a position's games, of which only a window is in memory at a time.

use std::iter;

use super::{
    count::{Rank, first_games},
    query::{Page, Query, Sort},
    source_filter::SourceFilters,
};
use crate::{error::Result, position::BookMove};

/// The largest number of games in memory. For each further window, all games of the position are ranked again.
const STRETCH: usize = if cfg!(test) { 7 } else { 1 << 16 };

/// Returns the number of games of the whole list, and an iterator over the numbers and moves of the games on the page.
///
/// # Errors
///
/// Returns an error if the index is damaged. The iterator returns such errors too.
pub(super) fn ranked<'a>(
    filters: SourceFilters<'a>,
    query: &'a Query,
    page: &Page,
) -> Result<(u64, impl Iterator<Item = Result<(u64, BookMove)>> + use<'a>)> {
    let Page {
        mut skip,
        mut limit,
        sort,
        ..
    } = *page;
    let mut last = None;
    // Returns the next games on the page, the number of all games, and whether more games follow.
    let mut stretch = move || -> Result<(Vec<Rank>, u64, bool)> {
        let wanted = skip.saturating_add(limit).min(STRETCH);
        let (total, mut ranks) = first_games(&filters, query, sort, wanted, last)?;
        last = ranks.last().copied();
        let go_on = ranks.len() == wanted;
        let skipped = skip.min(ranks.len());
        ranks.drain(..skipped);
        skip -= skipped;
        limit -= ranks.len();
        Ok((ranks, total, go_on && limit > 0))
    };
    let (first, total, mut go_on) = stretch()?;
    let rest = iter::from_fn(move || {
        go_on.then(|| {
            let next = stretch();
            go_on = next.as_ref().is_ok_and(|next| next.2);
            next.map(|(ranks, ..)| ranks)
        })
    });
    let games = iter::once(Ok(first)).chain(rest).flat_map(move |ranks| {
        let (ranks, err) = match ranks {
            Ok(ranks) => (ranks, None),
            Err(err) => (Vec::new(), Some(err)),
        };
        let game = move |(_, number, mv)| (number_of(number, sort), mv);
        ranks
            .into_iter()
            .map(move |rank| Ok(game(rank)))
            .chain(err.map(Err))
    });
    Ok((total, games))
}

/// Returns the number of a game from the second field of its rank, which is inverted if games are sorted by number.
pub(super) fn number_of(ranked: u64, sort: Sort) -> u64 {
    match sort {
        Sort::Id => u64::MAX - ranked,
        Sort::Recent | Sort::Rating => ranked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        MakeBook,
        explorer::{Explorer, Line, View},
        pgn::Input,
        position::Variant,
    };

    #[test]
    fn pages_are_parts_of_one_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let input = Input::file("data/famous.pgn");
        let run = MakeBook::new([input]).explorer(&path);
        run.run().unwrap();
        let explorer = Explorer::open([(String::new(), path)]).unwrap();
        let line = Line::parse(Variant::Standard, None, "").unwrap();
        let query = Query::new(line, View::Lichess);
        let numbers = |page: Page| {
            let (total, numbers) = explorer.game_numbers(&query, &page).unwrap();
            (total, numbers.collect::<Result<Vec<u64>>>().unwrap())
        };
        for sort in [Sort::Id, Sort::Recent, Sort::Rating] {
            let page = |skip, limit| {
                numbers(Page {
                    skip,
                    limit,
                    sort,
                    fold_matches: false,
                })
            };
            let (total, all) = page(0, usize::MAX);
            assert_eq!(all.len() as u64, total);
            let month = |number: &u64| {
                let game = explorer.game(*number).unwrap();
                (game.year, game.month)
            };
            match sort {
                Sort::Id => assert!(all.is_sorted()),
                Sort::Recent => assert!(all.iter().rev().is_sorted_by_key(month)),
                Sort::Rating => {}
            }
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), all.len());
            for (skip, limit) in [(0, 0), (0, 1), (0, 7), (3, 9), (7, 7), (20, 20), (40, 99)] {
                let end = all.len().min(skip + limit);
                assert_eq!(
                    page(skip, limit).1,
                    all[skip.min(end)..end],
                    "{sort} {skip} {limit}"
                );
                assert_eq!(page(skip, limit).0, total);
            }
            assert!(page(usize::MAX, usize::MAX).1.is_empty());
        }
    }
}

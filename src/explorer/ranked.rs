//! The games of a position in an order. Only a stretch of them is in memory at a time.

use std::vec;

use super::{
    count::{Rank, first_games},
    query::{Page, Query, Sort},
    source_filter::SourceFilters,
};
use crate::{error::Result, position::BookMove};

/// How many games are held. For more, all are gone through again.
const STRETCH: usize = if cfg!(test) { 7 } else { 1 << 16 };

/// The games on a page: their numbers and moves.
pub(super) struct Ranked<'a> {
    filters: SourceFilters<'a>,
    query: &'a Query,
    sort: Sort,
    /// How many games there are, also before and after the page.
    pub total: u64,
    stretch: vec::IntoIter<Rank>,
    /// The last game of the stretch.
    last: Option<Rank>,
    /// Whether no games follow.
    is_last: bool,
    /// How many games are yet to be left out, and how many are yet on the page.
    skip: usize,
    left: usize,
}

impl<'a> Ranked<'a> {
    pub(super) fn new(
        filters: SourceFilters<'a>,
        query: &'a Query,
        page: &Page,
    ) -> Result<Ranked<'a>> {
        let mut ranked = Ranked {
            filters,
            query,
            sort: page.sort,
            total: 0,
            stretch: Vec::new().into_iter(),
            last: None,
            is_last: false,
            skip: page.skip,
            left: page.limit,
        };
        ranked.go_on()?;
        Ok(ranked)
    }

    /// Finds the next stretch.
    fn go_on(&mut self) -> Result<()> {
        let wanted = self.skip.saturating_add(self.left).min(STRETCH);
        let (total, mut ranks) =
            first_games(&self.filters, self.query, self.sort, wanted, self.last)?;
        self.total = total;
        self.is_last = ranks.len() < wanted;
        self.last = ranks.last().copied();
        let skipped = self.skip.min(ranks.len());
        self.skip -= skipped;
        ranks.drain(..skipped);
        self.stretch = ranks.into_iter();
        Ok(())
    }
}

impl Iterator for Ranked<'_> {
    type Item = Result<(u64, BookMove)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            if let Some((_, number, mv)) = self.stretch.next() {
                self.left -= 1;
                let number = match self.sort {
                    Sort::Id => u64::MAX - number,
                    Sort::Recent | Sort::Rating => number,
                };
                return Some(Ok((number, mv)));
            }
            if self.is_last {
                return None;
            }
            if let Err(err) = self.go_on() {
                self.left = 0;
                return Some(Err(err));
            }
        }
        None
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
        let run = MakeBook::new([input]).explorer(true).leveldb(&path);
        run.run().unwrap();
        let explorer = Explorer::open([(String::new(), path)]).unwrap();
        let line = Line::parse(Variant::Standard, None, "").unwrap();
        let query = Query::new(line, View::Lichess);
        let numbers = |page: Page| {
            let (total, numbers) = explorer.game_numbers(&query, &page).unwrap();
            (total, numbers.collect::<Result<Vec<u64>>>().unwrap())
        };
        for sort in [Sort::Id, Sort::Recent, Sort::Rating] {
            let page = |skip, limit| numbers(Page { skip, limit, sort });
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

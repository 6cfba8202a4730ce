//! Writing pages of counts to an index without games, and reading them.

use super::period_builder::push_periods;
use crate::{
    error::{Error, Result},
    index::{
        Index,
        positions::EntryBatch,
        store::{
            self, COUNTS, CountedContents, ListKey,
            count_pages::{CountedList, CountedPage, INLINE, MOST_ROWS},
            lists::Paging,
            page_key,
            results::{MOST_GAMES, ResultRow, games_of},
        },
    },
    position::BookMove,
};

/// A builder that turns sorted rows into the entries of pages and periods.
#[derive(Debug)]
pub(in crate::index) struct CountPageBuilder {
    paging: Paging,
    made: EntryBatch,
    page: CountedPage,
    /// The current position.
    subject: ListKey,
    /// The rows of the current position.
    rows: Vec<ResultRow>,
    about: AboutRows,
}

/// Facts about all rows.
#[derive(Copy, Clone, Default, Debug)]
pub(in crate::index) struct AboutRows {
    /// The first and the last known year.
    pub years: Option<[u16; 2]>,
    /// Whether there are rows without a move, for games that end in a position.
    pub has_ends: bool,
}

/// The errors of counts for which no index can be written.
const TOO_MANY: &str = "one position, or some with nearly equal keys, have more than half a million rows: count fewer classes";
const TOO_LARGE: &str =
    "the counts have more games of a move, or higher ratings, than there can be";
const NOT_IN_ORDER: &str = "the rows are not in the order of their keys";

impl CountPageBuilder {
    /// Creates a maker without rows.
    pub(in crate::index) fn new(paging: Paging) -> CountPageBuilder {
        CountPageBuilder {
            paging,
            made: EntryBatch::default(),
            page: CountedPage::default(),
            subject: ListKey(0),
            rows: Vec::new(),
            about: AboutRows::default(),
        }
    }

    /// Adds the next rows, sorted by subject, and returns the entries that are complete. The rows of a position may be
    /// in any order. Rows of the same move, class and month are added up.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the subjects are not ascending, if a position has too many rows, or if a
    /// sum is too large.
    pub(in crate::index) fn add_all(
        &mut self,
        rows: Vec<(ListKey, ResultRow)>,
    ) -> Result<EntryBatch, &'static str> {
        for (subject, row) in rows {
            if subject < self.subject {
                return Err(NOT_IN_ORDER);
            }
            if subject != self.subject {
                self.end_position()?;
                if self.paging.page(subject) != self.paging.page(self.subject) {
                    self.end_page();
                }
                self.subject = subject;
            }
            if self.rows.len() + self.page.row_count() >= MOST_ROWS {
                return Err(TOO_MANY);
            }
            self.rows.push(row);
        }
        Ok(std::mem::take(&mut self.made))
    }

    /// Closes the current position, if it has rows.
    fn end_position(&mut self) -> Result<(), &'static str> {
        let rows = &mut self.rows;
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable_by_key(ResultRow::kind);
        rows.dedup_by(|row, sum| {
            let is_same = row.kind() == sum.kind();
            if is_same {
                sum.add(row);
            }
            is_same
        });
        if !rows.iter().all(ResultRow::is_possible) {
            return Err(TOO_LARGE);
        }
        self.made.positions += 1;
        self.made.steps += rows.len() as u64;
        self.made.postings += rows.len() as u64;
        self.about.has_ends |= rows[0].mv == BookMove::NONE;
        for year in rows
            .iter()
            .map(|row| row.month.year())
            .filter(|year| *year > 0)
        {
            let [first, last] = self.about.years.unwrap_or([year; 2]);
            self.about.years = Some([first.min(year), last.max(year)]);
        }
        if rows.len() <= INLINE {
            self.page.push(self.subject, rows);
        } else {
            let games = games_of(rows);
            if games > MOST_GAMES {
                return Err(TOO_LARGE);
            }
            self.page.push_with_periods(self.subject, games);
            let entries = &mut self.made.entries;
            push_periods(COUNTS, self.subject, rows, |_| Vec::new(), entries);
        }
        self.rows.clear();
        Ok(())
    }

    /// Adds the entry of the current page, if it has positions.
    fn end_page(&mut self) {
        if let Some((last, page)) = self.page.take(self.paging) {
            self.made.entries.push(&page_key(COUNTS, last), &page);
        }
    }

    /// Returns the last entries and the facts about all rows.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if [`add_all`](CountPageBuilder::add_all) would.
    pub(in crate::index) fn finish(mut self) -> Result<(EntryBatch, AboutRows), &'static str> {
        self.end_position()?;
        self.end_page();
        Ok((self.made, self.about))
    }
}

impl Index {
    /// Returns the description of an index of counts, or `None` if this is an index of games.
    ///
    /// # Errors
    ///
    /// Returns an error if the description cannot be read, is damaged, or is of another version.
    pub(crate) fn counted(&self) -> Result<Option<CountedContents>> {
        let Some(value) = self.value(store::COUNTED)? else {
            return Ok(None);
        };
        let contents = CountedContents::parse(&value);
        contents.map(Some).ok_or_else(|| {
            let problem = "has counts that are damaged or of another version of polybook: make the index again";
            Error::damaged(self.path(), problem)
        })
    }

    /// Returns the counts of a position, or `None` if the index does not contain the position.
    ///
    /// # Errors
    ///
    /// Returns an error if the page cannot be read or is malformed.
    pub(crate) fn counted_list(
        &self,
        paging: Paging,
        subject: ListKey,
    ) -> Result<Option<CountedList>> {
        let key = page_key(COUNTS, paging.last_of(subject));
        let Some(page) = self.value(&key)? else {
            return Ok(None);
        };
        let found = paging.find_counts(&page, subject);
        found.ok_or_else(|| self.malformed(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        index::store::results::{Class, Month},
        pgn::Speed,
    };

    fn row(mv: u16, games: u64) -> ResultRow {
        ResultRow {
            mv: BookMove(mv),
            class: Class::new(Speed::Blitz, None),
            month: Month::new(2024, 1).unwrap(),
            games: [games, 0, 0, 0],
            rated: 0,
            ratings: 0,
            game: None,
        }
    }

    fn ends(rows: Vec<(ListKey, ResultRow)>) -> Result<(), &'static str> {
        let mut pages = CountPageBuilder::new(Paging::for_items(1));
        pages.add_all(rows)?;
        pages.finish().map(drop)
    }

    #[test]
    fn rows_must_come_by_key() {
        let of = |keys: [u64; 3]| ends(keys.map(|key| (ListKey(key), row(1, 1))).to_vec());
        assert_eq!(of([5, 5, u64::MAX]), Ok(()));
        assert_eq!(of([5, 6, 5]), Err(NOT_IN_ORDER));
    }

    #[test]
    fn sums_have_a_limit() {
        let half = MOST_GAMES / 2;
        assert_eq!(
            ends(vec![(ListKey(1), row(1, half)), (ListKey(1), row(1, half))]),
            Ok(())
        );
        let more = vec![(ListKey(1), row(1, half)), (ListKey(1), row(1, half + 1))];
        assert_eq!(ends(more), Err(TOO_LARGE));
    }
}

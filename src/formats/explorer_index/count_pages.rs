//! Encodes the results of positions for an index of counts, which contains no games. For each move of a position, each
//! class and each month, the index contains the wins, draws and losses and the means of measures, such as ratings.
//!
//! Positions whose keys begin with the same bits are stored together in a *page*, one entry of the index. A position
//! with more than [`MAX_INLINE_ROWS`] rows has separate entries instead, one for each
//! [`Period`](super::results::Period). Pages and periods are bit strings. `g(k)` is an exponential Golomb code of order
//! k.
//!
//! | part | encoding |
//! |---|---|
//! | a page | g(6) the number of positions minus 1; 17 bits: the first month; g(6) the number of months minus 1; the positions, ascending |
//! | a position | g(d) its number minus the previous number minus 1 (for the first position, its last bits); g(0) the number of moves minus 1, or [`MAX_INLINE_ROWS`] for a position with separate periods; the moves, or g(10) the number of games of a position with separate periods |
//! | a [period](super::periods) | g(0) the number of moves minus 1; the moves, with a single month |
//!
//! d is the number of bits in which the keys of a page differ, minus the base-2 logarithm of the number of positions in
//! the page, rounded down. [`results`](super::results) describes the encoding of moves and months.
//!
//! `CountPageBuilder` turns sorted rows into pages and periods.

use super::{
    COUNTS, ListKey, Paging,
    bits::{BitReader, BitWriter},
    page_key,
    periods::push_periods,
    results::{
        MAX_GAMES, MAX_ROWS, MONTH_BITS, Months, ResultRow, games_of, put_moves, take_moves,
    },
};
use crate::{
    chess::position::BookMove, error::Result, formats::fork_index::entry_batches::EntryBatch,
};

/// The maximum number of rows of a position that is stored in a page (an index entry with several positions). The limit
/// keeps pages short. A row contains the results of one move in one class (speed and rating group) and month. If a
/// position has more rows, its results are stored in separate entries, one for each period (all time, a year or a
/// month).
pub const MAX_INLINE_ROWS: usize = if cfg!(test) { 32 } else { 1 << 10 };

/// A number that marks a position whose results are stored in separate entries, not in the page (an index entry with
/// several positions). The page contains this number in place of the position's number of moves, which is always
/// smaller.
const SEPARATE_MARK: u64 = MAX_INLINE_ROWS as u64 + 1;

/// Returns the order of the exponential Golomb codes in which a page (an index entry with several positions) stores the
/// differences between consecutive position keys. With this order, the codes are shortest if the keys are evenly
/// distributed. `count` is the number of positions in the page, and `paging` is the rule that groups positions in
/// pages.
fn order_of_gaps(paging: Paging, count: u64) -> u32 {
    (u64::BITS - paging.bits()).saturating_sub(count.ilog2())
}

/// The data that a page stores for one position: the rows with its results or, if these are stored in separate entries,
/// only its number of games. A page is an index entry with several positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountedList {
    /// The rows of a position whose results are stored in the page.
    Rows(Vec<ResultRow>),
    /// The number of games of a position whose results are stored in separate entries, one for each period.
    Periods(u64),
}

/// A builder of a page, an index entry that contains several positions with their rows. A row contains the results of
/// one move in one class (speed and rating group) and month.
#[derive(Default, Debug)]
pub struct CountedPage {
    /// Each position's key, the end of its rows in `rows`, and its number of games if its rows are stored in separate
    /// entries.
    positions: Vec<(ListKey, usize, Option<u64>)>,
    rows: Vec<ResultRow>,
}

impl CountedPage {
    /// Returns the number of rows in the page, not counting the rows of positions that are stored in separate entries.
    /// A row contains the results of one move in one class and month.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Adds a position to the page, together with its rows. `subject` is the key of the position, which must be greater
    /// than all keys added before. `rows` must be sorted by move, class (speed and rating group) and month.
    pub fn push(&mut self, subject: ListKey, rows: &[ResultRow]) {
        self.rows.extend_from_slice(rows);
        self.positions.push((subject, self.rows.len(), None));
    }

    /// Adds a position to the page without its rows, which are stored in separate entries, one for each period (all
    /// time, a year or a month). `subject` is the key of the position, which must be greater than all keys added
    /// before. `games` is the number of its games.
    pub fn push_with_periods(&mut self, subject: ListKey, games: u64) {
        self.positions.push((subject, self.rows.len(), Some(games)));
    }

    /// Encodes and empties the page. Returns the key under which the page must be stored, and the encoded page. Returns
    /// `None` if the page has no positions. The key is the greatest list key that can belong to the page by the rule
    /// `paging`. A search can compute it from the key of any position in the page.
    pub fn take(&mut self, paging: Paging) -> Option<(ListKey, Vec<u8>)> {
        let first = self.positions.first()?.0;
        let mut out = BitWriter::default();
        let months = Months::of(&self.rows);
        let count = self.positions.len() as u64;
        out.put_golomb(count - 1, 6);
        out.put(months.first.into(), MONTH_BITS);
        out.put_golomb(months.count - 1, 6);
        let order = order_of_gaps(paging, count);
        let (mut next, mut start) = (paging.first_of(first).0, 0);
        for (subject, end, separate) in self.positions.drain(..) {
            out.put_golomb(subject.0 - next, order);
            next = subject.0.wrapping_add(1);
            match separate {
                Some(games) => {
                    out.put_golomb(SEPARATE_MARK - 1, 0);
                    out.put_golomb(games, 10);
                }
                None => put_moves(&self.rows[start..end], months, false, &mut out),
            }
            start = end;
        }
        self.rows.clear();
        Some((paging.last_of(first), out.finish()))
    }
}

/// Looks up the position with the key `subject` in `page`, an encoded index entry with several positions. `paging` is
/// the rule that groups positions in pages. Returns `Some(None)` if the page does not contain the position, and `None`
/// if the page is malformed.
pub fn find_counts(paging: Paging, page: &[u8], subject: ListKey) -> Option<Option<CountedList>> {
    let mut found = None;
    for_each_counted(paging, page, subject, |other, rows, separate| {
        if other == subject {
            found = Some(match separate {
                Some(games) => CountedList::Periods(games),
                None => CountedList::Rows(std::mem::take(rows)),
            });
        }
    })?;
    Some(found)
}

/// Calls `f` for each position in `page`, an encoded index entry with several positions. `f` receives the key and the
/// rows of the position or, if the rows are stored in separate entries, its key and its number of games.
///
/// `paging` is the rule that groups positions in pages: all keys of a page begin with the same bits. The page does not
/// store these bits, so `page_member` supplies them: any key that belongs to the page by this rule, even if the page
/// does not contain it. Returns `None` if the page is malformed.
pub fn for_each_counted(
    paging: Paging,
    page: &[u8],
    page_member: ListKey,
    mut f: impl FnMut(ListKey, &mut Vec<ResultRow>, Option<u64>),
) -> Option<()> {
    let mut bits = BitReader::new(page);
    let count = bits.take_golomb(6)?.checked_add(1)?;
    let months = Months {
        first: bits.take(MONTH_BITS)? as u32,
        count: bits.take_golomb(6)?.checked_add(1)?,
    };
    if months.count > 1 << MONTH_BITS {
        return None;
    }
    let order = order_of_gaps(paging, count);
    let (mut next, last) = (
        Some(paging.first_of(page_member).0),
        paging.last_of(page_member).0,
    );
    let mut rows = Vec::new();
    for _ in 0..count {
        let subject = next?.checked_add(bits.take_golomb(order)?)?;
        if subject > last {
            return None;
        }
        next = subject.checked_add(1);
        rows.clear();
        let moves = bits.take_golomb(0)?.checked_add(1)?;
        let separate = match moves {
            SEPARATE_MARK => Some(bits.take_golomb(10).filter(|games| *games <= MAX_GAMES)?),
            1..SEPARATE_MARK => {
                take_moves(&mut bits, moves, months, false, MAX_INLINE_ROWS, &mut rows)?;
                None
            }
            _ => return None,
        };
        f(ListKey(subject), &mut rows, separate);
    }
    bits.is_at_end().then_some(())
}

/// A builder that converts sorted rows to the entries of an index of counts. A row contains the results of one move in
/// one class (speed and rating group) and month. Most entries are pages, which contain the rows of several positions. A
/// position with more than [`MAX_INLINE_ROWS`] rows gets separate entries, one for each period (all time, a year or a
/// month).
#[derive(Debug)]
pub(crate) struct CountPageBuilder {
    paging: Paging,
    batch: EntryBatch,
    page: CountedPage,
    /// The current position.
    subject: ListKey,
    /// The rows of the current position.
    rows: Vec<ResultRow>,
    about: RowsSummary,
}

/// A summary of all rows that were added to a [`CountPageBuilder`]: the first and the last year, and whether there are
/// rows without a move, which count games that ended in a position.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct RowsSummary {
    /// The first and the last known year.
    pub years: Option<[u16; 2]>,
    /// Whether there are rows without a move, for games that end in a position.
    pub has_ends: bool,
}

/// The error message if one position or one page has more than [`MAX_ROWS`] rows. A page is an index entry with several
/// positions, and a row contains the results of one move in one class and month.
const TOO_MANY: &str = "one position, or several with nearly equal keys, have more than half a million rows: make the \
                        counts with fewer of speed, rating and month";
const TOO_LARGE: &str = "the counts contain an impossibly large number of games of a move, or impossibly high \
                         ratings: make the counts again";
const NOT_IN_ORDER: &str = "the rows are not sorted by key: make the counts again";

impl CountPageBuilder {
    /// Creates a builder without rows. `paging` determines which positions share a page, an index entry with several
    /// positions.
    pub(crate) fn new(paging: Paging) -> CountPageBuilder {
        CountPageBuilder {
            paging,
            batch: EntryBatch::default(),
            page: CountedPage::default(),
            subject: ListKey(0),
            rows: Vec::new(),
            about: RowsSummary::default(),
        }
    }

    /// Adds rows, each with the key of its position, and returns the index entries that have become complete. Positions
    /// must be added in ascending order of keys. The rows of a position may be in any order, and rows with the same
    /// move, class (speed and rating group) and month are added up.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the keys are not ascending, if a position has too many rows, or if a sum
    /// is too large.
    pub(crate) fn add_all(
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
            if self.rows.len() + self.page.row_count() >= MAX_ROWS {
                return Err(TOO_MANY);
            }
            self.rows.push(row);
        }
        Ok(std::mem::take(&mut self.batch))
    }

    /// Ends the current position: adds up its rows, and stores them in the current page (an index entry with several
    /// positions) or, if there are many rows, in separate entries.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if a sum is too large.
    fn end_position(&mut self) -> Result<(), &'static str> {
        let rows = &mut self.rows;
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable_by_key(ResultRow::sort_key);
        rows.dedup_by(|row, sum| {
            let is_same = row.sort_key() == sum.sort_key();
            if is_same {
                sum.add(row);
            }
            is_same
        });
        if !rows.iter().all(ResultRow::is_possible) || games_of(rows) > MAX_GAMES {
            return Err(TOO_LARGE);
        }
        self.batch.positions += 1;
        self.batch.steps += rows.len() as u64;
        self.batch.postings += rows.len() as u64;
        self.about.has_ends |= rows[0].mv == BookMove::NONE;
        for year in rows
            .iter()
            .map(|row| row.month.year())
            .filter(|year| *year > 0)
        {
            let [first, last] = self.about.years.unwrap_or([year; 2]);
            self.about.years = Some([first.min(year), last.max(year)]);
        }
        if rows.len() <= MAX_INLINE_ROWS {
            self.page.push(self.subject, rows);
        } else {
            self.page.push_with_periods(self.subject, games_of(rows));
            let entries = &mut self.batch.entries;
            push_periods(COUNTS, self.subject, rows, |_| Vec::new(), entries);
        }
        self.rows.clear();
        Ok(())
    }

    /// Ends the current page, an index entry with several positions, and adds it to the completed entries. Does nothing
    /// if the page is empty.
    fn end_page(&mut self) {
        if let Some((last, page)) = self.page.take(self.paging) {
            self.batch.entries.push(&page_key(COUNTS, last), &page);
        }
    }

    /// Ends the last position and the last page (an index entry with several positions). Returns the remaining entries,
    /// and a summary of all rows that were added.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if a sum is too large.
    pub(crate) fn finish(mut self) -> Result<(EntryBatch, RowsSummary), &'static str> {
        self.end_position()?;
        self.end_page();
        Ok((self.batch, self.about))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{
        super::results::{Class, Month, strategies::results},
        *,
    };
    use crate::games::{
        pgn::{RatingGroup, Speed},
        results::{MEASURES, Means, Results},
    };

    proptest! {
        #[test]
        fn pages_come_back(
            positions in proptest::collection::btree_map(any::<u64>(), (results(), proptest::option::of(0..MAX_GAMES)), 1..30),
            bits in 8..=40u32,
        ) {
            let paging = Paging::of_bits(bits).unwrap();
            let page_member = ListKey(0x1234_5678_9abc_def0);
            let in_page = |low: u64| ListKey(paging.first_of(page_member).0 | (low & (u64::MAX >> bits)));
            let positions: BTreeMap<ListKey, _> = positions.into_iter().map(|(low, rows)| (in_page(low), rows)).collect();
            let mut page = CountedPage::default();
            for (subject, (rows, separate)) in &positions {
                match separate {
                    Some(games) => page.push_with_periods(*subject, *games),
                    None => page.push(*subject, rows),
                }
            }
            let (last, bytes) = page.take(paging).unwrap();
            prop_assert_eq!(last, paging.last_of(page_member));
            prop_assert!(page.take(paging).is_none());
            for (subject, (rows, separate)) in &positions {
                let expected = separate.map_or(CountedList::Rows(rows.clone()), CountedList::Periods);
                prop_assert_eq!(find_counts(paging, &bytes, *subject), Some(Some(expected)));
                let other = ListKey(subject.0 ^ 1);
                prop_assert_eq!(find_counts(paging, &bytes, other).unwrap().is_some(), positions.contains_key(&other));
            }
            let cut = &bytes[..bytes.len() - 1];
            prop_assert_eq!(find_counts(paging, cut, page_member), None);
            prop_assert_eq!(find_counts(paging, &[&bytes[..], &[0]].concat(), page_member), None);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, subject: u64) {
            let is_possible = |rows: &[ResultRow]| rows.iter().all(ResultRow::is_possible);
            let _ = for_each_counted(Paging::for_items(1000), &bytes, ListKey(subject), |_, rows, _| {
                assert!(is_possible(rows));
            });
        }
    }

    /// Returns a row of a game, whose class follows from `number`.
    fn row_of_class(number: usize) -> ResultRow {
        ResultRow {
            mv: BookMove(796),
            class: Class::of_number((number % Class::COUNT) as u8).unwrap(),
            month: Month::default(),
            results: Results {
                draws: 1,
                ..Results::default()
            },
            means: Means::default(),
            game: None,
        }
    }

    #[test]
    fn a_position_has_a_limited_number_of_rows() {
        let add = |rows: usize| {
            let mut builder = CountPageBuilder::new(Paging::of_bits(13).unwrap());
            let rows = (0..rows).map(|number| (ListKey(7), row_of_class(number)));
            builder.add_all(rows.collect()).map(drop)
        };
        let advice = "make the counts with fewer of speed, rating and month";
        assert!(add(MAX_ROWS + 1).unwrap_err().contains(advice));
        add(MAX_ROWS).unwrap();
    }

    #[test]
    fn more_rows_than_are_written_are_malformed() {
        let paging = Paging::of_bits(13).unwrap();
        for (rows, is_read) in [(MAX_INLINE_ROWS, true), (MAX_INLINE_ROWS + 1, false)] {
            let mut page = CountedPage::default();
            let rows: Vec<ResultRow> = (0..rows).map(row_of_class).collect();
            page.push(ListKey(7), &rows);
            let (last, bytes) = page.take(paging).unwrap();
            assert_eq!(find_counts(paging, &bytes, last).is_some(), is_read);
        }
    }

    #[test]
    fn a_single_game_takes_few_bits() {
        let paging = Paging::of_bits(13).unwrap();
        let mut page = CountedPage::default();
        for number in 0..128u64 {
            let class = Class::of_number((number % 54) as u8).unwrap();
            let group = RatingGroup::all().nth(class.group()).unwrap();
            let mut means = Means::default();
            means.add(MEASURES.map(|measure| ((measure.estimate)(Some(group)) + number) as u16));
            let row = ResultRow {
                mv: BookMove(796),
                class,
                month: Month::new(2013 + (number % 12) as u16, 1 + (number % 7) as u8).unwrap(),
                results: Results {
                    white: u64::from(number % 9 > 0),
                    draws: u64::from(number % 9 == 0),
                    ..Results::default()
                },
                means,
                game: None,
            };
            page.push(ListKey(number * 0x5f_ffff_ffff), &[row]);
        }
        let bytes = page.take(paging).unwrap().1;
        let most = 9 + 2 * MEASURES.len();
        assert!(bytes.len() <= 128 * most, "{}", bytes.len());
    }

    fn row(mv: u16, games: u64) -> ResultRow {
        ResultRow {
            mv: BookMove(mv),
            class: Class::new(Speed::Blitz, None),
            month: Month::new(2024, 1).unwrap(),
            results: Results {
                draws: games,
                ..Results::default()
            },
            means: Means::default(),
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
        let half = MAX_GAMES / 2;
        assert_eq!(
            ends(vec![(ListKey(1), row(1, half)), (ListKey(1), row(1, half))]),
            Ok(())
        );
        let more = vec![(ListKey(1), row(1, half)), (ListKey(1), row(1, half + 1))];
        assert_eq!(ends(more), Err(TOO_LARGE));
        // The games of two moves are added up too.
        let more = vec![(ListKey(1), row(1, half)), (ListKey(1), row(2, half + 1))];
        assert_eq!(ends(more), Err(TOO_LARGE));
    }

    #[test]
    fn rows_with_impossible_sums_are_malformed() {
        let paging = Paging::of_bits(13).unwrap();
        for (games, is_read) in [(MAX_GAMES / 2, true), (MAX_GAMES / 2 + 1, false)] {
            let rows = [row(1, games), row(2, games)];
            let mut page = CountedPage::default();
            page.push(ListKey(7), &rows);
            let (last, bytes) = page.take(paging).unwrap();
            assert_eq!(find_counts(paging, &bytes, last).is_some(), is_read);
        }
    }
}

//! Counts of positions in an index without games. For each move of a position, class and month, they contain the
//! results and the ratings of the players who moved.
//!
//! Positions with the same first bits are stored in *pages*, as lists of games are. A position with more than
//! [`INLINE`] rows has an entry for each [`Period`](super::results::Period) instead. Pages and periods are bit strings.
//! `g(k)` is an exponential Golomb code of order k.
//!
//! | part | encoding |
//! |---|---|
//! | a page | g(6) the number of positions minus 1; 17 bits: the first month; g(6) the number of months minus 1; the positions, ascending |
//! | a position | g(d) its number minus the previous number minus 1 (for the first position, its last bits); g(0) the number of moves minus 1, or [`INLINE`] for a position with separate periods; the moves, or g(10) the number of games of a position with separate periods |
//! | a [period](super::periods) | g(0) the number of moves minus 1; the moves, with a single month |
//! | a move, ascending | 13 bits: the squares, and whether 4 bits of the promotion follow; g(0) the number of rows minus 1; the rows |
//! | a row, ascending | g(e) its number minus the previous number minus 1, where the number is class times months, plus 0 for an unknown month or the month minus the first month plus 1 |
//! | then | g(0) the number of games minus 1; White's wins in the bits of the games; Black's wins in the bits of the other games; only in an index of games, games without a result in the bits of the others |
//! | then | a bit that is 1 if all players who moved have a rating, otherwise followed by their number in the bits of the games; g(f) the zigzag code of the sum of the ratings minus their number times the middle of the rating group |
//! | then, only in an index of games, for a row of one game | g(20) the id of the game |
//!
//! d is chosen so that the code is short if the positions of a page are evenly distributed, and e likewise for the rows
//! of a move. f is 7 plus half the number of bits of the number of ratings. A month is 13 times the year plus the
//! month, which is 0 if unknown. In a page, 0 stands for unknown and 1 for the first month.
//!
//! `CountPageBuilder` turns sorted rows into pages and periods.

use super::{
    COUNTED, COUNTS, CountedContents, ListKey,
    bits::{BitReader, BitWriter},
    lists::Paging,
    page_key,
    periods::push_periods,
    results::{Class, MOST_GAMES, Month, ResultRow, games_of},
};
use crate::{
    error::{Error, Result},
    index::{Index, positions::EntryBatch},
    pgn::RatingGroup,
    position::BookMove,
};

/// The greatest number of rows (results of one move in one class and month) of a position that is stored in a page. A
/// page is an entry that contains several positions. A position with more rows is stored in separate entries, one for
/// each period.
pub const INLINE: usize = if cfg!(test) { 32 } else { 1 << 10 };

/// The greatest number of rows (results of one move in one class and month) of a position, and of all positions in one
/// page. It bounds the memory for creating and reading an index.
pub const MOST_ROWS: usize = if cfg!(test) { 1 << 12 } else { 1 << 19 };

/// The value that a page (an entry with several positions) stores as the number of moves of a position whose rows are
/// in separate entries.
const APART: u64 = INLINE as u64 + 1;

/// The number of bits of an encoded month.
const MONTH_BITS: u32 = 17;

/// The range of months that the rows of a page (an entry with several positions) cover. A row stores its month as the
/// distance from `first` plus 1, or as 0 if the month is unknown.
#[derive(Copy, Clone, Debug)]
pub(super) struct Months {
    first: u32,
    count: u64,
}

impl Months {
    /// The range for rows that are stored without a month. The rows of an entry for one period need no month, because
    /// each of them covers the whole period.
    pub(super) const NONE: Months = Months { first: 0, count: 1 };

    /// Returns the range of the known months of `rows`.
    fn of(rows: &[ResultRow]) -> Months {
        let known = rows
            .iter()
            .map(|row| row.month.0)
            .filter(|month| *month > 0);
        let Some(last) = known.clone().max() else {
            return Months::NONE;
        };
        let first = known.min().unwrap_or(last);
        Months {
            first,
            count: u64::from(last - first) + 2,
        }
    }

    /// Encodes the class (speed and rating group) and the month of a row as a single number.
    fn number(self, row: &ResultRow) -> u64 {
        let month = match row.month.0 {
            _ if self.count == 1 => 0,
            0 => 0,
            month => u64::from(month - self.first) + 1,
        };
        row.class.number() as u64 * self.count + month
    }

    /// Decodes a number into the class (speed and rating group) and the month of a row. Returns `None` if the number is
    /// invalid.
    fn parse(self, number: u64) -> Option<(Class, Month)> {
        let class = Class::of_number(u8::try_from(number / self.count).ok()?)?;
        let month = match (number % self.count) as u32 {
            0 => 0,
            month => self.first + month - 1,
        };
        let is_month = month == 0 || (13..13 * 10_000).contains(&month);
        is_month.then_some((class, Month(month)))
    }

    /// Returns the order of a Golomb code. The code stores the classes (speed and rating group) and months of the
    /// `rows` rows of one move, as differences between consecutive numbers that [`number`](Months::number) returns. The
    /// order is chosen for evenly distributed numbers.
    fn order(self, rows: u64) -> u32 {
        (self.count * Class::COUNT as u64 / rows).max(1).ilog2()
    }
}

/// Returns the order of a Golomb code. The code stores the keys of the `count` positions in a page (an entry with
/// several positions), as differences between consecutive keys. The order is chosen for evenly distributed keys.
fn order_of_gaps(paging: Paging, count: u64) -> u32 {
    (u64::BITS - paging.bits()).saturating_sub(count.ilog2())
}

/// Returns the number of bits that are needed to represent every number up to `most`.
fn bits_of(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// Encodes the rows of a position, which must be sorted by move, and appends them to `out`. `months` is the range of
/// months that the rows cover. `of_games` says whether the index contains games, because its rows then store more than
/// rows of counts.
pub(super) fn put_moves(rows: &[ResultRow], months: Months, of_games: bool, out: &mut BitWriter) {
    let moves = rows.chunk_by(|a, b| a.mv == b.mv).count();
    out.put_golomb(moves as u64 - 1, 0);
    for rows in rows.chunk_by(|a, b| a.mv == b.mv) {
        let mv = u64::from(rows[0].mv.0);
        let (squares, promotion) = (mv & 0xfff, mv >> 12);
        out.put(squares << 1 | u64::from(promotion > 0), 13);
        if promotion > 0 {
            out.put(promotion, 4);
        }
        out.put_golomb(rows.len() as u64 - 1, 0);
        let order = months.order(rows.len() as u64);
        let mut next = 0;
        for row in rows {
            let number = months.number(row);
            out.put_golomb(number - next, order);
            next = number + 1;
            put_games(row, of_games, out);
        }
    }
}

/// Encodes the results and the ratings of a row and appends them to `out`. If `of_games` is `true`, because the index
/// contains games, also encodes the number of unfinished games, and the id of the game if the row has only one.
fn put_games(row: &ResultRow, of_games: bool, out: &mut BitWriter) {
    let total = row.total();
    let [_, white, black, unfinished] = row.games;
    out.put_golomb(total - 1, 0);
    out.put(white, bits_of(total));
    out.put(black, bits_of(total - white));
    if of_games {
        out.put(unfinished, bits_of(total - white - black));
    }
    out.put(u64::from(row.rated == total), 1);
    if row.rated < total {
        out.put(row.rated, bits_of(total));
    }
    if row.rated > 0 {
        let usual = row.rated * middle_of(row.class);
        let more = row.ratings.wrapping_sub(usual).cast_signed();
        out.put_golomb(
            (more << 1 ^ more >> 63).cast_unsigned(),
            order_of_ratings(row.rated),
        );
    }
    if of_games && total == 1 {
        out.put_golomb(row.game.unwrap_or(0).into(), ORDER_OF_IDS);
    }
}

/// The order of the Golomb code for a game id.
const ORDER_OF_IDS: u32 = 20;

/// Returns the order of a Golomb code. The code stores the sum of the ratings of `rated` players, as the difference
/// from the expected sum.
fn order_of_ratings(rated: u64) -> u32 {
    7 + rated.ilog2() / 2
}

/// Decodes the rows of `moves` moves and appends them to `rows`. `months` is the range of months that the rows cover,
/// and `of_games` says whether the index contains games. Returns `None` if the rows are malformed, or if `rows` would
/// have more than `most` rows.
pub(super) fn take_moves(
    bits: &mut BitReader<'_>,
    moves: u64,
    months: Months,
    of_games: bool,
    most: usize,
    rows: &mut Vec<ResultRow>,
) -> Option<()> {
    let mut last = None;
    for _ in 0..moves {
        let squares = bits.take(13)?;
        let promotion = match squares & 1 {
            0 => 0,
            _ => bits.take(4).filter(|promotion| *promotion > 0)?,
        };
        let mv = BookMove((promotion << 12 | squares >> 1) as u16);
        if last.replace(mv).is_some_and(|last| last >= mv) {
            return None;
        }
        let count = bits.take_golomb(0)?.checked_add(1)?;
        if count > (most - rows.len()) as u64 {
            return None;
        }
        let order = months.order(count);
        let mut next = 0u64;
        for _ in 0..count {
            let number = next.checked_add(bits.take_golomb(order)?)?;
            next = number.checked_add(1)?;
            let (class, month) = months.parse(number)?;
            let mut row = ResultRow::new(mv, class, month);
            take_games(bits, of_games, &mut row)?;
            rows.push(row);
        }
    }
    Some(())
}

/// Decodes the results and the ratings of a row and stores them in `row`. `of_games` says whether the index contains
/// games. Returns `None` if the numbers are malformed or impossible.
fn take_games(bits: &mut BitReader<'_>, of_games: bool, row: &mut ResultRow) -> Option<()> {
    let total = bits.take_golomb(0)?.checked_add(1)?;
    if total > MOST_GAMES {
        return None;
    }
    let white = bits.take(bits_of(total))?;
    let black = bits.take(bits_of(total.checked_sub(white)?))?;
    let others = (total - white).checked_sub(black)?;
    let unfinished = match of_games {
        true => bits.take(bits_of(others))?,
        false => 0,
    };
    let draws = others.checked_sub(unfinished)?;
    row.games = [draws, white, black, unfinished];
    row.rated = match bits.take(1)? {
        1 => total,
        _ => bits.take(bits_of(total)).filter(|rated| *rated < total)?,
    };
    if row.rated > 0 {
        let doubled = bits.take_golomb(order_of_ratings(row.rated))?;
        let more = (doubled >> 1).cast_signed() ^ -((doubled & 1).cast_signed());
        row.ratings = (row.rated * middle_of(row.class)).checked_add_signed(more)?;
    }
    if of_games && total == 1 {
        row.game = Some(u32::try_from(bits.take_golomb(ORDER_OF_IDS)?).ok()?);
    }
    row.is_possible().then_some(())
}

/// Returns the middle of the rating group of `class` (a speed and a rating group), as an estimate for the mean rating
/// of its players. Returns 0 if the ratings of the class are unknown.
fn middle_of(class: Class) -> u64 {
    let group = RatingGroup::all().nth(class.group());
    group.map_or(0, |group| u64::from(group.floor()) + 100)
}

/// The counts of one position, or the number of its games if the counts must be read from separate entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountedList {
    /// The rows of an inline position.
    Rows(Vec<ResultRow>),
    /// The number of games of a position whose periods have separate entries.
    Periods(u64),
}

/// A page that is being assembled. A page is an entry of an index of counts that contains several positions with their
/// rows, which are the results by move, class and month.
#[derive(Default, Debug)]
pub struct CountedPage {
    /// For each position, the end of its rows in `rows`, and the number of its games if its periods are separate.
    positions: Vec<(ListKey, usize, Option<u64>)>,
    rows: Vec<ResultRow>,
}

impl CountedPage {
    /// Returns the number of rows (results of moves) of all positions in the page. Rows in separate entries are not
    /// counted.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Adds a position whose rows are stored in the page itself. `subject` is the key of the position, which must be
    /// greater than all keys added before, and `rows` are its rows, sorted by move, class (speed and rating group) and
    /// month.
    pub fn push(&mut self, subject: ListKey, rows: &[ResultRow]) {
        self.rows.extend_from_slice(rows);
        self.positions.push((subject, self.rows.len(), None));
    }

    /// Adds a position whose rows are stored in separate entries for each period (all time, a year or a month).
    /// `subject` is the key of the position, which must be greater than all keys added before, and `games` is the
    /// number of its games.
    pub fn push_with_periods(&mut self, subject: ListKey, games: u64) {
        self.positions.push((subject, self.rows.len(), Some(games)));
    }

    /// Encodes the page (several positions with their results) and empties it. Returns the greatest position key that
    /// may belong to the page, and the encoded page. Returns `None` if the page has no positions.
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
        for (subject, end, apart) in self.positions.drain(..) {
            out.put_golomb(subject.0 - next, order);
            next = subject.0.wrapping_add(1);
            match apart {
                Some(games) => {
                    out.put_golomb(APART - 1, 0);
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

impl Paging {
    /// Finds the counts of the position with the key `subject` in `page`, an encoded page of several positions. Returns
    /// `Some(None)` if the page does not contain the position, and `None` if the page is malformed.
    pub fn find_counts(self, page: &[u8], subject: ListKey) -> Option<Option<CountedList>> {
        let mut found = None;
        self.for_each_counted(page, subject, |other, rows, apart| {
            if other == subject {
                found = Some(match apart {
                    Some(games) => CountedList::Periods(games),
                    None => CountedList::Rows(std::mem::take(rows)),
                });
            }
        })?;
        Some(found)
    }

    /// Calls `f` for each position in `page`, an encoded page of several positions. The arguments are the key of the
    /// position, its rows, and the number of its games. The number is given only if the rows are in separate entries.
    ///
    /// `any` is a key that belongs to the page, whether or not the page contains this position. Returns `None` if the
    /// page is malformed.
    pub fn for_each_counted(
        self,
        page: &[u8],
        any: ListKey,
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
        let order = order_of_gaps(self, count);
        let (mut next, last) = (Some(self.first_of(any).0), self.last_of(any).0);
        let mut rows = Vec::new();
        for _ in 0..count {
            let subject = next?.checked_add(bits.take_golomb(order)?)?;
            if subject > last {
                return None;
            }
            next = subject.checked_add(1);
            rows.clear();
            let moves = bits.take_golomb(0)?.checked_add(1)?;
            let apart = match moves {
                APART => Some(bits.take_golomb(10).filter(|games| *games <= MOST_GAMES)?),
                1..APART => {
                    take_moves(&mut bits, moves, months, false, INLINE, &mut rows)?;
                    None
                }
                _ => return None,
            };
            f(ListKey(subject), &mut rows, apart);
        }
        bits.is_at_end().then_some(())
    }
}

/// A builder that turns sorted rows of counts (numbers of games by move and result) into entries of an index. An entry
/// is a page, which contains the rows of several positions. A position with more than [`INLINE`] rows gets entries of
/// its own, one for each period.
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

/// Properties of all rows that were added to a [`CountPageBuilder`].
#[derive(Copy, Clone, Default, Debug)]
pub(in crate::index) struct AboutRows {
    /// The first and the last known year.
    pub years: Option<[u16; 2]>,
    /// Whether there are rows without a move, for games that end in a position.
    pub has_ends: bool,
}

/// The error message for counts in which a position or a page (an entry with several positions) would have more than
/// [`MOST_ROWS`] rows.
const TOO_MANY: &str = "one position, or some with nearly equal keys, have more than half a million rows: count fewer classes";
const TOO_LARGE: &str =
    "the counts have more games of a move, or higher ratings, than there can be";
const NOT_IN_ORDER: &str = "the rows are not in the order of their keys";

impl CountPageBuilder {
    /// Creates a builder without rows. `paging` determines how positions are grouped into pages.
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

    /// Adds rows, each with the key of its position, and returns the entries that are complete. Positions must arrive
    /// in ascending order of keys. The rows of one position may be in any order, and are added up if they have the same
    /// move, class (speed and rating group) and month.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the keys are not ascending, if a position has too many rows, or if a sum
    /// is too large.
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

    /// Ends the current position: adds up its rows, and stores them in the current page (an entry with several
    /// positions) or in separate entries.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if a sum is too large.
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

    /// Adds the entry of the current page, if the page has positions. A page contains several positions with their
    /// results.
    fn end_page(&mut self) {
        if let Some((last, page)) = self.page.take(self.paging) {
            self.made.entries.push(&page_key(COUNTS, last), &page);
        }
    }

    /// Ends the last page (an entry with several positions). Returns the entries that were not returned yet, and the
    /// properties of all rows.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if a sum is too large.
    pub(in crate::index) fn finish(mut self) -> Result<(EntryBatch, AboutRows), &'static str> {
        self.end_position()?;
        self.end_page();
        Ok((self.made, self.about))
    }
}

impl Index {
    /// Returns the description of an index of counts. Returns `None` if the index is of another kind.
    ///
    /// # Errors
    ///
    /// Returns an error if the description cannot be read, is damaged, or is of another version.
    pub(crate) fn counted(&self) -> Result<Option<CountedContents>> {
        let Some(value) = self.value(COUNTED)? else {
            return Ok(None);
        };
        let contents = CountedContents::parse(&value);
        contents.map(Some).ok_or_else(|| {
            let problem = "has counts that are damaged or of another version of polybook: make the index again";
            Error::damaged(self.path(), problem)
        })
    }

    /// Returns the results of the moves in the position with the key `subject`, or `None` if the index does not contain
    /// the position. `paging` states how the index groups positions into pages.
    ///
    /// # Errors
    ///
    /// Returns an error if the page of the position cannot be read or is malformed.
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{super::results::strategies::results, *};
    use crate::pgn::Speed;

    proptest! {
        #[test]
        fn pages_come_back(
            positions in proptest::collection::btree_map(any::<u64>(), (results(), proptest::option::of(0..MOST_GAMES)), 1..30),
            bits in 8..=40u32,
        ) {
            let paging = Paging::of_bits(bits).unwrap();
            let any = ListKey(0x1234_5678_9abc_def0);
            let in_page = |low: u64| ListKey(paging.first_of(any).0 | (low & (u64::MAX >> bits)));
            let positions: BTreeMap<ListKey, _> = positions.into_iter().map(|(low, rows)| (in_page(low), rows)).collect();
            let mut page = CountedPage::default();
            for (subject, (rows, apart)) in &positions {
                match apart {
                    Some(games) => page.push_with_periods(*subject, *games),
                    None => page.push(*subject, rows),
                }
            }
            let (last, bytes) = page.take(paging).unwrap();
            prop_assert_eq!(last, paging.last_of(any));
            prop_assert!(page.take(paging).is_none());
            for (subject, (rows, apart)) in &positions {
                let expected = apart.map_or(CountedList::Rows(rows.clone()), CountedList::Periods);
                prop_assert_eq!(paging.find_counts(&bytes, *subject), Some(Some(expected)));
                let other = ListKey(subject.0 ^ 1);
                prop_assert_eq!(paging.find_counts(&bytes, other).unwrap().is_some(), positions.contains_key(&other));
            }
            let cut = &bytes[..bytes.len() - 1];
            prop_assert_eq!(paging.find_counts(cut, any), None);
            prop_assert_eq!(paging.find_counts(&[&bytes[..], &[0]].concat(), any), None);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, subject: u64) {
            let is_possible = |rows: &[ResultRow]| rows.iter().all(ResultRow::is_possible);
            let _ = Paging::for_items(1000).for_each_counted(&bytes, ListKey(subject), |_, rows, _| {
                assert!(is_possible(rows));
            });
        }
    }

    #[test]
    fn more_rows_than_are_written_are_malformed() {
        let row = |number: usize| ResultRow {
            mv: BookMove(796),
            class: Class::of_number((number % Class::COUNT) as u8).unwrap(),
            month: Month::default(),
            games: [1, 0, 0, 0],
            rated: 0,
            ratings: 0,
            game: None,
        };
        let paging = Paging::of_bits(13).unwrap();
        for (rows, is_read) in [(INLINE, true), (INLINE + 1, false)] {
            let mut page = CountedPage::default();
            let rows: Vec<ResultRow> = (0..rows).map(row).collect();
            page.push(ListKey(7), &rows);
            let (last, bytes) = page.take(paging).unwrap();
            assert_eq!(paging.find_counts(&bytes, last).is_some(), is_read);
        }
    }

    #[test]
    fn a_single_game_takes_few_bits() {
        let paging = Paging::of_bits(13).unwrap();
        let mut page = CountedPage::default();
        for number in 0..128u64 {
            let class = Class::of_number((number % 54) as u8).unwrap();
            let row = ResultRow {
                mv: BookMove(796),
                class,
                month: Month::new(2013 + (number % 12) as u16, 1 + (number % 7) as u8).unwrap(),
                games: [u64::from(number % 9 == 0), u64::from(number % 9 > 0), 0, 0],
                rated: 1,
                ratings: middle_of(class) + number,
                game: None,
            };
            page.push(ListKey(number * 0x5f_ffff_ffff), &[row]);
        }
        let bytes = page.take(paging).unwrap().1;
        assert!(bytes.len() <= 128 * 11, "{}", bytes.len());
    }

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

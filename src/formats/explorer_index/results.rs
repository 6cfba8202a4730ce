//! Encodes the results of the moves in a position, which are added up by class (speed and rating group) and by month or
//! a longer period.
//!
//! Rows of results are stored as bit strings. `g(k)` is an exponential Golomb code of order k.
//!
//! | part | encoding |
//! |---|---|
//! | the rows of a position | g(0) the number of moves minus 1; the moves |
//! | a move, ascending | 13 bits: the squares, and whether 4 bits of the promotion follow; g(0) the number of rows minus 1; the rows |
//! | a row, ascending | g(e) its number minus the previous number minus 1, where the number is class times months, plus 0 for an unknown month or the month minus the first month plus 1 |
//! | then | g(0) the number of games minus 1; White's wins in the bits of the games; Black's wins in the bits of the other games; only in an index of games, games without a result in the bits of the others |
//! | then, for each [measure](MEASURES) | a bit that is 1 if its number is known in all games, otherwise followed by the number of games in which it is known, in the bits of the games; if it is known in any game, g(f) the zigzag code of the sum minus the number of these games times the estimate of the measure |
//! | then, only in an index of games, for a row of one game | g(20) the id of the game |
//!
//! e is the base-2 logarithm of the number of possible rows (months times classes) divided by the rows of the move,
//! both rounded down, and 0 if the move has more rows. f is the measure's number of deviation bits plus half the base-2
//! logarithm of the number of games, rounded down. A month is 13 times the year plus the month, which is 0 if unknown.

use super::bits::{BitReader, BitWriter, bits_of};
use crate::{
    chess::position::BookMove,
    games::{
        pgn::{Date, RatingGroup, Speed},
        results::{MEASURES, Means, Measure, Results},
    },
};

/// The maximum number of games of a position. A greater number shows that the data is damaged, because no collection of
/// games is nearly as large. The limit ensures that even sums over thousands of indexes are smaller than 2^64.
pub const MAX_GAMES: u64 = 1 << 40;

/// The maximum number of rows of one position or of one page, an index entry with several positions. A row contains the
/// results of one move in one class (speed and rating group) and month. The limit bounds the memory for creating and
/// reading an index.
pub const MAX_ROWS: usize = if cfg!(test) { 1 << 12 } else { 1 << 19 };

/// A month of a year, a year whose month is unknown, or an unknown year. Values are ordered by time: an unknown year
/// comes before all years, and a year whose month is unknown comes before the months of this year.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Month(pub(super) u32);

impl Month {
    /// Creates a month of a year. `year` is from 1 to 9999, or 0 if it is unknown. `month` is from 1 to 12, or 0 if it
    /// is unknown. If the year is unknown, the month must also be unknown. Returns `None` for invalid numbers.
    pub fn new(year: u16, month: u8) -> Option<Month> {
        let is_month = year < 10_000 && month <= 12 && (year > 0 || month == 0);
        is_month.then(|| Month(13 * u32::from(year) + u32::from(month)))
    }

    /// Returns the month of a date. If the month of the date is unknown, the result contains only the year. If the year
    /// is unknown, the result is the value for an unknown year.
    pub fn of(date: Date) -> Month {
        let month = date.year().and(date.month()).unwrap_or(0);
        Month(13 * u32::from(date.year().unwrap_or(0)) + u32::from(month))
    }

    /// Returns the year from 1 to 9999, or 0 if it is unknown.
    pub fn year(self) -> u16 {
        (self.0 / 13) as u16
    }

    /// Returns the month from 1 to 12, or 0 if it is unknown.
    pub fn month(self) -> u8 {
        (self.0 % 13) as u8
    }
}

/// A period of time for which results are added up: all time, a year or a month. Periods are ordered as they are stored
/// in an index.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Period {
    /// All time.
    All,
    /// A year, or 0 for games of an unknown year.
    Year(u16),
    /// A month of a year.
    Month(Month),
}

impl Period {
    /// Encodes the period (all time, a year or a month) as part of a LevelDB key.
    pub fn key_bytes(self) -> Vec<u8> {
        let of_year = |kind: u8, year: u16| [&[kind][..], &year.to_be_bytes()].concat();
        match self {
            Period::All => vec![0],
            Period::Year(year) => of_year(1, year),
            Period::Month(month) => [&of_year(2, month.year())[..], &[month.month()]].concat(),
        }
    }

    /// Returns the next longer period. This is the year for a month, and all time for a year or for all time.
    pub fn longer(self) -> Period {
        match self {
            Period::Month(month) => Period::Year(month.year()),
            Period::Year(_) | Period::All => Period::All,
        }
    }
}

/// A year, and the set of its months in which games were played.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct YearMonths {
    /// The year, or 0 for games of an unknown year.
    pub year: u16,
    /// A set of bits: bits 1 to 12 stand for the months, and bit 0 for games of an unknown month.
    pub months: u16,
}

impl YearMonths {
    /// Adds `month` to `years`, a sorted list of years with their months. `month` must not be in an earlier year than
    /// the last one in the list.
    pub fn add_month(years: &mut Vec<YearMonths>, month: Month) {
        let (year, months) = (month.year(), 1 << month.month());
        match years.last_mut() {
            Some(last) if last.year == year => last.months |= months,
            _ => years.push(YearMonths { year, months }),
        }
    }

    /// Returns an iterator over the months of this year in which games were played, in ascending order. If the month of
    /// some games of this year is unknown, the value for an unknown month comes first.
    pub fn months(self) -> impl Iterator<Item = Month> {
        let months = (0..=12).filter(move |month| self.months >> month & 1 == 1);
        months.map(move |month| Month(13 * u32::from(self.year) + month))
    }
}

/// A class of games: a speed and a rating group. Games without a known rating belong to an additional, last rating
/// group.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// The number of classes. A class is a pair of a speed and a rating group.
    pub const COUNT: usize = (RatingGroup::COUNT + 1) * Speed::ALL.len();
    /// The class with the lowest number, 0.
    pub const FIRST: Class = Class(0);
    /// The class with the greatest number.
    pub const LAST: Class = Class(Class::COUNT as u8 - 1);

    /// Returns the class of games with the speed `speed` and the rating group `group`. For games without a known
    /// rating, `group` is `None`.
    pub fn new(speed: Speed, group: Option<RatingGroup>) -> Class {
        let group = group.map_or(RatingGroup::COUNT, RatingGroup::number);
        Class((group * Speed::ALL.len() + speed as usize) as u8)
    }

    /// Returns the class with the number `number`, or `None` if no class has this number.
    pub fn of_number(number: u8) -> Option<Class> {
        (usize::from(number) < Class::COUNT).then_some(Class(number))
    }

    /// Returns the number of the class, counted from 0.
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Returns the index of the class's rating group in [`RatingGroup::all`]. For games without a known rating, returns
    /// the number of elements in [`RatingGroup::all`].
    pub fn group(self) -> usize {
        self.number() / Speed::ALL.len()
    }

    /// Returns the index of the class's speed in [`Speed::ALL`].
    pub fn speed(self) -> usize {
        self.number() % Speed::ALL.len()
    }
}

/// The results of one move in a position, added up over all games of one class (speed and rating group) and one period,
/// such as a month.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ResultRow {
    /// The move, or [`BookMove::NONE`] for games that end in the position.
    pub mv: BookMove,
    /// The class.
    pub class: Class,
    /// The month, which is unknown in rows of longer periods.
    pub month: Month,
    /// The results of the games. In an index of counts, they include no unfinished games.
    pub results: Results,
    /// The means of the measures, such as ratings, over the games.
    pub means: Means,
    /// The id of the game if there is only one, otherwise the id of any of the games. `None` in an index of counts,
    /// which contains no games.
    pub game: Option<u32>,
}

impl ResultRow {
    /// Creates a row without games for one move, one class (speed and rating group) and one month.
    pub fn new(mv: BookMove, class: Class, month: Month) -> ResultRow {
        ResultRow {
            mv,
            class,
            month,
            results: Results::default(),
            means: Means::default(),
            game: None,
        }
    }

    /// Returns the sort key of the row: the move, the class (speed and rating group) and the month. Rows with equal
    /// sort keys can be added up.
    pub fn sort_key(&self) -> (BookMove, Class, Month) {
        (self.mv, self.class, self.month)
    }

    /// Adds the games and means of another row, which must have the same sort key, to this row. Sums saturate instead
    /// of overflowing, and [`is_possible`](Self::is_possible) returns `false` for a saturated sum.
    pub fn add(&mut self, other: &ResultRow) {
        self.results += other.results;
        self.means += other.means;
        self.game = other.game;
    }

    /// Returns `true` if the numbers of games and the means of the row are within their limits and do not contradict
    /// each other.
    pub fn is_possible(&self) -> bool {
        let games = self.results.games();
        let mut means = self.means.0.iter().zip(&MEASURES);
        (1..=MAX_GAMES).contains(&games)
            && means.all(|(mean, measure)| mean.games <= games && measure.can_be(*mean))
    }
}

/// Returns the total number of games in all rows.
pub fn games_of(rows: &[ResultRow]) -> u64 {
    rows.iter().map(|row| row.results.games()).sum()
}

/// The number of bits of an encoded month, which suffice for all months up to the year 9999.
pub(super) const MONTH_BITS: u32 = 17;

/// The range of months in the rows of one page, an index entry that contains several positions. `first` is the first
/// month. A row stores its month as a number: 0 if the month is unknown, 1 for `first`, 2 for the next month, and so
/// on. `count` is the number of possible values of this number.
#[derive(Copy, Clone, Debug)]
pub(super) struct Months {
    pub(super) first: u32,
    pub(super) count: u64,
}

impl Months {
    /// The range for rows that do not store a month, because the months of all rows are unknown or all rows belong to
    /// the same period.
    pub(super) const NONE: Months = Months { first: 0, count: 1 };

    /// Returns the range of the known months in `rows`, or [`Months::NONE`] if no month is known.
    pub(super) fn of(rows: &[ResultRow]) -> Months {
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

    /// Encodes the class (speed and rating group) and the month of a row as one number. The month must be unknown or in
    /// this range.
    fn number(self, row: &ResultRow) -> u64 {
        let month = match row.month.0 {
            _ if self.count == 1 => 0,
            0 => 0,
            month => u64::from(month - self.first) + 1,
        };
        row.class.number() as u64 * self.count + month
    }

    /// Decodes a number to a class (speed and rating group) and a month. Returns `None` if the number is invalid.
    fn parse(self, number: u64) -> Option<(Class, Month)> {
        let class = Class::of_number(u8::try_from(number / self.count).ok()?)?;
        let month = match (number % self.count) as u32 {
            0 => 0,
            month => self.first + month - 1,
        };
        let is_month = month == 0 || (13..13 * 10_000).contains(&month);
        is_month.then_some((class, Month(month)))
    }

    /// Returns the order of the exponential Golomb code in which the rows of one move are stored. The code stores the
    /// differences between the [numbers](Months::number) of consecutive rows. `rows` is the number of these rows. With
    /// this order, the code is shortest if the numbers are evenly distributed.
    fn order(self, rows: u64) -> u32 {
        (self.count * Class::COUNT as u64 / rows).max(1).ilog2()
    }
}

/// Encodes the rows of a position and appends them to `out`. The rows must be sorted by move, class (speed and rating
/// group) and month. `months` is the range of their months. `of_games` is `true` for an index of games, and `false` for
/// an index of counts, whose rows contain less data because it has no games.
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

/// Encodes the results and the means of a row, and appends them to `out`. If `of_games` is `true`, the row belongs to
/// an index of games, and also contains the number of unfinished games and, for a single game, the id of this game.
fn put_games(row: &ResultRow, of_games: bool, out: &mut BitWriter) {
    let total = row.results.games();
    let Results {
        white,
        draws: _,
        black,
        unfinished,
    } = row.results;
    out.put_golomb(total - 1, 0);
    out.put(white, bits_of(total));
    out.put(black, bits_of(total - white));
    if of_games {
        out.put(unfinished, bits_of(total - white - black));
    }
    for (mean, measure) in row.means.0.iter().zip(&MEASURES) {
        out.put(u64::from(mean.games == total), 1);
        if mean.games < total {
            out.put(mean.games, bits_of(total));
        }
        if mean.games > 0 {
            let (estimate, order) = estimated_sum(measure, row.class, mean.games);
            let more = mean.sum.wrapping_sub(estimate).cast_signed();
            out.put_golomb((more << 1 ^ more >> 63).cast_unsigned(), order);
        }
    }
    if of_games && total == 1 {
        out.put_golomb(row.game.unwrap_or(0).into(), ID_CODE_ORDER);
    }
}

/// The order of the exponential Golomb code that stores a game id. With this order, ids below 2^20 take 21 bits.
const ID_CODE_ORDER: u32 = 20;

/// Returns an estimate of the sum of `measure` in `games` games of `class`. Also returns the order of the exponential
/// Golomb code that stores the difference between the sum and this estimate. The typical difference grows with the
/// square root of the number of games, so more games need a higher order.
fn estimated_sum(measure: &Measure, class: Class, games: u64) -> (u64, u32) {
    let group = RatingGroup::all().nth(class.group());
    let order = measure.deviation_bits + games.ilog2() / 2;
    (games * (measure.estimate)(group), order)
}

/// Decodes the rows of a position, which has `moves` different moves, and appends them to `rows`. `months` is the range
/// of their months. `of_games` is `true` for an index of games, and `false` for an index of counts, which contains no
/// games.
///
/// Returns `None` if the rows are malformed, if they have more than [`MAX_GAMES`] games in total, or if `rows` would
/// contain more than `max_rows` rows.
pub(super) fn take_moves(
    bits: &mut BitReader<'_>,
    moves: u64,
    months: Months,
    of_games: bool,
    max_rows: usize,
    rows: &mut Vec<ResultRow>,
) -> Option<()> {
    let (mut last, mut games) = (None, 0);
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
        if count > (max_rows - rows.len()) as u64 {
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
            games += row.results.games();
            if games > MAX_GAMES {
                return None;
            }
            rows.push(row);
        }
    }
    Some(())
}

/// Decodes the results and the means of a row, and stores them in `row`. `of_games` is `true` for an index of games,
/// and `false` for an index of counts, which contains no games. Returns `None` if the numbers are malformed or
/// impossible.
fn take_games(bits: &mut BitReader<'_>, of_games: bool, row: &mut ResultRow) -> Option<()> {
    let total = bits.take_golomb(0)?.checked_add(1)?;
    if total > MAX_GAMES {
        return None;
    }
    let white = bits.take(bits_of(total))?;
    let black = bits.take(bits_of(total.checked_sub(white)?))?;
    let others = (total - white).checked_sub(black)?;
    let unfinished = if of_games {
        bits.take(bits_of(others))?
    } else {
        0
    };
    row.results = Results {
        white,
        draws: others.checked_sub(unfinished)?,
        black,
        unfinished,
    };
    for (mean, measure) in row.means.0.iter_mut().zip(&MEASURES) {
        mean.games = match bits.take(1)? {
            1 => total,
            _ => bits.take(bits_of(total)).filter(|games| *games < total)?,
        };
        if mean.games > 0 {
            let (estimate, order) = estimated_sum(measure, row.class, mean.games);
            let doubled = bits.take_golomb(order)?;
            let more = (doubled >> 1).cast_signed() ^ -((doubled & 1).cast_signed());
            mean.sum = estimate.checked_add_signed(more)?;
        }
    }
    if of_games && total == 1 {
        row.game = Some(u32::try_from(bits.take_golomb(ID_CODE_ORDER)?).ok()?);
    }
    row.is_possible().then_some(())
}

#[cfg(test)]
pub(super) mod strategies {
    use proptest::prelude::*;

    use super::*;
    use crate::formats::explorer_index::count_pages::MAX_INLINE_ROWS;

    fn games() -> impl Strategy<Value = ([u64; 3], Means)> {
        let few = prop_oneof![
            Just(0u64),
            Just(1),
            0..40u64,
            0..MAX_GAMES / 4 / MAX_INLINE_ROWS as u64
        ];
        let known = any::<[(u64, u16); MEASURES.len()]>();
        ([few.clone(), few.clone(), few], known).prop_map(|([draws, white, black], known)| {
            let games = [draws + u64::from(white + black == 0), white, black];
            let total: u64 = games.iter().sum();
            let mut means = Means::default();
            let of_measures = means.0.iter_mut().zip(&MEASURES);
            for ((mean, measure), (games, value)) in of_measures.zip(known) {
                mean.games = if games % 3 == 0 {
                    total
                } else {
                    games % (total + 1)
                };
                mean.sum = mean.games * u64::from(value % measure.highest + 1);
            }
            (games, means)
        })
    }

    /// Generates sorted rows of one position in an index of counts.
    pub(in crate::formats::explorer_index) fn results() -> impl Strategy<Value = Vec<ResultRow>> {
        let month = prop_oneof![
            Just((0, 0)),
            (2013..2026u16, 0..=12u8),
            (1..9999u16, 0..=12u8)
        ];
        let kind = (0..30u16, 0..Class::COUNT as u8, month);
        proptest::collection::btree_map(kind, games(), 1..=MAX_INLINE_ROWS).prop_map(|rows| {
            let rows = rows.into_iter();
            rows.map(|(kind, ([draws, white, black], means))| {
                let (mv, class, (year, month)): (u16, _, _) = kind;
                ResultRow {
                    mv: BookMove(mv * 0x333),
                    class: Class::of_number(class).unwrap(),
                    month: Month::new(year, month).unwrap(),
                    results: Results {
                        white,
                        draws,
                        black,
                        unfinished: 0,
                    },
                    means,
                    game: None,
                }
            })
            .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_numbers_of_their_own() {
        let mut numbers: Vec<usize> = RatingGroup::all()
            .map(Some)
            .chain([None])
            .flat_map(|group| Speed::ALL.map(|speed| Class::new(speed, group).number()))
            .collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..Class::COUNT));
    }

    #[test]
    fn keys_of_periods_are_in_their_order() {
        let month = |year, month| Period::Month(Month::new(year, month).unwrap());
        let periods = [
            Period::All,
            Period::Year(0),
            Period::Year(300),
            month(0, 0),
            month(300, 1),
            month(301, 0),
        ];
        assert!(periods.is_sorted());
        assert!(periods.map(Period::key_bytes).is_sorted());
    }

    #[test]
    fn months_are_those_of_dates() {
        let of = |year, month, day| {
            let month = Month::of(Date::new(year, month, day));
            (month.year(), month.month())
        };
        assert_eq!(of(2024, 12, 31), (2024, 12));
        assert_eq!(of(2024, 0, 0), (2024, 0));
        assert_eq!(of(0, 5, 0), (0, 0));
    }
}

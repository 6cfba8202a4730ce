//! The results of the moves of a position, added up by class and by month or a longer period.

use crate::{
    pgn::{Date, RatingGroup, Speed},
    position::BookMove,
};

/// The greatest number of games in a row of results. Sums over all rows cannot overflow.
pub const MOST_GAMES: u64 = 1 << 48;

/// The highest rating that a player can have. A higher mean rating shows that the data are damaged.
const HIGHEST: u64 = (1 << 12) - 1;

/// A month of a year, a year whose month is unknown, or an unknown year. Values are ordered by time; an unknown month
/// comes before the months of its year, and an unknown year before all years.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Month(pub(super) u32);

impl Month {
    /// Creates a month of a year. `year` is from 1 to 9999, or 0 if unknown. `month` is from 1 to 12, or 0 if unknown;
    /// it must be 0 if the year is unknown. Returns `None` for invalid numbers.
    pub fn new(year: u16, month: u8) -> Option<Month> {
        let is_month = year < 10_000 && month <= 12 && (year > 0 || month == 0);
        is_month.then(|| Month(13 * u32::from(year) + u32::from(month)))
    }

    /// Returns the month of a date. If the year is unknown, the result is an unknown year.
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

/// A period of time for which results are added up: all time, a year or a month. The order of this type is the order in
/// which an index stores the periods of a position.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Period {
    /// All time.
    All,
    /// A year; 0 for games of an unknown year.
    Year(u16),
    /// A month of a year.
    Month(Month),
}

impl Period {
    /// Encodes the period (all time, a year or a month) as it appears in a LevelDB key.
    pub fn key_bytes(self) -> Vec<u8> {
        let of_year = |kind: u8, year: u16| [&[kind][..], &year.to_be_bytes()].concat();
        match self {
            Period::All => vec![0],
            Period::Year(year) => of_year(1, year),
            Period::Month(month) => [&of_year(2, month.year())[..], &[month.month()]].concat(),
        }
    }

    /// Returns the next longer period: the year for a month, and all time for a year. All time is returned unchanged.
    pub fn longer(self) -> Period {
        match self {
            Period::Month(month) => Period::Year(month.year()),
            Period::Year(_) | Period::All => Period::All,
        }
    }
}

/// A year and the set of its months in which games were played.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct YearMonths {
    /// The year, or 0 for games of an unknown year.
    pub year: u16,
    /// The months: bit 0 for games of an unknown month, bits 1 to 12 for the months.
    pub months: u16,
}

impl YearMonths {
    /// Adds a month to a list of years with their months. `years` must be sorted, and must not contain a year later
    /// than that of `month`.
    pub fn note(years: &mut Vec<YearMonths>, month: Month) {
        let (year, months) = (month.year(), 1 << month.month());
        match years.last_mut() {
            Some(last) if last.year == year => last.months |= months,
            _ => years.push(YearMonths { year, months }),
        }
    }

    /// Returns an iterator over the months of the year in which games were played, in ascending order. Games of an
    /// unknown month come first.
    pub fn months(self) -> impl Iterator<Item = Month> {
        let months = (0..=12).filter(move |month| self.months >> month & 1 == 1);
        months.map(move |month| Month(13 * u32::from(self.year) + month))
    }
}

/// A class of games: a speed combined with a rating group. Games without a known rating form a rating group of their
/// own, the last one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// The number of classes, each of which is a pair of a speed and a rating group.
    pub const COUNT: usize = (RatingGroup::COUNT + 1) * Speed::ALL.len();
    /// The class with the lowest number, 0.
    pub const FIRST: Class = Class(0);
    /// The class with the greatest number.
    pub const LAST: Class = Class(Class::COUNT as u8 - 1);

    /// Returns the class of games with the speed `speed` and the rating group `group`, which is `None` for games
    /// without a known rating.
    pub fn new(speed: Speed, group: Option<RatingGroup>) -> Class {
        let group = group.map_or(RatingGroup::COUNT, RatingGroup::number);
        Class((group * Speed::ALL.len() + speed as usize) as u8)
    }

    /// Returns the class with the number `number`, or `None` if no class has this number.
    pub fn of_number(number: u8) -> Option<Class> {
        (usize::from(number) < Class::COUNT).then_some(Class(number))
    }

    /// Returns the number of the class, from 0.
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Returns the index of the class's rating group in [`RatingGroup::all`]. For games without a known rating, returns
    /// the number of rating groups.
    pub fn group(self) -> usize {
        self.number() / Speed::ALL.len()
    }

    /// Returns the index of the class's speed in [`Speed::ALL`].
    pub fn speed(self) -> usize {
        self.number() % Speed::ALL.len()
    }
}

/// The results of one move in a position, added up over the games of one class (speed and rating group) and one month
/// or longer period.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ResultRow {
    /// The move, or [`BookMove::NONE`] for games that end in the position.
    pub mv: BookMove,
    /// The class.
    pub class: Class,
    /// The month; unknown in the rows of longer periods.
    pub month: Month,
    /// The number of games with each result, by the [numbers of results](crate::pgn::GameResult::ALL). Counts have no
    /// games without a result.
    pub games: [u64; 4],
    /// The number of games in which the rating of the player who moved is known.
    pub rated: u64,
    /// The sum of the known ratings of the players who moved.
    pub ratings: u64,
    /// The id of the game if there is only one, otherwise the id of any of the games. `None` in counts, which have no
    /// games.
    pub game: Option<u32>,
}

impl ResultRow {
    /// Creates a row for the move `mv`, the class `class` and the month `month`. The row has no games.
    pub fn new(mv: BookMove, class: Class, month: Month) -> ResultRow {
        ResultRow {
            mv,
            class,
            month,
            games: [0; 4],
            rated: 0,
            ratings: 0,
            game: None,
        }
    }

    /// Returns the number of games in the row.
    pub fn total(&self) -> u64 {
        self.games.iter().sum()
    }

    /// Returns the sort key of the row: move, class (speed and rating group) and month. Rows with equal sort keys can
    /// be added up.
    pub fn kind(&self) -> (BookMove, Class, Month) {
        (self.mv, self.class, self.month)
    }

    /// Adds the games of another row with an equal sort key. If a sum overflows, [`is_possible`](Self::is_possible)
    /// returns `false` for the result.
    pub fn add(&mut self, other: &ResultRow) {
        for (sum, more) in self.games.iter_mut().zip(other.games) {
            *sum = sum.saturating_add(more);
        }
        self.rated = self.rated.saturating_add(other.rated);
        self.ratings = self.ratings.saturating_add(other.ratings);
        self.game = other.game;
    }

    /// Returns `true` if the numbers of the row do not contradict each other and do not exceed their limits.
    pub fn is_possible(&self) -> bool {
        let games = self
            .games
            .iter()
            .try_fold(0u64, |sum, games| sum.checked_add(*games));
        games.is_some_and(|games| {
            (1..=MOST_GAMES).contains(&games)
                && self.rated <= games
                && (self.rated..=self.rated * HIGHEST).contains(&self.ratings)
        })
    }
}

/// Returns the total number of games in all rows.
pub fn games_of(rows: &[ResultRow]) -> u64 {
    rows.iter().map(ResultRow::total).sum()
}

#[cfg(test)]
pub(super) mod strategies {
    use proptest::prelude::*;

    use super::*;
    use crate::index::store::count_pages::INLINE;

    fn games() -> impl Strategy<Value = ([u64; 3], u64, u64)> {
        let few = prop_oneof![Just(0u64), Just(1), 0..40u64, 0..MOST_GAMES / 4];
        ([few.clone(), few.clone(), few], any::<u64>(), 1..=HIGHEST).prop_map(
            |([draws, white, black], rated, rating)| {
                let games = [draws + u64::from(white + black == 0), white, black];
                let total: u64 = games.iter().sum();
                let rated = if rated % 3 == 0 {
                    total
                } else {
                    rated % (total + 1)
                };
                (games, rated, rated * rating)
            },
        )
    }

    /// Generates sorted rows of one position in an index of counts.
    pub(in crate::index::store) fn results() -> impl Strategy<Value = Vec<ResultRow>> {
        let month = prop_oneof![
            Just((0, 0)),
            (2013..2026u16, 0..=12u8),
            (1..9999u16, 0..=12u8)
        ];
        let kind = (0..30u16, 0..Class::COUNT as u8, month);
        proptest::collection::btree_map(kind, games(), 1..=INLINE).prop_map(|rows| {
            let rows = rows.into_iter();
            rows.map(|(kind, ([draws, white, black], rated, ratings))| {
                let (mv, class, (year, month)): (u16, _, _) = kind;
                ResultRow {
                    mv: BookMove(mv * 0x333),
                    class: Class::of_number(class).unwrap(),
                    month: Month::new(year, month).unwrap(),
                    games: [draws, white, black, 0],
                    rated,
                    ratings,
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

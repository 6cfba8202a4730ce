//! Sums of the games of a position that has very many games. A query whose filters select whole [periods](Period) and
//! [classes](Class) is answered from the sums, without reading the games.
//!
//! A position with more than [`SUMMED`] games has an entry for each period with games:
//!
//! | part | encoding |
//! |---|---|
//! | the entry of all time begins with | varint n; n times a year (2 bytes, ascending) and its months with games (2 bytes: bit 0 for games of an unknown month, bits 1 to 12) |
//! | then for each class, ascending | its number (1 byte); varint m; m moves, ascending; varint g; g games, ascending |
//! | a move | the move (2 bytes); a byte of the results that occur: bit 0 neither side won, 1 White won, 2 Black won, 3 unknown; for each of them a varint: the number of games |
//! | after a move with one game | varint of the game's id; varint of the rating of the player who moved, 0 if unknown |
//! | after a move with more games | varint: the number of known ratings of the players who moved; varint: the sum of these ratings |
//! | a game | varint: the id minus the previous id minus 1 (for the first game, the id), times 2^b, plus the index of its move among the m moves, where b is the least number of bits that m - 1 fits into |
//!
//! A class is a speed and a rating group: six times the number of the group, plus the number of the speed. The group
//! after the last one contains the games without a known rating. Move 0 stands for games that end in the position. The
//! listed games of a class include its [`TOP`] games with the highest ratings and its [`RECENT`] newest games, except
//! games that end in the position. Numbers of two bytes are little-endian.

use super::{LISTS, played::bits_for, put_varint, take_size, take_varint};
use crate::{
    pgn::{RatingGroup, Speed},
    position::BookMove,
};

/// The greatest number of items of a list without sums.
pub const SUMMED: usize = 1 << 15;

/// The number of games with the highest ratings that a class lists.
pub const TOP: usize = 15;

/// The number of newest games that a class lists. An answer shows up to 8 recent games and 4 top games. The newest
/// games may be among the top games, which are not shown twice, so 8 + 4 games are needed.
pub const RECENT: usize = 12;

/// A period of time. The periods of a position are sorted in the order of this type.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Period {
    /// All time.
    All,
    /// A year; 0 for games of an unknown year.
    Year(u16),
    /// A month of a year; 0 for games of an unknown month.
    Month(u16, u8),
}

impl Period {
    /// Returns the bytes of the period in a key.
    pub fn key_bytes(self) -> Vec<u8> {
        let of_year = |kind: u8, year: u16| [&[kind][..], &year.to_be_bytes()].concat();
        match self {
            Period::All => vec![0],
            Period::Year(year) => of_year(1, year),
            Period::Month(year, month) => [&of_year(2, year)[..], &[month]].concat(),
        }
    }

    /// Returns the next longer period that contains this one.
    pub fn longer(self) -> Period {
        match self {
            Period::Month(year, _) => Period::Year(year),
            Period::Year(_) | Period::All => Period::All,
        }
    }
}

/// A year, and its months that have games, as bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct YearMonths {
    /// The year, or 0 for games of an unknown year.
    pub year: u16,
    /// The months: bit 0 for games of an unknown month, bits 1 to 12 for the months.
    pub months: u16,
}

impl YearMonths {
    /// Adds a month to `years`, which is sorted and ends with this year or an earlier one.
    pub fn note(years: &mut Vec<YearMonths>, year: u16, month: u8) {
        let months = 1 << month;
        match years.last_mut() {
            Some(last) if last.year == year => last.months |= months,
            _ => years.push(YearMonths { year, months }),
        }
    }

    /// Returns an iterator over the months, ascending.
    pub fn months(self) -> impl Iterator<Item = u8> {
        (0..=12).filter(move |month| self.months >> month & 1 == 1)
    }
}

/// A speed and a rating group. Games without a known rating form the last group.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// The number of classes.
    pub const COUNT: usize = (RatingGroup::COUNT + 1) * Speed::ALL.len();

    /// Returns the class of a speed and a group; the group is `None` for games without a known rating.
    pub fn new(speed: Speed, group: Option<RatingGroup>) -> Class {
        let group = group.map_or(RatingGroup::COUNT, RatingGroup::number);
        Class((group * Speed::ALL.len() + speed as usize) as u8)
    }

    /// Returns the class with this number, or `None` if there is none.
    pub fn of_number(number: u8) -> Option<Class> {
        (usize::from(number) < Class::COUNT).then_some(Class(number))
    }

    /// Returns the number of the class, from 0.
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Returns the index of the rating group in [`RatingGroup::all`], or the number of groups if no rating is known.
    pub fn group(self) -> usize {
        self.number() / Speed::ALL.len()
    }

    /// Returns the number of the speed.
    pub fn speed(self) -> usize {
        self.number() % Speed::ALL.len()
    }
}

/// The sums of the games of a class in which a move was played in a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveSum {
    /// The move.
    pub mv: BookMove,
    /// The number of games with each result, by the [numbers of results](crate::pgn::GameResult::ALL).
    pub games: [u32; 4],
    /// The number of games in which the rating of the player who moved is known.
    pub rated: u32,
    /// The sum of the known ratings of the players who moved.
    pub ratings: u64,
    /// The id of the game if there is only one, otherwise the id of any of the games.
    pub game: u32,
}

impl MoveSum {
    /// Creates a sum without games.
    pub fn new(mv: BookMove) -> MoveSum {
        MoveSum {
            mv,
            games: [0; 4],
            rated: 0,
            ratings: 0,
            game: 0,
        }
    }

    /// Returns the number of games.
    pub fn total(&self) -> u64 {
        self.games.iter().map(|games| u64::from(*games)).sum()
    }

    /// Adds the games of another period or class.
    pub fn add(&mut self, other: &MoveSum) {
        for (sum, more) in self.games.iter_mut().zip(other.games) {
            *sum += more;
        }
        self.rated += other.rated;
        self.ratings += other.ratings;
        self.game = other.game;
    }

    /// Appends the encoded sum.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.mv.0.to_le_bytes());
        let present = (0..4).filter(|result| self.games[*result] > 0);
        out.push(present.fold(0, |bits, result| bits | 1 << result));
        for games in self.games.iter().filter(|games| **games > 0) {
            put_varint(out, u64::from(*games));
        }
        let first = match self.total() {
            1 => self.game,
            _ => self.rated,
        };
        put_varint(out, first.into());
        put_varint(out, self.ratings);
    }

    /// Reads a sum. Returns `None` if it is malformed.
    fn take(rest: &mut &[u8]) -> Option<MoveSum> {
        let mv = rest.split_off(..2)?.try_into().ok()?;
        let present = rest.split_off_first()?;
        if !(1..1 << 4).contains(present) {
            return None;
        }
        let mut sum = MoveSum::new(BookMove(u16::from_le_bytes(mv)));
        for (result, games) in sum.games.iter_mut().enumerate() {
            if present >> result & 1 == 1 {
                *games = u32::try_from(take_varint(rest)?)
                    .ok()
                    .filter(|games| *games > 0)?;
            }
        }
        let first = u32::try_from(take_varint(rest)?).ok()?;
        sum.ratings = take_varint(rest)?;
        match sum.total() {
            1 => (sum.game, sum.rated) = (first, u32::from(sum.ratings > 0)),
            _ => sum.rated = first,
        }
        let is_possible = u64::from(sum.rated) <= sum.total()
            && sum.ratings <= u64::from(sum.rated) * u64::from(u16::MAX);
        is_possible.then_some(sum)
    }
}

/// The sums of the games of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassSums {
    /// The class.
    pub class: Class,
    /// The sums of the moves, ascending. Games that end in the position have the move 0.
    pub moves: Vec<MoveSum>,
    /// The games with the highest ratings and the newest games, and possibly others: their ids, ascending, each with
    /// the index of its move in `moves`.
    pub games: Vec<(u32, usize)>,
}

impl ClassSums {
    /// Appends the encoded sums.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.class.0);
        put_varint(out, self.moves.len() as u64);
        for sum in &self.moves {
            sum.write(out);
        }
        put_varint(out, self.games.len() as u64);
        let bits = bits_for(self.moves.len());
        let mut next = 0;
        for (id, place) in &self.games {
            put_varint(out, u64::from(id - next) << bits | *place as u64);
            next = id.wrapping_add(1);
        }
    }

    /// Reads the sums of a class. Returns `None` if they are malformed.
    fn take(rest: &mut &[u8]) -> Option<ClassSums> {
        let class = rest.split_off_first()?;
        let mut sums = ClassSums {
            class: Class::of_number(*class)?,
            moves: Vec::new(),
            games: Vec::new(),
        };
        let mut last = None;
        for _ in 0..take_varint(rest)? {
            let sum = MoveSum::take(rest)?;
            if last.replace(sum.mv).is_some_and(|last| last >= sum.mv) {
                return None;
            }
            sums.moves.push(sum);
        }
        let bits = bits_for(sums.moves.len());
        let mut next = 0u64;
        for _ in 0..take_varint(rest)? {
            let item = take_varint(rest)?;
            let id = u32::try_from(next.checked_add(item >> bits)?).ok()?;
            let place = (item & ((1 << bits) - 1)) as usize;
            if place >= sums.moves.len() {
                return None;
            }
            sums.games.push((id, place));
            next = u64::from(id) + 1;
        }
        Some(sums)
    }
}

/// An element of a period's entry: the sums of a class of games, or a row of counts.
pub trait PeriodEntry: Sized {
    /// The prefix of the entries' keys.
    const KEYS: &[u8; 2];

    /// Decodes the elements of an entry. In the entry of all time, years precede the elements; `value` must not contain
    /// them. Returns `None` if the elements are malformed.
    fn parse(value: &[u8]) -> Option<Vec<Self>>;

    /// Returns the number of games.
    fn games(&self) -> u64;

    /// Returns the class of the games.
    fn class(&self) -> Class;
}

impl PeriodEntry for ClassSums {
    const KEYS: &[u8; 2] = LISTS;

    fn parse(value: &[u8]) -> Option<Vec<ClassSums>> {
        parse_sums(value)
    }

    fn games(&self) -> u64 {
        self.moves.iter().map(MoveSum::total).sum()
    }

    fn class(&self) -> Class {
        self.class
    }
}

/// Returns the number of games of all elements.
pub fn games_of(parts: &[impl PeriodEntry]) -> u64 {
    parts.iter().map(PeriodEntry::games).sum()
}

/// Appends the years that begin the entry of all time.
pub fn write_years(years: &[YearMonths], out: &mut Vec<u8>) {
    put_varint(out, years.len() as u64);
    for year in years {
        out.extend_from_slice(&year.year.to_le_bytes());
        out.extend_from_slice(&year.months.to_le_bytes());
    }
}

/// Reads the years that begin the entry of all time. Returns `None` if they are malformed.
pub fn take_years(rest: &mut &[u8]) -> Option<Vec<YearMonths>> {
    let len = take_size(rest)?.checked_mul(4)?;
    let (years, _) = rest.split_off(..len)?.as_chunks::<4>();
    let years: Vec<YearMonths> = years
        .iter()
        .map(|[a, b, c, d]| YearMonths {
            year: u16::from_le_bytes([*a, *b]),
            months: u16::from_le_bytes([*c, *d]),
        })
        .collect();
    let have_months = years.iter().all(|year| (1..1 << 13).contains(&year.months));
    let ascend = years.is_sorted_by(|a, b| a.year < b.year);
    (have_months && ascend).then_some(years)
}

/// Decodes the classes of an entry, without years. Returns `None` if they are malformed.
pub fn parse_sums(mut rest: &[u8]) -> Option<Vec<ClassSums>> {
    let mut classes: Vec<ClassSums> = Vec::new();
    while !rest.is_empty() {
        let sums = ClassSums::take(&mut rest)?;
        if classes.last().is_some_and(|last| last.class >= sums.class) {
            return None;
        }
        classes.push(sums);
    }
    Some(classes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn move_sums() -> impl Strategy<Value = MoveSum> {
        let games = any::<[u32; 4]>().prop_filter("there are games", |games| *games != [0; 4]);
        (games, any::<u32>(), any::<u16>(), any::<u32>()).prop_map(
            |(games, rated, rating, game)| {
                let mut sum = MoveSum {
                    games,
                    ..MoveSum::new(BookMove(0))
                };
                sum.rated = rated.min(u32::try_from(sum.total()).unwrap_or(u32::MAX));
                if sum.total() == 1 {
                    sum.rated = u32::from(rating > 0);
                    sum.game = game;
                }
                sum.ratings = u64::from(sum.rated) * u64::from(rating);
                sum
            },
        )
    }

    fn class_sums() -> impl Strategy<Value = ClassSums> {
        let moves = proptest::collection::btree_map(any::<u16>(), move_sums(), 1..40);
        let games =
            proptest::collection::btree_map(any::<u32>(), any::<prop::sample::Index>(), 0..30);
        (0..Class::COUNT as u8, moves, games).prop_map(|(class, moves, games)| ClassSums {
            class: Class(class),
            games: games
                .into_iter()
                .map(|(id, place)| (id, place.index(moves.len())))
                .collect(),
            moves: moves
                .into_iter()
                .map(|(mv, sum)| MoveSum {
                    mv: BookMove(mv),
                    ..sum
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn sums_come_back(mut classes in proptest::collection::vec(class_sums(), 0..6), single: bool) {
            classes.sort_by_key(|sums| sums.class);
            classes.dedup_by_key(|sums| sums.class);
            if single && let Some(sum) = classes.first_mut() {
                sum.moves[0] = MoveSum { games: [0, 1, 0, 0], rated: 1, ratings: 2000, game: 7, ..sum.moves[0] };
            }
            let mut bytes = Vec::new();
            classes.iter().for_each(|sums| sums.write(&mut bytes));
            prop_assert_eq!(parse_sums(&bytes), Some(classes));
        }

        #[test]
        fn years_come_back(years in proptest::collection::btree_map(any::<u16>(), 1..1u16 << 13, 0..30)) {
            let years: Vec<YearMonths> = years.into_iter().map(|(year, months)| YearMonths { year, months }).collect();
            let mut bytes = Vec::new();
            write_years(&years, &mut bytes);
            bytes.push(9);
            let mut rest = &bytes[..];
            prop_assert_eq!(take_years(&mut rest), Some(years));
            prop_assert_eq!(rest, [9]);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = take_years(&mut &bytes[..]);
            if let Some(classes) = parse_sums(&bytes) {
                prop_assert!(classes.iter().all(|sums| sums.class.number() < Class::COUNT));
            }
        }
    }

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
        let periods = [
            Period::All,
            Period::Year(0),
            Period::Year(300),
            Period::Month(0, 0),
            Period::Month(300, 1),
            Period::Month(301, 0),
        ];
        assert!(periods.is_sorted());
        assert!(periods.map(Period::key_bytes).is_sorted());
    }
}

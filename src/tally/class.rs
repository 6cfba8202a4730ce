//! Records of half-moves by class, each of 128 bits.
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | key of the position |
//! | 48-63 | the move |
//! | 47 | whether Black is to move |
//! | 41-46 | speed and rating group |
//! | 24-40 | month |
//! | 23 | whether it is for books only |
//! | 21-22 | the result: 0 a loss, 1 a draw, 2 a win |
//! | 20 | whether the ratings are known |
//! | 16-19 | the number of games, minus one |
//! | 0-15 | the sum of the ratings |
//!
//! More games take several records.

use std::ops::AddAssign;

use shakmaty::Color;

use super::{shared_keys::KeyedIdentity, stats::Stats};
use crate::{
    error::Result,
    position::BookMove,
    sort::{Fold, Memory, Record, Sealed, Shards},
};

/// The number of rating groups, with the group of unknown ratings.
const GROUPS: u8 = 10;
/// The number of months of a year, with the unknown month.
const MONTHS: u32 = 13;

/// The largest number of games of a record. The sum of their ratings, at most 4,000 each, fits into 16 bits.
const MOST: u64 = 16;

/// The bits that are equal in records whose games can be added up.
const SUMMED: u128 = !0 << 20;

/// The class of a half-move: the properties of its game that counts can be grouped by. A property is 0 if counts are not grouped
/// by it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CountClass {
    /// The index of the speed in [`Speed::ALL`](crate::pgn::Speed::ALL).
    pub speed: u8,
    /// 0 for games without a known rating, else 1 plus the index in
    /// [`RatingGroup::all`](crate::pgn::RatingGroup::all) of the group of the mean of the known ratings.
    pub group: u8,
    /// A hundred times the year plus the month; an unknown year or month is 0.
    pub month: u32,
    /// Whether the half-move counts for books only, because it is in a variation, or because its game played another move in the
    /// same position later. An explorer counts only the last move of each game in a position.
    pub book_only: bool,
}

/// The known ratings of the side that moved.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Ratings {
    /// The sum of the ratings.
    pub sum: u64,
    /// The number of games in which the rating is known.
    pub games: u64,
}

impl AddAssign for Ratings {
    fn add_assign(&mut self, other: Ratings) {
        self.sum += other.sum;
        self.games += other.games;
    }
}

/// Up to 16 games of one class and result that played a move in a position. Records compare by key, then move, then class.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ClassRecord(u128);

impl ClassRecord {
    /// Creates the record of a half-move. `rating` is that of the side that moved, 0 if it is unknown.
    #[inline]
    pub(crate) fn new(
        key: u64,
        mv: BookMove,
        turn: Color,
        class: CountClass,
        winner: Option<Color>,
        rating: u16,
    ) -> ClassRecord {
        let CountClass {
            speed,
            group,
            month,
            book_only,
        } = class;
        debug_assert!(group < GROUPS && month < 1_000_000 && rating <= 4000);
        let month = month / 100 * MONTHS + month % 100;
        let result = match winner {
            None => 1,
            Some(winner) => 2 * u64::from(winner == turn),
        };
        let low = u64::from(mv.0) << 48
            | u64::from(turn.is_black()) << 47
            | u64::from(speed * GROUPS + group) << 41
            | u64::from(month) << 24
            | u64::from(book_only) << 23
            | result << 21
            | u64::from(rating > 0) << 20
            | u64::from(rating);
        ClassRecord(u128::from(key) << 64 | u128::from(low))
    }

    pub(crate) fn key(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(crate) fn book_move(self) -> BookMove {
        BookMove((self.0 >> 48) as u16)
    }

    pub(crate) fn turn(self) -> Color {
        Color::from_white(self.0 >> 47 & 1 == 0)
    }

    pub(crate) fn class(self) -> CountClass {
        let low = self.0 as u64;
        let traits = (low >> 41 & 63) as u8;
        let month = (low >> 24 & 0x1ffff) as u32;
        CountClass {
            speed: traits / GROUPS,
            group: traits % GROUPS,
            month: month / MONTHS * 100 + month % MONTHS,
            book_only: low >> 23 & 1 == 1,
        }
    }

    /// Returns `true` if another record has the same position, move and class.
    #[inline]
    pub(crate) fn has_class_of(self, other: ClassRecord) -> bool {
        self.0 >> 23 == other.0 >> 23
    }

    pub(crate) fn stats(self) -> Stats {
        let games = self.games();
        let result = self.0 >> 21 & 3;
        let of = |number| if result == number { games } else { 0 };
        Stats {
            wins: of(2),
            draws: of(1),
            losses: of(0),
        }
    }

    pub(crate) fn ratings(self) -> Ratings {
        match self.0 >> 20 & 1 {
            0 => Ratings::default(),
            _ => Ratings {
                sum: self.sum(),
                games: self.games(),
            },
        }
    }

    fn games(self) -> u64 {
        (self.0 as u64 >> 16 & 15) + 1
    }

    fn sum(self) -> u64 {
        self.0 as u64 & 0xffff
    }
}

impl Record for ClassRecord {
    type Fold = AddGames;

    fn from_bits(bits: u128) -> ClassRecord {
        ClassRecord(bits)
    }

    fn to_bits(self) -> u128 {
        self.0
    }

    /// Position keys are uniformly distributed, so they serve as ranks.
    fn rank(self) -> u64 {
        self.key()
    }
}

/// Adds up the games and ratings of records that are otherwise equal.
#[derive(Clone, Default, Debug)]
pub(crate) struct AddGames {
    /// The shared bits of the current records, their number of games and the sum of their ratings.
    open: Option<(u128, u64, u64)>,
}

impl Fold for AddGames {
    type Record = ClassRecord;

    #[inline]
    fn take(&mut self, record: ClassRecord, out: &mut impl FnMut(ClassRecord)) {
        let shared = record.0 & SUMMED;
        match &mut self.open {
            Some((open, games, sum)) if *open == shared => {
                *games += record.games();
                *sum += record.sum();
            }
            _ => {
                self.finish(out);
                self.open = Some((shared, record.games(), record.sum()));
            }
        }
    }

    /// Splits the games into ascending records: the one with the fewest games first, then full records with nearly equal sums.
    #[inline]
    fn finish(&mut self, out: &mut impl FnMut(ClassRecord)) {
        let Some((shared, games, sum)) = self.open.take() else {
            return;
        };
        let (mut left, mut rest) = (games, sum);
        while left > 0 {
            let now = match left % MOST {
                0 => MOST,
                few => few,
            };
            // The proportional share of the sum; the last record takes the remainder.
            let part = rest / left * now + (rest % left * now) / left;
            out(ClassRecord(shared | u128::from((now - 1) << 16 | part)));
            left -= now;
            rest -= part;
        }
    }
}

/// Collects half-moves by class, from any number of threads.
#[derive(Debug)]
pub(crate) struct ClassTally {
    records: Shards<ClassRecord>,
    /// The position keys of identities, if records are stored by identity.
    keys: Option<Shards<KeyedIdentity>>,
}

/// The sorted records of a [`ClassTally`].
#[derive(Debug)]
pub(crate) struct ClassCounts {
    pub(crate) records: Sealed<ClassRecord>,
    pub(crate) keys: Option<Sealed<KeyedIdentity>>,
}

impl ClassTally {
    /// Creates an empty tally. With identities there are two tables, each of which may use this much memory.
    pub(crate) fn new(memory: &Memory, with_identities: bool) -> ClassTally {
        ClassTally {
            records: Shards::new(memory.clone()),
            keys: with_identities.then(|| Shards::new(memory.clone())),
        }
    }

    /// Adds records and, with identities, the keys of their positions.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub(crate) fn append(&self, records: &[ClassRecord], pairs: &[KeyedIdentity]) -> Result<()> {
        self.records.append(records)?;
        self.keys.as_ref().map_or(Ok(()), |keys| keys.append(pairs))
    }

    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.records.spilled_bytes() + self.keys.as_ref().map_or(0, Shards::spilled_bytes)
    }

    /// Sorts the records, on all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn seal(self) -> Result<ClassCounts> {
        Ok(ClassCounts {
            records: self.records.seal()?,
            keys: self.keys.map(Shards::seal).transpose()?,
        })
    }
}

impl ClassCounts {
    /// Calls `f` with each record of an identity, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn for_each_of_identity(
        &self,
        identity: u64,
        mut f: impl FnMut(ClassRecord),
    ) -> Result<()> {
        let shard = ClassRecord(u128::from(identity) << 64).shard();
        let (mut first, mut end) = (0, self.records.shard_len(shard) as usize);
        let all = end;
        let mut buffer = Vec::new();
        while first < end {
            let middle = first.midpoint(end);
            let record = self.records.range(shard, middle..middle + 1, &mut buffer)?[0];
            match record.key() < identity {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        for at in first..all {
            let record = self.records.range(shard, at..at + 1, &mut buffer)?[0];
            if record.key() != identity {
                break;
            }
            f(record);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn classes() -> impl Strategy<Value = CountClass> {
        let month = prop_oneof![
            Just(0u32),
            (1..=9999u32, 0..=12u32).prop_map(|(year, month)| year * 100 + month)
        ];
        (0..6u8, 0..GROUPS, month, any::<bool>()).prop_map(|(speed, group, month, book_only)| {
            CountClass {
                speed,
                group,
                month,
                book_only,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            key: u64, mv: u16, black: bool, class in classes(), result in 0..3u8, rating in 0..=4000u16,
        ) {
            let turn = Color::from_white(!black);
            let winner = [None, Some(turn), Some(!turn)][usize::from(result)];
            let record = ClassRecord::new(key, BookMove(mv), turn, class, winner, rating);
            prop_assert_eq!((record.key(), record.book_move(), record.turn()), (key, BookMove(mv), turn));
            prop_assert_eq!(record.class(), class);
            prop_assert_eq!(record.stats(), Stats::of_game(winner, turn));
            let ratings = Ratings { sum: rating.into(), games: u64::from(rating > 0) };
            prop_assert_eq!(record.ratings(), ratings);
        }

        #[test]
        fn records_are_in_the_order_of_classes(a in classes(), b in classes()) {
            let of = |class| ClassRecord::new(1, BookMove(796), Color::White, class, None, 0);
            prop_assert_eq!(of(a).cmp(&of(b)), a.cmp(&b));
        }

        #[test]
        fn folded_games_add_up(ratings in proptest::collection::vec(
            prop_oneof![Just(0u16), Just(1), Just(4000), 0..=4000u16], 1..200,
        ), rounds in 1..4usize) {
            let of = |rating: &u16| {
                ClassRecord::new(1, BookMove(796), Color::White, CountClass::default(), Some(Color::White), *rating)
            };
            let mut records: Vec<ClassRecord> = ratings.iter().map(of).collect();
            // Folding folded records again must not change the sums.
            for _ in 0..rounds {
                records.sort();
                let (mut fold, mut folded) = (AddGames::default(), Vec::new());
                for record in &records {
                    fold.take(*record, &mut |record| folded.push(record));
                }
                fold.finish(&mut |record| folded.push(record));
                prop_assert!(folded.len() <= records.len() && folded.is_sorted());
                records = folded;
            }
            prop_assert!(records.len() <= ratings.len() / MOST as usize + 2);
            let (mut stats, mut sum) = (Stats::default(), Ratings::default());
            for record in records {
                stats += record.stats();
                sum += record.ratings();
            }
            prop_assert_eq!(stats, Stats { wins: ratings.len() as u64, draws: 0, losses: 0 });
            prop_assert_eq!(sum.sum, ratings.iter().map(|rating| u64::from(*rating)).sum::<u64>());
            prop_assert_eq!(sum.games, ratings.iter().filter(|rating| **rating > 0).count() as u64);
        }
    }
}

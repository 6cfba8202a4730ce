//! Records that count half-moves by class: the speed, the rating group and the month of the game.
//!
//! A [`ClassRecord`] has 128 bits:
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | the key of the position, or its exact identity in variants |
//! | 48-63 | the move |
//! | 47 | whether Black is to move |
//! | 41-46 | the speed and the rating group |
//! | 24-40 | the month |
//! | 23 | whether the half-move counts for books only |
//! | 21-22 | the result: 0 for a loss, 1 for a draw, 2 for a win |
//! | 20 | whether the ratings are known |
//! | 16-19 | the number of games, minus one |
//! | 0-15 | the sum of the ratings |
//!
//! More than 16 games are stored in several records.
//!
//! Games of variants are counted by identity, a hash that distinguishes positions with equal keys. Books, however, look
//! positions up by key. Therefore each pair of a key and an identity is also stored once, as a [`KeyedIdentity`].

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use shakmaty::Color;
use thiserror::Error;

use crate::{
    chess::position::BookMove,
    error::Result,
    games::{
        pgn::{Date, RatingGroup, Speed},
        results::{Mean, Means, Measured, Wdl},
        selection::Selection,
    },
    storage::sort::{Dedup, Fold, Memory, Record, Shards, Sorted},
};

/// The number of rating groups, including the group of games without a known rating.
const RATING_GROUPS: u8 = 10;
/// The number of values that a month can have: 1 to 12, and 0 for an unknown month.
const MONTH_VALUES: u32 = 13;

/// The maximum number of games in one record. Each rating is at most 4,000, so the sum of the ratings of 16 games is
/// less than 2^16 and fits into 16 bits.
const MAX_GAMES_PER_RECORD: u64 = 16;

/// A bit mask that selects all fields of a record except the number of games and the sum of the ratings. Records that
/// are equal in the selected fields are added up.
const SAME_CLASS_MASK: u128 = !0 << 20;

/// The class of a half-move: the speed, rating group and month of its game. Each property is 0 if half-moves are not
/// grouped by it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CountClass {
    /// The index of the speed in [`Speed::ALL`](crate::games::pgn::Speed::ALL).
    pub speed: u8,
    /// The rating group that contains the mean of the game's known ratings: the index of the group in
    /// [`RatingGroup::all`](crate::games::pgn::RatingGroup::all), plus 1. It is 0 if no rating is known.
    pub group: u8,
    /// The year times 100, plus the month. An unknown year or month is 0.
    pub month: u32,
    /// Whether the half-move is counted for books but not for an explorer. This is the case if the half-move was played
    /// in a variation, or if its game later returned to the same position and continued with another move.
    pub book_only: bool,
}

impl CountClass {
    /// Returns `true` if the games of the class pass `selection`, which must contain only conditions that depend on the
    /// class.
    pub(crate) fn passes(self, selection: &Selection) -> bool {
        let group = self.group.checked_sub(1).map(usize::from);
        selection.admits_class(
            Speed::ALL[usize::from(self.speed)],
            group.and_then(|group| RatingGroup::all().nth(group)),
            Date::new((self.month / 100) as u16, (self.month % 100) as u8, 0),
        )
    }
}

/// A 128-bit record of up to 16 games in which the same move was played in the same position. All games of a record
/// have the same result and the same class (speed, rating group and month). Records are ordered by position key, then
/// move, then class.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct ClassRecord(u128);

impl ClassRecord {
    /// Creates a record of one half-move. `key` identifies the position, and `turn` is the side to move. `winner` is
    /// the side that won the game, or `None` if neither side won.
    #[inline]
    pub(crate) fn new(
        key: u64,
        mv: BookMove,
        turn: Color,
        class: CountClass,
        winner: Option<Color>,
        [rating]: Measured,
    ) -> ClassRecord {
        let CountClass {
            speed,
            group,
            month,
            book_only,
        } = class;
        debug_assert!(group < RATING_GROUPS && month < 1_000_000 && rating <= 4000);
        let month = month / 100 * MONTH_VALUES + month % 100;
        let result = match winner {
            None => 1,
            Some(winner) => 2 * u64::from(winner == turn),
        };
        let low = u64::from(mv.0) << 48
            | u64::from(turn.is_black()) << 47
            | u64::from(speed * RATING_GROUPS + group) << 41
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
            speed: traits / RATING_GROUPS,
            group: traits % RATING_GROUPS,
            month: month / MONTH_VALUES * 100 + month % MONTH_VALUES,
            book_only: low >> 23 & 1 == 1,
        }
    }

    /// Returns `true` if both records count the same move in the same position, in games of the same class. A class
    /// consists of speed, rating group and month. The results of the games may differ.
    #[inline]
    pub(crate) fn has_class_of(self, other: ClassRecord) -> bool {
        self.0 >> 23 == other.0 >> 23
    }

    pub(crate) fn stats(self) -> Wdl {
        let games = self.games();
        let result = self.0 >> 21 & 3;
        let of = |number| if result == number { games } else { 0 };
        Wdl {
            wins: of(2),
            draws: of(1),
            losses: of(0),
        }
    }

    pub(crate) fn means(self) -> Means {
        let is_rated = self.0 >> 20 & 1 == 1;
        Means([Mean {
            sum: self.sum(),
            games: u64::from(is_rated) * self.games(),
        }])
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
    type Bytes = [u8; 16];

    #[inline]
    fn from_bytes(bytes: [u8; 16]) -> ClassRecord {
        ClassRecord(u128::from_le_bytes(bytes))
    }

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Returns the position key. Its first byte selects the shard (one of the 256 parts of the store) that holds the
    /// record. Keys are hashes, so all shards get about the same number of records.
    fn rank(self) -> u64 {
        self.key()
    }
}

/// A [`Fold`] that merges sorted records with the same position, move, class (speed, rating group and month) and
/// result. It adds up their numbers of games and their ratings.
#[derive(Clone, Default, Debug)]
pub(crate) struct AddGames {
    /// The bits that the current group of records shares, the number of games in the group, and the sum of the games'
    /// ratings.
    open: Option<(u128, u64, u64)>,
}

impl Fold for AddGames {
    type Record = ClassRecord;

    #[inline]
    fn take(&mut self, record: ClassRecord, out: &mut impl FnMut(ClassRecord)) {
        let shared = record.0 & SAME_CLASS_MASK;
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

    /// Ends the current group of records, which differ only in their numbers of games and their ratings, and passes the
    /// sum of the group to `out`. A record can count at most 16 games, so a larger sum is split into several records in
    /// ascending order. The ratings are divided among these records in proportion to their games.
    #[inline]
    fn finish(&mut self, out: &mut impl FnMut(ClassRecord)) {
        let Some((shared, games, sum)) = self.open.take() else {
            return;
        };
        let (mut left, mut rest) = (games, sum);
        while left > 0 {
            let now = match left % MAX_GAMES_PER_RECORD {
                0 => MAX_GAMES_PER_RECORD,
                few => few,
            };
            // The proportional share of the sum of ratings. The last record gets the remainder.
            let part = rest / left * now + (rest % left * now) / left;
            out(ClassRecord(shared | u128::from((now - 1) << 16 | part)));
            left -= now;
            rest -= part;
        }
    }
}

/// A collection of half-move records, to which several threads can add records at the same time. Each record contains
/// the class of its half-move: the speed, rating group and month of the game.
#[derive(Debug)]
pub(crate) struct ClassTally {
    records: Shards<ClassRecord>,
    /// The pairs of a position key and an identity, if records are stored by identity.
    keys: Option<Shards<KeyedIdentity>>,
}

/// The records of a finished [`ClassTally`], sorted by position, move and class (speed, rating group and month).
#[derive(Debug)]
pub(crate) struct ClassCounts {
    pub(crate) records: Sorted<ClassRecord>,
    pub(crate) keys: Option<Sorted<KeyedIdentity>>,
}

impl ClassTally {
    /// Creates an empty tally of half-moves. If `with_identities` is `true`, the tally also collects the key and the
    /// identity of each position as a pair. An identity is a hash that distinguishes positions with equal keys. The
    /// records and the pairs each have the memory budget `memory`, and are written to temporary files if they exceed
    /// it.
    pub(crate) fn new(memory: &Memory, with_identities: bool) -> ClassTally {
        ClassTally {
            records: Shards::new(memory.clone()),
            keys: with_identities.then(|| Shards::new(memory.clone())),
        }
    }

    /// Adds records of half-moves to the tally. `pairs` contains the key and the identity of each position in
    /// `records`. The pairs are ignored if the tally was created without identities.
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

    /// Finishes counting and returns the sorted records. Uses all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn sort(self) -> Result<ClassCounts> {
        Ok(ClassCounts {
            records: self.records.sort()?,
            keys: self.keys.map(Shards::sort).transpose()?,
        })
    }
}

impl ClassCounts {
    /// Calls `f` with each record of the position that `identity` identifies, in ascending order. An identity is a hash
    /// that distinguishes positions with equal keys.
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
            if record.key() < identity {
                first = middle + 1
            } else {
                end = middle
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

/// The properties of games (speed, rating group and month) by which results are grouped, in addition to the position
/// and the move. By default, results are grouped by none of these properties.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<&'static str>")]
pub struct Grouping {
    /// Whether games of different speeds are counted separately.
    pub speed: bool,
    /// Whether games of different rating groups are counted separately. A game belongs to the group that contains the
    /// mean of its known ratings.
    pub rating: bool,
    /// Whether games of different months are counted separately.
    pub month: bool,
}

/// The error for a string that is not a valid [`Grouping`]. A valid string is `none`, or a list of properties such as
/// `speed,month`.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("use one or more of speed, rating and month, separated by commas, or none")]
pub struct UnknownClass;

impl Grouping {
    /// Returns the properties of games that the conditions in `selection` examine.
    pub(crate) fn examined_by(selection: &Selection) -> Grouping {
        let Selection { since, until, .. } = selection;
        Grouping {
            speed: selection.speed.is_some(),
            rating: selection.rating.is_some(),
            month: since.is_some() || until.is_some() || selection.require_date,
        }
    }

    /// Returns `true` if no property of games is selected, so that results are grouped only by position and move.
    pub fn is_none(self) -> bool {
        self == Grouping::default()
    }

    /// Returns a phrase such as `divided by speed,month`, for error messages that describe a counts directory.
    pub(crate) fn division(self) -> String {
        if self.is_none() {
            "not divided".to_owned()
        } else {
            format!("divided by {self}")
        }
    }

    /// Returns `true` if `self` contains every property in `other`. In this case, results that are grouped by `self`
    /// can be converted to results that are grouped by `other`.
    pub fn includes(self, other: Grouping) -> bool {
        let mine = self.fields();
        other
            .fields()
            .iter()
            .zip(mine)
            .all(|(theirs, mine)| !theirs.1 || mine.1)
    }

    /// Returns a copy of `class` without the properties (speed, rating group, month) that this grouping does not
    /// contain. These properties are 0 in the copy.
    pub(crate) fn project(self, class: CountClass) -> CountClass {
        CountClass {
            speed: if self.speed { class.speed } else { 0 },
            group: if self.rating { class.group } else { 0 },
            month: if self.month { class.month } else { 0 },
            book_only: class.book_only,
        }
    }

    fn fields(self) -> [(&'static str, bool); 3] {
        let Grouping {
            speed,
            rating,
            month,
        } = self;
        [("speed", speed), ("rating", rating), ("month", month)]
    }

    fn names(self) -> Vec<&'static str> {
        let fields = self.fields().into_iter();
        fields
            .filter(|field| field.1)
            .map(|field| field.0)
            .collect()
    }

    fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Grouping, UnknownClass> {
        let mut by = Grouping::default();
        for name in names {
            match name.trim() {
                "speed" => by.speed = true,
                "rating" => by.rating = true,
                "month" => by.month = true,
                _ => return Err(UnknownClass),
            }
        }
        Ok(by)
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            f.pad("none")
        } else {
            f.pad(&self.names().join(","))
        }
    }
}

impl FromStr for Grouping {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Grouping, UnknownClass> {
        match text {
            "none" => Ok(Grouping::default()),
            _ => Grouping::of_names(text.split(',')),
        }
    }
}

impl From<Grouping> for Vec<&'static str> {
    fn from(by: Grouping) -> Vec<&'static str> {
        by.names()
    }
}

impl TryFrom<Vec<String>> for Grouping {
    type Error = UnknownClass;

    fn try_from(names: Vec<String>) -> Result<Grouping, UnknownClass> {
        Grouping::of_names(names.iter().map(String::as_str))
    }
}

/// A position's key and identity, which are two hashes. Books find a position by its key. Different positions can have
/// the same key, but they have different identities.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct KeyedIdentity(u128);

impl KeyedIdentity {
    /// Creates a pair of a position's key and its identity, which are two hashes of the position. `key` must be 0 if no
    /// book can contain the position.
    pub(crate) fn new(key: u64, identity: u64) -> KeyedIdentity {
        KeyedIdentity(u128::from(key) << 64 | u128::from(identity))
    }

    pub(crate) fn key(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(crate) fn identity(self) -> u64 {
        self.0 as u64
    }
}

impl Record for KeyedIdentity {
    type Fold = Dedup<KeyedIdentity>;
    type Bytes = [u8; 16];

    #[inline]
    fn from_bytes(bytes: [u8; 16]) -> KeyedIdentity {
        KeyedIdentity(u128::from_le_bytes(bytes))
    }

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Returns the position key. Its first byte selects the shard (one of the 256 parts of the store) that holds the
    /// pair. Keys are hashes, so they are evenly distributed, except that all positions that a book cannot contain have
    /// the key 0.
    fn rank(self) -> u64 {
        self.key()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::sort::{Memory, SHARDS, Shards};

    fn classes() -> impl Strategy<Value = CountClass> {
        let month = prop_oneof![
            Just(0u32),
            (1..=9999u32, 0..=12u32).prop_map(|(year, month)| year * 100 + month)
        ];
        (0..6u8, 0..RATING_GROUPS, month, any::<bool>()).prop_map(
            |(speed, group, month, book_only)| CountClass {
                speed,
                group,
                month,
                book_only,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            key: u64, mv: u16, black: bool, class in classes(), result in 0..3u8, rating in 0..=4000u16,
        ) {
            let turn = Color::from_white(!black);
            let winner = [None, Some(turn), Some(!turn)][usize::from(result)];
            let record = ClassRecord::new(key, BookMove(mv), turn, class, winner, [rating]);
            prop_assert_eq!((record.key(), record.book_move(), record.turn()), (key, BookMove(mv), turn));
            prop_assert_eq!(record.class(), class);
            prop_assert_eq!(record.stats(), Wdl::of_game(winner, turn));
            let mut means = Means::default();
            means.add([rating]);
            prop_assert_eq!(record.means(), means);
        }

        #[test]
        fn records_are_in_the_order_of_classes(a in classes(), b in classes()) {
            let of = |class| ClassRecord::new(1, BookMove(796), Color::White, class, None, [0]);
            prop_assert_eq!(of(a).cmp(&of(b)), a.cmp(&b));
        }

        #[test]
        fn folded_games_add_up(ratings in proptest::collection::vec(
            prop_oneof![Just(0u16), Just(1), Just(4000), 0..=4000u16], 1..200,
        ), rounds in 1..4usize) {
            let of = |rating: &u16| {
                ClassRecord::new(1, BookMove(796), Color::White, CountClass::default(), Some(Color::White), [*rating])
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
            prop_assert!(records.len() <= ratings.len() / MAX_GAMES_PER_RECORD as usize + 2);
            let (mut stats, mut means) = (Wdl::default(), Means::default());
            for record in records {
                stats += record.stats();
                means += record.means();
            }
            let sum = means.rating();
            prop_assert_eq!(stats, Wdl { wins: ratings.len() as u64, draws: 0, losses: 0 });
            prop_assert_eq!(sum.sum, ratings.iter().map(|rating| u64::from(*rating)).sum::<u64>());
            prop_assert_eq!(sum.games, ratings.iter().filter(|rating| **rating > 0).count() as u64);
        }
    }

    #[test]
    fn classes_are_written_in_one_order() {
        let by: Grouping = "month,speed,month".parse().unwrap();
        assert_eq!(by.to_string(), "speed,month");
        assert_eq!(serde_json::to_string(&by).unwrap(), "[\"speed\",\"month\"]");
        assert_eq!(
            serde_json::from_str::<Grouping>("[\"month\",\"speed\"]").unwrap(),
            by
        );
        assert_eq!("none".parse(), Ok(Grouping::default()));
        for wrong in ["", "elo", "speed,", "none,speed", "speed;month"] {
            assert!(wrong.parse::<Grouping>().is_err(), "{wrong}");
        }
        assert!(
            by.includes(Grouping::default())
                && by.includes(by)
                && !Grouping::default().includes(by)
        );
    }

    #[test]
    fn each_pair_is_kept_once_in_order() {
        for bytes in [0, 1 << 24] {
            let tally = Shards::new(Memory {
                bytes,
                ..Memory::default()
            });
            let pairs: Vec<KeyedIdentity> = (0..60_000u64)
                .map(|i| i * 7 % 29_989)
                .map(|i| KeyedIdentity::new((i % 100) << 57, i))
                .collect();
            tally.append(&pairs).unwrap();
            tally.append(&pairs).unwrap();
            assert_eq!(tally.spilled_bytes() > 0, bytes == 0);
            let keys = tally.sort().unwrap();
            let mut found = Vec::new();
            for shard in 0..SHARDS {
                keys.for_each(shard, |pair| found.push((pair.key(), pair.identity())))
                    .unwrap();
            }
            assert!(found.is_sorted());
            assert_eq!(found.len(), 29_989);
            assert!(
                found
                    .iter()
                    .all(|(key, identity)| *key == (identity % 100) << 57)
            );
        }
    }
}

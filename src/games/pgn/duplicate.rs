//! Decides which games are duplicates of earlier games. The option `make-book --drop-duplicates` and the explorer's
//! filter for duplicates both use this module.
//!
//! Two games *agree* if they meet all of these conditions:
//!
//! - the starting position, all moves up to the end of the game, the result and the rules of the variant are equal;
//! - the names of the players are equal, ignoring case, blanks and periods. All names that match one condition of the
//!   selection, such as `--player`, count as names of one player. An unknown name is equal only to an unknown name. If
//!   both players are unknown, the events must be known and equal, and the years known;
//! - the dates do not contradict each other: 2024.05.?? agrees with 2024.05.06 and with an unknown date. The tag
//!   `EventDate` contains the first day of an event, so it says only in which [year](compared_date) a game was played;
//! - the Lichess ids are equal, or at least one of the games has none.
//!
//! Agreement is not transitive: a game without a date agrees with games of two different days. Therefore, each game is
//! compared with groups of earlier games instead of single games. A group combines the dates and ids of its games: if a
//! game without an id is joined by a game that has one, a game with another id belongs to another group. A game that
//! agrees with a group joins the earliest such group, and is a duplicate. Any other game is the first one of a new
//! group. The result depends only on the order of the games.

use std::hash::Hasher;

use siphasher::{
    sip::SipHasher13,
    sip128::{Hasher128, SipHasher13 as WideHasher},
};

use super::{Date, GameResult, normalized};
use crate::chess::position::Variant;

/// Returns a hash of the name of a player or an event. Two names have the same hash if they differ only in case, blanks
/// and periods, such as `Carlsen,M` and `Carlsen, M.`. The hash of an unknown name (empty or `?`) is 0, and no other
/// name has this hash.
pub(crate) fn name_hash(name: &str) -> u64 {
    let mut name = normalized(name);
    name.retain(|c| c != '.' && !c.is_whitespace());
    match &*name {
        "" | "?" => 0,
        name => SipHasher13::new().hash(name.as_bytes()).max(1),
    }
}

/// Returns the part of `date`, the date of a game, that is compared with the dates of other games. `is_of_event` says
/// whether the date comes from the tag `EventDate`, which contains the first day of an event. The games of an event are
/// played later, but seldom in another year, so only the year of such a date is compared. If the event begins in
/// December, even the year is uncertain, and the result is an unknown date.
fn compared_date(date: Date, is_of_event: bool) -> Date {
    match (is_of_event, date.year(), date.month()) {
        (false, ..) => date,
        (true, _, Some(12)) | (true, None, _) => Date::default(),
        (true, Some(year), _) => Date::new(year, 0, 0),
    }
}

/// The data of a game that decide whether it is a duplicate of another game.
#[derive(Copy, Clone, Debug)]
pub(crate) struct GameIdentity {
    /// The [hashes of the names](name_hash) of White and Black.
    pub players: [u64; 2],
    /// The [hash of the name](name_hash) of the event.
    pub event: u64,
    pub result: GameResult,
    pub variant: Variant,
    pub date: Date,
    /// Whether the date comes from the tag `EventDate`.
    pub has_event_date: bool,
    /// The Lichess id of the game as a number, or 0 if it has none.
    pub site: u64,
    /// A hash of the starting position and of all moves of the game.
    pub moves: u64,
}

/// The keys by which a game is compared with groups of duplicates. Games with equal `common` hashes are then compared
/// by their dates and Lichess ids.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DuplicateKeys {
    /// A hash of the properties that are equal in all games of a group, such as the moves and the players.
    pub common: u128,
    pub facts: DateAndId,
}

/// The date and the Lichess id of a game or of a group of duplicates.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DateAndId {
    /// The year, the month and the day. An unknown part is 0.
    date: [u16; 3],
    /// A hash of the id with [`ID_BITS`] bits, or 0 if there is no id.
    id: u64,
}

/// The number of bits of the hash of a Lichess id. Together with the bits of the date, they make up 64 bits.
const ID_BITS: u32 = 64 - 16 - 4 - 5;

/// The maximum number of groups that a game is compared with. It bounds the time for hostile inputs. If a game agrees
/// with none of this number of groups, it is a duplicate only of games with exactly its date and id.
pub(crate) const MAX_COMPARED_GROUPS: usize = 256;

/// The group of duplicates that a game belongs to. Games with equal moves, players and result may form several groups,
/// which are numbered from 0.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    /// The game is the first one of the group with this number.
    First(usize),
    /// The game joins the group with this number. The date and the id are those of the group with the game.
    Joined(usize, DateAndId),
    /// The game agrees with none of [`MAX_COMPARED_GROUPS`] groups. It is compared only with games that have exactly
    /// its date and id.
    Exact,
}

impl GameIdentity {
    /// Returns the keys for finding the game's duplicates. Returns `None` if the game is never a duplicate, because
    /// both players and the event or the year are unknown.
    pub(crate) fn keys(&self) -> Option<DuplicateKeys> {
        let date = compared_date(self.date, self.has_event_date);
        let is_nameless = self.players == [0; 2];
        if is_nameless && (self.event == 0 || date.year().is_none()) {
            return None;
        }
        let rules = Variant::ALL
            .into_iter()
            .find(|rules| rules.is_played_like(self.variant))
            .unwrap_or(self.variant);
        let mut hasher = WideHasher::new();
        for player in self.players {
            hasher.write_u64(player);
        }
        hasher.write_u64(if is_nameless { self.event } else { 0 });
        hasher.write_u64(self.moves);
        hasher.write(&[self.result as u8, rules as u8]);
        let year = date.year().unwrap_or(0);
        let month = date.month().unwrap_or(0);
        let day = date.day().unwrap_or(0);
        let id = match self.site {
            0 => 0,
            site => (SipHasher13::new().hash(&site.to_le_bytes()) >> (64 - ID_BITS)).max(1),
        };
        Some(DuplicateKeys {
            common: hasher.finish128().as_u128(),
            facts: DateAndId {
                date: [year, month.into(), day.into()],
                id,
            },
        })
    }
}

impl DuplicateKeys {
    /// Returns a hash that identifies one group: it combines the `common` hash with the number of the group.
    pub(crate) fn group_key(self, number: usize) -> u64 {
        self.key_of(number as u64)
    }

    /// Returns a hash of the `common` hash for games that belong to no numbered group ([`Group::Exact`]). It differs
    /// from the [keys](DuplicateKeys::group_key) of all groups.
    pub(crate) fn exact_key(self) -> u64 {
        self.key_of(u64::MAX)
    }

    fn key_of(self, number: u64) -> u64 {
        let mut hasher = SipHasher13::new();
        hasher.write(&self.common.to_le_bytes());
        hasher.write_u64(number);
        hasher.finish()
    }
}

impl DateAndId {
    /// Finds the group that a game with this date and id belongs to. Calls `group` with 0, 1, 2 and so on, to get the
    /// date and the id of each group whose games have the same moves, players and other common properties. `group`
    /// returns `None` if there is no further group.
    ///
    /// # Errors
    ///
    /// Returns the first error of `group`.
    pub(crate) fn find_group<E>(
        self,
        mut group: impl FnMut(usize) -> Result<Option<DateAndId>, E>,
    ) -> Result<Group, E> {
        for number in 0..MAX_COMPARED_GROUPS {
            match group(number)? {
                None => return Ok(Group::First(number)),
                Some(facts) if facts.agrees(self) => {
                    return Ok(Group::Joined(number, facts.joined(self)));
                }
                Some(_) => {}
            }
        }
        Ok(Group::Exact)
    }

    pub(crate) fn agrees(self, other: DateAndId) -> bool {
        let mut parts = self.date.into_iter().zip(other.date);
        parts.all(|(ours, theirs)| ours == 0 || theirs == 0 || ours == theirs)
            && (self.id == 0 || other.id == 0 || self.id == other.id)
    }

    /// Combines `self` and `other`, which must agree: takes each part of the date and the id from the one in which it
    /// is known.
    fn joined(self, other: DateAndId) -> DateAndId {
        DateAndId {
            date: std::array::from_fn(|part| self.date[part].max(other.date[part])),
            id: self.id.max(other.id),
        }
    }

    /// Returns the number of known parts of the date and the id. It grows when a group is joined by a game with more
    /// known parts.
    fn known(self) -> usize {
        let parts = self.date.into_iter().filter(|part| *part > 0);
        parts.count() + usize::from(self.id > 0)
    }

    pub(crate) fn to_bits(self) -> u64 {
        let [year, month, day] = self.date.map(u64::from);
        ((year << 4 | month) << 5 | day) << ID_BITS | self.id
    }

    /// Returns the current date and id of a group. `states` contains all dates and ids that the group has had, [as
    /// integers](DateAndId::to_bits) and in any order. Returns `None` if `states` is empty.
    pub(crate) fn current(states: impl IntoIterator<Item = u64>) -> Option<DateAndId> {
        let states = states.into_iter().map(|bits| {
            let date = bits >> ID_BITS;
            DateAndId {
                date: [
                    (date >> 9) as u16,
                    (date >> 5 & 15) as u16,
                    (date & 31) as u16,
                ],
                id: bits & ((1 << ID_BITS) - 1),
            }
        });
        states.max_by_key(|state| state.known())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn identity(players: [&str; 2], date: Date, site: u64) -> GameIdentity {
        GameIdentity {
            players: players.map(name_hash),
            event: 0,
            result: GameResult::Draw,
            variant: Variant::Standard,
            date,
            has_event_date: false,
            site,
            moves: 7,
        }
    }

    /// Returns the number of the group of each game, computed by comparing each game with the groups of all earlier
    /// games.
    fn groups(games: &[GameIdentity]) -> Vec<usize> {
        let mut groups: Vec<(u128, Vec<(usize, DateAndId)>)> = Vec::new();
        let mut count = 0;
        let number_of = |game: &GameIdentity| {
            let new = |count: &mut usize| {
                *count += 1;
                *count - 1
            };
            let Some(keys) = game.keys() else {
                return new(&mut count);
            };
            let at = groups.iter().position(|group| group.0 == keys.common);
            let at = at.unwrap_or_else(|| {
                groups.push((keys.common, Vec::new()));
                groups.len() - 1
            });
            let group = |number: usize| {
                let group = groups[at].1.get(number).map(|(_, facts)| *facts);
                Ok::<_, Infallible>(group)
            };
            match keys.facts.find_group(group).unwrap() {
                Group::First(number) => {
                    assert_eq!(number, groups[at].1.len());
                    groups[at].1.push((new(&mut count), keys.facts));
                    count - 1
                }
                Group::Joined(number, facts) => {
                    groups[at].1[number].1 = facts;
                    groups[at].1[number].0
                }
                Group::Exact => panic!("there are few groups"),
            }
        };
        games.iter().map(number_of).collect()
    }

    fn agree(first: GameIdentity, second: GameIdentity) -> bool {
        groups(&[first, second]) == [0, 0]
    }

    #[test]
    fn a_group_takes_the_id_and_the_date_of_its_games() {
        let game = |day: u8, site| {
            let date = Date::new(if day > 0 { 2024 } else { 0 }, 5, day);
            identity(["A", "B"], date, site)
        };
        for (games, expected) in [
            (&[game(6, 0), game(6, 1), game(6, 2)][..], &[0, 0, 1][..]),
            (
                &[game(6, 1), game(6, 0), game(6, 2), game(6, 0)],
                &[0, 0, 1, 0],
            ),
            (&[game(6, 1), game(6, 2), game(6, 0)], &[0, 1, 0]),
            (
                &[game(0, 0), game(6, 0), game(7, 0), game(0, 0)],
                &[0, 0, 1, 0],
            ),
            (
                &[game(0, 1), game(6, 0), game(7, 0), game(6, 2)],
                &[0, 0, 1, 2],
            ),
            (
                &[game(6, 0), game(0, 1), game(0, 2), game(0, 1)],
                &[0, 0, 1, 0],
            ),
        ] {
            assert_eq!(groups(games), expected, "{games:?}");
        }
    }

    #[test]
    fn each_known_part_of_a_date_is_compared() {
        let dated = |year, month, day| identity(["A", "B"], Date::new(year, month, day), 0);
        for (first, second, expected) in [
            (dated(2024, 0, 6), dated(2024, 6, 1), false),
            (dated(2024, 0, 6), dated(2024, 6, 6), true),
            (dated(0, 5, 0), dated(2024, 6, 0), false),
        ] {
            assert_eq!(agree(first, second), expected, "{first:?} {second:?}");
        }
    }

    #[test]
    fn the_date_of_an_event_is_a_year() {
        let dated = |year, month, day| identity(["A", "B"], Date::new(year, month, day), 0);
        let of_event = |year, month, day| GameIdentity {
            has_event_date: true,
            ..dated(year, month, day)
        };
        for (first, second, expected) in [
            (of_event(2024, 5, 1), dated(2024, 5, 6), true),
            (of_event(2024, 5, 1), dated(2023, 5, 6), false),
            (of_event(2023, 5, 1), of_event(2024, 5, 1), false),
            (of_event(2023, 12, 28), dated(2024, 1, 3), true),
            (of_event(2024, 5, 1), dated(0, 0, 0), true),
        ] {
            assert_eq!(agree(first, second), expected, "{first:?} {second:?}");
            assert_eq!(agree(second, first), expected, "{second:?} {first:?}");
        }
    }

    proptest! {
        #[test]
        fn states_of_a_group_are_stored_in_64_bits(
            games in proptest::collection::vec(((0..3u16, 0..13u8, 0..32u8), 0..3u64), 1..6),
        ) {
            let facts = games.into_iter().map(|((year, month, day), site)| {
                let date = Date::new(if year > 0 { u16::MAX - 2 + year } else { 0 }, month, day);
                identity(["A", "B"], date, site).keys().unwrap().facts
            });
            let mut state: Option<DateAndId> = None;
            let mut stored = Vec::new();
            for facts in facts {
                let joined = match state {
                    None => facts,
                    Some(state) if state.agrees(facts) => state.joined(facts),
                    Some(_) => continue,
                };
                prop_assert!(joined.agrees(facts));
                state = Some(joined);
                stored.insert(0, joined.to_bits());
            }
            prop_assert_eq!(DateAndId::current(stored), state);
        }

        #[test]
        fn games_agree_unless_dates_or_ids_contradict(
            dates: [(u16, u8, u8); 2],
            sites in [0..3u64, 0..3u64],
        ) {
            let date = |(year, month, day): (u16, u8, u8)| Date::new(year % 3, month % 3, day % 3);
            let [a, b] = dates.map(date);
            let parts = |date: Date| {
                [date.year().map(u32::from), date.month().map(u32::from), date.day().map(u32::from)]
            };
            let dates_agree = parts(a).into_iter().zip(parts(b)).all(|(a, b)| a.is_none() || b.is_none() || a == b);
            let sites_agree = sites.contains(&0) || sites[0] == sites[1];
            let [first, second] = [(a, sites[0]), (b, sites[1])].map(|(date, site)| identity(["A", "B"], date, site));
            prop_assert_eq!(agree(first, second), dates_agree && sites_agree);
        }
    }

    #[test]
    fn spellings_of_a_name_are_equal() {
        for (a, b, is_same) in [
            ("Carlsen, Magnus", "Carlsen,Magnus", true),
            ("Carlsen, M", "CARLSEN,M.", true),
            ("Capablanca, J. R.", "Capablanca,J.R.", true),
            ("M\u{fc}ller, H", "Mu\u{308}ller,  H", true),
            ("Carlsen, Magnus", "Carlsen, Maria", false),
            ("Tal", "?", false),
            ("", "?", true),
        ] {
            assert_eq!(name_hash(a) == name_hash(b), is_same, "{a} {b}");
        }
    }

    #[test]
    fn nameless_games_need_an_event_and_a_year() {
        let day = Date::new(1960, 3, 15);
        let nameless = |event: &str, date| GameIdentity {
            event: name_hash(event),
            ..identity(["?", ""], date, 0)
        };
        let moscow = nameless("Moscow", day);
        assert!(agree(moscow, nameless(" moscow", Date::new(1960, 3, 0))));
        assert!(!agree(moscow, nameless("Riga", day)));
        for unknown in [nameless("Moscow", Date::default()), nameless("?", day)] {
            assert!(unknown.keys().is_none());
        }
        let tal = identity(["Tal", "?"], Date::default(), 0);
        assert!(agree(tal, identity(["TAL", ""], day, 0)));
        assert!(!agree(tal, identity(["?", "Tal"], day, 0)));
    }

    #[test]
    fn results_moves_and_rules_are_compared() {
        let game = identity(["A", "B"], Date::default(), 0);
        let lost = GameIdentity {
            result: GameResult::BlackWins,
            ..game
        };
        let other = GameIdentity { moves: 8, ..game };
        let atomic = GameIdentity {
            variant: Variant::Atomic,
            ..game
        };
        let chess960 = GameIdentity {
            variant: Variant::Chess960,
            ..game
        };
        for different in [lost, other, atomic, chess960] {
            assert!(!agree(game, different), "{different:?}");
        }
        assert!(agree(game, game));
    }
}

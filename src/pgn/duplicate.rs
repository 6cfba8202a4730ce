//! The rule by which a game is a duplicate of an earlier one. `make-book --drop-duplicates` and the explorer's filter
//! of duplicates both apply it.
//!
//! Two games *agree* if all of these are equal or compatible:
//!
//! - the starting position, all moves up to the end of the game, the result and the rules of the variant are equal;
//! - the names of the players are spelled alike: case, blanks and periods are ignored. An unknown name is equal only to
//!   an unknown name. If both players are unknown, the events must be known and equal, and the years known;
//! - the dates do not contradict each other: 2024.05.?? agrees with 2024.05.06 and with an unknown date. A game that
//!   states only the first day of its event has an unknown date;
//! - the Lichess ids are equal, or a game has none.
//!
//! Agreement is not transitive: a game without a date agrees with games of two different days. Games are therefore
//! compared in their order. A game is a duplicate if it agrees with an earlier game that is not a duplicate itself, and
//! belongs to the group of the earliest such game. The result depends only on the order of the games.
//!
//! [`DuplicateKeys`] expresses agreement as equality of hashes, so that a set of hashes suffices for any number of games.

use std::hash::Hasher;

use siphasher::{
    sip::SipHasher13,
    sip128::{Hasher128, SipHasher13 as WideHasher},
};

use super::{Date, GameResult, normalized};
use crate::position::Variant;

/// Returns a hash of the name of a player or an event. The hashes of two spellings of a name are equal if they differ
/// only in case, blanks and periods, such as `Carlsen,M` and `Carlsen, M.`. The hash of an unknown name (empty or `?`)
/// is 0, and no other name has this hash.
pub(crate) fn name_hash(name: &str) -> u64 {
    let mut name = normalized(name);
    name.retain(|c| c != '.' && !c.is_whitespace());
    match &*name {
        "" | "?" => 0,
        name => SipHasher13::new().hash(name.as_bytes()).max(1),
    }
}

/// The facts by which games are compared.
#[derive(Copy, Clone, Debug)]
pub(crate) struct GameIdentity {
    /// The [hashes of the names](name_hash) of White and Black.
    pub players: [u64; 2],
    /// The [hash of the name](name_hash) of the event.
    pub event: u64,
    pub result: GameResult,
    pub variant: Variant,
    /// The day of the game, or an unknown date if only the first day of the event is known.
    pub date: Date,
    /// The number of the game's id at Lichess, or 0.
    pub site: u64,
    /// A hash of the starting position and of all moves of the game.
    pub moves: u64,
}

/// The keys by which a game is compared with other games. The games with equal `common` facts are compared by their
/// dates and Lichess ids.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DuplicateKeys {
    /// A hash of the facts that are equal in all games of a group.
    pub common: u128,
    /// The known parts of the date: the year, the month and the day. A part after an unknown one is 0.
    date: [u16; 3],
    site: u64,
}

/// The kind of the date in a key: the whole known date of a game, or the beginning of a longer date.
#[derive(Copy, Clone)]
enum DatePart {
    Whole,
    Beginning,
}

/// The values that stand for the id of a game in its keys. The id with the number n has the value n + 1.
const NO_SITE: u64 = 0;
const ANY_SITE: u64 = 1;

impl GameIdentity {
    /// Returns the keys of the game, or `None` if the game is never a duplicate, because both players and the event or
    /// the year are unknown.
    pub(crate) fn keys(&self) -> Option<DuplicateKeys> {
        let is_nameless = self.players == [0; 2];
        if is_nameless && (self.event == 0 || self.date.year().is_none()) {
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
        let year = self.date.year().unwrap_or(0);
        let month = self.date.month().filter(|_| year > 0).unwrap_or(0);
        let day = self.date.day().filter(|_| month > 0).unwrap_or(0);
        Some(DuplicateKeys {
            common: hasher.finish128().as_u128(),
            date: [year, month.into(), day.into()],
            site: self.site,
        })
    }
}

impl DuplicateKeys {
    /// Returns the keys that the game adds to the set of known keys if it is not a duplicate.
    pub(crate) fn of_first(self) -> impl Iterator<Item = u128> {
        let sites = match self.site {
            0 => [Some(NO_SITE), None],
            site => [Some(site + 1), Some(ANY_SITE)],
        };
        sites.into_iter().flatten().flat_map(move |site| {
            (0..=self.known_parts()).map(move |parts| {
                let part = match parts == self.known_parts() {
                    true => DatePart::Whole,
                    false => DatePart::Beginning,
                };
                self.key(parts, part, site)
            })
        })
    }

    /// Returns the keys by which the game finds earlier games. The game is a duplicate if an earlier game that is not a
    /// duplicate has [added](DuplicateKeys::of_first) one of them.
    pub(crate) fn of_duplicate(self) -> impl Iterator<Item = u128> {
        let sites = match self.site {
            0 => [NO_SITE, ANY_SITE],
            site => [site + 1, NO_SITE],
        };
        sites.into_iter().flat_map(move |site| {
            let last = self.known_parts();
            let wholes = (0..=last).map(move |parts| self.key(parts, DatePart::Whole, site));
            wholes.chain([self.key(last, DatePart::Beginning, site)])
        })
    }

    /// Returns `true` if the game is a duplicate of an earlier one. `is_known` looks up a key among the
    /// [keys](DuplicateKeys::of_first) and the `common` hashes of the earlier games that are not duplicates. Most games
    /// have a new `common` hash, so one look-up suffices for them.
    ///
    /// # Errors
    ///
    /// Returns the first error of `is_known`.
    pub(crate) fn is_duplicate<E>(
        self,
        mut is_known: impl FnMut(u128) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if !is_known(self.common)? {
            return Ok(false);
        }
        for key in self.of_duplicate() {
            if is_known(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of known parts of the date.
    fn known_parts(self) -> usize {
        self.date.into_iter().take_while(|part| *part > 0).count()
    }

    /// Returns a key of the first `parts` parts of the date.
    fn key(self, parts: usize, part: DatePart, site: u64) -> u128 {
        let mut hasher = WideHasher::new();
        hasher.write(&self.common.to_le_bytes());
        for number in &self.date[..parts] {
            hasher.write_u16(*number);
        }
        hasher.write(&[part as u8]);
        hasher.write_u64(site);
        hasher.finish128().as_u128()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, convert::Infallible};

    use proptest::prelude::*;

    use super::*;

    fn identity(players: [&str; 2], date: Date, site: u64) -> GameIdentity {
        GameIdentity {
            players: players.map(name_hash),
            event: 0,
            result: GameResult::Draw,
            variant: Variant::Standard,
            date,
            site,
            moves: 7,
        }
    }

    fn agree(first: GameIdentity, second: GameIdentity) -> bool {
        let known: HashSet<u128> = first
            .keys()
            .into_iter()
            .flat_map(|keys| keys.of_first().chain([keys.common]))
            .collect();
        let is_known = |key| Ok::<_, Infallible>(known.contains(&key));
        second
            .keys()
            .is_some_and(|keys| keys.is_duplicate(is_known).unwrap())
    }

    #[test]
    fn one_look_up_finds_that_the_moves_are_new() {
        let keys = identity(["A", "B"], Date::new(2024, 5, 6), 7).keys();
        let mut asked = 0;
        let is_known = |_| {
            asked += 1;
            Ok::<_, Infallible>(false)
        };
        assert!(!keys.unwrap().is_duplicate(is_known).unwrap());
        assert_eq!(asked, 1);
    }

    proptest! {
        #[test]
        fn keys_express_agreement(
            dates: [(u16, u8, u8); 2],
            sites in [0..3u64, 0..3u64],
        ) {
            let date = |(year, month, day): (u16, u8, u8)| Date::new(year % 3, month % 3, day % 3);
            let [a, b] = dates.map(date);
            let known = |date: Date| {
                let parts = [date.year().map(u32::from), date.month().map(u32::from), date.day().map(u32::from)];
                parts.into_iter().map_while(|part| part).collect::<Vec<u32>>()
            };
            let dates_agree = known(a).iter().zip(known(b)).all(|(a, b)| *a == b);
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

//! What a list of the explorer is about, as 64 bits.

use shakmaty::Color;

use super::SiteId;
use crate::position::Variant;

/// What a list of games is about. Those of positions are the [identities](crate::position::Keyed::identity) of the
/// positions; the others are hashes, spread over all bits so that they meet none of them in practice.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Subject(pub u64);

/// What is added to the hash of what is not a position.
const PLAYER: [u64; 2] = [0x5851_f42d_4c95_7f2d, 0x1405_7b7e_f767_814f];
const NAME: u64 = 0x2545_f491_4f6c_dd1d;
const SITE_ID: u64 = 0xd6e8_feb8_6659_fd93;

impl Subject {
    /// A position of a variant, by its identity. Not all variants have a number in the Polyglot format that would
    /// tell their identities apart.
    #[inline]
    pub fn position(variant: Variant, identity: u64) -> Subject {
        let number = match variant {
            Variant::Standard => return Subject(identity),
            Variant::Chess960 => 1,
            Variant::Crazyhouse => 2,
            // The same game as far as moves go.
            Variant::Suicide | Variant::Giveaway => 3,
            Variant::Atomic => 4,
            Variant::ThreeCheck => 5,
            Variant::Horde => 6,
            Variant::KingOfTheHill => 7,
            Variant::RacingKings => 8,
        };
        Subject(identity ^ mixed(number))
    }

    /// The games of a player with a colour, by the player's name as it is [compared](crate::pgn::NameMatch).
    pub fn player(folded: &str, color: Color) -> Subject {
        Subject(mixed(
            hash(folded.as_bytes()).wrapping_add(PLAYER[color as usize]),
        ))
    }

    /// The numbers of the names that compare the same.
    pub fn name(folded: &str) -> Subject {
        Subject(mixed(hash(folded.as_bytes()).wrapping_add(NAME)))
    }

    /// The games with an id at Lichess.
    pub fn site_id(id: SiteId) -> Subject {
        Subject(mixed(id.number().wrapping_add(SITE_ID)))
    }
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The last step of the generator SplitMix64, which spreads a number over all bits and loses none.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_and_kinds_are_told_apart() {
        let mut all: Vec<Subject> = Variant::ALL
            .iter()
            .map(|variant| Subject::position(*variant, 4711))
            .collect();
        assert_eq!(all[3], all[4]);
        all.remove(3);
        all.extend(Color::ALL.map(|color| Subject::player("tal, mikhail", color)));
        all.push(Subject::name("tal, mikhail"));
        all.push(Subject::site_id(SiteId::parse("abcdefgh").unwrap()));
        for (i, subject) in all.iter().enumerate() {
            assert!(!all[..i].contains(subject));
        }
    }
}

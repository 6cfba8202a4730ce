//! What a list of the explorer is about, as 64 bits.

use shakmaty::Color;
use siphasher::sip::SipHasher24;

use super::SiteId;
use crate::position::Variant;

/// What a list of games is about. Those of positions are the [identities](crate::position::Keyed::identity) of the
/// positions. The others are one-way hashes, each kind with its own key: a name that meets a given
/// position is found only by trying some 2^64 of them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Subject(pub u64);

/// The kind of what is hashed, as a half of the key.
#[derive(Copy, Clone)]
enum SubjectKind {
    White = 1,
    Black = 2,
    Name = 3,
    SiteId = 4,
}

/// The other half: "polybook".
const KEY: u64 = u64::from_be_bytes(*b"polybook");

impl Subject {
    /// A position of a variant, by its identity. In the Polyglot format not all variants have a number that would
    /// keep their identities apart.
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

    /// The games of a player with a color, by the player's name as it is [compared](crate::pgn::NameMatch).
    pub fn player(folded: &str, color: Color) -> Subject {
        let kind = color.fold_wb(SubjectKind::White, SubjectKind::Black);
        Subject::hashed(kind, folded.as_bytes())
    }

    /// The numbers of the names that compare the same.
    pub fn name(folded: &str) -> Subject {
        Subject::hashed(SubjectKind::Name, folded.as_bytes())
    }

    /// The games with an id at Lichess.
    pub fn site_id(id: SiteId) -> Subject {
        Subject::hashed(SubjectKind::SiteId, &id.number().to_le_bytes())
    }

    fn hashed(kind: SubjectKind, bytes: &[u8]) -> Subject {
        Subject(SipHasher24::new_with_keys(KEY, kind as u64).hash(bytes))
    }
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

    #[test]
    fn names_are_hashed_with_siphash() {
        // As the reference implementation of SipHash-2-4 has them.
        let name = "tal, mikhail";
        assert_eq!(
            Subject::player(name, Color::White),
            Subject(0xdbab_543c_e669_9258)
        );
        assert_eq!(
            Subject::player(name, Color::Black),
            Subject(0xf2bd_9ee7_3a34_4944)
        );
        assert_eq!(Subject::name(name), Subject(0xa9ac_843b_e848_b864));
    }
}

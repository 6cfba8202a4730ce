//! The supported variants of chess, with their names and rules.

use std::{fmt, path::Path, str::FromStr};

use shakmaty::{
    CastlingMode, EnPassantMode, Position,
    variant::{Variant as Game, VariantPosition},
};
use thiserror::Error;

use crate::error;

/// A variant of chess.
///
/// ```
/// use polybook::position::Variant;
/// assert_eq!("Fischer Random".parse(), Ok(Variant::Chess960));
/// assert_eq!(Variant::Chess960.name(), "fischerandom");
/// assert_eq!(Variant::Crazyhouse.number(), Some(6));
/// assert_eq!(Variant::Horde.number(), None);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Variant {
    /// Chess by the usual rules. Games may start from any position.
    #[default]
    Standard,
    /// Chess from one of 960 starting positions. Kings and rooks may castle from other squares than the usual ones.
    Chess960,
    /// Captured pieces change sides. Instead of moving, a player can drop such a piece on an empty square.
    Crazyhouse,
    /// The side that loses all its pieces wins. The legal moves are the same as in [`Giveaway`](Variant::Giveaway).
    Suicide,
    /// Suicide chess with a different rule for stalemate, also called antichess.
    Giveaway,
    /// A capture also removes the capturing piece, and all pieces on adjacent squares except pawns.
    Atomic,
    /// The first side to give three checks wins.
    ThreeCheck,
    /// White has 36 pawns and no king.
    Horde,
    /// The first side to move its king to one of the four central squares wins.
    KingOfTheHill,
    /// The first side to move its king to the eighth rank wins.
    RacingKings,
}

/// The error for a string that is not the name of a supported variant.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "this variant is unknown: use standard, fischerandom, crazyhouse, suicide, giveaway, atomic, 3check, horde, \
     kingofthehill or racingkings"
)]
pub struct UnknownVariant;

impl Variant {
    /// All supported variants, starting with standard chess.
    pub const ALL: [Variant; 10] = [
        Variant::Standard,
        Variant::Chess960,
        Variant::Crazyhouse,
        Variant::Suicide,
        Variant::Giveaway,
        Variant::Atomic,
        Variant::ThreeCheck,
        Variant::Horde,
        Variant::KingOfTheHill,
        Variant::RacingKings,
    ];

    /// Returns the name of the variant in the Chess Engine Communication Protocol, as headers of Polyglot books contain
    /// it. The protocol has no names for horde, king of the hill and racing kings; for these, returns their usual
    /// names.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Standard => "normal",
            Variant::Chess960 => "fischerandom",
            Variant::Crazyhouse => "crazyhouse",
            Variant::Suicide => "suicide",
            Variant::Giveaway => "giveaway",
            Variant::Atomic => "atomic",
            Variant::ThreeCheck => "3check",
            Variant::Horde => "horde",
            Variant::KingOfTheHill => "kingofthehill",
            Variant::RacingKings => "racingkings",
        }
    }

    /// Checks that a file can contain positions of this variant. Positions of different variants can have the same key,
    /// so a look-up in a file of another variant could return wrong moves. `own` contains the names of variants that
    /// the file states, if any.
    ///
    /// # Errors
    ///
    /// Returns an error about the file `path` if `own` contains names of variants, but neither the name of this variant
    /// nor that of a variant with the same legal moves.
    pub fn check_file(self, path: &Path, own: &[String]) -> error::Result<()> {
        let known: Vec<Variant> = own.iter().filter_map(|name| name.parse().ok()).collect();
        if known.is_empty() || known.iter().any(|own| own.is_played_like(self)) {
            return Ok(());
        }
        let problem = error::Diagnosis::new(format!(
            "this file is for the variant {}, not for {}",
            own.join(", "),
            self.name()
        ))
        .advise(error::Advice::option(
            "give {} with a variant of the file",
            "variant",
        ));
        Err(error::Error::file(path, problem))
    }

    /// Returns the number that the Polyglot format assigns to the variant, and which is XORed into the keys of its
    /// positions. Returns `None` if the format assigns no number to the variant.
    pub fn number(self) -> Option<u64> {
        match self.game() {
            Game::Chess => Some(0),
            Game::Crazyhouse => Some(6),
            Game::Antichess => Some(8),
            Game::Atomic => Some(12),
            Game::ThreeCheck => Some(13),
            Game::Horde | Game::KingOfTheHill | Game::RacingKings => None,
        }
    }

    /// Parses the value of a `Variant` tag in PGN. `None`, an empty value, `?` and `-` mean standard chess.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownVariant`] if the value is not the name of a supported variant.
    ///
    /// ```
    /// use polybook::position::Variant;
    /// assert_eq!(Variant::from_tag(None), Ok(Variant::Standard));
    /// assert_eq!(Variant::from_tag(Some(b"Three-check")), Ok(Variant::ThreeCheck));
    /// assert!(Variant::from_tag(Some(b"Xiangqi")).is_err());
    /// ```
    pub fn from_tag(tag: Option<&[u8]>) -> Result<Variant, UnknownVariant> {
        match tag {
            // Most games have no tag, so no names need to be compared.
            None => Ok(Variant::Standard),
            Some(name) => String::from_utf8_lossy(name).parse(),
        }
    }

    /// Returns `true` if this variant and `other` have the same legal moves, so that games of one variant can serve as
    /// games of the other. This is the case for equal variants, and for suicide and giveaway chess.
    pub fn is_played_like(self, other: Variant) -> bool {
        self == other || (self.game() == other.game() && self.game() == Game::Antichess)
    }

    /// Returns the value for this variant in the crate `shakmaty`.
    pub(super) fn game(self) -> Game {
        match self {
            Variant::Standard | Variant::Chess960 => Game::Chess,
            Variant::Crazyhouse => Game::Crazyhouse,
            Variant::Suicide | Variant::Giveaway => Game::Antichess,
            Variant::Atomic => Game::Atomic,
            Variant::ThreeCheck => Game::ThreeCheck,
            Variant::Horde => Game::Horde,
            Variant::KingOfTheHill => Game::KingOfTheHill,
            Variant::RacingKings => Game::RacingKings,
        }
    }

    /// Returns the starting position of games without a `FEN` tag. For Chess960, this is the starting position of
    /// standard chess.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the usual start is one of the 960"
    )]
    pub fn start(self) -> VariantPosition {
        let start = VariantPosition::new(self.game());
        match self {
            // The castling mode determines how castling is written.
            Variant::Chess960 => {
                let setup = start.to_setup(EnPassantMode::Always);
                let start = VariantPosition::from_setup(Game::Chess, setup, CastlingMode::Chess960);
                start.expect("the usual position is one of the 960")
            }
            _ => start,
        }
    }
}

/// The variant of the games to read: either the same variant for all games, or the variant that each game names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum VariantChoice {
    /// All games must belong to this variant. Games of other variants are skipped.
    Only(Variant),
    /// Each game belongs to the variant that its `Variant` tag names.
    Auto,
}

impl VariantChoice {
    /// The name of the choice [`Auto`](VariantChoice::Auto) on the command line and in the metadata of an index.
    pub const AUTO: &str = "auto";

    /// Returns the variant to which all games belong, or `None` for [`Auto`](VariantChoice::Auto).
    pub fn only(self) -> Option<Variant> {
        match self {
            VariantChoice::Only(variant) => Some(variant),
            VariantChoice::Auto => None,
        }
    }

    /// Returns `true` if the choice is standard chess for all games.
    pub fn is_standard(self) -> bool {
        self == VariantChoice::default()
    }
}

/// Returns the choice that all games belong to standard chess.
impl Default for VariantChoice {
    fn default() -> VariantChoice {
        VariantChoice::Only(Variant::Standard)
    }
}

impl From<Variant> for VariantChoice {
    fn from(variant: Variant) -> VariantChoice {
        VariantChoice::Only(variant)
    }
}

/// Writes the name of the variant, or `auto`.
impl fmt::Display for VariantChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariantChoice::Only(variant) => variant.fmt(f),
            VariantChoice::Auto => f.pad(VariantChoice::AUTO),
        }
    }
}

/// Parses the name of a variant, or `auto`.
impl FromStr for VariantChoice {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<VariantChoice, UnknownVariant> {
        match text {
            VariantChoice::AUTO => Ok(VariantChoice::Auto),
            name => name.parse().map(VariantChoice::Only),
        }
    }
}

/// Serializes the [name](Variant::name) of the variant.
impl serde::Serialize for Variant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Variant {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Variant".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": Variant::ALL.map(Variant::name)})
    }
}

/// Writes the [name](Variant::name) of the variant.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the [name](Variant::name) of a variant, or another name that PGN files use for it. Case, spaces and hyphens
/// are ignored.
impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Variant, UnknownVariant> {
        let name: String = text
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        Ok(match &*name {
            "standard" | "normal" | "chess" | "fromposition" | "regular" | "classical" => {
                Variant::Standard
            }
            // An empty text, `?` or `-`. A longer text without letters and digits is not a name.
            "" if text.trim().len() <= 1 => Variant::Standard,
            "fischerandom" | "fischerrandom" | "fischerandomchess" | "fischerrandomchess"
            | "chess960" | "960" | "frc" | "freestyle" | "freestylechess" | "wildfr" | "wild22" => {
                Variant::Chess960
            }
            "crazyhouse" | "wild23" => Variant::Crazyhouse,
            "suicide" | "suicidechess" => Variant::Suicide,
            "giveaway" | "giveawaychess" | "antichess" | "wild26" => Variant::Giveaway,
            "atomic" | "atomicchess" | "wild27" => Variant::Atomic,
            "3check" | "3checks" | "threecheck" | "wild25" => Variant::ThreeCheck,
            "horde" => Variant::Horde,
            "kingofthehill" | "koth" => Variant::KingOfTheHill,
            "racingkings" | "racingchess" => Variant::RacingKings,
            _ => return Err(UnknownVariant),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_and_sites() {
        for (name, variant) in [
            ("", Variant::Standard),
            ("?", Variant::Standard),
            ("From Position", Variant::Standard),
            ("Chess 960", Variant::Chess960),
            ("Chess960", Variant::Chess960),
            ("Fischerandom", Variant::Chess960),
            ("wild/fr", Variant::Chess960),
            ("King of the Hill", Variant::KingOfTheHill),
            ("Three-check", Variant::ThreeCheck),
            ("Antichess", Variant::Giveaway),
            ("Racing Kings", Variant::RacingKings),
        ] {
            assert_eq!(name.parse(), Ok(variant), "{name}");
        }
        for name in ["Xiangqi", "losers", "???", "国际象棋", "-1"] {
            assert!(name.parse::<Variant>().is_err(), "{name}");
        }
        for variant in Variant::ALL {
            assert_eq!(variant.name().parse(), Ok(variant));
        }
    }

    #[test]
    fn suicide_and_giveaway_are_played_alike_and_no_others() {
        for a in Variant::ALL {
            for b in Variant::ALL {
                let alike = [a, b].iter().all(|v| v.number() == Some(8));
                assert_eq!(a.is_played_like(b), a == b || alike, "{a} {b}");
            }
        }
    }
}

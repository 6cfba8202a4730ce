//! The variants of chess, their names, and how their positions are read.

use std::{fmt, str::FromStr};

use shakmaty::{
    CastlingMode, Color, EnPassantMode, File, Position, PositionError, PositionErrorKinds, Setup,
    fen::Fen,
    variant::{Variant as Game, VariantPosition},
};
use thiserror::Error;

use super::line::{LineError, play_line};

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
    /// Chess by the usual rules, from the usual position or another.
    #[default]
    Standard,
    /// Chess from one of 960 positions, with castling from any squares of king and rook.
    Chess960,
    /// Captured pieces change sides and may be dropped.
    Crazyhouse,
    /// The side that has lost all pieces wins. The legal moves are those of [`Giveaway`](Variant::Giveaway).
    Suicide,
    /// Suicide chess with another rule for stalemate. It is also called antichess.
    Giveaway,
    /// A capture also removes the capturing piece and the pieces around its square, except pawns.
    Atomic,
    /// The side that gives the third check wins.
    ThreeCheck,
    /// White has 36 pawns and no king.
    Horde,
    /// The side whose king reaches the centre wins.
    KingOfTheHill,
    /// The side whose king reaches the eighth rank first wins.
    RacingKings,
}

/// The error for a name that is not the name of a supported variant.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "unknown variant: write standard, fischerandom, crazyhouse, suicide, giveaway, atomic, 3check, horde, kingofthehill or racingkings"
)]
pub struct UnknownVariant;

impl Variant {
    /// All supported variants, with standard chess first.
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

    /// Returns the name of the variant in the Chess Engine Communication Protocol, which headers of books use as well.
    /// Horde, king of the hill and racing kings, which are not part of the protocol, have their usual names.
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

    /// Returns the number that the Polyglot book format XORs into the keys of the variant, or `None` if the format
    /// assigns no number to the variant.
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
            // Most games have no tag: they need no look at the names.
            None => Ok(Variant::Standard),
            Some(name) => String::from_utf8_lossy(name).parse(),
        }
    }

    /// Returns `true` if both variants have the same legal moves, so that games of one can be used for the other. This
    /// is the case for equal variants, and for suicide and giveaway chess.
    pub fn is_played_like(self, other: Variant) -> bool {
        self == other || (self.game() == other.game() && self.game() == Game::Antichess)
    }

    /// Returns the variant of shakmaty with the same rules.
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

    /// Returns the position in which games without a `FEN` tag start. For Chess960 it is the start of standard chess.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the usual start is one of the 960"
    )]
    pub fn start(self) -> VariantPosition {
        let start = VariantPosition::new(self.game());
        match self {
            // The castling mode decides how castling is written.
            Variant::Chess960 => {
                let setup = start.to_setup(EnPassantMode::Always);
                let start = VariantPosition::from_setup(Game::Chess, setup, CastlingMode::Chess960);
                start.expect("the usual position is one of the 960")
            }
            _ => start,
        }
    }

    /// Parses a FEN or EPD of this variant.
    ///
    /// In Chess960, the castling rights may be `KQkq` for the outermost rooks (X-FEN) or the files of the rooks
    /// (Shredder-FEN). Castling rights without king and rook on their squares are dropped.
    ///
    /// # Errors
    ///
    /// Returns [`LineError::Fen`] if the FEN is malformed or its position is impossible, and [`LineError::Chess960`] if
    /// it has castling rights that are possible only in Chess960.
    pub fn parse_fen(self, text: &str) -> Result<VariantPosition, LineError> {
        let missing = match text.split_ascii_whitespace().count() {
            1 => {
                "the side to move and the castling rights are missing: write w or b and KQkq or - after the board"
            }
            2 => "the castling rights are missing: write KQkq or - after the side to move",
            _ => "",
        };
        if !missing.is_empty() {
            return Err(LineError::Fen {
                fen: text.to_owned(),
                reason: missing.to_owned(),
            });
        }
        let (pos, _) = self.game_start(text)?;
        Ok(pos)
    }

    /// Parses the value of a `FEN` tag, the position in which a game of this variant starts. Returns the position, and
    /// `true` if castling rights were dropped because the king or the rook is not on its square, as many programs write
    /// them.
    ///
    /// # Errors
    ///
    /// Returns [`LineError::Fen`] if the FEN is malformed or its position is impossible, and [`LineError::Chess960`] if
    /// it has castling rights that are possible only in Chess960.
    ///
    /// ```
    /// use polybook::position::Variant;
    /// let (start, dropped) = Variant::Standard.game_start("4k3/8/8/8/8/8/8/R3K3 w KQ - 0 1")?;
    /// assert!(dropped);
    /// assert_eq!(start, Variant::Standard.parse_fen("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1")?);
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn game_start(self, text: &str) -> Result<(VariantPosition, bool), LineError> {
        let error = |reason: String| LineError::Fen {
            fen: text.to_owned(),
            reason,
        };
        // The value of a tag may be broken over several lines.
        let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let fen: Fen = line.parse().map_err(|err| error(format!("{err}")))?;
        let setup = Setup::from(fen);
        let mode = match self {
            Variant::Standard => CastlingMode::Standard,
            Variant::Chess960 => CastlingMode::Chess960,
            _ => CastlingMode::detect(&setup),
        };
        if self == Variant::Standard && is_chess960(&setup, &line) {
            return Err(LineError::Chess960 {
                fen: text.to_owned(),
            });
        }
        // Many programs write an en passant square that no pawn can reach, and composed positions may have any number
        // of queens.
        let pos = VariantPosition::from_setup(self.game(), setup, mode)
            .or_else(PositionError::ignore_invalid_ep_square)
            .or_else(PositionError::ignore_too_much_material);
        match pos {
            Ok(pos) => Ok((pos, false)),
            Err(err) => {
                // Suicide chess has no castling, so dropping the rights is not worth a warning.
                let is_news = self.game() != Game::Antichess;
                err.ignore_invalid_castling_rights()
                    .map(|pos| (pos, is_news))
                    .map_err(|err| error(format!("{err}")))
            }
        }
    }

    /// Returns the position after the moves of `line` have been played from `fen`, a FEN or an EPD.
    ///
    /// If `fen` is `None`, the moves are played from the starting position of the variant. If `line` is `None`, no
    /// moves are played.
    ///
    /// # Errors
    ///
    /// Returns a [`LineError`] that quotes the FEN if it cannot be read, or the first move that is not legal.
    ///
    /// ```
    /// use polybook::position::Variant;
    /// let pos = Variant::Crazyhouse.from_text(None, Some("e4 d5 exd5 Qxd5 Nc3 P@d4"))?;
    /// assert!(shakmaty::Position::pockets(&pos).is_some());
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn from_text(
        self,
        fen: Option<&str>,
        line: Option<&str>,
    ) -> Result<VariantPosition, LineError> {
        let start = fen.map_or_else(|| Ok(self.start()), |fen| self.parse_position(fen))?;
        play_line(start, line.unwrap_or_default())
    }
}

/// Returns `true` if the castling rights in `fen`, which was parsed as `setup`, are possible in Chess960 but not in
/// standard chess: the king is not on the e-file, the rights are given as files of rooks, or the position is a starting
/// position of Chess960. Returns `false` if they are impossible in both.
fn is_chess960(setup: &Setup, fen: &str) -> bool {
    let rights = fen.split(' ').nth(2).unwrap_or_default();
    let names_files = rights
        .bytes()
        .any(|right| matches!(right, b'A'..=b'H' | b'a'..=b'h'));
    let king_elsewhere = |color: Color| {
        let rank = color.backrank();
        let king = setup.board.king_of(color);
        (setup.castling_rights & rank).any()
            && king.is_some_and(|king| king.rank() == rank && king.file() != File::E)
    };
    let is_wrong_in = |mode| {
        VariantPosition::from_setup(Game::Chess, setup.clone(), mode).is_err_and(|err| {
            err.kinds()
                .contains(PositionErrorKinds::INVALID_CASTLING_RIGHTS)
        })
    };
    // In 204 of the start positions of Chess960 the king is on the e-file.
    let is_start = || {
        let ranks: Vec<&str> = fen.split(['/', ' ']).take(8).collect();
        setup.castling_rights.count() == 4
            && matches!(
                ranks[..],
                [black, "pppppppp", "8", "8", "8", "8", "PPPPPPPP", white]
                    if white.len() == 8
                        && white.bytes().all(|piece| piece.is_ascii_uppercase())
                        && black.eq_ignore_ascii_case(white)
            )
    };
    (names_files || Color::ALL.into_iter().any(king_elsewhere) || is_start())
        && is_wrong_in(CastlingMode::Standard)
        && !is_wrong_in(CastlingMode::Chess960)
}

/// The choice of the variant to which games belong: one variant for all games, or the variant that each game names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum VariantChoice {
    /// All games belong to one variant; games of others are skipped.
    Only(Variant),
    /// Each game belongs to the variant that its `Variant` tag names.
    Auto,
}

impl VariantChoice {
    /// The name of [`Auto`](VariantChoice::Auto) in the metadata of an index and on the command line.
    pub const AUTO: &str = "auto";

    /// Returns the variant if it is the same for all games, or `None` for [`Auto`](VariantChoice::Auto).
    pub fn only(self) -> Option<Variant> {
        match self {
            VariantChoice::Only(variant) => Some(variant),
            VariantChoice::Auto => None,
        }
    }

    /// Returns `true` if all games are of standard chess.
    pub fn is_standard(self) -> bool {
        self == VariantChoice::default()
    }
}

/// The default choice is standard chess.
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

/// Reads the name of a variant, or `auto`.
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

/// Writes the [name](Variant::name) of the variant.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Reads the name of a variant in any case, with or without blanks and hyphens: its [name](Variant::name), or a name
/// that PGN files use.
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
            // An empty text, `?` or `-`; a longer text without letters and digits is not a name.
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

    #[test]
    fn impossible_castling_rights_are_dropped() {
        let board = "r3k3/8/8/8/8/8/8/1R2K2R w";
        for (rights, left, dropped) in [
            ("Kq", "Kq", false),
            ("KQkq", "Kq", true),
            ("Qk", "-", true),
            ("K", "K", false),
        ] {
            let fen = format!("{board} {rights} - 0 1");
            let (pos, was_dropped) = Variant::Standard.game_start(&fen).unwrap();
            let expected = Variant::Standard.parse_fen(&format!("{board} {left} - 0 1"));
            let expected = expected.unwrap();
            assert_eq!(Variant::Standard.parse_fen(&fen).unwrap(), expected);
            assert_eq!((pos, was_dropped), (expected, dropped), "{rights}");
        }
        // The king has moved, so all castling rights are dropped.
        let (pos, dropped) = Variant::Standard
            .game_start("4k3/8/8/8/8/8/4K3/R6R w KQ - 0 1")
            .unwrap();
        assert!(dropped && pos.castles().is_empty());
        let broken = "r3k3/8/8/8/8/8/8/1R2K2R\r\nw Kq\n- 0 1";
        assert!(Variant::Standard.parse_fen(broken).is_ok());
    }

    #[test]
    fn both_spellings_of_castling_rights() {
        let x = "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9";
        let shredder = x.replace("HFhf", "KQkq");
        let variant = Variant::Chess960;
        assert_eq!(
            variant.parse_fen(x).unwrap(),
            variant.parse_fen(&shredder).unwrap()
        );
        for fen in [x, &shredder] {
            let err = Variant::Standard.game_start(fen).unwrap_err();
            assert!(matches!(err, LineError::Chess960 { .. }), "{err}");
        }
    }
}

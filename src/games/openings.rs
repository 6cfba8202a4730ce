//! The names and ECO codes of some 3,800 openings, looked up by position.
//!
//! The opening of a game is the last position with a name that the game reached ([`of_game`]). The explorer's index of
//! games stores the number of this position in the table, an [`OpeningNumber`]. An index must therefore be made again
//! if the table changes.
//!
//! The names, codes and moves are published by Lichess under CC0. `data/opening_names.txt` stores them as a tree of
//! moves, one per line. A line contains the depth of the move and the move. If the position after the move has a name,
//! the code and the name follow.
//!
//! ```
//! use polybook::{openings, position::Variant};
//! let pos = Variant::Standard.from_text(None, Some("1. e4 e5 2. Nf3 Nc6 3. Bb5"))?;
//! let opening = openings::name_of(&pos).expect("a well-known position");
//! assert_eq!((opening.eco, opening.name), ("C60", "Ruy Lopez"));
//! # Ok::<(), polybook::position::LineError>(())
//! ```

use std::{collections::BTreeSet, fmt, str::FromStr, sync::OnceLock};

use rustc_hash::FxHashMap;
use shakmaty::{
    ByColor, ByRole, CastlingMode, Chess, Color, EnPassantMode, FromSetup, Move, Position, Setup,
    variant::{Variant as Game, VariantPosition},
};

use thiserror::Error;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{
    chess::position::{BookMove, Variant, identity, read_move, standard_identities},
    games::pgn::{EcoRange, NearestNames, did_you_mean},
};

/// The text of the tree of named openings, with one move per line. A line contains the depth of the move in the tree
/// and the move. If the position after the move has a name, its ECO code and name follow.
const OPENING_TREE: &str = include_str!("../../data/opening_names.txt");

/// The ECO code and the name of an opening.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Opening {
    /// The code of the Encyclopaedia of Chess Openings, a letter and two digits: `C60`.
    pub eco: &'static str,
    /// The name in English: `Ruy Lopez`.
    pub name: &'static str,
}

impl Opening {
    /// Returns the family of the opening: the part of its name before the first colon or comma.
    ///
    /// ```
    /// use polybook::openings::Opening;
    /// let opening = Opening { eco: "B90", name: "Sicilian Defense: Najdorf Variation" };
    /// assert_eq!(opening.family(), "Sicilian Defense");
    /// let opening = Opening { eco: "A07", name: "King's Indian Attack, with e6" };
    /// assert_eq!(opening.family(), "King's Indian Attack");
    /// ```
    pub fn family(&self) -> &'static str {
        family(self.name)
    }

    /// Returns the first two parts of the name: the family and the variation. Leaves out the names of variations within
    /// the variation, which follow a comma or a colon.
    ///
    /// ```
    /// use polybook::openings::Opening;
    /// let name = "Sicilian Defense: Najdorf Variation, English Attack";
    /// let opening = Opening { eco: "B90", name };
    /// assert_eq!(opening.variation(), "Sicilian Defense: Najdorf Variation");
    /// ```
    pub fn variation(&self) -> &'static str {
        let start = self.name.len().min(self.family().len() + 1);
        let end = self.name[start..].find(SEPARATORS);
        end.map_or(self.name, |at| &self.name[..start + at])
    }
}

/// The number of a named opening position in the built-in table, counted from 1. A position without a name has the
/// number 0.
///
/// Index files contain these numbers, so the version of their layout must be raised if the table changes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct OpeningNumber(u16);

impl OpeningNumber {
    /// The number of different values of an [`OpeningNumber`]: 4096. Each value fits in 12 bits.
    pub const COUNT: usize = 1 << 12;

    /// Converts a number to an [`OpeningNumber`]. Returns `None` if the number does not fit in 12 bits.
    pub fn new(number: u16) -> Option<OpeningNumber> {
        (usize::from(number) < OpeningNumber::COUNT).then_some(OpeningNumber(number))
    }

    /// Returns the number, which is less than [`COUNT`](OpeningNumber::COUNT). It is 0 for a position without a name.
    #[inline]
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Returns the opening that has this number in the built-in table. Returns `None` if no opening has this number.
    pub fn opening(self) -> Option<Opening> {
        let at = self.number().checked_sub(1)?;
        names().openings.get(at).copied()
    }

    /// Returns the moves that lead to the position with this number in the built-in table. Returns no moves if no
    /// position has this number.
    pub(crate) fn moves(self) -> &'static [BookMove] {
        let at = self.number().checked_sub(1);
        at.and_then(|at| names().lines.get(at))
            .map_or(&[], |line| line)
    }

    /// Returns an iterator over all named openings with their numbers, in ascending order of numbers.
    pub(crate) fn all() -> impl Iterator<Item = (OpeningNumber, Opening)> {
        (1..)
            .map(OpeningNumber)
            .zip(names().openings.iter().copied())
    }
}

/// Returns the opening of a game, which is determined by the last of the game's positions that has a name. The order of
/// the moves that led to this position does not matter.
///
/// `identities` yields the [identities](crate::chess::position::identity) of the game's positions, from the first to
/// the last. Returns the number 0 if no position has a name, or if the variant does not share the opening names of
/// standard chess.
pub fn of_game(
    variant: Variant,
    identities: impl DoubleEndedIterator<Item = u64>,
) -> OpeningNumber {
    if !shares_names(variant) {
        return OpeningNumber::default();
    }
    let names = names();
    let mut last_first = identities.rev();
    let found = match variant {
        Variant::Standard => last_first.find_map(|identity| names.find(identity)),
        _ => last_first.find_map(|identity| {
            standard_identities(variant, identity).find_map(|identity| names.find(identity))
        }),
    };
    found.unwrap_or_default()
}

/// Returns `true` if the variant shares the opening names of standard chess.
fn shares_names(variant: Variant) -> bool {
    matches!(
        variant,
        Variant::Standard | Variant::Crazyhouse | Variant::ThreeCheck | Variant::KingOfTheHill
    )
}

/// A condition on the openings of games, parsed from one of these strings:
///
/// - ECO codes, such as `B20-B99`, `B2` or `B`: accepts the openings with these codes;
/// - the name of a family or of an opening, such as `Sicilian Defense` or `King's Indian Attack`, with or without a
///   comma at its end: accepts all openings whose names are this name, or begin with it and a colon or a comma;
/// - the name of an opening and a colon, such as `Sicilian Defense:`: accepts only the opening with exactly this name;
/// - a part of a name, such as `najdorf`: accepts all openings whose names contain it.
///
/// If a string has several of these meanings, the first one applies. Case and accents do not matter. The opening of a
/// game is determined by its moves, not by its tags.
///
/// ```
/// use polybook::openings::OpeningFilter;
/// assert!("grunfeld".parse::<OpeningFilter>().is_ok());
/// assert!("B20-B99".parse::<OpeningFilter>().is_ok());
/// assert!("Sizilianisch".parse::<OpeningFilter>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct OpeningFilter {
    text: String,
    /// A set of bits, one for each opening number. A bit is set if games of this opening pass the filter.
    passing: Box<[u64; OpeningNumber::COUNT / 64]>,
}

impl OpeningFilter {
    /// Returns `true` if the filter accepts games of this opening.
    #[inline]
    pub fn contains(&self, opening: OpeningNumber) -> bool {
        let number = opening.number();
        self.passing[number / 64] >> (number % 64) & 1 == 1
    }
}

/// Formats the filter as the text from which it was parsed.
impl fmt::Display for OpeningFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for OpeningFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpeningFilter").field(&self.text).finish()
    }
}

/// The error for a string that matches no opening.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no opening is called \"{text}\"{}", advice(.nearest))]
pub struct UnknownOpening {
    text: String,
    /// Names similar to the string: those of opening families or, if none is similar, those of openings.
    nearest: Vec<String>,
}

/// Returns the end of the error message about an unknown opening. It suggests the similar names in `nearest` or, if
/// there are none, says what the user can enter.
fn advice(nearest: &[String]) -> String {
    match did_you_mean(nearest) {
        empty if empty.is_empty() => {
            ": give a part of an English name, such as Najdorf, or ECO codes, such as B20-B99"
                .to_owned()
        }
        meant => meant,
    }
}

impl FromStr for OpeningFilter {
    type Err = UnknownOpening;

    fn from_str(text: &str) -> Result<OpeningFilter, UnknownOpening> {
        let wanted = plain(text);
        let unknown = || UnknownOpening {
            text: text.trim().to_owned(),
            nearest: nearest(&wanted),
        };
        if wanted.is_empty() {
            return Err(unknown());
        }
        let of_codes = text.trim().parse::<EcoRange>().ok();
        // The interpretations go from the narrowest to the widest. The first one that matches an opening applies.
        let code = |at: usize| names().openings[at].eco.as_bytes();
        let within = wanted.strip_suffix(',').unwrap_or(&wanted);
        let alone = wanted.strip_suffix(':');
        let meanings: [&dyn Fn(usize) -> bool; 4] = [
            &|at| of_codes.as_ref().is_some_and(|of| of.contains(code(at))),
            &|at| {
                let rest = plain_names()[at].strip_prefix(within);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATORS))
            },
            &|at| Some(&*plain_names()[at]) == alone,
            &|at| plain_names()[at].contains(&wanted),
        ];
        let mut passing = Box::new([0; OpeningNumber::COUNT / 64]);
        for meaning in meanings {
            for at in (0..names().openings.len()).filter(|at| meaning(*at)) {
                // The number of an opening is its index plus one.
                passing[(at + 1) / 64] |= 1 << ((at + 1) % 64);
            }
            if passing.iter().any(|word| *word != 0) {
                let text = text.trim().to_owned();
                return Ok(OpeningFilter { text, passing });
            }
        }
        Err(unknown())
    }
}

/// The maximum number of words and the maximum number of letters of a string for which [`nearest`] searches for similar
/// names. The limits bound the time of a search, because a request to the server can start one.
const MAX_SEARCHED: (usize, usize) = (4, 32);

/// Returns the opening names that are most similar to `wanted`, a string that [`plain`] normalized. Searches the names
/// of opening families and, if none is similar, the names of all openings. Returns no names if `wanted` exceeds
/// [`MAX_SEARCHED`].
fn nearest(wanted: &str) -> Vec<String> {
    let (words, letters) = MAX_SEARCHED;
    if wanted.split(|c: char| !c.is_alphanumeric()).count() > words
        || wanted.chars().count() > letters
    {
        return Vec::new();
    }
    let nearest = |name: fn(&Opening) -> &'static str| {
        let openings = OpeningNumber::all();
        let names: BTreeSet<&str> = openings.map(|(_, opening)| name(&opening)).collect();
        let mut nearest = NearestNames::new(wanted);
        names.into_iter().for_each(|name| nearest.offer(name, 0));
        nearest.names()
    };
    let families = nearest(Opening::family);
    if families.is_empty() {
        nearest(|opening| opening.name)
    } else {
        families
    }
}

/// The characters that separate the parts of an opening's name: its family, its variation, and variations within it.
const SEPARATORS: [char; 2] = [':', ','];

fn family(name: &str) -> &str {
    name.split(SEPARATORS).next().unwrap_or(name)
}

/// Returns the names of all openings, normalized by [`plain`], in the order of the table.
fn plain_names() -> &'static [String] {
    static PLAIN: OnceLock<Vec<String>> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let openings = names().openings.iter();
        openings.map(|opening| plain(opening.name)).collect()
    })
}

/// Normalizes a string so that spellings can be compared: converts it to lower case, removes accents, and separates
/// words by single spaces.
fn plain(text: &str) -> String {
    let letters = text.nfkd().filter(|letter| !is_combining_mark(*letter));
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    let letters = letters.replace('’', "'");
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the opening of a position, regardless of the moves that led to it. Returns `None` if the position has
/// no name.
///
/// Crazyhouse, three-check and king of the hill share the names of standard chess. Positions of other variants
/// have no names.
pub fn name_of(pos: &VariantPosition) -> Option<Opening> {
    let identity = match pos {
        VariantPosition::Chess(pos) if pos.castles().mode() == CastlingMode::Standard => {
            identity(pos)
        }
        _ => identity(&of_standard_chess(pos)?),
    };
    names().find(identity)?.opening()
}

/// Converts a position of a variant to a position of standard chess, to look up its name. Returns `None` if the variant
/// does not share the opening names of standard chess, or if the position has promoted pieces or pieces in hand.
fn of_standard_chess(pos: &VariantPosition) -> Option<Chess> {
    if !matches!(
        pos.variant(),
        Game::Crazyhouse | Game::ThreeCheck | Game::KingOfTheHill
    ) {
        return None;
    }
    // A position with promoted pieces or pieces in hand is not a position of standard chess.
    let is_empty = |pockets: &ByColor<ByRole<u8>>| {
        let held = |color: Color| pockets.get(color).iter().all(|held| *held == 0);
        Color::ALL.into_iter().all(held)
    };
    let is_same = pos.promoted().is_empty() && pos.pockets().is_none_or(is_empty);
    let setup = Setup {
        pockets: None,
        remaining_checks: None,
        ..pos.to_setup(EnPassantMode::Always)
    };
    is_same
        .then(|| Chess::from_setup(setup, CastlingMode::Standard).ok())
        .flatten()
}

/// Parses the table of opening names now instead of at the first lookup.
///
/// Call this function before the process forks. If another thread were parsing the table during the fork, the child
/// process would wait forever, because this thread does not exist in the child process.
pub fn load() {
    plain_names();
}

/// The parsed table of named opening positions.
struct OpeningNames {
    /// The openings in the order of the table. The number of an opening is its index plus one.
    openings: Vec<Opening>,
    /// The moves to the positions, in the order of the table.
    lines: Vec<Box<[BookMove]>>,
    /// Maps the identity of each named position, a 64-bit hash, to its number.
    numbers: FxHashMap<u64, OpeningNumber>,
    /// A set of bits, one for each value of the low [`INDEX_BITS`] bits of an identity. If the bit is clear, no named
    /// position has this value. This saves a lookup in `numbers` for most positions of a game.
    bits: Box<[u64; 1 << (INDEX_BITS - 6)]>,
}

/// The number of low bits of an identity (the hash of a position) that are used as an index into the bit set
/// [`OpeningNames::bits`]. With 16 bits, the set takes 8 KiB, which fits into the processor's fastest cache.
const INDEX_BITS: u32 = 16;

impl OpeningNames {
    /// Returns the number of the named position of standard chess with the hash `identity`. Returns `None` if no named
    /// position has this hash.
    #[inline]
    fn find(&self, identity: u64) -> Option<OpeningNumber> {
        let at = identity as usize % (1 << INDEX_BITS);
        if self.bits[at / 64] >> (at % 64) & 1 == 0 {
            return None;
        }
        self.numbers.get(&identity).copied()
    }
}

/// Returns the table of named opening positions, which is parsed on the first call.
fn names() -> &'static OpeningNames {
    static NAMES: OnceLock<OpeningNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = OpeningNames {
            openings: Vec::new(),
            lines: Vec::new(),
            numbers: FxHashMap::default(),
            bits: Box::new([0; 1 << (INDEX_BITS - 6)]),
        };
        for_each(|opening, moves, pos| {
            names.openings.push(opening);
            names
                .lines
                .push(moves.iter().map(|mv| BookMove::from(*mv)).collect());
            let number = names.openings.len() as u16;
            let number = OpeningNumber::new(number).expect("the numbers have 12 bits");
            let identity = identity(pos);
            names.numbers.entry(identity).or_insert(number);
            let at = identity as usize % (1 << INDEX_BITS);
            names.bits[at / 64] |= 1 << (at % 64);
        });
        names
    })
}

/// Calls `f` for each named opening. `f` receives the opening, the moves that lead to its position, and the position.
pub(crate) fn for_each(mut f: impl FnMut(Opening, &[Move], &Chess)) {
    let (mut line, mut moves) = (vec![Chess::default()], Vec::new());
    for row in OPENING_TREE.lines() {
        let mut words = row.splitn(4, ' ');
        let mut word = || words.next().expect("a depth and a move");
        let depth: usize = word().parse().expect("a depth");
        line.truncate(depth + 1);
        moves.truncate(depth);
        let mut pos = line[depth].clone();
        let mv = read_move(&pos, word().as_bytes()).expect("a legal move");
        pos.play_unchecked(mv);
        moves.push(mv);
        if let (Some(eco), Some(name)) = (words.next(), words.next()) {
            f(Opening { eco, name }, &moves, &pos);
        }
        line.push(pos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::position::Keyed;

    fn name(variant: Variant, line: &str) -> Option<&'static str> {
        let pos = variant.from_text(None, Some(line)).unwrap();
        name_of(&pos).map(|opening| opening.name)
    }

    #[test]
    fn the_table_is_whole() {
        let names = names();
        assert!(names.openings.len() > 3_500, "{}", names.openings.len());
        // Each position is named by only one row.
        assert_eq!(names.numbers.len(), names.openings.len());
        for opening in &names.openings {
            let eco = opening.eco.as_bytes();
            assert!(
                matches!(eco, [b'A'..=b'E', b'0'..=b'9', b'0'..=b'9']),
                "{opening:?}"
            );
            assert!(!opening.name.is_empty() && opening.name.trim() == opening.name);
        }
    }

    #[test]
    fn names_of_positions() {
        for variant in [Variant::Standard, Variant::Crazyhouse, Variant::ThreeCheck] {
            assert_eq!(
                name(variant, "e4 c5"),
                Some("Sicilian Defense"),
                "{variant}"
            );
            assert_eq!(name(variant, ""), None);
        }
        assert_eq!(
            name(Variant::Standard, "Nf3 d5 d4 Nf6 c4 e6"),
            name(Variant::Standard, "d4 d5 c4 e6 Nf3 Nf6")
        );
        assert_eq!(name(Variant::Atomic, "e4 c5"), None);
        assert_eq!(name(Variant::Chess960, "e4 c5"), None);
        // A pawn is in hand.
        assert_eq!(name(Variant::Crazyhouse, "e4 d5 exd5 Qxd5"), None);
        assert!(name(Variant::Standard, "e4 d5 exd5 Qxd5").is_some());
    }

    /// Indexes store the numbers of the table. After a change of names, codes or order, raise the version of the rows
    /// of games in `index/store`, and write the new hash here.
    #[test]
    fn numbers_belong_to_a_version_of_the_layout() {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in OPENING_TREE.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        assert_eq!(hash, 0x25e4_2c33_b8e6_7ffe);
    }

    /// Returns the name of the opening of a game with the moves `moves`.
    fn opening(variant: Variant, moves: &str) -> Option<&'static str> {
        let mut pos = Keyed::new(variant.start());
        let mut identities = vec![pos.identity()];
        for word in moves.split(' ') {
            let mv = read_move(pos.position(), word.as_bytes()).unwrap();
            pos.play(mv);
            identities.push(pos.identity());
        }
        let number = of_game(variant, identities.into_iter());
        number.opening().map(|opening| opening.name)
    }

    #[test]
    fn openings_of_games() {
        let standard = |moves| opening(Variant::Standard, moves);
        // The last two moves lead to no named position.
        let ruy_lopez = standard("e4 e5 Nf3 Nc6 Bb5 h5 h4");
        assert_eq!(ruy_lopez, Some("Ruy Lopez"));
        assert_eq!(standard("Nf3 Nc6 e4 e5 Bb5"), Some("Ruy Lopez"));
        assert_eq!(standard("h4 h5 Rh3"), Some("Kádas Opening"));
        let sicilian = Some("Sicilian Defense");
        for variant in [
            Variant::Crazyhouse,
            Variant::ThreeCheck,
            Variant::KingOfTheHill,
        ] {
            assert_eq!(opening(variant, "e4 c5 Ba6"), sicilian, "{variant}");
        }
        // White has given a check.
        let checked = opening(Variant::ThreeCheck, "e4 e5 Bb5 c6 Bxc6 dxc6");
        assert_eq!(checked, Some("Portuguese Opening"));
        assert_eq!(opening(Variant::Atomic, "e4 c5"), None);
        assert_eq!(opening(Variant::Chess960, "e4 c5"), None);
    }

    #[test]
    fn filters_mean_codes_families_openings_or_parts_of_names() {
        let passing = |text: &str| {
            let filter: OpeningFilter = text.parse().unwrap();
            OpeningNumber::all()
                .filter(|(number, _)| filter.contains(*number))
                .map(|(_, opening)| opening)
                .collect::<Vec<_>>()
        };
        let all = |text, is_true: fn(&Opening) -> bool| {
            let (passing, all) = (passing(text), &names().openings);
            let expected = all.iter().filter(|opening| is_true(opening)).count();
            assert!(expected > 0 && passing.len() == expected, "{text}");
            assert!(passing.iter().all(is_true), "{text}");
        };
        all("b20-B21", |opening| matches!(opening.eco, "B20" | "B21"));
        all("C6", |opening| opening.eco.starts_with("C6"));
        all("sicilian  defense", |opening| {
            opening.family() == "Sicilian Defense"
        });
        all("Sicilian Defense:", |opening| {
            opening.name == "Sicilian Defense"
        });
        for comma in ["", ","] {
            let berlin = passing(&format!("Ruy Lopez: Berlin Defense{comma}"));
            assert!(
                berlin
                    .iter()
                    .any(|opening| opening.name == "Ruy Lopez: Berlin Defense, l'Hermet Variation")
            );
            assert!(
                berlin
                    .iter()
                    .all(|opening| opening.variation() == "Ruy Lopez: Berlin Defense")
            );
        }
        all("ruy lopez: berlin defense:", |opening| {
            opening.name == "Ruy Lopez: Berlin Defense"
        });
        for (text, within) in [
            ("King's Indian Attack", "King's Indian Attack, with e6"),
            ("London System", "London System, with Bd3"),
            (
                "Queen's Indian Defense",
                "Queen's Indian Defense, with e3, Bb4+ Line",
            ),
            (
                "Queen's Indian Defense, with e3",
                "Queen's Indian Defense, with e3, Bb4+ Line",
            ),
            (
                "Vienna Gambit",
                "Vienna Gambit, with Max Lange Defense: Steinitz Gambit, Main Line",
            ),
            (
                "Vienna Gambit, with Max Lange Defense",
                "Vienna Gambit, with Max Lange Defense: Steinitz Gambit, Main Line",
            ),
        ] {
            let openings = passing(text);
            assert!(
                openings.iter().any(|opening| opening.name == within),
                "{text}"
            );
            assert!(
                openings
                    .iter()
                    .all(|opening| opening.name.starts_with(text)),
                "{text}"
            );
        }
        let named = |name| Opening { eco: "", name };
        let queens = named("Queen's Indian Defense, with e3, Bb4+ Line");
        assert_eq!(queens.family(), "Queen's Indian Defense");
        assert_eq!(queens.variation(), "Queen's Indian Defense, with e3");
        let vienna = named("Vienna Gambit, with Max Lange Defense: Steinitz Gambit, Main Line");
        assert_eq!(vienna.variation(), "Vienna Gambit, with Max Lange Defense");
        assert_eq!(named("Ruy Lopez").variation(), "Ruy Lopez");
        all("NAJDORF", |opening| opening.name.contains("Najdorf"));
        all("grunfeld defense", |opening| {
            opening.family() == "Grünfeld Defense"
        });
        for text in ["", "  ", "no such opening", "B99-B20"] {
            assert!(text.parse::<OpeningFilter>().is_err(), "{text}");
        }
        let meant = |text: &str| text.parse::<OpeningFilter>().unwrap_err().nearest;
        assert_eq!(meant("Sicilain Defence")[0], "Sicilian Defense");
        assert!(meant("Najdorv").iter().all(|name| name.contains("Najdorf")));
        assert_eq!(meant("Najdorv").len(), 3);
        // A long text is not compared with all names.
        assert!(meant("a Sicilian Defense of Najdorv").is_empty());
        assert!(meant(&"Sicilian Defense".repeat(3)).is_empty());
        let unnamed: OpeningFilter = "A".parse().unwrap();
        assert!(!unnamed.contains(OpeningNumber::default()));
    }

    #[test]
    fn the_end_of_a_possessive_is_no_initial() {
        let unknown = "Siclian Defense".parse::<OpeningFilter>().unwrap_err();
        assert_eq!(unknown.nearest[0], "Sicilian Defense");
    }
}

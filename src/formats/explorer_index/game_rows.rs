//! Encodes the rows of games in an explorer index. A row contains, in 40 bytes, the data about a game that the explorer
//! needs for filters and answers.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0-3, 4-7, 8-11 | the numbers of the names of White, Black and the event |
//! | 12-13, 14-15 | the ratings of White and Black, 0 if unknown |
//! | 16-17 | the year, 0 if unknown |
//! | 18 | bits 0-3 the month, 0 if unknown; bits 4-7 the index of the variant in [`Variant::ALL`] plus one, 0 if unknown |
//! | 19 | the day, 0 if unknown |
//! | 20 | bits 0-1 the result (0 neither side won, 1 White won, 2 Black won, 3 unknown), bits 2-4 the [`Speed`], bit 5 the [`Mode`], bit 6 whether the game counts, bit 7 whether the date is the one on which the event began |
//! | 21 | bits 0-7 of the number of the opening |
//! | 22-23 | bits 0-8 the ECO code of the game's tag: 1 for A00 to 500 for E99, 0 for none; bits 9-11 0; bits 12-15 bits 8-11 of the [number of the opening](OpeningNumber) |
//! | 24-25 | the number of half-moves, 65535 for more |
//! | 26-31 | the game's id at Lichess in base 62, 0 for a game without one |
//! | 32-39 | a hash of the starting position and of all moves of the game, 0 for a game whose positions are not indexed |
//!
//! Numbers are little-endian. An entry contains the rows of [`ROWS_PER_ENTRY`] games; the last entry may contain fewer.

use crate::{
    chess::position::Variant,
    games::{
        openings::OpeningNumber,
        pgn::{Date, GameResult, Mode, RatingGroup, Speed, doubled_mean},
    },
};

/// The size in bytes of a [`GameRow`] in the index.
pub const ROW_SIZE: usize = 40;

/// The number of games whose rows are stored in one entry of the index.
pub const ROWS_PER_ENTRY: u64 = 4096;

/// The data about one game that the explorer needs for filters and answers, such as its ratings and date. An explorer
/// index contains one row for each game.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GameRow {
    /// The number of White's name in the table of names.
    pub white: u32,
    /// The number of Black's name in the table of names.
    pub black: u32,
    /// The number of the event's name in the table of names.
    pub event: u32,
    /// White's rating, 0 if unknown.
    pub white_elo: u16,
    /// Black's rating, 0 if unknown.
    pub black_elo: u16,
    /// The date of the game.
    pub date: Date,
    /// Whether `date` is the date on which the event began.
    pub has_event_date: bool,
    /// The result with which the game is counted.
    pub result: GameResult,
    /// The speed, which follows from the time control.
    pub speed: Speed,
    /// Whether the game was rated.
    pub mode: Mode,
    /// Whether the game's positions are in the index.
    pub counts: bool,
    /// The variant, or `None` for a game whose positions are not indexed.
    pub variant: Option<Variant>,
    /// The ECO code in the tags of the game.
    pub eco: EcoNumber,
    /// The number of the opening, which follows from the moves of the game. It is 0 for a game whose positions are not
    /// indexed.
    pub opening: OpeningNumber,
    /// The number of half-moves, or 65535 if there are more.
    pub plies: u16,
    /// The id of the game on Lichess, or `None` if it has no such id.
    pub site_id: Option<SiteId>,
    /// A hash of the starting position and of all moves of the game, including half-moves that are not indexed. The
    /// hash is 0 for a game whose positions are not indexed.
    pub moves: u64,
}

impl GameRow {
    /// Returns the mean of the players' known ratings, multiplied by 2 so that it is an integer. Returns 0 if both
    /// ratings are unknown.
    #[inline]
    pub fn doubled_rating(&self) -> u32 {
        doubled_mean([self.white_elo, self.black_elo])
    }

    /// Returns the rating group that contains the mean of the players' known ratings, or `None` if both ratings are
    /// unknown.
    #[inline]
    pub fn group(&self) -> Option<RatingGroup> {
        RatingGroup::of_game([self.white_elo, self.black_elo])
    }

    /// Encodes the row as the bytes that the index stores.
    pub fn to_bytes(&self) -> [u8; ROW_SIZE] {
        let mut bytes = [0; ROW_SIZE];
        bytes[0..4].copy_from_slice(&self.white.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.black.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.event.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.white_elo.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.black_elo.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.date.year().unwrap_or(0).to_le_bytes());
        let variant = self.variant.map_or(0, |variant| variant as u8 + 1);
        bytes[18] = self.date.month().unwrap_or(0) | variant << 4;
        bytes[19] = self.date.day().unwrap_or(0);
        let result = self.result as u8;
        let traits = (self.speed as u8) << 2 | (self.mode as u8) << 5;
        let bits = u8::from(self.counts) << 6 | u8::from(self.has_event_date) << 7;
        bytes[20] = result | traits | bits;
        let opening = self.opening.number() as u16;
        bytes[21] = opening as u8;
        let eco = self.eco.0 | opening >> 8 << 12;
        bytes[22..24].copy_from_slice(&eco.to_le_bytes());
        bytes[24..26].copy_from_slice(&self.plies.to_le_bytes());
        let id = self.site_id.map_or(0, SiteId::number);
        bytes[26..32].copy_from_slice(&id.to_le_bytes()[..6]);
        bytes[32..].copy_from_slice(&self.moves.to_le_bytes());
        bytes
    }

    /// Decodes a row. Returns `None` if it is malformed.
    pub fn parse(bytes: &[u8; ROW_SIZE]) -> Option<GameRow> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let traits = bytes[20];
        let mut id = [0; 8];
        id[..6].copy_from_slice(&bytes[26..32]);
        let (month, variant) = (bytes[18] & 15, usize::from(bytes[18] >> 4));
        let eco = u16_at(22);
        let opening = u16::from(bytes[21]) | eco >> 12 << 8;
        let date = Date::new(u16_at(16), month, bytes[19]);
        let is_date = (date.month().unwrap_or(0), date.day().unwrap_or(0)) == (month, bytes[19]);
        if !is_date || eco & 0xe00 != 0 || variant > Variant::ALL.len() {
            return None;
        }
        let id = u64::from_le_bytes(id);
        if id > SiteId::MAX_NUMBER {
            return None;
        }
        let (_, moves) = bytes.split_last_chunk()?;
        Some(GameRow {
            white: u32_at(0),
            black: u32_at(4),
            event: u32_at(8),
            white_elo: u16_at(12),
            black_elo: u16_at(14),
            date,
            has_event_date: traits >> 7 == 1,
            result: GameResult::ALL[usize::from(traits & 3)],
            speed: *Speed::ALL.get(usize::from(traits >> 2 & 7))?,
            mode: Mode::ALL[usize::from(traits >> 5 & 1)],
            counts: traits >> 6 & 1 == 1,
            variant: variant.checked_sub(1).map(|number| Variant::ALL[number]),
            eco: EcoNumber::new(eco & 0x1ff)?,
            opening: OpeningNumber::new(opening)?,
            plies: u16_at(24),
            site_id: SiteId::of_number(id),
            moves: u64::from_le_bytes(*moves),
        })
    }
}

/// Converts a date to a number, so that later dates have greater numbers. The number is the year shifted left by 9
/// bits, plus the month shifted left by 5 bits, plus the day. Unknown parts of the date are 0.
pub fn date_number(date: Date) -> u32 {
    u32::from(date.year().unwrap_or(0)) << 9
        | u32::from(date.month().unwrap_or(0)) << 5
        | u32::from(date.day().unwrap_or(0))
}

/// An ECO code as a number from 1 (A00) to 500 (E99), or 0 for a game without a code.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct EcoNumber(u16);

impl EcoNumber {
    /// The number of possible values of an [`EcoNumber`]: 500 codes, and 0 for a game without a code.
    pub const COUNT: usize = 501;

    fn new(number: u16) -> Option<EcoNumber> {
        (usize::from(number) < EcoNumber::COUNT).then_some(EcoNumber(number))
    }

    /// Returns an iterator over all possible values in ascending order. It begins with 0, the value for games without a
    /// code.
    pub fn all() -> impl Iterator<Item = EcoNumber> {
        (0..EcoNumber::COUNT as u16).map(EcoNumber)
    }

    /// Returns the number of the ECO code, from 1 to 500, or 0 for a game without an ECO code.
    #[inline]
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Converts the value of an `ECO` tag to a number. Only the first three characters are used. Returns the number 0
    /// if they are not a code from A00 to E99.
    pub fn of_tag(value: &[u8]) -> EcoNumber {
        let [
            letter @ (b'A'..=b'E' | b'a'..=b'e'),
            tens @ b'0'..=b'9',
            units @ b'0'..=b'9',
            ..,
        ] = value.trim_ascii()
        else {
            return EcoNumber(0);
        };
        let letter = u16::from(letter.to_ascii_uppercase() - b'A');
        EcoNumber(letter * 100 + u16::from(tens - b'0') * 10 + u16::from(units - b'0') + 1)
    }

    /// Returns the ECO code as text, such as `B20`, or `None` for a game without an ECO code.
    pub fn code(self) -> Option<[u8; 3]> {
        let number = self.0.checked_sub(1)?;
        let digit = |digit: u16| b'0' + digit as u8;
        Some([
            b'A' + (number / 100) as u8,
            digit(number / 10 % 10),
            digit(number % 10),
        ])
    }
}

/// The id of a game on Lichess, which consists of eight letters and digits. It is stored as a number, the value of the
/// id in base 62 plus 1, and is therefore never 0.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SiteId(u64);

/// The 62 characters that occur in Lichess ids, in the order of their values as digits of base 62.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The number of characters of a Lichess id.
const ID_LENGTH: usize = 8;

/// The names of pages on Lichess that consist of eight letters and could therefore be mistaken for game ids.
pub const PAGES: [&str; 7] = [
    "analysis", "features", "insights", "practice", "streamer", "timeline", "training",
];

impl SiteId {
    /// The greatest number that a Lichess id can have. An id has eight digits in base 62, and its number is its value
    /// plus 1.
    pub const MAX_NUMBER: u64 = 62_u64.pow(ID_LENGTH as u32);

    /// Returns the id with this number, or `None` if the number is not from 1 to [`MAX_NUMBER`](SiteId::MAX_NUMBER).
    pub fn of_number(number: u64) -> Option<SiteId> {
        matches!(number, 1..=SiteId::MAX_NUMBER).then_some(SiteId(number))
    }

    /// Parses a Lichess id. Returns `None` if `text` does not consist of eight letters and digits.
    pub fn parse(text: &str) -> Option<SiteId> {
        if text.len() != ID_LENGTH {
            return None;
        }
        let mut number = 0;
        for byte in text.bytes() {
            let digit = DIGITS.iter().position(|digit| *digit == byte)?;
            number = number * 62 + digit as u64;
        }
        Some(SiteId(number + 1))
    }

    /// Extracts the id of a game on Lichess from the value of a `Site` tag. Returns `None` if the value is not the
    /// address of a game on Lichess.
    ///
    /// In such an address, the eight characters of the id follow the host name. Anything that may follow the id is
    /// ignored: four characters that identify one of the players, a color, or the number of a half-move.
    pub fn of_tag(value: &[u8]) -> Option<SiteId> {
        let address = str::from_utf8(value).ok()?.trim();
        let address = address.split_once("://").map_or(address, |(_, rest)| rest);
        let (host, path) = address.split_once('/')?;
        // Games are at subdomains of two letters for languages. Other subdomains, such as `database`, contain no
        // games.
        match host.strip_suffix("lichess.org")?.as_bytes() {
            b"" | b"www." => {}
            [first, second, b'.']
                if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() => {}
            _ => return None,
        }
        let path = path.split(['?', '#']).next()?;
        let (word, color) = path.split_once('/').unwrap_or((path, ""));
        let id = match word.len() {
            ID_LENGTH | 12 => word.get(..ID_LENGTH)?,
            _ => return None,
        };
        let is_word = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // An id that consists only of digits is the zero-padded number of a game on another site.
        let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
        let is_game = is_word
            && !is_number
            && !PAGES.contains(&word)
            && matches!(color, "" | "white" | "black");
        is_game.then(|| SiteId::parse(id)).flatten()
    }

    /// Returns the number of the id, from 1 to [`MAX_NUMBER`](SiteId::MAX_NUMBER).
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the id as text of eight letters and digits.
    pub fn text(self) -> String {
        let mut rest = self.0 - 1;
        let mut text = [0; ID_LENGTH];
        for place in text.iter_mut().rev() {
            *place = DIGITS[(rest % 62) as usize];
            rest /= 62;
        }
        text.iter().copied().map(char::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_at_lichess() {
        for (site, id) in [
            ("https://lichess.org/abcdEF12", Some("abcdEF12")),
            ("lichess.org/abcdEF12/black", Some("abcdEF12")),
            ("https://lichess.org/abcdEF12wxyz", Some("abcdEF12")),
            ("https://lichess.org/zzzzzzzz#3", Some("zzzzzzzz")),
            (" http://en.lichess.org/abcdEF12/white#7 ", Some("abcdEF12")),
            ("https://lichess.org/abcdEF12?from=7", Some("abcdEF12")),
            ("https://www.lichess.org/abcdEF12", Some("abcdEF12")),
            ("https://database.lichess.org/standard", None),
            ("https://a.b.lichess.org/abcdEF12", None),
            ("https://.lichess.org/abcdEF12", None),
            ("https://xyzlichess.org/abcdEF12", None),
            ("https://lichess.org/00000012", None),
            ("https://lichess.org/analysis", None),
            ("https://lichess.org/analysis/standard", None),
            ("https://lichess.org/training", None),
            ("https://lichess.org/practice", None),
            ("https://lichess.org/whatever/nextpage", None),
            ("https://lichess.org/tournament", None),
            ("https://lichess.org/study/abcdEF12", None),
            ("https://lichess.org/abcdEF1\u{e9}", None),
            ("https://notlichess.org/abcdEF12", None),
            ("https://lichess.org.example.com/abcdEF12", None),
            ("https://lichess.org/", None),
            ("lichess.org", None),
            ("London", None),
        ] {
            let found = SiteId::of_tag(site.as_bytes()).map(SiteId::text);
            assert_eq!(found.as_deref(), id, "{site}");
        }
    }

    #[test]
    fn eco_codes() {
        for code in ["A00", "B07", "E99", "C42"] {
            let found = EcoNumber::of_tag(code.as_bytes()).code();
            assert_eq!(found, Some(*code.as_bytes().first_chunk().unwrap()));
        }
        assert_eq!(EcoNumber::of_tag(b"b90x").code(), Some(*b"B90"));
        for none in ["", "?", "*", "F00", "A0", "A0x"] {
            assert_eq!(EcoNumber::of_tag(none.as_bytes()).code(), None, "{none}");
        }
    }

    fn rows() -> impl Strategy<Value = GameRow> {
        let numbers = (any::<[u32; 3]>(), any::<[u16; 2]>(), any::<u16>());
        let date = (0..3000u16, 0..=12u8, 0..=31u8);
        let bits = any::<[bool; 2]>();
        let traits = (0..4usize, 0..6usize, 0..2usize, bits, 0..=10usize);
        let id = proptest::option::of("[0-9A-Za-z]{8}");
        let ids = (0..=500u16, id, any::<u64>(), 0..4096u16);
        (numbers, date, traits, ids).prop_map(|(numbers, date, traits, ids)| GameRow {
            white: numbers.0[0],
            black: numbers.0[1],
            event: numbers.0[2],
            white_elo: numbers.1[0],
            black_elo: numbers.1[1],
            date: Date::new(date.0, date.1, date.2),
            has_event_date: traits.3[1],
            result: GameResult::ALL[traits.0],
            speed: Speed::ALL[traits.1],
            mode: Mode::ALL[traits.2],
            counts: traits.3[0],
            variant: traits.4.checked_sub(1).map(|number| Variant::ALL[number]),
            eco: EcoNumber(ids.0),
            opening: OpeningNumber::new(ids.3).unwrap(),
            plies: numbers.2,
            site_id: ids.1.as_ref().map(|id| SiteId::parse(id).unwrap()),
            moves: ids.2,
        })
    }

    proptest! {
        #[test]
        fn rows_come_back(row in rows()) {
            prop_assert_eq!(GameRow::parse(&row.to_bytes()), Some(row));
            if let Some(id) = row.site_id {
                prop_assert_eq!(SiteId::parse(&id.text()), Some(id));
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), ROW_SIZE)) {
            let bytes: [u8; ROW_SIZE] = bytes.try_into().unwrap();
            if let Some(row) = GameRow::parse(&bytes) {
                prop_assert_eq!(row.to_bytes(), bytes);
            }
        }
    }
}

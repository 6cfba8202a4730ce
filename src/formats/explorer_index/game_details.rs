//! Encodes the details of games in an explorer index. The details of a game contain the offset and the checksum of its
//! text, and those fields of its record that cannot be derived from its row and names.
//!
//! | part | encoding |
//! |---|---|
//! | place | varint 2n + t, where n is the offset at which the game begins in the decompressed PGN, and t is 1 if the game has tags |
//! | text | varint of its length in bytes; 4 bytes: its CRC-32C, little-endian |
//! | fields | varint with bit i set if field i of the record, counted from 0, is stored |
//! | each such field | varint of its length in bytes, and its bytes |
//!
//! The names, the ratings, the result, the ECO code, the date, and the address of a game at Lichess are derived from
//! the row. Other fields are stored unless their tag is missing. An entry contains the details of [`GAMES_PER_ENTRY`]
//! games; the last entry may contain fewer.

use super::GameRow;
use crate::{
    formats::{
        fork_index::layout::{FEN_FIELD, FIELDS, GameHeader, GameOffset, OFFSET_FIELD, put_number},
        leveldb::{put_varint, take_size, take_varint},
    },
    games::pgn::{Date, MAX_GAME_LENGTH},
};

/// The number of games whose details are stored in one entry of the index. The details are the offset of a game in its
/// PGN file and some of its header fields.
pub const GAMES_PER_ENTRY: u64 = 64;

/// The beginning of the web address of a game on Lichess, before the id of the game.
const LICHESS: &[u8] = b"https://lichess.org/";

/// The length and the checksum of the PGN text of a game. The text extends to the next game, or to the end of the batch
/// in which the game was read.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct GameText {
    /// The length in bytes, at most [`MAX_GAME_LENGTH`].
    pub length: u64,
    checksum: u32,
}

impl GameText {
    /// Returns the length and the checksum of `text`.
    pub fn of(text: &[u8]) -> GameText {
        GameText {
            length: text.len() as u64,
            checksum: crc32c::crc32c(text),
        }
    }
}

/// Appends the details of a game to `out`. The details are the offset of the game in the PGN (`place`), the length and
/// the checksum of its text (`text`), and those fields of the game record `record` that cannot be derived from the
/// other arguments. `row` is the row of the game in the index, and `names` contains the names of White, Black and the
/// event.
pub fn write_details(
    out: &mut Vec<u8>,
    record: &[u8],
    (place, text): (GameOffset, GameText),
    row: &GameRow,
    names: [&str; 3],
) {
    let (start, has_tags) = (place.start(), matches!(place, GameOffset::Tags(_)));
    put_varint(out, start << 1 | u64::from(has_tags));
    put_varint(out, text.length);
    out.extend_from_slice(&text.checksum.to_le_bytes());
    let (mut stored, mut fields, mut derived) = (0, Vec::new(), Vec::new());
    for (number, field) in record.split(|byte| *byte == b'|').enumerate() {
        derived.clear();
        put_derived(&mut derived, number, place, row, names);
        if derived != field {
            stored |= 1 << number;
            put_varint(&mut fields, field.len() as u64);
            fields.extend_from_slice(field);
        }
    }
    put_varint(out, stored);
    out.extend_from_slice(&fields);
}

/// Appends the derived value of one field of a game record to `out`: the value that follows from the row of the game,
/// its offset (`place`), and the names of White, Black and the event. The details of a game store a field only if its
/// real value differs from the derived one.
///
/// `number` is the index of the field in [`FIELDS`]. If these data do not determine the field, the derived value is
/// `*`, or empty for the FEN.
fn put_derived(
    out: &mut Vec<u8>,
    number: usize,
    place: GameOffset,
    row: &GameRow,
    [white, black, event]: [&str; 3],
) {
    let rating = |out: &mut Vec<u8>, rating: u16| match rating {
        0 => out.push(b'*'),
        rating => put_number(out, rating),
    };
    match FIELDS[number].0 {
        "White" => out.extend_from_slice(white.as_bytes()),
        "Black" => out.extend_from_slice(black.as_bytes()),
        "Event" => out.extend_from_slice(event.as_bytes()),
        "WhiteElo" => rating(out, row.white_elo),
        "BlackElo" => rating(out, row.black_elo),
        "Result" => out.extend_from_slice(row.result.token().as_bytes()),
        "Date" if row.has_event_date => put_date(out, Date::default()),
        "Date" => put_date(out, row.date),
        "EventDate" if row.has_event_date => put_date(out, row.date),
        "Site" if let Some(id) = row.site_id => {
            out.extend_from_slice(LICHESS);
            out.extend_from_slice(id.text().as_bytes());
        }
        "ECO" if let Some(code) = row.eco.code() => out.extend_from_slice(&code),
        _ if number == OFFSET_FIELD => place.put_field(out),
        _ if number == FEN_FIELD => {}
        _ => out.push(b'*'),
    }
}

/// Appends a date in the format of a PGN `Date` tag, such as `2024.05.??`.
fn put_date(out: &mut Vec<u8>, date: Date) {
    match date.year() {
        Some(year) => out.extend_from_slice(format!("{year:04}").as_bytes()),
        None => out.extend_from_slice(b"????"),
    }
    for part in [date.month(), date.day()] {
        match part {
            Some(part) => out.extend_from_slice(format!(".{part:02}").as_bytes()),
            None => out.extend_from_slice(b".??"),
        }
    }
}

/// The encoded details of a game: its offset in the PGN text, and those fields of its record that cannot be derived
/// from its [`GameRow`]. A field is decoded when it is needed.
#[derive(Copy, Clone, Debug)]
pub struct GameDetails<'a> {
    /// The offset at which the game begins.
    pub place: GameOffset,
    /// The length and the checksum of the text of the game.
    pub text: GameText,
    /// A set of bits: bit i is set if field i is stored.
    stored: u64,
    /// The stored fields, each preceded by its length.
    fields: &'a [u8],
}

impl<'a> GameDetails<'a> {
    /// Decodes the details of the first game in `rest`, and removes them from `rest`. Returns `None` if they are
    /// malformed.
    pub fn take(rest: &mut &'a [u8]) -> Option<GameDetails<'a>> {
        let number = take_varint(rest)?;
        let place = match number & 1 {
            1 => GameOffset::Tags(number >> 1),
            _ => GameOffset::Moves(number >> 1),
        };
        let length = take_varint(rest)?;
        if length > MAX_GAME_LENGTH as u64 {
            return None;
        }
        let (checksum, others) = rest.split_first_chunk()?;
        let text = GameText {
            length,
            checksum: u32::from_le_bytes(*checksum),
        };
        *rest = others;
        let stored = take_varint(rest)?;
        if stored >> FIELDS.len() > 0 || stored >> OFFSET_FIELD & 1 == 1 {
            return None;
        }
        let start = *rest;
        for _ in 0..stored.count_ones() {
            let len = take_size(rest)?;
            let field = rest.split_off(..len)?;
            if field.contains(&b'|') {
                return None;
            }
        }
        Some(GameDetails {
            place,
            text,
            stored,
            fields: &start[..start.len() - rest.len()],
        })
    }

    /// Creates the header of the game from these details, the row of the game, and `names`, the names of White, Black
    /// and the event.
    pub fn header(&self, row: &GameRow, names: [&str; 3]) -> GameHeader {
        let (mut record, mut fields) = (Vec::new(), self.fields);
        for number in 0..FIELDS.len() {
            if number > 0 {
                record.push(b'|');
            }
            if self.stored >> number & 1 == 0 {
                put_derived(&mut record, number, self.place, row, names);
            } else if let Some(field) =
                take_size(&mut fields).and_then(|len| fields.split_off(..len))
            {
                record.extend_from_slice(field);
            }
        }
        GameHeader::of_game(record, self.place, row.result)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::facts_of, *};
    use crate::{formats::fork_index::layout::write_game, games::pgn::GameReader};

    const VALUES: [&str; 14] = [
        "",
        "?",
        "*",
        "A, B",
        "a|b",
        "2500",
        "02500",
        "1-0",
        "1/2-1/2",
        "2024.05.??",
        "????.??.??",
        "B90",
        "https://lichess.org/abcdefgh",
        "https://lichess.org/abcdefgh/black",
    ];

    proptest! {
        #[test]
        fn headers_come_back(tags in proptest::collection::vec((0..FIELDS.len(), 0..VALUES.len()), 0..20), start: u32) {
            let mut pgn = String::new();
            for (field, value) in tags {
                if field != OFFSET_FIELD {
                    pgn.push_str(&format!("[{} \"{}\"]\n", FIELDS[field].0, VALUES[value]));
                }
            }
            pgn.push_str("\n1. e4 *\n");
            let mut games = GameReader::new(pgn.as_bytes());
            prop_assert!(games.next_game());
            for place in [GameOffset::Tags(start.into()), GameOffset::Moves(start.into())] {
                let (row, names) = facts_of(games.tags());
                let names = [&*names[0], &*names[1], &*names[2]];
                let (mut record, mut details) = (Vec::new(), Vec::new());
                write_game(&mut record, games.tags(), place, FIELDS.len());
                write_details(&mut details, &record, (place, GameText::of(pgn.as_bytes())), &row, names);
                let mut rest = &details[..];
                let read = GameDetails::take(&mut rest).unwrap();
                prop_assert_eq!(read.text, GameText::of(pgn.as_bytes()));
                let header = read.header(&row, names);
                prop_assert!(rest.is_empty());
                prop_assert_eq!(header, GameHeader::of_game(record, place, row.result));
            }
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while GameDetails::take(&mut rest).is_some() && !rest.is_empty() {}
        }
    }

    /// Readers read as many bytes of the PGN file as the details say.
    #[test]
    fn a_text_that_is_longer_than_a_game_is_damaged() {
        for (length, is_read) in [
            (MAX_GAME_LENGTH as u64, true),
            (MAX_GAME_LENGTH as u64 + 1, false),
            (u64::MAX, false),
        ] {
            let mut details = vec![41];
            put_varint(&mut details, length);
            details.extend([0; 5]);
            assert_eq!(GameDetails::take(&mut &details[..]).is_some(), is_read);
        }
    }

    #[test]
    fn what_the_row_contains_is_not_stored() {
        let pgn = b"[Event \"Rated\"]\n[White \"A\"]\n[Black \"B\"]\n[WhiteElo \"2500\"]\n[Date \"2024.05.06\"]\n[ECO \"B90\"]\n\
            [Result \"1-0\"]\n[Site \"https://lichess.org/abcdefgh\"]\n\n1. e4 *";
        let mut games = GameReader::new(pgn);
        assert!(games.next_game());
        let (row, [white, black, event]) = facts_of(games.tags());
        let (mut record, mut details) = (Vec::new(), Vec::new());
        write_game(
            &mut record,
            games.tags(),
            GameOffset::Tags(20),
            FIELDS.len(),
        );
        write_details(
            &mut details,
            &record,
            (GameOffset::Tags(20), GameText::of(b"123456789")),
            &row,
            [&white, &black, &event],
        );
        assert_eq!(details, [41, 9, 0x83, 0x92, 0x06, 0xe3, 0]);
    }
}

//! Game records: what the index says of a game.

use std::borrow::Cow;

use super::{parse_number, put_number};
use crate::pgn::{GameReader, GameResult, Tags, tag_text};

/// The tenth field of a game that has no tags.
const NO_OFFSET: i64 = -1;

/// Where a game begins in the unpacked PGN.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GamePlace {
    /// The bracket of its first tag.
    Tags(u64),
    /// The first move, or its number, of a game without tags.
    Moves(u64),
}

impl GamePlace {
    /// The byte.
    pub fn start(self) -> u64 {
        match self {
            GamePlace::Tags(start) | GamePlace::Moves(start) => start,
        }
    }
}

/// The fields of a game record in their order: the tags they come from, and their names. The tenth is not a tag but
/// the place of the game.
const FIELDS: [(&str, &str); 14] = [
    ("White", "white"),
    ("WhiteElo", "white_elo"),
    ("Black", "black"),
    ("BlackElo", "black_elo"),
    ("Result", "result"),
    ("Date", "date"),
    ("Event", "event"),
    ("Site", "site"),
    ("ECO", "eco"),
    ("", "offset"),
    ("FEN", "fen"),
    ("PlyCount", "ply_count"),
    ("EventDate", "event_date"),
    ("EventType", "event_type"),
];
const RESULT_FIELD: usize = 4;
const OFFSET_FIELD: usize = 9;
const FEN_FIELD: usize = 10;

/// Appends the fields of a game record.
pub fn write_game(out: &mut Vec<u8>, tags: &Tags<'_>, place: GamePlace) {
    for (i, (tag, _)) in FIELDS.iter().enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        if i == OFFSET_FIELD {
            match place {
                // By the format, the byte after the bracket.
                GamePlace::Tags(bracket) => put_number(out, bracket + 1),
                GamePlace::Moves(_) => put_number(out, NO_OFFSET),
            }
            continue;
        }
        match tags.get(tag.as_bytes()) {
            Some(value) => out.extend(value.iter().map(|byte| match byte {
                b'|' | b'\r' | b'\n' => b'/',
                _ => *byte,
            })),
            None if i == FEN_FIELD => {}
            None => out.push(b'*'),
        }
    }
}

/// Appends a fifteenth field to a game record on its way to the index: where a game without tags begins.
/// [`split_start`] takes it off again.
pub fn append_start(record: &mut Vec<u8>, start: &[u8]) {
    record.push(b'|');
    record.extend_from_slice(start);
}

/// A game record, and where the game begins if [`append_start`] appended that.
pub fn split_start(record: &[u8]) -> (&[u8], Option<&[u8]>) {
    let after_fields = memchr::memchr_iter(b'|', record).nth(FIELDS.len() - 1);
    match after_fields {
        Some(bar) => (&record[..bar], Some(&record[bar + 1..])),
        None => (record, None),
    }
}

/// What the index says of a game.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GameHeader {
    record: Vec<u8>,
    /// Where a game without tags begins, if that is known.
    start: Option<u64>,
    /// By which result the game counts, if that is known and its tags do not say it.
    counts_as: Option<GameResult>,
}

impl GameHeader {
    /// Reads a game record; `None` if it has too few fields or a malformed offset. More fields are
    /// passed over.
    pub fn parse(record: Vec<u8>) -> Option<GameHeader> {
        let bars = memchr::memchr_iter(b'|', &record).count();
        let header = GameHeader {
            record,
            start: None,
            counts_as: None,
        };
        let offset: i64 = parse_number(header.field(OFFSET_FIELD))?;
        (bars + 1 >= FIELDS.len() && offset >= NO_OFFSET).then_some(header)
    }

    /// Whether this is the record of the game that a text begins with.
    pub(in crate::index) fn is_of(&self, text: &[u8]) -> bool {
        let mut games = GameReader::new(text);
        if !games.next_game() {
            return false;
        }
        let Some(place) = self.place() else {
            return false;
        };
        let mut record = Vec::new();
        write_game(&mut record, games.tags(), place);
        record == self.record
    }

    /// Says where a game without tags begins.
    pub(in crate::index) fn set_start(&mut self, start: Option<u64>) {
        self.start = start;
    }

    /// Says by which result the game counts.
    pub(in crate::index) fn set_result(&mut self, result: GameResult) {
        self.counts_as = Some(result);
    }

    /// Whether the tags do not say by which result the game counts.
    pub(in crate::index) fn lacks_result(&self) -> bool {
        GameResult::from_token(self.field(RESULT_FIELD))
            .is_none_or(|tag| tag == GameResult::Unknown)
    }

    /// Where the game begins, `None` for a game without tags in an index without the explorer's data.
    pub(in crate::index) fn place(&self) -> Option<GamePlace> {
        match self.offset() {
            Some(offset) => Some(GamePlace::Tags(offset.saturating_sub(1))),
            None => self.start.map(GamePlace::Moves),
        }
    }

    /// A field by its number from 0, as the bytes that the PGN has.
    pub fn field(&self, number: usize) -> &[u8] {
        self.record
            .split(|byte| *byte == b'|')
            .nth(number)
            .unwrap_or_default()
    }

    /// A field as text: UTF-8, else taken to be Latin-1.
    fn text(&self, number: usize) -> Cow<'_, str> {
        tag_text(self.field(number))
    }

    /// The value of a tag that a game record has, as text; empty for another tag.
    pub fn tag(&self, name: &str) -> Cow<'_, str> {
        let number = FIELDS.iter().position(|(tag, _)| *tag == name);
        number.map_or_else(Cow::default, |number| self.text(number))
    }

    /// All fields in their order, by their names.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let fields = FIELDS.iter().enumerate();
        fields.map(|(number, (_, name))| match number {
            RESULT_FIELD => (*name, self.result()),
            _ => (*name, self.text(number)),
        })
    }

    /// The result: with the explorer's data the one by which the game counts, that of the `Result` tag or else that
    /// of its termination marker; without them the `Result` tag.
    pub fn result(&self) -> Cow<'_, str> {
        match self.counts_as {
            Some(result) => result.token().into(),
            None => self.text(RESULT_FIELD),
        }
    }

    /// Where the text after the bracket of the game's first tag is in the unpacked PGN, `None` if it has
    /// no tags.
    pub fn offset(&self) -> Option<u64> {
        parse_number(self.field(OFFSET_FIELD))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(pgn: &[u8], place: GamePlace) -> Vec<u8> {
        let mut games = GameReader::new(pgn);
        assert!(games.next_game());
        let mut out = Vec::new();
        write_game(&mut out, games.tags(), place);
        out
    }

    #[test]
    fn game_records() {
        let pgn = b"[Event \"a|b\"]\n[White \"M\xfcller\"]\n[WhiteElo \"\"]\n[Result \"1-0\"]\n\n*";
        let record = record(pgn, GamePlace::Tags(0));
        assert_eq!(record, b"M\xfcller||*|*|1-0|*|a/b|*|*|1||*|*|*");
        let header = GameHeader::parse(record).unwrap();
        assert_eq!(header.tag("White"), "Müller");
        assert_eq!(header.tag("WhiteElo"), "");
        assert_eq!(header.tag("Event"), "a/b");
        assert_eq!(header.offset(), Some(1));
        assert_eq!(header.tag("FEN"), "");
        assert_eq!(header.tag("EventType"), "*");
    }

    #[test]
    fn a_game_without_tags() {
        let record = record(b"1. e4 *", GamePlace::Moves(77));
        assert_eq!(record, b"*|*|*|*|*|*|*|*|*|-1||*|*|*");
        let mut header = GameHeader::parse(record.clone()).unwrap();
        assert_eq!((header.offset(), header.place()), (None, None));
        header.set_start(Some(77));
        assert_eq!(header.place(), Some(GamePlace::Moves(77)));
        let mut with_start = record.clone();
        append_start(&mut with_start, b"77");
        assert_eq!(split_start(&with_start), (&record[..], Some(&b"77"[..])));
        assert_eq!(split_start(&record), (&record[..], None));
    }

    #[test]
    fn malformed_records() {
        let whole = record(b"[White \"A\"]\n\n*", GamePlace::Tags(0));
        assert!(GameHeader::parse(whole.clone()).is_some());
        assert!(GameHeader::parse([&whole[..], b"|more"].concat()).is_some());
        assert_eq!(GameHeader::parse(whole[..whole.len() - 2].to_vec()), None);
        for offset in ["", "x", "-2", "1.0"] {
            let record = format!("A|*|*|*|*|*|*|*|*|{offset}||*|*|*");
            assert_eq!(GameHeader::parse(record.into_bytes()), None, "{offset}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in "[0-9|a-]{0,40}", fields: Vec<u8>) {
            for bytes in [bytes.into_bytes(), fields] {
                if let Some(header) = GameHeader::parse(bytes) {
                    let _ = (header.tag("White"), header.offset(), header.tag("EventType"));
                }
            }
        }
    }
}

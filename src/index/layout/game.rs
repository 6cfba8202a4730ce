//! Game records: the headers of games, as an index stores them.

use std::borrow::Cow;

use shakmaty::Color;

use super::{parse_number, put_number};
use crate::pgn::{GameReader, GameResult, Tags, rating, tag_text};

/// The value of the offset field in the record of a game without tags.
const NO_OFFSET: i64 = -1;

/// The byte offset in the decompressed PGN text at which a game begins. A game begins with its first tag
/// ([`Tags`](GameOffset::Tags)), or with its first move if it has no tags ([`Moves`](GameOffset::Moves)).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GameOffset {
    /// The offset of the opening bracket of the game's first tag.
    Tags(u64),
    /// The offset of the first move or move number, for a game without tags.
    Moves(u64),
}

impl GameOffset {
    /// Returns the offset in bytes at which the game begins in the decompressed PGN text.
    pub fn start(self) -> u64 {
        match self {
            GameOffset::Tags(start) | GameOffset::Moves(start) => start,
        }
    }

    /// Appends this offset to `out` as a field of a game record. For a game with tags, the field contains the offset of
    /// the byte after the opening bracket of the first tag. For a game without tags, it contains -1.
    pub(in crate::index) fn put_field(self, out: &mut Vec<u8>) {
        match self {
            // The format stores the offset of the byte after the bracket.
            GameOffset::Tags(bracket) => put_number(out, bracket + 1),
            GameOffset::Moves(_) => put_number(out, NO_OFFSET),
        }
    }
}

/// The 14 fields of a game record, in the order in which they are stored. Each element is a pair: the PGN tag whose
/// value the field contains, and the name of the field. The tenth field contains the offset of the game, so its tag is
/// empty.
pub(in crate::index) const FIELDS: [(&str, &str); 14] = [
    ("White", "white"),
    ("WhiteElo", "white_rating"),
    ("Black", "black"),
    ("BlackElo", "black_rating"),
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
pub(in crate::index) const OFFSET_FIELD: usize = 9;
pub(in crate::index) const FEN_FIELD: usize = 10;

/// Appends the record of a game to `out`. The record contains the values of 13 tags, and the offset `place` at which
/// the game begins in the PGN text. Vertical bars separate the fields. The value of a missing tag is `*`; if the tag
/// `FEN` is missing, its field is empty. Vertical bars and line breaks in tags are replaced by slashes.
pub fn write_game(out: &mut Vec<u8>, tags: &Tags<'_>, place: GameOffset) {
    for (i, (tag, _)) in FIELDS.iter().enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        if i == OFFSET_FIELD {
            place.put_field(out);
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

/// The header of a game (names, ratings, date and other tags), as an index stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GameHeader {
    record: Vec<u8>,
    /// The offset of the game in the PGN text, if it is known.
    place: Option<GameOffset>,
    /// The result with which the game is counted, if the index stores it and no tag states it.
    counts_as: Option<GameResult>,
}

impl GameHeader {
    /// Decodes the record of a game. Returns `None` if the record has fewer than 14 fields or a malformed offset.
    /// Additional fields are ignored.
    pub fn parse(record: Vec<u8>) -> Option<GameHeader> {
        let bars = memchr::memchr_iter(b'|', &record).count();
        let mut header = GameHeader {
            record,
            place: None,
            counts_as: None,
        };
        let offset: i64 = parse_number(header.field(OFFSET_FIELD))?;
        let offset_of_tag = header.offset();
        header.place = offset_of_tag.map(|offset| GameOffset::Tags(offset.saturating_sub(1)));
        (bars + 1 >= FIELDS.len() && offset >= NO_OFFSET).then_some(header)
    }

    /// Creates a header from `record`, the encoded record of a game. `place` is the offset at which the game begins.
    /// `result` is the result with which polybook counted the game. It replaces a `Result` tag that is missing or
    /// unknown.
    pub(in crate::index) fn of_game(
        record: Vec<u8>,
        place: GameOffset,
        result: GameResult,
    ) -> GameHeader {
        let mut header = GameHeader {
            record,
            place: Some(place),
            counts_as: None,
        };
        header.counts_as = header.lacks_result().then_some(result);
        header
    }

    /// Returns `true` if the first game in the PGN text `text` has the tags of this header.
    pub(in crate::index) fn matches_text(&self, text: &[u8]) -> bool {
        let mut games = GameReader::new(text);
        if !games.next_game() {
            return false;
        }
        let Some(place) = self.offset_of_text() else {
            return false;
        };
        let mut record = Vec::new();
        write_game(&mut record, games.tags(), place);
        record == self.record
    }

    /// Returns `true` if the result in the record, which comes from the tag `Result`, is neither a win nor a draw.
    fn lacks_result(&self) -> bool {
        GameResult::from_token(self.field(RESULT_FIELD))
            .is_none_or(|tag| tag == GameResult::Unknown)
    }

    /// Returns the offset at which the game begins in its PGN file. Returns `None` if the game has no tags and the
    /// index was made by `make-book --leveldb`, because such an index does not store the offset of this game.
    pub(in crate::index) fn offset_of_text(&self) -> Option<GameOffset> {
        self.place
    }

    /// Returns the bytes of field `number` of the record, counted from 0. Returns an empty slice if the record has no
    /// such field.
    pub fn field(&self, number: usize) -> &[u8] {
        self.record
            .split(|byte| *byte == b'|')
            .nth(number)
            .unwrap_or_default()
    }

    /// Returns field `number` of the record, counted from 0, as text. A field that is not valid UTF-8 is decoded as
    /// Latin-1.
    fn text(&self, number: usize) -> Cow<'_, str> {
        tag_text(self.field(number))
    }

    /// Returns the value of the tag `name`, such as `White`. Returns an empty string if game records do not contain
    /// this tag.
    pub fn tag(&self, name: &str) -> Cow<'_, str> {
        let number = FIELDS.iter().position(|(tag, _)| *tag == name);
        number.map_or_else(Cow::default, |number| self.text(number))
    }

    /// Returns an iterator over the fields of the record, in the order in which they are stored. Each item consists of
    /// the name of a field and its value.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let fields = FIELDS.iter().enumerate();
        fields.map(|(number, (_, name))| match number {
            RESULT_FIELD => (*name, self.result()),
            _ => (*name, self.text(number)),
        })
    }

    /// Returns the result of the game, such as `1-0`. In an explorer's index, the termination marker after the moves
    /// replaces a missing or unknown `Result` tag.
    pub fn result(&self) -> Cow<'_, str> {
        match self.counts_as {
            Some(result) => result.token().into(),
            None => self.text(RESULT_FIELD),
        }
    }

    /// Returns the rating of a player, or `None` if the player's rating tag contains no number from 1 to 4,000.
    pub fn rating(&self, color: Color) -> Option<u16> {
        rating(self.tag(color.fold_wb("WhiteElo", "BlackElo")).as_bytes())
    }

    /// Returns the number of half-moves that the tag `PlyCount` states, or `None` if it contains no number.
    pub fn ply_count(&self) -> Option<u32> {
        self.tag("PlyCount").trim().parse().ok()
    }

    /// Returns the offset of the byte after the opening bracket of the game's first tag, in the decompressed PGN text.
    /// Returns `None` if the game has no tags.
    pub fn offset(&self) -> Option<u64> {
        parse_number(self.field(OFFSET_FIELD))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(pgn: &[u8], place: GameOffset) -> Vec<u8> {
        let mut games = GameReader::new(pgn);
        assert!(games.next_game());
        let mut out = Vec::new();
        write_game(&mut out, games.tags(), place);
        out
    }

    #[test]
    fn game_records() {
        let pgn = b"[Event \"a|b\"]\n[White \"M\xfcller\"]\n[WhiteElo \"\"]\n[Result \"1-0\"]\n\n*";
        let record = record(pgn, GameOffset::Tags(0));
        assert_eq!(record, b"M\xfcller||*|*|1-0|*|a/b|*|*|1||*|*|*");
        let header = GameHeader::parse(record).unwrap();
        assert_eq!(header.tag("White"), "Müller");
        assert_eq!(header.tag("WhiteElo"), "");
        assert_eq!(header.rating(Color::White), None);
        assert_eq!(header.tag("Event"), "a/b");
        assert_eq!(header.offset(), Some(1));
        assert_eq!(header.tag("FEN"), "");
        assert_eq!(header.tag("EventType"), "*");
    }

    #[test]
    fn a_game_without_tags() {
        let record = record(b"1. e4 *", GameOffset::Moves(77));
        assert_eq!(record, b"*|*|*|*|*|*|*|*|*|-1||*|*|*");
        let header = GameHeader::parse(record).unwrap();
        assert_eq!((header.offset(), header.offset_of_text()), (None, None));
    }

    #[test]
    fn malformed_records() {
        let whole = record(b"[White \"A\"]\n\n*", GameOffset::Tags(0));
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

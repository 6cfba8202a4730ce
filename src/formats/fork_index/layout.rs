//! Encodes and decodes the keys and values of the index that polyglot's LevelDB fork defines. Both are byte strings, in
//! which numbers are decimal. LevelDB sorts the keys by their bytes.
//!
//! | key | value |
//! |---|---|
//! | `game_<id>_data` | the record of a game: 14 fields, separated by vertical bars; see [`GameHeader`] |
//! | `<key>` | the ids of the games that reached the position, ascending, a comma after each |
//! | `<key>_freq`, `<key>_white_score`, `<key>_draws`, `<key>_moves` | see [`PositionStats`] |
//! | `total_game_count` | the number of games in all inputs |
//! | `pgn_filename` | the absolute path of the first input |
//! | `pgn_file_count`, `pgn_file_<i>` | only with several inputs: their number, and for each input `<id of its first game>\|<path>` |
//! | `variant` | the variant of the games, or `auto` if there are several; absent for standard chess |
//!
//! The key `10` of a position sorts before the keys of its statistics, such as `10_freq`. All position keys that begin
//! with the same digits, such as `105`, sort between these two. Entries are written in this order, so statistics must
//! wait until all these position keys have been written. [`ends_before`] returns `true` when this is the case.

use std::borrow::Cow;

use shakmaty::Color;

use crate::{
    chess::position::BookMove,
    formats::fork_index::entries::Entries,
    games::{
        pgn::{Date, GameReader, GameResult, Tags, rating, tag_text},
        results::Results,
    },
};

/// The LevelDB key of the total number of games in all input files.
pub const TOTAL_GAMES: &[u8] = b"total_game_count";
/// The LevelDB key of the path of the first input file.
pub const FILE_NAME: &[u8] = b"pgn_filename";
/// The LevelDB key of the number of input files. An index of a single file has no such entry.
pub const FILE_COUNT: &[u8] = b"pgn_file_count";
/// The LevelDB key of the variant of the games. An index of standard chess has no such entry.
pub const VARIANT: &[u8] = b"variant";
/// A LevelDB key that occurs only in indexes with a different layout, which were made by other programs. polybook does
/// not open an index that contains this key.
pub const NUM_PASSES: &[u8] = b"numPasses";

/// Returns the game id in the LevelDB key of a game record, such as `game_17_data`. Returns `None` for any other key.
pub(crate) fn game_id(key: &[u8]) -> Option<u32> {
    parse_number(key.strip_prefix(b"game_")?.strip_suffix(b"_data")?)
}

/// Returns the LevelDB key of the record of the game with the id `id`.
pub fn game_key(id: u32) -> Vec<u8> {
    format!("game_{id}_data").into_bytes()
}

/// Returns the LevelDB key of the entry that lists the games of a position. `key` is the Polyglot hash key of the
/// position.
pub fn position_key(key: u64) -> Vec<u8> {
    key.to_string().into_bytes()
}

/// Returns the LevelDB key of the entry with the path of an input file. `number` is the number of the input file,
/// counted from 0.
pub fn file_key(number: usize) -> Vec<u8> {
    format!("pgn_file_{number}").into_bytes()
}

/// Returns the LevelDB key of the entry that contains the options with which games were selected from an input file.
/// `number` is the number of the input file, counted from 0.
pub fn options_key(number: usize) -> Vec<u8> {
    format!("options_{number}").into_bytes()
}

/// Returns the LevelDB key of the entry that names the default variant of an input file: the variant of its games
/// without a `Variant` tag. `number` is the number of the input file, counted from 0.
pub fn untagged_key(number: usize) -> Vec<u8> {
    format!("untagged_variant_{number}").into_bytes()
}

/// Encodes the description of an input file: the id of its first game, a vertical bar, and its path.
pub fn file_value(first_id: u64, path: &[u8]) -> Vec<u8> {
    let mut value = format!("{first_id}|").into_bytes();
    value.extend_from_slice(path);
    value
}

/// Parses the description of an input file that [`file_value`] encoded. Returns the id of the file's first game
/// and the path of the file, or `None` if the value is malformed.
pub fn parse_file_value(value: &[u8]) -> Option<(u64, &[u8])> {
    let bar = value.iter().position(|byte| *byte == b'|')?;
    Some((parse_number(&value[..bar])?, &value[bar + 1..]))
}

/// Parses a decimal number. Returns `None` if `value` is not a decimal number that fits into `N`.
pub fn parse_number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Appends the decimal digits of `number` to `out`.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns `true` if the LevelDB key `next` does not begin with `number`, the digits of a position key. If keys are
/// read in ascending order, starting at `number`, no later key begins with these digits either.
#[inline]
pub fn ends_before(number: &[u8], next: &[u8]) -> bool {
    !next.starts_with(number)
}

/// The maximum length in bytes of a value that lists the game ids of a position. The value is stored in a LevelDB
/// block, which must be smaller than 4 GiB. Other entries can take up to 64 KiB of this block before the value.
pub const MAX_LIST_BYTES: u64 = u32::MAX as u64 - (1 << 16);

/// The error message for a position whose list of games is too long for one value.
pub const TOO_LONG: &str =
    "an index can list at most about 440 million games of one position: make several indexes";

/// Returns the number of bytes that the game id `id` takes in a list of game ids. The list contains the decimal digits
/// of each id, followed by a comma.
pub fn id_len(id: u32) -> u64 {
    u64::from(id.checked_ilog10().unwrap_or(0)) + 2
}

/// Appends the decimal digits of a game id and a comma to a list of game ids.
#[inline]
pub fn write_id(out: &mut Vec<u8>, id: u32) {
    put_number(out, id);
    out.push(b',');
}

/// Parses the list of game ids that an index stores for a position. Returns `None` if the value is malformed, for
/// example if the ids are not in ascending order.
pub fn parse_ids(value: &[u8]) -> Option<Vec<u32>> {
    let mut reader = IdReader::default();
    let mut ids = Vec::with_capacity(memchr::memchr_iter(b',', value).count());
    reader.read(value, |id| {
        ids.push(id);
        Some(())
    })?;
    reader.is_done().then_some(ids)
}

/// A parser for the list of a position's game ids. The list can be parsed in several parts, so a long list need not be
/// held in memory.
#[derive(Copy, Clone, Default, Debug)]
pub struct IdReader {
    /// The value of the digits that were read after the last comma, or `None` if there are none.
    open: Option<u32>,
    /// The last complete id.
    last: Option<u32>,
}

impl IdReader {
    /// Parses the next bytes of a list of game ids, and calls `f` with each id that is complete. Digits of an
    /// incomplete id at the end are kept for the next call. Returns `None` if the list is malformed or if `f` returns
    /// `None`.
    #[inline]
    pub fn read(&mut self, part: &[u8], mut f: impl FnMut(u32) -> Option<()>) -> Option<()> {
        for byte in part {
            match (byte, self.open) {
                (b'0'..=b'9', open) => {
                    let tens = open.unwrap_or(0).checked_mul(10)?;
                    self.open = Some(tens.checked_add(u32::from(byte - b'0'))?);
                }
                (b',', Some(id)) if self.last.is_none_or(|last| last < id) => {
                    f(id)?;
                    self.last = self.open.take();
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Returns `true` if the bytes parsed so far end with a complete game id and its comma. If the result is `false`
    /// after the last part, the list is incomplete.
    pub fn is_done(&self) -> bool {
        self.open.is_none()
    }
}

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
    pub(crate) fn put_field(self, out: &mut Vec<u8>) {
        match self {
            // The format stores the offset of the byte after the bracket.
            GameOffset::Tags(bracket) => put_number(out, bracket + 1),
            GameOffset::Moves(_) => put_number(out, NO_OFFSET),
        }
    }
}

/// The fields of a game record, in the order in which they are stored. Each element contains the PGN tag whose value
/// the field contains, and the name of the field. The tag of the tenth field is empty, because this field contains the
/// offset of the game. Records of polyglot's LevelDB fork consist of the first [`FORK_FIELDS`] fields, and records of
/// an explorer index have all fields.
pub(crate) const FIELDS: [(&str, &str); 15] = [
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
    ("Round", "round"),
];
/// The number of fields in a game record of polyglot's LevelDB fork.
pub(crate) const FORK_FIELDS: usize = 14;
const RESULT_FIELD: usize = 4;
pub(crate) const OFFSET_FIELD: usize = 9;
pub(crate) const FEN_FIELD: usize = 10;

/// Appends the record of a game to `out`. The record consists of the first `fields` fields of [`FIELDS`], separated by
/// vertical bars: the values of tags, and the offset `place` at which the game begins in the PGN text. The value of a
/// missing tag is `*`, except that the field of a missing `FEN` tag is empty. Vertical bars and line breaks in tags are
/// replaced by slashes.
pub(crate) fn write_game(out: &mut Vec<u8>, tags: &Tags<'_>, place: GameOffset, fields: usize) {
    for (i, (tag, _)) in FIELDS[..fields].iter().enumerate() {
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

/// The header of a game (names, ratings, date and other tags), as stored in an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GameHeader {
    record: Vec<u8>,
    /// The offset of the game in the PGN text, if it is known.
    place: Option<GameOffset>,
    /// The result with which the game is counted, if the index stores this result and no tag states it.
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
        // The field contains the offset of the byte after the bracket.
        let after_bracket = u64::try_from(offset).ok();
        header.place = after_bracket.map(|offset| GameOffset::Tags(offset.saturating_sub(1)));
        (bars + 1 >= FORK_FIELDS && offset >= NO_OFFSET).then_some(header)
    }

    /// Creates a header from `record`, the encoded record of a game. `place` is the offset at which the game begins.
    /// `result`, the result with which polybook counted the game, replaces a `Result` tag that is missing or unknown.
    pub(crate) fn of_game(record: Vec<u8>, place: GameOffset, result: GameResult) -> GameHeader {
        let mut header = GameHeader {
            record,
            place: Some(place),
            counts_as: None,
        };
        header.counts_as = header.lacks_result().then_some(result);
        header
    }

    /// Returns `true` if the PGN text `text` begins with a tag, and its first game has the tags of this header.
    pub(crate) fn matches_text(&self, text: &[u8]) -> bool {
        let mut games = GameReader::new(text);
        if !text.starts_with(b"[") || !games.next_game() || games.tags().is_empty() {
            return false;
        }
        let Some(place) = self.offset_of_text() else {
            return false;
        };
        let mut record = Vec::new();
        let fields = self.record.split(|byte| *byte == b'|').count();
        write_game(&mut record, games.tags(), place, fields.min(FIELDS.len()));
        record == self.record
    }

    /// Returns `true` if the result in the record, which comes from the tag `Result`, is neither a win nor a draw.
    fn lacks_result(&self) -> bool {
        GameResult::from_token(self.field(RESULT_FIELD))
            .is_none_or(|tag| tag == GameResult::Unknown)
    }

    /// Returns the offset at which the game begins in its PGN file. Returns `None` if the game has no tags and the
    /// index was made by `make-book --leveldb`, because such an index does not store the offset of this game.
    pub(crate) fn offset_of_text(&self) -> Option<GameOffset> {
        self.place
    }

    /// Returns the bytes of the record's field with the number `number`, counted from 0. Returns an empty slice if the
    /// record has no such field.
    pub fn field(&self, number: usize) -> &[u8] {
        self.record
            .split(|byte| *byte == b'|')
            .nth(number)
            .unwrap_or_default()
    }

    /// Returns the text of the record's field with the number `number`, counted from 0. A field that is not valid UTF-8
    /// is decoded as Latin-1.
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
        let stored = self.record.split(|byte| *byte == b'|').count();
        let fields = FIELDS.iter().enumerate().take(stored);
        fields.map(|(number, (_, name))| match number {
            RESULT_FIELD => (*name, self.result()),
            _ => (*name, self.text(number)),
        })
    }

    /// Returns the result of the game, such as `1-0`. In an explorer index, the termination marker after the moves
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

    /// Returns the date of the game from the tag `Date` or, if its year is unknown, from the tag `EventDate`.
    pub fn date(&self) -> Date {
        let dates = ["Date", "EventDate"].map(|name| Date::of_tag(self.tag(name).as_bytes()));
        let known = dates.into_iter().find(|date| date.year().is_some());
        known.unwrap_or_default()
    }

    /// Returns the offset in bytes, counted from 0, at which the game begins in the decompressed PGN text. Returns
    /// `None` if the game has no tags and the index was made by `make-book --leveldb`, because such an index does not
    /// store the offset of this game.
    pub fn offset(&self) -> Option<u64> {
        self.place.map(GameOffset::start)
    }
}

/// The statistics of a position: the number of games, the results and the moves. An index contains statistics only if
/// it was made with `--index-stats`.
///
/// Unfinished games are counted as draws, unless they were excluded when the index was made. The key of each entry is
/// the decimal position key with a suffix:
///
/// | key | value |
/// |---|---|
/// | `<key>_draws` | the number of drawn games |
/// | `<key>_freq` | the number of games that reached the position |
/// | `<key>_moves` | the moves that were played in the position as 16-bit Polyglot numbers, ascending, each followed by a comma |
/// | `<key>_white_score` | the number of White's wins minus the number of Black's wins |
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PositionStats {
    /// The number of games that reached the position.
    pub games: u64,
    /// The number of White's wins minus the number of Black's wins.
    pub white_score: i64,
    /// The number of drawn games.
    pub draws: u64,
    /// The moves that were played in the position, deduplicated and sorted by number.
    pub moves: Vec<BookMove>,
}

const DRAWS: &[u8] = b"_draws";
const FREQ: &[u8] = b"_freq";
const MOVES: &[u8] = b"_moves";
const WHITE_SCORE: &[u8] = b"_white_score";

impl PositionStats {
    /// The suffixes of the four LevelDB keys that hold the statistics of a position, in ascending order. A position
    /// has either all four entries or none.
    pub(crate) const NAMES: [&[u8]; 4] = [DRAWS, FREQ, MOVES, WHITE_SCORE];

    /// Returns the wins, draws and losses of the games. The number of unfinished games is always 0, because the
    /// statistics do not distinguish them from draws. If the statistics are inconsistent, a number of wins that would
    /// be negative is 0.
    pub fn results(&self) -> Results {
        let decided = i128::from(self.games) - i128::from(self.draws);
        let wins = |score: i64| u64::try_from((decided + i128::from(score)) / 2).unwrap_or(0);
        Results {
            white: wins(self.white_score),
            draws: self.draws,
            black: wins(self.white_score.saturating_neg()),
            unfinished: 0,
        }
    }

    /// Parses `value`, which contains one statistic of a position, and stores the statistic in `self`. `name` is the
    /// suffix of the statistic's LevelDB key, such as `_draws`. Returns `None` if the value is malformed or the suffix
    /// is unknown.
    pub(crate) fn read(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match name {
            DRAWS => self.draws = parse_number(value)?,
            FREQ => self.games = parse_number(value)?,
            MOVES => self.moves = parse_moves(value)?,
            WHITE_SCORE => self.white_score = parse_number(value)?,
            _ => return None,
        }
        Some(())
    }

    /// Returns `true` if the statistics are consistent: White's score (wins minus losses) is possible with the numbers
    /// of games and draws, and the moves are sorted and contain no duplicates.
    pub(crate) fn is_possible(&self) -> bool {
        let decided = i128::from(self.games) - i128::from(self.draws);
        let score = i128::from(self.white_score);
        score.abs() <= decided
            && (decided + score) % 2 == 0
            && self.moves.is_sorted_by(|a, b| a < b)
    }

    /// Appends the four entries of a position's statistics to `out`, sorted by key: draws, games, moves and White's
    /// score. Each key begins with `number`, the position key in decimal digits.
    pub(crate) fn write(&self, number: &[u8], out: &mut Entries) {
        for name in PositionStats::NAMES {
            out.begin(number);
            let value = out.begin(name);
            match name {
                DRAWS => put_number(value, self.draws),
                FREQ => put_number(value, self.games),
                MOVES => put_moves(value, &self.moves),
                _ => put_number(value, self.white_score),
            }
            out.end(number.len() + name.len());
        }
    }
}

fn put_moves(value: &mut Vec<u8>, moves: &[BookMove]) {
    for mv in moves {
        put_number(value, mv.0);
        value.push(b',');
    }
}

/// Parses a list of moves, in which each move is written as a 16-bit number in decimal digits and a comma. Returns
/// `None` if the list is malformed.
fn parse_moves(mut value: &[u8]) -> Option<Vec<BookMove>> {
    let mut moves = Vec::new();
    while !value.is_empty() {
        let comma = memchr::memchr(b',', value)?;
        moves.push(BookMove(parse_number(&value[..comma])?));
        value = &value[comma + 1..];
    }
    Some(moves)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::entries::Value;
    use super::*;

    proptest! {
        #[test]
        fn inputs_come_back(first_id: u64, path: Vec<u8>) {
            let value = file_value(first_id, &path);
            prop_assert_eq!(parse_file_value(&value), Some((first_id, &path[..])));
        }

        #[test]
        fn any_input_is_read(bytes: Vec<u8>) {
            let _ = parse_file_value(&bytes);
            let _ = parse_number::<u64>(&bytes);
        }
    }

    #[test]
    fn malformed_ids_are_refused() {
        for value in [
            "1",
            "1,2",
            ",",
            "1,,2,",
            "2,1,",
            "1,1,",
            "1,x,",
            "-1,",
            "+1,",
            " 1,",
            "4294967296,",
        ] {
            assert_eq!(parse_ids(value.as_bytes()), None, "{value}");
        }
        assert_eq!(parse_ids(b""), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn ids_come_back(ids in proptest::collection::btree_set(any::<u32>(), 0..50)) {
            let mut value = Vec::new();
            ids.iter().for_each(|id| write_id(&mut value, *id));
            prop_assert_eq!(value.len() as u64, ids.iter().map(|id| id_len(*id)).sum::<u64>());
            prop_assert_eq!(parse_ids(&value), Some(Vec::from_iter(ids)));
        }

        #[test]
        fn reading_in_parts_returns_equal_ids(bytes in "[0-9,x]{0,30}", cut in 0..31usize) {
            let (mut reader, mut ids) = (IdReader::default(), Vec::new());
            let (first, second) = bytes.as_bytes().split_at(cut.min(bytes.len()));
            let mut read = |part| reader.read(part, |id| {
                ids.push(id);
                Some(())
            });
            let is_read = read(first).is_some() && read(second).is_some() && reader.is_done();
            prop_assert_eq!(parse_ids(bytes.as_bytes()), is_read.then_some(ids));
        }
    }

    fn record(pgn: &[u8], place: GameOffset) -> Vec<u8> {
        let mut games = GameReader::new(pgn);
        assert!(games.next_game());
        let mut out = Vec::new();
        write_game(&mut out, games.tags(), place, FORK_FIELDS);
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
        assert_eq!(header.offset(), Some(0));
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
        fn any_record_is_read(bytes in "[0-9|a-]{0,40}", fields: Vec<u8>) {
            for bytes in [bytes.into_bytes(), fields] {
                if let Some(header) = GameHeader::parse(bytes) {
                    let _ = (header.tag("White"), header.offset(), header.tag("EventType"));
                }
            }
        }
    }

    /// Returns the encoded entries of a position.
    fn written(stats: &PositionStats, key: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut entries = Entries::default();
        stats.write(key.to_string().as_bytes(), &mut entries);
        let value = |number| match entries.value(number) {
            Value::Held(value) => value.to_vec(),
            Value::Spilled(_) => unreachable!("statistics are short"),
        };
        (0..entries.len())
            .map(|number| (entries.key(number).to_vec(), value(number)))
            .collect()
    }

    #[test]
    fn results_follow_from_the_statistics() {
        let stats = PositionStats {
            games: 10,
            white_score: -2,
            draws: 4,
            moves: vec![],
        };
        assert_eq!((stats.results().white, stats.results().black), (2, 4));
        let hostile = PositionStats {
            games: 1,
            white_score: i64::MIN,
            draws: 9,
            moves: vec![],
        };
        assert_eq!(hostile.results().white, 0);
    }

    #[test]
    fn malformed_moves() {
        for value in ["7", "7,,", ",", "x,", "65536,", "-1,"] {
            assert_eq!(parse_moves(value.as_bytes()), None, "{value}");
        }
        assert_eq!(parse_moves(b""), Some(vec![]));
    }

    proptest! {
        #[test]
        fn statistics_come_back(games: u64, white_score: i64, draws: u64, moves in proptest::collection::vec(any::<u16>(), 0..9), key: u64) {
            let stats = PositionStats { games, white_score, draws, moves: moves.into_iter().map(BookMove).collect() };
            let entries = written(&stats, key);
            prop_assert!(entries.is_sorted());
            let names: Vec<_> = entries.iter().map(|entry| entry.0.clone()).collect();
            let number = key.to_string();
            let keys = PositionStats::NAMES.map(|name| [number.as_bytes(), name].concat());
            prop_assert_eq!(names, keys);
            prop_assert_eq!(parse_number(&entries[0].1), Some(draws));
            prop_assert_eq!(parse_number(&entries[1].1), Some(games));
            prop_assert_eq!(parse_moves(&entries[2].1), Some(stats.moves));
            prop_assert_eq!(parse_number(&entries[3].1), Some(white_score));
        }

        #[test]
        fn any_moves_are_read(bytes: Vec<u8>) {
            let _ = parse_moves(&bytes);
        }
    }
}

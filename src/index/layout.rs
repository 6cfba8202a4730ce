//! Every key and value of the index, to write and to read. Numbers are decimal, keys and values
//! bytes; LevelDB keeps the keys in the order of their bytes.
//!
//! | key | value |
//! |---|---|
//! | `game_<id>_data` | 14 fields joined by a vertical bar, see [`GameHeader`] |
//! | `<key>` | the ids of the games that reached the position, ascending, a comma behind each |
//! | `<key>_freq`, `<key>_white_score`, `<key>_draws`, `<key>_moves` | see [`PositionStats`] |
//! | `total_game_count` | how many games the input has |
//! | `pgn_filename` | absolute path of the first PGN |
//! | `pgn_file_count`, `pgn_file_<i>` | with several inputs: how many, and `<first id>\|<path>` |
//! | `variant` | the variant of the games, `auto` for several; not there for standard chess |
//!
//! A decimal number sorts before the same number with an underscore behind it, but between the two
//! stand all numbers that begin with its digits. [`ends_before`] tells when the second is due.

use std::{borrow::Cow, io::Write};

use crate::{pgn::Tags, position::BookMove};

/// How many games the input has.
pub const TOTAL_GAMES: &[u8] = b"total_game_count";
/// The first input.
pub const FILE_NAME: &[u8] = b"pgn_filename";
/// How many inputs there are, if there are several.
pub const FILE_COUNT: &[u8] = b"pgn_file_count";
/// The variant of the games, `auto` for several; not there for standard chess.
pub const VARIANT: &[u8] = b"variant";
/// A key of another layout, which front-ends tell by it. Never written.
pub const NUM_PASSES: &[u8] = b"numPasses";

/// What a game that has no tags says of its place.
pub const NO_OFFSET: i64 = -1;

/// The fields of a game record in their order, by the tags they come from. The tenth is no tag but
/// where the game stands.
const FIELDS: [&str; 14] = [
    "White",
    "WhiteElo",
    "Black",
    "BlackElo",
    "Result",
    "Date",
    "Event",
    "Site",
    "ECO",
    "",
    "FEN",
    "PlyCount",
    "EventDate",
    "EventType",
];
const OFFSET_FIELD: usize = 9;
const FEN_FIELD: usize = 10;

/// The key of a game record.
pub fn game_key(id: u32) -> Vec<u8> {
    format!("game_{id}_data").into_bytes()
}

/// The key of an input's place and name.
pub fn file_key(number: usize) -> Vec<u8> {
    format!("pgn_file_{number}").into_bytes()
}

/// The value for an input.
pub fn file_value(first_id: u64, path: &[u8]) -> Vec<u8> {
    let mut value = format!("{first_id}|").into_bytes();
    value.extend_from_slice(path);
    value
}

/// Reads the value for an input.
pub fn parse_file_value(value: &[u8]) -> Option<(u64, &[u8])> {
    let bar = value.iter().position(|byte| *byte == b'|')?;
    Some((parse_number(&value[..bar])?, &value[bar + 1..]))
}

/// Reads a decimal number.
pub fn parse_number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Whether everything that begins with the digits `number` has been passed when `next` comes.
#[inline]
pub fn ends_before(number: &[u8], next: &[u8]) -> bool {
    !next.starts_with(number)
}

/// Appends the fields of a game record. `offset` is where the text behind the bracket of its first
/// tag stands, [`NO_OFFSET`] if it has none.
pub fn write_game(out: &mut Vec<u8>, tags: &Tags<'_>, offset: i64) {
    for (i, name) in FIELDS.iter().enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        if i == OFFSET_FIELD {
            let mut buffer = itoa::Buffer::new();
            out.extend_from_slice(buffer.format(offset).as_bytes());
            continue;
        }
        match tags.get(name.as_bytes()) {
            Some(value) => out.extend(value.iter().map(|byte| match byte {
                b'|' | b'\r' | b'\n' => b'/',
                _ => *byte,
            })),
            None if i == FEN_FIELD => {}
            None => out.push(b'*'),
        }
    }
}

/// What the index says of a game.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GameHeader {
    record: Vec<u8>,
}

impl GameHeader {
    /// Reads a game record; `None` if it has too few fields. More are of no concern.
    pub fn parse(record: Vec<u8>) -> Option<GameHeader> {
        let bars = record.iter().filter(|byte| **byte == b'|').count();
        (bars + 1 >= FIELDS.len()).then_some(GameHeader { record })
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
        let bytes = self.field(number);
        match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => bytes
                .iter()
                .copied()
                .map(char::from)
                .collect::<String>()
                .into(),
        }
    }

    /// White's name.
    pub fn white(&self) -> Cow<'_, str> {
        self.text(0)
    }

    /// White's rating.
    pub fn white_elo(&self) -> Cow<'_, str> {
        self.text(1)
    }

    /// Black's name.
    pub fn black(&self) -> Cow<'_, str> {
        self.text(2)
    }

    /// Black's rating.
    pub fn black_elo(&self) -> Cow<'_, str> {
        self.text(3)
    }

    /// The `Result` tag.
    pub fn result(&self) -> Cow<'_, str> {
        self.text(4)
    }

    /// The `Date` tag.
    pub fn date(&self) -> Cow<'_, str> {
        self.text(5)
    }

    /// The `Event` tag.
    pub fn event(&self) -> Cow<'_, str> {
        self.text(6)
    }

    /// The `Site` tag.
    pub fn site(&self) -> Cow<'_, str> {
        self.text(7)
    }

    /// The `ECO` tag.
    pub fn eco(&self) -> Cow<'_, str> {
        self.text(8)
    }

    /// Where the text behind the bracket of the game's first tag stands in the unpacked PGN, `None` if
    /// it has no tags.
    pub fn offset(&self) -> Option<u64> {
        parse_number(self.field(OFFSET_FIELD))
    }

    /// The `FEN` tag, empty if there is none.
    pub fn fen(&self) -> Cow<'_, str> {
        self.text(FEN_FIELD)
    }

    /// The `PlyCount` tag.
    pub fn ply_count(&self) -> Cow<'_, str> {
        self.text(11)
    }

    /// The `EventDate` tag.
    pub fn event_date(&self) -> Cow<'_, str> {
        self.text(12)
    }

    /// The `EventType` tag.
    pub fn event_type(&self) -> Cow<'_, str> {
        self.text(13)
    }
}

/// Appends an id to the value of a position.
#[inline]
pub fn write_id(out: &mut Vec<u8>, id: u32) {
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(id).as_bytes());
    out.push(b',');
}

/// The ids of the games that reached a position, held as they stand in the index.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GameIds {
    value: Vec<u8>,
}

impl GameIds {
    /// The ids in the value of a position.
    pub fn new(value: Vec<u8>) -> GameIds {
        GameIds { value }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        memchr::memchr_iter(b',', &self.value).count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The ids, ascending. What is no number is passed over.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.value
            .split(|byte| *byte == b',')
            .filter_map(parse_number)
    }
}

/// The statistics of a position that `--index-stats` adds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PositionStats {
    /// The games that reached it.
    pub games: u64,
    /// White's wins less Black's.
    pub white_score: i64,
    /// Games that neither side won.
    pub draws: u64,
    /// The moves played there, each once, in the order of their numbers.
    pub moves: Vec<BookMove>,
}

/// The four keys of a position's statistics, in the order of their bytes.
const STATS: [&[u8]; 4] = [b"_draws", b"_freq", b"_moves", b"_white_score"];

impl PositionStats {
    /// How many games White won; 0 if the numbers contradict each other.
    pub fn white_wins(&self) -> u64 {
        self.decided(self.white_score)
    }

    /// How many games Black won.
    pub fn black_wins(&self) -> u64 {
        self.decided(self.white_score.saturating_neg())
    }

    fn decided(&self, score: i64) -> u64 {
        let decided = i128::from(self.games) - i128::from(self.draws);
        u64::try_from((decided + i128::from(score)) / 2).unwrap_or(0)
    }

    /// The keys and values to write for the position whose key has the digits `number`, in the order
    /// in which they stand.
    pub fn entries(&self, number: &[u8]) -> [(Vec<u8>, Vec<u8>); 4] {
        let mut moves = Vec::new();
        for mv in &self.moves {
            // Writing to memory does not fail.
            let _ = write!(moves, "{},", mv.0);
        }
        let values = [
            self.draws.to_string().into_bytes(),
            self.games.to_string().into_bytes(),
            moves,
            self.white_score.to_string().into_bytes(),
        ];
        let mut values = values.into_iter();
        STATS.map(|name| ([number, name].concat(), values.next().unwrap_or_default()))
    }

    /// Reads the statistics of a position through `get`; `None` if there are none.
    pub fn read<E>(
        key: u64,
        mut get: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<PositionStats>, E> {
        let number = key.to_string().into_bytes();
        let [draws, freq, moves, score] = STATS.map(|name| [&number[..], name].concat());
        let Some(games) = get(&freq)?.as_deref().and_then(parse_number) else {
            return Ok(None);
        };
        let moves = get(&moves)?.unwrap_or_default();
        Ok(Some(PositionStats {
            games,
            white_score: get(&score)?.as_deref().and_then(parse_number).unwrap_or(0),
            draws: get(&draws)?.as_deref().and_then(parse_number).unwrap_or(0),
            moves: moves
                .split(|byte| *byte == b',')
                .filter_map(parse_number)
                .map(BookMove)
                .collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pgn::GameReader;

    fn record(pgn: &[u8], offset: i64) -> Vec<u8> {
        let mut games = GameReader::new(pgn);
        assert!(games.next_game());
        let mut out = Vec::new();
        write_game(&mut out, games.tags(), offset);
        out
    }

    #[test]
    fn game_records() {
        let pgn = b"[Event \"a|b\"]\n[White \"M\xfcller\"]\n[WhiteElo \"\"]\n[Result \"1-0\"]\n\n*";
        let record = record(pgn, 1);
        assert_eq!(record, b"M\xfcller||*|*|1-0|*|a/b|*|*|1||*|*|*");
        let header = GameHeader::parse(record).unwrap();
        assert_eq!(header.white(), "Müller");
        assert_eq!(header.white_elo(), "");
        assert_eq!(header.event(), "a/b");
        assert_eq!(header.offset(), Some(1));
        assert_eq!(header.fen(), "");
        assert_eq!(header.event_type(), "*");
    }

    #[test]
    fn a_game_without_tags() {
        let header = GameHeader::parse(record(b"1. e4 *", NO_OFFSET)).unwrap();
        assert_eq!(header.field(9), b"-1");
        assert_eq!(header.offset(), None);
    }

    #[test]
    fn results_follow_from_the_statistics() {
        let stats = PositionStats {
            games: 10,
            white_score: -2,
            draws: 4,
            moves: vec![],
        };
        assert_eq!((stats.white_wins(), stats.black_wins()), (2, 4));
        let hostile = PositionStats {
            games: 1,
            white_score: i64::MIN,
            draws: 9,
            moves: vec![],
        };
        assert_eq!(hostile.white_wins(), 0);
    }

    proptest! {
        #[test]
        fn statistics_come_back(games: u64, white_score: i64, draws: u64, moves in proptest::collection::vec(any::<u16>(), 0..9), key: u64) {
            let stats = PositionStats { games, white_score, draws, moves: moves.into_iter().map(BookMove).collect() };
            let entries = stats.entries(key.to_string().as_bytes());
            prop_assert!(entries.is_sorted());
            let get = |key: &[u8]| Ok::<_, ()>(entries.iter().find(|entry| entry.0 == key).map(|entry| entry.1.clone()));
            prop_assert_eq!(PositionStats::read(key, get).unwrap(), Some(stats));
        }

        #[test]
        fn ids_come_back(ids in proptest::collection::vec(any::<u32>(), 0..50)) {
            let mut value = Vec::new();
            ids.iter().for_each(|id| write_id(&mut value, *id));
            let found = GameIds::new(value);
            prop_assert_eq!(found.len(), ids.len());
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), ids);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = parse_file_value(&bytes);
            let _ = GameIds::new(bytes.clone()).iter().count();
            if let Some(header) = GameHeader::parse(bytes) {
                let _ = (header.white(), header.offset(), header.event_type());
            }
        }
    }
}

//! The layout of a store of evaluations, and the types of its contents.
//!
//! | part | content |
//! |---|---|
//! | the first 44 bytes | eight zeros, `polybook evals 2`, zeros |
//! | 44 bytes for each position, by ascending key | a record |
//! | 4 bytes for each block of 64 records; the last block may have fewer | the CRC-32C of the records of the block |
//! | all other bytes except the last 8 | a JSON document: [`Footer`] |
//! | the next 4 bytes | the CRC-32C of the JSON document |
//! | the last 4 bytes | the number of bytes of the JSON document |
//!
//! | bytes of a record | content |
//! |---|---|
//! | 0-7 | the key of the position, computed by [`eval_key`] |
//! | 8-31 | the position, packed by the crate `shakmaty` without move counters, followed by zeros |
//! | 32-33 | the score, seen from White, as [`Score::to_code`] returns it |
//! | 34 | the depth; 255 for more |
//! | 35 | the origin of the evaluation: the index of its name in the footer |
//! | 36-43 | the nodes |
//!
//! All numbers are big-endian. Records contain the position itself, so that a store can be converted to EPD.

use std::fmt;

use serde::{Deserialize, Serialize};
use shakmaty::{
    CastlingMode, Chess, Color, EnPassantMode, FromSetup, PositionError, packed::PackedSetup,
};

use crate::{
    chess::position::{Keyed, Rules},
    storage::checksum::Checksum,
};

/// The size of a record in bytes. A record contains a position and its evaluation.
pub(super) const RECORD_SIZE: usize = 44;

/// The header of a store of evaluations: eight zero bytes, followed by the name and the version of the format. The header
/// has the length of a record. Its zero bytes stand where a record has its position key, so the header sorts before all
/// records.
pub(super) const FIRST_BYTES: [u8; RECORD_SIZE] = {
    let text = b"polybook evals 2";
    let mut start = [0; RECORD_SIZE];
    let mut at = 0;
    while at < text.len() {
        start[8 + at] = text[at];
        at += 1;
    }
    start
};

/// The number of records in a block. Each block has a checksum, which is verified when the block is read.
pub(super) const RECORDS_PER_BLOCK: u64 = 64;

/// The size of a CRC-32C checksum in bytes.
pub(super) const CHECKSUM_SIZE: usize = 4;

/// The maximum size in bytes of the footer, the JSON document at the end of a store.
pub(super) const MAX_FOOTER: u64 = 1 << 17;

/// The footer of a store of evaluations, a JSON document at the end of the file.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    /// The number of records.
    pub evaluations: u64,
    /// The checksum of the records and of the names in `origins`.
    pub checksum: String,
    /// The names of the sources of evaluations, such as engines, sorted in ascending order.
    pub origins: Vec<String>,
}

impl Footer {
    /// Creates the footer of a store of evaluations. `evaluations` is the number of records, and `records` is the
    /// checksum of all records. `origins` lists the names of the sources of evaluations, such as engines.
    pub(super) fn new(evaluations: u64, records: Checksum, origins: &[String]) -> Footer {
        Footer {
            evaluations,
            checksum: with_origins(records, origins).to_string(),
            origins: origins.to_vec(),
        }
    }
}

/// Returns the checksum of a store's records and of the names in `origins`, the sources of evaluations. `records` is
/// the checksum of the records alone.
pub(super) fn with_origins(mut records: Checksum, origins: &[String]) -> Checksum {
    origins.iter().for_each(|name| records.add(name.as_bytes()));
    records
}

/// An evaluation of a position: the score, the depth of the search, and the number of positions that were searched.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Serialize, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Eval {
    /// The score.
    #[serde(flatten)]
    pub score: Score,
    /// The depth of the search in half-moves; 0 if unknown.
    pub depth: u8,
    /// The number of positions that were searched; 0 if unknown.
    pub nodes: u64,
    /// The index of the evaluation's source in the [origins](super::Evals::origins) of the store.
    #[serde(skip)]
    pub origin: u8,
}

impl Eval {
    /// Returns a key for comparing searches: a more thorough search has a greater key. A store keeps the evaluation
    /// with the greatest key for each position. The key consists of the effective depth, the number of nodes and the
    /// depth. The effective depth is the greater of the depth and the base-2 logarithm of the number of nodes.
    pub(super) fn thoroughness(depth: u8, nodes: u64) -> (u8, u64, u8) {
        (depth.max(nodes.max(1).ilog2() as u8), nodes, depth)
    }
}

/// Returns the key by which a store of evaluations finds a position. This is the Polyglot key, except that an en
/// passant right is included only if an en passant capture is legal. The key does not include state that only variants
/// have, such as the number of checks, nor which of several rooks may castle in Chess960.
pub fn eval_key<P: Rules>(pos: &P) -> u64 {
    Keyed::new(pos.clone()).key_without_unusable_en_passant()
}

/// The size of a packed position in bytes.
const PACKED_SIZE: usize = 24;

/// A record of a store of evaluations: a position, its key and its evaluation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct EvalRecord {
    pub key: u64,
    position: [u8; PACKED_SIZE],
    pub eval: Eval,
}

impl EvalRecord {
    /// Creates the record of an evaluation. `key` is the [key](eval_key) of the position. Returns `None` if the
    /// position has more than 32 pieces, which do not fit into a record.
    pub(super) fn new<P: Rules>(pos: &P, key: u64, eval: Eval) -> Option<EvalRecord> {
        let setup = pos.to_setup(EnPassantMode::Legal);
        let packed = PackedSetup::pack_standard_normalized(&setup).ok()?;
        let mut position = [0; PACKED_SIZE];
        let bytes = packed.as_bytes();
        position.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(EvalRecord {
            key,
            position,
            eval,
        })
    }

    /// Unpacks the position of the record. Returns `None` if the position is invalid or does not match the key of the
    /// record, which means that the record is damaged.
    pub(super) fn position(&self) -> Option<Chess> {
        let packed = PackedSetup::try_from_bytes(&self.position).ok()?;
        let pos = Chess::from_setup(packed.unpack_standard().ok()?, CastlingMode::Standard)
            .or_else(PositionError::ignore_too_much_material)
            .or_else(PositionError::ignore_impossible_check)
            .ok()?;
        (eval_key(&pos) == self.key).then_some(pos)
    }

    pub(super) fn to_bytes(self) -> [u8; RECORD_SIZE] {
        let mut bytes = [0; RECORD_SIZE];
        bytes[..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[8..32].copy_from_slice(&self.position);
        bytes[32..34].copy_from_slice(&self.eval.score.to_code().to_be_bytes());
        bytes[34] = self.eval.depth;
        bytes[35] = self.eval.origin;
        bytes[36..].copy_from_slice(&self.eval.nodes.to_be_bytes());
        bytes
    }

    /// Decodes a record of a store of evaluations from its bytes. Returns `None` if the score is invalid.
    pub(super) fn from_bytes(bytes: &[u8; RECORD_SIZE]) -> Option<EvalRecord> {
        Some(EvalRecord {
            key: u64::from_be_bytes(bytes[..8].try_into().ok()?),
            position: bytes[8..32].try_into().ok()?,
            eval: Eval {
                score: Score::from_code(i16::from_be_bytes([bytes[32], bytes[33]]))?,
                depth: bytes[34],
                origin: bytes[35],
                nodes: u64::from_be_bytes(bytes[36..].try_into().ok()?),
            },
        })
    }

    /// Encodes the record so that encoded records can be sorted as bytes. The order is by key, then from the most to
    /// the least thorough search, then by origin, then by score. [`from_ranked`](EvalRecord::from_ranked) decodes the
    /// bytes.
    pub(super) fn to_ranked(self) -> RankedBytes {
        let mut bytes = [0; RANKED_SIZE];
        let (effective_depth, nodes, depth) = Eval::thoroughness(self.eval.depth, self.eval.nodes);
        bytes[..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[8] = !effective_depth;
        bytes[9..17].copy_from_slice(&(!nodes).to_be_bytes());
        bytes[17] = !depth;
        bytes[18] = self.eval.origin;
        // Flipping the sign bit makes the bytes sort like the numbers.
        let code = self.eval.score.to_code() ^ i16::MIN;
        bytes[BYTES_BEFORE_SCORE..21].copy_from_slice(&code.to_be_bytes());
        bytes[21..].copy_from_slice(&self.position);
        bytes
    }

    /// Decodes bytes that were encoded by [`to_ranked`](EvalRecord::to_ranked). Returns `None` if they are invalid.
    pub(super) fn from_ranked(bytes: &[u8]) -> Option<EvalRecord> {
        Some(EvalRecord {
            key: u64::from_be_bytes(bytes[..8].try_into().ok()?),
            eval: Eval {
                nodes: !u64::from_be_bytes(bytes[9..17].try_into().ok()?),
                depth: !bytes[17],
                origin: bytes[18],
                score: Score::from_code(
                    i16::from_be_bytes(bytes[BYTES_BEFORE_SCORE..21].try_into().ok()?) ^ i16::MIN,
                )?,
            },
            position: bytes[21..].try_into().ok()?,
        })
    }
}

/// The size in bytes of [`RankedBytes`], an encoding of an evaluation that can be sorted. This encoding is one byte
/// longer than a record of a store.
pub(super) const RANKED_SIZE: usize = RECORD_SIZE + 1;

/// The number of bytes before the score in [`RankedBytes`]. These bytes contain the position key, the depth, the number
/// of nodes and the origin. Two evaluations in which these bytes are equal differ only in their scores, so neither
/// search is more thorough.
pub(super) const BYTES_BEFORE_SCORE: usize = 19;

/// A record of a store of evaluations, [encoded](EvalRecord::to_ranked) so that records can be sorted by their
/// bytes.
pub(super) type RankedBytes = [u8; RANKED_SIZE];

/// Returns the number of the origin (the source of an evaluation) that the encoded record `ranked` contains.
pub(super) fn origin_of(ranked: &RankedBytes) -> u8 {
    ranked[18]
}

/// A score of a position, from White's point of view. It is a number of centipawns, or a number of moves to mate.
/// Scores are ordered: a score that is better for White is greater. A mate by White is greater than any number of
/// centipawns, and a shorter mate by White is greater than a longer one.
///
/// [`Display`](fmt::Display) writes centipawns as pawns with a sign, and mates with `#`: `+0.35`, `-1.20`, `0.00`,
/// `#3`, `#-3`.
///
/// ```
/// use polybook::evals::Score;
/// let mate = Score::mate(3).expect("it is not 0");
/// assert!(mate > Score::centipawns(900) && mate < Score::mate(2).expect("it is not 0"));
/// assert_eq!(Score::centipawns(-120).to_string(), "-1.20");
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "LichessScore")]
pub struct Score(i16);

/// The maximum absolute value of a score in centipawns. Scores are stored as integers, and integers with greater
/// absolute values represent mates.
const MAX_CENTIPAWNS: i16 = 32000;

/// The base of the integers that encode mates: `MATE_BASE` - N encodes a mate in N moves.
const MATE_BASE: i32 = 1 << 15;

/// The maximum number of moves to a mate that a score can express.
const MAX_MATE_MOVES: i32 = MATE_BASE - 1 - MAX_CENTIPAWNS as i32;

impl Score {
    /// Creates a score in centipawns, from White's point of view. Values beyond 32,000 for either side are clamped.
    pub fn centipawns(centipawns: i64) -> Score {
        Score(centipawns.clamp((-MAX_CENTIPAWNS).into(), MAX_CENTIPAWNS.into()) as i16)
    }

    /// Creates the score of a mate in `moves` moves. White mates if `moves` is positive, and Black mates if it is
    /// negative. Numbers beyond 767 for either side are clamped. Returns `None` if `moves` is 0, because this number
    /// does not say which side is mated.
    pub fn mate(moves: i64) -> Option<Score> {
        let most = i64::from(MAX_MATE_MOVES);
        let code = MATE_BASE - moves.clamp(-most, most).abs() as i32;
        (moves != 0).then_some(Score((code * moves.signum() as i32) as i16))
    }

    /// Returns the score in centipawns, or `None` if it is a mate.
    pub fn as_centipawns(self) -> Option<i16> {
        (self.0.abs() <= MAX_CENTIPAWNS).then_some(self.0)
    }

    /// Returns the number of moves to mate, which is negative if Black mates. Returns `None` if the score is in
    /// centipawns.
    pub fn as_mate(self) -> Option<i16> {
        let moves = (MATE_BASE - i32::from(self.0).abs()) as i16;
        (self.0.abs() > MAX_CENTIPAWNS).then_some(moves * self.0.signum())
    }

    /// Converts a score from White's point of view to that of `side`, or back. Negates the score if `side` is Black,
    /// and returns it unchanged otherwise.
    pub fn seen_from(self, side: Color) -> Score {
        side.fold_wb(self, Score(-self.0))
    }

    /// Returns the integer that represents the score in a store of evaluations. A score in centipawns is an integer
    /// from -32,000 to 32,000. A mate in N moves is 32,768 - N if White mates, and N - 32,768 if Black mates. The
    /// integers are in the same order as the scores.
    pub fn to_code(self) -> i16 {
        self.0
    }

    /// Returns the score that the integer `code` represents in a store of evaluations, or `None` if `code` is invalid.
    pub(super) fn from_code(code: i16) -> Option<Score> {
        (code != i16::MIN).then_some(Score(code))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(moves) = self.as_mate() {
            return write!(f, "#{moves}");
        }
        let sign = match self.0.signum() {
            1 => "+",
            -1 => "-",
            _ => "",
        };
        let centipawns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", centipawns / 100, centipawns % 100)
    }
}

/// The serialized form of [`Score`]: `{"cp": 35}` or `{"mate": -3}`, as on Lichess.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum LichessScore {
    /// The score in centipawns, from White's point of view.
    Cp(i16),
    /// The number of moves to mate, which is negative if Black mates.
    Mate(i16),
}

impl From<Score> for LichessScore {
    fn from(score: Score) -> LichessScore {
        match score.as_mate() {
            Some(moves) => LichessScore::Mate(moves),
            None => LichessScore::Cp(score.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chess::position::{epd_of, from_text, key};

    fn eval(score: i16, depth: u8, nodes: u64, origin: u8) -> Eval {
        let score = Score::from_code(score).unwrap();
        Eval {
            score,
            depth,
            nodes,
            origin,
        }
    }

    #[test]
    fn positions_are_kept_with_castling_and_en_passant() {
        for line in ["", "e4", "e4 a6 e5 d5", "e4 e5 Ke2", "Nf3 Nf6 Rg1 Rg8"] {
            let pos = from_text(None, Some(line)).unwrap();
            let record = EvalRecord::new(&pos, eval_key(&pos), eval(7, 20, 30, 1)).unwrap();
            let again = EvalRecord::from_bytes(&record.to_bytes()).unwrap();
            assert_eq!(again, record);
            assert_eq!(epd_of(&again.position().unwrap()), epd_of(&pos));
        }
        let crowded = "qqqqkqqq/qqqqqqqq/qqqqqqqq/8/8/QQQQQQQQ/QQQQQQQQ/QQQQKQQQ w - - 0 1";
        if let Ok(pos) = from_text(Some(crowded), None) {
            assert_eq!(
                EvalRecord::new(&pos, eval_key(&pos), eval(0, 0, 0, 0)),
                None
            );
        }
    }

    /// Programs write the en passant square only if the capture is legal; a Polyglot key also has that of a pinned
    /// pawn.
    #[test]
    fn a_pinned_pawn_takes_nothing_en_passant() {
        let start = "4k3/8/8/8/4p3/8/3P4/K3R3 w - - 0 1";
        let played = from_text(Some(start), Some("d4")).unwrap();
        let written = from_text(Some("4k3/8/8/8/3Pp3/8/8/K3R3 b - - 0 1"), None).unwrap();
        assert_ne!(key(&played), key(&written));
        let [a, b] = [played, written]
            .map(|pos| EvalRecord::new(&pos, eval_key(&pos), eval(7, 20, 30, 1)).unwrap());
        assert_eq!(a, b);
        assert_eq!(eval_key(&a.position().unwrap()), a.key);
        let legal = from_text(None, Some("e4 a6 e5 d5")).unwrap();
        assert_eq!(eval_key(&legal), key(&legal));
    }

    #[test]
    fn the_deepest_comes_first() {
        let pos = Chess::default();
        let mut evals = [
            eval(5, 10, 9, 0),
            eval(5, 10, 9, 1),
            eval(-9, 10, 9, 0),
            eval(0, 10, 10, 7),
            eval(0, 11, 0, 9),
            // The number of nodes of a search of 12 half-moves.
            eval(0, 3, 1 << 12, 0),
        ];
        evals.sort_by_key(|eval| EvalRecord::new(&pos, 1, *eval).unwrap().to_ranked());
        let ranked = evals.map(|eval| (eval.depth, eval.nodes, eval.origin, eval.score.to_code()));
        let expected = [
            (3, 1 << 12, 0, 0),
            (11, 0, 9, 0),
            (10, 10, 7, 0),
            (10, 9, 0, -9),
            (10, 9, 0, 5),
            (10, 9, 1, 5),
        ];
        assert_eq!(ranked, expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(bytes: [u8; RECORD_SIZE]) {
            if let Some(record) = EvalRecord::from_bytes(&bytes) {
                prop_assert_eq!(record.to_bytes(), bytes);
                prop_assert_eq!(EvalRecord::from_ranked(&record.to_ranked()), Some(record));
                let _ = record.position();
            }
        }
    }

    #[test]
    fn scores_are_printed_and_ordered() {
        let ascending = [
            Score::mate(-1).unwrap(),
            Score::mate(-767).unwrap(),
            Score::centipawns(-32_000),
            Score::centipawns(-5),
            Score::centipawns(0),
            Score::centipawns(135),
            Score::mate(12).unwrap(),
            Score::mate(1).unwrap(),
        ];
        assert!(ascending.is_sorted());
        let texts = ascending.map(|score| score.to_string());
        let expected = [
            "#-1", "#-767", "-320.00", "-0.05", "0.00", "+1.35", "#12", "#1",
        ];
        assert_eq!(texts, expected);
        let json = serde_json::to_string(&ascending[3..7]).unwrap();
        assert_eq!(json, r#"[{"cp":-5},{"cp":0},{"cp":135},{"mate":12}]"#);
        assert_eq!(Score::mate(0), None);
    }

    proptest! {
        #[test]
        fn a_score_is_centipawns_or_a_mate(code in -i16::MAX..=i16::MAX) {
            let score = Score::from_code(code).unwrap();
            let again = match (score.as_centipawns(), score.as_mate()) {
                (Some(centipawns), None) => Score::centipawns(centipawns.into()),
                (None, Some(moves)) => Score::mate(moves.into()).unwrap(),
                both => panic!("{both:?}"),
            };
            prop_assert_eq!(again, score);
            prop_assert_eq!(score.seen_from(Color::Black).seen_from(Color::Black), score);
        }
    }
}

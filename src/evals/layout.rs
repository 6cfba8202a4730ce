//! The layout of a store.
//!
//! | part | content |
//! |---|---|
//! | the first 44 bytes | eight zeros, `polybook evals 1`, zeros |
//! | 44 bytes for each position, by ascending key | a record |
//! | the rest but 4 bytes | a JSON document: [`Footer`] |
//! | the last 4 bytes | the number of its bytes |
//!
//! | bytes of a record | content |
//! |---|---|
//! | 0-7 | the key of the position |
//! | 8-31 | the position, as the crate `shakmaty` packs it without counters of moves, then zeros |
//! | 32-33 | the score, seen from White: centipawns from -32,000 to 32,000; 32,768 - N if White mates in N moves; the negative of that if Black does |
//! | 34 | the depth; 255 for more |
//! | 35 | where the evaluation is from: the place of the name in the footer |
//! | 36-43 | the nodes |
//!
//! All numbers have the highest byte first. The position is there so that a store can be written as EPD.

use serde::{Deserialize, Serialize};
use shakmaty::{CastlingMode, Chess, EnPassantMode, FromSetup, PositionError, packed::PackedSetup};

use super::score::Score;
use crate::{
    checksum::Checksum,
    position::{Rules, key},
};

/// Bytes of a record.
pub(super) const RECORD: usize = 44;

/// The first bytes of a store, as long as a record. They sort before every record, as the key 0.
pub(super) const START: [u8; RECORD] = {
    let text = b"polybook evals 1";
    let mut start = [0; RECORD];
    let mut at = 0;
    while at < text.len() {
        start[8 + at] = text[at];
        at += 1;
    }
    start
};

/// Bytes of the start that all versions have.
pub(super) const MAGIC: usize = 8 + b"polybook evals ".len();

/// The most bytes of a footer.
pub(super) const MOST_OF_FOOTER: u64 = 1 << 17;

/// What is in a store.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    /// How many records there are.
    pub evaluations: u64,
    /// The checksum of the records and of the origins.
    pub checksum: String,
    /// Where evaluations are from, in ascending order.
    pub origins: Vec<String>,
}

impl Footer {
    /// The footer of records with this checksum.
    pub(super) fn new(evaluations: u64, records: Checksum, origins: &[String]) -> Footer {
        Footer {
            evaluations,
            checksum: with_origins(records, origins).to_string(),
            origins: origins.to_vec(),
        }
    }
}

/// The checksum of records and origins.
pub(super) fn with_origins(mut records: Checksum, origins: &[String]) -> Checksum {
    origins.iter().for_each(|name| records.add(name.as_bytes()));
    records
}

/// An evaluation of a position.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Serialize, Debug)]
pub struct Eval {
    /// What it says.
    #[serde(flatten)]
    pub score: Score,
    /// How many half-moves deep the engine searched; 0 if that is not known.
    pub depth: u8,
    /// How many positions it searched; 0 if that is not known.
    pub nodes: u64,
    /// The place among the [origins](super::Evals::origins) of the store.
    #[serde(skip)]
    pub origin: u8,
}

/// Bytes of a packed position.
const PACKED: usize = 24;

/// An evaluation and its position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub key: u64,
    position: [u8; PACKED],
    pub eval: Eval,
}

impl Record {
    /// The record of a position. `None` if it has more pieces than there are.
    pub(super) fn new<P: Rules>(pos: &P, key: u64, eval: Eval) -> Option<Record> {
        let setup = pos.to_setup(EnPassantMode::PseudoLegal);
        let packed = PackedSetup::pack_standard_normalized(&setup).ok()?;
        let mut position = [0; PACKED];
        let bytes = packed.as_bytes();
        position.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Record {
            key,
            position,
            eval,
        })
    }

    /// The position; `None` if it is none, or not that of the key.
    pub(super) fn position(&self) -> Option<Chess> {
        let packed = PackedSetup::try_from_bytes(&self.position).ok()?;
        let pos = Chess::from_setup(packed.unpack_standard().ok()?, CastlingMode::Standard)
            .or_else(PositionError::ignore_too_much_material)
            .or_else(PositionError::ignore_impossible_check)
            .ok()?;
        (key(&pos) == self.key).then_some(pos)
    }

    pub(super) fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[8..32].copy_from_slice(&self.position);
        bytes[32..34].copy_from_slice(&self.eval.score.to_code().to_be_bytes());
        bytes[34] = self.eval.depth;
        bytes[35] = self.eval.origin;
        bytes[36..].copy_from_slice(&self.eval.nodes.to_be_bytes());
        bytes
    }

    /// The record of some bytes; `None` if they have no score.
    pub(super) fn from_bytes(bytes: &[u8; RECORD]) -> Option<Record> {
        Some(Record {
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

    /// The record as bytes that sort by key, and of one key in the order in which evaluations are preferred: the
    /// deepest, that of the most nodes, that of the first origin, the worst for White.
    pub(super) fn to_ranked(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[8] = !self.eval.depth;
        bytes[9..17].copy_from_slice(&(!self.eval.nodes).to_be_bytes());
        bytes[17] = self.eval.origin;
        // Flipping the sign lets bytes sort as numbers do.
        let code = self.eval.score.to_code() ^ i16::MIN;
        bytes[18..20].copy_from_slice(&code.to_be_bytes());
        bytes[20..].copy_from_slice(&self.position);
        bytes
    }

    /// The record of bytes that [sort](Record::to_ranked).
    pub(super) fn from_ranked(bytes: &[u8]) -> Option<Record> {
        Some(Record {
            key: u64::from_be_bytes(bytes[..8].try_into().ok()?),
            eval: Eval {
                depth: !bytes[8],
                nodes: !u64::from_be_bytes(bytes[9..17].try_into().ok()?),
                origin: bytes[17],
                score: Score::from_code(i16::from_be_bytes([bytes[18], bytes[19]]) ^ i16::MIN)?,
            },
            position: bytes[20..].try_into().ok()?,
        })
    }
}

/// The origin of a record of bytes that [sort](Record::to_ranked).
pub(super) fn origin_of(ranked: &[u8; RECORD]) -> u8 {
    ranked[17]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::position::{epd_of, from_text};

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
            let record = Record::new(&pos, key(&pos), eval(7, 20, 30, 1)).unwrap();
            let again = Record::from_bytes(&record.to_bytes()).unwrap();
            assert_eq!(again, record);
            assert_eq!(epd_of(&again.position().unwrap()), epd_of(&pos));
        }
        let crowded = "qqqqkqqq/qqqqqqqq/qqqqqqqq/8/8/QQQQQQQQ/QQQQQQQQ/QQQQKQQQ w - - 0 1";
        if let Ok(pos) = from_text(Some(crowded), None) {
            assert_eq!(Record::new(&pos, key(&pos), eval(0, 0, 0, 0)), None);
        }
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
        ];
        evals.sort_by_key(|eval| Record::new(&pos, 1, *eval).unwrap().to_ranked());
        let ranked = evals.map(|eval| (eval.depth, eval.nodes, eval.origin, eval.score.to_code()));
        let expected = [
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
        fn any_bytes_are_a_record_or_none(bytes: [u8; RECORD]) {
            if let Some(record) = Record::from_bytes(&bytes) {
                prop_assert_eq!(record.to_bytes(), bytes);
                prop_assert_eq!(Record::from_ranked(&record.to_ranked()), Some(record));
                let _ = record.position();
            }
        }
    }
}

//! The positions in which games started.

use std::collections::HashMap;

use siphasher::sip128::SipHasher13;

use crate::{
    error::Result,
    sort::{ByteRun, Memory},
};

/// How many positions are remembered so that they are not kept twice. Twice does no harm.
const REMEMBERED: usize = 1 << 18;

/// The positions other than the usual one in which games started, as EPDs, and how many games did.
#[derive(Debug)]
pub(super) struct Starts {
    /// For each start its EPD's length, the EPD, and its games.
    epds: ByteRun,
    kept: u64,
    /// Which of those kept first are remembered, by their fingerprints, and how many further games they have.
    seen: HashMap<u128, usize>,
    more: Vec<u64>,
}

impl Starts {
    /// None yet; `memory` is for all that will come.
    pub(super) fn new(memory: &Memory) -> Starts {
        Starts {
            epds: ByteRun::new(memory.bytes, memory.temp_dir.clone()),
            kept: 0,
            seen: HashMap::new(),
            more: Vec::new(),
        }
    }

    /// Takes a position in which this many games started.
    pub(super) fn add(&mut self, epd: &[u8], games: u64) -> Result<()> {
        let fingerprint = SipHasher13::new().hash(epd).as_u128();
        if let Some(number) = self.seen.get(&fingerprint) {
            self.more[*number] += games;
            return Ok(());
        }
        // The first ones are remembered, so their numbers are those of `more`.
        if self.seen.len() < REMEMBERED {
            self.seen.insert(fingerprint, self.more.len());
            self.more.push(0);
        }
        self.kept += 1;
        self.epds.append(&(epd.len() as u16).to_le_bytes())?;
        self.epds.append(epd)?;
        self.epds.append(&games.to_le_bytes())
    }

    /// All of them with their games, in the order in which they came first.
    pub(super) fn all(&self) -> impl Iterator<Item = Result<(String, u64)>> + '_ {
        let mut reader = self.epds.reader(0);
        let more = self.more.iter().copied().chain(std::iter::repeat(0));
        (0..self.kept).zip(more).map(move |(_, more)| {
            let mut length = [0; 2];
            reader.read_exact(&mut length)?;
            let mut epd = vec![0; usize::from(u16::from_le_bytes(length))];
            reader.read_exact(&mut epd)?;
            let mut games = [0; 8];
            reader.read_exact(&mut games)?;
            let games = u64::from_le_bytes(games) + more;
            Ok((String::from_utf8_lossy(&epd).into_owned(), games))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_of_one_start_add_up() {
        let mut starts = Starts::new(&Memory {
            bytes: 16,
            ..Memory::default()
        });
        for epd in ["a", "b", "a", "c", "a"] {
            starts.add(epd.as_bytes(), 2).unwrap();
        }
        let all: Vec<(String, u64)> = starts.all().map(Result::unwrap).collect();
        let expected = [("a", 6), ("b", 2), ("c", 2)];
        assert_eq!(all, expected.map(|(epd, games)| (epd.to_owned(), games)));
    }
}

//! The positions in which the games of a run started.

use std::collections::HashMap;

use siphasher::sip128::SipHasher13;

use crate::{
    error::Result,
    storage::sort::{ByteRun, Memory},
};

/// The maximum number of starting positions that are remembered so that each is stored only once. Further positions may
/// be stored several times, which is harmless.
const REMEMBERED: usize = 1 << 18;

/// The positions in which games started, each as an EPD with the number of games. Games of standard chess without a
/// `FEN` tag are not included.
#[derive(Debug)]
pub(super) struct Starts {
    /// For each starting position: the length of its EPD, the EPD, and the number of games.
    epds: ByteRun,
    /// The number of stored positions.
    kept: u64,
    /// The indices of the remembered positions, by fingerprint. The first [`REMEMBERED`] stored positions are
    /// remembered.
    seen: HashMap<u128, usize>,
    /// For each remembered position, the number of games that were added after the position was stored.
    more: Vec<u64>,
}

impl Starts {
    /// Creates an empty store that spills to a temporary file if it exceeds the budget `memory`.
    pub(super) fn new(memory: &Memory) -> Starts {
        Starts {
            epds: ByteRun::new(memory.bytes, memory.temp_dir.clone()),
            kept: 0,
            seen: HashMap::new(),
            more: Vec::new(),
        }
    }

    /// Adds a position, given as its EPD, in which `games` games started.
    pub(super) fn add(&mut self, epd: &[u8], games: u64) -> Result<()> {
        let fingerprint = SipHasher13::new().hash(epd).as_u128();
        if let Some(number) = self.seen.get(&fingerprint) {
            self.more[*number] += games;
            return Ok(());
        }
        // The first positions are remembered, so their indices are also those of `more`.
        if self.seen.len() < REMEMBERED {
            self.seen.insert(fingerprint, self.more.len());
            self.more.push(0);
        }
        self.kept += 1;
        self.epds.append(&(epd.len() as u16).to_le_bytes())?;
        self.epds.append(epd)?;
        self.epds.append(&games.to_le_bytes())
    }

    /// Returns an iterator over all stored positions as EPDs with their numbers of games, in the order in which they
    /// were first added. A position may occur several times.
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

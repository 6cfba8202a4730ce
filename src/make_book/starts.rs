//! The positions in which games started.
//!
//! `without/starts.rs` stands in for this file where the feature `obs` is left out.

use std::{collections::HashSet, path::PathBuf};

use crate::{error::Result, sort::Spool};

/// How many positions are remembered so that they are not kept twice. Twice does no harm.
const REMEMBERED: usize = 1 << 18;

/// The positions other than the usual one in which games started, as EPDs.
#[derive(Debug)]
pub(super) struct Starts {
    epds: Spool,
    kept: u64,
    seen: HashSet<u64>,
}

impl Starts {
    /// Keeps at most `memory` bytes of them in memory.
    pub(super) fn new(memory: usize, temp_dir: PathBuf) -> Starts {
        Starts {
            epds: Spool::new(memory, temp_dir),
            kept: 0,
            seen: HashSet::new(),
        }
    }

    /// Takes a position, told from others by its identity.
    pub(super) fn add(&mut self, identity: u64, epd: &[u8]) -> Result<()> {
        if self.seen.contains(&identity) {
            return Ok(());
        }
        if self.seen.len() < REMEMBERED {
            self.seen.insert(identity);
        }
        self.kept += 1;
        self.epds.append(&(epd.len() as u16).to_le_bytes())?;
        self.epds.append(epd)
    }

    /// All of them.
    pub(super) fn epds(&self) -> impl Iterator<Item = Result<String>> + '_ {
        let mut reader = self.epds.reader(0);
        (0..self.kept).map(move |_| {
            let mut length = [0; 2];
            reader.read_exact(&mut length)?;
            let mut epd = vec![0; usize::from(u16::from_le_bytes(length))];
            reader.read_exact(&mut epd)?;
            Ok(String::from_utf8_lossy(&epd).into_owned())
        })
    }
}

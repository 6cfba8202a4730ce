//! A game's text, cut out of its PGN.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use super::read::Index;
use crate::{
    error::{At, Error, Result},
    pgn::{GameReader, Input},
};

/// How the index names standard input.
const STDIN: &str = "-";

impl Index {
    /// The PGN text of a game, byte for byte, from its first tag (or move, if it has no tags) to where
    /// the next game begins.
    ///
    /// In a packed file all that stands before has to be unpacked;
    /// [`is_slow_to_read`](Index::is_slow_to_read) tells beforehand.
    ///
    /// # Errors
    ///
    /// An id that no game has, a damaged index, or a PGN that is not there any more or has changed.
    pub fn text(&self, id: u32) -> Result<Vec<u8>> {
        let (path, first) = self.file_of(id)?;
        let place = self.place(id, first)?;
        let region = read_region(path, place.start, place.end)?;
        let mut games = GameReader::new(&region);
        let changed = || {
            Error::file(
                path,
                format!("has changed since it was indexed: game {id} is not where it was"),
            )
        };
        for _ in 0..=place.games_before {
            if !games.next_game() {
                return Err(changed());
            }
            games.skip_moves();
        }
        // Tags must begin just there; a game without has nothing to tell it by.
        let start = games.game_offset();
        if place.games_before == 0 && place.has_tags && start != 0 {
            return Err(changed());
        }
        let end = if games.next_game() {
            games.game_offset()
        } else {
            region.len()
        };
        Ok(region[start..end].to_vec())
    }

    /// Whether the input of a game is packed, so that everything before the game has to be unpacked to
    /// read it.
    ///
    /// # Errors
    ///
    /// An id that no game has, or an input that cannot be read.
    pub fn is_slow_to_read(&self, id: u32) -> Result<bool> {
        let (path, _) = self.file_of(id)?;
        if path == Path::new(STDIN) {
            return Ok(false);
        }
        Ok(Input::file(path).open()?.is_packed)
    }

    /// Where to look for a game.
    fn place(&self, id: u32, first: u64) -> Result<Place> {
        // A game without tags is found from the last one before that has some.
        let mut anchor = u64::from(id);
        let mut start = self.header(id)?.offset();
        let has_tags = start.is_some();
        while start.is_none() && anchor > first {
            anchor -= 1;
            start = self.header(anchor as u32)?.offset();
        }
        let mut end = None;
        let mut next = u64::from(id) + 1;
        while end.is_none() && next < self.end_of_file(first) {
            end = self.header(next as u32)?.offset();
            next += 1;
        }
        Ok(Place {
            // The offset is that behind the bracket.
            start: start.map_or(0, |offset| offset.saturating_sub(1)),
            end: end.map(|offset| offset.saturating_sub(1)),
            games_before: u64::from(id) - anchor,
            has_tags,
        })
    }
}

/// The stretch of a file that holds a game.
struct Place {
    start: u64,
    end: Option<u64>,
    games_before: u64,
    has_tags: bool,
}

/// Bytes `start..end` of an input, unpacked; to its end if that is not known.
fn read_region(path: &Path, start: u64, end: Option<u64>) -> Result<Vec<u8>> {
    if path == Path::new(STDIN) {
        return Err(Error::file(
            path,
            "the games were read from standard input: their text is not kept",
        ));
    }
    let stream = Input::file(path).open()?;
    let mut region = Vec::new();
    let limit = end.map_or(u64::MAX, |end| end.saturating_sub(start));
    if stream.is_packed {
        let mut stream = stream;
        io::copy(&mut (&mut stream).take(start), &mut io::sink()).at(path, "unpack")?;
        stream
            .take(limit)
            .read_to_end(&mut region)
            .at(path, "unpack")?;
    } else {
        let mut file = File::open(path).at(path, "open")?;
        file.seek(SeekFrom::Start(start)).at(path, "read")?;
        file.take(limit).read_to_end(&mut region).at(path, "read")?;
    }
    Ok(region)
}

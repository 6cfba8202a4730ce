//! Reads the PGN text of a game from the input file of an index.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use super::{layout::GameOffset, read::Index};
use crate::{
    error::{At, Error, Result},
    pgn::{Cutter, GameReader, Input, StreamOptions},
};

/// The number of bytes that are read from a PGN file at a time.
const READ_SIZE: usize = 1 << 16;

/// The path that an index stores for games that were read from standard input.
const STDIN: &str = "-";

impl Index {
    /// Returns the PGN text of game `id`, byte for byte. It begins with the first tag of the game, or with its first
    /// move if it has no tags. It ends where the next game begins.
    ///
    /// The text is read from the PGN file from which the index was made. If this file is compressed, everything before
    /// the game must be decompressed; see [`is_slow_to_read`](Index::is_slow_to_read).
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id, if the index cannot be read or is damaged, or if the PGN file is
    /// missing or has changed.
    pub fn text(&self, id: u32) -> Result<Vec<u8>> {
        self.text_while(id, &|| true)
    }

    /// Returns the PGN text of game `id`, like [`text`](Index::text). `should_continue` is called repeatedly while the
    /// PGN file is read. If it returns `false`, reading is cancelled.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`text`](Index::text). Returns [`Error::Interrupted`] if `should_continue` returns
    /// `false`.
    pub fn text_while(&self, id: u32, should_continue: &dyn Fn() -> bool) -> Result<Vec<u8>> {
        let (path, first) = self.file_of(id)?;
        if path == Path::new(STDIN) {
            return Err(Error::file(
                path,
                "the games were read from standard input, so their text is not available: make the index from a file",
            ));
        }
        let place = self.range_of_game(id, first, should_continue)?;
        let changed = || {
            Error::changed(
                path,
                format!(
                    "this file has changed since the index was made, and the game with the id {id} is no longer at \
                     the same place: make the index again"
                ),
            )
        };
        let Some(stream) = open_at(path, place.start, should_continue)? else {
            return Err(changed());
        };
        let limit = place
            .end
            .map_or(u64::MAX, |end| end.saturating_sub(place.start));
        let stream = Stoppable {
            stream,
            should_continue,
        }
        .take(limit);
        let found = nth_game(stream, place.games_before, READ_SIZE);
        let (start, text) = match found {
            Err(err) if is_stop(&err) => return Err(Error::Interrupted),
            // An error without an error number of the operating system comes from decompression or from the cutter.
            Err(err) if err.raw_os_error().is_none() => {
                return Err(Error::damaged(path, format!("damaged: {err}")));
            }
            found => found.at(path, "read")?.ok_or_else(changed)?,
        };
        let header = self.header(id)?;
        // The game must begin exactly at its offset and have the tags that were indexed. A game without tags has
        // nothing to compare.
        if header.offset_of_text().is_some() && (start != 0 || !header.matches_text(&text)) {
            return Err(changed());
        }
        Ok(text)
    }

    /// Returns `true` if the PGN file that contains game `id` is compressed. Reading the text of the game is then slow,
    /// because everything before the game must be decompressed.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id, or if the PGN file cannot be read.
    pub fn is_slow_to_read(&self, id: u32) -> Result<bool> {
        let (path, _) = self.file_of(id)?;
        if path == Path::new(STDIN) {
            return Ok(false);
        }
        check_regular(path)?;
        Input::file(path).is_packed()
    }

    /// Returns a range of a PGN file that contains game `id`. If the index does not store the offset of this game, the
    /// range begins with the last earlier game whose offset is stored. `first` is the id of the first game in this
    /// file. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    fn range_of_game(
        &self,
        id: u32,
        first: u64,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<GameRange> {
        let start_of = |id: u64| match should_continue() {
            true => Ok(self.offset_of_game(id as u32)?.map(GameOffset::start)),
            false => Err(Error::Interrupted),
        };
        // Only the explorer's index stores the offset of a game without tags. Otherwise the search begins at the
        // last preceding game that has tags.
        let mut anchor = u64::from(id);
        let mut start = start_of(anchor)?;
        while start.is_none() && anchor > first {
            anchor -= 1;
            start = start_of(anchor)?;
        }
        let mut end = None;
        let mut next = u64::from(id) + 1;
        while end.is_none() && next < self.end_of_file(first) {
            end = start_of(next)?;
            next += 1;
        }
        Ok(GameRange {
            start: start.unwrap_or(0),
            end,
            games_before: u64::from(id) - anchor,
        })
    }
}

/// A range of a PGN file that contains the wanted game, and possibly other games. `start` and `end` are offsets in
/// bytes in the decompressed text. If `end` is `None`, the range extends to the end of the file. `games_before` is the
/// number of games in the range that precede the wanted game.
struct GameRange {
    start: u64,
    end: Option<u64>,
    games_before: u64,
}

/// A reader that can be cancelled. Each read calls `should_continue`. If this function returns `false`, the read fails
/// with [`Error::Interrupted`].
struct Stoppable<'a, R> {
    stream: R,
    should_continue: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.should_continue)() {
            true => self.stream.read(buffer),
            false => Err(io::Error::other(Error::Interrupted)),
        }
    }
}

/// Returns `true` if a [`Stoppable`] reader returned the error `err` because it was cancelled.
fn is_stop(err: &io::Error) -> bool {
    let inner = err.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(Error::Interrupted))
}

/// Checks that `path`, the path of a PGN file from which an index was made, still leads to a regular file.
///
/// # Errors
///
/// Returns an error if the file does not exist, cannot be examined, or is not a regular file.
fn check_regular(path: &Path) -> Result<()> {
    let metadata = path.metadata();
    if metadata
        .as_ref()
        .is_err_and(|err| err.kind() == io::ErrorKind::NotFound)
    {
        let problem = "this file is no longer where it was when the index was made: put the file back, or make the index again";
        return Err(Error::changed(path, problem));
    }
    // Opening a pipe could wait forever.
    if !metadata.at(path, "open")?.is_file() {
        let problem =
            "this is no longer a regular file: put the file back, or make the index again";
        return Err(Error::changed(path, problem));
    }
    Ok(())
}

/// Opens a PGN file and skips the first `start` bytes of its decompressed text. Returns `None` if the text is
/// shorter. Decompression is cancelled if `should_continue` returns `false`.
///
/// # Errors
///
/// Returns an error if the file is missing or cannot be read. Returns [`Error::Interrupted`] if `should_continue`
/// returns `false`.
fn open_at(
    path: &Path,
    start: u64,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<Box<dyn Read>>> {
    check_regular(path)?;
    let input = Input::file(path);
    if input.is_packed()? {
        let mut stream = input.open(&StreamOptions::default())?;
        let before = Stoppable {
            stream: &mut stream,
            should_continue,
        };
        return match io::copy(&mut before.take(start), &mut io::sink()) {
            Ok(skipped) => Ok((skipped == start).then_some(Box::new(stream))),
            Err(err) if is_stop(&err) => Err(Error::Interrupted),
            Err(err) => Err(err).at(path, "unpack"),
        };
    }
    let mut file = File::open(path).at(path, "open")?;
    let end = file.seek(SeekFrom::End(0)).at(path, "read")?;
    file.seek(SeekFrom::Start(start)).at(path, "read")?;
    Ok((start < end).then_some(Box::new(file)))
}

/// Skips the first `before` games of a PGN stream. Returns the offset and the text of the next game, or `None` if the
/// stream has no further game. Reads the stream in batches of about `read_size` bytes, so that only one batch and the
/// returned game are held in memory.
fn nth_game(
    stream: impl Read,
    mut before: u64,
    read_size: usize,
) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut cutter = Cutter::new(stream, read_size);
    let mut found: Option<(u64, Vec<u8>)> = None;
    while let Some(batch) = cutter.next_batch()? {
        // The offset in this batch at which the text of the game continues.
        let mut rest = 0;
        let mut games = GameReader::new(&batch.text);
        while games.next_game() {
            let start = games.game_offset();
            match &mut found {
                Some((_, text)) => {
                    text.extend_from_slice(&batch.text[rest..start]);
                    return Ok(found);
                }
                None if before > 0 => before -= 1,
                None => {
                    found = Some((batch.offset + start as u64, Vec::new()));
                    rest = start;
                }
            }
            games.skip_moves();
        }
        if let Some((_, text)) = &mut found {
            text.extend_from_slice(&batch.text[rest..]);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECES: [&str; 9] = [
        "[Event \"A\"]\n[White \"B\"]\n\n1. e4 e5 1-0\n\n",
        "[Event \"C\"]\n\n1. d4 { a comment\n[Event \"no\"]\n } *\n",
        "1. c4 c5 *\n",
        "\n\n",
        "{ between the games }\n",
        "; to the end of the line\n",
        "% escaped\n",
        "[Event \"D\"]\n[Site \"E\"]\n1. f4",
        "0-1\n",
    ];

    proptest! {
        #[test]
        fn a_game_is_the_same_however_it_is_read(pieces in proptest::collection::vec(0..PIECES.len(), 0..20), number in 0..12u64) {
            let text: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
            let whole = nth_game(text.as_bytes(), number, 1 << 20).unwrap();
            for read_size in [1, 16, 100] {
                prop_assert_eq!(&nth_game(text.as_bytes(), number, read_size).unwrap(), &whole);
            }
            if let Some((start, game)) = whole {
                prop_assert!(text.as_bytes()[start as usize..].starts_with(&game));
            }
        }
    }

    #[test]
    fn reading_ends_when_nobody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let input = Input::file("data/famous.pgn");
        let run = crate::MakeBook::new([input]).leveldb(&path);
        run.run().unwrap();
        let index = Index::open(&path).unwrap();
        let text = index.text(7).unwrap();
        let mut asked = 0_u32;
        loop {
            let left = std::cell::Cell::new(asked);
            let should_continue = || left.replace(left.get().saturating_sub(1)) > 0;
            match index.text_while(7, &should_continue) {
                Ok(found) => {
                    assert_eq!(found, text);
                    break;
                }
                Err(err) => assert!(matches!(err, Error::Interrupted), "{err}"),
            }
            asked += 1;
        }
        assert!(asked > 1);
    }

    #[test]
    fn what_follows_a_game_is_not_read() {
        /// A stream of games that never ends, with the number of reads.
        struct Endless(usize);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                let games = "[Event \"A\"]\n\n1. e4 *\n\n".as_bytes();
                Ok(games
                    .iter()
                    .cycle()
                    .zip(buffer)
                    .map(|(from, to)| *to = *from)
                    .count())
            }
        }
        let mut games = Endless(0);
        let (start, _) = nth_game(&mut games, 1, 1000).unwrap().unwrap();
        assert_eq!(start, 22);
        assert!(games.0 < 100);

        // A game that does not end is rejected before it fills the memory.
        let endless = io::repeat(b'x');
        let err = nth_game("1. e4 {".as_bytes().chain(endless), 0, READ_SIZE).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::InvalidData);
    }
}

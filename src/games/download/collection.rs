//! A PGN file to which downloaded games are added.
//!
//! New games are first written to a temporary file without a name. When the download ends, or is interrupted, the file is
//! replaced as a whole: its games keep their order, and each new game is inserted before the first game that began later.
//! If the games of the file are in the order in which they began, so are the games of the new file, no matter in how many
//! parts they were downloaded.

use std::{
    cmp::Reverse,
    fs::File,
    io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use rustc_hash::FxHashSet;
use siphasher::sip::SipHasher13;

use super::{Account, months::CompleteMonths};
use crate::{
    error::{At, Error, Result},
    games::pgn::{Cutter, Date, GameReader, Tags, tag_text},
    kind::FileKind,
    storage::output::{AtomicFile, BufferedFile, commit_all, metadata_if_any, parent},
};

/// The size in bytes of the parts in which the old file is read.
const BATCH_SIZE: usize = 1 << 19;

/// The number of seconds in a day.
pub(super) const DAY: i64 = 86_400;

/// A PGN file, and the new games that will be added to it.
#[derive(Debug)]
pub(super) struct Collection {
    output: AtomicFile,
    /// The hashes of the web addresses of all games, both those in the file and the new ones.
    addresses: FxHashSet<u64>,
    /// For each account, which of its games the file contains.
    known: Vec<Known>,
    /// The number of games in the file.
    games: u64,
    /// The temporary file with the texts of the new games.
    spool: BufWriter<File>,
    spooled: u64,
    new: Vec<NewGame>,
    /// For each account, the starting time of each received game, and the index of the game in `new` if it is new.
    received: Vec<Vec<(i64, Option<usize>)>>,
    /// The months of Chess.com that have been downloaded completely.
    pub(super) months: CompleteMonths,
    months_path: PathBuf,
}

/// The number and the newest of an account's games that the file contained before the download.
#[derive(Clone, Debug)]
struct Known {
    account: Account,
    games: u64,
    /// The starting time of the newest game, in seconds since 1 January 1970.
    newest: Option<i64>,
}

/// A game in the temporary file that will be added to the PGN file.
#[derive(Copy, Clone, Debug)]
struct NewGame {
    /// The starting time of the game in seconds since 1 January 1970. If the tags do not contain it, the time of the game
    /// that was received before this one.
    time: i64,
    offset: u64,
    length: u32,
    /// The rank of the game among games with the same starting time.
    order: i64,
    is_dropped: bool,
}

/// The result of [`Collection::add`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Added {
    /// Whether the game was added: it meets the conditions, and the file did not contain it.
    pub is_new: bool,
    /// The starting time of the game, in seconds since 1 January 1970, or `None` if the tags do not contain it.
    pub time: Option<i64>,
}

impl Collection {
    /// Opens the file at `path`, which need not exist, and reads the addresses of its games.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists but does not contain games in PGN, or if it cannot be replaced.
    pub(super) fn open(path: &Path, accounts: &[Account]) -> Result<Collection> {
        let output = AtomicFile::create_over(path, |_| Ok(()))?;
        if !output.is_seekable() {
            return Err(Error::file(
                path,
                "games can be added only to a file: give the name of a file",
            ));
        }
        let target = output.resolved_target().to_owned();
        let spool =
            tempfile::tempfile_in(parent(&target)).at(path, "create a temporary file next to")?;
        let mut name = target.clone().into_os_string();
        name.push(".months.json");
        let known = accounts.iter().map(|account| Known {
            account: account.clone(),
            games: 0,
            newest: None,
        });
        let mut collection = Collection {
            output,
            addresses: FxHashSet::default(),
            known: known.collect(),
            games: 0,
            spool: BufWriter::with_capacity(1 << 16, spool),
            spooled: 0,
            new: Vec::new(),
            received: vec![Vec::new(); accounts.len()],
            months: CompleteMonths::default(),
            months_path: name.into(),
        };
        collection.read_old()?;
        if collection.games > 0 {
            collection.months = CompleteMonths::read(&collection.months_path)?;
        }
        Ok(collection)
    }

    /// Reads the games of the old file, if it exists.
    fn read_old(&mut self) -> Result<()> {
        let (path, name) = (
            self.output.resolved_target().to_owned(),
            self.output.target().to_owned(),
        );
        let old = metadata_if_any(&path).at(&name, "open")?;
        if old.is_none_or(|old| old.len() == 0) {
            return Ok(());
        }
        let foreign = || {
            Error::foreign(
                &name,
                "this file does not contain games in plain PGN: choose another output",
            )
        };
        if FileKind::of(&path)? != FileKind::Other {
            return Err(foreign());
        }
        let (mut games, mut addresses, mut known) =
            (0, std::mem::take(&mut self.addresses), self.known.clone());
        let read = for_each_game(&path, &name, |tags, _| {
            let Some(tags) = tags else {
                return Ok(());
            };
            games += 1;
            addresses.extend(address(tags));
            let time = start_time(tags);
            for known in known.iter_mut().filter(|known| known.account.played(tags)) {
                known.games += 1;
                known.newest = known.newest.max(time);
            }
            Ok(())
        });
        (self.games, self.addresses, self.known) = (games, addresses, known);
        match read {
            Err(err) if games > 0 => Err(err),
            _ if games == 0 => Err(foreign()),
            _ => Ok(()),
        }
    }

    /// Returns how many games of an account the file contained before the download, and the starting time of the newest
    /// one. `account` is the index of the account.
    pub(super) fn known(&self, account: usize) -> (u64, Option<i64>) {
        (self.known[account].games, self.known[account].newest)
    }

    /// Adds a game, unless a game with the same web address exists or `wanted` rejects the tags of the game. `account` is
    /// the index of the account that played the game. `newest_first` is `true` if the service sends the newest game first.
    pub(super) fn add(
        &mut self,
        account: usize,
        text: &[u8],
        newest_first: bool,
        wanted: impl FnOnce(&Tags<'_>) -> bool,
    ) -> Result<Added> {
        let mut games = GameReader::new(text);
        games.next_game();
        let tags = games.tags();
        let time = start_time(tags);
        if !wanted(tags) {
            return Ok(Added {
                is_new: false,
                time,
            });
        }
        let before = self.received[account]
            .last()
            .map_or(i64::MIN, |last| last.0);
        let key = address(tags).unwrap_or_else(|| text_hash(text.trim_ascii()));
        let is_new = self.addresses.insert(key);
        let at = time.unwrap_or(before);
        self.received[account].push((at, is_new.then_some(self.new.len())));
        if is_new {
            let text = text.trim_ascii();
            let number = self.new.len() as i64;
            self.spool
                .write_all(text)
                .at(self.output.target(), "write")?;
            self.new.push(NewGame {
                time: at,
                offset: self.spooled,
                length: text.len() as u32,
                order: if newest_first { -number } else { number },
                is_dropped: false,
            });
            self.spooled += text.len() as u64;
        }
        Ok(Added { is_new, time })
    }

    /// Drops all new games of an account except its newest ones: of the received games, the `most` newest are kept.
    pub(super) fn keep_newest(&mut self, account: usize, most: usize) {
        let mut received = self.received[account].clone();
        // The sort is stable, and the last of several games that began at the same time is the newest.
        received.reverse();
        received.sort_by_key(|(time, _)| Reverse(*time));
        for (_, new) in received.into_iter().skip(most) {
            if let Some(new) = new {
                self.new[new].is_dropped = true;
            }
        }
    }

    /// Returns the number of games of an account that were received. Games that the file already contained count, too.
    pub(super) fn received(&self, account: usize) -> usize {
        self.received[account].len()
    }

    /// Replaces the file by one that also contains the new games. Does not change the file if there are no new games.
    /// Returns the number of new games, and the number of all games in the file.
    pub(super) fn commit(mut self) -> Result<(u64, u64)> {
        let name = self.output.target().to_owned();
        self.new.retain(|game| !game.is_dropped);
        self.new.sort_by_key(|game| (game.time, game.order));
        let new = self.new.len() as u64;
        let mut outputs = Vec::new();
        if let Some(months) = self.months.write(&self.months_path)? {
            outputs.push(months);
        }
        if new > 0 {
            self.spool.flush().at(&name, "write")?;
            let spool = self.spool.into_inner().map_err(|err| err.into_error());
            let mut spool = spool.at(&name, "write")?;
            let old = (self.games > 0).then(|| self.output.resolved_target().to_owned());
            let mut out = Joined {
                out: BufferedFile::new(self.output),
                end: *b"\n\n",
            };
            let mut rest = self.new.into_iter().peekable();
            let mut copy = |out: &mut Joined, game: NewGame| {
                let mut text = vec![0; game.length as usize];
                let sought = spool.seek(SeekFrom::Start(game.offset));
                sought
                    .and_then(|_| spool.read_exact(&mut text))
                    .at(&name, "read")?;
                out.separate()?;
                out.put(&text)?;
                out.put(b"\n\n")
            };
            if let Some(old) = old {
                for_each_game(&old, &name, |tags, text| {
                    if let Some(time) = tags.and_then(start_time) {
                        while let Some(game) = rest.next_if(|game| game.time < time) {
                            copy(&mut out, game)?;
                        }
                    }
                    out.put(text)
                })?;
            }
            for game in rest {
                copy(&mut out, game)?;
            }
            outputs.push(out.out.finish()?);
        }
        commit_all(outputs)?;
        Ok((new, self.games + new))
    }
}

/// The new file. It separates each new game from the text before it by a blank line.
struct Joined {
    out: BufferedFile,
    /// The last two bytes that were written. At the beginning, two line breaks, because nothing must be separated.
    end: [u8; 2],
}

impl Joined {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        for byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.end = [self.end[1], *byte];
        }
        self.out.put(bytes)
    }

    /// Writes the missing line breaks, so that the text so far ends with a blank line.
    fn separate(&mut self) -> Result<()> {
        while self.end != *b"\n\n" {
            // A text with CR and LF needs one more line break.
            self.put(b"\n")?;
        }
        Ok(())
    }
}

/// Calls `visit` for each game of the file at `path`, with its tags and its text, which ends where the next game begins.
/// If other text comes before the first game, such as a byte order mark, first calls `visit` with this text and `None`.
/// Every byte of the file is passed to `visit` once. Error messages call the file `name`.
fn for_each_game(
    path: &Path,
    name: &Path,
    mut visit: impl FnMut(Option<&Tags<'_>>, &[u8]) -> Result<()>,
) -> Result<()> {
    let file = File::open(path).at(name, "open")?;
    let mut batches = Cutter::new(BufReader::with_capacity(1 << 16, file), BATCH_SIZE);
    while let Some(batch) = batches.next_batch().at(name, "read")? {
        let mut games = GameReader::new(&batch.text);
        let (mut start, mut tags) = (0, None);
        while games.next_game() {
            let before = &batch.text[start..games.game_offset()];
            if tags.is_some() || !before.is_empty() {
                visit(tags.as_ref(), before)?;
            }
            start = games.game_offset();
            tags = Some(games.tags().clone());
            games.skip_moves();
        }
        visit(tags.as_ref(), &batch.text[start..])?;
    }
    Ok(())
}

/// Returns a hash of the web address of a game, which the tag `Link` or `Site` contains. Returns `None` if neither tag
/// contains a web address.
fn address(tags: &Tags<'_>) -> Option<u64> {
    let mut values = [&b"Link"[..], b"Site"].into_iter();
    let text = values.find_map(|name| {
        let text = tag_text(tags.get(name)?).trim().to_owned();
        text.split_once("://").map(|(_, page)| page.to_owned())
    })?;
    let page = text.split(['?', '#']).next().unwrap_or_default();
    let page = page.strip_prefix("www.").unwrap_or(page);
    // An address at Lichess may name the side from which the board is seen.
    let page = match page.strip_prefix("lichess.org/") {
        Some(id) => format!("lichess.org/{}", id.get(..8).unwrap_or(id)),
        None => page.trim_end_matches('/').to_owned(),
    };
    page.contains('/').then(|| text_hash(page.as_bytes()))
}

fn text_hash(text: &[u8]) -> u64 {
    SipHasher13::new().hash(text)
}

/// Returns the starting time of a game in seconds since 1 January 1970, from the tags `UTCDate` and `UTCTime`. If these
/// tags are missing, returns the beginning of the day on which the game was played. Returns `None` if the day is unknown.
pub(super) fn start_time(tags: &Tags<'_>) -> Option<i64> {
    let utc = tags.get(b"UTCDate").map(Date::of_tag);
    let utc = utc.and_then(|date| seconds_of(date, false));
    let Some(day) = utc else {
        let date = Date::of_tags(tags);
        date.day()?;
        return seconds_of(date, false);
    };
    let time = tags.get(b"UTCTime").map(tag_text).unwrap_or_default();
    let parts: Vec<i64> = time
        .split(':')
        .map_while(|part| part.trim().parse().ok())
        .collect();
    match parts[..] {
        [hour @ 0..24, minute @ 0..60, second @ 0..=60] => {
            Some(day + hour * 3600 + minute * 60 + second)
        }
        _ => Some(day),
    }
}

/// Returns the beginning of a day, a month or a year (depending on how much of `date` is known), in seconds since
/// 1 January 1970. If `is_end` is `true`, returns its end instead. Returns `None` if the year is unknown.
pub(super) fn seconds_of(date: Date, is_end: bool) -> Option<i64> {
    let year = i64::from(date.year()?);
    let (month, day) = (date.month().map(i64::from), date.day().map(i64::from));
    let days = match (month, day, is_end) {
        (None, _, false) => days_until(year, 1),
        (None, _, true) => days_until(year + 1, 1),
        (Some(month), None, true) => days_until(year, month + 1),
        (Some(month), day, _) => {
            days_until(year, month) + day.map_or(0, |day| day - 1 + i64::from(is_end))
        }
    };
    Some(days * DAY)
}

/// Returns the number of days from 1 January 1970 to the first day of a month. The month 13 is January of the next year.
fn days_until(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let leap_days = |years: i64| years / 4 - years / 100 + years / 400;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leap_day = i64::from(is_leap && month > 2);
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
        + BEFORE[(month - 1) as usize]
        + leap_day
}

/// Returns the year and the month of a time in seconds since 1 January 1970.
pub(super) fn month_of(time: i64) -> (u16, u8) {
    let day = time.div_euclid(DAY);
    let year = (1970 + day / 366..).find(|year| days_until(year + 1, 1) > day);
    let year = year.unwrap_or_default();
    let month = (1..=12).find(|month| days_until(year, month + 1) > day);
    (year as u16, month.unwrap_or(12) as u8)
}

//! A PGN file to which downloaded games are added.
//!
//! New games are first written to a temporary file. When the download ends, is interrupted, or has received many games,
//! the PGN file is replaced with a new one that contains all games. The old games keep their order, and each new game is inserted before the
//! first game that began later. If the games of the file are sorted by the time at which they began, they remain
//! sorted, no matter in how many parts they were downloaded. If the PGN file cannot be replaced, the temporary file is
//! kept under another name.

use std::{
    cmp::Reverse,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustc_hash::{FxHashMap, FxHashSet};
use siphasher::sip::SipHasher13;

use super::{
    Account,
    completed::{Completed, CompletedAccount, Marks},
};
use crate::{
    error::{At, Error, Result, reason},
    games::pgn::{Cutter, Date, GameReader, Tags, tag_text},
    kind::FileKind,
    storage::output::{AtomicFile, BufferedFile, FileState, is_special, metadata_if_any},
};

/// The size in bytes of the batches in which the existing file is read.
const BATCH_SIZE: usize = 1 << 19;

/// The minimum size in bytes of the new games that are added to the file while the download goes on.
const MIN_PART_SIZE: u64 = 4 << 20;

/// New games are added to the file while the download goes on if the size of the file is at most this multiple of their
/// size. The time for rewriting the file then remains proportional to its final size.
const MAX_REWRITTEN: u64 = 4;

/// The number of seconds in a day.
pub(super) const DAY: i64 = 86_400;

/// A PGN file, and the new games that will be added to it.
#[derive(Debug)]
pub(super) struct Collection {
    output: AtomicFile,
    /// The state of the file when it was read.
    opened: Option<FileState>,
    old: OldGames,
    /// The hashes of the URLs of all games: those in the file and the new ones.
    addresses: FxHashSet<u64>,
    spool: Spool,
    new: Vec<NewGame>,
    /// The maximum number of games of each account. If there are more, the oldest of the new games are not added.
    max: Option<usize>,
    accounts: Vec<AccountGames>,
    completed: Completed,
    completed_path: PathBuf,
    /// The text of the download's conditions, written as options.
    conditions: String,
    /// The size in bytes of the file before the new games are added.
    old_size: u64,
    /// The number of games that this download has already added to the file.
    added: u64,
}

/// A temporary file with the texts of the new games, each followed by a blank line.
#[derive(Debug)]
struct Spool {
    out: BufWriter<AtomicFile>,
    length: u64,
    /// Whether writing the text of a game has failed.
    is_broken: bool,
}

/// The games that a file contained before the download.
#[derive(Default, Debug)]
struct OldGames {
    games: u64,
    /// The hashes of the URLs of the games, by which a game is recognized.
    addresses: FxHashSet<u64>,
    /// The number of games of each account.
    of_accounts: Vec<u64>,
}

/// The games of one account that were received.
#[derive(Debug)]
struct AccountGames {
    account: Account,
    /// The key of the account's entry in [`Completed`]: the name of the account and the conditions of the download.
    key: String,
    completed: CompletedAccount,
    is_changed: bool,
    /// The starting time and the rank of each game, by the hash of its URL.
    received: FxHashMap<u64, (i64, i64)>,
    last_time: i64,
}

/// A game in the temporary file that will be added to the PGN file.
#[derive(Copy, Clone, Debug)]
struct NewGame {
    /// A hash of the game's URL or, if it has none, of its text.
    address: u64,
    /// The starting time of the game in seconds since 1 January 1970. If the tags do not contain it, the starting time
    /// of the game that was received before this one.
    time: i64,
    /// The rank of the game among games with the same starting time.
    rank: i64,
    offset: u64,
    length: u32,
}

impl NewGame {
    /// Returns the offset after the text of the game.
    fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// The order in which a service sends games.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// The oldest game comes first, and no game is left out. When a game arrives, all games that started earlier have
    /// been received.
    Complete,
    /// The oldest game comes first, but games may be missing.
    OldestFirst,
    /// The newest game comes first.
    NewestFirst,
}

/// The result of adding a game with [`Collection::add`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Added {
    /// Whether the game was added. If it was not, it does not meet the conditions, or the file already contained it.
    pub is_new: bool,
    /// The starting time of the game, in seconds since 1 January 1970, or `None` if the tags do not contain it.
    pub time: Option<i64>,
}

impl Collection {
    /// Opens the file at `path`, which need not exist, and reads the URLs of its games. `conditions` is the text of the
    /// download's conditions, written as options. `max` is the maximum number of games of each account.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists but does not contain games in PGN, or if it cannot be replaced.
    pub(super) fn open(
        path: &Path,
        accounts: &[Account],
        conditions: &str,
        max: Option<usize>,
    ) -> Result<Collection> {
        let not_a_file = "games can be added only to a file: give the name of a file";
        if is_special(path)? {
            return Err(Error::file(path, not_a_file));
        }
        let output = AtomicFile::create(path)?;
        let target = output.resolved_target().to_owned();
        let opened = FileState::of(&target).at(path, "open")?;
        let old_size = metadata_if_any(&target).at(path, "open")?;
        let with_ending = |ending: &str| {
            let mut name = target.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let completed_path = with_ending(".download.json");
        let spool = Spool::create(&with_ending(".download.pgn"))?;
        let completed = Completed::read(&completed_path)?;
        let old = OldGames::read(&output, accounts)?;
        let accounts = accounts
            .iter()
            .zip(&old.of_accounts)
            .map(|(account, games)| {
                let key = format!("{account} {conditions}");
                let key = key.trim_end().to_ascii_lowercase();
                AccountGames {
                    account: account.clone(),
                    completed: completed.get(&key, *games),
                    key,
                    is_changed: false,
                    received: FxHashMap::default(),
                    last_time: i64::MIN,
                }
            });
        Ok(Collection {
            opened,
            addresses: old.addresses.clone(),
            spool,
            new: Vec::new(),
            max,
            accounts: accounts.collect(),
            old,
            output,
            completed,
            completed_path,
            conditions: conditions.to_owned(),
            old_size: old_size.map_or(0, |metadata| metadata.len()),
            added: 0,
        })
    }

    /// Returns `true` if there are enough new games to add them to the file before the download ends. If the process is
    /// killed later, these games are not lost. Always returns `false` if the number of games is limited, because only
    /// the end of the download decides which games are added.
    pub(super) fn is_large(&self) -> bool {
        let size = self.spool.length;
        self.max.is_none() && size >= MIN_PART_SIZE && size >= self.old_size / MAX_REWRITTEN
    }

    /// Adds the new games to the file like [`commit`](Collection::commit), and opens the file again for further games.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`commit`](Collection::commit) and [`open`](Collection::open), and if games were
    /// lost or the record could not be written.
    pub(super) fn reopened(mut self) -> Result<Collection> {
        let path = self.output.target().to_owned();
        let conditions = std::mem::take(&mut self.conditions);
        let accounts: Vec<_> = self.accounts.iter().map(|it| it.account.clone()).collect();
        let received = self
            .accounts
            .iter()
            .map(|it| (it.received.clone(), it.last_time));
        let received = Vec::from_iter(received);
        let max = self.max;
        let (added, _, noted) = self.commit()?;
        noted?;
        let mut reopened = Collection::open(&path, &accounts, &conditions, max)?;
        for (games, (received, last_time)) in reopened.accounts.iter_mut().zip(received) {
            games.received = received;
            games.last_time = last_time;
        }
        reopened.added = added;
        Ok(reopened)
    }

    /// Returns the number of games of an account that the file contained before the download. `account` is the index of
    /// the account.
    pub(super) fn old_games(&self, account: usize) -> u64 {
        self.old.of_accounts[account]
    }

    /// Returns which games of an account were received by earlier downloads. `account` is the index of the account.
    pub(super) fn completed(&self, account: usize) -> &CompletedAccount {
        &self.accounts[account].completed
    }

    /// Records that all games of an account in a month of Chess.com have been received. `account` is the index of the
    /// account.
    pub(super) fn complete_month(&mut self, account: usize, month: String, marks: Marks) {
        let games = &mut self.accounts[account];
        games.completed.months.insert(month, marks);
        games.is_changed = true;
    }

    /// Returns `true` if no more games can be added, because the temporary file could not be written.
    pub(super) fn is_broken(&self) -> bool {
        self.spool.is_broken
    }

    /// Adds a game, unless the file or the new games already contain a game with the same URL, or `wanted` rejects its
    /// tags. `account` is the index of the account that played the game.
    pub(super) fn add(
        &mut self,
        account: usize,
        text: &[u8],
        arrival: Arrival,
        wanted: impl FnOnce(&Tags<'_>) -> bool,
    ) -> Result<Added> {
        let mut games = GameReader::new(text);
        games.next_game();
        let tags = games.tags();
        let time = start_time(tags);
        let text = text.trim_ascii();
        let address = address(tags).unwrap_or_else(|| text_hash(text));
        let is_wanted = wanted(tags);
        let is_new = is_wanted && !self.addresses.contains(&address);
        let of_account = &mut self.accounts[account];
        let at = time.unwrap_or(of_account.last_time);
        let rank = self.new.len() as i64;
        let rank = if arrival == Arrival::NewestFirst {
            -rank
        } else {
            rank
        };
        if is_new {
            let offset = self.spool.add(text).at(self.output.target(), "write")?;
            self.addresses.insert(address);
            self.new.push(NewGame {
                address,
                time: at,
                rank,
                offset,
                length: text.len() as u32,
            });
        }
        of_account.last_time = at;
        if is_wanted {
            of_account.received.entry(address).or_insert((at, rank));
        }
        // A game that is dated in the future must not hide games that are played before this date.
        if arrival == Arrival::Complete
            && let Some(time) = time.filter(|time| *time <= now())
        {
            of_account.is_changed |= of_account.completed.until.is_none_or(|until| until < time);
            of_account.completed.until = of_account.completed.until.max(Some(time));
        }
        Ok(Added { is_new, time })
    }

    /// Returns the number of games of an account that were received, including games that the file already contained.
    pub(super) fn received(&self, account: usize) -> usize {
        self.accounts[account].received.len()
    }

    /// Removes the new games that must not be added, and sorts the others by their starting times. `path` is the path
    /// of the file, and `name` is its name in error messages.
    fn select_new_games(&mut self, path: &Path, name: &Path) -> Result<()> {
        self.spool.cut(&self.new).at(name, "write")?;
        if FileState::of(path).at(name, "open")? != self.opened {
            // Another program has changed the file during the download.
            let accounts = self.accounts.iter().map(|games| games.account.clone());
            self.old = OldGames::read(&self.output, &Vec::from_iter(accounts))?;
        }
        self.retain_wanted();
        self.new.sort_by_key(|game| (game.time, game.rank));
        Ok(())
    }

    /// Removes the new games that must not be added: games whose texts could not be written, games that the file
    /// already contains now, and games that are not among the newest ones of any account.
    fn retain_wanted(&mut self) {
        let mut wanted: Option<FxHashSet<u64>> = None;
        if let Some(max) = self.max {
            let mut newest = FxHashSet::default();
            for games in &self.accounts {
                let mut received: Vec<_> = games.received.iter().collect();
                received.sort_unstable_by_key(|(_, rank)| Reverse(**rank));
                newest.extend(received.into_iter().take(max).map(|(address, _)| *address));
            }
            wanted = Some(newest);
        }
        self.new.retain(|game| {
            game.end() <= self.spool.length
                && !self.old.addresses.contains(&game.address)
                && wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted.contains(&game.address))
        });
    }

    /// Replaces the file with one that also contains the new games, and then records which games have been received.
    /// Does not change the file if there are no new games. Returns the number of games that the download has added, the
    /// number of all games in the file, and an error if games were lost or the record could not be written.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be replaced. The new games are then kept in another file, which the error
    /// names.
    pub(super) fn commit(mut self) -> Result<(u64, u64, Result<()>)> {
        let name = self.output.target().to_owned();
        let path = self.output.resolved_target().to_owned();
        let flushed = self.spool.flush().at(&name, "write");
        if let Err(err) = self.select_new_games(&path, &name) {
            return Err(self.spool.keep(err));
        }
        let Collection {
            output,
            spool,
            new,
            old,
            accounts,
            mut completed,
            completed_path,
            added: added_before,
            ..
        } = self;
        let added = new.len() as u64;
        let counts = (added_before + added, old.games + added);
        let is_new: FxHashSet<u64> = new.iter().map(|game| game.address).collect();
        if added > 0 {
            let old_file = (old.games > 0).then_some(&*path);
            if let Err(err) = write_joined(output, old_file, &spool, new) {
                return Err(spool.keep(err));
            }
        }
        // If texts of games were lost, these games must be requested again.
        if flushed.is_err() {
            return Ok((counts.0, counts.1, flushed));
        }
        let mut is_changed = false;
        for (mut games, of_old) in accounts.into_iter().zip(old.of_accounts) {
            if games.is_changed {
                let of_new = games
                    .received
                    .keys()
                    .filter(|address| is_new.contains(address));
                games.completed.games = of_old + of_new.count() as u64;
                completed.set(&games.key, games.completed);
                is_changed = true;
            }
        }
        let noted = if is_changed {
            completed.write(&completed_path)
        } else {
            Ok(())
        };
        Ok((counts.0, counts.1, noted))
    }
}

impl Spool {
    /// Creates the temporary file. If the games cannot be added to the PGN file, the temporary file is kept at `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if a file already exists at `path`, because it contains the games of an earlier download, or if
    /// no file can be created there.
    fn create(path: &Path) -> Result<Spool> {
        let file = AtomicFile::create_over(path, |path| {
            let problem = "this file contains new games of an earlier download, which could not be added: move it \
                           away, or add its games yourself, and repeat the command";
            Err(Error::file(path, problem))
        });
        Ok(Spool {
            out: BufWriter::with_capacity(1 << 16, file?),
            length: 0,
            is_broken: false,
        })
    }

    /// Appends the text of a game. Returns the offset of the text in the file.
    fn add(&mut self, text: &[u8]) -> io::Result<u64> {
        let offset = self.length;
        let written = self.out.write_all(text);
        let written = written.and_then(|()| self.out.write_all(b"\n\n"));
        self.is_broken |= written.is_err();
        self.length += text.len() as u64 + 2;
        written.map(|()| offset)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.is_broken |= flushed.is_err();
        flushed
    }

    /// If the last write failed, truncates the file after the last of `games` whose text is complete.
    fn cut(&mut self, games: &[NewGame]) -> io::Result<()> {
        if self.is_broken {
            let file = self.out.get_ref().file();
            let written = file.metadata()?.len();
            let ends = games.iter().map(NewGame::end);
            self.length = ends.filter(|end| *end <= written).max().unwrap_or(0);
            file.set_len(self.length)?;
        }
        Ok(())
    }

    fn read(&self, game: &NewGame) -> io::Result<Vec<u8>> {
        let mut file = self.out.get_ref().file();
        let mut text = vec![0; game.length as usize];
        file.seek(SeekFrom::Start(game.offset))?;
        file.read_exact(&mut text)?;
        Ok(text)
    }

    /// Keeps the file with the new games after the failure `err`, and returns an error that contains the path of the
    /// file. Returns `err` unchanged if there are no games, or if the file cannot be kept.
    fn keep(self, err: Error) -> Error {
        if self.length == 0 || matches!(err, Error::Interrupted) {
            return err;
        }
        let (file, _unwritten) = self.out.into_parts();
        let path = file.target().to_owned();
        if file.commit().is_err() {
            return err;
        }
        let reason = match &err {
            Error::Io { source, .. } => format!("{err}: {}", reason(source)),
            _ => err.to_string(),
        };
        let problem =
            format!("this file has the new games, because they could not be added: {reason}");
        Error::failed(path, problem)
    }
}

/// Writes a PGN file to `output` that contains the games of an old file and the games `new` from `spool`. Each new game
/// is inserted before the first game that began later. `old` is the path of the old file, or `None` if it contains no
/// games. `output` replaces the old file.
fn write_joined(
    output: AtomicFile,
    old: Option<&Path>,
    spool: &Spool,
    new: Vec<NewGame>,
) -> Result<()> {
    let name = output.target().to_owned();
    let mut out = Joined {
        out: BufferedFile::new(output),
        end: *b"\n\n",
    };
    let mut rest = new.into_iter().peekable();
    let copy = |out: &mut Joined, game: NewGame| {
        let text = spool.read(&game).at(&name, "read")?;
        out.separate()?;
        out.put(&text)?;
        out.put(b"\n\n")
    };
    if let Some(path) = old {
        for_each_game(path, &name, |tags, text| {
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
    out.out.commit()
}

impl OldGames {
    /// Reads the games of the file that `output` will replace. If this file does not exist or is empty, the result
    /// contains no games.
    fn read(output: &AtomicFile, accounts: &[Account]) -> Result<OldGames> {
        let (path, name) = (output.resolved_target(), output.target());
        let mut old = OldGames {
            of_accounts: vec![0; accounts.len()],
            ..OldGames::default()
        };
        let metadata = metadata_if_any(path).at(name, "open")?;
        if metadata.is_none_or(|metadata| metadata.len() == 0) {
            return Ok(old);
        }
        let foreign = || {
            Error::foreign(
                name,
                "this file does not contain games in plain PGN: choose another output",
            )
        };
        if FileKind::of(path)? != FileKind::Other {
            return Err(foreign());
        }
        let read = for_each_game(path, name, |tags, _| {
            let Some(tags) = tags else {
                return Ok(());
            };
            old.games += 1;
            old.addresses.extend(address(tags));
            for (account, games) in accounts.iter().zip(&mut old.of_accounts) {
                *games += u64::from(account.played(tags));
            }
            Ok(())
        });
        match read {
            Err(err) if old.games > 0 => Err(err),
            _ if old.games == 0 => Err(foreign()),
            _ => Ok(old),
        }
    }
}

/// A writer of a file with old and downloaded games, which writes a blank line before each downloaded game.
struct Joined {
    out: BufferedFile,
    /// The last two bytes that were written. Initially two line breaks, because nothing precedes the first game.
    end: [u8; 2],
}

impl Joined {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        for byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.end = [self.end[1], *byte];
        }
        self.out.put(bytes)
    }

    /// Writes line breaks, if necessary, so that the text so far ends with a blank line.
    fn separate(&mut self) -> Result<()> {
        while self.end != *b"\n\n" {
            // A text with CR and LF needs one more line break.
            self.put(b"\n")?;
        }
        Ok(())
    }
}

/// Calls `visit` for each game of the file at `path`, with the tags of the game and its text up to the start of the
/// next game. If other text precedes the first game, such as a byte order mark, first calls `visit` with this text and
/// `None`. Each byte of the file is passed to `visit` exactly once. `name` is the name of the file in error messages.
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

/// Returns a hash of the URL of a game, which is in the tag `Link` or `Site`. Returns `None` if neither tag contains a
/// URL.
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

/// Returns the current time in seconds since 1 January 1970.
fn now() -> i64 {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    passed.map_or(0, |passed| passed.as_secs() as i64)
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

/// Returns the beginning of a day, a month or a year in seconds since 1 January 1970, depending on which parts of
/// `date` are known. If `is_end` is `true`, returns the end instead. Returns `None` if the year is unknown.
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

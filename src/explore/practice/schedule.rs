//! Stores how well a player remembers the moves of a repertoire, and when each of them is due. A [`Schedule`] is stored
//! as JSON beside the repertoire.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Datelike, Days, Local, NaiveDate, NaiveTime};
use rs_fsrs::{Card, FSRS, Parameters, Rating, State};
use serde::{Deserialize, Serialize};

use super::deck::DeckMove;
use crate::{
    chess::position::BookMove,
    error::{At, Error, ErrorKind, Result},
    json,
    storage::output::{AtomicFile, BufferedFile, metadata_if_any},
};

/// The version of the file format of stored schedules.
const VERSION: u32 = 1;

/// The value of the first field of a stored schedule, by which the file is recognized.
const FORMAT: &str = "polybook practice";

/// The maximum size of a stored schedule in bytes. It is enough for 100,000 moves.
const MAX_BYTES: u64 = 32 << 20;

/// The maximum number of times that [`Schedule::update`] tries to claim the file.
const MAX_TRIES: u32 = 100;

/// The time between two attempts to claim the file.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The range of valid stabilities in days. FSRS limits intervals to 36,500 days.
const STABILITY: std::ops::RangeInclusive<f64> = 0.001..=36_500.0;

/// The range of valid difficulties in FSRS.
const DIFFICULTY: std::ops::RangeInclusive<f64> = 1.0..=10.0;

/// The range of years that a stored day may have.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9999;

/// The first day on which an answer can be recorded.
const FIRST_DAY: NaiveDate = NaiveDate::from_ymd_opt(*YEARS.start(), 1, 1).unwrap();

/// The last day on which an answer can be recorded. The longest interval of FSRS, which is almost 100 years, then ends
/// within [`YEARS`].
const LAST_DAY: NaiveDate = NaiveDate::from_ymd_opt(*YEARS.end() - 100, 12, 31).unwrap();

/// Returns the current day in the time zone of the system. If no answer can be recorded on this day, because the clock
/// of the system is wrong, returns the first or the last day on which an answer can be recorded.
pub fn today() -> NaiveDate {
    day_of(SystemTime::now())
}

/// Returns the day of `time` in the time zone of the system, but no day on which no answer can be recorded.
fn day_of(time: SystemTime) -> NaiveDate {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    // Only times long after the last day have no `DateTime`.
    let day = DateTime::from_timestamp(seconds, 0).map_or(LAST_DAY, |time| {
        let last = LAST_DAY.and_time(NaiveTime::MIN).and_utc();
        time.min(last).with_timezone(&Local).date_naive()
    });
    recordable(day)
}

/// Returns the day nearest to `day` on which an answer can be recorded.
fn recordable(day: NaiveDate) -> NaiveDate {
    day.clamp(FIRST_DAY, LAST_DAY)
}

/// A record of how well a player remembers a move, and when the move is due.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recall {
    /// The number of days after which the player still knows the move with a probability of 90 %.
    pub stability: f64,
    /// The difficulty of the move for the player, from 1 (easy) to 10 (hard).
    pub difficulty: f64,
    /// The day on which the player last answered.
    pub last: NaiveDate,
    /// The day on which the position is asked next.
    pub due: NaiveDate,
    /// The number of times that the player was asked for the move.
    pub answers: u32,
    /// The number of wrong answers among them.
    pub wrong: u32,
}

impl Recall {
    /// Returns the recall after an answer on the day `today`. `before` is the recall before this answer, or `None` if
    /// this is the first answer.
    ///
    /// Only the first answer of a day counts for the schedule. If it is wrong, the position remains due until the
    /// player answers correctly.
    ///
    /// If `before` was recorded on a later day, in another time zone or because the clock of the system was wrong then,
    /// this answer changes only the days.
    pub fn after(before: Option<&Recall>, is_right: bool, today: NaiveDate) -> Recall {
        let today = recordable(today);
        let mut recall = match before {
            Some(before) if before.last >= today => *before,
            _ => reviewed(before, is_right, today),
        };
        recall.last = today;
        recall.due = if is_right {
            let days = parameters().next_interval(recall.stability, 0);
            today
                .checked_add_days(Days::new(days as u64))
                .unwrap_or(today)
        } else {
            today
        };
        recall.answers = recall.answers.saturating_add(1);
        recall.wrong = recall.wrong.saturating_add(u32::from(!is_right));
        recall
    }

    /// Returns `true` if the user should answer in the position again on the day `today`. This is also the case if the last
    /// answer was recorded more than one day later, because the clock of the system was wrong then.
    pub fn is_due(&self, today: NaiveDate) -> bool {
        let today = if self.is_of(today) { self.last } else { today };
        self.due <= today || self.last > today
    }

    /// Returns `true` if the last answer was recorded on the day `today` or on the next day. The programs that record
    /// answers can be in different time zones, for example a server and a command line, so their days can differ by
    /// one.
    pub(super) fn is_of(&self, today: NaiveDate) -> bool {
        self.last == today || Some(self.last) == today.succ_opt()
    }

    /// Returns `true` if the last answer was recorded more than one day after `today`.
    fn is_late(&self, today: NaiveDate) -> bool {
        self.last > today && !self.is_of(today)
    }

    /// Returns `true` if FSRS can handle the numbers and days of a recall that was read from a file.
    fn is_valid(&self) -> bool {
        STABILITY.contains(&self.stability)
            && DIFFICULTY.contains(&self.difficulty)
            && YEARS.contains(&self.last.year())
            && YEARS.contains(&self.due.year())
    }
}

/// Returns the parameters of FSRS. Intervals are whole days.
fn parameters() -> Parameters {
    Parameters {
        enable_short_term: false,
        ..Parameters::default()
    }
}

/// Returns the recall that FSRS computes from the first answer of a day. The caller must set the days.
fn reviewed(before: Option<&Recall>, is_right: bool, today: NaiveDate) -> Recall {
    let time = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
    let card = before.map_or_else(Card::default, |before| Card {
        stability: before.stability,
        difficulty: before.difficulty,
        last_review: time(before.last),
        state: State::Review,
        ..Card::default()
    });
    let rating = if is_right {
        Rating::Good
    } else {
        Rating::Again
    };
    let card = FSRS::new(parameters()).next(card, time(today), rating).card;
    Recall {
        stability: card.stability.clamp(*STABILITY.start(), *STABILITY.end()),
        difficulty: card
            .difficulty
            .clamp(*DIFFICULTY.start(), *DIFFICULTY.end()),
        last: today,
        due: today,
        answers: before.map_or(0, |before| before.answers),
        wrong: before.map_or(0, |before| before.wrong),
    }
}

/// The recalls of all moves that the player was asked to find. A move is identified by its position and its UCI
/// notation, so a recall remains valid when other parts of the repertoire change, and when the move is removed and
/// added again.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Schedule {
    /// The recalls, keyed by the name of the position, then by the move.
    recalls: BTreeMap<String, BTreeMap<String, Recall>>,
}

/// The fields by which a stored schedule is recognized.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

#[derive(Deserialize)]
struct Document {
    cards: Vec<StoredCard>,
}

#[derive(Serialize, Deserialize)]
struct StoredCard {
    position: String,
    #[serde(rename = "move")]
    mv: String,
    #[serde(flatten)]
    recall: Recall,
}

impl Schedule {
    /// Returns the path at which the schedule of a repertoire is stored: the path of the repertoire with the ending
    /// `.practice.json` appended.
    ///
    /// ```
    /// use polybook::practice::Schedule;
    /// assert_eq!(Schedule::path_of("my/white.pgn".as_ref()).to_str(), Some("my/white.pgn.practice.json"));
    /// ```
    pub fn path_of(repertoire: &Path) -> PathBuf {
        let mut path = repertoire.as_os_str().to_owned();
        path.push(".practice.json");
        path.into()
    }

    /// Reads a schedule. Returns an empty schedule if the file does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is too large, was not written by [`write`](Schedule::write), or was
    /// written by a newer version of polybook.
    pub fn read(path: &Path) -> Result<Schedule> {
        if !is_stored(path)? {
            return Ok(Schedule::default());
        }
        let mut text = Vec::new();
        let file = File::open(path).at(path, "read")?;
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .at(path, "read")?;
        if text.len() as u64 > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            let problem = format!(
                "this file is larger than {most} MiB, so it does not contain results of practice: rename it"
            );
            return Err(Error::too_large(path, problem));
        }
        let foreign = |reason: String| {
            let problem = format!(
                "this file does not contain results of practice ({reason}): rename it to begin anew"
            );
            Error::file(path, problem)
        };
        let head: Head = serde_json::from_slice(&text).map_err(|err| foreign(err.to_string()))?;
        if head.format != FORMAT {
            return Err(foreign("it has another format".to_owned()));
        }
        if head.version != VERSION {
            let problem = format!(
                "this file was written by another version of polybook, with the format {}: use this version",
                head.version
            );
            return Err(Error::file(path, problem));
        }
        let document: Document =
            serde_json::from_slice(&text).map_err(|err| foreign(err.to_string()))?;
        let mut schedule = Schedule::default();
        for StoredCard {
            position,
            mv,
            recall,
        } in document.cards
        {
            if !recall.is_valid() {
                return Err(foreign(format!(
                    "a number or a day of the move {mv} in {position} is out of range"
                )));
            }
            schedule.insert(position, mv, recall);
        }
        Ok(schedule)
    }

    /// Writes the schedule to `path`, and replaces the file there when the new file is complete. The file contains one
    /// line for each move, in a fixed order.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.write_to(AtomicFile::create(path)?)
    }

    /// Reads the schedule at `path`, changes it with `change`, and writes it. Returns the changed schedule with the
    /// value that `change` returned. If `change` returns an error, the file remains unchanged.
    ///
    /// The file is claimed before it is read. Other programs that record answers then wait until the changed schedule
    /// is written, so the schedule that `change` receives contains all of their earlier answers. If another program has
    /// claimed the file, waits for that program, but at most about a second.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`, an error of the kind [`Busy`](ErrorKind::Busy) if another program keeps writing
    /// the file, or fails for the same reasons as [`read`](Schedule::read) and [`write`](Schedule::write).
    pub fn update<T, E: From<Error>>(
        path: &Path,
        change: impl FnOnce(&mut Schedule) -> Result<T, E>,
    ) -> Result<(Schedule, T), E> {
        // Opening a pipe would block the thread.
        is_stored(path)?;
        let file = claimed(path)?;
        let mut schedule = Schedule::read(path)?;
        let changed = change(&mut schedule)?;
        schedule.write_to(file)?;
        Ok((schedule, changed))
    }

    /// Writes the schedule to `file`, and commits the file.
    pub(super) fn write_to(&self, file: AtomicFile) -> Result<()> {
        let mut out = BufferedFile::new(file);
        out.put(format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"cards\":[").as_bytes())?;
        let mut separator = "\n";
        let moves = self.recalls.iter().flat_map(|(position, moves)| {
            moves.iter().map(move |(mv, recall)| (position, mv, recall))
        });
        for (position, mv, recall) in moves {
            let card = StoredCard {
                position: position.clone(),
                mv: mv.clone(),
                recall: *recall,
            };
            let card = json::to_string(&card).expect("texts and numbers are JSON");
            out.put(format!("{separator}{card}").as_bytes())?;
            separator = ",\n";
        }
        out.put(b"\n]}\n")?;
        out.commit()
    }

    /// Returns the number of moves that were asked.
    pub fn moves(&self) -> usize {
        self.recalls.values().map(BTreeMap::len).sum()
    }

    /// Returns the latest recall of any of `moves` in the position with the name `position`, or `None` if none of them
    /// was asked. A recall that was recorded by a wrong clock, more than one day after `today`, is returned only if
    /// there is no other.
    pub(super) fn recall(
        &self,
        position: &str,
        moves: &[DeckMove],
        today: NaiveDate,
    ) -> Option<&Recall> {
        let known = self.recalls.get(position)?;
        let recalls = moves.iter().filter_map(|mv| known.get(&mv.mv.to_string()));
        recalls.max_by_key(|recall| (!recall.is_late(today), recall.last, recall.due))
    }

    /// Stores the recall of a move in the position with the name `position`.
    pub(super) fn record(&mut self, position: &str, mv: BookMove, recall: Recall) {
        self.insert(position.to_owned(), mv.to_string(), recall);
    }

    fn insert(&mut self, position: String, mv: String, recall: Recall) {
        self.recalls.entry(position).or_default().insert(mv, recall);
    }
}

/// Returns `true` if a file exists at `path`. Returns an error if something else exists there, such as a directory or a
/// pipe.
fn is_stored(path: &Path) -> Result<bool> {
    match metadata_if_any(path).at(path, "read")? {
        None => Ok(false),
        Some(metadata) if metadata.is_file() => Ok(true),
        Some(_) => {
            let problem = "the results of practice are stored under this name, but it is not a file: rename it";
            Err(Error::file(path, problem))
        }
    }
}

/// Creates an output file that will replace the schedule at `path`. Other programs that call this function then wait
/// until the file is committed or dropped.
fn claimed(path: &Path) -> Result<AtomicFile> {
    for _ in 0..MAX_TRIES {
        match AtomicFile::create(path) {
            Err(Error::Busy { .. }) => thread::sleep(RETRY_INTERVAL),
            claimed => return claimed,
        }
    }
    Err(Error::File {
        path: path.to_owned(),
        kind: ErrorKind::Busy,
        problem: "another program is writing this file: try again when it has ended".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_day() {
        let days = |number: u64| Duration::from_secs(number * 86_400);
        let year_2026 = day_of(UNIX_EPOCH + days(20_500));
        assert_eq!(year_2026.year(), 2026);
        for early in [Duration::ZERO, days(1), days(100_000)] {
            let day = day_of(UNIX_EPOCH - early);
            assert!(day == FIRST_DAY || day == FIRST_DAY + Days::new(1), "{day}");
        }
        for late in [days(3_000_000), days(10_000_000), days(100_000_000)] {
            // Some systems have no later times.
            if let Some(time) = UNIX_EPOCH.checked_add(late) {
                let day = day_of(time);
                assert!(LAST_DAY - day <= chrono::TimeDelta::days(1), "{day}");
            }
        }
    }
}

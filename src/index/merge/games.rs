//! Merging the game records of LevelDB indexes, and the rows, details and names of games of explorer's indexes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::plan::MergePlan;
use crate::{
    error::{Error, Result},
    index::{
        GameRecords,
        layout::game_id,
        store::{ListKey, game_details::GAMES_PER_ENTRY, game_rows::ROWS_PER_ENTRY, rows_key},
        store::{ListRecord, StoredGames},
    },
    storage::sort::{ByteRun, Memory, Record, SHARDS, Sealed, Shards},
};

/// The lower limit (inclusive) of the LevelDB keys of game records.
const START: &[u8] = b"game_";
/// The upper limit (exclusive) of the LevelDB keys of game records. The backtick follows the underscore in ASCII.
const END: &[u8] = b"game`";

/// The greatest number of decimal digits of a 32-bit game id.
const MAX_ID_DIGITS: usize = 10;

/// The number of list records that [`MergedGames::new`] collects in memory before it passes them to a sorter, which can
/// spill them to temporary files. Each of these records adds the number of a player or event name to the list of all
/// names that are equal after normalization, for example names that differ only in case.
const NAME_RECORDS_PER_SORT: usize = 1 << 16;

/// Reads the game records of all indexes in `plan`, and returns them in the order of the game ids in the merged index.
///
/// # Errors
///
/// Returns an error if an input cannot be read or is damaged, or if a temporary file fails. Returns
/// [`Error::Interrupted`] if `stop` is set.
pub(super) fn merged_records(
    plan: &MergePlan<'_>,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<GameRecords> {
    let mut merged = GameRecords::new(memory.bytes / 4, memory.temp_dir.clone());
    for part in &plan.inputs {
        // Keys of ids with equal numbers of digits are in numeric order, so one run for each number of digits suffices
        // to restore the order of the ids.
        let share = memory.bytes / 4 / MAX_ID_DIGITS;
        let run = || (ByteRun::new(share, memory.temp_dir.clone()), 0);
        let mut by_digits: Vec<(ByteRun, u64)> = (0..MAX_ID_DIGITS).map(|_| run()).collect();
        let mut entries = part.cursor(START, END, usize::MAX)?;
        while let Some(key) = entries.key_before(END) {
            let id = game_id(key).ok_or_else(|| part.index.malformed(key))?;
            let (records, count) = &mut by_digits[id.checked_ilog10().unwrap_or(0) as usize];
            records.append_text(entries.value().held())?;
            *count += 1;
            entries.advance()?;
        }
        let found: u64 = by_digits.iter().map(|(_, count)| count).sum();
        if found != part.index.game_count() {
            return Err(part.index.malformed(START));
        }
        for (records, _) in &by_digits {
            let mut reader = records.reader(0);
            while let Some(record) = reader.read_text()? {
                merged.push_all(&[record.len() as u32], &record)?;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
    }
    Ok(merged)
}

/// The games and the player and event names of a merged index, read from all inputs of the merge. The row of a game
/// contains the numbers that the names of its players and of its event have in the merged index.
pub(super) struct MergedGames {
    pub games: StoredGames,
    /// The list records of the names that the base input does not contain.
    pub names: Sealed<ListRecord>,
}

impl MergedGames {
    /// Reads the games and names of all indexes in `plan`, and assigns the numbers that the names get in the merged
    /// index.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file fails. Returns
    /// [`Error::Interrupted`] if `stop` is set.
    pub(super) fn new(
        plan: &MergePlan<'_>,
        memory: &Memory,
        stop: &AtomicBool,
    ) -> Result<MergedGames> {
        let mut games = StoredGames::new(memory.bytes / 4, memory.temp_dir.clone());
        let shards = Shards::new(memory.share(8));
        let mut lists = Vec::new();
        for (number, part) in plan.inputs.iter().enumerate() {
            for entry in 0..part.index.game_count().div_ceil(ROWS_PER_ENTRY) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let mut rows = part.index.row_entry(entry)?.into_iter();
                let first = entry * ROWS_PER_ENTRY / GAMES_PER_ENTRY;
                let of_rows = (rows.len() as u64).div_ceil(GAMES_PER_ENTRY);
                for details in first..first + of_rows {
                    part.index.for_each_details(details, |details, _| {
                        let row = rows.next().expect("the entries have as many games");
                        let name = |number| part.index.name(number);
                        let names = [name(row.white)?, name(row.black)?, name(row.event)?];
                        let before = [row.white, row.black, row.event];
                        let numbers = games.push(row, &names, details, &mut lists)?;
                        if number == plan.base && numbers != before {
                            return Err(part.index.malformed(&rows_key(entry as u32)));
                        }
                        Ok(())
                    })?;
                }
                if number == plan.base {
                    // The names of the base input keep their numbers, so its lists of names need no new records.
                    lists.clear();
                }
                if lists.len() > NAME_RECORDS_PER_SORT {
                    shards.append(&lists)?;
                    lists.clear();
                }
            }
        }
        shards.append(&lists)?;
        Ok(MergedGames {
            games,
            names: shards.seal()?,
        })
    }

    /// Returns a list record for each new name. A new name is a name that the base index (the first index with games)
    /// does not contain. The record adds the number of the name to the list of all names that are equal after
    /// normalization.
    ///
    /// Returns only records whose list keys are at least `from` and less than `until`. If `until` is `None`, there is
    /// no upper limit.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(super) fn names_within(
        &self,
        from: ListKey,
        until: Option<ListKey>,
    ) -> Result<Vec<ListRecord>> {
        let shard_of = |subject| ListRecord::listed(subject, 0).shard();
        let mut names = Vec::new();
        for shard in shard_of(from)..=until.map_or(SHARDS - 1, shard_of) {
            self.names.for_each(shard, |record| {
                let subject = record.subject();
                if subject >= from && until.is_none_or(|until| subject < until) {
                    names.push(record);
                }
            })?;
        }
        Ok(names)
    }
}

//! The open indexes of an explorer, which are its sources. The data of all games is held in memory. Names and
//! lists of games are read from the file when they are needed.

use std::{fs, path::Path, time::SystemTime};

use super::games::{GameColumns, GameSummary};
use crate::{
    error::{Error, Result},
    index::{
        Index,
        store::{
            Contents, CountedContents, ListKey, count_pages::CountedList,
            game_rows::ROWS_PER_ENTRY, lists::List,
        },
        store::{ListLocation, StoredPart},
    },
    pgn::{NameMatch, folded},
};

/// An open index of an explorer, with the data of its games in memory. It contains either games, at 34 bytes
/// each, or counts, which are sums of results without games.
#[derive(Debug)]
pub(super) struct OpenIndex {
    pub name: String,
    pub index: Index,
    pub contents: Contents,
    /// The description of the counts, if this is an index of counts.
    pub counted: Option<CountedContents>,
    /// The modification time of the directory, if the file system has one.
    pub changed: Option<SystemTime>,
    /// The number of the first game, which is the total number of games in the preceding indexes.
    pub first: u64,
    pub rows: GameColumns,
}

impl OpenIndex {
    pub(super) fn open(name: String, path: &Path, first: u64) -> Result<OpenIndex> {
        let index = Index::open(path)?;
        let counted = index.counted()?;
        let contents = match &counted {
            Some(counted) => Some(Contents {
                paging: counted.paging(),
                positions: counted.positions,
                items: counted.rows,
                names: 0,
                max_ply: counted.max_ply,
            }),
            None => index.contents(),
        };
        let contents = contents.ok_or_else(|| {
            Error::file(
                path,
                "this index was made with --leveldb, but an explorer's index is needed: make an explorer's index with make-book --explorer",
            )
        })?;
        // Bounds the initial allocation, because a damaged index may claim any number of games.
        let likely = (index.game_count() as usize).min(1 << 24);
        let mut rows = GameColumns::with_capacity(likely);
        for number in 0..index.game_count().div_ceil(ROWS_PER_ENTRY) {
            for row in index.row_entry(number)? {
                rows.push(&row);
            }
        }
        Ok(OpenIndex {
            name,
            contents,
            counted,
            changed: fs::metadata(path).and_then(|data| data.modified()).ok(),
            first,
            rows,
            index,
        })
    }

    /// Returns the number of games from which the index was built, including games whose positions are not indexed.
    /// Returns `None` if this number is unknown, because another program made the counts and did not state it.
    pub(super) fn counted_games(&self) -> Option<u64> {
        match &self.counted {
            Some(counted) => counted.games,
            None => Some(self.games()),
        }
    }

    /// Returns the number of games whose positions are not indexed. These games were rejected, or did not pass a
    /// filter when the index was built.
    pub(super) fn not_counted(&self) -> u64 {
        let ids = 0..self.games() as u32;
        ids.filter(|id| !self.game(*id).traits.is_indexed()).count() as u64
    }

    /// Returns the threshold for rare positions in an index of counts. Positions in which fewer moves than this number
    /// were played, added up over all games, were removed from the counts. Returns `None` if no positions were removed,
    /// or if this is an index of games.
    pub(super) fn min_game(&self) -> Option<u64> {
        let counted = self.counted.as_ref()?;
        Some(counted.min_game).filter(|fewest| *fewest > 1)
    }

    /// Returns the maximum number of half-moves that were counted in each game, from its start. Returns `None` if all
    /// half-moves were counted.
    pub(super) fn max_ply(&self) -> Option<usize> {
        self.contents.max_ply
    }

    /// Returns the number of games in the index. An index of counts contains no games.
    pub(super) fn games(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the summary of game `id`.
    ///
    /// # Panics
    ///
    /// Panics if no game of the index has this id.
    #[inline]
    pub(super) fn game(&self, id: u32) -> GameSummary {
        self.rows.get(id).expect("the source has the game")
    }

    /// Returns the name with the number `number`, which is the name of a player or an event.
    pub(super) fn name(&self, number: u32) -> Result<String> {
        self.index.name(number).map(String::from)
    }

    /// Returns the numbers of all names of players and events that match `name`, in ascending order. `how` says
    /// whether the whole name must match, or only a part of it.
    pub(super) fn numbers_of(&self, name: &str, how: NameMatch) -> Result<Vec<u32>> {
        let wanted = folded(name);
        if how == NameMatch::Part {
            let mut numbers = Vec::new();
            self.for_each_name(|number, name| {
                if how.matches(&folded(name), &wanted) {
                    numbers.push(number);
                }
            })?;
            return Ok(numbers);
        }
        let mut numbers = Vec::new();
        for number in self.listed(ListKey::name(&wanted))? {
            // The list may contain another name with the same hash.
            if folded(&self.name(number)?) == wanted {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// Calls `f` with the number and the text of each name of a player or an event, in ascending order of numbers.
    pub(super) fn for_each_name(&self, f: impl FnMut(u32, &str)) -> Result<()> {
        self.index.for_each_name(f)
    }

    /// Returns the counts of the position with the key `subject`: the results of its games, counted for each move.
    /// Returns `None` if the index does not contain the position, or if it contains games instead of counts.
    pub(super) fn counts(&self, subject: ListKey) -> Result<Option<CountedList>> {
        match &self.counted {
            Some(counted) => self.index.counted_list(counted.paging(), subject),
            None => Ok(None),
        }
    }

    /// Finds the list with the key `subject` in the index, and returns its location. Depending on its key, the list
    /// contains the games that reached a position, the games of a player, the games with a Lichess id, or the numbers
    /// of the spellings of a name.
    pub(super) fn find_list(&self, subject: ListKey) -> Result<ListLocation> {
        self.index.find_list(self.contents.paging, subject)
    }

    /// Calls `f` for each list in one page of the index, in ascending order of keys. A page is an entry of the index
    /// that contains the lists of a range of keys. `f` receives the key of a list and the list itself. `any_key` is any
    /// key in the range of the wanted page; the page need not contain a list with this key.
    pub(super) fn for_each_list(
        &self,
        any_key: ListKey,
        f: impl FnMut(ListKey, List<'_>) -> Result<()>,
    ) -> Result<()> {
        self.index.for_each_list(self.contents.paging, any_key, f)
    }

    /// Reads the list of games with the key `subject`. A long list is stored in several parts. `location` is the
    /// location of the list, as returned by [`find_list`](OpenIndex::find_list).
    pub(super) fn list(&self, subject: ListKey, location: ListLocation) -> Result<Vec<StoredPart>> {
        self.index.list(subject, location)
    }

    /// Returns the elements of the list with the key `subject` in ascending order: the ids of games, or the numbers
    /// of names. Returns an empty vector if the index does not contain such a list.
    pub(super) fn listed(&self, subject: ListKey) -> Result<Vec<u32>> {
        self.index.list_ids(self.contents.paging, subject)
    }

    pub(super) fn damaged(&self, problem: &str) -> Error {
        Error::damaged(
            self.index.path(),
            format!("the index is damaged: {problem}; make the index again"),
        )
    }
}

//! One index that the explorer answers from: its games in memory, its names and lists read when they are asked for.

use std::{fs, path::Path, time::SystemTime};

use super::games::{GameRows, Hot};
use crate::{
    error::{Error, Result},
    index::{
        Index,
        explored::{ListPlace, NameReader, StoredPart},
        layout::{
            Contents, CountedContents, Subject, counted::CountedList, played::List, rows::ROWS,
        },
    },
    pgn::{NameMatch, folded},
};

/// An index that is open, with its games in memory: 32 bytes of each. An index of counts has none.
#[derive(Debug)]
pub(super) struct OpenIndex {
    pub name: String,
    pub index: Index,
    pub contents: Contents,
    /// What there is in an index of counts.
    pub counted: Option<CountedContents>,
    /// When the directory was changed last, as the system says.
    pub changed: Option<SystemTime>,
    /// How many games the sources before it have.
    pub first: u64,
    pub rows: GameRows,
    names: NameReader,
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
            None => index.contents()?,
        };
        let contents = contents.ok_or_else(|| {
            Error::file(
                path,
                "was made without --explorer: make it again with it to ask what was played",
            )
        })?;
        // A damaged count must not ask for more than there is.
        let likely = (index.game_count() as usize).min(1 << 24);
        let mut rows = GameRows::with_capacity(likely);
        for number in 0..index.game_count().div_ceil(ROWS) {
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
            names: NameReader::new(contents.names),
            index,
        })
    }

    /// How many games were counted, those that count or not. Counts of other programs may not say it.
    pub(super) fn counted_games(&self) -> Option<u64> {
        match &self.counted {
            Some(counted) => counted.games,
            None => Some(self.games()),
        }
    }

    /// Of pruned counts, how many moves were counted at least in each position that is there.
    pub(super) fn min_game(&self) -> Option<u64> {
        let counted = self.counted.as_ref()?;
        Some(counted.min_game).filter(|fewest| *fewest > 1)
    }

    /// The last half-move that was counted of a game, if not all were.
    pub(super) fn max_ply(&self) -> Option<usize> {
        self.contents.max_ply
    }

    /// How many games there are. An index of counts has none.
    pub(super) fn games(&self) -> u64 {
        self.rows.len() as u64
    }

    /// A game that there is.
    #[inline]
    pub(super) fn game(&self, id: u32) -> Hot {
        self.rows.get(id).expect("the source has the game")
    }

    /// A name by its number.
    pub(super) fn name(&self, number: u32) -> Result<String> {
        self.names.name(&self.index, number).map(String::from)
    }

    /// The numbers of the names that match one, ascending.
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
        for number in self.listed(Subject::name(&wanted))? {
            // Another name might share the hash.
            if folded(&self.name(number)?) == wanted {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// Goes through all names and their numbers, which ascend.
    pub(super) fn for_each_name(&self, f: impl FnMut(u32, &str)) -> Result<()> {
        self.names.for_each(&self.index, f)
    }

    /// The counts of a position, if this is an index of counts.
    pub(super) fn counts(&self, subject: Subject) -> Result<Option<Option<CountedList>>> {
        let counted = self.counted.as_ref();
        let list = counted.map(|counted| self.index.counted_list(counted.paging(), subject));
        list.transpose()
    }

    /// The place of a subject's list.
    pub(super) fn place(&self, subject: Subject) -> Result<ListPlace> {
        self.index.find_list(self.contents.paging, subject)
    }

    /// Calls `f` with each subject of the page of one, in ascending order, and its list.
    pub(super) fn for_each_list(
        &self,
        any: Subject,
        f: impl FnMut(Subject, List<'_>) -> Result<()>,
    ) -> Result<()> {
        self.index.for_each_list(self.contents.paging, any, f)
    }

    /// The list of a subject at its place.
    pub(super) fn list(&self, subject: Subject, place: ListPlace) -> Result<Vec<StoredPart>> {
        self.index.list(subject, place)
    }

    /// The ids in the list of a subject, ascending.
    pub(super) fn listed(&self, subject: Subject) -> Result<Vec<u32>> {
        self.index.listed(self.contents.paging, subject)
    }

    pub(super) fn damaged(&self, problem: &str) -> Error {
        Error::damaged(
            self.index.path(),
            format!("is damaged: {problem}; make the index again"),
        )
    }
}

//! The sources of an explorer: one or several open indexes whose games are numbered consecutively.

use std::{fmt, fs, path::Path, sync::OnceLock, time::SystemTime};

use super::{
    duplicate_groups::DuplicateGroups,
    filter::SourceFilters,
    games::{GameColumns, GameSummary},
    query::Filters,
};
use crate::{
    error::{Error, Result},
    index::{
        Index,
        store::{
            Contents, CountedContents, ListKey, ListLocation, SiteId, StoredPart,
            count_pages::CountedList, game_rows::ROWS, lists::List,
        },
    },
    pgn::{NameMatch, folded},
};

/// The open indexes of an explorer. Games are numbered consecutively over all indexes.
pub(super) struct Sources {
    /// The indexes, in the order of their games' numbers.
    pub indexes: Vec<OpenIndex>,
    duplicates: OnceLock<DuplicateGroups>,
    /// Whether unfinished games are left out of every answer.
    pub skip_unfinished: bool,
}

impl Sources {
    /// Creates the sources of an explorer that includes unfinished games. `indexes` must be in the order of their games'
    /// numbers.
    pub(super) fn new(indexes: Vec<OpenIndex>) -> Sources {
        Sources {
            indexes,
            duplicates: OnceLock::new(),
            skip_unfinished: false,
        }
    }

    /// Returns the number of games in all sources.
    pub(super) fn game_count(&self) -> u64 {
        let last = self.indexes.last();
        last.map_or(0, |last| last.first + last.games())
    }

    /// Returns the minimum number of counted moves in a position, as
    /// [`Explorer::min_game`](super::Explorer::min_game) describes.
    pub(super) fn min_game(&self, filters: &Filters) -> Option<u64> {
        let selected = self.selected(filters.source.as_deref());
        selected.filter_map(OpenIndex::min_game).max()
    }

    /// Returns the reason why the selected sources cannot apply the filters, as
    /// [`Explorer::needs_games`](super::Explorer::needs_games) describes.
    pub(super) fn needs_games(&self, filters: &Filters) -> Option<NeedsGames> {
        self.needs_all_games(filters.source.as_deref(), filters.of_games()?)
    }

    /// Returns a selected source that contains only counts, as
    /// [`Explorer::needs_all_games`](super::Explorer::needs_all_games) describes.
    pub(super) fn needs_all_games(
        &self,
        wanted: Option<&str>,
        what: &'static str,
    ) -> Option<NeedsGames> {
        let mut selected = self.selected(wanted);
        let source = selected.find(|source| source.counted.is_some())?;
        Some(NeedsGames {
            what,
            source: source.name.clone(),
        })
    }

    /// Returns the first selected source if no selected source contains games, as
    /// [`Explorer::lacks_games`](super::Explorer::lacks_games) describes.
    pub(super) fn lacks_games(
        &self,
        wanted: Option<&str>,
        what: &'static str,
    ) -> Option<NeedsGames> {
        let mut sources = self.selected(wanted).peekable();
        let first = sources.peek()?.name.clone();
        let lacks_all = sources.all(|source| source.counted.is_some());
        lacks_all.then_some(NeedsGames {
            what,
            source: first,
        })
    }

    /// Returns an iterator over the source (an index of the explorer) with the name `wanted`, or over all sources if
    /// `wanted` is `None`.
    pub(super) fn selected(&self, wanted: Option<&str>) -> impl Iterator<Item = &OpenIndex> {
        let is_selected = move |source: &&OpenIndex| wanted.is_none_or(|name| *name == source.name);
        self.indexes.iter().filter(is_selected)
    }

    /// Prepares `filters` so that they can be applied to the games of each source. A source is one of the indexes that
    /// are shown as one.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if a filter needs single games and a selected source
    /// contains only counts.
    pub(super) fn filters(&self, filters: &Filters) -> Result<SourceFilters<'_>> {
        self.check(filters)?;
        self.unchecked_filters(filters)
    }

    /// Prepares filters for listing games. Sources that contain only counts are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if no selected source contains games.
    pub(super) fn filters_of_games(&self, filters: &Filters) -> Result<SourceFilters<'_>> {
        let source = filters.source.as_deref();
        self.check_source(source)?;
        match self.lacks_games(source, "a list of games") {
            Some(needs) => Err(Error::file(&needs.source, needs.problem())),
            None => self.unchecked_filters(filters),
        }
    }

    /// Prepares filters for an operation that needs the games of every selected source. `what` names the operation, for
    /// the message.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if a selected source contains only counts.
    pub(super) fn filters_of_all_games(
        &self,
        filters: &Filters,
        what: &'static str,
    ) -> Result<SourceFilters<'_>> {
        let source = filters.source.as_deref();
        self.check_source(source)?;
        match self.needs_all_games(source, what) {
            Some(needs) => Err(Error::file(&needs.source, needs.problem())),
            None => self.unchecked_filters(filters),
        }
    }

    fn unchecked_filters(&self, filters: &Filters) -> Result<SourceFilters<'_>> {
        let mut filters = filters.clone();
        filters.skip_unfinished |= self.skip_unfinished;
        let prepared = SourceFilters::new(&self.indexes, &filters)?;
        Ok(match filters.once {
            true => prepared.once(self.duplicates()?),
            false => prepared,
        })
    }

    /// Returns the groups of duplicate games. The first call computes them.
    pub(super) fn duplicates(&self) -> Result<&DuplicateGroups> {
        if let Some(duplicates) = self.duplicates.get() {
            return Ok(duplicates);
        }
        let duplicates = DuplicateGroups::find(&self.indexes)?;
        Ok(self.duplicates.get_or_init(|| duplicates))
    }

    /// Checks that the sources can apply all filters.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if a filter needs single games and a selected source
    /// contains only counts.
    pub(super) fn check(&self, filters: &Filters) -> Result<()> {
        self.check_source(filters.source.as_deref())?;
        match self.needs_games(filters) {
            Some(needs) => Err(Error::file(&needs.source, needs.problem())),
            None => Ok(()),
        }
    }

    /// Checks that a source (an index of the explorer) with the name `wanted` exists. Always succeeds if `wanted` is
    /// `None`.
    ///
    /// # Errors
    ///
    /// Returns an error that lists all sources if no source has this name.
    pub(super) fn check_source(&self, wanted: Option<&str>) -> Result<()> {
        match wanted {
            Some(name) if self.indexes.iter().all(|source| source.name != name) => {
                let names: Vec<&str> = self.indexes.iter().map(|source| &*source.name).collect();
                let problem = format!("no source has this name: name one of {}", names.join(", "));
                Err(Error::file(name, problem))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if exactly one game in all sources has the Lichess id `id`.
    pub(super) fn is_of_one_game(&self, id: SiteId) -> Result<bool> {
        let mut games = 0;
        for source in &self.indexes {
            games += source.listed(ListKey::site_id(id))?.len();
        }
        Ok(games == 1)
    }

    /// Returns the source (an index of the explorer) that contains game `number`, and the id of the game in this
    /// source.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub(super) fn locate(&self, number: u64) -> Result<(&OpenIndex, u32)> {
        let after = self
            .indexes
            .partition_point(|source| source.first <= number);
        let source = after.checked_sub(1).map(|at| &self.indexes[at]);
        match source {
            Some(source) if number - source.first < source.games() => {
                Ok((source, (number - source.first) as u32))
            }
            _ => {
                let games = self.game_count();
                let problem = format!(
                    "no game has this number: the sources have {games} games, numbered from 0"
                );
                Err(Error::file(number.to_string(), problem))
            }
        }
    }
}

/// The reason why a query cannot be answered: a filter or an operation needs single games, but a source (an index of
/// the explorer) contains only counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeedsGames {
    what: &'static str,
    source: String,
}

impl NeedsGames {
    fn problem(&self) -> String {
        format!(
            "this index has only counts, but games are needed for {}: choose an index that make-book --explorer made of games",
            self.what
        )
    }
}

impl fmt::Display for NeedsGames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NeedsGames { what, source } = self;
        write!(
            f,
            "the source \"{source}\" has only counts, but games are needed for {what}: choose an index that make-book \
             --explorer made of games"
        )
    }
}

/// A source of an explorer: an open index, with the data of its games in memory (34 bytes each). An index of counts has
/// no games.
#[derive(Debug)]
pub(super) struct OpenIndex {
    pub name: String,
    pub index: Index,
    pub contents: Contents,
    /// The description of the counts, if this is an index of counts.
    pub counted: Option<CountedContents>,
    /// The modification time of the directory, if the file system has one.
    pub changed: Option<SystemTime>,
    /// The number of the first game: the sum of the games of the sources before it.
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
                "this index was made with --leveldb for front-ends: make an explorer's index with make-book --explorer",
            )
        })?;
        // Bounds the allocation, because a damaged index may claim any number of games.
        let likely = (index.game_count() as usize).min(1 << 24);
        let mut rows = GameColumns::with_capacity(likely);
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
            index,
        })
    }

    /// Returns the number of games from which the index was made, including games whose positions are not indexed.
    /// Returns `None` if it has counts of another program that do not state the number.
    pub(super) fn counted_games(&self) -> Option<u64> {
        match &self.counted {
            Some(counted) => counted.games,
            None => Some(self.games()),
        }
    }

    /// Returns the number of games whose positions are not indexed, because the games were rejected or did not pass a
    /// filter.
    pub(super) fn not_counted(&self) -> u64 {
        let ids = 0..self.games() as u32;
        ids.filter(|id| !self.game(*id).traits.counts()).count() as u64
    }

    /// Returns the minimum number of counted moves in a position: positions with fewer moves were removed from the
    /// counts. Returns `None` if no position was removed.
    pub(super) fn min_game(&self) -> Option<u64> {
        let counted = self.counted.as_ref()?;
        Some(counted.min_game).filter(|fewest| *fewest > 1)
    }

    /// Returns the number of half-moves after which counting stopped in each game. Returns `None` if all half-moves
    /// were counted.
    pub(super) fn max_ply(&self) -> Option<usize> {
        self.contents.max_ply
    }

    /// Returns the number of games in the index, which is 0 for an index of counts.
    pub(super) fn games(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the data of game `id`.
    ///
    /// # Panics
    ///
    /// Panics if no game of the index has this id.
    #[inline]
    pub(super) fn game(&self, id: u32) -> GameSummary {
        self.rows.get(id).expect("the source has the game")
    }

    /// Returns the player or event name with the number `number`.
    pub(super) fn name(&self, number: u32) -> Result<String> {
        self.index.name(number).map(String::from)
    }

    /// Returns the numbers of all player and event names that match `name`, in ascending order. `how` says whether a
    /// name must match as a whole, or only in part.
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

    /// Calls `f` with the number and the text of every player and event name, in ascending order of numbers.
    pub(super) fn for_each_name(&self, f: impl FnMut(u32, &str)) -> Result<()> {
        self.index.for_each_name(f)
    }

    /// Returns the results of the moves in the position with the key `subject`. Returns `None` if the index does not
    /// contain the position, or if it is an index of games, which stores games instead of results.
    pub(super) fn counts(&self, subject: ListKey) -> Result<Option<CountedList>> {
        match &self.counted {
            Some(counted) => self.index.counted_list(counted.paging(), subject),
            None => Ok(None),
        }
    }

    /// Finds the location of a list in the index. The key `subject` identifies the list: the games of a position,
    /// player or Lichess id, or the numbers of a name.
    pub(super) fn find_list(&self, subject: ListKey) -> Result<ListLocation> {
        self.index.find_list(self.contents.paging, subject)
    }

    /// Calls `f` with the key and the list of each list in a page, in ascending order of keys. A page is an entry of
    /// the index that contains several lists. `any` is any key that belongs to the page.
    pub(super) fn for_each_list(
        &self,
        any: ListKey,
        f: impl FnMut(ListKey, List<'_>) -> Result<()>,
    ) -> Result<()> {
        self.index.for_each_list(self.contents.paging, any, f)
    }

    /// Reads the list of games with the key `subject`, and returns its parts. `location` is the location of the list,
    /// which [`find_list`](OpenIndex::find_list) returned.
    pub(super) fn list(&self, subject: ListKey, location: ListLocation) -> Result<Vec<StoredPart>> {
        self.index.list(subject, location)
    }

    /// Returns the ids of the games in the list with the key `subject`, such as the list of a player or of a position,
    /// in ascending order. Returns no ids if the index has no such list.
    pub(super) fn listed(&self, subject: ListKey) -> Result<Vec<u32>> {
        self.index.listed(self.contents.paging, subject)
    }

    pub(super) fn damaged(&self, problem: &str) -> Error {
        Error::damaged(
            self.index.path(),
            format!("the index is damaged: {problem}; make the index again"),
        )
    }
}

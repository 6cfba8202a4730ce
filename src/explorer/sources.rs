//! The explorer: one or several open indexes whose games are numbered consecutively.

use std::{
    collections::BTreeMap,
    fmt,
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::SystemTime,
};

use shakmaty::Color;

use super::{
    answer::{
        Answer, GameInfo, GameList, ListedGame, Overview, PlayedGame, Player, SourceOverview,
        answer,
    },
    duplicate_groups::DuplicateGroups,
    facets::{self, Facets, RatingScore},
    filter::SourceFilters,
    line::Line,
    list,
    opening_table::{OpeningTable, opening_table},
    prepare::{Preparation, PrepareQuery, prepare},
    query::{Filters, Page, Query, View},
    source::OpenIndex,
    suggest::{SuggestField, Suggestion, Suggestions, suggest},
    tally::count_games,
    times::{Times, times},
    unknown_name::{UnknownName, unknown_name, unknown_names},
};
use crate::{
    error::{Error, Result},
    index::{
        GameHeader,
        store::{ListKey, SiteId},
    },
    position::Variant,
    task,
};

/// The greatest number of positions of a line for which [`Explorer::reached`] counts games.
const MOST_REACHED: usize = 600;

/// An opening explorer that answers queries about positions from one or several indexes. Any number of threads may use
/// it at the same time.
///
/// The indexes of an explorer are its *sources*. Games are numbered consecutively over all sources. An open explorer
/// holds 34 bytes of each game in memory, and some names.
pub struct Explorer {
    /// The sources, in the order of their games' numbers.
    pub(super) sources: Vec<OpenIndex>,
    pub(super) suggestions: Suggestions,
    duplicates: OnceLock<DuplicateGroups>,
    skip_unfinished: bool,
}

impl fmt::Debug for Explorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
        f.debug_struct("Explorer").field("sources", &names).finish()
    }
}

impl Explorer {
    /// Opens an explorer. Each source is given as a name, which queries use to select it, and the directory of its
    /// index.
    ///
    /// # Errors
    ///
    /// Returns an error if a directory does not contain an explorer's index, or if an index is damaged.
    pub fn open(sources: impl IntoIterator<Item = (String, PathBuf)>) -> Result<Explorer> {
        let mut opened = Vec::new();
        let mut first = 0;
        for (name, path) in sources {
            let source = OpenIndex::open(name, &path, first)?;
            first += source.games();
            opened.push(source);
        }
        Ok(Explorer {
            sources: opened,
            suggestions: Suggestions::default(),
            duplicates: OnceLock::new(),
            skip_unfinished: false,
        })
    }

    /// Makes the explorer leave unfinished games out of every answer.
    ///
    /// # Errors
    ///
    /// Returns an error if a source contains counts, because counts do not distinguish unfinished games from draws.
    pub fn skip_unfinished(mut self) -> Result<Explorer> {
        if let Some(source) = self.sources.iter().find(|source| source.counted.is_some()) {
            let problem = "has counts, in which games without a result are draws: make the counts with make-book --unfinished skip, and \
                serve them without that option";
            return Err(Error::file(source.index.path(), problem));
        }
        self.skip_unfinished = true;
        Ok(self)
    }

    /// Returns `true` if unfinished games are left out of every answer.
    pub fn skips_unfinished(&self) -> bool {
        self.skip_unfinished
    }

    /// Returns a description of the explorer and its sources.
    pub fn about(&self) -> Overview {
        let sources: Vec<SourceOverview> = self.sources.iter().map(about).collect();
        let years = sources.iter().filter_map(|source| source.years);
        Overview {
            version: env!("CARGO_PKG_VERSION"),
            games: sources.iter().map(|source| source.games).sum(),
            not_counted: sources.iter().map(|source| source.not_counted).sum(),
            positions: sources.iter().map(|source| source.positions).sum(),
            years: years.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]),
            sources,
        }
    }

    /// Returns the minimum number of counted moves in a position, for the sources selected by `filters`: positions with
    /// fewer moves were removed from counts. If the sources differ, returns the largest number. Returns `None` if no
    /// position was removed.
    pub fn min_game(&self, filters: &Filters) -> Option<u64> {
        let selected = self.selected(filters.source.as_deref());
        selected.filter_map(OpenIndex::min_game).max()
    }

    /// Returns the number of half-moves after which counting stopped in the sources that `filters` selects, or the
    /// smallest number if they differ. Returns `None` if all half-moves were counted.
    pub fn max_ply(&self, filters: &Filters) -> Option<usize> {
        let selected = self.selected(filters.source.as_deref());
        selected.filter_map(OpenIndex::max_ply).min()
    }

    /// Returns a message for users about positions that are missing from the sources selected by `filters`. Positions
    /// are missing if they were removed from counts or not counted. Returns `None` if no positions are missing.
    pub fn lacking_line(&self, filters: &Filters) -> Option<String> {
        let (fewest, last) = (self.min_game(filters), self.max_ply(filters));
        let few = fewest.map(|fewest| format!(" in which at least {fewest} moves were counted"));
        let end = last.map(|ply| format!(" to half-move {ply}"));
        if few.is_none() && end.is_none() {
            return None;
        }
        let mut selected = self.selected(filters.source.as_deref());
        let which = match selected.all(|one| one.min_game() == fewest && one.max_ply() == last) {
            true => "these",
            false => "some of these",
        };
        let (end, few) = (end.unwrap_or_default(), few.unwrap_or_default());
        Some(format!("{which} counts have only positions{end}{few}\n"))
    }

    /// Checks whether the selected sources (indexes of the explorer) can apply the filters. Returns `None` if they can.
    /// Otherwise, returns the first filter that needs single games, and a selected source that contains only counts.
    pub fn needs_games(&self, filters: &Filters) -> Option<NeedsGames> {
        self.needs_all_games(filters.source.as_deref(), filters.of_games()?)
    }

    /// Checks whether all selected sources (indexes of the explorer) contain single games. Returns `None` if they do.
    /// Otherwise, returns a source that contains only counts.
    ///
    /// `wanted` is the name of the selected source, or `None` for all sources. `what` names the operation that needs
    /// single games, for the message.
    pub fn needs_all_games(&self, wanted: Option<&str>, what: &'static str) -> Option<NeedsGames> {
        let source = self
            .selected(wanted)
            .find(|source| source.counted.is_some())?;
        Some(NeedsGames {
            what,
            source: source.name.clone(),
        })
    }

    /// Checks whether at least one selected source (an index of the explorer) contains single games. Returns `None` if
    /// there is one. Otherwise, returns the first selected source.
    ///
    /// `wanted` is the name of the selected source, or `None` for all sources. `what` names the operation that needs
    /// single games, for the message.
    pub fn lacks_games(&self, wanted: Option<&str>, what: &'static str) -> Option<NeedsGames> {
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
        self.sources.iter().filter(is_selected)
    }

    /// Returns the PGN files from which the sources selected by `filters` were made. A source is an index of the
    /// explorer.
    ///
    /// # Errors
    ///
    /// Returns an error if `filters` selects a source that does not exist, or if a selected source contains counts
    /// instead of games, or was made from standard input.
    pub fn files(&self, filters: &Filters) -> Result<Vec<SourceFile>> {
        self.check(filters)?;
        let mut files = Vec::new();
        for source in self.selected(filters.source.as_deref()) {
            if source.counted.is_some() {
                let problem = "has counts and no games, so it names no files";
                return Err(Error::file(&source.name, problem));
            }
            let inputs = source.index.inputs_with_games();
            let mut ends: Vec<u64> = inputs.map(|input| input.first_id).collect();
            ends.push(source.games());
            for (input, end) in source.index.inputs_with_games().zip(&ends[1..]) {
                if input.path == Path::new("-") {
                    let problem = "the games were read from standard input: their text is not kept";
                    return Err(Error::file(&input.path, problem));
                }
                files.push(SourceFile {
                    path: input.path.clone(),
                    games: end - input.first_id,
                    untagged_variant: input.untagged,
                    options: input.options.clone(),
                });
            }
        }
        Ok(files)
    }

    /// Returns an iterator over the paths of the PGN files from which the sources were made.
    #[cfg(feature = "serve")]
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &Path> {
        let sources = self.sources.iter();
        sources.flat_map(|source| source.index.files().map(|(_, path)| path))
    }

    /// Looks for a PGN file that was modified after its index was made. Returns the path of the file and the name of
    /// the source (the index), or `None` if there is no such file. `wanted` is the name of the selected source, or
    /// `None` for all sources.
    ///
    /// Modification times in the future, which other machines may set, are ignored.
    #[cfg(feature = "serve")]
    pub(crate) fn newer_file(&self, wanted: Option<&str>) -> Option<(PathBuf, &str)> {
        let now = SystemTime::now();
        self.selected(wanted).find_map(|source| {
            let made = source.changed?;
            let is_newer = |path: &Path| {
                let file = path.metadata().ok().filter(Metadata::is_file);
                let modified = file.and_then(|file| file.modified().ok());
                modified.is_some_and(|modified| made < modified && modified <= now)
            };
            let mut files = source.index.files().map(|(_, path)| path);
            let newer = files.find(|path| is_newer(path))?;
            Some((newer.to_owned(), &*source.name))
        })
    }

    /// Returns the variant of all games, or `None` if there are games of several variants.
    pub fn variant(&self) -> Option<Variant> {
        let mut variants = self
            .sources
            .iter()
            .map(|source| source.index.variant().only());
        let first = variants.next()??;
        variants
            .all(|variant| variant == Some(first))
            .then_some(first)
    }

    /// Returns a hash of everything that answers depend on. The hash changes when a source is renamed or rebuilt, and
    /// when [`skip_unfinished`](Explorer::skip_unfinished) is called.
    pub fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for source in &self.sources {
            let contents = &source.contents;
            (&source.name, source.index.path()).hash(&mut hasher);
            (source.games(), contents.items, contents.positions).hash(&mut hasher);
            source.changed.hash(&mut hasher);
        }
        self.skip_unfinished.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the number of games in all sources.
    pub fn game_count(&self) -> u64 {
        self.sources
            .last()
            .map_or(0, |last| last.first + last.games())
    }

    /// Prepares `filters` for the games of each source, which is an index of the explorer.
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

    fn unchecked_filters(&self, filters: &Filters) -> Result<SourceFilters<'_>> {
        let mut filters = filters.clone();
        filters.skip_unfinished |= self.skip_unfinished;
        let made = SourceFilters::new(&self.sources, &filters)?;
        Ok(match filters.once {
            true => made.once(self.duplicates()?),
            false => made,
        })
    }

    /// Returns the groups of duplicate games. The first call computes them.
    pub(super) fn duplicates(&self) -> Result<&DuplicateGroups> {
        if let Some(duplicates) = self.duplicates.get() {
            return Ok(duplicates);
        }
        let duplicates = DuplicateGroups::find(&self.sources)?;
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
            Some(name) if self.sources.iter().all(|source| source.name != name) => {
                let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
                let problem = format!("is no source: name one of {}", names.join(", "));
                Err(Error::file(name, problem))
            }
            _ => Ok(()),
        }
    }

    /// Answers a query about a position: the moves that were played, with their results, and lists of games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs single
    /// games and a selected source contains only counts.
    pub fn answer(&self, query: &Query) -> Result<Answer> {
        task::caught(|| answer(self, query))
    }

    /// Returns one page of the list of games that reached a position and pass the filters of `query`, including games
    /// that ended in the position.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if no selected source
    /// contains games.
    pub fn games(&self, query: &Query, page: &Page) -> Result<GameList> {
        task::caught(|| list::list(self, query, page))
    }

    /// Returns the number of all games that [`games`](Explorer::games) lists, and an iterator over the numbers of the
    /// games on `page`. The memory is bounded, even if the page is very long.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases of [`games`](Explorer::games). The iterator returns an error if an index is
    /// damaged.
    pub fn game_numbers<'a>(
        &'a self,
        query: &'a Query,
        page: &Page,
    ) -> Result<(u64, impl Iterator<Item = Result<u64>> + use<'a>)> {
        let filters = self.filters_of_games(&query.filters)?;
        let (total, games) = list::numbers(filters, query, page)?;
        Ok((total, games.map(|game| Ok(game?.0))))
    }

    /// Returns the description of game `number` as a list of games contains it, but without a move.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn listed_game(&self, number: u64) -> Result<ListedGame> {
        let game = self.info(number, View::Lichess)?;
        let filters = self.filters(&Filters::default())?;
        list::with_details(self, &filters, PlayedGame { uci: None, game }, None)
    }

    /// Returns, for each move of a line, the number of games that reached the position after the move. The number is
    /// `None` if the sources do not state it. Of `filters`, only the selected source and the option to skip unfinished
    /// games are used.
    ///
    /// `goes_on` is called before each position. It returns `false` to cancel the count.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged or the selected source does not exist. Returns [`Error::Interrupted`] if
    /// `goes_on`, which is called before each position, returns `false`.
    pub fn reached(
        &self,
        line: &Line,
        filters: &Filters,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<u64>>> {
        let filters = self.filters(&Filters {
            source: filters.source.clone(),
            skip_unfinished: filters.skip_unfinished,
            ..Filters::default()
        })?;
        let mut all = Vec::with_capacity(line.moves().len());
        for pos in line.positions().iter().skip(1) {
            if !goes_on() {
                return Err(Error::Interrupted);
            }
            let here = Line::at(line.variant(), pos.clone());
            let games = match all.len() < MOST_REACHED {
                true => count_games(&filters, &here)?,
                false => None,
            };
            // The game of the line reaches the position, so 0 means that the index ends before it.
            all.push(games.filter(|games| *games > 0));
        }
        Ok(all)
    }

    /// Counts the games of a position for each speed, rating group, color and year. A number counts the games that
    /// would pass if one filter were set to its value and the remaining filters were unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs single
    /// games and a selected source contains only counts.
    pub fn facets(&self, line: &Line, filters: &Filters) -> Result<Facets> {
        task::caught(|| facets::facets(self, line, filters))
    }

    /// Returns the results of the games of a position for each rating group that has games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs single
    /// games and a selected source contains only counts.
    pub fn scores(&self, line: &Line, filters: &Filters) -> Result<Vec<RatingScore>> {
        task::caught(|| facets::scores(self, line, filters))
    }

    /// Returns the number of games of each variant that pass the filters, by the name of the variant. The positions
    /// that the games reached do not matter.
    ///
    /// Returns `None` if the numbers are unknown. They are unknown if a selected source contains counts, and either
    /// there are filters or the counts do not state a number of games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged or the selected source does not exist.
    pub fn variants(&self, filters: &Filters) -> Result<Option<BTreeMap<&'static str, u64>>> {
        facets::variants(self, filters)
    }

    /// Returns the openings of the games that reached the last position of `line` and pass the filters.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a selected source contains
    /// only counts.
    pub fn openings(&self, line: &Line, filters: &Filters) -> Result<OpeningTable> {
        task::caught(|| opening_table(self, line, filters))
    }

    /// Returns the preparation of a player for an opponent: the moves in a position, with the games of both players and
    /// the player's answers.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged, if the source does not exist, if a source has counts instead of games,
    /// or if the repertoire cannot be read.
    pub fn prepare(&self, query: &PrepareQuery<'_>) -> Result<Preparation> {
        task::caught(|| prepare(self, query))
    }

    /// Returns the mean thinking time for each move of a position, calculated from the `most` newest games that pass
    /// the filters.
    ///
    /// The time of a move is known from `[%emt]` comments, or from `[%clk]` comments and a `TimeControl` of one period.
    /// If a game reaches the position several times, only its last move from there is used. The texts of the games are
    /// read as long as `goes_on` returns `true`.
    ///
    /// # Errors
    ///
    /// Returns an error if the games are in a compressed file, or in the cases of [`games`](Explorer::games) and
    /// [`text_while`](Explorer::text_while).
    pub fn times(&self, query: &Query, most: usize, goes_on: &dyn Fn() -> bool) -> Result<Times> {
        times(self, query, most, goes_on)
    }

    /// Returns names of players, events or openings that the user may mean by `text`: at most `limit` names, and at
    /// most 50. `source` restricts the search to the source with this name.
    ///
    /// A name matches if each word of `text` begins one of the name's words. A name without further words comes first,
    /// then the names with the most games. If fewer than `limit` names match, names that match with one or two typing
    /// errors follow. An empty text matches every name.
    ///
    /// The first call for a field reads all names, which takes longer; [`warm_up`](Explorer::warm_up) can do that in
    /// advance.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, or if no source has the name `source`.
    pub fn suggest(
        &self,
        field: SuggestField,
        text: &str,
        limit: usize,
        source: Option<&str>,
    ) -> Result<Vec<Suggestion>> {
        suggest(self, field, text, limit, source)
    }

    /// Reads all names in advance, so that no call of [`suggest`](Explorer::suggest) has to wait for them.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn warm_up(&self) -> Result<()> {
        self.suggestions.warm_up(&self.sources)
    }

    /// Returns a name in the filters that explains why no game passes, with similar names. A filter by player, opponent
    /// or event can contain several names. If no name of a filter occurs in a game, returns the first name of this
    /// filter. Returns `None` if each filter has a name that occurs.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn unknown_name(&self, filters: &Filters) -> Result<Option<UnknownName>> {
        self.unknown_name_while(filters, &|| true)
    }

    /// Returns a name in the filters that explains why no game passes, like [`unknown_name`](Explorer::unknown_name), but
    /// can be cancelled. `goes_on` is called repeatedly while names are compared, and must return `true` to continue.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged. Returns [`Error::Interrupted`] if `goes_on` returns `false`.
    pub fn unknown_name_while(
        &self,
        filters: &Filters,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<UnknownName>> {
        unknown_name(self, filters, goes_on)
    }

    /// Returns all names in the filters that occur in no game, with similar names.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn unknown_names(&self, filters: &Filters) -> Result<Vec<UnknownName>> {
        unknown_names(self, filters)
    }

    /// Returns the number of the game with the id `id`, which is a Lichess id or the decimal number of a game with at
    /// least eight digits. Returns `None` if no game has this id, or if several games have this Lichess id.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn find(&self, id: &str) -> Result<Option<u64>> {
        if is_number(id) {
            let number = id.parse().ok().filter(|_| id.len() >= 8);
            return Ok(number.filter(|number| *number < self.game_count()));
        }
        if let Some(site_id) = SiteId::parse(id) {
            for source in &self.sources {
                let ids = source.listed(ListKey::site_id(site_id))?;
                let is_it = |id: &&u32| {
                    u64::from(**id) < source.games() && source.rows.site_id(**id) == Some(site_id)
                };
                if let Some(id) = ids.iter().find(is_it)
                    && self.is_of_one_game(site_id)?
                {
                    return Ok(Some(source.first + u64::from(*id)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the header of game `number`: the tags that the index stores.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn header(&self, number: u64) -> Result<GameHeader> {
        let (source, id) = self.place(number)?;
        source.index.header(id)
    }

    /// Returns the description of game `number`: its players, result and date.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn game(&self, number: u64) -> Result<GameInfo> {
        self.info(number, View::Lichess)
    }

    /// Returns the absolute path of the PGN file from which the game `number` was indexed, or `-` for standard input.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has the number.
    pub fn path_of_game(&self, number: u64) -> Result<&Path> {
        let (source, id) = self.place(number)?;
        source.index.path_of_game(id)
    }

    /// Returns the PGN text of game `number`, byte for byte, read from the PGN file from which the index was made.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or in the cases of [`Index::text`](crate::index::Index::text).
    pub fn text(&self, number: u64) -> Result<Vec<u8>> {
        self.text_while(number, &|| true)
    }

    /// Returns the PGN text of game `number`, like [`text`](Explorer::text), but can be cancelled. `goes_on` is called
    /// repeatedly while the PGN file is read, and must return `true` to continue.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or in the cases of
    /// [`Index::text_while`](crate::index::Index::text_while).
    pub fn text_while(&self, number: u64, goes_on: &dyn Fn() -> bool) -> Result<Vec<u8>> {
        let (source, id) = self.place(number)?;
        source.index.text_while(id, goes_on)
    }

    /// Returns the variant whose rules were used to index game `number`.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn variant_of_game(&self, number: u64) -> Result<Variant> {
        let (source, id) = self.place(number)?;
        let indexed = source.rows.traits[id as usize].variant();
        Ok(indexed
            .or(source.index.variant().only())
            .unwrap_or_default())
    }

    /// Returns `true` if exactly one game in all sources has the Lichess id `id`.
    fn is_of_one_game(&self, id: SiteId) -> Result<bool> {
        let mut games = 0;
        for source in &self.sources {
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
    pub(super) fn place(&self, number: u64) -> Result<(&OpenIndex, u32)> {
        let after = self
            .sources
            .partition_point(|source| source.first <= number);
        let source = after.checked_sub(1).map(|at| &self.sources[at]);
        match source {
            Some(source) if number - source.first < source.games() => {
                Ok((source, (number - source.first) as u32))
            }
            _ => {
                let games = self.game_count();
                let problem = format!("no game has this number: there are {games}");
                Err(Error::file(number.to_string(), problem))
            }
        }
    }

    /// Returns the description of game `number` for an answer: its id, players, result and date. The description also
    /// contains the speed, and whether the game was rated, unless `view` is [`View::Masters`].
    pub(super) fn info(&self, number: u64, view: View) -> Result<GameInfo> {
        let (source, id) = self.place(number)?;
        let summary = source.game(id);
        let [white, black] = source.rows.players[id as usize];
        let (speed, mode) = summary.speed_and_mode();
        let date = summary.date();
        let of_masters = view == View::Masters;
        Ok(GameInfo {
            number,
            id: match source.rows.site_id(id) {
                Some(id) if !is_number(&id.text()) && self.is_of_one_game(id)? => id.text(),
                _ => format!("{number:08}"),
            },
            winner: summary.winner(),
            speed: (!of_masters).then_some(speed),
            mode: (!of_masters).then_some(mode),
            black: Player {
                name: source.name(black)?,
                rating: summary.elo_of(Color::Black),
                title: None,
            },
            white: Player {
                name: source.name(white)?,
                rating: summary.elo_of(Color::White),
                title: None,
            },
            year: date.year().unwrap_or(0),
            month: date
                .year()
                .zip(date.month())
                .map(|(year, month)| format!("{year:04}-{month:02}")),
            unfinished: !summary.has_result(),
        })
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
    /// Returns the name of the source (an index of the explorer) that contains only counts.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn problem(&self) -> String {
        format!(
            "{} needs games, and this source has only counts: ask another source",
            self.what
        )
    }
}

impl fmt::Display for NeedsGames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NeedsGames { what, source } = self;
        write!(
            f,
            "{what}: source \"{source}\" has counts and no games; leave it out, or ask another source"
        )
    }
}

/// Returns `true` if `id` consists only of digits, so it is the number of a game and not a Lichess id.
fn is_number(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_digit())
}

/// A PGN file from which games of a source (an index of the explorer) were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The number of games that the file had when it was indexed.
    pub games: u64,
    /// The variant of games without a `Variant` tag.
    pub untagged_variant: Variant,
    /// The options of `make-book` that decided which of the games are indexed, as on the command line; empty if all are
    /// defaults.
    pub options: String,
}

fn about(source: &OpenIndex) -> SourceOverview {
    let counted = source.counted.as_ref();
    let files = source
        .index
        .files()
        .filter_map(|(_, path)| path.file_name());
    SourceOverview {
        name: source.name.clone(),
        games: source.counted_games(),
        not_counted: source.not_counted(),
        positions: source.contents.positions,
        years: match counted {
            Some(counted) => counted.years,
            None => source.rows.years(),
        },
        variant: source.index.variant().to_string(),
        files: match counted {
            Some(counted) => counted.inputs.clone(),
            None => files
                .map(|name| name.to_string_lossy().into_owned())
                .collect(),
        },
        counts: counted.is_some(),
        min_game: source.min_game(),
        max_ply: source.max_ply(),
    }
}

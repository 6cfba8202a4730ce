//! The opening explorer: which moves were played in a position, by whom, and with which results.
//!
//! An [`Explorer`] answers queries from one or more [indexes](crate::index) that were made for it
//! ([`MakeBook::explorer`](crate::MakeBook::explorer)). Each game counts at most once for a position. If the
//! position occurs several times in a game, the game counts with the last move that was played there. All numbers
//! are exact, whatever [`Filters`] select the games.
//!
//! An index contains either games or counts, which are sums of results by speed, rating group and month. An index
//! of games can answer every query. An index of counts can answer only queries whose filters depend on speed,
//! rating group, year and month. [`Explorer::needs_games`] returns the first filter that counts cannot answer,
//! such as a player, together with an index of counts; methods return an error for such a filter. Methods that
//! list games skip indexes of counts, and return an error if there is no index of games.
//!
//! A query passes through these modules: `filter` prepares the filters for each index, `fold` makes one pass over
//! the results of the position in each index, and a `Collector` adds them up. `tally` collects moves and their
//! results, `list` collects games, `opening_table` openings, and `facets` the number of games for each value of a
//! filter. `answer` contains the types of the results, which serde can serialize.
//!
//! ```
//! use polybook::{MakeBook, explorer::{Explorer, Line, Query, View}, pgn::Input, position::Variant};
//!
//! # let dir = tempfile::tempdir()?;
//! # let index = dir.path().join("index");
//! MakeBook::new([Input::file("data/famous.pgn")]).explorer(&index).run()?;
//!
//! let explorer = Explorer::open([("famous".to_owned(), index)])?;
//! let line = Line::parse(Variant::Standard, None, "e2e4,e7e5")?;
//! let mut query = Query::new(line, View::Lichess);
//! query.filters.players = vec!["morphy, paul".to_owned()];
//! let answer = explorer.answer(&query)?;
//! println!("{} games won by White", answer.white);
//! for played in &answer.moves {
//!     println!("{} {}", played.san, played.games());
//! }
//! # assert!(answer.white > 0 && !answer.moves.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod duplicate_groups;
mod facets;
mod filter;
mod first_seen;
mod fold;
mod list;
mod open_index;
mod opening_table;
mod prepare;
mod query;
mod sources;
mod suggest;
mod tally;
#[cfg(test)]
mod tests;
mod times;
mod unknown_name;

use std::{
    collections::BTreeMap,
    fmt,
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::SystemTime,
};

pub use self::{
    answer::{Answer, MonthCount, PlayedMove, PlayerScore, PlayerTotals, YearCount},
    facets::{ColorCount, Facets, RatingScore},
    list::{GameInfo, GameList, ListedGame, MatchGames, PlayedGame, Player},
    opening_table::{OpeningRow, OpeningTable},
    prepare::{
        AnswerSource, GamesHere, PlayerGames, Preparation, PrepareQuery, PreparedAnswer,
        PreparedLine, PreparedMove, RepertoireMoves, TheirGames,
    },
    query::{Filters, Line, Page, Query, RatingRange, RatingRangeError, Sort, UnknownSort, View},
    sources::{NeedsGames, Overview, SourceFile, SourceOverview},
    suggest::{SuggestField, Suggestion},
    tally::GameResults,
    times::{MoveTime, Times},
    unknown_name::{MatchedNames, UnknownName},
};
pub(crate) use self::{
    first_seen::{FirstSeen, Probe, Visits, first_day, last_departure},
    query::check_names,
};
pub use crate::{
    openings::{Opening, OpeningFilter},
    pgn::{Date, EcoRange, GameResult, Mode, NameMatch, RatingGroup, Speed},
    position::Variant,
};

use self::{
    answer::answer,
    list::{game_info, is_number},
    open_index::OpenIndex,
    opening_table::opening_table,
    prepare::prepare,
    sources::{Sources, source_overview},
    suggest::Suggestions,
    tally::{count_games, count_games_of_players},
    times::times,
    unknown_name::{matched_names, unknown_name, unknown_names},
};
use crate::{
    error::{Error, Result},
    index::{
        GameHeader,
        store::{ListKey, SiteId},
    },
    position::BookMove,
    task,
};

/// The maximum number of positions of a line for which [`Explorer::reached`] counts games, to limit how long a call
/// takes. The numbers for later positions are unknown.
const MAX_LINE_POSITIONS: usize = 600;

/// An opening explorer, which answers queries about positions from one or more indexes. Any number of threads may
/// use it at the same time.
///
/// The indexes of an explorer are its *sources*. Games are numbered consecutively over all sources. An open explorer
/// keeps 34 bytes for each game in memory, and some names.
pub struct Explorer {
    sources: Sources,
    suggestions: Suggestions,
}

impl fmt::Debug for Explorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .sources
            .indexes
            .iter()
            .map(|source| &*source.name)
            .collect();
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
            sources: Sources::new(opened),
            suggestions: Suggestions::default(),
        })
    }

    /// Makes the explorer leave unfinished games out of every answer.
    ///
    /// # Errors
    ///
    /// Returns an error if a source contains counts, because counts do not distinguish unfinished games from draws.
    pub fn skip_unfinished(mut self) -> Result<Explorer> {
        if let Some(source) = self
            .sources
            .indexes
            .iter()
            .find(|source| source.counted.is_some())
        {
            let problem = "this index contains counts, in which games without a result are counted as draws: make the \
                           counts again with make-book --unfinished skip, and serve their index without the option \
                           --unfinished";
            return Err(Error::file(source.index.path(), problem));
        }
        self.sources.skip_unfinished = true;
        Ok(self)
    }

    /// Returns `true` if unfinished games are left out of every answer.
    pub fn skips_unfinished(&self) -> bool {
        self.sources.skip_unfinished
    }

    /// Returns a description of the explorer and its sources.
    pub fn about(&self) -> Overview {
        let sources: Vec<SourceOverview> =
            self.sources.indexes.iter().map(source_overview).collect();
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

    /// Returns the threshold for rare positions. Positions in which fewer moves than this number were played, added up
    /// over all games, were removed from the counts of the selected sources. If `filters` selects several sources,
    /// returns the largest of their thresholds. Returns `None` if no positions were removed.
    pub fn min_game(&self, filters: &Filters) -> Option<u64> {
        self.sources.min_game(filters)
    }

    /// Returns the maximum number of half-moves that were counted in each game, from its start. If `filters` selects
    /// several sources, returns the smallest of their maximums. Returns `None` if each maximum is the default, or larger.
    pub fn max_ply(&self, filters: &Filters) -> Option<usize> {
        let selected = self.sources.selected(filters.source.as_deref());
        selected.filter_map(OpenIndex::max_ply).min()
    }

    /// Returns a message for the user if positions are missing from the counts of the selected sources: rare positions
    /// that were removed, or positions after the last counted half-move. Returns `None` if no positions are missing.
    pub fn lacking_line(&self, filters: &Filters) -> Option<String> {
        let (fewest, last) = (self.min_game(filters), self.max_ply(filters));
        let few = fewest.map(|fewest| format!(" in which at least {fewest} moves were counted"));
        let end = last.map(|ply| format!(" up to half-move {ply}"));
        if few.is_none() && end.is_none() {
            return None;
        }
        let mut selected = self.sources.selected(filters.source.as_deref());
        let which = match selected.all(|one| one.min_game() == fewest && one.max_ply() == last) {
            true => "these",
            false => "some of these",
        };
        let (end, few) = (end.unwrap_or_default(), few.unwrap_or_default());
        Some(format!("{which} counts contain only positions{end}{few}\n"))
    }

    /// Checks whether the selected sources (indexes of the explorer) can apply the filters. Returns `None` if they can.
    /// Otherwise, returns the reason: the first filter that needs individual games, and a selected source that contains
    /// only counts.
    pub fn needs_games(&self, filters: &Filters) -> Option<NeedsGames> {
        self.sources.needs_games(filters)
    }

    /// Checks whether all selected sources (indexes of the explorer) contain individual games. Returns `None` if they
    /// do. Otherwise, returns an explanation that names a source that contains only counts, and `what`, the operation
    /// that needs individual games.
    ///
    /// `wanted` is the name of the selected source, or `None` for all sources.
    pub fn needs_all_games(&self, wanted: Option<&str>, what: &'static str) -> Option<NeedsGames> {
        self.sources.needs_all_games(wanted, what)
    }

    /// Checks whether at least one selected source (an index of the explorer) contains individual games. Returns `None`
    /// if one does, or if no source has the name `wanted`. Otherwise, returns an explanation that names the first
    /// selected source, and `what`, the operation that needs individual games.
    ///
    /// `wanted` is the name of the selected source, or `None` for all sources.
    pub fn lacks_games(&self, wanted: Option<&str>, what: &'static str) -> Option<NeedsGames> {
        self.sources.lacks_games(wanted, what)
    }

    /// Returns the PGN files from which the selected sources were made. `filters` selects a source (an index of the
    /// explorer) or all of them.
    ///
    /// # Errors
    ///
    /// Returns an error if `filters` selects a source that does not exist, or if a selected source contains counts
    /// instead of games, or was made from standard input.
    pub fn files(&self, filters: &Filters) -> Result<Vec<SourceFile>> {
        self.sources.check(filters)?;
        let mut files = Vec::new();
        for source in self.sources.selected(filters.source.as_deref()) {
            if source.counted.is_some() {
                let problem =
                    "this index contains counts instead of games, so there are no files of games";
                return Err(Error::file(&source.name, problem));
            }
            let inputs = source.index.inputs_with_games();
            let mut ends: Vec<u64> = inputs.map(|input| input.first_id).collect();
            ends.push(source.games());
            for (input, end) in source.index.inputs_with_games().zip(&ends[1..]) {
                if input.path == Path::new("-") {
                    let problem = "the games were read from standard input, so their text is not available: make the \
                                   index from a file";
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
        let sources = self.sources.indexes.iter();
        sources.flat_map(|source| source.index.files().map(|(_, path)| path))
    }

    /// Looks for a PGN file that was modified after its index was made. Returns the path of the file and the name of
    /// the source (an index of the explorer), or `None` if there is no such file. `wanted` is the name of the
    /// selected source, or `None` for all sources.
    ///
    /// Ignores modification times in the future, because they come from a machine with a wrong clock.
    #[cfg(feature = "serve")]
    pub(crate) fn newer_file(&self, wanted: Option<&str>) -> Option<(PathBuf, &str)> {
        let now = SystemTime::now();
        self.sources.selected(wanted).find_map(|source| {
            let made = source.changed?;
            let is_newer = |path: &Path| {
                // This decides only about a hint, so an error is ignored.
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
            .indexes
            .iter()
            .map(|source| source.index.variant().only());
        let first = variants.next()??;
        variants
            .all(|variant| variant == Some(first))
            .then_some(first)
    }

    /// Returns a hash that identifies the data of the explorer. It changes when a source is renamed or rebuilt, and
    /// when [`skip_unfinished`](Explorer::skip_unfinished) is called.
    pub fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for source in &self.sources.indexes {
            let contents = &source.contents;
            (&source.name, source.index.path()).hash(&mut hasher);
            (source.games(), contents.items, contents.positions).hash(&mut hasher);
            source.changed.hash(&mut hasher);
        }
        self.sources.skip_unfinished.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the number of games in all sources.
    pub fn game_count(&self) -> u64 {
        self.sources.game_count()
    }

    /// Answers a query about a position. The answer contains the moves that were played, with their results, and
    /// lists of games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs individual
    /// games and a selected source contains only counts.
    pub fn answer(&self, query: &Query) -> Result<Answer> {
        task::caught(|| answer(&self.sources, query))
    }

    /// Returns one page of the list of games that reached a position and pass the filters of `query`, including games
    /// that ended in the position.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if no selected source
    /// contains games.
    pub fn games(&self, query: &Query, page: &Page) -> Result<GameList> {
        task::caught(|| list::list(&self.sources, query, page))
    }

    /// Returns the number of games in the whole list that [`games`](Explorer::games) divides into pages, and an
    /// iterator over the games on `page`: the number of each game, and the move that was played in the position, or
    /// [`BookMove::NONE`] if the game ended there. The memory use is bounded, even if the page is very long.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`games`](Explorer::games). The iterator returns an error if an index is damaged.
    pub fn game_numbers<'a>(
        &'a self,
        query: &'a Query,
        page: &Page,
    ) -> Result<(u64, impl Iterator<Item = Result<(u64, BookMove)>> + use<'a>)> {
        let filters = self.sources.filters_of_games(&query.filters)?;
        list::numbers(filters, query, page)
    }

    /// Returns a description of game `number`, as it would appear in a list of games. It contains no move, because the
    /// description does not belong to a position.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn listed_game(&self, number: u64) -> Result<ListedGame> {
        let game = game_info(&self.sources, number, View::Lichess)?;
        let filters = self.sources.filters(&Filters::default())?;
        list::with_details(
            &self.sources,
            &filters,
            PlayedGame { uci: None, game },
            None,
        )
    }

    /// Counts the games that reached the position after each move of `line`, and returns one number for each move. The
    /// number is `None` if it is unknown, for example because a source contains incomplete counts. `filters` selects
    /// the source and says whether unfinished games are skipped. All other conditions in `filters` are ignored.
    ///
    /// `should_continue` is called before each position, and returns `false` to cancel the count.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged or the selected source does not exist. Returns [`Error::Interrupted`]
    /// if `should_continue` returns `false`.
    pub fn reached(
        &self,
        line: &Line,
        filters: &Filters,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<u64>>> {
        let filters = self.sources.filters(&Filters {
            source: filters.source.clone(),
            skip_unfinished: filters.skip_unfinished,
            ..Filters::default()
        })?;
        let mut all = Vec::with_capacity(line.moves().len());
        for pos in line.positions().iter().skip(1) {
            if !should_continue() {
                return Err(Error::Interrupted);
            }
            let here = Line::at(line.variant(), pos.clone());
            let games = match all.len() < MAX_LINE_POSITIONS {
                true => count_games(&filters, &here)?,
                false => None,
            };
            // The line was played in a game of the source, so 0 means that the index does not contain the position.
            all.push(games.filter(|games| *games > 0));
        }
        Ok(all)
    }

    /// Counts the games that reached a position, for each value of the filters by speed, rating group, color, year and
    /// variant. For example, the number for blitz is the number of games that would pass if the filter by speed
    /// admitted only blitz and all other filters were unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs individual
    /// games and a selected source contains only counts.
    pub fn facets(&self, line: &Line, filters: &Filters) -> Result<Facets> {
        task::caught(|| facets::facets(&self.sources, line, filters))
    }

    /// Returns the results of the games that reached a position, for each rating group that has such games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs individual
    /// games and a selected source contains only counts.
    pub fn scores(&self, line: &Line, filters: &Filters) -> Result<Vec<RatingScore>> {
        task::caught(|| facets::scores(&self.sources, line, filters))
    }

    /// Returns the number of games of each variant that pass the filters, keyed by the name of the variant. The
    /// positions that the games reached do not matter.
    ///
    /// Returns `None` if a selected source contains counts, and either there are filters or the counts do not state
    /// their number of games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged or the selected source does not exist.
    pub fn variants(&self, filters: &Filters) -> Result<Option<BTreeMap<&'static str, u64>>> {
        facets::variants(&self.sources, filters)
    }

    /// Returns the openings of the games that reached the last position of `line` and pass the filters.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a selected source contains
    /// only counts.
    pub fn openings(&self, line: &Line, filters: &Filters) -> Result<OpeningTable> {
        task::caught(|| opening_table(&self.sources, line, filters, |opening| opening.name))
    }

    /// Like [`openings`](Explorer::openings), but a variation and the variations within it have one row together. Its
    /// name is the [variation](Opening::variation) of their names.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`openings`](Explorer::openings).
    pub fn openings_by_variation(&self, line: &Line, filters: &Filters) -> Result<OpeningTable> {
        task::caught(|| opening_table(&self.sources, line, filters, |opening| opening.variation()))
    }

    /// Prepares a player for an opponent. Returns the moves that were played in the position of `query`, with the
    /// results of both players and with the player's answers.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, if a selected source contains
    /// counts instead of games, or if the repertoire cannot be read. Returns [`Error::Interrupted`] if
    /// [`should_continue`](PrepareQuery::should_continue) returns `false`.
    pub fn prepare(&self, query: &PrepareQuery<'_>) -> Result<Preparation> {
        task::caught(|| prepare(&self.sources, query))
    }

    /// Returns the mean thinking time for each move of a position. It is calculated from the newest games that pass the
    /// filters; at most `max_games` of them are read.
    ///
    /// The thinking time of a move is calculated from `[%emt]` comments, or from `[%clk]` comments and a `TimeControl`
    /// tag with a single period. If a game reaches the position several times, only its last move from the position
    /// counts. `should_continue` is called repeatedly while the texts of the games are read, and must return `true` to
    /// continue.
    ///
    /// # Errors
    ///
    /// Returns an error if the games are in a compressed file. Also fails for the same reasons as
    /// [`games`](Explorer::games) and [`text_while`](Explorer::text_while).
    pub fn times(
        &self,
        query: &Query,
        max_games: usize,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Times> {
        times(&self.sources, query, max_games, should_continue)
    }

    /// Returns a lookup of positions, which determines whether any game reached a position, and when the first of these
    /// games was played.
    ///
    /// # Errors
    ///
    /// Returns an error if a source contains counts instead of games.
    pub(crate) fn first_seen(&self) -> Result<FirstSeen<'_>> {
        FirstSeen::new(&self.sources)
    }

    /// Returns at most `limit` names of players, events or openings that the user may mean by `text`, and never more
    /// than 50. `source` restricts the search to the source with this name.
    ///
    /// A name matches if each word of `text` is the beginning of one of the words in the name. Names that consist of
    /// exactly the words of `text` come first, then the names with the most games. If fewer than `limit` names match,
    /// names that match with one or two typing errors follow. An empty text matches every name.
    ///
    /// The first call for each `field` reads all names, which takes longer. [`warm_up`](Explorer::warm_up) does this
    /// in advance.
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
        self.suggestions
            .find(&self.sources, field, text, limit, source)
    }

    /// Returns, for each player in `filters.players`, the number of games that pass the filters. The variants and
    /// positions of the games do not matter. Reads all games once, however many players there are.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, or if a selected source does not exist or contains only counts.
    pub fn count_games_of_players(&self, filters: &Filters) -> Result<Vec<u64>> {
        let prepared = self
            .sources
            .filters_of_all_games(filters, "a number of games")?
            .of_either_color();
        task::caught(|| count_games_of_players(&prepared, filters))
    }

    /// Reads all names in advance, so that calls of [`suggest`](Explorer::suggest) need not wait for them.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn warm_up(&self) -> Result<()> {
        self.suggestions.warm_up(&self.sources.indexes)
    }

    /// Finds the duplicate games in advance, so that queries that count each game once
    /// ([`Filters::fold_duplicates`]) need not search for them. The explorer searches only once.
    ///
    /// `should_continue` is called repeatedly during the search, and must return `true` to continue.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    pub fn find_duplicates_while(&self, should_continue: &dyn Fn() -> bool) -> Result<()> {
        task::caught(|| self.sources.duplicates_while(should_continue).map(drop))
    }

    /// Returns `true` if the duplicate games have been found.
    #[cfg(feature = "serve")]
    pub(crate) fn knows_duplicates(&self) -> bool {
        self.sources.knows_duplicates()
    }

    /// Looks for a reason why no game passes the filters: a filter by player, opponent or event that matches no game.
    /// Such a filter may contain several names. If none of them occurs in a game, returns the first name of the filter,
    /// with similar names that occur in games. Otherwise, returns `None`.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn unknown_name(&self, filters: &Filters) -> Result<Option<UnknownName>> {
        self.unknown_name_while(filters, &|| true)
    }

    /// Looks for a reason why no game passes the filters, like [`unknown_name`](Explorer::unknown_name), but can be
    /// cancelled. `should_continue` is called repeatedly while names are compared, and must return `true` to continue.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    pub fn unknown_name_while(
        &self,
        filters: &Filters,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Option<UnknownName>> {
        unknown_name(&self.sources, filters, should_continue)
    }

    /// Returns all names in the filters that occur in no game. Each comes with similar names that do occur.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn unknown_names(&self, filters: &Filters) -> Result<Vec<UnknownName>> {
        unknown_names(&self.sources, filters)
    }

    /// Returns the names of players that the filters by player and by opponent match, in all games of the selected
    /// sources. All other filters are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn matched_names(&self, filters: &Filters) -> Result<MatchedNames> {
        matched_names(&self.sources, filters)
    }

    /// Returns the number of the game with the id `id`, which is a Lichess id, or the game's number with or without
    /// leading zeros. Returns `None` if no game has this id, or if several games have this Lichess id.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn find(&self, id: &str) -> Result<Option<u64>> {
        if is_number(id) {
            let number = id.parse().ok();
            return Ok(number.filter(|number| *number < self.game_count()));
        }
        if let Some(site_id) = SiteId::parse(id) {
            for source in &self.sources.indexes {
                let ids = source.listed(ListKey::site_id(site_id))?;
                let is_it = |id: &&u32| {
                    u64::from(**id) < source.games() && source.rows.site_id(**id) == Some(site_id)
                };
                if let Some(id) = ids.iter().find(is_it)
                    && self.sources.is_of_one_game(site_id)?
                {
                    return Ok(Some(source.first + u64::from(*id)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the header of game `number`, which contains the tags that the index stores.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn header(&self, number: u64) -> Result<GameHeader> {
        let (source, id) = self.sources.locate(number)?;
        source.index.header(id)
    }

    /// Returns the opening to which the last named position of game `number` belongs. Returns `None` if no position of
    /// the game has a name.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn opening_of_game(&self, number: u64) -> Result<Option<Opening>> {
        let (source, id) = self.sources.locate(number)?;
        Ok(source.rows.openings[id as usize].opening())
    }

    /// Returns the number of half-moves of game `number`, at most 65535.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn plies_of_game(&self, number: u64) -> Result<u16> {
        let (source, id) = self.sources.locate(number)?;
        Ok(source.rows.plies[id as usize])
    }

    /// Returns a description of game `number`: its players, result and date.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn game(&self, number: u64) -> Result<GameInfo> {
        game_info(&self.sources, number, View::Lichess)
    }

    /// Returns the absolute path of the PGN file that contains game `number`, or `-` if the game was read from
    /// standard input.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn path_of_game(&self, number: u64) -> Result<&Path> {
        let (source, id) = self.sources.locate(number)?;
        source.index.path_of_game(id)
    }

    /// Reads the PGN text of game `number`, byte for byte, from the PGN file from which the index was made.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number. Also fails for the same reasons as
    /// [`Index::text`](crate::index::Index::text).
    pub fn text(&self, number: u64) -> Result<Vec<u8>> {
        self.text_while(number, &|| true)
    }

    /// Reads the PGN text of game `number` like [`text`](Explorer::text), but can be cancelled. `should_continue` is
    /// called repeatedly while the PGN file is read, and must return `true` to continue.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number. Also fails for the same reasons as
    /// [`Index::text_while`](crate::index::Index::text_while).
    pub fn text_while(&self, number: u64, should_continue: &dyn Fn() -> bool) -> Result<Vec<u8>> {
        let (source, id) = self.sources.locate(number)?;
        source.index.text_while(id, should_continue)
    }

    /// Returns the variant by whose rules game `number` was indexed.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn variant_of_game(&self, number: u64) -> Result<Variant> {
        let (source, id) = self.sources.locate(number)?;
        let indexed = source.rows.traits[id as usize].variant();
        Ok(indexed
            .or(source.index.variant().only())
            .unwrap_or_default())
    }
}

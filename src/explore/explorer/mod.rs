//! The opening explorer: which moves were played in a position, by whom, and with which results.
//!
//! An [`Explorer`] answers queries from one or more [indexes](crate::formats::index) that were made for it
//! ([`MakeBook::explorer`](crate::MakeBook::explorer)). Each game counts at most once for a position. If the
//! position occurs several times in a game, the game counts with the last move that was played there. All numbers
//! are exact, whatever filters ([`Selection`]) select the games.
//!
//! An index contains either games or counts, which are sums of results by speed, rating group and month. An index
//! of games can answer every query. An index of counts can answer only queries whose filters depend on speed,
//! rating group, year and month. [`Explorer::needs_games`] returns the first filter that counts cannot answer,
//! such as a player, together with an index of counts; methods return an error for such a filter. Methods that
//! list games skip indexes of counts, and return an error if there is no index of games.
//!
//! A query passes through these modules: `filter` prepares the filters for each index, `scan` makes one pass over
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
//! query.filters.player = vec!["morphy, paul".to_owned()];
//! let answer = explorer.answer(&query)?;
//! println!("{} games won by White", answer.results.white);
//! for played in &answer.moves {
//!     println!("{} {}", played.san, played.results.games());
//! }
//! # assert!(answer.results.white > 0 && !answer.moves.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod board_search;
mod duplicate_groups;
mod expectation;
mod facets;
mod filter;
mod first_seen;
mod found_games;
mod list;
mod open_index;
mod opening_table;
mod other_starts;
mod prepare;
mod query;
mod random;
mod recency;
mod reply;
mod scan;
mod sources;
mod suggest;
mod tally;
mod times;
mod unknown_name;
mod weak_lines;

use std::{
    collections::BTreeMap,
    fmt,
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use shakmaty::{Position, variant::VariantPosition};

pub(crate) use self::first_seen::{FirstSeen, Probe, Visits, first_day, last_departure};
use self::{
    answer::answer,
    list::{game_info, is_number},
    open_index::OpenIndex,
    opening_table::opening_table,
    other_starts::OtherStartGames,
    prepare::{WeightedGames, prepare},
    sources::{Sources, source_overview},
    suggest::Suggestions,
    tally::{count_games, count_games_of_players},
    times::times,
    unknown_name::{matched_names, unknown_name, unknown_names},
};
pub use self::{
    answer::{Answer, MonthCount, MoveAnswer, PlayerScore, PlayerTotals, YearCount},
    facets::{ColorCount, Facets, RatingScore},
    list::{GameInfo, GameList, ListedGame, MatchGames, PlayedGame, Player},
    opening_table::{OpeningRow, OpeningTable},
    other_starts::OtherStarts,
    prepare::{
        AnswerSource, GamesHere, PlayerGames, Preparation, PrepareQuery, PreparedAnswer,
        PreparedLine, PreparedMove, RepertoireMoves, TheirGames, WeakLines,
    },
    query::{Line, Page, Query, Sort, UnknownSort, View},
    random::Random,
    recency::{HALF_LIVES, HalfLife},
    reply::{MIN_REPLY_GAMES, Reply},
    sources::{NeedsGames, Overview, SourceFile, SourceOverview},
    suggest::{SuggestField, Suggestion},
    tally::Resulting,
    times::{MoveTime, Times},
    unknown_name::{MatchedNames, UnknownName},
};
use crate::{
    chess::position::BookMove,
    error::{Advice, Diagnosis, Error, Result},
    formats::{explorer_index::SiteId, fork_index::layout::GameHeader},
    progress::Meter,
    task,
};
pub use crate::{
    chess::position::Variant,
    games::{
        openings::{Opening, OpeningFilter},
        pgn::{Date, EcoRange, GameResult, Mode, NameMatch, RatingGroup, RatingRange, Speed},
        selection::{Duplicates, Selection, WantedRating, WantedResult},
    },
};

/// The maximum number of positions of a line for which [`Explorer::reached`] counts games, which limits how long a call
/// takes. The numbers for later positions are unknown.
const MAX_LINE_POSITIONS: usize = 600;

/// Returns a message to show instead of the moves of a position that an index does not cover, because the index was
/// made with `--max-ply`. `max_ply` is the value of [`Explorer::max_ply_before`].
pub fn not_indexed(max_ply: usize) -> String {
    format!("the next moves are not indexed: the index ends at half-move {max_ply}")
}

/// An opening explorer, which answers queries about positions from one or more indexes. Any number of threads may use
/// it at the same time.
///
/// The indexes of an explorer are its *sources*. Games are numbered consecutively over all sources. An open explorer
/// keeps 42 bytes for each game in memory, and some names.
pub struct Explorer {
    sources: Sources,
    suggestions: Suggestions,
    other_starts: OtherStartGames,
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
    /// Opens an explorer with the given sources. Each source is a name, by which queries select it, and the directory
    /// of its index.
    ///
    /// # Errors
    ///
    /// Returns an error if a directory does not contain an index that was made for an explorer, or if an index is
    /// damaged.
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
            other_starts: OtherStartGames::default(),
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
            let again = Advice::option(
                "make the counts again with {}, and serve their index with unfinished games",
                "unfinished",
            );
            let problem = Diagnosis::new(
                "this index contains counts, in which games without a result are counted as draws",
            )
            .advise(again.of_command("make-book").with_value("skip"));
            return Err(Error::file(source.index.path(), problem));
        }
        self.sources.skip_unfinished = true;
        self.other_starts = OtherStartGames::default();
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

    /// Returns the threshold below which rare positions were removed from the counts of the selected sources. A
    /// position was removed if fewer moves than this number were played in it, over all games. If `filters` selects
    /// several sources, returns the largest of their thresholds. Returns `None` if no positions were removed.
    pub fn min_game(&self, filters: &Selection) -> Option<u64> {
        self.sources.min_game(filters)
    }

    /// Returns the maximum number of half-moves of each game that were counted, as set by `make-book --max-ply`. If
    /// `filters` selects several sources, returns the smallest of their maximums. Returns `None` if no maximum is below
    /// the default.
    pub fn max_ply(&self, filters: &Selection) -> Option<usize> {
        let selected = self.sources.selected(filters.source.as_deref());
        selected.filter_map(OpenIndex::max_ply).min()
    }

    /// Returns [`max_ply`](Explorer::max_ply), the maximum number of half-moves that were counted, if the moves in the
    /// position `pos` exceed it and are therefore not indexed. Otherwise returns `None`. The number of half-moves
    /// before `pos` is taken from its move number.
    pub fn max_ply_before(&self, filters: &Selection, pos: &VariantPosition) -> Option<usize> {
        let plies = 2 * (pos.fullmoves().get() - 1) + u32::from(pos.turn().is_black());
        self.max_ply(filters).filter(|max| *max <= plies as usize)
    }

    /// Returns a message for the user if the counts of the selected sources lack some positions: rare positions that
    /// were removed, or positions after the last counted half-move. Returns `None` if no positions are missing.
    pub fn lacking_line(&self, filters: &Selection) -> Option<String> {
        let (fewest, last) = (self.min_game(filters), self.max_ply(filters));
        let few = fewest.map(|fewest| format!(" in which at least {fewest} moves were counted"));
        let end = last.map(|ply| format!(" up to half-move {ply}"));
        if few.is_none() && end.is_none() {
            return None;
        }
        let mut selected = self.sources.selected(filters.source.as_deref());
        let which = if selected.all(|one| one.min_game() == fewest && one.max_ply() == last) {
            "these"
        } else {
            "some of these"
        };
        let (end, few) = (end.unwrap_or_default(), few.unwrap_or_default());
        Some(format!("{which} counts contain only positions{end}{few}\n"))
    }

    /// Checks whether the selected sources (indexes of the explorer) can apply the filters. Returns `None` if they can.
    /// Otherwise, returns the first filter that needs individual games, and a selected source that contains only counts
    /// (sums of results).
    pub fn needs_games(&self, filters: &Selection) -> Option<NeedsGames> {
        self.sources.needs_games(filters)
    }

    /// Checks whether all selected sources (indexes of the explorer) contain individual games, which are needed for the
    /// operation `what`. Returns `None` if they do. Otherwise, returns an explanation that names `what` and a source
    /// that contains only counts.
    ///
    /// `wanted` is the name of the selected source, or `None` for all sources.
    pub fn needs_all_games(&self, wanted: Option<&str>, what: &'static str) -> Option<NeedsGames> {
        self.sources.needs_all_games(wanted, what)
    }

    /// Checks whether at least one selected source (an index of the explorer) contains individual games, which are
    /// needed for the operation `what`. Returns `None` if one does, or if no source has the name `wanted`. Otherwise,
    /// returns an explanation that names `what` and the first selected source.
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
    pub fn files(&self, filters: &Selection) -> Result<Vec<SourceFile>> {
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

    /// Returns an iterator over the paths of the PGN files from which the selected sources (indexes of the explorer)
    /// were made. Sources that were read from standard input are left out. `wanted` is the name of the selected source,
    /// or `None` for all sources.
    pub fn pgn_paths(&self, wanted: Option<&str>) -> impl Iterator<Item = &Path> {
        let files = self
            .sources
            .selected(wanted)
            .flat_map(|source| source.index.files());
        files
            .map(|(_, path)| path)
            .filter(|path| *path != Path::new("-"))
    }

    /// Looks for a PGN file that was modified after its index was made. Returns the path of the file and the name of
    /// the source (an index of the explorer) that was made from it, or `None` if there is no such file. `wanted` is the
    /// name of the selected source, or `None` for all sources.
    ///
    /// Ignores modification times in the future, because they come from a machine with a wrong clock.
    pub fn newer_file(&self, wanted: Option<&str>) -> Option<(PathBuf, &str)> {
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

    /// Returns the number of games in the list that [`games`](Explorer::games) divides into pages, and an iterator over
    /// the games on `page`. The memory use is bounded, even if the page is very long.
    ///
    /// An item of the iterator is the number of a game, and the move that was played in the position. The move is
    /// [`BookMove::NONE`] if the game ended there.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`games`](Explorer::games). If an index turns out to be damaged while it is read,
    /// the iterator yields an error.
    pub fn game_numbers<'a>(
        &'a self,
        query: &'a Query,
        page: &Page,
    ) -> Result<(u64, impl Iterator<Item = Result<(u64, BookMove)>> + use<'a>)> {
        let filters = self.sources.filters_of_games(&query.filters)?;
        list::numbers(filters, query, page)
    }

    /// Returns a description of game `number`, as it would appear in a list of games. It contains no move, because a
    /// move is shown only in the list for a position.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn listed_game(&self, number: u64) -> Result<ListedGame> {
        let game = game_info(&self.sources, number, View::Lichess)?;
        let filters = self.sources.filters(&Selection::default())?;
        list::with_details(
            &self.sources,
            &filters,
            PlayedGame {
                uci: None,
                unindexed: false,
                game,
            },
            None,
        )
    }

    /// Counts the games that reached the position after each move of `line`, and returns one number for each move. A
    /// number is `None` if it is unknown, for example because a source contains incomplete counts. `filters` only
    /// selects the source and says whether unfinished games are skipped; all its other conditions are ignored.
    ///
    /// `should_continue` is called before each position, and returns `false` to cancel the count.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged or the selected source does not exist. Returns [`Error::Interrupted`] if
    /// `should_continue` returns `false`.
    pub fn reached(
        &self,
        line: &Line,
        filters: &Selection,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<u64>>> {
        let filters = self.sources.filters(&Selection {
            source: filters.source.clone(),
            skip_unfinished: filters.skip_unfinished,
            ..Selection::default()
        })?;
        let mut all = Vec::with_capacity(line.moves().len());
        for pos in line.positions().iter().skip(1) {
            if !should_continue() {
                return Err(Error::Interrupted);
            }
            let here = Line::at(line.variant(), pos.clone());
            let games = if all.len() < MAX_LINE_POSITIONS {
                count_games(&filters, &here)?
            } else {
                None
            };
            // The line was played in a game of the source, so 0 means that the index does not contain the position.
            all.push(games.filter(|games| *games > 0));
        }
        Ok(all)
    }

    /// Counts the games that reached a position, for each value of the filters by speed, rating group, color, year and
    /// variant.
    ///
    /// Each number is counted as if its own filter admitted only this value, with all other filters unchanged. For
    /// example, the number for blitz is the number of games that would pass if blitz were the only admitted speed.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs individual
    /// games and a selected source contains only counts.
    pub fn facets(&self, line: &Line, filters: &Selection) -> Result<Facets> {
        task::caught(|| facets::facets(&self.sources, line, filters))
    }

    /// Returns the results of the games that reached a position, for each rating group that has such games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs individual
    /// games and a selected source contains only counts.
    pub fn scores(&self, line: &Line, filters: &Selection) -> Result<Vec<RatingScore>> {
        task::caught(|| facets::scores(&self.sources, line, filters))
    }

    /// Returns the number of games of each variant that pass the filters, keyed by the name of the variant. All games
    /// are counted, regardless of the positions that they reached.
    ///
    /// Returns `None` if a selected source contains counts (sums of results), and either there are filters or the
    /// counts do not state their number of games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged or the selected source does not exist.
    pub fn variants(&self, filters: &Selection) -> Result<Option<BTreeMap<&'static str, u64>>> {
        facets::variants(&self.sources, filters)
    }

    /// Returns the openings of the games that reached the last position of `line` and pass the filters.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a selected source contains
    /// only counts.
    pub fn openings(&self, line: &Line, filters: &Selection) -> Result<OpeningTable> {
        task::caught(|| opening_table(&self.sources, line, filters, |opening| opening.name))
    }

    /// Returns the openings like [`openings`](Explorer::openings), but with one row for a variation and all variations
    /// within it. The row is named after their common [variation](Opening::variation).
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`openings`](Explorer::openings).
    pub fn openings_by_variation(&self, line: &Line, filters: &Selection) -> Result<OpeningTable> {
        task::caught(|| opening_table(&self.sources, line, filters, |opening| opening.variation()))
    }

    /// Returns the number of games that pass the filters and do not begin in the starting position. Such games count
    /// only for positions that they reach, so an answer about a line from the starting position may leave them out.
    /// Returns `None` if there are no such games, if `line` itself does not begin in the starting position, or if the
    /// sources contain only counts.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, or if a filter needs individual
    /// games and a selected source contains only counts.
    pub fn other_starts(&self, line: &Line, filters: &Selection) -> Result<Option<OtherStarts>> {
        self.other_starts_while(line, filters, &|| true)
    }

    /// Counts games like [`other_starts`](Explorer::other_starts), but can be cancelled. `should_continue` is called
    /// repeatedly while games are filtered, and returns `false` to cancel the count.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`other_starts`](Explorer::other_starts). Returns [`Error::Interrupted`]
    /// if `should_continue` returns `false`.
    pub fn other_starts_while(
        &self,
        line: &Line,
        filters: &Selection,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Option<OtherStarts>> {
        task::caught(|| {
            let games = &self.other_starts;
            games.passing(&self.sources, line, filters, should_continue)
        })
    }

    /// Counts the games of both people in a preparation that pass its filters but do not begin in the starting
    /// position, like [`other_starts`](Explorer::other_starts). The player and the opponent have the colors that the
    /// preparation gives them. A game between the two counts once.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`prepare`](Explorer::prepare).
    pub fn other_starts_of_players(&self, query: &PrepareQuery<'_>) -> Result<Option<OtherStarts>> {
        let PrepareQuery { filters, color, .. } = query;
        let of = |player: &[String], opponent: &[String], color| {
            let filters = Selection {
                player: player.to_vec(),
                opponent: opponent.to_vec(),
                color: Some(color),
                result: Vec::new(),
                ..filters.clone()
            };
            self.other_starts_while(&query.line, &filters, query.should_continue)
        };
        let theirs = of(&filters.opponent, &[], !*color)?;
        let yours = of(&filters.player, &[], *color)?;
        let met = of(&filters.player, &filters.opponent, *color)?;
        let [all, yours_too, twice] =
            [theirs, yours, met].map(|others| others.map_or(0, |others| others.games));
        Ok(theirs.or(yours).map(|others| OtherStarts {
            games: all + yours_too - twice,
            ..others
        }))
    }

    /// Prepares a player for an opponent. Returns the moves that were played in the position of `query`, with the
    /// results of both people and the player's answers.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist, if a selected source contains
    /// counts instead of games, or if the repertoire cannot be read. Returns [`Error::Interrupted`] if
    /// [`should_continue`](PrepareQuery::should_continue) returns `false`.
    pub fn prepare(&self, query: &PrepareQuery<'_>) -> Result<Preparation> {
        task::caught(|| prepare(&self.sources, query))
    }

    /// Returns the games of the opponent in `query`, weighted by their dates. [`prepare`](Explorer::prepare) must have
    /// been called with this query before.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`prepare`](Explorer::prepare).
    pub(crate) fn weighted_games<'a>(
        &'a self,
        query: &'a PrepareQuery<'a>,
    ) -> Result<WeightedGames<'a>> {
        task::caught(|| WeightedGames::new(&self.sources, query))
    }

    /// Returns the mean and median thinking time for each move of a position, calculated from the newest games that
    /// pass the filters. At most `max_games` games are read.
    ///
    /// The thinking time of a move is calculated from `[%emt]` comments, or from `[%clk]` comments and a `TimeControl`
    /// tag with a single period. If a game reaches the position several times, only its last move from the position
    /// counts. `should_continue` is called repeatedly while the texts of the games are read, and returns `false` to
    /// cancel.
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

    /// Creates a lookup of positions, which tells whether any game reached a position, and when the first of these
    /// games was played.
    ///
    /// # Errors
    ///
    /// Returns an error if a source contains counts instead of games.
    pub(crate) fn first_seen(&self) -> Result<FirstSeen<'_>> {
        FirstSeen::new(&self.sources)
    }

    /// Suggests names of players, events or openings for `text`, which a user is typing. Returns at most `limit` names,
    /// and never more than 50. `source` restricts the search to the source with this name.
    ///
    /// A name matches if each word of `text` is the beginning of one of the words in the name. Names that consist of
    /// exactly the words of `text` come first, then the names with the most games. If fewer than `limit` names match,
    /// names that match with one or two typing errors follow. An empty text matches every name.
    ///
    /// The first call for each `field` reads all names, which takes longer. [`warm_up`](Explorer::warm_up) does this in
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
        self.suggestions
            .find(&self.sources, field, text, limit, source)
    }

    /// Returns, for each player in `filters.player`, the number of games that pass the filters. Games of all variants
    /// count, regardless of the positions that they reached. Reads all games only once, however many players there are.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, or if a selected source does not exist or contains only counts.
    pub fn count_games_of_players(&self, filters: &Selection) -> Result<Vec<u64>> {
        let all = Selection {
            duplicates: None,
            ..filters.clone()
        };
        let mut prepared = self
            .sources
            .filters_of_all_games(&all, "a number of games")?
            .of_either_color();
        if filters.counts_once() {
            // The names are names of different players.
            prepared = prepared.with_duplicates(Arc::clone(self.sources.all_duplicates()?));
        }
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

    /// Finds the duplicate games in advance, so that queries that count each game once ([`Selection::duplicates`]) need
    /// not search for them. Does nothing if they have already been found.
    ///
    /// `should_continue` is called repeatedly during the search, and returns `false` to cancel it.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    pub fn find_duplicates_while(&self, should_continue: &dyn Fn() -> bool) -> Result<()> {
        task::caught(|| self.sources.duplicates_while(should_continue).map(drop))
    }

    /// Returns `true` if the duplicate games have already been found.
    #[cfg(feature = "serve")]
    pub(crate) fn knows_duplicates(&self) -> bool {
        self.sources.knows_duplicates()
    }

    /// Finds the games in which the query about the board holds ([`Selection::position`]), so that queries with these
    /// filters need not search for them. An index contains no moves of games, so the games of the selected sources are
    /// replayed from their PGN files. Each index keeps the games that it found for the last queries. Does nothing if
    /// the filters contain no such query.
    ///
    /// `should_continue` is called repeatedly during the search, and must return `true` to continue. `meter` counts the
    /// games.
    ///
    /// # Errors
    ///
    /// Returns an error if an index is damaged, if the selected source does not exist or contains only counts, or if a
    /// PGN file is missing or has changed. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    ///
    /// ```
    /// use polybook::{
    ///     MakeBook, explorer::{Explorer, Line, Query, Selection, View}, pgn::Input, position::Variant, progress::Meter,
    /// };
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let index = dir.path().join("index");
    /// MakeBook::new([Input::file("data/famous.pgn")]).explorer(&index).run()?;
    /// let explorer = Explorer::open([("famous".to_owned(), index)])?;
    /// let mut filters = Selection::default();
    /// filters.set("position", "move[O-O-O] and turn = white")?;
    /// explorer.search_board_while(&filters, &Meter::default(), &|| true)?;
    /// let mut query = Query::new(Line::start(Variant::Standard), View::Lichess);
    /// query.filters = filters;
    /// assert!(explorer.answer(&query)?.results.games() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search_board_while(
        &self,
        filters: &Selection,
        meter: &Meter,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(query) = filters.board_query() else {
            return Ok(());
        };
        self.sources.check(filters)?;
        let mut selected = self.sources.selected(filters.source.as_deref());
        selected.try_for_each(|source| {
            task::caught(|| source.games_with(&query, meter, should_continue)).map(drop)
        })
    }

    /// Returns `true` if the games that match the query about the board in `filters` have already been found, or if
    /// `filters` contains no such query.
    #[cfg(feature = "serve")]
    pub(crate) fn knows_games_with(&self, filters: &Selection) -> bool {
        let mut selected = self.sources.selected(filters.source.as_deref());
        let query = filters.board_query();
        query.is_none_or(|query| selected.all(|source| source.knows_games_with(&query)))
    }

    /// Returns a name in the filters that occurs in no game, with similar names that do occur. Call this function if no
    /// game passes the filters, to tell the user the reason.
    ///
    /// Checks the filters by player, opponent and event, each of which may contain several names. If none of the names
    /// in a filter occurs in a game, returns the first name of the first such filter. Returns `None` if each filter
    /// contains a name that occurs in a game.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn unknown_name(&self, filters: &Selection) -> Result<Option<UnknownName>> {
        self.unknown_name_while(filters, &|| true)
    }

    /// Finds the same unknown name as [`unknown_name`](Explorer::unknown_name): the first name of a filter that matches
    /// no game. The search can be cancelled: `should_continue` is called repeatedly while names are compared, and
    /// returns `false` to cancel.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    pub fn unknown_name_while(
        &self,
        filters: &Selection,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Option<UnknownName>> {
        unknown_name(&self.sources, filters, should_continue)
    }

    /// Returns all names in the filters that occur in no game. Each comes with similar names that do occur.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn unknown_names(&self, filters: &Selection) -> Result<Vec<UnknownName>> {
        unknown_names(&self.sources, filters)
    }

    /// Returns the names of players that match the filters by player and by opponent, in all games of the selected
    /// sources. All other filters are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn matched_names(&self, filters: &Selection) -> Result<MatchedNames> {
        matched_names(&self.sources, filters)
    }

    /// Returns the number of the game that `id` identifies. `id` is a Lichess id or the game's number, with or without
    /// leading zeros. If several copies of one game have this Lichess id, returns the number of the first copy. Returns
    /// `None` if no game has this id, or if different games have it.
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
            return self.sources.find(site_id);
        }
        Ok(None)
    }

    /// Returns `true` if game `number` continues after the last half-move that its index contains, because the index
    /// was made with `--max-ply`. The game does not end in its last indexed position, but its next move is unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn is_cut(&self, number: u64) -> Result<bool> {
        let (source, id) = self.sources.locate(number)?;
        Ok(source.is_cut(id))
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

    /// Returns the opening of game `number`: the name of its last position that has one. Returns `None` if no position
    /// of the game has a name.
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

    /// Returns the speed of game `number` and its mode, which is `None` if the name of the event does not say whether
    /// the game is rated.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number, or if an index is damaged.
    pub fn speed_and_mode_of_game(&self, number: u64) -> Result<(Speed, Option<Mode>)> {
        let (source, id) = self.sources.locate(number)?;
        let (speed, mode) = source.game(id).speed_and_mode();
        let event = source.rows.events[id as usize];
        let is_known = source.rated_names()?.known.binary_search(&event).is_ok();
        Ok((speed, is_known.then_some(mode)))
    }

    /// Returns the name of the variant of game `number` in Lichess's API, such as `standard` or `threeCheck`.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number.
    pub fn variant_name_of_game(&self, number: u64) -> Result<&'static str> {
        Ok(facets::name_of(self.variant_of_game(number)?))
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
    /// [`Index::text`](crate::formats::index::Index::text).
    pub fn text(&self, number: u64) -> Result<Vec<u8>> {
        self.text_while(number, &|| true)
    }

    /// Reads the PGN text of game `number` like [`text`](Explorer::text), but can be cancelled. `should_continue` is
    /// called repeatedly while the PGN file is read, and returns `false` to cancel.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this number. Also fails for the same reasons as
    /// [`Index::text_while`](crate::formats::index::Index::text_while).
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

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        collections::{BTreeMap, HashMap},
        fs,
        path::Path,
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use shakmaty::{Position, variant::VariantPosition};

    use super::{
        Date, Duplicates, Explorer, Facets, Line, MIN_REPLY_GAMES, PrepareQuery, Query,
        RatingGroup, Selection, Speed, Variant, View, WantedRating, open_index::UNRATED,
    };
    use crate::{
        Error, MakeBook,
        chess::position::{BookMove, Keyed, VariantChoice, read_move},
        formats::{
            explorer_index::{
                CountsSources, ListKey,
                results::{Class, Month, ResultRow},
            },
            index::{CountedSource, IndexWriter, verify},
        },
        games::pgn::{GameReader, GameResult, Input, Token},
        progress::Meter,
    };

    type RowsByKey = BTreeMap<ListKey, Vec<ResultRow>>;

    /// Returns the rows of all positions, counted game by game, and the positions by key.
    fn counted(explorer: &Explorer) -> (RowsByKey, HashMap<u64, VariantPosition>) {
        let (mut rows, mut positions) = (RowsByKey::new(), HashMap::new());
        let source = &explorer.sources.indexes[0];
        for id in 0..source.games() as u32 {
            let summary = source.rows.get(id).unwrap();
            let text = source.index.text(id).unwrap();
            let mut game = GameReader::new(&text);
            assert!(game.next_game());
            if !summary.traits.is_indexed() || game.tags().get(b"FEN").is_some() {
                continue;
            }
            let (speed, _) = summary.speed_and_mode();
            let group = RatingGroup::all().nth(summary.traits.group());
            assert_eq!(group.is_none(), summary.traits.group() == UNRATED);
            let date = summary.date();
            let month = Month::of(date);
            let mut pos = Keyed::new(Variant::Standard.start());
            let mut last = HashMap::new();
            while let Token::Move { text, .. } = game.next_token() {
                let Ok(mv) = read_move(pos.position(), text) else {
                    break;
                };
                positions.insert(pos.identity(), pos.position().clone());
                let measured = source.measured(id, pos.position().turn());
                last.insert(pos.identity(), (BookMove::from(mv), measured));
                pos.play(mv);
            }
            for (identity, (mv, measured)) in last {
                let mut row = ResultRow::new(mv, Class::new(speed, group), month);
                row.results.add(match summary.result() {
                    GameResult::Unknown => GameResult::Draw,
                    result => result,
                });
                row.means.add(measured);
                rows.entry(ListKey(identity)).or_default().push(row);
            }
        }
        (rows, positions)
    }

    fn write(rows: &RowsByKey, target: &Path, min_game: u64) {
        let writer = IndexWriter::create(target, false).unwrap();
        let counts = CountedSource {
            rows: Box::new(|take| {
                let mut all = rows
                    .iter()
                    .flat_map(|(subject, rows)| rows.iter().map(|row| (*subject, *row)));
                all.try_for_each(|(subject, row)| take(subject, row))
            }),
            total: rows.values().map(|rows| rows.len() as u64).sum(),
            variant: VariantChoice::default(),
            about: CountsSources {
                games: Some(7),
                min_game,
                max_ply: (min_game > 0).then_some(30),
                inputs: vec!["a.pgn".to_owned()],
            },
        };
        let (_, finished) = writer
            .write_counts(counts, &AtomicBool::new(false), &Meter::default())
            .unwrap();
        finished.commit().unwrap();
    }

    /// Returns combinations of filters that can be applied to counts.
    fn combinations() -> Vec<Selection> {
        let date = |year, month| Some(Date::new(year, month, 0));
        let times = [
            (None, None),
            (date(2022, 0), None),
            (date(2021, 7), date(2023, 2)),
            (None, date(2023, 11)),
        ];
        let groups = |floors: &[u32], unknown: bool| {
            let groups = floors.iter().map(|floor| Some(RatingGroup::of(*floor)));
            let groups = groups.chain(unknown.then_some(None));
            Some(groups.map(WantedRating).collect::<Vec<_>>())
        };
        let all_groups = Vec::from_iter(RatingGroup::all().map(RatingGroup::floor));
        let ratings = [
            None,
            groups(&[0], false),
            groups(&[], true),
            groups(&[1600, 2000, 2500], false),
            groups(&[1800], true),
            groups(&all_groups, false),
        ];
        let speeds = [
            None,
            Some(vec![Speed::Blitz, Speed::Classical]),
            Some(vec![]),
        ];
        let mut all = Vec::new();
        for (since, until) in times {
            for rating in &ratings {
                for speed in &speeds {
                    all.push(Selection {
                        since,
                        until,
                        rating: rating.clone(),
                        speed: speed.clone(),
                        require_date: until.is_none(),
                        ..Selection::default()
                    });
                }
            }
        }
        all
    }

    /// Writes games of the engine to `target`, each three times, with different tags.
    fn tagged_games(target: &Path) {
        let text = fs::read_to_string("data/selfplay.pgn").unwrap();
        let movetexts = text
            .split("\n\n")
            .filter(|part| part.starts_with("1. "))
            .take(200);
        let movetexts: Vec<&str> = movetexts.collect();
        let mut tagged = String::new();
        for number in 0..3 * movetexts.len() {
            let movetext = movetexts[number % movetexts.len()];
            let rating = |number: usize| match number % 5 {
                0 => "?".to_owned(),
                _ => (700 + number * 337 % 2300).to_string(),
            };
            let date = match number % 11 {
                0 => "????.??.??".to_owned(),
                1 => "2022.??.??".to_owned(),
                _ => format!("{}.{:02}.07", 2020 + number % 5, 1 + number % 12),
            };
            let control = ["60+0", "180+2", "-", "600+5", "?"][number * number % 5];
            let (white, black) = (rating(number), rating(number / 2));
            tagged += &format!(
                "[Date \"{date}\"]\n[WhiteElo \"{white}\"]\n[BlackElo \"{black}\"]\n[TimeControl \"{control}\"]\n\n{movetext}\n\n"
            );
        }
        fs::write(target, tagged).unwrap();
    }

    #[test]
    fn counts_answer_as_the_games_do() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        tagged_games(&at("tagged.pgn"));
        for (name, pgn) in [
            ("famous", "data/famous.pgn".into()),
            ("tagged", at("tagged.pgn")),
        ] {
            let games = at(&format!("{name}.games"));
            MakeBook::new([Input::file(pgn)])
                .explorer(&games)
                .run()
                .unwrap();
            let games = Explorer::open([("games".to_owned(), games)]).unwrap();
            let (rows, positions) = counted(&games);
            let path = at(&format!("{name}.counts"));
            write(&rows, &path, 0);
            let verified = verify(&path, &Meter::default()).unwrap();
            assert_eq!(verified.faults, []);
            assert_eq!(verified.positions, rows.len() as u64);
            let counts = Explorer::open([("counts".to_owned(), path)]).unwrap();
            // Test the positions with the most rows, and some others.
            let mut lines: Vec<(usize, Line)> = rows
                .iter()
                .map(|(subject, rows)| {
                    (
                        rows.len(),
                        Line::at(Variant::Standard, positions[&subject.0].clone()),
                    )
                })
                .collect();
            lines.sort_by_key(|(rows, _)| usize::MAX - rows);
            for (number, filters) in combinations().into_iter().enumerate() {
                for (_, line) in lines.iter().take(20) {
                    compare(&games, &counts, line, &filters, number);
                }
                for (_, line) in lines.iter().skip(20 + number).step_by(997) {
                    compare(&games, &counts, line, &filters, number);
                }
            }
        }
    }

    fn compare(
        games: &Explorer,
        counts: &Explorer,
        line: &Line,
        filters: &Selection,
        number: usize,
    ) {
        for view in [View::Lichess, View::Masters] {
            let mut query = Query::new(line.clone(), view);
            query.filters = filters.clone();
            query.top_games = 0;
            query.recent_games = Some(0);
            query.moves = None;
            query.history = number % 3 == 1;
            query.years = number % 3 == 2;
            let mut wanted = games.answer(&query).unwrap();
            for mv in &mut wanted.moves {
                mv.game = None;
            }
            assert_eq!(counts.answer(&query).unwrap(), wanted, "{filters:?}");
        }
        let facets = |explorer: &Explorer| Facets {
            variants: None,
            ..explorer.facets(line, filters).unwrap()
        };
        assert_eq!(facets(counts), facets(games), "{filters:?}");
        assert_eq!(
            counts.scores(line, filters).unwrap(),
            games.scores(line, filters).unwrap()
        );
    }

    #[test]
    fn indexes_of_ranges_of_keys_answer_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let input = Input::file("data/famous.pgn");
        let run = MakeBook::new([input]).explorer(path("games"));
        run.run().unwrap();
        let open = |names: &[&str]| {
            let sources = names.iter().map(|name| ((*name).to_owned(), path(name)));
            Explorer::open(sources).unwrap()
        };
        let (mut low, positions) = counted(&open(&["games"]));
        write(&low, &path("all"), 0);
        let high = low.split_off(&ListKey(u64::MAX / 3));
        write(&low, &path("low"), 0);
        write(&high, &path("high"), 0);
        let (whole, ranges) = (open(&["all"]), open(&["low", "high"]));
        for pos in positions.into_values() {
            let query = Query::new(Line::at(Variant::Standard, pos), View::Lichess);
            assert_eq!(
                ranges.answer(&query).unwrap(),
                whole.answer(&query).unwrap()
            );
        }
    }

    #[test]
    fn sources_of_both_kinds_answer_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        MakeBook::new([Input::file("data/famous.pgn")])
            .explorer(path("games"))
            .run()
            .unwrap();
        let open = |names: &[&str]| {
            Explorer::open(names.iter().map(|name| ((*name).to_owned(), path(name)))).unwrap()
        };
        write(&counted(&open(&["games"])).0, &path("counts"), 5);
        let both = open(&["counts", "games"]);
        let query = Query::new(Line::start(Variant::Standard), View::Lichess);
        let (one, two) = (
            open(&["games"]).answer(&query).unwrap(),
            both.answer(&query).unwrap(),
        );
        assert_eq!(two.results.games(), 2 * one.results.games());
        assert_eq!(two.top_games, one.top_games);
        // An answer names the game of a move only if a single game played it. Here each source has one.
        assert!(two.moves.iter().all(|mv| mv.game.is_none()));

        let of = |source: Option<&str>| Selection {
            source: source.map(str::to_owned),
            ..Selection::default()
        };
        assert_eq!(both.min_game(&of(None)), Some(5));
        assert_eq!(both.min_game(&of(Some("games"))), None);
        assert_eq!(both.max_ply(&of(None)), Some(30));
        let line = |source| both.lacking_line(&of(source)).unwrap_or_default();
        assert!(line(None).starts_with(
            "some of these counts contain only positions up to half-move 30 in which at least 5"
        ));
        assert!(line(Some("counts")).starts_with("these counts contain only"));
        assert_eq!(line(Some("games")), "");
        assert_eq!(both.about().sources[0].games, Some(7));
        // Counts do not state how many games pass filters.
        let line = Line::start(Variant::Standard);
        let variants = |filters: &Selection| both.facets(&line, filters).unwrap().variants;
        assert!(variants(&of(None)).is_some());
        let some = |source| Selection {
            speed: Some(vec![Speed::Blitz]),
            ..of(source)
        };
        assert_eq!(variants(&some(None)), None);
        assert!(variants(&some(Some("games"))).is_some());
        for source in [None, Some("counts")] {
            let asked = Selection {
                player: vec!["tal".to_owned()],
                ..of(source)
            };
            let needs = both.needs_games(&asked).unwrap().to_string();
            assert!(
                needs.contains("needed for the condition player") && needs.contains("counts"),
                "{needs}"
            );
            let query = Query {
                filters: asked,
                ..query.clone()
            };
            assert!(
                both.answer(&query)
                    .unwrap_err()
                    .to_string()
                    .contains("games are needed for the condition player")
            );
        }
        assert!(
            both.needs_games(&Selection {
                min_plies: 9,
                ..of(Some("games"))
            })
            .is_none()
        );
        assert!(
            both.lacks_games(None, "x").is_none()
                && both.lacks_games(Some("counts"), "x").is_some()
        );
        assert!(both.files(&of(None)).is_err() && both.files(&of(Some("games"))).is_ok());
    }

    #[test]
    fn a_search_for_unknown_names_reads_the_names_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games");
        MakeBook::new([Input::file("data/famous.pgn")])
            .explorer(&path)
            .run()
            .unwrap();
        let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
        for exact in [false, true] {
            let filters = |player: Vec<String>| Selection {
                player,
                exact,
                ..Selection::default()
            };
            let nobody = |count: usize| (0..count).map(|number| format!("nob{number}"));
            // The search calls the function each time it begins to read the names.
            let readings = |players: Vec<String>| {
                let readings = Cell::new(0);
                let unknown = explorer.unknown_name_while(&filters(players), &|| {
                    readings.set(readings.get() + 1);
                    true
                });
                (unknown.unwrap().map(|unknown| unknown.name), readings.get())
            };
            let one = readings(nobody(1).collect());
            assert_eq!(one.0.as_deref(), Some("nob0"));
            assert_eq!(readings(nobody(20).collect()), one);
            let known = "Fischer, Robert James".to_owned();
            let (unknown, few) = readings(nobody(19).chain([known]).collect());
            assert!(unknown.is_none() && few < one.1);
            let filters = filters(nobody(20).collect());
            let cancelled = explorer.unknown_name_while(&filters, &|| false);
            assert!(matches!(cancelled, Err(Error::Interrupted)));
            let all = explorer.unknown_names(&filters).unwrap();
            assert!(
                all.iter()
                    .map(|unknown| unknown.name.clone())
                    .eq(nobody(20))
            );
        }
    }

    #[test]
    fn games_of_several_players_are_counted_like_those_of_each() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        let moves = ["1. e4 *", "1. d4 *", "1. c4 *", "1. c4 *"];
        let players = [("A", "B"), ("B", "A"), ("C", "A"), ("A", "A")];
        let games = moves.iter().zip(players).map(|(moves, (white, black))| {
            format!(
                "[White \"{white}\"]\n[Black \"{black}\"]\n[Date \"2020.01.01\"]\n\n{moves}\n\n"
            )
        });
        fs::write(&pgn, games.collect::<String>()).unwrap();
        let paths = ["one", "two"].map(|name| (name.to_owned(), dir.path().join(name)));
        for (_, path) in &paths {
            let run = MakeBook::new([Input::file(&pgn)]).explorer(path);
            run.run().unwrap();
        }
        let explorer = Explorer::open(paths).unwrap();
        let names = ["A", "B", "C", "D", "a"].map(str::to_owned);
        for (once, opponents, expected) in [
            (true, vec![], [4, 2, 1, 0, 4]),
            (false, vec![], [8, 4, 2, 0, 8]),
            (true, vec!["B".to_owned()], [2, 0, 0, 0, 2]),
            (true, vec!["A".to_owned()], [1, 2, 1, 0, 1]),
        ] {
            let count = |players: &[String]| {
                let filters = Selection {
                    player: players.to_vec(),
                    opponent: opponents.clone(),
                    exact: true,
                    duplicates: once.then_some(Duplicates::Once),
                    ..Selection::default()
                };
                explorer.count_games_of_players(&filters).unwrap()
            };
            assert_eq!(count(&names), expected, "{once} {opponents:?}");
            let each = names
                .iter()
                .map(|name| count(std::slice::from_ref(name))[0]);
            assert_eq!(each.collect::<Vec<_>>(), expected, "{once} {opponents:?}");
        }
    }

    #[test]
    fn the_search_for_duplicates_can_be_cancelled_at_any_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.idx");
        let run = MakeBook::new([
            Input::file("data/famous.pgn"),
            Input::file("data/famous.pgn"),
        ]);
        run.explorer(&path).run().unwrap();
        let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
        let calls = Cell::new(0);
        let mut most = 0;
        // Each search ends one check later than the one before.
        while let Err(err) = explorer.find_duplicates_while(&|| {
            calls.set(calls.get() + 1);
            calls.get() <= most
        }) {
            assert!(matches!(err, Error::Interrupted), "{err}");
            assert_eq!(calls.replace(0), most + 1);
            most += 1;
        }
        assert!(most > explorer.game_count() as usize / 2, "{most}");
        let filters = Selection {
            duplicates: Some(Duplicates::Once),
            ..Selection::default()
        };
        let all: u64 = explorer.variants(&filters).unwrap().unwrap().values().sum();
        assert_eq!(2 * all, explorer.game_count());
    }

    #[test]
    fn a_preparation_can_be_cancelled_at_each_position() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.idx");
        let run = MakeBook::new([Input::file("data/famous.pgn")]);
        run.explorer(&path).run().unwrap();
        let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
        explorer.find_duplicates_while(&|| true).unwrap();
        let calls = AtomicUsize::new(0);
        let prepared = |most: usize| {
            calls.store(0, Ordering::Relaxed);
            explorer.prepare(&PrepareQuery {
                line: Line::parse(Variant::Standard, None, "").unwrap(),
                filters: Selection {
                    player: vec!["a".to_owned()],
                    opponent: vec!["e".to_owned()],
                    duplicates: Some(Duplicates::Once),
                    ..Selection::default()
                },
                color: shakmaty::Color::White,
                repertoire: None,
                lines: 7,
                min_games: MIN_REPLY_GAMES,
                half_life: None,
                should_continue: &|| calls.fetch_add(1, Ordering::Relaxed) < most,
            })
        };
        let whole = prepared(usize::MAX).unwrap();
        let all = calls.load(Ordering::Relaxed);
        assert!(all > 10, "{all}");
        for most in [0, 1, 5, all - 1] {
            let err = prepared(most).unwrap_err();
            assert!(matches!(err, Error::Interrupted), "{most}: {err}");
        }
        assert_eq!(prepared(all).unwrap(), whole);
    }
}

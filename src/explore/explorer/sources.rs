//! The sources of an explorer, which are one or more open indexes. Games are numbered consecutively over all sources.
//!
//! An [`Overview`] describes an explorer with its sources: the numbers of games and positions, the years, and the PGN
//! files.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
};

use super::{duplicate_groups::DuplicateGroups, filter::SourceFilters, open_index::OpenIndex};
use crate::{
    chess::position::Variant,
    error::{Diagnosis, Error, Result},
    formats::explorer_index::{ListKey, SiteId},
    games::selection::{Evaluator, Selection},
    json::is_zero,
    task,
};

/// The number of selections for which an explorer keeps the groups of duplicate games. Only selections with several
/// names of one player need groups of their own.
const MAX_KEPT_GROUPS: usize = 8;

/// The open indexes of an explorer. Games are numbered consecutively over all of them.
pub(super) struct Sources {
    /// The indexes, in the order of their games' numbers.
    pub indexes: Vec<OpenIndex>,
    duplicates: OnceLock<Arc<DuplicateGroups>>,
    /// The groups of duplicates for selections that contain several names of a player. The groups found last are at the
    /// end.
    duplicates_of_players: Mutex<Vec<(Selection, Arc<DuplicateGroups>)>>,
    /// Whether unfinished games are left out of every answer.
    pub skip_unfinished: bool,
}

impl Sources {
    /// Creates the sources of an explorer from its open indexes, which must be sorted by [`OpenIndex::first`], the
    /// number of an index's first game. Unfinished games count in answers unless the field `skip_unfinished` is set
    /// later.
    pub(super) fn new(indexes: Vec<OpenIndex>) -> Sources {
        Sources {
            indexes,
            duplicates: OnceLock::new(),
            duplicates_of_players: Mutex::default(),
            skip_unfinished: false,
        }
    }

    /// Returns the number of games in all sources.
    pub(super) fn game_count(&self) -> u64 {
        let last = self.indexes.last();
        last.map_or(0, |last| last.first + last.games())
    }

    /// Returns the threshold below which rare positions were removed from the counts of the selected sources. A
    /// position was removed if fewer moves than this number were played in it, over all games. If the sources have
    /// different thresholds, returns the largest one. Returns `None` if no positions were removed. Implements
    /// [`Explorer::min_game`](super::Explorer::min_game).
    pub(super) fn min_game(&self, filters: &Selection) -> Option<u64> {
        let selected = self.selected(filters.source.as_deref());
        selected.filter_map(OpenIndex::min_game).max()
    }

    /// Returns the reason why the selected sources cannot apply the filters, or `None` if they can. Implements
    /// [`Explorer::needs_games`](super::Explorer::needs_games).
    pub(super) fn needs_games(&self, filters: &Selection) -> Option<NeedsGames> {
        let unanswerable = filters.unanswerable(Evaluator::Counts)?;
        let what = format!("the condition {}", unanswerable.condition);
        self.needs_all_games(filters.source.as_deref(), &what)
    }

    /// Checks whether all selected sources contain individual games, which are needed for `what`, an operation or a
    /// filter. Returns `None` if they do. Otherwise, returns an explanation that names `what` and the first source that
    /// contains only counts. `wanted` is the name of the selected source, or `None` for all sources. Implements
    /// [`Explorer::needs_all_games`](super::Explorer::needs_all_games).
    pub(super) fn needs_all_games(&self, wanted: Option<&str>, what: &str) -> Option<NeedsGames> {
        let mut selected = self.selected(wanted);
        let source = selected.find(|source| source.counted.is_some())?;
        Some(NeedsGames::new(what, source))
    }

    /// Checks whether at least one selected source contains individual games, which are needed for the operation
    /// `what`. Returns `None` if one does, or if no source has the name `wanted`. Otherwise, returns an explanation
    /// that names `what` and the first selected source. `wanted` is the name of the selected source, or `None` for all
    /// sources. Implements [`Explorer::lacks_games`](super::Explorer::lacks_games).
    pub(super) fn lacks_games(&self, wanted: Option<&str>, what: &str) -> Option<NeedsGames> {
        let mut sources = self.selected(wanted).peekable();
        let first = *sources.peek()?;
        let lacks_all = sources.all(|source| source.counted.is_some());
        lacks_all.then(|| NeedsGames::new(what, first))
    }

    /// Returns an iterator over the selected sources (indexes of the explorer). Only the source with the name `wanted`
    /// is selected, or all sources if `wanted` is `None`.
    pub(super) fn selected(&self, wanted: Option<&str>) -> impl Iterator<Item = &OpenIndex> {
        let is_selected = move |source: &&OpenIndex| wanted.is_none_or(|name| *name == source.name);
        self.indexes.iter().filter(is_selected)
    }

    /// Converts `filters` to a filter for each selected source (an index of the explorer), for example by looking up
    /// the players' names in the source.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if a filter needs individual games and a selected
    /// source contains only counts.
    pub(super) fn filters(&self, filters: &Selection) -> Result<SourceFilters<'_>> {
        self.check(filters)?;
        self.unchecked_filters(filters)
    }

    /// Converts `filters` to a filter for each selected source that contains games. Skips sources that contain only
    /// counts, so the result suits operations such as listing games.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if no selected source contains games.
    pub(super) fn filters_of_games(&self, filters: &Selection) -> Result<SourceFilters<'_>> {
        let source = filters.source.as_deref();
        self.check_source(source)?;
        match self.lacks_games(source, "a list of games") {
            Some(needs) => Err(needs.error()),
            None => self.unchecked_filters(filters),
        }
    }

    /// Converts `filters` to a filter for each selected source, for an operation that needs the games of all these
    /// sources. `what` names the operation in error messages, for example `a table of openings`.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if a selected source contains only counts.
    pub(super) fn filters_of_all_games(
        &self,
        filters: &Selection,
        what: &'static str,
    ) -> Result<SourceFilters<'_>> {
        let source = filters.source.as_deref();
        self.check_source(source)?;
        match self.needs_all_games(source, what) {
            Some(needs) => Err(needs.error()),
            None => self.unchecked_filters(filters),
        }
    }

    fn unchecked_filters(&self, filters: &Selection) -> Result<SourceFilters<'_>> {
        if let Some(unanswerable) = filters.unanswerable(Evaluator::Index)
            && let Some(index) = self.selected(filters.source.as_deref()).next()
        {
            return Err(Error::file(index.index.path(), unanswerable.to_string()));
        }
        let mut filters = filters.clone();
        filters.skip_unfinished |= self.skip_unfinished;
        let prepared = SourceFilters::new(&self.indexes, &filters)?;
        Ok(if filters.counts_once() {
            prepared.with_duplicates(self.duplicates(&filters)?)
        } else {
            prepared
        })
    }

    /// Returns the groups of duplicate games under the assumption that all names that match one condition of
    /// `selection` belong to one player. The first call finds the groups, which takes time; later calls return the same
    /// groups.
    pub(super) fn duplicates(&self, selection: &Selection) -> Result<Arc<DuplicateGroups>> {
        let all = self.all_duplicates()?;
        if !selection.has_names() {
            return Ok(Arc::clone(all));
        }
        let names = Selection {
            player: selection.player.clone(),
            opponent: selection.opponent.clone(),
            white: selection.white.clone(),
            black: selection.black.clone(),
            exact: selection.exact,
            ..Selection::default()
        };
        let known = task::lock(&self.duplicates_of_players);
        if let Some((_, groups)) = known.iter().find(|(of, _)| *of == names) {
            return Ok(Arc::clone(groups));
        }
        drop(known);
        let groups = match all.of_named_players(&self.indexes, &names)? {
            None => Arc::clone(all),
            Some(groups) => Arc::new(groups),
        };
        let mut known = task::lock(&self.duplicates_of_players);
        if known.len() == MAX_KEPT_GROUPS {
            known.remove(0);
        }
        known.push((names, Arc::clone(&groups)));
        Ok(groups)
    }

    /// Returns the groups of duplicate games, comparing players by the names in the games. The first call finds the
    /// groups, which takes time; later calls return the same groups.
    pub(super) fn all_duplicates(&self) -> Result<&Arc<DuplicateGroups>> {
        self.duplicates_while(&|| true)
    }

    /// Returns the groups of duplicate games like [`all_duplicates`](Sources::all_duplicates), but the search can be
    /// cancelled. Implements [`Explorer::find_duplicates_while`](super::Explorer::find_duplicates_while).
    pub(super) fn duplicates_while(
        &self,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<&Arc<DuplicateGroups>> {
        if let Some(duplicates) = self.duplicates.get() {
            return Ok(duplicates);
        }
        // Several threads may search at the same time. Waiting for another search could block forever: a thread of
        // rayon may be in the middle of it, and after a fork, the thread that searches does not exist.
        let duplicates = DuplicateGroups::find(&self.indexes, should_continue)?;
        Ok(self.duplicates.get_or_init(|| Arc::new(duplicates)))
    }

    /// Returns `true` if the groups of duplicate games have been found.
    #[cfg(feature = "serve")]
    pub(super) fn knows_duplicates(&self) -> bool {
        self.duplicates.get().is_some()
    }

    /// Checks that the selected sources exist and can apply the filters.
    ///
    /// # Errors
    ///
    /// Returns an error if the selected source does not exist, or if a filter needs individual games and a selected
    /// source contains only counts.
    pub(super) fn check(&self, filters: &Selection) -> Result<()> {
        self.check_source(filters.source.as_deref())?;
        match self.needs_games(filters) {
            Some(needs) => Err(needs.error()),
            None => Ok(()),
        }
    }

    /// Checks that a source (an index of the explorer) has the name `wanted`. Succeeds if `wanted` is `None`.
    ///
    /// # Errors
    ///
    /// Returns an error that lists the names of all sources if no source has this name.
    pub(super) fn check_source(&self, wanted: Option<&str>) -> Result<()> {
        match wanted {
            Some(name) if self.indexes.iter().all(|source| source.name != name) => {
                let names: Vec<&str> = self.indexes.iter().map(|source| &*source.name).collect();
                let problem = format!("no source has this name: use one of {}", names.join(", "));
                Err(Error::file(name, problem))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of the game with the Lichess id `id`, or of its first copy if several copies of it exist.
    /// Returns `None` if no game has the id, or if different games have it. Games are copies if their moves are equal
    /// or, for games without indexed positions, their texts.
    pub(super) fn find(&self, id: SiteId) -> Result<Option<u64>> {
        let mut first: Option<(&OpenIndex, u32)> = None;
        for source in &self.indexes {
            for game in source.listed(ListKey::site_id(id))? {
                // Different ids may have the same list.
                if u64::from(game) >= source.games() || source.rows.site_id(game) != Some(id) {
                    continue;
                }
                match first {
                    None => first = Some((source, game)),
                    Some(first) if is_copy(first, (source, game))? => {}
                    Some(_) => return Ok(None),
                }
            }
        }
        Ok(first.map(|(source, game)| source.first + u64::from(game)))
    }

    /// Returns the source (an index of the explorer) that contains game `number`, and the game's id in this source.
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
                    "no game has this number: the sources contain {games} games, numbered from 0"
                );
                Err(Error::file(number.to_string(), problem))
            }
        }
    }
}

/// The reason why a query cannot be answered: a filter or an operation needs individual games, but a source (an index
/// of the explorer) contains only counts, which are sums of results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeedsGames {
    what: String,
    source: String,
    path: PathBuf,
}

impl NeedsGames {
    fn new(what: &str, source: &OpenIndex) -> NeedsGames {
        NeedsGames {
            what: what.to_owned(),
            source: source.name.clone(),
            path: source.index.path().to_owned(),
        }
    }

    /// Converts this reason to an error, whose message names the path of the index. The [`Display`](fmt::Display) form
    /// of the reason names the source instead.
    fn error(&self) -> Error {
        let problem = Diagnosis::new(format!(
            "this index contains only counts, but games are needed for {}",
            self.what
        ))
        .advise("use an index that make-book made from games");
        Error::file(&self.path, problem)
    }
}

impl fmt::Display for NeedsGames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NeedsGames { what, source, .. } = self;
        write!(
            f,
            "the source \"{source}\" contains only counts, but games are needed for {what}: use an index that \
             make-book made from games"
        )
    }
}

/// A description of an explorer with its sources, which are the indexes that it has opened.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overview {
    /// The version of polybook.
    pub version: &'static str,
    /// The number of games in all sources, including games whose positions are not indexed. `None` if a source
    /// contains counts that do not state their number of games.
    pub games: Option<u64>,
    /// The number of these games that do not count in answers about positions, because they were rejected or filtered
    /// out.
    #[serde(rename = "notCounted", skip_serializing_if = "is_zero")]
    pub not_counted: u64,
    /// The total number of positions in all sources. A position counts once for each source that contains it.
    pub positions: u64,
    /// The years of the first and the last game, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// The sources.
    pub sources: Vec<SourceOverview>,
}

/// A description of one source, which is an index that the explorer has opened.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceOverview {
    /// The name that was given to the source.
    pub name: String,
    /// The number of games from which the source was built, including games whose positions are not indexed. `None`
    /// if the source contains counts that do not state this number.
    pub games: Option<u64>,
    /// The number of these games whose positions are not indexed, because the games were rejected or filtered out.
    /// Always 0 for counts, because they state only the number of counted games.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_counted: u64,
    /// The number of positions.
    pub positions: u64,
    /// The years of the first and the last game, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// The variant of the games, or `auto` if the source may contain games of several variants.
    pub variant: String,
    /// The names of the files from which the games were read, without directories.
    pub files: Vec<String>,
    /// Whether the source contains counts instead of games. Counts can be filtered only by speed, rating group and
    /// month.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// The minimum number of counted moves in a position if rarer positions were removed from the counts, otherwise
    /// `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_game: Option<u64>,
    /// The number of half-moves of each game that were counted, or `None` if all were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ply: Option<usize>,
}

/// A PGN file whose games are in a source (an index of the explorer).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The number of games in the file when it was indexed.
    pub games: u64,
    /// The variant that was assumed for games without a `Variant` tag.
    pub untagged_variant: Variant,
    /// The options of `make-book` that selected the indexed games, in the form of the command line. Empty if all
    /// options have their default values.
    pub options: String,
}

/// Returns `true` if two games with the same Lichess id are copies of one game. Games are copies if they have the same
/// moves or, if the positions of one are not indexed, the same text. Each game is given by the index that contains it
/// and its id in this index.
fn is_copy(a: (&OpenIndex, u32), b: (&OpenIndex, u32)) -> Result<bool> {
    let [first, second] = [a, b].map(|(source, id)| source.rows.moves[id as usize]);
    if first > 0 && second > 0 {
        return Ok(first == second);
    }
    Ok(a.0.index.text_checksum(a.1)? == b.0.index.text_checksum(b.1)?)
}

/// Returns a description of `source`, an index that the explorer has opened.
pub(super) fn source_overview(source: &OpenIndex) -> SourceOverview {
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

//! The description of an explorer and of its sources: numbers of games and positions, years, and PGN files.

use std::path::PathBuf;

use super::{open_index::OpenIndex, tally::is_zero};
use crate::position::Variant;

/// A description of an explorer: its sources (the indexes that it opened) and their total size.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Overview {
    /// The version of polybook.
    pub version: &'static str,
    /// The number of games that were read for all sources, or `None` if a source has counts that do not state their
    /// number of games.
    pub games: Option<u64>,
    /// The number of these games that are in no answer about positions, because they were rejected or filtered.
    #[serde(rename = "notCounted", skip_serializing_if = "is_zero")]
    pub not_counted: u64,
    /// The sum of the numbers of positions of all sources. A position that several sources have counts several times.
    pub positions: u64,
    /// The first and the last year from which there are games, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// The sources.
    pub sources: Vec<SourceOverview>,
}

/// A description of one of the indexes that an explorer has opened, its sources.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceOverview {
    /// The name that was given to the source.
    pub name: String,
    /// The number of games that were read, including games whose positions are not indexed. `None` if the source has
    /// counts that do not state it.
    pub games: Option<u64>,
    /// The number of these games whose positions are not indexed, because the games were rejected or filtered. Always 0
    /// for counts, whose number of games contains only counted games.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_counted: u64,
    /// The number of positions.
    pub positions: u64,
    /// The first and the last year from which there are games, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// The variant of the games, or `auto` if the source may contain games of several variants.
    pub variant: String,
    /// The names of the files from which the games were read, without directories.
    pub files: Vec<String>,
    /// Whether the source has counts instead of games. Counts can be filtered only by speed, rating group and month.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// If rare positions were dropped from the counts, the minimum number of moves that were counted in a position.
    /// `None` if no position was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_game: Option<u64>,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ply: Option<usize>,
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

/// Returns the description of a source.
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

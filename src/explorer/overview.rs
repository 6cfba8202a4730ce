//! Descriptions of an explorer and of its sources: numbers of games and positions, years, and PGN files.

use std::path::PathBuf;

use super::{open_index::OpenIndex, tally::is_zero};
use crate::position::Variant;

/// A description of an explorer and of its sources, which are the indexes that it has opened.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
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
    /// The number of games that the file contained when it was indexed.
    pub games: u64,
    /// The variant of games without a `Variant` tag.
    pub untagged_variant: Variant,
    /// The options of `make-book` that selected the indexed games, in the form of the command line. Empty if all
    /// options have their default values.
    pub options: String,
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

//! What a run did.

use std::{
    collections::BTreeMap,
    ops::AddAssign,
    path::{Path, PathBuf},
};

pub use crate::provenance::Rejection;
use crate::provenance::as_text;
use crate::{
    book::{LossSummary, MinimaxSummary},
    pgn::Condition,
    position::Variant,
    provenance::{Games, Pruned},
};

/// What a run counted while it replayed games.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Totals {
    /// What became of the games.
    pub games: Games,
    /// Games that were left out, by the first filter that rejected each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filtered_by: BTreeMap<Condition, u64>,
    /// Half-moves that count.
    pub plies: u64,
    /// Half-moves that are not in the book because a rook may castle that is not the outermost of its
    /// side, which only Chess960 knows.
    #[serde(rename = "left_out", skip_serializing_if = "is_zero")]
    pub ambiguous_castling: u64,
    /// Games, and variations if they count, that a null move ends: they count up to there.
    #[serde(skip_serializing_if = "is_zero")]
    pub null_moves: u64,
    /// Variations with a move that cannot be played: they count up to there.
    #[serde(skip_serializing_if = "is_zero")]
    pub unplayable_variations: u64,
    /// Games whose start has castling rights without king and rook in their places: they are played without
    /// these rights.
    #[serde(skip_serializing_if = "is_zero")]
    pub castling_dropped: u64,
    /// Games that end with another result than their `Result` tag has: the tag counts.
    #[serde(skip_serializing_if = "is_zero")]
    pub contradicted_results: u64,
    /// Games that count though `since` or `until` is given and their year is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub undated: u64,
    /// Games that count though `min_elo` or `max_elo` is given and a rating is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub unrated: u64,
    /// Games that count, by their variant, unless only standard chess was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<Variant, u64>,
}

impl Totals {
    /// What became of the games that do not count: "7 filtered by rating, 2 rejected".
    pub(super) fn why_none_counts(&self) -> String {
        let filtered = self.filtered_by.iter();
        let mut reasons: Vec<String> = filtered
            .map(|(condition, games)| format!("{games} filtered by {condition}"))
            .collect();
        if self.games.rejected > 0 {
            reasons.push(format!("{} rejected", self.games.rejected));
        }
        reasons.join(", ")
    }

    /// Returns the warnings about games that count in part, or though a filter could not judge them.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        [
            (
                self.null_moves,
                "game or variation has a null move and counts up to there",
                "games or variations have a null move and count up to there",
            ),
            (
                self.unplayable_variations,
                "variation has a move that cannot be played and counts up to there",
                "variations have a move that cannot be played and count up to there",
            ),
            (
                self.castling_dropped,
                "game starts with castling rights without king and rook in place, and is played without these rights",
                "games start with castling rights without king and rook in place, and are played without these rights",
            ),
            (
                self.contradicted_results,
                "game ends with another result than its Result tag has: the tag counts",
                "games end with another result than their Result tag has: the tag counts",
            ),
            (
                self.undated,
                "game counts though its date is missing or cannot be read: --require-date leaves it out",
                "games count though their dates are missing or cannot be read: --require-date leaves them out",
            ),
            (
                self.unrated,
                "game counts though a rating is missing or cannot be read: --require-elo leaves it out",
                "games count though a rating is missing or cannot be read: --require-elo leaves them out",
            ),
        ]
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, several)| format!("{number} {}", if number == 1 { one } else { several }))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(fact: &bool) -> bool {
    !fact
}

impl AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, other: &Totals) {
        let Totals {
            games,
            filtered_by,
            plies,
            ambiguous_castling,
            null_moves,
            unplayable_variations,
            castling_dropped,
            contradicted_results,
            undated,
            unrated,
            variants,
        } = other;
        self.games += *games;
        for (condition, games) in filtered_by {
            *self.filtered_by.entry(*condition).or_default() += games;
        }
        self.plies += plies;
        self.ambiguous_castling += ambiguous_castling;
        self.null_moves += null_moves;
        self.unplayable_variations += unplayable_variations;
        self.castling_dropped += castling_dropped;
        self.contradicted_results += contradicted_results;
        self.undated += undated;
        self.unrated += unrated;
        for (variant, games) in variants {
            *self.variants.entry(*variant).or_default() += games;
        }
    }
}

/// What a run did.
#[derive(Clone, PartialEq, Default, Debug, serde::Serialize)]
pub struct Report {
    /// The numbers that were counted while games were replayed.
    #[serde(flatten)]
    pub totals: Totals,
    /// Positions in which a counted move was played; 0 if only an index was made.
    pub positions: u64,
    /// Pairs of position and move that were counted; 0 if only an index was made.
    #[serde(rename = "entries")]
    pub pairs: u64,
    /// The book, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookReport>,
    /// The index, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexReport>,
    /// The OOBS database, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obs: Option<ObsReport>,
    /// The counts, if they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsReport>,
    /// The suite, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteReport>,
    /// The first [100](Report::DESCRIBED) rejected games, in the order of the inputs.
    pub rejected: Vec<Rejection>,
    /// Whether counts among the inputs do not say how many games they have. The [totals](Report::totals) lack these
    /// games.
    #[serde(skip_serializing_if = "is_false")]
    pub has_unknown_games: bool,
    /// Warnings of the inputs, a line each.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

impl Report {
    /// How many rejected games are described.
    pub const DESCRIBED: usize = 100;
}

/// A book that was made.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct BookReport {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its records, without the header.
    pub entries: u64,
    /// The largest weight before scaling.
    pub largest_weight: u64,
    /// The factor of every weight.
    pub scale: f64,
    /// What became of moves by their evaluations, if these were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<LossSummary>,
    /// What became of moves by what the counts show after them, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimax: Option<MinimaxSummary>,
}

/// An index that was made.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct IndexReport {
    /// The directory.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Games of the inputs. Each has a record.
    pub games: u64,
    /// Positions that a game reached.
    pub positions: u64,
    /// Postings: pairs of a position and a game that reached it.
    pub postings: u64,
    /// Rows, of an index of counts, which has no games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

/// An OOBS database that was made.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ObsReport {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its rows, one for each move of each position.
    pub rows: u64,
}

/// A directory of counts that was made.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CountsReport {
    /// The directory.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its rows, one for each move of each position.
    pub rows: u64,
    /// Its files of rows.
    pub parts: usize,
    /// What was dropped, by this run and before, if positions were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
}

/// A suite that was made.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct SuiteReport {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its lines, or its positions.
    pub lines: u64,
    /// Those that were left out because they have no evaluation, if they are chosen by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unevaluated: Option<u64>,
}

/// A word that all warnings about filtered variants have, and no other warning.
pub(super) const VARIANT_FILTERED: &str = " filtered";

/// A variant whose games were filtered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FilteredVariant {
    /// The run counts another one.
    Other(Variant),
    /// A book has no keys for it.
    Unnumbered(Variant),
    /// No variant of this name is known.
    Unknown(String),
    /// More names that are not known.
    More,
}

impl FilteredVariant {
    pub(super) fn warning(&self, games: u64) -> String {
        let filtered = match games {
            1 => "1 game filtered".to_owned(),
            _ => format!("{games} games filtered"),
        };
        match self {
            FilteredVariant::Other(variant) => {
                format!("{variant}: {filtered}, because another variant is counted")
            }
            FilteredVariant::Unnumbered(variant) => {
                format!("{variant}: {filtered}, because the Polyglot format has no number for it")
            }
            FilteredVariant::Unknown(name) => {
                format!(
                    "unknown variant \"{}\": {filtered}; if it is standard chess, remove the tag Variant",
                    name.escape_debug()
                )
            }
            FilteredVariant::More => format!("more unknown variants: {filtered}"),
        }
    }
}

/// Returns the warning about lines among tags that are no tag pairs.
pub(super) fn bad_tag(file: &Path, offset: u64) -> String {
    format!(
        "{}: a line among the tags is no tag pair and was passed over, first at byte {offset}",
        file.display()
    )
}

/// Returns the warning about text that belongs to no game.
pub(super) fn stray_text(file: &Path, offset: u64) -> String {
    format!(
        "{}: text that belongs to no game was passed over, first at byte {offset}",
        file.display()
    )
}

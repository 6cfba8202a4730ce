//! The [progress](Progress) that a `make-book` run reports while it is working, and the [report](Report) at its end.

use std::{
    collections::BTreeMap,
    ops::{AddAssign, RangeInclusive},
    path::PathBuf,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

pub use crate::provenance::Rejection;
use crate::{
    chess::position::Variant,
    error::{Diagnosis, plural},
    formats::book::{EvalWeightsSummary, LossSummary, MinimaxSummary},
    games::{pgn::unknown_variant, selection::Condition},
    json::is_zero,
    progress::Meter,
    provenance::{GameCounts, Pruned, as_text},
};

/// The numbers of games and half-moves that a `make-book` run counted, and the numbers of irregularities that it found
/// in games.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Totals {
    /// The numbers of counted, filtered and rejected games.
    pub games: GameCounts,
    /// The number of games that each condition filtered out. A game that does not meet several conditions is listed
    /// only under the first of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filtered_by: BTreeMap<Condition, u64>,
    /// The number of counted half-moves.
    pub plies: u64,
    /// The number of half-moves that are not in the book because book keys cannot express their positions: a rook may
    /// castle although another rook of its side stands further out on the back rank. This occurs only in Chess960.
    #[serde(rename = "left_out", skip_serializing_if = "is_zero")]
    pub ambiguous_castling: u64,
    /// The number of games and counted variations that contain a null move. Only their half-moves before the null move
    /// are counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub null_moves: u64,
    /// The number of variations that contain a move that cannot be played. Only their half-moves before this move are
    /// counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub unplayable_variations: u64,
    /// The number of games whose starting position has castling rights although the king or the rook is not in place.
    /// The games are played without these rights.
    #[serde(skip_serializing_if = "is_zero")]
    pub castling_dropped: u64,
    /// The number of games whose termination marker contradicts their `Result` tag. The tag decides.
    #[serde(skip_serializing_if = "is_zero")]
    pub contradicted_results: u64,
    /// The number of counted games whose `Result` tag does not spell a result, so that their termination markers are
    /// used. Games without the tag are also included if they end in text that does not spell a result.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreadable_results: u64,
    /// The number of counted games that neither side won and that are not drawn, such as unfinished games. Books, OOBS
    /// databases and counts count them as draws.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// The number of games that are counted although their year is unknown and a filter on dates is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub undated: u64,
    /// The number of games that are counted although a rating is unknown and a filter on ratings is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub unrated: u64,
    /// The number of counted games that books and counts of the run do not contain, because the Polyglot format has no
    /// number for their variant. Other outputs contain these games.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_tallied: u64,
    /// The number of counted games of each variant, unless the run counts only standard chess.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<Variant, u64>,
    /// The part of these totals for games that tallies cannot contain, because the Polyglot format has no number for
    /// their variant. `None` if there are no such games.
    #[serde(skip)]
    pub untallied: Option<Box<Totals>>,
}

impl Totals {
    /// Returns these totals with all games marked as games that tallies cannot contain.
    pub(super) fn into_untallied(self) -> Totals {
        Totals {
            untallied: Some(Box::new(self.clone())),
            ..self
        }
    }

    /// Returns the totals for outputs that are made from tallies. Games that tallies cannot contain are listed as
    /// filtered by their variant, as if the run had no other outputs.
    pub(super) fn tallied(&self) -> Totals {
        let mut tallied = self.clone();
        let Some(untallied) = tallied.untallied.take() else {
            return tallied;
        };
        let games = untallied.games;
        tallied.games.counted -= games.counted;
        tallied.games.rejected -= games.rejected;
        tallied.games.filtered += games.counted + games.rejected;
        for (condition, games) in &untallied.filtered_by {
            *tallied.filtered_by.entry(*condition).or_default() -= games;
        }
        *tallied.filtered_by.entry(Condition::Variant).or_default() +=
            games.counted + games.rejected + games.filtered;
        tallied.filtered_by.retain(|_, games| *games > 0);
        tallied.null_moves -= untallied.null_moves;
        tallied.castling_dropped -= untallied.castling_dropped;
        tallied.contradicted_results -= untallied.contradicted_results;
        tallied.unreadable_results -= untallied.unreadable_results;
        tallied.unfinished -= untallied.unfinished;
        tallied.undated -= untallied.undated;
        tallied.unrated -= untallied.unrated;
        tallied.not_tallied = 0;
        for variant in untallied.variants.keys() {
            tallied.variants.remove(variant);
        }
        tallied
    }

    /// Returns warnings about games that were counted only in part, and about games that passed a filter although they
    /// lack the tag that the filter examines.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        [
            (
                self.null_moves,
                "game or variation contains a null move and was read up to this move",
                "games or variations contain a null move and were read up to this move",
            ),
            (
                self.unplayable_variations,
                "variation contains an illegal move and was read up to this move",
                "variations contain an illegal move and were read up to this move",
            ),
            (
                self.castling_dropped,
                "game starts with castling rights for which the king or the rook is not in place, and was read without \
                 these rights",
                "games start with castling rights for which the king or the rook is not in place, and were read \
                 without these rights",
            ),
            (
                self.contradicted_results,
                "game ends with a result that differs from its Result tag: the tag was used",
                "games end with a result that differs from their Result tag: the tag was used",
            ),
            (
                self.unreadable_results,
                "game has an unreadable result in the Result tag or after the moves: use 1-0, 0-1, 1/2-1/2 or *",
                "games have an unreadable result in the Result tag or after the moves: use 1-0, 0-1, 1/2-1/2 or *",
            ),
            (
                self.not_tallied,
                "game of a variant without a number in the Polyglot format is left out of books and counts",
                "games of variants without a number in the Polyglot format are left out of books and counts",
            ),
            (
                self.undated,
                "game without a readable date passed the filters: the condition require-date drops this game",
                "games without a readable date passed the filters: the condition require-date drops these games",
            ),
            (
                self.unrated,
                "game without readable ratings passed the filters: the condition require-elo drops this game",
                "games without readable ratings passed the filters: the condition require-elo drops these games",
            ),
        ]
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, several)| format!("{number} {}", if number == 1 { one } else { several }))
    }
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
            unreadable_results,
            unfinished,
            undated,
            unrated,
            not_tallied,
            variants,
            untallied,
        } = other;
        if let Some(untallied) = untallied {
            **self.untallied.get_or_insert_default() += untallied;
        }
        self.games += *games;
        self.not_tallied += not_tallied;
        for (condition, games) in filtered_by {
            *self.filtered_by.entry(*condition).or_default() += games;
        }
        self.plies += plies;
        self.ambiguous_castling += ambiguous_castling;
        self.null_moves += null_moves;
        self.unplayable_variations += unplayable_variations;
        self.castling_dropped += castling_dropped;
        self.contradicted_results += contradicted_results;
        self.unreadable_results += unreadable_results;
        self.unfinished += unfinished;
        self.undated += undated;
        self.unrated += unrated;
        for (variant, games) in variants {
            *self.variants.entry(*variant).or_default() += games;
        }
    }
}

/// The report of a run of [`MakeBook`](crate::MakeBook): what was counted, and which outputs were written.
#[derive(Clone, PartialEq, Default, Debug, serde::Serialize)]
pub struct Report {
    /// The numbers of games and half-moves that were counted while games were replayed.
    #[serde(flatten)]
    pub totals: Totals,
    /// The number of positions in which a counted move was played, or 0 if only indexes were written.
    pub positions: u64,
    /// The number of counted pairs of a position and a move, or 0 if only an index was written.
    #[serde(rename = "entries")]
    pub pairs: u64,
    /// The report on the book, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookReport>,
    /// The report on the index in the format of polyglot's LevelDB fork, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexReport>,
    /// The report on the explorer's index, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explorer: Option<IndexReport>,
    /// The report on the OOBS database, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obs: Option<ObsReport>,
    /// The report on the counts directory, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsReport>,
    /// The report on the opening suite, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteReport>,
    /// The number of games that were extracted, if games were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extracted: Option<u64>,
    /// Descriptions of the first [100](Report::MAX_DESCRIBED_GAMES) rejected games, in the order of the inputs.
    pub rejected: Vec<Rejection>,
    /// The indices in [`rejected`](Report::rejected) of games that tallies cannot contain because of their variant.
    #[serde(skip)]
    pub(super) untallied_rejected: Vec<usize>,
    /// Whether some input counts do not say how many games they contain. The [totals](Report::totals) lack these games.
    #[serde(skip_serializing_if = "is_false")]
    pub has_unknown_games: bool,
    /// The names of players that the filters by names match, sorted by number of games in descending order. Contains at
    /// most 100 names, selected from the first 10,000 names that match. Empty if there are no such filters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched_players: Vec<String>,
    /// Warnings about the inputs, one line each.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// The end of a message that no game was counted, which suggests similar names, such as `: did you mean "Tal"?`.
    /// Empty if no name of a player or an event is similar to a name in the filters.
    #[serde(skip)]
    pub(super) meant: String,
}

impl Report {
    /// The maximum number of rejected games that a report describes.
    pub const MAX_DESCRIBED_GAMES: usize = 100;

    /// Returns `true` if no game and no move was counted.
    pub(crate) fn counts_nothing(&self) -> bool {
        // If the run keeps prefixes, the moves before an illegal move are counted although their game is not.
        self.totals.games.counted == 0 && self.totals.plies == 0
    }

    /// Returns a message that says why no game was counted, such as "none of 9 games can be counted (7 filtered by
    /// rating, 2 rejected)". The message also describes the first rejected game.
    pub fn why_none_counts(&self) -> Diagnosis {
        let totals = &self.totals;
        let filtered = totals.filtered_by.iter();
        let mut reasons: Vec<String> = filtered
            .map(|(condition, games)| format!("{games} filtered by {condition}"))
            .collect();
        if totals.games.rejected > 0 {
            reasons.push(format!("{} rejected", totals.games.rejected));
        }
        let reason = match totals.games.read {
            0 => "the input contains no game".to_owned(),
            1 => format!("the only game cannot be counted ({})", reasons.join(", ")),
            games => format!(
                "none of {games} games can be counted ({})",
                reasons.join(", ")
            ),
        };
        let meant = self.meant.strip_prefix(": ").map(str::to_owned);
        let is_of_variant = |warning: &&String| warning.contains(VARIANT_WARNING_MARK);
        let of_variant = self.warnings.iter().find(is_of_variant).cloned();
        let first = self.rejected.first();
        let first = first.map(|first| format!("the first rejected game is {first}"));
        let advice = [meant, of_variant, first].into_iter().flatten();
        let advice = advice.collect::<Vec<String>>().join("; ");
        if advice.is_empty() {
            Diagnosis::new(reason)
        } else {
            Diagnosis::new(reason).advise(advice)
        }
    }
}

/// The report on a Polyglot book that a `make-book` run has written.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct BookReport {
    /// The path of the file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The number of entries, without the header.
    pub entries: u64,
    /// The largest weight of a move before the weights are scaled.
    pub largest_weight: u64,
    /// The factor by which every weight was multiplied.
    pub scale: f64,
    /// The numbers of moves that were dropped or kept because of evaluations, if evaluations were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<LossSummary>,
    /// The effects of `--minimax` on the weights, if it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimax: Option<MinimaxSummary>,
    /// The numbers of moves whose weights come from evaluations, if `--weights` requested it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_weights: Option<EvalWeightsSummary>,
}

/// The report on an index that a `make-book` run has written.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct IndexReport {
    /// The path of the directory.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The number of games of the inputs.
    pub games: u64,
    /// The number of positions that a game reached.
    pub positions: u64,
    /// The number of postings: pairs of a position and a game that reached it.
    pub postings: u64,
    /// The number of rows of an index of counts, or `None` for an index of games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

/// The report on an OOBS database that a `make-book` run has written.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ObsReport {
    /// The path of the file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The number of rows, one for each move of each position.
    pub rows: u64,
    /// The number of moves that were left out because they were played fewer than `min_game` times.
    pub rare: u64,
    /// The minimum number of times that a move in the database was played.
    pub min_game: u64,
    /// The EPD of the first position, or `None` if the database contains the starting position of its variant.
    #[serde(skip)]
    pub first: Option<String>,
}

/// The report on a counts directory that a `make-book` run has written.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CountsReport {
    /// The path of the directory.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The number of rows: one for each move of each position, or several if the counts are grouped by class.
    pub rows: u64,
    /// The number of Parquet files that contain the rows.
    pub parts: usize,
    /// The numbers of positions, rows and half-moves that were dropped by this run or by earlier ones, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
}

/// The report on an opening suite that a `make-book` run has written.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct SuiteReport {
    /// The path of the file.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The range of the lengths of lines, in half-moves.
    #[serde(skip)]
    pub plies: RangeInclusive<usize>,
    /// The number of lines or positions in the suite.
    pub lines: u64,
    /// The maximum number of lines or positions, or `None` if all are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The number of lines or positions that were left out because fewer games than the minimum reached them.
    pub rare: u64,
    /// The number of lines or positions that were left out because they do not meet `conditions`.
    pub outside: u64,
    /// The names of the options that set conditions on the last positions of lines, such as `balance` and
    /// `quiet-positions`.
    #[serde(skip)]
    pub conditions: Vec<&'static str>,
    /// The number of lines that were left out because their positions have no evaluation. `None` if the suite is not
    /// filtered by evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unevaluated: Option<u64>,
    /// The number of lines that were left out because another line leads to the same position. `None` if several lines
    /// of the suite may lead to the same position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<u64>,
}

/// The part of a warning by which warnings about games that were left out because of their variant are recognized. No
/// other warning contains it.
const VARIANT_WARNING_MARK: &str = " left out";

/// The reason why the games of a variant are not counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum VariantRejection {
    /// The run counts a variant other than this one.
    Other(Variant),
    /// The Polyglot format has no number for the variant, so its positions have no keys.
    Unnumbered(Variant),
    /// The `Variant` tag contains this name, which polybook does not know.
    Unknown(String),
    /// The `Variant` tag contains an unknown name that is not listed, because the list of unknown names is full.
    More,
}

impl VariantRejection {
    /// Returns warnings that games were left out because of their variant. `filtered` contains the numbers of these
    /// games. A single warning lists all variants that could be counted instead.
    pub(super) fn warnings(filtered: &BTreeMap<VariantRejection, u64>) -> Vec<String> {
        let is_named = |reason: &VariantRejection| matches!(reason, VariantRejection::Other(variant) if *variant != Variant::Standard);
        let named = filtered.iter().filter(|(reason, _)| is_named(reason));
        let is_joined = named.clone().count() > 1;
        let mut warnings = Vec::new();
        if is_joined {
            let all = named.clone().map(|(_, games)| games).sum();
            let each = named.filter_map(|(reason, games)| match reason {
                VariantRejection::Other(variant) => Some(format!("{variant} {games}")),
                _ => None,
            });
            warnings.push(format!(
                "{} of other variants left out ({}): a run with one of these variants counts its games",
                plural(all, "game"),
                each.collect::<Vec<_>>().join(", ")
            ));
        }
        let single = filtered.iter();
        let single = single.filter(|(reason, _)| !is_joined || !is_named(reason));
        warnings.extend(single.map(|(reason, games)| reason.warning(*games)));
        warnings
    }

    /// Returns a warning that `games` games were left out because of their variant.
    fn warning(&self, games: u64) -> String {
        let left_out = |variant| {
            format!(
                "{} of the variant {variant} left out",
                plural(games, "game")
            )
        };
        match self {
            // Games of another variant often lack the tag, and counting them as standard chess would be wrong.
            VariantRejection::Other(Variant::Standard) => {
                format!(
                    "{}: the variant {} counts these games; if they belong to the counted variant but have no tag \
                     Variant, name it as the variant of untagged games",
                    left_out(&Variant::Standard),
                    Variant::Standard
                )
            }
            VariantRejection::Other(variant) => {
                format!(
                    "{}: the variant {variant} counts these games",
                    left_out(variant)
                )
            }
            VariantRejection::Unnumbered(variant) => {
                format!(
                    "{}, because the Polyglot format has no number for this variant",
                    left_out(variant)
                )
            }
            VariantRejection::Unknown(name) => unknown_variant(Some(name), games),
            VariantRejection::More => unknown_variant(None, games),
        }
    }
}

/// A phase of a [`MakeBook`](crate::MakeBook) run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Games are read and replayed.
    Reading,
    /// The counts of moves are sorted and added up.
    Sorting,
    /// The positions of the OOBS database are found, and its rows are written.
    Database,
    /// The counts directory is written.
    Counts,
    /// The index in the format of polyglot's LevelDB fork is written.
    Index,
    /// The explorer's index is written.
    Explorer,
    /// The book is written and all outputs are renamed.
    Book,
}

impl Phase {
    /// All phases, in the order in which a run goes through them.
    pub const ALL: [Phase; 7] = [
        Phase::Reading,
        Phase::Sorting,
        Phase::Database,
        Phase::Counts,
        Phase::Index,
        Phase::Explorer,
        Phase::Book,
    ];
}

/// The progress of a run of [`MakeBook`](crate::MakeBook), which another thread can display while the run is working.
///
/// ```
/// use polybook::{MakeBook, make_book::Phase, pgn::Input};
///
/// let run = MakeBook::new([Input::file("data/famous.pgn")]);
/// let progress = run.progress();
/// run.run()?;
/// assert_eq!(progress.phase(), Phase::Book);
/// assert_eq!((progress.games(), progress.fraction()), (45, Some(1.0)));
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    /// The number of bytes read from the inputs, before decompression.
    bytes: AtomicU64,
    /// The total size of the inputs in bytes, or 0 if it is unknown.
    total_bytes: AtomicU64,
    games: AtomicU64,
    /// The progress within each phase after reading.
    meters: [Meter; Phase::ALL.len()],
    /// The estimated duration of each phase, relative to the other phases.
    costs: [AtomicU64; Phase::ALL.len()],
}

impl Progress {
    /// Returns the current phase of the run.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed))]
    }

    /// Returns the number of games read so far.
    pub fn games(&self) -> u64 {
        self.games.load(Ordering::Relaxed)
    }

    /// Returns how many bytes of the inputs were read so far, and the total size of the inputs in bytes. In compressed
    /// inputs, both numbers count the compressed bytes. The total is `None` if it is unknown, for example for standard
    /// input.
    pub fn bytes(&self) -> (u64, Option<u64>) {
        let total = self.total_bytes.load(Ordering::Relaxed);
        (
            self.bytes.load(Ordering::Relaxed),
            (total > 0).then_some(total),
        )
    }

    /// Returns the completed fraction of the current phase, from 0 to 1, or `None` if it is unknown.
    pub fn phase_fraction(&self) -> Option<f64> {
        match self.phase() {
            Phase::Reading => {
                let (read, total) = self.bytes();
                Some((read as f64 / total? as f64).min(1.0))
            }
            phase => self.meter(phase).fraction(),
        }
    }

    /// Returns the completed fraction of the whole run, from 0 to 1, computed from an estimate of the duration of each
    /// phase. Returns `None` while inputs of unknown total size are read.
    pub fn fraction(&self) -> Option<f64> {
        let phase = self.phase();
        let present = self.phase_fraction();
        if phase == Phase::Reading {
            present?;
        }
        let cost = |phase: &Phase| self.costs[*phase as usize].load(Ordering::Relaxed) as f64;
        let total: f64 = Phase::ALL.iter().map(cost).sum();
        let before: f64 = Phase::ALL
            .iter()
            .filter(|other| **other < phase)
            .map(cost)
            .sum();
        Some((before + cost(&phase) * present.unwrap_or(0.0)) / total.max(1.0))
    }

    /// Resets the progress at the beginning of a run. `total_bytes` is the size of the inputs in bytes, or `None` if it
    /// is unknown. `writing` contains, for each output, the phase in which it is written, and an estimate of the time
    /// for writing it, in thousandths of the time for reading the inputs.
    pub(super) fn begin(
        &self,
        total_bytes: Option<u64>,
        writing: impl IntoIterator<Item = (Phase, u64)>,
    ) {
        self.phase.store(Phase::Reading as u8, Ordering::Relaxed);
        for number in [&self.bytes, &self.games].into_iter().chain(&self.costs) {
            number.store(0, Ordering::Relaxed);
        }
        self.meters.iter().for_each(Meter::reset);
        let total = total_bytes.unwrap_or(0);
        self.total_bytes.store(total, Ordering::Relaxed);
        let counting = [(Phase::Reading, 1000), (Phase::Sorting, 100)];
        for (phase, cost) in counting.into_iter().chain(writing) {
            self.costs[phase as usize].fetch_add(cost, Ordering::Relaxed);
        }
    }

    /// Marks the run as complete.
    pub(super) fn end(&self) {
        let meter = self.enter(Phase::Book);
        meter.reset();
        meter.add_total(1);
        meter.advance(1);
    }

    /// Begins the phase `phase`. Returns a meter to which the caller must report the progress within the phase.
    pub(super) fn enter(&self, phase: Phase) -> &Meter {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.meter(phase)
    }

    fn meter(&self, phase: Phase) -> &Meter {
        &self.meters[phase as usize]
    }

    /// Adds `bytes` to the number of input bytes that were read so far. The bytes are counted before decompression.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds `games` to the number of games read so far.
    pub(super) fn add_games(&self, games: u64) {
        self.games.fetch_add(games, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_the_run_combines_its_phases() {
        let progress = Progress::default();
        progress.begin(Some(200), [(Phase::Book, 300), (Phase::Book, 600)]);
        assert_eq!(progress.fraction(), Some(0.0));
        progress.add_bytes(100);
        assert_eq!(progress.fraction(), Some(0.25));
        progress.enter(Phase::Sorting);
        assert_eq!(progress.fraction(), Some(0.5));
        let meter = progress.enter(Phase::Book);
        meter.add_total(8);
        meter.advance(4);
        assert_eq!(progress.fraction(), Some(0.775));
        meter.advance(4);
        assert_eq!(progress.fraction(), Some(1.0));
        progress.begin(None, [(Phase::Book, 900)]);
        assert_eq!(
            (progress.fraction(), progress.phase()),
            (None, Phase::Reading)
        );
    }
}

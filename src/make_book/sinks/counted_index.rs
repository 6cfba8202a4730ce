//! Writes an explorer's index of counts as an output of a run.

use std::path::Path;

use super::counts::opened_classed;
use crate::{
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        counts::{ClassRow, ClassedCounts, Grouping},
        explorer_index::{
            CountsSources, ListKey,
            results::{Class, Month, ResultRow},
        },
        index::{CountedSource, IndexWriter},
    },
    games::{
        pgn::{RatingGroup, Speed},
        results::Results,
    },
    make_book::{
        data::CollectedData,
        inputs::{Inputs, max_ply_values, smallest_max_ply},
        needs::Needs,
        options::{EMPTY_OUTPUTS, MakeBook},
        report::{IndexReport, Phase},
        sink::{Plan, Sink},
    },
    storage::{output::Finished, sort::SHARDS},
};

/// The grouping that counts must have for an explorer's index to be made from them. It contains every property of games
/// that the filters of such an index examine.
const EXPLORER_GROUPING: Grouping = Grouping {
    speed: true,
    rating: true,
    month: true,
};

struct CountedIndexSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    classed: ClassedCounts,
    writer: IndexWriter,
}

const VARIANTS_UNSUPPORTED: &str =
    "an index can be made from counts only in standard chess: make the index from the games";

/// Returns a plan for writing an explorer's index of counts, and adds the data that the index needs to `needs`.
/// Returns `None` if the options request no such index, or if some inputs are games.
pub(in crate::make_book::sinks) fn plan<'a>(
    options: &'a MakeBook,
    inputs: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.explorer.as_deref()?;
    if !inputs.are_counts() {
        return None;
    }
    needs.classes = true;
    Some(Plan::of_counts(path, move || {
        let classed = opened_classed(options, inputs)?;
        if inputs.by != EXPLORER_GROUPING {
            let needed = EXPLORER_GROUPING.division();
            let mut counts = inputs.counts();
            return Err(match counts.find(|counts| counts.by != EXPLORER_GROUPING) {
                Some(counts) => {
                    let problem = Diagnosis::new(format!(
                        "these counts are {}, but an index needs counts that are {needed}",
                        counts.by.division()
                    ))
                    .advise(
                        Advice::option("count the games with {}", "by")
                            .with_value(EXPLORER_GROUPING),
                    );
                    Error::file(counts.path, problem)
                }
                None => {
                    let problem =
                        Diagnosis::new(format!("an index needs counts that are {needed}"))
                            .advise(Advice::option("leave {} out", "by"))
                            .advise(Advice::option("give {}", "by").with_value(EXPLORER_GROUPING));
                    Error::file(path, problem)
                }
            });
        }
        if !options.variant.is_standard() {
            return Err(Error::file(path, VARIANTS_UNSUPPORTED));
        }
        Ok(CountedIndexSink {
            options,
            path,
            classed,
            writer: IndexWriter::create(path, options.force)?,
        })
    }))
}

impl Sink for CountedIndexSink<'_> {
    fn cost(&self) -> Option<(Phase, u64)> {
        Some((Phase::Explorer, 700))
    }

    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Explorer);
        let classed = &self.classed;
        classed.check_bytes()?;
        if classed.has_identities()? {
            return Err(Error::file(self.path, VARIANTS_UNSUPPORTED));
        }
        let source = CountedSource {
            rows: Box::new(move |take| {
                // Rows are sorted by key as a signed number. Within each half of the shards, this is also the order of
                // the keys as unsigned numbers.
                for half in [0..SHARDS / 2, SHARDS / 2..SHARDS] {
                    classed.for_each_row(half, None, |row| match counted_row(row) {
                        Some(counted) => take(ListKey(row.row.identity), counted),
                        None => Ok(()),
                    })?;
                }
                classed.check_read()
            }),
            total: classed.row_count(),
            variant: self.options.variant,
            about: CountsSources {
                games: counted.provenance.games.map(|games| games.counted),
                min_game: counted.pruned.map_or(0, |pruned| pruned.min_game),
                max_ply: smallest_max_ply(max_ply_values(counted.options)),
                inputs: counted.provenance.inputs.clone(),
            },
        };
        let stop = &self.options.stop;
        let (written, finished) = self.writer.write_counts(source, stop, meter)?;
        if written.postings == 0 && !self.options.allow_empty {
            let reason = "the counts contain no move or end of a game that an index could show";
            let reason = Diagnosis::new(reason).advise(EMPTY_OUTPUTS);
            return Err(Error::Empty { reason });
        }
        counted.games.report.explorer = Some(IndexReport {
            path: self.path.to_owned(),
            games: 0,
            positions: written.positions,
            postings: 0,
            rows: Some(written.postings),
        });
        Ok(finished)
    }
}

/// Converts a row of counts to a row of an explorer's index, in which results are from White's point of view.
///
/// Returns `None` for a row that the index does not contain: a row without games, a row without a valid month, or a row
/// marked as `book_only`. Half-moves in a `book_only` row count for books but not for the explorer: half-moves of
/// variations, and half-moves whose position occurs again later in the game.
fn counted_row(row: &ClassRow) -> Option<ResultRow> {
    let (class, results) = (row.class, Results::from_side(row.row.turn, row.row.stats));
    let speed = Speed::ALL[usize::from(class.speed)];
    let group = usize::from(class.group).checked_sub(1);
    let group = group.and_then(|number| RatingGroup::all().nth(number));
    let month = Month::new((class.month / 100) as u16, (class.month % 100) as u8)?;
    let has_games = results.games() > 0;
    (!class.book_only && has_games).then_some(ResultRow {
        mv: row.row.mv,
        class: Class::new(speed, group),
        month,
        results,
        means: row.means,
        game: None,
    })
}

//! The outputs of a run, with one file for each format. To add an output, add a file with its option, an entry in
//! [`plans`], and a report.

mod book;
#[cfg(feature = "parquet")]
mod counted_index;
#[cfg(feature = "parquet")]
mod counts;
mod explorer;
mod extract;
mod index;
#[cfg(feature = "obs")]
mod obs;
mod suite;

use super::{inputs::Inputs, needs::Needs, options::MakeBook, sink::Plan};

/// A function that plans one kind of output. If the options request the output, it returns the plan and adds the data
/// that the output needs to the [`Needs`]. Otherwise, it returns `None`.
type Planned = for<'a> fn(&'a MakeBook, &'a Inputs<'_>, &mut Needs) -> Option<Plan<'a>>;

/// Returns the plans for all requested outputs, in the order in which the outputs are written. Also returns the kinds
/// of data that these outputs need.
pub(super) fn plans<'a>(options: &'a MakeBook, inputs: &'a Inputs<'_>) -> (Vec<Plan<'a>>, Needs) {
    let all: &[Planned] = &[
        extract::plan,
        suite::plan,
        #[cfg(feature = "obs")]
        obs::plan,
        #[cfg(feature = "parquet")]
        counts::plan,
        index::plan,
        explorer::plan,
        book::plan,
    ];
    let mut needs = Needs {
        openings: options.selection.opening.is_some(),
        game_hashes: options.selection.counts_once(),
        ..Needs::default()
    };
    let plans = all
        .iter()
        .filter_map(|plan| plan(options, inputs, &mut needs));
    let plans: Vec<Plan<'_>> = plans.collect();
    let of_variants = [options.leveldb.is_some(), options.explorer.is_some()];
    needs.all_variants = of_variants.contains(&true)
        || options.obs.is_some()
        || options.suite.is_some()
        || options.extract.is_some();
    if plans.is_empty() {
        // A run that has no outputs also reports the numbers of positions and moves.
        needs.keys = true;
        needs.rare_positions = true;
    }
    (plans, needs)
}

//! The outputs of a run, a file for each. A new output is a new file here with its option, a line in [`plans`], and what
//! it reports.

mod book;
#[cfg(feature = "parquet")]
mod counts;
mod index;
#[cfg(feature = "obs")]
mod obs;
mod suite;

use super::{inputs::Inputs, needs::Needs, options::MakeBook, sink::Plan};

/// Says what an output needs and how it begins, if the options ask for it.
type Planned = for<'a> fn(&'a MakeBook, &'a Inputs<'_>, &mut Needs) -> Option<Plan<'a>>;

/// The outputs that the options ask for, in the order in which they are written, and what they need.
pub(super) fn plans<'a>(options: &'a MakeBook, inputs: &'a Inputs<'_>) -> (Vec<Plan<'a>>, Needs) {
    let all: &[Planned] = &[
        suite::plan,
        #[cfg(feature = "obs")]
        obs::plan,
        #[cfg(feature = "parquet")]
        counts::plan,
        index::plan,
        book::plan,
    ];
    let mut needs = Needs::default();
    let plans = all
        .iter()
        .filter_map(|plan| plan(options, inputs, &mut needs));
    let plans: Vec<Plan<'_>> = plans.collect();
    if plans.is_empty() {
        // For the report.
        needs.keys = true;
        needs.rare_positions = true;
    }
    (plans, needs)
}

//! The outputs of a run, a file for each. A new output is a new file here, a line in [`plans`], its option, and what it
//! reports.

mod book;
#[cfg(feature = "parquet")]
mod classed;
#[cfg(feature = "parquet")]
mod counted_index;
#[cfg(feature = "parquet")]
mod counts;
mod index;
#[cfg(feature = "obs")]
mod obs;
mod suite;

use super::{needs::Needs, options::MakeBook, sink::Plan};

/// Says what an output needs and how it begins, if the options ask for it.
type Planned = for<'a> fn(&'a MakeBook, &mut Needs) -> Option<Plan<'a>>;

/// The outputs that the options ask for, in the order in which they are written, and what they need.
pub(super) fn plans(options: &MakeBook) -> (Vec<Plan<'_>>, Needs) {
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
    let plans = all.iter().filter_map(|plan| plan(options, &mut needs));
    let plans: Vec<Plan<'_>> = plans.collect();
    if plans.is_empty() {
        // For the report.
        needs.keys = true;
        needs.rare_positions = true;
    }
    (plans, needs)
}

//! The pipeline that makes books, indexes, databases, counts and suites from PGN files or counts.
//!
//! One thread reads and decompresses each input, and another [cuts](crate::games::pgn::Cutter) it into batches. All
//! threads replay the batches and count their moves. A sequencer restores the order of the batches for everything that
//! depends on it, such as game numbers. Then each output is written under a temporary name, and all outputs are renamed
//! together.
//!
//! The outputs of a run depend only on its inputs and options, never on the number of threads or the memory budget.

mod budget;
#[cfg(feature = "obs")]
pub mod convert;
mod data;
mod extract;
mod inputs;
mod main_line;
mod needs;
mod options;
mod pipeline;
pub mod plies;
mod replay;
mod report;
mod run;
mod sequence;
mod sink;
mod sinks;

pub use self::{
    extract::{Extract, ExtractForm},
    options::{MakeBook, Unfinished},
    report::{
        BookReport, CountsReport, IndexReport, ObsReport, Phase, Progress, Rejection, Report,
        SuiteReport, Totals,
    },
};
pub(crate) use self::{
    replay::replay_games,
    sink::{BatchSink, CountedGame},
};

//! The pipeline from PGN, or from counts, to a book, an index, a database and counts: one thread reads, unpacks and
//! [cuts](crate::pgn::Cutter) the stream, all threads replay the batches and count, and then the results
//! are put in order.

mod budget;
mod counted;
mod duplicates;
mod input;
mod inputs;
mod main_line;
mod needs;
mod options;
mod outcome;
mod pipeline;
mod progress;
mod replay;
mod report;
mod run;
mod sequence;
mod sink;
mod sinks;
mod space;
mod starts;
mod variations;

pub use self::{
    options::{MakeBook, Unfinished},
    progress::{Phase, Progress},
    report::{
        BookReport, CountsReport, IndexReport, ObsReport, Rejection, Report, SuiteReport, Totals,
    },
};
pub(crate) use self::{
    replay::replay_games,
    sink::{BatchSink, CountedGame},
};

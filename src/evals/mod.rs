//! Stores of evaluations, by position key.
//!
//! [`MakeEvals`] builds a store from PGN with `[%eval]` comments, from EPDs, from the file of evaluations that Lichess
//! publishes, and from other stores. It keeps the deepest evaluation of each position. [`Evals`] finds the evaluation
//! of a position in a store.
//!
//! ```
//! use polybook::{evals::{Evals, EvalsFormat, MakeEvals, eval_key}, pgn::Input, position::from_text};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (pgn, store) = (dir.path().join("games.pgn"), dir.path().join("games.evals"));
//! std::fs::write(&pgn, "1. e4 { [%eval 0.33,20] } e5 { [%eval 0.4] } *")?;
//! MakeEvals::new([Input::file(&pgn)]).run(&store, EvalsFormat::Store)?;
//!
//! let evals = Evals::open(&store)?;
//! let found = evals.find(eval_key(&from_text(None, Some("e4"))?))?.expect("it is evaluated");
//! assert_eq!((found.score.to_string(), found.depth), ("+0.33".to_owned(), 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod games;
mod inputs;
mod journal;
mod layout;
mod lines;
mod loss;
mod maker;
#[cfg(feature = "parquet")]
mod parquet;
mod report;
mod store;
mod writer;

pub use crate::uci::end_engines;

pub(crate) use self::{analysis::check_room, games::evaluation};
pub use self::{
    analysis::{EngineOptions, Positions, read_positions},
    layout::{Eval, Score, eval_key},
    loss::MaxLoss,
    maker::{ClaimedEvals, MakeEvals},
    report::{BadEntry, EngineReport, EvalsReport, FailedPosition},
    store::Evals,
    writer::EvalsFormat,
};

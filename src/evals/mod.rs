//! Stores of evaluations, by position key.
//!
//! [`MakeEvals`] builds a store from PGN with `[%eval]` comments, from EPDs, from the file of evaluations that Lichess
//! publishes, and from other stores. It keeps the deepest evaluation of each position. [`Evals`] finds the evaluation of a
//! position in a store.
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
mod batch;
mod games;
mod journal;
mod layout;
mod lines;
mod loss;
mod make;
#[cfg(feature = "parquet")]
mod parquet;
mod positions;
mod report;
mod score;
mod sorted;
mod source;
mod store;
mod uci;
mod write;
mod writer;

pub use crate::uci::end_engines;

pub(crate) use self::{games::evaluation, positions::check_room};
pub use self::{
    layout::{Eval, eval_key},
    loss::MaxLoss,
    make::MakeEvals,
    positions::{Positions, read_positions},
    report::{BadEntry, EngineReport, EvalsReport, FailedPosition},
    score::Score,
    store::Evals,
    uci::EngineOptions,
    write::EvalsFormat,
};

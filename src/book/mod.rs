//! Polyglot books: [opening and searching](Book) them, their [header], making them from
//! [counts](crate::tally::Counts), [merging](merge_books), [filtering](filter_books),
//! [changing](edit_book) and [comparing](differences) them, [checking](verify) and [listing their
//! lines](lines).
//!
//! ```no_run
//! use polybook::{book::Book, position::key};
//!
//! let book = Book::open("performance.bin")?;
//! for entry in book.moves(key(&shakmaty::Chess::default()))? {
//!     println!("{} {}", entry.mv, entry.weight);
//! }
//! # Ok::<(), polybook::Error>(())
//! ```

mod diff;
mod edit;
mod file;
mod foreign;
pub mod header;
pub mod lines;
mod losses;
mod make;
mod merge;
mod minimax;
mod open;
mod positions;
mod records;
mod search;
mod verify;
mod weight;

pub(crate) use self::foreign::check_replaceable;
pub(crate) use self::records::each_move_once;
pub use self::{
    diff::{MoveDifference, MoveRecords, PositionDifference, differences},
    edit::{
        Change, ChangeError, EditSummary, NewWeight, PositionEdit, Script, ScriptError, edit_book,
    },
    foreign::{begin_book, is_book_or_empty},
    losses::LossSummary,
    make::{BookMaker, BookSummary},
    merge::{Filter, MergeSummary, filter_books, merge_books},
    minimax::MinimaxSummary,
    open::Book,
    positions::MergePolicy,
    records::{Entry, Records},
    verify::{Fault, FaultyRecords, Verified, fix, verify},
    weight::{Factors, Scale, Scaling, Weights},
};

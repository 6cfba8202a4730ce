//! Polyglot books: [reading](Book) them and their [headers](header), [making](BookMaker) them from
//! [counts](crate::counts::Counts), and [merging](merge_books), [filtering](filter_books), [editing](edit_book),
//! [comparing](differences) and [checking](verify) them. The module [`lines`] lists the lines of a book.
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

mod foreign;
pub mod header;
mod open;
mod records;
mod search;
mod share;

pub(crate) use self::records::each_move_once;
pub use self::{
    foreign::is_book_or_empty,
    open::Book,
    records::{Entry, Records},
    share::shares,
};

cfg_if::cfg_if! {
    if #[cfg(feature = "games")] {
        mod diff;
        mod edit;
        mod file;
        pub mod lines;
        mod dropped;
        mod make;
        mod merge;
        mod minimax;
        mod positions;
        mod verify;
        mod weight;

        pub(crate) use self::foreign::check_replaceable;
        pub use self::{
            diff::{MoveDifference, MoveRecords, PositionDifference, differences},
            edit::{
                Change, ChangeError, EditSummary, NewWeight, PositionEdit, Script, ScriptError, edit_book,
            },
            file::{begin_book, begin_book_in_place, begin_book_over},
            dropped::LossSummary,
            make::{BookMaker, BookSummary},
            merge::{Filter, MergeSummary, filter_books, merge_books},
            minimax::MinimaxSummary,
            positions::MergePolicy,
            verify::{BookFault, FaultyRecords, VerifiedBook, fix, verify},
            weight::{Factors, Scale, Scaling, Weights},
        };
    }
}

//! Polyglot books: [reading](Book) books and their [headers](header), [making](BookMaker) them from
//! [counts](crate::formats::counts::Counts), and [merging](merge_books), [filtering](filter_books), [editing](edit_book),
//! [comparing](differences) and [checking](verify) them. The module [`lines`] lists the lines of a book.
//!
//! A book can be larger than memory, so it is not loaded. A lookup reads a few blocks of 4 KiB. Merging and checking
//! read a book from front to back. All other operations walk from position to position, and spill the visited
//! positions to temporary files if they exceed the memory budget.
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
mod reader;
mod records;

pub(crate) use self::records::each_move_once;
pub use self::{
    foreign::{is_book_or_empty, seems_sorted},
    reader::Book,
    records::{Entry, Records, shares},
};

cfg_if::cfg_if! {
    if #[cfg(feature = "games")] {
        mod difference;
        mod edit;
        mod eval_weights;
        mod expand;
        mod writer;
        pub mod lines;
        mod maker;
        mod merge;
        mod move_graph;
        mod verify;
        mod weights;

        pub use self::{
            difference::{LargestFirst, MoveDifference, MoveRecords, PositionDifference, differences},
            edit::{
                Change, ChangeError, EditSummary, NewWeight, PositionEdit, Script, ScriptError, edit_book,
            },
            eval_weights::{EvalWeights, EvalWeightsSummary},
            expand::Expand,
            maker::{BookMaker, BookSummary, LosingMove, LossSummary},
            merge::{Filter, MergePolicy, MergeSummary, filter_books, merge_books},
            verify::{BookFault, FaultyRecords, VerifiedBook, fix, verify},
            weights::{Factors, MinimaxSummary, Scale, Scaling, Weights},
            writer::begin_book,
        };
    }
}

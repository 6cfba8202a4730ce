//! Reads and writes Polyglot opening books. Books and their [headers](header) can be [read](Book), [made](BookMaker)
//! from [counted games](crate::formats::counts::Counts), [merged](merge_books), [filtered](filter_books),
//! [edited](edit_book), [compared](differences) and [checked](verify). The module [`lines`] lists the lines of a book.
//!
//! Books can be larger than memory, so they are not loaded. A lookup reads a few blocks of 4 KiB. Merging and checking
//! read a book from front to back. All other operations walk from position to position, and spill the visited positions
//! to temporary files if they exceed the memory budget.
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

//! The index of polyglot's LevelDB fork: its keys and values, and making its entries from sorted postings (`posting`).
//!
//! [`Index`](super::index::Index) opens and reads such an index. The [explorer's index](super::explorer_index) also
//! contains the entries about inputs and the variant.

pub(super) mod entries;
pub(super) mod entry_batches;
pub mod layout;
pub(crate) mod posting;

pub(crate) use self::entry_batches::IndexedFile;
pub use self::layout::{GameHeader, PositionStats};

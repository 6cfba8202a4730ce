//! Writes the index that polyglot's LevelDB fork defines: encodes its keys and values, and makes its entries from
//! sorted records of which game reached which position (`posting`).
//!
//! [`Index`](super::index::Index) opens and reads such an index. An [explorer index](super::explorer_index) also
//! contains the entries about inputs and the variant.

pub(super) mod entries;
pub(super) mod entry_batches;
pub mod layout;
pub(crate) mod posting;

pub(crate) use self::entry_batches::IndexedFile;
pub use self::layout::{GameHeader, PositionStats};

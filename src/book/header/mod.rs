//! The `@PG@` header of a book: which variants it is for, and a comment.
//!
//! The header is text in the *null records* at the start of a book, 8 bytes of it after each null
//! key, ended by a null byte. Programs that look positions up by their keys never see it. Its lines
//! are the magic `@PG@`, the version, how many predefined fields follow, of these the number of
//! variants and their names, and then the comment.
//!
//! ```
//! use polybook::book::header;
//!
//! let text = header::create(&["normal", "suicide"], "(normally comments here)")?;
//! assert_eq!(text, "@PG@\n1.0\n3\n2\nnormal\nsuicide\n(normally comments here)");
//! let header = header::parse(&text)?;
//! assert_eq!(header.variants, ["normal", "suicide"]);
//! assert_eq!(header.comment, "(normally comments here)");
//! # Ok::<(), header::HeaderError>(())
//! ```

mod checksum;
mod error;
mod file;
mod null_records;
mod text;

pub(super) use self::{
    checksum::{of_records, renewed, split_checksum, with_checksum},
    null_records::NullRecords,
};
pub use self::{
    error::{HeaderError, PORTABLE_LENGTH},
    file::{DEFAULT_COMMENT, delete, detect, read, read_raw, remove, update, write},
    null_records::{LONGEST, create_raw},
    text::{Header, KNOWN_VARIANTS, MAGIC, VERSION, create, known_variant, parse},
};

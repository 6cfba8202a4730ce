//! The kinds of indexes.

use super::{Index, layout};
use crate::error::{Error, Result};

/// A kind of index. All kinds are LevelDB databases.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// The index that polyglot's LevelDB fork defined, which other front-ends read: the games that reached each position.
    /// `make-book --leveldb` writes it.
    Leveldb,
    /// The [explorer](crate::explorer)'s index of games: the moves that were played in each position, and what filters
    /// need to know about the games. `make-book --explorer` writes it.
    Explorer,
    /// The explorer's index of counts: the results of each move by speed, rating group and month, without games.
    /// `make-book --explorer` writes it if the inputs are [counts](crate::counts).
    Counts,
}

impl IndexKind {
    /// Returns `true` if an [`Explorer`](crate::explorer::Explorer) can open indexes of this kind.
    pub fn is_of_explorer(self) -> bool {
        self != IndexKind::Leveldb
    }
}

impl Index {
    /// Finds out the kind of the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read, or if another version of polybook made it.
    pub(super) fn read_kind(&self) -> Result<IndexKind> {
        if self.value(layout::COUNTED)?.is_some() {
            return Ok(IndexKind::Counts);
        }
        match self.value(layout::CONTENTS)? {
            None => Ok(IndexKind::Leveldb),
            Some(value) if layout::Contents::is_of_other_version(&value) => {
                let problem = "is an index of another version of polybook: make it again with make-book --explorer";
                Err(Error::file(self.path(), problem))
            }
            Some(_) => Ok(IndexKind::Explorer),
        }
    }
}

//! The explorer's index: rows of games, names, and the lists of games by position, player, name and site id.
//!
//! While games are read, `GameFacts` and `ListRecord`s are collected. `ExploredGames` numbers the names and stores the
//! rows and details. `PageMaker` turns sorted records into pages and chunks of lists, and the sums of long lists. `NameReader` and
//! the methods of [`Index`](super::Index) read the data.

mod best;
mod counted;
mod games;
mod lists;
mod read;
mod record;
mod sums;

#[cfg(test)]
pub(in crate::index) use self::games::facts_of;
pub(crate) use self::{
    best::Best,
    games::{ExploredGames, GameFacts},
    read::{ListPlace, NameReader, StoredPart},
    record::ListRecord,
};
pub(super) use self::{
    counted::CountedPages,
    lists::{PageMaker, list_entries},
};

//! The explorer's data on their way into an index: rows of games, names, and the lists of games by position and player.

mod best;
mod counted;
mod games;
mod lists;
mod read;
mod record;
mod sums;

pub(crate) use self::{
    best::Best,
    games::{ExploredGames, GameFacts},
    read::{ListPlace, NameReader, StoredPart},
    record::Played,
};
pub(super) use self::{
    counted::CountedPages,
    lists::{PageMaker, list_entries},
    record::NAMED,
};

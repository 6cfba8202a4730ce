//! Stands in for `indexing.rs` where the feature `leveldb` is left out: no run makes an index then, and nothing is
//! collected for one.

use std::path::Path;

use shakmaty::Color;

use super::{MakeBook, explored_game::ExploredGame, report::IndexReport};
use crate::{error::Result, output::Finished, pgn::Tags, position::BookMove, sort::Memory};

/// There is none.
pub(super) enum Writer {}

#[derive(Default)]
pub(super) struct BatchIndex;

impl BatchIndex {
    pub(super) fn reserve(&mut self, _plies: usize) {}

    pub(super) fn add_game(
        &mut self,
        _tags: &Tags<'_>,
        _start: u64,
        _has_tags: bool,
        _explores: bool,
    ) {
    }

    pub(super) fn reserve_played(&mut self, _plies: usize) {}

    pub(super) fn add_facts(&mut self, _tags: &Tags<'_>) {}

    pub(super) fn add_played(&mut self, _game: &ExploredGame<'_>) {}

    pub(super) fn add_postings(
        &mut self,
        _id: u32,
        _winner: Option<Color>,
        _moves: impl Iterator<Item = (u64, BookMove)>,
        _last_key: u64,
    ) {
    }

    pub(super) fn leave_out(&mut self, _ids: &[u32]) {}
}

pub(super) struct IndexedGames;

impl IndexedGames {
    pub(super) fn new(_run: &MakeBook) -> Option<IndexedGames> {
        None
    }

    pub(super) fn place(&mut self, _batch: BatchIndex, _input: &Path) -> Result<Placed> {
        Ok(Placed)
    }
}

pub(super) struct Placed;

pub(super) struct Postings;

impl Postings {
    pub(super) fn new(_run: &MakeBook, _memory: Memory) -> Postings {
        Postings
    }

    pub(super) fn add(&self, _batch: Placed) -> Result<()> {
        Ok(())
    }

    pub(super) fn spilled_bytes(&self) -> u64 {
        0
    }
}

pub(super) struct CollectedIndex;

impl CollectedIndex {
    pub(super) fn new(
        _postings: Postings,
        _games: IndexedGames,
        _first_ids: Vec<u64>,
    ) -> CollectedIndex {
        CollectedIndex
    }
}

impl MakeBook {
    pub(super) fn begin_index(&self) -> Result<Option<Writer>> {
        Ok(None)
    }

    pub(super) fn write_index(
        &self,
        writer: Writer,
        _collected: CollectedIndex,
    ) -> Result<(IndexReport, Finished)> {
        match writer {}
    }
}

//! The entries of lists, made of sorted records.
//!
//! As with positions, records are cut into pieces that are made into entries in parallel. A piece has the pages whose
//! first record lies in it.

use std::ops::ControlFlow;

use super::record::Played;
use crate::{
    error::Result,
    index::{
        entries::Entries,
        layout::{
            Subject, chunk_key, page_key,
            played::{CHUNK, INLINE, ListBuilder, Paging, write_apart},
        },
        pieces::{Piece, scan},
    },
    sort::Sealed,
};

/// The entries of a piece.
#[derive(Default, Debug)]
pub(in crate::index) struct ListEntries {
    pub entries: Entries,
    /// How many records they have.
    pub records: u64,
}

/// Makes the entries of the pages whose first record lies in a piece.
pub(in crate::index) fn list_entries(
    piece: &Piece,
    records: &Sealed<Played>,
    paging: Paging,
) -> Result<ListEntries> {
    let mut maker = PageMaker::new(paging);
    // The record before tells whether the first page began earlier.
    let mut number = piece.range.start.saturating_sub(1);
    let mut earlier = None;
    scan(records, piece.shard, number, |record| {
        let at = number;
        number += 1;
        let page = paging.page(record.subject());
        if at < piece.range.start {
            earlier = Some(page);
        } else if earlier == Some(page) {
            // Of the piece before.
        } else if maker.page == Some(page) || at < piece.range.end {
            maker.add(record);
        } else {
            return ControlFlow::Break(());
        }
        // A page that began earlier may go on for long.
        match maker.page.is_none() && number >= piece.range.end {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(maker.finish())
}

/// Makes the entries of lists of records that come in order.
pub(in crate::index) struct PageMaker {
    paging: Paging,
    made: ListEntries,
    /// The number of the present page, and the lists in it so far.
    page: Option<u64>,
    lists: Vec<u8>,
    /// The present list.
    subject: Subject,
    white_to_move: bool,
    list: ListBuilder,
    /// How many chunks of it are made.
    chunks: u32,
    chunk: Vec<u8>,
}

impl PageMaker {
    pub(in crate::index) fn new(paging: Paging) -> PageMaker {
        PageMaker {
            paging,
            made: ListEntries::default(),
            page: None,
            lists: Vec::new(),
            subject: Subject(0),
            white_to_move: false,
            list: ListBuilder::default(),
            chunks: 0,
            chunk: Vec::new(),
        }
    }

    /// Takes the next record.
    #[inline]
    pub(in crate::index) fn add(&mut self, record: Played) {
        let subject = record.subject();
        if self.page.is_none() || subject != self.subject {
            self.begin(subject, record.white_to_move());
        } else if self.list.len() == CHUNK {
            self.end_chunk(true);
        }
        self.list.push((record.id(), record.book_move()));
        self.made.records += 1;
    }

    fn begin(&mut self, subject: Subject, white_to_move: bool) {
        self.end_list();
        let page = self.paging.page(subject);
        if self.page != Some(page) {
            self.end_page();
            self.page = Some(page);
        }
        self.subject = subject;
        self.white_to_move = white_to_move;
    }

    fn end_list(&mut self) {
        if self.list.is_empty() {
            return;
        }
        self.paging.put_subject(self.subject, &mut self.lists);
        if self.chunks == 0 && self.list.len() <= INLINE {
            self.list.write(self.white_to_move, &mut self.lists);
        } else {
            write_apart(self.white_to_move, &mut self.lists);
            self.end_chunk(false);
            self.chunks = 0;
        }
    }

    fn end_chunk(&mut self, another_follows: bool) {
        self.chunk.clear();
        self.chunk.push(u8::from(another_follows));
        self.list.write(self.white_to_move, &mut self.chunk);
        let key = chunk_key(self.subject, self.chunks);
        self.made.entries.push(&key, &self.chunk);
        self.chunks += 1;
    }

    fn end_page(&mut self) {
        if self.page.is_some() {
            let key = page_key(self.paging.last_of(self.subject));
            self.made.entries.push(&key, &self.lists);
            self.lists.clear();
        }
    }

    /// The entries that are complete so far.
    pub(in crate::index) fn take_entries(&mut self) -> Entries {
        std::mem::take(&mut self.made.entries)
    }

    /// How many bytes the complete entries have.
    pub(in crate::index) fn held(&self) -> usize {
        self.made.entries.held()
    }

    /// Completes the last page.
    pub(in crate::index) fn finish(mut self) -> ListEntries {
        self.end_list();
        self.end_page();
        self.made
    }
}

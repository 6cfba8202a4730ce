//! Joining the explorer's lists: all of them as records, in order.

use std::collections::VecDeque;

use super::{Plan, games::ExploredMerge, stream::EntryStream};
use crate::{
    error::Result,
    index::{
        Index,
        explored::{NAMED, Played},
        layout::{
            Contents, ListKey, Subject, list_key,
            played::{List, Paging},
        },
    },
    sort::{Merge, SHARDS},
};

/// The keys of pages and chunks.
const START: &[u8] = b"xp";
const END: &[u8] = b"xq";

type Records<'a> = Box<dyn Iterator<Item = Result<Played>> + Send + 'a>;

/// The records of all lists, in order.
pub(super) struct ListMerge<'a>(Merge<Records<'a>, Played>);

impl<'a> ListMerge<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        contents: &[Contents],
        merge: &'a ExploredMerge,
    ) -> Result<ListMerge<'a>> {
        let mut sources: Vec<Records<'a>> = Vec::new();
        for (part, contents) in plan.inputs.iter().zip(contents) {
            sources.push(Box::new(PageStream {
                index: part.index,
                stream: EntryStream::new(part.index, START, END)?,
                paging: contents.paging,
                first_id: part.first_id,
                chunks: VecDeque::new(),
                waiting: VecDeque::new(),
                records: Vec::new(),
                at: 0,
                failed: false,
            }));
        }
        let names = (0..SHARDS).flat_map(|shard| {
            let mut records = Vec::new();
            let read = merge
                .names
                .for_each(shard, |record| records.push(Ok(record)));
            records.extend(read.err().map(Err));
            records
        });
        sources.push(Box::new(names));
        Ok(ListMerge(Merge::new(sources)))
    }
}

impl Iterator for ListMerge<'_> {
    type Item = Result<Played>;

    #[inline]
    fn next(&mut self) -> Option<Result<Played>> {
        self.0.next()
    }
}

/// The records of the lists of an input, the numbers of its names aside, which change.
struct PageStream<'a> {
    index: &'a Index,
    stream: EntryStream<'a>,
    paging: Paging,
    first_id: u32,
    /// Chunks whose page has not come yet.
    chunks: VecDeque<(Subject, Vec<u8>)>,
    /// What comes next of the last page.
    waiting: VecDeque<Waiting>,
    records: Vec<Played>,
    at: usize,
    failed: bool,
}

/// Some of the lists of a page.
enum Waiting {
    Records(Vec<Played>),
    Chunk(Subject, Vec<u8>),
}

impl Iterator for PageStream<'_> {
    type Item = Result<Played>;

    #[inline]
    fn next(&mut self) -> Option<Result<Played>> {
        while self.at == self.records.len() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(err) => {
                    self.failed = true;
                    return Some(Err(err));
                }
            }
        }
        self.at += 1;
        Some(Ok(self.records[self.at - 1]))
    }
}

impl PageStream<'_> {
    /// Makes the next records ready; false if there are none.
    fn read(&mut self) -> Result<bool> {
        self.at = 0;
        self.records.clear();
        if self.failed {
            return Ok(false);
        }
        if let Some(waiting) = self.waiting.pop_front() {
            match waiting {
                Waiting::Records(records) => self.records = records,
                Waiting::Chunk(subject, chunk) => {
                    let list = chunk.get(1..).and_then(List::parse);
                    let added = list.and_then(|list| {
                        add_records(&mut self.records, subject, &list, self.first_id)
                    });
                    added.ok_or_else(|| self.index.malformed(START))?;
                }
            }
            return Ok(true);
        }
        let Some(key) = self.stream.key() else {
            return Ok(false);
        };
        match list_key(key) {
            Some(ListKey::Chunk(subject)) => {
                let chunk = self.stream.value().to_vec();
                self.chunks.push_back((subject, chunk));
            }
            Some(ListKey::Page(last)) => {
                let waiting = self.lists_of_page(last);
                self.waiting = waiting.ok_or_else(|| self.index.malformed(START))?;
            }
            // They are made anew.
            Some(ListKey::Sums) => {}
            None => return Err(self.index.malformed(key)),
        }
        self.stream.advance()?;
        Ok(true)
    }

    /// The lists of the present page and the chunks before it; `None` if something is malformed.
    fn lists_of_page(&mut self, last: Subject) -> Option<VecDeque<Waiting>> {
        let mut waiting = VecDeque::new();
        let mut records = Vec::new();
        for (subject, list) in self.paging.lists(self.stream.value(), last)? {
            if list.len > 0 {
                add_records(&mut records, subject, &list, self.first_id)?;
                continue;
            }
            waiting.push_back(Waiting::Records(std::mem::take(&mut records)));
            let of_subject = |chunk: &mut (Subject, Vec<u8>)| chunk.0 == subject;
            while let Some((_, chunk)) = self.chunks.pop_front_if(of_subject) {
                waiting.push_back(Waiting::Chunk(subject, chunk));
            }
        }
        waiting.push_back(Waiting::Records(records));
        self.chunks.is_empty().then_some(waiting)
    }
}

/// Appends the records of a list, under new ids, unless it has numbers of names; `None` if it is malformed.
fn add_records(
    records: &mut Vec<Played>,
    subject: Subject,
    list: &List<'_>,
    first_id: u32,
) -> Option<()> {
    let mut moves = list.moves();
    if moves.next() == Some(NAMED) {
        return Some(());
    }
    let moves: Vec<_> = list.moves().collect();
    let mut fits = true;
    list.for_each(|id, number| {
        fits &= id.checked_add(first_id).is_some();
        let id = id.wrapping_add(first_id);
        let record = Played::new(subject, id, 0, list.white_to_move, moves[number]);
        records.push(record);
    })?;
    fits.then_some(())
}

//! Joining the explorer's lists, subject by subject. A list that only the first input has is taken as it stands.

use std::{collections::VecDeque, iter::Peekable, ops::Range};

use super::{games::ExploredMerge, plan::Plan, stream::EntryStream};
use crate::{
    error::Result,
    index::{
        Index,
        explored::{NAMED, PageMaker, Played},
        layout::{
            Contents, ListKey, Subject, list_key,
            played::{List, Paging},
        },
    },
    sort::SHARDS,
};

/// The keys of pages and chunks.
const START: &[u8] = b"xp";
const END: &[u8] = b"xq";

type Records<'a> = Box<dyn Iterator<Item = Result<Played>> + Send + 'a>;

/// The lists of all inputs, in order.
pub(super) struct ListMerge<'a> {
    inputs: Vec<ListStream<'a>>,
    /// The records of the lists of names.
    names: Peekable<Records<'a>>,
}

impl<'a> ListMerge<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        contents: &[Contents],
        merge: &'a ExploredMerge,
    ) -> Result<ListMerge<'a>> {
        let mut inputs = Vec::new();
        for (part, contents) in plan.inputs.iter().zip(contents) {
            let mut stream = ListStream {
                index: part.index,
                stream: EntryStream::new(part.index, START, END)?,
                paging: contents.paging,
                first_id: part.first_id,
                chunks: VecDeque::new(),
                page: Vec::new(),
                lists: VecDeque::new(),
            };
            stream.read_to_lists()?;
            inputs.push(stream);
        }
        let names = (0..SHARDS).flat_map(|shard| {
            let mut records = Vec::new();
            let read = merge
                .names
                .for_each(shard, |record| records.push(Ok(record)));
            records.extend(read.err().map(Err));
            records
        });
        let names: Records<'a> = Box::new(names);
        Ok(ListMerge {
            inputs,
            names: names.peekable(),
        })
    }

    /// Hands the list of the next subject to `maker`. Answers how many items it has, `None` if there is no further
    /// subject.
    pub(super) fn add_next(&mut self, maker: &mut PageMaker<'_>) -> Result<Option<u64>> {
        let named = match self.names.peek() {
            Some(Ok(record)) => Some(record.subject()),
            Some(Err(_)) => return self.names.next().transpose().map(|_| None),
            None => None,
        };
        let subjects = self.inputs.iter().filter_map(ListStream::subject);
        let Some(subject) = subjects.chain(named).min() else {
            return Ok(None);
        };
        if named == Some(subject) {
            return self.add_named(subject, maker).map(Some);
        }
        let mut holders = self
            .inputs
            .iter_mut()
            .filter(|input| input.subject() == Some(subject));
        let first = holders.next().expect("an input has the subject");
        let mut others = holders.peekable();
        if first.first_id == 0
            && others.peek().is_none()
            && let Some((list, items)) = first.whole()
        {
            maker.add_whole(subject, list, items)?;
            first.pass()?;
            return Ok(Some(items));
        }
        // The games of each input stand behind those of the one before.
        let mut items = 0;
        for input in [first].into_iter().chain(others) {
            input.take(|record| {
                items += 1;
                maker.add(record)
            })?;
        }
        Ok(Some(items))
    }

    /// Hands a list with numbers of names to `maker`, and answers how many items it has.
    fn add_named(&mut self, subject: Subject, maker: &mut PageMaker<'_>) -> Result<u64> {
        let mut records = Vec::new();
        let is_named =
            |next: &Result<Played>| next.as_ref().is_ok_and(|next| next.subject() == subject);
        while let Some(record) = self.names.next_if(is_named) {
            records.push(record?);
        }
        // An input has the subject too only if a name has the hash of something else.
        for input in &mut self.inputs {
            if input.subject() == Some(subject) {
                input.take(|record| {
                    records.push(record);
                    Ok(())
                })?;
            }
        }
        records.sort_unstable();
        for record in &records {
            maker.add(*record)?;
        }
        Ok(records.len() as u64)
    }
}

/// The lists of an input, those of names aside, whose numbers change.
struct ListStream<'a> {
    index: &'a Index,
    stream: EntryStream<'a>,
    paging: Paging,
    first_id: u32,
    /// Chunks whose page has not come yet.
    chunks: VecDeque<(Subject, Vec<u8>)>,
    /// The last page, and its lists that have not been taken.
    page: Vec<u8>,
    lists: VecDeque<PageList>,
}

/// A list of a page.
struct PageList {
    subject: Subject,
    /// Where it stands in the page.
    range: Range<usize>,
    /// How many items it has, 0 if it stands apart.
    len: usize,
}

impl ListStream<'_> {
    /// The subject of the next list.
    fn subject(&self) -> Option<Subject> {
        self.lists.front().map(|list| list.subject)
    }

    /// The next list and how many items it has, unless it stands apart.
    fn whole(&self) -> Option<(&[u8], u64)> {
        let list = self.lists.front().filter(|list| list.len > 0)?;
        Some((&self.page[list.range.clone()], list.len as u64))
    }

    /// Passes over the next list, which is in its page.
    fn pass(&mut self) -> Result<()> {
        self.lists.pop_front();
        self.read_to_lists()
    }

    /// Calls `f` with the records of the next list, under their new ids, and goes on to the one behind it.
    fn take(&mut self, mut f: impl FnMut(Played) -> Result<()>) -> Result<()> {
        let Some(next) = self.lists.pop_front() else {
            return Ok(());
        };
        if next.len > 0 {
            self.pass_records(next.subject, &self.page[next.range], &mut f)?;
        }
        while let Some((_, chunk)) = self.chunks.pop_front_if(|chunk| chunk.0 == next.subject) {
            let list = chunk.get(1..).unwrap_or_default();
            self.pass_records(next.subject, list, &mut f)?;
        }
        self.read_to_lists()
    }

    fn pass_records(
        &self,
        subject: Subject,
        list: &[u8],
        f: &mut impl FnMut(Played) -> Result<()>,
    ) -> Result<()> {
        let malformed = || self.index.malformed(START);
        let list = List::parse(list).ok_or_else(malformed)?;
        let (items, _) = list.items().ok_or_else(malformed)?;
        for (id, mv) in items {
            let id = id.checked_add(self.first_id).ok_or_else(malformed)?;
            f(Played::new(subject, id, 0, list.white_to_move, mv))?;
        }
        Ok(())
    }

    /// Reads pages until there is a list, if there is one.
    fn read_to_lists(&mut self) -> Result<()> {
        while self.lists.is_empty()
            && let Some(key) = self.stream.key()
        {
            match list_key(key) {
                Some(ListKey::Chunk(subject)) => {
                    let chunk = self.stream.value().to_vec();
                    self.chunks.push_back((subject, chunk));
                }
                Some(ListKey::Page(last)) => {
                    self.page.clear();
                    self.page.extend_from_slice(self.stream.value());
                    let lists = self.lists_of_page(last);
                    self.lists = lists.ok_or_else(|| self.index.malformed(START))?;
                }
                // They are made anew.
                Some(ListKey::Sums) => {}
                None => return Err(self.index.malformed(key)),
            }
            self.stream.advance()?;
        }
        Ok(())
    }

    /// The lists of the page, those of names aside; `None` if something is malformed.
    fn lists_of_page(&mut self, last: Subject) -> Option<VecDeque<PageList>> {
        let mut lists = VecDeque::new();
        let mut chunks = self.chunks.iter().peekable();
        let mut of_names = Vec::new();
        for (subject, list, range) in self.paging.lists(&self.page, last)? {
            let mut own_chunks = 0;
            while chunks.next_if(|chunk| chunk.0 == subject).is_some() {
                own_chunks += 1;
            }
            // A list stands either here or in chunks.
            if (list.len == 0) != (own_chunks > 0) {
                return None;
            }
            let first_move = match self.chunks.iter().find(|chunk| chunk.0 == subject) {
                Some((_, chunk)) => List::parse(chunk.get(1..)?)?.moves().next(),
                None => list.moves().next(),
            };
            if first_move == Some(NAMED) {
                of_names.push(subject);
                continue;
            }
            let len = list.len;
            lists.push_back(PageList {
                subject,
                range,
                len,
            });
        }
        if chunks.next().is_some() {
            return None;
        }
        self.chunks.retain(|chunk| !of_names.contains(&chunk.0));
        Some(lists)
    }
}

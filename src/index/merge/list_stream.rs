//! The lists of an input, page by page.

use std::{collections::VecDeque, mem, ops::Range};

use super::plan::MergeInput;
use crate::{
    error::Result,
    index::{
        Index,
        explored::{NAMED, Played},
        layout::{
            ListKey, Subject, list_key, list_subject,
            played::{Apart, CHUNK, List, Paging},
            subject_start,
        },
        leveldb::{TableValue, TablesCursor},
    },
};

/// The keys of pages, chunks and sums.
pub(super) const START: &[u8] = b"xp";
pub(super) const END: &[u8] = b"xq";

/// The lists of an input whose subjects are not less than one and less than another. Those of names are left out, whose
/// numbers change, but for those of the first games.
pub(super) struct ListStream<'p> {
    pub index: &'p Index,
    pub entries: TablesCursor<'p>,
    paging: Paging,
    first_id: u32,
    keeps_names: bool,
    from: Subject,
    until: Option<Subject>,
    /// How many chunks came since the last page.
    chunks: u64,
    /// The last page, and its lists that are still to be taken.
    page: Vec<u8>,
    lists: VecDeque<PageList>,
}

/// A list of a page.
#[derive(Clone)]
struct PageList {
    subject: Subject,
    /// Where its subject begins in the page.
    start: usize,
    /// Where it is in the page.
    list: Range<usize>,
    apart: Option<Apart>,
}

impl<'p> ListStream<'p> {
    pub(super) fn new(
        input: &MergeInput<'p>,
        has_first_games: bool,
        paging: Paging,
        (from, until): (Subject, Option<Subject>),
    ) -> Result<ListStream<'p>> {
        Ok(ListStream {
            index: input.index,
            entries: input.cursor(&subject_start(paging.first_of(from)), END)?,
            paging,
            first_id: input.first_id,
            keeps_names: has_first_games,
            from,
            until,
            chunks: 0,
            page: Vec::new(),
            lists: VecDeque::new(),
        })
    }

    /// The subject of the next list.
    pub(super) fn subject(&self) -> Option<Subject> {
        self.lists.front().map(|list| list.subject)
    }

    /// Passes the next lists of the page that are not apart, up to that of a subject. Returns the last subject and
    /// their bytes; `None` if there are none.
    pub(super) fn pass_lists(&mut self, other: Option<Subject>) -> Option<(Subject, &[u8])> {
        let is_own = |list: &&PageList| {
            list.apart.is_none() && other.is_none_or(|other| list.subject < other)
        };
        let own = self.lists.iter().take_while(is_own).count();
        let mut passed = self.lists.drain(..own);
        let first = passed.next()?;
        let last = passed.next_back().unwrap_or_else(|| first.clone());
        Some((last.subject, &self.page[first.start..last.list.end]))
    }

    /// Calls `f` with the records of the next list, under their new ids.
    pub(super) fn take(&mut self, mut f: impl FnMut(Played) -> Result<()>) -> Result<()> {
        let Some(next) = self.lists.pop_front() else {
            return Ok(());
        };
        let mut least = 0;
        let Some(apart) = next.apart else {
            let list = List::parse(&self.page[next.list]);
            let list = list.ok_or_else(|| self.index.malformed(START))?;
            return self.pass_records(next.subject, list, &mut least, &mut f);
        };
        let chunks = 0..u32::try_from(chunk_count(apart)).unwrap_or(u32::MAX);
        for (number, left) in chunks.zip((0..=apart.items).rev().step_by(CHUNK)) {
            let chunk = self.index.chunk(next.subject, number, left)?;
            self.pass_records(next.subject, chunk.list(self.index)?, &mut least, &mut f)?;
        }
        Ok(())
    }

    /// Passes on a list or a chunk whose ids are not less than `least`, and raises that above them.
    fn pass_records(
        &self,
        subject: Subject,
        list: List<'_>,
        least: &mut u64,
        f: &mut impl FnMut(Played) -> Result<()>,
    ) -> Result<()> {
        let malformed = || self.index.malformed(START);
        let are_names = list.moves().all(|mv| mv == NAMED);
        if are_names && !self.keeps_names {
            return Ok(());
        }
        let end = match are_names {
            true => u64::from(u32::MAX),
            false => self.index.game_count(),
        };
        let (items, _) = list.items().ok_or_else(malformed)?;
        for (id, mv) in items {
            if !(*least..end).contains(&u64::from(id)) {
                return Err(malformed());
            }
            *least = u64::from(id) + 1;
            let id = id.checked_add(self.first_id).ok_or_else(malformed)?;
            f(Played::new(subject, id, 0, list.white_to_move, mv))?;
        }
        Ok(())
    }

    /// The key that comes next, and the first subject that its page may have.
    pub(super) fn next_key(&self) -> Result<Option<(&[u8], Subject)>> {
        let Some(key) = self.entries.key_before(END) else {
            return Ok(None);
        };
        let subject = list_subject(key).ok_or_else(|| self.index.malformed(key))?;
        let first = self.paging.first_of(subject);
        Ok(self
            .until
            .is_none_or(|until| first < until)
            .then_some((key, first)))
    }

    /// Reads pages until there is a list, if there is one.
    pub(super) fn read_to_lists(&mut self) -> Result<()> {
        while self.lists.is_empty()
            && let Some((key, _)) = self.next_key()?
        {
            match (list_key(key), self.entries.value()) {
                (Some(ListKey::Chunk(_)), _) => self.chunks += 1,
                // Sums are made anew.
                (Some(ListKey::Sums), _) => {}
                (Some(ListKey::Page(last)), TableValue::Held(page)) => {
                    self.page.clear();
                    self.page.extend_from_slice(page);
                    self.read_page(last)?;
                }
                _ => return Err(self.index.malformed(key)),
            }
            self.entries.advance()?;
        }
        Ok(())
    }

    /// Finds the lists of the page.
    fn read_page(&mut self, last: Subject) -> Result<()> {
        let (mut start, mut chunks) = (0, 0);
        let lists = &mut self.lists;
        let found = self
            .paging
            .for_each_list(&self.page, last, |subject, list, range| {
                let start = mem::replace(&mut start, range.end);
                chunks += list.apart.map_or(0, chunk_count);
                if subject >= self.from && self.until.is_none_or(|until| subject < until) {
                    lists.push_back(PageList {
                        subject,
                        start,
                        list: range,
                        apart: list.apart,
                    });
                }
                Some(())
            });
        found
            .filter(|()| mem::take(&mut self.chunks) == chunks)
            .ok_or_else(|| self.index.malformed(START))
    }
}

/// How many chunks a list has.
fn chunk_count(apart: Apart) -> u64 {
    apart.items.div_ceil(CHUNK as u64)
}

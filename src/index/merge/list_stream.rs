//! The lists of an input, page by page.

use std::{borrow::Cow, collections::VecDeque, mem, ops::Range};

use super::{
    cursor::{Entry, EntryCursor},
    plan::MergeInput,
};
use crate::{
    error::Result,
    index::{
        Index,
        explored::{NAMED, Played},
        layout::{
            ListKey, Subject, list_key, list_subject,
            played::{List, Paging},
        },
    },
};

/// The beginning of the keys of pages and chunks.
pub(super) const START: &[u8] = b"xp";

/// The lists of an input whose subjects lie in a part. Those of names are left out, whose numbers change, but for
/// those of the first games.
pub(super) struct ListStream<'p> {
    index: &'p Index,
    pub cursor: EntryCursor<'p>,
    paging: Paging,
    first_id: u32,
    keeps_names: bool,
    from: Subject,
    until: Option<Subject>,
    /// Chunks whose page is yet to come.
    chunks: VecDeque<(Subject, Entry<'p>)>,
    /// The last page, and its lists that are still to be taken.
    page: Cow<'p, [u8]>,
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
    /// How many items it has, 0 if it is apart.
    len: usize,
}

impl<'p> ListStream<'p> {
    /// Of a part of an input: of the entries from the cursor on, the lists whose subjects are not less than the first
    /// and less than the second one.
    pub(super) fn new(
        input: &MergeInput<'p>,
        has_first_games: bool,
        paging: Paging,
        cursor: EntryCursor<'p>,
        (from, until): (Subject, Option<Subject>),
    ) -> ListStream<'p> {
        ListStream {
            index: input.index,
            cursor,
            paging,
            first_id: input.first_id,
            keeps_names: has_first_games,
            from,
            until,
            chunks: VecDeque::new(),
            page: Cow::Borrowed(&[]),
            lists: VecDeque::new(),
        }
    }

    /// The subject of the next list.
    pub(super) fn subject(&self) -> Option<Subject> {
        self.lists.front().map(|list| list.subject)
    }

    /// Whether no part of the next page has been read.
    pub(super) fn is_between_pages(&self) -> bool {
        self.lists.is_empty() && self.chunks.is_empty()
    }

    /// Passes the next lists of the page that are not apart, up to that of a subject. Returns the last subject and
    /// their bytes; `None` if there are none.
    pub(super) fn pass_lists(&mut self, other: Option<Subject>) -> Option<(Subject, &[u8])> {
        let is_own =
            |list: &&PageList| list.len > 0 && other.is_none_or(|other| list.subject < other);
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
        if next.len > 0 {
            self.pass_records(next.subject, &self.page[next.list], &mut least, &mut f)?;
        }
        while let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.0 == next.subject) {
            let chunk = chunk.1.short_value(self.index)?;
            let list = chunk.get(1..).unwrap_or_default();
            self.pass_records(next.subject, list, &mut least, &mut f)?;
        }
        Ok(())
    }

    /// Passes on a list or a chunk whose ids are not less than `least`, and raises that above them.
    fn pass_records(
        &self,
        subject: Subject,
        list: &[u8],
        least: &mut u64,
        f: &mut impl FnMut(Played) -> Result<()>,
    ) -> Result<()> {
        let malformed = || self.index.malformed(START);
        let list = List::parse(list).ok_or_else(malformed)?;
        let (items, _) = list.items().ok_or_else(malformed)?;
        let are_names = list.moves().all(|mv| mv == NAMED);
        let end = match are_names {
            true => u64::from(u32::MAX),
            false => self.index.game_count(),
        };
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

    /// Whether a subject is of the part.
    fn has(&self, subject: Subject) -> bool {
        subject >= self.from && self.until.is_none_or(|until| subject < until)
    }

    /// Reads pages until there is a list, if there is one.
    pub(super) fn read_to_lists(&mut self) -> Result<()> {
        while self.lists.is_empty()
            && let (Some(key), Some(entry)) = (self.cursor.key(), self.cursor.entry())
        {
            let malformed = || self.index.malformed(key);
            let subject = list_subject(key).ok_or_else(malformed)?;
            let first = self.paging.first_of(subject);
            if self.until.is_some_and(|until| first >= until) {
                break;
            }
            match list_key(key).ok_or_else(malformed)? {
                ListKey::Chunk(subject) if self.has(subject) => {
                    self.chunks.push_back((subject, entry));
                }
                ListKey::Page(last) => {
                    self.page = entry.short_value(self.index)?;
                    self.read_page(last)?;
                }
                // Sums are made anew.
                ListKey::Chunk(_) | ListKey::Sums => {}
            }
            self.cursor.advance();
        }
        if self.lists.is_empty() && !self.chunks.is_empty() {
            // Their page is missing.
            return Err(self.index.malformed(START));
        }
        Ok(())
    }

    /// Finds the lists of the page that are of the part.
    fn read_page(&mut self, last: Subject) -> Result<()> {
        let mut chunks = mem::take(&mut self.chunks).into_iter().peekable();
        let (mut start, mut read) = (0, Ok(()));
        let found = self
            .paging
            .for_each_list(&self.page, last, |subject, list, range| {
                let start = mem::replace(&mut start, range.end);
                let is_own = subject >= self.from && self.until.is_none_or(|until| subject < until);
                if !is_own {
                    return Some(());
                }
                let mut own = Vec::new();
                while let Some(chunk) = chunks.next_if(|chunk| chunk.0 == subject) {
                    own.push(chunk);
                }
                // A list is either here or in chunks.
                let first_move = match own.first() {
                    Some(_) if list.len > 0 => return None,
                    Some((_, chunk)) => match chunk.short_value(self.index) {
                        Ok(chunk) => List::parse(chunk.get(1..)?)?.moves().next(),
                        Err(err) => {
                            read = Err(err);
                            return None;
                        }
                    },
                    None if list.len == 0 => return None,
                    None => list.moves().next(),
                };
                if first_move != Some(NAMED) || self.keeps_names {
                    self.chunks.extend(own);
                    self.lists.push_back(PageList {
                        subject,
                        start,
                        list: range,
                        len: list.len,
                    });
                }
                Some(())
            });
        read?;
        match found.is_some() && chunks.next().is_none() {
            true => Ok(()),
            false => Err(self.index.malformed(START)),
        }
    }
}

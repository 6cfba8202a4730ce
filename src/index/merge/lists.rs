//! Merging the explorer's lists, in ascending order of list keys.
//!
//! The base input is the input with the first games, which keep their ids. If only the base input has lists in a
//! page, the page is copied unchanged. Within other pages, lists that only the base input has are copied
//! unchanged, too.

use std::{collections::VecDeque, mem, ops::Range};

use super::{
    games::MergedGames,
    plan::{KeyRange, MAX_BLOCK_IN_MEMORY, MergeInput, MergePlan},
};
use crate::{
    error::Result,
    index::{
        Index,
        entry_batches::EntryBatch,
        store::{
            Contents, LISTS, ListEntry, ListKey, Paging, list_entry,
            list_record::NAMED,
            list_subject,
            lists::{ChunkedList, List, for_each_list},
            subject_start,
        },
        store::{ListBuilder, ListRecord},
    },
    leveldb::{TableValue, TablesCursor},
    task,
};

/// The lower limit (inclusive) of the LevelDB keys under which an explorer's index stores its lists. A list contains,
/// for example, the games of a position.
const START: &[u8] = b"xp";
/// The upper limit (exclusive) of the LevelDB keys under which an explorer's index stores its lists.
const END: &[u8] = b"xq";

/// A merge of the lists of several indexes that were made for the explorer. Most lists contain the games of one
/// position, one player or one Lichess id. The other lists contain numbers of player and event names: all names in such
/// a list are equal after normalization, for example because they differ only in case.
pub(super) struct ListMerge<'a> {
    plan: &'a MergePlan<'a>,
    merged: &'a MergedGames,
    /// The rule by which each input assigns lists to pages.
    pagings: Vec<Paging>,
    /// The rule by which the output assigns lists to pages.
    paging: Paging,
}

impl<'a> ListMerge<'a> {
    /// Creates a merge of the lists of all indexes in `plan`. `contents` contains the descriptions of these indexes,
    /// and `merged` the games of the merged index. `items` is the total number of list items in all indexes. It
    /// determines how the merged index groups lists in pages (entries with several lists).
    pub(super) fn new(
        plan: &'a MergePlan<'a>,
        contents: &[Contents],
        merged: &'a MergedGames,
        items: u64,
    ) -> ListMerge<'a> {
        ListMerge {
            plan,
            merged,
            pagings: contents.iter().map(|contents| contents.paging).collect(),
            paging: Paging::for_items(items),
        }
    }

    /// Divides the lists into key ranges that can be merged in parallel. The merged index stores several lists together
    /// in an entry, called a page. No range begins in the middle of a page.
    pub(super) fn ranges(&self) -> Vec<KeyRange> {
        self.plan.ranges(START, END, |key| {
            Some(subject_start(self.paging.first_of(list_subject(key)?)).to_vec())
        })
    }

    /// Merges all lists whose keys are in `range`. Returns the resulting entries of the merged index.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file cannot be read or written.
    pub(super) fn lists_in(&self, range: &KeyRange) -> Result<EntryBatch> {
        task::fault("join lists");
        let from = list_subject(&range.start).unwrap_or(ListKey(0));
        let until = list_subject(&range.end);
        let inputs = self.plan.inputs.iter().zip(&self.pagings).enumerate();
        let inputs = inputs.map(|(number, (input, paging))| {
            ListStream::new(input, number == self.plan.base, *paging, (from, until))
        });
        let names = self.merged.names_within(from, until)?;
        let join = RangeMerge {
            base: self.plan.base,
            has_same_pages: self.pagings[self.plan.base] == self.paging,
            inputs: inputs.collect::<Result<_>>()?,
            names: &names,
            paging: self.paging,
            maker: ListBuilder::new(self.paging, &self.merged.games),
        };
        let steps = range.size;
        Ok(EntryBatch {
            steps,
            ..join.join()?
        })
    }
}

/// The merge of all lists whose keys lie in one range. Each range is merged by one thread.
struct RangeMerge<'p> {
    base: usize,
    /// Whether the base input assigns lists to pages in the same way as the output, so that its pages can be copied.
    has_same_pages: bool,
    inputs: Vec<ListStream<'p>>,
    /// The records of new names that have not been merged yet, sorted by subject.
    names: &'p [ListRecord],
    paging: Paging,
    maker: ListBuilder<'p>,
}

impl RangeMerge<'_> {
    /// Merges all lists in the key range, and returns the resulting entries of the merged index.
    fn join(mut self) -> Result<EntryBatch> {
        loop {
            let named = self.names.first().map(|record| record.subject());
            let mut other = named;
            for (number, input) in self.inputs.iter_mut().enumerate() {
                if number != self.base {
                    input.read_to_lists()?;
                    other = other.into_iter().chain(input.subject()).min();
                }
            }
            if self.has_same_pages {
                self.copy_pages(other)?;
            }
            let base = &mut self.inputs[self.base];
            base.read_to_lists()?;
            if self.has_same_pages
                && let Some((last, lists)) = base.take_lists(other)
            {
                // The page of these lists has been read, so they are well-formed.
                self.maker.count_lists(last, lists);
                self.maker.add_lists(last, lists)?;
                continue;
            }
            let Some(subject) = other.into_iter().chain(base.subject()).min() else {
                return self.maker.finish();
            };
            if named == Some(subject) {
                self.add_named(subject)?;
            } else {
                self.add(subject)?;
            }
        }
    }

    /// Copies pages of the base index to the merged index without changes. A page is an entry that contains several
    /// lists. The base index is the first index with games. Its game ids are the same in the merged index, so its pages
    /// can be copied.
    ///
    /// Stops before the page to which the list key `other` belongs, because this page must be merged: `other` is the
    /// smallest key of the lists that other indexes still contribute. If `other` is `None`, copies all remaining pages.
    fn copy_pages(&mut self, other: Option<ListKey>) -> Result<()> {
        let base = &mut self.inputs[self.base];
        while base.subject().is_none()
            && let Some((key, page)) = base.next_key()?
            && other.is_none_or(|other| page < self.paging.first_of(other))
        {
            let TableValue::Held(value) = base.entries.value() else {
                return Err(base.index.malformed(key));
            };
            if let Some(ListEntry::Page(last)) = list_entry(LISTS, key) {
                let counted = self.maker.count_lists(last, value);
                counted.ok_or_else(|| base.index.malformed(key))?;
            }
            self.maker.copy_entry(key, value)?;
            base.entries.advance()?;
        }
        Ok(())
    }

    /// Concatenates the lists that the inputs have for the list key `subject`, and adds the resulting list to the
    /// merged index. Must not be called for a list of name numbers if the merge adds numbers of new names to this list.
    /// [`add_named`](Self::add_named) merges such a list.
    fn add(&mut self, subject: ListKey) -> Result<()> {
        // The new ids of each input follow those of the previous one, so concatenation keeps the order.
        for input in &mut self.inputs {
            if input.subject() == Some(subject) {
                input.take(|record| self.maker.add(record))?;
            }
        }
        Ok(())
    }

    /// Merges the lists of name numbers that the inputs have for the list key `subject`, and adds the resulting list to
    /// the merged index. A name number is the number that an index has assigned to a player or event name. The numbers
    /// of new names in `self.names` that have this key are added to the list. A new name is a name that the base index
    /// (the first index with games) does not contain. The list is sorted by number.
    fn add_named(&mut self, subject: ListKey) -> Result<()> {
        let named = self.names.partition_point(|name| name.subject() == subject);
        let (named, rest) = self.names.split_at(named);
        self.names = rest;
        let mut records = named.to_vec();
        for input in &mut self.inputs {
            if input.subject() == Some(subject) {
                input.take(|record| {
                    records.push(record);
                    Ok(())
                })?;
            }
        }
        records.sort_unstable();
        // If several records have the same id, the last one is kept, as when an index is made from games.
        records.dedup_by(|later, kept| {
            let is_same = later.id() == kept.id();
            if is_same {
                *kept = *later;
            }
            is_same
        });
        records
            .into_iter()
            .try_for_each(|record| self.maker.add(record))
    }
}

/// A reader of the lists that one input of a merge contains in a range of list keys.
///
/// The base index is the first index with games. Its names keep their numbers in the merged index. The names of all
/// other inputs get new numbers (see [`MergedGames`]), so the readers of these inputs skip the lists of name numbers,
/// in which the old numbers are stored.
struct ListStream<'p> {
    index: &'p Index,
    entries: TablesCursor<'p>,
    paging: Paging,
    first_id: u32,
    keeps_names: bool,
    from: ListKey,
    until: Option<ListKey>,
    /// The number of chunks read since the last page.
    chunks: u64,
    /// The page that was read last.
    page: Vec<u8>,
    /// The lists of the page that have not been taken yet.
    lists: VecDeque<PageList>,
}

/// The location of a list in the current page, an entry that contains several lists.
#[derive(Clone)]
struct PageList {
    subject: ListKey,
    /// The offset in the page at which the key of the list begins.
    start: usize,
    /// The byte range of the list in the page.
    list: Range<usize>,
    /// The description of the list if it is stored in chunks.
    chunked: Option<ChunkedList>,
}

impl<'p> ListStream<'p> {
    /// Creates a reader of the lists of `input` whose keys are at least `from` and less than `until`. If `until` is
    /// `None`, there is no upper limit. `paging` is the rule by which `input` groups lists in pages (entries with
    /// several lists).
    ///
    /// `has_first_games` is `true` if `input` contains the first games of the merged index. The names of this input
    /// keep their numbers, so the reader also returns its lists of name numbers.
    fn new(
        input: &MergeInput<'p>,
        has_first_games: bool,
        paging: Paging,
        (from, until): (ListKey, Option<ListKey>),
    ) -> Result<ListStream<'p>> {
        Ok(ListStream {
            index: input.index,
            entries: input.cursor(
                &subject_start(paging.first_of(from)),
                END,
                MAX_BLOCK_IN_MEMORY,
            )?,
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

    /// Returns the key of the next list in the current page, or `None` if the page has no more lists. A page is an
    /// entry that contains several lists.
    fn subject(&self) -> Option<ListKey> {
        self.lists.front().map(|list| list.subject)
    }

    /// Removes as many lists as possible from the front of the current page, which is an entry with several lists.
    /// Stops before the first list that is stored in chunks, or whose key is at least `limit`. If `limit` is `None`,
    /// there is no upper limit.
    ///
    /// Returns the key of the last removed list, and the encoded form of all removed lists. Returns `None` if no list
    /// was removed.
    fn take_lists(&mut self, limit: Option<ListKey>) -> Option<(ListKey, &[u8])> {
        let is_own = |list: &&PageList| {
            list.chunked.is_none() && limit.is_none_or(|limit| list.subject < limit)
        };
        let own = self.lists.iter().take_while(is_own).count();
        let mut passed = self.lists.drain(..own);
        let first = passed.next()?;
        let last = passed.next_back().unwrap_or_else(|| first.clone());
        Some((last.subject, &self.page[first.start..last.list.end]))
    }

    /// Removes the next list from the current page (an entry with several lists), and calls `f` with each of its
    /// records. The game ids in the records are those of the merged index.
    fn take(&mut self, mut f: impl FnMut(ListRecord) -> Result<()>) -> Result<()> {
        let Some(next) = self.lists.pop_front() else {
            return Ok(());
        };
        let mut least = 0;
        let Some(chunked) = next.chunked else {
            let list = List::parse(&self.page[next.list]);
            let list = list.ok_or_else(|| self.index.malformed(START))?;
            return self.pass_records(next.subject, list, &mut least, &mut f);
        };
        for chunk in self.index.chunks(next.subject, chunked) {
            let chunk = chunk?;
            self.pass_records(next.subject, chunk.list(self.index)?, &mut least, &mut f)?;
        }
        Ok(())
    }

    /// Calls `f` with each record in `list`, which is a whole list or one chunk of a long list. `subject` is the key of
    /// the list. The game ids in the records are those of the merged index.
    ///
    /// `least` is the smallest id that `list` may contain, because the ids must ascend from chunk to chunk. The
    /// function changes it to the smallest id that the next chunk may contain.
    fn pass_records(
        &self,
        subject: ListKey,
        list: List<'_>,
        least: &mut u64,
        f: &mut impl FnMut(ListRecord) -> Result<()>,
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
            f(ListRecord::new(subject, id, 0, list.white_to_move, mv))?;
        }
        Ok(())
    }

    /// Returns two keys, or `None` if no entry is left in the range of this reader. The first is the LevelDB key of the
    /// next entry. The second is the smallest list key that can occur in the page to which this entry belongs. A page
    /// is an entry that contains several lists with neighboring keys.
    fn next_key(&self) -> Result<Option<(&[u8], ListKey)>> {
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

    /// Reads entries until a page contains at least one list in the key range of this reader, or until no entry is
    /// left. A page is an entry that contains several lists. Does nothing if the current page still has lists that have
    /// not been taken.
    fn read_to_lists(&mut self) -> Result<()> {
        while self.lists.is_empty()
            && let Some((key, _)) = self.next_key()?
        {
            match (list_entry(LISTS, key), self.entries.value()) {
                (Some(ListEntry::Chunk(_)), _) => self.chunks += 1,
                // The results by period are calculated again for the merged lists.
                (Some(ListEntry::Period), _) => {}
                (Some(ListEntry::Page(last)), TableValue::Held(page)) => {
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

    /// Finds the lists in the current page (an entry with several lists) whose keys are in the range of this reader.
    /// `last` is the greatest list key that can occur in the page.
    ///
    /// Long lists of the page are stored in chunks, which are entries before the page. The function also checks that
    /// the number of these entries is correct.
    fn read_page(&mut self, last: ListKey) -> Result<()> {
        let (mut start, mut chunks) = (0, 0);
        let lists = &mut self.lists;
        let found = for_each_list(self.paging, &self.page, last, |subject, list, range| {
            let start = mem::replace(&mut start, range.end);
            chunks += list.chunked.map_or(0, ChunkedList::chunks);
            if subject >= self.from && self.until.is_none_or(|until| subject < until) {
                lists.push_back(PageList {
                    subject,
                    start,
                    list: range,
                    chunked: list.chunked,
                });
            }
            Some(())
        });
        found
            .filter(|()| mem::take(&mut self.chunks) == chunks)
            .ok_or_else(|| self.index.malformed(START))
    }
}

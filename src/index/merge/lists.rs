//! Joining the explorer's lists, subject by subject. Pages that only the input with the first games has lists for are
//! taken as they stand, and so are the lists that only that input has of other pages.

use std::{collections::VecDeque, iter::Peekable, ops::Range};

use rayon::prelude::*;

use super::{
    ahead::{KeyRange, ReadAhead},
    cursor::{EntryCursor, Joined, Parts},
    games::ExploredMerge,
    plan::Plan,
};
use crate::{
    error::Result,
    index::{
        Index,
        explored::{ExploredGames, NAMED, PageMaker, Played},
        layout::{
            Contents, ListKey, Subject, list_key, list_subject,
            played::{List, Paging},
            subject_start,
        },
        waves::Wave,
    },
    sort::SHARDS,
};

/// The keys of pages and chunks.
const START: &[u8] = b"xp";
const END: &[u8] = b"xq";

type Records<'a> = Box<dyn Iterator<Item = Result<Played>> + Send + 'a>;

/// Joins the lists of all inputs.
pub(super) struct ListMerge<'a> {
    inputs: ListInputs<'a>,
    /// The records of the lists of names that are new.
    names: Peekable<Records<'a>>,
}

/// Where lists come from.
struct ListInputs<'a> {
    plan: &'a Plan<'a>,
    /// How the lists of each input are put into pages, and those of the output.
    pagings: Vec<Paging>,
    paging: Paging,
    ahead: ReadAhead<'a>,
    /// The rows of all games.
    games: &'a ExploredGames,
}

impl<'a> ListMerge<'a> {
    /// Of lists with so many items in all.
    pub(super) fn new(
        plan: &'a Plan<'a>,
        contents: &[Contents],
        merge: &'a ExploredMerge,
        items: u64,
    ) -> Result<ListMerge<'a>> {
        let names = (0..SHARDS).flat_map(|shard| {
            let mut records = Vec::new();
            let read = merge
                .names
                .for_each(shard, |record| records.push(Ok(record)));
            records.extend(read.err().map(Err));
            records
        });
        let names: Records<'a> = Box::new(names);
        let inputs = ListInputs {
            plan,
            pagings: contents.iter().map(|contents| contents.paging).collect(),
            paging: Paging::for_items(items),
            ahead: ReadAhead::new(plan, START, END)?,
            games: &merge.games,
        };
        Ok(ListMerge {
            inputs,
            names: names.peekable(),
        })
    }

    /// How many bytes of tables are to be read.
    pub(super) fn bytes_left(&self) -> u64 {
        self.inputs.ahead.bytes_left()
    }

    /// The next entries, `None` when all have come.
    pub(super) fn next_wave(&mut self) -> Result<Option<Wave>> {
        let before = self.bytes_left();
        let paging = self.inputs.paging;
        let align = |subject| subject_start(paging.first_of(subject)).to_vec();
        // All lists up to the last page are known, but those of the output's own page only if they have ended.
        let stretch = self.inputs.ahead.next_stretch(|tables| {
            let last = tables.iter().rev().find_map(|table| {
                let mut keys = (0..table.len()).rev().map(|entry| table.key(entry));
                keys.find_map(|key| match list_key(key) {
                    Some(ListKey::Page(last)) => Some(last),
                    _ => None,
                })
            })?;
            let next = last.0.checked_add(1).map(|next| align(Subject(next)));
            Some(next.unwrap_or_else(|| END.to_vec()))
        })?;
        let Some(stretch) = stretch else {
            return Ok(None);
        };
        let names = self.take_names(&stretch)?;
        let inputs = &self.inputs;
        let parts = inputs
            .ahead
            .cut(&stretch, |key| Some(align(list_subject(key)?)));
        let made = parts
            .par_iter()
            .map(|part| PartMerge::new(inputs, &names, part).join())
            .collect::<Result<Vec<Parts>>>()?;
        self.inputs.ahead.pass(stretch);
        Ok(Some(Wave::Joined {
            parts: made.into_iter().flatten().collect(),
            positions: 0,
            postings: 0,
            steps: before - self.bytes_left(),
        }))
    }

    /// Takes the records of names up to the end of a stretch.
    fn take_names(&mut self, stretch: &KeyRange) -> Result<Vec<Played>> {
        let end = list_subject(&stretch.end);
        let is_due = |next: &Result<Played>| match (next, end) {
            (Ok(next), Some(end)) => next.subject() < end,
            _ => true,
        };
        let mut names = Vec::new();
        while let Some(record) = self.names.next_if(is_due) {
            names.push(record?);
        }
        Ok(names)
    }
}

/// Joins the lists whose subjects lie in a part of a stretch. It begins and ends where pages of the output do.
struct PartMerge<'p> {
    base: usize,
    /// Whether the pages of the first games are cut as those of the output.
    has_same_pages: bool,
    paging: Paging,
    end: &'p [u8],
    inputs: Vec<ListStream<'p>>,
    /// The records of names that are left.
    names: &'p [Played],
    maker: PageMaker<'p>,
    joined: Joined,
}

impl<'p> PartMerge<'p> {
    fn new(from: &'p ListInputs<'_>, names: &'p [Played], part: &'p KeyRange) -> PartMerge<'p> {
        let (plan, paging) = (from.plan, from.paging);
        let (first, until) = (list_subject(&part.start), list_subject(&part.end));
        let first = first.unwrap_or(Subject(0));
        let number = |subject| names.partition_point(|name| name.subject() < subject);
        let names = &names[number(first)..until.map_or(names.len(), number)];
        let streams = from.ahead.cursors(&part.start).into_iter().enumerate();
        let streams = streams.map(|(number, cursor)| ListStream {
            index: plan.inputs[number].index,
            first_id: plan.inputs[number].first_id,
            paging: from.pagings[number],
            keeps_names: number == plan.base,
            cursor,
            from: first,
            until,
            chunks: VecDeque::new(),
            page: &[],
            lists: VecDeque::new(),
        });
        PartMerge {
            base: plan.base,
            has_same_pages: from.pagings[plan.base] == paging,
            paging,
            end: &part.end,
            inputs: streams.collect(),
            names,
            maker: PageMaker::new(paging, from.games),
            joined: Joined::default(),
        }
    }

    fn join(mut self) -> Result<Parts> {
        loop {
            let named = self.names.first().map(|record| record.subject());
            let mut other = named;
            for (number, input) in self.inputs.iter_mut().enumerate() {
                if number != self.base {
                    input.read_to_lists()?;
                    other = other.into_iter().chain(input.subject()).min();
                }
            }
            self.pass_pages(other)?;
            self.inputs[self.base].read_to_lists()?;
            if self.has_same_pages && self.pass_lists(other)? {
                continue;
            }
            let own = self.inputs[self.base].subject();
            let Some(subject) = other.into_iter().chain(own).min() else {
                return Ok(self.joined.finish(self.maker.finish()?.entries));
            };
            if named == Some(subject) {
                self.add_named(subject)?;
            } else {
                self.add(subject)?;
            }
        }
    }

    /// Takes the pages of the first games that come before that of a subject as they stand.
    fn pass_pages(&mut self, other: Option<Subject>) -> Result<()> {
        let base = &mut self.inputs[self.base];
        if !self.has_same_pages || !base.is_between_pages() {
            return Ok(());
        }
        let page = other.map(|other| subject_start(self.paging.first_of(other)));
        let end = page.as_ref().map_or(self.end, |page| &page[..]);
        if base.cursor.key_before(end).is_none() {
            return Ok(());
        }
        let made = self.maker.complete_page()?;
        while let Some((read, some)) = base.cursor.pass_until(end) {
            self.joined.pass(made, read, some);
        }
        Ok(())
    }

    /// Takes the next lists of the first games up to that of a subject as they stand in their page. Answers whether
    /// there are any.
    fn pass_lists(&mut self, other: Option<Subject>) -> Result<bool> {
        let base = &mut self.inputs[self.base];
        let is_own =
            |list: &&PageList| list.len > 0 && other.is_none_or(|other| list.subject < other);
        let own = base.lists.iter().take_while(is_own).count();
        let mut passed = base.lists.drain(..own);
        let Some(first) = passed.next() else {
            return Ok(false);
        };
        let last = passed.next_back().unwrap_or_else(|| first.clone());
        let lists = &base.page[first.start..last.list.end];
        self.maker.add_lists(last.subject, lists)?;
        Ok(true)
    }

    /// Joins the lists of a subject.
    fn add(&mut self, subject: Subject) -> Result<()> {
        // The games of each input stand behind those of the one before.
        for input in &mut self.inputs {
            if input.subject() == Some(subject) {
                input.take(|record| self.maker.add(record))?;
            }
        }
        Ok(())
    }

    /// The same with numbers of names.
    fn add_named(&mut self, subject: Subject) -> Result<()> {
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
        // As where records are folded.
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

/// The lists of an input whose subjects lie in a part. Those of names are left out, whose numbers change, but for
/// those of the first games.
struct ListStream<'p> {
    index: &'p Index,
    cursor: EntryCursor<'p>,
    paging: Paging,
    first_id: u32,
    keeps_names: bool,
    from: Subject,
    until: Option<Subject>,
    /// Chunks whose page has not come yet.
    chunks: VecDeque<(Subject, &'p [u8])>,
    /// The last page, and its lists that have not been taken.
    page: &'p [u8],
    lists: VecDeque<PageList>,
}

/// A list of a page.
#[derive(Clone)]
struct PageList {
    subject: Subject,
    /// Where its subject begins in the page.
    start: usize,
    /// Where it stands in the page.
    list: Range<usize>,
    /// How many items it has, 0 if it stands apart.
    len: usize,
}

impl ListStream<'_> {
    /// The subject of the next list.
    fn subject(&self) -> Option<Subject> {
        self.lists.front().map(|list| list.subject)
    }

    /// Whether no part of the next page has been read.
    fn is_between_pages(&self) -> bool {
        self.lists.is_empty() && self.chunks.is_empty()
    }

    /// Calls `f` with the records of the next list, under their new ids.
    fn take(&mut self, mut f: impl FnMut(Played) -> Result<()>) -> Result<()> {
        let Some(next) = self.lists.pop_front() else {
            return Ok(());
        };
        if next.len > 0 {
            self.pass_records(next.subject, &self.page[next.list], &mut f)?;
        }
        while let Some((_, chunk)) = self.chunks.pop_front_if(|chunk| chunk.0 == next.subject) {
            let list = chunk.get(1..).unwrap_or_default();
            self.pass_records(next.subject, list, &mut f)?;
        }
        Ok(())
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
        let games = self.index.game_count();
        for (id, mv) in items {
            // A name's number is no game.
            if u64::from(id) >= games && mv != NAMED {
                return Err(malformed());
            }
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
    fn read_to_lists(&mut self) -> Result<()> {
        while self.lists.is_empty()
            && let Some(key) = self.cursor.key()
        {
            let malformed = || self.index.malformed(key);
            let subject = list_subject(key).ok_or_else(malformed)?;
            let first = self.paging.first_of(subject);
            if self.until.is_some_and(|until| first >= until) {
                break;
            }
            match list_key(key).ok_or_else(malformed)? {
                ListKey::Chunk(subject) if self.has(subject) => {
                    self.chunks.push_back((subject, self.cursor.value()));
                }
                ListKey::Page(last) => {
                    let read = self.read_page(last);
                    read.ok_or_else(|| self.index.malformed(START))?;
                }
                // Sums are made anew.
                ListKey::Chunk(_) | ListKey::Sums => {}
            }
            self.cursor.advance();
        }
        Ok(())
    }

    /// Finds the lists of the page that are of the part; `None` if something is malformed.
    fn read_page(&mut self, last: Subject) -> Option<()> {
        let page = self.cursor.value();
        let chunks = std::mem::take(&mut self.chunks);
        let mut chunks = chunks.into_iter().peekable();
        let mut start = 0;
        self.page = page;
        self.paging
            .for_each_list(page, last, |subject, list, range| {
                let start = std::mem::replace(&mut start, range.end);
                if !self.has(subject) {
                    return Some(());
                }
                let mut own = Vec::new();
                while let Some(chunk) = chunks.next_if(|chunk| chunk.0 == subject) {
                    own.push(chunk);
                }
                // A list stands either here or in chunks.
                let first_move = match own.first() {
                    Some(_) if list.len > 0 => return None,
                    Some((_, chunk)) => List::parse(chunk.get(1..)?)?.moves().next(),
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
            })?;
        chunks.next().is_none().then_some(())
    }
}

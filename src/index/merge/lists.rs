//! Joining the explorer's lists, subject by subject. Where only the input with the first games has lists,
//! whole pages are taken unchanged, and so are its lists in other pages.

use std::iter::Peekable;

use rayon::prelude::*;

use super::{
    ahead::{KeyRange, ReadAhead},
    cursor::Joined,
    games::ExploredMerge,
    list_stream::{ListStream, START},
    plan::Plan,
};
use crate::{
    error::Result,
    index::{
        entries::Parts,
        explored::{ExploredGames, PageMaker, Played},
        layout::{
            Contents, ListKey, Subject, list_key, list_subject, played::Paging, subject_start,
        },
        waves::Wave,
    },
    sort::SHARDS,
    task,
};

/// The first key after those of pages and chunks.
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
    /// Of lists with this many items in all.
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
            ahead: ReadAhead::new(plan, START, END, Some(merge.games.temp_dir()))?,
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
            .map(|part| {
                task::fault("join lists");
                RangeMerge::new(inputs, &names, part).join()
            })
            .collect::<Result<Vec<Parts>>>()?;
        self.inputs.ahead.pass(stretch);
        Ok(Some(Wave::Others {
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
struct RangeMerge<'p> {
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

impl<'p> RangeMerge<'p> {
    fn new(from: &'p ListInputs<'_>, names: &'p [Played], part: &'p KeyRange) -> RangeMerge<'p> {
        let (plan, paging) = (from.plan, from.paging);
        let (first, until) = (list_subject(&part.start), list_subject(&part.end));
        let first = first.unwrap_or(Subject(0));
        let number = |subject| names.partition_point(|name| name.subject() < subject);
        let names = &names[number(first)..until.map_or(names.len(), number)];
        let streams = from.ahead.cursors(&part.start).into_iter().enumerate();
        let streams = streams.map(|(number, cursor)| {
            let has_first_games = number == plan.base;
            let (part, paging) = (&plan.inputs[number], from.pagings[number]);
            ListStream::new(part, has_first_games, paging, cursor, (first, until))
        });
        RangeMerge {
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

    /// Takes the pages of the first games that come before that of a subject, unchanged.
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

    /// Takes the next lists of the first games up to that of a subject, unchanged. Returns whether there are any.
    fn pass_lists(&mut self, other: Option<Subject>) -> Result<bool> {
        let base = &mut self.inputs[self.base];
        let Some((last, lists)) = base.pass_lists(other) else {
            return Ok(false);
        };
        self.maker.add_lists(last, lists)?;
        Ok(true)
    }

    /// Joins the lists of a subject.
    fn add(&mut self, subject: Subject) -> Result<()> {
        // The games of each input come after those of the one before.
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

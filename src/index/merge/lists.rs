//! Joining the explorer's lists, subject by subject. Where only the input with the first games has lists,
//! whole pages are taken unchanged, and so are its lists in other pages.

use super::{
    games::ExploredMerge,
    list_stream::{END, ListStream, START},
    plan::{KeyRange, Plan},
};
use crate::{
    error::Result,
    index::{
        explored::{PageMaker, Played},
        layout::{Contents, Subject, list_subject, played::Paging, subject_start},
        leveldb::TableValue,
        positions::Made,
    },
    task,
};

/// Joins the lists of all inputs.
pub(super) struct ListMerge<'a> {
    plan: &'a Plan<'a>,
    merge: &'a ExploredMerge,
    /// How the lists of each input are put into pages, and those of the output.
    pagings: Vec<Paging>,
    paging: Paging,
}

impl<'a> ListMerge<'a> {
    /// Of lists with this many items in all.
    pub(super) fn new(
        plan: &'a Plan<'a>,
        contents: &[Contents],
        merge: &'a ExploredMerge,
        items: u64,
    ) -> ListMerge<'a> {
        ListMerge {
            plan,
            merge,
            pagings: contents.iter().map(|contents| contents.paging).collect(),
            paging: Paging::for_items(items),
        }
    }

    /// The ranges in which lists are joined. They begin and end where pages of the output do.
    pub(super) fn ranges(&self) -> Vec<KeyRange> {
        self.plan.ranges(START, END, |key| {
            Some(subject_start(self.paging.first_of(list_subject(key)?)).to_vec())
        })
    }

    /// Joins the lists of a range.
    pub(super) fn lists_in(&self, range: &KeyRange) -> Result<Made> {
        task::fault("join lists");
        let from = list_subject(&range.start).unwrap_or(Subject(0));
        let until = list_subject(&range.end);
        let inputs = self.plan.inputs.iter().zip(&self.pagings).enumerate();
        let inputs = inputs.map(|(number, (input, paging))| {
            ListStream::new(input, number == self.plan.base, *paging, (from, until))
        });
        let names = self.merge.names_within(from, until)?;
        let join = RangeMerge {
            base: self.plan.base,
            has_same_pages: self.pagings[self.plan.base] == self.paging,
            inputs: inputs.collect::<Result<_>>()?,
            names: &names,
            paging: self.paging,
            maker: PageMaker::new(self.paging, &self.merge.games),
        };
        let made = join.join()?;
        Ok(Made {
            steps: range.size,
            ..made
        })
    }
}

/// Joins the lists whose subjects lie in a range.
struct RangeMerge<'p> {
    base: usize,
    /// Whether the pages of the first games are cut as those of the output.
    has_same_pages: bool,
    inputs: Vec<ListStream<'p>>,
    /// The records of names that are left.
    names: &'p [Played],
    paging: Paging,
    maker: PageMaker<'p>,
}

impl RangeMerge<'_> {
    fn join(mut self) -> Result<Made> {
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
                self.pass_pages(other)?;
            }
            let base = &mut self.inputs[self.base];
            base.read_to_lists()?;
            if self.has_same_pages
                && let Some((last, lists)) = base.pass_lists(other)
            {
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

    /// Takes the pages of the first games that come before that of a subject, unchanged.
    fn pass_pages(&mut self, other: Option<Subject>) -> Result<()> {
        let base = &mut self.inputs[self.base];
        while base.subject().is_none()
            && let Some((key, page)) = base.next_key()?
            && other.is_none_or(|other| page < self.paging.first_of(other))
        {
            let TableValue::Held(value) = base.entries.value() else {
                return Err(base.index.malformed(key));
            };
            self.maker.pass(key, value)?;
            base.entries.advance()?;
        }
        Ok(())
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

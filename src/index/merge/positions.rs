//! Joining the entries of positions: their games, and their statistics.

use super::{plan::Plan, stream::EntryStream};
use crate::{
    error::Result,
    index::{
        entries::{Entries, Value},
        layout::{GameIds, joined_stats, write_id},
    },
};

/// The keys of positions are numbers.
const START: &[u8] = b"0";
const END: &[u8] = b":";

/// Joins the entries of positions of all inputs.
pub(super) struct PositionMerge<'a> {
    plan: &'a Plan<'a>,
    streams: Vec<EntryStream<'a>>,
    key: Vec<u8>,
}

/// What was joined.
#[derive(Default)]
pub(super) struct Counted {
    pub positions: u64,
    pub postings: u64,
}

/// Whether a key of a position is that of its games.
fn is_of_games(key: &[u8]) -> bool {
    key.iter().all(u8::is_ascii_digit)
}

impl<'a> PositionMerge<'a> {
    pub(super) fn new(plan: &'a Plan<'a>) -> Result<PositionMerge<'a>> {
        let streams = plan.inputs.iter();
        let streams = streams.map(|part| EntryStream::new(part.index, START, END));
        Ok(PositionMerge {
            plan,
            streams: streams.collect::<Result<_>>()?,
            key: Vec::new(),
        })
    }

    /// Appends entries until they have `size` bytes or all have come.
    pub(super) fn fill(&mut self, out: &mut Entries, size: usize) -> Result<Counted> {
        let mut counted = Counted::default();
        while out.held() < size {
            if self.pass_own(out, size, &mut counted)? {
                continue;
            }
            let Some(first) = self.streams.iter().filter_map(EntryStream::key).min() else {
                break;
            };
            self.key.clear();
            self.key.extend_from_slice(first);
            if is_of_games(&self.key) {
                counted.positions += 1;
                counted.postings += self.join_ids(out)?;
            } else {
                self.join_stats(out)?;
            }
            for stream in &mut self.streams {
                if stream.key() == Some(&self.key[..]) {
                    stream.advance()?;
                }
            }
        }
        Ok(counted)
    }

    /// Appends the entries of the first input that come before those of all others, as they stand, until there are `size`
    /// bytes or its table ends. Answers whether there are any.
    fn pass_own(&mut self, out: &mut Entries, size: usize, counted: &mut Counted) -> Result<bool> {
        let Some((first, others)) = self.streams.split_first_mut() else {
            return Ok(false);
        };
        let end = others.iter().filter_map(|stream| stream.key()).min();
        let before = out.len();
        first.pass_until(end, out, size)?;
        for entry in before..out.len() {
            if is_of_games(out.key(entry))
                && let Value::Bytes(ids) = out.value(entry)
            {
                counted.positions += 1;
                counted.postings += memchr::memchr_iter(b',', ids).count() as u64;
            }
        }
        Ok(out.len() > before)
    }

    /// The games of a position, those of each input behind those of the one before. Answers how many.
    fn join_ids(&self, out: &mut Entries) -> Result<u64> {
        let bytes = out.begin(&self.key);
        let start = bytes.len();
        for (part, stream) in self.plan.inputs.iter().zip(&self.streams) {
            if stream.key() != Some(&self.key[..]) {
                continue;
            }
            if part.first_id == 0 {
                bytes.extend_from_slice(stream.value());
                continue;
            }
            let ids = GameIds::parse(stream.value().to_vec());
            let ids = ids.ok_or_else(|| part.index.malformed(&self.key))?;
            for id in &ids {
                // Together the inputs have fewer games than ids have values, unless one is damaged.
                let id = id.checked_add(part.first_id);
                write_id(bytes, id.ok_or_else(|| part.index.malformed(&self.key))?);
            }
        }
        let ids = memchr::memchr_iter(b',', &bytes[start..]).count();
        out.end(self.key.len());
        Ok(ids as u64)
    }

    fn join_stats(&self, out: &mut Entries) -> Result<()> {
        let present = || {
            let parts = self.plan.inputs.iter().zip(&self.streams);
            parts.filter(|(_, stream)| stream.key() == Some(&self.key[..]))
        };
        let values: Vec<&[u8]> = present().map(|(_, stream)| stream.value()).collect();
        let joined = match values[..] {
            [only] => Some(only.to_vec()),
            _ => joined_stats(&self.key, &values),
        };
        let damaged = || {
            let (part, _) = present().next().expect("an input has the key");
            part.index.malformed(&self.key)
        };
        out.push(&self.key, &joined.ok_or_else(damaged)?);
        Ok(())
    }
}

//! Entries that LevelDB has put into a log but not yet into a table.

use std::{
    collections::{BTreeMap, btree_map},
    ops::Bound,
};

use super::{Damage, coding::Fields, log};

/// What the logs say of a key: the sequence number, and the value if it is not deleted.
pub(super) type Logged = (u64, Option<Vec<u8>>);

/// What the logs say of all keys.
#[derive(Default, Debug)]
pub(super) struct Memtable {
    entries: BTreeMap<Vec<u8>, Logged>,
}

impl Memtable {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds what a log says.
    pub(super) fn read_log(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        for (offset, batch) in log::records(bytes)? {
            self.read_batch(&batch).ok_or(Damage {
                offset,
                problem: "a batch of a log is malformed",
            })?;
        }
        Ok(())
    }

    /// A batch is the first sequence number, how many entries there are, and these.
    fn read_batch(&mut self, batch: &[u8]) -> Option<()> {
        let mut fields = Fields::new(batch);
        let first = fields.u64()?;
        let count = fields.u32()?;
        for sequence in (first..).take(count as usize) {
            let kind = fields.byte()?;
            let key = fields.string()?.to_vec();
            let value = match kind {
                0 => None,
                1 => Some(fields.string()?.to_vec()),
                _ => return None,
            };
            let entry = self.entries.entry(key).or_default();
            if sequence >= entry.0 {
                *entry = (sequence, value);
            }
        }
        fields.is_empty().then_some(())
    }

    /// The entries from a key on.
    pub(super) fn entries_from(&self, start: &[u8]) -> btree_map::Range<'_, Vec<u8>, Logged> {
        let from_start = (Bound::Included(start), Bound::Unbounded);
        self.entries.range::<[u8], _>(from_start)
    }

    /// The value of a key, `Some(None)` if it is deleted, `None` if the logs do not say.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let (_, value) = self.entries.get(key)?;
        Some(value.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut memtable = Memtable::default();
            let _ = memtable.read_log(&bytes);
            let _ = memtable.read_log(&log::of_record(&bytes));
        }
    }
}

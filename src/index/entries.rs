//! Entries on their way into a table.

/// Entries in the order of their keys, joined in one buffer.
#[derive(Default, Debug)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// The ends of each key and of its value.
    ends: Vec<(usize, usize)>,
}

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes keys and values take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(key_end, value_end)| {
            let entry = (
                &self.bytes[start..*key_end],
                &self.bytes[*key_end..*value_end],
            );
            start = *value_end;
            entry
        })
    }
}

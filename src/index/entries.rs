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

    /// Adds an entry behind all others.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.push_with(
            |out| out.extend_from_slice(key),
            |out| out.extend_from_slice(value),
        );
    }

    /// The same with what appends the key and what appends the value.
    #[inline]
    pub(super) fn push_with(
        &mut self,
        put_key: impl FnOnce(&mut Vec<u8>),
        put_value: impl FnOnce(&mut Vec<u8>),
    ) {
        put_key(&mut self.bytes);
        let key_end = self.bytes.len();
        put_value(&mut self.bytes);
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

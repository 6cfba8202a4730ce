//! Encodes and compares the internal keys of LevelDB, which consist of a user key, a sequence number and the kind of
//! the entry.
//!
//! Tables and manifests store internal keys, sorted by user key ascending, then by sequence number descending, so that
//! the newest entry of a user key comes first.

/// The length in bytes of an internal key's trailer, which consists of the sequence number and the kind of the
/// entry.
pub(super) const TRAILER_LENGTH: usize = 8;

/// The maximum sequence number of an entry. Sequence numbers have 56 bits.
pub(super) const MAX_SEQUENCE: u64 = (1 << 56) - 1;

/// The kind of a LevelDB entry: it either sets the value of its key or deletes the key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum EntryKind {
    Deletion,
    Value,
}

/// Returns the trailer of the internal key of an entry that sets a value. The trailer is the last eight bytes of
/// the key: the sequence number and the kind.
#[inline]
pub(super) fn trailer(sequence: u64) -> [u8; TRAILER_LENGTH] {
    (sequence << 8 | 1).to_le_bytes()
}

/// Appends the internal key of an entry that sets a value to `out`. The internal key consists of `key`, the sequence
/// number `sequence` and the kind of the entry.
pub(super) fn put(out: &mut Vec<u8>, key: &[u8], sequence: u64) {
    out.extend_from_slice(key);
    out.extend_from_slice(&trailer(sequence));
}

/// Splits an internal key into the user key, the sequence number and the kind of the entry.
///
/// Returns `None` if `internal` is too short for a sequence number and a kind, or if the kind is unknown.
#[inline]
pub(super) fn parse(internal: &[u8]) -> Option<(&[u8], u64, EntryKind)> {
    let (key, trailer) = internal.split_last_chunk::<TRAILER_LENGTH>()?;
    let number = u64::from_le_bytes(*trailer);
    let kind = match number as u8 {
        0 => EntryKind::Deletion,
        1 => EntryKind::Value,
        _ => return None,
    };
    Some((key, number >> 8, kind))
}

/// Returns the user key of an internal key: the part before the sequence number and the kind of the entry.
///
/// # Panics
///
/// Panics if the internal key is malformed.
fn user_key(internal: &[u8]) -> &[u8] {
    parse(internal)
        .expect("internal keys of the builder have trailers")
        .0
}

/// Returns a short key for a block's entry in the table's index. The returned key is an internal key, which consists of
/// a user key, a sequence number and a kind. It is greater than or equal to `last`, the last internal key of the block,
/// and less than every internal key with the user key `next`, the first user key of the next block.
///
/// The result is as short as the rules of [`user_separator`] allow.
pub(super) fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let key = user_key(last);
    let mut separator = user_separator(key, next);
    if separator.len() < key.len() {
        // The shortened user key is greater than the user key of `last`. With the highest sequence number, the
        // separator sorts before every entry of the shortened key.
        put(&mut separator, &[], MAX_SEQUENCE);
    } else {
        separator.extend_from_slice(&last[key.len()..]);
    }
    separator
}

/// Returns a short key for the entry of the table's last block in the table's index. The key is an internal key that is
/// greater than or equal to `last`, the last internal key of the block.
pub(super) fn separator_at_end(last: &[u8]) -> Vec<u8> {
    let mut next = user_key(last).to_vec();
    match next.iter_mut().find(|byte| **byte != 0xff) {
        Some(byte) => *byte += 1,
        None => next.push(0xff),
    }
    separator(last, &next)
}

/// Returns a user key that is greater than or equal to `last` and less than `next`, where `last < next`.
///
/// The result is the first of these candidates that exists:
///
/// - `last`, truncated after its first byte that can be incremented without reaching `next`, with that byte
///   incremented;
/// - `last` with its last byte below 0xff incremented, if the result is less than `next`;
/// - `last` followed by a null byte, if the result is not `next`;
/// - `last`.
///
/// `rusty-leveldb`, which wrote polybook's first indexes, follows the same rules. As long as the rules stay the
/// same, all versions of polybook write identical index files.
fn user_separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let common = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    for at in common..last.len().min(next.len()) {
        if last[at] < 0xff && last[at] + 1 < next[at] {
            let mut separator = last[..=at].to_vec();
            separator[at] += 1;
            return separator;
        }
    }
    let mut separator = last.to_vec();
    if let Some(at) = last.iter().rposition(|byte| *byte != 0xff) {
        separator[at] += 1;
        if separator[..] < *next {
            return separator;
        }
        separator[at] -= 1;
    }
    separator.push(0);
    if separator[..] == *next {
        separator.pop();
    }
    separator
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::cmp::Ordering;

    use super::*;

    /// Compares two internal keys.
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        let ((a, first, _), (b, second, _)) = (parse(a).unwrap(), parse(b).unwrap());
        a.cmp(b).then(second.cmp(&first))
    }

    fn internal(key: &[u8], sequence: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, key, sequence);
        out
    }

    #[test]
    fn separators_are_short() {
        let separator = |a: &str, b: &str| user_separator(a.as_bytes(), b.as_bytes());
        assert_eq!(separator("abcd", "abcf"), b"abce");
        assert_eq!(separator("abc", "zzz"), b"b");
        assert_eq!(separator("a", "b"), b"a\0");
        assert_eq!(separator("yyy", "z"), b"yyz");
    }

    proptest! {
        #[test]
        fn separators_separate(mut keys in proptest::collection::btree_set(proptest::collection::vec(prop_oneof![Just(0xff), Just(0), Just(b'1'), Just(b'2')], 1..6), 2)) {
            let last = internal(&keys.pop_first().unwrap(), 7);
            let next = internal(&keys.pop_first().unwrap(), 8);
            let between = separator(&last, user_key(&next));
            prop_assert_ne!(compare(&last, &between), Ordering::Greater);
            prop_assert_eq!(compare(&between, &next), Ordering::Less);
            let end = separator_at_end(&last);
            prop_assert_ne!(compare(&last, &end), Ordering::Greater);
        }
    }
}

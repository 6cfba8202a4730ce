//! Internal keys: a user's key with the sequence number and the kind of its entry.
//!
//! Tables and manifests hold internal keys. They are in the order of the user's keys, and for the same
//! user's key the highest sequence number comes first.

/// Sequence number and kind take this many bytes after the user's key.
pub(super) const TRAILER: usize = 8;

/// The highest sequence number there is.
pub(super) const MAX_SEQUENCE: u64 = (1 << 56) - 1;

/// Whether an entry sets its key or deletes it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum EntryKind {
    Deletion,
    Value,
}

/// The trailer after the user's key of a value.
#[inline]
pub(super) fn trailer(sequence: u64) -> [u8; TRAILER] {
    (sequence << 8 | 1).to_le_bytes()
}

/// Appends an internal key of a value.
pub(super) fn put(out: &mut Vec<u8>, key: &[u8], sequence: u64) {
    out.extend_from_slice(key);
    out.extend_from_slice(&trailer(sequence));
}

/// The user's key, the sequence number and the kind in an internal key; `None` if it is malformed.
#[inline]
pub(super) fn parse(internal: &[u8]) -> Option<(&[u8], u64, EntryKind)> {
    let (key, trailer) = internal.split_last_chunk::<TRAILER>()?;
    let number = u64::from_le_bytes(*trailer);
    let kind = match number as u8 {
        0 => EntryKind::Deletion,
        1 => EntryKind::Value,
        _ => return None,
    };
    Some((key, number >> 8, kind))
}

/// The user's key in an internal key that we made.
fn user_key(internal: &[u8]) -> &[u8] {
    parse(internal)
        .expect("internal keys of the builder have trailers")
        .0
}

/// An internal key from `last` on but before `next`: short, because it goes into a table's index.
///
/// `next` is the user's key.
pub(super) fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let key = user_key(last);
    let mut separator = user_separator(key, next);
    if separator.len() < key.len() {
        // It is after all entries of the last key, so it may come before all of its own.
        put(&mut separator, &[], MAX_SEQUENCE);
    } else {
        separator.extend_from_slice(&last[key.len()..]);
    }
    separator
}

/// An internal key after `last`, for the index entry of a table's last block.
pub(super) fn separator_at_end(last: &[u8]) -> Vec<u8> {
    let mut next = user_key(last).to_vec();
    match next.iter().position(|byte| *byte != 0xff) {
        Some(at) => {
            next[at] += 1;
            next.truncate(at + 1);
        }
        None => next.push(0xff),
    }
    separator(last, &next)
}

/// A user's key from `last` on but before `next`: a byte that may be increased is, and the rest is cut off;
/// otherwise the last byte that may be is; otherwise `last` gets a null byte, unless that is `next`.
///
/// The choices are those of `rusty-leveldb`, which made the first indexes: an index does not depend on
/// what version of polybook made it.
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

    /// The order of internal keys.
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

//! Entries of the table of player and event names.
//!
//! Rows of games refer to names by numbers, which are given in the order in which names first occur. A name may be
//! repeated under a later number. An entry contains [`NAMES`] names, and the last entry the rest. Each name is stored
//! as the varint of its length in bytes and its UTF-8 text.

use crate::leveldb::{put_varint, take_size};

/// The number of names in an entry.
pub const NAMES: u32 = 64;

/// The greatest length of a name in bytes. Longer names are cut.
pub const LONGEST_NAME: usize = 1024;

/// Appends a name to the value of an entry.
pub fn write_name(out: &mut Vec<u8>, name: &str) {
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

/// Reads the names of an entry. Returns `None` if the value is malformed.
pub fn parse_names(value: &[u8]) -> Option<Vec<Box<str>>> {
    let mut names = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let len = take_size(&mut rest)?;
        let name = rest.split_off(..len)?;
        names.push(str::from_utf8(name).ok()?.into());
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back(names in proptest::collection::vec(".{0,200}", 0..9)) {
            let mut value = Vec::new();
            names.iter().for_each(|name| write_name(&mut value, name));
            let found = parse_names(&value).unwrap();
            prop_assert!(found.iter().map(|name| &**name).eq(names.iter().map(String::as_str)));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = parse_names(&bytes);
        }
    }
}

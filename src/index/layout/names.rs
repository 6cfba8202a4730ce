//! The names of players and events, each once in a while.
//!
//! Games name them by numbers, given in the order in which they first come up. An entry has [`NAMES`] names, the
//! last those that are left; each is its length as a varint and its text in UTF-8.

use super::{put_varint, take_size};

/// How many names an entry has.
pub const NAMES: u32 = 64;

/// The longest name that is kept whole, in bytes.
pub const LONGEST_NAME: usize = 1024;

/// Appends a name to the entry.
pub fn write_name(out: &mut Vec<u8>, name: &str) {
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

/// Reads an entry of names; `None` if it is malformed.
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

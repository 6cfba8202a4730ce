//! The value of a position: the ids of the games that reached it.

use std::iter::FusedIterator;

use super::put_number;

/// Appends an id to the value of a position.
#[inline]
pub fn write_id(out: &mut Vec<u8>, id: u32) {
    put_number(out, id);
    out.push(b',');
}

/// The ids of the games that reached a position, ascending. They are held as they stand in the index.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GameIds {
    /// Well-formed: decimal numbers that ascend, a comma behind each.
    value: Vec<u8>,
    len: usize,
}

impl GameIds {
    /// Reads the value of a position; `None` if it is malformed.
    pub fn parse(value: Vec<u8>) -> Option<GameIds> {
        let mut len = 0;
        let mut last = None;
        let mut rest = &value[..];
        while !rest.is_empty() {
            let id = next_id(&mut rest)?;
            if last.is_some_and(|last| last >= id) {
                return None;
            }
            last = Some(id);
            len += 1;
        }
        Some(GameIds { value, len })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ids, ascending.
    pub fn iter(&self) -> GameIdsIter<'_> {
        GameIdsIter {
            rest: &self.value,
            len: self.len,
        }
    }
}

impl<'a> IntoIterator for &'a GameIds {
    type Item = u32;
    type IntoIter = GameIdsIter<'a>;

    fn into_iter(self) -> GameIdsIter<'a> {
        self.iter()
    }
}

/// The ids of [`GameIds`], ascending.
#[derive(Clone, Debug)]
pub struct GameIdsIter<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Iterator for GameIdsIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.rest.is_empty() {
            return None;
        }
        self.len -= 1;
        Some(next_id(&mut self.rest).expect("the value was found well-formed"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for GameIdsIter<'_> {}

impl FusedIterator for GameIdsIter<'_> {}

/// Takes an id and its comma off the front; `None` if there is none.
#[inline]
fn next_id(rest: &mut &[u8]) -> Option<u32> {
    let mut id = 0u32;
    for (i, byte) in rest.iter().enumerate() {
        match byte {
            b'0'..=b'9' => id = id.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?,
            b',' if i > 0 => {
                *rest = &rest[i + 1..];
                return Some(id);
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_malformed_is_told() {
        for value in [
            "1",
            "1,2",
            ",",
            "1,,2,",
            "2,1,",
            "1,1,",
            "1,x,",
            "-1,",
            "+1,",
            " 1,",
            "4294967296,",
        ] {
            assert_eq!(GameIds::parse(value.into()), None, "{value}");
        }
        assert_eq!(GameIds::parse(vec![]), Some(GameIds::default()));
    }

    proptest! {
        #[test]
        fn ids_come_back(ids in proptest::collection::btree_set(any::<u32>(), 0..50)) {
            let mut value = Vec::new();
            ids.iter().for_each(|id| write_id(&mut value, *id));
            let found = GameIds::parse(value).unwrap();
            prop_assert_eq!(found.len(), ids.len());
            prop_assert_eq!(found.iter().len(), ids.len());
            prop_assert!(found.iter().eq(ids));
        }

        #[test]
        fn any_bytes_are_read(bytes in "[0-9,x]{0,30}") {
            if let Some(ids) = GameIds::parse(bytes.into_bytes()) {
                prop_assert_eq!(ids.iter().count(), ids.len());
            }
        }
    }
}

//! What an index has for the explorer.

use super::{parse_number, played::Paging};

/// The version of the layout that is written and read.
const VERSION: u64 = 4;

/// What an index has for the explorer: decimal numbers, joined by vertical bars.
///
/// | field | meaning |
/// |---|---|
/// | 0 | version of the layout: 4 |
/// | 1 | how many first bits the subjects of a page have in common |
/// | 2 | positions |
/// | 3 | items of all lists |
/// | 4 | names |
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// How lists are put into pages.
    pub paging: Paging,
    /// How many positions the index has.
    pub positions: u64,
    /// How many items all lists have together.
    pub items: u64,
    /// How many names there are.
    pub names: u32,
}

impl Contents {
    /// The value that says so.
    pub fn write(&self) -> Vec<u8> {
        let bits = self.paging.bits();
        let (positions, items, names) = (self.positions, self.items, self.names);
        format!("{VERSION}|{bits}|{positions}|{items}|{names}").into_bytes()
    }

    /// Whether the value is of another version of the layout, which has other subjects.
    pub fn is_of_other_version(value: &[u8]) -> bool {
        let version = value.split(|byte| *byte == b'|').next();
        version
            .and_then(parse_number)
            .is_some_and(|version: u64| version != VERSION)
    }

    /// Reads the value; `None` if it is malformed or of another version.
    pub fn parse(value: &[u8]) -> Option<Contents> {
        let mut fields = value.split(|byte| *byte == b'|');
        let mut number = || parse_number::<u64>(fields.next()?);
        if number()? != VERSION {
            return None;
        }
        let contents = Contents {
            paging: Paging::of_bits(u32::try_from(number()?).ok()?)?,
            positions: number()?,
            items: number()?,
            names: u32::try_from(number()?).ok()?,
        };
        fields.next().is_none().then_some(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_back() {
        let contents = Contents {
            paging: Paging::for_items(5_000_000),
            positions: 4_000_000,
            items: 5_000_000,
            names: 12,
        };
        assert_eq!(Contents::parse(&contents.write()), Some(contents));
        for malformed in [
            "",
            "4",
            "3|16|1|1|1",
            "4|99|1|1|1",
            "4|16|1|1|x",
            "4|16|1|1|1|1",
        ] {
            assert_eq!(Contents::parse(malformed.as_bytes()), None, "{malformed}");
        }
        for (value, is_other) in [("3|16|1|1|1", true), ("4|16|1|1|x", false), ("x", false)] {
            assert_eq!(Contents::is_of_other_version(value.as_bytes()), is_other);
        }
    }
}

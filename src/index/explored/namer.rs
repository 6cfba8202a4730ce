//! Giving numbers to names.

use rustc_hash::FxHashMap;

/// After this many names, or [`MOST_BYTES`] of them, the namer forgets what it knew: this bounds its memory. A name
/// that comes up again then gets another number.
const MOST_NAMES: usize = 1 << 17;
const MOST_BYTES: usize = 4 << 20;

/// Gives each name a number, in the order in which they come up.
///
/// The numbers depend on the names alone, whatever memory there is.
#[derive(Default, Debug)]
pub(super) struct Namer {
    known: FxHashMap<Box<str>, u32>,
    bytes: usize,
    next: u32,
}

impl Namer {
    /// The number of a name, and whether it is a new one.
    pub(super) fn number(&mut self, name: &str) -> (u32, bool) {
        if let Some(number) = self.known.get(name) {
            return (*number, false);
        }
        if self.known.len() == MOST_NAMES || self.bytes > MOST_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        let number = self.next;
        self.known.insert(name.into(), number);
        self.bytes += name.len();
        // Each game has three at most, and there are fewer than 2^32 games: the count of the names
        // shows a number past that.
        self.next = self.next.saturating_add(1);
        (number, true)
    }

    /// How many numbers it has given.
    pub(super) fn len(&self) -> u32 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_one_number_each() {
        let mut namer = Namer::default();
        assert_eq!(namer.number("a"), (0, true));
        assert_eq!(namer.number("b"), (1, true));
        assert_eq!(namer.number("a"), (0, false));
        assert_eq!(namer.len(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let mut namer = Namer::default();
        for i in 0..2 * MOST_NAMES {
            namer.number(&format!("{}", i % (3 * MOST_NAMES / 2)));
            assert!(namer.known.len() <= MOST_NAMES);
        }
    }
}

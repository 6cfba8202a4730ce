//! Giving numbers to names.

use rustc_hash::FxHashMap;

/// After this many names, or [`MOST_BYTES`] of them, the namer forgets what it knew: this bounds its memory. A name
/// that comes up again then gets another number.
const MOST_NAMES: usize = 1 << 17;
const MOST_BYTES: usize = 4 << 20;

/// Gives each name a number, in the order in which they come up.
///
/// The numbers depend on the names alone, whatever memory there is, and [`Namer::resume`] makes the namer that has
/// given out some numbers already.
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
        (self.resume(name), true)
    }

    /// Takes the name that had the next number.
    pub(super) fn resume(&mut self, name: &str) -> u32 {
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
        number
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
    fn memory_is_bounded_and_the_work_goes_on_where_it_was() {
        let (mut one, mut other) = (Namer::default(), Namer::default());
        let names = |i: usize| format!("{}", i % (3 * MOST_NAMES / 2));
        for i in 0..2 * MOST_NAMES {
            let name = names(i);
            if let (number, true) = one.number(&name) {
                assert_eq!(other.resume(&name), number);
            }
            assert!(one.known.len() <= MOST_NAMES);
        }
        for i in 0..2 * MOST_NAMES {
            assert_eq!(one.number(&names(7 * i)), other.number(&names(7 * i)));
        }
    }
}

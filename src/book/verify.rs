//! Checking a book, and mending one.

use std::{fmt, io::Write, path::Path};

use super::{
    entry::Entry,
    header::{self, HeaderError},
    open::Book,
};
use crate::{
    error::{At, Result},
    output::AtomicFile,
    position::{BookMove, Variant},
};

/// Something wrong with a book.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The size is not a multiple of 16: this many bytes are too many.
    Size {
        /// Bytes behind the last whole record.
        rest: usize,
    },
    /// The header is malformed.
    Header(HeaderError),
    /// Keys do not ascend.
    Order {
        /// How many records have a smaller key than the one before.
        count: u64,
        /// The number of the first of them, from 0.
        first: usize,
    },
    /// Null records stand behind others.
    StrayNull {
        /// How many.
        count: u64,
        /// The first of them.
        first: usize,
    },
    /// A move stands more than once in a position.
    Twice {
        /// How many records are too many.
        count: u64,
        /// The first of them.
        first: usize,
    },
    /// Moves that cannot be moves.
    Move {
        /// How many.
        count: u64,
        /// The first of them.
        first: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Size { rest } => {
                write!(
                    f,
                    "the size is not a multiple of 16: {rest} bytes are too many"
                )
            }
            Fault::Header(err) => write!(f, "{err}"),
            Fault::Order { count, first } => {
                write!(
                    f,
                    "{count} records have smaller keys than the one before, first record {first}"
                )
            }
            Fault::StrayNull { count, first } => {
                write!(
                    f,
                    "{count} null records stand behind others, first record {first}"
                )
            }
            Fault::Twice { count, first } => {
                write!(
                    f,
                    "{count} records repeat a move of their position, first record {first}"
                )
            }
            Fault::Move { count, first } => {
                write!(f, "{count} records hold no move, first record {first}")
            }
        }
    }
}

/// Counts faults of a kind.
#[derive(Default)]
struct Tally {
    count: u64,
    first: usize,
}

impl Tally {
    fn note(&mut self, index: usize) {
        if self.count == 0 {
            self.first = index;
        }
        self.count += 1;
    }

    fn fault(self, make: fn(u64, usize) -> Fault) -> Option<Fault> {
        (self.count > 0).then(|| make(self.count, self.first))
    }
}

/// Whether the bits of a move can be one, in a book with this header. Only the variants know drops and
/// kings made of pawns.
fn move_check(whole: &[u8]) -> fn(BookMove) -> bool {
    let header = header::extract(whole).and_then(|(text, _)| header::parse(&text));
    let is_for_variants = header.is_ok_and(|header| {
        let chess = [Variant::Standard, Variant::Chess960].map(Variant::name);
        header
            .variants
            .iter()
            .any(|name| !chess.contains(&name.as_str()))
    });
    if is_for_variants {
        BookMove::is_well_formed
    } else {
        BookMove::is_well_formed_in_chess
    }
}

/// Looks for everything that is wrong with the bytes of a book. Nothing found means that every program
/// reads it as it is meant.
pub fn faults(bytes: &[u8]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let (whole, rest) = whole_records(bytes);
    if rest > 0 {
        faults.push(Fault::Size { rest });
    }
    let header_size = match header::extract(whole) {
        Ok((text, size)) => {
            if let Err(err) = header::parse(&text) {
                faults.push(Fault::Header(err));
            }
            size
        }
        Err(HeaderError::NoHeader) => 0,
        Err(err) => {
            faults.push(Fault::Header(err));
            null_size(whole)
        }
    };
    let is_move = move_check(whole);
    let first_record = header_size / Entry::SIZE;
    let entries: Vec<Entry> = whole[header_size..]
        .chunks_exact(Entry::SIZE)
        .filter_map(|record| Some(Entry::from_bytes(*record.first_chunk()?)))
        .collect();

    let (mut order, mut null, mut twice, mut moves) = (
        Tally::default(),
        Tally::default(),
        Tally::default(),
        Tally::default(),
    );
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 && entry.key < entries[index - 1].key {
            order.note(first_record + index);
        }
        if entry.key == 0 {
            null.note(first_record + index);
        }
        if !is_move(entry.mv) {
            moves.note(first_record + index);
        }
    }
    let mut sorted: Vec<(u64, u16, usize)> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| (entry.key, entry.mv.0, index))
        .collect();
    sorted.sort_unstable();
    let mut repeated: Vec<usize> = sorted
        .windows(2)
        .filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1))
        .map(|pair| pair[1].2)
        .collect();
    repeated.sort_unstable();
    for index in repeated {
        twice.note(first_record + index);
    }
    faults.extend(order.fault(|count, first| Fault::Order { count, first }));
    faults.extend(null.fault(|count, first| Fault::StrayNull { count, first }));
    faults.extend(twice.fault(|count, first| Fault::Twice { count, first }));
    faults.extend(moves.fault(|count, first| Fault::Move { count, first }));
    faults
}

/// Writes a book without faults: records sorted, of equal moves the heaviest, what is no move left
/// out, the header kept if it is a good one.
///
/// # Errors
///
/// A file that cannot be written; there is none then.
pub fn fix(bytes: &[u8], out: &Path) -> Result<()> {
    let (whole, _) = whole_records(bytes);
    let is_move = move_check(whole);
    let header = match header::extract(whole) {
        Ok((text, _)) if header::parse(&text).is_ok() => header::create_raw(&text),
        _ => Vec::new(),
    };
    let mut entries: Vec<Entry> = Book::from_bytes(whole.to_vec())
        .iter()
        .flat_map(|book| book.iter().collect::<Vec<_>>())
        .filter(|entry| entry.key != 0 && is_move(entry.mv))
        .collect();
    entries.sort_by_key(|entry| (entry.key, entry.mv, std::cmp::Reverse(entry.weight)));
    entries.dedup_by_key(|entry| (entry.key, entry.mv));
    entries.sort_by_key(|entry| (entry.key, std::cmp::Reverse(entry.weight), entry.mv));
    let mut file = AtomicFile::create(out)?;
    let records: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
    file.write_all(&header).at(out, "write")?;
    file.write_all(&records).at(out, "write")?;
    file.commit()
}

fn whole_records(bytes: &[u8]) -> (&[u8], usize) {
    let rest = bytes.len() % Entry::SIZE;
    (&bytes[..bytes.len() - rest], rest)
}

/// The bytes of the null records at the start.
fn null_size(records: &[u8]) -> usize {
    records
        .chunks_exact(Entry::SIZE)
        .take_while(|record| record[..8] == [0; 8])
        .count()
        * Entry::SIZE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::position::BookMove;

    fn bytes(entries: &[(u64, u16)]) -> Vec<u8> {
        let record = |(key, mv): &(u64, u16)| {
            let entry = Entry {
                key: *key,
                mv: BookMove(*mv),
                weight: 1,
                learn: 0,
            };
            entry.to_bytes()
        };
        entries.iter().flat_map(record).collect()
    }

    #[test]
    fn each_fault_is_found() {
        assert_eq!(faults(&bytes(&[(1, 1), (1, 2), (2, 1)])), []);
        assert_eq!(faults(&[]), []);
        assert_eq!(faults(&[0; 3]), [Fault::Size { rest: 3 }]);
        assert_eq!(
            faults(&bytes(&[(2, 1), (1, 1)])),
            [Fault::Order { count: 1, first: 1 }]
        );
        assert_eq!(
            faults(&bytes(&[(1, 1), (1, 2), (1, 1)])),
            [Fault::Twice { count: 1, first: 2 }]
        );
        assert_eq!(
            faults(&bytes(&[(1, 0), (2, 0x7001)])),
            [Fault::Move { count: 2, first: 0 }]
        );
        let null = faults(&bytes(&[(1, 1), (0, 1)]));
        assert!(
            null.contains(&Fault::StrayNull { count: 1, first: 1 }),
            "{null:?}"
        );
        let header = header::create_raw("@PG@\n1.0\nx");
        assert!(matches!(faults(&header)[..], [Fault::Header(_)]));
        let good = header::create_raw(&header::create(&["normal"], "x").unwrap());
        assert_eq!(faults(&[good, bytes(&[(1, 1)])].concat()), []);
    }

    proptest! {
        #[test]
        fn what_is_fixed_has_no_faults(
            header in proptest::option::of("[a-z\n]{0,30}"),
            entries in proptest::collection::vec((0..9u64, prop_oneof![0..3u16, any::<u16>()]), 0..40),
            rest in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let header = header.map_or(Vec::new(), |text| header::create_raw(&text));
            let book = [header, bytes(&entries), rest].concat();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("fixed.bin");
            fix(&book, &path).unwrap();
            prop_assert_eq!(faults(&std::fs::read(path).unwrap()), []);
        }

        #[test]
        fn any_bytes_are_judged(bytes: Vec<u8>) {
            let _ = faults(&bytes);
        }
    }
}

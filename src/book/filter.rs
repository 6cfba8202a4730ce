//! Keeping part of a book.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use shakmaty::Color;

use super::{
    file::BookFile,
    foreign::begin_book,
    lines::{PlayableMoves, contains, reached},
    merge::joined_header,
    open::Book,
    positions::{MergePolicy, Positions},
    records::{Entry, write_entries},
    weight::Scaling,
};
use crate::{
    error::{At, Error, Result},
    position::Variant,
    progress::{Meter, Portions},
    sort::{Memory, Seen},
    walk::LinesOf,
};

/// Which moves of a book are kept, and what becomes of their weights. The default keeps all.
///
/// Filtering the result again keeps all of it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Filter {
    /// The least weight.
    pub min_weight: u16,
    /// The least share of the weights of the position, in percent, from 0 to 100.
    pub min_share: f64,
    /// How many of the heaviest moves of a position are kept; of equal ones, those with the smallest numbers.
    pub best: Option<usize>,
    /// Keeps the positions that are [reachable](Filter::reachable) in fewer half-moves.
    pub max_ply: Option<u16>,
    /// Keeps the positions that a line of White or of Black reaches from the starting position by kept moves:
    /// see [`lines`](super::lines).
    pub reachable: bool,
    /// Scales the weights of each position so that the largest is 65535.
    pub normalize: bool,
}

/// What a filter did.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct FilterSummary {
    /// Records read, headers aside.
    pub read: u64,
    /// Records written, the header aside.
    pub written: u64,
    /// Positions that have a record.
    pub positions: u64,
}

impl Filter {
    /// Whether positions have to be looked for from the starting position.
    fn walks(&self) -> bool {
        self.reachable || self.max_ply.is_some()
    }

    /// Prunes the records of a position, which are sorted by weight, heaviest first, and reweights the others.
    fn apply(&self, entries: &mut Vec<Entry>) {
        let sum: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
        entries.retain(|entry| {
            let has_share = f64::from(entry.weight) * 100.0 >= self.min_share * sum as f64;
            entry.weight >= self.min_weight && has_share
        });
        entries.truncate(self.best.unwrap_or(usize::MAX));
        if !self.normalize {
            return;
        }
        let largest = entries.first().map_or(0, |entry| entry.weight);
        for entry in entries.iter_mut().filter(|entry| entry.weight > 0) {
            let weight = u64::from(entry.weight) * u64::from(u16::MAX) / u64::from(largest);
            entry.weight = Scaling::new(u64::from(u16::MAX)).apply(weight);
        }
    }

    /// The conditions as they are written on a command line.
    fn option_text(&self) -> String {
        let mut options = Vec::new();
        if self.min_weight > 0 {
            options.push(format!("--min-weight {}", self.min_weight));
        }
        if self.min_share > 0.0 {
            options.push(format!("--min-share {}", self.min_share));
        }
        options.extend(self.best.map(|best| format!("--best {best}")));
        options.extend(self.max_ply.map(|plies| format!("--max-ply {plies}")));
        for (is_on, option) in [
            (self.reachable, "--reachable"),
            (self.normalize, "--normalize"),
        ] {
            options.extend(is_on.then(|| option.to_owned()));
        }
        options.join(" ")
    }
}

/// Writes what a filter keeps of a book, or of several as if they were [merged](super::merge_books) first, without
/// records with the null key. Reads all books once. Where positions must be reached, it reads again an unnamed copy
/// in the directory for temporary files, which also takes what exceeds `memory`. Lines start as in `variant`; by
/// default as in that of the header if it names a single one, else as in standard chess.
///
/// # Errors
///
/// A book that cannot be read, is not sorted or cut short, an output that would be empty or cannot be written; the
/// output stays as it was then.
pub fn filter_books(
    inputs: &[PathBuf],
    out: &Path,
    filter: &Filter,
    variant: Option<Variant>,
    memory: &Memory,
    meter: &Meter,
) -> Result<FilterSummary> {
    let temp_dir = &memory.temp_dir;
    let mut file = begin_book(out)?;
    let books = inputs.iter().map(Book::open).collect::<Result<Vec<_>>>()?;
    let header = joined_header(&books, "Filtered", &filter.option_text(), out)?;
    let mut writer = BookFile::begin(&mut file, Some(&header), temp_dir)?;
    let mut positions = Positions::checked(&books, MergePolicy::Sum, meter)?;
    let (kept_positions, written) = if filter.walks() {
        let doing = (&**temp_dir, "write a temporary file in");
        let copy = Book::temporary(temp_dir, |kept| {
            write_kept(&mut positions, filter, kept, doing).map(drop)
        })?;
        let variant = variant
            .or_else(|| books.first()?.variant())
            .unwrap_or_default();
        let plies = filter.max_ply.unwrap_or(u16::MAX);
        let on_lines = on_lines(&copy, memory, variant, plies, meter)?;
        write_reached(&copy, &on_lines, out, &mut writer)?
    } else {
        write_kept(&mut positions, filter, &mut writer, (out, "write"))?
    };
    if written == 0 {
        return Err(Error::file(out, "would be empty: no move is kept"));
    }
    let read = positions.read;
    writer.finish()?;
    file.commit()?;
    Ok(FilterSummary {
        read,
        written,
        positions: kept_positions,
    })
}

/// Writes what is kept of each position; answers how many positions and records. `doing` says which file an error is
/// about, and what was done with it.
fn write_kept(
    positions: &mut Positions<'_>,
    filter: &Filter,
    out: &mut impl Write,
    doing: (&Path, &'static str),
) -> Result<(u64, u64)> {
    let (mut kept, mut written) = (0, 0);
    for position in positions {
        let (mut entries, _) = position?.into_entries();
        filter.apply(&mut entries);
        write_entries(&entries, out).at(doing.0, doing.1)?;
        kept += u64::from(!entries.is_empty());
        written += entries.len() as u64;
    }
    Ok((kept, written))
}

/// The positions on the lines of White and of Black, in fewer than `plies` half-moves.
fn on_lines(
    book: &Book,
    memory: &Memory,
    variant: Variant,
    plies: u16,
    meter: &Meter,
) -> Result<[Seen; 2]> {
    let mut done = [Portions::new(meter), Portions::new(meter)];
    let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
    let (starts, memory) = ([variant.start()], memory.share(4));
    let [of_white, of_black] = &mut done;
    let of = |side, done| {
        let lines = LinesOf(&moves, side);
        reached(&lines, &starts, Some(side), plies, &memory, done)
    };
    Ok([of(Color::White, of_white)?, of(Color::Black, of_black)?])
}

/// Writes the records of the positions that are reached; answers how many positions and records.
fn write_reached(
    book: &Book,
    on_lines: &[Seen],
    out: &Path,
    writer: &mut BookFile<'_>,
) -> Result<(u64, u64)> {
    let (mut positions, mut records, mut last_key, mut is_kept) = (0, 0, None, false);
    for entry in book {
        let entry = entry?;
        if last_key.replace(entry.key) != Some(entry.key) {
            is_kept = contains(on_lines, entry.key)?;
            positions += u64::from(is_kept);
        }
        if is_kept {
            write_entries(&[entry], writer).at(out, "write")?;
            records += 1;
        }
    }
    Ok((positions, records))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::book::records::of_weights;

    fn weights(filter: &Filter, before: &[u16]) -> Vec<u16> {
        let mut entries = of_weights(before);
        filter.apply(&mut entries);
        entries.iter().map(|entry| entry.weight).collect()
    }

    #[test]
    fn what_is_kept_of_a_position() {
        let kept = |change: fn(&mut Filter)| {
            let mut filter = Filter::default();
            change(&mut filter);
            weights(&filter, &[60, 30, 9, 1, 0])
        };
        assert_eq!(kept(|_| {}), [60, 30, 9, 1, 0]);
        assert_eq!(kept(|filter| filter.min_weight = 9), [60, 30, 9]);
        assert_eq!(kept(|filter| filter.min_share = 9.0), [60, 30, 9]);
        assert_eq!(kept(|filter| filter.min_share = 9.1), [60, 30]);
        assert_eq!(kept(|filter| filter.best = Some(1)), [60]);
        let normalized = kept(|filter| filter.normalize = true);
        assert_eq!(normalized, [65_535, 32_767, 9830, 1092, 0]);
        assert_eq!(
            weights(
                &Filter {
                    normalize: true,
                    ..Filter::default()
                },
                &[0]
            ),
            [0]
        );
    }

    proptest! {
        #[test]
        fn filtering_again_changes_nothing(
            mut before in proptest::collection::vec(any::<u16>(), 0..9),
            min_weight in 0..3000u16,
            min_share in 0..60u8,
            best in proptest::option::of(0..5usize),
            normalize in any::<bool>(),
        ) {
            before.sort_by(|a, b| b.cmp(a));
            let filter = Filter { min_weight, min_share: min_share.into(), best, normalize, ..Filter::default() };
            let once = weights(&filter, &before);
            prop_assert!(once.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(weights(&filter, &once), once);
        }
    }
}

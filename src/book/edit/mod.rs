//! Changing a book by hand.

mod apply;
mod change;
mod script;

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
    path::Path,
};

use rustc_hash::FxHashSet;
use shakmaty::{Color, variant::VariantPosition};

use self::apply::edited;
pub use self::{
    change::{Change, ChangeError, NewWeight},
    script::{Script, ScriptError},
};
use super::{
    entry::{Entry, write_entries},
    foreign::check_replaceable,
    header::{self, HeaderError},
    lines::{Knowledge, Reached, Way},
    open::Book,
};
use crate::{
    error::{At, Result},
    output::AtomicFile,
    position::{Keyed, Variant, key},
    progress::Meter,
};

/// Changes of one position.
#[derive(Clone, Debug)]
pub struct PositionEdit {
    /// The position.
    pub pos: VariantPosition,
    /// What changes there, in this order.
    pub changes: Vec<Change>,
}

/// What became of a book.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct EditSummary {
    /// Moves that were added.
    pub added: u64,
    /// Moves that got another weight.
    pub weighed: u64,
    /// Moves that were removed.
    pub removed: u64,
    /// Positions that were removed, with those that only they led to.
    pub removed_positions: u64,
    /// Records of the book, its header aside.
    pub entries: u64,
}

/// The new records of the positions that change, by their keys.
type Edited = BTreeMap<u64, Vec<Entry>>;

/// Writes a book with some changes to `out`, which may be the file of the book. Everything else stays as it is, and in
/// its order; of a header, the comment says at its end that the book was edited.
///
/// A position that is [removed](Change::RemovePosition) takes along those that the moves of the book lead to from
/// there, where it has none by any reply after which it knows a move, unless a line from the starting position
/// of the `variant` still comes to them by another way.
///
/// Reads the book once; where positions are removed, a few times, and takes some fifteen bytes for each of its
/// records then.
///
/// # Errors
///
/// A book that cannot be read or is not sorted, a change that cannot be made, or an output that cannot be written;
/// the output stays as it was then.
pub fn edit_book(
    book: &Book,
    edits: &[PositionEdit],
    variant: Variant,
    out: &Path,
    temp_dir: &Path,
    meter: &Meter,
) -> Result<EditSummary> {
    let mut summary = EditSummary::default();
    let mut positions = Edited::new();
    // Positions that have no move any more.
    let mut removed: Vec<VariantPosition> = Vec::new();
    for edit in edits {
        let key = key(&edit.pos);
        let before = match positions.remove(&key) {
            Some(before) => before,
            None => book.moves(key)?.collect(),
        };
        let after = edited(book, edit, before, &mut summary)?;
        removed.retain(|pos| crate::position::key(pos) != key);
        if after.is_empty() && edit.changes.contains(&Change::RemovePosition) {
            removed.push(edit.pos.clone());
        }
        positions.insert(key, after);
    }
    summary.removed_positions = removed.len() as u64;
    let file = AtomicFile::create_over(out, |old| check_replaceable(old, false))?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let header = edited_header(book)?;
    writer
        .write_all(header.as_deref().unwrap_or_default())
        .at(out, "write")?;
    let mut first = Rewrite {
        positions,
        without: FxHashSet::default(),
        without_null: header.is_some(),
    };
    if removed.is_empty() {
        summary.entries = first.write(book, out, &mut writer, meter)?;
    } else {
        let copy = tempfile::tempfile_in(temp_dir).at(temp_dir, "make a temporary file in")?;
        let mut kept = BufWriter::with_capacity(1 << 16, copy);
        first.write(book, temp_dir, &mut kept, meter)?;
        let copy = kept.into_inner().map_err(io::IntoInnerError::into_error);
        let copy = Book::of_file(copy.at(temp_dir, "write a temporary file in")?, temp_dir)?;
        first.positions = Edited::new();
        first.without = orphans(book, &copy, &removed, variant, meter)?;
        summary.removed_positions += first.without.len() as u64;
        summary.entries = first.write(&copy, out, &mut writer, meter)?;
    }
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error);
    file.at(out, "write")?.commit()?;
    Ok(summary)
}

/// What becomes of the records of a book.
struct Rewrite {
    /// Positions that get other records.
    positions: Edited,
    /// Positions that get none.
    without: FxHashSet<u64>,
    /// Whether the null records are left out, which hold a header.
    without_null: bool,
}

impl Rewrite {
    /// Writes the records in their order; answers how many, those of the header aside.
    fn write(
        &self,
        book: &Book,
        path: &Path,
        out: &mut BufWriter<impl Write>,
        meter: &Meter,
    ) -> Result<u64> {
        meter.expect(book.len());
        let mut changed = self.positions.iter().peekable();
        let (mut written, mut last) = (0, 0);
        for entry in book {
            let entry = entry?;
            meter.advance(1);
            if entry.key < last {
                return Err(book.unsorted());
            }
            last = entry.key;
            while let Some((_, entries)) = changed.next_if(|(key, _)| **key <= entry.key) {
                write_entries(entries, out).at(path, "write")?;
                written += entries.len() as u64;
            }
            if self.keeps(entry.key) {
                write_entries(&[entry], out).at(path, "write")?;
                written += u64::from(entry.key != 0);
            }
        }
        for (_, entries) in changed {
            write_entries(entries, out).at(path, "write")?;
            written += entries.len() as u64;
        }
        Ok(written)
    }

    /// Whether the records of a key stay as they are.
    fn keeps(&self, key: u64) -> bool {
        let is_left_out = key == 0 && self.without_null;
        !is_left_out && !self.positions.contains_key(&key) && !self.without.contains(&key)
    }
}

/// The keys of the positions that only the removed ones led to. `after` is the book without these.
fn orphans(
    before: &Book,
    after: &Book,
    removed: &[VariantPosition],
    variant: Variant,
    meter: &Meter,
) -> Result<FxHashSet<u64>> {
    let closed: Vec<u64> = removed.iter().map(key).collect();
    let knowledge = Knowledge::new(before, meter, 1)?;
    let mut orphans = FxHashSet::default();
    for pos in removed {
        let start = Keyed::new(pos.clone());
        let mut behind = Reached::none(&knowledge);
        behind.walk(&knowledge, start, Way::Followed, &[], u16::MAX)?;
        orphans.extend(behind.keys(before)?);
    }
    for key in &closed {
        orphans.remove(key);
    }
    let knowledge = Knowledge::new(after, meter, 3)?;
    for way in [
        Way::LinesOf(Color::White),
        Way::LinesOf(Color::Black),
        Way::Followed,
    ] {
        let mut reached = Reached::none(&knowledge);
        let start = Keyed::new(variant.start());
        reached.walk(&knowledge, start, way, &closed, u16::MAX)?;
        for key in reached.keys(after)? {
            orphans.remove(&key);
        }
    }
    Ok(orphans)
}

/// What begins the last line of the comment of a book that was edited.
const EDITED: &str = "Edited by polybook ";

/// The header of a book with a comment that tells of the edit, where there is one and room for it.
fn edited_header(book: &Book) -> Result<Option<Vec<u8>>> {
    let old = match book.header() {
        Ok(old) => old,
        // There is none, or it is malformed: it stays as it is.
        Err(err) if err.carried::<HeaderError>().is_some() => return Ok(None),
        Err(err) => return Err(err),
    };
    let line = format!("{EDITED}{}", env!("CARGO_PKG_VERSION"));
    let mut lines: Vec<&str> = old.comment.lines().collect();
    lines.retain(|line| !line.starts_with(EDITED));
    lines.push(&line);
    let text = header::create(&old.variants, &lines.join("\n")).ok();
    // The null byte counts.
    let text = text.filter(|text| text.len() < header::PORTABLE_LENGTH);
    Ok(text.as_deref().map(header::create_raw))
}

//! Changing a book by hand.

mod apply;
mod change;
mod script;

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
    path::Path,
    slice,
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
    file::BookFile,
    header::{self, HeaderError, split_checksum, with_checksum},
    lines::{PlayableMoves, contains, reached},
    open::Book,
};
use crate::{
    error::{At, Result},
    output::AtomicFile,
    position::{Keyed, Variant, key},
    progress::{Meter, Portions},
    sort::{Memory, Seen},
    walk::{Replies, Source, TreeMove, every_way},
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
    /// Shares that were asked for and that weights up to 65535 miss by more than 1 % of them.
    pub inexact: u64,
    /// Positions that were removed, with those that only they led to.
    pub removed_positions: u64,
    /// Records of the book, its header aside.
    pub entries: u64,
}

/// The new records of the positions that change, by their keys.
type Edited = BTreeMap<u64, Vec<Entry>>;

/// Writes a book with some changes to `out`, which may replace the file of the book if it was
/// [begun](super::begin_book) before the book was opened. All other records keep
/// their order. The comment of a header gets a last line that says that the book was edited.
///
/// A [removed](Change::RemovePosition) position takes along those that its moves lead to, and so on. Where the book
/// has no move, the replies after which it has one count as its moves. A position stays if a line from the starting
/// position of the `variant` still reaches it.
///
/// Reads the book once, or a few times if positions are removed; then it spills to temporary files what exceeds
/// `memory`. The edits themselves stay in memory.
///
/// # Errors
///
/// A book that cannot be read or is not sorted, a change that cannot be made, or an output that cannot be written;
/// the output stays as it was then.
pub fn edit_book(
    book: Book,
    edits: &[PositionEdit],
    variant: Variant,
    mut out: AtomicFile,
    memory: &Memory,
    meter: &Meter,
) -> Result<EditSummary> {
    let target = out.target().to_owned();
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
        let after = edited(&book, edit, before, &mut summary)?;
        removed.retain(|pos| crate::position::key(pos) != key);
        if after.is_empty() && edit.changes.contains(&Change::RemovePosition) {
            removed.push(edit.pos.clone());
        }
        positions.insert(key, after);
    }
    summary.removed_positions = removed.len() as u64;
    let header = edited_header(&book)?;
    let mut writer = BookFile::begin(&mut out, header.as_deref(), &memory.temp_dir)?;
    let first = Rewrite {
        positions,
        orphans: None,
        without_null: header.is_some(),
    };
    if removed.is_empty() {
        summary.entries = first.write(&book, &target, &mut writer, meter)?.records;
    } else {
        let temp_dir = &memory.temp_dir;
        let copy = tempfile::tempfile_in(temp_dir).at(temp_dir, "make a temporary file in")?;
        let mut kept = BufWriter::with_capacity(1 << 16, copy);
        first.write(&book, temp_dir, &mut kept, meter)?;
        let copy = kept.into_inner().map_err(io::IntoInnerError::into_error);
        let copy = Book::of_file(copy.at(temp_dir, "write a temporary file in")?, temp_dir)?;
        let orphans = Orphans::new(&book, &copy, &removed, variant, memory, meter)?;
        let second = Rewrite {
            positions: Edited::new(),
            orphans: Some(orphans),
            without_null: false,
        };
        let written = second.write(&copy, &target, &mut writer, meter)?;
        summary.removed_positions += written.orphans;
        summary.entries = written.records;
    }
    writer.finish()?;
    // Windows does not replace a file that is open.
    drop(book);
    out.commit()?;
    Ok(summary)
}

/// The changes to the records of a book.
struct Rewrite {
    /// Positions whose records are replaced.
    positions: Edited,
    /// Positions whose records are removed.
    orphans: Option<Orphans>,
    /// Whether to omit the null records, which hold a header.
    without_null: bool,
}

/// How much a [`Rewrite`] wrote.
#[derive(Default)]
struct Written {
    /// Records, those of the header aside.
    records: u64,
    /// Positions that were left out because only removed ones led to them.
    orphans: u64,
}

impl Rewrite {
    /// Writes the records in their order.
    fn write(
        mut self,
        book: &Book,
        path: &Path,
        out: &mut impl Write,
        meter: &Meter,
    ) -> Result<Written> {
        meter.add_total(book.len());
        let positions = std::mem::take(&mut self.positions);
        let mut changed = positions.iter().peekable();
        let mut written = Written::default();
        let (mut last, mut is_kept) = (None, false);
        for entry in book.checked_records()? {
            let entry = entry?;
            meter.advance(1);
            if Some(entry.key) < last {
                return Err(book.unsorted());
            }
            if last.replace(entry.key) != Some(entry.key) {
                is_kept =
                    !positions.contains_key(&entry.key) && self.keeps(entry.key, &mut written)?;
            }
            while let Some((_, entries)) = changed.next_if(|(key, _)| **key <= entry.key) {
                write_entries(entries, out).at(path, "write")?;
                written.records += entries.len() as u64;
            }
            if is_kept {
                write_entries(&[entry], out).at(path, "write")?;
                written.records += u64::from(entry.key != 0);
            }
        }
        for (_, entries) in changed {
            write_entries(entries, out).at(path, "write")?;
            written.records += entries.len() as u64;
        }
        Ok(written)
    }

    /// Whether the records of a position that does not change stay.
    fn keeps(&self, key: u64, written: &mut Written) -> Result<bool> {
        if key == 0 {
            return Ok(!self.without_null);
        }
        let is_orphan = match &self.orphans {
            Some(orphans) => orphans.contains(key)?,
            None => false,
        };
        written.orphans += u64::from(is_orphan);
        Ok(!is_orphan)
    }
}

/// The positions that removed ones led to, and those that lines from the starting position still reach.
struct Orphans {
    from_removed: Seen,
    still_reached: Vec<Seen>,
}

impl Orphans {
    /// `after` is the book without the removed positions.
    fn new(
        before: &Book,
        after: &Book,
        removed: &[VariantPosition],
        variant: Variant,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<Orphans> {
        let share = memory.share(8);
        let mut done = Portions::new(meter);
        let moves = PlayableMoves::within(before, meter, memory.bytes / 4)?;
        let from_removed = reached(&Replies(moves), removed, None, u16::MAX, &share, &mut done)?;
        let mut done = [(); 3].map(|()| Portions::new(meter));
        let moves = PlayableMoves::within(after, meter, memory.bytes / 4)?;
        let closed = removed.iter().map(key).collect();
        let start = [variant.start()];
        let mut still_reached = Vec::new();
        let sides = [None, Some(Color::White), Some(Color::Black)];
        for ((source, side), done) in every_way(&moves).into_iter().zip(sides).zip(&mut done) {
            let source = Without {
                source,
                closed: &closed,
            };
            still_reached.push(reached(&source, &start, side, u16::MAX, &share, done)?);
        }
        Ok(Orphans {
            from_removed,
            still_reached,
        })
    }

    /// Whether only removed positions led to the position of a key.
    fn contains(&self, key: u64) -> Result<bool> {
        Ok(contains(slice::from_ref(&self.from_removed), key)? && !contains(&self.still_reached, key)?)
    }
}

/// A source that does not go on from some positions.
struct Without<'a, S> {
    source: S,
    closed: &'a FxHashSet<u64>,
}

impl<S: Source> Source for Without<'_, S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        match self.closed.contains(&pos.key()) {
            true => Ok(Vec::new()),
            false => self.source.moves(pos),
        }
    }
}

/// What begins the last line of the comment of a book that was edited.
const EDITED: &str = "Edited by polybook ";

/// The text of a book's header with a comment that says that the book was edited, and with a checksum. `None` if the
/// book has no header, a malformed one, or one without room for that and without a checksum, which stays as it is.
fn edited_header(book: &Book) -> Result<Option<String>> {
    let old = match book.header() {
        Ok(old) => old,
        // There is none, or it is malformed: it stays as it is.
        Err(err) if err.carried::<HeaderError>().is_some() => return Ok(None),
        Err(err) => return Err(err),
    };
    let (comment, checksum) = split_checksum(&old.comment);
    let line = format!("{EDITED}{}", env!("CARGO_PKG_VERSION"));
    let mut lines: Vec<&str> = comment.lines().collect();
    lines.retain(|line| !line.starts_with(EDITED));
    lines.push(&line);
    let create = |comment: &str| header::create(&old.variants, &with_checksum(comment)).ok();
    // The null byte counts.
    let text = create(&lines.join("\n")).filter(|text| text.len() < header::PORTABLE_LENGTH);
    // A checksum that is already there fits.
    Ok(text.or_else(|| create(checksum.map(|_| comment)?)))
}

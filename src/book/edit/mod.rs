//! Edits a book: sets weights, and removes moves and positions.

mod change;
mod shares;

use std::{cmp::Reverse, collections::BTreeMap, io::Write, path::Path, slice};

use rustc_hash::FxHashSet;
use shakmaty::{Color, variant::VariantPosition};

pub use self::change::{Change, ChangeError, NewWeight, Script, ScriptError};
use self::shares::share;
use super::{
    file::BookWriter,
    header::{self, HeaderError, split_checksum, with_checksum},
    lines::{PlayableMoves, contains, reached},
    open::Book,
    records::{Entry, each_move_once, with_format_castling, write_entries},
};
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
    position::{BookMove, Keyed, Variant, fen_of, key, read_move},
    progress::{Meter, Portions},
    sort::{Memory, SpillingSet},
    walk::{Replies, Source, TreeMove, sources_of_all_lines},
};

/// A position, with the changes to its moves.
#[derive(Clone, Debug)]
pub struct PositionEdit {
    /// The position.
    pub pos: VariantPosition,
    /// The changes, in the order in which they are applied.
    pub changes: Vec<Change>,
}

/// Statistics about an edited book.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct EditSummary {
    /// The number of moves that were added.
    pub added: u64,
    /// The number of moves whose weight changed.
    pub weighed: u64,
    /// The number of moves that were removed from edited positions.
    pub removed: u64,
    /// The number of requested shares that could not be met: no weights up to 65535 give a share that is within 1 % of
    /// the requested share.
    pub inexact: u64,
    /// The number of positions that were removed, including positions that were only reached through removed positions.
    pub removed_positions: u64,
    /// The number of records of the new book, without its header.
    pub entries: u64,
}

/// The new records of the changed positions, by key.
type Edited = BTreeMap<u64, Vec<Entry>>;

/// Writes a book with changes to `out`.
///
/// `out` may replace the file of `book`. In that case, call [`begin_book_in_place`](super::begin_book_in_place) before opening
/// the book, so that no other run replaces the file in between. Records of other positions keep their order. A header with a checksum, or with
/// room for one, gets a last comment line that says that the book was edited.
///
/// If a position is [removed](Change::RemovePosition), the positions after its moves are removed too, and so on. In a
/// position without moves in the book, this follows every legal move after which the book has a move. A position is
/// kept if a line from the starting position of `variant` still reaches it.
///
/// The function reads the book once, or several times if positions are removed. Positions that exceed `memory` are spilled to
/// temporary files. The edits themselves stay in memory.
///
/// # Errors
///
/// Returns an error if the book cannot be read or is not sorted, if a change cannot be made, or if the output cannot be
/// written. The target of `out` is unchanged then.
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
    // The removed positions to which no later edit has added moves.
    let mut removed: Vec<VariantPosition> = Vec::new();
    for edit in edits {
        let key = key(&edit.pos);
        let before = match positions.remove(&key) {
            Some(before) => before,
            None => book.moves(key)?,
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
    let mut writer = BookWriter::begin(&mut out, header.as_deref(), &memory.temp_dir)?;
    let write = |out: &mut dyn Write, path| {
        let without_null = header.is_some();
        rewrite(&book, &positions, without_null, out, path, meter)
    };
    if removed.is_empty() {
        summary.entries = write(&mut writer, &target)?;
    } else {
        let temp_dir = &memory.temp_dir;
        let copy = Book::temporary(temp_dir, |kept| write(kept, temp_dir).map(drop))?;
        let orphans = Orphans::new(&book, &copy, &removed, variant, memory, meter)?;
        let copied = writer.copy(&copy, |key| Ok(key == 0 || !orphans.contains(key)?))?;
        summary.removed_positions += copied.left_out;
        summary.entries = copied.records;
    }
    writer.finish()?;
    // Windows cannot replace a file that is open.
    drop(book);
    out.commit()?;
    Ok(summary)
}

/// Writes the records of a book in their order, with the new records of the changed positions. Returns the number of records,
/// without the header.
///
/// If `without_null` is set, the null records are left out, because the caller writes a new header.
fn rewrite(
    book: &Book,
    positions: &Edited,
    without_null: bool,
    out: &mut dyn Write,
    path: &Path,
    meter: &Meter,
) -> Result<u64> {
    let mut changed = positions.iter().peekable();
    let mut records = 0;
    let mut put = |entries: &[Entry]| {
        records += entries.iter().filter(|entry| entry.key != 0).count() as u64;
        write_entries(entries, out).at(path, "write")
    };
    for entry in book.checked_records(meter)? {
        let entry = entry?;
        while let Some((_, entries)) = changed.next_if(|(key, _)| **key <= entry.key) {
            put(entries)?;
        }
        let is_header = entry.key == 0 && without_null;
        if !is_header && !positions.contains_key(&entry.key) {
            put(&[entry])?;
        }
    }
    changed.try_for_each(|(_, entries)| put(entries))?;
    Ok(records)
}

/// The positions to which removed positions led, and the positions that lines from the starting position still reach. A
/// position that is only in the first set is an orphan.
struct Orphans {
    from_removed: SpillingSet,
    still_reached: Vec<SpillingSet>,
}

impl Orphans {
    /// Finds the positions. `before` is the book with the removed positions, and `after` is the book without them.
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
        for ((source, side), done) in sources_of_all_lines(&moves)
            .into_iter()
            .zip(sides)
            .zip(&mut done)
        {
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

    /// Returns `true` if the position with this key was only reached through removed positions.
    fn contains(&self, key: u64) -> Result<bool> {
        Ok(contains(slice::from_ref(&self.from_removed), key)?
            && !contains(&self.still_reached, key)?)
    }
}

/// A source that contains the moves of another source, except for some positions, which it treats as if they had no
/// moves.
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

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.source.node(pos)
    }
}

/// The start of the last comment line of an edited book.
const EDITED: &str = "Edited by polybook ";

/// Returns the text of a header that says that the book was edited, with a line for the checksum.
///
/// Returns `None` if the header is to stay as it is: if the book has no header or a malformed one, or if the header has neither
/// a checksum nor room for the new lines.
fn edited_header(book: &Book) -> Result<Option<String>> {
    let old = match book.header() {
        Ok(old) => old,
        // The book has no header, or a malformed one.
        Err(err) if err.carried::<HeaderError>().is_some() => return Ok(None),
        Err(err) => return Err(err),
    };
    let (comment, checksum) = split_checksum(&old.comment);
    let line = format!("{EDITED}{}", env!("CARGO_PKG_VERSION"));
    let mut lines: Vec<&str> = comment.lines().collect();
    lines.retain(|line| !line.starts_with(EDITED));
    lines.push(&line);
    let create = |comment: &str| header::create(&old.variants, &with_checksum(comment)).ok();
    // The length is compared with `<`, because a null byte follows the text.
    let text = create(&lines.join("\n")).filter(|text| text.len() < header::PORTABLE_LENGTH);
    // If the header has no room for the new line, it still has room for the line with an existing checksum.
    Ok(text.or_else(|| create(checksum.map(|_| comment)?)))
}

/// Applies changes to the records of a position, and returns the new records, heaviest first.
fn edited(
    book: &Book,
    edit: &PositionEdit,
    before: Vec<Entry>,
    summary: &mut EditSummary,
) -> Result<Vec<Entry>> {
    let problem = |problem: String| {
        let fen = fen_of(&edit.pos);
        Error::file(book.path(), format!("{problem} in {fen}"))
    };
    let mut entries = before.clone();
    let mut shares: Vec<(BookMove, f64)> = Vec::new();
    for change in &edit.changes {
        match change {
            Change::Set { mv, weight } => {
                let mv = legal(&edit.pos, mv).map_err(problem)?;
                shares.retain(|(other, _)| *other != mv);
                let weight = match weight {
                    NewWeight::Absolute(weight) => *weight,
                    NewWeight::Percent(percent) => {
                        shares.push((mv, *percent));
                        0
                    }
                };
                set(&mut entries, &edit.pos, mv, weight);
            }
            Change::Remove(text) => {
                let mv = removable(&edit.pos, &entries, text).map_err(problem)?;
                shares.retain(|(other, _)| *other != mv);
                entries.retain(|entry| with_format_castling(&edit.pos, entry.mv) != mv);
            }
            Change::RemovePosition if entries.is_empty() => {
                return Err(problem("the book has no move".to_owned()));
            }
            Change::RemovePosition => {
                shares.clear();
                entries.clear();
            }
        }
    }
    // Illegal moves are never played. They keep their weights and are not part of the shares.
    let (mut legal, illegal): (Vec<Entry>, Vec<Entry>) = entries
        .iter()
        .partition(|entry| entry.mv.to_move(&edit.pos).is_some());
    summary.inexact += share(&mut legal, &shares).map_err(|text| problem(text.to_owned()))?;
    let mut entries = [legal, illegal].concat();
    entries.sort_by_key(|entry| (Reverse(entry.weight), entry.mv));
    summarize(&edit.pos, &before, &entries, summary);
    Ok(entries)
}

/// Reads a legal move in algebraic or coordinate notation.
fn legal(pos: &VariantPosition, text: &str) -> Result<BookMove, String> {
    let mv = read_move(pos, text.as_bytes());
    mv.map(BookMove::from)
        .map_err(|err| format!("\"{}\": {err}", text.escape_debug()))
}

/// Reads the move of a record, which need not be legal. Returns an error message if no record has the move.
fn removable(pos: &VariantPosition, entries: &[Entry], text: &str) -> Result<BookMove, String> {
    let named = entries.iter().find(|entry| entry.mv.uci(pos) == text);
    let mv = match named {
        Some(entry) => with_format_castling(pos, entry.mv),
        None => legal(pos, text)?,
    };
    let mut moves = entries
        .iter()
        .map(|entry| with_format_castling(pos, entry.mv));
    if moves.any(|other| other == mv) {
        return Ok(mv);
    }
    let text = text.escape_debug();
    Err(format!("\"{text}\": the book does not have this move"))
}

/// Sets the weight of a move. Replaces all records of the move with a single record. Both spellings of castling are the
/// same move.
fn set(entries: &mut Vec<Entry>, pos: &VariantPosition, mv: BookMove, weight: u16) {
    let is_it = |entry: &Entry| with_format_castling(pos, entry.mv) == mv;
    let old = entries.iter().find(|entry| is_it(entry));
    let learn = old.map_or(0, |entry| entry.learn);
    entries.retain(|entry| !is_it(entry));
    entries.push(Entry {
        key: key(pos),
        mv,
        weight,
        learn,
    });
}

fn summarize(pos: &VariantPosition, before: &[Entry], after: &[Entry], summary: &mut EditSummary) {
    let [before, after] =
        [before, after].map(|entries| each_move_once(pos, entries.iter().copied()));
    let weight = |entries: &[Entry], mv| {
        let entry = entries.iter().find(|entry| entry.mv == mv);
        entry.map(|entry| entry.weight)
    };
    for entry in &after {
        match weight(&before, entry.mv) {
            None => summary.added += 1,
            Some(old) => summary.weighed += u64::from(old != entry.weight),
        }
    }
    let removed = before
        .iter()
        .filter(|entry| weight(&after, entry.mv).is_none());
    summary.removed += removed.count() as u64;
}

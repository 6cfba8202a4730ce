//! Changing a book by hand.

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
    records::{Entry, as_the_format_says, each_move_once, write_entries},
};
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
    position::{BookMove, Keyed, Variant, fen_of, key, read_move},
    progress::{Meter, Portions},
    sort::{Memory, SpillingSet},
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
    // Windows does not replace a file that is open.
    drop(book);
    out.commit()?;
    Ok(summary)
}

/// Writes the records of a book in their order, with those of the positions that change; returns how many there are, the
/// header aside. Omits the null records, which hold a header, if it is to be `without_null`.
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

/// The positions that removed ones led to, and those that lines from the starting position still reach.
struct Orphans {
    from_removed: SpillingSet,
    still_reached: Vec<SpillingSet>,
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
        Ok(contains(slice::from_ref(&self.from_removed), key)?
            && !contains(&self.still_reached, key)?)
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

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.source.node(pos)
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

/// The records of a position after its changes, in the order of books.
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
                entries.retain(|entry| as_the_format_says(&edit.pos, entry.mv) != mv);
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
    // Illegal moves are never played: they keep their weights, and take no part in the shares.
    let (mut legal, illegal): (Vec<Entry>, Vec<Entry>) = entries
        .iter()
        .partition(|entry| entry.mv.to_move(&edit.pos).is_some());
    summary.inexact += share(&mut legal, &shares).map_err(|text| problem(text.to_owned()))?;
    let mut entries = [legal, illegal].concat();
    entries.sort_by_key(|entry| (Reverse(entry.weight), entry.mv));
    summarize(&edit.pos, &before, &entries, summary);
    Ok(entries)
}

/// A move as people write it.
fn legal(pos: &VariantPosition, text: &str) -> Result<BookMove, String> {
    let mv = read_move(pos, text.as_bytes());
    mv.map(BookMove::from)
        .map_err(|err| format!("\"{}\": {err}", text.escape_debug()))
}

/// The move of a record, which is legal or not.
fn removable(pos: &VariantPosition, entries: &[Entry], text: &str) -> Result<BookMove, String> {
    let named = entries.iter().find(|entry| entry.mv.uci(pos) == text);
    let mv = match named {
        Some(entry) => as_the_format_says(pos, entry.mv),
        None => legal(pos, text)?,
    };
    let mut moves = entries
        .iter()
        .map(|entry| as_the_format_says(pos, entry.mv));
    if moves.any(|other| other == mv) {
        return Ok(mv);
    }
    let text = text.escape_debug();
    Err(format!("\"{text}\": the book does not have this move"))
}

/// Gives a move a weight, in one record, however castling is spelled in those that the book has.
fn set(entries: &mut Vec<Entry>, pos: &VariantPosition, mv: BookMove, weight: u16) {
    let is_it = |entry: &Entry| as_the_format_says(pos, entry.mv) == mv;
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

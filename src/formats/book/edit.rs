//! Edits a book: sets weights, and removes moves and positions.
//!
//! A [`Change`] applies to the moves of one position, and can be parsed from text. If a change requests a percentage
//! for a move, the editor chooses weights so that the move gets this share of its position's total weight.

use std::{cmp::Reverse, collections::BTreeMap, io::Write, path::Path, str::FromStr};

use rustc_hash::FxHashSet;
use shakmaty::{Color, variant::VariantPosition};

use super::{
    header::{self, PORTABLE_LENGTH, split_checksum},
    lines::{PlayableMoves, contains, reached_keys},
    reader::Book,
    records::{Entry, each_move_once, with_format_castling, write_entries},
    writer::{BookWriter, temporary_book},
};
use crate::{
    chess::position::{BookMove, Keyed, LineError, Variant, fen_of, key, read_move},
    error::{Advice, At, Diagnosis, Error, Result},
    formats::walk::{MoveSource, SourceWrapper, TreeMove, shortest_lines, sources_of_all_lines},
    progress::{FractionalProgress, Meter},
    storage::output::AtomicFile,
    storage::sort::{Memory, SpillingSet},
};

/// A position of a book, and the changes to make to its moves.
#[derive(Clone, Debug)]
pub struct PositionEdit {
    /// The position.
    pub pos: VariantPosition,
    /// The changes, in the order in which they are applied.
    pub changes: Vec<Change>,
}

/// Statistics about an edit of a book: the numbers of added, changed and removed moves and positions.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct EditSummary {
    /// The number of moves that were added.
    pub added: u64,
    /// The number of moves whose weight changed.
    pub weighed: u64,
    /// The number of moves that were removed from edited positions.
    pub removed: u64,
    /// The number of requested shares that could not be met, because no weights up to 65535 give the move a share
    /// within 1 % of the requested one.
    pub inexact: u64,
    /// The number of positions that were removed, including positions that could be reached only through removed
    /// positions.
    pub removed_positions: u64,
    /// The number of positions that were added to the book, although no line of the new book leads to them from the
    /// starting position.
    pub unreached: u64,
    /// Whether the header lacks the line `Edited by polybook`, because there was no room for this line.
    pub unmarked: bool,
    /// The number of records of the new book, without its header.
    pub entries: u64,
}

/// A map from the keys of the edited positions to their new records.
type Edited = BTreeMap<u64, Vec<Entry>>;

/// Applies changes to a book and writes the changed book to `out`. Also adds the line `Edited by polybook` to the
/// comment in the header. If the header has no room for the line, sets [`unmarked`](EditSummary::unmarked).
///
/// `out` may replace the file of `book`. In that case, call [`AtomicFile::create`] before opening the book, so that no
/// other process replaces the file in between.
///
/// If a position is [removed](Change::RemovePosition), the positions that can be reached only through it are removed as
/// well. A position counts as reachable if the starting position of `variant` leads to it by moves of the book, or by
/// other legal moves after which the book has a move.
///
/// # Errors
///
/// Returns an error if the book cannot be read or is not sorted, if a change cannot be made, or if the output cannot be
/// written. In case of an error, the target of `out` is unchanged.
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
    // The keys of the positions that have moves only in the new book.
    let mut new = FxHashSet::default();
    for edit in edits {
        let key = key(&edit.pos);
        let before = match positions.remove(&key) {
            Some(before) => before,
            None => book.moves(key)?,
        };
        let before_is_empty = before.is_empty();
        let after = edited(&book, edit, before, &mut summary)?;
        removed.retain(|pos| crate::chess::position::key(pos) != key);
        if after.is_empty() && edit.changes.contains(&Change::RemovePosition) {
            removed.push(edit.pos.clone());
        }
        if after.is_empty() {
            new.remove(&key)
        } else {
            before_is_empty && new.insert(key)
        };
        positions.insert(key, after);
    }
    summary.removed_positions = removed.len() as u64;
    let header = edited_header(&book, &mut summary)?;
    let mut writer = BookWriter::begin(&mut out, header.as_deref(), &memory.temp_dir)?;
    let write = |out: &mut dyn Write, path| {
        let without_header = header.is_some();
        rewrite(&book, &positions, without_header, out, path, meter)
    };
    if removed.is_empty() && new.is_empty() {
        summary.entries = write(&mut writer, &target)?;
    } else {
        let temp_dir = &memory.temp_dir;
        let copy = temporary_book(temp_dir, book.path(), |kept| {
            write(kept, temp_dir).map(drop)
        })?;
        if !new.is_empty() {
            let moves = PlayableMoves::within(&copy, meter, memory.bytes / 4)?;
            let lines = shortest_lines(&moves, &variant.start(), &new, &memory.share(4))?;
            summary.unreached = (new.len() - lines.len()) as u64;
        }
        let orphans = if removed.is_empty() {
            None
        } else {
            Some(Orphans::new(
                &book, &copy, &removed, variant, memory, meter,
            )?)
        };
        let is_kept = |key| match &orphans {
            Some(orphans) if key != 0 => Ok(!orphans.contains(key)?),
            _ => Ok(true),
        };
        let copied = writer.copy(&copy, is_kept)?;
        summary.removed_positions += copied.left_out;
        summary.entries = copied.records;
    }
    writer.finish()?;
    // Windows cannot replace a file that is open.
    drop(book);
    out.commit()?;
    Ok(summary)
}

/// Copies a book to `out`, and replaces the records of edited positions by those in `positions`. Returns the number of
/// written records, without the header. Error messages name `path`, the path of the output. `meter` advances by one for
/// each record of the book.
///
/// If `without_header` is `true`, leaves out the old header, which consists of the records with the key 0. The caller
/// then writes a new header.
fn rewrite(
    book: &Book,
    positions: &Edited,
    without_header: bool,
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
        let is_header = entry.key == 0 && without_header;
        if !is_header && !positions.contains_key(&entry.key) {
            put(&[entry])?;
        }
    }
    changed.try_for_each(|(_, entries)| put(entries))?;
    Ok(records)
}

/// The sets of position keys that are needed to find orphans. An orphan is a position that can be reached from a
/// removed position, but no longer from the starting position. An edit also removes orphans.
struct Orphans {
    from_removed: Vec<SpillingSet>,
    still_reached: Vec<SpillingSet>,
}

impl Orphans {
    /// Finds two sets of positions: those that lines of `before`, the book before the removal, reach from the positions
    /// in `removed`, and those that lines of `after`, the book without the positions in `removed`, still reach from the
    /// starting position of `variant`.
    fn new(
        before: &Book,
        after: &Book,
        removed: &[VariantPosition],
        variant: Variant,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<Orphans> {
        let reached = |book, starts: &[VariantPosition], closed: &FxHashSet<u64>| {
            let mut done = [(); 3].map(|()| FractionalProgress::new(meter));
            let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
            let sides = [None, Some(Color::White), Some(Color::Black)];
            let sources = sources_of_all_lines(&moves).into_iter().zip(sides);
            let sets = sources.zip(&mut done).map(|((source, side), done)| {
                let source = HidingSource { source, closed };
                reached_keys(&source, starts, side, u16::MAX, &memory.share(10), done)
            });
            sets.collect::<Result<Vec<SpillingSet>>>()
        };
        Ok(Orphans {
            from_removed: reached(before, removed, &FxHashSet::default())?,
            still_reached: reached(
                after,
                &[variant.start()],
                &removed.iter().map(key).collect(),
            )?,
        })
    }

    /// Returns `true` if the position with the key `key` is an orphan: it can be reached from a removed position, but
    /// no longer from the starting position.
    fn contains(&self, key: u64) -> Result<bool> {
        Ok(contains(&self.from_removed, key)? && !contains(&self.still_reached, key)?)
    }
}

/// A source of moves that hides all moves of some positions of another source. `closed` contains the keys of these
/// positions. A search through this source finds the positions that remain reachable after an edit has removed the
/// moves of the hidden positions.
struct HidingSource<'a, S> {
    source: S,
    closed: &'a FxHashSet<u64>,
}

impl<S: MoveSource> SourceWrapper for HidingSource<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.source
    }

    fn changed(&self, pos: &Keyed<VariantPosition>, moves: Vec<TreeMove>) -> Result<Vec<TreeMove>> {
        let is_hidden = self.closed.contains(&pos.key());
        Ok(if is_hidden { Vec::new() } else { moves })
    }
}

/// The beginning of the line that marks a book as edited, in the comment of the header. The version of polybook
/// follows.
const EDITED: &str = "Edited by polybook ";

/// The number of bytes that a generated header keeps free for the line `Edited by polybook` of a later edit.
pub(super) const ROOM_FOR_EDIT: usize = 64;

/// Returns the header text of an edited book. The text ends with two lines: one that marks the book as edited, and one
/// for the checksum. If there is no room for both, sets `unmarked` in `summary`, and keeps only the checksum line,
/// provided that the old text had one.
///
/// Returns `None` if the book keeps its old header. This happens if the old header is missing or malformed, or if it
/// has neither a checksum nor room for new lines.
fn edited_header(book: &Book, summary: &mut EditSummary) -> Result<Option<String>> {
    let null = book.null_records()?;
    let text = null.text().ok().filter(|text| header::parse(text).is_ok());
    let Some(old) = text else {
        return Ok(None);
    };
    let (before, checksum) = split_checksum(old);
    let line = format!("{EDITED}{}", env!("CARGO_PKG_VERSION"));
    let mut lines: Vec<&str> = before.split('\n').collect();
    lines.retain(|line| !line.starts_with(EDITED));
    // If the comment is empty, its line follows the last variant.
    lines.pop_if(|last| last.is_empty());
    lines.push(&line);
    let new = header::with_checksum(&lines.join("\n"));
    // A null byte follows the text.
    if new.len() < PORTABLE_LENGTH {
        return Ok(Some(new));
    }
    summary.unmarked = true;
    Ok(checksum.map(|_| header::with_checksum(before)))
}

/// Applies the changes of `edit` to `before`, the records of one position of `book`. Returns the new records, sorted by
/// descending weight, and adds the numbers of added, changed and removed moves to `summary`.
fn edited(
    book: &Book,
    edit: &PositionEdit,
    before: Vec<Entry>,
    summary: &mut EditSummary,
) -> Result<Vec<Entry>> {
    let diagnosis =
        |problem: &str| Diagnosis::new(format!("in the position {}, {problem}", fen_of(&edit.pos)));
    let problem = |problem: String| Error::file(book.path(), diagnosis(&problem));
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
                let problem = diagnosis("the book contains no move to remove").advise(Advice::option(
                    "to remove the move that leads to this position, name the move with {} in the position before",
                    "remove",
                ));
                return Err(Error::file(book.path(), problem));
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

/// Parses a move in algebraic or coordinate notation that is legal in `pos`. The error is a message for the user.
fn legal(pos: &VariantPosition, text: &str) -> Result<BookMove, String> {
    let mv = read_move(pos, text.as_bytes());
    mv.map(BookMove::from).map_err(|err| {
        format!(
            "the move \"{}\" cannot be played ({err})",
            text.escape_debug()
        )
    })
}

/// Parses a move that the user wants to remove from the position `pos`. The move need not be legal, but `entries`, the
/// records of the position, must contain it. The error is a message for the user.
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
    Err(format!("the book does not contain the move \"{text}\""))
}

/// Sets the weight of the move `mv` to `weight` in `entries`, the records of the position `pos`. If the move has
/// several records, including records with the other spelling of castling, they become a single record. If it has no
/// record, adds one.
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

/// A change to the moves of one position in a book. Moves are strings in algebraic or coordinate notation. An illegal
/// move can only be removed, and must be given as [`BookMove::uci`](crate::chess::position::BookMove::uci) writes it.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// Sets the weight of a move, and adds the move if the position does not have it.
    Set {
        /// The move.
        mv: String,
        /// The new weight of the move.
        weight: NewWeight,
    },
    /// Removes a move.
    Remove(String),
    /// Removes all moves of the position, and the positions that could be reached only by these moves.
    RemovePosition,
}

/// The new weight of a move: a number, or a percentage of the total weight of all moves in the position.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum NewWeight {
    /// The weight, from 0 to 65535.
    Absolute(u16),
    /// The share of the position's total weight, in percent, more than 0 and at most 100. All shares in one
    /// [`PositionEdit`] are applied together. The rest of the weight is divided among the other moves in their old
    /// proportions.
    Percent(f64),
}

/// The error for a string that is not a valid [`Change`] or [`NewWeight`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot read \"{text}\": {what}")]
pub struct ChangeError {
    /// The text that cannot be parsed.
    pub text: String,
    /// A description of the expected text.
    pub what: &'static str,
}

impl ChangeError {
    fn new(text: &str, what: &'static str) -> ChangeError {
        let text = text.to_owned();
        ChangeError { text, what }
    }
}

impl Change {
    /// Parses the value of the option `--set`: `MOVE=WEIGHT` or `MOVE=PERCENT%`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not have this form, or if the number is out of range.
    pub fn set(text: &str) -> Result<Change, ChangeError> {
        let what = "give a move and its weight, such as Nf3=100 or Nf3=25%";
        // The last equals sign separates the weight, because a promotion contains one itself: e8=Q=5.
        let (mv, weight) = text
            .rsplit_once('=')
            .ok_or_else(|| ChangeError::new(text, what))?;
        let number = weight.trim().trim_end_matches('%').trim_end();
        let weight = weight.parse().map_err(|err| match number.parse::<f64>() {
            // The text is a number, but it is out of range.
            Ok(_) => err,
            Err(_) => ChangeError::new(text, what),
        })?;
        match mv.trim() {
            "" => Err(ChangeError::new(text, what)),
            mv => Ok(Change::Set {
                mv: mv.to_owned(),
                weight,
            }),
        }
    }
}

/// Parses a number from 0 to 65535, or a percentage above 0% and up to 100%.
impl FromStr for NewWeight {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<NewWeight, ChangeError> {
        let text = text.trim();
        match text.strip_suffix('%') {
            Some(percent) => percent
                .trim()
                .parse()
                .ok()
                .filter(|percent| *percent > 0.0 && *percent <= 100.0)
                .map(NewWeight::Percent)
                .ok_or_else(|| {
                    ChangeError::new(text, "use a percentage greater than 0% and at most 100%")
                }),
            None => text
                .parse()
                .map(NewWeight::Absolute)
                .map_err(|_| ChangeError::new(text, "use a weight from 0 to 65535")),
        }
    }
}

/// Parses `set MOVE=WEIGHT`, `remove MOVE` or `remove-position`.
impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Change, ChangeError> {
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match (word, rest.trim()) {
            ("set", change) => Change::set(change),
            ("remove", mv) if !mv.is_empty() => Ok(Change::Remove(mv.to_owned())),
            ("remove-position", "") => Ok(Change::RemovePosition),
            _ => Err(ChangeError::new(
                text,
                "use set MOVE=WEIGHT, remove MOVE or remove-position",
            )),
        }
    }
}

/// A parser of edit scripts. An edit script lists the changes to a book, one position on each line.
///
/// A line consists of a position and one or more changes, separated by semicolons. The position is a FEN, or a list of
/// moves from the starting position. The changes on a line that begins with a semicolon apply to the position of the
/// previous line. All percentages on a line are applied together. If several lines name the same position, the changes
/// on a later line apply to the result of the earlier lines. Blank lines and lines that begin with `#` are ignored.
///
/// ```text
/// # What I play against the Sicilian
/// 1. e4 c5; remove f4; set Nf3=70%; set Nc3=20%
/// ; set c3=5%
/// rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2; remove-position
/// ```
///
/// ```
/// use polybook::{book::Script, position::Variant};
///
/// let mut script = Script::new(Variant::Standard, Variant::Standard.start());
/// assert!(script.line("# nothing").unwrap().is_none());
/// let edit = script.line("1. e4 c5; set Nf3=70%; remove f4").unwrap().expect("two changes");
/// assert_eq!(edit.changes.len(), 2);
/// assert!(script.line("; remove Ke3").is_ok(), "whether moves are legal is seen later");
/// assert!(script.line("startpos; remove e4").is_ok());
/// assert!(script.line("e4 e4; remove-position").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    variant: Variant,
    pos: VariantPosition,
}

/// An error in a line of an edit script (see [`Script`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The position cannot be read.
    #[error(transparent)]
    Position(#[from] LineError),
    /// A change cannot be read.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The line has no change.
    #[error(
        "the line contains no change: write a position, a semicolon and a change, such as 1. e4 c5; set Nf3=100"
    )]
    NoChange,
}

impl Script {
    /// Creates a parser of scripts for books of `variant`. `pos` is the position to which the changes on the first line
    /// apply if that line names no position.
    pub fn new(variant: Variant, pos: VariantPosition) -> Script {
        Script { variant, pos }
    }

    /// Parses the next line of the script. Returns the position and its changes, or `None` if the line is blank or a
    /// comment.
    ///
    /// The moves may be illegal; [`edit_book`](edit_book) checks them later.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] if the position or a change cannot be read, or if the line has no change.
    pub fn line(&mut self, line: &str) -> Result<Option<PositionEdit>, ScriptError> {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (position, changes) = line.split_once(';').ok_or(ScriptError::NoChange)?;
        match position.trim() {
            "" => {}
            position => self.pos = self.variant.position_or_line(position)?,
        }
        let changes = changes.split(';').map(str::trim);
        let changes = changes.filter(|change| !change.is_empty());
        let changes = changes
            .map(str::parse)
            .collect::<Result<Vec<Change>, _>>()?;
        if changes.is_empty() {
            return Err(ScriptError::NoChange);
        }
        Ok(Some(PositionEdit {
            pos: self.pos.clone(),
            changes,
        }))
    }
}

/// The maximum rounding error of a move's share of the total weight: 0.005, which is half a percentage point. If
/// rounding causes a larger error, all weights are scaled up, because larger integers represent the shares more
/// exactly.
const MAX_SHARE_ERROR: f64 = 0.005;

/// The maximum rounding error of a share that the user requested for a move: 1 % of the requested share.
const MAX_RELATIVE_ERROR: f64 = 0.01;

/// Sets the weights of `entries`, the records of one position. `shares` lists moves with their new shares of the total
/// weight, in percent. The rest of the total weight is divided among the other moves in their old proportions.
///
/// Returns how many of the requested shares could not be met closely enough with integer weights up to 65535.
///
/// # Errors
///
/// Returns an error message if the requested shares leave nothing for the other moves.
pub(super) fn share(
    entries: &mut [Entry],
    shares: &[(BookMove, f64)],
) -> Result<u64, &'static str> {
    if shares.is_empty() {
        return Ok(0);
    }
    let given: f64 = shares.iter().map(|(_, percent)| percent).sum();
    let others: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
    if given > 100.0 || (given >= 100.0 && others > 0) {
        return Err(
            "the new percentages leave nothing for the other moves: give lower percentages, or give weights such as 100, \
             which are relative to the weights of the other moves, or remove the other moves",
        );
    }
    let share_of = |mv| shares.iter().find(|(other, _)| *other == mv);
    // The other moves keep their weights, or get multiples of them if the weights are too small for exact shares.
    let unit = if others > 0 {
        others as f64 / (100.0 - given)
    } else {
        1.0
    };
    let exact: Vec<Exact> = entries
        .iter()
        .map(|entry| match share_of(entry.mv) {
            Some((_, percent)) => Exact {
                weight: percent * unit,
                is_asked: true,
            },
            None => Exact {
                weight: entry.weight.into(),
                is_asked: false,
            },
        })
        .collect();
    let largest = exact.iter().map(|exact| exact.weight).fold(0.0, f64::max);
    let most = f64::from(u16::MAX) / largest;
    // Each step raises the largest weight by at least 1, so the loop ends however small the shares are.
    let step = (1.0 / largest).max(1.0);
    let mut factor = most.min(1.0);
    let mut weights = rounded(&exact, factor);
    while missed_shares(&exact, &weights).next().is_some() && factor < most {
        factor = (factor + step).min(most);
        weights = rounded(&exact, factor);
    }
    let inexact = missed_shares(&exact, &weights)
        .filter(|exact| exact.is_asked)
        .count() as u64;
    for (entry, weight) in entries.iter_mut().zip(weights) {
        entry.weight = weight;
    }
    Ok(inexact)
}

/// The intended weight of a move, before it is scaled and rounded to 16 bits.
struct Exact {
    weight: f64,
    /// Whether the user requested a share for the move.
    is_asked: bool,
}

/// Multiplies the weights in `exact` by `factor` and rounds them. A weight above 0 becomes at least 1.
fn rounded(exact: &[Exact], factor: f64) -> Vec<u16> {
    let weight = |exact: &Exact| match exact.weight {
        0.0 => 0,
        exact => (exact * factor).round().clamp(1.0, u16::MAX.into()) as u16,
    };
    exact.iter().map(weight).collect()
}

/// Returns the moves whose share of the total weight changed too much when the weights were rounded. `exact` contains
/// the weights before rounding, and `weights` contains the rounded weights of the same moves in the same order. A share
/// may change by at most [`MAX_SHARE_ERROR`], and a share that the user requested also by at most
/// [`MAX_RELATIVE_ERROR`] times its value.
fn missed_shares<'a>(exact: &'a [Exact], weights: &'a [u16]) -> impl Iterator<Item = &'a Exact> {
    let wanted: f64 = exact.iter().map(|exact| exact.weight).sum();
    let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let pairs = exact.iter().zip(weights);
    let is_far = move |(exact, weight): &(&Exact, &u16)| {
        let share = exact.weight / wanted;
        let close = if exact.is_asked {
            MAX_SHARE_ERROR.min(share * MAX_RELATIVE_ERROR)
        } else {
            MAX_SHARE_ERROR
        };
        (share - f64::from(**weight) / sum).abs() > close
    };
    pairs.filter(is_far).map(|(exact, _)| exact)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formats::book::records::of_weights;

    #[test]
    fn changes_are_read() {
        let set = |mv: &str, weight| Change::Set {
            mv: mv.to_owned(),
            weight,
        };
        for (text, expected) in [
            ("set Nf3=100", set("Nf3", NewWeight::Absolute(100))),
            ("set  e8=Q = 5 ", set("e8=Q", NewWeight::Absolute(5))),
            ("set e4=12.5%", set("e4", NewWeight::Percent(12.5))),
            ("remove f4", Change::Remove("f4".to_owned())),
            (" remove-position ", Change::RemovePosition),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "set",
            "set Nf3",
            "set =5",
            "set Nf3=65536",
            "set Nf3=-1",
            "set Nf3=0%",
            "set Nf3=101%",
            "set Nf3=NaN%",
            "remove",
            "remove-position now",
            "add Nf3=1",
        ] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }

    /// Returns the weights after the first moves got the given shares.
    fn shared(weights: &[u16], percents: &[f64]) -> Option<Vec<u16>> {
        let mut entries = of_weights(weights);
        for entry in &mut entries[..percents.len()] {
            entry.weight = 0;
        }
        let shares: Vec<(BookMove, f64)> =
            (0..).map(BookMove).zip(percents.iter().copied()).collect();
        share(&mut entries, &shares).ok()?;
        Some(entries.iter().map(|entry| entry.weight).collect())
    }

    #[test]
    fn shares_leave_the_others_as_they_are_where_that_is_exact() {
        assert_eq!(shared(&[7, 30, 45], &[25.0]).unwrap(), [25, 30, 45]);
        assert_eq!(shared(&[0, 0], &[70.0, 30.0]).unwrap(), [70, 30]);
        assert_eq!(shared(&[5], &[100.0]).unwrap(), [100]);
        assert_eq!(shared(&[5, 1], &[100.0]), None);
        assert_eq!(shared(&[5, 1, 1], &[60.0, 50.0]), None);
        // Weights this small cannot express the share: 1 of 4 is a quarter.
        assert_eq!(shared(&[0, 3], &[33.0]).unwrap()[1] % 3, 0);
    }

    #[test]
    fn small_shares_are_met_as_far_as_weights_go() {
        for (percent, is_met) in [(0.5, true), (0.05, true), (0.005, true), (0.0001, false)] {
            let mut entries = of_weights(&[0, 39, 20, 7, 2, 1, 1]);
            let inexact = share(&mut entries, &[(BookMove(0), percent)]).unwrap();
            let weights: Vec<f64> = entries.iter().map(|entry| entry.weight.into()).collect();
            let found = weights[0] * 100.0 / weights.iter().sum::<f64>();
            let is_close = (found - percent).abs() <= percent * MAX_RELATIVE_ERROR;
            assert_eq!(
                (is_close, inexact),
                (is_met, u64::from(!is_met)),
                "{weights:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn shares_are_close(weights in proptest::collection::vec(1..=u16::MAX, 2..6), percent in 1..99u8) {
            let found = shared(&weights, &[percent.into()]).unwrap();
            let sum: f64 = found.iter().map(|weight| f64::from(*weight)).sum();
            let share = f64::from(found[0]) * 100.0 / sum;
            prop_assert!((share - f64::from(percent)).abs() < 0.6, "{found:?}");
        }
    }
}

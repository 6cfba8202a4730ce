//! Counts and writes the lines of a book. On a line, one side plays moves of the book from the starting position, and
//! the other side plays any reply after which the book has a move.
//!
//! A line ends where the book ends, and at a position that occurred earlier in the line or in an earlier line.
//! [`count`] returns the numbers that `polyglot info-book` prints, [`reachable`] counts the positions that `polyglot
//! info-book -exact` searches for, and [`write()`] writes the lines as `polyglot dump-book` does.
//!
//! The book itself may stay in its file. [`count`] and [`reachable`] spill positions to temporary files if they exceed
//! the memory budget. [`write()`] takes about 50 bytes of memory for each position on the lines that it writes.

use std::{
    cell::{Cell, RefCell},
    io::{self, Write},
    path::Path,
};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{ByColor, Color, Move, Position, san::SanPlus, variant::VariantPosition};

use super::{
    reader::Book,
    records::{Entry, key_and_move},
};
use crate::{
    chess::position::{BookMove, Keyed, Variant, key, uci},
    error::{At, Result},
    formats::walk::{
        Branch, Limits, LinesOf, MoveSource, Order, SourceWrapper, Tree, TreeEvent, TreeMove, walk,
    },
    progress::{FractionalProgress, Meter},
    storage::sort::{Memory, SpillingSet},
};

/// The numbers of a book's lines and of the positions on them, for each side. On a line of one side, this side plays
/// moves of the book, and its opponent plays any reply after which the book has a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lines {
    /// The number of lines on which White plays moves of the book.
    pub white: u64,
    /// The number of lines on which Black plays moves of the book.
    pub black: u64,
    /// The number of positions on White's lines in which the book has a move of White.
    pub white_positions: u64,
    /// The number of positions on Black's lines in which the book has a move of Black.
    pub black_positions: u64,
    /// The number of positions that have a record in the book.
    pub positions: u64,
}

/// Counts the lines and positions of a book. On a line, one side plays moves of the book, and the opponent plays any
/// reply after which the book has a move. Keys of positions that exceed `memory` are written to temporary files.
/// `meter` shows the progress.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if its keys do not ascend, or if a temporary file cannot be
/// written.
pub fn count(book: &Book, memory: &Memory, meter: &Meter) -> Result<Lines> {
    let mut done = [
        FractionalProgress::new(meter),
        FractionalProgress::new(meter),
    ];
    let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
    let memory = memory.share(4);
    let [of_white, of_black] = &mut done;
    let (white, white_positions) = count_lines(&moves, Color::White, &memory, of_white)?;
    let (black, black_positions) = count_lines(&moves, Color::Black, &memory, of_black)?;
    Ok(Lines {
        white,
        black,
        white_positions,
        black_positions,
        positions: moves.positions,
    })
}

/// Counts the lines of `side` in the book whose moves `moves` returns. On these lines, `side` plays moves of the book,
/// and the opponent plays any move after which the book has a move. Returns the number of lines, and the number of
/// positions on them in which `side` is to move and the book has moves. Keys of positions that exceed `memory` are
/// written to temporary files. `progress` advances while the search runs.
fn count_lines(
    moves: &PlayableMoves<'_>,
    side: Color,
    memory: &Memory,
    progress: &mut FractionalProgress<'_>,
) -> Result<(u64, u64)> {
    let start = Variant::Standard.start();
    let has_start = side == Color::White && moves.has_records(key(&start))?;
    let source = LinesOf(moves, side);
    let (mut moves, mut expanded, mut positions) = (0, 0, u64::from(has_start));
    let limits = Limits {
        memory: memory.clone(),
        ..Limits::default()
    };
    let mut add = |event: TreeEvent<'_>| {
        match event {
            TreeEvent::Position { .. } => expanded += 1,
            TreeEvent::Move(branch) => {
                moves += 1;
                let is_ours = branch.after.position().turn() == side;
                positions += u64::from(!branch.is_transposition && is_ours);
            }
            TreeEvent::Game(_) | TreeEvent::Open | TreeEvent::Close => {}
        }
        Ok(())
    };
    walk(
        &source,
        &[start],
        &limits,
        Order::Levels,
        progress,
        &mut add,
    )?;
    // Each move ends a line, except for the first move to each position that has moves. No move leads to the starting
    // position.
    let lines = moves - expanded + u64::from(expanded > 0);
    Ok((lines, positions))
}

/// Returns the keys of all positions that moves of `source` reach from the positions `starts` in fewer than `plies`
/// half-moves. The positions `starts` are included.
///
/// If `side` is given, returns only positions in which this side is to move. Keys that exceed `memory` are written to
/// temporary files. `progress` advances while the search runs.
pub(super) fn reached_keys(
    source: &impl MoveSource,
    starts: &[VariantPosition],
    side: Option<Color>,
    plies: u16,
    memory: &Memory,
    progress: &mut FractionalProgress<'_>,
) -> Result<SpillingSet> {
    let mut keys = SpillingSet::new(memory.clone());
    if plies == 0 {
        return Ok(keys);
    }
    let mut note = |pos: &Keyed<VariantPosition>| {
        if side.is_none_or(|side| pos.position().turn() == side) {
            keys.insert_key(pos.key())?;
        }
        Ok(())
    };
    for start in starts {
        note(&Keyed::new(start.clone()))?;
    }
    let limits = Limits {
        max_ply: Some(usize::from(plies) - 1),
        memory: memory.clone(),
        ..Limits::default()
    };
    let mut add = |event: TreeEvent<'_>| match event {
        TreeEvent::Move(branch) => note(branch.after),
        _ => Ok(()),
    };
    walk(source, starts, &limits, Order::Levels, progress, &mut add)?;
    Ok(keys)
}

/// Returns `true` if at least one of the sets of position keys in `reached` contains `key`.
pub(super) fn contains(reached: &[SpillingSet], key: u64) -> Result<bool> {
    for keys in reached {
        if keys.contains_key(key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A source of the playable moves of a sorted book. A move is playable if it is legal, has a weight above 0 and, for
/// castling, is spelled as king takes rook, as the format requires.
pub(super) struct PlayableMoves<'a> {
    book: &'a Book,
    absent: KeyFilter,
    positions: u64,
}

impl<'a> PlayableMoves<'a> {
    /// Creates a source of the moves of `book` like [`within`](PlayableMoves::within), with the maximum memory for the
    /// filter of position keys: [`KeyFilter::MAX_BYTES`].
    fn new(book: &'a Book, meter: &Meter) -> Result<PlayableMoves<'a>> {
        PlayableMoves::within(book, meter, KeyFilter::MAX_BYTES)
    }

    /// Creates a source of the moves of `book`. Reads all records once to build a filter of their position keys. The
    /// filter recognizes most keys that the book does not contain, so that looking up these keys need not read the
    /// book.
    ///
    /// The filter takes at most `memory` bytes, but at least 512. A smaller filter recognizes fewer of these keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, or if its keys do not ascend.
    pub(super) fn within(
        book: &'a Book,
        meter: &Meter,
        memory: usize,
    ) -> Result<PlayableMoves<'a>> {
        let mut absent = KeyFilter::new(book.len(), memory);
        let mut positions = 0;
        // Null records hold the header and do not belong to a position.
        let mut last = 0;
        for entry in book.sorted_records(meter) {
            let key = entry?.key;
            if key != last {
                absent.insert(key);
                positions += 1;
            }
            last = key;
        }
        Ok(PlayableMoves {
            book,
            absent,
            positions,
        })
    }

    /// Returns the number of positions that have a record in the book.
    pub(super) fn positions(&self) -> usize {
        self.positions as usize
    }

    /// Returns all records with the position key `key`, in the order of the book, even if their moves are illegal or
    /// their weights are 0.
    pub(super) fn records(&self, key: u64) -> Result<Vec<Entry>> {
        if self.absent.may_contain(key) {
            self.book.moves(key)
        } else {
            Ok(Vec::new())
        }
    }

    /// Returns `true` if the book has a record with the position key `key`, even if its move is illegal or its weight
    /// is 0.
    fn has_records(&self, key: u64) -> Result<bool> {
        Ok(!self.records(key)?.is_empty())
    }
}

impl MoveSource for PlayableMoves<'_> {
    /// Returns the playable moves in the order of the book. A move with several records is returned several times.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let entries = self.records(pos.key())?;
        let moves = entries.into_iter().filter_map(|entry| {
            let mv = playable(pos.position(), entry)?;
            Some(TreeMove::without_evaluation(mv, entry.weight.into(), None))
        });
        Ok(moves.collect())
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }

    fn lacks(&self, key: u64) -> bool {
        !self.absent.may_contain(key)
    }
}

/// Returns the move of the record `entry` in the position `pos` if it is playable, otherwise `None`. A move is playable
/// if it is legal, has a weight above 0 and, for castling, is spelled as king takes rook.
fn playable(pos: &VariantPosition, entry: Entry) -> Option<Move> {
    let mv = entry.mv.to_move(pos)?;
    (entry.weight > 0 && BookMove::from(mv) == entry.mv).then_some(mv)
}

/// A filter that accepts all position keys of a book, and rejects most other keys. It is a set of bits, indexed by the
/// low bits of the keys.
struct KeyFilter {
    bits: Vec<u64>,
}

impl KeyFilter {
    /// The number of bits in the filter for each record of the book. With this number, a key that the book does not
    /// contain passes the filter with a probability of at most 1 in 32. The filter of a large book has fewer bits for
    /// each record, because [`MAX_BYTES`](KeyFilter::MAX_BYTES) limits its size.
    const BITS_PER_RECORD: u64 = 32;

    /// The maximum size of a filter in bytes: 256 MiB. For a book of 20 GB, a filter of this size rejects half of the
    /// keys that the book does not contain.
    const MAX_BYTES: usize = 1 << 28;

    /// Creates an empty filter for a book of `records` records. It takes at most `memory` bytes, but at least 512.
    fn new(records: u64, memory: usize) -> KeyFilter {
        let words = (records * KeyFilter::BITS_PER_RECORD / 64).next_power_of_two();
        let most = memory.clamp(1 << 9, KeyFilter::MAX_BYTES) / size_of::<u64>();
        KeyFilter {
            bits: vec![0; words.min(1 << most.ilog2()) as usize],
        }
    }

    /// Returns the location of a key's bit in the filter: the index of the word that contains the bit, and a mask of
    /// the bit.
    fn bit(&self, key: u64) -> (usize, u64) {
        let word = (key >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (key & 63))
    }

    fn insert(&mut self, key: u64) {
        let (word, bit) = self.bit(key);
        self.bits[word] |= bit;
    }

    fn may_contain(&self, key: u64) -> bool {
        let (word, bit) = self.bit(key);
        self.bits[word] & bit != 0
    }
}

/// Writes all lines of `side` that begin in the position `start` to `out`, as numbered lines of text. On a line, `side`
/// plays moves of the book, and the opponent plays any move after which the book has a move. Each move of `side` is
/// followed by its share of the position's total weight in percent. `path` is the path of the output for error
/// messages, and `meter` shows the progress.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if its keys do not ascend, or if the output cannot be written.
pub fn write(
    book: &Book,
    side: Color,
    start: VariantPosition,
    out: impl Write,
    path: &Path,
    meter: &Meter,
) -> Result<()> {
    let lines = RepliesByName(LinesOf(PlayableMoves::new(book, meter)?, side));
    let mut writer = LineWriter {
        side,
        out,
        path: Vec::new(),
        is_open: false,
        seen: FxHashMap::from_iter([(Keyed::new(start.clone()).exact_identity(), (1, 0))]),
        line: 1,
    };
    Tree::new(lines, start, Limits::default(), meter).walk(Order::Lines, &mut |event| {
        if let TreeEvent::Move(branch) = event {
            writer.add(&branch).at(path, "write")?;
        }
        Ok(())
    })?;
    writer.finish().at(path, "write")
}

/// A source of the moves on the lines of a book, in which the opponent's replies are sorted by their UCI notation.
struct RepliesByName<'a>(LinesOf<PlayableMoves<'a>>);

impl<'a> SourceWrapper for RepliesByName<'a> {
    type Inner = LinesOf<PlayableMoves<'a>>;
    const ADDS_MOVES: bool = true;

    fn inner(&self) -> &LinesOf<PlayableMoves<'a>> {
        &self.0
    }

    fn changed(
        &self,
        pos: &Keyed<VariantPosition>,
        mut moves: Vec<TreeMove>,
    ) -> Result<Vec<TreeMove>> {
        if pos.position().turn() != self.0.1 {
            moves.sort_by_cached_key(|reply| uci(pos.position(), reply.mv));
        }
        Ok(moves)
    }
}

/// A move on the current line of a [`LineWriter`].
struct PathMove {
    /// The identity of the position before the move.
    before: u64,
    /// The text of the move, with its move number and its share.
    text: String,
    /// Whether the side whose lines are written plays the move.
    is_own: bool,
}

struct LineWriter<W> {
    side: Color,
    out: W,
    /// The moves of the current line.
    path: Vec<PathMove>,
    /// Whether the line up to the last move of `path` has not been written yet, and may turn out to be complete.
    is_open: bool,
    /// The number of the line and the ply at which each position first occurred, by identity.
    seen: FxHashMap<u64, (u64, usize)>,
    line: u64,
}

impl<W: Write> LineWriter<W> {
    /// Adds the next move of a depth-first walk to the current line. If the move begins another line, first writes the
    /// previous line if it is complete. If the move leads to an earlier position, also writes the line that ends with
    /// this move.
    fn add(&mut self, branch: &Branch<'_>) -> io::Result<()> {
        let (pos, mv, ply) = (branch.pos.position(), branch.mv.mv, branch.ply);
        if ply < self.path.len() {
            self.end_open_line()?;
        }
        self.path.truncate(ply);
        let is_own = pos.turn() == self.side;
        let number = match ply % 2 {
            0 => format!("{}. ", ply / 2 + 1),
            _ => String::new(),
        };
        let san = SanPlus::from_move(pos.clone(), mv);
        let share = if is_own {
            format!(
                "{{{:.0}%}}",
                100.0 * (branch.mv.weight as f64 / branch.sum as f64)
            )
        } else {
            String::new()
        };
        self.path.push(PathMove {
            before: branch.pos.exact_identity(),
            text: format!("{number}{san}{share} "),
            is_own,
        });
        let after = branch.after.exact_identity();
        self.is_open = !branch.is_transposition;
        if self.is_open {
            self.seen.insert(after, (self.line, ply + 1));
            return Ok(());
        }
        let on_path = self.path.iter().position(|mv| mv.before == after);
        let (line, ply) = self.seen.get(&after).copied().unwrap_or_default();
        self.write_line(&match on_path {
            Some(ply) => format!("{{cycle: ply={ply}}}"),
            None => format!("{{trans: line={line}, ply={ply}}}"),
        })
    }

    /// Writes the current line if it ends with its last move, because the book has no move after any reply of the
    /// opponent. Does nothing if the line has already been written.
    fn end_open_line(&mut self) -> io::Result<()> {
        match self.path.last() {
            Some(last) if self.is_open && last.is_own => self.write_line(""),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.end_open_line()?;
        self.out.flush()
    }

    /// Writes the current line, followed by `note`. The note says why the line ends early, or is empty if the line is
    /// complete.
    fn write_line(&mut self, note: &str) -> io::Result<()> {
        self.is_open = false;
        write!(self.out, "{}: ", self.line)?;
        for mv in &self.path {
            self.out.write_all(mv.text.as_bytes())?;
        }
        self.line += 1;
        writeln!(self.out, "{note}")
    }
}

/// The numbers of positions of a book that White and Black can reach. To reach a position, a side may play any legal
/// moves, but its opponent plays only moves after which the book has a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Reachable {
    /// The number of positions that can be reached if White plays any legal moves. Includes the positions on White's
    /// lines.
    pub white: u64,
    /// The number of positions that can be reached if Black plays any legal moves. Includes the positions on Black's
    /// lines.
    pub black: u64,
}

/// Counts the positions of a book that White can reach, and the positions that Black can reach. To reach a position, a
/// side may play any legal moves, but its opponent plays only moves after which the book has a move. Keys of positions
/// that exceed `memory` are written to temporary files. `meter` shows the progress.
///
/// `polyglot info-book -exact` searches for the same positions, but misses some of them: it mistakes positions of
/// earlier lines for repetitions.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if its keys do not ascend, or if a temporary file cannot be written.
pub fn reachable(book: &Book, memory: &Memory, meter: &Meter) -> Result<Reachable> {
    let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
    let limits = Limits {
        memory: memory.share(4),
        ..Limits::default()
    };
    let mut done = ByColor::new_with(|_| FractionalProgress::new(meter));
    let mut count = |side| {
        let start = Variant::Standard.start();
        let has_start = start.turn() == side && moves.has_records(key(&start))?;
        let mut positions = u64::from(has_start);
        let source = AnyMovesOf(LinesOf(&moves, side));
        let done = done.get_mut(side);
        let mut add = |event: TreeEvent<'_>| {
            if let TreeEvent::Move(branch) = event
                && !branch.is_transposition
                && branch.after.position().turn() == side
            {
                positions += u64::from(moves.has_records(branch.after.key())?);
            }
            Ok(())
        };
        walk(&source, &[start], &limits, Order::Levels, done, &mut add)?;
        Ok(positions)
    };
    Ok(Reachable {
        white: count(Color::White)?,
        black: count(Color::Black)?,
    })
}

/// A source of moves for a walk in which one side, that of the inner source, may play any legal move. The other side
/// plays only the moves that the inner source contains.
struct AnyMovesOf<S>(LinesOf<S>);

impl<S: MoveSource> SourceWrapper for AnyMovesOf<S> {
    type Inner = LinesOf<S>;
    const ADDS_MOVES: bool = true;

    fn inner(&self) -> &LinesOf<S> {
        &self.0
    }

    fn changed(&self, pos: &Keyed<VariantPosition>, moves: Vec<TreeMove>) -> Result<Vec<TreeMove>> {
        if pos.position().turn() != self.0.1 {
            return Ok(moves);
        }
        let legal = pos.position().legal_moves().into_iter();
        let added = legal.map(|mv| TreeMove {
            is_in_source: false,
            ..TreeMove::without_evaluation(mv, 0, None)
        });
        Ok(added.collect())
    }
}

/// A source of the legal moves of a book, for a walk through its positions. The source also collects the illegal moves
/// in each position that the walk visits.
pub(super) struct LegalMoves<'a> {
    moves: PlayableMoves<'a>,
    pub(super) illegal: RefCell<FxHashSet<u128>>,
    /// The number of records whose position the walk has not looked up yet.
    pub(super) unseen: Cell<u64>,
}

impl<'a> LegalMoves<'a> {
    /// Creates a source of the legal moves among `moves`. `records` is the number of records in their book.
    pub(super) fn new(moves: PlayableMoves<'a>, records: u64) -> LegalMoves<'a> {
        LegalMoves {
            moves,
            illegal: RefCell::default(),
            unseen: Cell::new(records),
        }
    }

    /// Returns the book's records of the position `pos` that contain a legal move, each with this move. Adds the
    /// illegal moves in the other records of the position to the collected illegal moves.
    pub(super) fn of(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<(Entry, Move)>> {
        let mut legal = Vec::new();
        if has_third_check(pos.position()) {
            return Ok(legal);
        }
        for entry in self.moves.records(pos.key())? {
            match entry.mv.to_move(pos.position()) {
                Some(mv) => legal.push((entry, mv)),
                None => {
                    let is_new = self
                        .illegal
                        .borrow_mut()
                        .insert(key_and_move(entry.key, entry.mv));
                    self.unseen.set(self.unseen.get() - u64::from(is_new));
                }
            }
        }
        Ok(legal)
    }
}

impl MoveSource for LegalMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.of(pos)?.into_iter();
        Ok(moves
            .map(|(entry, mv)| TreeMove::without_evaluation(mv, entry.weight.into(), None))
            .collect())
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.moves.position_id(pos)
    }

    fn lacks(&self, key: u64) -> bool {
        self.moves.lacks(key)
    }
}

/// Returns `true` if the game has ended because one side gave three checks. Keys do not contain the number of checks,
/// so a book may have records with the key of such a position. Their moves belong to positions with fewer checks, and
/// are not legal after the third check.
pub(super) fn has_third_check(pos: &VariantPosition) -> bool {
    matches!(pos, VariantPosition::ThreeCheck(_)) && pos.is_variant_end()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use shakmaty::Chess;

    use super::{super::Entry, *};
    use crate::{
        chess::position::{BookMove, Variant, from_text, key, read_move},
        storage::sort::Memory,
    };

    proptest! {
        #[test]
        fn every_key_of_a_book_has_its_playable_moves(
            mut keys in proptest::collection::vec(prop_oneof![1..99u64, any::<u64>()], 0..600),
            memory in 0..1_000_000usize,
        ) {
            keys.sort_unstable();
            let records = keys.iter().flat_map(|key| (u128::from(*key) << 64).to_be_bytes());
            let book = Book::from_bytes(records.collect()).unwrap();
            let meter = Meter::default();
            let moves = PlayableMoves::within(&book, &meter, memory).unwrap();
            for key in &keys {
                prop_assert!(moves.has_records(*key).unwrap());
            }
            keys.dedup();
            prop_assert_eq!(moves.positions, keys.len() as u64);
            prop_assert!(!moves.has_records(key(&Variant::Standard.start())).unwrap());
        }
    }

    /// Creates a book of lines in which every move has weight 1.
    fn book(lines: &[&str]) -> Book {
        let mut entries = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            for ply in 0..words.len() {
                let pos = from_text(None, Some(&words[..ply].join(" "))).unwrap();
                let mv = read_move(&pos, words[ply].as_bytes()).unwrap();
                entries.push((key(&pos), BookMove::from(mv)));
            }
        }
        entries.sort_unstable();
        entries.dedup();
        let bytes = entries.into_iter().flat_map(|(key, mv)| {
            let entry = Entry {
                key,
                mv,
                weight: 1,
                learn: 0,
            };
            entry.to_bytes()
        });
        Book::from_bytes(bytes.collect()).unwrap()
    }

    fn dumped(book: &Book, side: Color) -> Vec<String> {
        let mut out = Vec::new();
        write(
            book,
            side,
            Variant::Standard.start(),
            &mut out,
            "lines".as_ref(),
            &Meter::default(),
        )
        .unwrap();
        String::from_utf8(out)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn lines_of_both_sides() {
        let book = book(&["e4 e5 Nf3", "e4 c5 Nf3", "d4 d5"]);
        assert_eq!(
            dumped(&book, Color::White),
            [
                "1: 1. d4{50%}  ",
                "2: 1. e4{50%} c5 2. Nf3{100%} ",
                "3: 1. e4{50%} e5 2. Nf3{100%} ",
            ]
            .map(|line| line.replace("  ", " "))
        );
        assert_eq!(
            dumped(&book, Color::Black),
            [
                "1: 1. d4 d5{100%} ",
                "2: 1. e4 c5{50%} ",
                "3: 1. e4 e5{50%} "
            ]
        );
        let lines = count(&book, &Memory::default(), &Meter::default()).unwrap();
        assert_eq!((lines.white, lines.black), (3, 3));
        assert_eq!(
            (
                lines.white_positions,
                lines.black_positions,
                lines.positions
            ),
            (3, 2, 5)
        );
        assert_eq!(
            reachable(&book, &Memory::default(), &Meter::default()).unwrap(),
            Reachable { white: 3, black: 2 }
        );
    }

    #[test]
    fn transpositions_and_cycles_end_lines() {
        let transposing = book(&["d4 d5 c4 e6 Nc3", "c4 e6 d4 d5 Nc3"]);
        let lines = dumped(&transposing, Color::White);
        assert!(lines[1].ends_with("{trans: line=1, ply=4}"), "{lines:?}");
        assert_eq!(
            count(&transposing, &Memory::default(), &Meter::default())
                .unwrap()
                .white,
            lines.len() as u64
        );
        let cycling = book(&["Nf3 Nf6 Ng1 Ng8"]);
        let lines = dumped(&cycling, Color::White);
        assert_eq!(
            lines,
            ["1: 1. Nf3{100%} Nf6 2. Ng1{100%} Ng8 {cycle: ply=0}"]
        );
        assert_eq!(
            count(&cycling, &Memory::default(), &Meter::default())
                .unwrap()
                .white,
            1
        );
    }

    #[test]
    fn a_line_of_any_length_needs_no_stack() {
        // A random game of thousands of plies: the code must not recurse.
        let mut pos = Keyed::new(Chess::default());
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
        let mut state = 1u64;
        while entries.len() < 5_000 && seen.insert(pos.key()) {
            let moves: Vec<Move> = pos
                .position()
                .legal_moves()
                .into_iter()
                .filter(|mv| !mv.is_capture())
                .collect();
            if moves.is_empty() {
                break;
            }
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mv = moves[(state >> 33) as usize % moves.len()];
            entries.push(Entry {
                key: pos.key(),
                mv: BookMove::from(mv),
                weight: 1,
                learn: 0,
            });
            pos.play(mv);
        }
        let plies = entries.len();
        assert!(plies > 200, "{plies}");
        entries.sort_by_key(|entry| entry.key);
        let bytes = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
        let book = Book::from_bytes(bytes).unwrap();
        let lines = dumped(&book, Color::White);
        assert_eq!(
            count(&book, &Memory::default(), &Meter::default())
                .unwrap()
                .white,
            lines.len() as u64
        );
        assert!(
            lines
                .iter()
                .any(|line| line.matches('%').count() >= plies / 2 - 1)
        );
    }

    /// Collects the positions of `side` that can be reached if this side plays any legal moves, and the other side plays
    /// moves after which the book has a move. Returns how many of them are in the book.
    fn brute_force(book: &Book, side: Color) -> u64 {
        let has_moves = |pos: &Keyed<VariantPosition>| {
            let entries = book.moves(pos.key()).unwrap().into_iter();
            entries
                .filter_map(|entry| playable(pos.position(), entry))
                .count()
                > 0
        };
        let (mut seen, mut found) = (HashSet::new(), 0);
        let mut waiting = vec![Keyed::new(Variant::Standard.start())];
        while let Some(pos) = waiting.pop() {
            if !seen.insert(pos.key()) {
                continue;
            }
            let is_own = pos.position().turn() == side;
            found += u64::from(is_own && has_moves(&pos));
            for mv in pos.position().legal_moves() {
                let mut after = pos.clone();
                after.play(mv);
                if is_own || has_moves(&after) {
                    waiting.push(after);
                }
            }
        }
        found
    }

    #[test]
    fn all_reachable_positions_are_counted() {
        for lines in [
            &["e4 e5 Nf3", "e4 c5 Nf3", "d4 d5"][..],
            // White reaches the position after 2. Nf3 by 1. Nf3, and so on.
            &[
                "e4 e5 Nf3 Nc6 Bb5 a6",
                "Nf3 Nc6 e4 d6 d4",
                "Nc3 Nf6 Nb1 Ng8 h4",
            ],
            &[
                "Nf3 Nf6 Ng1 Ng8",
                "a3 a6 b3 b6 c3 c6 d3 d6",
                "a3 b6 b3 a6 d3 c6 c3 d6 e3",
            ],
        ] {
            let book = book(lines);
            let counted = reachable(&book, &Memory::default(), &Meter::default()).unwrap();
            let [white, black] = [Color::White, Color::Black].map(|side| brute_force(&book, side));
            assert_eq!(counted, Reachable { white, black }, "{lines:?}");
        }
    }

    #[test]
    fn an_empty_book_has_no_lines() {
        let book = Book::from_bytes(Vec::new()).unwrap();
        assert_eq!(
            count(&book, &Memory::default(), &Meter::default()).unwrap(),
            Lines::default()
        );
        assert!(dumped(&book, Color::White).is_empty());
        assert!(dumped(&book, Color::Black).is_empty());
    }

    #[test]
    fn a_book_that_is_not_sorted_is_an_error() {
        let sorted = book(&["e4 e5 Nf3"]);
        let mut records: Vec<_> = sorted.iter().map(|entry| entry.unwrap()).collect();
        records.reverse();
        let bytes = records.into_iter().flat_map(Entry::to_bytes).collect();
        let book = Book::from_bytes(bytes).unwrap();
        assert!(
            count(&book, &Memory::default(), &Meter::default())
                .unwrap_err()
                .to_string()
                .contains("not sorted")
        );
        assert!(reachable(&book, &Memory::default(), &Meter::default()).is_err());
        assert!(
            write(
                &book,
                Color::White,
                Variant::Standard.start(),
                Vec::new(),
                "lines".as_ref(),
                &Meter::default()
            )
            .is_err()
        );
    }

    #[test]
    fn books_in_files_and_in_memory_have_the_same_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        let memory = book(&[
            "e4 e5 Nf3",
            "e4 c5 Nf3",
            "d4 d5",
            "d4 d5 c4 e6 Nc3",
            "c4 e6 d4 d5",
        ]);
        let bytes: Vec<u8> = memory
            .iter()
            .flat_map(|entry| entry.unwrap().to_bytes())
            .collect();
        std::fs::write(&path, bytes).unwrap();
        let file = Book::open(&path).unwrap();
        assert_eq!(
            count(&file, &Memory::default(), &Meter::default()).unwrap(),
            count(&memory, &Memory::default(), &Meter::default()).unwrap()
        );
        assert_eq!(
            reachable(&file, &Memory::default(), &Meter::default()).unwrap(),
            reachable(&memory, &Memory::default(), &Meter::default()).unwrap()
        );
        assert_eq!(dumped(&file, Color::White), dumped(&memory, Color::White));
    }
}

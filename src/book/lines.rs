//! The lines of a book: what one side can play from the starting position by the book, against every
//! reply after which the book still knows a move.
//!
//! A line ends where the book ends, and where it comes to a position that stood in it or in a line
//! before. [`count`] gives the numbers of `polyglot info-book`, [`write()`] the lines of
//! `polyglot dump-book`.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use shakmaty::{Chess, Color, Move, Position, san::SanPlus};

use super::{entry::Entry, open::Book};
use crate::position::{BookMove, Keyed, Rules, uci};

/// The numbers of a book's lines and positions.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lines {
    /// Lines with White's moves from the book.
    pub white: u64,
    /// Lines with Black's.
    pub black: u64,
    /// Positions on White's lines in which the book knows White's move.
    pub white_positions: u64,
    /// The same for Black.
    pub black_positions: u64,
    /// All positions of the book.
    pub positions: u64,
}

/// The positions that can be reached when a side makes any move it likes against replies after which
/// the book knows a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Reachable {
    /// For White, those on its lines among them.
    pub white: u64,
    /// For Black.
    pub black: u64,
}

/// Counts the lines and positions of a book.
pub fn count(book: &Book) -> Lines {
    let knowledge = Knowledge::new(book);
    let mut lines = Lines {
        positions: knowledge.positions,
        ..Lines::default()
    };
    (lines.white, lines.white_positions) = knowledge.count_lines(Color::White);
    (lines.black, lines.black_positions) = knowledge.count_lines(Color::Black);
    lines
}

/// Counts the positions that a side can reach by any moves of its own, with all peculiarities of
/// `polyglot info-book -exact`.
pub fn reachable(book: &Book) -> Reachable {
    super::exact::reachable(book)
}

/// Writes the lines of a side, one numbered line each, with the percentage of each of its moves. The
/// side's moves come in the order of the book, the opponent's in that of their UCI text. Lines begin
/// at `start`.
///
/// # Errors
///
/// What `out` answers.
pub fn write<P: Rules>(book: &Book, side: Color, start: P, out: impl Write) -> io::Result<()> {
    LineWriter {
        knowledge: Knowledge::new(book),
        side,
        out,
        path: Vec::new(),
        on_path: HashMap::default(),
        seen: HashMap::default(),
        line: 1,
    }
    .write(start)
}

/// What a book knows, by key.
pub(super) struct Knowledge<'a> {
    book: &'a Book,
    /// The first record of each position.
    first: HashMap<u64, usize, KeyHasher>,
    positions: u64,
}

/// Keys are random already.
pub(super) type KeyHasher = std::hash::BuildHasherDefault<TakeKey>;

#[derive(Default)]
pub(super) struct TakeKey(u64);

impl std::hash::Hasher for TakeKey {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        // Books hold neighbours in order, and the table takes its place from the lowest bits.
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A move that the book knows, and how often it would be chosen, from 0 to 1.
#[derive(Copy, Clone)]
struct Choice {
    mv: Move,
    share: f64,
}

impl<'a> Knowledge<'a> {
    pub(super) fn new(book: &'a Book) -> Knowledge<'a> {
        let mut first = HashMap::with_capacity_and_hasher(book.len(), KeyHasher::default());
        let mut positions = 0;
        let mut last = 0;
        for (index, entry) in book.iter().enumerate() {
            if entry.key != last {
                last = entry.key;
                positions += 1;
                first.entry(entry.key).or_insert(index);
            }
        }
        Knowledge {
            book,
            first,
            positions,
        }
    }

    fn entries(&self, key: u64) -> impl Iterator<Item = Entry> + '_ {
        let start = self.first.get(&key).copied().unwrap_or(self.book.len());
        (start..self.book.len())
            .map_while(|index| self.book.get(index))
            .take_while(move |entry| entry.key == key)
    }

    pub(super) fn has_key(&self, key: u64) -> bool {
        self.first.contains_key(&key)
    }

    /// The moves of the book that can be chosen, each with its share.
    fn choices<P: Rules>(&self, pos: &Keyed<P>) -> Vec<Choice> {
        let entries: Vec<(Move, u16)> = self
            .entries(pos.key())
            .filter_map(|entry| Some((playable(pos.position(), &entry)?, entry.weight)))
            .collect();
        let sum: f64 = entries.iter().map(|(_, weight)| f64::from(*weight)).sum();
        entries
            .into_iter()
            .map(|(mv, weight)| Choice {
                mv,
                share: f64::from(weight) / sum,
            })
            .collect()
    }

    /// The moves of the book that can be chosen, in its order.
    pub(super) fn moves<P: Rules>(&self, pos: &Keyed<P>) -> Vec<Move> {
        self.choices(pos)
            .into_iter()
            .map(|choice| choice.mv)
            .collect()
    }

    fn knows_a_move<P: Rules>(&self, pos: &Keyed<P>) -> bool {
        self.entries(pos.key())
            .any(|entry| playable(pos.position(), &entry).is_some())
    }

    /// The positions after the replies that the book knows how to go on from.
    pub(super) fn replies<P: Rules>(&self, pos: &Keyed<P>) -> Vec<(Move, Keyed<P>)> {
        let mut replies = Vec::new();
        for mv in pos.position().legal_moves() {
            let mut after = pos.clone();
            after.play(mv);
            // Most positions are not in the book, and that is quickly known.
            if self.has_key(after.key()) && self.knows_a_move(&after) {
                replies.push((mv, after));
            }
        }
        replies
    }

    /// The lines of a side, and the positions on them in which it is to move and the book knows them.
    ///
    /// Each position is gone on from once, so the number of lines is that of arrivals at positions
    /// that were there before and of ends, in whatever order one goes.
    fn count_lines(&self, side: Color) -> (u64, u64) {
        let start = Keyed::new(Chess::default());
        let mut seen = Seen::default();
        seen.insert(start.key(), ());
        let mut waiting = vec![start];
        let (mut lines, mut positions) = (0, 0);
        while let Some(pos) = waiting.pop() {
            let ours = pos.position().turn() == side;
            let next: Vec<Keyed<Chess>> = if ours {
                positions += u64::from(self.has_key(pos.key()));
                let after = |choice: Choice| {
                    let mut after = pos.clone();
                    after.play(choice.mv);
                    after
                };
                self.choices(&pos).into_iter().map(after).collect()
            } else {
                self.replies(&pos)
                    .into_iter()
                    .map(|(_, after)| after)
                    .collect()
            };
            // The starting position is not behind a move of the book.
            if next.is_empty() && !ours && pos.position() != &Chess::default() {
                lines += 1;
            }
            for after in next {
                if seen.insert(after.key(), ()).is_some() {
                    lines += 1;
                } else {
                    waiting.push(after);
                }
            }
        }
        (lines, positions)
    }
}

/// Positions by key.
pub(super) type Seen = HashMap<u64, (), KeyHasher>;

/// The legal move of a record that may be chosen. Castling counts only as the format writes it.
fn playable<P: Rules>(pos: &P, entry: &Entry) -> Option<Move> {
    if entry.weight == 0 {
        return None;
    }
    entry
        .mv
        .to_move(pos)
        .filter(|mv| BookMove::from(*mv) == entry.mv)
}

/// A position on the present line and the moves from it that are still to be gone.
struct Node<P> {
    pos: Keyed<P>,
    /// The next ones last.
    moves: Vec<Choice>,
    /// Whether any move led on from here.
    has_moves: bool,
    /// The move being gone.
    current: Option<Choice>,
}

struct LineWriter<'a, P, W> {
    knowledge: Knowledge<'a>,
    side: Color,
    out: W,
    path: Vec<Node<P>>,
    /// The ply at which a position stands on the present line.
    on_path: HashMap<u64, usize, KeyHasher>,
    /// The line and the ply at which a position first stood.
    seen: HashMap<u64, (u64, usize), KeyHasher>,
    line: u64,
}

impl<P: Rules, W: Write> LineWriter<'_, P, W> {
    fn write(mut self, start: P) -> io::Result<()> {
        self.enter(Keyed::new(start));
        while let Some(node) = self.path.last_mut() {
            let Some(choice) = node.moves.pop() else {
                self.leave()?;
                continue;
            };
            node.current = Some(choice);
            let mut after = node.pos.clone();
            after.play(choice.mv);
            let key = after.key();
            if let Some(ply) = self.on_path.get(&key) {
                let note = format!("{{cycle: ply={ply}}}");
                self.write_line(&note)?;
            } else if let Some((line, ply)) = self.seen.get(&key) {
                let note = format!("{{trans: line={line}, ply={ply}}}");
                self.write_line(&note)?;
            } else {
                self.enter(after);
            }
        }
        self.out.flush()
    }

    fn enter(&mut self, pos: Keyed<P>) {
        let ply = self.path.len();
        self.on_path.insert(pos.key(), ply);
        self.seen.insert(pos.key(), (self.line, ply));
        let mut moves = if pos.position().turn() == self.side {
            self.knowledge.choices(&pos)
        } else {
            let mut replies = self.knowledge.replies(&pos);
            replies.sort_by_cached_key(|(mv, _)| uci(pos.position(), *mv));
            replies
                .into_iter()
                .map(|(mv, _)| Choice { mv, share: 0.0 })
                .collect()
        };
        moves.reverse();
        self.path.push(Node {
            has_moves: !moves.is_empty(),
            pos,
            moves,
            current: None,
        });
    }

    /// Goes back a move; if the side's own move led to where nothing is known, that is a line.
    fn leave(&mut self) -> io::Result<()> {
        let Some(node) = self.path.pop() else {
            return Ok(());
        };
        self.on_path.remove(&node.pos.key());
        let is_end = !node.has_moves && node.pos.position().turn() != self.side;
        if is_end && !self.path.is_empty() {
            self.write_line("")?;
        }
        Ok(())
    }

    fn write_line(&mut self, note: &str) -> io::Result<()> {
        write!(self.out, "{}: ", self.line)?;
        for (ply, node) in self.path.iter().enumerate() {
            let Some(choice) = node.current else {
                continue;
            };
            if ply % 2 == 0 {
                write!(self.out, "{}. ", ply / 2 + 1)?;
            }
            let san = SanPlus::from_move(node.pos.position().clone(), choice.mv);
            write!(self.out, "{san}")?;
            if node.pos.position().turn() == self.side {
                write!(self.out, "{{{:.0}%}}", 100.0 * choice.share)?;
            }
            write!(self.out, " ")?;
        }
        writeln!(self.out, "{note}")?;
        self.line += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{from_text, key, read_move};

    /// A book of lines, every move with weight 1.
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
        write(book, side, Chess::default(), &mut out).unwrap();
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
        let lines = count(&book);
        assert_eq!((lines.white, lines.black), (3, 3));
        assert_eq!(
            (
                lines.white_positions,
                lines.black_positions,
                lines.positions
            ),
            (3, 2, 5)
        );
        assert_eq!(reachable(&book), Reachable { white: 3, black: 2 });
    }

    #[test]
    fn transpositions_and_cycles_end_lines() {
        let transposing = book(&["d4 d5 c4 e6 Nc3", "c4 e6 d4 d5 Nc3"]);
        let lines = dumped(&transposing, Color::White);
        assert!(lines[1].ends_with("{trans: line=1, ply=4}"), "{lines:?}");
        assert_eq!(count(&transposing).white, lines.len() as u64);
        let cycling = book(&["Nf3 Nf6 Ng1 Ng8"]);
        let lines = dumped(&cycling, Color::White);
        assert_eq!(
            lines,
            ["1: 1. Nf3{100%} Nf6 2. Ng1{100%} Ng8 {cycle: ply=0}"]
        );
        assert_eq!(count(&cycling).white, 1);
    }

    #[test]
    fn a_line_of_any_length_needs_no_stack() {
        // A game of chance over thousands of half-moves: nothing in it may recurse.
        let mut pos = Keyed::new(Chess::default());
        let mut entries = Vec::new();
        let mut seen = Seen::default();
        let mut state = 1u64;
        while entries.len() < 5_000 && seen.insert(pos.key(), ()).is_none() {
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
        assert_eq!(count(&book).white, lines.len() as u64);
        assert!(
            lines
                .iter()
                .any(|line| line.matches('%').count() >= plies / 2 - 1)
        );
    }

    #[test]
    fn an_empty_book_has_no_lines() {
        let book = Book::from_bytes(Vec::new()).unwrap();
        assert_eq!(count(&book), Lines::default());
        assert!(dumped(&book, Color::White).is_empty());
        assert!(dumped(&book, Color::Black).is_empty());
    }
}

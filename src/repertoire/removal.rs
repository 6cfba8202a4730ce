//! Removing moves from the text of a repertoire in PGN.

use std::ops::Range;

use rustc_hash::FxHashMap;
use shakmaty::{Move, variant::VariantPosition};

use crate::{
    pgn::{GameReader, Token, start_of},
    position::{Keyed, read_move},
};

/// The maximum nesting depth of variations from which moves are removed. It bounds the depth of recursion. Variations
/// that are nested deeper stay unchanged.
const MAX_NESTING: usize = 64;

/// A set of moves to remove from a repertoire. Each element is a move in a certain position.
#[derive(Clone, Default, Debug)]
pub struct RemovedMoves {
    /// The moves, keyed by the identity of their position.
    moves: FxHashMap<u64, Vec<Move>>,
}

impl RemovedMoves {
    /// Adds the move `mv`, played in the position `pos`, to the set.
    pub fn insert(&mut self, pos: &Keyed<VariantPosition>, mv: Move) {
        let moves = self.moves.entry(pos.identity()).or_default();
        if !moves.contains(&mv) {
            moves.push(mv);
        }
    }

    /// Returns `true` if the set contains the move `mv`, played in the position `pos`.
    pub fn contains(&self, pos: &Keyed<VariantPosition>, mv: Move) -> bool {
        let moves = self.moves.get(&pos.identity());
        moves.is_some_and(|moves| moves.contains(&mv))
    }

    /// Returns `true` if the set contains no move.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Copies the games in `text` to `out`, without the moves in this set and the moves that follow them. A move is
    /// removed in every game that reaches its position. Tags, comments, and the order of the remaining moves and
    /// variations stay unchanged. `games` must be a reader of the whole `text`.
    ///
    /// If a removed move has variations, the first variation that still has moves replaces the removed move and its
    /// continuation. The other variations become alternatives to the first move of this variation.
    pub(super) fn cut(&self, text: &[u8], mut games: GameReader<'_>, out: &mut Vec<u8>) {
        let mut copied = 0;
        while games.next_game() {
            let moves = games.offset();
            let start = start_of(games.tags()).ok();
            let start = start.map(|(_, start)| Keyed::new(start));
            let game = self.read(&mut games, text, start);
            if game.lacks_moves {
                out.extend_from_slice(&text[copied..moves]);
                let mut writer = Writer {
                    text,
                    out,
                    has_skipped: false,
                };
                writer.line(&game.main);
                copied = game.main.content.end;
                writer.begin_rest(text.get(copied));
            }
        }
        out.extend_from_slice(&text[copied..]);
    }

    /// Reads the moves of the current game of `games`, a reader of `text`, and marks those that are in this set.
    /// `start` is the position in which the game starts, or `None` if it is unknown.
    fn read(
        &self,
        games: &mut GameReader<'_>,
        text: &[u8],
        start: Option<Keyed<VariantPosition>>,
    ) -> ReadGame {
        let moves = games.offset();
        let end_of_words = |end: usize| moves + text[moves..end.max(moves)].trim_ascii_end().len();
        let mut lines = vec![OpenLine::new(moves, start)];
        let (mut lacks_moves, mut too_deep) = (false, 0_u64);
        loop {
            let (begin, token) = games.next_token_with_begin();
            let is_deepest = lines.len() > MAX_NESTING;
            let is_variation = lines.len() > 1;
            let line = lines.last_mut().expect("the main line is never closed");
            match token {
                Token::BeginVariation if too_deep > 0 || is_deepest || line.moves.is_empty() => {
                    too_deep += 1;
                }
                Token::BeginVariation => {
                    line.end_last_move(begin);
                    let branch = OpenLine::new(games.offset(), line.before.clone());
                    lines.push(branch);
                }
                Token::EndVariation if too_deep > 0 => too_deep -= 1,
                Token::EndVariation => {
                    let variation = lines.pop().expect("a variation was open").closed(begin);
                    let line = lines.last_mut().expect("a variation is inside a line");
                    let branch = line.moves.last_mut().expect("a variation follows a move");
                    branch.variations.push(variation);
                }
                _ if too_deep > 0 => {}
                Token::NullMove { .. } => {
                    line.push(begin, false);
                    line.now = None;
                }
                Token::Move { text, .. } | Token::Unreadable { text, .. } => {
                    let mv = line.now.as_ref().map(|pos| read_move(pos.position(), text));
                    if !is_variation
                        && mv.is_some_and(|mv| mv.is_err())
                        && games.is_double_loss(text)
                    {
                        return ReadGame::new(lines, end_of_words(begin), lacks_moves);
                    }
                    let is_removed = line.play(begin, mv.and_then(Result::ok), self);
                    lacks_moves |= is_removed;
                }
                Token::End(_) => return ReadGame::new(lines, end_of_words(begin), lacks_moves),
            }
        }
    }
}

/// A game whose moves have been read. Its lines and moves are stored as ranges of offsets in the text.
struct ReadGame {
    main: ReadLine,
    /// Whether one or more moves of the game must be removed.
    lacks_moves: bool,
}

impl ReadGame {
    /// Creates a game from its main line `lines[0]`, whose text ends at the offset `end`. The other lines are
    /// variations that were never closed. They are ignored, so their text stays unchanged. `lacks_moves` is `true` if
    /// at least one move must be removed.
    fn new(mut lines: Vec<OpenLine>, end: usize, lacks_moves: bool) -> ReadGame {
        lines.truncate(1);
        let main = lines.pop().expect("the main line is never closed");
        ReadGame {
            main: main.closed(end),
            lacks_moves,
        }
    }
}

/// A main line or a variation whose moves have been read.
struct ReadLine {
    /// The text of the line, without the parentheses of a variation, and without the result of a game and the white
    /// space before the result.
    content: Range<usize>,
    moves: Vec<ReadLineMove>,
}

/// A move of a line, with the variations that are alternatives to it.
struct ReadLineMove {
    /// The text of the move, with the number before it, and with the marks and comments before its first variation.
    text: Range<usize>,
    is_removed: bool,
    variations: Vec<ReadLine>,
}

/// A main line or a variation whose moves are being read.
struct OpenLine {
    begin: usize,
    moves: Vec<ReadLineMove>,
    /// The position before the last move, or `None` if it is unknown.
    before: Option<Keyed<VariantPosition>>,
    /// The position after the last move, or `None` if it is unknown.
    now: Option<Keyed<VariantPosition>>,
}

impl OpenLine {
    /// Creates a line without moves whose text begins at the offset `begin`. `now` is the position in which the line
    /// starts, or `None` if it is unknown.
    fn new(begin: usize, now: Option<Keyed<VariantPosition>>) -> OpenLine {
        OpenLine {
            begin,
            moves: Vec::new(),
            before: None,
            now,
        }
    }

    /// Adds the move `mv`, whose text begins at the offset `begin`. Returns `true` if `removed` contains the move. If
    /// `mv` is `None`, the move cannot be played, and the positions after it are unknown.
    fn play(&mut self, begin: usize, mv: Option<Move>, removed: &RemovedMoves) -> bool {
        let pos = self.now.take();
        let is_removed = pos.as_ref().zip(mv);
        let is_removed = is_removed.is_some_and(|(pos, mv)| removed.contains(pos, mv));
        self.push(begin, is_removed);
        if let Some((mut pos, mv)) = pos.zip(mv) {
            self.before = Some(pos.clone());
            pos.play(mv);
            self.now = Some(pos);
        }
        is_removed
    }

    fn push(&mut self, begin: usize, is_removed: bool) {
        self.end_last_move(begin);
        self.before = None;
        self.moves.push(ReadLineMove {
            text: begin..begin,
            is_removed,
            variations: Vec::new(),
        });
    }

    /// Sets the end of the last move's text to the offset `end`. Does nothing if a variation after the move has
    /// already set it.
    fn end_last_move(&mut self, end: usize) {
        if let Some(last) = self.moves.last_mut()
            && last.text.is_empty()
        {
            last.text.end = end;
        }
    }

    /// Converts the line to a [`ReadLine`] after its last move has been read. The text of the line ends at the offset
    /// `end`.
    fn closed(mut self, end: usize) -> ReadLine {
        self.end_last_move(end);
        ReadLine {
            content: self.begin..end,
            moves: self.moves,
        }
    }
}

impl ReadLine {
    /// Returns `true` if the line still has moves after the removal: if its first move is not removed, or if a
    /// variation replaces this move.
    fn remains(&self) -> bool {
        let first = self.moves.first();
        first.is_some_and(|first| {
            !first.is_removed || first.variations.iter().any(ReadLine::remains)
        })
    }

    /// Returns the range of the text before the first move of the line. It may contain a comment.
    fn preface(&self) -> Range<usize> {
        let first = self.moves.first();
        self.content.start..first.map_or(self.content.end, |first| first.text.start)
    }
}

/// A writer that copies the text of a game without the removed parts.
struct Writer<'a> {
    text: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Whether a part of the text was left out after the last byte of `out`.
    has_skipped: bool,
}

impl Writer<'_> {
    /// Writes a line without its removed moves.
    fn line<'l>(&mut self, mut line: &'l ReadLine) {
        // The other variations of a removed move, if its first remaining variation replaces it.
        let mut others: Vec<&'l ReadLine> = Vec::new();
        'line: loop {
            self.put(line.preface());
            let ends = line.moves.iter().skip(1).map(|next| next.text.start);
            let ends = ends.chain([line.content.end]);
            for (mv, end) in line.moves.iter().zip(ends) {
                let here = std::mem::take(&mut others);
                if mv.is_removed {
                    let mut remaining = mv.variations.iter().chain(here);
                    let Some(first) = remaining.by_ref().find(|other| other.remains()) else {
                        self.has_skipped = true;
                        return;
                    };
                    others = remaining.collect();
                    line = first;
                    continue 'line;
                }
                self.put(mv.text.clone());
                let mut at = mv.text.end;
                for variation in &mv.variations {
                    // The comments between two variations stay.
                    let content = &variation.content;
                    self.put(at..content.start - 1);
                    self.variation(variation);
                    at = content.end + 1;
                }
                here.into_iter().for_each(|other| self.variation(other));
                self.put(at..end);
            }
            return;
        }
    }

    /// Writes a variation in parentheses. Writes nothing if all its moves are removed.
    fn variation(&mut self, line: &ReadLine) {
        if !line.remains() && !line.moves.is_empty() {
            self.has_skipped = true;
            return;
        }
        self.separate();
        self.has_skipped = false;
        self.out.push(b'(');
        self.line(line);
        if std::mem::take(&mut self.has_skipped) {
            self.trim();
        }
        self.out.push(b')');
    }

    /// Copies the part `range` of the game's text to the output. If the part would otherwise be joined to the last word
    /// of the output, writes a space first.
    fn put(&mut self, range: Range<usize>) {
        let mut part = &self.text[range.clone()];
        // Two line breaks around a skipped part would become a blank line, which ends a game for some programs.
        if self.has_skipped && self.out.last().is_some_and(u8::is_ascii_whitespace) {
            part = part.trim_ascii_start();
        }
        let Some(first) = part.first() else {
            return;
        };
        let begin = range.end - part.len();
        if *first == b'%' && self.text[..begin].last().is_none_or(|last| *last == b'\n') {
            self.begin_line();
        } else if !first.is_ascii_whitespace() {
            self.separate();
        }
        self.has_skipped = false;
        self.out.extend_from_slice(part);
    }

    /// Begins a new line in the output, unless the output already ends with a line break. Used before text that begins
    /// with `%`, which programs ignore only at the start of a line.
    fn begin_line(&mut self) {
        self.trim();
        if self.out.last().is_some_and(|last| *last != b'\n') {
            self.out.push(b'\n');
        }
    }

    /// Writes a space, unless the output ends with white space or an opening parenthesis.
    fn separate(&mut self) {
        let last = self.out.last();
        if last.is_some_and(|last| !last.is_ascii_whitespace() && *last != b'(') {
            self.out.push(b' ');
        }
    }

    /// Prepares the output for the text that follows the moves of a game. `next` is the first byte of that text.
    /// Removes spaces at the end of the output, and writes a single space if `next` is not white space.
    fn begin_rest(&mut self, next: Option<&u8>) {
        self.trim();
        if next.is_some_and(|next| !next.is_ascii_whitespace()) {
            self.separate();
        }
    }

    /// Removes the spaces at the end of the output.
    fn trim(&mut self) {
        while self.out.last() == Some(&b' ') {
            self.out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;
    use crate::{explorer::Line, position::Variant};

    /// Removes the last move of each of `lines`, which are moves in UCI notation, from `text`, and returns the
    /// result.
    fn without(text: &str, lines: &[&str]) -> String {
        let mut removed = RemovedMoves::default();
        for line in lines {
            let line = Line::parse(Variant::Standard, None, line).unwrap();
            let (mv, positions) = (line.moves().last().unwrap(), line.positions());
            let before = positions[line.moves().len() - 1].clone();
            removed.insert(&Keyed::new(before), *mv);
        }
        let mut out = Vec::new();
        let games = GameReader::new(text.as_bytes()).with_variations(true);
        removed.cut(text.as_bytes(), games, &mut out);
        String::from_utf8(out).unwrap()
    }

    const NF3: &[&str] = &["e2e4,e7e5,g1f3"];

    #[test]
    fn a_removed_move_takes_its_subtree_along_and_leaves_all_else() {
        for (text, left) in [
            (
                "1. e4 {Best} e5 2. Nf3 $1 {dev} Nc6 *\n",
                "1. e4 {Best} e5 *\n",
            ),
            ("1. e4 e5 2. Nf3 Nc6", "1. e4 e5"),
            ("1.e4 e5 2.Nf3 Nc6*", "1.e4 e5 *"),
            ("1. e4 e5 {12} 2. Nf3 ; 12\n1-0\n", "1. e4 e5 {12}\n1-0\n"),
            ("1. e4 e5 ; see 12\n2. Nf3 *", "1. e4 e5 ; see 12\n *"),
            ("1. e4 e5 $13 2. Nf3 *", "1. e4 e5 $13 *"),
            // The first variation takes the place of the move.
            (
                "1. e4 e5 2. Nf3 {a} (2. f4 $1 exf4 {b}) Nc6 *",
                "1. e4 e5 2. f4 $1 exf4 {b} *",
            ),
            (
                "1. e4 e5 2. Nf3 (2. f4 $1 {b} (2. d4) exf4) {c} (2. c3 (2. Nc3)) Nc6 *",
                "1. e4 e5 2. f4 $1 {b} (2. d4) (2. c3 (2. Nc3)) exf4 *",
            ),
            ("1. e4 e5 2. Nf3 (2. Nf3 d6) (2. f4) *", "1. e4 e5 2. f4 *"),
            // The move is in a variation.
            (
                "1. e4 e5 2. f4 (2. Nf3 Nc6) (2. c3) exf4 *",
                "1. e4 e5 2. f4 (2. c3) exf4 *",
            ),
            ("1. e4 e5 2. f4\n(2. Nf3)\nexf4 *", "1. e4 e5 2. f4\nexf4 *"),
            // A line that begins with a percent sign stays a line.
            (
                "1. e4 e5 2. f4 (2. Nf3)\n% Nf3\nexf4 *",
                "1. e4 e5 2. f4\n% Nf3\nexf4 *",
            ),
            (
                "1. e4 e5 2. f4\n(2. Nf3)\n% Nf3\nexf4 *",
                "1. e4 e5 2. f4\n% Nf3\nexf4 *",
            ),
            (
                "1. e4 c5 (1... e5 2. Nf3 Nc6) 2. c3 *",
                "1. e4 c5 (1... e5) 2. c3 *",
            ),
            (
                "1. e4 c5 (1... e5 2. Nf3 (2. f4 {x}) d6) *",
                "1. e4 c5 (1... e5 2. f4 {x}) *",
            ),
            // Another order of moves leads to the position; in other positions the move stays.
            (
                "1. Nf3 e5 2. e4 *\n\n1. Nf3 *",
                "1. Nf3 e5 2. e4 *\n\n1. Nf3 *",
            ),
            // Moves after a null move or an illegal one are unknown.
            (
                "1. e4 e5 (1... -- 2. Nf3) 2. f4 *",
                "1. e4 e5 (1... -- 2. Nf3) 2. f4 *",
            ),
            ("1. e4 e4 2. Nf3 *", "1. e4 e4 2. Nf3 *"),
        ] {
            assert_eq!(without(text, NF3), left, "{text}");
        }
        let tagged = "[Event \"A\"]\n[Result \"*\"]\n\n{Intro} 1. e4 *\n\n[Event \"B\"]\n\n1. d4 (1. e4 e5) d5 *\n";
        let left = "[Event \"A\"]\n[Result \"*\"]\n\n{Intro} *\n\n[Event \"B\"]\n\n1. d4 d5 *\n";
        assert_eq!(without(tagged, &["e2e4"]), left);
        // The moves of a file without results end at the tags of the next game.
        let unfinished = "[Event \"A\"]\n\n1. e4\n\n[Event \"B\"]\n\n1. d4\n";
        let left = "[Event \"A\"]\n\n\n\n[Event \"B\"]\n\n1. d4\n";
        assert_eq!(without(unfinished, &["e2e4"]), left);
        let from_fen = "[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n1. e4 *\n";
        assert_eq!(without(from_fen, &["e2e4"]), from_fen);
    }

    #[test]
    fn transpositions_are_the_same_position() {
        let left = without(
            "1. Nf3 e5 2. e4 Nc6 3. Bb5 *",
            &["e2e4,e7e5,g1f3,b8c6,f1b5"],
        );
        assert_eq!(left, "1. Nf3 e5 2. e4 Nc6 *");
    }

    /// Returns each move of `text`, including moves of variations, as the line of moves up to it in UCI notation.
    fn moves_of(text: &str) -> Vec<String> {
        let mut games = GameReader::new(text.as_bytes()).with_variations(true);
        let mut found = Vec::new();
        while games.next_game() {
            let start = Keyed::new(Variant::Standard.start());
            let mut stack = vec![(String::new(), start.clone(), String::new(), start)];
            loop {
                let (before, pos_before, line, pos) = stack.last_mut().unwrap();
                match games.next_token() {
                    Token::Move { text, .. } => {
                        let mv = read_move(pos.position(), text).unwrap();
                        (*before, *pos_before) = (line.clone(), pos.clone());
                        *line += &format!(" {}", crate::position::uci(pos.position(), mv));
                        pos.play(mv);
                        found.push(line.clone());
                    }
                    Token::BeginVariation => {
                        let branch = (before.clone(), pos_before.clone());
                        stack.push((String::new(), branch.1.clone(), branch.0, branch.1));
                    }
                    Token::EndVariation => drop(stack.pop()),
                    _ => break,
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// Returns a random tree of moves with variations as PGN movetext. `random(n)` returns a number less than `n`.
    fn movetext(
        pos: &Keyed<VariantPosition>,
        depth: usize,
        random: &mut impl FnMut(usize) -> usize,
    ) -> String {
        let legal = pos.position().legal_moves();
        if depth == 0 || legal.is_empty() {
            return String::new();
        }
        let mut choose = || legal[random(legal.len().min(3))];
        let said = |mv: Move| crate::position::uci(pos.position(), mv);
        let after = |mv: Move| {
            let mut after = pos.clone();
            after.play(mv);
            after
        };
        let (main, others) = (choose(), [choose(), choose()]);
        let mut text = format!("{} ", said(main));
        for other in &others[..random(3)] {
            text += &format!(
                "({} {}) ",
                said(*other),
                movetext(&after(*other), depth - 1, random)
            );
        }
        text + &movetext(&after(main), depth - 1, random)
    }

    proptest::proptest! {
        #[test]
        fn exactly_the_subtrees_of_removed_moves_are_missing(seeds in proptest::collection::vec(0..1000usize, 40), chosen in 0..100usize) {
            let mut seeds = seeds.into_iter().cycle();
            let text = movetext(&Keyed::new(Variant::Standard.start()), 4, &mut |most| seeds.next().unwrap() % most) + "*\n";
            let all = moves_of(&text);
            let removed = &all[chosen % all.len()];
            let left = without(&text, &[removed.trim()]);
            let is_removed = |line: &str| line == removed || line.starts_with(&format!("{removed} "));
            // No two lines of these depths lead to the same position with the same moves left, unless they transpose.
            let identity = |line: &str| {
                let line = Line::parse(Variant::Standard, None, line).unwrap();
                let last = line.moves().len() - 1;
                (Keyed::new(line.positions()[last].clone()).identity(), line.moves()[last])
            };
            let cut = identity(removed);
            let is_left = |line: &&String| {
                let words: Vec<&str> = line.split_whitespace().collect();
                (1..=words.len()).all(|length| identity(&words[..length].join(" ")) != cut)
            };
            proptest::prop_assert!(all.iter().any(|line| is_removed(line)));
            let wanted: Vec<String> = all.iter().filter(is_left).cloned().collect();
            proptest::prop_assert_eq!(wanted, moves_of(&left), "{} without {}: {}", text, removed, left);
        }
    }
}

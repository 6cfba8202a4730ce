//! Removes moves from the text of a repertoire in PGN.

use std::ops::Range;

use rustc_hash::FxHashMap;
use shakmaty::{Move, variant::VariantPosition};

use crate::{
    chess::position::Keyed,
    games::pgn::{GameReader, OpenLines, Step, start_of},
};

/// A set of moves to remove from a repertoire, each in a certain position.
#[derive(Clone, Default, Debug)]
pub struct RemovedMoves {
    /// The moves, keyed by the identity (a hash) of the position in which they are played.
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
    /// If a removed move has variations, the first variation that still has moves takes the place of the removed move
    /// and its continuation. The other variations then become alternatives to the first move of that variation.
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

    /// Reads the moves of the current game of `games`, a reader of `text`, and marks the moves that are in this set.
    /// `start` is the position in which the game starts, or `None` if it is unknown.
    fn read(
        &self,
        games: &mut GameReader<'_>,
        text: &[u8],
        start: Option<Keyed<VariantPosition>>,
    ) -> ReadGame {
        let moves = games.offset();
        let end_of_words = |end: usize| moves + text[moves..end.max(moves)].trim_ascii_end().len();
        let mut lines = OpenLines::of_game(start);
        let mut read = vec![UnfinishedLine::new(moves)];
        let mut lacks_moves = false;
        loop {
            let (begin, token) = games.next_token_with_begin();
            let is_variation = read.len() > 1;
            let line = read.last_mut().expect("the main line is never closed");
            match lines.step(token) {
                Step::BeginVariation => {
                    line.end_last_move(begin);
                    read.push(UnfinishedLine::new(games.offset()));
                }
                Step::EndVariation => {
                    let variation = read.pop().expect("a variation was open").closed(begin);
                    let line = read.last_mut().expect("a variation is inside a line");
                    match line.moves.last_mut() {
                        Some(replaced) => replaced.variations.push(variation),
                        None => line.strays.push(variation.content),
                    }
                }
                Step::Illegal if !is_variation && games.is_double_loss(token.text()) => {
                    return ReadGame::new(read, end_of_words(begin), lacks_moves);
                }
                Step::Played { before, mv } => {
                    let is_removed = self.contains(before, mv);
                    line.push(begin, is_removed);
                    lacks_moves |= is_removed;
                }
                Step::NullMove | Step::Illegal | Step::NotPlayed => line.push(begin, false),
                Step::TooDeep => {}
                Step::EndOfGame => {
                    return ReadGame::new(read, end_of_words(begin), lacks_moves);
                }
            }
        }
    }
}

/// A game whose moves have been read. Its lines and moves are stored as ranges of offsets in the text.
struct ReadGame {
    main: ReadLine,
    /// Whether the game contains at least one move that must be removed.
    lacks_moves: bool,
}

impl ReadGame {
    /// Creates a game from its main line `lines[0]`, whose text ends at the offset `end`. Any other lines are
    /// variations whose closing parenthesis is missing. They are ignored, so their text is copied unchanged.
    /// `lacks_moves` says whether the game contains a move that must be removed.
    fn new(mut lines: Vec<UnfinishedLine>, end: usize, lacks_moves: bool) -> ReadGame {
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
    /// The range of the line's text, without the parentheses of a variation, and without the result of a game and the
    /// white space before the result.
    content: Range<usize>,
    /// The ranges of variations before the first move, without their parentheses. Such a variation cannot replace a
    /// move.
    strays: Vec<Range<usize>>,
    moves: Vec<ReadLineMove>,
}

/// A move of a line, with the variations that are alternatives to it.
struct ReadLineMove {
    /// The range of the move's text, with the number before it, and with the marks and comments before its first
    /// variation.
    text: Range<usize>,
    is_removed: bool,
    variations: Vec<ReadLine>,
}

/// A main line or a variation whose moves are being read.
struct UnfinishedLine {
    begin: usize,
    strays: Vec<Range<usize>>,
    moves: Vec<ReadLineMove>,
}

impl UnfinishedLine {
    /// Creates a line without moves whose text begins at the offset `begin`.
    fn new(begin: usize) -> UnfinishedLine {
        UnfinishedLine {
            begin,
            strays: Vec::new(),
            moves: Vec::new(),
        }
    }

    /// Adds a move whose text begins at the offset `begin`.
    fn push(&mut self, begin: usize, is_removed: bool) {
        self.end_last_move(begin);
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
            strays: self.strays,
            moves: self.moves,
        }
    }
}

impl ReadLine {
    /// Returns `true` if the line still has moves after the removal, because its first move is kept or because a
    /// variation takes the place of this move.
    fn remains(&self) -> bool {
        let first = self.moves.first();
        first.is_some_and(|first| {
            !first.is_removed || first.variations.iter().any(ReadLine::remains)
        })
    }

    /// Returns the range of the text before the first move of the line, such as a comment.
    fn preface(&self) -> Range<usize> {
        let first = self.moves.first();
        self.content.start..first.map_or(self.content.end, |first| first.text.start)
    }
}

/// A writer that copies the text of a game without the removed parts.
struct Writer<'a> {
    text: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Whether a part of the text was left out after the last copied byte.
    has_skipped: bool,
}

impl Writer<'_> {
    /// Writes a line without the moves that are removed from it.
    fn line<'l>(&mut self, mut line: &'l ReadLine) {
        // The other variations of a removed move, if its first remaining variation replaces it.
        let mut others: Vec<&'l ReadLine> = Vec::new();
        self.put(line.preface());
        'line: loop {
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
                    // The variations before its first move would become alternatives to the move before this one.
                    let mut at = line.content.start;
                    for stray in &line.strays {
                        self.put(at..stray.start - 1);
                        self.has_skipped = true;
                        at = stray.end + 1;
                    }
                    self.put(at..line.preface().end);
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

    /// Writes a variation in parentheses, or nothing if all its moves are removed.
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

    /// Copies the part `range` of the game's text to the output. Writes a space first if the text would otherwise
    /// continue the last word of the output.
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

    /// Begins a new line in the output, unless the output already ends with a line break. Call this before writing text
    /// that begins with `%`, because such text is skipped only at the start of a line.
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

    /// Prepares the output for the text that follows the moves of a game, which begins with the byte `next`. Removes
    /// spaces at the end of the output, and writes a single space unless `next` is white space.
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
    use super::*;
    use crate::{chess::position::Variant, explore::explorer::Line};

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
            // An alternative to a null move replaces it.
            ("1. e4 -- (1... e5 2. Nf3) *", "1. e4 -- (1... e5) *"),
            // A variation without a move to replace does not become an alternative to another move.
            (
                "1. e4 e5 2. Nf3 ((2. a3) 2. f4) 2... exf4 *",
                "1. e4 e5 2. f4 *",
            ),
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
}

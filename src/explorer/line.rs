//! Lines of play, which give queries their position and the moves that led to it.

use shakmaty::{Move, Position, uci::UciMove, variant::VariantPosition};

use crate::{
    index::store::ListKey,
    openings::{self, Opening},
    position::{Keyed, LineError, MoveError, Variant, move_words, read_move},
};

/// A line of play: a variant, a starting position and moves from this position.
#[derive(Clone, Debug)]
pub struct Line {
    variant: Variant,
    /// The start position, followed by the position after each move.
    positions: Vec<VariantPosition>,
    moves: Vec<Move>,
}

impl Line {
    /// Creates a line without moves that begins in the starting position of `variant`.
    pub fn start(variant: Variant) -> Line {
        Line::at(variant, variant.start())
    }

    /// Creates a line without moves that begins in the position `pos`.
    pub fn at(variant: Variant, pos: VariantPosition) -> Line {
        Line {
            variant,
            positions: vec![pos],
            moves: Vec::new(),
        }
    }

    /// Parses a line of play from a starting position and its moves.
    ///
    /// `fen` is a FEN or EPD whose fields are separated by underscores or blanks. If it is `None`, the line begins in
    /// the starting position of the variant. `play` contains moves in UCI notation or SAN, separated by commas or
    /// blanks, with or without move numbers. Castling may be written as a king's move of two squares, or as the king
    /// capturing its own rook.
    ///
    /// # Errors
    ///
    /// Returns a [`LineError`] if the FEN is malformed or a move is illegal.
    ///
    /// ```
    /// use polybook::{explorer::Line, position::Variant};
    /// let castled = |play: &str| Line::parse(Variant::Standard, None, play).map(|line| line.position().clone());
    /// let opening = "e2e4,e7e5,g1f3,b8c6,f1c4,f8c5";
    /// assert_eq!(castled(&format!("{opening},e1g1"))?, castled(&format!("{opening},e1h1"))?);
    /// assert_eq!(castled("1. e4 e5")?, castled("e2e4,e7e5")?);
    /// assert!(castled("e2e5").is_err());
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn parse(variant: Variant, fen: Option<&str>, play: &str) -> Result<Line, LineError> {
        let start = match fen {
            Some(fen) => variant.parse_position(fen)?,
            None => variant.start(),
        };
        let mut line = Line::at(variant, start);
        for (index, word) in move_words(play).enumerate() {
            let mut pos = line.position().clone();
            let mv = read(&pos, word).map_err(|reason| LineError::Move {
                number: index + 1,
                text: word.to_owned(),
                reason,
                fen: crate::position::fen_of(&pos),
            })?;
            pos.play_unchecked(mv);
            line.positions.push(pos);
            line.moves.push(mv);
        }
        Ok(line)
    }

    /// Returns the variant of the line.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Returns the position after all moves of the line.
    pub fn position(&self) -> &VariantPosition {
        &self.positions[self.moves.len()]
    }

    /// Returns the moves of the line.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Returns the starting position, followed by the position after each move.
    pub fn positions(&self) -> &[VariantPosition] {
        &self.positions
    }

    /// Returns the key under which an index of games stores the list of games that reached the line's last position.
    pub(super) fn subject(&self) -> ListKey {
        let identity = Keyed::new(self.position().clone()).identity();
        ListKey::position(self.variant, identity)
    }

    /// Returns the keys under which an index may store the line's last position. An index of games uses only the first
    /// key. An index of counts may use any of them, because its counts may distinguish positions by an en passant right
    /// that no legal move uses.
    pub(super) fn subjects(&self) -> Vec<ListKey> {
        let pos = Keyed::new(self.position().clone());
        let identities = pos.exact_identities();
        identities
            .map(|identity| ListKey::position(self.variant, identity))
            .collect()
    }

    /// Returns the opening of the line: the name of its last position that has one. Returns `None` if no position of
    /// the line has a name.
    pub fn opening(&self) -> Option<Opening> {
        self.positions.iter().rev().find_map(openings::name_of)
    }

    /// Returns the number of half-moves after which this line reaches the last position of `other`. Returns `None` if
    /// this line does not reach that position.
    ///
    /// If this line begins with all moves of `other`, returns the number of moves of `other`. Otherwise, if this line
    /// reaches the position several times, returns the number for the last time.
    pub fn ply_of(&self, other: &Line) -> Option<usize> {
        let key = |pos: &VariantPosition| Keyed::new(pos.clone()).identity();
        let is_same = |pos| self.variant == other.variant && key(pos) == key(other.position());
        let plies = other.moves.len();
        if self.moves.starts_with(&other.moves) && is_same(&self.positions[plies]) {
            return Some(plies);
        }
        self.positions.iter().rposition(is_same)
    }
}

fn read(pos: &VariantPosition, word: &str) -> Result<Move, MoveError> {
    let uci = word.parse::<UciMove>().ok();
    match uci.and_then(|uci| uci.to_move(pos).ok()) {
        Some(mv) => Ok(mv),
        None => read_move(pos, word.as_bytes()),
    }
}

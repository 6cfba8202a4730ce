//! The syntax tree of a board query. The module `program` checks later whether the operands of operators have the right
//! types.

use shakmaty::{Bitboard, Board, Color, File, Rank, Role, Square};

/// A part of a query, and the offset in the text at which it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub at: usize,
    pub kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Number(i64),
    Count(Pieces, Bitboard),
    Ply,
    Negative(Box<Node>),
    Product(Vec<Node>),
    /// A sum of terms. `true` marks a term that is subtracted.
    Sum(Vec<(bool, Node)>),
    Compare(Box<Node>, Comparison, Box<Node>),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    For(Box<Node>, u32),
    Then(Vec<Node>),
    Either(Box<Node>),
    Turn(Color),
    Check,
    Mate,
    Stalemate,
    Fen(Vec<FenFields>),
    Board(Vec<Placement>),
    Material(Vec<PieceNumbers>),
    Imbalance(Vec<PieceNumbers>),
    Move(Vec<MovePattern>),
}

/// The pieces that a part of a query refers to: all pieces of a color, or only those of one kind.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Pieces {
    Kind(Color, Role),
    All(Color),
}

impl Pieces {
    pub(super) fn mirrored(self) -> Pieces {
        match self {
            Pieces::Kind(color, role) => Pieces::Kind(!color, role),
            Pieces::All(color) => Pieces::All(!color),
        }
    }

    #[inline]
    pub(super) fn on(self, board: &Board) -> Bitboard {
        match self {
            Pieces::Kind(color, role) => board.by_color(color) & board.by_role(role),
            Pieces::All(color) => board.by_color(color),
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    #[inline]
    pub(super) fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Unequal => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

/// A FEN in a query. The first field, the placement of the pieces, is required; the other fields are optional.
#[derive(Clone, Debug)]
pub(super) struct FenFields {
    pub board: Board,
    pub turn: Option<Color>,
    /// The squares of the rooks that can castle.
    pub castling: Option<Bitboard>,
    /// The en passant square. The inner `None` means that there is no such square, the outer `None` that the field is
    /// missing.
    pub en_passant: Option<Option<Square>>,
    pub halfmoves: Option<u32>,
    pub fullmoves: Option<u32>,
}

impl FenFields {
    pub(super) fn mirrored(&self) -> FenFields {
        FenFields {
            board: self.board.clone().into_mirrored(),
            turn: self.turn.map(|turn| !turn),
            castling: self.castling.map(Bitboard::flip_vertical),
            en_passant: self.en_passant.map(|it| it.map(Square::flip_vertical)),
            halfmoves: self.halfmoves,
            fullmoves: self.fullmoves,
        }
    }
}

/// The pieces that a position must contain, each with the squares on which these pieces stand.
#[derive(Clone, Debug)]
pub(super) struct Placement(pub Vec<(Pieces, Bitboard)>);

impl Placement {
    pub(super) fn of(board: &Board) -> Placement {
        let kinds = Color::ALL
            .into_iter()
            .flat_map(|color| Role::ALL.map(|role| Pieces::Kind(color, role)));
        let wanted = kinds.map(|pieces| (pieces, pieces.on(board)));
        Placement(wanted.filter(|(_, squares)| squares.any()).collect())
    }

    pub(super) fn mirrored(&self) -> Placement {
        let parts = self.0.iter();
        let mirror =
            |(pieces, squares): &(Pieces, Bitboard)| (pieces.mirrored(), squares.flip_vertical());
        Placement(parts.map(mirror).collect())
    }
}

/// The number of pieces of each kind: those of White, then those of Black, both in the order of [`Role::ALL`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct PieceNumbers(pub [[u8; 6]; 2]);

impl PieceNumbers {
    /// Returns the numbers of White's and Black's pawns.
    pub(super) fn pawns(&self) -> [u8; 2] {
        // Pawns are the first role.
        self.0.map(|[pawns, ..]| pawns)
    }

    /// Adds a king for each side. Returns `None` if these pieces already include a king.
    pub(super) fn with_kings(&self) -> Option<PieceNumbers> {
        // Kings are the last role.
        let [[white @ .., 0], [black @ .., 0]] = self.0 else {
            return None;
        };
        let side = |[p, n, b, r, q]: [u8; 5]| [p, n, b, r, q, 1];
        Some(PieceNumbers([side(white), side(black)]))
    }

    pub(super) fn mirrored(&self) -> PieceNumbers {
        let [white, black] = self.0;
        PieceNumbers([black, white])
    }
}

/// The properties that a move must have. A property that is `None` or `false` is not required.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct MovePattern {
    pub role: Option<Role>,
    pub castling: Option<shakmaty::CastlingSide>,
    pub is_drop: bool,
    pub from_file: Option<File>,
    pub from_rank: Option<Rank>,
    pub is_capture: bool,
    pub captured: Option<Role>,
    pub to: Option<Square>,
    pub is_promotion: bool,
    pub promotion: Option<Role>,
    pub is_check: bool,
    pub is_mate: bool,
}

impl MovePattern {
    pub(super) fn mirrored(&self) -> MovePattern {
        MovePattern {
            from_rank: self.from_rank.map(Rank::flip_vertical),
            to: self.to.map(Square::flip_vertical),
            ..*self
        }
    }
}

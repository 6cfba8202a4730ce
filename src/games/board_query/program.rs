//! Compiles board queries to trees of tests on bitboards, in which cheap tests come first.
//!
//! A test that depends on earlier positions, such as `then`, has a *slot*. A slot stores the result of the test in the
//! current position, and what the test must remember of earlier positions. The slots are evaluated in order, once for
//! each position, so a query takes time in proportion to its length. A test inside of two `either` also has a slot,
//! because it is needed for both orders of colors. Without the slot, each level of `either` would double the number of
//! tests.

use std::{cell::OnceCell, collections::HashMap};

use shakmaty::{Bitboard, ByColor, ByRole, Color, Move, Position, Role, Square};

use super::{
    ast::{Comparison, FenFields, MovePattern, Node, NodeKind, PieceNumbers, Pieces, Placement},
    grammar::Fault,
};

/// An upper bound on the number of half-moves of a game. It follows from the maximum length of a game's text, 16 MiB.
const MAX_PLIES: i64 = 1 << 24;

/// An expression whose value in a position is a number, such as a number of pieces.
#[derive(Debug)]
enum Number {
    Constant(i64),
    Count(Pieces, Bitboard),
    Ply,
    Negative(Box<Number>),
    Product(Vec<Number>),
    /// A sum of terms. `true` marks a term that is subtracted.
    Sum(Vec<(bool, Number)>),
}

/// A test that passes or fails in a position.
#[derive(Debug)]
enum Test {
    /// At least one of these pieces is on one of these squares.
    Any(Pieces, Bitboard),
    Compare(Number, Comparison, Number),
    Turn(Color),
    Check,
    Mate,
    Stalemate,
    Fen(Vec<(FenFields, Placement)>),
    Board(Vec<Placement>),
    Material(Vec<PieceNumbers>),
    Imbalance(Vec<PieceNumbers>),
    Move(Vec<MovePattern>),
    Not(Box<Test>),
    All(Vec<Test>),
    AnyOf(Vec<Test>),
    /// The test in this slot, an index into [`Program::slots`], passes in the position.
    Slot(usize),
}

/// A test that is evaluated once for each position of a game, because it depends on earlier positions or because several
/// tests use its result.
#[derive(Debug)]
enum Slot {
    Shared(Test),
    /// The second test passes in the current position, and the first one passed in an earlier position.
    Then(Test, Test),
    /// The test passes in this number of consecutive positions, the last of which is the current one.
    For(Test, u32),
}

/// A compiled board query.
#[derive(Debug)]
pub(super) struct Program {
    slots: Vec<Slot>,
    root: Test,
    /// Whether captures can make it impossible that the query still passes. If they cannot, checking this during a game
    /// is useless.
    can_end: bool,
}

/// The result of the test in a [`Slot`] for the current position of a game, and what the test remembers of earlier
/// positions.
#[derive(Copy, Clone, Default, Debug)]
struct SlotState {
    /// Whether the test passes in the current position.
    holds: bool,
    /// For `then`, 1 if the first test passed in an earlier position. For `for`, the number of consecutive positions in
    /// which the test has passed.
    memory: u32,
}

impl Program {
    /// Compiles a query.
    ///
    /// # Errors
    ///
    /// Returns an error if an operator has a condition where it needs a number, or if numbers can become too large.
    pub(super) fn new(query: &Node) -> Result<Program, Fault> {
        let mut compiler = Compiler::default();
        let root = compiler.condition(query, CompileMode::default())?;
        let mut program = Program {
            slots: compiler.slots,
            root,
            can_end: false,
        };
        let end = Bounds {
            kinds: [[0; 6]; 2],
            all: [0; 2],
            ply: MAX_PLIES,
            pawns: None,
        };
        let states = vec![SlotState::default(); program.slots.len()];
        program.can_end = !program.may_pass(&end, &states);
        Ok(program)
    }

    /// Returns `false` if the query can pass neither in the position that `bounds` describes nor in a later position of the
    /// game. `states` contains the states of the slots in this position.
    fn may_pass(&self, bounds: &Bounds, states: &[SlotState]) -> bool {
        let mut slots: Vec<bool> = Vec::with_capacity(self.slots.len());
        for (slot, state) in self.slots.iter().zip(states) {
            let may = |test: &Test| test.outlook(bounds, &slots).0;
            let passes = match slot {
                Slot::Shared(test) | Slot::For(test, _) => may(test),
                Slot::Then(first, second) => (state.memory > 0 || may(first)) && may(second),
            };
            slots.push(passes);
        }
        self.root.outlook(bounds, &slots).0
    }
}

/// Options for compiling a part of a query.
#[derive(Copy, Clone, Default)]
struct CompileMode {
    /// Whether the colors are exchanged.
    is_mirrored: bool,
    /// Whether the part is inside of `either`, and is therefore compiled for both orders of colors.
    is_in_either: bool,
}

#[derive(Default)]
struct Compiler {
    slots: Vec<Slot>,
    /// The slots of `either` operators that are inside of another `either`, by the addresses of their nodes in the
    /// syntax tree.
    shared: HashMap<*const Node, usize>,
}

impl Compiler {
    fn add_slot(&mut self, slot: Slot) -> Test {
        self.slots.push(slot);
        Test::Slot(self.slots.len() - 1)
    }

    fn conditions(&mut self, nodes: &[Node], mode: CompileMode) -> Result<Vec<Test>, Fault> {
        let tests = nodes.iter().map(|node| self.condition(node, mode));
        let mut tests: Vec<Test> = tests.collect::<Result<_, _>>()?;
        tests.sort_by_cached_key(Test::cost);
        Ok(tests)
    }

    /// Compiles a condition to a test. If the condition is a number, the test passes if the number is not 0.
    fn condition(&mut self, node: &Node, mode: CompileMode) -> Result<Test, Fault> {
        let is_mirrored = mode.is_mirrored;
        let color = |color: Color| if is_mirrored { !color } else { color };
        Ok(match &node.kind {
            NodeKind::Number(_)
            | NodeKind::Count(..)
            | NodeKind::Ply
            | NodeKind::Negative(_)
            | NodeKind::Product(_)
            | NodeKind::Sum(_) => {
                let number = number(node, is_mirrored)?;
                comparison(number, Comparison::Unequal, Number::Constant(0))
            }
            NodeKind::Compare(left, sign, right) => comparison(
                number(left, is_mirrored)?,
                *sign,
                number(right, is_mirrored)?,
            ),
            NodeKind::Not(node) => match self.condition(node, mode)? {
                Test::Not(test) => *test,
                test => Test::Not(Box::new(test)),
            },
            NodeKind::And(nodes) => Test::All(self.conditions(nodes, mode)?),
            NodeKind::Or(nodes) => Test::AnyOf(self.conditions(nodes, mode)?),
            NodeKind::For(node, 1) => self.condition(node, mode)?,
            NodeKind::For(node, positions) => {
                let test = self.condition(node, mode)?;
                self.add_slot(Slot::For(test, *positions))
            }
            NodeKind::Then(nodes) => {
                let mut nodes = nodes.iter();
                let first = nodes.next().expect("a sequence has parts");
                let mut all = self.condition(first, mode)?;
                for node in nodes {
                    let next = self.condition(node, mode)?;
                    all = self.add_slot(Slot::Then(all, next));
                }
                all
            }
            NodeKind::Either(inner) => {
                if let Some(slot) = self.shared.get(&std::ptr::from_ref(node)) {
                    return Ok(Test::Slot(*slot));
                }
                let of = |is_mirrored| CompileMode {
                    is_mirrored,
                    is_in_either: true,
                };
                let both = vec![
                    self.condition(inner, of(false))?,
                    self.condition(inner, of(true))?,
                ];
                let both = Test::AnyOf(both);
                if !mode.is_in_either {
                    return Ok(both);
                }
                self.shared.insert(node, self.slots.len());
                self.add_slot(Slot::Shared(both))
            }
            NodeKind::Turn(side) => Test::Turn(color(*side)),
            NodeKind::Check => Test::Check,
            NodeKind::Mate => Test::Mate,
            NodeKind::Stalemate => Test::Stalemate,
            NodeKind::Fen(fens) => {
                let with_placement = |fen: FenFields| {
                    let placement = Placement::of(&fen.board);
                    (fen, placement)
                };
                let fens = oriented(fens, is_mirrored, FenFields::mirrored);
                Test::Fen(fens.into_iter().map(with_placement).collect())
            }
            NodeKind::Board(all) => Test::Board(oriented(all, is_mirrored, Placement::mirrored)),
            NodeKind::Material(all) => {
                Test::Material(oriented(all, is_mirrored, PieceNumbers::mirrored))
            }
            NodeKind::Imbalance(all) => {
                Test::Imbalance(oriented(all, is_mirrored, PieceNumbers::mirrored))
            }
            NodeKind::Move(all) => Test::Move(oriented(all, is_mirrored, MovePattern::mirrored)),
        })
    }
}

/// Returns a copy of `items`. If `is_mirrored` is `true`, replaces each item with the result of `mirror`.
fn oriented<T: Clone>(items: &[T], is_mirrored: bool, mirror: fn(&T) -> T) -> Vec<T> {
    if is_mirrored {
        items.iter().map(mirror).collect()
    } else {
        items.to_vec()
    }
}

/// Compiles an expression whose value is a number. If `is_mirrored` is `true`, exchanges the colors in it.
///
/// # Errors
///
/// Returns an error if the expression is a condition, or if its value might not fit into an `i64`.
fn number(node: &Node, is_mirrored: bool) -> Result<Number, Fault> {
    let number = match &node.kind {
        NodeKind::Number(number) => Number::Constant(*number),
        NodeKind::Count(pieces, squares) if is_mirrored => {
            Number::Count(pieces.mirrored(), squares.flip_vertical())
        }
        NodeKind::Count(pieces, squares) => Number::Count(*pieces, *squares),
        NodeKind::Ply => Number::Ply,
        NodeKind::Negative(node) => Number::Negative(Box::new(number(node, is_mirrored)?)),
        NodeKind::Product(nodes) => {
            let factors = nodes.iter().map(|node| number(node, is_mirrored));
            Number::Product(factors.collect::<Result<_, _>>()?)
        }
        NodeKind::Sum(terms) => {
            let terms = terms.iter();
            let terms =
                terms.map(|(is_subtracted, node)| Ok((*is_subtracted, number(node, is_mirrored)?)));
            Number::Sum(terms.collect::<Result<_, _>>()?)
        }
        _ => {
            return Err(Fault {
                at: node.at,
                problem: "expected a number, such as Q or 3, found a condition".to_owned(),
            });
        }
    };
    match number.range(&Bounds::FULL) {
        Some(_) => Ok(number),
        None => Err(Fault {
            at: node.at,
            problem: "these numbers are too large".to_owned(),
        }),
    }
}

fn comparison(left: Number, sign: Comparison, right: Number) -> Test {
    let (Number::Count(pieces, squares), Number::Constant(number)) = (&left, &right) else {
        return Test::Compare(left, sign, right);
    };
    let any = Test::Any(*pieces, *squares);
    match (sign, number) {
        (Comparison::Unequal | Comparison::Greater, 0) | (Comparison::GreaterOrEqual, 1) => any,
        (Comparison::Equal | Comparison::LessOrEqual, 0) | (Comparison::Less, 1) => {
            Test::Not(Box::new(any))
        }
        _ => Test::Compare(left, sign, right),
    }
}

/// Bounds that hold in a position and in all later positions of the game: upper bounds for the numbers of pieces, and a
/// lower bound for the number of half-moves.
struct Bounds {
    /// The maximum numbers of White's and Black's pieces of each kind, in the order of [`Role::ALL`].
    kinds: [[i64; 6]; 2],
    all: [i64; 2],
    ply: i64,
    /// The squares of White's and Black's pawns, which can only move forward from there. `None` if they are unknown.
    pawns: Option<[Bitboard; 2]>,
}

impl Bounds {
    const FULL: Bounds = Bounds {
        kinds: [[64; 6]; 2],
        all: [64; 2],
        ply: 0,
        pawns: None,
    };

    fn of<P: Position>(pos: &P, ply: u32) -> Bounds {
        let board = pos.board();
        let material = board.material();
        let kinds = Color::ALL.map(|color| {
            let side = material.get(color);
            Role::ALL.map(|role| match role {
                Role::Pawn | Role::King => i64::from(*side.get(role)),
                // Each pawn may be promoted.
                _ => i64::from(*side.get(role)) + i64::from(side.pawn),
            })
        });
        Bounds {
            kinds,
            all: Color::ALL.map(|color| board.by_color(color).count() as i64),
            ply: i64::from(ply),
            pawns: Some(Color::ALL.map(|color| board.pawns() & board.by_color(color))),
        }
    }

    fn most(&self, pieces: Pieces, squares: Bitboard) -> i64 {
        let most = match pieces {
            Pieces::Kind(color, role) => self.kinds[color as usize ^ 1][role as usize - 1],
            Pieces::All(color) => self.all[color as usize ^ 1],
        };
        most.min(squares.count() as i64)
    }

    /// Returns `true` if the pieces of `placement` may all stand on their squares in the position or in a later one.
    fn allow(&self, placement: &Placement) -> bool {
        placement.0.iter().all(|(pieces, squares)| {
            let needed = squares.count() as i64;
            let is_reachable = match (pieces, self.pawns) {
                // No pawn comes back to its first rank.
                (Pieces::Kind(color, Role::Pawn), Some(pawns)) => {
                    let first = color.fold_wb(shakmaty::Rank::Second, shakmaty::Rank::Seventh);
                    let first = Bitboard::from_rank(first) & *squares;
                    first.is_subset(pawns[*color as usize ^ 1])
                }
                _ => true,
            };
            is_reachable && needed <= self.most(*pieces, *squares)
        })
    }
}

impl Number {
    /// Returns the lowest and the highest possible value of this number, in the position that `bounds` describes and in
    /// all later positions. Returns `None` if such a value might not fit into an `i64`.
    fn range(&self, bounds: &Bounds) -> Option<(i64, i64)> {
        match self {
            Number::Constant(number) => Some((*number, *number)),
            Number::Count(pieces, squares) => Some((0, bounds.most(*pieces, *squares))),
            Number::Ply => Some((bounds.ply, MAX_PLIES)),
            Number::Negative(number) => {
                let (low, high) = number.range(bounds)?;
                Some((high.checked_neg()?, low.checked_neg()?))
            }
            Number::Product(factors) => {
                let mut product = (1i64, 1i64);
                for factor in factors {
                    let (low, high) = factor.range(bounds)?;
                    let corners = [
                        product.0.checked_mul(low)?,
                        product.0.checked_mul(high)?,
                        product.1.checked_mul(low)?,
                        product.1.checked_mul(high)?,
                    ];
                    let lowest = corners.into_iter().min()?;
                    product = (lowest, corners.into_iter().max()?);
                }
                Some(product)
            }
            Number::Sum(terms) => {
                let mut sum = (0i64, 0i64);
                for (is_subtracted, term) in terms {
                    let (low, high) = term.range(bounds)?;
                    sum = if *is_subtracted {
                        (sum.0.checked_sub(high)?, sum.1.checked_sub(low)?)
                    } else {
                        (sum.0.checked_add(low)?, sum.1.checked_add(high)?)
                    };
                }
                Some(sum)
            }
        }
    }

    fn cost(&self) -> usize {
        match self {
            Number::Constant(_) | Number::Ply => 1,
            Number::Count(..) => 2,
            Number::Negative(number) => number.cost(),
            Number::Product(numbers) => numbers.iter().map(Number::cost).sum(),
            Number::Sum(terms) => terms.iter().map(|(_, term)| term.cost()).sum(),
        }
    }
}

impl Test {
    /// Returns an estimate of the time that the test takes, relative to other tests. Cheap tests are evaluated first.
    fn cost(&self) -> usize {
        match self {
            Test::Slot(_) | Test::Turn(_) => 1,
            Test::Any(..) => 2,
            Test::Compare(left, _, right) => 1 + left.cost() + right.cost(),
            Test::Move(patterns) => 2 + patterns.len(),
            Test::Board(boards) => 1 + 2 * boards.len(),
            Test::Fen(fens) => 1 + 4 * fens.len(),
            Test::Material(all) | Test::Imbalance(all) => 12 + all.len(),
            Test::Check => 10,
            Test::Mate | Test::Stalemate => 2,
            Test::Not(test) => test.cost(),
            Test::All(tests) | Test::AnyOf(tests) => {
                tests.iter().map(Test::cost).fold(1, usize::saturating_add)
            }
        }
    }

    /// Returns whether the test can pass, and whether it can fail, in the position that `bounds` describes or in a
    /// later one. `slots[i]` says whether the test in slot `i` can pass.
    fn outlook(&self, bounds: &Bounds, slots: &[bool]) -> (bool, bool) {
        match self {
            Test::Any(pieces, squares) => (bounds.most(*pieces, *squares) > 0, true),
            Test::Compare(left, sign, right) => {
                let (Some(left), Some(right)) = (left.range(bounds), right.range(bounds)) else {
                    return (true, true);
                };
                let (less, greater) = (left.0 < right.1, left.1 > right.0);
                let equal = left.0 <= right.1 && right.0 <= left.1;
                let is_fixed = left.0 == left.1 && right == left;
                match sign {
                    Comparison::Equal => (equal, !is_fixed),
                    Comparison::Unequal => (!is_fixed, equal),
                    Comparison::Less => (less, left.1 >= right.0),
                    Comparison::LessOrEqual => (left.0 <= right.1, greater),
                    Comparison::Greater => (greater, left.0 <= right.1),
                    Comparison::GreaterOrEqual => (left.1 >= right.0, less),
                }
            }
            Test::Board(boards) => (boards.iter().any(|board| bounds.allow(board)), true),
            Test::Fen(fens) => (fens.iter().any(|(_, board)| bounds.allow(board)), true),
            Test::Material(all) => {
                let may = |counts: &PieceNumbers| {
                    (0..2).all(|side| {
                        let wanted = counts.0[side].map(i64::from);
                        let kinds = wanted.iter().zip(&bounds.kinds[side]);
                        kinds.into_iter().all(|(wanted, most)| wanted <= most)
                            && wanted.iter().sum::<i64>() <= bounds.all[side]
                    })
                };
                (all.iter().any(may), true)
            }
            Test::Not(test) => {
                let (may_pass, may_fail) = test.outlook(bounds, slots);
                (may_fail, may_pass)
            }
            Test::All(tests) => {
                // Each test is examined once, so that the time does not double with each level of nesting.
                let outlooks = tests.iter().map(|test| test.outlook(bounds, slots));
                outlooks.fold((true, false), |all, one| (all.0 && one.0, all.1 || one.1))
            }
            Test::AnyOf(tests) => {
                let outlooks = tests.iter().map(|test| test.outlook(bounds, slots));
                outlooks.fold((false, true), |any, one| (any.0 || one.0, any.1 && one.1))
            }
            Test::Slot(slot) => (slots[*slot], true),
            Test::Turn(_)
            | Test::Check
            | Test::Mate
            | Test::Stalemate
            | Test::Imbalance(_)
            | Test::Move(_) => (true, true),
        }
    }
}

/// A position in which tests are evaluated.
struct Now<'a, P> {
    pos: &'a P,
    /// The move that is played in the position. `None` in the last position.
    mv: Option<Move>,
    ply: u32,
    slots: &'a [SlotState],
    /// The effect of the move, computed when the first test needs it, because a query may use it in very many places.
    effect: &'a OnceCell<MoveEffect>,
}

/// The effect of a move on the opponent's king: whether the move gives check, and whether it is mate.
#[derive(Copy, Clone)]
struct MoveEffect {
    is_check: bool,
    is_mate: bool,
}

impl<P: Position + Clone> Now<'_, P> {
    fn number(&self, number: &Number) -> i64 {
        match number {
            Number::Constant(number) => *number,
            Number::Count(pieces, squares) => {
                (pieces.on(self.pos.board()) & *squares).count() as i64
            }
            Number::Ply => i64::from(self.ply),
            Number::Negative(number) => -self.number(number),
            Number::Product(factors) => factors.iter().map(|factor| self.number(factor)).product(),
            Number::Sum(terms) => {
                let terms = terms.iter().map(|(is_subtracted, term)| {
                    if *is_subtracted {
                        -self.number(term)
                    } else {
                        self.number(term)
                    }
                });
                terms.sum()
            }
        }
    }

    fn passes(&self, test: &Test) -> bool {
        let pos = self.pos;
        match test {
            Test::Any(pieces, squares) => (pieces.on(pos.board()) & *squares).any(),
            Test::Compare(left, sign, right) => sign.holds(self.number(left), self.number(right)),
            Test::Turn(turn) => pos.turn() == *turn,
            Test::Check => pos.is_check(),
            // A position in which a move is played is neither.
            Test::Mate => self.mv.is_none() && pos.is_checkmate(),
            Test::Stalemate => self.mv.is_none() && pos.is_stalemate(),
            Test::Fen(fens) => fens.iter().any(|(fen, _)| self.has_fen(fen)),
            Test::Board(boards) => boards.iter().any(|Placement(parts)| {
                let mut parts = parts.iter();
                parts.all(|(pieces, squares)| squares.is_subset(pieces.on(pos.board())))
            }),
            // Few positions have as many pawns, and counting all kinds of pieces takes longer.
            Test::Material(all) => {
                let pawns = self.pawns();
                all.iter().any(|wanted| wanted.pawns() == pawns) && all.contains(&self.counts())
            }
            Test::Imbalance(all) => {
                let lead = |[white, black]: [u8; 2]| i16::from(white) - i16::from(black);
                let of_pawns = lead(self.pawns());
                all.iter().any(|wanted| lead(wanted.pawns()) == of_pawns) && {
                    let ours = surplus(self.counts());
                    all.iter().any(|wanted| surplus(*wanted) == ours)
                }
            }
            Test::Move(patterns) => self
                .mv
                .is_some_and(|mv| patterns.iter().any(|pattern| self.is_move(mv, pattern))),
            Test::Not(test) => !self.passes(test),
            Test::All(tests) => tests.iter().all(|test| self.passes(test)),
            Test::AnyOf(tests) => tests.iter().any(|test| self.passes(test)),
            Test::Slot(slot) => self.slots[*slot].holds,
        }
    }

    /// Returns the numbers of White's and Black's pawns.
    fn pawns(&self) -> [u8; 2] {
        let board = self.pos.board();
        Color::ALL.map(|color| (board.pawns() & board.by_color(color)).count() as u8)
    }

    fn counts(&self) -> PieceNumbers {
        let material: ByColor<ByRole<u8>> = self.pos.board().material();
        PieceNumbers(Color::ALL.map(|color| Role::ALL.map(|role| *material.get(color).get(role))))
    }

    fn has_fen(&self, fen: &FenFields) -> bool {
        let pos = self.pos;
        let en_passant = |wanted: Option<Square>| match wanted {
            Some(square) => pos.maybe_ep_square() == Some(square),
            None => pos.legal_ep_square().is_none(),
        };
        *pos.board() == fen.board
            && fen.turn.is_none_or(|turn| pos.turn() == turn)
            && fen
                .castling
                .is_none_or(|rooks| pos.castles().castling_rights() == rooks)
            && fen.halfmoves.is_none_or(|moves| pos.halfmoves() == moves)
            && fen
                .fullmoves
                .is_none_or(|moves| pos.fullmoves().get() == moves)
            && fen.en_passant.is_none_or(en_passant)
    }

    fn is_move(&self, mv: Move, pattern: &MovePattern) -> bool {
        let MovePattern {
            role,
            castling,
            is_drop,
            from_file,
            from_rank,
            is_capture,
            captured,
            to,
            is_promotion,
            promotion,
            is_check,
            is_mate,
        } = *pattern;
        let target = match mv {
            Move::Castle { king, rook } => {
                let side = shakmaty::CastlingSide::from_king_side(king < rook);
                side.king_to(self.pos.turn())
            }
            mv => mv.to(),
        };
        let from = mv.from();
        role.is_none_or(|role| mv.role() == role)
            && to.is_none_or(|to| target == to)
            && (!is_capture || mv.is_capture())
            && captured.is_none_or(|role| mv.capture() == Some(role))
            && from_file.is_none_or(|file| from.is_some_and(|from| from.file() == file))
            && from_rank.is_none_or(|rank| from.is_some_and(|from| from.rank() == rank))
            && castling.is_none_or(|side| mv.castling_side() == Some(side))
            && (!is_drop || matches!(mv, Move::Put { .. }))
            && (!is_promotion || mv.is_promotion())
            && promotion.is_none_or(|role| mv.promotion() == Some(role))
            && (!is_check || self.effect(mv).is_check)
            && (!is_mate || self.effect(mv).is_mate)
    }

    fn effect(&self, mv: Move) -> MoveEffect {
        *self.effect.get_or_init(|| {
            let mut after = self.pos.clone();
            after.play_unchecked(mv);
            MoveEffect {
                is_check: after.is_check(),
                is_mate: after.is_checkmate(),
            }
        })
    }
}

/// Returns, for each kind of piece, how many more pieces White has than Black.
fn surplus(PieceNumbers([white, black]): PieceNumbers) -> [i16; 6] {
    std::array::from_fn(|role| i16::from(white[role]) - i16::from(black[role]))
}

/// The state of evaluating a query in the positions of a game, one after another.
#[derive(Clone, Default, Debug)]
pub(super) struct QueryState {
    slots: Vec<SlotState>,
    ply: u32,
    /// The number of pieces and the squares of the pawns when it was last checked whether the query can still pass.
    checked: Option<(usize, Bitboard)>,
    /// Whether the query certainly passes in no later position of the game.
    pub is_over: bool,
}

impl QueryState {
    /// Prepares for the first position of a game.
    pub(super) fn reset(&mut self, program: &Program) {
        self.slots.clear();
        self.slots.resize(program.slots.len(), SlotState::default());
        (self.ply, self.checked, self.is_over) = (0, None, false);
    }

    /// Evaluates the query in the next position of a game. `mv` is the move that is played in the position. `only_loses`
    /// is `true` if the rules let a side gain pieces only by promotion.
    pub(super) fn visit<P: Position + Clone>(
        &mut self,
        program: &Program,
        pos: &P,
        mv: Option<Move>,
        only_loses: bool,
    ) -> bool {
        if self.is_over {
            return false;
        }
        let effect = OnceCell::new();
        for (index, slot) in program.slots.iter().enumerate() {
            let SlotState { holds: _, memory } = self.slots[index];
            let now = Now {
                pos,
                mv,
                ply: self.ply,
                slots: &self.slots,
                effect: &effect,
            };
            self.slots[index] = match slot {
                Slot::Shared(test) => SlotState {
                    holds: now.passes(test),
                    memory,
                },
                Slot::Then(first, second) => SlotState {
                    holds: memory > 0 && now.passes(second),
                    memory: u32::from(memory > 0 || now.passes(first)),
                },
                Slot::For(test, positions) => {
                    let memory = if now.passes(test) {
                        memory.saturating_add(1)
                    } else {
                        0
                    };
                    SlotState {
                        holds: memory >= *positions,
                        memory,
                    }
                }
            };
        }
        let now = Now {
            pos,
            mv,
            ply: self.ply,
            slots: &self.slots,
            effect: &effect,
        };
        let passes = now.passes(&program.root);
        self.ply += 1;
        if program.can_end && only_loses {
            let board = pos.board();
            let pieces = (board.occupied().count(), board.pawns());
            if self.checked != Some(pieces) {
                self.checked = Some(pieces);
                self.is_over = !program.may_pass(&Bounds::of(pos, self.ply), &self.slots);
            }
        }
        passes
    }
}

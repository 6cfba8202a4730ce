//! Queries that find games by the positions of their pieces, such as `P[d] = 1 and P[c,e] = 0`.
//!
//! A [`BoardQuery`] is parsed once (`grammar`) and compiled to tests on bitboards (`program`). A [`Matcher`] evaluates
//! the query in each position of a game's main line, in order. `docs/search.md` describes the language of queries.

mod ast;
mod grammar;
mod program;

use std::{fmt, str::FromStr, sync::Arc};

use shakmaty::{Move, Position};
use thiserror::Error;

use self::program::{Program, QueryState};
use crate::chess::position::Variant;

/// The maximum length of a query in bytes.
pub const MAX_QUERY_LENGTH: usize = 1 << 16;

/// A condition on the positions of a game. A game matches if the condition holds in at least one of them.
///
/// Two queries are equal if their texts are equal.
///
/// ```
/// use polybook::board_query::BoardQuery;
/// use shakmaty::{Chess, Position};
///
/// let query: BoardQuery = "turn = white and P[e4] = 0 and move[e4]".parse()?;
/// let mut matcher = query.matcher();
/// matcher.begin(polybook::position::Variant::Standard);
/// let start = Chess::default();
/// let e4 = start.legal_moves().into_iter().find(|mv| mv.to() == shakmaty::Square::E4);
/// assert!(matcher.visit(&start, e4));
/// assert!("P[e9]".parse::<BoardQuery>().is_err());
/// # Ok::<(), polybook::board_query::QueryError>(())
/// ```
#[derive(Clone)]
pub struct BoardQuery {
    text: Arc<str>,
    program: Arc<Program>,
}

/// A syntax error in the text of a query, with its place in the text.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub struct QueryError {
    /// The line with the error, counted from 1, or `None` if the query has only one line.
    pub line: Option<usize>,
    /// The column of the error, counted from 1.
    pub column: usize,
    /// A description of the error, such as what was expected instead.
    pub problem: String,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        write!(f, "column {}: {}", self.column, self.problem)
    }
}

impl QueryError {
    fn new(text: &str, at: usize, problem: String) -> QueryError {
        let before = &text.as_bytes()[..at.min(text.len())];
        let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        let has_lines = text.trim_ascii_end().contains('\n');
        QueryError {
            line: has_lines.then(|| memchr::memchr_iter(b'\n', before).count() + 1),
            column: before.len() - start + 1,
            problem,
        }
    }
}

impl FromStr for BoardQuery {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<BoardQuery, QueryError> {
        if text.len() > MAX_QUERY_LENGTH {
            let problem = format!("a query has at most {} KiB", MAX_QUERY_LENGTH >> 10);
            return Err(QueryError::new(text, MAX_QUERY_LENGTH, problem));
        }
        if let Some(at) = text.bytes().position(|byte| !byte.is_ascii()) {
            let problem = "expected ASCII characters only".to_owned();
            return Err(QueryError::new(text, at, problem));
        }
        let parsed = grammar::parse(text).and_then(|query| Program::new(&query));
        match parsed {
            Ok(program) => Ok(BoardQuery {
                text: text.into(),
                program: Arc::new(program),
            }),
            Err(fault) => Err(QueryError::new(text, fault.at, fault.problem)),
        }
    }
}

/// Writes the text from which the query was parsed.
impl fmt::Display for BoardQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for BoardQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoardQuery").field(&self.text).finish()
    }
}

impl PartialEq for BoardQuery {
    fn eq(&self, other: &BoardQuery) -> bool {
        self.text == other.text
    }
}

impl Eq for BoardQuery {}

impl BoardQuery {
    /// Returns the approximate number of bytes that the query occupies in memory.
    pub(crate) fn size(&self) -> usize {
        // The compiled form of a part takes about this many bytes for each of its characters.
        64 * self.text.len()
    }

    /// Creates a matcher for this query.
    pub fn matcher(&self) -> Matcher {
        Matcher {
            program: Arc::clone(&self.program),
            state: QueryState::default(),
            only_loses: false,
            matches: Vec::new(),
            visited: 0,
        }
    }
}

/// The state of evaluating a [`BoardQuery`] in the positions of a game.
#[derive(Clone, Debug)]
pub struct Matcher {
    program: Arc<Program>,
    state: QueryState,
    /// Whether a side can gain pieces only by promotion. This is `false` in crazyhouse, where captured pieces are
    /// dropped.
    only_loses: bool,
    /// The positions in which the query held, each as the number of half-moves played before it.
    matches: Vec<u32>,
    /// The number of positions that were visited.
    visited: u32,
}

impl Matcher {
    /// Prepares the matcher for a game of `variant`, and removes the matches of the previous game. Must be called
    /// before the first position of each game.
    pub fn begin(&mut self, variant: Variant) {
        self.state.reset(&self.program);
        self.only_loses = matches!(variant, Variant::Standard | Variant::Chess960);
        self.matches.clear();
        self.visited = 0;
    }

    /// Returns `true` if the query holds in the next position of the game. `mv` is the move that is played in the
    /// position, or `None` in the last position. Every position must be passed once, in the order of the game.
    pub fn visit<P: Position + Clone>(&mut self, pos: &P, mv: Option<Move>) -> bool {
        let holds = self.state.visit(&self.program, pos, mv, self.only_loses);
        if holds {
            self.matches.push(self.visited);
        }
        self.visited += 1;
        holds
    }

    /// Returns `true` if the query held in a position of the game.
    pub fn has_matched(&self) -> bool {
        !self.matches.is_empty()
    }

    /// Returns the positions in which the query held, each as the number of half-moves played before it, in ascending order.
    pub fn matches(&self) -> &[u32] {
        &self.matches
    }

    /// Returns `true` if the query certainly holds in no later position of the game, because too few pieces are left.
    pub fn is_over(&self) -> bool {
        self.state.is_over
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::Chess;

    use super::*;
    use crate::{chess::position::read_move, games::pgn::GameReader};

    /// Returns the numbers of half-moves after which the query holds in a game.
    fn plies(query: &str, moves: &str) -> Vec<usize> {
        plies_from(query, Chess::default(), moves)
    }

    fn plies_from(query: &str, mut pos: Chess, moves: &str) -> Vec<usize> {
        let query: BoardQuery = query.parse().unwrap_or_else(|err| panic!("{query}: {err}"));
        let mut matcher = query.matcher();
        matcher.begin(Variant::Standard);
        let mut found = Vec::new();
        let words: Vec<&str> = moves.split_whitespace().collect();
        for ply in 0..=words.len() {
            let mv = words
                .get(ply)
                .map(|word| read_move(&pos, word.as_bytes()).unwrap());
            if matcher.visit(&pos, mv) {
                found.push(ply);
            }
            if let Some(mv) = mv {
                pos.play_unchecked(mv);
            }
        }
        assert_eq!(matcher.has_matched(), !found.is_empty());
        found
    }

    #[test]
    fn each_part_of_the_language_has_its_meaning() {
        let game = "e4 d5 exd5 Qxd5 Nc3 Qd8 d4 Nf6 Nf3 Bg4 Be2 Nc6 O-O Qd7 h3 O-O-O hxg4";
        for (query, expected) in [
            ("P[e4] = 1", vec![1, 2]),
            ("Pe4", vec![1, 2]),
            ("P e4", vec![1, 2]),
            ("not P[e2,e4] and ply < 5", vec![3, 4]),
            ("q != 1", vec![]),
            ("q[d5]", vec![4, 5]),
            ("q[5] = 1 && qd == 1", vec![4, 5]),
            ("white + black < 30", vec![17]),
            ("white[3-8] * 2 >= 8 AND turn = Black", vec![15, 17]),
            ("whitee4 and Blackd5", vec![2]),
            ("White5 and blackd = 1", vec![3]),
            ("n[a-c] = 1 and n[c6]", vec![12, 13, 14, 15, 16, 17]),
            (
                "B[c1-e2] - b[g4] + 0 = 1 and ply > 9",
                vec![11, 12, 13, 14, 15, 16],
            ),
            ("move[O-O]", vec![12]),
            ("move[0-0-0]", vec![15]),
            ("move[O-O, o-o-o] // castling", vec![12, 15]),
            ("move[x]", vec![2, 3, 16]),
            ("move[exd5]", vec![2]),
            ("move[QxP]", vec![3]),
            ("move[Qx]", vec![3]),
            ("move[PxB]", vec![16]),
            ("move[xg4]", vec![16]),
            ("move[Ng1f3, g8f6]", vec![7, 8]),
            ("move[N] and turn != white", vec![7, 11]),
            ("move[d5]", vec![1, 2]),
            ("move[*d5]", vec![1, 2, 3]),
            ("turn = white and ply > 14", vec![16]),
            ("check or mate or stalemate", vec![]),
            (
                "fen[rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR]",
                vec![1],
            ),
            (
                "fen[rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1]",
                vec![1],
            ),
            (
                "fen[rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b HAha - 0 1]",
                vec![1],
            ),
            (
                "fen[rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR w]",
                vec![],
            ),
            (
                "fen[rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b Qkq]",
                vec![],
            ),
            ("board[8/8/8/3P4/8/8/8/8, 8/8/8/3q4/8/8/8/8]", vec![3, 4, 5]),
            ("board[2kr4/8/8/8/8/8/8/5RK1]", vec![16, 17]),
            ("imbalance[Pv]", vec![3]),
            ("imbalance[PPvp, Bv]", vec![3, 17]),
            ("imbalance[v] and ply > 0 and ply < 3", vec![1, 2]),
            ("material[KQRRBBNNPPPPPPPPvKQRRBBNNPPPPPPP]", vec![3]),
            ("material[QRRBBNNPPPPPPPPvQRRBBNNPPPPPPP]", vec![3]),
            ("Pe4 then qd5 then nc6", vec![12, 13, 14, 15, 16, 17]),
            ("qd5 then Pe4", vec![]),
            ("Pe4 then Pe4", vec![2]),
            ("qd5 for 2", vec![5]),
            ("qd5 or Pe4 for 2", vec![2, 5]),
            ("qd5 for 3", vec![]),
            ("either(P[d5])", vec![3]),
            ("either(move[Qxd5])", vec![3]),
            ("either(move[Qxd4])", vec![3]),
            ("either(board[8/8/8/8/3Q4/8/8/8])", vec![4, 5]),
            ("either(turn = white) and ply = 4", vec![4]),
            ("either(either(Pd5) and not either(Pd4))", vec![3]),
            ("-1 + 1", vec![]),
            ("1 - -1 > 1 and ply = 0", vec![0]),
            ("ply = 3 or (ply = 4 and not ply = 4)", vec![3]),
            ("1 + 2 * 3 = 7 and ply = 1", vec![1]),
        ] {
            assert_eq!(plies(query, game), expected, "{query}");
        }
    }

    #[test]
    fn mates_checks_and_promotions_are_found() {
        let mate = "f3 e5 g4 Qh4#";
        assert_eq!(plies("mate", mate), [4]);
        assert_eq!(plies("check", mate), [4]);
        assert_eq!(plies("move[#]", mate), [3]);
        assert_eq!(plies("move[+]", mate), [3]);
        assert_eq!(plies("move[Qh4#]", mate), [3]);
        assert_eq!(plies("move[Qh5]", mate), Vec::<usize>::new());
        let promotion = "a4 b5 axb5 a6 bxa6 Bb7 axb7 h6 bxa8=Q h5";
        assert_eq!(plies("move[a8=Q]", promotion), [8]);
        assert_eq!(plies("move[=, =N]", promotion), [8]);
        assert_eq!(plies("move[=N]", promotion), Vec::<usize>::new());
        assert_eq!(plies("Q = 2", promotion), [9, 10]);
        let en_passant = "e4 a6 e5 d5 exd6 h6";
        assert_eq!(plies("move[exP]", en_passant), [4]);
        let stalemate = crate::chess::position::parse_fen("k7/8/1Q6/8/8/8/8/K7 b - - 0 1").unwrap();
        assert_eq!(plies_from("stalemate", stalemate.clone(), ""), [0]);
        assert_eq!(
            plies_from("mate or check", stalemate, ""),
            Vec::<usize>::new()
        );
    }

    /// Each query of ocgdb's documents, with a position in which it holds and one in which it does not.
    #[test]
    fn queries_of_ocgdb_have_their_meaning() {
        let castled = "r2qkb1r/1p2nppp/p3p3/4Pb2/2BB4/P7/1P3PPP/RN1Q1RK1 b kq - 0 12";
        let caro_kann = [
            "rnbqkbnr/pp2pppp/2p5/3pP3/3P4/8/PPP2PPP/RNBQKBNR b KQkq - 0 3",
            "rn1qkbnr/pp2pppp/2p5/3pPb2/3P4/5N2/PPP2PPP/RNBQKB1R b KQkq - 1 4",
        ];
        let (of_castled, of_caro_kann) = (
            format!("fen[{castled}]"),
            format!("fen[{}]", caro_kann.join(", ")),
        );
        for (query, held, other) in [
            (
                "R",
                "4k3/8/8/8/8/8/8/R3K3 w - -",
                "4k3/8/8/8/8/8/8/r3K3 w - -",
            ),
            (
                "qb3",
                "4k3/8/8/8/8/1q6/8/4K3 w - -",
                "4k3/8/8/8/1q6/8/8/4K3 w - -",
            ),
            (
                "B3",
                "4k3/8/8/8/8/7B/8/4K3 w - -",
                "4k3/8/8/8/7B/8/8/4K3 w - -",
            ),
            (
                "bb",
                "4k3/8/8/8/8/8/1b6/4K3 w - -",
                "4k3/8/8/8/8/8/1B3b2/4K3 w - -",
            ),
            (
                "n[b-e]",
                "4k3/8/8/8/4n3/8/8/4K3 w - -",
                "4k3/8/8/8/5n2/n7/8/4K3 w - -",
            ),
            (
                "P[a4, c5, d5]",
                "4k3/8/8/2P5/8/8/8/4K3 w - -",
                "4k3/8/8/1P6/2P5/8/8/4K3 w - -",
            ),
            (
                "R == 3",
                "4k3/8/8/8/8/8/8/RRR1K3 w - -",
                "4k3/8/8/8/8/8/8/RR2K3 w - -",
            ),
            (
                "q[5-7] >= 2",
                "k7/7q/8/7q/8/8/8/K7 w - -",
                "k7/7q/8/8/7q/8/8/K7 w - -",
            ),
            (
                "Q = 3",
                "k7/8/8/8/8/8/1QQQ4/7K w - -",
                "k7/8/8/8/8/8/1QQ5/7K w - -",
            ),
            (
                "3 = Q",
                "k7/8/8/8/8/8/1QQQ4/7K w - -",
                "k7/8/8/8/8/1Q6/1QQQ4/7K w - -",
            ),
            (
                "r[e4, e5, d4,d5]= 2",
                "k7/8/8/3r4/4r3/8/8/K7 w - -",
                "k7/8/8/3rr3/4r3/8/8/K7 w - -",
            ),
            (
                "P[d4, e5, f4, g4] = 4 and kb7",
                "8/1k6/8/4P3/3P1PP1/8/8/K7 w - -",
                "1k6/8/8/4P3/3P1PP1/8/8/K7 w - -",
            ),
            (
                "p[b, 5, a2 - d2] < 4",
                "k7/1p6/1p6/4p3/8/4p3/8/7K w - -",
                "k7/1p6/1p6/4p3/8/8/3p4/7K w - -",
            ),
            (
                "pc > 1",
                "k7/2p5/2p5/8/8/8/8/K7 w - -",
                "k7/2p5/2P5/8/8/8/8/K7 w - -",
            ),
            (
                "P3 >= 2",
                "k7/8/8/8/8/P6P/8/K7 w - -",
                "k7/8/8/8/P7/7P/8/K7 w - -",
            ),
            (
                "B[c-f] + b[c-f] = 2",
                "k7/2b5/8/8/8/8/5B2/K7 w - -",
                "k7/2b5/8/8/8/6B1/8/K7 w - -",
            ),
            (
                "white6 = 5",
                "6k1/8/1NPPPB2/8/8/8/8/K7 w - -",
                "6k1/8/1NPPpB2/8/8/8/8/K7 w - -",
            ),
            (
                "white[6] = 5",
                "6k1/8/1NPPPB2/8/8/8/8/K7 w - -",
                "6k1/1P6/2PPPB2/8/8/8/8/K7 w - -",
            ),
            (
                "black[a-c] > 8",
                "rnb1k3/ppp5/nbp5/8/8/8/8/7K w - -",
                "rn2k3/ppp5/nbp5/8/8/8/8/7K w - -",
            ),
            (
                &of_castled,
                castled,
                "r2qkb1r/1p2nppp/p3p3/4Pb2/2BB4/P7/1P3PPP/RN1Q1RK1 w kq - 0 12",
            ),
            (&of_caro_kann, caro_kann[0], castled),
            (&of_caro_kann, caro_kann[1], castled),
            (
                "fen[K7/N7/k7/8/3p4/8/N7/8 w - - 0 1]",
                "K7/N7/k7/8/3p4/8/N7/8 w - -",
                "K7/N7/k7/8/3p4/8/N7/8 b - -",
            ),
        ] {
            let holds = |fen: &str| {
                let pos = crate::chess::position::parse_fen(fen).unwrap();
                !plies_from(query, pos, "").is_empty()
            };
            assert!(holds(held), "{query}: {held}");
            assert!(!holds(other), "{query}: {other}");
        }
    }

    #[test]
    fn errors_name_the_column_and_what_was_expected() {
        for (query, column, part) in [
            ("", 1, "expected a condition"),
            ("Q = ", 5, "found the end"),
            ("Q = x", 5, "found \"x\""),
            (
                "isolated_pawns_of_white",
                1,
                "found \"isolated_pawns_of_white\"",
            ),
            (
                "isolatedpawnsofwhiteandblack",
                1,
                "found \"isolatedpawnsofwhiteandblack\"",
            ),
            ("P[d9]", 4, "expected a square"),
            ("P[e-b]", 5, "range"),
            ("P[d", 4, "a comma or ]"),
            ("Pz", 2, "an operator"),
            ("whited9", 7, "expected a square"),
            ("whiteda", 1, "expected a condition"),
            ("Q Q", 3, "an operator"),
            ("Q = 1 then", 11, "expected a condition"),
            ("Q for", 6, "a number of positions"),
            ("Q for 0", 7, "from 1"),
            ("Q for 99999999999", 7, "too large"),
            ("(Q", 3, "expected )"),
            ("Q)", 2, "an operator"),
            ("turn", 5, "= white"),
            ("turn = red", 8, "white or black"),
            ("turn < white", 7, "= white"),
            ("(Q and q) + 1", 1, "expected a number"),
            ("1 < Q < 3", 7, "two sides"),
            ("99999999999999999999", 1, "too large"),
            ("1 + 9223372036854775807", 1, "too large"),
            ("Q = P*P*P*P*P*P*P*P*P*P*P", 5, "too large"),
            ("board[8/8/8]", 7, "eight ranks"),
            ("board[]", 7, "eight ranks"),
            ("fen[8/8/8/8/8/8/8/8 x]", 21, "w or b"),
            ("fen[8/8/8/8/8/8/8/8 w KQ]", 23, "castling"),
            ("fen[8/8/8/8/8/8/8/8 w - z9]", 25, "en passant"),
            ("material[KP]", 10, "KRPPvKRP"),
            ("imbalance[XvP]", 11, "PPvN"),
            ("move[]", 6, "expected a move"),
            ("move[Bz7]", 7, "expected a move"),
            ("Q = 1\nand P[z]", 7, "expected a square"),
            ("Q = \u{fc}", 5, "ASCII"),
        ] {
            let err = query.parse::<BoardQuery>().unwrap_err();
            assert_eq!(err.column, column, "{query}: {err}");
            assert!(err.to_string().contains(part), "{query}: {err}");
        }
        let err = "Q = 1\nand P[z]".parse::<BoardQuery>().unwrap_err();
        assert!(err.to_string().starts_with("line 2, column 7: "), "{err}");
    }

    #[test]
    fn limits_bound_the_length_and_the_levels() {
        let levels = |open: &str, close: &str, levels: usize| {
            let text = open.repeat(levels) + "Q" + &close.repeat(levels);
            text.parse::<BoardQuery>().map_err(|err| err.problem)
        };
        for (open, close) in [("(", ")"), ("either(", ")"), ("not ", ""), ("- ", "")] {
            assert!(levels(open, close, 64).is_ok(), "{open}");
            let problem = levels(open, close, 65).unwrap_err();
            assert!(problem.contains("64 levels"), "{problem}");
            assert!(levels(open, close, 5000).is_err());
        }
        let blank = " ".repeat(MAX_QUERY_LENGTH - 1) + "Q";
        assert!(blank.parse::<BoardQuery>().is_ok());
        assert!((blank + " ").parse::<BoardQuery>().is_err());
        // Queries of the maximum length are compiled, and take time in proportion to their length.
        for (part, operator) in [
            ("P[d4-e5]=2", " and "),
            ("Q", " or "),
            ("Q", "+"),
            ("Q", " then "),
            ("(Q for 2)", " then "),
            ("either(move[x])", " or "),
        ] {
            let count = MAX_QUERY_LENGTH / (part.len() + operator.len());
            let query = vec![part; count].join(operator);
            plies(&query, "e4 e5");
        }
        // Each combination of two operators, nested as deeply as possible.
        let outer = [
            "Q and (",
            "Q or (",
            "not Q and (",
            "Q then (",
            "either(",
            "not (",
            "Q + (",
            "1 < (",
        ];
        for (first, second) in outer
            .iter()
            .flat_map(|one| outer.map(|other| (*one, other)))
        {
            let query = [first, second].concat().repeat(16) + "Q" + &")".repeat(32);
            if query.parse::<BoardQuery>().is_ok() {
                plies(&query, "e4 e5");
            }
        }
        let nested = "either(Q then ".repeat(60) + "Q" + &")".repeat(60);
        // A sequence holds where its last part holds, so the outer parts need only one earlier position.
        assert_eq!(plies(&nested, "e4 e5"), [1, 2]);
    }

    /// Generates texts of conditions and of numbers.
    fn query() -> impl Strategy<Value = String> {
        let squares = prop_oneof![
            Just(String::new()),
            "[a-h][1-8]",
            "\\[[a-h]-h\\]",
            "\\[[1-8]-8,[a-h][1-8]\\]",
            Just("[a2-d5]".to_owned()),
        ];
        let count = (
            prop_oneof![
                "[KQRBNPkqrbnp]",
                Just("white".to_owned()),
                Just("black".to_owned())
            ],
            squares,
        )
            .prop_map(|(piece, squares)| match squares.starts_with('[') {
                true => piece + &squares,
                false if piece.len() == 1 => piece + &squares,
                false => piece,
            });
        let number =
            prop_oneof![count, "[0-9]", Just("ply".to_owned())].prop_recursive(3, 8, 2, |inner| {
                (inner.clone(), "[-+*]", inner).prop_map(|(a, sign, b)| format!("({a} {sign} {b})"))
            });
        let compared = (
            number.clone(),
            prop_oneof!["<=?", ">=?", "=", "!="],
            number.clone(),
        )
            .prop_map(|(a, sign, b)| format!("{a} {sign} {b}"));
        let atom = prop_oneof![
            compared,
            number,
            "(check|mate|stalemate|turn = white|turn = black)",
            "move\\[(x|\\+|N|Qx|xP|O-O|e4|exd5|=Q|\\*d5)\\]",
            "board\\[(8/){3}3[Pp]4(/8){4}\\]",
            "imbalance\\[(v|Pv|vN|BvN)\\]",
            "material\\[KQRRBBNNPPPPPPP?P?vKQRRBBNNPPPPPPPP?\\]",
        ];
        atom.prop_recursive(5, 24, 3, |inner| {
            prop_oneof![
                (
                    inner.clone(),
                    "( and | or | && |\\|\\|| then )",
                    inner.clone()
                )
                    .prop_map(|(a, sign, b)| format!("({a}{sign}{b})")),
                inner.clone().prop_map(|a| format!("not ({a})")),
                inner.clone().prop_map(|a| format!("either({a})")),
                (inner, 1..4).prop_map(|(a, positions)| format!("(({a}) for {positions})")),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,40}") {
            if let Err(err) = text.parse::<BoardQuery>() {
                prop_assert!(err.column <= text.len() + 1);
            }
        }

        /// Compares a query with the same one in mirrored games, and games that are left early with games that are not.
        #[test]
        fn generated_queries_hold_in_mirrored_games_and_ignore_early_ends(text in query(), seed: u64) {
            // A product of many half-moves is too large.
            let parsed = text.parse::<BoardQuery>();
            prop_assume!(parsed.as_ref().err().is_none_or(|err| err.problem != "these numbers are too large"));
            let query = parsed.unwrap();
            let either: BoardQuery = format!("either({text})").parse().unwrap();
            let (mut early, mut full, mut both) = (query.matcher(), query.matcher(), either.matcher());
            early.begin(Variant::Standard);
            // The rules of crazyhouse do not let a query end early.
            full.begin(Variant::Crazyhouse);
            both.begin(Variant::Standard);
            let mut pos = Chess::default();
            let mut random = seed;
            for _ in 0..60 {
                let legal = pos.legal_moves();
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let captures = pos.capture_moves();
                let from = if captures.is_empty() || random >> 60 < 4 { &legal } else { &captures };
                let mv = from.get((random >> 33) as usize % from.len().max(1)).copied();
                let holds = full.visit(&pos, mv);
                prop_assert_eq!(early.visit(&pos, mv), holds, "{}", text);
                prop_assert!(both.visit(&pos, mv) || !holds, "{}", text);
                match mv {
                    Some(mv) => pos.play_unchecked(mv),
                    None => break,
                }
            }
        }
    }

    #[test]
    fn a_game_is_left_when_its_material_cannot_match() {
        let text = "1. e4 d5 2. exd5 Qxd5 3. Nc3 Qxd2+ 4. Qxd2 *";
        let mut over = Vec::new();
        for query in [
            "P = 8 and P[e5]",
            "board[8/8/8/8/8/8/4P3/8] and ply > 2",
            "Q = 1",
            "ply < 2",
        ] {
            let mut matcher = query.parse::<BoardQuery>().unwrap().matcher();
            matcher.begin(Variant::Standard);
            let mut games = GameReader::new(text.as_bytes());
            games.next_game();
            let mut pos = crate::chess::position::Keyed::new(Chess::default());
            let mut ply = 0;
            let mut receive = |pos: &crate::chess::position::Keyed<Chess>, mv, _end| {
                ply += 1;
                matcher.visit(pos.position(), Some(mv));
                !matcher.is_over()
            };
            let letters = crate::chess::position::PieceLetters::English;
            crate::games::pgn::play_main_line(&mut games, letters, &mut pos, &mut receive);
            over.push(ply);
        }
        // White loses a pawn in the fourth half-move, and the pawn on e2 does not come back.
        assert_eq!(over, [5, 2, 7, 2]);
    }
}

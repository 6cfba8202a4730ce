//! Queries about the board: as text, and made by a grammar.

use polybook::{
    board_query::{BoardQuery, MAX_QUERY_LENGTH, QueryError},
    position::{Rules, Variant},
};
use shakmaty::Chess;

use super::choice;

pub fn run(data: &[u8]) {
    for text in texts(data) {
        check(&text, text.parse());
    }
}

/// Returns the texts to parse.
pub fn texts(data: &[u8]) -> Vec<String> {
    let (kind, rest) = choice(data);
    let long = |unit: &str, separator: &str| {
        let parts = MAX_QUERY_LENGTH / (unit.len() + separator.len());
        vec![unit; parts.max(1)].join(separator)
    };
    match kind % 5 {
        0 => vec![String::from_utf8_lossy(rest).into_owned()],
        1 => vec![Grammar { bytes: rest, at: 0 }.query()],
        2 => {
            let text = String::from_utf8_lossy(rest);
            let unit = if text.is_empty() { "(" } else { &text };
            let most = long(unit, "");
            vec![format!("{most}{unit}"), most]
        }
        3 => {
            let part = Grammar { bytes: rest, at: 0 }.query();
            let separator = [" and ", " or ", " then ", "\n", ", "][usize::from(kind / 5 % 5)];
            vec![long(&part, separator)]
        }
        // Nests a part many times between the same beginning and end.
        _ => {
            let (begin, end) = rest.split_at(rest.len() / 2);
            let [begin, end] = [begin, end].map(|part| String::from_utf8_lossy(part).into_owned());
            let levels = [2, 16, 64, 65, 5000][usize::from(kind / 5 % 5)];
            let levels = levels.min((MAX_QUERY_LENGTH - 1) / (begin.len() + end.len()).max(1));
            vec![begin.repeat(levels) + "Q" + &end.repeat(levels)]
        }
    }
}

/// Evaluates a query in the positions of a game, or checks its error.
pub fn check(text: &str, parsed: Result<BoardQuery, QueryError>) {
    match parsed {
        Ok(query) => {
            assert_eq!(query.to_string(), text);
            play(&query, Variant::Standard, Chess::default());
            if text.len() < 1000 {
                let crazyhouse = Variant::Crazyhouse;
                play(&query, crazyhouse, crazyhouse.start());
            }
        }
        Err(err) => {
            let columns = text.len() + 1;
            assert!(err.column >= 1 && err.column <= columns, "{err}");
        }
    }
}

fn play<P: Rules>(query: &BoardQuery, variant: Variant, mut pos: P) {
    let mut matcher = query.matcher();
    matcher.begin(variant);
    let mut found = false;
    for at in 0..12 {
        let moves = pos.legal_moves();
        let mv = moves[at * 7 % moves.len()];
        found |= matcher.visit(&pos, Some(mv));
        assert!(!matcher.is_over() || !matcher.visit(&pos, Some(mv)));
        pos.play_unchecked(mv);
    }
    found |= matcher.visit(&pos, None);
    assert_eq!(matcher.has_matched(), found);
}

/// Makes queries that are correct, but for their levels and their length. Each byte chooses how to go on.
struct Grammar<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Grammar<'_> {
    fn next(&mut self, choices: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        usize::from(byte) % choices
    }

    fn one(&mut self, of: &[&str]) -> String {
        of[self.next(of.len())].to_owned()
    }

    fn query(&mut self) -> String {
        if self.at >= self.bytes.len() {
            return "Q".to_owned();
        }
        match self.next(12) {
            0 => format!("({} and {})", self.query(), self.query()),
            1 => format!("{} || {}", self.query(), self.query()),
            2 => format!("({} then {})", self.query(), self.query()),
            3 => format!("({} for {})", self.query(), self.next(256) + 1),
            4 => format!("not({})", self.query()),
            5 => format!("either({})", self.query()),
            6 => {
                let sign = self.one(&["=", "==", "!=", "<>", "<", "<=", ">", ">="]);
                format!("{} {sign} {}", self.number(), self.number())
            }
            7 => self.one(&[
                "check",
                "mate",
                "stalemate",
                "turn = black",
                "turn != black",
            ]),
            8 => self.one(&[
                "fen[rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1]",
                "fen[rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR, 8/8/8/8/8/8/8/K1k5 b]",
                "board[8/8/8/3P4/8/8/8/8]",
                "board[5rk1/8/8/8/8/8/8/8, 8/8/q7/8/8/8/8/8]",
            ]),
            9 => self.one(&[
                "material[KRPPvKRP]",
                "material[KQRRBBNNPPPPPPPPvKQRRBBNNPPPPPPPP]",
                "imbalance[v]",
                "imbalance[PPvN, QvRR]",
            ]),
            10 => self.one(&[
                "move[x]",
                "move[Bxh7+]",
                "move[*e4]",
                "move[e8=Q#]",
                "move[O-O-O]",
                "move[KxQ]",
                "move[N@f3]",
                "move[e2e4, d2d4]",
            ]),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> String {
        if self.at >= self.bytes.len() {
            return "7".to_owned();
        }
        match self.next(7) {
            0 => format!("({} + {})", self.number(), self.number()),
            1 => format!("{} * {}", self.number(), self.number()),
            2 => format!("-{}", self.number()),
            3 => format!("{} - {}", self.number(), self.number()),
            4 => "ply".to_owned(),
            5 => self.next(256).to_string(),
            _ => {
                let piece = self.one(&[
                    "K", "Q", "R", "B", "N", "P", "k", "q", "r", "b", "n", "p", "white", "black",
                ]);
                let squares = self.one(&["", "[d4]", "[a-c]", "[7]", "[a1-c3,h]", "[2-4,e5]"]);
                piece + &squares
            }
        }
    }
}

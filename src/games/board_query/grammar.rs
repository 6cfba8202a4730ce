//! The grammar of board queries, written as parsers of the crate winnow.

use shakmaty::{Bitboard, Board, CastlingSide, Color, File, Rank, Role, Square};
use winnow::{
    ModalResult, Parser,
    ascii::digit1,
    combinator::{opt, peek, preceded, separated},
    error::{ErrMode, ParserError},
    stream::{LocatingSlice, Location, Stateful, Stream as _},
    token::{any, one_of, take_while},
};

use super::ast::{
    Comparison, FenFields, MovePattern, Node, NodeKind, PieceNumbers, Pieces, Placement,
};

/// The maximum depth to which parts of a query, such as expressions in parentheses, may be nested.
pub(super) const MAX_LEVELS: usize = 64;

/// The rest of the query's text that has not been parsed yet, and the depth of nesting at its beginning.
type QueryText<'t> = Stateful<LocatingSlice<&'t str>, usize>;

/// A syntax error in a query: its offset in the text, and the problem.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub at: usize,
    pub problem: String,
}

impl<'t> ParserError<QueryText<'t>> for Fault {
    type Inner = Fault;

    fn from_input(input: &QueryText<'t>) -> Fault {
        Fault {
            at: input.current_token_start(),
            problem: "this is not part of a query".to_owned(),
        }
    }

    fn into_inner(self) -> Result<Fault, Fault> {
        Ok(self)
    }
}

type Parsed<T> = ModalResult<T, Fault>;

const CONDITION: &str = "a condition, such as Q = 1, check or move[x]";

fn fault<T>(at: usize, problem: impl Into<String>) -> Parsed<T> {
    Err(ErrMode::Cut(Fault {
        at,
        problem: problem.into(),
    }))
}

/// Returns a syntax error at the current offset: `what` was expected there. The error quotes the text that was found
/// instead.
fn expected<T>(input: &QueryText<'_>, what: &str) -> Parsed<T> {
    let rest = *input.input;
    let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let mut found: String = rest.chars().take_while(is_word).take(40).collect();
    if found.is_empty() {
        found = rest.chars().take(1).collect();
    }
    let found = match &*found {
        "" => "the end of the query".to_owned(),
        found => format!("\"{}\"", found.escape_default()),
    };
    fault(
        input.current_token_start(),
        format!("expected {what}, found {found}"),
    )
}

/// Parses the text of a whole query.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut input = Stateful {
        input: LocatingSlice::new(text),
        state: 0,
    };
    let parsed = sequence(&mut input).and_then(|query| {
        blanks(&mut input)?;
        if input.input.is_empty() {
            Ok(query)
        } else {
            expected(
                &input,
                "an operator, such as and, or, then, =, < or +, or the end of the query",
            )
        }
    });
    parsed.map_err(|err| match err {
        ErrMode::Backtrack(fault) | ErrMode::Cut(fault) => fault,
        ErrMode::Incomplete(_) => unreachable!("the text is complete"),
    })
}

/// Skips blanks, line ends and comments.
fn blanks(input: &mut QueryText<'_>) -> Parsed<()> {
    loop {
        take_while(0.., |c: char| c.is_ascii_whitespace())
            .void()
            .parse_next(input)?;
        if opt("//").parse_next(input)?.is_none() {
            return Ok(());
        }
        take_while(0.., |c: char| c != '\n')
            .void()
            .parse_next(input)?;
    }
}

/// Skips blanks and then `token`. Returns `false` if `token` does not follow the blanks.
fn symbol(token: &'static str) -> impl FnMut(&mut QueryText<'_>) -> Parsed<bool> {
    move |input| {
        blanks(input)?;
        Ok(opt(token).parse_next(input)?.is_some())
    }
}

/// Skips blanks and then an operator, which may be written as `word` (in upper or lower case) or as `sign`. Returns
/// `false` if the operator does not follow the blanks.
fn operator(
    word: &'static str,
    sign: Option<&'static str>,
) -> impl FnMut(&mut QueryText<'_>) -> Parsed<bool> {
    move |input| {
        blanks(input)?;
        if let Some(sign) = sign
            && opt(sign).parse_next(input)?.is_some()
        {
            return Ok(true);
        }
        let found: &str = peek(letters).parse_next(input)?;
        let is_word = found.eq_ignore_ascii_case(word);
        if is_word {
            letters.parse_next(input)?;
        }
        Ok(is_word)
    }
}

fn letters<'t>(input: &mut QueryText<'t>) -> Parsed<&'t str> {
    take_while(0.., |c: char| c.is_ascii_alphabetic()).parse_next(input)
}

fn require(input: &mut QueryText<'_>, token: &'static str) -> Parsed<()> {
    if symbol(token)(input)? {
        Ok(())
    } else {
        expected(input, token)
    }
}

/// Runs `inner`, the parser of a nested part of the query. Fails if the part is nested more deeply than [`MAX_LEVELS`].
fn nested<T>(
    input: &mut QueryText<'_>,
    inner: impl FnOnce(&mut QueryText<'_>) -> Parsed<T>,
) -> Parsed<T> {
    if input.state == MAX_LEVELS {
        return fault(
            input.current_token_start(),
            format!("more than {MAX_LEVELS} levels contain each other"),
        );
    }
    input.state += 1;
    let parsed = inner(input)?;
    input.state -= 1;
    Ok(parsed)
}

/// Parses one or more parts that are separated by `operator`, and combines them with `join`. A single part is returned
/// unchanged.
fn chain(
    input: &mut QueryText<'_>,
    mut part: impl FnMut(&mut QueryText<'_>) -> Parsed<Node>,
    mut operator: impl FnMut(&mut QueryText<'_>) -> Parsed<bool>,
    join: fn(Vec<Node>) -> NodeKind,
) -> Parsed<Node> {
    let first = part(input)?;
    if !operator(input)? {
        return Ok(first);
    }
    let at = first.at;
    let mut parts = vec![first, part(input)?];
    while operator(input)? {
        parts.push(part(input)?);
    }
    Ok(Node {
        at,
        kind: join(parts),
    })
}

fn sequence(input: &mut QueryText<'_>) -> Parsed<Node> {
    chain(input, lasting, operator("then", None), NodeKind::Then)
}

fn lasting(input: &mut QueryText<'_>) -> Parsed<Node> {
    let node = chain(input, conjunction, operator("or", Some("||")), NodeKind::Or)?;
    if !operator("for", None)(input)? {
        return Ok(node);
    }
    blanks(input)?;
    let at = input.current_token_start();
    let Some(digits) = opt(digit1).parse_next(input)? else {
        return expected(input, "a number of positions");
    };
    match digits.parse() {
        Ok(0) => fault(at, "expected a number of positions from 1"),
        Ok(positions) => Ok(Node {
            at: node.at,
            kind: NodeKind::For(Box::new(node), positions),
        }),
        Err(_) => fault(at, "this number is too large"),
    }
}

fn conjunction(input: &mut QueryText<'_>) -> Parsed<Node> {
    chain(input, negation, operator("and", Some("&&")), NodeKind::And)
}

fn negation(input: &mut QueryText<'_>) -> Parsed<Node> {
    blanks(input)?;
    let at = input.current_token_start();
    if !operator("not", Some("!"))(input)? {
        return comparison(input);
    }
    let node = nested(input, negation)?;
    Ok(Node {
        at,
        kind: NodeKind::Not(Box::new(node)),
    })
}

fn comparison_sign(input: &mut QueryText<'_>) -> Parsed<Option<Comparison>> {
    blanks(input)?;
    let signs = [
        ("==", Comparison::Equal),
        ("=", Comparison::Equal),
        ("!=", Comparison::Unequal),
        ("<>", Comparison::Unequal),
        ("<=", Comparison::LessOrEqual),
        ("<", Comparison::Less),
        (">=", Comparison::GreaterOrEqual),
        (">", Comparison::Greater),
    ];
    for (sign, comparison) in signs {
        if opt(sign).parse_next(input)?.is_some() {
            return Ok(Some(comparison));
        }
    }
    Ok(None)
}

fn comparison(input: &mut QueryText<'_>) -> Parsed<Node> {
    let left = sum(input)?;
    let Some(sign) = comparison_sign(input)? else {
        return Ok(left);
    };
    let right = sum(input)?;
    let at = input.current_token_start();
    if comparison_sign(input)?.is_some() {
        return fault(at, "expected the end of a comparison, which has two sides");
    }
    Ok(Node {
        at: left.at,
        kind: NodeKind::Compare(Box::new(left), sign, Box::new(right)),
    })
}

fn sum(input: &mut QueryText<'_>) -> Parsed<Node> {
    let first = product(input)?;
    let at = first.at;
    let mut terms = vec![(false, first)];
    loop {
        let is_subtracted = if symbol("+")(input)? {
            false
        } else if symbol("-")(input)? {
            true
        } else {
            break;
        };
        terms.push((is_subtracted, product(input)?));
    }
    Ok(match terms.len() {
        1 => terms.remove(0).1,
        _ => Node {
            at,
            kind: NodeKind::Sum(terms),
        },
    })
}

fn product(input: &mut QueryText<'_>) -> Parsed<Node> {
    chain(input, factor, symbol("*"), NodeKind::Product)
}

fn factor(input: &mut QueryText<'_>) -> Parsed<Node> {
    blanks(input)?;
    let at = input.current_token_start();
    if let Some(digits) = opt(digit1).parse_next(input)? {
        return match digits.parse() {
            Ok(number) => Ok(Node {
                at,
                kind: NodeKind::Number(number),
            }),
            Err(_) => fault(at, "this number is too large"),
        };
    }
    if symbol("-")(input)? {
        let node = nested(input, factor)?;
        return Ok(Node {
            at,
            kind: NodeKind::Negative(Box::new(node)),
        });
    }
    if symbol("(")(input)? {
        let mut node = nested(input, sequence)?;
        require(input, ")")?;
        node.at = at;
        return Ok(node);
    }
    let start = input.checkpoint();
    let mut word = letters(input)?.to_ascii_lowercase();
    // In `whited4`, the place follows the word directly, as in `Pd4`.
    if let [b'w', b'h', b'i', b't', b'e', b'a'..=b'h']
    | [b'b', b'l', b'a', b'c', b'k', b'a'..=b'h'] = word.as_bytes()
    {
        word.pop();
        input.reset(&start);
        input.next_slice(word.len());
    }
    let kind = match &*word {
        "ply" => NodeKind::Ply,
        "check" => NodeKind::Check,
        "mate" => NodeKind::Mate,
        "stalemate" => NodeKind::Stalemate,
        "turn" => turn(input)?,
        "white" => NodeKind::Count(Pieces::All(Color::White), squares(input)?),
        "black" => NodeKind::Count(Pieces::All(Color::Black), squares(input)?),
        "either" => {
            require(input, "(")?;
            let node = nested(input, sequence)?;
            require(input, ")")?;
            NodeKind::Either(Box::new(node))
        }
        "fen" => NodeKind::Fen(list(input, fen)?),
        "board" => NodeKind::Board(list(input, |item| {
            Ok(Placement::of(&placement(item.at, item.text)?))
        })?),
        "material" => {
            let mut all = list(input, |item| counts(item, "KRPPvKRP"))?;
            let with_kings: Vec<PieceNumbers> =
                all.iter().filter_map(PieceNumbers::with_kings).collect();
            all.extend(with_kings);
            NodeKind::Material(all)
        }
        "imbalance" => NodeKind::Imbalance(list(input, |item| counts(item, "PPvN"))?),
        "move" => NodeKind::Move(list(input, move_pattern)?),
        _ => {
            input.reset(&start);
            let Some(pieces) = opt(piece).parse_next(input)? else {
                return expected(input, CONDITION);
            };
            NodeKind::Count(pieces, squares(input)?)
        }
    };
    Ok(Node { at, kind })
}

/// Parses the letter of a piece: an uppercase letter for White, a lowercase letter for Black.
fn piece(input: &mut QueryText<'_>) -> Parsed<Pieces> {
    let letter = one_of(|c: char| "KQRBNPkqrbnp".contains(c)).parse_next(input)?;
    let piece = shakmaty::Piece::from_char(letter).expect("a letter of a piece");
    Ok(Pieces::Kind(piece.color, piece.role))
}

fn turn(input: &mut QueryText<'_>) -> Parsed<NodeKind> {
    let is_equal = match comparison_sign(input)? {
        Some(Comparison::Equal) => true,
        Some(Comparison::Unequal) => false,
        _ => return expected(input, "= white or = black after turn"),
    };
    blanks(input)?;
    let word: &str = peek(letters).parse_next(input)?;
    let Ok(color) = word.to_ascii_lowercase().parse::<Color>() else {
        return expected(input, "white or black");
    };
    letters(input)?;
    Ok(NodeKind::Turn(if is_equal { color } else { !color }))
}

fn file(input: &mut QueryText<'_>) -> Parsed<File> {
    let letter = one_of('a'..='h').parse_next(input)?;
    Ok(File::from_char(letter).expect("a letter of a file"))
}

fn rank(input: &mut QueryText<'_>) -> Parsed<Rank> {
    let digit = one_of('1'..='8').parse_next(input)?;
    Ok(Rank::from_char(digit).expect("a digit of a rank"))
}

/// A square such as `e4`, a file such as `e`, or a rank such as `4`.
type Place = (Option<File>, Option<Rank>);

fn place(input: &mut QueryText<'_>) -> Parsed<Place> {
    blanks(input)?;
    let place = (opt(file).parse_next(input)?, opt(rank).parse_next(input)?);
    let follows = peek(opt(any)).parse_next(input)?;
    if place == (None, None) || follows.is_some_and(|c| c.is_ascii_alphanumeric()) {
        return expected(input, "a square, a file from a to h or a rank from 1 to 8");
    }
    Ok(place)
}

/// Parses the squares after the letter of a piece: a square, a file or a rank, or a list of them in brackets. If there
/// are none, returns all squares of the board.
fn squares(input: &mut QueryText<'_>) -> Parsed<Bitboard> {
    if symbol("[")(input)? {
        let ranges: Vec<Bitboard> = separated(1.., range, ",").parse_next(input)?;
        blanks(input)?;
        if !symbol("]")(input)? {
            return expected(input, "a comma or ]");
        }
        return Ok(ranges.into_iter().fold(Bitboard::EMPTY, |all, it| all | it));
    }
    let next = peek(opt(any)).parse_next(input)?;
    let word: &str = peek(letters).parse_next(input)?;
    let begins = match next {
        Some(c) if c.is_ascii_digit() => true,
        // A word such as `and` is an operator.
        Some('a'..='h') => word.len() == 1,
        _ => false,
    };
    if begins {
        let place = place(input)?;
        Ok(rectangle(place, place))
    } else {
        Ok(Bitboard::FULL)
    }
}

fn range(input: &mut QueryText<'_>) -> Parsed<Bitboard> {
    let first = place(input)?;
    if !symbol("-")(input)? {
        blanks(input)?;
        return Ok(rectangle(first, first));
    }
    blanks(input)?;
    let at = input.current_token_start();
    let last = place(input)?;
    blanks(input)?;
    let is_same_kind =
        first.0.is_some() == last.0.is_some() && first.1.is_some() == last.1.is_some();
    if !is_same_kind || last.0 < first.0 || last.1 < first.1 {
        return fault(
            at,
            "expected the end of a range that is not before its beginning, such as b-e, 2-4 or a4-c5",
        );
    }
    Ok(rectangle(first, last))
}

/// Returns the squares of the rectangle with the corners `first` and `last`. If the corners are ranks, the rectangle
/// contains all files. If they are files, it contains all ranks.
fn rectangle(first: Place, last: Place) -> Bitboard {
    let files = File::ALL.into_iter().filter(|file| {
        first.0.is_none_or(|first| first <= *file) && last.0.is_none_or(|last| *file <= last)
    });
    let ranks = Rank::ALL.into_iter().filter(|rank| {
        first.1.is_none_or(|first| first <= *rank) && last.1.is_none_or(|last| *rank <= last)
    });
    let files = files.fold(Bitboard::EMPTY, |all, file| all | Bitboard::from_file(file));
    files & ranks.fold(Bitboard::EMPTY, |all, rank| all | Bitboard::from_rank(rank))
}

/// An item of a list in brackets, with its offset in the text.
struct Item<'t> {
    at: usize,
    text: &'t str,
}

/// Parses a list in brackets, whose items are separated by commas. `read` parses one item.
fn list<T>(input: &mut QueryText<'_>, read: impl Fn(Item<'_>) -> Parsed<T>) -> Parsed<Vec<T>> {
    require(input, "[")?;
    let mut items = Vec::new();
    loop {
        blanks(input)?;
        let at = input.current_token_start();
        let text: &str = take_while(0.., |c: char| !matches!(c, ',' | ']')).parse_next(input)?;
        items.push(read(Item {
            at,
            text: text.trim_ascii_end(),
        })?);
        if opt(",").parse_next(input)?.is_some() {
            continue;
        }
        require(input, "]")?;
        return Ok(items);
    }
}

/// Parses the first field of a FEN, the placement of the pieces.
fn placement(at: usize, text: &str) -> Parsed<Board> {
    match Board::from_ascii_board_fen(text.as_bytes()) {
        Ok(board) if text.matches('/').count() == 7 => Ok(board),
        _ => fault(
            at,
            "expected the placement of a FEN: eight ranks from 8 to 1, such as 8/8/8/3P4/8/8/8/8",
        ),
    }
}

fn fen(item: Item<'_>) -> Parsed<FenFields> {
    let mut fields = item.text.split_ascii_whitespace();
    let board = placement(item.at, fields.next().unwrap_or_default())?;
    let offset = |field: &str| item.at + (field.as_ptr().addr() - item.text.as_ptr().addr());
    let mut read = FenFields {
        board,
        turn: None,
        castling: None,
        en_passant: None,
        halfmoves: None,
        fullmoves: None,
    };
    for (number, field) in fields.enumerate() {
        let number_of_moves = || match field.parse() {
            Ok(moves) => Ok(Some(moves)),
            Err(_) => fault(offset(field), "expected a number of moves"),
        };
        match number {
            0 => match field {
                "w" => read.turn = Some(Color::White),
                "b" => read.turn = Some(Color::Black),
                _ => return fault(offset(field), "expected w or b, the side to move"),
            },
            1 => match castling(&read.board, field) {
                Some(rooks) => read.castling = Some(rooks),
                None => {
                    return fault(
                        offset(field),
                        "expected castling rights that this placement allows, such as KQkq or -",
                    );
                }
            },
            2 => match (field, field.parse()) {
                ("-", _) => read.en_passant = Some(None),
                (_, Ok(square)) => read.en_passant = Some(Some(square)),
                _ => return fault(offset(field), "expected an en passant square or -"),
            },
            3 => read.halfmoves = number_of_moves()?,
            4 => read.fullmoves = number_of_moves()?,
            _ => return fault(offset(field), "expected the end of a FEN with six fields"),
        }
    }
    Ok(read)
}

/// Returns the squares of the rooks that may castle, according to the castling field of a FEN. Returns `None` if a king
/// or a rook is not on the square that the field requires.
fn castling(board: &Board, field: &str) -> Option<Bitboard> {
    let mut rooks = Bitboard::EMPTY;
    for letter in field.chars().filter(|_| field != "-") {
        let color = Color::from_white(letter.is_ascii_uppercase());
        let back = Bitboard::from_rank(color.fold_wb(Rank::First, Rank::Eighth));
        let king = board.king_of(color).filter(|king| back.contains(*king))?;
        let candidates = board.rooks() & board.by_color(color) & back;
        let rook = match letter.to_ascii_lowercase() {
            'k' => candidates.last().filter(|rook| *rook > king),
            'q' => candidates.first().filter(|rook| *rook < king),
            letter => {
                let file = Bitboard::from_file(File::from_char(letter)?);
                (candidates & file).single_square()
            }
        };
        rooks.add(rook?);
    }
    (!field.is_empty()).then_some(rooks)
}

/// Parses the pieces of both sides, separated by the letter `v`, such as `KRPvKR`. If the text is malformed, the error
/// shows `example`.
fn counts(item: Item<'_>, example: &str) -> Parsed<PieceNumbers> {
    let problem = |at| fault(at, format!("expected letters of pieces, such as {example}"));
    let Some((white, black)) = item.text.split_once(['v', 'V']) else {
        return problem(item.at);
    };
    let mut counts = [[0u8; 6]; 2];
    for (side, text, at) in [(0, white, item.at), (1, black, item.at + white.len() + 1)] {
        for (index, letter) in text.char_indices() {
            let role = Role::from_char(letter);
            let Some(role) = role.filter(|_| side == 1 || letter.is_ascii_uppercase()) else {
                return problem(at + index);
            };
            let count = &mut counts[side][role as usize - 1];
            *count = count.saturating_add(1);
        }
    }
    Ok(PieceNumbers(counts))
}

fn move_pattern(item: Item<'_>) -> Parsed<MovePattern> {
    let mut text = Stateful {
        input: LocatingSlice::new(item.text),
        state: 0,
    };
    match pattern(&mut text) {
        Ok(pattern) if text.input.is_empty() && !item.text.is_empty() => Ok(pattern),
        _ => fault(
            item.at + text.current_token_start(),
            "expected a move or a part of one, such as Bxh7, O-O-O, e8=Q, N, xQ, x, =Q, + or #",
        ),
    }
}

fn role(input: &mut QueryText<'_>) -> Parsed<Role> {
    let letter = one_of(|c: char| "KQRBNP".contains(c)).parse_next(input)?;
    Ok(Role::from_char(letter).expect("a letter of a piece"))
}

fn pattern(input: &mut QueryText<'_>) -> Parsed<MovePattern> {
    let mut pattern = MovePattern::default();
    let upper = input.input.to_ascii_uppercase().replace('0', "O");
    let castling = [
        ("O-O-O", CastlingSide::QueenSide),
        ("O-O", CastlingSide::KingSide),
    ];
    if let Some((word, side)) = castling
        .into_iter()
        .find(|(word, _)| upper.starts_with(word))
    {
        input.next_slice(word.len());
        pattern.castling = Some(side);
    } else {
        pattern_of_squares(input, &mut pattern)?;
    }
    match opt(one_of(['+', '#'])).parse_next(input)? {
        Some('+') => pattern.is_check = true,
        Some(_) => pattern.is_mate = true,
        None => {}
    }
    Ok(pattern)
}

fn pattern_of_squares(input: &mut QueryText<'_>, pattern: &mut MovePattern) -> Parsed<()> {
    let any_piece = opt('*').parse_next(input)?.is_some();
    if !any_piece {
        pattern.role = opt(role).parse_next(input)?;
    }
    let place = |input: &mut QueryText<'_>| -> Parsed<Place> {
        Ok((opt(file).parse_next(input)?, opt(rank).parse_next(input)?))
    };
    let mut first = place(input)?;
    if opt('@').parse_next(input)?.is_some() {
        pattern.is_drop = true;
    } else if opt('x').parse_next(input)?.is_some() {
        pattern.is_capture = true;
        pattern.captured = opt(role).parse_next(input)?;
    } else {
        _ = opt('-').parse_next(input)?;
    }
    let mut target = (None, None);
    if pattern.captured.is_none() {
        target = place(input)?;
        if target == (None, None) && !pattern.is_capture {
            target = std::mem::take(&mut first);
        }
    }
    (pattern.from_file, pattern.from_rank) = first;
    match target {
        (Some(file), Some(rank)) => pattern.to = Some(Square::from_coords(file, rank)),
        (None, None) => {}
        _ => return fault(0, "expected a square"),
    }
    // A square without a letter is the target of a pawn, as in SAN.
    let is_pawn = pattern.to.is_some() && !pattern.is_capture || first.0.is_some();
    if pattern.role.is_none() && !any_piece && is_pawn && !is_between_squares(first) {
        pattern.role = Some(Role::Pawn);
    }
    let promotion = preceded('=', opt(role));
    if let Some(promotion) = opt(promotion).parse_next(input)? {
        pattern.is_promotion = true;
        pattern.promotion = promotion;
    } else if pattern.to.is_some() {
        pattern.promotion = opt(role).parse_next(input)?;
        pattern.is_promotion = pattern.promotion.is_some();
    }
    Ok(())
}

/// Returns `true` if `first`, the text before the target of a move, is a square, as `g1` in `g1f3`. In this notation,
/// any kind of piece can make the move.
fn is_between_squares(first: Place) -> bool {
    first.0.is_some() && first.1.is_some()
}

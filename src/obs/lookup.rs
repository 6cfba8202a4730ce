//! Telling whether an EPD that another program wrote names a position.
//!
//! Programs write castling rights in any order, an en passant square after every double step, counters and
//! operations at the end, and empty brackets where nothing is held. All write the board alike. So a position is
//! looked for by its board, and the other fields of the few EPDs that are found are compared.

use shakmaty::{Board, CastlingSide, Color, EnPassantMode, Position, Role, Square, attacks};

use crate::position::write_epd;

/// A position that is looked for.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The EPD that polybook writes.
    pub epd: String,
    board: Board,
    turn: Color,
    has_pockets: bool,
    /// Whether a pawn may take en passant: one that is ready may be pinned.
    may_take: bool,
    /// Each castling right as the EPD has it, and the letter of its rook's file.
    castling: Vec<(u8, u8)>,
}

/// The fields of an EPD.
struct Fields<'a> {
    board: &'a str,
    /// The text in brackets after the board.
    held: &'a str,
    turn: &'a str,
    castling: &'a str,
    en_passant: &'a str,
    /// Counters, operations, and the fields of a variant.
    rest: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    fn of(epd: &'a str) -> Option<Fields<'a>> {
        let mut words = epd.split_ascii_whitespace();
        let placement = words.next()?;
        let (board, held) = match placement.split_once('[') {
            Some((board, held)) => (board, held.strip_suffix(']')?),
            None => (placement, ""),
        };
        Some(Fields {
            board,
            held,
            turn: words.next()?,
            castling: words.next()?,
            en_passant: words.next()?,
            rest: words.collect(),
        })
    }
}

impl Wanted {
    pub(super) fn new<P: Position>(pos: &P) -> Wanted {
        let mut epd = Vec::new();
        write_epd(pos, &mut epd);
        let epd = String::from_utf8(epd).expect("an EPD is ASCII");
        let letters = Fields::of(&epd).expect("an EPD has four fields").castling;
        let castling = rights(pos).into_iter().zip(letters.bytes());
        Wanted {
            castling: castling.map(|(file, letter)| (letter, file)).collect(),
            board: pos.board().clone(),
            turn: pos.turn(),
            has_pockets: pos.pockets().is_some(),
            may_take: pos.ep_square(EnPassantMode::Legal).is_some(),
            epd,
        }
    }

    /// The bounds of the EPDs that begin with the same board: the first is included, the second is not.
    pub(super) fn range(&self) -> (String, String) {
        let board = self.fields().board.to_owned();
        // No character of an EPD comes after this one.
        let end = format!("{board}\x7f");
        (board, end)
    }

    /// Whether an EPD names the position.
    pub(super) fn is_named_by(&self, epd: &str) -> bool {
        if epd == self.epd {
            return true;
        }
        let Some(theirs) = Fields::of(epd) else {
            return false;
        };
        self.is_named_but_for_en_passant(&theirs)
            && self.is_en_passant(theirs.en_passant, self.fields().en_passant)
    }

    /// Whether an EPD names the position in the way of programs that write no en passant square where all pawns that
    /// could take are pinned. It may be that of another position, where no pawn has just advanced.
    pub(super) fn is_named_without_pinned(&self, epd: &str) -> bool {
        let is_pinned = !self.may_take && self.fields().en_passant != "-";
        let names = |theirs: Fields<'_>| {
            theirs.en_passant == "-" && self.is_named_but_for_en_passant(&theirs)
        };
        is_pinned && Fields::of(epd).is_some_and(names)
    }

    fn is_named_but_for_en_passant(&self, theirs: &Fields<'_>) -> bool {
        let ours = self.fields();
        theirs.board == ours.board
            && theirs.turn == ours.turn
            && (self.has_pockets || theirs.held.is_empty())
            && sorted(theirs.held) == sorted(ours.held)
            && self.is_castling(theirs.castling)
            && theirs.rest.starts_with(&ours.rest)
    }

    fn fields(&self) -> Fields<'_> {
        Fields::of(&self.epd).expect("an EPD has four fields")
    }

    /// Whether these letters, in any order, are the castling rights.
    fn is_castling(&self, letters: &str) -> bool {
        let theirs = match letters {
            "-" => "",
            letters => letters,
        };
        let mut found: Vec<u8> = theirs
            .bytes()
            .map(|letter| {
                let by_file = self.castling.iter().find(|(_, file)| *file == letter);
                by_file.map_or(letter, |(ours, _)| *ours)
            })
            .collect();
        let mut ours: Vec<u8> = self.castling.iter().map(|(letter, _)| *letter).collect();
        found.sort_unstable();
        ours.sort_unstable();
        found == ours
    }

    /// Whether an en passant square is ours, or one that no pawn can reach where we have none.
    fn is_en_passant(&self, theirs: &str, ours: &str) -> bool {
        if theirs == ours {
            return true;
        }
        let Ok(square) = Square::from_ascii(theirs.as_bytes()) else {
            return false;
        };
        let pawns = self.board.by_role(Role::Pawn) & self.board.by_color(self.turn);
        ours == "-" && (attacks::pawn_attacks(!self.turn, square) & pawns).is_empty()
    }
}

/// The castling rights in the order of an EPD: each by the letter of its rook's file.
fn rights<P: Position>(pos: &P) -> Vec<u8> {
    let mut rights = Vec::new();
    for color in Color::ALL {
        for side in [CastlingSide::KingSide, CastlingSide::QueenSide] {
            if let Some(rook) = pos.castles().rook(color, side) {
                let file = rook.file().char() as u8;
                rights.push(color.fold_wb(file.to_ascii_uppercase(), file));
            }
        }
    }
    rights
}

fn sorted(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.sort_unstable();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Variant;

    #[track_caller]
    fn check(variant: Variant, fen: &str, named: &[&str], others: &[&str]) {
        let wanted = Wanted::new(&variant.parse_fen(fen).unwrap());
        let (start, end) = wanted.range();
        for epd in named {
            assert!(wanted.is_named_by(epd), "{epd}");
            assert!((&start[..]..&end[..]).contains(epd), "{epd}");
        }
        for epd in others {
            assert!(!wanted.is_named_by(epd), "{epd}");
        }
    }

    #[test]
    fn counters_and_the_order_of_rights_make_no_difference() {
        let board = "r3k2r/8/8/8/8/8/8/R3K2R";
        let named = ["w KQkq -", "w kqKQ - 3 17", "w QKqk - hmvc 3;", "w HAha -"];
        let others = ["b KQkq -", "w KQk -", "w KQkqq -", "w - -", "w KQkq", ""];
        let with_board = |texts: &[&str]| -> Vec<String> {
            texts.iter().map(|text| format!("{board} {text}")).collect()
        };
        let (named, others) = (with_board(&named), with_board(&others));
        check(
            Variant::Standard,
            &format!("{board} w KQkq - 0 1"),
            &named.iter().map(String::as_str).collect::<Vec<_>>(),
            &others.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn an_en_passant_square_counts_if_a_pawn_stands_ready() {
        check(
            Variant::Standard,
            "4k3/8/8/8/4P3/8/8/4K3 b - e3 0 1",
            &[
                "4k3/8/8/8/4P3/8/8/4K3 b - -",
                "4k3/8/8/8/4P3/8/8/4K3 b - e3 0 1",
            ],
            &[],
        );
        check(
            Variant::Standard,
            "4k3/8/8/8/3pP3/8/8/4K3 b - - 0 1",
            &["4k3/8/8/8/3pP3/8/8/4K3 b - - 0 1"],
            &["4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1"],
        );
        check(
            Variant::Standard,
            "4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1",
            &["4k3/8/8/8/3pP3/8/8/4K3 b - e3"],
            &["4k3/8/8/8/3pP3/8/8/4K3 b - -"],
        );
    }

    #[test]
    fn the_square_of_a_pinned_pawn_may_be_left_out() {
        let wanted = |fen: &str| Wanted::new(&Variant::Standard.parse_fen(fen).unwrap());
        let pinned = wanted("4k3/8/8/r2pP2K/8/8/8/8 w - d6 0 1");
        assert!(pinned.epd.ends_with("d6"));
        assert!(!pinned.is_named_by("4k3/8/8/r2pP2K/8/8/8/8 w - -"));
        assert!(pinned.is_named_without_pinned("4k3/8/8/r2pP2K/8/8/8/8 w - - 0 1"));
        assert!(!pinned.is_named_without_pinned("4k3/8/8/r2pP2K/8/8/8/8 b - -"));
        let free = wanted("4k3/8/8/3pP2K/8/8/8/8 w - d6 0 1");
        assert!(!free.is_named_without_pinned("4k3/8/8/3pP2K/8/8/8/8 w - -"));
    }

    #[test]
    fn what_a_variant_needs_must_be_there() {
        let board = "4k3/8/8/8/8/8/8/4K3";
        let held = |text: &str| format!("{board}{text}");
        check(
            Variant::Crazyhouse,
            &held("[QNp] w - -"),
            &[&held("[pQN] w - - 0 1"), &held("[QNp] w - -")],
            &[&held(" w - -"), &held("[QN] w - -")],
        );
        check(
            Variant::Crazyhouse,
            &held("[] w - -"),
            &[&held(" w - -"), &held("[] w - - 0 1")],
            &[&held("[Q] w - -")],
        );
        check(
            Variant::Standard,
            &held(" w - -"),
            &[&held("[] w - -")],
            &[&held("[Q] w - -")],
        );
        check(
            Variant::ThreeCheck,
            &held(" w - - 3+2"),
            &[&held(" w - - 3+2 0 1")],
            &[&held(" w - -"), &held(" w - - 3+3 0 1")],
        );
    }

    #[test]
    fn rooks_of_chess960_are_told_apart() {
        check(
            Variant::Chess960,
            "4k3/8/8/8/8/8/8/2R1K1RR w CG -",
            &[
                "4k3/8/8/8/8/8/8/2R1K1RR w GC - 0 1",
                "4k3/8/8/8/8/8/8/2R1K1RR w GQ -",
            ],
            &[
                "4k3/8/8/8/8/8/8/2R1K1RR w KQ -",
                "4k3/8/8/8/8/8/8/2R1K1RR w HC -",
            ],
        );
    }
}

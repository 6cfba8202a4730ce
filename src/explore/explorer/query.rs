//! Queries to the explorer, which consist of a position, filters and limits. A [`Line`] contains the position and the
//! moves that led to it.

use std::{fmt, str::FromStr};

use shakmaty::{Move, Position, uci::UciMove, variant::VariantPosition};
use thiserror::Error;

use crate::{
    chess::position::{Keyed, LineError, MoveError, Variant, move_words, read_move},
    formats::explorer_index::ListKey,
    games::{
        openings::{self, Opening},
        selection::Selection,
    },
};

/// The form of an answer, which determines its optional parts and the ratings that are given for each move.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum View {
    /// Contains top and recent games with their speeds, and for each move the mean rating of the players who made it.
    Lichess,
    /// Contains top games, without the speed and the mode of each game.
    Masters,
    /// Contains recent games and, for each move, the results and the performance rating of one player.
    Player,
}

/// The maximum number of top games (the games with the highest ratings) in an answer with [`View::Masters`].
const MAX_MASTERS_GAMES: usize = 15;
/// The maximum number of top games (the games with the highest ratings) in an answer with [`View::Lichess`].
const MAX_TOP_GAMES: usize = 4;
/// The maximum number of recent games (the newest games) in an answer.
const MAX_RECENT_GAMES: usize = 8;

/// A query about the games that reached a position, with filters for the games and limits on the size of the
/// answer.
#[derive(Clone, Debug)]
pub struct Query {
    /// The position, and the moves that led to it.
    pub line: Line,
    /// The form of the answer, which determines its optional parts.
    pub view: View,
    /// The filters that a game must pass to be counted.
    pub filters: Selection,
    /// The maximum number of moves, or `None` for all moves. The totals of the answer always include all moves.
    pub moves: Option<usize>,
    /// The maximum number of top games. Values above 4, or above 15 in [`View::Masters`], have no further effect.
    pub top_games: usize,
    /// The maximum number of recent games, which are the newest games that are not among the top games. At most 8.
    /// `None` means 8 minus the number of top games.
    pub recent_games: Option<usize>,
    /// Whether the answer contains, for each move, the results of the player whom the filters name, as in
    /// [`View::Player`], with confidence intervals of the player's scores.
    pub player_scores: bool,
    /// Whether the answer contains the results of each month.
    pub history: bool,
    /// Whether the answer contains the results of each year, with the number of games with each move.
    pub years: bool,
    /// Whether the answer contains, for each move, the results of all games that reached the position after the move,
    /// by any order of moves.
    pub resulting: bool,
}

impl Query {
    /// Creates a query without filters, with the default limits of `view`.
    pub fn new(line: Line, view: View) -> Query {
        Query {
            line,
            view,
            filters: Selection::default(),
            moves: match view {
                View::Lichess | View::Masters => Some(12),
                View::Player => None,
            },
            top_games: usize::MAX,
            recent_games: match view {
                View::Lichess => None,
                View::Masters => Some(0),
                View::Player => Some(MAX_RECENT_GAMES),
            },
            player_scores: false,
            history: false,
            years: false,
            resulting: false,
        }
    }

    /// Returns `true` if the answer contains the results of the player whom the filters name.
    pub(super) fn has_player_scores(&self) -> bool {
        self.view == View::Player || self.player_scores
    }

    /// Returns the maximum number of top games (the games with the highest ratings) in the answer.
    pub(super) fn top_limit(&self) -> usize {
        self.top_games.min(match self.view {
            View::Lichess => MAX_TOP_GAMES,
            View::Masters => MAX_MASTERS_GAMES,
            View::Player => 0,
        })
    }

    /// Returns the number of newest games to collect for the list of recent games. It is greater than the number of
    /// games in the answer, because games that are also top games are left out of this list.
    pub(super) fn recent_candidates(&self) -> usize {
        match self.recent_limit(0) {
            0 => 0,
            games => games + self.top_limit(),
        }
    }

    /// Returns the maximum number of recent games in an answer that contains `top_games` top games. Without a limit in
    /// the query, top games and recent games together are limited to [`MAX_RECENT_GAMES`].
    pub(super) fn recent_limit(&self, top_games: usize) -> usize {
        match (self.view, self.recent_games) {
            (View::Masters, _) => 0,
            (_, Some(games)) => games.min(MAX_RECENT_GAMES),
            (_, None) => MAX_RECENT_GAMES - top_games.min(MAX_RECENT_GAMES),
        }
    }
}

/// A page of the list of games that reached a position. The fields say how many games to skip, how many to return, and
/// how the list is sorted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The number of games to skip before the page.
    pub skip: usize,
    /// The maximum number of games on the page.
    pub limit: usize,
    /// The order in which the games are listed.
    pub sort: Sort,
    /// Whether the list contains only the first game of each match. A match is all games of two players at one event in
    /// one year.
    pub fold_matches: bool,
}

/// The order of a list of games.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Sort {
    /// The newest games first. Games of the same day are sorted by number, in descending order.
    #[default]
    Recent,
    /// The games with the highest mean rating first. Games with equal ratings are sorted by date, the newest first.
    /// Games for which only one rating or no rating is known come after all others.
    Rating,
    /// The games in ascending order of their numbers, which is the order of the input files.
    Id,
}

/// The error returned when parsing a string as a [`Sort`] fails.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("use recent, rating or id")]
pub struct UnknownSort;

impl FromStr for Sort {
    type Err = UnknownSort;

    fn from_str(text: &str) -> Result<Sort, UnknownSort> {
        match text {
            "recent" => Ok(Sort::Recent),
            "rating" => Ok(Sort::Rating),
            "id" => Ok(Sort::Id),
            _ => Err(UnknownSort),
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Sort::Recent => "recent",
            Sort::Rating => "rating",
            Sort::Id => "id",
        })
    }
}

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
                fen: crate::chess::position::fen_of(&pos),
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
    /// key. An index of counts may use any of them, because counts may distinguish positions by an en passant square
    /// even if no legal move can use it.
    pub(super) fn subjects(&self) -> Vec<ListKey> {
        let pos = Keyed::new(self.position().clone());
        let identities = pos.exact_identities();
        identities
            .map(|identity| ListKey::position(self.variant, identity))
            .collect()
    }

    /// Returns the opening of the line, which is the name of its last position that has one. Returns `None` if no
    /// position of the line has a name.
    pub fn opening(&self) -> Option<Opening> {
        self.positions.iter().rev().find_map(openings::name_of)
    }

    /// Returns the number of half-moves after which this line reaches the last position of `other`, or `None` if it
    /// does not reach that position.
    ///
    /// If this line begins with all moves of `other`, returns the number of moves of `other`. Otherwise, if this line
    /// reaches the position several times, returns the number of half-moves for the last time.
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

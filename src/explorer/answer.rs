//! Answers of the explorer, as serde types in the form that clients of opening explorers read.

use std::collections::BTreeMap;

use shakmaty::Color;

use crate::{
    openings::Opening,
    pgn::{Mode, Speed},
};

/// The answer to a query about a position: the numbers of games by result, and the moves that were played.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The number of games that White won.
    pub white: u64,
    /// The number of drawn games plus the number of games without a result. Clients add `white`, `draws` and `black` to
    /// get the number of all games.
    pub draws: u64,
    /// The number of games that Black won.
    pub black: u64,
    /// The player's results in all games of the answer, or `None` if the view is not
    /// [`View::Player`](super::View::Player).
    #[serde(flatten)]
    pub player: Option<PlayerTotals>,
    /// The moves, sorted by number of games in descending order, then by their UCI text.
    pub moves: Vec<PlayedMove>,
    /// The newest games that are not among the top games, the newest first; `None` if the view has no recent games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_games: Option<Vec<PlayedGame>>,
    /// The games with the highest ratings; `None` if the view has no top games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_games: Option<Vec<PlayedGame>>,
    /// The opening of the last position of the line that has a name, or `None` if no position has one.
    pub opening: Option<Opening>,
    /// Always 0: an answer is complete when it is returned. Clients expect the field.
    pub queue_position: u32,
    /// The results by month, from the first to the last month that has games; `None` if the query does not ask for a
    /// history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<MonthCount>>,
    /// The results by year, for each year that has games. Games without a known year come last. `None` if the query
    /// does not ask for years.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    pub years: Option<Vec<YearCount>>,
    /// The number of games without a result. They are included in `draws`; subtract them before you calculate a score.
    /// A source of counts adds nothing to this number, because counts do not distinguish these games from draws.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
}

impl Answer {
    /// Returns the number of games.
    pub fn games(&self) -> u64 {
        self.white + self.draws + self.black
    }

    /// Returns the number of drawn games, not counting games without a result.
    pub fn drawn(&self) -> u64 {
        self.draws - self.unfinished
    }
}

/// A move, with the numbers of games in which it was played.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlayedMove {
    /// The move in UCI notation. Castling is written as king takes rook: `e1h1`.
    pub uci: String,
    /// The move in SAN.
    pub san: String,
    /// The mean of the known ratings of the players who made the move, rounded down; 0 if no rating is known. `None` in
    /// [`View::Player`](super::View::Player).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_rating: Option<u64>,
    /// The player's results in the games with this move, or `None` if the view is not
    /// [`View::Player`](super::View::Player).
    #[serde(flatten)]
    pub player: Option<PlayerScore>,
    /// The number of games that White won.
    pub white: u64,
    /// The number of drawn games plus the number of games without a result. Clients add `white`, `draws` and `black` to
    /// get the number of all games.
    pub draws: u64,
    /// The number of games that Black won.
    pub black: u64,
    /// The game in which the move was played, if there is exactly one.
    pub game: Option<GameInfo>,
    /// The opening of the position after the move, or `None` if that position itself has no name.
    pub opening: Option<Opening>,
    /// The number of games that reached the position after the move by any move order, or `None` if the query does not
    /// ask for transpositions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<u64>,
    /// The number of games without a result. They are included in `draws`; subtract them before you calculate a score.
    /// A source of counts adds nothing to this number, because counts do not distinguish these games from draws.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// The number of games in which the rating of the player who moved is known. `None` if it is known in all games or
    /// in none, and in [`View::Player`](super::View::Player).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating_games: Option<u64>,
}

impl PlayedMove {
    /// Returns the number of games.
    pub fn games(&self) -> u64 {
        self.white + self.draws + self.black
    }

    /// Returns the number of drawn games, not counting games without a result.
    pub fn drawn(&self) -> u64 {
        self.draws - self.unfinished
    }
}

/// A player's results in all games of an answer.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlayerTotals {
    /// The number of games that the player won.
    pub wins: u64,
    /// The number of games that the player lost.
    pub losses: u64,
    /// The mean rating of the opponents in the games with a result, rounded half up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opponent_rating: Option<u64>,
    /// The player's own mean rating, rounded half up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_rating: Option<u64>,
    /// The number of games in which the player's own rating is known.
    pub player_rating_games: u64,
    /// The performance by FIDE's table, or `None` if `performance_games` is less than 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance: Option<u64>,
    /// The number of games with a result and a rated opponent, from which `opponent_rating` and `performance` are
    /// calculated.
    pub performance_games: u64,
    /// The date of the newest of these games: `2006-01-02`, or `2006-01` or `2006` if the rest is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_played: Option<String>,
}

/// A player's results in the games in which a move was played.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlayerScore {
    /// The number of games that the player won.
    pub wins: u64,
    /// The number of games that the player lost.
    pub losses: u64,
    /// The mean rating of the opponents in the games with a result, rounded half up.
    pub average_opponent_rating: Option<u64>,
    /// The performance by FIDE's table, or `None` if `performance_games` is less than 10.
    pub performance: Option<u64>,
    /// The number of games with a result and a rated opponent, from which `average_opponent_rating` and `performance` are
    /// calculated.
    pub performance_games: u64,
    /// The date of the newest of these games: `2006-01-02`, or `2006-01` or `2006` if the rest is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_played: Option<String>,
}

/// A game, with the move that was played in the position.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PlayedGame {
    /// The move in UCI notation, castling as king takes rook; `None` if the game ended in the position.
    pub uci: Option<String>,
    /// The game.
    #[serde(flatten)]
    pub game: GameInfo,
}

/// The description of a game: its id, players, date and result.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct GameInfo {
    /// The number of the game. Games of all sources are numbered consecutively from 0.
    #[serde(skip)]
    pub number: u64,
    /// The game's id at Lichess or, if it has none, its number with eight digits.
    pub id: String,
    /// The winner, or `None` for a draw or a game without a result.
    #[serde(serialize_with = "as_color")]
    pub winner: Option<Color>,
    /// The speed of the game; `None` in [`View::Masters`](super::View::Masters).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Whether the game was rated; `None` in [`View::Masters`](super::View::Masters).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The player with Black.
    pub black: Player,
    /// The player with White.
    pub white: Player,
    /// The year, 0 if unknown.
    pub year: u16,
    /// Year and month, `2006-01`, if both are known.
    pub month: Option<String>,
    /// Whether the game has no result. This distinguishes it from a draw, which has no winner either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
}

/// A player of a game.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Player {
    /// The name.
    pub name: String,
    /// The rating, 0 if unknown.
    pub rating: u16,
    /// The player's title, or `None` if it is unknown. Titles are known only if the text of the game has been read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The results of the games of one month.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MonthCount {
    /// Year and month: `2006-01`.
    pub month: String,
    /// The number of games that White won.
    pub white: u64,
    /// The number of drawn games plus the number of games without a result. Clients add `white`, `draws` and `black` to
    /// get the number of all games.
    pub draws: u64,
    /// The number of games that Black won.
    pub black: u64,
    /// The number of games without a result. They are included in `draws`; subtract them before you calculate a score.
    /// A source of counts adds nothing to this number, because counts do not distinguish these games from draws.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
}

/// The results of the games of one year.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct YearCount {
    /// The year, or `None` for the games whose year is unknown.
    pub year: Option<u16>,
    /// The number of games that White won.
    pub white: u64,
    /// The number of drawn games plus the number of games without a result. Clients add `white`, `draws` and `black` to
    /// get the number of all games.
    pub draws: u64,
    /// The number of games that Black won.
    pub black: u64,
    /// The number of games without a result. They are included in `draws`; subtract them before you calculate a score.
    /// A source of counts adds nothing to this number, because counts do not distinguish these games from draws.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// For each move of the answer, by its UCI text, the number of games of this year in which it was played.
    pub moves: BTreeMap<String, u64>,
}

/// An entry in a list of games.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ListedGame {
    /// The game, with the move that was played in the position.
    #[serde(flatten)]
    pub played: PlayedGame,
    /// The date of the game: `2006-01-02`, or `2006-01` or `2006` if the rest is unknown.
    pub date: Option<String>,
    /// The name of the event.
    pub event: Option<String>,
    /// The ECO code that the game itself states.
    pub eco: Option<String>,
    /// The number of half-moves of the game, at most 65535.
    pub plies: u16,
    /// The number of duplicates of this game that are not listed because only one game of each group of duplicates is.
    pub copies: usize,
    /// The other games of the same match. `Some` only if the list contains just the first game of each match.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub of_match: Option<MatchGames>,
}

/// The other games of a match.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MatchGames {
    /// The number of these games that pass the filters.
    pub more: u64,
}

/// A page of the list of a position's games.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct GameList {
    /// The number of games in the whole list.
    pub total: u64,
    /// The number of games to skip to get the next page, or `None` if this is the last page.
    pub next: Option<usize>,
    /// The games on this page.
    pub games: Vec<ListedGame>,
}

/// A description of the sources of an explorer.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Overview {
    /// The version of polybook.
    pub version: &'static str,
    /// The number of games in all sources, or `None` if a source has counts that do not state their number of games.
    pub games: Option<u64>,
    /// The sum of the numbers of positions of all sources. A position that several sources have counts several times.
    pub positions: u64,
    /// The first and the last year from which there are games, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// The sources.
    pub sources: Vec<SourceOverview>,
}

/// A description of one source: an index from which an explorer answers.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceOverview {
    /// The name that was given to the source.
    pub name: String,
    /// The number of games that were read, including games whose positions are not indexed. `None` if the source has
    /// counts that do not state it.
    pub games: Option<u64>,
    /// The number of positions.
    pub positions: u64,
    /// The first and the last year from which there are games, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// The variant of the games, or `auto` if the source may contain games of several variants.
    pub variant: String,
    /// The names of the files from which the games were read, without directories.
    pub files: Vec<String>,
    /// Whether the source has counts instead of games. Counts can be filtered only by speed, rating group and month.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// If rare positions were dropped from the counts, the minimum number of moves that were counted in a position.
    /// `None` if no position was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_game: Option<u64>,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ply: Option<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn is_zero(games: &u64) -> bool {
    *games == 0
}

fn as_color<S: serde::Serializer>(color: &Option<Color>, serializer: S) -> Result<S::Ok, S::Error> {
    match color {
        Some(color) => serializer.serialize_str(color.fold_wb("white", "black")),
        None => serializer.serialize_none(),
    }
}

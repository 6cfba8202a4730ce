//! Answers of the explorer, as serde types in the form that clients of opening explorers read.

use std::collections::BTreeMap;

use shakmaty::Color;

use crate::{
    openings::Opening,
    pgn::{Mode, Speed},
};

/// What was played in a position.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Games that White won.
    pub white: u64,
    /// Drawn games and, because clients add the three numbers, games without a result.
    pub draws: u64,
    /// Games that Black won.
    pub black: u64,
    /// How the player did in all games. In the player's view only.
    #[serde(flatten)]
    pub player: Option<PlayerTotals>,
    /// The moves, those of most games first, then in the order of their UCI text.
    pub moves: Vec<PlayedMove>,
    /// The newest games that are not among the top games, the newest first; `None` if the view has no recent games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_games: Option<Vec<PlayedGame>>,
    /// The games with the highest ratings, `None` where the view has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_games: Option<Vec<PlayedGame>>,
    /// The last position of the line that has a name.
    pub opening: Option<Opening>,
    /// Always 0, because an answer is complete when it comes. Clients expect the field.
    pub queue_position: u32,
    /// The games of each month from the first to the last that has any, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<MonthCount>>,
    /// The games of each year that has any and, at last, those of no known year, if that was asked for.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    pub years: Option<Vec<YearCount>>,
    /// Games without a result, which are among `draws` and belong in no score. An index of counts does not know them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
}

impl Answer {
    /// Returns the number of games.
    pub fn games(&self) -> u64 {
        self.white + self.draws + self.black
    }

    /// Returns the number of drawn games, without those that have no result.
    pub fn drawn(&self) -> u64 {
        self.draws - self.unfinished
    }
}

/// A move and the games that played it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlayedMove {
    /// In UCI notation, castling as king takes rook: `e1h1`.
    pub uci: String,
    /// In SAN.
    pub san: String,
    /// The mean of the known ratings of the players who made the move, rounded down; 0 if no rating is known. Not in the
    /// player's view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_rating: Option<u64>,
    /// How the player did. In the player's view only.
    #[serde(flatten)]
    pub player: Option<PlayerScore>,
    /// Games that White won.
    pub white: u64,
    /// Drawn games and, because clients add the three numbers, games without a result.
    pub draws: u64,
    /// Games that Black won.
    pub black: u64,
    /// The game, if it is exactly one.
    pub game: Option<GameInfo>,
    /// The name of the position after the move, if it has one itself.
    pub opening: Option<Opening>,
    /// How many games reached the position after the move by any move order, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<u64>,
    /// Games without a result, which are among `draws` and belong in no score. An index of counts does not know them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// The number of games in which the rating of the player who moved is known, if that is some of the games but not all.
    /// Not in the player's view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating_games: Option<u64>,
}

impl PlayedMove {
    /// Returns the number of games.
    pub fn games(&self) -> u64 {
        self.white + self.draws + self.black
    }

    /// Returns the number of drawn games, without those that have no result.
    pub fn drawn(&self) -> u64 {
        self.draws - self.unfinished
    }
}

/// How a player did in all games of an answer.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlayerTotals {
    /// Games that the player won.
    pub wins: u64,
    /// Games that the player lost.
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
    /// When the last of all games was played, `2006-01-02`, or as much of that as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_played: Option<String>,
}

/// How a player did in the games that played a move.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlayerScore {
    /// Games that the player won.
    pub wins: u64,
    /// Games that the player lost.
    pub losses: u64,
    /// The mean rating of the opponents in the games with a result, rounded half up.
    pub average_opponent_rating: Option<u64>,
    /// The performance by FIDE's table, or `None` if `performance_games` is less than 10.
    pub performance: Option<u64>,
    /// The number of games with a result and a rated opponent, from which `average_opponent_rating` and `performance` are
    /// calculated.
    pub performance_games: u64,
    /// When the last of all games was played, `2006-01-02`, or as much of that as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_played: Option<String>,
}

/// A game and what it played.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PlayedGame {
    /// The move in UCI notation, castling as king takes rook; `None` if the game ended in the position.
    pub uci: Option<String>,
    /// The game.
    #[serde(flatten)]
    pub game: GameInfo,
}

/// What is known of a game.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct GameInfo {
    /// Its number among those of all sources, from 0.
    #[serde(skip)]
    pub number: u64,
    /// Its id at Lichess, else its number with eight digits.
    pub id: String,
    /// Who won.
    #[serde(serialize_with = "as_color")]
    pub winner: Option<Color>,
    /// How fast it was; `None` among games of masters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Whether it was for ratings; `None` among games of masters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Who played Black.
    pub black: Player,
    /// Who played White.
    pub white: Player,
    /// The year, 0 if unknown.
    pub year: u16,
    /// Year and month, `2006-01`, if both are known.
    pub month: Option<String>,
    /// Whether the game has no result. Such a game has no winner, as a draw has none.
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
    /// The title, where the game itself was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The games of a month.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MonthCount {
    /// Year and month: `2006-01`.
    pub month: String,
    /// Games that White won.
    pub white: u64,
    /// Drawn games and, because clients add the three numbers, games without a result.
    pub draws: u64,
    /// Games that Black won.
    pub black: u64,
    /// Games without a result, which are among `draws` and belong in no score. An index of counts does not know them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
}

/// The games of a year.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct YearCount {
    /// The year, `None` for games of no known year.
    pub year: Option<u16>,
    /// Games that White won.
    pub white: u64,
    /// Drawn games and, because clients add the three numbers, games without a result.
    pub draws: u64,
    /// Games that Black won.
    pub black: u64,
    /// Games without a result, which are among `draws` and belong in no score. An index of counts does not know them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// How many games played each of the moves of the answer, by its UCI text.
    pub moves: BTreeMap<String, u64>,
}

/// A game of a list.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ListedGame {
    /// The game and what it played.
    #[serde(flatten)]
    pub played: PlayedGame,
    /// When it was played: `2006-01-02`, or as much of that as is known.
    pub date: Option<String>,
    /// The name of the event.
    pub event: Option<String>,
    /// The game's own code of its opening.
    pub eco: Option<String>,
    /// How many half-moves it has, 65535 for more.
    pub plies: u16,
    /// How many equal games are not listed, if equal games count once.
    pub copies: usize,
    /// Of the first game of a match, if matches are folded: how many more there are.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub of_match: Option<MatchGames>,
}

/// The other games of a match.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MatchGames {
    /// How many pass the filters.
    pub more: u64,
}

/// Some of the games of a position.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct GameList {
    /// How many there are.
    pub total: u64,
    /// How many to skip for the next page, `None` on the last one.
    pub next: Option<usize>,
    /// Those of the page.
    pub games: Vec<ListedGame>,
}

/// What an explorer answers from.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct About {
    /// The version of polybook.
    pub version: &'static str,
    /// The games of all sources, `None` if one has counts that do not say how many they are of.
    pub games: Option<u64>,
    /// The positions of all sources, those that several have counted in each.
    pub positions: u64,
    /// The years of the first and the last game that has one.
    pub years: Option<[u16; 2]>,
    /// The sources.
    pub sources: Vec<AboutSource>,
}

/// One of the indexes that an explorer answers from.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AboutSource {
    /// The name that it was given.
    pub name: String,
    /// Its games, those that count or not; `None` if it has counts that do not say how many they are of.
    pub games: Option<u64>,
    /// Its positions.
    pub positions: u64,
    /// The years of the first and the last game that has one.
    pub years: Option<[u16; 2]>,
    /// The variant of its games, `auto` if each has its own.
    pub variant: String,
    /// The names of the files that its games come from, without directories.
    pub files: Vec<String>,
    /// Whether it has counts and no games: only speeds, ratings and months filter them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// Of counts without rare positions: how many moves were counted in each that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_game: Option<u64>,
    /// The last half-move that was counted of a game, if not all were.
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

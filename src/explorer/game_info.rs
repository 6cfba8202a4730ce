//! Descriptions of games in answers of the explorer.

use shakmaty::Color;

use super::{query::View, sources::Sources};
use crate::{
    error::Result,
    pgn::{Mode, Speed},
    position::BookMove,
};

/// A game in an answer of the explorer, with the move that was played in the position of the query.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PlayedGame {
    /// The move in UCI notation, castling as king takes rook; `None` if the game ended in the position.
    pub uci: Option<String>,
    /// The game.
    #[serde(flatten)]
    pub game: GameInfo,
}

/// A description of a game: its id, players, date and result.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct GameInfo {
    /// The number of the game. Games of all sources are numbered consecutively from 0.
    #[serde(skip)]
    pub number: u64,
    /// The game's Lichess id or, if it has none or shares it with another game, its number with eight digits.
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

/// A player in one game, with the name, the rating at the time and the title.
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

/// Returns a description of game `number`. It contains the speed and whether the game was rated, unless `view` is
/// [`View::Masters`].
pub(super) fn game_info(sources: &Sources, number: u64, view: View) -> Result<GameInfo> {
    let (source, id) = sources.locate(number)?;
    let summary = source.game(id);
    let [white, black] = source.rows.players[id as usize];
    let (speed, mode) = summary.speed_and_mode();
    let date = summary.date();
    let of_masters = view == View::Masters;
    Ok(GameInfo {
        number,
        id: match source.rows.site_id(id) {
            Some(id) if !is_number(&id.text()) && sources.is_of_one_game(id)? => id.text(),
            _ => format!("{number:08}"),
        },
        winner: summary.winner(),
        speed: (!of_masters).then_some(speed),
        mode: (!of_masters).then_some(mode),
        black: Player {
            name: source.name(black)?,
            rating: summary.elo_of(Color::Black),
            title: None,
        },
        white: Player {
            name: source.name(white)?,
            rating: summary.elo_of(Color::White),
            title: None,
        },
        year: date.year().unwrap_or(0),
        month: date
            .year()
            .zip(date.month())
            .map(|(year, month)| format!("{year:04}-{month:02}")),
        unfinished: !summary.has_result(),
    })
}

/// Returns a description of each game in `games`, with its move. An element of `games` is a pair: the number of a game,
/// and the move that was played in the position of the query.
pub(super) fn played_games(
    sources: &Sources,
    view: View,
    games: impl IntoIterator<Item = (u64, BookMove)>,
) -> Result<Vec<PlayedGame>> {
    games
        .into_iter()
        .map(|(number, mv)| {
            Ok(PlayedGame {
                uci: (mv != BookMove::NONE).then(|| mv.to_string()),
                game: game_info(sources, number, view)?,
            })
        })
        .collect()
}

/// Returns `true` if `id` consists only of digits. Such an id is the number of a game and not a Lichess id.
pub(super) fn is_number(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_digit())
}

fn as_color<S: serde::Serializer>(color: &Option<Color>, serializer: S) -> Result<S::Ok, S::Error> {
    match color {
        Some(color) => serializer.serialize_str(color.fold_wb("white", "black")),
        None => serializer.serialize_none(),
    }
}

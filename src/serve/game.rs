//! Single games as JSON documents for the web page.

use serde::Serialize;

use super::{
    Refusal,
    board::Moves,
    content::Content,
    state::{AppState, ShouldContinue},
};
use crate::explorer::{GameInfo, Opening, Query, last_departure};

/// A game as the web page shows it, with its moves, their annotations, and the number of games that reach each
/// position.
#[derive(Serialize)]
struct OpenGame {
    #[serde(flatten)]
    info: GameInfo,
    result: String,
    event: Option<String>,
    site: Option<String>,
    date: Option<String>,
    round: Option<String>,
    eco: Option<String>,
    /// The opening of the last position in the game that has an opening name.
    opening: Option<Opening>,
    #[serde(flatten)]
    moves: Moves,
    /// The number of games that reach the position after each move. `None` if the number is unknown.
    reached: Vec<Option<u64>>,
    /// The index of the move after which no position of the game occurs in another game. `None` if there is no such
    /// move, or if it is unknown.
    novelty: Option<usize>,
    /// The number of half-moves after which the game reaches the position of the request, or `None` if it does not
    /// reach it.
    ply: Option<usize>,
}

impl AppState {
    /// Returns a game as JSON, with its moves, their annotations, and the number of games that reach each position.
    /// `number` is the number of the game in the explorer, and `text` is its PGN. Only games that pass the filters of
    /// `query` are counted. The work is cancelled when `should_continue` returns `false`.
    pub(super) fn open_game(
        &self,
        number: u64,
        text: &[u8],
        query: &Query,
        should_continue: ShouldContinue<'_>,
    ) -> Result<Content, Refusal> {
        let moves = Moves::of_game(self.explorer.variant_of_game(number)?, text);
        let line = moves.line();
        let listed = self.explorer.listed_game(number)?;
        let reached = self
            .explorer
            .reached(&line, &query.filters, should_continue)?;
        let mut info = listed.played.game;
        info.white.title = moves.tag("WhiteTitle");
        info.black.title = moves.tag("BlackTitle");
        Content::json(&OpenGame {
            result: self.explorer.header(number)?.result().into_owned(),
            event: listed.event,
            site: moves.tag("Site"),
            date: listed.date,
            round: moves.tag("Round"),
            eco: listed.eco,
            opening: line.opening(),
            novelty: novelty(&reached),
            reached,
            ply: line.ply_of(&query.line).filter(|_| moves.has_known_start()),
            info,
            moves,
        })
    }
}

/// Returns the index of the game's novelty: the first move after which no position of the game occurs in another game.
/// Returns `None` if there is no such move.
///
/// For each move, `reached` contains the number of games that reach the position after it, including the game itself.
/// An element is `None` if the number is unknown. This element and all later ones are then ignored.
fn novelty(reached: &[Option<u64>]) -> Option<usize> {
    let known = reached
        .iter()
        .map_while(|games| games.map(|games| games > 1));
    last_departure(&known.collect::<Vec<bool>>())
}

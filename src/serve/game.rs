//! A game as JSON.

use serde::Serialize;

use super::{
    Refusal,
    board::Moves,
    content::Content,
    state::{AppState, GoesOn},
};
use crate::explorer::{GameInfo, Opening, Query, last_departure};

/// A game for the page.
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
    /// The last position that has a name.
    opening: Option<Opening>,
    #[serde(flatten)]
    moves: Moves,
    /// How many games reach the position after each move, `None` where the index does not say.
    reached: Vec<Option<u64>>,
    /// The number, from 0, of the move that left the positions of other games for good, if the index says so.
    novelty: Option<usize>,
    /// After how many moves the game has the position that was asked for.
    ply: Option<usize>,
}

impl AppState {
    /// A game with its moves and what it says of them, by its number and its text.
    pub(super) fn open_game(
        &self,
        number: u64,
        text: &[u8],
        query: &Query,
        goes_on: GoesOn<'_>,
    ) -> Result<Content, Refusal> {
        let moves = Moves::of_game(text);
        let line = moves.line();
        let listed = self.explorer.listed_game(number)?;
        let reached = self.explorer.reached(&line, &query.filters, goes_on)?;
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
            ply: line.ply_of(&query.line).filter(|_| moves.are_placed()),
            info,
            moves,
        })
    }
}

/// Returns the number of the move by which a game leaves the positions of other games for good. The numbers of games
/// are those after each move, the game itself among them; `None` where they are not known.
fn novelty(reached: &[Option<u64>]) -> Option<usize> {
    let known = reached
        .iter()
        .map_while(|games| games.map(|games| games > 1));
    last_departure(&known.collect::<Vec<bool>>())
}

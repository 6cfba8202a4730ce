//! Games as JSON documents for the page.

use serde::Serialize;

use super::{
    Refusal,
    board::Moves,
    content::Content,
    state::{AppState, GoesOn},
};
use crate::explorer::{GameInfo, Opening, Query, last_departure};

/// A game with its moves and annotations, in the form that the web page displays. It is serialized as JSON.
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
    /// The last position of the game that has a name.
    opening: Option<Opening>,
    #[serde(flatten)]
    moves: Moves,
    /// The number of games that reach the position after each move, or `None` if the index does not know it.
    reached: Vec<Option<u64>>,
    /// The index of the move by which the game left the positions of other games for good, if the index knows it.
    novelty: Option<usize>,
    /// The number of half-moves after which the game reaches the position of the request, if it does.
    ply: Option<usize>,
}

impl AppState {
    /// Returns a game as JSON, with its moves and annotations. `number` is the game's number in the explorer, and
    /// `text` is its PGN. For each position, the answer states how many games reached it; `query` determines which
    /// games count. `goes_on` returns `false` to cancel the work.
    pub(super) fn open_game(
        &self,
        number: u64,
        text: &[u8],
        query: &Query,
        goes_on: GoesOn<'_>,
    ) -> Result<Content, Refusal> {
        let moves = Moves::of_game(self.explorer.variant_of_game(number)?, text);
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
            ply: line.ply_of(&query.line).filter(|_| moves.has_known_start()),
            info,
            moves,
        })
    }
}

/// Returns the index of the move with which a game leaves the positions of other games for good: no position after this
/// move occurs in another game. Returns `None` if there is no such move.
///
/// `reached` contains, for each move, the number of games that reach the position after it, including the game itself.
/// The number is `None` if it is unknown.
fn novelty(reached: &[Option<u64>]) -> Option<usize> {
    let known = reached
        .iter()
        .map_while(|games| games.map(|games| games > 1));
    last_departure(&known.collect::<Vec<bool>>())
}

//! Calculates the mean and median thinking time of each move from the clock times in the texts of games.

use std::collections::BTreeMap;

use shakmaty::Position;

use super::{
    list,
    query::{Page, Query, Sort},
    sources::Sources,
};
use crate::{
    chess::position::{Keyed, Variant, identity, read_move, uci},
    error::{Error, Result},
    games::pgn::{Clocks, CommentTimes, GameReader, Token, start_of},
};

/// The mean and median thinking time for each move of a position, with the number of games from which they were
/// calculated.
#[derive(Clone, PartialEq, Default, Debug, serde::Serialize)]
pub struct Times {
    /// The number of games that reached the position and pass the filters.
    pub games: u64,
    /// The number of these games whose texts were read, beginning with the newest game.
    pub read: u64,
    /// The times for each move, keyed by UCI notation. Moves without a known time are left out.
    pub moves: BTreeMap<String, MoveTime>,
}

/// The mean and median thinking time for a move, with the number of games from which they were calculated.
#[derive(Copy, Clone, PartialEq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MoveTime {
    /// The number of games in which the thinking time is known.
    pub games: u64,
    /// The mean thinking time in seconds.
    pub mean: f64,
    /// The median thinking time in seconds. A few long thoughts hardly change it. It is the mean of the two middle
    /// times if the number of games is even.
    pub median: f64,
}

impl MoveTime {
    /// Returns the mean and the median of `seconds`, which must not be empty.
    fn of(mut seconds: Vec<f64>) -> MoveTime {
        seconds.sort_unstable_by(f64::total_cmp);
        let (half, games) = (seconds.len() / 2, seconds.len());
        let median = match games % 2 {
            0 => (seconds[half - 1] + seconds[half]) / 2.0,
            _ => seconds[half],
        };
        MoveTime {
            games: games as u64,
            mean: seconds.iter().sum::<f64>() / games as f64,
            median,
        }
    }
}

/// Returns the mean and median thinking time for each move of a position. They are calculated from the PGN texts of the
/// newest games that pass the filters; at most `max_games` games are read. Implements
/// [`Explorer::times`](super::Explorer::times).
///
/// `should_continue` is called repeatedly, and returns `false` to cancel the calculation, which then fails.
pub(super) fn times(
    sources: &Sources,
    query: &Query,
    max_games: usize,
    should_continue: &dyn Fn() -> bool,
) -> Result<Times> {
    let page = Page {
        skip: 0,
        limit: max_games,
        sort: Sort::Recent,
        fold_matches: false,
    };
    let filters = sources.filters_of_games(&query.filters)?;
    let (games, numbers) = list::numbers(filters, query, &page)?;
    let mut times = Times {
        games,
        ..Times::default()
    };
    let mut seconds_of: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (variant, identity) = (query.line.variant(), identity(query.line.position()));
    for number in numbers {
        let (source, id) = sources.locate(number?.0)?;
        if source.index.is_slow_to_read(id)? {
            let (path, _) = source.index.file_of(id)?;
            let problem = "this file is compressed, so the clocks of a game cannot be read without unpacking the \
                           whole file: unpack the file and make the index again";
            return Err(Error::file(path, problem));
        }
        times.read += 1;
        let text = source.index.text_while(id, should_continue)?;
        if let Some((mv, seconds)) = time_in(&text, variant, identity) {
            seconds_of.entry(mv).or_default().push(seconds);
        }
    }
    let moves = seconds_of.into_iter();
    times.moves = moves
        .map(|(mv, seconds)| (mv, MoveTime::of(seconds)))
        .collect();
    Ok(times)
}

/// Finds the move that was played in a given position of the game with the PGN text `text`, and its thinking time.
/// Returns the move in UCI notation and the time in seconds. If the game reaches the position several times, only the
/// last occurrence counts. Returns `None` if no move was played there, or if its thinking time is unknown.
///
/// `identity` is the hash that identifies the position. `variant` is assumed if the game has no `Variant` tag.
fn time_in(text: &[u8], variant: Variant, identity: u64) -> Option<(String, f64)> {
    let mut game = GameReader::new(text).with_untagged_variant(variant);
    if !game.next_game() {
        return None;
    }
    let mut clocks = Clocks::new(game.tags());
    let (_, start) = start_of(game.tags()).ok()?;
    let mut pos = Keyed::new(start);
    let mut found = None;
    // The move before the current comments: the side that played it and, if it was played in the position, its
    // notation.
    let mut last = None;
    loop {
        let mut said = CommentTimes::default();
        let token = game.next_token_after(|comment| said.read(comment));
        if let Some((side, mv)) = last.take() {
            let seconds = clocks.next(side, said);
            found = match mv {
                Some(mv) => seconds.map(|seconds| (mv, seconds)),
                None => found,
            };
        }
        let Token::Move { text, .. } = token else {
            return found;
        };
        let Ok(mv) = read_move(pos.position(), text) else {
            return found;
        };
        let is_here = pos.identity() == identity;
        let notation = is_here.then(|| uci(pos.position(), mv));
        last = Some((pos.position().turn(), notation));
        pos.play(mv);
    }
}

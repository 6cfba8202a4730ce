//! Questions to the explorer.

use std::{fmt, str::FromStr};

use shakmaty::Color;
use thiserror::Error;

use super::line::Line;
use crate::pgn::{
    Date, EcoRange, GameFilter, GameFilterError, GameResult, Mode, NameMatch, RatingGroup, Speed,
};

/// What an answer is for: which of its parts it has, and how its moves are rated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum View {
    /// All games of a site: top and recent games, speeds, average ratings.
    Lichess,
    /// Games of masters: top games, no speeds and modes.
    Masters,
    /// The games of a player: recent games; how the player did instead of average ratings.
    Player,
}

/// The most games that an answer has with their names.
const MOST_MASTERS_GAMES: usize = 15;
const MOST_TOP_GAMES: usize = 4;
const MOST_RECENT_GAMES: usize = 8;

/// A question about a position.
#[derive(Clone, Debug)]
pub struct Query {
    /// Where it is asked.
    pub line: Line,
    /// What the answer is for.
    pub view: View,
    /// Which games count.
    pub filters: Filters,
    /// How many moves are listed, `None` for all. The totals are those of all moves either way.
    pub moves: Option<usize>,
    /// How many of the games with the highest ratings are named: at most 4, for masters 15.
    pub top_games: usize,
    /// The largest number of recent games, at most 8; `None` for 8 less the number of top games. Recent games are the newest
    /// games that are not among the top games.
    pub recent_games: Option<usize>,
    /// Whether games are counted by month.
    pub history: bool,
    /// Whether games are counted by year, and by year and move.
    pub years: bool,
    /// Whether it is counted how many games reached the position after each move, whatever they played here.
    pub transpositions: bool,
}

impl Query {
    /// A question with the limits that are usual for its view, about all games.
    pub fn new(line: Line, view: View) -> Query {
        Query {
            line,
            view,
            filters: Filters::default(),
            moves: match view {
                View::Lichess | View::Masters => Some(12),
                View::Player => None,
            },
            top_games: usize::MAX,
            recent_games: match view {
                View::Lichess => None,
                View::Masters => Some(0),
                View::Player => Some(MOST_RECENT_GAMES),
            },
            history: false,
            years: false,
            transpositions: false,
        }
    }

    /// How many top games are looked for.
    pub(super) fn top_limit(&self) -> usize {
        self.top_games.min(match self.view {
            View::Lichess => MOST_TOP_GAMES,
            View::Masters => MOST_MASTERS_GAMES,
            View::Player => 0,
        })
    }

    /// Returns how many of the newest games have to be known, so that [`recent_limit`](Query::recent_limit) of them are left
    /// without the top games.
    pub(super) fn recent_candidates(&self) -> usize {
        match self.recent_limit(0) {
            0 => 0,
            games => games + self.top_limit(),
        }
    }

    /// Returns how many recent games are listed beside a number of top games.
    pub(super) fn recent_limit(&self, top_games: usize) -> usize {
        match (self.view, self.recent_games) {
            (View::Masters, _) => 0,
            (_, Some(games)) => games.min(MOST_RECENT_GAMES),
            (_, None) => MOST_RECENT_GAMES - top_games.min(MOST_RECENT_GAMES),
        }
    }
}

/// Which games count. The default is all of them; all conditions must be met.
///
/// What a game does not say of itself is treated as [`GameFilter`](crate::pgn::GameFilter) does: unknown parts of a
/// date and unknown ratings pass `since`, `until`, `min_elo` and `max_elo`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filters {
    /// The speeds, `None` for all.
    pub speeds: Option<Vec<Speed>>,
    /// The rating groups, `None` for all games. A game belongs to the group of the mean of its known ratings.
    pub groups: Option<Vec<RatingGroup>>,
    /// Whether games without a known rating pass as well, if there are groups.
    pub unrated: bool,
    /// The modes, `None` for both.
    pub modes: Option<Vec<Mode>>,
    /// The first day or month or year.
    pub since: Option<Date>,
    /// The last one.
    pub until: Option<Date>,
    /// The lowest rating that each player may have.
    pub min_elo: Option<u32>,
    /// The highest.
    pub max_elo: Option<u32>,
    /// The name of a player.
    pub player: Option<String>,
    /// The color that the player has, `None` for either.
    pub color: Option<Color>,
    /// The name of the other player; without a player that of either.
    pub opponent: Option<String>,
    /// Whether the player won, or lost; `None` for any result.
    pub won: Option<bool>,
    /// The results, none for any.
    pub results: Vec<GameResult>,
    /// Whether games without a result are left out.
    pub skip_unfinished: bool,
    /// The openings, by the games' own codes.
    pub eco: Option<EcoRange>,
    /// The name of the event.
    pub event: Option<String>,
    /// Whether names are whole, as they are by default, or parts.
    pub names: NameMatch,
    /// Whether of equal games only the first that passes counts: those with the same players, date, result, length and
    /// last position, and the same id at Lichess. Games of an index that was made earlier are equal to none.
    pub once: bool,
    /// How many half-moves a game must at least have.
    pub min_ply: u32,
    /// The name of the source that games must come from.
    pub source: Option<String>,
}

impl Filters {
    /// The first filter that has to be asked of each game, which counts cannot answer.
    pub(super) fn of_games(&self) -> Option<&'static str> {
        let has_day = |date: Option<Date>| date.is_some_and(|date| date.day().is_some());
        // Each filter is named here: a new one does not compile until it is.
        let Filters {
            speeds: _,
            groups: _,
            unrated: _,
            modes,
            since,
            until,
            min_elo,
            max_elo,
            player,
            // Without a player it says nothing.
            color: _,
            opponent,
            won,
            results,
            skip_unfinished,
            eco,
            event,
            names: _,
            once,
            min_ply,
            source: _,
        } = self;
        let asked = [
            (player.is_some(), "player"),
            (opponent.is_some(), "opponent"),
            (won.is_some() || !results.is_empty(), "result"),
            (*skip_unfinished, "unfinished"),
            (eco.is_some(), "eco"),
            (event.is_some(), "event"),
            (modes.is_some(), "modes"),
            (*min_ply > 0, "minPly"),
            (*once, "duplicates"),
            (
                min_elo.is_some() || max_elo.is_some(),
                "the rating of each player",
            ),
            (has_day(*since), "a day in since"),
            (has_day(*until), "a day in until"),
        ];
        let mut asked = asked.into_iter().filter(|(is_asked, _)| *is_asked);
        asked.next().map(|(_, name)| name)
    }

    /// Returns `true` if games without a known rating pass.
    pub(super) fn admit_unrated(&self) -> bool {
        self.unrated || self.groups.is_none()
    }

    /// Makes sure that dates and ratings do not exclude each other.
    ///
    /// # Errors
    ///
    /// [`GameFilterError::Dates`] and [`GameFilterError::Ratings`].
    pub fn check(&self) -> Result<(), GameFilterError> {
        let game_filter = GameFilter {
            since: self.since,
            until: self.until,
            min_elo: self.min_elo,
            max_elo: self.max_elo,
            ..GameFilter::default()
        };
        game_filter.check()
    }
}

/// Some of the games of a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// How many games are passed over.
    pub skip: usize,
    /// How many are listed at most.
    pub limit: usize,
    /// In which order.
    pub sort: Sort,
    /// Whether of the games of a match, those of two players at an event in a year, only the first is listed.
    pub fold_matches: bool,
}

/// An order of games.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Sort {
    /// The newest first, of one day those with the highest numbers.
    #[default]
    Recent,
    /// The games with the highest mean of the known ratings first, then the newest.
    Rating,
    /// In the order of the inputs.
    Id,
}

/// A name that belongs to no order.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("write recent, rating or id")]
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

//! The opening explorer: which moves were played in a position, by whom, and with which results.
//!
//! [`Explorer`] answers from one or several [indexes](crate::index) that were made for it
//! ([`MakeBook::explorer`](crate::MakeBook::explorer)). Each game counts at most once for a position, with the move
//! that was played there; if the position occurs several times in the game, with the last of these moves. All numbers
//! are exact, whatever [`Filters`] select the games.
//!
//! An index has either games or counts, which are results by speed, rating group and month. Games answer every query.
//! Counts answer queries with filters by speed, rating group, year and month. [`Explorer::needs_games`] returns the
//! first filter that counts cannot answer, such as a player, together with the source that has counts; methods with
//! such a filter return an error. Methods that list games skip sources of counts, and return an error if no source has
//! games.
//!
//! A query passes through these modules: `filter` prepares the filters for each source, `fold` makes one pass over the
//! results of the position in each source, and a `Collector` adds them up. `tally` collects moves and results, `list`
//! games, `opening_table` openings, and `facets` the numbers of games for each value of a filter. `answer` contains the
//! results as types for serde.
//!
//! ```
//! use polybook::{MakeBook, explorer::{Explorer, Line, Query, View}, pgn::Input, position::Variant};
//!
//! # let dir = tempfile::tempdir()?;
//! # let index = dir.path().join("index");
//! MakeBook::new([Input::file("data/famous.pgn")]).explorer(&index).run()?;
//!
//! let explorer = Explorer::open([("famous".to_owned(), index)])?;
//! let line = Line::parse(Variant::Standard, None, "e2e4,e7e5")?;
//! let mut query = Query::new(line, View::Lichess);
//! query.filters.players = vec!["morphy, paul".to_owned()];
//! let answer = explorer.answer(&query)?;
//! println!("{} games won by White", answer.white);
//! for played in &answer.moves {
//!     println!("{} {}", played.san, played.games());
//! }
//! # assert!(answer.white > 0 && !answer.moves.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod class_filter;
mod dates;
mod duplicate_groups;
mod facets;
mod filter;
mod first_seen;
mod fold;
mod games;
mod line;
mod list;
mod opening_table;
mod prepare;
mod query;
mod source;
mod sources;
mod suggest;
mod tally;
#[cfg(test)]
mod tests;
mod times;
mod unknown_name;
mod words;

pub use self::{
    answer::{
        Answer, GameInfo, GameList, ListedGame, MatchGames, MonthCount, Overview, PlayedGame,
        PlayedMove, Player, PlayerScore, PlayerTotals, SourceOverview, YearCount,
    },
    facets::{ColorCount, Facets, RatingScore},
    line::Line,
    opening_table::{OpeningRow, OpeningTable},
    prepare::{
        AnswerSource, GameResults, GamesHere, PlayerGames, Preparation, PrepareQuery,
        PreparedAnswer, PreparedLine, PreparedMove, RepertoireMoves, TheirGames,
    },
    query::{Filters, Page, Query, RatingRange, RatingRangeError, Sort, UnknownSort, View},
    sources::{Explorer, NeedsGames, SourceFile},
    suggest::{SuggestField, Suggestion},
    times::{MoveTime, Times},
    unknown_name::UnknownName,
};
pub(crate) use self::{
    first_seen::{FirstSeen, Probe, Visits, first_day, last_departure},
    query::check_names,
    unknown_name::{NearestNames, did_you_mean},
};
pub use crate::{
    openings::{Opening, OpeningFilter},
    pgn::{Date, EcoRange, GameResult, Mode, NameMatch, RatingGroup, Speed},
    position::Variant,
};

//! Decides which games are read, by their players, dates, ratings, openings and other properties. The conditions are
//! stored in a [`Selection`].
//!
//! A condition has one name, which is written as `--min-elo` on the command line, as `minElo` in HTTP and as `min_elo`
//! in Python. [`Selection::set`] accepts all of these spellings, and [`Selection::given`] returns all conditions that
//! are set.
//!
//! Several evaluators apply a selection. [`Selection::unmet`] tests the tags of games in PGN. The explorer tests the
//! columns of an index of games, or the classes (speed, rating group and month) of an index of the numbers of games.
//! Not every evaluator has the data to apply every condition: [`Selection::unanswerable`] returns the first condition
//! that an [`Evaluator`] cannot apply.

mod condition;
mod fields;
mod games;

use std::fmt;

use shakmaty::Color;
use thiserror::Error;

#[cfg(feature = "serve")]
pub(crate) use self::fields::condition_name;
pub use self::{
    condition::Condition,
    fields::{ConditionValue, Field, Form, SetError, Spelling},
};
use crate::games::{
    board_query::BoardQuery,
    openings::OpeningFilter,
    pgn::{
        ConditionError, Date, EcoRange, GameResult, NameMatch, RatingGroup, RatingRange, Speed,
        TagText, TimeControlRange, name_hash, normalized,
    },
};

/// The conditions that a game must meet. The default selection admits every game.
///
/// A game with an unknown rating or date meets the conditions on ratings or dates. Set `require_elo` or `require_date`
/// to reject such games. Any other condition that needs a tag, such as the ECO code, rejects games without the tag.
///
/// ```
/// use polybook::{pgn::GameReader, selection::Selection};
///
/// let mut games = GameReader::new(b"[White \"Tal\"]\n[Date \"1960.05.??\"]\n\n1. e4 1-0");
/// games.next_game();
/// let mut selection = Selection::default();
/// selection.set("player", "tal")?;
/// selection.set("since", "1960.05.07")?;
/// assert!(selection.admits(games.tags()));
/// selection.set("since", "1961")?;
/// assert!(!selection.admits(games.tags()));
/// # Ok::<(), polybook::selection::SetError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection {
    /// The lowest rating that each player may have.
    pub min_elo: Option<u32>,
    /// The highest rating that each player may have.
    pub max_elo: Option<u32>,
    /// The minimum length of a game in half-moves.
    pub min_plies: u32,
    /// The first day, month or year on which a game may have been played.
    pub since: Option<Date>,
    /// The last day, month or year on which a game may have been played.
    pub until: Option<Date>,
    /// The admitted results. If the list is empty, all results are admitted.
    pub result: Vec<WantedResult>,
    /// The names of a player. White or Black must have one of these names. If both sides match, the player is White.
    pub player: Vec<String>,
    /// The color of `player`, or `None` for either color.
    pub color: Option<Color>,
    /// The names of the opponent of `player`. If `player` is empty, at least one side must have one of these names.
    pub opponent: Vec<String>,
    /// The range of the opponent's rating. An unknown rating is outside of every range.
    pub opponent_rating: Option<RatingRange>,
    /// The names of the player with the white pieces.
    pub white: Vec<String>,
    /// The names of the player with the black pieces.
    pub black: Vec<String>,
    /// The name of the event in which the game was played.
    pub event: Option<String>,
    /// The admitted ranges of ECO codes in the tag `ECO`. If the list is empty, all games are admitted.
    pub eco: Vec<EcoRange>,
    /// Conditions on the text of tags. A game must meet all of them.
    pub tag: Vec<TagText>,
    /// Conditions on the text of tags. A game must not meet any of them.
    pub not_tag: Vec<TagText>,
    /// The admitted rating groups, by the mean rating of the players. `None` admits all games. All nine groups together
    /// also admit all games, including those without a known rating.
    pub rating: Option<Vec<WantedRating>>,
    /// The admitted speeds, or `None` for all.
    pub speed: Option<Vec<Speed>>,
    /// The admitted range of times that a player has for 40 moves.
    pub time_control: Option<TimeControlRange>,
    /// Whether the ratings of both players must be known.
    pub require_elo: bool,
    /// Whether the year of the game must be known.
    pub require_date: bool,
    /// Whether the whole name of a player or event must match, instead of a part of it.
    pub exact: bool,
    /// The admitted statements of the `Event` tag on whether the game is rated. `None` admits all games.
    pub rated: Option<Vec<RatedStatus>>,
    /// The admitted openings. The moves of a game determine its opening.
    pub opening: Option<OpeningFilter>,
    /// A query that must hold in at least one position of the main line.
    pub position: Option<BoardQuery>,
    /// Whether all copies of a game count, or only the first. `None` means the default of the command.
    pub duplicates: Option<Duplicates>,
    /// The name of the explorer's source that contains the games, or `None` for all sources.
    pub source: Option<String>,
    /// Whether games without a result are left out. The option `unfinished` of commands sets it.
    pub skip_unfinished: bool,
}

/// Whether all copies of a game in the input count, or only the first.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Duplicates {
    /// Each copy of a game counts.
    #[default]
    All,
    /// Only the first copy of a game that is admitted counts.
    Once,
}

/// A condition on the result of a game in a [`Selection`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WantedResult {
    /// The game has this result.
    Game(GameResult),
    /// The player that the selection names won.
    Win,
    /// The player that the selection names lost.
    Loss,
}

/// A rating group that a [`Selection`] admits. `None` stands for games in which no rating is known.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WantedRating(pub Option<RatingGroup>);

/// The statement of a game's `Event` tag on whether the game is rated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RatedStatus {
    /// The tag contains the word "rated".
    Rated,
    /// The tag does not say whether the game is rated.
    Unknown,
    /// The tag contains a word such as "casual" or "unrated".
    Casual,
}

impl RatedStatus {
    pub(crate) fn of(is_rated: Option<bool>) -> RatedStatus {
        match is_rated {
            Some(true) => RatedStatus::Rated,
            Some(false) => RatedStatus::Casual,
            None => RatedStatus::Unknown,
        }
    }
}

/// The kind of data to which a [`Selection`] is applied.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Evaluator {
    /// Games in PGN that are read together, so that duplicates are recognized.
    Games,
    /// Games in PGN that are read one by one, so that duplicates are not recognized.
    EachGame,
    /// The explorer's index, which contains individual games.
    Index,
    /// Numbers of games by speed, rating group and month, in a counts directory or in the explorer's index of such
    /// numbers.
    Counts,
    /// Books, databases and other sources of moves. They do not say in which games a move was played.
    Moves,
}

impl fmt::Display for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Evaluator::Games => "games in PGN",
            Evaluator::EachGame => "games that are read one by one",
            Evaluator::Index => "an index",
            Evaluator::Counts => "counts",
            Evaluator::Moves => "moves",
        })
    }
}

/// The error for a condition that an [`Evaluator`] cannot apply, because its data do not contain the necessary property
/// of games.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
#[error("{by} contain{} no {lacking}, which the condition {condition} needs", if *.by == Evaluator::Index { "s" } else { "" })]
pub struct Unanswerable {
    /// The name of the condition, such as `min-elo`.
    pub condition: &'static str,
    /// The property of games that the data lack, such as `player names`.
    pub lacking: &'static str,
    /// The evaluator whose data lack the property.
    pub by: Evaluator,
}

/// The maximum number of names of one player in a query to an index. The explorer searches for each name, so the limit
/// bounds the time for a query.
const MAX_NAMES: usize = 20;

impl Selection {
    /// Checks that the conditions do not contradict each other, that no name is blank, and that the selection names a
    /// player if it has conditions on the player.
    ///
    /// # Errors
    ///
    /// - [`ConditionError::Dates`] if the first day is after the last day.
    /// - [`ConditionError::Ratings`] if the lowest rating is above the highest rating.
    /// - [`ConditionError::Malformed`] if a name contains only blanks, because it would match every name.
    /// - [`ConditionError::NeedsPlayer`] if a condition refers to the player, but the selection names no player.
    ///
    /// ```
    /// use polybook::selection::Selection;
    /// let mut selection = Selection { min_elo: Some(2000), ..Selection::default() };
    /// assert!(selection.check().is_ok());
    /// selection.max_elo = Some(1800);
    /// assert!(selection.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), ConditionError> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && until.is_before(since)
        {
            return Err(ConditionError::Dates { since, until });
        }
        if let (Some(min), Some(max)) = (self.min_elo, self.max_elo)
            && max < min
        {
            return Err(ConditionError::Ratings { min, max });
        }
        let names = [&self.player, &self.opponent, &self.white, &self.black];
        let mut names = names.into_iter().flatten().chain(&self.event);
        if let Some(name) = names.find(|name| normalized(name).is_empty()) {
            return Err(ConditionError::Malformed {
                text: name.clone(),
                what: fields::BLANK_NAME,
            });
        }
        let of_player = [
            (self.color.is_some(), "color"),
            (self.opponent_rating.is_some(), "opponent-rating"),
            (self.has_player_results(), "result"),
        ];
        match of_player.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, condition)) if self.player.is_empty() => {
                Err(ConditionError::NeedsPlayer { condition })
            }
            _ => Ok(()),
        }
    }

    /// Checks the selection like [`check`](Selection::check), and also checks that it contains at most 20 names of each
    /// player, because an index is searched for each name.
    ///
    /// # Errors
    ///
    /// Returns the errors of `check`, or [`ConditionError::TooManyNames`].
    pub fn check_for_index(&self) -> Result<(), ConditionError> {
        self.check()?;
        let names = [&self.player, &self.opponent, &self.white, &self.black];
        names.into_iter().try_for_each(|names| check_names(names))
    }

    /// Returns the first condition that `evaluator` cannot apply, or `None` if it can apply all of them.
    ///
    /// ```
    /// use polybook::selection::{Evaluator, Selection};
    /// let mut selection = Selection::default();
    /// selection.set("opponent", "Tal")?;
    /// let unanswerable = selection.unanswerable(Evaluator::Counts).expect("counts have no names");
    /// assert_eq!((unanswerable.condition, unanswerable.lacking), ("opponent", "player names"));
    /// assert_eq!(selection.unanswerable(Evaluator::Index), None);
    /// # Ok::<(), polybook::selection::SetError>(())
    /// ```
    pub fn unanswerable(&self, evaluator: Evaluator) -> Option<Unanswerable> {
        let mut copy = self.clone();
        let mut fields = copy.fields().into_iter();
        let unfinished = Unanswerable {
            condition: "unfinished",
            lacking: "games without a result",
            by: evaluator,
        };
        let unfinished =
            Some(unfinished).filter(|_| self.skip_unfinished && evaluator == Evaluator::Counts);
        let lacking = fields.find_map(|field| {
            let lacking = field.lacking.get(evaluator)?;
            (!field.texts.is_empty()).then_some(Unanswerable {
                condition: field.name,
                lacking,
                by: evaluator,
            })
        });
        lacking.or(unfinished)
    }

    /// Returns the conditions of the selection that differ from the default, with their values as text.
    pub fn given(&self) -> Vec<ConditionValue> {
        let mut copy = self.clone();
        let fields = copy.fields().into_iter();
        fields.filter_map(Field::into_value).collect()
    }

    /// Returns a copy of the selection in which the player has the color `color`, and the opponent the other color.
    pub fn for_side(&self, color: Color) -> Selection {
        let mut selection = self.clone();
        if selection.player.is_empty() {
            // The opponent's color is known without a player.
            let of_opponent = color.fold_wb(&mut selection.black, &mut selection.white);
            of_opponent.append(&mut selection.opponent);
        } else {
            selection.color = Some(color);
        }
        selection
    }

    /// Returns `true` if the selection has no condition, so that it admits every game.
    pub fn is_empty(&self) -> bool {
        Selection {
            exact: false,
            ..self.clone()
        } == Selection::default()
    }

    /// Returns the board query that must hold in a game, or `None` if no condition concerns the board. All evaluators
    /// call this function.
    pub fn board_query(&self) -> Option<BoardQuery> {
        self.position.clone()
    }

    /// Returns the command-line options that set the conditions, such as `--min-elo 2000`.
    pub(crate) fn option_text(&self) -> String {
        let given = self.given();
        let options: Vec<String> = given.iter().flat_map(ConditionValue::options).collect();
        options.join(" ")
    }

    /// Returns how names of players and events are compared: as a whole or in part.
    pub(crate) fn name_match(&self) -> NameMatch {
        if self.exact {
            NameMatch::Whole
        } else {
            NameMatch::Part
        }
    }

    /// Returns `true` if the selection has a condition on the names of players.
    pub fn has_names(&self) -> bool {
        let mut names = self.player_conditions().into_iter();
        names.any(|names| !names.is_empty())
    }

    /// Returns `true` if the selection requires that White and Black have the same name.
    pub(crate) fn needs_both_colors(&self) -> bool {
        let same = |name: &String| {
            self.black
                .iter()
                .any(|other| normalized(other) == normalized(name))
        };
        self.white.iter().any(same)
    }

    /// Returns all names of players in the selection.
    pub(crate) fn names(&self) -> Vec<String> {
        self.player_conditions().concat()
    }

    /// Returns the four lists of names of players. All names that match one list belong to one player.
    pub(crate) fn player_conditions(&self) -> [&[String]; 4] {
        [&self.player, &self.opponent, &self.white, &self.black]
    }

    /// Returns a hash of the name of a player, which is used to compare games. If the name matches a condition, the
    /// hash is the number of the first such condition, counted from 1, so all names of this player have the same hash.
    /// Otherwise it is the [`name_hash`] of the name.
    pub(crate) fn player_hash(&self, name: &str) -> u64 {
        let how = self.name_match();
        let mut conditions = self.player_conditions().into_iter();
        let is_match = |names: &[String]| how.matches_any(name.as_bytes(), names);
        let condition = conditions.position(|names| !names.is_empty() && is_match(names));
        condition.map_or_else(|| name_hash(name), |condition| condition as u64 + 1)
    }

    /// Returns `true` if the condition on results admits games that the player won, or games that the player lost.
    pub(crate) fn has_player_results(&self) -> bool {
        let results = self.result.iter();
        results
            .copied()
            .any(|result| !matches!(result, WantedResult::Game(_)))
    }

    /// Returns `true` if games with the result `result` are admitted. `player` is the color of the selection's player
    /// in the game. If it is `None`, the game counts neither as won nor as lost by the player.
    pub(crate) fn admits_result_of(&self, result: GameResult, player: Option<Color>) -> bool {
        let is_won_by = |color: Option<Color>| color.is_some() && result.winner() == color;
        let is_result = |wanted: &WantedResult| match wanted {
            WantedResult::Game(wanted) => *wanted == result,
            WantedResult::Win => is_won_by(player),
            WantedResult::Loss => is_won_by(player.map(|color| !color)),
        };
        let is_skipped = self.skip_unfinished && result == GameResult::Unknown;
        !is_skipped && (self.result.is_empty() || self.result.iter().any(is_result))
    }

    /// Returns `true` if games of this rating group are admitted. `None` stands for games without a known rating.
    pub(crate) fn admits_rating(&self, group: Option<RatingGroup>) -> bool {
        self.rating.as_ref().is_none_or(|wanted| {
            let has = |group| wanted.contains(&WantedRating(group));
            has(group) || RatingGroup::all().all(|group| has(Some(group)))
        })
    }

    /// Returns `true` if games of this speed are admitted.
    pub(crate) fn admits_speed(&self, speed: Speed) -> bool {
        self.speed
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&speed))
    }

    /// Returns `true` if games with this status are admitted. The status is the statement of the `Event` tag: rated,
    /// not rated, or unknown.
    pub(crate) fn admits_rated(&self, status: RatedStatus) -> bool {
        self.rated
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&status))
    }

    /// Returns `true` if games are selected by their results. The scores and performances in the selected games then
    /// say nothing about the strength of a player.
    pub(crate) fn selects_by_result(&self) -> bool {
        !self.result.is_empty()
    }

    /// Returns the selection without its conditions `eco`, `opening` and `position`, or `None` if it has none of them. A
    /// player's score in an opening is compared with the score in these games, which include all openings.
    pub(crate) fn of_any_opening(&self) -> Option<Selection> {
        let any = Selection {
            eco: Vec::new(),
            opening: None,
            position: None,
            ..self.clone()
        };
        (any != *self).then_some(any)
    }

    /// Returns `true` if only the first copy of a game counts.
    pub fn counts_once(&self) -> bool {
        self.duplicates == Some(Duplicates::Once)
    }
}

/// Checks that `names` contains at most 20 names.
pub(crate) fn check_names(names: &[String]) -> Result<(), ConditionError> {
    if names.len() > MAX_NAMES {
        return Err(ConditionError::TooManyNames {
            names: names.len(),
            most: MAX_NAMES,
        });
    }
    Ok(())
}

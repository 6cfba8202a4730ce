//! Applies a selection to games in PGN.

use shakmaty::Color;

use super::{RatedStatus, Selection};
use crate::{
    openings::OpeningNumber,
    pgn::{
        Condition, Date, GameResult, RatingGroup, Speed, Tags, estimated_seconds, is_rated, rating,
    },
};

/// The tags of the names and the ratings of White and Black.
const SIDES: [(Color, &[u8], &[u8]); 2] = [
    (Color::White, b"White", b"WhiteElo"),
    (Color::Black, b"Black", b"BlackElo"),
];

/// Returns the ratings of White and Black, where 0 means unknown.
fn ratings(tags: &Tags<'_>) -> [u16; 2] {
    SIDES.map(|(_, _, elo)| tags.get(elo).and_then(rating).unwrap_or(0))
}

impl Selection {
    /// Returns `true` if the tags of a game meet the conditions. Conditions on the result, the length, the opening and
    /// duplicates are not checked.
    pub fn admits(&self, tags: &Tags<'_>) -> bool {
        self.unmet(tags).is_none()
    }

    /// Returns the first condition that the tags of a game do not meet, or `None` if they meet all conditions.
    /// Conditions on the result, the length, the opening and duplicates are not checked: see
    /// [`admits_result`](Selection::admits_result) and [`unmet_by_moves`](Selection::unmet_by_moves).
    pub fn unmet(&self, tags: &Tags<'_>) -> Option<Condition> {
        // The pattern names every field, so that a new condition does not compile until it is considered here.
        let Selection {
            min_elo: _,
            max_elo: _,
            require_elo: _,
            rating,
            since: _,
            until: _,
            require_date: _,
            player: _,
            color: _,
            opponent: _,
            opponent_rating: _,
            white: _,
            black: _,
            exact: _,
            event,
            eco,
            tag,
            not_tag,
            speed,
            time_control,
            rated,
            // These are checked when the moves are known.
            result: _,
            skip_unfinished: _,
            min_plies: _,
            opening: _,
            duplicates: _,
            // An index has names of sources, PGN has none.
            source: _,
        } = self;
        let is_in_a_range = |code| eco.iter().any(|range| range.contains(code));
        let time = || tags.get(b"TimeControl");
        let is_event = |name: &String| {
            let event = tags.get(b"Event");
            event.is_some_and(|event| {
                self.name_match()
                    .matches_any(event, std::slice::from_ref(name))
            })
        };
        if !self.admits_elos(tags)
            || rating.is_some() && !self.admits_rating(RatingGroup::of_game(ratings(tags)))
        {
            return Some(Condition::Rating);
        }
        if !self.admits_date(tags) {
            return Some(Condition::Date);
        }
        if !self.admits_names(tags) {
            return Some(Condition::Player);
        }
        if !eco.is_empty() && !tags.get(b"ECO").is_some_and(is_in_a_range) {
            return Some(Condition::Eco);
        }
        if !event.as_ref().is_none_or(is_event) {
            return Some(Condition::Event);
        }
        if speed.is_some() && !self.admits_speed(Speed::of_tag(time())) {
            return Some(Condition::Speed);
        }
        if let Some(range) = time_control
            && !time()
                .and_then(estimated_seconds)
                .is_some_and(|seconds| range.contains(seconds))
        {
            return Some(Condition::TimeControl);
        }
        if rated.is_some() && !self.admits_rated(RatedStatus::of(is_rated(tags))) {
            return Some(Condition::Rated);
        }
        let admits_texts =
            tag.iter().all(|text| text.is_in(tags)) && !not_tag.iter().any(|text| text.is_in(tags));
        (!admits_texts).then_some(Condition::Tag)
    }

    /// Returns `true` if the result of a game, whose tags must meet the other conditions, meets the condition on
    /// results.
    pub fn admits_result(&self, tags: &Tags<'_>, result: GameResult) -> bool {
        let player = || {
            self.player_color(tags)
                .filter(|_| self.has_player_results())
        };
        self.result.is_empty() && !self.skip_unfinished || self.admits_result_of(result, player())
    }

    /// Returns the first condition on the length and the opening that the moves of a game do not meet.
    pub fn unmet_by_moves(&self, plies: usize, opening: OpeningNumber) -> Option<Condition> {
        if plies < self.min_plies as usize {
            Some(Condition::Length)
        } else if self
            .opening
            .as_ref()
            .is_some_and(|wanted| !wanted.contains(opening))
        {
            Some(Condition::Opening)
        } else {
            None
        }
    }

    /// Returns `true` if a game with the tags `tags` meets the condition on the date only because the year of the game
    /// is unknown. Returns `false` if there is no condition on the date.
    pub(crate) fn passes_undated(&self, tags: &Tags<'_>) -> bool {
        (self.since.is_some() || self.until.is_some()) && Date::of_tags(tags).year().is_none()
    }

    /// Returns `true` if at least one player meets the condition on ratings only because this player's rating is
    /// missing or unreadable. Returns `false` if there is no condition on ratings.
    pub(crate) fn passes_unrated(&self, tags: &Tags<'_>) -> bool {
        (self.min_elo.is_some() || self.max_elo.is_some()) && ratings(tags).contains(&0)
    }

    fn admits_elos(&self, tags: &Tags<'_>) -> bool {
        if self.min_elo.is_none() && self.max_elo.is_none() && !self.require_elo {
            return true;
        }
        ratings(tags)
            .into_iter()
            .map(u32::from)
            .all(|elo| match elo {
                0 => !self.require_elo,
                elo => {
                    self.min_elo.is_none_or(|min| min <= elo)
                        && self.max_elo.is_none_or(|max| elo <= max)
                }
            })
    }

    fn admits_date(&self, tags: &Tags<'_>) -> bool {
        if self.since.is_none() && self.until.is_none() && !self.require_date {
            return true;
        }
        let date = Date::of_tags(tags);
        (date.year().is_some() || !self.require_date)
            && self.since.is_none_or(|since| !date.is_before(since))
            && self.until.is_none_or(|until| !until.is_before(date))
    }

    /// Returns the names of the players whose color a condition on names examines: White, Black or both. Each item
    /// contains the value of the tag `White` or `Black`, and `true` if it matches a name in the selection.
    pub(crate) fn player_tags<'t>(
        &self,
        tags: &'t Tags<'_>,
    ) -> impl Iterator<Item = (&'t [u8], bool)> {
        SIDES.into_iter().filter_map(|(color, tag, _)| {
            let of_side = color.fold_wb(&self.white, &self.black);
            let names = [of_side, &self.player, &self.opponent];
            let value = tags
                .get(tag)
                .filter(|_| names.iter().any(|names| !names.is_empty()))?;
            let how = self.name_match();
            let is_match = names.iter().any(|names| how.matches_any(value, names));
            Some((value, is_match))
        })
    }

    /// Returns the color of the selection's player in a game. If the names of both players match, the player is White.
    /// Returns `None` if the selection has no player.
    pub(crate) fn player_color(&self, tags: &Tags<'_>) -> Option<Color> {
        if self.player.is_empty() {
            return None;
        }
        let is_white = || self.has_player(tags, Color::White);
        Some(self.color.unwrap_or_else(|| Color::from_white(is_white())))
    }

    /// Returns `true` if the side `color` has a name of the player, and the other side a name of the opponent.
    fn has_player(&self, tags: &Tags<'_>, color: Color) -> bool {
        is_named(self, tags, color, &self.player) && is_named(self, tags, !color, &self.opponent)
    }

    fn admits_names(&self, tags: &Tags<'_>) -> bool {
        if !self.has_names() {
            return true;
        }
        let is_player = match self.player_color(tags) {
            None => Color::ALL
                .iter()
                .any(|color| is_named(self, tags, *color, &self.opponent)),
            Some(color) => {
                let [white, black] = ratings(tags);
                let other = color.fold_wb(black, white);
                self.has_player(tags, color)
                    && self
                        .opponent_rating
                        .is_none_or(|range| range.contains(other))
            }
        };
        is_player
            && is_named(self, tags, Color::White, &self.white)
            && is_named(self, tags, Color::Black, &self.black)
    }
}

/// Returns `true` if the side `color` has one of `names`, or if `names` is empty.
fn is_named(selection: &Selection, tags: &Tags<'_>, color: Color, names: &[String]) -> bool {
    let (_, tag, _) = SIDES[usize::from(color.is_black())];
    names.is_empty()
        || tags
            .get(tag)
            .is_some_and(|value| selection.name_match().matches_any(value, names))
}

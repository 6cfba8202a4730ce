//! Filters as they are asked of each game of a source.

use shakmaty::Color;

use super::{
    query::Filters,
    source::{Hot, Source, TRAITS, traits_of},
};
use crate::{
    error::Result,
    index::layout::{Subject, folded},
    pgn::Date,
};

/// Filters made ready for a source.
pub(super) struct Sieve<'a> {
    source: &'a Source,
    filters: &'a Filters,
    /// Whether games with these traits pass.
    traits: Box<[bool; TRAITS]>,
    /// The games of the player, a bit each.
    of_player: Option<Vec<u64>>,
    player: Option<Vec<u32>>,
    opponent: Option<Vec<u32>>,
    event: Option<Vec<u32>>,
    /// Whether there is more to ask than the traits.
    asks_more: bool,
}

impl<'a> Sieve<'a> {
    /// `None` if no game of the source can pass.
    pub(super) fn new(source: &'a Source, filters: &'a Filters) -> Result<Option<Sieve<'a>>> {
        if filters
            .source
            .as_ref()
            .is_some_and(|name| *name != source.name)
        {
            return Ok(None);
        }
        let numbers = |name: &Option<String>| -> Result<Option<Vec<u32>>> {
            name.as_deref()
                .map(|name| source.numbers_of(name))
                .transpose()
        };
        let player = numbers(&filters.player)?;
        let opponent = numbers(&filters.opponent)?;
        let event = numbers(&filters.event)?;
        let is_nobody = |numbers: &Option<Vec<u32>>| numbers.as_ref().is_some_and(Vec::is_empty);
        if is_nobody(&player) || is_nobody(&opponent) || is_nobody(&event) {
            return Ok(None);
        }
        let asks_more = player.is_some()
            || opponent.is_some()
            || event.is_some()
            || filters.eco.is_some()
            || filters.since.is_some()
            || filters.until.is_some()
            || filters.min_elo.is_some()
            || filters.max_elo.is_some()
            || filters.min_ply > 0;
        let mut sieve = Sieve {
            source,
            filters,
            traits: traits_that_pass(filters),
            of_player: None,
            player,
            opponent,
            event,
            asks_more,
        };
        sieve.of_player = sieve.games_of_player()?;
        Ok(Some(sieve))
    }

    /// The games of the player with the colour that is asked for.
    fn games_of_player(&self) -> Result<Option<Vec<u64>>> {
        let Some(name) = &self.filters.player else {
            return Ok(None);
        };
        let folded = folded(name);
        let mut bits = vec![0u64; self.source.hot.len().div_ceil(64)];
        for color in Color::ALL {
            if self.filters.color.is_some_and(|wanted| wanted != color) {
                continue;
            }
            for id in self.source.listed(Subject::player(&folded, color))? {
                let word = bits.get_mut(id as usize / 64);
                let word = word.ok_or_else(|| self.source.damaged("a list has an unknown game"))?;
                *word |= 1 << (id % 64);
            }
        }
        Ok(Some(bits))
    }

    /// Whether a game passes.
    #[inline]
    pub(super) fn admits(&self, id: u32, hot: &Hot) -> bool {
        self.traits[usize::from(hot.traits) % TRAITS]
            && (!self.asks_more || self.admits_rest(id, hot))
    }

    fn admits_rest(&self, id: u32, hot: &Hot) -> bool {
        let at = id as usize;
        if let Some(bits) = &self.of_player
            && bits[at / 64] >> (at % 64) & 1 == 0
        {
            return false;
        }
        hot.plies as u32 >= self.filters.min_ply.min(u32::from(u16::MAX))
            && self.admits_ratings(hot)
            && self.admits_date(hot)
            && self.filters.eco.as_ref().is_none_or(|range| {
                let code = self.source.eco[at].code();
                code.is_some_and(|code| range.contains(&code))
            })
            && self
                .event
                .as_ref()
                .is_none_or(|events| events.contains(&self.source.events[at]))
            && self.admits_players(self.source.players[at])
    }

    fn admits_ratings(&self, hot: &Hot) -> bool {
        hot.elo.iter().all(|elo| {
            let elo = u32::from(*elo);
            elo == 0
                || (self.filters.min_elo.is_none_or(|min| min <= elo)
                    && self.filters.max_elo.is_none_or(|max| elo <= max))
        })
    }

    fn admits_date(&self, hot: &Hot) -> bool {
        let Filters { since, until, .. } = self.filters;
        if since.is_none() && until.is_none() {
            return true;
        }
        is_between(hot.date(), *since, *until)
    }

    /// Whether the players are those that are asked for, with the colours that they are asked for.
    fn admits_players(&self, players: [u32; 2]) -> bool {
        let is = |numbers: &Option<Vec<u32>>, number: u32| {
            numbers
                .as_ref()
                .is_none_or(|numbers| numbers.contains(&number))
        };
        let [white, black] = players;
        let may_be = |color: Color| self.filters.color.is_none_or(|wanted| wanted == color);
        if self.player.is_none() {
            return is(&self.opponent, white) || is(&self.opponent, black);
        }
        let as_white = may_be(Color::White) && is(&self.player, white) && is(&self.opponent, black);
        let as_black = may_be(Color::Black) && is(&self.player, black) && is(&self.opponent, white);
        as_white || as_black
    }
}

/// Whether a game of a date may have been played between two others.
pub(super) fn is_between(date: Date, since: Option<Date>, until: Option<Date>) -> bool {
    since.is_none_or(|since| !date.is_before(since))
        && until.is_none_or(|until| !until.is_before(date))
}

/// The traits with which games pass the filters that concern traits.
fn traits_that_pass(filters: &Filters) -> Box<[bool; TRAITS]> {
    let mut pass = Box::new([false; TRAITS]);
    for (traits, passes) in pass.iter_mut().enumerate() {
        let Some((result, speed, mode, group)) = traits_of(traits) else {
            continue;
        };
        *passes = (filters.results.is_empty() || filters.results.contains(&result))
            && filters
                .speeds
                .as_ref()
                .is_none_or(|set| set.contains(&speed))
            && filters.modes.as_ref().is_none_or(|set| set.contains(&mode))
            && filters
                .groups
                .as_ref()
                .is_none_or(|set| set.contains(&group));
    }
    pass
}

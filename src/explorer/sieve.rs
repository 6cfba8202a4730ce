//! Filters as they are asked of each game of a source.

use shakmaty::Color;

use super::{
    dates::DateRange,
    query::Filters,
    source::{Hot, Source, TRAITS, traits_of},
};
use crate::{
    error::Result,
    index::layout::{EcoNumber, Subject, folded},
};

/// Filters made ready for a source.
pub(super) struct Sieve<'a> {
    source: &'a Source,
    /// Whether games with these traits pass.
    traits: Box<[bool; TRAITS]>,
    /// The games of the player, a bit each.
    of_player: Option<Vec<u64>>,
    /// What else there is to ask.
    rest: Option<Rest>,
}

/// What is asked beside the traits.
struct Rest {
    dates: Option<DateRange>,
    /// The lowest and the highest rating that passes if it is known.
    elo: Option<[u32; 2]>,
    min_ply: u32,
    /// Whether games with these openings pass, by their numbers.
    eco: Option<Box<[bool; EcoNumber::COUNT]>>,
    event: Option<Vec<u32>>,
    players: Option<Players>,
    /// Whether there is an event or a player among these.
    asks_names: bool,
}

/// Who is asked for, by the numbers of their names.
struct Players {
    player: Option<Vec<u32>>,
    opponent: Option<Vec<u32>>,
    color: Option<Color>,
}

impl<'a> Sieve<'a> {
    /// `None` if no game of the source can pass.
    pub(super) fn new(source: &'a Source, filters: &Filters) -> Result<Option<Sieve<'a>>> {
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
        let players = (player.is_some() || opponent.is_some()).then_some(Players {
            player,
            opponent,
            color: filters.color,
        });
        Ok(Some(Sieve {
            source,
            traits: traits_that_pass(filters),
            of_player: games_of_player(source, filters)?,
            rest: Rest::new(filters, event, players),
        }))
    }

    /// Whether a game passes.
    #[inline]
    pub(super) fn admits(&self, id: u32, hot: &Hot) -> bool {
        let at = id as usize;
        self.of_player
            .as_ref()
            .is_none_or(|bits| bits[at / 64] >> (at % 64) & 1 == 1)
            && self.traits[usize::from(hot.traits) % TRAITS]
                & self
                    .rest
                    .as_ref()
                    .is_none_or(|rest| rest.admits(self.source, at, hot))
    }
}

impl Rest {
    /// `None` if there is nothing to ask.
    fn new(filters: &Filters, event: Option<Vec<u32>>, players: Option<Players>) -> Option<Rest> {
        let dates = DateRange::new(filters.since, filters.until);
        let elo = [
            filters.min_elo.unwrap_or(0),
            filters.max_elo.unwrap_or(u32::MAX),
        ];
        let rest = Rest {
            dates: (!dates.is_all()).then_some(dates),
            elo: (elo != [0, u32::MAX]).then_some(elo),
            min_ply: filters.min_ply.min(u16::MAX.into()),
            eco: filters.eco.as_ref().map(|range| {
                let mut passes = Box::new([false; EcoNumber::COUNT]);
                for eco in EcoNumber::all() {
                    passes[eco.number()] = eco.code().is_some_and(|code| range.contains(&code));
                }
                passes
            }),
            asks_names: event.is_some() || players.is_some(),
            event,
            players,
        };
        let asks = rest.dates.is_some()
            || rest.elo.is_some()
            || rest.min_ply > 0
            || rest.eco.is_some()
            || rest.asks_names;
        asks.then_some(rest)
    }

    #[inline]
    fn admits(&self, source: &Source, at: usize, hot: &Hot) -> bool {
        // Games differ from one to the next, so the processor would guess wrongly after each condition.
        let eco = self.eco.as_ref();
        let passes = (u32::from(hot.plies) >= self.min_ply)
            & eco.is_none_or(|passes| passes[source.eco[at].number()])
            & self.dates.is_none_or(|dates| dates.contains(hot.date))
            & self
                .elo
                .is_none_or(|elo| is_rated(hot.elo[0], elo) & is_rated(hot.elo[1], elo));
        passes && (!self.asks_names || self.admits_names(source, at))
    }

    // Apart, so that what is asked most often stays short enough to become part of the loop over the games.
    #[inline(never)]
    fn admits_names(&self, source: &Source, at: usize) -> bool {
        let event = self.event.as_ref();
        let players = self.players.as_ref();
        event.is_none_or(|events| events.contains(&source.events[at]))
            && players.is_none_or(|players| players.admit(source.players[at]))
    }
}

/// Whether a rating is from a lowest to a highest one, or not known.
#[inline]
fn is_rated(elo: u16, [lowest, highest]: [u32; 2]) -> bool {
    let elo = u32::from(elo);
    (elo == 0) | ((lowest <= elo) & (elo <= highest))
}

impl Players {
    /// Whether the players of a game are those that are asked for, with the colours that they are asked for.
    fn admit(&self, [white, black]: [u32; 2]) -> bool {
        let is = |numbers: &Option<Vec<u32>>, number: u32| {
            numbers
                .as_ref()
                .is_none_or(|numbers| numbers.contains(&number))
        };
        let may_be = |color: Color| self.color.is_none_or(|wanted| wanted == color);
        if self.player.is_none() {
            return is(&self.opponent, white) || is(&self.opponent, black);
        }
        let as_white = may_be(Color::White) && is(&self.player, white) && is(&self.opponent, black);
        let as_black = may_be(Color::Black) && is(&self.player, black) && is(&self.opponent, white);
        as_white || as_black
    }
}

/// The games of the player with the colour that is asked for.
fn games_of_player(source: &Source, filters: &Filters) -> Result<Option<Vec<u64>>> {
    let Some(name) = &filters.player else {
        return Ok(None);
    };
    let folded = folded(name);
    let mut bits = vec![0u64; source.hot.len().div_ceil(64)];
    for color in Color::ALL {
        if filters.color.is_some_and(|wanted| wanted != color) {
            continue;
        }
        for id in source.listed(Subject::player(&folded, color))? {
            let word = bits.get_mut(id as usize / 64);
            let word = word.ok_or_else(|| source.damaged("a list has an unknown game"))?;
            *word |= 1 << (id % 64);
        }
    }
    Ok(Some(bits))
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

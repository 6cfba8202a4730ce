//! Asking several indexes as one.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use rayon::prelude::*;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    answer::{About, Answer, GameInfo, GameList, MonthCount, PlayedGame, PlayedMove, PlayerScore},
    count::{Counted, Rank, count_games, subject_of},
    line::Line,
    performance::performance,
    query::{Filters, Page, Query, View},
    ranked::Ranked,
    source_filter::SourceFilters,
    sources::Sources,
    tally::{MoveTally, Results},
    unknown_name::UnknownName,
};
use crate::{
    error::Result,
    index::{GameHeader, layout::Subject},
    openings,
    position::{BookMove, Variant},
    task,
};

/// Answers questions about positions from one or several indexes. Any number of threads may ask at the same time.
///
/// An open explorer holds 32 bytes of each game in memory, and some names.
pub struct Explorer {
    sources: Sources,
}

impl fmt::Debug for Explorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
        f.debug_struct("Explorer").field("sources", &names).finish()
    }
}

impl Explorer {
    /// Opens indexes under names. Their games are numbered on from one to the next.
    ///
    /// # Errors
    ///
    /// A directory that is no index, one that was made without the explorer's data, or a damaged one.
    pub fn open(sources: impl IntoIterator<Item = (String, PathBuf)>) -> Result<Explorer> {
        Ok(Explorer {
            sources: Sources::open(sources)?,
        })
    }

    /// What there is.
    pub fn about(&self) -> About {
        self.sources.about()
    }

    /// The variant of the games, if all sources have a single one and the same.
    pub fn variant(&self) -> Option<Variant> {
        self.sources.variant()
    }

    /// A number that is another one when the sources have been made again, changed or renamed.
    pub fn identity(&self) -> u64 {
        self.sources.identity()
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// A damaged index, or a source that does not exist.
    pub fn answer(&self, query: &Query) -> Result<Answer> {
        task::caught(|| self.answer_to(query))
    }

    fn answer_to(&self, query: &Query) -> Result<Answer> {
        task::fault("answer");
        self.sources.check(&query.filters)?;
        let filters = SourceFilters::new(&self.sources, &query.filters)?;
        let is_long = query.transpositions && filters.ask_long(subject_of(&query.line))?;
        let mut counted = Counted::new(&filters, query)?;
        let mut totals = Results::default();
        for (_, tally) in &counted.moves {
            totals += tally.results;
        }
        counted
            .moves
            .sort_by_cached_key(|(mv, tally)| (u64::MAX - tally.results.games(), mv.to_string()));
        counted.moves.truncate(query.moves.unwrap_or(usize::MAX));
        let moves = &counted.moves;
        let after = |(mv, _): &(BookMove, MoveTally)| subject_after(&query.line, *mv);
        let reached = |played| count_games(&filters, after(played)).map(Some);
        let reached: Vec<Option<u64>> = match (query.transpositions, is_long) {
            (false, _) => vec![None; moves.len()],
            (true, false) => moves.iter().map(reached).collect::<Result<_>>()?,
            (true, true) => moves.par_iter().map(reached).collect::<Result<_>>()?,
        };
        let moves = moves
            .iter()
            .zip(reached)
            .map(|((mv, tally), reached)| self.played_move(query, *mv, tally, reached))
            .collect::<Result<_>>()?;
        let ranked = |(_, number, mv): Rank| (number, mv);
        let top = counted.top.into_sorted().into_iter().map(ranked);
        let top = self.games_of(query, top)?;
        let recent = counted.recent.into_sorted().into_iter().map(ranked);
        let recent = self.games_of(query, recent.take(query.recent_limit(top.len())))?;
        Ok(Answer {
            white: totals.white(),
            draws: totals.draws(),
            black: totals.black(),
            moves,
            recent_games: (query.view != View::Masters).then_some(recent),
            top_games: (query.view != View::Player).then_some(top),
            opening: opening_of(&query.line),
            queue_position: 0,
            history: counted
                .months
                .map(|months| zero_filled(&months.into_iter().collect())),
        })
    }

    /// The games of a position that pass the filters, those that ended there among them.
    ///
    /// # Errors
    ///
    /// A damaged index, or a source that does not exist.
    pub fn games(&self, query: &Query, page: &Page) -> Result<GameList> {
        let ranked = self.ranked(query, page)?;
        let total = ranked.total;
        let games = ranked.collect::<Result<Vec<_>>>()?;
        Ok(GameList {
            total,
            games: self.games_of(query, games)?,
        })
    }

    /// How many games [`games`](Explorer::games) finds, and the numbers of those on the page. However many these are,
    /// few are held in memory.
    ///
    /// # Errors
    ///
    /// As of [`games`](Explorer::games).
    pub fn game_numbers<'a>(
        &'a self,
        query: &'a Query,
        page: &Page,
    ) -> Result<(u64, impl Iterator<Item = Result<u64>> + use<'a>)> {
        let ranked = self.ranked(query, page)?;
        let total = ranked.total;
        Ok((total, ranked.map(|game| game.map(|(number, _)| number))))
    }

    fn ranked<'a>(&'a self, query: &'a Query, page: &Page) -> Result<Ranked<'a>> {
        self.sources.check(&query.filters)?;
        let filters = SourceFilters::new(&self.sources, &query.filters)?;
        Ranked::new(filters, query, page)
    }

    /// The first name of some filters that no game has, if there is one.
    ///
    /// # Errors
    ///
    /// A damaged index.
    pub fn unknown_name(&self, filters: &Filters) -> Result<Option<UnknownName>> {
        UnknownName::of(&self.sources, filters)
    }

    /// What the index says of a game, by its number.
    ///
    /// # Errors
    ///
    /// A number that no game has, or a damaged index.
    pub fn header(&self, number: u64) -> Result<GameHeader> {
        let (source, id) = self.sources.place(number)?;
        source.index.header(id)
    }

    /// The number of the game with an id: its id at Lichess, or its number with leading zeros.
    ///
    /// # Errors
    ///
    /// A damaged index.
    pub fn find(&self, id: &str) -> Result<Option<u64>> {
        self.sources.find(id)
    }

    /// What is known of a game, by its number.
    ///
    /// # Errors
    ///
    /// A number that no game has, or a damaged index.
    pub fn game(&self, number: u64) -> Result<GameInfo> {
        self.sources.info(number, View::Lichess)
    }

    /// The PGN text of a game, byte for byte, by its number.
    ///
    /// # Errors
    ///
    /// As of [`Index::text`](crate::index::Index::text).
    pub fn text(&self, number: u64) -> Result<Vec<u8>> {
        self.text_while(number, &|| true)
    }

    /// The same as long as `goes_on` says so.
    ///
    /// # Errors
    ///
    /// As of [`Index::text_while`](crate::index::Index::text_while).
    pub fn text_while(&self, number: u64, goes_on: &dyn Fn() -> bool) -> Result<Vec<u8>> {
        let (source, id) = self.sources.place(number)?;
        source.index.text_while(id, goes_on)
    }

    /// How many games all sources have.
    pub fn game_count(&self) -> u64 {
        self.sources.game_count()
    }

    fn played_move(
        &self,
        query: &Query,
        mv: BookMove,
        tally: &MoveTally,
        reached: Option<u64>,
    ) -> Result<PlayedMove> {
        let pos = query.line.position();
        let next = position_after(&query.line, mv);
        let results = tally.results;
        let game = match results.games() {
            1 => Some(self.sources.info(tally.game, query.view)?),
            _ => None,
        };
        let of_player = query.view == View::Player;
        let player = query.filters.color.unwrap_or(pos.turn());
        Ok(PlayedMove {
            uci: mv.to_string(),
            san: mv.san(pos).unwrap_or_default(),
            average_rating: (!of_player).then(|| tally.ratings.mean()),
            player: of_player.then(|| player_score(tally, player)),
            white: results.white(),
            draws: results.draws(),
            black: results.black(),
            game,
            opening: openings::name_of(&next),
            reached,
        })
    }

    fn games_of(
        &self,
        query: &Query,
        games: impl IntoIterator<Item = (u64, BookMove)>,
    ) -> Result<Vec<PlayedGame>> {
        games
            .into_iter()
            .map(|(number, mv)| {
                Ok(PlayedGame {
                    uci: (mv != BookMove::NONE).then(|| mv.to_string()),
                    game: self.sources.info(number, query.view)?,
                })
            })
            .collect()
    }
}

/// How the player of a color did in games that played a move.
fn player_score(tally: &MoveTally, player: Color) -> PlayerScore {
    let games = tally.rated.games();
    let opponents = tally.rated_sum.checked_div(games);
    let half_points = tally.rated.half_points(player);
    PlayerScore {
        average_opponent_rating: opponents,
        performance: opponents.map(|opponents| performance(opponents, half_points, games)),
    }
}

/// The position after a legal move of the last position of a line.
fn position_after(line: &Line, mv: BookMove) -> VariantPosition {
    let legal = mv
        .to_move(line.position())
        .expect("moves that are not legal were left out");
    let mut next = line.position().clone();
    next.play_unchecked(legal);
    next
}

/// The list of that position.
fn subject_after(line: &Line, mv: BookMove) -> Subject {
    subject_of(&Line::at(line.variant(), position_after(line, mv)))
}

/// The name of the last position of a line that has one.
fn opening_of(line: &Line) -> Option<openings::Opening> {
    line.positions_from_end().iter().find_map(openings::name_of)
}

/// All months from the first to the last, by years and months as one number.
fn zero_filled(months: &BTreeMap<u32, Results>) -> Vec<MonthCount> {
    let known = || {
        months
            .keys()
            .filter(|month| **month & 15 > 0 && **month >> 4 > 0)
    };
    let (Some(first), Some(last)) = (known().next(), known().next_back()) else {
        return Vec::new();
    };
    (*first..=*last)
        .filter(|month| (1..=12).contains(&(month & 15)))
        .map(|month| {
            let results = months.get(&month).copied().unwrap_or_default();
            MonthCount {
                month: format!("{:04}-{:02}", month >> 4, month & 15),
                white: results.white(),
                draws: results.draws(),
                black: results.black(),
            }
        })
        .collect()
}

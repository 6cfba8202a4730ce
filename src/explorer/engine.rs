//! Asking several indexes as one.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use rustc_hash::FxHashMap;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    answer::{
        About, AboutSource, Answer, GameInfo, GameList, MonthCount, PlayedGame, PlayedMove, Player,
    },
    best::Best,
    line::Line,
    performance::performance,
    query::{Filters, Page, Query, Sort, View},
    sieve::Sieve,
    source::{Hot, Source, traits_of},
    tally::{MoveTally, Results},
};
use crate::{
    error::{Error, Result},
    index::{
        GameHeader,
        layout::{SiteId, Subject},
    },
    openings,
    position::{BookMove, Keyed, Variant},
};

/// Answers questions about positions from one or several indexes. Any number of threads may ask at the same time.
///
/// An open explorer holds 32 bytes of each game in memory, and some names.
pub struct Explorer {
    sources: Vec<Source>,
}

impl fmt::Debug for Explorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
        f.debug_struct("Explorer").field("sources", &names).finish()
    }
}

/// What games are ranked by, and which game it is: the higher the earlier in a list.
type Rank = (u64, u64, BookMove);

/// By the sum of the ratings, then by the date.
#[inline]
fn by_rating(hot: &Hot, number: u64, mv: BookMove) -> Rank {
    let rank = u64::from(hot.rating_sum()) << u32::BITS | u64::from(hot.date);
    (rank, number, mv)
}

#[inline]
fn by_date(hot: &Hot, number: u64, mv: BookMove) -> Rank {
    (hot.date.into(), number, mv)
}

/// What was counted for a question.
struct Counted {
    moves: Vec<(BookMove, MoveTally)>,
    top: Best<Rank>,
    recent: Best<Rank>,
    months: Option<BTreeMap<u32, Results>>,
}

impl Explorer {
    /// Opens indexes under names. Their games are numbered on from one to the next.
    ///
    /// # Errors
    ///
    /// A directory that is no index, one that was made without the explorer's data, or a damaged one.
    pub fn open(sources: impl IntoIterator<Item = (String, PathBuf)>) -> Result<Explorer> {
        let mut explorer = Explorer {
            sources: Vec::new(),
        };
        let mut first = 0;
        for (name, path) in sources {
            let source = Source::open(name, &path, first)?;
            first += source.games();
            explorer.sources.push(source);
        }
        Ok(explorer)
    }

    /// What there is.
    pub fn about(&self) -> About {
        let sources: Vec<AboutSource> = self.sources.iter().map(about).collect();
        let years = sources.iter().filter_map(|source| source.years);
        About {
            version: env!("CARGO_PKG_VERSION"),
            games: sources.iter().map(|source| source.games).sum(),
            positions: sources.iter().map(|source| source.positions).sum(),
            years: years.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]),
            sources,
        }
    }

    /// The variant of the games, if all sources have a single one and the same.
    pub fn variant(&self) -> Option<Variant> {
        let mut variants = self
            .sources
            .iter()
            .map(|source| source.index.variant().only());
        let first = variants.next()??;
        variants
            .all(|variant| variant == Some(first))
            .then_some(first)
    }

    /// A number that is another one when the sources have been made again, changed or renamed.
    pub fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for source in &self.sources {
            source.name.hash(&mut hasher);
            source.index.path().hash(&mut hasher);
            (
                source.games(),
                source.contents.items,
                source.contents.positions,
            )
                .hash(&mut hasher);
            source.changed.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// A damaged index, or a source that does not exist.
    pub fn answer(&self, query: &Query) -> Result<Answer> {
        self.check(&query.filters)?;
        let mut counted = self.count(query)?;
        let mut totals = Results::default();
        for (_, tally) in &counted.moves {
            totals += tally.results;
        }
        counted
            .moves
            .sort_by_cached_key(|(mv, tally)| (u64::MAX - tally.results.games(), mv.to_string()));
        let limit = query.moves.unwrap_or(usize::MAX);
        let moves = counted.moves.iter().take(limit);
        let moves = moves
            .map(|(mv, tally)| self.played_move(query, *mv, tally))
            .collect::<Result<_>>()?;
        let top = self.games_of(query, counted.top.into_sorted())?;
        let mut recent = counted.recent.into_sorted();
        recent.truncate(query.recent_limit(top.len()));
        let recent = self.games_of(query, recent)?;
        Ok(Answer {
            white: totals.white(),
            draws: totals.draws(),
            black: totals.black(),
            moves,
            recent_games: (query.view != View::Masters).then_some(recent),
            top_games: (query.view != View::Player).then_some(top),
            opening: opening_of(&query.line),
            queue_position: 0,
            history: counted.months.map(|months| zero_filled(&months)),
        })
    }

    /// The games of a position that pass the filters, those that ended there among them.
    ///
    /// # Errors
    ///
    /// A damaged index, or a source that does not exist.
    pub fn games(&self, query: &Query, page: &Page) -> Result<GameList> {
        let (total, ranks) = self.page(query, page)?;
        Ok(GameList {
            total,
            games: self.games_of(query, ranks)?,
        })
    }

    /// How many games [`games`](Explorer::games) finds, and the numbers of those on the page.
    ///
    /// # Errors
    ///
    /// As of [`games`](Explorer::games).
    pub fn game_numbers(&self, query: &Query, page: &Page) -> Result<(u64, Vec<u64>)> {
        let (total, ranks) = self.page(query, page)?;
        Ok((total, ranks.into_iter().map(|rank| rank.1).collect()))
    }

    fn page(&self, query: &Query, page: &Page) -> Result<(u64, Vec<Rank>)> {
        self.check(&query.filters)?;
        let mut total = 0;
        let mut best = Best::new(page.skip.saturating_add(page.limit));
        self.for_each_game(
            subject_of(&query.line),
            &query.filters,
            |hot, number, mv| {
                total += 1;
                best.offer(match page.sort {
                    Sort::Recent => by_date(hot, number, mv),
                    Sort::Rating => by_rating(hot, number, mv),
                    Sort::Id => (0, u64::MAX - number, mv),
                });
            },
        )?;
        let mut ranks = best.into_sorted();
        ranks.drain(..page.skip.min(ranks.len()));
        if page.sort == Sort::Id {
            ranks.iter_mut().for_each(|rank| rank.1 = u64::MAX - rank.1);
        }
        Ok((total, ranks))
    }

    /// What the index says of a game, by its number.
    ///
    /// # Errors
    ///
    /// A number that no game has, or a damaged index.
    pub fn header(&self, number: u64) -> Result<GameHeader> {
        let (source, id) = self.place(number)?;
        source.index.header(id)
    }

    /// The number of the game with an id: its id at Lichess, or its number with leading zeros.
    ///
    /// # Errors
    ///
    /// A damaged index.
    pub fn find(&self, id: &str) -> Result<Option<u64>> {
        if let Some(site_id) = SiteId::parse(id) {
            for source in &self.sources {
                let ids = source.listed(Subject::site_id(site_id))?;
                let is_it = |id: &&u32| {
                    u64::from(**id) < source.games() && source.site_id(**id) == Some(site_id)
                };
                if let Some(id) = ids.iter().find(is_it) {
                    return Ok(Some(source.first + u64::from(*id)));
                }
            }
        }
        let number = id.parse::<u64>().ok();
        let is_number = id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_digit());
        Ok(number.filter(|number| is_number && *number < self.game_count()))
    }

    /// What is known of a game, by its number.
    ///
    /// # Errors
    ///
    /// A number that no game has, or a damaged index.
    pub fn game(&self, number: u64) -> Result<GameInfo> {
        self.info(number, View::Lichess)
    }

    /// The PGN text of a game, byte for byte, by its number.
    ///
    /// # Errors
    ///
    /// As of [`Index::text`](crate::index::Index::text).
    pub fn text(&self, number: u64) -> Result<Vec<u8>> {
        let (source, id) = self.place(number)?;
        source.index.text(id)
    }

    /// How many games all sources have.
    pub fn game_count(&self) -> u64 {
        self.sources
            .last()
            .map_or(0, |last| last.first + last.games())
    }

    /// Refuses a source that does not exist.
    fn check(&self, filters: &Filters) -> Result<()> {
        match &filters.source {
            Some(name) if self.sources.iter().all(|source| source.name != *name) => {
                let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
                let problem = format!("is no source: name one of {}", names.join(", "));
                Err(Error::file(name, problem))
            }
            _ => Ok(()),
        }
    }

    fn count(&self, query: &Query) -> Result<Counted> {
        let pos = query.line.position();
        let subject = subject_of(&query.line);
        let color = color_of_ratings(query, pos);
        let mut counted = Counted {
            moves: Vec::new(),
            top: Best::new(query.top_limit()),
            recent: Best::new(query.recent_limit(0)),
            months: query.history.then(BTreeMap::new),
        };
        for source in &self.sources {
            if let Some(sieve) = Sieve::new(source, &query.filters)? {
                counted.add_list(source, &sieve, subject, color)?;
            }
        }
        // What is not legal here belongs to another position with the same hash.
        counted
            .moves
            .retain(|(mv, tally)| tally.results.games() > 0 && mv.to_move(pos).is_some());
        Ok(counted)
    }

    /// Calls `f` with the games of a list that pass, those that end there too.
    fn for_each_game(
        &self,
        subject: Subject,
        filters: &Filters,
        mut f: impl FnMut(&Hot, u64, BookMove),
    ) -> Result<()> {
        for source in &self.sources {
            let Some(sieve) = Sieve::new(source, filters)? else {
                continue;
            };
            let list = source.index.list(source.contents.paging, subject)?;
            source.index.for_each_part(&list, |part| {
                let moves: Vec<BookMove> = part.moves().collect();
                let mut is_known = true;
                part.for_each(|id, number| match source.hot.get(id as usize) {
                    Some(hot) if sieve.admits(id, hot) => {
                        f(hot, source.first + u64::from(id), moves[number]);
                    }
                    Some(_) => {}
                    None => is_known = false,
                })?;
                is_known.then_some(())
            })?;
        }
        Ok(())
    }

    fn played_move(&self, query: &Query, mv: BookMove, tally: &MoveTally) -> Result<PlayedMove> {
        let pos = query.line.position();
        let legal = mv
            .to_move(pos)
            .expect("moves that are not legal were left out");
        let mut next = pos.clone();
        next.play_unchecked(legal);
        let results = tally.results;
        let mean = tally.ratings.mean();
        let game = match results.games() {
            1 => Some(self.info(tally.game, query.view)?),
            _ => None,
        };
        let of_player = query.view == View::Player;
        let player = query.filters.color.unwrap_or(pos.turn());
        let worth = performance(mean, results.half_points(player), results.games());
        Ok(PlayedMove {
            uci: mv.to_string(),
            san: mv.san(pos).unwrap_or_default(),
            average_rating: (!of_player).then_some(mean),
            average_opponent_rating: of_player.then_some(mean),
            performance: of_player.then_some(worth),
            white: results.white(),
            draws: results.draws(),
            black: results.black(),
            game,
            opening: openings::name_of(&next),
            reached: query
                .transpositions
                .then(|| self.reached(query, next))
                .transpose()?,
        })
    }

    /// How many games that pass reached a position.
    fn reached(&self, query: &Query, pos: VariantPosition) -> Result<u64> {
        let subject = subject_of(&Line::at(query.line.variant(), pos));
        let mut games = 0;
        self.for_each_game(subject, &query.filters, |_, _, _| games += 1)?;
        Ok(games)
    }

    fn games_of(&self, query: &Query, ranks: Vec<Rank>) -> Result<Vec<PlayedGame>> {
        ranks
            .into_iter()
            .map(|(_, number, mv)| {
                Ok(PlayedGame {
                    uci: (mv != BookMove::NONE).then(|| mv.to_string()),
                    game: self.info(number, query.view)?,
                })
            })
            .collect()
    }

    /// The source of a game, and its id there.
    fn place(&self, number: u64) -> Result<(&Source, u32)> {
        let behind = self
            .sources
            .partition_point(|source| source.first <= number);
        let source = behind.checked_sub(1).map(|at| &self.sources[at]);
        match source {
            Some(source) if number - source.first < source.games() => {
                Ok((source, (number - source.first) as u32))
            }
            _ => {
                let games = self.game_count();
                let problem = format!("no game has this number: there are {games}");
                Err(Error::file(number.to_string(), problem))
            }
        }
    }

    fn info(&self, number: u64, view: View) -> Result<GameInfo> {
        let (source, id) = self.place(number)?;
        let hot = &source.hot[id as usize];
        let [white, black] = source.players[id as usize];
        let (_, speed, mode, _) =
            traits_of(hot.traits.into()).expect("the traits were made of these");
        let date = hot.date();
        let of_masters = view == View::Masters;
        Ok(GameInfo {
            number,
            id: match source.site_id(id) {
                Some(id) => id.text(),
                None => format!("{number:08}"),
            },
            winner: hot.winner(),
            speed: (!of_masters).then_some(speed),
            mode: (!of_masters).then_some(mode),
            black: Player {
                name: source.name(black)?,
                rating: hot.elo_of(Color::Black),
            },
            white: Player {
                name: source.name(white)?,
                rating: hot.elo_of(Color::White),
            },
            year: date.year().unwrap_or(0),
            month: date
                .year()
                .zip(date.month())
                .map(|(year, month)| format!("{year:04}-{month:02}")),
        })
    }
}

impl Counted {
    /// Adds the games of a source, one by one.
    // One pass over the list, which may have millions of games.
    fn add_list(
        &mut self,
        source: &Source,
        sieve: &Sieve<'_>,
        subject: Subject,
        color: Color,
    ) -> Result<()> {
        let mut known: FxHashMap<BookMove, usize> = self
            .moves
            .iter()
            .enumerate()
            .map(|(at, (mv, _))| (*mv, at))
            .collect();
        let list = source.index.list(source.contents.paging, subject)?;
        source.index.for_each_part(&list, |part| {
            let places: Vec<Option<usize>> = part
                .moves()
                .map(|mv| {
                    (mv != BookMove::NONE).then(|| {
                        *known.entry(mv).or_insert_with(|| {
                            self.moves.push((mv, MoveTally::default()));
                            self.moves.len() - 1
                        })
                    })
                })
                .collect();
            let mut is_known = true;
            part.for_each(|id, number| {
                let Some(hot) = source.hot.get(id as usize) else {
                    is_known = false;
                    return;
                };
                let Some(place) = places[number] else {
                    return;
                };
                if !sieve.admits(id, hot) {
                    return;
                }
                let game = source.first + u64::from(id);
                let (mv, tally) = &mut self.moves[place];
                tally.add(hot, hot.elo_of(color), game);
                self.top.offer(by_rating(hot, game, *mv));
                self.recent.offer(by_date(hot, game, *mv));
                if let Some(months) = &mut self.months {
                    months.entry(hot.date >> 5).or_default().add(hot.result());
                }
            })?;
            is_known.then_some(())
        })
    }
}

/// Whose ratings are averaged: those of the side to move, or of the player's opponents.
fn color_of_ratings(query: &Query, pos: &VariantPosition) -> Color {
    match (query.view, query.filters.color) {
        (View::Player, Some(color)) => !color,
        (View::Player, None) => !pos.turn(),
        _ => pos.turn(),
    }
}

/// The list of a position.
fn subject_of(line: &Line) -> Subject {
    let identity = Keyed::new(line.position().clone()).identity();
    Subject::position(line.variant(), identity)
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

fn about(source: &Source) -> AboutSource {
    let years = source.hot.iter().filter_map(|hot| hot.date().year());
    let years = years.fold(None, |range: Option<[u16; 2]>, year| {
        let [first, last] = range.unwrap_or([year; 2]);
        Some([first.min(year), last.max(year)])
    });
    AboutSource {
        name: source.name.clone(),
        games: source.games(),
        positions: source.contents.positions,
        years,
        variant: source.index.variant().to_string(),
    }
}

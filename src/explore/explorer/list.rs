//! Lists the games that reached a position. Only a part of a list is in memory at a time. The games of a match can be
//! folded into one entry. [`game_info`] describes a single game.

use std::{collections::BTreeSet, iter};

use rustc_hash::FxHashMap;
use shakmaty::Color;

use super::{
    duplicate_groups::DuplicateGroups,
    filter::{SourceFilter, SourceFilters},
    open_index::{OpenIndex, text_of_number},
    query::{Page, Query, Sort, View},
    scan::{Collector, PassingGames, scan},
    sources::Sources,
    tally::{Rank, by_date, by_rating},
};
use crate::{
    chess::position::BookMove,
    error::Result,
    formats::explorer_index::Best,
    games::pgn::{Mode, Speed},
    json,
};

/// The maximum number of games that are in memory while a page of a list of games is collected. A page with more games
/// is collected in several passes over the games of the position. Each pass finds the next `MAX_GAMES_IN_MEMORY` games
/// of the page.
const MAX_GAMES_IN_MEMORY: usize = if cfg!(test) { 7 } else { 1 << 16 };

/// An entry in a list that shows one game of each match: the number of this game, the move that was played in it, and
/// the number of other games in the match. A match is all games of the same players at the same event.
type MatchEntry = (u64, BookMove, u64);

/// A game in a list of games that reached a position, with its date, event and length.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedGame {
    /// The game, with the move that was played in the position.
    #[serde(flatten)]
    pub played: PlayedGame,
    /// The date: `2006-01-02`, or `2006-01` or `2006` if the rest is unknown.
    pub date: Option<String>,
    /// The name of the event.
    pub event: Option<String>,
    /// The ECO code in the tags of the game.
    pub eco: Option<String>,
    /// The number of half-moves of the game, at most 65535.
    pub plies: u16,
    /// The number of duplicates of this game that the list leaves out because the query counts duplicates once.
    pub copies: usize,
    /// The number of other games of the same match. `Some` only if the list shows just one game of each match, and
    /// there are others.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub of_match: Option<MatchGames>,
}

/// The number of games of a match that a list leaves out, because it shows only the first game of each match. A match
/// is all games of two players at one event.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatchGames {
    /// The number of further games of the match that pass the filters.
    pub more: u64,
}

/// One page of the list of games that reached a position.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GameList {
    /// The number of games in the whole list.
    pub total: u64,
    /// The number of games to skip to get the next page, or `None` if this is the last page.
    pub next: Option<usize>,
    /// The games on this page.
    pub games: Vec<ListedGame>,
}

/// Returns one page of the list of games that reached a position. Implements
/// [`Explorer::games`](super::Explorer::games).
///
/// # Errors
///
/// Returns an error if an index is damaged, if the selected source does not exist, or if no source contains games.
pub(super) fn list(sources: &Sources, query: &Query, page: &Page) -> Result<GameList> {
    let filters = sources.filters_of_games(&query.filters)?;
    // Requests one more game, to find out whether there is another page.
    let longer = &Page {
        limit: page.limit.saturating_add(1),
        ..*page
    };
    let (total, mut games) = if page.fold_matches {
        page_of_matches(sources.all_duplicates()?, &filters, query, longer)?
    } else {
        let (total, games) = numbers(sources.filters_of_games(&query.filters)?, query, longer)?;
        let games = games.map(|game| game.map(|(number, mv)| (number, mv, 0)));
        (total, games.collect::<Result<Vec<_>>>()?)
    };
    let has_next = page.limit > 0 && games.len() > page.limit;
    let next = has_next.then_some(page.skip.saturating_add(page.limit));
    games.truncate(page.limit);
    let played = games.iter().map(|(number, mv, _)| (*number, *mv));
    let played = played_games(sources, query.view, played)?.into_iter();
    let listed = played.zip(&games).map(|(played, (.., more))| {
        with_details(
            sources,
            &filters,
            played,
            Some(*more).filter(|more| *more > 0),
        )
    });
    Ok(GameList {
        total,
        next,
        games: listed.collect::<Result<_>>()?,
    })
}

/// Converts `played` to an entry of a list of games, by adding details such as the event and the number of the game's
/// duplicates that pass `filters`. In a list that shows one game of each match, `more` is the number of other games in
/// the match. In other lists, and if there are no other games, `more` is `None`.
pub(super) fn with_details(
    sources: &Sources,
    filters: &SourceFilters<'_>,
    played: PlayedGame,
    more: Option<u64>,
) -> Result<ListedGame> {
    let number = played.game.number;
    let (source, id) = sources.locate(number)?;
    let (games, at) = (&source.rows, id as usize);
    let event = source.name(games.events[at])?;
    let eco = games.eco[at].code();
    Ok(ListedGame {
        date: text_of_number(games.dates[at]),
        event: Some(event).filter(|event| event != "?" && !event.is_empty()),
        eco: eco.map(|code| code.map(char::from).iter().collect()),
        plies: games.plies[at],
        copies: filters.copies_of(number),
        of_match: more.map(|more| MatchGames { more }),
        played,
    })
}

/// Returns the number of games in the whole list, and an iterator over the games on `page`. An item is the number of a
/// game, and the move that was played in the position of the query.
///
/// # Errors
///
/// Returns an error if an index is damaged. If the damage is found only while the list is read, the iterator yields the
/// error.
pub(super) fn numbers<'a>(
    filters: SourceFilters<'a>,
    query: &'a Query,
    page: &Page,
) -> Result<(u64, impl Iterator<Item = Result<(u64, BookMove)>> + use<'a>)> {
    let Page {
        mut skip,
        mut limit,
        sort,
        ..
    } = *page;
    let mut last = None;
    // Returns the next games on the page, the number of all games, and whether more games follow.
    let mut next_window = move || -> Result<(Vec<Rank>, u64, bool)> {
        let wanted = skip.saturating_add(limit).min(MAX_GAMES_IN_MEMORY);
        let subject = query.line.subject();
        let new = || RankedGames::new(sort, wanted, last);
        let RankedGames { total, best, .. } = scan(&filters, &[subject], new)?;
        let mut ranks = best.into_sorted();
        last = ranks.last().copied();
        let go_on = ranks.len() == wanted;
        let skipped = skip.min(ranks.len());
        ranks.drain(..skipped);
        skip -= skipped;
        limit -= ranks.len();
        Ok((ranks, total, go_on && limit > 0))
    };
    let (first, total, mut go_on) = next_window()?;
    let rest = iter::from_fn(move || {
        go_on.then(|| {
            let next = next_window();
            go_on = next.as_ref().is_ok_and(|next| next.2);
            next.map(|(ranks, ..)| ranks)
        })
    });
    let games = iter::once(Ok(first)).chain(rest).flat_map(move |ranks| {
        let (ranks, err) = match ranks {
            Ok(ranks) => (ranks, None),
            Err(err) => (Vec::new(), Some(err)),
        };
        let game = move |(_, number, mv)| (number_of(number, sort), mv);
        ranks
            .into_iter()
            .map(move |rank| Ok(game(rank)))
            .chain(err.map(Err))
    });
    Ok((total, games))
}

/// Returns the game number that `ranked`, the second field of a [`Rank`], encodes. In a list that is sorted by game
/// number ([`Sort::Id`]), the field is `u64::MAX` minus the number; in other lists, it is the number itself.
fn number_of(ranked: u64, sort: Sort) -> u64 {
    match sort {
        Sort::Id => u64::MAX - ranked,
        Sort::Recent | Sort::Rating => ranked,
    }
}

/// Collects the first games in a list of games that reached a position. The list is sorted by [`Rank`] in descending
/// order.
struct RankedGames {
    sort: Sort,
    /// The rank below which games are collected, or `None` if games of any rank are.
    after: Option<Rank>,
    /// The number of all games that pass the filters.
    total: u64,
    best: Best<Rank>,
}

impl RankedGames {
    /// Creates a collector of the `wanted` games with the highest ranks in the order `sort`. If `after` is given,
    /// only games with a lower rank than `after` are collected.
    fn new(sort: Sort, wanted: usize, after: Option<Rank>) -> RankedGames {
        RankedGames {
            sort,
            after,
            total: 0,
            best: Best::new(wanted),
        }
    }
}

impl Collector for RankedGames {
    fn add_games(
        &mut self,
        source: &OpenIndex,
        _filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        let RankedGames {
            sort, after, best, ..
        } = self;
        self.total += passing.len();
        let offer = |(id, mv)| {
            let rank = rank_of(source, id, mv, *sort);
            if after.is_none_or(|after| rank < after) {
                best.offer(rank);
            }
        };
        // Offers games that are likely to rank high first, so that few of them are replaced.
        match sort {
            Sort::Id => passing.iter().for_each(offer),
            Sort::Recent | Sort::Rating => passing.iter().rev().for_each(offer),
        }
    }

    fn join(&mut self, other: RankedGames) {
        self.total += other.total;
        self.best.join(&other.best);
    }
}

/// Returns the rank (sort key) of a game in a list that is sorted in the order `sort`. `id` is the id of the game in
/// the index `source`, and `mv` is the move that was played in the position of the query.
#[inline]
fn rank_of(source: &OpenIndex, id: u32, mv: BookMove, sort: Sort) -> Rank {
    let summary = source.game(id);
    let game = source.first + u64::from(id);
    match sort {
        Sort::Recent => by_date(&summary, game, mv),
        Sort::Rating => by_rating(&summary, game, mv),
        Sort::Id => by_number(game, mv),
    }
}

/// Returns the rank (sort key) of game `number` in a list that is sorted by game number in ascending order. `mv`, the
/// move that was played in the position of the query, is part of every rank but does not affect the order.
fn by_number(number: u64, mv: BookMove) -> Rank {
    (0, u64::MAX - number, mv)
}

/// Returns one page of a list with one entry for each match, and the number of all games that pass the filters. A match
/// is all games of two players at one event in one year, identified by [`DuplicateGroups::match_hash`].
fn page_of_matches(
    duplicates: &DuplicateGroups,
    filters: &SourceFilters<'_>,
    query: &Query,
    page: &Page,
) -> Result<(u64, Vec<MatchEntry>)> {
    let subjects = [query.line.subject()];
    let wanted = page.skip.saturating_add(page.limit);
    let new = || FirstGames::new(duplicates, page.sort, wanted);
    let FirstGames { total, ranks, .. } = scan(filters, &subjects, new)?;
    let ranks = ranks.into_iter().rev().skip(page.skip);
    let ranks: Vec<(Rank, u64)> = ranks.collect();
    let matches: FxHashMap<u64, u64> = ranks.iter().map(|(_, key)| (*key, 0)).collect();
    let new = || MatchSizes {
        duplicates,
        games: matches.clone(),
    };
    let sizes = scan(filters, &subjects, new)?.games;
    let first = |((_, number, mv), key): (Rank, u64)| {
        let more = sizes[&key].saturating_sub(1);
        (number_of(number, page.sort), mv, more)
    };
    Ok((total, ranks.into_iter().map(first).collect()))
}

/// Counts the games of certain matches, given by the keys of the map `games`. A match is all games of two players at
/// one event.
struct MatchSizes<'a> {
    duplicates: &'a DuplicateGroups,
    /// Maps the hash of each match to its number of games.
    games: FxHashMap<u64, u64>,
}

impl Collector for MatchSizes<'_> {
    fn add_games(
        &mut self,
        source: &OpenIndex,
        _filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        for (id, _) in passing.games {
            let hash = self.duplicates.match_hash(source, *id);
            if let Some(games) = self.games.get_mut(&hash) {
                *games += 1;
            }
        }
    }

    fn join(&mut self, other: Self) {
        for (key, more) in other.games {
            *self.games.entry(key).or_default() += more;
        }
    }
}

/// Collects the first entries of a list that shows one game for each match: the `wanted` matches that rank highest,
/// each with its highest-ranked game. A match is all games of two players at one event.
struct FirstGames<'a> {
    duplicates: &'a DuplicateGroups,
    sort: Sort,
    /// The number of all games that pass the filters.
    total: u64,
    wanted: usize,
    of_match: FxHashMap<u64, Rank>,
    ranks: BTreeSet<(Rank, u64)>,
}

impl<'a> FirstGames<'a> {
    fn new(duplicates: &'a DuplicateGroups, sort: Sort, wanted: usize) -> FirstGames<'a> {
        FirstGames {
            duplicates,
            sort,
            total: 0,
            wanted,
            of_match: FxHashMap::default(),
            ranks: BTreeSet::new(),
        }
    }

    /// Adds a game if its rank, the sort key of the list, is high enough. `key` computes the hash of the game's match.
    /// This takes time, so `key` is called only if the game may be added.
    fn offer(&mut self, rank: Rank, key: impl FnOnce() -> u64) {
        let is_full = self.ranks.len() == self.wanted;
        if is_full && self.ranks.first().is_none_or(|last| rank < last.0) {
            return;
        }
        let key = key();
        if let Some(known) = self.of_match.get(&key).copied() {
            if rank <= known {
                return;
            }
            self.ranks.remove(&(known, key));
        } else if is_full && let Some((_, last)) = self.ranks.pop_first() {
            self.of_match.remove(&last);
        }
        self.of_match.insert(key, rank);
        self.ranks.insert((rank, key));
    }
}

impl Collector for FirstGames<'_> {
    fn add_games(
        &mut self,
        source: &OpenIndex,
        _filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        self.total += passing.len();
        let duplicates = self.duplicates;
        for (id, mv) in passing.iter().rev() {
            let rank = rank_of(source, id, mv, self.sort);
            self.offer(rank, || duplicates.match_hash(source, id));
        }
    }

    fn join(&mut self, other: Self) {
        self.total += other.total;
        for (rank, key) in other.ranks {
            self.offer(rank, || key);
        }
    }
}

/// A game in an answer of the explorer, with the move that was played in the position of the query.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlayedGame {
    /// The move in UCI notation, castling as king takes rook; `None` if the game ended in the position, or if its next
    /// move is not indexed.
    pub uci: Option<String>,
    /// Whether the game continues, but its next move is not indexed, because the index was made with `--max-ply`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unindexed: bool,
    /// The description of the game.
    #[serde(flatten)]
    pub game: GameInfo,
}

/// A description of a game: its id, players, date and result.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GameInfo {
    /// The number of the game in the explorer. The games of all sources are numbered consecutively from 0.
    #[serde(skip)]
    pub number: u64,
    /// The game's Lichess id or, if it has none or shares it with another game, its number with eight digits.
    pub id: String,
    /// The winner, or `None` for a draw or a game without a result.
    #[serde(serialize_with = "as_color")]
    #[cfg_attr(test, schemars(with = "Option<json::ColorName>"))]
    pub winner: Option<Color>,
    /// The speed of the game; `None` in [`View::Masters`](super::View::Masters).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Whether the game was rated; `None` in [`View::Masters`](super::View::Masters).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The player with Black.
    pub black: Player,
    /// The player with White.
    pub white: Player,
    /// The year, 0 if unknown.
    pub year: u16,
    /// Year and month, `2006-01`, if both are known.
    pub month: Option<String>,
    /// Whether the game has no result. This distinguishes it from a draw, which has no winner either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
}

/// A player in one game, with the name, the rating at the time and the title.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Player {
    /// The name.
    pub name: String,
    /// The rating, 0 if unknown.
    pub rating: u16,
    /// The player's title, or `None` if it is unknown. Titles are known only if the text of the game has been read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Returns a description of game `number`. Unless `view` is [`View::Masters`], it also contains the speed and whether
/// the game was rated.
pub(super) fn game_info(sources: &Sources, number: u64, view: View) -> Result<GameInfo> {
    let (source, id) = sources.locate(number)?;
    let summary = source.game(id);
    let [white, black] = source.rows.players[id as usize];
    let (speed, mode) = summary.speed_and_mode();
    let date = summary.date();
    let of_masters = view == View::Masters;
    Ok(GameInfo {
        number,
        id: match source.rows.site_id(id) {
            Some(id) if !is_number(&id.text()) && sources.find(id)?.is_some() => id.text(),
            _ => format!("{number:08}"),
        },
        winner: summary.winner(),
        speed: (!of_masters).then_some(speed),
        mode: (!of_masters).then_some(mode),
        black: Player {
            name: source.name(black)?,
            rating: summary.elo_of(Color::Black),
            title: None,
        },
        white: Player {
            name: source.name(white)?,
            rating: summary.elo_of(Color::White),
            title: None,
        },
        year: date.year().unwrap_or(0),
        month: date
            .year()
            .zip(date.month())
            .map(|(year, month)| format!("{year:04}-{month:02}")),
        unfinished: !summary.has_result(),
    })
}

/// Returns a description of each game in `games`, with its move. An element of `games` is the number of a game, and the
/// move that was played in the position of the query.
pub(super) fn played_games(
    sources: &Sources,
    view: View,
    games: impl IntoIterator<Item = (u64, BookMove)>,
) -> Result<Vec<PlayedGame>> {
    games
        .into_iter()
        .map(|(number, mv)| {
            let (source, id) = sources.locate(number)?;
            Ok(PlayedGame {
                unindexed: mv == BookMove::NONE && source.is_cut(id),
                uci: (mv != BookMove::NONE).then(|| mv.to_string()),
                game: game_info(sources, number, view)?,
            })
        })
        .collect()
}

/// Returns `true` if `id` consists only of digits, so that it is the number of a game instead of a Lichess id.
pub(super) fn is_number(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_digit())
}

/// Serializes a color as the string `white` or `black`, and `None` as `null`.
fn as_color<S: serde::Serializer>(color: &Option<Color>, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&color.map(json::ColorName::from), serializer)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Explorer, Line, View},
        *,
    };
    use crate::{MakeBook, chess::position::Variant, games::pgn::Input};

    #[test]
    fn the_first_games_of_the_first_matches_are_kept() {
        let rank = |rank| (rank, rank, BookMove::NONE);
        let duplicates = DuplicateGroups::default();
        let mut firsts = FirstGames::new(&duplicates, Sort::Id, 2);
        for (key, number) in [(1, 5), (2, 4), (3, 3), (3, 9), (1, 1), (2, 8), (1, 6)] {
            firsts.offer(rank(number), || key);
        }
        let kept: Vec<_> = firsts
            .ranks
            .iter()
            .map(|(rank, key)| (rank.0, *key))
            .collect();
        assert_eq!(kept, [(8, 2), (9, 3)]);
        assert_eq!(firsts.of_match.len(), 2);
        let mut none = FirstGames::new(&duplicates, Sort::Id, 0);
        none.offer(rank(1), || 1);
        assert!(none.ranks.is_empty());
    }

    #[test]
    fn pages_are_parts_of_one_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let input = Input::file("data/famous.pgn");
        let run = MakeBook::new([input]).explorer(&path);
        run.run().unwrap();
        let explorer = Explorer::open([(String::new(), path)]).unwrap();
        let line = Line::parse(Variant::Standard, None, "").unwrap();
        let query = Query::new(line, View::Lichess);
        let numbers = |page: Page| {
            let (total, numbers) = explorer.game_numbers(&query, &page).unwrap();
            let numbers = numbers.map(|game| game.map(|(number, _)| number));
            (total, numbers.collect::<Result<Vec<u64>>>().unwrap())
        };
        for sort in [Sort::Id, Sort::Recent, Sort::Rating] {
            let page = |skip, limit| {
                numbers(Page {
                    skip,
                    limit,
                    sort,
                    fold_matches: false,
                })
            };
            let (total, all) = page(0, usize::MAX);
            assert_eq!(all.len() as u64, total);
            let month = |number: &u64| {
                let game = explorer.game(*number).unwrap();
                (game.year, game.month)
            };
            match sort {
                Sort::Id => assert!(all.is_sorted()),
                Sort::Recent => assert!(all.iter().rev().is_sorted_by_key(month)),
                Sort::Rating => {}
            }
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), all.len());
            for (skip, limit) in [(0, 0), (0, 1), (0, 7), (3, 9), (7, 7), (20, 20), (40, 99)] {
                let end = all.len().min(skip + limit);
                assert_eq!(
                    page(skip, limit).1,
                    all[skip.min(end)..end],
                    "{sort} {skip} {limit}"
                );
                assert_eq!(page(skip, limit).0, total);
            }
            assert!(page(usize::MAX, usize::MAX).1.is_empty());
        }
    }
}

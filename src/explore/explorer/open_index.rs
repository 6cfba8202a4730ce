//! The indexes that an explorer has opened, which are its sources. The data of all games is held in memory. Names and
//! lists of games are read from the file when they are needed.
//!
//! The games are stored in [columns](GameColumns), so that a filter reads only the columns that it needs. Dates are
//! encoded as numbers, which are fast to compare: bits 0 to 4 of a date number are the day, bits 5 to 8 the month, and
//! the higher bits the year. An unknown part is 0.

use std::{fs, path::Path, sync::OnceLock, time::SystemTime};

use shakmaty::Color;

use super::found_games::FoundGames;
use crate::{
    chess::position::Variant,
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        explorer_index::{
            CountedContents, EcoNumber, GameRow, IndexDescription, ListKey, SiteId,
            count_pages::CountedList,
            game_rows::{ROWS_PER_ENTRY, date_number},
            lists::List,
            results::Month,
        },
        index::{Index, ListLocation, StoredPart},
    },
    games::{
        openings::OpeningNumber,
        pgn::{
            Date, GameResult, Mode, NameMatch, RatingGroup, Speed, doubled_mean, normalized,
            rated_event,
        },
        results::Measured,
        selection::Selection,
    },
};

/// An open index of an explorer. It contains either individual games, whose data take 42 bytes each in memory, or
/// counts, which are sums of results without games.
#[derive(Debug)]
pub(super) struct OpenIndex {
    pub name: String,
    pub index: Index,
    pub contents: IndexDescription,
    /// The description of the counts, or `None` if the index contains individual games.
    pub counted: Option<CountedContents>,
    /// The modification time of the index directory, or `None` if the file system does not provide it.
    pub changed: Option<SystemTime>,
    /// The number of the first game, which equals the number of games in all preceding indexes.
    pub first: u64,
    pub rows: GameColumns,
    rated_names: OnceLock<RatedNames>,
    /// The games that earlier queries about the board have found in this index.
    pub found_games: FoundGames,
}

/// The event names that say whether their games are rated. Each name is stored as the number that the index uses for
/// it, in ascending order.
#[derive(Debug)]
pub(super) struct RatedNames {
    /// The names that say that games are rated.
    pub rated: Vec<u32>,
    /// The names that say whether games are rated, including those that say that they are not.
    pub known: Vec<u32>,
}

impl OpenIndex {
    pub(super) fn open(name: String, path: &Path, first: u64) -> Result<OpenIndex> {
        let index = Index::open(path)?;
        let counted = index.counted()?;
        let contents = match &counted {
            Some(counted) => Some(IndexDescription {
                paging: counted.paging(),
                positions: counted.positions,
                items: counted.rows,
                names: 0,
                max_ply: counted.max_ply,
            }),
            None => index.contents(),
        };
        let contents = contents.ok_or_else(|| {
            Error::file(
                path,
                Diagnosis::new("this index is for front-ends, but an explorer's index is needed")
                    .advise(
                        Advice::option("make an explorer's index with {}", "explorer")
                            .of_command("make-book"),
                    ),
            )
        })?;
        // Bounds the initial allocation, because a damaged index may claim any number of games.
        let likely = (index.game_count() as usize).min(1 << 24);
        let mut rows = GameColumns::with_capacity(likely);
        for number in 0..index.game_count().div_ceil(ROWS_PER_ENTRY) {
            for row in index.row_entry(number)? {
                rows.push(&row);
            }
        }
        Ok(OpenIndex {
            name,
            contents,
            counted,
            changed: fs::metadata(path).and_then(|data| data.modified()).ok(),
            first,
            rows,
            index,
            rated_names: OnceLock::new(),
            found_games: FoundGames::default(),
        })
    }

    /// Returns the number of games from which the index was built, including games whose positions are not indexed.
    /// Returns `None` if another program made the counts and did not state this number.
    pub(super) fn counted_games(&self) -> Option<u64> {
        match &self.counted {
            Some(counted) => counted.games,
            None => Some(self.games()),
        }
    }

    /// Returns the number of games whose positions are not indexed, because they were rejected or did not pass a filter
    /// when the index was built.
    pub(super) fn not_counted(&self) -> u64 {
        let ids = 0..self.games() as u32;
        ids.filter(|id| !self.game(*id).traits.is_indexed()).count() as u64
    }

    /// Returns the threshold below which rare positions were removed from an index of counts. A position was removed if
    /// fewer moves than this number were played in it, over all games. Returns `None` if no positions were removed, or
    /// if this is an index of games.
    pub(super) fn min_game(&self) -> Option<u64> {
        let counted = self.counted.as_ref()?;
        Some(counted.min_game).filter(|fewest| *fewest > 1)
    }

    /// Returns the maximum number of half-moves that were counted in each game, from its start. Returns `None` if all
    /// half-moves were counted.
    pub(super) fn max_ply(&self) -> Option<usize> {
        self.contents.max_ply
    }

    /// Returns `true` if the positions after `plies` half-moves of a game are indexed.
    pub(super) fn has_ply(&self, plies: usize) -> bool {
        self.max_ply().is_none_or(|max_ply| plies <= max_ply)
    }

    /// Returns `true` if game `id` continues after its last indexed half-move, because the index was made with
    /// `--max-ply`. The game does not end in its last indexed position, but its next move is unknown.
    pub(super) fn is_cut(&self, id: u32) -> bool {
        !self.has_ply(self.rows.plies[id as usize].into())
    }

    /// Returns the number of games in the index. An index of counts contains no games.
    pub(super) fn games(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the summary of game `id`.
    ///
    /// # Panics
    ///
    /// Panics if no game of the index has this id.
    #[inline]
    pub(super) fn game(&self, id: u32) -> GameSummary {
        self.rows.get(id).expect("the source has the game")
    }

    /// Returns the values of game `id` that are averaged over the games with a move, namely the rating of `mover`, the
    /// side that made the move.
    #[inline]
    pub(super) fn measured(&self, id: u32, mover: Color) -> Measured {
        let [white, black] = self.rows.elo[id as usize];
        [mover.fold_wb(white, black)]
    }

    /// Returns the name of a player or an event that the index stores under `number`.
    pub(super) fn name(&self, number: u32) -> Result<String> {
        self.index.name(number).map(String::from)
    }

    /// Returns the numbers of all names of players and events that match `name`, in ascending order. `how` says whether
    /// the whole name must match or only a part of it.
    pub(super) fn numbers_of(&self, name: &str, how: NameMatch) -> Result<Vec<u32>> {
        let wanted = normalized(name);
        if how == NameMatch::Part {
            let mut numbers = Vec::new();
            self.for_each_name(|number, name| {
                if how.matches(&normalized(name), &wanted) {
                    numbers.push(number);
                }
            })?;
            return Ok(numbers);
        }
        let mut numbers = Vec::new();
        for number in self.listed(ListKey::name(&wanted))? {
            // The list may contain another name with the same hash.
            if normalized(&self.name(number)?) == wanted {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// Returns the event names that tell whether their games are rated, such as `Rated blitz game`. The first call
    /// reads all names of the index; later calls return the same list.
    pub(super) fn rated_names(&self) -> Result<&RatedNames> {
        if let Some(known) = self.rated_names.get() {
            return Ok(known);
        }
        let (mut rated, mut known) = (Vec::new(), Vec::new());
        self.for_each_name(|number, name| {
            if let Some(is_rated) = rated_event(name.as_bytes()) {
                known.push(number);
                if is_rated {
                    rated.push(number);
                }
            }
        })?;
        // Several threads may read the names at the same time, with the same result.
        Ok(self.rated_names.get_or_init(|| RatedNames { rated, known }))
    }

    /// Calls `f` with the number and the text of each name of a player or an event, in ascending order of numbers.
    pub(super) fn for_each_name(&self, f: impl FnMut(u32, &str)) -> Result<()> {
        self.index.for_each_name(f)
    }

    /// Returns the counts of the position with the key `subject`: the results of the games with each move. Returns
    /// `None` if the index does not contain the position, or if it contains games instead of counts.
    pub(super) fn counts(&self, subject: ListKey) -> Result<Option<CountedList>> {
        match &self.counted {
            Some(counted) => self.index.counted_list(counted.paging(), subject),
            None => Ok(None),
        }
    }

    /// Finds the list with the key `subject` in the index, and returns its location. Depending on its key, the list
    /// contains the games that reached a position, the games of a player, the games with a Lichess id, or the numbers
    /// of the spellings of a name.
    pub(super) fn find_list(&self, subject: ListKey) -> Result<ListLocation> {
        self.index.find_list(self.contents.paging, subject)
    }

    /// Calls `f` with the key and the contents of each list in one page of the index, in ascending order of keys. A
    /// page is an entry of the index that contains all lists whose keys lie in some range. `any_key` is any key in this
    /// range; the page need not contain a list with this key.
    pub(super) fn for_each_list(
        &self,
        any_key: ListKey,
        f: impl FnMut(ListKey, List<'_>) -> Result<()>,
    ) -> Result<()> {
        self.index.for_each_list(self.contents.paging, any_key, f)
    }

    /// Reads the list of games with the key `subject`. A long list is stored in several parts. `location` is the
    /// location of the list, as returned by [`find_list`](OpenIndex::find_list).
    pub(super) fn list(&self, subject: ListKey, location: ListLocation) -> Result<Vec<StoredPart>> {
        self.index.list(subject, location)
    }

    /// Returns the list with the key `subject`. Its elements are ids of games, or numbers by which the index stores
    /// names, in ascending order. Returns an empty vector if the index does not contain this list.
    pub(super) fn listed(&self, subject: ListKey) -> Result<Vec<u32>> {
        self.index.list_ids(self.contents.paging, subject)
    }

    pub(super) fn damaged(&self, problem: &str) -> Error {
        Error::damaged(
            self.index.path(),
            format!("the index is damaged: {problem}; make the index again"),
        )
    }
}

/// The date, the ratings and the traits of a game, which the explorer holds in memory. Traits are properties with
/// few values, such as the result and the speed.
#[derive(Copy, Clone, Debug)]
pub(super) struct GameSummary {
    /// The date number (see [`super::open_index`]), which grows with time.
    pub date: u32,
    pub elo: [u16; 2],
    pub traits: Traits,
}

/// The group number of games without a known rating. It follows the numbers of the real rating groups.
pub(super) const UNRATED: usize = RatingGroup::COUNT;

/// The result, speed, mode and rating group of a game, by which filters select games.
pub(super) struct TraitValues {
    pub result: GameResult,
    pub speed: Speed,
    pub mode: Mode,
    /// The rating group, or `None` if no rating is known.
    pub group: Option<RatingGroup>,
}

/// The traits of a game (properties with few values), packed into 16 bits.
///
/// Bits 0-1 contain the result, 2-4 the speed, 5 the mode (rated or casual), and 6-9 the rating group or [`UNRATED`].
/// Bit 10 says whether the positions of the game are indexed. Bits 11-14 contain the index of the variant plus one, or
/// 0 if the variant is unknown. Bit 15 says whether the date is the day on which the event began.
#[derive(Copy, Clone, Debug)]
pub(super) struct Traits(u16);

impl Traits {
    /// The number of values that the low 10 bits of traits can have. Filters look only at these bits.
    pub(super) const COUNT: usize = 1 << 10;

    fn new(row: &GameRow) -> Traits {
        let group = row.group().map_or(UNRATED, RatingGroup::number) as u16;
        let variant = row.variant.map_or(0, |variant| variant as u16 + 1);
        let result = row.result as u16;
        let counts = u16::from(row.counts);
        Traits(
            result
                | (row.speed as u16) << 2
                | (row.mode as u16) << 5
                | group << 6
                | counts << 10
                | variant << 11
                | u16::from(row.has_event_date) << 15,
        )
    }

    /// Returns an iterator that decodes every number from 0 (inclusive) to [`COUNT`](Traits::COUNT) (exclusive), in
    /// ascending order. The item is `None` if the number does not encode valid traits.
    pub(super) fn all() -> impl Iterator<Item = Option<TraitValues>> {
        (0..Traits::COUNT as u16).map(|number| Traits(number).parts())
    }

    /// Returns the low 10 bits, which encode the result, speed, mode and rating group. Use the value as an index into
    /// tables of the length [`COUNT`](Traits::COUNT).
    #[inline]
    pub(super) fn filter_index(self) -> usize {
        usize::from(self.0) % Traits::COUNT
    }

    /// Returns `true` if the positions of the game are indexed. Only such games count in answers.
    pub(super) fn is_indexed(self) -> bool {
        self.0 >> 10 & 1 == 1
    }

    /// Returns the variant of the game, or `None` if it is unknown.
    pub(super) fn variant(self) -> Option<Variant> {
        let number = usize::from(self.0 >> 11 & 15).checked_sub(1)?;
        Variant::ALL.get(number).copied()
    }

    /// Returns the index of the game's speed in [`Speed::ALL`].
    #[inline]
    pub(super) fn speed(self) -> usize {
        usize::from(self.0 >> 2 & 7)
    }

    /// Returns the number of the game's rating group, or [`UNRATED`] if both ratings are unknown.
    #[inline]
    pub(super) fn group(self) -> usize {
        usize::from(self.0 >> 6 & 15)
    }

    /// Returns the result of the game.
    #[inline]
    pub(super) fn result(self) -> GameResult {
        GameResult::ALL[usize::from(self.0 & 3)]
    }

    fn parts(self) -> Option<TraitValues> {
        let group = match self.group() {
            UNRATED => None,
            number => Some(RatingGroup::all().nth(number)?),
        };
        Some(TraitValues {
            result: self.result(),
            speed: *Speed::ALL.get(self.speed())?,
            mode: Mode::ALL[usize::from(self.0 >> 5 & 1)],
            group,
        })
    }
}

impl GameSummary {
    /// Returns the result of the game.
    #[inline]
    pub(super) fn result(&self) -> GameResult {
        self.traits.result()
    }

    /// Returns `true` if the game has a result, and `false` if it is unfinished (`*`).
    #[inline]
    pub(super) fn has_result(&self) -> bool {
        self.result() != GameResult::Unknown
    }

    pub(super) fn winner(&self) -> Option<Color> {
        self.result().winner()
    }

    /// Returns the speed of the game and its mode, which is rated or casual.
    pub(super) fn speed_and_mode(&self) -> (Speed, Mode) {
        let asked = self.traits.parts().expect("the traits were made of these");
        (asked.speed, asked.mode)
    }

    /// Returns the last day on which the game may have been played, as a date number (see [`date_number`]). If only the
    /// first day of its event is known, the game may have been played at any later time, and the result is `u32::MAX`.
    pub(super) fn last_day(&self) -> u32 {
        if self.has_event_date() {
            u32::MAX
        } else {
            latest(self.date)
        }
    }

    pub(super) fn date(&self) -> Date {
        date_of_number(self.date)
    }

    /// Returns `true` if the date of the game is the first day of its event.
    pub(super) fn has_event_date(&self) -> bool {
        self.traits.0 >> 15 == 1
    }

    /// Returns the year of the game, or 0 if it is unknown.
    #[inline]
    pub(super) fn year(&self) -> u16 {
        (self.date >> 9) as u16
    }

    /// Returns the year and month of the game. Parts that are unknown are 0.
    #[inline]
    pub(super) fn month(&self) -> Month {
        Month::new(self.year(), (self.date >> 5 & 15) as u8).unwrap_or_default()
    }

    /// Returns twice the mean of the players' known ratings, because the mean itself may not be an integer. Returns 0
    /// if both ratings are unknown.
    #[inline]
    pub(super) fn doubled_rating(&self) -> u32 {
        doubled_mean(self.elo)
    }

    #[inline]
    pub(super) fn elo_of(&self, color: Color) -> u16 {
        color.fold_wb(self.elo[0], self.elo[1])
    }
}

/// The games of an index in memory, at 42 bytes per game. Each property is stored in a column that is indexed by game
/// id.
#[derive(Default, Debug)]
pub(super) struct GameColumns {
    /// The date numbers (see [`GameSummary::date`]).
    pub dates: Vec<u32>,
    pub elo: Vec<[u16; 2]>,
    pub traits: Vec<Traits>,
    pub plies: Vec<u16>,
    pub eco: Vec<EcoNumber>,
    pub openings: Vec<OpeningNumber>,
    /// The name numbers of White and Black.
    pub players: Vec<[u32; 2]>,
    pub events: Vec<u32>,
    /// The Lichess ids as numbers, 0 for games without an id.
    site_ids: Vec<[u8; 6]>,
    /// A hash of the starting position and all moves of each game, as in [`GameRow::moves`].
    pub moves: Vec<u64>,
}

impl GameColumns {
    /// Creates empty columns with capacity for at least `games` games.
    pub(super) fn with_capacity(games: usize) -> GameColumns {
        let mut all = GameColumns::default();
        all.dates.reserve_exact(games);
        all.elo.reserve_exact(games);
        all.traits.reserve_exact(games);
        all.plies.reserve_exact(games);
        all.eco.reserve_exact(games);
        all.openings.reserve_exact(games);
        all.players.reserve_exact(games);
        all.events.reserve_exact(games);
        all.site_ids.reserve_exact(games);
        all.moves.reserve_exact(games);
        all
    }

    pub(super) fn push(&mut self, row: &GameRow) {
        // Clears the day if the month is unknown.
        self.dates.push(earliest(date_number(row.date)));
        self.elo.push([row.white_elo, row.black_elo]);
        self.traits.push(Traits::new(row));
        self.plies.push(row.plies);
        self.eco.push(row.eco);
        self.openings.push(row.opening);
        self.players.push([row.white, row.black]);
        self.events.push(row.event);
        let site = row.site_id.map_or(0, SiteId::number).to_le_bytes();
        self.site_ids
            .push(site[..6].try_into().expect("six of eight"));
        self.moves.push(row.moves);
    }

    /// Returns the number of games.
    pub(super) fn len(&self) -> usize {
        self.dates.len()
    }

    /// Returns the summary of game `id`, or `None` if no game has this id.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<GameSummary> {
        let at = id as usize;
        Some(GameSummary {
            date: *self.dates.get(at)?,
            elo: *self.elo.get(at)?,
            traits: *self.traits.get(at)?,
        })
    }

    /// Returns the Lichess id of game `id`, or `None` if the game has none.
    pub(super) fn site_id(&self, id: u32) -> Option<SiteId> {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.site_ids[id as usize]);
        SiteId::of_number(u64::from_le_bytes(bytes))
    }

    /// Returns the earliest and the latest year in which a game was played, or `None` if no year is known.
    pub(super) fn years(&self) -> Option<[u16; 2]> {
        let dates = self.dates.iter();
        let years = dates.filter_map(|date| date_of_number(*date).year());
        Some([years.clone().min()?, years.max()?])
    }
}

/// An inclusive range of days, whose bounds are date numbers as returned by [`date_number`].
///
/// A date without a known day or month lies in the range if any of its possible days does. For example, the date 1999
/// lies in a range that begins in May 1999.
#[derive(Copy, Clone, Debug)]
pub(super) struct DateRange {
    first: u32,
    last: u32,
    /// The smallest date number in the range, which is 0 if games without a known year also pass.
    smallest: u32,
}

/// The smallest date number with a known year. See [`date_number`].
const FIRST_YEAR: u32 = 1 << 9;

impl DateRange {
    pub(super) fn new(filters: &Selection) -> DateRange {
        let (since, until) = (filters.since, filters.until);
        DateRange {
            first: since.map_or(0, |date| earliest(date_number(date))),
            last: until.map_or(u32::MAX, |date| latest(date_number(date))),
            smallest: if filters.require_date { FIRST_YEAR } else { 0 },
        }
    }

    /// Returns `true` if a game with the date number `date` may have been played in the range. If parts of the date are
    /// unknown, one possible day in the range is enough. See [`date_number`].
    #[inline]
    pub(super) fn contains(self, date: u32) -> bool {
        (self.first <= latest(date)) & (earliest(date) <= self.last) & (self.smallest <= date)
    }

    /// Returns `true` if the range contains every date, known or unknown.
    pub(super) fn is_all(self) -> bool {
        self.first == 0 && self.last == u32::MAX && self.smallest == 0
    }
}

/// Returns the earliest day on which a game with the date `date` may have been played, or 0 if the year is unknown. The
/// argument and the result are date numbers as returned by [`date_number`].
#[inline]
pub(super) fn earliest(date: u32) -> u32 {
    let has_year = mask(date >> 9 > 0);
    let has_month = mask(date >> 5 & 15 > 0);
    date & has_year & (has_month | !0x1ff)
}

/// Returns the latest day on which a game with the date `date` may have been played. The argument and the result are
/// date numbers as returned by [`date_number`]. If the year is unknown, returns `u32::MAX`.
#[inline]
pub(super) fn latest(date: u32) -> u32 {
    let has_year = mask(date >> 9 > 0);
    let has_month = mask(date >> 5 & 15 > 0);
    let has_day = mask(date & 31 > 0);
    date | !has_year | !has_month & 0x1ff | !has_day & 31
}

/// Formats a date number as `2006-01-02`, or as `2006-01` or `2006` if the rest of the date is unknown. Returns
/// `None` if the year is unknown.
pub(super) fn text_of_number(number: u32) -> Option<String> {
    let (year, month, day) = (number >> 9, number >> 5 & 15, number & 31);
    Some(match (year, month, day) {
        (0, ..) => return None,
        (_, 0, _) => format!("{year:04}"),
        (_, _, 0) => format!("{year:04}-{month:02}"),
        _ => format!("{year:04}-{month:02}-{day:02}"),
    })
}

pub(super) fn date_of_number(number: u32) -> Date {
    Date::new(
        (number >> 9) as u16,
        (number >> 5 & 15) as u8,
        (number & 31) as u8,
    )
}

/// Returns a bit mask with all bits set if `is_true`, and with no bits set otherwise. Callers use the mask to avoid
/// branches.
#[inline]
fn mask(is_true: bool) -> u32 {
    u32::from(is_true).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dates() -> impl Strategy<Value = Date> {
        (0..3u16, 0..4u8, 0..4u8).prop_map(|(year, month, day)| Date::new(year, month, day))
    }

    proptest! {
        #[test]
        fn unknown_parts_decide_nothing(
            date in dates(),
            since in proptest::option::of(dates()),
            until in proptest::option::of(dates()),
            require_date: bool,
        ) {
            let range = DateRange::new(&Selection { since, until, require_date, ..Selection::default() });
            let passes = (!require_date || date.year().is_some())
                && since.is_none_or(|since| !date.is_before(since))
                && until.is_none_or(|until| !until.is_before(date));
            prop_assert_eq!(range.contains(date_number(date)), passes);
            prop_assert!(passes || !range.is_all());
        }
    }
}

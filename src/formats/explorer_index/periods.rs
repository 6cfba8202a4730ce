//! Encodes the results of a position with very many games or rows by period: all time, each year and each month. If the
//! filters of a query select whole [periods](Period) and [classes](super::results::Class), these entries answer the
//! query, and the games need not be read.
//!
//! In an index of games, a position with more than [`MIN_SUMMED_GAMES`] games has an entry for each period with games.
//! In an index of counts, a position has such entries if it has too many rows for a page.
//!
//! | part | encoding |
//! |---|---|
//! | the entry of all time begins with | varint n; n times a year (2 bytes, ascending) and its months with games (2 bytes: bit 0 for games of an unknown month, bits 1 to 12) |
//! | then, in an index of counts | the rows of the period, see [`results`](super::results) |
//! | then, in an index of games | varint: the number of bytes of the rows; the rows; for each class with games that continue from the position, ascending: its number (1 byte), varint g, and g games, ascending |
//! | a game | varint: the id minus the previous id minus 1 (for the first game of a class, the id), times 2^b, plus the index of its move among the m different moves of the rows, where b is the least number of bits that m - 1 fits into |
//!
//! The number of a class is six times the number of its rating group, plus the number of its speed. The group after the
//! last one contains the games without a known rating. The move 0 means that the games end in the position. The listed
//! games of a class include its [`TOP_GAMES`] games with the highest ratings and its [`RECENT_GAMES`] newest games,
//! except games that end in the position. Numbers of two bytes are little-endian.
//!
//! `ListResults` adds up the games of a list, and `push_periods` writes the entries.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    COUNTS, GameRow, LISTS, ListKey,
    best::Best,
    bits::{BitReader, BitWriter, bits_for},
    game_rows::date_number,
    games::{RowReader, StoredGames},
    list_record::{ListItem, is_of_position},
    period_key,
    results::{
        Class, MAX_ROWS, Month, Months, Period, ResultRow, YearMonths, put_moves, take_moves,
    },
};
use crate::{
    chess::position::BookMove,
    error::Result,
    formats::{
        fork_index::entries::Entries,
        leveldb::{put_varint, take_size, take_varint},
    },
};

/// The number of games above which an index stores sums of a position's results for each period (all time, each year
/// and each month). For a position with fewer games, each query adds up the results itself, which takes little time.
pub const MIN_SUMMED_GAMES: usize = 1 << 15;

/// The number of highest-rated games that are stored for each class (speed and rating group) of a period. The explorer
/// never shows more top games than this.
pub const TOP_GAMES: usize = 15;

/// The number of newest games that are stored for each class (speed and rating group) of a period. The explorer shows
/// up to 8 recent games and 4 top games of a position. No game is shown twice, so 4 more newest games are stored than
/// are shown, in case 4 of them are top games.
pub const RECENT_GAMES: usize = 12;

/// A game that the explorer may show in an answer, as a top game or a recent game.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CandidateGame {
    /// The class of the game: its speed and rating group.
    pub class: Class,
    /// The id of the game.
    pub game: u32,
    /// The move that was played in the position.
    pub mv: BookMove,
}

/// The results of a position in a period: all time, a year or a month.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PeriodResults {
    /// The rows, sorted by move and class. They contain no month.
    pub rows: Vec<ResultRow>,
    /// Candidates for the lists of top games and recent games, sorted by class and id. They include the highest-rated
    /// and the newest games of each class. In an index of counts, which contains no games, the vector is empty.
    pub candidates: Vec<CandidateGame>,
}

impl PeriodResults {
    /// Encodes the results of a position in one period (a year or a month), and appends them to `out`. An index of
    /// games also stores candidates: games that the explorer may show as top or recent games. If `of_games` is `false`,
    /// the index contains no games, and no candidates are written.
    ///
    /// # Panics
    ///
    /// Panics if the move of a candidate occurs in no row.
    pub fn write(&self, of_games: bool, out: &mut Vec<u8>) {
        let mut bits = BitWriter::default();
        let moves = self.rows.chunk_by(|a, b| a.mv == b.mv);
        put_moves(&self.rows, Months::NONE, of_games, &mut bits);
        let rows = bits.finish();
        if !of_games {
            out.extend(rows);
            return;
        }
        put_varint(out, rows.len() as u64);
        out.extend(rows);
        let moves: Vec<BookMove> = moves.map(|rows| rows[0].mv).collect();
        let bits = bits_for(moves.len());
        for games in self.candidates.chunk_by(|a, b| a.class == b.class) {
            out.push(games[0].class.number() as u8);
            put_varint(out, games.len() as u64);
            let mut next = 0;
            for CandidateGame { game, mv, .. } in games {
                let at = moves.binary_search(mv).expect("each candidate is in a row");
                put_varint(out, u64::from(game - next) << bits | at as u64);
                next = game.wrapping_add(1);
            }
        }
    }

    /// Decodes the results of a period (all time, a year or a month). `of_games` is `true` for an index of games, and
    /// `false` for an index of counts, which contains no games. Returns `None` if the results are malformed.
    pub fn parse(mut bytes: &[u8], of_games: bool) -> Option<PeriodResults> {
        let mut results = PeriodResults::default();
        let rows = if of_games {
            take_size(&mut bytes).and_then(|len| bytes.split_off(..len))?
        } else {
            std::mem::take(&mut bytes)
        };
        let mut bits = BitReader::new(rows);
        let count = bits.take_golomb(0)?.checked_add(1)?;
        let rows = &mut results.rows;
        take_moves(&mut bits, count, Months::NONE, of_games, MAX_ROWS, rows)?;
        if !bits.is_at_end() {
            return None;
        }
        let moves = rows.chunk_by(|a, b| a.mv == b.mv).map(|rows| rows[0].mv);
        let moves: Vec<BookMove> = moves.collect();
        let bits = bits_for(moves.len());
        let mut last = None;
        while let Some(class) = bytes.split_off_first() {
            let class = Class::of_number(*class)?;
            if last.replace(class).is_some_and(|last| last >= class) {
                return None;
            }
            let mut next = 0u64;
            for _ in 0..take_varint(&mut bytes)? {
                let item = take_varint(&mut bytes)?;
                let game = u32::try_from(next.checked_add(item >> bits)?).ok()?;
                let mv = *moves.get((item & ((1 << bits) - 1)) as usize)?;
                results.candidates.push(CandidateGame { class, game, mv });
                next = u64::from(game) + 1;
            }
        }
        Some(results)
    }
}

/// Encodes the years and months in which a position has games, and appends them to `out`. The index entry with the
/// position's results for all time begins with this list.
pub fn write_years(years: &[YearMonths], out: &mut Vec<u8>) {
    put_varint(out, years.len() as u64);
    for year in years {
        out.extend_from_slice(&year.year.to_le_bytes());
        out.extend_from_slice(&year.months.to_le_bytes());
    }
}

/// Decodes the list of years at the front of `rest`, as encoded by [`write_years`], and removes it from `rest`. Returns
/// `None` if the list is malformed.
pub fn take_years(rest: &mut &[u8]) -> Option<Vec<YearMonths>> {
    let len = take_size(rest)?.checked_mul(4)?;
    let (years, _) = rest.split_off(..len)?.as_chunks::<4>();
    let years: Vec<YearMonths> = years
        .iter()
        .map(|[a, b, c, d]| YearMonths {
            year: u16::from_le_bytes([*a, *b]),
            months: u16::from_le_bytes([*c, *d]),
        })
        .collect();
    let have_months = years.iter().all(|year| (1..1 << 13).contains(&year.months));
    let ascend = years.is_sorted_by(|a, b| a.year < b.year);
    (have_months && ascend).then_some(years)
}

/// Adds up the rows of a position for each period. The periods are all time, each year and each month that occurs in
/// `rows`.
///
/// Returns two lists. The first contains the periods with the sums of their rows: all time, then the years, then the
/// months. The second contains the years, each with its months.
pub fn periods_of(rows: &[ResultRow]) -> (Vec<(Period, Vec<ResultRow>)>, Vec<YearMonths>) {
    let mut periods = Vec::new();
    let mut years: Vec<YearMonths> = Vec::new();
    let reductions: [fn(Month) -> Period; 3] = [
        |_| Period::All,
        |month| Period::Year(month.year()),
        Period::Month,
    ];
    for period_of in reductions {
        let mut rows = rows.to_vec();
        rows.sort_unstable_by_key(|row| (period_of(row.month), row.mv, row.class));
        for rows in rows.chunk_by(|a, b| period_of(a.month) == period_of(b.month)) {
            let period = period_of(rows[0].month);
            let of_kind = rows.chunk_by(|a, b| (a.mv, a.class) == (b.mv, b.class));
            let summed = of_kind.map(|rows| {
                let mut sum = rows[0];
                sum.month = Month::default();
                rows[1..].iter().for_each(|row| sum.add(row));
                sum
            });
            periods.push((period, summed.collect()));
            if let Period::Month(month) = period {
                YearMonths::add_month(&mut years, month);
            }
        }
    }
    (periods, years)
}

/// The maximum number of stored sums of results for one position: one sum for each combination of a move, a month and a
/// class (speed and rating group). The limit bounds the memory for building the index. For a position that would need
/// more sums, the index stores no results by period. Each query then adds up the results itself.
const MAX_MOVE_SUMS: usize = 7 << 15;
/// The maximum number of pairs of a month and a class (speed and rating group) with games of one position. The limit
/// bounds the memory for building the index. For a position with more pairs, the index stores no results by period.
/// Each query then adds up the results itself.
const MAX_MONTH_CLASSES: usize = 1 << 15;

/// The results of the games in one list by period (all time, years and months), while the list is being built. Results
/// are added up only for long lists.
pub(super) enum ListResults<'a> {
    /// The list is still short. Holds its items.
    Few(Vec<ListItem>),
    /// The list is long. Holds the sums of the results so far.
    Sums(Box<ResultAdder<'a>>),
    /// No sums are stored for the list, because it has no moves or its sums are too large.
    None,
}

impl Default for ListResults<'_> {
    fn default() -> Self {
        ListResults::Few(Vec::new())
    }
}

impl<'a> ListResults<'a> {
    /// Adds the results of the games in `items` to the results of their list. `white_to_move` tells whether White is to
    /// move in the position to which the list belongs. `games` contains the rows of the games, from which the results
    /// are read.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows of the games cannot be read.
    pub(super) fn add(
        &mut self,
        items: &[ListItem],
        white_to_move: bool,
        games: &'a StoredGames,
    ) -> Result<()> {
        if let ListResults::Few(few) = self {
            few.extend_from_slice(items);
            if few.len() <= MIN_SUMMED_GAMES {
                return Ok(());
            }
            let few = std::mem::take(few);
            if !few
                .iter()
                .any(|(_, mv)| is_of_position(*mv) && *mv != BookMove::NONE)
            {
                *self = ListResults::None;
                return Ok(());
            }
            let mut adder = ResultAdder::new(white_to_move, games);
            adder.add_all(&few)?;
            *self = ListResults::Sums(Box::new(adder));
        } else if let ListResults::Sums(adder) = self {
            adder.add_all(items)?;
        }
        if let ListResults::Sums(adder) = self
            && adder.is_too_large()
        {
            *self = ListResults::None;
        }
        Ok(())
    }

    /// Appends entries with the list's results by period (all time, years and months) to `entries`. `subject` is the
    /// key of the list. Returns `false` and appends nothing if the index stores no such results for this list, for
    /// example because the list is short.
    pub(super) fn write(self, subject: ListKey, entries: &mut Entries) -> bool {
        match self {
            ListResults::Sums(adder) => {
                adder.write(subject, entries);
                true
            }
            ListResults::Few(_) | ListResults::None => false,
        }
    }
}

/// The results of a position's games in one month and one class (speed and rating group).
#[derive(Clone, Debug)]
struct ClassResults {
    /// The rows, sorted by move.
    rows: Vec<ResultRow>,
    best: BestGames,
}

impl ClassResults {
    fn new() -> ClassResults {
        ClassResults {
            rows: Vec::new(),
            best: BestGames::new(),
        }
    }
}

/// The highest-rated and the newest games of a position in one class (speed and rating group). The explorer selects the
/// top games and the recent games of its answers from them.
#[derive(Clone, Debug)]
struct BestGames {
    /// The games with the highest ratings. Each tuple contains twice the mean of the known ratings, the date, the id
    /// and the move.
    top: Best<(u32, u32, u32, BookMove)>,
    /// The newest games. Each tuple contains the date, the id and the move.
    recent: Best<(u32, u32, BookMove)>,
}

impl BestGames {
    fn new() -> BestGames {
        BestGames {
            top: Best::new(TOP_GAMES),
            recent: Best::new(RECENT_GAMES),
        }
    }

    /// Adds the games of `other`, which must belong to the same position, speed, rating group and period. Keeps only
    /// as many games as the explorer may show: the highest-rated and the newest ones.
    fn join(&mut self, other: &BestGames) {
        self.top.join(&other.top);
        self.recent.join(&other.recent);
    }

    /// Appends these games, sorted by id, to `candidates`. A game that is both among the highest-rated and among the
    /// newest games is appended once. `class` is the class (speed and rating group) of these games.
    fn add_to(&self, class: Class, candidates: &mut Vec<CandidateGame>) {
        let start = candidates.len();
        let top = self.top.iter().map(|(_, _, game, mv)| (game, mv));
        let recent = self.recent.iter().map(|(_, game, mv)| (game, mv));
        let games = top.chain(recent);
        candidates.extend(games.map(|(game, mv)| CandidateGame { class, game, mv }));
        candidates[start..].sort_unstable();
        candidates.dedup();
    }
}

/// An accumulator that adds up the results of one position by month and class (speed and rating group).
pub(super) struct ResultAdder<'a> {
    white_to_move: bool,
    rows: RowReader<'a>,
    months: FxHashMap<(Month, Class), ClassResults>,
    /// The number of rows in `months`.
    rows_of_months: usize,
    /// The number of entries of `months` with at least one game that did not end in the position.
    classes: usize,
}

impl<'a> ResultAdder<'a> {
    /// Creates an accumulator without games. `white_to_move` tells whether White is to move in the position. `games`
    /// contains the rows of all games of the index.
    fn new(white_to_move: bool, games: &'a StoredGames) -> ResultAdder<'a> {
        ResultAdder {
            white_to_move,
            rows: games.row_reader(),
            months: FxHashMap::default(),
            rows_of_months: 0,
            classes: 0,
        }
    }

    /// Adds the results of the games in `items`, which are items of the position's list of games.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows of the games cannot be read.
    fn add_all(&mut self, items: &[ListItem]) -> Result<()> {
        for (id, mv) in items {
            // Items of the lists of players and names are not games of a position.
            if is_of_position(*mv) {
                let row = self.rows.row(*id)?;
                self.add(*id, *mv, &row);
            }
        }
        Ok(())
    }

    /// Adds the result of game `id` to the sums of the position. `mv` is the move that was played in the position.
    /// `row` contains data about the game, such as its date and result.
    fn add(&mut self, id: u32, mv: BookMove, row: &GameRow) {
        let month = Month::of(row.date);
        let class = Class::new(row.speed, row.group());
        let rating = if self.white_to_move {
            row.white_elo
        } else {
            row.black_elo
        };
        let results = self.months.entry((month, class));
        let results = results.or_insert_with(ClassResults::new);
        let rows = &mut results.rows;
        let found = rows.binary_search_by_key(&mv, |row| row.mv);
        let at = found.unwrap_or_else(|at| {
            rows.insert(at, ResultRow::new(mv, class, month));
            self.rows_of_months += 1;
            at
        });
        let sum = &mut rows[at];
        sum.results.add(row.result);
        sum.means.add([rating]);
        sum.game = Some(id);
        if mv != BookMove::NONE {
            let (best, date) = (&mut results.best, date_number(row.date));
            self.classes += usize::from(best.recent.iter().next().is_none());
            best.top.offer((row.doubled_rating(), date, id, mv));
            best.recent.offer((date, id, mv));
        }
    }

    /// Returns `true` if the results of the position by period are too large to be stored in the index. This is the
    /// case if there are more than [`MAX_MOVE_SUMS`] sums, or if the games belong to more than [`MAX_MONTH_CLASSES`]
    /// pairs of a month and a class (speed and rating group).
    fn is_too_large(&self) -> bool {
        self.rows_of_months > MAX_MOVE_SUMS || self.classes > MAX_MONTH_CLASSES
    }

    /// Appends an entry with the position's results in each period (all time, each year and each month) to `entries`.
    /// `subject` is the list key of the position.
    fn write(self, subject: ListKey, entries: &mut Entries) {
        let rows = self.months.values().flat_map(|results| &results.rows);
        let mut rows: Vec<ResultRow> = rows.copied().collect();
        rows.sort_unstable_by_key(ResultRow::sort_key);
        let of_month = |((month, class), results): (_, ClassResults)| {
            ((Period::Month(month), class), results.best)
        };
        let months: BestOfPeriods = self.months.into_iter().map(of_month).collect();
        let years = of_longer_periods(&months);
        let mut best = of_longer_periods(&years);
        best.extend(years.into_iter().chain(months));
        let candidates = |period| {
            let mut candidates = Vec::new();
            let classes = (period, Class::FIRST)..=(period, Class::LAST);
            for ((_, class), best) in best.range(classes) {
                best.add_to(*class, &mut candidates);
            }
            candidates
        };
        push_periods(LISTS, subject, &rows, candidates, entries);
    }
}

/// The highest-rated and the newest games of a position for each period (all time, a year or a month) and class (speed
/// and rating group).
type BestOfPeriods = BTreeMap<(Period, Class), BestGames>;

/// Merges the best games of months to those of years, or of years to those of all time, separately for each class
/// (speed and rating group).
fn of_longer_periods(games: &BestOfPeriods) -> BestOfPeriods {
    let mut longer = BestOfPeriods::new();
    for ((period, class), best) in games {
        let all = longer.entry((period.longer(), *class));
        all.or_insert_with(BestGames::new).join(best);
    }
    longer
}

/// Appends the results of a position to `entries`: one entry for all time, one for each year and one for each month.
/// `subject` is the list key of the position. `rows` contains the position's results by move, class (speed and rating
/// group) and month, and is sorted in this order.
///
/// `prefix` is the prefix of the LevelDB keys: [`LISTS`] for an index of games, [`COUNTS`] for an index of counts.
/// `candidates` returns the games of a period that the explorer may show as top or recent games of the position.
pub(super) fn push_periods(
    prefix: &[u8; 2],
    subject: ListKey,
    rows: &[ResultRow],
    candidates: impl Fn(Period) -> Vec<CandidateGame>,
    entries: &mut Entries,
) {
    let (periods, years) = periods_of(rows);
    for (period, rows) in periods {
        let key = period_key(prefix, subject, period);
        let value = entries.begin(&key);
        if period == Period::All {
            write_years(&years, value);
        }
        let results = PeriodResults {
            rows,
            candidates: candidates(period),
        };
        results.write(prefix != COUNTS, value);
        entries.end(key.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            EcoNumber,
            list_record::{LISTED, NAMED},
            results::strategies::results,
        },
        *,
    };
    use crate::{
        formats::fork_index::entries::Value,
        games::{
            pgn::{Date, GameResult, Mode, Speed},
            results::{Mean, Means, Results},
        },
    };

    /// Generates the results of a period in an index of games.
    fn of_games() -> impl Strategy<Value = PeriodResults> {
        let games = proptest::collection::btree_map(
            (any::<u32>(), 0..9u8),
            any::<prop::sample::Index>(),
            0..30,
        );
        (results(), any::<[u32; 4]>(), games).prop_map(
            |(mut rows, [unfinished, ids, one, _], games)| {
                rows.dedup_by_key(|row| (row.mv, row.class));
                for (at, row) in rows.iter_mut().enumerate() {
                    row.month = Month::default();
                    row.results.unfinished = u64::from(unfinished) % (at as u64 + 1);
                    if one % 3 == at as u32 % 3 {
                        row.results = Results {
                            unfinished: 1,
                            ..Results::default()
                        };
                        row.means = Means(row.means.0.map(|mean| Mean {
                            sum: mean.rounded_down(),
                            games: u64::from(mean.games > 0),
                        }));
                    }
                    row.game = (row.results.games() == 1).then_some(ids.wrapping_add(at as u32));
                }
                let candidate =
                    |((game, class), at): ((u32, u8), prop::sample::Index)| CandidateGame {
                        class: Class::of_number(class).unwrap(),
                        game,
                        mv: at.get(&rows).mv,
                    };
                let mut candidates: Vec<CandidateGame> = games.into_iter().map(candidate).collect();
                candidates.sort_unstable();
                PeriodResults { candidates, rows }
            },
        )
    }

    fn written(results: &PeriodResults, of_games: bool) -> Vec<u8> {
        let mut out = Vec::new();
        results.write(of_games, &mut out);
        out
    }

    proptest! {
        #[test]
        fn results_come_back(results in of_games()) {
            let bytes = written(&results, true);
            prop_assert_eq!(PeriodResults::parse(&bytes, true), Some(results));
        }

        #[test]
        fn years_come_back(years in proptest::collection::btree_map(any::<u16>(), 1..1u16 << 13, 0..30)) {
            let years: Vec<YearMonths> = years.into_iter().map(|(year, months)| YearMonths { year, months }).collect();
            let mut bytes = Vec::new();
            write_years(&years, &mut bytes);
            bytes.push(9);
            let mut rest = &bytes[..];
            prop_assert_eq!(take_years(&mut rest), Some(years));
            prop_assert_eq!(rest, [9]);
        }

        #[test]
        fn periods_have_all_rows(rows in results()) {
            let (periods, years) = periods_of(&rows);
            let mut sums: BTreeMap<(Period, BookMove, Class), ResultRow> = BTreeMap::new();
            for row in &rows {
                for period in [Period::All, Period::Year(row.month.year()), Period::Month(row.month)] {
                    let sum = ResultRow { month: Month::default(), ..*row };
                    sums.entry((period, row.mv, row.class)).and_modify(|all| all.add(row)).or_insert(sum);
                }
            }
            let found: Vec<_> = periods.iter().flat_map(|(period, rows)| {
                rows.iter().map(|row| ((*period, row.mv, row.class), *row))
            }).collect();
            prop_assert_eq!(found, Vec::from_iter(sums));
            for (period, rows) in periods {
                let results = PeriodResults { rows, candidates: Vec::new() };
                let bytes = written(&results, false);
                prop_assert_eq!(PeriodResults::parse(&bytes[..bytes.len() - 1], false), None);
                prop_assert_eq!(PeriodResults::parse(&bytes, false), Some(results));
                let is_listed = match period {
                    Period::All => true,
                    Period::Year(year) => years.iter().any(|known| known.year == year),
                    Period::Month(month) => {
                        years.iter().any(|known| known.year == month.year() && known.months().any(|known| known == month))
                    }
                };
                prop_assert!(is_listed);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, of_games: bool) {
            let _ = take_years(&mut &bytes[..]);
            if let Some(results) = PeriodResults::parse(&bytes, of_games) {
                prop_assert!(results.rows.iter().all(ResultRow::is_possible));
            }
        }
    }

    #[test]
    fn more_rows_than_are_written_are_malformed() {
        let of_moves = |moves: usize| {
            let row = |number: usize| ResultRow {
                results: Results {
                    draws: 1,
                    ..Results::default()
                },
                ..ResultRow::new(
                    BookMove((number / Class::COUNT) as u16),
                    Class::of_number((number % Class::COUNT) as u8).unwrap(),
                    Month::default(),
                )
            };
            let rows = (0..moves * Class::COUNT).map(row).collect();
            let candidates = Vec::new();
            written(&PeriodResults { rows, candidates }, false)
        };
        let most = MAX_ROWS / Class::COUNT;
        assert!(PeriodResults::parse(&of_moves(most), false).is_some());
        assert!(PeriodResults::parse(&of_moves(most + 1), false).is_none());
    }

    const SUBJECT: ListKey = ListKey(77);

    fn rows() -> impl Strategy<Value = GameRow> {
        let date = (prop_oneof![Just(0u16), 2000..2003u16], 0..4u8, 0..3u8);
        let ratings = prop_oneof![Just(0u16), 900..2600u16];
        (date, [ratings.clone(), ratings], 0..4usize, 0..6usize).prop_map(
            |(date, [white_elo, black_elo], result, speed)| GameRow {
                white: 0,
                black: 0,
                event: 0,
                white_elo,
                black_elo,
                date: Date::new(date.0, date.1, date.2),
                has_event_date: false,
                result: [
                    GameResult::Draw,
                    GameResult::WhiteWins,
                    GameResult::BlackWins,
                    GameResult::Unknown,
                ][result],
                speed: Speed::ALL[speed],
                mode: Mode::Rated,
                opening: Default::default(),
                counts: true,
                variant: None,
                eco: EcoNumber::default(),
                plies: 1,
                site_id: None,
                moves: 0,
            },
        )
    }

    /// Returns the rows of the games of a period, added up one by one.
    fn expected(games: &[(u32, BookMove, GameRow)], period: Period) -> Vec<ResultRow> {
        let mut sums: BTreeMap<(BookMove, Class), ResultRow> = BTreeMap::new();
        for (id, mv, row) in games {
            let month = Period::Month(Month::of(row.date));
            if [month, month.longer(), Period::All].contains(&period) {
                let class = Class::new(row.speed, row.group());
                let sum = sums.entry((*mv, class));
                let sum = sum.or_insert(ResultRow::new(*mv, class, Month::default()));
                sum.results.add(row.result);
                sum.means.add([row.black_elo]);
                sum.game = Some(*id);
            }
        }
        let mut sums: Vec<ResultRow> = sums.into_values().collect();
        for sum in sums.iter_mut().filter(|sum| sum.results.games() > 1) {
            sum.game = None;
        }
        sums
    }

    proptest! {
        #[test]
        fn results_are_those_of_the_games(games in proptest::collection::vec((rows(), 0..3u16), 1..120)) {
            let mut kept = StoredGames::new(1 << 20, std::env::temp_dir());
            let mut all = Vec::new();
            let names = ["a", "b", "c"].map(Box::from);
            for (id, (row, mv)) in games.into_iter().enumerate() {
                kept.push(row, &names, &[], &mut Vec::new()).unwrap();
                all.push((id as u32, BookMove(mv), row));
            }
            let items: Vec<ListItem> = all.iter().map(|(id, mv, _)| (*id, *mv)).collect();
            let mut adder = ResultAdder::new(false, &kept);
            adder.add_all(&items).unwrap();
            let mut entries = Entries::default();
            adder.write(SUBJECT, &mut entries);
            let mut found = BTreeMap::new();
            for number in 0..entries.len() {
                let Value::Held(value) = entries.value(number) else { unreachable!("results are held") };
                found.insert(entries.key(number).to_vec(), value);
            }
            let mut rest = found[&period_key(LISTS, SUBJECT, Period::All)];
            let years = take_years(&mut rest).unwrap();
            let mut periods = vec![(Period::All, rest)];
            for year in years {
                let months = year.months().map(Period::Month);
                let of_year = [Period::Year(year.year)].into_iter().chain(months);
                periods.extend(of_year.map(|period| (period, found[&period_key(LISTS, SUBJECT, period)])));
            }
            prop_assert_eq!(periods.len(), found.len());
            for (period, value) in periods {
                let results = PeriodResults::parse(value, true).unwrap();
                prop_assert!(!results.rows.is_empty());
                prop_assert_eq!(results.rows, expected(&all, period));
                let mut newest: BTreeMap<Class, (u32, u32)> = BTreeMap::new();
                for (id, mv, row) in &all {
                    let month = Period::Month(Month::of(row.date));
                    if *mv != BookMove::NONE && [month, month.longer(), Period::All].contains(&period) {
                        let newest = newest.entry(Class::new(row.speed, row.group())).or_default();
                        *newest = (*newest).max((date_number(row.date), *id));
                    }
                }
                for CandidateGame { class, game, mv } in &results.candidates {
                    let (_, played, row) = all[*game as usize];
                    prop_assert_eq!((played, Class::new(row.speed, row.group())), (*mv, *class));
                }
                for (class, (_, id)) in newest {
                    let is_listed = results.candidates.iter().any(|game| (game.class, game.game) == (class, id));
                    prop_assert!(is_listed);
                }
            }
        }
    }

    #[test]
    fn lists_without_moves_have_no_sums() {
        let games = StoredGames::new(1 << 20, std::env::temp_dir());
        for mv in [BookMove::NONE, LISTED, NAMED] {
            let items: Vec<ListItem> = (0..=MIN_SUMMED_GAMES as u32).map(|id| (id, mv)).collect();
            let mut sums = ListResults::default();
            sums.add(&items, false, &games).unwrap();
            assert!(!sums.write(SUBJECT, &mut Entries::default()));
        }
        let mut few = ListResults::default();
        few.add(&[(0, BookMove(9))], false, &games).unwrap();
        assert!(!few.write(SUBJECT, &mut Entries::default()));
    }
}

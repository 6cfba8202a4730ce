//! The results by period of positions with very many games or rows.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    best::Best,
    games::{RowReader, StoredGames},
};
use crate::{
    error::Result,
    index::{
        entries::Entries,
        store::{
            COUNTS, GameRow, LISTS, ListKey,
            game_rows::date_number,
            lists::{Item, is_of_position},
            period_key,
            periods::{Candidate, PeriodResults, RECENT, SUMMED, TOP, periods_of, write_years},
            results::{Class, Month, Period, ResultRow},
        },
    },
    position::BookMove,
};

/// The maximum number of sums for a position, one for each month, class and move. More sums would take too much memory,
/// so for a position with more, no sums are stored.
const MOST_MOVE_SUMS: usize = 7 << 15;
/// The maximum number of pairs of a month and a class (a speed and a rating group) for which the moves of a position
/// are added up. For a position with more pairs, no sums are stored.
const MOST_CLASSES: usize = 1 << 15;

/// The sums of a list. They are only calculated once the list is long enough.
pub(super) enum ListResults<'a> {
    /// The list is short so far. Contains its items.
    Few(Vec<Item>),
    /// The list is long. Contains the sums so far.
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
    /// Adds the next items of the list.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows of the games cannot be read.
    pub(super) fn add(
        &mut self,
        items: &[Item],
        white_to_move: bool,
        games: &'a StoredGames,
    ) -> Result<()> {
        if let ListResults::Few(few) = self {
            few.extend_from_slice(items);
            if few.len() <= SUMMED {
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

    /// Appends the entries of the periods. Returns `true` if there are any.
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

/// The results of the games of a month and a class.
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

/// The games that answers may list.
#[derive(Clone, Debug)]
struct BestGames {
    /// The games with the highest ratings. Each has twice the mean of its known ratings, its date, id and move.
    top: Best<(u32, u32, u32, BookMove)>,
    /// The newest games. Each has its date, id and move.
    recent: Best<(u32, u32, BookMove)>,
}

impl BestGames {
    fn new() -> BestGames {
        BestGames {
            top: Best::new(TOP),
            recent: Best::new(RECENT),
        }
    }

    /// Adds games of the same class.
    fn join(&mut self, other: &BestGames) {
        self.top.join(&other.top);
        self.recent.join(&other.recent);
    }

    /// Appends the games, sorted by id.
    fn add_to(&self, class: Class, candidates: &mut Vec<Candidate>) {
        let start = candidates.len();
        let top = self.top.iter().map(|(_, _, game, mv)| (game, mv));
        let recent = self.recent.iter().map(|(_, game, mv)| (game, mv));
        let games = top.chain(recent);
        candidates.extend(games.map(|(game, mv)| Candidate { class, game, mv }));
        candidates[start..].sort_unstable();
        candidates.dedup();
    }
}

/// Adds up the games of a position by month and class.
pub(super) struct ResultAdder<'a> {
    white_to_move: bool,
    rows: RowReader<'a>,
    months: FxHashMap<(Month, Class), ClassResults>,
    /// The number of rows in `months`.
    rows_of_months: usize,
    /// The number of entries of `months` with a game that continues after the position.
    classes: usize,
}

impl<'a> ResultAdder<'a> {
    /// Creates sums without games.
    fn new(white_to_move: bool, games: &'a StoredGames) -> ResultAdder<'a> {
        ResultAdder {
            white_to_move,
            rows: games.row_reader(),
            months: FxHashMap::default(),
            rows_of_months: 0,
            classes: 0,
        }
    }

    /// Adds the games of items.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows of the games cannot be read.
    fn add_all(&mut self, items: &[Item]) -> Result<()> {
        for (id, mv) in items {
            // A player's games and the numbers of names are not games of the position.
            if is_of_position(*mv) {
                let row = self.rows.row(*id)?;
                self.add(*id, *mv, &row);
            }
        }
        Ok(())
    }

    /// Adds a game in which `mv` was played.
    fn add(&mut self, id: u32, mv: BookMove, row: &GameRow) {
        let month = Month::of(row.date);
        let class = Class::new(row.speed, row.group());
        let rating = match self.white_to_move {
            true => row.white_elo,
            false => row.black_elo,
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
        sum.games[row.result as usize] += 1;
        sum.rated += u64::from(rating > 0);
        sum.ratings += u64::from(rating);
        sum.game = Some(id);
        if mv != BookMove::NONE {
            let (best, date) = (&mut results.best, date_number(row.date));
            self.classes += usize::from(best.recent.iter().next().is_none());
            best.top.offer((row.doubled_rating(), date, id, mv));
            best.recent.offer((date, id, mv));
        }
    }

    /// Returns `true` if the sums exceed [`MOST_MOVE_SUMS`] or [`MOST_CLASSES`].
    fn is_too_large(&self) -> bool {
        self.rows_of_months > MOST_MOVE_SUMS || self.classes > MOST_CLASSES
    }

    /// Appends the entries of all periods.
    fn write(self, subject: ListKey, entries: &mut Entries) {
        let rows = self.months.values().flat_map(|results| &results.rows);
        let mut rows: Vec<ResultRow> = rows.copied().collect();
        rows.sort_unstable_by_key(ResultRow::kind);
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

/// The games that answers may list, by period and class.
type BestOfPeriods = BTreeMap<(Period, Class), BestGames>;

/// Returns the games of the years from those of the months, or the games of all time from those of the years.
fn of_longer_periods(games: &BestOfPeriods) -> BestOfPeriods {
    let mut longer = BestOfPeriods::new();
    for ((period, class), best) in games {
        let all = longer.entry((period.longer(), *class));
        all.or_insert_with(BestGames::new).join(best);
    }
    longer
}

/// Appends the entries of all periods of a position. `of` is [`LISTS`] or [`COUNTS`]. `rows` are the rows of all months,
/// sorted by move, class and month, and `candidates` returns the candidates of a period.
pub(super) fn push_periods(
    of: &[u8; 2],
    subject: ListKey,
    rows: &[ResultRow],
    candidates: impl Fn(Period) -> Vec<Candidate>,
    entries: &mut Entries,
) {
    let (periods, years) = periods_of(rows);
    for (period, rows) in periods {
        let key = period_key(of, subject, period);
        let value = entries.begin(&key);
        if period == Period::All {
            write_years(&years, value);
        }
        let results = PeriodResults {
            rows,
            candidates: candidates(period),
        };
        results.write(of != COUNTS, value);
        entries.end(key.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        index::{
            entries::Value,
            store::{
                EcoNumber,
                lists::{LISTED, NAMED},
                periods::take_years,
            },
        },
        pgn::{Date, GameResult, Mode, Speed},
    };

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
                ending: 0,
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
                sum.games[row.result as usize] += 1;
                sum.rated += u64::from(row.black_elo > 0);
                sum.ratings += u64::from(row.black_elo);
                sum.game = Some(*id);
            }
        }
        let mut sums: Vec<ResultRow> = sums.into_values().collect();
        for sum in sums.iter_mut().filter(|sum| sum.total() > 1) {
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
            let items: Vec<Item> = all.iter().map(|(id, mv, _)| (*id, *mv)).collect();
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
                for Candidate { class, game, mv } in &results.candidates {
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
            let items: Vec<Item> = (0..=SUMMED as u32).map(|id| (id, mv)).collect();
            let mut sums = ListResults::default();
            sums.add(&items, false, &games).unwrap();
            assert!(!sums.write(SUBJECT, &mut Entries::default()));
        }
        let mut few = ListResults::default();
        few.add(&[(0, BookMove(9))], false, &games).unwrap();
        assert!(!few.write(SUBJECT, &mut Entries::default()));
    }
}

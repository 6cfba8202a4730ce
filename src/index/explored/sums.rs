//! Sums of the games of positions that very many games reached.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    best::Best,
    games::{ExploredGames, RowReader},
};
use crate::{
    error::Result,
    index::{
        entries::Entries,
        layout::{
            GameRow, LISTS, Subject,
            played::{Item, is_of_position},
            rows::date_number,
            sums::{
                Class, ClassSums, MoveSum, Period, RECENT, SUMMED, TOP, YearMonths, write_years,
            },
            sums_key,
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
pub(super) enum ListSums<'a> {
    /// The list is short so far. Contains its items.
    Few(Vec<Item>),
    /// The list is long. Contains the sums so far.
    Sums(Box<Adder<'a>>),
    /// No sums are stored for the list, because it has no moves or its sums are too large.
    None,
}

impl Default for ListSums<'_> {
    fn default() -> Self {
        ListSums::Few(Vec::new())
    }
}

impl<'a> ListSums<'a> {
    /// Adds the next items of the list.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows of the games cannot be read.
    pub(super) fn add(
        &mut self,
        items: &[Item],
        white_to_move: bool,
        games: &'a ExploredGames,
    ) -> Result<()> {
        if let ListSums::Few(few) = self {
            few.extend_from_slice(items);
            if few.len() <= SUMMED {
                return Ok(());
            }
            let few = std::mem::take(few);
            if !few
                .iter()
                .any(|(_, mv)| is_of_position(*mv) && *mv != BookMove::NONE)
            {
                *self = ListSums::None;
                return Ok(());
            }
            let mut adder = Adder::new(white_to_move, games);
            adder.add_all(&few)?;
            *self = ListSums::Sums(Box::new(adder));
        } else if let ListSums::Sums(adder) = self {
            adder.add_all(items)?;
        }
        if let ListSums::Sums(adder) = self
            && adder.is_too_large()
        {
            *self = ListSums::None;
        }
        Ok(())
    }

    /// Appends the entries of the sums. Returns `true` if there are any.
    pub(super) fn write(self, subject: Subject, entries: &mut Entries) -> bool {
        match self {
            ListSums::Sums(adder) => {
                adder.write(subject, entries);
                true
            }
            ListSums::Few(_) | ListSums::None => false,
        }
    }
}

/// The sums of the games of a period and a class.
#[derive(Clone, Debug)]
struct Summed {
    /// The sums of each move, sorted by move.
    moves: Vec<MoveSum>,
    /// The games with the highest ratings. Each has twice the mean of its known ratings, its date, id and move.
    top: Best<(u32, u32, u32, BookMove)>,
    /// The newest games. Each has its date, id and move.
    recent: Best<(u32, u32, BookMove)>,
}

impl Default for Summed {
    fn default() -> Self {
        Summed {
            moves: Vec::new(),
            top: Best::new(TOP),
            recent: Best::new(RECENT),
        }
    }
}

impl Summed {
    /// Returns the sum of a move. Adds an empty one if there is none.
    fn sum_of(&mut self, mv: BookMove) -> &mut MoveSum {
        let found = self.moves.binary_search_by_key(&mv, |sum| sum.mv);
        let place = found.unwrap_or_else(|place| {
            self.moves.insert(place, MoveSum::new(mv));
            place
        });
        &mut self.moves[place]
    }

    /// Returns the sums in the form in which they are stored.
    fn as_class(&self, class: Class) -> ClassSums {
        let top = self.top.iter().map(|(_, _, id, mv)| (id, mv));
        let recent = self.recent.iter().map(|(_, id, mv)| (id, mv));
        let mut games: Vec<Item> = top.chain(recent).collect();
        games.sort_unstable();
        games.dedup();
        let place = |mv| self.moves.binary_search_by_key(&mv, |sum| sum.mv);
        ClassSums {
            class,
            moves: self.moves.clone(),
            games: games
                .into_iter()
                .map(|(id, mv)| (id, place(mv).expect("the games of a class are added up")))
                .collect(),
        }
    }
}

/// Adds up the games of a position by month and class.
pub(super) struct Adder<'a> {
    white_to_move: bool,
    rows: RowReader<'a>,
    months: FxHashMap<(Period, Class), Summed>,
    /// The number of sums of moves in `months`.
    move_sums: usize,
    /// The number of entries of `months` with a game that continues after the position.
    classes: usize,
}

impl<'a> Adder<'a> {
    /// Creates sums without games.
    fn new(white_to_move: bool, games: &'a ExploredGames) -> Adder<'a> {
        Adder {
            white_to_move,
            rows: games.row_reader(),
            months: FxHashMap::default(),
            move_sums: 0,
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
        let date = row.date;
        let month = Period::Month(date.year().unwrap_or(0), date.month().unwrap_or(0));
        let class = Class::new(row.speed, row.group());
        let rating = match self.white_to_move {
            true => row.white_elo,
            false => row.black_elo,
        };
        let summed = self.months.entry((month, class)).or_default();
        self.move_sums -= summed.moves.len();
        let sum = summed.sum_of(mv);
        sum.games[row.result as usize] += 1;
        sum.rated += u32::from(rating > 0);
        sum.ratings += u64::from(rating);
        sum.game = id;
        self.move_sums += summed.moves.len();
        if mv != BookMove::NONE {
            let date = date_number(row.date);
            self.classes += usize::from(summed.recent.iter().next().is_none());
            summed.top.offer((row.doubled_rating(), date, id, mv));
            summed.recent.offer((date, id, mv));
        }
    }

    /// Returns `true` if the sums exceed [`MOST_MOVE_SUMS`] or [`MOST_CLASSES`].
    fn is_too_large(&self) -> bool {
        self.move_sums > MOST_MOVE_SUMS || self.classes > MOST_CLASSES
    }

    /// Appends the entries of all periods.
    fn write(self, subject: Subject, entries: &mut Entries) {
        let months: PeriodSums = self.months.into_iter().collect();
        let years = of_longer_periods(&months);
        let all = of_longer_periods(&years);
        let mut with_months: Vec<YearMonths> = Vec::new();
        for (period, _) in months.keys() {
            if let Period::Month(year, month) = *period {
                YearMonths::note(&mut with_months, year, month);
            }
        }
        for sums in [all, years, months] {
            let sums: Vec<((Period, Class), Summed)> = sums.into_iter().collect();
            for classes in sums.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
                let period = classes[0].0.0;
                let key = sums_key(LISTS, subject, period);
                let value = entries.begin(&key);
                if period == Period::All {
                    write_years(&with_months, value);
                }
                for ((_, class), summed) in classes {
                    summed.as_class(*class).write(value);
                }
                entries.end(key.len());
            }
        }
    }
}

/// Sums of all months, all years, or all time, sorted by period and class.
type PeriodSums = BTreeMap<(Period, Class), Summed>;

/// Adds up the sums of months to years, or of years to all time.
fn of_longer_periods(sums: &PeriodSums) -> PeriodSums {
    let mut longer = PeriodSums::new();
    for ((period, class), part) in sums {
        let all = longer.entry((period.longer(), *class)).or_default();
        for sum in &part.moves {
            all.sum_of(sum.mv).add(sum);
        }
        all.top.join(&part.top);
        all.recent.join(&part.recent);
    }
    longer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        index::{
            entries::Value,
            layout::{
                EcoNumber,
                played::{LISTED, NAMED},
                sums::{parse_sums, take_years},
            },
        },
        pgn::{Date, GameResult, Mode, Speed},
    };

    const SUBJECT: Subject = Subject(77);

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

    /// Returns the sums of the games of a period and a class, added up one by one.
    fn expected(games: &[(u32, BookMove, GameRow)], period: Period, class: usize) -> Vec<MoveSum> {
        let mut sums: BTreeMap<BookMove, MoveSum> = BTreeMap::new();
        for (id, mv, row) in games {
            let month = row.date.year().unwrap_or(0);
            let month = Period::Month(month, row.date.month().unwrap_or(0));
            let is_in = [month, month.longer(), Period::All].contains(&period);
            if is_in && Class::new(row.speed, row.group()).number() == class {
                let sum = sums.entry(*mv).or_insert(MoveSum::new(*mv));
                sum.games[row.result as usize] += 1;
                sum.rated += u32::from(row.black_elo > 0);
                sum.ratings += u64::from(row.black_elo);
                sum.game = *id;
            }
        }
        let mut sums: Vec<MoveSum> = sums.into_values().collect();
        for sum in sums.iter_mut().filter(|sum| sum.total() > 1) {
            sum.game = 0;
        }
        sums
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_games(games in proptest::collection::vec((rows(), 0..3u16), 1..120)) {
            let mut kept = ExploredGames::new(1 << 20, std::env::temp_dir());
            let mut all = Vec::new();
            let names = ["a", "b", "c"].map(Box::from);
            for (id, (row, mv)) in games.into_iter().enumerate() {
                kept.push(row, &names, &[], &mut Vec::new()).unwrap();
                all.push((id as u32, BookMove(mv), row));
            }
            let items: Vec<Item> = all.iter().map(|(id, mv, _)| (*id, *mv)).collect();
            let mut adder = Adder::new(false, &kept);
            adder.add_all(&items).unwrap();
            let mut entries = Entries::default();
            adder.write(SUBJECT, &mut entries);
            let mut found = BTreeMap::new();
            for number in 0..entries.len() {
                let Value::Held(value) = entries.value(number) else { unreachable!("sums are held") };
                found.insert(entries.key(number).to_vec(), value);
            }
            let mut rest = found[&sums_key(LISTS, SUBJECT, Period::All)];
            let years = take_years(&mut rest).unwrap();
            let mut periods = vec![(Period::All, rest)];
            for year in years {
                let months = year.months().map(|month| Period::Month(year.year, month));
                let of_year = [Period::Year(year.year)].into_iter().chain(months);
                periods.extend(of_year.map(|period| (period, found[&sums_key(LISTS, SUBJECT, period)])));
            }
            prop_assert_eq!(periods.len(), found.len());
            for (period, value) in periods {
                let classes = parse_sums(value).unwrap();
                prop_assert!(!classes.is_empty());
                for class in 0..Class::COUNT {
                    let wanted = expected(&all, period, class);
                    let sums = classes.iter().find(|sums| sums.class.number() == class);
                    prop_assert_eq!(sums.map_or(&[][..], |sums| &sums.moves), &wanted);
                    let played = |(id, place): &(u32, usize), sums: &ClassSums| {
                        all[*id as usize].1 == sums.moves[*place].mv
                    };
                    let agree = sums.is_none_or(|sums| sums.games.iter().all(|game| played(game, sums)));
                    prop_assert!(agree, "{:?}", sums);
                }
            }
        }
    }

    #[test]
    fn lists_without_moves_have_no_sums() {
        let games = ExploredGames::new(1 << 20, std::env::temp_dir());
        for mv in [BookMove::NONE, LISTED, NAMED] {
            let items: Vec<Item> = (0..=SUMMED as u32).map(|id| (id, mv)).collect();
            let mut sums = ListSums::default();
            sums.add(&items, false, &games).unwrap();
            assert!(!sums.write(SUBJECT, &mut Entries::default()));
        }
        let mut few = ListSums::default();
        few.add(&[(0, BookMove(9))], false, &games).unwrap();
        assert!(!few.write(SUBJECT, &mut Entries::default()));
    }
}

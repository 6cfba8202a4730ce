//! Adding up the games of a position that has very many of them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    best_games::{BestGames, Ranked},
    games::{ExploredGames, RowReader},
    record::NAMED,
};
use crate::{
    error::Result,
    index::{
        entries::Entries,
        layout::{
            GameRow, Subject,
            played::Item,
            rows::date_number,
            sums::{Class, ClassSums, MoveSum, Period, SUMMED, YearMonths, write_years},
            sums_key,
        },
    },
    position::BookMove,
};

/// How many sums of moves, and of classes, the months of a position may have. With more of them, which would take much
/// memory, the position has no sums.
const MOST_MOVE_SUMS: usize = 7 << 15;
const MOST_CLASSES: usize = 1 << 15;

/// The sums of the games of a period and a class that played a move.
type MoveSums = FxHashMap<(Period, Class, BookMove), MoveSum>;

/// The sums of a list, if it gets long enough to have some.
pub(super) enum ListSums<'a> {
    /// The items so far, which are few.
    Few(Vec<Item>),
    /// The sums so far.
    Sums(Box<Adder<'a>>),
    /// The list has none.
    None,
}

impl Default for ListSums<'_> {
    fn default() -> Self {
        ListSums::Few(Vec::new())
    }
}

impl<'a> ListSums<'a> {
    /// Takes the next items of the list.
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
            // Lists of players, names and ids have no moves.
            if !few.iter().any(is_played) {
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

    /// Appends the entries of the sums. Returns whether there are any.
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

/// Whether an item is that of a position in which its game played a move.
fn is_played((_, mv): &Item) -> bool {
    *mv != BookMove::NONE && *mv != NAMED
}

/// Adds up the games of a position.
pub(super) struct Adder<'a> {
    white_to_move: bool,
    rows: RowReader<'a>,
    moves: MoveSums,
    best: FxHashMap<(Period, Class), BestGames>,
}

impl<'a> Adder<'a> {
    fn new(white_to_move: bool, games: &'a ExploredGames) -> Adder<'a> {
        Adder {
            white_to_move,
            rows: games.row_reader(),
            moves: FxHashMap::default(),
            best: FxHashMap::default(),
        }
    }

    fn add_all(&mut self, items: &[Item]) -> Result<()> {
        for (id, mv) in items {
            // A name's number is no game.
            if *mv != NAMED {
                let row = self.rows.row(*id)?;
                self.add(*id, *mv, &row);
            }
        }
        Ok(())
    }

    fn add(&mut self, id: u32, mv: BookMove, row: &GameRow) {
        let date = row.date;
        let month = Period::Month(date.year().unwrap_or(0), date.month().unwrap_or(0));
        let class = Class::new(row.speed, row.group());
        let rating = match self.white_to_move {
            true => row.white_elo,
            false => row.black_elo,
        };
        let sum = self.moves.entry((month, class, mv));
        let sum = sum.or_insert_with(|| MoveSum::new(mv));
        sum.games[row.result_number()] += 1;
        sum.rated += u32::from(rating > 0);
        sum.ratings += u64::from(rating);
        sum.game = id;
        if mv != BookMove::NONE {
            let game = Ranked {
                rating_sum: row.rating_sum(),
                date: date_number(row.date),
                id,
                mv,
            };
            let best = self.best.entry((month, class)).or_default();
            best.offer_top(game);
            best.offer_recent(game);
        }
    }

    fn is_too_large(&self) -> bool {
        self.moves.len() > MOST_MOVE_SUMS || self.best.len() > MOST_CLASSES
    }

    /// Appends the entries of all periods.
    fn write(self, subject: Subject, entries: &mut Entries) {
        let months = Sums::of_months(self.moves, self.best);
        let years = months.of_longer_periods();
        let all = years.of_longer_periods();
        let key = sums_key(subject, Period::All);
        write_years(&months.years(), entries.begin(&key));
        for (_, class) in all.classes() {
            class.write(entries.open_bytes());
        }
        entries.end(key.len());
        for sums in [years, months] {
            sums.write_periods(subject, entries);
        }
    }
}

/// The sums of all months, of all years, or of all time.
struct Sums {
    /// In ascending order, of moves within each class.
    moves: Vec<((Period, Class), MoveSum)>,
    best: BTreeMap<(Period, Class), BestGames>,
}

impl Sums {
    fn of_months(moves: MoveSums, best: FxHashMap<(Period, Class), BestGames>) -> Sums {
        let moves = moves.into_iter();
        let mut moves: Vec<_> = moves
            .map(|((period, class, _), sum)| ((period, class), sum))
            .collect();
        moves.sort_unstable_by_key(|(class, sum)| (*class, sum.mv));
        Sums {
            moves,
            best: best.into_iter().collect(),
        }
    }

    /// The same added up for the next longer periods.
    fn of_longer_periods(&self) -> Sums {
        let mut moves = self.moves.clone();
        for ((period, _), _) in &mut moves {
            *period = period.longer();
        }
        moves.sort_unstable_by_key(|(class, sum)| (*class, sum.mv));
        moves.dedup_by(|(class, sum), (before, all)| {
            let is_same = class == before && sum.mv == all.mv;
            if is_same {
                all.add(sum);
            }
            is_same
        });
        let mut best: BTreeMap<_, BestGames> = BTreeMap::new();
        for ((period, class), games) in &self.best {
            let all = best.entry((period.longer(), *class)).or_default();
            games.top.iter().for_each(|game| all.offer_top(*game));
            games.recent.iter().for_each(|game| all.offer_recent(*game));
        }
        Sums { moves, best }
    }

    /// The classes of all periods, in order.
    fn classes(&self) -> impl Iterator<Item = (Period, ClassSums)> {
        let classes = self.moves.chunk_by(|(a, _), (b, _)| a == b);
        classes.map(|moves| {
            let (period, class) = moves[0].0;
            let moves: Vec<MoveSum> = moves.iter().map(|(_, sum)| *sum).collect();
            let games = self.best.get(&(period, class));
            let games = games.map_or_else(Vec::new, BestGames::items);
            let place = |mv| moves.binary_search_by_key(&mv, |sum| sum.mv);
            let games = games
                .into_iter()
                .map(|(id, mv)| (id, place(mv).expect("the games of a class are added up")))
                .collect();
            let sums = ClassSums {
                class,
                moves,
                games,
            };
            (period, sums)
        })
    }

    /// The years, with the months of each that have games.
    fn years(&self) -> Vec<YearMonths> {
        let mut years: Vec<YearMonths> = Vec::new();
        for ((period, _), _) in &self.moves {
            let Period::Month(year, month) = *period else {
                continue;
            };
            let months = 1 << month;
            match years.last_mut() {
                Some(last) if last.year == year => last.months |= months,
                _ => years.push(YearMonths { year, months }),
            }
        }
        years
    }

    /// Appends an entry for each period.
    fn write_periods(&self, subject: Subject, entries: &mut Entries) {
        let mut open: Option<(Period, usize)> = None;
        for (period, class) in self.classes() {
            if let Some((last, key)) = open
                && last != period
            {
                entries.end(key);
                open = None;
            }
            if open.is_none() {
                let key = sums_key(subject, period);
                entries.begin(&key);
                open = Some((period, key.len()));
            }
            class.write(entries.open_bytes());
        }
        if let Some((_, key)) = open {
            entries.end(key);
        }
    }
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
                result: [
                    GameResult::Draw,
                    GameResult::WhiteWins,
                    GameResult::BlackWins,
                    GameResult::Unknown,
                ][result],
                speed: Speed::ALL[speed],
                mode: Mode::Rated,
                counts: true,
                eco: EcoNumber::default(),
                plies: 1,
                site_id: None,
            },
        )
    }

    /// The games of a period and a class, counted one by one.
    fn expected(games: &[(u32, BookMove, GameRow)], period: Period, class: usize) -> Vec<MoveSum> {
        let mut sums: BTreeMap<BookMove, MoveSum> = BTreeMap::new();
        for (id, mv, row) in games {
            let month = row.date.year().unwrap_or(0);
            let month = Period::Month(month, row.date.month().unwrap_or(0));
            let is_in = [month, month.longer(), Period::All].contains(&period);
            if is_in && Class::new(row.speed, row.group()).number() == class {
                let sum = sums.entry(*mv).or_insert(MoveSum::new(*mv));
                sum.games[row.result_number()] += 1;
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
                kept.push(row, &names, &mut Vec::new()).unwrap();
                all.push((id as u32, BookMove(mv), row));
            }
            let items: Vec<Item> = all.iter().map(|(id, mv, _)| (*id, *mv)).collect();
            let mut adder = Adder::new(false, &kept);
            adder.add_all(&items).unwrap();
            let mut entries = Entries::default();
            adder.write(SUBJECT, &mut entries);
            let mut found = BTreeMap::new();
            for number in 0..entries.len() {
                let Value::Bytes(value) = entries.value(number) else { unreachable!("sums are held") };
                found.insert(entries.key(number).to_vec(), value);
            }
            let mut rest = found[&sums_key(SUBJECT, Period::All)];
            let years = take_years(&mut rest).unwrap();
            let mut periods = vec![(Period::All, rest)];
            for year in years {
                let months = year.months().map(|month| Period::Month(year.year, month));
                let of_year = [Period::Year(year.year)].into_iter().chain(months);
                periods.extend(of_year.map(|period| (period, found[&sums_key(SUBJECT, period)])));
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
        for mv in [BookMove::NONE, NAMED] {
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

//! The results of a position with very many games or rows, in periods: all time, each year and each month. A query whose
//! filters select whole [periods](Period) and [classes](super::results::Class) is answered from these entries, without
//! reading the games.
//!
//! In an index of games, a position with more than [`SUMMED`] games has an entry for each period with games. In an index
//! of counts, a position that has too many rows for its page has them.
//!
//! | part | encoding |
//! |---|---|
//! | the entry of all time begins with | varint n; n times a year (2 bytes, ascending) and its months with games (2 bytes: bit 0 for games of an unknown month, bits 1 to 12) |
//! | then, in an index of counts | the rows of the period, see [`counted`](super::counted) |
//! | then, in an index of games | varint: the number of bytes of the rows; the rows; for each class with games that continue from the position, ascending: its number (1 byte), varint g, and g games, ascending |
//! | a game | varint: the id minus the previous id minus 1 (for the first game of a class, the id), times 2^b, plus the index of its move among the m different moves of the rows, where b is the least number of bits that m - 1 fits into |
//!
//! The number of a class is six times the number of its rating group, plus the number of its speed. The group after the
//! last one contains the games without a known rating. Move 0 stands for games that end in the position. The listed games
//! of a class include its [`TOP`] games with the highest ratings and its [`RECENT`] newest games, except games that end in
//! the position. Numbers of two bytes are little-endian.

use super::{
    bits::{BitReader, BitWriter},
    count_pages::{MOST_ROWS, Months, put_moves, take_moves},
    lists::bits_for,
    results::{Class, Month, Period, ResultRow, YearMonths},
};
use crate::{
    leveldb::{put_varint, take_size, take_varint},
    position::BookMove,
};

/// The greatest number of items of a list without sums.
pub const SUMMED: usize = 1 << 15;

/// The number of games with the highest ratings that a class lists.
pub const TOP: usize = 15;

/// The number of newest games that a class lists. An answer shows up to 8 recent games and 4 top games. The newest
/// games may be among the top games, which are not shown twice, so 8 + 4 games are needed.
pub const RECENT: usize = 12;

/// A game that may be among the games with the highest ratings or the newest games of an answer.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Candidate {
    /// The class of the game.
    pub class: Class,
    /// The id of the game.
    pub game: u32,
    /// The move that was played in the position.
    pub mv: BookMove,
}

/// The results of a position in a period.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PeriodResults {
    /// The rows, sorted by move and class. Their months are unknown.
    pub rows: Vec<ResultRow>,
    /// The games with the highest ratings and the newest games of each class, and possibly others, sorted by class and id.
    /// Empty in an index of counts.
    pub candidates: Vec<Candidate>,
}

impl PeriodResults {
    /// Appends the encoded results. `of_games` says whether the index contains games.
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
            for Candidate { game, mv, .. } in games {
                let at = moves.binary_search(mv).expect("each candidate is in a row");
                put_varint(out, u64::from(game - next) << bits | at as u64);
                next = game.wrapping_add(1);
            }
        }
    }

    /// Decodes results that [`write`](PeriodResults::write) encoded. Returns `None` if they are malformed.
    pub fn parse(mut bytes: &[u8], of_games: bool) -> Option<PeriodResults> {
        let mut results = PeriodResults::default();
        let rows = match of_games {
            true => take_size(&mut bytes).and_then(|len| bytes.split_off(..len))?,
            false => std::mem::take(&mut bytes),
        };
        let mut bits = BitReader::new(rows);
        let count = bits.take_golomb(0)?.checked_add(1)?;
        let rows = &mut results.rows;
        take_moves(&mut bits, count, Months::NONE, of_games, MOST_ROWS, rows)?;
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
                results.candidates.push(Candidate { class, game, mv });
                next = u64::from(game) + 1;
            }
        }
        Some(results)
    }
}

/// Appends the years that begin the entry of all time.
pub fn write_years(years: &[YearMonths], out: &mut Vec<u8>) {
    put_varint(out, years.len() as u64);
    for year in years {
        out.extend_from_slice(&year.year.to_le_bytes());
        out.extend_from_slice(&year.months.to_le_bytes());
    }
}

/// Reads the years that begin the entry of all time. Returns `None` if they are malformed.
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

/// Adds up the rows of a position for each period: all time, each year and each month. Returns each period with its
/// sorted rows, first all time, then the years, then the months. Also returns the years, each with its months that
/// occur in `rows`.
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
                YearMonths::note(&mut years, month);
            }
        }
    }
    (periods, years)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{super::results::strategies::results, *};

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
                    row.games[3] = u64::from(unfinished) % (at as u64 + 1);
                    if one % 3 == at as u32 % 3 {
                        row.games = [0, 0, 0, 1];
                        (row.rated, row.ratings) = (
                            u64::from(row.rated > 0),
                            row.ratings.checked_div(row.rated).unwrap_or(0),
                        );
                    }
                    row.game = (row.total() == 1).then_some(ids.wrapping_add(at as u32));
                }
                let candidate = |((game, class), at): ((u32, u8), prop::sample::Index)| Candidate {
                    class: Class::of_number(class).unwrap(),
                    game,
                    mv: at.get(&rows).mv,
                };
                let mut candidates: Vec<Candidate> = games.into_iter().map(candidate).collect();
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
                games: [1, 0, 0, 0],
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
        let most = MOST_ROWS / Class::COUNT;
        assert!(PeriodResults::parse(&of_moves(most), false).is_some());
        assert!(PeriodResults::parse(&of_moves(most + 1), false).is_none());
    }
}

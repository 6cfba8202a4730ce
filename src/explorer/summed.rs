//! Filters that sums and counts can apply, because they depend only on speed, rating group and month.

use super::{dates::DateRange, query::Filters, source::OpenIndex};
use crate::{
    error::Result,
    index::layout::{
        Subject,
        counted::{CountedList, CountedRow},
        rows::date_number,
        sums::{Class, Period, PeriodEntry, YearMonths},
    },
    pgn::{Date, RatingGroup, Speed},
};

/// The longest period that a sum may cover.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Split {
    Nowhere,
    ByYear,
    ByMonth,
}

/// Returns the part of the date that all games of a period have in common, in the form of [`date_number`].
pub(super) fn date_of(period: Period) -> u32 {
    date_number(match period {
        Period::All => Date::default(),
        Period::Year(year) => Date::new(year, 0, 0),
        Period::Month(year, month) => Date::new(year, month, 0),
    })
}

/// A filter by [class](Class) (speed and rating group) and month alone. It admits or rejects all games of a class and a
/// month together. Lichess's own explorer has only such filters.
pub(super) struct ClassFilter {
    /// For each class, by its number, whether its games pass.
    classes: [bool; Class::COUNT],
    dates: DateRange,
}

impl ClassFilter {
    /// Creates the filter, or returns `None` if one of the filters has to be evaluated game by game.
    pub(super) fn new(filters: &Filters) -> Option<ClassFilter> {
        if filters.of_games().is_some() {
            return None;
        }
        let (speeds, groups) = (&filters.speeds, &filters.groups);
        let mut classes = [false; Class::COUNT];
        for speed in Speed::ALL {
            let of_speed = speeds.as_ref().is_none_or(|set| set.contains(&speed));
            for group in RatingGroup::all() {
                let of_group = groups.as_ref().is_none_or(|set| set.contains(&group));
                classes[Class::new(speed, Some(group)).number()] = of_speed && of_group;
            }
            let unrated = Class::new(speed, None);
            classes[unrated.number()] = of_speed && filters.admit_unrated();
        }
        Some(ClassFilter {
            classes,
            dates: DateRange::new(filters),
        })
    }

    /// Calls `f` with the passing rows of the counts of a position, each with its period, which is at most as long as `split`
    /// allows.
    pub(super) fn for_each_row(
        &self,
        source: &OpenIndex,
        subject: Subject,
        list: Option<CountedList>,
        split: Split,
        mut f: impl FnMut(Period, &CountedRow),
    ) -> Result<()> {
        match list {
            None => Ok(()),
            Some(CountedList::Apart(games)) => {
                self.for_each_part(source, subject, games, split, |period, row| {
                    f(period, row);
                    Some(())
                })
            }
            Some(CountedList::Rows(rows)) => {
                for row in &rows {
                    let period = row.month.period();
                    if self.contains(period) && self.classes[row.class.number()] {
                        f(period, row);
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns `true` if the games of a month pass.
    fn contains(&self, period: Period) -> bool {
        self.dates.contains(date_of(period))
    }

    /// Calls `f` with entries that together contain all passing games of a subject. Each entry contains the passing
    /// games of one period. The periods do not overlap, and are as long as `split` allows. `games` is the number of
    /// games of the subject. `f` must return `None` if an entry is malformed.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub(super) fn for_each_part<T: PeriodEntry>(
        &self,
        source: &OpenIndex,
        subject: Subject,
        games: u64,
        split: Split,
        mut f: impl FnMut(Period, &T) -> Option<()>,
    ) -> Result<()> {
        let (years, all) = source.index.sums_of_all(subject, games)?;
        let mut add = |period: Period, parts: &[T]| {
            let mut passing = parts
                .iter()
                .filter(|part| self.classes[part.class().number()]);
            passing
                .try_for_each(|part| f(period, part))
                .ok_or_else(|| source.damaged("the sums of a list name an unknown game"))
        };
        if split == Split::Nowhere && self.dates.is_all() {
            return add(Period::All, &all);
        }
        for period in self.periods(&years, split) {
            add(period, &source.index.sums(subject, period)?)?;
        }
        Ok(())
    }

    /// Returns the periods that together contain all passing games: whole years if all their months pass and `split`
    /// allows years, otherwise months.
    fn periods(&self, years: &[YearMonths], split: Split) -> Vec<Period> {
        let mut periods = Vec::new();
        for year in years {
            let months = year.months().map(|month| Period::Month(year.year, month));
            let passing: Vec<Period> = months.filter(|month| self.contains(*month)).collect();
            if passing.len() == year.months().count() && split != Split::ByMonth {
                periods.push(Period::Year(year.year));
            } else {
                periods.extend(passing);
            }
        }
        periods
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(since: &str, until: &str) -> Option<ClassFilter> {
        ClassFilter::new(&Filters {
            since: since.parse().ok(),
            until: until.parse().ok(),
            ..Filters::default()
        })
    }

    #[test]
    fn periods_are_as_long_as_can_be() {
        let year = |year, months| YearMonths { year, months };
        let years = [
            year(0, 1),
            year(2015, 0b1_1111),
            year(2016, 0b1000),
            year(2017, 0b110),
        ];
        let periods = |since, until, split| filter(since, until).unwrap().periods(&years, split);
        use Period::{Month, Year};
        assert_eq!(
            periods("2015.03", "2017.01", Split::Nowhere),
            [
                Year(0),
                Month(2015, 0),
                Month(2015, 3),
                Month(2015, 4),
                Year(2016),
                Month(2017, 1)
            ]
        );
        assert_eq!(
            periods("2016", "2017", Split::ByYear),
            [Year(0), Year(2016), Year(2017)]
        );
        assert_eq!(
            periods("2016", "", Split::ByMonth),
            [Month(0, 0), Month(2016, 3), Month(2017, 1), Month(2017, 2)]
        );
        assert!(filter("2016.01.02", "").is_none());
    }

    #[test]
    fn classes_pass_by_speed_and_group() {
        let mut filters = Filters {
            speeds: Some([Speed::Blitz].into_iter().collect()),
            groups: Some([RatingGroup::of(1600)].into_iter().collect()),
            ..Filters::default()
        };
        let passing = ClassFilter::new(&filters).unwrap().classes;
        assert_eq!(passing.iter().filter(|passes| **passes).count(), 1);
        assert!(passing[Class::new(Speed::Blitz, Some(RatingGroup::of(1600))).number()]);
        let unknown = Class::new(Speed::Blitz, None).number();
        let lowest = Class::new(Speed::Blitz, Some(RatingGroup::of(0))).number();
        for (groups, unrated, [lowest_passes, unknown_passes]) in [
            (Some(vec![RatingGroup::of(0)]), false, [true, false]),
            (Some(vec![RatingGroup::of(0)]), true, [true, true]),
            (Some(vec![]), true, [false, true]),
            (None, false, [true, true]),
        ] {
            (filters.groups, filters.unrated) = (groups, unrated);
            let passing = ClassFilter::new(&filters).unwrap().classes;
            assert_eq!(
                [passing[lowest], passing[unknown]],
                [lowest_passes, unknown_passes]
            );
        }
        filters.min_ply = 1;
        assert!(ClassFilter::new(&filters).is_none());
    }
}

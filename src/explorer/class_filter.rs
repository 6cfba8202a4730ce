//! Filters that depend only on speed, rating group and month. The explorer can apply them to stored sums of results,
//! without reading individual games.

use super::{dates::DateRange, query::Filters};
use crate::{
    index::store::results::{Class, Period, YearMonths},
    pgn::{RatingGroup, Speed},
};

/// How an answer of the explorer splits results by time: not at all, by year, or by month. The split determines which
/// stored sums of results can be used. For example, an answer by month cannot use the sum of a whole year.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Split {
    AllTime,
    ByYear,
    ByMonth,
}

/// Converts a period to a date number, in which unknown parts are 0. A month has no day, a year has neither day nor
/// month, and all time becomes 0. See [`date_number`](crate::index::store::game_rows::date_number).
pub(super) fn date_of(period: Period) -> u32 {
    match period {
        Period::All => 0,
        Period::Year(year) => u32::from(year) << 9,
        Period::Month(month) => u32::from(month.year()) << 9 | u32::from(month.month()) << 5,
    }
}

/// A filter that depends only on the speed, the rating group and the month of a game. Such a filter can be applied to
/// stored sums of results, because all games in one sum share these three properties.
pub(super) struct ClassFilter {
    /// Whether the games of each class pass. A class is a pair of a speed and a rating group, and its number is the
    /// index.
    classes: [bool; Class::COUNT],
    pub dates: DateRange,
}

impl ClassFilter {
    /// Converts `filters` to a class filter. Returns `None` if `filters` contains a condition that needs individual
    /// games, such as the name of a player.
    pub(super) fn new(filters: &Filters) -> Option<ClassFilter> {
        if filters.game_only_filter().is_some() {
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

    /// Returns `true` if the filter admits games of `class`, a pair of a speed and a rating group.
    pub(super) fn admits(&self, class: Class) -> bool {
        self.classes[class.number()]
    }

    /// Returns `true` if at least a part of `period` lies in the filter's range of dates. A period is a month, a year
    /// or all time.
    pub(super) fn contains(&self, period: Period) -> bool {
        self.dates.contains(date_of(period))
    }

    /// Returns periods (years and months) whose stored sums add up to the results in the filter's range of dates.
    /// `years` contains each year that has games, with the months in which these games were played.
    ///
    /// If the range contains all months of a year that have games, returns the whole year. Otherwise, returns the
    /// months of the year that are in the range. If `split` is [`Split::ByMonth`], the periods are always months.
    pub(super) fn periods(&self, years: &[YearMonths], split: Split) -> Vec<Period> {
        let mut periods = Vec::new();
        for year in years {
            let months = year.months().map(Period::Month);
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
    use crate::index::store::results::Month;

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
        use Period::Year;
        let month = |year, month| Period::Month(Month::new(year, month).unwrap());
        assert_eq!(
            periods("2015.03", "2017.01", Split::AllTime),
            [
                Year(0),
                month(2015, 0),
                month(2015, 3),
                month(2015, 4),
                Year(2016),
                month(2017, 1)
            ]
        );
        assert_eq!(
            periods("2016", "2017", Split::ByYear),
            [Year(0), Year(2016), Year(2017)]
        );
        assert_eq!(
            periods("2016", "", Split::ByMonth),
            [month(0, 0), month(2016, 3), month(2017, 1), month(2017, 2)]
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
        filters.min_plies = 1;
        assert!(ClassFilter::new(&filters).is_none());
    }
}

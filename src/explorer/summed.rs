//! Filters that sums can answer.

use super::{dates::DateRange, query::Filters, source::Source};
use crate::{
    error::Result,
    index::layout::{
        Subject,
        played::Apart,
        rows::date_number,
        sums::{Class, ClassSums, Period, YearMonths},
    },
    pgn::{Date, NameMatch, RatingGroup, Speed},
};

/// Where sums must not be of more than one period.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Split {
    Nowhere,
    ByYear,
    ByMonth,
}

/// Filters that whole [classes](Class) and months pass or not: those that Lichess's own explorer has.
pub(super) struct ClassFilter {
    /// Whether each class passes.
    classes: [bool; Class::COUNT],
    dates: DateRange,
}

impl ClassFilter {
    /// `None` for filters that have to be asked of each game.
    pub(super) fn new(filters: &Filters) -> Option<ClassFilter> {
        // What is not named here is asked of each game, a new filter too. A color without a player says nothing.
        let of_games = Filters {
            speeds: None,
            groups: None,
            unrated: false,
            since: None,
            until: None,
            color: None,
            names: NameMatch::default(),
            source: None,
            ..filters.clone()
        };
        let has_day = |date: Option<Date>| date.is_some_and(|date| date.day().is_some());
        // A class has the games of the lowest group and those without ratings.
        let lowest = RatingGroup::of(0);
        let has_lowest = filters
            .groups
            .as_ref()
            .is_none_or(|set| set.contains(&lowest));
        let separates_unrated = filters.admit_unrated() != has_lowest;
        let asks_of_days = has_day(filters.since) || has_day(filters.until);
        if of_games != Filters::default() || asks_of_days || separates_unrated {
            return None;
        }
        let (speeds, groups) = (&filters.speeds, &filters.groups);
        let mut classes = [false; Class::COUNT];
        for speed in Speed::ALL {
            for group in RatingGroup::all() {
                classes[Class::new(speed, group).number()] =
                    speeds.as_ref().is_none_or(|set| set.contains(&speed))
                        && groups.as_ref().is_none_or(|set| set.contains(&group));
            }
        }
        Some(ClassFilter {
            classes,
            dates: DateRange::new(filters.since, filters.until),
        })
    }

    /// Calls `f` with the classes that pass of periods that have all games that pass, each in one of them: periods as
    /// long as the split allows. `f` answers `None` if a class is malformed.
    pub(super) fn for_each_class(
        &self,
        source: &Source,
        subject: Subject,
        apart: Apart,
        split: Split,
        mut f: impl FnMut(Period, &ClassSums) -> Option<()>,
    ) -> Result<()> {
        let (years, all) = source.index.sums_of_all(subject, apart)?;
        let mut add = |period: Period, classes: &[ClassSums]| {
            let mut passing = classes
                .iter()
                .filter(|class| self.classes[class.class.number()]);
            passing
                .try_for_each(|class| f(period, class))
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

    /// The years that pass as a whole, unless they are split by month, and the months of others that pass.
    fn periods(&self, years: &[YearMonths], split: Split) -> Vec<Period> {
        let mut periods = Vec::new();
        for year in years {
            let month = |month| Period::Month(year.year, month);
            let passing: Vec<Period> = year
                .months()
                .filter(|month| {
                    let date = Date::new(year.year, *month, 0);
                    self.dates.contains(date_number(date))
                })
                .map(month)
                .collect();
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
        assert!(passing[Class::new(Speed::Blitz, RatingGroup::of(1600)).number()]);
        let lowest: Option<_> = Some([RatingGroup::of(0)].into_iter().collect());
        let others = Some(vec![RatingGroup::of(1600)]);
        for (groups, unrated, by_sums) in [
            (lowest.clone(), false, true),
            (lowest, true, true),
            (others, true, false),
        ] {
            (filters.groups, filters.unrated) = (groups, unrated);
            assert_eq!(ClassFilter::new(&filters).is_some(), by_sums);
        }
        filters.min_ply = 1;
        assert!(ClassFilter::new(&filters).is_none());
    }
}

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
            since: None,
            until: None,
            color: None,
            names: NameMatch::default(),
            source: None,
            ..filters.clone()
        };
        let has_day = |date: Option<Date>| date.is_some_and(|date| date.day().is_some());
        if of_games != Filters::default() || has_day(filters.since) || has_day(filters.until) {
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

    /// Calls `f` with the classes that pass of periods that have all games that pass, each in one of them: months if
    /// that is asked for, else periods as long as can be. `f` answers `None` if a class is malformed.
    pub(super) fn for_each_class(
        &self,
        source: &Source,
        subject: Subject,
        apart: Apart,
        by_month: bool,
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
        if !by_month && self.dates.is_all() {
            return add(Period::All, &all);
        }
        for period in self.periods(&years, by_month) {
            add(period, &source.index.sums(subject, period)?)?;
        }
        Ok(())
    }

    /// The years that pass as a whole, unless they are asked for by month, and the months of others that pass.
    fn periods(&self, years: &[YearMonths], by_month: bool) -> Vec<Period> {
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
            if passing.len() == year.months().count() && !by_month {
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
        let periods =
            |since, until, by_month| filter(since, until).unwrap().periods(&years, by_month);
        use Period::{Month, Year};
        assert_eq!(
            periods("2015.03", "2017.01", false),
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
            periods("2016", "2017", false),
            [Year(0), Year(2016), Year(2017)]
        );
        assert_eq!(
            periods("2016", "", true),
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
        filters.min_ply = 1;
        assert!(ClassFilter::new(&filters).is_none());
    }
}

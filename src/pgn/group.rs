//! Groups of ratings.

use std::fmt;

/// The lowest rating of each group.
const FLOORS: [u32; 9] = [0, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2500];

/// A group of games whose players have similar ratings: the mean of both, where an unknown rating is 0.
///
/// ```
/// use polybook::pgn::RatingGroup;
/// assert_eq!(RatingGroup::of(1700).floor(), 1600);
/// assert_eq!(RatingGroup::of(3000), RatingGroup::of(2500));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RatingGroup(u8);

impl RatingGroup {
    /// How many there are.
    pub(crate) const COUNT: usize = FLOORS.len();

    /// All groups, the lowest first.
    pub fn all() -> impl Iterator<Item = RatingGroup> {
        (0..FLOORS.len()).map(|number| RatingGroup(number as u8))
    }

    /// The group of a rating.
    pub fn of(rating: u32) -> RatingGroup {
        let above = FLOORS.iter().rposition(|floor| *floor <= rating);
        RatingGroup(above.unwrap_or(0) as u8)
    }

    /// The lowest rating of the group.
    pub fn floor(self) -> u32 {
        FLOORS[usize::from(self.0)]
    }

    /// The number of the group from 0.
    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for RatingGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.floor().fmt(f)
    }
}

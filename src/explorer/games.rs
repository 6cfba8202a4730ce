//! The games of a source in memory, a column for each thing that questions ask of them.

use shakmaty::Color;

use super::dates::{date_of_number, earliest, latest};
use crate::{
    index::layout::{EcoNumber, GameRow, SiteId, rows::date_number},
    pgn::{Date, GameResult, Mode, RatingGroup, Speed, doubled_mean},
    position::Variant,
};

/// What answers say about a game.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hot {
    /// Year, month and day as one number that grows with time.
    pub date: u32,
    pub elo: [u16; 2],
    pub traits: Traits,
}

/// The group number of games without a known rating. It follows the numbers of all rating groups.
pub(super) const UNRATED: usize = RatingGroup::COUNT;

/// The traits that filters ask for.
pub(super) struct AskedTraits {
    pub result: GameResult,
    pub speed: Speed,
    pub mode: Mode,
    /// `None` if no rating is known.
    pub group: Option<RatingGroup>,
}

/// Bits 0-1 the result, 2-4 the speed, 5 the mode, 6-9 the group of ratings, 10 whether the game counts, 11-14 the
/// number of the variant plus one, 0 if it is unknown, 15 whether the day is that on which the event began.
#[derive(Copy, Clone, Debug)]
pub(super) struct Traits(u16);

impl Traits {
    /// How many values there can be.
    pub(super) const COUNT: usize = 1 << 10;

    fn new(row: &GameRow) -> Traits {
        let group = row.group().map_or(UNRATED, RatingGroup::number) as u16;
        let variant = row.variant.map_or(0, |variant| variant as u16 + 1);
        let result = row.result as u16;
        let counts = u16::from(row.counts);
        Traits(
            result
                | (row.speed as u16) << 2
                | (row.mode as u16) << 5
                | group << 6
                | counts << 10
                | variant << 11
                | u16::from(row.has_event_date) << 15,
        )
    }

    /// What filters ask of them all; `None` for numbers without a meaning.
    pub(super) fn all() -> impl Iterator<Item = Option<AskedTraits>> {
        (0..Traits::COUNT as u16).map(|number| Traits(number).parts())
    }

    /// The number, less than [`COUNT`](Traits::COUNT).
    #[inline]
    pub(super) fn number(self) -> usize {
        usize::from(self.0) % Traits::COUNT
    }

    /// Whether the game counts.
    pub(super) fn counts(self) -> bool {
        self.0 >> 10 & 1 == 1
    }

    /// By which rules it was played, if that is known.
    pub(super) fn variant(self) -> Option<Variant> {
        let number = usize::from(self.0 >> 11 & 15).checked_sub(1)?;
        Variant::ALL.get(number).copied()
    }

    /// The number of the speed.
    #[inline]
    pub(super) fn speed(self) -> usize {
        usize::from(self.0 >> 2 & 7)
    }

    /// The number of the group of ratings, or [`UNRATED`].
    #[inline]
    pub(super) fn group(self) -> usize {
        usize::from(self.0 >> 6 & 15)
    }

    /// The number of the result.
    #[inline]
    fn result(self) -> usize {
        usize::from(self.0 & 3)
    }

    pub(super) fn winner(self) -> Option<Color> {
        match self.result() {
            1 => Some(Color::White),
            2 => Some(Color::Black),
            _ => None,
        }
    }

    fn parts(self) -> Option<AskedTraits> {
        let group = match self.group() {
            UNRATED => None,
            number => Some(RatingGroup::all().nth(number)?),
        };
        Some(AskedTraits {
            result: GameResult::ALL[self.result()],
            speed: *Speed::ALL.get(self.speed())?,
            mode: Mode::ALL[usize::from(self.0 >> 5 & 1)],
            group,
        })
    }
}

impl Hot {
    /// The number of the result.
    #[inline]
    pub(super) fn result(&self) -> usize {
        self.traits.result()
    }

    /// Whether it is known how the game ended.
    #[inline]
    pub(super) fn has_result(&self) -> bool {
        GameResult::ALL[self.result()] != GameResult::Unknown
    }

    pub(super) fn winner(&self) -> Option<Color> {
        self.traits.winner()
    }

    /// How fast it was, and whether it was for ratings.
    pub(super) fn speed_and_mode(&self) -> (Speed, Mode) {
        let asked = self.traits.parts().expect("the traits were made of these");
        (asked.speed, asked.mode)
    }

    /// The last day on which it may have been played. An event that began on a day may last.
    pub(super) fn last_day(&self) -> u32 {
        match self.traits.0 >> 15 {
            0 => latest(self.date),
            _ => u32::MAX,
        }
    }

    pub(super) fn date(&self) -> Date {
        date_of_number(self.date)
    }

    /// The year, 0 if it is unknown.
    #[inline]
    pub(super) fn year(&self) -> u16 {
        (self.date >> 9) as u16
    }

    /// Year and month as one number.
    #[inline]
    pub(super) fn month(&self) -> u32 {
        self.date >> 5
    }

    /// Returns twice the mean of the known ratings, 0 if both are unknown.
    #[inline]
    pub(super) fn doubled_rating(&self) -> u32 {
        doubled_mean(self.elo)
    }

    #[inline]
    pub(super) fn elo_of(&self, color: Color) -> u16 {
        color.fold_wb(self.elo[0], self.elo[1])
    }
}

/// The games of a source by their ids, 32 bytes of each. All columns have the same length.
#[derive(Default, Debug)]
pub(super) struct GameRows {
    /// As [`Hot::date`].
    pub dates: Vec<u32>,
    pub elo: Vec<[u16; 2]>,
    pub traits: Vec<Traits>,
    pub plies: Vec<u16>,
    pub eco: Vec<EcoNumber>,
    /// The numbers of the names of White and Black.
    pub players: Vec<[u32; 2]>,
    pub events: Vec<u32>,
    /// The ids at Lichess or the last positions, as [rows](GameRow::own_number) have them.
    own_numbers: Vec<[u8; 6]>,
}

impl GameRows {
    /// With room for a number of them.
    pub(super) fn with_capacity(games: usize) -> GameRows {
        let mut all = GameRows::default();
        all.dates.reserve_exact(games);
        all.elo.reserve_exact(games);
        all.traits.reserve_exact(games);
        all.plies.reserve_exact(games);
        all.eco.reserve_exact(games);
        all.players.reserve_exact(games);
        all.events.reserve_exact(games);
        all.own_numbers.reserve_exact(games);
        all
    }

    pub(super) fn push(&mut self, row: &GameRow) {
        // A day of an unknown month is not known.
        self.dates.push(earliest(date_number(row.date)));
        self.elo.push([row.white_elo, row.black_elo]);
        self.traits.push(Traits::new(row));
        self.plies.push(row.plies);
        self.eco.push(row.eco);
        self.players.push([row.white, row.black]);
        self.events.push(row.event);
        let number = row.own_number().to_le_bytes();
        self.own_numbers
            .push(number[..6].try_into().expect("six of eight"));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.dates.len()
    }

    /// A game, `None` if there is none with the id.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<Hot> {
        let at = id as usize;
        Some(Hot {
            date: *self.dates.get(at)?,
            elo: *self.elo.get(at)?,
            traits: *self.traits.get(at)?,
        })
    }

    /// What distinguishes a game from others of its players and its day: the number of its id at Lichess, or a fingerprint of its
    /// last position; 0 if neither is known.
    pub(super) fn own_number(&self, id: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.own_numbers[id as usize]);
        u64::from_le_bytes(bytes)
    }

    /// The id of a game at Lichess.
    pub(super) fn site_id(&self, id: u32) -> Option<SiteId> {
        SiteId::of_number(self.own_number(id))
    }

    /// The first and the last year, of the games whose year is known.
    pub(super) fn years(&self) -> Option<[u16; 2]> {
        let dates = self.dates.iter();
        let years = dates.filter_map(|date| date_of_number(*date).year());
        Some([years.clone().min()?, years.max()?])
    }
}

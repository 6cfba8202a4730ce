//! The games of an index in memory. They are stored in columns, so that a filter reads only the columns that it
//! needs.

use shakmaty::Color;

use super::dates::{date_of_number, earliest, latest};
use crate::{
    index::store::{EcoNumber, GameRow, SiteId, game_rows::date_number, results::Month},
    openings::OpeningNumber,
    pgn::{Date, GameResult, Mode, RatingGroup, Speed, doubled_mean},
    position::Variant,
};

/// The date, the ratings and the traits of a game, which the explorer holds in memory. Traits are properties with
/// few values, such as the result and the speed.
#[derive(Copy, Clone, Debug)]
pub(super) struct GameSummary {
    /// The date number (see [`super::dates`]), which grows with time.
    pub date: u32,
    pub elo: [u16; 2],
    pub traits: Traits,
}

/// The number of the rating group of games without a known rating. It follows the numbers of the real rating groups.
pub(super) const UNRATED: usize = RatingGroup::COUNT;

/// The result, speed, mode and rating group of a game, by which filters select games.
pub(super) struct TraitValues {
    pub result: GameResult,
    pub speed: Speed,
    pub mode: Mode,
    /// `None` if no rating is known.
    pub group: Option<RatingGroup>,
}

/// The traits of a game (properties with few values), packed into 16 bits.
///
/// Bits 0-1 contain the result, 2-4 the speed, 5 the mode (rated or casual), and 6-9 the rating group or [`UNRATED`].
/// Bit 10 says whether the positions of the game are indexed. Bits 11-14 contain the index of the variant plus one, or
/// 0 if the variant is unknown. Bit 15 says whether the date is the day on which the event began.
#[derive(Copy, Clone, Debug)]
pub(super) struct Traits(u16);

impl Traits {
    /// The number of values that the low 10 bits of traits can have. Filters test only these bits.
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

    /// Returns an iterator that decodes each number from 0 to [`COUNT`](Traits::COUNT) - 1, in ascending order. The
    /// item is `None` if the number encodes no valid traits.
    pub(super) fn all() -> impl Iterator<Item = Option<TraitValues>> {
        (0..Traits::COUNT as u16).map(|number| Traits(number).parts())
    }

    /// Returns the low 10 bits, which encode the result, speed, mode and rating group. They serve as an index into
    /// tables of the length [`COUNT`](Traits::COUNT).
    #[inline]
    pub(super) fn filter_index(self) -> usize {
        usize::from(self.0) % Traits::COUNT
    }

    /// Returns `true` if the positions of the game are indexed. Only such games count in answers.
    pub(super) fn is_indexed(self) -> bool {
        self.0 >> 10 & 1 == 1
    }

    /// Returns the variant of the game, or `None` if it is unknown.
    pub(super) fn variant(self) -> Option<Variant> {
        let number = usize::from(self.0 >> 11 & 15).checked_sub(1)?;
        Variant::ALL.get(number).copied()
    }

    /// Returns the index of the game's speed in [`Speed::ALL`].
    #[inline]
    pub(super) fn speed(self) -> usize {
        usize::from(self.0 >> 2 & 7)
    }

    /// Returns the number of the game's rating group, or [`UNRATED`] if both ratings are unknown.
    #[inline]
    pub(super) fn group(self) -> usize {
        usize::from(self.0 >> 6 & 15)
    }

    /// Returns the index of the game's result in [`GameResult::ALL`].
    #[inline]
    pub(super) fn result(self) -> usize {
        usize::from(self.0 & 3)
    }

    pub(super) fn winner(self) -> Option<Color> {
        match self.result() {
            1 => Some(Color::White),
            2 => Some(Color::Black),
            _ => None,
        }
    }

    fn parts(self) -> Option<TraitValues> {
        let group = match self.group() {
            UNRATED => None,
            number => Some(RatingGroup::all().nth(number)?),
        };
        Some(TraitValues {
            result: GameResult::ALL[self.result()],
            speed: *Speed::ALL.get(self.speed())?,
            mode: Mode::ALL[usize::from(self.0 >> 5 & 1)],
            group,
        })
    }
}

impl GameSummary {
    /// Returns the index of the game's result in [`GameResult::ALL`].
    #[inline]
    pub(super) fn result(&self) -> usize {
        self.traits.result()
    }

    /// Returns `true` if the game has a result, and `false` if it is unfinished (`*`).
    #[inline]
    pub(super) fn has_result(&self) -> bool {
        GameResult::ALL[self.result()] != GameResult::Unknown
    }

    pub(super) fn winner(&self) -> Option<Color> {
        self.traits.winner()
    }

    /// Returns the speed of the game and its mode, which is rated or casual.
    pub(super) fn speed_and_mode(&self) -> (Speed, Mode) {
        let asked = self.traits.parts().expect("the traits were made of these");
        (asked.speed, asked.mode)
    }

    /// Returns the last day on which the game may have been played, as a date number (see [`date_number`]). If only the
    /// first day of the event is known, the game may have been played at any later time, and the result is `u32::MAX`.
    pub(super) fn last_day(&self) -> u32 {
        match self.traits.0 >> 15 {
            0 => latest(self.date),
            _ => u32::MAX,
        }
    }

    pub(super) fn date(&self) -> Date {
        date_of_number(self.date)
    }

    /// Returns the year of the game, or 0 if it is unknown.
    #[inline]
    pub(super) fn year(&self) -> u16 {
        (self.date >> 9) as u16
    }

    /// Returns the year and month of the game. Parts that are unknown are 0.
    #[inline]
    pub(super) fn month(&self) -> Month {
        Month::new(self.year(), (self.date >> 5 & 15) as u8).unwrap_or_default()
    }

    /// Returns twice the mean of the players' known ratings. The mean itself may be a fraction. Returns 0 if both
    /// ratings are unknown.
    #[inline]
    pub(super) fn doubled_rating(&self) -> u32 {
        doubled_mean(self.elo)
    }

    #[inline]
    pub(super) fn elo_of(&self, color: Color) -> u16 {
        color.fold_wb(self.elo[0], self.elo[1])
    }
}

/// The games of an index in memory. Each property is stored in a column that is indexed by game id. A game takes
/// 34 bytes.
#[derive(Default, Debug)]
pub(super) struct GameColumns {
    /// The date numbers (see [`GameSummary::date`]).
    pub dates: Vec<u32>,
    pub elo: Vec<[u16; 2]>,
    pub traits: Vec<Traits>,
    pub plies: Vec<u16>,
    pub eco: Vec<EcoNumber>,
    pub openings: Vec<OpeningNumber>,
    /// The numbers of the names of White and Black.
    pub players: Vec<[u32; 2]>,
    pub events: Vec<u32>,
    /// The Lichess ids or fingerprints of final positions, encoded as by [`GameRow::id_or_fingerprint`].
    own_numbers: Vec<[u8; 6]>,
}

impl GameColumns {
    /// Creates empty columns with capacity for at least `games` games.
    pub(super) fn with_capacity(games: usize) -> GameColumns {
        let mut all = GameColumns::default();
        all.dates.reserve_exact(games);
        all.elo.reserve_exact(games);
        all.traits.reserve_exact(games);
        all.plies.reserve_exact(games);
        all.eco.reserve_exact(games);
        all.openings.reserve_exact(games);
        all.players.reserve_exact(games);
        all.events.reserve_exact(games);
        all.own_numbers.reserve_exact(games);
        all
    }

    pub(super) fn push(&mut self, row: &GameRow) {
        // Clears the day if the month is unknown.
        self.dates.push(earliest(date_number(row.date)));
        self.elo.push([row.white_elo, row.black_elo]);
        self.traits.push(Traits::new(row));
        self.plies.push(row.plies);
        self.eco.push(row.eco);
        self.openings.push(row.opening);
        self.players.push([row.white, row.black]);
        self.events.push(row.event);
        let number = row.id_or_fingerprint().to_le_bytes();
        self.own_numbers
            .push(number[..6].try_into().expect("six of eight"));
    }

    /// Returns the number of games.
    pub(super) fn len(&self) -> usize {
        self.dates.len()
    }

    /// Returns the summary of game `id`, or `None` if no game has this id.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<GameSummary> {
        let at = id as usize;
        Some(GameSummary {
            date: *self.dates.get(at)?,
            elo: *self.elo.get(at)?,
            traits: *self.traits.get(at)?,
        })
    }

    /// Returns a number that distinguishes game `id` from other games of the same players on the same day. This is the
    /// encoded Lichess id or, if the game has none, a fingerprint of its final position. Returns 0 if both are unknown.
    pub(super) fn id_or_fingerprint(&self, id: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.own_numbers[id as usize]);
        u64::from_le_bytes(bytes)
    }

    /// Returns the Lichess id of game `id`, or `None` if the game has none.
    pub(super) fn site_id(&self, id: u32) -> Option<SiteId> {
        SiteId::of_number(self.id_or_fingerprint(id))
    }

    /// Returns the earliest and the latest year in which a game was played, or `None` if no year is known.
    pub(super) fn years(&self) -> Option<[u16; 2]> {
        let dates = self.dates.iter();
        let years = dates.filter_map(|date| date_of_number(*date).year());
        Some([years.clone().min()?, years.max()?])
    }
}

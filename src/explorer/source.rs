//! One index that the explorer answers from: its games in memory, its names and lists read when they are asked for.

use std::{fs, path::Path, time::SystemTime};

use shakmaty::Color;

use crate::{
    error::{Error, Result},
    index::{
        Index,
        explored::{ListPlace, NameReader, StoredList},
        layout::{
            Contents, EcoNumber, GameRow, SiteId, Subject, folded,
            rows::{RESULTS, ROWS, date_number},
        },
    },
    pgn::{Date, GameResult, Mode, RatingGroup, Speed},
};

/// What most questions ask of a game, so that it lies together in memory.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hot {
    /// Year, month and day as one number that grows with time.
    pub date: u32,
    pub elo: [u16; 2],
    pub plies: u16,
    /// Bits 0-1 the result, 2-4 the speed, 5 the mode, 6-9 the group of ratings.
    pub traits: u16,
}

/// How many values [`Hot::traits`] can have.
pub(super) const TRAITS: usize = 1 << 10;

impl Hot {
    fn new(row: &GameRow) -> Hot {
        let group = row.group().number() as u16;
        let result = row.result_number() as u16;
        Hot {
            date: date_number(row.date),
            elo: [row.white_elo, row.black_elo],
            plies: row.plies,
            traits: result | (row.speed as u16) << 2 | (row.mode as u16) << 5 | group << 6,
        }
    }

    /// The number of the result.
    #[inline]
    pub(super) fn result(&self) -> usize {
        usize::from(self.traits & 3)
    }

    pub(super) fn winner(&self) -> Option<Color> {
        match self.traits & 3 {
            1 => Some(Color::White),
            2 => Some(Color::Black),
            _ => None,
        }
    }

    pub(super) fn date(&self) -> Date {
        Date::new(
            (self.date >> 9) as u16,
            (self.date >> 5 & 15) as u8,
            (self.date & 31) as u8,
        )
    }

    /// Year and month as one number.
    #[inline]
    pub(super) fn month(&self) -> u32 {
        self.date >> 5
    }

    #[inline]
    pub(super) fn rating_sum(&self) -> u32 {
        u32::from(self.elo[0]) + u32::from(self.elo[1])
    }

    #[inline]
    pub(super) fn elo_of(&self, color: Color) -> u16 {
        color.fold_wb(self.elo[0], self.elo[1])
    }
}

/// What the traits of a game say: result, speed, mode and group of ratings.
pub(super) fn traits_of(traits: usize) -> Option<(GameResult, Speed, Mode, RatingGroup)> {
    Some((
        RESULTS[traits & 3],
        *Speed::ALL.get(traits >> 2 & 7)?,
        Mode::ALL[traits >> 5 & 1],
        RatingGroup::all().nth(traits >> 6)?,
    ))
}

/// An index that is open, with its games in memory: 32 bytes of each.
#[derive(Debug)]
pub(super) struct Source {
    pub name: String,
    pub index: Index,
    pub contents: Contents,
    /// When the directory was changed last, as far as the system tells.
    pub changed: Option<SystemTime>,
    /// How many games stand in the sources before.
    pub first: u64,
    pub hot: Vec<Hot>,
    /// The numbers of the names of White and Black.
    pub players: Vec<[u32; 2]>,
    pub events: Vec<u32>,
    pub eco: Vec<EcoNumber>,
    site_ids: Vec<[u8; 6]>,
    names: NameReader,
}

impl Source {
    pub(super) fn open(name: String, path: &Path, first: u64) -> Result<Source> {
        let index = Index::open(path)?;
        let contents = index.contents()?.ok_or_else(|| {
            Error::file(
                path,
                "was made without --explorer: make it again with it to ask what was played",
            )
        })?;
        let games = index.game_count() as usize;
        let mut source = Source {
            name,
            contents,
            changed: fs::metadata(path).and_then(|data| data.modified()).ok(),
            first,
            hot: Vec::new(),
            players: Vec::new(),
            events: Vec::new(),
            eco: Vec::new(),
            site_ids: Vec::new(),
            names: NameReader::new(contents.names),
            index,
        };
        // A damaged count must not ask for more than there is.
        let likely = games.min(1 << 24);
        source.hot.reserve_exact(likely);
        source.players.reserve_exact(likely);
        source.events.reserve_exact(likely);
        source.eco.reserve_exact(likely);
        source.site_ids.reserve_exact(likely);
        for number in 0..source.index.game_count().div_ceil(ROWS) {
            for row in source.index.row_entry(number)? {
                source.push(&row);
            }
        }
        Ok(source)
    }

    fn push(&mut self, row: &GameRow) {
        self.hot.push(Hot::new(row));
        self.players.push([row.white, row.black]);
        self.events.push(row.event);
        self.eco.push(row.eco);
        let id = row.site_id.map_or(0, SiteId::number).to_le_bytes();
        self.site_ids
            .push(id[..6].try_into().expect("six of eight"));
    }

    /// How many games there are.
    pub(super) fn games(&self) -> u64 {
        self.hot.len() as u64
    }

    /// The id of a game at Lichess.
    pub(super) fn site_id(&self, id: u32) -> Option<SiteId> {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.site_ids[id as usize]);
        SiteId::of_number(u64::from_le_bytes(bytes))
    }

    /// A name by its number.
    pub(super) fn name(&self, number: u32) -> Result<String> {
        self.names.name(&self.index, number).map(String::from)
    }

    /// The numbers of the names that are a text, in any case.
    pub(super) fn numbers_of(&self, name: &str) -> Result<Vec<u32>> {
        let wanted = folded(name);
        let mut numbers = self.listed(Subject::name(&wanted))?;
        let mut failed = Ok(());
        // Another name might share the hash.
        numbers.retain(|number| match self.name(*number) {
            Ok(name) => folded(&name) == wanted,
            Err(err) => {
                failed = Err(err);
                false
            }
        });
        failed.map(|()| numbers)
    }

    /// Where the list of a subject stands.
    pub(super) fn place(&self, subject: Subject) -> Result<ListPlace> {
        self.index.find_list(self.contents.paging, subject)
    }

    /// The list of a subject, which stands in a place.
    pub(super) fn list(&self, subject: Subject, place: ListPlace) -> Result<StoredList> {
        match place {
            ListPlace::InPage(list) => Ok(list),
            ListPlace::Apart(apart) => self.index.chunks(subject, apart),
        }
    }

    /// The ids in the list of a subject, ascending.
    pub(super) fn listed(&self, subject: Subject) -> Result<Vec<u32>> {
        self.index.listed(self.contents.paging, subject)
    }

    pub(super) fn damaged(&self, problem: &str) -> Error {
        Error::file(
            self.index.path(),
            format!("is damaged: {problem}; make the index again"),
        )
    }
}

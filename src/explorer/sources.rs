//! The indexes that are answered as one, and their games by number.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use shakmaty::Color;

use super::{
    answer::{About, AboutSource, GameInfo, Player},
    query::{Filters, View},
    source::Source,
};
use crate::{
    error::{Error, Result},
    index::layout::{SiteId, Subject},
    position::Variant,
};

/// Several indexes, whose games are numbered on from one to the next.
pub(super) struct Sources(Vec<Source>);

impl Sources {
    /// Opens indexes under names.
    pub(super) fn open(sources: impl IntoIterator<Item = (String, PathBuf)>) -> Result<Sources> {
        let mut opened = Vec::new();
        let mut first = 0;
        for (name, path) in sources {
            let source = Source::open(name, &path, first)?;
            first += source.games();
            opened.push(source);
        }
        Ok(Sources(opened))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }

    /// What there is.
    pub(super) fn about(&self) -> About {
        let sources: Vec<AboutSource> = self.0.iter().map(about).collect();
        let years = sources.iter().filter_map(|source| source.years);
        About {
            version: env!("CARGO_PKG_VERSION"),
            games: sources.iter().map(|source| source.games).sum(),
            positions: sources.iter().map(|source| source.positions).sum(),
            years: years.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]),
            sources,
        }
    }

    /// The variant of the games, if all sources have a single one and the same.
    pub(super) fn variant(&self) -> Option<Variant> {
        let mut variants = self.0.iter().map(|source| source.index.variant().only());
        let first = variants.next()??;
        variants
            .all(|variant| variant == Some(first))
            .then_some(first)
    }

    /// A number that is another one when the sources have been made again, changed or renamed.
    pub(super) fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for source in &self.0 {
            source.name.hash(&mut hasher);
            source.index.path().hash(&mut hasher);
            (
                source.games(),
                source.contents.items,
                source.contents.positions,
            )
                .hash(&mut hasher);
            source.changed.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// How many games all sources have.
    pub(super) fn game_count(&self) -> u64 {
        self.0.last().map_or(0, |last| last.first + last.games())
    }

    /// Refuses filters for a source that does not exist.
    pub(super) fn check(&self, filters: &Filters) -> Result<()> {
        match &filters.source {
            Some(name) if self.0.iter().all(|source| source.name != *name) => {
                let names: Vec<&str> = self.0.iter().map(|source| &*source.name).collect();
                let problem = format!("is no source: name one of {}", names.join(", "));
                Err(Error::file(name, problem))
            }
            _ => Ok(()),
        }
    }

    /// The number of the game with an id: its id at Lichess, or its number with leading zeros.
    pub(super) fn find(&self, id: &str) -> Result<Option<u64>> {
        if is_number(id) {
            let number = id.parse().ok().filter(|_| id.len() >= 8);
            return Ok(number.filter(|number| *number < self.game_count()));
        }
        if let Some(site_id) = SiteId::parse(id) {
            for source in &self.0 {
                let ids = source.listed(Subject::site_id(site_id))?;
                let is_it = |id: &&u32| {
                    u64::from(**id) < source.games() && source.rows.site_id(**id) == Some(site_id)
                };
                if let Some(id) = ids.iter().find(is_it)
                    && self.is_of_one_game(site_id)?
                {
                    return Ok(Some(source.first + u64::from(*id)));
                }
            }
        }
        Ok(None)
    }

    /// Whether no two games have an id at Lichess.
    fn is_of_one_game(&self, id: SiteId) -> Result<bool> {
        let mut games = 0;
        for source in &self.0 {
            games += source.list_length(Subject::site_id(id))?;
        }
        Ok(games == 1)
    }

    /// The source of a game, and its id there.
    pub(super) fn place(&self, number: u64) -> Result<(&Source, u32)> {
        let after = self.0.partition_point(|source| source.first <= number);
        let source = after.checked_sub(1).map(|at| &self.0[at]);
        match source {
            Some(source) if number - source.first < source.games() => {
                Ok((source, (number - source.first) as u32))
            }
            _ => {
                let games = self.game_count();
                let problem = format!("no game has this number: there are {games}");
                Err(Error::file(number.to_string(), problem))
            }
        }
    }

    /// What a view shows of a game.
    pub(super) fn info(&self, number: u64, view: View) -> Result<GameInfo> {
        let (source, id) = self.place(number)?;
        let hot = source.rows.get(id).expect("the source has the game");
        let [white, black] = source.rows.players[id as usize];
        let (speed, mode) = hot.speed_and_mode();
        let date = hot.date();
        let of_masters = view == View::Masters;
        Ok(GameInfo {
            number,
            id: match source.rows.site_id(id) {
                Some(id) if !is_number(&id.text()) && self.is_of_one_game(id)? => id.text(),
                _ => format!("{number:08}"),
            },
            winner: hot.winner(),
            speed: (!of_masters).then_some(speed),
            mode: (!of_masters).then_some(mode),
            black: Player {
                name: source.name(black)?,
                rating: hot.elo_of(Color::Black),
            },
            white: Player {
                name: source.name(white)?,
                rating: hot.elo_of(Color::White),
            },
            year: date.year().unwrap_or(0),
            month: date
                .year()
                .zip(date.month())
                .map(|(year, month)| format!("{year:04}-{month:02}")),
        })
    }
}

/// Whether an id is that of a game by its number, whatever a tag says.
fn is_number(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_digit())
}

fn about(source: &Source) -> AboutSource {
    let files = source
        .index
        .files()
        .filter_map(|(_, path)| path.file_name());
    AboutSource {
        name: source.name.clone(),
        games: source.games(),
        positions: source.contents.positions,
        years: source.rows.years(),
        variant: source.index.variant().to_string(),
        files: files
            .map(|name| name.to_string_lossy().into_owned())
            .collect(),
    }
}

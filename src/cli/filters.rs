//! The options that filter games: one set for the commands that read PGN, one for the commands that query an index.

use std::{
    num::ParseIntError,
    path::{Path, PathBuf},
};

use clap::ArgGroup;
use polybook::{
    explorer::{Explorer, Filters, NameMatch, RatingGroup, Speed},
    index::Index,
    pgn::{Date, EcoRange, GameFilter, GameResult, TagText, TimeControlRange},
};
use shakmaty::Color;

use super::usage::Usage;

/// The group of the options that take a name. `--exact` requires one of them.
const NAMES: &str = "names";

/// The heading of the options that filter games.
pub const GAMES: &str = "Which games count";

/// The options that filter the games of PGN files.
#[derive(clap::Args, Clone, PartialEq, Default, Debug)]
#[command(next_help_heading = GAMES, group = ArgGroup::new(NAMES).multiple(true))]
pub struct GameFilterArgs {
    /// Games in which both players are rated at least N; unrated games are kept
    #[arg(long, value_name = "N")]
    min_elo: Option<u32>,

    /// Games in which both players are rated at most N; unrated games are kept
    #[arg(long, value_name = "N")]
    max_elo: Option<u32>,

    /// Games in which both players have a rating
    #[arg(long)]
    require_elo: bool,

    /// Games whose date says the year
    #[arg(long)]
    require_date: bool,

    /// Games of at least N half-moves; --max-ply limits how many of them count
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_plies: usize,

    /// Games played on DATE (YYYY, YYYY.MM or YYYY.MM.DD) or later; unknown dates are kept
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,

    /// Games played on DATE or earlier
    #[arg(long, value_name = "DATE")]
    until: Option<Date>,

    /// Games with this result: 1-0, 0-1, 1/2-1/2 or *; may be given several times
    #[arg(long, value_name = "R", value_parser = result)]
    result: Vec<GameResult>,

    /// Games in which NAME is part of a player's name; may be given several times: any of them
    #[arg(long, value_name = "NAME", group = NAMES)]
    player: Vec<String>,

    /// Games in which NAME is part of White's name; may be given several times
    #[arg(long, value_name = "NAME", group = NAMES)]
    white: Vec<String>,

    /// Games in which NAME is part of Black's name; may be given several times
    #[arg(long, value_name = "NAME", group = NAMES)]
    black: Vec<String>,

    /// Names must match in full
    #[arg(long, requires = NAMES)]
    exact: bool,

    /// Games whose ECO tag is in the range B20-B99, B2 or B; games without the tag do not count; may be given several
    /// times
    #[arg(long, value_name = "RANGE")]
    eco: Vec<EcoRange>,

    /// Games whose tag NAME contains TEXT, in any case; may be given several times: all of them
    #[arg(long, value_name = "NAME=TEXT")]
    tag: Vec<TagText>,

    /// Games whose tag NAME does not contain TEXT; may be given several times
    #[arg(long, value_name = "NAME=TEXT")]
    not_tag: Vec<TagText>,

    /// Games with the word "rated" in their Event tag, as servers write it
    #[arg(long)]
    rated: bool,

    /// Games in which a player has MIN to MAX seconds for 40 moves, base + 40 x increment: 180-480, 600- or -60
    #[arg(long, value_name = "MIN-MAX", allow_hyphen_values = true)]
    time_control: Option<TimeControlRange>,
}

fn result(text: &str) -> Result<GameResult, String> {
    GameResult::from_token(text.as_bytes()).ok_or_else(|| "write 1-0, 0-1, 1/2-1/2 or *".to_owned())
}

impl GameFilterArgs {
    /// Returns the filter, or `None` if no option is given.
    pub fn given(&self) -> Result<Option<GameFilter>, Usage> {
        if *self == GameFilterArgs::default() {
            return Ok(None);
        }
        let filter = GameFilter::from(self.clone());
        filter.check().map_err(|err| Usage(err.to_string()))?;
        Ok(Some(filter))
    }
}

impl From<GameFilterArgs> for GameFilter {
    fn from(args: GameFilterArgs) -> GameFilter {
        GameFilter {
            min_elo: args.min_elo,
            max_elo: args.max_elo,
            require_elo: args.require_elo,
            require_date: args.require_date,
            min_plies: args.min_plies,
            since: args.since,
            until: args.until,
            results: args.result,
            players: args.player,
            white: args.white,
            black: args.black,
            exact: args.exact,
            eco: args.eco,
            tags: args.tag,
            not_tags: args.not_tag,
            rated: args.rated,
            time_control: args.time_control,
        }
    }
}

/// The heading of the options that filter the games of an index.
const FILTERS: &str = "Which games count (needs an index made with --explorer)";

/// The options that filter the games of an index.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = FILTERS, group = ArgGroup::new(NAMES).multiple(true))]
pub struct ExplorerFilterArgs {
    /// Games in which NAME is part of a player's name, in any case
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    player: Option<String>,

    /// Games in which the player has this color
    #[arg(long, value_name = "white|black", value_parser = color, requires = "player")]
    color: Option<Color>,

    /// Games in which NAME is part of the other player's name
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    opponent: Option<String>,

    /// Names must match in full
    #[arg(long, requires = NAMES)]
    exact: bool,

    /// Games played on DATE (YYYY, YYYY.MM or YYYY.MM.DD) or later; unknown dates are kept
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,

    /// Games played on DATE or earlier
    #[arg(long, value_name = "DATE")]
    until: Option<Date>,

    /// Games in which both players are rated at least N; unrated games are kept
    #[arg(long, value_name = "N")]
    min_elo: Option<u32>,

    /// Games in which both players are rated at most N; unrated games are kept
    #[arg(long, value_name = "N")]
    max_elo: Option<u32>,

    /// Games of this speed: ultraBullet, bullet, blitz, rapid, classical or correspondence; may be given several times
    #[arg(long, value_name = "SPEED")]
    speed: Vec<Speed>,

    /// Games of the rating group of N, by the mean of the known ratings: 0, 1000, 1200, 1400, 1600, 1800, 2000, 2200 or 2500
    /// and up; unknown for games without a known rating; may be given several times
    #[arg(long, value_name = "N|unknown", value_parser = rating_group)]
    rating: Vec<Option<RatingGroup>>,

    /// Games with this result: 1-0, 0-1, 1/2-1/2 or *; may be given several times
    #[arg(long, value_name = "R", value_parser = result)]
    result: Vec<GameResult>,

    /// Games whose ECO tag is in the range B20-B99, B2 or B; games without the tag do not count
    #[arg(long, value_name = "RANGE")]
    eco: Option<EcoRange>,

    /// Games in which NAME is part of the event's name, in any case
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    event: Option<String>,
}

/// Parses a name. A blank name is an error, because it would match every name.
fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write at least one letter of the name".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a rating group; `None` is for games without a known rating.
fn rating_group(text: &str) -> Result<Option<RatingGroup>, ParseIntError> {
    match text {
        "unknown" => Ok(None),
        text => text.parse().map(Some),
    }
}

fn color(text: &str) -> Result<Color, String> {
    text.parse().map_err(|_| "write white or black".to_owned())
}

impl ExplorerFilterArgs {
    /// Returns `true` if no filter is given, so that all games count.
    pub fn are_none(&self) -> bool {
        let filters = Filters {
            names: NameMatch::default(),
            ..self.unchecked()
        };
        filters == Filters::default()
    }

    /// Returns the filters for the explorer.
    ///
    /// Returns an error if the filters contradict each other, so that no game can pass them.
    pub fn filters(&self) -> Result<Filters, Usage> {
        let filters = self.unchecked();
        filters.check().map_err(|err| Usage(err.to_string()))?;
        Ok(filters)
    }

    fn unchecked(&self) -> Filters {
        Filters {
            speeds: (!self.speed.is_empty()).then(|| self.speed.clone()),
            groups: (!self.rating.is_empty())
                .then(|| self.rating.iter().flatten().copied().collect()),
            unrated: self.rating.contains(&None),
            since: self.since,
            until: self.until,
            min_elo: self.min_elo,
            max_elo: self.max_elo,
            player: self.player.clone(),
            color: self.color,
            opponent: self.opponent.clone(),
            results: self.result.clone(),
            eco: self.eco.clone(),
            event: self.event.clone(),
            names: match self.exact {
                true => NameMatch::Whole,
                false => NameMatch::Part,
            },
            ..Filters::default()
        }
    }
}

/// Returns an error, with similar names, if no game contains a name of the filters.
pub fn check_names(explorer: &Explorer, filters: &Filters) -> anyhow::Result<()> {
    match explorer.unknown_name(filters)? {
        Some(unknown) => Err(anyhow::anyhow!("{unknown}")),
        None => Ok(()),
    }
}

/// Opens the explorer of several indexes. Each index is named after its directory.
pub fn explorer_of(indexes: &[PathBuf]) -> anyhow::Result<Explorer> {
    let name = |path: &Path| {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let sources = indexes.iter().map(|path| (name(path), path.clone()));
    Ok(Explorer::open(sources)?)
}

/// Returns the index if it is the only one, was made without the explorer's data, and no filter needs this data.
pub fn plain_index(
    indexes: &[PathBuf],
    filters: &ExplorerFilterArgs,
) -> anyhow::Result<Option<Index>> {
    let [path] = indexes else {
        return Ok(None);
    };
    let index = Index::open(path)?;
    if index.has_explorer_data()? {
        return Ok(None);
    }
    if !filters.are_none() {
        return Err(needs_explorer(path).into());
    }
    Ok(Some(index))
}

/// Returns the error for a query that needs the explorer's data, which the index does not contain.
pub fn needs_explorer(index: &Path) -> Usage {
    Usage(format!(
        "this needs an index made with --explorer: make {} again with that option",
        index.display()
    ))
}

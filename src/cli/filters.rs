//! The options that filter games: one set for the commands that read PGN, one for the commands that query an index.

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use polybook::{
    explorer::{
        Explorer, Filters, Line, MatchedNames, NameMatch, Page, Query, RatingGroup, RatingRange,
        Sort, Speed,
    },
    index::Index,
    make_book::Totals,
    openings::OpeningFilter,
    pgn::{Date, EcoRange, GameFilter, GameResult, TagText, TimeControlRange, UnknownRatingGroup},
};
use serde_json::{Value, json};
use shakmaty::Color;

use super::{
    Context, counted, index_cache::index_of, input::may_have_games, resources::count, usage::Usage,
    weighting::one_of,
};

/// The id of the clap group that contains the options for names of players and events. `--exact` can be given only
/// together with one of these options.
const NAMES: &str = "names";

/// The ids of the options that filter games by event or opening. Some commands accept each of these options only once,
/// and use this list to report a repeated option as an error. Other commands accept repeated options.
pub const ONE_NAME: [&str; 3] = ["event", "eco", "opening"];

/// The heading above the options that filter games, in the help of a command.
pub const GAMES: &str = "Which games count";

/// The options that filter games by the ratings of the players.
#[derive(clap::Args, Clone, PartialEq, Default, Debug)]
struct RatingArgs {
    /// Keep games in which both players are rated N or higher. A player without a rating does not exclude the game
    #[arg(long, value_name = "N")]
    min_elo: Option<u32>,

    /// Keep games in which both players are rated N or lower. A player without a rating does not exclude the game
    #[arg(long, value_name = "N")]
    max_elo: Option<u32>,

    /// Keep only games in which both players have a rating
    #[arg(long)]
    require_elo: bool,
}

/// The options that filter games by date.
#[derive(clap::Args, Clone, PartialEq, Default, Debug)]
pub struct DateArgs {
    /// Keep games played on DATE (YYYY, YYYY.MM or YYYY.MM.DD) or later. Games without a known date are kept
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,

    /// Keep games played on DATE or earlier. Games without a known date are kept
    #[arg(long, value_name = "DATE")]
    until: Option<Date>,
}

impl DateArgs {
    /// Returns the filter that the options describe. Returns an error if `--since` is later than `--until`.
    pub fn filter(&self) -> Result<GameFilter, Usage> {
        let filter = GameFilter {
            since: self.since,
            until: self.until,
            ..GameFilter::default()
        };
        filter.check().map_err(|err| Usage(err.to_string()))?;
        Ok(filter)
    }

    /// Returns `true` if the user gave none of the options.
    pub fn are_none(&self) -> bool {
        *self == DateArgs::default()
    }
}

/// The options that filter the games of PGN files.
#[derive(clap::Args, Clone, PartialEq, Default, Debug)]
#[command(next_help_heading = GAMES, group = ArgGroup::new(NAMES).multiple(true))]
pub struct GameFilterArgs {
    #[command(flatten)]
    ratings: RatingArgs,

    /// Keep only games with a known year
    #[arg(long)]
    require_date: bool,

    /// Keep games with at least N half-moves
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<usize>(0))]
    min_plies: usize,

    #[command(flatten)]
    dates: DateArgs,

    /// Keep games with this result: 1-0, 0-1, 1/2-1/2 or *; can be given several times
    #[arg(long, value_name = "R", value_parser = result)]
    result: Vec<GameResult>,

    /// Keep games in which White's or Black's name contains NAME. If the option is given several times, games that
    /// match any of the names are kept
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    player: Vec<String>,

    /// Keep games in which White's name contains NAME. If the option is given several times, games that match any of
    /// the names are kept
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    white: Vec<String>,

    /// Keep games in which Black's name contains NAME. If the option is given several times, games that match any of
    /// the names are kept
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    black: Vec<String>,

    /// Match only whole names in --player, --white and --black
    #[arg(long, requires = NAMES)]
    exact: bool,

    /// Keep games whose opening code (tag ECO) is in this range, such as B20-B99, B2 (for B20-B29) or B; can be given
    /// several times
    #[arg(long, value_name = "RANGE")]
    eco: Vec<EcoRange>,

    /// Keep games whose tag NAME contains TEXT, ignoring case. If the option is given several times, only games that
    /// match all of them are kept
    #[arg(long, value_name = "NAME=TEXT")]
    tag: Vec<TagText>,

    /// Keep games whose tag NAME does not contain TEXT, ignoring case. If the option is given several times, games that
    /// match none of them are kept
    #[arg(long, value_name = "NAME=TEXT")]
    not_tag: Vec<TagText>,

    /// Keep games whose tag Event contains the word "rated", which Lichess writes for rated games
    #[arg(long)]
    rated: bool,

    /// Keep games in which the time for 40 moves (base time + 40 x increment) is from MIN to MAX seconds, such as
    /// 180-480, 600- or -60
    #[arg(long, value_name = "MIN-MAX", allow_hyphen_values = true)]
    time_control: Option<TimeControlRange>,
}

fn result(text: &str) -> Result<GameResult, String> {
    GameResult::from_text(text.as_bytes()).ok_or_else(|| "use 1-0, 0-1, 1/2-1/2 or *".to_owned())
}

impl GameFilterArgs {
    /// Returns the filter that the options describe, or `None` if the user gave none of them. Returns an error if the
    /// options contradict each other, because no game could pass them.
    pub fn given(&self) -> Result<Option<GameFilter>, Usage> {
        if *self == GameFilterArgs::default() {
            return Ok(None);
        }
        let filter = GameFilter::from(self.clone());
        filter.check().map_err(|err| Usage(err.to_string()))?;
        Ok(Some(filter))
    }

    /// Returns the filter that the options describe, or `None` if the user gave none of them. The filter treats the
    /// names given with `--player` as names of the player with the color `color`, as if they had been given with
    /// `--white` or `--black`. Returns an error if the user gave names both with `--player` and with the option for
    /// `color`. `whose` describes this player in the error message, for example `opponent`.
    pub fn given_for_color(&self, color: Color, whose: &str) -> Result<Option<GameFilter>, Usage> {
        let Some(mut filter) = self.given()? else {
            return Ok(None);
        };
        let names = match color {
            Color::White => &mut filter.white,
            Color::Black => &mut filter.black,
        };
        match (names.is_empty(), filter.players.is_empty()) {
            (true, _) => *names = std::mem::take(&mut filter.players),
            (false, true) => (),
            (false, false) => {
                return Err(Usage(format!(
                    "--player and --{color} both give the name of the {whose}: give all names with the same option"
                )));
            }
        }
        Ok(Some(filter))
    }
}

impl From<GameFilterArgs> for GameFilter {
    fn from(args: GameFilterArgs) -> GameFilter {
        GameFilter {
            min_elo: args.ratings.min_elo,
            max_elo: args.ratings.max_elo,
            require_elo: args.ratings.require_elo,
            require_date: args.require_date,
            min_plies: args.min_plies,
            since: args.dates.since,
            until: args.dates.until,
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

/// The heading above the options that filter the games of an index, in the help of a command.
const FILTERS: &str = "Which games count (needs an explorer's index)";

/// The options that filter the games of an index.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = FILTERS, group = ArgGroup::new(NAMES).multiple(true))]
pub struct ExplorerFilterArgs {
    /// Keep games of the player whose name contains NAME, ignoring case. If the option is given several times, the
    /// names count as names of the same player
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    player: Vec<String>,

    /// Keep games in which the player whom --player names has this color
    #[arg(long, value_name = "white|black", value_parser = color)]
    color: Option<Color>,

    /// Keep games against an opponent whose name contains NAME. If the option is given several times, games that match
    /// any of the names are kept
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    opponent: Vec<String>,

    /// Keep games in which the opponent of the player has a rating from LOW to HIGH, such as 2000-2199, 2000- or -2199
    #[arg(long, value_name = "LOW-HIGH", allow_hyphen_values = true)]
    opponent_rating: Option<RatingRange>,

    /// Match only whole names in --player, --opponent and --event
    #[arg(long, requires = NAMES)]
    exact: bool,

    #[command(flatten)]
    dates: DateArgs,

    #[command(flatten)]
    ratings: RatingArgs,

    /// Keep only games with a known year
    #[arg(long)]
    require_date: bool,

    /// Keep games of this speed: ultraBullet, bullet, blitz, rapid, classical or correspondence. Separate several with
    /// commas, or give the option several times
    #[arg(long, value_name = "SPEED", value_delimiter = ',')]
    speed: Vec<Speed>,

    /// Keep games whose mean rating is in the group that begins at N: 0, 1000, 1200, 1400, 1600, 1800, 2000, 2200 or
    /// 2500. The value unknown keeps games in which no rating is known. Separate several with commas, or give the
    /// option several times
    #[arg(long, value_name = "N|unknown", value_parser = rating_group, value_delimiter = ',')]
    rating: Vec<Option<RatingGroup>>,

    /// Keep games with this result: 1-0, 0-1, 1/2-1/2 or *; can be given several times. With --player, win keeps the
    /// games that the player won, and loss the games that the player lost
    #[arg(long, value_name = "R", value_parser = result_option)]
    result: Vec<ResultOption>,

    /// Keep games whose opening code (tag ECO) is in this range, such as B20-B99, B2 (for B20-B29) or B
    #[arg(long, value_name = "RANGE")]
    eco: Option<EcoRange>,

    /// Keep games whose moves lead to this opening, whatever their tags say. Give a part of the opening's name, or a
    /// range of ECO codes such as B20-B99. A name such as Sicilian Defense includes all variations of this opening
    #[arg(long, value_name = "NAME|CODES")]
    opening: Option<OpeningFilter>,

    /// Keep games of an event whose name contains NAME, ignoring case
    #[arg(long, value_name = "NAME", value_parser = name, group = NAMES)]
    event: Option<String>,

    /// Count a game once even if the indexes contain several copies of it (once), or count every copy (all) [default:
    /// all; for prepare, once]
    #[arg(long, value_name = "once|all", value_parser = one_of([("once", true), ("all", false)]))]
    pub duplicates: Option<bool>,
}

/// A value of the option `--result`: a result of the game, or a win or loss of the player whom `--player` names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum ResultOption {
    Game(GameResult),
    PlayerWon(bool),
}

fn result_option(text: &str) -> Result<ResultOption, String> {
    match text {
        "win" => Ok(ResultOption::PlayerWon(true)),
        "loss" => Ok(ResultOption::PlayerWon(false)),
        text => GameResult::from_text(text.as_bytes())
            .map(ResultOption::Game)
            .ok_or_else(|| {
                "use 1-0, 0-1, 1/2-1/2 or *; with --player, win and loss are also possible"
                    .to_owned()
            }),
    }
}

/// Parses the name of a player or event. Returns an error if the text is blank, because a blank name would match
/// every name.
pub fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("give at least one letter of the name".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses the lowest rating of a rating group, such as `1600`. The text `unknown` becomes `None`, which selects games
/// without a known rating.
fn rating_group(text: &str) -> Result<Option<RatingGroup>, UnknownRatingGroup> {
    match text {
        "unknown" => Ok(None),
        text => text.parse().map(Some),
    }
}

fn color(text: &str) -> Result<Color, String> {
    let name = text.to_ascii_lowercase();
    name.parse().map_err(|_| "use white or black".to_owned())
}

impl ExplorerFilterArgs {
    /// Returns `true` if the user gave no option that filters games.
    pub fn are_none(&self) -> bool {
        let filters = Filters {
            names: NameMatch::default(),
            ..self.unchecked()
        };
        filters == Filters::default()
    }

    /// Returns `true` if the user gave `--result`. The scores of the games that it keeps say nothing about a player.
    pub fn select_by_result(&self) -> bool {
        !self.result.is_empty()
    }

    /// Returns `true` if the user gave `--player`.
    pub fn name_player(&self) -> bool {
        !self.player.is_empty()
    }

    /// Returns `true` if the user gave `--opponent`.
    pub fn name_opponent(&self) -> bool {
        !self.opponent.is_empty()
    }

    /// Returns the filters that the options describe. Returns an error if the filters contradict each other, because no
    /// game could pass them.
    pub fn filters(&self) -> Result<Filters, Usage> {
        let filters = self.unchecked();
        let of_player = [
            (filters.color.is_some(), "--color"),
            (filters.opponent_rating.is_some(), "--opponent-rating"),
            (filters.won || filters.lost, "--result win or loss"),
        ];
        let given = of_player
            .iter()
            .find(|(is_given, _)| *is_given && !self.name_player());
        Usage::refuse(given.map(|(_, option)| *option), "needs --player")?;
        filters.check().map_err(|err| Usage(err.to_string()))?;
        Ok(filters)
    }

    fn unchecked(&self) -> Filters {
        let results = self.result.iter();
        let results = results.filter_map(|wanted| match wanted {
            ResultOption::Game(result) => Some(*result),
            ResultOption::PlayerWon(_) => None,
        });
        Filters {
            speeds: (!self.speed.is_empty()).then(|| self.speed.clone()),
            groups: (!self.rating.is_empty())
                .then(|| self.rating.iter().flatten().copied().collect()),
            unrated: self.rating.contains(&None),
            since: self.dates.since,
            until: self.dates.until,
            min_elo: self.ratings.min_elo,
            max_elo: self.ratings.max_elo,
            require_elo: self.ratings.require_elo,
            require_date: self.require_date,
            players: self.player.clone(),
            color: self.color,
            opponents: self.opponent.clone(),
            opponent_rating: self.opponent_rating,
            won: self.result.contains(&ResultOption::PlayerWon(true)),
            lost: self.result.contains(&ResultOption::PlayerWon(false)),
            results: results.collect(),
            eco: self.eco.clone(),
            opening: self.opening.clone(),
            event: self.event.clone(),
            fold_duplicates: self.duplicates.unwrap_or(false),
            names: match self.exact {
                true => NameMatch::Whole,
                false => NameMatch::Part,
            },
            // No option sets the following filters. They are listed so that a new filter causes a compile error here
            // until somebody has considered it.
            modes: None,
            skip_unfinished: false,
            min_plies: 0,
            source: None,
        }
    }
}

/// Reports the names in `filters` that occur in no game of `explorer`. `has_games` is `true` if at least one game
/// passes the filters.
///
/// If no game passes, and all names that one filter contains (of a player, an opponent or an event) are unknown,
/// returns an error that lists all unknown names. Otherwise, if the filter for players or for opponents contains
/// several names, prints a warning for each unknown name.
///
/// Prints a note if a name matches several players. Returns the names that the filters match.
pub fn check_names(
    explorer: &Explorer,
    filters: &Filters,
    has_games: bool,
    context: Context,
) -> anyhow::Result<MatchedNames> {
    if !has_games && explorer.unknown_name(filters)?.is_some() {
        let unknown = explorer.unknown_names(filters)?;
        let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        return Err(anyhow::anyhow!("{}", unknown.join("; ")));
    }
    if filters.players.len() > 1 || filters.opponents.len() > 1 {
        for unknown in explorer.unknown_names(filters)? {
            context.say(&format!("warning: {unknown}\n"));
        }
    }
    let matched = explorer.matched_names(filters)?;
    context.warn(&matched.notes);
    Ok(matched)
}

/// Adds the names of players that the filters match to a JSON document. Adds no field for a filter that the user did
/// not give.
pub fn add_matched(document: &mut Value, matched: &MatchedNames) {
    if !matched.players.is_empty() {
        document["matched_players"] = json!(matched.players);
    }
    if !matched.opponents.is_empty() {
        document["matched_opponents"] = json!(matched.opponents);
    }
}

/// Prints how many games pass the filters but begin in another position than the starting position of `line`, and how to
/// see them. Returns their number.
pub fn say_other_starts(
    explorer: &Explorer,
    line: &Line,
    filters: &Filters,
    context: Context,
) -> anyhow::Result<u64> {
    let Some(others) = explorer.other_starts(line, filters)? else {
        return Ok(0);
    };
    let (games, begin) = (
        counted(others.games, "game"),
        if others.games == 1 { "begins" } else { "begin" },
    );
    // The tag cannot be read if the PGN file is gone.
    let text = explorer.text(others.first).unwrap_or_default();
    let fen = tag_value(&text, "FEN").map_or_else(
        || "the FEN of such a position".to_owned(),
        |fen| format!("\"{fen}\""),
    );
    context.say(&format!(
        "{games} {begin} in another position and {} only in the positions that {}: give such a position, for example \
         with --fen {fen}\n",
        if others.games == 1 { "counts" } else { "count" },
        if others.games == 1 { "it reaches" } else { "they reach" },
    ));
    Ok(others.games)
}

/// Returns the value of a tag in the PGN text of a game, or `None` if the game has no such tag, or a value that no FEN
/// has.
fn tag_value(text: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let (_, rest) = text.split_once(&format!("[{name} \""))?;
    let (value, _) = rest.split_once('"')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " /-[]~+".contains(c);
    value.chars().all(is_plain).then(|| value.to_owned())
}

/// Adds the number of games that begin in another position to a JSON document, unless it is 0.
pub fn add_other_starts(document: &mut Value, games: u64) {
    if games > 0 {
        document["other_starts"] = json!(games);
    }
}

/// Returns warnings about games that pass a filter of `query` only because a value is unknown. Games without a known
/// date pass filters by date. Games with an unknown rating pass filters by rating.
pub fn passed_unknown(explorer: &Explorer, query: &Query) -> polybook::Result<Vec<String>> {
    let count = |query: &Query| {
        let page = Page {
            skip: 0,
            limit: 0,
            sort: Sort::Id,
            fold_matches: false,
        };
        explorer.game_numbers(query, &page).map(|(games, _)| games)
    };
    let passed = |require: fn(&mut Filters)| {
        let mut required = query.clone();
        require(&mut required.filters);
        // An index of counts cannot distinguish games without a date or a rating.
        if required.filters == query.filters || explorer.needs_games(&required.filters).is_some() {
            return Ok(0);
        }
        polybook::Result::Ok(count(query)? - count(&required)?)
    };
    let totals = Totals {
        undated: passed(|filters| {
            filters.require_date |= filters.since.is_some() || filters.until.is_some();
        })?,
        unrated: passed(|filters| {
            filters.require_elo |= filters.min_elo.is_some() || filters.max_elo.is_some();
        })?,
        ..Totals::default()
    };
    Ok(totals.warnings().collect())
}

/// Opens indexes as the sources of one explorer, which answers queries from all of them together. For a PGN file, opens
/// its index in the user's cache, and first builds this index if it does not exist. The name of a source is the name of
/// its directory or file, without the extension.
pub fn explorer_of(indexes: &[impl AsRef<Path>], context: Context) -> anyhow::Result<Explorer> {
    let source = |path: &Path| {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        anyhow::Ok((
            name.to_string_lossy().into_owned(),
            index_of(path, context)?,
        ))
    };
    let sources: anyhow::Result<Vec<_>> =
        indexes.iter().map(|path| source(path.as_ref())).collect();
    Ok(Explorer::open(sources?)?)
}

/// Opens the index in `indexes` if it is the only one and was made with `make-book --leveldb`. Returns `None` if there
/// are several indexes, or if the only one is an explorer's index or a PGN file.
///
/// Returns an error if the index was made with `--leveldb` and the user gave filters. Only explorer's indexes can be
/// filtered.
pub fn plain_index(
    indexes: &[PathBuf],
    filters: &ExplorerFilterArgs,
) -> anyhow::Result<Option<Index>> {
    let [path] = indexes else {
        return Ok(None);
    };
    if may_have_games(path)? {
        return Ok(None);
    }
    let index = Index::open(path)?;
    if index.kind().is_of_explorer() {
        return Ok(None);
    }
    if !filters.are_none() {
        return Err(needs_explorer(path).into());
    }
    Ok(Some(index))
}

/// Returns the error for a query that the index at the path `index` cannot answer, because it is not an explorer's
/// index. An explorer's index is made with `make-book --explorer`.
pub fn needs_explorer(index: &Path) -> Usage {
    Usage(format!(
        "{}: this index was made with --leveldb, but this command needs an explorer's index: make an explorer's index \
         from the games with make-book --explorer DIR",
        index.display()
    ))
}

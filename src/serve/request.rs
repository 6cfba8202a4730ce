//! Parses requests: splits query strings into [`Parameters`], checks the values, and converts them to queries for the
//! explorer.

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::RangeInclusive,
    sync::LazyLock,
};

use shakmaty::{Color, uci::UciMove};

use super::refusal::Refusal;
use crate::{
    chess::position::Variant,
    explore::explorer::{Line, Page, Query, View},
    games::{
        pgn::ConditionError,
        selection::{Duplicates, Evaluator, Selection, Spelling, check_names, condition_name},
    },
};

/// The maximum number of moves in the parameter `play`, which contains the moves that lead to the position.
pub(super) const MAX_PLIES: usize = 600;

/// The number of games in a response with a list of games if the request does not contain the parameter `limit`.
pub(super) const DEFAULT_PAGE_LENGTH: u32 = 20;
/// The maximum number of games in a response with a list of games.
pub(super) const MAX_PAGE_LENGTH: u32 = 200;

/// The maximum value of the parameter `skip`, the number of games at the start of a list that are left out. The server
/// must also sort the skipped games, which takes time.
pub(super) const MAX_SKIP: u32 = 10_000;

/// A list of the values of the parameter `variant`, for error messages.
pub(super) const VARIANTS: &str = "standard, chess960, antichess, atomic, crazyhouse, horde, kingOfTheHill, racingKings or \
                        threeCheck";
/// A list of the values of the parameter `result`, for error messages.
const RESULTS: &str = "1-0, 0-1, 1/2-1/2, draw, *, win or loss";
/// A list of the values that [`side`] parses, for error messages.
pub(super) const SIDES: &str = "white, black or both";

/// The names of the parameters that determine a position.
const POSITION_PARAMETERS: [&str; 3] = ["variant", "fen", "play"];

/// The names of the parameters that say which games count: the conditions of a [`Selection`], and the names that
/// Lichess gives some of them.
static FILTER_PARAMETERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = Selection::condition_names().into_iter();
    let names = names
        .chain(Selection::ALIASES)
        .filter(|name| *name != "drop-duplicates");
    names
        .map(|name| &*String::leak(Spelling::Parameter.of(name)))
        .collect()
});

/// Returns the names of the parameters that select which games count.
pub(super) fn condition_parameters() -> &'static [&'static str] {
    &FILTER_PARAMETERS
}

/// The names of the parameters that a request for a list of games accepts in addition to the parameters for a position
/// and for filters.
const LIST_PARAMETERS: [&str; 4] = ["skip", "limit", "sort", "fold"];

/// The names of the parameters that determine the contents of an answer about a position.
const ANSWER_PARAMETERS: [&str; 4] = ["moves", "topGames", "recentGames", "resulting"];

/// The names of the parameters that exist only for the routes of Lichess's API.
const LICHESS_PARAMETERS: [&str; 4] = ["history", "transpositions", "clocks", "legal"];

/// The names of the parameters that a request for a book accepts in addition to the parameters for filters.
const BOOK_PARAMETERS: [&str; 5] = ["side", "depth", "minGame", "weights", "count"];

/// The names of the parameters that a request for building a repertoire accepts in addition to the parameters for
/// filters.
const REPERTOIRE_PARAMETERS: [&str; 8] = [
    "side",
    "depth",
    "reach",
    "by",
    "count",
    "repertoire",
    "edits",
    "minGame",
];

/// The names of the parameters that a request for the gaps of a repertoire accepts in addition to the parameters for
/// filters.
const GAP_PARAMETERS: [&str; 6] = ["repertoire", "side", "depth", "limit", "minGame", "edits"];

/// The names of the parameters that a request for reports on repertoires accepts in addition to the parameters for a
/// position and for filters.
const REPORT_PARAMETERS: [&str; 4] = ["repertoire", "side", "minGame", "edits"];

/// The names of the parameters that a request for practising a repertoire accepts in addition to the parameters for a
/// position and for filters.
const PRACTICE_PARAMETERS: [&str; 6] = ["repertoire", "side", "edits", "answer", "new", "skip"];

/// The names of the parameters that a request for preparing for an opponent accepts in addition to the parameters for a
/// position and for filters.
const PREPARATION_PARAMETERS: [&str; 6] =
    ["me", "lines", "minGame", "halfLife", "repertoire", "edits"];

/// All parameters of a request, from its address and its form, as one query string. The string is attached to the
/// request as an extension, because it may be too long for the type [`Uri`](axum::http::Uri).
#[derive(Clone)]
pub(super) struct WholeQuery(pub(super) String);

/// Returns the parameters of a request as a query string, including those in a form that
/// [`form_as_query`](super::body::form_as_query) converted.
pub(super) fn query_of(request: &axum::extract::Request) -> &str {
    match request.extensions().get() {
        Some(WholeQuery(query)) => query,
        None => request.uri().query().unwrap_or_default(),
    }
}

/// A route of the server whose parameters determine a position or filter games.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// `/lichess`: the results of each move in a position, with top games and recent games.
    Lichess,
    /// `/masters`: the results of each move in a position, with top games, but without recent games.
    Masters,
    /// `/player`: the results of each move in a position, in the games that one player played with one color.
    Player,
    /// `/positions`: the results of each move in each of many positions.
    Positions,
    /// `/games`: a page of the list of games that reach a position.
    Games,
    /// `/facets`: for each value of each filter, the number of games that pass with this value.
    Facets,
    /// `/openings`: the openings of the games that reach a position.
    Openings,
    /// `/prepare`: an opponent's moves in a position, with the user's results after each of them.
    Prepare,
    /// `/scores`: the results of a position for each rating group.
    Scores,
    /// `/book.bin` and `/book.pgn`: a book made from games.
    Make,
    /// `/repertoire.bin` and `/repertoire.pgn`: a repertoire built from games.
    Build,
    /// `/repertoire`: what the server's repertoires contain in a position.
    Repertoire,
    /// `/gaps`: the opponent's moves that a repertoire does not answer.
    Gaps,
    /// `/practise`: the next position of a repertoire to practise.
    Practise,
    /// `/game/{id}`: a game, with the number of half-moves after which it reaches a position.
    Game,
    /// `/book`: the moves of the server's books in a position.
    Book,
}

impl Route {
    /// Returns the names of all parameters that this route reads. A route of Lichess's API ignores other parameters,
    /// and any other route refuses them.
    pub(super) fn parameters(self) -> Vec<&'static str> {
        let position = match self {
            Route::Positions | Route::Make | Route::Build | Route::Gaps => &["variant"][..],
            _ => &POSITION_PARAMETERS,
        };
        let conditions = FILTER_PARAMETERS.iter().copied();
        let own: &[&str] = match self {
            Route::Lichess => &[
                "moves",
                "topGames",
                "recentGames",
                "resulting",
                "history",
                "transpositions",
                "clocks",
                "legal",
            ],
            Route::Masters => &[
                "moves",
                "topGames",
                "resulting",
                "transpositions",
                "clocks",
                "legal",
            ],
            Route::Player => &[
                "moves",
                "recentGames",
                "resulting",
                "transpositions",
                "clocks",
                "legal",
            ],
            Route::Positions => &ANSWER_PARAMETERS,
            Route::Games => &LIST_PARAMETERS,
            Route::Openings => &["fold"],
            Route::Scores => &["by"],
            Route::Prepare => &PREPARATION_PARAMETERS,
            Route::Repertoire => &REPORT_PARAMETERS,
            Route::Practise => &PRACTICE_PARAMETERS,
            Route::Make => &BOOK_PARAMETERS,
            Route::Build => &REPERTOIRE_PARAMETERS,
            Route::Gaps => &GAP_PARAMETERS,
            Route::Facets | Route::Game | Route::Book => &[],
        };
        let conditions = conditions.filter(|name| self.reads_condition(name));
        let position = position.iter().copied();
        position
            .chain(conditions)
            .chain(own.iter().copied())
            .collect()
    }

    /// Returns `true` if this route uses the parameter `name`, which selects games.
    fn reads_condition(self, name: &str) -> bool {
        match self {
            Route::Masters => ["source", "since", "until"].contains(&name),
            Route::Game | Route::Book => name == "source",
            Route::Player => !["rating", "ratings"].contains(&name),
            Route::Lichess => !["rated", "modes"].contains(&name),
            // The route has parameters of its own for the names of the two players.
            Route::Prepare => !["opponent", "result", "white", "black"].contains(&name),
            _ => true,
        }
    }

    /// Returns `true` for a route of Lichess's API, which ignores unknown parameters, because clients may send
    /// parameters of other routes.
    fn is_of_lichess(self) -> bool {
        matches!(self, Route::Lichess | Route::Masters | Route::Player)
    }
}

/// A checked request about a position, with its filters and the limits on the size of the answer.
///
/// ```
/// use polybook::serve::{Request, Route};
///
/// let request = Request::parse(Route::Lichess, "play=e2e4,c7c5&speeds=blitz,rapid&moves=5")?;
/// assert_eq!(request.query.moves, Some(5));
/// let refusal = Request::parse(Route::Lichess, "play=e2e5").unwrap_err();
/// assert_eq!(refusal.status(), 400);
/// # Ok::<(), polybook::serve::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    /// The query for the explorer.
    pub query: Query,
    /// The part of the list of games that the response contains.
    pub page: Page,
    /// Whether the response must contain, for each move, the results of all games that reach the position after the
    /// move.
    pub resulting: bool,
    /// Whether the response must contain, for each move, the number of games that reach the position after the move by
    /// another order of moves.
    pub transpositions: bool,
    /// Whether the response must contain the mean thinking time for each move, which is read from the PGN text of
    /// games.
    pub clocks: bool,
    /// Whether the response must contain the FEN, the line and the legal moves, for a client that does not know the
    /// rules of chess.
    pub legal: bool,
    /// All parameters of the request.
    pub(super) parameters: Parameters,
}

impl Request {
    /// Parses and checks the query string of a request to `route`.
    ///
    /// # Errors
    ///
    /// Returns an error response with status 400 if a parameter is malformed or given twice, or if a required parameter
    /// is missing. Unknown parameters are also refused, except on the routes of Lichess's API, which ignore them.
    pub fn parse(route: Route, query: &str) -> Result<Request, Refusal> {
        let names = route.parameters();
        let all = if route.is_of_lichess() {
            Parameters::split(query, |name| names.contains(&name))?.0
        } else {
            Parameters::parse_only(query, &names)?
        };
        let parameters = &all;
        if matches!(
            route,
            Route::Prepare | Route::Repertoire | Route::Build | Route::Gaps | Route::Practise
        ) && parameters.text("repertoire").is_none()
            && parameters
                .text("edits")
                .is_some_and(|edits| !edits.is_empty())
        {
            let problem = "the parameter edits adds lines to a repertoire: give the repertoire with the parameter \
                           repertoire";
            return Err(Refusal::bad(problem));
        }
        let view = match route {
            Route::Masters => View::Masters,
            Route::Player => View::Player,
            _ => View::Lichess,
        };
        let mut query = Query::new(line(parameters)?, view);
        query.filters = selection(route, parameters)?;
        if route == Route::Positions {
            query.top_games = 0;
            query.recent_games = Some(0);
        }
        if let Some(moves) = parameters.length("moves")? {
            query.moves = Some(moves as usize);
        }
        if let Some(games) = parameters.length("topGames")? {
            query.top_games = games as usize;
        }
        if let Some(games) = parameters.length("recentGames")? {
            query.recent_games = Some(games as usize);
        }
        query.years = parameters.text("history") == Some("moves");
        if !query.years {
            let history = parameters.choice("history", "true, false or moves", boolean)?;
            query.history = history.unwrap_or(false);
        }
        if route == Route::Scores {
            let by = parameters.choice("by", "rating", |name| (name == "rating").then_some(()))?;
            by.ok_or_else(|| Refusal::bad("the parameter by is missing: use by=rating"))?;
        }
        let resulting = parameters.flag("resulting")?.unwrap_or(false);
        let transpositions = parameters.flag("transpositions")?.unwrap_or(false);
        query.resulting = resulting || transpositions;
        Ok(Request {
            query,
            page: page(route, parameters)?,
            resulting,
            transpositions,
            clocks: parameters.flag("clocks")?.unwrap_or(false),
            legal: parameters
                .flag("legal")?
                .unwrap_or(route != Route::Positions),
            parameters: all,
        })
    }
}

/// Returns the variant in the parameter `variant`, or standard chess if the parameter is not given.
///
/// # Errors
///
/// Returns an error response if no variant has this name.
pub(super) fn variant(parameters: &Parameters) -> Result<Variant, Refusal> {
    let named = parameters.choice("variant", VARIANTS, |name| match name {
        "" => None,
        name => name.parse().ok(),
    })?;
    Ok(named.unwrap_or_default())
}

/// Returns the line of moves that a request contains: the parameters `variant` and `fen` determine its starting
/// position, and `play` contains its moves.
fn line(parameters: &Parameters) -> Result<Line, Refusal> {
    let variant = variant(parameters)?;
    let fen = parameters.filled("fen")?;
    let play = parameters.text("play").unwrap_or_default();
    let words = play.split(',').filter(|_| !play.is_empty());
    if words.clone().count() > MAX_PLIES {
        return Err(Refusal::bad(format!(
            "the parameter play contains more than {MAX_PLIES} moves: send fewer moves"
        )));
    }
    for word in words {
        if word.parse::<UciMove>().is_err() {
            let problem = format!(
                "the parameter play contains \"{word}\", which is not a move in UCI notation"
            );
            return Err(Refusal::bad(problem));
        }
    }
    Line::parse(variant, fen, play).map_err(|err| Refusal::bad(err.to_string()))
}

/// Returns the conditions that say which games count for a request.
///
/// # Errors
///
/// Returns an error response if a condition is malformed, if conditions contradict each other, or if an index cannot
/// apply one of them.
fn selection(route: Route, parameters: &Parameters) -> Result<Selection, Refusal> {
    let mut selection = Selection {
        exact: true,
        ..Selection::default()
    };
    let conditions = parameters.0.iter();
    let conditions = conditions.filter(|(name, _)| FILTER_PARAMETERS.contains(&&**name));
    for (name, value) in conditions {
        add_condition(&mut selection, route, name, value)?;
    }
    // In a preparation, duplicates count once by default, because the files of the two players often contain the same
    // games.
    if route == Route::Prepare {
        selection.duplicates.get_or_insert(Duplicates::Once);
    }
    if matches!(route, Route::Player | Route::Prepare) {
        let missing = |what| Err(Refusal::bad(format!("the parameter {what}")));
        if selection.player.is_empty() {
            return missing("player is missing: give the name of a player");
        }
        if route == Route::Player && parameters.text("color").is_none() {
            return missing("color is missing: use white, black or both");
        }
    }
    if route.is_of_lichess() && selection.player.is_empty() && selection.opponent.is_empty() {
        selection.color = None;
    }
    check_selection(&selection)?;
    // Books and repertoires are made of PGN.
    let unanswerable = match route {
        Route::Make | Route::Build => selection
            .unanswerable(Evaluator::Games)
            .filter(|it| it.condition != "source"),
        _ => selection.unanswerable(Evaluator::Index),
    };
    match unanswerable {
        Some(unanswerable) => Err(Refusal::bad(format!(
            "the parameter {} does not apply: {unanswerable}",
            Spelling::Parameter.of(unanswerable.condition)
        ))),
        None => Ok(selection),
    }
}

/// Adds the condition in the parameter `name` to `selection`. `value` is the value of the parameter.
fn add_condition(
    selection: &mut Selection,
    route: Route,
    name: &str,
    value: &str,
) -> Result<(), Refusal> {
    let wrong = |advice: &str| {
        let has = if advice.starts_with("use ") {
            format!("has the unknown value {value:?}: ")
        } else {
            "is malformed: ".to_owned()
        };
        Err(Refusal::bad(format!("the parameter {name} {has}{advice}")))
    };
    match name {
        "color" if value == "both" => return Ok(()),
        "since" | "until" if route.is_of_lichess() && !is_month_or_year(value) => {
            return wrong("use a date of the form YYYY-MM or YYYY");
        }
        "source" | "since" | "until" | "event" | "color" | "duplicates" | "result" | "eco"
        | "opening" | "opponentRating"
            if value.trim().is_empty() =>
        {
            return Err(Refusal::bad(format!(
                "the parameter {name} is empty: give a value"
            )));
        }
        _ => {}
    }
    match selection.set(name, value) {
        Ok(()) => Ok(()),
        Err(_) if name == "color" => wrong(&format!("use {SIDES}")),
        Err(_) if name == "result" => wrong(&format!("use {RESULTS}")),
        Err(err) => wrong(&err.to_string()),
    }
}

/// Returns `true` if `date` has one of the forms that Lichess accepts: `YYYY`, `YYYY-MM` or `YYYY.MM`.
fn is_month_or_year(date: &str) -> bool {
    matches!(date.len(), 4 | 7)
        && date.bytes().enumerate().all(|(at, byte)| {
            if at == 4 {
                b"-.".contains(&byte)
            } else {
                byte.is_ascii_digit()
            }
        })
}

/// Checks that conditions do not contradict each other, and that no filter contains too many names.
fn check_selection(selection: &Selection) -> Result<(), Refusal> {
    for (name, names) in [
        ("player", &selection.player),
        ("opponent", &selection.opponent),
        ("white", &selection.white),
        ("black", &selection.black),
    ] {
        check_count(name, names)?;
    }
    selection.check().map_err(|err| {
        Refusal::bad(match err {
            ConditionError::NeedsPlayer { condition: "color" } => {
                "the parameter color is the color of the player, but no player is given: add the parameter player, or \
                 remove color"
                    .to_owned()
            }
            ConditionError::NeedsPlayer { condition: "result" } => {
                "the results win and loss are those of a player, but no player is given: add the parameter player"
                    .to_owned()
            }
            ConditionError::NeedsPlayer { condition } => format!(
                "the parameter {} is a condition on the player's opponent, but no player is given: add the parameter \
                 player",
                Spelling::Parameter.of(condition)
            ),
            err => err.to_string(),
        })
    })
}

/// Checks that the parameter `name` does not have too many values. `names` contains these values.
fn check_count(name: &str, names: &[String]) -> Result<(), Refusal> {
    check_names(names)
        .map_err(|err| Refusal::bad(format!("the parameter {name} is not valid: {err}")))
}

/// Returns `true` if the parameter `duplicates` says that duplicates count as one game, and `false` if it says that
/// each of them counts. Returns `None` if the parameter is not given.
pub(super) fn counts_duplicates_once(parameters: &Parameters) -> Result<Option<bool>, Refusal> {
    parameters.choice("duplicates", "once or all", |name| match name {
        "once" => Some(true),
        "all" => Some(false),
        _ => None,
    })
}

/// Returns `true` if answering a request may require a search through all games: for duplicates, or for games that
/// match a query about the board. `path` and `query` are the path and the query string of the request, which may be
/// invalid.
pub(super) fn mentions_search(path: &str, query: &str) -> bool {
    let mut all = form_urlencoded::parse(query.as_bytes());
    path == "/prepare"
        || all.any(|(name, value)| match &*name {
            "position" => true,
            "duplicates" => value == "once",
            "fold" => value == "match",
            _ => false,
        })
}

/// Returns all names in the parameter `parameter`, which may be given several times. Returns an error response if there
/// are more than 20 names, or if a name is blank. A blank name would match every name.
pub(super) fn names(parameters: &Parameters, parameter: &str) -> Result<Vec<String>, Refusal> {
    let names = parameters.texts(parameter).map(|name| match name.trim() {
        "" => Err(Refusal::bad(format!(
            "the parameter {parameter} is empty: give the name of a player or an event"
        ))),
        name => Ok(name.to_owned()),
    });
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    check_count(parameter, &names)?;
    Ok(names)
}

/// Parses a side. Returns `Some(Some(color))` for `white` or `black`, `Some(None)` for `both`, and `None` for any other
/// name.
pub(super) fn side(name: &str) -> Option<Option<Color>> {
    match name {
        "both" => Some(None),
        name => name.parse().ok().map(Some),
    }
}

/// Returns the page of a list of games that a request asks for. On routes other than [`Route::Games`], this is the
/// first page.
fn page(route: Route, parameters: &Parameters) -> Result<Page, Refusal> {
    let mut page = Page {
        skip: 0,
        limit: DEFAULT_PAGE_LENGTH as usize,
        sort: Default::default(),
        fold_matches: false,
    };
    if route == Route::Games {
        let skip = parameters.number("skip", 0..=MAX_SKIP);
        let is_large = parameters.length("skip").is_ok();
        let skip = skip.map_err(|refusal| {
            if is_large {
                refusal.with_advice("use filters to reduce the number of games")
            } else {
                refusal
            }
        })?;
        page.skip = skip.unwrap_or(0) as usize;
        let limit = parameters.number("limit", 0..=MAX_PAGE_LENGTH)?;
        page.limit = limit.unwrap_or(DEFAULT_PAGE_LENGTH) as usize;
        page.sort = parameters
            .choice("sort", "recent, rating or id", |name| name.parse().ok())?
            .unwrap_or_default();
        let fold = parameters.choice("fold", "match", |name| (name == "match").then_some(()))?;
        page.fold_matches = fold.is_some();
    }
    Ok(page)
}

/// The names of the parameters that may be given several times.
pub(super) static REPEATABLE_PARAMETERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut selection = Selection::default();
    let conditions = selection.fields().into_iter();
    let repeated = conditions.filter(|field| field.form.is_repeated());
    let names = repeated.map(|field| Spelling::Parameter.of(field.name));
    names.chain(["me", "with"].map(str::to_owned)).collect()
});

/// The parsed parameters of a request, as names and values. Only names of players, results, codes of openings and
/// conditions on tags may occur several times.
///
/// ```
/// use polybook::serve::Parameters;
///
/// let parameters = Parameters::parse("fen=8/8+w&moves=99999999999&speeds[]=blitz")?;
/// assert_eq!(parameters.text("fen"), Some("8/8 w"));
/// assert_eq!(parameters.length("moves")?, Some(u32::MAX));
/// assert!(Parameters::parse("moves=1&moves=2").is_err());
/// # Ok::<(), polybook::serve::Refusal>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Returns the names of all parameters that exist in Lichess's API or for lists of games.
    pub fn names() -> Vec<&'static str> {
        [
            &POSITION_PARAMETERS[..],
            &FILTER_PARAMETERS,
            &LIST_PARAMETERS,
            &ANSWER_PARAMETERS,
            &LICHESS_PARAMETERS,
        ]
        .concat()
    }

    /// Parses a query string. Parameters that are not in [`names`](Parameters::names) are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error response if a known parameter is given twice.
    pub fn parse(query: &str) -> Result<Parameters, Refusal> {
        let names = Parameters::names();
        Ok(Parameters::split(query, |name| names.contains(&name))?.0)
    }

    /// Parses a query string. `allowed` contains the names of all parameters that it may contain.
    ///
    /// ```
    /// use polybook::serve::Parameters;
    ///
    /// let refusal = Parameters::parse_only("skip=7&limits=9", &["skip", "limit"]).unwrap_err();
    /// assert_eq!(
    ///     refusal.text(),
    ///     "unknown parameter limits: this address accepts only the parameters skip, limit",
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error response if a parameter is not in `own` or is given twice.
    pub fn parse_only(query: &str, allowed: &[&str]) -> Result<Parameters, Refusal> {
        let (found, others) = Parameters::split(query, |name| allowed.contains(&name))?;
        if others.is_empty() {
            return Ok(found);
        }
        let is_preparation = allowed.contains(&"me") && !allowed.contains(&"opponent");
        let is_condition = |name: &&&str| FILTER_PARAMETERS.contains(name);
        let own: Vec<&str> = allowed
            .iter()
            .filter(|name| !is_condition(name))
            .copied()
            .collect();
        let refused = FILTER_PARAMETERS
            .iter()
            .filter(|name| !allowed.contains(name));
        let refused = Vec::from_iter(refused.copied()).join(", ");
        let conditions = match (own.len() < allowed.len(), &*refused) {
            (false, _) => String::new(),
            (true, "") => ", and conditions on games".to_owned(),
            (true, refused) => format!(", and conditions on games other than {refused}"),
        };
        let allowed = match &own[..] {
            [] => "no parameters".to_owned(),
            own => format!("only the parameters {}{conditions}", own.join(", ")),
        };
        let hint = if others.iter().any(|name| name == "opponent") && is_preparation {
            "the opponent is player, and you are me; "
        } else {
            ""
        };
        let others = others.join(", ");
        let problem = format!("unknown parameter {others}: {hint}this address accepts {allowed}");
        Err(Refusal::bad(problem))
    }

    /// Parses a query string, and divides its parameters into two groups. Returns the parameters whose names `is_known`
    /// accepts, and the names of all other parameters.
    fn split(
        query: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(Parameters, Vec<String>), Refusal> {
        let (mut found, mut others) = (Parameters::default(), Vec::new());
        let mut spellings: HashMap<String, String> = HashMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let spelling = spellings.entry(condition_name(&name));
            let earlier = match &spelling {
                Entry::Occupied(earlier) => Some(earlier.get()),
                Entry::Vacant(_) => None,
            };
            match earlier {
                Some(earlier) if *earlier != name && (is_known(earlier) || is_known(&name)) => {
                    return Err(Refusal::bad(format!(
                        "the parameters {earlier} and {name} mean the same: give one of them"
                    )));
                }
                Some(_)
                    if is_known(&name)
                        && !REPEATABLE_PARAMETERS.iter().any(|known| *known == name) =>
                {
                    return Err(Refusal::bad(format!(
                        "the parameter {name} is given twice: give the parameter once"
                    )));
                }
                _ => {}
            }
            spelling.or_insert_with(|| name.to_string());
            match is_known(&name) {
                true => found.0.push((name.into_owned(), value.into_owned())),
                false => others.push(name.into_owned()),
            }
        }
        Ok((found, others))
    }

    /// Returns a copy of the parameters without the parameter `name`.
    pub(super) fn without(&self, name: &str) -> Parameters {
        let others = self.0.iter().filter(|(known, _)| known != name);
        Parameters(others.cloned().collect())
    }

    /// Returns the value of the parameter `name`, or `None` if the request does not contain this parameter. If there
    /// are several values, returns the first one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// Returns an iterator over all values of the parameter `name`, in the order in which the request contains them.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let found = self.0.iter().filter(move |(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// Returns the value of the parameter `name`, or `None` if the request does not contain this parameter.
    ///
    /// # Errors
    ///
    /// Returns an error response if the value is empty.
    pub fn filled(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.text(name) {
            Some("") => Err(Refusal::bad(format!(
                "the parameter {name} is empty: give a value"
            ))),
            text => Ok(text),
        }
    }

    /// Returns the value of the parameter `name` as a number, or `None` if the request does not contain this
    /// parameter.
    ///
    /// # Errors
    ///
    /// Returns an error response if the value does not consist of digits, or if the number is not in `range`. The
    /// message contains the range.
    pub fn number(&self, name: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = digits(text).filter(|number| range.contains(number));
        let (first, last) = (range.start(), range.end());
        let problem = || {
            format!(
                "the parameter {name} has the value \"{text}\": use a number from {first} to {last}"
            )
        };
        number.map(Some).ok_or_else(|| Refusal::bad(problem()))
    }

    /// Returns the value of the parameter `name`, which limits the length of a list. Returns `None` if the request does
    /// not contain this parameter.
    ///
    /// Every number is accepted, because Lichess's API shortens lists instead of refusing large numbers. A number that
    /// does not fit into a `u32` becomes `u32::MAX`.
    ///
    /// # Errors
    ///
    /// Returns an error response if the value does not consist of digits.
    pub fn length(&self, name: &str) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let problem = || {
            format!(
                "the parameter {name} has the value \"{text}\": use a whole number, 0 or larger"
            )
        };
        let length = digits(text).ok_or_else(|| Refusal::bad(problem()))?;
        Ok(Some(length))
    }

    /// Returns the value of the parameter `name` as a boolean, or `None` if the request does not contain this
    /// parameter. `true`, `1`, `on` and `yes` mean `true`; `false`, `0`, `off` and `no` mean `false`. Case is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error response for any other value.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.choice(name, "true or false", boolean)
    }

    /// Parses the value of the parameter `name` with `parse`. Returns `None` if the request does not contain this
    /// parameter.
    ///
    /// # Errors
    ///
    /// Returns an error response if `parse` returns `None`, which means that the value is invalid. The message contains
    /// `values`, the list of the valid values, such as `white or black`.
    pub fn choice<T>(
        &self,
        name: &str,
        values: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let text = self.text(name);
        text.map(|text| parse_value(name, text, values, parse))
            .transpose()
    }

    /// Parses the comma-separated list in the parameter `name`, calling `parse` for each element. Returns `None` if the
    /// request does not contain this parameter, and an empty list if the value of the parameter is empty.
    ///
    /// # Errors
    ///
    /// Returns an error response if `parse` returns `None` for an element. The message contains `values`, the list of
    /// the valid elements.
    pub fn list<T>(
        &self,
        name: &str,
        values: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let elements = text.split(',').filter(|element| !element.is_empty());
        elements
            .map(|element| parse_value(name, element, values, &parse))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// Parses `text`, a value of the parameter `name`, with the function `parse`. If `parse` returns `None`, returns an
/// error response that contains the name of the parameter, the value, and `values`, the list of the valid values.
fn parse_value<T>(
    name: &str,
    text: &str,
    values: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, Refusal> {
    parse(text).ok_or_else(|| {
        Refusal::bad(format!(
            "the parameter {name} has the unknown value \"{text}\": use {values}"
        ))
    })
}

/// Parses a boolean such as `true`, `on` or `1`, ignoring case. Returns `None` if `text` is not a boolean.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match &*text.to_ascii_lowercase() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// Parses a number that consists only of decimal digits. Returns `u32::MAX` if the number does not fit into a `u32`,
/// and `None` if `text` is empty or contains anything but digits.
fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::{
        pgn::{GameResult, RatingGroup},
        selection::{WantedRating, WantedResult},
    };

    fn parsed(route: Route, query: &str) -> Request {
        Request::parse(route, query).unwrap_or_else(|err| panic!("{query}: {err:?}"))
    }

    /// Parses the names of the player who prepares in a request to `/prepare`.
    fn names_of_me(query: &str) -> Result<(), Refusal> {
        let request = Request::parse(Route::Prepare, query)?;
        names(&request.parameters, "me").map(|_| ())
    }

    #[test]
    fn requests_that_lichess_refuses_are_refused() {
        let plies = |count: usize| {
            let moves = ["g1f3", "g8f6", "f3g1", "f6g8"].into_iter().cycle();
            format!("play={}", moves.take(count).collect::<Vec<_>>().join(","))
        };
        let most = parsed(Route::Lichess, &plies(MAX_PLIES));
        assert_eq!(most.query.line.moves().len(), MAX_PLIES);
        for query in [
            &*plies(MAX_PLIES + 1),
            "fen=",
            "since=",
            "until=",
            "since=2020-13",
            "since=2024&until=2023",
            "since=2020-1",
            "since=2020.13",
            "since=2020/01",
            "until=2020-01-02",
            "moves=-1",
            "play=e2e4,",
            "play=,",
            "play=e4",
            "play=0000",
            "play=e2e5",
            "play=e2e4&play=e7e5",
            "variant=shogi",
            "variant=",
            "fen=8/8/8/8/8/8/8/8_w_-_-",
            "speeds=fast",
            "ratings=-1",
            "color=red",
            "color=white&opponent=me",
            "history=perhaps",
            "ratings=%2B1600",
            "ratings=4001",
            "ratings=99999999999",
            "result=win",
            "result=white&player=me",
            "minPly=65536",
            "eco=Z99",
            "player=",
            "player=+%09",
            "opponent=&player=me",
            "player=me&player=",
            "event=a&event=b",
            "event=%20",
        ] {
            let refusal = Request::parse(Route::Lichess, query).unwrap_err();
            assert_eq!(refusal.status(), 400, "{query}");
            assert!(!refusal.text().contains('\n'), "{query}");
        }
        for name in ["player", "opponent", "me"] {
            let ask = |names: usize| {
                let names = format!("{name}=x&").repeat(names);
                let query = format!("{names}color=white");
                let query = match name {
                    "player" => query,
                    _ => format!("{query}&player=x"),
                };
                match name {
                    "me" => names_of_me(&query),
                    _ => Request::parse(Route::Games, &query).map(|_| ()),
                }
            };
            assert!(ask(20).is_ok(), "{name}");
            let refusal = ask(21).unwrap_err();
            assert_eq!(refusal.status(), 400);
            let problem = format!(
                "the parameter {name} is not valid: 21 names are too many: give at most 20"
            );
            assert_eq!(refusal.text(), problem);
        }
        for query in ["", "player=me", "color=white", "player=&color=white"] {
            assert!(Request::parse(Route::Player, query).is_err(), "{query}");
        }
    }

    #[test]
    fn parameters_of_other_routes_are_ignored_as_on_lichess() {
        parsed(
            Route::Masters,
            "speeds=fast&ratings=x&player=&since=1952&until=1990&modes=x",
        );
        parsed(Route::Lichess, "modes=x&skip=-1&speeds[]=blitz&play=");
        parsed(Route::Lichess, "color=white");
        parsed(Route::Book, "play=e2e4&source=x");
        for (route, query, named) in [
            (
                Route::Book,
                "player=&tint=red",
                "unknown parameter player, tint:",
            ),
            (Route::Games, "moves=5", "unknown parameter moves:"),
            (
                Route::Games,
                "skip=1&topGames=3",
                "unknown parameter topGames:",
            ),
        ] {
            let refusal = Request::parse(route, query).unwrap_err();
            assert_eq!(refusal.status(), 400);
            assert!(refusal.text().contains(named), "{}", refusal.text());
        }
    }

    #[test]
    fn months_are_read_with_a_hyphen_and_with_a_dot() {
        let dates = |query| {
            let filters = parsed(Route::Lichess, query).query.filters;
            (filters.since, filters.until)
        };
        let month = dates("since=2025.05&until=2025.06");
        assert_eq!(month.0, "2025.05".parse().ok());
        assert_eq!(month, dates("since=2025-05&until=2025-06"));
    }

    #[test]
    fn values_are_read_as_clients_write_them() {
        let request = parsed(Route::Lichess, "speeds=&ratings=1700,2500&history=True");
        assert_eq!(request.query.filters.speed, Some(Vec::new()));
        let groups = [1600, 2500].map(|floor| WantedRating(Some(RatingGroup::of(floor))));
        assert_eq!(request.query.filters.rating, Some(groups.to_vec()));
        assert!(request.query.history);
        // All groups mean all games, including games without ratings.
        let all = "ratings=0,1000,1200,1400,1600,1800,2000,2200,2500";
        let filters = parsed(Route::Lichess, all).query.filters;
        assert!(filters.admits_rating(None) && filters.admits_rating(Some(RatingGroup::of(0))));
        let request = parsed(Route::Games, "limit=200&skip=7&sort=rating&result=1-0,draw");
        assert_eq!((request.page.skip, request.page.limit), (7, 200));
        let names = "player=Tal&player=%20M.%20Tal&opponent=a&opponent=b";
        let filters = parsed(Route::Games, names).query.filters;
        assert_eq!(filters.player, ["Tal", "M. Tal"]);
        assert_eq!(filters.opponent, ["a", "b"]);
        let results = [GameResult::WhiteWins, GameResult::Draw].map(WantedResult::Game);
        assert_eq!(request.query.filters.result, results);
        assert_eq!(parsed(Route::Games, "skip=10000").page.skip, 10_000);
        assert_eq!(parsed(Route::Games, "limit=0").page.limit, 0);
        // A page other than the requested one would be a wrong answer.
        for (query, problem) in [
            (
                "skip=10001",
                "the parameter skip has the value \"10001\": use a number from 0 to 10000; use filters to reduce the \
                 number of games",
            ),
            (
                "skip=x",
                "the parameter skip has the value \"x\": use a number from 0 to 10000",
            ),
            (
                "limit=201",
                "the parameter limit has the value \"201\": use a number from 0 to 200",
            ),
            (
                "limit=99999999999",
                "the parameter limit has the value \"99999999999\": use a number from 0 to 200",
            ),
            (
                "limit=-1",
                "the parameter limit has the value \"-1\": use a number from 0 to 200",
            ),
            (
                "ratings=9999",
                "the parameter ratings has the unknown value \"9999\": use ratings from 0 to 4000, or unknown",
            ),
        ] {
            let refusal = Request::parse(Route::Games, query).unwrap_err();
            assert_eq!((refusal.status(), refusal.text()), (400, problem));
        }
        // Lichess's API shortens the lists.
        let request = parsed(
            Route::Lichess,
            "moves=99999999999&topGames=99&recentGames=99",
        );
        assert_eq!(request.query.moves, Some(u32::MAX as usize));
        let filters = parsed(Route::Games, "player=me&result=win,draw,loss")
            .query
            .filters;
        let draw = WantedResult::Game(GameResult::Draw);
        assert_eq!(
            filters.result,
            [WantedResult::Win, draw, WantedResult::Loss]
        );
    }

    #[test]
    fn messages_list_the_values_that_are_valid() {
        for (route, name) in [
            (Route::Lichess, "variant"),
            (Route::Lichess, "speeds"),
            (Route::Lichess, "history"),
            (Route::Lichess, "color"),
            (Route::Games, "modes"),
            (Route::Games, "result"),
            (Route::Games, "sort"),
            (Route::Games, "fold"),
            (Route::Games, "duplicates"),
            (Route::Games, "requireDate"),
            (Route::Scores, "by"),
        ] {
            let refusal = Request::parse(route, &format!("player=a&{name}=fast")).unwrap_err();
            let start = format!("the parameter {name} has the unknown value \"fast\": use ");
            let values = refusal.text().strip_prefix(&start).expect(name);
            for value in values.replace(" or ", ", ").split(", ") {
                parsed(route, &format!("player=a&{name}={value}"));
            }
        }
    }

    fn parsed_parameters(query: &str) -> Parameters {
        Parameters::parse(query).unwrap()
    }

    #[test]
    fn unknown_parameters_are_ignored_and_known_ones_occur_once() {
        assert_eq!(
            parsed_parameters("speeds[]=blitz&speeds[]=rapid&x"),
            Parameters::default()
        );
        let err = Parameters::parse("fen=a&fen=a").unwrap_err();
        assert_eq!(
            (err.status(), err.text()),
            (
                400,
                "the parameter fen is given twice: give the parameter once"
            )
        );
    }

    #[test]
    fn numbers_are_bounded_but_not_negative() {
        assert_eq!(parsed_parameters("moves=007").length("moves"), Ok(Some(7)));
        assert_eq!(
            parsed_parameters("moves=99999999999").length("moves"),
            Ok(Some(u32::MAX))
        );
        assert_eq!(
            parsed_parameters("skip=7").number("skip", 1..=7),
            Ok(Some(7))
        );
        assert!(parsed_parameters("skip=8").number("skip", 1..=7).is_err());
        assert!(parsed_parameters("skip=0").number("skip", 1..=7).is_err());
        for query in [
            "moves=-1",
            "moves=",
            "moves=1e3",
            "moves=+1",
            "moves=%D9%A1",
        ] {
            assert_eq!(
                parsed_parameters(query)
                    .length("moves")
                    .unwrap_err()
                    .status(),
                400,
                "{query}"
            );
        }
    }

    #[test]
    fn flags_and_lists_are_parsed() {
        for (text, expected) in [("True", true), ("on", true), ("0", false), ("No", false)] {
            let query = format!("history={text}");
            assert_eq!(
                parsed_parameters(&query).flag("history"),
                Ok(Some(expected))
            );
        }
        assert!(parsed_parameters("history=maybe").flag("history").is_err());
        let digit = |text: &str| text.parse::<u8>().ok();
        assert_eq!(
            parsed_parameters("ratings=1,2").list("ratings", "digits", digit),
            Ok(Some(vec![1, 2]))
        );
        assert_eq!(
            parsed_parameters("ratings=").list("ratings", "digits", digit),
            Ok(Some(vec![]))
        );
        assert_eq!(
            parsed_parameters("").list("ratings", "digits", digit),
            Ok(None)
        );
        assert!(
            parsed_parameters("ratings=1,x")
                .list("ratings", "digits", digit)
                .is_err()
        );
    }

    #[test]
    fn a_parameter_in_two_spellings_is_refused() {
        for (route, query, names) in [
            (Route::Games, "minPly=4&minPlies=3", "minPly and minPlies"),
            (
                Route::Games,
                "speed=blitz&speeds=bullet",
                "speed and speeds",
            ),
            (
                Route::Games,
                "modes=casual&color=white&rated=rated",
                "modes and rated",
            ),
            (
                Route::Games,
                "rating=1600&ratings=1600",
                "rating and ratings",
            ),
            (
                Route::Games,
                "minElo=2000&min_elo=2000",
                "minElo and min_elo",
            ),
            (
                Route::Lichess,
                "min-elo=2000&minElo=2000",
                "min-elo and minElo",
            ),
            (Route::Lichess, "speeds=blitz&speed=", "speeds and speed"),
            (
                Route::Lichess,
                "topGames=1&top_games=2",
                "topGames and top_games",
            ),
        ] {
            let refusal = Request::parse(route, query).unwrap_err();
            let expected = format!("the parameters {names} mean the same: give one of them");
            assert_eq!(
                (refusal.status(), refusal.text()),
                (400, &*expected),
                "{query}"
            );
        }
        for query in ["skip=1&limit=2&skip=1", "minElo=1&minElo=1"] {
            let refusal = Request::parse(Route::Games, query).unwrap_err();
            assert!(refusal.text().contains("is given twice"), "{query}");
        }
        // Lichess's routes ignore unknown parameters.
        parsed(Route::Lichess, "variants=a&variants=b&variant=standard");
        parsed(Route::Games, "player=a&player=b&white=c&white=d");
    }
}

//! Describes the parameters of the API: the forms of their values, and their meanings.

use serde_json::{Value, json};

use super::super::{
    make::{MAX_DEPTH, MAX_MIN_GAME, MOST_GAPS, MOST_REACH},
    practise::{DEFAULT_NEW, MOST_NEW},
    prepare::MAX_LINES,
    request::{
        DEFAULT_PAGE_LENGTH, MAX_PAGE_LENGTH, MAX_PLIES, MAX_SKIP, REPEATABLE_PARAMETERS, VARIANTS,
    },
    state::{MOST_SUGGESTED, SUGGESTED},
};
use crate::{
    explore::explorer::HalfLife,
    games::selection::{Form, Selection, Spelling, condition_name},
};

/// A parameter of a route.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) description: String,
    pub(super) schema: Value,
}

impl Parameter {
    /// Describes the parameter `name` of the route at `path`.
    pub(super) fn of_route(path: &str, name: &'static str) -> Parameter {
        let (schema, description) = own(path, name)
            .or_else(|| condition(name))
            .unwrap_or_else(|| panic!("{path}: the parameter {name} is not described"));
        Parameter {
            name,
            description,
            schema,
        }
    }

    /// Returns `true` if several values are passed by repeating the parameter, and `false` if they are separated by
    /// commas.
    pub(super) fn is_repeated(&self) -> bool {
        REPEATABLE_PARAMETERS.iter().any(|name| name == self.name)
    }

    pub(super) fn is_list(&self) -> bool {
        self.schema["type"] == "array"
    }

    /// Returns the description of the parameter for an OpenAPI document.
    pub(super) fn described(&self, is_required: bool) -> Value {
        let mut described =
            json!({"name": self.name, "in": "query", "description": self.description});
        if is_required {
            described["required"] = true.into();
        }
        if self.is_list() {
            described["style"] = "form".into();
            described["explode"] = self.is_repeated().into();
        }
        described["schema"] = self.schema.clone();
        described
    }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn switch(default: bool) -> Value {
    json!({"type": "boolean", "default": default})
}

fn choice(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

fn number(first: u32, last: u32) -> Value {
    json!({"type": "integer", "minimum": first, "maximum": last})
}

fn with_default(mut schema: Value, default: impl Into<Value>) -> Value {
    schema["default"] = default.into();
    schema
}

/// Describes a parameter that is a condition on games. Returns `None` if no condition has this name.
fn condition(name: &str) -> Option<(Value, String)> {
    let condition = condition_name(name);
    let mut selection = Selection::default();
    let field = selection
        .fields()
        .into_iter()
        .find(|field| field.name == condition)?;
    let schema = match (field.form, field.name) {
        // The names in a request must be complete by default.
        (Form::Switch, "exact") => switch(true),
        (Form::Switch, _) => switch(false),
        (Form::Choice(values), "color") => choice(&[values, &["both"][..]].concat()),
        (Form::Choice(values), _) => choice(values),
        (Form::Number(last), _) => number(0, last),
        (Form::Value | Form::Text | Form::Name, _) => text(),
        (Form::List(_) | Form::Values | Form::Texts | Form::Names, _) => texts(),
    };
    let parameter = Spelling::Parameter.of(field.name);
    if parameter != name {
        let description = match name {
            "ratings" => "The condition rating under the name of Lichess's API: any rating means its group".to_owned(),
            "modes" => "The condition rated under the name of Lichess's API: rated also keeps games that do not say \
                        whether they are rated"
                .to_owned(),
            _ => format!("Another name of {parameter}"),
        };
        return Some((schema, description));
    }
    // A list has commas here, and is given once.
    let help = field.help.replace(", or give the option several times", "");
    let help = help.replace("the option", "the parameter");
    // Over HTTP, names match as a whole by default.
    let help = help.replace(
        "contains NAME",
        "is NAME, or contains NAME with exact=false",
    );
    let help = help
        .replace(" =rated", " rated")
        .replace(" =casual", " casual");
    Some((schema, help))
}

/// Describes a parameter that is not a condition on games, or that has a special meaning at `path`. Returns `None` for
/// all other parameters.
fn own(path: &str, name: &str) -> Option<(Value, String)> {
    let variants: Vec<&str> = VARIANTS
        .split(", ")
        .flat_map(|names| names.split(" or "))
        .collect();
    let min_game = || number(1, MAX_MIN_GAME);
    let depth = || number(1, MAX_DEPTH);
    let (schema, description) = match (name, path) {
        ("variant", "/read") => (choice(&variants), "The variant of a text without tags"),
        ("variant", _) => (with_default(choice(&variants), "standard"), "The variant"),
        ("fen", _) => (
            text(),
            "The FEN or EPD of the position in which the line starts. An underscore is read as a space",
        ),
        ("play", _) => (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": MAX_PLIES}),
            "The moves of the line in UCI notation",
        ),
        ("since", "/lichess" | "/masters" | "/player") => (
            text(),
            "Keep games played in this year or month (YYYY or YYYY-MM) or later. Games without a known date are kept",
        ),
        ("until", "/lichess" | "/masters" | "/player") => (
            text(),
            "Keep games played in this year or month or earlier. Games without a known date are kept",
        ),
        ("moves", _) => (
            number(0, u32::MAX),
            "The maximum number of moves in the answer",
        ),
        ("topGames", _) => (
            number(0, u32::MAX),
            "The maximum number of the games with the highest ratings",
        ),
        ("recentGames", _) => (
            number(0, u32::MAX),
            "The maximum number of the newest games",
        ),
        ("history", _) => (
            with_default(choice(&["true", "false", "moves"]), "false"),
            "true adds the results by month, and moves adds the moves by year",
        ),
        ("resulting", _) => (
            switch(false),
            "Whether to add the results of the position after each move",
        ),
        ("transpositions", _) => (
            switch(false),
            "Whether to count the games that reach the position after a move by another order of moves",
        ),
        ("clocks", _) => (
            switch(false),
            "Whether to add the times that players took for the moves",
        ),
        ("legal", _) => (
            switch(true),
            "Whether to add the FEN, the line and the legal moves",
        ),
        ("skip", "/practise") => (texts(), "The numbers of positions that are not asked"),
        ("skip", _) => (
            number(0, MAX_SKIP),
            "The number of games before those in the answer",
        ),
        ("limit", "/games") => (
            with_default(number(0, MAX_PAGE_LENGTH), DEFAULT_PAGE_LENGTH),
            "The maximum number of games in the answer",
        ),
        ("limit", "/gaps") => (
            with_default(number(0, MOST_GAPS), 20),
            "The maximum length of each list in the answer",
        ),
        ("limit", "/suggest") => (
            with_default(number(0, MOST_SUGGESTED), SUGGESTED),
            "The maximum number of names in the answer",
        ),
        ("sort", _) => (
            with_default(choice(&["recent", "rating", "id"]), "recent"),
            "The order of the games: the newest first, the highest ratings first, or by their numbers",
        ),
        ("fold", "/games") => (choice(&["match"]), "Lists only one game of each match"),
        ("fold", _) => (
            choice(&["variation"]),
            "Puts a variation and the variations within it in one row",
        ),
        ("by", "/scores") => (choice(&["rating"]), "What the results are divided by"),
        ("by", _) => (
            with_default(choice(&["score", "games"]), "score"),
            "How to choose the player's moves: by their score, or the most played ones",
        ),
        ("side", "/book.bin" | "/book.pgn") => (
            with_default(choice(&["white", "black", "both"]), "both"),
            "The side whose moves the book contains",
        ),
        ("side", _) => (choice(&["white", "black"]), "The side of the repertoire"),
        ("depth", "/gaps") => (depth(), "The maximum length of a line, in half-moves"),
        ("depth", _) => (
            with_default(depth(), 24),
            "The number of half-moves of each game that count",
        ),
        ("minGame", "/book.bin" | "/book.pgn") => (
            with_default(min_game(), 3),
            "The minimum number of games of a move",
        ),
        ("minGame", "/repertoire.bin" | "/repertoire.pgn") => {
            (min_game(), "The minimum number of games of a move")
        }
        ("minGame", _) => (
            with_default(min_game(), 2),
            "The minimum number of games of a gap",
        ),
        ("weights", _) => (
            with_default(choice(&["results", "games", "uniform"]), "results"),
            "What the weights of the moves are made from",
        ),
        ("count", _) => (
            switch(false),
            "Whether to answer with the size of the file and the command that makes it, instead of the file",
        ),
        ("reach", _) => (
            with_default(number(1, MOST_REACH), 200),
            "The repertoire answers each position that at least one of this number of games reaches",
        ),
        ("repertoire", _) => (
            text(),
            "The name of a repertoire of the server, or the id of one that was sent",
        ),
        ("edits", _) => (
            text(),
            "Changes of the repertoire for this request: lines of moves that are added, or removed if they begin with a \
             hyphen, such as e2e4,c7c5,g1f3;-d2d4. Give the parameter repertoire too",
        ),
        ("player", "/prepare") => (
            texts(),
            "The opponent. If the parameter is given several times, the names count as names of the same player",
        ),
        ("color", "/prepare") => (choice(&["white", "black"]), "The color of the opponent"),
        ("me", _) => (
            texts(),
            "The player who prepares. If the parameter is given several times, the names count as names of the same player",
        ),
        ("lines", _) => (
            number(0, MAX_LINES),
            "The maximum number of lines to look at first",
        ),
        ("halfLife", _) => (
            json!({"type": "number", "minimum": HalfLife::MIN}),
            "The number of years after which a game counts half",
        ),
        ("answer", _) => (
            text(),
            "The player's move in the position after the line, which the server records. An empty answer means that the \
             player does not know the move",
        ),
        ("new", _) => (
            with_default(number(0, MOST_NEW), DEFAULT_NEW),
            "The maximum number of new positions",
        ),
        ("name", _) => (text(), "The name of the file"),
        ("id", _) => (texts(), "The ids of the repertoires"),
        ("field", _) => (
            choice(&["player", "event", "opening"]),
            "The kind of the names",
        ),
        ("text", "/suggest") => (
            text(),
            "The text to which the names are similar, with up to two typing errors",
        ),
        ("text", _) => (text(), "A FEN, moves or a game"),
        ("with", _) => (
            texts(),
            "Opponents. Each player has the number of games against them in met",
        ),
        _ => return None,
    };
    Some((schema, description.to_owned()))
}

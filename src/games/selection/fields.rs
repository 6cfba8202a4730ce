//! The names of the conditions of a selection, and the text forms of their values.

use std::{fmt::Display, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use shakmaty::Color;
use thiserror::Error;

use super::{Duplicates, Evaluator, RatedStatus, Selection, WantedRating, WantedResult};
use crate::games::pgn::{Date, GameResult, HIGHEST_RATING, Mode, RatingGroup};

/// The advice for a user who enters a name without letters.
pub(super) const BLANK_NAME: &str = "give at least one letter of the name";

/// An error from [`Selection::set`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SetError {
    /// No condition has this name.
    #[error("there is no condition {0}")]
    Unknown(String),
    /// The value of the condition cannot be parsed. Contains advice on how to write it.
    #[error("{0}")]
    Malformed(String),
}

/// A way to spell the names of conditions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Spelling {
    /// A command-line option, such as `--min-elo`.
    Option,
    /// A parameter in HTTP, such as `minElo`.
    Parameter,
    /// An option in UCI, such as `MinElo`.
    Uci,
    /// A keyword argument in Python, such as `min_elo`.
    Keyword,
}

impl Spelling {
    /// Converts the name of a condition, such as `min-elo`, to this spelling.
    ///
    /// ```
    /// use polybook::selection::Spelling;
    ///
    /// assert_eq!(Spelling::Parameter.of("min-elo"), "minElo");
    /// assert_eq!(Spelling::Option.of("min-elo"), "--min-elo");
    /// ```
    pub fn of(self, name: &str) -> String {
        let mut words = name.split('-').map(str::to_owned);
        let first = words.next().unwrap_or_default();
        let upper = |word: String| {
            let mut chars = word.chars();
            let first = chars.next().map(|char| char.to_ascii_uppercase());
            first.into_iter().chain(chars).collect::<String>()
        };
        match self {
            Spelling::Option => format!("--{name}"),
            Spelling::Keyword => name.replace('-', "_"),
            Spelling::Parameter => first + &words.map(upper).collect::<String>(),
            Spelling::Uci => upper(first) + &words.map(upper).collect::<String>(),
        }
    }

    /// Converts a name in any spelling, such as `minElo` or `min_elo`, to words separated by hyphens, such as
    /// `min-elo`.
    fn plain(name: &str) -> String {
        let mut plain = String::new();
        for char in name.trim_start_matches('-').chars() {
            if char.is_ascii_uppercase() && !plain.is_empty() {
                plain.push('-');
            }
            plain.push(if char == '_' {
                '-'
            } else {
                char.to_ascii_lowercase()
            });
        }
        plain
    }
}

/// The form of a condition's value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number up to this maximum.
    Number(u32),
    /// A value without blanks, such as a date.
    Value,
    /// Values that are separated by commas. Contains the value of a command-line option that is given without one, or
    /// `None` if the option always needs a value.
    List(Option<&'static str>),
    /// Several values, each of which is given separately.
    Values,
    /// Any text.
    Text,
    /// Several texts, each of which is given separately.
    Texts,
    /// The name of an event, which may contain blanks.
    Name,
    /// Several names of one player.
    Names,
}

impl Form {
    /// Returns `true` if the condition may be given several times, with one value each.
    pub fn is_repeated(self) -> bool {
        matches!(self, Form::Values | Form::Texts | Form::Names)
    }

    /// Returns `true` if the value is any text, such as a name.
    pub fn is_text(self) -> bool {
        matches!(self, Form::Text | Form::Texts | Form::Name | Form::Names)
    }
}

/// The property of games that is missing in the data of each [`Evaluator`], so that it cannot apply a condition. `None`
/// means that the evaluator can apply the condition.
#[derive(Copy, Clone, Default)]
pub(super) struct Lacking {
    games: Option<&'static str>,
    each_game: Option<&'static str>,
    index: Option<&'static str>,
    counts: Option<&'static str>,
    moves: Option<&'static str>,
}

impl Lacking {
    const NOTHING: Lacking = Lacking {
        games: None,
        each_game: None,
        index: None,
        counts: None,
        moves: None,
    };

    /// Creates the value for a condition that needs games, or numbers of games by class. `moves` names the property
    /// that other sources of moves lack.
    const fn in_moves(moves: &'static str) -> Lacking {
        Lacking {
            moves: Some(moves),
            ..Lacking::NOTHING
        }
    }

    /// Creates the value for a condition that needs individual games. `counts` names the property that numbers of games
    /// lack.
    const fn in_counts(counts: &'static str) -> Lacking {
        Lacking {
            counts: Some(counts),
            ..Lacking::in_moves(counts)
        }
    }

    /// Creates the value for a condition that needs the tags of games in PGN. `index` names the property that an index
    /// lacks.
    const fn in_indexes(index: &'static str) -> Lacking {
        Lacking {
            index: Some(index),
            ..Lacking::in_counts(index)
        }
    }

    pub(super) fn get(self, evaluator: Evaluator) -> Option<&'static str> {
        match evaluator {
            Evaluator::Games => self.games,
            Evaluator::EachGame => self.each_game,
            Evaluator::Index => self.index,
            Evaluator::Counts => self.counts,
            Evaluator::Moves => self.moves,
        }
    }
}

/// A condition of a [`Selection`]: its name, its value, and everything that a user interface needs to offer it.
pub struct Field<'a> {
    /// The name of the condition, such as `min-elo`.
    pub name: &'static str,
    /// The form of the condition's value, such as a number or a list.
    pub form: Form,
    /// The placeholder for the value in the help text, such as `N`.
    pub value_name: &'static str,
    /// The help text of the condition.
    pub help: &'static str,
    pub(super) lacking: Lacking,
    /// The current value of the condition. Empty if the condition is not set.
    pub texts: Vec<String>,
    add: Add<'a>,
}

/// A function that parses a value and adds it to a condition. If the value is invalid, the function returns an error
/// message.
type Add<'a> = Box<dyn FnMut(&str) -> Result<(), String> + 'a>;

/// The current value of a condition as text, and a function that adds a value.
type Access<'a> = (Vec<String>, Add<'a>);

impl<'a> Field<'a> {
    fn new(
        name: &'static str,
        (form, value_name): (Form, &'static str),
        lacking: Lacking,
        (texts, add): Access<'a>,
        help: &'static str,
    ) -> Field<'a> {
        Field {
            name,
            form,
            value_name,
            help,
            lacking,
            texts,
            add,
        }
    }

    pub(super) fn into_value(self) -> Option<ConditionValue> {
        (!self.texts.is_empty()).then_some(ConditionValue {
            name: self.name,
            form: self.form,
            texts: self.texts,
        })
    }
}

/// A condition that is set in a selection, with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConditionValue {
    /// The name of the condition, such as `min-elo`.
    pub name: &'static str,
    form: Form,
    /// The values of the condition as text. A condition that is a switch has the value `true`.
    pub texts: Vec<String>,
}

impl ConditionValue {
    /// Returns the command-line options that set the condition. Each item contains an option and, as a separate word,
    /// its value. The second word is `None` if the option has no value, or if the value follows an equals sign.
    pub fn words(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        self.texts.iter().map(|text| {
            let name = Spelling::Option.of(self.name);
            match self.form {
                Form::Switch => (name, None),
                Form::List(Some(default)) if text == default => (name, None),
                // The value of an option that may have none follows an equals sign.
                Form::List(Some(_)) => (format!("{name}={text}"), None),
                _ => (name, Some(&**text)),
            }
        })
    }

    /// Returns the command-line options that set the condition, such as `--min-elo 2000`. Texts are quoted.
    pub(super) fn options(&self) -> impl Iterator<Item = String> {
        self.words().map(|(name, text)| match text {
            Some(text) if self.form.is_text() => format!("{name} {text:?}"),
            Some(text) => format!("{name} {text}"),
            None => name,
        })
    }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|err: T::Err| err.to_string())
}

fn switch(slot: &mut bool) -> Access<'_> {
    let texts = Vec::from_iter(slot.then(|| "true".to_owned()));
    let add = |text: &str| {
        *slot = is_on(text)?;
        Ok(())
    };
    (texts, Box::new(add))
}

fn is_on(text: &str) -> Result<bool, String> {
    match &*text.to_ascii_lowercase() {
        "true" | "1" | "on" | "yes" => Ok(true),
        "false" | "0" | "off" | "no" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

fn one<T: Display>(slot: &mut Option<T>, parse: fn(&str) -> Result<T, String>) -> Access<'_> {
    let texts = slot.iter().map(ToString::to_string).collect();
    let add = move |text: &str| {
        *slot = Some(parse(text)?);
        Ok(())
    };
    (texts, Box::new(add))
}

fn many<T: Display>(slot: &mut Vec<T>, parse: fn(&str) -> Result<T, String>) -> Access<'_> {
    let texts = slot.iter().map(ToString::to_string).collect();
    let add = move |text: &str| {
        slot.push(parse(text)?);
        Ok(())
    };
    (texts, Box::new(add))
}

/// Returns the text of a list and a function that adds elements, which are separated by commas. An empty text stands
/// for an empty list, which no game passes.
fn list<T: Display>(slot: &mut Option<Vec<T>>, parse: fn(&str) -> Result<T, String>) -> Access<'_> {
    let joined = |values: &Vec<T>| Vec::from_iter(values.iter().map(T::to_string)).join(",");
    let texts = slot.iter().map(joined).collect();
    let add = move |text: &str| {
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        let values: Vec<T> = parts.map(parse).collect::<Result<_, _>>()?;
        slot.get_or_insert_default().extend(values);
        Ok(())
    };
    (texts, Box::new(add))
}

fn rating_bound(text: &str) -> Result<u32, String> {
    let number = text.trim().parse();
    number.map_err(|_| "use a whole number, 0 or larger".to_owned())
}

/// Returns the text of a list of results and a function that adds results, which may be separated by commas. Some
/// spellings of a single result also contain a comma.
fn results(slot: &mut Vec<WantedResult>) -> Access<'_> {
    let texts = slot.iter().map(ToString::to_string).collect();
    let add = |text: &str| {
        let parts: Option<Vec<WantedResult>> = text
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(|part| token(part.trim()))
            .collect();
        match parts {
            Some(parts) if !parts.is_empty() => slot.extend(parts),
            _ => slot.push(parse(text)?),
        }
        Ok(())
    };
    (texts, Box::new(add))
}

fn rated(slot: &mut Option<Vec<RatedStatus>>) -> Access<'_> {
    let (texts, mut add) = list(slot, parse);
    let add = move |text: &str| match is_on(text) {
        Ok(true) => add("rated"),
        Ok(false) => Ok(()),
        Err(_) => add(text),
    };
    (texts, Box::new(add))
}

fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err(BLANK_NAME.to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn color(text: &str) -> Result<Color, String> {
    let name = text.to_ascii_lowercase();
    name.parse().map_err(|_| "use white or black".to_owned())
}

/// The greatest minimum length of games, in half-moves, that can be required. An index stores no greater lengths.
const MAX_MIN_PLIES: u32 = u16::MAX as u32;

impl Selection {
    /// Returns all conditions, in the order in which they are written as options.
    ///
    /// The function destructures the selection without `..`, so a new condition does not compile until its name, its
    /// form, and the data that it needs are added here.
    pub fn fields(&mut self) -> Vec<Field<'_>> {
        let has_names = self.has_names() || self.event.is_some();
        let Selection {
            min_elo,
            max_elo,
            min_plies,
            since,
            until,
            result,
            player,
            color: color_of_player,
            opponent,
            opponent_rating,
            white,
            black,
            event,
            eco,
            tag,
            not_tag,
            rating,
            speed,
            time_control,
            require_elo,
            require_date,
            exact,
            rated: rated_status,
            opening,
            position,
            duplicates,
            source,
            // The option `unfinished` of commands sets it.
            skip_unfinished: _,
        } = self;
        let elo = (Form::Number(HIGHEST_RATING as u32), "N");
        let elos = Lacking::in_counts("ratings of single players");
        let dates = |date: Option<Date>| match date.and_then(Date::day) {
            Some(_) => Lacking::in_counts("days"),
            None => Lacking::in_moves("dates"),
        };
        let [since_lacks, until_lacks] = [dates(*since), dates(*until)];
        let names = (Form::Names, "NAME");
        let players = Lacking::in_counts("player names");
        let tags = Lacking::in_indexes("tags");
        let mut exact = switch(exact);
        if !has_names {
            exact.0.clear();
        }
        let plies = {
            let texts = Vec::from_iter((*min_plies > 0).then(|| min_plies.to_string()));
            let add = |text: &str| {
                let number = parse(text).ok().filter(|plies| *plies <= MAX_MIN_PLIES);
                *min_plies =
                    number.ok_or_else(|| format!("use a number from 0 to {MAX_MIN_PLIES}"))?;
                Ok(())
            };
            (texts, Box::new(add) as Box<dyn FnMut(&str) -> _>)
        };
        vec![
            Field::new(
                "min-elo",
                elo,
                elos,
                one(min_elo, rating_bound),
                "Keep games in which both players are rated N or higher. A player without a rating does not exclude the \
                 game",
            ),
            Field::new(
                "max-elo",
                elo,
                elos,
                one(max_elo, rating_bound),
                "Keep games in which both players are rated N or lower. A player without a rating does not exclude the \
                 game",
            ),
            Field::new(
                "min-plies",
                (Form::Number(MAX_MIN_PLIES), "N"),
                Lacking::in_counts("lengths of games"),
                plies,
                "Keep games with at least N half-moves",
            ),
            Field::new(
                "since",
                (Form::Value, "DATE"),
                since_lacks,
                one(since, parse),
                "Keep games played on DATE (YYYY, YYYY.MM or YYYY.MM.DD) or later. Games without a known date are kept",
            ),
            Field::new(
                "until",
                (Form::Value, "DATE"),
                until_lacks,
                one(until, parse),
                "Keep games played on DATE or earlier. Games without a known date are kept",
            ),
            Field::new(
                "result",
                (Form::Values, "R"),
                Lacking::in_counts("games to choose by their results"),
                results(result),
                "Keep games with this result: 1-0, 0-1, 1/2-1/2 or *; can be given several times. With player, win \
                 keeps the games that the player won, and loss the games that the player lost",
            ),
            Field::new(
                "player",
                names,
                players,
                many(player, name),
                "Keep games of the player whose name contains NAME, ignoring case. If the option is given several times, \
                 the names count as names of the same player",
            ),
            Field::new(
                "color",
                (Form::Choice(&["white", "black"]), "white|black"),
                Lacking::NOTHING,
                one(color_of_player, color),
                "Keep games in which the player whom player names has this color",
            ),
            Field::new(
                "opponent",
                names,
                players,
                many(opponent, name),
                "Keep games against an opponent whose name contains NAME. If the option is given several times, games \
                 that match any of the names are kept",
            ),
            Field::new(
                "opponent-rating",
                (Form::Value, "LOW-HIGH"),
                elos,
                one(opponent_rating, parse),
                "Keep games in which the opponent of the player has a rating from LOW to HIGH, such as 2000-2199, 2000- \
                 or -2199",
            ),
            Field::new(
                "white",
                names,
                players,
                many(white, name),
                "Keep games in which White's name contains NAME. If the option is given several times, games that match \
                 any of the names are kept",
            ),
            Field::new(
                "black",
                names,
                players,
                many(black, name),
                "Keep games in which Black's name contains NAME. If the option is given several times, games that match \
                 any of the names are kept",
            ),
            Field::new(
                "event",
                (Form::Name, "NAME"),
                Lacking::in_counts("events"),
                one(event, name),
                "Keep games of an event whose name contains NAME, ignoring case",
            ),
            Field::new(
                "eco",
                (Form::Values, "RANGE"),
                Lacking::in_counts("opening codes"),
                many(eco, parse),
                "Keep games whose opening code (tag ECO) is in this range, such as B20-B99, B2 (for B20-B29) or B; can \
                 be given several times",
            ),
            Field::new(
                "tag",
                (Form::Texts, "NAME=TEXT"),
                tags,
                many(tag, |text| text.parse().map_err(to_text)),
                "Keep games whose tag NAME contains TEXT, ignoring case. If the option is given several times, only \
                 games that match all of them are kept",
            ),
            Field::new(
                "not-tag",
                (Form::Texts, "NAME=TEXT"),
                tags,
                many(not_tag, |text| text.parse().map_err(to_text)),
                "Keep games whose tag NAME does not contain TEXT, ignoring case. If the option is given several times, \
                 games that match none of them are kept",
            ),
            Field::new(
                "rating",
                (Form::List(None), "N|unknown"),
                Lacking::in_moves("ratings"),
                list(rating, parse),
                "Keep games whose mean rating is in the group that begins at N: 0, 1000, 1200, 1400, 1600, 1800, 2000, \
                 2200 or 2500. The value unknown keeps games in which no rating is known. All nine groups keep all \
                 games. Separate several with commas, or give the option several times",
            ),
            Field::new(
                "speed",
                (Form::List(None), "SPEED"),
                Lacking::in_moves("speeds"),
                list(speed, parse),
                "Keep games of this speed: ultraBullet, bullet, blitz, rapid, classical or correspondence. Games whose \
                 TimeControl tag is missing or not in seconds count as classical. Separate several speeds with commas, \
                 or give the option several times",
            ),
            Field::new(
                "time-control",
                (Form::Value, "MIN-MAX"),
                Lacking::in_indexes("time controls, only speeds"),
                one(time_control, parse),
                "Keep games in which the time for 40 moves (base time + 40 x increment) is from MIN to MAX seconds, such \
                 as 180-480, 600- or -60",
            ),
            Field::new(
                "require-elo",
                (Form::Switch, ""),
                elos,
                switch(require_elo),
                "Keep only games in which both players have a rating",
            ),
            Field::new(
                "require-date",
                (Form::Switch, ""),
                Lacking::in_moves("dates"),
                switch(require_date),
                "Keep only games with a known year",
            ),
            Field::new(
                "exact",
                (Form::Switch, ""),
                Lacking::NOTHING,
                exact,
                "Match only whole names in player, opponent, white, black and event",
            ),
            Field::new(
                "rated",
                (Form::List(Some("rated")), "STATUS"),
                Lacking::in_counts("events, which say whether games are rated"),
                rated(rated_status),
                "Keep games whose tag Event contains the word \"rated\", which Lichess writes for rated games. \
                 =rated,unknown also keeps games whose tag does not say whether they are rated, and =casual keeps games \
                 that are not rated",
            ),
            Field::new(
                "opening",
                (Form::Text, "NAME|CODES"),
                Lacking::in_counts("openings of games"),
                one(opening, parse),
                "Keep games whose moves lead to this opening, whatever their tags say. Give a part of the opening's \
                 name, or a range of ECO codes such as B20-B99. A name such as Sicilian Defense includes all variations \
                 of this opening",
            ),
            Field::new(
                "position",
                (Form::Text, "QUERY"),
                Lacking::in_counts("moves of games"),
                one(position, |text| text.parse().map_err(to_text)),
                "Keep games in which QUERY holds in a position of the main line, such as \"P[d] = 1 and P[c,e] = 0\" for \
                 an isolated pawn, or material[KRPPvKRP]. docs/search.md describes the language",
            ),
            Field::new(
                "duplicates",
                (Form::Choice(&["once", "all"]), "once|all"),
                Lacking {
                    each_game: Some("duplicates that are recognized"),
                    ..Lacking::in_counts("duplicates")
                },
                {
                    let (mut texts, add) = one(duplicates, parse);
                    texts.retain(|text| text != "all");
                    (texts, add)
                },
                "Count a game once even if the input contains several copies of it (once), or count every copy (all) \
                 [default: all; for prepare, once]",
            ),
            Field::new(
                "source",
                (Form::Text, "NAME"),
                Lacking {
                    games: Some("names of sources"),
                    each_game: Some("names of sources"),
                    ..Lacking::in_moves("names of sources")
                },
                one(source, |text| Ok(text.to_owned())),
                "Keep games of the index with this name",
            ),
        ]
    }

    /// Returns the names of all conditions, such as `min-elo`.
    pub fn condition_names() -> Vec<&'static str> {
        let mut selection = Selection::default();
        let fields = selection.fields();
        fields.iter().map(|field| field.name).collect()
    }

    /// Other names that [`set`](Selection::set) accepts: those of Lichess's parameters and of earlier options.
    pub const ALIASES: [&str; 5] = ["speeds", "ratings", "modes", "min-ply", "drop-duplicates"];

    /// Sets a condition, or adds a value to a condition that may have several. `name` is the name of the condition in
    /// any [`Spelling`], or one of [`ALIASES`](Selection::ALIASES). `text` is the value as on the command line.
    ///
    /// # Errors
    ///
    /// Returns [`SetError::Unknown`] if no condition has this name, and [`SetError::Malformed`] if the value cannot be
    /// parsed.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let (name, text) =
            without_alias(Spelling::plain(name), text).map_err(SetError::Malformed)?;
        let fields = self.fields().into_iter();
        let field = { fields }.find(|field| field.name == name);
        let mut field = field.ok_or(SetError::Unknown(name))?;
        (field.add)(&text).map_err(SetError::Malformed)
    }
}

impl Selection {
    /// Replaces the values of a condition. If `texts` is empty, removes the condition.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`set`](Selection::set). In this case, the selection does not change.
    pub fn replace(&mut self, name: &str, texts: &[String]) -> Result<(), SetError> {
        let mut replaced = Selection {
            skip_unfinished: self.skip_unfinished,
            exact: self.exact && name != "exact",
            ..Selection::default()
        };
        for value in self.given() {
            for text in value.texts.iter().filter(|_| value.name != name) {
                replaced.set(value.name, text)?;
            }
        }
        for text in texts {
            replaced.set(name, text)?;
        }
        *self = replaced;
        Ok(())
    }
}

fn to_text(err: impl Display) -> String {
    err.to_string()
}

/// Returns the standard name of a condition, such as `min-elo`. `name` is its name in any [`Spelling`], or one of
/// [`ALIASES`](Selection::ALIASES). Returns any other name unchanged.
pub(crate) fn condition_name(name: &str) -> String {
    let plain = Spelling::plain(name);
    match &*plain {
        "speeds" => "speed",
        "ratings" => "rating",
        "modes" => "rated",
        "min-ply" => "min-plies",
        "drop-duplicates" => "duplicates",
        _ => return plain,
    }
    .to_owned()
}

/// Converts an alias and its value to the name of the condition that it stands for, and the value of that condition.
fn without_alias(alias: String, text: &str) -> Result<(String, String), String> {
    let each = |change: fn(&str) -> Result<String, String>| {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let parts: Result<Vec<String>, String> = parts.map(change).collect();
        parts.map(|parts| parts.join(","))
    };
    let value = match &*alias {
        // Lichess accepts any rating of a group.
        "ratings" => each(floor)?,
        // Lichess knows no games that do not say whether they are rated.
        "modes" => each(|mode| match parse(mode)? {
            Mode::Rated => Ok("rated,unknown".to_owned()),
            Mode::Casual => Ok("casual".to_owned()),
        })?,
        "drop-duplicates" => {
            let value = if is_on(text)? { "once" } else { "all" };
            value.to_owned()
        }
        _ => text.to_owned(),
    };
    Ok((condition_name(&alias), value))
}

/// Returns the lowest rating of the group that contains a rating. Returns `unknown` unchanged.
fn floor(text: &str) -> Result<String, String> {
    let is_plain = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let rating = Some(text)
        .filter(is_plain)
        .and_then(|text| text.parse().ok());
    match rating.filter(|rating| *rating <= u32::from(HIGHEST_RATING)) {
        Some(rating) => Ok(RatingGroup::of(rating).to_string()),
        None if text == "unknown" => Ok(text.to_owned()),
        None => Err(format!(
            "use ratings from 0 to {HIGHEST_RATING}, or unknown"
        )),
    }
}

/// Parses a result in its most common spelling. Returns `None` for any other spelling.
fn token(text: &str) -> Option<WantedResult> {
    match text {
        "win" => Some(WantedResult::Win),
        "loss" => Some(WantedResult::Loss),
        "draw" => Some(WantedResult::Game(GameResult::Draw)),
        text => GameResult::from_token(text.as_bytes()).map(WantedResult::Game),
    }
}

impl FromStr for WantedResult {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<WantedResult, &'static str> {
        let spelled = || GameResult::from_text(text.as_bytes()).map(WantedResult::Game);
        token(text)
            .or_else(spelled)
            .ok_or("use 1-0, 0-1, 1/2-1/2 or *; with a player, win and loss are also possible")
    }
}

impl Display for WantedResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            WantedResult::Game(result) => result.token(),
            WantedResult::Win => "win",
            WantedResult::Loss => "loss",
        })
    }
}

impl FromStr for WantedRating {
    type Err = String;

    fn from_str(text: &str) -> Result<WantedRating, String> {
        match text {
            "unknown" => Ok(WantedRating(None)),
            text => Ok(WantedRating(Some(parse(text)?))),
        }
    }
}

impl Display for WantedRating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(group) => group.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

impl FromStr for RatedStatus {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<RatedStatus, &'static str> {
        match text {
            "rated" => Ok(RatedStatus::Rated),
            "unknown" => Ok(RatedStatus::Unknown),
            "casual" => Ok(RatedStatus::Casual),
            _ => Err("use rated, unknown or casual"),
        }
    }
}

impl Display for RatedStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RatedStatus::Rated => "rated",
            RatedStatus::Unknown => "unknown",
            RatedStatus::Casual => "casual",
        })
    }
}

impl FromStr for Duplicates {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Duplicates, &'static str> {
        match text {
            "once" => Ok(Duplicates::Once),
            "all" => Ok(Duplicates::All),
            _ => Err("use once or all"),
        }
    }
}

impl Display for Duplicates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Duplicates::Once => "once",
            Duplicates::All => "all",
        })
    }
}

/// Deserializes a map from names in any [`Spelling`] to values. A value may be a text as on the command line, a number,
/// `true` or `false`, null, or a list of values.
impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Selection, D::Error> {
        struct Conditions;

        impl<'de> Visitor<'de> for Conditions {
            type Value = Selection;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of conditions on games")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selection, A::Error> {
                let mut selection = Selection::default();
                while let Some((name, value)) = map.next_entry::<String, Given>()? {
                    for text in value.texts() {
                        let set = selection.set(&name, &text);
                        set.map_err(|err| A::Error::custom(format_args!("{name}: {err}")))?;
                    }
                }
                Ok(selection)
            }
        }

        deserializer.deserialize_map(Conditions)
    }
}

/// A value of a condition in a serialized form.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Switch(bool),
    Number(u64),
    Text(String),
    List(Vec<Given>),
    Nothing(()),
}

impl Given {
    fn texts(self) -> Vec<String> {
        match self {
            Given::Switch(is_on) => vec![is_on.to_string()],
            Given::Number(number) => vec![number.to_string()],
            Given::Text(text) => vec![text],
            Given::List(values) => values.into_iter().flat_map(Given::texts).collect(),
            Given::Nothing(()) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_text_can_be_spelled() {
        for (name, parameter, uci) in [
            ("", "", ""),
            ("a--b-", "aB", "AB"),
            ("över-ära-b", "överäraB", "överäraB"),
        ] {
            assert_eq!(Spelling::Parameter.of(name), parameter);
            assert_eq!(Spelling::Uci.of(name), uci);
        }
    }

    /// Returns conditions with valid values, of which each condition has two.
    const VALUES: [(&str, [&str; 2]); 28] = [
        ("min-elo", ["0", "2000"]),
        ("max-elo", ["4000", "1"]),
        ("min-plies", ["1", "65535"]),
        ("since", ["1990", "1990.02.28"]),
        ("until", ["2024.12", "2024"]),
        ("result", ["1-0", "loss"]),
        ("player", ["Carlsen, Magnus", "a"]),
        ("color", ["white", "black"]),
        ("opponent", ["Tal", "O'Kelly"]),
        ("opponent-rating", ["2000-2199", "-1999"]),
        ("white", ["x", "\"y\""]),
        ("black", ["z", "ß"]),
        ("event", ["Wch", "a, b"]),
        ("eco", ["B20-B99", "A00-A09"]),
        ("tag", ["Site=x", "A=b=c"]),
        ("not-tag", ["Site=", "B=,"]),
        ("rating", ["0,unknown", "2500"]),
        ("speed", ["blitz", "ultraBullet,rapid"]),
        ("time-control", ["180-480", "600-"]),
        ("require-elo", ["true", "true"]),
        ("require-date", ["true", "true"]),
        ("exact", ["true", "true"]),
        ("rated", ["rated", "unknown,casual"]),
        ("opening", ["Sicilian Defense", "B20-B99"]),
        (
            "position",
            ["P[d] = 1 and P[c,e] = 0", " move[Bxh7, x] // a, b"],
        ),
        ("duplicates", ["once", "once"]),
        ("source", ["games", "a b"]),
        ("player", ["Fischer", "b"]),
    ];

    proptest! {
        #[test]
        fn conditions_are_parsed_as_they_are_written(
            chosen in proptest::collection::vec((0..VALUES.len(), 0..2_usize), 0..12),
        ) {
            let mut selection = Selection::default();
            let mut document = serde_json::Map::new();
            for (at, which) in chosen {
                let (name, values) = VALUES[at];
                selection.set(name, values[which]).unwrap();
            }
            // `exact` means nothing without a name.
            selection.exact &= selection.has_names() || selection.event.is_some();
            let mut parsed = Selection::default();
            for value in selection.given() {
                for text in &value.texts {
                    parsed.set(value.name, text).unwrap();
                }
                document.insert(Spelling::Parameter.of(value.name), value.texts.into());
            }
            prop_assert_eq!(&parsed, &selection);
            let parsed: Selection = serde_json::from_value(document.into()).unwrap();
            prop_assert_eq!(parsed, selection);
        }
    }

    #[test]
    fn names_have_four_spellings_and_aliases() {
        for name in Selection::condition_names() {
            let of = |spelling: Spelling| Spelling::plain(&spelling.of(name));
            let spellings = [
                Spelling::Option,
                Spelling::Parameter,
                Spelling::Uci,
                Spelling::Keyword,
            ];
            assert_eq!(spellings.map(of), [name; 4]);
            assert!(VALUES.iter().any(|(known, _)| *known == name), "{name}");
        }
        let given = |name: &str, text: &str| {
            let mut selection = Selection::default();
            selection.set(name, text).map(|()| selection.option_text())
        };
        for (name, text, expected) in [
            ("speeds", "blitz,rapid", "--speed blitz,rapid"),
            ("ratings", "1700,unknown", "--rating 1600,unknown"),
            ("modes", "rated", "--rated=rated,unknown"),
            ("modes", "casual", "--rated=casual"),
            ("rated", "true", "--rated"),
            ("rated", "false", ""),
            ("minPly", "7", "--min-plies 7"),
            ("min_ply", "7", "--min-plies 7"),
            ("drop_duplicates", "true", "--duplicates once"),
            ("duplicates", "all", ""),
            ("result", "0,5-0,5", "--result 1/2-1/2"),
            ("result", "win,draw", "--result win --result 1/2-1/2"),
            ("notTag", "Site=x y", "--not-tag \"Site=x y\""),
        ] {
            assert_eq!(given(name, text).as_deref(), Ok(expected), "{name} {text}");
        }
        for (name, text) in [
            ("speed", "light"),
            ("ratings", "4001"),
            ("rating", "1700"),
            ("min-plies", "65536"),
            ("player", " "),
            ("color", "red"),
            ("exact", "perhaps"),
        ] {
            assert!(
                matches!(given(name, text), Err(SetError::Malformed(_))),
                "{name} {text}"
            );
        }
        assert_eq!(
            given("min-pieces", "3"),
            Err(SetError::Unknown("min-pieces".to_owned()))
        );
    }

    #[test]
    fn values_are_replaced_or_kept() {
        let mut selection = Selection::default();
        selection.set("player", "Tal").unwrap();
        selection
            .replace("player", &["A".to_owned(), "B".to_owned()])
            .unwrap();
        selection.replace("exact", &["true".to_owned()]).unwrap();
        selection.replace("since", &["2020".to_owned()]).unwrap();
        assert!(selection.replace("since", &["soon".to_owned()]).is_err());
        assert_eq!(
            selection.option_text(),
            "--since 2020 --player \"A\" --player \"B\" --exact"
        );
        selection.replace("player", &[]).unwrap();
        selection.replace("since", &[]).unwrap();
        assert!(selection.is_empty());
    }

    #[test]
    fn conditions_that_cannot_be_applied_are_named() {
        for (name, text, [games, each_game, index, counts]) in [
            ("player", "a", [true, true, true, false]),
            ("tag", "A=b", [true, true, false, false]),
            ("time-control", "60-", [true, true, false, false]),
            ("duplicates", "once", [true, false, true, false]),
            ("source", "a", [false, false, true, true]),
            ("since", "2020.05", [true, true, true, true]),
            ("until", "2020.05.06", [true, true, true, false]),
            ("speed", "blitz", [true, true, true, true]),
            ("rating", "1600", [true, true, true, true]),
            ("require-date", "true", [true, true, true, true]),
            ("opening", "najdorf", [true, true, true, false]),
            ("position", "check", [true, true, true, false]),
        ] {
            let mut selection = Selection::default();
            selection.set(name, text).unwrap();
            for (by, can) in [
                (Evaluator::Games, games),
                (Evaluator::EachGame, each_game),
                (Evaluator::Index, index),
                (Evaluator::Counts, counts),
                (Evaluator::Moves, false),
            ] {
                let named = selection.unanswerable(by).map(|it| it.condition);
                assert_eq!(named, (!can).then_some(name), "{name} {by}");
            }
        }
    }
}

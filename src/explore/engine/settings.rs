//! The UCI options of the engine, with their values.

use std::{fmt::Display, str::FromStr};

use shakmaty::Color;

use super::second_engine::SecondEngine;
use crate::{
    chess::position::Variant,
    games::selection::{Form, Selection},
};

/// The rule by which the engine chooses one of the moves of a position.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Play {
    /// Chooses a random move. The probability of a move is proportional to its weight or, if it has results, to its
    /// number of games times the square of its score.
    #[default]
    Weighted,
    /// Chooses the best move: the one with the largest lower bound of its score or, if moves have no results, with the
    /// largest weight.
    Best,
    /// Chooses a random move; all moves are equally likely.
    Uniform,
}

/// The choice of a move in a position for which no source has a move. It matters only without a second engine.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Fallback {
    /// No move. The engine answers `bestmove (none)`.
    #[default]
    None,
    /// Plays a random legal move.
    Random,
}

impl Play {
    /// All rules for choosing a move, with the names that UCI options use for them.
    pub const NAMES: [(&str, Play); 3] = [
        ("weighted", Play::Weighted),
        ("best", Play::Best),
        ("uniform", Play::Uniform),
    ];
}

impl Fallback {
    /// All fallbacks for positions that no source contains, with the names that UCI options use for them.
    pub const NAMES: [(&str, Fallback); 2] =
        [("none", Fallback::None), ("random", Fallback::Random)];
}

/// All chess variants, with the names that UCI uses for them. Antichess has two names.
pub(super) const VARIANTS: [(&str, Variant); 10] = [
    ("chess", Variant::Standard),
    ("crazyhouse", Variant::Crazyhouse),
    ("suicide", Variant::Suicide),
    ("giveaway", Variant::Giveaway),
    ("antichess", Variant::Giveaway),
    ("atomic", Variant::Atomic),
    ("3check", Variant::ThreeCheck),
    ("horde", Variant::Horde),
    ("kingofthehill", Variant::KingOfTheHill),
    ("racingkings", Variant::RacingKings),
];

/// The values of the engine's UCI options.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rule by which a move is chosen.
    pub play: Play,
    /// The seed of the random number generator. 0 means a different random seed in each run.
    pub seed: u64,
    /// The minimum score of a move to be played, in percent. Moves without results always pass.
    pub min_score: u8,
    /// The minimum number of games of a move to be played. Moves without results always pass.
    pub min_games: u64,
    /// The number of the last move of a game that may come from the sources, or 0 for no limit. A move of White and the
    /// following move of Black have the same number.
    pub max_book_depth: u32,
    /// The minimum length, in half-moves, of the lines in the sources that begin with a move. A move with which only
    /// shorter lines begin is not played. 0 and 1 mean no limit.
    pub leave_before_end: u32,
    /// The choice of a move in a position that no source contains, if there is no second engine.
    pub fallback: Fallback,
    /// The number of moves to show with each answer, at least 1. This is the UCI option `MultiPV`.
    pub multi_pv: usize,
    /// Whether the shares of wins, draws and losses are shown for each move.
    pub show_wdl: bool,
    /// The filters that select the games of an index. If they name a player, the engine plays only this player's moves,
    /// not the moves of the player's opponents.
    pub filters: Selection,
    /// The variant of the positions. Chess960 is standard chess with `is_chess960`.
    pub variant: Variant,
    /// Whether castling moves are read and written as in Chess960.
    pub is_chess960: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            play: Play::default(),
            seed: 0,
            min_score: 0,
            min_games: 0,
            max_book_depth: 0,
            leave_before_end: 0,
            fallback: Fallback::default(),
            multi_pv: 1,
            show_wdl: true,
            filters: Selection::default(),
            variant: Variant::Standard,
            is_chess960: false,
        }
    }
}

impl Settings {
    /// Returns the variant by whose rules positions are played. This is Chess960 if the variant is standard chess and
    /// the option `UCI_Chess960` is set, otherwise the variant in the settings.
    pub(super) fn rules(&self) -> Variant {
        match self.variant {
            Variant::Standard if self.is_chess960 => Variant::Chess960,
            variant => variant,
        }
    }

    /// Returns the filters that select the games whose moves the engine plays as `side`. If the filters name a player,
    /// the engine plays only the moves of this player, who must therefore have the color `side`. Returns `None` if the
    /// filters require the other color of the player.
    pub(super) fn filters_as(&self, side: Color) -> Option<Selection> {
        let filters = &self.filters;
        let is_other = filters.color.is_some_and(|color| color != side);
        (filters.player.is_empty() || !is_other).then(|| filters.for_side(side))
    }
}

/// A value in [`Settings`] that a UCI option reads and sets in the form of a string. The empty string means that the
/// option has no value.
trait OptionValue {
    fn text(&self) -> String;

    /// Sets the value to `text`, the string that the user interface has sent. If `text` is invalid, leaves the value
    /// unchanged and returns a message for the user.
    fn set_from_text(&mut self, text: &str) -> Result<(), String>;

    /// Returns the possible values in the form of a UCI option declaration, for example `var best var uniform`. Returns
    /// an empty string if the option has no fixed list of values, for example because it is a number.
    fn values(&self) -> String {
        String::new()
    }
}

/// A UCI option whose value is one of several named values. The first field refers to the value in [`Settings`], and
/// the second field is a table of all values and their names.
struct Choice<'a, T: 'static>(&'a mut T, &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> OptionValue for Choice<'_, T> {
    fn text(&self) -> String {
        let mut names = self.1.iter();
        let chosen = names.find(|(_, value)| value == self.0);
        chosen.map_or("", |(name, _)| name).to_owned()
    }

    fn set_from_text(&mut self, text: &str) -> Result<(), String> {
        let mut names = self.1.iter();
        let chosen = names.find(|(name, _)| name.eq_ignore_ascii_case(text));
        *self.0 = chosen.ok_or("not one of the values")?.1;
        Ok(())
    }

    fn values(&self) -> String {
        let names = self.1.iter().map(|(name, _)| format!("var {name}"));
        names.collect::<Vec<String>>().join(" ")
    }
}

/// A UCI option that always has a value, such as a number. The field refers to the value in [`Settings`].
struct Always<'a, T>(&'a mut T);

impl<T: Display + FromStr<Err: Display>> OptionValue for Always<'_, T> {
    fn text(&self) -> String {
        self.0.to_string()
    }

    fn set_from_text(&mut self, text: &str) -> Result<(), String> {
        *self.0 = text.parse().map_err(|err: T::Err| err.to_string())?;
        Ok(())
    }
}

/// A UCI option that sets the condition on games with the given name. Several names in a value are separated by
/// semicolons, because a name may contain commas.
struct ConditionOption<'a>(&'a mut Selection, &'static str);

impl ConditionOption<'_> {
    fn form(&self) -> Form {
        let mut selection = Selection::default();
        let fields = selection.fields();
        let mut fields = fields.iter();
        let field = fields.find(|field| field.name == self.1);
        field.expect("a condition has this name").form
    }

    /// Returns the value of the option that means "no condition".
    fn nothing(&self) -> &'static str {
        match self.form() {
            Form::Switch => "false",
            Form::Choice(_) => "any",
            Form::Number(_) => "0",
            _ => "",
        }
    }
}

impl OptionValue for ConditionOption<'_> {
    fn text(&self) -> String {
        let given = self.0.given().into_iter();
        let mut given = given.filter(|given| given.name == self.1);
        match (given.next(), self.form()) {
            (None, _) => self.nothing().to_owned(),
            (Some(given), Form::Names | Form::Texts) => given.texts.join("; "),
            (Some(given), _) => given.texts.join(","),
        }
    }

    fn set_from_text(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        let texts: Vec<String> = match self.form() {
            _ if text.is_empty() || text == self.nothing() => Vec::new(),
            Form::Names | Form::Texts => {
                let names = text.split(';').map(str::trim);
                let names = names.filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
            Form::List(_) | Form::Values => {
                let words = text.split([',', ' ']).filter(|word| !word.is_empty());
                words.map(str::to_owned).collect()
            }
            _ => vec![text.to_owned()],
        };
        let replaced = self.0.replace(self.1, &texts);
        replaced.map_err(|err| err.to_string())
    }

    fn values(&self) -> String {
        let Form::Choice(values) = self.form() else {
            return String::new();
        };
        let values = values.iter().map(|value| format!(" var {value}"));
        "var any".to_owned() + &values.collect::<String>()
    }
}

/// The definition of a UCI option: its name and type, the range of its value if it is a number, and a function that
/// returns the value in given [`Settings`].
struct Definition {
    name: &'static str,
    kind: &'static str,
    range: &'static str,
    value: for<'a> fn(&'a mut Settings) -> Box<dyn OptionValue + 'a>,
}

macro_rules! options {
    ($($name:literal, $kind:literal, $range:literal, $settings:ident => $value:expr;)*) => {
        [$(Definition {
            name: $name,
            kind: $kind,
            range: $range,
            value: |$settings| Box::new($value),
        }),*]
    };
}

/// All UCI options of polybook. A second engine may declare options with the same names.
///
/// The first [`RULES`] options choose the rules of the game. If there is a second engine, polybook declares them only
/// if the second engine also has them, because both engines must play the same variant. If the second engine has one of
/// the first [`SHARED`] options, both engines get the same value.
static OPTIONS: [Definition; 33] = options! {
    "UCI_Chess960", "check", "", s => Always(&mut s.is_chess960);
    "UCI_Variant", "combo", "", s => Choice(&mut s.variant, &VARIANTS);
    "UCI_ShowWDL", "check", "", s => Always(&mut s.show_wdl);
    "MultiPV", "spin", "min 1 max 500", s => Always(&mut s.multi_pv);
    "Play", "combo", "", s => Choice(&mut s.play, &Play::NAMES);
    "Seed", "spin", "min 0 max 2147483647", s => Always(&mut s.seed);
    "MinScore", "spin", "min 0 max 100", s => Always(&mut s.min_score);
    "MinGames", "spin", "min 0 max 1000000000", s => Always(&mut s.min_games);
    "Max Book Depth", "spin", "min 0 max 10000", s => Always(&mut s.max_book_depth);
    "Leave Before End", "spin", "min 0 max 100", s => Always(&mut s.leave_before_end);
    "Fallback", "combo", "", s => Choice(&mut s.fallback, &Fallback::NAMES);
    "Player", "string", "", s => ConditionOption(&mut s.filters, "player");
    "Color", "combo", "", s => ConditionOption(&mut s.filters, "color");
    "Opponent", "string", "", s => ConditionOption(&mut s.filters, "opponent");
    "Event", "string", "", s => ConditionOption(&mut s.filters, "event");
    "Since", "string", "", s => ConditionOption(&mut s.filters, "since");
    "Until", "string", "", s => ConditionOption(&mut s.filters, "until");
    "MinElo", "spin", "min 0 max 4000", s => ConditionOption(&mut s.filters, "min-elo");
    "MaxElo", "spin", "min 0 max 4000", s => ConditionOption(&mut s.filters, "max-elo");
    "RequireElo", "check", "", s => ConditionOption(&mut s.filters, "require-elo");
    "RequireDate", "check", "", s => ConditionOption(&mut s.filters, "require-date");
    "Rating", "string", "", s => ConditionOption(&mut s.filters, "rating");
    "Speed", "string", "", s => ConditionOption(&mut s.filters, "speed");
    "Eco", "string", "", s => ConditionOption(&mut s.filters, "eco");
    "Opening", "string", "", s => ConditionOption(&mut s.filters, "opening");
    "OpponentRating", "string", "", s => ConditionOption(&mut s.filters, "opponent-rating");
    "White", "string", "", s => ConditionOption(&mut s.filters, "white");
    "Black", "string", "", s => ConditionOption(&mut s.filters, "black");
    "Exact", "check", "", s => ConditionOption(&mut s.filters, "exact");
    "Rated", "string", "", s => ConditionOption(&mut s.filters, "rated");
    "Result", "string", "", s => ConditionOption(&mut s.filters, "result");
    "MinPlies", "spin", "min 0 max 65535", s => ConditionOption(&mut s.filters, "min-plies");
    "Duplicates", "combo", "", s => ConditionOption(&mut s.filters, "duplicates");
};

const RULES: usize = 2;
const SHARED: usize = 4;

/// The prefix that polybook adds to the name of a UCI option if the second engine has a different option with the same
/// name.
const PREFIX: &str = "Book ";

/// The string that stands for an empty value of an option in UCI.
const EMPTY: &str = "<empty>";

/// The options that chess programs and bots set for every engine, with the rest of their declarations. If the second
/// engine has them, it gets their values. Otherwise, polybook ignores the values, because it does not search.
static IGNORED: [(&str, &str); 26] = [
    ("Hash", "spin default 16 min 1 max 33554432"),
    ("Threads", "spin default 1 min 1 max 4096"),
    ("Clear Hash", "button"),
    ("Ponder", "check default false"),
    ("OwnBook", "check default true"),
    ("Move Overhead", "spin default 10 min 0 max 60000"),
    ("Slow Mover", "spin default 100 min 1 max 1000"),
    ("Minimum Thinking Time", "spin default 20 min 0 max 60000"),
    ("nodestime", "spin default 0 min 0 max 10000"),
    ("Contempt", "spin default 0 min -1000 max 1000"),
    (
        "Analysis Contempt",
        "combo default Both var Off var White var Black var Both",
    ),
    ("Skill Level", "spin default 20 min 0 max 20"),
    ("UCI_AnalyseMode", "check default false"),
    ("UCI_LimitStrength", "check default false"),
    ("UCI_Elo", "spin default 1500 min 0 max 4000"),
    ("UCI_Opponent", "string default <empty>"),
    ("UCI_RatingAdv", "spin default 0 min -10000 max 10000"),
    ("UCI_ShowCurrLine", "check default false"),
    ("UCI_ShowRefutations", "check default false"),
    ("SyzygyPath", "string default <empty>"),
    ("SyzygyProbeDepth", "spin default 1 min 1 max 100"),
    ("SyzygyProbeLimit", "spin default 7 min 0 max 7"),
    ("Syzygy50MoveRule", "check default true"),
    ("NalimovPath", "string default <empty>"),
    ("NalimovCache", "spin default 1 min 1 max 4096"),
    ("Debug Log File", "string default <empty>"),
];

/// Returns the declarations of the options that polybook accepts but ignores, except those that the second engine
/// declares.
pub(super) fn ignored_options(
    second_engine: Option<&SecondEngine>,
) -> impl Iterator<Item = String> {
    let is_missing = move |name| !second_engine.is_some_and(|engine| engine.has(name));
    let missing = IGNORED.iter().filter(move |(name, _)| is_missing(name));
    missing.map(|(name, declaration)| format!("option name {name} type {declaration}"))
}

/// Returns `true` if polybook accepts the option `name` but ignores its value.
pub(super) fn is_ignored_option(name: &str) -> bool {
    let mut ignored = IGNORED.iter();
    ignored.any(|(ignored, _)| ignored.eq_ignore_ascii_case(name))
}

/// A UCI option of polybook in a session. Its name has the prefix [`PREFIX`] if the second engine has a different
/// option with the same name.
pub(super) struct SessionOption {
    pub name: String,
    definition: &'static Definition,
    /// Whether the second engine declares an option with the same name and meaning.
    is_shared: bool,
}

impl SessionOption {
    /// Returns all UCI options of polybook. Options for the rules of the game are left out if there is a second engine
    /// that does not have them. Any other option gets a name with a prefix if the second engine has a different option
    /// with the same name.
    pub(super) fn all(second_engine: Option<&SecondEngine>) -> Vec<SessionOption> {
        let has = |name: &str| second_engine.is_some_and(|second_engine| second_engine.has(name));
        let mut own = Vec::new();
        for (number, definition) in OPTIONS.iter().enumerate() {
            let mut name = definition.name.to_owned();
            let is_shared = number < SHARED && has(&name);
            if number < RULES && second_engine.is_some() && !is_shared {
                continue;
            }
            while !is_shared && has(&name) {
                name.insert_str(0, PREFIX);
            }
            own.push(SessionOption {
                name,
                definition,
                is_shared,
            });
        }
        own
    }

    /// Returns `true` if the option sets the seed of the random number generator.
    pub(super) fn is_seed(&self) -> bool {
        self.definition.name == "Seed"
    }

    /// Returns the UCI line `option name ...`, which declares the option to the user interface. The declared default is
    /// the current value in `settings`, because a user interface may reset all options to their defaults. Returns
    /// `None` if the second engine declares the same option.
    pub(super) fn declaration(&self, settings: &Settings) -> Option<String> {
        let Definition { kind, range, .. } = self.definition;
        let mut settings = settings.clone();
        let value = (self.definition.value)(&mut settings);
        let text = match value.text() {
            text if text.is_empty() => EMPTY.to_owned(),
            text => text,
        };
        let (name, values) = (&self.name, value.values());
        let line = format!("option name {name} type {kind} default {text} {range}{values}");
        (!self.is_shared).then(|| line.trim_end().to_owned())
    }

    /// Sets the option in `settings` to the value `text`.
    ///
    /// # Errors
    ///
    /// Returns a message for the user if `text` is not a valid value. The option then keeps its old value.
    pub(super) fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        let Definition { kind, range, .. } = self.definition;
        let text = if text == EMPTY { "" } else { text };
        let mut value = (self.definition.value)(settings);
        let values = value.values();
        let bounds = range.split(' ').filter_map(|word| word.parse().ok());
        let set = match (&*bounds.collect::<Vec<i128>>(), text.trim().parse()) {
            ([min, max], Ok(number)) if !(min..=max).contains(&&number) => {
                Err("the value is out of range".to_owned())
            }
            _ => value.set_from_text(text),
        };
        set.map_err(|problem| format!("option {}: {problem} ({kind} {range}{values})", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
        let own = SessionOption::all(None).into_iter();
        let option = own.into_iter().find(|option| option.name == name);
        option.expect(name).set(settings, value)
    }

    #[test]
    fn a_value_is_the_default_of_its_declaration() {
        let mut settings = Settings::default();
        let own = SessionOption::all(None);
        let declared = |settings: &Settings| -> Vec<String> {
            let lines = own.iter();
            lines.filter_map(|own| own.declaration(settings)).collect()
        };
        let defaults = declared(&settings);
        assert!(defaults.contains(&"option name Player type string default <empty>".to_owned()));
        assert!(defaults.contains(&"option name UCI_ShowWDL type check default true".to_owned()));
        let values = [
            ("UCI_Chess960", "true"),
            ("UCI_Variant", "crazyhouse"),
            ("UCI_ShowWDL", "false"),
            ("MultiPV", "3"),
            ("Play", "best"),
            ("Seed", "7"),
            ("MinScore", "45"),
            ("MinGames", "2"),
            ("Max Book Depth", "20"),
            ("Leave Before End", "4"),
            ("Fallback", "random"),
            ("Player", "Carlsen, Magnus; DrNykterstein"),
            ("Color", "black"),
            ("Opponent", "Anand"),
            ("Event", "Wch"),
            ("Since", "2013"),
            ("Until", "2014.11.30"),
            ("MinElo", "2700"),
            ("MaxElo", "2900"),
            ("RequireElo", "true"),
            ("RequireDate", "true"),
            ("Rating", "2200,2500,unknown"),
            ("Speed", "blitz,rapid"),
            ("Eco", "B20-B99"),
            ("Opening", "Sicilian Defense"),
            ("OpponentRating", "2600-"),
            ("White", "Carlsen"),
            ("Black", "Anand; Tal"),
            ("Exact", "true"),
            ("Rated", "rated,unknown"),
            ("Result", "1-0,win"),
            ("MinPlies", "20"),
            ("Duplicates", "once"),
        ];
        assert_eq!(values.len(), own.len());
        for (name, value) in values {
            set(&mut settings, name, value).unwrap();
        }
        for ((name, value), line) in values.iter().zip(declared(&settings)) {
            assert!(
                line.starts_with(&format!("option name {name} type ")),
                "{line}"
            );
            assert!(line.contains(&format!(" default {value}")), "{line}");
        }
        assert_eq!(settings.rules(), Variant::Crazyhouse);
        assert_eq!(settings.filters.max_elo, Some(2900));
        assert_eq!(
            settings.filters.player,
            ["Carlsen, Magnus", "DrNykterstein"]
        );
        assert!(settings.filters.admits_rating(None));
        // The declared defaults are values that take all filters back.
        for (name, line) in values.map(|(name, _)| name).iter().zip(defaults) {
            let default = line.split(" default ").nth(1).unwrap();
            let default = default.split(" min ").next().unwrap();
            let default = default.split(" var ").next().unwrap();
            set(&mut settings, name, default).unwrap();
        }
        assert_eq!(settings.filters, Settings::default().filters);
    }

    #[test]
    fn a_wrong_value_changes_nothing() {
        for (name, value) in [
            ("Play", "wild"),
            ("MinGames", "-1"),
            ("MinScore", "101"),
            ("MultiPV", "0"),
            ("Leave Before End", "99999999999999999999999999"),
            ("MinElo", "4001"),
            ("Since", "soon"),
            ("Speed", "light"),
            ("Rating", "high"),
            ("Rating", "2200,2600"),
            ("UCI_Chess960", "perhaps"),
            ("UCI_Variant", "xiangqi"),
        ] {
            let mut settings = Settings::default();
            let problem = set(&mut settings, name, value).unwrap_err();
            assert!(
                problem.starts_with(&format!("option {name}: ")),
                "{problem}"
            );
            let before = format!("{:?}", Settings::default());
            assert_eq!(format!("{settings:?}"), before);
        }
    }
}

//! The options of the engine.

use std::str::FromStr;

use crate::{
    explorer::{Filters, NameMatch},
    position::Variant,
};

/// How a move is chosen among the known ones.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Play {
    /// At random by weight, or by the square of the score times the games.
    #[default]
    Weighted,
    /// The best move.
    Best,
    /// At random, each move as often as any other.
    Uniform,
}

/// What is played in an unknown position without an engine behind.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Fallback {
    /// No move: `bestmove (none)`.
    #[default]
    None,
    /// A random legal move.
    Random,
}

impl FromStr for Play {
    type Err = String;

    fn from_str(text: &str) -> Result<Play, String> {
        match &*text.to_ascii_lowercase() {
            "weighted" => Ok(Play::Weighted),
            "best" => Ok(Play::Best),
            "uniform" => Ok(Play::Uniform),
            _ => Err("write weighted, best or uniform".to_owned()),
        }
    }
}

impl FromStr for Fallback {
    type Err = String;

    fn from_str(text: &str) -> Result<Fallback, String> {
        match &*text.to_ascii_lowercase() {
            "none" => Ok(Fallback::None),
            "random" => Ok(Fallback::Random),
            _ => Err("write none or random".to_owned()),
        }
    }
}

/// The values of the options.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How a move is chosen.
    pub play: Play,
    /// The seed of the random choices.
    pub seed: u64,
    /// The lowest score of a move that is played, in percent. Moves without results have no score.
    pub min_score: u8,
    /// The lowest number of games of a move that is played. Moves without results have none.
    pub min_games: u64,
    /// The number of half-moves after which no position is known; 0 for no limit.
    pub max_ply: u32,
    /// What is played in an unknown position without an engine behind.
    pub fallback: Fallback,
    /// How many moves an answer lists.
    pub multi_pv: usize,
    /// Which games of an index count.
    pub filters: Filters,
    /// The variant, without Chess960.
    pub variant: Variant,
    /// Whether castling is written as in Chess960.
    pub is_chess960: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            play: Play::default(),
            seed: 0,
            min_score: 0,
            min_games: 0,
            max_ply: 0,
            fallback: Fallback::default(),
            multi_pv: 1,
            filters: Filters::default(),
            variant: Variant::Standard,
            is_chess960: false,
        }
    }
}

/// The names and types of the options. The first five are those of the protocol's own options, which are shared with the
/// engine behind.
const OPTIONS: [(&str, &str); 16] = [
    ("MultiPV", "spin default 1 min 1 max 500"),
    ("Ponder", "check default false"),
    ("UCI_ShowWDL", "check default true"),
    ("UCI_Chess960", "check default false"),
    (
        "UCI_Variant",
        "combo default chess var chess var crazyhouse var suicide var giveaway var antichess var atomic var 3check var horde var kingofthehill var racingkings",
    ),
    (
        "Play",
        "combo default weighted var weighted var best var uniform",
    ),
    ("Seed", "spin default 0 min 0 max 2147483647"),
    ("MinScore", "spin default 0 min 0 max 100"),
    ("MinGames", "spin default 0 min 0 max 1000000000"),
    ("MaxPly", "spin default 0 min 0 max 10000"),
    ("Fallback", "combo default none var none var random"),
    ("Player", "string default <empty>"),
    ("Color", "combo default any var any var white var black"),
    ("Since", "string default <empty>"),
    ("MinElo", "spin default 0 min 0 max 4000"),
    ("Speed", "string default <empty>"),
];

/// The options that are shared with the engine behind: it declares them if it has them.
const SHARED: usize = 5;

/// The word before the name of an option that the engine behind has too.
pub(super) const PREFIX: &str = "Book ";

/// Returns the lines that declare the options, for an engine behind with options of these names.
pub(super) fn declarations(behind: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, (name, kind)) in OPTIONS.iter().enumerate() {
        let is_taken = has(behind, name);
        if is_taken && number < SHARED {
            continue;
        }
        let prefix = if is_taken { PREFIX } else { "" };
        lines.push(format!("option name {prefix}{name} type {kind}"));
    }
    lines
}

/// Returns `true` if an option is among those of the engine behind.
pub(super) fn has(behind: &[String], name: &str) -> bool {
    behind.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the own option that a name of `setoption` means, or `None` if it means one of the engine behind.
pub(super) fn own<'a>(behind: &[String], name: &'a str) -> Option<&'a str> {
    if let Some(rest) = name.strip_prefix(PREFIX)
        && has(behind, rest)
    {
        return Some(rest);
    }
    let number = OPTIONS
        .iter()
        .position(|(own, _)| own.eq_ignore_ascii_case(name))?;
    (number < SHARED || !has(behind, name)).then_some(name)
}

impl Settings {
    /// Returns the variant by whose rules positions are read.
    pub(super) fn rules(&self) -> Variant {
        match self.variant {
            Variant::Standard if self.is_chess960 => Variant::Chess960,
            variant => variant,
        }
    }

    /// Sets an own option.
    ///
    /// # Errors
    ///
    /// Returns what to write if the value is not one of the option. The option keeps its value.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        fn number<T: FromStr>(value: &str) -> Result<T, String> {
            value.parse().map_err(|_| "write a number".to_owned())
        }
        fn optional<T: FromStr>(value: &str) -> Result<Option<T>, String>
        where
            T::Err: ToString,
        {
            match value {
                "" | "<empty>" | "any" | "0" => Ok(None),
                value => value
                    .parse()
                    .map(Some)
                    .map_err(|err: T::Err| err.to_string()),
            }
        }
        let mut filters = self.filters.clone();
        match &*name.to_ascii_lowercase() {
            "multipv" => self.multi_pv = number::<usize>(value)?.clamp(1, 500),
            "uci_chess960" => self.is_chess960 = value.eq_ignore_ascii_case("true"),
            "uci_variant" => {
                self.variant = value.parse().map_err(|err| format!("{err}"))?;
            }
            "play" => self.play = value.parse()?,
            "seed" => self.seed = number(value)?,
            "minscore" => self.min_score = number::<u8>(value)?.min(100),
            "mingames" => self.min_games = number(value)?,
            "maxply" => self.max_ply = number(value)?,
            "fallback" => self.fallback = value.parse()?,
            "player" => {
                filters.player = optional(value)?;
                filters.names = NameMatch::Part;
            }
            "color" => filters.color = optional(value)?,
            "since" => filters.since = optional(value)?,
            "minelo" => filters.min_elo = optional(value)?,
            "speed" => {
                let speeds: Result<Vec<_>, String> = value
                    .split([',', ' '])
                    .filter_map(|speed| optional(speed).transpose())
                    .collect();
                filters.speeds = Some(speeds?).filter(|speeds| !speeds.is_empty());
            }
            // Nothing depends on the others.
            _ => {}
        }
        filters.check().map_err(|err| err.to_string())?;
        self.filters = filters;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_declared_and_set() {
        let behind = ["MultiPV", "Seed", "Hash"].map(str::to_owned);
        let lines = declarations(&behind);
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("option name Book Seed type spin"))
        );
        assert!(!lines.iter().any(|line| line.contains("MultiPV")));
        assert_eq!(own(&behind, "Book Seed"), Some("Seed"));
        assert_eq!(own(&behind, "Seed"), None);
        assert_eq!(own(&behind, "multipv"), Some("multipv"));
        assert_eq!(own(&behind, "Hash"), None);
        let mut settings = Settings::default();
        for (name, value) in [
            ("Play", "best"),
            ("MinScore", "45"),
            ("Speed", "blitz, rapid"),
            ("Color", "black"),
            ("Since", "2020"),
            ("UCI_Variant", "crazyhouse"),
        ] {
            settings.set(name, value).unwrap();
        }
        assert_eq!((settings.play, settings.min_score), (Play::Best, 45));
        assert_eq!(settings.filters.speeds.as_ref().unwrap().len(), 2);
        assert_eq!(settings.rules(), Variant::Crazyhouse);
        for (name, value) in [
            ("Play", "wild"),
            ("MinGames", "-1"),
            ("Since", "soon"),
            ("Speed", "light"),
        ] {
            assert!(settings.set(name, value).is_err(), "{name}");
        }
        settings.set("Speed", "<empty>").unwrap();
        assert_eq!(settings.filters.speeds, None);
    }
}

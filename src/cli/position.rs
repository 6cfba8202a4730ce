//! The options that name a position, and the variant by whose rules it is played.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgMatches, Args, Command, FromArgMatches,
    builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser},
    error::ErrorKind,
};
use polybook::{
    book::Book,
    explorer::{Explorer, Line},
    obs::Obs,
    position::{LineError, PieceLetters, Variant, VariantChoice},
};
use shakmaty::{Color, san::SanPlus, uci::UciMove, variant::VariantPosition};

use super::{filters::GAMES, input};

/// The option that sets the variant of games without a `Variant` tag, for commands that read PGN.
#[derive(clap::Args, Debug)]
pub struct UntaggedArg {
    /// Read games without a Variant tag as games of this variant
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = variant(), help_heading = GAMES)]
    pub untagged_variant: Variant,
}

/// The option that sets the language of the piece letters in moves, for commands that read PGN.
#[derive(clap::Args, Debug)]
pub struct PieceLettersArg {
    /// Also read moves that are written with the piece letters of this language: de, nl, fr, es or it
    #[arg(long, value_name = "LANG", default_value_t = PieceLetters::English, help_heading = GAMES)]
    pub piece_letters: PieceLetters,
}

/// The options that name a position. Without any of them, the position is the starting position.
#[derive(clap::Args, Debug)]
pub struct PositionOptions {
    /// Use the position with this FEN. With --moves, start the moves from this position
    #[arg(long, value_name = "FEN")]
    fen: Option<String>,

    /// Use the position after these moves, in SAN or UCI, with or without move numbers, such as "1. e4 c5 2. Nf3"
    #[arg(long, value_name = "MOVES")]
    moves: Option<String>,

    /// Use the rules of this variant [default: the variant of the file, else standard]
    #[arg(long, value_name = "NAME", value_parser = variant())]
    pub variant: Option<Variant>,
}

/// A position, given by options or by the last arguments of the command.
#[derive(clap::Args, Debug)]
pub struct PositionArgs {
    #[command(flatten)]
    pub options: PositionOptions,

    /// The position: a FEN, or the moves that lead to it from the starting position
    #[arg(value_name = "POSITION", conflicts_with_all = ["fen", "moves"])]
    position: Vec<String>,
}

/// The sources of a command, and the position that is looked up in them. On the command line, the words of the position
/// follow the paths of the sources.
#[derive(Debug)]
pub struct SourceArgs {
    pub paths: Vec<PathBuf>,
    pub position: PositionArgs,
}

#[derive(clap::Args, Debug)]
struct SourceWords {
    /// The sources: explorer's indexes, made with make-book --explorer, or PGN files. polybook indexes a PGN file once
    /// and keeps the index in a cache. Several sources are read as one. A FEN or moves after the sources are the
    /// position
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    #[command(flatten)]
    position: PositionOptions,
}

impl Args for SourceArgs {
    fn augment_args(command: Command) -> Command {
        let usage = format!(
            "polybook {} [OPTIONS] <SOURCE>... [POSITION]",
            command.get_name()
        );
        SourceWords::augment_args(command.override_usage(usage))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SourceArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let SourceWords {
            sources: mut paths,
            position: options,
        } = SourceWords::from_arg_matches(matches)?;
        let count = 1 + paths[1..].iter().take_while(|word| is_source(word)).count();
        let words = paths.split_off(count);
        if !words.is_empty() && (options.fen.is_some() || options.moves.is_some()) {
            let problem = format!(
                "'{}' is neither a file nor an option, and --fen or --moves already gives the position",
                words[0].display()
            );
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, problem));
        }
        if let [first, .., last] = &words[..]
            && !first.to_string_lossy().contains('/')
            && last.to_string_lossy().bytes().all(|c| c.is_ascii_digit())
        {
            let problem = format!(
                "'{}' after the position is neither a move nor a source",
                last.display()
            );
            return Err(clap::Error::raw(ErrorKind::ValueValidation, problem));
        }
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        Ok(SourceArgs {
            paths,
            position: PositionArgs {
                options,
                position: words.collect(),
            },
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns `true` if an argument after the first source is another source: `-`, an existing file, or a text that looks
/// like a path. Returns `false` for a FEN and for moves, even if a file has the name of a move.
fn is_source(word: &Path) -> bool {
    let text = word.to_string_lossy();
    let first = text.split_whitespace().next().unwrap_or_default();
    let san = first.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let san = san.trim_end_matches(['!', '?']);
    let is_fen = first.matches('/').count() >= 7
        && first
            .chars()
            .all(|c| "pnbrqkPNBRQK12345678/~[]".contains(c));
    let is_number = san.is_empty() && !word.exists();
    let is_move = is_number || san.parse::<SanPlus>().is_ok() || san.parse::<UciMove>().is_ok();
    if text == "-" || is_fen || is_move {
        return text == "-";
    }
    let has_extension = word.extension().is_some_and(|extension| {
        extension
            .to_string_lossy()
            .chars()
            .all(char::is_alphanumeric)
    });
    has_extension || text.contains(['/', '\\']) || word.exists()
}

/// The file in which a position will be looked up, and the variant of the positions in the file. The error message for
/// an invalid position mentions both.
pub struct Searched<'a> {
    pub file: &'a Path,
    /// The variant of all positions in the file, or `None` if the file does not state exactly one variant.
    pub only: Option<Variant>,
}

impl PositionArgs {
    /// Returns `true` if the user named a position.
    pub fn is_given(&self) -> bool {
        !self.position.is_empty() || self.options.fen.is_some() || self.options.moves.is_some()
    }

    /// Returns the position that the options describe, with its variant. It will be looked up in `explorer`. `indexes`
    /// are the paths from which the explorer was opened. Error messages mention the first of them.
    pub fn in_explorer(
        &self,
        explorer: &Explorer,
        indexes: &[PathBuf],
    ) -> anyhow::Result<(Variant, VariantPosition)> {
        let variant = self.variant_of(explorer.variant());
        let searched = Searched {
            file: &indexes[0],
            only: explorer.variant(),
        };
        Ok((variant, self.position_in(variant, &searched)?))
    }

    /// Returns the line that the options describe: a starting position, and moves that lead to the position that
    /// [`in_explorer`](PositionArgs::in_explorer) returns. `indexes` contains the paths of the indexes that `explorer`
    /// has opened.
    pub fn line_in_explorer(
        &self,
        explorer: &Explorer,
        indexes: &[PathBuf],
    ) -> anyhow::Result<Line> {
        let (variant, pos) = self.in_explorer(explorer, indexes)?;
        let text = self.position.join(" ");
        let moves = match &*text {
            "" => self.options.moves.as_deref().unwrap_or_default(),
            text => text,
        };
        let line = Line::parse(variant, self.options.fen.as_deref(), moves);
        // Parsing fails if the argument is a FEN or `startpos`. The line then has no moves.
        Ok(line
            .ok()
            .filter(|line| *line.position() == pos)
            .unwrap_or_else(|| Line::at(variant, pos)))
    }

    /// Returns the variant that the user named or, if the user named none, `of_file`, the variant of the file in which
    /// the position will be looked up. Returns standard chess if this is `None` too.
    pub fn variant_of(&self, of_file: Option<Variant>) -> Variant {
        self.options.variant.or(of_file).unwrap_or_default()
    }

    /// Returns `true` if the options contain a FEN, and `false` if they give the position by moves from the starting
    /// position.
    pub fn has_fen(&self) -> bool {
        // Moves contain no slash.
        self.options.fen.is_some() || self.position.iter().any(|word| word.contains('/'))
    }

    /// Returns the position that the options describe. Its FEN and its moves are read by the rules of `variant`.
    /// `searched` is the file in which the position will be looked up. The error message for an invalid position
    /// mentions this file.
    pub fn position_in(
        &self,
        variant: Variant,
        searched: &Searched<'_>,
    ) -> anyhow::Result<VariantPosition> {
        match self.position_of(variant) {
            // Another --variant would not help.
            Err(err)
                if searched.only == Some(Variant::Standard)
                    && let Some((part, variant)) = err.part_of_other_variant() =>
            {
                anyhow::bail!(
                    "{} contains only standard chess, but the {part} of the FEN are those of {variant}",
                    input::name(searched.file)
                )
            }
            pos => Ok(pos?),
        }
    }

    /// Returns the position that the options describe. Its FEN and its moves are read by the rules of `variant`.
    /// Returns an error if the FEN or a move is invalid.
    pub fn position_of(&self, variant: Variant) -> Result<VariantPosition, LineError> {
        match &*self.position.join(" ") {
            "" => variant.from_text(self.options.fen.as_deref(), self.options.moves.as_deref()),
            text if !text.contains(char::is_alphabetic) => Err(LineError::Fen {
                fen: text.to_owned(),
                reason:
                    "this is neither a FEN nor a move; if the number belongs to an option, write the number after =, \
                     as in --clocks=5000"
                        .to_owned(),
            }),
            text => variant.position_or_line(text),
        }
    }
}

/// A clap parser that accepts any string, but lists the usual names of variants in the help and in completions. The
/// caller must parse the string as the name of a variant. Some variants also have less usual names.
#[derive(Clone, Debug)]
struct VariantNames {
    with_auto: bool,
}

impl TypedValueParser for VariantNames {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Variant::ALL.into_iter().map(|variant| match variant {
            // Users know this name better than `normal`, the name in the Chess Engine Communication Protocol.
            Variant::Standard => "standard",
            other => other.name(),
        });
        let auto = self.with_auto.then_some("auto");
        Some(Box::new(names.chain(auto).map(PossibleValue::new)))
    }
}

/// Returns a clap parser that accepts the name of a variant.
pub fn variant() -> impl TypedValueParser<Value = Variant> {
    VariantNames { with_auto: false }.try_map(|name| name.parse::<Variant>())
}

/// Returns a clap parser that accepts the name of a variant, or `auto`. With `auto`, each game is read by the rules of
/// its own variant.
pub fn variant_or_auto() -> impl TypedValueParser<Value = VariantChoice> {
    VariantNames { with_auto: true }.try_map(|name| name.parse::<VariantChoice>())
}

/// Returns a clap parser that accepts `white` or `black`.
pub fn color() -> impl TypedValueParser<Value = Color> {
    PossibleValuesParser::new(["white", "black"])
        .map(|name| Color::from_white(name.eq_ignore_ascii_case("white")))
}

/// Returns the variant by whose rules a book is read: the variant that the user named (`asked`) or, if the user named
/// none, the variant in the book's header. Returns an error if the header lists variants, but not the variant that the
/// user named. `argument` is the path of the book in error messages.
pub fn of_book(argument: &Path, book: &Book, asked: Option<Variant>) -> anyhow::Result<Variant> {
    let variant = asked.or(book.variant()?).unwrap_or_default();
    variant.check_file(argument, &book.variants()?)?;
    Ok(variant)
}

/// Returns the variant of the opening database `obs`. Returns an error if `asked`, the variant that the user named, is
/// another one. `argument` is the path of the database in the error message.
pub fn of_database(argument: &Path, obs: &Obs, asked: Option<Variant>) -> anyhow::Result<Variant> {
    let variant = obs.variant(asked)?;
    variant.check_file(argument, std::slice::from_ref(&obs.info().variant))?;
    Ok(variant)
}

//! The options that determine which moves a book contains, what weights they have, and what its header says.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use polybook::{
    book::{Factors, Scale, Weights},
    counts::MoveFilter,
};
use shakmaty::Color;

use super::resources::count;

/// The heading of the options that select moves and determine their weights, in the help of a command.
pub const MOVES: &str = "Which moves are kept, and their weights";

/// The options that select the moves of a book and determine their weights.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = MOVES)]
pub struct WeightingArgs {
    /// Keep a move if it was played at least N times in its position. If one game plays the move several times there,
    /// each time counts [default: 3]
    #[arg(long, value_name = "N", value_parser = count::<u64>(0))]
    min_game: Option<u64>,

    /// Keep a move if the side that played it scored at least P percent in the games with the move
    #[arg(long, value_name = "P", default_value_t = MoveFilter::default().min_score, value_parser = score_percent)]
    min_score: f64,

    /// Keep only White's moves
    #[arg(long, overrides_with = "only_black")]
    only_white: bool,

    /// Keep only Black's moves
    #[arg(long, overrides_with = "only_white")]
    only_black: bool,

    /// Give every kept move weight 1
    #[arg(long, conflicts_with = "weights")]
    uniform: bool,

    /// Add N to the weight of a move for each game that the side to move won
    #[arg(long, value_name = "N", default_value_t = Factors::default().win)]
    win_factor: u32,

    /// Add N to the weight of a move for each drawn game
    #[arg(long, value_name = "N", default_value_t = Factors::default().draw)]
    draw_factor: u32,

    /// Add N to the weight of a move for each game that the side to move lost
    #[arg(long, value_name = "N", default_value_t = Factors::default().loss)]
    loss_factor: u32,

    /// Reduce weights that exceed 65535, the largest weight of a book. Divide all weights of the book by the same
    /// factor (global), or only the weights of each position in which one is too large (position)
    #[arg(
        long,
        default_value = "global",
        value_parser = one_of([("global", Scale::Global), ("position", Scale::Position)]),
        conflicts_with = "uniform"
    )]
    scale: Scale,

    /// Lower the weight of a move if the opponent has a good answer to it. A move whose expected score is at least
    /// PERCENT percentage points below that of the best move gets weight 0. Moves with fewer than --min-game games
    /// are ignored [default without a number: 10]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "10", value_parser = clap::value_parser!(u8).range(1..=100))]
    minimax: Option<u8>,
}

/// Returns a clap parser that accepts only the names in `values`, and converts each name to the value next to it.
pub fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = values.each_ref().map(|(name, _)| *name);
    PossibleValuesParser::new(names).map(move |given| {
        let value = values.iter().find(|value| value.0 == given);
        value.expect("clap lets these pass").1.clone()
    })
}

/// Parses a percentage. Returns an error if it is not in the range 0 to 100.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("use a number from 0 to 100".to_owned()),
    }
}

/// Parses a score in percent. Returns an error if it is not in the range 0 to 100. A score between 0 and 1 is also an
/// error, because the user probably means a share, such as 0.45.
fn score_percent(text: &str) -> Result<f64, String> {
    let score = percent(text)?;
    if score > 0.0 && score < 1.0 {
        Err("use a percentage, such as 45".to_owned())
    } else {
        Ok(score)
    }
}

/// The input or output that an option in [`WeightingArgs`] needs to have an effect. Each variant implies the earlier
/// ones: an option that needs weights also needs a book.
///
/// [`WeightingArgs::given`] contains a list of all options, sorted by requirement. The discriminant of a variant is the
/// index of the first option in this list that has the requirement.
#[derive(Copy, Clone)]
pub enum Requirement {
    /// The games in which the moves were played, which a Polyglot book does not contain.
    Games = 0,
    /// A Polyglot book or a database; an opening suite is not enough.
    Book = 1,
    /// An output that contains weights.
    Weights = 4,
    /// An output that contains weights; for options that polyglot does not have.
    OwnWeights = 5,
}

impl WeightingArgs {
    /// Returns the name of the first option given by the user whose requirement is `needs` or a later variant of
    /// [`Requirement`]. Returns `None` if the user gave no such option.
    pub fn given(&self, needs: Requirement) -> Option<&'static str> {
        let factors = Factors::default();
        let options = [
            (self.min_game.is_some(), "--min-game"),
            (self.min_score > 0.0, "--min-score"),
            (self.only_white, "--only-white"),
            (self.only_black, "--only-black"),
            (self.uniform, "--uniform"),
            (self.win_factor != factors.win, "--win-factor"),
            (self.draw_factor != factors.draw, "--draw-factor"),
            (self.loss_factor != factors.loss, "--loss-factor"),
            (self.scale == Scale::Position, "--scale"),
            (self.minimax.is_some(), "--minimax"),
        ];
        let given = options[needs as usize..].iter().find(|option| option.0);
        given.map(|option| option.1)
    }

    /// Returns the name `--minimax` if the user gave this option, otherwise `None`. The name is used in error messages.
    pub fn minimax(&self) -> Option<&'static str> {
        self.minimax.map(|_| "--minimax")
    }

    /// Returns the value of `--min-game`, or `None` if the user did not give this option.
    pub fn min_game(&self) -> Option<u64> {
        self.min_game
    }

    /// Returns the filter for moves that the options describe. If `--min-game` is not given, the minimum number of
    /// games is taken from `default`.
    pub fn move_filter(&self, default: &MoveFilter) -> MoveFilter {
        MoveFilter {
            min_game: self.min_game.unwrap_or(default.min_game),
            min_score: self.min_score,
            only: match (self.only_white, self.only_black) {
                (true, _) => Some(Color::White),
                (_, true) => Some(Color::Black),
                _ => None,
            },
        }
    }
}

impl From<&WeightingArgs> for Weights {
    fn from(args: &WeightingArgs) -> Weights {
        Weights {
            uniform: args.uniform,
            factors: Factors {
                win: args.win_factor,
                draw: args.draw_factor,
                loss: args.loss_factor,
            },
            scale: args.scale,
            minimax: args.minimax,
        }
    }
}

/// The options that determine the header of a book.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Header of the book")]
pub struct HeaderArgs {
    /// Write this text as the comment in the book's header, in place of the names of the inputs and the options
    #[arg(long, value_name = "TEXT", conflicts_with = "no_header")]
    pub comment: Option<String>,

    /// Write a book without a header
    #[arg(long)]
    pub no_header: bool,
}

impl HeaderArgs {
    /// Returns the name of the option with which the user changed the book's header: `--no-header` or `--comment`.
    /// Returns `None` if the user gave neither.
    pub fn given(&self) -> Option<&'static str> {
        if self.no_header {
            Some("--no-header")
        } else {
            self.comment.is_some().then_some("--comment")
        }
    }
}

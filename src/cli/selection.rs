//! Which games count, for the commands that read games.

use clap::ArgGroup;
use polybook::pgn::{Date, EcoRange, GameResult, Selection, TagText, TimeControlRange};

/// The heading of the options that choose games.
pub const GAMES: &str = "Which games count";

/// The options that name players.
const NAMES: &str = "names";

/// Which games count.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = GAMES, group = ArgGroup::new(NAMES).multiple(true))]
pub struct SelectionArgs {
    /// Games in which both players are rated at least N; unrated games pass
    #[arg(long, value_name = "N")]
    min_elo: Option<u32>,

    /// Games in which both players are rated at most N; unrated games pass
    #[arg(long, value_name = "N")]
    max_elo: Option<u32>,

    /// Games in which both players have a rating
    #[arg(long)]
    require_elo: bool,

    /// Games of at least N half-moves; --max-ply limits how many of them count
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_plies: usize,

    /// Games played on DATE (YYYY, YYYY.MM or YYYY.MM.DD) or later; unknown dates pass
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

pub fn result(text: &str) -> Result<GameResult, String> {
    GameResult::from_token(text.as_bytes()).ok_or_else(|| "write 1-0, 0-1, 1/2-1/2 or *".to_owned())
}

impl From<SelectionArgs> for Selection {
    fn from(args: SelectionArgs) -> Selection {
        Selection {
            min_elo: args.min_elo,
            max_elo: args.max_elo,
            require_elo: args.require_elo,
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

//! Reads PGN, the text format for chess games.
//!
//! An [`Input`] opens a file or standard input, and decompresses it. A [`Cutter`] cuts the stream of bytes into
//! batches of whole games, which threads can read in parallel. A [`GameReader`] reads the tags and moves of the
//! games in a batch, either token by token or [for a visitor](GameReader::visit_game) of the crate `pgn-reader`. A
//! [`Selection`](crate::games::selection::Selection) says which games count.
//!
//! The reader accepts PGN as it occurs in practice. A game begins with its tags or, if it has none, with its first
//! move or move number. It ends with its termination marker, such as `1-0`, or where the tags of the next game
//! begin. An unclosed comment or variation damages only the game that contains it; the next game is read normally.
//!
//! polybook does not use the reader of the crate `pgn-reader`, because that reader ends a game at a blank line, and
//! does not report the offsets of moves. It also skips words that are not moves. After a misspelled move, it therefore
//! assigns every later move to the wrong side.
//!
//! ```
//! use polybook::pgn::{GameEnd, GameReader, GameResult, Token};
//!
//! let mut games = GameReader::new(b"[White \"Morphy\"]\n\n1. e4 {best} e5 (1... c5) 2. Nf3 1-0");
//! assert!(games.next_game());
//! assert_eq!(games.tags().get(b"White"), Some(&b"Morphy"[..]));
//! let mut moves = Vec::new();
//! let end = loop {
//!     match games.next_token() {
//!         Token::Move { text, .. } => moves.push(text),
//!         Token::End(end) => break end,
//!         odd => panic!("{odd:?}"),
//!     }
//! };
//! assert_eq!(moves, [&b"e4"[..], b"e5", b"Nf3"]);
//! assert_eq!(end, GameEnd::Complete(Some(GameResult::WhiteWins)));
//! assert!(!games.next_game());
//! ```

mod class;
mod clock;
mod cut;
mod duplicate;
mod export;
mod game;
mod input;
mod movetext;
mod names;
mod play;
mod result;
mod tags;
mod text;
mod values;
mod variations;
mod visit;
mod word;
mod write;

pub(crate) use self::{
    class::doubled_mean,
    clock::{Clocks, CommentTimes},
    duplicate::{DateAndId, DuplicateKeys, GameIdentity, Group, name_hash},
    export::ExportFacts,
    names::{
        NearestNames, PlayerNames, SpellingCounts, SpellingTest, WantedSpellings, did_you_mean,
    },
    play::{
        LineStop, MoveReceiver, NAMED_VARIANTS, NO_GAME, SkippedParts, UnknownVariants, play,
        play_from_start, play_main_line, start_of, unknown_variant,
    },
    tags::{comment_text, tag_text},
    values::{HIGHEST_RATING, estimated_seconds, is_rated, normalized, rated_event, rating},
    variations::{OpenLines, Step},
    write::{GameWriter, UNKNOWN_PLAYERS, commented},
};
pub use self::{
    class::{Mode, RatingGroup, Speed, UnknownMode, UnknownRatingGroup, UnknownSpeed},
    cut::{Batch, Cutter, MAX_GAME_LENGTH},
    export::ExportFormat,
    game::GameReader,
    input::{Input, Stream, StreamOptions},
    movetext::{Flaw, FlawKind, GameEnd, Token},
    play::Games,
    result::GameResult,
    tags::{Tag, Tags},
    values::{ConditionError, Date, EcoRange, NameMatch, RatingRange, TagText, TimeControlRange},
};

//! Reads the games of PGN files and plays their moves on several threads. The results are returned in the order of the
//! games.
//!
//! [`SkippedParts`] warns about parts of an input that were skipped, such as games of unknown variants.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use rayon::prelude::*;
use shakmaty::{Move, variant::VariantPosition};

use super::{
    Batch, Cutter, GameEnd, GameReader, GameResult, Input, StreamOptions, Tags, Token, tag_text,
};
use crate::{
    chess::position::{Keyed, PieceLetters, Rules, Variant, read_word, with_advice},
    error::{Error, Result, plural},
    progress::Meter,
    storage::sort::Memory,
    task,
};

/// The error message for an input that contains text but no game.
pub(crate) const NO_GAME: &str = "this file contains no game: give a PGN file, uncompressed or compressed with gzip, bzip2, zstd or zip";

/// The approximate size in bytes of a batch of games. Each thread reads one batch at a time.
const BATCH_SIZE: usize = 1 << 18;

/// A list of PGN inputs whose games are read on several threads.
#[derive(Clone, Debug)]
pub struct Games<'a> {
    /// The inputs, which are read in this order.
    pub inputs: &'a [Input],
    /// The memory budget, which limits the memory for decompression.
    pub memory: Memory,
    /// The number of reading threads, or 0 for one per core.
    pub threads: usize,
    /// A progress meter. It is told the total number of bytes, and the number of bytes read so far.
    pub meter: &'a Meter,
}

/// The number of games that were read from all inputs, and descriptions of everything that was skipped.
#[derive(Debug, Default)]
pub(crate) struct ReadGames {
    /// The number of games in all inputs.
    pub games: u64,
    /// The numbers of games that were skipped because their variant is unknown.
    pub unknown_variants: UnknownVariants,
    /// Warnings about parts of the inputs that were skipped, one line each.
    pub skipped: Vec<String>,
}

impl ReadGames {
    /// Returns warnings about games and other parts of the inputs that were skipped. Each warning is one line of text.
    pub fn warnings(mut self) -> Vec<String> {
        self.skipped.extend(self.unknown_variants.warnings());
        self.skipped
    }
}

impl Games<'_> {
    /// Reads all games on several threads. Calls `read` for each game on one of these threads. Calls `take` on the
    /// calling thread with each result of `read`, in the order of the games.
    ///
    /// The arguments of `read` are the text of a batch of games, and a reader of this text. The reader has already read
    /// the tags of a game, and `read` must read the moves of this game to the end. The arguments of `take` are the
    /// number of the game, counted from 1 over all inputs, and the result of `read`.
    ///
    /// # Errors
    ///
    /// Returns the first error of `read` or `take`, or an error if an input cannot be read or contains text but no
    /// game.
    pub(crate) fn for_each<T: Send>(
        &self,
        read: impl Fn(&[u8], &mut GameReader<'_>) -> Result<T> + Sync,
        mut take: impl FnMut(u64, T) -> Result<()>,
    ) -> Result<ReadGames> {
        let pool = task::pool(self.threads)?;
        let mut all = ReadGames::default();
        for input in self.inputs {
            self.meter.add_total(input.size().unwrap_or(0));
        }
        for input in self.inputs {
            let stream = input.open(&StreamOptions {
                memory: input.unpacking_memory(self.memory.bytes),
                temp_dir: self.memory.temp_dir.clone(),
                ..StreamOptions::default()
            })?;
            let (taken, unread) = (Arc::clone(&stream.taken), Arc::clone(&stream.left_out));
            let (mut reported, mut skipped) = (0, SkippedParts::default());
            let mut cutter = Cutter::new(stream, BATCH_SIZE);
            let (first, mut has_text) = (all.games, false);
            loop {
                let mut batches: Vec<Batch> = Vec::new();
                while batches.len() < pool.current_num_threads() {
                    let next = cutter.next_batch().map_err(|err| input.error(err))?;
                    let Some(batch) = next else { break };
                    has_text |= !batch.text.trim_ascii().is_empty();
                    batches.push(batch);
                }
                if batches.is_empty() {
                    break;
                }
                let read = |batch: &Batch| {
                    task::fault("play games");
                    let mut reader = input.reader(&batch.text);
                    let mut found = Vec::new();
                    while reader.next_game() {
                        let unknown = UnknownVariants::name(reader.tags());
                        found.push((unknown, read(&batch.text, &mut reader)?));
                    }
                    let mut skipped = SkippedParts::default();
                    skipped.add_reader(&reader, batch.offset);
                    Ok((found, skipped))
                };
                let read: Vec<Result<(Vec<_>, _)>> =
                    task::caught(|| Ok(pool.install(|| batches.par_iter().map(read).collect())))?;
                for read in read {
                    let (found, of_batch) = read?;
                    skipped.join(of_batch);
                    for (unknown, found) in found {
                        all.games += 1;
                        if let Some(name) = unknown {
                            all.unknown_variants.add(name, 1);
                        }
                        take(all.games, found)?;
                    }
                }
                let so_far = taken.load(Ordering::Relaxed);
                self.meter.advance(so_far - reported);
                reported = so_far;
            }
            if all.games == first && has_text {
                return Err(Error::file(input.path(), NO_GAME));
            }
            skipped.files = unread.get().cloned();
            all.skipped.extend(skipped.warnings(input.path()));
        }
        Ok(all)
    }
}

/// Returns the variant and the starting position of a game, according to its `Variant` and `FEN` tags.
///
/// # Errors
///
/// Returns a message that describes the problem if the variant is unknown or the position is invalid.
pub(crate) fn start_of(tags: &Tags<'_>) -> Result<(Variant, VariantPosition), String> {
    let variant = tags.variant().map_err(|err| err.to_string())?;
    match tags.fen() {
        None => Ok((variant, variant.start())),
        Some(fen) => match variant.game_start(&tag_text(fen)) {
            Ok((start, _)) => Ok((variant, start)),
            // The message quotes the FEN, which may be very long.
            Err(err) => Err(err.to_string().chars().take(200).collect()),
        },
    }
}

/// The outcome of playing the moves of a game: the result after the moves and, if not all moves could be played, the
/// reason.
#[derive(Default)]
pub(crate) struct Ending {
    /// The result that the termination marker states, or `None` if the game has no marker or its text is damaged.
    pub marker: Option<GameResult>,
    /// A description of the first move that cannot be played, with the reason. `None` if all moves can be played.
    pub illegal: Option<String>,
    /// The reason why the rest of the game's text cannot be read, or `None` if all of it was read.
    pub flaw: Option<String>,
}

impl Ending {
    /// Returns the reason why not all moves of the game could be read and played, or `None` if all of them could.
    pub fn problem(self) -> Option<String> {
        self.illegal.or(self.flaw)
    }
}

/// A receiver of the moves of a main line while the line is played.
pub(crate) trait MoveReceiver<P: Rules> {
    /// Receives a legal move before it is played in the position `pos`. `end` is the offset in the text at which the
    /// move ends. Returns `false` if the line ends with this move.
    fn receive(&mut self, pos: &Keyed<P>, mv: Move, end: usize) -> bool;

    /// Reads the variation that `games` has just entered, which is an alternative to the last move. By default, skips
    /// it.
    fn read_variation(&mut self, games: &mut GameReader<'_>) {
        games.leave_variation();
    }
}

impl<P: Rules, F: FnMut(&Keyed<P>, Move, usize) -> bool> MoveReceiver<P> for F {
    fn receive(&mut self, pos: &Keyed<P>, mv: Move, end: usize) -> bool {
        self(pos, mv, end)
    }
}

/// The reason why a main line was not played further.
pub(crate) enum LineStop<'a> {
    /// The receiver ended the line by returning `false` for the last move.
    Receiver,
    /// The game has ended.
    End(GameEnd),
    /// The next move was a null move.
    NullMove,
    /// The next move was not legal.
    Illegal(IllegalMove<'a>),
}

/// A move that cannot be played.
pub(crate) struct IllegalMove<'a> {
    pub text: &'a [u8],
    /// The offset of the move in the text of the reader.
    pub offset: usize,
    /// The reason why the move cannot be played, with advice if the mistake is recognized.
    pub reason: String,
}

impl IllegalMove<'_> {
    /// Returns the text of the move, shortened to 40 characters.
    pub(crate) fn name(&self) -> String {
        let text = String::from_utf8_lossy(self.text);
        text.chars().take(40).collect()
    }
}

/// Plays the main line of the current game, starting at the current offset of `games` and in the position `pos`, up to
/// the first move that cannot be played. Passes each move to `moves`. Afterwards, `pos` is the position after the last
/// move, and `games` is after the token that ended the line. `letters` is the language of the piece letters.
// This is one loop because it runs once per half-move of every game.
#[inline(always)]
pub(crate) fn play_main_line<'a, P: Rules>(
    games: &mut GameReader<'a>,
    letters: PieceLetters,
    pos: &mut Keyed<P>,
    moves: &mut impl MoveReceiver<P>,
) -> LineStop<'a> {
    let in_english = letters == PieceLetters::English;
    loop {
        if in_english {
            if let Some(word) = games.peek_word()
                && let Some(mv) = read_word(pos.position(), word)
            {
                games.take_word(word);
                if !pass_move(games, pos, mv, moves) {
                    return LineStop::Receiver;
                }
                continue;
            }
            // The word after a comment is usually a common move, too.
            if games.pass_closed_comment() {
                continue;
            }
        }
        let (text, offset) = match games.next_token() {
            Token::Move { text, offset } | Token::Unreadable { text, offset } => (text, offset),
            Token::NullMove { .. } => return LineStop::NullMove,
            Token::BeginVariation => {
                moves.read_variation(games);
                continue;
            }
            Token::EndVariation => unreachable!("a variation is read to its end"),
            Token::End(end) => return LineStop::End(end),
        };
        match letters.read_move(pos.position(), text) {
            Ok(mv) if pass_move(games, pos, mv, moves) => {}
            Ok(_) => return LineStop::Receiver,
            Err(_) if games.is_double_loss(text) => {
                return LineStop::End(GameEnd::Complete(Some(GameResult::Unknown)));
            }
            Err(err) => {
                let reason = with_advice(err, pos.position(), text, letters);
                return LineStop::Illegal(IllegalMove {
                    text,
                    offset,
                    reason,
                });
            }
        }
    }
}

/// Passes the move `mv` to `moves` and plays it in the position `pos`. Returns `false` if the line ends with this move.
#[inline(always)]
fn pass_move<P: Rules>(
    games: &GameReader<'_>,
    pos: &mut Keyed<P>,
    mv: Move,
    moves: &mut impl MoveReceiver<P>,
) -> bool {
    let goes_on = moves.receive(pos, mv, games.offset());
    pos.play(mv);
    goes_on
}

/// Plays the remaining moves of the current game of `games` on the board `pos`. Stops at the end of the game, at a null
/// move, at a move that cannot be played, or after a move for which `step` returns `false`. Then advances `games` to
/// the end of the game.
///
/// Calls `step` before each move. The arguments are the position, the move, and the offset in the text at which the
/// move ends.
///
/// # Errors
///
/// Returns the first error of `step`. An unplayable move is not an error; it is reported in [`Ending::illegal`].
pub(crate) fn play(
    games: &mut GameReader<'_>,
    pos: &mut Keyed<VariantPosition>,
    mut step: impl FnMut(&Keyed<VariantPosition>, Move, usize) -> Result<bool>,
) -> Result<Ending> {
    let mut stepped = Ok(true);
    let letters = PieceLetters::English;
    let mut receive = |pos: &Keyed<VariantPosition>, mv: Move, end: usize| {
        stepped = step(pos, mv, end);
        matches!(stepped, Ok(true))
    };
    let stop = play_main_line(games, letters, pos, &mut receive);
    stepped?;
    Ok(match stop {
        LineStop::End(end) => ending(end),
        LineStop::NullMove | LineStop::Receiver => ending(games.skip_moves()),
        LineStop::Illegal(mv) => Ending {
            illegal: Some(format!("{}: {}", mv.name(), mv.reason)),
            ..ending(games.skip_moves())
        },
    })
}

/// A game whose moves were played. Contains the starting position, the final position, and the outcome of playing the
/// moves.
pub(crate) struct ReplayedGame {
    pub variant: Variant,
    pub start: VariantPosition,
    /// The position after the last move that was played.
    pub last: Keyed<VariantPosition>,
    pub ending: Ending,
}

/// Plays the moves of the current game of `games` from its starting position. Stops after a move for which `step`
/// returns `false`.
/// Calls `step` before each move. The arguments are the variant of the game, the position, the move, and the offset
/// in the text at which the move ends.
///
/// If the starting position of the game cannot be read, plays no move, and stores the reason in [`Ending::illegal`].
pub(crate) fn play_from_start(
    games: &mut GameReader<'_>,
    mut step: impl FnMut(Variant, &Keyed<VariantPosition>, Move, usize) -> Result<bool>,
) -> Result<ReplayedGame> {
    let (variant, start, problem) = match start_of(games.tags()) {
        Ok((variant, start)) => (variant, start, None),
        Err(problem) => (Variant::Standard, Variant::Standard.start(), Some(problem)),
    };
    let mut last = Keyed::new(start.clone());
    let ending = match problem {
        Some(_) => Ending {
            illegal: problem,
            ..ending(games.skip_moves())
        },
        None => play(games, &mut last, |pos, mv, end| step(variant, pos, mv, end))?,
    };
    Ok(ReplayedGame {
        variant,
        start,
        last,
        ending,
    })
}

/// Converts the end of a game that the reader returned to an [`Ending`] in which `illegal` is `None`. The caller must
/// set this field if a move could not be played.
fn ending(end: GameEnd) -> Ending {
    let (marker, flaw) = match end {
        GameEnd::Complete(marker) => (marker, None),
        GameEnd::Broken(flaw) => (None, Some(flaw.reason.to_string())),
    };
    Ending {
        marker,
        illegal: None,
        flaw,
    }
}

/// Descriptions and offsets of the parts of an input that were skipped because they do not belong to any game. Warnings
/// are made from them.
#[derive(Clone, Default)]
pub(crate) struct SkippedParts {
    /// A description of the files in a zip archive that were skipped.
    pub files: Option<String>,
    /// The byte offset, in the decompressed input, of the first text that does not belong to any game.
    pub stray_text: Option<u64>,
    /// The byte offset, in the decompressed input, of the first line between tags that is not a tag pair.
    pub bad_tag: Option<u64>,
}

impl SkippedParts {
    /// Records the parts that `reader` skipped. `offset` is the offset in the decompressed input at which the text of
    /// `reader` begins.
    pub fn add_reader(&mut self, reader: &GameReader<'_>, offset: u64) {
        let place = |at: usize| offset + at as u64;
        self.stray_text = self.stray_text.or(reader.stray_text().map(place));
        self.bad_tag = self.bad_tag.or(reader.bad_tag().map(place));
    }

    /// Adds the parts that were skipped in a later section of the same input. Keeps only the first offset for each kind
    /// of part.
    pub fn join(&mut self, later: SkippedParts) {
        self.files = self.files.take().or(later.files);
        self.stray_text = self.stray_text.or(later.stray_text);
        self.bad_tag = self.bad_tag.or(later.bad_tag);
    }

    /// Returns one warning about `file` for each kind of part that was skipped.
    pub fn warnings(&self, file: &Path) -> Vec<String> {
        let file = file.display();
        let at = |what, offset: Option<u64>| {
            offset.map(|offset| {
                format!("{file}: {what} was skipped, the first time at byte {offset}")
            })
        };
        let files = self.files.as_ref().map(|files| format!("{file}: {files}"));
        let warnings = [
            files,
            at("text that belongs to no game", self.stray_text),
            at("a line among the tags that is not a tag pair", self.bad_tag),
        ];
        warnings.into_iter().flatten().collect()
    }
}

/// The maximum number of unknown variants that warnings name. Without a limit, there could be a warning for every game.
pub(crate) const NAMED_VARIANTS: usize = 20;

/// The numbers of games that were skipped because of their unknown variants, by name of the variant.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct UnknownVariants {
    games: BTreeMap<String, u64>,
    /// The number of games of further variants, whose names were not kept.
    more: u64,
}

impl UnknownVariants {
    /// Returns the variant that the `Variant` tag of a game names if polybook does not support it, otherwise `None`.
    /// The name is shortened to 40 characters.
    pub fn name(tags: &Tags<'_>) -> Option<String> {
        let is_unknown = tags.named_variant().is_err();
        is_unknown.then(|| {
            let name = String::from_utf8_lossy(tags.get(b"Variant").unwrap_or_default());
            name.trim().chars().take(40).collect()
        })
    }

    /// Adds `games` to the number of skipped games of the unknown variant `name`.
    pub fn add(&mut self, name: String, games: u64) {
        let is_full = self.games.len() >= NAMED_VARIANTS;
        if is_full && !self.games.contains_key(&name) {
            self.more += games
        } else {
            *self.games.entry(name).or_default() += games
        }
    }

    /// Adds the numbers of games in `other` to those in `self`, variant by variant.
    pub fn join(&mut self, other: UnknownVariants) {
        for (name, games) in other.games {
            self.add(name, games);
        }
        self.more += other.more;
    }

    /// Returns one warning for each unknown variant. The warning states the number of its games.
    pub fn warnings(&self) -> Vec<String> {
        let named = self.games.iter();
        let named = named.map(|(name, games)| unknown_variant(Some(name), *games));
        let more = (self.more > 0).then(|| unknown_variant(None, self.more));
        named.chain(more).collect()
    }

    /// Returns all [warnings](UnknownVariants::warnings) as one string that can be appended to an error message. A
    /// semicolon precedes each warning.
    pub fn in_error(&self) -> String {
        let warnings = self.warnings().into_iter();
        warnings.map(|warning| format!("; {warning}")).collect()
    }
}

/// Returns a warning that `games` games of the unknown variant `name` were skipped. If `name` is `None`, the games
/// belong to several variants that are not named.
pub(crate) fn unknown_variant(name: Option<&str>, games: u64) -> String {
    let games = plural(games, "game");
    match name {
        Some(name) => format!(
            "{games} of the unknown variant \"{}\" left out; if these games are standard chess, remove the tag Variant",
            name.escape_debug()
        ),
        None => format!("{games} of further unknown variants left out"),
    }
}

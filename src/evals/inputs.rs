//! The inputs from which a store of evaluations is made, divided into batches that any thread can read.
//!
//! Evaluations of games are read from comments, such as `[%eval 0.33]`, `[%eval 0.33,20]` and `[%eval #-3]`.

use std::{
    io::{Chain, Cursor, Read},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use memchr::memmem;
use shakmaty::Chess;

use super::{
    layout::{Eval, EvalRecord, RECORD_SIZE, RECORDS_PER_BLOCK, Score},
    lines::{BatchRead, LineFormat, quoted, read_lines},
    store::Evals,
};
use crate::{
    error::{Error, Result},
    kind::FileKind,
    pgn::{
        Batch, Cutter, GameEnd, GameReader, Input, Stream, StreamOptions, Tags, Token,
        UnknownVariants, tag_text,
    },
    position::{Keyed, LineError, Variant, game_start, read_move, read_word},
    progress::Meter,
};

/// The approximate size of a batch in bytes. A batch is the part of a text that one thread reads as one task.
const BATCH_SIZE: usize = 1 << 19;

/// The number of bytes at the start of a text input that are examined to detect its format.
const DETECTION_SIZE: u64 = 1 << 16;

/// An input with evaluations: a text file, such as a PGN or EPD file, or a store of evaluations.
pub(super) enum EvalsSource {
    Text(Input),
    Store(Evals),
}

/// The kind of entries in an input: games, lines of text, or records of a store of evaluations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum InputEntries {
    Games,
    Lines(LineFormat),
    Records,
}

impl EvalsSource {
    /// Opens an input with evaluations, and determines whether it is a text file or a store. Verifies all checksums of
    /// a store.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read or is a damaged store. Also returns an error if the input is a
    /// Parquet file of evaluations, because polybook writes such files but does not read them.
    pub(super) fn new(input: &Input) -> Result<EvalsSource> {
        input.check()?;
        match input.kind()? {
            FileKind::Evals => {
                let evals = Evals::open(input.path())?;
                evals.check()?;
                Ok(EvalsSource::Store(evals))
            }
            #[cfg(feature = "parquet")]
            FileKind::Parquet if super::parquet::contains_evals(input.path())? => {
                let problem = "this Parquet file contains evaluations, but polybook does not read evaluations from \
                               Parquet: give the store from which the file was made";
                Err(Error::foreign(input.path(), problem))
            }
            _ => Ok(EvalsSource::Text(input.clone())),
        }
    }

    /// Returns the store of evaluations, or `None` if the input is a text file.
    pub(super) fn store(&self) -> Option<&Evals> {
        match self {
            EvalsSource::Text(_) => None,
            EvalsSource::Store(evals) => Some(evals),
        }
    }

    /// Returns the names of the origins that the input's evaluations may have. An origin is the source of an
    /// evaluation, such as the name of an engine. Evaluations in a text file have the origin `PGN`, `EPD` or `Lichess`.
    pub(super) fn origins(&self) -> Vec<&str> {
        match self {
            EvalsSource::Text(_) => vec![EPD, LICHESS, PGN],
            EvalsSource::Store(evals) => evals.origins().iter().map(String::as_str).collect(),
        }
    }

    /// Opens the input for reading in batches.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be opened or read.
    pub(super) fn open(&self, options: &StreamOptions) -> Result<SourceBatches<'_>> {
        match self {
            EvalsSource::Store(evals) => Ok(SourceBatches::new(
                BatchSource::Records(evals),
                Arc::default(),
            )),
            EvalsSource::Text(input) => SourceBatches::of_text(input, options),
        }
    }
}

impl<'a> SourceBatches<'a> {
    /// Opens a text file for reading in batches, and detects whether it contains games or lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened or read.
    pub(super) fn of_text(input: &'a Input, options: &StreamOptions) -> Result<SourceBatches<'a>> {
        let mut stream = input.open(options)?;
        let (taken, unread) = (Arc::clone(&stream.taken), Arc::clone(&stream.left_out));
        let mut start = Vec::new();
        let read = (&mut stream).take(DETECTION_SIZE).read_to_end(&mut start);
        read.map_err(|err| input.error(err))?;
        let format = LineFormat::of(&start);
        let text = Cursor::new(start).chain(stream);
        let (entries, cutter) = match format {
            Some(format) => (
                InputEntries::Lines(format),
                Cutter::of_lines(text, BATCH_SIZE),
            ),
            None => (InputEntries::Games, Cutter::new(text, BATCH_SIZE)),
        };
        let cut = BatchSource::Text(input, entries, Box::new(cutter));
        Ok(SourceBatches {
            unread,
            ..SourceBatches::new(cut, taken)
        })
    }
}

const EPD: &str = "EPD";
const LICHESS: &str = "Lichess";
const PGN: &str = "PGN";

/// A reader that divides an input into batches of entries (games, lines or records), which several threads can process.
pub(super) struct SourceBatches<'a> {
    cut: BatchSource<'a>,
    /// The number of bytes of the input that have been read.
    taken: Arc<AtomicU64>,
    /// Receives a description of the files of a zip archive that are not read.
    unread: Arc<OnceLock<String>>,
    /// The number of read bytes that the meter already shows.
    shown: u64,
    /// The number of records of a store that have been read.
    records: u64,
    /// The number of blocks of a store that have been read.
    blocks: u64,
}

/// The data that a [`SourceBatches`] divides into batches: a text file with the [`Cutter`] that divides it, or a store
/// of evaluations.
enum BatchSource<'a> {
    Text(&'a Input, InputEntries, Box<Cutter<Text>>),
    Records(&'a Evals),
}

/// A reader of the decompressed bytes of a text file. It first returns the bytes that were already read from the stream
/// to detect the format.
type Text = Chain<Cursor<Vec<u8>>, Stream>;

impl<'a> SourceBatches<'a> {
    fn new(cut: BatchSource<'a>, taken: Arc<AtomicU64>) -> SourceBatches<'a> {
        SourceBatches {
            cut,
            taken,
            unread: Arc::default(),
            shown: 0,
            records: 0,
            blocks: 0,
        }
    }

    /// Returns the kind of entries in the batches: games, lines of text, or records of a store.
    pub(super) fn entries(&self) -> InputEntries {
        match &self.cut {
            BatchSource::Text(_, entries, _) => *entries,
            BatchSource::Records(..) => InputEntries::Records,
        }
    }

    /// Returns a description of the files in a zip archive that were skipped. Returns `None` if no file was skipped.
    /// Call this function after the last batch, because the description is incomplete before.
    pub(super) fn unread_files(&self) -> Option<String> {
        self.unread.get().cloned()
    }

    /// Returns the next batch of the input, or `None` after the last one. Advances `meter` by the number of bytes read.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read, or if a checksum of a store does not match.
    pub(super) fn next_batch(&mut self, meter: &Meter) -> Result<Option<Batch>> {
        let batch = match &mut self.cut {
            BatchSource::Text(input, _, cutter) => {
                cutter.next_batch().map_err(|err| input.error(err))?
            }
            BatchSource::Records(evals) => {
                let offset = self.records;
                let blocks = (BATCH_SIZE / RECORD_SIZE) as u64 / RECORDS_PER_BLOCK;
                let text = evals.blocks(self.blocks, blocks)?;
                self.blocks += blocks;
                self.records += (text.len() / RECORD_SIZE) as u64;
                self.taken.fetch_add(text.len() as u64, Ordering::Relaxed);
                (!text.is_empty()).then_some(Batch { text, offset })
            }
        };
        let taken = self.taken.load(Ordering::Relaxed);
        meter.advance(taken - self.shown);
        self.shown = taken;
        Ok(batch)
    }
}

/// Reads the evaluations in `batch`, a batch of the input `source` that contains entries of the kind `entries`.
/// `origin_of` converts the name of an origin (the source of an evaluation, such as an engine) to its number in the
/// output.
///
/// # Errors
///
/// Returns an error if a record of a store is damaged. A game or line that cannot be read is no error, but is counted
/// in the result.
pub(super) fn read_batch(
    source: &EvalsSource,
    entries: InputEntries,
    batch: &Batch,
    origin_of: impl Fn(&str) -> u8,
) -> Result<BatchRead> {
    match (entries, source) {
        (InputEntries::Games, _) => Ok(read_games(&batch.text, origin_of(PGN))),
        (InputEntries::Lines(format), _) => {
            let origin = match format {
                LineFormat::Epd => EPD,
                LineFormat::Lichess => LICHESS,
            };
            Ok(read_lines(format, &batch.text, origin_of(origin)))
        }
        (InputEntries::Records, EvalsSource::Store(evals)) => {
            let mut read = BatchRead::default();
            let origins = evals.origins().iter();
            let origins: Vec<u8> = origins.map(|name| origin_of(name)).collect();
            for bytes in batch.text.as_chunks().0 {
                let mut record = evals.read(bytes)?;
                record.eval.origin = origins[usize::from(record.eval.origin)];
                read.records.push(record.to_ranked());
                read.entries += 1;
            }
            Ok(read)
        }
        (InputEntries::Records, EvalsSource::Text(_)) => unreachable!("a text has no records"),
    }
}

/// The text with which an evaluation in a comment of a game begins.
const EVAL: &[u8] = b"[%eval";

/// Reads the evaluations in the comments of `text`, a batch of games in PGN. Stores `origin`, the number of the source
/// of evaluations, in each of them. The moves of games without evaluations are not played.
pub(super) fn read_games(text: &[u8], origin: u8) -> BatchRead {
    let mut read = BatchRead::default();
    let finder = memmem::Finder::new(EVAL);
    let mut next_eval = finder.find(text);
    let mut games = GameReader::new(text);
    while games.next_game() {
        let start = games.game_offset();
        games.skip_moves();
        let end = games.offset();
        if next_eval.is_some_and(|at| at < start) {
            next_eval = finder.find(&text[start..]).map(|at| start + at);
        }
        if next_eval.is_some_and(|at| at < end)
            && let Err((offset, reason)) = read_game(&text[start..end], origin, &mut read)
        {
            read.reject(start + offset, reason);
        }
        read.entries += 1;
    }
    read
}

/// Reads the evaluations in the comments of one game, `text`, and adds them to `read`. Stores `origin`, the number of
/// the source of evaluations, in each of them.
///
/// # Errors
///
/// If the game cannot be played to its end, returns the offset in `text` of the fault, and the reason. The evaluations
/// before this offset are still added to `read`.
fn read_game(text: &[u8], origin: u8, read: &mut BatchRead) -> Result<(), (usize, String)> {
    let mut games = GameReader::new(text);
    if !games.next_game() {
        return Ok(());
    }
    if games.tags().variant() != Ok(Variant::Standard) {
        read.filtered += 1;
        if let Some(name) = UnknownVariants::name(games.tags()) {
            read.unknown_variants.add(name, 1);
        }
        return Ok(());
    }
    let start = start_of(games.tags()).map_err(|err| (0, err.to_string()))?;
    let mut pos = Keyed::new(start);
    games.return_to_comments();
    loop {
        if let Some(word) = games.peek_word()
            && let Some(mv) = read_word(pos.position(), word)
        {
            games.take_word(word);
            pos.play(mv);
            continue;
        }
        let token = games.next_token_after(|comment| match evaluation(comment) {
            None => {}
            Some(found) => {
                let record = found.and_then(|(score, depth)| {
                    let eval = Eval {
                        score,
                        depth,
                        nodes: 0,
                        origin,
                    };
                    EvalRecord::new(pos.position(), pos.key_without_unusable_en_passant(), eval)
                });
                match record {
                    Some(record) => read.records.push(record.to_ranked()),
                    None => read.ignored += 1,
                }
            }
        });
        match token {
            Token::Move { text, offset } | Token::Unreadable { text, offset } => {
                match read_move(pos.position(), text) {
                    Ok(mv) => pos.play(mv),
                    Err(_) if games.is_double_loss(text) => return Ok(()),
                    Err(err) => {
                        let mv = quoted(&String::from_utf8_lossy(text));
                        return Err((offset, format!("\"{mv}\": {err}")));
                    }
                }
            }
            Token::End(GameEnd::Broken(flaw)) => return Err((flaw.offset, flaw.reason.to_owned())),
            // The moves after a null move do not lead to positions of a legal game.
            Token::NullMove { .. } | Token::End(GameEnd::Complete(_)) => return Ok(()),
            Token::BeginVariation | Token::EndVariation => {
                unreachable!("variations are passed over")
            }
        }
    }
}

/// Returns the starting position of a game: the position in its `FEN` tag, or the initial position of chess if the game
/// has no such tag.
fn start_of(tags: &Tags<'_>) -> Result<Chess, LineError> {
    match tags.fen() {
        Some(fen) => Ok(game_start(&tag_text(fen))?.0),
        None => Ok(Chess::default()),
    }
}

/// Finds the evaluation in a comment, such as `[%eval 0.33,20]`, and returns its score and its depth. If the depth is
/// missing, it is 0. The outer `Option` is `None` if the comment contains no evaluation. The inner one is `None` if the
/// evaluation cannot be read.
///
/// A score without a decimal point cannot be read, because it may be in pawns or in centipawns.
pub(crate) fn evaluation(comment: &[u8]) -> Option<Option<(Score, u8)>> {
    // Comments are short, so building a substring searcher would take longer than the search itself.
    let mut brackets = memchr::memchr_iter(EVAL[0], comment);
    let rest = brackets.find_map(|at| comment[at..].strip_prefix(EVAL))?;
    let end = memchr::memchr(b']', rest).unwrap_or(rest.len());
    let text = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    let (value, depth) = match text.split_once(',') {
        Some((value, depth)) => (value, depth.trim()),
        None => (text, "0"),
    };
    let is_begun = value.starts_with(|c: char| c.is_ascii_whitespace());
    let score = score(value.trim()).filter(|_| is_begun && end < rest.len());
    let depth: Option<u32> = depth.parse().ok();
    Some(score.zip(depth.map(|depth| depth.min(255) as u8)))
}

/// Parses a score: a number of pawns with a decimal point, such as `-0.25`, or a mate, such as `#-3`. Returns `None`
/// for any other string.
fn score(text: &str) -> Option<Score> {
    if let Some(moves) = text.strip_prefix('#') {
        return Score::mate(moves.parse().ok()?);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, part) = digits.split_once('.')?;
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) {
        return None;
    }
    let pawns: f64 = text.parse().ok()?;
    Some(Score::centipawns((pawns * 100.0).round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{from_text, key};

    fn said(comment: &str) -> Option<Option<(String, u8)>> {
        let found = evaluation(comment.as_bytes())?;
        Some(found.map(|(score, depth)| (score.to_string(), depth)))
    }

    #[test]
    fn evaluations_are_read_or_ignored() {
        for (comment, score, depth) in [
            (" [%eval 0.33] [%clk 0:10:00] ", "+0.33", 0),
            ("[%eval 0.3,20]", "+0.30", 20),
            ("[%clk 1:00:00] good [%eval -1.256, 300]", "-1.26", 255),
            ("[%eval +12.0]", "+12.00", 0),
            ("[%eval #3,30]", "#3", 30),
            ("[%eval #-3]", "#-3", 0),
            ("[%eval #+3]", "#3", 0),
            ("[%eval -0.0]", "0.00", 0),
            ("[%eval 99999999999999999999.0]", "+320.00", 0),
        ] {
            assert_eq!(
                said(comment),
                Some(Some((score.to_owned(), depth))),
                "{comment}"
            );
        }
        for comment in [
            "[%eval 35,20]",
            "[%eval 3]",
            "[%eval #0]",
            "[%eval 1.5",
            "[%eval1.5]",
            "[%eval 1.5x]",
            "[%eval 1e5.0]",
            "[%eval 0.3,20,1]",
            "[%eval 0.3,-1]",
            "[%eval .5]",
            "[%eval inf]",
            "[%evaluation 0.5]",
            "[%eval \u{e9}]",
        ] {
            assert_eq!(said(comment), Some(None), "{comment}");
        }
        assert_eq!(said("[%clk 0:00:01]"), None);
    }

    /// Returns the keys and scores of the evaluations that are read from games, and the result of reading.
    fn of_games(text: &str) -> (Vec<(u64, String)>, BatchRead) {
        let read = read_games(text.as_bytes(), 0);
        let records = read.records.iter().map(|bytes| {
            let record = EvalRecord::from_ranked(bytes).unwrap();
            (record.key, record.eval.score.to_string())
        });
        (records.collect(), read)
    }

    #[test]
    fn an_evaluation_is_that_of_the_position_before_it() {
        let text = "[White \"a\"]\n\n1. d4 d5 *\n\n[White \"b\"]\n\n{ [%eval 0.1] }\n1. e4 $1 { [%eval 0.2] } (1. d4 { [%eval 9.0] })\
            1... e5 {x} { [%eval 0.3] } 2. Nf3?! { [%eval #4] } Nc6 $6 ; note\n{ [%eval 7] } *\n\n1. c4 {[%eval 0.4]} Ke4 {[%eval 0.5]} *";
        let (found, read) = of_games(text);
        let lines = ["", "e4", "e4 e5", "e4 e5 Nf3", "c4"];
        let keys = lines.map(|line| key(&from_text(None, Some(line)).unwrap()));
        let scores = ["+0.10", "+0.20", "+0.30", "#4", "+0.40"].map(str::to_owned);
        let expected: Vec<_> = keys.into_iter().zip(scores).collect();
        assert_eq!(found, expected);
        assert_eq!((read.entries, read.ignored, read.rejected), (3, 1, 1));
        let (number, offset, reason) = &read.described[0];
        assert_eq!((*number, &text[*offset..][..3]), (2, "Ke4"));
        assert!(reason.contains("Ke4"), "{reason}");
    }

    #[test]
    fn games_start_from_their_fen_and_variants_are_left_out() {
        let fen = "8/8/8/8/8/4k3/4p3/4K3 w - - 0 1";
        let text = format!(
            "[FEN \"{fen}\"]\n\n{{ [%eval 0.0] }} *\n\n[Variant \"Atomic\"]\n\n1. e4 {{ [%eval 0.5] }} *\n\n\
             [FEN \"nonsense\"]\n\n{{ [%eval 0.0] }} *\n"
        );
        let (found, read) = of_games(&text);
        let pos = from_text(Some(fen), None).unwrap();
        assert_eq!(found, [(key(&pos), "0.00".to_owned())]);
        assert_eq!((read.filtered, read.rejected), (1, 1));
    }
}

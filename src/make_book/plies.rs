//! The half-moves of games as columns of numbers, for machine learning.
//!
//! [`Plies`] reads a PGN file of any size in batches of whole games. It decodes a batch on all threads of the
//! current rayon pool.
//!
//! ```
//! use polybook::{pgn::Input, plies::{Plies, PlyOptions}};
//!
//! let mut plies = Plies::open(Input::file("data/famous.pgn"), PlyOptions::default())?;
//! let batch = plies.next_batch()?.expect("there are games");
//! assert_eq!(batch.keys[0], 0x463b96181691fc9c); // the starting position
//! assert_eq!(batch.keys.len(), batch.moves.len());
//! # Ok::<(), polybook::Error>(())
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use memchr::memmem;
use rayon::prelude::*;
use shakmaty::{ByColor, CastlingSide, Color, Position, Square};

#[cfg(feature = "obs")]
use crate::storage::{
    output::AtomicFile,
    table::{Cell, Column, ColumnType, Table, TableFormat},
};
use crate::{
    chess::position::{BookMove, parse_fen},
    error::{Error, Result},
    formats::evals::{Score, evaluation},
    games::{
        pgn::{
            Batch, CommentTimes, Cutter, GameReader, GameResult, Input, Stream, StreamOptions,
            Token,
        },
        selection::{Evaluator, Selection},
    },
    make_book::{BatchSink, CountedGame, MakeBook, Rejection, Unfinished, replay_games},
    provenance::GameCounts,
    storage::sort::Memory,
    task,
};

/// The approximate number of bytes of PGN text that a thread decodes as one task.
const BATCH_SIZE: usize = 1 << 18;

/// Options for reading the half-moves of games, which select the games and say whether comments are read.
#[derive(Clone, Debug)]
pub struct PlyOptions {
    /// The maximum number of half-moves of each game. Default: all.
    pub max_ply: usize,
    /// The conditions that a game must meet to be read. By default, all games are read.
    pub selection: Selection,
    /// The treatment of games without a result. By default, they are skipped, because nothing can be learned from
    /// them. Otherwise, they get the result 0, like draws.
    pub unfinished: Unfinished,
    /// Whether clock times and evaluations are read from comments, which takes about as long as reading the moves.
    /// Default: `true`.
    pub comments: bool,
    /// Whether a game that cannot be replayed causes an error. By default, it is skipped.
    pub strict: bool,
    /// The memory budget for decompression, and the directory to which a zip archive from a pipe is copied. Default:
    /// 128 MiB, and the temporary directory of the system.
    pub memory: Memory,
    /// A flag that cancels reading. After it is set, [`Plies::next_batch`] soon returns [`Error::Interrupted`].
    pub stop: Arc<AtomicBool>,
}

impl Default for PlyOptions {
    fn default() -> PlyOptions {
        PlyOptions {
            max_ply: usize::MAX,
            selection: Selection::default(),
            unfinished: Unfinished::Skip,
            comments: true,
            strict: false,
            memory: Memory::default().with_bytes(StreamOptions::default().memory),
            stop: Arc::default(),
        }
    }
}

/// The half-moves of some games, in the order of the file. Each property of the half-moves is a column, and all columns
/// have the same length. However, `clock` and `eval` are empty unless [`PlyOptions::comments`] is set.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PlyBatch {
    /// The Polyglot key of the position before each move.
    pub keys: Vec<u64>,
    /// Each move as a 16-bit Polyglot number.
    pub moves: Vec<u16>,
    /// The result of the game that contains the half-move: 1 if White won, 0 for a draw, -1 if Black won.
    pub results: Vec<i8>,
    /// The number of the game in the file, counted from 0. Skipped games have numbers too.
    pub games: Vec<u64>,
    /// Whether each move is castling, which its 16-bit number alone does not tell.
    pub castles: Vec<bool>,
    /// The time in seconds that was left on the player's clock after the move, from `[%clk]` in the comments on the
    /// move. `None` if the comments do not state it.
    pub clock: Vec<Option<f64>>,
    /// The evaluation of the position after the move, from `[%eval]` in the comments after the move. `None` if the
    /// comments do not contain it.
    pub eval: Vec<Option<Score>>,
}

impl PlyBatch {
    /// Returns the move of half-move `index` in UCI notation. Castling is a move of the king by two squares, such as
    /// `e1g1`.
    ///
    /// # Panics
    ///
    /// Panics if the batch has no half-move `index`.
    pub fn uci(&self, index: usize) -> String {
        let mv = BookMove(self.moves[index]);
        if !self.castles[index] {
            return mv.to_string();
        }
        let (king, rook) = (mv.from_square(), mv.to_square());
        let side = CastlingSide::from_queen_side(rook < king);
        let target = Square::from_coords(side.king_to_file(), king.rank());
        format!("{king}{target}")
    }

    /// Appends the half-moves of `other`, a later batch of the same file, to this batch. `first_game` is the number
    /// that the first game of `other` has in the file.
    fn append(&mut self, mut other: PlyBatch, first_game: u64) {
        self.keys.append(&mut other.keys);
        self.moves.append(&mut other.moves);
        self.results.append(&mut other.results);
        self.castles.append(&mut other.castles);
        self.clock.append(&mut other.clock);
        self.eval.append(&mut other.eval);
        let games = other.games.into_iter().map(|game| first_game + game);
        self.games.extend(games);
    }
}

/// A reader of the half-moves of games of standard chess in a PGN file. Its memory use does not depend on the
/// size of the file.
#[derive(Debug)]
pub struct Plies {
    input: Input,
    cutter: Cutter<Stream>,
    options: PlyOptions,
    /// The options that decide which games are replayed, and how far. They do not filter games by result. This is done
    /// only after the replay, so that a game that cannot be replayed is rejected regardless of its result.
    replayed: MakeBook,
    games: u64,
    rejected: u64,
}

impl Plies {
    /// Opens a PGN file, which may be compressed.
    ///
    /// # Errors
    ///
    /// Returns an error if [`Input::open`] fails, or if the filter in `options` cannot accept any game.
    pub fn open(input: Input, options: PlyOptions) -> Result<Plies> {
        let checked = options.selection.check();
        checked.map_err(|err| Error::format(input.path(), err))?;
        if let Some(unanswerable) = options.selection.unanswerable(Evaluator::EachGame) {
            return Err(Error::format(input.path(), unanswerable));
        }
        let stream = input.open(&StreamOptions {
            stop: Arc::clone(&options.stop),
            ..StreamOptions::within(&options.memory)
        })?;
        Ok(Plies {
            input,
            cutter: Cutter::new(stream, BATCH_SIZE),
            replayed: MakeBook::new([])
                .max_ply(options.max_ply)
                .selection(Selection {
                    result: Vec::new(),
                    ..options.selection.clone()
                }),
            options,
            games: 0,
            rejected: 0,
        })
    }

    /// Returns the number of games that have been read so far, including skipped games.
    pub fn games(&self) -> u64 {
        self.games
    }

    /// Returns the number of games that have been skipped so far because they could not be replayed.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Returns the half-moves of the next games, or `None` at the end of the file. A batch is never empty and contains
    /// only whole games. Its size depends on the number of threads.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read. Returns [`Error::Rejected`] for the first game that cannot be
    /// replayed if [`PlyOptions::strict`] is set. Returns [`Error::Interrupted`] if reading was cancelled. After this
    /// error, further calls may return batches in which games are missing.
    pub fn next_batch(&mut self) -> Result<Option<PlyBatch>> {
        task::caught(|| self.read_batch())
    }

    fn read_batch(&mut self) -> Result<Option<PlyBatch>> {
        loop {
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let mut batches: Vec<Batch> = Vec::new();
            for _ in 0..rayon::current_num_threads() {
                let next = self.cutter.next_batch();
                match next.map_err(|err| self.input.error(err))? {
                    Some(batch) => batches.push(batch),
                    None => break,
                }
            }
            if batches.is_empty() {
                return Ok(None);
            }
            let (input, options, replayed) = (&self.input, &self.options, &self.replayed);
            let read = |batch: &Batch| read_batch(input, options, replayed, batch);
            let read = batches.par_iter().map(read);
            let mut plies = PlyBatch::default();
            for read in read.collect::<Vec<_>>() {
                let (columns, games, first_rejected) = read?;
                if let (true, Some(mut rejection)) = (self.options.strict, first_rejected) {
                    rejection.game += self.games;
                    return Err(Error::Rejected(Box::new(rejection)));
                }
                plies.append(columns, self.games);
                self.games += games.read;
                self.rejected += games.rejected;
            }
            if !plies.keys.is_empty() {
                return Ok(Some(plies));
            }
        }
    }
}

/// The columns of the table that [`write_table`] writes.
#[cfg(feature = "obs")]
const COLUMNS: [Column; 9] = [
    Column::new("game", ColumnType::Integer),
    Column::new("ply", ColumnType::Integer),
    Column::new("key", ColumnType::Key),
    Column::new("move", ColumnType::Move),
    Column::new("uci", ColumnType::Text),
    Column::new("result", ColumnType::Integer),
    Column::new("clock", ColumnType::Number),
    Column::new("eval_cp", ColumnType::Integer),
    Column::new("eval_mate", ColumnType::Integer),
];

/// The numbers of games and half-moves that [`write_table`] has read and written.
#[cfg(feature = "obs")]
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct WrittenPlies {
    /// The number of games that were read, including skipped games.
    pub games: u64,
    /// The number of games that were skipped because they could not be replayed.
    pub rejected: u64,
    /// The number of half-moves in the table.
    pub plies: u64,
}

/// Writes the half-moves of the games in `inputs` as a table to `out`. The columns `key` and `move` have the same
/// meaning as in counts directories. Games are numbered from 0 through all inputs, and the half-moves of each game from
/// 1. `threads` is the number of threads, or 0 for one per core.
///
/// # Errors
///
/// Fails for the same reasons as [`Plies::open`] and [`Plies::next_batch`], and if the table cannot be written.
#[cfg(feature = "obs")]
pub fn write_table(
    inputs: Vec<Input>,
    options: &PlyOptions,
    threads: usize,
    out: AtomicFile,
    format: TableFormat,
) -> Result<WrittenPlies> {
    let pool = task::pool(threads)?;
    let mut table = Table::begin(out, format, COLUMNS)?;
    let mut written = WrittenPlies::default();
    for input in inputs {
        let mut plies = Plies::open(input, options.clone())?;
        let (mut game, mut ply) = (u64::MAX, 0_u64);
        while let Some(batch) = pool.install(|| plies.next_batch())? {
            for index in 0..batch.keys.len() {
                if batch.games[index] != game {
                    (game, ply) = (batch.games[index], 0);
                }
                ply += 1;
                let eval = batch.eval.get(index).copied().flatten();
                table.write(&[
                    (written.games + game).into(),
                    ply.into(),
                    Cell::Key(batch.keys[index]),
                    batch.moves[index].into(),
                    batch.uci(index).into(),
                    Cell::Integer(batch.results[index].into()),
                    batch
                        .clock
                        .get(index)
                        .copied()
                        .flatten()
                        .map(Cell::Number)
                        .into(),
                    eval.and_then(Score::as_centipawns).into(),
                    eval.and_then(Score::as_mate).into(),
                ])?;
                written.plies += 1;
            }
        }
        written.games += plies.games();
        written.rejected += plies.rejected();
    }
    table.commit()?;
    Ok(written)
}

/// Decodes the games in `batch`. Returns their half-moves, and the numbers of games that were read and rejected. If any
/// games could not be replayed, also returns a description of the first one. `replayed` contains the options that
/// decide which games are replayed, and how far.
fn read_batch(
    input: &Input,
    options: &PlyOptions,
    replayed: &MakeBook,
    batch: &Batch,
) -> Result<(PlyBatch, GameCounts, Option<Rejection>)> {
    task::fault("plies");
    let mut plies = PlyBatch::default();
    let columns = Box::new(PlyColumns {
        options,
        text: &batch.text,
        has_commands: options.comments && memmem::find(&batch.text, b"[%").is_some(),
        game: 0,
        player: None,
        plies: &mut plies,
    });
    let (games, rejected) = replay_games(replayed, input, batch, columns)?;
    Ok((plies, games, rejected))
}

/// Appends the half-moves of a batch of games to the columns of `plies`.
struct PlyColumns<'a> {
    options: &'a PlyOptions,
    text: &'a [u8],
    /// Whether the text contains comments that may state clock times and evaluations.
    has_commands: bool,
    /// The offset of the current game in the text of the batch.
    game: usize,
    /// The color that the player of the selection has in the current game.
    player: Option<Color>,
    plies: &'a mut PlyBatch,
}

impl PlyColumns<'_> {
    /// Reads the clock times and evaluations in the comments of the current game. Only comments that follow one of its
    /// first `plies` half-moves are read.
    fn read_comments(&mut self, plies: usize) {
        let mut game = GameReader::new(&self.text[self.game..]);
        if !game.next_game() {
            return;
        }
        for ply in 0..=plies {
            let mut time = CommentTimes::default();
            let mut score = None;
            let token = game.next_token_after(|comment| {
                time.read(comment);
                score = evaluation(comment).flatten().or(score);
            });
            if ply > 0 {
                self.plies.clock.push(time.left);
                self.plies.eval.push(score.map(|(score, _)| score));
            }
            if !matches!(token, Token::Move { .. } | Token::Unreadable { .. }) {
                return;
            }
        }
    }
}

impl BatchSink for PlyColumns<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, _batch_offset: u64) {
        self.game = game.game_offset();
        self.player = self.options.selection.player_color(game.tags());
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        let is_unfinished = game.result == GameResult::Unknown;
        if is_unfinished && self.options.unfinished == Unfinished::Skip
            || !self
                .options
                .selection
                .admits_result_of(game.result, self.player)
        {
            return;
        }
        if self.has_commands {
            self.read_comments(game.plies.len());
        }
        let plies = &mut *self.plies;
        plies.keys.extend(game.plies.iter().map(|ply| ply.key));
        plies.moves.extend(game.plies.iter().map(|ply| ply.mv.0));
        let result = game.result.winner();
        let result = result.map_or(0, |winner| winner.fold_wb(1, -1));
        // A king moves by more than one file only if it castles.
        let mut kings = king_squares(game.start);
        let mut turn = game.first_turn;
        for ply in game.plies {
            let king = kings.get_mut(turn);
            let (from, to) = (ply.mv.from_square(), ply.mv.to_square());
            let is_castle = from == *king && from.file().distance(to.file()) > 1;
            plies.castles.push(is_castle);
            if from == *king {
                let side = CastlingSide::from_queen_side(to < from);
                *king = if is_castle {
                    Square::from_coords(side.king_to_file(), from.rank())
                } else {
                    to
                };
            }
            turn = !turn;
        }
        plies.results.resize(plies.keys.len(), result);
        plies.games.resize(plies.keys.len(), game.number.into());
        if self.options.comments {
            plies.clock.resize(plies.keys.len(), None);
            plies.eval.resize(plies.keys.len(), None);
        }
    }

    fn leave_out(&mut self, _games: &[u32]) {
        unreachable!("duplicates are not dropped");
    }

    fn add(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Returns the squares of the kings in the position in which a game starts. `epd` is the EPD of the position, or `None`
/// for the usual starting position.
fn king_squares(epd: Option<&str>) -> ByColor<Square> {
    let start = epd.and_then(|epd| parse_fen(epd).ok()).unwrap_or_default();
    let square = |color| start.board().king_of(color).unwrap_or(Square::E1);
    ByColor {
        black: square(Color::Black),
        white: square(Color::White),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::selection::WantedResult;

    fn batches(text: &str, options: PlyOptions) -> Result<(PlyBatch, u64, u64)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.pgn");
        std::fs::write(&path, text).unwrap();
        let mut plies = Plies::open(Input::file(&path), options)?;
        let mut all = PlyBatch::default();
        while let Some(batch) = plies.next_batch()? {
            assert!(!batch.keys.is_empty());
            all.append(batch, 0);
        }
        Ok((all, plies.games(), plies.rejected()))
    }

    const GAMES: &str = "1. e4 e5 1-0\n\n1. d4 Ke4 0-1\n\n1. c4 *\n\n[Result \"0-1\"]\n\n1. e4 (1. d4) c5 2. -- d6 0-1\n";

    #[test]
    fn columns_tell_moves_results_and_games() {
        let (plies, games, rejected) = batches(GAMES, PlyOptions::default()).unwrap();
        assert_eq!((games, rejected), (4, 1));
        let moves: Vec<String> = plies
            .moves
            .iter()
            .map(|mv| BookMove(*mv).to_string())
            .collect();
        assert_eq!(moves, ["e2e4", "e7e5", "e2e4", "c7c5"]);
        assert_eq!(plies.results, [1, 1, -1, -1]);
        assert_eq!(plies.games, [0, 0, 3, 3]);
        assert_eq!(plies.keys[0], 0x463b96181691fc9c);
        assert_eq!(plies.keys[1], plies.keys[3]);
    }

    #[test]
    fn castling_is_told_from_moves_of_rooks() {
        let text = "1. e4 e5 2. Nf3 Nc6 3. Be2 d6 4. O-O Bd7 5. Kh1 Qe7 6. Rg1 O-O-O 1-0\n\n\
            [FEN \"r3k3/8/8/8/8/8/8/5RK1 b q - 0 1\"]\n\n1... O-O-O 2. Rc1+ Kb8 3. Ra1 Rg8+ 4. Kf2 0-1\n\n\
            [FEN \"4k3/8/8/8/8/8/4K3/4R3 w - - 0 1\"]\n\n1. Rh1 Kd8 2. Rh8+ 1-0\n";
        let (plies, ..) = batches(text, PlyOptions::default()).unwrap();
        let moves: Vec<String> = (0..plies.moves.len()).map(|ply| plies.uci(ply)).collect();
        let expected = "e2e4 e7e5 g1f3 b8c6 f1e2 d7d6 e1g1 c8d7 g1h1 d8e7 f1g1 e8c8 \
            e8c8 f1c1 c8b8 c1a1 d8g8 g1f2 e1h1 e8d8 h1h8";
        assert_eq!(moves.join(" "), expected);
    }

    #[test]
    fn clocks_and_evaluations_are_those_after_their_moves() {
        let text = "1. e4 {[%clk 0:03:00]} e5 1-0\n\n1. d4 {[%clk 9:00]} *\n\n\
            {[%eval 0.1]} 1. e4 $1 {[%eval 0.3,20] [%clk 1:00:00.5]} (1. d4 {[%eval 9.0]}) 1... c5 ;[%eval #-3]\n\
            2. Nf3 {[%eval 0.5]} {[%clk 0:59:59]} Nc6 {[%eval 7]} 3. Bb5 {[%eval 1.0]} 0-1\n\n1. c4 {x} e5 1-0\n";
        let options = PlyOptions {
            max_ply: 4,
            ..PlyOptions::default()
        };
        let without = PlyOptions {
            comments: false,
            ..PlyOptions::default()
        };
        let (unread, ..) = batches(text, without).unwrap();
        assert!(unread.clock.is_empty() && unread.eval.is_empty());
        let (plies, ..) = batches(text, options).unwrap();
        assert_eq!(plies.games, [0, 0, 2, 2, 2, 2, 3, 3]);
        let of_third = [Some(3600.5), None, Some(3599.0), None];
        assert_eq!(plies.clock[..2], [Some(180.0), None]);
        assert_eq!(plies.clock[2..], [&of_third[..], &[None; 2]].concat());
        let evals = plies.eval.iter();
        let evals: Vec<String> = evals
            .map(|eval| eval.map_or_else(String::new, |score| score.to_string()))
            .collect();
        assert_eq!(evals, ["", "", "+0.30", "#-3", "+0.50", "", "", ""]);
    }

    #[test]
    fn options_choose_games_and_half_moves() {
        let options = PlyOptions {
            max_ply: 1,
            unfinished: Unfinished::Draw,
            ..PlyOptions::default()
        };
        let (plies, ..) = batches(GAMES, options).unwrap();
        // The illegal move of the second game comes after its first half-move.
        assert_eq!(plies.games, [0, 1, 2, 3]);
        assert_eq!(plies.results, [1, -1, 0, -1]);
        let mut options = PlyOptions::default();
        options.selection.result = vec![WantedResult::Game(GameResult::Unknown)];
        assert!(batches(GAMES, options).unwrap().0.keys.is_empty());
        let options = PlyOptions {
            strict: true,
            ..PlyOptions::default()
        };
        let Err(Error::Rejected(rejection)) = batches(GAMES, options) else {
            panic!("the second game is rejected")
        };
        let rejection: &Rejection = rejection.downcast_ref().unwrap();
        assert_eq!(
            (rejection.game, rejection.ply, &*rejection.mv),
            (1, 1, "Ke4")
        );
    }

    #[test]
    fn a_flag_ends_reading() {
        let options = PlyOptions::default();
        let stop = Arc::clone(&options.stop);
        let mut plies = Plies::open(Input::file("data/selfplay.pgn"), options).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(plies.next_batch(), Err(Error::Interrupted)));
    }

    #[test]
    fn every_half_move_of_a_run_is_there() {
        let mut plies =
            Plies::open(Input::file("data/selfplay.pgn"), PlyOptions::default()).unwrap();
        let mut count = 0;
        let mut last = None;
        while let Some(batch) = plies.next_batch().unwrap() {
            count += batch.keys.len() as u64;
            assert!(batch.games.is_sorted() && last < batch.games.first().copied());
            last = batch.games.last().copied();
        }
        let report = crate::MakeBook::new([Input::file("data/selfplay.pgn")])
            .run()
            .unwrap();
        assert_eq!(
            (plies.games(), count),
            (report.totals.games.read, report.totals.plies)
        );
    }
}

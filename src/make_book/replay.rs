//! Replaying the games of a batch.

use shakmaty::{Chess, Color, Position};

use super::{
    MakeBook,
    options::Unfinished,
    read::Job,
    report::{Games, Rejection},
};
use crate::{
    index::{layout, posting},
    pgn::{GameReader, GameResult, Token},
    position::{BookMove, Keyed, parse_fen, read_move},
    tally::{Stats, record},
};

/// What came out of a batch.
#[derive(Default)]
pub(super) struct Outcome {
    /// A [record] for each half-move that counts.
    pub records: Vec<u128>,
    pub games: Games,
    pub plies: u64,
    /// The first rejected games, numbered from the first game of the batch.
    pub rejected: Vec<Rejection>,
    /// Whether anything in the batch looked like PGN.
    pub recognised: bool,
    /// Whether there was more than blanks.
    pub has_text: bool,
    /// Where text first stood that belongs to no game.
    pub stray_text: Option<u64>,
    /// [Postings](posting) of games numbered from the first of the batch, if there is to be an index.
    pub postings: Vec<u128>,
    /// The index records of all games, joined, and the length of each.
    pub game_records: Vec<u8>,
    pub record_lengths: Vec<u32>,
}

/// Replays the games of one batch.
pub(super) struct Replayer<'a> {
    options: &'a MakeBook,
    /// The key before each half-move of the present game, and the move.
    line: Vec<(u64, BookMove)>,
    outcome: Outcome,
}

/// What is wrong with a game.
struct Problem {
    offset: usize,
    ply: usize,
    mv: String,
    reason: String,
}

/// What the moves of a game said.
struct Ending {
    /// The termination marker.
    marker: Option<GameResult>,
    /// All half-moves, where they had to be counted.
    plies: usize,
    problem: Option<Problem>,
    /// The key of the position after the last half-move that counts.
    last_key: u64,
}

impl<'a> Replayer<'a> {
    pub(super) fn new(options: &'a MakeBook) -> Replayer<'a> {
        Replayer {
            options,
            line: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    pub(super) fn replay(mut self, job: &Job) -> Outcome {
        let mut games = GameReader::new(&job.batch.text);
        // A game has some sixty half-moves, in about eight bytes each with its tags.
        let plies = job.batch.text.len() / 7;
        if self.options.counts_moves() {
            self.outcome.records.reserve(plies);
        }
        if self.options.leveldb.is_some() {
            self.outcome.postings.reserve(plies);
        }
        while games.next_game() {
            self.game(&mut games, job);
            self.outcome.games.read += 1;
        }
        let text = job.batch.text.strip_prefix(b"\xef\xbb\xbf");
        let text = text.unwrap_or(&job.batch.text);
        self.outcome.has_text = !text.trim_ascii().is_empty();
        self.outcome.stray_text = games
            .stray_text()
            .map(|offset| job.batch.offset + offset as u64);
        self.outcome
    }

    fn game(&mut self, games: &mut GameReader<'_>, job: &Job) {
        let tags = games.tags();
        let tag_result = tags.get(b"Result").and_then(GameResult::from_token);
        self.outcome.recognised |= !tags.is_empty();
        self.line.clear();
        if self.options.leveldb.is_some() {
            let offset = games
                .first_tag_offset()
                .map_or(layout::NO_OFFSET, |bracket| {
                    (job.batch.offset + bracket as u64 + 1) as i64
                });
            let start = self.outcome.game_records.len();
            layout::write_game(&mut self.outcome.game_records, tags, offset);
            let length = self.outcome.game_records.len() - start;
            self.outcome.record_lengths.push(length as u32);
        }

        let unwanted = !is_standard(tags.get(b"Variant"))
            || !self.options.selection.admits(tags)
            || tag_result.is_some_and(|result| !self.admits_result(result));
        if unwanted {
            games.skip_moves();
            self.outcome.games.filtered += 1;
            return;
        }
        let start = match tags.get(b"FEN") {
            Some(fen) if !fen.trim_ascii().is_empty() => {
                match parse_fen(&String::from_utf8_lossy(fen)) {
                    Ok(start) => start,
                    Err(err) => {
                        let problem = Problem {
                            offset: games.game_offset(),
                            ply: 0,
                            mv: String::new(),
                            reason: err.to_string(),
                        };
                        games.skip_moves();
                        self.reject(problem, job);
                        return;
                    }
                }
            }
            _ => Chess::default(),
        };
        let first_turn = start.turn();

        let ending = self.moves(games, start);
        self.outcome.recognised |= !self.line.is_empty();
        let result = tag_result.or(ending.marker).unwrap_or_default();
        let wanted = self.admits_result(result) && ending.plies >= self.options.selection.min_plies;
        match ending.problem {
            Some(problem) => {
                self.reject(problem, job);
                if !wanted || !self.options.keep_prefix {
                    return;
                }
            }
            None if wanted => self.outcome.games.counted += 1,
            None => {
                self.outcome.games.filtered += 1;
                return;
            }
        }
        self.count(result, first_turn);
        if self.options.leveldb.is_some() {
            self.index(result, ending.last_key);
        }
    }

    fn admits_result(&self, result: GameResult) -> bool {
        let unfinished =
            result == GameResult::Unknown && self.options.unfinished == Unfinished::Skip;
        !unfinished && self.options.selection.admits_result(result)
    }

    /// Plays the game into `self.line`, and says in which position it ends.
    fn moves(&mut self, games: &mut GameReader<'_>, start: Chess) -> Ending {
        let mut pos = Keyed::new(start);
        let mut ending = self.moves_from(&mut pos, games);
        ending.last_key = pos.key();
        ending
    }

    fn moves_from(&mut self, pos: &mut Keyed<Chess>, games: &mut GameReader<'_>) -> Ending {
        let end = loop {
            if self.line.len() == self.options.max_ply {
                return self.rest_of_game(games);
            }
            let (text, offset) = match games.next_token() {
                Token::Move { text, offset } | Token::Unreadable { text, offset } => (text, offset),
                end => break end,
            };
            match read_move(pos.position(), text) {
                Ok(mv) => {
                    self.line.push((pos.key(), BookMove::from(mv)));
                    pos.play(mv);
                }
                Err(err) => {
                    let problem = Problem {
                        offset,
                        ply: self.line.len(),
                        mv: String::from_utf8_lossy(text).chars().take(40).collect(),
                        reason: err.to_string(),
                    };
                    let mut ending = self.end_of_game(games.skip_moves());
                    ending.problem = Some(problem);
                    return ending;
                }
            }
        };
        self.end_of_game(end)
    }

    /// Passes over the moves that do not count, counting them if somebody asks for long games.
    fn rest_of_game(&self, games: &mut GameReader<'_>) -> Ending {
        if self.options.selection.min_plies <= self.line.len() {
            return self.end_of_game(games.skip_moves());
        }
        let (rest, end) = games.count_moves();
        let mut ending = self.end_of_game(end);
        ending.plies += rest;
        ending
    }

    fn end_of_game(&self, end: Token<'_>) -> Ending {
        let (marker, problem) = match end {
            Token::End(marker) => (marker, None),
            Token::Broken(flaw) => {
                let problem = Problem {
                    offset: flaw.offset,
                    ply: self.line.len(),
                    mv: String::new(),
                    reason: flaw.reason.to_owned(),
                };
                (None, Some(problem))
            }
            Token::Move { .. } | Token::Unreadable { .. } => (None, None),
        };
        Ending {
            marker,
            plies: self.line.len(),
            problem,
            last_key: 0,
        }
    }

    fn reject(&mut self, problem: Problem, job: &Job) {
        let game = self.outcome.games.read;
        self.outcome.games.rejected += 1;
        if self.outcome.rejected.len() < super::Report::DESCRIBED {
            self.outcome.rejected.push(Rejection {
                file: self.options.inputs[job.input].path().to_owned(),
                game,
                offset: job.batch.offset + problem.offset as u64,
                ply: problem.ply,
                mv: problem.mv,
                reason: problem.reason,
            });
        }
    }

    /// Notes which positions the game reached.
    fn index(&mut self, result: GameResult, last_key: u64) {
        // A batch has fewer bytes than an id has values.
        let id = self.outcome.games.read as u32;
        let with_moves = self.options.index_stats;
        let postings = self.line.iter().map(|(key, mv)| {
            let mv = if with_moves { *mv } else { BookMove::NONE };
            posting::pack(*key, id, mv, result)
        });
        self.outcome.postings.extend(postings);
        let last = posting::pack(last_key, id, BookMove::NONE, result);
        self.outcome.postings.push(last);
    }

    /// Counts the line that has been played.
    fn count(&mut self, result: GameResult, first_turn: Color) {
        self.outcome.plies += self.line.len() as u64;
        if !self.options.counts_moves() {
            return;
        }
        let stats = [first_turn, !first_turn].map(|turn| (turn, Stats::of_game(result, turn)));
        let records = self.line.iter().enumerate().map(|(ply, (key, mv))| {
            let (turn, stats) = stats[ply % 2];
            record::pack(*key, *mv, turn, stats)
        });
        self.outcome.records.extend(records);
    }
}

/// Whether a `Variant` tag means standard chess.
fn is_standard(variant: Option<&[u8]>) -> bool {
    let Some(variant) = variant else {
        return true;
    };
    let name = String::from_utf8_lossy(variant).trim().to_ascii_lowercase();
    matches!(
        name.as_str(),
        "" | "?"
            | "-"
            | "standard"
            | "normal"
            | "chess"
            | "from position"
            | "regular"
            | "classical"
    )
}

//! Replaying the games of a batch.

use std::collections::HashMap;

use shakmaty::{Chess, Color, Move};

use super::{
    MakeBook,
    duplicates::{Rest, fingerprint},
    explored_game::ExploredGame,
    job::{BATCH_SIZE, Job},
    options::Unfinished,
    outcome::{Candidate, Outcome},
    report::{FilteredVariant, Rejection, Report},
    variations::Variations,
};
use crate::{
    pgn::{Condition, GameEnd, GameReader, GameResult, Tags, Token},
    position::{
        BookMove, Keyed, LineError, PieceLetters, Rules, Variant, VariantChoice, game_start,
        has_inner_castling_rook, read_word, write_epd,
    },
    tally::{CountRecord, KeyedIdentity, Stats},
};

/// Replays the games of one batch.
pub(super) struct Replayer<'a> {
    options: &'a MakeBook,
    /// The half-moves of the current game.
    line: Vec<Ply>,
    /// How many of them are not for books.
    not_for_books: u64,
    /// The identities of the positions before them, if they are needed.
    identities: Vec<u64>,
    /// The same with the moves, for the explorer.
    explored: Vec<(u64, BookMove)>,
    /// Its variations, if they count.
    variations: Variations,
    /// What stands behind the half-moves, if duplicates are dropped.
    rest: Vec<u8>,
    /// The places of positions in [`Outcome::starts`], by their identities.
    started: HashMap<u64, usize>,
    outcome: Outcome,
}

/// A half-move.
#[derive(Copy, Clone)]
struct Ply {
    /// The key of the position before it.
    key: u64,
    mv: BookMove,
    /// Whether the position before it is for books.
    in_book: bool,
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
    /// Whether a null move ended what counts.
    null_move: bool,
    problem: Option<Problem>,
}

impl<'a> Replayer<'a> {
    pub(super) fn new(options: &'a MakeBook) -> Replayer<'a> {
        Replayer {
            options,
            line: Vec::new(),
            not_for_books: 0,
            identities: Vec::new(),
            explored: Vec::new(),
            variations: Variations::default(),
            rest: Vec::new(),
            started: HashMap::new(),
            outcome: Outcome::default(),
        }
    }

    pub(super) fn replay(mut self, job: &Job) -> Outcome {
        let mut games = GameReader::new(&job.batch.text).with_variations(self.options.variations);
        // A game has some sixty half-moves, in about eight bytes each with its tags. A batch that is larger
        // than most holds one odd game.
        let plies = job.batch.text.len().min(2 * BATCH_SIZE) / 7;
        if self.options.counts_keys() {
            self.outcome.records.reserve(plies);
        }
        if self.options.counts_identities() {
            self.outcome.identity_records.reserve(plies);
        }
        if self.options.leveldb.is_some() {
            self.outcome.index.reserve(plies);
        }
        if self.options.explores() {
            self.outcome.index.reserve_played(plies);
        }
        while games.next_game() {
            self.game(&mut games, job);
            self.outcome.totals.games.read += 1;
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
        self.not_for_books = 0;
        self.identities.clear();
        self.variations.clear();
        self.rest.clear();
        if self.options.leveldb.is_some() {
            self.index_tags(games, job);
        }
        match self.admitted(games.tags(), tag_result) {
            Ok(variant) => self.play_from_start(games, job, variant, tag_result),
            Err(condition) => {
                games.skip_moves();
                self.filter(condition);
            }
        }
    }

    /// The variant of a game that counts as far as its tags tell, or the condition that it does not meet.
    fn admitted(
        &mut self,
        tags: &Tags<'_>,
        tag_result: Option<GameResult>,
    ) -> Result<Variant, Condition> {
        let variant = self.variant(tags).ok_or(Condition::Variant)?;
        match self.options.selection.unmet(tags) {
            Some(condition) => Err(condition),
            None if tag_result.is_some_and(|result| !self.admits_result(result)) => {
                Err(Condition::Result)
            }
            None => Ok(variant),
        }
    }

    /// Counts the current game as left out.
    fn filter(&mut self, condition: Condition) {
        self.outcome.totals.games.filtered += 1;
        *self
            .outcome
            .totals
            .filtered_by
            .entry(condition)
            .or_default() += 1;
    }

    /// Adds the index record of the current game.
    fn index_tags(&mut self, games: &GameReader<'_>, job: &Job) {
        let offset = games
            .first_tag_offset()
            .map(|bracket| job.batch.offset + bracket as u64 + 1);
        self.outcome.index.add_game(games.tags(), offset);
        if self.options.explores() {
            self.outcome.index.add_facts(games.tags());
        }
    }

    /// Plays the current game from where it starts.
    fn play_from_start(
        &mut self,
        games: &mut GameReader<'_>,
        job: &Job,
        variant: Variant,
        tag_result: Option<GameResult>,
    ) {
        let fen = games
            .tags()
            .get(b"FEN")
            .filter(|fen| !fen.trim_ascii().is_empty())
            .map(|fen| String::from_utf8_lossy(fen).into_owned());
        // Standard chess is played by its own type, which is the fastest.
        match (fen, variant) {
            (None, Variant::Standard) => {
                let start = Keyed::new(Chess::default());
                self.play(games, job, variant, start, tag_result);
            }
            (Some(fen), Variant::Standard) => {
                self.play_from(games, job, variant, game_start(&fen), tag_result);
            }
            (None, _) => {
                let start = Ok((variant.start(), false));
                self.play_from(games, job, variant, start, tag_result);
            }
            (Some(fen), _) => {
                self.play_from(games, job, variant, variant.game_start(&fen), tag_result);
            }
        }
    }

    /// Plays the current game from a position other than the usual one, if that could be read, with or
    /// without castling rights that had to be dropped.
    fn play_from<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        job: &Job,
        variant: Variant,
        start: Result<(P, bool), LineError>,
        tag_result: Option<GameResult>,
    ) {
        match start {
            Ok((start, castling_dropped)) => {
                self.outcome.totals.castling_dropped += u64::from(castling_dropped);
                let start = Keyed::new(start);
                self.note_start(&start);
                self.play(games, job, variant, start, tag_result);
            }
            Err(err) => self.reject_start(games, job, &err),
        }
    }

    /// The variant of a game that is to be counted.
    fn variant(&mut self, tags: &Tags<'_>) -> Option<Variant> {
        let tag = tags.get(b"Variant");
        let filtered = match Variant::from_tag(tag) {
            Ok(variant) if self.options.admits_variant(variant) => return Some(variant),
            Ok(variant) if self.options.variant == VariantChoice::Auto => {
                FilteredVariant::Unnumbered(variant)
            }
            Ok(variant) => FilteredVariant::Other(variant),
            Err(_) => {
                let name = String::from_utf8_lossy(tag.unwrap_or_default());
                FilteredVariant::Unknown(name.trim().chars().take(40).collect())
            }
        };
        *self.outcome.filtered_variants.entry(filtered).or_default() += 1;
        None
    }

    /// Remembers where a game started that may count.
    fn note_start<P: Rules>(&mut self, start: &Keyed<P>) {
        if !self.options.notes_starts() {
            return;
        }
        let starts = &mut self.outcome.starts;
        let place = *self.started.entry(start.identity()).or_insert_with(|| {
            let mut epd = Vec::new();
            write_epd(start.position(), &mut epd);
            starts.push((epd, 0));
            starts.len() - 1
        });
        starts[place].1 += 1;
    }

    fn reject_start(&mut self, games: &mut GameReader<'_>, job: &Job, err: &LineError) {
        let problem = Problem {
            offset: games.game_offset(),
            ply: 0,
            mv: String::new(),
            reason: err.to_string(),
        };
        games.skip_moves();
        self.reject(problem, job);
    }

    /// Plays a game from its start and counts it.
    fn play<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        job: &Job,
        variant: Variant,
        mut pos: Keyed<P>,
        tag_result: Option<GameResult>,
    ) {
        let first_turn = pos.position().turn();
        let start = pos.identity();
        let ending = self.moves(&mut pos, games);
        self.outcome.recognised |= !self.line.is_empty();
        let result = tag_result.or(ending.marker).unwrap_or_default();
        let unmet = if !self.admits_result(result) {
            Some(Condition::Result)
        } else if ending.plies < self.options.selection.min_plies {
            Some(Condition::Length)
        } else {
            None
        };
        let is_whole = ending.problem.is_none();
        let plies = ending.plies;
        match (ending.problem, unmet) {
            (Some(problem), _) => {
                self.reject(problem, job);
                if unmet.is_some() || !self.options.keep_prefix {
                    return;
                }
            }
            (None, Some(condition)) => {
                self.filter(condition);
                return;
            }
            (None, None) => {}
        }
        // A batch has fewer bytes than an id has values.
        let id = self.outcome.totals.games.read as u32;
        let candidate = self.begin_candidate(games.tags(), start, id);
        let totals = &mut self.outcome.totals;
        totals.games.counted += u64::from(is_whole);
        if self.options.distinguishes_variants() {
            *totals.variants.entry(variant).or_default() += 1;
        }
        totals.null_moves += u64::from(ending.null_move);
        self.count(result, first_turn);
        self.count_variations();
        if self.options.leveldb.is_some() {
            self.index_moves(id, result, pos.key());
        }
        if self.options.explores() {
            self.explore(id, variant, result, plies, first_turn, pos.identity());
        }
        if let Some(candidate) = candidate {
            self.end_candidate(candidate);
        }
    }

    /// Sets the totals so far aside, so that what the present game adds can be told, if duplicates are dropped.
    fn begin_candidate(&mut self, tags: &Tags<'_>, start: u64, id: u32) -> Option<Candidate> {
        self.options.drop_duplicates.then(|| {
            let moves = self.line.iter().map(|ply| ply.mv);
            Candidate {
                fingerprint: fingerprint(tags, start, moves, &self.rest),
                id,
                totals: std::mem::take(&mut self.outcome.totals),
                records: self.outcome.records.len(),
                identity_records: self.outcome.identity_records.len(),
            }
        })
    }

    /// Takes what the present game added for the candidate's own.
    fn end_candidate(&mut self, mut candidate: Candidate) {
        let Outcome {
            totals,
            records,
            identity_records,
            candidates,
            ..
        } = &mut self.outcome;
        std::mem::swap(totals, &mut candidate.totals);
        candidate.records = records.len() - candidate.records;
        candidate.identity_records = identity_records.len() - candidate.identity_records;
        candidates.push(candidate);
    }

    fn admits_result(&self, result: GameResult) -> bool {
        let unfinished =
            result == GameResult::Unknown && self.options.unfinished == Unfinished::Skip;
        !unfinished && self.options.selection.admits_result(result)
    }

    /// Plays the moves that count into `self.line`.
    // One long loop: it runs once for each half-move, and its arms share what it keeps in registers.
    fn moves<P: Rules>(&mut self, pos: &mut Keyed<P>, games: &mut GameReader<'_>) -> Ending {
        let in_english = self.options.piece_letters == PieceLetters::English;
        let with_variations = self.options.variations;
        // The position before the last move, from where a variation branches.
        let mut before = None;
        let end = loop {
            let is_full = self.line.len() == self.options.max_ply;
            // Variations on the last move that counts stand behind it.
            if is_full && !with_variations {
                return self.rest_of_game(games, pos, None);
            }
            if !is_full
                && in_english
                && let Some(word) = games.peek_word()
                && let Some(mv) = read_word(pos.position(), word)
            {
                games.take_word(word);
                self.play_move(pos, mv, &mut before);
                continue;
            }
            let (text, offset) = match games.next_token() {
                Token::Move { text, .. } | Token::Unreadable { text, .. } if is_full => {
                    return self.rest_of_game(games, pos, Some(text));
                }
                Token::Move { text, offset } | Token::Unreadable { text, offset } => (text, offset),
                Token::NullMove { .. } => {
                    let end = self.skip_unplayable::<P>(games, b"");
                    let mut ending = self.end_of_game(end);
                    ending.null_move = true;
                    return ending;
                }
                Token::BeginVariation => {
                    let plies = self.line.len();
                    self.variations
                        .play(games, self.options, before.as_ref(), plies);
                    continue;
                }
                Token::EndVariation => unreachable!("a variation is played to its end"),
                Token::End(end) => break end,
            };
            match self.options.piece_letters.read_move(pos.position(), text) {
                Ok(mv) => self.play_move(pos, mv, &mut before),
                Err(err) => {
                    let problem = Problem {
                        offset,
                        ply: self.line.len(),
                        mv: String::from_utf8_lossy(text).chars().take(40).collect(),
                        reason: err.to_string(),
                    };
                    let end = self.skip_unplayable::<P>(games, text);
                    let mut ending = self.end_of_game(end);
                    ending.problem = Some(problem);
                    return ending;
                }
            }
        };
        self.end_of_game(end)
    }

    /// Plays a move and notes it. Keeps the position `before` it where variations may branch from there.
    #[inline(always)]
    fn play_move<P: Rules>(&mut self, pos: &mut Keyed<P>, mv: Move, before: &mut Option<Keyed<P>>) {
        let in_book = !has_inner_castling_rook(pos.position());
        if !in_book {
            self.not_for_books += 1;
        }
        self.line.push(Ply {
            key: pos.key(),
            mv: BookMove::from(mv),
            in_book,
        });
        if self.options.counts_identities() || self.options.explores() {
            self.identities.push(pos.identity());
        }
        if self.options.variations {
            *before = Some(pos.clone());
        }
        pos.play(mv);
    }

    /// Passes over the moves that do not count, of which one may have been read; counts them if the selection
    /// asks for long games or the explorer is told how long they are.
    fn rest_of_game<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        pos: &Keyed<P>,
        read: Option<&[u8]>,
    ) -> Ending {
        let (rest, end) = if self.options.drop_duplicates {
            let mut rest = Rest::new(Some(pos.clone()), self.options.piece_letters);
            read.into_iter().for_each(|text| rest.take(text));
            let end = games.rest_of_moves(|text| rest.take(text));
            let plies = rest.plies;
            self.rest = rest.into_bytes();
            (plies, end)
        } else if self.options.selection.min_plies <= self.line.len() && !self.options.explores() {
            (0, games.skip_moves())
        } else {
            let (plies, end) = games.count_moves();
            (usize::from(read.is_some()) + plies, end)
        };
        let mut ending = self.end_of_game(end);
        ending.plies += rest;
        ending
    }

    /// Passes over the moves behind one that cannot be played.
    fn skip_unplayable<P: Rules>(&mut self, games: &mut GameReader<'_>, text: &[u8]) -> GameEnd {
        if !self.options.drop_duplicates {
            return games.skip_moves();
        }
        let mut rest = Rest::<P>::new(None, self.options.piece_letters);
        rest.take(text);
        let end = games.rest_of_moves(|text| rest.take(text));
        self.rest = rest.into_bytes();
        end
    }

    fn end_of_game(&self, end: GameEnd) -> Ending {
        let (marker, problem) = match end {
            GameEnd::Complete(marker) => (marker, None),
            GameEnd::Broken(flaw) => {
                let problem = Problem {
                    offset: flaw.offset,
                    ply: self.line.len(),
                    mv: String::new(),
                    reason: flaw.reason.to_owned(),
                };
                (None, Some(problem))
            }
        };
        Ending {
            marker,
            plies: self.line.len(),
            null_move: false,
            problem,
        }
    }

    fn reject(&mut self, problem: Problem, job: &Job) {
        let game = self.outcome.totals.games.read;
        self.outcome.totals.games.rejected += 1;
        if self.outcome.rejected.len() < Report::DESCRIBED {
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
    fn index_moves(&mut self, id: u32, result: GameResult, last_key: u64) {
        let with_moves = self.options.index_stats;
        let moves = self.line.iter().map(|ply| {
            let mv = if with_moves { ply.mv } else { BookMove::NONE };
            (ply.key, mv)
        });
        let index = &mut self.outcome.index;
        index.add_postings(id, result.winner(), moves, last_key);
    }

    /// Notes what the game played where, for the explorer.
    fn explore(
        &mut self,
        id: u32,
        variant: Variant,
        result: GameResult,
        plies: usize,
        first_turn: Color,
        last: u64,
    ) {
        self.explored.clear();
        let moves = self.line.iter().map(|ply| ply.mv);
        self.explored
            .extend(self.identities.iter().copied().zip(moves));
        self.outcome.index.add_played(&ExploredGame {
            id,
            variant,
            result,
            plies,
            first_turn,
            moves: &self.explored,
            last,
        });
    }

    /// Counts the variations that have been played.
    fn count_variations(&mut self) {
        let variations = &self.variations;
        let totals = &mut self.outcome.totals;
        totals.plies += variations.plies();
        totals.null_moves += variations.null_moves;
        totals.unplayable_variations += variations.unplayable;
        if self.options.tells_left_out() {
            totals.left_out += variations.not_for_books();
        }
        if self.options.counts_keys() {
            self.outcome.records.extend(variations.records());
        }
        if self.options.counts_identities() {
            let records = variations.identity_records();
            self.outcome.identity_records.extend(records);
        }
        if self.options.pairs_keys() {
            self.outcome.pairs.extend(variations.pairs());
        }
    }

    /// Counts the line that has been played.
    fn count(&mut self, result: GameResult, first_turn: Color) {
        self.outcome.totals.plies += self.line.len() as u64;
        if self.options.tells_left_out() {
            self.outcome.totals.left_out += self.not_for_books;
        }
        let stats =
            [first_turn, !first_turn].map(|turn| (turn, Stats::of_game(result.winner(), turn)));
        let line = self.line.iter().enumerate();
        if self.options.counts_keys() {
            let records = line.clone().map(|(at, ply)| {
                let (turn, stats) = stats[at % 2];
                CountRecord::new(ply.key, ply.mv, turn, stats)
            });
            if self.not_for_books == 0 {
                self.outcome.records.extend(records);
            } else {
                let for_books = records.zip(&self.line).filter(|(_, ply)| ply.in_book);
                self.outcome
                    .records
                    .extend(for_books.map(|(record, _)| record));
            }
        }
        if self.options.pairs_keys() {
            let plies = self.line.iter().zip(&self.identities);
            let pairs = plies.map(|(ply, identity)| {
                let key = if ply.in_book { ply.key } else { 0 };
                KeyedIdentity::new(key, *identity)
            });
            self.outcome.pairs.extend(pairs);
        }
        if self.options.counts_identities() {
            let records = line.zip(&self.identities).map(|((at, ply), identity)| {
                let (turn, stats) = stats[at % 2];
                CountRecord::new(*identity, ply.mv, turn, stats)
            });
            self.outcome.identity_records.extend(records);
        }
    }
}

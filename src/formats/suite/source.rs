//! Makes opening suites from the moves of a database or a book.
//!
//! Suites of lines are found by a depth-first search. If only the lines with the most games are wanted, the search is
//! repeated for smaller and smaller numbers of games ([`GamesRange`]), so that rare lines are never examined.
//!
//! Suites of positions are found by a breadth-first search. A level contains the paths to all positions after the same
//! number of half-moves. It is sorted, so that all paths to the same position are adjacent and the moves of the
//! position are looked up only once.
//!
//! The walk of `formats::walk` cannot replace these searches, because that walk continues each position only once, at
//! its smallest depth. A suite contains every line, and every position that a line reaches after exactly the required
//! number of half-moves, with the weights of all moves that lead to it.

use std::path::Path;

use shakmaty::{Position, variant::VariantPosition};

use super::{
    Suite, SuiteSummary,
    format::{SuiteFormat, epd, note_of_times, write_ranked},
    half_moves,
    ranking::{Candidate, Ranking},
};
use crate::{
    chess::position::{Keyed, changes_material, push_move, restored, stored},
    error::{Advice, Diagnosis, Error, Result},
    formats::walk::{MoveSource, TreeMove},
    games::results::Results,
    progress::{FractionalProgress, Meter},
    storage::output::BufferedFile,
    storage::sort::{Memory, SpillingSet, TextSorter},
};

/// A function that returns White's wins, draws and losses in the games that reached a position. The function returns
/// `None` if the book or database from which the suite is made has no results for the position.
pub(crate) type ResultsOf<'a> = &'a dyn Fn(&Keyed<VariantPosition>) -> Result<Option<Results>>;

/// Advice for error messages about a suite: how to get more or fewer moves from the book or database from which the
/// suite is made.
#[derive(Debug)]
pub(crate) struct SourceAdvice {
    /// How the user can get more moves, or `None` if the suite already contains all moves.
    pub more: Option<Advice>,
    /// How the user can get fewer moves.
    pub fewer: Advice,
}

/// A suite that is made from the moves of a source, such as a book or a database. Its lines begin in the positions
/// `starts`, which must not be empty.
pub(crate) struct SourceSuite<'a, S> {
    pub source: &'a S,
    /// The path of the book or database, for the error message about an empty suite.
    pub path: &'a Path,
    pub results: ResultsOf<'a>,
    pub starts: &'a [VariantPosition],
    pub suite: &'a Suite,
    pub advice: SourceAdvice,
    /// The memory budget. Lines and positions that exceed it are spilled to temporary files.
    pub memory: Memory,
    pub meter: &'a Meter,
}

impl<S: MoveSource> SourceSuite<'_, S> {
    /// Writes the suite to `file` in the format `format`, and commits the file: renames it to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot be read, if the file cannot be written, or if the suite would be empty or
    /// too large.
    pub(crate) fn write(&self, file: BufferedFile, format: SuiteFormat) -> Result<SuiteSummary> {
        let path = file.target().to_owned();
        let (mut ranking, is_cut) = match format {
            SuiteFormat::Pgn => self.rank_lines(&path)?,
            SuiteFormat::Epd => (self.rank_positions(&path)?, false),
        };
        let start_of = |start: &[u8]| {
            let number = start.try_into().map_or(0, u64::from_le_bytes);
            self.starts[number as usize].clone()
        };
        let (file, entries) = write_ranked(file, format, self.suite, &mut ranking, start_of)?;
        if entries == 0 {
            return Err(Error::empty(
                self.path,
                self.suite.why_empty(
                    &self.advice,
                    ranking.longest,
                    ranking.unevaluated,
                    ranking.over,
                ),
            ));
        }
        file.commit()?;
        Ok(SuiteSummary {
            entries,
            is_cut,
            unevaluated: self.suite.evals.as_ref().map(|_| ranking.unevaluated),
            repeated: ranking.repeated,
        })
    }
}

/// The maximum number of lines that a search extends before it gives up. To extend a line is to look up the moves that
/// follow it. Without this limit, a search might never finish, because transpositions multiply the number of lines.
const MAX_EXTENDED_LINES: u64 = if cfg!(test) { 8_000 } else { 8_000_000 };

/// A line of moves in a search for the lines of a suite. The search extends the line until it has the length that the
/// suite requires.
struct SuiteLine {
    pos: Keyed<VariantPosition>,
    /// The moves in SAN with move numbers.
    text: String,
    /// The identities (hashes) of the positions, from the first to the last.
    identities: Vec<u64>,
    opening: String,
    /// Whether the last move is neither a capture nor a promotion. It is `true` if the line has no moves.
    has_quiet_move: bool,
    /// The number of games of the rarest move in the line, which is an upper bound on the number of games in which the
    /// whole line was played.
    games: u64,
    /// The estimated share of all lines that begin with this one, from 0 to 1.
    portion: f64,
}

impl SuiteLine {
    /// Returns a copy of this line, extended by the move `mv`. `portion` is the estimated share of the whole search
    /// that the extended line and its continuations take, from 0 to 1. This share is used to calculate the progress.
    /// The name of the opening is updated only if `suite` needs it.
    fn then(&self, mv: &TreeMove, portion: f64, suite: &Suite) -> SuiteLine {
        let pos = self.pos.position();
        let mut text = self.text.clone();
        push_move(&mut text, pos, mv.mv);
        let mut after = self.pos.clone();
        after.play(mv.mv);
        SuiteLine {
            text,
            identities: [&self.identities[..], &[after.identity()]].concat(),
            opening: suite.opening(after.position(), &self.opening),
            pos: after,
            has_quiet_move: !changes_material(mv.mv),
            games: mv.games().min(self.games),
            portion,
        }
    }
}

impl<S: MoveSource> SourceSuite<'_, S> {
    /// Searches for the lines of the suite and ranks them. Returns the ranking, and `true` if the search stopped early
    /// because it had extended [`MAX_EXTENDED_LINES`] lines. `path` is the path of the suite, for error messages.
    pub(super) fn rank_lines(&self, path: &Path) -> Result<(Ranking<'_>, bool)> {
        let mut lines = LineSearch {
            of: self,
            ranking: Ranking::new(self.suite, &self.memory, path),
            ends: (self.suite.unique).then(|| SpillingSet::new(self.memory.share(4))),
            found: 0,
            looked_at: 0,
            band: GamesRange::ALL,
            next: None,
            done: FractionalProgress::new(self.meter),
        };
        let is_cut = !lines.find()?;
        lines.done.finish();
        if is_cut && (!self.suite.takes_the_commonest() || lines.found == 0) {
            return Err(self.search_stopped(path, lines.found, lines.ranking.longest));
        }
        Ok((lines.ranking, is_cut))
    }

    /// Returns the error for a search that stopped because it had extended [`MAX_EXTENDED_LINES`] lines. `found` is the
    /// number of lines of the required length that were found, and `longest` is the length in half-moves of the longest
    /// line that was examined.
    fn search_stopped(&self, path: &Path, found: u64, longest: usize) -> Error {
        let (plies, least) = (half_moves(&self.suite.plies), self.suite.plies.start());
        let reason = match found {
            0 => format!(
                "of the first {MAX_EXTENDED_LINES} lines, none has {least} half-moves without a repeated position, and \
                 the longest has {longest}"
            ),
            _ => format!(
                "the source has more than {MAX_EXTENDED_LINES} lines of fewer than {} half-moves, so the search \
                 stopped before it found all lines of {plies}",
                self.suite.plies.end()
            ),
        };
        let mut problem = Diagnosis::new(reason)
            .advise(Advice::smaller("plies"))
            .advise(self.advice.fewer.clone());
        if !self.suite.takes_the_commonest() {
            let limit = "keep only the most played lines with {} alone";
            problem = problem.advise(Advice::option(limit, "limit"));
        }
        Error::too_large(path, problem)
    }
}

/// A range for the number of games of a line. The search for the most played lines makes several passes, and each pass
/// finds only the lines whose number of games is in one range. The passes begin with the highest range and end when
/// enough lines have been found, so rare lines need not be examined.
#[derive(Copy, Clone, Debug)]
struct GamesRange {
    /// The minimum, inclusive.
    least: u64,
    /// The upper bound, exclusive, or `None` for no bound. Lines with at least this many games were found in earlier
    /// passes.
    below: Option<u64>,
    /// Whether all lines in the range have the same number of games.
    is_one_number: bool,
}

impl GamesRange {
    /// The range that contains every number of games.
    const ALL: GamesRange = GamesRange {
        least: 0,
        below: None,
        is_one_number: false,
    };

    /// An empty range for the first pass of a search, which finds no lines, but only determines the highest number of
    /// games of any line.
    const NONE: GamesRange = GamesRange {
        least: u64::MAX,
        ..GamesRange::ALL
    };

    /// Returns the range for the next pass, whose upper end is the lower end of this range. `next` is the highest
    /// number of games of any line below this range. If this range is the empty range [`GamesRange::NONE`], the minimum
    /// of the next range is `next`. Otherwise, its minimum is `next` or an eighth below the minimum of this range,
    /// whichever is lower, which keeps the number of passes small.
    fn after(self, next: u64) -> GamesRange {
        let least = match self.least {
            u64::MAX => next,
            least => next.min(least - least / 8),
        };
        GamesRange {
            least,
            below: Some(self.least),
            is_one_number: least == next,
        }
    }

    fn contains(self, games: u64) -> bool {
        games >= self.least && self.below.is_none_or(|below| games < below)
    }
}

/// The state of a depth-first search for the lines of a suite.
struct LineSearch<'a, S> {
    of: &'a SourceSuite<'a, S>,
    ranking: Ranking<'a>,
    /// The last positions of the lines found so far, if each position may occur only once.
    ends: Option<SpillingSet>,
    /// The number of lines found so far or, if each position may occur only once, of their different last positions.
    found: u64,
    looked_at: u64,
    band: GamesRange,
    /// The highest number of games of a line below the current range that this pass has seen, or `None` if it has
    /// seen no such line.
    next: Option<u64>,
    done: FractionalProgress<'a>,
}

impl<S: MoveSource> LineSearch<'_, S> {
    /// Searches for the lines of the suite, and adds them to the ranking. Returns `false` if the search stopped early
    /// because it had extended [`MAX_EXTENDED_LINES`] lines, otherwise `true`.
    fn find(&mut self) -> Result<bool> {
        let suite = self.of.suite;
        let limit = match suite.limit {
            Some(limit) if suite.takes_the_commonest() => limit as u64,
            _ => return self.find_in_band(u64::MAX),
        };
        self.band = GamesRange::NONE;
        loop {
            if !self.find_in_band(limit - self.found)? {
                return Ok(false);
            }
            match self.next.take() {
                Some(next) if self.found < limit => self.band = self.band.after(next),
                _ => return Ok(true),
            }
        }
    }

    /// Makes one pass of the search, from all starting positions. Finds the lines whose number of games lies in `band`,
    /// the range of this pass. `wanted` is the number of lines that the suite still needs. The search from a starting
    /// position may end early when it has found `wanted` lines (see [`find_from`](Self::find_from)). Returns `false` if
    /// the pass stopped early because the search had extended [`MAX_EXTENDED_LINES`] lines.
    fn find_in_band(&mut self, wanted: u64) -> Result<bool> {
        let starts = self.of.starts;
        let portion = 1.0 / starts.len() as f64;
        for (number, start) in (0u64..).zip(starts) {
            if !self.find_from(&number.to_le_bytes(), start, portion, wanted)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes one pass of the search from one starting position, `start`. If the range of the pass contains only one
    /// number of games, the pass stops when `wanted` lines have been found. Further lines would rank lower, because
    /// lines with equal numbers of games are ranked by their text, and the search finds them in this order.
    /// `start_bytes` are the bytes that identify `start` in the ranking. `portion` is the share of this starting
    /// position in the displayed progress. Returns `false` if the pass stopped early because the search had extended
    /// [`MAX_EXTENDED_LINES`] lines.
    fn find_from(
        &mut self,
        start_bytes: &[u8],
        start: &VariantPosition,
        portion: f64,
        wanted: u64,
    ) -> Result<bool> {
        let plies = &self.of.suite.plies;
        let found_before = self.found;
        let start = Keyed::new(start.clone());
        let mut stack = vec![SuiteLine {
            identities: vec![start.identity()],
            opening: self.of.suite.opening(start.position(), ""),
            pos: start,
            text: String::new(),
            has_quiet_move: true,
            games: u64::MAX,
            portion,
        }];
        while let Some(line) = stack.pop() {
            let length = line.identities.len() - 1;
            self.ranking.longest = self.ranking.longest.max(length);
            if plies.contains(&length) {
                if self.band.contains(line.games) {
                    self.take(start_bytes, &line)?;
                }
                // Lines with the same number of games are ranked by their texts, which is also the order in which the
                // search finds them.
                if self.band.is_one_number && self.found - found_before >= wanted {
                    break;
                }
            }
            if length >= *plies.end() {
                self.done.add(line.portion);
                continue;
            }
            if self.looked_at == MAX_EXTENDED_LINES {
                return Ok(false);
            }
            self.looked_at += 1;
            self.push_continuations(&line, &mut stack)?;
        }
        Ok(true)
    }

    /// Extends `line` by each move that the source contains for the last position of the line. Pushes the extended
    /// lines onto `stack`, so that the line whose text comes first is popped first. Skips moves that repeat a position,
    /// and extended lines with too few games for the current pass.
    fn push_continuations(&mut self, line: &SuiteLine, stack: &mut Vec<SuiteLine>) -> Result<()> {
        let moves = self.of.source.moves(&line.pos)?;
        let portion = line.portion / moves.len() as f64;
        let first = stack.len();
        for mv in &moves {
            let least = mv.games().min(line.games);
            if least < self.band.least {
                self.next = self.next.max(Some(least));
                continue;
            }
            let next = line.then(mv, portion, self.of.suite);
            if !line.identities.contains(&next.pos.identity()) {
                stack.push(next);
            }
        }
        if stack.len() == first {
            self.done.add(line.portion);
        }
        stack[first..].sort_by(|a, b| b.text.cmp(&a.text));
        Ok(())
    }

    /// Adds a line that has a required length to the ranking, if its last position passes the filters of the suite.
    /// `start_bytes` are the bytes that identify the starting position of the line in the ranking.
    fn take(&mut self, start_bytes: &[u8], line: &SuiteLine) -> Result<()> {
        let results = (self.of.results)(&line.pos)?;
        let is_kept = self.of.suite.keeps(results);
        if !is_kept
            || self
                .ranking
                .evaluation_operations(line.pos.position(), line.has_quiet_move)?
                .is_none()
        {
            return Ok(());
        }
        let identity = line.pos.identity();
        let is_new = match &mut self.ends {
            Some(ends) => ends.insert_key(identity)?,
            None => true,
        };
        self.found += u64::from(is_new);
        self.ranking.add(&Candidate {
            text: &line.text,
            start: start_bytes,
            identities: &line.identities,
            games: line.games,
            opening: &line.opening,
            note: &results.map(note_of_times).unwrap_or_default(),
        })
    }
}

/// The maximum number of paths that are stored for one position, which limits the memory and the time of the search. If
/// more paths lead to the position, only their weights are added to the weight of the position.
const MAX_PATHS: usize = 64;

impl<S: MoveSource> SourceSuite<'_, S> {
    /// Searches for the positions in which the lines of the suite end, and ranks them. The returned ranking is empty if
    /// no line has the length that the suite requires. `path` is the path of the suite, for error messages.
    pub(super) fn rank_positions(&self, path: &Path) -> Result<Ranking<'_>> {
        let (suite, starts) = (self.suite, self.starts);
        let mut done = FractionalProgress::new(self.meter);
        let mut level = Level::new(self.memory.share(4));
        for pos in starts {
            level.add(&LinePath {
                pos: Keyed::new(pos.clone()),
                opening: suite.opening(pos, ""),
                before: Vec::new(),
                has_quiet_move: true,
                weight: 0,
                portion: 1.0 / starts.len() as f64,
            })?;
        }
        // All starts follow the rules of one variant.
        let rules = &starts[0];
        let mut ranking = Ranking::new(suite, &self.memory.share(4), path);
        let (shortest, longest) = (*suite.plies.start(), *suite.plies.end());
        // A position that is reached after several numbers of half-moves is one entry.
        let mut ranked = (shortest < longest).then(|| SpillingSet::new(self.memory.share(4)));
        for ply in 0..=longest {
            let mut next = Level::new(self.memory.share(4));
            level.for_each(rules, |reached| {
                if ply >= shortest {
                    self.rank_position(&reached, ply, &mut ranked, &mut ranking)?;
                }
                if ply == longest {
                    done.add(reached.portion);
                    return Ok(());
                }
                let moves = self.source.moves(reached.pos())?;
                if moves.is_empty() {
                    done.add(reached.portion);
                }
                for mv in &moves {
                    for path in reached.after(mv, moves.len(), suite) {
                        ranking.longest = ply + 1;
                        next.add(&path)?;
                    }
                }
                Ok(())
            })?;
            level = next;
            if ranking.longest <= ply {
                break;
            }
        }
        Ok(ranking)
    }

    /// Adds a position to `ranking` if it passes the filters of the suite. `ply` is the number of half-moves to the
    /// position. `ranked` contains the identities of the positions that were passed to this function before, or is
    /// `None` if each position is passed only once.
    fn rank_position(
        &self,
        reached: &PositionPaths,
        ply: usize,
        ranked: &mut Option<SpillingSet>,
        ranking: &mut Ranking<'_>,
    ) -> Result<()> {
        let suite = self.suite;
        let pos = reached.pos();
        let results = (self.results)(pos)?;
        let is_kept = ply == 0 || suite.keeps(results);
        if !is_kept {
            return Ok(());
        }
        let checked = ranking.evaluation_operations(pos.position(), reached.has_quiet_move)?;
        let Some(operations) = checked else {
            return Ok(());
        };
        if let Some(ranked) = ranked
            && !ranked.insert_key(pos.identity())?
        {
            return Ok(());
        }
        ranking.add(&Candidate {
            start: &[0; 8],
            identities: &[pos.identity()],
            games: results.map_or(reached.weight, Results::games),
            opening: &reached.paths[0].opening,
            text: &(epd(pos.position(), suite.opcodes) + &operations),
            note: &results.map(note_of_times).unwrap_or_default(),
        })
    }
}

/// A path in a breadth-first search: a sequence of moves that leads to the position `pos`.
struct LinePath {
    pos: Keyed<VariantPosition>,
    opening: String,
    /// The identities (hashes) of the earlier positions on the path that a later move could repeat, sorted in
    /// ascending order.
    before: Vec<u64>,
    /// Whether the last move is neither a capture nor a promotion. It is `true` if the path has no moves.
    has_quiet_move: bool,
    /// The weight of the last move, or 0 if another path already includes this weight.
    weight: u64,
    /// The estimated share of all lines that take this path, from 0 to 1.
    portion: f64,
}

/// A position that the breadth-first search has reached, with the paths that lead to it.
struct PositionPaths {
    /// The paths, of which there is at least one. A line must not repeat a position, so different paths allow different
    /// continuations. A path is stored only if it allows a continuation that no earlier path allows.
    paths: Vec<LinePath>,
    /// Whether the last move of at least one path is neither a capture nor a promotion.
    has_quiet_move: bool,
    weight: u64,
    portion: f64,
}

impl PositionPaths {
    fn new(path: LinePath) -> PositionPaths {
        let (weight, portion) = (path.weight, path.portion);
        PositionPaths {
            has_quiet_move: path.has_quiet_move,
            paths: vec![path],
            weight,
            portion,
        }
    }

    /// Returns the position. Different paths (move orders) to the position can result in different move counters. The
    /// returned position has the counters of the path that was added first.
    fn pos(&self) -> &Keyed<VariantPosition> {
        &self.paths[0].pos
    }

    /// Adds a path that leads to this position. No continuation of the path may reach a position in its field `before`
    /// again, so paths with fewer positions in `before` allow more continuations and must be added first.
    ///
    /// A new path is not stored if a stored path allows all of its continuations. In any case, the weight of the new
    /// path, its share of the progress, and whether its last move is quiet are added to the data of this position.
    fn add(&mut self, path: LinePath) {
        self.has_quiet_move |= path.has_quiet_move;
        self.weight += path.weight;
        self.portion += path.portion;
        let is_needless = |other: &LinePath| {
            let known = &path.before;
            other
                .before
                .iter()
                .all(|id| known.binary_search(id).is_ok())
        };
        if self.paths.len() < MAX_PATHS && !self.paths.iter().any(is_needless) {
            self.paths.push(path);
        }
    }

    /// Extends each path to this position by the move `mv`, and returns the extended paths. Leaves out paths that would
    /// repeat a position. `moves` is the number of moves that the source contains in this position, among which the
    /// position's share of the progress is divided equally.
    fn after(&self, mv: &TreeMove, moves: usize, suite: &Suite) -> Vec<LinePath> {
        let mut paths: Vec<LinePath> = Vec::new();
        for path in &self.paths {
            let mut pos = path.pos.clone();
            pos.play(mv.mv);
            if path.before.binary_search(&pos.identity()).is_ok() {
                continue;
            }
            // Positions before a capture or a pawn move cannot recur. The exception is crazyhouse, where a captured
            // piece can return.
            let is_final = pos.position().halfmoves() == 0
                && !matches!(pos.position(), VariantPosition::Crazyhouse(_));
            let mut before = Vec::new();
            if !is_final {
                before.clone_from(&path.before);
                let here = path.pos.identity();
                let place = before.partition_point(|id| *id < here);
                before.insert(place, here);
            }
            let is_first = paths.is_empty();
            paths.push(LinePath {
                opening: suite.opening(pos.position(), &path.opening),
                pos,
                before,
                has_quiet_move: !changes_material(mv.mv),
                weight: if is_first { mv.games() } else { 0 },
                portion: if is_first {
                    self.portion / moves as f64
                } else {
                    0.0
                },
            });
            if is_final {
                break;
            }
        }
        paths
    }
}

/// A level of the breadth-first search: the paths to all positions after the same number of half-moves. Paths
/// that exceed the memory budget are spilled to temporary files.
struct Level {
    /// The paths, encoded as: the identity of the position, the number and the identities of the earlier positions, the
    /// move counters, the weight, the portion, whether the last move is neither a capture nor a promotion, the
    /// position, and the opening. Sorting the encoded paths groups them by position.
    texts: TextSorter,
}

/// The length in bytes of the half-move clock and the move number in an encoded [`LinePath`].
const COUNTERS_SIZE: usize = 8;
/// The length in bytes of the weight and the portion in an encoded [`LinePath`].
const WEIGHT_AND_PORTION_SIZE: usize = 16;

impl Level {
    fn new(memory: Memory) -> Level {
        Level {
            texts: TextSorter::new(memory, None),
        }
    }

    fn add(&mut self, path: &LinePath) -> Result<()> {
        let pos = path.pos.position();
        let stored = stored(pos);
        let mut text = path.pos.identity().to_be_bytes().to_vec();
        text.extend((path.before.len() as u64).to_be_bytes());
        text.extend(path.before.iter().flat_map(|id| id.to_be_bytes()));
        text.extend(pos.halfmoves().to_be_bytes());
        text.extend(pos.fullmoves().get().to_be_bytes());
        text.extend(path.weight.to_be_bytes());
        text.extend(path.portion.to_be_bytes());
        text.push(u8::from(path.has_quiet_move));
        text.extend(stored.as_bytes());
        text.push(0);
        text.extend(path.opening.as_bytes());
        self.texts.push(&text)
    }

    /// Calls `f` with each position of the level, together with the paths to it. `rules` is any position of the same
    /// variant, from which the decoder gets the variant.
    fn for_each(
        &mut self,
        rules: &VariantPosition,
        mut f: impl FnMut(PositionPaths) -> Result<()>,
    ) -> Result<()> {
        let mut open: Option<PositionPaths> = None;
        for text in self.texts.sorted() {
            let Some(path) = read(&text?, rules) else {
                continue;
            };
            match &mut open {
                Some(reached) if reached.pos().identity() == path.pos.identity() => {
                    reached.add(path)
                }
                _ => {
                    if let Some(before) = open.replace(PositionPaths::new(path)) {
                        f(before)?;
                    }
                }
            }
        }
        open.map_or(Ok(()), f)
    }
}

/// Decodes a path of a level from `text`. Returns `None` if the bytes are malformed. `rules` is any position of the
/// same variant, from which the decoder gets the variant.
fn read(text: &[u8], rules: &VariantPosition) -> Option<LinePath> {
    let (_, rest) = text.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (before, rest) = rest.split_at_checked(8 * u64::from_be_bytes(*count) as usize)?;
    let (numbers, pos) = rest
        .get(COUNTERS_SIZE..)?
        .split_first_chunk::<WEIGHT_AND_PORTION_SIZE>()?;
    let (has_quiet_move, pos) = pos.split_first()?;
    let (pos, opening) = std::str::from_utf8(pos).ok()?.split_once('\0')?;
    let pos = restored(pos, rules)?;
    let ([weight, portion], _) = numbers.as_chunks() else {
        return None;
    };
    Some(LinePath {
        pos: Keyed::new(pos),
        opening: opening.to_owned(),
        before: before
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u64::from_be_bytes)
            .collect(),
        has_quiet_move: *has_quiet_move == 1,
        weight: u64::from_be_bytes(*weight),
        portion: f64::from_be_bytes(*portion),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::position::Variant;

    /// A source that contains all legal moves in the positions after fewer half-moves than this number.
    struct EveryLegalMove(u32);

    impl MoveSource for EveryLegalMove {
        fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
            let pos = pos.position();
            let ply = 2 * (pos.fullmoves().get() - 1) + pos.turn().fold_wb(0, 1);
            let moves = pos.legal_moves().into_iter().filter(|_| ply < self.0);
            Ok(moves
                .map(|mv| TreeMove::without_evaluation(mv, 1, None))
                .collect())
        }
    }

    #[test]
    fn a_stopped_search_says_whether_it_found_lines() {
        let rank = |depth, plies, fewer| {
            let suite = Suite {
                plies: plies..=plies,
                seed: Some(1),
                ..Suite::default()
            };
            let source = SourceSuite {
                source: &EveryLegalMove(depth),
                path: Path::new("book.bin"),
                results: &|_| Ok(None),
                starts: &[Variant::Standard.start()],
                suite: &suite,
                advice: SourceAdvice { more: None, fewer },
                memory: Memory::default(),
                meter: &Meter::default(),
            };
            let ranked = source.rank_lines(Path::new("suite.pgn"));
            ranked.map(drop).map_err(|err| err.to_string())
        };
        let fewer = || Advice::from("leave rare moves out of the book");
        let found = rank(4, 4, fewer()).unwrap_err();
        let advice = "all lines of 4 half-moves: use a smaller plies, or leave rare moves out of the book, or keep \
                      only the most played lines with limit alone";
        assert!(found.contains(advice), "{found}");
        // The lines are shorter, and there are fewer moves.
        rank(4, 1, fewer()).unwrap();
        rank(2, 2, fewer()).unwrap();
        let none = rank(3, 4, fewer()).unwrap_err();
        assert!(none.contains("none has 4 half-moves"), "{none}");
    }
}

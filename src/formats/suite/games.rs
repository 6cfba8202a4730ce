//! Makes opening suites from games. The entries of such a suite are the lines of moves with which the games begin.
//!
//! [`GameLines`] encodes the line of each game as bytes and sorts the encoded lines. The first bytes identify the
//! position in which the line ends, so sorting makes equal lines and lines with the same last position adjacent. One
//! pass over the sorted lines counts the games of each line and of each position.

use std::sync::Mutex;

use shakmaty::{Position, variant::VariantPosition};

use super::{
    OTHER_STARTS, RangeCheck, Suite,
    format::{SuiteFormat, epd, note_of_games, write_ranked},
    half_moves, is_over,
    ranking::{Candidate, Ranking},
};
use crate::{
    chess::position::{BookMove, Keyed, Variant, changes_material, push_move, restored},
    error::{Advice, Diagnosis, Result},
    games::{pgn::GameResult, results::Results},
    storage::output::BufferedFile,
    storage::sort::{ByteRun, Memory, TextSorter},
    task,
};

/// The length in bytes of the prefix of an encoded line. The prefix identifies the last position of the line by the
/// number of the variant and a 64-bit hash.
const PREFIX_SIZE: usize = 1 + size_of::<u64>();

/// The opening line of a game, encoded as bytes. The line contains the first moves of the game, or the moves that
/// follow a chosen starting position.
///
/// The bytes contain, in this order: the variant, the identity (a 64-bit hash) of the last position, the FEN or EPD of
/// the starting position, a null byte, the moves, and the result. The FEN or EPD is empty if the line begins in the
/// starting position of the variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GameLine(Vec<u8>);

impl GameLine {
    pub(crate) fn new(
        variant: Variant,
        start: &str,
        moves: impl Iterator<Item = BookMove>,
        end: u64,
        result: GameResult,
    ) -> GameLine {
        // Variants with the same rules share their lines, which are stored under the first of these variants.
        let mut variants = Variant::ALL.into_iter();
        let rules = variants.find(|other| other.is_played_like(variant));
        let mut bytes = vec![rules.unwrap_or(variant) as u8];
        bytes.extend(end.to_be_bytes());
        bytes.extend(start.as_bytes());
        bytes.push(0);
        bytes.extend(moves.flat_map(|mv| mv.0.to_be_bytes()));
        bytes.push(result as u8);
        GameLine(bytes)
    }
}

/// A collection of the opening lines of games, from which a suite is made. Several threads may add lines at the
/// same time.
#[derive(Debug)]
pub(crate) struct GameLines {
    sorter: Mutex<TextSorter>,
    memory: Memory,
}

impl GameLines {
    /// Creates an empty collection. `memory` is the memory budget for collecting and ranking lines. Lines that exceed
    /// the budget are spilled to temporary files.
    pub(crate) fn new(memory: &Memory) -> GameLines {
        let share = memory.share(2);
        GameLines {
            sorter: Mutex::new(TextSorter::new(share.clone(), None)),
            memory: share,
        }
    }

    /// Adds opening lines to this collection, one for each game.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub(crate) fn add(&self, lines: &[GameLine]) -> Result<()> {
        let mut sorter = task::lock(&self.sorter);
        lines.iter().try_for_each(|line| sorter.push(&line.0))
    }

    /// Returns the total size in bytes of the temporary files to which lines were spilled.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        task::lock(&self.sorter).spilled_bytes()
    }

    /// Makes a suite from the collected lines, and writes it to `file`. A suite of lines contains each line that was
    /// played in at least `min_game` games. A suite of positions ([`SuiteFormat::Epd`]) contains the last position of
    /// each line if at least `min_game` games reached this position. The options in `suite` may exclude some of these
    /// entries. Returns the file, which the caller must commit, and statistics about the lines.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written or read, or if the suite would have too many entries.
    pub(crate) fn write(
        self,
        file: BufferedFile,
        format: SuiteFormat,
        suite: &Suite,
        min_game: u64,
    ) -> Result<(BufferedFile, LineCounts)> {
        let mut ranker = Ranker {
            format,
            suite,
            min_game,
            ranking: Ranking::new(suite, &self.memory, file.target()),
            counts: LineCounts::default(),
        };
        ranker.rank(&mut task::unlocked(self.sorter), &self.memory.share(4))?;
        let Ranker {
            mut ranking,
            mut counts,
            ..
        } = ranker;
        let (file, entries) = write_ranked(file, format, suite, &mut ranking, start_of)?;
        counts.entries = entries;
        counts.outside = ranking.outside;
        counts.unevaluated = ranking.unevaluated;
        counts.repeated = ranking.repeated;
        counts.over = ranking.over;
        Ok((file, counts))
    }
}

/// Statistics about a suite that was made from games: how many lines or positions were found, how many of them became
/// entries, and how many were left out for each reason.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct LineCounts {
    /// The number of entries of the suite.
    pub entries: u64,
    /// The number of different lines or, for a suite of positions, of different last positions.
    all: u64,
    /// The number of games of the most frequent line or position.
    most: u64,
    /// The number of lines or positions that were left out because they have too few games.
    pub rare: u64,
    /// The number of lines or positions that were left out because they do not meet the suite's conditions on results,
    /// evaluations and positions.
    pub outside: u64,
    /// The number of lines or positions that were left out because they have no evaluation.
    pub unevaluated: u64,
    /// The number of lines that were left out because another line leads to the same position, or `None` if several
    /// lines of the suite may lead to the same position.
    pub repeated: Option<u64>,
    /// The number of lines or positions that were left out because the game is over after them.
    over: u64,
}

impl LineCounts {
    /// Returns an error message that explains why a suite has no entries. `suite`, `format` and `min_game` are the
    /// arguments with which [`GameLines::write`] was called.
    pub(crate) fn why_empty(&self, suite: &Suite, format: SuiteFormat, min_game: u64) -> Diagnosis {
        let LineCounts {
            all,
            most,
            unevaluated,
            over,
            ..
        } = self;
        let plies = half_moves(&suite.plies);
        let has_shorter = *suite.plies.start() > 1;
        if *all == 0 {
            let starts = if suite.starts.is_empty() {
                "the starting position"
            } else {
                "one of the given positions"
            };
            let mut problem = Diagnosis::new(format!("no game contains {plies} after {starts}"));
            if has_shorter {
                problem = problem.advise(Advice::smaller("plies"));
            }
            problem.advise(OTHER_STARTS)
        } else if *most < min_game {
            let none = match format {
                SuiteFormat::Pgn => format!("no line of {plies} was played"),
                SuiteFormat::Epd => format!("no position after {plies} was reached"),
            };
            let problem = Diagnosis::new(format!(
                "{none} in at least {min_game} games, and the most frequent one in only {most}"
            ))
            .advise(Advice::smaller("min-game"));
            if has_shorter {
                problem.advise(Advice::smaller("plies"))
            } else {
                problem
            }
        } else if *over > 0 && suite.conditions().is_empty() {
            suite.over_everywhere()
        } else {
            suite.no_entry_meets(&format!("line of {plies}"), *unevaluated)
        }
    }
}

/// A ranker of the opening lines of games. It reads the sorted lines, groups them by their last position, and adds the
/// lines that the suite accepts to a ranking.
struct Ranker<'a> {
    format: SuiteFormat,
    suite: &'a Suite,
    min_game: u64,
    ranking: Ranking<'a>,
    counts: LineCounts,
}

impl Ranker<'_> {
    /// Reads the sorted opening lines of the games from `sorter`, and adds the lines that the suite accepts to the
    /// ranking. `memory` is the memory budget for one group of lines with the same last position.
    fn rank(&mut self, sorter: &mut TextSorter, memory: &Memory) -> Result<()> {
        let mut open: Option<LineEnd> = None;
        for text in sorter.sorted() {
            let text = text?;
            let game = CountedLine::of_game(&text);
            match &mut open {
                Some(ending) if ending.line.starts_with(game.end) => ending.add(&game)?,
                _ => {
                    let lines = ByteRun::new(memory.bytes, memory.temp_dir.clone());
                    let ending = open.replace(LineEnd::new(&game, lines));
                    ending.map_or(Ok(()), |ending| self.rank_ending(ending))?;
                }
            }
        }
        open.map_or(Ok(()), |ending| self.rank_ending(ending))
    }

    /// Adds the lines of `ending`, a group of lines with the same last position, to the ranking. If the suite consists
    /// of positions, adds this position instead. Leaves out lines and positions that the suite does not accept, and
    /// increments the counter for the reason.
    fn rank_ending(&mut self, mut ending: LineEnd) -> Result<()> {
        ending.end_line()?;
        let is_kept = self.suite.keeps(Some(ending.results));
        if self.format == SuiteFormat::Pgn {
            let evaluated = if is_kept {
                self.evaluated(&ending)?
            } else {
                Some(RangeCheck::LeftOut)
            };
            return ending.for_each_line(|line| {
                let games = line.results.games();
                self.count(games);
                match evaluated {
                    _ if games < self.min_game => self.counts.rare += 1,
                    Some(RangeCheck::Kept(_)) => return self.add_line(line, ending.results),
                    Some(RangeCheck::LeftOut) => self.ranking.outside += 1,
                    Some(RangeCheck::Unknown) => self.ranking.unevaluated += 1,
                    None => self.ranking.over += 1,
                }
                Ok(())
            });
        }
        let games = ending.results.games();
        self.count(games);
        if games < self.min_game {
            self.counts.rare += 1;
            return Ok(());
        }
        if !is_kept {
            self.ranking.outside += 1;
            return Ok(());
        }
        let Some(found) = ending.position(self.suite)? else {
            self.ranking.over += 1;
            return Ok(());
        };
        let pos = found.pos.position();
        let Some(operations) = self
            .ranking
            .evaluation_operations(pos, found.has_quiet_move)?
        else {
            return Ok(());
        };
        self.ranking.add(&Candidate {
            text: &(epd(pos, self.suite.opcodes) + &operations),
            start: &[],
            identities: &[found.pos.identity()],
            games,
            opening: &found.opening,
            note: &note_of_games(ending.results),
        })
    }

    /// Checks whether the last position of the lines in `ending` meets the suite's conditions on positions and
    /// evaluations. Returns `None` if there are such conditions but the game is over after every line of the group, so
    /// that there is no position to check.
    fn evaluated(&self, ending: &LineEnd) -> Result<Option<RangeCheck>> {
        let suite = self.suite;
        if suite.evals.is_none() && suite.position.is_none() && !suite.quiet {
            return Ok(Some(RangeCheck::Kept(String::new())));
        }
        let Some(found) = ending.position(suite)? else {
            return Ok(None);
        };
        let pos = found.pos.position();
        if !suite.accepts(pos, found.has_quiet_move) {
            return Ok(Some(RangeCheck::LeftOut));
        }
        suite.evaluated(pos).map(Some)
    }

    /// Adds a line to the ranking. Does nothing if the game is over after the line, or if the suite accepts only quiet
    /// lines and the last move is a capture or a promotion. `all` contains the results of all games that reached the
    /// last position of the line, also by other moves.
    fn add_line(&mut self, line: &CountedLine<'_>, all: Results) -> Result<()> {
        let Some(replayed) = line.replay(self.suite) else {
            return Ok(());
        };
        if replayed.is_over() {
            self.ranking.over += 1;
            return Ok(());
        }
        if self.suite.quiet && !replayed.has_quiet_move {
            self.ranking.outside += 1;
            return Ok(());
        }
        let Replayed {
            text,
            identities,
            opening,
            ..
        } = replayed;
        let mut note = note_of_games(line.results);
        if line.results != all {
            note = format!("{note}; by any move order {}", note_of_games(all));
        }
        self.ranking.add(&Candidate {
            text: &text,
            start: &line.start_bytes(),
            identities: &identities,
            games: line.results.games(),
            opening: &opening,
            note: &note,
        })
    }

    fn count(&mut self, games: u64) {
        self.counts.all += 1;
        self.counts.most = self.counts.most.max(games);
    }
}

/// The group of all lines that end in the same position, with the results of their games.
struct LineEnd {
    /// The lines whose games have all been added. Each line is preceded by the numbers of its games.
    lines: ByteRun,
    /// The line whose games are being added, which is not in `lines` yet. `line_results` contains its numbers of
    /// games.
    line: Vec<u8>,
    line_results: Results,
    /// The total numbers of games of all lines of the group.
    results: Results,
}

impl LineEnd {
    fn new(game: &CountedLine<'_>, lines: ByteRun) -> LineEnd {
        LineEnd {
            lines,
            line: game.bytes.to_vec(),
            line_results: game.results,
            results: game.results,
        }
    }

    /// Adds the opening line and the result of one game. Results are added up only for consecutive games with the same
    /// line, so the caller must sort the games by line.
    fn add(&mut self, game: &CountedLine<'_>) -> Result<()> {
        if self.line != game.bytes {
            self.end_line()?;
            (self.line, self.line_results) = (game.bytes.to_vec(), Results::default());
        }
        self.line_results += game.results;
        self.results += game.results;
        Ok(())
    }

    /// Ends the line whose games are being added. Appends this line and the results of its games to the field `lines`.
    fn end_line(&mut self) -> Result<()> {
        let Results {
            white,
            draws,
            black,
            unfinished,
        } = self.line_results;
        let numbers = [white, draws, black, unfinished];
        let numbers = numbers.map(u64::to_le_bytes);
        let text = [numbers.as_flattened(), &self.line].concat();
        self.lines.append_text(&text)
    }

    /// Calls `f` with each line of the group and the results of its games. The caller must call
    /// [`end_line`](LineEnd::end_line) first, because otherwise the line whose games were added last is missing.
    fn for_each_line(&self, mut f: impl FnMut(&CountedLine<'_>) -> Result<()>) -> Result<()> {
        let mut texts = self.lines.reader(0);
        while let Some(text) = texts.read_text()? {
            let (numbers, bytes) = text.split_at(size_of::<[u64; 4]>());
            let number = |place: usize| u64::from_le_bytes(numbers.as_chunks().0[place]);
            let results = Results {
                white: number(0),
                draws: number(1),
                black: number(2),
                unfinished: number(3),
            };
            f(&CountedLine::new(bytes, results))?;
        }
        Ok(())
    }

    /// Returns the last position of the lines in this group. Returns `None` if the game is over after every line, for
    /// example by repetition.
    fn position(&self, suite: &Suite) -> Result<Option<LastPosition>> {
        let counters = |pos: &Keyed<VariantPosition>| {
            let pos = pos.position();
            (pos.halfmoves(), pos.fullmoves())
        };
        let mut known: Option<Keyed<VariantPosition>> = None;
        let (mut opening, mut most, mut has_quiet_move) = (String::new(), 0, false);
        self.for_each_line(|line| {
            let Some(found) = line.replay(suite).filter(|found| !found.is_over()) else {
                return Ok(());
            };
            if line.results.games() > most {
                (opening, most) = (found.opening, line.results.games());
            }
            has_quiet_move |= found.has_quiet_move;
            let best = known.take().into_iter().chain([found.pos]);
            known = best.min_by_key(counters);
            Ok(())
        })?;
        Ok(known.map(|pos| LastPosition {
            pos,
            opening,
            has_quiet_move,
        }))
    }
}

/// The position in which the lines of a group end.
struct LastPosition {
    /// The position, with the smallest move counters of any line.
    pos: Keyed<VariantPosition>,
    /// The name of the opening, from the line with the most games.
    opening: String,
    /// Whether the last move of at least one line is neither a capture nor a promotion.
    has_quiet_move: bool,
}

/// The fields of an encoded opening line ([`GameLine`]), together with the results of one or more games that played
/// this line.
struct CountedLine<'a> {
    /// All bytes except the result. Two lines are equal if these bytes are equal.
    bytes: &'a [u8],
    end: &'a [u8],
    start: &'a [u8],
    moves: &'a [u8],
    results: Results,
}

impl<'a> CountedLine<'a> {
    /// Splits `bytes`, the encoded [`GameLine`] of one game, into its fields. The results in the returned line are
    /// those of this single game.
    fn of_game(bytes: &'a [u8]) -> CountedLine<'a> {
        let (result, bytes) = bytes.split_last().expect("a result is last");
        let mut results = Results::default();
        results.add(GameResult::ALL[usize::from(*result)]);
        CountedLine::new(bytes, results)
    }

    fn new(bytes: &'a [u8], results: Results) -> CountedLine<'a> {
        let (end, rest) = bytes.split_at(PREFIX_SIZE);
        let mut parts = rest.splitn(2, |byte| *byte == 0);
        CountedLine {
            bytes,
            end,
            start: parts.next().unwrap_or_default(),
            moves: parts.next().expect("moves follow the start"),
            results,
        }
    }

    fn variant(&self) -> Variant {
        Variant::ALL[usize::from(self.end[0])]
    }

    /// Returns bytes that identify the starting position of the line. The result is eight null bytes for the starting
    /// position of standard chess, otherwise the number of the variant and the FEN or EPD. A
    /// [`SourceSuite`](super::SourceSuite) also encodes its first starting position as eight null bytes.
    fn start_bytes(&self) -> Vec<u8> {
        match (self.variant(), self.start) {
            (Variant::Standard, []) => vec![0; 8],
            (variant, start) => [&[variant as u8], start].concat(),
        }
    }

    /// Plays the moves of the line from its starting position. Returns `None` if a move is illegal. The name of the
    /// opening is determined only if `suite` needs it.
    fn replay(&self, suite: &Suite) -> Option<Replayed> {
        let mut pos = Keyed::new(start_of(&self.start_bytes()));
        let mut opening = suite.opening(pos.position(), "");
        let mut identities = vec![pos.identity()];
        let (mut text, mut has_quiet_move) = (String::new(), true);
        for mv in self.moves.as_chunks().0 {
            let before = pos.position();
            let mv = BookMove(u16::from_be_bytes(*mv)).to_move(before)?;
            push_move(&mut text, before, mv);
            has_quiet_move = !changes_material(mv);
            pos.play(mv);
            identities.push(pos.identity());
            opening = suite.opening(pos.position(), &opening);
        }
        Some(Replayed {
            text,
            identities,
            pos,
            opening,
            has_quiet_move,
        })
    }
}

/// An opening line after its moves have been played.
struct Replayed {
    /// The moves in SAN with move numbers.
    text: String,
    /// The identities of the positions, from the first to the last.
    identities: Vec<u64>,
    /// The last position.
    pos: Keyed<VariantPosition>,
    opening: String,
    /// Whether the last move is neither a capture nor a promotion. It is `true` if the line has no moves.
    has_quiet_move: bool,
}

impl Replayed {
    /// Returns `true` if the game is over after the line, by the rules of the variant or by threefold repetition.
    fn is_over(&self) -> bool {
        is_over(&self.identities, self.pos.position())
    }
}

/// Decodes a starting position that [`CountedLine::start_bytes`] has encoded.
fn start_of(start: &[u8]) -> VariantPosition {
    let (variant, fen) = match start {
        [variant, fen @ ..] if start.len() > 8 => (Variant::ALL[usize::from(*variant)], fen),
        [variant, ..] => (Variant::ALL[usize::from(*variant)], &[][..]),
        [] => (Variant::Standard, &[][..]),
    };
    let usual = variant.start();
    restored(&String::from_utf8_lossy(fen), &usual).unwrap_or(usual)
}

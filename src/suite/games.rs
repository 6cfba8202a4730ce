//! Suites of the lines that games begin with, as they were played.

use std::sync::Mutex;

use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    Suite,
    evaluated::{Evaluated, without_evaluation},
    game_stats::GameStats,
    over_everywhere,
    ranking::{Candidate, Ranking},
    write::{SuiteFormat, epd, note_of_games, write_ranked},
};
use crate::{
    error::Result,
    output::BufferedFile,
    pgn::GameResult,
    position::{BookMove, Keyed, Variant, restored},
    sort::{ByteRun, Memory, TextSorter},
    tally::Stats,
    task,
    tree::push_move,
};

/// Bytes of the variant and of the identity of the last position.
const END: usize = 1 + size_of::<u64>();

/// The line that a game begins with, or goes on with from a position that is wanted. As bytes: the variant, the identity
/// of its last position, the FEN or EPD of its start (none for the usual one) and a null byte, its moves, the result.
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
        // Of variants that are played alike, the first.
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

/// The lines of all games. Any number of threads may add some at the same time.
#[derive(Debug)]
pub(crate) struct GameLines {
    sorter: Mutex<TextSorter>,
    memory: Memory,
}

impl GameLines {
    /// No lines yet; `memory` is for all that will come, and for ranking them.
    pub(crate) fn new(memory: &Memory) -> GameLines {
        let share = memory.share(2);
        GameLines {
            sorter: Mutex::new(TextSorter::new(share.clone(), None)),
            memory: share,
        }
    }

    /// Adds lines.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn add(&self, lines: &[GameLine]) -> Result<()> {
        let mut sorter = task::lock(&self.sorter);
        lines.iter().try_for_each(|line| sorter.push(&line.0))
    }

    /// How many bytes are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        task::lock(&self.sorter).spilled_bytes()
    }

    /// Writes the lines, or the positions that they lead to, of at least `min_game` games. The output is not in place
    /// then.
    ///
    /// # Errors
    ///
    /// A file that cannot be written or read, or more entries than a suite may have.
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
        counts.unevaluated = ranking.unevaluated;
        counts.over = ranking.over;
        Ok((file, counts))
    }
}

/// What was counted for a suite.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct LineCounts {
    /// Lines or positions of the suite.
    pub entries: u64,
    /// All lines, or positions after them.
    all: u64,
    /// The most games of one.
    most: u64,
    /// Those that were left out because they have no evaluation.
    pub unevaluated: u64,
    /// Those that were left out because the game is over there.
    over: u64,
}

impl LineCounts {
    /// Why the suite has no entry.
    pub(crate) fn why_empty(&self, suite: &Suite, format: SuiteFormat, min_game: u64) -> String {
        let LineCounts {
            all,
            most,
            unevaluated,
            over,
            ..
        } = self;
        let plies = suite.plies;
        if *all == 0 {
            format!("no game has {plies} half-moves from a start of the suite")
        } else if *most < min_game {
            let none = match format {
                SuiteFormat::Pgn => format!("no line of {plies} half-moves was played by"),
                SuiteFormat::Epd => format!("no position after {plies} half-moves was reached by"),
            };
            format!(
                "{none} {min_game} games; the most is {most}: take fewer half-moves, or keep lines of fewer games"
            )
        } else if *over > 0 && suite.ranges().is_empty() {
            over_everywhere(plies)
        } else {
            let (ranges, unknown) = (suite.ranges(), without_evaluation(*unevaluated));
            format!("no line of {plies} half-moves is within {ranges}{unknown}")
        }
    }
}

/// Ranks the lines of sorters.
struct Ranker<'a> {
    format: SuiteFormat,
    suite: &'a Suite,
    min_game: u64,
    ranking: Ranking<'a>,
    counts: LineCounts,
}

impl Ranker<'_> {
    /// Ranks the lines of a sorter, one position that they lead to after the other.
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

    /// Adds the lines to a position, or the position itself, if it is wanted.
    fn rank_ending(&mut self, mut ending: LineEnd) -> Result<()> {
        ending.end_line()?;
        let is_kept = self.suite.keeps(Some(ending.results.stats));
        if self.format == SuiteFormat::Pgn {
            let evaluated = match is_kept {
                true => self.evaluated(&ending)?,
                false => Evaluated::LeftOut,
            };
            return ending.for_each_line(|line| {
                let games = line.results.games();
                self.count(games);
                match evaluated {
                    _ if games < self.min_game => Ok(()),
                    Evaluated::Kept(_) => self.add_line(line, ending.results),
                    Evaluated::LeftOut => Ok(()),
                    Evaluated::Unknown => {
                        self.ranking.unevaluated += 1;
                        Ok(())
                    }
                }
            });
        }
        let games = ending.results.games();
        self.count(games);
        if games < self.min_game || !is_kept {
            return Ok(());
        }
        let Some((pos, opening)) = ending.position(self.suite)? else {
            self.ranking.over += 1;
            return Ok(());
        };
        let Some(operations) = self.ranking.judged(pos.position())? else {
            return Ok(());
        };
        self.ranking.add(&Candidate {
            text: &(epd(pos.position(), self.suite.opcodes) + &operations),
            start: &[],
            way: &[pos.identity()],
            games,
            opening: &opening,
            note: &note_of_games(ending.results),
        })
    }

    /// Whether the evaluation of a position is as asked.
    fn evaluated(&self, ending: &LineEnd) -> Result<Evaluated> {
        if self.suite.evals.is_none() {
            return Ok(Evaluated::Kept(String::new()));
        }
        let pos = ending.position(self.suite)?;
        pos.map_or(Ok(Evaluated::LeftOut), |(pos, _)| {
            self.suite.evaluated(pos.position())
        })
    }

    /// Adds a line. `all` are all games that came to its last position.
    fn add_line(&mut self, line: &CountedLine<'_>, all: GameStats) -> Result<()> {
        let Some(replayed) = line.replay(self.suite) else {
            return Ok(());
        };
        if replayed.is_over() {
            self.ranking.over += 1;
            return Ok(());
        }
        let Replayed {
            text, way, opening, ..
        } = replayed;
        let mut note = note_of_games(line.results);
        if line.results != all {
            note = format!("{note}; by any move order {}", note_of_games(all));
        }
        self.ranking.add(&Candidate {
            text: &text,
            start: &line.start_bytes(),
            way: &way,
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

/// A position that lines lead to.
struct LineEnd {
    /// The lines, each after its games.
    lines: ByteRun,
    /// The last line, which is not among them yet, and its games.
    line: Vec<u8>,
    line_results: GameStats,
    /// The games of all lines.
    results: GameStats,
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

    /// Adds a game. Those of one line come one after the other.
    fn add(&mut self, game: &CountedLine<'_>) -> Result<()> {
        if self.line != game.bytes {
            self.end_line()?;
            (self.line, self.line_results) = (game.bytes.to_vec(), GameStats::default());
        }
        self.line_results += game.results;
        self.results += game.results;
        Ok(())
    }

    fn end_line(&mut self) -> Result<()> {
        let GameStats {
            stats,
            without_result,
        } = self.line_results;
        let numbers = [stats.wins, stats.draws, stats.losses, without_result];
        let numbers = numbers.map(u64::to_le_bytes);
        let text = [numbers.as_flattened(), &self.line].concat();
        self.lines.append_text(&text)
    }

    fn for_each_line(&self, mut f: impl FnMut(&CountedLine<'_>) -> Result<()>) -> Result<()> {
        let mut texts = self.lines.reader(0);
        while let Some(text) = texts.read_text()? {
            let (numbers, bytes) = text.split_at(size_of::<[u64; 4]>());
            let number = |place: usize| u64::from_le_bytes(numbers.as_chunks().0[place]);
            let stats = Stats {
                wins: number(0),
                draws: number(1),
                losses: number(2),
            };
            let results = GameStats {
                stats,
                without_result: number(3),
            };
            f(&CountedLine::new(bytes, results))?;
        }
        Ok(())
    }

    /// Returns the position itself, with the smallest counters of moves, and the opening of the line that most games
    /// played; `None` if the game is over after every line.
    fn position(&self, suite: &Suite) -> Result<Option<(Keyed<VariantPosition>, String)>> {
        let counters = |pos: &Keyed<VariantPosition>| {
            let pos = pos.position();
            (pos.halfmoves(), pos.fullmoves())
        };
        let mut known: Option<Keyed<VariantPosition>> = None;
        let (mut opening, mut most) = (String::new(), 0);
        self.for_each_line(|line| {
            let Some(found) = line.replay(suite).filter(|found| !found.is_over()) else {
                return Ok(());
            };
            if line.results.games() > most {
                (opening, most) = (found.opening, line.results.games());
            }
            let best = known.take().into_iter().chain([found.pos]);
            known = best.min_by_key(counters);
            Ok(())
        })?;
        Ok(known.map(|pos| (pos, opening)))
    }
}

/// A line with its games.
struct CountedLine<'a> {
    /// What makes it different from others.
    bytes: &'a [u8],
    end: &'a [u8],
    start: &'a [u8],
    moves: &'a [u8],
    results: GameStats,
}

impl<'a> CountedLine<'a> {
    /// The line of one game.
    fn of_game(bytes: &'a [u8]) -> CountedLine<'a> {
        let (result, bytes) = bytes.split_last().expect("a result is last");
        let mut results = GameStats::default();
        match GameResult::ALL[usize::from(*result)] {
            GameResult::Unknown => results.without_result = 1,
            result => results.stats = Stats::of_game(result.winner(), Color::White),
        }
        CountedLine::new(bytes, results)
    }

    fn new(bytes: &'a [u8], results: GameStats) -> CountedLine<'a> {
        let (end, rest) = bytes.split_at(END);
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

    /// What names its start: no text for the usual one of standard chess, as [`SuiteOf`](super::SuiteOf) has it.
    fn start_bytes(&self) -> Vec<u8> {
        match (self.variant(), self.start) {
            (Variant::Standard, []) => vec![0; 8],
            (variant, start) => [&[variant as u8], start].concat(),
        }
    }

    fn replay(&self, suite: &Suite) -> Option<Replayed> {
        let mut pos = Keyed::new(start_of(&self.start_bytes()));
        let mut opening = suite.opening(pos.position(), "");
        let mut way = vec![pos.identity()];
        let mut text = String::new();
        for mv in self.moves.as_chunks().0 {
            let before = pos.position();
            let mv = BookMove(u16::from_be_bytes(*mv)).to_move(before)?;
            push_move(&mut text, before, mv);
            pos.play(mv);
            way.push(pos.identity());
            opening = suite.opening(pos.position(), &opening);
        }
        Some(Replayed {
            text,
            way,
            pos,
            opening,
        })
    }
}

/// What a line comes to.
struct Replayed {
    /// Its moves.
    text: String,
    /// The identities of its positions.
    way: Vec<u64>,
    /// The last of them.
    pos: Keyed<VariantPosition>,
    opening: String,
}

impl Replayed {
    /// Returns `true` if no game goes on after the line: by the rules, or because a position occurred three times.
    fn is_over(&self) -> bool {
        let mut way = self.way.clone();
        way.sort_unstable();
        let has_threefold = way.windows(3).any(|three| three[0] == three[2]);
        has_threefold || self.pos.position().is_game_over()
    }
}

/// The position that a start's bytes name.
fn start_of(start: &[u8]) -> VariantPosition {
    let (variant, fen) = match start {
        [variant, fen @ ..] if start.len() > 8 => (Variant::ALL[usize::from(*variant)], fen),
        [variant, ..] => (Variant::ALL[usize::from(*variant)], &[][..]),
        [] => (Variant::Standard, &[][..]),
    };
    let usual = variant.start();
    restored(&String::from_utf8_lossy(fen), &usual).unwrap_or(usual)
}

//! Suites of the lines that games begin with, as they were played.

use std::{borrow::Cow, sync::Mutex};

use shakmaty::{Position, san::SanPlus, variant::VariantPosition};

use super::{
    Suite,
    ranking::{Candidate, Ranking},
    write::{SuiteFormat, epd, note_of_games, write_ranked},
};
use crate::{
    error::Result,
    output::AtomicFile,
    pgn::GameResult,
    position::{BookMove, Keyed, Variant, restored},
    sort::{ByteRun, Memory, TextSorter},
    tally::Stats,
    task,
    tree::move_number,
};

/// How many sorters share the lines, so that few threads wait for one.
const SORTERS: usize = 16;

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
        bytes.push(match result.winner() {
            Some(shakmaty::Color::White) => b'1',
            Some(shakmaty::Color::Black) => b'0',
            None => b'=',
        });
        GameLine(bytes)
    }
}

/// The lines of all games. Any number of threads may add some at the same time.
#[derive(Debug)]
pub(crate) struct GameLines {
    sorters: Vec<Mutex<TextSorter>>,
    memory: Memory,
}

impl GameLines {
    /// No lines yet; `memory` is for all that will come, and for ranking them.
    pub(crate) fn new(memory: &Memory) -> GameLines {
        let share = memory.share(2);
        let sorter = |_| Mutex::new(TextSorter::new(share.share(SORTERS), None));
        GameLines {
            sorters: (0..SORTERS).map(sorter).collect(),
            memory: share,
        }
    }

    /// Adds lines. Those that end in one position go to one sorter.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn add(&self, lines: &[GameLine]) -> Result<()> {
        for (number, sorter) in self.sorters.iter().enumerate() {
            let of_sorter = |line: &&GameLine| usize::from(line.0[END - 1]) % SORTERS == number;
            let mut lines = lines.iter().filter(of_sorter).peekable();
            if lines.peek().is_some() {
                let mut sorter = task::lock(sorter);
                lines.try_for_each(|line| sorter.push(&line.0))?;
            }
        }
        Ok(())
    }

    /// How many bytes are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        let sorters = self.sorters.iter();
        sorters
            .map(|sorter| task::lock(sorter).spilled_bytes())
            .sum()
    }

    /// Writes the lines, or the positions that they lead to, of at least `min_game` games. The output is not in place
    /// then.
    ///
    /// # Errors
    ///
    /// A file that cannot be written or read, or more entries than a suite may have.
    pub(crate) fn write(
        self,
        file: AtomicFile,
        format: SuiteFormat,
        suite: &Suite,
        min_game: u64,
    ) -> Result<(AtomicFile, LineCounts)> {
        let mut ranker = Ranker {
            format,
            suite,
            min_game,
            ranking: Ranking::new(suite, &self.memory, file.target()),
            counts: LineCounts::default(),
        };
        for sorter in self.sorters {
            let mut sorter = task::unlocked(sorter);
            let ends = ranker.count_ends(&mut sorter, self.memory.share(4))?;
            ranker.rank(&mut sorter, &ends)?;
        }
        let Ranker {
            mut ranking,
            mut counts,
            ..
        } = ranker;
        let (file, entries) = write_ranked(file, format, &mut ranking, start_of)?;
        counts.entries = entries;
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
}

impl LineCounts {
    /// Why the suite has no entry.
    pub(crate) fn why_empty(&self, suite: &Suite, format: SuiteFormat, min_game: u64) -> String {
        let LineCounts { all, most, .. } = self;
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
        } else {
            format!("no line of {plies} half-moves is within --balance")
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
    /// The results of all games of each last position, in the order of the sorter.
    fn count_ends(&mut self, sorter: &mut TextSorter, memory: Memory) -> Result<ByteRun> {
        let mut ends = ByteRun::new(memory.bytes, memory.temp_dir);
        let mut append = |stats: Stats| {
            let numbers = [stats.wins, stats.draws, stats.losses].map(u64::to_le_bytes);
            ends.append(numbers.as_flattened())
        };
        let mut open: Option<(Vec<u8>, Stats)> = None;
        for_each_line(sorter, |line| {
            match &mut open {
                Some((end, stats)) if end == line.end => *stats += line.stats,
                _ => {
                    if let Some((_, stats)) = open.replace((line.end.to_vec(), line.stats)) {
                        append(stats)?;
                    }
                }
            }
            Ok(())
        })?;
        open.map_or(Ok(()), |(_, stats)| append(stats))?;
        Ok(ends)
    }

    fn rank(&mut self, sorter: &mut TextSorter, ends: &ByteRun) -> Result<()> {
        let mut ends = ends.reader(0);
        let mut open: Option<LineEnd> = None;
        for_each_line(sorter, |line| {
            if open.as_ref().is_none_or(|end| end.bytes != line.end) {
                let mut numbers = [[0; 8]; 3];
                ends.read_exact(numbers.as_flattened_mut())?;
                let [wins, draws, losses] = numbers.map(u64::from_le_bytes);
                let stats = Stats {
                    wins,
                    draws,
                    losses,
                };
                let end = open.replace(LineEnd {
                    bytes: line.end.to_vec(),
                    stats,
                    is_balanced: self.suite.is_balanced(Some(stats)),
                    pos: None,
                });
                end.map_or(Ok(()), |end| self.add_position(&end))?;
            }
            let end = open.as_mut().expect("it was just opened");
            match self.format {
                SuiteFormat::Pgn => self.add_line(line, end),
                SuiteFormat::Epd => {
                    end.add_way(line, self.min_game);
                    Ok(())
                }
            }
        })?;
        open.map_or(Ok(()), |end| self.add_position(&end))
    }

    /// Adds a line, if it is wanted.
    fn add_line(&mut self, line: &CountedLine<'_>, end: &LineEnd) -> Result<()> {
        let games = line.stats.games();
        self.count(games);
        if games < self.min_game || !end.is_balanced {
            return Ok(());
        }
        let Some((text, way, _)) = line.replay() else {
            return Ok(());
        };
        let note = match note_of_games(line.stats) {
            line_note if line.stats == end.stats => line_note,
            line_note => format!(
                "{line_note}; by any move order {}",
                note_of_games(end.stats)
            ),
        };
        self.ranking.add(&Candidate {
            text: &text,
            start: &line.start_bytes(),
            way: &way,
            games,
            note: &note,
        })
    }

    /// Adds a position, if positions are wanted and this one is.
    fn add_position(&mut self, end: &LineEnd) -> Result<()> {
        if self.format != SuiteFormat::Epd {
            return Ok(());
        }
        let games = end.stats.games();
        self.count(games);
        let Some(pos) = &end.pos else {
            return Ok(());
        };
        self.ranking.add(&Candidate {
            text: &epd(pos.position(), self.suite.opcodes),
            start: &[],
            way: &[pos.identity()],
            games,
            note: &note_of_games(end.stats),
        })
    }

    fn count(&mut self, games: u64) {
        self.counts.all += 1;
        self.counts.most = self.counts.most.max(games);
    }
}

/// The position after lines.
struct LineEnd {
    bytes: Vec<u8>,
    /// For White.
    stats: Stats,
    is_balanced: bool,
    /// The position itself, with the smallest counters of moves, if it is wanted.
    pos: Option<Keyed<VariantPosition>>,
}

impl LineEnd {
    /// Adds a line that leads there.
    fn add_way(&mut self, line: &CountedLine<'_>, min_game: u64) {
        if self.stats.games() < min_game || !self.is_balanced {
            return;
        }
        let Some((_, _, pos)) = line.replay() else {
            return;
        };
        let counters = |pos: &Keyed<VariantPosition>| {
            let pos = pos.position();
            (pos.halfmoves(), pos.fullmoves())
        };
        if self
            .pos
            .as_ref()
            .is_none_or(|known| counters(&pos) < counters(known))
        {
            self.pos = Some(pos);
        }
    }
}

/// A line with its results.
struct CountedLine<'a> {
    /// What makes it different from others.
    bytes: &'a [u8],
    end: &'a [u8],
    start: &'a [u8],
    moves: &'a [u8],
    /// For White.
    stats: Stats,
}

impl<'a> CountedLine<'a> {
    /// The line of one game.
    fn new(bytes: &'a [u8]) -> CountedLine<'a> {
        let (result, bytes) = bytes.split_last().expect("a result is last");
        let (end, rest) = bytes.split_at(END);
        let mut parts = rest.splitn(2, |byte| *byte == 0);
        CountedLine {
            bytes,
            end,
            start: parts.next().unwrap_or_default(),
            moves: parts.next().expect("moves follow the start"),
            stats: Stats {
                wins: u64::from(*result == b'1'),
                draws: u64::from(*result == b'='),
                losses: u64::from(*result == b'0'),
            },
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

    /// Its moves as text, the identities of its positions, and the last of these.
    fn replay(&self) -> Option<(String, Vec<u64>, Keyed<VariantPosition>)> {
        let mut pos = Keyed::new(start_of(&self.start_bytes()));
        let mut way = vec![pos.identity()];
        let mut text = String::new();
        for mv in self.moves.as_chunks().0 {
            let before = pos.position();
            let mv = BookMove(u16::from_be_bytes(*mv)).to_move(before)?;
            if text.is_empty() || before.turn().is_white() {
                text.push_str(&move_number(before));
                text.push(' ');
            }
            text.push_str(&SanPlus::from_move(before.clone(), mv).to_string());
            text.push(' ');
            pos.play(mv);
            way.push(pos.identity());
        }
        text.pop();
        Some((text, way, pos))
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

/// Calls `f` with each line once, with the results of all its games.
fn for_each_line(
    sorter: &mut TextSorter,
    mut f: impl FnMut(&CountedLine<'_>) -> Result<()>,
) -> Result<()> {
    let mut open: Option<(Cow<'_, [u8]>, Stats)> = None;
    let mut hand_over = |(text, stats): (Cow<'_, [u8]>, Stats)| {
        f(&CountedLine {
            stats,
            ..CountedLine::new(&text)
        })
    };
    for text in sorter.sorted() {
        let text = text?;
        let line = CountedLine::new(&text);
        match &mut open {
            Some((first, stats)) if CountedLine::new(first).bytes == line.bytes => {
                *stats += line.stats
            }
            _ => {
                let stats = line.stats;
                open.replace((text, stats)).map_or(Ok(()), &mut hand_over)?;
            }
        }
    }
    open.map_or(Ok(()), hand_over)
}

//! Opening suites: the lines or positions that games begin with, for matches between engines.

mod ranking;

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{BufWriter, Write},
    path::Path,
};

use shakmaty::{Color, Position, san::SanPlus, variant::VariantPosition};

use self::ranking::{Candidate, Ranking};
use super::{
    Converted,
    replace::{Kind, check_replaceable},
};
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
    position::{Keyed, write_epd},
    tally::Stats,
    tree::{GameWriter, Source, TreeMove, move_number},
};

/// What games of a suite are called.
const EVENT: &str = "Opening suite";

/// The first line of a suite of lines.
const FIRST_LINE: &str = "[Event \"Opening suite\"]";

/// What a suite has in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Suite {
    /// Half-moves of each line. Default: 8.
    pub plies: usize,
    /// The most lines or positions, none for all: the first in their order.
    pub limit: Option<usize>,
    /// Puts them into an order that looks random, which this number and the moves alone decide. Default: the commonest
    /// first.
    pub seed: Option<u64>,
    /// White's score in percent in the games that came there, from the one to the other, both among them.
    pub balance: Option<(f64, f64)>,
    /// Leaves lines out that lead to the position of one before them.
    pub unique: bool,
    /// Whether EPDs say the counters of moves, as `hmvc` and `fmvn`; of several ways to a position, the smallest.
    pub opcodes: bool,
    /// Where lines start, none for the starting position.
    pub starts: Vec<VariantPosition>,
}

impl Default for Suite {
    fn default() -> Suite {
        Suite {
            plies: 8,
            limit: None,
            seed: None,
            balance: None,
            unique: false,
            opcodes: false,
            starts: Vec::new(),
        }
    }
}

impl Suite {
    /// Whether the games that came somewhere are balanced as asked; `stats` are White's.
    fn is_balanced(&self, stats: Stats) -> bool {
        self.balance.is_none_or(|(low, high)| {
            let score = stats.score() * 100.0;
            stats.games() > 0 && (low..=high).contains(&score)
        })
    }
}

/// A line of moves from one of the starting positions.
struct Line {
    start: usize,
    pos: Keyed<VariantPosition>,
    /// The moves with their numbers.
    text: String,
    plies: usize,
    /// The fewest games that any of its moves has: no more can have been played all of it.
    games: u64,
    /// The games of its last move, for White.
    stats: Stats,
}

/// Statistics of a move for White.
fn for_white(mv: &TreeMove, turn: Color) -> Stats {
    let stats = mv.stats.unwrap_or_default();
    match turn {
        Color::White => stats,
        Color::Black => Stats {
            wins: stats.losses,
            draws: stats.draws,
            losses: stats.wins,
        },
    }
}

/// How many games a move has; of a book, its weight.
fn games(mv: &TreeMove) -> u64 {
    mv.stats.map_or(mv.weight, Stats::games)
}

impl Line {
    fn then(&self, mv: &TreeMove) -> Line {
        let pos = self.pos.position();
        let mut text = self.text.clone();
        if !text.is_empty() {
            text.push(' ');
        }
        if self.plies == 0 || pos.turn().is_white() {
            text.push_str(&move_number(pos));
            text.push(' ');
        }
        text.push_str(&SanPlus::from_move(pos.clone(), mv.mv).to_string());
        let mut after = self.pos.clone();
        after.play(mv.mv);
        Line {
            start: self.start,
            pos: after,
            text,
            plies: self.plies + 1,
            games: games(mv).min(self.games),
            stats: for_white(mv, pos.turn()),
        }
    }
}

/// Writes the lines of a suite as games without result. The counts or the book that `source` knows are those of
/// `starts`.
pub(super) fn write_lines(
    source: &impl Source,
    starts: &[VariantPosition],
    suite: &Suite,
    path: &Path,
) -> Result<Converted> {
    let file = begin(path, Kind::FirstLine(FIRST_LINE))?;
    let mut ranking = Ranking::new(suite);
    let mut longest = 0;
    for (start, pos) in starts.iter().enumerate() {
        let mut stack = vec![Line {
            start,
            pos: Keyed::new(pos.clone()),
            text: String::new(),
            plies: 0,
            games: u64::MAX,
            stats: Stats::default(),
        }];
        while let Some(line) = stack.pop() {
            longest = longest.max(line.plies);
            if line.plies < suite.plies {
                let moves = source.moves(&line.pos)?;
                stack.extend(moves.iter().map(|mv| line.then(mv)));
            } else if suite.is_balanced(line.stats) {
                let candidate = Candidate {
                    start,
                    identity: line.pos.identity(),
                    games: line.games,
                    text: line.text,
                };
                ranking.add(candidate).map_err(|_| too_many(path, suite))?;
            }
        }
    }
    let lines = ranking.ranked();
    if lines.is_empty() {
        return Err(none(path, suite, longest));
    }
    let mut games = GameWriter::new(BufWriter::with_capacity(1 << 16, file));
    let count = lines.len() as u64;
    for (round, line) in (1..).zip(lines) {
        let begun = games.begin(EVENT, round, &starts[line.start]);
        begun
            .and_then(|()| games.words(&line.text))
            .and_then(|()| games.end())
            .at(path, "write")?;
    }
    end(games.into_inner(), path, count)
}

/// A position that lines come to.
struct Reached {
    pos: Keyed<VariantPosition>,
    games: u64,
    /// For White.
    stats: Stats,
}

/// Writes the positions of a suite, one EPD a line.
pub(super) fn write_positions(
    source: &impl Source,
    starts: &[VariantPosition],
    suite: &Suite,
    path: &Path,
) -> Result<Converted> {
    let file = begin(path, Kind::Epd)?;
    let mut level: HashMap<u64, Reached> = HashMap::new();
    for pos in starts {
        let pos = Keyed::new(pos.clone());
        reach(&mut level, pos, 0, Stats::default());
    }
    let mut longest = 0;
    for ply in 0..suite.plies {
        let mut next = HashMap::new();
        for reached in level.values() {
            let turn = reached.pos.position().turn();
            for mv in source.moves(&reached.pos)? {
                let mut after = reached.pos.clone();
                after.play(mv.mv);
                reach(&mut next, after, games(&mv), for_white(&mv, turn));
            }
        }
        if !next.is_empty() {
            longest = ply + 1;
        }
        level = next;
    }
    let mut ranking = Ranking::new(suite);
    for (identity, reached) in level {
        if suite.plies > 0 && !suite.is_balanced(reached.stats) {
            continue;
        }
        let candidate = Candidate {
            start: 0,
            identity,
            games: reached.games,
            text: epd(reached.pos.position(), suite.opcodes),
        };
        ranking.add(candidate).map_err(|_| too_many(path, suite))?;
    }
    let positions = ranking.ranked();
    if positions.is_empty() {
        return Err(none(path, suite, longest));
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let count = positions.len() as u64;
    for position in positions {
        writeln!(out, "{}", position.text).at(path, "write")?;
    }
    end(out, path, count)
}

/// Notes that some games came to a position. Of several ways there the smallest counters of moves stay.
fn reach(level: &mut HashMap<u64, Reached>, pos: Keyed<VariantPosition>, games: u64, stats: Stats) {
    match level.entry(pos.identity()) {
        Entry::Vacant(entry) => {
            entry.insert(Reached { pos, games, stats });
        }
        Entry::Occupied(mut entry) => {
            let reached = entry.get_mut();
            reached.games += games;
            reached.stats += stats;
            if counters(&pos) < counters(&reached.pos) {
                reached.pos = pos;
            }
        }
    }
}

/// Half-moves since the last capture or move of a pawn, and the number of the next move.
fn counters(pos: &Keyed<VariantPosition>) -> (u32, u32) {
    let pos = pos.position();
    (pos.halfmoves(), pos.fullmoves().get())
}

fn epd(pos: &VariantPosition, opcodes: bool) -> String {
    let mut epd = Vec::new();
    write_epd(pos, &mut epd);
    let mut epd = String::from_utf8(epd).expect("an EPD is ASCII");
    if opcodes {
        let (halfmoves, fullmoves) = (pos.halfmoves(), pos.fullmoves());
        epd.push_str(&format!(" hmvc {halfmoves}; fmvn {fullmoves};"));
    }
    epd
}

fn begin(path: &Path, kind: Kind) -> Result<AtomicFile> {
    AtomicFile::create_over(path, |old| check_replaceable(old, kind))
}

fn end(out: BufWriter<AtomicFile>, path: &Path, entries: u64) -> Result<Converted> {
    let file = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    file.at(path, "write")?.commit()?;
    Ok(Converted {
        entries,
        ..Converted::default()
    })
}

fn too_many(path: &Path, suite: &Suite) -> Error {
    let plies = suite.plies;
    Error::file(
        path,
        format!(
            "would have more than {} lines of {plies} half-moves: choose fewer half-moves, or keep only moves of more \
             games",
            Ranking::MOST
        ),
    )
}

fn none(path: &Path, suite: &Suite, longest: usize) -> Error {
    let plies = suite.plies;
    let why = match longest {
        0 => format!(
            "no line has {plies} half-moves; no move of the starting position is kept: keep moves of fewer games"
        ),
        longest if longest < plies => format!(
            "no line has {plies} half-moves; the longest line kept has {longest}: choose fewer half-moves"
        ),
        _ => "no line is balanced as asked: choose a wider range".to_owned(),
    };
    Error::file(path, format!("would be empty, {why}"))
}

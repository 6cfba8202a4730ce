//! Opening suites: the lines or positions that games begin with, for matches between engines.

use std::{
    collections::HashMap,
    io::{BufWriter, Write},
    path::Path,
};

use shakmaty::{EnPassantMode, Move, Position, fen::Fen, san::SanPlus, variant::VariantPosition};

use super::{
    Convert, Converted,
    counts::Counted,
    replace::{Kind, check_replaceable},
};
use crate::{
    book::Weights,
    error::{At, Error, Result},
    output::AtomicFile,
    position::{Keyed, Variant, write_epd},
    tally::{Finder, MoveFilter, Scratch},
};

/// The most lines of a suite. No match plays more of them, so more are taken for a mistake.
const MOST_LINES: usize = 4_000_000;

/// The first line of a suite of lines.
const EVENT: &str = "[Event \"Opening suite\"]";

/// Columns of a line of moves.
const WIDTH: usize = 80;

/// A line of moves from one of the starting positions.
struct Line {
    start: usize,
    moves: Vec<Move>,
    /// The fewest games that any of its moves has: no more can have been played all of it.
    games: u64,
}

/// What the suites are made of.
struct Tree<'a> {
    finder: Finder<'a>,
    filter: MoveFilter,
    /// The weights that must not be 0, if moves of weight 0 are left out.
    weights: Option<&'a Weights>,
    scratch: Scratch,
}

impl Tree<'_> {
    /// The moves of a position that are kept.
    fn moves(&mut self, line: &Keyed<VariantPosition>) -> Result<Vec<(Move, u64)>> {
        let part = self.finder.part(line.key());
        let Some(found) = self.finder.find(part, &mut self.scratch)? else {
            return Ok(Vec::new());
        };
        let turn = line.position().turn();
        let kept = found.moves.iter().filter_map(|count| {
            let stats = count.stats;
            let is_weightless = self
                .weights
                .is_some_and(|weights| weights.weight(stats) == 0);
            if !self.filter.selects(turn, stats) || is_weightless {
                return None;
            }
            let mv = count.mv.to_move(line.position())?;
            Some((mv, stats.games()))
        });
        Ok(kept.collect())
    }

    /// All lines of so many half-moves.
    fn lines(&mut self, starts: &[VariantPosition], plies: usize, path: &Path) -> Result<Lines> {
        let mut found = Lines::default();
        for (start, pos) in starts.iter().enumerate() {
            let mut stack = vec![(
                Keyed::new(pos.clone()),
                Line {
                    start,
                    moves: Vec::new(),
                    games: u64::MAX,
                },
            )];
            while let Some((pos, line)) = stack.pop() {
                found.longest = found.longest.max(line.moves.len());
                if line.moves.len() == plies {
                    found.lines.push(line);
                    if found.lines.len() > MOST_LINES {
                        return Err(too_many(path, plies));
                    }
                    continue;
                }
                for (mv, games) in self.moves(&pos)? {
                    let mut next = pos.clone();
                    next.play(mv);
                    let mut moves = line.moves.clone();
                    moves.push(mv);
                    let games = games.min(line.games);
                    stack.push((
                        next,
                        Line {
                            start,
                            moves,
                            games,
                        },
                    ));
                }
            }
        }
        Ok(found)
    }

    /// All positions after so many half-moves, with the games that came to them.
    fn positions(&mut self, starts: &[VariantPosition], plies: usize) -> Result<Positions> {
        let mut found = Positions::default();
        let mut level: HashMap<u64, (Keyed<VariantPosition>, u64)> = starts
            .iter()
            .map(|pos| Keyed::new(pos.clone()))
            .map(|line| (line.identity(), (line, 0)))
            .collect();
        for ply in 0..plies {
            let mut next = HashMap::new();
            for (line, _) in level.values() {
                for (mv, games) in self.moves(line)? {
                    let mut behind = line.clone();
                    behind.play(mv);
                    let (_, sum) = next.entry(behind.identity()).or_insert((behind, 0));
                    *sum += games;
                }
            }
            if !next.is_empty() {
                found.longest = ply + 1;
            }
            level = next;
        }
        found.positions = level
            .into_values()
            .map(|(line, games)| {
                let mut epd = Vec::new();
                write_epd(line.position(), &mut epd);
                (epd, games)
            })
            .collect();
        Ok(found)
    }
}

#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    /// How many half-moves the longest line found has.
    longest: usize,
}

#[derive(Default)]
struct Positions {
    positions: Vec<(Vec<u8>, u64)>,
    longest: usize,
}

fn too_many(path: &Path, plies: usize) -> Error {
    Error::file(
        path,
        format!(
            "would have more than {MOST_LINES} lines of {plies} half-moves: choose fewer half-moves, or keep only \
             moves of more games"
        ),
    )
}

fn none(path: &Path, plies: usize, longest: usize) -> Error {
    let advice = match longest {
        0 => "no move of the starting position is kept: keep moves of fewer games".to_owned(),
        longest => format!("the longest line kept has {longest}: choose fewer half-moves"),
    };
    Error::file(
        path,
        format!("would be empty, no line has {plies} half-moves; {advice}"),
    )
}

impl Convert {
    /// Writes the lines of `plies` half-moves from the starting position, each once, as games without
    /// result: those that most games can have followed first.
    ///
    /// Every move of a line is one that a book of the database would have. In Chess960 the lines
    /// start from all starting positions that the database knows.
    ///
    /// # Errors
    ///
    /// A database that cannot be read, a file that cannot be written, or a suite that would be empty or
    /// beyond all measure.
    pub fn to_pgn(&self, path: &Path, plies: usize) -> Result<Converted> {
        self.suite(path, Kind::FirstLine(EVENT), |tree, starts, out| {
            let Lines { mut lines, longest } = tree.lines(starts, plies, path)?;
            if lines.is_empty() {
                return Err(none(path, plies, longest));
            }
            let mut texts: Vec<(u64, String)> = lines
                .drain(..)
                .map(|line| (line.games, movetext(&starts[line.start], &line)))
                .collect();
            texts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            for (number, (_, text)) in texts.iter().enumerate() {
                write!(out, "{EVENT}\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"{}\"]\n[White \"?\"]\n[Black \"?\"]\n[Result \"*\"]\n{text}", number + 1)
                    .at(path, "write")?;
            }
            Ok(texts.len() as u64)
        })
    }

    /// Writes the positions after `plies` half-moves from the starting position, each once, one EPD a line:
    /// those that most games came to first.
    ///
    /// # Errors
    ///
    /// A database that cannot be read, a file that cannot be written, or a suite that would be empty.
    pub fn to_epd(&self, path: &Path, plies: usize) -> Result<Converted> {
        self.suite(path, Kind::Epd, |tree, starts, out| {
            let Positions {
                mut positions,
                longest,
            } = tree.positions(starts, plies)?;
            if positions.is_empty() {
                return Err(none(path, plies, longest));
            }
            positions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            for (epd, _) in &positions {
                out.write_all(epd)
                    .and_then(|()| out.write_all(b"\n"))
                    .at(path, "write")?;
            }
            Ok(positions.len() as u64)
        })
    }

    fn suite(
        &self,
        path: &Path,
        kind: Kind,
        write: impl FnOnce(&mut Tree<'_>, &[VariantPosition], &mut dyn Write) -> Result<u64>,
    ) -> Result<Converted> {
        let variant = self.played_variant()?;
        let mut file = AtomicFile::create_over(path, |old| check_replaceable(old, kind))?;
        let pool = self.pool()?;
        let Counted {
            counts,
            starts,
            passed_over,
        } = self.count(variant, &pool)?;
        let starts = match variant {
            Variant::Chess960 if !starts.is_empty() => starts,
            _ => vec![variant.start()],
        };
        let mut tree = Tree {
            finder: pool.install(|| counts.finder())?,
            filter: self.narrowed(MoveFilter::default()),
            weights: self.only_weighted.then_some(&self.weights),
            scratch: Scratch::default(),
        };
        let mut out = BufWriter::with_capacity(1 << 16, &mut file);
        let entries = write(&mut tree, &starts, &mut out)?;
        out.flush().at(path, "write")?;
        drop(out);
        file.commit()?;
        Ok(Converted {
            entries,
            passed_over,
            ..Converted::default()
        })
    }
}

/// The rest of a game's tags, and its moves.
fn movetext(start: &VariantPosition, line: &Line) -> String {
    let mut text = String::new();
    let variant = variant_tag(start);
    let usual = VariantPosition::new(start.variant());
    if let Some(variant) = variant {
        text.push_str(&format!("[Variant \"{variant}\"]\n"));
    }
    if variant == Some(CHESS960) || *start != usual {
        let fen = Fen::from_position(start, EnPassantMode::Legal);
        text.push_str(&format!("[SetUp \"1\"]\n[FEN \"{fen}\"]\n"));
    }
    text.push('\n');
    let mut column = 0;
    let mut say = |word: &str| {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    };
    let mut pos = start.clone();
    for (ply, mv) in line.moves.iter().enumerate() {
        if pos.turn().is_white() {
            say(&format!("{}.", pos.fullmoves()));
        } else if ply == 0 {
            say(&format!("{}...", pos.fullmoves()));
        }
        say(&SanPlus::from_move(pos.clone(), *mv).to_string());
        pos.play_unchecked(*mv);
    }
    say("*");
    text.push_str("\n\n");
    text
}

const CHESS960: &str = "Chess960";

/// The value of the `Variant` tag, if there is to be one.
fn variant_tag(start: &VariantPosition) -> Option<&'static str> {
    Some(match start {
        VariantPosition::Chess(pos) if pos.castles().mode().is_chess960() => CHESS960,
        VariantPosition::Chess(_) => return None,
        VariantPosition::Atomic(_) => "Atomic",
        VariantPosition::Antichess(_) => "Antichess",
        VariantPosition::KingOfTheHill(_) => "King of the Hill",
        VariantPosition::ThreeCheck(_) => "Three-check",
        VariantPosition::Crazyhouse(_) => "Crazyhouse",
        VariantPosition::RacingKings(_) => "Racing Kings",
        VariantPosition::Horde(_) => "Horde",
    })
}

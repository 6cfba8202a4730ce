//! Suites of positions, as EPDs.

use std::{
    io::{BufWriter, Write},
    path::Path,
};

use shakmaty::{Position, variant::VariantPosition};

use super::{
    SuiteOf, begin, end, for_white, games, none,
    ranking::{Candidate, Ranking},
    too_many,
};
use crate::{
    convert::{Converted, replace::Kind},
    error::{At, Result},
    position::{Keyed, restored, stored, write_epd},
    progress::Portions,
    sort::{Memory, TextSorter},
    tally::Stats,
    tree::{Source, TreeMove},
};

impl<S: Source> SuiteOf<'_, S> {
    /// Writes the positions, one EPD a line.
    pub(in crate::convert) fn write_positions(&self, path: &Path) -> Result<Converted> {
        let file = begin(path, Kind::Epd)?;
        let (mut ranking, longest) = self.rank_positions(path)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let mut count = 0;
        for position in ranking.ranked()? {
            let (text, _) = position?;
            count += 1;
            writeln!(out, "{text}").at(path, "write")?;
        }
        if count == 0 {
            return Err(none(path, self.suite, longest));
        }
        end(out, path, count)
    }

    /// Goes from level to level, and ranks the positions of the last. Answers also how many half-moves the longest
    /// line has.
    fn rank_positions(&self, path: &Path) -> Result<(Ranking, usize)> {
        let (suite, starts) = (self.suite, self.starts);
        let mut done = Portions::new(self.meter);
        let mut level = Level::new(self.memory.share(4));
        for pos in starts {
            level.add(&Reached {
                pos: Keyed::new(pos.clone()),
                games: 0,
                stats: Stats::default(),
                portion: 1.0 / starts.len() as f64,
            })?;
        }
        // All positions are of the same rules.
        let rules = &starts[0];
        let mut longest = 0;
        for ply in 0..suite.plies {
            let mut next = Level::new(self.memory.share(4));
            level.for_each(rules, |reached| {
                let moves = self.source.moves(&reached.pos)?;
                if moves.is_empty() {
                    done.add(reached.portion);
                }
                for mv in &moves {
                    longest = ply + 1;
                    next.add(&reached.then(mv, moves.len()))?;
                }
                Ok(())
            })?;
            level = next;
            if longest <= ply {
                break;
            }
        }
        let mut ranking = Ranking::new(suite, &self.memory.share(2));
        level.for_each(rules, |reached| {
            done.add(reached.portion);
            if suite.plies > 0 && !suite.is_balanced(reached.stats) {
                return Ok(());
            }
            let candidate = Candidate {
                start: 0,
                identity: reached.pos.identity(),
                games: reached.games,
                text: &epd(reached.pos.position(), suite.opcodes),
            };
            match ranking.add(&candidate)? {
                true => Ok(()),
                false => Err(too_many(path, suite)),
            }
        })?;
        Ok((ranking, longest))
    }
}

/// A position that lines come to.
struct Reached {
    pos: Keyed<VariantPosition>,
    games: u64,
    /// For White.
    stats: Stats,
    /// How much of all lines is likely to come there, from 0 to 1.
    portion: f64,
}

impl Reached {
    /// The position behind one of its moves.
    fn then(&self, mv: &TreeMove, moves: usize) -> Reached {
        let mut pos = self.pos.clone();
        pos.play(mv.mv);
        Reached {
            pos,
            games: games(mv),
            stats: for_white(mv, self.pos.position().turn()),
            portion: self.portion / moves as f64,
        }
    }
}

/// Positions after the same number of half-moves. Past their memory they go to temporary files.
struct Level {
    /// Each as often as a move leads there: its identity, its counters of moves, its numbers, itself.
    texts: TextSorter,
}

/// Bytes of the identity and of the counters.
const IDENTITY: usize = 8;
const COUNTERS: usize = 8;

/// Bytes of the numbers: games, White's wins, draws and losses, the portion.
const NUMBERS: usize = 40;

impl Level {
    fn new(memory: Memory) -> Level {
        Level {
            texts: TextSorter::new(memory, None),
        }
    }

    fn add(&mut self, reached: &Reached) -> Result<()> {
        let pos = reached.pos.position();
        let Stats {
            wins,
            draws,
            losses,
        } = reached.stats;
        let numbers = [reached.games, wins, draws, losses].map(u64::to_be_bytes);
        let stored = stored(pos);
        let text = [
            &reached.pos.identity().to_be_bytes()[..],
            &pos.halfmoves().to_be_bytes(),
            &pos.fullmoves().get().to_be_bytes(),
            numbers.as_flattened(),
            &reached.portion.to_be_bytes(),
            stored.as_bytes(),
        ];
        self.texts.push(&text.concat())
    }

    /// Calls `f` with each position once, with all that came there. Of several ways there, the smallest counters of
    /// moves stay.
    fn for_each(
        &mut self,
        rules: &VariantPosition,
        mut f: impl FnMut(Reached) -> Result<()>,
    ) -> Result<()> {
        let mut joined: Option<Reached> = None;
        for text in self.texts.sorted() {
            let Some(next) = read(&text?, rules) else {
                continue;
            };
            match &mut joined {
                Some(before) if before.pos.identity() == next.pos.identity() => {
                    before.games += next.games;
                    before.stats += next.stats;
                    before.portion += next.portion;
                }
                _ => {
                    if let Some(before) = joined.replace(next) {
                        f(before)?;
                    }
                }
            }
        }
        joined.map_or(Ok(()), f)
    }
}

/// A position of a level.
fn read(text: &[u8], rules: &VariantPosition) -> Option<Reached> {
    let (numbers, pos) = text
        .get(IDENTITY + COUNTERS..)?
        .split_first_chunk::<NUMBERS>()?;
    let pos = restored(std::str::from_utf8(pos).ok()?, rules)?;
    let (numbers, _) = numbers.as_chunks();
    let number = |at: usize| u64::from_be_bytes(numbers[at]);
    Some(Reached {
        pos: Keyed::new(pos),
        games: number(0),
        stats: Stats {
            wins: number(1),
            draws: number(2),
            losses: number(3),
        },
        portion: f64::from_bits(number(4)),
    })
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

//! Going from level to level, and where a tree goes on: after one of the moves that lead to a position, and nowhere else.

use shakmaty::{Move, variant::VariantPosition};

use super::{Limits, Source};
use crate::{
    error::Result,
    position::{BookMove, Keyed, restored, stored},
    progress::{Meter, Portions},
    sort::{ByteRun, SpillingSet},
};

/// Bytes of the positions of a level that stay in memory.
const LEVEL_IN_MEMORY: usize = 1 << 16;

/// A move that [`levels`] meets.
pub(crate) struct Arrival<'a> {
    pub before: &'a Keyed<VariantPosition>,
    pub mv: Move,
    pub after: &'a Keyed<VariantPosition>,
    /// Whether no move met before leads to the same position.
    pub is_new: bool,
}

/// Meets the moves of all positions that are fewer half-moves than those of the limits from the starts, but for the last,
/// level by level: each position first where it is reached soonest. Returns the positions by their
/// [fingerprints](place).
pub(crate) fn levels(
    source: &impl Source,
    starts: &[VariantPosition],
    limits: &Limits,
    done: &mut Portions<'_>,
    f: &mut dyn FnMut(Arrival<'_>) -> Result<()>,
) -> Result<SpillingSet> {
    let mut met = SpillingSet::new(limits.memory.share(4));
    let level = || ByteRun::new(LEVEL_IN_MEMORY, limits.memory.temp_dir.clone());
    let mut waiting = level();
    for start in starts {
        if met.insert(place(source, &Keyed::new(start.clone())))? {
            wait(&mut waiting, start, 1.0 / starts.len() as f64)?;
        }
    }
    for ply in 1..limits.plies() {
        let mut next = level();
        let mut texts = waiting.reader(0);
        while let Some(text) = texts.read_text()? {
            let (pos, portion) = waited(&text, &starts[0]);
            let Some(before) = pos.map(Keyed::new) else {
                done.add(portion);
                continue;
            };
            let choices = limits.choices(source, &before, portion)?;
            if choices.is_empty() {
                done.add(portion);
            }
            for choice in choices {
                let mv = choice.mv.mv;
                let mut after = before.clone();
                after.play(mv);
                let is_new = met.insert(place(source, &after))?;
                f(Arrival {
                    before: &before,
                    mv,
                    after: &after,
                    is_new,
                })?;
                if is_new && ply + 1 < limits.plies() {
                    wait(&mut next, after.position(), choice.portion)?;
                } else {
                    done.add(choice.portion);
                }
            }
        }
        waiting = next;
        if waiting.len() == 0 {
            break;
        }
    }
    done.finish();
    Ok(met)
}

/// What is after a move.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AfterMove {
    /// The tree goes on.
    Expanded,
    /// The tree goes on after another move that leads to the same position.
    Transposition,
    /// Nothing, because the lines are as long as they may be.
    End,
}

/// Which of the moves that lead to a position the tree goes on after.
pub(super) enum Expansion {
    /// The first that the walk meets.
    First { met: SpillingSet, plies: usize },
    /// One by which it is reached in the fewest half-moves: the first such of the last level but one.
    Soonest {
        /// All positions that the tree goes on from.
        met: SpillingSet,
        /// The moves that it goes on after.
        moves: SpillingSet,
    },
}

impl Expansion {
    pub(super) fn new(
        source: &impl Source,
        start: &VariantPosition,
        limits: &Limits,
        meter: &Meter,
    ) -> Result<Expansion> {
        if limits.max_ply.is_none() {
            let mut met = SpillingSet::new(limits.memory.share(2));
            met.insert(place(source, &Keyed::new(start.clone())))?;
            let plies = limits.plies();
            return Ok(Expansion::First { met, plies });
        }
        let mut moves = SpillingSet::new(limits.memory.share(4));
        let mut done = Portions::new(meter);
        let starts = std::slice::from_ref(start);
        let met = levels(source, starts, limits, &mut done, &mut |arrival| {
            if arrival.is_new {
                moves.insert(way(source, arrival.before, arrival.mv))?;
            }
            Ok(())
        })?;
        Ok(Expansion::Soonest { met, moves })
    }

    /// What is after a move from one position to another, `ply` half-moves from the start.
    pub(super) fn after(
        &mut self,
        source: &impl Source,
        before: &Keyed<VariantPosition>,
        mv: Move,
        after: &Keyed<VariantPosition>,
        ply: usize,
    ) -> Result<AfterMove> {
        Ok(match self {
            // Another line may come there sooner.
            Expansion::First { plies, .. } if ply >= *plies => AfterMove::End,
            Expansion::First { met, .. } => match met.insert(place(source, after))? {
                true => AfterMove::Expanded,
                false => AfterMove::Transposition,
            },
            Expansion::Soonest { met, .. } if !met.contains(place(source, after))? => {
                AfterMove::End
            }
            Expansion::Soonest { moves, .. } => match moves.contains(way(source, before, mv))? {
                true => AfterMove::Expanded,
                false => AfterMove::Transposition,
            },
        })
    }
}

/// Returns the fingerprint of a position.
fn place(source: &impl Source, pos: &Keyed<VariantPosition>) -> u128 {
    u128::from(source.node(pos)) << 64
}

/// Returns the fingerprint of a move of a position.
fn way(source: &impl Source, pos: &Keyed<VariantPosition>, mv: Move) -> u128 {
    place(source, pos) | u128::from(BookMove::from(mv).0)
}

/// Lets a position wait until all of its level are met.
fn wait(level: &mut ByteRun, pos: &VariantPosition, portion: f64) -> Result<()> {
    let mut text = portion.to_le_bytes().to_vec();
    text.extend_from_slice(stored(pos).as_bytes());
    level.append_text(&text)
}

/// A position that waited, if it has moves, and its portion of the tree.
fn waited(text: &[u8], start: &VariantPosition) -> (Option<VariantPosition>, f64) {
    let (portion, pos) = text.split_first_chunk().expect("a portion comes first");
    let pos = restored(&String::from_utf8_lossy(pos), start);
    (pos, f64::from_le_bytes(*portion))
}

//! Walking breadth first, and choosing the one move after which a tree continues a position.

use shakmaty::{Move, variant::VariantPosition};

use super::{Limits, Source};
use crate::{
    error::Result,
    position::{BookMove, Keyed, restored, stored},
    progress::{Meter, Portions},
    sort::{ByteRun, SpillingSet},
};

/// The memory for the positions of a level, in bytes; more spills to a temporary file.
const LEVEL_IN_MEMORY: usize = 1 << 16;

/// A move that [`levels`] visits.
pub(crate) struct Arrival<'a> {
    pub before: &'a Keyed<VariantPosition>,
    pub mv: Move,
    pub after: &'a Keyed<VariantPosition>,
    /// Whether this is the first visited move that leads to `after`.
    pub is_new: bool,
}

/// Visits the moves of every position within `limits.plies() - 1` half-moves of the starts, except those of the last
/// level, breadth first. So each position is first visited at its smallest depth. Returns the
/// [fingerprints](position_fingerprint) of all visited positions.
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
        if met.insert(position_fingerprint(source, &Keyed::new(start.clone())))? {
            push_waiting(&mut waiting, start, 1.0 / starts.len() as f64)?;
        }
    }
    for ply in 1..limits.plies() {
        let mut next = level();
        let mut texts = waiting.reader(0);
        while let Some(text) = texts.read_text()? {
            let (pos, portion) = read_waiting(&text, &starts[0]);
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
                let is_new = met.insert(position_fingerprint(source, &after))?;
                f(Arrival {
                    before: &before,
                    mv,
                    after: &after,
                    is_new,
                })?;
                if is_new && ply + 1 < limits.plies() {
                    push_waiting(&mut next, after.position(), choice.portion)?;
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

/// The continuation of a tree after a move.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AfterMove {
    /// The tree continues the position after the move.
    Expanded,
    /// The tree continues the position, but after another move that leads to it.
    Transposition,
    /// The line ends, because it has its maximum length.
    End,
}

/// Decides after which of the moves that lead to a position the tree continues it.
pub(super) enum Expansion {
    /// After the first such move that the walk visits.
    First { met: SpillingSet, plies: usize },
    /// After a move at the end of a shortest path: the first one that [`levels`] visits.
    Shortest {
        /// The fingerprints of all positions within the limit.
        met: SpillingSet,
        /// The fingerprints of the moves after which the tree continues.
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
            met.insert(position_fingerprint(source, &Keyed::new(start.clone())))?;
            let plies = limits.plies();
            return Ok(Expansion::First { met, plies });
        }
        let mut moves = SpillingSet::new(limits.memory.share(4));
        let mut done = Portions::new(meter);
        let starts = std::slice::from_ref(start);
        let met = levels(source, starts, limits, &mut done, &mut |arrival| {
            if arrival.is_new {
                moves.insert(move_fingerprint(source, arrival.before, arrival.mv))?;
            }
            Ok(())
        })?;
        Ok(Expansion::Shortest { met, moves })
    }

    /// Decides what follows a move from `before` to `after`. `ply` is the number of half-moves from the start to
    /// `after`.
    pub(super) fn after(
        &mut self,
        source: &impl Source,
        before: &Keyed<VariantPosition>,
        mv: Move,
        after: &Keyed<VariantPosition>,
        ply: usize,
    ) -> Result<AfterMove> {
        Ok(match self {
            // The position is not marked as visited: a shorter line may reach it later.
            Expansion::First { plies, .. } if ply >= *plies => AfterMove::End,
            Expansion::First { met, .. } => {
                match met.insert(position_fingerprint(source, after))? {
                    true => AfterMove::Expanded,
                    false => AfterMove::Transposition,
                }
            }
            Expansion::Shortest { met, .. }
                if !met.contains(position_fingerprint(source, after))? =>
            {
                AfterMove::End
            }
            Expansion::Shortest { moves, .. } => {
                match moves.contains(move_fingerprint(source, before, mv))? {
                    true => AfterMove::Expanded,
                    false => AfterMove::Transposition,
                }
            }
        })
    }
}

/// Returns the fingerprint of a position. Its low 64 bits are 0.
fn position_fingerprint(source: &impl Source, pos: &Keyed<VariantPosition>) -> u128 {
    u128::from(source.node(pos)) << 64
}

/// Returns the fingerprint of a move in a position: that of the position, with the move in the low 16 bits.
fn move_fingerprint(source: &impl Source, pos: &Keyed<VariantPosition>, mv: Move) -> u128 {
    position_fingerprint(source, pos) | u128::from(BookMove::from(mv).0)
}

/// Appends a position to a level, with its share of the tree.
fn push_waiting(level: &mut ByteRun, pos: &VariantPosition, portion: f64) -> Result<()> {
    let mut text = portion.to_le_bytes().to_vec();
    text.extend_from_slice(stored(pos).as_bytes());
    level.append_text(&text)
}

/// Parses a position of a level and its share of the tree. The position is `None` if the text is malformed.
fn read_waiting(text: &[u8], start: &VariantPosition) -> (Option<VariantPosition>, f64) {
    let (portion, pos) = text.split_first_chunk().expect("a portion comes first");
    let pos = restored(&String::from_utf8_lossy(pos), start);
    (pos, f64::from_le_bytes(*portion))
}

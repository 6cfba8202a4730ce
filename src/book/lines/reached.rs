//! The positions that a walk along the lines of a book reaches, in bounded memory.

use rustc_hash::FxHashSet;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::knowledge::{Knowledge, Known};
use crate::{
    error::Result,
    position::{Keyed, restored, stored},
    sort::{ByteRun, Memory, Seen},
};

/// How a walk goes on from a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::book) enum Way {
    /// By the book's moves of a side, and every reply after which the book has a move.
    LinesOf(Color),
    /// By the book's moves; where it has none, by every move after which it has one.
    Followed,
}

/// A level of at most this many bytes stays in memory.
const LEVEL_IN_MEMORY: usize = 1 << 16;

/// The positions that walks reach, by their keys.
pub(in crate::book) struct Reached {
    keys: Seen,
    memory: Memory,
}

impl Reached {
    /// No position is reached yet. A walk takes twice this memory; beyond it, keys spill to temporary files.
    pub(in crate::book) fn none(memory: Memory) -> Reached {
        Reached {
            keys: Seen::new(memory.clone()),
            memory,
        }
    }

    /// The keys of the positions that are reached.
    pub(in crate::book) fn keys(&self) -> AscendingKeys<'_> {
        let ascending = self.keys.ascending();
        let keys = ascending.map(|found| found.map(|fingerprint| (fingerprint >> 64) as u64));
        AscendingKeys {
            keys: Box::new(keys),
            next: None,
        }
    }

    /// Notes the positions in which a side is to move along its lines, or all that are [followed](Way::Followed).
    /// Stops before positions with the keys `closed`, and at fewer than `plies` half-moves. Several walks may
    /// share one value, such as those along the lines of White and of Black.
    ///
    /// # Errors
    ///
    /// A book that cannot be read, or a temporary file that cannot be written.
    pub(in crate::book) fn walk(
        &mut self,
        knowledge: &Knowledge<'_>,
        start: &VariantPosition,
        way: Way,
        closed: &FxHashSet<u64>,
        plies: u16,
    ) -> Result<()> {
        let memory = self.memory.clone();
        let mut walk = Walk {
            way,
            closed,
            noted: &mut self.keys,
            passed: Seen::new(memory),
        };
        let level = || ByteRun::new(LEVEL_IN_MEMORY, self.memory.temp_dir.clone());
        let mut waiting = level();
        if plies > 0 {
            walk.meet(&Keyed::new(start.clone()), &mut waiting)?;
        }
        // Level by level, so that each position is met first where it is reached soonest.
        for _ in 1..plies {
            let mut next_level = level();
            let mut texts = waiting.reader(0);
            while let Some(text) = texts.read_text()? {
                let text = String::from_utf8_lossy(&text);
                if let Some(pos) = restored(&text, start) {
                    walk.go_on(knowledge, Keyed::new(pos), &mut next_level)?;
                }
            }
            if next_level.len() == 0 {
                break;
            }
            waiting = next_level;
        }
        Ok(())
    }
}

/// Keys to look up in ascending order.
pub(in crate::book) struct AscendingKeys<'a> {
    keys: Box<dyn Iterator<Item = Result<u64>> + 'a>,
    /// The last that was read.
    next: Option<u64>,
}

impl AscendingKeys<'_> {
    /// Whether a key is among them. Later keys must not be smaller.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(in crate::book) fn contains(&mut self, key: u64) -> Result<bool> {
        while self.next.is_none_or(|next| next < key) {
            match self.keys.next().transpose()? {
                Some(next) => self.next = Some(next),
                None => return Ok(false),
            }
        }
        Ok(self.next == Some(key))
    }
}

/// A walk along the lines of a book.
struct Walk<'a> {
    way: Way,
    closed: &'a FxHashSet<u64>,
    noted: &'a mut Seen,
    /// The positions in which the other side is to move.
    passed: Seen,
}

impl Walk<'_> {
    fn is_theirs(&self, pos: &Keyed<VariantPosition>) -> bool {
        matches!(self.way, Way::LinesOf(side) if pos.position().turn() != side)
    }

    /// Notes a position, and enqueues it if it is unseen.
    fn meet(&mut self, pos: &Keyed<VariantPosition>, waiting: &mut ByteRun) -> Result<()> {
        if self.closed.contains(&pos.key()) {
            return Ok(());
        }
        let met = match self.is_theirs(pos) {
            true => &mut self.passed,
            false => &mut *self.noted,
        };
        if met.insert(u128::from(pos.key()) << 64)? {
            waiting.append_text(stored(pos.position()).as_bytes())?;
        }
        Ok(())
    }

    fn go_on(
        &mut self,
        knowledge: &Knowledge<'_>,
        pos: Keyed<VariantPosition>,
        next_level: &mut ByteRun,
    ) -> Result<()> {
        let is_theirs = self.is_theirs(&pos);
        let known = knowledge.look_up(pos)?;
        let choices = match is_theirs {
            true => Vec::new(),
            false => knowledge.choices(&known)?,
        };
        let Known { pos, .. } = known;
        for choice in &choices {
            let mut after = pos.clone();
            after.play(choice.mv);
            self.meet(&after, next_level)?;
        }
        if is_theirs || (self.way == Way::Followed && choices.is_empty()) {
            for reply in knowledge.replies(&pos)? {
                self.meet(&reply.after.pos, next_level)?;
            }
        }
        Ok(())
    }
}

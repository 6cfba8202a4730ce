//! Trees as games with variations.

use std::{io::Write, path::Path};

use shakmaty::{san::SanPlus, variant::VariantPosition};

use super::{
    Tree,
    games::{GameWriter, move_number},
    source::Source,
    text::remark,
    walk::{Branch, Event, Order},
};
use crate::error::{At, Result};

/// How deep variations are nested. What would be deeper becomes a game of its own, because readers have limits.
const DEEPEST: usize = 16;

/// How many moves a game has before others take the rest. Scid holds games of some 128 KiB, and a move with its
/// comment takes about 25 bytes there.
const LONGEST: u64 = 2000;

/// The first line of all games.
pub(super) const FIRST_LINE: &str = "[Event \"Opening tree\"]";

/// What the games are called.
const EVENT: &str = "Opening tree";

impl<S: Source> Tree<'_, S> {
    /// Writes the tree as a game with variations to `out`, which errors call `path`. Each move is followed by a comment:
    /// its weight or its games, its share in percent, and `transposition` where the tree goes on elsewhere. Lines that
    /// would be nested in more than sixteen variations, and what is left when a game has 2000 moves, become games of their
    /// own. Returns how many moves there are, those that lead from the start to such a line aside.
    ///
    /// # Errors
    ///
    /// What the source answers, or an output that cannot be written.
    pub fn write_pgn(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        let mut games = GameWriter::new(out);
        let (mut moves, mut rounds) = (0, 0);
        let order = Order::Variations {
            deepest: DEEPEST,
            longest: LONGEST,
        };
        self.walk(order, &mut |event| {
            let written = match event {
                Event::Game(line) => {
                    let ended = if rounds > 0 { games.end() } else { Ok(()) };
                    rounds += 1;
                    let begun = ended.and_then(|()| games.begin(EVENT, rounds, self.start()));
                    begun.and_then(|()| lead(&mut games, self.start(), line))
                }
                Event::Move(branch) => {
                    moves += 1;
                    games.words(&text(&branch))
                }
                Event::Open => games.open(),
                Event::Close => {
                    games.close();
                    Ok(())
                }
                Event::Position { .. } => Ok(()),
            };
            written.at(path, "write")
        })?;
        games.end().at(path, "write")?;
        Ok(moves)
    }
}

/// The moves from the start to where a game has something new.
fn lead<W: Write>(
    games: &mut GameWriter<W>,
    start: &VariantPosition,
    line: &[shakmaty::Move],
) -> std::io::Result<()> {
    let mut pos = start.clone();
    for mv in line {
        let number = move_number(&pos);
        let san = SanPlus::from_move_and_play_unchecked(&mut pos, *mv);
        games.words(&format!("{number} {san}"))?;
    }
    Ok(())
}

/// A move with its number and its comment.
fn text(branch: &Branch<'_>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = SanPlus::from_move(pos.clone(), branch.mv.mv);
    let transposition = if branch.is_transposition {
        ", transposition"
    } else {
        ""
    };
    format!("{number} {san} {{{}{transposition}}}", remark(branch))
}

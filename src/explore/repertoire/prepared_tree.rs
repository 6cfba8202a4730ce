//! Writes a tree of the moves that a player and an opponent are likely to play against each other, for study.

use std::{cell::RefCell, io::Write, path::Path};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Move, Position, variant::VariantPosition};

use super::{BuildSummary, Built, CommentDetail, file::event_of, reach::Propagation};
use crate::{
    chess::position::{BookMove, Keyed},
    error::{Error, Result},
    explore::{
        explorer::{Explorer, PrepareQuery, PreparedLine, Selection},
        tree::{Branch, Limits, MoveSource, Tree, TreeMove, played},
    },
    games::openings,
    progress::Meter,
    storage::sort::Memory,
};

/// Determines how far the tree is continued: a position is continued if at least one in `ONE_IN` games is expected to
/// reach it.
const ONE_IN: f64 = 500.0;

/// Writes a preparation for an opponent to `out`, as a PGN tree with variations. Returns the number of its moves.
///
/// The tree begins with the moves to the position of the query. Then it contains the opponent's moves that were played
/// in at least `query.min_games` games, and the player's moves. These are the moves of the player's repertoire or,
/// where it has none, the moves that the player has played. Where neither exist, they are the moves that others played
/// against the opponent. A line ends where the games end, or where fewer than one in 500 games is expected to arrive.
///
/// The comment on a move contains the opening, the number of games, and the score of the side that moves. After a move
/// of the opponent, it says how likely the position is, with weighted games if `query.half_life` is given. For a move
/// of the player, it says where the move comes from. Comments also mark the ends of `lines`, which are the lines to
/// look at first.
///
/// `path` is the path of the output for error messages. `memory` limits the number of positions, and `meter` receives
/// the progress.
///
/// # Errors
///
/// Returns an error if the games cannot be read, if the output cannot be written, or if the preparation is cancelled.
pub fn write_prepared_tree(
    explorer: &Explorer,
    query: &PrepareQuery<'_>,
    lines: &[PreparedLine],
    out: &mut impl Write,
    path: &Path,
    memory: &Memory,
    meter: &Meter,
) -> Result<u64> {
    let games = GamesOfBoth::new(explorer, query);
    let start = query.line.position();
    let weighted = match query.half_life {
        Some(_) => Some(explorer.weighted_games(query)?),
        None => None,
    };
    let weights = weighted
        .as_ref()
        .map(|theirs| move |pos: &VariantPosition| theirs.weights(pos));
    let walk = Propagation {
        start,
        color: query.color,
        source: &games,
        weights: weights.as_ref().map(|weights| weights as _),
        max_ply: None,
        memory: memory.bytes / 2,
        meter,
    };
    let graph = walk.run(&mut |pos, reach| {
        let is_frequent =
            *pos.position() == *start || games.frequent.borrow().contains(&pos.identity());
        if reach * ONE_IN < 1.0 || !is_frequent {
            return Ok(None);
        }
        games.answers(pos).map(Some)
    })?;
    let built = Built::of(&graph, query.color, BuildSummary::default());
    let before = query.line.positions().iter().zip(query.line.moves());
    let before = before.map(|(pos, mv)| (Keyed::new(pos.clone()).identity(), *mv));
    let source = AfterLine {
        built: &built,
        before: before.collect(),
    };
    let first = lines.iter().filter_map(|line| {
        let mut pos = start.clone();
        for uci in &line.play {
            let mv = uci
                .parse::<shakmaty::uci::UciMove>()
                .ok()?
                .to_move(&pos)
                .ok()?;
            pos.play_unchecked(mv);
        }
        Some(Keyed::new(pos).identity())
    });
    let first: Vec<u64> = first.collect();
    let event = event_of(query, ", all lines");
    let limits = Limits {
        memory: memory.share(2),
        ..Limits::default()
    };
    let line_start = query.line.positions()[0].clone();
    let tree = Tree::new(&source, line_start, limits, meter);
    tree.write_commented_pgn(out, path, &event, &mut |branch| {
        if source.before.contains_key(&branch.pos.identity()) {
            return Some(String::new());
        }
        Some(comment(branch, &built, &games, &first))
    })
}

/// Returns the comment on a move of the tree. `first` contains the identities (hashes) of the positions at the ends of
/// the lines to look at first.
fn comment(branch: &Branch<'_>, built: &Built, games: &GamesOfBoth<'_>, first: &[u64]) -> String {
    let opening = openings::name_of(branch.after.position());
    let opening = opening.map(|opening| format!("{} {}", opening.eco, opening.name));
    let numbers = built.comment(branch, CommentDetail::Full);
    let origin = games.origins.borrow().get(&branch.pos.identity()).copied();
    let is_own = branch.pos.position().turn() == games.query.color;
    let origin = origin.filter(|_| is_own).map(str::to_owned);
    let first = first
        .contains(&branch.after.identity())
        .then(|| "look at this first".to_owned());
    let transposition = branch.is_transposition.then(|| "transposition".to_owned());
    let parts = [opening, Some(numbers), origin, first, transposition];
    Vec::from_iter(parts.into_iter().flatten()).join(", ")
}

/// The games of the player and the opponent in a preparation, each with the color of that person. As a move source, it
/// returns the opponent's moves.
struct GamesOfBoth<'a> {
    explorer: &'a Explorer,
    query: &'a PrepareQuery<'a>,
    theirs: Selection,
    yours: Selection,
    /// The positions after moves that the opponent played in enough games, given by their identities (hashes).
    frequent: RefCell<FxHashSet<u64>>,
    /// The origin of the player's moves in each position, such as `repertoire`. A key is the identity (a hash) of the
    /// position.
    origins: RefCell<FxHashMap<u64, &'static str>>,
}

impl<'a> GamesOfBoth<'a> {
    fn new(explorer: &'a Explorer, query: &'a PrepareQuery<'a>) -> GamesOfBoth<'a> {
        let of = |names: &[String], color| Selection {
            player: names.to_vec(),
            opponent: Vec::new(),
            color: Some(color),
            result: Vec::new(),
            ..query.filters.clone()
        };
        GamesOfBoth {
            theirs: of(&query.filters.opponent, !query.color),
            yours: of(&query.filters.player, query.color),
            explorer,
            query,
            frequent: RefCell::default(),
            origins: RefCell::default(),
        }
    }

    /// Returns the moves that were played in the position `pos` in games that pass `selection`. Moves with fewer than
    /// `least` games are left out.
    fn played(
        &self,
        pos: &VariantPosition,
        selection: &Selection,
        least: u64,
    ) -> Result<Vec<TreeMove>> {
        if !(self.query.should_continue)() {
            return Err(Error::Interrupted);
        }
        let mut moves = played(self.explorer, self.query.line.variant(), pos, selection)?;
        moves.retain(|mv| mv.games() >= least);
        Ok(moves)
    }

    /// Returns the moves of the player who prepares in the position `pos`, and stores their origin: the repertoire, the
    /// player's own games, or games of others against the opponent.
    fn answers(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let position = pos.position();
        let own: Vec<Move> = match self.query.repertoire {
            Some(repertoire) => repertoire(position)?,
            None => Vec::new(),
        };
        let yours = self.played(position, &self.yours, 1)?;
        let (moves, origin) = if !own.is_empty() {
            let moves = own.into_iter().map(|mv| {
                let known = yours.iter().find(|known| known.mv == mv);
                known
                    .cloned()
                    .unwrap_or(TreeMove::without_evaluation(mv, 0, None))
            });
            (moves.collect(), "repertoire")
        } else if !yours.is_empty() {
            let least = self.query.min_games.min(yours[0].games());
            (
                yours.into_iter().filter(|mv| mv.games() >= least).collect(),
                "you played this",
            )
        } else {
            let theirs = self.played(position, &self.theirs, self.query.min_games)?;
            (theirs, "others played this")
        };
        self.origins.borrow_mut().insert(pos.identity(), origin);
        Ok(moves)
    }
}

impl MoveSource for GamesOfBoth<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.played(pos.position(), &self.theirs, 1)?;
        for mv in moves.iter().filter(|mv| mv.games() >= self.query.min_games) {
            let mut after = pos.clone();
            after.play(mv.mv);
            self.frequent.borrow_mut().insert(after.identity());
        }
        Ok(moves)
    }
}

/// A move source that returns the moves of a given line, and the moves of a repertoire in all other positions.
struct AfterLine<'a> {
    built: &'a Built,
    /// The moves of the line, keyed by the identity (a hash) of the position before the move.
    before: FxHashMap<u64, Move>,
}

impl MoveSource for AfterLine<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        match self.before.get(&pos.identity()) {
            Some(mv) if BookMove::from(*mv).to_move(pos.position()) == Some(*mv) => {
                Ok(vec![TreeMove::without_evaluation(*mv, 1, None)])
            }
            _ => self.built.moves(pos),
        }
    }
}

//! What knows the moves of positions.

use shakmaty::uci::UciMove;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use crate::{
    book::Book,
    error::{Error, Result},
    position::Keyed,
    tally::Stats,
};

/// A move of a tree.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeMove {
    /// The move.
    pub mv: Move,
    /// Its weight; of a database the one that it has in a book before scaling, of an index the games.
    pub weight: u64,
    /// The games of a database or an index, for the side that moves.
    pub stats: Option<Stats>,
    /// What a book has learnt.
    pub learn: u32,
    /// Whether the source has the move. It does not have it where the tree [goes on by any reply](Replies).
    pub is_known: bool,
}

/// Knows the moves of positions.
pub trait Source {
    /// The legal moves that are known in a position, each once, the best first.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>>;
}

/// The records of the position whose move is legal, those of weight 0 among them, the heaviest first.
impl Source for Book {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let entries = self.moves_of(pos.position())?.into_iter();
        let legal = entries.filter_map(|entry| {
            Some(TreeMove {
                mv: entry.mv.to_move(pos.position())?,
                weight: entry.weight.into(),
                stats: None,
                learn: entry.learn,
                is_known: true,
            })
        });
        Ok(legal.collect())
    }
}

/// The rows of the position that are active, the most games first.
#[cfg(feature = "obs")]
impl Source for crate::obs::Obs {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let rows = crate::obs::Obs::moves(self, pos.position())?;
        let active = rows.into_iter().filter(crate::obs::Row::is_active);
        let legal = active.filter_map(|row| {
            Some(TreeMove {
                mv: crate::obs::legal_move(pos.position(), &row.mv)?.to_move(pos.position())?,
                weight: crate::book::Weights::default().weight(row.stats),
                stats: Some(row.stats),
                learn: 0,
                is_known: true,
            })
        });
        Ok(legal.collect())
    }
}

/// The moves that games played in the position, with the games of the positions that they lead to, whatever way
/// these took there; the most games first. The index must have statistics.
impl Source for crate::index::Index {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let Some(here) = self.stats(pos.key())? else {
            if self.games(pos.key())?.is_empty() {
                return Ok(Vec::new());
            }
            let problem = "has no statistics: make it with --explorer or --index-stats";
            return Err(Error::file(self.path(), problem));
        };
        let is_white = pos.position().turn().is_white();
        let mut moves = Vec::new();
        for mv in here.moves {
            // What is not legal here belongs to another position with the same key.
            let Some(mv) = mv.to_move(pos.position()) else {
                continue;
            };
            let mut after = pos.clone();
            after.play(mv);
            let stats = self.stats(after.key())?.unwrap_or_default();
            let (white, black) = (stats.white_wins(), stats.black_wins());
            let (wins, losses) = if is_white {
                (white, black)
            } else {
                (black, white)
            };
            moves.push(TreeMove {
                mv,
                weight: stats.games,
                stats: Some(Stats {
                    wins,
                    draws: stats.draws,
                    losses,
                }),
                learn: 0,
                is_known: true,
            });
        }
        // A stable sort: of equal ones, that of the smallest number comes first.
        moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
        Ok(moves)
    }
}

/// The games of an index that was made for the explorer, by the rules of a variant.
#[derive(Debug)]
pub struct Explored(pub crate::explorer::Explorer, pub crate::position::Variant);

/// The moves that games played in the position, with these games; the most games first.
impl Source for Explored {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        use crate::explorer::{Line, Query, View};
        let Explored(explorer, variant) = self;
        let line = Line::at(*variant, pos.position().clone());
        let query = Query {
            moves: None,
            top_games: 0,
            ..Query::new(line, View::Masters)
        };
        let played = explorer.answer(&query)?.moves.into_iter();
        let is_white = pos.position().turn().is_white();
        let moves = played.filter_map(|played| {
            let uci: UciMove = played.uci.parse().ok()?;
            let (wins, losses) = if is_white {
                (played.white, played.black)
            } else {
                (played.black, played.white)
            };
            Some(TreeMove {
                mv: uci.to_move(pos.position()).ok()?,
                weight: played.games(),
                stats: Some(Stats {
                    wins,
                    draws: played.draws,
                    losses,
                }),
                learn: 0,
                is_known: true,
            })
        });
        Ok(moves.collect())
    }
}

/// A source that also has a move where the other has none: each after which the other knows one. So the book of one
/// side goes on after the replies of the other.
#[derive(Debug)]
pub struct Replies<S>(pub S);

impl<S: Source> Source for Replies<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let known = self.0.moves(pos)?;
        if known.is_empty() {
            answered(&self.0, pos, &[])
        } else {
            Ok(known)
        }
    }
}

/// The lines of a side: what the source knows for it, against each reply after which the source knows a move.
#[derive(Debug)]
pub struct LinesOf<S>(pub S, pub Color);

impl<S: Source> Source for LinesOf<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let LinesOf(source, side) = self;
        let known = source.moves(pos)?;
        if pos.position().turn() == *side {
            return Ok(known);
        }
        answered(source, pos, &known)
    }
}

/// The legal moves after which a source knows a move, with what is known of them; those that were played most come
/// first. Moves that are not known follow, those that were answered most first.
fn answered(
    source: &impl Source,
    pos: &Keyed<VariantPosition>,
    known: &[TreeMove],
) -> Result<Vec<TreeMove>> {
    let played = |mv: &TreeMove| mv.stats.map_or(mv.weight, Stats::games);
    let mut replies = Vec::new();
    for mv in pos.position().legal_moves() {
        let mut after = pos.clone();
        after.play(mv);
        let answers = source.moves(&after)?;
        if answers.is_empty() {
            continue;
        }
        let reply = match known.iter().find(|known| known.mv == mv) {
            Some(known) => (played(known), known.clone()),
            None => {
                let reply = TreeMove {
                    mv,
                    weight: 0,
                    stats: None,
                    learn: 0,
                    is_known: false,
                };
                (answers.iter().map(played).sum(), reply)
            }
        };
        replies.push(reply);
    }
    // A known one was played here, others only lead where games came by other moves.
    replies.sort_by_key(|(played, reply)| std::cmp::Reverse((reply.is_known, *played)));
    Ok(replies.into_iter().map(|(_, reply)| reply).collect())
}

/// The moves of two sources.
#[derive(Debug)]
pub struct Union<A, B>(pub A, pub B);

impl<A: Source, B: Source> Source for Union<A, B> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let mut moves = self.0.moves(pos)?;
        for mv in self.1.moves(pos)? {
            if !moves.iter().any(|other| other.mv == mv.mv) {
                moves.push(mv);
            }
        }
        Ok(moves)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        (**self).moves(pos)
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        (**self).moves(pos)
    }
}

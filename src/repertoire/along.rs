//! What a repertoire says of the last position of a line.

use rustc_hash::FxHashSet;
use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{Known, reach::Walk, san};
use crate::{
    error::Result,
    explorer::{Explorer, Filters, Line},
    position::{BookMove, Keyed, Variant},
    progress::Meter,
    tree::{Event, Limits, LinesOf, Order, Source, Tree, TreeMove, played},
};

/// The ways to the positions of a repertoire of a side.
#[derive(Debug)]
pub struct Ways {
    color: Color,
    /// Positions with those that are one half-move before them, in order.
    before: Vec<(u64, u64)>,
}

impl Ways {
    /// Walks through a repertoire.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn new(repertoire: &Known, color: Color) -> Result<Ways> {
        let (mut before, meter) = (Vec::new(), Meter::default());
        for start in repertoire.starts() {
            let lines = LinesOf(repertoire, color);
            let tree = Tree::new(lines, start, Limits::default(), &meter);
            tree.walk(Order::Positions, &mut |event| {
                if let Event::Move(branch) = event {
                    let mut after = branch.pos.clone();
                    after.play(branch.mv.mv);
                    before.push((after.identity(), branch.pos.identity()));
                }
                Ok(())
            })?;
        }
        before.sort_unstable();
        before.dedup();
        Ok(Ways { color, before })
    }

    /// The positions that are one half-move before one.
    fn before(&self, pos: u64) -> impl Iterator<Item = u64> {
        let first = self.before.partition_point(|(after, _)| *after < pos);
        let of_pos = self.before[first..].iter();
        let of_pos = of_pos.take_while(move |(after, _)| *after == pos);
        of_pos.map(|(_, before)| *before)
    }

    /// The positions from which lines lead to one.
    fn leading_to(&self, pos: u64) -> FxHashSet<u64> {
        let (mut found, mut waiting) = (FxHashSet::default(), vec![pos]);
        while let Some(pos) = waiting.pop() {
            waiting.extend(self.before(pos).filter(|before| found.insert(*before)));
        }
        found
    }
}

/// What a repertoire says of the last position of a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineReport {
    /// Whether the position is in the repertoire: it has moves, or an own move leads there.
    pub is_known: bool,
    /// One game in this many comes here by the lines of the repertoire; `None` if none does.
    pub one_in: Option<f64>,
    /// The own moves, or the replies that it answers.
    pub moves: Vec<LineMove>,
    /// The replies that were played and that it does not answer, those of most games first.
    pub gaps: Vec<LineGap>,
}

/// A move of a repertoire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LineMove {
    /// In UCI notation, castling as king takes rook.
    pub uci: String,
    /// In SAN.
    pub san: String,
}

/// A reply without an answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineGap {
    /// The reply.
    #[serde(flatten)]
    pub mv: LineMove,
    /// One game in this many comes here and plays it.
    pub one_in: Option<f64>,
    /// The games of the reply.
    pub games: u64,
}

/// What a repertoire says where a line has come. Replies are those of the games that pass the filters.
///
/// # Errors
///
/// A file that cannot be read, or a source that does not exist.
pub fn along(
    line: &Line,
    repertoire: &Known,
    ways: &Ways,
    explorer: &Explorer,
    filters: &Filters,
) -> Result<LineReport> {
    let pos = Keyed::new(line.position().clone());
    let towards = Towards {
        pos: pos.identity(),
        before: ways.leading_to(pos.identity()),
        explorer,
        variant: line.variant(),
        filters,
    };
    let start = repertoire.start(line.variant(), ways.color)?;
    let reach = towards.reach_from(&start, repertoire, ways.color)?;
    let one_in = |share: f64| {
        let reach = reach * share;
        (reach > 0.0).then(|| 1.0 / reach)
    };
    let named = |mv: &TreeMove| LineMove {
        uci: BookMove::from(mv.mv).to_string(),
        san: san(pos.position(), mv.mv),
    };
    let known = LinesOf(repertoire, ways.color).moves(&pos)?;
    let mut report = LineReport {
        is_known: !known.is_empty()
            || ways.before(pos.identity()).next().is_some()
            || led_here(line, ways.color, repertoire)?,
        one_in: one_in(1.0),
        moves: known.iter().map(named).collect(),
        gaps: Vec::new(),
    };
    if report.is_known && pos.position().turn() != ways.color {
        let moves = played(explorer, line.variant(), pos.position(), filters)?;
        let games: u64 = moves.iter().map(TreeMove::games).sum();
        let is_gap = |mv: &&TreeMove| known.iter().all(|known| known.mv != mv.mv);
        let gaps = moves.iter().filter(is_gap).map(|mv| LineGap {
            mv: named(mv),
            one_in: one_in(mv.games() as f64 / games.max(1) as f64),
            games: mv.games(),
        });
        report.gaps = gaps.collect();
    }
    Ok(report)
}

/// The replies of the games that pass filters, on the ways to a position.
struct Towards<'a> {
    pos: u64,
    /// The positions before it.
    before: FxHashSet<u64>,
    explorer: &'a Explorer,
    variant: Variant,
    filters: &'a Filters,
}

impl Towards<'_> {
    /// The chance to meet the position.
    fn reach_from(&self, start: &VariantPosition, repertoire: &Known, color: Color) -> Result<f64> {
        let walk = Walk {
            start,
            color,
            source: self,
            max_ply: None,
            // There are no more positions than in the repertoire, with the replies.
            memory: usize::MAX,
            meter: &Meter::default(),
        };
        let met = walk.run(&mut |pos, _| {
            let moves = match self.leads_on(pos) {
                true => repertoire.moves(pos)?,
                false => Vec::new(),
            };
            Ok((!moves.is_empty()).then_some(moves))
        })?;
        Ok(met.reach_of(self.pos).unwrap_or(0.0))
    }

    fn leads_on(&self, pos: &Keyed<VariantPosition>) -> bool {
        pos.identity() != self.pos && self.before.contains(&pos.identity())
    }
}

impl Source for Towards<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        match self.leads_on(pos) {
            true => played(self.explorer, self.variant, pos.position(), self.filters),
            false => Ok(Vec::new()),
        }
    }
}

/// Whether the last move of a line is an own move of the repertoire.
fn led_here(line: &Line, color: Color, repertoire: &Known) -> Result<bool> {
    let Some(mv) = line.moves().last() else {
        return Ok(false);
    };
    let before = &line.positions()[line.moves().len() - 1];
    if before.turn() != color {
        return Ok(false);
    }
    let known = repertoire.moves(&Keyed::new(before.clone()))?;
    Ok(known.iter().any(|known| known.mv == *mv))
}

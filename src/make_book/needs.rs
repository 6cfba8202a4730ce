//! The data that a run collects.

use super::options::MakeBook;

/// The data that the outputs of a run need besides its totals.
#[derive(Default, Debug)]
pub(super) struct Needs {
    /// Counts by the keys of positions.
    pub keys: bool,
    /// Counts by the identities of positions. In standard chess these are the keys.
    pub identities: bool,
    /// Which identities share a key.
    pub shared_keys: bool,
    /// Counts by class, whose sums are of half-moves that no book can have too.
    pub classes: bool,
    /// Where games started, and how many.
    pub starts: bool,
    /// Also the positions without a move that is played often enough to be kept.
    pub rare_positions: bool,
    /// How much the counted moves weigh in a book.
    pub weights: bool,
    /// Only variants that the Polyglot format has a number for.
    pub numbered_variants: bool,
    /// The identities of the positions of each game.
    pub game_identities: bool,
    /// The length of each game, with the half-moves that do not count.
    pub game_lengths: bool,
    /// The EPD of the start of each game that does not start as usual.
    pub game_starts: bool,
}

impl Needs {
    /// Adds what an output needs that is made of the moves of all positions.
    pub(super) fn all_positions(&mut self, options: &MakeBook) {
        let by_identity = options.distinguishes_variants();
        self.keys |= !by_identity;
        self.identities |= by_identity;
        self.starts = true;
        self.rare_positions = true;
    }

    /// Whether the identities of the positions of each game are needed.
    pub(super) fn line_identities(&self) -> bool {
        self.identities || self.game_identities
    }

    /// Whether the report says how many half-moves no book can have.
    pub(super) fn left_out(&self) -> bool {
        self.keys || self.shared_keys || self.classes
    }

    /// How many tallies the run has.
    pub(super) fn tallies(&self) -> usize {
        let tallies = [self.keys, self.identities, self.shared_keys];
        tallies.into_iter().filter(|wanted| *wanted).count()
    }
}

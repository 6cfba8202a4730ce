//! The data that a run collects because its outputs need it.

use super::options::MakeBook;

/// The data that a run must collect for its outputs, in addition to totals.
#[derive(Default, Debug)]
pub(super) struct Needs {
    /// Counts by position key.
    pub keys: bool,
    /// Counts by identity. In standard chess, identities equal keys.
    pub identities: bool,
    /// Pairs of a key and an identity, to find identities that share a key.
    pub shared_keys: bool,
    /// Counts by class. Their sums include half-moves whose positions have no valid book key.
    pub classes: bool,
    /// The positions in which games started, with numbers of games.
    pub starts: bool,
    /// Positions in which no move was played often enough to be kept.
    pub rare_positions: bool,
    /// The weights of moves in a book.
    pub weights: bool,
    /// A restriction to variants that have a number in the Polyglot format. Games of other variants are filtered.
    pub numbered_variants: bool,
    /// The identities of the positions of each game.
    pub game_identities: bool,
    /// The opening of each game.
    pub openings: bool,
    /// The length of each game, including half-moves that are not counted.
    pub game_lengths: bool,
    /// The EPD of the starting position of each game that does not begin in the usual one.
    pub game_starts: bool,
}

impl Needs {
    /// Adds the needs of an output that contains the moves of all positions.
    pub(super) fn all_positions(&mut self, options: &MakeBook) {
        let by_identity = options.distinguishes_variants();
        self.keys |= !by_identity;
        self.identities |= by_identity;
        self.starts = true;
        self.rare_positions = true;
    }

    /// Returns `true` if the identities of the positions of each game are needed.
    pub(super) fn line_identities(&self) -> bool {
        self.identities || self.game_identities || self.openings
    }

    /// Returns `true` if the report must say how many half-moves are left out because their positions have no valid book
    /// key.
    pub(super) fn left_out(&self) -> bool {
        self.keys || self.shared_keys || self.classes
    }

    /// Returns the number of tallies of the run.
    pub(super) fn tallies(&self) -> usize {
        let tallies = [self.keys, self.identities, self.shared_keys];
        tallies.into_iter().filter(|wanted| *wanted).count()
    }
}

//! The data that a run must collect for its outputs.

use super::options::MakeBook;

/// The kinds of data that the outputs of a `make-book` run need. Apart from the total numbers of games and half-moves,
/// a run collects only this data.
#[derive(Default, Debug)]
pub(super) struct Needs {
    /// Counts of moves by position key.
    pub keys: bool,
    /// Counts of moves by identity, a hash that distinguishes positions with equal keys. In standard chess, identities
    /// equal keys.
    pub identities: bool,
    /// Pairs of a position key and an identity, to find identities that share a key.
    pub shared_keys: bool,
    /// Counts of moves by class. Their sums include half-moves whose positions have no valid book key.
    pub classes: bool,
    /// The positions in which games started, with their numbers of games.
    pub starts: bool,
    /// Positions in which no move was played often enough to be kept.
    pub rare_positions: bool,
    /// The weights of moves in a book.
    pub weights: bool,
    /// Whether only games of variants that have a number in the Polyglot format are counted. If no output needs [all
    /// variants](Needs::all_variants), games of other variants are filtered out.
    pub numbered_variants: bool,
    /// Whether games of all variants are needed, for an output whose format differs from that of books.
    pub all_variants: bool,
    /// The identities (hashes) of the positions of each game.
    pub game_identities: bool,
    /// The opening of each game.
    pub openings: bool,
    /// The length of each game, including half-moves that are not counted.
    pub game_lengths: bool,
    /// A hash of the starting position and all moves of each game, including half-moves that are not counted.
    pub game_hashes: bool,
    /// The EPD of the starting position of each game that does not begin in the usual one.
    pub game_starts: bool,
}

impl Needs {
    /// Adds the data from which all counted positions can be found again, by playing the counted moves: the results of
    /// the moves, and the starting positions of the games. Counts directories and OOBS databases need this data. If the
    /// options allow variants, results are counted by identity (a hash that distinguishes positions with equal keys),
    /// otherwise by position key.
    pub(super) fn add_all_positions(&mut self, options: &MakeBook) {
        let by_identity = options.distinguishes_variants();
        self.keys |= !by_identity;
        self.identities |= by_identity;
        self.starts = true;
        self.rare_positions = true;
    }

    /// Returns `true` if an output needs the identity of each position on the main line of a game. An identity is a
    /// hash that distinguishes positions with equal keys.
    pub(super) fn line_identities(&self) -> bool {
        self.identities || self.game_identities || self.openings
    }

    /// Returns `true` if the run must count the half-moves that a book cannot contain, because their position has no
    /// valid book key.
    pub(super) fn counts_unbookable(&self) -> bool {
        self.keys || self.shared_keys || self.classes
    }

    /// Returns the number of tallies that the run needs. A tally is a store that adds up the results of moves, for
    /// example by position key.
    pub(super) fn tallies(&self) -> usize {
        let tallies = [self.keys, self.identities, self.shared_keys];
        tallies.into_iter().filter(|wanted| *wanted).count()
    }
}

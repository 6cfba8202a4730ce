//! Collecting half-moves by class, for counts.

use rustc_hash::FxHashSet;
use shakmaty::Color;

use crate::{
    counts::{ClassRecord, ClassTally, CountClass, Grouping, KeyedIdentity},
    error::Result,
    make_book::{
        sequence::retain_stretches,
        sink::{BatchSink, CountedGame},
    },
    pgn::{Date, GameReader, RatingGroup, Speed, rating},
    position::BookMove,
};

/// The half-moves of a batch, by class.
pub(super) struct ClassBatch<'a> {
    tally: &'a ClassTally,
    by: Grouping,
    has_identities: bool,
    records: Vec<ClassRecord>,
    /// The keys of the positions, if the records are stored under identities.
    keys: Vec<KeyedIdentity>,
    /// The numbers of the counted games in the batch, with the number of records of each.
    games: Vec<(u32, usize)>,
    /// The class of the current game.
    class: CountClass,
    /// The ratings of White and Black in the current game, 0 if unknown.
    ratings: [u16; 2],
}

impl<'a> ClassBatch<'a> {
    pub(super) fn new(
        tally: &'a ClassTally,
        by: Grouping,
        has_identities: bool,
        plies: usize,
    ) -> ClassBatch<'a> {
        ClassBatch {
            tally,
            by,
            has_identities,
            records: Vec::with_capacity(plies),
            keys: Vec::with_capacity(if has_identities { plies } else { 0 }),
            games: Vec::new(),
            class: CountClass::default(),
            ratings: [0; 2],
        }
    }

    /// Adds a record of a move in a position, unless the record has no key. The move [`BookMove::NONE`] records that the
    /// game ends in the position.
    fn push(&mut self, position: KeyedIdentity, mv: BookMove, turn: Color, of: OfGame) {
        let key = match self.has_identities {
            true => position.identity(),
            false => position.key(),
        };
        if key == 0 {
            return;
        }
        let class = CountClass {
            book_only: of.book_only,
            ..self.class
        };
        let record = ClassRecord::new(key, mv, turn, class, of.winner, of.rating);
        self.records.push(record);
        if self.has_identities {
            self.keys.push(position);
        }
    }
}

/// The data of a half-move that its class does not determine.
struct OfGame {
    book_only: bool,
    winner: Option<Color>,
    rating: u16,
}

/// The number of half-moves from which the positions of a game are kept in a hash set. Nearly all games are shorter.
const LONG_GAME: usize = 512;

/// The set of positions in which later moves of a game are played.
struct LaterPositions {
    /// A Bloom filter with one bit per position. In a short game it avoids most searches for a repetition.
    bloom: [u64; 16],
    /// The positions of a long game, in which searches would take time quadratic in its length.
    all: Option<FxHashSet<u64>>,
}

impl LaterPositions {
    /// Creates an empty set for a game with this number of half-moves.
    fn new(plies: usize) -> LaterPositions {
        LaterPositions {
            bloom: [0; 16],
            all: (plies > LONG_GAME).then(FxHashSet::default),
        }
    }

    /// Returns the index of the word and the bit that belong to a position.
    fn bit(identity: u64) -> (usize, u64) {
        ((identity >> 6) as usize % 16, 1 << (identity % 64))
    }

    fn add(&mut self, identity: u64) {
        let (word, bit) = LaterPositions::bit(identity);
        self.bloom[word] |= bit;
        if let Some(all) = &mut self.all {
            all.insert(identity);
        }
    }

    /// Returns `true` if `identity` has been added. `added` must contain exactly the positions that have been added.
    fn has(&self, identity: u64, added: &[u64]) -> bool {
        let (word, bit) = LaterPositions::bit(identity);
        self.bloom[word] & bit != 0
            && match &self.all {
                Some(all) => all.contains(&identity),
                None => added.contains(&identity),
            }
    }
}

impl BatchSink for ClassBatch<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, _batch_offset: u64) {
        let tags = game.tags();
        self.ratings = [&b"WhiteElo"[..], b"BlackElo"]
            .map(|name| tags.get(name).and_then(rating).unwrap_or(0));
        let date = Date::of_tags(tags);
        let month =
            u32::from(date.year().unwrap_or(0)) * 100 + u32::from(date.month().unwrap_or(0));
        self.class = self.by.of(CountClass {
            speed: Speed::of_tag(tags.get(b"TimeControl")) as u8,
            group: RatingGroup::of_game(self.ratings).map_or(0, |group| group.number() as u8 + 1),
            month,
            book_only: false,
        });
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        let before = self.records.len();
        let winner = game.result.winner();
        let turn_at = |ply: usize| match ply % 2 {
            0 => game.first_turn,
            _ => !game.first_turn,
        };
        // Go backwards from the last half-move, so that it is known which positions are repeated later.
        let mut later = LaterPositions::new(game.plies.len());
        let identities = game.identities.iter().zip(game.exact_identities);
        let moves = game.plies.iter().zip(identities).enumerate().rev();
        for (at, (ply, (identity, exact))) in moves {
            let turn = turn_at(at);
            let of = OfGame {
                book_only: later.has(*identity, &game.identities[at + 1..]),
                winner,
                rating: self.ratings[usize::from(turn.is_black())],
            };
            later.add(*identity);
            let key = if ply.in_book { ply.key } else { 0 };
            self.push(KeyedIdentity::new(key, *exact), ply.mv, turn, of);
        }
        if !later.has(game.last_identity, game.identities) {
            let of = OfGame {
                book_only: false,
                winner,
                rating: 0,
            };
            let key = if game.last_in_book { game.last_key } else { 0 };
            let last = KeyedIdentity::new(key, game.last_exact_identity);
            self.push(last, BookMove::NONE, turn_at(game.plies.len()), of);
        }
        for branch in game.branches {
            // A variation has neither a result nor players.
            let of = OfGame {
                book_only: true,
                winner: None,
                rating: 0,
            };
            let key = if branch.in_book { branch.key } else { 0 };
            let position = KeyedIdentity::new(key, branch.identity);
            self.push(position, branch.mv, branch.turn, of);
        }
        self.games.push((game.number, self.records.len() - before));
    }

    fn leave_out(&mut self, games: &[u32]) {
        let is_kept = |number| games.binary_search(number).is_err();
        let stretches = self.games.iter();
        let stretches = stretches.map(|(number, records)| (*records, is_kept(number)));
        retain_stretches(&mut self.records, stretches.clone());
        retain_stretches(&mut self.keys, stretches);
    }

    fn add(self: Box<Self>) -> Result<()> {
        self.tally.append(&self.records, &self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_positions_of_a_long_game_are_not_searched_for() {
        for plies in [LONG_GAME, LONG_GAME + 1] {
            let mut later = LaterPositions::new(plies);
            later.add(1);
            assert!(later.has(1, &[1]));
            // The numbers share a bit of the filter.
            assert!(!later.has(1 + (1 << 10), &[1]));
            // Only a short game is searched.
            assert_eq!(later.has(1, &[]), plies > LONG_GAME);
        }
    }
}

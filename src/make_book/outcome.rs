//! The outcome of replaying a batch of games.

use std::collections::BTreeMap;

use shakmaty::Color;

use super::{
    main_line::MainLine,
    needs::Needs,
    report::{FilteredVariant, Rejection, Totals},
    sink::BatchSink,
    variations::{VariationPly, Variations},
};
use crate::{
    pgn::{GameResult, SkippedParts},
    tally::{CountRecord, KeyedIdentity, Stats},
};

/// The data collected from one batch of games, or from counts.
#[derive(Default)]
pub(super) struct Outcome<'a> {
    pub totals: Totals,
    /// A record for each counted half-move, under the key of its position, if the run counts by key.
    pub records: Vec<CountRecord>,
    /// A record for each counted half-move, under the [exact identity](crate::position::Keyed::exact_identity) of its
    /// position, if the run counts by identity.
    pub identity_records: Vec<CountRecord>,
    /// The key and the identity of each position, if the run collects such pairs. The key is 0 if it is not a valid book
    /// key.
    pub pairs: Vec<KeyedIdentity>,
    /// Unusual starting positions of games, as EPDs with numbers of games, if the run collects them.
    pub starts: Vec<(Vec<u8>, u64)>,
    /// The number of games that were filtered because of their variant.
    pub filtered_variants: BTreeMap<FilteredVariant, u64>,
    /// The first rejected games. Their numbers count from the first game of the batch.
    pub rejected: Vec<Rejection>,
    /// Whether any text of the batch looked like PGN.
    pub recognised: bool,
    /// Whether the batch contained anything but blanks.
    pub has_text: bool,
    /// The parts of the input that were not read.
    pub skipped: SkippedParts,
    /// The data that each sink that uses games has collected from the batch.
    pub taken: Vec<Box<dyn BatchSink + 'a>>,
    /// All counted games of the batch, in their order, if duplicates are dropped. The totals of these games are stored
    /// only here, and all records of the outcome belong to these games.
    pub candidates: Vec<PossibleDuplicate>,
}

/// A game that is counted unless an earlier game is equal to it.
pub(super) struct PossibleDuplicate {
    /// The fingerprint, or `None` if the game cannot be a duplicate.
    pub fingerprint: Option<u128>,
    /// The number of the game in the batch.
    pub number: u32,
    /// The amounts that the game adds to the totals.
    pub totals: Totals,
    /// The number of records by key that the game added to the outcome of its batch.
    pub records: usize,
    /// The number of records by identity that the game added to the outcome of its batch.
    pub identity_records: usize,
}

impl Outcome<'_> {
    /// Creates an outcome without games, for counts.
    pub(super) fn of_counts() -> Self {
        Outcome {
            recognised: true,
            has_text: true,
            ..Outcome::default()
        }
    }

    /// Adds the half-moves of a game to the totals and the records.
    pub(super) fn count(
        &mut self,
        needs: &Needs,
        line: &MainLine,
        result: GameResult,
        first_turn: Color,
    ) {
        self.totals.plies += line.plies.len() as u64;
        if needs.left_out() {
            self.totals.ambiguous_castling += line.not_for_books;
        }
        let stats =
            [first_turn, !first_turn].map(|turn| (turn, Stats::of_game(result.winner(), turn)));
        let plies = line.plies.iter().enumerate();
        if needs.keys {
            let records = plies.clone().map(|(at, ply)| {
                let (turn, stats) = stats[at % 2];
                CountRecord::new(ply.key, ply.mv, turn, stats)
            });
            if line.not_for_books == 0 {
                self.records.extend(records);
            } else {
                let for_books = records.zip(&line.plies).filter(|(_, ply)| ply.in_book);
                self.records.extend(for_books.map(|(record, _)| record));
            }
        }
        if needs.shared_keys {
            let identified = line.plies.iter().zip(&line.exact_identities);
            let pairs = identified.map(|(ply, identity)| {
                let key = if ply.in_book { ply.key } else { 0 };
                KeyedIdentity::new(key, *identity)
            });
            self.pairs.extend(pairs);
        }
        if needs.identities {
            let records = plies
                .zip(&line.exact_identities)
                .map(|((at, ply), identity)| {
                    let (turn, stats) = stats[at % 2];
                    CountRecord::new(*identity, ply.mv, turn, stats)
                });
            self.identity_records.extend(records);
        }
    }

    /// Adds the half-moves of a game's variations to the totals and the records.
    pub(super) fn count_variations(&mut self, needs: &Needs, variations: &Variations) {
        let totals = &mut self.totals;
        totals.plies += variations.branches.len() as u64;
        totals.null_moves += variations.null_moves;
        totals.unplayable_variations += variations.unplayable;
        for branch in &variations.branches {
            let VariationPly {
                key,
                identity,
                mv,
                turn,
                in_book,
            } = *branch;
            if needs.left_out() {
                totals.ambiguous_castling += u64::from(!in_book);
            }
            // Count the half-move as a draw, because a variation has no result.
            let stats = Stats::of_game(None, turn);
            if needs.keys && in_book {
                self.records.push(CountRecord::new(key, mv, turn, stats));
            }
            if needs.identities {
                let record = CountRecord::new(identity, mv, turn, stats);
                self.identity_records.push(record);
            }
            if needs.shared_keys {
                let key = if in_book { key } else { 0 };
                self.pairs.push(KeyedIdentity::new(key, identity));
            }
        }
    }
}

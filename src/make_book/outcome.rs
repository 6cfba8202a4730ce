//! The result of a batch of games, which threads hand over.

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
    pgn::GameResult,
    tally::{CountRecord, KeyedIdentity, Stats},
};

/// The result of a batch.
#[derive(Default)]
pub(super) struct Outcome<'a> {
    pub totals: Totals,
    /// A record for each half-move that counts, if the run counts by keys.
    pub records: Vec<CountRecord>,
    /// The records under the [exact identity](crate::position::Keyed::exact_identity) of each position instead of
    /// its key, if the run counts by identities.
    pub identity_records: Vec<CountRecord>,
    /// The key of each position, 0 if it is not for books, and its identity, if the run pairs them.
    pub pairs: Vec<KeyedIdentity>,
    /// Positions other than the usual one in which games started that may count, if the run needs to know: the EPD of
    /// each, and how many games.
    pub starts: Vec<(Vec<u8>, u64)>,
    /// Games that were filtered for their variant.
    pub filtered_variants: BTreeMap<FilteredVariant, u64>,
    /// The first rejected games, numbered from the first game of the batch.
    pub rejected: Vec<Rejection>,
    /// Whether anything in the batch looked like PGN.
    pub recognised: bool,
    /// Whether there was more than blanks.
    pub has_text: bool,
    /// Where text first stood that belongs to no game.
    pub stray_text: Option<u64>,
    /// The offset of the first line among tags that is no tag pair.
    pub bad_tag: Option<u64>,
    /// The data that the outputs take of its games.
    pub taken: Vec<Box<dyn BatchSink + 'a>>,
    /// All games that count, if duplicates are dropped: their totals are here alone, and all records are theirs, in
    /// this order.
    pub candidates: Vec<PossibleDuplicate>,
}

/// A game that counts unless one before it is the same.
pub(super) struct PossibleDuplicate {
    pub fingerprint: Option<u128>,
    /// Its number in the batch.
    pub number: u32,
    /// Its share of the totals.
    pub totals: Totals,
    /// How many records it added to the outcome of its batch, by keys and by identities.
    pub records: usize,
    pub identity_records: usize,
}

impl Outcome<'_> {
    /// Nothing, of counts.
    pub(super) fn of_counts() -> Self {
        Outcome {
            recognised: true,
            has_text: true,
            ..Outcome::default()
        }
    }

    /// Counts the half-moves of a game.
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

    /// Counts those of its variations.
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
            // A variation has no result.
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

//! Adding the half-moves of a game to what came out of its batch.

use shakmaty::Color;

use super::{MakeBook, main_line::MainLine, outcome::Outcome, variations::Variations};
use crate::{
    pgn::GameResult,
    tally::{CountRecord, KeyedIdentity, Stats},
};

impl Outcome {
    /// Counts the half-moves of a game.
    pub(super) fn count(
        &mut self,
        options: &MakeBook,
        line: &MainLine,
        result: GameResult,
        first_turn: Color,
    ) {
        self.totals.plies += line.plies.len() as u64;
        if options.tells_left_out() {
            self.totals.left_out += line.not_for_books;
        }
        let stats =
            [first_turn, !first_turn].map(|turn| (turn, Stats::of_game(result.winner(), turn)));
        let plies = line.plies.iter().enumerate();
        if options.counts_keys() {
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
        if options.pairs_keys() {
            let identified = line.plies.iter().zip(&line.identities);
            let pairs = identified.map(|(ply, identity)| {
                let key = if ply.in_book { ply.key } else { 0 };
                KeyedIdentity::new(key, *identity)
            });
            self.pairs.extend(pairs);
        }
        if options.counts_identities() {
            let records = plies.zip(&line.identities).map(|((at, ply), identity)| {
                let (turn, stats) = stats[at % 2];
                CountRecord::new(*identity, ply.mv, turn, stats)
            });
            self.identity_records.extend(records);
        }
    }

    /// Counts those of its variations.
    pub(super) fn count_variations(&mut self, options: &MakeBook, variations: &Variations) {
        let totals = &mut self.totals;
        totals.plies += variations.plies();
        totals.null_moves += variations.null_moves;
        totals.unplayable_variations += variations.unplayable;
        if options.tells_left_out() {
            totals.left_out += variations.not_for_books();
        }
        if options.counts_keys() {
            self.records.extend(variations.records());
        }
        if options.counts_identities() {
            let records = variations.identity_records();
            self.identity_records.extend(records);
        }
        if options.pairs_keys() {
            self.pairs.extend(variations.pairs());
        }
    }
}

//! Refusing to write outputs without content in the place of old ones.

use super::{MakeBook, Report, write::Counted};
use crate::{
    error::{Error, Result},
    tally::{Counts, MoveFilter},
};

impl MakeBook {
    /// Refuses outputs of no games.
    pub(super) fn refuse_without_games(&self, report: &Report) -> Result<()> {
        let totals = &report.totals;
        // The moves before an illegal one count without their game.
        let is_empty = totals.games.counted == 0 && totals.plies == 0;
        if !is_empty || self.allow_empty {
            return Ok(());
        }
        let mut reason = match totals.games.read {
            0 => "there is no game".to_owned(),
            games => format!(
                "none of {games} games counts ({})",
                totals.why_none_counts()
            ),
        };
        if let Some(first) = report.rejected.first() {
            reason.push_str(&format!("; rejected first: {first}"));
        }
        Err(Error::Empty { reason })
    }
}

impl Counted<'_> {
    /// Refuses an output without any move left. Some keep those of weight 0.
    pub(super) fn refuse_without_moves(
        &self,
        options: &MakeBook,
        keeps_weightless: bool,
    ) -> Result<()> {
        if options.allow_empty || self.weighed().summary().entries > 0 {
            return Ok(());
        }
        let counts = self.counts.weighable().expect("some were weighed");
        let left_out = LeftOut::count(counts, &options.move_filter)?;
        if keeps_weightless && left_out.weightless > 0 {
            return Ok(());
        }
        let reason = match left_out.all() {
            0 => "there is no move".to_owned(),
            all => format!("none of {all} moves is kept ({left_out})"),
        };
        Err(Error::Empty { reason })
    }
}

/// Moves that are not kept, by the first filter that rejected each.
#[derive(Default)]
struct LeftOut {
    rare: u64,
    bad: u64,
    other_side: u64,
    weightless: u64,
    min_game: u64,
}

impl LeftOut {
    fn count(counts: &Counts, filter: &MoveFilter) -> Result<LeftOut> {
        let mut left_out = LeftOut {
            min_game: filter.min_game,
            rare: counts.rare().moves,
            ..LeftOut::default()
        };
        let side_only = MoveFilter {
            min_game: 0,
            min_score: 0.0,
            ..filter.clone()
        };
        for position in counts.positions() {
            let position = position?;
            for count in position.moves {
                let number = if count.stats.games() < filter.min_game {
                    &mut left_out.rare
                } else if !side_only.selects(position.turn, count.stats) {
                    &mut left_out.other_side
                } else if !filter.selects(position.turn, count.stats) {
                    &mut left_out.bad
                } else {
                    &mut left_out.weightless
                };
                *number += 1;
            }
        }
        Ok(left_out)
    }

    fn all(&self) -> u64 {
        self.rare + self.bad + self.other_side + self.weightless
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rare = format!(
            "played fewer than {} times: --min-game 1 keeps them",
            self.min_game
        );
        let reasons = [
            (self.rare, rare.as_str()),
            (self.other_side, "of the other side"),
            (self.bad, "of too low a score"),
            (self.weightless, "of weight 0"),
        ];
        let texts: Vec<String> = reasons
            .iter()
            .filter(|(moves, _)| *moves > 0)
            .map(|(moves, reason)| format!("{moves} {reason}"))
            .collect();
        f.write_str(&texts.join(", "))
    }
}

//! Changing the records of a position.

use std::cmp::Reverse;

use shakmaty::variant::VariantPosition;

use super::{Change, EditSummary, NewWeight, PositionEdit};
use crate::{
    book::{
        Book, Entry,
        moves::{as_the_format_says, each_move_once},
    },
    error::{Error, Result},
    position::{BookMove, key, read_move},
};

/// How far a share may be from what was asked for, as long as larger weights would help, in percent.
const CLOSE: f64 = 0.5;

/// The records of a position after its changes, in the order of books.
pub(super) fn edited(
    book: &Book,
    edit: &PositionEdit,
    before: Vec<Entry>,
    summary: &mut EditSummary,
) -> Result<Vec<Entry>> {
    let problem = |problem: String| {
        let fen = crate::position::fen_of(&edit.pos);
        Error::file(book.path(), format!("{problem} in {fen}"))
    };
    let mut entries = before.clone();
    let mut shares: Vec<(BookMove, f64)> = Vec::new();
    for change in &edit.changes {
        match change {
            Change::Set { mv, weight } => {
                let mv = legal(&edit.pos, mv).map_err(problem)?;
                shares.retain(|(other, _)| *other != mv);
                let weight = match weight {
                    NewWeight::Absolute(weight) => *weight,
                    NewWeight::Percent(percent) => {
                        shares.push((mv, *percent));
                        0
                    }
                };
                set(&mut entries, &edit.pos, mv, weight);
            }
            Change::Remove(text) => {
                let mv = removable(&edit.pos, &entries, text).map_err(problem)?;
                shares.retain(|(other, _)| *other != mv);
                entries.retain(|entry| as_the_format_says(&edit.pos, entry.mv) != mv);
            }
            Change::RemovePosition if entries.is_empty() => {
                return Err(problem("the book has no move".to_owned()));
            }
            Change::RemovePosition => {
                shares.clear();
                entries.clear();
            }
        }
    }
    share(&mut entries, &shares).map_err(|text| problem(text.to_owned()))?;
    entries.sort_by_key(|entry| (Reverse(entry.weight), entry.mv));
    summarize(&edit.pos, &before, &entries, summary);
    Ok(entries)
}

/// A move as people write it.
fn legal(pos: &VariantPosition, text: &str) -> Result<BookMove, String> {
    let mv = read_move(pos, text.as_bytes());
    mv.map(BookMove::from)
        .map_err(|err| format!("\"{}\": {err}", text.escape_debug()))
}

/// The move of a record, which is legal or not.
fn removable(pos: &VariantPosition, entries: &[Entry], text: &str) -> Result<BookMove, String> {
    let named = entries.iter().find(|entry| entry.mv.uci(pos) == text);
    let mv = match named {
        Some(entry) => as_the_format_says(pos, entry.mv),
        None => legal(pos, text)?,
    };
    let mut moves = entries
        .iter()
        .map(|entry| as_the_format_says(pos, entry.mv));
    if moves.any(|other| other == mv) {
        return Ok(mv);
    }
    let text = text.escape_debug();
    Err(format!("\"{text}\": the book does not have this move"))
}

/// Gives a move a weight, in one record, however castling is spelled in those that the book has.
fn set(entries: &mut Vec<Entry>, pos: &VariantPosition, mv: BookMove, weight: u16) {
    let is_it = |entry: &Entry| as_the_format_says(pos, entry.mv) == mv;
    let old = entries.iter().find(|entry| is_it(entry));
    let learn = old.map_or(0, |entry| entry.learn);
    entries.retain(|entry| !is_it(entry));
    entries.push(Entry {
        key: key(pos),
        mv,
        weight,
        learn,
    });
}

/// Gives moves their shares in percent. The others share the rest as before.
fn share(entries: &mut [Entry], shares: &[(BookMove, f64)]) -> Result<(), &'static str> {
    if shares.is_empty() {
        return Ok(());
    }
    let given: f64 = shares.iter().map(|(_, percent)| percent).sum();
    let others: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
    if given > 100.0 || (given >= 100.0 && others > 0) {
        return Err("the shares leave nothing to the other moves");
    }
    let share_of = |mv| shares.iter().find(|(other, _)| *other == mv);
    // The moves without a share keep their weights, or multiples of them if that is too coarse.
    let unit = if others > 0 {
        others as f64 / (100.0 - given)
    } else {
        1.0
    };
    let exact: Vec<f64> = entries
        .iter()
        .map(|entry| match share_of(entry.mv) {
            Some((_, percent)) => percent * unit,
            None => entry.weight.into(),
        })
        .collect();
    let largest = exact.iter().copied().fold(0.0, f64::max);
    let most = f64::from(u16::MAX) / largest;
    let mut factor = most.min(1.0);
    let mut weights = rounded(&exact, factor);
    while !is_close(&exact, &weights) && factor < most {
        factor = (2.0 * factor).min(most);
        weights = rounded(&exact, factor);
    }
    for (entry, weight) in entries.iter_mut().zip(weights) {
        entry.weight = weight;
    }
    Ok(())
}

/// Weights times a factor. What weighs anything weighs at least 1.
fn rounded(exact: &[f64], factor: f64) -> Vec<u16> {
    let weight = |exact: &f64| match *exact {
        0.0 => 0,
        exact => (exact * factor).round().clamp(1.0, u16::MAX.into()) as u16,
    };
    exact.iter().map(weight).collect()
}

/// Whether the shares of weights are what they should be.
fn is_close(exact: &[f64], weights: &[u16]) -> bool {
    let wanted: f64 = exact.iter().sum();
    let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    exact.iter().zip(weights).all(|(exact, weight)| {
        let off = exact / wanted - f64::from(*weight) / sum;
        off.abs() * 100.0 <= CLOSE
    })
}

fn summarize(pos: &VariantPosition, before: &[Entry], after: &[Entry], summary: &mut EditSummary) {
    let [before, after] =
        [before, after].map(|entries| each_move_once(pos, entries.iter().copied()));
    let weight = |entries: &[Entry], mv| {
        let entry = entries.iter().find(|entry| entry.mv == mv);
        entry.map(|entry| entry.weight)
    };
    for entry in &after {
        match weight(&before, entry.mv) {
            None => summary.added += 1,
            Some(old) => summary.weighed += u64::from(old != entry.weight),
        }
    }
    let removed = before
        .iter()
        .filter(|entry| weight(&after, entry.mv).is_none());
    summary.removed += removed.count() as u64;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::book::entry::of_weights;

    /// The weights when the first moves get shares.
    fn shared(weights: &[u16], percents: &[f64]) -> Option<Vec<u16>> {
        let mut entries = of_weights(weights);
        for entry in &mut entries[..percents.len()] {
            entry.weight = 0;
        }
        let shares: Vec<(BookMove, f64)> =
            (0..).map(BookMove).zip(percents.iter().copied()).collect();
        share(&mut entries, &shares).ok()?;
        Some(entries.iter().map(|entry| entry.weight).collect())
    }

    #[test]
    fn shares_leave_the_others_as_they_are_where_that_is_exact() {
        assert_eq!(shared(&[7, 30, 45], &[25.0]).unwrap(), [25, 30, 45]);
        assert_eq!(shared(&[0, 0], &[70.0, 30.0]).unwrap(), [70, 30]);
        assert_eq!(shared(&[5], &[100.0]).unwrap(), [100]);
        assert_eq!(shared(&[5, 1], &[100.0]), None);
        assert_eq!(shared(&[5, 1, 1], &[60.0, 50.0]), None);
        // Too coarse: 1 of 4 would be a quarter.
        assert_eq!(shared(&[0, 3], &[33.0]).unwrap()[1] % 3, 0);
    }

    proptest! {
        #[test]
        fn shares_are_close(weights in proptest::collection::vec(1..=u16::MAX, 2..6), percent in 1..99u8) {
            let found = shared(&weights, &[percent.into()]).unwrap();
            let sum: f64 = found.iter().map(|weight| f64::from(*weight)).sum();
            let share = f64::from(found[0]) * 100.0 / sum;
            prop_assert!((share - f64::from(percent)).abs() < 0.6, "{found:?}");
        }
    }
}

//! Merging two sorted sequences in memory.

use super::shards::Fold;

/// Merges two sorted sequences and folds the result.
pub(super) fn merge_two<F: Fold>(a: &[u128], b: &[u128]) -> Vec<u128> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let mut fold = F::default();
    let mut out = |record| merged.push(record);
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] <= b[j] {
            fold.take(a[i], &mut out);
            i += 1;
        } else {
            fold.take(b[j], &mut out);
            j += 1;
        }
    }
    for record in a[i..].iter().chain(&b[j..]) {
        fold.take(*record, &mut out);
    }
    fold.finish(&mut out);
    merged
}

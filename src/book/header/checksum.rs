//! The line of a header's comment that has the book's checksum.

use crate::checksum::{Checksum, NoChecksum};

/// What the line begins with. It is the last one of the comment.
const LINE: &str = "\nChecksum: ";

/// A comment with a line for the checksum, which [`BookFile`](crate::book::file::BookFile) fills in.
pub(in crate::book) fn with_checksum(comment: &str) -> String {
    format!("{comment}{LINE}{}", Checksum::default())
}

/// Splits the text of a header, or its comment, into the part before the line and the text of the digits.
pub(in crate::book) fn split_checksum(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(LINE) {
        Some((before, digits)) if !digits.contains('\n') => (before, Some(digits)),
        _ => (text, None),
    }
}

/// The text of a header with the checksum of itself and of `records` in its line, if it has that line.
pub(in crate::book) fn renewed(text: &str, records: Checksum) -> String {
    match split_checksum(text) {
        (before, Some(_)) => format!("{before}{LINE}{}", sum_of(before).plus(records)),
        (text, None) => text.to_owned(),
    }
}

/// The checksum that the records of a book should have, by the text of its header. Malformed digits are an error.
pub(in crate::book) fn of_records(text: &str) -> Option<Result<Checksum, NoChecksum>> {
    let (before, digits) = split_checksum(text);
    let checksum = digits?.parse::<Checksum>();
    Some(checksum.map(|checksum| checksum.minus(sum_of(before))))
}

/// What the text before the line adds to the checksum of the records.
fn sum_of(before: &str) -> Checksum {
    let mut sum = Checksum::default();
    sum.add(before.as_bytes());
    sum
}

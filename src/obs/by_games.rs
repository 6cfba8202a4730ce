//! The rows of a position in the order of their games, in bounded memory.

use std::path::Path;

use super::row::{Active, Row};
use crate::{
    error::Result,
    sort::{Memory, TextSorter},
    tally::Stats,
};

/// Bytes of rows that stay in memory. No real position has a hundredth of them.
const MOST_BYTES: usize = 1 << 23;

/// Rows of one position.
#[derive(Debug)]
pub(super) struct ByGames {
    rows: Vec<Row>,
    bytes: usize,
    memory: Memory,
    /// All rows as texts, if they are more than memory holds, and how many came.
    spilled: Option<TextSorter>,
    count: u64,
}

impl ByGames {
    pub(super) fn new(temp_dir: &Path) -> ByGames {
        ByGames {
            rows: Vec::new(),
            bytes: 0,
            memory: Memory {
                bytes: MOST_BYTES,
                temp_dir: temp_dir.to_owned(),
            },
            spilled: None,
            count: 0,
        }
    }

    /// The position of the rows; `None` if there are none.
    pub(super) fn epd(&self) -> Option<&str> {
        self.rows.last().map(|row| row.epd.as_str())
    }

    /// Takes a row.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        if self.bytes > self.memory.bytes {
            self.spill()?;
        }
        self.bytes += row.bytes();
        self.rows.push(row);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let memory = &self.memory;
        let texts = self
            .spilled
            .get_or_insert_with(|| TextSorter::new(memory.clone(), None));
        for row in self.rows.drain(..) {
            texts.push(&write(&row, self.count))?;
            self.count += 1;
        }
        self.bytes = 0;
        Ok(())
    }

    /// Hands over all rows, the most games first, and is empty then.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read, or the errors of `f`.
    pub(super) fn drain(&mut self, mut f: impl FnMut(Row) -> Result<()>) -> Result<()> {
        if self.spilled.is_none() {
            self.bytes = 0;
            self.rows.sort_by(Row::by_games);
            return self.rows.drain(..).try_for_each(f);
        }
        let epd = self.epd().unwrap_or_default().to_owned();
        self.spill()?;
        if let Some(mut texts) = self.spilled.take() {
            for text in texts.sorted() {
                f(read(&epd, &text?))?;
            }
        }
        Ok(())
    }
}

/// A row without its position as a text that sorts by games, by the move and by when the row came.
fn write(row: &Row, number: u64) -> Vec<u8> {
    let Stats {
        wins,
        draws,
        losses,
    } = row.stats;
    let mut text = (u64::MAX - row.stats.games()).to_be_bytes().to_vec();
    text.extend_from_slice(row.mv.as_bytes());
    text.push(0);
    text.extend_from_slice(&number.to_be_bytes());
    text.extend_from_slice(row.comment.as_deref().unwrap_or_default().as_bytes());
    let comment = u64::from(row.comment.is_some());
    for number in [row.mv.len() as u64, comment, wins, draws, losses] {
        text.extend_from_slice(&number.to_le_bytes());
    }
    text.extend_from_slice(&row.active.bits().to_le_bytes());
    text
}

/// Reads a row that [`write`] wrote.
fn read(epd: &str, text: &[u8]) -> Row {
    const NUMBER: usize = size_of::<u64>();
    let (text, numbers) = text
        .split_last_chunk::<{ 6 * NUMBER }>()
        .expect("numbers end the text");
    let number = |place: usize| {
        let bytes = numbers[place * NUMBER..].first_chunk();
        u64::from_le_bytes(*bytes.expect("there are six"))
    };
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mv, rest) = text[NUMBER..].split_at(number(0) as usize);
    Row {
        epd: epd.to_owned(),
        mv: string(mv),
        active: Active::from_bits(number(5) as i64),
        stats: Stats {
            wins: number(2),
            draws: number(3),
            losses: number(4),
        },
        comment: (number(1) != 0).then(|| string(&rest[1 + NUMBER..])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let comment = proptest::option::of("\\PC{0,20}");
        let row = (any::<(u32, u16, i64)>(), "[a-h][1-8]{0,3}", comment);
        let row = row.prop_map(|((wins, draws, bits), mv, comment)| Row {
            epd: "an EPD".to_owned(),
            mv,
            active: Active::from_bits(bits),
            stats: Stats {
                wins: wins.into(),
                draws: draws.into(),
                losses: 1,
            },
            comment,
        });
        proptest::collection::vec(row, 1..200)
    }

    proptest! {
        #[test]
        fn rows_come_in_order_from_memory_and_files(mut rows in rows(), most_bytes in 0..20_000usize) {
            let mut position = ByGames::new(&std::env::temp_dir());
            position.memory.bytes = most_bytes;
            // A position after the other.
            for _ in 0..2 {
                for row in &rows {
                    position.push(row.clone()).unwrap();
                }
                let mut found = Vec::new();
                position.drain(|row| {
                    found.push(row);
                    Ok(())
                }).unwrap();
                rows.sort_by(Row::by_games);
                prop_assert!(found.is_sorted_by(|a, b| Row::by_games(a, b).is_le()));
                let whole = |row: &Row| format!("{row:?}");
                let mut found: Vec<String> = found.iter().map(whole).collect();
                let mut expected: Vec<String> = rows.iter().map(whole).collect();
                found.sort();
                expected.sort();
                prop_assert_eq!(found, expected);
                prop_assert!(position.epd().is_none());
            }
        }
    }
}

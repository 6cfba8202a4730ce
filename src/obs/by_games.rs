//! The rows of a position in the order of their games, in bounded memory.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

use super::row::{Active, Row};
use crate::{
    error::Result,
    sort::{ByteReader, ByteRun, Merge},
    tally::Stats,
};

/// Bytes of rows that stay in memory. No real position has a hundredth of them.
const MOST_BYTES: usize = 1 << 23;

/// Rows of one position.
#[derive(Debug)]
pub(super) struct ByGames {
    rows: Vec<Row>,
    bytes: usize,
    most_bytes: usize,
    temp_dir: PathBuf,
    /// Sorted runs of rows, and where each begins and how many it has.
    spilled: Option<ByteRun>,
    runs: Vec<(u64, u64)>,
}

impl ByGames {
    pub(super) fn new(temp_dir: &Path) -> ByGames {
        ByGames {
            rows: Vec::new(),
            bytes: 0,
            most_bytes: MOST_BYTES,
            temp_dir: temp_dir.to_owned(),
            spilled: None,
            runs: Vec::new(),
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
        if self.bytes > self.most_bytes {
            self.spill()?;
        }
        self.bytes += row.bytes();
        self.rows.push(row);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.rows.sort_by(Row::by_games);
        let file = self
            .spilled
            .get_or_insert_with(|| ByteRun::new(0, self.temp_dir.clone()));
        self.runs.push((file.len(), self.rows.len() as u64));
        for row in self.rows.drain(..) {
            write(&row, file)?;
        }
        self.bytes = 0;
        Ok(())
    }

    /// Hands over all rows, the most games first, and is empty then.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read, or what `f` answers.
    pub(super) fn drain(&mut self, mut f: impl FnMut(Row) -> Result<()>) -> Result<()> {
        self.bytes = 0;
        self.rows.sort_by(Row::by_games);
        let Some(file) = self.spilled.take() else {
            return self.rows.drain(..).try_for_each(f);
        };
        let epd = self.epd().expect("a row comes after each spill").to_owned();
        let mut sources: Vec<Box<dyn Iterator<Item = Result<Largest>> + '_>> = Vec::new();
        for (start, rows) in self.runs.drain(..) {
            let (mut reader, epd) = (file.reader(start), &epd);
            let run = (0..rows).map(move |_| read(epd, &mut reader).map(Largest));
            sources.push(Box::new(run));
        }
        let in_memory = self.rows.drain(..);
        sources.push(Box::new(in_memory.map(|row| Ok(Largest(row)))));
        for row in Merge::new(sources) {
            f(row?.0)?;
        }
        Ok(())
    }
}

/// A row that compares by its games.
struct Largest(Row);

impl Ord for Largest {
    fn cmp(&self, other: &Largest) -> Ordering {
        Row::by_games(&self.0, &other.0)
    }
}

impl PartialOrd for Largest {
    fn partial_cmp(&self, other: &Largest) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Largest {
    fn eq(&self, other: &Largest) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Largest {}

/// Appends a row without its position.
fn write(row: &Row, file: &mut ByteRun) -> Result<()> {
    let Stats {
        wins,
        draws,
        losses,
    } = row.stats;
    for number in [wins, draws, losses] {
        file.append(&number.to_le_bytes())?;
    }
    file.append(&row.active.bits().to_le_bytes())?;
    write_text(&row.mv, file)?;
    file.append(&[u8::from(row.comment.is_some())])?;
    match &row.comment {
        Some(comment) => write_text(comment, file),
        None => Ok(()),
    }
}

fn write_text(text: &str, file: &mut ByteRun) -> Result<()> {
    file.append(&(text.len() as u32).to_le_bytes())?;
    file.append(text.as_bytes())
}

/// Reads what [`write`] wrote.
fn read(epd: &str, file: &mut ByteReader<'_>) -> Result<Row> {
    let mut number = || bytes(file).map(u64::from_le_bytes);
    let stats = Stats {
        wins: number()?,
        draws: number()?,
        losses: number()?,
    };
    let active = Active::from_bits(i64::from_le_bytes(bytes(file)?));
    let mv = read_text(file)?;
    let [has_comment] = bytes(file)?;
    Ok(Row {
        epd: epd.to_owned(),
        mv,
        active,
        stats,
        comment: (has_comment != 0).then(|| read_text(file)).transpose()?,
    })
}

fn bytes<const N: usize>(file: &mut ByteReader<'_>) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_text(file: &mut ByteReader<'_>) -> Result<String> {
    let length = u32::from_le_bytes(bytes(file)?);
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    Ok(String::from_utf8(text).expect("it was written from text"))
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
            position.most_bytes = most_bytes;
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

//! Writes the table `Book` of a new OOBS database, an opening book in an SQLite file, and the index of this table. Both
//! are b-trees in the format of SQLite.
//!
//! SQLite itself would search both b-trees for each insertion and rebalance them. The rows of a new database are
//! already sorted, so this module fills the pages of both b-trees one after another, from the leaves to the roots.
//! SQLite only creates the empty tables at the beginning, and writes the table `Info` at the end.
//!
//! The format is described in [Database File Format](https://www.sqlite.org/fileformat2.html).

use std::{fs::File, io, iter, mem, path::Path};

use rusqlite::Connection;

use super::error::Sql;
use crate::{
    error::Result,
    games::results::Wdl,
    storage::positioned::{read_exact_at, write_all_at},
};

/// A writer of the rows of the table `Book`. Each row also becomes an entry of the index.
pub(super) struct BookTable<'a> {
    pages: Pages<'a>,
    table: BTree,
    index: BTree,
    /// The number of rows added so far, which is the ID of the last one.
    pub rows: u64,
    record: Vec<u8>,
    cell: Vec<u8>,
}

/// The fields of a row of the table `Book`.
#[derive(Copy, Clone)]
pub(super) struct Fields<'a> {
    pub epd: &'a str,
    pub mv: &'a str,
    pub active: i64,
    pub stats: Wdl,
    pub comment: Option<&'a str>,
}

impl<'a> BookTable<'a> {
    /// Creates a writer for the empty tables of `db`, whose pages are in `file`. Until [`finish`](BookTable::finish)
    /// returns, `db` must not be used. `path` is the path of the database, for error messages.
    pub(super) fn of_new(db: &Connection, file: &'a File, path: &Path) -> Result<BookTable<'a>> {
        let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get(0));
        let page_size: u32 = pragma("page_size").sql(path, "write")?;
        let count: u32 = pragma("page_count").sql(path, "write")?;
        let root = |name: &str| {
            let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
            db.query_row(sql, [name], |row| row.get(0))
                .sql(path, "write")
        };
        let page_size = page_size as usize;
        Ok(BookTable {
            pages: Pages {
                file,
                page_size,
                count,
            },
            table: BTree::new(Kind::Table, root("Book")?, page_size),
            index: BTree::new(Kind::Index, root("BookByEPD")?, page_size),
            rows: 0,
            record: Vec::new(),
            cell: Vec::new(),
        })
    }

    /// Appends a row to the table. Its EPD must not be less than the EPD of the previous row.
    pub(super) fn add(&mut self, row: Fields<'_>) -> io::Result<()> {
        let number = |games: u64| Value::Integer(games as i64);
        self.rows += 1;
        let Wdl {
            wins,
            draws,
            losses,
        } = row.stats;
        // SQLite stores NULL for a column that is the key of the row.
        let values = [
            Value::Null,
            Value::Text(row.epd),
            Value::Text(row.mv),
            Value::Integer(row.active),
            number(wins),
            number(draws),
            number(losses),
            row.comment.map_or(Value::Null, Value::Text),
        ];
        write_record(values, &mut self.record);
        self.cell.clear();
        put_varint(&mut self.cell, self.record.len() as u64);
        put_varint(&mut self.cell, self.rows);
        let most = self.pages.page_size - 35;
        self.pages.put_payload(&mut self.cell, &self.record, most)?;
        self.table.add(&mut self.pages, &self.cell, self.rows)?;

        write_record([Value::Text(row.epd), number(self.rows)], &mut self.record);
        self.cell.clear();
        put_varint(&mut self.cell, self.record.len() as u64);
        let most = (self.pages.page_size - 12) * 64 / 255 - 23;
        self.pages.put_payload(&mut self.cell, &self.record, most)?;
        self.index.add(&mut self.pages, &self.cell, self.rows)
    }

    /// Completes the table: writes the pages that are not full, and stores the number of pages in the file. Returns the
    /// number of rows.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.table.finish(&mut self.pages)?;
        self.index.finish(&mut self.pages)?;
        self.pages.finish()?;
        Ok(self.rows)
    }
}

/// The pages of a database file, to which further pages can be appended.
struct Pages<'a> {
    file: &'a File,
    page_size: usize,
    /// The number of pages, which is the number of the last page.
    count: u32,
}

/// The offset of the byte that SQLite uses for locks in a database file. The page that contains this byte must stay
/// empty.
const LOCKED_BYTE: u64 = 1 << 30;

impl Pages<'_> {
    /// Returns the number of the page that will be appended after the page with the number `number`.
    fn after(&self, number: u32) -> io::Result<u32> {
        let locked = LOCKED_BYTE / self.page_size as u64 + 1;
        let step = if u64::from(number) + 1 == locked {
            2
        } else {
            1
        };
        number
            .checked_add(step)
            .ok_or(io::ErrorKind::FileTooLarge.into())
    }

    /// Appends a page with the content `page`. Returns its number.
    fn append(&mut self, page: &[u8]) -> io::Result<u32> {
        self.count = self.after(self.count)?;
        self.write(page, self.count)?;
        Ok(self.count)
    }

    fn write(&self, page: &[u8], number: u32) -> io::Result<()> {
        let offset = u64::from(number - 1) * self.page_size as u64;
        write_all_at(self.file, page, offset)
    }

    /// Appends the bytes of `record` to `cell`. If the record is longer than `most` bytes, the cell contains only the
    /// beginning of the record, and the rest is written to separate pages.
    fn put_payload(&mut self, cell: &mut Vec<u8>, record: &[u8], most: usize) -> io::Result<()> {
        if record.len() <= most {
            cell.extend_from_slice(record);
            return Ok(());
        }
        let bytes_per_page = self.page_size - size_of::<u32>();
        let least = (self.page_size - 12) * 32 / 255 - 23;
        let of_full_pages = least + (record.len() - least) % bytes_per_page;
        let (start, rest) = record.split_at(if of_full_pages <= most {
            of_full_pages
        } else {
            least
        });
        cell.extend_from_slice(start);
        cell.extend_from_slice(&self.after(self.count)?.to_be_bytes());
        let mut parts = rest.chunks(bytes_per_page).peekable();
        while let Some(part) = parts.next() {
            let next = match parts.peek() {
                Some(_) => self.after(self.after(self.count)?)?,
                None => 0,
            };
            let mut page = next.to_be_bytes().to_vec();
            page.extend_from_slice(part);
            page.resize(self.page_size, 0);
            self.append(&page)?;
        }
        Ok(())
    }

    /// Writes the number of pages to the header of the file, and increments the change counter, so that SQLite discards
    /// its cached pages.
    fn finish(self) -> io::Result<()> {
        const CHANGES: u64 = 24;
        const PAGE_COUNT: u64 = 28;
        const CHANGES_AT_PAGE_COUNT: u64 = 92;
        let mut changes = [0; size_of::<u32>()];
        read_exact_at(self.file, &mut changes, CHANGES)?;
        let changes = (u32::from_be_bytes(changes).wrapping_add(1)).to_be_bytes();
        write_all_at(self.file, &changes, CHANGES)?;
        write_all_at(self.file, &self.count.to_be_bytes(), PAGE_COUNT)?;
        write_all_at(self.file, &changes, CHANGES_AT_PAGE_COUNT)
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Table,
    Index,
}

/// A b-tree to which cells are added in ascending order.
struct BTree {
    kind: Kind,
    /// The page number of the root.
    root: u32,
    /// The last page of each level, from the leaves up. These pages are not written yet.
    levels: Vec<Page>,
    /// The key of the last cell that was added.
    last_key: u64,
}

impl BTree {
    fn new(kind: Kind, root: u32, page_size: usize) -> BTree {
        let leaf = match kind {
            Kind::Table => 0x0d,
            Kind::Index => 0x0a,
        };
        BTree {
            kind,
            root,
            levels: vec![Page::new(leaf, page_size)],
            last_key: 0,
        }
    }

    /// Adds `cell` to the last leaf. `key` is the ID of the row that the cell contains.
    fn add(&mut self, pages: &mut Pages<'_>, cell: &[u8], key: u64) -> io::Result<()> {
        self.push(pages, 0, cell)?;
        self.last_key = key;
        Ok(())
    }

    /// Adds `cell` to the last page of `level`. If this page is full, writes it and adds the cell to a new page.
    fn push(&mut self, pages: &mut Pages<'_>, level: usize, cell: &[u8]) -> io::Result<()> {
        if level == self.levels.len() {
            let interior = match self.kind {
                Kind::Table => 0x05,
                Kind::Index => 0x02,
            };
            self.levels.push(Page::new(interior, pages.page_size));
        }
        if !self.levels[level].has_room(cell.len()) {
            self.write_full(pages, level)?;
        }
        self.levels[level].push(cell);
        Ok(())
    }

    /// Writes the last page of `level`, and adds a cell that points to this page to the level above.
    fn write_full(&mut self, pages: &mut Pages<'_>, level: usize) -> io::Result<()> {
        let page = &mut self.levels[level];
        let mut cell = vec![0; size_of::<u32>()];
        let right = if level == 0 && self.kind == Kind::Table {
            put_varint(&mut cell, self.last_key);
            None
        } else {
            // The last cell moves to the level above, so that the next page is never empty.
            let last = page.pop();
            let (right, key) = last.split_at(if level == 0 { 0 } else { size_of::<u32>() });
            cell.extend_from_slice(key);
            right.first_chunk().map(|right| u32::from_be_bytes(*right))
        };
        let number = pages.append(page.finished(right))?;
        page.clear();
        cell[..size_of::<u32>()].copy_from_slice(&number.to_be_bytes());
        self.push(pages, level + 1, &cell)
    }

    /// Writes the last page of each level. The page of the highest level becomes the root.
    fn finish(&mut self, pages: &mut Pages<'_>) -> io::Result<()> {
        let mut levels = mem::take(&mut self.levels);
        let mut root = levels.pop().expect("a b-tree has leaves");
        let mut right = None;
        for mut page in levels {
            right = Some(pages.append(page.finished(right))?);
        }
        pages.write(root.finished(right), self.root)
    }
}

/// A page of a b-tree that is being filled with cells, from its end to its beginning.
struct Page {
    kind: u8,
    bytes: Vec<u8>,
    cells: usize,
    /// The offset of the last cell.
    content: usize,
}

impl Page {
    fn new(kind: u8, page_size: usize) -> Page {
        Page {
            kind,
            bytes: vec![0; page_size],
            cells: 0,
            content: page_size,
        }
    }

    /// Returns the offset of the pointer to the cell with the index `cell`. The pointers follow the header of the page.
    fn pointer(&self, cell: usize) -> usize {
        let is_leaf = self.kind & 0x08 != 0;
        let header = if is_leaf { 8 } else { 12 };
        header + cell * size_of::<u16>()
    }

    fn has_room(&self, length: usize) -> bool {
        self.pointer(self.cells + 1) + length <= self.content
    }

    fn push(&mut self, cell: &[u8]) {
        let end = self.content;
        self.content -= cell.len();
        self.bytes[self.content..end].copy_from_slice(cell);
        let pointer = self.pointer(self.cells);
        self.bytes[pointer..][..2].copy_from_slice(&(self.content as u16).to_be_bytes());
        self.cells += 1;
    }

    /// Removes the last cell, and returns it.
    fn pop(&mut self) -> Vec<u8> {
        self.cells -= 1;
        let end = match self.cells {
            0 => self.bytes.len(),
            cells => {
                let pointer = self.pointer(cells - 1);
                usize::from(u16::from_be_bytes([
                    self.bytes[pointer],
                    self.bytes[pointer + 1],
                ]))
            }
        };
        let cell = self.bytes[self.content..end].to_vec();
        self.content = end;
        cell
    }

    /// Writes the header of the page, and returns the complete page. Unless the page is a leaf, `right` is the number
    /// of its rightmost child page, which has no cell.
    fn finished(&mut self, right: Option<u32>) -> &[u8] {
        self.bytes[0] = self.kind;
        self.bytes[3..5].copy_from_slice(&(self.cells as u16).to_be_bytes());
        self.bytes[5..7].copy_from_slice(&(self.content as u16).to_be_bytes());
        if let Some(right) = right {
            self.bytes[8..12].copy_from_slice(&right.to_be_bytes());
        }
        &self.bytes
    }

    fn clear(&mut self) {
        self.bytes.fill(0);
        self.cells = 0;
        self.content = self.bytes.len();
    }
}

/// The value of one column in a row.
#[derive(Copy, Clone)]
enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
}

impl Value<'_> {
    /// Returns the number that describes the type and length of the value in a record.
    fn serial_type(self) -> u64 {
        match self {
            Value::Null => 0,
            Value::Integer(0) => 8,
            Value::Integer(1) => 9,
            Value::Integer(value) => {
                // The sign needs a bit.
                let bits = 65 - (value ^ (value >> 63)).leading_zeros();
                match bits.div_ceil(8) {
                    bytes @ 1..=4 => bytes.into(),
                    5..=6 => 5,
                    _ => 6,
                }
            }
            Value::Text(text) => 2 * text.len() as u64 + 13,
        }
    }
}

/// Replaces the content of `record` with a record of `values`: the types of all values, and then the values.
fn write_record<const N: usize>(values: [Value<'_>; N], record: &mut Vec<u8>) {
    /// The number of bytes of an integer, indexed by its serial type.
    const INTEGER_BYTES: [usize; 10] = [0, 1, 2, 3, 4, 6, 8, 0, 0, 0];
    let types = values.map(Value::serial_type);
    record.clear();
    record.push(0);
    for serial_type in types {
        put_varint(record, serial_type);
    }
    // Eight types of up to nine bytes are shorter than 128 bytes, so this length needs a single byte.
    record[0] = record.len() as u8;
    for (value, serial_type) in iter::zip(values, types) {
        match value {
            Value::Null => {}
            Value::Integer(integer) => {
                let bytes = integer.to_be_bytes();
                let length = INTEGER_BYTES[serial_type as usize];
                record.extend_from_slice(&bytes[bytes.len() - length..]);
            }
            Value::Text(text) => record.extend_from_slice(text.as_bytes()),
        }
    }
}

/// Appends `number` to `bytes` in SQLite's variable-length encoding: seven bits per byte, the highest bits first.
#[inline]
fn put_varint(bytes: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        bytes.push(number as u8);
        return;
    }
    let groups = (64 - number.leading_zeros()).div_ceil(7);
    debug_assert!(groups < 9, "no length or key is that long");
    for group in (1..groups).rev() {
        bytes.push(0x80 | (number >> (7 * group)) as u8);
    }
    bytes.push(number as u8 & 0x7f);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::NamedTempFile;

    use super::*;
    use crate::formats::obs::writer::{SETTINGS, TABLES, open};

    type Row = (String, i64, u32, Option<String>);

    /// Writes a database with `rows`, and returns its file and a connection to it.
    fn written(rows: &[Row], page_size: usize) -> (NamedTempFile, Connection) {
        let file = NamedTempFile::new().unwrap();
        let db = open(file.path()).unwrap();
        db.pragma_update(None, "page_size", page_size as u32)
            .unwrap();
        db.execute_batch(SETTINGS).unwrap();
        db.execute_batch(TABLES).unwrap();
        let mut table = BookTable::of_new(&db, file.as_file(), file.path()).unwrap();
        assert_eq!(table.pages.page_size, page_size);
        for (epd, active, wins, comment) in rows {
            let stats = Wdl {
                wins: (*wins).into(),
                draws: 0,
                losses: 1,
            };
            let (mv, comment) = ("e2e4", comment.as_deref());
            table
                .add(Fields {
                    epd,
                    mv,
                    active: *active,
                    stats,
                    comment,
                })
                .unwrap();
        }
        assert_eq!(table.finish().unwrap(), rows.len() as u64);
        (file, db)
    }

    /// Checks that SQLite reads `rows`, both in order and through the index, and that it finds both b-trees whole.
    fn check(db: &Connection, rows: &[Row]) {
        let verdict: String = db
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(verdict, "ok");
        let read = |sql: &str| -> Vec<(i64, Row)> {
            let mut statement = db.prepare(sql).unwrap();
            let read = statement.query_map([], |row| {
                assert_eq!(row.get::<_, String>("Move")?, "e2e4");
                assert_eq!((row.get("Draw")?, row.get("Loss")?), (0, 1));
                let rest = (
                    row.get("EPD")?,
                    row.get("Active")?,
                    row.get("Win")?,
                    row.get("Comment")?,
                );
                Ok((row.get("ID")?, rest))
            });
            read.unwrap().map(Result::unwrap).collect()
        };
        let expected: Vec<_> = (1..).zip(rows.iter().cloned()).collect();
        assert!(read("SELECT * FROM Book NOT INDEXED") == expected);
        assert!(read("SELECT * FROM Book INDEXED BY BookByEPD ORDER BY EPD") == expected);
        for (id, row) in expected.iter().step_by(97) {
            let sql = "SELECT ID FROM Book INDEXED BY BookByEPD WHERE EPD = ?1";
            let mut statement = db.prepare(sql).unwrap();
            let ids = statement
                .query_map([&row.0], |row| row.get::<_, i64>(0))
                .unwrap();
            assert!(ids.map(Result::unwrap).any(|found| found == *id));
        }
    }

    proptest! {
        #[test]
        fn sqlite_reads_what_is_written(
            epds in proptest::collection::vec(prop_oneof![9 => "[a-z]{0,90}", 1 => "[a-é]{90,900}"], 0..200),
            comments in proptest::collection::vec(
                proptest::option::weighted(0.1, prop_oneof![9 => "[a-z]{0,90}", 1 => "[a-é]{90,2000}"]), 200,
            ),
            numbers in proptest::collection::vec((any::<i64>(), 0..64, 0..32u32), 200),
            page_size in proptest::sample::select(vec![512, 4096, 32768]),
        ) {
            let mut epds = epds;
            epds.sort();
            let rows: Vec<Row> = iter::zip(epds, iter::zip(numbers, comments))
                .map(|(epd, ((active, shift, bits), comment))| (epd, active >> shift, u32::MAX >> bits, comment))
                .collect();
            let (_file, db) = written(&rows, page_size);
            check(&db, &rows);
        }
    }

    #[test]
    fn integers_of_each_length_come_back() {
        let edges = (0..63).flat_map(|bits| [1 << bits, -1 << bits]);
        let edges = edges.flat_map(|edge: i64| [edge - 1, edge, edge + 1]);
        let rows: Vec<Row> = edges
            .chain([i64::MIN, i64::MAX])
            .map(|edge| ("a".to_owned(), edge, 7, None))
            .collect();
        let (_file, db) = written(&rows, 4096);
        check(&db, &rows);
    }

    #[test]
    fn sqlite_adds_rows_to_high_trees() {
        let mut rows: Vec<Row> = (0..30_000)
            .map(|row| (format!("{:05}", row / 3), 1, row, None))
            .collect();
        let (_file, db) = written(&rows, 512);
        check(&db, &rows);
        rows.push(("30000".to_owned(), 1, 5, None));
        let insert =
            "INSERT INTO Book (EPD, Move, Win, Draw, Loss) VALUES ('30000', 'e2e4', 5, 0, 1)";
        db.execute_batch(insert).unwrap();
        check(&db, &rows);
    }

    #[test]
    fn the_page_with_the_locked_byte_is_left_out() {
        for page_size in [512, 4096, 32768] {
            let file = tempfile::tempfile().unwrap();
            let pages = Pages {
                file: &file,
                page_size,
                count: 1,
            };
            let locked = (LOCKED_BYTE / page_size as u64) as u32 + 1;
            let after = |number| pages.after(number).unwrap();
            assert_eq!(
                [locked - 2, locked - 1, locked + 1].map(after),
                [locked - 1, locked + 1, locked + 2]
            );
            assert!(pages.after(u32::MAX).is_err());
        }
    }
}

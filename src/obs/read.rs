//! Reading databases, those of other programs too.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    path::Path,
};

use super::{
    connection::{Connections, Lent},
    error::{ObsError, Sql},
    info::Info,
    lookup::Wanted,
    row::{Row, legal_move},
    source::{BadRow, Source, add_spelling, read_row},
    stream::Rows,
    verify::Check,
};
use crate::{book::Factors, error::Result, position::Rules, sort::Memory};

/// An open database.
///
/// It is read as it is: with or without an index, with rows in any order, columns in any order and
/// more of them, and positions in a table of their own, as the standard's tool can have it. Threads can share
/// it. When another file takes its place, it goes on answering from the first.
#[derive(Debug)]
pub struct Obs {
    connections: Connections,
    info: Info,
    source: Source,
}

impl Obs {
    /// Opens a database.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is not such a database.
    pub fn open(path: impl AsRef<Path>) -> Result<Obs> {
        let path = path.as_ref();
        if !super::is_database(path)? {
            return Err(ObsError::NotSqlite.at(path));
        }
        let connections = Connections::open(path)?;
        let db = connections.lend()?;
        let source = Source::of(&db, path)?;
        let info = Info::read(&db, path)?;
        drop(db);
        Ok(Obs {
            connections,
            info,
            source,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.connections.path()
    }

    pub(super) fn lend(&self) -> Result<Lent> {
        self.connections.lend()
    }

    /// Selects all rows, in the columns that the standard's document lists.
    pub(super) fn select(&self) -> &str {
        &self.source.select
    }

    /// What the database says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The moves of a position, those not to be played among them, the most games first.
    ///
    /// The database may have the position under several EPDs that differ in fields which do not belong to it. Then it
    /// has the games of all of them. Where another program may have left out the en passant square of pinned
    /// pawns, it is found without. The rows have the EPD that
    /// [`write_epd`](crate::position::write_epd) writes.
    ///
    /// # Errors
    ///
    /// A database that cannot be read, or a row of the position that makes no sense.
    pub fn moves<P: Rules>(&self, pos: &P) -> Result<Vec<Row>> {
        let wanted = Wanted::new(pos);
        let Source {
            select, order, epd, ..
        } = &self.source;
        let query = format!(
            "{select} WHERE {epd} COLLATE BINARY >= ?1 AND {epd} COLLATE BINARY < ?2 {order}"
        );
        let (path, doing) = (self.path(), "read");
        let db = self.connections.lend()?;
        let mut statement = db.prepare_cached(&query).sql(path, doing)?;
        let mut found = statement.query(wanted.range()).sql(path, doing)?;
        // By their moves.
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        let mut without_pinned = BTreeMap::new();
        while let Some(row) = found.next().sql(path, doing)? {
            let mut row = match read_row(row).sql(path, doing)? {
                Ok(row) => row,
                Err(BadRow::Malformed(problem)) => {
                    return Err(ObsError::MalformedRow(problem).at(path));
                }
                Err(BadRow::Impossible(err)) => return Err(err.at(path)),
            };
            let named = if wanted.is_named_by(&row.epd) {
                &mut rows
            } else if !self.info.is_own && wanted.is_named_without_pinned(&row.epd) {
                &mut without_pinned
            } else {
                continue;
            };
            row.epd.clone_from(&wanted.epd);
            match named.get_mut(&row.mv) {
                Some(first) => first.join(row),
                None => {
                    named.insert(row.mv.clone(), row);
                }
            }
        }
        if rows.is_empty() {
            rows = without_pinned;
        }
        let mut rows = added_up(pos, rows.into_values());
        rows.sort_by(Row::by_games);
        Ok(rows)
    }

    /// The largest weight of an active row before scaling. Looks at all of them.
    ///
    /// # Errors
    ///
    /// A database that cannot be read.
    pub fn largest_weight(&self, factors: Factors) -> Result<u64> {
        let Factors { win, draw, loss } = factors;
        let query = format!(
            "SELECT CAST(coalesce(max({win} * coalesce(Win, 0) + {draw} * coalesce(Draw, 0) + {loss} * coalesce(Loss, 0)), 0)
             AS INTEGER) FROM ({}) WHERE coalesce(Active, 1) & 1",
            self.source.select
        );
        let db = self.connections.lend()?;
        let largest: i64 = db
            .query_row(&query, [], |row| row.get(0))
            .sql(self.path(), "read")?;
        Ok(u64::try_from(largest).unwrap_or(0))
    }

    /// About how many rows there are, for telling how far a reader is: the largest number of one.
    pub(crate) fn about_rows(&self) -> u64 {
        let largest = |db: &rusqlite::Connection| -> rusqlite::Result<Option<i64>> {
            db.query_row("SELECT max(ROWID) FROM Book", [], |row| row.get(0))
        };
        let found = self.connections.lend().ok().map(|db| largest(&db));
        let found = found.and_then(|found| found.ok().flatten());
        found.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0)
    }

    /// Every row, in the order of the table.
    ///
    /// # Errors
    ///
    /// A thread that cannot be started. An item is an error if the database cannot be read, or has a number of
    /// games that cannot be, and after the last row if it has a checksum that is not that of its rows.
    ///
    /// ```
    /// # use polybook::{MakeBook, obs::Obs, pgn::Input};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("famous.obs.db3");
    /// # MakeBook::new([Input::file("data/famous.pgn")]).min_game(1).obs(&path).run()?;
    /// let obs = Obs::open(&path)?;
    /// let mut games = 0;
    /// for row in obs.rows()? {
    ///     games += row?.stats.games();
    /// }
    /// assert!(games > 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rows(&self) -> Result<Rows> {
        let db = self.connections.lend_long()?;
        Rows::of_query(db, self.source.select.clone(), self.path().to_owned())
    }

    /// Every row, in the order of the table, without its comment.
    pub(crate) fn rows_without_comments(&self) -> Result<Rows> {
        let db = self.connections.lend_long()?;
        Rows::without_comments(db, self.source.select.clone(), self.path().to_owned())
    }

    /// Every row in the order of EPDs, byte by byte, and then of moves. A database without an index of its EPDs is
    /// sorted in `memory`.
    ///
    /// # Errors
    ///
    /// As [`rows`](Obs::rows), or a directory for temporary files that cannot be used.
    pub fn rows_by_epd(&self, memory: &Memory) -> Result<Rows> {
        self.sorted(self.connections.lend_long()?, memory)
    }

    /// Every row in the order of EPDs, which polybook's own spelling replaces where they can be read, for a caller that
    /// needs no more of the database: one connection is kept.
    pub(super) fn into_rows_by_epd(self, memory: &Memory) -> Result<Rows> {
        self.connections.keep_one();
        let db = self.connections.lend()?;
        let path = self.path();
        let variant = self.info.variant.parse();
        // Only databases with polybook's own spelling have a checksum.
        let is_foreign = Check::of(&db).sql(path, "read")?.is_none();
        let (true, Ok(variant)) = (is_foreign, variant) else {
            return self.sorted(db, memory);
        };
        db.sort_in(memory)?;
        add_spelling(&db, variant).sql(path, "read")?;
        Rows::of_query(db, self.source.respelled.clone(), path.to_owned())
    }

    fn sorted(&self, db: Lent, memory: &Memory) -> Result<Rows> {
        db.sort_in(memory)?;
        let Source { select, order, .. } = &self.source;
        Rows::of_query(db, format!("{select} {order}"), self.path().to_owned())
    }
}

/// Adds up the rows whose texts are the same legal move, such as castling as `e1g1` and as `e1h1`. A move that is not
/// to be played does not count with one that is.
fn added_up<P: Rules>(pos: &P, rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut places = HashMap::new();
    let mut sums: Vec<Row> = Vec::new();
    for row in rows {
        match legal_move(pos, &row.mv).map(|mv| places.entry((mv, row.is_active()))) {
            Some(Entry::Occupied(place)) => {
                let place: &usize = place.get();
                sums[*place].join(row);
                continue;
            }
            Some(Entry::Vacant(place)) => {
                place.insert(sums.len());
            }
            None => {}
        }
        sums.push(row);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_can_share_a_database() {
        fn shared<T: Send + Sync + 'static>() {}
        fn sent<T: Send + 'static>() {}
        shared::<Obs>();
        sent::<Rows>();
    }
}

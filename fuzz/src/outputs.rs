//! All outputs of some games, and the properties that they must have.

use std::path::{Path, PathBuf};

use polybook::{
    MakeBook, Report,
    book::{Book, verify},
    convert::Convert,
    counts::Memory,
    index::Index,
    make_book::Unfinished,
    obs::{Obs, legal_move},
    pgn::Input,
    position::{Variant, VariantChoice},
    selection::{Duplicates, Selection},
};

use super::Room;

/// A run over a PGN file, and its outputs.
pub struct Outputs {
    pub bin: Option<PathBuf>,
    pub index: Option<PathBuf>,
    pub obs: Option<PathBuf>,
    variant: VariantChoice,
    options: u8,
}

impl Outputs {
    /// Creates a run whose options are chosen by the bits of `options`. The highest two bits choose the outputs: all that
    /// the variant supports or, three times as often, fewer.
    pub fn named(room: &Room, name: &str, variant: VariantChoice, options: u8) -> Outputs {
        let (has_book, has_database) = match variant {
            VariantChoice::Only(variant) => (variant.number().is_some(), true),
            VariantChoice::Auto => (true, false),
        };
        let (bin, index, obs) = match options >> 6 {
            0 => (has_book, true, has_database),
            1 => (has_book, !has_book, false),
            2 => (has_book, true, false),
            _ => (false, !has_database, has_database),
        };
        let path = |kind: &str| room.path(&format!("{name}.{kind}"));
        Outputs {
            bin: bin.then(|| path("bin")),
            index: index.then(|| path("index")),
            obs: obs.then(|| path("obs.db3")),
            variant,
            options,
        }
    }

    /// Executes the run.
    pub fn make(
        &self,
        pgn: &Path,
        change: impl FnOnce(MakeBook) -> MakeBook,
    ) -> polybook::Result<Report> {
        let bit = |number: u8| self.options >> number & 1 == 1;
        let mut run = MakeBook::new([Input::file(pgn)])
            .variant(self.variant)
            .min_game(1)
            .keep_prefix(bit(0))
            .unfinished(if bit(1) {
                Unfinished::Skip
            } else {
                Unfinished::Draw
            })
            .max_ply(if bit(2) { 7 } else { MakeBook::DEFAULT_MAX_PLY })
            .index_stats(bit(3))
            .selection(Selection {
                duplicates: bit(5).then_some(Duplicates::Once),
                ..Selection::default()
            })
            .allow_empty(!bit(4))
            .threads(1);
        if let Some(bin) = &self.bin {
            run = run.bin(bin);
        }
        if let Some(index) = &self.index {
            run = run.leveldb(index);
        }
        if let Some(obs) = &self.obs {
            run = run.obs(obs);
        }
        change(run).run()
    }

    /// Returns the paths of the outputs.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = [&self.bin, &self.index, &self.obs];
        paths.into_iter().flatten().map(PathBuf::as_path)
    }

    /// Checks the outputs of a successful run.
    pub fn check(&self, report: &Report) {
        let games = &report.totals.games;
        assert_eq!(games.read, games.counted + games.filtered + games.rejected);
        if let (Some(bin), Some(summary)) = (&self.bin, &report.book) {
            check_book(bin, summary.entries);
        }
        if let Some(index) = &self.index {
            check_index(index, games.read);
        }
        if let (Some(obs), VariantChoice::Only(variant)) = (&self.obs, self.variant) {
            check_database(obs, variant, report.totals.plies, self.bin.as_deref());
        }
    }
}

fn check_book(bin: &Path, entries: u64) {
    assert_eq!(verify(bin, &Memory::default()).unwrap().faults, []);
    let book = Book::open(bin).unwrap();
    let records = book.iter().filter(|entry| entry.as_ref().unwrap().key != 0);
    assert_eq!(records.count() as u64, entries);
}

fn check_index(index: &Path, games: u64) {
    let index = Index::open(index).unwrap();
    assert_eq!(index.game_count(), games);
    for id in 0..games.min(50) as u32 {
        if index.header(id).unwrap().offset().is_some() {
            assert_eq!(index.text(id).unwrap()[0], b'[');
        }
    }
}

/// Checks that a database contains all half-moves, and that it gives the same book as the games.
fn check_database(path: &Path, variant: Variant, plies: u64, bin: Option<&Path>) {
    let obs = Obs::open(path).unwrap();
    let mut counted = 0;
    for row in obs.rows().unwrap().map(Result::unwrap) {
        let pos = variant.parse_fen(&row.epd).unwrap();
        assert!(legal_move(&pos, &row.mv).is_some(), "{row:?}");
        assert!(row.is_active() && row.stats.games() > 0, "{row:?}");
        counted += row.stats.games();
    }
    assert_eq!(counted, plies);
    let Some(bin) = bin else { return };
    let converted = path.with_extension("converted");
    let filter = polybook::counts::MoveFilter {
        min_game: 1,
        ..Default::default()
    };
    let convert = Convert {
        move_filter: Some(filter),
        threads: 1,
        ..Convert::new(obs)
    };
    let out = polybook::book::begin_book(&converted, false).unwrap();
    match convert.to_bin(out) {
        Ok(_) => assert!(std::fs::read(bin).unwrap() == std::fs::read(converted).unwrap()),
        // A database may have no move with a weight above 0.
        Err(err) => {
            assert_eq!(err.kind(), polybook::ErrorKind::Empty, "{err}");
            let book = Book::open(bin).unwrap();
            // The records of the header have the key 0.
            assert!(book.iter().all(|entry| entry.unwrap().key == 0));
        }
    }
}

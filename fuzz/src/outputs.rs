//! All outputs of some games, and what must be true of them.

use std::path::{Path, PathBuf};

use polybook::{
    MakeBook, Report,
    book::{Book, faults},
    convert::Convert,
    index::Index,
    make_book::Unfinished,
    obs::{Obs, legal_move},
    pgn::Input,
    position::{Variant, VariantChoice},
    tally::Memory,
};

use super::Room;

/// A run over a PGN file with all outputs that its variant can have.
pub struct Outputs {
    pub bin: PathBuf,
    pub index: PathBuf,
    pub obs: PathBuf,
}

impl Outputs {
    pub fn named(room: &Room, name: &str) -> Outputs {
        Outputs {
            bin: room.path(&format!("{name}.bin")),
            index: room.path(&format!("{name}.index")),
            obs: room.path(&format!("{name}.obs.db3")),
        }
    }

    /// Makes them. The bits of `options` choose among the options; bit 7 chooses none.
    pub fn make(
        &self,
        pgn: &Path,
        variant: VariantChoice,
        options: u8,
        change: impl FnOnce(MakeBook) -> MakeBook,
    ) -> polybook::Result<Report> {
        let bit = |number: u8| options >> number & 1 == 1;
        let mut run = MakeBook::new([Input::file(pgn)])
            .variant(variant)
            .min_game(1)
            .keep_prefix(bit(0))
            .unfinished(if bit(1) {
                Unfinished::Skip
            } else {
                Unfinished::Draw
            })
            .max_ply(if bit(2) { 7 } else { MakeBook::DEFAULT_MAX_PLY })
            .index_stats(bit(3))
            .drop_duplicates(bit(5))
            .allow_empty(!bit(4))
            .threads(1)
            .leveldb(&self.index);
        if has_book(variant) {
            run = run.bin(&self.bin);
        }
        if variant != VariantChoice::Auto {
            run = run.obs(&self.obs);
        }
        change(run).run()
    }

    /// What must be true of the outputs of a run that succeeded.
    pub fn check(&self, variant: VariantChoice, report: &Report) {
        let games = &report.totals.games;
        assert_eq!(games.read, games.counted + games.filtered + games.rejected);
        self.check_book(report);
        self.check_index(games.read);
        if let VariantChoice::Only(variant) = variant {
            self.check_database(variant, report.totals.plies);
        }
    }

    fn check_book(&self, report: &Report) {
        let Some(summary) = &report.book else { return };
        assert_eq!(faults(&self.bin, &Memory::default()).unwrap(), []);
        let book = Book::open(&self.bin).unwrap();
        let records = book.iter().filter(|entry| entry.as_ref().unwrap().key != 0);
        assert_eq!(records.count() as u64, summary.entries);
    }

    fn check_index(&self, games: u64) {
        let index = Index::open(&self.index).unwrap();
        assert_eq!(index.game_count(), games);
        for id in 0..games.min(50) as u32 {
            if index.header(id).unwrap().offset().is_some() {
                assert_eq!(index.text(id).unwrap()[0], b'[');
            }
        }
    }

    fn check_database(&self, variant: Variant, plies: u64) {
        let obs = Obs::open(&self.obs).unwrap();
        let mut counted = 0;
        for row in obs.rows().unwrap().map(Result::unwrap) {
            let pos = variant.parse_fen(&row.epd).unwrap();
            assert!(legal_move(&pos, &row.mv).is_some(), "{row:?}");
            assert!(row.is_active() && row.stats.games() > 0, "{row:?}");
            counted += row.stats.games();
        }
        assert_eq!(counted, plies);
        if variant.number().is_some() {
            let converted = self.bin.with_extension("converted");
            Convert::new(obs)
                .move_filter(polybook::tally::MoveFilter {
                    min_game: 1,
                    ..Default::default()
                })
                .threads(1)
                .to_bin(&converted)
                .unwrap();
            let direct = std::fs::read(&self.bin).unwrap();
            assert!(direct == std::fs::read(converted).unwrap());
        }
    }
}

fn has_book(variant: VariantChoice) -> bool {
    match variant {
        VariantChoice::Only(variant) => variant.number().is_some(),
        VariantChoice::Auto => true,
    }
}

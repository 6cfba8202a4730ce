//! Opening books and game indexes from PGN.
//!
//! polybook turns games in PGN into a [Polyglot opening book](book) for engines and GUIs, an [index] of the games
//! by position, and an [OOBS database](obs) (SQLite) of all results. It [reads](pgn) games of chess and its
//! [variants](position::Variant) on all cores in bounded memory, and [counts] wins, draws and losses for each
//! position and move. [One pipeline](MakeBook) connects these steps.
//!
//! # A book from games
//!
//! ```
//! use polybook::{MakeBook, book::Book, pgn::Input, position::from_text};
//!
//! # let dir = tempfile::tempdir()?;
//! # let bin = dir.path().join("book.bin");
//! let report = MakeBook::new([Input::file("data/famous.pgn")])
//!     .min_game(2)
//!     .max_ply(20)
//!     .bin(&bin)
//!     .run()?;
//! assert_eq!(report.totals.games.rejected, 0);
//!
//! let book = Book::open(&bin)?;
//! let moves = book.moves_of(&from_text(None, Some("e4 e5 Nf3"))?)?;
//! assert_eq!(moves[0].mv.to_string(), "b8c6");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! If all features are disabled, the crate contains only positions and the reader of books, and depends on fewer than
//! 20 other crates.
//!
//! | feature | adds |
//! |---|---|
//! | `games` | uncompressed PGN, making books and indexes, and the explorer's answers; all features below enable it |
//! | `compression` | PGN that is compressed with gzip, bzip2, zstd or zip |
//! | `obs` | [OOBS databases](obs) with the SQLite library of the system, and [`convert`] |
//! | `bundled-sqlite` | like `obs`, with an SQLite library that is compiled in |
//! | `parquet` | [counts] as Parquet files |
//! | `serve` | the explorer as an [HTTP server](serve) |
//! | `download` | [downloading games](download) from Lichess and Chess.com |
//! | `cli` | the program `polybook` |
//!
//! `cli`, `bundled-sqlite`, `download` and `serve` are enabled by default. A program that needs only the library disables them with
//! `default-features = false`.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A build with fewer features lacks modules that the documentation links to, and does not use all shared code. The
// feature `serve` enables the whole library.
#![cfg_attr(
    not(feature = "serve"),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        rustdoc::broken_intra_doc_links
    )
)]

mod chess;
mod error;
mod formats;
mod kind;
pub mod progress;
pub mod storage;
#[doc(hidden)]
pub mod text;

cfg_if::cfg_if! {
    if #[cfg(feature = "games")] {
        mod explore;
        mod games;
        #[doc(hidden)]
        pub mod json;
        pub mod make_book;
        pub mod provenance;
        #[cfg(feature = "serve")]
        pub mod serve;
        mod task;

        pub use self::{
            explore::{engine, explorer, tree},
            formats::{counts, evals, explorer_index, fork_index, index, suite},
            games::{board_query, openings, pgn, results, selection},
            make_book::{MakeBook, Report, plies},
        };
        #[cfg(feature = "download")]
        pub use self::games::download;
        #[cfg(feature = "obs")]
        pub use self::{formats::obs, make_book::convert};
        #[cfg(all(feature = "obs", feature = "parquet"))]
        pub use self::explore::{practice, repertoire};
    }
}

#[doc(hidden)]
pub use self::error::plural;
pub use self::{
    chess::position,
    error::{Advice, Diagnosis, Error, ErrorKind, ForeignFormat, NamedOption, Result, SpellOption},
    formats::book,
    kind::FileKind,
};

/// The commands of the program. The library contains them only in its own tests, so that a test can make any part of a
/// command panic.
#[cfg(all(test, feature = "cli"))]
mod cli;

/// Makes the crate's own name available in the crate, because the commands refer to the library by this name.
#[cfg(all(test, feature = "cli"))]
extern crate self as polybook;

/// An empty type whose documentation is README.md. The Rust examples in README.md are therefore compiled as
/// documentation tests.
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../README.md")]
struct Documents;

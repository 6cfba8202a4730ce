//! Measures a lower bound for making books with these libraries: `pgn-reader` and `shakmaty` replay a file without keys,
//! counts or output.
//!
//! ```sh
//! cargo run --release --example floor -- games.pgn 2
//! ```
//!
//! As in `make-book`, the file is cut into batches, which are replayed on the threads of a rayon pool.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use pgn_reader::{Reader, SanPlus, Visitor};
use polybook::pgn::{Cutter, Input, StreamOptions};
use shakmaty::{Chess, Position};

struct Replay {
    plies: u64,
}

impl Visitor for Replay {
    type Tags = ();
    type Movetext = Chess;
    type Output = ();

    fn begin_tags(&mut self) -> ControlFlow<(), ()> {
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, _tags: ()) -> ControlFlow<(), Chess> {
        ControlFlow::Continue(Chess::default())
    }

    fn san(&mut self, pos: &mut Chess, san: SanPlus) -> ControlFlow<()> {
        match san.san.to_move(pos) {
            Ok(mv) => {
                pos.play_unchecked(mv);
                self.plies += 1;
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn end_game(&mut self, _pos: Chess) {}
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let path = PathBuf::from(args.next().unwrap_or_else(|| "data/selfplay.pgn".into()));
    let threads = args
        .next()
        .and_then(|n| n.to_str()?.parse().ok())
        .unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let plies = AtomicU64::new(0);
    pool.in_place_scope(|scope| -> anyhow::Result<()> {
        let mut cutter = Cutter::new(Input::file(path).open(&StreamOptions::default())?, 1 << 19);
        while let Some(batch) = cutter.next_batch()? {
            let plies = &plies;
            scope.spawn(move |_| {
                let mut replay = Replay { plies: 0 };
                let mut reader = Reader::new(&batch.text[..]);
                while let Ok(Some(())) = reader.read_game(&mut replay) {}
                plies.fetch_add(replay.plies, Ordering::Relaxed);
            });
        }
        Ok(())
    })?;
    println!("{} half-moves", plies.into_inner());
    Ok(())
}

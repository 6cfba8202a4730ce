//! Benchmarks for each part of the pipeline alone: `cargo bench --bench parts`.
//!
//! The benchmarks read the games of `data/selfplay.pgn`, or of the file that `POLYBOOK_BENCH_PGN` names.

use std::{hint::black_box, io::Write, path::PathBuf};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use polybook::{
    MakeBook,
    book::{Book, BookMaker, Weights, begin_book},
    convert::Convert,
    counts::{CountRecord, Memory, MoveFilter, Tally},
    evals::{Evals, EvalsFormat, MakeEvals, eval_key},
    index::Index,
    obs::Obs,
    pgn::{Cutter, GameReader, GameResult, Input, StreamOptions, Token},
    position::{BookMove, Keyed, read_move, read_word, write_epd},
    results::Wdl,
    storage::output::AtomicFile,
};
use shakmaty::{Chess, Position};

fn pgn_path() -> PathBuf {
    std::env::var_os("POLYBOOK_BENCH_PGN").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data/selfplay.pgn")),
        PathBuf::from,
    )
}

fn pgn() -> Vec<u8> {
    std::fs::read(pgn_path()).unwrap()
}

/// Calls `f` with every move of every game.
fn for_each_move(text: &[u8], mut f: impl FnMut(&[u8])) {
    let mut games = GameReader::new(text);
    while games.next_game() {
        while let Token::Move { text, .. } = games.next_token() {
            f(text);
        }
    }
}

/// Returns the records of all moves.
fn records(text: &[u8]) -> Vec<CountRecord> {
    let mut records = Vec::new();
    let mut games = GameReader::new(text);
    while games.next_game() {
        let mut pos = Keyed::new(Chess::default());
        while let Token::Move { text, .. } = games.next_token() {
            let mv = read_move(pos.position(), text).unwrap();
            let turn = pos.position().turn();
            let stats = Wdl::of_game(GameResult::WhiteWins.winner(), turn);
            records.push(CountRecord::new(pos.key(), BookMove::from(mv), turn, stats));
            pos.play(mv);
        }
    }
    records
}

fn reading(c: &mut Criterion) {
    let text = pgn();
    let mut group = c.benchmark_group("pgn");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("cutting", |b| {
        b.iter(|| {
            let mut cutter = Cutter::new(&text[..], 1 << 19);
            while let Some(batch) = cutter.next_batch().unwrap() {
                black_box(batch);
            }
        });
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("games.pgn.zst");
    std::fs::write(&path, zstd::encode_all(&text[..], 0).unwrap()).unwrap();
    let packed = Input::file(&path);
    group.bench_function("unpacking .zst and cutting", |b| {
        b.iter(|| {
            let stream = packed.open(&StreamOptions::default()).unwrap();
            let mut cutter = Cutter::new(stream, 1 << 19);
            while let Some(batch) = cutter.next_batch().unwrap() {
                black_box(batch);
            }
        });
    });
    group.bench_function("reading moves", |b| {
        b.iter(|| {
            for_each_move(&text, |mv| {
                black_box(mv);
            })
        });
    });
    group.bench_function("skipping moves", |b| {
        b.iter(|| {
            let mut games = GameReader::new(&text);
            while games.next_game() {
                black_box(games.skip_moves());
            }
        });
    });
    group.finish();
}

fn replaying(c: &mut Criterion) {
    let text = pgn();
    let mut plies = 0;
    for_each_move(&text, |_| plies += 1);
    let mut group = c.benchmark_group("position");
    group.throughput(Throughput::Elements(plies));
    group.bench_function("replaying without keys", |b| {
        b.iter(|| {
            let mut games = GameReader::new(&text);
            while games.next_game() {
                let mut pos = Chess::default();
                while let Token::Move { text, .. } = games.next_token() {
                    let mv = read_move(&pos, text).unwrap();
                    pos.play_unchecked(mv);
                }
                black_box(pos);
            }
        });
    });
    group.bench_function("replaying with keys", |b| {
        b.iter(|| black_box(records(&text)));
    });
    // This is how make-book replays games.
    group.bench_function("replaying words with keys", |b| {
        b.iter(|| {
            let mut games = GameReader::new(&text);
            while games.next_game() {
                let mut pos = Keyed::new(Chess::default());
                loop {
                    let word = games.peek_word();
                    let mv = word.and_then(|word| read_word(pos.position(), word));
                    if let (Some(word), Some(mv)) = (word, mv) {
                        games.take_word(word);
                        pos.play(mv);
                    } else if let Token::Move { text, .. } = games.next_token() {
                        let mv = read_move(pos.position(), text).unwrap();
                        pos.play(mv);
                    } else {
                        break;
                    }
                }
                black_box(pos.key());
            }
        });
    });
    group.finish();
}

fn counting(c: &mut Criterion) {
    // Use more records than fit into the cache.
    let once = records(&pgn());
    let copies = (2_000_000 / once.len()).max(1) as u64;
    let records: Vec<CountRecord> = (0..copies)
        .flat_map(|copy| {
            let salt = copy.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Positions of openings are equal in all copies; most other positions differ.
            once.iter().enumerate().map(move |(i, record)| {
                if i % 8 == 0 {
                    *record
                } else {
                    let key = record.key() ^ salt;
                    CountRecord::new(key, record.book_move(), record.turn(), record.stats())
                }
            })
        })
        .collect();
    let mut group = c.benchmark_group("tally");
    group.sample_size(10);
    group.throughput(Throughput::Elements(records.len() as u64));
    for (name, bytes) in [
        ("counting", 1 << 30),
        ("counting, spilling and merging", 8 << 20),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let memory = Memory {
                    bytes,
                    ..Memory::default()
                };
                let tally = Tally::new(memory);
                for batch in records.chunks(60_000) {
                    tally.add_records(batch).unwrap();
                }
                black_box(tally.sort().unwrap());
            });
        });
    }
    // For comparison: a hash map per shard, with one lookup per half-move.
    group.bench_function("counting in a hash map per shard", |b| {
        b.iter(|| {
            let mut maps: Vec<std::collections::HashMap<(u64, u16), Wdl>> =
                (0..256).map(|_| Default::default()).collect();
            for record in &records {
                let (key, mv) = (record.key(), record.book_move());
                let map = &mut maps[(key >> 56) as usize];
                *map.entry((key, mv.0)).or_default() += record.stats();
            }
            for map in maps {
                let mut sorted: Vec<_> = map.into_iter().collect();
                sorted.sort_unstable_by_key(|(identity, _)| *identity);
                black_box(sorted);
            }
        });
    });
    group.finish();
}

fn books(c: &mut Criterion) {
    let tally = Tally::new(Memory::default());
    tally.add_records(&records(&pgn())).unwrap();
    let counts = tally.sort().unwrap();
    let weights = Weights::default();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book.bin");
    let mut group = c.benchmark_group("book");
    for (name, filter) in [
        (
            "looking through and writing every move",
            MoveFilter::every_move(),
        ),
        (
            "looking through and writing few moves",
            MoveFilter::default(),
        ),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let maker = BookMaker::new(&counts, &filter, &weights).unwrap();
                let mut file = AtomicFile::create(&path).unwrap();
                maker.write(None, &mut file, &std::env::temp_dir()).unwrap();
                file.commit().unwrap();
            });
        });
    }

    // A book of three million records with evenly distributed keys, as in a real book.
    let mut keys: Vec<u64> = (0..3_000_000u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995)
        .collect();
    keys.sort_unstable();
    let mut bytes = Vec::with_capacity(keys.len() * 16);
    for key in &keys {
        bytes.write_all(&key.to_be_bytes()).unwrap();
        bytes.write_all(&[0x03, 0x1c, 0, 1, 0, 0, 0, 0]).unwrap();
    }
    let book = Book::from_bytes(bytes).unwrap();
    group.throughput(Throughput::Elements(1000));
    group.bench_function("probing at random", |b| {
        let mut state = 7usize;
        b.iter_batched(
            || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state >> 33
            },
            |start| {
                for i in 0..1000 {
                    let at = (start + i * 1_000_003) % keys.len();
                    black_box(book.moves(keys[at]).unwrap());
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn index(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("idx");
    let run = MakeBook::new([Input::file(pgn_path())])
        .leveldb(&path)
        .force(true);
    let mut group = c.benchmark_group("index");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(pgn().len() as u64));
    group.bench_function("making", |b| b.iter(|| run.run().unwrap()));
    let with_stats = MakeBook::new([Input::file(pgn_path())])
        .leveldb(dir.path().join("stats"))
        .index_stats(true)
        .force(true);
    group.bench_function("making with statistics", |b| {
        b.iter(|| with_stats.run().unwrap());
    });
    // A filter may have skipped the benchmark that makes this output.
    run.run().unwrap();
    let index = Index::open(&path).unwrap();
    let keys: Vec<u64> = records(&pgn()).into_iter().map(CountRecord::key).collect();
    let mut at = 0;
    group.throughput(Throughput::Elements(1));
    group.bench_function("looking up a position", |b| {
        b.iter(|| {
            at = (at + 1_000_003) % keys.len();
            black_box(index.games(keys[at]).unwrap());
        });
    });
    group.bench_function("looking up a position that no game reached", |b| {
        b.iter(|| {
            at += 1;
            black_box(
                index
                    .games((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                    .unwrap(),
            );
        });
    });
    group.finish();
}

fn obs(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bench.obs.db3");
    let make = || {
        MakeBook::new([Input::file(pgn_path())])
            .min_game(1)
            .obs(&path)
            .force(true)
            .run()
            .unwrap()
    };
    let report = make();
    let rows = report.obs.unwrap().rows;
    let mut positions = Vec::new();
    let text = pgn();
    let mut games = GameReader::new(&text);
    while games.next_game() && positions.len() < 20_000 {
        let mut pos = Chess::default();
        while let Token::Move { text, .. } = games.next_token() {
            positions.push(pos.clone());
            pos.play_unchecked(read_move(&pos, text).unwrap());
        }
    }

    let mut group = c.benchmark_group("obs");
    group.throughput(Throughput::Elements(positions.len() as u64));
    group.bench_function("writing EPDs", |b| {
        let mut text = Vec::new();
        b.iter(|| {
            for pos in &positions {
                text.clear();
                write_epd(pos, &mut text);
                black_box(&text);
            }
        });
    });
    let database = Obs::open(&path).unwrap();
    group.sample_size(10);
    group.bench_function("looking up", |b| {
        b.iter(|| {
            for pos in &positions {
                black_box(database.moves(pos).unwrap());
            }
        });
    });
    group.throughput(Throughput::Elements(rows));
    group.bench_function("games to database", |b| b.iter(make));
    group.bench_function("database to book", |b| {
        let bin = dir.path().join("bench.bin");
        b.iter(|| {
            let convert = Convert::new(Obs::open(&path).unwrap());
            convert.to_bin(begin_book(&bin, false).unwrap()).unwrap()
        });
    });
}

/// Benchmarks merging four copies of the counts of the same games.
fn counts(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let directories: Vec<PathBuf> = (0..4).map(|i| dir.path().join(format!("{i}"))).collect();
    let make = |path: &PathBuf| {
        let run = MakeBook::new([Input::file(pgn_path())]).counts(path);
        run.force(true).run().unwrap()
    };
    let entries: u64 = directories.iter().map(|path| make(path).pairs).sum();
    let mut group = c.benchmark_group("counts");
    group.sample_size(10);
    group.throughput(Throughput::Elements(entries));
    for (what, fewest) in [("merging to a book", 30), ("merging every move", 1)] {
        group.bench_function(what, |b| {
            b.iter(|| {
                let run = MakeBook::new(directories.iter().map(Input::file));
                let run = run.min_game(fewest).bin(dir.path().join("book.bin"));
                run.run().unwrap()
            });
        });
    }
    group.throughput(Throughput::Bytes(pgn().len() as u64));
    group.bench_function("games to counts", |b| b.iter(|| make(&directories[0])));
    group.finish();
}

fn evals(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let (epd, store) = (dir.path().join("a.epd"), dir.path().join("a.evals"));
    let (mut keys, mut lines) = (Vec::new(), Vec::new());
    let text = pgn();
    let mut games = GameReader::new(&text);
    while games.next_game() {
        let mut pos = Keyed::new(Chess::default());
        while let Token::Move { text, .. } = games.next_token() {
            pos.play(read_move(pos.position(), text).unwrap());
            keys.push(eval_key(pos.position()));
            write_epd(pos.position(), &mut lines);
            lines.extend_from_slice(b" acd 20; ce 17;\n");
        }
    }
    std::fs::write(&epd, lines).unwrap();
    let make = || MakeEvals::new([Input::file(&epd)]).run(&store, EvalsFormat::Store);
    make().unwrap();
    let mut group = c.benchmark_group("evals");
    group.sample_size(10);
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function("lines to a store", |b| b.iter(make));
    for (what, memory) in [("finding in the file", 0), ("finding in memory", u64::MAX)] {
        let evals = Evals::open_within(&store, memory).unwrap();
        let find = |key: &u64| evals.find(*key).unwrap().unwrap();
        group.bench_function(what, |b| {
            b.iter(|| keys.iter().map(find).for_each(|eval| _ = black_box(eval)));
        });
    }
    group.finish();
}

fn whole(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book.bin");
    let mut group = c.benchmark_group("make-book");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(pgn().len() as u64));
    for threads in [1, 2] {
        group.bench_function(format!("{threads} threads"), |b| {
            b.iter(|| {
                let run = MakeBook::new([Input::file(pgn_path())]).threads(threads);
                run.min_game(1).bin(&path).run().unwrap()
            });
        });
    }
    group.finish();
}

criterion_group!(
    parts, reading, replaying, counting, books, index, obs, counts, evals, whole
);
criterion_main!(parts);

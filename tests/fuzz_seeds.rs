//! Runs the seeds of the fuzz targets through the same functions, so that old bugs do not come back.

#[path = "../fuzz/src/lib.rs"]
mod polybook_fuzz;

use std::{fs, path::Path};

fn replay(target: &str, run: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut count = 0;
    for seed in fs::read_dir(seeds).unwrap() {
        let path = seed.unwrap().path();
        eprintln!("{}", path.display());
        run(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 0, "{target} has no seeds");
    // Empty input is also an input.
    run(&[]);
}

macro_rules! replayed {
    ($($target:ident),*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target), polybook_fuzz::$target::run);
        })*
    };
}

replayed!(
    board_query,
    books,
    counts_files,
    databases,
    differential_self,
    differential_shakmaty,
    engine,
    evals,
    explorer_request,
    index_files,
    pgn_outputs,
    position_text,
    reader,
    suites,
    variants
);

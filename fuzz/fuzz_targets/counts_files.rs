#![no_main]

use std::{panic, sync::Once};

/// The library catches panics of the crate `parquet`, but libFuzzer's panic hook would end the process before. Panics that
/// the library does not catch still end the process.
static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    QUIET.call_once(|| panic::set_hook(Box::new(|_| {})));
    polybook_fuzz::counts_files::run(data);
});

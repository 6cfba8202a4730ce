#![no_main]

use std::{panic, sync::Once};

/// The library catches what the crate `parquet` panics with, where the hook of libFuzzer would end the process. What is
/// not caught ends it all the same.
static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    QUIET.call_once(|| panic::set_hook(Box::new(|_| {})));
    polybook_fuzz::counts_files::run(data);
});

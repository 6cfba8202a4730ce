#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| polybook_fuzz::board_query::run(data));

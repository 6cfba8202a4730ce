#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| polybook_fuzz::reader::run(data));

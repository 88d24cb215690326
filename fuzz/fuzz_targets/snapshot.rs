//! See `gangline_fuzz::snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::snapshot(data));

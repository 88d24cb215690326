//! See `gangline_fuzz::engine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::engine(data));

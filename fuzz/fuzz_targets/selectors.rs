//! See `gangline_fuzz::selectors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::selectors(data));

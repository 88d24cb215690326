//! See `gangline_fuzz::links`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::links(data));

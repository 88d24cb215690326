//! See `gangline_fuzz::volcano`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::volcano(data));

//! See `gangline_fuzz::documents`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::documents(data));

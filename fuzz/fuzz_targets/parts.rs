//! See `gangline_fuzz::parts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::parts(data));

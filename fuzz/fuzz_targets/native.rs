//! See `gangline_fuzz::native`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::native(data));

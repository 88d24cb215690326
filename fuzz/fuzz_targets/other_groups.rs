//! See `gangline_fuzz::other_groups`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::other_groups(data));

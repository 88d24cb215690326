//! See `gangline_fuzz::scheduler_plugins`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::scheduler_plugins(data));

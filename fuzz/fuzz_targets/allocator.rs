//! See `gangline_fuzz::allocator`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gangline_fuzz::allocator(data));

//! The command `gangline`.
fn main() {}

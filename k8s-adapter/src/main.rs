//! The command `gangline`. Everything is in the library, so that tests and other programs can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    gangline_k8s::cli::main()
}

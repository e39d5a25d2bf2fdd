//! The worker of the tests. The binary `antiphon` is its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_shell::worker_main()
}

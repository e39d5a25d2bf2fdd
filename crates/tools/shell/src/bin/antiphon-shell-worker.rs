//! The worker that the tests start. The binary `antiphon` is its own worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_shell::worker_main()
}

//! The guard that the tests start. The binary `antiphon` is its own guard.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_terminal::guard_main()
}

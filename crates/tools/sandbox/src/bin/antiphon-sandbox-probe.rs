//! The worker of the tests: answers the probe.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_sandbox::answer_probe().unwrap_or(ExitCode::FAILURE)
}

//! The worker of the tests: makes the attempts it was started for.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_sandbox::answer_probe().unwrap_or(ExitCode::FAILURE)
}

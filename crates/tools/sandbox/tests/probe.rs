//! Tests of the sandbox on this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use antiphon_sandbox::{WorkerCommand, probe};

#[test]
fn the_sandbox_holds_on_this_machine() {
    let program = env!("CARGO_BIN_EXE_antiphon-sandbox-probe").into();
    let report = probe(&WorkerCommand { program, args: Vec::new() }, &scratch()).unwrap();
    let failed: Vec<_> = report.trials.iter().filter(|trial| !trial.passed).collect();
    assert!(report.holds(), "{failed:#?}");
    assert_eq!(report.trials.len(), 16);
}

#[test]
fn a_worker_that_does_nothing_proves_nothing() {
    let worker = WorkerCommand { program: "/bin/true".into(), args: Vec::new() };
    let error = probe(&worker, &scratch()).unwrap_err();
    assert!(error.to_string().contains("hear from its worker"), "{error}");
}

/// A writable folder that is not below a folder that the sandbox replaces: the build folder, unless
/// it is in `/tmp`.
fn scratch() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let candidates = [env!("CARGO_TARGET_TMPDIR"), env!("CARGO_MANIFEST_DIR")].map(PathBuf::from);
    let others = ["/var/lib", "/srv", "/opt"].map(PathBuf::from);
    let own = ["/tmp", "/var/tmp", "/run", "/dev"];
    let fits = |path: &PathBuf| {
        !own.iter().any(|own| path.starts_with(own)) && tempfile::tempdir_in(path).is_ok()
    };
    candidates.into_iter().chain(home).chain(others).find(fits).unwrap()
}

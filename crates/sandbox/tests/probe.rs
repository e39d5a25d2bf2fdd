//! The sandbox, tried out on this machine.

use std::path::Path;

use antiphon_sandbox::{WorkerCommand, probe};

#[test]
fn the_sandbox_holds_on_this_machine() {
    let program = env!("CARGO_BIN_EXE_antiphon-sandbox-probe").into();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let report = probe(&WorkerCommand { program, args: Vec::new() }, scratch).unwrap();
    let failed: Vec<_> = report.trials.iter().filter(|trial| !trial.passed).collect();
    assert!(report.holds(), "{failed:#?}");
    assert_eq!(report.trials.len(), 13);
}

#[test]
fn a_worker_that_does_nothing_proves_nothing() {
    let worker = WorkerCommand { program: "/bin/true".into(), args: Vec::new() };
    let error = probe(&worker, Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_err();
    assert!(error.to_string().contains("hear from its worker"), "{error}");
}

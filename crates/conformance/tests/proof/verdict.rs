//! Compares faults with the checks that must catch them.

use std::fmt::Debug;

use antiphon_conformance::{Passed, Violations};

/// Runs the suite on each fault. Only its own check may catch it.
pub(crate) async fn each_fault_is_caught_by_its_own_check<F: Copy + Debug>(
    faults: &[(F, &str)],
    run: impl AsyncFn(F) -> Result<Passed, Violations>,
) {
    let mut wrong = Vec::new();
    for (fault, check) in faults {
        match run(*fault).await {
            Ok(_) => wrong.push(format!("{fault:?} passes, `{check}` should catch it")),
            Err(violations) if violations.checks() != [*check] => {
                wrong.push(format!("{fault:?} belongs to `{check}`: {violations}"));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every check of a suite has a fault.
pub(crate) fn each_check_has_a_fault<F>(checks: &[&str], faults: &[(F, &str)]) {
    let has_fault = |check: &str| faults.iter().any(|(_, caught_by)| *caught_by == check);
    let idle: Vec<_> = checks.iter().filter(|check| !has_fault(check)).collect();
    assert!(idle.is_empty(), "no fault shows what these are good for: {idle:?}");
}

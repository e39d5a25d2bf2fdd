//! Chooses the runner of an agent: the first of its runtimes that is available.

use std::sync::Arc;

use antiphon_core::port::Runner;
use antiphon_core::{RunnerConfig, Runtime};

/// The first available runtime; `None` is this process. The error says for each why it is not
/// available.
pub(crate) fn choose(
    wishes: &[Runtime],
    runners: &[Arc<dyn Runner>],
) -> Result<Option<RunnerConfig>, String> {
    let mut reasons = Vec::new();
    for wish in wishes {
        match check(wish, runners) {
            Ok(chosen) => return Ok(chosen),
            Err(reason) => reasons.push(format!("{}: {reason}", wish.kind())),
        }
    }
    if wishes.is_empty() { Ok(None) } else { Err(reasons.join("; ")) }
}

/// The runner with the configuration that a new task keeps.
fn check(wish: &Runtime, runners: &[Arc<dyn Runner>]) -> Result<Option<RunnerConfig>, String> {
    let Runtime::Runner(wanted) = wish else { return Ok(None) };
    match runners.iter().find(|known| known.kind() == wanted.kind) {
        Some(known) => {
            known.check(&wanted.config)?;
            let config = known.with_defaults(&wanted.config);
            Ok(Some(RunnerConfig { kind: wanted.kind.clone(), config }))
        }
        None => {
            let mut present = vec!["local"];
            present.extend(runners.iter().map(|known| known.kind()));
            Err(format!("there is no such runner here, only {}", present.join(", ")))
        }
    }
}

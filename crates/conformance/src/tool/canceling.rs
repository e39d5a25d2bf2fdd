//! Calls that are told to stop.

use std::pin::pin;
use std::time::Duration;

use antiphon_core::Tool;
use antiphon_core::port::{Cancel, ToolError};
use tokio::time::timeout;

use super::bench::{Bench, switch};
use crate::suite::{During, Finding, Outcome, equal, quote};

/// How long a call may take to be gone.
const PROMPT: Duration = Duration::from_secs(2);

/// How long a call is watched to see that it goes on.
const GLANCE: Duration = Duration::from_millis(50);

pub(super) async fn a_call_that_is_canceled_before_it_begins_does_not_run(bench: Bench) -> Outcome {
    for Tool { name, .. } in bench.executor.tools() {
        let Some(arguments) = bench.example_of(&name)?.acceptable() else {
            continue;
        };
        let canceled = Cancel::when(std::future::ready(()));
        let answer = timeout(PROMPT, bench.call(&name, arguments, canceled)).await;
        let answer = answer.during(&format!("`{name}` was canceled, but"))??;
        equal(&format!("`{name}` when canceled"), &answer, &Err(ToolError::Canceled))?;
    }
    Ok(())
}

pub(super) async fn a_slow_call_holds_nobody_up(bench: Bench) -> Outcome {
    let good = bench.good()?;
    for (slow, slow_arguments) in bench.slow()? {
        let mut running = pin!(bench.call(&slow, &slow_arguments, Cancel::never()));
        goes_on(&slow, &mut running).await?;
        for (name, arguments) in &good {
            let answer = tokio::select! {
                early = &mut running => {
                    return Err(Finding::Broken(format!("`{slow}` ended: {}", quote(&early?))));
                }
                answer = timeout(PROMPT, bench.call(name, arguments, Cancel::never())) => answer,
            };
            // What came of it is another check.
            drop(answer.during(&format!("`{name}` beside `{slow}`"))??);
        }
    }
    Ok(())
}

pub(super) async fn a_canceled_call_ends(bench: Bench) -> Outcome {
    for (name, arguments) in bench.slow()? {
        let (switch, cancel) = switch();
        let mut running = pin!(bench.call(&name, &arguments, cancel));
        goes_on(&name, &mut running).await?;
        drop(switch);
        ends(&name, running).await?;
    }
    Ok(())
}

pub(super) async fn canceling_one_call_leaves_the_others(bench: Bench) -> Outcome {
    for (name, arguments) in bench.slow()? {
        let (switch, cancel) = switch();
        let mut canceled = pin!(bench.call(&name, &arguments, cancel));
        let mut other = pin!(bench.call(&name, &arguments, Cancel::never()));
        goes_on(&name, &mut canceled).await?;
        goes_on(&name, &mut other).await?;
        drop(switch);
        // Whether it ends is another check.
        drop(timeout(PROMPT, canceled).await);
        goes_on(&name, &mut other).await?;
    }
    Ok(())
}

type Answer = Result<Result<antiphon_core::ToolResult, ToolError>, Finding>;

/// Runs a call for a moment, in which it must not end.
async fn goes_on(name: &str, running: impl Future<Output = Answer>) -> Outcome {
    match timeout(GLANCE, running).await {
        Err(_) => Ok(()),
        Ok(answer) => {
            Err(Finding::Broken(format!("`{name}` should go on, but ended: {}", quote(&answer?))))
        }
    }
}

/// Runs a canceled call to its end, which must be near.
async fn ends(name: &str, running: impl Future<Output = Answer>) -> Outcome {
    let answer = timeout(PROMPT, running).await;
    let answer = answer.during(&format!("`{name}` was canceled, but"))??;
    equal(&format!("`{name}` when canceled"), &answer, &Err(ToolError::Canceled))
}

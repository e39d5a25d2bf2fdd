//! Calls that are canceled.

use std::pin::pin;
use std::time::Duration;

use antiphon_core::port::{Cancel, ToolError};
use tokio::time::timeout;

use super::tool_fixture::{ToolFixture, switch};
use crate::suite::{During, Finding, Outcome, equal, quote};

/// Time limit for a call to end.
const PROMPT: Duration = Duration::from_secs(2);

/// Time for which a call must keep running.
const GLANCE: Duration = Duration::from_millis(50);

pub(super) async fn a_call_that_is_canceled_before_it_begins_does_not_run(
    fixture: ToolFixture,
) -> Outcome {
    for tool in fixture.executor.tools() {
        let name = &tool.name;
        let Some(arguments) = fixture.example_of(name)?.acceptable() else {
            continue;
        };
        let canceled = Cancel::when(std::future::ready(()));
        let answer = timeout(PROMPT, fixture.call(name, arguments, canceled)).await;
        let answer = answer.during(&format!("`{name}` was canceled, but"))??;
        equal(&format!("`{name}` when canceled"), &answer, &Err(ToolError::Canceled))?;
    }
    Ok(())
}

pub(super) async fn a_slow_call_does_not_delay_others(fixture: ToolFixture) -> Outcome {
    let good = fixture.good()?;
    for (slow, slow_arguments) in fixture.slow()? {
        let mut running = pin!(fixture.call(&slow, &slow_arguments, Cancel::never()));
        goes_on(&slow, &mut running).await?;
        for (name, arguments) in &good {
            let answer = tokio::select! {
                early = &mut running => {
                    return Err(Finding::Broken(format!("`{slow}` ended: {}", quote(&early?))));
                }
                answer = timeout(PROMPT, fixture.call(name, arguments, Cancel::never())) => answer,
            };
            // The result is another check.
            drop(answer.during(&format!("`{name}` beside `{slow}`"))??);
        }
    }
    Ok(())
}

pub(super) async fn a_canceled_call_ends(fixture: ToolFixture) -> Outcome {
    for (name, arguments) in fixture.slow()? {
        let (switch, cancel) = switch();
        let mut running = pin!(fixture.call(&name, &arguments, cancel));
        goes_on(&name, &mut running).await?;
        drop(switch);
        ends(&name, running).await?;
    }
    Ok(())
}

pub(super) async fn canceling_one_call_leaves_the_others(fixture: ToolFixture) -> Outcome {
    for (name, arguments) in fixture.slow()? {
        let (switch, cancel) = switch();
        let mut canceled = pin!(fixture.call(&name, &arguments, cancel));
        let mut other = pin!(fixture.call(&name, &arguments, Cancel::never()));
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

/// Runs a canceled call to its end, which must come soon.
async fn ends(name: &str, running: impl Future<Output = Answer>) -> Outcome {
    let answer = timeout(PROMPT, running).await;
    let answer = answer.during(&format!("`{name}` was canceled, but"))??;
    equal(&format!("`{name}` when canceled"), &answer, &Err(ToolError::Canceled))
}

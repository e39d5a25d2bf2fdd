//! Interruptions of a model call or a tool call of a run, and the suspension after an interrupt.

use antiphon_core::{Cancel, StatusChanged, WaitingFor};
use tokio_util::sync::CancellationToken;

use crate::task::control::interrupt;
use crate::task::limits;
use crate::task::step::TaskRun;

impl TaskRun {
    /// Fires when the task is canceled or interrupted, its time is over, or the orchestrator begins to
    /// stop. For calls of the model, which can be repeated.
    pub(crate) fn interruption(&self) -> Cancel {
        self.interruption_or(self.services.background.stop.clone())
    }

    /// The same for tools: they may finish while the orchestrator drains.
    pub(crate) fn tool_interruption(&self) -> Cancel {
        self.interruption_or(self.services.background.cut_off.clone())
    }

    fn interruption_or(&self, stop: CancellationToken) -> Cancel {
        let interrupt = self.running.interrupt.token();
        let cancel = self.running.cancel.clone();
        let left = limits::deadline(&self.state).map(|until| self.services.time.left(until));
        Cancel::when(async move {
            let time_over = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancel.cancelled() => {}
                () = interrupt.cancelled() => {}
                () = stop.cancelled() => {}
                () = time_over => {}
            }
        })
    }

    /// Suspends the task, because a person interrupted its turn.
    pub(super) fn interrupt(&mut self, status: StatusChanged) {
        let waits = self.state.waiting_for == Some(WaitingFor::Resume);
        if !waits || interrupt::names_more(&status, self.state.detail.as_ref()) {
            self.push(status);
        }
    }
}

//! Executors that are wrong in one respect each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_conformance::reference::ModelTools;
use antiphon_core::port::{Cancel, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{Effect, RawJson, Tool, ToolResult};
use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::sync::{Mutex, Notify};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    ListsInAnyOrder,
    ListsTwice,
    DescribesNoObject,
    ForgetsAnEffect,
    KnowsEveryEffect,
    RunsTheUnknown,
    TakesNullForEmpty,
    ForgivesBadArguments,
    FailsAlways,
    MakesFailuresErrors,
    RunsWhatIsCanceled,
    RunsOneAtATime,
    IgnoresCancel,
    CancelsAll,
}

/// Correct tools behind a faulty executor.
pub(super) struct FaultyTools {
    fault: Fault,
    listed: AtomicUsize,
    turn: Mutex<()>,
    canceled: Notify,
}

impl FaultyTools {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, listed: AtomicUsize::new(0), turn: Mutex::new(()), canceled: Notify::new() }
    }

    /// A cancel that does not do what the caller wants.
    fn cancel_wrongly(&self, tool: &str, mut cancel: Cancel) -> Cancel {
        let fired = (&mut cancel).now_or_never().is_some();
        if self.fault == Fault::RunsWhatIsCanceled && fired && tool == "echo" {
            return Cancel::never();
        }
        if fired {
            return Cancel::when(std::future::ready(()));
        }
        if self.fault == Fault::IgnoresCancel { Cancel::never() } else { cancel }
    }

    async fn run(&self, tool: &str, arguments: &RawJson, cancel: Cancel) -> Answer {
        let running = ModelTools.execute(tool, arguments, ToolContext::trial(cancel));
        if self.fault != Fault::CancelsAll {
            return running.await;
        }
        tokio::select! {
            answer = running => {
                self.canceled.notify_waiters();
                answer
            }
            () = self.canceled.notified() => Err(ToolError::Canceled),
        }
    }
}

type Answer = Result<ToolResult, ToolError>;

#[async_trait]
impl ToolExecutor for FaultyTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let mut tools = ModelTools.tools();
        let listed = self.listed.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::ListsInAnyOrder {
            tools.rotate_left(listed % 3);
        }
        if self.fault == Fault::ListsTwice {
            tools.push(tools[0].clone());
        }
        if self.fault == Fault::DescribesNoObject {
            Arc::make_mut(&mut tools[2]).parameters = RawJson::parse(r#"{"type":"null"}"#).unwrap();
        }
        tools
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        if self.fault == Fault::KnowsEveryEffect {
            return Some(Effect::ReadOnly);
        }
        ModelTools.effect(tool).filter(|_| self.fault != Fault::ForgetsAnEffect || tool != "sleep")
    }

    async fn execute(&self, tool: &str, arguments: &RawJson, context: ToolContext) -> Answer {
        let mut arguments = arguments.clone();
        if self.fault == Fault::TakesNullForEmpty && arguments.as_str() == "null" {
            arguments = RawJson::empty_object();
        }
        let cancel = self.cancel_wrongly(tool, context.cancel);
        let one_at_a_time = self.fault == Fault::RunsOneAtATime;
        let _turn = if one_at_a_time { Some(self.turn.lock().await) } else { None };
        let answer = self.run(tool, &arguments, cancel).await;
        match answer {
            Ok(result) if result.is_error && self.fault == Fault::MakesFailuresErrors => {
                Err(ToolError::Unavailable { tool: tool.to_owned(), reason: "failed".to_owned() })
            }
            Ok(_) if tool == "echo" && self.fault == Fault::FailsAlways => {
                Ok(ToolResult::failed("no luck"))
            }
            Err(ToolError::Unknown { .. }) if self.fault == Fault::RunsTheUnknown => {
                Ok(ToolResult::failed("there is no such tool"))
            }
            Err(ToolError::InvalidArguments { .. })
                if self.fault == Fault::ForgivesBadArguments && arguments.is_object() =>
            {
                Ok(ToolResult::failed("bad arguments"))
            }
            answer => answer,
        }
    }
}

//! Everything that a reader of an answer saw. Deltas are
//! joined: every wire splits them differently.

use antiphon_core::{StreamError, StreamEvent, ToolCallBlock, ToolCallId};

use super::Answer;
use crate::suite::{Finding, Outcome, ensure, equal, quote};

/// More events than any scenario has.
const EVENTS_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) text: String,
    pub(super) thinking: String,
    /// Calls in the order they began.
    pub(super) calls: Vec<SeenCall>,
    /// Events of calls that had not begun or had ended.
    stray: Vec<StreamEvent>,
    /// The last event or error.
    pub(super) error: Option<StreamError>,
}

/// A call, as its events describe it.
#[derive(Debug)]
pub(super) struct SeenCall {
    id: ToolCallId,
    name: String,
    arguments: String,
    end: Option<ToolCallBlock>,
}

impl Transcript {
    /// Reads an answer to its end.
    pub(super) async fn read(answer: &mut dyn Answer) -> Self {
        let mut seen = Self::default();
        for _ in 0..EVENTS_MAX {
            match answer.next().await {
                Ok(Some(event)) => seen.note(event),
                Ok(None) => break,
                Err(error) => {
                    seen.error = Some(error);
                    break;
                }
            }
        }
        seen
    }

    pub(super) fn note(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::TextDelta { delta } => self.text.push_str(&delta),
            StreamEvent::ThinkingDelta { delta } => self.thinking.push_str(&delta),
            StreamEvent::ToolCallBegin { id, name } => {
                self.calls.push(SeenCall { id, name, arguments: String::new(), end: None });
            }
            StreamEvent::ToolCallDelta { ref id, ref delta } => match self.running(id) {
                Some(call) => call.arguments.push_str(delta),
                None => self.stray.push(event),
            },
            StreamEvent::ToolCallEnd { ref call } => match self.running(&call.id) {
                Some(seen) => seen.end = Some(call.clone()),
                None => self.stray.push(event),
            },
        }
    }

    fn running(&mut self, id: &ToolCallId) -> Option<&mut SeenCall> {
        self.calls.iter_mut().find(|call| call.id == *id && call.end.is_none())
    }

    /// Asserts that each call began, grew and ended once, with consistent events.
    pub(super) fn reports(&self, calls: &[&ToolCallBlock], arguments: &[&str]) -> Outcome {
        ensure!(
            self.stray.is_empty(),
            "events of calls that are not running: {}",
            quote(&self.stray)
        );
        equal("how many calls began", &self.calls.len(), &calls.len())?;
        for (seen, (call, arguments)) in self.calls.iter().zip(calls.iter().zip(arguments)) {
            equal("the id that began", &seen.id, &call.id)?;
            equal("the name that began", &seen.name, &call.name)?;
            equal("the deltas, joined", seen.arguments.as_str(), *arguments)?;
            let Some(end) = &seen.end else {
                return Err(Finding::Broken(format!("`{}` never ended", seen.name)));
            };
            equal("the call that ended", end, *call)?;
        }
        Ok(())
    }
}

//! One task of a tree: what the journal keeps at hand of it, and what only its events tell.

use antiphon_core::{
    AgentState, Event, EventBody, Message, Seq, StatusChanged, TaskCreated, TaskStatus,
    TaskSummary, visible,
};

use crate::screen::title;

/// Agents that had a task before the one that has it: the last so many.
const HANDOVERS_MAX: usize = 16;

/// Characters of the last line of output.
const OUTPUT_CHARS_MAX: usize = 200;

/// A task of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) summary: TaskSummary,
    /// Which of the tree's tasks dispatched it.
    pub(crate) parent: Option<usize>,
    /// How many tasks are above it, up to the top of what is looked at.
    pub(crate) depth: usize,
    /// Which tasks it dispatched, in order.
    pub(crate) children: Vec<usize>,
    /// What its events tell, once they have been read.
    pub(crate) detail: Option<Detail>,
}

/// What only the events of a task tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detail {
    /// The last event that is in it.
    pub(crate) seq: Seq,
    agent: String,
    /// Who works on it, when that is not this orchestrator.
    pub(crate) runner: Option<String>,
    /// Who handed it over, in order.
    pub(crate) handovers: Vec<String>,
    /// The last line of what came out of it.
    pub(crate) output: Option<String>,
    /// It is an agent's inbox.
    standing: bool,
    /// Where its agent stands.
    agent_state: AgentState,
}

impl Member {
    /// Adds what happened next; something that it has seen changes nothing. Says whether
    /// something changed.
    pub(crate) fn apply(&mut self, event: &Event) -> bool {
        if let Some(detail) = &mut self.detail {
            detail.apply(event);
        }
        let news = event.seq.0 == self.summary.seq.0 + 1;
        if news {
            self.summary.apply(&event.body, event.at);
        }
        news
    }

    /// Whether it is an agent that waits for what arrives.
    pub(crate) fn is_idle(&self) -> bool {
        let at_work = matches!(self.summary.status, TaskStatus::Pending | TaskStatus::Running);
        let idle = |detail: &Detail| detail.standing && detail.agent_state == AgentState::Idle;
        at_work && self.detail.as_ref().is_some_and(idle)
    }

    /// The last line of what came out of it.
    pub(crate) fn output(&self) -> Option<&str> {
        let detail = self.detail.as_ref().and_then(|detail| detail.output.as_deref());
        detail.or(self.summary.preview.as_deref())
    }
}

impl Detail {
    /// Of a task that was just created.
    pub(crate) fn created(created: &TaskCreated) -> Self {
        Self {
            seq: Seq(1),
            agent: created.agent.clone(),
            runner: created.runner.as_ref().map(|runner| runner.kind.clone()),
            handovers: Vec::new(),
            output: None,
            standing: created.resident,
            agent_state: AgentState::Idle,
        }
    }

    /// Adds what happened next; something that it has seen changes nothing.
    pub(crate) fn apply(&mut self, event: &Event) {
        if event.seq.0 != self.seq.0 + 1 {
            return;
        }
        self.seq = event.seq;
        if let EventBody::HandedOver(over) = &event.body {
            if self.handovers.len() == HANDOVERS_MAX {
                self.handovers.remove(0);
            }
            self.handovers.push(std::mem::replace(&mut self.agent, over.agent.clone()));
        } else if let EventBody::MessageAppended(appended) = &event.body
            && let Message::Assistant(answer) = &*appended.message
        {
            let call = answer.tool_calls().next().map(|call| format!("→ {}", title(call)));
            self.output = call.or_else(|| last_line(&answer.text())).or(self.output.take());
        } else if let EventBody::StatusChanged(change) = &event.body {
            self.output = ending(change).or(self.output.take());
        } else if let EventBody::StateChanged(change) = &event.body {
            self.agent_state = change.to;
        }
    }
}

/// What a task delivered, or why it did not.
fn ending(change: &StatusChanged) -> Option<String> {
    let detail = change.detail.as_ref()?;
    match change.status {
        TaskStatus::Completed if detail.is_null() => None,
        TaskStatus::Completed => match detail.as_str() {
            Some(text) => last_line(text),
            None => last_line(&detail.to_string()),
        },
        TaskStatus::Failed => detail["error"].as_str().and_then(last_line),
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired
        | TaskStatus::Canceled => None,
    }
}

/// The last line that says something.
fn last_line(text: &str) -> Option<String> {
    let last = text.lines().rev().map(visible).find(|line| !line.trim().is_empty())?;
    Some(last.trim().chars().take(OUTPUT_CHARS_MAX).collect())
}

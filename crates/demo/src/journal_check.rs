//! Checks the guarantees against the journal, after the server has stopped. The only other input is the
//! time of the kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_core::port::{JournalError, Read};
use antiphon_core::{Event, EventBody, InteractionId, Message, Position, TaskId, ToolCallId};
use antiphon_view::text::count;
use chrono::{DateTime, Utc};

use crate::DemoError;
use crate::host::Host;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Events that are checked at most.
const EVENTS_MAX: usize = 1_000_000;

/// What the journal contains, and which guarantees hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct JournalCheck {
    pub(crate) events: usize,
    pub(crate) bytes: u64,
    pub(crate) turns: usize,
    pub(crate) calls: usize,
    pub(crate) checks: Vec<Check>,
    /// The time of the first event after the kill.
    pub(crate) resumed: Option<DateTime<Utc>>,
}

/// One guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) holds: bool,
    pub(crate) text: String,
}

/// The events of one tool call.
#[derive(Default)]
struct CallTimes {
    /// More than one if it ran again.
    started: Vec<DateTime<Utc>>,
    results: Vec<DateTime<Utc>>,
}

#[derive(Default)]
struct Counts {
    calls: BTreeMap<(TaskId, ToolCallId), CallTimes>,
    tasks: BTreeSet<TaskId>,
    ends: BTreeMap<TaskId, usize>,
    queued: BTreeSet<InteractionId>,
    read: Vec<InteractionId>,
    approvals_requested: usize,
    approvals_decided: usize,
    turns: usize,
}

impl JournalCheck {
    /// Reads the journal of the project in `root`; `killed` is when its server was killed.
    pub(crate) async fn read(
        host: &dyn Host,
        root: &Path,
        killed: Option<DateTime<Utc>>,
    ) -> Result<Self, DemoError> {
        let events = events(host, root).await?;
        let path = host.journal_path(root);
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let bytes = size(&path) + size(Path::new(&log));
        Ok(Self { bytes, ..Self::of(&events, killed) })
    }

    fn of(events: &[Event], killed: Option<DateTime<Utc>>) -> Self {
        let mut counted = Counts::default();
        for event in events {
            counted.add(event);
        }
        let complete = (1..).zip(events).all(|(number, event)| event.position == Position(number));
        let mut checks = vec![Check {
            holds: complete,
            text: format!("{}, numbered without a gap", count(events.len() as u64, "event")),
        }];
        checks.extend(counted.checks(killed));
        let after_kill = |event: &&Event| killed.is_some_and(|killed| event.at > killed);
        Self {
            events: events.len(),
            bytes: 0,
            turns: counted.turns,
            calls: counted.calls.len(),
            checks,
            resumed: events.iter().find(after_kill).map(|event| event.at),
        }
    }

    /// Whether every guarantee holds.
    pub(crate) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

impl Counts {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn add(&mut self, event: &Event) {
        let task_id = &event.task_id;
        let key = |id: &ToolCallId| (task_id.clone(), id.clone());
        match &event.body {
            EventBody::TaskCreated(_) => {
                self.tasks.insert(task_id.clone());
            }
            EventBody::StatusChanged(change) if change.status.is_terminal() => {
                *self.ends.entry(task_id.clone()).or_default() += 1;
            }
            EventBody::MessageAppended(appended) => {
                self.read.extend(appended.queued);
                match &*appended.message {
                    Message::Assistant(answer) => {
                        for call in answer.tool_calls() {
                            self.calls.entry(key(&call.id)).or_default();
                        }
                    }
                    Message::ToolResult(result) => {
                        let call = self.calls.entry(key(&result.tool_call_id)).or_default();
                        call.results.push(event.at);
                    }
                    Message::User(_) => {}
                }
            }
            EventBody::ToolStarted(started) => {
                let call = self.calls.entry(key(&started.tool_call_id)).or_default();
                call.started.push(event.at);
            }
            EventBody::MessageQueued(queued) => {
                self.queued.insert(queued.id);
            }
            EventBody::ApprovalRequested(_) => self.approvals_requested += 1,
            EventBody::ApprovalDecided(_) => self.approvals_decided += 1,
            EventBody::UsageRecorded(recorded) if recorded.purpose.is_none() => self.turns += 1,
            _ => {}
        }
    }

    fn checks(&self, killed: Option<DateTime<Utc>>) -> Vec<Check> {
        let results = self.calls.values().map(|call| call.results.len()).sum::<usize>();
        let calls = count(self.calls.len() as u64, "call");
        let mut checks = vec![Check {
            holds: self.calls.values().all(|call| call.results.len() == 1),
            text: format!("{calls}, {}: each has exactly one", count(results as u64, "result")),
        }];
        checks.extend(killed.map(|killed| self.not_repeated(killed)));
        let once = self.tasks.iter().all(|task| self.ends.get(task) == Some(&1));
        let tasks = count(self.tasks.len() as u64, "task");
        checks.push(Check { holds: once, text: format!("{tasks}, each ended exactly once") });
        let read: BTreeSet<_> = self.read.iter().copied().collect();
        let messages = count(self.queued.len() as u64, "message");
        let approvals = count(self.approvals_requested as u64, "approval");
        checks.push(Check {
            holds: read == self.queued && read.len() == self.read.len(),
            text: format!("{messages} to running agents, read exactly once"),
        });
        checks.push(Check {
            holds: self.approvals_requested == self.approvals_decided,
            text: format!("{approvals}, {}", count(self.approvals_decided as u64, "decision")),
        });
        checks
    }

    /// A call with a result before the kill did not start again after it.
    fn not_repeated(&self, killed: DateTime<Utc>) -> Check {
        let done = |call: &&CallTimes| call.results.iter().any(|at| *at <= killed);
        let again = |call: &&CallTimes| call.started.iter().any(|at| *at > killed);
        let done: Vec<&CallTimes> = self.calls.values().filter(done).collect();
        let calls = count(done.len() as u64, "call");
        let again = done.iter().copied().filter(again).count();
        let text = match again {
            0 => format!("{calls} had a result before the kill: none was run again"),
            again => format!("{calls} had a result before the kill: {again} ran again"),
        };
        Check { holds: again == 0, text }
    }
}

async fn events(host: &dyn Host, root: &Path) -> Result<Vec<Event>, DemoError> {
    let fault = |error: JournalError| DemoError::unavailable(error.to_string());
    let journal = host.open_journal(root)?;
    let (mut events, mut after) = (Vec::new(), Position(0));
    while events.len() < EVENTS_MAX {
        let read = Read { task_id: None, after, limit: PAGE };
        let page = journal.read(read).await.map_err(fault)?;
        if page.events.is_empty() {
            break;
        }
        after = page.next;
        events.extend(page.events);
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TASK: &str = "01990a7e-0000-7000-8000-000000000001";

    /// A journal of one task: each event at the second of its number.
    fn journal(bodies: &[(&str, Value)]) -> Vec<Event> {
        let event = |(number, (word, data)): (u64, &(&str, Value))| {
            let at = format!("2026-01-01T00:00:{number:02}Z");
            let event = json!({
                "v": 1, "position": number, "task_id": TASK, "seq": number, "at": at,
                "type": word, "data": data,
            });
            serde_json::from_value(event).unwrap()
        };
        (1..).zip(bodies).map(event).collect()
    }

    fn created() -> (&'static str, Value) {
        ("task_created", json!({ "agent": "a", "session_id": TASK }))
    }

    fn started() -> (&'static str, Value) {
        let started = json!({ "tool_call_id": "c", "tool_name": "bash", "effect": "side_effect" });
        ("tool_started", started)
    }

    fn result() -> (&'static str, Value) {
        let message = json!({
            "type": "tool_result", "tool_call_id": "c", "tool_name": "bash", "is_error": false,
            "content": [{ "type": "text", "text": "done" }], "timestamp": "2026-01-01T00:00:00Z",
        });
        ("message_appended", json!({ "message": message }))
    }

    fn completed() -> (&'static str, Value) {
        ("status_changed", json!({ "status": "completed" }))
    }

    /// The guarantees that do not hold, when the kill was after this event.
    fn broken(events: &[Event], killed: usize) -> Vec<String> {
        let check = JournalCheck::of(events, Some(events[killed - 1].at));
        let broken = check.checks.into_iter().filter(|check| !check.holds);
        broken.map(|check| check.text).collect()
    }

    #[test]
    fn every_guarantee_holds_in_a_correct_journal() {
        let events = journal(&[created(), started(), result(), completed()]);
        assert_eq!(broken(&events, 2), [""; 0]);
        let after_kill = events[2].at;
        assert_eq!(JournalCheck::of(&events, Some(events[1].at)).resumed, Some(after_kill));
    }

    #[test]
    fn a_call_that_runs_again_after_its_result_is_noticed() {
        let events = journal(&[created(), started(), result(), started(), completed()]);
        assert_eq!(broken(&events, 3), ["1 call had a result before the kill: 1 ran again"]);
    }

    #[test]
    fn a_second_result_a_second_end_and_a_gap_are_noticed() {
        let twice = [created(), started(), result(), result(), completed(), completed()];
        let mut events = journal(&twice);
        let expected =
            ["1 call, 2 results: each has exactly one", "1 task, each ended exactly once"];
        assert_eq!(broken(&events, 1), expected);
        events.remove(1);
        assert_eq!(broken(&events, 1)[0], "5 events, numbered without a gap");
    }
}

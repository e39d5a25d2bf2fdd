//! What the journal says about what was promised, read once everything is over. Nothing here is
//! remembered from the show: only the journal counts, and when the server was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;

use antiphon_core::port::{JournalError, JournalLog, Read};
use antiphon_core::{Event, EventBody, InteractionId, Message, Position, TaskId, ToolCallId};
use antiphon_sqlite::SqliteJournal;
use chrono::{DateTime, Utc};

use crate::failure::Failure;
use crate::project::Project;
use crate::terminal::count;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Events that are looked at.
const EVENTS_MAX: usize = 1_000_000;

/// What the journal says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Proof {
    pub(super) events: usize,
    pub(super) bytes: u64,
    pub(super) turns: usize,
    pub(super) calls: usize,
    pub(super) checks: Vec<Check>,
    /// When the first event behind the kill was written.
    pub(super) resumed: Option<DateTime<Utc>>,
}

/// Something that was promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) holds: bool,
    pub(super) what: String,
}

/// One call, as far as the journal tells.
#[derive(Default)]
struct Trace {
    /// When it started; more than once if it was run again.
    started: Vec<DateTime<Utc>>,
    results: Vec<DateTime<Utc>>,
}

#[derive(Default)]
struct Count {
    calls: BTreeMap<(TaskId, ToolCallId), Trace>,
    tasks: BTreeSet<TaskId>,
    ends: BTreeMap<TaskId, usize>,
    queued: BTreeSet<InteractionId>,
    heard: Vec<InteractionId>,
    asked: usize,
    answered: usize,
    turns: usize,
}

impl Proof {
    /// Reads the journal of a project; `killed` is when its server was gone.
    pub(super) async fn read(
        project: &Project,
        killed: Option<DateTime<Utc>>,
    ) -> Result<Self, Failure> {
        let events = events(project).await?;
        let of =
            |name: &str| fs::metadata(project.folder().join(name)).map_or(0, |file| file.len());
        let bytes = of("journal.db") + of("journal.db-wal");
        Ok(Self { bytes, ..Self::of(&events, killed) })
    }

    fn of(events: &[Event], killed: Option<DateTime<Utc>>) -> Self {
        let mut counted = Count::default();
        for event in events {
            counted.add(event);
        }
        let whole = (1..).zip(events).all(|(number, event)| event.position == Position(number));
        let mut checks = vec![Check {
            holds: whole,
            what: format!("{}, numbered without a gap", count(events.len() as u64, "event")),
        }];
        checks.extend(counted.checks(killed));
        let behind = |event: &&Event| killed.is_some_and(|killed| event.at > killed);
        Self {
            events: events.len(),
            bytes: 0,
            turns: counted.turns,
            calls: counted.calls.len(),
            checks,
            resumed: events.iter().find(behind).map(|event| event.at),
        }
    }

    /// Whether everything that was promised holds.
    pub(super) fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

impl Count {
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
                self.heard.extend(appended.queued);
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
            EventBody::ApprovalRequested(_) => self.asked += 1,
            EventBody::ApprovalDecided(_) => self.answered += 1,
            EventBody::UsageRecorded(recorded) if recorded.purpose.is_none() => self.turns += 1,
            EventBody::StatusChanged(_)
            | EventBody::StateChanged(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::HandedOver(_)
            | EventBody::RequestSent(_)
            | EventBody::Replied(_)
            | EventBody::Relayed(_)
            | EventBody::UsageRecorded(_)
            | EventBody::OutputRejected(_)
            | EventBody::BudgetRaised(_)
            | EventBody::Compacted(_) => {}
        }
    }

    fn checks(&self, killed: Option<DateTime<Utc>>) -> Vec<Check> {
        let results = self.calls.values().map(|call| call.results.len()).sum::<usize>();
        let calls = count(self.calls.len() as u64, "call");
        let mut checks = vec![Check {
            holds: self.calls.values().all(|call| call.results.len() == 1),
            what: format!("{calls}, {}: each has exactly one", count(results as u64, "result")),
        }];
        checks.extend(killed.map(|killed| self.not_repeated(killed)));
        let once = self.tasks.iter().all(|task| self.ends.get(task) == Some(&1));
        let tasks = count(self.tasks.len() as u64, "task");
        checks.push(Check { holds: once, what: format!("{tasks}, each ended exactly once") });
        let heard: BTreeSet<_> = self.heard.iter().copied().collect();
        let messages = count(self.queued.len() as u64, "message");
        let questions = count(self.asked as u64, "question");
        checks.push(Check {
            holds: heard == self.queued && heard.len() == self.heard.len(),
            what: format!("{messages} to agents at work, heard exactly once"),
        });
        checks.push(Check {
            holds: self.asked == self.answered,
            what: format!("{questions}, {}", count(self.answered as u64, "answer")),
        });
        checks
    }

    /// What had a result before the kill was not started again behind it.
    fn not_repeated(&self, killed: DateTime<Utc>) -> Check {
        let done = |call: &&Trace| call.results.iter().any(|at| *at <= killed);
        let again = |call: &&Trace| call.started.iter().any(|at| *at > killed);
        let done: Vec<&Trace> = self.calls.values().filter(done).collect();
        let calls = count(done.len() as u64, "call");
        let again = done.iter().copied().filter(again).count();
        let what = match again {
            0 => format!("{calls} had a result before the kill: none was run again"),
            again => format!("{calls} had a result before the kill: {again} ran again"),
        };
        Check { holds: again == 0, what }
    }
}

async fn events(project: &Project) -> Result<Vec<Event>, Failure> {
    let fault = |error: JournalError| Failure::unavailable(error.to_string());
    let journal = SqliteJournal::open_read_only(&project.journal_path())?;
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

    /// What does not hold when it was killed behind this event.
    fn broken(events: &[Event], killed: usize) -> Vec<String> {
        let proof = Proof::of(events, Some(events[killed - 1].at));
        let broken = proof.checks.into_iter().filter(|check| !check.holds);
        broken.map(|check| check.what).collect()
    }

    #[test]
    fn a_journal_that_keeps_its_promises_has_nothing_broken() {
        let events = journal(&[created(), started(), result(), completed()]);
        assert_eq!(broken(&events, 2), [""; 0]);
        let behind = events[2].at;
        assert_eq!(Proof::of(&events, Some(events[1].at)).resumed, Some(behind));
    }

    #[test]
    fn a_call_that_runs_again_behind_its_result_is_noticed() {
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

//! Golden journals: what an earlier Antiphon wrote is read, and means the same, for ever.
//!
//! `journal-v1.jsonl` was written by the first version that kept a journal. It has five tasks:
//! one with calls, one whose model failed, one that ran into a limit, one that was canceled, and
//! one that goes on with an older conversation.

use std::collections::BTreeMap;

use antiphon_core::{Event, EventBody, Seq, TaskId, TaskStatus, TaskSummary, Usage};

use crate::read;
use crate::schema::faults;

const V1: &str = include_str!("../fixtures/journal-v1.jsonl");

fn events() -> Vec<Event> {
    V1.lines().map(read).collect()
}

#[test]
fn every_line_is_written_again_byte_for_byte() {
    for line in V1.lines() {
        assert_eq!(serde_json::to_string(&read::<Event>(line)).unwrap(), line);
    }
}

#[test]
fn every_line_fits_the_schema() {
    for line in V1.lines() {
        assert_eq!(faults(&read(line)), [""; 0], "{line}");
    }
}

#[test]
fn every_type_of_that_version_is_there() {
    for kind in [
        "task_created",
        "status_changed",
        "state_changed",
        "message_appended",
        "tool_started",
        "usage_recorded",
    ] {
        assert!(events().iter().any(|event| event.body.event_type() == kind), "{kind}");
    }
}

#[test]
fn positions_and_seqs_have_no_gap() {
    let mut seqs: BTreeMap<TaskId, Seq> = BTreeMap::new();
    for (position, event) in (1..).zip(events()) {
        let seq = seqs.entry(event.task_id).or_default();
        seq.0 += 1;
        assert_eq!((event.position.0, event.seq), (position, *seq));
    }
}

#[test]
fn its_tasks_are_what_they_were() {
    let mut tasks: Vec<TaskSummary> = Vec::new();
    for event in events() {
        if let EventBody::TaskCreated(created) = &event.body {
            tasks.push(TaskSummary::created(event.task_id, created, event.at));
        } else {
            tasks.last_mut().unwrap().apply(&event.body, event.at);
        }
    }
    let seen: Vec<_> = tasks
        .iter()
        .map(|task| {
            let Usage { input_tokens, output_tokens, .. } = task.usage();
            let tokens = input_tokens + output_tokens;
            let (title, preview) = (task.title.as_str(), task.preview.as_deref());
            (task.status, title, preview, task.seq.0, task.turns, task.calls, tokens)
        })
        .collect();
    let hello = "Hello! I am not a model: I am the script `hello`, and I say the same to \
                 everybody. You wrote: Grüße 👋";
    let question = "What is in a.txt and b.txt?";
    let expected = [
        (TaskStatus::Completed, question, Some("Neither can be read."), 20, 2, 2, 259),
        (TaskStatus::Failed, "Hello", Some("I beg"), 6, 0, 0, 0),
        (TaskStatus::Failed, "Look", Some("I look at both."), 14, 1, 2, 168),
        (TaskStatus::Canceled, "Wait", Some("I begin"), 6, 0, 0, 0),
        (TaskStatus::Completed, "What is this?", Some(hello), 12, 1, 0, 40),
    ];
    assert_eq!(seen, expected);
    assert!(tasks.iter().all(|task| task.root == task.task_id && task.ended_at.is_some()));
}

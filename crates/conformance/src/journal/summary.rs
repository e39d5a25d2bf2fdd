//! What is kept at hand of each task.

use std::collections::BTreeMap;

use antiphon_core::port::{Append, Expected, TaskSelector};
use antiphon_core::{
    AgentState, EventBody, ModelRef, Purpose, Seq, SessionId, StatusChanged, TaskCreated, TaskId,
    TaskStatus, TaskSummary, Usage, UsageRecorded, WaitingFor,
};
use chrono::DateTime;

use super::happening::{answered, asked, handed_over, moved, paid, started};
use super::scribe::{Scribe, at, draft, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

pub(super) async fn a_new_task_is_what_its_creation_says(scribe: Scribe) -> Outcome {
    let session_id = SessionId::parse("talk").during("a session id")?;
    let model = ModelRef::parse("scripted/hello").during("a model")?;
    let child = TaskCreated {
        parent: Some(task(1)),
        root: Some(task(9)),
        model: Some(model.clone()),
        ..TaskCreated::new("helper", session_id.clone())
    };
    scribe.create(&task(1)).await?;
    scribe.write(draft(&task(2), Expected::NoTask, vec![child.into()])).await?;
    let found = summary(&scribe, &task(2)).await?;
    let expected = ("helper".to_owned(), session_id, Some(task(1)), task(9), Some(model));
    let found = (found.agent, found.session_id, found.parent, found.root, found.model);
    equal("who works on it, and where it belongs", &found, &expected)?;
    let top = summary(&scribe, &task(1)).await?;
    equal("the top of a tree", &(top.parent, top.root, top.model), &(None, task(1), None))?;
    equal("its status", &top.status, &TaskStatus::Pending)
}

pub(super) async fn a_summary_follows_the_status(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    let waiting = StatusChanged {
        waiting_for: Some(WaitingFor::Approval),
        ..StatusChanged::new(TaskStatus::InputRequired)
    };
    let steps = [
        (status(TaskStatus::Running), TaskStatus::Running, None),
        (waiting.into(), TaskStatus::InputRequired, Some(WaitingFor::Approval)),
        (status(TaskStatus::Running), TaskStatus::Running, None),
    ];
    for (seq, (change, expected, waiting_for)) in (0..).zip(steps) {
        // A note behind it: where a task stands is no matter of its last event.
        scribe.write(draft(&task(1), at(1 + 2 * seq), vec![change, note(seq)])).await?;
        let found = summary(&scribe, &task(1)).await?;
        let found = (found.status, found.waiting_for, found.ended_at);
        equal("the status", &found, &(expected, waiting_for, None))?;
    }
    scribe.write(draft(&task(1), at(7), vec![status(TaskStatus::Canceled)])).await?;
    let found = summary(&scribe, &task(1)).await?;
    equal("the last status", &found.status, &TaskStatus::Canceled)?;
    equal("when it ended", &found.ended_at, &Some(found.last_event_at))
}

pub(super) async fn a_task_belongs_to_whoever_it_was_handed_over_to(scribe: Scribe) -> Outcome {
    let model = |name| ModelRef::parse(name).during("a model");
    let session_id = SessionId::parse("talk").during("a session id")?;
    let begun = |agent| TaskCreated::new(agent, session_id.clone());
    let first = TaskCreated { model: Some(model("a/small")?), ..begun("scribe") };
    scribe.write(draft(&task(1), Expected::NoTask, vec![first.into()])).await?;
    scribe.write(draft(&task(1), at(1), vec![moved(7, AgentState::Idle)])).await?;
    let steps = [
        (vec![handed_over("lawyer", Some(model("b/large")?))?], "lawyer", Some(model("b/large")?)),
        // A note behind it: who works on a task is no matter of its last event.
        (vec![handed_over("clerk", None)?, note(1)], "clerk", None),
        // The last of an append counts.
        (
            vec![handed_over("judge", None)?, handed_over("poet", Some(model("a/small")?))?],
            "poet",
            Some(model("a/small")?),
        ),
    ];
    let mut seq = 2;
    for (events, agent, model) in steps {
        let count = events.len() as u64;
        scribe.write(draft(&task(1), at(seq), events)).await?;
        seq += count;
        let found = summary(&scribe, &task(1)).await?;
        equal("who works on it", &(found.agent.as_str(), found.model), &(agent, model))?;
        let live: Vec<String> = scribe.agents(10).await?.into_iter().map(|it| it.agent).collect();
        equal("who is at work", &live, &vec![agent.to_owned()])?;
    }
    // It may begin with it.
    let whole = vec![begun("scribe").into(), handed_over("lawyer", Some(model("b/large")?))?];
    scribe.write(draft(&task(2), Expected::NoTask, whole)).await?;
    let found = summary(&scribe, &task(2)).await?;
    let expected = ("lawyer".to_owned(), Some(model("b/large")?));
    equal("who works on it from the start", &(found.agent, found.model), &expected)
}

pub(super) async fn a_summary_stands_at_the_last_event(scribe: Scribe) -> Outcome {
    scribe.create_up_to(&task(1), 3).await?;
    scribe.write(draft(&task(1), at(3), vec![note(3), note(4)])).await?;
    scribe.create(&task(2)).await?;
    for (number, seq) in [(1, 5), (2, 1)] {
        equal("its last event", &summary(&scribe, &task(number)).await?.seq, &Seq(seq))?;
    }
    Ok(())
}

pub(super) async fn a_summary_counts_turns_calls_and_messages(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    let compaction = UsageRecorded {
        model: "scripted/hello".to_owned(),
        usage: Usage::default(),
        purpose: Some(Purpose::Compaction),
    };
    let turn = || paid("scripted/hello", Usage::default());
    let events: [EventBody; 7] = [
        asked("Do it."),
        answered("I look."),
        turn(),
        started(1)?,
        started(2)?,
        compaction.into(),
        turn(),
    ];
    for (seq, event) in (1..).zip(events) {
        scribe.write(draft(&task(1), at(seq), vec![event])).await?;
    }
    let found = summary(&scribe, &task(1)).await?;
    let found = (found.turns, found.calls, found.messages);
    equal("turns, calls and messages", &found, &(2, 2, 2))
}

pub(super) async fn a_summary_has_the_first_question_and_the_last_answer(
    scribe: Scribe,
) -> Outcome {
    scribe.create(&task(1)).await?;
    let steps = [
        (asked("\n  First?  \nMore."), "First?", None),
        (answered("One.\nTwo."), "First?", Some("One.")),
        (asked("Second?"), "First?", Some("One.")),
        (answered(""), "First?", Some("One.")),
        (answered("Three."), "First?", Some("Three.")),
    ];
    for (seq, (event, title, preview)) in (1..).zip(steps) {
        scribe.write(draft(&task(1), at(seq), vec![event])).await?;
        let found = summary(&scribe, &task(1)).await?;
        equal("the title", found.title.as_str(), title)?;
        equal("the preview", &found.preview.as_deref(), &preview)?;
    }
    Ok(())
}

pub(super) async fn a_summary_adds_up_what_each_model_took(scribe: Scribe) -> Outcome {
    let usage = |input_tokens, cache_read_tokens| Usage {
        input_tokens,
        output_tokens: 1,
        cache_read_tokens,
        cache_write_tokens: None,
    };
    scribe.create(&task(1)).await?;
    let steps = [
        paid("a/small", usage(10, None)),
        paid("b/large", usage(20, Some(0))),
        paid("a/small", usage(30, None)),
        paid("b/large", usage(u64::MAX, Some(u64::MAX))),
        paid("b/large", usage(5, None)),
    ];
    for (seq, event) in (1..).zip(steps) {
        scribe.write(draft(&task(1), at(seq), vec![event])).await?;
    }
    let mut small = usage(40, None);
    small.output_tokens = 2;
    let mut large = usage(u64::MAX, Some(u64::MAX));
    large.output_tokens = 3;
    let expected = BTreeMap::from([("a/small".to_owned(), small), ("b/large".to_owned(), large)]);
    equal("what it took", &summary(&scribe, &task(1)).await?.spent, &expected)
}

pub(super) async fn a_summary_has_the_times_of_its_events(scribe: Scribe) -> Outcome {
    let time = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap_or_default();
    let times = [time(-1_000_001), time(1_771_416_000_123_456), time(1_771_416_009_654_321)];
    let events = [super::scribe::created(), note(1), status(TaskStatus::Completed)];
    for (seq, (event, time)) in (0..).zip(events.into_iter().zip(times)) {
        let expected = if seq == 0 { Expected::NoTask } else { at(seq) };
        scribe.write(Append { at: time, ..draft(&task(1), expected, vec![event]) }).await?;
        let found = summary(&scribe, &task(1)).await?;
        equal("when it was created", &found.created_at, &times[0])?;
        equal("when something last happened", &found.last_event_at, &time)?;
    }
    let found = summary(&scribe, &task(1)).await?;
    equal("when it ended", &found.ended_at, &Some(times[2]))
}

async fn summary(scribe: &Scribe, task_id: &TaskId) -> Result<TaskSummary, Finding> {
    let mut tasks = scribe.tasks(TaskSelector::All, 10).await?;
    tasks.retain(|task| task.task_id == *task_id);
    tasks.pop().ok_or_else(|| Finding::Broken(format!("{task_id} is not in the list")))
}

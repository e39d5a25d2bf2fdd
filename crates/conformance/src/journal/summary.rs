//! Summaries of tasks.

use std::collections::BTreeMap;

use antiphon_core::port::{Append, Expected, TaskSelector};
use antiphon_core::{
    AgentState, EventBody, ModelRef, OutageWait, Purpose, Seq, SessionId, StatusChanged,
    TaskCreated, TaskId, TaskStatus, TaskSummary, Usage, UsageRecorded, WaitingFor,
};
use chrono::{DateTime, TimeDelta};

use super::sample_events::{answered, asked, handed_over, moved, paid, started};
use super::test_journal::{TestJournal, at, draft, noon, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

pub(super) async fn a_new_summary_is_what_the_creation_says(journal: TestJournal) -> Outcome {
    let session_id = SessionId::parse("talk").during("a session id")?;
    let model = ModelRef::parse("scripted/hello").during("a model")?;
    let child = TaskCreated {
        parent: Some(task(1)),
        root: Some(task(9)),
        model: Some(model.clone()),
        ..TaskCreated::new("helper", session_id.clone())
    };
    journal.create(&task(1)).await?;
    journal.write(draft(&task(2), Expected::NoTask, vec![child.into()])).await?;
    let found = summary(&journal, &task(2)).await?;
    let expected = ("helper".to_owned(), session_id, Some(task(1)), task(9), Some(model));
    let found = (found.agent, found.session_id, found.parent, found.root, found.model);
    equal("who works on it, and where it belongs", &found, &expected)?;
    let top = summary(&journal, &task(1)).await?;
    equal("the top of a tree", &(top.parent, top.root, top.model), &(None, task(1), None))?;
    equal("its status", &top.status, &TaskStatus::Pending)
}

pub(super) async fn a_summary_follows_the_status(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
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
        // Another event follows: the summary does not depend on the last event only.
        journal.write(draft(&task(1), at(1 + 2 * seq), vec![change, note(seq)])).await?;
        let found = summary(&journal, &task(1)).await?;
        let found = (found.status, found.waiting_for, found.ended_at);
        equal("the status", &found, &(expected, waiting_for, None))?;
    }
    journal.write(draft(&task(1), at(7), vec![status(TaskStatus::Canceled)])).await?;
    let found = summary(&journal, &task(1)).await?;
    equal("the last status", &found.status, &TaskStatus::Canceled)?;
    equal("when it ended", &found.ended_at, &Some(found.last_event_at))
}

pub(super) async fn a_summary_says_why_a_task_waits_for_its_model(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let wait = |attempt| OutageWait {
        code: "overloaded".to_owned(),
        error: "try again".to_owned(),
        attempt,
        next_at: noon() + TimeDelta::nanoseconds(1_500_000_007),
        superseded: attempt > 1,
    };
    for (seq, attempt) in [(1, 1), (2, 2)] {
        journal
            .write(draft(&task(1), at(seq), vec![wait(attempt).status(WaitingFor::Model).into()]))
            .await?;
        let found = summary(&journal, &task(1)).await?;
        equal("why it waits", &found.wait, &Some(wait(attempt)))?;
    }
    // Another event does not end the wait, another status does.
    journal.write(draft(&task(1), at(3), vec![note(1)])).await?;
    equal("it still waits", &summary(&journal, &task(1)).await?.wait, &Some(wait(2)))?;
    journal.write(draft(&task(1), at(4), vec![status(TaskStatus::Running)])).await?;
    equal("it waits no longer", &summary(&journal, &task(1)).await?.wait, &None)
}

pub(super) async fn a_handover_changes_the_agent_of_a_task(journal: TestJournal) -> Outcome {
    let model = |name| ModelRef::parse(name).during("a model");
    let session_id = SessionId::parse("talk").during("a session id")?;
    let begun = |agent| TaskCreated::new(agent, session_id.clone());
    let first = TaskCreated { model: Some(model("a/small")?), ..begun("scribe") };
    journal.write(draft(&task(1), Expected::NoTask, vec![first.into()])).await?;
    journal.write(draft(&task(1), at(1), vec![moved(7, AgentState::Idle)])).await?;
    let steps = [
        (vec![handed_over("lawyer", Some(model("b/large")?))?], "lawyer", Some(model("b/large")?)),
        // Another event follows: the summary does not depend on the last event only.
        (vec![handed_over("clerk", None)?, note(1)], "clerk", None),
        // The last event of an append counts.
        (
            vec![handed_over("judge", None)?, handed_over("poet", Some(model("a/small")?))?],
            "poet",
            Some(model("a/small")?),
        ),
    ];
    let mut seq = 2;
    for (events, agent, model) in steps {
        let count = events.len() as u64;
        journal.write(draft(&task(1), at(seq), events)).await?;
        seq += count;
        let found = summary(&journal, &task(1)).await?;
        equal("who works on it", &(found.agent.as_str(), found.model), &(agent, model))?;
        let live: Vec<String> = journal.agents(10).await?.into_iter().map(|it| it.agent).collect();
        equal("who is at work", &live, &vec![agent.to_owned()])?;
    }
    // A task may begin with it.
    let whole = vec![begun("scribe").into(), handed_over("lawyer", Some(model("b/large")?))?];
    journal.write(draft(&task(2), Expected::NoTask, whole)).await?;
    let found = summary(&journal, &task(2)).await?;
    let expected = ("lawyer".to_owned(), Some(model("b/large")?));
    equal("who works on it from the start", &(found.agent, found.model), &expected)
}

pub(super) async fn a_summary_has_the_seq_of_the_last_event(journal: TestJournal) -> Outcome {
    journal.create_up_to(&task(1), 3).await?;
    journal.write(draft(&task(1), at(3), vec![note(3), note(4)])).await?;
    journal.create(&task(2)).await?;
    for (number, seq) in [(1, 5), (2, 1)] {
        equal("its last event", &summary(&journal, &task(number)).await?.seq, &Seq(seq))?;
    }
    Ok(())
}

pub(super) async fn a_summary_counts_turns_calls_and_messages(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
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
        journal.write(draft(&task(1), at(seq), vec![event])).await?;
    }
    let found = summary(&journal, &task(1)).await?;
    let found = (found.turns, found.calls, found.messages);
    equal("turns, calls and messages", &found, &(2, 2, 2))
}

pub(super) async fn a_summary_has_the_first_message_and_the_last_answer(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    let steps = [
        (asked("\n  First?  \nMore."), "First?", None),
        (answered("One.\nTwo."), "First?", Some("One.")),
        (asked("Second?"), "First?", Some("One.")),
        (answered(""), "First?", Some("One.")),
        (answered("Three."), "First?", Some("Three.")),
    ];
    for (seq, (event, title, preview)) in (1..).zip(steps) {
        journal.write(draft(&task(1), at(seq), vec![event])).await?;
        let found = summary(&journal, &task(1)).await?;
        equal("the title", found.title.as_str(), title)?;
        equal("the preview", &found.preview.as_deref(), &preview)?;
    }
    Ok(())
}

pub(super) async fn a_summary_adds_up_the_tokens_of_each_model(journal: TestJournal) -> Outcome {
    let usage = |input_tokens, cache_read_tokens| Usage {
        input_tokens,
        output_tokens: 1,
        cache_read_tokens,
        cache_write_tokens: None,
    };
    journal.create(&task(1)).await?;
    let steps = [
        paid("a/small", usage(10, None)),
        paid("b/large", usage(20, Some(0))),
        paid("a/small", usage(30, None)),
        paid("b/large", usage(u64::MAX, Some(u64::MAX))),
        paid("b/large", usage(5, None)),
    ];
    for (seq, event) in (1..).zip(steps) {
        journal.write(draft(&task(1), at(seq), vec![event])).await?;
    }
    let mut small = usage(40, None);
    small.output_tokens = 2;
    let mut large = usage(u64::MAX, Some(u64::MAX));
    large.output_tokens = 3;
    let expected = BTreeMap::from([("a/small".to_owned(), small), ("b/large".to_owned(), large)]);
    equal("what it took", &summary(&journal, &task(1)).await?.spent, &expected)
}

pub(super) async fn a_summary_has_the_times_of_its_events(journal: TestJournal) -> Outcome {
    let time = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap_or_default();
    let times = [time(-1_000_001), time(1_771_416_000_123_456), time(1_771_416_009_654_321)];
    let events = [super::test_journal::created(), note(1), status(TaskStatus::Completed)];
    for (seq, (event, time)) in (0..).zip(events.into_iter().zip(times)) {
        let expected = if seq == 0 { Expected::NoTask } else { at(seq) };
        journal.write(Append { at: time, ..draft(&task(1), expected, vec![event]) }).await?;
        let found = summary(&journal, &task(1)).await?;
        equal("when it was created", &found.created_at, &times[0])?;
        equal("when something last happened", &found.last_event_at, &time)?;
    }
    let found = summary(&journal, &task(1)).await?;
    equal("when it ended", &found.ended_at, &Some(times[2]))
}

async fn summary(journal: &TestJournal, task_id: &TaskId) -> Result<TaskSummary, Finding> {
    let mut tasks = journal.tasks(TaskSelector::All, 10).await?;
    tasks.retain(|task| task.task_id == *task_id);
    tasks.pop().ok_or_else(|| Finding::Broken(format!("{task_id} is not in the list")))
}

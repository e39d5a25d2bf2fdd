//! Remote parents of tasks, and the `traceparent` for remote work.

use antiphon_core::*;
use antiphon_telemetry::{PARENTS_EARLY_MAX, Sampled, TraceParent, TraceParentError, Traces};
use proptest::prelude::*;

use crate::journal_builder::*;

const OUTSIDE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn parse(text: &str) -> Result<TraceParent, TraceParentError> {
    text.parse()
}

fn tasks() -> JournalBuilder {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    journal.append("t1", dispatched("c1", &["t2"])).append("t2", child("coder", "t1", "t1"));
    journal.append("t2", status(TaskStatus::Completed)).append("t1", status(TaskStatus::Completed));
    journal
}

#[test]
fn a_traceparent_is_parsed_and_printed() {
    let parent = parse(OUTSIDE).unwrap();
    assert_eq!(parent.trace_id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(parent.span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(parent.sampled, Sampled::Yes);
    assert_eq!(parent.to_string(), OUTSIDE);
    assert_eq!(parse(UNSAMPLED).unwrap().to_string(), UNSAMPLED);
}

#[test]
fn a_traceparent_of_a_later_version_may_have_more_fields() {
    let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-else";
    assert_eq!(parse(later), parse(OUTSIDE));
}

#[test]
fn an_invalid_traceparent_is_refused() {
    let zero_trace = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    let zero_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
    for (text, error) in [
        ("", TraceParentError::Shape),
        ("00", TraceParentError::Shape),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", TraceParentError::Shape),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", TraceParentError::Shape),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01", TraceParentError::Shape),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1", TraceParentError::Shape),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", TraceParentError::Shape),
        ("0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceParentError::Shape),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceParentError::Version),
        (zero_trace, TraceParentError::Zeros),
        (zero_span, TraceParentError::Zeros),
    ] {
        assert_eq!(parse(text), Err(error), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_traceparent_or_refused(text in ".{0,80}") {
        if let Ok(parent) = parse(&text) {
            prop_assert_eq!(parse(&parent.to_string()), Ok(parent));
        }
    }
}

#[test]
fn a_task_and_its_children_get_the_given_parent() {
    let (journal, outside) = (tasks(), parse(OUTSIDE).unwrap());
    // Before it is created, and after.
    for set_at in [0, 1, 2] {
        let traces = Traces::new();
        let mut spans = Vec::new();
        for (index, event) in journal.events.iter().enumerate() {
            if index == set_at {
                traces.set_parent(&task_id("t1"), outside);
            }
            spans.extend(traces.observe(event));
        }
        let [coder, call, planner] = spans.try_into().unwrap();
        assert_eq!(planner.parent, Some(outside.span_id), "{set_at}");
        assert_eq!(call.parent, Some(planner.span_id));
        assert_eq!(coder.parent, Some(call.span_id));
        assert!([coder, call, planner].iter().all(|span| span.trace_id == outside.trace_id));
    }
}

#[test]
fn a_trace_that_is_not_sampled_is_not_exported() {
    let traces = Traces::new();
    traces.set_parent(&task_id("t1"), parse(UNSAMPLED).unwrap());
    let spans: Vec<_> = tasks().events.iter().flat_map(|event| traces.observe(event)).collect();
    assert_eq!(spans, []);
}

#[test]
fn the_traceparent_for_remote_work_names_the_span_of_the_task() {
    let traces = Traces::new();
    let journal = tasks();
    let mut spans = traces.observe(&journal.events[0]);
    let along = traces.parent_of(&task_id("t1")).unwrap();
    spans.extend(journal.events[1..].iter().flat_map(|event| traces.observe(event)));
    let planner = spans.last().unwrap();
    assert_eq!((along.trace_id, along.span_id), (planner.trace_id, planner.span_id));
    assert_eq!(traces.parent_of(&task_id("t1")), None);
}

#[test]
fn parents_of_tasks_that_are_never_created_are_forgotten_oldest_first() {
    let (traces, outside) = (Traces::new(), parse(OUTSIDE).unwrap());
    traces.set_parent(&task_id("t1"), outside);
    for number in 0..PARENTS_EARLY_MAX - 1 {
        traces.set_parent(&task_id(&format!("never{number}")), outside);
    }
    let other = traces.clone();
    let journal = tasks();
    other.observe(&journal.events[0]);
    assert_eq!(traces.parent_of(&task_id("t1")).unwrap().trace_id, outside.trace_id);
    // With one more, the first would be forgotten.
    let full = Traces::new();
    full.set_parent(&task_id("t1"), outside);
    for number in 0..PARENTS_EARLY_MAX {
        full.set_parent(&task_id(&format!("never{number}")), outside);
    }
    full.observe(&journal.events[0]);
    assert_ne!(full.parent_of(&task_id("t1")).unwrap().trace_id, outside.trace_id);
}

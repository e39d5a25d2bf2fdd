//! Traces that begin elsewhere, and what is sent along to go on elsewhere.

use antiphon_core::*;
use antiphon_telemetry::{PARENTS_EARLY_MAX, Sampled, TraceParent, TraceParentError, Traces};
use proptest::prelude::*;

use crate::story::*;

const OUTSIDE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn parse(text: &str) -> Result<TraceParent, TraceParentError> {
    text.parse()
}

fn tasks() -> Story {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", status(TaskStatus::Running));
    story.tell("t1", dispatched("c1", &["t2"])).tell("t2", child("coder", "t1", "t1"));
    story.tell("t2", status(TaskStatus::Completed)).tell("t1", status(TaskStatus::Completed));
    story
}

#[test]
fn a_traceparent_is_read_and_written() {
    let parent = parse(OUTSIDE).unwrap();
    assert_eq!(parent.trace_id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(parent.span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(parent.sampled, Sampled::Yes);
    assert_eq!(parent.to_string(), OUTSIDE);
    assert_eq!(parse(UNSAMPLED).unwrap().to_string(), UNSAMPLED);
}

#[test]
fn a_traceparent_of_a_later_version_may_say_more() {
    let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-else";
    assert_eq!(parse(later), parse(OUTSIDE));
}

#[test]
fn what_is_no_traceparent_is_refused() {
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
fn a_task_hangs_below_the_span_it_was_given_and_its_children_with_it() {
    let (story, outside) = (tasks(), parse(OUTSIDE).unwrap());
    // Before it is created, and behind it.
    for set_at in [0, 1, 2] {
        let traces = Traces::new();
        let mut spans = Vec::new();
        for (index, event) in story.events.iter().enumerate() {
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
fn a_trace_that_nobody_keeps_is_not_told() {
    let traces = Traces::new();
    traces.set_parent(&task_id("t1"), parse(UNSAMPLED).unwrap());
    let spans: Vec<_> = tasks().events.iter().flat_map(|event| traces.observe(event)).collect();
    assert_eq!(spans, []);
}

#[test]
fn what_is_sent_along_names_the_span_of_the_task() {
    let traces = Traces::new();
    let story = tasks();
    let mut spans = traces.observe(&story.events[0]);
    let along = traces.parent_of(&task_id("t1")).unwrap();
    spans.extend(story.events[1..].iter().flat_map(|event| traces.observe(event)));
    let planner = spans.last().unwrap();
    assert_eq!((along.trace_id, along.span_id), (planner.trace_id, planner.span_id));
    assert_eq!(traces.parent_of(&task_id("t1")), None);
}

#[test]
fn parents_of_tasks_that_never_come_are_forgotten_the_oldest_first() {
    let (traces, outside) = (Traces::new(), parse(OUTSIDE).unwrap());
    traces.set_parent(&task_id("t1"), outside);
    for number in 0..PARENTS_EARLY_MAX - 1 {
        traces.set_parent(&task_id(&format!("never{number}")), outside);
    }
    let other = traces.clone();
    let story = tasks();
    other.observe(&story.events[0]);
    assert_eq!(traces.parent_of(&task_id("t1")).unwrap().trace_id, outside.trace_id);
    // One more, and the first would have been gone.
    let full = Traces::new();
    full.set_parent(&task_id("t1"), outside);
    for number in 0..PARENTS_EARLY_MAX {
        full.set_parent(&task_id(&format!("never{number}")), outside);
    }
    full.observe(&story.events[0]);
    assert_ne!(full.parent_of(&task_id("t1")).unwrap().trace_id, outside.trace_id);
}

//! Spans from events, in the words of OpenTelemetry's conventions for generative AI.
//!
//! | span                   | of                  | below                                          |
//! |------------------------|---------------------|------------------------------------------------|
//! | `invoke_agent {agent}` | a task              | the call that dispatched it; a [`TraceParent`] |
//! | `chat {model}`         | a call of a model   | its task                                       |
//! | `execute_tool {tool}`  | a call of a tool    | its task                                       |
//!
//! A tree of tasks is one trace. Traces and spans are named after the tasks, calls and events they
//! stand for: whoever follows the journal a second time makes the same spans, and telling them again
//! changes nothing.
//!
//! A span is made when it is over, from what was seen of it. Of a task that was not seen from its
//! creation there are no spans: begin at [`Traces::needed_from`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{Event, EventBody, Position, TaskId};

use crate::book::{Book, Ended, TaskFacts};
use crate::making;
use crate::span::FinishedSpan;
use crate::trace_parent::{Sampled, SpanId, TraceId, TraceParent};

/// Parents that are kept for tasks that were not seen yet. When there are more, the oldest is
/// forgotten.
pub const PARENTS_EARLY_MAX: usize = 1024;

/// Children that are waited for. One that there is no room for hangs below its parent's task instead
/// of the call that dispatched it.
pub const CHILDREN_EXPECTED_MAX: usize = 65_536;

/// Makes spans from events. Cheap to clone; clones share what they have seen.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    book: Book,
    /// Where the open tasks belong.
    places: HashMap<TaskId, Place>,
    /// Parents of tasks that were not seen yet, the oldest first.
    early: VecDeque<(TaskId, TraceParent)>,
    /// Children that were named and not created yet.
    expected: HashMap<TaskId, Cause>,
    /// Spans that ended up to here have been told.
    told: Position,
}

/// Where a task belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) trace_id: TraceId,
    pub(crate) parent: Option<SpanId>,
    sampled: Sampled,
}

/// The call that dispatched a child.
#[derive(Debug)]
struct Cause {
    task_id: TaskId,
    span_id: SpanId,
}

impl Traces {
    /// Nothing has been seen.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing has been seen, but spans that ended up to this position have been told: they are not
    /// made again. For whoever reads the journal again to know what is open.
    pub fn told_up_to(position: Position) -> Self {
        let state = State { told: position, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Adds what happened next, and hands out what is over. An event that has been seen changes
    /// nothing.
    pub fn observe(&self, event: &Event) -> Vec<FinishedSpan> {
        self.with(|state| state.observe(event))
    }

    /// Hangs a task below a span of somebody else's, and with it everything that it dispatches from
    /// now on. Call it before the task is created, or as soon as its id is known: spans that are over
    /// stay where they were. The journal does not keep it.
    pub fn set_parent(&self, task_id: &TaskId, parent: TraceParent) {
        self.with(|state| state.set_parent(task_id, parent));
    }

    /// What to send along when something is done elsewhere for a task that is open: whatever happens
    /// there, happens below the task.
    pub fn parent_of(&self, task_id: &TaskId) -> Option<TraceParent> {
        self.with(|state| {
            let Place { trace_id, sampled, .. } = *state.places.get(task_id)?;
            Some(TraceParent { trace_id, span_id: making::task_span(task_id), sampled })
        })
    }

    /// Whoever begins behind this position, next time, sees every task that is open now from its
    /// creation. Looks at all of them.
    pub fn needed_from(&self) -> Position {
        self.with(|state| state.book.needed_from())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn observe(&mut self, event: &Event) -> Vec<FinishedSpan> {
        let Some(turned) = self.book.apply(event) else { return Vec::new() };
        let Some(task) = turned.task else { return Vec::new() };
        if let EventBody::TaskCreated(_) = &event.body {
            self.settle(&task);
        } else if let EventBody::Dispatched(dispatched) = &event.body {
            let call = &dispatched.tool_call_id;
            let seq = self.book.call_began(&event.task_id, call).unwrap_or(event.seq.0);
            let span_id = making::call_span(&event.task_id, call, seq);
            for child in &dispatched.children {
                if self.expected.len() < CHILDREN_EXPECTED_MAX {
                    let cause = Cause { task_id: event.task_id.clone(), span_id };
                    self.expected.insert(child.clone(), cause);
                }
            }
        }
        let spans = self.spans(&task, turned.ended, event);
        if event.body.ends_task() {
            self.places.remove(&event.task_id);
            self.expected.retain(|_, cause| cause.task_id != event.task_id);
        }
        spans
    }

    fn spans(&self, task: &TaskFacts, ended: Vec<Ended>, event: &Event) -> Vec<FinishedSpan> {
        let place = self.places.get(&event.task_id);
        let place = place.filter(|place| place.sampled == Sampled::Yes);
        let Some(place) = place.filter(|_| event.position > self.told) else { return Vec::new() };
        let make = |ended| match ended {
            Ended::Chat(chat) => Some(making::chat(task, place, chat)),
            Ended::Call(call) => making::call(task, place, call),
            Ended::Task(over) => Some(making::task(task, place, over, event.at)),
            Ended::Lap { .. } | Ended::Approval(_) | Ended::Taken(_) => None,
        };
        ended.into_iter().filter_map(make).collect()
    }

    /// Finds the place of a task that was just created.
    fn settle(&mut self, task: &TaskFacts) {
        let cause = self.expected.remove(&task.task_id);
        let above = task.parent.as_ref();
        let inherited = above.and_then(|parent| self.places.get(parent)).copied();
        let parent = cause.map(|cause| cause.span_id).or_else(|| above.map(making::task_span));
        let trace_id =
            inherited.map_or_else(|| TraceId::derive(task.root.as_str()), |place| place.trace_id);
        let sampled = inherited.map_or(Sampled::Yes, |place| place.sampled);
        self.places.insert(task.task_id.clone(), Place { trace_id, parent, sampled });
        if let Some(index) = self.early.iter().position(|(id, _)| *id == task.task_id)
            && let Some((task_id, parent)) = self.early.remove(index)
        {
            self.set_parent(&task_id, parent);
        }
    }

    fn set_parent(&mut self, task_id: &TaskId, parent: TraceParent) {
        let TraceParent { trace_id, span_id, sampled } = parent;
        if let Some(place) = self.places.get_mut(task_id) {
            *place = Place { trace_id, parent: Some(span_id), sampled };
            return;
        }
        self.early.retain(|(early, _)| early != task_id);
        if self.early.len() >= PARENTS_EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back((task_id.clone(), parent));
    }
}

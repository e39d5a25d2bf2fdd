//! Spans from events, named by OpenTelemetry's conventions for generative AI.
//!
//! | span                   | of                  | below                                          |
//! |------------------------|---------------------|------------------------------------------------|
//! | `invoke_agent {agent}` | a task              | the call that dispatched it; a [`TraceParent`] |
//! | `chat {model}`         | a call of a model   | its task                                       |
//! | `execute_tool {tool}`  | a call of a tool    | its task                                       |
//!
//! A task tree is one trace. Ids are derived from tasks, calls and events: following the journal a
//! second time makes the same spans, and sending them again changes nothing.
//!
//! A span is made when its activity ends. A task whose creation was not seen has no spans: start at
//! [`Traces::needed_from`].

mod build;
pub(crate) mod span;
pub(crate) mod trace_parent;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{Event, EventBody, Position, TaskId};

use crate::tasks::{EndedActivity, OpenTasks, TaskFacts};
use crate::trace::span::FinishedSpan;
use crate::trace::trace_parent::{Sampled, SpanId, TraceId, TraceParent};

/// Most parents that are stored for tasks not created yet. Above the limit, the oldest is
/// forgotten.
pub const PARENTS_EARLY_MAX: usize = 1024;

/// Most children that are expected. Above the limit, a child's parent is its parent task instead of
/// the call that dispatched it.
pub const CHILDREN_EXPECTED_MAX: usize = 65_536;

/// Makes spans from events. Cheap to clone; clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    tasks: OpenTasks,
    /// Trace contexts of the open tasks.
    contexts: HashMap<TaskId, TraceContext>,
    /// Parents of tasks not created yet, oldest first.
    early: VecDeque<(TaskId, TraceParent)>,
    /// Children that were dispatched and not created yet.
    expected: HashMap<TaskId, DispatchingCall>,
    /// Spans that ended up to here were exported before.
    exported: Position,
}

/// The trace and the parent span of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceContext {
    pub(crate) trace_id: TraceId,
    pub(crate) parent: Option<SpanId>,
    sampled: Sampled,
}

/// The call that dispatched a child.
#[derive(Debug)]
struct DispatchingCall {
    task_id: TaskId,
    span_id: SpanId,
}

impl Traces {
    /// No event was seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// No event was seen yet, but spans that ended up to this position were exported before and are
    /// not made again. For a process that reads the journal again to learn which tasks are open.
    pub fn exported_up_to(position: Position) -> Self {
        let state = State { exported: position, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Applies the next event and returns the spans that it ends. A repeated event changes nothing.
    pub fn observe(&self, event: &Event) -> Vec<FinishedSpan> {
        self.with(|state| state.observe(event))
    }

    /// Sets the remote parent of a task and of everything that it dispatches from now on. Call it
    /// before the task is created, or as soon as its id is known: finished spans do not change. The
    /// journal does not store it.
    pub fn set_parent(&self, task_id: &TaskId, parent: TraceParent) {
        self.with(|state| state.set_parent(task_id, parent));
    }

    /// The `traceparent` to send with remote work for an open task: remote spans become children of
    /// the task's span.
    pub fn parent_of(&self, task_id: &TaskId) -> Option<TraceParent> {
        self.with(|state| {
            let TraceContext { trace_id, sampled, .. } = *state.contexts.get(task_id)?;
            Some(TraceParent { trace_id, span_id: build::task_span(task_id), sampled })
        })
    }

    /// Reading the journal after this position, a new process sees the creation of every task that
    /// is open now. Visits all open tasks.
    pub fn needed_from(&self) -> Position {
        self.with(|state| state.tasks.needed_from())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn observe(&mut self, event: &Event) -> Vec<FinishedSpan> {
        let Some(turned) = self.tasks.apply(event) else { return Vec::new() };
        let Some(task) = turned.task else { return Vec::new() };
        match &event.body {
            EventBody::TaskCreated(_) => self.place_task(&task),
            EventBody::Dispatched(dispatched) => {
                let call = &dispatched.tool_call_id;
                let seq = self.tasks.call_began(&event.task_id, call).unwrap_or(event.seq.0);
                let span_id = build::call_span(&event.task_id, call, seq);
                for child in &dispatched.children {
                    if self.expected.len() < CHILDREN_EXPECTED_MAX {
                        let cause = DispatchingCall { task_id: event.task_id.clone(), span_id };
                        self.expected.insert(child.clone(), cause);
                    }
                }
            }
            _ => {}
        }
        let spans = self.spans(&task, turned.ended, event);
        if event.body.ends_task() {
            self.contexts.remove(&event.task_id);
            self.expected.retain(|_, cause| cause.task_id != event.task_id);
        }
        spans
    }

    fn spans(
        &self,
        task: &TaskFacts,
        ended: Vec<EndedActivity>,
        event: &Event,
    ) -> Vec<FinishedSpan> {
        let context = self.contexts.get(&event.task_id);
        let context = context.filter(|context| context.sampled == Sampled::Yes);
        let Some(context) = context.filter(|_| event.position > self.exported) else {
            return Vec::new();
        };
        let make = |ended| match ended {
            EndedActivity::ModelCall(chat) => Some(build::chat(task, context, chat)),
            EndedActivity::Call(call) => build::call(task, context, call),
            EndedActivity::Task(over) => Some(build::task(task, context, over, event.at)),
            EndedActivity::Step { .. }
            | EndedActivity::Approval(_)
            | EndedActivity::TakenMessage(_) => None,
        };
        ended.into_iter().filter_map(make).collect()
    }

    /// Determines the trace context of a new task.
    fn place_task(&mut self, task: &TaskFacts) {
        let cause = self.expected.remove(&task.task_id);
        let above = task.parent.as_ref();
        let inherited = above.and_then(|parent| self.contexts.get(parent)).copied();
        let parent = cause.map(|cause| cause.span_id).or_else(|| above.map(build::task_span));
        let root = task.root.as_ref().unwrap_or(&task.task_id);
        let trace_id =
            inherited.map_or_else(|| TraceId::derive(root.as_str()), |context| context.trace_id);
        let sampled = inherited.map_or(Sampled::Yes, |context| context.sampled);
        self.contexts.insert(task.task_id.clone(), TraceContext { trace_id, parent, sampled });
        if let Some(index) = self.early.iter().position(|(id, _)| *id == task.task_id)
            && let Some((task_id, parent)) = self.early.remove(index)
        {
            self.set_parent(&task_id, parent);
        }
    }

    fn set_parent(&mut self, task_id: &TaskId, parent: TraceParent) {
        let TraceParent { trace_id, span_id, sampled } = parent;
        if let Some(context) = self.contexts.get_mut(task_id) {
            *context = TraceContext { trace_id, parent: Some(span_id), sampled };
            return;
        }
        self.early.retain(|(early, _)| early != task_id);
        if self.early.len() >= PARENTS_EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back((task_id.clone(), parent));
    }
}

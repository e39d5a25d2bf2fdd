//! The guarantees of a tree: every call has one result, every join says how each child ended, every
//! detached child reports once, and no effect happens twice.

use antiphon_core::{
    AgentResult, Awaited, Dispatched, EventBody, InteractionId, InvocationResult, Join, Message,
    TaskId, TaskStatus, ToolCallId,
};
use chrono::DateTime;
use serde_json::json;

use super::{Task, Tree, text};
use crate::single_task::is_interrupted;

impl Tree {
    /// Every call started at most once and has one result, also when it was interrupted; a call of a
    /// canceled task may have none.
    pub(crate) fn check_calls(&self) {
        for task in self.tasks.values() {
            for call in task.calls() {
                let (at, results) = (self.describe(task), task.results(&call.id).len());
                let starts = task.bodies.iter().filter(|body| starts_call(body, &call.id)).count();
                assert!(starts <= 1, "{} started {starts} times: {at}", call.id);
                let expected = if task.is_canceled() { 0..=1 } else { 1..=1 };
                assert!(expected.contains(&results), "{} has {results} results: {at}", call.id);
            }
        }
    }

    /// The result of every dispatch says how each child ended, in the order of the targets.
    pub(crate) fn check_joins(&self) {
        for task in self.tasks.values() {
            for dispatched in task.dispatches() {
                let Some(result) = self.dispatch_result(task, &dispatched.tool_call_id) else {
                    continue;
                };
                let results = match &result {
                    InvocationResult::Scalar { result } => std::slice::from_ref(result),
                    InvocationResult::Vector { results } => results,
                    InvocationResult::TaskIds { .. } => &[],
                };
                let matches = matches_join(dispatched, &result, results);
                assert!(matches, "{dispatched:?}\nreturned {result:?}: {}", self.describe(task));
                self.check_statuses(task, results);
            }
        }
    }

    /// A task that waited for an earlier dispatched task learns how that ended. It does not wait when
    /// the call that records the id was interrupted.
    pub(crate) fn check_waits(&self) {
        let waiter = self.with_prompt("A5");
        let awaited = waiter.bodies.iter().filter_map(|body| {
            if let EventBody::Awaited(awaited) = body { Some(awaited) } else { None }
        });
        let awaited: Vec<&Awaited> = awaited.collect();
        let at = self.describe(waiter);
        let Some(first) = awaited.first() else {
            let call = waiter.calls().find(|call| call.name == "bash").unwrap();
            let output = text(&waiter.results(&call.id)[0].content);
            assert!(is_interrupted(&output), "it did not wait, and read {output}: {at}");
            return;
        };
        assert_eq!(awaited.len(), 1, "{awaited:?}: {at}");
        let result = self.dispatch_result(waiter, &first.tool_call_id);
        let Some(InvocationResult::Vector { results }) = &result else {
            panic!("it waited for {result:?}: {at}");
        };
        assert!(results.iter().map(|result| &result.task_id).eq(&first.tasks), "{result:?}: {at}");
        self.check_statuses(waiter, results);
    }

    /// Every detached child reported once, and its parent read the report; a parent that did not
    /// complete may have read less.
    pub(crate) fn check_reports(&self) {
        for task in self.tasks.values() {
            let detached = task.dispatches().filter(|dispatched| dispatched.join == Join::Detached);
            let children: Vec<&TaskId> = detached.flat_map(|d| &d.children).collect();
            let reports: usize = children.iter().map(|child| self.check_report(task, child)).sum();
            let queued = task.bodies.iter().filter(|b| matches!(b, EventBody::MessageQueued(_)));
            assert_eq!(queued.count(), reports, "an unexpected report: {}", self.describe(task));
        }
    }

    /// Returns how often a child reported.
    fn check_report(&self, task: &Task, child: &TaskId) -> usize {
        let id = serde_json::from_value(json!(child)).unwrap();
        let (texts, at) = (task.report_texts(id), self.describe(task));
        let reports = texts.len().div_ceil(2);
        let complete = texts.len() == 2 || task.status != TaskStatus::Completed;
        assert!(complete && reports <= 1, "{child} reported {texts:?}: {at}");
        for report in texts {
            let content = self.tasks[child].content.to_string();
            assert!(report.contains(&content), "{child} reported {report}, not {content}: {at}");
        }
        reports
    }

    /// One task was handed over, once.
    pub(crate) fn check_handover(&self) {
        for task in self.tasks.values() {
            let overs = task.bodies.iter().filter_map(|body| {
                if let EventBody::HandedOver(over) = body {
                    Some(over.agent.as_str())
                } else {
                    None
                }
            });
            let expected: &[&str] = if task.prompt == "A5" { &["heir"] } else { &[] };
            assert_eq!(overs.collect::<Vec<_>>(), expected, "{}", self.describe(task));
        }
    }

    /// Every line was appended once by its call, at most once by an interrupted or canceled call, and
    /// by no other. Returns how many calls were interrupted.
    pub(crate) fn check_effects(&self, log: &str) -> usize {
        let (mut interrupted, mut known) = (0, 0);
        for task in self.tasks.values() {
            for call in task.calls().filter(|call| call.name == "bash") {
                let at = self.describe(task);
                let arguments = call.arguments.object().unwrap().as_str();
                let (_, line) = arguments.split_once("echo ").unwrap();
                let (line, _) = line.split_once(" >> log").unwrap();
                let times = log.lines().filter(|logged| *logged == line).count();
                known += times;
                assert!(times <= 1, "{line} was done {times} times: {at}\n{log}");
                let started = task.bodies.iter().any(|body| starts_call(body, &call.id));
                assert!(started || times == 0, "{line} was done and never started: {at}");
                match task.results(&call.id).first() {
                    Some(result) if !result.is_error => assert_eq!(times, 1, "{line}: {at}"),
                    Some(result) if is_interrupted(&text(&result.content)) => {
                        interrupted += 1;
                    }
                    Some(_) | None => assert!(task.is_canceled(), "{line} failed: {at}"),
                }
            }
        }
        assert_eq!(log.lines().count(), known, "{}\n{log}", self.context);
        interrupted
    }

    /// The result of a dispatch; `None` when its task was canceled before.
    fn dispatch_result(&self, task: &Task, call: &ToolCallId) -> Option<InvocationResult> {
        let results = task.results(call);
        let Some(result) = results.first() else {
            assert!(task.is_canceled(), "{call} has no result: {}", self.describe(task));
            return None;
        };
        let json = text(&result.content);
        let parsed = serde_json::from_str(&json);
        Some(parsed.unwrap_or_else(|error| panic!("{error}: {json}: {}", self.describe(task))))
    }

    /// Each reported status and content is that of the task.
    fn check_statuses(&self, task: &Task, results: &[AgentResult]) {
        for result in results {
            let ended = &self.tasks[&result.task_id];
            let expected = (ended.status, &ended.content);
            assert_eq!((result.status, &result.content), expected, "{}", self.describe(task));
        }
    }
}

impl Task {
    /// A report as it was queued, and as it was appended to the conversation.
    fn report_texts(&self, id: InteractionId) -> Vec<String> {
        let report = |body: &EventBody| {
            if let EventBody::MessageQueued(queued) = body {
                (queued.id == id).then(|| text(&queued.user_message(DateTime::UNIX_EPOCH).content))
            } else if let EventBody::MessageAppended(appended) = body
                && let Message::User(user) = &*appended.message
            {
                (appended.queued == Some(id)).then(|| text(&user.content))
            } else {
                None
            }
        };
        self.bodies.iter().filter_map(report).collect()
    }
}

/// Whether a result has the form its join requires.
fn matches_join(
    dispatched: &Dispatched,
    result: &InvocationResult,
    results: &[AgentResult],
) -> bool {
    let children = &dispatched.children;
    let in_order = results.iter().map(|result| &result.task_id).eq(children);
    let completed = results.iter().filter(|result| result.status == TaskStatus::Completed).count();
    match (dispatched.join, result) {
        (Join::Detached, InvocationResult::TaskIds { task_ids }) => task_ids == children,
        (Join::Single, InvocationResult::Scalar { .. })
        | (Join::All, InvocationResult::Vector { .. }) => in_order,
        (Join::Any, InvocationResult::Scalar { result }) => {
            children.contains(&result.task_id) && completed == 1
        }
        (Join::Quorum { n }, InvocationResult::Vector { .. }) => {
            in_order && completed >= n.get() as usize
        }
        (Join::Detached | Join::Single | Join::All | Join::Any | Join::Quorum { .. }, _) => false,
    }
}

/// Whether an event starts a call: a run, a dispatch, a wait, a handover.
pub(crate) fn starts_call(body: &EventBody, call: &ToolCallId) -> bool {
    let started = if let EventBody::ToolStarted(started) = body {
        &started.tool_call_id
    } else if let EventBody::Dispatched(dispatched) = body {
        &dispatched.tool_call_id
    } else if let EventBody::Awaited(awaited) = body {
        &awaited.tool_call_id
    } else if let EventBody::HandedOver(over) = body {
        &over.tool_call_id
    } else {
        return false;
    };
    started == call
}

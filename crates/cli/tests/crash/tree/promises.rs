//! What was promised to those in the tree: every call has one result, every join tells how each of
//! its children ended, every detached child reports once, and nothing is done twice.

use antiphon_core::{
    AgentResult, Awaited, Dispatched, EventBody, InteractionId, InvocationResult, Join, Message,
    TaskId, TaskStatus, ToolCallId,
};
use chrono::DateTime;
use serde_json::json;

use super::{Task, Tree, text};

impl Tree {
    /// Every call was started once at most and has one result, also one that was cut off; one of a
    /// task that was canceled may have none.
    pub(crate) fn check_calls(&self) {
        for task in self.tasks.values() {
            for call in task.calls() {
                let (at, results) = (self.at(task), task.results(&call.id).len());
                let begun = task.bodies.iter().filter(|body| begins(body, &call.id)).count();
                assert!(begun <= 1, "{} begun {begun} times: {at}", call.id);
                let expected = if task.is_canceled() { 0..=1 } else { 1..=1 };
                assert!(expected.contains(&results), "{} has {results} results: {at}", call.id);
            }
        }
    }

    /// The result of every dispatch tells how each child ended, in the order of the targets.
    pub(crate) fn check_joins(&self) {
        for task in self.tasks.values() {
            for dispatched in task.dispatches() {
                let Some(told) = self.told(task, &dispatched.tool_call_id) else { continue };
                let results = match &told {
                    InvocationResult::Scalar { result } => std::slice::from_ref(result),
                    InvocationResult::Vector { results } => results,
                    InvocationResult::TaskIds { .. } => &[],
                };
                let fits = fits(dispatched, &told, results);
                assert!(fits, "{dispatched:?}\ndelivered {told:?}: {}", self.at(task));
                self.check_told(task, results);
            }
        }
    }

    /// Whoever waited for a task that was dispatched before is told how it ended. Who could not be
    /// told its name, because that call was cut off, did not wait.
    pub(crate) fn check_waits(&self) {
        let waiter = self.named("A5");
        let awaited = waiter.bodies.iter().filter_map(|body| {
            if let EventBody::Awaited(awaited) = body { Some(awaited) } else { None }
        });
        let awaited: Vec<&Awaited> = awaited.collect();
        let at = self.at(waiter);
        let Some(first) = awaited.first() else {
            let named = waiter.calls().find(|call| call.name == "bash").unwrap();
            let said = text(&waiter.results(&named.id)[0].content);
            assert!(said.contains("outcome unknown"), "it did not wait, and was told {said}: {at}");
            return;
        };
        assert_eq!(awaited.len(), 1, "{awaited:?}: {at}");
        let told = self.told(waiter, &first.tool_call_id);
        let Some(InvocationResult::Vector { results }) = &told else {
            panic!("it waited for {told:?}: {at}");
        };
        assert!(results.iter().map(|result| &result.task_id).eq(&first.tasks), "{told:?}: {at}");
        self.check_told(waiter, results);
    }

    /// Every detached child reported once, and its parent heard it; one that did not get to its end
    /// may have heard less.
    pub(crate) fn check_reports(&self) {
        for task in self.tasks.values() {
            let detached = task.dispatches().filter(|dispatched| dispatched.join == Join::Detached);
            let children: Vec<&TaskId> = detached.flat_map(|d| &d.children).collect();
            let reports: usize = children.iter().map(|child| self.check_report(task, child)).sum();
            let queued = task.bodies.iter().filter(|b| matches!(b, EventBody::MessageQueued(_)));
            assert_eq!(queued.count(), reports, "somebody else reported: {}", self.at(task));
        }
    }

    /// Says how often a child reported.
    fn check_report(&self, task: &Task, child: &TaskId) -> usize {
        let id = serde_json::from_value(json!(child)).unwrap();
        let (heard, at) = (task.heard(id), self.at(task));
        let reports = heard.len().div_ceil(2);
        let whole = heard.len() == 2 || task.status != TaskStatus::Completed;
        assert!(whole && reports <= 1, "{child} reported {heard:?}: {at}");
        for said in heard {
            let content = self.tasks[child].content.to_string();
            assert!(said.contains(&content), "{child} reported {said}, not {content}: {at}");
        }
        reports
    }

    /// One agent took over, once.
    pub(crate) fn check_handover(&self) {
        for task in self.tasks.values() {
            let overs = task.bodies.iter().filter_map(|body| {
                if let EventBody::HandedOver(over) = body {
                    Some(over.agent.as_str())
                } else {
                    None
                }
            });
            let expected: &[&str] = if task.asked == "A5" { &["heir"] } else { &[] };
            assert_eq!(overs.collect::<Vec<_>>(), expected, "{}", self.at(task));
        }
    }

    /// Every line was appended once by the call that says so, once at most by one that was cut off
    /// or canceled, and by nobody else. Says how many calls were cut off.
    pub(crate) fn check_effects(&self, log: &str) -> usize {
        let (mut cut_off, mut known) = (0, 0);
        for task in self.tasks.values() {
            for call in task.calls().filter(|call| call.name == "bash") {
                let at = self.at(task);
                let arguments = call.arguments.object().unwrap().as_str();
                let (_, line) = arguments.split_once("echo ").unwrap();
                let (line, _) = line.split_once(" >> log").unwrap();
                let times = log.lines().filter(|there| *there == line).count();
                known += times;
                assert!(times <= 1, "{line} was done {times} times: {at}\n{log}");
                let begun = task.bodies.iter().any(|body| begins(body, &call.id));
                assert!(begun || times == 0, "{line} was done and never begun: {at}");
                match task.results(&call.id).first() {
                    Some(result) if !result.is_error => assert_eq!(times, 1, "{line}: {at}"),
                    Some(result) if text(&result.content).contains("outcome unknown") => {
                        cut_off += 1;
                    }
                    Some(_) | None => assert!(task.is_canceled(), "{line} failed: {at}"),
                }
            }
        }
        assert_eq!(log.lines().count(), known, "{}\n{log}", self.place);
        cut_off
    }

    /// What a call that waited for others delivered, unless its task was canceled before.
    fn told(&self, task: &Task, call: &ToolCallId) -> Option<InvocationResult> {
        let results = task.results(call);
        let Some(result) = results.first() else {
            assert!(task.is_canceled(), "{call} delivered nothing: {}", self.at(task));
            return None;
        };
        let told = text(&result.content);
        let parsed = serde_json::from_str(&told);
        Some(parsed.unwrap_or_else(|error| panic!("{error}: {told}: {}", self.at(task))))
    }

    /// What is told of each task is how it ended.
    fn check_told(&self, task: &Task, results: &[AgentResult]) {
        for result in results {
            let ended = &self.tasks[&result.task_id];
            let expected = (ended.status, &ended.content);
            assert_eq!((result.status, &result.content), expected, "{}", self.at(task));
        }
    }
}

impl Task {
    /// A report as it arrived, and as it joined the conversation.
    fn heard(&self, id: InteractionId) -> Vec<String> {
        let heard = |body: &EventBody| {
            if let EventBody::MessageQueued(queued) = body {
                (queued.id == id).then(|| text(&queued.user_message(DateTime::UNIX_EPOCH).content))
            } else if let EventBody::MessageAppended(joined) = body
                && let Message::User(user) = &*joined.message
            {
                (joined.queued == Some(id)).then(|| text(&user.content))
            } else {
                None
            }
        };
        self.bodies.iter().filter_map(heard).collect()
    }
}

/// Whether what was delivered is what the join asks for.
fn fits(dispatched: &Dispatched, told: &InvocationResult, results: &[AgentResult]) -> bool {
    let children = &dispatched.children;
    let in_order = results.iter().map(|result| &result.task_id).eq(children);
    let completed = results.iter().filter(|result| result.status == TaskStatus::Completed).count();
    match (dispatched.join, told) {
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

/// Whether a call is begun by this: run, dispatched, waited for.
pub(crate) fn begins(body: &EventBody, call: &ToolCallId) -> bool {
    let begun = if let EventBody::ToolStarted(started) = body {
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
    begun == call
}

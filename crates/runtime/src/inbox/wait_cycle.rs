//! Which task waits for the answer of which agent, in this process.
//!
//! A task that waits for an answer reads no other request, so agents that wait for each other would wait until
//! their requests are overdue. A wait that closes a cycle is refused instead, with the agents of the cycle. A task
//! also waits for the tasks it dispatched; a cycle can lead through these.
//!
//! The journal is the truth: after a restart each task that waits registers again when it is started.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{AgentName, InteractionId, TaskId};

use crate::dispatch::pending_call::PendingCall;
use crate::dispatch::refusal::DispatchRefusal;
use crate::services::Services;
use crate::task::state::TaskState;

/// All tasks that wait for answers.
#[derive(Debug, Default)]
pub(crate) struct RequestWaits(Mutex<WaitTable>);

type WaitTable = HashMap<TaskId, AnswerWait>;

#[derive(Debug)]
struct AnswerWait {
    /// The agent that waits.
    agent: String,
    /// The agents that it waits for, by the id of the request.
    requests: BTreeMap<InteractionId, AgentName>,
}

impl RequestWaits {
    fn table(&self) -> MutexGuard<'_, WaitTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a task waits for an answer.
    pub(crate) fn waits(&self, waiter: &TaskId) -> bool {
        self.table().contains_key(waiter)
    }

    /// A request has its final answer.
    pub(crate) fn answered(&self, waiter: &TaskId, request: InteractionId) {
        let mut table = self.table();
        let Some(wait) = table.get_mut(waiter) else { return };
        wait.requests.remove(&request);
        if wait.requests.is_empty() {
            table.remove(waiter);
        }
    }

    /// A task has ended.
    pub(crate) fn forget(&self, waiter: &TaskId) {
        self.table().remove(waiter);
    }

    /// Registers what a task waits for, as its events say.
    pub(crate) fn restore(&self, state: &TaskState) {
        let mut requests = BTreeMap::new();
        for pending_call in state.pending_calls.values() {
            if let PendingCall::Request { id, .. } = pending_call
                && let Some(sent) = state.outbound_requests.get(id)
            {
                requests.insert(*id, sent.to.clone());
            }
        }
        let mut table = self.table();
        if requests.is_empty() {
            table.remove(&state.task_id);
        } else {
            let agent = state.created.agent.clone();
            table.insert(state.task_id.clone(), AnswerWait { agent, requests });
        }
    }
}

/// Registers that a task waits for the answer of `to`, unless that closes a cycle.
pub(crate) fn wait_for_answer(
    services: &Services,
    waiter: &TaskState,
    request: InteractionId,
    to: &AgentName,
) -> Result<(), DispatchRefusal> {
    let mut table = services.request_waits.table();
    if let Some(task_id) = services.residents.find(to) {
        check_cycle(services, &table, waiter, (task_id, to.to_string()))?;
    }
    let agent = waiter.created.agent.clone();
    let wait = table
        .entry(waiter.task_id.clone())
        .or_insert_with(|| AnswerWait { agent, requests: BTreeMap::new() });
    wait.requests.insert(request, to.clone());
    Ok(())
}

/// Calls `register`, which makes a task wait for other tasks, unless that closes a cycle.
pub(crate) fn wait_for_tasks(
    services: &Services,
    waiter: &TaskState,
    tasks: &[TaskId],
    register: impl FnOnce(),
) -> Result<(), DispatchRefusal> {
    let table = services.request_waits.table();
    for task_id in tasks {
        let label = label(&table, task_id);
        check_cycle(services, &table, waiter, (task_id.clone(), label))?;
    }
    register();
    Ok(())
}

/// Refuses a wait for `next` if that waits, directly or not, for `waiter`.
fn check_cycle(
    services: &Services,
    table: &WaitTable,
    waiter: &TaskState,
    next: (TaskId, String),
) -> Result<(), DispatchRefusal> {
    let mut seen = HashSet::new();
    // Each entry is a task and the path to it.
    let mut open = vec![(next.0, vec![waiter.created.agent.clone(), next.1])];
    while let Some((task_id, path)) = open.pop() {
        if task_id == waiter.task_id {
            return Err(DispatchRefusal::WaitCycle { path });
        }
        if !seen.insert(task_id.clone()) {
            continue;
        }
        let longer = |name: String| path.iter().cloned().chain([name]).collect::<Vec<_>>();
        for to in table.get(&task_id).into_iter().flat_map(|wait| wait.requests.values()) {
            if let Some(task_id) = services.residents.find(to) {
                open.push((task_id, longer(to.to_string())));
            }
        }
        for task_id in services.waiters.needed_by(&task_id) {
            let name = if task_id == waiter.task_id {
                waiter.created.agent.clone()
            } else {
                label(table, &task_id)
            };
            open.push((task_id, longer(name)));
        }
    }
    Ok(())
}

fn label(table: &WaitTable, task_id: &TaskId) -> String {
    table.get(task_id).map_or_else(|| format!("task {task_id}"), |wait| wait.agent.clone())
}

//! Work that other tasks, agents and orchestrators do for a task.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::Seq;
use crate::event::defaults::{any_agent, is_any_agent};
use crate::port::BootTime;
use crate::{
    CallableAgents, ContextScope, Join, LeftOutTool, ModelRef, TaskId, TaskSummary, ToolCallId,
};

event_structs! {
    /// A tool call dispatches agents. The orchestrator creates their tasks under these ids after
    /// this event.
    Dispatched {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// What the children see of the conversation.
        #[serde(default)]
        context: ContextScope,
        /// How the task waits for the children.
        join: Join,
        /// Ids of the children's tasks, in the order of the targets.
        children: Vec<TaskId>,
        /// Tools that children were to have and do not get.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOutTool>,
    }
    /// A tool call waits for tasks that were dispatched before.
    Awaited {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Ids of the tasks.
        tasks: Vec<TaskId>,
        /// Whether the call waits for any or for all of the tasks.
        mode: Awaiting,
        /// Time after which the call stops waiting. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
    }
    /// Another agent takes over the task: its result is the result of the task.
    HandedOver {
        /// Id of the tool call that handed over.
        tool_call_id: ToolCallId,
        /// Name of the agent that works on the task from here on.
        agent: String,
        /// Model from here on. Absent: the agent needs no model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Models to use, in order, when that one is not available.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallbacks: Vec<ModelRef>,
        /// System prompt from here on. Absent: empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
        /// Names of the tools the agent may use from here on. Absent: every tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// Agents the agent may call from here on. Absent: any agent.
        #[serde(default = "any_agent", skip_serializing_if = "is_any_agent")]
        agents: CallableAgents,
    }
    /// A runner copied the events of a remote task up to this one.
    Relayed {
        /// Id of the remote task.
        task_id: TaskId,
        /// Seq of the last remote event that was copied.
        seq: Seq,
        /// Tasks below the remote task that are new or have changed since the last such event, as the other
        /// orchestrator lists them. Absent: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskSummary>,
    }
}

impl Relayed {
    /// The same mark without tasks.
    #[must_use]
    pub fn mark(&self) -> Self {
        Self { task_id: self.task_id.clone(), seq: self.seq, tasks: Vec::new() }
    }
}

/// For how many tasks a tool call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaiting {
    /// For the first task that ends.
    Any,
    /// For every task.
    #[default]
    All,
}

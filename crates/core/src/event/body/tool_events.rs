//! Tool calls, and what people decide about them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::port::{BootTime, Rule};
use crate::{Answer, ApprovalId, Decision, Effect, Question, RawJson, ToolCallId};

event_structs! {
    /// A tool call needs the approval of a person, or asks a person a question.
    ApprovalRequested {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Arguments of the call, byte for byte.
        arguments: RawJson,
        /// Why the call needs approval.
        reason: String,
        /// Rule that the decisions `allow_task` and `allow_always` grant.
        rule: Rule,
        /// Time after which the call counts as denied. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<DateTime<Utc>>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
        /// What the person is asked. Absent: whether the call may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    }
    /// A person decided about an approval, or it expired.
    ApprovalDecided {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// The decision.
        decision: Decision,
        /// Name of the person or program that decided.
        by: String,
        /// Comment on the decision; the model reads it. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        /// The answer to a question, or the plan that is to be carried out in place of the agent's own. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Answer>,
    }
    /// A tool call was not allowed to run.
    ToolRefused {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Why it was refused.
        reason: String,
    }
    /// A tool call starts. Its side effects may have begun.
    ToolStarted {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Effect of the tool, which decides what recovery does with an interrupted call.
        effect: Effect,
        /// What the tool needs to find out later whether the call happened. Absent: nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Value>,
    }
    /// A tool call goes to the client that offered the tool.
    ToolRequested {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Arguments of the call, byte for byte.
        arguments: RawJson,
        /// Time after which the task becomes `input_required` without a result.
        until: DateTime<Utc>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
    }
}

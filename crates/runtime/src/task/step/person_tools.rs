//! The tools of an agent that need no executor: `ask_user` asks a person, `submit_plan` has a person accept a plan, `todo`
//! keeps a list. The loop answers their calls itself, from the state of the task.
//!
//! A question to a person is recorded as an approval, which is asked, listed, decided and recovered as every other one. After a
//! kill anywhere the question is either not asked yet, or it waits, or its answer becomes the result of the call.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use antiphon_core::port::Rule;
use antiphon_core::{
    Answer, ApprovalId, ApprovalRequested, Choice, ChoiceQuestion, Decision, PlanQuestion,
    Question, RawJson, TaskAccess, TaskCreated, TodoChanged, TodoItem, TodoStatus, Tool,
    ToolCallBlock, ToolResult,
};
use serde::Deserialize;
use serde_json::json;

use crate::deps::ApprovalPolicy;
use crate::dispatch::supervisor_tools::read;
use crate::inbox::peer_tools::tool;
use crate::task::schedule::deadlines;
use crate::task::state::ApprovalQuestion;
use crate::task::step::TaskRun;
use crate::task::step::tools;

/// Name of the tool that asks a person a question.
pub const ASK_USER: &str = "ask_user";

/// Name of the tool that has a person accept a plan.
pub const SUBMIT_PLAN: &str = "submit_plan";

/// Name of the tool that keeps the list of things to do.
pub const TODO: &str = "todo";

/// What the model reads when no person can be asked.
const UNATTENDED: &str = "No person can be asked here. Decide yourself what is safest to assume, and say at the end \
                          what you assumed.";

/// What is added to the system prompt of a task that plans first. It is the same before and after the plan is
/// accepted, so that a provider's cache stays valid.
pub(crate) const PLAN_PROMPT: &str = "\
# Plan first

You work in two parts. First you only read: every call that would change something is refused. Find out what you need, \
then give your plan to `submit_plan`: what you will change, in which order, and how you will check it. If you do not \
have this tool, your plan is your answer. Once the result of `submit_plan` says that the plan is accepted, carry it out.";

/// The tools in the order in which a model is offered them.
static TOOLS: LazyLock<Vec<Arc<Tool>>> = LazyLock::new(|| {
    let choice = json!({ "type": "object", "properties": { "label": { "type": "string" },
        "description": { "type": "string" } }, "required": ["label"] });
    let item = json!({ "type": "object", "properties": { "text": { "type": "string" },
        "status": { "enum": ["pending", "in_progress", "done"] } }, "required": ["text", "status"] });
    let each = [
        (
            ASK_USER,
            "Asks the user a question and waits for the answer. Only for what the result depends on and you cannot \
             find out.",
            json!({ "question": { "type": "string" },
                "choices": { "type": "array", "items": choice },
                "multiple": { "type": "boolean", "description": "Several may be taken." },
                "free_text": { "type": "boolean", "description":
                    "Allow other answers; default true." },
                "default": { "type": "string", "description": "A label." } }),
            json!(["question"]),
        ),
        (
            SUBMIT_PLAN,
            "Shows the user your plan and waits until it is accepted or rejected.",
            json!({ "plan": { "type": "string", "description": "The plan, in markdown." } }),
            json!(["plan"]),
        ),
        (
            TODO,
            "Replaces the list of steps that the user sees. Use it for work of three or more steps.",
            json!({ "items": { "type": "array", "items": item } }),
            json!(["items"]),
        ),
    ];
    each.into_iter().filter_map(tool).collect()
});

/// Whether the loop itself answers calls of a tool of this name.
pub(crate) fn is_ours(name: &str) -> bool {
    [ASK_USER, SUBMIT_PLAN, TODO].contains(&name)
}

/// Names of the tools that a task may lend to the tasks it dispatches. Each task has its own plan, or none.
pub(crate) fn usable(created: &TaskCreated) -> impl Iterator<Item = &'static str> {
    let clients = |name: &str| created.external_tools.iter().any(|tool| tool.name == name);
    [ASK_USER, TODO].into_iter().filter(move |name| tools::may_use(created, name) && !clients(name))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskUser {
    question: String,
    #[serde(default)]
    choices: Vec<ChoiceArgument>,
    #[serde(default)]
    multiple: bool,
    free_text: Option<bool>,
    default: Option<DefaultArgument>,
}

/// A choice; models write a label alone, too.
#[derive(Deserialize)]
#[serde(untagged)]
enum ChoiceArgument {
    Label(String),
    Choice(Choice),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DefaultArgument {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubmitPlan {
    plan: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Todo {
    items: Vec<TodoItem>,
}

impl From<AskUser> for ChoiceQuestion {
    fn from(asked: AskUser) -> Self {
        let AskUser { question, choices, multiple, free_text, default } = asked;
        let choices: Vec<Choice> = choices
            .into_iter()
            .map(|choice| match choice {
                ChoiceArgument::Label(label) => Choice { label, description: None },
                ChoiceArgument::Choice(choice) => choice,
            })
            .collect();
        let is_label = |text: &String| choices.iter().any(|choice| choice.label == *text);
        let default = default.map(|default| match default {
            DefaultArgument::One(text) if is_label(&text) => {
                Answer { choices: vec![text], text: None }
            }
            DefaultArgument::One(text) => Answer { choices: Vec::new(), text: Some(text) },
            DefaultArgument::Several(choices) => Answer { choices, text: None },
        });
        Self { text: question, choices, multiple, free_text: free_text.unwrap_or(true), default }
    }
}

/// The question of a call, or why it cannot be asked.
fn question(call: &ToolCallBlock) -> Result<Question, String> {
    let question = if call.name == SUBMIT_PLAN {
        let SubmitPlan { plan } = read(call).map_err(|refusal| refusal.to_string())?;
        Question::Plan(PlanQuestion { plan })
    } else {
        let asked: AskUser = read(call).map_err(|refusal| refusal.to_string())?;
        Question::Choice(asked.into())
    };
    question.check().map_err(|error| error.to_string())?;
    Ok(question)
}

impl TaskRun {
    /// Whether the loop answers calls of this tool for the task.
    pub(crate) fn answers_itself(&self, name: &str) -> bool {
        let created = &self.state.created;
        is_ours(name)
            && !self.is_external(name)
            && (name == SUBMIT_PLAN || tools::may_use(created, name))
            && (name != SUBMIT_PLAN || created.access == TaskAccess::PlanFirst)
    }

    /// The tools of the loop that the task may use. Those that ask a person are there where one can answer.
    pub(crate) fn person_tools(&self) -> impl Iterator<Item = Arc<Tool>> + '_ {
        let can_ask = self.can_ask();
        TOOLS
            .iter()
            .filter(move |tool| self.answers_itself(&tool.name) && (can_ask || tool.name == TODO))
            .cloned()
    }

    /// Whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        match self.deps.settings.approvals {
            ApprovalPolicy::Wait { .. } => true,
            ApprovalPolicy::Refuse => false,
        }
    }

    /// The request to a person that a call makes, if it asks one. A question that cannot be asked gets its reason as
    /// the result.
    pub(super) fn question_of(
        &self,
        call: &ToolCallBlock,
        timeout: Option<Duration>,
    ) -> Option<ApprovalRequested> {
        if call.name == TODO || (call.name == SUBMIT_PLAN && !self.plans()) {
            return None;
        }
        let question = question(call).ok()?;
        let reason = match &question {
            Question::Choice(question) => question.text.clone(),
            Question::Plan(_) => "the task changes nothing before its plan is accepted".to_owned(),
        };
        let arguments = call.arguments.object()?.clone();
        let rule = Rule(String::new());
        Some(self.approval_request(call, arguments, (reason, rule), timeout, Some(question)))
    }

    /// The request for an approval. Its deadline is watched.
    pub(super) fn approval_request(
        &self,
        call: &ToolCallBlock,
        arguments: RawJson,
        (reason, rule): (String, Rule),
        timeout: Option<Duration>,
        question: Option<Question>,
    ) -> ApprovalRequested {
        let now = self.services.deps.clock.now();
        let until = |timeout| now + chrono::TimeDelta::from_std(timeout).unwrap_or_default();
        let request = ApprovalRequested {
            approval_id: ApprovalId::from(self.services.deps.ids.next()),
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            arguments,
            reason,
            rule,
            expires_at: timeout.map(until),
            boot_until: timeout.and_then(|timeout| self.services.time.boot_until(until(timeout))),
            question,
        };
        if let Some(at) = request.expires_at {
            deadlines::watch_approval(&self.services, at, request.approval_id.clone());
        }
        request
    }

    /// Whether the task reads only, because its plan is not accepted yet.
    pub(crate) fn plans(&self) -> bool {
        self.state.access == TaskAccess::PlanFirst
    }

    /// Gives a call of one of these tools its result.
    pub(super) fn answer_call(&mut self, call: &ToolCallBlock) {
        let asked = self.state.approvals.get(&call.id);
        let result = if call.name == TODO {
            self.replace_todo(call)
        } else if call.name == SUBMIT_PLAN && !self.plans() && asked.is_none() {
            ToolResult::failed("The plan of this task is accepted already: carry it out.")
        } else {
            match (question(call), asked) {
                (Err(reason), _) => ToolResult::failed(reason),
                (Ok(_), None) => ToolResult::failed(UNATTENDED),
                (Ok(Question::Choice(_)), Some(asked)) => chosen(asked),
                (Ok(Question::Plan(PlanQuestion { plan })), Some(asked)) => planned(&plan, asked),
            }
        };
        self.add_result(call, result);
    }

    fn replace_todo(&mut self, call: &ToolCallBlock) -> ToolResult {
        let items = match read::<Todo>(call) {
            Ok(Todo { items }) => items,
            Err(refusal) => return ToolResult::failed(refusal.to_string()),
        };
        if let Err(error) = TodoItem::check(&items) {
            return ToolResult::failed(error.to_string());
        }
        let done = items.iter().filter(|item| item.status == TodoStatus::Done).count();
        let result = ToolResult::text(format!("{done} of {} done", items.len()));
        self.push(TodoChanged { items });
        result
    }
}

/// The result of a question that was asked.
fn chosen(asked: &ApprovalQuestion) -> ToolResult {
    let answer = asked.answer.as_ref();
    let comment = answer.and_then(|(_, comment)| comment.as_deref());
    let comment = comment.map(|comment| format!(": {comment}")).unwrap_or_default();
    match answer.map(|(decision, _)| *decision) {
        Some(decision) if decision.allows() => {
            let Answer { choices, text } = asked.given.clone().unwrap_or_default();
            let taken = if !choices.is_empty() {
                Some(format!("The user chose: {}", choices.join(", ")))
            } else if text.is_none() {
                Some("The user chose none.".to_owned())
            } else {
                None
            };
            let said = text.map(|text| format!("The user answered: {text}"));
            let lines: Vec<String> = taken.into_iter().chain(said).collect();
            ToolResult::text(lines.join("\n"))
        }
        Some(Decision::Expire) => ToolResult::failed("The user did not answer in time."),
        Some(_) | None => ToolResult::failed(format!("The user does not answer this{comment}")),
    }
}

/// The result of a plan that a person was shown.
fn planned(plan: &str, asked: &ApprovalQuestion) -> ToolResult {
    let answer = asked.answer.as_ref();
    let comment = answer.and_then(|(_, comment)| comment.as_deref());
    let comment = comment.map(|comment| format!(": {comment}")).unwrap_or_default();
    match answer.map(|(decision, _)| *decision) {
        Some(decision) if decision.allows() => {
            let changed = asked.given.as_ref().and_then(|answer| answer.text.as_deref());
            ToolResult::text(match changed.filter(|text| *text != plan) {
                None => format!("The plan is accepted{comment}. Carry it out."),
                Some(text) => {
                    format!(
                        "The plan is accepted with changes{comment}. Carry out this plan:\n\n{text}"
                    )
                }
            })
        }
        Some(Decision::Expire) => ToolResult::failed(
            "The user did not decide in time: the plan is not accepted. End your turn with it as your answer.",
        ),
        Some(_) | None => ToolResult::failed(format!(
            "The plan is rejected{comment}. Change it and submit it again."
        )),
    }
}

//! Who may type into a program that no sandbox restricts. One check, at delivery, for every way into the
//! program: its start, and each message of its inbox.
//!
//! | input                                                   | decision                               |
//! |---------------------------------------------------------|----------------------------------------|
//! | a rule of the person denies it                          | denied                                 |
//! | a message of a person, in the person's own name         | allowed                                |
//! | a start by a person, of an agent that a person allowed  | allowed                                |
//! | a start that only a rule allows, with a text to type    | like a message with this text          |
//! | a rule of the person or of the task covers it           | allowed                                |
//! | anything else                                           | a question to a person                 |
//!
//! The question is an approval like any other: it is in the journal before the program waits for it, and
//! every interface can answer it. `allow_once` lets this input through, `allow_task` every input of the same
//! sender to this task, `allow_always` every input of the same sender to this agent; open questions about others of its
//! messages are answered by that when these are typed. A denied message
//! leaves the inbox as answered, `failed` with the code `denied`.

use std::fmt::Write as _;
use std::sync::Arc;

use antiphon_core::port::{
    Append, Expected, GateRequest, GateVerdict, InputPermit, InputSubject, JournalError, Rule,
    RunnerInput,
};
use antiphon_core::{
    ApprovalDecided, ApprovalId, ApprovalRequested, Decision, InputBlock, InteractionId, Message,
    MessageQueued, Provenance, RawJson, Replied, ResponseStatus, TaskId, ToolCallId, visible,
};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::deps::ApprovalPolicy;
use crate::inbox::derived_id;
use crate::inbox::requests;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::deadlines;
use crate::task::state::TaskState;

/// Name of the question about a message, in approvals and rules.
pub const TERMINAL_INPUT: &str = "terminal_input";

/// Name of the question about a start, in approvals and rules.
pub const TERMINAL_START: &str = "terminal_start";

/// The input of one task.
pub(crate) struct TaskInput {
    pub(crate) services: Arc<Services>,
    pub(crate) task_id: TaskId,
}

/// A question to a person.
#[derive(Debug)]
struct Question {
    tool_call_id: ToolCallId,
    tool_name: &'static str,
    arguments: Value,
    reason: String,
    rule: Rule,
    /// In a few words, for the status of the agent.
    short: String,
    /// After this time no answer is needed any more.
    until: Option<chrono::DateTime<chrono::Utc>>,
}

/// The state of an input.
#[derive(Debug)]
enum InputState {
    Allowed,
    Denied { reason: String },
    Pending { short: String },
    Unasked(Box<Question>),
}

#[async_trait]
impl RunnerInput for TaskInput {
    async fn permit(&self, subject: InputSubject) -> Result<InputPermit, JournalError> {
        loop {
            let state = load(&self.services, &self.task_id).await?;
            let question = match check(&self.services, &state, subject) {
                InputState::Allowed => {
                    let Some(open) = open_question(&state, subject) else {
                        return Ok(InputPermit::Allowed);
                    };
                    // What is typed is no question any more. Another writer may be first: it is looked at again.
                    self.append(&state, allowed_by_rule(open).into()).await?;
                    continue;
                }
                InputState::Pending { short } => return Ok(InputPermit::Asked { question: short }),
                InputState::Denied { reason } => {
                    if let InputSubject::Message(id) = subject
                        && !self.refuse_message(&state, id, &reason).await?
                    {
                        continue;
                    }
                    return Ok(InputPermit::Denied { reason });
                }
                InputState::Unasked(question) => question,
            };
            if subject == InputSubject::Start
                && approvals(&self.services, &state) == ApprovalPolicy::Refuse
            {
                return Ok(InputPermit::Denied { reason: unattended(&question) });
            }
            if let Some(question) = self.ask(&state, *question).await? {
                return Ok(InputPermit::Asked { question });
            }
        }
    }
}

impl TaskInput {
    /// Records the question. `None` when another writer was first.
    async fn ask(
        &self,
        state: &TaskState,
        question: Question,
    ) -> Result<Option<String>, JournalError> {
        let services = &self.services;
        let invalid = |error: antiphon_core::RawJsonError| JournalError::Invalid {
            task_id: self.task_id.clone(),
            reason: error.to_string(),
        };
        let now = services.deps.clock.now();
        let timeout = match approvals(services, state) {
            ApprovalPolicy::Wait { timeout } => timeout,
            ApprovalPolicy::Refuse => None,
        };
        let timeout = timeout.and_then(|timeout| chrono::TimeDelta::from_std(timeout).ok());
        let expires_at = question.until.into_iter().chain(timeout.map(|left| now + left)).min();
        let request = ApprovalRequested {
            approval_id: ApprovalId::from(services.deps.ids.next()),
            tool_call_id: question.tool_call_id,
            tool_name: question.tool_name.to_owned(),
            arguments: RawJson::of(&question.arguments).map_err(invalid)?,
            reason: question.reason,
            rule: question.rule,
            expires_at,
            boot_until: expires_at.and_then(|at| services.time.boot_until(at)),
            question: None,
        };
        if let Some(at) = expires_at {
            deadlines::watch_approval(services, at, request.approval_id.clone());
        }
        let recorded = self.append(state, request.into()).await?;
        Ok(recorded.then_some(question.short))
    }

    /// Answers a denied message as failed, so that it leaves the inbox. False when another writer was
    /// first.
    async fn refuse_message(
        &self,
        state: &TaskState,
        id: InteractionId,
        reason: &str,
    ) -> Result<bool, JournalError> {
        let Some(queued) = state.queue.iter().find(|queued| queued.id == id) else {
            return Ok(true);
        };
        let replied = Replied {
            in_reply_to: id,
            to: queued.from.clone(),
            reply_to: queued.reply_to.clone(),
            status: ResponseStatus::Failed,
            result: json!({ "code": "denied", "error": reason }),
        };
        if !self.append(state, replied.clone().into()).await? {
            return Ok(false);
        }
        let agent = &state.created.agent;
        if let Err(error) = requests::deliver_reply(&self.services, agent, &replied).await {
            // The requester looks for the recorded answer.
            tracing::warn!(task.id = %self.task_id, %error, "a refusal was not delivered");
        }
        Ok(true)
    }

    async fn append(
        &self,
        state: &TaskState,
        body: antiphon_core::EventBody,
    ) -> Result<bool, JournalError> {
        let append = Append {
            task_id: self.task_id.clone(),
            expected: Expected::At(state.seq),
            at: self.services.deps.clock.now(),
            events: vec![body],
            key: None,
        };
        match self.services.append(append).await {
            Ok(_) => Ok(true),
            Err(JournalError::Stale { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether a message may leave the inbox for the program: the same check, without asking.
pub(crate) async fn is_allowed(
    services: &Services,
    task_id: &TaskId,
    id: InteractionId,
) -> Result<bool, JournalError> {
    let state = load(services, task_id).await?;
    Ok(matches!(check(services, &state, InputSubject::Message(id)), InputState::Allowed))
}

/// The id under which a message is asked about. No tool call has it.
pub(crate) fn question_id(id: InteractionId) -> ToolCallId {
    question_named(&format!("input:{id}"))
}

/// The question about a message that no person has answered.
fn open_question(state: &TaskState, subject: InputSubject) -> Option<ApprovalId> {
    let InputSubject::Message(id) = subject else { return None };
    let asked = state.approvals.get(&question_id(id))?;
    asked.answer.is_none().then(|| asked.approval_id.clone())
}

/// The answer to a question about a message whose sender a person has allowed since.
fn allowed_by_rule(approval_id: ApprovalId) -> ApprovalDecided {
    let by = "a rule for its sender".to_owned();
    ApprovalDecided { approval_id, decision: Decision::AllowOnce, by, comment: None, answer: None }
}

fn question_named(name: &str) -> ToolCallId {
    ToolCallId::from(derived_id::of_name(name).0)
}

async fn load(services: &Services, task_id: &TaskId) -> Result<TaskState, JournalError> {
    match services.reader.load_without_messages(task_id).await {
        Ok(state) => Ok(state),
        Err(OrchestratorError::Journal(error)) => Err(error),
        Err(error) => {
            Err(JournalError::Invalid { task_id: task_id.clone(), reason: error.to_string() })
        }
    }
}

/// The check.
fn check(services: &Services, state: &TaskState, subject: InputSubject) -> InputState {
    let questions = match subject {
        InputSubject::Start => start_questions(services, state),
        InputSubject::Message(id) => {
            let Some(queued) = state.queue.iter().find(|queued| queued.id == id) else {
                let reason = "it is no longer in the inbox".to_owned();
                return InputState::Denied { reason };
            };
            message_questions(state, queued)
        }
    };
    for question in questions {
        let answer = answer(services, state, question);
        if !matches!(answer, InputState::Allowed) {
            return answer;
        }
    }
    InputState::Allowed
}

/// What happens to a question of a task.
fn approvals(services: &Services, state: &TaskState) -> ApprovalPolicy {
    let own = services.deps.settings.approvals;
    services.deps_of(&state.task_id, &state.created).map_or(own, |deps| deps.settings.approvals)
}

/// What is known about a question: from rules, and from the answer to it.
fn answer(services: &Services, state: &TaskState, question: Question) -> InputState {
    let mut asks_each_time = false;
    if let Ok(arguments) = RawJson::of(&question.arguments) {
        let call = GateRequest {
            tool: question.tool_name,
            arguments: &arguments,
            granted: &state.granted,
        };
        let Ok(deps) = services.deps_of(&state.task_id, &state.created) else {
            return InputState::Unasked(Box::new(question));
        };
        match deps.gate.judge_by_rules(&call) {
            Some(GateVerdict::Allow) => return InputState::Allowed,
            Some(GateVerdict::Deny { reason }) => return InputState::Denied { reason },
            Some(GateVerdict::Ask { .. }) => asks_each_time = true,
            None => {}
        }
    }
    if !asks_each_time && state.granted.contains(&question.rule) {
        return InputState::Allowed;
    }
    let Some(asked) = state.approvals.get(&question.tool_call_id) else {
        return InputState::Unasked(Box::new(question));
    };
    match &asked.answer {
        None => InputState::Pending { short: question.short },
        Some((decision, _)) if decision.allows() => InputState::Allowed,
        Some((Decision::Expire, _)) => {
            InputState::Denied { reason: "no person answered in time".to_owned() }
        }
        Some((_, comment)) => {
            let comment = comment.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
            InputState::Denied { reason: format!("a person denied it{comment}") }
        }
    }
}

/// A message of a person needs no question.
fn message_questions(state: &TaskState, queued: &MessageQueued) -> Vec<Question> {
    if queued.is_from_person() {
        return Vec::new();
    }
    let agent = &state.created.agent;
    let text = text_of(&Message::User(queued.user_message(chrono::DateTime::UNIX_EPOCH)));
    let sender = &queued.provenance;
    vec![Question {
        tool_call_id: question_id(queued.id),
        until: queued.until,
        ..input_question(sender, agent, &text)
    }]
}

/// Whether `sender` may type `text`. The id is that of no question yet.
fn input_question(sender: &Provenance, agent: &str, text: &str) -> Question {
    let delivery = delivery(sender, agent);
    Question {
        tool_call_id: question_named(&format!("input:{delivery}")),
        tool_name: TERMINAL_INPUT,
        rule: Rule(format!("{TERMINAL_INPUT}(delivery={delivery})")),
        arguments: json!({ "delivery": delivery, "text": text }),
        reason: format!(
            "{} wants to type this into `{agent}`, a program without a sandbox.",
            described(sender)
        ),
        short: format!("may {} type into it?", described(sender)),
        until: None,
    }
}

/// The file of the agent must be one that a person made or allowed, and a person must start it.
fn start_questions(services: &Services, state: &TaskState) -> Vec<Question> {
    let created = &state.created;
    let agent = &created.agent;
    let program = created.runner.as_ref().map_or(Value::Null, |runner| runner.config.clone());
    let texts = state.conversation.own().iter().map(|message| text_of(message));
    let text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    let ask = |kind: &str, argument: &str, value: String, reason: String, short: String| {
        let mut arguments = json!({ "program": program, "text": text });
        arguments[argument] = json!(value);
        Question {
            tool_call_id: question_named(&format!("{kind}:{}", state.task_id)),
            tool_name: TERMINAL_START,
            rule: Rule(format!("{TERMINAL_START}({argument}={value})")),
            arguments,
            reason,
            short,
            until: None,
        }
    };
    let untrusted =
        services.deps.agents.as_ref().and_then(|agents| agents.unsandboxed(agent).err());
    let file = untrusted.map(|file| {
        let reason = format!(
            "the file {} came with the project and asks for a program without a sandbox.",
            visible(&file.path)
        );
        let value = agent_version(agent, &file.version);
        let short = "may this file of the project start a program without a sandbox?".to_owned();
        ask("file", "agent", value, reason, short)
    });
    let sender = &created.provenance;
    let start_id = question_named(&format!("start:{}", state.task_id));
    let start = (!sender.is_person()).then(|| {
        let who = described(sender);
        let reason = format!("{who} wants to start `{agent}`, a program without a sandbox.");
        let short = format!("may {who} start it?");
        ask("start", "delivery", delivery(sender, agent), reason, short)
    });
    // The person who allowed this start has seen its text. The author of a rule has not.
    let was_shown = state
        .approvals
        .get(&start_id)
        .and_then(|asked| asked.answer.as_ref())
        .is_some_and(|(decision, _)| decision.allows());
    let typed = (!sender.is_person() && !text.is_empty() && !was_shown).then(|| Question {
        tool_call_id: question_named(&format!("start-input:{}", state.task_id)),
        ..input_question(sender, agent, &text)
    });
    file.into_iter().chain(start).chain(typed).collect()
}

/// The rule that allows an agent file of a project to start a program, while its content is the same.
pub fn agent_start_rule(agent: &str, version: &str) -> Rule {
    Rule(format!("{TERMINAL_START}(agent={})", agent_version(agent, version)))
}

fn agent_version(agent: &str, version: &str) -> String {
    format!("{}@{}", plain(agent), plain(version))
}

/// Sender and receiver, as a rule names them.
fn delivery(sender: &Provenance, agent: &str) -> String {
    format!("{} to {}", plain(&sender.to_string()), plain(agent))
}

/// The text with everything but letters, digits and `.:_-` as `%XX`: no name can be read as a wildcard,
/// and no two names as one.
fn plain(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b".:_-".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The sender in a sentence.
fn described(sender: &Provenance) -> String {
    match sender {
        Provenance::Unknown => "a sender that was not recorded".to_owned(),
        Provenance::Owner => "the owner".to_owned(),
        Provenance::AdminKey(id) => format!("the admin key {}", visible(id)),
        Provenance::WriteKey(id) => format!("the write key {}", visible(id)),
        Provenance::Agent(name) => format!("the agent `{}`", visible(name)),
        Provenance::Event(source) => format!("the event source `{}`", visible(source)),
        Provenance::Webhook(source) => format!("the webhook `{}`", visible(source)),
        Provenance::Schedule(name) => format!("the schedule `{}`", visible(name)),
        Provenance::File(name) => format!("a request file of `{}`", visible(name)),
    }
}

/// Why a question cannot be asked, and what to do.
fn unattended(question: &Question) -> String {
    format!(
        "{} No person can be asked here. Allow it beforehand with the rule `{}`, or start it where you can \
         answer",
        question.reason, question.rule
    )
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => {
            let text = user.content.iter().filter_map(|block| match block {
                InputBlock::Text(text) => Some(text.text.as_str()),
                InputBlock::Image(_) => None,
            });
            text.collect::<Vec<_>>().join("\n")
        }
        Message::Assistant(_) | Message::ToolResult(_) => String::new(),
    }
}

//! The tools by which agents message each other: list peers, send messages and requests, answer
//! requests. They reach agents that the caller may call, and start none.

use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    AgentDefinition, AgentName, HandlingMode, InteractionId, RawJson, RenderClass, RenderMetadata,
    RequestSent, ResponseStatus, Salience, Tool, ToolCallBlock, ToolResult, Wake,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dispatch::call_agent;
use crate::dispatch::refusal::DispatchRefusal;
use crate::dispatch::supervisor_tools::read;
use crate::inbox::admission;
use crate::inbox::admission::{Origin, StartPolicy};
use crate::inbox::arrival::{Arrival, Receipt, Rejection};
use crate::inbox::derived_id;
use crate::inbox::open_requests::OutboundRequest;
use crate::inbox::requests;
use crate::inbox::start_agent;
use crate::inbox::wait_cycle;
use crate::orchestrator_error::OrchestratorError;
use crate::task::step::TaskRun;
use crate::task::step::flush::FlushOutcome;

/// Name of the tool that lists and finds agents.
pub(crate) const PEERS: &str = "peers";
const SEND_MESSAGE: &str = "send_message";
const SEND_REQUEST: &str = "send_request";
const SEND_RESPONSE: &str = "send_response";
const REPLY: &str = "reply";

/// Maximum number of agents in one list of peers. It says how many more there are.
const PEERS_SHOWN_MAX: usize = 100;

/// Maximum number of open requests of a task.
pub const REQUESTS_OPEN_MAX: usize = 64;

/// Default timeout of a request, in seconds.
pub const REQUEST_TIMEOUT_S_DEFAULT: u32 = 600;

/// Longest timeout of a request, in seconds: a week.
pub const REQUEST_TIMEOUT_S_MAX: u32 = 7 * 24 * 3600;

/// Maximum number of consecutive messages between agents without other input. It stops agents that
/// would answer each other forever.
pub const HOPS_MAX: u32 = 100;

/// Whether a tool messages peers.
pub(crate) fn is_peer_tool(name: &str) -> bool {
    [PEERS, SEND_MESSAGE, SEND_REQUEST].contains(&name)
}

/// Whether a tool answers requests.
pub(crate) fn is_reply_tool(name: &str) -> bool {
    [SEND_RESPONSE, REPLY].contains(&name)
}

/// The tools to message peers.
pub(crate) static PEER_TOOLS: LazyLock<Vec<Arc<Tool>>> = LazyLock::new(|| {
    let to = json!({ "type": "string", "description": "The agent's name." });
    let mode = json!({ "enum": ["queue", "steer"], "description":
        "`queue`: with its next turn. `steer`: within the turn it is at." });
    let salience = json!({ "enum": ["background", "normal", "important", "urgent"] });
    let each = [
        (
            PEERS,
            "Lists the agents you may talk to or call, and whether they are there.",
            json!({ "filter": { "type": "string", "description":
                "Only agents whose name or description has every one of these words." } }),
            json!([]),
        ),
        (
            SEND_MESSAGE,
            "Sends a message to an agent that is there. You get no answer to it as such.",
            json!({ "to": to, "text": { "type": "string" }, "mode": mode, "salience": salience,
                "progress": { "type": "boolean", "description":
                    "How far you are: replaces your progress that it has not read, and does not wake it." } }),
            json!(["to", "text"]),
        ),
        (
            SEND_REQUEST,
            "Asks an agent that is there for something. Its answer is the result of this call if you \
             `wait`, and arrives later otherwise. When there is none in time, the answer is `failed`.",
            json!({ "to": to,
                "intent": { "type": "string", "description": "What you ask for, in a word or two." },
                "params": { "description": "What comes with it, as JSON." },
                "timeout_s": { "type": "integer", "minimum": 1, "maximum": REQUEST_TIMEOUT_S_MAX },
                "wait": { "type": "boolean", "description": "Wait for the answer; true if absent." } }),
            json!(["to", "intent"]),
        ),
    ];
    each.into_iter().filter_map(tool).collect()
});

/// The tools to answer requests.
pub(crate) static REPLY_TOOLS: LazyLock<Vec<Arc<Tool>>> = LazyLock::new(|| {
    let request = json!({ "type": "string", "description": "The id in the label of the request." });
    let each = [
        (
            SEND_RESPONSE,
            "Answers a request that arrived. `accepted` says that the answer follows later; \
             `completed` and `failed` are the answer.",
            json!({ "request_id": request, "status": { "enum": ["accepted", "completed", "failed"] },
                "result": { "description": "What came of it, as JSON." } }),
            json!(["request_id", "status"]),
        ),
        (
            REPLY,
            "Answers the request that you were woken for with a text.",
            json!({ "text": { "type": "string" }, "request_id": request }),
            json!(["text"]),
        ),
    ];
    each.into_iter().filter_map(tool).collect()
});

/// A tool by its name, description, properties and required properties.
pub(crate) fn tool(
    (name, about, properties, required): (&str, &str, Value, Value),
) -> Option<Arc<Tool>> {
    let parameters = json!({ "type": "object", "properties": properties,
        "required": required, "additionalProperties": false });
    let parameters = RawJson::of(&parameters).ok()?;
    Some(Arc::new(Tool { name: name.to_owned(), description: about.to_owned(), parameters }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListPeers {
    #[serde(default)]
    filter: String,
}

/// Whether the name or the description of an agent has all these words, which are in lower case.
fn has_words(agent: &AgentDefinition, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let about = format!("{} {}", agent.name, agent.description).to_lowercase();
    words.iter().all(|word| about.contains(word.as_str()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendMessage {
    to: AgentName,
    text: String,
    #[serde(default)]
    mode: HandlingMode,
    salience: Option<Salience>,
    #[serde(default)]
    progress: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendRequest {
    to: AgentName,
    intent: String,
    #[serde(default)]
    params: Value,
    timeout_s: Option<NonZeroU32>,
    wait: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendResponse {
    request_id: InteractionId,
    status: ResponseStatus,
    #[serde(default)]
    result: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    text: String,
    request_id: Option<InteractionId>,
}

/// Result of a call of one of these tools. `None` when the call waits, or the task has ended.
type PeerToolResult = Result<Result<Option<ToolResult>, DispatchRefusal>, OrchestratorError>;

impl TaskRun {
    /// Answers a call of one of these tools.
    pub(crate) async fn call_peer_tool(
        &mut self,
        call: &ToolCallBlock,
    ) -> Result<(), OrchestratorError> {
        let talked = match call.name.as_str() {
            PEERS => self.peers(call).map(Some),
            SEND_MESSAGE => self.send_message(call).await?,
            SEND_REQUEST => self.send_request(call).await?,
            SEND_RESPONSE => self.send_response(call).await?,
            REPLY => self.send_reply(call).await?,
            _ => return Ok(()),
        };
        match talked {
            Ok(Some(result)) => self.add_result(call, result),
            Ok(None) => {}
            Err(refusal) => self.add_result(call, refusal.result()),
        }
        Ok(())
    }

    /// The id of the interaction that a call sends.
    pub(crate) fn interaction_id_of(&self, call: &ToolCallBlock) -> InteractionId {
        derived_id::of_call(&self.state.task_id, self.state.turns, call.id.as_str())
    }

    fn peers(&self, call: &ToolCallBlock) -> Result<ToolResult, DispatchRefusal> {
        let ListPeers { filter } = read(call)?;
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let created = &self.state.created;
        let agents = self.deps.agents.as_ref();
        let callable = agents.map(|agents| call_agent::callable(&**agents, &created.agents));
        let (mut shown, mut more) = (Vec::new(), 0_u32);
        for agent in callable.iter().flat_map(|callable| callable.iter()) {
            let name = agent.name.as_str();
            if name == created.agent || !has_words(agent, &words) {
                continue;
            }
            if shown.len() == PEERS_SHOWN_MAX {
                more += 1;
                continue;
            }
            let state = match self.services.residents.find(&agent.name) {
                Some(task_id) if self.services.slots.find(&task_id).is_some() => "at work",
                Some(_) => "idle",
                None => "not there",
            };
            shown.push(json!({ "name": name, "about": agent.description, "state": state }));
        }
        let mut listed = json!({ "you": created.agent, "peers": shown });
        if more > 0 {
            listed["more"] = json!(more);
            listed["hint"] = json!("give a `filter`: words of a name or a description");
        }
        Ok(ToolResult::text(listed.to_string()))
    }

    async fn send_message(&self, call: &ToolCallBlock) -> PeerToolResult {
        let arguments: SendMessage = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Err(refusal) = self.check_may_message(&arguments.to) {
            return Ok(Err(refusal));
        }
        // The id derives from the call: repeated after a crash, the message is queued once.
        let id = self.interaction_id_of(call);
        let key = Some(IdempotencyKey(format!("message:{id}")));
        let shown = |salience| RenderMetadata { class: RenderClass::PeerMessage, salience };
        let (render_metadata, wake) = if arguments.progress {
            (Some(RenderMetadata::PROGRESS), Wake::No)
        } else {
            (arguments.salience.map(shown), Wake::Yes)
        };
        let arrival = Arrival {
            mode: arguments.mode,
            render_metadata,
            wake,
            provenance: self.provenance(),
            ..Arrival::message(arguments.to, self.sender(), arguments.text)
        };
        let hops = self.state.hops.saturating_add(1);
        let origin = Origin { id, reply_to: None, key, starts: StartPolicy::OnlyStarted, hops };
        Ok(match admission::admit_as(&self.services, arrival, origin).await? {
            Receipt::Rejected(rejection) => Err(DispatchRefusal::Rejected(rejection)),
            Receipt::Accepted { .. } | Receipt::Deduplicated { .. } | Receipt::Filtered => {
                Ok(Some(ToolResult::text("queued")))
            }
        })
    }

    async fn send_request(&mut self, call: &ToolCallBlock) -> PeerToolResult {
        let arguments: SendRequest = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let id = self.interaction_id_of(call);
        let waits = arguments.wait.unwrap_or(true);
        if !self.state.outbound_requests.contains_key(&id) && self.state.response_to(id).is_none() {
            if let Err(refusal) = self.check_request(&arguments).await? {
                return Ok(Err(refusal));
            }
            let timeout_s = arguments.timeout_s.map_or(REQUEST_TIMEOUT_S_DEFAULT, NonZeroU32::get);
            let wait = chrono::TimeDelta::seconds(i64::from(timeout_s.min(REQUEST_TIMEOUT_S_MAX)));
            let until = self.services.deps.clock.now() + wait;
            let SendRequest { to, intent, params, .. } = arguments;
            if waits
                && let Err(refusal) =
                    wait_cycle::wait_for_answer(&self.services, &self.state, id, &to)
            {
                return Ok(Err(refusal));
            }
            let tool_call_id = call.id.clone();
            let boot_until = self.services.time.boot_until(until);
            self.push(RequestSent {
                tool_call_id,
                id,
                to,
                intent,
                params,
                until,
                boot_until,
                waits,
            });
            if self.flush().await? == FlushOutcome::Ended {
                return Ok(Ok(None));
            }
        }
        if let Some(sent) = self.state.outbound_requests.get(&id).cloned() {
            self.send_to_peer(id, &sent).await?;
        }
        if waits {
            return Ok(Ok(None));
        }
        let text = json!({ "request_id": id, "status": "sent" });
        Ok(Ok(Some(ToolResult::text(text.to_string()))))
    }

    /// Sends a request. A request that its peer rejects is answered as failed at once.
    async fn send_to_peer(
        &mut self,
        id: InteractionId,
        sent: &OutboundRequest,
    ) -> Result<(), OrchestratorError> {
        if let Err(rejection) = self.queue_request(id, sent).await? {
            let answer = self.rejection_reply(id, &rejection);
            requests::deliver_reply(&self.services, sent.to.as_str(), &answer).await?;
            self.read_arrivals().await?;
        }
        Ok(())
    }

    /// Checks a request before it is recorded.
    async fn check_request(
        &self,
        arguments: &SendRequest,
    ) -> Result<Result<(), DispatchRefusal>, OrchestratorError> {
        if let Err(refusal) = self.check_may_message(&arguments.to) {
            return Ok(Err(refusal));
        }
        if self.state.outbound_requests.len() >= REQUESTS_OPEN_MAX {
            return Ok(Err(DispatchRefusal::Requests { max: REQUESTS_OPEN_MAX }));
        }
        if let Err(rejection) = admission::check_request(
            &self.services,
            &arguments.to,
            &arguments.intent,
            &arguments.params,
        ) {
            return Ok(Err(DispatchRefusal::Rejected(rejection)));
        }
        let started = start_agent::started_task(
            &self.services,
            &arguments.to,
            StartPolicy::OnlyStarted,
            &self.provenance(),
        )
        .await?;
        Ok(started.map(drop).map_err(DispatchRefusal::Rejected))
    }

    fn check_may_message(&self, to: &AgentName) -> Result<(), DispatchRefusal> {
        let created = &self.state.created;
        let allowed = match &created.agents {
            antiphon_core::CallableAgents::Only(names) => names.clone(),
            antiphon_core::CallableAgents::Any => Vec::new(),
        };
        if !created.agents.allows(Some(to.as_str())) {
            return Err(DispatchRefusal::MayNotCall { agent: format!("`{to}`"), allowed });
        }
        if self.state.hops >= HOPS_MAX {
            return Err(DispatchRefusal::Hops { max: HOPS_MAX });
        }
        if to.as_str() == created.agent {
            let reason = "that is you: choose another agent".to_owned();
            return Err(DispatchRefusal::Arguments { reason });
        }
        Ok(())
    }

    async fn send_response(&mut self, call: &ToolCallBlock) -> PeerToolResult {
        match read::<SendResponse>(call) {
            Ok(SendResponse { request_id, status, result }) => {
                self.respond(request_id, status, result).await
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    async fn send_reply(&mut self, call: &ToolCallBlock) -> PeerToolResult {
        let Reply { text, request_id } = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let only = || {
            let mut open_requests = self.state.inbound_requests.keys();
            open_requests.next().copied().filter(|_| open_requests.next().is_none())
        };
        match request_id.or_else(only) {
            Some(id) => self.respond(id, ResponseStatus::Completed, Value::String(text)).await,
            None => {
                let reason =
                    "several or no requests are open: name one with `request_id`".to_owned();
                Ok(Err(DispatchRefusal::Arguments { reason }))
            }
        }
    }

    async fn respond(
        &mut self,
        id: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> PeerToolResult {
        let bytes = result.to_string().len();
        if bytes > crate::inbox::arrival::INTERACTION_BYTES_MAX {
            return Ok(Err(DispatchRefusal::Rejected(Rejection::TooLong { bytes })));
        }
        let sent = || Some(ToolResult::text("sent"));
        if self.state.inbound_requests.contains_key(&id) {
            self.reply(id, status, result);
            self.flush().await?;
            return Ok(Ok(sent()));
        }
        // After a crash between the reply and the result of this call.
        let given = self.services.deps.journal.reply(id).await?;
        if given.is_some_and(|given| given.status == status && given.result == result) {
            return Ok(Ok(sent()));
        }
        let reason = format!("there is no open request {id}: it was answered, or never arrived");
        Ok(Err(DispatchRefusal::Arguments { reason }))
    }
}

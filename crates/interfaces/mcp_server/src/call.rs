//! `tools/call` of an agent: a task is started, or found again, and watched until it ends or waits for a person.

use antiphon_core::{Approval, ApprovalId, EventBody, StatusChanged, TaskId, WaitingFor};
use antiphon_interface_transport::KEY_BYTES_MAX;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, ElicitResult, JsonObject, ProtocolVersion};
use rmcp::service::{RequestContext, ServiceError};
use serde_json::Value;
use tokio::time::Instant;

use crate::agent_offer::AgentOffer;
use crate::approval::{self, Answer};
use crate::backend::{McpRequest, NewCall};
use crate::failure::Failure;
use crate::feed::{Change, Feed};
use crate::progress::Progress;
use crate::task_view::TaskView;

/// Field of `_meta` that makes a repeated call the same task.
const KEY: &str = "antiphon/idempotencyKey";

/// Arguments of an agent's tool.
struct Arguments {
    message: String,
    session: Option<String>,
}

/// Starts the task of a call, or finds the task of the same call that was sent before.
pub(crate) async fn start(
    request: &McpRequest,
    agent: &AgentOffer,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<(TaskId, Feed), Failure> {
    let Arguments { message, session } = Arguments::parse(params.arguments.as_ref())?;
    let key = idempotency_key(context)?;
    let session = match session {
        None => None,
        Some(session_id) => {
            let last = request.last_task(&session_id).await?;
            // With a key it may be the task of this call.
            if key.is_none() && !last.status.is_terminal() {
                let message = format!(
                    "the last task of this session has not ended: wait for {} with `task_wait`, or send it a \
                     message with `task_send`",
                    last.task_id
                );
                return Err(Failure::new(antiphon_core::ErrorCode::Conflict, message));
            }
            Some((last.session_id, last.task_id))
        }
    };
    request.start(NewCall { agent, message, session, key }).await
}

impl Arguments {
    fn parse(arguments: Option<&JsonObject>) -> Result<Self, Failure> {
        let mut given = arguments.cloned().unwrap_or_default();
        let mut text = |name: &str| match given.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::invalid(format!("`{name}`: expected a string"))),
        };
        let (message, session) = (text("message")?, text("session")?);
        if let Some(unknown) = given.keys().next() {
            let message =
                format!("`{unknown}`: there is no such argument: use `message` and `session`");
            return Err(Failure::invalid(message));
        }
        let message = message.filter(|message| !message.trim().is_empty());
        let message = message.ok_or_else(|| {
            Failure::invalid("`message`: it is missing or blank: say what the agent is to do")
        })?;
        Ok(Self { message, session: session.filter(|session| !session.is_empty()) })
    }
}

fn idempotency_key(context: &RequestContext<RoleServer>) -> Result<Option<String>, Failure> {
    match context.meta.0.0.get(KEY) {
        None => Ok(None),
        Some(Value::String(key)) if !key.is_empty() && key.len() <= KEY_BYTES_MAX => {
            Ok(Some(key.clone()))
        }
        Some(_) => {
            let message = format!("`_meta.{KEY}`: expected a string of 1 to {KEY_BYTES_MAX} bytes");
            Err(Failure::invalid(message))
        }
    }
}

/// What a cancellation of the request does to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCancel {
    /// The call is the task: both end.
    CancelTask,
    /// The call only waits: the task goes on.
    Leave,
}

/// A request that waits for a task.
pub(crate) struct Wait<'a> {
    request: &'a McpRequest,
    context: &'a RequestContext<RoleServer>,
    task_id: TaskId,
    feed: Feed,
    progress: Progress,
    on_cancel: OnCancel,
    /// When to return a task that still runs.
    until: Option<Instant>,
    question: Option<Question>,
    /// The approval that the client's person decided last.
    decided: Option<ApprovalId>,
}

/// A question that the client's person has not answered.
struct Question {
    approval: Approval,
    answer: BoxFuture<'static, Result<ElicitResult, ServiceError>>,
}

impl<'a> Wait<'a> {
    /// A wait for a task, whose changes from before its state is read are in `feed`.
    pub(crate) fn new(
        request: &'a McpRequest,
        context: &'a RequestContext<RoleServer>,
        task_id: TaskId,
        feed: Feed,
        on_cancel: OnCancel,
    ) -> Self {
        let progress = Progress::of(context);
        Self {
            request,
            context,
            task_id,
            feed,
            progress,
            on_cancel,
            until: None,
            question: None,
            decided: None,
        }
    }

    /// The same, which returns a task that still runs then.
    pub(crate) fn until(mut self, until: Option<Instant>) -> Self {
        self.until = until;
        self
    }

    /// The task once it has ended, waits for a person who was not asked here, or the time is over. Asks the client's
    /// person about approvals if that is possible meanwhile.
    pub(crate) async fn run(mut self) -> Result<TaskView, Failure> {
        self.progress.report(&format!("task {}", self.task_id)).await;
        let view = read_view(self.request, &self.task_id).await?;
        if view.summary.status.is_terminal() || rests(view.summary.waiting_for) {
            return Ok(view);
        }
        if let Some(asked) = view.approval
            && !self.ask(asked)
        {
            return read_view(self.request, &self.task_id).await;
        }
        while !self.advance().await? {}
        read_view(self.request, &self.task_id).await
    }

    /// Waits for one change. Returns whether the wait is over.
    async fn advance(&mut self) -> Result<bool, Failure> {
        tokio::select! {
            biased;
            () = self.request.ending() => {
                self.request.interrupt(&self.task_id).await;
                let message = format!("the server stops: call `task_wait` with {} later", self.task_id);
                Err(Failure::new(antiphon_core::ErrorCode::ServiceUnavailable, message))
            }
            () = self.context.ct.cancelled() => {
                if self.on_cancel == OnCancel::CancelTask {
                    cancel(self.request, &self.task_id).await;
                }
                Ok(true)
            }
            () = reached(self.until) => Ok(true),
            answer = answered(&mut self.question) => self.decide(answer).await,
            change = self.feed.next() => match change? {
                Change::Event(event) => {
                    self.progress.event(&event).await;
                    let EventBody::StatusChanged(change) = &event.body else { return Ok(false) };
                    Ok(is_end(change))
                }
                Change::Asked(approval) => Ok(!self.ask(*approval)),
                Change::Decided(approval_id) => {
                    self.withdraw(&approval_id);
                    // Others may have been needed meanwhile.
                    let reader = self.request.reader().await?;
                    let next = approval::pending(&reader, &self.task_id).await?;
                    Ok(next.is_some_and(|next| !self.ask(next)))
                }
            },
        }
    }

    /// Asks the client's person. False when that is not possible in this request.
    fn ask(&mut self, approval: Approval) -> bool {
        // The feed may report it once more if it looked just before the decision.
        if self.decided.as_ref() == Some(&approval.approval_id) {
            return true;
        }
        if let Some(question) = &self.question {
            // One at a time: the feed reports the next one when this one is decided.
            return question.approval.approval_id == approval.approval_id || self.can_ask();
        }
        let Ok(params) = approval::question(&approval) else { return false };
        if !self.can_ask() {
            return false;
        }
        let peer = self.context.peer.clone();
        let answer = async move { peer.create_elicitation(params).await }.boxed();
        self.question = Some(Question { approval, answer });
        true
    }

    /// Whether this request can ask while it waits. The newer generation asks with a result instead.
    fn can_ask(&self) -> bool {
        let is_new = self
            .context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        !is_new && may_ask(self.request, self.context)
    }

    /// Records what the person answered. Returns whether the wait is over, because the approval stays pending.
    async fn decide(
        &mut self,
        answer: Result<ElicitResult, ServiceError>,
    ) -> Result<bool, Failure> {
        let Some(Question { approval, .. }) = self.question.take() else { return Ok(false) };
        let answer = match answer {
            Ok(answer) => approval::answer(&approval, answer),
            Err(error) => {
                tracing::debug!(%error, "the client did not ask its person");
                return Ok(true);
            }
        };
        match answer {
            Ok(Answer::Decided(reply)) => {
                let decided = self.request.decide(&approval.approval_id, reply).await;
                self.decided = Some(approval.approval_id);
                if let Err(error) = decided {
                    // Another terminal may have decided.
                    tracing::debug!(error = error.message, "the decision was not recorded");
                }
                Ok(false)
            }
            Ok(Answer::Dismissed) => Ok(true),
            Err(error) => {
                tracing::warn!(error = error.message, "an answer to an approval was refused");
                Ok(true)
            }
        }
    }

    fn withdraw(&mut self, approval_id: &ApprovalId) {
        let is_over = |question: &mut Question| question.approval.approval_id == *approval_id;
        drop(self.question.take_if(is_over));
    }
}

// These take no `Wait`: it cannot be shared between threads, and their futures move between them.
async fn read_view(request: &McpRequest, task_id: &TaskId) -> Result<TaskView, Failure> {
    TaskView::read(&request.reader().await?, task_id).await
}

async fn cancel(request: &McpRequest, task_id: &TaskId) {
    // It may have ended just now.
    if let Err(error) = request.cancel(task_id).await {
        tracing::debug!(error = error.message, "a task was not canceled");
    }
}

fn is_end(change: &StatusChanged) -> bool {
    change.status.is_terminal() || rests(change.waiting_for)
}

/// Whether a task rests until a person or a client acts who was not asked here.
fn rests(waiting_for: Option<WaitingFor>) -> bool {
    match waiting_for {
        Some(WaitingFor::Resume | WaitingFor::ToolResult) => true,
        Some(
            WaitingFor::Approval
            | WaitingFor::Budget
            | WaitingFor::Model
            | WaitingFor::Peer
            | WaitingFor::Storage,
        )
        | None => false,
    }
}

/// Whether the client shows questions to a person who may decide.
pub(crate) fn may_ask(request: &McpRequest, context: &RequestContext<RoleServer>) -> bool {
    request.decider().is_some() && approval::can_ask(context.client_capabilities().as_ref())
}

async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn answered(question: &mut Option<Question>) -> Result<ElicitResult, ServiceError> {
    match question {
        Some(question) => (&mut question.answer).await,
        None => std::future::pending().await,
    }
}

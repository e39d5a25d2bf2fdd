//! Calls the model and records its answer. An outage of the model makes the task wait.

use std::sync::Arc;

use antiphon_core::{
    AgentState, AssistantMessage, MessageAppended, MessageStream, ModelOptions, OutageWait,
    ProviderError, Purpose, Request, StatusChanged, StreamError, StreamEvent, TaskAccess,
    TaskStatus, Usage, UsageRecorded, WaitingFor,
};
use serde_json::json;

use crate::orchestrator_error::OrchestratorError;
use crate::task::outage::{self, AnswerShown, Failure};
use crate::task::step::TaskRun;
use crate::task::step::compact;
use crate::task::step::flush::FlushOutcome;
use crate::task::step::output;
use crate::task::step::person_tools::PLAN_PROMPT;
use crate::watch::delta::{AnswerDelta, Delta, DeltaEvent};
use crate::watch::live_answer::LiveAnswer;

/// Code of an answer that ended because the process stops.
const STOPPING: &str = "stopping";

/// Whether watchers see the answer as it streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Live,
    Hidden,
}

impl TaskRun {
    /// Performs one model call.
    pub(crate) async fn ask_model(&mut self) -> Result<(), OrchestratorError> {
        if self.state.status != TaskStatus::Running {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
        self.advance_to(AgentState::Thinking);
        // The first request of a task may leave while the creation, which says all of this, is written.
        let is_first = self.unwritten.is_empty() && !self.running.is_recorded();
        if !is_first && self.flush().await? != FlushOutcome::Written {
            return Ok(());
        }
        let request = self.request();
        match self.stream_answer(request, Visibility::Live).await {
            Ok(answer) => {
                let refused = is_unusable(&answer).then(|| answer.raw_stop_reason.clone());
                self.record_answer(answer);
                if let Some(why) = refused {
                    let error = format!("the model stopped without an answer: {why}");
                    let detail = json!({ "code": "refused", "error": error });
                    self.end(TaskStatus::Failed, Some(detail));
                }
            }
            Err(FailedAnswer { partial, shown, error: StreamError::Canceled }) => {
                let stops = self.services.background.stop.is_cancelled();
                if stops && !self.running.cancel.is_cancelled() {
                    self.supersede_at_stop(partial, shown);
                } else {
                    self.record_partial(partial);
                }
            }
            Err(FailedAnswer {
                error: StreamError::Provider(ProviderError::ContextOverflow { .. }),
                ..
            }) if compact::first_kept(&self.state, self.reduced_tokens_max()).is_some() => {
                self.compact(self.reduced_tokens_max()).await?;
            }
            Err(failed) => self.model_failed(failed, Purpose::Superseded),
        }
        Ok(())
    }

    /// Waits for the model if it may answer later; otherwise fails the task.
    pub(super) fn model_failed(&mut self, failed: FailedAnswer, purpose: Purpose) {
        match outage::is_outage(&failed.error) {
            Some(error) => {
                let deps = &self.services.deps;
                let (now, random) = (deps.clock.now(), deps.ids.next());
                let failure = Failure {
                    code: error.code(),
                    error: error.to_string(),
                    retry_after: error.retry_after(),
                    shown: failed.shown,
                };
                let wait = self.state.outage.wait_after(failure, now, random);
                self.wait_for_model(failed.partial, &wait, purpose);
            }
            None => self.fail_on_model(failed),
        }
    }

    /// Suspends the task until the next attempt. What was shown of the answer is superseded.
    pub(crate) fn wait_for_model(
        &mut self,
        partial: Option<AssistantMessage>,
        wait: &OutageWait,
        purpose: Purpose,
    ) {
        let (code, attempt) = (&wait.code, wait.attempt);
        tracing::warn!(task.id = %self.state.task_id, code, attempt, "a task waits for its model");
        if wait.superseded {
            self.announce_superseded(&wait.code, &wait.error);
        }
        let shown = if wait.superseded { AnswerShown::Some } else { AnswerShown::Nothing };
        self.record_superseded(partial, shown, purpose);
        self.push(wait.status(WaitingFor::Model));
    }

    /// The orchestrator stops in the middle of an answer: the next process asks for it again. What was shown of it is
    /// superseded, and its tokens are not forgotten.
    fn supersede_at_stop(&mut self, partial: Option<AssistantMessage>, shown: AnswerShown) {
        let is_written = partial.as_ref().is_some_and(|partial| !partial.content.is_empty());
        if shown == AnswerShown::Some && is_written {
            self.announce_superseded(
                STOPPING,
                "the process stops; the next one asks the model again",
            );
            self.record_superseded(partial, shown, Purpose::Superseded);
        }
    }

    fn announce_superseded(&self, code: &str, error: &str) {
        let (code, error) = (code.to_owned(), error.to_owned());
        let event = DeltaEvent::State(AnswerDelta::AnswerSuperseded { code, error });
        self.services.deltas.publish(self.delta(event));
    }

    /// Records an answer that the model is asked for again, as far as it was shown, and what it cost.
    fn record_superseded(
        &mut self,
        partial: Option<AssistantMessage>,
        shown: AnswerShown,
        purpose: Purpose,
    ) {
        let Some(partial) = partial else { return };
        let (model, usage) = (partial.model.clone(), partial.usage);
        if shown == AnswerShown::Some && !partial.content.is_empty() {
            self.push(MessageAppended::superseded(partial));
        }
        // Tokens that were shown and not counted are recorded as none: their cost is unknown.
        if shown == AnswerShown::Some || usage != Usage::default() {
            self.record_usage(model.as_ref(), usage, Some(purpose));
        }
    }

    /// Ends the wait for the model: it answers. Watchers learn that before the answer.
    async fn end_model_wait(&mut self) {
        if self.state.waiting_for == Some(WaitingFor::Model) {
            self.push(StatusChanged::new(TaskStatus::Running));
            if let Err(error) = self.flush().await {
                // Written with the answer, or reported then.
                tracing::warn!(task.id = %self.state.task_id, %error, "the end of a wait is written later");
            }
        }
    }

    /// Fails the task because the model did not answer.
    fn fail_on_model(&mut self, FailedAnswer { partial, error, .. }: FailedAnswer) {
        self.record_partial(partial);
        let code = match &error {
            StreamError::Provider(error) => error.code(),
            StreamError::Canceled | StreamError::Closed => "interrupted",
        };
        let detail = json!({ "code": code, "error": error.to_string() });
        self.end(TaskStatus::Failed, Some(detail));
    }

    /// The request to the model. Its beginning is the same in every step, so that the provider can
    /// cache it.
    pub(super) fn request(&self) -> Request {
        let created = &self.state.created;
        let mut tools = self.offered();
        tools.extend(created.output_schema.as_ref().and_then(output::final_tool).map(Arc::new));
        tools.extend(self.offered_last());
        let options = created.model_options.clone();
        let ModelOptions { temperature, tool_choice, thinking_tokens, sampling } = options;
        Request {
            model: created.model.as_ref().map(|m| m.model().to_owned()).unwrap_or_default(),
            system_prompt: self.system_prompt(),
            messages: self.state.conversation.view(),
            tools,
            tool_choice,
            max_tokens: created.limits.answer_tokens_max,
            thinking_tokens,
            temperature,
            sampling,
            is_urgent: self.state.outage.is_hurried(),
        }
    }

    /// The recorded system prompt, and what a task that plans first has to know.
    fn system_prompt(&self) -> String {
        let created = &self.state.created;
        match created.access {
            TaskAccess::PlanFirst => format!("{}\n\n{PLAN_PROMPT}", created.system_prompt),
            TaskAccess::Permitted | TaskAccess::ReadOnly | TaskAccess::CompactOnly => {
                created.system_prompt.clone()
            }
        }
    }

    /// Streams one answer of the model.
    pub(super) async fn stream_answer(
        &mut self,
        request: Request,
        visibility: Visibility,
    ) -> Result<AssistantMessage, FailedAnswer> {
        let refused = |message: String| FailedAnswer {
            partial: None,
            shown: AnswerShown::Nothing,
            error: ProviderError::InvalidRequest { message }.into(),
        };
        let _call = self.services.background.model_calls.token();
        let provider = self.deps.provider_of(&self.state.created).map_err(refused)?;
        let now = self.services.deps.clock.now();
        let mut stream = MessageStream::open(&*provider, request, self.interruption(), now);
        let (deltas, root) = (&self.services.deltas, self.root());
        let _live = (visibility == Visibility::Live)
            .then(|| LiveAnswer::begin(deltas, &self.state.task_id, root));
        let (mut text_bytes, mut shown) = (0, AnswerShown::Nothing);
        let after = self.state.seq;
        loop {
            let next = stream.next().await;
            // Nothing of an answer is seen before the journal has the task.
            self.running.recorded().await;
            match next {
                Ok(Some(event)) => {
                    self.running.heartbeat();
                    self.end_model_wait().await;
                    if visibility == Visibility::Live {
                        shown = AnswerShown::Some;
                        let text_at = text_bytes;
                        if let StreamEvent::TextDelta { delta } = &event {
                            text_bytes += delta.len();
                        }
                        let mut delta = self.delta(DeltaEvent::Answer(event)).after_text(text_at);
                        delta.after = after;
                        self.services.deltas.publish(delta);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    return Err(FailedAnswer { partial: stream.message().ok(), shown, error });
                }
            }
        }
        self.end_model_wait().await;
        stream.message().map_err(|error| refused(error.to_string()))
    }

    fn delta(&self, event: DeltaEvent) -> Delta {
        Delta::new(self.state.task_id.clone(), self.state.turns, self.state.seq, event)
    }

    fn record_answer(&mut self, answer: AssistantMessage) {
        let (model, usage) = (answer.model.clone(), answer.usage);
        self.push(MessageAppended::new(answer));
        self.record_usage(model.as_ref(), usage, None);
        self.advance_to(AgentState::ToolCall);
    }

    pub(super) fn record_usage(
        &mut self,
        model: Option<&antiphon_core::ModelRef>,
        usage: Usage,
        purpose: Option<Purpose>,
    ) {
        let model = model.or(self.state.created.model.as_ref());
        let model = model.map(ToString::to_string).unwrap_or_default();
        self.push(UsageRecorded { model, usage, purpose });
    }

    /// Records an interrupted answer and its cost. Of an answer that was canceled the model reads the
    /// text in the next turn.
    fn record_partial(&mut self, partial: Option<AssistantMessage>) {
        let Some(partial) = partial else { return };
        let (model, usage) = (partial.model.clone(), partial.usage);
        let is_shown = !partial.content.is_empty();
        if is_shown {
            self.push(MessageAppended::new(partial));
        }
        if usage != Usage::default() {
            self.record_usage(model.as_ref(), usage, None);
        } else if is_shown {
            // Tokens that were shown and not counted are recorded as none: their cost is unknown.
            self.record_usage(model.as_ref(), usage, Some(Purpose::Superseded));
        }
    }
}

/// Whether the provider ended the stream without a usable answer: filtered or malformed.
fn is_unusable(answer: &AssistantMessage) -> bool {
    !answer.is_complete()
}

/// An answer that ended with an error.
pub(super) struct FailedAnswer {
    pub(super) partial: Option<AssistantMessage>,
    pub(super) shown: AnswerShown,
    pub(super) error: StreamError,
}

//! Calls the model and records its answer.

use antiphon_core::{
    AgentState, AssistantMessage, Compacted, MessageAppended, MessageStream, ModelOptions,
    ProviderError, Purpose, Request, StatusChanged, StopReason, StreamError, StreamEvent,
    TaskStatus, ToolChoice, Usage, UsageRecorded, UserMessage,
};
use serde_json::json;

use crate::orchestrator_error::OrchestratorError;
use crate::task::step::TaskRun;
use crate::task::step::compact;
use crate::task::step::flush::FlushOutcome;
use crate::task::step::output;
use crate::watch::delta::{Delta, DeltaEvent};

/// Whether watchers see the answer as it streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visibility {
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
        if self.flush().await? != FlushOutcome::Written {
            return Ok(());
        }
        match self.stream_answer(self.request(), Visibility::Live).await {
            Ok(answer) => {
                let refused = is_unusable(&answer).then(|| answer.raw_stop_reason.clone());
                self.record_answer(answer);
                if let Some(why) = refused {
                    let error = format!("the model stopped without an answer: {why}");
                    let detail = json!({ "code": "refused", "error": error });
                    self.end(TaskStatus::Failed, Some(detail));
                }
            }
            Err(FailedAnswer { partial, error: StreamError::Canceled }) => {
                // During shutdown nothing is recorded: the model is called again later.
                if !self.services.background.stop.is_cancelled()
                    || self.running.cancel.is_cancelled()
                {
                    self.record_partial(partial);
                }
            }
            Err(FailedAnswer {
                error: StreamError::Provider(ProviderError::ContextOverflow { .. }),
                ..
            }) if compact::cut(&self.state, self.less_room()).is_some() => {
                self.compact(self.less_room()).await?;
            }
            Err(broken) => self.fail_on_model(broken),
        }
        Ok(())
    }

    /// Fails the task because the model did not answer.
    fn fail_on_model(&mut self, FailedAnswer { partial, error }: FailedAnswer) {
        self.record_partial(partial);
        let code = match &error {
            StreamError::Provider(error) => error.code(),
            StreamError::Canceled | StreamError::Closed => "interrupted",
        };
        let detail = json!({ "code": code, "error": error.to_string() });
        self.end(TaskStatus::Failed, Some(detail));
    }

    /// Has the model summarize the older part of the conversation. When that part is too long even for
    /// a summary, it is left out: a conversation that does not fit cannot continue.
    pub(crate) async fn compact(&mut self, room: u64) -> Result<(), OrchestratorError> {
        let Some(cut) = compact::cut(&self.state, room) else { return Ok(()) };
        if self.services.budget.model_refusal(&self.state.created).is_some() {
            // The next decision suspends the task.
            return Ok(());
        }
        // What the model summarizes is durable before the model reads it.
        if self.flush().await? != FlushOutcome::Written {
            return Ok(());
        }
        let now = self.services.deps.clock.now();
        let mut request = self.request();
        // Messages that stay need no summary.
        request.messages = self.state.conversation.view_until(cut);
        request.messages.push(UserMessage::text(compact::INSTRUCTION, now).into());
        request.tool_choice = ToolChoice::None;
        let summary = match self.stream_answer(request, Visibility::Hidden).await {
            Ok(answer) => {
                self.record_usage(answer.model.as_ref(), answer.usage, Some(Purpose::Compaction));
                answer.text()
            }
            Err(FailedAnswer { partial, error: StreamError::Canceled }) => {
                let paid = partial.filter(|partial| partial.usage != Usage::default());
                if let Some(partial) = paid {
                    self.record_usage(
                        partial.model.as_ref(),
                        partial.usage,
                        Some(Purpose::Compaction),
                    );
                }
                return Ok(());
            }
            // Too long for a summary as well: the older messages are left out.
            Err(FailedAnswer {
                error: StreamError::Provider(ProviderError::ContextOverflow { .. }),
                ..
            }) => String::new(),
            Err(broken) => {
                self.fail_on_model(broken);
                return Ok(());
            }
        };
        let summary =
            if summary.trim().is_empty() { compact::without_summary(&self.state) } else { summary };
        let summary = compact::replacement(&self.state, cut, &summary);
        self.push(Compacted { summary, kept_from: cut as u64 });
        Ok(())
    }

    fn less_room(&self) -> u64 {
        compact::less_room(&self.state, self.window_tokens())
    }

    /// The request to the model. Its beginning is the same in every step, so that the provider can
    /// cache it.
    fn request(&self) -> Request {
        let created = &self.state.created;
        let mut tools = self.offered();
        tools.extend(created.output_schema.as_ref().and_then(output::final_tool));
        let ModelOptions { temperature, tool_choice } = created.model_options.clone();
        Request {
            model: created.model.as_ref().map(|m| m.model().to_owned()).unwrap_or_default(),
            system_prompt: created.system_prompt.clone(),
            messages: self.state.conversation.view(),
            tools,
            tool_choice,
            max_tokens: created.limits.answer_tokens_max,
            temperature,
            ..Request::default()
        }
    }

    /// Streams one answer of the model.
    async fn stream_answer(
        &self,
        request: Request,
        visibility: Visibility,
    ) -> Result<AssistantMessage, FailedAnswer> {
        let refused = |message: String| FailedAnswer {
            partial: None,
            error: ProviderError::InvalidRequest { message }.into(),
        };
        let provider = self.services.deps.provider_of(&self.state.created).map_err(refused)?;
        let now = self.services.deps.clock.now();
        let mut stream = MessageStream::open(&*provider, request, self.interruption(), now);
        let mut text_bytes = 0;
        loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    self.running.heartbeat();
                    if visibility == Visibility::Live {
                        let (task_id, turn) = (self.state.task_id.clone(), self.state.turns);
                        let text_at = text_bytes;
                        if let StreamEvent::TextDelta { delta } = &event {
                            text_bytes += delta.len();
                        }
                        let delta = Delta::new(task_id, turn, DeltaEvent::Answer(event));
                        self.services.deltas.publish(delta.after_text(text_at));
                    }
                }
                Ok(None) => break,
                Err(error) => return Err(FailedAnswer { partial: stream.message().ok(), error }),
            }
        }
        stream.message().map_err(|error| refused(error.to_string()))
    }

    fn record_answer(&mut self, answer: AssistantMessage) {
        let (model, usage) = (answer.model.clone(), answer.usage);
        self.push(MessageAppended::new(answer));
        self.record_usage(model.as_ref(), usage, None);
        self.advance_to(AgentState::ToolCall);
    }

    fn record_usage(
        &mut self,
        model: Option<&antiphon_core::ModelRef>,
        usage: Usage,
        purpose: Option<Purpose>,
    ) {
        let model = model.or(self.state.created.model.as_ref());
        let model = model.map(ToString::to_string).unwrap_or_default();
        self.push(UsageRecorded { model, usage, purpose });
    }

    /// Records an incomplete answer and its cost. It is never sent to a model again.
    fn record_partial(&mut self, partial: Option<AssistantMessage>) {
        let Some(partial) = partial else { return };
        let (model, usage) = (partial.model.clone(), partial.usage);
        if !partial.content.is_empty() {
            self.push(MessageAppended::new(partial));
        }
        if usage != Usage::default() {
            self.record_usage(model.as_ref(), usage, None);
        }
    }
}

/// Whether the provider ended the stream without a usable answer: filtered or malformed.
fn is_unusable(answer: &AssistantMessage) -> bool {
    matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

/// An answer that ended with an error.
struct FailedAnswer {
    partial: Option<AssistantMessage>,
    error: StreamError,
}

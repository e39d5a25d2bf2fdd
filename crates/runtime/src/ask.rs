//! Asking the model.

use antiphon_core::{
    AgentState, AssistantMessage, Compacted, MessageAppended, MessageStream, ModelOptions,
    ProviderError, Purpose, Request, StatusChanged, StopReason, StreamError, StreamEvent,
    TaskStatus, ToolChoice, Usage, UsageRecorded, UserMessage,
};
use serde_json::json;

use crate::compact;
use crate::delta::{Delta, DeltaEvent};
use crate::flush::Flushed;
use crate::lap::Work;
use crate::orchestrator_error::OrchestratorError;
use crate::output;

/// Whether somebody may watch an answer as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
}

impl Work {
    /// One turn of the model.
    pub(crate) async fn ask(&mut self) -> Result<(), OrchestratorError> {
        if self.state.status != TaskStatus::Running {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
        self.walk_to(AgentState::Thinking);
        if self.flush().await? != Flushed::Kept {
            return Ok(());
        }
        match self.answer(self.request(), Shown::Yes).await {
            Ok(answer) => {
                let refused = broke_off(&answer).then(|| answer.raw_stop_reason.clone());
                self.take_answer(answer);
                if let Some(why) = refused {
                    let error = format!("the model stopped without an answer: {why}");
                    let detail = json!({ "code": "refused", "error": error });
                    self.end(TaskStatus::Failed, Some(detail));
                }
            }
            Err(Broken { partial, error: StreamError::Canceled }) => {
                // At rest, nothing is said: the model is asked again another time.
                if !self.inner.stop.is_cancelled() || self.running.cancel.is_cancelled() {
                    self.keep(partial);
                }
            }
            Err(Broken {
                error: StreamError::Provider(ProviderError::ContextOverflow { .. }),
                ..
            }) if compact::cut(&self.state, self.less_room()).is_some() => {
                self.compact(self.less_room()).await?;
            }
            Err(broken) => self.fail(broken),
        }
        Ok(())
    }

    /// Gives up because the model does not answer.
    fn fail(&mut self, Broken { partial, error }: Broken) {
        self.keep(partial);
        let code = match &error {
            StreamError::Provider(error) => error.code(),
            StreamError::Canceled | StreamError::Closed => "interrupted",
        };
        let detail = json!({ "code": code, "error": error.to_string() });
        self.end(TaskStatus::Failed, Some(detail));
    }

    /// Has the older part of the conversation summed up. If that is too long even for a summary, it
    /// is left out all the same: a conversation that does not fit cannot go on.
    pub(crate) async fn compact(&mut self, room: u64) -> Result<(), OrchestratorError> {
        let Some(cut) = compact::cut(&self.state, room) else { return Ok(()) };
        if self.inner.kept_from_model(&self.state.created).is_some() {
            // Decided again: it waits.
            return Ok(());
        }
        // What the model is to sum up is durable before it reads it.
        if self.flush().await? != Flushed::Kept {
            return Ok(());
        }
        let now = self.inner.world.clock.now();
        let mut request = self.request();
        // What stays as it is need not be summed up.
        request.messages = self.state.conversation.view_until(cut);
        request.messages.push(UserMessage::text(compact::INSTRUCTION, now).into());
        request.tool_choice = ToolChoice::None;
        let summary = match self.answer(request, Shown::No).await {
            Ok(answer) => {
                self.pay(answer.model.as_ref(), answer.usage, Some(Purpose::Compaction));
                answer.text()
            }
            Err(Broken { partial, error: StreamError::Canceled }) => {
                let paid = partial.filter(|partial| partial.usage != Usage::default());
                if let Some(partial) = paid {
                    self.pay(partial.model.as_ref(), partial.usage, Some(Purpose::Compaction));
                }
                return Ok(());
            }
            // Even that is too long: what was said is left out.
            Err(Broken {
                error: StreamError::Provider(ProviderError::ContextOverflow { .. }),
                ..
            }) => String::new(),
            Err(broken) => {
                self.fail(broken);
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

    /// What the model is asked: always the same words in front, so that its provider can keep
    /// them at hand.
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

    /// One answer of the model.
    async fn answer(&self, request: Request, shown: Shown) -> Result<AssistantMessage, Broken> {
        let refused = |message: String| Broken {
            partial: None,
            error: ProviderError::InvalidRequest { message }.into(),
        };
        let provider = self.inner.provider(&self.state).map_err(refused)?;
        let now = self.inner.world.clock.now();
        let mut stream = MessageStream::open(&*provider, request, self.interruption(), now);
        let mut text_bytes = 0;
        loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    self.running.beat();
                    if shown == Shown::Yes {
                        let (task_id, turn) = (self.state.task_id.clone(), self.state.turns);
                        let text_at = text_bytes;
                        if let StreamEvent::TextDelta { delta } = &event {
                            text_bytes += delta.len();
                        }
                        let delta = Delta::new(task_id, turn, DeltaEvent::Answer(event));
                        self.inner.deltas.show(delta.behind(text_at));
                    }
                }
                Ok(None) => break,
                Err(error) => return Err(Broken { partial: stream.message().ok(), error }),
            }
        }
        stream.message().map_err(|error| refused(error.to_string()))
    }

    fn take_answer(&mut self, answer: AssistantMessage) {
        let (model, usage) = (answer.model.clone(), answer.usage);
        self.push(MessageAppended::new(answer));
        self.pay(model.as_ref(), usage, None);
        self.walk_to(AgentState::ToolCall);
    }

    fn pay(
        &mut self,
        model: Option<&antiphon_core::ModelRef>,
        usage: Usage,
        purpose: Option<Purpose>,
    ) {
        let model = model.or(self.state.created.model.as_ref());
        let model = model.map(ToString::to_string).unwrap_or_default();
        self.push(UsageRecorded { model, usage, purpose });
    }

    /// Keeps what there was of an answer that broke off, and what it cost. It is never sent to a
    /// model again.
    fn keep(&mut self, partial: Option<AssistantMessage>) {
        let Some(partial) = partial else { return };
        let (model, usage) = (partial.model.clone(), partial.usage);
        if !partial.content.is_empty() {
            self.push(MessageAppended::new(partial));
        }
        if usage != Usage::default() {
            self.pay(model.as_ref(), usage, None);
        }
    }
}

/// The provider called the answer whole, and it is none: filtered, or malformed.
fn broke_off(answer: &AssistantMessage) -> bool {
    matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

/// An answer that broke off.
struct Broken {
    partial: Option<AssistantMessage>,
    error: StreamError,
}

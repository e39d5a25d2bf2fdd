//! Counts events.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use antiphon_core::{
    ApprovalRequested, ContextScope, Event, EventBody, MessageQueued, ModelRef, PeerInputClass,
    Position, Price, PriceTable, Replied, ResponseStatus, TaskCreated, TaskSummary, Usage,
    UsageRecorded,
};
use chrono::{DateTime, Utc};

use crate::convention;
use crate::metrics::families::{
    ByAgent, ByAgentStatus, ByClass, ByInvocation, ByModel, ByModelKind, ByStatus, ByTool,
    ByToolOutcome, Families, Operation, Tokens,
};
use crate::metrics::labels::{LABEL_VALUES_MAX, Name, Names, OTHER, Series};
use crate::metrics::{usd, whole};
use crate::tasks::model_call::ModelCallEnded;
use crate::tasks::tool_calls::{CallOutcome, ToolCallEnded};
use crate::tasks::{EndedActivity, OpenTasks, TaskEnded, TaskFacts};

/// State that counting needs.
#[derive(Debug)]
pub(crate) struct EventCounter {
    tasks: OpenTasks,
    agents: Names,
    models: Names,
    providers: Names,
    bare_models: Names,
    tools: Names,
    errors: Names,
    no_error: Name,
    operations: Series<Operation>,
    token_series: Series<Tokens>,
    prices: PriceTable,
    /// Cached prices.
    known_prices: HashMap<Name, Option<Price>>,
}

impl EventCounter {
    pub(crate) fn new(prices: PriceTable) -> Self {
        Self {
            tasks: OpenTasks::default(),
            agents: Names::default(),
            models: Names::default(),
            providers: Names::default(),
            bare_models: Names::default(),
            tools: Names::default(),
            errors: Names::default(),
            no_error: "".into(),
            operations: Series::default(),
            token_series: Series::default(),
            prices,
            known_prices: HashMap::new(),
        }
    }

    pub(crate) fn resume(&mut self, task: &TaskSummary) {
        self.tasks.resume(task);
    }

    pub(crate) fn position(&self) -> Position {
        self.tasks.seen()
    }

    /// Sets gauges that are computed only when the metrics are read.
    pub(crate) fn summarize(&self, families: &Families) {
        let (questions, arrivals) = self.tasks.waiting();
        families.tasks_open.set(whole(self.tasks.len() as u64));
        families.approvals_waiting.set(whole(questions as u64));
        families.interactions_waiting.set(whole(arrivals as u64));
        families.journal_seen.set(whole(self.tasks.seen().0));
        families.tasks_not_followed.inner().store(self.tasks.not_followed(), Ordering::Relaxed);
    }

    pub(crate) fn observe(&mut self, event: &Event, families: &Families) {
        let Some(turned) = self.tasks.apply(event) else { return };
        let task = turned.task.as_deref();
        self.count(event, families);
        if turned.has_read {
            let agent = self.agent(task);
            families.messages_processed.get_or_create(&ByAgent { agent }).inc();
        }
        for ended in turned.ended {
            self.end(ended, task, event.at, families);
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn count(&mut self, event: &Event, families: &Families) {
        match &event.body {
            EventBody::TaskCreated(TaskCreated { agent, .. }) => {
                let agent = self.agents.get(agent);
                families.tasks_created.get_or_create(&ByAgent { agent }).inc();
            }
            EventBody::MessageQueued(MessageQueued { class, .. }) => {
                let labels = ByClass { class: class_word(*class) };
                families.interactions_queued.get_or_create(&labels).inc();
            }
            EventBody::RequestSent(_) => drop(families.requests_sent.inc()),
            EventBody::Replied(Replied { status, .. }) => {
                let labels = ByStatus { status: response_word(*status) };
                families.replies.get_or_create(&labels).inc();
            }
            EventBody::ApprovalRequested(ApprovalRequested { tool_name, .. }) => {
                let tool = self.tools.get(tool_name);
                families.approvals_requested.get_or_create(&ByTool { tool }).inc();
            }
            EventBody::Dispatched(dispatched) => {
                let context = context_word(dispatched.context);
                let labels = ByInvocation { context, join: dispatched.join.as_str() };
                families.dispatches.get_or_create(&labels).inc();
                families.dispatched_tasks.inc_by(dispatched.children.len() as u64);
            }
            EventBody::HandedOver(_) => drop(families.handovers.inc()),
            EventBody::UsageRecorded(recorded) => self.usage_recorded(recorded, families),
            EventBody::OutputRejected(_) => drop(families.output_rejections.inc()),
            EventBody::Compacted(_) => drop(families.compactions.inc()),
            // Counted when the activity that they start ends.
            _ => {}
        }
    }

    fn agent(&mut self, task: Option<&TaskFacts>) -> Name {
        self.agents.get(task.map_or("", |task| &task.agent))
    }

    fn usage_recorded(&mut self, recorded: &UsageRecorded, families: &Families) {
        let UsageRecorded { model, usage, purpose } = recorded;
        let name = self.models.get(model);
        let by_model = ByModel { model: Name::clone(&name) };
        if purpose.is_none() {
            families.turns.get_or_create(&by_model).inc();
        }
        let kinds = [
            ("input", Some(usage.input_tokens)),
            ("output", Some(usage.output_tokens)),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
        ];
        for (kind, tokens) in kinds {
            if let Some(tokens) = tokens {
                let labels = ByModelKind { model: Name::clone(&name), kind };
                families.tokens.get_or_create(&labels).inc_by(tokens);
            }
        }
        match self.price(model, &name) {
            Some(price) => {
                families.cost.get_or_create(&by_model).inc_by(usd(price.cost(*usage)));
            }
            None => drop(families.unpriced.get_or_create(&by_model).inc()),
        }
    }

    /// Looked up once per model: the table is searched for versions of a name.
    fn price(&mut self, model: &str, name: &Name) -> Option<Price> {
        let look_up = || ModelRef::parse(model).ok().and_then(|model| self.prices.price(&model));
        // A truncated name, or `other`, stands for several models.
        if **name != *model || self.known_prices.len() > LABEL_VALUES_MAX {
            return look_up();
        }
        *self.known_prices.entry(Name::clone(name)).or_insert_with(look_up)
    }

    fn end(
        &mut self,
        ended: EndedActivity,
        task: Option<&TaskFacts>,
        at: DateTime<Utc>,
        families: &Families,
    ) {
        match ended {
            EndedActivity::Step { began } => {
                let agent = self.agent(task);
                let processing = families.processing.get_or_create(&ByAgent { agent });
                processing.observe(seconds(began, at));
            }
            EndedActivity::ModelCall(chat) => self.chat(&chat, families),
            EndedActivity::Call(call) => self.call(&call, families),
            EndedActivity::Approval(approval) => {
                let labels = ByStatus { status: approval.status.as_str() };
                families.approvals_decided.get_or_create(&labels).inc();
                if let Some(requested) = approval.requested {
                    let waited = seconds(requested, approval.ended);
                    families.approval_wait.get_or_create(&labels).observe(waited);
                }
            }
            EndedActivity::TakenMessage(taken) => {
                let labels = ByClass { class: class_word(taken.class) };
                families.interactions_taken.get_or_create(&labels).inc();
                let waited = seconds(taken.arrived, taken.ended);
                families.interaction_wait.get_or_create(&labels).observe(waited);
            }
            EndedActivity::Task(TaskEnded { status, .. }) => {
                let (agent, status) = (self.agent(task), status.as_str());
                families.tasks_ended.get_or_create(&ByAgentStatus { agent, status }).inc();
                if let Some(task) = task {
                    let took = seconds(task.began, at);
                    families.task_duration.get_or_create(&ByStatus { status }).observe(took);
                }
            }
        }
    }

    fn call(&mut self, call: &ToolCallEnded, families: &Families) {
        let tool = self.tools.get(&call.tool);
        let labels = ByToolOutcome { tool: Name::clone(&tool), outcome: call.outcome.as_str() };
        families.tool_calls.get_or_create(&labels).inc();
        // A refused call did not run.
        if let Some((began, _)) = call.began.filter(|_| call.outcome != CallOutcome::Refused) {
            let duration = families.tool_duration.get_or_create(&ByTool { tool });
            duration.observe(seconds(began, call.ended));
        }
    }

    fn chat(&mut self, chat: &ModelCallEnded, families: &Families) {
        let requested = chat.requested.as_ref().or(chat.answered.as_ref());
        let provider = requested.map_or("", |model| convention::provider_name(model.provider()));
        let gen_ai_provider_name = self.providers.get(provider);
        let gen_ai_request_model = self.bare_models.get(requested.map_or("", ModelRef::model));
        let error_type = match &chat.error {
            Some(word) => self.errors.get(word),
            None => Name::clone(&self.no_error),
        };
        if let Some(usage) = chat.usage {
            for (kind, tokens) in token_types(usage) {
                let labels = Tokens {
                    gen_ai_operation_name: convention::CHAT,
                    gen_ai_provider_name: Name::clone(&gen_ai_provider_name),
                    gen_ai_request_model: Name::clone(&gen_ai_request_model),
                    gen_ai_token_type: kind,
                };
                let labels = self.token_series.get(labels, |labels| Tokens {
                    gen_ai_provider_name: OTHER.into(),
                    gen_ai_request_model: OTHER.into(),
                    ..labels
                });
                families.token_usage.get_or_create(&labels).observe(tokens);
            }
        }
        let labels = Operation {
            gen_ai_operation_name: convention::CHAT,
            gen_ai_provider_name,
            gen_ai_request_model,
            error_type,
        };
        let labels = self.operations.get(labels, |labels| Operation {
            gen_ai_operation_name: labels.gen_ai_operation_name,
            gen_ai_provider_name: OTHER.into(),
            gen_ai_request_model: OTHER.into(),
            error_type: OTHER.into(),
        });
        let took = seconds(chat.began, chat.ended);
        families.operation_duration.get_or_create(&labels).observe(took);
    }
}

#[expect(clippy::cast_precision_loss, reason = "no answer has 2^53 tokens")]
fn token_types(usage: Usage) -> [(&'static str, f64); 2] {
    let input = convention::input_tokens(usage);
    [("input", input as f64), ("output", usage.output_tokens as f64)]
}

/// Never negative: clocks may be set back.
fn seconds(began: DateTime<Utc>, ended: DateTime<Utc>) -> f64 {
    (ended - began).to_std().unwrap_or_default().as_secs_f64()
}

fn class_word(class: PeerInputClass) -> &'static str {
    match class {
        PeerInputClass::ActionableMessage => "actionable_message",
        PeerInputClass::ActionableRequest => "actionable_request",
        PeerInputClass::Response => "response",
        PeerInputClass::PeerLifecycleAdded => "peer_lifecycle_added",
        PeerInputClass::PeerLifecycleRetired => "peer_lifecycle_retired",
        PeerInputClass::PeerLifecycleUnwired => "peer_lifecycle_unwired",
        PeerInputClass::PeerLifecycleKickoffFailed => "peer_lifecycle_kickoff_failed",
        PeerInputClass::PeerLifecycleKickoffCancelled => "peer_lifecycle_kickoff_cancelled",
        PeerInputClass::SilentRequest => "silent_request",
        PeerInputClass::Ack => "ack",
        PeerInputClass::PlainEvent => "plain_event",
    }
}

fn response_word(status: ResponseStatus) -> &'static str {
    match status {
        ResponseStatus::Accepted => "accepted",
        ResponseStatus::Completed => "completed",
        ResponseStatus::Failed => "failed",
    }
}

fn context_word(context: ContextScope) -> &'static str {
    match context {
        ContextScope::Independent => "independent",
        ContextScope::Inherited => "inherited",
        ContextScope::Shared => "shared",
    }
}

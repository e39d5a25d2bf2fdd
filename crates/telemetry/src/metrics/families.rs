//! All metrics: names, labels and buckets.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::convention;
use crate::metrics::labels::Name;

macro_rules! labels {
    ($($name:ident { $($label:ident : $type:ty),* })*) => { $(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(crate) struct $name {
            $( pub(crate) $label: $type, )*
        }
    )* };
}

labels! {
    ByAgent { agent: Name }
    ByAgentStatus { agent: Name, status: &'static str }
    ByStatus { status: &'static str }
    ByReason { reason: Name }
    ByModel { model: Name }
    ByModelKind { model: Name, kind: &'static str }
    ByTool { tool: Name }
    ByToolOutcome { tool: Name, outcome: &'static str }
    ByClass { class: &'static str }
    ByInvocation { context: &'static str, join: &'static str }
    ByQueue { queue: Name }
    ByProvider { provider: Name }
    ByBudget { budget: Name }
    ByRoute { method: &'static str, route: Name }
    ByRouteStatus { method: &'static str, route: Name, status: u16 }
    Operation {
        gen_ai_operation_name: &'static str,
        gen_ai_provider_name: Name,
        gen_ai_request_model: Name,
        error_type: Name
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(clippy::struct_field_names, reason = "the names are the conventions'")]
pub(crate) struct Tokens {
    pub(crate) gen_ai_operation_name: &'static str,
    pub(crate) gen_ai_provider_name: Name,
    pub(crate) gen_ai_request_model: Name,
    pub(crate) gen_ai_token_type: &'static str,
}

pub(crate) type Seconds<S> = Family<S, Histogram, fn() -> Histogram>;
pub(crate) type Usd = Counter<f64, AtomicU64>;
pub(crate) type UsdGauge = Gauge<f64, AtomicU64>;

macro_rules! families {
    ($( $field:ident : $type:ty = $how:ident($($made:expr)?) $name:expr, $help:literal; )*) => {
        #[derive(Debug, Clone)]
        pub(crate) struct Families {
            $( pub(crate) $field: $type, )*
        }

        impl Families {
            /// Registers every metric.
            pub(crate) fn register(registry: &mut Registry) -> Self {
                Self { $( $field: $how(registry, $name, $help $(, $made)?), )* }
            }
        }
    };
}

families! {
    // Names of the Sentinel contract.
    messages_processed: Family<ByAgent, Counter> = plain()
        "antiphon_messages_processed",
        "Turns that agents started";
    processing: Seconds<ByAgent> = seconds(slow_buckets)
        "antiphon_message_processing_duration",
        "Duration of a step, from thinking to idle";
    active_agents: Gauge = plain()
        "antiphon_active_agents",
        "Live agents";
    queue_size: Family<ByQueue, Gauge> = plain()
        "antiphon_queue_size",
        "Items in a queue";
    budget_spent: Family<ByBudget, UsdGauge> = usd()
        "antiphon_budget_spent",
        "Amount spent of a budget";
    budget_limit: Family<ByBudget, UsdGauge> = usd()
        "antiphon_budget_limit",
        "Limit of a budget";
    breaker_state: Family<ByProvider, Gauge> = plain()
        "antiphon_circuit_breaker_state",
        "State of a provider's breaker: 0 closed, 1 half-open, 2 open";
    http_requests: Family<ByRouteStatus, Counter> = plain()
        "antiphon_http_requests",
        "Answered HTTP requests";
    http_duration: Seconds<ByRoute> = seconds(fast_buckets)
        "antiphon_http_request_duration",
        "Duration of an HTTP request";
    // Tasks.
    tasks_created: Family<ByAgent, Counter> = plain()
        "antiphon_tasks_created",
        "Accepted tasks";
    tasks_ended: Family<ByAgentStatus, Counter> = plain()
        "antiphon_tasks_ended",
        "Ended tasks";
    task_duration: Seconds<ByStatus> = seconds(human_buckets)
        "antiphon_task_duration",
        "Duration of a task, from its creation";
    tasks_open: Gauge = plain()
        "antiphon_tasks_open",
        "Tasks accepted since the start that have not ended";
    tasks_unfinished: Family<ByStatus, Gauge> = plain()
        "antiphon_tasks_unfinished",
        "Tasks that have not ended, including those from before the start";
    tasks_waiting: Family<ByReason, Gauge> = plain()
        "antiphon_tasks_waiting",
        "Tasks that wait, by what they wait for";
    tasks_stuck: Gauge = plain()
        "antiphon_tasks_stuck",
        "Tasks that stopped because of an error that no retry can help";
    tasks_not_followed: Counter = plain()
        "antiphon_tasks_not_followed",
        "Tasks without durations: too many were open";
    // Models.
    turns: Family<ByModel, Counter> = plain()
        "antiphon_turns",
        "Model answers";
    tokens: Family<ByModelKind, Counter> = plain()
        "antiphon_tokens",
        "Input and output tokens of models";
    cost: Family<ByModel, Usd> = usd()
        "antiphon_cost",
        "Cost of models, by the price table";
    unpriced: Family<ByModel, Counter> = plain()
        "antiphon_unpriced_answers",
        "Answers of models without a known price, not included in the cost";
    operation_duration: Seconds<Operation> = seconds(operation)
        convention::OPERATION_DURATION,
        "Duration of a model call";
    token_usage: Family<Tokens, Histogram, fn() -> Histogram> = histogram(token_usage)
        convention::TOKEN_USAGE,
        "Tokens of an answer";
    compactions: Counter = plain()
        "antiphon_compactions",
        "Compacted conversations";
    output_rejections: Counter = plain()
        "antiphon_output_rejections",
        "Results rejected by the output schema";
    // Tools.
    tool_calls: Family<ByToolOutcome, Counter> = plain()
        "antiphon_tool_calls",
        "Ended tool calls";
    tool_duration: Seconds<ByTool> = seconds(slow_buckets)
        "antiphon_tool_call_duration",
        "Duration of a tool call";
    approvals_requested: Family<ByTool, Counter> = plain()
        "antiphon_approvals_requested",
        "Requested approvals";
    approvals_decided: Family<ByStatus, Counter> = plain()
        "antiphon_approvals_decided",
        "Decided approvals";
    approval_wait: Seconds<ByStatus> = seconds(human_buckets)
        "antiphon_approval_wait",
        "Waiting time of an approval";
    approvals_waiting: Gauge = plain()
        "antiphon_approvals_waiting",
        "Pending approvals";
    // Inboxes and peers.
    interactions_queued: Family<ByClass, Counter> = plain()
        "antiphon_interactions_queued",
        "Interactions that arrived in inboxes";
    interactions_taken: Family<ByClass, Counter> = plain()
        "antiphon_interactions_taken",
        "Interactions that agents took from their inboxes";
    interaction_wait: Seconds<ByClass> = seconds(human_buckets)
        "antiphon_interaction_wait",
        "Waiting time of an interaction in an inbox";
    interactions_waiting: Gauge = plain()
        "antiphon_interactions_waiting",
        "Interactions in inboxes";
    requests_sent: Counter = plain()
        "antiphon_requests_sent",
        "Requests to peers";
    replies: Family<ByStatus, Counter> = plain()
        "antiphon_replies",
        "Responses to requests of peers";
    dispatches: Family<ByInvocation, Counter> = plain()
        "antiphon_dispatches",
        "Calls that dispatched agents";
    dispatched_tasks: Counter = plain()
        "antiphon_dispatched_tasks",
        "Dispatched tasks";
    handovers: Counter = plain()
        "antiphon_handovers",
        "Tasks that another agent took over";
    // The journal and its followers.
    journal_head: Gauge = plain()
        "antiphon_journal_head_position",
        "The last position of the journal";
    journal_seen: Gauge = plain()
        "antiphon_journal_observed_position",
        "The last position that these metrics have seen";
    journal_errors: Counter = plain()
        "antiphon_journal_errors",
        "Appends that the journal could not store";
    journal_up: Gauge = plain()
        "antiphon_journal_up",
        "Whether the journal takes events: 1 yes, 0 no";
    spans_exported: Counter = plain()
        "antiphon_spans_exported",
        "Spans accepted by the collector";
    spans_dropped: Counter = plain()
        "antiphon_spans_dropped",
        "Spans dropped because the queue was full";
    spans_failed: Counter = plain()
        "antiphon_spans_failed",
        "Spans refused by the collector";
}

fn plain<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn usd<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register_with_unit(name, help, Unit::Other("usd".to_owned()), metric.clone());
    metric
}

fn seconds<S: LabelSet>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    make: fn() -> Histogram,
) -> Seconds<S> {
    let family = Seconds::new_with_constructor(make);
    registry.register_with_unit(name, help, Unit::Seconds, family.clone());
    family
}

fn histogram<S: LabelSet>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    make: fn() -> Histogram,
) -> Seconds<S> {
    let family = Seconds::new_with_constructor(make);
    registry.register(name, help, family.clone());
    family
}

/// Requirements on the labels of a family.
trait LabelSet:
    EncodeLabelSet + Clone + std::hash::Hash + Eq + std::fmt::Debug + Send + Sync + 'static
{
}

impl<S> LabelSet for S where
    S: EncodeLabelSet + Clone + std::hash::Hash + Eq + std::fmt::Debug + Send + Sync + 'static
{
}

/// For operations that take milliseconds.
fn fast_buckets() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

/// For operations that take seconds.
fn slow_buckets() -> Histogram {
    Histogram::new([0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0])
}

/// For waits for people.
fn human_buckets() -> Histogram {
    Histogram::new([0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0])
}

fn operation() -> Histogram {
    Histogram::new(convention::OPERATION_DURATION_S)
}

fn token_usage() -> Histogram {
    Histogram::new(convention::TOKEN_USAGE_TOKENS)
}

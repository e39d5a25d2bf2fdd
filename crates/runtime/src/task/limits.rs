//! Limits of a task and of the tree it belongs to.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::DispatchPermission;
use antiphon_core::{
    Cost, ModelRef, PriceTable, TaskCreated, TaskLimits, TaskSummary, TokenUsage, Usage,
    UsageRecorded,
};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::budget::spend_limits::BudgetRefusal;
use crate::budget::tree_usage::Tree;
use crate::dispatch::pending_call::Outcomes;
use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::state::TaskState;

/// The limit that a task reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum LimitReached {
    /// Too many answers of the model.
    #[error("limit reached: {} for the task and its tree", counted(u64::from(*max), "turn"))]
    Turns {
        /// Allowed number of turns.
        max: u32,
    },
    /// Too many tool calls.
    #[error("limit reached: {} for the task and its tree", counted(u64::from(*max), "tool call"))]
    ToolCalls {
        /// Allowed number of tool calls.
        max: u32,
    },
    /// Too many tokens.
    #[error("limit reached: {} for the task and its tree", counted(*max, "token"))]
    Tokens {
        /// Allowed number of tokens.
        max: u64,
    },
    /// The cost limit is reached.
    #[error("limit reached: the task may cost {}", Cost { nano_usd: *max_nano_usd })]
    Cost {
        /// Allowed cost, in billionths of a US dollar.
        max_nano_usd: u64,
    },
    /// The task has a cost limit, and the price of its model is unknown.
    #[error("the task has a budget, but the price of `{model}` is unknown: configure its price")]
    PriceUnknown {
        /// The model without a price, as `provider/model`.
        model: String,
    },
    /// The task took too long.
    #[error("limit reached: the task may take {}", counted(u64::from(*max_s), "second"))]
    WallClock {
        /// Allowed seconds since its creation.
        max_s: u32,
    },
    /// The dispatch depth is reached.
    #[error("limit reached: tasks may be dispatched {} deep", counted(u64::from(*max), "level"))]
    Depth {
        /// Allowed levels below the task with the limit.
        max: u32,
    },
    /// Too many children at once.
    #[error("limit reached: a task may have {} at work at a time", counted(u64::from(*max), "agent"))]
    FanOut {
        /// Allowed number of unfinished children.
        max: u32,
    },
    /// Too many tasks in the tree.
    #[error("limit reached: the tree may have {}", counted(u64::from(*max), "task"))]
    Tasks {
        /// Allowed number of tasks.
        max: u32,
    },
    /// Too many handovers.
    #[error("limit reached: a task may be handed over {}", counted(u64::from(*max), "time"))]
    Handovers {
        /// Allowed number of handovers.
        max: u32,
    },
    /// The result still does not fit its schema.
    #[error("the result does not fit its schema after {max} attempts to fix it")]
    Repairs {
        /// Allowed number of attempts.
        max: u32,
    },
}

/// `1 turn`, `2 turns`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Default dispatch depth, unless the root task sets another.
pub const DEPTH_DEFAULT: u32 = 5;

/// Default number of unfinished children of a task, unless an ancestor sets another.
pub const FAN_OUT_DEFAULT: u32 = 256;

/// Default number of tasks in a tree, unless the root task sets another.
pub const TASKS_DEFAULT: u32 = 4096;

/// Maximum number of handovers of a task.
pub const HANDOVERS_MAX: u32 = 16;

/// What a tree of tasks has used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of tasks.
    pub tasks: u32,
    /// Number of model answers.
    pub turns: u32,
    /// Number of tool calls.
    pub calls: u32,
    /// Token usage by model.
    pub spent: BTreeMap<String, Usage>,
}

impl Totals {
    /// What one task has used.
    pub(crate) fn of_task(state: &TaskState) -> Self {
        let TaskState { turns, calls, spent, .. } = state;
        Self { tasks: 1, turns: *turns, calls: *calls, spent: spent.clone() }
    }

    /// Sums up the tasks of a tree.
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a TaskSummary>) -> Self {
        let mut totals = Self::default();
        for task in tasks {
            totals.tasks = totals.tasks.saturating_add(1);
            totals.turns = totals.turns.saturating_add(task.turns);
            totals.calls = totals.calls.saturating_add(task.calls);
            for (model, usage) in &task.spent {
                *totals.spent.entry(model.clone()).or_default() += *usage;
            }
        }
        totals
    }

    pub(crate) fn pay(&mut self, recorded: &UsageRecorded) {
        *self.spent.entry(recorded.summed_under()).or_default() += recorded.usage;
        self.turns = self.turns.saturating_add(u32::from(recorded.purpose.is_none()));
    }

    fn tokens(&self) -> u64 {
        let total = |usage: &Usage| u64::from(TokenUsage::from(*usage).total_tokens);
        self.spent.values().map(total).sum()
    }
}

/// Cost of the usage by `prices`. The error names a model without a price, or one that was asked and whose
/// tokens were not counted.
pub fn cost(spent: &BTreeMap<String, Usage>, prices: &PriceTable) -> Result<Cost, String> {
    match spent.iter().find(|(_, usage)| is_uncounted(usage)) {
        Some((model, _)) => Err(model.clone()),
        None => counted_cost(spent, prices),
    }
}

/// Whether no token was counted. A model that has answered has used some.
fn is_uncounted(usage: &Usage) -> bool {
    TokenUsage::from(*usage).total_tokens == 0
}

/// Cost of the tokens that were counted. The error names a model without a price.
fn counted_cost(spent: &BTreeMap<String, Usage>, prices: &PriceTable) -> Result<Cost, String> {
    let of = |(model, usage): (&String, &Usage)| {
        if is_uncounted(usage) {
            return Ok(Cost { nano_usd: 0 });
        }
        let known = ModelRef::parse(model).ok().and_then(|model| prices.cost(&model, *usage));
        known.ok_or_else(|| model.clone())
    };
    spent.iter().map(of).sum()
}

/// What a decision depends on besides the task's own events.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitContext<'a> {
    /// Tells which deadlines have passed.
    pub time: &'a DeadlineClock,
    /// Limits and totals of the trees the task belongs to.
    pub scopes: Vec<LimitScope>,
    /// Outcomes of the tasks it waits for, as far as they have ended.
    pub outcomes: &'a Outcomes,
    /// Prices of the models.
    pub prices: &'a PriceTable,
    /// Context window of the model in tokens; unknown when absent.
    pub window_tokens: Option<u64>,
    /// Why the budget refuses a model call, if it does.
    pub budget: Option<BudgetRefusal>,
}

/// Limits and totals of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitScope {
    /// Limits of the tree.
    pub limits: TaskLimits,
    /// What the tree has used.
    pub totals: Totals,
}

/// When the task's time is over. Its children get no more time than it has.
pub(crate) fn deadline(state: &TaskState) -> Option<DateTime<Utc>> {
    let max = state.created.limits.wall_clock_s_max?;
    Some(state.created_at + chrono::TimeDelta::seconds(i64::from(max.get())))
}

/// Works out when the time of a task is over, before anything else asks for it: by the clock that all
/// processes of the machine share, or after a restart of the machine by the wall clock.
pub(crate) fn note_deadline(
    time: &DeadlineClock,
    created: &TaskCreated,
    created_at: DateTime<Utc>,
) {
    if let Some(max) = created.limits.wall_clock_s_max {
        let longest = Duration::from_secs(u64::from(max.get()));
        let until = created_at + longest;
        match created.boot_time.and_then(|created| time.since(created)) {
            Some(passed) => time.moment_after(until, longest.saturating_sub(passed)),
            None => time.moment_within(until, longest),
        };
    }
}

/// Works out when everything that the task has a deadline for is due, in the same way.
pub(crate) fn note_deadlines(time: &DeadlineClock, state: &TaskState) {
    note_deadline(time, &state.created, state.created_at);
    for (until, boot_until) in &state.boot_deadlines {
        time.know(*until, *boot_until);
    }
}

/// The wall-clock limit, if it is reached.
pub(crate) fn time_over(state: &TaskState, context: &LimitContext<'_>) -> Option<LimitReached> {
    let max_s = state.created.limits.wall_clock_s_max?.get();
    let over = deadline(state).is_some_and(|deadline| context.time.has_passed(deadline));
    over.then_some(LimitReached::WallClock { max_s })
}

/// The limit that forbids another model call: one of the task, or of a tree it belongs to.
pub(crate) fn reached(state: &TaskState, context: &LimitContext<'_>) -> Option<LimitReached> {
    let (mut turns, mut calls, spent) = (state.turns, state.calls, state.spent.clone());
    if state.created.resident {
        // A resident agent never ends: these limits hold for each wake-up.
        turns = turns.saturating_sub(state.at_wake.turns);
        calls = calls.saturating_sub(state.at_wake.calls);
    }
    let own = Totals { tasks: 1, turns, calls, spent };
    exceeded(&state.created.limits, &own, context.prices).or_else(|| {
        let mut scopes = context.scopes.iter();
        scopes.find_map(|scope| exceeded(&scope.limits, &scope.totals, context.prices))
    })
}

/// The limit that one of these trees has reached.
pub(crate) fn used_up(trees: &[Arc<Tree>], prices: &PriceTable) -> Option<LimitReached> {
    trees
        .iter()
        .map(|tree| tree.scope())
        .find_map(|scope| exceeded(&scope.limits, &scope.totals, prices))
}

/// What remains for a task of its own limits and of the limits of its trees, and whether it may
/// dispatch.
pub(crate) fn left(
    state: &TaskState,
    trees: &[Arc<Tree>],
    prices: &PriceTable,
    time: &DeadlineClock,
) -> (TaskLimits, DispatchPermission) {
    let mut left = TaskLimits {
        answer_tokens_max: state.created.limits.answer_tokens_max,
        wall_clock_s_max: deadline(state)
            .and_then(|deadline| NonZeroU32::new(seconds_left(time.left(deadline)))),
        ..TaskLimits::default()
    };
    let mut dispatches = DispatchPermission::Allowed;
    for tree in trees {
        let LimitScope { limits, totals } = tree.scope();
        let cost = counted_cost(&totals.spent, prices).map_or(u64::MAX, |cost| cost.nano_usd);
        lower(&mut left.turns_max, rest(limits.turns_max, totals.turns));
        lower(&mut left.tool_calls_max, rest(limits.tool_calls_max, totals.calls));
        lower(&mut left.tokens_max, rest_of_many(limits.tokens_max, totals.tokens()));
        lower(&mut left.cost_nano_usd_max, rest_of_many(limits.cost_nano_usd_max, cost));
        lower(&mut left.fan_out_max, limits.fan_out_max);
        // The task itself counts in both.
        lower(&mut left.tasks_max, rest(limits.tasks_max, totals.tasks.saturating_sub(1)));
        let usual = (tree.depth == 0).then_some(DEPTH_DEFAULT);
        if let Some(max) = limits.depth_max.map(NonZeroU32::get).or(usual) {
            let below = max.saturating_sub(state.created.depth - tree.depth);
            match NonZeroU32::new(below) {
                Some(below) => lower(&mut left.depth_max, Some(below)),
                None => dispatches = DispatchPermission::Denied,
            }
        }
    }
    (left, dispatches)
}

/// Whole seconds, rounded up; at least 1.
pub(crate) fn seconds_left(left: Duration) -> u32 {
    let seconds = left.as_millis().max(1).div_ceil(1000);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// What remains of a limit; at least 1, because absent means no limit.
fn rest(max: Option<NonZeroU32>, used: u32) -> Option<NonZeroU32> {
    max.map(|max| NonZeroU32::new(max.get().saturating_sub(used)).unwrap_or(NonZeroU32::MIN))
}

fn rest_of_many(max: Option<NonZeroU64>, used: u64) -> Option<NonZeroU64> {
    max.map(|max| NonZeroU64::new(max.get().saturating_sub(used)).unwrap_or(NonZeroU64::MIN))
}

fn lower<T: Ord + Copy>(limit: &mut Option<T>, other: Option<T>) {
    *limit = [*limit, other].into_iter().flatten().min();
}

fn exceeded(limits: &TaskLimits, totals: &Totals, prices: &PriceTable) -> Option<LimitReached> {
    if let Some(max) = limits.turns_max.filter(|max| totals.turns >= max.get()) {
        return Some(LimitReached::Turns { max: max.get() });
    }
    if let Some(max) = limits.tool_calls_max.filter(|max| totals.calls >= max.get()) {
        return Some(LimitReached::ToolCalls { max: max.get() });
    }
    if let Some(max) = limits.tokens_max.filter(|max| totals.tokens() >= max.get()) {
        return Some(LimitReached::Tokens { max: max.get() });
    }
    let max = limits.cost_nano_usd_max?;
    match counted_cost(&totals.spent, prices) {
        Ok(cost) if cost.nano_usd < max.get() => None,
        Ok(_) => Some(LimitReached::Cost { max_nano_usd: max.get() }),
        Err(model) => Some(LimitReached::PriceUnknown { model }),
    }
}

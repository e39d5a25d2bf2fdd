//! How far a task may go, and the tree it belongs to.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use antiphon_core::port::DispatchPermission;
use antiphon_core::{
    Cost, ModelRef, PriceTable, TaskLimits, TaskSummary, TokenUsage, Usage, UsageRecorded,
};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::budget::BudgetRefusal;
use crate::flight::Outcomes;
use crate::state::TaskState;
use crate::tree::Tree;

/// A limit that was reached, and what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum LimitReached {
    /// Too many answers of the model.
    #[error("{max} turns are allowed for the task and all it belongs to, and are used up")]
    Turns {
        /// How many it may.
        max: u32,
    },
    /// Too many calls of tools.
    #[error("{max} calls of tools are allowed for the task and all it belongs to, and are used up")]
    ToolCalls {
        /// How many it may.
        max: u32,
    },
    /// Too many tokens.
    #[error("{max} tokens are allowed for the task and all it belongs to, and are used up")]
    Tokens {
        /// How many it may.
        max: u64,
    },
    /// Too much money.
    #[error("the task may cost {}, and has", Cost { nano_usd: *max_nano_usd })]
    Cost {
        /// How much it may, in billionths of a US dollar.
        max_nano_usd: u64,
    },
    /// It may cost so much, and nobody knows what it cost.
    #[error("the task has a budget, and what `{model}` costs is not known: give its price")]
    PriceUnknown {
        /// The model without a price.
        model: String,
    },
    /// Too much time.
    #[error("the task may take {max_s} seconds, and has")]
    WallClock {
        /// How many it may.
        max_s: u32,
    },
    /// Too many tasks below one another.
    #[error("tasks may be dispatched {max} deep, and this one is that deep")]
    Depth {
        /// How deep.
        max: u32,
    },
    /// Too many tasks at once.
    #[error("a task may have {max} agents at work at a time, and this would be more")]
    FanOut {
        /// How many it may.
        max: u32,
    },
    /// Too many tasks in all.
    #[error("there may be {max} tasks in this tree, and this would be more")]
    Tasks {
        /// How many there may be.
        max: u32,
    },
    /// The task went from hand to hand.
    #[error("a task may be handed over {max} times, and was")]
    Handovers {
        /// How often it may.
        max: u32,
    },
    /// The result is not what was asked for, try after try.
    #[error("the result does not fit its schema, and {max} tries to mend it did not help")]
    Repairs {
        /// How many there may be.
        max: u32,
    },
}

/// How deep tasks may be dispatched, unless the task at the top says otherwise.
pub const DEPTH_DEFAULT: u32 = 5;

/// Agents that a task may have at work at a time, unless a task above says otherwise.
pub const FAN_OUT_DEFAULT: u32 = 256;

/// Tasks in a tree, unless the task at the top says otherwise.
pub const TASKS_DEFAULT: u32 = 4096;

/// Times that a task may be handed over.
pub const HANDOVERS_MAX: u32 = 16;

/// What a tree of tasks has used up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Tasks in it.
    pub tasks: u32,
    /// Answers of models.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Tokens by model.
    pub spent: BTreeMap<String, Usage>,
}

impl Totals {
    /// What the tasks of a tree have used up.
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
        *self.spent.entry(recorded.model.clone()).or_default() += recorded.usage;
        self.turns = self.turns.saturating_add(u32::from(recorded.purpose.is_none()));
    }

    fn tokens(&self) -> u64 {
        let total = |usage: &Usage| u64::from(TokenUsage::from(*usage).total_tokens);
        self.spent.values().map(total).sum()
    }
}

/// What models cost by `prices`; a model without a price is an error that names it.
pub fn cost(spent: &BTreeMap<String, Usage>, prices: &PriceTable) -> Result<Cost, String> {
    let of = |(model, usage): (&String, &Usage)| {
        let known = ModelRef::parse(model).ok().and_then(|model| prices.cost(&model, *usage));
        known.ok_or_else(|| model.clone())
    };
    spent.iter().map(of).sum()
}

/// What a decision depends on beside the task's own events.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitContext<'a> {
    /// The time.
    pub now: DateTime<Utc>,
    /// The trees it belongs to: how far each may go, and how far it went.
    pub scopes: Vec<Scope>,
    /// How the tasks ended that it waits for, of those that have.
    pub outcomes: &'a Outcomes,
    /// What answers cost.
    pub prices: &'a PriceTable,
    /// How much the model can read and write at once.
    pub window_tokens: Option<u64>,
    /// Why the budget keeps it from its model, if it does.
    pub budget: Option<BudgetRefusal>,
}

/// How far a tree may go, and how far it went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// How far it may.
    pub limits: TaskLimits,
    /// How far it did.
    pub totals: Totals,
}

/// When a task's time is over. What it dispatches gets no more time than it has itself.
pub(crate) fn deadline(state: &TaskState) -> Option<DateTime<Utc>> {
    let max = state.created.limits.wall_clock_s_max?;
    Some(state.created_at + chrono::TimeDelta::seconds(i64::from(max.get())))
}

/// The task's time is over.
pub(crate) fn time_over(state: &TaskState, standing: &LimitContext<'_>) -> Option<LimitReached> {
    let max_s = state.created.limits.wall_clock_s_max?.get();
    let over = deadline(state).is_some_and(|deadline| standing.now >= deadline);
    over.then_some(LimitReached::WallClock { max_s })
}

/// The limit that keeps a task from asking its model again: one of its own, or of a tree that it
/// belongs to.
pub(crate) fn reached(state: &TaskState, standing: &LimitContext<'_>) -> Option<LimitReached> {
    let (mut turns, mut calls, spent) = (state.turns, state.calls, state.spent.clone());
    if state.created.resident {
        // It is never done: what it may do, it may do each time it is woken.
        turns = turns.saturating_sub(state.woken.turns);
        calls = calls.saturating_sub(state.woken.calls);
    }
    let own = Totals { tasks: 1, turns, calls, spent };
    exceeded(&state.created.limits, &own, standing.prices).or_else(|| {
        let mut scopes = standing.scopes.iter();
        scopes.find_map(|scope| exceeded(&scope.limits, &scope.totals, standing.prices))
    })
}

/// The limit that one of these trees has reached.
pub(crate) fn used_up(trees: &[Arc<Tree>], prices: &PriceTable) -> Option<LimitReached> {
    trees
        .iter()
        .map(|tree| tree.scope())
        .find_map(|scope| exceeded(&scope.limits, &scope.totals, prices))
}

/// What is left for a task: of its own limits, and of those of the trees it belongs to. Also
/// whether it may dispatch anybody.
pub(crate) fn left(
    state: &TaskState,
    trees: &[Arc<Tree>],
    prices: &PriceTable,
    now: DateTime<Utc>,
) -> (TaskLimits, DispatchPermission) {
    let mut left = TaskLimits {
        answer_tokens_max: state.created.limits.answer_tokens_max,
        wall_clock_s_max: deadline(state).and_then(|deadline| {
            let left = (deadline - now).num_milliseconds().max(1).unsigned_abs().div_ceil(1000);
            NonZeroU32::new(u32::try_from(left).unwrap_or(u32::MAX))
        }),
        ..TaskLimits::default()
    };
    let mut dispatches = DispatchPermission::Allowed;
    for tree in trees {
        let Scope { limits, totals } = tree.scope();
        let cost = cost(&totals.spent, prices).map_or(u64::MAX, |cost| cost.nano_usd);
        lower(&mut left.turns_max, rest(limits.turns_max, totals.turns));
        lower(&mut left.tool_calls_max, rest(limits.tool_calls_max, totals.calls));
        lower(&mut left.tokens_max, rest_of_many(limits.tokens_max, totals.tokens()));
        lower(&mut left.cost_nano_usd_max, rest_of_many(limits.cost_nano_usd_max, cost));
        lower(&mut left.fan_out_max, limits.fan_out_max);
        // It is one of them itself, here and there.
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

/// What is left of a limit; never nothing, which would mean no limit.
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
    match cost(&totals.spent, prices) {
        Ok(cost) if cost.nano_usd < max.get() => None,
        Ok(_) => Some(LimitReached::Cost { max_nano_usd: max.get() }),
        Err(model) => Some(LimitReached::PriceUnknown { model }),
    }
}

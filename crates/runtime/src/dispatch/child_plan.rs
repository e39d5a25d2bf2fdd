//! Plans a child task from a target: agent, model, tools, runner and limits.
//!
//! A child's permissions are at most its caller's: no runner the caller could not use, no more time. Its tools
//! are in `child_tools`.

use antiphon_core::port::{Agents, PromptSource};
use antiphon_core::{
    AgentDefinition, AgentRef, CallableAgents, ContextScope, Executor, ExecutorHint, HistoryRef,
    RunnerConfig, Runtime, SessionId, Target, TaskCreated, TaskLimits, ToolPolicy,
};
use chrono::{DateTime, Utc};

use crate::budget::tree_usage::Tree;
use crate::deps::RuntimeDeps;
use crate::dispatch::child_tools::{ChildTools, LeftOut};
use crate::dispatch::refusal::DispatchRefusal;
use crate::inbox::admission::KNOWN_SHOWN_MAX;
use crate::runner::choose_runner;
use crate::task::limits::{self, LimitReached};
use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::state::TaskState;
use crate::task::step::output;

/// Agent name of children that are defined by the call itself.
pub const AD_HOC: &str = "ad_hoc";

/// What the call says for all its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DispatchTerms<'a> {
    pub(crate) context: ContextScope,
    pub(crate) executor: &'a ExecutorHint,
    pub(crate) tools: &'a ToolPolicy,
}

/// The calling task.
pub(crate) struct CallingTask<'a> {
    pub(crate) deps: &'a RuntimeDeps,
    pub(crate) time: &'a DeadlineClock,
    pub(crate) agents: &'a dyn Agents,
    pub(crate) state: &'a TaskState,
    /// End of the caller's history for children that inherit it.
    pub(crate) history: HistoryRef,
    /// When the caller's time is over.
    pub(crate) deadline: Option<DateTime<Utc>>,
}

impl CallingTask<'_> {
    /// Plans the task for a target.
    pub(crate) fn plan(
        &self,
        target: &Target,
        terms: DispatchTerms<'_>,
    ) -> Result<(TaskCreated, Vec<LeftOut>), DispatchRefusal> {
        let created = &self.state.created;
        let named = self.definition(&target.agent)?;
        let definition = named.as_deref();
        let agent = definition.map_or(AD_HOC, |definition| definition.name.as_str());
        let own_model = definition.and_then(|definition| definition.model.clone());
        let fallbacks = match (&own_model, definition) {
            (Some(_), Some(definition)) => definition.fallbacks.clone(),
            _ => created.fallbacks.clone(),
        };
        let model = own_model.or_else(|| created.model.clone());
        let system_prompt = match &target.agent {
            AgentRef::AdHoc { system_prompt, .. } => Some(PromptSource::AdHoc(system_prompt)),
            AgentRef::Named { .. } => definition.map(PromptSource::Named),
        };
        let own_schema = definition.and_then(|definition| definition.output_schema.clone());
        let output_schema = target.output_schema.clone().or(own_schema);
        if let Some(schema) = &output_schema {
            output::check_schema(schema).map_err(|reason| DispatchRefusal::BadSchema { reason })?;
        }
        let policy = target.tools.as_ref().unwrap_or(terms.tools);
        let ChildTools { tools, external, agents, left_out } =
            self.child_tools(definition, &target.agent, policy, terms.context)?;
        let limits = self.limits(definition, target);
        let child = TaskCreated {
            parent: Some(self.state.task_id.clone()),
            root: Some(created.root.clone().unwrap_or_else(|| self.state.task_id.clone())),
            depth: created.depth + 1,
            history: match terms.context {
                ContextScope::Independent | ContextScope::Shared => None,
                ContextScope::Inherited => Some(self.history.clone()),
            },
            model,
            fallbacks,
            system_prompt: system_prompt
                .map(|system_prompt| self.agents.system_prompt(system_prompt))
                .unwrap_or_default(),
            tools,
            parallel_tools: definition.map_or_else(Vec::new, |it| it.parallel_tools.clone()),
            external_tools: external,
            agents,
            runner: self.runner(definition, agent, target, terms.executor)?,
            boot_time: self.deps.boot_time(&limits),
            limits,
            output_schema,
            payer: created.payer.clone(),
            route: created.route.clone(),
            followed: created.followed,
            access: self.state.access.of_child(),
            ..TaskCreated::new(agent, SessionId::from(self.deps.ids.next()))
        };
        self.check_model(&child)?;
        Ok((child, left_out))
    }

    fn definition(
        &self,
        agent: &AgentRef,
    ) -> Result<Option<std::sync::Arc<AgentDefinition>>, DispatchRefusal> {
        let may_call = &self.state.created.agents;
        let (name, label) = match agent {
            AgentRef::Named { agent_id } => (Some(agent_id.trim()), format!("`{agent_id}`")),
            AgentRef::AdHoc { .. } => (None, "an ad-hoc agent".to_owned()),
        };
        if let CallableAgents::Only(allowed) = may_call
            && !may_call.allows(name)
        {
            return Err(DispatchRefusal::MayNotCall { agent: label, allowed: allowed.clone() });
        }
        let Some(name) = name else { return Ok(None) };
        let found = self.agents.find(name);
        let known = || {
            let all = self.agents.list();
            all.iter().map(|known| known.name.to_string()).take(KNOWN_SHOWN_MAX).collect()
        };
        let unknown = || DispatchRefusal::UnknownAgent { agent: name.to_owned(), known: known() };
        found.ok_or_else(unknown).map(Some)
    }

    /// The child's own limits, and no more time than the caller has.
    fn limits(&self, definition: Option<&AgentDefinition>, target: &Target) -> TaskLimits {
        let own = definition.map(|definition| definition.limits).unwrap_or_default();
        let left = self.deadline.map(|deadline| {
            // Rounded up: the caller's end cancels its children.
            limits::seconds_left(self.time.left(deadline))
        });
        let left = left.and_then(std::num::NonZeroU32::new);
        let given = [own.wall_clock_s_max, target.timeout_s, left];
        TaskLimits { wall_clock_s_max: given.into_iter().flatten().min(), ..own }
    }

    fn check_model(&self, child: &TaskCreated) -> Result<(), DispatchRefusal> {
        let runner = child.runner.as_ref().map(|runner| runner.kind.as_str());
        let known = self.deps.runners.iter().find(|known| Some(known.kind()) == runner);
        if known.is_some_and(|known| !known.uses_run_provider()) {
            return Ok(());
        }
        let refuse =
            |reason| DispatchRefusal::NoModel { agent: format!("`{}`", child.agent), reason };
        let model = child.model.as_ref().ok_or_else(|| refuse("no model is set".to_owned()))?;
        let models = &self.deps.models;
        models.provider(model, &child.fallbacks, child.route.as_ref()).map(drop).map_err(refuse)
    }

    /// The runner of the child; `None` is this process.
    fn runner(
        &self,
        definition: Option<&AgentDefinition>,
        agent: &str,
        target: &Target,
        usual: &ExecutorHint,
    ) -> Result<Option<RunnerConfig>, DispatchRefusal> {
        let refuse = |reason: String| {
            Err(DispatchRefusal::NoExecutor { agent: format!("`{agent}`"), reason })
        };
        let runtimes = definition.map_or(&[] as &[_], |definition| &definition.runtimes);
        let wishes: Vec<Runtime> = match target.executor.as_ref().unwrap_or(usual) {
            ExecutorHint::Force(executor) => {
                let forced = match executor {
                    Executor::Local => Runtime::Local,
                    Executor::Remote { runner } => Runtime::Runner(runner.clone()),
                };
                let fits = runtimes.is_empty()
                    || runtimes.iter().any(|runtime| runtime.kind() == forced.kind());
                if !fits {
                    let kinds: Vec<&str> = runtimes.iter().map(Runtime::kind).collect();
                    let (kinds, kind) = (kinds.join(", "), forced.kind().to_owned());
                    return refuse(format!("it runs in {kinds}, but the call asks for {kind}"));
                }
                vec![forced]
            }
            ExecutorHint::Auto => match (&self.state.created.runner, runtimes) {
                (Some(runner), []) => vec![Runtime::Runner(runner.clone())],
                (None, []) => vec![Runtime::Local],
                (_, runtimes) => runtimes.to_vec(),
            },
        };
        // Never more: an agent must not start a runner that neither gate nor sandbox bounds.
        let unbound = |wish: &Runtime| {
            let mut runners = self.deps.runners.iter();
            runners.any(|known| known.kind() == wish.kind() && known.is_unrestricted())
        };
        if let Some(wish) = wishes.iter().find(|wish| unbound(wish)) {
            return refuse(format!("{}: only a user may start it", wish.kind()));
        }
        if !self.state.access.is_permitted()
            && let Some(wish) = wishes.iter().find(|wish| **wish != Runtime::Local)
        {
            let kind = wish.kind();
            return refuse(format!(
                "{kind}: no runner keeps it from writing before the plan is accepted"
            ));
        }
        let Some(own) = &self.state.created.runner else {
            return choose_runner::choose(&wishes, &self.deps.runners).or_else(refuse);
        };
        // Never more: a caller in a runner cannot start children outside of it or with another config.
        if !wishes.iter().any(|wish| wish.kind() == own.kind) {
            let kinds: Vec<&str> = wishes.iter().map(Runtime::kind).collect();
            let kinds = kinds.join(", ");
            return refuse(format!("{kinds}: the caller runs in {} and cannot leave it", own.kind));
        }
        let own = [Runtime::Runner(own.clone())];
        choose_runner::choose(&own, &self.deps.runners).or_else(refuse)
    }
}

/// Checks depth and fan-out for `more` children. The number of tasks is reserved separately.
pub(crate) fn check_depth_and_fan_out(
    state: &TaskState,
    trees: &[std::sync::Arc<Tree>],
    running_children: usize,
    more: usize,
) -> Result<(), LimitReached> {
    let depth = state.created.depth + 1;
    for tree in trees {
        let root = tree.depth == 0;
        let max = tree.limits.depth_max.map(std::num::NonZeroU32::get);
        if let Some(max) = max.or(root.then_some(limits::DEPTH_DEFAULT))
            && depth - tree.depth > max
        {
            return Err(LimitReached::Depth { max });
        }
        let max = tree.limits.fan_out_max.map(std::num::NonZeroU32::get);
        let wanted = u32::try_from(running_children + more).unwrap_or(u32::MAX);
        if let Some(max) = max.or(root.then_some(limits::FAN_OUT_DEFAULT))
            && wanted > max
        {
            return Err(LimitReached::FanOut { max });
        }
    }
    Ok(())
}

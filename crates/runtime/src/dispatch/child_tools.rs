//! The tools of a child.
//!
//! | child               | its own tools                                          |
//! |---------------------|--------------------------------------------------------|
//! | a defined agent     | those of its definition; without a list, every tool    |
//! | an ad-hoc agent     | those that the call names, at most its caller's        |
//!
//! The policy of the call lends tools of the caller's client beside them: all, these or none. It takes none of the
//! child's own away. Whatever tools a child has, the gate judges each call, with permissions that are at most its
//! caller's. What the child was to have and does not get is returned, for the result of the call.

use std::sync::Arc;

use antiphon_core::{
    AgentDefinition, AgentRef, CONTROL_REQUEST, CallableAgents, ContextScope, LeftOutTool, TaskId,
    Tool, ToolPolicy,
};

use crate::dispatch::call_agent::CALL_AGENT;
use crate::dispatch::child_plan::CallingTask;
use crate::dispatch::refusal::DispatchRefusal;
use crate::dispatch::supervisor_tools;
use crate::inbox::peer_tools;
use crate::task::step::output::FINAL;
use crate::task::step::{person_tools, tools};

const NOT_HERE: &str = "there is no such tool here";
const NOT_LENT: &str = "it is a tool of your client, and the call does not lend it";
const NOT_YOURS: &str = "you do not have it, and an ad-hoc agent has at most your tools";
const NOT_OF_CLIENT: &str =
    "only tools of your client are lent, and it is not among the agent's own";

/// What a child may use.
pub(crate) struct ChildTools {
    /// Names of its tools; `None` is every tool.
    pub(crate) tools: Option<Vec<String>>,
    /// The client's tools that it borrows.
    pub(crate) external: Vec<Arc<Tool>>,
    /// Agents it may call.
    pub(crate) agents: CallableAgents,
    pub(crate) left_out: Vec<LeftOut>,
}

/// A tool that a child was to have and does not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) tool: String,
    pub(crate) reason: &'static str,
}

impl LeftOut {
    pub(crate) fn of_task(&self, task_id: &TaskId) -> LeftOutTool {
        let Self { tool, reason } = self;
        LeftOutTool { task_id: task_id.clone(), tool: tool.clone(), reason: (*reason).to_owned() }
    }
}

impl CallingTask<'_> {
    /// What the child of a call may use.
    pub(crate) fn child_tools(
        &self,
        definition: Option<&AgentDefinition>,
        agent: &AgentRef,
        policy: &ToolPolicy,
        context: ContextScope,
    ) -> Result<ChildTools, DispatchRefusal> {
        let exact: &[String] = match policy {
            ToolPolicy::Exact { tools } => tools,
            ToolPolicy::Inherit | ToolPolicy::None => &[],
        };
        self.check_existing(exact)?;
        self.check_lent(exact)?;
        let (external, mut left_out) = (self.lent(policy), Vec::new());
        let mut own = match (agent, definition.and_then(|definition| definition.tools.as_ref())) {
            (AgentRef::Named { .. }, Some(own)) => self.defined(own, &external, &mut left_out),
            (AgentRef::Named { .. }, None) => {
                let agents = self.callable(definition, agent);
                return Ok(self.every(exact, external, agents, context));
            }
            (AgentRef::AdHoc { tools: Some(own), .. }, _) => {
                self.check_existing(own)?;
                self.ad_hoc(own, &external, &mut left_out)
            }
            (AgentRef::AdHoc { tools: None, .. }, _) => {
                if *policy == ToolPolicy::Inherit {
                    let (tools, agents) = (self.inherited(), self.callable(definition, agent));
                    return Ok(ChildTools { tools, external, agents, left_out });
                }
                self.callers_tools()
            }
        };
        own.extend(external.iter().map(|tool| tool.name.clone()));
        for name in exact.iter().filter(|name| !own.contains(name) && *name != CALL_AGENT) {
            leave_out(&mut left_out, name, NOT_OF_CLIENT);
        }
        let agents = self.callable(definition, agent);
        Ok(ChildTools { tools: Some(own), external, agents, left_out })
    }

    /// What a defined agent without a list of tools may use: every tool, as when a user starts it.
    fn every(
        &self,
        exact: &[String],
        external: Vec<Arc<Tool>>,
        agents: CallableAgents,
        context: ContextScope,
    ) -> ChildTools {
        let (here, mut left_out) = (self.deps.tools.tools(), Vec::new());
        let known = |name: &String| has(&here, name) || has(&external, name) || is_ours(name);
        for name in exact.iter().filter(|name| !known(name)) {
            leave_out(&mut left_out, name, NOT_OF_CLIENT);
        }
        // An agent that takes over the task finds its client's tools there: without a list it would have all of them.
        let clients = &self.state.created.external_tools;
        let has_too_many = context == ContextScope::Shared && external.len() < clients.len();
        let tools = has_too_many.then(|| {
            let ours = here
                .iter()
                .filter(|tool| tool.name != CONTROL_REQUEST && !has(clients, &tool.name));
            let named = ours.chain(&external).map(|tool| tool.name.clone());
            named.chain([person_tools::ASK_USER, person_tools::TODO].map(str::to_owned)).collect()
        });
        ChildTools { tools, external, agents, left_out }
    }

    /// The own tools of a defined agent. One that is not here now may be later: tools of a server come
    /// and go.
    fn defined(
        &self,
        own: &[String],
        lent: &[Arc<Tool>],
        left_out: &mut Vec<LeftOut>,
    ) -> Vec<String> {
        let here = self.deps.tools.tools();
        let clients = &self.state.created.external_tools;
        let mut tools = Vec::new();
        for name in own.iter().filter(|name| !has(lent, name)) {
            if has(clients, name) && !has(&here, name) {
                leave_out(left_out, name, NOT_LENT);
                continue;
            }
            if !has(&here, name) && !is_ours(name) {
                leave_out(left_out, name, NOT_HERE);
            }
            tools.push(name.clone());
        }
        tools
    }

    /// The own tools of an ad-hoc agent.
    fn ad_hoc(
        &self,
        own: &[String],
        lent: &[Arc<Tool>],
        left_out: &mut Vec<LeftOut>,
    ) -> Vec<String> {
        let mine = self.callers_tools();
        let mut tools = Vec::new();
        for name in own.iter().filter(|name| !has(lent, name) && *name != CALL_AGENT) {
            if mine.contains(name) {
                tools.push(name.clone());
            } else {
                leave_out(left_out, name, NOT_YOURS);
            }
        }
        tools
    }

    /// The caller's list of tools, without those of ours that its client has replaced: the caller does not have them.
    fn inherited(&self) -> Option<Vec<String>> {
        let created = &self.state.created;
        let here = self.deps.tools.tools();
        let mut tools = created.tools.clone()?;
        tools.retain(|name| !(has(&here, name) && has(&created.external_tools, name)));
        Some(tools)
    }

    /// Names of the caller's tools, without those of its client.
    fn callers_tools(&self) -> Vec<String> {
        let created = &self.state.created;
        let mine = tools::usable(created, &*self.deps.tools);
        let mut names: Vec<String> = mine.iter().map(|tool| tool.name.clone()).collect();
        names.extend(person_tools::usable(created).map(str::to_owned));
        names
    }

    /// A name that no tool has is an error of the call, as in a request of a client.
    fn check_existing(&self, names: &[String]) -> Result<(), DispatchRefusal> {
        let (here, clients) = (self.deps.tools.tools(), &self.state.created.external_tools);
        let exists = |name: &str| is_ours(name) || has(&here, name) || has(clients, name);
        match names.iter().find(|tool| !exists(tool)) {
            Some(tool) => {
                let mut known: Vec<String> = here.iter().map(|tool| tool.name.clone()).collect();
                known.extend(clients.iter().map(|tool| tool.name.clone()));
                Err(DispatchRefusal::NoSuchTool { tool: tool.clone(), known })
            }
            None => Ok(()),
        }
    }

    fn check_lent(&self, names: &[String]) -> Result<(), DispatchRefusal> {
        if names.is_empty() {
            return Ok(());
        }
        let mut known = self.callers_tools();
        let external = self.state.created.external_tools.iter();
        known.extend(external.map(|tool| tool.name.clone()));
        known.push(CALL_AGENT.to_owned());
        match names.iter().find(|tool| !known.contains(tool)) {
            Some(tool) => Err(DispatchRefusal::UnknownTool { tool: tool.clone(), known }),
            None => Ok(()),
        }
    }

    /// The tools of the caller's client that the policy lends. One that has replaced ours stays with the caller.
    fn lent(&self, policy: &ToolPolicy) -> Vec<Arc<Tool>> {
        let created = &self.state.created;
        if created.keeps_client_tools {
            return Vec::new();
        }
        let here = self.deps.tools.tools();
        let mine = created.external_tools.iter().filter(|tool| tools::may_use(created, &tool.name));
        let mine = mine.filter(|tool| !has(&here, &tool.name));
        match policy {
            ToolPolicy::Inherit => mine.cloned().collect(),
            ToolPolicy::None => Vec::new(),
            ToolPolicy::Exact { tools } => {
                mine.filter(|tool| tools.contains(&tool.name)).cloned().collect()
            }
        }
    }

    /// The agents a child may call: those of its definition. An ad-hoc agent whose tools are named needs
    /// `call_agent` among them.
    fn callable(&self, definition: Option<&AgentDefinition>, agent: &AgentRef) -> CallableAgents {
        match (definition, agent) {
            (Some(definition), _) => definition.agents.clone(),
            (None, AgentRef::AdHoc { tools: Some(tools), .. })
                if !tools.iter().any(|tool| tool == CALL_AGENT) =>
            {
                CallableAgents::default()
            }
            (None, _) => self.state.created.agents.clone(),
        }
    }
}

/// Whether the orchestrator itself answers calls of a tool of this name. Such tools depend on more than the list.
/// Whether a tool is one of the runtime.
pub(crate) fn is_ours(name: &str) -> bool {
    name == FINAL
        || supervisor_tools::is_ours(name)
        || peer_tools::is_peer_tool(name)
        || peer_tools::is_reply_tool(name)
        || person_tools::is_ours(name)
}

fn has(tools: &[Arc<Tool>], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

fn leave_out(left_out: &mut Vec<LeftOut>, tool: &str, reason: &'static str) {
    if !left_out.iter().any(|left| left.tool == tool) {
        left_out.push(LeftOut { tool: tool.to_owned(), reason });
    }
}

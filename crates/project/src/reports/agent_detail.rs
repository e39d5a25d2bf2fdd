//! Agent definitions as clients see them.

use antiphon_agent_files::{AgentCatalog, AgentFileEntry, FolderOwner, Problem};
use antiphon_api::{AgentDetail, AgentOrigin, AgentProblem, ImportedFrom};
use antiphon_core::{AgentDefinition, RunnerConfig, Runtime};

use crate::request::task_factory::DefinedAgent;

/// How much of a definition is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentScope<'a> {
    /// Without the context: an entry of a list.
    Summary,
    /// With the context, and with the names of these tools of the project.
    Full(&'a [String]),
}

impl From<AgentFileEntry> for DefinedAgent {
    fn from(entry: AgentFileEntry) -> Self {
        Self {
            definition: entry.definition,
            origin: match entry.origin {
                FolderOwner::Project => AgentOrigin::Project,
                FolderOwner::User => AgentOrigin::User,
            },
            path: entry.path.display().to_string(),
            shadows: entry.shadows.iter().map(|path| path.display().to_string()).collect(),
            fault: entry.fault.map(|fault| format!("line {}: {}", fault.line, fault.reason)),
            imported: entry.imported.map(|imported| ImportedFrom {
                program: imported.format.to_owned(),
                dropped: imported.dropped,
            }),
        }
    }
}

impl DefinedAgent {
    /// The definition as clients see it. `live` says whether the agent is started.
    pub fn detail(&self, live: bool, scope: AgentScope<'_>) -> AgentDetail {
        let AgentDefinition { name, description, model, fallbacks, tools, agents, .. } =
            &*self.definition;
        let definition = &self.definition;
        let (context, available_tools) = match scope {
            AgentScope::Summary => (None, None),
            AgentScope::Full(tools) => (Some(definition.context.clone()), Some(tools.to_vec())),
        };
        AgentDetail {
            name: name.clone(),
            description: description.clone(),
            profile: definition.profile,
            model: model.clone(),
            fallbacks: fallbacks.clone(),
            tools: tools.clone(),
            parallel_tools: definition.parallel_tools.clone(),
            agents: agents.clone(),
            runtimes: definition.runtimes.iter().map(runtime).collect(),
            limits: definition.limits,
            intents: definition.intents.keys().cloned().collect(),
            silent_intents: definition.silent_intents.clone(),
            output_schema: definition.output_schema.clone(),
            origin: self.origin,
            path: self.path.clone(),
            shadows: self.shadows.clone(),
            fault: self.fault.clone(),
            imported: self.imported.clone(),
            live,
            context,
            available_tools,
        }
    }
}

/// Files and folders of a catalog that are not valid.
pub fn agent_problems(catalog: &AgentCatalog) -> Vec<AgentProblem> {
    catalog.problems().into_iter().map(problem).collect()
}

fn problem(problem: Problem) -> AgentProblem {
    let Problem { path, line, reason, in_force, .. } = problem;
    AgentProblem { path: path.display().to_string(), line, reason, in_force }
}

fn runtime(runtime: &Runtime) -> RunnerConfig {
    match runtime {
        Runtime::Local => RunnerConfig::new(runtime.kind()),
        Runtime::Runner(runner) => runner.clone(),
    }
}

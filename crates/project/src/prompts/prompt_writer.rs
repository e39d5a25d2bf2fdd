//! Writes the system prompts of a project's agents: who the agent is, the rules of the project and of the user, and
//! its environment block, in this order.

use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::port::{Clock, PromptSource, SystemClock};
use antiphon_core::{ModelRef, without_environment};
use antiphon_runtime::ApprovalPolicy;

use crate::base_prompts::BasePrompts;
use crate::environment_block::{EnvironmentBlock, ToolsOf};
use crate::instruction_files::{self, InstructionFiles};
use crate::project::Project;
use crate::settings::UserSettings;
use crate::toolset::PermissionOverrides;

/// Writes the system prompts of a project's agents.
#[derive(Debug)]
pub struct PromptWriter {
    rules: InstructionFiles,
    environment: EnvironmentBlock,
    bases: BasePrompts,
    /// The user's base prompt of ad-hoc agents. It is read each time.
    ad_hoc_file: PathBuf,
}

impl PromptWriter {
    /// A writer for agents with these permissions and rules.
    pub fn new(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        approvals: ApprovalPolicy,
        rules: &InstructionFiles,
    ) -> Arc<Self> {
        let own_prompts = settings.path.with_file_name(BasePrompts::FOLDER);
        Arc::new(Self {
            rules: rules.clone(),
            environment: EnvironmentBlock::of(project, settings, overrides, approvals, rules),
            bases: BasePrompts::load(&own_prompts, &settings.environment.warnings),
            ad_hoc_file: settings.path.with_file_name(instruction_files::AD_HOC_BASE),
        })
    }

    /// The system prompt of a task without an agent, for a model.
    pub fn default_prompt(&self, model: &ModelRef) -> String {
        self.of_text(self.bases.of(model))
    }

    /// The system prompt that begins with `text`. An environment block that it ends with, which another system wrote, is
    /// replaced.
    pub fn of_text(&self, text: &str) -> String {
        self.written(text, ToolsOf::Antiphon)
    }

    fn written(&self, text: &str, tools: ToolsOf) -> String {
        let text = without_environment(text);
        let mut prompt = instruction_files::with_rules(text.trim(), &self.rules);
        prompt.push_str("\n\n");
        prompt.push_str(&self.environment.block(SystemClock.now(), tools));
        prompt
    }

    /// The system prompt of an agent. A defined agent's context replaces the default prompt; the prompt of an ad-hoc
    /// agent follows the base prompt: that of the user, or the default one.
    pub fn of_agent(&self, source: PromptSource<'_>) -> String {
        match source {
            PromptSource::Named(agent) => {
                let program = agent.runtimes.first().is_some_and(|it| it.kind() == "terminal");
                let tools = if program { ToolsOf::Program } else { ToolsOf::Antiphon };
                self.written(&agent.context, tools)
            }
            PromptSource::AdHoc(own) => {
                let base = instruction_files::ad_hoc_base(&self.ad_hoc_file);
                let base = base.as_deref().unwrap_or_else(|| self.bases.default_text());
                self.of_text(&format!("{}\n\n{}", base.trim(), own.trim()))
            }
        }
    }
}

//! The tool `run_skill`: works through a skill in a child that knows the conversation of its caller, so that the steps of
//! the skill do not fill that conversation.
//!
//! The child is an ad-hoc agent whose prompt is the skill, as the tool `skill` returns it: with its source, and only if
//! the task may call that tool. Its tools are at most its caller's.

use std::sync::{Arc, LazyLock};

use antiphon_core::port::GateVerdict;
use antiphon_core::{
    AgentRef, ContextScope, ExecutorHint, InputBlock, Invocation, Join, RawJson, SKILL, Target,
    Tool, ToolArguments, ToolCallBlock, ToolPolicy, UserMessage, ValidInvocation,
};
use serde::Deserialize;
use serde_json::json;

use crate::dispatch::refusal::DispatchRefusal;
use crate::inbox::peer_tools::tool;
use crate::task::step::TaskRun;
use crate::task::step::tools;

/// Name of the tool.
pub(crate) const RUN_SKILL: &str = "run_skill";

/// The tool, for tasks that have the tool `skill`.
pub(crate) static TOOL: LazyLock<Option<Arc<Tool>>> = LazyLock::new(|| {
    let text = |about: &str| json!({ "type": "string", "description": about });
    tool((
        RUN_SKILL,
        "Has a child work through a skill of `skill` and returns its result. It knows this conversation, and its steps do \
         not fill it.",
        json!({
            "name": text("Name of the skill."),
            "prompt": text("What to do with it."),
        }),
        json!(["name", "prompt"]),
    ))
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: String,
    prompt: String,
}

impl TaskRun {
    /// Whether the task has skills, and may make an agent that works through one.
    pub(crate) fn may_run_skills(&self) -> bool {
        let created = &self.state.created;
        let usable = || tools::usable(created, &*self.deps.tools);
        created.agents.allows(None) && usable().iter().any(|tool| tool.name == SKILL)
    }

    /// What a call of the tool dispatches.
    pub(crate) async fn skill_invocation(
        &self,
        call: &ToolCallBlock,
        arguments: &RawJson,
    ) -> Result<ValidInvocation, DispatchRefusal> {
        let refuse = |reason: String| DispatchRefusal::Arguments { reason };
        let Arguments { name, prompt } =
            arguments.to().map_err(|error| refuse(error.to_string()))?;
        if prompt.trim().is_empty() {
            return Err(refuse("`prompt`: it is empty: say what to do".to_owned()));
        }
        if !self.may_run_skills() {
            return Err(refuse("you have no skills to run".to_owned()));
        }
        let system_prompt = self.load_skill(call, &name).await?;
        let now = self.services.deps.clock.now();
        let target = Target {
            agent: AgentRef::AdHoc { system_prompt, tools: None },
            message: UserMessage::text(prompt, now),
            executor: None,
            output_schema: None,
            timeout_s: None,
            tools: None,
        };
        let invocation = Invocation {
            targets: vec![target],
            context: ContextScope::Inherited,
            join: Join::Single,
            executor: ExecutorHint::Auto,
            tools: ToolPolicy::Inherit,
        };
        Ok(invocation.validate()?)
    }

    /// The text of a skill, if the task may load it without a question.
    async fn load_skill(
        &self,
        call: &ToolCallBlock,
        name: &str,
    ) -> Result<String, DispatchRefusal> {
        let refuse = |reason: String| DispatchRefusal::Arguments { reason };
        let arguments =
            RawJson::of(&json!({ "name": name })).map_err(|error| refuse(error.to_string()))?;
        let load = ToolCallBlock {
            name: SKILL.to_owned(),
            arguments: ToolArguments::Object(arguments.clone()),
            ..call.clone()
        };
        match self.verdict(&load, &arguments) {
            GateVerdict::Allow => {}
            GateVerdict::Deny { reason } => return Err(refuse(reason)),
            GateVerdict::Ask { reason, .. } => {
                return Err(refuse(format!("{reason}: call `{SKILL}` instead, which asks")));
            }
        }
        let loaded = tools::run(&*self.deps.tools, &load, self.context(&load, None)).await;
        let loaded = loaded.ok_or_else(|| refuse("it was canceled".to_owned()))?;
        let text = loaded.content.iter().filter_map(|block| match block {
            InputBlock::Text(text) => Some(text.text.as_str()),
            InputBlock::Image(_) => None,
        });
        let text = text.collect::<Vec<_>>().join("\n");
        if loaded.is_error { Err(refuse(text)) } else { Ok(text) }
    }
}

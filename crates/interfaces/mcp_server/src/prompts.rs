//! Prompts: one for each agent. It has the client's model give a message to the agent. The system prompt of the agent
//! stays here.

use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use crate::agent_offer::AgentOffer;
use crate::failure::Failure;

const MESSAGE: &str = "message";

/// The prompts of a caller.
pub(crate) fn prompts(agents: &[AgentOffer]) -> Vec<Prompt> {
    let prompt = |offer: &AgentOffer| {
        let message = PromptArgument::new(MESSAGE)
            .with_description("What the agent is to do.")
            .with_required(true);
        Prompt::new(offer.tool.clone(), Some(offer.description.clone()), Some(vec![message]))
            .with_title(format!("Ask {}", offer.name))
    };
    agents.iter().map(prompt).collect()
}

/// The prompt of an agent, with its argument.
pub(crate) fn prompt(
    agents: &[AgentOffer],
    params: &GetPromptRequestParams,
) -> Result<GetPromptResult, Failure> {
    let agent = agents.iter().find(|offer| offer.tool == params.name).ok_or_else(|| {
        Failure::invalid(format!("there is no prompt `{}`: see `prompts/list`", params.name))
    })?;
    let message = params.arguments.as_ref().and_then(|arguments| arguments.get(MESSAGE));
    let message = message.and_then(Value::as_str).filter(|message| !message.trim().is_empty());
    let message = message.ok_or_else(|| {
        Failure::invalid(format!("`{MESSAGE}`: it is missing: say what the agent is to do"))
    })?;
    let text = format!(
        "Call the tool `{}` with this message, and tell me the result:\n\n{message}",
        agent.tool
    );
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(result.with_description(agent.description.clone()))
}

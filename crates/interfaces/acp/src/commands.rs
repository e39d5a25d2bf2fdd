//! Commands that are prompts in files, as the editor lists and sends them.

use antiphon_project::prompt_commands::{ListedCommand, expand_typed};
use serde_json::json;

use crate::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, Error,
    SessionUpdate, TextContent, UnstructuredCommandInput,
};
use crate::session::Session;

/// The commands of a session, for the editor; `None` when there are none.
pub(crate) fn update(session: &Session) -> Option<(String, SessionUpdate)> {
    if session.commands.is_empty() {
        return None;
    }
    let commands = session.commands.iter().map(available).collect();
    let update = SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands));
    Some((session.id.to_string(), update))
}

fn available(listed: &ListedCommand) -> AvailableCommand {
    let input = listed.command.hint.as_ref().map(|hint| {
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.clone()))
    });
    AvailableCommand::new(listed.name.clone(), listed.command.description.clone()).input(input)
}

/// The content of a prompt, with a command of the session as its prompt. Any other text stays.
pub(crate) fn expanded(
    session: &Session,
    mut content: Vec<ContentBlock>,
) -> Result<Vec<ContentBlock>, Error> {
    let Some(ContentBlock::Text(text)) = content.first() else { return Ok(content) };
    let Some(typed) = text.text.trim_start().strip_prefix('/') else { return Ok(content) };
    let name = typed.split_whitespace().next().unwrap_or_default();
    let prompt = match expand_typed(&session.commands, name, &text.text) {
        None => return Ok(content),
        Some(Ok(prompt)) => prompt,
        Some(Err(reason)) => {
            return Err(Error::invalid_params().data(json!({ "details": reason })));
        }
    };
    content[0] = ContentBlock::Text(TextContent::new(prompt));
    Ok(content)
}

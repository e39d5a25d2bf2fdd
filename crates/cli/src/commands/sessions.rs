//! `antiphon sessions`: conversations.

use std::fmt::Write as _;
use std::path::PathBuf;

use antiphon_core::{AssistantBlock, InputBlock, Message, Session};
use clap::Subcommand;

use crate::failure::Failure;
use crate::terminal;

/// Look at conversations.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  antiphon run --save talk.json \"Hello\"
  antiphon sessions show talk.json
  antiphon sessions show --json talk.json | jq .messages")]
pub(crate) enum Sessions {
    /// Check a session file and show what is in it.
    Show {
        /// A session file (version 1).
        file: PathBuf,
        /// Print it as JSON, in the form in which Antiphon saves it.
        #[arg(long)]
        json: bool,
    },
}

impl Sessions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self::Show { file, json } = self;
        let session = antiphon_session_file::load(&file)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let text = if json {
            antiphon_session_file::to_json(&session)
                .map_err(|error| Failure::failed(error.to_string()))?
        } else {
            readable(&session)
        };
        terminal::print(&text);
        Ok(())
    }
}

fn readable(session: &Session) -> String {
    let mut text = format!(
        "session {}, {} messages, {} to {}\n",
        session.id,
        session.messages.len(),
        session.created_at.format("%F %T"),
        session.updated_at.format("%F %T"),
    );
    text.push_str(&conversation(&session.system_prompt, &session.messages));
    text
}

/// What was said, for people.
pub(super) fn conversation(system_prompt: &str, messages: &[Message]) -> String {
    let mut text = String::new();
    if !system_prompt.is_empty() {
        section(&mut text, "system", system_prompt);
    }
    for message in messages {
        match message {
            Message::User(user) => section(&mut text, "user", &inputs(&user.content)),
            Message::Assistant(answer) => {
                let blocks: Vec<String> = answer.content.iter().map(block).collect();
                section(&mut text, "assistant", &blocks.join("\n"));
            }
            Message::ToolResult(result) => {
                let title = if result.is_error { "failed" } else { "result" };
                section(
                    &mut text,
                    &format!("{title} of {}", result.tool_name),
                    &inputs(&result.content),
                );
            }
        }
    }
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n── {title}\n{}", body.trim_end());
}

fn inputs(blocks: &[InputBlock]) -> String {
    let texts: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            InputBlock::Text(text) => text.text.clone(),
            InputBlock::Image(image) => {
                format!("[{}, {} bytes]", image.mime_type(), image.data().len())
            }
        })
        .collect();
    texts.join("\n")
}

fn block(block: &AssistantBlock) -> String {
    match block {
        AssistantBlock::Text(text) => text.text.clone(),
        AssistantBlock::Thinking(thinking) => format!("(thinking) {}", thinking.thinking),
        AssistantBlock::ToolCall(call) => {
            let arguments = call.arguments.object().map_or("(malformed)", |json| json.as_str());
            format!("→ {} {arguments}", call.name)
        }
        AssistantBlock::Opaque(opaque) => format!("[{}]", opaque.kind),
    }
}

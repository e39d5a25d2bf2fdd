//! Agents, commands and MCP servers that people wrote for other programs.
//!
//! Everything here reads text and starts nothing. What cannot be had here is dropped and named, or refused; no
//! result allows more than its source did.
//!
//! | module             | subject                                                                  |
//! |--------------------|--------------------------------------------------------------------------|
//! | `claude_agent`     | agents of Claude Code                                                    |
//! | `opencode_agent`   | agents of opencode                                                       |
//! | `tool_names`       | what their tools are called here                                         |
//! | `model_names`      | what their models are called here                                        |
//! | `agent_text`       | an agent as the text of a file of ours                                   |
//! | `prompt_command`   | commands: prompts in markdown, with places for arguments                 |
//! | `mcp_servers`      | MCP servers of `.mcp.json`, `~/.claude.json` and Codex' `config.toml`    |
//! | `variables`        | `${NAME}` in their texts                                                 |

mod agent_text;
mod claude_agent;
mod fields;
mod mcp_servers;
mod model_names;
mod opencode_agent;
mod prompt_command;
mod tool_names;
mod variables;

pub use agent_text::agent_text;
pub use claude_agent::claude_agent;
pub use mcp_servers::{
    ForeignServer, MCP_FILE_BYTES_MAX, claude_project_servers, codex_servers, json_servers,
};
pub use model_names::{ModelNames, built_in_model};
pub use opencode_agent::opencode_agent;
pub use prompt_command::{
    ARGUMENTS_BYTES_MAX, CommandError, EXPANDED_BYTES_MAX, PromptCommand, split_arguments,
};
pub use variables::{VariableError, expand};

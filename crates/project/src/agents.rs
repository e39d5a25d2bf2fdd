//! What people write in files for agents: agent definitions, commands and skills, found, read, created and imported.

pub mod agent_files;
pub(crate) mod found_files;
pub mod import;
pub mod project_agents;
pub mod prompt_commands;
pub(crate) mod skills;

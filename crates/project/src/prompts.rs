//! System prompts: the text for a family of models, the rules of the project and of the user, and what an agent is
//! told about where and when it works.

pub(crate) mod base_prompts;
pub(crate) mod environment_block;
pub mod first_request;
pub mod instruction_files;
pub mod prompt_writer;

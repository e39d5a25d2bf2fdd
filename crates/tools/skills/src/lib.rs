//! The tool `skill`: instructions that an agent loads when it needs them.
//!
//! Its description lists names and what each is for, in a stable order and bounded; a call returns the text of one, as
//! data with its source, and the files of its folder. It starts nothing and allows nothing. Without skills there is no
//! tool.

mod index;
mod skill_tool;

pub use index::{INDEX_BYTES_MAX, index};
pub use skill_tool::{LoadedSkill, SkillSource, SkillTool};

//! Repositories that commands may change: what git could be made to run or to follow, outside of the sandbox.

pub(crate) mod git_dir;
pub(crate) mod git_programs;
pub(crate) mod gitlink;
pub(crate) mod new_submodule;
pub(crate) mod repository;
pub(crate) mod sweep;

//! Options of every command.

pub(crate) mod project_args;
pub(crate) mod server_args;

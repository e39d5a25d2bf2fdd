//! Options that several commands have.

pub(crate) mod permission_args;
pub(crate) mod project_args;
pub(crate) mod server_args;

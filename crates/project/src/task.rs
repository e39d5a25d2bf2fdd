//! Tasks of a project: built from requests and arguments, found by name, saved as sessions, and run in
//! the worker process of the sandboxed runner.

pub mod environments;
mod gone_process;
pub mod process_environment;
pub mod project_task_factory;
pub(crate) mod registered_processes;
pub mod run_request;
pub mod runners;
pub mod saved_session;
pub mod task_builder;
pub mod task_lookup;
pub mod task_process;
pub mod task_worker;

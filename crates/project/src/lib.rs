//! What a project is, for every interface: settings, agent files, prompts, task building, and the wiring of
//! runtime, tools and runners.
//!
//! This library reads no environment variable, no current folder and no terminal: the binary captures them
//! once as an [`environment::Environment`]. Errors have kinds, not exit codes.

pub mod agent_files;
pub mod background_services;
pub mod control_orders;
pub mod environment;
pub mod error;
pub mod models;
pub mod project;
pub mod prompt;
pub mod restored_journal;
pub mod saved_session;
pub mod server_files;
pub mod settings;
mod spend_limits;
pub mod task_builder;
pub mod task_factory;
pub mod task_lookup;
pub mod task_worker;
pub mod team;
pub mod telemetry_follower;
pub mod toolset;

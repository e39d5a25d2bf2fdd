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
pub mod project_task_factory;
pub mod prompt;
pub mod restored_journal;
pub mod saved_session;
pub mod server_files;
pub mod settings;
mod spend_limits;
pub mod task_builder;
pub mod task_lookup;
pub mod task_worker;
pub mod team;
pub mod telemetry_follower;
pub mod toolset;

// What every interface asks of the orchestrator, without a wire format.
mod arrival;
mod diff;
mod dollars;
mod invocation;
mod invocation_target;
mod on_behalf;
mod presence;
mod principal;
mod request_error;
mod requests;
mod sessions;
mod task_factory;
mod task_request;
mod task_tree;
mod usage;
mod user_input;
mod waiting;

pub use arrival::{render_class, request_deadline};
pub use diff::{CHANGES_MAX, DIFFS_BYTES_MAX, DiffScope, task_diff};
pub use dollars::{dollars, nano_usd};
pub use invocation::{
    Dispatch, INVOCATION_TARGETS_MAX, check_invocation, invocation_results, joined_result,
};
pub use on_behalf::{
    check_message_allowed, check_send_allowed, check_start_allowed, labeled, restrict_to_agent,
};
pub use presence::{LIVE_MAX, agent_presences, live_agents, unknown_agent};
pub use principal::Principal;
pub use request_error::{RequestError, forbidden, invalid_request};
pub use requests::{request_answer, request_status};
pub use sessions::{forked, imported, session_of, session_summary};
pub use task_factory::{DefinedAgent, TaskFactory};
pub use task_request::TaskRequest;
pub use task_tree::{TREE_TASKS_MAX, task_and_descendants};
pub use usage::{USAGE_DAYS_MAX, USAGE_ROWS_MAX, usage_days, usage_report};
pub use user_input::{check_message, parse_blocks, parse_message};
pub use waiting::{Inboxes, WAITING_MAX, waiting};

//! A project, for every interface: settings, agent files, prompts, task building, and the wiring of
//! runtime, tools and runners.
//!
//! This library reads no environment variable, no current folder and no terminal: the binary captures them
//! once as an [`environment::Environment`]. Errors have kinds, not exit codes.
//!
//! | folder           | holds                                                                        |
//! |------------------|------------------------------------------------------------------------------|
//! | `settings/`      | the user's configuration                                                     |
//! | `permissions/`   | the policy of the machine, the user's trust, and paths that stay hidden      |
//! | `agents/`        | agent definitions, commands and skills in files: read, created, imported     |
//! | `prompts/`       | system prompts: base text, rules, and where and when an agent works          |
//! | `models/`        | providers and their layers, from the configuration                           |
//! | `toolset/`       | the tools of agents, their sandbox, and the permission gate in front of them |
//! | `project/`       | the project's folder, its journal, and orchestrators over it                 |
//! | `state/`         | the user's own folder of everything that is believed about a project         |
//! | `task/`          | building, finding and running tasks, here and on runners                     |
//! | `request/`       | requests and control orders, checked and turned into tasks and messages      |
//! | `reports/`       | what clients look at: usage, diffs, live agents, inboxes, sessions           |
//! | `server/`        | what a server has beside its interfaces: schedules, files, spend limits of keys |
//! | `setup/`         | whether everything that is configured works, and the way to a first model    |
//!
//! Modules are used by their own names, without the folder: `antiphon_project::machine_policy`.

mod agents;
pub mod environment;
pub mod error;
pub mod models;
mod permissions;
pub mod project;
mod prompts;
mod reports;
mod request;
mod server;
pub mod session_names;
pub mod settings;
mod setup;
pub mod state;
mod task;
pub mod toolset;

use agents::{found_files, skills};
use permissions::hidden_paths;
use project::machine_clock;
use prompts::{base_prompts, environment_block};
use server::{notifications, spend_limits};

pub use agents::{agent_files, import, project_agents, prompt_commands};
pub use permissions::{machine_policy, permission_overview, trust};
pub use project::journal_restore;
pub use prompts::{first_request, instruction_files, prompt_writer};
pub use reports::agent_detail::{AgentScope, agent_problems};
pub use reports::diff::{CHANGES_MAX, DIFFS_BYTES_MAX, DiffScope, task_diff};
pub use reports::dollars::{dollars, nano_usd};
pub use reports::presence::{
    LIVE_MAX, agent_presences, check_stops_here, idle_agents, listed_agents, live_agents,
    sort_by_name, unknown_agent,
};
pub use reports::queued_interactions::{Inboxes, QUEUED_INTERACTIONS_MAX, queued_interactions};
pub use reports::request_status::{request_answer, request_status};
pub use reports::sessions::{forked, imported, own_sessions, session_of, session_summary};
pub use reports::task_tree::{
    TREE_TASKS_MAX, TreeScope, peer_tasks_below, peers_below, task_and_descendants,
};
pub use reports::usage::{USAGE_DAYS_MAX, USAGE_ROWS_MAX, usage_days, usage_report};
pub use request::arrival::{render_class, request_deadline};
pub use request::images::{
    blocks_json, is_image, prompt_with_files, prompt_with_images, read_image,
};
pub use request::invocation::{
    Dispatch, INVOCATION_TARGETS_MAX, check_invocation, invocation_results, joined_result,
};
pub use request::on_behalf::{
    check_message_allowed, check_send_allowed, check_start_allowed, labeled, restrict_to_agent,
};
pub use request::principal::Principal;
pub use request::request_error::{RequestError, forbidden, invalid_request};
pub use request::task_factory::{DefinedAgent, TaskFactory};
pub use request::task_request::TaskRequest;
pub use request::user_input::{check_message, parse_blocks, parse_message};
pub use request::{control_orders, request_drop};
pub use server::{schedules, server_files, telemetry_follower};
pub use setup::{checks, first_run};
pub use task::{
    environments, process_environment, project_task_factory, run_request, runners, saved_session,
    task_builder, task_lookup, task_process, task_worker,
};

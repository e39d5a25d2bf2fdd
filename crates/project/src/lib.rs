//! A project, for every interface: settings, agent files, prompts, task building, and the wiring of
//! runtime, tools and runners.
//!
//! This library reads no environment variable, no current folder and no terminal: the binary captures them
//! once as an [`environment::Environment`]. Errors have kinds, not exit codes.
//!
//! | folder           | holds                                                                        |
//! |------------------|------------------------------------------------------------------------------|
//! | `settings/`      | the user's configuration                                                     |
//! | `policy/`        | what the administrator of the machine allows, above every setting            |
//! | `agent_files/`   | agent definitions in files: read, created, changed                           |
//! | `environment_block` | what an agent is told about where and when it works                          |
//! | `models/`        | providers and their layers, from the configuration                           |
//! | `project/`       | the project's folder, its journal, and orchestrators over it                 |
//! | `state/`         | the user's own folder of everything that is believed about a project         |
//! | `task/`          | building, finding and running tasks                                          |
//! | `request/`       | requests of clients, checked and turned into tasks and messages              |
//! | `reports/`       | what clients look at: usage, diffs, live agents, inboxes, sessions           |
//! | `schedules/`     | schedules of the user: time, agent and text                                  |
//! | `server/`        | what a server writes beside its interfaces                                   |
//! | `trust/`         | what a project brings and the user has to trust before it has an effect      |
//! | `checks/`        | whether everything that is configured works, and what to do                  |
//! | `control_orders/` | control orders of the file drop: spawn, stop, update                        |

pub mod agent_files;
mod base_prompts;
pub mod checks;
pub mod control_orders;
pub mod environment;
mod environment_block;
pub mod error;
pub mod first_request;
pub mod first_run;
mod found_files;
mod hidden_paths;
pub mod import;
pub mod instruction_files;
mod machine_clock;
pub mod models;
pub mod permission_overview;
pub mod policy;
pub mod project;
pub mod project_agents;
pub mod prompt_commands;
pub mod prompt_writer;
mod reports;
mod request;
pub mod request_drop;
pub mod restored_journal;
pub mod runners;
pub mod schedules;
mod server;
pub mod session_names;
pub mod settings;
mod skills;
mod spend_limits;
pub mod state;
mod task;
pub mod toolset;
pub mod trust;

pub use reports::agent_detail::{AgentScope, agent_problems};
pub use reports::diff::{CHANGES_MAX, DIFFS_BYTES_MAX, DiffScope, task_diff};
pub use reports::dollars::{dollars, nano_usd};
pub use reports::presence::{
    LIVE_MAX, agent_presences, check_stops_here, idle_agents, listed_agents, live_agents,
    sort_by_name, unknown_agent,
};
pub use reports::queued_interactions::{Inboxes, QUEUED_INTERACTIONS_MAX, queued_interactions};
pub use reports::request_status::{request_answer, request_status};
pub use reports::sessions::{forked, imported, session_of, session_summary};
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
pub use server::{server_files, telemetry_follower};
pub use task::{
    environments, process_environment, project_task_factory, run_request, saved_session,
    task_builder, task_lookup, task_process, task_worker,
};

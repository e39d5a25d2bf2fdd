//! Messages, requests and resident agents.
//!
//! An interaction is classified once and recorded before it is accepted. Each inbox has limits.
//!
//! | file            | subject                                      |
//! |-----------------|----------------------------------------------|
//! | `admission`     | classifies, records and accepts interactions |
//! | `arrival`       | an interaction, its receipt, its rejection   |
//! | `quotas`        | refuses messages when an inbox is full       |
//! | `reading_order` | which queued messages are read next; pure    |
//! | `open_requests` | requests of and to a task                    |
//! | `requests`      | sends requests, delivers replies             |
//! | `overdue_requests` | answers requests whose time is over       |
//! | `wait_cycle`    | refuses waits that close a cycle             |
//! | `residents`     | which agent has which resident task          |
//! | `start_agent`   | starts and stops resident agents             |
//! | `inbox_prompt`  | the system prompt of a resident agent        |
//! | `lifecycle`     | notifies peers of started and ended agents   |
//! | `peer_tools`    | tools to message other agents                |
//! | `task_message`  | messages to a single task                    |
//! | `input_permission` | who may type into a program without a sandbox |
//! | `derived_id`    | ids that stay the same after a crash         |

pub(crate) mod admission;
pub(crate) mod arrival;
pub(crate) mod derived_id;
pub(crate) mod inbox_prompt;
pub(crate) mod input_permission;
pub(crate) mod lifecycle;
pub(crate) mod open_requests;
pub(crate) mod overdue_requests;
pub(crate) mod peer_tools;
pub(crate) mod quotas;
pub(crate) mod reading_order;
pub(crate) mod requests;
pub(crate) mod residents;
pub(crate) mod start_agent;
pub(crate) mod task_message;
pub(crate) mod wait_cycle;

//! Files and reports of a server beside its interfaces: its address and token, and telemetry, notifications, and schedules.

pub(crate) mod notifications;
pub mod schedules;
pub mod server_files;
pub(crate) mod spend_limits;
pub mod telemetry_follower;

//! Files and reports of a server beside its interfaces: its address and token, and telemetry.

pub mod server_files;
pub mod telemetry_follower;

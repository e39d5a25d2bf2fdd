//! What a server runs and writes beside its interfaces: the file drop and schedules, its address and
//! token, and telemetry.

pub mod background_services;
pub mod server_files;
pub mod telemetry_follower;

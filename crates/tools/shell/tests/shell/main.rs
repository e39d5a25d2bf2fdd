//! The shell, driven as the orchestrator drives it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod background;
mod bench;
mod canceling;
mod changed_links;
mod cut_off;
mod ending;
mod environment;
mod escapes;
mod hostile;
mod in_sandbox;
mod nested;
mod network;
mod output;
mod packages;
mod repository;
mod repository_attacks;
mod running;
mod sockets;

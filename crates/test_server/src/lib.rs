//! A server for tests of interfaces and their clients, on a loopback port.
//!
//! | file             | subject                                                           |
//! |------------------|-------------------------------------------------------------------|
//! | `running_server` | a server that runs until it is stopped                            |
//! | `orchestrator`   | the parts of an orchestrator whose model answers from a script    |
//! | `tools`          | three harmless tools, and a gate that asks before one of them     |
//! | `cutting_proxy`  | a proxy that closes connections after a random number of bytes    |
//! | `two_keys`       | the API keys of two persons, and of an agent                      |
//!
//! The test brings the journal, the script, the task factory and the interface.

#![expect(clippy::unwrap_used, reason = "only tests use this crate, and a test fails by panicking")]

mod cutting_proxy;
mod orchestrator;
mod running_server;
mod tools;
mod two_keys;

pub use cutting_proxy::CuttingProxy;
pub use orchestrator::{ScriptedModels, runtime_deps};
pub use running_server::{RunningServer, TOKEN};
pub use tools::{AskBeforeAct, TestTools};
pub use two_keys::{agents_key, two_keys};

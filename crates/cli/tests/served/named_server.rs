//! Commands through a server that `--server` names.

mod answers;
mod hostile_server;
mod refusals;
mod tasks;
mod world;

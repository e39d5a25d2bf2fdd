//! The gate: which calls may run, which are asked about, which never run.
//!
//! Rules say `allow`, `ask` or `deny`, by tool and by what the tool is called with; the strictest
//! that matches decides, and where none does, the mode. Scripts for bash are read, not searched:
//! each command in them is judged on its own, and what cannot be read is never allowed by a rule.
//!
//! | what goes wrong                            | what happens                                   |
//! |--------------------------------------------|------------------------------------------------|
//! | a rule does not do what its examples say   | [`ConfigError`]; there is no gate              |
//! | a call of a known tool makes no sense      | it is denied                                   |
//! | a script is not understood, or hides       | it is asked about                              |
//! | the file of remembered rules is damaged    | [`RememberedError`]; it is left as it is       |
//!
//! Rules are about what commands say, not about what programs do. What a program does is bounded
//! by the sandbox.

mod call;
mod commands;
mod config;
mod finding;
mod gate;
mod layer;
mod place;
mod remembered;
mod rule;
mod rules;
mod shell;

pub use commands::SCRIPT_BYTES_MAX;
pub use config::{Config, ConfigError, Limits, Mode, RuleEntry};
pub use finding::{Decision, Explanation, Finding};
pub use gate::{Bounds, Effects, Gate};
pub use place::PROTECTED;
pub use remembered::{FILE_BYTES_MAX, LOCK_WAIT, RULES_MAX, Remembered, RememberedError};
pub use rule::RULE_BYTES_MAX;

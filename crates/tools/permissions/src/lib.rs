//! The gate: decides which calls run, which need an approval and which never run.
//!
//! Rules `allow`, `ask` or `deny` by tool and arguments. The strictest rule that matches decides;
//! if none matches, the mode decides. The gate parses scripts for bash and judges each command in
//! them. No rule allows a script that cannot be parsed.
//!
//! | failure                                    | result                                         |
//! |--------------------------------------------|------------------------------------------------|
//! | a rule does not do what its examples say   | [`ConfigError`]; there is no gate              |
//! | a call of a known tool is malformed        | the gate denies it                             |
//! | a script cannot be parsed, or is obscured  | the gate asks                                  |
//! | the file of remembered rules is damaged    | [`RememberedError`]; it is left as it is       |
//!
//! | module       | holds                                                                     |
//! |--------------|---------------------------------------------------------------------------|
//! | `gate`       | the verdict on a call, from all layers of rules                           |
//! | `layer/`     | what one set of rules with a mode says about a call, and about each command of a script |
//! | `commands/`  | the commands of a script, without their wrappers                          |
//! | `shell/`     | the parser of bash                                                        |
//! | `call`       | a call, parsed into what rules match                                      |
//! | `finding`    | findings about the parts of a call, and the verdict that follows          |
//! | `rule`, `rules` | one rule; a layer's rules, loaded and checked against their examples   |
//! | `policy`     | the rules of the machine's administrator, which only restrict             |
//! | `remembered` | the rules that the user always allows                                     |
//! | `repository`, `remotes` | scripts that only change a repository, and its remotes         |
//!
//! Rules match the text of commands; the gate reads one file beside: the settings of the project's
//! repository, for the names of its remotes. The sandbox bounds what programs do.

mod call;
mod commands;
mod config;
mod finding;
mod gate;
mod layer;
mod normalized_path;
mod policy;
mod remembered;
mod remotes;
mod repository;
mod rule;
mod rules;
mod shell;

pub use commands::SCRIPT_BYTES_MAX;
pub use config::{
    ConfigError, HostLimit, Limits, PermissionConfig, PermissionMode, PolicyRules, RuleEntry,
};
pub use finding::{Decision, Explanation, Finding};
pub use gate::{Bounds, Effects, Gate, Sandbox};
pub use normalized_path::PROTECTED;
pub use remembered::{FILE_BYTES_MAX, LOCK_WAIT, RULES_MAX, Remembered, RememberedError};
pub use repository::changes_repository;
pub use rule::{NETWORK, RULE_BYTES_MAX, UNSANDBOXED};

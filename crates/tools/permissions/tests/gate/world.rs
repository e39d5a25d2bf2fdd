//! Gates made from TOML, and calls made from texts.

use std::fs;
use std::path::Path;

use antiphon_core::port::{Gate as _, GateRequest, GateVerdict, Rule};
use antiphon_core::{Effect, RawJson};
use antiphon_permissions::{
    Bounds, ConfigError, Decision, Effects, Explanation, Gate, PermissionConfig, Sandbox,
};
use serde_json::json;

/// The workspace. It need not exist: the gate does not look.
pub(crate) const ROOT: &str = "/home/me/project";

/// What the tools of the world do.
pub(crate) fn effect(tool: &str) -> Option<Effect> {
    match tool {
        // The last is of a server that says it is harmless.
        "read" | "grep" | "glob" | "read_result" | "bash_output" | "mcp__github__get" => {
            Some(Effect::ReadOnly)
        }
        "write" => Some(Effect::Idempotent),
        "edit" | "bash" | "bash_kill" | "call_agent" => Some(Effect::SideEffect),
        _ => None,
    }
}

pub(crate) fn bounds(sandboxed: bool) -> Bounds {
    let sandbox = if sandboxed { Sandbox::OfCommand } else { Sandbox::None };
    let hidden = vec!["/home/me/.aws".into()];
    Bounds { root: ROOT.into(), sandbox, hidden, effects: Effects::new(effect) }
}

pub(crate) fn try_gate(config: &str, sandboxed: bool) -> Result<Gate, ConfigError> {
    let config: PermissionConfig = toml::from_str(config).unwrap();
    Gate::new(&config, bounds(sandboxed))
}

/// In the sandbox.
pub(crate) fn gate(config: &str) -> Gate {
    try_gate(config, true).unwrap()
}

/// Without a sandbox.
pub(crate) fn open_gate(config: &str) -> Gate {
    try_gate(config, false).unwrap()
}

/// A gate in the workspace `folder`, whose repository has these remotes.
pub(crate) fn in_repository(folder: &Path, config: &str, remotes: &[&str], bounds: Bounds) -> Gate {
    fs::create_dir_all(folder.join(".git")).unwrap();
    let remote = |name: &&str| format!("[remote \"{name}\"]\n\turl = https://example.com/x\n");
    let settings: Vec<String> = remotes.iter().map(remote).collect();
    fs::write(folder.join(".git/config"), settings.concat()).unwrap();
    let config: PermissionConfig = toml::from_str(config).unwrap();
    Gate::new(&config, Bounds { root: folder.to_owned(), ..bounds }).unwrap()
}

pub(crate) fn explain(gate: &Gate, tool: &str, arguments: &str, granted: &[&str]) -> Explanation {
    let arguments = RawJson::parse(arguments).unwrap();
    let granted: Vec<Rule> = granted.iter().map(|rule| Rule((*rule).to_owned())).collect();
    gate.explain(&GateRequest { tool, arguments: &arguments, granted: &granted })
}

pub(crate) fn judge(gate: &Gate, tool: &str, arguments: &str, granted: &[&str]) -> GateVerdict {
    let arguments = RawJson::parse(arguments).unwrap();
    let granted: Vec<Rule> = granted.iter().map(|rule| Rule((*rule).to_owned())).collect();
    gate.judge(&GateRequest { tool, arguments: &arguments, granted: &granted })
}

/// What becomes of a script.
pub(crate) fn script(gate: &Gate, text: &str) -> Decision {
    granted_script(gate, text, &[])
}

/// What becomes of a script when these rules were granted for the task.
pub(crate) fn granted_script(gate: &Gate, text: &str, granted: &[&str]) -> Decision {
    explain(gate, "bash", &json!({ "command": text }).to_string(), granted).decision()
}

/// What becomes of a call about a file.
pub(crate) fn file(gate: &Gate, tool: &str, path: &str) -> Decision {
    explain(gate, tool, &json!({ "path": path }).to_string(), &[]).decision()
}

/// The rule that a verdict asks for.
pub(crate) fn proposed(verdict: &GateVerdict) -> &str {
    match verdict {
        GateVerdict::Ask { rule, .. } => &rule.0,
        GateVerdict::Allow | GateVerdict::Deny { .. } => panic!("{verdict:?} asks for nothing"),
    }
}

/// How many cases to try: as many as `ANTIPHON_CASES` says.
pub(crate) fn cases(otherwise: u32) -> u32 {
    std::env::var("ANTIPHON_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(otherwise)
}

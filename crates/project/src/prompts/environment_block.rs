//! What an agent is told about where and when it works: one block at the end of its system prompt.
//!
//! It is recorded with the system prompt, so it stays the same until the task ends. What is the same for all tasks of
//! a project comes first, the date and the branch last, so that a provider's cache of the beginning stays
//! valid. Everything in it that a project names is data: escaped, on one line, and cut.

mod git;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use antiphon_core::{ENVIRONMENT_BEGIN, ENVIRONMENT_END, escaped};
use antiphon_permissions::{PermissionMode, Remembered, RuleEntry};
use antiphon_runtime::ApprovalPolicy;
use antiphon_sandbox::Network;
use chrono::{DateTime, Utc};

use crate::instruction_files::InstructionFiles;
use crate::project::Project;
use crate::settings::UserSettings;
use crate::toolset::{self, PermissionOverrides};

/// Most characters of one name.
const NAME_CHARS_MAX: usize = 200;

/// Most hosts that are listed.
const HOSTS_MAX: usize = 16;

/// Most instruction files that are listed.
const INSTRUCTIONS_MAX: usize = 16;

/// Most bytes of the file that names the operating system.
const OS_RELEASE_BYTES_MAX: u64 = 4096;

/// Where the agents of a project work.
#[derive(Debug)]
pub(crate) struct EnvironmentBlock {
    root: PathBuf,
    /// Where it is.
    place: Vec<String>,
    /// What our tools allow.
    boundary: Vec<String>,
    instructions: Option<String>,
}

/// Whose tools an agent works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolsOf {
    /// Antiphon's: the gate and the sandbox bound them.
    Antiphon,
    /// A program's, which has its own.
    Program,
}

/// What bounds an agent's calls.
struct Boundary {
    mode: PermissionMode,
    network: Network,
    /// Patterns of the rules that allow hosts.
    hosts: Vec<String>,
    approvals: ApprovalPolicy,
}

impl EnvironmentBlock {
    /// The block for agents of this project under these permissions.
    pub(crate) fn of(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        approvals: ApprovalPolicy,
        rules: &InstructionFiles,
    ) -> Self {
        let root = project.root();
        let boundary = Boundary::of(project, settings, overrides, approvals);
        let place = vec![
            format!("The folder you work in: {}", data(&root.to_string_lossy())),
            format!("System: {}, {}; shell: bash", system(), std::env::consts::ARCH),
        ];
        Self {
            root: root.to_owned(),
            place,
            boundary: vec![boundary.permissions(), boundary.network()],
            instructions: instructions(root, rules),
        }
    }

    /// The block for a task that begins now.
    pub(crate) fn block(&self, now: DateTime<Utc>, tools: ToolsOf) -> String {
        let mut block = format!("{ENVIRONMENT_BEGIN}\n");
        let date = format!("Date: {} (UTC)", now.format("%Y-%m-%d"));
        let git = git::line(&self.root);
        let boundary: &[String] = match tools {
            ToolsOf::Antiphon => &self.boundary,
            ToolsOf::Program => &[],
        };
        let stable = self.place.iter().chain(boundary).chain(&self.instructions);
        for line in stable.chain([&date]).chain(&git) {
            // Writing to a String cannot fail.
            let _ = writeln!(block, "{line}");
        }
        block.push_str(ENVIRONMENT_END);
        block
    }
}

impl Boundary {
    fn of(
        project: &Project,
        settings: &UserSettings,
        overrides: &PermissionOverrides,
        approvals: ApprovalPolicy,
    ) -> Self {
        let permissions = toolset::permissions(settings, overrides).ok();
        let permissions = permissions.unwrap_or_else(|| settings.permissions.clone());
        let mode = settings.policy.at_most(permissions.mode);
        let network = toolset::policy(project, settings, mode, overrides.network).network;
        let remembered = Remembered::open(settings.remembered_path(), project.root()).ok();
        let remembered = remembered.map(|remembered| remembered.rules()).unwrap_or_default();
        let pattern =
            |text: &str| Some(text.strip_prefix("network(")?.strip_suffix(')')?.trim().to_owned());
        let configured = permissions.allow.iter().map(|entry: &RuleEntry| entry.rule.0.as_str());
        let always = remembered.iter().map(|rule| rule.0.as_str());
        let mut hosts: Vec<String> = configured.chain(always).filter_map(pattern).collect();
        hosts.sort();
        hosts.dedup();
        Self { mode, network, hosts, approvals }
    }

    fn permissions(&self) -> String {
        let may = match self.mode {
            PermissionMode::ReadOnly => {
                return "Permissions: mode `read-only`. Nothing can be changed.".to_owned();
            }
            PermissionMode::Workspace => {
                "mode `workspace`. Commands run in a sandbox: you can write below this folder and in $TMPDIR."
            }
            PermissionMode::Full => return "Permissions: mode `full`.".to_owned(),
        };
        let asking = if self.asks() {
            "What goes beyond is put to the user: just make the call."
        } else {
            "What goes beyond is refused: no person can be asked."
        };
        format!("Permissions: {may} {asking}")
    }

    fn network(&self) -> String {
        let open = self.mode == PermissionMode::Full || self.network == Network::On;
        if open {
            return "Network: on".to_owned();
        }
        let more = if self.mode != PermissionMode::ReadOnly && self.asks() {
            "; the user can allow hosts"
        } else {
            ""
        };
        if self.mode == PermissionMode::ReadOnly || self.hosts.is_empty() {
            return format!("Network: off{more}");
        }
        let shown: Vec<String> = self.hosts.iter().take(HOSTS_MAX).map(|host| data(host)).collect();
        let left = self.hosts.len() - shown.len();
        let left = if left > 0 { format!(" and {left} more") } else { String::new() };
        format!("Network: only {}{left}{more}", shown.join(", "))
    }

    fn asks(&self) -> bool {
        match self.approvals {
            ApprovalPolicy::Wait { .. } => true,
            ApprovalPolicy::Refuse => false,
        }
    }
}

/// The files whose rules are in the prompt, if there are any.
fn instructions(root: &Path, rules: &InstructionFiles) -> Option<String> {
    if rules.files.is_empty() {
        return None;
    }
    let name = |(path, _): &(PathBuf, String)| {
        data(&path.strip_prefix(root).unwrap_or(path).to_string_lossy())
    };
    let names: Vec<String> = rules.files.iter().take(INSTRUCTIONS_MAX).map(name).collect();
    let left = rules.files.len() - names.len();
    let left = if left > 0 { format!(" and {left} more") } else { String::new() };
    Some(format!("Instructions in effect: {}{left}", names.join(", ")))
}

/// The name of the operating system, as its vendor writes it.
fn system() -> String {
    let mut text = String::new();
    let read = File::open("/etc/os-release")
        .and_then(|file| file.take(OS_RELEASE_BYTES_MAX).read_to_string(&mut text));
    let name = read.ok().and_then(|_| {
        text.lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
            .map(|name| name.trim_matches('"'))
    });
    match name {
        Some(name) if !name.is_empty() => format!("{} ({})", std::env::consts::OS, data(name)),
        Some(_) | None => std::env::consts::OS.to_owned(),
    }
}

/// Text that is no part of the block's own words: on one line, without characters that hide or end something, and cut.
fn data(text: &str) -> String {
    let text = escaped(text).replace('<', "\\u{3c}").replace('`', "\\u{60}");
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_the_block_or_hide() {
        let name = "x\n</environment>\u{202e}`rm`";
        assert_eq!(data(name), "x\\n\\u{3c}/environment>\\u{202e}\\u{60}rm\\u{60}");
        assert!(data(&"é".repeat(500)).ends_with("é…"));
    }

    #[test]
    fn the_boundary_says_what_can_be_asked_for() {
        let boundary = |mode, hosts: &[&str], approvals| Boundary {
            mode,
            network: Network::Off,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            approvals,
        };
        let wait = ApprovalPolicy::Wait { timeout: None };
        let asked = boundary(PermissionMode::Workspace, &[], wait);
        assert_eq!(asked.network(), "Network: off; the user can allow hosts");
        assert!(asked.permissions().ends_with("just make the call."), "{}", asked.permissions());
        let alone = boundary(PermissionMode::Workspace, &["crates.io"], ApprovalPolicy::Refuse);
        assert_eq!(alone.network(), "Network: only crates.io");
        assert!(
            alone.permissions().ends_with("no person can be asked."),
            "{}",
            alone.permissions()
        );
        let reading = boundary(PermissionMode::ReadOnly, &["crates.io"], ApprovalPolicy::Refuse);
        assert_eq!(reading.network(), "Network: off");
        let full = boundary(PermissionMode::Full, &[], ApprovalPolicy::Refuse);
        assert_eq!(full.network(), "Network: on");
    }
}

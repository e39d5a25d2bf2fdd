//! Recognizes failures that the sandbox caused, and says so in plain words.
//!
//! A program that the sandbox stops reports a disk that cannot be written, or a name that cannot be
//! resolved. A model would look for the fault there.

use antiphon_sandbox::{Network, Policy, SandboxMode, UnixSockets};

use crate::access::Access;

/// Longest path that is named, in bytes.
const PATH_BYTES_MAX: usize = 200;

/// What a failed command says when there is no network.
const NO_NETWORK: [&str; 12] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "network is unreachable",
    "EAI_AGAIN",
    "ENOTFOUND",
    "ENETUNREACH",
    "failed to lookup address",
    "Could not resolve hostname",
    "No address associated with hostname",
    "unable to resolve host address",
];

/// What a failed command says when nothing listens on a port of the sandbox.
const NO_LISTENER: [&str; 5] = [
    "Connection refused",
    "connection refused",
    "ECONNREFUSED",
    "Couldn't connect to server",
    "Could not connect to server",
];

const READ_ONLY: [&str; 3] = ["Read-only file system", "EROFS", "read-only file system"];

/// What git says when a part of the repository stays read-only.
const BUSY: [&str; 2] = ["Device or resource busy", "could not lock config file"];

/// What git and the shell say when they may not start a program.
const NO_PROGRAM: [&str; 4] = ["cannot run", "cannot exec", "cannot spawn", "bash: line"];

const SIGNING: [&str; 3] = ["gpg failed to sign", "error: gpg", "Couldn't load public key"];

const UNIX_SOCKETS: [&str; 2] = ["socket: Operation not permitted", "socket.socket(socket.AF_UNIX"];

const HOW_TO_ASK: &str = "If the task needs it, call `bash` again with `without_sandbox: true` and \
    say why in `description`: the user decides.";

/// Bounds of a command, as far as its failure may come from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SandboxBounds {
    pub(crate) mode: SandboxMode,
    pub(crate) network: Network,
    pub(crate) unix_sockets: UnixSockets,
    pub(crate) access: Access,
    pub(crate) disk_bytes_max: u64,
}

impl SandboxBounds {
    pub(crate) fn of(policy: &Policy, access: Access) -> Self {
        let Policy { mode, network, unix_sockets, .. } = *policy;
        let disk_bytes_max = policy.limits.disk_bytes();
        Self { mode, network, unix_sockets, access, disk_bytes_max }
    }

    /// Why the sandbox made a command fail that wrote `output`. `None` if nothing shows that it did.
    pub(crate) fn refusal(self, output: &str) -> Option<String> {
        match self.mode {
            SandboxMode::Full => return None,
            SandboxMode::ReadOnly | SandboxMode::Workspace => {}
        }
        let line = |signs: &[&str]| {
            output.lines().rev().find(|line| signs.iter().any(|sign| line.contains(sign)))
        };
        if let Some(line) = line(&READ_ONLY) {
            return Some(self.read_only(line));
        }
        if self.access == Access::Repository {
            if line(&BUSY).is_some() {
                return Some(self.read_only(".git/config"));
            }
            if line(&NO_PROGRAM).is_some_and(|line| line.contains("Permission denied")) {
                return Some(format!(
                    "where git may write to the repository the sandbox lets it start no other \
                     program: no filter (also not that of Git LFS), driver, editor, helper, signing \
                     program or script. Run other programs in a call of their own. {HOW_TO_ASK}"
                ));
            }
            if line(&SIGNING).is_some() {
                return Some(format!(
                    "the sandbox hides the keys that commits are signed with. Commit with \
                     `--no-gpg-sign` if the user agrees. {HOW_TO_ASK}"
                ));
            }
        }
        if self.network == Network::Off && line(&NO_NETWORK).is_some() {
            return Some(format!(
                "the sandbox has no network except for hosts that the user allowed: this is not a \
                 fault of the name resolution or of the server. Name the hosts that the command \
                 needs in `hosts`: the user is asked. {HOW_TO_ASK}"
            ));
        }
        // Without a network, only a port of the sandbox itself can refuse a connection.
        if self.network == Network::Off && line(&NO_LISTENER).is_some() {
            let reason = "in the sandbox `localhost` and 127.0.0.1 are the sandbox itself, and nothing \
                listens on that port there. For a service of the user's machine name it in `hosts`, \
                such as \"localhost:8080\", and connect to `localhost`: the user is asked.";
            return Some(reason.to_owned());
        }
        if self.unix_sockets == UnixSockets::Refused && line(&UNIX_SOCKETS).is_some() {
            return Some(format!(
                "the sandbox refuses Unix sockets. Use a TCP port of 127.0.0.1 instead, or ask the \
                 user to set `unix_sockets = true` under `[sandbox]`. {HOW_TO_ASK}"
            ));
        }
        None
    }

    fn read_only(self, line: &str) -> String {
        let what = path_in(line).map_or_else(|| "there".to_owned(), |path| format!("`{path}`"));
        let in_git = line.contains(".git");
        match (self.mode, self.access) {
            (SandboxMode::ReadOnly, _) => {
                format!(
                    "the sandbox refused to write {what}: in mode read-only only /tmp is writable."
                )
            }
            (_, Access::Repository) if in_git => format!(
                "the sandbox refused to write {what}: git may change objects, index, references and \
                 logs, but not the settings, hooks, submodules and worktrees of a repository. \
                 {HOW_TO_ASK}"
            ),
            (_, _) if in_git => format!(
                "the sandbox refused to write {what}: repositories are read-only to commands. Run \
                 `git add`, `git commit` and the like in a call of `bash` that contains nothing but \
                 git commands, in the folder of the repository (`workdir`): the user is asked, and \
                 git can write. {HOW_TO_ASK}"
            ),
            (_, _) => format!(
                "the sandbox refused to write {what}: only the workspace and /tmp are writable. Use \
                 a path there. {HOW_TO_ASK}"
            ),
        }
    }
}

/// The path that an error names: in quotes, or before its colon.
fn path_in(line: &str) -> Option<&str> {
    let quoted = line.split(['\'', '"', '\u{2018}', '\u{2019}', '`']).skip(1).step_by(2);
    let before = line.split(": ").map(str::trim);
    let is_path = |text: &&str| {
        (text.contains('/') || text.starts_with(".git"))
            && !text.contains(' ')
            && text.len() <= PATH_BYTES_MAX
    };
    quoted.chain(before).find(is_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(access: Access) -> SandboxBounds {
        SandboxBounds {
            mode: SandboxMode::Workspace,
            network: Network::Off,
            unix_sockets: UnixSockets::Refused,
            access,
            disk_bytes_max: 0,
        }
    }

    #[test]
    fn the_path_that_was_refused_is_named() {
        for (line, path) in [
            ("touch: cannot touch '/etc/x': Read-only file system", "`/etc/x`"),
            ("bash: line 1: /etc/x: Read-only file system", "`/etc/x`"),
            (
                "fatal: Unable to create '/p/.git/index.lock': Read-only file system",
                "`/p/.git/index.lock`",
            ),
            ("OSError: [Errno 30] Read-only file system: '/usr/lib/x'", "`/usr/lib/x`"),
        ] {
            let said = bounds(Access::Sandbox).refusal(line).unwrap();
            assert!(said.contains(path), "{line}\n{said}");
        }
    }

    #[test]
    fn a_failure_that_the_sandbox_did_not_cause_is_left_alone() {
        let inside = bounds(Access::Sandbox);
        assert_eq!(inside.refusal("error[E0308]: mismatched types"), None);
        assert_eq!(inside.refusal("cat: x: No such file or directory"), None);
        let line = "curl: (6) Could not resolve host: example.com";
        assert!(inside.refusal(line).unwrap().contains("no network"));
        let local =
            "curl: (7) Failed to connect to localhost port 8081: Couldn't connect to server";
        assert!(inside.refusal(local).unwrap().contains("`hosts`"));
        let online = SandboxBounds { network: Network::On, ..inside };
        assert_eq!(online.refusal(line), None);
        assert_eq!(online.refusal(local), None);
        let full = SandboxBounds { mode: SandboxMode::Full, ..inside };
        assert_eq!(full.refusal(line), None);
    }
}

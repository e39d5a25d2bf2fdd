//! Sandbox for processes: namespaces, landlock and seccomp.
//!
//! A [`Policy`] is enforced in two steps, by two processes of the same program. The first calls
//! [`Policy::confine`], which creates namespaces and starts the second in them; the second calls
//! [`Policy::enforce`] before anything else. It is the first process of a PID namespace: when it
//! ends, the kernel ends every process it ever started, and only then is its end seen outside.
//!
//! | layer             | effect                                                                   |
//! |-------------------|--------------------------------------------------------------------------|
//! | user namespace    | no privileges, whichever user runs it; no access to processes outside    |
//! | mounts            | everything read-only but the roots and a private `/tmp`; protected and hidden paths; `/dev`, `/run` and `/proc` of its own |
//! | PID namespace     | no process outside is visible or can be signaled; no process outlives the first one |
//! | network namespace | a loopback of its own, unless the network is on                          |
//! | landlock          | the same limits on writing once more; no signals and no abstract sockets to the outside |
//! | seccomp           | no `ptrace`, mounts, namespaces, keys, `bpf`, `io_uring`, uncommon sockets, typing into terminals |
//!
//! If one of them is not available, [`SandboxError`] says which and what to do. Then nothing is
//! run.
//!
//! Known limits:
//!
//! - Programs for 32-bit processors do not run; programs that sandbox themselves with namespaces
//!   must have that turned off; debuggers do not work.
//! - Before Linux 7.1 commands can open no Unix socket, not even to each other, unless the policy
//!   allows all ([`UnixSockets`]). Connected pairs work.
//! - With the network on, abstract sockets can be reached before Linux 6.12.
//! - A mount can only cover what exists. A protected name that a command itself creates further
//!   down than directly below a root can be written by that command; from the next command on it is
//!   protected. A symbolic link with a protected name further down can be replaced.
//! - What a link outside of the roots leads to is hidden as it is when a command starts. A program outside that changes such a
//!   link while a command runs shows that command the new target.
//! - Readable files can be read: keys must be listed ([`SECRETS_IN_HOME`]).

mod confine;
mod enforce;
mod git;
mod mounts;
mod paths;
mod policy;
mod probe;
mod restrictions;
mod sandbox_error;

use git::{git_dir, git_programs, gitlink, new_submodule, repository, sweep};
use mounts::{mount_table, placeholder};
use paths::{
    absent_paths, folder_stamp, followed_links, listener, nested, pinned_folder, protected_path,
    real_paths, secret_paths,
};
use restrictions::{capability, control_group, limits, loopback, syscalls, write_limit};

pub use confine::Confined;
pub use control_group::MemoryEvents;
pub use enforce::{Enforced, Startable};
pub use policy::{
    DISK_BYTES_DEFAULT, GitPrograms, Guard, Limits, Network, PROCESSES_DEFAULT, Policy, Protected,
    Runs, SandboxMode, UnixSockets, WorkerCommand,
};
pub use probe::{Report, Trial, answer_probe, probe};
pub use repository::OPENED;
pub use sandbox_error::SandboxError;
pub use secret_paths::{SECRETS_IN_HOME, SECRETS_OF_MACHINE};

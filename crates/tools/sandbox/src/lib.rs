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
//! - Sockets in the file system are hidden in `/run` and `/tmp`, and where a program listened when
//!   the sandbox was created. A socket created later in another folder can be reached before Linux
//!   7.1.
//! - With the network on, abstract sockets can be reached before Linux 6.12.
//! - Names are protected directly below each root. A repository further down is not.
//! - Readable files can be read: keys in the home folder must be listed ([`SECRETS_IN_HOME`]).

mod capability;
mod confine;
mod device;
mod enforce;
mod limits;
mod listener;
mod loopback;
mod mount_table;
mod mounts;
mod placeholder;
mod policy;
mod probe;
mod protected_path;
mod sandbox_error;
mod syscalls;
mod write_limit;

pub use confine::Confined;
pub use enforce::Enforced;
pub use policy::{Guard, Limits, Mode, Network, Policy, Protected, SECRETS_IN_HOME, WorkerCommand};
pub use probe::{Report, Trial, answer_probe, probe};
pub use sandbox_error::SandboxError;

//! What a process may touch: namespaces, landlock and seccomp.
//!
//! A [`Policy`] is enforced in two steps, by two processes of the same program. The first calls
//! [`Policy::confine`], which makes namespaces and starts the second in them; the second calls
//! [`Policy::enforce`] before anything else. It is the first process of a process namespace: when
//! it ends, the kernel ends everything it ever started, and only then is its end seen outside.
//!
//! | layer             | what it keeps                                                            |
//! |-------------------|--------------------------------------------------------------------------|
//! | user namespace    | no privileges, whoever we run as; no reach into processes outside        |
//! | mounts            | everything read-only but the roots and a private `/tmp`; protected and hidden places; `/dev`, `/run` and `/proc` of its own |
//! | process namespace | nobody outside is seen or signaled; nobody outlives the first process    |
//! | network namespace | a loopback of its own, unless the network is on                          |
//! | landlock          | the same limits on writing once more; no signals, no abstract sockets outward |
//! | seccomp           | no `ptrace`, mounts, namespaces, keys, `bpf`, `io_uring`, odd sockets, typing into terminals |
//!
//! If one of them cannot be had, [`SandboxError`] says which and what to do. Nothing is run then.
//!
//! Known limits:
//!
//! - Programs for 32-bit processors do not run; programs that sandbox themselves with namespaces
//!   have to be told not to, and debuggers do not work.
//! - Sockets in the file system are hidden in `/run` and `/tmp`, and wherever somebody listened when
//!   the sandbox began. One that is made later in another folder can be reached before Linux 7.1.
//! - With the network on, abstract sockets can be reached before Linux 6.12.
//! - Names are protected directly beneath each root. A repository further down is not.
//! - What is readable is read: keys in the home folder have to be named ([`SECRETS_IN_HOME`]).

mod capability;
mod confine;
mod device;
mod enforce;
mod limits;
mod listener;
mod loopback;
mod mount_table;
mod placeholder;
mod policy;
mod probe;
mod sandbox_error;
mod shield;
mod syscalls;
mod view;
mod writes;

pub use confine::Confined;
pub use enforce::Enforced;
pub use policy::{Guard, Limits, Mode, Network, Policy, Protected, SECRETS_IN_HOME, WorkerCommand};
pub use probe::{Report, Trial, answer_probe, probe};
pub use sandbox_error::SandboxError;

//! The runner `sandbox`: a task in a process of its own.
//!
//! [`SandboxRunner`] starts a worker ([`worker_main`]) for each task, under the sandbox of the
//! operating system and with resource limits. The worker runs the ordinary loop: the runner serves
//! its journal and its model over a socket; its tools run in the worker. So the order of writes,
//! recovery and cancellation are the same code as everywhere, and no key ever enters the sandbox.
//!
//! | case                                  | outcome                                            |
//! |---------------------------------------|----------------------------------------------------|
//! | the worker is killed                  | `Unavailable`; the next run starts a new worker, which resumes the task from the journal |
//! | this process is killed                | the socket closes, and every process of the worker ends |
//! | memory, CPU time or processes run out | `Refused`, with the limit                          |
//! | the task is canceled, or the process shuts down | the worker is asked to stop, ended after 5 s, and gone before `run` returns |
//! | the worker breaks the protocol        | it is ended, and `Refused`                         |
//! | the sandbox is not available          | `check` and `run` say why, and nothing is run      |
//! | a protected path is replaced          | a new worker continues                             |
//! | a call was cut off with its worker    | what its tool has kept goes to the next worker ([`SandboxRunnerSettings::kept`]) |
//!
//! The worker is not trusted: it appends to its own task only, and no decisions of users or the
//! orchestrator; it reads its own task and the conversation before it; it calls the models of its
//! task; its queries are bounded in number and size.
//!
//! To run a command, a tool in the worker starts a process like any other: it is inside the sandbox
//! already, where no second sandbox can be created.

mod kept_files;
mod limits;
mod runner;
mod settings;
mod setup;
mod wire;
mod worker;

pub use antiphon_sandbox::WorkerCommand;
pub use limits::{
    CPU_S_DEFAULT, MEMORY_BYTES_DEFAULT, MEMORY_BYTES_MIN, OPEN_FILES_DEFAULT, PROCESSES_DEFAULT,
    WorkerLimits,
};
pub use runner::SandboxRunner;
pub use settings::{
    SandboxRunnerSettings, SettingsError, WORKER_SETTINGS_BYTES_MAX, WORKERS_DEFAULT,
};
pub use worker::{WorkerPorts, worker_main};

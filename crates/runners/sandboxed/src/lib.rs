//! The runner `sandbox`: a task in a process of its own.
//!
//! [`SandboxRunner`] starts a worker ([`worker_main`]) for each task, under the sandbox of the
//! operating system and with limits of its own. The worker runs the ordinary loop: its journal and
//! its model are reached over a socket, where the runner serves them; its tools run in the worker.
//! So what is written before what, what recovery does, and how a task is canceled are the same code
//! as everywhere, and no key ever enters the sandbox.
//!
//! | what goes wrong                       | what happens                                       |
//! |---------------------------------------|----------------------------------------------------|
//! | the worker is killed                  | `Unavailable`; the next run starts a new one, which folds the task from the journal and goes on |
//! | this process is killed                | the socket closes, and everything in the worker ends |
//! | memory, CPU time or processes run out | `Refused`, with the limit                          |
//! | the task is canceled, or all rests    | the worker is asked to stop, ended after 5 s, and gone before `run` returns |
//! | the worker says what it may not       | it is ended, and `Refused`                         |
//! | the sandbox cannot be had             | `check` and `run` say why, and nothing is run      |
//! | a protected place is replaced         | a new worker goes on                               |
//!
//! The worker is believed nothing: it appends to its own task only, and nothing that a person or
//! the orchestrator decides; it reads its own task and what was said before it; it asks the models
//! of its task; its questions are bounded in number and size.
//!
//! To run a command, a tool in the worker starts a process like any other: it is inside already, and
//! a second sandbox cannot be made there.

mod inside;
mod limits;
mod runner;
mod settings;
mod setup;
mod wire;

pub use antiphon_sandbox::WorkerCommand;
pub use inside::{WorkerPorts, worker_main};
pub use limits::{
    CPU_S_DEFAULT, Limits, MEMORY_BYTES_DEFAULT, MEMORY_BYTES_MIN, OPEN_FILES_DEFAULT,
    PROCESSES_DEFAULT,
};
pub use runner::SandboxRunner;
pub use settings::{Settings, SettingsError, WORKER_SETTINGS_BYTES_MAX, WORKERS_DEFAULT};

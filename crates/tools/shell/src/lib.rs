//! The `bash` tool, and the worker process that runs what it is told under the sandbox.
//!
//! [`Shell`] is the executor of `bash`, `bash_output` and `bash_kill`. For each task it starts one
//! worker ([`worker_main`]), which restricts itself and then starts `bash` as fast as anybody could.
//! What a command writes goes through a pipe to the shell, and from there to whoever watches, to
//! the model in part, and to a file if there is much of it.
//!
//! | what goes wrong                         | what happens                                       |
//! |-----------------------------------------|----------------------------------------------------|
//! | a command takes too long                | it goes on in the background, where it can be asked for |
//! | it leaves something running             | the call ends with `bash`; the rest ends with the task |
//! | it writes without end                   | it is ended at 64 MB                               |
//! | it starts processes without end         | it is ended at 512                                 |
//! | it is canceled                          | asked to end, killed after half a second, gone before the call returns |
//! | the worker is killed                    | everything in it is gone, the next call gets a new one |
//! | this process is killed                  | the worker notices, and everything in it is gone   |
//! | the sandbox cannot be had               | nothing is run, and the error says what to do      |

mod arguments;
mod environment;
mod link;
mod live;
mod message;
mod process;
mod pump;
mod report;
mod results;
mod settings;
mod shell;
mod task_shell;
mod transcript;
mod worker;

pub use antiphon_sandbox::WorkerCommand;
pub use environment::{Environment, EnvironmentError};
pub use report::RESULT_BYTES_MAX;
pub use settings::{Settings, SettingsError};
pub use shell::Shell;
pub use worker::worker_main;

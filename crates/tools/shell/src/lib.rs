//! The `bash` tool, and the worker process that runs its commands under the sandbox.
//!
//! [`Shell`] is the executor of `bash`, `bash_output` and `bash_kill`. For each task it starts one
//! worker ([`worker_main`]), which restricts itself and then starts `bash` for each command. The
//! output of a command goes through a pipe to the shell, and from there to watchers, in part to the
//! model, and to a file if it is long.
//!
//! | case                                    | outcome                                            |
//! |-----------------------------------------|----------------------------------------------------|
//! | a command takes too long                | it continues in the background; `bash_output` reads it |
//! | it leaves processes running             | the call ends with `bash`; the rest ends with the task |
//! | it writes without end                   | it is ended at 64 MB                               |
//! | it starts processes without end         | it is stopped at 512, or as the policy says        |
//! | it uses too much memory or disk         | it is stopped, and the result says why             |
//! | it is canceled                          | SIGTERM, SIGKILL after half a second; gone before the call returns |
//! | the worker is killed                    | all its processes end, the next call gets a new worker |
//! | this process is killed                  | the worker notices, and all its processes end; the next process finds the output so far |
//! | it connects to a host that is not allowed | the proxy refuses it, and the result names the host |
//! | the sandbox is not available            | no command runs, and the error says what to do     |

mod access;
mod arguments;
mod call_record;
mod environment;
mod message;
mod network;
mod output_reader;
mod process;
mod progress_writer;
mod refusal;
mod report;
mod result_files;
mod settings;
mod shell;
mod task_shell;
mod transcript;
mod worker;
mod worker_link;

pub use access::WithoutSandbox;
pub use antiphon_sandbox::WorkerCommand;
pub use environment::{Environment, EnvironmentError};
pub use network::HostNetwork;
pub use report::RESULT_BYTES_MAX;
pub use settings::{SettingsError, ShellSettings};
pub use shell::Shell;
pub use worker::worker_main;

//! The tools: `bash`, `bash_output` and `bash_kill`.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use antiphon_core::port::{Cancel, ToolContext};
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult};
use antiphon_toolbox::definition;
use async_trait::async_trait;
use tokio::time::{sleep, timeout};

use crate::arguments::{Bash, BashKill, BashOutput};
use crate::process::{End, Process, Status, hold};
use crate::report;
use crate::settings::{Settings, SettingsError};
use crate::task_shell::{BACKGROUND_MAX, Entry, Leash, TaskShell, Unavailable};

/// How long a command that starts in the background is watched, to tell of one that fails at once.
const GLANCE: Duration = Duration::from_millis(200);

/// How long one waits for the last words of a command that was ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

const BASH: &str = "Runs a command with `bash -c` in the workspace and returns its output and exit \
    code. There is no input and no terminal. After `timeout_s` seconds it goes on in the background \
    and can be asked for with `bash_output`. Everything it starts ends with the task.";

const BASH_OUTPUT: &str = "Shows what a command in the background has said since it was last asked \
    for, and whether it has ended, with which exit code. With `wait_s` it waits for the end first.";

const BASH_KILL: &str = "Ends a command in the background and everything it started.";

/// Runs commands, each task's in a worker of its own.
///
/// A worker is started with the first call of a task and restricted before it runs anything. It
/// ends, and everything that was started in it, when the task is released, when this is dropped,
/// or when this process ends, however it does.
pub struct Shell {
    settings: Arc<Settings>,
    tasks: Mutex<HashMap<TaskId, Arc<TaskShell>>>,
}

/// How waiting for a command came out.
enum Waited {
    Over(Status),
    NotYet,
    Canceled,
}

impl Shell {
    /// Makes its folders. Nothing is started before the first call.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        Ok(Self { settings: Arc::new(settings.prepared()?), tasks: Mutex::default() })
    }

    fn task(&self, task_id: &TaskId) -> Arc<TaskShell> {
        let mut tasks = hold(&self.tasks);
        let shell = tasks
            .entry(task_id.clone())
            .or_insert_with(|| Arc::new(TaskShell::new(Arc::clone(&self.settings), task_id)));
        Arc::clone(shell)
    }

    async fn bash(&self, arguments: &Bash, context: ToolContext) -> Result<ToolResult, ToolError> {
        let workdir = arguments.workdir(&self.settings.policy.roots)?;
        let ToolContext { task_id, mut cancel, progress, .. } = context;
        let task = self.task(&task_id);
        let running = task.in_background();
        if arguments.is_background() && running.len() >= BACKGROUND_MAX {
            return Ok(report::too_many(&running));
        }
        let patience = if arguments.is_background() { GLANCE } else { arguments.timeout() };
        let mut renewed = false;
        loop {
            let leash = tokio::select! {
                started = task.start(&arguments.command, &workdir, &progress) => started,
                () = &mut cancel => return Err(ToolError::Canceled),
            };
            let mut leash = leash.map_err(unavailable)?;
            match wait_and_read(&mut leash, patience, &mut cancel).await {
                Waited::Over(Status { end: Some(End::Stale(_)), .. }) if !renewed => {
                    renewed = true;
                    task.renew(&leash.let_go(&task)).await;
                }
                Waited::Over(status) => {
                    return Ok(over(&task, leash.let_go(&task), &status).await);
                }
                Waited::NotYet => {
                    return Ok(not_yet(&task, leash.let_go(&task), arguments).await);
                }
                Waited::Canceled => {
                    let entry = leash.let_go(&task);
                    task.stop(&entry).await;
                    task.forget(&entry);
                    return Err(ToolError::Canceled);
                }
            }
        }
    }

    async fn output(
        &self,
        arguments: &BashOutput,
        mut context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let task = self.task(&context.task_id);
        let Some(Entry { process, .. }) = task.find(&arguments.id) else {
            return Ok(report::unknown(&arguments.id, &task.in_background()));
        };
        match wait(&process, arguments.wait(), &mut context.cancel).await {
            Waited::Canceled => Err(ToolError::Canceled),
            Waited::Over(_) | Waited::NotYet => {
                // Asked before it is read: what is said of an end is then true of all that is shown.
                let status = process.status();
                Ok(report::news(&process, &status, &process.news().await))
            }
        }
    }

    async fn kill(&self, arguments: &BashKill, context: ToolContext) -> ToolResult {
        let task = self.task(&context.task_id);
        let Some(entry) = task.find(&arguments.id) else {
            return report::unknown(&arguments.id, &task.in_background());
        };
        let before = entry.process.status();
        if !before.is_gone() {
            task.stop(&entry).await;
            // If something still holds the output, what was read is all there is.
            let _ = timeout(LAST_WORDS, entry.process.over()).await;
        }
        report::killed(&entry.process, &before, &entry.process.news().await)
    }
}

/// A command that has ended.
async fn over(task: &TaskShell, entry: Entry, status: &Status) -> ToolResult {
    let process = &entry.process;
    process.hush();
    let result = report::ended(process, status, &process.news().await);
    if process.status().is_gone() {
        task.forget(&entry);
    }
    result
}

/// A command that has not ended in time.
async fn not_yet(task: &TaskShell, entry: Entry, arguments: &Bash) -> ToolResult {
    let process = &entry.process;
    if task.to_background(&entry) {
        let said = process.news().await;
        return if arguments.is_background() {
            report::in_background(process, &said)
        } else {
            report::goes_on(process, arguments.timeout(), &said)
        };
    }
    let running = task.in_background();
    task.stop(&entry).await;
    let _ = timeout(LAST_WORDS, process.over()).await;
    let said = process.news().await;
    task.forget(&entry);
    if arguments.is_background() {
        report::too_many(&running)
    } else {
        report::out_of_time(arguments.timeout(), &said)
    }
}

/// Waits for a command, and reads what it writes meanwhile.
async fn wait_and_read(leash: &mut Leash, patience: Duration, cancel: &mut Cancel) -> Waited {
    let Leash { entry, pumping, .. } = leash;
    let mut waiting = pin!(wait(&entry.process, patience, cancel));
    tokio::select! {
        waited = &mut waiting => return waited,
        () = pumping => {}
    }
    waiting.await
}

async fn wait(process: &Process, patience: Duration, cancel: &mut Cancel) -> Waited {
    tokio::select! {
        biased;
        () = cancel => Waited::Canceled,
        status = process.over() => Waited::Over(status),
        () = sleep(patience) => Waited::NotYet,
    }
}

fn has_fired(cancel: &mut Cancel) -> bool {
    Pin::new(cancel).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn unavailable(error: Unavailable) -> ToolError {
    ToolError::Unavailable { tool: Bash::NAME.to_owned(), reason: error.0 }
}

#[async_trait]
impl ToolExecutor for Shell {
    fn tools(&self) -> Vec<Tool> {
        vec![
            definition::<Bash>(Bash::NAME, BASH),
            definition::<BashOutput>(BashOutput::NAME, BASH_OUTPUT),
            definition::<BashKill>(BashKill::NAME, BASH_KILL),
        ]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        match tool {
            Bash::NAME => Some(Effect::SideEffect),
            // Where somebody has read up to is not kept over a crash, and neither is the command.
            BashOutput::NAME => Some(Effect::ReadOnly),
            BashKill::NAME => Some(Effect::Idempotent),
            _ => None,
        }
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        mut context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let go_on = if has_fired(&mut context.cancel) { Err(ToolError::Canceled) } else { Ok(()) };
        match tool {
            Bash::NAME => {
                let arguments = Bash::parse(arguments)?;
                go_on?;
                self.bash(&arguments, context).await
            }
            BashOutput::NAME => {
                let arguments = BashOutput::parse(arguments)?;
                go_on?;
                self.output(&arguments, context).await
            }
            BashKill::NAME => {
                let arguments = BashKill::parse(arguments)?;
                go_on?;
                Ok(self.kill(&arguments, context).await)
            }
            _ => Err(ToolError::Unknown { name: tool.to_owned() }),
        }
    }

    async fn release(&self, task_id: &TaskId) {
        let task = hold(&self.tasks).remove(task_id);
        if let Some(task) = task {
            task.close().await;
        }
    }
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("policy", &self.settings.policy).finish_non_exhaustive()
    }
}

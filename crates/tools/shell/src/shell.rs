//! The tools: `bash`, `bash_output` and `bash_kill`.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use antiphon_core::port::{Cancel, CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::{Effect, Offer, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult};
use antiphon_toolbox::definition;
use async_trait::async_trait;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::access::{Access, WithoutSandbox};
use crate::arguments::{Bash, BashKill, BashOutput};
use crate::call_record::{CallRecord, CallRecords, RecordedCall};
use crate::process::{End, Process, Status, lock};
use crate::report;
use crate::result_files::ResultFiles;
use crate::settings::{SettingsError, ShellSettings};
use crate::task_shell::{
    BACKGROUND_MAX, CommandRequest, Entry, StartedCommand, TaskShell, Unavailable,
};

/// How long a command that starts in the background is watched, so that one that fails at once is
/// reported.
const BACKGROUND_START_WAIT: Duration = Duration::from_millis(200);

/// How long to wait for the last output of a command that was ended.
const FINAL_OUTPUT_WAIT: Duration = Duration::from_millis(500);

const BASH: &str = "Runs a shell command with `bash -c` in the working folder and returns its output and exit code. \
    Each call starts a new shell: `cd` and variables do not carry over. There is no terminal and no standard input, \
    so pass flags such as `--yes` or `--no-pager`. A command that is still running after `timeout_s` seconds goes on \
    in the background. Example: {\"command\": \"cargo test 2>&1 | tail -20\", \"workdir\": \"server\"}";

const HOSTS: &str = "Only HTTP(S) hosts that the user allows can be reached; the result names refused ones: ask for \
    them with `hosts`.";

const BASH_OUTPUT: &str = "Returns what a background command has printed since the last call, and whether it has \
    ended. With `wait_s` it first waits for the end.";

const BASH_KILL: &str = "Ends a background command and everything it started.";

/// Runs commands, each task's in a worker of its own.
///
/// The first call of a task starts its worker, which is restricted before it runs a command. The
/// worker and all its processes end when the task is released, when the `Shell` is dropped, or when
/// this process ends in any way.
pub struct Shell {
    settings: Arc<ShellSettings>,
    definitions: [Arc<Tool>; 3],
    records: CallRecords,
    tasks: Mutex<HashMap<TaskId, Arc<TaskShell>>>,
}

/// The outcome of waiting for a command.
enum WaitOutcome {
    Over(Status),
    TimedOut,
    Canceled,
}

impl Shell {
    /// Creates its folders. Starts no process before the first call.
    pub fn new(settings: ShellSettings) -> Result<Self, SettingsError> {
        let settings = settings.prepared()?;
        let records = CallRecords::open(&settings.results).map_err(|error| {
            let (path, reason) = (settings.results.clone(), error.to_string());
            SettingsError::Folder { path, reason }
        })?;
        let definitions = definitions(&settings);
        Ok(Self { settings: Arc::new(settings), definitions, records, tasks: Mutex::default() })
    }

    fn task(&self, task_id: &TaskId) -> Arc<TaskShell> {
        let mut tasks = lock(&self.tasks);
        let shell = tasks
            .entry(task_id.clone())
            .or_insert_with(|| Arc::new(TaskShell::new(Arc::clone(&self.settings), task_id)));
        Arc::clone(shell)
    }

    /// Runs a command. What is known about it is kept until its result is recorded.
    async fn bash(&self, arguments: &Bash, context: ToolContext) -> Result<ToolResult, ToolError> {
        let record = self.records.begin(context.call_uuid).await;
        let result = self.run(arguments, context, &record).await?;
        record.finish(&result).await;
        Ok(result)
    }

    async fn run(
        &self,
        arguments: &Bash,
        context: ToolContext,
        record: &Arc<CallRecord>,
    ) -> Result<ToolResult, ToolError> {
        let workdir = arguments.workdir(&self.settings.policy.roots)?;
        let (access, closed) = Access::of(&self.settings, arguments, &workdir);
        if arguments.is_without_sandbox()
            && self.settings.without_sandbox == WithoutSandbox::Impossible
        {
            return Ok(report::no_way_out());
        }
        let hosts = arguments.hosts()?;
        let ToolContext { task_id, call_uuid, mut cancel, progress, granted, .. } = context;
        let task = self.task(&task_id);
        let running = task.in_background();
        if arguments.is_background() && running.len() >= BACKGROUND_MAX {
            return Ok(report::too_many(&running));
        }
        let time_limit =
            if arguments.is_background() { BACKGROUND_START_WAIT } else { arguments.timeout() };
        let request = CommandRequest {
            call_uuid,
            record,
            command: &arguments.command,
            workdir: &workdir,
            access,
            progress: &progress,
            granted: &granted,
            hosts: &hosts,
        };
        let mut replaced = false;
        loop {
            let started = tokio::select! {
                started = task.start(&request) => started,
                () = &mut cancel => return Err(ToolError::Canceled),
            };
            let mut started = started.map_err(unavailable)?;
            match wait_and_read(&mut started, time_limit, &mut cancel).await {
                WaitOutcome::Over(Status { end: Some(End::Stale(_)), .. }) if !replaced => {
                    replaced = true;
                    task.close_worker(&started.release_to(&task)).await;
                }
                WaitOutcome::Over(status) => {
                    let result = over(&task, started.release_to(&task), &status).await;
                    return Ok(report::with_closed_repository(result, closed.as_deref()));
                }
                WaitOutcome::TimedOut => {
                    let result = timed_out(&task, started.release_to(&task), arguments).await;
                    return Ok(report::with_closed_repository(result, closed.as_deref()));
                }
                WaitOutcome::Canceled => {
                    let entry = started.release_to(&task);
                    task.stop(&entry).await;
                    task.close_own_worker(&entry).await;
                    task.unregister(&entry);
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
        let Some(entry) = task.find(&arguments.id) else {
            return Ok(report::unknown(&arguments.id, &task.in_background()));
        };
        let process = &entry.process;
        match wait(process, arguments.wait(), &mut context.cancel).await {
            WaitOutcome::Canceled => Err(ToolError::Canceled),
            WaitOutcome::Over(_) | WaitOutcome::TimedOut => {
                // The status is read before the output: if it says that the command has ended, the
                // output is complete.
                let status = process.status();
                if status.is_gone() {
                    task.close_own_worker(&entry).await;
                }
                Ok(report::new_output(process, &status, &process.new_output().await))
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
            // If another process still holds the output open, the text read so far is all there is.
            let _ = timeout(FINAL_OUTPUT_WAIT, entry.process.over()).await;
            task.close_own_worker(&entry).await;
        }
        report::killed(&entry.process, &before, &entry.process.new_output().await)
    }
}

/// The result of a command that has ended.
async fn over(task: &TaskShell, entry: Entry, status: &Status) -> ToolResult {
    let process = &entry.process;
    process.stop_progress();
    let result = report::ended(process, status, &process.new_output().await);
    if process.status().is_gone() || entry.ends_with_call() {
        task.close_own_worker(&entry).await;
        task.unregister(&entry);
    }
    result
}

/// The result of a command that has not ended in time.
async fn timed_out(task: &TaskShell, entry: Entry, arguments: &Bash) -> ToolResult {
    let process = &entry.process;
    if !entry.ends_with_call() && task.to_background(&entry) {
        task.note_background().await;
        let excerpt = process.new_output().await;
        return if arguments.is_background() {
            report::in_background(process, &excerpt)
        } else {
            report::continues(process, arguments.timeout(), &excerpt)
        };
    }
    let running = task.in_background();
    task.stop(&entry).await;
    let _ = timeout(FINAL_OUTPUT_WAIT, process.over()).await;
    let excerpt = process.new_output().await;
    task.close_own_worker(&entry).await;
    task.unregister(&entry);
    if entry.ends_with_call() {
        report::ended_in_repository(process, arguments.timeout(), &excerpt)
    } else if arguments.is_background() {
        report::too_many(&running)
    } else {
        report::ended_at_timeout(process, arguments.timeout(), &excerpt)
    }
}

/// Waits for a command and reads its output meanwhile.
async fn wait_and_read(
    started: &mut StartedCommand,
    time_limit: Duration,
    cancel: &mut Cancel,
) -> WaitOutcome {
    let StartedCommand { entry, reading_output, .. } = started;
    let mut waiting = pin!(wait(&entry.process, time_limit, cancel));
    tokio::select! {
        waited = &mut waiting => return waited,
        () = reading_output => {}
    }
    waiting.await
}

async fn wait(process: &Process, time_limit: Duration, cancel: &mut Cancel) -> WaitOutcome {
    tokio::select! {
        biased;
        () = cancel => WaitOutcome::Canceled,
        status = process.over() => WaitOutcome::Over(status),
        () = sleep(time_limit) => WaitOutcome::TimedOut,
    }
}

fn has_fired(cancel: &mut Cancel) -> bool {
    Pin::new(cancel).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn definitions(settings: &ShellSettings) -> [Arc<Tool>; 3] {
    let about = match &settings.network {
        Some(_) => format!("{BASH} {HOSTS}"),
        None => BASH.to_owned(),
    };
    [
        definition::<Bash>(Bash::NAME, &about).into(),
        definition::<BashOutput>(BashOutput::NAME, BASH_OUTPUT).into(),
        definition::<BashKill>(BashKill::NAME, BASH_KILL).into(),
    ]
}

fn unavailable(error: Unavailable) -> ToolError {
    ToolError::Unavailable { tool: Bash::NAME.to_owned(), reason: error.0 }
}

#[async_trait]
impl ToolExecutor for Shell {
    fn tools(&self) -> Vec<Arc<Tool>> {
        self.definitions.to_vec()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        match tool {
            Bash::NAME => Some(Effect::SideEffect),
            // A crash loses both the read position and the command, so the call can be repeated.
            BashOutput::NAME => Some(Effect::ReadOnly),
            BashKill::NAME => Some(Effect::Idempotent),
            _ => None,
        }
    }

    /// The tools for commands in the background come once there is one.
    fn offer(&self, tool: &str, task_id: &TaskId) -> Offer {
        if tool == Bash::NAME {
            return Offer::Always;
        }
        let had = ResultFiles::of(&self.settings.results, task_id).has_background();
        if had { Offer::Last } else { Offer::NotYet }
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

    async fn inspect_cut_off(&self, tool: &str, _: &RawJson, call: &CutOffCall) -> CutOffOutcome {
        if tool != Bash::NAME {
            return CutOffOutcome::Unknown { known: String::new() };
        }
        match self.records.read(call.call_uuid).await {
            Some(RecordedCall { result: Some(result), .. }) => CutOffOutcome::Happened(result),
            recorded => {
                CutOffOutcome::Unknown { known: report::cut_off(call.call_uuid, recorded.as_ref()) }
            }
        }
    }

    async fn settled(&self, tool: &str, _: &TaskId, call_uuid: Uuid) {
        if tool == Bash::NAME {
            self.records.remove(call_uuid).await;
        }
    }

    async fn release(&self, task_id: &TaskId) {
        let task = lock(&self.tasks).remove(task_id);
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

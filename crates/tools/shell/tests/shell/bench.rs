//! A shell with a workspace, to run commands in.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_core::port::{Cancel, Progress, Rule, ToolContext};
use antiphon_core::{InputBlock, RawJson, TaskId, ToolCallId, ToolError, ToolExecutor};
use antiphon_sandbox::{Limits, Network, Policy, Protected, SandboxMode};
use antiphon_shell::{Environment, Shell, ShellSettings, WorkerCommand};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// How long anything may take that should happen soon.
pub(crate) const SOON: Duration = Duration::from_secs(5);

pub(crate) struct Bench {
    /// Holds the workspace and our own folders.
    pub(crate) folder: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) shell: Arc<Shell>,
    pub(crate) task_id: TaskId,
    pub(crate) granted: Vec<Rule>,
    progress: Arc<Mutex<Vec<String>>>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallOutcome {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl CallOutcome {
    /// The id of a command in the background.
    pub(crate) fn id(&self) -> String {
        assert!(self.text.contains("sh-"), "no id in {}", self.text);
        let start = self.text.find("sh-").unwrap();
        self.text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
    }

    /// The output, without the line that says how it ended.
    pub(crate) fn output(&self) -> &str {
        self.text.rsplit_once('[').map_or("", |(output, _)| output)
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn full() -> Self {
        Self::with(|settings| settings.policy.mode = SandboxMode::Full)
    }

    pub(crate) fn with(change: impl FnOnce(&mut ShellSettings)) -> Self {
        Self::within(&scratch(), change)
    }

    /// In a folder beneath `base`.
    pub(crate) fn within(base: &Path, change: impl FnOnce(&mut ShellSettings)) -> Self {
        let folder = tempfile::tempdir_in(base).unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let mut settings = settings(&folder, &root);
        change(&mut settings);
        let shell = Arc::new(Shell::new(settings).unwrap());
        let task_id = TaskId::parse("task-1").unwrap();
        Self { folder, root, shell, task_id, granted: Vec::new(), progress: Arc::default() }
    }

    /// A path outside of the workspace, in a folder that is read-only to commands.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// The progress reported while commands ran.
    pub(crate) fn progress(&self) -> String {
        self.progress.lock().unwrap().concat()
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Value,
        cancel: Cancel,
    ) -> Result<CallOutcome, ToolError> {
        let progress = Arc::clone(&self.progress);
        let context = ToolContext {
            task_id: self.task_id.clone(),
            tool_call_id: ToolCallId::parse("call-1").unwrap(),
            agent: "tester".to_owned(),
            progress: Progress::to(move |text| progress.lock().unwrap().push(text.to_owned())),
            granted: self.granted.clone(),
            ..ToolContext::trial(cancel)
        };
        let arguments = RawJson::of(&arguments).unwrap();
        let call_uuid = context.call_uuid;
        let result = self.shell.execute(tool, &arguments, context).await?;
        // As when the result is recorded.
        self.shell.settled(tool, &self.task_id, call_uuid).await;
        let texts = result.content.iter().map(|block| match block {
            InputBlock::Text(block) => block.text.clone(),
            InputBlock::Image(_) => "an image".to_owned(),
        });
        Ok(CallOutcome { text: texts.collect(), is_error: result.is_error })
    }

    pub(crate) async fn bash(&self, arguments: Value) -> CallOutcome {
        self.call("bash", arguments, Cancel::never()).await.unwrap()
    }

    pub(crate) async fn run(&self, command: &str) -> CallOutcome {
        self.bash(json!({ "command": command })).await
    }

    pub(crate) async fn background(&self, command: &str) -> String {
        self.bash(json!({ "command": command, "background": true })).await.id()
    }

    pub(crate) async fn output(&self, id: &str, wait_s: u64) -> CallOutcome {
        let arguments = json!({ "id": id, "wait_s": wait_s });
        self.call("bash_output", arguments, Cancel::never()).await.unwrap()
    }

    pub(crate) async fn kill(&self, id: &str) -> CallOutcome {
        self.call("bash_kill", json!({ "id": id }), Cancel::never()).await.unwrap()
    }

    pub(crate) async fn release(&self) {
        self.shell.release(&self.task_id).await;
    }

    /// Runs a command that must succeed, and returns what it wrote.
    pub(crate) async fn works(&self, command: &str) -> String {
        let tool_output = self.run(command).await;
        assert!(!tool_output.is_error, "{command}\n{}", tool_output.text);
        tool_output.output().to_owned()
    }
}

pub(crate) fn settings(folder: &TempDir, root: &Path) -> ShellSettings {
    let program = env!("CARGO_BIN_EXE_antiphon-shell-worker").into();
    let variables = std::env::vars_os().chain(
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LD_PRELOAD", "BASH_ENV", "ENV"]
            .map(|name| (OsString::from(name), OsString::from("must not be seen"))),
    );
    ShellSettings {
        worker: WorkerCommand { program, args: Vec::new() },
        policy: Policy {
            mode: SandboxMode::Workspace,
            roots: vec![root.to_owned()],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: folder.path().join("tmp"),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: antiphon_sandbox::UnixSockets::Refused,
            repository: None,
            git_programs: antiphon_sandbox::GitPrograms::GitOnly,
            runs: antiphon_sandbox::Runs::Commands,
            limits: Limits::default(),
        },
        results: folder.path().join("results"),
        environment: Environment::choose(variables, &[], &[]).unwrap(),
        changes_repository: |script| script.starts_with("git "),
        without_sandbox: antiphon_shell::WithoutSandbox::AskedFor,
        network: None,
    }
}

/// Fires a [`Cancel`] when it is dropped.
pub(crate) fn switch() -> (oneshot::Sender<()>, Cancel) {
    let (sender, receiver) = oneshot::channel();
    (sender, Cancel::when(async { drop(receiver.await) }))
}

/// How many processes of the machine have `token` in their command line.
pub(crate) fn running(token: &str) -> usize {
    let commands = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        // Count only processes that run the token itself, not the shell whose script contains it.
        let arguments: Vec<_> = line.split(|byte| *byte == 0).collect();
        Some(arguments.contains(&token.as_bytes()))
    });
    commands.filter(|has| *has).count()
}

/// A number of seconds that no other process sleeps for, to find the process by.
pub(crate) fn token() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("9{:0>7}.{next:0>3}", std::process::id())
}

/// Waits until `happened`, which must be soon.
pub(crate) async fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < SOON, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A folder that can be written to and is not beneath one that a sandbox has of its own: that of
/// the build, unless that is in `/tmp`.
pub(crate) fn scratch() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let candidates = [env!("CARGO_TARGET_TMPDIR"), env!("CARGO_MANIFEST_DIR")].map(PathBuf::from);
    let others = ["/var/lib", "/srv", "/opt"].map(PathBuf::from);
    let own = ["/tmp", "/var/tmp", "/run", "/dev"];
    let fits = |path: &PathBuf| {
        !own.iter().any(|own| path.starts_with(own)) && tempfile::tempdir_in(path).is_ok()
    };
    candidates.into_iter().chain(home).chain(others).find(fits).unwrap()
}

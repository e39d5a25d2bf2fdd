//! The runner `terminal`.

mod attempt;
mod message_typing;
mod start;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use antiphon_core::port::{JournalError, Runner, RunnerError, RunnerTask};
use antiphon_core::{TaskId, TaskStatus};
use antiphon_private_file::create_folder;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use attempt::{Attempt, Outcome};
use start::Start;

use crate::command_line::resolve;
use crate::guard::process_list::{TASK_VARIABLE, end_processes_of};
use crate::process::Ending;
use crate::profile::TerminalProfile;
use crate::settings::{SettingsError, TerminalSettings};
use crate::setup::Report;
use crate::task::context::{Context, ContextTarget};
use crate::task::folder::{self, TaskFolder};
use crate::task::journal::JournalView;

/// Most terminals at a time. A further task is `Unavailable`.
pub const TERMINALS_MAX: usize = 64;

/// Bytes of the last screen that are stored as the result of a task.
pub const RESULT_BYTES_MAX: usize = 8 * 1024;

/// The kind of executor.
const KIND: &str = "terminal";

/// The variable with the agent's name, in whose name `antiphon reply` answers.
const AGENT_VARIABLE: &str = "ANTIPHON_AGENT";

/// Delay before the first restart. Each further delay is twice as long.
const RESTART_DELAY: Duration = Duration::from_millis(250);

/// Longest delay.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);

/// Executes tasks by running programs in terminals.
#[derive(Debug)]
pub struct TerminalRunner {
    settings: TerminalSettings,
    slots: Semaphore,
}

/// The `config` of an executor. It may come from a model: it names a profile and nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    profile: String,
}

impl TerminalRunner {
    /// Starts no process. The error says what is wrong with the settings.
    pub fn new(settings: TerminalSettings) -> Result<Self, SettingsError> {
        for (name, profile) in &settings.profiles {
            let wrong = |reason| SettingsError::Profile { name: name.clone(), reason };
            profile.check().map_err(wrong)?;
        }
        create_folder(&settings.folder).map_err(|error| SettingsError::Folder {
            folder: settings.folder.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self { settings, slots: Semaphore::new(TERMINALS_MAX) })
    }

    /// The profiles there are.
    pub fn profiles(&self) -> &BTreeMap<String, TerminalProfile> {
        &self.settings.profiles
    }

    fn profile(&self, config: &Value) -> Result<&TerminalProfile, String> {
        let config: Config = serde_json::from_value(config.clone())
            .map_err(|error| format!("the config of the runner `terminal` is wrong: {error}"))?;
        self.settings.profiles.get(&config.profile).ok_or_else(|| {
            let known: Vec<&str> = self.settings.profiles.keys().map(String::as_str).collect();
            let (name, known) = (&config.profile, known.join(", "));
            format!("there is no terminal profile `{name}`; there are {known}")
        })
    }

    /// The environment variables of the program, without its context.
    fn environment(
        &self,
        profile: &TerminalProfile,
        run: &RunnerTask,
    ) -> Vec<(OsString, OsString)> {
        let variable = |name: &str, value: &str| (name.into(), value.into());
        let mut environment = self.settings.environment.clone();
        environment.push(variable("TERM", "xterm-256color"));
        environment.push(variable("COLORTERM", "truecolor"));
        environment.extend(profile.env.iter().map(|(name, value)| variable(name, value)));
        // Set last, so that no profile overrides it: remaining processes are found by it.
        environment.push(variable(TASK_VARIABLE, run.task_id.as_str()));
        environment
    }

    /// Runs the program, as often as its policy allows.
    async fn work(
        &self,
        run: &mut RunnerTask,
        folder: &TaskFolder,
        profile: &TerminalProfile,
    ) -> Result<(), RunnerError> {
        let mut journal_view = JournalView::open(run.journal.clone(), run.task_id.clone()).await?;
        if journal_view.has_ended()
            || start::again(run, profile, &mut journal_view).await? == Start::No
        {
            return Ok(());
        }
        let to = ContextTarget {
            profile,
            folder,
            tasks_folder: &self.settings.folder,
            root: &self.settings.root,
            task_id: &run.task_id,
        };
        let context = Context::put(&journal_view.context, &to).map_err(refused)?;
        let mut env = self.environment(profile, run);
        let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let name = profile.command.first().map_or("", String::as_str);
        let program = resolve(name, &path.unwrap_or_default(), &self.settings.root);
        let program = program.map_err(refused)?;
        env.push((AGENT_VARIABLE.into(), journal_view.agent.clone().into()));
        env.extend(context.env.clone());
        let args = profile.command.iter().skip(1).chain(&context.args).cloned().collect();
        let attempt = Attempt { settings: &self.settings, folder, profile, program, args, env };
        let mut reason = (journal_view.attempts() > 0).then(|| "it was cut off".to_owned());
        let mut wait = RESTART_DELAY;
        loop {
            journal_view.begin(reason.take()).await?;
            let outcome = attempt.run(run, &mut journal_view).await?;
            let Outcome::Over { ending, last_text } = outcome else { return Ok(()) };
            let how = match verdict(ending)? {
                Verdict::Done => {
                    return Ok(journal_view.end(TaskStatus::Completed, last_text.into()).await?);
                }
                Verdict::Failed(how) => how,
            };
            if !profile.restart.allows(journal_view.attempts() + 1) {
                let error = format!("`{name}` {how}; the last of its screen: {last_text}");
                let detail = json!({ "code": "refused", "error": error });
                return Ok(journal_view.end(TaskStatus::Failed, detail).await?);
            }
            reason = Some(format!("it {how}"));
            tokio::select! {
                () = &mut run.cancel => return Ok(()),
                () = &mut run.shutdown => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
            wait = RESTART_DELAY_MAX.min(wait * 2);
        }
    }
}

#[async_trait]
impl Runner for TerminalRunner {
    fn kind(&self) -> &str {
        KIND
    }

    fn uses_run_provider(&self) -> bool {
        false
    }

    fn is_unrestricted(&self) -> bool {
        true
    }

    fn reads_inbox(&self) -> bool {
        true
    }

    fn check(&self, config: &Value) -> Result<(), String> {
        self.profile(config).map(|_| ())
    }

    async fn run(&self, mut run: RunnerTask) -> Result<(), RunnerError> {
        let profile = self.profile(&run.config).map_err(refused)?;
        match start::permitted(&mut run).await {
            Ok(Start::Now) => {}
            Ok(Start::No) | Err(RunnerError::Journal(JournalError::Ended { .. })) => return Ok(()),
            Err(error) => return Err(error),
        }
        let Ok(_room) = self.slots.try_acquire() else {
            let reason = format!("{TERMINALS_MAX} terminals run already: stop one");
            return Err(RunnerError::Unavailable { reason });
        };
        let claimed = tokio::select! {
            biased;
            () = &mut run.cancel => return Ok(()),
            () = &mut run.shutdown => return Ok(()),
            claimed = TaskFolder::claim(&self.settings.folder, &run.task_id) => claimed,
        };
        let folder = claimed.map_err(|error| unavailable(&error))?;
        self.clean_up(&run.task_id).await;
        match self.work(&mut run, &folder, profile).await {
            // The process that ended the task meanwhile has recorded it.
            Err(RunnerError::Journal(JournalError::Ended { .. })) => Ok(()),
            done => done,
        }
    }
}

impl TerminalRunner {
    /// Ends processes that an earlier guard left, and removes the oldest recordings.
    async fn clean_up(&self, task_id: &TaskId) {
        let (folder, mark) = (self.settings.folder.clone(), task_id.clone());
        let cleared = tokio::task::spawn_blocking(move || {
            folder::prune(&folder);
            end_processes_of(mark.as_str());
        });
        let _ = cleared.await;
    }
}

enum Verdict {
    Done,
    /// The reason, as a sentence about the program.
    Failed(String),
}

fn verdict(ending: Ending) -> Result<Verdict, RunnerError> {
    let report = match ending {
        Ending::Reported(report) => report,
        Ending::Lost => {
            return Ok(Verdict::Failed("was lost: its guard process was killed".to_owned()));
        }
    };
    match report {
        Report::NotStarted { reason } => Err(refused(reason)),
        Report::Exited { code: 0 } => Ok(Verdict::Done),
        Report::Exited { code } => Ok(Verdict::Failed(format!("ended with exit code {code}"))),
        Report::Killed { signal } => Ok(Verdict::Failed(format!("was ended by signal {signal}"))),
    }
}

fn refused(reason: String) -> RunnerError {
    RunnerError::Refused { reason }
}

fn unavailable(error: &io::Error) -> RunnerError {
    RunnerError::Unavailable { reason: format!("its terminal cannot be had: {error}") }
}

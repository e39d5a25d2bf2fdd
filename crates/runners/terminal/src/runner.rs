//! The runner `terminal`.

mod attempt;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use antiphon_core::port::{JournalError, Run, Runner, RunnerError};
use antiphon_core::{TaskId, TaskStatus};
use antiphon_private_file::create_folder;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use attempt::{Attempt, Outcome};

use crate::command_line::resolve;
use crate::context::{Context, Where};
use crate::guard::census::{MARK, end_marked};
use crate::ledger::Ledger;
use crate::place::{self, Place};
use crate::process::Ending;
use crate::profile::TerminalProfile;
use crate::settings::{SettingsError, TerminalSettings};
use crate::setup::Report;

/// Terminals at a time. One more is `Unavailable`.
pub const TERMINALS_MAX: usize = 64;

/// Bytes of the last screen that are kept as the result of a task.
pub const LAST_WORDS_BYTES_MAX: usize = 8 * 1024;

/// What an executor calls it.
const KIND: &str = "terminal";

/// How long to wait before a program is begun again; twice as long before each further time.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The longest such time.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);

/// Works on tasks by running programs in terminals.
#[derive(Debug)]
pub struct TerminalRunner {
    settings: TerminalSettings,
    places: Semaphore,
}

/// The `config` of an executor. It may come from a model: it names a profile and nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    profile: String,
}

impl TerminalRunner {
    /// Nothing is started yet. An error says what is wrong with the settings.
    pub fn new(settings: TerminalSettings) -> Result<Self, SettingsError> {
        for (name, profile) in &settings.profiles {
            let wrong = |reason| SettingsError::Profile { name: name.clone(), reason };
            profile.check().map_err(wrong)?;
        }
        create_folder(&settings.folder).map_err(|error| SettingsError::Folder {
            folder: settings.folder.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self { settings, places: Semaphore::new(TERMINALS_MAX) })
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
            let (asked, known) = (&config.profile, known.join(", "));
            format!("there is no terminal profile `{asked}`; there are {known}")
        })
    }

    /// The variables that the program finds, its context aside.
    fn environment(&self, profile: &TerminalProfile, run: &Run) -> Vec<(OsString, OsString)> {
        let variable = |name: &str, value: &str| (name.into(), value.into());
        let mut environment = self.settings.environment.clone();
        environment.push(variable("TERM", "xterm-256color"));
        environment.push(variable("COLORTERM", "truecolor"));
        environment.extend(profile.env.iter().map(|(name, value)| variable(name, value)));
        // Nobody takes this one away: it is what leftovers are known by.
        environment.push(variable(MARK, run.task_id.as_str()));
        environment
    }

    /// As often as its policy says.
    async fn work(
        &self,
        run: &mut Run,
        place: &Place,
        profile: &TerminalProfile,
    ) -> Result<(), RunnerError> {
        let mut ledger = Ledger::open(run.journal.clone(), run.task_id.clone()).await?;
        if ledger.has_ended() {
            return Ok(());
        }
        let to = Where {
            profile,
            place,
            folder: &self.settings.folder,
            root: &self.settings.root,
            task_id: &run.task_id,
        };
        let context = Context::put(&ledger.context, &to).map_err(refused)?;
        let mut env = self.environment(profile, run);
        let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let name = profile.command.first().map_or("", String::as_str);
        let program = resolve(name, &path.unwrap_or_default(), &self.settings.root);
        let program = program.map_err(refused)?;
        env.extend(context.env.clone());
        let args = profile.command.iter().skip(1).chain(&context.args).cloned().collect();
        let attempt = Attempt { settings: &self.settings, place, profile, program, args, env };
        let mut reason = (ledger.attempts() > 0).then(|| "it was cut off".to_owned());
        let mut wait = AGAIN_AFTER;
        loop {
            if !profile.restart.allows(ledger.attempts() + 1) {
                let error = format!("`{name}` was cut off, and is not begun again");
                let detail = json!({ "code": "interrupted", "error": error });
                return Ok(ledger.end(TaskStatus::Failed, detail).await?);
            }
            ledger.begin(reason.take()).await?;
            let outcome = attempt.run(run, &mut ledger).await?;
            let Outcome::Over { ending, last_words } = outcome else { return Ok(()) };
            let how = match verdict(ending)? {
                Verdict::Done => {
                    return Ok(ledger.end(TaskStatus::Completed, last_words.into()).await?);
                }
                Verdict::Failed(how) => how,
            };
            if !profile.restart.allows(ledger.attempts() + 1) {
                let error = format!("`{name}` {how}; the last of its screen: {last_words}");
                let detail = json!({ "code": "refused", "error": error });
                return Ok(ledger.end(TaskStatus::Failed, detail).await?);
            }
            reason = Some(format!("it {how}"));
            tokio::select! {
                () = &mut run.cancel => return Ok(()),
                () = &mut run.shutdown => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
            wait = AGAIN_AFTER_MAX.min(wait * 2);
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

    async fn run(&self, mut run: Run) -> Result<(), RunnerError> {
        let profile = self.profile(&run.config).map_err(refused)?;
        let Ok(_room) = self.places.try_acquire() else {
            let reason = format!("{TERMINALS_MAX} terminals run already: stop one");
            return Err(RunnerError::Unavailable { reason });
        };
        let claimed = tokio::select! {
            biased;
            () = &mut run.cancel => return Ok(()),
            () = &mut run.shutdown => return Ok(()),
            claimed = Place::claim(&self.settings.folder, &run.task_id) => claimed,
        };
        let place = claimed.map_err(|error| unavailable(&error))?;
        self.clear_up(&run.task_id).await;
        match self.work(&mut run, &place, profile).await {
            // Whoever ended it meanwhile has written so.
            Err(RunnerError::Journal(JournalError::Ended { .. })) => Ok(()),
            done => done,
        }
    }
}

impl TerminalRunner {
    /// Ends what hid from an earlier guard, and takes the oldest recordings away.
    async fn clear_up(&self, task_id: &TaskId) {
        let (folder, mark) = (self.settings.folder.clone(), task_id.clone());
        let cleared = tokio::task::spawn_blocking(move || {
            place::prune(&folder);
            end_marked(mark.as_str());
        });
        let _ = cleared.await;
    }
}

enum Verdict {
    Done,
    /// What happened to it, as a sentence about it.
    Failed(String),
}

fn verdict(ending: Ending) -> Result<Verdict, RunnerError> {
    let report = match ending {
        Ending::Told(report) => report,
        Ending::Lost => {
            return Ok(Verdict::Failed("was lost: somebody killed its guard".to_owned()));
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

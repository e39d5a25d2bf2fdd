//! A session that the editor has open.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::{ModelRef, SessionId};
use antiphon_permissions::PermissionMode;
use antiphon_process::Participant;
use antiphon_project::error::ProjectError;
use antiphon_project::prompt_commands::ListedCommand;
use antiphon_project::task_process::TaskProcess;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A session that the editor has open.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) participant: Participant,
    /// The folder that the editor named: rules for agents are read from the root down to it.
    pub(crate) folder: PathBuf,
    /// Names of the agents and models that can be chosen.
    pub(crate) agents: Vec<(String, String)>,
    pub(crate) models: Vec<ModelRef>,
    /// Commands that are prompts in files.
    pub(crate) commands: Vec<ListedCommand>,
    choice: Mutex<SessionChoice>,
    turn: Mutex<Option<CancellationToken>>,
}

/// What the next tasks of a session work with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionChoice {
    /// Name of the agent; the default one when absent.
    pub agent: Option<String>,
    /// The model; the agent's or the configured one when absent.
    pub model: Option<ModelRef>,
    /// Permission mode; the configured one when absent.
    pub mode: Option<PermissionMode>,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        (participant, folder): (Participant, PathBuf),
        (agents, models, commands): (Vec<(String, String)>, Vec<ModelRef>, Vec<ListedCommand>),
        choice: SessionChoice,
    ) -> Self {
        let (choice, turn) = (Mutex::new(choice), Mutex::default());
        Self { id, participant, folder, agents, models, commands, choice, turn }
    }

    pub(crate) fn choice(&self) -> SessionChoice {
        lock(&self.choice).clone()
    }

    pub(crate) fn choose(&self, change: impl FnOnce(&mut SessionChoice)) {
        change(&mut lock(&self.choice));
    }

    /// Begins a turn; `None` while another one runs.
    pub(crate) fn begin_turn(self: &Arc<Self>) -> Option<RunningTurn> {
        let mut turn = lock(&self.turn);
        if turn.is_some() {
            return None;
        }
        let canceled = CancellationToken::new();
        *turn = Some(canceled.clone());
        Some(RunningTurn { session: Arc::clone(self), canceled })
    }

    /// Whether a turn runs.
    pub(crate) fn is_running(&self) -> bool {
        lock(&self.turn).is_some()
    }

    /// Cancels the turn that runs, if one does.
    pub(crate) fn cancel_turn(&self) {
        if let Some(canceled) = &*lock(&self.turn) {
            canceled.cancel();
        }
    }

    /// What this process gives to the next task.
    pub(crate) fn process(&self) -> Result<TaskProcess, ProjectError> {
        let settings = self.participant.project().settings(self.participant.environment())?;
        let process = TaskProcess {
            id: Some(Uuid::new_v4()),
            folder: Some(self.folder.clone()),
            mode: self.choice().mode,
            ..TaskProcess::default()
        };
        Ok(process.at_providers_of(&settings))
    }
}

/// A turn that runs. The next one may begin when it is dropped.
pub(crate) struct RunningTurn {
    pub(crate) session: Arc<Session>,
    pub(crate) canceled: CancellationToken,
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        *lock(&self.session.turn) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

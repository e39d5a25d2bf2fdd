//! The task that a prompt of a conversation asks for.

use antiphon_api::RunTarget;
use antiphon_core::{RawJson, SessionId, TaskAccess, TaskId};
use antiphon_project::error::ProjectError;
use antiphon_project::run_request::{RunRequest, RunSession};
use antiphon_project::{blocks_json, prompt_with_images};

use super::ProgramOptions;

/// What a new task of a conversation does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskWork {
    /// It answers a prompt.
    Prompt,
    /// It shortens the conversation.
    Compaction,
}

impl ProgramOptions {
    /// A task for a prompt: in a session after its last task, or in a new session. `typed` is what the user typed of the
    /// prompt: it may name images, and the file of a command may not.
    pub fn new_task(
        &self,
        prompt: String,
        typed: &str,
        session: Option<(SessionId, TaskId)>,
        work: TaskWork,
    ) -> Result<RunTarget, ProjectError> {
        let session =
            session.map(|(session_id, last_task)| RunSession::Stored { session_id, last_task });
        let blocks =
            prompt_with_images(&prompt, typed, &self.root).map_err(ProjectError::InvalidInput)?;
        let request = RunRequest {
            prompt,
            blocks: blocks.map(blocks_json).transpose()?,
            agent: self.agent.clone().filter(|_| session.is_none()),
            model: self.model.clone(),
            system: None,
            session,
            limits: self.limits,
            output_schema: None,
            plan: self.access == TaskAccess::PlanFirst && work == TaskWork::Prompt,
            compact: work == TaskWork::Compaction,
            source: None,
            route: self.route.clone(),
        };
        let request =
            RawJson::of(&request).map_err(|error| ProjectError::Failed(error.to_string()))?;
        Ok(RunTarget::New(request))
    }
}

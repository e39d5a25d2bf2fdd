//! The tests of the scratch project, run by the demo itself, in the same sandbox that holds the agents:
//! what they changed is not trusted either. Where there is no sandbox they are not run.

use antiphon_core::port::{Cancel, ToolContext};
use antiphon_core::{RawJson, ToolExecutor as _, visible};
use antiphon_permissions::Mode;

use super::telling::text_of;
use crate::project::Project;
use crate::watch::Tone;
use antiphon_project::settings::UserSettings;
use antiphon_project::toolset;

/// How the tests are run.
pub(super) const COMMAND: &str = "sh tests/run.sh";

/// Lines that are shown.
const LINES_MAX: usize = 20;

/// What came of the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) passed: bool,
    lines: Vec<String>,
}

impl Trial {
    /// Runs the tests, or says why they cannot be.
    pub(super) async fn run(project: &Project, config: &UserSettings) -> Result<Self, String> {
        project.prepare().map_err(|failure| failure.to_string())?;
        let shell = toolset::shell(project, config, Mode::Workspace, false)?;
        let arguments = serde_json::json!({ "command": COMMAND }).to_string();
        let arguments = RawJson::parse(&arguments).map_err(|error| error.to_string())?;
        let context = ToolContext::trial(Cancel::never());
        let task_id = context.task_id.clone();
        let result = shell.execute("bash", &arguments, context).await;
        shell.release(&task_id).await;
        let result = result.map_err(|error| error.to_string())?;
        let text = text_of(&result.content);
        let lines = text.lines().filter(|line| !line.starts_with("[exit code"));
        let lines = lines.take(LINES_MAX).map(visible).collect();
        Ok(Self { passed: !result.is_error, lines })
    }

    /// The lines, in color.
    pub(super) fn lines(&self) -> Vec<(Tone, String)> {
        let tone = |line: &str| {
            if line.starts_with("ok") {
                Tone::Good
            } else if line.starts_with("FAIL") {
                Tone::Bad
            } else {
                Tone::Plain
            }
        };
        let command = (Tone::Faint, format!("$ {COMMAND}"));
        let lines = self.lines.iter().map(|line| (tone(line), line.clone()));
        std::iter::once(command).chain(lines).collect()
    }
}

//! The tests of the project, run by the demo in the sandbox of the agents: the agents changed the
//! project, so it is not trusted. Without a sandbox the tests do not run.

use std::path::Path;

use antiphon_view::Tone;
use antiphon_view::display::escaped;

use crate::event_lines::text_of;
use crate::host::{ConfigSource, Host};

const COMMAND: &str = "sh tests/run.sh";

/// Lines of output that are shown.
const LINES_MAX: usize = 20;

/// The result of the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestRun {
    pub(crate) passed: bool,
    lines: Vec<String>,
}

impl TestRun {
    /// Runs the tests of the project in `root`. `Err` says why they cannot run.
    pub(crate) async fn run(
        host: &dyn Host,
        root: &Path,
        config: ConfigSource<'_>,
    ) -> Result<Self, String> {
        let result = host.run_command(root, config, COMMAND).await?;
        let text = text_of(&result.content);
        let lines = text.lines().filter(|line| !line.starts_with("[exit code"));
        let lines = lines.take(LINES_MAX).map(|line| escaped(line).into_owned()).collect();
        Ok(Self { passed: !result.is_error, lines })
    }

    /// The command and its output, with the tone of each line.
    pub(crate) fn lines(&self) -> Vec<(Tone, String)> {
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
